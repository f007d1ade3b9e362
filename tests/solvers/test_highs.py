"""HiGHS directly: programs written as MPS files are read back as the same programs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import cvxpy as cp
import highspy
import numpy as np
import pytest
from oracles import designs as oracles

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    MaximalLeakage,
    Prior,
    Program,
    design,
    solve,
)
from pmlopt.errors import FileFormatError, ProgramError, SolverOptionError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.certificate import Status
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import make_options


def read(path: Path) -> highspy.Highs:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("small_matrix_value", 1e-12)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    return solver


def optimum_in(path: Path) -> float:
    solver = read(path)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)


@pytest.mark.parametrize(
    ("privacy", "loss"),
    [(PML(0.5), True), (LDP(0.5), False), (LIP(0.5, 0.4), False), (MaximalLeakage(0.5), True)],
)
def test_the_file_has_the_same_optimum(tmp_path: Path, privacy: Requirement, loss: bool) -> None:
    case = oracles.random_case(np.random.default_rng(30), 4, 5)
    utility = (ExpectedLoss if loss else ExpectedGain)(case.gains)
    design(case.prior, privacy, utility).write_mps(tmp_path / "program.mps")
    # the file minimises: a loss as it is, a gain with its sign turned
    least = -oracles.optimum(case.prior.pmf, privacy, -case.gains if loss else case.gains).value
    assert optimum_in(tmp_path / "program.mps") == pytest.approx(least, abs=1e-7)


def test_the_names_stand_at_their_columns(tmp_path: Path) -> None:
    gains = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    design([0.5, 0.5], PML(0.5), ExpectedGain(gains)).write_mps(tmp_path / "program.mps")
    model = read(tmp_path / "program.mps").getLp()
    costs = dict(zip(model.col_names_, model.col_cost_, strict=True))
    for (x, y), gain in np.ndenumerate(gains - gains.min(axis=1, keepdims=True)):
        assert costs[f"mechanism[{x},{y}]"] == pytest.approx(-gain / 2)
    # a column that is fixed at one has the constant: readers differ on one in the section of right sides
    place = model.col_names_.index("objective_constant")
    assert costs["objective_constant"] == pytest.approx(-(1.0 + 4.0) / 2)
    assert (model.col_lower_[place], model.col_upper_[place], model.offset_) == (1.0, 1.0, 0.0)


READERS = {
    "glpsol": (["glpsol", "--freemps", "FILE", "-o", "/dev/stdout"], r"objective = (\S+) \(MIN"),
    "lp_solve": (["lp_solve", "-fmps", "FILE"], r"Value of objective function: (\S+)"),
    "cbc": (["cbc", "FILE", "solve"], r"Optimal objective (\S+) "),
    "clp": (["clp", "FILE"], r"Optimal objective (\S+) "),
}
"""Command and the place of the optimum in what it prints."""


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_find_the_optimum_with_its_constant(reader: str, tmp_path: Path) -> None:
    command, pattern = READERS[reader]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{reader} is not installed")
    path = tmp_path / "program.mps"
    # every output loses four but for the true letter, which no mechanism within the limit always publishes
    for utility, wanted in (
        (ExpectedLoss(4 - np.eye(3)), 3.5),
        (ExpectedGain(4 + np.eye(3)), -4.5),
    ):
        design([0.5, 0.3, 0.2], LDP(0.4), utility).write_mps(path)
        found = subprocess.run(
            [str(path) if word == "FILE" else word for word in command],
            capture_output=True,
            text=True,
            check=True,
        )
        value = re.search(pattern, found.stdout)
        assert value is not None, found.stdout
        assert float(value.group(1)) == pytest.approx(wanted, abs=1e-6)


def test_rows_and_columns_say_letters_and_outputs(tmp_path: Path) -> None:
    prior = Prior([0.5, 0.3, 0.2], ["ill", "not ill", "x,y"])
    program = design(prior, PML(0.5), ExpectedGain(np.eye(3)), ["a", "b", "c"])
    capped = program.with_constraints(cap=program.mechanism[0, 0] <= 0.5)
    capped.write_mps(tmp_path / "program.mps")
    model = read(tmp_path / "program.mps").getLp()
    # labels that have blanks and commas are distinct without them
    assert {"mechanism[not_ill,b]", "mechanism[x_y,c]"} <= set(model.col_names_)
    assert {"rows[not_ill]", "pml[ill,c]", "cap"} <= set(model.row_names_)


def test_added_constraints_are_in_the_file(tmp_path: Path) -> None:
    program = design([0.5, 0.5], PML(9.0), ExpectedGain(np.eye(2)))
    capped = program.with_constraints(cap=program.mechanism[0, 0] <= 0.5)
    capped.write_mps(tmp_path / "program.mps")
    assert optimum_in(tmp_path / "program.mps") == pytest.approx(-0.75, abs=1e-9)


@pytest.mark.parametrize("name", ["my slack", "mechanism"])
def test_variables_of_ones_own_may_have_any_name(tmp_path: Path, name: str) -> None:
    program = design([0.5, 0.5], PML(9.0), ExpectedGain(np.eye(2)))
    slack = cp.Variable((2, 2), name=name, bounds=[0, 0.25])
    program.with_constraints(tied=program.mechanism <= 0.5 + slack).write_mps(
        tmp_path / "program.mps"
    )
    assert optimum_in(tmp_path / "program.mps") == pytest.approx(-0.75, abs=1e-9)


def test_what_is_not_linear_is_refused(tmp_path: Path) -> None:
    program = design([0.5, 0.5], PML(0.5), ExpectedGain(np.eye(2)))
    program = program.with_constraints(size=cp.norm(program.mechanism, "fro") <= 1)
    with pytest.raises(ProgramError, match="linear"):
        program.write_mps(tmp_path / "program.mps")
    assert list(tmp_path.iterdir()) == []


def small() -> Program[Any]:
    return design([0.5, 0.5], PML(0.5), ExpectedGain(np.eye(2)))


def test_the_file_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "program.mps"
    target.write_text("before")

    def fail(self: Path, other: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(FileFormatError, match="No space left"):
            small().write_mps(target)
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]
    small().write_mps(target)
    assert optimum_in(target) < 0
    assert list(tmp_path.iterdir()) == [target]


def test_an_instance_that_solved_other_programs_finds_the_same_digits() -> None:
    """Of programs of other sizes, with other limits and other options."""
    prior = Prior([0.4, 0.3, 0.2, 0.1])
    tasks = [
        design(prior, privacy, ExpectedGain(np.random.default_rng(1).random((4, outputs))))
        for privacy, outputs in ((PML(0.6), 5), (LDP(0.6), 3), (LIP(0.5, 0.4), 4))
    ]
    first, *others = (program.build_block_lp() for program in tasks)
    assert first is not None
    options = make_options(None, 1e-7)
    with mock.patch.object(highs, "_idle_solvers", []):
        alone = highs.solve_by_simplex(first, options)
        for other in others:
            assert other is not None
            limited = make_options(60.0, 1e-4, {"simplex_scale_strategy": 4})
            assert highs.solve_by_simplex(other, limited).finished
        again = highs.solve_by_simplex(first, options)
        assert len(highs._idle_solvers) == 1
    assert alone.point is not None
    assert again.point is not None
    assert np.array_equal(alone.point.matrix, again.point.matrix)
    assert alone.iterations == again.iterations
    # the basis of its optimum is a start from which no step is left
    restarted = highs.solve_by_simplex(first, options, basis=again.warm_start_arrays)
    assert restarted.warm_started
    assert restarted.iterations == 0


def test_an_instance_whose_work_failed_is_not_used_again() -> None:
    model = highs.build_columnwise_model(
        np.ones(1), (0.0, np.inf), (np.ones(1), np.ones(1)),
        (np.array([0, 1]), np.zeros(1), np.ones(1)),
    )  # fmt: skip
    with mock.patch.object(highs, "_idle_solvers", []):
        with pytest.raises(KeyboardInterrupt), highs.lend_solver(model, {}):
            raise KeyboardInterrupt
        assert highs._idle_solvers == []


def test_the_time_of_earlier_programs_does_not_count() -> None:
    """HiGHS adds up the seconds of all runs of an instance."""
    solver = mock.Mock(**{"getRunTime.return_value": 3.0})
    solver.setOptionValue.return_value = highspy.HighsStatus.kOk
    highs._set_options(solver, {"time_limit": 5.0})
    assert solver.setOptionValue.call_args.args == ("time_limit", 8.0)


def test_a_number_of_threads_that_an_earlier_solve_has_fixed_is_refused() -> None:
    # HiGHS ends such a run with an error and no status, which is no limit that was reached
    program = design([0.5, 0.3, 0.2], PML(0.5), ExpectedGain(np.eye(3)))
    assert solve(program, solver="highs").status == Status.OPTIMAL
    with pytest.raises(
        SolverOptionError, match=r"threads=211 is another one: leave the option out"
    ):
        solve(program, solver="highs", solver_options={"threads": 211})
    assert solve(program, solver="highs").status == Status.OPTIMAL
