"""The worst post-processing: how much mass can be given to outcomes that leak a given amount."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cvxpy as cp
import numpy as np
from scipy import sparse

from pmlopt.arrays import FloatArray
from pmlopt.mechanism import Mechanism, MechanismLike, paired
from pmlopt.prior import PriorLike
from pmlopt.program import Declaration, Program, problem_of


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeProgram(Program):
    """`V(t) = max sum_z P(Z = z leaks log t or more)` over all post-processings Z of a mechanism.

    Each bad outcome z leaks through a letter x, `P(z|x) >= t P(z)`; outcomes that leak through the same
    letter can be merged, so that one for each letter suffices. With `w[x,y] = P(Z = x | Y = y)`:
    maximise `sum q[y] w[x,y]` subject to `sum_y (P[x,y] - t q[y]) w[x,y] >= 0` for each x and
    `sum_x w[x,y] <= 1` for each y, `w >= 0`. `problem` minimises the negative, at the parameter `ratio`, t.
    The envelope at delta is the logarithm of the largest t with `V(t) >= delta`.

    Attributes:
        given: the mechanism that is processed.
        merged: (N, M) its matrix, outputs that leak alike made one.
        groups: for each column of `merged` the outputs that it stands for.
        ratio: t, a parameter of `problem`, 1 at first.

    Source: ENV, eq. (8) and Theorem 2; the linear program is pmlopt's.

    Examples:
        >>> program = envelope_program([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        >>> program.ratio.value = 1.5
        >>> round(-float(program.problem.solve(solver="HIGHS")), 9)
        1.0
    """

    given: Mechanism
    merged: FloatArray
    groups: tuple[tuple[int, ...], ...]
    ratio: cp.Parameter

    @property
    def mechanism(self) -> cp.Expression:
        """(M', N) the post-processing of the merged outputs; rows may sum to less than one."""
        return cp.reshape(self.variables["attack"], self.merged.T.shape, order="C")

    @cached_property
    def law(self) -> FloatArray:
        """(M',) of the merged outputs."""
        return np.asarray(self.prior.pmf @ self.merged)


def envelope_program(prior: PriorLike, mechanism: MechanismLike) -> EnvelopeProgram:
    """Declare the program of the worst post-processing.

    Args:
        prior: N letters.
        mechanism: (N, M).

    Raises:
        MechanismError: sizes or labels of prior and mechanism disagree.
    """
    p, m = paired(prior, mechanism)
    groups = m.similar_outputs()
    merged = np.column_stack([m.matrix[:, group].sum(axis=1) for group in groups])
    n, k = merged.shape
    law = p.pmf @ merged
    letters, outputs = np.tile(np.arange(n), k), np.repeat(np.arange(k), n)  # columns first
    places = np.arange(n * k)
    gain = sparse.csr_array((merged[letters, outputs], (letters, places)), shape=(n, n * k))
    cost = sparse.csr_array((law[outputs], (letters, places)), shape=(n, n * k))
    whole = sparse.csr_array((np.ones(n * k), (outputs, places)), shape=(k, n * k))
    attack = cp.Variable(n * k, nonneg=True, name="attack")
    ratio = cp.Parameter(nonneg=True, value=1.0, name="ratio")
    mass = cp.Variable(n, nonneg=True, name="mass")
    constraints = {
        "mass": cost @ attack == mass,
        "leaks": gain @ attack >= ratio * mass,
        "outputs": whole @ attack <= 1,
    }
    problem = problem_of(cp.Minimize(-cp.sum(mass)), constraints)
    return EnvelopeProgram(
        declare=Declaration(problem, {"attack": attack, "mass": mass}, constraints).itself,
        prior=p,
        outputs=None,
        given=m,
        merged=merged,
        groups=tuple(map(tuple, groups)),
        ratio=ratio,
    )
