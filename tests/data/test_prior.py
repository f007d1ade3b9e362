"""The prior: what it accepts, what it refuses, and its exact weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, priors

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior, as_prior
from pmlopt.errors import PriorError

MAKERS: dict[str, Callable[[Any], Prior]] = {
    "probabilities": Prior,
    "labels": lambda labels: Prior([0.5, 0.5], labels=labels),
    "samples": lambda samples: Prior([0.5, 0.5], samples=samples),
    "counts": Prior.from_counts,
    "observed": Prior.from_samples,
    "size": Prior.uniform,
    "order": Prior([0.5, 0.5], labels=["a", "b"]).reordered,
}

NO_COUNTS: tuple[Any, ...] = ([], {})
REFUSED: list[tuple[str, Any, list[str]]] = [
    ("probabilities", [0.5, 0.5, 0.0], ["letter 2", r"0\.0", "leave out"]),
    ("probabilities", [1.5, -0.5], ["letter 1", r"-0\.5", "leave out"]),
    ("probabilities", [0.5, math.nan], ["nan", "position 1", "finite"]),
    ("probabilities", [math.inf, 0.5], ["inf", "position 0", "finite"]),
    ("probabilities", [0.5, None], ["nan", "position 1", "finite"]),
    ("probabilities", [0.5, 0.6], [r"1\.1", "divide", "from_counts"]),
    ("probabilities", [0.5, 0.5 + 1e-8], [r"1\.00000001", "divide"]),
    ("probabilities", [], ["at least one", r"\(0,\)"]),
    ("probabilities", [[0.5, 0.5]], ["1 dimension", r"\(1, 2\)"]),
    ("probabilities", 0.5, ["1 dimension", r"\(\)"]),
    ("probabilities", ["half", 0.5], ["half", "numbers"]),
    ("probabilities", [[0.5], [0.2, 0.3]], ["regular"]),
    *(("probabilities", none, ["numbers"])
      for none in ([0.5 + 0.5j, 0.5 - 0.5j], np.array([0.5 + 0.5j, 0.5 - 0.5j]), [10**400, 1])),
    ("labels", [1, 1.0], ["1", "distinct"]),
    *((kind, ["a", "a"], ["'a'", "distinct"]) for kind in ("labels", "order")),
    ("labels", ["a"], ["1 labels for 2", "one label for each"]),
    ("labels", ["a", "b", "c"], ["3 labels for 2", "one label for each"]),
    *((kind, "ab", ["'ab'", "sequence of labels"]) for kind in ("labels", "order")),
    ("samples", 0, ["0", "leave it out"]),
    *(("samples", none, [repr(none), "whole number"]) for none in (-3, 2.5, math.nan, math.inf, True, "10")),
    ("counts", {"a": 0, "b": 3},
     ["'a'", "not seen", "leave it out", "pseudo-count", "no sample", "no promise"]),
    ("counts", {"a": -1, "b": 3}, ["'a'", "-1", "whole number"]),
    ("counts", [1, 2.5], ["letter 1", r"2\.5", "whole number"]),
    *(("counts", [none, 2], ["letter 0", str(none), "whole number"])
      for none in ("1", True, np.True_, math.nan, math.inf, None)),
    *(("counts", none, ["no counts", "at least one letter"]) for none in NO_COUNTS),
    ("counts", 7, ["the counts are 7", "mapping"]),
    ("counts", [10**400, 1], ["at least 1e-300"]),
    ("order", ["a", "z"], ["'z'", "is none of"]),
    ("order", ["a"], ["1 labels for 2"]),
    ("observed", [1, "a"], ["mix kinds", "from_counts"]),
    ("observed", [], ["at least one letter"]),
    *(("size", none, ["size of the alphabet", repr(none)]) for none in (0, -1, 1.5, "2", True)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "parts"), REFUSED)
def test_what_cannot_be_meant_is_named_with_a_remedy(
    kind: str, value: Any, parts: list[str]
) -> None:
    pattern = "(?s)" + "".join(f"(?=.*{part})" for part in parts)
    with pytest.raises(PriorError, match=pattern):
        MAKERS[kind](value)


def test_a_prior_keeps_what_it_was_given() -> None:
    prior = Prior([0.5, 0.25, 0.25], labels=("a", "b", "c"), samples=8)
    assert prior.probabilities.tolist() == [0.5, 0.25, 0.25]
    assert (prior.size, prior.labels, prior.samples, prior.counts) == (3, ("a", "b", "c"), 8, None)
    assert (Prior([1.0]).labels, Prior([1.0]).max_leakage) == ((0,), 0)
    assert as_prior(prior) is prior
    assert as_prior([0.25, 0.75]).probabilities.tolist() == [0.25, 0.75]
    near = Prior([0.5, 0.5 + 8e-10])  # the sum is divided by
    assert near.pmf.tolist() == pytest.approx(
        [0.5 / (1 + 8e-10), (0.5 + 8e-10) / (1 + 8e-10)], rel=1e-15
    )


def test_a_prior_shares_nothing_with_its_input_and_cannot_be_changed() -> None:
    given_values = np.array([0.5, 0.5])
    prior = Prior(given_values)
    given_values[0] = 0.1
    assert prior.probabilities[0] == 0.5
    for array in (
        prior.probabilities,
        Prior.uniform(2).probabilities,
        prior.reordered([1, 0]).probabilities,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.2


def test_numpy_scalars_become_plain_labels() -> None:
    prior = Prior([0.5, 0.5], labels=np.array(["a", "b"]))
    assert prior.labels == ("a", "b")
    assert [type(label) for label in prior.labels] == [str, str]
    numbers = Prior.from_counts({np.int64(3): 1, np.int64(5): 1})
    assert [type(label) for label in numbers.labels] == [int, int]
    observed = Prior.from_samples(np.array([2, 1, 2]))
    assert [type(label) for label in observed.labels] == [int, int]


def test_counts_samples_and_even_laws_take_every_kind_of_whole_number() -> None:
    counts: list[Any] = [3, np.int64(1), 4.0]
    prior = Prior.from_counts(counts, labels=["x", "y", "z"])
    assert (prior.counts, prior.samples, prior.labels) == ((3, 1, 4), 8, ("x", "y", "z"))
    assert prior.probabilities.tolist() == [0.375, 0.125, 0.5]
    turned = prior.reordered(["z", "x", "y"])
    assert (turned.labels, turned.counts, turned.samples) == (("z", "x", "y"), (4, 3, 1), 8)
    assert turned.probabilities.tolist() == [0.5, 0.375, 0.125]
    observed = Prior.from_samples(["b", "a", "b", "c"])
    assert (observed.labels, observed.counts, observed.samples) == (("a", "b", "c"), (1, 2, 1), 4)
    assert Prior.from_counts([10**400, 10**400]).probabilities.tolist() == [
        0.5,
        0.5,
    ]  # past every float
    sizes: list[Any] = [3, np.int64(3), 3.0]
    for size in sizes:
        even = Prior.uniform(size, labels=["a", "b", "c"])
        assert (even.weights, even.samples) == ((1, 1, 1), None)


@given(priors(), st.lists(st.integers(1, 10**12), min_size=1, max_size=6))
@MODEST
def test_weights_have_exactly_the_ratios_of_the_floats_or_counts(
    probabilities: FloatArray, counts: list[int]
) -> None:
    prior = Prior(probabilities)
    exact = [Fraction(float(value)) for value in probabilities]
    for weights, law in ((prior.weights, exact), (Prior.from_counts(counts).weights, counts)):
        assert all(isinstance(weight, int) and weight > 0 for weight in weights)
        assert [Fraction(w, sum(weights)) for w in weights] == [Fraction(v) / sum(law) for v in law]
    assert math.fsum(prior.pmf) == pytest.approx(1, abs=1e-15)
    assert prior.max_leakage == pytest.approx(max(-math.log(v) for v in probabilities), abs=1e-14)


KINDS_THAT_MIX: list[list[Any]] = [
    [True, 1, 1, 0],
    [1, True, 0],
    [False, 0, 5],
    [True, 1.0],
    [np.True_, 1],
    [np.bool_(False), np.int64(0)],
    [("a", True), ("a", 1)],
]


@pytest.mark.parametrize("samples", KINDS_THAT_MIX)
def test_truth_values_among_numbers_are_refused(samples: list[Any]) -> None:
    with pytest.raises(PriorError, match="mix kinds, truth values and"):
        Prior.from_samples(samples)
    with pytest.raises(PriorError, match="mix kinds, truth values and"):
        Prior.from_samples([*samples, None], missing="drop")


def test_kinds_that_do_not_mix_are_counted() -> None:
    assert Prior.from_samples([True, False, np.True_]).counts == (1, 2)
    assert Prior.from_samples([1, 1.0, 2]).counts == (2, 1)  # one number, written twice
    assert Prior.from_samples([("a", True), ("a", False), ("a", True)]).counts == (1, 2)
    with pytest.raises(PriorError, match="mix kinds"):
        Prior.from_samples([1, "1"])


def test_masked_entries_are_missing() -> None:
    masked: Any = np.ma.masked_array([1, 2, 2, 9], [False, False, False, True])
    with pytest.raises(PriorError, match="position 3 is missing"):
        Prior.from_samples(masked)
    assert Prior.from_samples(masked, missing="drop").labels == (1, 2)
    texts = np.ma.masked_array(["a", "b"], [False, True])
    assert Prior.from_samples(texts, missing="letter").labels == ("a", "")
    one: Any = np.ma.masked
    assert Prior.from_samples([1, one, 2], missing="drop").counts == (1, 1)
    lists: list[Any] = [np.ma.masked_array([5, 7, 100], [False, False, True]), [5, 7, np.ma.masked]]
    for numbers in lists:
        with pytest.raises(PriorError, match="position 2 is masked"):
            Prior.from_counts(numbers)
    with pytest.raises(PriorError, match="position 1 is masked"):
        Prior(np.ma.masked_array([0.5, 0.5], [False, True]))
    assert Prior(np.ma.masked_array([0.5, 0.5])).size == 2  # nothing is masked


def test_observations_that_are_given_as_counts_are_noticed() -> None:
    codes = [3, 2, 2, 1, 4, 3]
    with pytest.raises(PriorError, match=r"or Prior\.from_samples"):
        Prior(codes)
    with pytest.raises(PriorError, match=r"take Prior\.from_samples"):
        Prior.from_counts(codes)
    assert Prior.from_samples(codes).counts == (1, 2, 2, 1)
    assert Prior.from_counts(codes, range(6)).counts == tuple(codes)
    for counts in ([50, 50], [1, 1, 1, 1, 1, 1], [2, 4, 8, 4, 2], [40, 40, 30, 20, 10, 10]):
        assert Prior.from_counts(counts).counts == tuple(counts)


def test_probabilities_given_as_counts_are_named() -> None:
    with pytest.raises(PriorError, match=r"0\.1: give probabilities to Prior itself"):
        Prior.from_counts({"a": 0.1, "b": 0.9})
    with pytest.raises(PriorError, match=r"not 1\.5$"):
        Prior.from_counts({"a": 1.5, "b": 2})
