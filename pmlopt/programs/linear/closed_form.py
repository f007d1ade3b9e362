"""Closed forms that are optimal for a program, found by proof: the form's own dual certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.model import closed_forms
from pmlopt.model.closed_forms.catalogue import forms, meets
from pmlopt.model.utility.linear import expectation
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.clock import FOREVER, Clock

_CLOSED = 1e-10
"""A closed form counts as optimal when its proven gap is below this share of the gain's range."""

_LARGEST_SYSTEM = 200
"""The largest alphabet for which multipliers are fitted to a closed form."""


@dataclass(frozen=True, eq=False)
class KnownOptimum:
    """A closed form that is optimal, by its name, with the (N,) multipliers that prove it."""

    name: str
    matrix: FloatArray
    value: float
    multipliers: FloatArray | None = None

    @property
    def is_start(self) -> bool:
        """Whether the simplex gains by starting from it; a constant is too degenerate a vertex."""
        return self.name != "constant"


@dataclass(frozen=True, eq=False)
class _Form:
    """A closed form as (N, K) columns, the (K,) output of each (several may go to one), and their sums."""

    name: str
    columns: FloatArray
    outputs: IntArray
    matrix: FloatArray

    @classmethod
    def of(cls, name: str, matrix: FloatArray) -> _Form:
        """A column for each output that occurs."""
        used = np.flatnonzero(matrix.max(axis=0) > 0)
        return cls(name, matrix[:, used], used, matrix)


def known_optimum(program: LinearDesign, clock: Clock = FOREVER) -> KnownOptimum | None:
    """The first closed form whose utility equals a dual bound; None where none is known, or found in time.

    Programs with added constraints have none.
    """
    if program.added:
        return None
    prior, gains, near = program.prior, program.centred, _CLOSED * program.scale
    found, seconds = _allowed(program), 0.0
    most = max(gain for gain, _ in found)
    for gain, form in found:
        if gain < most - near:
            continue
        for multipliers in _multipliers(program, form):
            if _at_least(program, multipliers) > gain + near:  # much cheaper than the bound itself
                continue
            if clock.late_by(-seconds):  # a bound is not begun that the last one says cannot be ended
                return None
            begin = clock.read()
            above = program.columns.raw_bound(gains, multipliers) - gain
            seconds = clock.read() - begin
            if above <= near and above + program.columns.rounding_in(gains, multipliers) <= near:
                value = expectation(prior, program.table, form.matrix)
                return KnownOptimum(form.name, form.matrix, value, multipliers)
    return None


def _at_least(program: LinearDesign, multipliers: FloatArray) -> float:
    """What the dual bound of these multipliers is at least, from some columns that the requirement allows."""
    worth = program.prior.pmf[:, None] * (program.centred - multipliers[:, None])
    columns = program.privacy.some_columns(program.prior)
    return float(program.prior.pmf @ multipliers + (columns.T @ worth).max())


def better_form(program: LinearDesign, gap: float, gain: float) -> FloatArray | None:
    """A closed form that gains more than a mechanism whose gap is open; None where there is none.

    A solver's noise can be larger than the entries of a mechanism: those of metric privacy go down to
    e^(-epsilon d).
    """
    if program.added or gap <= _CLOSED * program.scale:
        return None
    best, form = max(_allowed(program), key=lambda found: found[0])
    return form.matrix if best > gain else None


def _allowed(program: LinearDesign) -> list[tuple[float, _Form]]:
    """The closed forms that meet the requirement, and what they gain."""
    return [
        (expectation(program.prior, program.centred, form.matrix), form)
        for form in _candidates(program)
        if meets(program.prior, program.privacy, form.matrix)
    ]


def _candidates(program: LinearDesign) -> Iterator[_Form]:
    prior, privacy, gains = program.prior, program.privacy, program.centred
    yield _Form.of("constant", closed_forms.constant(prior, gains).matrix)
    yield _Form.of("deterministic", closed_forms.deterministic(prior, gains).matrix)
    if prior.size > len(program.outputs):
        return
    for name, form in forms(prior, privacy):
        yield _remapped(program, form) if name == "geometric" else _Form.of(name, _placed(program, form))


def _remapped(program: LinearDesign, form: Mechanism) -> _Form:
    """The form with each of its columns given to the output that values it most, several to one maybe."""
    worth = (program.prior.pmf[:, None] * form.matrix).T @ program.centred
    outputs = worth.argmax(axis=1)
    matrix = form.matrix @ (np.arange(worth.shape[1]) == outputs[:, None])
    return _Form("geometric", form.matrix, outputs, np.asarray(matrix))


def _placed(program: LinearDesign, form: Mechanism) -> FloatArray:
    """The form with its columns given to the outputs that value them most: privacy has no labels."""
    worth = (program.prior.pmf[:, None] * form.matrix).T @ program.centred
    columns, outputs = np.arange(len(worth)), worth.argmax(axis=1)
    if len(set(outputs.tolist())) < len(outputs):  # several columns want one output
        from scipy.optimize import linear_sum_assignment

        columns, outputs = linear_sum_assignment(worth, maximize=True)
    matrix = np.zeros(program.table.shape)
    matrix[:, outputs] = form.matrix[:, columns]
    return matrix


def _multipliers(program: LinearDesign, form: _Form) -> Iterator[FloatArray]:
    """Guesses of the multipliers: each letter's own gain, its least one, complementary slackness.

    The last comes first where a bound takes linear programs: of a form that is optimal, each column gains
    nothing over the multipliers.
    """
    gains = program.centred
    solved = program.prior.size <= _LARGEST_SYSTEM
    if solved and program.block is None:
        yield _slack(program, form)
    yield (form.matrix * gains).sum(axis=1)
    yield gains.min(axis=1)
    if solved and program.block is not None:
        yield _slack(program, form)


def _slack(program: LinearDesign, form: _Form) -> FloatArray:
    """The multipliers for which each column gains nothing on the mean."""
    joint = (program.prior.pmf[:, None] * form.columns).T
    joint = joint / joint.sum(axis=1, keepdims=True)
    gained = (joint * program.centred[:, form.outputs].T).sum(axis=1)
    return np.asarray(np.linalg.lstsq(joint, gained, rcond=None)[0])
