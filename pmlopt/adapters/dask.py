"""Columns of a Dask data frame, released partition by partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow

from pmlopt.data.mechanism import MechanismLike
from pmlopt.errors import MissingExtraError
from pmlopt.releases.batches import BatchRelease

try:
    import dask
    import dask.dataframe
except ImportError:
    raise MissingExtraError("data frames of Dask need it: pip install 'pmlopt[dask]'") from None


def release(
    frame: Any,
    mechanisms: Mapping[str | tuple[str, ...], MechanismLike],
    *,
    keep: Sequence[str] = (),
    drop_missing: bool = False,
    seed: int | None = None,
) -> Any:
    """The data frame in which columns are what mechanisms release of them, each row drawn by itself.

    The draws are a function of a key that this call makes and of the partition: a partition that is computed
    again, after a worker was lost or for another reader, draws what it drew before. The key is in the graph
    of tasks, which is as secret as the data. Indices are not kept.

    Args:
        frame: a Dask data frame.
        mechanisms: by column, or by the tuple of columns whose tuples of values are the inputs.
        keep: other columns that stay, in clear.
        drop_missing: leave out rows with a missing cell that is no input.
        seed: for tests alone; None takes the key from the operating system.

    Raises:
        InputError: there is no such column, or two mechanisms are for one.
        MechanismError: when it is computed: a cell is no input of its mechanism.

    Examples:
        >>> import dask.dataframe, pandas
        >>> from pmlopt import Mechanism
        >>> flip = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
        >>> people = pandas.DataFrame({"smokes": ["no", "yes", "yes"], "name": ["Ann", "Bo", "Cy"]})
        >>> released = release(dask.dataframe.from_pandas(people, npartitions=2), {"smokes": flip})
        >>> released.compute().to_dict("list")
        {'smokes': ['yes', 'no', 'no']}
    """
    kernel = BatchRelease.of(mechanisms, keep=keep, drop_missing=drop_missing).keyed(seed)
    meta, drawn = _drawn(frame._meta, kernel, -1), dask.delayed(_drawn)
    # the number goes with the task: Dask renumbers partitions where only some are computed
    parts = [drawn(part, kernel, number) for number, part in enumerate(frame.to_delayed())]
    return dask.dataframe.from_delayed(parts, meta=meta)


def _drawn(part: Any, kernel: BatchRelease, number: int) -> Any:
    """A partition of pandas, released."""
    released = kernel(pyarrow.RecordBatch.from_pandas(part, preserve_index=False), number)
    made = released.replace_schema_metadata().to_pandas()
    new = {name for one in kernel.releases for name, _ in one.released}
    return made.astype({name: part.dtypes[name] for name in made.columns if name not in new})
