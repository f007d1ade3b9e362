"""Privacy regions: how many entries of a column may be zero at a level."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, check_nonnegative
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import bound_level_rounding, log_quotient


def region_boundaries(prior: PriorLike) -> FloatArray:
    """Compute the (N,) boundaries eps_0 = 0 <= eps_1 <= ... <= eps_{N-1} of the privacy regions, in nats.

    With p sorted in descending order, eps_k = -log(p_1 + ... + p_{N-k}): from eps_k on, a column may
    have k zeros. Sums are taken exactly, and rounded once.

    Source: [grosse2025empirical, Definition 4]; [grosse2024extremal, Lemma 2].

    Examples:
        >>> np.exp(-region_boundaries([0.4, 0.2, 0.2, 0.2])).round(12)
        array([1. , 0.8, 0.6, 0.4])
    """
    # exact integers: a boundary that is off by one unit would move a level to another region
    ascending = sorted(as_prior(prior).weights)
    total = sum(ascending)
    excluded = [0, *accumulate(ascending)][:-1]
    kept = [(total - part) / total for part in excluded]
    return log_quotient(kept, [part / total for part in excluded])


def privacy_region(prior: PriorLike, epsilon: float) -> int:
    """Return the index k in 1..N of epsilon's privacy region: at most k - 1 zeros per column.

    Region k is [eps_{k-1}, eps_k); the last one, k = N, has no upper end. A level that is a boundary but for
    rounding, such as `math.log(4 / 3)` of four letters alike, is on it and so in the upper region.

    Source: [grosse2025empirical, Definition 4].

    Examples:
        >>> prior = [0.4, 0.2, 0.2, 0.2]
        >>> [privacy_region(prior, np.log(r)) for r in (1.0, 1.2, 1.3, 1.7, 3.0)]
        [1, 1, 2, 3, 4]
        >>> privacy_region([0.25] * 4, np.log(4 / 3))  # where `k_singular(4, 3)` has a zero in each column
        2
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    return int(
        np.searchsorted(region_boundaries(prior), level + bound_level_rounding(level), side="right")
    )
