"""The rounds of the penalty method and how it ends, with what they call replaced by a record of its calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt import distortion_leakage, leakage_distortion
from pmlopt.model.queries import ModularSum
from pmlopt.programs.tradeoff.program import TradeoffProgram, combine_convexly
from pmlopt.programs.wu2026entropy import penalty
from pmlopt.programs.wu2026entropy.penalty import _certify_end, solve_by_penalties
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

LEAKAGE = leakage_distortion(ModularSum(2, 3), 0.2, 0.7)
DISTORTION = distortion_leakage(ModularSum(2, 3), 0.2, 0.7)


def at_distortion(program: TradeoffProgram, aim: float) -> FloatArray:
    """The mixture of the least distortion and a constant that distorts `aim`, which is linear in it."""
    low, high = program.min_distortion, program.constant_distortion
    weight = (aim - low) / (high - low)
    return combine_convexly(program.least_distortion_matrix, program.constant_matrix, weight)


@pytest.mark.parametrize(
    ("excess", "mixed"), [(-0.005, False), (0.005, True), (0.009, True), (0.02, False)]
)
def test_an_excess_of_distortion_within_the_margin_is_mixed_away(
    monkeypatch: pytest.MonkeyPatch, excess: float, mixed: bool
) -> None:
    audited = []

    def audit(program: Any, matrix: FloatArray, *_: Any, **__: Any) -> SimpleNamespace:
        audited.append(matrix)
        return SimpleNamespace(bound=0.1)

    monkeypatch.setattr(penalty, "audit_leakage", audit)
    monkeypatch.setattr(penalty, "certify_tradeoff", lambda *_: None)
    matrix = at_distortion(LEAKAGE, LEAKAGE.limit + excess)
    message = _certify_end(LEAKAGE, matrix, 0, NO_DEADLINE)[1]
    spent = LEAKAGE.tradeoff.compute_distortion(audited[-1])
    assert spent == pytest.approx(LEAKAGE.limit + (0.0 if mixed else excess), abs=1e-9)
    assert message == (f"; a violation of {excess:.1e} was mixed away" if mixed else "")


@pytest.mark.parametrize(("excess", "mixed"), [(-0.005, False), (0.005, True), (0.02, False)])
def test_an_excess_of_leakage_within_the_margin_is_mixed_to_just_below_the_limit(
    monkeypatch: pytest.MonkeyPatch, excess: float, mixed: bool
) -> None:
    gaps, aims = [], []

    def audit(program: Any, matrix: FloatArray, gap: float, **__: Any) -> SimpleNamespace:
        gaps.append(gap)
        return SimpleNamespace(bound=DISTORTION.limit + excess)

    def mix(program: Any, matrix: FloatArray, audit: Any, aim: float) -> FloatArray:
        aims.append(aim)
        return matrix

    monkeypatch.setattr(penalty, "audit_leakage", audit)
    monkeypatch.setattr(penalty, "mix_within_leakage", mix)
    monkeypatch.setattr(penalty, "certify_tradeoff", lambda *_: None)
    matrix = DISTORTION.constant_matrix
    message = _certify_end(DISTORTION, matrix, 0, NO_DEADLINE)[1]
    room = 1e-6 * DISTORTION.limit
    assert aims == ([pytest.approx(DISTORTION.limit - room, rel=1e-12)] if mixed else [])
    assert gaps == pytest.approx([1e-7, room / 2] if mixed else [1e-7])
    assert message == (f"; a violation of {excess:.1e} was mixed away" if mixed else "")


@pytest.mark.parametrize(("step", "rounds"), [(2e-4, 15), (0.5e-4, 2)])
def test_rounds_go_on_while_the_leakage_changes_from_the_last_prior_and_random_ones(
    monkeypatch: pytest.MonkeyPatch, step: float, rounds: int
) -> None:
    """A change of 1e-4 is one; three fifths of the time are for the rounds."""
    starts: list[list[Any]] = []
    ends: list[float] = []
    prior = np.full((2, 2, 2), 1 / 8)

    def run_all(climbs: list[Any], random: Any) -> list[SimpleNamespace]:
        starts.append([climb.first for climb in climbs])
        ends.extend(climb.deadline.end for climb in climbs)
        return [SimpleNamespace(prior=prior, value=0.3 - step * len(starts))]

    def certify(program: Any, matrix: FloatArray, seed: int, deadline: Deadline) -> Any:
        certificate = SimpleNamespace(
            violation=0.0, value=0.3, mechanism=SimpleNamespace(matrix=matrix)
        )
        return certificate, f"; at {deadline.end}"

    monkeypatch.setattr(penalty, "run_until_deadline", run_all)
    monkeypatch.setattr(penalty, "_certify_end", certify)
    monkeypatch.setattr(penalty, "compute_joint_law", lambda *_: None)
    monkeypatch.setattr(penalty, "adapt_weight", lambda problem, matrix, deadline: matrix)
    program = leakage_distortion(ModularSum(2, 3), 0.2, 0.7)
    result = solve_by_penalties(program, 0, Deadline(20.0, lambda: 10.0))
    assert result.iterations == len(starts) == rounds
    assert [len(some) for some in starts] == [2, *[3] * (rounds - 1)]
    assert all(some[2] is prior for some in starts[1:])
    assert ends == pytest.approx([16.0] * len(ends))
    assert result.message == f"{rounds} rounds, no bound; at 20.0"
