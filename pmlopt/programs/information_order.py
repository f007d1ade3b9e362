"""The Blackwell order of two mechanisms: whether one is a processing of the other, with a witness."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from operator import mul, sub
from typing import Any, TypeAlias

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import SUM_ATOL, FloatArray, check_in_interval
from pmlopt.data.mechanism import Mechanism, as_mechanism
from pmlopt.errors import MechanismError, SolverError
from pmlopt.measures.trace_counts import read_fraction
from pmlopt.model.uncertainty.row_programs import solve_rationals
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import make_options

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
        rows = zip(self.less, _multiply(self.more, self.processing), strict=True)
        return max(sum(map(abs, map(sub, one, other)), Fraction(0)) / 2 for one, other in rows)

    @property
    def separation(self) -> Fraction | None:
        """Return what the gain earns more from P, by guessing its output, than from Q by the best guesses."""
        if self.gain is None:
            return None
        best = map(max, _multiply(tuple(zip(*self.more, strict=True)), self.gain))
        return sum(map(mul, chain(*self.less), chain(*self.gain)), Fraction(0)) - sum(best)

    def check(self) -> bool:
        """Return whether the witness proves the verdict, in exact arithmetic."""
        witness = self.processing if self.holds else self.gain
        value = self.distance if self.holds else self.separation
        if witness is None or value is None or min(map(min, witness)) < 0:
            return False
        if self.holds:
            return value <= self.tolerance and all(sum(row) == 1 for row in witness)
        return value > self.tolerance and sum(map(max, witness)) <= 1


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
    if tolerance is None:
        tolerance = 0.0 if p_exact and q_exact else 1e-8
    allowed = Fraction(check_in_interval(tolerance, "[0, 1]", "the tolerance", MechanismError))
    kernel, gains = _solve_deficiency(np.array(p, dtype=float), np.array(q, dtype=float))
    exact = (_solve_exactly(p, q, kernel, noise) for noise in (1e-9, 1e-6))
    for processing in chain([None, _round_kernel(kernel)], exact):
        gain = _round_gains(gains) if processing is None else None
        found = InformationOrder(p, q, processing is not None, processing, gain, allowed)
        if found.check():
            return found
    raise SolverError(
        "it is not decided whether the one mechanism is a processing of the other within a total variation "
        f"distance of {tolerance:g}: allow a larger tolerance"
    )


def _multiply(left: ExactMatrix, right: ExactMatrix) -> ExactMatrix:
    """Compute the product of two matrices."""
    columns = tuple(zip(*right, strict=True))
    return tuple(tuple(sum(map(mul, row, one), Fraction(0)) for one in columns) for row in left)


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
    """Solve for the (M, K) processing nearest to P, and the (N, K) gains that separate most."""
    kernel = cp.Variable((q.shape[1], p.shape[1]), nonneg=True)
    missing = cp.Variable(p.shape, nonneg=True)
    reached = q @ kernel + missing >= p
    distance = cp.max(cp.sum(missing, axis=1))
    problem = cp.Problem(cp.Minimize(distance), [reached, cp.sum(kernel, axis=1) == 1])
    if highs.solve_problem(problem, "highs", make_options(None, 1e-9)).state != "point":
        raise SolverError("HiGHS did not solve the linear program of the two mechanisms")
    return np.maximum(kernel.value, 0.0), np.asarray(reached.dual_value)


def _round_gains(gains: FloatArray) -> ExactMatrix:
    """Round gains to multiples of 2^-40, and scale them so that the largest of each row sum to one."""
    whole = [[round(entry * 2**40) for entry in row] for row in np.clip(gains, 0.0, 1.0).tolist()]
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

    From the largest entries on, which may move most; None where there is no solution.
    """
    inputs, outputs = near.shape
    places = sorted(np.argwhere(near > noise).tolist(), key=lambda place: -near[*place])
    made = [
        [q[x][y] * (one == z) for y, one in places] for x in range(len(p)) for z in range(outputs)
    ]
    sums = [[Fraction(y == row) for y, _ in places] for row in range(inputs)]
    guess = [Fraction(near[*place]).limit_denominator(10**6) for place in places]
    right = [entry for row in p for entry in row] + [Fraction(1)] * inputs
    values = solve_rationals(made + sums, right, guess)
    if values is None:
        return None
    found = dict(zip(map(tuple, places), values, strict=True))
    return tuple(
        tuple(found.get((y, z), Fraction(0)) for z in range(outputs)) for y in range(inputs)
    )
