"""Uniformly random row orders, in memory or by an external bucket shuffle.

Each row gets a bucket, each bucket equally likely, and the rows of a bucket a random order: of n rows every
    order
is equally likely. For, given how many rows each bucket has, every division of the rows among them is equally
likely, and each leaves every order within. Buckets are drawn in the order of the rows, orders afterwards in
that of the buckets, so that a seed gives the same order whether the rows went to the file or not.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.files.disk import is_standard_stream
from pmlopt.core.lazy_imports import ipc, pyarrow
from pmlopt.core.numbers.arrays import IntArray
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.tables.cells import gather_cells
from pmlopt.tables.reading import integers_to_arrow

T = TypeVar("T")

Buckets: TypeAlias = "NDArray[np.uint8] | IntArray"

MAX_CHUNK_BYTES = 2**26
"""Bytes of rows that are kept before they go to the file."""

MAX_BUCKET_BYTES = 2**28
"""Bytes of a bucket that is ordered in memory; a larger one is divided once more."""

MAX_SMALL_ROWS = 2**17
"""Rows that are ordered all at once."""

SORT_BLOCK_ROWS = 2**16
"""Rows sorted at a time: a column of so many is in the cache, where copying takes a tenth of the time."""

MAX_PACKED_ROWS = 2**20
"""Numbers that are sorted with random keys in one word: two keys are equal with a probability of at most
1/32.
"""

BUCKET_COUNT = 2**7
"""A bucket is seven bits of a random byte."""


def random_permutation(size: int, bits: RandomBits) -> IntArray:
    """Draw a uniformly random permutation of range(size).

    They are sorted by random keys: given that no two keys are equal, every order is equally likely; where two
    are, all are drawn anew. Of few numbers the keys are the leading bits of words whose last bits are the
    numbers.

    Examples:
        >>> from pmlopt.data.sampling.categorical import SystemBits
        >>> sorted(random_permutation(4, SystemBits()).tolist())
        [0, 1, 2, 3]
    """
    if size > MAX_PACKED_ROWS:
        while True:
            keys = bits.draw_words(size)
            order = np.argsort(keys)
            ascending = keys[order]
            if not (ascending[1:] == ascending[:-1]).any():
                return np.asarray(order)
    digits = np.uint64(max(1, (size - 1).bit_length()))
    numbers = np.arange(size, dtype=np.uint64)
    while True:  # sorting numbers is several times as fast as sorting places by them
        words = np.sort(bits.draw_words(size) >> digits << digits | numbers)
        keys = words >> digits
        if not (keys[1:] == keys[:-1]).any():
            return (words & (np.uint64(1) << digits) - np.uint64(1)).astype(np.int64)


def shuffle_list(rows: Sequence[T], bits: RandomBits) -> list[T]:
    """Shuffle rows uniformly."""
    return [rows[place] for place in random_permutation(len(rows), bits).tolist()]


class ByteBuckets:
    """A generator of random bucket bytes, independent of batch lengths.

    Args:
        bits: random bits.
    """

    def __init__(self, bits: RandomBits) -> None:
        self._bits = bits
        self._left = np.zeros(0, dtype=np.uint8)

    def draw_buckets(self, size: int) -> Buckets:
        """Draw (size,) bucket indices of the next rows."""
        words = self._bits.draw_words(-(-max(0, size - len(self._left)) // 8))
        drawn = np.concatenate([self._left, words.astype("<u8").view(np.uint8)])
        self._left = drawn[size:]
        return drawn[:size] % np.uint8(BUCKET_COUNT)


class SortedRows:
    """In-memory rows sorted by random bucket.

    Args:
        buckets: how many there are.

    Attributes:
        size: in bytes.
    """

    def __init__(self, buckets: int = BUCKET_COUNT) -> None:
        self.buckets = buckets
        self.size = 0
        self._pieces: list[tuple[Any, list[int]]] = []

    def add_batch(self, rows: Any, buckets: Buckets) -> None:
        """Add a record batch with its bucket indices."""
        for begin in range(0, len(buckets), SORT_BLOCK_ROWS):
            order, ends = _sort_by_bucket(buckets[begin : begin + SORT_BLOCK_ROWS], self.buckets)
            self._pieces.append((gather_rows(rows.slice(begin, len(order)), order), ends.tolist()))
        self.size += rows.nbytes

    def get_rows(self, bucket: int) -> list[Any]:
        """Return a bucket's rows as record batches."""
        return [
            rows.slice(ends[bucket], ends[bucket + 1] - ends[bucket])
            for rows, ends in self._pieces
            if ends[bucket] < ends[bucket + 1]
        ]


class BucketFile:
    """An on-disk bucket store of rows in an Arrow file.

    Args:
        stream: to write to and to read from.
        schema: of the rows, of plain types.
    """

    def __init__(self, stream: BinaryIO, schema: Any) -> None:
        self._stream = stream
        self._writer = ipc.new_file(pyarrow.PythonFile(stream, mode="w"), schema)
        self._nothing = pyarrow.RecordBatch.from_arrays(
            [pyarrow.array([], type=field.type) for field in schema], schema=schema
        )

    def add_chunk(self, chunk: SortedRows) -> None:
        """Write a chunk of rows, one record batch per bucket."""
        for bucket in range(chunk.buckets):
            self._writer.write_batch(join_all(chunk.get_rows(bucket) or [self._nothing]))

    def close(self) -> BucketReader:
        """Finish the file, and return its reader."""
        self._writer.close()
        self._stream.flush()
        return BucketReader(self._stream)


