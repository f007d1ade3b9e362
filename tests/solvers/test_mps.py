"""Random linear programs: readers of the file find the value that linprog finds without one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import highspy
import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt.solvers.mps import NamedProgram, NamedRow
from pmlopt.solvers.solution_files import parse_solution

INFINITE = float("inf")


def random_program(seed: int) -> tuple[NamedProgram[float], float]:
    """A program with a constant, free, fixed, negative and one-sided columns, and its optimum by linprog.

    It is feasible at a point that is drawn first, and bounded, since the costs are a sum of rows and prices.
    """
    rng = np.random.default_rng(seed)
    columns, limits, equations = 6, 7, 2
    kinds = [
        (0.0, INFINITE),
        (-INFINITE, INFINITE),
        (-2.5, -0.5),
        (-INFINITE, -1.0),
        (0.25, 0.25),
        (0.0, 3.0),
    ]
    bounds = [kinds[k] for k in rng.permutation(columns)]
    point = np.array([np.clip(rng.normal(), *ends) for ends in bounds])
    rows = np.where(rng.random((limits + equations, columns)) < 0.7, rng.normal(size=(9, 6)), 0.0)
    right = rows @ point
    right[:limits] += rng.random(limits)
    # costs are a sum of rows, those that are limits with a negative sign: no direction lowers them for ever
    prices = np.append(-rng.random(limits), rng.normal(size=equations))
    costs, offset = prices @ rows, float(rng.normal())
    named = [
        NamedRow(
            f"r[{k},a.b]",
            {j: float(v) for j, v in enumerate(rows[k]) if v},
            float(right[k]),
            k >= limits,
        )
        for k in range(limits + equations)
    ]
    program = NamedProgram(
        "random", [f"x[{k},y-z]" for k in range(columns)],
        {j: float(v) for j, v in enumerate(costs) if v}, named, offset, dict(enumerate(bounds)),
    )  # fmt: skip
    found = linprog(costs, rows[:limits], right[:limits], rows[limits:], right[limits:], bounds)
    assert found.status == 0
    return program, float(found.fun) + offset


def write(program: NamedProgram[float], folder: Path) -> Path:
    path = folder / "program.mps"
    path.write_text("".join(f"{line}\n" for line in program.iterate_lines()))
    return path


@pytest.mark.parametrize("seed", range(20))
def test_highs_finds_the_value_by_the_file(seed: int, tmp_path: Path) -> None:
    program, value = random_program(seed)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(write(program, tmp_path))) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert solver.getInfo().objective_function_value == pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_glpsol_finds_the_value_by_the_file(seed: int, tmp_path: Path) -> None:
    if shutil.which("glpsol") is None:
        pytest.skip("glpsol is not installed")
    program, value = random_program(seed)
    command = ["glpsol", "--freemps", str(write(program, tmp_path)), "-w", str(tmp_path / "x.sol")]
    subprocess.run(command, capture_output=True, check=True)
    found = parse_solution((tmp_path / "x.sol").read_text()).objective
    assert found == pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("reader", "pattern"), [
    (("lp_solve", "-fmps", "FILE"), r"Value of objective function: (\S+)"),
    (("cbc", "FILE", "solve"), r"Optimal objective (\S+) "),
    (("clp", "FILE"), r"Optimal objective (\S+) "),
])  # fmt: skip
def test_readers_that_print_few_digits_agree_to_them(
    reader: tuple[str, ...], pattern: str, tmp_path: Path
) -> None:
    if shutil.which(reader[0]) is None:
        pytest.skip(f"{reader[0]} is not installed")
    for seed in range(5):
        program, value = random_program(seed)
        path = write(program, tmp_path)
        command = [str(path) if word == "FILE" else word for word in reader]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = re.search(pattern, said)
        assert found is not None, said
        assert float(found[1]) == pytest.approx(value, rel=1e-7, abs=1e-7)
