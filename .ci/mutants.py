"""Change lines on which promises rest, one at a time, and see whether the tests of their room notice.

    python .ci/mutants.py FOLDER [COUNT] [ROOM ...]

Of each room COUNT mutants (50) are drawn, always the same, and tried with the tests of the room alone, in a
copy of the checkout below FOLDER. Survivors are printed: `mutmut show NAME` there says what was changed.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

ROOMS = {
    "measures": ("pmlopt/measures/*", "tests/measures", "tests/releases/estimation"),
    "privacy": ("pmlopt/model/privacy/*", "tests/model/privacy", "tests/testing/test_conformance.py"),
    "uncertainty": (
        "pmlopt/model/uncertainty/*",
        "tests/model/uncertainty",
        "tests/testing/test_conformance.py",
    ),
    "exact": ("pmlopt/programs/exact/*", "tests/programs/exact"),
    "certificates": ("pmlopt/programs/*certificate.py", "tests/programs"),
    "releases": ("pmlopt/releases/*", "tests/releases"),
}
"""What is changed in each room, and the tests that are to notice."""

NOTICED = "timeout"
"""The one outcome that `mutmut results` lists beside survivors."""

PARTS = ("pmlopt", "tests", "problems", "docs", "conftest.py", "pyproject.toml")

SETTINGS = """[mutmut]
source_paths=pmlopt
only_mutate={changed}
pytest_add_cli_args=
 -k
 not killed
pytest_add_cli_args_test_selection=
 {tests}
also_copy=
 conftest.py
 problems
 docs
"""
"""Programs that a test starts and kills are left out: in a process of their own, mutants find no settings."""


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
    (folder / "setup.cfg").write_text(SETTINGS.format(changed=changed, tests="\n ".join(tests)), "utf-8")
    # a name that no mutant has ends the run as soon as all are written down
    subprocess.run(["mutmut", "run", "none"], cwd=folder, capture_output=True, check=False)
    names = sorted(
        name
        for path in (folder / "mutants").rglob("*.meta")
        for name in json.loads(path.read_text("utf-8"))["exit_code_by_key"]
    )
    drawn = random.Random(0).sample(names, min(count, len(names)))
    with (folder / "log.txt").open("w") as log:
        subprocess.run(["mutmut", "run", *drawn], cwd=folder, stdout=log, stderr=log, check=True)
    table = subprocess.run(["mutmut", "results"], cwd=folder, capture_output=True, text=True, check=True)
    outcomes = [line.strip().partition(": ") for line in table.stdout.splitlines()]
    left = [f"{name}: {said}" for name, _, said in outcomes if name in drawn and said != NOTICED]
    print(f"{room}: {len(drawn) - len(left)} of {len(drawn)} mutants are noticed", *left, sep="\n  ")
    return not left


if __name__ == "__main__":
    into, count, *rooms = [*sys.argv[1:], *["50"][len(sys.argv) - 2 :]]
    noticed = [tried(Path(into) / room, room, int(count)) for room in rooms or ROOMS]
    sys.exit(not all(noticed))
