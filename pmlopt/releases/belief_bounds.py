"""Bounds on what is believed of a secret that moves by kernels that are known within bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray
from pmlopt.data.chain import Chain
from pmlopt.model.privacy import PML, RatioBound, Requirement
from pmlopt.releases.belief import RARE, budgets, log_of

ROUNDING = 1e-14
"""The share of a sum that rounding may have taken for slack; what is slack may be left out."""

OPEN_STEPS = 50
"""Steps after which a value is left out where epsilon bounds what will ever be told of it."""


@dataclass(frozen=True)
class BoundedBelief:
    """What holds of the belief under each kernel of a set.

    For each of them there is a factor s > 0 such that `B[x] = s P(X_t = x, h)` and, for a value a of a past
    or present state X_s, `w_a[x] = s (P(X_t = x, h | X_s = a) - e^epsilon P(X_t = x, h))` are within the
    bounds here. The level about a is within epsilon iff `sum_x w_a[x] <= 0`; an output with the chances v in
    each state multiplies B and w_a by v, and a move of the chain, by its kernel. Both keep an order of
    vectors, so that bounds move as what they bound. A release asks `max <w_a, v> <= 0` over the w_a within
    the bounds,

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
        level: the largest level of pairs that are not kept: at no time will more be told of them.
    """

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
    def begun(cls, chain: Chain, epsilon: float) -> BoundedBelief:
        """The belief before any release: the law of the first state, and its values."""
        first, none = chain.initial, np.zeros(0, dtype=np.int64)
        prior = np.stack([first, first])
        empty = np.zeros((0, chain.size)), np.zeros(0)
        start = cls(chain, epsilon, 1, first, first, (1.0, 1.0), prior, none, none, *empty, -math.inf)
        return start._with_present(1.0)

    @property
    def law(self) -> FloatArray:
        """(N,) one law of the present state that is within the bounds."""
        middle = (self.low + self.high) / 2
        return np.asarray(middle / (middle.sum() or 1.0))

    @property
    def _possible(self) -> BoolArray:
        return np.asarray(self.law > RARE)

    @property
    def _slack(self) -> FloatArray:
        """(R,) what the bounds on entries allow beyond those on sums; rounding is no slack."""
        slack = self.over[:, self._possible].sum(axis=1) - self.sums
        return np.asarray(np.where(slack > ROUNDING * np.abs(self.over).sum(axis=1), slack, 0.0))

    def requirement(self, epsilon: float, cap: float) -> Requirement:
        """On the states that can be now, for a level of epsilon in the end, and the cap now."""
        possible = self._possible
        told = np.log(np.maximum(_lifts(self.epsilon, self.sums, self.total), 1e-300))
        more = math.exp(epsilon) - np.exp(told + budgets(told, epsilon, cap, self.time))
        up = more >= 0
        rows = self.over + more[:, None] * np.where(up[:, None], self.high, self.low)
        ends = np.where(up, self.total[1], self.total[0])
        slack = self._slack + more * (
            np.where(up, self.high[possible].sum(), self.low[possible].sum()) - ends
        )
        slack = np.where(slack > ROUNDING * np.abs(rows).sum(axis=1), slack, 0.0)
        rows = rows[:, possible]
        binds = (rows > 0).any(axis=1) & (self.over[:, possible] > 0).any(axis=1)
        above, below = np.maximum(rows[binds], 0.0), np.maximum(-rows[binds], 0.0)
        slack = slack[binds]
        exact = slack == 0
        n = int(possible.sum())
        numerators = np.vstack([above[exact], np.repeat(above[~exact], n, axis=0)])
        shares = slack[~exact, None, None] * np.eye(n) + below[~exact, None, :]
        denominators = np.vstack([below[exact], shares.reshape(-1, n)])
        if not len(numerators):
            return PML(-math.log(self.law[possible].min()))  # whatever is told is within the level
        sides = numerators.sum(axis=1), denominators.sum(axis=1)
        each = np.log(sides[1] / sides[0])
        if each.min() < 0:
            return PML(0.0)  # nothing can be told of which the bounds show that it is within the level
        return RatioBound(numerators / sides[0][:, None], denominators / sides[1][:, None], each)

    def after(self, emits: FloatArray) -> tuple[BoundedBelief, float, dict[int, float]]:
        """What is believed after an output, as `ExactBelief.after` says."""
        possible = self._possible
        v = emits / float(self.law @ emits)
        least, most = float(v[possible].min()), float(v[possible].max())
        sums = np.where(self._slack > 0, self.over @ v - self._slack * least, self.over @ v)
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
        lifts = _lifts(self.epsilon, sums, total)
        level = max(self.level, log_of(lifts.max(initial=0.0)))
        told = replace(self, low=self.low * v, high=self.high * v, total=total, over=self.over * v, sums=sums)
        moved, ever = told._moved(lifts)
        worst = {int(time): log_of(ever[self.times == time].max()) for time in np.unique(self.times)}
        return moved, level, worst

    def _moved(self, lifts: FloatArray) -> tuple[BoundedBelief, FloatArray]:
        """The belief before the next release, and (R,) what is told of each pair: for ever, if not kept."""
        n = self.chain.size
        if self.chain.steps == self.time:
            return replace(self, time=self.time + 1, low=np.zeros(n), high=np.zeros(n)), lifts
        lower, upper = self.chain.ends(self.time)
        low, high = _within_sums(self.low @ lower, self.high @ upper, self.total)
        prior = np.stack(_within_sums(self.prior[0] @ lower, self.prior[1] @ upper, (1.0, 1.0)))
        over = np.maximum(self.over, 0.0) @ upper - np.maximum(-self.over, 0.0) @ lower
        # what is told of a value, given the present state, at most: at later times means of it
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(over < 0, over / high, np.where(over > 0, math.inf, 0.0))
        ends = np.where(high > 0, ends, -math.inf).max(axis=1) + math.exp(self.epsilon)
        done = ends <= np.where(
            self.times > self.time - OPEN_STEPS, lifts * (1 + 1e-12), math.exp(self.epsilon)
        )
        kept, settled = ~done, max(self.level, log_of(ends[done].max(initial=0.0)))
        moved = replace(
            self, time=self.time + 1, low=low, high=high, prior=prior, level=settled, times=self.times[kept],
            states=self.states[kept], over=over[kept], sums=self.sums[kept],
        )  # fmt: skip
        most = float(lifts[self.times == self.time].max(initial=0.0))
        return moved._with_present(most), np.where(done, ends, lifts)

    def _with_present(self, most: float) -> BoundedBelief:
        """With the values of the present state, of none of which a lift is more than `most`."""
        factor = math.exp(self.epsilon)
        states = np.flatnonzero((self.prior[1] > 0) & (self.high > 0))
        with np.errstate(divide="ignore"):
            ratios = self.high[states] / self.prior[0][states]
        ratios = np.minimum(ratios, most * self.total[1])  # B[a] / P(X_t = a)
        over = np.tile(-factor * self.low, (len(states), 1))
        over[np.arange(len(states)), states] += ratios
        rest = most - factor
        sums = np.minimum(ratios - factor * self.total[0], rest * self.total[0 if rest <= 0 else 1])
        return replace(
            self,
            times=np.concatenate([self.times, np.full(len(states), self.time)]),
            states=np.concatenate([self.states, states]),
            over=np.vstack([self.over, over]),
            sums=np.concatenate([self.sums, sums]),
        )


def _lifts(epsilon: float, sums: FloatArray, total: tuple[float, float]) -> FloatArray:
    """(R,) bounds on lifts: e^epsilon and the sum of w over that of B."""
    return np.asarray(math.exp(epsilon) + np.where(sums <= 0, sums / total[1], sums / total[0]))


def _within_sums(
    low: FloatArray, high: FloatArray, total: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """The same bounds on entries, with what bounds on their sum say of each."""
    if np.array_equal(low, high):
        return low, high
    tighter = np.minimum(high, total[1] - (low.sum() - low))
    raised = np.maximum(low, total[0] - (high.sum() - high))
    return np.minimum(raised, tighter), np.maximum(raised, tighter)
