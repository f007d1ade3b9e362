"""The Blackwell order of two mechanisms: whether one is a processing of the other, with a witness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray, check_in_interval
from pmlopt.core.lazy_imports import sparse
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import MechanismError, SolverError
from pmlopt.measures.trace_counts import read_fraction

ExactMatrix: TypeAlias = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class InformationOrder:
    """Whether a mechanism P is at most as informative as Q, with what proves it.

    It is true where `holds` is: P is a processing of Q, `P[x,z] = sum_y Q[x,y] processing[y][z]`, with a
    total variation distance of at most `distance` in each row. Where it is not, `gain` separates the two:
    guesses z of the letter x that gain `gain[x][z]`, the prior's `p[x]` included, earn more from P than
    from Q,

        sum_z sum_x P[x,z] gain[x][z] - sum_y max_z sum_x Q[x,y] gain[x][z] = separation > 0.

    All numbers are exact fractions, and `check` computes both sides from them.

    Attributes:
        less: the (N, K) mechanism P.
        more: the (N, M) mechanism Q.
        holds: whether P is a processing of Q.
        processing: (M, K), where it is.
        gain: (N, K) nonnegative, where it is not; the largest of each row sum to at most one.
        distance: the largest total variation distance of a row of P from that of the processing.
        separation: what the gain earns more from P than from Q, in probability.
        tolerance: within which P is a processing; 0 for exact numbers.
    """

    less: ExactMatrix
    more: ExactMatrix
    holds: bool
    processing: ExactMatrix | None
    gain: ExactMatrix | None
    distance: Fraction
    separation: Fraction
    tolerance: Fraction

    def __bool__(self) -> bool:
        """Return whether P is a processing of Q."""
        return self.holds

    def check(self) -> bool:
        """Return whether the witness proves the verdict, in exact arithmetic."""
        if self.holds:
            kernel = self.processing
            return (
                kernel is not None
                and all(sum(row) == 1 and min(row) >= 0 for row in kernel)
                and compute_distance(self.less, self.more, kernel)
                == self.distance
                <= self.tolerance
            )
        gains = self.gain
        return (
            gains is not None
            and all(entry >= 0 for row in gains for entry in row)
            and sum(map(max, gains)) <= 1
            and compute_separation(self.less, self.more, gains) == self.separation > self.tolerance
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
            all entries are whole numbers, fractions or text, and else 1e-9, for the rounding of floats.

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
    if len(p) != len(q):
        raise MechanismError(
            f"the mechanisms have {len(p)} and {len(q)} letters: give two on the same letters"
        )
    if isinstance(less, Mechanism) and isinstance(more, Mechanism) and less.inputs != more.inputs:
        raise MechanismError(
            "the mechanisms have different letters, or in another order: give two on the same letters"
        )
    if tolerance is None:
        tolerance = 0.0 if p_exact and q_exact else 1e-9
    room = Fraction(check_in_interval(tolerance, "[0, 1]", "the tolerance", MechanismError))
    kernel, gains = _solve_deficiency(_to_floats(p), _to_floats(q))
    for grid in (2**30, 2**60):
        rounded_gains = _round_gains(gains, grid)
        separation = compute_separation(p, q, rounded_gains)
        if separation > room:
            return InformationOrder(p, q, False, None, rounded_gains, Fraction(0), separation, room)
    for rounded in _list_candidates(p, q, kernel):
        distance = compute_distance(p, q, rounded)
        if distance <= room:
            return InformationOrder(p, q, True, rounded, None, distance, Fraction(0), room)
    raise SolverError(
        "it is not decided whether the one mechanism is a processing of the other within a total variation "
        f"distance of {float(room):g}: allow a larger tolerance"
    )


def compute_distance(p: ExactMatrix, q: ExactMatrix, kernel: ExactMatrix) -> Fraction:
    """Compute the largest total variation distance of a row of P from that of Q after a processing."""
    columns = list(zip(*kernel, strict=True))
    return max(
        sum(
            (abs(entry - _dot(row, column)) for entry, column in zip(target, columns, strict=True)),
            Fraction(0),
        )
        / 2
        for target, row in zip(p, q, strict=True)
    )


def compute_separation(p: ExactMatrix, q: ExactMatrix, gains: ExactMatrix) -> Fraction:
    """Compute what gains earn from P, by guessing its output, more than from Q by the best guesses."""
    earned = sum((_dot(row, gain) for row, gain in zip(p, gains, strict=True)), Fraction(0))
    guesses = list(zip(*gains, strict=True))
    return earned - sum(
        (max(_dot(column, guess) for guess in guesses) for column in zip(*q, strict=True)),
        Fraction(0),
    )


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    """Compute the sum of products."""
    return sum((a * b for a, b in zip(left, right, strict=True) if a and b), Fraction(0))


def _read_exact(data: Any, what: str) -> tuple[ExactMatrix, bool]:
    """Read a mechanism as exact fractions, and whether none of them was a float."""
    values = data.matrix if isinstance(data, Mechanism) else data
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
        values = Mechanism(data).matrix
    rows = [list(row) for row in values]
    if not rows or not rows[0] or len(set(map(len, rows))) > 1:
        raise MechanismError(f"{what} mechanism must be a regular table of numbers")
    is_exact = not any(isinstance(entry, float | np.floating) for row in rows for entry in row)
    exact = tuple(
        tuple(read_fraction(entry, f"an entry of {what} mechanism") for entry in row)
        for row in rows
    )
    if is_exact:
        for number, row in enumerate(exact):
            if sum(row) != 1:
                raise MechanismError(
                    f"row {number} of {what} mechanism sums to {sum(row)}: give rows that sum to one"
                )
    else:
        Mechanism(np.array(_to_floats(exact)))
    return exact, is_exact


def _to_floats(matrix: ExactMatrix) -> FloatArray:
    """Convert fractions to floats."""
    return np.array([[float(entry) for entry in row] for row in matrix])


def _solve_deficiency(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve for the (M, K) processing nearest to P, and the (N, K) gains that separate most.

    The variables are the processing by rows, the parts of P above it by rows, and the distance.
    """
    from pmlopt.solvers.highs import RESTART_OPTIONS, build_sparse_model, load_model

    (n, outputs), inputs = p.shape, q.shape[1]
    eye = sparse.eye_array
    covered = sparse.hstack([
        sparse.kron(q, eye(outputs)), eye(n * outputs), sparse.csr_array((n * outputs, 1)),
    ])  # fmt: skip
    rows = sparse.hstack([
        sparse.kron(eye(inputs), np.ones((1, outputs))), sparse.csr_array((inputs, n * outputs + 1)),
    ])  # fmt: skip
    within = sparse.hstack([
        sparse.csr_array((n, inputs * outputs)), sparse.kron(eye(n), -np.ones((1, outputs))),
        np.ones((n, 1)),
    ])  # fmt: skip
    lower = np.concatenate([p.ravel(), np.ones(inputs), np.zeros(n)])
    upper = np.concatenate([np.full(p.size, np.inf), np.ones(inputs), np.full(n, np.inf)])
    costs = np.zeros(inputs * outputs + p.size + 1)
    costs[-1] = 1.0
    system = sparse.vstack([covered, rows, within]).tocsc()
    solver = load_model(
        build_sparse_model(costs, (0.0, np.inf), (lower, upper), system), RESTART_OPTIONS
    )
    solver.run()
    solution = solver.getSolution()
    if not (solution.value_valid and solution.dual_valid):
        raise SolverError("HiGHS did not solve the linear program of the two mechanisms")
    kernel = np.array(solution.col_value)[: inputs * outputs].reshape(inputs, outputs)
    return kernel, np.array(solution.row_dual)[: p.size].reshape(p.shape)


