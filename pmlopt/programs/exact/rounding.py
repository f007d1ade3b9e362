"""Rounding of numbers and matrices so that what is claimed of them holds in exact arithmetic.

Numbers are rounded to a side, rows to the grid of 2^-53, and a solver's matrix is repaired until it meets
its requirement exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import count
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.arrays import GRID_DENOMINATOR, BoolArray, FloatArray, IntArray
from pmlopt.core.numbers.blocks import find_max_size, iterate_row_blocks
from pmlopt.data.mechanism import wrap_checked_matrix
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import Requirement
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL

_DECIMAL_CONTEXT = Context(prec=60)


def round_rows_to_grid(matrix: FloatArray, grid: int = GRID_DENOMINATOR) -> FloatArray:
    """Round the matrix to multiples of 2^-53, each row summing to exactly one.

    Largest remainders: an entry moves by less than 2^-53; what the row's sum was off beyond that goes
    to the largest entry.

    Args:
        matrix: (N, M) non-negative, rows summing to one up to rounding.
        grid: the common denominator, where it is another one.

    Examples:
        >>> snapped = round_rows_to_grid(np.array([[1 / 3, 1 / 3, 1 / 3]]))
        >>> sum(Fraction(v) for v in snapped[0].tolist())
        Fraction(1, 1)
    """
    found = np.empty(matrix.shape)
    for rows in iterate_row_blocks(matrix.shape):
        part = matrix[rows]
        scaled = part * grid  # exact for a power of two
        # floors leave less than one unit for each entry: remainders decide who gets one
        floors = np.floor(scaled)
        counts = floors.astype(np.int64)
        short = grid - counts.sum(axis=1)
        if short.any():
            positive = part > 0
            remainder = np.where(positive, scaled - floors, -1.0)  # zeros come last, and stay zeros
            sizes = np.minimum(np.maximum(short, 0), part.shape[1])
            counts += _select_largest(remainder, sizes) & positive
            short = grid - counts.sum(axis=1)
        if short.any():
            # what the input's sum was off beyond that: the largest entry notices it least
            counts[np.arange(len(counts)), counts.argmax(axis=1)] += short
        found[rows] = counts / grid
    return found


def _select_largest(values: FloatArray, sizes: IntArray) -> BoolArray:
    """Select so many of the largest entries of each row; of equal ones the first."""
    width = values.shape[1]
    # sorting the values is much faster than ranking their places
    edge = np.sort(values, axis=1)[np.arange(len(values)), np.minimum(width - sizes, width - 1)]
    chosen, tied = values > edge[:, None], values == edge[:, None]
    left = sizes - chosen.sum(axis=1)
    tied &= tied.cumsum(axis=1) <= left[:, None]
    return np.asarray(chosen | tied)


def scale_to_integers(matrix: FloatArray) -> Any:
    """Return the matrix times a power of two, as an object array of Python integers, without rounding."""
    scaled = matrix * GRID_DENOMINATOR
    if (np.rint(scaled) == scaled).all() and find_max_size(scaled) < 2.0**63:  # on the grid of rows
        return scaled.astype(np.int64).astype(object)
    # a float is an integer of 53 bits times a power of two: nothing is rounded
    mantissas, exponents = np.frexp(matrix)
    whole = (mantissas * 2.0**53).astype(np.int64).astype(object)
    # zeros have an exponent that means nothing
    occurring = exponents[matrix != 0]
    lowest = int(occurring.min()) if occurring.size else 0
    return whole << np.where(matrix != 0, exponents - lowest, 0).astype(object)


# a few megabytes: a repair needs the powers of all pairs of letters a dozen times
@lru_cache(32_768)
def round_exp_down(exponent: float) -> Fraction:
    """Return a rational at most e^exponent, and within 1e-58 of it relatively; exponent >= 0.

    Examples:
        >>> round_exp_down(0.0), float(round_exp_down(1.0)) == float(np.exp(1.0))
        (Fraction(1, 1), True)
    """
    if exponent == 0:
        return Fraction(1)
    return max(
        Fraction(1), Fraction(_DECIMAL_CONTEXT.next_minus(_DECIMAL_CONTEXT.exp(Decimal(exponent))))
    )


def round_exp_up(exponent: float) -> Fraction:
    """Return a rational at least e^exponent, and within 1e-58 of it relatively; exponent >= 0.

    Examples:
        >>> round_exp_up(0.0), round_exp_up(1.0) > round_exp_down(1.0)
        (Fraction(1, 1), True)
    """
    if exponent:
        return Fraction(_DECIMAL_CONTEXT.next_plus(_DECIMAL_CONTEXT.exp(Decimal(exponent))))
    return Fraction(1)


def round_down_to_float(number: Fraction) -> float:
    """Return the largest float that is at most a rational.

    Examples:
        >>> round_down_to_float(Fraction(1, 3)) < Fraction(1, 3) < round_up_to_float(Fraction(1, 3))
        True
    """
    return round_ratio_down(number.numerator, number.denominator)


def round_ratio_down(numerator: int, denominator: int) -> float:
    """Return the largest float that is at most a ratio of whole numbers, of which the second is positive."""
    # a quotient is rounded to nearest: at most one step in the wrong direction
    nearest = numerator / denominator
    above, below = nearest.as_integer_ratio()
    is_above = above * denominator > numerator * below
    return math.nextafter(nearest, -math.inf) if is_above else nearest


def round_up_to_float(number: Fraction) -> float:
    """Return the least float that is at least a rational."""
    return -round_down_to_float(-number)


def is_met_exactly(prior: Prior, privacy: Requirement, matrix: FloatArray) -> bool:
    """Return whether the matrix meets the requirement, in exact arithmetic."""
    return bool(np.all(compute_exact_violations(prior, privacy, matrix) <= 0))


def compute_exact_violations(
    prior: Prior, privacy: Requirement, matrix: FloatArray
) -> NDArray[Any]:
    """Compute how far the matrix violates the requirement, without a tolerance: at most 0 where it is met.

    The prior's weights are its counts, or its floats as rationals over their sum; e^epsilon is
    replaced by a rational below it. The numbers are rationals, or, where the formula has powers that are no
    whole numbers, decimals of 60 digits that are rounded to the stricter side.
    """
    occurs = matrix.max(axis=0) > 0  # a column of zeros adds nothing to any bound
    occurring = matrix if occurs.all() else matrix[:, occurs]
    own = privacy.for_prior(prior)
    numbers = None
    if occurring.size >= 1_000 and own.compares_means:
        from pmlopt.programs.exact.grid_matrix import GridMatrix

        numbers = GridMatrix.from_floats(occurring)
    if numbers is None:  # Python integers: products have more than 64 bits
        numbers = scale_to_integers(occurring)
    return np.asarray(own.violation(prior.integer_weights, numbers, round_exp_down))


def has_exact_rows(matrix: FloatArray) -> bool:
    """Return whether the entries are non-negative and each row sums to exactly one, as rationals."""
    for rows in iterate_row_blocks(matrix.shape):
        part = matrix[rows]
        if part.min() < 0:
            return False
        scaled = part * GRID_DENOMINATOR
        if (np.rint(scaled) == scaled).all():  # on the grid: sums in 64-bit integers
            holds = bool((scaled.astype(np.int64).sum(axis=1) == GRID_DENOMINATOR).all())
        else:
            holds = all(sum(map(Fraction, row)) == 1 for row in part.tolist())
        if not holds:
            return False
    return True


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
        empty = after.max(axis=0) == 0
        dropped = (empty & (before.max(axis=0) > 0)).nonzero()[0].tolist() if empty.any() else ()
        shift = 0.0
        for rows in iterate_row_blocks(after.shape):
            shift = max(shift, float(np.abs(after[rows] - before[rows]).max()))
        return cls(matrix=after, theta=theta, shift=shift, dropped=tuple(dropped))


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
    rounding needs it. theta = 1 always satisfies the requirement. Where all entries are above 1e-4, a theta
    of 2^-40 is tried first.

    Args:
        prior: N letters.
        privacy: the requirement to satisfy.
        matrix: (N, M) finite; rows sum to one up to a solver's tolerance.
        noise: entries of at most this are taken for noise; 0 where every column is known to be within
            the requirement.

    Raises:
        MechanismError: a row's sum is off one by 0.5 or more, or an entry is not finite.
    """
    clean = drop_noise(matrix, noise)
    candidate = round_rows_to_grid(clean)
    if is_satisfied(prior, privacy, candidate):
        return RepairedMatrix.from_matrices(matrix, candidate, 0.0)
    theta, candidate = _mix_until_satisfied(prior, privacy, clean, noise)
    found = RepairedMatrix.from_matrices(matrix, candidate, theta)
    if theta > MAX_USUAL_MIXING and noise > 0:  # under LDP at 20 nats, entries of 1e-9 are no noise
        other = repair_matrix(prior, privacy, matrix, 0.0)
        return min(found, other, key=attrgetter("theta"))
    return found


