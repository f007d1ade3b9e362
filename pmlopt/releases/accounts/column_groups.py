"""Columns of a person in groups: one mechanism on the tuples of each group, designed in turn under one total.

Groups are independent given the row. With the others fixed, `a(x, y')` is the probability of their outputs y'
given the row x, and a column v of the mechanism of group g must satisfy, for all x_g and y',

    max of a(x', y') over the rows x' with x_g, times v[x_g], <= e^total sum_x p(x) a(x, y') v[x_g(x)],

which is linear in v. Each step is a linear program that the current mechanism satisfies, so that the loss
never grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, TypeVar

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, check_positive
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError, ProgramError
from pmlopt.measures import mutual_information
from pmlopt.model.privacy import PML
from pmlopt.programs.column_designs import (
    MAX_TUPLES,
    JointLaw,
    WeightedColumn,
    check_columns,
    find_column,
    joint_design,
    list_outputs,
    read_column_utilities,
    read_joint_law,
)
from pmlopt.programs.designs import design
from pmlopt.programs.exact.rounding import ENTRY_NOISE_ATOL, drop_noise, round_rows_to_grid
from pmlopt.programs.solving import solve
from pmlopt.releases.accounts.joint import MAX_PRODUCT_ENTRIES, multiply_rows
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline, MethodOptions


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """Mechanisms for groups of columns, with their joint level and loss.

    Attributes:
        groups: the columns of each.
        mechanisms: of each, from its tuples to tuples; of a group of one column from its values.
        level: what all of them together reveal about the row, in nats; of very many outcomes an upper bound.
        value: the weighted sum of the expected losses of the columns.
        bound: what no mechanism on the whole rows betters; None where they are too many.
        journal: what each start came to: its name, the loss after each sweep.
    """

    groups: tuple[tuple[str, ...], ...]
    mechanisms: tuple[Mechanism, ...]
    level: float
    value: float
    bound: float | None
    journal: tuple[tuple[str, tuple[float, ...]], ...]


DesignT = TypeVar("DesignT")


class _Group:
    """One group of columns: its tuples, its outputs, and their weighted losses.

    Args:
        prior: of the rows.
        columns: with their losses, of all columns.
        places: of the columns of the group.
    """

    def __init__(
        self, prior: Prior, columns: Sequence[WeightedColumn], places: Sequence[int]
    ) -> None:
        self.columns = [columns[place] for place in places]
        own = [tuple(row[place] for place in places) for row in prior.labels]  # type: ignore[index]
        self.letters = list(dict.fromkeys(own))
        known = {letter: number for number, letter in enumerate(self.letters)}
        self.rows: IntArray = np.array([known[letter] for letter in own])
        self.outputs = list_outputs(self.columns) or self.letters
        self.law = np.bincount(self.rows, weights=prior.pmf)
        self.losses = np.zeros((len(self.letters), len(self.outputs)))
        for place, one in enumerate(self.columns):
            x = [one.prior.labels.index(letter[place]) for letter in self.letters]
            y = [one.outputs.index(output[place]) for output in self.outputs]
            self.losses += one.weight * one.losses[np.ix_(x, y)]

    def compute_loss(self, matrix: FloatArray) -> float:
        """Compute the expected loss of a mechanism of the group."""
        return float(self.law @ (self.losses * matrix).sum(axis=1))

    def multiply_columns(self, parts: Mapping[str, FloatArray]) -> FloatArray | None:
        """Return the product of mechanisms of single columns; None where not all outputs are there."""
        if list_outputs(self.columns) is None:
            return None
        rows = [
            parts[one.name][[one.prior.labels.index(letter[place]) for letter in self.letters]]
            for place, one in enumerate(self.columns)
        ]
        return multiply_rows(rows)

    @property
    def constant(self) -> FloatArray:
        """Return the best mechanism that reveals nothing."""
        found = np.zeros(self.losses.shape)
        found[:, int((self.law @ self.losses).argmin())] = 1.0
        return found

    def make_mechanism(self, matrix: FloatArray) -> Mechanism:
        """Return a matrix with its labels; those of one column are values."""
        single = len(self.columns) == 1
        sides: list[list[Label]] = [
            [label[0] for label in side] if single else list(side)
            for side in (self.letters, self.outputs)
        ]
        return Mechanism(matrix, *sides)


def compute_group_level(
    prior: Prior, groups: Sequence[_Group], matrices: Sequence[FloatArray]
) -> float:
    """Compute what the mechanisms of all groups together reveal about the row, in nats.

    Of more rows times outcomes than are looked at in a second or two it is an upper bound
    (`bound_group_level`).
    """
    parts = [
        matrix[:, matrix.any(axis=0)][group.rows]
        for group, matrix in zip(groups, matrices, strict=True)
    ]
    first, *others = sorted(parts, key=lambda part: part.shape[1])
    entries = prior.size * math.prod(part.shape[1] for part in others)
    if entries > MAX_PRODUCT_ENTRIES or entries * first.shape[1] > 10 * MAX_PRODUCT_ENTRIES:
        return bound_group_level(prior, groups, matrices)
    together = multiply_rows(others) if others else np.ones((prior.size, 1))
    worst = 1.0
    for column in first.T:  # an output of the first group at a time, for the memory
        occurs = column > 0
        outcomes = column[occurs, None] * together[occurs]
        means = prior.pmf[occurs] @ outcomes
        seen = means > 0
        worst = max(worst, float((outcomes.max(axis=0)[seen] / means[seen]).max()))
    return math.log(worst)


def bound_group_level(
    prior: Prior, groups: Sequence[_Group], matrices: Sequence[FloatArray]
) -> float:
    """Bound what the mechanisms of all groups together reveal about the row, without listing outcomes.

    With `r_g(x, z)` the least `P_g(y|z) / P_g(y|x)` over the outputs y of group g that x can have, each
    outcome has `P(y) / P(y|x) >= sum_z p(z) prod_g r_g(x_g, z_g)`. So the level is at most minus the
    logarithm of the least such sum, which is at most the sum of the levels of local differential privacy.
    """
    ratios = [_compute_least_ratios(matrix[:, matrix.any(axis=0)]) for matrix in matrices]
    least = min(
        float(_multiply_ratios(groups, ratios, row) @ prior.pmf) for row in range(prior.size)
    )
    return -math.log(least)


def _compute_least_ratios(matrix: FloatArray) -> FloatArray:
    """Compute the (n, n) least of `P[z, y] / P[x, y]` over the outputs y of x."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array(
            [np.nanmin(np.where(own > 0, matrix / own, np.nan), axis=1) for own in matrix]
        )


