"""The methods for designs for estimation, in the order in which they are tried."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends import through_cvxpy
from pmlopt.backends.outcome import Options
from pmlopt.errors import MechanismError
from pmlopt.exact.repair import NOISE_THRESHOLD
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.estimation.certifying import certify_estimation, known_error
from pmlopt.programs.estimation.column_generation import IDLE, Generated, generate, generate_unlisted
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.question import Found, Method, MethodError, Question, certified, starts_cold

INTERIOR_POINT = "interior-point"

SEMIDEFINITE = ("clarabel", "scs")
"""The solvers of cvxpy that take the program as it is declared."""


Weigh = Callable[[EstimationDesign, Options], Generated]
"""What weighs columns."""


def _certified(
    weigh: Weigh, program: EstimationDesign, options: Options, _: None
) -> Found[EstimationCertificate]:
    """Solve, and certify the mechanism that the weights make of the columns."""
    begin = time.perf_counter()
    try:
        found = weigh(program, options)
    except np.linalg.LinAlgError as cause:
        raise MethodError(
            f"the outputs that {program.privacy!r} allows tell so little of the letters that no float "
            "holds their information beside 1: allow a larger level"
        ) from cause
    clock = time.perf_counter()
    certificate = certify_estimation(
        program, found.matrix, found.sensitivities, found.multipliers, 0.0, found.relaxation
    )
    return Found(
        certificate=certificate,
        finished=found.finished,
        message=found.message,
        iterations=found.iterations,
        solve_seconds=clock - begin,
        certify_seconds=time.perf_counter() - clock,
        closed_form=known_error(program, certificate.value),
        arrays={"matrix": certificate.mechanism.matrix},
    )


def _generated(program: EstimationDesign, options: Options) -> Generated:
    """The weights of columns that are added as they are needed."""
    return (generate if program.columns.complete else generate_unlisted)(program, options)


def _declared(name: str, program: EstimationDesign, options: Options) -> Generated:
    """The weights that a solver leaves in the program as it is declared."""
    outcome = through_cvxpy.run(program.problem, name.upper(), options, {})
    weights = np.asarray(program.variables["weights"].value, dtype=float)
    if outcome.state != "point" or not np.isfinite(weights).all():
        raise MethodError(f"ended without a point: {outcome.message}")
    used = weights > IDLE
    matrix = program.columns.inner[:, used] * weights[used]
    return Generated(matrix, None, None, outcome.finished, outcome.message, outcome.iterations or 0)


def _certify(
    program: EstimationDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[EstimationCertificate]:
    """Repaired; the bound from the multipliers of the rows over the prior, or the best for the matrix.

    Raises:
        MechanismError: the matrix has other letters than the prior, or is no mechanism even roughly.
    """
    if len(matrix) != program.prior.size:
        raise MechanismError(f"the matrix has {len(matrix)} rows for {program.prior.size} letters")
    certificate = certify_estimation(program, matrix, None, multipliers, NOISE_THRESHOLD)
    return certified(certificate, known_error(program, certificate.value))


def _by_cvxpy(name: str) -> Method[EstimationDesign, None, EstimationCertificate]:
    """A solver for the semidefinite program that is declared."""
    return Method(
        name,
        "asked for by name",
        partial(_certified, partial(_declared, name)),
        lambda program, start: name in SEMIDEFINITE and program.columns.complete,
        automatic=False,
        takes="programs with all their extreme columns, where it solves semidefinite ones",
    )


QUESTION = Question(
    EstimationDesign,
    (
        Method(
            INTERIOR_POINT,
            "extreme columns, weighed as they are needed",
            partial(_certified, _generated),
            lambda program, start: program.columns.complete,
        ),
        Method(
            INTERIOR_POINT,
            "too many extreme columns to list: searched, and bounded by a relaxation",
            partial(_certified, _generated),
            lambda program, start: not program.columns.complete,
        ),
    ),
    starts_cold("a design for estimation starts from its columns: leave out the mechanism"),
    _certify,
    by_cvxpy=_by_cvxpy,
)
"""Designs for estimation: a mechanism is returned with the gap that could be proved."""
