"""The programs of least leakage under a distortion limit, and least distortion under a leakage limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.numbers.arrays import FloatArray, Labels
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.queries import DatasetOrbits, Query
from pmlopt.programs.program import CvxpyModel, Program, build_problem
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.proof import (
    Sense,
    TradeoffLosses,
    TradeoffProof,
    compute_tradeoff_bound,
)

EXTRA_MIXING_SHARES = (0.0, 1e-15, 1e-14, 1e-13, 1e-12)
"""How much further than computed a mechanism is mixed, one after the other, until rounding is overcome."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TradeoffProgram(Program[TradeoffCertificate]):
    """The program of least leakage under a distortion limit, or of least distortion under a leakage limit.

    The worst prior inside makes the problem semi-infinite: `solve` adds the priors that matter one after the
    other. `problem` is the convex program against those that bind at the optimum, which are found when it is
    first looked at; its optimum is that of the program, up to the tolerance. The mechanism depends on the
    dataset only through the classes of `queries.orbits`, which loses nothing.

    Attributes:
        query: f, as a person gave it.
        orbits: the K classes of datasets that the mechanism distinguishes.
        outputs: its M outputs.
        tradeoff: (K, M) the probability of each class times d(f, y), and the entries that may be positive.
        entropy: b, in nats.
        sense: what is minimised, "leakage" (Problem 2) or "distortion" (Problem 3).
        limit: on the other: D, or L in nats.

    Source: [wu2026entropy, Problems 2 and 3 (Definitions 2.2 and 2.3)].

    Examples:
        >>> from pmlopt import leakage_distortion, queries, solve
        >>> program = leakage_distortion(queries.ModularSum(3, 3), 0.2, 1.0)
        >>> round(float(program.problem.solve(solver="CLARABEL")), 5), round(solve(program).value, 5)
        (0.34955, 0.34955)
    """

    query: Query
    orbits: DatasetOrbits
    outputs: Labels
    tradeoff: TradeoffLosses
    entropy: float
    sense: Sense
    limit: float
    tolerance: ClassVar[float] = 1e-6
    maximised = False
    """Leakage and distortion are minimised."""

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
        """Return dataset classes and outputs as labels."""
        return self.orbits.query.values, self.outputs

    @property
    def scale(self) -> float:
        """Return the tolerance unit: one nat, or the best constant's distortion."""
        return 1.0 if self.sense == "leakage" else self.constant_distortion or 1.0

    @property
    def losses(self) -> FloatArray:
        """Return the (K, M) losses weighted by the class probabilities."""
        return self.tradeoff.losses

    @property
    def min_distortion(self) -> float:
        """Return the least expected distortion of any mechanism."""
        return self.tradeoff.min_distortion

    @property
    def constant_distortion(self) -> float:
        """Return the least expected distortion of a constant mechanism."""
        return float(self.losses.sum(axis=0).min())

    @cached_property
    def least_distortion_matrix(self) -> FloatArray:
        """Return the (K, M) deterministic mechanism of least distortion, one output per query value."""
        values = np.unique(self.orbits.values, return_inverse=True)[1].ravel()
        together = np.zeros((int(values.max()) + 1, self.losses.shape[1]))
        np.add.at(together, values, self.losses)  # a class may be so rare that its own losses are 0
        matrix = np.zeros(self.losses.shape)
        matrix[np.arange(len(matrix)), together.argmin(axis=1)[values]] = 1.0
        return matrix

    @cached_property
    def constant_matrix(self) -> FloatArray:
        """Return the (K, M) constant mechanism of least expected distortion."""
        matrix = np.zeros(self.losses.shape)
        matrix[:, int(self.losses.sum(axis=0).argmin())] = 1.0
        return matrix

    @property
    def trivial_bound(self) -> float:
        """Return the trivial lower bound: the least distortion, or zero leakage."""
        return self.min_distortion if self.sense == "distortion" else 0.0

    @cached_property
    def log_counts(self) -> dict[int, FloatArray]:
        """Return (A, K) log-counts of datasets by letter and class, for each kind of record."""
        return {record: self.orbits.query.log_counts(record) for record in self.orbits.query.kinds}

    def build_adversary(self, matrix: FloatArray, record: int) -> BoundedAdversary:
        """Build the leakage problem of a record against a mechanism."""
        return BoundedAdversary(
            matrix, self.log_counts[record], self.entropy, self.orbits.query.log_size
        )

    def compute_bound(self, proof: TradeoffProof) -> float:
        """Compute a lower bound on the objective from dual multipliers, at least the trivial one."""
        return max(
            self.trivial_bound, compute_tradeoff_bound(self.tradeoff, self.sense, self.limit, proof)
        )

    def repair_matrix(self, matrix: FloatArray) -> FloatArray:
        """Repair a solver's matrix to a mechanism, mixed to meet a distortion limit."""
        found = np.where(self.tradeoff.allowed, np.maximum(matrix, 0.0), 0.0)
        # smaller entries of a solver's mechanism are noise
        found = np.where(found > 1e-12, found, 0.0)
        found /= found.sum(axis=1, keepdims=True)
        return found if self.sense == "distortion" else self._mix_within_distortion(found)

    def _mix_within_distortion(self, matrix: FloatArray) -> FloatArray:
        """Mix with the least-distortion mechanism until the distortion limit is met."""
        if not self.tradeoff.allowed.all():  # all that is allowed is as cheap, up to rounding
            return matrix
        spent = self.tradeoff.compute_distortion(matrix)
        if spent <= self.limit:
            return matrix
        weight = (spent - self.limit) / max(spent - self.min_distortion, 1e-300)
        for more in EXTRA_MIXING_SHARES:
            mixed = combine_convexly(matrix, self.least_distortion_matrix, min(1.0, weight + more))
            if self.tradeoff.compute_distortion(mixed) <= self.limit:
                return mixed
        return self.least_distortion_matrix

    def to_mechanism(self, matrix: FloatArray) -> Mechanism:
        """Wrap a matrix as a `Mechanism` with the labels of classes and outputs."""
        return Mechanism(matrix, self.orbits.query.values, self.outputs)


