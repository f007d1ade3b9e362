"""Convex programs over measures, priors times masses, which are compiled once for each number of columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.solvers.approximate_minimum import solve_approximately

MeasureConstraint: TypeAlias = "Callable[[cp.Expression, Any], list[cp.Constraint]]"
"""Builds the constraints by which (N, M) measures are priors of a set times (1, M) masses."""


Source = TypeVar("Source")
CompiledProgram = TypeVar("CompiledProgram")


class CompiledPrograms(ABC, Generic[Source, CompiledProgram]):
    """The programs of one source, each of which is compiled once for a shape of columns.

    Args:
        source: what the programs are built from.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._compiled: dict[tuple[int, ...], CompiledProgram] = {}

    @abstractmethod
    def _build_program(self, shape: tuple[int, ...]) -> CompiledProgram:
        """Build the program for columns of a shape."""

    def get_program(self, shape: tuple[int, ...]) -> CompiledProgram:
        """Return the program for columns of a shape, which is built the first time."""
        if shape not in self._compiled:
            self._compiled[shape] = self._build_program(shape)
        return self._compiled[shape]

    @staticmethod
    def _find_by_columns(
        find: Callable[[FloatArray], list[FloatArray] | None], columns: FloatArray
    ) -> list[FloatArray] | None:
        """Find what a program gives for columns together or, where its solver fails at that, for each.

        Args:
            find: arrays whose last axis is that of the columns, None where the solver fails.
            columns: (N, M).
        """
        found = find(columns)
        if found is not None or columns.shape[1] == 1:
            return found
        single: list[list[FloatArray]] = []
        for column in columns.T:
            one = find(column[:, None])
            if one is None:
                return None
            single.append(one)
        return [np.concatenate(parts, axis=-1) for parts in zip(*single, strict=True)]

    def __reduce__(self) -> Any:
        """Copy and pickle what the programs are built from: those that are compiled do not."""
        return type(self), (self._source,)


