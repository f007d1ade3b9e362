"""Post-processings of a mechanism as points of the linear program of its envelope, and back.

A point is an (M', N) matrix: which share of each merged output goes to the outcome of each letter. What is
left of a row goes to one more outcome.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.measures import binary_event
from pmlopt.measures.approximate import quantile
from pmlopt.mechanism import Mechanism
from pmlopt.programs.envelope.post_processing import PostProcessings
from pmlopt.programs.envelope.program import EnvelopeProgram

NOISE_THRESHOLD = 1e-15
"""What is left of a row of a point counts as rounding up to this, a few units in the last place of 1."""

ENTRY_NOISE = 1e-12
"""Entries of a solver's point up to this become zero: a hundredth of HiGHS' feasibility tolerance."""

LARGEST_TOP_UP = 1e-6
"""A point whose mass is short of delta by at most this is topped up: ratios are asked a hair above the
one that is wanted, and solvers have tolerances. A point that is short by more is left as it is."""

TOP_UP_MARGIN = 4e-15
"""By how much more than delta, relatively, the mass is made: what rounding may take off again."""


def without_noise(point: FloatArray) -> FloatArray:
    """A solver's point without the entries that are rounding alone."""
    return np.where(point > ENTRY_NOISE, point, 0.0)


def plain_attack(program: EnvelopeProgram) -> FloatArray:
    """The outputs that leak most, of mass delta or more, each to the letter that it tells most of.

    It reaches what the mechanism reaches by itself.
    """
    ratios = program.merged / program.law
    peaks = ratios.max(axis=0)
    taken = np.flatnonzero(peaks >= quantile(peaks, program.law, program.delta, upper=True))
    point = np.zeros(program.merged.T.shape)
    point[taken, ratios.argmax(axis=0)[taken]] = 1.0
    return point


def binary_attack(program: EnvelopeProgram) -> FloatArray:
    """The event of mass delta that leaks most, to the letter through which it does."""
    event = binary_event(program.prior, program.merged, program.delta)
    point = np.zeros(program.merged.T.shape)
    point[:, int((program.merged @ event).argmax())] = event
    return point


def folded(program: EnvelopeProgram, matrix: FloatArray) -> FloatArray:
    """The point of an (M, K) post-processing: its outcomes at or above its quantile, merged by letters."""
    laws = program.prior.pmf @ program.given.matrix
    rows = np.array([laws[list(group)] @ matrix[list(group)] for group in program.groups])
    rows /= program.law[:, None]
    columns = program.merged @ rows
    masses = program.prior.pmf @ columns
    used = np.flatnonzero(masses > 0)
    ratios = (columns[:, used] / masses[used]).max(axis=0)
    least = quantile(ratios, masses[used], program.delta, upper=True)
    point = np.zeros(program.merged.T.shape)
    for z in used[ratios >= least]:
        point[:, int(columns[:, z].argmax())] += rows[:, z]
    return point


def topped_up(program: EnvelopeProgram, point: FloatArray) -> FloatArray:
    """The point with what little its mass is short of delta added to its likeliest outcome."""
    law = program.law
    scaled = np.asarray(point / np.maximum(point.sum(axis=1, keepdims=True), 1.0))
    rest = 1 - scaled.sum(axis=1)
    short = program.delta * (1 + TOP_UP_MARGIN) - float(law @ scaled.sum(axis=1))
    room = float(law @ rest)
    if 0 < short <= LARGEST_TOP_UP and room > 0:
        scaled[:, int((law @ scaled).argmax())] += min(1.0, short / room) * rest
    return scaled


def reached_ratio(program: EnvelopeProgram, point: FloatArray) -> float:
    """The upper quantile of the likelihood ratio after the post-processing of a point."""
    columns = program.merged @ np.column_stack([point, _rest(point)])
    masses = program.prior.pmf @ columns
    used = masses > 0
    ratios, masses = columns[:, used].max(axis=0) / masses[used], masses[used]
    return quantile(ratios, masses, program.delta, upper=True)


def spread(program: PostProcessings[Any], point: FloatArray) -> FloatArray:
    """(M, N) the point on all given outputs; those that never occur go to no letter."""
    shares = np.zeros((len(program.given.outputs), point.shape[1]))
    for row, group in zip(point, program.groups, strict=True):
        shares[list(group)] = row
    return shares


def leaking(gains: FloatArray, shares: FloatArray) -> FloatArray:
    """(M, N) shares that are mended until the outcome of each letter leaks log t or more.

    What a letter's outputs have to spare, `P[x,y] - t q[y]` where that is positive, must cover the others: of
    these it gives back what it cannot cover, with a margin for rounding. Outputs that leak so much by
    themselves go whole to the letter that they tell most of.

    Args:
        gains: (N, M) `P[x,y] - t q[y]`, with the right signs.
        shares: (M, N) non-negative.
    """
    terms = gains.T * shares
    spare, cost = np.maximum(terms, 0.0).sum(axis=0), np.maximum(-terms, 0.0).sum(axis=0)
    margin = rounding_of(sum(gains.shape), 1.0)
    covered = np.minimum(1.0, spare * (1 - margin) / np.where(cost > 0, cost, 1.0))
    mended = np.where(terms < 0, shares * covered, shares)
    free = np.flatnonzero(gains.max(axis=0) >= 0)
    mended[free, gains.argmax(axis=0)[free]] += _rest(mended)[free]
    return mended


def channel(program: PostProcessings[Any], shares: FloatArray) -> Mechanism:
    """The post-processing that gives (M, N) shares to the letters; one more outcome takes what is left.

    Its outcomes have the labels of the letters, and that one None, or () where a letter is None.
    """
    used = np.flatnonzero(program.prior.pmf @ program.given.matrix @ shares > 0)
    matrix = np.column_stack([shares[:, used], _rest(shares[:, used])])
    matrix /= matrix.sum(axis=1, keepdims=True)
    kept = np.flatnonzero(matrix.max(axis=0) > 0)
    rest_label = () if None in program.prior.labels else None
    labels = [*(program.prior.labels[x] for x in used), rest_label]
    return Mechanism(matrix[:, kept], program.given.outputs, [labels[place] for place in kept])


def _rest(point: FloatArray) -> FloatArray:
    """What is left of each row."""
    rest = np.maximum(0.0, 1 - point.sum(axis=1))
    return np.where(rest > NOISE_THRESHOLD, rest, 0.0)
