"""The repair of a solver's matrix into one that satisfies the requirement exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any, TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import wrap_checked_matrix
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.exact.arithmetic import GRID_DENOMINATOR, is_met_exactly, round_rows_to_grid
from pmlopt.programs.exact.envelope_repair import pair_exponents, repair_by_envelope

ENTRY_NOISE_ATOL = 1e-8
"""Conditional probabilities of at most this are taken for a solver's noise, and become zero."""

MAX_USUAL_MIXING = 1e-9
"""The share mixed in beyond which it is tried whether small entries are no noise."""

MAX_COLUMN_CHANGE = 1e-6
"""Outputs are mixed with their mean one by one only where that moves no entry by more than this."""


@dataclass(frozen=True)
class RepairRecord:
    """How far a repaired, exactly feasible matrix is from the solver's matrix.

    Attributes:
        theta: the share in which one law of the output was mixed into every row, in [0, 1].
        shift: the largest change of an entry; by orbits, times the number of outputs in its orbit.
        dropped: the indices of outputs that were dropped as noise.
    """

    theta: float
    shift: float
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class RepairedMatrix(RepairRecord):
    """A matrix repaired to exact feasibility, with the size of the changes.

    Attributes:
        matrix: (N, M) on the exact grid.
    """

    matrix: FloatArray

    @property
    def to_record(self) -> RepairRecord:
        """Return the summary of the changes for a saved result."""
        return RepairRecord(theta=self.theta, shift=self.shift, dropped=self.dropped)

    @classmethod
    def from_matrices(cls, before: FloatArray, after: FloatArray, theta: float) -> RepairedMatrix:
        """Measure the change from one matrix to another, with mixing weight theta."""
        dropped = np.flatnonzero((before.max(axis=0) > 0) & (after.max(axis=0) == 0))
        shift = float(np.abs(after - before).max())
        return cls(matrix=after, theta=theta, shift=shift, dropped=tuple(dropped.tolist()))


def repair_matrix(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float = ENTRY_NOISE_ATOL
) -> RepairedMatrix:
    """Repair a solver's matrix into a nearby mechanism that meets the requirement in exact arithmetic.

    First the noise: entries of at most `noise` become zero (unless that costs more than it mends), each
    output that breaks the bound by little is mixed with its own mean as far as it must, rows are
    renormalised. Then P becomes (1 - theta) P + theta 1 r', with the smallest theta that will do: the
    excess over the bound is convex along the way, and r is the output law, which then does not change,
    or uniform on the outputs, which helps where an unlikely output breaks the bound. Last, the matrix is
    put on the grid on which rows sum to exactly one, with a slightly larger theta where the
    rounding needs it. theta = 1 always satisfies the requirement.

    Args:
        prior: N letters.
        privacy: the requirement to satisfy.
        matrix: (N, M) finite; rows sum to one up to a solver's tolerance.
        noise: entries of at most this are taken for noise; 0 where every column is known to be within
            the requirement.

    Raises:
        MechanismError: a row's sum is off one by 0.5 or more, or an entry is not finite.
    """
    theta, candidate = _repair_once(prior, privacy, matrix, noise)
    if theta > MAX_USUAL_MIXING and noise > 0:  # under LDP at 20 nats, entries of 1e-9 are no noise
        other = _repair_once(prior, privacy, matrix, 0.0)
        theta, candidate = min((theta, candidate), other, key=lambda found: found[0])
    return RepairedMatrix.from_matrices(matrix, candidate, theta)


def approximate_repair(prior: Prior, privacy: Requirement, matrix: FloatArray) -> FloatArray:
    """Compute a quick floating-point approximation of `repair_matrix`, only to compare candidates."""
    clean = _mix_columns(prior, privacy, drop_noise(matrix, ENTRY_NOISE_ATOL), ENTRY_NOISE_ATOL)
    # mixing in the output's own law leaves that law unchanged
    law = prior.pmf @ clean
    theta = float(_compute_mixing_weights(prior, privacy, clean, law).max())
    return np.asarray((1 - theta) * clean + theta * law)


