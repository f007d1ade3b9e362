"""Change lines on which promises rest, one at a time, and see whether the tests of their room notice.

    python .ci/mutants.py FOLDER [COUNT] [ROOM ...]

Of each room COUNT mutants (50) are drawn, always the same, and tried in a copy of the checkout below FOLDER:
with the fast tests of the room, and where those notice nothing, with the slow ones. Survivors are printed
with what was changed. What people read is not looked at: no string is changed, and nothing in a line that
raises an error; that an error is raised is.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent

ROOMS = {
    "measures": ("pmlopt/measures/*", "pmlopt/measures", "tests/measures", "tests/releases/estimation"),
    "privacy": (
        "pmlopt/model/privacy/*",
        "pmlopt/model/privacy",
        "tests/model/privacy",
        "tests/testing/test_conformance.py",
    ),
    "uncertainty": (
        "pmlopt/model/uncertainty/*",
        "pmlopt/model/uncertainty",
        "tests/model/uncertainty",
        "tests/testing/test_conformance.py",
    ),
    "exact": ("pmlopt/programs/exact/*", "pmlopt/programs/exact", "tests/programs/exact"),
    "certificates": ("pmlopt/programs/*certificate.py", "pmlopt/programs", "tests/programs"),
    "releases": ("pmlopt/releases/*", "pmlopt/releases", "tests/releases"),
}
"""What is changed in each room, and the tests that are to notice: examples in docstrings among them."""

PARTS = ("pmlopt", "tests", "problems", "docs", "conftest.py", "pyproject.toml")

MUTMUT = """
import mutmut.mutation.mutators as mutators
mutators.mutation_operators[:] = [
    pair for pair in mutators.mutation_operators if pair[1] is not mutators.operator_string
]
from mutmut.__main__ import cli
cli()
"""
"""The program, without the mutants of strings, for which it has no setting."""

SELECTED = "not killed and not time_limits and not mutmut"
"""Left out are programs that a test starts and kills, which would not know what to mutate, what fails where a
machine is busy, and the examples of the mutants themselves, which are those of what they change."""

SETTINGS = """[mutmut]
source_paths=pmlopt
only_mutate={changed}
do_not_mutate_patterns=^\\s*raise\\b
pytest_add_cli_args=
 -m
 fast
 -k
 {selected}
pytest_add_cli_args_test_selection=
 {tests}
also_copy=
 conftest.py
 problems
 docs
"""

LONGEST = 1800
"""Seconds of the slow tests of one mutant: several times what they take, so that it is one without an end."""


def mutmut(folder: Path, *words: str, check: bool = True) -> str:
    """What the program says when it is run in a folder; all of it is in `log.txt` there."""
    done = subprocess.run(
        [sys.executable, "-c", MUTMUT, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        log.write(done.stdout + done.stderr)
    if check and done.returncode:
        sys.exit(f"mutmut {words[0]} failed: see {folder / 'log.txt'}")
    return done.stdout


def outcomes(folder: Path) -> dict[str, int | None]:
    """The exit code of the tests of each mutant: 1 where one failed, None where none was run."""
    found: dict[str, int | None] = {}
    for path in (folder / "mutants").rglob("*.meta"):
        found |= json.loads(path.read_text("utf-8"))["exit_code_by_key"]
    return found


def slow_tests(folder: Path, name: str, tests: Sequence[str]) -> int | None:
    """The exit code of the slow tests under one mutant; None where they do not end."""
    words = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "slow", "-k", SELECTED, *tests]
    try:
        return subprocess.run(
            [sys.executable, *words],
            cwd=folder / "mutants",
            env=os.environ | {"MUTANT_UNDER_TEST": name},
            capture_output=True,
            timeout=LONGEST,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def tried(folder: Path, room: str, count: int) -> bool:
    """Whether the tests of a room notice every mutant of a sample."""
    changed, *tests = ROOMS[room]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    settings = SETTINGS.format(changed=changed, tests="\n ".join(tests), selected=SELECTED)
    (folder / "setup.cfg").write_text(settings, "utf-8")
    # a name that no mutant has ends the run as soon as all are written down
    mutmut(folder, "run", "none", check=False)
    names = sorted(outcomes(folder))
    drawn = random.Random(0).sample(names, min(count, len(names)))
    mutmut(folder, "run", *drawn)
    codes = outcomes(folder)
    quiet = [name for name in drawn if codes[name] in (0, 5, 33)]  # all tests pass, or none is there
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        again = list(pool.map(lambda name: slow_tests(folder, name, tests), quiet))
    left = [name for name, code in zip(quiet, again, strict=True) if code in (0, 4, 5)]
    endless = sum(codes[name] != 1 for name in drawn if name not in quiet) + again.count(None)
    print(
        f"{room}: {len(drawn) - len(left)} of {len(drawn)} mutants are noticed,",
        f"{len(drawn) - len(quiet)} by fast tests, {endless} because tests crash or do not end",
    )
    for name in left:
        print(mutmut(folder, "show", name), flush=True)
    return not left


if __name__ == "__main__":
    into, count, *rooms = [*sys.argv[1:], *["50"][len(sys.argv) - 2 :]]
    noticed = [tried(Path(into) / room, room, int(count)) for room in rooms or ROOMS]
    sys.exit(not all(noticed))
