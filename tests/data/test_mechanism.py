"""The mechanism: what it accepts, what it does to values, and its match with a prior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, mechanisms, pairs

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism, as_mechanism, paired
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError
from pmlopt.measures import (
    ldp_level,
    leakage_level,
    maximal_leakage,
    mutual_information,
    pointwise_leakage,
)


class Highest(np.random.Generator):
    """Draws the largest number, always."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def integers(self, *args: Any, size: Any = None, **options: Any) -> Any:
        return np.full(size, 2**64 - 1, dtype=np.uint64)


class Lowest(Highest):
    """Draws zero, always."""

    def integers(self, *args: Any, size: Any = None, **options: Any) -> Any:
        return np.zeros(size, dtype=np.uint64)


def refused(*parts: str) -> Any:
    """A MechanismError whose message holds every part."""
    pattern = "(?s)" + "".join(f"(?=.*{part})" for part in parts)
    return pytest.raises(MechanismError, match=pattern)


NAMED = {"inputs": ["a", "b"], "outputs": ["yes", "no"]}
REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"matrix": [0.5, 0.5]}, ["2 dimension", r"\(2,\)"]),
    ({"matrix": [[]]}, ["at least one", r"\(1, 0\)"]),
    ({"matrix": [[[1.0]]]}, ["2 dimension", r"\(1, 1, 1\)"]),
    ({"matrix": [[0.5, 0.5], [1.0]]}, ["regular"]),
    ({"matrix": [[1.5, -0.5]]}, ["output 1 given 0", r"-0\.5", "negative"]),
    ({"matrix": [[0.5, 0.5], [math.nan, 1]]}, ["nan", "row 1, column 0", "finite"]),
    ({"matrix": [[math.inf, 0.5]]}, ["inf", "row 0, column 0", "finite"]),
    ({"matrix": [[0.5, 0.5], [0.5, 0.4]]}, ["row of 1", r"0\.9", "divide"]),
    ({"matrix": [[0.5, 0.5 + 1e-8]]}, ["row of 0", r"1\.00000001", "divide"]),
    ({"matrix": [["a", "b"]]}, ["numbers"]),
    ({"matrix": np.eye(2), "inputs": ["a", "a"]}, ["inputs", "'a'", "distinct"]),
    ({"matrix": np.eye(2), "inputs": ["a"]}, ["inputs", "1 labels for 2", "one label for each"]),
    ({"matrix": np.eye(2), "inputs": "ab"}, ["inputs", "'ab'", "sequence of labels"]),
    ({"matrix": np.eye(2), "outputs": ["a", "a"]}, ["outputs", "'a'", "distinct"]),
    ({"matrix": np.eye(2), "outputs": ["a"]}, ["outputs", "1 labels for 2", "one label for each"]),
    ({"matrix": np.eye(2), "outputs": "ab"}, ["outputs", "'ab'", "sequence of labels"]),
    ({"matrix": [[0.5, 0.5], [2.0, -1.0]], **NAMED}, ["'no' given 'b'", "-1"]),
    ({"matrix": [[0.5, 0.5], [0.2, 0.2]], **NAMED}, ["row of 'b'"]),
]


@pytest.mark.parametrize(("fields", "parts"), REFUSED)
def test_what_is_no_mechanism_is_named_with_a_remedy(fields: dict[str, Any], parts: list[str]) -> None:
    with refused(*parts):
        Mechanism(**fields)


def test_a_mechanism_shares_nothing_with_its_input_and_cannot_be_changed() -> None:
    matrix = np.eye(2)
    mechanism = Mechanism(matrix)
    matrix[0, 0] = 0.5
    assert mechanism.matrix[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        mechanism.matrix[0, 0] = 0.5


def test_as_mechanism_passes_a_mechanism_and_makes_one_of_an_array() -> None:
    mechanism = Mechanism(np.eye(2), ["a", "b"])
    assert as_mechanism(mechanism) is mechanism
    assert as_mechanism(np.eye(2)).inputs == (0, 1)


def test_post_process_is_the_matrix_product_with_the_outer_labels() -> None:
    first = Mechanism([[0.5, 0.5], [0.25, 0.75]], ["a", "b"], ["m", "n"])
    second = Mechanism([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]], ["m", "n"], ["x", "y", "z"])
    both = first.post_process(second)
    assert both.matrix.tolist() == [[0.75, 0.125, 0.125], [0.625, 0.1875, 0.1875]]
    assert (both.inputs, both.outputs) == (("a", "b"), ("x", "y", "z"))


