"""From a post-processing and multipliers to the certificate of an envelope: both ends are provable."""

from __future__ import annotations

import math

from pmlopt.arrays import FloatArray
from pmlopt.errors import MechanismError
from pmlopt.mechanism import Mechanism
from pmlopt.programs.envelope.certificate import EnvelopeCertificate
from pmlopt.programs.envelope.dual_bound import nearest_ratio
from pmlopt.programs.envelope.program import EnvelopeProgram
from pmlopt.programs.envelope.rational_mechanism import RationalMechanism, bounds, reaches
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
    if len(attack.inputs) != len(program.given.outputs):
        raise MechanismError(
            f"the post-processing has {len(attack.inputs)} rows: give one for each of the "
            f"{len(program.given.outputs)} outputs of the mechanism"
        )
    if multipliers is not None and multipliers.shape != (program.prior.size,):
        raise MechanismError(
            f"there are {len(multipliers)} multipliers: give one for each of the {program.prior.size} letters"
        )
    exact = RationalMechanism.of(program.prior, program.given.matrix)
    value = _value(program, exact, attack)
    bound, used = _bound(program, exact, multipliers)
    return EnvelopeCertificate(
        mechanism=program.given,
        value=value,
        bound=bound,
        gap=bound - value,
        prior=program.prior,
        delta=program.delta,
        attack=attack,
        multipliers=used,
    )


def _value(program: EnvelopeProgram, exact: RationalMechanism, attack: Mechanism) -> float:
    """The upper quantile of the leakage after the attack, moved down until it is reached as rationals.

    Where the mass of the likeliest leaks is short of delta by rounding alone, the next outcome counts.
    """
    found = sorted(exact.outcomes(attack.matrix), key=lambda z: -z.ratio)
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


def _bound(
    program: EnvelopeProgram, exact: RationalMechanism, multipliers: FloatArray | None
) -> tuple[float, FloatArray | None]:
    """The bound of the multipliers where it is below that of Theorem 3, moved up until it is proved."""
    most = program.simple_bound
    if multipliers is not None:
        near = math.log(nearest_ratio(program, multipliers, math.exp(most)))
        bound = raised(lambda level: bounds(exact, program.delta, level, multipliers), near, most)
        if bound < most:
            return bound, multipliers
    return raised(lambda level: bounds(exact, program.delta, level, None), most), None
