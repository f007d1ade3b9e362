"""The conformance suite of programs and methods: certified, saved and reloaded results."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pmlopt.errors import SolverError
from pmlopt.programs.method_runs import GRACE_SECONDS
from pmlopt.programs.program import Method, Program
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve, solvers_for
from pmlopt.testing.conformance import ConformanceError
from pmlopt.verification.verify_saved import load_saved, verify_file


def check_program(program: Program[Any], names: Iterable[str] | None = None) -> None:
    """Check that a program's methods agree, and their certificates survive saving.

    Each method is run without a limit and with a millisecond. Every result that it returns has a certificate
    that verifies, also from its file, which is refused with another value; and no value is better than the
    bound of another method.

    Args:
        program: of a user's question, or one that a user's method solves.
        names: of the methods to run; left out, all that can solve it.

    Raises:
        ConformanceError: a method breaks one of these, or finds nothing; the message states which.

    Examples:
        >>> from pmlopt import PML, design
        >>> check_program(design([0.5, 0.5], PML(0.2), "hamming"), ["highs"])
    """
    chosen = list(solvers_for(program) if names is None else _find_methods(program, names))
    if not chosen:
        raise ConformanceError(f"no method can solve {program!r}: `solvers_for` lists none")
    results = {method.id: _solve_with(program, method) for method in chosen}
    for name, result in results.items():
        _check_file(name, result)
    _check_bounds(results, program.maximised, program.compute_allowed_gap(program.tolerance))
    for method in chosen:
        _check_time_limit(program, method)


def _find_methods(program: Program[Any], names: Iterable[str]) -> Iterator[Method[Any, Any, Any]]:
    """Yield the named methods; raise an error for unknown ones."""
    known = {method.name: method for method in reversed(solvers_for(program))}
    for name in names:
        if name not in known:
            raise ConformanceError(
                f"{name!r} cannot solve {program!r}: `solvers_for` lists {', '.join(known)}"
            )
        yield known[name]


def _solve_with(
    program: Program[Any], method: Method[Any, Any, Any], time_limit: float | None = None
) -> Result[Any]:
    """Solve a program by one method, also with an open gap."""
    try:
        return solve(program, method, time_limit=time_limit)
    except SolverError as error:
        if isinstance(error.result, Result):
            return error.result
        if time_limit is not None:
            raise
        raise ConformanceError(f"{method.id} finds nothing for {program!r}: {error}") from error


def _check_file(name: str, result: Result[Any]) -> None:
    """Check that a saved certificate verifies, and a falsified one does not."""
    if not result.certificate.verify():
        failures = "; ".join(map(str, result.certificate.failures))
        raise ConformanceError(f"the certificate of {name} does not verify: {failures}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        result.save(path)
        if not verify_file(path).holds:
            raise ConformanceError(f"the result of {name} verifies, and its file does not")
        if load_saved(path).value != result.value:
            raise ConformanceError(f"the result of {name} has another value when it is loaded")
        # a value that is better by a hundredth of its size, or of one
        better = 0.01 * max(1.0, abs(result.value)) * (1 if result.certificate.is_maximised else -1)
        false = replace(result.certificate, value=result.value + better)
        replace(result, certificate=false).save(path)
        if verify_file(path).holds:
            raise ConformanceError(f"a file of {name} with a better value is not refused")


def _check_bounds(results: dict[str, Result[Any]], maximised: bool, allowed: float) -> None:
    """Check that no value beats another method's bound."""
    sign = 1 if maximised else -1
    best = max(results, key=lambda name: sign * results[name].value)
    tightest = min(results, key=lambda name: sign * results[name].bound)
    value = results[best].value
    bound = results[tightest].bound
    if sign * (value - bound) > allowed:
        raise ConformanceError(
            f"{best} has the value {value}, and {tightest} the bound {bound}: one of both is false"
        )


def _check_time_limit(program: Program[Any], method: Method[Any, Any, Any]) -> None:
    """Check that a method respects its time limit."""
    begin = time.perf_counter()
    try:
        result = _solve_with(program, method, time_limit=1e-3)
    except SolverError:
        result = None  # the time was too short for any mechanism
    seconds = time.perf_counter() - begin
    if seconds > GRACE_SECONDS:
        raise ConformanceError(f"{method.id} ends {seconds:.0f} s after a time limit of 1 ms")
    if result is not None and not result.certificate.verify():
        raise ConformanceError(f"what {method.id} returns after its time limit does not verify")
