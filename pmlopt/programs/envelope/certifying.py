"""From a post-processing and multipliers to the certificate of an envelope, with rounding allowed for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, Label, rounding_of
from pmlopt.core.roots import halved, raised
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError
from pmlopt.measures import binary_event
from pmlopt.measures.approximate import quantile
from pmlopt.programs.envelope.certificate import (
    EnvelopeCertificate,
    ProcessedFailureCertificate,
    bounds,
    failure_bound,
    leaking_mass,
    reaches,
)
from pmlopt.programs.envelope.post_processing import PostProcessings
from pmlopt.programs.envelope.program import EnvelopeProgram, ProcessedFailureProgram

NOISE_THRESHOLD = 1e-15
"""What is left of a row of a point counts as rounding up to this, a few units in the last place of 1."""

LARGEST_TOP_UP = 1e-6
"""A point whose mass is short of delta by at most this share of it is topped up: ratios are asked a hair
above the one that is wanted, and solvers have tolerances. A point that is short by more is left as it is."""

TOP_UP_MARGIN = 4e-15
"""By how much more than delta, relatively, the mass is made: what rounding may take off again."""


def plain_attack(program: EnvelopeProgram) -> FloatArray:
    """The outputs that leak most, of mass delta or more, each to the letter that it tells most of.

    It reaches what the mechanism reaches by itself.
    """
    ratios = program.merged / program.law
    peaks = ratios.max(axis=0)
    taken = np.flatnonzero(peaks >= quantile(peaks, program.law, program.delta, upper=True))
    point = np.zeros(program.merged.T.shape)
    point[taken, ratios.argmax(axis=0)[taken]] = 1.0
    return point


def binary_attack(program: EnvelopeProgram) -> FloatArray:
    """The event of mass delta that leaks most, to the letter through which it does."""
    event = binary_event(program.prior, program.merged, program.delta)
    point = np.zeros(program.merged.T.shape)
    point[:, int((program.merged @ event).argmax())] = event
    return point


def folded(program: EnvelopeProgram, matrix: FloatArray) -> FloatArray:
    """The point of an (M, K) post-processing: its outcomes at or above its quantile, merged by letters."""
    laws = program.prior.pmf @ program.given.matrix
    rows = np.array([laws[list(group)] @ matrix[list(group)] for group in program.groups])
    rows /= program.law[:, None]
    columns = program.merged @ rows
    masses = program.prior.pmf @ columns
    used = np.flatnonzero(masses > 0)
    ratios = (columns[:, used] / masses[used]).max(axis=0)
    least = quantile(ratios, masses[used], program.delta, upper=True)
    point = np.zeros(program.merged.T.shape)
    for z in used[ratios >= least]:
        point[:, int(columns[:, z].argmax())] += rows[:, z]
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

    Args:
        gains: (N, M) `P[x,y] - t q[y]`, with the right signs.
        shares: (M, N) non-negative.
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


LEVEL_DIGITS = 1e-12
"""How far above the least level that multipliers prove the one that is claimed may be, as a share of it."""

MAX_NEWTON_STEPS = 200
"""More than Newton's method needs: it ends by itself, at the latest at the last kink."""


def bad_mass(program: PostProcessings[Any], ratio: float, multipliers: FloatArray) -> float:
    """Upper bound on the mass that a post-processing can give to outcomes that leak log t or more.

    For any lam >= 0: `sum_y max(0, max_x (q[y] + lam[x] (P[x,y] - t q[y])))`, the dual of
    `PostProcessings.problem`. Over a set of priors, for any nu as well:
    `nu + sum_y max_q (max(0, max_x (q + lam[x] (P[x,y] - t q))) - nu q)`, q being the least or the largest
    probability of y over the set: the inner part is convex in q, so that between them it is below its chord.
    What rounding may have taken off is added.

    Args:
        program: of the mechanism.
        ratio: t.
        multipliers: (N,) lam; over a set (N + 1,), nu last.

    Examples:
        >>> from pmlopt import envelope
        >>> program = envelope([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.5)
        >>> round(bad_mass(program, 1.6, np.array([10.0, 10.0])), 9)  # no outcome leaks log 1.6
        0.0
    """
    weights, total = program.split(multipliers)
    lam, law, matrix = weights[:, None], program.law, program.columns
    worth = law + lam * (matrix - ratio * law) - total * law
    # what rounding may have taken off each term, and off their sum
    digits = 2 * (len(multipliers) + 4) * float(np.finfo(float).eps)
    error = digits * ((1 + abs(total)) * law + (lam * (matrix + ratio * law)).max(axis=0))
    terms = program.of_outputs(worth + error, error - total * law).max(axis=0)
    size = abs(total) + float(np.abs(terms).sum())
    return total + float(terms.sum()) + rounding_of(len(terms), size)


