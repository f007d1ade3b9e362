"""From a post-processing and multipliers to the certificate of an envelope: both ends are provable."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import MechanismError
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.programs.envelope.certificate import ClosedFailureCertificate, EnvelopeCertificate
from pmlopt.programs.envelope.dual_bound import nearest_ratio
from pmlopt.programs.envelope.post_processing import PostProcessings
from pmlopt.programs.envelope.program import ClosedFailureProgram, EnvelopeProgram
from pmlopt.programs.envelope.rational_mechanism import (
    bounds,
    failure_bound,
    leaking_mass,
    reaches,
)
from pmlopt.roots import raised


def certify_envelope(
    program: EnvelopeProgram, attack: Mechanism, multipliers: FloatArray | None
) -> EnvelopeCertificate:
    """The certificate of a post-processing, and of the bound that multipliers prove.

    Args:
        program: what was asked.
        attack: (M, K) the post-processing.
        multipliers: (N,) any numbers, or None for the bound of [saeidian2026envelopes, Theorem 3], which
            stands too where the multipliers prove nothing better.

    Raises:
        MechanismError: the post-processing or the multipliers do not fit the mechanism.
    """
    _check(program, attack, multipliers)
    values = [_value(single, attack) for single in program.singles]
    value, prior = _worst(values, program)
    bound, used = _bound(program, multipliers)
    return EnvelopeCertificate(
        mechanism=program.given,
        value=value,
        bound=bound,
        prior=prior,
        over=program.over,
        delta=program.delta,
        attack=attack,
        multipliers=used,
    )


def certify_failure(
    program: ClosedFailureProgram, attack: Mechanism, multipliers: FloatArray | None
) -> ClosedFailureCertificate:
    """The certificate of a post-processing, and of the probability that multipliers prove.

    Args:
        program: what was asked.
        attack: (M, K) the post-processing.
        multipliers: (N,) any numbers, or None. Where `1 / t` for each letter is better, which gives
            `sum_y max_x P[x,y] / t` [saeidian2026envelopes, Theorem 3], or zeros are, which give 1, those are
            taken.

    Raises:
        MechanismError: the post-processing or the multipliers do not fit the mechanism.
    """
    _check(program, attack, multipliers)
    exact, epsilon = program.exact, program.epsilon
    simple = [program.padded(np.full(program.prior.size, lam)) for lam in (0.0, math.exp(-epsilon))]
    if program.over is not None:
        simple[0][-1] = 1.0  # the probabilities sum to one
    usable = multipliers is not None and np.isfinite(multipliers).all()
    known = [*simple, multipliers] if multipliers is not None and usable else simple
    proved = [failure_bound(exact, epsilon, lam) for lam in known]
    best = min(range(len(proved)), key=proved.__getitem__)
    reached = [leaking_mass(single.exact, attack.matrix, epsilon) for single in program.singles]
    value, prior = _worst([_rounded_down(mass) for mass in reached], program)
    bound = -_rounded_down(-proved[best])
    return ClosedFailureCertificate(
        mechanism=program.given,
        value=value,
        bound=bound,
        prior=prior,
        over=program.over,
        epsilon=epsilon,
        attack=attack,
        multipliers=known[best],
    )


def _check(program: PostProcessings[Any], attack: Mechanism, multipliers: FloatArray | None) -> None:
    if len(attack.inputs) != len(program.given.outputs):
        raise MechanismError(
            f"the post-processing has {len(attack.inputs)} rows: give one for each of the "
            f"{len(program.given.outputs)} outputs of the mechanism"
        )
    if multipliers is not None and multipliers.shape != (program.multipliers,):
        raise MechanismError(
            f"there are {len(multipliers)} multipliers: give one for each of the {program.prior.size} letters"
            + ("" if program.over is None else ", and one of the sum of the probabilities")
        )


def _rounded_down(number: Fraction) -> float:
    """The largest float that is at most a rational."""
    found = float(number)
    return math.nextafter(found, -math.inf) if found > number else found


def _value(program: EnvelopeProgram, attack: Mechanism) -> float:
    """The upper quantile of the leakage after the attack, moved down until it is reached as rationals.

    Where the mass of the likeliest leaks is short of delta by rounding alone, the next outcome counts.
    """
    found = sorted(program.exact.outcomes(attack.matrix), key=lambda z: -z.ratio)
    above, below = program.delta.as_integer_ratio()
    mass, level = 0, 0.0
    for z in found:
        mass, level = mass + z.mass, math.log(z.ratio)
        if mass * below >= above * z.total:
            break
    step = math.ulp(level)
    while level > 0 and not reaches(found, program.delta, level):
        level, step = level - step, 2 * step
    return max(level, 0.0)


def _worst(values: list[float], program: EnvelopeProgram | ClosedFailureProgram) -> tuple[float, Prior]:
    """The largest of the values under the priors of a program, and that prior."""
    best = values.index(max(values))
    return values[best], program.singles[best].prior


def _bound(program: EnvelopeProgram, multipliers: FloatArray | None) -> tuple[float, FloatArray | None]:
    """The bound of the multipliers where it is below that of Theorem 3, moved up until it is proved."""
    exact, most = program.exact, program.simple_bound
    if multipliers is not None:
        near = math.log(nearest_ratio(program, multipliers, math.exp(most)))
        bound = raised(lambda level: bounds(exact, program.delta, level, multipliers), near, most)
        if bound < most:
            return bound, multipliers
    return raised(lambda level: bounds(exact, program.delta, level, None), most), None
