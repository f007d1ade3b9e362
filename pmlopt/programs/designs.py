"""The main design problem: the best mechanism for a prior under a privacy requirement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from pmlopt.core.descriptions import describe_value
from pmlopt.core.numbers.arrays import Label, indices_of
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.symmetry.prior import SymmetricPrior
from pmlopt.errors import PrivacyError, ProgramError
from pmlopt.model.constraints import Constraint, OutcomeLeakage
from pmlopt.model.privacy import PML, Requirement
from pmlopt.model.utility import LinearUtility, as_utility
from pmlopt.programs.linear.program import (
    LinearDesign,
    SymmetricDesign,
    linear_design,
    symmetric_design,
)
from pmlopt.programs.program import Outputs, resolve_outputs

if TYPE_CHECKING:
    from pmlopt.data.continuous import Continuous
    from pmlopt.model.privacy import (
        GuessLeakage,
        MaximalLeakage,
        RenyiPML,
        SibsonLeakage,
        Vulnerability,
    )
    from pmlopt.model.utility import (
        DistanceLoss,
        EstimationError,
        SubConvex,
        Utility,
        UtilityLike,
    )
    from pmlopt.programs.continuous.program import ContinuousDesign
    from pmlopt.programs.estimation.program import EstimationDesign
    from pmlopt.programs.subconvex.cost_program import ColumnCostDesign
    from pmlopt.programs.subconvex.program import ColumnDesign


@overload
def design(  # type: ignore[overload-overlap]
    prior: SymmetricPrior, privacy: Requirement, utility: LinearUtility, outputs: Outputs = None
) -> SymmetricDesign: ...
@overload
def design(
    prior: PriorLike,
    privacy: Requirement,
    utility: LinearUtility,
    outputs: Outputs = None,
    constraints: Iterable[Constraint] = (),
) -> LinearDesign: ...
@overload
def design(  # type: ignore[overload-overlap]
    prior: PriorLike,
    privacy: MaximalLeakage | SibsonLeakage | Vulnerability | RenyiPML | GuessLeakage,
    utility: SubConvex,
    outputs: Outputs = None,
    constraints: Iterable[Constraint] = (),
) -> ColumnCostDesign: ...
@overload
def design(
    prior: PriorLike,
    privacy: Requirement,
    utility: SubConvex,
    outputs: Outputs = None,
    constraints: Iterable[Constraint] = (),
) -> ColumnDesign: ...
@overload
def design(
    prior: PriorLike, privacy: Requirement, utility: EstimationError, outputs: Outputs = None
) -> EstimationDesign: ...
@overload
def design(prior: Continuous, privacy: Requirement, utility: DistanceLoss) -> ContinuousDesign: ...
@overload
def design(
    prior: PriorLike,
    privacy: Requirement,
    utility: UtilityLike,
    outputs: Outputs = None,
    constraints: Iterable[Constraint] = (),
) -> LinearDesign | SymmetricDesign | ColumnDesign | ColumnCostDesign | EstimationDesign: ...
def design(
    prior: PriorLike | Continuous,
    privacy: Requirement,
    utility: UtilityLike,
    outputs: Outputs = None,
    constraints: Iterable[Constraint] = (),
) -> (
    LinearDesign
    | SymmetricDesign
    | ColumnDesign
    | ColumnCostDesign
    | EstimationDesign
    | ContinuousDesign
):
    """Build the design problem: optimize a utility over the mechanisms that meet a privacy requirement.

    With a linear utility the feasible set is a polytope in P (N, M) and its output law q (1, M): rows of P
    sum to one, q = p P, and the rows of the requirement, in sparse form (4 N M + M nonzeros for PML).

    With a sub-convex utility it is a linear program in the weights q of extreme columns lam of mean one:
    maximise `sum_y q[y] mu(lam_y)` subject to `sum_y q[y] lam_y = 1`. Where they are few, all are declared;
    where they are many, a few that are known by formula, and `solve` generates the others as it needs them.
    A bound on a cost of columns, such as that of maximal leakage, Sibson's information or PML of order alpha,
    is one more row of the program, or cuts the columns.

    With an `EstimationError` it is an optimal design of experiments over the same columns: minimise
    `tr(W J^-1 W')`, `J = sum_y q[y] lam_y lam_y'`.

    For a `Continuous` secret with a `DistanceLoss` it is the least loss over all mechanisms on the secret,
    bracketed by linear programs on bins.

    Args:
        prior: N letters, or a `Continuous` secret.
        privacy: `PML`, `LDP`, `LIP`, `MetricPrivacy`, `Pufferfish`, `GainLeakage`, `RatioBound`, several of
            them by `&`, or (with a linear utility) `MaximalLeakage` and `ApproximatePML`.
        utility: `ExpectedGain`, `ExpectedLoss`, `MutualInformation` or any other `SubConvex`, or
            `EstimationError`; the name of one, such as "hamming" or "mutual-information"; or a loss as a
            function of two labels (`pmlopt.model.utility.as_utility`).
        outputs: the M outputs: their number, or their labels. Left out, they are the prior's
            letters, or as many as a utility matrix has columns; with a sub-convex utility, as many as the
            optimum needs, at most N (so that fewer than N cannot be requested).
        constraints: what the mechanism must keep next to, such as `pmlopt.constraints.Invariant()`, with a
            linear utility on letters that are listed. With a sub-convex utility budgets of outcomes only,
            `OutcomeLeakage`: outputs are then alike but for these, and those of the largest budget, at least
            N of them, are the ones that occur.

    Returns:
        The program, which `solve` takes: its result has the mechanism, its value and the proof of both.

    Raises:
        PriorError, PrivacyError, UtilityError, ProgramError: an argument cannot be meant.

    Source: [grosse2025empirical, Section II-A] and [grosse2024extremal, Lemma 1] (the polytope M(eps, P_X));
    [grosse2024extremal, Theorem 6] (the linear program over columns).

    Examples:
        >>> import numpy as np
        >>> from pmlopt import ExpectedGain, MutualInformation, PML, solve
        >>> result = solve(design([0.25] * 4, PML(np.log(2)), ExpectedGain(np.eye(4))))
        >>> round(result.value, 9)
        0.5
        >>> result = solve(design([0.25] * 4, PML(np.log(2)), "hamming"))
        >>> round(result.value, 9)
        0.5
        >>> result = solve(design([0.25] * 4, PML(np.log(2)), MutualInformation()))
        >>> round(np.exp(result.value).item(), 9), result.mechanism.matrix.shape
        (2.0, (4, 2))
    """
    if not isinstance(privacy, Requirement):
        raise PrivacyError(
            f"the privacy requirement is {describe_value(privacy)}: give one such as PML(0.5)"
        )
    utility = as_utility(utility)
    constraints = _check_constraints(constraints)
    if not isinstance(prior, Prior):
        from pmlopt.data.continuous import Continuous

        if isinstance(prior, Continuous):
            return _design_other_kind(prior, privacy, utility, outputs, constraints)
    if not isinstance(utility, LinearUtility):
        return _design_other_kind(prior, privacy, utility, outputs, constraints)
    known = as_prior(prior)
    if isinstance(known, SymmetricPrior):
        _refuse_constraints(constraints)
        return symmetric_design(known, privacy, utility, outputs)
    columns = resolve_outputs(known.labels, utility.fixed_outputs, outputs)
    return linear_design(known, privacy.for_prior(known), utility, columns, constraints)


def _refuse_constraints(constraints: tuple[Any, ...]) -> None:
    """Raise an error for constraints of a design that does not keep them."""
    if constraints:
        raise ProgramError(
            "constraints are kept by designs with an expected gain or loss on listed letters; with a "
            "sub-convex utility only OutcomeLeakage is"
        )


def _design_other_kind(
    prior: PriorLike | Continuous,
    privacy: Requirement,
    utility: Utility,
    outputs: Outputs,
    constraints: tuple[Any, ...],
) -> ColumnDesign | ColumnCostDesign | EstimationDesign | ContinuousDesign:
    """Build a design of another kind than a linear one, which alone loads what it needs.

    That takes as long as a small linear design.
    """
    from pmlopt.data.continuous import Continuous
    from pmlopt.model.utility import DistanceLoss, EstimationError, SubConvex

    # constraints name outcomes, which orbits and bins do not have
    if not (
        isinstance(utility, SubConvex)
        and not isinstance(prior, Continuous | SymmetricPrior)
        and all(isinstance(one, OutcomeLeakage) for one in constraints)
    ):
        _refuse_constraints(constraints)
    if isinstance(prior, Continuous) or isinstance(utility, DistanceLoss):
        from pmlopt.programs.continuous.program import continuous_design

        return continuous_design(prior, privacy, utility, outputs)
    known = as_prior(prior)
    # only linear utilities are solved by orbits: others need the letters
    known = known.listed() if isinstance(known, SymmetricPrior) else known
    privacy = privacy.for_prior(known)
    if isinstance(utility, EstimationError):
        from pmlopt.programs.estimation.program import estimation_design

        return estimation_design(known, privacy, utility, outputs)
    assert isinstance(utility, SubConvex)
    letters = None if outputs is None else resolve_outputs(known.labels, None, outputs)
    if letters is not None and len(letters) < known.size:
        raise ProgramError(
            f"{len(letters)} outputs are fewer than the {known.size} letters: a sub-convex utility may need "
            "that many, and with fewer the problem is combinatorial; leave the outputs out for as few as the "
            "optimum has"
        )
    if constraints:
        letters = resolve_outputs(known.labels, None, outputs or known.labels)
        privacy, letters = _apply_outcome_budgets(known, privacy, letters, constraints)
    cost = privacy.column_cost(known)
    if cost is not None:
        from pmlopt.programs.subconvex.cost_program import column_cost_design

        return column_cost_design(known, privacy, utility, letters, cost)
    from pmlopt.programs.subconvex.program import column_design

    return column_design(known, privacy, utility, letters)


def _check_constraints(constraints: Any) -> tuple[Any, ...]:
    """Validate the constraints argument of a design, and return it as a tuple."""
    if type(constraints) is tuple and not constraints:
        return ()
    # a string is iterable, but a list of letters is not what was meant
    single = isinstance(constraints, Constraint | str | Mapping) or not isinstance(
        constraints, Iterable
    )
    listed = (constraints,) if single else tuple(constraints)
    for one in listed:
        if type(one).__module__.partition(".")[0] == "cvxpy":
            raise ProgramError(
                "a constraint of cvxpy needs the variable of the program that is declared here: write "
                "program = design(...), then program.with_constraints(name=program.mechanism[0, 0] <= 0.5)"
            )
    if single:
        raise ProgramError(
            f"the constraints are {describe_value(constraints)}: give a list, such as [Invariant()]"
        )
    return listed


def _apply_outcome_budgets(
    prior: Prior, privacy: Requirement, outputs: tuple[Label, ...], constraints: tuple[Any, ...]
) -> tuple[Requirement, tuple[Label, ...]]:
    """Tighten a requirement by per-outcome leakage budgets, and order the outputs by budget.

    The utility is the same for a column at any output, and a column within a smaller budget is within a
    larger one: the optimum is that of the largest budget only, on the outputs that have it, which come
    first. The others never occur.

    Raises:
        ProgramError: fewer outputs than letters have the largest budget.
    """
    budgets = dict.fromkeys(outputs, math.inf)
    for one in constraints:
        for label, nats in one.most:
            place = indices_of([label], outputs, "the budgets of outcomes", ProgramError)[0]
            budgets[outputs[place]] = min(nats, budgets[outputs[place]])
    # a column within a smaller budget is within the largest: other outputs add nothing
    max_budget = max(budgets.values())
    first = [label for label in outputs if budgets[label] == max_budget]
    # a vertex of the weights may need as many columns as there are letters
    if len(first) < prior.size:
        raise ProgramError(
            f"{len(first)} outcomes have the largest budget, fewer than the {prior.size} letters: a "
            "sub-convex utility may need that many; give more outputs"
        )
    if max_budget < math.inf:  # as a bound for each letter, which combines with any other
        level = privacy.find_plain_pml_level()
        each = PML([max_budget] * prior.size)
        privacy = privacy & each if level is None else PML(min(max_budget, level))
    return privacy, (*first, *(label for label in outputs if budgets[label] < max_budget))
