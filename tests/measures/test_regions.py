"""Privacy regions against [grosse2025empirical, Definition 4]."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from strategies import MODEST, epsilons, exact_law, log_of, pairs, priors

from pmlopt import Prior
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level, privacy_region, region_boundaries
from pmlopt.model.closed_forms import k_singular


def defined_boundaries(prior: FloatArray) -> list[float]:
    """eps_k = -log of the sum of the N - k largest probabilities."""
    descending = sorted(exact_law(prior), reverse=True)
    return [
        -log_of(sum(descending[: len(descending) - k], Fraction(0))) for k in range(len(descending))
    ]


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
def test_a_mechanism_has_fewer_zeros_a_column_than_its_region(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    prior, matrix = pair
    region = privacy_region(prior, leakage_level(prior, matrix) + 1e-12)
    occurring = matrix[:, matrix.max(axis=0) > 0]
    assert (occurring == 0).sum(axis=0).max() <= region - 1


@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_a_closed_border_belongs_to_the_upper_region(n: int) -> None:
    """At log(n / k) k letters alike have all of the mass that a column needs: n - k zeros are allowed."""
    for k in range(1, n + 1):
        border = math.log(n / k)
        assert privacy_region(Prior.uniform(n), border) == n - k + 1
        assert privacy_region(np.full(n, 1 / n), border) == n - k + 1
        if 1 < k < n:
            assert privacy_region(Prior.uniform(n), border * (1 - 1e-8)) == n - k
        singular = k_singular(n, k)
        assert (singular.matrix == 0).sum(axis=0).tolist() == [n - k] * n


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6), st.integers(0, 5))
@MODEST
def test_borders_of_counts_are_decided_as_in_fractions(counts: list[int], place: int) -> None:
    k = place % len(counts)
    kept = sorted(counts, reverse=True)[: len(counts) - k]
    sums = [sum(sorted(counts, reverse=True)[: len(counts) - j]) for j in range(len(counts))]
    expected = max(j for j, total in enumerate(sums) if total >= sum(kept)) + 1
    assert privacy_region(Prior.from_counts(counts), math.log(sum(counts) / sum(kept))) == expected


def test_a_rare_letter_has_its_own_border_and_a_region_needs_a_level() -> None:
    for least in (1e-9, 1e-12, 1e-16, 1e-300):
        prior = [least, 1 - least]
        assert region_boundaries(prior)[1] == pytest.approx(-math.log1p(-least), rel=1e-12)
        assert [privacy_region(prior, share * least) for share in (0.0, 0.999, 1.001)] == [1, 1, 2]
    refused(
        PrivacyError,
        privacy_region,
        "epsilon",
        *(([0.5, 0.5], bad) for bad in (-0.1, math.nan, math.inf)),
    )
