"""Random linear programs as files of MPS, solved by other readers of that format.

`python tests/fuzzing/random_mps.py --instances 300` writes so many, gives each to the readers that are
installed, and prints how many values agree; it exits with 1 where one differs. An instance is known by the
seed and its number. `--out FILE` writes the counts, with versions and the date.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import cvxpy as cp
import highspy
import numpy as np
from scipy import optimize

from pmlopt.solvers.program_files import write_mps

NAMES = ("x", "y z", "größe", "p[1,2]", "RHS", "objective", "e1", "-3", "a" * 70, "ROWS", "BOUNDS")
"""Of variables and rows: some mean something in the format, or have characters that it does not."""

RELATIVE_TOLERANCE = 1e-9
"""Of the value, or of 10 where it is smaller: cbc prints eight digits behind the point."""


def make_program(rng: np.random.Generator) -> tuple[cp.Problem, float]:
    """Make a program that has an optimum, and find its value without cvxpy.

    It has a constant, free variables, variables with bounds of any sign, equations, rows with one side or
    two, and rows of one variable.
    """
    size, rows = (int(rng.integers(2, 7)) for _ in range(2))
    names = rng.permutation(NAMES)
    lower = rng.choice([0.0, -math.inf, -3.5, -20.0, 2.0], size)
    least = np.where(lower == -math.inf, -20.0, lower)
    upper = least + rng.choice([math.inf, math.inf, 0.0, 1.5, 10.0], size)
    inside = np.clip(rng.integers(-5, 6, size).astype(float), lower, np.minimum(upper, 1e3))
    columns = [
        cp.Variable(name=str(name), bounds=[low, high])
        for name, low, high in zip(names[:size], lower.tolist(), upper.tolist(), strict=True)
    ]
    # in eighths, so that floats and fractions have the same right sides
    matrix = np.round(rng.normal(0, 3, (rows, size)) * 8) / 8
    matrix = np.vstack([matrix * (rng.random((rows, size)) < 0.7), np.eye(size)])
    # the last rows keep each variable near a point inside, so that there is an optimum
    low = matrix @ inside - np.append(
        rng.choice([math.inf, 0.0, 1.0, 7.25], rows), np.full(size, 40.0)
    )
    high = matrix @ inside + np.append(rng.choice([0.0, 2.0, 11.5], rows), np.full(size, 60.0))
    costs = np.round(rng.normal(0, 50, size), 2)
    constant = float(np.round(rng.choice([0.0, 1.0, -1.0]) * rng.uniform(100, 1000), 2))
    stacked = cp.hstack(columns)
    constraints: list[cp.Constraint] = []
    for place, row in enumerate(matrix):
        if not row.any():
            continue
        label = f"{names[place % len(names)]} {place}"
        if low[place] == high[place]:
            constraints.append((row @ stacked == high[place]).set_label(label))
            continue
        constraints.append((row @ stacked <= high[place]).set_label(label))
        if low[place] > -math.inf:
            constraints.append((row @ stacked >= low[place]).set_label(f"{label} low"))
    found = optimize.linprog(
        costs,
        np.vstack([matrix, -matrix[low > -math.inf]]),
        np.append(high, -low[low > -math.inf]),
        bounds=list(zip(lower, upper, strict=True)),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    problem = cp.Problem(cp.Minimize(costs @ stacked + constant), constraints)
    return problem, float(found.fun) + constant


# ------------------------------------------------------------ readers


class ReaderRefusesError(Exception):
    """A reader does not take a file; the message is its reason."""


def run(*command: str | Path) -> str:
    """Run a program, and return what it prints."""
    told = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60)
    return told.stdout + told.stderr


def find_value(pattern: str, text: str) -> float:
    """Find the number behind a pattern in what a program printed."""
    found = re.findall(pattern + r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)", text)
    if not found:
        raise ReaderRefusesError(text[-300:])
    return float(found[-1])


def by_highs(path: Path) -> float:
    """Solve by HiGHS."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    if solver.readModel(str(path)) == highspy.HighsStatus.kError:
        raise ReaderRefusesError("HiGHS does not read the file")
    solver.run()
    return float(solver.getObjectiveValue())


def by_scip(path: Path) -> float:
    """Solve by SCIP."""
    from pyscipopt import Model

    model = Model()
    model.hideOutput()
    # of 1e-6, which by default a row may be broken, a thousandth of the value can come
    model.setParam("numerics/feastol", 1e-9)
    try:
        model.readProblem(str(path))
    except Exception as cause:  # of no class of its own
        raise ReaderRefusesError(str(cause)) from None
    model.optimize()
    return float(model.getObjVal())


