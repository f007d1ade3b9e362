"""Convex programs of the multipliers that prove a bound of finite order about a secret."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.privacy.of_order import View, express_norms
from pmlopt.model.uncertainty.dual_measures import CompiledPrograms
from pmlopt.solvers.approximate_minimum import solve_approximately

PriceSource: TypeAlias = tuple[list[View], FloatArray, float]
"""The joint laws as views, the prior of the data, and the dual order beta."""


class BestPrices(CompiledPrograms[PriceSource, "_PriceProgram"]):
    """The multipliers of norms that prove little about the gain of columns.

    Args:
        source: the joint laws, the prior and the dual order.
    """

    def _build_program(self, shape: tuple[int, ...]) -> _PriceProgram:
        outputs, far = shape
        return _PriceProgram.build(self._source, outputs, bool(far))

    def find_prices(self, gains: FloatArray, rooms: Sequence[float], far: bool) -> list[FloatArray]:
        """Find (S, M) multipliers for each joint law; zeros where the program fails.

        With `far` prices are far above their differences, where what they cost is a deviation: exactly for
        order 2, else up to the share of epsilon. Only the differences matter then.

        Args:
            gains: (N, M) of columns, up to a size of 1.
            rooms: the logarithm of the largest norm under each joint law.
            far: whether prices are far above their differences.
        """
        program, beta = self.get_program((gains.shape[1], far)), self._source[2]
        program.gains.value = gains
        for cost, room in zip(program.costs, rooms, strict=True):
            if not far:
                cost.value = math.exp(room)
            else:
                cost.value = math.sqrt(math.expm1(2 * room) if beta == 2 else 2 * room * (beta - 1))
        solve_approximately(program.problem)
        return [
            np.zeros(price.shape) if price.value is None else np.asarray(price.value)
            for price in program.prices
        ]


@dataclass(frozen=True)
class _PriceProgram:
    """The program of the best multipliers, with its parameters and its variables."""

    problem: cp.Problem
    gains: cp.Parameter
    costs: list[cp.Parameter]
    prices: list[cp.Variable]

    @classmethod
    def build(cls, source: PriceSource, outputs: int, far: bool) -> _PriceProgram:
        """Build the program for columns of a number of outputs."""
        views, pmf, beta = source
        gains = cp.Parameter((len(pmf), outputs))
        costs = [cp.Parameter(nonneg=True) for _ in views]
        left, prices, rules = gains, [], []
        for (weights, given, total), cost in zip(views, costs, strict=True):
            secret = weights / total
            joint = (secret[:, None] * given / pmf).T
            length = cp.Variable((1, outputs))
            price = cp.Variable((len(secret), outputs), nonneg=not far)
            if far:
                centring = np.eye(len(secret)) - secret[None, :]
                deviations = np.sqrt(secret)[:, None] * centring
                rules.append(cp.norm(deviations @ price, 2, axis=0) <= length[0])
                left = left - joint @ centring @ price
            else:
                rules.append(express_norms(secret, price, beta) <= length[0])
                left = left - joint @ price
            left = left + joint.sum(axis=1, keepdims=True) @ (cost * length)
            prices.append(price)
        problem = cp.Problem(cp.Minimize(cp.sum(cp.max(left, axis=0))), rules)
        return cls(problem, gains, costs, prices)
