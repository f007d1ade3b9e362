"""Closed forms of linear designs: feasible ones, and one with a proof of optimality."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.core.lazy_imports import optimize
from pmlopt.model.closed_forms.catalogue import build_closed_forms, is_within_limits
from pmlopt.model.utility.linear import (
    build_best_constant,
    build_best_deterministic,
    compute_expectation,
)
from pmlopt.programs.linear.build_certificate import CLOSED_FORM_GAP
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline


@dataclass(frozen=True, eq=False)
class KnownOptimum:
    """An optimal closed-form mechanism by name, with the (N,) row multipliers that prove it."""

    name: str
    matrix: FloatArray
    value: float
    multipliers: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class _Form:
    """A closed-form mechanism as (N, K) columns, with the output and the sum of each column."""

    name: str
    columns: FloatArray
    outputs: IntArray
    matrix: FloatArray


def find_known_optimum(
    program: LinearDesign, deadline: Deadline = NO_DEADLINE
) -> KnownOptimum | None:
    """Find the first closed form that a dual bound proves optimal; None without one in time.

    Programs with added constraints have none.
    """
    if program.added or deadline.expired:
        return None
    # of bounds on pairs in all columns, where they are many
    ratios = program.bounds_on_pairs
    bounds = 0 if ratios is None else len(ratios.exponents) * program.table.shape[1]
    # the linear programs of a proof then take longer than the interior point by pairs; on a line, of which a
    # closed form is known, letters have few pairs
    is_dense = ratios is not None and len(ratios.exponents) > 10 * program.prior.size
    if (is_dense and bounds > 40_000) or deadline.expired_for(-SECONDS_A_PAIR * bounds):
        return None
    prior, gains, near = program.prior, program.centered_gains, CLOSED_FORM_GAP * program.scale
    found, seconds = list_feasible_forms(program), SECONDS_A_PRICE * bounds
    # a form below another feasible one by more than rounding cannot be optimal
    max_gain = max(found, key=itemgetter(0))[0]
    for gain, form in found:
        if gain < max_gain - near:
            continue
        for multipliers in _iterate_multipliers(program, form):
            if (
                _bound_from_columns(program, multipliers) > gain + near
            ):  # much cheaper than the bound itself
                continue
            if deadline.expired_for(
                -seconds
            ):  # judged by the last bound, the next one would not end in time
                return None
            begin = deadline.read()
            above = program.columns.unrounded_bound(gains, multipliers) - gain
            seconds = deadline.read() - begin
            if above <= near and above + program.columns.bound_rounding(gains, multipliers) <= near:
                value = compute_expectation(prior, program.table, form.matrix)
                return KnownOptimum(form.name, form.matrix, value, multipliers)
    return None


SECONDS_A_PAIR, SECONDS_A_PRICE = 6e-8, 5e-6
"""What a bound on a pair in a column takes: to check whether closed forms meet it, and in a dual bound."""


def _bound_from_columns(program: LinearDesign, multipliers: FloatArray) -> float:
    """Compute a lower bound on the dual bound of multipliers, from some allowed columns."""
    reduced_gains = program.prior.pmf[:, None] * (program.centered_gains - multipliers[:, None])
    columns = program.privacy.list_some_columns(program.prior)
    return float(program.prior.pmf @ multipliers + (columns.T @ reduced_gains).max())


def find_better_form(program: LinearDesign, certificate: LinearCertificate) -> FloatArray | None:
    """Return a closed form with a larger gain than a mechanism whose gap is open; None without one.

    A solver's noise can be larger than the entries of a mechanism: those of metric privacy go down to
    e^(-epsilon d).
    """
    if program.added or certificate.proved_gap <= CLOSED_FORM_GAP * program.scale:
        return None
    gain = compute_expectation(program.prior, program.centered_gains, certificate.mechanism.matrix)
    best, form = max(list_feasible_forms(program), key=lambda found: found[0])
    return form.matrix if best > gain else None


def list_feasible_forms(program: LinearDesign) -> list[tuple[float, _Form]]:
    """List the feasible closed forms with their expected gains."""
    found, prior = [], program.prior
    for form in _iterate_candidates(program):
        # a constant meets every requirement
        if form.name == "constant" or is_within_limits(prior, program.privacy, form.matrix):
            gain = compute_expectation(prior, program.centered_gains, form.matrix)
            found.append((gain, form))
    return found


def _iterate_candidates(program: LinearDesign) -> Iterator[_Form]:
    """Yield the closed forms that may be optimal for a program."""
    prior, gains = program.prior, program.centered_gains
    yield _make_form("constant", build_best_constant(prior.probabilities, gains))
    yield _make_form("deterministic", build_best_deterministic(gains))
    # the other forms have a column for each letter
    if prior.size > len(program.outputs):
        return
    for name, form in build_closed_forms(
        prior, program.privacy
    ):  # privacy has no labels: who values a column has it
        # (K, M): what each column of the form gains if it is labelled by each output
        gains_by_output = (prior.pmf[:, None] * form.matrix).T @ gains
        columns, outputs = np.arange(len(gains_by_output)), gains_by_output.argmax(axis=1)
        if name == "geometric":  # several to one maybe
            matrix = form.matrix @ (np.arange(gains_by_output.shape[1]) == outputs[:, None])
            yield _Form(name, form.matrix, outputs, np.asarray(matrix))
            continue
        if len(set(outputs.tolist())) < len(outputs):  # several columns want one output
            columns, outputs = optimize.linear_sum_assignment(gains_by_output, maximize=True)
        matrix = np.zeros(program.table.shape)
        matrix[:, outputs] = form.matrix[:, columns]
        yield _make_form(name, matrix)


def _make_form(name: str, matrix: FloatArray) -> _Form:
    """Return a closed form with one column per output that occurs."""
    used = np.flatnonzero(matrix.max(axis=0) > 0)
    return _Form(name, matrix[:, used], used, matrix)


def _iterate_multipliers(program: LinearDesign, form: _Form) -> Iterator[FloatArray]:
    """Yield candidate multipliers for a closed form, such as those of complementary slackness.

    The last comes first where a bound takes linear programs: of a form that is optimal, each column gains
    nothing over the multipliers.
    """
    gains = program.centered_gains
    # The largest alphabet for which multipliers are fitted to a closed form.
    solved = program.prior.size <= 200
    if solved and program.column_block is None:
        yield _solve_complementary_slackness(program, form)
    yield (form.matrix * gains).sum(axis=1)
    yield gains.min(axis=1)
    if solved and program.column_block is not None:
        yield _solve_complementary_slackness(program, form)


def _solve_complementary_slackness(program: LinearDesign, form: _Form) -> FloatArray:
    """Solve for the multipliers at which every column of the closed form has zero reduced gain."""
    joint = (program.prior.pmf[:, None] * form.columns).T
    # (K, N): posteriors, under which each column's gain equals its mean multiplier
    joint = joint / joint.sum(axis=1, keepdims=True)
    gained = (joint * program.centered_gains[:, form.outputs].T).sum(axis=1)
    return np.asarray(np.linalg.lstsq(joint, gained, rcond=None)[0])
