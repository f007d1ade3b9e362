"""The rows of `against.py`: work that two checkouts of the project do, and the ratio that is asked of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class AgainstError(Exception):
    """A row that could not be measured."""


class AgainstTimeLimitError(AgainstError):
    """Work that takes longer than its limit."""


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
        limit: the seconds on the clock after which work is stopped.
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
    limit: float = 3600.0


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


FIRST_DESIGN = """
from pmlopt import PML, Prior, design, solve
prior = Prior.from_counts({"never": 40, "monthly": 30, "weekly": 20, "daily": 10})
result = solve(design(prior, PML(0.5), "hamming"))
print(result.status.value, round(result.value, 4), round(result.level, 4))
print(result.certificate.verify(), result.mechanism.sample(["never", "daily"], seed=1))
"""


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
points = np.random.default_rng(1).random((1000, 2)) * 1000**0.5
apart = np.linalg.norm(points[:, None] - points, axis=2)
question = design(Prior.uniform(1000), MetricPrivacy(1.0, apart), ExpectedLoss(apart))
result = solve(question, tolerance=1e-3)
assert result.status == "optimal", result
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
import scipy.linalg, scipy.optimize, scipy.sparse.linalg
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
    """The arguments that print the median seconds of designs of eight letters over a ball, but the first."""
    return code(
        f"""
import statistics, time
import numpy as np
from pmlopt import PML, ExpectedGain, Prior, design, solve
from pmlopt.uncertainty import ChiSquareBall, KLBall
rng, seconds = np.random.default_rng(3), []
prior, gains = Prior(rng.dirichlet(np.full(8, 5.0))), ExpectedGain(rng.random((8, 8)))
for _ in range(8):
    begin = time.process_time()
    question = design(prior, PML(1.0, over={ball}(prior, 0.05)), {utility})
    assert solve(question).certificate.verify()
    seconds.append(time.process_time() - begin)
print(statistics.median(seconds[1:]))
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
import scipy.linalg, scipy.optimize, scipy.sparse.linalg
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
        "import pmlopt and a first design in a fresh interpreter", 0.6, code(FIRST_DESIGN)
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
    "memory-5000": Row(
        "memory of a design of 5,000 letters, Hamming loss",
        0.5,
        measure_memory(
            'solve(design(np.random.default_rng(1).dirichlet(np.full(5_000, 2.0)), PML(1.0), "hamming"))'
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
