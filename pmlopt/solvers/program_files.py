"""Programs of cvxpy as files for other solvers, and the columns that these found."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pmlopt.core.files.disk import atomic_write
from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import Label
from pmlopt.errors import ProgramError
from pmlopt.solvers import highs
from pmlopt.solvers.mps import CONSTANT_COLUMN, NamedProgram, NamedRow, make_names
from pmlopt.solvers.solution_files import ColumnValues, check_feasible
from pmlopt.solvers.solver_result import SolverResult, compile_problem

Labels = tuple[Sequence[Label] | None, Sequence[Label] | None]
"""Of letters and outputs; None where they are free."""


def write_mps(
    problem: cp.Problem,
    path: str | os.PathLike[str],
    labels: Labels = (None, None),
) -> None:
    """Write a linear program as an MPS file that minimises, with rows named after constraints.

    Args:
        problem: whose constraints have labels.
        path: of the file.
        labels: of the letters and the outputs, by which rows and columns are named; None for places.

    Raises:
        ProgramError: the problem has constraints that are not linear.
        FileFormatError: the file cannot be written.
    """
    if not problem.is_lp():
        raise ProgramError("the program is not a linear program, and MPS holds nothing else")
    data, _, inverse = problem.get_problem_data(cp.HIGHS)
    compiled: Any = data["param_prob"]
    names = {one.id: str(one.label or "constraint") for one in problem.constraints}
    axes = [None if own is None else make_names(own) for own in labels]
    columns = _list_names([(one.name(), one.shape) for one in compiled.variables], axes)
    rows = _list_names([(names[one.id], one.shape) for one in compiled.constraints], axes)
    matrix = data["A"].tocsr()
    right = data["b"].tolist()
    entries = [
        dict(zip(own.indices.tolist(), own.data.tolist(), strict=True))
        for own in (matrix[[row]] for row in range(len(right)))
    ]
    equal = [row < data["dims"].zero for row in range(len(right))]
    model = highs.build_compiled_model(data)
    ends = zip(model.lower.tolist(), model.upper.tolist(), strict=True)
    program: NamedProgram[float] = NamedProgram(
        "program",
        columns,
        {place: cost for place, cost in enumerate(data["c"].tolist()) if cost},
        [NamedRow(*one) for one in zip(rows, entries, right, equal, strict=True)],
        float(inverse[-1][cp.settings.OFFSET]),
        dict(enumerate(ends)),
    )
    atomic_write(path, "".join(f"{line}\n" for line in program.iterate_lines()).encode())


def take_solution(problem: cp.Problem, given: ColumnValues, labels: Labels) -> SolverResult:
    """Store columns of a file of the program in the variables, with dual values by HiGHS.

    Raises:
        ProgramError: the program is not linear.
        FileFormatError: the columns are not those of the program, or violate it.
    """
    if not problem.is_lp():
        raise ProgramError("the program is not a linear program, and has no such file")
    ready = compile_problem(problem, cp.HIGHS)
    data = ready.data
    axes = [None if own is None else make_names(own) for own in labels]
    names = [(one.name(), one.shape) for one in data["param_prob"].variables]
    offset = float(ready.inverse[-1][cp.settings.OFFSET])
    columns = [*_list_names(names, axes), *([CONSTANT_COLUMN] if offset else [])]
    values = given.arrange(columns)
    model = highs.build_compiled_model(data)
    count = len(model.costs)
    constant = values[count:]
    values = values[:count]
    ends = data["A"] @ values
    excess = [
        (ends - model.row_upper) / np.maximum(1.0, abs(data["b"])),
        (model.row_lower - ends) / np.maximum(1.0, abs(data["b"])),
        values - model.upper,
        model.lower - values,
        abs(constant - 1.0),
    ]
    worth = ready.scale * float(model.costs @ values) + offset
    check_feasible(values, np.concatenate(excess), (worth, given.objective), given.source)
    compiled_at = time.perf_counter()
    with highs.lend_solver(model, highs.METHOD_OPTIONS["highs"]) as solver:
        outcome = highs.run_loaded(solver, False, ready.seconds, compiled_at)
        highs.unpack_solution(ready, solver, values)
    return replace(outcome, state="point", finished=True, message=f"the columns of {given.source}")


def _list_names(
    parts: Sequence[tuple[str, tuple[int, ...]]], axes: Sequence[list[str] | None]
) -> list[str]:
    """List the names of the entries of arrays, columns first, as cvxpy stacks them.

    An entry of a vector is named after a letter or an output only where it is clear which: `rows` are of
    letters, and other vectors are of what has as many labels as they have entries.
    """
    found: list[str] = []
    plain = [re.sub(r"[^\w.+-]", "_", name, flags=re.ASCII) for name, _ in parts]
    for number, (name, (_, shape)) in enumerate(zip(plain, parts, strict=True)):
        own = name if plain.count(name) == 1 else f"{name}.{number}"
        letters, outputs = axes
        if len(shape) == 1 and name != "rows":
            fitting = [known for known in axes if known is not None and len(known) == shape[0]]
            letters = fitting[0] if fitting and all(one == fitting[0] for one in fitting) else None
        names = [
            known if known is not None and len(known) == size else [str(k) for k in range(size)]
            for size, known in zip(shape, (letters, outputs), strict=False)
        ]
        for place in np.ndindex(*shape[::-1]):
            index = ",".join(ends[k] for ends, k in zip(names, place[::-1], strict=True))
            found.append(f"{own}[{index}]" if index else own)
    return found
