"""Rounds of designs with a limited cost, and cuts of priors: what they keep, and what proves their bound."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import (
    PML,
    ChiSquareBall,
    ConvexHull,
    MaximalLeakage,
    MutualInformation,
    Prior,
    design,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty import MinimumMass
from pmlopt.model.uncertainty.columns import ColumnCone
from pmlopt.model.uncertainty.cut_polytopes import TIGHT_ATOL, CutCube
from pmlopt.programs.subconvex import cost_program, cost_space, prior_cuts
from pmlopt.programs.subconvex.cost_program import (
    GAP_REACHED,
    ColumnCostDesign,
    _CostRounds,
)
from pmlopt.programs.subconvex.cost_space import CostSpace
from pmlopt.programs.subconvex.prior_cuts import _CutRounds, pull_into_cone
from pmlopt.solvers.solver_result import TIME_LIMIT, Deadline, MethodOptions

P = np.array([0.05, 0.15, 0.3, 0.5])


def test_a_bound_is_the_best_priced_set_and_the_rounding_of_all_its_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under maximal leakage columns are constant on sets, and cost their largest entry."""
    monkeypatch.setattr(cost_space, "bound_sum_rounding", lambda terms, size: 0.01 * size)
    privacy = MaximalLeakage(math.log(2))
    cost = privacy.column_cost(Prior(P))
    assert cost is not None
    rho, price = np.array([0.7, -0.2, 0.4, 0.1]), 0.3
    worth = []
    for bits in itertools.product([0, 1], repeat=4):
        if any(bits):
            mass = float(P @ bits)
            worth.append(-math.log(mass) - float((P * rho) @ bits) / mass - price / mass)
    size = 0.7 + float(P @ np.abs(rho)) + price * (2 + 1 / P.min()) - float(P @ np.log(P))
    expected = float(P @ rho) + 2 * price + max(worth) + (0.01 + TIGHT_ATOL) * size
    found = CostSpace(Prior(P), MutualInformation(), cost).compute_bound(rho, price, None)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_certificate_of_a_limited_cost_allows_for_sums_in_another_order() -> None:
    certificate: Any = solve(
        design(P, MaximalLeakage(math.log(2)), MutualInformation())
    ).certificate
    assert certificate.residuals["rows"] < 1e-12
    proved = certificate._build_space().compute_bound(
        certificate.multipliers, certificate.price, certificate.slopes
    )
    for bound, holds in ((proved, True), (proved - 0.1 * certificate.bound_rounding, True),
                         (proved - 1e-9, False)):  # fmt: skip
        claims = replace(certificate, bound=bound).checks()
        assert next(claim.holds for claim in claims if claim.name == "bound") is holds


def test_a_scale_is_what_the_choice_of_a_mechanism_can_change() -> None:
    program: Any = object.__new__(ColumnCostDesign)
    vars(program)["space"] = SimpleNamespace(full_release_utility=2.0, constant_utility=0.5)
    assert program.scale == 1.5


def rounds_of(**cost: Any) -> Any:
    """Rounds of which the cost of a column is its largest entry, and the utility is its first entry."""
    work: Any = object.__new__(_CostRounds)
    known = {"usable_cost": 1.5, "max_cost": 1.5, "per_outcome": False}
    priced = SimpleNamespace(**{**known, "evaluate": lambda lifts: lifts.max(axis=0), **cost})
    space = SimpleNamespace(column_values=lambda lifts: lifts[0])
    work.program = SimpleNamespace(
        cost=priced, space=space, prior=SimpleNamespace(pmf=P, size=4),
        compute_allowed_gap=lambda tolerance: tolerance,
    )  # fmt: skip
    return work


