"""Releases inside DuckDB: of a table into a new one, and a function as in `SELECT release(x) FROM people`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from secrets import token_hex
from typing import Any

import numpy as np
import pyarrow

from pmlopt.core.lazy_imports import require_extra
from pmlopt.data.mechanism import MechanismLike, as_mechanism
from pmlopt.data.sampling.categorical import SystemBits
from pmlopt.errors import MechanismError
from pmlopt.releases.rows.batches import BatchRelease, ColumnReleaser
from pmlopt.tables.frame_tables import quote_name
from pmlopt.tables.reading import integers_to_arrow

with require_extra("functions of DuckDB need it", "duckdb"):
    import duckdb
    from duckdb.func import ARROW


def release(
    connection: Any,
    source: Any,
    mechanisms: Mapping[str | tuple[str, ...], MechanismLike],
    *,
    into: str,
    keep: Sequence[str] = (),
    keep_order: bool = False,
) -> Any:
    """Release columns of a table through mechanisms into a new table, with one draw for each row.

    What is computed of the new table draws nothing: any query of it is safe. It holds its cells and nothing
    else, categories (ENUM) as text, in a uniformly random order as long as no two of the random words of 64
    bits are equal by which it is sorted.

    Args:
        connection: of DuckDB.
        source: the name of a table or a view, or a relation of the connection.
        mechanisms: by column, or by the tuple of columns whose tuples of values are the inputs. A missing
            cell is the input "", the empty text.
        into: the name of the new table.
        keep: other columns that stay, in clear.
        keep_order: leave the rows in the order of the source, which may reveal what they are sorted by.

    Returns:
        the new table, as a relation.

    Raises:
        InputError: there is no such column, or two mechanisms are for one.
        MechanismError: a value is no input of its mechanism, or outputs are tuples of as many parts as the
            inputs.

    Examples:
        >>> import duckdb
        >>> from pmlopt import Mechanism
        >>> flip = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
        >>> connection = duckdb.connect()
        >>> people = connection.sql("SELECT * FROM (VALUES ('no', 1), ('yes', 2)) AS t(smokes, region)")
        >>> released = release(connection, people, {"smokes": flip}, into="released", keep=["region"])
        >>> sorted(released.fetchall())
        [('no', 2), ('yes', 1)]
    """
    relation = connection.table(source) if isinstance(source, str) else source
    releases = BatchRelease.of(mechanisms, keep=keep).releases
    plan = ColumnReleaser(releases, relation.columns, "the table", typed=True, keep=keep).columns
    kernels = {
        "+".join(one.columns): (one.columns, BatchRelease.of_arrays(one.mechanism))
        for one in releases
    }
    made: list[str] = []
    refused: list[MechanismError] = []

    def call(function: Callable[..., Any], kind: str, *arguments: str) -> str:
        def run_function(*columns: Any) -> Any:
            try:
                return function(*columns)
            except MechanismError as error:
                refused.append(error)
                raise

        made.append(f"pmlopt_{token_hex(8)}")
        _create(connection, made[-1], run_function, len(arguments), kind)
        return f"{made[-1]}({', '.join(arguments)})"

    try:
        projections = []
        for column in plan:
            if column.place is not None:
                drawn = _make_plain(column.name, str(relation.types[column.place]))
            else:
                columns, kernel = kernels[column.name]
                kind = _SQL[kernel.array_type]
                drawn = call(_make_drawer(kernel), kind, *map(quote_name, columns))
            projections.append(f"{drawn} AS {quote_name(column.name)}")
        names = [quote_name(column.name) for column in plan]
        if keep_order:
            rows = relation.project(", ".join(projections))
        else:
            word = quote_name("-".join(["order", *relation.columns, *kernels]))  # no column's name
            projections.append(f"{call(_draw_words, 'BIGINT', '0')} AS {word}")
            rows = relation.project(", ".join(projections)).order(word).project(", ".join(names))
        rows.create(into)
    except duckdb.Error:
        if refused:
            raise refused[0] from None
        raise
    finally:
        for name in made:
            connection.remove_function(name)
    return connection.table(into)


def register(connection: Any, name: str, mechanism: MechanismLike) -> None:
    """Register a SQL function that releases each row through a mechanism.

    **Write it once, with a bare column, into a table** (`CREATE TABLE released AS SELECT release(smokes) AS
    smokes FROM people`, as `release` does), and compute from that table. DuckDB calls the function once for
    each place where its query has it, and it expands some: `NULLIF(release(x), 'no')` and `CASE release(x)
    WHEN ...` draw two times and more, by which the level does not hold. A view draws anew for each reader.

    It takes a column, or as many as the tuples have parts that are the inputs.

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
    kernel = BatchRelease.of_arrays(mechanism)
    first = as_mechanism(mechanism).inputs[0]
    width = len(first) if isinstance(first, tuple) else 1
    _create(connection, name, _make_drawer(kernel), width, _SQL[kernel.array_type])


def _create(
    connection: Any, name: str, function: Callable[..., Any], width: int, kind: str
) -> None:
    """Create a function of some columns of any type, so that DuckDB converts no value before."""

    def run_function(*columns: Any) -> Any:
        return function(*columns)

    parts = [Parameter(f"part{k}", Parameter.POSITIONAL_ONLY) for k in range(width)]
    setattr(run_function, "__signature__", Signature(parts))  # noqa: B010 -- DuckDB counts the parameters by it
    connection.create_function(
        name, run_function, None, kind, type=ARROW, null_handling="special", side_effects=True
    )


def _make_drawer(kernel: BatchRelease) -> Callable[..., Any]:
    """Return the function from columns to draws, whose errors name the types that DuckDB gave the columns."""

    def draw_outputs(*columns: Any) -> Any:
        try:
            return kernel.array(columns)
        except MechanismError as error:
            kinds = [_name_type(column.type) for column in columns]
            if set(kinds) == {"VARCHAR"}:
                raise
            raise MechanismError(
                f"{error}. To DuckDB the column is {', '.join(kinds)}: where it was text in a CSV file, such "
                "as yes and no, read that with all_varchar = true"
            ) from None

    return draw_outputs


def _name_type(kind: pyarrow.DataType) -> str:
    """Return DuckDB's name of an Arrow type."""
    empty = pyarrow.table({"column": pyarrow.array([], kind)})
    with duckdb.connect() as own:  # the connection of the query is busy
        return str(own.from_arrow(empty).types[0])


def _draw_words(places: Any) -> Any:
    """Draw a random word of 64 bits for each row."""
    return integers_to_arrow(SystemBits().draw_words(len(places)).view(np.int64))


_ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)")


def _make_plain(name: str, kind: str) -> str:
    """Return a kept column in SQL, without the list of values that an ENUM has for its rows and others."""
    plain = _ENUM.sub("VARCHAR", kind)
    return quote_name(name) if plain == kind else f"CAST({quote_name(name)} AS {plain})"


_SQL = {
    pyarrow.int64(): "BIGINT",
    pyarrow.float64(): "DOUBLE",
    pyarrow.bool_(): "BOOLEAN",
    pyarrow.string(): "VARCHAR",
}
