"""Closed forms that are optimal for a program, found by proof: the form's own dual certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from pmlopt import closed_forms
from pmlopt.arrays import FloatArray
from pmlopt.closed_forms.catalogue import forms, meets
from pmlopt.mechanism import Mechanism
from pmlopt.programs.linear.dual_bound import raw_bound, rounding_in
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.utility.linear import expectation

_CLOSED = 1e-10
"""A closed form counts as optimal when its proven gap is below this share of the gain's range."""

_LARGEST_SYSTEM = 200
"""The largest alphabet for which multipliers are fitted to a closed form."""


@dataclass(frozen=True, eq=False)
class KnownOptimum:
    """A closed form that is optimal.

    Attributes:
        name: in `pmlopt.closed_forms`.
        matrix, value: its own.
        multipliers: (N,) those that prove it, of a linear program.
    """

    name: str
    matrix: FloatArray
    value: float
    multipliers: FloatArray | None = None

    @property
    def is_start(self) -> bool:
        """Whether the simplex gains by starting from it; a constant is too degenerate a vertex."""
        return self.name != "constant"


def known_optimum(program: LinearDesign) -> KnownOptimum | None:
    """The first closed form whose utility equals a dual bound; None where none is known.

    Programs with added constraints have none.
    """
    if program.added:
        return None
    prior, gains, near = program.prior, program.centred, _CLOSED * program.scale
    found = _allowed(program)
    most = max(gain for gain, _, _ in found)
    for gain, name, matrix in found:
        if gain < most - near:
            continue
        for multipliers in _multipliers(program, matrix):
            above = raw_bound(prior, program.privacy, gains, multipliers) - gain
            if above <= near and above + rounding_in(prior, program.privacy, gains, multipliers) <= near:
                value = expectation(prior, program.table, matrix)
                return KnownOptimum(name, matrix, value, multipliers)
    return None


def better_form(program: LinearDesign, gap: float, gain: float) -> FloatArray | None:
    """A closed form that gains more than a mechanism whose gap is open; None where there is none.

    A solver's noise can be larger than the entries of a mechanism: those of metric privacy go down to
    e^(-epsilon d).
    """
    if program.added or gap <= _CLOSED * program.scale:
        return None
    best, _, matrix = max(_allowed(program), key=lambda found: found[0])
    return matrix if best > gain else None


def _allowed(program: LinearDesign) -> list[tuple[float, str, FloatArray]]:
    """The closed forms that meet the requirement: what they gain, their names and matrices."""
    return [
        (expectation(program.prior, program.centred, matrix), name, matrix)
        for name, matrix in _candidates(program)
        if meets(program.prior, program.privacy, matrix)
    ]


def _candidates(program: LinearDesign) -> Iterator[tuple[str, FloatArray]]:
    prior, privacy, gains = program.prior, program.privacy, program.centred
    yield "constant", closed_forms.constant(prior, gains).matrix
    yield "deterministic", closed_forms.deterministic(prior, gains).matrix
    if prior.size > len(program.outputs):
        return
    for name, form in forms(prior, privacy):
        yield name, _remapped(program, form) if name == "geometric" else _placed(program, form)


def _remapped(program: LinearDesign, form: Mechanism) -> FloatArray:
    """The form with each of its columns given to the output that values it most, several to one maybe."""
    worth = (program.prior.pmf[:, None] * form.matrix).T @ program.centred
    return np.asarray(form.matrix @ (np.arange(worth.shape[1]) == worth.argmax(axis=1)[:, None]))


def _placed(program: LinearDesign, form: Mechanism) -> FloatArray:
    """The form with its columns given to the outputs that value them most: privacy has no labels."""
    worth = (program.prior.pmf[:, None] * form.matrix).T @ program.centred
    columns, outputs = linear_sum_assignment(worth, maximize=True)
    matrix = np.zeros(program.table.shape)
    matrix[:, outputs] = form.matrix[:, columns]
    return matrix


def _multipliers(program: LinearDesign, matrix: FloatArray) -> Iterator[FloatArray]:
    """Guesses of the multipliers: each letter's own gain, its least one, complementary slackness."""
    gains, p = program.centred, program.prior.pmf
    yield (matrix * gains).sum(axis=1)
    yield gains.min(axis=1)
    if program.prior.size <= _LARGEST_SYSTEM:
        used = np.flatnonzero(matrix.max(axis=0) > 0)
        joint = (p[:, None] * matrix[:, used]).T
        joint = joint / joint.sum(axis=1, keepdims=True)
        yield np.linalg.lstsq(joint, (joint * gains[:, used].T).sum(axis=1), rcond=None)[0]