def test_columns_are_mixed_with_the_constant_on_their_letters_until_they_are_within_the_cost() -> (
    None
):
    work = rounds_of()
    lifts = np.array([
        [1.0, 0.0, 20.0, 1.2, 0.0],
        [1.0, 0.0, 0.0, 1.2, 3.0],
        [1.0, 0.0, 0.0, 1.2, 0.5],
        [1.0, 2.0, 0.0, 0.8, 0.8],
    ])  # fmt: skip
    found = work._pull_within_cost(lifts)
    assert found[:, 0].tolist() == [1, 1, 1, 1]
    assert found[:, 3] == pytest.approx(lifts[:, 3])
    for column, pulled in zip(lifts.T[[1, 2, 4]], found.T[[1, 2, 4]], strict=True):
        letters = column > 0
        still = letters / float(P @ letters)
        if still.max() > (1 + 1.5) / 2:  # it would leave less than half of the room
            still = np.ones(4)
        share = (1.5 - still.max()) / (column.max() - still.max())
        assert pulled == pytest.approx(still + share * (column - still))
    assert found[0, 4] == 0  # the constant on the three others costs 1 / .95


def test_no_linear_cost_is_found_at_columns_that_have_their_cost() -> None:
    work = rounds_of(unit_costs=np.ones(4))
    polytope: Any = SimpleNamespace(slopes=np.zeros((0, 4)))
    assert work._find_slopes(polytope, np.diag([2.0, 1.0, 3.0, 1.5])).shape == (0, 4)


def test_a_pool_keeps_what_is_used_and_then_what_is_worth_most_at_the_multipliers() -> None:
    work = rounds_of()
    random = np.random.default_rng(0)
    pool = random.random((4, 9))
    duals = np.append(random.random(4), 0.6)  # the last is the price of a whole cost
    work.pool = pool
    work._solve_over = lambda lifts, costs, most: (0.4, np.array([5, 2]), duals)
    value, places, _ = work._solve_pool()
    worth = [
        pool[0, k] - float(duals[:4] @ pool[:, k]) - 0.6 / 1.5 * pool[:, k].max() for k in range(9)
    ]
    rest = sorted((k for k in range(9) if k not in (2, 5)), key=lambda k: -worth[k])
    assert work.pool == pytest.approx(pool[:, [2, 5, *rest]])
    assert (value, places.tolist()) == (0.4, [0, 1])


@pytest.mark.parametrize(("gap", "ending"), [(0.049, GAP_REACHED), (0.051, TIME_LIMIT)])
def test_a_round_adds_the_columns_of_most_worth_and_ends_at_half_of_the_gap(
    monkeypatch: pytest.MonkeyPatch, gap: float, ending: str
) -> None:
    """Worth beyond the multipliers of the rows and the price of the cost."""
    work = rounds_of()
    random = np.random.default_rng(0)
    lifts = random.random((4, 9))
    costs, duals = lifts.max(axis=0), np.append(random.random(4), 0.6)
    polytope = SimpleNamespace(list_columns=lambda: (lifts, costs), slopes=None)
    monkeypatch.setattr(
        cost_program, "CostPolytope", SimpleNamespace(from_cost=lambda *_: polytope)
    )
    added: list[FloatArray] = []
    work._add_to_pool = added.append
    work._solve_over = lambda *_: (1.0, np.array([0]), duals)
    work._solve_pool = lambda: (1.0 - gap, np.array([0]), duals)
    work.start, work.rounds, work.upper = np.zeros((0, 4)), 0, np.inf
    work.options = MethodOptions(Deadline(1.0, lambda: 2.0), 0.1)
    assert work.run() == ending
    worth = [lifts[0, k] - float(duals[:4] @ lifts[:, k]) - 0.6 / 1.5 * costs[k] for k in range(9)]
    assert added[0] == pytest.approx(lifts[:, np.argsort(-np.array(worth))])


# ---------------------------------------------------------------- cuts of priors


def cone_of() -> ColumnCone:
    priors = MinimumMass(4, 0.1)
    return replace(ColumnCone(MinimumMass(4, 0.15), 0.6), relaxed=priors)


