"""The builder of least epsilons: targets that no mechanism reaches are refused before any search."""

from __future__ import annotations

import math

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.prior import SymmetricPrior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import LinearUtility, Utility
from pmlopt.programs.least_leakage.certificate import find_usable_pairs
from pmlopt.programs.least_leakage.declaring import declare_at_level
from pmlopt.programs.least_leakage.epsilon_program import LeastEpsilon
from pmlopt.programs.least_leakage.epsilon_search import search_epsilon
from pmlopt.programs.program import CvxpyModel, Outputs
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions


def least_epsilon(
    prior: Prior | SymmetricPrior,
    privacy: Requirement,
    utility: Utility,
    reach: float,
    outputs: Outputs,
) -> LeastEpsilon:
    """Build the search for the smallest level at which a utility target is reached; see `least_leakage`.

    Raises:
        ProgramError: no mechanism reaches the target, or only one of an infinite level.
        PriorError, PrivacyError, UtilityError: a design cannot be declared, as in `design`.
    """
    letters = (
        prior.listed()
        if isinstance(prior, SymmetricPrior) and not _is_linear_utility(utility)
        else prior
    )
    program = LeastEpsilon(
        build_model=lambda: _build_parametric_model(program),
        prior=letters,
        privacy=privacy if isinstance(letters, SymmetricPrior) else privacy.for_prior(letters),
        utility=utility,
        reach=reach,
        outputs=outputs,
        epsilon=cp.Parameter(nonneg=True, value=1.0, name="epsilon"),
    )
    program.at(1.0)  # what cannot be declared is refused now
    _check_target_reachable(program)
    return program


def _is_linear_utility(utility: Utility) -> bool:
    """Return whether a utility is linear, so that the problem can be solved on orbits of pairs."""
    return isinstance(utility, LinearUtility)


def _check_target_reachable(program: LeastEpsilon) -> None:
    """Raise a ProgramError where no mechanism of finite level reaches the target."""
    sign = 1.0 if program.utility.maximised else -1.0
    room = sign * (program.best_value - program.reach)
    # The share of a utility by which a target may be beyond the best there is: it was computed in floats.
    rounding = 1e-13 * program.unit
    best = "largest" if program.utility.maximised else "smallest"
    if room < -rounding:
        raise ProgramError(
            f"no mechanism reaches a utility of {program.reach:.12g}: the {best} there is, whatever is "
            f"revealed, is {program.best_value:.12g}"
        )
    if room > rounding or program.best_matrix is None or program.constant_matrix is None:
        return
    constant = sign * (program.compute_utility(program.constant_matrix) - program.reach)
    if constant < -rounding and not _has_finite_level(program, program.best_matrix):
        raise ProgramError(
            f"a utility of {program.reach:.12g} is the {best} there is, and the mechanisms that reach it "
            f"have an infinite level of {program.privacy.name}: give a target that demands less"
        )


def _has_finite_level(program: LeastEpsilon, matrix: FloatArray) -> bool:
    """Return whether some mechanism on the support of a matrix has a finite level.

    Over a set of priors some of the outputs may have one, where all together have none.
    """
    if isinstance(program.prior, Prior) and program.best_table is not None:
        over = program.privacy.priors(program.prior)
        if over is not None:
            return bool(find_usable_pairs(matrix > 0, over).any(axis=1).all())
    return math.isfinite(program.privacy.level(program.prior, matrix))


def _build_parametric_model(program: LeastEpsilon) -> CvxpyModel:
    """Build the cvxpy model at a parametric level, or at the optimal level, which is computed first."""
    if program.best_table is not None and isinstance(program.prior, Prior):
        sign = 1.0 if program.utility.maximised else -1.0
        target = sign * program.reach
        found = declare_at_level(
            program.privacy, program.prior, program.best_table, target, program.epsilon
        )
        if found is not None:
            return found
    least = search_epsilon(
        program, MethodOptions(NO_DEADLINE, program.tolerance), None
    ).certificate.value
    program.epsilon.value = least
    return program.at(least).cvxpy_model
