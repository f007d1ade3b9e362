"""The builder of least epsilons, whose level is a parameter of the cvxpy problem.

Targets that no mechanism reaches are refused before any search.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import MAX_EXPONENT, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.prior import SymmetricPrior
from pmlopt.errors import PrivacyError, ProgramError
from pmlopt.model.privacy import CvxpyConstraints, RenyiPML, Requirement, SibsonLeakage
from pmlopt.model.privacy.mean_bounds import MeanBounds, declare_bounds
from pmlopt.model.privacy.of_order import apply_view, express_norms
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.utility import LinearUtility, Utility
from pmlopt.programs.least_leakage.certificate import find_usable_pairs
from pmlopt.programs.least_leakage.epsilon_program import LeastEpsilon
from pmlopt.programs.least_leakage.epsilon_search import search_epsilon
from pmlopt.programs.least_leakage.families import replace_level
from pmlopt.programs.program import CvxpyModel, Outputs, build_problem
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions, tighten_factor


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


def make_level_factor(
    epsilon: cp.Parameter, factor: Callable[[float], Any], shape: tuple[int, ...] = ()
) -> cp.Expression:
    """Return a cvxpy parameter that is a function of the level parameter.

    Args:
        epsilon: a scalar parameter in nats.
        factor: from the level to the value, at least 0.
        shape: of the value.
    """
    from cvxpy.expressions.constants.callback_param import CallbackParam

    def value() -> Any:
        if epsilon.value is None or not float(epsilon.value) >= 0:
            raise PrivacyError(
                f"the parameter epsilon has the value {epsilon.value}: give a number from 0 on"
            )
        return factor(min(float(epsilon.value), MAX_EXPONENT))

    return CallbackParam(callback=value, shape=shape, nonneg=True)


def declare_requirement(
    privacy: Requirement,
    prior: Prior,
    mechanism: cp.Variable,
    law: cp.Variable,
    epsilon: cp.Parameter,
) -> CvxpyConstraints | None:
    """Express a requirement in cvxpy with its level as a parameter; None where that is not possible.

    Args:
        privacy: of the family, at any level.
        prior: N letters.
        mechanism: (N, M).
        law: (1, M) the law of the output.
        epsilon: the level.
    """
    if isinstance(privacy, MeanBounds):
        keep = make_level_factor(epsilon, lambda level: tighten_factor(math.exp(-level)))
        ceiling = make_level_factor(epsilon, lambda level: 1 / tighten_factor(math.exp(-level)))
        bounds = [replace(one, factors=(keep, ceiling)) for one in privacy.bounds_for(prior)]
        return declare_bounds(bounds, mechanism, law)
    if (
        isinstance(privacy, RenyiPML | SibsonLeakage)
        and not replace_level(privacy, 1.0).is_near_one
    ):
        return _declare_norms(privacy, prior, mechanism, law, epsilon)
    if isinstance(privacy, RatioRequirement):
        return _declare_ratios(privacy, prior, mechanism, epsilon)
    return None


def _declare_norms(
    privacy: RenyiPML | SibsonLeakage,
    prior: Prior,
    mechanism: cp.Variable,
    law: cp.Variable,
    epsilon: cp.Parameter,
) -> CvxpyConstraints:
    """Express a bound of finite Renyi order on each column, or on the sum over columns."""

    def keep(p: FloatArray) -> cp.Expression:
        return make_level_factor(
            epsilon, lambda level: tighten_factor(1 / replace_level(privacy, level).max_norm(p))
        )

    if isinstance(privacy, SibsonLeakage):
        lengths = express_norms(prior.pmf, mechanism, privacy.alpha)
        return CvxpyConstraints({"sibson_leakage": keep(prior.pmf) * cp.sum(lengths) <= 1})
    found = {}
    for place, (weights, given, total) in enumerate(privacy.views(prior.pmf)):
        p = weights / total
        means = law[0] if given is None or given.ndim == 1 else (p @ given) @ mechanism
        norms = express_norms(p, apply_view(given, mechanism), privacy.alpha)
        found[f"renyi_pml {place}"] = keep(p) * norms <= means
    return CvxpyConstraints(found)


def _declare_ratios(
    privacy: RatioRequirement, prior: Prior, mechanism: cp.Variable, epsilon: cp.Parameter
) -> CvxpyConstraints:
    """Express ratio bounds whose exponents are proportional to the level parameter."""
    ratios = replace_level(privacy, 1.0).ratios(prior.pmf)
    assert ratios is not None
    constraints, variables = ratios.to_cvxpy(mechanism, tighten_factor)
    sides = cp.vstack([mechanism, variables["products"]]) if variables else mechanism
    denominators = -ratios.linear_system(np.zeros_like)
    numerators = ratios.linear_system(np.ones_like) + denominators
    keep = make_level_factor(
        epsilon,
        lambda level: tighten_factor(np.exp(-level * ratios.exponents))[:, None],
        (len(ratios.exponents), 1),
    )
    wide = keep @ np.ones((1, mechanism.shape[1]))
    constraints["pairs"] = cp.multiply(wide, numerators @ sides) <= denominators @ sides
    return CvxpyConstraints(constraints, variables)


def declare_at_level(
    privacy: Requirement,
    prior: Prior,
    table: FloatArray,
    target: float,
    epsilon: cp.Parameter,
) -> CvxpyModel | None:
    """Build the cvxpy problem of the utility shortfall, parametric in the level; None where impossible.

    Args:
        privacy: of the family, at any level.
        prior: N letters.
        table: (N, M) gains, or losses times -1.
        target: what their expectation must reach.
        epsilon: the level, a parameter.
    """
    mechanism = cp.Variable(table.shape, nonneg=True, name="mechanism")
    law = cp.Variable((1, table.shape[1]), nonneg=True, name="output_law")
    declared = declare_requirement(privacy, prior, mechanism, law, epsilon)
    if declared is None:
        return None
    shortfall = cp.Variable(nonneg=True, name="shortfall")
    gained = cp.sum(cp.multiply(prior.pmf[:, None] * table, mechanism))
    constraints = {
        "rows": cp.sum(mechanism, axis=1) == 1,
        "output_law": prior.pmf[None, :] @ mechanism == law,
        **declared.constraints,
        "reach": gained + shortfall >= target,
    }
    variables = {
        "mechanism": mechanism,
        "output_law": law,
        "shortfall": shortfall,
        **declared.variables,
    }
    return CvxpyModel(build_problem(cp.Minimize(shortfall), constraints), variables, constraints)
