"""The methods for designs with a sub-convex utility, in the order in which they are tried."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.data.mechanism import Mechanism, pair_with_prior
from pmlopt.errors import InputError
from pmlopt.model.closed_forms.catalogue import build_closed_forms, is_within_limits
from pmlopt.programs.certificate import WarmStart, WarmStartLike, get_mechanism
from pmlopt.programs.exact.rounding import polish_and_repair
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    make_method_result,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.programs.subconvex.certificate import ColumnCertificate, replace_mechanism
from pmlopt.programs.subconvex.column_generation import generate_columns, reduce_outputs
from pmlopt.programs.subconvex.cost_methods import COST_METHODS as COST_METHODS
from pmlopt.programs.subconvex.optimal_forms import find_optimal_form
from pmlopt.programs.subconvex.prior_cuts import METHOD_NAME, cut_by_worst_priors, has_curved_set
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.solvers import cvxpy_interface
from pmlopt.solvers.parametric_program import MasterProblem
from pmlopt.solvers.solver_result import (
    NO_DEADLINE,
    Deadline,
    MethodOptions,
    PrimalDualPoint,
    SolverResult,
)


def certify_columns(
    program: ColumnDesign,
    matrix: FloatArray,
    multipliers: FloatArray | None,
    allowed: float,
    proved: float | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> ColumnCertificate:
    """Repair a matrix of allowed columns, recompute its utility, and certify a bound on the optimum.

    Args:
        program: the design problem.
        matrix: (N, M) weights times columns.
        multipliers: (N,) rho, best the multipliers of the rows over p.
        allowed: the gap at which a bound need not be sharper.
        proved: the bound that a search has proved already with these multipliers.
        deadline: of the searches.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    if program.outputs is not None:  # the outputs that the optimum does not need never occur
        matrix = np.pad(matrix, ((0, 0), (0, len(program.outputs) - matrix.shape[1])))
    fixed = polish_and_repair(program.prior, program.privacy, matrix, noise=0.0)
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    value = program.utility.value(program.prior, mechanism)
    closed = program.space.closed_bound[1]
    # any rho proves a bound, so that a failed dual costs sharpness, not correctness
    rho = closed if multipliers is None else multipliers
    # 5 % of the allowance is for what rounding adds later
    bound, pricing = program.space.compute_bound(rho, value + 0.95 * allowed, proved, deadline)
    # poor multipliers can be worse than those in closed form
    if bound > value + allowed:
        relaxed, name = program.space.compute_bound(closed, np.inf, None, deadline)
        if relaxed < bound:
            bound = relaxed
            pricing = name
            rho = closed
    # no mechanism exceeds releasing the secret: this costs nothing to check
    if program.space.full_release_bound < bound:
        bound = program.space.full_release_bound
        pricing = "everything"
        rho = program.space.release_multipliers
    return ColumnCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=value,
        bound=bound,
        multipliers=rho,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max())},
        repair=fixed.to_record,
        utility=program.utility.name,
        pricing=pricing,
        laws=program.space.laws,
    )


def certify_closed_form(
    program: ColumnDesign, allowed: float, deadline: Deadline
) -> ColumnCertificate | None:
    """Certify a closed form as optimal up to the allowed gap; None where that fails.

    Its multipliers price its own columns at what they are worth, where a solver's price columns that were
    given room; that shows where the largest entries of columns are a million times the others.
    """
    p = program.prior.pmf
    for _, form in build_closed_forms(program.prior, program.privacy):
        if not is_within_limits(program.prior, program.privacy, form.matrix):
            continue
        # outputs of probability zero have no column: dividing by them would give nan
        law = p @ form.matrix
        columns = form.matrix[:, law > 0] / law[law > 0]
        # complementary slackness: columns in use have reduced value zero, N unknowns in rho
        rho = np.linalg.lstsq(columns.T, program.space.column_values(columns), rcond=None)[0] / p
        certificate = certify_columns(program, form.matrix, rho, allowed, deadline=deadline)
        if certificate.proved_gap <= allowed:
            return certificate
    return None


SolveColumns = Callable[[ColumnDesign, MethodOptions, bool], SolverResult]
"""What solves a program, from a mechanism or not."""


def _solve_and_certify(
    solve: SolveColumns, given: ColumnDesign, options: MethodOptions, program: ColumnDesign
) -> MethodResult[ColumnCertificate]:
    """Run a solver for the columns' weights, and certify the resulting mechanism."""
    outcome = solve(program, options, program is not given)
    if outcome.point is None:
        raise MethodError(outcome.message)
    began = time.perf_counter()
    allowed = program.compute_allowed_gap(options.tolerance)
    found = outcome.point
    certificate = certify_columns(
        program, found.matrix, found.multipliers, allowed, found.dual_bound, options.deadline
    )
    formula = (
        certify_closed_form(program, allowed, options.deadline)
        if certificate.proved_gap > allowed
        else None
    )
    best = formula or certificate
    return make_method_result(
        outcome,
        best,
        time.perf_counter() - began,
        detail="a closed form closed the gap that the solver left" if formula else "",
        closed_form=find_optimal_form(program, best, 1e-10),
        arrays={"matrix": best.mechanism.matrix},
    )


def _cut_and_certify(
    given: ColumnDesign, options: MethodOptions, _: ColumnDesign
) -> MethodResult[ColumnCertificate]:
    """Solve by cutting planes on the worst priors of a set, and certify over the whole set."""
    program, outcome = cut_by_worst_priors(given, options)
    return _solve_and_certify(lambda *_: outcome, program, options, program)


