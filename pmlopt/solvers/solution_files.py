"""Solutions of linear programs in the files of other solvers, by the names of columns or by their order."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import FileFormatError

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_CPLEX_COLUMN = re.compile(rf'<variable name="([^"]*)"[^>]*? value="({_NUMBER})"')
_INDEXED = re.compile(rf"^(?:\*\*)?\s*\d+\s+(\S+)\s+({_NUMBER})\s+{_NUMBER}\s*$")
_NAMED = re.compile(rf"^(?: +C +)?(\S+)\s+({_NUMBER})(?:\s+\(obj:.*\))?\s*$")
_OBJECTIVE = re.compile(
    rf"(?:objective value(?: =|:)?|objectiveValue=\"|^Objective|objective function:)\s*({_NUMBER})",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True)
class ColumnValues:
    """The values of the columns of a linear program that a solver found.

    Attributes:
        source: the file, for messages.
        by_name: the values by the names of columns; empty where the file has none.
        in_order: the values in the order of the columns, where the file has no names.
        objective: what the file states, which is minimised; None where it states none.
        lists_zeros: whether columns that are zero are listed, too.
    """

    source: str
    by_name: Mapping[str, float]
    in_order: Sequence[float] = ()
    objective: float | None = None
    lists_zeros: bool = True

    def arrange(self, names: Sequence[str]) -> FloatArray:
        """Return the values of columns with these names, in this order.

        Raises:
            FileFormatError: there are others, some are missing, or one is no finite number.
        """
        values: list[float]
        if self.by_name:
            strange = sorted(set(self.by_name) - set(names))
            if strange:
                raise FileFormatError(
                    f"{self.source} has {len(strange)} columns that the program has not, such as "
                    f"{strange[0]}: is it of the file that write_mps wrote for this program?"
                )
            missing = [name for name in names if name not in self.by_name]
            if missing and self.lists_zeros:
                raise FileFormatError(
                    f"{self.source} lacks {len(missing)} columns of the program, such as {missing[0]}"
                )
            values = [self.by_name.get(name, 0.0) for name in names]
        else:
            if len(self.in_order) != len(names):
                raise FileFormatError(
                    f"{self.source} has {len(self.in_order)} columns, and the program has {len(names)}"
                )
            values = list(self.in_order)
        found = np.array(values, dtype=np.float64)
        if not np.isfinite(found).all():
            worst = names[int(np.argmin(np.isfinite(found)))]
            raise FileFormatError(f"{self.source} has no finite number for {worst}")
        return found


def read_solution(solution: str | os.PathLike[str] | Mapping[str, float]) -> ColumnValues:
    """Read the columns of a solution from a file, or take them by name.

    The files are those of HiGHS, SCIP, Gurobi, COPT and cuOpt (`.sol`), Xpress (`.slx`), CPLEX (XML), cbc
    and clp (`solution FILE`), glpsol (`-w FILE`), and what lp_solve prints.

    Raises:
        FileFormatError: the file cannot be read, holds no columns, or holds one twice.
    """
    if isinstance(solution, Mapping):
        try:
            known = {str(name): float(value) for name, value in solution.items()}
        except (TypeError, ValueError) as cause:
            raise FileFormatError(f"the solution has a value that is no number: {cause}") from None
        return ColumnValues("the solution", known)
    path = Path(solution)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise FileFormatError(f"{path} cannot be read as the text of a solution: {cause}") from None
    return parse_solution(text, path.name)


def parse_solution(text: str, source: str = "the solution") -> ColumnValues:
    r"""Parse the text of a file with a solution; see `read_solution`.

    Examples:
        >>> parse_solution("# Objective value = -0.5\nx[a] 0.5\nx[b] 0\n").by_name
        {'x[a]': 0.5, 'x[b]': 0.0}
    """
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    # of glpsol: lines "j NUMBER STATUS VALUE DUAL" of a basis, "j NUMBER VALUE DUAL" of an interior point
    if solved := re.search(r"^s (bas|ipt) \d+ (\d+) .*?(\S+)$", text, re.MULTILINE):
        place = 3 if solved[1] == "bas" else 2
        columns = [line.split() for line in lines if line.startswith("j ")]
        worth = _parse_number([solved[3]], 0, source)
        values = [_parse_number(one, place, source) for one in columns]
        return ColumnValues(source, {}, values, worth)
    if "<CPLEXSolution" in text:
        pairs = _CPLEX_COLUMN.findall(text)
    elif "# Columns" in text:
        body = text.partition("# Columns")[2].partition("# Rows")[0]
        pairs = _match_lines(_NAMED, body.splitlines()[1:])
    elif "Actual values of the variables:" in text:
        body = text.partition("Actual values of the variables:")[2]
        pairs = _match_lines(
            _NAMED, body.partition("Actual values of the constraints:")[0].splitlines()
        )
    else:
        pattern = _NAMED if any(map(_NAMED.match, _list_entries(lines))) else _INDEXED
        pairs = _match_lines(pattern, _list_entries(lines))
    if not pairs:
        raise FileFormatError(f"{source} holds no values of columns; it begins with {first!r:.80}")
    known = {name: float(value) for name, value in pairs}
    if len(known) < len(pairs):
        raise FileFormatError(f"{source} has a column twice")
    stated = _OBJECTIVE.search(text)
    objective = None if stated is None else float(stated[1])
    is_short = re.match(r"(?i)\s*(solution status:|objective value:|optimal|stopped)", first)
    return ColumnValues(source, known, (), objective, lists_zeros=is_short is None)


def _list_entries(lines: Sequence[str]) -> list[str]:
    """List the lines that may hold a column: no comments and no headings."""
    heading = re.compile(
        r"(?i)\s*(#|$|solution status:|objective value|optimal|stopped|infeasible)"
    )
    return [line for line in lines if not heading.match(line)]


def _match_lines(pattern: re.Pattern[str], lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return the names and values in the lines that match."""
    return [(found[1], found[2]) for line in lines if (found := pattern.match(line))]


def _parse_number(words: Sequence[str], place: int, source: str) -> float:
    """Parse a word of a line as a number."""
    try:
        return float(words[place])
    except (IndexError, ValueError):
        raise FileFormatError(
            f"{source} has a line without a value: {' '.join(words):.80}"
        ) from None


def check_feasible(
    values: FloatArray, excess: FloatArray, objective: tuple[float, float | None], source: str
) -> None:
    """Raise a FileFormatError for values that are not of this program.

    Args:
        values: (K,) of the columns.
        excess: (R,) by how much rows and bounds are violated, as a share of their size.
        objective: what the columns are worth, and what the file states.
        source: the file.
    """
    worst = float(excess.max(initial=0.0)) if len(values) else 0.0
    # solvers stop at 1e-6, and print six digits
    if worst > 1e-5:
        raise FileFormatError(
            f"{source} violates a row or a bound of the program by {worst:.3g}: is it of another program, "
            "or no solution?"
        )
    worth, stated = objective
    if stated is not None and not math.isclose(worth, stated, rel_tol=1e-5, abs_tol=1e-5):
        raise FileFormatError(
            f"{source} states the objective {stated:.10g}, and its columns are worth {worth:.10g} in this "
            "program: it is of another one"
        )
