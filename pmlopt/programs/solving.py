"""The solving of programs: methods are tried in order until one proves its result."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import copy_float_array
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.data.mechanism import Mechanism, MechanismLike, check_labels_match
from pmlopt.errors import (
    InfeasibleError,
    MechanismError,
    ProgramError,
    SolverError,
    SolverOptionError,
    SolverUnavailableError,
)
from pmlopt.programs.best_feasible import MethodAttempts, select_best_result
from pmlopt.programs.certificate import C_co, Certificate, DesignCertificate, Status, WarmStartLike
from pmlopt.programs.method_runs import check_fork_available, run_in_process
from pmlopt.programs.program import (
    REGISTRY,
    FalseCertificateError,
    Method,
    MethodError,
    MethodResult,
    Program,
    accept_all,
    find_registry,
    has_foreign_parts,
    load_installed_registries,
)
from pmlopt.programs.purification import DUST_LIMITS, remove_dust
from pmlopt.programs.registry import is_method_name, list_method_names
from pmlopt.programs.result import Result, make_result
from pmlopt.solvers.cvxpy_interface import SOLUTION_FILE, list_installed
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions, make_options


def solvers_for(program: Program[Any]) -> list[Method[Any, Any, Any]]:
    """List the methods that can solve a program, those of `solver="auto"` first, with reasons.

    Args:
        program: from any builder.

    Raises:
        ProgramError: it is no program.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, design, solvers_for
        >>> program = design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]]))
        >>> first = solvers_for(program)[0]
        >>> first.name, first.reason
        ('closed-form', 'a dual bound has proved a closed form optimal: nothing to solve')
    """
    question = find_registry(program)
    start = question.make_start(program, None, NO_DEADLINE)
    found = question.list_automatic(program, start)
    named = {one.name for one in found}
    return [
        *found,
        *(one for one in question.list_by_name_only(program, start) if one.name not in named),
    ]


def solve(
    program: Program[C_co],
    solver: str | Method[Any, Any, C_co] | Callable[..., MethodResult[C_co]] = "auto",
    warm_start: WarmStartLike = None,
    *,
    time_limit: float | None = None,
    tolerance: float | None = None,
    gap: float | None = None,
    isolated: bool = False,
    solver_options: Mapping[str, Any] | None = None,
    verbose: bool = False,
) -> Result[C_co]:
    """Solve a program, and certify the result with a bound on the optimum.

    The methods for the program are tried in order (`solvers_for` lists them) until the certified gap
    is within the tolerance. What is returned is recomputed from the matrix: a designed mechanism is repaired
    until it meets its requirement in exact arithmetic, and value, level, bound and gap belong to it. The
    methods of pmlopt compute them by the code that `certificate.checks()` runs again, which `solve` does not.
    It does where the class of the program, a requirement, a utility, a set of priors or a constraint, or the
    method, is a user's own, or the method was given as an object: the result is OPTIMAL only where its
    certificate verifies. A value beyond its own bound by more than rounding is never OPTIMAL.

    Where no method closes the gap, the best feasible mechanism is returned with its value, its level and the
    best bound: with the status UNPROVED where a method ended without being stopped, else LIMIT_REACHED. Where
    every method was stopped or failed, a mechanism by formula takes the place of a worse one, or of none.

    Args:
        program: from a builder such as `design`, with added constraints if wanted.
        solver: "auto", or the name of a method, which is then the only one tried (`solvers_for` lists them);
            or a method with its options, such as `Alternating(restarts=4)`.
        warm_start: a mechanism, a Result, or the `restart` of one to start from. Left out, a closed form that
            is optimal is found and used; False starts cold.
        time_limit: seconds in all. At the limit the current method ends, and the best mechanism is certified.
        tolerance: the largest certified gap to accept, as a share of `program.scale`; left out,
            `program.tolerance`. Added constraints may be violated by 1e-6 of their unit.
        gap: the same in units of the value (nats, where the value is a leakage), in place of a share.
        isolated: whether each method runs in a separate process (a fork of this one). One that hangs is
            stopped 30 seconds after the time limit, or after an hour where there is none; one whose process
            dies has failed; either way the next is tried. Variables that you declared keep their values.
        solver_options: options of the solver that `solver` names, handed to it as cvxpy does, or to HiGHS
            itself; they take precedence over pmlopt's.
        verbose: whether the solver prints its log, where it has one.

    Raises:
        InfeasibleError: the constraints that were added to the program allow no mechanism.
        SolverOptionError: the solver does not know an option, or takes none.
        SolverError: no feasible mechanism is known, every method ended with a mistake, or every value is
            beyond its own bound; `.result` then carries that Result.
        SolverUnavailableError: the solver's name is unknown, or it cannot take this program.
        InputError: a limit is not positive, the warm start does not fit, or processes cannot be forked here.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, Prior, design
        >>> result = solve(design(Prior([0.5, 0.5]), PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> result.status.value, result.certificate.verify(), result.closed_form.name
        ('optimal', True, 'binary')
        >>> bool(result.level <= 0.2 and result.gap < 1e-9)
        True
    """
    begin = time.perf_counter()
    question = find_registry(program, solver)
    options = make_options(
        time_limit, _relative_tolerance(program, tolerance, gap), solver_options, verbose
    )
    if isolated:
        check_fork_available()
    if isinstance(warm_start, Mechanism):
        _check_labels(program, warm_start)
    start = question.make_start(program, warm_start, options.deadline)
    allowed = program.compute_allowed_gap(options.tolerance)
    attempts: MethodAttempts[C_co] = MethodAttempts()
    methods = question.select_methods(program, solver, start)
    if options.solver_options:
        _check_accepts_options(methods, solver, options)

    def report(method: Method[Any, Any, Any], cause: BaseException) -> None:
        attempts.add_failure(method, cause, method is solver)

    check = partial(_check_foreign_claims, solver, program, allowed)
    run = run_in_process if isolated else None
    for method, found in try_methods(methods, program, options, start, report, run, check):
        status = _choose_status(found, allowed)
        seconds = time.perf_counter() - begin
        result = make_result(
            found, method, status, attempts.accounts, seconds, options.solver_options
        )
        if status is Status.OPTIMAL:
            return result
        attempts.add_result(result, found, _describe_shortcoming(found, allowed))
        if found.certificate.is_beyond_bound and has_foreign_parts(program):
            break  # a user's class contradicts itself: a worse mechanism would only hide it
    best = select_best_result(question, program, attempts, options.deadline, begin)
    # the value of one method and the bound of another may prove what neither does
    is_closed = best.status is Status.UNPROVED and _closes_gap(best.certificate, allowed)
    if is_closed and not best.certificate.failures:
        return replace(best, status=Status.OPTIMAL)
    return best


PROPAGATED_ERRORS = (
    KeyboardInterrupt,
    SystemExit,
    MemoryError,
    InfeasibleError,
    SolverUnavailableError,
)
"""What ends `solve` wherever it comes from; whatever else a method raises is its own failure."""


def try_methods(
    methods: Iterable[Method[Any, Any, C_co]],
    program: Program[C_co],
    options: MethodOptions,
    start: Any,
    report: Callable[[Method[Any, Any, Any], BaseException], object],
    run: Callable[..., MethodResult[C_co]] | None = None,
    check: Callable[[Method[Any, Any, C_co], MethodResult[C_co]], object] = accept_all,
) -> Iterator[tuple[Method[Any, Any, C_co], MethodResult[C_co]]]:
    """Run methods in turn, and yield each that has a result, until the time limit.

    The caller stops at the first result that is good enough. The first method is run in any case.

    Args:
        methods: in the order in which they are tried.
        program: for them to solve.
        options: for them; the deadline is of all of them together.
        start: what they start from.
        report: is called with each method that ends without a result, and the error that it ended with.
        run: runs a method, with program, options and start; left out, in the current process.
        check: looks at what each found; what it or a run raises counts as the failure of the method.

    Raises:
        InfeasibleError: the constraints that a person added allow nothing.
        SolverUnavailableError: the solver cannot take the program.
        Exception: in strict mode a programming error.
    """
    for place, method in enumerate(methods):
        if place and options.deadline.expired:
            return
        given = program, options, start
        try:
            found = method.run(*given) if run is None else run(method, *given)
            found = _remove_dust(program, found, options)
            check(method, found)
        except PROPAGATED_ERRORS:
            raise
        except BaseException as cause:  # a solver may fail in any way: the next one is tried
            raise_if_strict(cause)
            report(method, cause)
        else:
            yield method, found


def _remove_dust(
    program: Program[C_co], found: object, options: MethodOptions
) -> MethodResult[C_co]:
    """Return what a method found without the entries that are only an interior point's noise."""
    if not isinstance(found, MethodResult):
        raise MethodError(f"it returned {found!r:.60}, and not a MethodResult")
    registry = REGISTRY.get(type(program))
    exchange = None if registry is None else registry.replace_mechanism
    if exchange is None or not isinstance(found.certificate, DesignCertificate):
        return found
    matrix = found.certificate.mechanism.matrix
    if not ((matrix > 0) & (matrix <= DUST_LIMITS[0])).any() or options.deadline.expired:
        return found
    return remove_dust(exchange, program, found, program.compute_allowed_gap(options.tolerance))


def certify(
    program: Program[C_co], matrix: MechanismLike, multipliers: ArrayLike | None = None
) -> Result[C_co]:
    """Certify a given matrix: repair it, recompute its levels, and bound its optimality gap.

    Args:
        program: what the matrix answers.
        matrix: (N, M) a mechanism, up to a solver's noise; for an `envelope` the (M, K) post-processing.
        multipliers: (N,) any rho, best the multipliers of the row sums over the prior; they prove the bound.
            Left out, a few that need no solver are tried.

    Raises:
        MechanismError: the matrix is no mechanism, not even roughly, or has other labels than the program.
        ProgramError: this kind of program has no certificate of a matrix only.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, Prior, certify, design
        >>> program = design(Prior([0.5, 0.5]), PML(0.2), ExpectedLoss([[0, 1], [1, 0]]))
        >>> own = certify(program, [[0.7, 0.3], [0.3, 0.7]])  # leaks log 1.4: mixed until it leaks 0.2
        >>> own.level <= 0.2, own.certificate.verify(), own.certificate.repair.theta > 0
        (True, True, True)
    """
    begin = time.perf_counter()
    question = find_registry(program)
    if isinstance(matrix, Mechanism):
        _check_labels(program, matrix)
    given = matrix.matrix if isinstance(matrix, Mechanism) else matrix
    point = copy_float_array(given, 2, "the matrix", MechanismError)
    rho = (
        None
        if multipliers is None
        else copy_float_array(multipliers, 1, "the multipliers", ProgramError)
    )
    found = question.certify_matrix(program, point, rho)
    found = replace(found, certify_seconds=time.perf_counter() - begin)
    given_matrix: Method[Any, Any, C_co] = Method("given", found.message, lambda *_: found)
    return _make_given_result(program, found, given_matrix, begin)


def certify_solution(
    program: Program[C_co], solution: str | os.PathLike[str] | Mapping[str, float]
) -> Result[C_co]:
    """Certify the solution that any solver found of the file by `program.write_mps`.

    The solver says the columns alone: the multipliers that prove the bound are found by HiGHS here.

    Args:
        program: that wrote the file.
        solution: the file that the solver wrote, or values by the names of the columns. The files are those
            of HiGHS, SCIP, Gurobi, COPT and cuOpt (`.sol`), Xpress (`.slx`), CPLEX (XML), cbc and clp,
            glpsol (`-w FILE`), and what lp_solve prints.

    Raises:
        FileFormatError: the file has no columns, others than the program, too few, or values that violate
            the program or are worth another objective than it states.
        ProgramError: the program is not linear, or of a kind without such files.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, certify_solution, design
        >>> program = design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]]))
        >>> columns = {"mechanism[0,0]": 0.6, "mechanism[1,0]": 0.4, "mechanism[0,1]": 0.4,
        ...            "mechanism[1,1]": 0.6, "output_law[0,0]": 0.5, "output_law[0,1]": 0.5}
        >>> result = certify_solution(program, columns)
        >>> round(result.value, 6), result.status.value, result.certificate.verify()
        (0.4, 'unproved', True)
    """
    from pmlopt.solvers.solution_files import read_solution

    begin = time.perf_counter()
    question = find_registry(program)
    if question.make_cvxpy_method is None:
        raise ProgramError(f"{program!r} is not solved as one linear program: certify its matrix")
    given = {"given": read_solution(solution), "labels": program.row_and_column_labels}
    method = replace(question.make_cvxpy_method(SOLUTION_FILE), reason="columns of a file")
    options = make_options(None, program.tolerance, given)
    start = question.make_start(program, None, NO_DEADLINE)
    try:
        found = method.run(program, options, start)
    except MethodError as cause:
        raise SolverError(f"the solution proves nothing: {cause}") from None
    return _make_given_result(program, found, method, begin)


def _make_given_result(
    program: Program[C_co],
    found: MethodResult[C_co],
    method: Method[Any, Any, C_co],
    begin: float,
) -> Result[C_co]:
    """Make the result of a mechanism that was given, which is optimal where its certificate says so."""
    status = _choose_status(found, program.compute_allowed_gap(program.tolerance), given=True)
    if status is Status.OPTIMAL and has_foreign_parts(program) and found.certificate.failures:
        status = Status.UNPROVED
    return make_result(found, method, status, [], time.perf_counter() - begin)


def check_solver_name(name: object) -> str:
    """Return the name of a solver method as text, for any kind of program.

    Raises:
        SolverUnavailableError: no method of any question, and no installed solver, has the name.
    """
    given = name if isinstance(name, str) else ""
    wanted = given.lower()
    if wanted == "auto":
        return given
    # cvxpy takes a second to load: where it is loaded, its solvers come first, else last
    loaded = "cvxpy" in sys.modules and wanted in list_installed()
    if loaded or is_method_name(wanted) or wanted in list_installed():
        return given
    load_installed_registries()
    if is_method_name(wanted):
        return given
    names = ", ".join(["auto", *sorted({*list_method_names(), *list_installed()})])
    raise SolverUnavailableError(f"the solver {name!r} is not installed; there are: {names}")


def check_limits(
    time_limit: float | None,
    tolerance: float | None,
    solver: str = "auto",
    solver_options: Mapping[str, Any] | None = None,
) -> None:
    """Raise an InputError for a time limit or tolerance that is not positive."""
    options = make_options(time_limit, 1.0 if tolerance is None else tolerance, solver_options)
    _check_accepts_options((), solver, options)


def _check_foreign_claims(
    solver: object,
    program: Program[Any],
    allowed: float,
    method: Method[Any, Any, Any],
    found: MethodResult[Any],
) -> None:
    """Raise a FalseCertificateError where classes or methods of others claim what is false."""
    # they may be wrong: then the certificate decides
    if method is not solver and method.is_own and not has_foreign_parts(program):
        return
    status = _choose_status(found, allowed)
    if status is Status.OPTIMAL and found.certificate.failures:
        failures = "; ".join(map(str, found.certificate.failures))
        raise FalseCertificateError(f"its certificate fails: {failures}")


def _check_accepts_options(
    methods: Iterable[Method[Any, Any, Any]], solver: object, options: MethodOptions
) -> None:
    """Raise a SolverOptionError for solver options without a single solver that accepts them."""
    names = ", ".join(options.solver_options)
    if names and isinstance(solver, str) and solver.lower() == "auto":
        raise SolverOptionError(
            f"the options {names} are of one solver: name it, as in solver='clarabel'"
        )
    for method in methods if names else ():
        if not method.accepts_options:
            raise SolverOptionError(
                f"{method.name} hands no options to a solver, and {names} would have no effect: leave them "
                "out, or name a solver such as clarabel"
            )


def _check_labels(program: Program[Any], given: Mechanism) -> None:
    """Raise an error where a mechanism's labels differ from the program's, also in order."""
    for side, wanted, what in zip(
        (given.inputs, given.outputs),
        program.row_and_column_labels,
        ("inputs", "outputs"),
        strict=True,
    ):
        if wanted is not None and len(side) == len(wanted):
            check_labels_match(
                side, wanted, f"the {what} of the mechanism", f"those of {program!r}"
            )


def _relative_tolerance(program: Program[Any], tolerance: float | None, gap: float | None) -> float:
    """Convert an absolute gap or relative tolerance to a relative tolerance."""
    if gap is not None:
        if tolerance is not None:
            raise ProgramError("`tolerance` and `gap` both limit the gap: give only one")
        return make_options(None, gap).tolerance / (program.scale or 1.0)
    return program.tolerance if tolerance is None else tolerance


def _choose_status(found: MethodResult[Any], allowed: float, *, given: bool = False) -> Status:
    """Return the status of a result: optimal, feasible, or of a given matrix."""
    # a violated limit outranks any gap: value and bound are then of different problems
    if found.certificate.violation > 0:
        return Status.VIOLATED
    if _closes_gap(found.certificate, allowed):
        return Status.OPTIMAL
    ended = found.finished and not found.certificate.is_beyond_bound
    return Status.UNPROVED if ended or given else Status.LIMIT_REACHED


def _closes_gap(certificate: Certificate, allowed: float) -> bool:
    """Return whether the value of a certificate is within a gap of its bound, and no limit is violated."""
    gap = certificate.proved_gap
    # next to a large offset, value and bound are floats that may be a few units apart by rounding only
    near = gap <= allowed + 4 * math.ulp(certificate.value)
    return certificate.violation == 0 and math.isfinite(gap) and near


def _describe_shortcoming(found: MethodResult[Any], allowed: float) -> str:
    """Describe why a result does not count as optimal."""
    certificate = found.certificate
    if certificate.is_beyond_bound:
        return f"its value is {-certificate.gap:.3g} beyond its bound, so that one of both is false"
    return f"certified gap {certificate.gap:.3g} above the tolerance {allowed:.3g}"
