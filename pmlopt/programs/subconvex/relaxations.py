"""Upper bounds on reduced values of a family's columns: fractional knapsacks, line searches, chords."""

from __future__ import annotations

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.columns import BoxFamily, ColumnCone, Family, StaircaseFamily
from pmlopt.programs.subconvex.columns import MASS_SUM_TOLERANCE, ColumnUtility


def bound_family(kernel: ColumnUtility, family: Family, rho: FloatArray) -> float:
    """Compute an upper bound on `mu(lam) - <p rho, lam>` over the columns of a family.

    For a box phi is replaced by its chords, which leaves a fractional knapsack. For staircases the cost of
    a set is replaced by that of the cheapest letters up to its mass, which leaves one variable.
    """
    if family.is_constant_only:
        return kernel.evaluate_phi(1.0) - float(kernel.p @ rho)
    if isinstance(family, BoxFamily):
        base = kernel.evaluate_phi(family.low) - family.low * float(kernel.p @ rho)
        knapsack = FractionalKnapsack(kernel, family, rho)
        filled = knapsack.fill_mass(0, np.array([1 - family.low]))
        return base + float(filled[0])
    return bound_staircases(kernel, family, rho)[0]


def find_closed_multipliers(kernel: ColumnUtility, family: Family) -> FloatArray:
    """Return multipliers with a closed-form bound: chord slopes of a box, zeros for staircases.

    For mutual information under PML the bound is `sum_x p[x] min(eps, -log p[x])`.
    """
    return kernel.chord_slopes(family) if isinstance(family, BoxFamily) else np.zeros(len(kernel.p))


class FractionalKnapsack:
    """The fractional knapsack relaxation of pricing a box family, with letters sorted by gain density."""

    def __init__(self, kernel: ColumnUtility, box: BoxFamily, rho: FloatArray) -> None:
        p = kernel.p
        # phi is at most its chord on a letter's range, so that this is an upper bound per mass
        gain = kernel.chord_slopes(box) - rho
        self.order = np.argsort(-gain, kind="stable")
        self.gain = gain[self.order]
        self.room = (p * (kernel.max_entries(box) - box.low))[self.order]
        # prefix sums make each later query one bisection
        self._filled = np.concatenate([[0.0], np.cumsum(self.room)])
        self._gained = np.concatenate([[0.0], np.cumsum(self.room * self.gain)])

    def fill_mass(self, start: int, mass: FloatArray) -> FloatArray:
        """Compute the (K,) largest gains of filling a mass by letters from `start` on; -inf if infeasible."""
        # letters before `start` are skipped by an offset, without sums of their own
        target = self._filled[start] + mass
        whole = np.searchsorted(self._filled, target, side="right") - 1
        last = np.minimum(whole, len(self.gain) - 1)
        partial = (target - self._filled[last]) * self.gain[last]
        value = self._gained[last] - self._gained[start] + partial
        # slightly past the total is rounding; more means that no column of mean one exists
        return np.where(target <= self._filled[-1] + MASS_SUM_TOLERANCE, value, -np.inf)


_MAX_HALVINGS, _MAX_INTERVALS, _VALUE_RTOL = 40, 20_000, 1e-8
"""Halvings of the interval of masses, parts that are looked at, and the share of the largest worth left."""


