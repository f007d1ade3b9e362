"""Change lines on which promises rest, one at a time, and see whether the tests of their room notice.

    python .ci/mutants.py FOLDER [COUNT] [ROOM ...]

Of each room COUNT mutants (50) are drawn by a hash of their names, which other files do not change, and tried
with the tests of the room alone, the shortest first, in a copy of the checkout below FOLDER. Survivors are
printed with what was changed. What people read is not looked at: no string is changed, and nothing in a line
that raises an error; that an error is raised is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent

ROOMS = {
    "measures": (
        "pmlopt/measures/*",
        "pmlopt/measures",
        "tests/measures",
        "tests/releases/estimation",
    ),
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
    "certificates": (
        "pmlopt/programs/*certificate.py",
        "pmlopt/programs",
        "tests/programs",
        "tests/verification",
    ),
    "releases": ("pmlopt/releases/*", "pmlopt/releases", "tests/releases"),
}
"""What is changed in each room, and the tests that are to notice: examples in docstrings among them."""

SHARE = 0.95
"""Of the mutants, that are to be noticed: what is left is listed in CONTRIBUTING.md, with the reasons."""

PARTS = ("pmlopt", "tests", "problems", "docs", "conftest.py", "pyproject.toml")

MUTMUT = """
import mutmut.mutation.mutators as mutators
mutators.mutation_operators[:] = [
    pair for pair in mutators.mutation_operators if pair[1] is not mutators.operator_string
]
from mutmut.workers.isolation import ForkRunner
ForkRunner.run_clean_tests = lambda runner, tests: 0
from mutmut.__main__ import cli
cli()
"""
"""The program without the mutants of strings, and without all tests once more before the first mutant: they
have just passed while their times were measured. For neither it has a setting."""

SELECTED = "not killed and not time_limits and not mutmut"
"""Left out are programs that a test starts and kills, which would not know what to mutate, what fails where a
machine is busy, and the examples of the mutants themselves, which are those of what they change."""

SETTINGS = """[mutmut]
source_paths=pmlopt
only_mutate={changed}
do_not_mutate_patterns=^\\s*raise\\b
timeout_multiplier=10
timeout_constant=10
pytest_add_cli_args=
 --hypothesis-profile=ci
 -k
 {selected}
pytest_add_cli_args_test_selection=
 {tests}
also_copy=
 conftest.py
 problems
 docs
"""

NOTICED: dict[int | None, str] = {
    1: "by a test",
    3: "by a test",
    24: "by the clock",
    -24: "by the clock",
    152: "by the clock",
}
"""What the exit codes of tests say of a mutant; the clock ends what takes 100 s and ten times as long."""


def mutmut(folder: Path, *words: str, check: bool = True) -> str:
    """What the program says when it is run in a folder; all of it is in `log.txt` there."""
    done = subprocess.run(
        [sys.executable, "-c", MUTMUT, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
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


def tried(folder: Path, room: str, count: int) -> tuple[int, int]:
    """How many mutants of a sample the tests of a room notice, and of how many."""
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
    drawn = sorted(outcomes(folder), key=lambda name: sha256(name.encode()).digest())[:count]
    mutmut(folder, "run", *drawn)
    codes = outcomes(folder)
    left = [name for name in drawn if codes[name] not in NOTICED]
    how = Counter(NOTICED[codes[name]] for name in drawn if name not in left)
    print(f"{room}: {len(drawn) - len(left)} of {len(drawn)} mutants are noticed, {dict(how)}")
    for name in left:
        print(mutmut(folder, "show", name), flush=True)
    return len(drawn) - len(left), len(drawn)


if __name__ == "__main__":
    into, count, *rooms = [*sys.argv[1:], *["50"][len(sys.argv) - 2 :]]
    found = [tried(Path(into) / room, room, int(count)) for room in rooms or ROOMS]
    noticed, drawn = map(sum, zip(*found, strict=True))
    print(f"{noticed} of {drawn} mutants are noticed, and {SHARE:.0%} of them are to be")
    sys.exit(noticed < SHARE * drawn)
