"""Certificates of least leakages, built from a matrix without noise on the exact grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.core.roots import raised
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import PML
from pmlopt.model.uncertainty import PriorSet
from pmlopt.programs.exact.arithmetic import holds_exactly
from pmlopt.programs.exact.repair import Change, Repair
from pmlopt.programs.least_leakage.certificate import (
    LevelCertificate,
    Multipliers,
    SymmetricLevelCertificate,
    least_level,
    least_level_of,
)
from pmlopt.programs.least_leakage.program import LeastLeakage, SymmetricLeastLeakage
from pmlopt.programs.linear.certifying import in_whole_numbers

NOISE_THRESHOLDS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
"""Entries of at most one of these become zero: of the one with which least leaks."""


def certify_level(
    program: LeastLeakage, matrix: FloatArray, proofs: Iterable[Multipliers]
) -> LevelCertificate:
    """Put a matrix on the exact grid without noise, and claim the level it then has.

    Args:
        program: what was asked for.
        matrix: (N, M) a mechanism, up to a solver's noise.
        proofs: multipliers; the best are kept.

    Raises:
        MechanismError: the matrix is no mechanism that meets the demands even roughly.
    """
    exact, bound, best = _best(program, matrix, proofs)
    prior = program.prior
    privacy = _claim(prior, program.over, exact)
    return LevelCertificate(
        prior=prior,
        privacy=privacy,
        mechanism=Mechanism(exact, prior.labels, program.outputs),
        value=privacy.epsilon,
        bound=min(bound, privacy.epsilon),
        multipliers=best.rows,
        residuals={
            "rows": float(np.abs(exact.sum(axis=1) - 1).max()),
            "forbidden": float(exact[~program.allowed].max(initial=0.0)),
            "expected": program.short(exact),
        },
        repair=Repair.between(matrix, exact, 0.0).change,
        allowed=program.allowed,
        expected=None if program.floor is None else program.floor.expected,
        weight=best.floor,
        laws=best.laws,
    )


def certify_symmetric_level(
    program: SymmetricLeastLeakage, lifts: FloatArray, proofs: Iterable[Multipliers]
) -> SymmetricLevelCertificate:
    """Certify (C,) lifts on orbits of pairs, in integers, with the level they then have."""
    exact, bound, best = _best(program, lifts, proofs)
    columns = program.columns
    mechanism = in_whole_numbers(program.space, exact, columns.means(exact))

    def holds(level: float) -> bool:
        within = replace(columns, privacy=(PML(level),) * len(columns.cells))
        return measured <= level and within.hold_exactly(mechanism.masses)

    measured = columns.levels(mechanism.lifts)["pml"]
    value = raised(holds, measured)
    asked = program.floor.expected
    return SymmetricLevelCertificate(
        mechanism=mechanism,
        privacy=PML(value),
        value=value,
        bound=min(bound, value),
        table=asked.table,
        maximised=asked.maximised,
        expected=asked.value,
        multipliers=best.rows,
        weight=best.floor,
        repair=Change(0.0, float(np.abs(mechanism.lifts - lifts).max())),
    )


def _best(
    program: LeastLeakage, lifts: FloatArray, proofs: Iterable[Multipliers]
) -> tuple[FloatArray, float, Multipliers]:
    """Return the lifts without noise, and the best of the proofs with its bound."""
    exact = cleaned(program, lifts)
    if exact is None:
        raise MechanismError("the matrix does not meet the demands, not even roughly")
    tried = ((program_level(program, proof), proof) for proof in proofs)
    bound, best = max(tried, key=lambda found: found[0])
    return exact, bound, best


def program_level(program: LeastLeakage, proof: Multipliers) -> float:
    """Compute the level that multipliers prove to be a lower bound."""
    if isinstance(program, SymmetricLeastLeakage):
        return least_level_of(program.columns, program.allowed, program.floor, proof)
    return least_level(program.prior, program.allowed, program.floor, proof, program.over)


def cleaned(program: LeastLeakage, matrix: FloatArray) -> FloatArray | None:
    """Return the matrix without noise, on the exact grid: the version that leaks least and meets the demands.

    None where none does.
    """
    found = list(_versions(program, matrix))
    return min(found, key=program.level) if found else None


def _versions(program: LeastLeakage, matrix: FloatArray) -> Iterator[FloatArray]:
    inside = np.where(program.allowed, np.maximum(matrix, 0.0), 0.0)
    before = np.full_like(inside, np.nan)
    for noise in NOISE_THRESHOLDS:
        clean = np.where(inside > noise, inside, 0.0)
        if np.array_equal(clean, before):
            continue
        before = clean
        sums = program.columns.sums(clean)
        if np.isfinite(clean).all() and (np.abs(sums - 1) < 1e-6).all():
            met = program.exact(lifted(program, program.columns.normalised(clean)))
            if program.short(met) == 0:
                yield met


def lifted(program: LeastLeakage, matrix: FloatArray) -> FloatArray:
    """Mix in as much of each letter's best output as the floor needs.

    Of the outputs that occur: a little of another one would leak much.
    """
    short = program.short(matrix)
    if short == 0 or program.floor is None:
        return matrix
    best = best_allowed(program, program.columns.means(matrix) > 0)
    gained = program.floor.slack(best) + short
    theta = min(1.0, 1.01 * short / gained) if gained > 0 else 1.0
    return (1 - theta) * matrix + theta * best


def best_allowed(program: LeastLeakage, among: BoolArray | bool = True) -> FloatArray:
    """Build the mechanism of each letter's allowed output with the largest gain, the first of equals.

    Args:
        program: with a floor.
        among: (M,) the outputs to choose from where a letter has one of them.
    """
    assert program.floor is not None
    columns, gains = program.columns, program.floor.gains
    every: Any = np.broadcast_to(among, columns.means(gains).shape)
    usable = program.allowed & columns.of_outputs(every, gains.shape)
    usable = np.where(columns.of_pairs(columns.largest(usable + 0.0)) > 0, usable, program.allowed)
    best = np.where(usable, gains, -np.inf)
    ties = np.flatnonzero((best == columns.of_pairs(columns.largest(best))).ravel())
    letter = columns.pairs(np.ones(gains.shape, dtype=bool))[0][ties]
    first = ties[np.unique(letter, return_index=True)[1]]
    found = np.zeros(gains.size)
    found[first] = 1.0
    return columns.normalised(found.reshape(gains.shape))


def _claim(prior: Prior, over: PriorSet | None, matrix: FloatArray) -> PML:
    """Find the least PML level of a matrix on the grid that holds in exact arithmetic, as a float."""
    labelled = Mechanism(matrix, prior.labels)

    def holds(level: float) -> bool:
        claim = PML(level, over)
        return holds_exactly(prior, claim, matrix) and claim.holds(prior, labelled)

    return PML(raised(holds, PML(0.0, over).levels(prior, labelled)["pml"]), over)