class BestMeasures(CompiledPrograms[MeasureConstraint, "_DualProgram"]):
    """The measures over a set of priors of which `bound_gain_by_measures` proves little.

    The least tau of a column is `min tau` under `sum_x s[x] <= e^-eps theta` and
    `s >= max(0, p (g - tau) + theta Q)`, which is jointly convex in tau, s and the measure theta Q.

    Args:
        source: the constraints of the set.
    """

    def __init__(self, source: MeasureConstraint) -> None:
        super().__init__(source)
        self._answers: dict[Any, tuple[FloatArray, FloatArray | None]] = {}

    def _build_program(self, shape: tuple[int, ...]) -> _DualProgram:
        return _DualProgram.build(self._source, shape)

    def find_measures(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> tuple[FloatArray, FloatArray | None]:
        """Find (N, M) measures by a convex program, for a column where it fails zeros, which prove the
        largest gain; and, where its solver has not all digits, columns that gain about what they prove.

        The last answers are kept: what proved the least of a few bounds is asked for again.

        Args:
            p: (N,) the prior of the design.
            gains: (N, M) the columns g.
            exp_neg_epsilon: in (0, 1].
        """
        if np.ptp(gains, axis=0).max() == 0 or exp_neg_epsilon >= 1:
            return np.zeros(gains.shape), None
        question = p.tobytes(), gains.shape, gains.tobytes(), exp_neg_epsilon
        found = self._answers.get(question)
        if found is None:
            found = self._answers[question] = self._find_new_measures(p, gains, exp_neg_epsilon)
            for oldest in list(self._answers)[:-3]:
                self._answers.pop(oldest, None)
        return found

    def _find_new_measures(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> tuple[FloatArray, FloatArray | None]:
        """Solve the programs of all columns; see `find_measures`."""

        def find(some: FloatArray) -> list[FloatArray] | None:
            found = self._solve(p, some, exp_neg_epsilon)
            if found is None and some.shape[1] == 1:
                return [np.zeros(some.shape), some - some.min(), np.zeros(1)]
            return found

        found = cast("list[FloatArray]", self._find_by_columns(find, gains))
        measures, columns, sharp = found
        return measures, None if sharp.all() else columns

    def _solve(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> list[FloatArray] | None:
        """Solve the program, for measures, the columns that they price, and whether these are sharp."""
        program = self.get_program(gains.shape)
        unit = program.solve(p, gains, exp_neg_epsilon)
        if unit is None:
            return None
        measures = np.array(program.measures.value)
        columns = np.array(program.excess.dual_value)
        if not np.isfinite([measures, columns]).all():
            return None
        sharp = np.full(gains.shape[1], program.problem.status == cp.OPTIMAL)
        return [unit * np.maximum(measures, 0.0), np.maximum(columns, 0.0), sharp]


@dataclass(frozen=True)
class GainProgram:
    """A program of the measures that prove the gain of columns, with its parameters."""

    problem: cp.Problem
    costs: cp.Parameter
    prior: cp.Parameter
    factor: cp.Parameter

    def solve(self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float) -> float | None:
        """Solve the program, for the gain that its variables count in; None where its solver fails."""
        unit = float(np.ptp(gains, axis=0).max()) or 1.0
        self.costs.value = p[:, None] * (gains - gains.min(axis=0)) / unit
        self.prior.value = p[:, None]
        self.factor.value = exp_neg_epsilon
        return unit if solve_approximately(self.problem) else None


@dataclass(frozen=True)
class _DualProgram(GainProgram):
    """The program of the best measures, with its variable and what prices the columns."""

    measures: cp.Variable
    excess: cp.Constraint

    @classmethod
    def build(cls, constrain: MeasureConstraint, shape: tuple[int, ...]) -> _DualProgram:
        """Build the program for gains of a shape."""
        costs = cp.Parameter(shape)
        prior = cp.Parameter((shape[0], 1))
        factor = cp.Parameter(nonneg=True)
        measures, shares = (cp.Variable(shape, nonneg=True) for _ in range(2))
        masses, tau = (cp.Variable((1, shape[1]), nonneg=True) for _ in range(2))
        excess = costs - prior @ tau + measures <= shares
        rules = [
            excess,
            cp.sum(shares, axis=0, keepdims=True) <= factor * masses,
            *constrain(measures, masses),
        ]
        problem = cp.Problem(cp.Minimize(cp.sum(tau)), rules)
        return cls(problem, costs, prior, factor, measures, excess)


class CommonPriors(CompiledPrograms[Sequence[MeasureConstraint], "_MeanProgram"]):
    """The priors of least mean that several sets have in common.

    Args:
        source: the constraints, one for each of K sets.
    """

    def _build_program(self, shape: tuple[int, ...]) -> _MeanProgram:
        return _MeanProgram.build(self._source, shape)

    def find_laws(self, matrix: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Find (N, M) priors of least mean for the columns of a matrix, and (K, N, M) parts of the columns
        that prove it, both as near as a solver comes; None where it finds no prior.
        """
        found = self._find_by_columns(self._solve, matrix)
        return None if found is None else (found[0], found[1])

    def _solve(self, matrix: FloatArray) -> list[FloatArray] | None:
        """Solve the program, for the priors and the parts."""
        program = self.get_program(matrix.shape)
        program.matrix.value = matrix
        if not solve_approximately(program.problem):
            return None
        parts = [np.asarray(link.dual_value).reshape(matrix.shape) for link in program.links]
        return [np.asarray(program.laws.value), np.array(parts)]


@dataclass(frozen=True)
class _MeanProgram:
    """The program of least means, with its parameter, its variable and what links the sets to it."""

    problem: cp.Problem
    matrix: cp.Parameter
    laws: cp.Variable
    links: list[cp.Constraint]

    @classmethod
    def build(
        cls, constraints: Sequence[MeasureConstraint], shape: tuple[int, ...]
    ) -> _MeanProgram:
        """Build the program for columns of a shape."""
        matrix = cp.Parameter(shape)
        laws = cp.Variable(shape, nonneg=True)
        own = [cp.Variable(shape) for _ in constraints]
        links = [one == laws for one in own]
        rules = [*links]
        for constrain, copy in zip(constraints, own, strict=True):
            rules += constrain(copy, np.ones((1, shape[1])))
        goal = cp.Minimize(cp.sum(cp.multiply(matrix, laws)))
        return cls(cp.Problem(goal, rules), matrix, laws, links)
