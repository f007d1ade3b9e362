"""The largest leakage of one record as a problem in the law of (X_i, T), T the class of the dataset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray, real, rounding_of
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import log_sum
from pmlopt.model.queries import Query
from pmlopt.model.queries.record_leakage_measures import (
    dataset_entropy,
    negative_entropies,
    record_information,
    uniform_alone,
)
from pmlopt.programs.program import Declaration, problem_of
from pmlopt.programs.record_leakage.output_cells import first_cell, row_space

if TYPE_CHECKING:
    import cvxpy as cp

LARGEST_DECOMPOSED = 40_000
"""Entries of a matrix whose rank is computed: a singular value decomposition of 200 rows takes 10 ms."""


@dataclass(frozen=True, eq=False)
class Adversary:
    """An adversary of bounded knowledge: `max I(A; Y)` over the laws J of (A, T) of enough entropy.

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

    @cached_property
    def uniform(self) -> FloatArray:
        """(A, T) the law under a uniform dataset, whose entropy is the largest."""
        law = np.exp(self.log_counts - log_sum(self.log_counts))
        return np.asarray(law / law.sum())

    @property
    def rounding(self) -> float:
        """What rounding may hide of an entropy of the dataset."""
        return rounding_of(1, max(1.0, self.log_size))

    @property
    def room(self) -> float:
        """How far the entropy may fall below its largest value."""
        return self.log_size - self.entropy

    @property
    def tight(self) -> bool:
        """Whether the entropy is log |X| up to rounding: the dataset is next to uniform."""
        return uniform_alone(self.entropy, self.log_size)

    @cached_property
    def dimensions(self) -> int:
        """How many dimensions the laws of Y given each letter have together; at most so many, for large W."""
        used, outputs = np.isfinite(self.log_counts), self.rows.shape[1]
        if self.rows.size > LARGEST_DECOMPOSED:
            return sum(min(classes, outputs) - 1 for classes in used.sum(axis=1).tolist())
        return sum(row_space(self.rows[classes]).shape[1] - 1 for classes in used)

    def allowed(self, joint: FloatArray) -> FloatArray:
        """The law nearest to J, towards the uniform dataset, whose entropy is b, and rounding, or more."""
        if self.tight:
            return self.uniform
        joint = joint / joint.sum()
        wanted = self.entropy + self.rounding
        have = dataset_entropy(joint, self.log_counts)
        if have >= wanted:
            return joint
        share = min(1.0, (wanted - have) / max(self.log_size - have, 1e-300) * (1 + 1e-9))
        return np.asarray((1 - share) * joint + share * self.uniform)

    @property
    def silent(self) -> bool:
        """Whether nothing can leak: all rows are one, or the record has one letter."""
        return len(self.rows) == 1 or len(self.log_counts) == 1

    def leaked(self, joint: FloatArray) -> float:
        """I(A; Y), less what rounding may have put on it."""
        if self.silent:
            return 0.0
        value = record_information(joint, self.rows)
        return max(0.0, value - self._rounding_of_information(value))

    def _rounding_of_information(self, value: float) -> float:
        """What rounding may do to I, a mean of log-ratios of sizes `I + sqrt(2 I)` on average at most."""
        one = rounding_of(sum(self.rows.shape), 1.0)
        return one * (value + math.sqrt(2 * max(0.0, value)) + one)


def checked_entropy(query: Query, entropy: float) -> float:
    """The bound b on the entropy as a float, at most the float of `log |X|`.

    Raises:
        PrivacyError: it is no number, negative, or above `log |X|` by more than rounding.
    """
    least = real(entropy, "the entropy b", PrivacyError)
    if least < 0:
        raise PrivacyError(f"the entropy b is {least:g} nats: an entropy is at least 0")
    if least > query.log_size + rounding_of(1, max(1.0, query.log_size)):
        raise PrivacyError(
            f"the entropy b is {least!r} nats, above log |X| = {query.log_size!r} of "
            f"{query.records} record(s): no prior has it"
        )
    return min(least, query.log_size)


