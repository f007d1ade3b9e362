"""The mechanism: what it accepts, what it does to values, and its match with a prior."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, mechanisms, pairs

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism, as_mechanism, pair_with_prior
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
    *(({"matrix": np.eye(2), side: labels}, [side, *parts])
      for side in ("inputs", "outputs")
      for labels, *parts in ((["a", "a"], "'a'", "distinct"), ("ab", "'ab'", "sequence of labels"),
                             (["a"], "1 labels for 2", "one label for each"))),
    ({"matrix": [[0.5, 0.5], [2.0, -1.0]], **NAMED}, ["'no' given 'b'", "-1"]),
    ({"matrix": [[0.5, 0.5], [0.2, 0.2]], **NAMED}, ["row of 'b'"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "parts"), REFUSED)
def test_what_is_no_mechanism_is_named_with_a_remedy(
    fields: dict[str, Any], parts: list[str]
) -> None:
    with refused(*parts):
        Mechanism(**fields)


def test_a_mechanism_shares_nothing_with_its_input_and_cannot_be_changed() -> None:
    matrix = np.eye(2)
    mechanism = Mechanism(matrix)
    matrix[0, 0] = 0.5
    assert mechanism.matrix[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        mechanism.matrix[0, 0] = 0.5
    assert as_mechanism(mechanism) is mechanism
    assert as_mechanism(np.eye(2)).inputs == (0, 1)


def test_post_process_is_the_matrix_product_with_the_outer_labels() -> None:
    first = Mechanism([[0.5, 0.5], [0.25, 0.75]], ["a", "b"], ["m", "n"])
    second = Mechanism([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]], ["m", "n"], ["x", "y", "z"])
    both = first.post_process(second)
    assert both.matrix.tolist() == [[0.75, 0.125, 0.125], [0.625, 0.1875, 0.1875]]
    assert (both.inputs, both.outputs) == (("a", "b"), ("x", "y", "z"))
    for other, parts in (
        (np.eye(3), ["3 inputs for 2 outputs"]),
        (Mechanism(np.eye(2), inputs=["n", "m"]), ["another order", "reorder"]),
        (Mechanism(np.eye(2), inputs=["m", "p"]), ["differ", "'p'"]),
    ):
        with refused(*parts):
            first.post_process(other)


@given(pairs())
@MODEST
def test_reduced_keeps_every_measure(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    doubled = Mechanism(np.hstack([matrix / 2, matrix / 4, matrix / 4, np.zeros((len(prior), 1))]))
    reduced = doubled.reduced()
    assert reduced.matrix.shape[1] <= np.count_nonzero(matrix.max(axis=0))
    assert reduced.matrix.max(axis=0).min() > 0
    for measure in (
        maximal_leakage,
        partial(leakage_level, prior),
        partial(mutual_information, prior),
    ):
        assert measure(reduced) == pytest.approx(measure(doubled), abs=1e-11)
    before = dict(zip(doubled.outputs, pointwise_leakage(prior, doubled), strict=True))
    for label, leakage in zip(reduced.outputs, pointwise_leakage(prior, reduced), strict=True):
        assert leakage == pytest.approx(before[label], abs=1e-11)


def test_reduced_merges_similar_outputs_under_the_first_label() -> None:
    matrix = [[0.0, 0.2, 0.5, 0.3], [0.0, 0.4, 0.0, 0.6]]
    reduced = Mechanism(matrix, ["a", "b"], ["never", "y", "z", "like y"]).reduced()
    assert (reduced.inputs, reduced.outputs) == (("a", "b"), ("y", "z"))
    assert reduced.matrix == pytest.approx(np.array([[0.5, 0.5], [1.0, 0.0]]), abs=1e-15)
    tiny = Mechanism([[0.4, 0.4, 0.2], [0.0, 4e-14, 1 - 4e-14]])  # hides no zero
    assert ldp_level(tiny) == ldp_level(tiny.reduced()) == math.inf


def test_sample_follows_the_rows_and_the_seed() -> None:
    sure = Mechanism(np.eye(3)[[2, 0, 1]], ["a", "b", "c"], ["A", "B", "C"])
    assert sure.sample(iter("abcab"), seed=0).tolist() == ["C", "A", "B", "C", "A"]
    assert sure.sample([], seed=0).shape == (0,)
    with refused("'d'", r"\('a', 'b', 'c'\)"):
        sure.sample(["a", "d"])
    mechanism = Mechanism(np.full((2, 4), 0.25), ["a", "b"])
    values = ["a", "b"] * 50
    first = mechanism.sample(values, seed=3)
    assert np.array_equal(first, mechanism.sample(values, seed=np.random.default_rng(3)))
    assert not np.array_equal(first, mechanism.sample(values, seed=4))
    assert not np.array_equal(mechanism.sample(values), mechanism.sample(values))


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
    pandas, polars, pyarrow = (
        pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow")
    )
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


def test_sample_when_rounding_leaves_the_row_below_one() -> None:
    for count in (3, 6, 7, 10, 11, 49):
        row = np.append(np.full(count, (1 - 5e-10) / count), [0.0, 0.0])
        assert np.cumsum(row)[-1] < np.nextafter(1.0, 0.0)
        assert Mechanism([row]).sample([0], seed=Highest()).tolist() == [count - 1]


def test_paired_accepts_sides_without_labels_and_refuses_another_size() -> None:
    labelled, mechanism = Prior([0.5, 0.5], ["a", "b"]), Mechanism(np.eye(2), ["a", "b"])
    assert pair_with_prior(labelled, np.eye(2))[0] is labelled
    assert pair_with_prior([0.5, 0.5], mechanism)[1] is mechanism
    assert pair_with_prior(labelled, mechanism) == (labelled, mechanism)
    with refused("3 letters", "2 inputs"):
        pair_with_prior([0.5, 0.25, 0.25], np.eye(2))


def test_similar_outputs_are_found_among_many_in_no_time() -> None:
    rng = np.random.default_rng(31)
    shapes = rng.random((5, 300))
    scales, kinds = rng.uniform(0.1, 1, 3000), rng.integers(0, 300, 3000)
    matrix = shapes[:, kinds] * scales
    found = Mechanism(matrix / matrix.sum(axis=1, keepdims=True)).similar_outputs()
    # over the row sums all columns of a kind stay proportional
    assert found == sorted(np.flatnonzero(kinds == kind).tolist() for kind in np.unique(kinds))
    assert [group[0] for group in found] == sorted(group[0] for group in found)
