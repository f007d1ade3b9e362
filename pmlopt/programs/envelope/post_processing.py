"""All post-processings of a mechanism: the linear program of the worst one at one likelihood ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from pmlopt.arrays import BoolArray, FloatArray, Label
from pmlopt.backends.highs import columnwise
from pmlopt.backends.parametric_program import MovingModel, MovingPart
from pmlopt.mechanism import Mechanism, MechanismLike, paired
from pmlopt.prior import Prior, PriorLike
from pmlopt.program import Declaration, Program, problem_of
from pmlopt.result import C_co


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PostProcessings(Program[C_co]):
    """How much probability post-processing can give to outcomes that leak log t or more.

    `problem` is the linear program for one likelihood ratio t: V(t), the largest probability that an outcome
    of a post-processing Z leaks log t or more. Each bad outcome z leaks through a letter x,
    `P(z|x) >= t P(z)`; outcomes that leak through the same letter can be merged, so that one for each letter
    suffices. With `w[x,y] = P(Z = x | Y = y)`: maximise `sum q[y] w[x,y]` subject to
    `sum_y (P[x,y] - t q[y]) w[x,y] >= 0` for each x and `sum_x w[x,y] <= 1` for each y, `w >= 0`.

    `problem` minimises the negative, at the parameter `ratio`, t.

    Attributes:
        prior: N letters.
        given: the mechanism that is processed.
        merged: (N, M') its matrix, rows over their sums, outputs that leak alike made one.
        groups: for each column of `merged` the outputs that it stands for.
        ratio: t, a parameter of `problem`, 1 at first.
    """

    prior: Prior
    given: Mechanism
    merged: FloatArray
    groups: tuple[tuple[int, ...], ...]
    ratio: cp.Parameter

    @property
    def sides(self) -> tuple[tuple[Label, ...] | None, tuple[Label, ...] | None]:
        """The outputs of the mechanism, which are the inputs of a post-processing."""
        return self.given.outputs, None

    @property
    def maximised(self) -> bool:
        """The worst post-processing is wanted."""
        return True

    @property
    def attack(self) -> cp.Expression:
        """(M', N) the post-processing of the merged outputs; rows may sum to less than one."""
        return cp.reshape(self.variables["attack"], self.merged.T.shape, order="C")

    @cached_property
    def law(self) -> FloatArray:
        """(M',) the law of the merged outputs."""
        return np.asarray(self.prior.pmf @ self.merged)

    @cached_property
    def largest_ratios(self) -> FloatArray:
        """(N,) `max_y P[x,y] / q[y]`, above which no outcome can leak through the letter x."""
        return np.asarray((self.merged / self.law).max(axis=1))


def parts_of(prior: PriorLike, mechanism: MechanismLike) -> dict[str, Any]:
    """The attributes of `PostProcessings` for a prior and a mechanism.

    Raises:
        MechanismError: sizes or labels of prior and mechanism disagree.
    """
    p, m = paired(prior, mechanism)
    groups = m.similar_outputs()
    rows = m.matrix / m.matrix.sum(axis=1, keepdims=True)
    merged = np.column_stack([rows[:, group].sum(axis=1) for group in groups])
    ratio = cp.Parameter(nonneg=True, value=1.0, name="ratio")
    return {
        "declare": _declared(p.pmf @ merged, merged, ratio),
        "prior": p,
        "given": m,
        "merged": merged,
        "groups": tuple(map(tuple, groups)),
        "ratio": ratio,
    }


def _declared(law: FloatArray, merged: FloatArray, ratio: cp.Parameter) -> Callable[[], Declaration]:
    return lambda: _declaration(law, merged, ratio)


def _declaration(law: FloatArray, merged: FloatArray, ratio: cp.Parameter) -> Declaration:
    n, k = merged.shape
    letters, outputs = np.tile(np.arange(n), k), np.repeat(np.arange(k), n)  # columns first
    places = np.arange(n * k)
    gain = sparse.csr_array((merged[letters, outputs], (letters, places)), shape=(n, n * k))
    cost = sparse.csr_array((law[outputs], (letters, places)), shape=(n, n * k))
    whole = sparse.csr_array((np.ones(n * k), (outputs, places)), shape=(k, n * k))
    attack = cp.Variable(n * k, nonneg=True, name="attack")
    mass = cp.Variable(n, nonneg=True, name="mass")
    constraints = {
        "mass": cost @ attack == mass,
        "leaks": gain @ attack >= ratio * mass,
        "outputs": whole @ attack <= 1,
    }
    problem = problem_of(cp.Minimize(-cp.sum(mass)), constraints)
    return Declaration(problem, {"attack": attack, "mass": mass}, constraints)


class RatioPrograms:
    """The linear programs of `PostProcessings.problem` at one ratio after another, in HiGHS without cvxpy.

    Args:
        program: of the mechanism.
    """

    def __init__(self, program: PostProcessings[Any]) -> None:
        (n, k), law = program.merged.shape, program.law
        self.shape = k, n
        # columns: attack (the letters of one output after another), mass; rows: leaks, mass, outputs
        entries = np.stack(
            [program.merged.T, np.broadcast_to(law[:, None], (k, n)), np.ones((k, n))], axis=-1
        )
        letters, outputs = np.tile(np.arange(n), k), np.repeat(np.arange(k), n)
        rows = np.stack([letters, n + letters, 2 * n + outputs], axis=-1)
        masses, ones = np.arange(n), np.ones(n)
        where = np.concatenate([rows.ravel(), np.stack([masses, n + masses], axis=-1).ravel()])
        starts = np.concatenate([3 * np.arange(n * k), 3 * n * k + 2 * np.arange(n + 1)])
        values = np.concatenate([entries.ravel(), -np.ones(2 * n)])
        upper = np.concatenate([np.full(n, np.inf), np.zeros(n), np.ones(k)])
        lower = np.concatenate([np.zeros(2 * n), np.full(k, -np.inf)])
        costs = np.concatenate([np.zeros(n * k), -ones])
        model = columnwise(costs, (0.0, np.inf), (lower, upper), (starts, where, values))
        self._moving = MovingModel(model, MovingPart(masses, n * k + masses, 0 * ones, -ones))

    def solve(
        self, ratio: float, closed: BoolArray, seconds: float | None
    ) -> tuple[float, float, FloatArray, FloatArray]:
        """V(t) at a ratio t.

        Args:
            ratio: t.
            closed: (N,) the letters whose outcome is fixed at nothing.
            seconds: the time limit.

        Returns:
            V(t), the derivative of -V, the (M', N) attack and the (N,) multipliers of its letters.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum.
        """
        k, n = self.shape
        self._moving.fix(np.arange(n * k), np.tile(closed, k))
        found = self._moving.solve(ratio, seconds)
        return -found.optimum, found.slope, found.values[: n * k].reshape(k, n), found.duals[:n]
