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

from pmlopt.core.arrays import FloatArray
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
    ("probabilities", [0.5 + 0.5j, 0.5 - 0.5j], ["numbers"]),
    ("probabilities", np.array([0.5 + 0.5j, 0.5 - 0.5j]), ["numbers"]),
    ("probabilities", [10**400, 1], ["numbers"]),
    ("labels", ["a", "a"], ["'a'", "distinct"]),
    ("labels", [1, 1.0], ["1", "distinct"]),
    ("labels", ["a"], ["1 labels for 2", "one label for each"]),
    ("labels", ["a", "b", "c"], ["3 labels for 2", "one label for each"]),
    ("labels", "ab", ["'ab'", "sequence of labels"]),
    ("samples", 0, ["0", "leave it out"]),
    ("samples", -3, ["-3", "whole number"]),
    ("samples", 2.5, [r"2\.5", "whole number"]),
    ("samples", math.nan, ["nan", "whole number"]),
    ("samples", math.inf, ["inf", "whole number"]),
    ("samples", True, ["True", "whole number"]),
    ("samples", "10", ["'10'", "whole number"]),
    (
        "counts",
        {"a": 0, "b": 3},
        ["'a'", "not seen", "leave it out", "pseudo-count", "no sample", "no promise"],
    ),
    ("counts", {"a": -1, "b": 3}, ["'a'", "-1", "whole number"]),
    ("counts", [1, 2.5], ["letter 1", r"2\.5", "whole number"]),
    ("counts", ["1", 2], ["letter 0", "'1'", "whole number"]),
    ("counts", [True, 2], ["letter 0", "True", "whole number"]),
    ("counts", [np.True_, 2], ["letter 0", "True", "whole number"]),
    ("counts", [math.nan, 2], ["letter 0", "nan", "whole number"]),
    ("counts", [math.inf, 2], ["letter 0", "inf", "whole number"]),
    ("counts", [None, 2], ["letter 0", "None", "whole number"]),
    ("counts", [], ["no counts", "at least one letter"]),
    ("counts", {}, ["no counts", "at least one letter"]),
    ("counts", 7, ["the counts are 7", "mapping"]),
    ("order", ["a", "z"], ["'z'", "is none of"]),
    ("order", ["a"], ["1 labels for 2"]),
    ("order", ["a", "a"], ["'a'", "distinct"]),
    ("order", "ab", ["'ab'", "sequence"]),
    ("counts", [10**400, 1], ["at least 1e-300"]),
    ("observed", [1, "a"], ["mix kinds", "from_counts"]),
    ("observed", [], ["at least one letter"]),
    ("size", 0, ["size of the alphabet", "0"]),
    ("size", -1, ["size of the alphabet", "-1"]),
    ("size", 1.5, ["size of the alphabet", "1.5"]),
    ("size", "2", ["size of the alphabet", "'2'"]),
    ("size", True, ["size of the alphabet", "True"]),
]


@pytest.mark.parametrize(("kind", "value", "parts"), REFUSED)
def test_what_cannot_be_meant_is_named_with_a_remedy(kind: str, value: Any, parts: list[str]) -> None:
    pattern = "(?s)" + "".join(f"(?=.*{part})" for part in parts)
    with pytest.raises(PriorError, match=pattern):
        MAKERS[kind](value)


def test_a_prior_keeps_what_it_was_given() -> None:
    prior = Prior([0.5, 0.25, 0.25], labels=("a", "b", "c"), samples=8)
    assert prior.probabilities.tolist() == [0.5, 0.25, 0.25]
    assert (prior.size, prior.labels, prior.samples, prior.counts) == (3, ("a", "b", "c"), 8, None)


