"""Release of Dask data frames, by partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow

from pmlopt.core.lazy_imports import require_extra
from pmlopt.data.mechanism import MechanismLike
from pmlopt.data.sampling.categorical import KeyedBits
from pmlopt.errors import InputError
from pmlopt.releases.rows.batches import BatchRelease, ColumnReleaser
from pmlopt.tables.reading import integers_to_arrow

with require_extra("data frames of Dask need it", "dask"):
    import dask
    import dask.dataframe
    import pandas


def release(
    frame: Any,
    mechanisms: Mapping[str | tuple[str, ...], MechanismLike],
    *,
    keep: Sequence[str] = (),
    drop_missing: bool = False,
    keep_order: bool = False,
    seed: int | None = None,
) -> Any:
    """Release columns of a data frame through mechanisms, each row independently.

    The rows have a uniformly random order over all partitions, and the frame holds their cells and nothing
    else: categories become values. The draws and the order are a function of a key that this call makes and
        of the partition: a partition that is computed
    again, after a worker was lost or for another reader, draws what it drew before. The key is in the graph
    of tasks, which is as secret as the data. Indices are not kept. Columns that stay keep their types and
    every digit.

    Args:
        frame: a Dask data frame.
        mechanisms: by column, or by the tuple of columns whose tuples of values are the inputs.
        keep: other columns that stay, in clear.
        drop_missing: leave out rows with a missing cell that is no input.
        keep_order: leave each row in its partition and place, which may reveal what the data are sorted by.
        seed: for tests only; None takes the key from the operating system.

    Raises:
        InputError: there is no such column, or two mechanisms are for one.
        MechanismError: when it is computed: a cell is no input of its mechanism.

    Examples:
        >>> import dask.dataframe, pandas
        >>> from pmlopt import Mechanism
        >>> flip = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
        >>> people = pandas.DataFrame({"smokes": ["no", "yes", "yes"], "name": ["Ann", "Bo", "Cy"]})
        >>> released = release(dask.dataframe.from_pandas(people, npartitions=2), {"smokes": flip})
        >>> sorted(released.compute()["smokes"])
        ['no', 'no', 'yes']
    """
    kernel = BatchRelease.of(mechanisms, keep=keep, drop_missing=drop_missing).with_key(seed)
    # no column's name
    order = None if keep_order else "-".join(["order", *map(str, frame.columns)])
    drawn = dask.delayed(_release_partition)
    # the number goes with the task: Dask renumbers partitions where only some are computed
    parts = [drawn(part, kernel, number, order) for number, part in enumerate(frame.to_delayed())]
    made = dask.dataframe.from_delayed(
        parts, meta=_release_partition(frame._meta, kernel, -1, order)
    )
    if order is None:
        return made
    meta = _release_partition(frame._meta, kernel, -1, None)
    return made.shuffle(on=order).map_partitions(_sort_rows, order, meta=meta)


def _release_partition(part: Any, kernel: BatchRelease, number: int, order: str | None) -> Any:
    """Release a pandas partition, with random words for the row order.

    A word chooses the partition of its row, and its place there. Words do not depend on rows, so every order
    is equally likely as long as no two are equal, which among n rows happens with a probability below `n^2 /
    2^64`. Columns that stay never pass through Arrow, where nullable types lose digits: the number of each
    row does, and the rows that stay are built anew from the cells of the partition.
    """
    columns = list(part.columns)
    check_text_names(columns)
    work = ColumnReleaser(kernel.releases, columns, "the data frame", typed=True, keep=kernel.keep)
    taken = list(dict.fromkeys(name for one in kernel.releases for name in one.columns))
    numbered = "-".join(["row", *taken])  # no column's name
    rows = pyarrow.RecordBatch.from_pandas(part[taken], preserve_index=False)
    rows = pyarrow.RecordBatch.from_arrays(
        [*rows.columns, integers_to_arrow(np.arange(len(part)))], names=[*taken, numbered]
    )
    released = replace(kernel, keep=(numbered,))(rows, number)
    kept = released.column(numbered).to_numpy()
    made = pandas.DataFrame({
        one.name: _strip_column(part[one.name].iloc[kept].reset_index(drop=True))
        if one.place is not None
        else released.column(one.name).to_pandas()
        for one in work.columns
    })  # fmt: skip
    if order is None:
        return made
    words = KeyedBits(kernel.key or b"", "order", number).draw_words(len(made))
    return made.assign(**{order: words.view(np.int64)})


def _strip_column(column: Any) -> Any:
    """Copy a column without unused categories or data under nulls."""
    kind = column.dtype
    if isinstance(kind, pandas.CategoricalDtype):
        values = kind.categories.dtype
        whole = getattr(values, "kind", "O") in "iub"  # a missing cell has no such number
        return column.astype(object if whole and column.isna().any() else values)
    if getattr(kind, "numpy_dtype", None) is not None and column.isna().any():
        missing = column.isna()
        return column.fillna(kind.type(0)).mask(missing)
    return column


def _sort_rows(part: Any, name: str) -> Any:
    """Sort a partition by a helper column, and drop it with the index."""
    return part.sort_values(name).drop(columns=name).reset_index(drop=True)


def check_text_names(columns: Sequence[Any]) -> None:
    """Raise an error for non-text column names."""
    for name in columns:
        if not isinstance(name, str):
            raise InputError(
                f"the data frame has a column named {name!r}: name all columns by text"
            )