def _repair_once(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float
) -> tuple[float, FloatArray]:
    """Compute the repaired matrix and its mixing weight theta; entries up to `noise` are set to zero."""
    clean = drop_noise(matrix, noise)
    candidate = round_rows_to_grid(clean)
    if is_satisfied(prior, privacy, candidate):
        return 0.0, candidate
    mended = _mix_with_constant(prior, privacy, _mix_columns(prior, privacy, clean, noise))
    if mended[0] <= MAX_USUAL_MIXING:
        return mended
    # where a constant is hardly within the bound, rows over their sums undo more than was repaired
    return min(mended, _mix_with_constant(prior, privacy, clean), key=lambda found: found[0])


def _mix_with_constant(
    prior: Prior, privacy: Requirement, clean: FloatArray
) -> tuple[float, FloatArray]:
    """Mix a matrix with a constant until it is feasible, starting from a linear estimate of theta."""

    def needed_share(candidate: FloatArray, law: FloatArray) -> float:
        return float(_compute_mixing_weights(prior, privacy, candidate, law).max())

    return mix_with_constant(prior, clean, partial(is_satisfied, prior, privacy), needed_share)


def mix_with_constant(
    prior: Prior,
    clean: FloatArray,
    holds: Callable[[FloatArray], bool],
    missing: Callable[[FloatArray, FloatArray], float],
) -> tuple[float, FloatArray]:
    """Mix a matrix with the output law or the uniform law, at the smallest feasible weight theta on the grid.

    Args:
        prior: N letters.
        clean: (N, M) without noise, rows that sum to one.
        holds: as for `min_mixing_weight`.
        missing: the same, of a mixture and the law.

    Raises:
        MechanismError: not even a constant will do.
    """

    def mix_with_law(law: FloatArray) -> tuple[float, FloatArray]:
        def round_mixture(theta: float) -> FloatArray:
            return round_rows_to_grid((1 - theta) * clean + theta * law)

        return min_mixing_weight(
            missing(clean, law), round_mixture, holds, lambda candidate: missing(candidate, law)
        )

    used = clean.max(axis=0) > 0
    return min(
        map(mix_with_law, (prior.pmf @ clean, used / used.sum())), key=lambda found: found[0]
    )


T = TypeVar("T")


def min_mixing_weight(
    theta: float,
    mixture: Callable[[float], T],
    holds: Callable[[T], bool],
    missing: Callable[[T], float],
) -> tuple[float, T]:
    """Find the smallest feasible mixing weight by doubling, with the mixture; it ends at theta = 1.

    Args:
        theta: the share that the chord of the convex excess reveals.
        mixture: what a share makes, rounded.
        holds: whether that meets the requirement, in exact arithmetic.
        missing: the share that the chord reveals where it does not.
    """
    for attempt in count():
        candidate = mixture(theta)
        if holds(candidate):
            break
        if theta >= 1:
            raise MechanismError(
                "a constant does not meet the requirement in floating-point arithmetic"
            )
        # doubling: rounding may need slightly more than the chord, and must not loop for long
        theta = min(1.0, theta + 2.0**attempt * max(missing(candidate), 2.0**-53))
    return theta, candidate


def is_satisfied(prior: Prior, privacy: Requirement, matrix: FloatArray) -> bool:
    """Return whether a matrix meets the requirement, both exactly and in floating point."""
    mechanism = wrap_checked_matrix(matrix, prior.labels)
    return privacy.holds(prior, mechanism) and is_met_exactly(prior, privacy, matrix)