def _round_gains(gains: FloatArray, grid: int) -> ExactMatrix:
    """Round gains to multiples of 1 / grid, and scale them so that the largest of each row sum to one."""
    whole = [[round(entry * grid) for entry in row] for row in np.clip(gains, 0.0, 1.0).tolist()]
    total = max(1, sum(map(max, whole)))
    return tuple(tuple(Fraction(entry, total) for entry in row) for row in whole)


def _list_candidates(p: ExactMatrix, q: ExactMatrix, kernel: FloatArray) -> Any:
    """Yield exact processings near a solver's: rounded ones, and exact solutions on their supports."""
    polished = _polish(_to_floats(p), _to_floats(q), kernel)
    for matrix in (kernel, polished):
        yield _round_kernel(matrix)
    for noise in (1e-9, 1e-7, 1e-5):
        for matrix in (kernel, polished):
            found = _solve_exactly(p, q, matrix, matrix > noise)
            if found is not None:
                yield found


def _round_kernel(kernel: FloatArray) -> ExactMatrix:
    """Round a processing to fractions with a short denominator where one is near, of rows that sum to one."""
    rows = []
    for row in np.clip(kernel, 0.0, None):
        short = [Fraction(float(entry)).limit_denominator(10**4) for entry in row]
        near = all(abs(float(a) - b) < 1e-9 for a, b in zip(short, row, strict=True))
        exact = short if near and sum(short) else [Fraction(float(entry)) for entry in row]
        total = sum(exact)
        rows.append(tuple(entry / total for entry in exact))
    return tuple(rows)


