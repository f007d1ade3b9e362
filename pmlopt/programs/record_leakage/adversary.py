"""The largest leakage of one record as an optimization over the joint law of record and dataset class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding, check_nonnegative
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import log_sum_exp
from pmlopt.model.queries import Query, RecordChannel
from pmlopt.model.queries.record_leakage_measures import (
    allows_only_uniform,
    compute_dataset_entropy,
    compute_negative_entropies,
    compute_record_information,
)
from pmlopt.programs.program import CvxpyModel, build_problem


@dataclass(frozen=True, eq=False)
class BoundedAdversary:
    """The problem `max I(A; Y)` over joint laws J of (record, class) with bounded dataset entropy.

    `H(J) + <J, log c> >= b`; Y given T = t has the row t of W.

    Attributes:
        rows: (T, M) W.
        log_counts: (A, T) log c; -inf where J must be 0.
        entropy: b, in nats, at most `log_size`.
        log_size: log |X|, in nats.

    Source: [wu2026entropy, Problem 1], with the datasets of a letter and a class taken together.
    """

    rows: FloatArray
    log_counts: FloatArray
    entropy: float
    log_size: float

    @classmethod
    def from_channel(cls, channel: RecordChannel, record: int, entropy: float) -> BoundedAdversary:
        """Build the problem of one record of a channel."""
        return cls(channel.rows, channel.log_counts(record), entropy, channel.query.log_size)

    @cached_property
    def uniform_law(self) -> FloatArray:
        """Return the (A, T) joint law under a uniform dataset."""
        # counts of many records overflow: they are normalised as logarithms
        law = np.exp(self.log_counts - log_sum_exp(self.log_counts))
        return np.asarray(law / law.sum())

    @cached_property
    def shifted_counts(self) -> tuple[FloatArray, float]:
        """Return the log-counts and entropy bound, shifted by the largest log-count for accuracy."""
        largest = float(self.log_counts.max())
        return self.log_counts - largest, self.entropy - largest

    @property
    def entropy_rounding(self) -> float:
        """Bound the rounding error of a dataset entropy."""
        return bound_sum_rounding(1, max(1.0, self.log_size))

    @property
    def only_uniform(self) -> bool:
        """Return whether the entropy bound admits only the uniform dataset, up to rounding."""
        return allows_only_uniform(self.entropy, self.log_size)

    @cached_property
    def output_dimensions(self) -> int:
        """Return the total dimension of each letter's output laws; an upper bound for large channels."""
        # laws of Y given a letter are mixtures of its classes' rows: rank - 1 dimensions
        used = np.isfinite(self.log_counts)
        outputs = self.rows.shape[1]
        # a singular value decomposition of 200 rows takes 10 ms
        if self.rows.size > 40_000:
            return sum(min(classes, outputs) - 1 for classes in used.sum(axis=1).tolist())
        # smaller singular values are directions of rounding
        ranks = (np.linalg.matrix_rank(self.rows[classes], rtol=1e-12) for classes in used)
        return sum(int(rank) - 1 for rank in ranks)

    def make_allowed(self, joint: FloatArray) -> FloatArray:
        """Mix a joint law with the uniform one until its dataset entropy meets the bound."""
        if self.only_uniform:
            return self.uniform_law
        joint = joint / joint.sum()
        wanted = self.entropy + self.entropy_rounding
        have = compute_dataset_entropy(joint, self.log_counts)
        if have >= wanted:
            return joint
        # entropy is concave in the law: mixing raises it at least linearly in the share
        weight = min(1.0, (wanted - have) / max(self.log_size - have, 1e-300) * (1 + 1e-9))
        # a mixture of laws: entries stay non-negative and sum to one
        return (1 - weight) * joint + weight * self.uniform_law

    @property
    def cannot_leak(self) -> bool:
        """Return whether the leakage is zero: all channel rows are equal, or the record has one letter."""
        return len(self.rows) == 1 or len(self.log_counts) == 1

    def compute_leakage(self, joint: FloatArray) -> float:
        """Compute I(A; Y) of a joint law, rounded down."""
        if self.cannot_leak:
            return 0.0
        # a lower bound is claimed, so that rounding is taken off
        value = compute_record_information(joint, self.rows)
        # of each log-ratio; their mean is at most I + sqrt(2 I)
        one = bound_sum_rounding(sum(self.rows.shape), 1.0)
        return max(0.0, value - one * (value + math.sqrt(2 * max(0.0, value)) + one))

    def check_start(self, law: object) -> FloatArray | None:
        """Return a user-given joint law if it has the right shape and support; else None."""
        # a warm start may come from a file, for another query: its shape and zeros are checked
        found = np.asarray(law, dtype=np.float64)
        empty = np.isneginf(self.log_counts)
        fits = found.shape == empty.shape and bool((np.isfinite(found) & (found >= 0)).all())
        return found if fits and found.any() and not found[empty].any() else None


