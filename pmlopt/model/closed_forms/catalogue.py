"""The table of closed forms: how each is built, and for which problems it may be optimal.

Problem files name a form and have it built (`CLOSED_FORMS`); solvers look up the candidates for the
optimum under a requirement (`build_closed_forms`) and prove or discard each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from pmlopt.core.numbers.arrays import MAX_EXPONENT, FloatArray
from pmlopt.data.mechanism import Mechanism, wrap_checked_matrix
from pmlopt.data.prior import Prior
from pmlopt.errors import InstanceError
from pmlopt.model.closed_forms.extremal import (
    binary,
    constant,
    deterministic,
    high_privacy,
    k_singular,
    robust_binary,
    robust_randomized_response,
    uniform,
)
from pmlopt.model.closed_forms.local_privacy import (
    exponential,
    geometric,
    ldp_for_pml,
    randomized_response,
)
from pmlopt.model.privacy import LDP, PML, MaximalLeakage, MetricPrivacy, Requirement
from pmlopt.model.uncertainty import PriorSet

FORMULA_RTOL = 1e-12
"""How far, in nats, the rounding of a formula may put a level above its limit."""


FormBuilder: TypeAlias = Callable[[Prior, Requirement, FloatArray], Mechanism]
"""Builds a form from a prior, a requirement and the (N, M) gains of the problem."""


def build_closed_forms(prior: Prior, privacy: Requirement) -> Iterator[tuple[str, Mechanism]]:
    """Build the N x N closed-form mechanisms that meet the requirement, by name."""
    names = list_candidates(prior, privacy)
    no_gains = np.zeros((prior.size, 1))
    for name in names:
        yield name, CLOSED_FORMS[name](prior, privacy, no_gains)


def list_candidates(prior: Prior, privacy: Requirement) -> list[str]:
    """List the closed forms that may be optimal under a requirement.

    Forms that depend on the gains, or are another form at some levels, are never among them.
    """
    if isinstance(privacy, PML):
        priors = privacy.priors(prior)
        if priors is None:
            return _list_for_known_prior(prior, privacy)
        return _list_for_prior_set(prior, priors)
    if isinstance(privacy, LDP):
        return ["randomized_response"]
    if isinstance(privacy, MaximalLeakage):
        return ["uniform"] if prior.size > 1 and float(np.ptp(prior.pmf)) == 0 else []
    return ["geometric"] if _line_step(prior, privacy) > 0 else []


def _list_for_known_prior(prior: Prior, privacy: PML) -> list[str]:
    """List the closed forms that may be optimal for PML under a known prior."""
    found = ["binary"] if prior.size == 2 else []
    least = float(prior.pmf.min())
    if prior.size > 1 and privacy.epsilon <= -math.log1p(-least):  # the first privacy region
        found.append("high_privacy")
    if prior.size > 1 and least == float(prior.pmf.max()):
        found.append("uniform")
    return found


def _list_for_prior_set(prior: Prior, priors: PriorSet) -> list[str]:
    """List the closed forms that may be optimal for PML over a set of priors."""
    found = [] if _get_interval(prior, priors) is None else ["robust_binary"]
    even = float(np.ptp(prior.pmf)) == 0
    if even and _get_common_min_mass(prior, priors) is not None:
        found.append("robust_randomized_response")
    return [*found, "randomized_response"] if _contains_all_priors(priors) else found


def is_within_limits(prior: Prior, privacy: Requirement, matrix: FloatArray) -> bool:
    """Return whether a closed form meets the limits up to `FORMULA_RTOL`."""
    levels = privacy.levels(prior, wrap_checked_matrix(matrix, prior.labels))
    return all(levels[name] <= limit + FORMULA_RTOL for name, limit in privacy.limits.items())


def _get_epsilon(privacy: Requirement) -> float:
    """Return the requirement's largest limit, in nats."""
    return max(privacy.limits.values())


def _contains_all_priors(priors: PriorSet | None) -> bool:
    """Return whether a set contains all priors."""
    return priors is not None and priors.contains_all_priors


