"""Certificates of least leakages, built from a matrix without noise on the exact grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.core.numbers.roots import step_up_until
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import PML
from pmlopt.model.uncertainty import PriorSet
from pmlopt.programs.exact.rounding import RepairedMatrix, RepairRecord, is_met_exactly
from pmlopt.programs.least_leakage.certificate import (
    LevelCertificate,
    LevelMultipliers,
    SymmetricLevelCertificate,
    bound_level,
    bound_level_on_columns,
)
from pmlopt.programs.least_leakage.program import LeastLeakage, SymmetricLeastLeakage
from pmlopt.programs.linear.build_certificate import round_lifts_to_integers

NOISE_THRESHOLDS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
"""Entries of at most one of these become zero: of the one with which least leaks."""


def certify_level(
    program: LeastLeakage, matrix: FloatArray, proofs: Iterable[LevelMultipliers]
) -> LevelCertificate:
    """Round a matrix to the exact grid without noise, and certify its level.

    Args:
        program: what was requested.
        matrix: (N, M) a mechanism, up to a solver's noise.
        proofs: multipliers; the best are kept.

    Raises:
        MechanismError: the matrix is no mechanism that meets the demands even roughly.
    """
    exact, bound, best = _clean_and_bound(program, matrix, proofs)
    prior = program.prior
    privacy = _find_claimed_level(prior, program.over, exact)
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
            "expected": program.floor_violation(exact),
        },
        repair=RepairedMatrix.from_matrices(matrix, exact, 0.0).to_record,
        allowed=program.allowed,
        expected=None if program.floor is None else program.floor.expected,
        weight=best.floor,
        laws=best.laws,
    )


def certify_symmetric_level(
    program: SymmetricLeastLeakage, lifts: FloatArray, proofs: Iterable[LevelMultipliers]
) -> SymmetricLevelCertificate:
    """Certify (C,) orbit values in integer arithmetic, with their level."""
    exact, bound, best = _clean_and_bound(program, lifts, proofs)
    columns = program.columns
    mechanism = round_lifts_to_integers(program.space, exact, columns.mean_by_output(exact))

    def is_level(level: float) -> bool:
        within = replace(columns, privacy=(PML(level),) * len(columns.cells))
        return measured <= level and within.is_met_exactly(mechanism.masses)

    measured = columns.compute_levels(mechanism.scaled_entries)["pml"]
    value = step_up_until(is_level, measured)
    expected = program.floor.expected
    return SymmetricLevelCertificate(
        mechanism=mechanism,
        privacy=PML(value),
        value=value,
        bound=min(bound, value),
        table=expected.table,
        maximised=expected.maximised,
        expected=expected.value,
        multipliers=best.rows,
        weight=best.floor,
        repair=RepairRecord(0.0, float(np.abs(mechanism.scaled_entries - lifts).max())),
        sampled_pairs=program.sampled_pairs or None,
    )


def _clean_and_bound(
    program: LeastLeakage, lifts: FloatArray, proofs: Iterable[LevelMultipliers]
) -> tuple[FloatArray, float, LevelMultipliers]:
    """Remove noise from the orbit values, and select the proof with the best bound."""
    exact = remove_noise(program, lifts)
    if exact is None:
        raise MechanismError("the matrix does not meet the demands, not even roughly")
    tried = ((prove_level(program, proof), proof) for proof in proofs)
    bound, best = max(tried, key=lambda found: found[0])
    return exact, bound, best


def prove_level(program: LeastLeakage, proof: LevelMultipliers) -> float:
    """Compute the lower bound on the level that multipliers prove."""
    if isinstance(program, SymmetricLeastLeakage):
        return bound_level_on_columns(program.columns, program.allowed, program.floor, proof)
    return bound_level(program.prior, program.allowed, program.floor, proof, program.over)


def remove_noise(program: LeastLeakage, matrix: FloatArray) -> FloatArray | None:
    """Remove solver noise from a matrix: select the rounded version of least level that meets all demands.

    None where none does.
    """
    found = list(_iterate_versions(program, matrix))
    return min(found, key=program.compute_level) if found else None


def _iterate_versions(program: LeastLeakage, matrix: FloatArray) -> Iterator[FloatArray]:
    # forbidden entries are 0 by the demand, whatever a solver left there
    """Yield repaired versions of a matrix, with entries up to rising thresholds set to zero."""
    inside = np.where(program.allowed, np.maximum(matrix, 0.0), 0.0)
    # nan equals nothing: the first version is always tried
    before = np.full_like(inside, np.nan)
    for noise in NOISE_THRESHOLDS:
        clean = np.where(inside > noise, inside, 0.0)
        # the same entries as before: the exact check is dear, and has the same outcome
        if np.array_equal(clean, before):
            continue
        before = clean
        sums = program.columns.row_sums(clean)
        if np.isfinite(clean).all() and (np.abs(sums - 1) < 1e-6).all():
            met = program.round_to_grid(
                mix_in_best_outputs(program, program.columns.normalize_rows(clean))
            )
            if program.floor_violation(met) == 0:
                yield met


def mix_in_best_outputs(program: LeastLeakage, matrix: FloatArray) -> FloatArray:
    """Mix in each letter's best output until the utility floor is met.

    Of the outputs that occur: a little of another one would leak much.
    """
    short = program.floor_violation(matrix)
    if short == 0 or program.floor is None:
        return matrix
    best = build_best_allowed(program, program.columns.mean_by_output(matrix) > 0)
    gained = program.floor.compute_slack(best) + short
    # the expectation is linear in theta; 1 % more is for rounding to the grid
    theta = min(1.0, 1.01 * short / gained) if gained > 0 else 1.0
    return (1 - theta) * matrix + theta * best


def build_best_allowed(program: LeastLeakage, among: BoolArray | bool = True) -> FloatArray:
    """Build the deterministic mechanism of each letter's best allowed output.

    Args:
        program: with a floor.
        among: (M,) the outputs to choose from where a letter has one of them.
    """
    assert program.floor is not None
    columns = program.columns
    gains = program.floor.normalized_gains
    every: Any = np.broadcast_to(among, columns.mean_by_output(gains).shape)
    usable = program.allowed & columns.broadcast_outputs(every, gains.shape)
    # a letter without such an output takes any that is allowed to it
    usable = np.where(
        columns.broadcast_letters(columns.max_by_letter(usable.astype(float))) > 0,
        usable,
        program.allowed,
    )
    best = np.where(usable, gains, -np.inf)
    ties = np.flatnonzero((best == columns.broadcast_letters(columns.max_by_letter(best))).ravel())
    letter = columns.list_pairs(np.ones(gains.shape, dtype=bool))[0][ties]
    # one output for each letter: of several that are best the first
    first = ties[np.unique(letter, return_index=True)[1]]
    found = np.zeros(gains.size)
    found[first] = 1.0
    return columns.normalize_rows(found.reshape(gains.shape))


def _find_claimed_level(prior: Prior, over: PriorSet | None, matrix: FloatArray) -> PML:
    """Find the smallest float PML level that a grid matrix meets in exact arithmetic."""
    labelled = Mechanism(matrix, prior.labels)

    def is_level(level: float) -> bool:
        claim = PML(level, over)
        return is_met_exactly(prior, claim, matrix) and claim.holds(prior, labelled)

    return PML(step_up_until(is_level, PML(0.0, over).levels(prior, labelled)["pml"]), over)
