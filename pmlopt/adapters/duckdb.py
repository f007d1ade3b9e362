"""A DuckDB function: `SELECT release(education) FROM people`."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

import pyarrow

from pmlopt.data.mechanism import MechanismLike, as_mechanism
from pmlopt.errors import MissingExtraError
from pmlopt.releases.batches import BatchRelease
from pmlopt.tables.writing import get_label_type

try:
    from duckdb.func import ARROW
except ImportError:
    raise MissingExtraError("functions of DuckDB need it: pip install 'pmlopt[duckdb]'") from None


def register(connection: Any, name: str, mechanism: MechanismLike) -> None:
    """Register a SQL function that releases each row through a mechanism.

    It takes a column, or as many as the tuples have parts that are the inputs. Each use draws independently:
    write the released table once (`CREATE TABLE ... AS`), and read that. A view would draw anew for each
    reader, who could compare the draws.

    Args:
        connection: of DuckDB.
        name: of the function.
        mechanism: its inputs are the values of the column. A missing cell is the input "", the empty text.

    Raises:
        MechanismError: its outputs are tuples of as many parts as its inputs; and, when it is run, a value is
            no input.

    Examples:
        >>> import duckdb
        >>> from pmlopt import Mechanism
        >>> flip = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
        >>> connection = duckdb.connect()
        >>> register(connection, "release", flip)
        >>> connection.sql("SELECT release(smokes) FROM (VALUES ('no'), ('yes')) AS t(smokes)").fetchall()
        [('yes',), ('no',)]
    """
    kernel, made = BatchRelease.of_arrays(mechanism), as_mechanism(mechanism)
    tuples = [label if isinstance(label, tuple) else (label,) for label in made.inputs]

    def draw_outputs(*columns: Any) -> Any:
        return kernel.array(columns)

    parts = [Parameter(f"part{k}", Parameter.POSITIONAL_ONLY) for k in range(len(tuples[0]))]
    setattr(draw_outputs, "__signature__", Signature(parts))  # noqa: B010 -- DuckDB counts the parameters by it

    connection.create_function(
        name,
        draw_outputs,
        [_SQL[get_label_type(part)] for part in zip(*tuples, strict=True)],
        _SQL[kernel.array_type],
        type=ARROW,
        null_handling="special",
        side_effects=True,
    )


_SQL = {
    pyarrow.int64(): "BIGINT",
    pyarrow.float64(): "DOUBLE",
    pyarrow.bool_(): "BOOLEAN",
    pyarrow.string(): "VARCHAR",
}
