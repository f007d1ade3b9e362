"""All post-processings of a mechanism: the linear program of the worst one at one likelihood ratio."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, Label
from pmlopt.data.mechanism import Mechanism, MechanismLike, paired
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.uncertainty.vertices import ConvexHull
from pmlopt.programs.certificate import C_co
from pmlopt.programs.envelope.certificate import RationalMechanism
from pmlopt.programs.program import Declaration, Program, problem_of
from pmlopt.solvers.clock import Clock
from pmlopt.solvers.highs import columnwise
from pmlopt.solvers.parametric_program import MovingModel, MovingPart

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PostProcessings(Program[C_co]):
    """How much probability post-processing can give to outcomes that leak log t or more.

    `problem` is the linear program for one likelihood ratio t: V(t), the largest probability that an outcome
    of a post-processing Z leaks log t or more. Each bad outcome z leaks through a letter x,
    `P(z|x) >= t P(z)`; outcomes that leak through the same letter can be merged, so that one for each letter
    suffices. With `w[x,y] = P(Z = x | Y = y)`: maximise `sum q[y] w[x,y]` subject to
    `sum_y (P[x,y] - t q[y]) w[x,y] >= 0` for each x and `sum_x w[x,y] <= 1` for each y, `w >= 0`.

    `problem` minimises the negative, at the parameter `ratio`, t.

    Over a set of priors each output is there twice, with its least and its largest probability over the set,
    each copy with a weight, its `ends`: those of an output sum to one, and the mean probabilities of all
    outputs do. A copy is processed up to its weight. The optimum is at least V(t) under every prior of the
    set.

    Attributes:
        prior: N letters; over a set only its letters count.
        over: a set of priors, or None.
        given: the mechanism that is processed.
        merged: (N, M') its matrix, rows over their sums, outputs that leak alike made one.
        groups: for each column of `merged` the outputs that it stands for.
        ratio: t, a parameter of `problem`, 1 at first.
    """

    prior: Prior
    over: PriorSet | None
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
        """(K, N) the post-processing of the merged outputs, copies apart; rows may sum to less than one."""
        import cvxpy as cp

        return cp.reshape(self.variables["attack"], self.columns.T.shape, order="C")

    @cached_property
    def columns(self) -> FloatArray:
        """(N, K) `merged`; over a set twice, K = 2 M'."""
        return _copies(self.merged, self.over)

    @cached_property
    def law(self) -> FloatArray:
        """(K,) the law of the merged outputs; over a set their least probabilities, then their largest."""
        return _law(self.prior, self.merged, self.over)

    @cached_property
    def largest_ratios(self) -> FloatArray:
        """(N,) `max_y P[x,y] / q[y]`, above which no outcome can leak through the letter x."""
        with np.errstate(divide="ignore"):
            ratios = self.columns / self.law
        return np.asarray(np.where(self.columns > 0, ratios, 0.0).max(axis=1))

    @cached_property
    def exact(self) -> RationalMechanism:
        """The mechanism with its prior, or with all priors of the set, as rationals: for what is proved."""
        if self.over is None:
            return RationalMechanism.of(self.prior, self.given.matrix)
        return RationalMechanism.over(self.over, self.given.matrix)

    @property
    def multipliers(self) -> int:
        """How many multipliers a bound takes: one for each letter, over a set of priors one more."""
        return self.prior.size + (self.over is not None)

    def padded(self, weights: FloatArray) -> FloatArray:
        """(N,) multipliers of the letters with as many zeros as a bound takes besides."""
        return np.append(weights, np.zeros(self.multipliers - len(weights)))

    def split(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """(N,) the multipliers lam of the letters, none negative, and nu, that of the sum of probabilities.

        nu is there over a set of priors alone, and 0 otherwise.
        """
        n = self.prior.size
        return np.maximum(multipliers[:n], 0.0), float(multipliers[n]) if len(multipliers) > n else 0.0

    def of_outputs(self, letters: FloatArray, nobody: FloatArray) -> FloatArray:
        """(R, M') the (N, K) terms of the letters and the (K,) of nobody, copies in one column."""
        return np.vstack([letters, nobody]).reshape(-1, self.merged.shape[1])

    def together(self, point: FloatArray) -> FloatArray:
        """(M', N) a (K, N) point, the copies of an output added up."""
        return np.asarray(point.reshape(-1, *self.merged.T.shape).sum(axis=0))


def _copies(merged: FloatArray, over: PriorSet | None) -> FloatArray:
    return merged if over is None else np.tile(merged, (1, 2))


def _law(prior: Prior, merged: FloatArray, over: PriorSet | None) -> FloatArray:
    if over is None:
        return np.asarray(prior.pmf @ merged)
    return np.concatenate([np.maximum(over.least_mean(merged), 0.0), -over.least_mean(-merged)])


def parts_of(prior: PriorLike, mechanism: MechanismLike, over: PriorSet | None = None) -> dict[str, Any]:
    """The attributes of `PostProcessings` for a prior, or a set of priors, and a mechanism.

    Raises:
        MechanismError: sizes or labels of prior and mechanism disagree.
        PrivacyError: `over` is no set of priors, or on other letters.
    """
    import cvxpy as cp

    p, m = paired(prior, mechanism)
    if over is not None:
        if not isinstance(over, PriorSet):
            raise PrivacyError(f"`over` is {over!r}: give a set of priors such as L1Ball(prior, 0.1)")
        over.check_letters(p.labels, "the prior")
    groups = m.similar_outputs()
    rows = m.matrix / m.matrix.sum(axis=1, keepdims=True)
    merged = np.column_stack([rows[:, group].sum(axis=1) for group in groups])
    ratio = cp.Parameter(nonneg=True, value=1.0, name="ratio")
    return {
        "declare": lambda: _declaration(_law(p, merged, over), _copies(merged, over), len(groups), ratio),
        "prior": p,
        "over": over,
        "given": m,
        "merged": merged,
        "groups": tuple(map(tuple, groups)),
        "ratio": ratio,
    }


def _declaration(
    law: FloatArray, columns: FloatArray, outputs_in_all: int, ratio: cp.Parameter
) -> Declaration:
    import cvxpy as cp
    from scipy import sparse

    n, k = columns.shape
    letters, outputs = np.tile(np.arange(n), k), np.repeat(np.arange(k), n)  # columns first
    places = np.arange(n * k)
    gain = sparse.csr_array((columns[letters, outputs], (letters, places)), shape=(n, n * k))
    cost = sparse.csr_array((law[outputs], (letters, places)), shape=(n, n * k))
    whole = sparse.csr_array((np.ones(n * k), (outputs, places)), shape=(k, n * k))
    variables = {
        "attack": cp.Variable(n * k, nonneg=True, name="attack"),
        "mass": cp.Variable(n, nonneg=True, name="mass"),
    }
    attack, mass = variables["attack"], variables["mass"]
    constraints: dict[str, cp.Constraint] = {
        "mass": cost @ attack == mass,
        "leaks": gain @ attack >= ratio * mass,
    }
    if k == outputs_in_all:
        constraints["outputs"] = whole @ attack <= 1
    else:
        ends = variables["ends"] = cp.Variable(k, nonneg=True, name="ends")
        constraints["outputs"] = whole @ attack <= ends
        constraints["ends"] = ends[:outputs_in_all] + ends[outputs_in_all:] == 1
        constraints["total"] = law @ ends == 1
    return Declaration(problem_of(cp.Minimize(-cp.sum(mass)), constraints), variables, constraints)


ENTRY_NOISE = 1e-12
"""Scaled entries of a solver's point up to this become zero: a hundredth of HiGHS' feasibility tolerance."""

LARGEST_MOVE = 8.0
"""A program is scaled anew where the ratio is this many times the one that it was scaled for, or a share of
it: entries move with it."""


class RatioPrograms:
    """The linear programs of `PostProcessings.problem` at one ratio after another, in HiGHS without cvxpy.

    HiGHS' tolerances are absolute. So probabilities count as shares of a mass, that of the outcomes in
    question, and no entry that matters is far from one: the entries of output y are in units of
    `mass / q[y]`, or less where they tell more than t, and what is to spare in units of t times the mass.

    Args:
        program: of the mechanism.
        mass: about what the worst outcomes have together; delta, where that is asked for.
    """

    def __init__(self, program: PostProcessings[Any], mass: float) -> None:
        (n, k), self._mass, self._program = program.columns.shape, mass, program
        self.shape = k, n
        self._at, self._units = math.nan, np.ones((n, k))
        self._moving: MovingModel | None = None

    def _scaled(self, ratio: float) -> MovingModel:
        """The program with the units of a ratio: attack (one output after another), and over a set the ends.

        Rows: leaks, outputs, and over a set the ends and their total.
        """
        from scipy import sparse

        program, (k, n) = self._program, self.shape
        law, m, single = program.law, program.merged.shape[1], program.over is None
        spare = ratio * self._mass
        largest = np.maximum(np.abs(program.columns - ratio * law), ratio * law)
        self._at, self._units = ratio, np.minimum(1.0, spare / np.maximum(largest, spare))
        units = self._units.T.ravel()
        letters, outputs, places = np.tile(np.arange(n), k), np.repeat(np.arange(k), n), np.arange(n * k)
        ends = n * k + np.arange(k)
        gain, cost = program.columns[letters, outputs] * units / spare, law[outputs] * units / spare
        tops = self._units.max(axis=0) if single else np.ones(k)
        parts = [(letters, places, gain - ratio * cost), (n + outputs, places, units / tops[outputs])]
        if not single:
            parts += [
                (n + np.arange(k), ends, -np.ones(k)),
                (n + k + np.arange(k) % m, ends, np.ones(k)),
                (np.full(k, n + k + m), ends, law),
            ]
        rows, columns, values = map(np.concatenate, zip(*parts, strict=True))
        equal = np.ones(0 if single else m + 1)
        sizes = (n + k + len(equal), n * k + (0 if single else k))
        matrix = sparse.csc_array((values, (rows, columns)), shape=sizes)
        lower = np.concatenate([np.zeros(n), np.full(k, -np.inf), equal])
        upper = np.concatenate([np.full(n, np.inf), 1 / tops if single else np.zeros(k), equal])
        costs, most = np.zeros(sizes[1]), np.ones(sizes[1])
        costs[: n * k], most[: n * k] = -law[outputs] * units / self._mass, 1 / units
        entries = matrix.indptr, matrix.indices, matrix.data
        model = columnwise(costs, (0.0, most), (lower, upper), entries)
        return MovingModel(model, MovingPart(letters, places, gain, -cost))

    def solve(
        self, ratio: float, closed: BoolArray, clock: Clock
    ) -> tuple[float, float, FloatArray, FloatArray]:
        """V(t) at a ratio t.

        Args:
            ratio: t.
            closed: (N,) the letters whose outcome is fixed at nothing.
            clock: what is left of the time.

        Returns:
            V(t), the derivative of -V, the (K, N) attack and the (N,) multipliers of its letters;
            over a set there is one more, of the sum of the probabilities.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum.
        """
        k, n = self.shape
        if self._moving is None or not 1 / LARGEST_MOVE <= ratio / self._at <= LARGEST_MOVE:
            self._moving = self._scaled(ratio)
        self._moving.fix(np.arange(n * k), np.tile(closed, k))
        found = self._moving.solve(ratio, clock)
        point = found.values[: n * k].reshape(k, n)
        point = np.where(point > ENTRY_NOISE, point * self._units.T, 0.0)
        lam = found.duals[:n] / self._at
        if self._program.over is not None:
            lam = np.append(lam, -self._mass * found.duals[-1])
        return -self._mass * found.optimum, self._mass * found.slope, point, lam


MAX_PRIORS = 8
"""How many priors of a set are searched: those that look worst before any linear program."""

INTERIOR_SHARE = 1e-12
"""A prior without some letter is moved so far towards the middle of the set, for a `Prior` has no zeros."""


def candidate_priors(
    over: PriorSet, merged: FloatArray, labels: tuple[Label, ...], leaks: Callable[[Prior], float]
) -> tuple[Prior, ...]:
    """The priors of a set that leak most by a quick measure: `MAX_PRIORS` of its extreme points.

    Extreme points are those at which an output or a letter is least or most likely, and their middle; of
    `ConvexHull` all.

    Args:
        over: the set.
        merged: (N, M) the mechanism.
        labels: of the letters.
        leaks: the quick measure.
    """
    directions = np.hstack([merged, np.eye(len(merged))])
    ends = [over.worst_prior(sign * column) for column in directions.T for sign in (1.0, -1.0)]
    if isinstance(over, ConvexHull):
        ends += list(over.laws)
    points = np.unique(np.maximum(ends, 0.0), axis=0)
    middle = points.mean(axis=0)
    points = np.vstack([middle, points])
    missing = (points == 0).any(axis=1, keepdims=True)
    points = np.where(missing, (1 - INTERIOR_SHARE) * points + INTERIOR_SHARE * middle, points)
    priors = [Prior(point / point.sum(), labels) for point in points]
    return tuple(sorted(priors, key=leaks, reverse=True)[:MAX_PRIORS])
