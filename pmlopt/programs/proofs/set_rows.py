"""The least mean of an output over a set of priors, as a variable with rows over the rationals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

import numpy as np

from pmlopt.errors import ProgramError
from pmlopt.model.uncertainty import ChoquetSet, ConvexHull, PriorSet
from pmlopt.model.uncertainty.row_programs import RowProgram
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, Terms
from pmlopt.programs.proofs.mechanism_rows import MechanismRows

DualPrices = tuple[Fraction, list[Fraction]]
"""A number below all raised values, and a multiplier of at least 0 for each inequality."""


@dataclass(frozen=True, eq=False)
class SetSystem:
    """The priors Q with `rows (Q, d) <= right` for some d >= 0.

    Attributes:
        names: of the inequalities.
        rows: their coefficients, by place: first of the letters, then of d.
        right: their right sides.
        find_prices: what the largest base and prices of the dual are, by linear duality, for some values.
        find_rest: d of a prior of the set.
    """

    names: list[str]
    rows: list[Terms]
    right: list[Fraction]
    find_prices: Callable[[list[Fraction]], DualPrices]
    find_rest: Callable[[Sequence[Fraction]], list[Fraction]]


@singledispatch
def describe_set(over: PriorSet, letters: Sequence[str]) -> SetSystem:
    """Describe a set of priors by inequalities in rationals.

    Raises:
        ProgramError: the set is no polytope that is known in rationals.
    """
    spaces, some = over.half_spaces(), over.project_to_rationals(np.full(over.size, 1 / over.size))
    if spaces is None or some is None:
        raise ProgramError(
            f"{over!r} is no set of priors with rational linear rows: l1 balls, boxes, least masses, "
            "polytopes and hulls of listed priors are, and a hull or a box around it has such a proof"
        )
    # powers of two near the largest coefficients: dividing by them is exact
    units = 2.0 ** np.frexp(np.abs(spaces.rows).max(axis=1, initial=0.0))[1]
    system = RowProgram(spaces.rows / units[:, None], spaces.right / units)
    # the last row is the sum of a prior
    rows, right = (part[:-1] for part in system.exact_system)

    def find_prices(values: list[Fraction]) -> DualPrices:
        largest = max(values) or ONE
        (basis,) = system.find_bases(np.array([[float(value / largest)] for value in values]))
        found = None if basis is None else system.compute_multipliers(basis, values)
        prices = [max(price, ZERO) for price in found or [ZERO] * len(rows)]
        raised = [
            value + sum((price * row[x] for price, row in zip(prices, rows, strict=True)), ZERO)
            for x, value in enumerate(values)
        ]
        return min(raised), prices

    terms = [dict(enumerate(row)) for row in rows]
    return SetSystem([str(k) for k in range(len(rows))], terms, right, find_prices, lambda _: [])


@describe_set.register
def _(over: ChoquetSet, letters: Sequence[str]) -> SetSystem:
    """Describe `{Q: Q >= lower - d, sum d <= shift, Q <= upper}`."""
    nu, size = over.integer_probability, len(letters)
    total, has_upper = Fraction(int(nu.total)), nu.upper is not None
    lower = [Fraction(int(value)) / total for value in nu.lower]
    upper = [Fraction(int(value)) / total for value in (nu.upper if has_upper else [])]
    shift = Fraction(int(nu.shift)) / total
    if shift and has_upper:
        raise ProgramError(
            f"{over!r} has both a shift and upper bounds, and no known rational rows"
        )
    extra = size if shift else 0
    rows = [{x: -ONE, **({size + x: -ONE} if shift else {})} for x in range(size)]
    rows += [{x: ONE} for x in range(len(upper))]
    rows += [dict.fromkeys(range(size, 2 * size), ONE)] if shift else []
    names = [f"lower:{letter}" for letter in letters]
    names += [f"upper:{letter}" for letter in letters[: len(upper)]] + ["radius"] * bool(shift)
    right = [*(-value for value in lower), *upper, *([shift] if shift else [])]

    def list_prices(values: list[Fraction], base: Fraction, cap: Fraction) -> DualPrices:
        prices = [min(max(value - base, ZERO), cap) for value in values]
        prices += [max(base - value, ZERO) for value in values[: len(upper)]]
        return base, prices + [cap] * bool(shift)

    def find_prices(values: list[Fraction]) -> DualPrices:
        ends = sorted(set(values))
        # the best ends are among the values: of bounds from both sides those of base, of a shift those of cap
        bases = ends if has_upper else ends[:1]
        caps = [value - ends[0] for value in ends] if shift else [ends[-1] - ends[0]]
        listed = [list_prices(values, base, cap) for base in bases for cap in caps]
        return max(listed, key=lambda found: _compute_mean(right, *found))

    def find_rest(law: Sequence[Fraction]) -> list[Fraction]:
        return [max(lower[x] - law[x], ZERO) for x in range(extra)]

    return SetSystem(names, rows, right, find_prices, find_rest)


def _compute_mean(right: list[Fraction], base: Fraction, prices: list[Fraction]) -> Fraction:
    """Compute the least mean that base and prices prove."""
    return base - sum((limit * price for limit, price in zip(right, prices, strict=True)), ZERO)


@singledispatch
def add_least_mean(over: PriorSet, rows: MechanismRows, name: str, y: int) -> int:
    """Add a variable that is at most the mean of the probabilities of an output under each prior of a set.

    It is written by linear duality over the inequalities of the set.
    """
    program, output = rows.program, rows.outputs[y]
    system = describe_set(over, rows.letters)
    base, prices = system.find_prices(rows.get_values(y))
    up = program.add_column(f"base[{name},{output}]", max(base, ZERO))
    down = program.add_column(f"debt[{name},{output}]", max(-base, ZERO))
    columns = [
        program.add_column(f"price[{name},{inequality},{output}]", price)
        for inequality, price in zip(system.names, prices, strict=True)
    ]
    measure = []
    extra = max(map(max, system.rows), default=0) + 1 - len(rows.letters)
    for place, cell in enumerate([*rows.list_column(y), *[-1] * extra]):
        pairs = zip(columns, system.rows, strict=True)
        terms = {column: -row[place] for column, row in pairs if place in row}
        kind, letter = "raised", rows.letters[place % len(rows.letters)]
        if cell >= 0:
            terms |= {cell: -ONE, up: ONE, down: -ONE}
        else:
            kind = "capped"
        measure.append(program.add_row(f"{kind}[{name},{letter},{output}]", terms))
    priced = {column: -limit for column, limit in zip(columns, system.right, strict=True)}
    least = program.define(f"w[{name},{output}]", {up: ONE, down: -ONE, **priced})
    _complete_measure(over, system, program, len(program.rows) - 1, measure)
    return least


def _complete_measure(
    over: PriorSet, system: SetSystem, program: ExactProgram, mean: int, measure: Sequence[int]
) -> None:
    """Let the multipliers of a measure be a prior of the set, near what they are, times that of its mean.

    It happens after the multiplier of the mean is final, and before the variables that came before it.
    """

    def complete(multipliers: list[Fraction]) -> None:
        size = multipliers[mean]
        near = [ZERO] * len(measure)
        if size:
            law = np.array([float(multipliers[row] / size) for row in measure[: over.size]])
            member = list(over.project_to_rationals(law))
            near = member + system.find_rest(member)
        for row, share in zip(measure, near, strict=True):
            multipliers[row] = size * share

    program.completions[len(program.columns) - 2] = complete


@add_least_mean.register
def _(over: ConvexHull, rows: MechanismRows, name: str, y: int) -> int:
    """Require that the variable is at most the mean under each vertex."""
    program, output = rows.program, rows.outputs[y]
    laws = [[Fraction(value) for value in point] for point in over.points.tolist()]
    means = [rows.weigh(y, [value / sum(law) for value in law]) for law in laws]
    least = program.add_column(f"w[{name},{output}]", min(map(program.evaluate, means)))
    for place, terms in enumerate(means):
        negative = {cell: -value for cell, value in terms.items()}
        program.add_row(f"vertex[{name},{place},{output}]", {**negative, least: ONE})
    return least