def _multiply_ratios(
    groups: Sequence[_Group], ratios: Sequence[FloatArray], row: int
) -> FloatArray:
    """Multiply (N,) the least ratios of groups for a row against all rows."""
    found = np.ones(len(groups[0].rows))
    for group, own in zip(groups, ratios, strict=True):
        found *= own[group.rows[row], group.rows]
    return found


def find_largest_level(
    design_at: Callable[[float], DesignT],
    fits: Callable[[DesignT], bool],
    total: float,
    steps: int = 50,
    deadline: Deadline = NO_DEADLINE,
) -> DesignT:
    """Find the design at the largest level up to a total that fits; at level 0 it must.

    Whether a design fits need not be monotone in the level: from above, the first of the levels that fits is
    taken, and the interval above it halved. After the deadline the best so far is returned.

    Examples:
        >>> round(find_largest_level(lambda level: level, lambda level: level**2 <= 0.5, 1.0), 5)
        0.70711
    """
    low, high = 0.0, total
    best: DesignT | None = None
    for level in np.linspace(total, 0.0, steps, endpoint=False).tolist():
        if deadline.expired:
            break
        if fits(found := design_at(level)):
            best, low = found, level
            break
        high = level
    while best is not None and high - low > total / steps * 2**-14 and not deadline.expired:
        middle = (low + high) / 2
        if fits(found := design_at(middle)):
            best, low = found, middle
        else:
            high = middle
    return design_at(0.0) if best is None else best


