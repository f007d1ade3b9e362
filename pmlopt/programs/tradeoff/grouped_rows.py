"""Mechanisms whose rows are equal within groups of classes: fewer rows, and audits that cost less."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray, IntArray
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.tradeoff.priors import divided
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.tradeoff.proof import Tradeoff

MOST_GROUPS = 128
"""Rows that a search tells apart at most: past so many its programs and audits take minutes each."""


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The mechanisms of a program with one row for each group of classes.

    They are mechanisms of the program: with the rows repeated, a prior leaks the same under both. A prior
    that is uniform inside the groups has the largest entropy among those of the same law of letter and group.

    Attributes:
        program: the program.
        groups: (K,) the group of each class, from 0 on without gaps.
    """

    program: TradeoffProgram
    groups: IntArray

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.groups.max()) + 1

    @property
    def all(self) -> bool:
        """Whether each class is a group of its own."""
        return self.count == len(self.groups)

    @cached_property
    def tradeoff(self) -> Tradeoff:
        """The losses (G, M) of the groups, and the entries that every class of a group allows."""
        known = self.program.tradeoff
        losses = np.zeros((self.count, known.losses.shape[1]))
        np.add.at(losses, self.groups, known.losses)
        allowed: BoolArray = np.ones(losses.shape, dtype=bool)
        np.logical_and.at(allowed, self.groups, known.allowed)
        return Tradeoff(losses, allowed)

    @cached_property
    def first(self) -> IntArray:
        """(G,) the first class of each group."""
        return np.unique(self.groups, return_index=True)[1]

    @cached_property
    def log_counts(self) -> dict[int, FloatArray]:
        """(A, G) the logarithms of the counts of letters and groups, for one record of each kind."""
        found = {}
        for record, counts in self.program.log_counts.items():
            merged = np.full((len(counts), self.count), -np.inf)
            for letter, row in enumerate(counts):
                np.logaddexp.at(merged[letter], self.groups, row)
            found[record] = merged
        return found

    def merged(self, joint: FloatArray) -> FloatArray:
        """(A, G) a law of letter and class as one of letter and group."""
        found = np.zeros((len(joint), self.count))
        np.add.at(found.T, self.groups, joint.T)
        return found

    def repeated(self, rows: FloatArray) -> FloatArray:
        """(K, M) the rows (G, M) of the groups, repeated for their classes."""
        return np.asarray(rows[self.groups])

    def adversary(self, matrix: FloatArray, record: int) -> Adversary:
        """Problem 1 against a mechanism (K, M) with equal rows inside the groups."""
        program = self.program
        counts = self.log_counts[record]
        return Adversary(matrix[self.first], counts, program.entropy, program.orbits.query.log_size)

    def spread(self, joint: FloatArray, record: int) -> FloatArray:
        """(A, K) a law (A, G) of letter and group, uniform inside the groups, within the entropy bound."""
        counts = self.program.log_counts[record]
        law = divided(joint, counts, self.log_counts[record], self.groups)
        return self.program.adversary(self.program.constant, record).allowed(law)


def searched_rows(program: TradeoffProgram) -> list[GroupedRows]:
    """The rows that a search tells apart, few first: those of the values, then all, or as many as can be.

    Where there are too many classes, neighbours of one value are taken together, each group of about the same
    probability.
    """
    values, classes = program.orbits.values, len(program.losses)
    coarse = GroupedRows(program, np.unique(values, return_inverse=True)[1].ravel())
    fine = np.arange(classes)
    if classes > MOST_GROUPS:
        parts = max(1, MOST_GROUPS // coarse.count)
        fine = np.unique(coarse.groups * parts + _parts(program, coarse.groups, parts), return_inverse=True)[
            1
        ]
    if coarse.all or len(np.unique(fine)) == coarse.count:
        return [coarse]
    return [coarse, GroupedRows(program, fine.ravel())]


def _parts(program: TradeoffProgram, groups: IntArray, parts: int) -> IntArray:
    """(K,) the part of its value that each class belongs to: parts of about the same probability."""
    found = np.zeros(len(groups), dtype=np.int64)
    for value in range(int(groups.max()) + 1):
        inside = np.flatnonzero(groups == value)
        masses = program.orbits.masses[inside]
        before = np.cumsum(masses) - masses / 2
        found[inside] = np.minimum(parts - 1, (before / max(masses.sum(), 1e-300) * parts).astype(np.int64))
    return found
