"""All post-processings of a mechanism: the linear program of the worst one at one likelihood ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from pmlopt.arrays import FloatArray, Label
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