def split_evenly(
    joint_law: JointLaw,
    total: float,
    utilities: Mapping[str, Any],
    weights: Mapping[str, float] | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> ColumnGroups:
    """Design each column at one epsilon, the largest that keeps the joint level within a total.

    This is what a person would find by hand: the yardstick for designs together. Where a column has several
    optimal mechanisms, one is taken that keeps the total with those of the others.

    Args:
        joint_law: as for `joint_design`.
        total: of the joint level, in nats.
        utilities: as for `joint_design`.
        weights: as for `joint_design`.
        deadline: of the search; after it the best so far is returned.

    Raises:
        PmloptError: what `joint_design` raises.

    Examples:
        >>> people = {("young", "single"): 1, ("old", "married"): 1}
        >>> apart = split_evenly(people, math.log(1.5), {"age": "hamming", "status": "hamming"})
        >>> apart.level <= math.log(1.5), apart.value > 1.0  # together they lose 1
        (True, True)
    """
    check_positive(total, "the total", PrivacyError)
    prior = read_joint_law(joint_law, check_columns(utilities))
    columns = read_column_utilities(prior, utilities, weights)
    groups = [_Group(prior, columns, [place]) for place in range(len(columns))]

    def design_at(epsilon: float) -> tuple[list[FloatArray], float]:
        if epsilon == 0:
            return [group.constant for group in groups], 0.0
        found = [
            solve(design(one.prior, PML(epsilon), one.part, one.outputs)).matrix for one in columns
        ]
        level = compute_group_level(prior, groups, found)
        if level <= total:
            return found, level
        return _exchange_optimum(prior, groups, found, epsilon, total, deadline) or (found, level)

    best, _ = find_largest_level(design_at, lambda found: found[1] <= total, total, 50, deadline)
    return _finish(prior, groups, best, total)


def _exchange_optimum(
    prior: Prior,
    groups: Sequence[_Group],
    matrices: Sequence[FloatArray],
    epsilon: float,
    total: float,
    deadline: Deadline,
) -> tuple[list[FloatArray], float] | None:
    """Exchange an optimal mechanism under PML(epsilon) for another one with which all keep the total."""
    for place, group in enumerate(groups):
        letters, rows = _list_limits(prior, groups, place, matrices)
        own = np.tile(group.law * math.exp(epsilon - total), (len(group.letters), 1))
        limits = np.r_[letters, np.arange(len(group.letters))], np.vstack([rows, own])
        found = _solve_group(group, limits, matrices[place], math.exp(total), deadline)
        least = group.compute_loss(matrices[place])
        # as near to the optimum as a design is proved to be
        allowed = least + 1e-7 * group.compute_loss(group.constant)
        if found is not None and group.compute_loss(found) <= allowed:
            changed = [*matrices[:place], found, *matrices[place + 1 :]]
            level = compute_group_level(prior, groups, changed)
            if level <= total:
                return changed, level
    return None


def group_design(
    joint_law: JointLaw,
    total: float,
    utilities: Mapping[str, Any],
    groups: Sequence[Sequence[str]] | None = None,
    *,
    weights: Mapping[str, float] | None = None,
    max_tuples: int = 64,
    time_limit: float | None = None,
) -> ColumnGroups:
    """Design one mechanism for each group of columns, in turn, under one total about the row.

    For rows that are too many for `joint_design`, whose one mechanism loses less. The answer never loses more
    than `split_evenly`, one of its starts; the others are constants and mixtures of both.

    Args:
        joint_law: as for `joint_design`; it may have more tuples.
        total: the PML of all mechanisms together about the row, in nats.
        utilities: as for `joint_design`.
        groups: a partition of the columns; left out, those that depend most are joined, by the sum of the
            mutual information of their pairs, as long as a group has no more tuples than `max_tuples`.
        weights: as for `joint_design`.
        max_tuples: of a group that is chosen.
        time_limit: in seconds; the best mechanisms so far are returned.

    Raises:
        ProgramError: the groups are no partition of the columns; and what `joint_design` raises.

    Examples:
        >>> people = {("young", "single"): 1, ("old", "married"): 1}
        >>> utilities = {"age": "hamming", "status": "hamming"}
        >>> found = group_design(people, math.log(1.5), utilities, [["age"], ["status"]])
        >>> found.level <= math.log(1.5), found.bound <= found.value
        (True, True)
    """
    deadline = NO_DEADLINE if time_limit is None else Deadline.after(time_limit)
    names = check_columns(utilities)
    apart = split_evenly(joint_law, total, utilities, weights, deadline.fraction(0.3))
    prior = read_joint_law(joint_law, names)
    columns = read_column_utilities(prior, utilities, weights)
    places = choose_groups(prior, len(names), max_tuples)
    if groups is not None:
        places = _read_groups(groups, names)
    parts = [_Group(prior, columns, own) for own in places]
    by_column = {name: one.matrix for name, one in zip(names, apart.mechanisms, strict=True)}
    constants = [part.constant for part in parts]
    products = [part.multiply_columns(by_column) for part in parts]
    starts = {"constants": constants}
    given = [one for one in products if one is not None]
    if len(given) == len(parts):
        starts["even split"] = given
        for share in (0.25, 0.5, 0.75):
            starts[f"{share:g} of the even split"] = [
                share * one + (1 - share) * other
                for one, other in zip(given, constants, strict=True)
            ]
    best, journal = apart, []
    orders = (range(len(parts)), range(len(parts) - 1, -1, -1))
    for (name, start), order in product(starts.items(), orders):
        found, losses = _improve_in_turn(prior, parts, start, order, total, deadline)
        first = ", ".join(one.name for one in parts[order[0]].columns)
        journal.append((f"{name}, {first} first", tuple(losses)))
        ended = _finish(prior, parts, found, total)
        if ended.value < best.value:
            best = ended
    bound = None
    if prior.size <= MAX_TUPLES and not deadline.expired:
        whole = joint_design(prior, total, utilities, weights=weights)
        bound = solve(whole, time_limit=deadline.remaining(), tolerance=1e-4).bound
    return ColumnGroups(best.groups, best.mechanisms, best.level, best.value, bound, tuple(journal))


def _read_groups(groups: Sequence[Sequence[str]], names: Sequence[str]) -> list[list[int]]:
    """Convert a partition of columns to places; raise an error where it is none."""
    places = [[find_column(name, names, "groups") for name in own] for own in groups]
    listed = sorted(place for own in places for place in own)
    if listed != list(range(len(names))) or not all(places):
        raise ProgramError(
            f"the groups are {groups!r:.80}: name each of the columns {', '.join(names)} in one of them"
        )
    return places


def choose_groups(prior: Prior, count: int, max_tuples: int = 64) -> list[list[int]]:
    """Join the columns that depend most on each other, as long as a group has few tuples.

    Args:
        prior: of the rows, tuples of `count` values.
        count: of the columns.
        max_tuples: distinct tuples of a group.

    Returns:
        The places of the columns of each group.
    """
    rows: Sequence[Any] = prior.labels
    codes = []
    for place in range(count):
        known = {
            value: number for number, value in enumerate(dict.fromkeys(row[place] for row in rows))
        }
        codes.append(np.array([known[row[place]] for row in rows]))
    shared = np.zeros((count, count))
    for one, other in combinations(range(count), 2):
        joint = np.zeros((codes[one].max() + 1, codes[other].max() + 1))
        np.add.at(joint, (codes[one], codes[other]), prior.pmf)
        law = joint.sum(axis=1)
        shared[one, other] = shared[other, one] = mutual_information(
            law / law.sum(), joint / law[:, None]
        )
    groups = [[place] for place in range(count)]

    def count_tuples(places: Sequence[int]) -> int:
        return len(np.unique(np.column_stack([codes[place] for place in places]), axis=0))

    while len(groups) > 1:
        allowed = [
            (float(shared[np.ix_(one, other)].sum()), one, other)
            for one, other in combinations(groups, 2)
            if count_tuples([*one, *other]) <= max_tuples
        ]
        if not allowed or (best := max(allowed, key=lambda found: found[0]))[0] <= 1e-9:
            break
        groups = [own for own in groups if own not in best[1:]] + [sorted([*best[1], *best[2]])]
    return sorted(groups)


def _improve_in_turn(
    prior: Prior,
    groups: Sequence[_Group],
    start: Sequence[FloatArray],
    order: Sequence[int],
    total: float,
    deadline: Deadline,
) -> tuple[list[FloatArray], list[float]]:
    """Design each group with the others fixed until nothing improves; return the loss after each sweep."""
    matrices = list(start)
    losses = [sum(map(_Group.compute_loss, groups, matrices))]
    for _ in range(12):  # two or three are usual
        for place in order:
            group = groups[place]
            if deadline.expired:
                return matrices, losses
            limits = _list_limits(prior, groups, place, matrices)
            found = _solve_group(group, limits, matrices[place], math.exp(total), deadline)
            if found is not None and group.compute_loss(found) < group.compute_loss(
                matrices[place]
            ):
                matrices[place] = found
        losses.append(sum(map(_Group.compute_loss, groups, matrices)))
        if losses[-2] - losses[-1] <= 1e-7 * losses[0]:
            break
    return matrices, losses


def _list_limits(
    prior: Prior, groups: Sequence[_Group], place: int, matrices: Sequence[FloatArray]
) -> tuple[IntArray, FloatArray]:
    """List the limits `v[x] <= e^total <row, v>` on the columns of a group, without those that others imply.

    Where the outcomes of the other groups are many, limits that imply all of them are listed: with the least
    ratios r of the others as in `bound_group_level`, `v[x_g] <= e^total sum_z p(z) prod_h r_h(x, z) v[z_g]`.

    Returns:
        (R,) the letters x, and (R, n) the rows.
    """
    group = groups[place]
    n = len(group.letters)
    others = [one for k, one in enumerate(groups) if k != place]
    parts = [own[:, own.any(axis=0)] for k, own in enumerate(matrices) if k != place]
    outcomes = math.prod(part.shape[1] for part in parts)
    if outcomes * max(prior.size, n * n) <= MAX_PRODUCT_ENTRIES:
        rows = [part[other.rows] for part, other in zip(parts, others, strict=True)]
        together = multiply_rows([np.ones((prior.size, 1)), *rows])
        means = np.zeros((n, outcomes))
        peaks = np.zeros((n, outcomes))
        np.add.at(means, group.rows, prior.pmf[:, None] * together)
        np.maximum.at(peaks, group.rows, together)
        with np.errstate(divide="ignore", invalid="ignore"):
            listed = [(means[:, own > 0] / own[own > 0]).T for own in peaks]
    else:
        ratios = list(map(_compute_least_ratios, parts))
        into = np.zeros((prior.size, n))
        into[np.arange(prior.size), group.rows] = prior.pmf
        implied = np.array(
            [_multiply_ratios(others, ratios, row) @ into for row in range(prior.size)]
        )
        listed = [implied[group.rows == letter] for letter in range(n)]
    kept = list(map(_drop_implied, listed))
    return np.repeat(np.arange(n), list(map(len, kept))), np.vstack(kept)


def _drop_implied(rows: FloatArray) -> FloatArray:
    """Drop rows that are nowhere below another one, which implies them; only equal ones of very many."""
    rows = np.unique(rows.round(15), axis=0)
    if len(rows) > 500:
        return rows
    return rows[[not ((rows <= row).all(axis=1) & (rows < row).any(axis=1)).any() for row in rows]]


def _solve_group(
    group: _Group,
    limits: tuple[IntArray, FloatArray],
    start: FloatArray,
    factor: float,
    deadline: Deadline,
) -> FloatArray | None:
    """Minimise the loss of a group within limits on its columns; None where a solver fails.

    Limits come into the linear program as they are broken: at first those that the start nearly breaks.
    """
    (letters, rows), (n, m) = limits, group.losses.shape
    costs = (group.law[:, None] * group.losses).ravel()
    # a little inside, so that rounding of the answer stays within the limits
    inner = factor * (1 - 1e-10)

    def violations(matrix: FloatArray) -> FloatArray:
        return matrix[letters] - inner * (rows @ matrix)

    chosen = violations(start) > -1e-3 * start.max(axis=0)
    for letter in range(n):  # each entry has a limit at least
        chosen[np.flatnonzero(letters == letter)[:1]] = True
    sums = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    for _ in range(60):
        places, outputs = np.nonzero(chosen)
        part = -inner * rows[places]
        part[np.arange(len(places)), letters[places]] += 1.0
        columns = np.arange(n) * m + outputs[:, None]
        own = sparse.csr_array(
            (part.ravel(), (np.repeat(np.arange(len(places)), n), columns.ravel())),
            shape=(len(places), n * m),
        )
        ends = (
            np.r_[np.ones(n), np.full(len(places), -np.inf)],
            np.r_[np.ones(n), np.zeros(len(places))],
        )
        model = highs.build_sparse_model(costs, (0.0, np.inf), ends, sparse.vstack([sums, own]))
        with highs.lend_solver(model, highs.build_options(MethodOptions(deadline, 1e-9))) as solver:
            solver.run()
            solution = solver.getSolution()
            if not solution.value_valid or deadline.expired:
                return None
            found = np.maximum(np.array(solution.col_value).reshape(n, m), 0.0)
        if np.abs(found.sum(axis=1) - 1).max() > 1e-6:  # limits that no mechanism keeps
            return None
        broken = (violations(found) > 1e-9) & ~chosen
        if not broken.any():
            return np.asarray(found / found.sum(axis=1, keepdims=True))
        chosen |= broken
    return None


def _finish(
    prior: Prior,
    groups: Sequence[_Group],
    matrices: Sequence[FloatArray],
    total: float,
) -> ColumnGroups:
    """Round mechanisms to exact rows, mix in what keeps the total, and measure them."""
    laws = [group.law @ matrix for group, matrix in zip(groups, matrices, strict=True)]
    share = 0.0
    for _ in range(60):
        rounded = [
            round_rows_to_grid(
                drop_noise((1 - share) * matrix + share * law, ENTRY_NOISE_ATOL)
                if share < 1
                else group.constant
            )
            for matrix, law, group in zip(matrices, laws, groups, strict=True)
        ]
        level = compute_group_level(prior, groups, rounded)
        # a margin of more than its floating-point sums are off
        if level <= total - 1e-11:
            break
        share = min(1.0, max(1e-11, 4 * share))
    value = sum(map(_Group.compute_loss, groups, rounded))
    names = tuple(tuple(one.name for one in group.columns) for group in groups)
    found = tuple(map(_Group.make_mechanism, groups, rounded))
    return ColumnGroups(names, found, level, value, None, ())
