"""Noise tables of statistical offices: mechanisms on counts, by intervals or integer cell keys."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Labels, check_integer
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.errors import MechanismError
from pmlopt.programs.linear.certificate import AffineConstraint

PTABLE = ("i", "j", "p", "v", "p_int_lb", "p_int_ub")
"""The columns of a ptable: count, released count, probability, noise, and the interval of cell keys."""

KEYS = ("pcv", "ckey", "pvalue")
"""The columns of a table by whole cell keys: count, cell key, noise."""


def list_ptable_rows(mechanism: MechanismLike) -> list[tuple[int, int, float, int, float, float]]:
    """List each count's noise values with their cell-key intervals in [0, 1], in the format of R's ptable.

    Args:
        mechanism: whose inputs and outputs are counts, such as a design with `Unbiased` and `Variance`.

    Returns:
        Rows of the columns `PTABLE`, for each count in ascending order of the released ones; the intervals
        of a count add up to [0, 1].

    Raises:
        MechanismError: a label is no whole number.

    Source: [giessing2016computational], and the package ptable of [enderle2023ptable].

    Examples:
        >>> for row in list_ptable_rows(Mechanism([[0.25, 0.5, 0.25]], [1], [0, 1, 2])):
        ...     print(row)
        (1, 0, 0.25, -1, 0.0, 0.25)
        (1, 1, 0.5, 0, 0.25, 0.75)
        (1, 2, 0.25, 1, 0.75, 1.0)
    """
    m = as_mechanism(mechanism)
    counts = _read_counts(m.inputs, "inputs")
    released = _read_counts(m.outputs, "outputs")
    order = np.argsort(released)
    rows = []
    for place in np.argsort(counts).tolist():
        chances = m.matrix[place, order]
        ends = np.cumsum(chances)
        ends = np.append(
            0.0, np.where(np.arange(len(ends)) < np.flatnonzero(chances)[-1], ends, 1.0)
        )
        for column in np.flatnonzero(chances).tolist():
            count = int(counts[place])
            new = int(released[order[column]])
            ends_here = float(ends[column]), float(ends[column + 1])
            rows.append((count, new, float(chances[column]), new - count, *ends_here))
    return rows


MAX_KEY_ROWS = 4_000_000
"""Rows of a table by whole keys: a few hundred megabytes, and far more than the 256 keys that are usual."""


CONSTRAINT_RTOL = 1e-9
"""By which share of its size a constraint may be broken by what floats hold of rounded numbers."""


def round_to_keys(
    mechanism: MechanismLike, keys: int = 256, constraints: Iterable[AffineConstraint] = ()
) -> Mechanism:
    """Round a mechanism's probabilities to multiples of 1 / keys, and recompute its properties.

    Each row is rounded down, and the keys that are left go to the largest remainders: entries move by less
    than 1 / keys. Where that breaks a constraint on the row, such as that noise has no bias or a variance of
    at most a limit, the nearest whole numbers that keep it take their place (an integer program). Zeros stay
    zeros. Constraints that tie several rows together are not looked at: `find_violated_constraints` has them.

    Args:
        mechanism: (N, M).
        keys: how many cell keys there are.
        constraints: those that a design kept, `result.certificate.added_rows`.

    Raises:
        MechanismError: there are fewer keys than a row has outputs, so that one would get none, or so many
            that the table would have more than `MAX_KEY_ROWS` rows.

    Examples:
        >>> round_to_keys([[0.7, 0.3], [0.31, 0.69]], 4).matrix.tolist()
        [[0.75, 0.25], [0.25, 0.75]]
    """
    from pmlopt.programs.exact.rounding import round_rows_to_grid

    m = as_mechanism(mechanism)
    count = _check_keys(keys, len(m.inputs))
    if count < int((m.matrix > 0).sum(axis=1).max()):
        raise MechanismError(f"{count} keys are fewer than the outputs of a row: give more keys")
    rounded = round_rows_to_grid(m.matrix, count)
    by_letter = _group_rows_by_letter(constraints, rounded.shape)
    for x, rows in enumerate(by_letter):
        if all(row.is_met_by(rounded[x]) for row in rows):
            continue
        found = _find_integer_row(m.matrix[x], count, rows)
        if found is not None:
            rounded[x] = found
    return Mechanism(rounded, m.inputs, m.outputs)


def find_violated_constraints(
    mechanism: MechanismLike, constraints: Iterable[AffineConstraint]
) -> dict[str, float]:
    """Return the relative violation of each violated constraint.

    Args:
        mechanism: (N, M).
        constraints: those that a design kept, `result.certificate.added_rows`.
    """
    matrix = as_mechanism(mechanism).matrix
    found = {one.name: one.max_relative_violation(matrix) for one in constraints}
    return {name: violation for name, violation in found.items() if violation > CONSTRAINT_RTOL}


def find_sufficient_keys(
    mechanism: MechanismLike, keys: int, constraints: Iterable[AffineConstraint]
) -> int | None:
    """Search a slightly larger number of keys with which rounding keeps the constraints; None without one.

    Noise of -1 and 2 has no bias where two thirds are -1: of 64 keys no whole number is two thirds.
    """
    rows = tuple(constraints)
    # Numbers of keys that are tried one after another where constraints cannot be kept with those requested.
    most = min(keys + 16, MAX_KEY_ROWS // len(as_mechanism(mechanism).inputs))
    tried = range(keys + 1, most + 1)
    kept = (
        more
        for more in tried
        if not find_violated_constraints(round_to_keys(mechanism, more, rows), rows)
    )
    return next(kept, None)


def compute_noise_moments(mechanism: MechanismLike) -> tuple[FloatArray, FloatArray]:
    """Compute the (N,) means and (N,) variances of a count mechanism's noise.

    Raises:
        MechanismError: a label is no whole number.

    Examples:
        >>> bias, variance = compute_noise_moments(Mechanism([[0.25, 0.5, 0.25]], [1], [0, 1, 2]))
        >>> bias.tolist(), variance.tolist()
        ([0.0], [0.5])
    """
    m = as_mechanism(mechanism)
    counts = _read_counts(m.inputs, "inputs")
    released = _read_counts(m.outputs, "outputs")
    noise = (released[None, :] - counts[:, None]).astype(float)
    bias = (m.matrix * noise).sum(axis=1)
    return bias, (m.matrix * (noise - bias[:, None]) ** 2).sum(axis=1)


def add_zero_row(mechanism: MechanismLike) -> Mechanism:
    """Add a row to a count mechanism that releases 0 unchanged, where it has none.

    Cell key software looks each count up, and empty cells get no noise.

    Examples:
        >>> add_zero_row(Mechanism([[0.25, 0.75]], [1], [1, 2])).matrix.tolist()
        [[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]]
    """
    m = as_mechanism(mechanism)
    _read_counts(m.inputs, "inputs")
    if 0 in m.inputs:
        return m
    matrix = m.matrix
    outputs = m.outputs
    if 0 not in outputs:
        matrix = np.column_stack([np.zeros(len(matrix)), matrix])
        outputs = (0, *outputs)
    row = np.array([float(output == 0) for output in outputs])
    return Mechanism(np.vstack([matrix, row]), (*m.inputs, 0), tuple(outputs))


@dataclass(frozen=True, eq=False)
class _RowConstraint:
    """A linear constraint `<coefficients, row> = limit` or `<=` on one mechanism row."""

    coefficients: FloatArray
    limit: float
    equal: bool

    def is_met_by(self, row: FloatArray) -> bool:
        """Return whether a row satisfies the constraint, up to rounding."""
        over = float(self.coefficients @ row) - self.limit
        room = CONSTRAINT_RTOL * (float(np.abs(self.coefficients) @ row) + abs(self.limit))
        return abs(over) <= room if self.equal else over <= room

    def integer_bounds(self, keys: int) -> tuple[float, float]:
        """Return the integer interval allowed for the constraint's value in numbers of keys."""
        most = Fraction(self.limit) * keys
        if not self.equal and (self.coefficients == np.rint(self.coefficients)).all():
            most = Fraction(math.floor(most))  # the sum is a whole number, too
        return float(most) if self.equal else -math.inf, float(most)


