"""Options of a person's own reach the solver, and one that it does not know is an error that names both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run

from pmlopt import (
    PML,
    CoordinateLoss,
    EstimationError,
    ExpectedLoss,
    IIDPrior,
    MutualInformation,
    design,
    load,
    solve,
    solvers_for,
    verify_file,
)
from pmlopt.errors import InputError, SolverOptionError, SolverUnavailableError
from pmlopt.model.utility import hamming
from pmlopt.programs import Status
from pmlopt.programs.linear.feasible import find_first_mechanism
from pmlopt.programs.program import Program

RNG = np.random.default_rng(0)
LINEAR = design(RNG.dirichlet(np.ones(6)), PML(0.5), ExpectedLoss(RNG.random((6, 6))))
GOOD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("clarabel", {"max_iter": 150}),
    ("scs", {"eps_abs": 1e-10, "eps_rel": 1e-10}),
    ("osqp", {"eps_abs": 1e-9, "rho": 0.5}),
    ("scipy", {"scipy_options": {"method": "highs-ipm"}}),
    ("highs", {"simplex_strategy": 4}),
    ("highs-ipm", {"presolve": "off"}),
)
UNKNOWN: tuple[tuple[str, dict[str, Any]], ...] = (
    *((name, {"no_such_option": 1}) for name, _ in GOOD),
    ("scipy", {"scipy_options": {"no_such_option": 1}}),
    ("clarabel", {"max_iter": "many"}),
    ("scs", {"max_iters": "many"}),
    ("osqp", {"max_iter": "many"}),
    ("highs", {"presolve": 7}),
    ("highs", {"time_limit": [1]}),
)


@pytest.mark.parametrize("time_limit", [None, 60.0])
@pytest.mark.parametrize(("name", "options"), GOOD)
def test_an_option_reaches_the_solver_and_is_recorded(
    name: str, options: dict[str, Any], time_limit: float | None, tmp_path: Path
) -> None:
    expected = solve(LINEAR, "highs")
    result = solve(LINEAR, name, solver_options=options, time_limit=time_limit)
    assert result.status is Status.OPTIMAL
    assert abs(result.value - expected.value) <= 1e-6
    assert result.solver_options == options
    result.save(tmp_path / "x.json")
    assert load(tmp_path / "x.json").solver_options == options
    assert verify_file(tmp_path / "x.json").holds


@pytest.mark.parametrize("time_limit", [None, 60.0])
@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize(("name", "options"), UNKNOWN)
def test_an_option_that_a_solver_does_not_know_names_both(
    name: str, options: dict[str, Any], isolated: bool, time_limit: float | None
) -> None:
    with pytest.raises(SolverOptionError) as caught:
        solve(LINEAR, name, solver_options=options, isolated=isolated, time_limit=time_limit)
    said = str(caught.value)
    assert name.partition("-")[0].lower() in said.lower()
    assert "no_such_option" in said or next(iter(options)) in said
    assert isinstance(caught.value, InputError)


def test_few_iterations_leave_the_best_mechanism_so_far() -> None:
    optimal = solve(LINEAR)
    first = find_first_mechanism(LINEAR).certificate
    values = {}
    for steps in (1, 3, 6):
        result = solve(LINEAR, "clarabel", solver_options={"max_iter": steps})
        values[steps] = result.value
        assert result.status is Status.LIMIT_REACHED
        assert result.certificate.verify()
        assert result.iterations in (steps, None)  # none of the best mechanism by formula
        assert result.bound <= optimal.value <= result.value <= first.value
    assert values[6] < first.value


@pytest.mark.parametrize("name", ["auto", "block-ipm"])
def test_methods_of_our_own_take_no_options(name: str) -> None:
    with pytest.raises(SolverOptionError, match="max_iter"):
        solve(LINEAR, name, solver_options={"max_iter": 3})


@pytest.mark.parametrize("program", [
    design([0.5, 0.3, 0.2], PML(0.3), MutualInformation()),
    design([0.5, 0.3, 0.2], PML(0.5), EstimationError()),
    design(IIDPrior([0.6, 0.4], 3), PML(0.5), CoordinateLoss(hamming)),
])  # fmt: skip
def test_every_method_takes_options_or_says_that_it_does_not(program: Program[Any]) -> None:
    """No option is passed over: neither by a solver nor by a method that has none."""
    for method in {method.name: method for method in solvers_for(program)}.values():
        with pytest.raises(SolverOptionError, match="no_such_option"):
            solve(program, method.name, solver_options={"no_such_option": 1})


@pytest.mark.parametrize("options", [3, ["max_iter"], {1: 2}])
def test_options_that_are_no_values_by_name_are_refused(options: Any) -> None:
    with pytest.raises(InputError, match="by name"):
        solve(LINEAR, "clarabel", solver_options=options)
    with pytest.raises(InputError, match="verbose"):
        solve(LINEAR, "clarabel", verbose="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["clarabel", "scs", "osqp", "highs"])
def test_a_solver_prints_where_that_is_wanted(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    solve(LINEAR, name)
    assert capfd.readouterr().out == ""
    solve(LINEAR, name, verbose=True)
    assert len(capfd.readouterr().out) > 100


def test_options_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("letter,p\na,0.5\nb,0.3\nc,0.2\n")
    arguments = [
        "design",
        "--prior",
        tmp_path / "prior.csv",
        "--epsilon",
        "0.4",
        "--utility",
        "hamming",
    ]
    arguments += ["--solver", "clarabel", "--json"]
    out = run(*arguments, "--solver-option", "max_iter=150", "--verbose")
    assert json.loads(out[out.index("{") :])["solver_options"] == {"max_iter": 150}
    assert "max_iter=1" in run(*arguments, "--solver-option", "no_such=max_iter=1", code=2)
    run(*arguments, "--solver-option", "max_iter", code=2)
    run(*arguments, "--solver-option", "max_iter=1", "--solver-option", "max_iter=2", code=2)


def test_a_method_is_one_line() -> None:
    for method in solvers_for(LINEAR):
        text = repr(method)
        assert method.name in text
        assert method.reason in text
        assert " at 0x" not in text


def test_a_solver_that_is_unknown_is_named() -> None:
    with pytest.raises(SolverUnavailableError, match="no_such_solver"):
        solve(LINEAR, "no_such_solver", solver_options={"max_iter": 3})