def approximate_repair(prior: Prior, privacy: Requirement, matrix: FloatArray) -> FloatArray:
    """Compute a quick floating-point approximation of `repair_matrix`, only to compare candidates."""
    clean = _mix_columns(prior, privacy, drop_noise(matrix, ENTRY_NOISE_ATOL), ENTRY_NOISE_ATOL)
    # mixing in the output's own law leaves that law unchanged
    law = prior.pmf @ clean
    theta = float(compute_mixing_weights(prior, privacy, clean, law).max())
    return (1 - theta) * clean + theta * law


def _mix_until_satisfied(
    prior: Prior, privacy: Requirement, clean: FloatArray, noise: float
) -> tuple[float, FloatArray]:
    """Mix a matrix without noise with constants until it is feasible; return theta, and the mixture."""
    if clean.min() > 1e-4:  # smaller entries would change by much
        # a closed form breaks its bounds by rounding only: it gets the margin that solvers have
        theta = FACTOR_MARGIN_RTOL
        candidate = round_rows_to_grid((1 - theta) * clean + theta * (prior.pmf @ clean))
        if privacy.is_met_with_margin(prior, candidate):
            return theta, candidate
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
        return float(compute_mixing_weights(prior, privacy, candidate, law).max())

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

    def mix_with_law(start: float, law: FloatArray) -> tuple[float, FloatArray]:
        found = np.empty(clean.shape)  # each mixture replaces the one before

        def round_mixture(theta: float) -> FloatArray:
            for rows in iterate_row_blocks(clean.shape):
                found[rows] = round_rows_to_grid((1 - theta) * clean[rows] + theta * law)
            return found

        return min_mixing_weight(
            start, round_mixture, holds, lambda candidate: missing(candidate, law)
        )

    used = clean.max(axis=0) > 0
    laws = [(missing(clean, law), law) for law in (prior.pmf @ clean, used / used.sum())]
    (start, law), (other_start, other) = sorted(laws, key=lambda entry: entry[0])
    found = mix_with_law(start, law)
    # a weight is at least what the chord reveals first; a dozen roundings of one number, or one of each
    # letter, are none to reduce
    if found[0] <= max(other_start, 2.0**-49, len(clean) * 2.0**-53):
        return found
    return min(found, mix_with_law(other_start, other), key=lambda mixed: mixed[0])