def test_post_process_takes_an_array_by_position() -> None:
    mechanism = Mechanism(np.eye(2), ["a", "b"], ["m", "n"]).post_process([[0.0, 1.0], [1.0, 0.0]])
    assert mechanism.matrix.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_post_process_refuses_a_channel_of_another_size_or_with_other_labels() -> None:
    mechanism = Mechanism(np.eye(2), outputs=["m", "n"])
    with refused("3 inputs for 2 outputs"):
        mechanism.post_process(np.eye(3))
    with refused("another order", "reorder"):
        mechanism.post_process(Mechanism(np.eye(2), inputs=["n", "m"]))
    with refused("differ", "'p'"):
        mechanism.post_process(Mechanism(np.eye(2), inputs=["m", "p"]))


@given(st.data())
@MODEST
def test_post_process_is_the_chain_of_the_two_channels(data: st.DataObject) -> None:
    first = data.draw(mechanisms(3))
    second = data.draw(mechanisms(first.shape[1]))
    product = Mechanism(first).post_process(second).matrix
    for x in range(3):
        for z in range(second.shape[1]):
            expected = math.fsum(first[x, y] * second[y, z] for y in range(first.shape[1]))
            assert product[x, z] == pytest.approx(expected, abs=1e-15)


@given(pairs())
@MODEST
def test_reduced_keeps_every_measure(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    doubled = Mechanism(np.hstack([matrix / 2, matrix / 4, matrix / 4, np.zeros((len(prior), 1))]))
    reduced = doubled.reduced()
    assert reduced.matrix.shape[1] <= np.count_nonzero(matrix.max(axis=0))
    assert reduced.matrix.max(axis=0).min() > 0
    assert leakage_level(prior, reduced) == pytest.approx(leakage_level(prior, doubled), abs=1e-11)
    assert maximal_leakage(reduced) == pytest.approx(maximal_leakage(doubled), abs=1e-11)
    assert mutual_information(prior, reduced) == pytest.approx(mutual_information(prior, doubled), abs=1e-11)


@given(pairs())
@MODEST
def test_reduced_keeps_the_leakage_of_each_kept_output(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    mechanism = Mechanism(matrix)
    reduced = mechanism.reduced()
    before = dict(zip(mechanism.outputs, pointwise_leakage(prior, mechanism), strict=True))
    after = dict(zip(reduced.outputs, pointwise_leakage(prior, reduced), strict=True))
    assert set(after) <= set(before)
    for label, leakage in after.items():
        assert leakage == pytest.approx(before[label], abs=1e-11)


def test_reduced_merges_similar_outputs_under_the_first_label() -> None:
    matrix = [[0.0, 0.2, 0.5, 0.3], [0.0, 0.4, 0.0, 0.6]]
    reduced = Mechanism(matrix, ["a", "b"], ["never", "y", "z", "like y"]).reduced()
    assert reduced.outputs == ("y", "z")
    assert reduced.inputs == ("a", "b")
    assert reduced.matrix == pytest.approx(np.array([[0.5, 0.5], [1.0, 0.0]]), abs=1e-15)


def test_reduced_does_not_hide_a_zero_behind_a_tiny_probability() -> None:
    mechanism = Mechanism([[0.4, 0.4, 0.2], [0.0, 4e-14, 1 - 4e-14]])
    assert ldp_level(mechanism) == math.inf
    assert ldp_level(mechanism.reduced()) == math.inf


def test_sample_refuses_a_value_that_is_no_input() -> None:
    with refused("'c'", r"\('a', 'b'\)"):
        Mechanism(np.eye(2), ["a", "b"]).sample(["a", "c"])


def test_sample_is_repeated_by_the_seed() -> None:
    mechanism = Mechanism(np.full((2, 4), 0.25), ["a", "b"])
    values = ["a", "b"] * 50
    first = mechanism.sample(values, seed=3)
    assert np.array_equal(first, mechanism.sample(values, seed=3))
    assert np.array_equal(first, mechanism.sample(values, seed=np.random.default_rng(3)))
    assert not np.array_equal(first, mechanism.sample(values, seed=4))
    assert not np.array_equal(mechanism.sample(values), mechanism.sample(values))


def test_sample_of_nothing_is_nothing() -> None:
    assert Mechanism(np.eye(2)).sample([], seed=0).shape == (0,)


def test_sample_of_deterministic_rows_follows_them() -> None:
    mechanism = Mechanism(np.eye(3)[[2, 0, 1]], ["a", "b", "c"], ["A", "B", "C"])
    assert mechanism.sample(iter("abcab"), seed=0).tolist() == ["C", "A", "B", "C", "A"]


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [((1, 2), "i"), ((0.5, 2.0), "f"), ((True, False), "b"), (("a", "a\0"), "O"), ((1, 2.5), "O"),
     ((("a", 1), ("b", 2)), "O"), ((2**70, 1), "O"), ((2**63, -1), "O")],
)  # fmt: skip
def test_sample_gives_an_array_of_labels_as_they_are(outputs: tuple[Any, ...], kind: str) -> None:
    drawn = Mechanism(np.eye(2), ["a", "b"], outputs).sample(["a", "b", "a"])
    assert drawn.dtype.kind == kind
    assert drawn.tolist() == [outputs[0], outputs[1], outputs[0]]


def test_sample_takes_columns_of_any_library() -> None:
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    mechanism = Mechanism(np.eye(2), ["a", "b"], [10, 20])
    for column in (
        np.array(["b", "a"]), pandas.Series(["b", "a"], index=[7, 8]), polars.Series(["b", "a"]),
        pyarrow.array(["b", "a"]), pyarrow.chunked_array([["b"], ["a"]]),
    ):  # fmt: skip
        assert mechanism.sample(column).tolist() == [20, 10]
    with refused("None"):
        mechanism.sample(polars.Series(["b", None]))


@given(st.data())
@MODEST
def test_sample_never_gives_an_output_of_probability_zero(data: st.DataObject) -> None:
    matrix = data.draw(mechanisms(3))
    mechanism = Mechanism(matrix)
    for source in (data.draw(st.integers(0, 1000)), Highest(), Lowest()):
        values = [0, 1, 2] * 20
        for x, y in zip(values, mechanism.sample(values, seed=source), strict=True):
            assert matrix[x, int(str(y))] > 0


@pytest.mark.parametrize("count", [3, 6, 7, 10, 11, 49])
def test_sample_when_rounding_leaves_the_row_below_one(count: int) -> None:
    row = np.append(np.full(count, (1 - 5e-10) / count), [0.0, 0.0])
    mechanism = Mechanism([row])
    assert np.cumsum(row)[-1] < np.nextafter(1.0, 0.0)
    assert mechanism.sample([0], seed=Highest()).tolist() == [count - 1]


def test_sample_has_the_frequencies_of_the_rows() -> None:
    # Hoeffding: a frequency of 40,000 draws is off by 0.03 with probability at most 2 exp(-72);
    # over all six cells a false alarm has probability below 1e-29
    matrix = np.array([[0.5, 0.3, 0.2], [0.05, 0.0, 0.95]])
    mechanism = Mechanism(matrix)
    for x in range(2):
        drawn = np.bincount(np.array(mechanism.sample([x] * 40_000, seed=11 + x), dtype=int), minlength=3)
        assert np.abs(drawn / 40_000 - matrix[x]).max() < 0.03


def test_paired_refuses_another_size() -> None:
    with refused("3 letters", "2 inputs"):
        paired([0.5, 0.25, 0.25], np.eye(2))


def test_paired_accepts_sides_without_labels() -> None:
    labelled = Prior([0.5, 0.5], ["a", "b"])
    assert paired(labelled, np.eye(2))[0] is labelled
    mechanism = Mechanism(np.eye(2), ["a", "b"])
    assert paired([0.5, 0.5], mechanism)[1] is mechanism
    assert paired(labelled, mechanism) == (labelled, mechanism)


def test_similar_outputs_are_found_among_many_in_no_time() -> None:
    rng = np.random.default_rng(31)
    shapes = rng.random((5, 300))
    scales, kinds = rng.uniform(0.1, 1, 3000), rng.integers(0, 300, 3000)
    matrix = shapes[:, kinds] * scales
    found = Mechanism(matrix / matrix.sum(axis=1, keepdims=True)).similar_outputs()
    # over the row sums all columns of a kind stay proportional
    assert found == sorted(np.flatnonzero(kinds == kind).tolist() for kind in np.unique(kinds))
    assert [group[0] for group in found] == sorted(group[0] for group in found)