def combine_convexly(matrix: FloatArray, other: FloatArray, weight: float) -> FloatArray:
    """Compute the convex combination `(1 - weight) * matrix + weight * other` of two mechanisms."""
    return (1 - weight) * matrix + weight * other


def build_tradeoff_model(
    tradeoff: TradeoffLosses,
    joints: Sequence[FloatArray],
    sense: Sense,
    limit: float | cp.Parameter,
) -> CvxpyModel:
    """Build the cvxpy model of the best mechanism against finitely many priors.

    With "leakage", Problem 2: minimise t subject to `I_j(q) <= t` and `E[d] <= D`. With "distortion",
    Problem 3: minimise `E[d]` subject to `I_j(q) <= L`. Here `I_j` is I(X_i; Y) under the j-th prior, given
    as the law J of (X_i, class): `sum_{a,y} v log(v / (pi_a u_y))` with `v = J q`, pi and u its sums; it is
    convex in q. The cones are exponential.

    Args:
        tradeoff: losses and support.
        joints: (A, K) each.
        sense: "leakage" to minimise it, with `limit` on the distortion; "distortion" the other way round.
        limit: D, or L in nats; a cvxpy parameter where it is to change between solves.

    Returns:
        The variables "mechanism", and "leakage" in Problem 2; the constraints "rows", "priors" (one row for
        each), in Problem 2 "distortion", where needed "support".

    Source: [wu2026entropy, (21) and (26)] for a finite set of priors; that both are convex is pmlopt's
    (theorems of the paper call the second not).

    Examples:
        >>> hamming = 1 - np.eye(2)
        >>> tradeoff = TradeoffLosses(hamming / 2, np.ones((2, 2), dtype=bool))
        >>> program = build_tradeoff_model(tradeoff, [np.eye(2) / 2], "leakage", 0.1)
        >>> value = program.problem.solve(solver="CLARABEL")  # rate-distortion: log 2 - h(0.1)
        >>> round(float(value), 5)
        0.36806
    """
    matrix = cp.Variable(tradeoff.losses.shape, nonneg=True, name="mechanism")
    leaked = express_informations(matrix, joints)
    spent = cp.sum(cp.multiply(tradeoff.losses, matrix))
    variables = {"mechanism": matrix}
    constraints = {"rows": cp.sum(matrix, axis=1) == 1}
    if sense == "leakage":
        leakage_bound = cp.Variable(name="leakage")
        variables["leakage"] = leakage_bound
        constraints["priors"] = leaked <= leakage_bound
        constraints["distortion"] = spent <= limit
        aim = leakage_bound
    else:
        constraints["priors"] = leaked <= limit
        aim = spent
    if not tradeoff.allowed.all():
        constraints["support"] = matrix[~tradeoff.allowed] == 0
    return CvxpyModel(build_problem(cp.Minimize(aim), constraints), variables, constraints)


def express_informations(matrix: cp.Expression, joints: Sequence[FloatArray]) -> cp.Expression:
    """Build (J,) cvxpy expressions of I(X_i; Y) under each joint law."""
    parts = [joint[joint.sum(axis=1) > 0] for joint in joints]
    letters = [part.sum(axis=1, keepdims=True) for part in parts]
    met = np.vstack(parts)
    alone = np.vstack([mass * part.sum(axis=0) for mass, part in zip(letters, parts, strict=True)])
    which = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    sums = sparse.csr_array((np.ones(len(met)), (which, np.arange(len(met)))))
    return sums @ cp.sum(cp.rel_entr(met @ matrix, alone @ matrix), axis=1)
