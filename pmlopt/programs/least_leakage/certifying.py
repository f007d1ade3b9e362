"""From a matrix to the certificate of a least leakage: without noise, on the exact grid, with its level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.core.roots import raised
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import PML
from pmlopt.model.uncertainty import PriorSet
from pmlopt.programs.exact.arithmetic import holds_exactly, snap
from pmlopt.programs.exact.repair import Repair
from pmlopt.programs.least_leakage.certificate import LevelCertificate, Multipliers, least_level
from pmlopt.programs.least_leakage.program import LeastLeakage

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
    prior = program.prior
    exact = cleaned(program, matrix)
    if exact is None:
        raise MechanismError("the matrix does not meet the demands, not even roughly")
    mechanism = Mechanism(exact, prior.labels, program.outputs)
    privacy = _claim(prior, program.over, exact)
    known = (prior, program.allowed, program.floor)
    bound, best = max(
        ((least_level(*known, proof, program.over), proof) for proof in proofs),
        key=lambda found: found[0],
    )
    value = privacy.epsilon
    return LevelCertificate(
        prior=prior,
        privacy=privacy,
        mechanism=mechanism,
        value=value,
        bound=min(bound, value),
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


def cleaned(program: LeastLeakage, matrix: FloatArray) -> FloatArray | None:
    """The matrix without noise, on the exact grid: that which leaks least of those that meet the demands.

    None where none does.
    """
    found = list(_versions(program, matrix))
    return min(found, key=program.level) if found else None


def _versions(program: LeastLeakage, matrix: FloatArray) -> Iterator[FloatArray]:
    inside = np.where(program.allowed, np.maximum(matrix, 0.0), 0.0)
    for noise in NOISE_THRESHOLDS:
        clean = np.where(inside > noise, inside, 0.0)
        sums = clean.sum(axis=1, keepdims=True)
        if np.isfinite(clean).all() and (np.abs(sums - 1) < 1e-6).all():
            met = snap(_lifted(program, clean / sums))
            if program.short(met) == 0:
                yield met


def _lifted(program: LeastLeakage, matrix: FloatArray) -> FloatArray:
    """The matrix with as much of each letter's best output mixed in as the floor needs.

    Of the outputs that occur: a little of another one would leak much.
    """
    short = program.short(matrix)
    if short == 0 or program.floor is None:
        return matrix
    best = best_allowed(program, matrix.max(axis=0) > 0)
    gained = program.floor.slack(best) + short
    theta = min(1.0, 1.01 * short / gained) if gained > 0 else 1.0
    return (1 - theta) * matrix + theta * best


def best_allowed(program: LeastLeakage, among: BoolArray | bool = True) -> FloatArray:
    """(N, M) each letter's allowed output with the largest gain, the first of equals.

    Args:
        program: with a floor.
        among: (M,) the outputs to choose from where a letter has one of them.
    """
    assert program.floor is not None
    usable = program.allowed & among
    usable = np.where(usable.any(axis=1, keepdims=True), usable, program.allowed)
    best = np.where(usable, program.floor.gains, -np.inf).argmax(axis=1)
    matrix = np.zeros(program.allowed.shape)
    matrix[np.arange(len(best)), best] = 1.0
    return matrix


def _claim(prior: Prior, over: PriorSet | None, matrix: FloatArray) -> PML:
    """The PML level of a matrix on the grid, as the least float found that holds in exact arithmetic."""
    labelled = Mechanism(matrix, prior.labels)

    def holds(level: float) -> bool:
        claim = PML(level, over)
        return holds_exactly(prior, claim, matrix) and claim.holds(prior, labelled)

    return PML(raised(holds, PML(0.0, over).levels(prior, labelled)["pml"]), over)
