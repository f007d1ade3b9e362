"""Questions and methods of another package work without a change to pmlopt: in `solve`, files, the suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

QUESTION = '''
"""The best constant output: the expected gain of a release that reveals nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import cvxpy as cp
import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior, as_prior
from pmlopt.measures import leakage_level
from pmlopt.programs.certificate import Certificate, StoredPrior, check_gap
from pmlopt.programs.claims import FLOATS, Claim, check_bound, check_mechanism, check_value
from pmlopt.programs.program import (
    CvxpyModel, Method, MethodRegistry, MethodResult, Program, build_problem, reject_warm_start,
    refuse_to_certify,
)
from pmlopt.programs.registry import register_question


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstantCertificate(Certificate):
    """The claim that no constant output gains more than the one of the mechanism."""

    kind: ClassVar[str] = "scratch-constant"
    arithmetic: ClassVar[str] = FLOATS

    prior: StoredPrior
    gains: Annotated[FloatArray, Shape("N", "M")]

    @property
    def is_maximised(self) -> bool:
        return True

    @property
    def level(self) -> float:
        return leakage_level(self.prior, self.mechanism)

    @property
    def statement(self) -> str:
        return "the output is independent of the secret"

    def checks(self) -> tuple[Claim, ...]:
        means = self.prior.pmf @ self.gains
        value = float((self.prior.pmf[:, None] * self.gains * self.mechanism.matrix).sum())
        rounding = 1e-12 * max(1.0, float(np.abs(self.gains).max()))
        constant = bool((self.mechanism.matrix == self.mechanism.matrix[0]).all())
        return (
            check_mechanism(self.mechanism),
            Claim("level", constant, FLOATS, "all rows are equal" if constant else "rows differ"),
            check_value(self.value, value, rounding),
            check_bound(self.bound, float(means.max()), True),
            check_gap(self, rounding, True),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstantProgram(Program[ConstantCertificate]):
    """The search for the best constant output."""

    prior: Prior
    gains: FloatArray

    @property
    def maximised(self) -> bool:
        return True


def best_constant(prior, gains) -> ConstantProgram:
    """Declare the search for the best constant output."""
    known, table = as_prior(prior), np.asarray(gains, dtype=float)

    def build_model() -> CvxpyModel:
        row = cp.Variable(table.shape[1], nonneg=True)
        constraints = {"row sum": cp.sum(row) == 1}
        problem = build_problem(cp.Maximize((known.pmf @ table) @ row), constraints)
        return CvxpyModel(problem, {"row": row}, constraints)

    return ConstantProgram(build_model=build_model, prior=known, gains=table)


def certify(program, row) -> MethodResult:
    matrix = np.tile(row, (program.prior.size, 1))
    value = float((program.prior.pmf[:, None] * program.gains * matrix).sum())
    bound = float((program.prior.pmf @ program.gains).max())
    certificate = ConstantCertificate(
        mechanism=Mechanism(matrix, program.prior.labels), value=value, bound=bound,
        prior=program.prior, gains=program.gains,
    )
    return MethodResult(certificate=certificate, finished=True, message="all outputs were compared")


def scan(program, options, start) -> MethodResult:
    row = np.zeros(program.gains.shape[1])
    row[int(np.argmax(program.prior.pmf @ program.gains))] = 1.0
    return certify(program, row)


METHODS = MethodRegistry(
    ConstantProgram,
    (Method("scan", "few outputs: each is tried", scan),),
    reject_warm_start("there is nothing to start from: leave it out"),
    refuse_to_certify("solve it instead"),
)
register_question(METHODS)
'''

METHOD = '''
"""A method for linear designs: the best of the constants, with the bound of pmlopt's own multipliers."""

from dataclasses import dataclass, replace

import numpy as np

from pmlopt.programs.linear.methods import METHODS
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import Method
from pmlopt.programs.registry import register_method


@dataclass(frozen=True)
class Borrowing:
    """Certify what clarabel finds, mixed with the uniform mechanism by some weight."""

    weight: float = 0.0

    def __call__(self, program, options, start):
        rows = [one for one in METHODS.methods if one.name == "clarabel"]
        found = rows[-1].run(program, options, start).certificate
        uniform = np.full_like(found.mechanism.matrix, 1 / found.mechanism.matrix.shape[1])
        mixed = (1 - self.weight) * found.mechanism.matrix + self.weight * uniform
        result = METHODS.certify_matrix(program, mixed, found.multipliers)
        return replace(result, message="a borrowed point")


def lie(program, options, start):
    """Return a certificate with a value that the mechanism does not have."""
    found = METHODS.certify_matrix(program, np.full((program.prior.size, len(program.outputs)), 0.5), None)
    better = found.certificate.value - 0.1
    return replace(found, certificate=replace(found.certificate, value=better, bound=better))


register_method(LinearDesign, Method("borrowed", "for a test: a solver of pmlopt, mixed", Borrowing()))
'''

PRIORS = '''
"""The priors within a Euclidean distance of a centre: a set that pmlopt does not have."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import cvxpy as cp
import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import ContextReference, Range
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.model.uncertainty import MinMeanExpression, PriorSet


class EuclideanBall(PriorSet):
    """The priors Q with `|Q - p| <= radius`, where no prior of the ball empties a letter."""

    kind: ClassVar[str] = "euclidean-ball"
    center: Annotated[Prior, ContextReference("prior")]
    radius: Annotated[float, Range(0)]

    def __init__(self, center: PriorLike, radius: float) -> None:
        self.center, self.radius = as_prior(center), float(radius)
        assert self.radius < self.center.pmf.min()

    @property
    def size(self) -> int:
        return self.center.size

    @property
    def description(self) -> str:
        return f"within the Euclidean distance {self.radius:g} of the centre"

    def min_mean(self, matrix: FloatArray) -> FloatArray:
        off = matrix - matrix.mean(axis=0)
        return self.center.pmf @ matrix - self.radius * np.sqrt((off**2).sum(axis=0))

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        if matrix.dtype != object:
            return self.min_mean(matrix), 1.0
        n, total, scale = self.size, sum(self.center.weights), 2**200
        least = []
        for column in matrix.T.tolist():
            square = n * sum(v * v for v in column) - sum(column) ** 2
            root = math.isqrt(int(square * Fraction(self.radius) ** 2 * scale**2 / n)) + 1
            mean = sum(w * v for w, v in zip(self.center.weights, column, strict=True))
            least.append(math.floor(Fraction(mean, total) * scale - root))
        return np.array(least, dtype=object), scale

    def minimizer(self, column: FloatArray) -> FloatArray:
        off = column - column.mean()
        norm = float(np.sqrt(off @ off))
        return self.center.pmf - self.radius * (off / norm if norm else 0 * off)

    def contains_law(self, p: FloatArray) -> bool:
        return bool(np.linalg.norm(p - self.center.pmf) <= self.radius + 1e-13)

    def constrain_measures(self, measures: Any, masses: Any) -> Any:
        off = measures - self.center.pmf[:, None] @ masses
        sums = cp.sum(measures, axis=0, keepdims=True) == masses
        return [measures >= 0, sums, cp.norm(off, 2, axis=0) <= self.radius * masses[0]]

    def to_cvxpy(self, mechanism: Any, largest: Any) -> MinMeanExpression:
        norm = cp.Variable(largest.shape, nonneg=True, name="norm")
        n = self.size
        off = (np.eye(n) - np.ones((n, n)) / n) @ mechanism
        rules = {"norm": cp.norm(off, 2, axis=0) <= norm[0]}
        value = self.center.pmf[None, :] @ mechanism - self.radius * norm
        return MinMeanExpression(value, rules, {"norm": norm})

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        off = matrix - matrix.mean(axis=0)
        return {"norm": np.sqrt((off**2).sum(axis=0))[None, :]}
'''

ENTRY = "[pmlopt.questions]\nscratch = scratch.question\nborrowed = scratch.method\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a package `scratch`, as in a checkout of somebody else, which is not installed."""
    package = tmp_path / "scratch"
    package.mkdir()
    sources = {"__init__": "", "question": QUESTION, "method": METHOD, "priors": PRIORS}
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)
    return tmp_path


