"""The Blackwell order of two mechanisms: whether one is a processing of the other, with a witness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from pmlopt.core.arrays import SUM_ATOL, FloatArray, check_in_interval
from pmlopt.core.lazy_imports import sparse
from pmlopt.data.mechanism import Mechanism, as_mechanism
from pmlopt.errors import MechanismError, SolverError
from pmlopt.measures.trace_counts import read_fraction
from pmlopt.solvers import highs

ExactMatrix: TypeAlias = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class InformationOrder:
    """Whether a mechanism P is at most as informative as Q, with what proves it.

    It is true where `holds` is: P is a processing of Q, `P[x,z] = sum_y Q[x,y] processing[y][z]`, with a
    total variation distance of at most `distance` in each row. Where it is not, `gain` separates the two:
    guesses z of the letter x that gain `gain[x][z]`, the prior's `p[x]` included, earn more from P than
    from Q,

        sum_z sum_x P[x,z] gain[x][z] - sum_y max_z sum_x Q[x,y] gain[x][z] = separation > 0.

    All numbers are exact fractions, and `check` decides from them.

    Attributes:
        less: the (N, K) mechanism P.
        more: the (N, M) mechanism Q.
        holds: whether P is a processing of Q.
        processing: (M, K), where it is.
        gain: (N, K) nonnegative, where it is not; the largest of each row sum to at most one.
        tolerance: the distance up to which P is a processing; 0 for exact numbers.
    """

    less: ExactMatrix
    more: ExactMatrix
    holds: bool
    processing: ExactMatrix | None
    gain: ExactMatrix | None
    tolerance: Fraction

    def __bool__(self) -> bool:
        """Return whether P is a processing of Q."""
        return self.holds

    @property
    def distance(self) -> Fraction | None:
        """Return the largest total variation distance of a row of P from the processing's."""
        if self.processing is None:
            return None
        columns = list(zip(*self.processing, strict=True))
        made = [[_dot(row, column) for column in columns] for row in self.more]
        return max(
            sum((abs(a - b) for a, b in zip(one, other, strict=True)), Fraction(0)) / 2
            for one, other in zip(self.less, made, strict=True)
        )

    @property
    def separation(self) -> Fraction | None:
        """Return what the gain earns more from P, by guessing its output, than from Q by the best guesses."""
        if self.gain is None:
            return None
        guesses = list(zip(*self.gain, strict=True))
        best = [
            max(_dot(column, one) for one in guesses) for column in zip(*self.more, strict=True)
        ]
        return sum(map(_dot, self.less, self.gain), Fraction(0)) - sum(best, Fraction(0))

    def check(self) -> bool:
        """Return whether the witness proves the verdict, in exact arithmetic."""
        distance, separation = self.distance, self.separation
        witness = (self.processing if self.holds else self.gain) or ()
        if not all(entry >= 0 for row in witness for entry in row):
            return False
        if self.holds:
            sums_to_one = all(sum(row) == 1 for row in witness)
            return distance is not None and distance <= self.tolerance and sums_to_one
        return (
            separation is not None and separation > self.tolerance and sum(map(max, witness)) <= 1
        )


