"""The removal of dust, the tiny probabilities that interior points leave, from certified mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import Requirement
from pmlopt.programs.certificate import Certificate, DesignCertificate
from pmlopt.programs.exact.rounding import (
    MAX_COLUMN_CHANGE,
    RepairedMatrix,
    RepairRecord,
    compute_mixing_weights,
    drop_noise,
    is_satisfied,
    round_rows_to_grid,
)
from pmlopt.programs.program import MethodResult, Program

MAX_STRICT_SIZE, MAX_STRICT_ROUNDS = 200_000, 20
"""The entries times letters up to which a strict mechanism is looked for, and its cutting planes."""

SLIGHT_WEIGHTS = (2.0**-51, 2.0**-49, 2.0**-46, 2.0**-43, 2.0**-40)
"""The shares of another mechanism that mend what rounding broke."""

DUST_LIMITS = (1e-5, 1e-6, 1e-7)
"""Conditional probabilities up to the largest of these that costs little are removed."""

C = TypeVar("C", bound=Certificate)


def remove_dust(
    exchange: Callable[[Any, C, FloatArray], C],
    program: Program[C],
    found: MethodResult[C],
    allowed: float,
) -> MethodResult[C]:
    """Remove outputs and entries that the certified gap cannot see from the mechanism of a result.

    Outputs are merged into others, which is a post-processing: it raises no level. Entries become zero, and
    columns that then break their bounds are repaired among the other entries. What is returned meets the
    requirement exactly, and its value and level are computed again; the proof of the bound has no part in the
    mechanism, and stays. The result is returned as it is where it has no dust, or where each removal costs
    more than the gap can see, opens the gap beyond what is allowed, or breaks an added constraint by more.

    Args:
        exchange: returns a certificate with another mechanism, as `MethodRegistry.replace_mechanism`.
        program: which was solved.
        found: what a method returned.
        allowed: the gap up to which a result counts as optimal.
    """
    before = found.certificate
    if not isinstance(before, DesignCertificate) or before.violation > 0:
        return found
    given = before.mechanism.matrix
    for matrix in _iterate_cleaned(program, before, given):
        after: Any = exchange(program, found.certificate, matrix)
        if _is_cheap(before, after, allowed):
            repair = _join_repairs(before.repair, given, matrix)
            return _with_certificate(found, replace(after, repair=repair))
    return found


def merge_rare_outputs(
    matrix: FloatArray, limit: float, weights: FloatArray, gains: FloatArray | None = None
) -> FloatArray:
    """Merge each output with no entry above a limit into one that has, and return the matrix.

    Args:
        matrix: (N, M) a mechanism.
        limit: below 1 / M, so that an output remains.
        weights: (N,) the probabilities of the letters.
        gains: (N, M) of which the expectation matters: each output is merged into the one with which least
            is lost. Left out, all are merged into the likeliest.

    Examples:
        >>> merge_rare_outputs(np.array([[0.75, 0.25 - 2**-30, 2**-30]]), 1e-6, np.ones(1))
        array([[0.75, 0.25, 0.  ]])
    """
    largest = matrix.max(axis=0)
    kept = largest > limit
    rare = np.flatnonzero(~kept & (largest > 0))
    merged = np.where(kept, matrix, 0.0)
    for output in rare:
        column = matrix[:, output]
        worths = weights @ matrix if gains is None else (weights * column) @ gains
        merged[:, np.where(kept, worths, -np.inf).argmax()] += column
    return merged


def clear_tiny_entries(
    prior: Prior, privacy: Requirement, matrix: FloatArray, limit: float
) -> FloatArray | None:
    """Return a mechanism without entries up to a limit that nearly meets the requirement; None without one.

    Zeros stay zeros: a column that breaks its bound is mixed with its mean on the letters that have it.
    """
    clear = drop_noise(matrix, limit)
    support = clear > 0
    # rows over their sums undo a part of what was mixed in
    for _ in range(5):
        constant = _average_on_support(prior, clear, support)
        # twice what the chord reveals, for the same reason
        weights = np.minimum(2 * compute_mixing_weights(prior, privacy, clear, constant), 1.0)
        if weights.max() == 0:
            return round_rows_to_grid(clear)
        if weights.max() > MAX_COLUMN_CHANGE:
            return None
        clear = drop_noise((1 - weights) * clear + weights * constant, 0.0)
    return None


def repair_within_support(
    prior: Prior, privacy: Requirement, matrix: FloatArray
) -> FloatArray | None:
    """Return a mechanism near one that breaks its bounds by rounding, with the same zeros; None without one.

    A little of another mechanism with these zeros is mixed in, a little more at each try: of each column's
    mean on the letters that have it, or else of one that is strictly within the bounds.
    """
    snapped = _snap_rows(matrix)
    if is_satisfied(prior, privacy, snapped):
        return snapped
    missing = compute_mixing_weights(prior, privacy, matrix, prior.pmf @ matrix)
    if missing.max() > SLIGHT_WEIGHTS[-1]:  # only rounding is mended
        return None
    support = matrix > 0
    found = _mix_slightly(prior, privacy, matrix, _average_on_support(prior, matrix, support))
    if found is not None or support.all() or matrix.size * len(matrix) > MAX_STRICT_SIZE:
        return found
    strict = find_strict_mechanism(prior, privacy, matrix)
    return None if strict is None else _mix_slightly(prior, privacy, matrix, strict)


def _average_on_support(prior: Prior, matrix: FloatArray, support: BoolArray) -> FloatArray:
    """Average each column over the letters that have it."""
    masses = np.maximum(prior.pmf @ support, np.finfo(float).tiny)
    return np.where(support, (prior.pmf @ matrix) / masses, 0.0)


def _snap_rows(matrix: FloatArray) -> FloatArray:
    """Return the matrix with rows over their sums, on the grid."""
    return round_rows_to_grid(matrix / matrix.sum(axis=1, keepdims=True))


def _mix_slightly(
    prior: Prior, privacy: Requirement, matrix: FloatArray, other: FloatArray
) -> FloatArray | None:
    """Return the mixture with least of another matrix that meets the requirement; None without one."""
    for weight in SLIGHT_WEIGHTS:
        tried = _snap_rows((1 - weight) * matrix + weight * other)
        if is_satisfied(prior, privacy, tried):
            return tried
    return None


def find_strict_mechanism(
    prior: Prior, privacy: Requirement, matrix: FloatArray
) -> FloatArray | None:
    """Find a mechanism with the zeros of another that is strictly within a requirement; None without one.

    By cutting planes: the excess over a bound is convex in each column and homogeneous, so that its slopes
    at one mechanism bound it at all. The next mechanism has the most room under the slopes so far.

    Args:
        prior: N letters.
        privacy: with bounds on each column separately; None is returned for others.
        matrix: (N, M) the mechanism; room is measured in units of its outputs' probabilities.

    Examples:
        >>> from pmlopt import PML
        >>> corner = np.array([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
        >>> found = find_strict_mechanism(Prior.uniform(3), PML(0.5), corner)
        >>> found is not None and bool((found[corner == 0] == 0).all())
        True
    """
    from scipy import optimize, sparse

    n, m = matrix.shape
    letters, outputs = np.nonzero(matrix)
    count = len(letters)
    entries, own = np.arange(count), privacy.for_prior(prior)
    sums = sparse.csr_array((np.ones(count), (letters, entries)), (n, count + 1))
    room = sparse.csr_array((prior.pmf @ matrix)[:, None])
    aside = 1e-6 * np.random.default_rng(0).random((n, m)) * (matrix > 0)
    costs = np.append(np.zeros(count), -1.0)
    bounds = [(0, None)] * count + [(None, 1)]
    found, cuts = matrix, []
    for _ in range(MAX_STRICT_ROUNDS):
        # away from kinks, where there are no slopes
        slopes = _measure_slopes(prior, own, found + aside)
        if slopes.shape != (n, m):
            return None
        cut = sparse.csr_array((slopes[letters, outputs], (outputs, entries)), (m, count))
        cuts.append(sparse.hstack([cut, room]))
        limits = np.zeros(m * len(cuts))
        answer = optimize.linprog(costs, sparse.vstack(cuts), limits, sums, np.ones(n), bounds)
        if answer.status != 0 or answer.x[-1] <= 1e-6:
            return None
        found = np.zeros((n, m))
        found[letters, outputs] = answer.x[:-1]
        if (own.violation(prior.pmf, found, math.exp) < 0).all():
            return found
    return None


def _measure_slopes(prior: Prior, privacy: Requirement, matrix: FloatArray) -> FloatArray:
    """Measure (N, M) how fast the excess of each column grows with each entry, by differences."""
    step = 1e-9
    excess = privacy.violation(prior.pmf, matrix, math.exp)
    raised = [
        privacy.violation(prior.pmf, matrix + step * unit[:, None], math.exp)
        for unit in np.eye(len(matrix))
    ]
    return np.asarray((np.array(raised) - excess) / step)


def _iterate_cleaned(
    program: Program[Any], certificate: DesignCertificate, matrix: FloatArray
) -> Iterator[FloatArray]:
    """Iterate over mechanisms with less dust that meet the requirement exactly, the cleanest first."""
    prior = certificate.prior
    privacy = certificate.privacy
    largest = matrix.max(axis=0)
    entries = matrix[matrix > 0]
    tried = 0
    for limit in DUST_LIMITS:
        count = int(np.count_nonzero(entries <= limit))
        # rows may consist of such entries; or the dust is that of the limit before, or none
        if limit * matrix.shape[1] > 0.5 or count in (tried, 0):
            continue
        tried = count
        has_rare = bool(((largest > 0) & (largest <= limit)).any())
        for gains in (program.expected_gains, None) if has_rare else (None,):
            merged = merge_rare_outputs(matrix, limit, prior.pmf, gains)
            versions = [merged] if has_rare else []
            has_tiny = bool(((merged > 0) & (merged <= limit)).any())
            dropped = drop_noise(merged, limit) if has_tiny else merged
            if has_tiny and _may_be_zero(prior, privacy, dropped):
                cleared = clear_tiny_entries(prior, privacy, merged, limit)
                versions = [dropped if cleared is None else cleared, *versions]
            repaired = (repair_within_support(prior, privacy, one) for one in versions)
            yield from (one for one in repaired if one is not None)


def _may_be_zero(prior: Prior, privacy: Requirement, matrix: FloatArray) -> bool:
    """Return whether no bound on pairs makes a zero of a large matrix positive; no repair would help it."""
    if len(matrix) * matrix.size < 1_000_000:
        return True
    from pmlopt.programs.exact.envelope_repair import pair_exponents

    exponents = pair_exponents(prior, privacy)
    if exponents is None:
        return True
    support = matrix > 0
    # how many of the positive entries of its column bound an entry from below
    bounds = np.isfinite(exponents).T.astype(np.float32) @ support.astype(np.float32)
    return not ((bounds > 0) & ~support).any()


def _is_cheap(before: DesignCertificate, after: Certificate, allowed: float) -> bool:
    """Return whether a mechanism costs no more than the gap sees and the tolerance allows."""
    assert isinstance(after, DesignCertificate)
    # by complementary slackness, entries times their reduced costs sum to the gap of an interior point; a
    # vertex or a formula has a gap of rounding only, and nothing of it that matters counts as dust
    unseen = 10 * before.proved_gap
    loss = before.value - after.value if before.is_maximised else after.value - before.value
    rounding = 4 * np.spacing(abs(before.value))
    # a gap that is open already may not open by more than the tolerance
    room = allowed - before.proved_gap if before.proved_gap <= allowed else allowed
    keeps_constraints = all(
        violation <= before.residuals.get(name, 0.0) + 1e-12  # rounding
        for name, violation in after.residuals.items()
    )
    is_small = loss <= min(unseen, room) + rounding
    return bool(is_small and keeps_constraints and not after.is_beyond_bound)


def _join_repairs(first: RepairRecord, before: FloatArray, after: FloatArray) -> RepairRecord:
    """Return the record of a repair that was followed by a removal of dust."""
    then = RepairedMatrix.from_matrices(before, after, first.theta)
    dropped = tuple(sorted({*first.dropped, *then.dropped}))
    return RepairRecord(first.theta, first.shift + then.shift, dropped)


def _with_certificate(found: MethodResult[C], certificate: C) -> MethodResult[C]:
    """Return a result with another mechanism for the same program, from which the next one may start."""
    before = found.certificate
    arrays = dict(found.arrays)
    form = found.closed_form
    if arrays.get("matrix") is before.mechanism.matrix:
        arrays["matrix"] = certificate.mechanism.matrix
    if form is not None:
        form = replace(form, difference=form.difference + certificate.value - before.value)
    return replace(found, certificate=certificate, arrays=arrays, closed_form=form)