def _get_interval(prior: Prior, priors: PriorSet | None) -> tuple[float, float] | None:
    """Return the range of the first of two letters' probability over a set; None otherwise."""
    if priors is None or prior.size != 2:
        return None
    lowest, rest = priors.min_mean(np.eye(2)).tolist()
    highest = max(lowest, 1 - rest)
    possible = lowest < 1 and highest > 0  # else one letter is impossible but for rounding
    return (lowest, highest) if possible else None


def _build_robust_binary(prior: Prior, privacy: Requirement, gains: FloatArray) -> Mechanism:  # noqa: ARG001
    """Build the optimal mechanism on two letters over a set of priors."""
    interval = _get_interval(prior, privacy.priors(prior))
    if interval is None:
        raise InstanceError(
            "the closed form robust_binary is for 2 letters and PML over a set of priors, not for "
            f"{prior.size} letters under {privacy!r}"
        )
    return robust_binary(*interval, _get_epsilon(privacy))


def _get_common_min_mass(prior: Prior, priors: PriorSet | None) -> float | None:
    """Return the common minimum probability of all letters over a set; None otherwise."""
    if priors is None or prior.size < 3 or _contains_all_priors(priors):
        return None
    least = priors.min_mean(np.eye(prior.size))
    same = float(np.ptp(least)) <= FORMULA_RTOL * float(least.max())
    return min(max(float(least.min()), 0.0), 1 / prior.size) if same else None


def _build_robust_randomized_response(
    prior: Prior, privacy: Requirement, _: FloatArray
) -> Mechanism:
    """Build robust randomized response for a set with one minimum probability for all letters."""
    lowest = _get_common_min_mass(prior, privacy.priors(prior))
    if lowest is None:
        raise InstanceError(
            "the closed form robust_randomized_response is for 3 letters or more and PML over a set of "
            "priors in which all letters have one least probability, not for "
            f"{prior.size} letters under {privacy!r}"
        )
    return robust_randomized_response(prior.size, lowest, _get_epsilon(privacy))


def _line_step(prior: Prior, privacy: Requirement) -> float:
    """Return the neighbour distance of an equally spaced line metric; 0 for other metrics."""
    if not isinstance(privacy, MetricPrivacy) or prior.size < 2:
        return 0.0
    ways = privacy.for_prior(prior).shortest_paths
    places = np.arange(prior.size)
    step = float(ways[0, 1])
    if not max(1.0, privacy.epsilon) * step * prior.size < math.inf:
        return 0.0
    line = step * np.abs(places[:, None] - places)
    return step if (np.abs(ways - line) <= 1e-12 * line).all() else 0.0


def _max_ldp_level(prior: Prior, privacy: Requirement) -> float:
    """Compute the largest LDP level sufficient for the requirement [song2026worstcase, Proposition 1]."""
    level = _get_epsilon(privacy)
    if isinstance(privacy, PML) and not _contains_all_priors(privacy.priors(prior)):
        level = ldp_for_pml(prior, level)
    return min(level, MAX_EXPONENT)


CLOSED_FORMS: Mapping[str, FormBuilder] = {
    "binary": lambda prior, privacy, gains: binary(prior, _get_epsilon(privacy)),
    "high_privacy": lambda prior, privacy, gains: high_privacy(prior, _get_epsilon(privacy)),
    "robust_binary": _build_robust_binary,
    "robust_randomized_response": _build_robust_randomized_response,
    "uniform": lambda prior, privacy, gains: uniform(prior.size, _get_epsilon(privacy)),
    "k_singular": lambda prior, privacy, gains: k_singular(
        prior.size, round(prior.size * math.exp(-_get_epsilon(privacy)))
    ),
    "randomized_response": lambda prior, privacy, gains: randomized_response(
        prior.size, _max_ldp_level(prior, privacy)
    ),
    "geometric": lambda prior, privacy, gains: geometric(
        prior.size, _get_epsilon(privacy) * _line_step(prior, privacy)
    ),
    "exponential": lambda prior, privacy, gains: exponential(gains, _max_ldp_level(prior, privacy)),
    "constant": lambda prior, privacy, gains: constant(prior, gains),
    "deterministic": lambda prior, privacy, gains: deterministic(prior, gains),
}
"""The closed forms by the name that a problem file gives them; solvers try candidates in this order."""