@pytest.fixture
def installed(folder: Path) -> Path:
    """The same folder, with what an installer writes: the entry points of the package."""
    information = folder / "scratch-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: scratch\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(ENTRY)
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder, with its packages on the path."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", ""), *sys.path])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )


def check_code(folder: Path, code: str) -> str:
    ended = run(folder, "-c", code)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


SOLVED = """
from scratch.question import best_constant
from pmlopt import certify, load, solve, solvers_for, sweep, verify_file
from pmlopt.testing import check_program
# the means of the three outputs are 0.5, 0.3 and 0.44: the first is the best
program = best_constant([0.5, 0.3, 0.2], [[1, 0, 0.4], [0, 1, 0.4], [0, 0, 0.6]])
assert [one.name for one in solvers_for(program)] == ["scan"]
for solver in ("auto", "scan"):
    result = solve(program, solver)
    assert result.status.value == "optimal" and abs(result.value - 0.5) < 1e-15, result
result.save("constant.json")
assert verify_file("constant.json").holds and load("constant.json").value == result.value
from pmlopt.programs.solving import check_solver_name
check_solver_name("scan")
"""

CONFORMS = """
assert abs(program.problem.solve() - 0.5) < 1e-6
check_program(program)
"""


def test_a_question_that_is_imported_is_solved_saved_and_verified(folder: Path) -> None:
    check_code(folder, SOLVED + CONFORMS)
    command = ("-m", "pmlopt", "verify", "constant.json")
    known = run(folder, *command, "--import", "scratch.question")
    assert (known.returncode, known.stderr) == (0, "")
    unknown = run(folder, *command)
    assert unknown.returncode != 0
    assert "scratch-constant" in unknown.stderr


