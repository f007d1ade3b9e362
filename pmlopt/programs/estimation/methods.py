"""The methods for designs for estimation, in the order in which they are tried."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.model.closed_forms.catalogue import build_closed_forms, is_within_limits
from pmlopt.model.closed_forms.estimation import (
    least_ldp_estimation_error,
    least_pml_estimation_error,
)
from pmlopt.model.privacy import LDP, PML
from pmlopt.model.utility import EstimationError
from pmlopt.programs.certificate import ClosedForm
from pmlopt.programs.estimation.bounds import ErrorBoundProof
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.estimation.column_generation import (
    IDLE_ENTRY_ATOL,
    GenerationResult,
    generate_columns,
)
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.exact.rounding import ENTRY_NOISE_ATOL, repair_matrix
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    reject_warm_start,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.solvers import cvxpy_interface
from pmlopt.solvers.solver_result import MethodOptions, limit_threads


def certify_estimation(
    program: EstimationDesign, matrix: FloatArray, proof: ErrorBoundProof | None, noise: float
) -> EstimationCertificate:
    """Repair a matrix, recompute its estimation error, and certify a lower bound on all others.

    Args:
        program: the design problem.
        matrix: (N, M) a mechanism, roughly.
        proof: what bounds the error; left out, the Z of the matrix with the best multipliers for it where
            all columns are listed, and nothing where they are not.
        noise: entries of at most this are taken for zeros; 0 where all columns are within the requirement.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    prior = program.prior
    columns = program.columns
    objective = program.objective
    fixed = repair_matrix(prior, program.privacy, matrix, noise=noise)
    mechanism = Mechanism(fixed.matrix, prior.labels)
    value = program.compute_error(mechanism)
    z = None if proof is None else proof.sensitivities
    if z is None and not math.isfinite(value):  # a constant, say: the error has no slope there
        z = np.zeros_like(program.centered_workload.T)
    elif z is None:
        z = objective.compute_sensitivities(compute_information(prior.pmf, mechanism.matrix))
        if columns.is_complete:
            proof = ErrorBoundProof(z, solve_for_multipliers(columns.exact, z) / prior.pmf)
    return EstimationCertificate(
        prior=prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=value,
        bound=objective.trivial_bound if proof is None else objective.compute_bound(columns, proof),
        multipliers=None if proof is None else proof.multipliers,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max())},
        repair=fixed.to_record,
        criterion=program.criterion,
        workload=program.centered_workload,
        sensitivities=z,
        columns=columns.exact.shape[1] if columns.is_complete else None,
        products=() if proof is None else proof.products,
    )


def compute_information(p: FloatArray, matrix: FloatArray) -> FloatArray:
    """Compute the (N, N) Fisher information `J = P diag(1/q) P'` of one output."""
    # outputs that never occur carry no information, and would divide by zero
    occurring = matrix[:, matrix.max(axis=0) > 0]
    # J as a Gram matrix: positive semidefinite even after rounding
    scaled = occurring / np.sqrt(p @ occurring)
    return scaled @ scaled.T


def solve_for_multipliers(columns: FloatArray, sensitivities: FloatArray) -> FloatArray:
    """Solve an LP for the (N,) multipliers pi of least sum with `<pi, lam> >= |Z' lam|^2` for all columns."""
    heights = ((sensitivities.T @ columns) ** 2).sum(axis=0)
    # heights of size one for the absolute tolerances of the solver
    size = float(heights.max()) or 1.0
    solved = optimize.linprog(
        np.ones(len(columns)),
        A_ub=-columns.T,
        b_ub=-heights / size,
        bounds=(None, None),
        method="highs",
    )
    return np.zeros(len(columns)) if solved.x is None else np.asarray(solved.x * size)


def replace_mechanism(
    program: EstimationDesign, certificate: EstimationCertificate, matrix: FloatArray
) -> EstimationCertificate:
    """Return a certificate with another mechanism: its error, and the same proof."""
    mechanism = Mechanism(matrix, program.prior.labels, certificate.mechanism.outputs)
    return replace(certificate, mechanism=mechanism, value=program.compute_error(mechanism))


def find_known_error(program: EstimationDesign, value: float) -> ClosedForm | None:
    """Return the closed-form least error of frequencies under a uniform prior; None for other cases."""
    p = program.prior.pmf
    privacy = program.privacy
    every = EstimationError().build_combinations(program.prior)
    # the formulas are for all frequencies with equal weight
    frequencies = program.criterion == "A" and np.array_equal(program.centered_workload, every)
    formula = {LDP: least_ldp_estimation_error, PML: least_pml_estimation_error}.get(type(privacy))
    if formula is None or not frequencies or len(p) < 2 or np.ptp(p) > 1e-15:
        return None
    # the formula is for the prior itself, not for a set of them
    if getattr(privacy, "over", None) is not None:
        return None
    try:
        known = formula(len(p), max(privacy.limits.values()))
    except PrivacyError:
        return None
    return ClosedForm(formula.__name__, known, value - known)


SEMIDEFINITE_SOLVERS = ("clarabel", "scs")
"""The solvers of cvxpy that take the program as it is declared."""


WeighColumns = Callable[[EstimationDesign, MethodOptions], GenerationResult]
"""What weighs columns."""


