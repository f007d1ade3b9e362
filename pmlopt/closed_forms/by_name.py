"""Closed forms by name, for problem files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pmlopt import closed_forms
from pmlopt.arrays import FloatArray
from pmlopt.closed_forms.by_requirement import forms
from pmlopt.errors import InstanceError
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy import PML, Requirement


def _epsilon(privacy: Requirement) -> float:
    return max(privacy.limits.values())


def _ldp_level(prior: Prior, privacy: Requirement) -> float:
    """The LDP level that a mechanism may have: under PML through WCU, Proposition 1."""
    level = _epsilon(privacy)
    if isinstance(privacy, PML):
        level = closed_forms.ldp_for_pml(prior, level)
    return min(level, 700.0)


def _robust_binary(prior: Prior, privacy: Requirement, gains: FloatArray) -> Mechanism:  # noqa: ARG001
    found = dict(forms(prior, privacy)).get("robust_binary")
    if found is None:
        raise InstanceError(
            "the closed form robust_binary is for 2 letters and PML over a set of priors, not for "
            f"{prior.size} letters under {privacy!r}"
        )
    return found


CLOSED_FORMS: Mapping[str, Callable[[Prior, Requirement, FloatArray], Mechanism]] = {
    "binary": lambda prior, privacy, gains: closed_forms.binary(prior, _epsilon(privacy)),
    "high_privacy": lambda prior, privacy, gains: closed_forms.high_privacy(prior, _epsilon(privacy)),
    "robust_binary": _robust_binary,
    "uniform": lambda prior, privacy, gains: closed_forms.uniform(prior.size, _epsilon(privacy)),
    "k_singular": lambda prior, privacy, gains: closed_forms.k_singular(
        prior.size, round(prior.size * math.exp(-_epsilon(privacy)))
    ),
    "randomized_response": lambda prior, privacy, gains: closed_forms.randomized_response(
        prior.size, _ldp_level(prior, privacy)
    ),
    "exponential": lambda prior, privacy, gains: closed_forms.exponential(gains, _ldp_level(prior, privacy)),
    "constant": lambda prior, privacy, gains: closed_forms.constant(prior, gains),
    "deterministic": lambda prior, privacy, gains: closed_forms.deterministic(prior, gains),
}
"""The closed forms that a problem file may name."""