def _group_rows_by_letter(
    constraints: Iterable[AffineConstraint], shape: tuple[int, ...]
) -> list[list[_RowConstraint]]:
    """Group the rows of single-row constraints by mechanism row."""
    found: list[list[_RowConstraint]] = [[] for _ in range(shape[0])]
    for one in constraints:
        if one.coefficients.shape[1:] != shape:
            raise MechanismError(f"the constraint {one.name!r} is on another mechanism")
        for coefficients, offset in zip(one.coefficients, one.offset.tolist(), strict=True):
            letters = np.flatnonzero(coefficients.any(axis=1))
            if len(letters) == 1:
                found[letters[0]].append(
                    _RowConstraint(coefficients[letters[0]], -offset, one.equal)
                )
    return found


def _find_integer_row(
    target: FloatArray, keys: int, rows: list[_RowConstraint]
) -> FloatArray | None:
    """Find the nearest integer row that satisfies the constraints; None where the search fails."""
    support = np.flatnonzero(target)
    size = len(support)
    wanted = target[support] * keys
    unit = np.eye(size)
    # the numbers of the row come first, then their distances from those that are wanted
    of_row = np.append(np.ones(size), np.zeros(size))
    upper = np.append(np.full(size, float(keys)), np.full(size, np.inf))
    bounded = [optimize.LinearConstraint(of_row, keys, keys)]
    for row in rows:
        scale = float(np.abs(row.coefficients[support]).max()) or 1.0
        low, high = row.integer_bounds(keys)
        whole = np.append(row.coefficients[support] / scale, np.zeros(size))
        bounded.append(optimize.LinearConstraint(whole, low / scale, high / scale))
    bounded.append(optimize.LinearConstraint(np.hstack([unit, -unit]), -np.inf, wanted))
    bounded.append(optimize.LinearConstraint(np.hstack([unit, unit]), wanted, np.inf))
    # How long the whole numbers of one row are looked for.
    solved = optimize.milp(
        1 - of_row,
        integrality=of_row,
        bounds=optimize.Bounds(0, upper),
        constraints=bounded,
        options={"time_limit": 10.0},
    )
    if solved.x is None:
        return None
    found = np.zeros(len(target))
    found[support] = np.rint(solved.x[:size])
    if found.sum() != keys or not all(row.is_met_by(found / keys) for row in rows):
        return None
    return found / keys