def largest_ratio(program: EnvelopeProgram, multipliers: FloatArray, most: float) -> float:
    """Upper bound on the ratios t that a post-processing reaches with mass delta, by multipliers.

    `bad_mass` is convex and piecewise linear in t and does not rise: Newton's method from 1 meets the root
    from below in a few steps, and what rounding may hide is stepped over.

    Args:
        program: of the mechanism and delta.
        multipliers: (N,) lam; numbers that are not finite prove nothing.
        most: a ratio that is proved already; it is returned where the multipliers prove nothing better.
    """
    delta = program.delta
    if not np.isfinite(multipliers).all():
        return most
    if most <= 1 or bad_mass(program, most, multipliers) >= delta:
        return most
    if bad_mass(program, 1.0, multipliers) < delta:
        return 1.0
    root, slope = _newton(program, multipliers, most)
    step = math.ulp(root)
    while root < most and (surplus := bad_mass(program, root, multipliers) - delta) >= 0:
        root, step = root + max(step, 2 * surplus / slope), 2 * step
    return min(root, most)


def nearest_ratio(program: EnvelopeProgram, multipliers: FloatArray, most: float) -> float:
    """Where the bound of multipliers would be without rounding, at most `most`: no proof, but near one.

    Examples:
        >>> from pmlopt import envelope
        >>> program = envelope([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.5)
        >>> round(nearest_ratio(program, np.array([10.0, 10.0]), 2.0), 9)  # 1 + 20 (0.75 - t / 2) = 0.5
        1.55
    """
    if not np.isfinite(multipliers).all():
        return most
    return min(most, _newton(program, multipliers, most)[0])


def _newton(program: EnvelopeProgram, multipliers: FloatArray, most: float) -> tuple[float, float]:
    """Where the mass falls to delta, up to rounding, and how fast it falls there."""
    weights, total = program.split(multipliers)
    lam, law = weights[:, None], program.law
    fixed = program.of_outputs(law + lam * program.columns - total * law, -total * law)
    rates = program.of_outputs(lam * law, 0 * law)
    outputs = np.arange(rates.shape[1])
    ratio, slope = 1.0, math.inf
    for _ in range(MAX_NEWTON_STEPS):
        worth = fixed - ratio * rates
        best = worth.argmax(axis=0)
        mass, fall = total + float(worth[best, outputs].sum()), float(rates[best, outputs].sum())
        if mass <= program.delta or fall <= 0:
            break
        slope, last = fall, ratio
        ratio = min(most, ratio + (mass - program.delta) / fall)
        if ratio <= last:
            break
    return ratio, slope


def proved_level(program: EnvelopeProgram, multipliers: FloatArray, near: float, most: float) -> float:
    """A level from `near` to `most` that multipliers prove in rational arithmetic, close to the least.

    Args:
        program: of the mechanism and delta.
        multipliers: (N,).
        near: about where floats put the bound, in nats; of use where they put it too low.
        most: a level that is proved.
    """

    def holds(level: float) -> bool:
        return bounds(program.exact, program.delta, level, multipliers)

    found = raised(holds, near, most)
    return found if found in (near, most) else halved(holds, near, found, LEVEL_DIGITS)


def with_closed(law: FloatArray, gains: FloatArray, multipliers: FloatArray, closed: BoolArray) -> FloatArray:
    """The multipliers, those of closed letters set to the least that adds nothing to the dual at a ratio t.

    A letter is closed where `P[x,y] - t q[y]` is negative for all y: with `u[y]` what the others give for y,
    any `lam[x] >= (q[y] - u[y]) / (t q[y] - P[x,y])` for all y will do. A solver that has the letter in its
    program needs multipliers that grow without end where t comes down to the letter's largest ratio.

    Args:
        law: (M,) q.
        gains: (N, M) `P[x,y] - t q[y]`, negative for closed letters.
        multipliers: (N,) of a solver, and what follows them, which stays.
        closed: (N,).

    Examples:
        >>> gains = np.array([[0.25, -0.25], [-0.5, -0.25]])
        >>> with_closed(np.array([0.5, 0.5]), gains, np.array([1.0, 0.0]), np.array([False, True]))
        array([1., 1.])
    """
    lam, rest = np.where(closed, 0.0, np.maximum(multipliers[: len(closed)], 0.0)), multipliers[len(closed) :]
    worth = law + lam[~closed, None] * gains[~closed]
    others = np.maximum(0.0, worth.max(axis=0, initial=0.0))
    needed = ((law - others) / -gains[closed]).max(axis=1, initial=0.0)
    lam[closed] = np.maximum(0.0, needed) * (1 + 1e-15)  # more is as good, and less by rounding is not
    return np.concatenate([lam, rest])


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
    program: ProcessedFailureProgram, attack: Mechanism, multipliers: FloatArray | None
) -> ProcessedFailureCertificate:
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
    return ProcessedFailureCertificate(
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


def _worst(values: list[float], program: EnvelopeProgram | ProcessedFailureProgram) -> tuple[float, Prior]:
    """The largest of the values under the priors of a program, and that prior."""
    best = values.index(max(values))
    return values[best], program.singles[best].prior


def _bound(program: EnvelopeProgram, multipliers: FloatArray | None) -> tuple[float, FloatArray | None]:
    """The bound of the multipliers where it is below that of Theorem 3, moved up until it is proved."""
    most = program.simple_bound
    if multipliers is not None:
        near = math.log(nearest_ratio(program, multipliers, math.exp(most)))
        bound = proved_level(program, multipliers, near, most)
        if bound < most:
            return bound, multipliers
    return raised(lambda level: bounds(program.exact, program.delta, level, None), most), None