def bound_staircases(
    kernel: ColumnUtility,
    family: StaircaseFamily,
    rho: FloatArray,
    cutoff: float = -np.inf,
    edge: float | None = None,
) -> tuple[float, float, float]:
    """Bound the reduced values of staircases, and locate the masses where they may exceed `cutoff`.

    Their cost is replaced by that of the cheapest letters up to a mass, or by its tangent of the slope
    `edge`. The rest depends on the mass s only: `s phi(m + step) + (1 - s) phi(m) - m <p, rho> - step
    K(s)`, with m and the step falling in s and K convex. The interval of s is bisected, each part bounded by
    its ends.
    """
    phi = kernel.phi
    p = kernel.p
    costs = kernel.p * rho
    order = np.argsort(rho, kind="stable")
    # K(s): the cost of the cheapest letters of total mass s, piecewise linear and convex
    mass = np.concatenate([[0.0], np.cumsum(p[order])])
    cost = np.concatenate([[0.0], np.cumsum(costs[order])])
    if edge is not None:
        # a tangent of the convex K is below it, so that the bound stays valid
        saved = float((p * np.minimum(rho - edge, 0)).sum())
        cost = saved + edge * mass
    total = float(costs.sum())
    valley = float(mass[int(cost.argmin())])
    room = min(family.max_mass, 1.0)
    # cells end at the kinks of K: within a cell it is linear, so its ends bound it
    edges = np.unique(np.append(mass[mass < room], min(room, float(mass[-1]))))
    ends = np.stack([edges[:-1], edges[1:]])
    best = -np.inf
    slack = 0.0
    bounds = np.full(1, np.inf)
    for _ in range(_MAX_HALVINGS):
        # (2, B): the lower and the upper ends of all cells at once
        low, step, _ = family.compute_values(ends, np.zeros(ends.shape))
        low = np.maximum(low, 0.0)
        tops = phi(low + step)
        feet = phi(low)
        spent = np.interp(ends, mass, cost)
        worths = ends * tops + (1 - ends) * feet
        best = max(best, float((worths - low * total - step * spent).max()))
        # convex K is least at its valley where that is inside, else at an end
        has_valley = (ends[0] < valley) & (valley < ends[1])
        least = np.where(has_valley, cost.min(), spent.min(axis=0))
        # each term at its own best end: more than any one mass attains, hence an upper bound
        inside = (ends * tops.max(axis=0)).max(axis=0)
        outside = ((1 - ends) * feet.max(axis=0)).max(axis=0)
        bounds = inside + outside - (low * total).min(axis=0) - (step * least).min(axis=0)
        # without it cells whose bound ties with the best would be halved for ever
        slack = max(slack, _VALUE_RTOL * float(np.abs(worths).max()))
        promising = bounds > (best + slack if cutoff == -np.inf else cutoff)
        if not promising.any():
            return max(best + slack, cutoff), room, room
        # the bounds found so far are valid: stopping costs sharpness only
        if promising.sum() > _MAX_INTERVALS:
            break
        left, right = ends = ends[:, promising]
        middle = (left + right) / 2
        ends = np.stack([np.append(left, middle), np.append(middle, right)])
    return float(bounds.max()), float(ends[0].min()), float(ends[1].max())


class ChordBound:
    """An upper bound on `mu(lam) - <p rho, lam>` over a cone, by the chords of phi.

    It is far from sharp where columns take three values or more.

    Attributes:
        caps: (N,) the largest entry at each letter.
        slopes: (N,) the slopes of the chords: multipliers under which it is a bound in closed form.
    """

    def __init__(self, kernel: ColumnUtility, cone: ColumnCone) -> None:
        self.kernel = kernel
        self.cone = cone
        p = kernel.p
        # support functions of the unit directions are the largest and least entries of columns
        units = np.diag(1 / p)
        self.caps = np.array([self._max_gain(units[:, [x]]) for x in range(len(p))])
        floors = np.maximum(0.0, [-self._max_gain(-units[:, [x]]) for x in range(len(p))])
        width = np.maximum(self.caps - floors, 0.0)
        # on a range of next to no width the chord's slope would be rounding over rounding
        wide = width > 1e-9 * (1 + self.caps)
        highest = kernel.phi(self.caps)
        lowest = kernel.phi(floors)
        self.slopes = np.where(wide, (highest - lowest) / np.where(wide, width, 1.0), 0.0)
        ends = np.where(wide, lowest, np.maximum(lowest, highest))
        self._constant = float(p @ (ends - self.slopes * floors))

    def compute_bound(self, rho: FloatArray) -> float:
        """Compute an upper bound on the reduced value of every column, from chords of phi."""
        return self._constant + self._max_gain((self.slopes - rho)[:, None])

    def _max_gain(self, gains: FloatArray) -> float:
        """Maximise a linear gain over the columns of the cone."""
        return self.cone.priors.support_function(self.kernel.p, gains, self.cone.exp_neg_epsilon)