def is_less_informative(less: Any, more: Any, tolerance: float | None = None) -> InformationOrder:
    """Decide whether a mechanism P is at most as informative as Q in the Blackwell order.

    P is a processing of Q if and only if no gain function and prior earn more from P than from Q. Both are
    sought by one linear program, Le Cam's deficiency

        min over processings R of max_x |P_x - (Q R)_x|_TV
          = max over gains of sum_z sum_x P[x,z] g[x,z] - sum_y max_z sum_x Q[x,y] g[x,z],

    and then proved in fractions: the processing by solving for it exactly where P and Q are exact, the gain
    by its value.

    Args:
        less: P, a mechanism or (N, K) numbers: floats, fractions, or text such as "1/3".
        more: Q, (N, M), of the same letters in the same order.
        tolerance: a total variation distance up to which P counts as a processing. Where it is left out, 0 if
            all entries are whole numbers, fractions or text, and else 1e-8, for the rounding of floats.

    Returns:
        An `InformationOrder`, which is true where P is a processing of Q.

    Raises:
        MechanismError: a matrix is no mechanism, exact rows do not sum to one, or the letters differ.
        SolverError: neither could be proved within the tolerance.

    Source: [blackwell1953equivalent] for the equivalence; [lecam1964sufficiency] for the deficiency.

    Examples:
        >>> response = [["3/4", "1/4"], ["1/4", "3/4"]]
        >>> twice = [["5/8", "3/8"], ["3/8", "5/8"]]
        >>> found = is_less_informative(twice, response)
        >>> found.holds, found.processing[0], found.check()
        (True, (Fraction(3, 4), Fraction(1, 4)), True)
        >>> other = is_less_informative(response, twice)
        >>> other.holds, other.separation, other.check()
        (False, Fraction(1, 8), True)
    """
    (p, p_exact), (q, q_exact) = _read_exact(less, "the first"), _read_exact(more, "the second")
    named = isinstance(less, Mechanism) and isinstance(more, Mechanism)
    if len(p) != len(q) or (named and less.inputs != more.inputs):
        raise MechanismError(
            f"the mechanisms have {len(p)} and {len(q)} letters, or different letters: give two on the same "
            "letters, in the same order"
        )
    default = 0.0 if p_exact and q_exact else 1e-8
    room = default if tolerance is None else tolerance
    allowed = Fraction(check_in_interval(room, "[0, 1]", "the tolerance", MechanismError))
    kernel, gains = _solve_deficiency(np.array(p, dtype=float), np.array(q, dtype=float))
    for grid in (2**30, 2**60):
        found = InformationOrder(p, q, False, None, _round_gains(gains, grid), allowed)
        if found.check():
            return found
    for candidate in (
        _round_kernel(kernel),
        *(_solve_exactly(p, q, kernel, noise) for noise in (1e-9, 1e-6)),
    ):
        found = InformationOrder(p, q, True, candidate, None, allowed)
        if candidate is not None and found.check():
            return found
    raise SolverError(
        "it is not decided whether the one mechanism is a processing of the other within a total variation "
        f"distance of {room:g}: allow a larger tolerance"
    )


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    """Compute the sum of products."""
    return sum((a * b for a, b in zip(left, right, strict=True) if a and b), Fraction(0))


def _read_exact(data: Any, what: str) -> tuple[ExactMatrix, bool]:
    """Read a mechanism as exact fractions, and whether none of them was a float."""
    if isinstance(data, Mechanism) or not isinstance(data, list | tuple | np.ndarray):
        data = as_mechanism(data).matrix
    rows = [list(row) for row in data]
    if not rows or not rows[0] or len(set(map(len, rows))) > 1:
        raise MechanismError(f"{what} mechanism must be a regular table of numbers")
    is_exact = not any(isinstance(entry, float | np.floating) for row in rows for entry in row)
    exact = tuple(
        tuple(read_fraction(entry, f"an entry of {what} mechanism") for entry in row)
        for row in rows
    )
    worst = max((sum(row, Fraction(0)) for row in exact), key=lambda total: abs(total - 1))
    if abs(worst - 1) > (0 if is_exact else SUM_ATOL):
        raise MechanismError(
            f"a row of {what} mechanism sums to {worst if is_exact else float(worst)}, not to one"
        )
    return exact, is_exact