class BucketReader:
    """A reader of bucketed rows from an Arrow file.

    Args:
        source: the stream, or the path of the file.
        buckets: how many there are.
    """

    def __init__(self, source: Any, buckets: int = BUCKET_COUNT) -> None:
        held = source if isinstance(source, str) else pyarrow.PythonFile(source, mode="r")
        self._file = ipc.open_file(held)
        self._buckets = buckets

    def read_pieces(self, bucket: int) -> Iterator[Any]:
        """Return a bucket's record batches from all chunks."""
        for number in range(bucket, self._file.num_record_batches, self._buckets):
            yield self._file.get_batch(number)


def shuffle_rows(
    batches: Iterable[Any], bits: RandomBits, folder: str | os.PathLike[str] | None
) -> Iterator[Any]:
    """Yield the rows of record batches in uniformly random order.

    Args:
        batches: with one schema of plain types.
        bits: random bits.
        folder: where a file without a name has the rows that are more than one chunk; None for that of the
            system. It holds these rows only, no one else can read it, and it goes with the process.
    """
    with ExitStack() as stack:
        buckets = ByteBuckets(bits)
        sizes = np.zeros(BUCKET_COUNT, dtype=np.int64)
        few: list[tuple[Any, Buckets]] = []
        held = SortedRows()
        count = 0
        file: BucketFile | None = None
        for rows in batches:
            few.append((rows, buckets.draw_buckets(rows.num_rows)))
            count += rows.num_rows
            sizes += np.bincount(few[-1][1], minlength=BUCKET_COUNT) * (
                rows.nbytes // max(1, rows.num_rows)
            )
            if count <= MAX_SMALL_ROWS and sizes.sum() < MAX_CHUNK_BYTES:
                continue
            while few:
                held.add_batch(*few.pop(0))
            if held.size >= MAX_CHUNK_BYTES:
                file = file or BucketFile(
                    stack.enter_context(tempfile.TemporaryFile(dir=folder)), rows.schema
                )
                file.add_chunk(held)
                held = SortedRows()
        if few:
            yield _shuffle_few(few, bits)
            return
        reader = None if file is None else file.close()
        for bucket, size in enumerate(sizes.tolist()):
            pieces = [*(reader.read_pieces(bucket) if reader else ()), *held.get_rows(bucket)]
            if size > MAX_BUCKET_BYTES:
                yield from shuffle_rows(pieces, bits, folder)
            elif pieces:
                yield permute_rows(pieces, bits)


def _shuffle_few(held: Sequence[tuple[Any, Buckets]], bits: RandomBits) -> Any:
    """Shuffle rows held in memory."""
    order, ends = _sort_by_bucket(np.concatenate([buckets for _, buckets in held]), BUCKET_COUNT)
    parts = [
        order[begin:end][random_permutation(end - begin, bits)]
        for begin, end in pairwise(ends.tolist())
        if begin < end
    ]
    return gather_rows(join_all([rows for rows, _ in held]), np.concatenate([order[:0], *parts]))


def permute_rows(batches: Sequence[Any], bits: RandomBits) -> Any:
    """Shuffle the rows of record batches to one batch."""
    rows = join_all(batches)
    return gather_rows(rows, random_permutation(rows.num_rows, bits))


def copy_rows(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of record batches in order, without hidden data."""
    for rows in batches:
        yield gather_rows(rows, np.arange(rows.num_rows, dtype=np.int64))


def gather_rows(rows: Any, order: IntArray) -> Any:
    """Copy some rows of a record batch, without hidden data."""
    places = integers_to_arrow(order)
    return pyarrow.RecordBatch.from_arrays(
        [gather_cells(one, places) for one in rows.columns], schema=rows.schema
    )


def join_batches(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Yield concatenated record batches of at least a byte size."""
    return map(join_all, _collect_batches(batches, size, lambda batch: batch.nbytes))


def cut_rows(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Yield the rows in batches of a fixed row count."""
    left: list[Any] = []
    for held in _collect_batches(batches, size, lambda batch: batch.num_rows):
        whole = join_all([*left, *held])
        end = whole.num_rows - whole.num_rows % size
        for begin in range(0, end, size):
            yield whole.slice(begin, size)
        left = [whole.slice(end)] if end < whole.num_rows else []
    yield from left


def _collect_batches(
    batches: Iterable[Any], size: int, measure: Callable[[Any], int]
) -> Iterator[list[Any]]:
    """Yield lists of batches that add up to a size."""
    held: list[Any] = []
    total = 0
    for batch in batches:
        held.append(batch)
        total += measure(batch)
        if total >= size:
            yield held
            held, total = [], 0
    if held:
        yield held


def join_all(batches: Sequence[Any]) -> Any:
    """Concatenate record batches to one."""
    return batches[0] if len(batches) == 1 else pyarrow.concat_batches(batches)


def _sort_by_bucket(buckets: Buckets, count: int) -> tuple[IntArray, IntArray]:
    """Return the row indices stably sorted by bucket, and the bucket ends."""
    ends = np.append(0, np.cumsum(np.bincount(buckets, minlength=count)))
    return np.argsort(buckets, kind="stable"), ends


def choose_spill_folder(path: str | os.PathLike[str]) -> Path | None:
    """Return the folder for temporary row files; None for streams and devices."""
    target = Path(path)
    if is_standard_stream(path) or (target.exists() and not target.is_file()):
        return None
    return target.absolute().parent
