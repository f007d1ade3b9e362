"""The least mean of an output over a set of priors, as a variable with rows over the rationals."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

import numpy as np

from pmlopt.errors import ProgramError
from pmlopt.model.uncertainty import ChoquetSet, ConvexHull, PriorSet
from pmlopt.model.uncertainty.row_programs import RowProgram
from pmlopt.programs.proofs.exact_program import ONE, ZERO, Terms
from pmlopt.programs.proofs.mechanism_rows import MechanismRows


@dataclass(frozen=True, eq=False)
class SetSystem:
    """The priors Q with `rows (Q, d) <= right` for some d >= 0.

    Attributes:
        names: of the inequalities.
        rows: their coefficients, by place: first of the letters, then of d.
        right: their right sides.
        find_prices: what the best multipliers of the inequalities are, by linear duality, for some values.
        find_rest: d of a prior of the set.
    """

    names: list[str]
    rows: list[Terms]
    right: list[Fraction]
    find_prices: Callable[[list[Fraction]], list[Fraction]]
    find_rest: Callable[[Sequence[Fraction]], list[Fraction]]


@singledispatch
def describe_set(over: PriorSet, _: Sequence[str]) -> SetSystem:
    """Describe a set of priors by inequalities in rationals, with the names of letters.

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

    def find_prices(values: list[Fraction]) -> list[Fraction]:
        largest = max(values) or ONE
        (basis,) = system.find_bases(np.array([[float(value / largest)] for value in values]))
        found = None if basis is None else system.compute_multipliers(basis, values)
        return [max(price, ZERO) for price in found or [ZERO] * len(rows)]

    names, terms = list(map(str, range(len(rows)))), [dict(enumerate(row)) for row in rows]
    return SetSystem(names, terms, right, find_prices, lambda _: [])


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
    radius = [shift] if shift else []
    rows = [{x: -ONE, **({size + x: -ONE} if shift else {})} for x in range(size)]
    rows += [{x: ONE} for x in range(len(upper))]
    rows += [dict.fromkeys(range(size, 2 * size), ONE) for _ in radius]
    names = [f"lower:{letter}" for letter in letters] + ["radius" for _ in radius]
    names[size:size] = [f"upper:{letter}" for letter in letters[: len(upper)]]
    right = [*(-value for value in lower), *upper, *radius]

    def find_prices(values: list[Fraction]) -> list[Fraction]:
        ends = sorted(set(values))
        # the best are among the values: of bounds from both sides those of a base, of a radius those of a cap
        bases = ends if has_upper else ends[:1]
        caps = [value - ends[0] for value in ends] if shift else [ends[-1] - ends[0]]
        found: dict[Fraction, list[Fraction]] = {}
        for base, cap in itertools.product(bases, caps):
            prices = [min(max(value - base, ZERO), cap) for value in values]
            prices += [max(base - value, ZERO) for value in values[: len(upper)]] + [
                cap for _ in radius
            ]
            mean = base - sum((end * price for end, price in zip(right, prices, strict=True)), ZERO)
            found[mean] = prices
        return found[max(found)]

    def find_rest(law: Sequence[Fraction]) -> list[Fraction]:
        return [max(lower[x] - law[x], ZERO) for x in range(size if shift else 0)]

    return SetSystem(names, rows, right, find_prices, find_rest)


@singledispatch
def add_least_mean(over: PriorSet, rows: MechanismRows, name: str, y: int) -> int:
    """Add a variable that is at most the mean of the probabilities of an output under each prior of a set.

    It is written by linear duality over the inequalities of the set.
    """
    program, output, cells = rows.program, rows.outputs[y], rows.list_column(y)
    system = describe_set(over, rows.letters)
    prices = {
        program.add_column(f"price[{name},{inequality},{output}]", price): place
        for place, (inequality, price) in enumerate(
            zip(system.names, system.find_prices(rows.get_values(y)), strict=True)
        )
    }
    raised: list[Terms] = [{cell: ONE} for cell in cells]
    raised += [{} for _ in range(max(map(max, system.rows), default=0) + 1 - len(cells))]
    for column, place in prices.items():
        for x, value in system.rows[place].items():
            raised[x][column] = value
    base = min(program.evaluate(terms) for terms in raised[: len(cells)])
    up = program.add_column(f"base[{name},{output}]", max(base, ZERO))
    down = program.add_column(f"debt[{name},{output}]", max(-base, ZERO))
    measure = []
    for place, terms in enumerate(raised):
        kind = "raised" if place < len(cells) else "capped"
        inside = f"{name},{rows.letters[place % len(cells)]},{output}"
        ends = {up: ONE, down: -ONE} if place < len(cells) else {}
        measure.append(
            program.add_row(f"{kind}[{inside}]", {**{k: -v for k, v in terms.items()}, **ends})
        )
    priced = {column: -system.right[place] for column, place in prices.items()}
    least = program.define(f"w[{name},{output}]", {up: ONE, down: -ONE, **priced})
    mean = len(program.rows) - 1

    def complete(multipliers: list[Fraction]) -> None:
        # those of the measure become a prior of the set, near what they are, times that of the mean
        size, near = multipliers[mean], [ZERO] * len(measure)
        if size:
            law = np.array([float(multipliers[row] / size) for row in measure[: len(cells)]])
            member = list(over.project_to_rationals(law))
            near = member + system.find_rest(member)
        for row, share in zip(measure, near, strict=True):
            multipliers[row] = size * share

    # after the multiplier of the mean is final, and before the variables that came before it
    program.completions[least - 1] = complete
    return least


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
