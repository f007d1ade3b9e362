"""What this checkout takes of what another one of the project takes, row by row.

    python benchmarks/against.py BUILD [--rows NAME ...] [--without NAME ...] [--pairs NUMBER] [--out FOLDER]
    python benchmarks/against.py --list

BUILD is the folder of the other checkout. Each has its package in `.venv`. Both do the work of a row in turn,
the other one first, once to warm up and then in pairs, a long row in one pair alone; the ratio is the median
over the pairs. A time is that of the processor, of a process and of all that it starts; or, of work inside a
process, what the process prints last. Some rows have something else in place of the other checkout: HiGHS
alone, on the same programs (`beside-highs-...`), the same with fewer solves, or a limit. The table is printed
in Markdown with the machine and the date, and written to the folder after each row.
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
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from common import machine, report, report_times

ROOT = Path(__file__).resolve().parents[1]
FILES = {"counts.csv": "answer,count\nnever,40\nmonthly,30\nweekly,20\ndaily,10\n"}
"""What there is in the folder in which a command runs, next to `people.parquet` where a row needs it."""

PEOPLE = 2_000_000


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
        needs_people: whether the folder has a large table.
        beside: what is done in place of the other checkout's work, where it is not the same.
        unit: of what is measured.
    """

    about: str
    asked: float
    arguments: Callable[[Path], Sequence[str]]
    is_inside: bool = False
    in_checkout: bool = False
    pairs: int = 9
    needs_people: bool = False
    beside: Callable[[Path], Sequence[str]] | None = None
    unit: str = "s"


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


HIGHS_ALONE = """
import statistics, time
import highspy
import numpy as np
from pmlopt import LDP, PML, ExpectedGain, Prior, design, solve
from pmlopt.solvers.highs import LinearModel
rng, seconds, passed = np.random.default_rng(5), [], []
plain = LinearModel.pass_to
LinearModel.pass_to = lambda model, solver: passed.append(model) or plain(model, solver)
{programs}
for model in passed:
    begin = time.process_time()
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    plain(model, solver)
    solver.run()
    solver.getSolution()
    seconds.append(time.process_time() - begin)
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
print(statistics.median(seconds[1:]))
"""


def time_highs(requirement: str, letters: int) -> Callable[[Path], Sequence[str]]:
    """The arguments that print the median seconds of HiGHS alone on the programs of `time_designs`."""
    programs = f"""
for _ in range(61):
    prior, gains = rng.dirichlet(np.full({letters}, 5.0)), rng.random(({letters}, {letters}))
    solve(design(Prior(prior), {requirement}(1.0), ExpectedGain(gains)))
"""
    return code(HIGHS_ALONE.format(programs=programs))


SWEEP = """
prior, gains = Prior(rng.dirichlet(np.full(8, 5.0))), ExpectedGain(rng.random((8, 8)))
epsilons = [float(one) for one in np.linspace(0.1, 3.0, 500)]
"""


def time_sweep() -> Callable[[Path], Sequence[str]]:
    """The arguments that print the seconds of a design of a sweep of 500."""
    return code(
        f"""
import time
import numpy as np
from pmlopt import PML, ExpectedGain, Prior, design, sweep
rng = np.random.default_rng(5)
{SWEEP}
build = lambda epsilon: design(prior, PML(epsilon), gains)
sweep(build, {{"epsilon": epsilons[:2]}})
begin = time.process_time()
sweep(build, {{"epsilon": epsilons}})
print((time.process_time() - begin) / len(epsilons))
"""
    )


def time_highs_in_sweep() -> Callable[[Path], Sequence[str]]:
    """The arguments that print the median seconds of HiGHS alone on the programs of `time_sweep`."""
    programs = f"""{SWEEP}
for epsilon in epsilons:
    solve(design(prior, PML(epsilon), gains))
"""
    return code(HIGHS_ALONE.format(programs=programs))


def print_limit(limit: float) -> Callable[[Path], Sequence[str]]:
    """The arguments that print a limit."""
    return code(f"print({limit})")


