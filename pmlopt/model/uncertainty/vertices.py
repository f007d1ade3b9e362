"""Sets of priors given as convex hulls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import cp, optimize
from pmlopt.core.numbers.arrays import SUM_ATOL, FloatArray, common_integer_ratio, copy_float_array
from pmlopt.core.records.fields import Shape
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.prior_set import (
    MEMBERSHIP_ATOL,
    MinMeanExpression,
    PriorPolytope,
    PriorSet,
    check_possible,
    require_form,
)
from pmlopt.model.uncertainty.support_functions import bound_gain_by_mixtures, find_mixture_thetas
from pmlopt.solvers.structured.block_program import ColumnBlock, build_hull_block, build_mean_block


class ConvexHull(PriorSet):
    """The convex hull of K priors, with the least mean `w(v) = min_k <Q_k, v>`.

    Args:
        points: (K, N), each row a distribution; zeros are allowed, but not in all rows at one letter.

    Raises:
        PrivacyError: an entry is negative, a row does not sum to one (within 1e-9), or a letter
            has probability zero in all of them.

    Source: [grosse2025empirical, Corollary 1].

    Examples:
        >>> two = ConvexHull([[0.5, 0.5], [0.25, 0.75]])
        >>> two.min_mean(np.array([[1.0, 0.0], [0.0, 1.0]]))
        array([0.25, 0.5 ])
    """

    kind: ClassVar[str] = "vertices"
    points: Annotated[FloatArray, Shape("points", "letters")]

    def __init__(self, points: ArrayLike) -> None:
        self.points = copy_float_array(points, 2, "the vertices", PrivacyError)
        if (self.points < 0).any():
            row = int((self.points < 0).any(axis=1).argmax())
            raise PrivacyError(f"vertex {row} has a negative entry, {self.points[row].min():g}")
        sums = self.points.sum(axis=1)
        off = int(np.abs(sums - 1).argmax())
        if abs(sums[off] - 1) > SUM_ATOL:
            raise PrivacyError(
                f"vertex {off} sums to {sums[off]:.12g}, not to 1: divide it by its sum"
            )
        check_possible(self.points.max(axis=0))
        self.laws = self.points / np.array([[math.fsum(point)] for point in self.points])
        self.laws.setflags(write=False)

    @property
    def size(self) -> int:
        """Return the number of letters N."""
        return int(self.points.shape[1])

    @property
    def description(self) -> str:
        """Return text that describes the priors of the set, to follow "for every prior"."""
        count = len(self.points)
        return "that is the one given" if count == 1 else f"in the convex hull of the {count} given"

    @cached_property
    def _integer_vertices(self) -> tuple[Any, int]:
        """Return the (K, N) vertices as integers with a common sum."""
        rows = [common_integer_ratio(point)[0] for point in self.points]
        total = math.lcm(*(sum(row) for row in rows))
        return np.array(
            [[value * (total // sum(row)) for value in row] for row in rows], dtype=object
        ), total

    def min_mean(self, matrix: FloatArray) -> FloatArray:
        """Compute the (M,) least mean of each column over the set."""
        return np.asarray((self.laws @ matrix).min(axis=0))

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        """Compute the least means times a positive number, and that number; exact for integers."""
        if matrix.dtype == object:
            weights, total = self._integer_vertices
            return (weights @ matrix).min(axis=0), total
        return self.min_mean(matrix), 1.0

    def minimizer(self, column: FloatArray) -> FloatArray:
        """Return an (N,) prior of the set that minimises the mean of a column; it may have zeros."""
        return np.asarray(self.laws[(self.laws @ column).argmin()])

    def contains_law(self, p: FloatArray) -> bool:
        """Return whether the (N,) probabilities are in the set, up to rounding (`MEMBERSHIP_ATOL`)."""
        return self._find_mixture(p)[1] <= MEMBERSHIP_ATOL

    def list_vertices(self) -> FloatArray:
        """List (K, N) priors of which the set is the convex hull, in floats."""
        return np.asarray(self.laws)

    def project_to_rationals(self, law: FloatArray) -> Any:
        """Return (N,) rationals: a prior of the set, for certain, that is near a law where the law is near
        the set.
        """
        return self.find_shares(law) @ self.exact_laws

    @cached_property
    def exact_laws(self) -> Any:
        """Return the (K, N) vertices as rationals."""
        weights, total = self._integer_vertices
        return weights * Fraction(1, total)

    def find_shares(self, law: FloatArray) -> Any:
        """Find the (K,) shares, in rationals, of the vertices' mixture nearest to a law."""
        mixture = self._find_mixture(np.maximum(law, 0.0))[0]
        shares = np.array([Fraction(weight) for weight in mixture.tolist()], dtype=object)
        return shares / shares.sum()  # not all zero: each share would be nearer

    def _find_mixture(self, law: FloatArray) -> tuple[FloatArray, float]:
        """Find the (K,) weights of the vertices' mixture nearest to a law, and its distance."""
        system = np.vstack([self.laws.T, np.ones(len(self.laws))])
        shares, distance = optimize.nnls(system, np.append(law, 1.0))
        return shares, float(distance)

    def on_cells(self, cells: LetterCells) -> ConvexHull | None:
        """Return the hull of the vertices' masses of cells, rounded outward; None where the group is not
        known.
        """
        self.check_listed_cells(cells)
        if cells.moves is None:
            return None
        weights, total = self._integer_vertices
        known = set(map(tuple, weights.tolist()))
        if any(known != set(map(tuple, weights[:, moved].tolist())) for moved in cells.moves):
            raise PrivacyError(
                f"{self!r} is not invariant: the group of the prior takes a vertex to none of them"
            )
        masses = [weights[:, cell].sum(axis=1) for cell in cells.list_members()]
        points = {
            point: None for law in zip(*masses, strict=True) for point in _round_outward(law, total)
        }
        return ConvexHull([*points])

    def polytope(self) -> PriorPolytope:
        """Return the set as linear inequalities, in floats."""
        return self._polytope

    @cached_property
    def _polytope(self) -> PriorPolytope:
        """Build the polytope of mixtures of the vertices."""
        return PriorPolytope(
            self.laws.T, np.ones((1, len(self.laws))), np.ones(1), np.array([True])
        )

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Build the concave cvxpy expression of the least mean of each column of a variable."""
        least = cp.Variable(largest.shape, nonneg=True, name="least_mean")
        rows = np.ones((len(self.laws), 1)) @ least <= self.laws @ mechanism
        return MinMeanExpression(least, {"least_mean": rows}, {"least_mean": least})

    def cone_block(self, exp_neg_epsilon: float) -> ColumnBlock | None:
        """Return the cone of columns with `e^-eps max v <= w(v)`; None without an interior."""
        if len(self.laws) == 1:
            return build_mean_block(self.laws[0], exp_neg_epsilon)
        return build_hull_block(self.laws, exp_neg_epsilon)

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        return {"least_mean": self.min_mean(matrix)[None, :]}

    def support_function(self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float) -> float:
        """Compute the largest gain `<p g, v>` over allowed columns v and columns g."""
        return float(
            (p @ gains).max()
            if exp_neg_epsilon >= 1
            else find_mixture_thetas(self.laws, p, gains, exp_neg_epsilon)[1].max()
        )

    @property
    def theta_rows(self) -> int:
        """Return the number of vertices."""
        return len(self.laws)

    def dual_multipliers(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> FloatArray:
        """Return (T, M) multipliers of `e^-eps max v <= w(v)`, from which `support_function` follows."""
        if exp_neg_epsilon >= 1:
            return np.zeros((len(self.laws), gains.shape[1]))
        return find_mixture_thetas(self.laws, p, gains, exp_neg_epsilon)[0]

    def dual_bound(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float, theta: FloatArray
    ) -> float:
        """Compute the upper bound on the gain proved by nonnegative (T, M) multipliers."""
        return bound_gain_by_mixtures(self.laws, p, gains, exp_neg_epsilon, theta)

    def max_partial_entry(self, inner: Any, outer: Any, exp_neg_epsilon: float) -> FloatArray:
        """Compute the (K,) least b in [0, 1] on `outer`, next to 1 on `inner`, with a w of e^-eps."""
        high = inner @ self.laws.T
        room = outer @ self.laws.T
        missing = exp_neg_epsilon - high
        with np.errstate(divide="ignore", invalid="ignore"):
            entry = np.where(missing > 0, missing / room, 0.0).max(axis=1)
        return np.where(entry <= 1, entry, np.nan)

    def __repr__(self) -> str:
        return f"ConvexHull(<{len(self.points)} priors on {self.size} letters>)"


def _round_outward(masses: Sequence[int], total: int) -> list[tuple[float, ...]]:
    """Return points in floats, in whose hull a law is: itself, or where its masses are no floats those
    rounded down, with what is missing at each letter.
    """
    exact = [Fraction(mass, total) for mass in masses]
    low = [float(mass) for mass in exact]
    low = [
        math.nextafter(value, 0.0) if Fraction(value) > mass else value
        for value, mass in zip(low, exact, strict=True)
    ]
    missing = 1 - sum(map(Fraction, low))
    if not missing:
        return [tuple(low)]
    points = []
    for cell, value in enumerate(low):
        above = float(Fraction(value) + missing)
        full = above if Fraction(above) >= Fraction(value) + missing else math.nextafter(above, 2.0)
        points.append((*low[:cell], full, *low[cell + 1 :]))
    return points


def build_member_hull(priors: PriorSet, laws: FloatArray | None = None) -> ConvexHull:
    """Build the convex hull of some priors of a set, for an outer approximation of allowed columns.

    Bounds over the columns that it allows hold for the set too.

    Args:
        priors: the set.
        laws: (K, N) the priors, moved into the set where they are not in it. Left out, those under which a
            set of letters, or on more than five letters one letter or all others, are least likely.

    Examples:
        >>> from pmlopt import ChiSquareBall
        >>> hull = build_member_hull(ChiSquareBall([0.5, 0.5], 0.04))
        >>> sorted(hull.points.round(9).tolist())
        [[0.4, 0.6], [0.6, 0.4]]
    """
    if laws is None:
        n = priors.size
        one = np.eye(n)
        sets = (
            np.array([*product((0.0, 1.0), repeat=n)][1:-1])
            if n <= 5
            else np.vstack([one, 1 - one])
        )
        laws = np.array([priors.minimizer(letters) for letters in sets])
    inside = priors.find_members(laws.T).T
    return ConvexHull(inside / inside.sum(axis=1, keepdims=True))


def vertex_hull(priors: PriorSet) -> ConvexHull:
    """Return a polyhedral set of priors as the convex hull of its vertices.

    Args:
        priors: with few rows and numbers.

    Raises:
        PrivacyError: the set has no polytope, or one of too many bases.

    Examples:
        >>> from pmlopt import Box
        >>> sorted(vertex_hull(Box([0.2, 0.5], [0.5, 0.8])).points.round(12).tolist())
        [[0.2, 0.8], [0.5, 0.5]]
    """
    purpose = "designs with a sub-convex utility"
    polytope = require_form(priors.polytope(), priors, purpose, "no polytope")
    found = find_vertex_hull(priors)
    if found is None:
        raise PrivacyError(
            f"{purpose} need the vertices of {priors!r}, whose polytope has {_count_bases(polytope)} "
            "bases: give a ConvexHull of its vertices"
        )
    return found


def _count_bases(polytope: PriorPolytope) -> int:
    """Count the systems of equations of which the vertices of a polytope are solutions."""
    count = len(polytope.right)
    return math.comb(polytope.rows.shape[1] + count - int(polytope.equal.sum()), count)


def find_vertex_hull(priors: PriorSet) -> ConvexHull | None:
    """Find a set of priors as the convex hull of the vertices of its polytope; None without a polytope, or
    with too many bases.

    Every vertex is a basic solution of the rows, whose slacks are variables. A vertex that rounding hides
    makes the hull smaller, so that more columns are allowed: bounds over these columns are then larger, and
    still true.
    """
    found = priors.polytope()
    # the most systems of equations that are tried: a few seconds
    if found is None or _count_bases(found) > 50_000:
        return None
    count = len(found.right)
    slacks = np.flatnonzero(~found.equal)
    system = np.hstack([found.rows, np.eye(count)[:, slacks]])
    laws = []
    for basis in combinations(range(system.shape[1]), count):
        square = system[:, basis]
        if np.linalg.cond(square) > 1e12:
            continue
        values = np.zeros(system.shape[1])
        values[list(basis)] = np.linalg.solve(square, found.right)
        # Negative entries of a basic solution that are put down to rounding.
        if values.min() >= -1e-12:
            laws.append(found.parts @ np.maximum(values[: found.parts.shape[1]], 0.0))
    if not laws:
        raise PrivacyError(
            f"the polytope of {priors!r} has no vertex: it holds no prior, or equal rows"
        )
    points = np.maximum(np.array(laws), 0.0)
    points /= points.sum(axis=1, keepdims=True)
    _, first = np.unique(points.round(13), axis=0, return_index=True)
    return ConvexHull(points[np.sort(first)])
