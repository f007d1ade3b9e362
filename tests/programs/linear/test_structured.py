"""The structured interior point by itself, and what `solve` does where it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from oracles import designs as oracles
from oracles.bands import KINDS, Bounded, bounded, least_cost
from oracles.blocks import WIDE, wide

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    MaximalLeakage,
    Prior,
    RatioBound,
    Result,
    Secret,
    design,
    solve,
)
from pmlopt.core.numbers.arrays import DefaultLabels
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import AllPriors
from pmlopt.programs import Status
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.structured.newton import NewtonSystem

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
    if prior.size == 1 and kind in (
        "pml",
        "lip",
    ):  # a letter alone leaks nothing, whatever the level
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
    assert result.solver == "block-ipm"
    assert_certified(case, result)
    assert result.gap <= 1e-7 * case.unit or result.gap <= case.program.rounding_gap
    rounding = 1e-13 * float(np.abs(case.table).max())
    assert result.value == pytest.approx(case.optimum(), abs=1e-7 * case.unit + rounding)
    assert result.value == pytest.approx(
        float((prior.pmf[:, None] * case.table * matrix).sum()), rel=1e-12
    )


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
@pytest.mark.parametrize("seed", range(4))
def test_random_instances_reach_the_reference_optimum(kind: str, seed: int) -> None:
    case = instance(kind, seed)
    assert_proved(case, solve(case.program, "block-ipm"))


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("seed", range(2))
def test_blocks_that_are_no_bands_reach_what_the_declared_program_does(
    kind: str, seed: int
) -> None:
    rng = np.random.default_rng([77, WIDE.index(kind), seed])
    n, m = (40, 3) if seed == 0 else (int(rng.integers(3, 9)), int(rng.integers(2, 9)))
    prior = Prior(oracles.random_prior(rng, n))
    privacy = wide(kind, prior, rng, float(rng.uniform(0.05, 2.0)))
    program = design(prior, privacy, ExpectedGain(rng.normal(size=(n, m))))
    found = solve(program, "block-ipm")
    program.problem.solve(solver="HIGHS")
    assert found.value == pytest.approx(float(program.problem.value), abs=1e-7 * program.scale)
    assert found.gap <= 1e-7 * program.scale
    assert found.certificate.verify()


@pytest.mark.parametrize("kind", ["lip", "ball", "mass"])
def test_middling_instances_reach_what_clarabel_reaches(kind: str) -> None:
    rng = np.random.default_rng(71)
    prior = Prior(oracles.random_prior(rng, 60))
    privacy = bounded(kind, prior, rng).at(1.0)
    program = design(prior, privacy, ExpectedGain(rng.random((60, 12))))
    found, other = solve(program, "block-ipm"), solve(program, "clarabel", tolerance=1e-6)
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


@pytest.mark.parametrize("after", [0, 3])
def test_numerical_trouble_goes_on_to_a_generic_solver(
    monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    expected = solve(large(), "block-ipm").value
    made = []

    class Failing(NewtonSystem):
        def __init__(self, *arguments: Any) -> None:
            made.append(1)
            if len(made) > after:
                raise ArithmeticError("of no use")
            super().__init__(*arguments)

    monkeypatch.setattr("pmlopt.solvers.structured.newton.NewtonSystem", Failing)
    result = solve(large())
    assert len(made) == after + 1
    assert result.status is Status.OPTIMAL
    assert result.solver == "clarabel"
    assert result.value == pytest.approx(expected, abs=1e-6)
    (line,) = result.attempts
    assert line.startswith("block-ipm: numerical trouble: of no use, certified gap")


# ---------------------------------------------------------------- hard instances


def random_prior(rng: Generator, size: int) -> Prior:
    """As for the interior point; or from counts, or over twelve orders of magnitude."""
    kind = rng.integers(3)
    if kind == 0:
        return Prior.from_counts(
            [int(count) for count in rng.integers(1, 20, size)], DefaultLabels(size)
        )
    weights = np.maximum(10.0 ** rng.uniform(-12, 0, size), 1e-14)
    return some_prior(rng, size) if kind == 1 else Prior(weights / weights.sum())


def random_requirement(rng: Generator, prior: Prior) -> Requirement:
    """Any requirement, at levels of 0, 1e-18, ..., the largest leakage and one step of a float below it."""
    most = prior.max_leakage
    singular = np.log(prior.size / rng.integers(1, prior.size + 1))
    levels = (
        0.0,
        1e-18,
        1e-12,
        1e-6,
        most,
        max(0.0, np.nextafter(most, 0)),
        singular,
        rng.exponential(),
    )
    epsilon = float(rng.choice(levels))
    kinds = (
        PML(epsilon),
        LDP(min(epsilon, 30.0)),
        LIP(float(rng.choice([0.0, 0.3, epsilon])), epsilon),
        MaximalLeakage(epsilon),
    )
    return kinds[rng.integers(4)]


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_at_the_ends_of_every_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        size, outputs = (int(count) for count in rng.integers(1, 10, 2))
        prior = random_prior(rng, size)
        privacy, table = random_requirement(rng, prior), some_table(rng, size, outputs)
        utility = (ExpectedGain if rng.random() < 0.5 else ExpectedLoss)(table)
        result = solve(design(prior, privacy, utility), tolerance=1e-6)
        assert result.status is Status.OPTIMAL
        assert result.certificate.verify()
        assert privacy.holds(prior, result.mechanism)
        ahead = result.bound - result.value
        assert (ahead if utility.maximised else -ahead) >= 0


@pytest.mark.parametrize("seed", [7, 13, 26, 39])
def test_bounds_on_ratios_are_sharp_beside_a_rare_letter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, outputs, pairs = (int(rng.integers(*ends)) for ends in ((3, 6), (2, 5), (2, 6)))
    weights = rng.dirichlet(np.ones(size))
    rare = rng.integers(size)
    weights[rare] = 10.0 ** -rng.integers(7, 10)
    shares = rng.dirichlet(np.ones(size), size=pairs) * (rng.random((pairs, size)) < 0.7) + 1e-3
    below = rng.dirichlet(np.ones(size), size=pairs)
    requirement = RatioBound(
        shares / shares.sum(axis=1, keepdims=True), below, float(rng.uniform(0.1, 2))
    )
    prior, gains = Prior(weights / weights.sum()), ExpectedGain(rng.normal(size=(size, outputs)))
    result = solve(design(prior, requirement, gains))
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-9
    assert result.certificate.verify()


@pytest.mark.parametrize("seed", [5, 14])
def test_a_second_bound_that_hardly_binds_costs_no_utility(seed: int) -> None:
    rng = np.random.default_rng(seed)
    secret = Secret.from_counts(rng.integers(1, 60, size=(2, 4)))
    about, gains = PML(1.0, about=secret), ExpectedGain(rng.normal(size=(4, 3)))
    alone = solve(design(secret.prior, about, gains))
    both = solve(design(secret.prior, about & PML(50.0, over=AllPriors(4)), gains))
    assert both.status is Status.OPTIMAL
    assert both.value == pytest.approx(alone.value, abs=1e-6)
    assert both.certificate.verify()
