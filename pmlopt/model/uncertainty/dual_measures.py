"""Convex programs over measures, priors times masses, which are compiled once for each number of columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import cp
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

    def _build_program(self, shape: tuple[int, ...]) -> _DualProgram:
        return _DualProgram.build(self._source, shape)

    def find_measures(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> tuple[FloatArray, FloatArray | None]:
        """Find (N, M) measures by a convex program, zeros, which prove the largest gain, where it fails; and,
        where its solver has not all digits, columns that gain about what the measures prove.

        Args:
            p: (N,) the prior of the design.
            gains: (N, M) the columns g.
            exp_neg_epsilon: in (0, 1].
        """
        none = np.zeros(gains.shape)
        unit = float(np.ptp(gains, axis=0).max())
        if unit == 0 or exp_neg_epsilon >= 1:
            return none, None
        program = self.get_program(gains.shape)
        program.costs.value = p[:, None] * (gains - gains.min(axis=0)) / unit
        program.prior.value, program.factor.value = p[:, None], exp_neg_epsilon
        solve_approximately(program.problem)
        measures, columns = program.measures.value, program.excess.dual_value
        if measures is None or columns is None or not np.isfinite([measures, columns]).all():
            return none, gains - gains.min(axis=0)
        sharp = program.problem.status == cp.OPTIMAL
        return unit * np.maximum(measures, 0.0), None if sharp else np.maximum(columns, 0.0)


@dataclass(frozen=True)
class _DualProgram:
    """The program of the best measures, with its parameters, its variable and what prices the columns."""

    problem: cp.Problem
    costs: cp.Parameter
    prior: cp.Parameter
    factor: cp.Parameter
    measures: cp.Variable
    excess: cp.Constraint

    @classmethod
    def build(cls, constrain: MeasureConstraint, shape: tuple[int, ...]) -> _DualProgram:
        """Build the program for gains of a shape."""
        costs, prior = cp.Parameter(shape), cp.Parameter((shape[0], 1))
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
        shape = matrix.shape
        program = self.get_program(shape)
        program.matrix.value = matrix
        solve_approximately(program.problem)
        if program.laws.value is None:
            return None
        parts = np.array([np.asarray(link.dual_value).reshape(shape) for link in program.links])
        return np.asarray(program.laws.value), parts


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
        matrix, laws = cp.Parameter(shape), cp.Variable(shape, nonneg=True)
        own = [cp.Variable(shape) for _ in constraints]
        links = [one == laws for one in own]
        rules = [*links]
        for constrain, copy in zip(constraints, own, strict=True):
            rules += constrain(copy, np.ones((1, shape[1])))
        goal = cp.Minimize(cp.sum(cp.multiply(matrix, laws)))
        return cls(cp.Problem(goal, rules), matrix, laws, links)
