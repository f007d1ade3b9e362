"""Repair: from a solver's numbers on orbits to whole numbers that satisfy the requirement exactly."""

from __future__ import annotations

import math

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.data.symmetry.prior import PairSpace
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.exact.repair import LARGEST_SINGLE_MIXING, Change, least_mixing
from pmlopt.programs.linear.columns import ReducedColumns

DIGITS = 120
"""Binary digits of a lift in whole numbers: lifts down to 2^-67 keep all of theirs."""


def repair_orbits(
    space: PairSpace, columns: ReducedColumns, privacy: Requirement, lifts: FloatArray
) -> tuple[OrbitMechanism, Change]:
    """The nearest mechanism by orbits of a simple kind that satisfies the requirement in exact arithmetic.

    Each column that breaks the bound by little is mixed with its own mean as far as it must, rows are
    renormalised, and the whole is mixed with one law of the output with the smallest share that will do:
    the law that it has, or the uniform one on the orbits of outputs that occur. Last, the masses of orbits of
    pairs become whole numbers that sum to a power of two.

    Returns:
        The mechanism, and what was done to reach it.

    Raises:
        MechanismError: a row's sum is off one by 0.5 or more, or a number is not finite.
    """
    output = columns.orbits.output
    mended = _mended(columns, _normalised(columns, lifts))

    def holds(candidate: OrbitMechanism) -> bool:
        """In exact arithmetic, and in the floating-point arithmetic of whoever checks it next."""
        levels = columns.levels(candidate.lifts)
        within = all(levels[name] <= limit for name, limit in privacy.limits.items())
        return within and columns.hold_exactly(candidate.masses)

    def mixed(law: FloatArray) -> tuple[float, OrbitMechanism]:
        def mixture(theta: float) -> OrbitMechanism:
            found = (1 - theta) * mended + theta * law[output]
            return in_whole_numbers(space, found, columns.means(found))

        def missing(lifts: FloatArray) -> float:
            return float(_needed(columns, lifts, law).max())

        return least_mixing(missing(mended), mixture, holds, lambda candidate: missing(candidate.lifts))

    own = columns.means(mended)
    laws = own, (own > 0) / (own > 0).sum()
    theta, mechanism = min(map(mixed, laws), key=lambda found: found[0])
    return mechanism, Change(theta, float(np.abs(mechanism.lifts - lifts).max()))


def in_whole_numbers(space: PairSpace, lifts: FloatArray, law: FloatArray) -> OrbitMechanism:
    """The lifts in whole numbers, rows summing to exactly one.

    What a row lacks goes to the likeliest orbit of outputs, in equal parts on all of these, so that a
    constant stays one; or, where that would be negative or no whole number, to its largest mass.
    """
    orbits = space.orbits
    whole = [_scaled(lift) for lift in lifts.tolist()]
    likeliest = orbits.of_output(int(law.argmax()))
    common = math.lcm(*orbits.letters)
    sums, largest = [0] * len(orbits.letters), [-1] * len(orbits.letters)
    letters = orbits.letter.tolist()
    for place, (lift, n, x) in enumerate(zip(whole, orbits.counts, letters, strict=True)):
        sums[x] += lift * n
        if largest[x] < 0 or lift * n > whole[largest[x]] * orbits.counts[largest[x]]:
            largest[x] = place
    lacking = [(size << DIGITS) - found for size, found in zip(orbits.letters, sums, strict=True)]
    own = list(range(likeliest.start, likeliest.stop))
    parts = [divmod(rest, size) for rest, size in zip(lacking, orbits.letters, strict=True)]
    able = [True] * len(orbits.letters)
    for place in own:
        able[letters[place]] &= whole[place] + parts[letters[place]][0] >= 0
    for place in own:
        if able[x := letters[place]]:
            whole[place] += parts[x][0]
    masses = [lift * n * (common // orbits.letters[x])
              for lift, n, x in zip(whole, orbits.counts, letters, strict=True)]  # fmt: skip
    for x, place in enumerate(largest):
        masses[place] += (parts[x][1] if able[x] else lacking[x]) * (common // orbits.letters[x])
    return OrbitMechanism(space, masses, common << DIGITS)


def _scaled(lift: float) -> int:
    """The lift times 2^DIGITS, rounded down."""
    above, below = lift.as_integer_ratio()
    return (above << DIGITS) // below


def _normalised(columns: ReducedColumns, lifts: FloatArray) -> FloatArray:
    """Without negative entries, rows over their sums."""
    if not np.isfinite(lifts).all():
        raise MechanismError("the orbits to repair have an entry that is not finite")
    clean = np.maximum(lifts, 0.0)
    sums = columns.sums(clean)
    if not (np.abs(sums - 1) < 0.5).all():
        raise MechanismError(
            f"the orbits to repair have a row that sums to {sums[np.abs(sums - 1).argmax()]:.3g}: they are "
            "no mechanism, not even roughly"
        )
    return columns.normalised(clean)


def _mended(columns: ReducedColumns, lifts: FloatArray) -> FloatArray:
    """Columns that miss the bound by little mixed with their means, one by one; rows over their sums."""
    output, starts = columns.orbits.output, columns.orbits.starts[:-1]
    means = columns.means(lifts)
    share = _needed(columns, lifts, means)
    spread = np.maximum.reduceat(lifts, starts) - np.minimum.reduceat(lifts, starts)
    share = np.where(share * spread <= LARGEST_SINGLE_MIXING, share, 0.0)
    return _normalised(columns, (1 - share[output]) * lifts + (share * means)[output])


def _needed(columns: ReducedColumns, lifts: FloatArray, means: FloatArray) -> FloatArray:
    """(K,) the share of a constant that each column needs mixed in, by the chord of the convex excess."""
    over = columns.excess(lifts)
    slack = np.maximum(-columns.excess(means[columns.orbits.output]), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(over > 0, over / (over + slack), 0.0)