def by_glop(path: Path) -> float:
    """Solve by GLOP of OR-Tools."""
    from ortools.linear_solver.python import model_builder

    model = model_builder.Model()
    if not model.import_from_mps_file(str(path)):
        raise ReaderRefusesError("OR-Tools does not read the file")
    solver = model_builder.Solver("GLOP")
    status = solver.solve(model)
    if status.name != "OPTIMAL":
        raise ReaderRefusesError(f"GLOP calls it {status.name}")
    return float(solver.objective_value)


def by_cbc(path: Path) -> float:
    """Solve by cbc."""
    run("cbc", path, "solve", "solution", path.with_suffix(".sol"))
    return find_value("objective value", path.with_suffix(".sol").read_text())


def by_clp(path: Path) -> float:
    """Solve by clp."""
    return find_value(r"Optimal objective", run("clp", path, "-primalT", "1e-9", "-solve"))


def by_glpsol(path: Path) -> float:
    """Solve by glpsol."""
    run("glpsol", "--freemps", path, "-w", path.with_suffix(".glp"))
    return find_value(r"(?m)^s bas \d+ \d+ f f", path.with_suffix(".glp").read_text())


def by_lp_solve(path: Path) -> float:
    """Solve by lp_solve."""
    return find_value(
        "Value of objective function:", run("lp_solve", "-wlp", "/dev/null", "-fmps", path, "-S3")
    )


def by_qsopt(path: Path) -> float:
    """Solve by QSopt_ex, in rational arithmetic."""
    run("esolver", "-O", path.with_suffix(".qs"), path)
    told = path.with_suffix(".qs")
    found = re.search(r"Value = (\S+)", told.read_text()) if told.exists() else None
    if found is None:
        raise ReaderRefusesError("QSopt_ex writes no value")
    return float(Fraction(found[1]))


READERS: Mapping[str, tuple[str, Callable[[Path], float]]] = {
    "HiGHS": ("highspy", by_highs),
    "SCIP": ("pyscipopt", by_scip),
    "GLOP": ("ortools", by_glop),
    "cbc": ("cbc", by_cbc),
    "clp": ("clp", by_clp),
    "glpsol": ("glpsol", by_glpsol),
    "lp_solve": ("lp_solve", by_lp_solve),
    "QSopt_ex": ("esolver", by_qsopt),
}
"""By name: the module or the program that must be there, and what solves a file."""


DEBIAN = {
    "cbc": "coinor-cbc", "clp": "coinor-clp", "glpsol": "glpk-utils", "lp_solve": "lp-solve",
    "esolver": "qsopt-ex",
}  # fmt: skip
"""The package of each program there."""


def find_version(reader: str) -> str:
    """Find the version of a reader: of a module of Python, or of a package of Debian; else empty."""
    needed, _ = READERS[reader]
    if needed not in DEBIAN:
        return version(needed)
    if shutil.which("dpkg-query") is None:
        return ""
    return run("dpkg-query", "-W", "-f=${Version}", DEBIAN[needed])


def list_installed() -> list[str]:
    """List the readers that are installed."""
    return [
        name
        for name, (needed, _) in READERS.items()
        if shutil.which(needed) or (needed.isidentifier() and find_spec(needed))
    ]


def compare(seed: int, number: int, readers: Sequence[str], folder: Path) -> dict[str, str]:
    """Solve an instance by readers: of each "agrees", or what it says in place of the value."""
    problem, value = make_program(np.random.default_rng([seed, number]))
    found = {}
    for name in readers:
        path = folder / f"{name}.mps"
        write_mps(problem, path)
        try:
            other = READERS[name][1](path)
        except ReaderRefusesError as cause:
            found[name] = f"refused: {cause}"
            continue
        near = abs(other - value) <= RELATIVE_TOLERANCE * max(abs(value), 10.0)
        found[name] = "agrees" if near else f"{other!r} in place of {value!r}"
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(argv)
    readers, counts, wrong = list_installed(), Counter[tuple[str, str]](), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(asked.instances):
            for name, end in compare(asked.seed, number, readers, Path(folder)).items():
                counts[name, end.split(":")[0]] += 1
                if end != "agrees":
                    wrong.append(f"{number}: {name}: {end}")
    table = [f"{name}: {counts[name, 'agrees']} of {asked.instances} agree" for name in readers]
    sys.stdout.write("\n".join([*wrong, *table]) + "\n")
    if asked.out is not None:
        write_counts(asked.out, counts, asked.instances, asked.seed)
    return 1 if wrong else 0


def write_counts(path: Path, counts: Counter[tuple[str, str]], instances: int, seed: int) -> None:
    """Write how many values of each reader agree, and how many files it refuses."""
    head = "reader", "version", "programs", "agree to 1e-9", "refused", "seed", "date"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    with path.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(head)
        for name in dict.fromkeys(name for name, _ in counts):
            ends = counts[name, "agrees"], counts[name, "refused"]
            rows.writerow((name, find_version(name), instances, *ends, seed, day))


if __name__ == "__main__":
    sys.exit(main())
