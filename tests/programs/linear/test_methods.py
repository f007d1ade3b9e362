"""The decision list: which solvers are tried for what, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import PML, ExpectedGain, ExpectedLoss, MetricPrivacy, Prior, design, solve
from pmlopt.errors import SolverUnavailableError
from pmlopt.model.privacy.ratios import Ratios
from pmlopt.programs.certificate import Restart
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.linear.certifying import KnownOptimum
from pmlopt.programs.linear.methods import QUESTION, SIMPLEX_ENTRIES, Start
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import Method
from pmlopt.solvers.outcome import FOREVER, Clock, Options

Row = Method[LinearDesign, Start, LinearCertificate]


def linear(n: int) -> LinearDesign:
    return design(Prior.uniform(n), PML(0.5), ExpectedGain(np.eye(n)))


def curved(n: int) -> LinearDesign:
    program = linear(n)
    return program.with_constraints(size=cp.norm(program.mechanism, "fro") <= n)


def names(program: LinearDesign, start: str | None = None, solver: str = "auto") -> list[str]:
    return [route.name for route in routes(program, solver, begin(program, start))]


def begin(program: LinearDesign, start: str | None) -> Start:
    matrix = np.full(program.mechanism.shape, 1 / program.mechanism.shape[1])
    names = {"closed form": "uniform", "constant": "constant"}
    known = KnownOptimum(names[start], matrix, 0.0) if start in names else None
    return Start(program) if start is None else Start(program, matrix, known=known)


def routes(program: LinearDesign, solver: str, start: Start) -> list[Row]:
    return list(QUESTION.chosen(program, solver, start))


def joint(n: int) -> LinearDesign:
    """A linear program without blocks: a bound of one's own that is not affine."""
    program = linear(n)
    return program.with_constraints(peak=cp.max(program.mechanism) <= 1)


SMALL, LARGE = 30, 31  # the square roots of 900 and the next
STARTS = [None, "closed form", "constant", "given"]


@pytest.mark.parametrize("make", [linear, joint])
def test_small_linear_programs_go_to_the_simplex_first(make: Callable[[int], LinearDesign]) -> None:
    assert SMALL**2 == SIMPLEX_ENTRIES
    assert names(make(2))[0] == "highs"
    assert names(make(SMALL))[0] == "highs"


@pytest.mark.parametrize("n", [2, LARGE])
def test_a_closed_form_goes_to_the_simplex_first(n: int) -> None:
    first = routes(linear(n), "auto", begin(linear(n), "closed form"))[0]
    assert first.name == "highs"
    assert "warm" in first.reason


def test_a_start_goes_to_the_simplex_where_nothing_is_faster_cold() -> None:
    assert names(linear(2), "given")[0] == "highs"
    assert names(linear(LARGE), "given")[0] == "structured"
    assert names(joint(LARGE), "given")[0] == "clarabel"


@pytest.mark.parametrize("n", [2, LARGE])
@pytest.mark.parametrize("start", STARTS)
def test_what_is_not_linear_never_goes_to_a_linear_solver(n: int, start: str | None) -> None:
    tried = names(curved(n), start)
    assert tried[0] == "clarabel"
    assert not {"highs", "highs-ipm", "structured"} & set(tried)


@pytest.mark.parametrize("start", ["closed form", "constant"])
def test_where_solving_takes_long_a_closed_form_is_the_answer(start: str) -> None:
    assert names(linear(201), start)[0] == "closed-form"
    assert names(linear(200), start)[0] != "closed-form"
    result = solve(design(Prior.uniform(201), PML(0.0), ExpectedGain(np.eye(201))))
    assert (result.solver, result.status) == ("closed-form", "optimal")
    assert result.closed_form is not None
    assert result.closed_form.name == "constant"
    assert result.certificate.verify()


@pytest.mark.parametrize("start", [None, "given"])
def test_the_very_largest_are_not_left_to_the_simplex(start: str | None) -> None:
    skewed = Prior.from_counts(range(1, 202))  # of which no two letters are alike
    tried = names(design(skewed, PML(0.5), ExpectedGain(np.eye(201))), start)
    assert tried[0] == "structured"
    assert "highs-ipm" in tried
    assert "highs" not in tried


def test_many_constraints_of_ones_own_and_levels_of_zero_have_no_structure() -> None:
    program = linear(LARGE)
    assert names(program.with_constraints(cap=program.mechanism[0, 0] <= 0.5))[0] == "structured"
    assert "structured" not in names(program.with_constraints(caps=program.mechanism <= 0.5))
    still = design(Prior.uniform(LARGE), PML(0.0), ExpectedGain(np.eye(LARGE)))
    assert "structured" not in names(still)
    with pytest.raises(SolverUnavailableError, match="above 0 nats"):
        routes(still, "structured", Start(still))


@pytest.mark.parametrize("name", ["highs", "highs-ipm", "clarabel", "scs", "SCS", "structured"])
def test_a_solver_asked_for_is_the_only_one(name: str) -> None:
    for start in STARTS:
        assert names(linear(3), start, name) == [name.lower()]


def test_names_that_cannot_be_meant_are_refused() -> None:
    for name in ("nothing", ""):
        with pytest.raises(SolverUnavailableError, match="auto"):
            routes(linear(2), name, Start(linear(2)))
    for name, other in (
        ("highs", "linear programs"),
        ("highs-ipm", "linear programs"),
        ("structured", "Use auto"),
    ):
        with pytest.raises(SolverUnavailableError, match=other):
            routes(curved(2), name, Start(curved(2)))


def test_a_metric_design_out_of_time_needs_no_linear_program_for_its_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One for each output would take longer than the limit; the bound is no worse than that of no privacy."""
    random = np.random.default_rng(0)
    points = random.random((20, 2))
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    program = design(random.dirichlet(np.ones(20)), MetricPrivacy(5.0, apart), ExpectedLoss(apart))
    start = QUESTION.start(program, None, FOREVER)
    method = QUESTION.named(program, "letter-pairs", start)

    def refuse(*_: object) -> None:
        raise AssertionError("a linear program for each output")

    monkeypatch.setattr(Ratios, "weights", refuse)
    found = method.run(program, Options(Clock.of(0.0), program.tolerance), start)
    assert not found.finished
    assert found.certificate.bound >= -1e-12
    assert found.certificate.value <= (program.prior.pmf @ program.table).min() + 1e-9  # of the best constant
    assert found.certificate.verify()


@pytest.mark.parametrize("spoil", ["text", "short", "nan", "deep", "missing"])
def test_a_spoilt_restart_is_no_start(spoil: str) -> None:
    program = design(Prior.uniform(6), PML(0.6), ExpectedGain(np.random.default_rng(4).random((6, 6))))
    good = solve(program, "highs").restart
    changed: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in good.arrays.items():
        if name == "matrix":
            continue
        changed[name] = {
            "text": array.astype(str),
            "short": array[:-1],
            "nan": np.full(array.shape, np.nan),
            "deep": array[None],
            "missing": np.zeros(0),
        }[spoil]
    assert changed
    if spoil == "missing":
        changed = {}
    result = solve(
        program, "highs", warm_start=Restart("highs", {"matrix": good.arrays["matrix"], **changed})
    )
    assert result.status == "optimal"
    assert result.value == pytest.approx(solve(program, "highs").value, abs=1e-8)
