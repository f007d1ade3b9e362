"""A program goes to a file, is solved by any solver, and its solution comes back certified."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
from solution_texts import COLUMNS, FORMS, GLPSOL, XPRESS

from pmlopt import (
    LDP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    MutualInformation,
    Prior,
    Program,
    certify_solution,
    design,
    envelope,
    solve,
)
from pmlopt.errors import FileFormatError, ProgramError
from pmlopt.programs import Status
from pmlopt.solvers.solution_files import parse_solution


def small() -> Program[Any]:
    """Every output loses four but for the true letter: the objective has a constant, a row one variable."""
    prior = Prior([0.5, 0.3, 0.2], ["ill", "not ill", "x,y"])
    program = design(prior, LDP(0.4), ExpectedLoss(4 - np.eye(3)))
    return program.with_constraints(cap=program.mechanism[0, 0] <= 0.4)


def run(*command: str) -> str:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def by_highs(program: Path, solution: Path) -> None:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(program))
    solver.run()
    solver.writeSolution(str(solution), 0)


def by_glpsol(program: Path, solution: Path) -> None:
    run("glpsol", "--freemps", str(program), "-w", str(solution))


def by_glpsol_interior_point(program: Path, solution: Path) -> None:
    run("glpsol", "--freemps", str(program), "--interior", "-w", str(solution))


def by_cbc(program: Path, solution: Path) -> None:
    run("cbc", str(program), "solve", "solution", str(solution))


def by_clp(program: Path, solution: Path) -> None:
    run("clp", str(program), "-solve", "-solution", str(solution))


def by_lp_solve(program: Path, solution: Path) -> None:
    solution.write_text(run("lp_solve", "-fmps", str(program), "-S4"))


def by_scip(program: Path, solution: Path) -> None:
    model = pytest.importorskip("pyscipopt").Model()
    model.hideOutput()
    model.readProblem(str(program))
    model.optimize()
    model.writeBestSol(str(solution))


def by_gurobi(program: Path, solution: Path) -> None:
    gurobi = pytest.importorskip("gurobipy")
    model = gurobi.read(str(program), gurobi.Env(params={"OutputFlag": 0}))
    model.optimize()
    model.write(str(solution))


def by_cplex(program: Path, solution: Path) -> None:
    model = pytest.importorskip("cplex").Cplex(str(program))
    model.set_results_stream(None)
    model.set_log_stream(None)
    model.solve()
    model.solution.write(str(solution))


def by_copt(program: Path, solution: Path) -> None:
    model = pytest.importorskip("coptpy").Envr().createModel()
    model.setParam("Logging", 0)
    model.readMps(str(program))
    model.solve()
    model.writeSol(str(solution))


def by_xpress(program: Path, solution: Path) -> None:
    model = pytest.importorskip("xpress").problem()
    model.setControl("outputlog", 0)
    model.readProb(str(program))
    model.optimize()
    model.writeSlxSol(str(solution))


SOLVERS: list[Callable[[Path, Path], None]] = [
    by_highs, by_glpsol, by_glpsol_interior_point, by_cbc, by_clp, by_lp_solve, by_scip, by_gurobi, by_cplex,
    by_copt, by_xpress,
]  # fmt: skip


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_solution_of_another_solver_is_certified(
    solver: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    program, files = small(), (tmp_path / "program.mps", tmp_path / "program.sol")
    program.write_mps(files[0])
    solver(*files)
    result = certify_solution(program, files[1])
    assert result.certificate.verify()
    # clp and lp_solve print six to eight digits
    assert result.value == pytest.approx(solve(program, "clarabel").value, abs=1e-5)
    assert result.gap <= 1e-5
    assert result.status is Status.OPTIMAL or result.gap > program.tolerance * program.scale


@pytest.mark.parametrize(
    "program",
    [
        design([0.5, 0.3, 0.2], PML(0.5), MutualInformation()),
        design([0.5, 0.3, 0.2], PML(0.5), ExpectedGain(np.eye(3))),
    ],
)
def test_designs_of_columns_and_gains_come_back(program: Program[Any], tmp_path: Path) -> None:
    files = tmp_path / "program.mps", tmp_path / "program.sol"
    program.write_mps(files[0])
    by_highs(*files)
    result = certify_solution(program, files[1])
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(solve(program).value, abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_file_is_read_by_names(form: str) -> None:
    found = parse_solution(FORMS[form])
    assert (found.by_name, found.objective) == (COLUMNS, 3.5)


def test_a_file_without_an_objective_is_read_by_names() -> None:
    assert parse_solution(XPRESS).by_name == COLUMNS
    assert parse_solution(XPRESS).objective is None


@pytest.mark.parametrize(
    ("old", "new"), [("f f 3.5", "f f much"), ("j 2 b 0.001 0", "j 2"), ("0.25", "x")]
)
def test_a_file_of_glpsol_with_other_words_for_numbers_is_refused(old: str, new: str) -> None:
    assert parse_solution(GLPSOL).in_order == list(COLUMNS.values())
    with pytest.raises(FileFormatError, match="has a line without a value"):
        parse_solution(GLPSOL.replace(old, new))


def columns_of(program: Program[Any], folder: Path) -> dict[str, float]:
    files = folder / "program.mps", folder / "program.sol"
    program.write_mps(files[0])
    by_highs(*files)
    return dict(parse_solution(files[1].read_text()).by_name)


def test_columns_are_taken_by_name_and_none_may_lack(tmp_path: Path) -> None:
    columns = columns_of(small(), tmp_path)
    assert certify_solution(small(), dict(reversed(columns.items()))).status is Status.OPTIMAL
    lacking = {name: value for name, value in columns.items() if name != "mechanism[ill,x_y]"}
    with pytest.raises(
        FileFormatError, match=re.escape("lacks 1 columns of the program, such as mech")
    ):
        certify_solution(small(), lacking)
    with pytest.raises(FileFormatError, match="columns that the program has not, such as mine"):
        certify_solution(small(), {**columns, "mine": 1.0})
    with pytest.raises(FileFormatError, match="no finite number for mechanism"):
        certify_solution(small(), {**columns, "mechanism[ill,x_y]": float("nan")})
    with pytest.raises(FileFormatError, match="no number"):
        certify_solution(small(), {**columns, "mechanism[ill,x_y]": "much"})  # type: ignore[dict-item]


def test_solutions_of_another_program_are_refused(tmp_path: Path) -> None:
    columns = columns_of(small(), tmp_path)
    for name, value in (("mechanism[ill,ill]", 0.5), ("objective_constant", 2.0)):
        with pytest.raises(FileFormatError, match="violates a row or a bound"):
            certify_solution(small(), {**columns, name: value})
    prior = Prior([0.5, 0.3, 0.2], ["ill", "not ill", "x,y"])
    stricter = design(prior, LDP(0.2), ExpectedLoss(4 - np.eye(3)))
    with pytest.raises(FileFormatError, match="violates a row or a bound"):
        certify_solution(stricter, tmp_path / "program.sol")
    # the same rows, and another loss
    other = design(prior, LDP(0.4), ExpectedLoss(3 - np.eye(3)))
    with pytest.raises(FileFormatError, match=r"states the objective 3\.58.* worth 2\.58"):
        certify_solution(other, tmp_path / "program.sol")
    with pytest.raises(FileFormatError, match="columns that the program has not"):
        certify_solution(design([0.5, 0.5], LDP(0.4), ExpectedLoss(4 - np.eye(2))), columns)


def test_a_feasible_solution_stays_and_has_the_bound_of_the_optimum() -> None:
    program = design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]]))
    columns = dict.fromkeys(("mechanism[0,0]", "mechanism[1,1]"), 0.6)
    columns |= dict.fromkeys(("mechanism[1,0]", "mechanism[0,1]"), 0.4)
    columns |= dict.fromkeys(("output_law[0,0]", "output_law[0,1]"), 0.5)
    result = certify_solution(program, columns)
    assert result.status is Status.UNPROVED
    assert result.value == pytest.approx(0.4, abs=1e-12)
    # P[x, x] is at most e^0.2 times the output's probability of one half
    assert result.bound == pytest.approx(1 - math.exp(0.2) / 2, abs=1e-9)
    assert result.certificate.verify()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "solution status: infeasible\nno solution available\n",
        "Model status\nInfeasible\n",
        "\x00",
        "a b c",
    ],
)
def test_files_without_columns_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.sol").write_text(text)
    with pytest.raises(FileFormatError, match=r"x\.sol holds no values of columns"):
        certify_solution(small(), tmp_path / "x.sol")


def test_a_missing_file_and_a_program_without_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="cannot be read"):
        certify_solution(small(), tmp_path / "none.sol")
    leaks = envelope([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 0.1)
    with pytest.raises(ProgramError, match="certify its matrix"):
        certify_solution(leaks, {"x": 1.0})


def test_a_number_of_many_digits_is_read_at_once() -> None:
    text = f"x {'1' * 50_000}y\nz 1\n"  # of which digits could be split in as many ways
    assert parse_solution(text).by_name == {"z": 1.0}