def measure_memory(work: str) -> Callable[[Path], Sequence[str]]:
    """The arguments that print the largest memory of a process with some work, in GiB."""
    return code(
        f"""
import resource
import numpy as np
from pmlopt import *
{work}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
    )


def solve_many(times: int) -> str:
    """The code of many designs of four to eight letters in one process."""
    return f"""
rng = np.random.default_rng(5)
for turn in range({times}):
    size = 4 + turn % 5
    question = design(rng.dirichlet(np.full(size, 5.0)), PML(1.0), ExpectedGain(rng.random((size, size))))
    assert solve(question).certificate.verify()
"""


METRIC = """
points = np.random.default_rng(1).random((1000, 2))
apart = np.linalg.norm(points[:, None] - points, axis=2)
solve(design(Prior.uniform(1000), MetricPrivacy(5.0, apart), ExpectedLoss(apart)), tolerance=1e-3)
"""

TUPLES = """
sides = {sides}
tuples = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"), axis=-1).reshape(-1, 3)
losses = (np.abs(tuples[:, None] - tuples) / (np.array(sides) - 1)).sum(axis=2)
prior = np.random.default_rng(1).dirichlet(np.full(len(tuples), 2.0))
solve(design(prior, PML(1.0), ExpectedLoss(losses)), tolerance={tolerance})
"""


def time_code(work: str) -> Callable[[Path], Sequence[str]]:
    """The arguments that print the seconds of some work after a first small design."""
    return code(
        f"""
import time
import numpy as np
from pmlopt import *
solve(design([0.5, 0.5], PML(1.0), "hamming"))
begin = time.process_time()
{work}
print(time.process_time() - begin)
"""
    )


def make_row_beside_highs(requirement: str, letters: int, asked: float) -> Row:
    """The row of a small design beside HiGHS alone."""
    about = f"{requirement}, {letters} letters, to the certificate, beside HiGHS alone"
    ours, alone = time_designs(requirement, letters), time_highs(requirement, letters)
    return Row(about, asked, ours, is_inside=True, pairs=5, beside=alone)


def time_curved_design(ball: str, utility: str) -> Callable[[Path], Sequence[str]]:
    """The arguments that print the seconds of a second design of eight letters over a ball."""
    return code(
        f"""
import time
import numpy as np
from pmlopt import PML, ExpectedGain, Prior, design, solve
from pmlopt.uncertainty import ChiSquareBall, KLBall
rng = np.random.default_rng(3)
prior, gains = Prior(rng.dirichlet(np.full(8, 5.0))), ExpectedGain(rng.random((8, 8)))
for _ in range(2):
    begin = time.process_time()
    question = design(prior, PML(1.0, over={ball}(prior, 0.05)), {utility})
    assert solve(question).certificate.verify()
print(time.process_time() - begin)
"""
    )


def time_large(question: str, letters: int) -> Callable[[Path], Sequence[str]]:
    """The arguments that print the seconds of a large problem in a fresh process."""
    return code(
        f"""
import time
import numpy as np
from pmlopt import *
rng, letters = np.random.default_rng(1), {letters}
prior = rng.dirichlet(np.full(letters, 2.0))
gains, points = rng.random((letters, letters)), rng.random((letters, 2))
apart = np.linalg.norm(points[:, None] - points, axis=2)
steps = np.abs(np.subtract.outer(np.arange(letters), np.arange(letters))) / letters
counts = (rng.multinomial(20_000, prior) + 1).tolist()
solve(design([0.5, 0.5], PML(1.0), "hamming"))
begin = time.process_time()
solve({question})
print(time.process_time() - begin)
"""
    )


RELEASE = "release people.parquet --column education --column sex --epsilon 0.5 --utility hamming"


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
    **{
        f"beside-highs-{kind.lower()}-{letters}": make_row_beside_highs(kind, letters, asked)
        for kind in ("PML", "LDP")
        for letters, asked in ((4, 2.0), (8, 2.0), (16, 1.3))
    },
    "sweep": Row(
        "a design of a sweep of 500, 8 letters, beside HiGHS alone",
        1.5,
        time_sweep(),
        is_inside=True,
        pairs=5,
        beside=time_highs_in_sweep(),
    ),
    "kl-hamming": Row(
        "PML over a KL ball, 8 letters, Hamming loss",
        0.1,
        time_curved_design("KLBall", '"hamming"'),
        is_inside=True,
        pairs=3,
    ),
    "kl-gains": Row(
        "PML over a KL ball, 8 letters, random gains",
        0.6,
        time_curved_design("KLBall", "gains"),
        is_inside=True,
        pairs=5,
    ),
    "chi-gains": Row(
        "PML over a chi-square ball, 8 letters, random gains",
        0.6,
        time_curved_design("ChiSquareBall", "gains"),
        is_inside=True,
        pairs=5,
    ),
    "release": Row(
        "release of two columns of 2 million rows of Parquet",
        0.5,
        command(f"{RELEASE} --drop-all -o {{made}}"),
        pairs=1,
        needs_people=True,
    ),
    "dry-run": Row(
        "the same with --dry-run",
        0.5,
        command(f"{RELEASE} --drop-all --dry-run"),
        pairs=1,
        needs_people=True,
    ),
    **{
        f"information-{letters}": Row(
            f"mutual information, {letters} letters",
            0.5,
            time_large(
                f"design(Prior.from_counts(counts, range({letters})), PML(1.0), MutualInformation())",
                letters,
            ),
            is_inside=True,
            pairs=3,
        )
        for letters in (200, 400)
    },
    "l1": Row(
        "PML over an l1 ball of 0.05, 400 letters",
        0.5,
        time_large("design(prior, PML(1.0, over=L1Ball(prior, 0.05)), ExpectedGain(gains))", 400),
        is_inside=True,
        pairs=3,
    ),
    "least": Row(
        "least leakage, 400 letters",
        0.5,
        time_large("least_leakage(prior, ExpectedLoss(steps), expected=0.1)", 400),
        is_inside=True,
        pairs=3,
    ),
    "metric": Row(
        "metric privacy, 100 points of the plane",
        0.5,
        time_large(
            "design(Prior.uniform(100), MetricPrivacy(5.0, apart), ExpectedLoss(apart))", 100
        ),
        is_inside=True,
        pairs=3,
    ),
    "metric-1000": Row(
        "metric privacy, 1,000 points of the plane, gap 1e-3",
        0.4,
        time_code(METRIC),
        is_inside=True,
        pairs=1,
    ),
    "metric-1000-memory": Row(
        "the same, memory beside a limit",
        1.0,
        measure_memory(METRIC),
        is_inside=True,
        pairs=1,
        beside=print_limit(1.0),
        unit="GiB",
    ),
    "tuples": Row(
        "PML, losses summed over tuples of 10 x 10 x 10",
        0.35,
        time_code(TUPLES.format(sides=(10, 10, 10), tolerance=1e-6)),
        is_inside=True,
        pairs=3,
    ),
    "tuples-4000": Row(
        "the same on 20 x 20 x 10, gap 1e-3, beside a limit",
        1.0,
        time_code(TUPLES.format(sides=(20, 20, 10), tolerance=1e-3)),
        is_inside=True,
        pairs=1,
        beside=print_limit(60.0),
    ),
    "tuples-4000-memory": Row(
        "the same, memory beside a limit",
        1.0,
        measure_memory(TUPLES.format(sides=(20, 20, 10), tolerance=1e-3)),
        is_inside=True,
        pairs=1,
        beside=print_limit(3.0),
        unit="GiB",
    ),
    "memory-10000": Row(
        "memory of a design of 10,000 letters, Hamming loss",
        0.5,
        measure_memory(
            'solve(design(np.random.default_rng(1).dirichlet(np.full(10_000, 2.0)), PML(1.0), "hamming"))'
        ),
        is_inside=True,
        pairs=1,
        unit="GiB",
    ),
    "memory-1500": Row(
        "memory of 1,500 solves, beside 300",
        1.05,
        measure_memory(solve_many(1_500)),
        is_inside=True,
        pairs=1,
        beside=measure_memory(solve_many(300)),
        unit="GiB",
    ),
}
"""The rows by name. Of a row that nobody asked to be faster, 1.05 is what it may vary."""


def measure(checkout: Path, row: Row, folder: Path) -> float:
    """Do the work of a row once; return its seconds.

    Raises:
        AgainstError: it failed.
    """
    python = checkout / ".venv" / "bin" / "python"
    made = str(folder / f"made-{time.time_ns()}")
    words = [str(python), *(word.replace("{made}", made) for word in row.arguments(checkout))]
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
        if row.needs_people:
            write_people(Path(name) / "people.parquet")
        # what stands in for the other checkout is done by this one
        first = (other, row) if row.beside is None else (ROOT, replace(row, arguments=row.beside))
        both = (first, (ROOT, row))
        if pairs > 1:
            for checkout, work in both:
                measure(checkout, work, Path(name))
        times = [
            tuple(measure(checkout, work, Path(name)) for checkout, work in both)
            for _ in range(pairs)
        ]
    theirs, ours = zip(*times, strict=True)
    ratio = statistics.median(own / their for their, own in times)
    return statistics.median(theirs), statistics.median(ours), ratio


def write_people(path: Path) -> None:
    """Write a large table of made-up people."""
    rng = np.random.default_rng(0)
    levels = np.array(["none", "primary", "secondary", "bachelor", "graduate"])
    columns = {
        "education": levels[rng.choice(5, PEOPLE, p=[0.05, 0.15, 0.4, 0.25, 0.15])],
        "sex": np.array(["f", "m"])[rng.choice(2, PEOPLE, p=[0.52, 0.48])],
        "age": rng.integers(18, 90, PEOPLE),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


HEAD = ("work", "unit", "other", "this", "ratio", "asked", "reached", "pairs")


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the rows, and print the table; 1 if one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, nargs="?", metavar="BUILD")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="NAME", default=list(ROWS))
    parser.add_argument("--without", nargs="+", choices=list(ROWS), metavar="NAME", default=[])
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--list", action="store_true", help="The rows.")
    arguments = parser.parse_args(argv)
    if arguments.list or arguments.build is None:
        for name, row in ROWS.items():
            print(f"{name:20} {row.about}")
        return 0 if arguments.list else 2
    adopt_orphans()
    rows, failed = list[Sequence[object]](), False
    for name in (one for one in arguments.rows if one not in arguments.without):
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
                row.unit,
                f"{theirs:.4g}",
                f"{ours:.4g}",
                f"{ratio:.2f}",
                f"{row.asked:.2f}",
                reached,
                pairs,
            )
        )
        # a row takes minutes, and what comes after it may be stopped
        if arguments.out is not None:
            report(arguments.out, "against", HEAD, rows, show=False)
            print(" | ".join(map(str, rows[-1])), flush=True)
    report_times(arguments.out, "against", HEAD, rows)
    print_machine()
    return int(failed)


def print_machine() -> None:
    """Print the date and the machine."""
    load = os.getloadavg()[0]
    print(f"\n{date.today().isoformat()}, {os.cpu_count()} cores, load {load:.1f}, {machine()}")


if __name__ == "__main__":
    sys.exit(main())
