"""The least leakage over a set of priors: against bisection over its corners, one prior, and LDP."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.designs import is_stochastic
from oracles.least_leakage import bisected
from oracles.prior_sets import KINDS, Case, random_set

from pmlopt import (
    PML,
    AllPriors,
    CirclePrior,
    ConvexHull,
    CoordinateLoss,
    ExpectedLoss,
    IIDPrior,
    InvariantPrior,
    Prior,
    design,
    least_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.core.numbers.arrays import IntArray
from pmlopt.data.symmetry import reflection
from pmlopt.errors import ProgramError
from pmlopt.model.uncertainty import leakage_capacity
from pmlopt.model.utility import DisplacementLoss, utility_order
from pmlopt.programs import Status
from pmlopt.programs.exact.rounding import is_met_exactly
from pmlopt.programs.least_leakage.certificate import (
    LevelMultipliers,
    bound_level,
    bound_level_on_columns,
)
from pmlopt.programs.least_leakage.program import LeastLeakage, SymmetricLeastLeakage


@dataclass(frozen=True, eq=False)
class Instance:
    """A set with its definition, an order, a threshold, and the letters' least probability by output."""

    case: Case
    order: IntArray
    threshold: int

    @property
    def program(self) -> LeastLeakage:
        outputs = self.order.shape[1]
        return worst_case_utility(
            Prior(self.case.p), self.order, self.threshold, outputs, over=self.case.priors
        )

    @property
    def closed(self) -> bool:
        """Whether a letter has only outputs whose letters a corner of the set leaves out."""
        allowed = self.order >= self.threshold
        masses = (self.case.defined.corners() @ allowed).min(axis=0)
        return bool((np.where(allowed, masses, 0.0).max(axis=1) <= 1e-12).any())


def instance(kind: str, seed: int) -> Instance:
    rng = np.random.default_rng([81, KINDS.index(kind), seed])
    n, m = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    order = utility_order(np.round(2 * rng.normal(size=(n, m))), "grouped")
    threshold = int(rng.integers(1, order.max(axis=1).min() + 1))
    return Instance(random_set(kind, rng, n), order, threshold)


INSTANCES = [instance(kind, seed) for kind in KINDS for seed in range(4)]
OPEN = [place for place, one in enumerate(INSTANCES) if not one.closed]


# ---------------------------------------------------------------- against bisection over the corners


@pytest.mark.parametrize("place", range(len(INSTANCES)))
def test_it_is_the_least_level_over_the_corners(place: int) -> None:
    given_ = INSTANCES[place]
    if given_.closed:
        with pytest.raises(ProgramError, match="finite level"):
            _ = given_.program
        return
    program = given_.program
    result = solve(program)
    least = bisected(given_.case.defined.corners(), program.allowed)
    assert result.status is Status.OPTIMAL
    # its linear programs are feasible to 1e-10, which costs e^level times that
    assert result.value == pytest.approx(least, abs=1e-8 + 4e-10 * math.exp(result.value))
    matrix = result.mechanism.matrix
    assert result.certificate.verify()
    assert is_stochastic(matrix)
    assert is_met_exactly(program.prior, PML(result.value, over=given_.case.priors), matrix)
    assert (matrix[~program.allowed] == 0).all()
    assert leakage_capacity(given_.case.priors, matrix) == pytest.approx(result.level, abs=1e-12)
    assert result.certificate.recompute_bound() >= result.bound


# ---------------------------------------------------------------- any multipliers


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(OPEN), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-9, 1.0, 1e9]))
def test_any_multipliers_prove_no_more_than_a_mechanism_has(
    place: int, seed: int, size: float
) -> None:
    given_, rng = INSTANCES[place], np.random.default_rng(seed)
    program, over = given_.program, given_.case.priors
    matrix = np.where(program.usable_pairs, rng.gamma(0.5, size=program.allowed.shape) + 1e-6, 0.0)
    level = program.compute_level(matrix / matrix.sum(axis=1, keepdims=True))
    rows = size * rng.normal(size=program.prior.size)
    some = np.stack([over.minimizer(rng.normal(size=len(rows))) for _ in program.outputs], axis=1)
    large, nothing = 1e307 * rng.normal(size=some.shape), np.full(some.shape, np.nan)
    for laws in (None, some, 1e-9 * some, large, nothing, 0 * some):
        multipliers = LevelMultipliers(rows, laws=laws)
        assert (
            0
            <= bound_level(program.prior, program.allowed, None, multipliers, over)
            <= level + 1e-12
        )


