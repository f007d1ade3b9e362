"""The structured interior point by itself, and what `solve` does where it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from oracles import designs as oracles
from oracles.bands import KINDS, Bounded, bounded, least_cost
from oracles.blocks import WIDE, wide

from pmlopt import PML, ExpectedGain, ExpectedLoss, Prior, Result, design, solve
from pmlopt.programs import Status
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.structured.newton import Newton

Generator = np.random.Generator


def some_prior(rng: Generator, n: int) -> Prior:
    """Uniform, spread, halving from letter to letter, or with a letter of 1e-9."""
    kind = rng.integers(4)
    weights = (np.ones(n), rng.dirichlet(np.ones(n)) + 1e-3, 0.5 ** np.arange(n), np.ones(n))[kind]
    if kind == 3 and n > 1:
        weights[rng.integers(n)] = 1e-9
    return Prior(weights / weights.sum())


def some_table(rng: Generator, n: int, m: int) -> oracles.FloatArray:
    """Random, of any unit, far from zero, tied, flat, with equal columns, Hamming, or ordered."""
    plain = rng.random((n, m))
    tables = (
        plain,
        plain * 1e9,
        plain * 1e-9,
        plain + 1e6 * rng.normal(size=(n, 1)),
        np.full((n, m), 3.0),
        rng.integers(0, 3, (n, m)) * 1.0,
        plain[:, rng.integers(0, m, m)],
        1 - np.eye(n, m),
        np.abs(np.subtract.outer(np.arange(n), np.arange(m))) * 1.0,
    )
    return np.asarray(tables[rng.integers(len(tables))])


@dataclass(frozen=True, eq=False)
class Instance:
    """A banded design, and its parts."""

    bound: Bounded
    epsilon: float
    lower: float
    table: oracles.FloatArray
    maximised: bool

    @property
    def program(self) -> LinearDesign:
        utility = (ExpectedGain if self.maximised else ExpectedLoss)(self.table)
        return design(self.bound.prior, self.bound.at(self.epsilon, self.lower), utility)

    @property
    def unit(self) -> float:
        """The range of the utility: what a gap is a share of."""
        return float(self.bound.prior.pmf @ np.ptp(self.table, axis=1))

    def optimum(self) -> float:
        """By the dense LP in units of one; the common part of each row goes round the LP."""
        offsets = self.table.min(axis=1)
        costs = self.bound.prior.pmf[:, None] * (self.table - offsets[:, None])
        largest = float(costs.max()) or 1.0
        sign = -1 if self.maximised else 1
        least = least_cost(self.bound.shape, sign * costs / largest, self.epsilon, self.lower)
        return sign * largest * least + float(self.bound.prior.pmf @ offsets)


def instance(kind: str, seed: int) -> Instance:
    rng = np.random.default_rng([70, KINDS.index(kind), seed])
    n, m = (int(count) for count in rng.integers(1, 13, 2))
    m += n == m
    prior = some_prior(rng, n)
    if prior.size == 1 and kind in ("pml", "lip"):  # a letter alone leaks nothing, whatever the level
        prior = Prior.uniform(2)
    n = prior.size
    top = 1.1 * max(prior.max_leakage, 1.0)
    levels = (1e-6, rng.uniform(0.01, 1.0), rng.uniform(0.01, top), top)
    return Instance(
        bounded(kind, prior, rng),
        float(levels[seed % 4]),
        float(rng.choice([1e-3, 0.5, 2.0])),
        some_table(rng, n, m),
        bool(rng.integers(2)),
    )


def assert_proved(case: Instance, result: Result[Any]) -> None:
    """What a result claims, beside the reference optimum."""
    prior, matrix = case.bound.prior, result.mechanism.matrix
    assert result.status is Status.OPTIMAL
    assert result.solver == "structured"
    assert_certified(case, result)
    assert result.gap <= 1e-7 * case.unit or result.gap <= case.program.rounding
    rounding = 1e-13 * float(np.abs(case.table).max())
    assert result.value == pytest.approx(case.optimum(), abs=1e-7 * case.unit + rounding)
    assert result.value == pytest.approx(float((prior.pmf[:, None] * case.table * matrix).sum()), rel=1e-12)


def assert_certified(case: Instance, result: Result[Any]) -> None:
    """What holds of any result, proved or not."""
    privacy = case.bound.at(case.epsilon, case.lower)
    assert result.certificate.verify()
    assert oracles.is_stochastic(result.mechanism.matrix)
    assert privacy.holds(case.bound.prior, result.mechanism)
    assert result.level <= max(privacy.limits.values())
    ahead = result.bound - result.value
    assert (ahead if case.maximised else -ahead) >= 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_random_instances_reach_the_reference_optimum(kind: str, seed: int) -> None:
    case = instance(kind, seed)
    assert_proved(case, solve(case.program, "structured"))


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("seed", range(4))
def test_blocks_that_are_no_bands_reach_what_the_declared_program_does(kind: str, seed: int) -> None:
    rng = np.random.default_rng([77, WIDE.index(kind), seed])
    n, m = (40, 3) if seed == 0 else (int(rng.integers(3, 9)), int(rng.integers(2, 9)))
    prior = Prior(oracles.random_prior(rng, n))
    privacy = wide(kind, prior, rng, float(rng.uniform(0.05, 2.0)))
    program = design(prior, privacy, ExpectedGain(rng.normal(size=(n, m))))
    found = solve(program, "structured")
    program.problem.solve(solver="HIGHS")
    assert found.value == pytest.approx(float(program.problem.value), abs=1e-7 * program.scale)
    assert found.gap <= 1e-7 * program.scale
    assert found.certificate.verify()


@pytest.mark.parametrize("kind", KINDS)
def test_middling_instances_reach_what_clarabel_reaches(kind: str) -> None:
    rng = np.random.default_rng(71)
    prior = Prior(oracles.random_prior(rng, 60))
    privacy = bounded(kind, prior, rng).at(1.0)
    program = design(prior, privacy, ExpectedGain(rng.random((60, 12))))
    found, other = solve(program, "structured"), solve(program, "clarabel", tolerance=1e-6)
    assert found.value == pytest.approx(other.value, abs=1e-6 * program.scale)
    assert found.gap <= 1e-7 * program.scale
    assert found.certificate.verify()
    assert found.iterations is not None
    assert found.iterations < 60


# ---------------------------------------------------------------- where it fails


def large(n: int = 31) -> LinearDesign:
    """A design that `auto` hands to the structured method first."""
    rng = np.random.default_rng(74)
    return design(Prior(oracles.random_prior(rng, n)), PML(1.0), ExpectedGain(rng.random((n, n))))


@pytest.mark.parametrize("after", [0, 1, 3])
def test_numerical_trouble_goes_on_to_a_generic_solver(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    expected = solve(large(), "structured").value
    made = []

    class Failing(Newton):
        def __init__(self, *arguments: Any) -> None:
            made.append(1)
            if len(made) > after:
                raise ArithmeticError("of no use")
            super().__init__(*arguments)

    monkeypatch.setattr("pmlopt.solvers.structured.newton.Newton", Failing)
    result = solve(large())
    assert len(made) == after + 1
    assert result.status is Status.OPTIMAL
    assert result.solver == "clarabel"
    assert result.value == pytest.approx(expected, abs=1e-6)
    (line,) = result.attempts
    assert line.startswith("structured: numerical trouble: of no use, certified gap")
