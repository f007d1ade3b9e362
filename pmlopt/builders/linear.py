"""The main design problem: the best mechanism for a prior under a privacy requirement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real

import cvxpy as cp
import numpy as np

from pmlopt.builders.program import Program
from pmlopt.checks import Label, labels_of, whole
from pmlopt.errors import PrivacyError, ProgramError, UtilityError
from pmlopt.prior import PriorLike, as_prior
from pmlopt.privacy import Requirement
from pmlopt.utility import LinearUtility
from pmlopt.utility.linear import row_offsets


def design(
    prior: PriorLike,
    privacy: Requirement,
    utility: LinearUtility,
    outputs: int | Iterable[Label] | None = None,
) -> Program:
    """Declare the design problem `max (or min) E[f(X, Y)]` over mechanisms that meet the requirement.

    The feasible set is a polytope in P (N, M) and its output law q (1, M): rows of P sum to one,
    q = p P, and the rows of the requirement, in sparse form (4 N M + M nonzeros for PML).

    Args:
        prior: N letters.
        privacy: `PML`, `LDP`, `LIP` or `MaximalLeakage`.
        utility: `ExpectedGain` or `ExpectedLoss`.
        outputs: the M outputs: their number, or their labels. Left out, they are the prior's
            letters, or as many as a utility matrix has columns.

    Raises:
        PriorError, PrivacyError, UtilityError, ProgramError: an argument cannot be meant.

    Source: EMP, Section II-A (the polytope M(eps, P_X), EXT Lemma 1).

    Examples:
        >>> import numpy as np
        >>> from pmlopt import ExpectedGain, PML, solve
        >>> result = solve(design([0.25] * 4, PML(np.log(2)), ExpectedGain(np.eye(4))))
        >>> round(result.value, 9)
        0.5
    """
    known = as_prior(prior)
    if not isinstance(privacy, Requirement):
        raise PrivacyError(f"the privacy requirement is {privacy!r}: give one such as PML(0.5)")
    if not isinstance(utility, LinearUtility):
        raise UtilityError(f"the utility is {utility!r}: give ExpectedGain(...) or ExpectedLoss(...)")
    letters = _outputs(known.labels, utility, outputs)
    table = utility.table(known.labels, letters)
    if np.abs(table).max() > 1e150:
        raise UtilityError(f"the utility has an entry of size {np.abs(table).max():g}: change its unit")

    n, m = table.shape
    mechanism = cp.Variable((n, m), nonneg=True, name="mechanism")
    law = cp.Variable((1, m), nonneg=True, name="output_law")
    declared = privacy.constraints(known, mechanism, law)
    constraints = {
        "rows": cp.sum(mechanism, axis=1) == 1,
        "output_law": known.pmf[None, :] @ mechanism == law,
        **declared.constraints,
    }
    for name, constraint in constraints.items():
        constraint.set_label(name)
    sense = cp.Maximize if utility.maximised else cp.Minimize
    offsets = row_offsets(table)
    expression = utility.expression(known, table - offsets[:, None], mechanism) + float(known.pmf @ offsets)
    return Program(
        problem=cp.Problem(sense(expression), list(constraints.values())),
        prior=known,
        privacy=privacy,
        utility=utility,
        outputs=letters,
        table=table,
        variables={"mechanism": mechanism, "output_law": law, **declared.variables},
        constraints=constraints,
    )


def _outputs(
    inputs: tuple[Label, ...], utility: LinearUtility, outputs: int | Iterable[Label] | None
) -> tuple[Label, ...]:
    if outputs is None:
        columns = utility.columns
        return inputs if columns in (None, len(inputs)) else tuple(range(columns or 0))
    if isinstance(outputs, Real):
        return tuple(range(whole(outputs, "the number of outputs", ProgramError)))
    if not isinstance(outputs, Iterable):
        raise ProgramError(f"the outputs are {outputs!r}: give their number or their labels")
    letters: Sequence[Label] = outputs if isinstance(outputs, str) else tuple(outputs)
    if not letters:
        raise ProgramError("there are no outputs: give at least one label")
    return labels_of(letters, len(letters), "the outputs", ProgramError)
