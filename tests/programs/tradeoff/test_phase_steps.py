"""The steps of a search by cutting planes, each with what it calls replaced by a record of its calls."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import distortion_leakage, leakage_distortion
from pmlopt.model.queries import ModularSum
from pmlopt.programs.tradeoff import cutting_planes
from pmlopt.programs.tradeoff.cutting_planes import CuttingPlanePhase, TradeoffSearch
from pmlopt.programs.tradeoff.grouped_rows import WorstCasePrior, plan_groupings
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.tradeoff.proof import TradeoffProof
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

LEAKAGE = leakage_distortion(ModularSum(2, 3), 0.2, 0.7)
DISTORTION = distortion_leakage(ModularSum(2, 3), 0.2, 0.7)
NO_PROOF = TradeoffProof((), 0.0)
TOLERANCE = 0.02


def phase_of(program: TradeoffProgram, deadline: Deadline = NO_DEADLINE) -> CuttingPlanePhase:
    search = TradeoffSearch(program, TOLERANCE, 0, deadline)
    return CuttingPlanePhase(search, plan_groupings(program)[-1], deadline, True, 3.0)


def response(**values: Any) -> Any:
    """What a program may return, of objective 0.5 and without multipliers."""
    known = {"proof": NO_PROOF, "own_bound": 0.5, "leakage": 0.1, "objective_value": 0.5}
    return SimpleNamespace(**{**known, "compile_seconds": 1.0, "solve_seconds": 2.0, **values})


def prior_of(program: TradeoffProgram) -> WorstCasePrior:
    uniform = program.build_adversary(program.constant_matrix, 0).uniform_law
    return WorstCasePrior(0, uniform)


@pytest.mark.parametrize(("end", "over"), [(12.0, True), (13.0, True), (14.0, False)])
def test_time_is_kept_for_an_audit_until_there_was_one(end: float, over: bool) -> None:
    phase = phase_of(LEAKAGE, Deadline(end, lambda: 10.0))
    assert phase.is_out_of_time is over
    phase.audited = True
    assert not phase.is_out_of_time


@pytest.mark.parametrize("program", [LEAKAGE, DISTORTION])
def test_programs_aim_below_a_limit_on_the_leakage_by_the_slack(
    monkeypatch: pytest.MonkeyPatch, program: TradeoffProgram
) -> None:
    limits = []

    def solve(rows: Any, priors: Any, limit: float, options: Any) -> Any:
        limits.append(limit)
        return response()

    monkeypatch.setattr(cutting_planes, "solve_best_response", solve)
    phase = phase_of(program)
    phase.total_weight = 2.0
    phase._solve_against([])
    phase._solve_against([])
    slack = 0.0 if program is LEAKAGE else TOLERANCE / 4 / 2.0
    assert limits == pytest.approx([program.limit - slack] * 2)
    assert (phase.search.compile_seconds, phase.search.solve_seconds) == (2.0, 4.0)


@pytest.mark.parametrize(("above", "solved"), [(0.19, True), (0.21, False)])
def test_a_program_is_solved_where_its_multipliers_confirm_its_value(
    monkeypatch: pytest.MonkeyPatch, above: float, solved: bool
) -> None:
    """Within ten tolerances of the bound of its multipliers."""
    phase = phase_of(LEAKAGE)
    bound = LEAKAGE.trivial_bound + 0.3
    found = response(objective_value=bound + above, own_bound=bound)
    monkeypatch.setattr(CuttingPlanePhase, "_solve_against", lambda *_: found)
    assert (phase._solve_and_check() is found) is solved


@pytest.mark.parametrize(("gap", "calls"), [(0.011, 2), (0.009, 1)])
def test_a_gap_above_half_the_tolerance_is_solved_for_again_with_the_priors_that_bind(
    monkeypatch: pytest.MonkeyPatch, gap: float, calls: int
) -> None:
    phase = phase_of(LEAKAGE)
    assert phase.rows.is_finest
    prior = prior_of(LEAKAGE)
    phase.search.priors = [prior, prior]
    phase.search.lower_bound = 0.5
    phase.search.proof = NO_PROOF
    tried: list[int] = []
    found = response(objective_value=0.5 + gap, own_bound=0.5)

    def solve(self: CuttingPlanePhase, priors: list[WorstCasePrior]) -> Any:
        tried.append(len(priors))
        return found

    monkeypatch.setattr(CuttingPlanePhase, "_solve_against", solve)
    monkeypatch.setattr(cutting_planes, "list_binding_priors", lambda proof: [prior])
    assert phase._solve_and_check() is found
    assert tried == [2, 1][:calls]


def test_a_solver_that_fails_gets_the_binding_priors_and_the_new_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    phase = phase_of(LEAKAGE)
    priors = [prior_of(LEAKAGE) for _ in range(5)]
    phase.search.priors, phase.solved_for = list(priors), 3
    tried: list[list[WorstCasePrior]] = []

    def solve(self: CuttingPlanePhase) -> Any:
        tried.append(list(self.search.priors))
        return response() if len(tried) > 1 else None

    monkeypatch.setattr(CuttingPlanePhase, "_solve_and_check", solve)
    monkeypatch.setattr(cutting_planes, "list_binding_priors", lambda proof: [priors[1]])
    assert phase._solve_with_retry() is not None
    assert [[priors.index(one) for one in some] for some in tried] == [[0, 1, 2, 3, 4], [1, 3, 4]]
    assert phase.solved_for == 3
    assert (phase.rounds, phase.search.rounds) == (1, 1)


@pytest.mark.parametrize("program", [LEAKAGE, DISTORTION])
def test_an_audit_has_news_where_more_leaks_than_was_claimed(
    monkeypatch: pytest.MonkeyPatch, program: TradeoffProgram
) -> None:
    """In Problem 3 by half of the slack."""
    phase = phase_of(program)
    audit = SimpleNamespace(value=0.1, bound=0.1, proofs=[], record=0)
    monkeypatch.setattr(TradeoffSearch, "audit_mechanism", lambda *_, **__: audit)
    law = prior_of(program).joint
    monkeypatch.setattr(cutting_planes, "split_audit_prior", lambda *_: law)
    least = 0.0 if program is LEAKAGE else phase.leakage_slack / 2
    assert least + 1e-3 < 0.1
    matrix = program.constant_matrix
    assert phase._audit_and_learn(matrix, 0.1 - least - 1e-3)
    assert not phase._audit_and_learn(matrix, 0.1 - least + 1e-3)


@pytest.mark.parametrize("room", [0.0, 0.03])
def test_a_path_is_followed_to_below_the_limit_by_the_room(
    monkeypatch: pytest.MonkeyPatch, room: float
) -> None:
    aims = []

    def find(program: Any, path: Any, audit: Any, aim: float) -> Any:
        aims.append(aim)
        return DISTORTION.constant_matrix

    monkeypatch.setattr(cutting_planes, "find_likely_within_limit", find)
    too_much = SimpleNamespace(value=0.5, bound=math.inf, proofs=[])
    monkeypatch.setattr(cutting_planes, "audit_leakage", lambda *_, **__: too_much)
    search = TradeoffSearch(DISTORTION, TOLERANCE, 0, NO_DEADLINE)
    audit: Any = too_much
    search.follow_path(lambda weight: np.eye(2), audit, room, NO_DEADLINE, 1)
    assert aims == pytest.approx([DISTORTION.limit - room] * 6)
    assert search.audits == 6


def test_a_prior_has_to_leak_more_than_the_program_by_a_quarter_of_the_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    floors = []

    def add(self: CuttingPlanePhase, matrix: Any, floor: float) -> bool:
        floors.append(floor)
        return True

    phase = phase_of(LEAKAGE)
    found = response(matrix=LEAKAGE.constant_matrix)
    monkeypatch.setattr(CuttingPlanePhase, "_solve_with_retry", lambda _: found)
    monkeypatch.setattr(CuttingPlanePhase, "_add_priors", add)
    assert phase._run_round() is None
    assert floors == pytest.approx([0.1 + TOLERANCE / 4])


@pytest.mark.parametrize(("gain", "calls"), [(1e-3, 6), (1e-7, 2)])
def test_the_local_method_goes_on_for_300_iterations_while_it_gains(
    monkeypatch: pytest.MonkeyPatch, gain: float, calls: int
) -> None:
    """Fifty at once, until these gain no more than 1e-4 of the tolerance."""
    climbed: list[int] = []

    def climb(adversary: Any, joints: Any, iterations: int, least: float) -> Any:
        climbed.append(iterations)
        return joints, np.array([0.5, 0.2]) + gain * len(climbed)

    monkeypatch.setattr(cutting_planes, "maximize_locally", climb)
    adversary: Any = None
    _, values = phase_of(LEAKAGE)._climb_in_time(adversary, np.ones((2, 1, 1)))
    assert climbed == [50] * calls
    assert values[0] == pytest.approx(0.5 + gain * calls)