def test_columns_are_pulled_until_the_least_mean_over_the_whole_set_is_their_share() -> None:
    cone, whole = cone_of(), MinimumMass(4, 0.1)
    lifts = np.random.default_rng(0).random((4, 12)) * 2
    found = pull_into_cone(cone, lifts)
    before = 0.6 * lifts.max(axis=0) - whole.min_mean(lifts)
    after = 0.6 * found.max(axis=0) - whole.min_mean(found)
    short = before > 0
    assert short.any()
    assert not short.all()
    assert after[short] == pytest.approx(np.zeros(short.sum()), abs=1e-12)
    assert found[:, ~short] == pytest.approx(lifts[:, ~short])


def test_priors_that_are_known_cut_nothing() -> None:
    laws = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    whole: Any = SimpleNamespace(minimizer=lambda column: laws[int(column[0])] + 1e-12)
    cone, cube = ColumnCone(ConvexHull(laws), 0.6, whole), CutCube.from_size(4)
    found, same, is_full = cone.add_deepest_cuts(cube, np.array([[0.0, 1.0, 1.0]] * 4), 100)
    assert (len(found), same, is_full) == (2, cube, False)


def test_the_deepest_cuts_come_in_until_the_columns_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    p = np.random.default_rng(0).dirichlet(np.full(5, 2.0))
    program = design(p, PML(1.0, over=ChiSquareBall(p, 0.1)), MutualInformation())
    cone: Any = program.space.allowed
    first = len(cone.member_cube.vertices)
    found = []
    for limit in (first, first + 50, 20_000):
        monkeypatch.setattr(prior_cuts, "MAX_CUT_VERTICES", limit)
        found.append(solve(program, "prior-cuts"))
        assert found[-1].certificate.verify()
    assert [one.status.value for one in found] == ["unproved", "unproved", "optimal"]
    # what fits is used: most of what the first priors leave is closed
    gaps = [one.bound - found[-1].value for one in found]
    assert 0 <= gaps[1] <= gaps[0] / 2


@pytest.mark.parametrize(("gap", "ending"), [(0.089, "gap reached"), (0.091, TIME_LIMIT)])
def test_a_round_of_cuts_adds_the_columns_of_most_worth_and_ends_at_nine_tenths_of_the_gap(
    monkeypatch: pytest.MonkeyPatch, gap: float, ending: str
) -> None:
    random = np.random.default_rng(0)
    listed, duals = random.random((4, 9)), 0.1 * random.random(4)
    pulled: list[FloatArray] = []

    def pull(cone: Any, lifts: FloatArray) -> FloatArray:
        pulled.append(lifts)
        return lifts

    monkeypatch.setattr(prior_cuts, "pull_into_cone", pull)
    monkeypatch.setattr(prior_cuts, "to_mean_one", lambda p, lifts: lifts)
    work: Any = object.__new__(_CutRounds)
    work.program = SimpleNamespace(
        prior=SimpleNamespace(pmf=P, size=4),
        space=SimpleNamespace(column_values=lambda lifts: lifts[0]),
        compute_allowed_gap=lambda tolerance: tolerance,
    )
    work.cone = SimpleNamespace(
        member_cube=SimpleNamespace(vertices=listed.T), laws=np.zeros((1, 4))
    )
    work.options, work.rounds, work.upper = MethodOptions(Deadline(1.0, lambda: 2.0), 0.1), 0, 9.0
    values = iter([1.0, 1.0 - gap])
    work._solve_over = lambda lifts: (next(values), np.zeros(lifts.shape[1], dtype=bool), duals)
    work._prune_pool = lambda *_: None
    work._final_columns = lambda: (np.ones((4, 1)), np.ones(1))
    assert work.run()[0] == ending
    relaxed = np.hstack([np.ones((4, 1)), listed])
    worth = relaxed[0] - duals @ relaxed
    assert pulled[0] == pytest.approx(relaxed[:, np.argsort(-worth)])