def _solve_declared(
    name: str, program: ColumnDesign, options: MethodOptions, _: bool
) -> SolverResult:
    """Solve the declared linear program over columns by a cvxpy solver."""
    # the simplex reads columns directly, and ends at a vertex: few outputs
    if name == "highs":
        return _solve_by_simplex(program, options)
    outcome = cvxpy_interface.solve_declared(program.problem, name, options)
    return replace(outcome, point=_read_point(program)) if outcome.state == "point" else outcome


def _solve_by_simplex(program: ColumnDesign, options: MethodOptions) -> SolverResult:
    """Solve the linear program over columns with HiGHS directly."""
    begin = time.perf_counter()
    master = MasterProblem(program.lifts, program.column_values, program.scale)
    compiled = time.perf_counter()
    try:
        _, weights, duals = master.solve(options.deadline)
        master.release()
        found = _reduce_to_point(program, weights, duals)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        raise MethodError(str(cause)) from cause
    return SolverResult.from_point(found, "Optimal", True, master.iterations, begin, compiled)


def _reduce_to_point(
    program: ColumnDesign, weights: FloatArray, duals: FloatArray
) -> PrimalDualPoint:
    """Build a mechanism with few outputs from optimal weights and multipliers."""
    lifts, kept = reduce_outputs(program.lifts, program.column_values, duals, weights)
    return PrimalDualPoint(lifts * kept, duals / program.prior.pmf)


def _read_point(program: ColumnDesign) -> PrimalDualPoint:
    """Read the mechanism from the weights in the solved cvxpy problem."""
    weights = np.asarray(program.variables["weights"].value)
    duals = program.constraints["rows"].dual_value
    # interior points that diverge leave nan; repair would pass them on
    if not (np.isfinite(weights).all() and np.isfinite(0.0 if duals is None else duals).all()):
        raise MethodError("ended at a point that has numbers which are none")
    if duals is None:
        return PrimalDualPoint(program.lifts * weights, None)
    # an interior point mixes all optimal columns; a vertex has at most N of them
    return _reduce_to_point(program, weights, np.asarray(duals))


def _make_start(program: ColumnDesign, warm_start: WarmStartLike, _: Deadline) -> ColumnDesign:
    """Add the columns of a given mechanism to the program."""
    if warm_start is None or warm_start is False:
        return program
    given = warm_start.matrix if isinstance(warm_start, WarmStart) else get_mechanism(warm_start)
    try:
        if given is None:
            return program
        return program.with_mechanism(pair_with_prior(program.prior, given)[1])
    except InputError:
        # a cached start that does not fit is no error of the user, a mechanism given is
        if isinstance(warm_start, WarmStart):
            return program
        raise


def _certify_given_matrix(
    program: ColumnDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[ColumnCertificate]:
    """Repair a given matrix, and bound the optimum by given or closed-form multipliers."""
    certificate = certify_columns(program, matrix, multipliers, 0.0)
    return wrap_given_certificate(certificate, find_optimal_form(program, certificate, 1e-10))


def _find_first_feasible(program: ColumnDesign) -> MethodResult[ColumnCertificate]:
    """Certify the best feasible closed form, or the repaired full release."""
    prior = program.prior
    privacy = program.privacy
    known = [
        np.ones((prior.size, 1)),
        polish_and_repair(prior, privacy, np.eye(prior.size), 0.0).matrix,
    ]
    known += [
        form.matrix
        for _, form in build_closed_forms(prior, privacy)
        if is_within_limits(prior, privacy, form.matrix)
    ]
    if program.outputs is not None:
        # a mechanism with more outputs than labels cannot be named
        known = [matrix for matrix in known if matrix.shape[1] <= len(program.outputs)]
    best = max(known, key=lambda matrix: program.utility.value(prior, matrix))
    # an expired deadline: the bound is that of the closed forms, without a search
    certificate = certify_columns(program, best, None, math.inf, deadline=Deadline.after(0.0))
    return MethodResult(certificate=certificate, finished=False, message="a mechanism by formula")


def _make_full_method(
    name: str, reason: str = "chosen by name", automatic: bool = False
) -> Method[ColumnDesign, ColumnDesign, ColumnCertificate]:
    """Build the method of an LP solver on the complete list of extreme columns."""
    return Method(
        name,
        reason,
        partial(_solve_and_certify, partial(_solve_declared, name)),
        lambda program, _: program.has_all_columns,
        automatic,
        requirements_text="programs that declare all extreme columns, and cannot generate them as "
        "`auto` does; "
        "program.with_every_column() declares them where they are few enough",
        accepts_options=name != "highs",  # its columns are pmlopt's own linear program
    )


METHODS = MethodRegistry(
    ColumnDesign,
    (
        Method(
            METHOD_NAME,
            "over a set of priors that is no polytope: its worst priors come in as they cut",
            _cut_and_certify,
            lambda program, _: has_curved_set(program),
            requirements_text="designs over a set of priors that is no polytope, on a few letters",
        ),
        _make_full_method(
            "highs", "all extreme columns are declared: HiGHS simplex ends at a vertex", True
        ),
        Method(
            "column-generation",
            "the simplex did not end, or extreme columns are too many: columns as they are needed",
            partial(_solve_and_certify, generate_columns),
        ),
        _make_full_method("highs-ipm"),
    ),
    _make_start,
    _certify_given_matrix,
    make_cvxpy_method=_make_full_method,
    find_first_result=_find_first_feasible,
    replace_mechanism=replace_mechanism,
)
"""Designs with a sub-convex utility: the best mechanism found is returned with its gap."""

register_question(METHODS)