def test_a_question_that_is_installed_is_known_by_its_entry_point(installed: Path) -> None:
    check_code(installed, SOLVED)
    ended = run(installed, "-m", "pmlopt", "verify", "constant.json")
    assert (ended.returncode, ended.stderr) == (0, "")


BORROWED = """
from dataclasses import replace
from pmlopt import PML, design, solve, solvers_for
from pmlopt.programs.program import Method
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.testing import check_program
program = design([0.5, 0.5], PML(0.2), "hamming")
result = solve(program, "borrowed")
assert (result.solver, result.status.value) == ("borrowed", "optimal"), result
assert abs(result.value - 0.3892986209) < 1e-7  # 1 - e^0.2 / 2
assert "borrowed" in [one.name for one in solvers_for(program)]
assert solve(program).solver == "closed-form"  # it is the last one
check_program(program, ["borrowed"])
"""


def test_a_method_that_is_imported_solves_designs_by_its_name(folder: Path) -> None:
    check_code(folder, "import scratch.method\n" + BORROWED)


def test_a_method_that_is_installed_is_found_by_its_name(installed: Path) -> None:
    check_code(installed, BORROWED)


FALSE = """
import scratch.method
from pmlopt import PML, design, solve
from pmlopt.errors import ProgramError
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import Method
from pmlopt.programs.registry import register_method
first = solve(design([0.5, 0.5], PML(0.2), "hamming")).method
register_method(LinearDesign, Method("lie", "for a test", scratch.method.lie), before=first)
# as where the cell of a notebook runs twice
register_method(LinearDesign, Method("lie", "once more", scratch.method.lie), before=first)
result = solve(design([0.5, 0.5], PML(0.2), "hamming"))
assert result.method == first and result.certificate.verify()
assert [one.partition(":")[0] for one in result.attempts] == ["lie"], result.attempts
assert "its certificate fails" in result.attempts[0]
named = scratch.method.Borrowing(0.5)
assert solve(design([0.5, 0.5], PML(0.2), "hamming"), named, gap=1.0).solver == "borrowed"
for wrong in (
    lambda: register_method(LinearDesign, Method("lie", "another", lambda *_: None)),
    lambda: register_method(LinearDesign, Method("new", "lost", scratch.method.lie), before="nothing"),
    lambda: register_method(int, Method("new", "lost", scratch.method.lie)),
):
    try:
        wrong()
    except ProgramError as error:
        print(error)
    else:
        raise SystemExit("accepted")
"""


def test_a_false_certificate_of_a_registered_method_is_no_result(folder: Path) -> None:
    printed = check_code(folder, FALSE)
    assert "'lie'" in printed
    assert "nothing" in printed
    assert "int" in printed


