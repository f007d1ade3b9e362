"""The adversary's belief about a Markov secret after the releases so far, exact or by bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.data.chain import Chain
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import PML, RatioBound, Requirement

LEVEL_MARGIN_NATS = 1e-12
"""Nats of the level that steps leave free, each less than the one before, so that a constant has room."""


MIN_BELIEF_MASS = 1e-280
"""The probability below which a state is taken for one that cannot be."""


def compute_budgets(
    revealed_levels: FloatArray, epsilon: float, cap: float, time: int
) -> FloatArray:
    """Compute the leakage budget of the release at a time, given what was revealed before, in nats."""
    rest = epsilon - LEVEL_MARGIN_NATS - revealed_levels
    room = LEVEL_MARGIN_NATS / (time * (time + 1))
    # Of what is left of epsilon beyond the cap, what each release may use: so that the past falls away.
    return np.asarray(
        np.maximum(np.maximum(cap - LEVEL_MARGIN_NATS - revealed_levels, 0.1 * rest), room)
    )


@dataclass(frozen=True)
class BeliefTarget:
    """The protected target of a belief: which states or functions of the chain.

    Attributes:
        chain: the secret.
        width: how many states in a row; 0 for all of them.
        letters: (G, N) which states have each value of a function of the state; the unit matrix for itself.
    """

    chain: Chain
    width: int
    letters: FloatArray

    @cached_property
    def hides_future(self) -> bool:
        """Return whether future target values may leak more than the present one.

        Not where the kernels take states of one value to each value with the same chance: then the values
        are a chain.
        """
        values = self.letters.argmax(axis=0)
        first = np.array([int(np.argmax(values == value)) for value in values])
        moves = self.chain.kernels @ self.letters.T
        return bool(np.abs(moves - moves[:, first]).max() > 0)


@dataclass(frozen=True)
class TargetValues:
    """The protected values at one time, with their joint law with the present state.

    Attributes:
        time: of the state, or of the last one of a window of states.
        prior: (R,) their probabilities before any release.
        joint: (R, N) their probabilities jointly with the present state, after the releases so far.
    """

    time: int
    prior: FloatArray
    joint: FloatArray

    @property
    def lifts(self) -> FloatArray:
        """Return the (R,) ratios of posterior to prior probability."""
        return np.asarray(self.joint.sum(axis=1) / self.prior)

    @property
    def conditional_laws(self) -> FloatArray:
        """Return the (R, N) conditional laws of the present state given each value."""
        return np.asarray(self.joint / self.joint.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class ExactBelief:
    """The joint posterior of the present state and the target values, by exact Bayesian filtering.

    Attributes:
        asked: what is in question.
        time: of the present state.
        law: (N,) of the present state.
        pasts: the values that count, the last of them those of the present state or window.
        window: (prior, posterior) of the last states, with an axis for each.
        peaks: (N,) the largest lift of a path that ends in each state.
        level: the largest level of what counts no more.
    """

    asked: BeliefTarget
    time: int
    law: FloatArray
    pasts: tuple[TargetValues, ...]
    window: tuple[FloatArray, FloatArray]
    peaks: FloatArray
    level: float

    @classmethod
    def build_initial(cls, target: BeliefTarget) -> ExactBelief:
        """Build the belief before any release."""
        first = target.chain.initial
        peaks = np.where(first > 0, 1.0, 0.0)
        window = (first, first)
        return cls(
            target, 1, first, (_list_present_values(1, target, window),), window, peaks, -math.inf
        )

    @property
    def _possible_states(self) -> BoolArray:
        """Return the (N,) mask of states with a probability above `MIN_BELIEF_MASS`."""
        return self.law > MIN_BELIEF_MASS

    def build_requirement(self, epsilon: float, cap: float) -> Requirement:
        """Build the requirement on the next release from the final level epsilon and the current cap."""
        possible = self._possible_states
        law = self.law[possible]
        if not self.asked.width:
            told = np.log(self.peaks[possible])
            return PML(compute_budgets(told, epsilon, cap, self.time).tolist())
        rows = []
        each = []
        present = self.pasts[-1]
        most = np.full(len(self.law), math.inf)
        own = self.asked.width == 1 and len(self.asked.letters) == len(self.law)
        for values in (present, *self.pasts[:-1], *self._list_future_values):
            given = values.conditional_laws[:, possible]
            told = np.log(values.lifts)
            left = compute_budgets(told, epsilon, cap, self.time)
            # other bounds hold whatever is released, now or ever, or as means of those on the present state
            odds = (given / law).max(axis=1)
            binds = odds > np.exp(np.maximum(left, epsilon - LEVEL_MARGIN_NATS - told))
            if values is present:
                most[values.joint.argmax(axis=1)] = np.where(binds, np.exp(left), odds)
            elif own:
                binds &= given @ most[possible] > np.exp(left) * (1 - 1e-14)
            rows.append(given[binds])
            each.append(left[binds])
        numerators = np.vstack(rows)
        exponents = np.concatenate(each)
        if not len(exponents):
            return PML(Prior(law).max_leakage)  # whatever is told is within the level
        needed = _find_needed_rows(numerators * np.exp(-exponents)[:, None] - law)
        return RatioBound(
            numerators[needed], np.tile(law, (int(needed.sum()), 1)), exponents[needed]
        )

    @cached_property
    def _list_future_values(self) -> tuple[TargetValues, ...]:
        """Return the future values that may leak more than the present one, up to the chain's mixing time."""
        # Steps within which the chain has to forget where what is in question is not the state itself.
        most_ahead = 2000
        found: list[TargetValues] = []
        if not self.asked.hides_future:
            return ()
        chain = self.asked.chain
        before, _ = self.window
        moves = np.eye(chain.size)
        possible = self._possible_states
        for time in range(self.time, self.time + most_ahead):
            if chain.steps == time:
                return tuple(found)
            moves = moves @ chain.kernel(time)
            reached = moves[possible]
            # The same of a state to come by the present one: kernels are multiplied until their rows are that
            # near.
            if (np.ptp(reached, axis=0) <= 1e-13 * reached.max(axis=0)).all():
                return tuple(found)
            values = moves @ self.asked.letters.T
            prior = before @ values
            joint = (values * self.law[:, None]).T
            occurs = joint.any(axis=1)
            found.append(TargetValues(time + 1, prior[occurs], joint[occurs]))
        raise PrivacyError(
            f"the chain has not forgotten its state within {most_ahead} steps, so that what is told of "
            "states to come has no end: give a chain of so many states, or ask about the state"
        )

    def update(self, emits: FloatArray) -> tuple[ExactBelief, float, dict[int, float]]:
        """Update the belief by Bayes' rule after an output, given its (N,) likelihoods.

        Returns:
            The belief before the next release; the level of all releases so far; and what they reveal of
            which time, of the times that still count.
        """
        ratio = emits / float(self.law @ emits)
        pasts = [replace(values, joint=values.joint * ratio) for values in self.pasts]
        window = (self.window[0], self.window[1] * ratio)  # the last axis is the present state
        peaks = self.peaks * ratio
        if not self.asked.width:
            level = compute_log_lift(peaks.max())
            worst = {self.time: level}
        else:
            worst = {values.time: compute_log_lift(values.lifts.max()) for values in pasts}
            ahead = [
                compute_log_lift((values.joint @ ratio / values.prior).max())
                for values in self._list_future_values
            ]
            level = max(self.level, *worst.values(), *ahead)
        return replace(self, window=window, peaks=peaks)._propagate(pasts), level, worst

    def _propagate(self, pasts: Sequence[TargetValues]) -> ExactBelief:
        """Propagate the belief one step through the Markov kernel; None at the end of the chain."""
        chain = self.asked.chain
        width = self.asked.width
        if chain.steps == self.time:
            return replace(self, time=self.time + 1, law=np.zeros(chain.size), pasts=())
        kernel = chain.kernel(self.time)
        law = self.window[1].reshape(-1, chain.size).sum(axis=0) @ kernel
        law = law / law.sum()
        peaks = np.where(kernel > 0, self.peaks[:, None], 0.0).max(axis=0)
        if not width:
            return replace(self, time=self.time + 1, law=law, window=(law, law), peaks=peaks)
        kept = []
        level = self.level
        if self.time < width:
            pasts = ()  # the next window is longer, and tells all of this one
        for values in pasts:
            left = values.joint.any(axis=1)
            moved = replace(values, prior=values.prior[left], joint=values.joint[left] @ kernel)
            # How far what is believed of the present may differ by a past value that counts no more.
            if (np.abs(moved.conditional_laws - law) <= 1e-15 * law).all():
                level = max(level, compute_log_lift(moved.lifts.max()))
            else:
                kept.append(moved)
        longer = [table[..., None] * kernel for table in self.window]
        prior, posterior = (table.sum(axis=0) if table.ndim > width else table for table in longer)
        window = (prior, posterior)
        kept.append(_list_present_values(self.time + 1, self.asked, window))
        return ExactBelief(self.asked, self.time + 1, law, tuple(kept), window, peaks, level)