def _solve_and_certify(
    weigh: WeighColumns, program: EstimationDesign, options: MethodOptions, _: None
) -> MethodResult[EstimationCertificate]:
    """Run a solver for the columns' weights, and certify the resulting mechanism."""
    begin = time.perf_counter()
    try:
        if not program.centered_workload.any():
            weigh = _release_nothing
        unit = program.workload_unit
        with limit_threads():  # of many decompositions of small matrices
            found = weigh(program.with_unit(unit), options).scaled_by(unit)
    except np.linalg.LinAlgError as cause:
        raise MethodError(
            f"the outputs that {program.privacy!r} allows reveal so little about the letters that "
            "their information is below the precision of floats: allow a larger level"
        ) from cause
    solved_at = time.perf_counter()
    certificate = certify_estimation(program, found.matrix, found.proof, 0.0)
    return MethodResult(
        certificate=certificate,
        finished=found.finished,
        message=found.message,
        detail="",
        iterations=found.iterations,
        solve_seconds=solved_at - begin,
        certify_seconds=time.perf_counter() - solved_at,
        closed_form=find_known_error(program, certificate.value),
        arrays={"matrix": certificate.mechanism.matrix},
    )


def _release_nothing(program: EstimationDesign, _: MethodOptions) -> GenerationResult:
    """Release a constant, where all is known without a release: one letter, or sums of all frequencies."""
    return GenerationResult(np.ones((program.prior.size, 1)), None, True, "all is known", 0)


def _solve_declared(
    name: str, program: EstimationDesign, options: MethodOptions
) -> GenerationResult:
    """Solve the declared semidefinite program by a cvxpy solver, and return the weighted columns."""
    outcome = cvxpy_interface.solve_problem(program.problem, name.upper(), options, {})
    weights = np.asarray(program.variables["weights"].value, dtype=float)
    if outcome.state != "point" or not np.isfinite(weights).all():
        raise MethodError(f"ended without a point: {outcome.message}")
    # a solver leaves tiny weights on all columns: outputs that next to never occur
    used = weights > IDLE_ENTRY_ATOL
    matrix = program.columns.inner[:, used] * weights[used]
    return GenerationResult(
        matrix, None, outcome.finished, outcome.message, outcome.iterations or 0
    )


def _certify_given_matrix(
    program: EstimationDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[EstimationCertificate]:
    """Repair a given matrix, and bound the error by given or best multipliers.

    Raises:
        MechanismError: the matrix has other letters than the prior, or is no mechanism even roughly.
    """
    if len(matrix) != program.prior.size:
        raise MechanismError(f"the matrix has {len(matrix)} rows for {program.prior.size} letters")
    proof = None
    if multipliers is not None and program.columns.is_complete:
        information = compute_information(program.prior.pmf, matrix)
        proof = ErrorBoundProof(program.objective.compute_sensitivities(information), multipliers)
    certificate = certify_estimation(program, matrix, proof, ENTRY_NOISE_ATOL)
    return wrap_given_certificate(certificate, find_known_error(program, certificate.value))


def _find_first_feasible(program: EstimationDesign) -> MethodResult[EstimationCertificate]:
    """Certify the better of the closed forms and of the extreme columns with equal weights.

    Raises:
        MethodError: none of these reveals enough for an estimate.
    """
    prior = program.prior
    privacy = program.privacy
    known = [
        form.matrix
        for _, form in build_closed_forms(prior, privacy)
        if is_within_limits(prior, privacy, form.matrix)
    ]
    columns = program.columns.inner
    # weights of extreme columns that make the constant: a mechanism without a solver
    weights = optimize.nnls(columns, np.ones(prior.size))[0]
    if np.abs(columns @ weights - 1).max() <= ENTRY_NOISE_ATOL:
        known.append(columns[:, weights > 0] * weights[weights > 0])
    if program.max_outputs is not None:
        known = [matrix for matrix in known if matrix.shape[1] <= program.max_outputs]
    errors = [program.compute_error(matrix) for matrix in known] or [math.inf]
    if not min(errors) < math.inf:
        raise MethodError("no mechanism by formula reveals enough for an estimate")
    best = known[int(np.argmin(errors))]
    try:
        with np.errstate(over="raise"):  # of errors that are the noise of a singular information
            certificate = certify_estimation(program, best, None, 0.0)
    except FloatingPointError as cause:
        raise MethodError("no mechanism by formula reveals enough for an estimate") from cause
    return MethodResult(certificate=certificate, finished=False, message="a mechanism by formula")


def _make_cvxpy_method(name: str) -> Method[EstimationDesign, None, EstimationCertificate]:
    """Build the method that solves the declared semidefinite program by a named cvxpy solver."""
    return Method(
        name,
        "chosen by name",
        partial(_solve_and_certify, partial(_solve_declared, name)),
        lambda program, start: name in SEMIDEFINITE_SOLVERS and program.columns.is_complete,
        automatic=False,
        requirements_text="programs with all their extreme columns, where it solves semidefinite ones",
        accepts_options=True,
    )


METHODS = MethodRegistry(
    EstimationDesign,
    (
        Method(
            "interior-point",
            "extreme columns, weighed as they are needed; too many to list are searched, and bounded by a "
            "relaxation",
            partial(_solve_and_certify, generate_columns),
        ),
    ),
    reject_warm_start("a design for estimation starts from its columns: leave out the mechanism"),
    _certify_given_matrix,
    make_cvxpy_method=_make_cvxpy_method,
    find_first_result=_find_first_feasible,
    replace_mechanism=replace_mechanism,
)
"""Designs for estimation: a mechanism is returned with the gap that could be proved."""

register_question(METHODS)