def check_entropy(query: Query, entropy: float) -> float:
    """Validate an entropy bound, and clip it to the float of `log |X|`.

    Raises:
        PrivacyError: it is no number, negative, or above `log |X|` by more than rounding.
    """
    least = check_nonnegative(entropy, "the entropy b", PrivacyError)
    if least > query.log_size + bound_sum_rounding(1, max(1.0, query.log_size)):
        raise PrivacyError(
            f"the entropy b is {least!r} nats, above log |X| = {query.log_size!r} of "
            f"{query.records} record(s): no prior has it"
        )
    return min(least, query.log_size)


def build_class_relaxation(adversary: BoundedAdversary) -> CvxpyModel:
    """Build a convex relaxation of the largest record leakage, in the joint law.

        maximise    leaked
        subject to  leaked <= H(y) - sum_t J_t H(W[t]),  leaked <= H(X_i),  y = sum_a J_a W,
                    sum J = 1,  J >= 0,  H(J) + <J, log c> >= entropy:

    the record leaks no more than the class, I(T; Y), and no more than there is to know of it. The cones are
    exponential; variables and constraints have names.

    Source: [wu2026entropy, Problem 1, Definition 2.1]; the reduction to J and the relaxation are pmlopt's.

    Examples:
        >>> rows = np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> program = build_class_relaxation(
        ...     BoundedAdversary(rows, np.log([[4.0, 4.0], [4.0, 4.0]]), 0.0, np.log(16))
        ... )
        >>> value = program.problem.solve(solver="CLARABEL")  # log 2 - h(0.1), the capacity of the channel
        >>> round(float(value), 6)
        0.368064
    """
    used = np.isfinite(adversary.log_counts)
    # variables only where there are datasets: J is 0 elsewhere
    letters, classes = np.nonzero(used)
    places = np.arange(len(letters))
    counts, entropy = adversary.shifted_counts
    of_letters = sparse.csr_array(
        (np.ones(len(places)), (letters, places)), shape=(len(used), len(places))
    )
    joint = cp.Variable(len(places), nonneg=True, name="joint")
    law = cp.Variable(adversary.rows.shape[1], name="law")
    marginal = cp.Variable(len(used), name="marginal")
    leaked = cp.Variable(name="leaked")
    constraints = {
        "entropy": cp.sum(cp.entr(joint)) + counts[used] @ joint >= entropy,
        "law": law == adversary.rows[classes].T @ joint,
        "total": cp.sum(joint) == 1,
        "marginal": marginal == of_letters @ joint,
        "outputs": leaked
        <= cp.sum(cp.entr(law)) + compute_negative_entropies(adversary.rows)[classes] @ joint,
        "letters": leaked <= cp.sum(cp.entr(marginal)),
    }
    variables = {"joint": joint, "law": law, "marginal": marginal, "leaked": leaked}
    return CvxpyModel(build_problem(cp.Maximize(leaked), constraints), variables, constraints)
