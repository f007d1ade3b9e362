"""Mechanisms with equal rows inside groups of classes: smaller programs and cheaper audits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.core.numbers.roots import bisect
from pmlopt.programs.certificate import WarmStart
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.tradeoff.program import TradeoffProgram, combine_convexly
from pmlopt.programs.tradeoff.proof import TradeoffLosses, TradeoffProof


@dataclass(frozen=True, eq=False)
class WorstCasePrior:
    """A prior within the entropy bound, as a joint law of record and class.

    Attributes:
        record: i.
        joint: (A, K).
    """

    record: int
    joint: FloatArray


def split_audit_prior(audit: RecordCertificate, counts: FloatArray) -> FloatArray:
    """Split an audit's worst prior (A, K) uniformly over merged classes."""
    channel = audit.channel
    return divide_groups(audit.joint, counts, channel.log_counts(audit.record), channel.classes)


def divide_groups(
    joint: FloatArray, counts: FloatArray, merged: FloatArray, groups: IntArray
) -> FloatArray:
    """Split a joint law of letter and group (A, K) uniformly over the group's classes.

    Examples:
        >>> counts = np.log([[1.0, 3.0, 2.0]])
        >>> law, groups = np.array([[0.4, 0.6]]), np.array([0, 0, 1])
        >>> divide_groups(law, counts, np.log([[4.0, 2.0]]), groups).round(9).tolist()
        [[0.1, 0.3, 0.6]]
    """
    # a negative group marks a class that is in none: its share is 0
    known = groups >= 0
    shares = np.zeros(counts.shape)
    # -inf less -inf is nan, which np.where replaces by 0 below
    with np.errstate(invalid="ignore"):
        inside = np.exp(counts[:, known] - merged[:, groups[known]])
    shares[:, known] = np.where(np.isfinite(counts[:, known]), inside, 0.0)
    return shares * joint[:, np.maximum(groups, 0)]


def list_binding_priors(proof: TradeoffProof) -> list[WorstCasePrior]:
    """List the priors with non-negligible multipliers in a proof."""
    # priors with less than 1e-3 of the largest weight do not bind
    least = 1e-3 * max((cut.weight for cut in proof.cuts), default=0.0)
    return [WorstCasePrior(cut.record, cut.joint) for cut in proof.cuts if cut.weight > least]


def read_warm_priors(program: TradeoffProgram, restart: WarmStart) -> list[WorstCasePrior]:
    """Read the warm start's priors, mixed until they meet the entropy bound.

    Those of another shape, or that no dataset of this query can have, are left out.
    """
    found = []
    for place in range(len(restart.arrays)):
        record = restart.arrays.get(f"record{place}")
        joint = restart.arrays.get(f"joint{place}")
        if (
            record is None
            or joint is None
            or np.size(record) != 1
            or int(record) not in program.log_counts
        ):
            continue
        adversary = program.build_adversary(program.constant_matrix, int(record))
        law = adversary.check_start(joint)
        if law is not None:
            found.append(WorstCasePrior(int(record), adversary.make_allowed(law)))
    return found


