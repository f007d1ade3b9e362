"""What this checkout takes of what another one of the project takes, row by row.

    python benchmarks/against.py BUILD [--rows NAME ...] [--pairs NUMBER] [--out FOLDER] [--list]

BUILD is the folder of the other checkout. Each has its package in `.venv`. Both do the work of a row in turn,
the other one first, once to warm up and then in pairs; the ratio is the median over the pairs. A time is that
of the processor, of a process and of all that it starts; or, of work inside a process, what the process
prints last. Tables are printed in Markdown with the machine and the date, and written to the folder.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from common import machine, report_times

ROOT = Path(__file__).resolve().parents[1]
FILES = {"counts.csv": "answer,count\nnever,40\nmonthly,30\nweekly,20\ndaily,10\n"}
"""What there is in the folder in which a command runs."""


class AgainstError(Exception):
    """A row that could not be measured."""


@dataclass(frozen=True)
class Row:
    """Work whose time is compared.

    Attributes:
        about: what it is.
        asked: the ratio to the other checkout that it should have at most.
        arguments: those of Python in a checkout, whose folder the function is given.
        is_inside: whether the time is the number that the process prints last, in seconds.
        in_checkout: whether it runs in the folder of the checkout.
        pairs: how often it is done where nothing else is said.
    """

    about: str
    asked: float
    arguments: Callable[[Path], Sequence[str]]
    is_inside: bool = False
    in_checkout: bool = False
    pairs: int = 9


def command(text: str) -> Callable[[Path], Sequence[str]]:
    """The arguments that run a command of pmlopt."""
    return lambda _: ["-m", "pmlopt", *shlex.split(text)]


def code(text: str) -> Callable[[Path], Sequence[str]]:
    """The arguments that run some code."""
    return lambda _: ["-c", text]


def read_test_command(checkout: Path) -> Sequence[str]:
    """The arguments of Python in the README's command that runs the tests."""
    page = (checkout / "README.md").read_text("utf-8")
    line = re.search(r"<!-- tests -->\s+```bash\n.*&& \S*python (-m pytest .*)\n", page)
    if line is None:
        raise AgainstError(f"{checkout}: its README has no command that runs the tests")
    return shlex.split(line[1])


def read_first_design(checkout: Path) -> Sequence[str]:
    """The arguments that run the first Python block of the README."""
    page = (checkout / "README.md").read_text("utf-8")
    block = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    if block is None:
        raise AgainstError(f"{checkout}: its README has no block of Python")
    return ["-c", block[1]]


def time_designs(requirement: str, letters: int) -> Callable[[Path], Sequence[str]]:
    """The arguments that print the median seconds of a design from numbers to its certificate."""
    return code(
        f"""
import statistics, time
import numpy as np
from pmlopt import LDP, PML, ExpectedGain, Prior, design, solve
rng, seconds = np.random.default_rng(5), []
for _ in range(61):
    prior, gains = rng.dirichlet(np.full({letters}, 5.0)), rng.random(({letters}, {letters}))
    begin = time.process_time()
    assert solve(design(Prior(prior), {requirement}(1.0), ExpectedGain(gains))).certificate.verify()
    seconds.append(time.process_time() - begin)
print(statistics.median(seconds[1:]))
"""
    )


ROWS: Mapping[str, Row] = {
    "tests": Row(
        "the README's test command, tests alone",
        1 / 3,
        read_test_command,
        in_checkout=True,
        pairs=1,
    ),
    "fast": Row(
        "pytest -m fast -n auto",
        1 / 2,
        lambda _: ["-m", "pytest", "-q", "-m", "fast", "-n", "auto"],
        in_checkout=True,
        pairs=1,
    ),
    "design": Row(
        "pmlopt design of four letters, whole process",
        0.45,
        command("design --prior counts.csv --epsilon 0.5 --utility hamming"),
    ),
    "help": Row("pmlopt --help", 0.25, command("--help")),
    "first": Row(
        "import pmlopt and the README's first design in a fresh interpreter", 0.6, read_first_design
    ),
    "pml-4": Row(
        "PML, 4 letters, to the certificate", 1.05, time_designs("PML", 4), is_inside=True
    ),
    "pml-16": Row(
        "PML, 16 letters, to the certificate", 1.05, time_designs("PML", 16), is_inside=True
    ),
    "ldp-8": Row(
        "LDP, 8 letters, to the certificate", 1.05, time_designs("LDP", 8), is_inside=True
    ),
}
"""The rows by name. Of a row that nobody asked to be faster, 1.05 is what it may vary."""


