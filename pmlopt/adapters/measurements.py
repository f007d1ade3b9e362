"""Mechanisms as OpenDP measurements.

Where the mechanism is locally differentially private, proved in integers, it is a measurement under the
max-divergence, which is pure differential privacy. Otherwise its PML level under a prior is a divergence of
its own, which OpenDP composes with nothing.
"""

from __future__ import annotations

import math
from typing import Any

from pmlopt.core.lazy_imports import require_extra
from pmlopt.data.mechanism import MechanismLike, as_mechanism, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import MechanismError
from pmlopt.measures import ldp_level, leakage_level
from pmlopt.model.privacy import LDP, PML, Requirement
from pmlopt.programs.exact.rounding import has_exact_rows, is_met_exactly

with require_extra("measurements need OpenDP", "opendp"):
    import opendp.prelude as dp


def ldp_measurement(mechanism: MechanismLike) -> Any:
    """Build an OpenDP measurement with the mechanism's LDP level.

    The caller enables the features "contrib" and "honest-but-curious" of OpenDP: the function is Python.

    Args:
        mechanism: with rows that sum to exactly one on multiples of 2^-53, as those of a `Result` do.

    Raises:
        MechanismError: it is not locally differentially private, or its rows are not exact.

    Examples:
        >>> import opendp.prelude as dp
        >>> dp.enable_features("contrib", "honest-but-curious")
        >>> measurement = ldp_measurement([[0.75, 0.25], [0.25, 0.75]])
        >>> round(measurement.map(1), 6), measurement(0) in (0, 1)
        (1.098612, True)
    """
    known = as_mechanism(mechanism)
    level = ldp_level(known)
    if math.isinf(level):
        raise MechanismError(
            "the mechanism is not locally differentially private, for an output excludes a letter: take "
            "pml_measurement"
        )
    proved = _find_proved_level(Prior.uniform(len(known.inputs), known.inputs), known, level, LDP)
    return _make_measurement(known, dp.max_divergence(), proved)


def pml_measurement(prior: PriorLike, mechanism: MechanismLike) -> Any:
    """Build an OpenDP measurement with the mechanism's PML level under a prior.

    Args:
        prior: N letters.
        mechanism: as for `ldp_measurement`.

    Raises:
        MechanismError: its rows are not exact.

    Examples:
        >>> import opendp.prelude as dp
        >>> dp.enable_features("contrib", "honest-but-curious")
        >>> measurement = pml_measurement([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        >>> round(measurement.map(1), 6)
        0.405465
    """
    p, known = pair_with_prior(prior, mechanism)
    proved = _find_proved_level(p, known, leakage_level(p, known), PML)
    return _make_measurement(
        known, dp.user_divergence("pointwise maximal leakage under the given prior"), proved
    )


def _find_proved_level(
    prior: Prior, mechanism: Any, level: float, requirement: type[Requirement]
) -> float:
    """Find the smallest float level that is proved in integer arithmetic."""
    if not has_exact_rows(mechanism.matrix):
        raise MechanismError(
            "the rows do not sum to exactly one on multiples of 2^-53, so that no level is proved of its "
            "draws: take the mechanism of a Result, or that of certify(design(...), matrix)"
        )
    claimed = max(level, 0.0)
    # How many units in the last place a level is raised at most until it is proved.
    for _ in range(64):
        if is_met_exactly(prior, requirement(claimed), mechanism.matrix):  # type: ignore[call-arg]
            return claimed
        claimed = math.nextafter(claimed, math.inf)
    raise MechanismError(f"the level {level:g} could not be proved in integers")


def _make_measurement(mechanism: Any, divergence: Any, level: float) -> Any:
    """Build an OpenDP measurement of a mechanism for a divergence and a level."""
    letters = frozenset(mechanism.inputs)
    return dp.m.make_user_measurement(
        input_domain=dp.user_domain("letters of the mechanism", lambda value: value in letters),
        input_metric=dp.discrete_distance(),
        output_measure=divergence,
        function=lambda value: next(iter(mechanism.sample([value]))),
        privacy_map=lambda distance: level if distance else 0.0,
    )