def select_distinct(joints: FloatArray, values: FloatArray, floor: float) -> Sequence[FloatArray]:
    """Select a few distinct laws with values above a floor, largest first."""
    chosen: list[FloatArray] = []
    for place in np.argsort(-values):
        # at most four priors for each kind of records in one round
        if values[place] <= floor or len(chosen) == 4:
            break
        # priors closer than 1e-3 in total variation are not both added
        near = any(np.abs(joints[place] - other).sum() / 2 < 1e-3 for other in chosen)
        if not near:
            chosen.append(joints[place])
    return chosen


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The mechanisms with one common row for each group of classes.

    They are mechanisms of the program: with the rows repeated, a prior leaks the same under both. A prior
    that is uniform inside the groups has the largest entropy among those of the same law of letter and group.

    Attributes:
        program: the program.
        groups: (K,) the group of each class, from 0 on without gaps.
    """

    program: TradeoffProgram
    groups: IntArray

    @property
    def group_count(self) -> int:
        """Return the number of groups."""
        return int(self.groups.max()) + 1

    @property
    def is_finest(self) -> bool:
        """Return whether every group contains one class."""
        return self.group_count == len(self.groups)

    @cached_property
    def membership(self) -> FloatArray:
        """Return the (K, G) indicator matrix of classes in groups."""
        return np.eye(self.group_count)[self.groups]

    @cached_property
    def tradeoff(self) -> TradeoffLosses:
        """Return the (G, M) losses of the groups, with the entries allowed for all their classes."""
        known = self.program.tradeoff
        return TradeoffLosses(
            self.membership.T @ known.losses, self.membership.T @ ~known.allowed == 0
        )

    @cached_property
    def first_classes(self) -> IntArray:
        """Return the (G,) first class of each group."""
        return np.unique(self.groups, return_index=True)[1]

    @cached_property
    def log_counts(self) -> dict[int, FloatArray]:
        """Return (A, G) log-counts of datasets by letter and group, for each kind of record."""
        found = {}
        for record, counts in self.program.log_counts.items():
            # log 0: counts are added as logarithms, since they overflow for many records
            found[record] = np.full((len(counts), self.group_count), -np.inf)
            for merged, row in zip(found[record], counts, strict=True):
                np.logaddexp.at(merged, self.groups, row)
        return found

    def merge_law(self, joint: FloatArray) -> FloatArray:
        """Aggregate a joint law (A, K) of letter and class to groups (A, G)."""
        return joint @ self.membership

    def repeat_rows(self, rows: FloatArray) -> FloatArray:
        """Repeat the (G, M) rows of the groups for all classes, (K, M)."""
        return rows[self.groups]

    def build_adversary(self, matrix: FloatArray, record: int) -> BoundedAdversary:
        """Build the leakage problem of a record against a mechanism with grouped rows."""
        program = self.program
        counts = self.log_counts[record]
        return BoundedAdversary(
            matrix[self.first_classes], counts, program.entropy, program.orbits.query.log_size
        )

    def spread_law(self, joint: FloatArray, record: int) -> FloatArray:
        """Expand a joint law (A, G) to classes (A, K), uniformly inside groups, within the entropy bound."""
        # uniform inside the groups has the largest entropy of its law of letter and group
        law = divide_groups(
            joint, self.program.log_counts[record], self.log_counts[record], self.groups
        )
        return self.program.build_adversary(self.program.constant_matrix, record).make_allowed(law)


def plan_groupings(program: TradeoffProgram) -> list[GroupedRows]:
    """List the groupings to search, coarse to fine.

    Where there are too many classes, neighbours of one value are taken together, each group of about the same
    probability.
    """
    # programs and audits of more than 128 rows take minutes each
    most_groups = 128
    values = program.orbits.values
    classes = len(program.losses)
    coarse = GroupedRows(program, np.unique(values, return_inverse=True)[1].ravel())
    fine = np.arange(classes)
    if classes > most_groups:
        parts = max(1, most_groups // coarse.group_count)
        # pairs, so that no group crosses two values of the query
        places = np.column_stack([coarse.groups, _split_by_mass(program, coarse.groups, parts)])
        fine = np.unique(places, axis=0, return_inverse=True)[1]
    if coarse.is_finest or len(np.unique(fine)) == coarse.group_count:
        return [coarse]
    return [coarse, GroupedRows(program, fine.ravel())]


def _split_by_mass(program: TradeoffProgram, groups: IntArray, parts: int) -> IntArray:
    """Split the classes of each value into parts of about equal probability; return (K,) indices."""
    found = np.zeros(len(groups), dtype=np.int64)
    for value in range(int(groups.max()) + 1):
        inside = np.flatnonzero(groups == value)
        masses = program.orbits.masses[inside]
        # the middle of each class in cumulated mass: its quantile decides the part
        before = np.cumsum(masses) - masses / 2
        found[inside] = np.minimum(
            parts - 1, (before / max(masses.sum(), 1e-300) * parts).astype(np.int64)
        )
    return found


MechanismFamily = Callable[[float], FloatArray]
"""Mechanisms (K, M) by a number from 0, the least distortion, to 1, the uniform answer."""


def build_families(rows: GroupedRows) -> list[MechanismFamily]:
    """Build the symmetric channel and exponential mechanism as one-parameter families.

    Source: [wu2026entropy, (33) and (47)], [mcsherry2007mechanism].
    """
    program = rows.program
    cheapest = program.least_distortion_matrix[rows.first_classes]
    uniform = np.full(cheapest.shape, 1 / cheapest.shape[1])
    masses = np.bincount(rows.groups, program.orbits.masses)[:, None]
    # a group of probability 0 has no loss by dataset: any row will do
    losses = np.where(masses > 0, rows.tradeoff.losses / np.where(masses > 0, masses, 1.0), 0.0)
    # the cheapest output has exponent 0: no row underflows as a whole
    losses -= losses.min(axis=1, keepdims=True)
    spread = float(losses.max()) or 1.0

    def build_symmetric(place: float) -> FloatArray:
        return rows.repeat_rows(combine_convexly(cheapest, uniform, place))

    def build_exponential(place: float) -> FloatArray:
        # the limit of an infinite exponent
        if place <= 0:
            return rows.repeat_rows(cheapest)
        # e^-60 is nothing
        weights = np.exp(losses * (-60.0 * (1 - place) ** 3 / spread))
        return rows.repeat_rows(weights / weights.sum(axis=1, keepdims=True))

    return [build_symmetric, build_exponential]


def find_family_member(rows: GroupedRows, family: MechanismFamily) -> FloatArray:
    """Find the family member of largest distortion within the limit, by bisection."""
    program = rows.program

    def is_within(place: float) -> bool:
        return program.tradeoff.compute_distortion(family(place)) <= program.limit

    if is_within(1.0):
        return family(1.0)
    # the member of the family, to its last digits
    weight = bisect(lambda weight: is_within(1 - weight), 0.0, 1.0, 1e-15)
    return program.repair_matrix(family(1 - weight))
