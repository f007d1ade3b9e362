"""The set of all priors within a transport distance of a centre, for a metric on the letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import cp, optimize, sparse
from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
)
from pmlopt.core.numbers.distances import check_distances
from pmlopt.core.records.fields import INFINITE, Shape
from pmlopt.data.prior import PriorLike
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.boxes import AllPriors
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.centered_ball import CenteredBall, scale_to_unit
from pmlopt.model.uncertainty.prior_set import (
    MEMBERSHIP_ATOL,
    MinMeanExpression,
    PriorPolytope,
    PriorSet,
    check_possible,
)


class WassersteinBall(CenteredBall):
    """The priors into which the centre turns where mass moves over a mean distance of at most the radius.

    Moving the mass z from x to y costs `z metric[x, y]`. The least mean of a column v is
    `max sum_x p[x] min_y (v[y] + lam metric[x, y]) - lam radius` over lam >= 0. It is for errors between
    letters that are near: ages that are a year off, places some streets apart.

    Args:
        center: the prior p; letters of probability 0 are allowed where mass can move to them.
        metric: (N, N) symmetric up to rounding, of which the smaller distance counts, of at least 0, with a
            diagonal of zeros, and infinite where no mass can move; or a function of two labels.
        radius: at least 0, in the unit of the metric.
        delta: the probability that the true distribution is outside, where the radius comes from a
            sample; else None.

    Raises:
        PrivacyError: the radius is negative, NaN or infinite, the metric is none, delta is outside (0, 1), or
            a letter has probability 0 in the whole ball.
        PriorError: the centre is no distribution.

    Source: Mohajerin Esfahani and Kuhn, Data-driven distributionally robust optimization using the
    Wasserstein metric, Math. Program. 171 (2018), Theorem 4.2, on finitely many letters.

    Examples:
        >>> ball = WassersteinBall([0.5, 0.3, 0.2], lambda x, y: abs(x - y), 0.1)
        >>> ball.minimizer(np.array([0.0, 1.0, 4.0])).round(12)
        array([0.5, 0.4, 0.1])
    """

    kind: ClassVar[str] = "wasserstein-ball"
    metric: Annotated[FloatArray, Shape("letters", "letters"), INFINITE]

    def __init__(
        self,
        center: PriorLike | Center,
        metric: ArrayLike | Callable[[Any, Any], float],
        radius: float,
        delta: float | None = None,
    ) -> None:
        super().__init__(center, radius, delta)
        names = self.center.labels
        if callable(metric):
            metric = [[metric(x, y) for y in names] for x in names]
        self.metric = _check_metric(metric, self.size)
        near = np.isfinite(self.metric) & (self.radius > 0)
        p = self.center.pmf
        check_possible(np.where((near & (p[:, None] > 0)).any(axis=0), 1.0, p))

    @property
    def description(self) -> str:
        """Return which priors these are, in words that follow "for every prior"."""
        return f"within transport distance {self.radius:g} of the centre"

    @cached_property
    def _moves(self) -> tuple[Any, Any]:
        """Return the (Z,) letters from which and those to which mass can move; each also to itself."""
        possible = np.isfinite(self.metric) & (self.center.pmf > 0)[:, None]
        sources, targets = np.nonzero(possible)
        return sources, targets

    @cached_property
    def _costs(self) -> FloatArray:
        """Return (Z,) the distances of the moves, over a power of two near the largest."""
        return np.asarray(self.metric[self._moves] / self._unit)

    @cached_property
    def _unit(self) -> float:
        """Return a power of two near the largest distance: dividing by it is exact."""
        finite = self.metric[self._moves]
        return float(2.0 ** np.frexp(finite.max())[1]) if finite.max() > 0 else 1.0

    def simplify(self) -> PriorSet | FloatArray:
        """Return the centre where it is the only prior of the ball, all priors where all are in it, else
        the ball.
        """
        moved = ~np.eye(self.size, dtype=bool)
        if self.radius == 0 and (self.metric[moved] > 0).all():
            return self.center.pmf
        return AllPriors(self.size) if self.contains_all_priors else self

    @cached_property
    def contains_all_priors(self) -> bool:
        """Return whether every prior is in the ball, without rounding: each letter can take all mass."""
        held = [x for x, mass in enumerate(self.exact_center) if mass]
        if not np.isfinite(self.metric[held]).all():
            return False
        costs = [
            sum(self.exact_center[x] * Fraction(float(self.metric[x, y])) for x in held)
            for y in range(self.size)
        ]
        return max(costs) <= Fraction(self.radius)

    # ------------------------------------------------------------ least means

    def _find_plan(self, column: FloatArray) -> tuple[FloatArray, float]:
        """Find a law (N,) of least mean for a column from 0 to 1, and the multiplier lam of the radius.

        The bound is concave and piecewise linear in lam: of two plans, one that costs too much and one that
        does not, the lines cross where the next is looked for, until none is below them.
        """
        p = self.center.pmf
        radius = self.radius / self._unit
        letters = np.arange(self.size)
        costs = self.metric / self._unit

        def move_mass(lam: float) -> tuple[Any, float, float]:
            with np.errstate(invalid="ignore"):
                values = column + np.where(np.isfinite(costs), lam * costs, np.inf)
            # the nearest of equally good letters costs least
            best = np.lexsort((costs, values), axis=1)[:, 0]
            return best, float(p @ column[best]), float(p @ costs[letters, best])

        def to_law(best: Any) -> FloatArray:
            return np.bincount(best, weights=p, minlength=self.size).astype(np.float64)

        far = move_mass(0.0)
        near = (letters, float(p @ column), 0.0)
        if far[2] <= radius:
            return to_law(far[0]), 0.0
        while True:
            lam = (near[1] - far[1]) / (far[2] - near[2])
            plan = move_mass(lam)
            value = near[1] + lam * near[2]
            if plan[1] + lam * plan[2] >= value - 1e-15 or plan[2] in (far[2], near[2]):
                break
            far, near = (plan, near) if plan[2] > radius else (far, plan)
        share = (radius - near[2]) / (far[2] - near[2])
        return share * to_law(far[0]) + (1 - share) * to_law(near[0]), lam

    def find_minimizers(self, matrix: FloatArray) -> FloatArray:
        """Find for each column of (N, M) the prior of the ball with the least mean."""
        return np.array([law for law, _ in self._find_plans(matrix)]).T

    def find_multipliers(self, matrix: FloatArray) -> FloatArray:
        """Find (1, M) the multipliers lam of the radius at columns scaled to [0, 1]."""
        return np.array([[lam for _, lam in self._find_plans(matrix)]])

    def _find_plans(self, matrix: FloatArray) -> list[tuple[FloatArray, float]]:
        """Find the law of least mean and the multiplier for each column, scaled to [0, 1]."""
        return [self._find_plan(column) for column in scale_to_unit(matrix).T.copy()]

    def bound_mean(self, column: Sequence[Fraction], multipliers: Sequence[float]) -> Fraction:
        """Compute `sum_x p min_y (v + lam metric) - lam radius`, which no prior of the ball has a mean below,
        for any multiplier; a negative one counts as 0.

        Args:
            column: N rationals.
            multipliers: lam times the unit of the distances.
        """
        lam = Fraction(max(multipliers[0], 0.0)) / Fraction(self._unit)
        best: dict[int, Fraction] = {}
        for x, y in zip(*(part.tolist() for part in self._moves), strict=True):
            value = column[y] + lam * Fraction(float(self.metric[x, y]))
            best[x] = min(value, best.get(x, value))
        moved = sum(self.exact_center[x] * value for x, value in best.items())
        return Fraction(moved - lam * Fraction(self.radius))

    # ------------------------------------------------------------ members

    def _transport(self, law: FloatArray) -> FloatArray | None:
        """Find the (Z,) masses of the moves that turn the centre into a law at the least cost; None where
        none do.
        """
        sources, targets = self._moves
        moves = np.arange(len(sources))
        n = self.size
        ones = np.ones(len(moves))
        system = sparse.vstack(
            [
                sparse.csr_array((ones, (sources, moves)), shape=(n, len(moves))),
                sparse.csr_array((ones, (targets, moves)), shape=(n, len(moves))),
            ]
        )
        sides = np.concatenate([self.center.pmf, law])
        found = optimize.linprog(self._costs, A_eq=system, b_eq=sides, method="highs-ds")
        return None if found.x is None else np.maximum(found.x, 0.0)

    def _round_plan(self, masses: FloatArray) -> tuple[list[Fraction], Fraction]:
        """Return the law into which moves turn the centre, and their cost, without rounding: the moves from
        each letter are taken over their sum.
        """
        sources, targets = (part.tolist() for part in self._moves)
        exact = [Fraction(mass) for mass in masses.tolist()]
        sums = [Fraction(0)] * self.size
        for x, mass in zip(sources, exact, strict=True):
            sums[x] += mass
        law = [Fraction(0)] * self.size
        cost = Fraction(0)
        for x, y, mass in zip(sources, targets, exact, strict=True):
            # what has no move stays
            stays = Fraction(int(x == y))
            moved = self.exact_center[x] * (mass / sums[x] if sums[x] else stays)
            law[y] += moved
            if moved:
                cost += moved * Fraction(float(self.metric[x, y]))
        return law, cost

    def contains_law(self, p: FloatArray) -> bool:
        """Return whether the (N,) probabilities are in the ball, but for an l1 distance of 1e-12."""
        masses = self._transport(p)
        if masses is None:
            return False
        cost = float(masses @ self._costs)
        radius = self.radius / self._unit
        outside = max(0.0, 1 - radius / cost) if cost > 0 else 0.0
        return outside * float(np.abs(p - self.center.pmf).sum()) <= MEMBERSHIP_ATOL

    def contains_rationals(self, law: Sequence[Fraction]) -> bool | None:
        """Return True where a plan proves that N rationals of at least 0 that sum to one are in the ball,
        False where they are outside by more than rounding, else None.

        What the plan misses by rounding is moved too, over the largest distance at most.
        """
        masses = self._transport(np.array([float(mass) for mass in law]))
        if masses is None:
            return False
        reached, cost = self._round_plan(masses)
        missed = sum(abs(one - other) for one, other in zip(reached, law, strict=True)) / 2
        far = Fraction(self._unit) if np.isfinite(self.metric).all() else None
        if not missed or far is not None:
            rest = missed * far if far is not None else 0
            if cost + rest <= Fraction(self.radius):
                return True
        slack = MEMBERSHIP_ATOL * self._unit
        return False if float(cost) > self.radius + slack else None

    def project_to_rationals(self, law: FloatArray) -> Any:
        """Return (N,) rationals: a prior of the ball, for certain, that is near a law where the law is near
        the ball.

        Args:
            law: (N,) finite; negative entries count as zero, and it need not sum to one.
        """
        positive = np.maximum(law, 0.0)
        total = float(positive.sum())
        center = np.array(self.exact_center, dtype=object)
        masses = self._transport(positive / total) if total > 0 else None
        if masses is None:
            return center
        reached, cost = self._round_plan(masses)
        share = min(Fraction(1), Fraction(self.radius) / cost) if cost else Fraction(1)
        return center + share * (np.array(reached, dtype=object) - center)

    # ------------------------------------------------------------ forms

    def on_cells(self, cells: LetterCells) -> WassersteinBall | None:
        """Return the ball around the cells' masses, for the least distances of their letters; None where the
        group is not known.

        From each letter of a cell a letter of another is as near as from any other of it, so that masses of
        cells move for that distance.
        """
        self.check_listed_cells(cells)
        if cells.moves is None:
            return None
        center = Center.of_counts(self._masses_on_cells(cells), DefaultLabels(cells.size))
        for moved in cells.moves:
            if not np.array_equal(self.metric[np.ix_(moved, moved)], self.metric):
                raise PrivacyError(
                    f"the distances of {self!r} are not invariant: the group of the prior takes two letters "
                    "to others at another distance"
                )
        members = cells.list_members()
        metric = [[self.metric[np.ix_(one, other)].min() for other in members] for one in members]
        return WassersteinBall(center, metric, self.radius, self.delta)

    @cached_property
    def _sums(self) -> tuple[Any, FloatArray]:
        """Return the letters with mass, and (H, Z) which moves are from each."""
        sources, _ = self._moves
        held = np.flatnonzero(self.center.pmf > 0)
        return held, (sources[None, :] == held[:, None]).astype(float)

    def polytope(self) -> PriorPolytope:
        """Return the ball by its plans: what is moved to each letter, at a bounded cost."""
        _, targets = self._moves
        held, sums = self._sums
        parts = (targets[None, :] == np.arange(self.size)[:, None]).astype(float)
        right = np.append(self.center.pmf[held], self.radius / self._unit)
        equal = np.arange(len(right)) < len(held)
        return PriorPolytope(parts, np.vstack([sums, self._costs[None, :]]), right, equal)

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Return `<p, w> - lam radius` with `w[x] <= v[y] + lam metric[x, y]` for all x and y."""
        _, targets = self._moves
        held, sums = self._sums
        scale = cp.Variable(largest.shape, nonneg=True, name="price_of_distance")
        moved = cp.Variable((len(held), largest.shape[1]), name="best_move")
        reached = sparse.csr_array(
            (np.ones(len(targets)), (np.arange(len(targets)), targets)),
            shape=(len(targets), self.size),
        )
        # a row for each move: sparse, since a letter has as many as others are near it
        limits = reached @ mechanism + self._costs[:, None] @ scale
        constraints = {"best_move": sparse.csr_array(sums.T) @ moved <= limits}
        value = self.center.pmf[None, held] @ moved - (self.radius / self._unit) * scale
        return MinMeanExpression(
            value, constraints, {"price_of_distance": scale, "best_move": moved}
        )

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values that the variables brought by `to_cvxpy` take at a given matrix."""
        held, _ = self._sums
        spread = np.ptp(matrix, axis=0)
        scale = self.find_multipliers(matrix) * spread
        costs = (self.metric / self._unit)[held]
        moved = [
            (v[None, :] + np.where(np.isfinite(costs), factor * costs, np.inf)).min(axis=1)
            for v, factor in zip(matrix.T, scale[0], strict=True)
        ]
        return {"price_of_distance": scale, "best_move": np.array(moved).T}


def _check_metric(values: ArrayLike, size: int) -> FloatArray:
    """Return the distances as an array, checked."""
    try:
        metric = np.array(values, dtype=float)
    except (TypeError, ValueError) as cause:
        raise PrivacyError("the metric holds what is no number: give distances") from cause
    if metric.shape != (size, size):
        raise PrivacyError(
            f"the metric has the shape {metric.shape}: give a distance for each two of the {size} letters"
        )
    metric = check_distances(metric, PrivacyError)
    metric.setflags(write=False)
    return metric
