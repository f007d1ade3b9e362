"""The best worst-case rank or utility within a PML level, as a mixed-integer linear program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.argument_checks import check_one_for_each
from pmlopt.core.numbers.arrays import (
    FloatArray,
    Labels,
    check_nonnegative,
    copy_float_array,
)
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import PrivacyError, UtilityError
from pmlopt.model.privacy import PML
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.utility import LinearUtility
from pmlopt.model.utility.linear import check_linear_utility
from pmlopt.model.utility.orders import highest_threshold
from pmlopt.programs.least_leakage.certificate import find_highest_rank
from pmlopt.programs.least_leakage.program import LeastLeakage, build_least_leakage
from pmlopt.programs.program import CvxpyModel, Outputs, Program, build_problem, resolve_outputs
from pmlopt.programs.worst_case.certificate import ThresholdCertificate


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BestWorstCase(Program[ThresholdCertificate]):
    """The program of the highest rank below which a mechanism of PML level epsilon emits nothing.

    `problem` is mixed-integer: maximise `1 + sum_{h >= 2} kept[h]` over mechanisms P within epsilon-PML with
    `P[x,y] <= 1 - kept[h]` for the rank h - 1 of y for x, `kept` falling from 1 to 0. `solve` searches the
    thresholds instead, with a `worst_case_utility` program at each: the least leakage does not fall with h.

    Where it is about utilities, the ranks are those of all pairs together, from 1 to the number K of
    utilities that occur, and the utility of the threshold is optimised.

    Attributes:
        prior: N letters.
        order: (N, M) ranks from 1 to M, or to K.
        epsilon: the PML level, in nats.
        outputs: the M labels.
        utilities: (K,) the utility that belongs to each rank, from the worst; None where ranks are meant.
        over: the set of priors that the level is over; None where it is the prior's.

    Source: [song2026worstcase, problem (1) and Lemma 1].
    """

    prior: Prior
    order: FloatArray
    epsilon: float
    outputs: Labels
    utilities: FloatArray | None = None
    over: PriorSet | None = None

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
        """Return the labels of the mechanism's rows (letters) and columns (outputs)."""
        return self.prior.labels, self.outputs

    @property
    def maximised(self) -> bool:
        """Return True for thresholds and gains, False for losses."""
        return self.utilities is None or bool(self.utilities[-1] >= self.utilities[0])

    @property
    def scale(self) -> float:
        """Return the tolerance unit: one rank, or the least difference of two utilities."""
        if self.utilities is None or len(self.utilities) == 1:
            return 1.0
        return float(np.abs(np.diff(self.utilities)).min())

    @property
    def highest_rank(self) -> int:
        """Return the highest rank feasible at a finite level."""
        return find_highest_rank(self.order, self.over)

    def build_least_leakage(self, threshold: int) -> LeastLeakage:
        """Build the least-leakage program of a threshold."""
        return build_least_leakage(self.prior, self.order >= threshold, self.outputs, self.over)

    def __repr__(self) -> str:
        return f"<BestWorstCase within {self.epsilon:g} nats>"


def best_worst_case(
    prior: PriorLike,
    order: ArrayLike,
    epsilon: float,
    outputs: Outputs = None,
    over: PriorSet | None = None,
) -> BestWorstCase:
    """Build the problem of the highest rank guaranteed by a mechanism of level epsilon.

    Args:
        prior: N letters.
        order: (N, M) the rank of each output for each letter, from 1 to M; see `worst_case_utility`.
        epsilon: the PML level, in nats.
        outputs: the M labels; left out, the prior's letters where M = N.
        over: a set of priors: the level is the largest under one of them. Of `prior` only the letters count.

    Raises:
        UtilityError: the order cannot be meant.
        PrivacyError: epsilon is negative, or `over` is no set of priors on these letters.

    Source: [song2026worstcase, problem (1) and Lemma 1].

    Examples:
        >>> import math
        >>> from pmlopt import solve
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> best = solve(best_worst_case([0.6, 0.2, 0.2], order, 1.0))
        >>> best.value, best.status.value, round(math.exp(best.level), 9)
        (2.0, 'optimal', 2.0)
        >>> from pmlopt import L1Ball
        >>> wide = L1Ball([0.6, 0.2, 0.2], 0.5)
        >>> solve(best_worst_case([0.6, 0.2, 0.2], order, 1.0, over=wide)).value
        1.0
    """
    known = as_prior(prior)
    claim = _check_requirement(known, epsilon, over)
    highest_threshold(order)  # checks the order
    ranks = copy_float_array(order, 2, "the order", UtilityError)
    check_one_for_each("the order has", len(ranks), "rows", known.size, "letters", UtilityError)
    return _make_program(
        known, ranks, claim, resolve_outputs(known.labels, ranks.shape[1], outputs)
    )


