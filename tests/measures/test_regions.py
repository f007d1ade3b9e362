"""Privacy regions against EMP, Definition 4."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from strategies import MODEST, epsilons, exact_law, log_of, pairs, priors

from pmlopt.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level, privacy_region, region_boundaries
from pmlopt.mechanism import Mechanism


def defined_boundaries(prior: FloatArray) -> list[float]:
    """eps_k = -log of the sum of the N - k largest probabilities."""
    descending = sorted(exact_law(prior), reverse=True)
    return [-log_of(sum(descending[: len(descending) - k], Fraction(0))) for k in range(len(descending))]


def barely_private(prior: FloatArray, k: int) -> Mechanism:
    """A rare output that excludes the k least likely letters and tells nothing else."""
    order = np.argsort(-prior, kind="stable")
    rare = np.zeros(len(prior))
    rare[order[: len(prior) - k]] = prior[order[len(prior) - k :]].sum() / 2
    return Mechanism(np.column_stack([rare, 1 - rare]))


@given(priors())
@MODEST
def test_boundaries_are_their_definition(prior: FloatArray) -> None:
    boundaries = region_boundaries(prior)
    assert boundaries == pytest.approx(defined_boundaries(prior), rel=1e-12, abs=1e-15)
    assert boundaries[0] == 0.0
    assert (np.diff(boundaries) >= 0).all()


@given(priors(), epsilons())
@MODEST
def test_the_region_is_between_its_boundaries(prior: FloatArray, epsilon: float) -> None:
    k = privacy_region(prior, epsilon)
    upper = [*defined_boundaries(prior), math.inf]
    assert 1 <= k <= len(prior)
    assert upper[k - 1] <= epsilon + 1e-14
    assert epsilon < upper[k] + 1e-14 or k == len(prior)


@given(pairs())
@MODEST
def test_a_mechanism_has_fewer_zeros_a_column_than_its_region(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    region = privacy_region(prior, leakage_level(prior, matrix) + 1e-12)
    occurring = matrix[:, matrix.max(axis=0) > 0]
    assert (occurring == 0).sum(axis=0).max() <= region - 1


@given(priors(2, 5))
@MODEST
def test_boundaries_are_attained(prior: FloatArray) -> None:
    for k in range(1, len(prior)):
        mechanism = barely_private(prior, k)
        assert (mechanism.matrix[:, 0] == 0).sum() == k
        assert leakage_level(prior, mechanism) == pytest.approx(defined_boundaries(prior)[k], rel=1e-6)


def test_regions_of_a_prior_by_hand() -> None:
    prior = [0.2, 0.4, 0.2, 0.2]
    levels = [0.0, math.log(1.24), math.log(1.26), math.log(1.66), math.log(1.67), math.log(2.51), 50.0]
    assert [privacy_region(prior, level) for level in levels] == [1, 1, 2, 2, 3, 4, 4]


def test_one_letter_has_one_region() -> None:
    assert region_boundaries([1.0]).tolist() == [0.0]
    assert privacy_region([1.0], 3.0) == 1


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf])
def test_a_region_needs_a_level(epsilon: float) -> None:
    with pytest.raises(PrivacyError, match="epsilon"):
        privacy_region([0.5, 0.5], epsilon)
