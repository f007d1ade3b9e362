"""Certificates of envelopes, built from a post-processing and multipliers with an allowance for rounding."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, Label, bound_sum_rounding
from pmlopt.core.numbers.roots import bisect, step_up_until
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import MechanismError
from pmlopt.measures import binary_event
from pmlopt.measures.approximate import compute_quantile
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.masses import compute_reached_mass
from pmlopt.programs.envelope.program import (
    EnvelopeProgram,
    PostProcessingProgram,
    ProcessedFailureProgram,
)
from pmlopt.programs.exact.rounding import round_down_to_float, round_up_to_float
from pmlopt.solvers.highs import LinearModel, build_columnwise_model
from pmlopt.solvers.parametric_program import ParametricModel
from pmlopt.solvers.solver_result import Deadline


def find_ratio_by_newton(
    program: EnvelopeProgram, multipliers: FloatArray, max_ratio: float
) -> float:
    """Find by Newton's method, in floats, the ratio at which the multipliers' dual bound is delta.

    For any lam >= 0 no post-processing gives outcomes that leak log t or more a larger mass than
    `sum_y max(0, max_x (q[y] + lam[x] (P[x,y] - t q[y])))`, the dual of `PostProcessingProgram.problem`. Over
    a set
    of priors, for any nu as well: `nu + sum_y max_q (max(0, max_x (q + lam[x] (P[x,y] - t q))) - nu q)`, q
    being the least or the largest probability of y over the set: the inner part is convex in q, so that
    between them it is below its chord. The mass is convex and piecewise linear in t and does not rise:
    Newton's method from 1 meets the root from below in a few steps. What is not finite proves nothing.

    Examples:
        >>> from pmlopt import envelope
        >>> program = envelope([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.5)
        >>> round(
        ...     find_ratio_by_newton(program, np.array([10.0, 10.0]), 2.0), 9
        ... )  # 1 + 20 (0.75 - t / 2) = 0.5
        1.55
    """
    if not np.isfinite(multipliers).all():
        return max_ratio
    (n, m), law = program.merged.shape, program.law
    lam = np.maximum(multipliers[:n], 0.0)[:, None]
    total = float(multipliers[n:].sum())
    # of the letters and of no person, copies of an output in one column
    fixed = np.vstack([law + lam * program.columns - total * law, -total * law]).reshape(-1, m)
    rates = np.vstack([lam * law, 0 * law]).reshape(-1, m)
    outputs = np.arange(m)
    ratio = 1.0
    # Newton's method ends earlier, at the latest at the last kink
    for _ in range(200):
        values = fixed - ratio * rates
        best = values.argmax(axis=0)
        mass = total + float(values[best, outputs].sum())
        fall = float(rates[best, outputs].sum())
        # the first iterate at or below delta: convexity keeps all before above it
        if mass <= program.delta:
            return ratio
        # a function that no longer falls never reaches delta
        if fall <= 0:
            return max_ratio
        ratio, last = min(max_ratio, ratio + (mass - program.delta) / fall), ratio
        if ratio <= last:
            break
    return ratio


def prove_level(
    program: EnvelopeProgram,
    multipliers: FloatArray,
    max_level: float,
    digits: float = 1e-12,
) -> float:
    """Find in rational arithmetic a leakage level, in nats, that the multipliers prove; at most `max_level`.

    It is above the least that they prove by a share of `digits` at most.
    """
    ratio = math.exp(max_level)
    near = find_ratio_by_newton(program, multipliers, ratio)
    # the multipliers prove no more than what is known
    if near >= ratio:
        return max_level

    def is_proved(level: float) -> bool:
        return program.rational_mechanism.is_bound_proved(program.delta, level, multipliers)

    # floats give the place, rationals the proof: a few steps outward find it
    fails = found = math.log(near)
    # a level of zero has no relative digits: steps are at least those of a level of 1e-12
    step = digits * max(found, 1e-12)
    while found < max_level and not is_proved(found):
        fails = found
        found = found + step
        step = 2 * step
    return min(max_level, bisect(is_proved, fails, found, digits))


def set_closed_multipliers(
    law: FloatArray, gains: FloatArray, multipliers: FloatArray, closed: BoolArray
) -> FloatArray:
    """Set the multipliers of letters without outputs at ratio t to the least that leaves the dual unchanged.

    A letter is closed where `P[x,y] - t q[y]` is negative for all y: with `u[y]` what the others give for y,
    any `lam[x] >= (q[y] - u[y]) / (t q[y] - P[x,y])` for all y will do. A solver that has the letter in its
    program needs multipliers that grow without end where t comes down to the letter's largest ratio.

    Examples:
        >>> gains = np.array([[0.25, -0.25], [-0.5, -0.25]])
        >>> set_closed_multipliers(np.array([0.5, 0.5]), gains, np.array([1.0, 0.0]), np.array([False, True]))
        array([1., 1.])
    """
    lam = np.where(closed, 0.0, np.maximum(multipliers[: len(closed)], 0.0))
    rest = multipliers[len(closed) :]
    values = law + lam[~closed, None] * gains[~closed]
    # what the other letters already give, so that the closed one need not exceed it
    others = np.maximum(0.0, values.max(axis=0, initial=0.0))
    needed = ((law - others) / -gains[closed]).max(axis=1, initial=0.0)
    # more is as good, and less by rounding is not
    lam[closed] = np.maximum(0.0, needed) * (1 + 1e-15)
    return np.concatenate([lam, rest])


class RatioPrograms:
    """The linear programs for the worst post-processing at a sequence of likelihood ratios, in HiGHS.

    HiGHS' tolerances are absolute. So probabilities count as shares of a mass, that of the outcomes in
    question, and no entry that matters is far from one: the entries of output y are in units of
    `mass / q[y]`, or less where they reveal more than t, and what is to spare in units of t times the mass.

    Args:
        program: of the mechanism.
        mass: about what the worst outcomes have together; delta, where that is requested.
    """

    def __init__(self, program: PostProcessingProgram[Any], mass: float) -> None:
        (n, k), self._mass, self._program = program.columns.shape, mass, program
        self.shape = k, n
        self._moving: ParametricModel | None = None

    def _build_scaled_model(
        self, ratio: float, closed: BoolArray
    ) -> tuple[LinearModel, FloatArray]:
        """Build the scaled HiGHS model of the post-processing at a ratio, with the column units.

        Rows: leaks, outputs, and over a set the ends and their total.
        """
        program, (k, n), law = self._program, self.shape, self._program.law
        m = program.merged.shape[1]
        single = program.over is None
        spare = ratio * self._mass
        gains = (program.columns - ratio * program.law).T
        cost = np.repeat(law[:, None], n, axis=1)
        units = np.minimum(1.0, spare / np.maximum(np.maximum(np.abs(gains), ratio * cost), spare))
        tops = units.max(axis=1, keepdims=True) if single else np.ones((k, 1))
        # column by column: its entries in the rows of its letter and of its output
        values = np.stack([gains * units / spare, units / tops], axis=2).ravel()
        indices = np.stack(
            np.broadcast_arrays(np.arange(n), n + np.arange(k)[:, None]), axis=2
        ).ravel()
        # HiGHS may drop entries below 1e-11: columns that have such get limits of their own
        starts = 2 * np.arange(n * k + 1)
        upper_bounds = np.where(units / tops < 1e-11, 1 / units, np.inf)
        upper_bounds[:, closed] = 0.0
        lower = np.concatenate([np.zeros(n), np.full(k, -np.inf)])
        upper = np.full(n, np.inf)
        costs = (-cost * units / self._mass).ravel()
        upper_bounds = upper_bounds.ravel()
        if single:
            upper = np.concatenate([upper, 1 / tops[:, 0]])
        else:
            ends = np.arange(k)
            values = np.append(values, np.column_stack([-np.ones(k), np.ones(k), law]).ravel())
            rows = np.column_stack([n + ends, n + k + ends % m, np.full(k, n + k + m)])
            indices = np.append(indices, rows.ravel())
            starts = np.append(starts, starts[-1] + 3 * np.arange(1, k + 1))
            lower = np.append(lower, np.ones(m + 1))
            upper = np.concatenate([upper, np.zeros(k), np.ones(m + 1)])
            costs = np.append(costs, np.zeros(k))
            upper_bounds = np.append(upper_bounds, np.ones(k))
        return build_columnwise_model(
            costs, (0.0, upper_bounds), (lower, upper), (starts, indices, values)
        ), units

    def solve_at(
        self, ratio: float, closed: BoolArray, deadline: Deadline
    ) -> tuple[float, float, FloatArray, FloatArray]:
        """Solve for V(t), the derivative of -V, the (K, N) attack and the (N,) multipliers of its letters.

        The outcomes of the letters of `closed` are fixed at nothing. Over a set there is one more multiplier,
        of the sum of the probabilities.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum.
        """
        k, n = self.shape
        model, units = self._build_scaled_model(ratio, closed)
        if self._moving is None:
            self._moving = ParametricModel(model)
        else:
            self._moving.replace_model(model)
        found = self._moving.solve_at(ratio, deadline)
        point = found.values[: n * k].reshape(k, n)
        # a hundredth of HiGHS' feasibility tolerance: smaller entries are noise
        point = np.where(point > 1e-12, point * units, 0.0)
        lam = found.duals[:n] / ratio
        slope = float(self._program.law @ point @ lam)
        if self._program.over is not None:
            lam = np.append(lam, -self._mass * found.duals[-1])
        return -self._mass * found.optimum, slope, point, lam


def build_binary_attack(program: EnvelopeProgram) -> FloatArray:
    """Build the two-outcome post-processing of mass delta that leaks most, as a feasible start."""
    event = binary_event(program.prior, program.merged, program.delta)
    point = np.zeros(program.merged.T.shape)
    point[:, int((program.merged @ event).argmax())] = event
    return point


def build_quantile_attack(program: EnvelopeProgram) -> FloatArray:
    """Build the start that assigns outputs above the delta-quantile to the letter they reveal most."""
    ratios = program.merged.max(axis=0) / program.law
    revealing = np.flatnonzero(
        ratios >= compute_quantile(ratios, program.law, program.delta, upper=True)
    )
    point = np.zeros(program.merged.T.shape)
    point[revealing, program.merged[:, revealing].argmax(axis=0)] = 1.0
    return point


def top_up_mass(program: EnvelopeProgram, point: FloatArray) -> FloatArray:
    """Raise the mass of a post-processing to delta where it is short by solver tolerance only."""
    law = program.law
    scaled = np.asarray(point / np.maximum(point.sum(axis=1, keepdims=True), 1.0))
    rest = 1 - scaled.sum(axis=1)
    # rounding may take off a few units in the last place
    short = program.delta * (1 + 4e-15) - float(law @ scaled.sum(axis=1))
    room = float(law @ rest)
    # a mass that is short by more is no effect of a solver's tolerance, and is left as it is
    if 0 < short <= 1e-6 * program.delta and room > 0:
        scaled[:, int((law @ scaled).argmax())] += min(1.0, short / room) * rest
    return scaled


def compute_attack_ratio(program: EnvelopeProgram, point: FloatArray) -> float:
    """Compute the delta-quantile of the likelihood ratio after a post-processing."""
    columns = program.merged @ np.column_stack([point, _compute_remaining_mass(point)])
    masses = program.prior.pmf @ columns
    used = masses > 0
    ratios = columns[:, used].max(axis=0) / masses[used]
    masses = masses[used]
    return compute_quantile(ratios, masses, program.delta, upper=True)


def expand_outputs(program: PostProcessingProgram[Any], point: FloatArray) -> FloatArray:
    """Expand a post-processing of the merged outputs to all (M, N) original outputs."""
    shares = np.zeros((len(program.given_mechanism.outputs), point.shape[1]))
    for row, group in zip(point, program.groups, strict=True):
        shares[list(group)] = row
    return shares


def repair_attack(gains: FloatArray, shares: FloatArray) -> FloatArray:
    """Repair an (M, N) post-processing until the outcome of each letter leaks at least log t.

    What a letter's outputs have to spare, `P[x,y] - t q[y]` where that is positive, must cover the others: of
    these it gives back what it cannot cover, with a margin for rounding. Outputs that leak so much by
    themselves go whole to the letter that they reveal most of.
    """
    terms = gains.T * shares
    spare = np.maximum(terms, 0.0).sum(axis=0)
    cost = np.maximum(-terms, 0.0).sum(axis=0)
    margin = bound_sum_rounding(sum(gains.shape), 1.0)
    covered = np.minimum(1.0, spare * (1 - margin) / np.where(cost > 0, cost, 1.0))
    mended = np.where(terms < 0, shares * covered, shares)
    free = np.flatnonzero(gains.max(axis=0) >= 0)
    mended[free, gains.argmax(axis=0)[free]] += _compute_remaining_mass(mended)[free]
    return mended


def build_post_processing(program: PostProcessingProgram[Any], shares: FloatArray) -> Mechanism:
    """Build the post-processing `Mechanism` from (M, N) weights; an added outcome takes the remaining mass.

    Its outcomes have the labels of the letters, and that one (), or a tuple around it that no letter is.
    """
    used = np.flatnonzero(program.prior.pmf @ program.given_mechanism.matrix @ shares > 0)
    matrix = np.column_stack([shares[:, used], _compute_remaining_mass(shares[:, used])])
    matrix /= matrix.sum(axis=1, keepdims=True)
    kept = np.flatnonzero(matrix.max(axis=0) > 0)
    rest: Label = ()
    while rest in program.prior.labels:
        rest = (rest,)
    labels = [*(program.prior.labels[x] for x in used), rest]
    return Mechanism(
        matrix[:, kept], program.given_mechanism.outputs, [labels[place] for place in kept]
    )


def _compute_remaining_mass(point: FloatArray) -> FloatArray:
    """Compute one minus the row sums, with rounding set to zero."""
    rest = np.maximum(0.0, 1 - point.sum(axis=1))
    # a few units in the last place of 1 are rounding
    return np.where(rest > 1e-15, rest, 0.0)


def certify_envelope(
    program: EnvelopeProgram, attack: Mechanism, multipliers: FloatArray | None
) -> EnvelopeCertificate:
    """Certify a post-processing (M, K) as a lower bound, and multipliers as an upper bound on the envelope.

    Where they prove nothing better, or there are none, it is that of [saeidian2026envelopes, Theorem 3].

    Raises:
        MechanismError: the post-processing or the multipliers do not fit the mechanism.
    """
    _check_sizes(program, attack, multipliers)
    values = [_compute_value(single, attack) for single in program.single_prior_programs]
    best = values.index(max(values))
    bound = math.inf
    max_level = program.simple_bound
    if multipliers is not None:
        bound = prove_level(program, multipliers, max_level)
    if not bound < max_level:
        multipliers = None
        bound = step_up_until(
            lambda level: program.rational_mechanism.is_bound_proved(program.delta, level, None),
            max_level,
        )
    return EnvelopeCertificate(
        mechanism=program.given_mechanism,
        value=values[best],
        bound=bound,
        prior=program.single_prior_programs[best].prior,
        over=program.over,
        delta=program.delta,
        attack=attack,
        multipliers=multipliers,
    )


def certify_failure(
    program: ProcessedFailureProgram, attack: Mechanism, multipliers: FloatArray | None
) -> ProcessedFailureCertificate:
    """Certify a post-processing (M, K) as lower bound, multipliers as upper bound on the probability.

    Where `1 / t` for each letter is better, which gives `sum_y max_x P[x,y] / t` [saeidian2026envelopes,
    Theorem 3], or zeros are, which give 1, those are taken.

    Raises:
        MechanismError: the post-processing or the multipliers do not fit the mechanism.
    """
    _check_sizes(program, attack, multipliers)
    exact = program.rational_mechanism
    epsilon = program.epsilon
    known = [
        program.pad_multipliers(np.full(program.prior.size, lam))
        for lam in (0.0, math.exp(-epsilon))
    ]
    if program.over is not None:
        known[0][-1] = 1.0  # the probabilities sum to one
    if multipliers is not None and np.isfinite(multipliers).all():
        known.append(multipliers)
    min_bound, best = min(
        (exact.bound_mass(epsilon, lam.tolist()), place) for place, lam in enumerate(known)
    )
    reached = [
        compute_reached_mass(single.rational_mechanism.compute_outcomes(attack.matrix), epsilon)
        for single in program.single_prior_programs
    ]
    value = max(reached)
    return ProcessedFailureCertificate(
        mechanism=program.given_mechanism,
        value=round_down_to_float(value),
        bound=round_up_to_float(min_bound),
        prior=program.single_prior_programs[reached.index(value)].prior,
        over=program.over,
        epsilon=epsilon,
        attack=attack,
        multipliers=known[best],
    )


def _check_sizes(
    program: PostProcessingProgram[Any], attack: Mechanism, multipliers: FloatArray | None
) -> None:
    """Raise an error where post-processing or multipliers have the wrong shape."""
    if len(attack.inputs) != len(program.given_mechanism.outputs):
        raise MechanismError(
            f"the post-processing has {len(attack.inputs)} rows: give one for each of the "
            f"{len(program.given_mechanism.outputs)} outputs of the mechanism"
        )
    if multipliers is not None and multipliers.shape != (program.multiplier_count,):
        raise MechanismError(
            f"there are {len(multipliers)} multipliers: give one for each of the {program.prior.size} letters"
            + ("" if program.over is None else ", and one of the sum of the probabilities")
        )


def _compute_value(program: EnvelopeProgram, attack: Mechanism) -> float:
    """Compute the leakage quantile after a post-processing, rounded down until it holds exactly.

    Where the mass of the likeliest leaks is short of delta by rounding only, the next outcome counts.
    """
    found = sorted(program.rational_mechanism.compute_outcomes(attack.matrix), reverse=True)
    mass = Fraction(0)
    level = 0.0
    for ratio, own in found:
        mass = mass + own
        level = math.log(ratio)
        if mass >= program.delta:
            break
    step = math.ulp(level)
    while level > 0 and compute_reached_mass(found, level) < program.delta:
        level = level - step
        step = 2 * step
    return max(level, 0.0)
