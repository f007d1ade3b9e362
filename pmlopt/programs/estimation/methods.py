"""The methods for designs for estimation, in the order in which they are tried."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends import through_cvxpy
from pmlopt.backends.outcome import Options
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.exact.repair import NOISE_THRESHOLD
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.estimation.certifying import certify_estimation, known_error
from pmlopt.programs.estimation.column_generation import IDLE, Generated, generate, generate_unlisted
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.kind import Found, Kind, Method, MethodError, certified
from pmlopt.result import WarmStart, restart_of

INTERIOR_POINT = "interior-point"

SEMIDEFINITE = ("clarabel", "scs")
"""The solvers of cvxpy that take the program as it is declared."""


@dataclass(frozen=True)
class EstimationMethod(Method[EstimationDesign, None, EstimationCertificate]):
    """The interior point in the weights with generated columns, or a solver for the semidefinite program."""

    name: str
    reason: str

    def run(self, program: EstimationDesign, options: Options, start: None) -> Found[EstimationCertificate]:
        """Solve, and certify the mechanism that the weights make of the columns."""
        begin = time.perf_counter()
        try:
            found = self._solved(program, options)
        except np.linalg.LinAlgError as cause:
            raise MethodError(
                f"the outputs that {program.privacy!r} allows tell so little of the letters that no float "
                "holds their information beside 1: allow a larger level"
            ) from cause
        clock = time.perf_counter()
        try:
            certificate = certify_estimation(
                program, found.matrix, found.sensitivities, found.multipliers, 0.0, found.relaxation
            )
        except MechanismError as cause:
            raise MethodError(str(cause)) from cause
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

    def _solved(self, program: EstimationDesign, options: Options) -> Generated:
        if self.name != INTERIOR_POINT:
            return self._declared(program, options)
        return (generate if program.columns.complete else generate_unlisted)(program, options)

    def _declared(self, program: EstimationDesign, options: Options) -> Generated:
        """The weights that a solver leaves in the program as it is declared."""
        outcome = through_cvxpy.run(program.problem, self.name.upper(), options, {})
        weights = np.asarray(program.variables["weights"].value, dtype=float)
        if outcome.state != "point" or not np.isfinite(weights).all():
            raise MethodError(f"ended without a point: {outcome.message}")
        used = weights > IDLE
        matrix = program.columns.inner[:, used] * weights[used]
        return Generated(matrix, None, None, outcome.finished, outcome.message, outcome.iterations or 0)


class EstimationKind(Kind[EstimationDesign, None, EstimationCertificate]):
    """Designs for estimation: a mechanism is returned with the gap that could be proved."""

    names = (INTERIOR_POINT,)

    def start(self, program: EstimationDesign, warm_start: WarmStart) -> None:
        """Nothing: the columns are those of the requirement.

        Raises:
            ProgramError: a mechanism was given.
        """
        if warm_start is not None and warm_start is not False and restart_of(warm_start) is None:
            raise ProgramError("a design for estimation starts from its columns: leave out the mechanism")

    def automatic(self, program: EstimationDesign, start: None) -> Sequence[EstimationMethod]:
        """The interior point in the weights."""
        if not program.columns.complete:
            reason = "too many extreme columns to list: searched, and bounded by a relaxation"
            return [EstimationMethod(INTERIOR_POINT, reason)]
        count = program.columns.exact.shape[1]
        return [EstimationMethod(INTERIOR_POINT, f"{count:,} extreme columns: weighed as they are needed")]

    def others(self, program: EstimationDesign) -> Sequence[EstimationMethod]:
        """Solvers for semidefinite programs."""
        if not program.columns.complete:
            return []
        installed = {entry.lower() for entry in cp.installed_solvers()}
        return [EstimationMethod(name, "asked for by name") for name in SEMIDEFINITE if name in installed]

    def certify(
        self, program: EstimationDesign, matrix: FloatArray, multipliers: FloatArray | None
    ) -> Found[EstimationCertificate]:
        """Repaired; the bound from the multipliers of the rows over the prior, or the best for the matrix.

        Raises:
            MechanismError: the matrix has other letters than the prior, or is no mechanism even roughly.
        """
        if len(matrix) != program.prior.size:
            raise MechanismError(f"the matrix has {len(matrix)} rows for {program.prior.size} letters")
        certificate = certify_estimation(program, matrix, None, multipliers, NOISE_THRESHOLD)
        return certified(certificate, known_error(program, certificate.value))