def measure(checkout: Path, row: Row, folder: Path) -> float:
    """Do the work of a row once; return its seconds.

    Raises:
        AgainstError: it failed.
    """
    python = checkout / ".venv" / "bin" / "python"
    words = [str(python), *row.arguments(checkout)]
    place = checkout if row.in_checkout else folder
    # compiled files are kept, as where somebody works
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = count_child_seconds()
    with subprocess.Popen(
        words,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        printed, complaint = child.communicate()
    reap_orphans(child.pid)
    if child.returncode:
        last = (complaint or printed).strip().splitlines()[-1:]
        raise AgainstError(
            f"{checkout}: {row.about}: exit code {child.returncode}: {' '.join(last)}"
        )
    return float(printed.split()[-1]) if row.is_inside else count_child_seconds() - before


def count_child_seconds() -> float:
    """The processor seconds of all processes that this one started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def adopt_orphans() -> None:
    """Let processes whose parent ends before them be children of this one, so that their time counts."""
    with suppress(OSError, AttributeError):  # Linux has it
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def reap_orphans(group: int) -> None:
    """Wait for the processes of a group that were left behind."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)


def compare(other: Path, row: Row, pairs: int) -> tuple[float, float, float]:
    """The median seconds of the other checkout and of this one, and the median ratio of the pairs."""
    with tempfile.TemporaryDirectory() as name:
        for file, text in FILES.items():
            (Path(name) / file).write_text(text)
        if pairs > 1:
            for checkout in (other, ROOT):
                measure(checkout, row, Path(name))
        times = [
            tuple(measure(checkout, row, Path(name)) for checkout in (other, ROOT))
            for _ in range(pairs)
        ]
    theirs, ours = zip(*times, strict=True)
    ratio = statistics.median(own / their for their, own in times)
    return statistics.median(theirs), statistics.median(ours), ratio


HEAD = ("work", "other [s]", "this [s]", "ratio", "asked", "reached", "pairs")


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the rows, and print the table; 1 if one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, nargs="?", metavar="BUILD")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="NAME", default=list(ROWS))
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--list", action="store_true", help="The rows.")
    arguments = parser.parse_args(argv)
    if arguments.list or arguments.build is None:
        for name, row in ROWS.items():
            print(f"{name:10} {row.about}")
        return 0 if arguments.list else 2
    adopt_orphans()
    rows, failed = list[Sequence[object]](), False
    for name in arguments.rows:
        row, pairs = ROWS[name], arguments.pairs or ROWS[name].pairs
        try:
            theirs, ours, ratio = compare(arguments.build.resolve(), row, pairs)
        except AgainstError as cause:
            print(cause, file=sys.stderr)
            failed = True
            continue
        reached = "yes" if ratio <= row.asked else "no"
        rows.append(
            (
                row.about,
                f"{theirs:.4g}",
                f"{ours:.4g}",
                f"{ratio:.2f}",
                f"{row.asked:.2f}",
                reached,
                pairs,
            )
        )
    report_times(arguments.out, "against", HEAD, rows)
    print_machine()
    return int(failed)


def print_machine() -> None:
    """Print the date and the machine."""
    load = os.getloadavg()[0]
    print(f"\n{date.today().isoformat()}, {os.cpu_count()} cores, load {load:.1f}, {machine()}")


if __name__ == "__main__":
    sys.exit(main())
