"""From a matrix to the certificate of a design for estimation: repair, recomputed numbers, a bound."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.closed_forms.estimation import least_ldp_estimation_error, least_pml_estimation_error
from pmlopt.errors import PrivacyError
from pmlopt.exact.repair import repair
from pmlopt.mechanism import Mechanism
from pmlopt.privacy import LDP, PML
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.estimation.column_relaxation import Relaxation, relaxed_bound
from pmlopt.programs.estimation.information_bound import information_bound, sensitivities_of
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.result import ClosedForm


def certify_estimation(
    program: EstimationDesign,
    matrix: FloatArray,
    sensitivities: FloatArray | None,
    multipliers: FloatArray | None,
    noise: float,
    relaxation: Relaxation | None = None,
) -> EstimationCertificate:
    """Repair a matrix, recompute its error, and bound that of all others.

    Args:
        program: the design problem.
        matrix: (N, M) a mechanism, roughly.
        sensitivities: (N, L) Z of the bound; left out, that of the matrix.
        multipliers: (N,) rho, best the multipliers of the rows over p; left out, the best for Z.
        relaxation: what bounds the error where not all columns are listed; without it nothing does.
        noise: entries of at most this are taken for zeros; 0 where all columns are within the requirement.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    prior, columns = program.prior, program.columns
    fixed = repair(prior, program.privacy, matrix, noise=noise)
    mechanism = Mechanism(fixed.matrix, prior.labels)
    value = program.utility.value(prior, mechanism)
    z = sensitivities
    if z is None:
        information = information_of(prior.pmf, mechanism.matrix)
        z = sensitivities_of(information, program.workload, program.criterion)
    rho: FloatArray | None
    if columns.complete:
        rho = multipliers if multipliers is not None else best_multipliers(columns.exact, z) / prior.pmf
        bound = information_bound(columns.exact, prior.pmf, program.workload, program.criterion, z, rho)
    else:
        bound, z, rho = _without_list(program, z, relaxation)
    return EstimationCertificate(
        prior=prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=value,
        bound=bound,
        multipliers=rho,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max())},
        repair=fixed,
        criterion=program.criterion,
        workload=program.workload,
        sensitivities=z,
        columns=columns.exact.shape[1] if columns.complete else None,
        products=() if relaxation is None else relaxation.weights,
    )


def _without_list(
    program: EstimationDesign, z: FloatArray, relaxation: Relaxation | None
) -> tuple[float, FloatArray, FloatArray | None]:
    """The bound of a relaxation with its Z and rho; 0 for "A" and nothing for "D" where there is none."""
    nothing = -np.inf if program.criterion == "D" else 0.0
    if relaxation is None:
        return nothing, z, None
    bound = relaxed_bound(
        program.prior.pmf, program.workload, program.criterion, program.columns.cones, relaxation
    )
    return max(bound, nothing), relaxation.sensitivities, relaxation.multipliers


def information_of(p: FloatArray, matrix: FloatArray) -> FloatArray:
    """(N, N) the Fisher information `J = P diag(1/q) P'` of one output, without outputs that never occur."""
    occurring = matrix[:, matrix.max(axis=0) > 0]
    scaled = occurring / np.sqrt(p @ occurring)
    return np.asarray(scaled @ scaled.T)


def best_multipliers(columns: FloatArray, sensitivities: FloatArray) -> FloatArray:
    """(N,) the pi of the least sum with `<pi, lam> >= |Z' lam|^2` for all columns: a linear program."""
    from scipy.optimize import linprog

    heights = ((sensitivities.T @ columns) ** 2).sum(axis=0)
    size = float(heights.max())
    solved = linprog(
        np.ones(len(columns)), A_ub=-columns.T, b_ub=-heights / size, bounds=(None, None), method="highs"
    )
    if solved.x is None:
        return np.full(len(columns), 0.0)
    return np.asarray(solved.x * size)


def known_error(program: EstimationDesign, value: float) -> ClosedForm | None:
    """The least error by formula: frequencies under LDP or PML, where the prior is uniform."""
    p, privacy = program.prior.pmf, program.privacy
    frequencies = program.criterion == "A" and np.array_equal(program.workload, np.eye(len(p)))
    if not frequencies or len(p) < 2 or np.ptp(p) > 1e-15:
        return None
    try:
        if isinstance(privacy, LDP):
            name, known = "least_ldp_estimation_error", least_ldp_estimation_error(len(p), privacy.epsilon)
        elif isinstance(privacy, PML) and privacy.over is None:
            name, known = "least_pml_estimation_error", least_pml_estimation_error(len(p), privacy.epsilon)
        else:
            return None
    except PrivacyError:
        return None
    return ClosedForm(name, known, value - known)
