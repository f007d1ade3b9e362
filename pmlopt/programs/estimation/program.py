"""Estimation designs: optimal experimental design over extreme columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding, check_integer
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility.estimation_error import Criterion, EstimationError, compute_error
from pmlopt.programs.design_program import Design
from pmlopt.programs.estimation.bounds import EstimationObjective
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.estimation.columns import DesignColumns, build_design_columns
from pmlopt.programs.program import CvxpyModel, build_problem


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EstimationDesign(Design[EstimationCertificate]):
    """The design of least estimation error: `min tr(W J^-1 W')`, `J = sum_y q[y] lam_y lam_y'`.

    `problem` is a semidefinite program in the law `variables["weights"]` of the output over the columns;
    `constraints["rows"]` states that rows of the mechanism sum to one, and for "A" Schur's complement makes
    `variables["error"]` a bound on `W J^-1 W'`. Extreme columns suffice: J grows when a column is split.

    Attributes:
        columns: all extreme columns of mean one under the prior.
        workload: (L, N) W.
        centered_workload: (L, N) what is designed for: for "A" each row of W less its mean under the prior.
        max_outputs: outputs that the mechanism may have, where that was requested. The bound is that of any
            number; what fewer cost is in the gap.

    Source: [pukelsheim2006optimal, Chapter 9]; [grosse2024extremal, Theorem 1] (extreme columns).

    Examples:
        >>> from pmlopt import EstimationError, LDP, design
        >>> program = design([0.5, 0.3, 0.2], LDP(1.0), EstimationError())
        >>> program.columns.exact.shape, program.problem.is_dcp()
        ((3, 7), True)
    """

    utility: EstimationError
    columns: DesignColumns
    workload: FloatArray
    centered_workload: FloatArray
    max_outputs: int | None = None

    @property
    def criterion(self) -> Criterion:
        """Return the optimality criterion, "A" or "D"."""
        return self.utility.criterion

    @cached_property
    def objective(self) -> EstimationObjective:
        """Return the estimation error as a function of the Fisher information."""
        return EstimationObjective(self.prior.pmf, self.centered_workload, self.criterion)

    def compute_error(self, matrix: MechanismLike) -> float:
        """Compute the estimation error of a mechanism, in the unit of `centered_workload`."""
        prior, mechanism = pair_with_prior(self.prior, matrix)
        return compute_error(prior, mechanism, self.centered_workload, self.criterion)

    @property
    def workload_unit(self) -> float:
        """Return the power of two that scales the workload, at most its largest entry; 1 for "D", and where
        entries are near one.
        """
        exponent = math.frexp(float(np.abs(self.centered_workload).max()))[1] - 1
        return 1.0 if self.criterion == "D" or abs(exponent) < 10 else 2.0**exponent

    def with_unit(self, unit: float) -> EstimationDesign:
        """Rescale the workload by a power of two, without rounding.

        Solvers have absolute tolerances, which are useless for nanoseconds or for shares of 1e-12.
        """
        if unit == 1:
            return self
        workload = self.centered_workload / unit
        declare = partial(_build_model, self.columns.inner, workload, self.criterion)
        return replace(self, build_model=declare, centered_workload=workload)

    @property
    def mechanism(self) -> cp.Expression:
        """Return the (N, K) weighted columns as a cvxpy expression."""
        weights = cp.reshape(self.variables["weights"], (1, self.columns.inner.shape[1]), order="C")
        return cp.multiply(self.columns.inner, np.ones((self.prior.size, 1)) @ weights)

    @cached_property
    def scale(self) -> float:
        """Return the tolerance unit: for "A" the error of equally weighted columns, for "D" N nats."""
        if self.criterion == "D":
            return float(self.prior.size)
        axes, sizes, _ = np.linalg.svd(self.columns.exact, full_matrices=False)
        # roots of K J, which keeps half the digits
        sizes = np.maximum(sizes, np.finfo(float).eps * sizes[0])
        return float(
            self.columns.exact.shape[1] * (((self.centered_workload @ axes) / sizes) ** 2).sum()
        )

    @property
    def rounding_gap(self) -> float:
        """Return the gap that rounding and the columns' safety margin may leave."""
        exact = self.columns.exact
        inner = self.columns.inner
        relative_error = float(np.abs(exact - inner).max() / max(np.abs(exact - 1).max(), 1e-300))
        return self.scale * (
            8 * min(relative_error, 1e-6) + bound_sum_rounding(self.prior.size**2, 64.0)
        )


def estimation_design(
    prior: Prior, privacy: Requirement, utility: EstimationError, outputs: object
) -> EstimationDesign:
    """Build an optimal experimental design for estimating frequencies; see `design`."""
    if outputs is not None and not isinstance(outputs, int):
        raise ProgramError(
            "which outputs there are is part of the answer of a design for estimation: give the most that "
            "there may be, or leave them out"
        )
    max_outputs = (
        None if outputs is None else check_integer(outputs, "the number of outputs", ProgramError)
    )
    centred = utility.build_combinations(prior)
    columns = build_design_columns(prior, privacy)
    rank = int(np.linalg.matrix_rank(columns.exact))
    if rank < prior.size:
        raise ProgramError(
            f"under {privacy} all mechanisms together have rank {rank} for {prior.size} letters, so that the "
            "frequencies cannot be estimated from any: allow more leakage"
        )
    return EstimationDesign(
        build_model=partial(_build_model, columns.inner, centred, utility.criterion),
        prior=prior,
        privacy=privacy,
        utility=utility,
        outputs=None,
        columns=columns,
        workload=utility.build_rows(prior).matrix,
        centered_workload=centred,
        max_outputs=max_outputs,
    )


def _build_model(columns: FloatArray, workload: FloatArray, criterion: Criterion) -> CvxpyModel:
    """Build the cvxpy model of an estimation design over given columns, for a centred workload."""
    n, k = columns.shape
    weights = cp.Variable(k, nonneg=True, name="weights")
    squares = (columns[:, None, :] * columns[None, :, :]).reshape(n * n, k)
    information = cp.reshape(squares @ weights, (n, n), order="C")
    rows = columns @ weights == 1
    if criterion == "D":
        objective = cp.Minimize(-cp.log_det(information))
        return CvxpyModel(
            build_problem(objective, {"rows": rows}), {"weights": weights}, {"rows": rows}
        )
    error = cp.Variable((len(workload), len(workload)), symmetric=True, name="error")
    block = cp.Variable((n + len(workload), n + len(workload)), PSD=True, name="block")
    constraints = {
        "rows": rows,
        "information": block[:n, :n] == information,
        "workload": block[n:, :n] == workload,
        "error": block[n:, n:] == error,
    }
    objective = cp.Minimize(cp.trace(error))
    variables = {"weights": weights, "error": error, "block": block}
    return CvxpyModel(build_problem(objective, constraints), variables, constraints)
