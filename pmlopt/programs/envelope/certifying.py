"""From a post-processing and multipliers to the certificate of an envelope, with rounding allowed for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray, Label, rounding_of
from pmlopt.core.roots import raised
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import MechanismError
from pmlopt.measures import binary_event
from pmlopt.measures.approximate import quantile
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.masses import reached_mass
from pmlopt.programs.envelope.multipliers import proved_level
from pmlopt.programs.envelope.program import EnvelopeProgram, PostProcessings, ProcessedFailureProgram

NOISE_THRESHOLD = 1e-15
"""What is left of a row of a point counts as rounding up to this, a few units in the last place of 1."""

LARGEST_TOP_UP = 1e-6
"""A point whose mass is short of delta by at most this share of it is topped up: ratios are asked a hair
above the one that is wanted, and solvers have tolerances. A point that is short by more is left as it is."""

TOP_UP_MARGIN = 4e-15
"""By how much more than delta, relatively, the mass is made: what rounding may take off again."""


def binary_attack(program: EnvelopeProgram) -> FloatArray:
    """The event of mass delta that leaks most, to the letter through which it does."""
    event = binary_event(program.prior, program.merged, program.delta)
    point = np.zeros(program.merged.T.shape)
    point[:, int((program.merged @ event).argmax())] = event
    return point


def plain_attack(program: EnvelopeProgram) -> FloatArray:
    """The point of no post-processing: outputs at or above their quantile, to the letters that they tell."""
    ratios = program.merged.max(axis=0) / program.law
    told = np.flatnonzero(ratios >= quantile(ratios, program.law, program.delta, upper=True))
    point = np.zeros(program.merged.T.shape)
    point[told, program.merged[:, told].argmax(axis=0)] = 1.0
    return point


def topped_up(program: EnvelopeProgram, point: FloatArray) -> FloatArray:
    """The point with what little its mass is short of delta added to its likeliest outcome."""
    law = program.law
    scaled = np.asarray(point / np.maximum(point.sum(axis=1, keepdims=True), 1.0))
    rest = 1 - scaled.sum(axis=1)
    short = program.delta * (1 + TOP_UP_MARGIN) - float(law @ scaled.sum(axis=1))
    room = float(law @ rest)
    if 0 < short <= LARGEST_TOP_UP * program.delta and room > 0:
        scaled[:, int((law @ scaled).argmax())] += min(1.0, short / room) * rest
    return scaled


def reached_ratio(program: EnvelopeProgram, point: FloatArray) -> float:
    """The upper quantile of the likelihood ratio after the post-processing of a point."""
    columns = program.merged @ np.column_stack([point, _rest(point)])
    masses = program.prior.pmf @ columns
    used = masses > 0
    ratios, masses = columns[:, used].max(axis=0) / masses[used], masses[used]
    return quantile(ratios, masses, program.delta, upper=True)


def spread(program: PostProcessings[Any], point: FloatArray) -> FloatArray:
    """(M, N) the point on all given outputs; those that never occur go to no letter."""
    shares = np.zeros((len(program.given.outputs), point.shape[1]))
    for row, group in zip(point, program.groups, strict=True):
        shares[list(group)] = row
    return shares


def leaking(gains: FloatArray, shares: FloatArray) -> FloatArray:
    """(M, N) shares that are mended until the outcome of each letter leaks log t or more.

    What a letter's outputs have to spare, `P[x,y] - t q[y]` where that is positive, must cover the others: of
    these it gives back what it cannot cover, with a margin for rounding. Outputs that leak so much by
    themselves go whole to the letter that they tell most of.

    """
    terms = gains.T * shares
    spare, cost = np.maximum(terms, 0.0).sum(axis=0), np.maximum(-terms, 0.0).sum(axis=0)
    margin = rounding_of(sum(gains.shape), 1.0)
    covered = np.minimum(1.0, spare * (1 - margin) / np.where(cost > 0, cost, 1.0))
    mended = np.where(terms < 0, shares * covered, shares)
    free = np.flatnonzero(gains.max(axis=0) >= 0)
    mended[free, gains.argmax(axis=0)[free]] += _rest(mended)[free]
    return mended


def channel(program: PostProcessings[Any], shares: FloatArray) -> Mechanism:
    """The post-processing that gives (M, N) shares to the letters; one more outcome takes what is left.

    Its outcomes have the labels of the letters, and that one (), or a tuple around it that no letter is.
    """
    used = np.flatnonzero(program.prior.pmf @ program.given.matrix @ shares > 0)
    matrix = np.column_stack([shares[:, used], _rest(shares[:, used])])
    matrix /= matrix.sum(axis=1, keepdims=True)
    kept = np.flatnonzero(matrix.max(axis=0) > 0)
    rest: Label = ()
    while rest in program.prior.labels:
        rest = (rest,)
    labels = [*(program.prior.labels[x] for x in used), rest]
    return Mechanism(matrix[:, kept], program.given.outputs, [labels[place] for place in kept])


def _rest(point: FloatArray) -> FloatArray:
    """What is left of each row."""
    rest = np.maximum(0.0, 1 - point.sum(axis=1))
    return np.where(rest > NOISE_THRESHOLD, rest, 0.0)


def certify_envelope(
    program: EnvelopeProgram, attack: Mechanism, multipliers: FloatArray | None
) -> EnvelopeCertificate:
    """The certificate of an (M, K) post-processing, and of the bound that any multipliers prove.

    Where they prove nothing better, or there are none, it is that of [saeidian2026envelopes, Theorem 3].

    Raises:
        MechanismError: the post-processing or the multipliers do not fit the mechanism.
    """
    _check(program, attack, multipliers)
    values = [_value(single, attack) for single in program.singles]
    best, bound, most = values.index(max(values)), math.inf, program.simple_bound
    if multipliers is not None:
        bound = proved_level(program, multipliers, most)
    if not bound < most:
        multipliers = None
        bound = raised(lambda level: program.exact.proves(program.delta, level, None), most)
    return EnvelopeCertificate(
        mechanism=program.given,
        value=values[best],
        bound=bound,
        prior=program.singles[best].prior,
        over=program.over,
        delta=program.delta,
        attack=attack,
        multipliers=multipliers,
    )


def certify_failure(
    program: ProcessedFailureProgram, attack: Mechanism, multipliers: FloatArray | None
) -> ProcessedFailureCertificate:
    """The certificate of an (M, K) post-processing, and of the probability that any multipliers prove.

    Where `1 / t` for each letter is better, which gives `sum_y max_x P[x,y] / t` [saeidian2026envelopes,
    Theorem 3], or zeros are, which give 1, those are taken.

    Raises:
        MechanismError: the post-processing or the multipliers do not fit the mechanism.
    """
    _check(program, attack, multipliers)
    exact, epsilon = program.exact, program.epsilon
    known = [program.padded(np.full(program.prior.size, lam)) for lam in (0.0, math.exp(-epsilon))]
    if program.over is not None:
        known[0][-1] = 1.0  # the probabilities sum to one
    if multipliers is not None and np.isfinite(multipliers).all():
        known.append(multipliers)
    most, best = min((exact.mass(epsilon, lam.tolist()), place) for place, lam in enumerate(known))
    reached = [reached_mass(single.exact.outcomes(attack.matrix), epsilon) for single in program.singles]
    value = max(reached)
    return ProcessedFailureCertificate(
        mechanism=program.given,
        value=_rounded_down(value),
        bound=-_rounded_down(-most),
        prior=program.singles[reached.index(value)].prior,
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
    found = sorted(program.exact.outcomes(attack.matrix), reverse=True)
    mass, level = Fraction(0), 0.0
    for ratio, own in found:
        mass, level = mass + own, math.log(ratio)
        if mass >= program.delta:
            break
    step = math.ulp(level)
    while level > 0 and reached_mass(found, level) < program.delta:
        level, step = level - step, 2 * step
    return max(level, 0.0)
