"""The methods for designs for estimation, in the order in which they are tried."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.loaded_later import optimize
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.model.closed_forms.catalogue import forms, meets
from pmlopt.model.closed_forms.estimation import least_ldp_estimation_error, least_pml_estimation_error
from pmlopt.model.privacy import LDP, PML
from pmlopt.model.utility import EstimationError
from pmlopt.programs.certificate import ClosedForm
from pmlopt.programs.estimation.bounds import Proof
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.estimation.column_generation import IDLE, Generated, generate
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.exact.repair import NOISE_THRESHOLD, repair
from pmlopt.programs.program import Found, Method, MethodError, Question, certified, starts_cold
from pmlopt.solvers import through_cvxpy
from pmlopt.solvers.outcome import Options, one_thread


def certify_estimation(
    program: EstimationDesign, matrix: FloatArray, proof: Proof | None, noise: float
) -> EstimationCertificate:
    """Repair a matrix, recompute its error, and bound that of all others.

    Args:
        program: the design problem.
        matrix: (N, M) a mechanism, roughly.
        proof: what bounds the error; left out, the Z of the matrix with the best multipliers for it where
            all columns are listed, and nothing where they are not.
        noise: entries of at most this are taken for zeros; 0 where all columns are within the requirement.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    prior, columns, objective = program.prior, program.columns, program.objective
    fixed = repair(prior, program.privacy, matrix, noise=noise)
    mechanism = Mechanism(fixed.matrix, prior.labels)
    value = program.error_of(mechanism)
    z = None if proof is None else proof.sensitivities
    if z is None:
        z = objective.sensitivities(information_of(prior.pmf, mechanism.matrix))
        if columns.complete:
            proof = Proof(z, best_multipliers(columns.exact, z) / prior.pmf)
    return EstimationCertificate(
        prior=prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=value,
        bound=objective.nothing if proof is None else objective.proved(columns, proof),
        multipliers=None if proof is None else proof.multipliers,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max())},
        repair=fixed.change,
        criterion=program.criterion,
        workload=program.centred,
        sensitivities=z,
        columns=columns.exact.shape[1] if columns.complete else None,
        products=() if proof is None else proof.products,
    )


def information_of(p: FloatArray, matrix: FloatArray) -> FloatArray:
    """Compute (N, N) the Fisher information `J = P diag(1/q) P'` of one output, over outputs that occur."""
    occurring = matrix[:, matrix.max(axis=0) > 0]
    scaled = occurring / np.sqrt(p @ occurring)
    return np.asarray(scaled @ scaled.T)


def best_multipliers(columns: FloatArray, sensitivities: FloatArray) -> FloatArray:
    """Solve for (N,) the pi of the least sum with `<pi, lam> >= |Z' lam|^2` for all columns."""
    heights = ((sensitivities.T @ columns) ** 2).sum(axis=0)
    size = float(heights.max())
    solved = optimize.linprog(
        np.ones(len(columns)), A_ub=-columns.T, b_ub=-heights / size, bounds=(None, None), method="highs"
    )
    return np.zeros(len(columns)) if solved.x is None else np.asarray(solved.x * size)


def known_error(program: EstimationDesign, value: float) -> ClosedForm | None:
    """Return the least error by formula: frequencies under LDP or PML, where the prior is uniform."""
    p, privacy = program.prior.pmf, program.privacy
    every = EstimationError().combinations(program.prior)
    frequencies = program.criterion == "A" and np.array_equal(program.centred, every)
    formula = {LDP: least_ldp_estimation_error, PML: least_pml_estimation_error}.get(type(privacy))
    if formula is None or not frequencies or len(p) < 2 or np.ptp(p) > 1e-15:
        return None
    assert isinstance(privacy, LDP | PML)
    if isinstance(privacy, PML) and privacy.over is not None:
        return None
    try:
        known = formula(len(p), privacy.epsilon)
    except PrivacyError:
        return None
    return ClosedForm(formula.__name__, known, value - known)


SEMIDEFINITE = ("clarabel", "scs")
"""The solvers of cvxpy that take the program as it is declared."""


Weigh = Callable[[EstimationDesign, Options], Generated]
"""What weighs columns."""