SHORTFALL_PENALTY = 100.0
"""What a nat of entropy that is short costs at least: far above its price, except near log |X|."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CellRelaxation(Declaration):
    """The most that a record can leak while the laws of Y given its letters stay in a cell, relaxed.

    `I(X_i; Y) = H(Y) + sum_a phi(J_a W)`, J the law of (X_i, T) and `phi(v) = sum_y v_y log(v_y / sum v)`,
    which is convex: on a polytope with vertices v_k it is at most `sum_k lam_k phi(v_k)` where
    `J_a W = sum_k lam_k v_k`. So, with the largest value that is possible:

        maximise    t - short
        subject to  t <= H(y) + sum_{a,k} lam_{a,k} phi(v_{a,k}),  t <= H(X_i),
                    y = sum_a J_a W,  J_a W = sum_k lam_{a,k} v_{a,k},  sum J = 1,  J, lam, short >= 0,
                    H(J) + <J, log c> + short / penalty >= entropy.

    `short` keeps the program feasible where the cell holds no prior of that entropy.

    The problem has cones of the exponential kind only; its variables and constraints have names.

    Attributes:
        rows: (T, M) W.
        log_counts: (A, T) log c; -inf for an empty cell.
        entropy: b, what the entropy of the dataset is at least, in nats.
        penalty: what a nat of entropy that is short costs.
        pairs: (P, 2) letter and class of each entry of `joint`.
        coordinates: (M, R) an orthonormal basis of the span of the rows.
        sizes: (A,) how many vertices each letter's polytope has.
        vertices: (A R, sum of sizes) a parameter: the coordinates of the vertices, a block for each letter.
        heights: (sum of sizes,) a parameter: phi at the vertices.

    Source: [wu2026entropy, Problem 1, Definition 2.1]; the reduction to J and the relaxation are pmlopt's.

    Examples:
        >>> rows = np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> program = cell_relaxation(rows, np.log([[4.0, 4.0], [4.0, 4.0]]), 0.0, [2, 2])
        >>> program.set_cell([rows, rows])
        >>> value = program.problem.solve(solver="CLARABEL")  # log 2 - h(0.1), the capacity of the channel
        >>> round(float(value), 6)
        0.368064
    """

    rows: FloatArray
    log_counts: FloatArray
    entropy: float
    penalty: float
    pairs: IntArray
    coordinates: FloatArray
    sizes: tuple[int, ...]
    vertices: cp.Parameter
    heights: cp.Parameter

    def set_cell(self, cell: Sequence[FloatArray]) -> None:
        """Put the relaxation on a cell of its sizes: for each letter the vertices (K_a, M) of a polytope."""
        rank = self.coordinates.shape[1]
        blocks = np.zeros((len(cell) * rank, sum(self.sizes)))
        column = 0
        for letter, vertices in enumerate(cell):
            part = slice(letter * rank, (letter + 1) * rank), slice(column, column + len(vertices))
            blocks[part] = (vertices @ self.coordinates).T
            column += len(vertices)
        self.vertices.value = blocks
        self.heights.value = negative_entropies(np.vstack(list(cell)))

    @property
    def joint(self) -> FloatArray | None:
        """(A, T) the law J of the last solution, normalised, or None."""
        found = self.variables["joint"].value
        if found is None:
            return None
        joint = np.zeros(self.log_counts.shape)
        joint[tuple(self.pairs.T)] = np.maximum(found, 0.0)
        total = joint.sum()
        return joint / total if total > 0 else None


def cell_relaxation(
    rows: FloatArray,
    log_counts: FloatArray,
    entropy: float,
    sizes: Sequence[int],
    penalty: float = SHORTFALL_PENALTY,
) -> CellRelaxation:
    """Declare the relaxation for cells of given sizes; `set_cell` puts it on one.

    Args:
        rows: (T, M) the rows of the mechanism, one for each class of datasets.
        log_counts: (A, T) the logarithm of how many datasets lie behind each letter and class.
        entropy: b, in nats, below `log |X|`.
        sizes: (A,) how many vertices each letter's polytope has.
        penalty: what a nat of entropy that is short costs.
    """
    import cvxpy as cp
    from scipy import sparse

    used = np.isfinite(log_counts)
    pairs = np.argwhere(used)
    letters, classes = pairs.T
    coordinates = row_space(rows)
    rank, count = coordinates.shape[1], len(log_counts)
    shift = float(log_counts[used].max())
    places = np.arange(len(pairs))
    inner = (rows @ coordinates)[classes]
    at = (letters[:, None] * rank + np.arange(rank)).ravel()
    spread = sparse.csr_array(
        (inner.ravel(), (at, np.repeat(places, rank))), shape=(count * rank, len(pairs))
    )
    of_letters = sparse.csr_array((np.ones(len(pairs)), (letters, places)), shape=(count, len(pairs)))
    joint = cp.Variable(len(pairs), nonneg=True, name="joint")
    weights = cp.Variable(sum(sizes), nonneg=True, name="weights")
    law = cp.Variable(rows.shape[1], name="law")
    marginal = cp.Variable(count, name="marginal")
    leaked = cp.Variable(name="leaked")
    short = cp.Variable(nonneg=True, name="short")
    vertices = cp.Parameter((count * rank, sum(sizes)), name="vertices")
    heights = cp.Parameter(sum(sizes), name="heights")
    uncertain = cp.sum(cp.entr(joint)) + (log_counts[used] - shift) @ joint
    constraints = {
        "entropy": uncertain + short / penalty >= entropy - shift,
        "inside": vertices @ weights == spread @ joint,
        "law": law == rows[classes].T @ joint,
        "total": cp.sum(joint) == 1,
        "marginal": marginal == of_letters @ joint,
        "outputs": leaked <= cp.sum(cp.entr(law)) + heights @ weights,
        "letters": leaked <= cp.sum(cp.entr(marginal)),
    }
    return CellRelaxation(
        problem=problem_of(cp.Maximize(leaked - short), constraints),
        rows=rows,
        log_counts=log_counts,
        entropy=entropy,
        penalty=penalty,
        pairs=pairs,
        coordinates=coordinates,
        sizes=tuple(sizes),
        variables={
            "joint": joint,
            "weights": weights,
            "law": law,
            "marginal": marginal,
            "leaked": leaked,
            "short": short,
        },
        constraints=constraints,
        vertices=vertices,
        heights=heights,
    )


def entropy_penalty(adversary: Adversary) -> float:
    """What a nat of entropy that is short costs: more near the top, where the leakage falls steeply."""
    return max(SHORTFALL_PENALTY, 10.0 / math.sqrt(max(adversary.room, 1e-12)))


def first_relaxation(adversary: Adversary) -> CellRelaxation:
    """The relaxation on the first cell, which holds every law: its optimum bounds what the record leaks."""
    cell = first_cell(adversary.rows, adversary.log_counts)
    sizes = [len(vertices) for vertices in cell]
    found = cell_relaxation(
        adversary.rows, adversary.log_counts, adversary.entropy, sizes, entropy_penalty(adversary)
    )
    found.set_cell(cell)
    return found
