"""Release of Spark data frames, by batch in the workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow

from pmlopt.core.lazy_imports import require_extra
from pmlopt.data.mechanism import MechanismLike
from pmlopt.data.sampling.categorical import KeyedBits
from pmlopt.releases.rows.batches import BatchRelease
from pmlopt.tables.reading import integers_to_arrow


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

    The rows have a random order over all partitions: they are sorted by random words of 64 bits, so that
        every
    order is equally likely as long as no two are equal, which among n rows happens with a probability below
    `n^2 / 2^65`. The draws and the words are a function of a key that this call makes, of the partition, and
    of the batch in it and its
    letters: a task that is tried again draws what it drew before, and so does another action on the same
    partitions. The key goes to the workers with the task, and is as secret as the data.

    Args:
        frame: a data frame of Spark.
        mechanisms: by column, or by the tuple of columns whose tuples of values are the inputs.
        keep: other columns that stay, in clear.
        drop_missing: leave out rows with a missing cell that is no input.
        keep_order: leave each row in its partition and place, which may reveal what the data are sorted by.
        seed: for tests only; None takes the key from the operating system.

    Raises:
        InputError: there is no such column, or two mechanisms are for one.
        MechanismError: when it is computed: a cell is no input of its mechanism.
    """
    kernel = BatchRelease.of(mechanisms, keep=keep, drop_missing=drop_missing).with_key(seed)
    types = _import_type_converters()
    whole = kernel.schema(types.to_arrow_schema(frame.schema))

    def release_batches(batches: Iterator[Any]) -> Iterator[Any]:
        part = _get_partition()
        for number, batch in enumerate(batches):
            yield kernel(batch, part, number)

    def add_random_words(batches: Iterator[Any]) -> Iterator[Any]:
        part = _get_partition()
        for number, batch in enumerate(release_batches(batches)):
            words = KeyedBits(kernel.key or b"", "order", part, number).draw_words(batch.num_rows)
            yield batch.append_column(order, integers_to_arrow(words.view(np.int64)))

    if keep_order:
        return frame.mapInArrow(release_batches, types.from_arrow_schema(whole))
    order = "-".join(["order", *whole.names])  # no column's name
    columns = types.from_arrow_schema(whole.append(pyarrow.field(order, pyarrow.int64())))
    return (
        frame.mapInArrow(add_random_words, columns)
        .orderBy(f"`{order.replace('`', '``')}`")
        .drop(order)
    )


def release_column(mechanism: MechanismLike, seed: int | None = None) -> Any:
    """Return a Spark column function that releases each row.

    `frame.select(release_column(mechanism)("education"))`: store that before anything is computed of it.
    Spark calls it once for each place where a query has it, a simple `CASE` once for each branch. Used twice
    on the same batches of one column it gives one draw twice, so that two equal conditions on it act as one;
    on other batches, such as after a filter, it draws anew.

    Args:
        mechanism: its inputs are the values of the column, or tuples of those of as many columns.
        seed: for tests only; None takes the key from the operating system.

    Raises:
        MechanismError: its outputs are tuples of as many parts as its inputs.
    """
    kernel = BatchRelease.of_arrays(mechanism).with_key(seed)

    def release_single(batches: Iterator[pyarrow.Array]) -> Iterator[pyarrow.Array]:
        return release_tuple((batch,) for batch in batches)

    def release_tuple(batches: Iterator[tuple[pyarrow.Array, ...]]) -> Iterator[pyarrow.Array]:
        part = _get_partition()
        for number, batch in enumerate(batches):
            yield kernel.array(batch, part, number)

    types = _import_type_converters()
    from pyspark.sql.functions import arrow_udf

    kind = types.from_arrow_type(kernel.array_type)
    drawn = release_single if len(kernel.releases[0].columns) == 1 else release_tuple
    return arrow_udf(drawn, kind).asNondeterministic()


def _import_type_converters() -> Any:
    """Return the converters between Arrow and Spark types."""
    with require_extra("data frames of Spark need it", "spark"):
        from pyspark.sql.pandas import types
    return types


def _get_partition() -> int:
    """Return the current task's partition number."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None, "a task of Spark has a context"
    return int(task.partitionId())