T = TypeVar("T")

MIXED_IN_FIRST = (2.0**-40, 2.0**-30, 2.0**-20)
"""Shares of a constant that are tried where the chord reveals one of more than a half."""


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
    if theta > 0.5:
        # the chord is far above an excess that is flat up to the constant, as where one guess stays the best
        for share in MIXED_IN_FIRST:
            if holds(candidate := mixture(share)):
                return share, candidate
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
    if privacy.is_met_with_margin(prior, matrix):
        return True
    mechanism = wrap_checked_matrix(matrix, prior.labels)
    return privacy.holds(prior, mechanism) and is_met_exactly(prior, privacy, matrix)


def drop_noise(matrix: FloatArray, noise: float) -> FloatArray:
    """Set entries up to `noise` to zero, and renormalize the rows."""
    least, largest = matrix.min(), matrix.max()
    if not (math.isfinite(least) and math.isfinite(largest)):
        raise MechanismError("the matrix to repair has an entry that is not finite")
    # in a mechanism by formula nothing is noise: it needs no copy
    is_clean = bool(least > noise)
    if not is_clean:
        is_clean = not any(
            ((matrix[rows] <= noise) & (matrix[rows] != 0)).any()
            for rows in iterate_row_blocks(matrix.shape)
        )
    sparse = matrix if is_clean else np.where(matrix > noise, matrix, 0.0)
    sums = sparse.sum(axis=1)
    off = float(np.abs(sums - 1).max())
    if not off < 0.5:
        raise MechanismError(
            f"the matrix to repair has a row that sums to {sums[np.abs(sums - 1).argmax()]:.3g}: it is no "
            "mechanism, not even roughly"
        )
    # the grid is as fine as what such rows lack
    if is_clean and off <= 2.0**-50:
        return matrix
    return np.asarray(sparse / sums[:, None])


