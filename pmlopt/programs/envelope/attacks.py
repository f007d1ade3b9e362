"""Post-processings of a mechanism as points of the linear program of its envelope, and back.

A point is an (M', N) matrix: which share of each merged output goes to the outcome of each letter. What is
left of a row goes to one more outcome.
"""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.measures import binary_event
from pmlopt.measures.approximate import quantile
from pmlopt.mechanism import Mechanism
from pmlopt.programs.envelope.program import EnvelopeProgram

NOISE_THRESHOLD = 1e-15
"""What is left of a row of a point counts as rounding up to this, a few units in the last place of 1."""

LARGEST_TOP_UP = 1e-6
"""A point whose mass is short of delta by at most this is topped up: ratios are asked a hair above the
one that is wanted, and solvers have tolerances. A point that is short by more is left as it is."""

TOP_UP_MARGIN = 4e-15
"""By how much more than delta, relatively, the mass is made: what rounding may take off again."""


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


def channel(program: EnvelopeProgram, point: FloatArray) -> Mechanism:
    """The post-processing of a point on the given outputs; one more outcome takes what is left.

    Its outcomes have the labels of the letters, and that one None, or () where a letter is None.
    """
    used = np.flatnonzero(program.law @ point > 0)
    rows = np.column_stack([point[:, used], _rest(point[:, used])])
    matrix = np.zeros((len(program.given.outputs), rows.shape[1]))
    matrix[:, -1] = 1.0  # outputs that never occur
    for row, group in zip(rows / rows.sum(axis=1, keepdims=True), program.groups, strict=True):
        matrix[list(group)] = row
    kept = np.flatnonzero(matrix.max(axis=0) > 0)
    rest_label = () if None in program.prior.labels else None
    labels = [*(program.prior.labels[x] for x in used), rest_label]
    return Mechanism(matrix[:, kept], program.given.outputs, [labels[place] for place in kept])


def _rest(point: FloatArray) -> FloatArray:
    """(M',) what is left of each row."""
    rest = np.maximum(0.0, 1 - point.sum(axis=1))
    return np.where(rest > NOISE_THRESHOLD, rest, 0.0)
