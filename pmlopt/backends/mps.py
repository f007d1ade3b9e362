"""Linear programs written in the MPS format."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pmlopt.backends.highs import loaded, model_of
from pmlopt.errors import FileFormatError, ProgramError
from pmlopt.files import reason_of, write_whole

if TYPE_CHECKING:
    import cvxpy as cp


def write_mps(problem: cp.Problem, path: str | os.PathLike[str]) -> None:
    """Write a linear program in the MPS format, columns named after the variables.

    Raises:
        ProgramError: the problem has constraints that are not linear.
        FileFormatError: the file cannot be written.
    """
    import cvxpy as cp

    if not problem.is_lp():
        raise ProgramError("the program is not a linear program, and MPS holds nothing else")
    data, _, inverse = problem.get_problem_data(cp.HIGHS)
    solver = loaded(model_of(data), {})
    solver.changeObjectiveOffset(inverse[-1][cp.settings.OFFSET])
    for column, name in enumerate(_column_names(data)):
        solver.passColName(column, name)
    write_whole(path, _written(solver))


def _written(solver: Any) -> bytes:
    """The model as HiGHS writes it to a file, whole: HiGHS itself does not tell of a full disk."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "program.mps"
            solver.writeModel(str(file))
            content = file.read_bytes()
    except OSError as cause:
        raise FileFormatError(f"the temporary file of the MPS format: {reason_of(cause)}") from None
    if content.split()[-1:] != [b"ENDATA"]:
        raise FileFormatError(
            f"the temporary file of the MPS format in {tempfile.gettempdir()} is cut short: is the disk "
            "full? TMPDIR names another folder"
        )
    return content


def _column_names(data: dict[str, object]) -> list[str]:
    names = []
    for variable in data["param_prob"].variables:  # type: ignore[attr-defined]
        for place in np.ndindex(*variable.shape[::-1]):  # columns first, as cvxpy stacks them
            index = ",".join(str(i) for i in place[::-1])
            names.append(f"{variable.name()}({index})" if index else variable.name())
    return names