def _polish(p: FloatArray, q: FloatArray, kernel: FloatArray) -> FloatArray:
    """Solve `Q R = P`, `R 1 = 1` again on the support of a solver's processing, by least squares."""
    inputs, outputs = kernel.shape
    system = np.vstack(
        [np.kron(q, np.eye(outputs)), np.kron(np.eye(inputs), np.ones((1, outputs)))]
    )
    right = np.concatenate([p.ravel(), np.ones(inputs)])
    support = kernel.ravel() > 1e-9
    found = np.zeros(kernel.size)
    start = kernel.ravel()[support]
    step = np.linalg.lstsq(system[:, support], right - system[:, support] @ start, rcond=None)[0]
    found[support] = start + step
    return np.maximum(found, 0.0).reshape(kernel.shape)


def _solve_exactly(
    p: ExactMatrix, q: ExactMatrix, near: FloatArray, support: NDArray[np.bool_]
) -> ExactMatrix | None:
    """Solve `Q R = P`, `R 1 = 1` in fractions on a support, near a processing; None where it has no solution.

    Gauss-Jordan elimination; free entries are rounded from the processing that is near.
    """
    inputs, outputs = support.shape
    places = [(int(y), int(z)) for y, z in np.argwhere(support)]
    # the entries that are furthest from 0 become pivots last, for they may be moved
    places.sort(key=lambda place: near[place])
    equations = [
        [q[x][y] if column == z else Fraction(0) for y, column in places] + [p[x][z]]
        for x in range(len(p))
        for z in range(outputs)
    ] + [[Fraction(int(y == row)) for y, _ in places] + [Fraction(1)] for row in range(inputs)]
    free = {
        k: Fraction(float(near[place])).limit_denominator(10**6) for k, place in enumerate(places)
    }
    pivots: list[int] = []
    for k in reversed(range(len(places))):
        done = len(pivots)
        first = next((r for r in range(done, len(equations)) if equations[r][k]), None)
        if first is None:
            continue
        equations[done], equations[first] = equations[first], equations[done]
        lead = [value / equations[done][k] for value in equations[done]]
        equations[done] = lead
        for r, row in enumerate(equations):
            if r != done and row[k]:
                factor = row[k]
                equations[r] = [a - factor * b if b else a for a, b in zip(row, lead, strict=True)]
        pivots.append(k)
    if any(row[-1] for row in equations[len(pivots) :]):
        return None
    others = [k for k in range(len(places)) if k not in set(pivots)]
    kernel = [[Fraction(0)] * outputs for _ in range(inputs)]
    for k in others:
        kernel[places[k][0]][places[k][1]] = free[k]
    for row, k in zip(equations, pivots, strict=False):
        kernel[places[k][0]][places[k][1]] = row[-1] - sum(row[j] * free[j] for j in others)
    if any(entry < 0 for row in kernel for entry in row):
        return None
    return tuple(map(tuple, kernel))