def list_key_rows(mechanism: MechanismLike, keys: int = 256) -> list[tuple[int, int, int]]:
    """List each count's noise at every integer cell key.

    Args:
        mechanism: as that of `list_ptable_rows`, with probabilities of whole numbers of keys.
        keys: how many cell keys there are.

    Returns:
        Rows of the columns `KEYS`.

    Raises:
        MechanismError: a probability is no whole number of keys, a label no whole number, or there are more
            than `MAX_KEY_ROWS` rows.

    Examples:
        >>> list_key_rows(Mechanism([[0.25, 0.5, 0.25]], [1], [0, 1, 2]), 4)
        [(1, 0, -1), (1, 1, 0), (1, 2, 0), (1, 3, 1)]
    """
    m = as_mechanism(mechanism)
    count = _check_keys(keys, len(m.inputs))
    shares = m.matrix * count
    if np.abs(shares - np.rint(shares)).max() > 1e-9 * count:
        raise MechanismError(
            f"a probability is no multiple of 1/{count}: take rounded_to_keys(mechanism, {count}) first, and "
            "measure what it leaks"
        )
    rows: list[tuple[int, int, int]] = []
    taken: Counter[int] = Counter()
    for count_now, _, chance, noise, _, _ in list_ptable_rows(m):
        more = range(taken[count_now], taken[count_now] + round(chance * count))
        rows.extend((count_now, key, noise) for key in more)
        taken[count_now] = more.stop
    return rows


def _check_keys(keys: int, counts: int) -> int:
    """Validate a number of keys; raise a MechanismError for too long a table."""
    number = check_integer(keys, "the number of keys", MechanismError)
    if number * counts > MAX_KEY_ROWS:
        raise MechanismError(
            f"{number} keys for {counts} counts make {number * counts:,} rows, and a table has "
            f"{MAX_KEY_ROWS:,} at most: give at most {MAX_KEY_ROWS // counts:,} keys"
        )
    return number


def _read_counts(labels: Labels, what: str) -> IntArray:
    """Validate labels as integer counts."""
    for label in labels:
        if not isinstance(label, int | np.integer) or isinstance(label, bool):
            raise MechanismError(
                f"the {what} are labels such as {label!r}: a table of noise is on counts"
            )
        if abs(int(label)) >= 2**62:
            raise MechanismError(
                f"the {what} have the label {label}: a table of noise is on counts below 2^62"
            )
    return np.array(labels, dtype=np.int64)
