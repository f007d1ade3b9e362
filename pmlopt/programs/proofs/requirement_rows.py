"""The rows of a requirement on a mechanism over the rationals, with the variables that they bring."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

from pmlopt.core.arrays import MAX_EXPONENT
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import (
    ApproximatePML,
    GuessLeakage,
    Requirement,
    RequirementConjunction,
)
from pmlopt.model.privacy.mean_bounds import BoundKind, MeanBounds
from pmlopt.model.uncertainty import PriorSet
from pmlopt.programs.proofs.exact_program import ONE, ZERO
from pmlopt.programs.proofs.mechanism_rows import MechanismRows
from pmlopt.programs.proofs.set_rows import add_least_mean


@singledispatch
def add_requirement(requirement: Requirement, rows: MechanismRows, name: str) -> None:
    """Add the rows of a requirement, under a name.

    Raises:
        ProgramError: it has no form by linear rows.
    """
    # for a bound on the optimum those suffice from which the others follow
    listed = requirement.ratios if rows.program.powers.above else requirement.required_ratios
    ratios = listed(rows.weights)
    if ratios is None:
        raise ProgramError(
            f"{requirement!r} is no list of linear rows, and a proof of this kind is of a linear program: "
            "PML (also over l1 balls, boxes and hulls), LDP, LIP, maximal leakage, ratio bounds, metrics, "
            "approximate PML and guess leakage are"
        )
    pairs = [end.tolist() for end in (ratios.above, ratios.below, ratios.exponents)]
    for y, output in enumerate(rows.outputs):
        sides = rows.list_column(y)
        for place, (row, scale) in enumerate(zip(ratios.rows, ratios.scales, strict=True)):
            weights = [Fraction(value) / Fraction(scale) for value in row.tolist()]
            mean = f"mean[{name},{place},{output}]"
            is_law = weights == rows.shares
            sides.append(
                rows.get_law(y) if is_law else rows.program.define(mean, rows.weigh(y, weights))
            )
        for place, (above, below, exponent) in enumerate(zip(*pairs, strict=True)):
            # one pair of a side with itself cancels
            if above != below:
                terms = {sides[above]: ONE, sides[below]: -rows.program.powers(exponent)}
                rows.program.add_row(f"pair[{name},{place},{output}]", terms)


@add_requirement.register
def _(requirement: RequirementConjunction, rows: MechanismRows, name: str) -> None:
    """Add the rows of all parts."""
    for place, part in enumerate(requirement.parts):
        add_requirement(part, rows, f"{name}{place}")


@add_requirement.register
def _(requirement: MeanBounds, rows: MechanismRows, name: str) -> None:
    """Add the rows of bounds between means, each by few more variables."""
    program = rows.program
    for one in requirement.bounds:
        if one.kind == BoundKind.SUM_OF_MAX:
            _bound_sum_of_largest(one.exponent, rows, name)
            continue
        if program.powers.above and one.exponent > MAX_EXPONENT:
            continue  # of a bound on the optimum a row may be left out
        is_mean = one.kind == BoundKind.MAX_OVER_MEAN
        most = rows.vacuous_exponent if is_mean else MAX_EXPONENT
        factor = program.powers(min(one.exponent, most))
        for y, output in enumerate(rows.outputs):
            if one.kind == BoundKind.MEAN_OVER_MIN:
                rows.add_letter_rows(f"least[{name}", y, {rows.get_law(y): 1 / factor}, sign=-1)
                continue
            if is_mean:
                side = rows.get_law(y)
            elif one.kind == BoundKind.MAX_OVER_MIN:
                side = program.add_column(f"floor[{name},{output}]", min(rows.get_values(y)))
                rows.add_letter_rows(f"over_floor[{name}", y, {side: ONE}, sign=-1)
            else:
                assert isinstance(one.smaller, PriorSet)
                side = add_least_mean(one.smaller, rows, name, y)
            rows.add_letter_rows(f"most[{name}", y, {side: -factor})


def _bound_sum_of_largest(exponent: float, rows: MechanismRows, name: str) -> None:
    """Bound the sum of the largest probabilities of all outputs."""
    program, tops = rows.program, []
    for y, output in enumerate(rows.outputs):
        tops.append(program.add_column(f"top[{name},{output}]", max(rows.get_values(y))))
        rows.add_letter_rows(f"under_top[{name}", y, {tops[-1]: -ONE})
    # past the number of letters the bound is none
    right = program.powers(min(exponent, math.log(len(rows.letters)) + 1e-6))
    program.add_row(f"tops[{name}]", dict.fromkeys(tops, ONE), right)


@add_requirement.register
def _(requirement: ApproximatePML, rows: MechanismRows, name: str) -> None:
    """Add the rows of PML with an excess that is bounded for each letter."""
    program, delta = rows.program, Fraction(requirement.delta)
    factor = program.powers(min(requirement.epsilon, rows.vacuous_exponent))
    sums: list[list[int]] = [[] for _ in rows.letters]
    for y, output in enumerate(rows.outputs):
        law = rows.get_law(y)
        for letter, cell, own in zip(rows.letters, rows.list_column(y), sums, strict=True):
            value = max(program.values[cell] - factor * program.values[law], ZERO)
            own.append(program.add_column(f"over[{name},{letter},{output}]", value))
            terms = {cell: ONE, law: -factor, own[-1]: -ONE}
            program.add_row(f"most_but[{name},{letter},{output}]", terms)
    for letter, own in zip(rows.letters, sums, strict=True):
        program.add_row(f"slack[{name},{letter}]", dict.fromkeys(own, ONE), delta)


@add_requirement.register
def _(requirement: GuessLeakage, rows: MechanismRows, name: str) -> None:
    """Add the rows of the sum of the largest joint probabilities, by a threshold and what is above it."""
    program, count = rows.program, min(requirement.guesses, len(rows.letters))
    limit = program.powers(min(requirement.epsilon, MAX_EXPONENT)) * sum(
        sorted(rows.shares)[-count:]
    )
    for y, output in enumerate(rows.outputs):
        law, cells = rows.get_law(y), rows.list_column(y)
        joint = [w * program.values[cell] for w, cell in zip(rows.shares, cells, strict=True)]
        threshold = sorted(joint)[-count]
        edge = program.add_column(f"edge[{name},{output}]", threshold)
        terms = {edge: Fraction(count), law: -limit}
        for letter, cell, share, value in zip(rows.letters, cells, rows.shares, joint, strict=True):
            inside = f"[{name},{letter},{output}]"
            over = program.add_column(f"over_edge{inside}", max(value - threshold, ZERO))
            program.add_row(f"joint{inside}", {cell: share, edge: -ONE, over: -ONE})
            terms[over] = ONE
        program.add_row(f"guesses[{name},{output}]", terms)