def best_guaranteed_utility(
    prior: PriorLike,
    utility: LinearUtility,
    epsilon: float,
    outputs: Outputs = None,
    over: PriorSet | None = None,
) -> BestWorstCase:
    """Build the problem of the best utility guaranteed for every pair that can occur.

    `max_P min {g[x,y] : P[x,y] > 0}` over the mechanisms of PML level epsilon, or the smallest largest loss.
    It is a utility of the table, the worst that may occur, where `best_worst_case` has each letter's ranks.

    Args:
        prior: N letters.
        utility: `ExpectedGain` or `ExpectedLoss`, of which only the table counts.
        epsilon: the PML level, in nats.
        outputs: the M outputs, as in `design`.
        over: a set of priors, as in `best_worst_case`.

    Raises:
        UtilityError: the utility is not linear, or its matrix does not fit.
        PrivacyError: epsilon is negative, or `over` is no set of priors on these letters.

    Source: [song2026worstcase, problem (1)], with the utilities themselves for their order.

    Examples:
        >>> from pmlopt import ExpectedLoss, solve
        >>> far = ExpectedLoss(lambda x, y: abs(x - y))
        >>> [float(solve(best_guaranteed_utility([0.25] * 4, far, level)).value) for level in (0, 0.7, 1.4)]
        [2.0, 1.0, 0.0]
    """
    known = as_prior(prior)
    claim = _check_requirement(known, epsilon, over)
    check_linear_utility(utility)
    labels = resolve_outputs(known.labels, utility.fixed_outputs, outputs)
    # equal utilities have one rank; a loss enters with its sign changed
    signed, ranks = np.unique(utility.evaluate_gains(known.labels, labels), return_inverse=True)
    utilities = (signed if utility.maximised else -signed) + 0.0
    order = np.asarray(ranks.reshape(known.size, len(labels)) + 1, dtype=np.float64)
    return _make_program(known, order, claim, labels, utilities)


def _check_requirement(prior: Prior, epsilon: float, over: PriorSet | None) -> PML:
    """Build and validate the PML requirement for the prior's letters."""
    claim = PML(check_nonnegative(epsilon, "epsilon", PrivacyError), over)
    claim.priors(prior)
    return claim


def _make_program(
    prior: Prior,
    order: FloatArray,
    pml: PML,
    outputs: Labels,
    utilities: FloatArray | None = None,
) -> BestWorstCase:
    """Build the worst-case program from validated arguments."""
    values = np.arange(1.0, order.shape[1] + 1) if utilities is None else utilities
    return BestWorstCase(
        build_model=partial(_build_model, prior, order, pml, values),
        prior=prior,
        order=order,
        epsilon=pml.epsilon,
        outputs=outputs,
        utilities=utilities,
        over=pml.over,
    )


def _build_model(prior: Prior, order: FloatArray, claim: PML, values: FloatArray) -> CvxpyModel:
    """Build the mixed-integer cvxpy model of the worst case."""
    n, m = order.shape
    k = len(values)
    mechanism = cp.Variable((n, m), nonneg=True, name="mechanism")
    law = cp.Variable((1, m), nonneg=True, name="output_law")
    kept = cp.Variable(k, boolean=True, name="kept")  # of the thresholds 2 to K, and none above
    declared = claim.to_cvxpy(prior, mechanism, law)
    above = kept[order.astype(int).ravel() - 1]  # the threshold just above each pair's rank
    constraints = {
        "rows": cp.sum(mechanism, axis=1) == 1,
        "output_law": prior.pmf[None, :] @ mechanism == law,
        "ranks": cp.reshape(mechanism, n * m, order="C") + above <= 1,
        "falling": cp.diff(kept) <= 0 if k > 1 else kept <= 0,
        "none_above": kept[k - 1] == 0,
        **declared.constraints,
    }
    variables = {"mechanism": mechanism, "output_law": law, "kept": kept, **declared.variables}
    sense = cp.Maximize if values[-1] >= values[0] else cp.Minimize
    objective = sense(values[0] + np.append(np.diff(values), 0.0) @ kept)
    return CvxpyModel(build_problem(objective, constraints), variables, constraints)
