"""Polars expressions: `pl.col("education").pmlopt.release(mechanism)`.

Importing this module registers the namespace.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from pmlopt.core.lazy_imports import require_extra
from pmlopt.data.mechanism import Mechanism, as_mechanism
from pmlopt.data.sampling.categorical import make_key
from pmlopt.releases.rows.batches import BatchRelease

with require_extra("expressions need Polars", "polars"):
    import polars as pl


@pl.api.register_expr_namespace("pmlopt")
class PmloptExpressions:
    """The namespace of Polars expressions for columns of a frame.

    Examples:
        >>> import polars as pl
        >>> from pmlopt import Mechanism
        >>> flip = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
        >>> frame = pl.DataFrame({"smokes": ["no", "yes"]})
        >>> frame.select(pl.col("smokes").pmlopt.release(flip))["smokes"].to_list()
        ['yes', 'no']
    """

    def __init__(self, column: Any) -> None:
        self._column = column

    def release(self, mechanism: Mechanism, seed: int | None = None) -> Any:
        """Return the expression that releases each value independently.

        An expression that is used twice draws twice, in lazy frames too. Each row of a constant column, such
        as one that a literal or the name of a Hive folder made, has its own draw.

        Args:
            mechanism: its inputs are the values of the column; a missing value is refused if it is none.
            seed: None draws from the system's randomness. A number repeats the draws: for tests only.

        Raises:
            MechanismError: on evaluation, for a value that is no input.
        """
        kernel = BatchRelease.of_arrays(mechanism, None if seed is None else make_key(seed))
        kind = pl.Series(list(as_mechanism(mechanism).with_named_outputs().outputs)).dtype
        batches = count()

        def draw_outputs(batch: Any) -> Any:
            fields = [batch.struct.field(name) for name in batch.struct.fields[:-2]]
            made = kernel.array([field.to_arrow() for field in fields], next(batches))
            return pl.Series(fields[0].name, made, dtype=kind)

        # what is random is never taken for an expression that was computed already
        own = pl.lit(0).shuffle().alias("pmlopt-draw")
        # Polars keeps a constant column as one value, and would call the function on that value only: the
        # numbers of the rows differ, so that the struct has every row
        values = pl.struct(self._column)
        rows = values.len() if values.meta.root_names() else pl.len()
        numbered = pl.int_range(rows).alias("pmlopt-row")
        return pl.struct(self._column, own, numbered).map_batches(
            draw_outputs, return_dtype=kind, is_elementwise=True
        )
