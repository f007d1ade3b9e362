"""Plant errors in methods, one at a time, and see whether the fast tests of their room fail.

    python .ci/planted.py FOLDER [SEED] [COUNT] [--signs]

Planted are a TypeError at the top of the function of each row of each table of methods, and a flipped sign
at COUNT places (10) of pmlopt/programs and pmlopt/solvers, drawn by SEED (0). Each is tried in a copy of the
checkout below FOLDER with the fast tests of its room, until the first fails. A TypeError counts as found only
where a test fails at its line. At least nine of ten of each kind are to be found. With --signs no
TypeError is planted.
"""

from __future__ import annotations

import ast
import inspect
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from pmlopt.programs.linear import block_interior_point, formulation, ratio_rows
from pmlopt.programs.program import Method
from pmlopt.programs.registry import list_registries
from pmlopt.programs.subconvex import methods as subconvex
from pmlopt.solvers import cvxpy_interface, highs

ROOT = Path(__file__).parent.parent
PARTS = (
    "pmlopt",
    "tests",
    "problems",
    "docs",
    "conftest.py",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)

MIN_FOUND = 0.9
"""The share of the planted errors that the tests are to find."""

TIMES = re.compile(r"seconds\b|perf_counter")
"""Lines with times, on whose numbers no test may rest: their signs are left out."""

PLANTED = "planted: a mistake in a method"

SHARED = ("test_routing.py", "test_solving.py", "test_signed_gap.py")
"""Tests of all questions, which belong to each room of programs and solvers."""

BEHIND: dict[str, tuple[Callable[..., Any], ...]] = {
    "closed-form": (formulation.return_closed_form,),
    "color-refinement": (formulation.solve_by_partition,),
    "block-ipm": (block_interior_point.solve_block_lp,),
    "highs": (
        highs.solve_by_simplex,
        ratio_rows.solve_by_simplex,
        highs.solve_problem,
        subconvex._solve_by_simplex,
    ),
    "highs-ipm": (highs.solve_problem,),
    "clarabel": (cvxpy_interface.solve_problem,),
    "scs": (cvxpy_interface.solve_problem,),
}
"""What the functions that several rows share call for a row of a name."""


def functions_of(row: Method[Any, Any, Any]) -> Iterator[Callable[..., Any]]:
    """Yield the functions in which the work of a row begins."""
    run: Any = row.run
    while isinstance(run, partial):
        inner = [part for part in run.args if callable(part)]
        run = inner[0] if inner and inspect.isroutine(_innermost(inner[0])) else run.func
    yield run if inspect.isroutine(run) else type(run).__call__
    yield from BEHIND.get(row.name, ())


def _innermost(part: Any) -> Any:
    return part.func if isinstance(part, partial) else part


def room_of(path: Path) -> list[str]:
    """Return the tests of the room of a file: those of mirrored folders, docstrings and direct users.

    Direct users are the files of tests that import the module by its name.
    """
    inside = path.relative_to("pmlopt").parent
    shared = [f"tests/programs/{name}" for name in SHARED]
    own = [f"tests/{folder}" for folder in (inside, *inside.parents) if folder != Path()]
    own = [folder for folder in own if folder != "tests/programs" and (ROOT / folder).is_dir()]
    linear_too = ["tests/programs/linear"] if inside.parts[0] == "solvers" else []
    name = ".".join(path.with_suffix("").parts)
    users = [
        place for place, text in test_files().items() if re.search(rf"\b{re.escape(name)}\b", text)
    ]
    return [str(path), *dict.fromkeys([*own, *linear_too, *shared, *map(str, users)])]


@cache
def test_files() -> dict[Path, str]:
    """Return the text of each file of tests, by its place in the checkout."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return {path.relative_to(ROOT): path.read_text("utf-8") for path in files}


def without(path: Path, line: int) -> str:
    """Return the source of a file with a TypeError in front of a line."""
    lines = (ROOT / path).read_text("utf-8").splitlines(keepends=True)
    indent = lines[line][: len(lines[line]) - len(lines[line].lstrip())]
    return "".join([*lines[:line], f'{indent}raise TypeError("{PLANTED}")\n', *lines[line:]])


def first_line(function: Callable[..., Any]) -> tuple[Path, int]:
    """Return the file of a function and the number of the line, from 0, where its body begins."""
    path = Path(str(inspect.getsourcefile(function))).relative_to(ROOT)
    lines, begin = inspect.getsourcelines(function)
    node = ast.parse(inspect.cleandoc("\n" + "".join(_dedented(lines)))).body[0]
    assert isinstance(node, ast.FunctionDef)
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return path, begin - 1 + body[0].lineno - 1


def _dedented(lines: list[str]) -> list[str]:
    width = len(lines[0]) - len(lines[0].lstrip())
    return [line[width:] if line.strip() else line for line in lines]


def signs() -> Iterator[tuple[Path, int, int]]:
    """Yield the places of signs between numbers: the file, the line from 1, and the column."""
    for folder in ("pmlopt/programs", "pmlopt/solvers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            lines = path.read_text("utf-8").splitlines()
            for node in ast.walk(ast.parse("\n".join(lines))):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
                    place = _sign_after(lines, node.left)
                    text = isinstance(node.left, ast.List | ast.Tuple | ast.JoinedStr)
                    if place is not None and not text and not TIMES.search(lines[place[0] - 1]):
                        yield path.relative_to(ROOT), *place


def _sign_after(lines: list[str], side: ast.expr) -> tuple[int, int] | None:
    """Return the line, from 1, and the column of the sign behind an operand; None where it is not there."""
    line = side.end_lineno or 1
    begin = len(lines[line - 1].encode()[: side.end_col_offset].decode())  # ast counts bytes
    place = next(
        (at for at in range(begin, len(lines[line - 1])) if lines[line - 1][at] in "+-"), None
    )
    return None if place is None else (line, place)


def flipped(path: Path, line: int, column: int) -> str:
    """Return the source of a file with another sign at a place."""
    lines = (ROOT / path).read_text("utf-8").splitlines(keepends=True)
    text = lines[line - 1]
    lines[line - 1] = text[:column] + ("-" if text[column] == "+" else "+") + text[column + 1 :]
    return "".join(lines)


def copy_to(folder: Path) -> None:
    """Copy what tests need, without what was compiled."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)