def _certified(
    weigh: Weigh, program: EstimationDesign, options: Options, _: None
) -> Found[EstimationCertificate]:
    """Solve, and certify the mechanism of the weighted columns."""
    begin = time.perf_counter()
    try:
        unit = program.unit
        with one_thread():  # of many decompositions of small matrices
            found = weigh(program.in_unit(unit), options).times(unit)
    except np.linalg.LinAlgError as cause:
        raise MethodError(
            f"the outputs that {program.privacy!r} allows tell so little of the letters that no float "
            "holds their information beside 1: allow a larger level"
        ) from cause
    clock = time.perf_counter()
    certificate = certify_estimation(program, found.matrix, found.proof, 0.0)
    return Found(
        certificate=certificate,
        finished=found.finished,
        message=found.message,
        detail="",
        iterations=found.iterations,
        solve_seconds=clock - begin,
        certify_seconds=time.perf_counter() - clock,
        closed_form=known_error(program, certificate.value),
        arrays={"matrix": certificate.mechanism.matrix},
    )


def _declared(name: str, program: EstimationDesign, options: Options) -> Generated:
    """Solve the declared program by a solver of cvxpy, and return the weighted columns."""
    outcome = through_cvxpy.run(program.problem, name.upper(), options, {})
    weights = np.asarray(program.variables["weights"].value, dtype=float)
    if outcome.state != "point" or not np.isfinite(weights).all():
        raise MethodError(f"ended without a point: {outcome.message}")
    used = weights > IDLE
    matrix = program.columns.inner[:, used] * weights[used]
    return Generated(matrix, None, outcome.finished, outcome.message, outcome.iterations or 0)


def _certify(
    program: EstimationDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[EstimationCertificate]:
    """Repair a matrix, and bound the error by given multipliers, or by the best for the matrix.

    Raises:
        MechanismError: the matrix has other letters than the prior, or is no mechanism even roughly.
    """
    if len(matrix) != program.prior.size:
        raise MechanismError(f"the matrix has {len(matrix)} rows for {program.prior.size} letters")
    proof = None
    if multipliers is not None and program.columns.complete:
        information = information_of(program.prior.pmf, matrix)
        proof = Proof(program.objective.sensitivities(information), multipliers)
    certificate = certify_estimation(program, matrix, proof, NOISE_THRESHOLD)
    return certified(certificate, known_error(program, certificate.value))


def _find_first(program: EstimationDesign) -> Found[EstimationCertificate]:
    """Certify the best of the closed forms, or of the extreme columns in equal shares.

    Raises:
        MethodError: none of these reveals enough for an estimate.
    """
    prior, privacy = program.prior, program.privacy
    known = [form.matrix for _, form in forms(prior, privacy) if meets(prior, privacy, form.matrix)]
    columns = program.columns.inner
    weights = optimize.nnls(columns, np.ones(prior.size))[0]
    if np.abs(columns @ weights - 1).max() <= NOISE_THRESHOLD:
        known.append(columns[:, weights > 0] * weights[weights > 0])
    if program.most is not None:
        known = [matrix for matrix in known if matrix.shape[1] <= program.most]
    errors = [program.error_of(matrix) for matrix in known] or [math.inf]
    if not min(errors) < math.inf:
        raise MethodError("no mechanism by formula reveals enough for an estimate")
    best = known[int(np.argmin(errors))]
    certificate = certify_estimation(program, best, None, 0.0)
    return Found(certificate=certificate, finished=False, message="a mechanism by formula")


def _by_cvxpy(name: str) -> Method[EstimationDesign, None, EstimationCertificate]:
    """Make the method of a solver for the semidefinite program that is declared."""
    return Method(
        name,
        "asked for by name",
        partial(_certified, partial(_declared, name)),
        lambda program, start: name in SEMIDEFINITE and program.columns.complete,
        automatic=False,
        takes="programs with all their extreme columns, where it solves semidefinite ones",
        takes_options=True,
    )


QUESTION = Question(
    EstimationDesign,
    (
        Method(
            "interior-point",
            "extreme columns, weighed as they are needed; too many to list are searched, and bounded by a "
            "relaxation",
            partial(_certified, generate),
        ),
    ),
    starts_cold("a design for estimation starts from its columns: leave out the mechanism"),
    _certify,
    by_cvxpy=_by_cvxpy,
    first=_find_first,
)
"""Designs for estimation: a mechanism is returned with the gap that could be proved."""
