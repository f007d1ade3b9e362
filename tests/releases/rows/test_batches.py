"""Mechanisms on record batches: what is drawn, from which randomness, and what another process gets."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow
import pytest

from pmlopt import Mechanism
from pmlopt.data.sampling.categorical import KeyedBits, make_key
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.rows.batches import BatchRelease, ColumnReleaser, by_history

FLIP = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
COIN = Mechanism([[0.5, 0.5], [0.5, 0.5]], ["no", "yes"], ["no", "yes"])
RESPONSE = Mechanism([[0.75, 0.25], [0.125, 0.875]], ["no", "yes"], ["no", "yes"])
ROWS = 2000


def batch_of(**columns: Any) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict(columns)


def drawn(kernel: BatchRelease, batch: Any, *place: object) -> list[Any]:
    return list(kernel(batch, *place).column(0).to_pylist())


def test_a_batch_keeps_its_order_its_types_and_the_columns_that_stay() -> None:
    batch = batch_of(name=["Ann", None, "Cy"], smokes=["no", "yes", "yes"], age=[3, 5, None])
    kernel = BatchRelease.of({"smokes": FLIP})
    released = kernel(batch)
    assert released.to_pydict() == {
        "name": ["Ann", None, "Cy"],
        "smokes": ["yes", "no", "no"],
        "age": [3, 5, None],
    }
    assert released.schema == kernel.schema(batch.schema) == batch.schema
    assert BatchRelease.of({"smokes": FLIP}, keep=["age"])(batch).schema.names == ["smokes", "age"]


def test_tuples_of_columns_become_tuples_or_one_column() -> None:
    pairs = [(a, b) for a in ("x", "y") for b in (1, 2)]
    same = Mechanism(np.eye(4), pairs, pairs)
    one = Mechanism(np.eye(4), pairs, ["x1", "x2", "y1", "y2"])
    batch = batch_of(a=["x", "y"], b=[2, 1])
    assert BatchRelease.of({("a", "b"): same})(batch).to_pydict() == {"a": ["x", "y"], "b": [2, 1]}
    assert BatchRelease.of({("a", "b"): one})(batch).to_pydict() == {"a+b": ["x2", "y1"]}
    assert BatchRelease.of_arrays(one).array(batch.columns).to_pylist() == ["x2", "y1"]
    with pytest.raises(MechanismError, match="which are no column"):
        BatchRelease.of_arrays(same)


def test_missing_cells_are_letters_are_left_out_or_are_refused() -> None:
    batch = batch_of(smokes=["no", None, "yes"], n=[1, 2, 3])
    with_letter = Mechanism(np.eye(3), ["no", "yes", ""], ["no", "yes", "?"])
    assert drawn(BatchRelease.of({"smokes": with_letter}), batch) == ["no", "?", "yes"]
    kept = BatchRelease.of({"smokes": FLIP}, drop_missing=True)(batch)
    assert kept.to_pydict() == {"smokes": ["yes", "no"], "n": [1, 3]}
    with pytest.raises(MechanismError, match="row 1: the value '' is not an input"):
        BatchRelease.of({"smokes": FLIP})(batch)


@pytest.mark.parametrize(("value", "difference"), [("no ", "spaces"), ("No", "case")])
def test_a_value_that_is_spelt_otherwise_is_named_with_the_input(
    value: str, difference: str
) -> None:
    message = f"'{value}' is not an input.*; '{value}' and 'no' differ by {difference} only"
    with pytest.raises(MechanismError, match=f"row 2: .*{message}: correct the data"):
        BatchRelease.of({"smokes": FLIP})(batch_of(smokes=["no", "yes", value]))
    with pytest.raises(MechanismError, match=message):
        FLIP.sample(["no", value], seed=1)


def test_a_key_draws_the_same_at_one_place_and_apart_at_others() -> None:
    kernel = BatchRelease.of({"smokes": COIN}, key=make_key(seed=1))
    batch = batch_of(smokes=["no"] * ROWS)
    first = drawn(kernel, batch, "file", 1)
    assert drawn(kernel, batch, "file", 1) == first
    two = BatchRelease.of({"a": COIN, "b": COIN}, key=make_key(seed=3))
    columns = two(batch_of(a=["no"] * ROWS, b=["no"] * ROWS), 0).to_pydict()
    others = [
        (first, drawn(kernel, batch, "file", 2)),
        (first, drawn(kernel, batch, "other", 1)),
        (first, drawn(BatchRelease.of({"smokes": COIN}, key=make_key(seed=2)), batch, "file", 1)),
        # other letters at the same place, as when a task that is tried again finds its rows in another order
        (first, drawn(kernel, batch_of(smokes=["no"] * (ROWS - 1) + ["yes"]), "file", 1)),
        (columns["a"], columns["b"]),
    ]
    for (
        pair
    ) in others:  # a fair coin: 5 standard deviations are 112, exceeded once in 1.7 million times
        agree = sum(a == b for a, b in zip(*pair, strict=True))
        assert abs(agree - ROWS / 2) < 5 * np.sqrt(ROWS) / 2
    with pytest.raises(InputError, match="give the place"):
        kernel(batch)
    without, few = BatchRelease.of({"smokes": COIN}), batch_of(smokes=["no"] * 200)
    assert drawn(without, few) != drawn(without, few)  # the same once in 2^200 times


def test_outputs_have_the_law_of_the_row() -> None:
    rows = 50_000
    for key in (None, make_key(seed=4)):
        kernel = BatchRelease.of({"smokes": RESPONSE}, key=key)
        for letter, row in zip(RESPONSE.inputs, RESPONSE.matrix, strict=True):
            found = drawn(kernel, batch_of(smokes=[letter] * rows), letter).count("yes")
            spread = np.sqrt(rows * row[1] * row[0])
            assert abs(found - rows * row[1]) < 6 * spread  # falsely once in 5e8 times


def test_what_goes_to_another_process_is_small_and_draws_the_same() -> None:
    size = 200
    wide = Mechanism(np.full((size, size), 1 / size), list(range(size)), list(range(size)))
    kernel = BatchRelease.of({"x": wide}, key=make_key(seed=5))
    batch = batch_of(x=list(range(size)))
    before = drawn(kernel, batch, 0)
    sent = pickle.dumps(kernel)
    assert len(sent) < wide.matrix.nbytes + 10_000  # not the tables for drawing, which it has made
    assert drawn(pickle.loads(sent), batch, 0) == before


def test_the_bits_of_a_key_are_fair_and_go_on() -> None:
    words = KeyedBits(make_key(seed=6), "place").draw_words(50_000)
    ones = sum(int(word).bit_count() for word in words.tolist())
    assert (
        abs(ones - 32 * 50_000) < 6 * np.sqrt(64 * 50_000) / 2
    )  # of one seed: it holds or it does not
    again = KeyedBits(make_key(seed=6), "place")
    assert not (again.draw_words(100) == again.draw_words(100)).any()


def test_histories_have_their_own_mechanisms_whatever_outputs_they_have() -> None:
    same, turned = Mechanism(np.eye(2), ["no", "yes"], ["no", "yes"]), FLIP
    silent = Mechanism([[1.0], [1.0]], ["no", "yes"], [0])
    both = by_history({("a", 1): same, ("a", 2): turned, ("b", 1): silent})
    assert both.outputs == ("no", "yes", 0)
    batch = batch_of(y=["a", "a", "b"], z=[1, 2, 1], x=["no", "no", "yes"])
    assert drawn(BatchRelease.of({("y", "z", "x"): both}), batch) == ["no", "yes", "0"]
    with pytest.raises(MechanismError, match="give one for each"):
        by_history({})


def test_columns_that_are_not_there_or_released_twice_are_refused() -> None:
    with pytest.raises(InputError, match="no column 'drinks'"):
        BatchRelease.of({"drinks": FLIP})(batch_of(smokes=["no"]))
    two = BatchRelease.of({"a": FLIP, ("a", "b"): Mechanism(np.eye(1), [("no", "no")], ["z"])})
    with pytest.raises(InputError, match="two mechanisms are for one column"):
        ColumnReleaser(two.releases, ["a", "b"], "the table", typed=True)
