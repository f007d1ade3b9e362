"""The probability of outcomes that leak a level, in rational arithmetic: the basis of envelope proofs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.arrays import MAX_EXPONENT, BoolArray, FloatArray, IntArray
from pmlopt.data.prior import Prior
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.programs.exact.rounding import round_exp_down, round_exp_up, scale_to_integers

Integers = NDArray[Any]
"""Python integers in an object array."""


Outcomes = list[tuple[Fraction, Fraction]]
"""Outcomes of a post-processing: the largest likelihood ratio, e to the leakage, and the probability."""


@dataclass(frozen=True, eq=False)
class RationalMechanism:
    """A prior and a mechanism in integers: `P[x,y] = columns[x,y] / total`, `q[y] = law[y] / total`.

    Floats are dyadic rationals; the prior and the rows are taken over their sums.

    Attributes:
        matrix: (N, M) the floats.
        columns: (N, M) the rows over their sums, times `total`.
        laws: the law of the output, (M,) times `total`; over a set of priors the least probabilities of the
            outputs, and the largest.
        total: the denominator.
    """

    matrix: FloatArray
    columns: Integers
    laws: tuple[Integers, ...]
    total: int

    @classmethod
    def from_floats(
        cls, prior: Prior, matrix: FloatArray, over: PriorSet | None = None
    ) -> RationalMechanism:
        """Convert the floats of a prior, or of all priors of a set, and of an (N, M) matrix to rationals."""
        # one common denominator for the matrix: sums and comparisons are then exact
        entries = scale_to_integers(matrix)
        sums = entries.sum(axis=1)
        rows = math.lcm(*sums.tolist())
        columns = entries * (rows // sums)[:, None]
        laws: tuple[Integers, ...]
        if over is None:
            weights = prior.integer_weights
            unit = int(weights.sum())
            laws = (weights @ columns,)
        else:
            least, unit = over.min_mean_scaled(columns)
            negative, other = over.min_mean_scaled(-columns)
            # both ends in one unit, or their differences mean nothing
            if other != unit:
                least = least * other
                negative = negative * unit
                unit = unit * other
            unit = int(unit)
            laws = (least, -negative)
        return cls(matrix, columns * unit, laws, unit * rows)

    def compute_outcomes(self, attack: FloatArray) -> Outcomes:
        """Compute likelihood ratio and mass of each outcome of an (M, K) post-processing that occurs."""
        entries = scale_to_integers(attack)
        sums = entries.sum(axis=1)
        rows = math.lcm(*sums.tolist())
        after = self.matrix @ attack
        law, *_ = self.laws
        found = []
        for z in np.flatnonzero(after.max(axis=0) > 0).tolist():
            x = int(after[:, z].argmax())  # any letter proves that it leaks, and the likeliest most
            used = np.flatnonzero(attack[:, z])
            shares = entries[used, z] * (rows // sums[used])
            mass = int((law[used] * shares).sum())
            ratio = Fraction(int((self.columns[x, used] * shares).sum()), mass)
            found.append((ratio, Fraction(mass, self.total * rows)))
        return found

    def scaled_excesses(self, ratio: Fraction) -> list[Integers]:
        """Compute the integers (N, M) proportional to `P[x,y] - t q[y]`, for each output law."""
        return [self.columns * ratio.denominator - law * ratio.numerator for law in self.laws]

    def compute_gains(self, level: float) -> FloatArray:
        """Compute `P[x,y] - t q[y]` as floats, with a rational t just above e^level.

        Differences that floats would take for rounding have their sign here. Over a set the outputs are there
        twice, with their least and with their largest probability.
        """
        ratio = round_exp_up(level)
        return np.asarray(
            np.hstack(self.scaled_excesses(ratio)) / (self.total * ratio.denominator), dtype=float
        )

    def bound_mass(
        self,
        level: float,
        multipliers: Sequence[float | Fraction],
        left_out: BoolArray | None = None,
    ) -> Fraction:
        """Bound by multipliers the mass of post-processed outcomes that leak `level` nats or more.

        `sum_y max(0, max_x (q[y] + lam[x] (P[x,y] - t q[y])))`, with a rational t of at most e^level;
        negative lam count for nothing. Over a set of priors the last multiplier, which may have any sign, is
        that of the sum of the probabilities; see `multipliers.find_ratio_by_newton`.

        Levels past `MAX_EXPONENT` count as that. Through the letters of `left_out` nothing leaks: any
        lam, however large, will do for them.
        """
        # as many binary digits after the point as the rational below e^level has
        ratio_bits = 192
        below = round_exp_down(min(level, MAX_EXPONENT))
        # rounded down once more: few digits keep the integers below short
        ratio = Fraction((below.numerator << ratio_bits) // below.denominator, 1 << ratio_bits)
        n = len(self.columns)
        taking = np.arange(n) if left_out is None else np.flatnonzero(~left_out)
        parts = [u.as_integer_ratio() for u in (*multipliers, *[0] * (n + 1))][: n + 1]
        # multipliers as integers over a common denominator
        unit = math.lcm(*(below for _, below in parts))
        *given, rest = [above * (unit // below) for above, below in parts]
        lam = np.array(given, dtype=object)[taking]
        # a letter without a multiplier adds only the 0 of the maximum
        used = np.flatnonzero(lam > 0)
        weights = lam[used]
        whole = unit * ratio.denominator  # every term below is over total * whole
        total = rest * ratio.denominator
        ends = []
        for law in self.laws:
            values = 0 * law
            if len(used):
                outputs, rivals = self._list_candidates(
                    law, float(ratio), taking[used], weights, unit
                )
                terms = self.columns[taking[used][rivals], outputs] * ratio.denominator
                terms = weights[rivals] * (terms - law[outputs] * ratio.numerator)
                best = np.maximum.reduceat(terms, np.searchsorted(outputs, np.arange(len(law))))
                values = np.maximum(values, best) if len(used) < len(taking) else best
            ends.append(np.maximum(law * whole + values, 0) - total * law)
        return Fraction(int(np.max(ends, axis=0).sum()) + total * self.total, self.total * whole)

    def _list_candidates(
        self, law: Integers, ratio: float, letters: IntArray, weights: Integers, unit: int
    ) -> tuple[IntArray, IntArray]:
        """List for each output the letters x that may attain the maximum of `lam[x] (P[x,y] - t q[y])`.

        The terms are `lam[x] (P[x,y] - t q[y])`. Floats rule out those that are further below the largest
        than what rounding may hide: on a large matrix integers of thousands of digits are left to one or
        two letters of each output. What floats cannot hold is never ruled out.
        """
        lam = np.array([_divide_to_float(weight, unit) for weight in weights])[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            given = self.matrix[letters] / self.matrix[letters].sum(axis=1, keepdims=True)
            required = ratio * np.asarray(law / self.total, dtype=float)
            values = lam * (given - required)
            size = lam * (given + required)
            # floats as small as 1e-300, and their products, have fewer digits
            error = 2 * (len(law) + 16) * float(np.finfo(float).eps) * size + 1e-300 * (1 + lam)
            below = values + error < (values - error).max(axis=0)
        outputs, rivals = np.nonzero(~below.T)
        return outputs, rivals

    def is_bound_proved(self, delta: float, bound: float, multipliers: FloatArray | None) -> bool:
        """Return whether multipliers prove that leakage above `bound` has probability below delta, exactly.

        By multipliers; without, because no output leaks more, or by maximal leakage: post-processing does not
        raise `sum_y max_x P[x,y]`, and to it outcomes that leak more than log t give more than t times their
        mass.

        Source: [saeidian2026envelopes, Theorem 3].
        """
        if bound < 0:
            return False
        if multipliers is not None:
            return self.bound_mass(bound, multipliers.tolist()) < Fraction(delta)
        ratio = round_exp_down(bound)
        if all((over <= 0).all() for over in self.scaled_excesses(ratio)):
            return True
        return Fraction(int(self.columns.max(axis=0).sum()), self.total) <= Fraction(delta) * ratio


def _divide_to_float(above: int, below: int) -> float:
    """Divide two integers, and round the quotient to a float, infinite on overflow."""
    try:
        return above / below
    except OverflowError:
        return math.inf


def compute_reached_mass(outcomes: Outcomes, level: float) -> Fraction:
    """Compute the mass of the outcomes that leak `level` nats or more, by a rational of at least e^level.

    At level 0 all do: of every outcome, the largest conditional probability is at least the mean. Levels
    above `MAX_EXPONENT` count as out of reach.
    """
    if level <= 0:
        return Fraction(len(outcomes) > 0)
    # beyond the exponent no outcome of a float mechanism reaches the ratio
    if level > MAX_EXPONENT:
        return Fraction(0)
    ratio = round_exp_up(level)
    return sum((mass for own, mass in outcomes if own >= ratio), Fraction(0))


def bound_leaking_mass(
    prior: Prior, matrix: FloatArray, epsilon: float, margins: FloatArray
) -> Fraction | None:
    """Bound the mass of outcomes leaking more than epsilon under any post-processing, from dual margins.

    For every t above e^epsilon the multipliers `1 / s` of the worst post-processing's linear program
    prove that outcomes that leak log t or more have less mass than this, or none; a letter with the
    margin 0 takes part in none. None where such a letter has a likelihood ratio above e^epsilon, or a margin
    is negative or not finite.

    Source: [saeidian2026envelopes, Theorem 2], by the dual of `envelope`'s linear program.

    Examples:
        >>> flip = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> bound_leaking_mass(Prior.uniform(2), flip, 0.5, np.zeros(2))  # level log 1.5
        Fraction(0, 1)
        >>> bound_leaking_mass(Prior.uniform(2), flip, 0.4, np.zeros(2)) is None
        True
        >>> round(float(bound_leaking_mass(Prior.uniform(2), flip, 0.4, np.array([0.5, 0.5]))), 6)
        1.016351
    """
    # a negative margin would turn the inequality round
    if not (np.isfinite(margins).all() and (margins >= 0).all()):
        return None
    exact = RationalMechanism.from_floats(prior, matrix)
    closed = margins == 0
    if any(
        (over[closed] > 0).any()
        for over in exact.scaled_excesses(round_exp_down(min(epsilon, MAX_EXPONENT)))
    ):
        return None
    # no letter takes part: no outcome leaks more than epsilon
    if closed.all():
        return Fraction(0)
    return exact.bound_mass(
        epsilon, [1 / Fraction(s) if s else 0 for s in margins.tolist()], closed
    )