def drop_noise(matrix: FloatArray, noise: float) -> FloatArray:
    """Set entries up to `noise` to zero, and renormalize the rows."""
    if not np.isfinite(matrix).all():
        raise MechanismError("the matrix to repair has an entry that is not finite")
    sparse = np.where(matrix > noise, matrix, 0.0)
    sums = sparse.sum(axis=1)
    if not (np.abs(sums - 1) < 0.5).all():
        raise MechanismError(
            f"the matrix to repair has a row that sums to {sums[np.abs(sums - 1).argmax()]:.3g}: it is no "
            "mechanism, not even roughly"
        )
    return np.asarray(sparse / sums[:, None])


def _mix_columns(
    prior: Prior, privacy: Requirement, sparse: FloatArray, noise: float
) -> FloatArray:
    """Mix slightly infeasible columns with their means, one by one, and normalize the rows."""
    means = prior.pmf @ sparse
    weights = _compute_mixing_weights(prior, privacy, sparse, means)
    # repairing one column by much would shift the rows of all letters
    weights = np.where(weights * np.ptp(sparse, axis=0) <= MAX_COLUMN_CHANGE, weights, 0.0)
    mixed = (1 - weights) * sparse + weights * means
    kept = np.where(mixed.max(axis=0) > noise, mixed, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def _compute_mixing_weights(
    prior: Prior, privacy: Requirement, matrix: FloatArray, means: FloatArray
) -> FloatArray:
    """Compute per column the mixing weight of a constant that restores feasibility.

    The excess is convex along the mixture, so the chord between both ends gives a weight that suffices: for
    each of several requirements separately, since the units of their excesses differ.
    """
    constant = np.broadcast_to(means, matrix.shape)
    shares = []
    for part in privacy.list_parts():
        # the violation is convex, and at the constant at most 0: the chord bounds it
        over = np.asarray(part.violation(prior.pmf, matrix, math.exp))
        slack = np.maximum(-np.asarray(part.violation(prior.pmf, constant, math.exp)), 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares.append(np.where(over > 0, over / (over + slack), 0.0))
    return np.asarray(np.max(np.broadcast_arrays(*shares), axis=0))


def round_with_equalities(
    prior: Prior, privacy: Requirement, matrix: FloatArray, mixing: float = 0.0
) -> FloatArray | None:
    """Round a matrix to multiples of 2^-53 that meet zero-level ratio bounds as exact equalities.

    A pair that a constant meets with equality, such as one of 0 nats about a secret, holds for all columns of
    a mechanism only with equality: their sum is a constant. With joint counts the equations have whole
    coefficients, and the columns that solve them are the combinations of a few columns of whole numbers. Each
    column is rounded to such a combination, a little below what it was, and what the rows then lack of one
    solves the equations too: it goes to the most likely output.

    Args:
        prior: N letters.
        privacy: the requirement, for this prior.
        matrix: (N, M) that meets the equations up to a solver's noise; zeros stay zeros, but for one output.
        mixing: the share of the output law that is mixed in, for the sake of other pairs.

    Returns:
        (N, M) rows that sum to exactly one; None where there are no such equations, or their coefficients are
        too large: those of joint laws in floats are.
    """
    equations = _list_equations(prior, privacy)
    if not equations:
        return None
    target = matrix / matrix.sum(axis=1, keepdims=True)
    bases: dict[tuple[int, ...], Any] = {}
    for column in target.T:
        # columns of the same zeros share one basis: elimination is done once for each
        support = tuple(np.flatnonzero(column).tolist())
        if support and support not in bases:
            bases[support] = _find_integer_basis(equations, support)
            if bases[support] is None:
                return None
    law = prior.pmf @ target
    constants = np.array(
        [int(mass * mixing * GRID_DENOMINATOR) for mass in law.tolist()], dtype=object
    )
    sizes = (int(np.abs(basis[2]).sum(axis=1).max()) for basis in bases.values())
    step = target.shape[1] * max(sizes, default=0)
    weight = mixing
    # columns are shrunk at most four times until no row sums to more than one
    for _ in range(4):
        whole = _round_to_integers((1 - weight) * target, bases)
        if whole is None:
            return None
        whole = whole + constants
        # a combination of solutions solves the equations too, since these are linear
        missing = GRID_DENOMINATOR - whole.sum(axis=1)
        if missing.min() >= 0:
            whole[:, int(law.argmax())] += missing
            return np.asarray((whole / GRID_DENOMINATOR).astype(float))
        weight += (
            float(step - missing.min()) / GRID_DENOMINATOR
        )  # rounding moves a row by less than a step
    return None


def _list_equations(prior: Prior, privacy: Requirement) -> list[list[int]]:
    """List the integer equations of the ratio bounds of 0 nats that force equality."""
    ratios = privacy.ratios(np.array(prior.weights, dtype=object))
    if ratios is None or ratios.exponents.min(initial=1.0) > 0:
        return []
    n = ratios.size
    sides = np.vstack([np.eye(n, dtype=int).astype(object), ratios.rows])
    scales = np.append(np.ones(n, dtype=object), ratios.scales)
    found = []
    for k in np.flatnonzero(ratios.exponents == 0).tolist():
        up, down = int(ratios.above[k]), int(ratios.below[k])
        row = [int(v) for v in sides[up] * scales[down] - sides[down] * scales[up]]
        divisor = math.gcd(*row)
        # coefficients that sum to zero: a constant meets the pair with equality
        if divisor and not sum(row):
            found.append([v // divisor for v in row])
    return found


def _find_integer_basis(
    equations: list[list[int]], support: tuple[int, ...]
) -> tuple[list[int], list[int], Any] | None:
    """Find an integer basis of the equations' solution space on a given support.

    Returns:
        The free letters, the units of each (the multiples of which the entry of a column is), and the columns
        (|support|, K); None where they are too large.
    """
    # Units of 2^-53 that a step of a column may have, at most 1e-6 of probability: larger ones would show.
    largest_unit = 2.0**33
    rows = [[Fraction(row[x]) for x in support] for row in equations]
    pivots: list[int] = []
    for place in range(len(support)):
        done = len(pivots)
        # exact elimination in fractions: a pivot is zero or it is not
        first = next((k for k in range(done, len(rows)) if rows[k][place]), None)
        if first is None:
            continue
        rows[done], rows[first] = rows[first], rows[done]
        rows[done] = [v / rows[done][place] for v in rows[done]]
        for k, row in enumerate(rows):
            if k != done and row[place]:
                rows[k] = [v - row[place] * w for v, w in zip(row, rows[done], strict=True)]
        pivots.append(place)
    free = [place for place in range(len(support)) if place not in pivots]
    columns = np.zeros((len(support), len(free)), dtype=object)
    for k, place in enumerate(free):
        # the least multiple of the free letter that makes all pivots whole
        unit = math.lcm(*(rows[j][place].denominator for j in range(len(pivots))))
        if unit > largest_unit:
            return None
        columns[place, k] = unit
        for j, pivot in enumerate(pivots):
            columns[pivot, k] = int(-rows[j][place] * unit)
    if not free or np.abs(columns).sum(axis=1).max() > largest_unit:
        return None
    return free, [int(columns[place, k]) for k, place in enumerate(free)], columns


def _round_to_integers(target: FloatArray, bases: dict[tuple[int, ...], Any]) -> Any:
    """Round to nearby (N, M) integers that solve the equations; None where one would be negative."""
    whole = np.zeros(target.shape, dtype=object)
    for y, column in enumerate(target.T):
        support = np.flatnonzero(column)
        if not len(support):
            continue
        free, units, columns = bases[tuple(support.tolist())]
        steps = [round(Fraction(float(column[support[place]])) * GRID_DENOMINATOR / unit)
                 for place, unit in zip(free, units, strict=True)]  # fmt: skip
        whole[support, y] = columns @ np.array(steps, dtype=object)
    return None if (whole < 0).any() else whole


CONSTANT_SHARES = (0.0, 1e-9, 1e-7)
"""Shares of the law that are mixed in before pairs of no room are met exactly, for the others' sake."""


def polish_and_repair(
    prior: Prior,
    privacy: Requirement,
    matrix: FloatArray,
    noise: float = ENTRY_NOISE_ATOL,
    gains: FloatArray | None = None,
) -> RepairedMatrix:
    """Repair a matrix; if that changes it much, repair its polished version where this is better.

    Pairs that leave a constant no room, such as those of 0 nats, are met exactly where whole numbers can.
    Bounds on pairs of letters, such as a metric, are met by the envelopes of the columns where these keep
    more than a mixture does.

    Args:
        prior: N letters.
        privacy: the requirement to satisfy.
        matrix: (N, M), as `repair_matrix` takes it.
        noise: the same.
        gains: (N, M) by which two repairs are compared; without gains, by the largest change of an entry.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    # a tenth of the usual tolerance: mixing in less is not worth the polish
    negligible_mixing = 1e-8
    # Values of pairs of letters on outputs, N^2 M, from which on bounds on pairs are met by envelopes first.
    if len(matrix) * matrix.size >= 1_000_000:  # a mixture takes a dozen proofs of some seconds
        found = _repair_many_pairs(prior, privacy, matrix, noise, gains)
        if found is not None:
            return found
    fixed = repair_matrix(prior, privacy, matrix, noise)
    if fixed.theta <= negligible_mixing:
        return fixed
    for mixing in CONSTANT_SHARES:
        exact = _repair_with_equalities(prior, privacy, matrix, noise, mixing)
        if exact is not None:
            return RepairedMatrix.from_matrices(matrix, exact, mixing)
    polish = _repair_polished_matrix(prior, privacy, matrix, noise)
    if polish is not None and polish.theta < fixed.theta:
        fixed = polish
    envelope = (
        None
        if fixed.theta <= negligible_mixing
        else _repair_by_envelope(prior, privacy, matrix, noise, gains)
    )
    return (
        fixed
        if envelope is None
        else min(fixed, envelope, key=partial(_compute_repair_loss, prior, gains))
    )


def _repair_polished_matrix(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float
) -> RepairedMatrix | None:
    """Repair the polished matrix; None where that is too far away."""
    near = polish_matrix(prior, privacy, np.where(matrix > noise, matrix, 0.0))
    # a projection that moves far has left the vertex that the solver found
    if near is None or np.abs(near - matrix).max() > MAX_COLUMN_CHANGE:
        return None
    better = repair_matrix(prior, privacy, near, noise=0.0)
    return replace(better, shift=float(np.abs(better.matrix - matrix).max()))


def _compute_repair_loss(prior: Prior, gains: FloatArray | None, found: RepairedMatrix) -> float:
    """Compute the loss of a repair: in expected gain, or as the largest entry change without gains."""
    return found.shift if gains is None else -float(prior.pmf @ (gains * found.matrix).sum(axis=1))


def _repair_many_pairs(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float, gains: FloatArray | None
) -> RepairedMatrix | None:
    """Repair a matrix under ratio bounds on letter pairs, by envelopes; None for other bounds."""
    if pair_exponents(prior, privacy) is None:
        return None
    candidate = round_rows_to_grid(drop_noise(drop_rare_outputs(matrix, noise), 0.0))
    if is_satisfied(prior, privacy, candidate):
        return RepairedMatrix.from_matrices(matrix, candidate, 0.0)
    return _repair_by_envelope(prior, privacy, matrix, noise, gains)


def _repair_by_envelope(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float, gains: FloatArray | None
) -> RepairedMatrix | None:
    """Repair a matrix by column envelopes; None where the bounds are not on letter pairs."""
    exponents = pair_exponents(prior, privacy)
    if exponents is None:
        return None
    clean = drop_noise(drop_rare_outputs(matrix, noise), 0.0)
    found = repair_by_envelope(prior, exponents, clean, gains)
    if found is None or not is_satisfied(prior, privacy, found.matrix):
        return None
    return RepairedMatrix.from_matrices(matrix, found.matrix, found.theta)


def drop_rare_outputs(matrix: FloatArray, noise: float) -> FloatArray:
    """Set to zero the outputs whose probability is at most `noise` for every letter.

    Under bounds on pairs of letters no entry of another output is noise: an output that one letter never has
    none of them has.
    """
    return np.where(matrix.max(axis=0) > noise, matrix, 0.0)


def _repair_with_equalities(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float, mixing: float
) -> FloatArray | None:
    """Repair a matrix under bounds that force equalities (0 nats) by rounding in their solution space."""
    exact = round_with_equalities(
        prior, privacy.for_prior(prior), drop_noise(matrix, noise), mixing
    )
    if exact is None or np.abs(exact - matrix).max() > MAX_COLUMN_CHANGE:
        return None
    return exact if is_satisfied(prior, privacy, exact) else None


def polish_matrix(prior: Prior, privacy: Requirement, matrix: FloatArray) -> FloatArray | None:
    """Project a matrix on its active ratio bounds and row sums, keeping its zeros.

    Solvers leave pairs broken by 1e-10. Where a constant is within a pair by 1e-9 only, mixing that away
    would take a tenth of the mechanism. The pairs that are broken are kept with equality instead, by the
    least change of the positive entries that also mends the row sums, until no other pair is broken.

    Args:
        prior: N letters.
        privacy: whose list of ratio bounds is to be met.
        matrix: (N, M) non-negative, close to what it should be.

    Returns:
        (N, M); None where the requirement is no list of ratio bounds, the equations are too many, or no
        such matrix is near.
    """
    ratios = privacy.list_ratios(prior)
    if ratios is None or not len(ratios.exponents):
        return None
    pairs, sizes = (part.toarray() for part in ratios.excess_rows)
    # zeros stay zeros: only positive entries may move
    entries = np.argwhere(matrix > 0)
    held = np.zeros((len(pairs), matrix.shape[1]), dtype=bool)
    moved = matrix
    # violated pairs join the active ones at most six times
    for _ in range(6):
        # rounding does not break a pair that keeps four units in the last place
        margin = (4 * float(np.finfo(float).eps)) * (sizes @ moved)
        # an active set method: pairs once broken are kept as equations
        broken = (pairs @ moved > -margin) & ~held
        if not broken.any() and held.any():
            break
        held |= broken
        # a dense system of a million coefficients takes a fraction of a second
        if (held.sum() + len(matrix)) * len(entries) > 1_000_000:
            return None
        try:
            moved = _project_on_equations(moved, entries, pairs, held, 2 * margin)
        except np.linalg.LinAlgError:
            return None
    # the equations count as solved where rows are off one by at most 1e-12
    met = (moved >= 0).all() and np.abs(moved.sum(axis=1) - 1).max() <= 1e-12
    return moved if met else None


def _project_on_equations(
    moved: FloatArray, entries: Any, pairs: FloatArray, held: Any, margin: FloatArray
) -> FloatArray:
    """Make the smallest change that puts active pairs at their margin and row sums at one."""
    rows, columns = entries.T
    which, where = np.nonzero(held)
    system = np.vstack([
        pairs[which][:, rows] * (where[:, None] == columns),
        np.arange(len(moved))[:, None] == rows,
    ])  # fmt: skip
    right = np.append((-margin - pairs @ moved)[held], 1 - moved.sum(axis=1))
    # rows of size one, so that least squares weighs all equations alike
    unit = np.abs(system).max(axis=1, initial=0.0)
    distinct = unit > 0  # a pair of entries that are all zero stays as it is
    scaled, wanted = system[distinct] / unit[distinct, None], right[distinct] / unit[distinct]
    base, corner = np.linalg.qr(
        scaled.T
    )  # entries are many more than equations: a small system is left
    change = base @ np.linalg.lstsq(corner.T, wanted, rcond=None)[0]
    found = moved.copy()
    found[rows, columns] += change
    return found
