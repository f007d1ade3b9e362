"""Linear programs written in the MPS format."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import cvxpy as cp
import numpy as np

from pmlopt.backends.highs import loaded, model_of
from pmlopt.errors import ProgramError
from pmlopt.files import write_whole


def write_mps(problem: cp.Problem, path: str | os.PathLike[str]) -> None:
    """Write a linear program in the MPS format, columns named after the variables.

    Raises:
        ProgramError: the problem has constraints that are not linear.
        FileFormatError: the file cannot be written.
    """
    if not problem.is_lp():
        raise ProgramError("the program is not a linear program, and MPS holds nothing else")
    data, _, inverse = problem.get_problem_data(cp.HIGHS)
    solver = loaded(model_of(data), {})
    solver.changeObjectiveOffset(inverse[-1][cp.settings.OFFSET])
    for column, name in enumerate(_column_names(data)):
        solver.passColName(column, name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.mps"
        solver.writeModel(str(file))
        write_whole(path, file.read_bytes())


def _column_names(data: dict[str, object]) -> list[str]:
    names = []
    for variable in data["param_prob"].variables:  # type: ignore[attr-defined]
        for place in np.ndindex(*variable.shape[::-1]):  # columns first, as cvxpy stacks them
            index = ",".join(str(i) for i in place[::-1])
            names.append(f"{variable.name()}({index})" if index else variable.name())
    return names
