"""The table of closed forms: how each is built from a problem, and where it may be the optimal mechanism.

Problem files name a form and have it built (`CLOSED_FORMS`); solvers look up the candidates for the
optimum under a requirement (`build_closed_forms`) and prove or discard each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
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
from pmlopt.model.privacy.factors import MAX_EXPONENT
from pmlopt.model.uncertainty import ChoquetSet, PriorSet

FORMULA_RTOL = 1e-12
"""How far, in nats, the rounding of a formula may put a level above its limit."""


@dataclass(frozen=True)
class ClosedFormMechanism:
    """A mechanism known by formula.

    Attributes:
        build: from a prior, a requirement and the (N, M) gains of the problem to the mechanism.
        candidate: whether it may be optimal under the requirement on this prior for utilities of any kind;
            never, for forms that depend on the gains or are another form at some levels.
    """

    build: Callable[[Prior, Requirement, FloatArray], Mechanism]
    candidate: Callable[[Prior, Requirement], bool] = lambda prior, privacy: False

    def __call__(self, prior: Prior, privacy: Requirement, gains: FloatArray) -> Mechanism:
        """Return the mechanism on this prior, at the level of the requirement."""
        return self.build(prior, privacy, gains)


def build_closed_forms(prior: Prior, privacy: Requirement) -> Iterator[tuple[str, Mechanism]]:
    """Return the N x N closed forms that meet the requirement on this prior and may be optimal, by name."""
    no_gains = np.zeros((prior.size, 1))
    for name, form in CLOSED_FORMS.items():
        if form.candidate(prior, privacy):
            yield name, form(prior, privacy, no_gains)


def is_within_limits(prior: Prior, privacy: Requirement, matrix: FloatArray) -> bool:
    """Return whether a form is within the limits up to `FORMULA_RTOL`; what is returned is repaired
    anyway.
    """
    levels = privacy.levels(prior, Mechanism(matrix))
    return all(levels[name] <= limit + FORMULA_RTOL for name, limit in privacy.limits.items())


def _get_epsilon(privacy: Requirement) -> float:
    """Return the largest limit of a requirement, in nats."""
    return max(privacy.limits.values())


def _get_prior_set(prior: Prior, privacy: Requirement) -> PriorSet | None:
    """Return the set of priors over which PML is required; None where there is none, or it is the prior
    only.
    """
    return privacy.priors(prior) if isinstance(privacy, PML) else None


def _is_for_known_prior(prior: Prior, privacy: Requirement) -> bool:
    """Return whether the requirement is PML under the prior itself."""
    return isinstance(privacy, PML) and _get_prior_set(prior, privacy) is None


def _is_over_all_priors(prior: Prior, privacy: Requirement) -> bool:
    """Return whether the requirement is PML over all priors."""
    priors = _get_prior_set(prior, privacy)
    return isinstance(priors, ChoquetSet) and priors.contains_all_priors


def _is_in_first_region(prior: Prior, privacy: Requirement) -> bool:
    """Return whether PML under the prior is required at a level in its first privacy region."""
    limit = -math.log1p(-float(prior.pmf.min())) if prior.size > 1 else -math.inf
    return _is_for_known_prior(prior, privacy) and _get_epsilon(privacy) <= limit


def _is_uniform(prior: Prior, privacy: Requirement) -> bool:
    """Return whether the prior is uniform, and the requirement is PML under it or maximal leakage."""
    bounded = _is_for_known_prior(prior, privacy) or isinstance(privacy, MaximalLeakage)
    return bounded and prior.size > 1 and float(np.ptp(prior.pmf)) == 0


def _get_interval(prior: Prior, privacy: Requirement) -> tuple[float, float] | None:
    """Return the least and largest probability of the first of two letters over the set; None where it has
    none.
    """
    priors = _get_prior_set(prior, privacy)
    if priors is None or prior.size != 2:
        return None
    lowest, rest = priors.min_mean(np.eye(2)).tolist()
    highest = max(lowest, 1 - rest)
    possible = lowest < 1 and highest > 0  # else one letter is impossible but for rounding
    return (lowest, highest) if possible else None


def _build_robust_binary(prior: Prior, privacy: Requirement, gains: FloatArray) -> Mechanism:  # noqa: ARG001
    """Build the optimal mechanism on two letters over a set of priors."""
    interval = _get_interval(prior, privacy)
    if interval is None:
        raise InstanceError(
            "the closed form robust_binary is for 2 letters and PML over a set of priors, not for "
            f"{prior.size} letters under {privacy!r}"
        )
    return robust_binary(*interval, _get_epsilon(privacy))


def _get_common_min_mass(prior: Prior, privacy: Requirement) -> float | None:
    """Return the least probability of a letter over the set, where it is that of each; else None."""
    priors = _get_prior_set(prior, privacy)
    if priors is None or prior.size < 3 or _is_over_all_priors(prior, privacy):
        return None
    least = priors.min_mean(np.eye(prior.size))
    same = float(np.ptp(least)) <= FORMULA_RTOL * float(least.max())
    return min(max(float(least.min()), 0.0), 1 / prior.size) if same else None


def _build_robust_randomized_response(
    prior: Prior, privacy: Requirement, _: FloatArray
) -> Mechanism:
    """Build robust randomized response for a set in which all letters have one least probability."""
    lowest = _get_common_min_mass(prior, privacy)
    if lowest is None:
        raise InstanceError(
            "the closed form robust_randomized_response is for 3 letters or more and PML over a set of "
            "priors in which all letters have one least probability, not for "
            f"{prior.size} letters under {privacy!r}"
        )
    return robust_randomized_response(prior.size, lowest, _get_epsilon(privacy))


def _line_step(prior: Prior, privacy: Requirement) -> float:
    """Return the distance of neighbours where the metric is that of equal steps on a line; else 0."""
    if not isinstance(privacy, MetricPrivacy) or prior.size < 2:
        return 0.0
    ways, places = privacy.for_prior(prior).shortest_paths, np.arange(prior.size)
    step = float(ways[0, 1])
    if not max(1.0, privacy.epsilon) * step * prior.size < math.inf:
        return 0.0
    line = step * np.abs(places[:, None] - places)
    return step if np.allclose(ways, line, rtol=1e-12, atol=0.0) else 0.0


def _max_ldp_level(prior: Prior, privacy: Requirement) -> float:
    """Compute the largest LDP level that guarantees the requirement [song2026worstcase, Proposition 1], in
    nats.
    """
    level = _get_epsilon(privacy)
    if isinstance(privacy, PML) and not _is_over_all_priors(prior, privacy):
        level = ldp_for_pml(prior, level)
    return min(level, MAX_EXPONENT)


CLOSED_FORMS: Mapping[str, ClosedFormMechanism] = {
    "binary": ClosedFormMechanism(
        lambda prior, privacy, gains: binary(prior, _get_epsilon(privacy)),
        lambda prior, privacy: prior.size == 2 and _is_for_known_prior(prior, privacy),
    ),
    "high_privacy": ClosedFormMechanism(
        lambda prior, privacy, gains: high_privacy(prior, _get_epsilon(privacy)),
        _is_in_first_region,
    ),
    "robust_binary": ClosedFormMechanism(
        _build_robust_binary, lambda prior, privacy: _get_interval(prior, privacy) is not None
    ),
    "robust_randomized_response": ClosedFormMechanism(
        _build_robust_randomized_response,
        lambda prior, privacy: (
            float(np.ptp(prior.pmf)) == 0 and _get_common_min_mass(prior, privacy) is not None
        ),
    ),
    "uniform": ClosedFormMechanism(
        lambda prior, privacy, gains: uniform(prior.size, _get_epsilon(privacy)), _is_uniform
    ),
    "k_singular": ClosedFormMechanism(
        lambda prior, privacy, gains: k_singular(
            prior.size, round(prior.size * math.exp(-_get_epsilon(privacy)))
        )
    ),
    "randomized_response": ClosedFormMechanism(
        lambda prior, privacy, gains: randomized_response(
            prior.size, _max_ldp_level(prior, privacy)
        ),
        lambda prior, privacy: isinstance(privacy, LDP) or _is_over_all_priors(prior, privacy),
    ),
    "geometric": ClosedFormMechanism(
        lambda prior, privacy, gains: geometric(
            prior.size, _get_epsilon(privacy) * _line_step(prior, privacy)
        ),
        lambda prior, privacy: _line_step(prior, privacy) > 0,
    ),
    "exponential": ClosedFormMechanism(
        lambda prior, privacy, gains: exponential(gains, _max_ldp_level(prior, privacy))
    ),
    "constant": ClosedFormMechanism(lambda prior, privacy, gains: constant(prior, gains)),
    "deterministic": ClosedFormMechanism(lambda prior, privacy, gains: deterministic(prior, gains)),
}
"""The closed forms by the name that a problem file gives them; solvers try candidates in this order."""
