"""The public conformance suites pass on everything that ships, and fail on what is wrong in one form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import (
    LDP,
    LIP,
    PMC,
    PML,
    AllPriors,
    ApproximatePML,
    Box,
    ConvexHull,
    ExpectedGain,
    ExpectedLoss,
    GuessLeakage,
    L1Ball,
    MaximalAlphaLeakage,
    MaximalLeakage,
    MinimumMass,
    MutualInformation,
    Prior,
    RenyiPML,
    Secret,
    SibsonLeakage,
    Vulnerability,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.privacy import CvxpyConstraints, Requirement
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.utility import Hellinger, LinearUtility, SubConvex, TotalVariation, absolute
from pmlopt.testing import ConformanceError, check_prior_set, check_requirement, check_utility

PRIOR = Prior([0.4, 0.3, 0.2, 0.1])
REQUIREMENTS: list[Requirement] = [
    PML(0.7), LDP(1.0), LIP(0.5, 0.8), MaximalLeakage(0.3), ApproximatePML(0.3, 0.1), RenyiPML(2, 0.4),
    SibsonLeakage(2, 0.3), SibsonLeakage(3.5, 0.3), MaximalAlphaLeakage(2, 0.3),
    MaximalAlphaLeakage(3.5, 0.3), GuessLeakage(1, 0.3), GuessLeakage(2, 0.2), RenyiPML(1.5, 0.4),
    PMC(0.4), Vulnerability(epsilon=0.2), Vulnerability(epsilon=0.0),
]  # fmt: skip
SETS: list[PriorSet] = [
    L1Ball(PRIOR, 0.15), L1Ball(PRIOR, 0.5), Box([0.2, 0.1, 0.1, 0.05], [0.6, 0.5, 0.4, 0.3]),
    MinimumMass(4, 0.05), ConvexHull([[0.4, 0.3, 0.2, 0.1], [0.25] * 4]), AllPriors(4),
]  # fmt: skip


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda r: r.name)
def test_requirements_that_ship_conform(requirement: Requirement) -> None:
    check_requirement(requirement, instances=2)


@pytest.mark.parametrize("priors", SETS, ids=repr)
def test_sets_that_ship_conform(priors: PriorSet) -> None:
    check_prior_set(priors, instances=3)
    check_requirement(PML(0.7, over=priors), PRIOR, instances=1)


def test_finite_orders_conform_about_a_secret_and_over_sets() -> None:
    secret = Secret([[0.1, 0.2, 0.1, 0.05], [0.3, 0.1, 0.1, 0.05]])
    check_requirement(RenyiPML(2.5, 0.1, about=secret), secret.prior, instances=1)
    check_requirement(RenyiPML(1.5, 0.3, over=SETS[0]), PRIOR, instances=1)


def test_average_leakage_conforms_for_gains_and_about_secrets() -> None:
    secret = Secret([[0.1, 0.2, 0.1, 0.05], [0.3, 0.1, 0.1, 0.05]])
    check_requirement(Vulnerability([[1, 0, 0, 2], [0, 1, 1, 0]], 0.1), PRIOR, instances=2)
    check_requirement(
        Vulnerability([[1.0, 0.0], [0.0, 2.0], [0.5, 0.5]], 0.1, secret), secret.prior, instances=2
    )


@pytest.mark.parametrize(
    "utility",
    [
        MutualInformation(),
        TotalVariation(),
        Hellinger(),
        ExpectedLoss(absolute),
        ExpectedGain(np.eye(4)),
    ],
)
def test_utilities_that_ship_conform(utility: LinearUtility | SubConvex) -> None:
    check_utility(utility, PRIOR, instances=3)


# ---------------------------------------------------------------- what is wrong in one form


@dataclass(frozen=True)
class Twisted(PML):
    """PML with one form that says something else."""

    name: ClassVar[str] = "twisted"


class LooseNumber(Twisted):
    def levels(self, prior: Any, mechanism: Any) -> dict[str, float]:
        return {"pml": super().levels(prior, mechanism)["pml"] - 0.1}


class OtherNames(Twisted):
    def levels(self, prior: Any, mechanism: Any) -> dict[str, float]:
        return {"another": super().levels(prior, mechanism)["pml"]}


class LooseConstraint(Twisted):
    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        return PML(self.epsilon + 0.1).to_cvxpy(prior, mechanism, law)


class StrictConstraint(Twisted):
    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        return PML(self.epsilon / 2).to_cvxpy(prior, mechanism, law)


class LooseExcess(Twisted):
    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        return PML(self.epsilon + 0.1).violation(weights, matrix, power)


class LowSupport(Twisted):
    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        return PML(0.0).support_function(prior, gains)


class OtherBlock(Twisted):
    def cone_block(self, prior: Prior) -> Any:
        return PML(self.epsilon / 2).cone_block(prior)


@pytest.mark.parametrize(
    "wrong",
    [
        LooseNumber,
        OtherNames,
        LooseConstraint,
        StrictConstraint,
        LooseExcess,
        LowSupport,
        OtherBlock,
    ],
)
def test_a_requirement_that_is_wrong_in_one_form_is_found(wrong: type[Twisted]) -> None:
    with pytest.raises(ConformanceError):
        check_requirement(wrong(0.7))


class OtherExpression(ExpectedGain):
    def to_cvxpy(self, prior: Prior, table: FloatArray, mechanism: cp.Variable) -> cp.Expression:
        return 1.01 * super().to_cvxpy(prior, table, mechanism)


def test_a_utility_whose_expression_is_another_is_found() -> None:
    with pytest.raises(ConformanceError, match="expression"):
        check_utility(OtherExpression(np.eye(4)), PRIOR)


class WideBall(L1Ball):
    def min_mean(self, matrix: FloatArray) -> FloatArray:
        return L1Ball(self.center, self.radius + 0.05).min_mean(matrix)


class DoubledIntegers(L1Ball):
    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        sums, unit = super().min_mean_scaled(matrix)
        return (2 * sums, unit) if matrix.dtype.kind == "O" else (sums, unit)


class NoAuxiliary(L1Ball):
    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        return {
            name: np.zeros_like(value) for name, value in super().auxiliary_values(matrix).items()
        }


class OtherWorstPrior(L1Ball):
    def minimizer(self, column: FloatArray) -> FloatArray:
        return np.full(self.size, 1 / self.size)


@pytest.mark.parametrize(
    ("kind", "words"),
    [(WideBall, "least means"), (DoubledIntegers, "integers"), (NoAuxiliary, "auxiliary"),
     (OtherWorstPrior, "rationals near")],
)  # fmt: skip
def test_a_set_that_is_wrong_in_one_form_is_found(kind: type[L1Ball], words: str) -> None:
    with pytest.raises(ConformanceError, match=words):
        check_prior_set(kind(PRIOR, 0.1), instances=2)


def test_the_boundary_is_met_on_both_sides() -> None:
    # a level of log 4 cannot be exceeded on four even letters: nothing is outside, and that is no failure
    check_requirement(PML(math.log(4)), Prior.uniform(4), instances=2)
