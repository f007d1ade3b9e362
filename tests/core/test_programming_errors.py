"""Which exceptions are mistakes in pmlopt's own code, and that no method hides them in strict mode."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import linalg
from scipy.stats import truncexpon

from pmlopt import (
    PML,
    Continuous,
    DistanceLoss,
    ExpectedGain,
    design,
    envelope,
    envelope_design,
    solve,
    sweep,
)
from pmlopt.core.programming_errors import VARIABLE, describe_error, is_programming_error
from pmlopt.errors import InputError, PriorError, SolverError
from pmlopt.programs import Status
from pmlopt.programs.continuous.methods import GridRefinement
from pmlopt.programs.envelope.build_certificate import RatioPrograms
from pmlopt.programs.envelope_design.margin_programs import MarginPrograms
from pmlopt.programs.program import Method
from pmlopt.solvers import highs
from pmlopt.solvers.structured import interior_point

PROGRAM = design([0.5, 0.3, 0.2], PML(0.5), ExpectedGain(np.eye(3)))

RNG = np.random.default_rng(0)
PRIOR, CHANNEL = RNG.dirichlet(np.full(8, 3.0)), RNG.dirichlet(np.ones(6), 8)

MISTAKES = (
    "[].absent", "unknown_name", "[][3]", "{}['x']", "1 + None", "1 / 0", "int('x')", "fail()",
    "np.ones(2) + np.ones(3)", "np.stack([np.ones(2), np.ones(3)])", "linalg.solve(np.ones(2), np.ones(3))",
    "json.loads('{')",
)  # fmt: skip
"""Expressions, each of another type of error, in pmlopt's own frame or in a library that it calls."""

NO_MISTAKES = (
    "cp.Problem(cp.Minimize(cp.Variable(2)))", "linalg.cholesky(-np.eye(2))", "refuse()", "user()",
    "math.exp(1e9)",
)  # fmt: skip


def fail() -> None:
    raise AssertionError


def refuse() -> None:
    raise PriorError("no prior")


def refuse_program(*_: object) -> Any:
    raise PriorError("no prior")


def user() -> None:
    raise TypeError("a person's own function")


def own_code(expression: str) -> Callable[..., Any]:
    """Return a function of pmlopt, as far as its frame shows, that evaluates an expression."""
    fail_in_package = eval(
        "lambda: (_ for _ in ()).throw(AssertionError())", {"__name__": "pmlopt.planted"}
    )
    names = {"np": np, "cp": cp, "linalg": linalg, "json": json, "refuse": refuse, "user": user}
    space = {"__name__": "pmlopt.planted", "math": math, "fail": fail_in_package, **names}
    found: Callable[..., Any] = eval(f"lambda *given, **named: {expression}", space)
    return found


def raised_by(expression: str) -> BaseException:
    with pytest.raises(BaseException) as caught, np.errstate(all="raise"):
        own_code(expression)()
    return caught.value


@pytest.mark.parametrize("expression", MISTAKES)
def test_a_mistake_of_ours_is_a_programming_error(expression: str) -> None:
    assert is_programming_error(raised_by(expression))


@pytest.mark.parametrize("expression", NO_MISTAKES)
def test_what_solvers_users_and_refusals_raise_is_none(expression: str) -> None:
    assert not is_programming_error(raised_by(expression))


def test_an_error_is_described_with_its_type_its_file_and_its_line() -> None:
    assert describe_error(raised_by("user()")).startswith(
        "TypeError: a person's own function (test_pro"
    )
    with pytest.raises(SolverError) as caught:
        solve(PROGRAM, Method("own", "a test", refuse_program))
    assert describe_error(caught.value) == f"SolverError: {caught.value}"
    assert describe_error(InputError("no")) == "InputError: no"


@pytest.mark.parametrize(
    ("place", "name", "program"),
    [
        (
            MarginPrograms,
            "ascend_margins",
            envelope_design([0.5, 0.3, 0.2], 0.5, 0.1, ExpectedGain(np.eye(3))),
        ),
        (interior_point, "_step_once", design([0.5, 0.3, 0.2], PML(0.5), ExpectedGain(np.eye(3)))),
        (RatioPrograms, "solve_at", envelope(PRIOR, CHANNEL, 0.3)),
    ],
    ids=["envelope-design", "interior-point", "envelope"],
)
def test_a_division_by_zero_of_ours_is_no_trouble_of_a_solver(
    place: Any, name: str, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, own_code("1 / 0"))
    method = "block-ipm" if place is interior_point else "auto"
    with pytest.raises(ZeroDivisionError):
        solve(program, method)


class TestAMistakeInAMethod:
    """A method with a mistake is passed over for users, with its place, and raises in strict mode."""

    @pytest.fixture(autouse=True)
    def _planted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(highs, "build_block_model", lambda: None)

    @pytest.mark.parametrize("isolated", [False, True])
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of Python 3.12, on fork
    def test_in_strict_mode_it_is_raised(self, isolated: bool) -> None:
        with pytest.raises(TypeError, match="takes 0 positional arguments") as caught:
            solve(PROGRAM, isolated=isolated)
        notes = getattr(caught.value, "__notes__", [])
        assert any("pmlopt/solvers/highs.py" in note for note in notes) is isolated

    @pytest.mark.parametrize("isolated", [False, True])
    @pytest.mark.parametrize("value", [None, "", "0"])
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_users_get_the_next_method_and_its_place(
        self, isolated: bool, value: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(VARIABLE) if value is None else monkeypatch.setenv(VARIABLE, value)
        result = solve(PROGRAM, isolated=isolated)
        assert result.status is Status.OPTIMAL
        assert result.certificate.verify()
        assert "TypeError: " in result.attempts[0]
        assert "(pmlopt/solvers/highs.py, line " in result.attempts[0]

    def test_neither_a_grid_of_bins_nor_a_sweep_hides_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(interior_point, "build_newton_system", lambda: None)  # bins are many
        with pytest.raises(TypeError, match="positional"):
            solve(
                design(Continuous(truncexpon(2)), PML(0.5), DistanceLoss()),
                GridRefinement(max_bins=16),
            )

        def builder(epsilon: float) -> Any:
            return design([0.5, 0.3, 0.2], PML(epsilon), ExpectedGain(np.eye(3)))

        with pytest.raises(TypeError, match="positional"):
            sweep(builder, {"epsilon": [0.5]})