def test_a_prior_shares_nothing_with_its_input_and_cannot_be_changed() -> None:
    given_values = np.array([0.5, 0.5])
    prior = Prior(given_values)
    given_values[0] = 0.1
    assert prior.probabilities[0] == 0.5
    for array in (prior.probabilities, Prior.uniform(2).probabilities, prior.reordered([1, 0]).probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.2


def test_one_letter_is_a_prior() -> None:
    prior = Prior([1.0])
    assert prior.labels == (0,)
    assert prior.max_leakage == 0


def test_numpy_scalars_become_plain_labels() -> None:
    prior = Prior([0.5, 0.5], labels=np.array(["a", "b"]))
    assert prior.labels == ("a", "b")
    assert [type(label) for label in prior.labels] == [str, str]
    numbers = Prior.from_counts({np.int64(3): 1, np.int64(5): 1})
    assert [type(label) for label in numbers.labels] == [int, int]
    observed = Prior.from_samples(np.array([2, 1, 2]))
    assert [type(label) for label in observed.labels] == [int, int]


def test_a_count_too_large_for_a_float_is_no_crash() -> None:
    large = 10**400
    prior = Prior.from_counts([large, large])
    assert prior.probabilities.tolist() == [0.5, 0.5]


def test_from_counts() -> None:
    counts: list[Any] = [3, np.int64(1), 4.0]
    prior = Prior.from_counts(counts, labels=["x", "y", "z"])
    assert prior.counts == (3, 1, 4)
    assert prior.samples == 8
    assert prior.labels == ("x", "y", "z")
    assert prior.probabilities.tolist() == [0.375, 0.125, 0.5]


def test_from_samples_counts_in_ascending_order() -> None:
    prior = Prior.from_samples(["b", "a", "b", "c"])
    assert prior.labels == ("a", "b", "c")
    assert prior.counts == (1, 2, 1)
    assert prior.samples == 4


@pytest.mark.parametrize("size", [3, np.int64(3), 3.0])
def test_uniform_takes_every_kind_of_whole_number(size: Any) -> None:
    prior = Prior.uniform(size, labels=["a", "b", "c"])
    assert prior.weights == (1, 1, 1)
    assert prior.samples is None


@given(priors())
@MODEST
def test_weights_have_exactly_the_ratios_of_the_floats(probabilities: FloatArray) -> None:
    weights = Prior(probabilities).weights
    exact = [Fraction(float(value)) for value in probabilities]
    assert all(isinstance(weight, int) and weight > 0 for weight in weights)
    assert [Fraction(w, sum(weights)) for w in weights] == [value / sum(exact) for value in exact]


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=6))
@MODEST
def test_weights_of_counts_are_the_counts(counts: list[int]) -> None:
    prior = Prior.from_counts(counts)
    assert [Fraction(w, sum(prior.weights)) for w in prior.weights] == [
        Fraction(count, sum(counts)) for count in counts
    ]


@given(priors())
@MODEST
def test_pmf_sums_to_one_and_max_leakage_is_that_of_the_least_likely(
    probabilities: FloatArray,
) -> None:
    prior = Prior(probabilities)
    assert math.fsum(prior.pmf) == pytest.approx(1, abs=1e-15)
    assert prior.max_leakage == pytest.approx(max(-math.log(v) for v in probabilities), abs=1e-14)


def test_pmf_divides_by_the_sum() -> None:
    prior = Prior([0.5, 0.5 + 8e-10])
    assert prior.pmf.tolist() == pytest.approx([0.5 / (1 + 8e-10), (0.5 + 8e-10) / (1 + 8e-10)], rel=1e-15)


def test_reordered_moves_labels_probabilities_and_counts_together() -> None:
    prior = Prior.from_counts({"a": 3, "b": 1, "c": 4}).reordered(["c", "a", "b"])
    assert prior.labels == ("c", "a", "b")
    assert prior.counts == (4, 3, 1)
    assert prior.probabilities.tolist() == [0.5, 0.375, 0.125]
    assert prior.samples == 8


def test_as_prior_passes_a_prior_and_makes_one_of_an_array() -> None:
    prior = Prior([0.5, 0.5])
    assert as_prior(prior) is prior
    assert as_prior([0.25, 0.75]).probabilities.tolist() == [0.25, 0.75]