def failed_tests(folder: Path, path: Path, source: str) -> tuple[bool, str]:
    """Return whether a fast test of the room fails with other source in a file, and what pytest printed."""
    honest = (folder / path).read_text("utf-8")
    (folder / path).write_text(source, "utf-8")
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "fast", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*pytest, *room_of(path)], cwd=folder, capture_output=True, text=True, check=False, timeout=900,
            env={**_environment(), "PYTHONPATH": f"{folder}:{folder / 'tests'}", "PYTHONHASHSEED": "0"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True, "the tests did not end"
    finally:
        (folder / path).write_text(honest, "utf-8")
    return done.returncode in (
        1,
        2,
    ), done.stdout  # a test failed, or a file of tests while it was read


def _environment() -> dict[str, str]:
    """Return the environment without what names the packages of another checkout."""
    return {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}


def check_room(folder: Path, path: Path, checked: set[tuple[str, ...]]) -> None:
    """Exit where a fast test of the room fails without a planted error: it would seem to find each."""
    room = tuple(room_of(path)[1:])
    if room not in checked:
        failed, printed = failed_tests(folder, path, (ROOT / path).read_text("utf-8"))
        if failed:
            sys.exit(f"tests of {path} fail without a planted error:\n{printed[-2000:]}")
        checked.add(room)


def rows() -> dict[tuple[Path, int], str]:
    """Return where the function of each row begins, with the rows that it is for."""
    found: dict[tuple[Path, int], str] = {}
    for question in list_registries():
        for row in question.methods:
            for function in functions_of(row):
                name = f"{question.program.__name__} {row.id}"
                place = first_line(function)
                found[place] = f"{found[place]}, {name}" if place in found else name
    return found


def plant_type_errors(folder: Path, checked: set[tuple[str, ...]]) -> bool:
    """Plant a TypeError in each method and print which are found; return whether enough are."""
    places = rows()
    results: list[bool] = []
    for (path, line), which in places.items():
        check_room(folder, path, checked)
        failed, printed = failed_tests(folder, path, without(path, line))
        results.append(failed and PLANTED in printed)
        print(
            f"{'found' if results[-1] else 'MISSED'}: TypeError in {path}:{line + 1} ({which:.70})",
            flush=True,
        )
    print(f"{sum(results)} of {len(results)} TypeErrors are found at their line")
    return sum(results) >= MIN_FOUND * len(results)


def flip_signs(folder: Path, checked: set[tuple[str, ...]], seed: int, count: int) -> bool:
    """Flip signs at places drawn by a seed and print which are found; return whether enough are."""
    results: list[bool] = []
    for path, line, column in random.Random(seed).sample(sorted(signs()), count):
        check_room(folder, path, checked)
        failed, printed = failed_tests(folder, path, flipped(path, line, column))
        results.append(failed)
        test = next((text for text in printed.splitlines() if text.startswith("FAILED")), "")[:110]
        print(
            f"{'found' if failed else 'MISSED'}: sign in {path}:{line}:{column} {test}", flush=True
        )
    print(f"{sum(results)} of {len(results)} flipped signs are found")
    return sum(results) >= MIN_FOUND * len(results)


def main(folder: Path, seed: int, count: int, only_signs: bool) -> bool:
    """Plant errors in a copy of the checkout; return whether enough of each kind are found."""
    copy_to(folder)
    checked: set[tuple[str, ...]] = set()
    enough = only_signs or plant_type_errors(folder, checked)
    return flip_signs(folder, checked, seed, count) and enough


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--signs"]
    into, seed, count = [*words, *["0", "10"][len(words) - 1 :]]
    sys.exit(not main(Path(into).resolve(), int(seed), int(count), "--signs" in sys.argv))
