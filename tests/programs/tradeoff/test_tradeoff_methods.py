"""The methods for trade-offs: programs, starts, time limits, and mechanisms with a row for each value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pmlopt import distortion_leakage, leakage_distortion, solve, solvers_for
from pmlopt.model.closed_forms.parity import parity_leakage
from pmlopt.model.queries import ModularSum
from pmlopt.programs import Status
from pmlopt.programs.certificate import Restart
from pmlopt.programs.tradeoff.grouped_rows import families, searched_rows, within_distortion
from pmlopt.programs.tradeoff.methods import CuttingPlanes, Penalty

PARITY = ModularSum(3, 2)


class TestPrograms:
    def test_the_problem_bounds_the_value_from_below(self) -> None:
        for program in (
            leakage_distortion(ModularSum(2, 3), 0.2, 0.7),
            distortion_leakage(PARITY, 0.1, 1.5),
        ):
            least = float(program.problem.solve(solver="CLARABEL"))
            result = solve(program)
            assert result.status is Status.OPTIMAL
            assert -1e-7 <= least <= result.value + 1e-7

    def test_scales(self) -> None:
        """A parity is wrong half of the time where the answer is a constant."""
        assert leakage_distortion(PARITY, 0.2, 1.5).scale == 1
        assert distortion_leakage(PARITY, 0.2, 1.5).scale == pytest.approx(0.5)
        assert distortion_leakage(PARITY, 0.2, 1.5, loss=np.zeros((2, 2))).scale == 1
        assert not leakage_distortion(PARITY, 0.2, 1.5).maximised

    def test_methods(self) -> None:
        choices = solvers_for(leakage_distortion(PARITY, 0.2, 1.5))
        assert [(choice.name, choice.automatic) for choice in choices] == [
            ("cutting-planes", True),
            ("penalty", False),
        ]
        assert "[wu2026entropy, Algorithms 6 to 11]" in choices[1].reason
        assert CuttingPlanes(seed=3) != CuttingPlanes()
        assert Penalty() == Penalty(seed=0)


class TestStarts:
    def test_the_priors_of_a_neighbour_save_rounds(self) -> None:
        first = solve(leakage_distortion(ModularSum(2, 3), 0.2, 0.7))
        assert not first.warm_started
        again = solve(leakage_distortion(ModularSum(2, 3), 0.2, 0.7), warm_start=first)
        assert again.warm_started
        assert again.iterations is not None
        assert first.iterations is not None
        assert again.iterations <= first.iterations
        assert abs(again.value - first.value) <= again.gap + first.gap
        assert again.certificate.verify()

    def test_priors_serve_the_other_problem(self) -> None:
        first = solve(leakage_distortion(ModularSum(2, 3), 0.2, 0.7))
        back = solve(distortion_leakage(ModularSum(2, 3), first.value, 0.7), warm_start=first)
        assert back.warm_started
        assert back.value == pytest.approx(0.2, abs=1e-4)

    @pytest.mark.parametrize(
        "arrays",
        [
            {},
            {"record0": np.array(0), "joint0": np.ones((3, 3)) / 9},
            {"record0": np.array(7), "joint0": np.ones((2, 2)) / 4},
            {"record0": np.array(0), "joint0": -np.ones((2, 2))},
            {"record0": np.array(0), "joint0": np.full((2, 2), math.nan)},
            {"record0": np.array(0), "joint0": np.zeros((2, 2))},
            {"joint0": np.ones((2, 2)) / 4},
            {"matrix": np.eye(5)},
        ],
    )
    def test_priors_that_do_not_fit_are_left_out(self, arrays: dict[str, Any]) -> None:
        start = Restart("cutting-planes", arrays)
        result = solve(leakage_distortion(PARITY, 0.2, 1.5), warm_start=start, gap=0.01)
        assert not result.warm_started
        assert result.status is Status.OPTIMAL

    def test_a_mechanism_to_start_from(self) -> None:
        result = solve(leakage_distortion(PARITY, 0.2, 1.5), warm_start=[[0.8, 0.2], [0.2, 0.8]])
        assert result.warm_started
        assert result.value == pytest.approx(parity_leakage(3, 0.2, 1.5), abs=1e-6)


# ---------------------------------------------------------------- a row for each value


def symmetric_capacity(error: float) -> float:
    """Two rows of a symmetric channel of three outputs, each as likely: H(Y) - H(Y | X_i)."""
    row = np.array([1 - error, error / 2, error / 2])
    law = (row + row[[1, 0, 2]]) / 2
    return float((row * np.log(row)).sum() - (law * np.log(law)).sum())


MANY = ModularSum(30, 3)


def test_the_symmetric_mechanism_has_the_distortion() -> None:
    """The sum is uniform up to 2^-30, an error is off by 1 or 2, and by 4/3 on average."""
    rows = searched_rows(leakage_distortion(MANY, 0.2, 18.0))[0]
    matrix = within_distortion(rows, families(rows)[0])
    assert rows.program.tradeoff.distortion(matrix) <= 0.2
    assert matrix[:3] == pytest.approx(np.full((3, 3), 0.075) + 0.775 * np.eye(3), abs=1e-6)
    loose = searched_rows(leakage_distortion(MANY, 5.0, 18.0))[0]
    assert within_distortion(loose, families(loose)[0]) == pytest.approx(1 / 3)


def test_a_limit_that_is_never_reached_changes_nothing() -> None:
    """The search without a limit is no other one: many classes would keep it among priors for hours."""
    program = leakage_distortion(ModularSum(12, 3), 0.2, 6 * math.log(2))
    free, limited = solve(program), solve(program, time_limit=1e6)
    assert (free.iterations, free.value, free.bound) == (limited.iterations, limited.value, limited.bound)


def test_hundreds_of_classes_are_solved() -> None:
    """Most have next to no mass under any prior: Clarabel stalls on them."""
    result = solve(leakage_distortion(ModularSum(300, 3), 0.2, 180.0), time_limit=4.0)
    assert 0.3 <= result.bound <= symmetric_capacity(0.15)
    assert result.bound <= result.value
    assert result.certificate.distortion <= 0.2 + 1e-12