def _find_needed_rows(rows: FloatArray) -> BoolArray:
    """Find (K,) which constraints `<rows_k, v> <= 0` on v >= 0 are not redundant.

    Row j follows from row i where `rows_j <= s rows_i` for some s >= 0. Of rows that follow from each other
    one is required.
    """
    kept = np.ones(len(rows), dtype=bool)
    # by columns: a row of all quotients at once is compared in a few instructions
    every = np.ascontiguousarray(rows.T)
    above = np.where(every > 0, every, np.nan)
    below = np.where(every < 0, every, np.nan)
    zero = every == 0
    for j, row in enumerate(rows[:, :, None]):
        # s is at least the quotients by positive entries of row i, and at most those by negative ones
        least = np.fmax.reduce(row / above, axis=0, initial=0.0)
        most = np.fmin.reduce(row / below, axis=0, initial=np.inf)
        follows = kept & (least <= most) & ~(zero & (row > 0)).any(axis=0)
        follows[j] = False
        kept[j] = not follows.any()
    return kept


def _list_present_values(
    time: int, target: BeliefTarget, window: tuple[FloatArray, FloatArray]
) -> TargetValues:
    """Return the target values of the window of states that ends now, or of a function of the state."""
    n = target.chain.size
    if target.width == 1:
        prior = target.letters @ window[0]
        joint = target.letters * window[1]
    else:
        prior = window[0].reshape(-1)
        joint = np.zeros((len(prior), n))
        joint[np.arange(len(prior)), np.arange(len(prior)) % n] = window[1].reshape(-1)
    occurs = (prior > 0) & joint.any(axis=1)
    return TargetValues(time, prior[occurs], joint[occurs])