def test_a_share_by_hand() -> None:
    # the letters 1 and 2 have the mass 2/5 in the worst corner: with y = (0, 1, 0) and p uniform,
    # c = (-1, 2, -1) / 9, and a column on the letters 0 and 1 may be one on both
    over = ConvexHull([[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]])
    allowed = np.array([[True, False], [True, True], [False, True]])
    rows = LevelMultipliers(np.array([0.0, 1.0, 0.0]))
    assert math.exp(bound_level(Prior.uniform(3), allowed, None, rows, over)) == pytest.approx(
        2.5, abs=1e-12
    )
    named = LevelMultipliers(
        rows.rows, laws=np.array([[0.4, 0.4], [0.2, 0.2], [0.4, 0.4]])
    )  # in the middle
    weaker = bound_level(Prior.uniform(3), allowed, None, named, over)
    assert math.exp(weaker) == pytest.approx(1 / 0.6, abs=1e-12)


# ---------------------------------------------------------------- sets that are known


@pytest.mark.parametrize("seed", range(3))
def test_over_all_priors_it_is_ldp_on_outputs_that_all_may_emit(seed: int) -> None:
    """A letter that may emit an output only some can emit tells those apart: the least level is 0 or inf."""
    rng = np.random.default_rng([83, seed])
    order = utility_order(rng.normal(size=(4, 5)))
    for h in range(1, 6):
        if (order >= h).all(axis=0).any():
            result = solve(worst_case_utility([0.25] * 4, order, h, 5, over=AllPriors(4)))
            assert (result.value, result.bound) == (0.0, 0.0)
        else:
            with pytest.raises(ProgramError, match="finite level"):
                worst_case_utility([0.25] * 4, order, h, 5, over=AllPriors(4))


# ---------------------------------------------------------------- by orbits


HAMMING = CoordinateLoss([[0, 1], [1, 0]])


@given(st.floats(0.05, 0.95), st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_the_level_is_that_of_the_listed_program(share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = IIDPrior(rng.dirichlet([3, 3]), 3)
    most = solve(design(prior, PML(0.0), HAMMING)).value
    found = solve(least_leakage(prior, HAMMING, expected=share * most))
    listed = prior.listed()
    table = HAMMING.evaluate_table(listed.labels, listed.labels)
    wanted = solve(least_leakage(listed, ExpectedLoss(table), expected=share * most))
    assert found.value == pytest.approx(wanted.value, abs=3e-7)
    assert found.bound <= wanted.value + 1e-9
    assert wanted.bound <= found.value + 1e-9
    assert found.certificate.verify()
    loss = listed.pmf @ (table * found.mechanism.matrix).sum(axis=1)
    assert loss <= share * most * (1 + 1e-12) + 1e-12


def test_the_loss_that_one_nat_buys_takes_one_nat() -> None:
    result = solve(least_leakage(IIDPrior([0.7, 0.3], 16), HAMMING, expected=4.2435478878))
    assert result.value == pytest.approx(1.0, abs=2e-7)
    assert result.gap <= 1e-7
    assert result.level <= result.value
    assert result.certificate.verify()


def test_on_a_circle_the_level_is_by_hand() -> None:
    """The mean of the N e^-eps least losses is 1.5 for six of 24 letters: log 4."""
    along = [min(d, 24 - d) for d in range(24)]
    result = solve(least_leakage(CirclePrior(24), DisplacementLoss(along), expected=1.5))
    assert result.value == pytest.approx(math.log(4), abs=2e-7)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_any_multipliers_prove_a_level_that_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon = float(rng.uniform(0.2, 1.5))
    prior = IIDPrior([0.6, 0.4], 3)
    best = solve(design(prior, PML(epsilon), HAMMING))
    program = least_leakage(prior, HAMMING, expected=best.value * (1 + 1e-9))
    assert isinstance(program, SymmetricLeastLeakage)
    rho = rng.normal(size=4) * 10.0 ** rng.integers(-3, 2)
    if best.certificate.multipliers is not None and seed % 2:
        rho = best.certificate.multipliers + 1e-3 * rho
    weight = program.floor.unit if seed % 3 else 0.0  # of gains in units of their own
    proved = bound_level_on_columns(
        program.columns, program.allowed, program.floor, LevelMultipliers(-rho, weight)
    )
    assert proved <= epsilon + 1e-9


def test_a_floor_that_a_constant_reaches_takes_nothing() -> None:
    mirrored = InvariantPrior([0.1, 0.2, 0.4, 0.2, 0.1], [reflection(5)])
    result = solve(least_leakage(mirrored, ExpectedLoss(lambda x, y: abs(x - y)), expected=0.8))
    assert result.value <= 1e-7
    assert result.bound == 0.0


def test_the_declared_problem_is_zero_where_the_level_can_be_reached() -> None:
    program = least_leakage(IIDPrior([0.7, 0.3], 4), HAMMING, expected=0.8275588823)
    for level, missing in ((1.0, 0.0), (0.9, 1e-2)):
        program.exp_neg_epsilon.value = math.exp(-level)
        found = float(program.problem.solve(solver="HIGHS"))
        assert found == pytest.approx(0.0, abs=1e-8) if not missing else found > missing