def _mix_columns(
    prior: Prior, privacy: Requirement, sparse: FloatArray, noise: float
) -> FloatArray:
    """Mix slightly infeasible columns with their means, one by one, and normalize the rows."""
    means = prior.pmf @ sparse
    weights = compute_mixing_weights(prior, privacy, sparse, means)
    # repairing one column by much would shift the rows of all letters
    weights = np.where(weights * np.ptp(sparse, axis=0) <= MAX_COLUMN_CHANGE, weights, 0.0)
    mixed = (1 - weights) * sparse
    mixed += weights * means
    mixed *= mixed.max(axis=0) > noise
    mixed /= mixed.sum(axis=1, keepdims=True)
    return mixed


def compute_mixing_weights(
    prior: Prior, privacy: Requirement, matrix: FloatArray, means: FloatArray
) -> FloatArray:
    """Compute per column the mixing weight of a constant that restores feasibility.

    The excess is convex along the mixture, so the chord between both ends gives a weight that suffices: for
    each of several requirements separately, since the units of their excesses differ.

    Args:
        prior: N letters.
        privacy: the requirement.
        matrix: (N, M) a mechanism.
        means: (M,) the constant columns, or (N, M) other columns that meet the requirement.
    """
    constant = np.broadcast_to(means, matrix.shape)
    shares = []
    for part in privacy.list_parts():
        # the violation is convex, and at the constant at most 0: the chord bounds it
        over = np.asarray(part.violation(prior.pmf, matrix, math.exp))
        if (over <= 0).all():  # its slack may be dear to compute
            shares.append(np.zeros(over.shape))
            continue
        slack = np.maximum(-np.asarray(part.violation(prior.pmf, constant, math.exp)), 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares.append(np.where(over > 0, over / (over + slack), 0.0))
    return np.asarray(np.max(np.broadcast_arrays(*shares), axis=0))


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
    if fixed.theta <= negligible_mixing:
        return fixed
    from pmlopt.programs.exact.envelope_repair import pair_exponents

    exponents = pair_exponents(prior, privacy)
    envelope = _repair_by_envelope(prior, privacy, exponents, matrix, noise, gains)
    if envelope is None:
        return fixed
    return min(fixed, envelope, key=partial(_compute_repair_loss, prior, gains))


def _repair_polished_matrix(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float
) -> RepairedMatrix | None:
    """Repair the polished matrix; None where that is too far away."""
    from pmlopt.programs.exact.equality_rounding import polish_matrix

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
    from pmlopt.programs.exact.envelope_repair import pair_exponents

    exponents = pair_exponents(prior, privacy)
    if exponents is None:
        return None
    candidate = round_rows_to_grid(drop_noise(drop_rare_outputs(matrix, noise), 0.0))
    if is_satisfied(prior, privacy, candidate):
        return RepairedMatrix.from_matrices(matrix, candidate, 0.0)
    return _repair_by_envelope(prior, privacy, exponents, matrix, noise, gains)


def _repair_by_envelope(
    prior: Prior,
    privacy: Requirement,
    exponents: FloatArray | None,
    matrix: FloatArray,
    noise: float,
    gains: FloatArray | None,
) -> RepairedMatrix | None:
    """Repair a matrix by column envelopes; None where the bounds are not on letter pairs."""
    if exponents is None:
        return None
    from pmlopt.programs.exact.envelope_repair import repair_by_envelope

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
    from pmlopt.programs.exact.equality_rounding import round_with_equalities

    exact = round_with_equalities(
        prior, privacy.for_prior(prior), drop_noise(matrix, noise), mixing
    )
    if exact is None or np.abs(exact - matrix).max() > MAX_COLUMN_CHANGE:
        return None
    return exact if is_satisfied(prior, privacy, exact) else None