def compute_log_lift(lift: float) -> float:
    """Return the logarithm of a lift; -inf of 0."""
    return math.log(lift) if lift > 0 else -math.inf


@dataclass(frozen=True)
class BoundedBelief:
    """The adversary's belief as interval bounds that hold for every Markov kernel of a set.

    For each of them there is a factor s > 0 such that `B[x] = s P(X_t = x, h)` and, for a value a of a past
    or present state X_s, `w_a[x] = s (P(X_t = x, h | X_s = a) - e^epsilon P(X_t = x, h))` are within the
    bounds here. The level about a is within epsilon iff `sum_x w_a[x] <= 0`; an output with the chances v in
    each state multiplies B and w_a by v, and a move of the chain, by its kernel. Both keep an order of
    vectors, so that bounds move as what they bound. A release requires `max <w_a, v> <= 0` over the w_a
    within the bounds,

        sum_x over_a[x] v[x] <= slack_a v[x']    for each x',    slack_a = sum_x over_a[x] - sums_a

    which are ratio bounds that a constant v meets.

    Attributes:
        chain: with bounds on its kernels.
        epsilon: of the stream, in nats.
        time: of the present state.
        low: (N,) at most B.
        high: (N,) at least B.
        total: (2,) bounds on the sum of B.
        prior: (2, N) bounds on the law of the present state before any release.
        times: (R,) s of each kept pair of a time and a value.
        states: (R,) a.
        over: (R, N) at least w_a.
        sums: (R,) at least the sum of w_a.
        level: the largest level of pairs that are not kept: at no time will more be revealed of them.
    """

    SLACK_RTOL: ClassVar[float] = 1e-14
    """The share of a sum that rounding may have taken for slack; what is slack may be left out."""

    chain: Chain
    epsilon: float
    time: int
    low: FloatArray
    high: FloatArray
    total: tuple[float, float]
    prior: FloatArray
    times: IntArray
    states: IntArray
    over: FloatArray
    sums: FloatArray
    level: float

    @classmethod
    def build_initial(cls, chain: Chain, epsilon: float) -> BoundedBelief:
        """Build the bounds before any release: the law of the first state."""
        first = chain.initial
        none = np.zeros(0, dtype=np.int64)
        prior = np.stack([first, first])
        empty = np.zeros((0, chain.size)), np.zeros(0)
        start = cls(
            chain, epsilon, 1, first, first, (1.0, 1.0), prior, none, none, *empty, -math.inf
        )
        return start._add_present_values(1.0)

    @property
    def law(self) -> FloatArray:
        """Return a (N,) law of the present state within the bounds."""
        middle = (self.low + self.high) / 2
        return middle / (middle.sum() or 1.0)

    @property
    def _possible_states(self) -> BoolArray:
        """Return the (N,) mask of states with a probability above `MIN_BELIEF_MASS` in the middle law."""
        return self.law > MIN_BELIEF_MASS

    @property
    def _compute_entry_slack(self) -> FloatArray:
        """Return (R,) the additional slack of entrywise bounds over sum bounds; 0 up to rounding."""
        slack = self.over[:, self._possible_states].sum(axis=1) - self.sums
        rounding = self.SLACK_RTOL * np.abs(self.over).sum(axis=1)
        return np.asarray(np.where(slack > rounding, slack, 0.0))

    def build_requirement(self, epsilon: float, cap: float) -> Requirement:
        """Build the requirement on the next release from the final level epsilon and the current cap."""
        possible = self._possible_states
        lifts = _bound_lifts(self.epsilon, self.sums, self.total)
        told = np.log(np.maximum(lifts, 1e-300))
        budgets = compute_budgets(told, epsilon, cap, self.time)
        more = math.exp(epsilon) - np.exp(told + budgets)
        up = more >= 0
        rows = self.over + more[:, None] * np.where(up[:, None], self.high, self.low)
        ends = np.where(up, self.total[1], self.total[0])
        mass = np.where(up, self.high[possible].sum(), self.low[possible].sum())
        slack = self._compute_entry_slack + more * (mass - ends)
        rounding = self.SLACK_RTOL * np.abs(rows).sum(axis=1)
        slack = np.where(slack > rounding, slack, 0.0)
        rows = rows[:, possible]
        binds = (rows > 0).any(axis=1) & (self.over[:, possible] > 0).any(axis=1)
        above = np.maximum(rows[binds], 0.0)
        below = np.maximum(-rows[binds], 0.0)
        slack = slack[binds]
        exact = slack == 0
        n = int(possible.sum())
        numerators = np.vstack([above[exact], np.repeat(above[~exact], n, axis=0)])
        shares = slack[~exact, None, None] * np.eye(n) + below[~exact, None, :]
        denominators = np.vstack([below[exact], shares.reshape(-1, n)])
        if not len(numerators):
            return PML(-math.log(self.law[possible].min()))  # whatever is told is within the level
        upper = numerators.sum(axis=1)
        lower = denominators.sum(axis=1)
        each = np.log(lower / upper)
        if each.min() < 0:
            # nothing can be told of which the bounds show that it is within the level
            return PML(0.0)
        return RatioBound(numerators / upper[:, None], denominators / lower[:, None], each)

    def update(self, emits: FloatArray) -> tuple[BoundedBelief, float, dict[int, float]]:
        """Update the bounds after an output; see `ExactBelief.update`."""
        possible = self._possible_states
        v = emits / float(self.law @ emits)
        least = float(v[possible].min())
        most = float(v[possible].max())
        sums = np.where(
            self._compute_entry_slack > 0,
            self.over @ v - self._compute_entry_slack * least,
            self.over @ v,
        )
        (fewest, largest), above, below = self.total, self.high.sum(), self.low.sum()
        ends = (
            max(
                self.low @ v + max(fewest - below, 0.0) * least,
                self.high @ v - max(above - fewest, 0.0) * most,
            ),
            min(
                self.high @ v - max(above - largest, 0.0) * least,
                self.low @ v + max(largest - below, 0.0) * most,
            ),
        )
        total = min(ends), max(ends)  # but for rounding they are in this order
        lifts = _bound_lifts(self.epsilon, sums, total)
        level = max(self.level, compute_log_lift(lifts.max(initial=0.0)))
        told = replace(
            self, low=self.low * v, high=self.high * v, total=total, over=self.over * v, sums=sums
        )
        moved, ever = told._propagate(lifts)
        worst = {
            int(time): compute_log_lift(ever[self.times == time].max())
            for time in np.unique(self.times)
        }
        return moved, level, worst

    def _propagate(self, lifts: FloatArray) -> tuple[BoundedBelief, FloatArray]:
        """Propagate the bounds one step, and return also the (R,) leakage of pairs that are dropped."""
        n = self.chain.size
        if self.chain.steps == self.time:
            return replace(self, time=self.time + 1, low=np.zeros(n), high=np.zeros(n)), lifts
        lower, upper = self.chain.kernel_bounds(self.time)
        low, high = _tighten_bounds(self.low @ lower, self.high @ upper, self.total)
        prior = np.stack(_tighten_bounds(self.prior[0] @ lower, self.prior[1] @ upper, (1.0, 1.0)))
        over = np.maximum(self.over, 0.0) @ upper - np.maximum(-self.over, 0.0) @ lower
        # what is revealed of a value, given the present state, at most: at later times means of it
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(over < 0, over / high, np.where(over > 0, math.inf, 0.0))
        ends = np.where(high > 0, ends, -math.inf).max(axis=1) + math.exp(self.epsilon)
        # Steps after which a value is left out where epsilon bounds what will ever be revealed of it.
        done = ends <= np.where(
            self.times > self.time - 50, lifts * (1 + 1e-12), math.exp(self.epsilon)
        )
        kept = ~done
        settled = max(self.level, compute_log_lift(ends[done].max(initial=0.0)))
        moved = replace(
            self,
            time=self.time + 1,
            low=low,
            high=high,
            prior=prior,
            level=settled,
            times=self.times[kept],
            states=self.states[kept],
            over=over[kept],
            sums=self.sums[kept],
        )
        most = float(lifts[self.times == self.time].max(initial=0.0))
        return moved._add_present_values(most), np.where(done, ends, lifts)

    def _add_present_values(self, max_lift: float) -> BoundedBelief:
        """Add the values of the present state, with lifts of at most `max_lift`."""
        factor = math.exp(self.epsilon)
        states = np.flatnonzero((self.prior[1] > 0) & (self.high > 0))
        with np.errstate(divide="ignore"):
            ratios = self.high[states] / self.prior[0][states]
        ratios = np.minimum(ratios, max_lift * self.total[1])  # B[a] / P(X_t = a)
        over = np.tile(-factor * self.low, (len(states), 1))
        over[np.arange(len(states)), states] += ratios
        rest = max_lift - factor
        sums = np.minimum(ratios - factor * self.total[0], rest * self.total[0 if rest <= 0 else 1])
        return replace(
            self,
            times=np.concatenate([self.times, np.full(len(states), self.time)]),
            states=np.concatenate([self.states, states]),
            over=np.vstack([self.over, over]),
            sums=np.concatenate([self.sums, sums]),
        )


def _bound_lifts(epsilon: float, sums: FloatArray, total: tuple[float, float]) -> FloatArray:
    """Bound (R,) lifts by e^epsilon times a ratio of sums."""
    return math.exp(epsilon) + np.where(sums <= 0, sums / total[1], sums / total[0])


def _tighten_bounds(
    low: FloatArray, high: FloatArray, total: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Tighten interval bounds by the bounds on their sum."""
    if np.array_equal(low, high):
        return low, high
    tighter = np.minimum(high, total[1] - (low.sum() - low))
    raised = np.maximum(low, total[0] - (high.sum() - high))
    return np.minimum(raised, tighter), np.maximum(raised, tighter)
