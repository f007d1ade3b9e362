"""Information over a set of priors that somebody else wrote, of which only a polytope is known."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from pmlopt import PML, Box, ConvexHull, MutualInformation, design, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import Shape
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import MinMeanExpression, PriorSet, vertex_hull
from pmlopt.model.uncertainty.prior_set import PriorPolytope


class OwnPolytope(PriorSet):
    """A hull by another name, which gives no columns that are constant on nested sets."""

    kind: ClassVar[str] = "own-polytope"
    description: ClassVar[str] = "of a polytope"
    points: Annotated[FloatArray, Shape("points", "letters")]

    def __init__(self, points: Any) -> None:
        self.hull = ConvexHull(points)
        self.points = self.hull.points

    @property
    def size(self) -> int:
        return self.hull.size

    def polytope(self) -> PriorPolytope | None:
        return self.hull.polytope()

    @property
    def theta_rows(self) -> int:
        return self.hull.theta_rows

    def min_mean(self, matrix: FloatArray) -> FloatArray:
        return self.hull.min_mean(matrix)

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        return self.hull.min_mean_scaled(matrix)

    def minimizer(self, column: FloatArray) -> FloatArray:
        return self.hull.minimizer(column)

    def contains_law(self, p: FloatArray) -> bool:
        return self.hull.contains_law(p)

    def project_to_rationals(self, law: FloatArray) -> Any:
        return self.hull.project_to_rationals(law)

    def to_cvxpy(self, mechanism: Any, largest: Any) -> MinMeanExpression:
        return self.hull.to_cvxpy(mechanism, largest)

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        return self.hull.auxiliary_values(matrix)

    def support_function(self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float) -> float:
        return self.hull.support_function(p, gains, exp_neg_epsilon)

    def dual_multipliers(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> FloatArray:
        return self.hull.dual_multipliers(p, gains, exp_neg_epsilon)

    def dual_bound(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float, theta: FloatArray
    ) -> float:
        return self.hull.dual_bound(p, gains, exp_neg_epsilon, theta)

    def max_partial_entry(self, inner: Any, outer: Any, exp_neg_epsilon: float) -> FloatArray:
        return np.full(len(inner), np.nan)


class NestedOnly(OwnPolytope):
    """One that gives the columns on nested sets, which are not all extreme ones."""

    kind: ClassVar[str] = "nested-only"

    def max_partial_entry(self, inner: Any, outer: Any, exp_neg_epsilon: float) -> FloatArray:
        return self.hull.max_partial_entry(inner, outer, exp_neg_epsilon)


class NoPolytope(OwnPolytope):
    """One that is no polytope, such as a ball of another divergence."""

    kind: ClassVar[str] = "no-polytope"

    def polytope(self) -> PriorPolytope | None:
        return None


POINTS = [[0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.3, 0.5, 0.2], [0.45, 0.35, 0.2]]


@pytest.mark.parametrize("kind", [OwnPolytope, NestedOnly])
@pytest.mark.parametrize("seed", range(3))
def test_the_design_is_that_of_the_vertices(kind: type[OwnPolytope], seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = POINTS if seed == 0 else rng.dirichlet(np.full(4, 4.0), 3)
    p = np.mean(points, axis=0)
    epsilon = float(rng.uniform(0.3, 0.7))
    expected = solve(design(p, PML(epsilon, over=ConvexHull(points)), MutualInformation()))
    found = solve(design(p, PML(epsilon, over=kind(points)), MutualInformation()))
    assert found.status.value == "optimal"
    assert found.value == pytest.approx(expected.value, abs=1e-8)
    assert found.bound >= expected.value - 1e-9
    assert found.certificate.verify()


def test_a_set_without_a_polytope_is_cut_by_its_worst_priors() -> None:
    over = NoPolytope(POINTS)
    p = np.mean(POINTS, axis=0)
    expected = solve(design(p, PML(0.4, over=ConvexHull(POINTS)), MutualInformation()))
    found = solve(design(p, PML(0.4, over=over), MutualInformation()))
    assert found.method == "prior-cuts"
    assert found.value == pytest.approx(expected.value, abs=1e-7)
    assert found.bound >= expected.value - 1e-9
    assert found.certificate.verify()
    linear = solve(design(POINTS[0], PML(0.4, over=over), "hamming"))
    assert linear.status.value == "optimal"


def test_vertices_of_a_polytope_by_its_rows() -> None:
    box = Box([0.1, 0.2, 0.3], [0.5, 0.5, 0.4])
    corners = {tuple(point) for point in vertex_hull(box).points.round(12).tolist()}
    # two of three masses at an end, and the third within its own
    assert corners == {
        (0.5, 0.2, 0.3), (0.4, 0.2, 0.4), (0.2, 0.5, 0.3), (0.1, 0.5, 0.4)
    }  # fmt: skip
    with pytest.raises(PrivacyError, match="bases: give a ConvexHull of its vertices"):
        vertex_hull(Box(np.full(12, 0.01), np.full(12, 0.5)))