def _solve_deficiency(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve for the (M, K) processing nearest to P, and the (N, K) gains that separate most.

    The variables are the processing by rows, the parts of P above it by rows, and the distance.
    """
    (n, outputs), inputs = p.shape, q.shape[1]
    eye, ones, empty = sparse.eye_array, np.ones((1, outputs)), sparse.csr_array
    covered = [sparse.kron(q, eye(outputs)), eye(p.size), empty((p.size, 1))]
    rows = [sparse.kron(eye(inputs), ones), empty((inputs, p.size + 1))]
    within = [empty((n, inputs * outputs)), sparse.kron(eye(n), -ones), np.ones((n, 1))]
    system = sparse.vstack([sparse.hstack(parts) for parts in (covered, rows, within)]).tocsc()
    lower = np.concatenate([p.ravel(), np.ones(inputs), np.zeros(n)])
    upper = np.concatenate([np.full(p.size, np.inf), np.ones(inputs), np.full(n, np.inf)])
    costs = np.append(np.zeros(system.shape[1] - 1), 1.0)
    model = highs.build_sparse_model(costs, (0.0, np.inf), (lower, upper), system)
    solver = highs.load_model(model, highs.RESTART_OPTIONS)
    solver.run()
    solution = solver.getSolution()
    if not (solution.value_valid and solution.dual_valid):
        raise SolverError("HiGHS did not solve the linear program of the two mechanisms")
    kernel = np.array(solution.col_value)[: inputs * outputs].reshape(inputs, outputs)
    return np.maximum(kernel, 0.0), np.array(solution.row_dual)[: p.size].reshape(p.shape)


def _round_gains(gains: FloatArray, grid: int) -> ExactMatrix:
    """Round gains to multiples of 1 / grid, and scale them so that the largest of each row sum to one."""
    whole = [[round(entry * grid) for entry in row] for row in np.clip(gains, 0.0, 1.0).tolist()]
    total = max(1, sum(map(max, whole)))
    return tuple(tuple(Fraction(entry, total) for entry in row) for row in whole)


def _round_kernel(kernel: FloatArray) -> ExactMatrix:
    """Convert a processing to fractions, and divide its rows by their sums."""
    exact = [[Fraction(entry) for entry in row] for row in kernel.tolist()]
    return tuple(tuple(entry / sum(row) for entry in row) for row in exact)


def _solve_exactly(
    p: ExactMatrix, q: ExactMatrix, near: FloatArray, noise: float
) -> ExactMatrix | None:
    """Solve `Q R = P`, `R 1 = 1` in fractions, with zeros where a solver's processing has noise.

    Gauss-Jordan elimination, from the largest entries on, which may move most; entries that remain free are
    rounded. None where there is no solution.
    """
    inputs, outputs = near.shape
    places = sorted(np.argwhere(near > noise).tolist(), key=lambda place: -near[*place])
    equations = [
        [q[x][y] * (column == z) for y, column in places] + [p[x][z]]
        for x in range(len(p))
        for z in range(outputs)
    ] + [[Fraction(y == row) for y, _ in places] + [Fraction(1)] for row in range(inputs)]
    pivots: list[int] = []
    for k in range(len(places)):
        done = len(pivots)
        first = next((r for r in range(done, len(equations)) if equations[r][k]), None)
        if first is None:
            continue
        equations[done], equations[first] = equations[first], equations[done]
        lead = [value / equations[done][k] for value in equations[done]]
        for r, row in enumerate(equations):
            if row[k]:
                equations[r] = [a - row[k] * b if b else a for a, b in zip(row, lead, strict=True)]
        equations[done] = lead
        pivots.append(k)
    if any(row[-1] for row in equations[len(pivots) :]):
        return None
    values = [Fraction(near[*place]).limit_denominator(10**6) for place in places]
    others = [k for k in range(len(places)) if k not in pivots]
    for row, k in zip(equations, pivots, strict=False):
        values[k] = row[-1] - sum((row[j] * values[j] for j in others), Fraction(0))
    found = {tuple(place): value for place, value in zip(places, values, strict=True)}
    return tuple(
        tuple(found.get((y, z), Fraction(0)) for z in range(outputs)) for y in range(inputs)
    )
