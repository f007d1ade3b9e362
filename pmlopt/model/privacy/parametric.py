"""PML and LDP constraints on cvxpy variables with the level as a parameter."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import PrivacyError
from pmlopt.solvers.solver_result import tighten_factor


def parametric_constraints(
    prior: PriorLike,
    mechanism: cp.Expression,
    epsilon: cp.Parameter,
    kind: Literal["pml", "ldp"] = "pml",
) -> list[cp.Constraint]:
    """Build the constraints of PML or LDP on cvxpy variables, with the level as a parameter.

    `e^-epsilon P <= 1 q'` with q the law of the output, or under LDP its lower envelope. The factor is a
    parameter that is computed from it, so that the problem is a disciplined parametrized program: compiled
    once, and solved again whenever the value of the parameter changes.

    Args:
        prior: N letters; of LDP, only their number matters.
        mechanism: (N, M), affine in your variables. The caller states that rows sum to one.
        epsilon: a scalar parameter, in nats; its value is at least 0 when the problem is solved.
        kind: "pml" or "ldp".

    Raises:
        PrivacyError: the parameter is no scalar, the kind another one, or, when the problem is solved, the
            value is missing or negative.

    Examples:
        >>> import cvxpy as cp
        >>> P, level = cp.Variable((2, 2), nonneg=True), cp.Parameter(nonneg=True)
        >>> rules = [cp.sum(P, axis=1) == 1, *parametric_constraints([0.5, 0.5], P, level)]
        >>> problem = cp.Problem(cp.Maximize(cp.trace(P) / 2), rules)
        >>> problem.is_dpp()
        True
        >>> for level.value in (0.1, 0.2):
        ...     print(round(float(problem.solve(solver="HIGHS")), 6))
        0.552585
        0.610701
    """
    from cvxpy.expressions.constants.callback_param import CallbackParam

    known = as_prior(prior)
    if not isinstance(epsilon, cp.Parameter) or epsilon.size != 1:
        raise PrivacyError(
            f"epsilon is {epsilon!r:.60}: give a scalar cvxpy Parameter, or take PML(0.5).constraints"
        )
    if kind not in ("pml", "ldp"):
        raise PrivacyError(f"the kind is {kind!r}: give 'pml' or 'ldp'")

    def factor() -> float:
        value = math.nan if epsilon.value is None else float(np.asarray(epsilon.value).item())
        if not value >= 0:
            raise PrivacyError(
                f"the parameter epsilon has the value {epsilon.value}: give a number from 0 on"
            )
        least = known.max_leakage if kind == "pml" else 700.0
        return tighten_factor(math.exp(-min(value, least)))

    keep = CallbackParam(callback=factor, nonneg=True)
    row = cp.Variable(
        (1, mechanism.shape[1]), nonneg=True, name="output_law" if kind == "pml" else "lower"
    )
    ones = np.ones((known.size, 1))
    ends = known.pmf[None, :] @ mechanism == row if kind == "pml" else ones @ row <= mechanism
    return [ends, keep * mechanism <= ones @ row]
