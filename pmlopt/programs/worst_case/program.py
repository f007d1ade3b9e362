"""The highest worst-case rank within a PML level, as a mixed-integer linear program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import cvxpy as cp
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, Label, float_array, nonnegative
from pmlopt.errors import PrivacyError, UtilityError
from pmlopt.prior import Prior, PriorLike, as_prior
from pmlopt.privacy import PML
from pmlopt.program import Declaration, Program, problem_of
from pmlopt.programs.least_leakage.program import LeastLeakage, worst_case_utility
from pmlopt.programs.outputs import Outputs, outputs_of
from pmlopt.programs.worst_case.certificate import ThresholdCertificate
from pmlopt.utility.orders import highest_threshold


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BestWorstCase(Program[ThresholdCertificate]):
    """The highest threshold h such that a mechanism of PML level epsilon emits no rank below h.

    `problem` is mixed-integer: maximise `1 + sum_{h >= 2} kept[h]` over mechanisms P within epsilon-PML with
    `P[x,y] <= 1 - kept[h]` for the rank h - 1 of y for x, `kept` falling from 1 to 0. `solve` searches the
    thresholds instead, with a `worst_case_utility` program at each: the least leakage does not fall with h.

    Attributes:
        prior: N letters.
        order: (N, M) ranks from 1 to M.
        epsilon: the PML level, in nats.
        outputs: the M labels.

    Source: [song2026worstcase, problem (1) and Lemma 1].
    """

    prior: Prior
    order: FloatArray
    epsilon: float
    outputs: tuple[Label, ...]

    @property
    def sides(self) -> tuple[tuple[Label, ...] | None, tuple[Label, ...] | None]:
        """The letters of the prior and the outputs."""
        return self.prior.labels, self.outputs

    @property
    def maximised(self) -> bool:
        """The threshold is maximised."""
        return True

    @property
    def highest(self) -> int:
        """The highest rank that every letter has an output of."""
        return highest_threshold(self.order)

    def at(self, threshold: int) -> LeastLeakage:
        """The least leakage at a threshold."""
        return worst_case_utility(self.prior, self.order, threshold, self.outputs)

    def __repr__(self) -> str:
        return f"<BestWorstCase within {self.epsilon:g} nats>"


def best_worst_case(
    prior: PriorLike, order: ArrayLike, epsilon: float, outputs: Outputs = None
) -> BestWorstCase:
    """Declare the highest threshold that a mechanism of level epsilon can keep.

    Args:
        prior: N letters.
        order: (N, M) the rank of each output for each letter, from 1 to M; see `worst_case_utility`.
        epsilon: the PML level, in nats.
        outputs: the M labels; left out, the prior's letters where M = N.

    Raises:
        UtilityError: the order cannot be meant.
        PrivacyError: epsilon is negative.

    Source: [song2026worstcase, problem (1) and Lemma 1].

    Examples:
        >>> import math
        >>> from pmlopt import solve
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> best = solve(best_worst_case([0.6, 0.2, 0.2], order, 1.0))
        >>> best.value, best.status.value, round(math.exp(best.level), 9)
        (2.0, 'optimal', 2.0)
    """
    known = as_prior(prior)
    level = nonnegative(epsilon, "epsilon", PrivacyError)
    highest_threshold(order)  # checks the order
    ranks = float_array(order, 2, "the order", UtilityError)
    if len(ranks) != known.size:
        raise UtilityError(f"the order has {len(ranks)} rows for {known.size} letters: give one for each")
    labels = outputs_of(known.labels, ranks.shape[1], outputs)
    return BestWorstCase(
        declare=partial(_declaration, known, ranks, level),
        prior=known,
        order=ranks,
        epsilon=level,
        outputs=labels,
    )


def _declaration(prior: Prior, order: FloatArray, epsilon: float) -> Declaration:
    n, m = order.shape
    mechanism = cp.Variable((n, m), nonneg=True, name="mechanism")
    law = cp.Variable((1, m), nonneg=True, name="output_law")
    kept = cp.Variable(m, boolean=True, name="kept")  # of the thresholds 2 to M, and none above
    declared = PML(epsilon).constraints(prior, mechanism, law)
    above = kept[order.astype(int).ravel() - 1]  # the threshold just above each pair's rank
    constraints = {
        "rows": cp.sum(mechanism, axis=1) == 1,
        "output_law": prior.pmf[None, :] @ mechanism == law,
        "ranks": cp.reshape(mechanism, n * m, order="C") + above <= 1,
        "falling": cp.diff(kept) <= 0 if m > 1 else kept <= 0,
        "none_above": kept[m - 1] == 0,
        **declared.constraints,
    }
    variables = {"mechanism": mechanism, "output_law": law, "kept": kept, **declared.variables}
    objective = cp.Maximize(1 + cp.sum(kept))
    return Declaration(problem_of(objective, constraints), variables, constraints)