WRONG = """
from dataclasses import replace
from scratch.question import METHODS, ConstantProgram, best_constant, certify, scan
from pmlopt import solve
from pmlopt.errors import ProgramError, SolverError
from pmlopt.programs.program import REGISTRY
from pmlopt.programs.registry import register_question
from pmlopt.testing import ConformanceError, check_program
import numpy as np
program = best_constant([0.5, 0.5], [[1, 0], [0, 0.5]])
register_question(METHODS)  # the same once more
for again in (replace(METHODS), replace(METHODS, program=int)):
    try:
        register_question(again)
    except ProgramError as error:
        print(error)
def worse(program, options, start):
    return certify(program, np.array([0.0, 1.0]))
def false(program, options, start):
    found = scan(program, options, start)
    return replace(found, certificate=replace(found.certificate, value=9.0, bound=9.0))
row = METHODS.methods[0]
for run in (false, lambda *_: None):
    REGISTRY[ConstantProgram] = replace(METHODS, methods=(replace(row, run=run),))
    for call in (solve, check_program):
        try:
            call(program)
        except (SolverError, ConformanceError) as error:
            print(type(error).__name__)
        else:
            raise SystemExit("accepted")
REGISTRY[ConstantProgram] = replace(METHODS, methods=(replace(row, run=worse),))
assert solve(program).status.value == "unproved"
"""


def test_what_is_false_in_a_question_is_found(folder: Path) -> None:
    printed = check_code(folder, WRONG)
    assert printed.count("SolverError") == 2
    assert printed.count("ConformanceError") == 2
    assert "has methods already" in printed
    assert "no subclass of Program" in printed


def test_a_broken_package_is_named(installed: Path) -> None:
    (installed / "scratch" / "method.py").write_text("raise RuntimeError('broken')\n")
    code = "from pmlopt import PML, design, solve\nsolve(design([0.5, 0.5], PML(0.2), 'hamming'), 'lost')\n"
    ended = run(installed, "-c", code)
    assert "scratch.method" in ended.stderr
    assert "broken" in ended.stderr
    # what needs no other package is solved without any
    check_code(installed, code.replace("'lost'", "'auto'"))


OWN_SET = """
import numpy as np
from scratch.priors import EuclideanBall
from pmlopt.errors import PrivacyError
from pmlopt import (
    LDP, PML, ExpectedLoss, MutualInformation, Prior, design, intersection, leakage_level, least_leakage,
    load, solve, sweep, verify_file, Box, KLBall,
)
from pmlopt.testing import check_prior_set, check_requirement
p = [0.6, 0.4]
# on two letters the ball is that of the chi-square distance, with masses of 0.6 -+ 0.1 / sqrt(2)
ball = EuclideanBall(p, 0.1)
check_prior_set(ball, instances=2)
check_requirement(PML(0.5, over=ball), Prior(p), instances=1)
ends = 0.1 / np.sqrt(2)
box = Box([0.6 - ends, 0.4 - ends], [0.6 + ends, 0.4 + ends])
for build in (
    lambda over: design(p, PML(0.5, over=over), "hamming"),
    lambda over: design(p, PML(0.5, over=over) & LDP(0.9), "hamming"),
    lambda over: design(p, PML(0.5, over=over), MutualInformation()),
    lambda over: least_leakage(p, ExpectedLoss(1 - np.eye(2)), expected=0.3, over=over),
):
    found, expected = solve(build(ball)), solve(build(box))
    assert abs(found.value - expected.value) < 1e-6, (found, expected)
    assert found.certificate.verify()
result = solve(design(p, PML(0.5, over=ball), "hamming"))
assert 0.49 < leakage_level(p, result.mechanism, over=ball) <= 0.5
result.save("own-set.json")
assert verify_file("own-set.json").holds
assert load("own-set.json").certificate.privacy == PML(0.5, over=ball)
try:  # it has no rational members, and who needs them says so
    intersection(ball, KLBall(p, 0.5))
except PrivacyError as error:
    assert "no prior in rationals near given numbers" in str(error)
else:
    raise SystemExit("accepted")
table = sweep(lambda e: design(p, PML(e, over=ball), "hamming"), {"e": [0.3, 0.5]})
assert table.column("value")[1] < table.column("value")[0]
"""


def test_a_set_of_priors_that_is_imported_works_like_one_of_pmlopt(folder: Path) -> None:
    check_code(folder, OWN_SET)
    command = ("-m", "pmlopt", "verify", "own-set.json")
    known = run(folder, *command, "--import", "scratch.priors")
    assert (known.returncode, known.stderr) == (0, "")
    unknown = run(folder, *command)
    assert unknown.returncode != 0
    assert "euclidean-ball" in unknown.stderr
