"""Rows in a random order: every order equally likely, the same by a seed in memory and on disk, rows
whole.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

from pmlopt.data.sampling.categorical import RandomBits, SystemBits, Words, make_random_bits
from pmlopt.tables import row_order
from pmlopt.tables.row_order import cut_rows, random_permutation, shuffle_list, shuffle_rows


def batches(rows: int, length: int) -> list[Any]:
    whole = pyarrow.RecordBatch.from_pydict(
        {"a": np.arange(rows), "b": [f"row {k}" for k in range(rows)]}
    )
    return [whole.slice(first, length) for first in range(0, rows, length)]


def order_of(rows: int, length: int, bits: RandomBits) -> list[int]:
    made = [
        row
        for batch in shuffle_rows(batches(rows, length), bits, None)
        for row in batch.to_pylist()
    ]
    assert all(row["b"] == f"row {row['a']}" for row in made)
    return [row["a"] for row in made]


def test_a_seed_gives_one_order_in_memory_and_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = order_of(5000, 5000, make_random_bits(3))
    assert sorted(expected) == list(range(5000))
    assert expected != order_of(5000, 5000, make_random_bits(4))
    for name, size in (
        ("MAX_SMALL_ROWS", 100),
        ("SORT_BLOCK_ROWS", 64),
        ("MAX_CHUNK_BYTES", 10_000),
    ):
        monkeypatch.setattr(row_order, name, size)
        for length in (17, 999):
            assert order_of(5000, length, make_random_bits(3)) == expected
    monkeypatch.setattr(row_order, "MAX_BUCKET_BYTES", 100)  # buckets are divided once more
    assert sorted(order_of(5000, 999, make_random_bits(3))) == list(range(5000))


@pytest.mark.parametrize(("chunk", "times"), [(30, 20), (2**26, 200)])
def test_every_order_is_equally_likely(
    monkeypatch: pytest.MonkeyPatch, chunk: int, times: int
) -> None:
    monkeypatch.setattr(row_order, "MAX_CHUNK_BYTES", chunk)  # on disk, and in memory
    counts = Counter(tuple(order_of(3, 1, SystemBits())) for _ in range(6 * times))
    statistic = sum((counts[order] - times) ** 2 / times for order in counts) + times * (
        6 - len(counts)
    )
    assert statistic < 48.5  # of 5 degrees of freedom: exceeded once in 3e8 times


def test_equal_keys_are_drawn_anew() -> None:
    class Repeating(RandomBits):
        calls = 0

        def draw_words(self, size: int) -> Words:
            self.calls += 1
            same = np.full(size, 2**63, dtype=np.uint64)
            return same if self.calls == 1 else SystemBits().draw_words(size)

    for large in (False, True):
        bits = Repeating()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_order, "MAX_PACKED_ROWS", 1 if large else 2**20)
            assert sorted(random_permutation(9, bits).tolist()) == list(range(9))
        assert bits.calls > 1


def test_groups_have_one_length_whatever_the_batches() -> None:
    for length in (1, 7, 100):
        made = list(cut_rows(batches(100, length), 30))
        assert [one.num_rows for one in made] == [30, 30, 30, 10]
        assert [row["a"] for one in made for row in one.to_pylist()] == list(range(100))
    assert sorted(shuffle_list(["x", "y"], SystemBits())) == ["x", "y"]


def test_rows_on_the_disk_have_no_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(row_order, "MAX_CHUNK_BYTES", 1000)
    ordered = shuffle_rows(batches(1000, 100), SystemBits(), tmp_path)
    next(ordered)
    assert list(tmp_path.iterdir()) == []
    assert sum(one.num_rows for one in ordered) < 1000
