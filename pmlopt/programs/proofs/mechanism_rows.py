"""The rows of a requirement on a mechanism over the rationals, and the variables that they bring."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from pmlopt.core.arrays import MAX_EXPONENT, BoolArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import (
    ApproximatePML,
    GuessLeakage,
    Requirement,
    RequirementConjunction,
)
from pmlopt.model.privacy.mean_bounds import BoundKind, MeanBounds
from pmlopt.model.uncertainty import ChoquetSet, ConvexHull, PriorSet
from pmlopt.model.uncertainty.row_programs import RowProgram
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, make_names

Pairs = Iterable[tuple[int, Fraction]]


@dataclass(eq=False)
class MechanismRows:
    """The variables of a mechanism in a linear program over the rationals, and what rows on them share.

    Attributes:
        program: that has them.
        prior: the prior, in rationals that sum to one.
        weights: (N,) the same as whole numbers, which are proportional to it.
        matrix: (N, M) the entries of the mechanism.
        cells: (N, M) the places of the variables; -1 where a pair may not occur.
        letters, outputs: the names.
    """

    program: ExactProgram
    prior: list[Fraction]
    weights: Any
    matrix: list[list[Fraction]]
    cells: list[list[int]]
    letters: list[str]
    outputs: list[str]
    _laws: dict[int, int] = field(default_factory=dict)
    _limits: dict[tuple[int, float], int] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        program: ExactProgram,
        prior: Prior,
        mechanism: Mechanism,
        allowed: BoolArray | None = None,
    ) -> MechanismRows:
        """Add the variables of a mechanism, whose rows sum to one."""
        letters, outputs = make_names(prior.labels), make_names(mechanism.outputs)
        matrix = [[Fraction(value) for value in row] for row in mechanism.matrix.tolist()]
        cells = [[-1] * len(outputs) for _ in letters]
        for x, row in enumerate(matrix):
            for y, value in enumerate(row):
                if allowed is None or allowed[x, y]:
                    cells[x][y] = program.add_column(f"P[{letters[x]},{outputs[y]}]", value)
        total = sum(prior.weights)
        shares = [Fraction(weight) / total for weight in prior.weights]
        weights = np.array(prior.weights, dtype=object)
        program.masses = shares
        for x, letter in enumerate(letters):
            own = [cell for cell in cells[x] if cell >= 0]
            support = program.add_row(f"row[{letter}]", dict.fromkeys(own, ONE), ONE, equal=True)
            for cell in own:
                program.supports[cell] = (support,)
        return cls(program, shares, weights, matrix, cells, letters, outputs)

    def list_column(self, y: int) -> list[tuple[int, int]]:
        """Return the letters with the variables of an output."""
        return [(x, row[y]) for x, row in enumerate(self.cells) if row[y] >= 0]

    def get_values(self, y: int) -> list[Fraction]:
        """Return the probabilities of an output given each letter."""
        return [row[y] for row in self.matrix]

    def weigh(self, y: int, weights: Sequence[Fraction]) -> dict[int, Fraction]:
        """Return the terms of minus a weighted sum of the probabilities of an output."""
        return {cell: -weights[x] for x, cell in self.list_column(y)}

    def add_sum(self, kinds: tuple[str, str], inside: str, y: int, weights: list[Fraction]) -> int:
        """Add a variable that is a weighted sum of the probabilities of an output, and the row of that."""
        value = sum((w * v for w, v in zip(weights, self.get_values(y), strict=True)), ZERO)
        names = f"{kinds[0]}[{inside}]", f"{kinds[1]}[{inside}]"
        return self.program.define(names, value, ONE, self.weigh(y, weights))

    def get_law(self, y: int) -> int:
        """Return the variable of the probability of an output, which is added where it is new."""
        if y not in self._laws:
            self._laws[y] = self.add_sum(("q", "law"), self.outputs[y], y, self.prior)
        return self._laws[y]

    def get_limit(self, side: int, exponent: float) -> int:
        """Return the variable of a rational next to e^exponent times another variable."""
        exponent, program = float(exponent), self.program
        factor, key = program.powers(exponent), (side, exponent)
        if factor == 1:
            return side
        if key not in self._limits:
            inside = f"{program.columns[side].replace('[', ':').rstrip(']')}:{exponent!r}"
            names = f"limit[{inside}]", f"power[{inside}]"
            value = factor * program.values[side]
            self._limits[key] = program.define(names, value, ONE, {side: -factor})
        return self._limits[key]

    def bound_entries(self, kind: str, name: str, y: int, limit: int) -> None:
        """Require that each probability of an output is at most a variable."""
        for x, cell in self.list_column(y):
            inside = f"{name},{self.letters[x]},{self.outputs[y]}"
            self.program.add_row(f"{kind}[{inside}]", {cell: ONE, limit: -ONE})

    def bound_below(self, kind: str, name: str, y: int, floor: int) -> tuple[int, ...]:
        """Require that each probability of an output, also of a pair left out, is at least a variable."""
        found = []
        for x, letter in enumerate(self.letters):
            cell = self.cells[x][y]
            terms = {floor: ONE, **({cell: -ONE} if cell >= 0 else {})}
            found.append(self.program.add_row(f"{kind}[{name},{letter},{self.outputs[y]}]", terms))
        return tuple(found)

    @property
    def vacuous_exponent(self) -> float:
        """Return an exponent beyond which no letter can become more likely, since it is certain."""
        return min(MAX_EXPONENT, math.log(1 / min(self.prior)) + 1e-6)


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
    for y, output in enumerate(rows.outputs):
        sides = [cells[y] for cells in rows.cells]
        for place, (row, scale) in enumerate(zip(ratios.rows, ratios.scales, strict=True)):
            weights = [Fraction(value) / Fraction(scale) for value in row.tolist()]
            sides.append(rows.add_sum(("mean", "average"), f"{name},{place},{output}", y, weights))
        for place, (above, below, exponent) in enumerate(
            zip(
                ratios.above.tolist(),
                ratios.below.tolist(),
                ratios.exponents.tolist(),
                strict=True,
            )
        ):
            limit = rows.get_limit(sides[below], exponent)
            # a pair of a side with itself, or one of 0 nats, may cancel
            terms = [(sides[above], ONE), (limit, -ONE)]
            rows.program.add_row(f"pair[{name},{place},{output}]", add_up(terms))


def add_up(pairs: Pairs) -> dict[int, Fraction]:
    """Add up coefficients of one column."""
    found: dict[int, Fraction] = {}
    for column, value in pairs:
        found[column] = found.get(column, ZERO) + value
    return found


@add_requirement.register
def _(requirement: RequirementConjunction, rows: MechanismRows, name: str) -> None:
    """Add the rows of all parts."""
    for place, part in enumerate(requirement.parts):
        add_requirement(part, rows, f"{name}{place}")


@add_requirement.register
def _(requirement: MeanBounds, rows: MechanismRows, name: str) -> None:
    """Add the rows of bounds between means, each by few more variables."""
    for one in requirement.bounds:
        if one.kind == BoundKind.SUM_OF_MAX:
            _bound_sum_of_largest(one.exponent, rows, name)
            continue
        for y, output in enumerate(rows.outputs):
            inside, exponent = f"{name},{output}", min(one.exponent, MAX_EXPONENT)
            if one.kind == BoundKind.MEAN_OVER_MIN:
                law, factor = rows.get_law(y), rows.program.powers(exponent)
                names = f"least[{inside}]", f"share[{inside}]"
                value = rows.program.values[law] / factor
                least = rows.program.define(names, value, factor, {law: -ONE})
                rows.bound_below("above", name, y, least)
                continue
            if one.kind == BoundKind.MAX_OVER_MEAN:
                side, exponent = rows.get_law(y), min(exponent, rows.vacuous_exponent)
            elif one.kind == BoundKind.MAX_OVER_MIN:
                side = rows.program.add_column(f"floor[{inside}]", min(rows.get_values(y)))
                rows.program.supports[side] = rows.bound_below("over_floor", name, y, side)
            else:
                assert isinstance(one.smaller, PriorSet)
                side = add_least_mean(one.smaller, rows, name, y)
            rows.bound_entries("most", name, y, rows.get_limit(side, exponent))


def _bound_sum_of_largest(exponent: float, rows: MechanismRows, name: str) -> None:
    """Bound the sum of the largest probabilities of all outputs."""
    program, tops = rows.program, []
    for y, output in enumerate(rows.outputs):
        tops.append(program.add_column(f"top[{name},{output}]", max(rows.get_values(y))))
        rows.bound_entries("under_top", name, y, tops[-1])
    # past the number of letters the bound is none
    right = program.powers(min(exponent, math.log(len(rows.letters)) + 1e-6))
    support = program.add_row(f"tops[{name}]", dict.fromkeys(tops, ONE), right)
    for top in tops:
        program.supports[top] = (support,)


@singledispatch
def add_least_mean(over: PriorSet, rows: MechanismRows, name: str, y: int) -> int:
    """Add a variable that is at most the mean of the probabilities of an output under each prior of a set.

    Of a set that is given by inequalities it is written by linear duality over these.

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
    system, values = (
        RowProgram(spaces.rows / units[:, None], spaces.right / units),
        rows.get_values(y),
    )
    largest = max(values) or ONE
    (basis,) = system.find_bases(np.array([[float(value / largest)] for value in values]))
    found = None if basis is None else system.compute_multipliers(basis, values)
    prices = [max(price, ZERO) for price in found or [ZERO] * len(units)]
    exact, right = system.exact_system
    raised = [
        value + sum((price * row[x] for price, row in zip(prices, exact, strict=False)), ZERO)
        for x, value in enumerate(values)
    ]
    program, inside, base = rows.program, f"{name},{rows.outputs[y]}", min(raised)
    up = program.add_column(f"base[{inside}]", max(base, ZERO))
    terms = {up: -ONE, program.add_column(f"debt[{inside}]", max(-base, ZERO)): ONE}
    columns = [
        program.add_column(f"price[{name},{place},{rows.outputs[y]}]", price)
        for place, price in enumerate(prices)
    ]
    covers = []
    for x, letter in enumerate(rows.letters):
        cell = rows.cells[x][y]
        cover = {column: -value for column, value in terms.items()}
        cover |= {column: -row[x] for column, row in zip(columns, exact, strict=False)}
        cover |= {cell: -ONE} if cell >= 0 else {}
        covers.append(program.add_row(f"raised[{name},{letter},{rows.outputs[y]}]", cover))
    program.supports[up] = tuple(covers)
    mean = base - sum((price * limit for price, limit in zip(prices, right, strict=False)), ZERO)
    terms |= dict(zip(columns, right, strict=False))
    least = program.define((f"w[{inside}]", f"dual_mean[{inside}]"), mean, ONE, terms)
    _complete_measure(over, program, least, covers)
    return least


def _complete_measure(
    over: PriorSet,
    program: ExactProgram,
    least: int,
    covers: Sequence[int],
    caps: Sequence[int] = (),
    lower: Sequence[Fraction] = (),
) -> None:
    """Let the multipliers of covers be a prior of the set, near what they are, times that of the least mean.

    It happens after the multiplier of the mean is final, and before the variables that came before it.
    """
    (support,) = program.supports[least]

    def complete(multipliers: list[Fraction]) -> None:
        size = multipliers[support]
        law = np.array([float(multipliers[row] / size) for row in covers]) if size else np.zeros(0)
        near = over.project_to_rationals(law) if size else [ZERO] * len(covers)
        for place, share in enumerate(near):
            multipliers[covers[place]] = size * share
            if caps:
                multipliers[caps[place]] = size * max(lower[place] - share, ZERO)

    program.completions[least - 1] = complete


@add_least_mean.register
def _(over: ConvexHull, rows: MechanismRows, name: str, y: int) -> int:
    """Require that the variable is at most the mean under each vertex."""
    program, values, output = rows.program, rows.get_values(y), rows.outputs[y]
    laws = [[Fraction(value) for value in point] for point in over.points.tolist()]
    laws = [[value / sum(law) for value in law] for law in laws]
    means = [sum((w * v for w, v in zip(law, values, strict=True)), ZERO) for law in laws]
    least = program.add_column(f"w[{name},{output}]", min(means))
    program.supports[least] = tuple(
        program.add_row(f"vertex[{name},{place},{output}]", {least: ONE, **rows.weigh(y, law)})
        for place, law in enumerate(laws)
    )
    return least


@add_least_mean.register
def _(over: ChoquetSet, rows: MechanismRows, name: str, y: int) -> int:
    """Write the least mean by duality over `{Q: Q >= lower but for the shift, Q <= upper, sum Q = 1}`."""
    program, output, nu = rows.program, rows.outputs[y], over.integer_probability
    total = Fraction(int(nu.total))
    lower = [Fraction(int(value)) / total for value in nu.lower]
    upper = None if nu.upper is None else [Fraction(int(value)) / total for value in nu.upper]
    shift = Fraction(nu.shift) / total
    if shift and upper is not None:
        raise ProgramError(
            f"{over!r} has both a shift and upper bounds, and no known rational rows"
        )
    base, cap, mean = _find_dual_point(rows.get_values(y), lower, upper, shift)
    tau = program.add_column(f"base[{name},{output}]", base)
    top = program.add_column(f"cap[{name},{output}]", cap) if shift else -1
    terms, covers, caps = {tau: -ONE, **({top: shift} if shift else {})}, [], []
    for x, (letter, value) in enumerate(zip(rows.letters, rows.get_values(y), strict=True)):
        inside, cell, excess = (
            f"{name},{letter},{output}",
            rows.cells[x][y],
            max(value - base, ZERO),
        )
        over_base = program.add_column(f"excess[{inside}]", min(excess, cap) if shift else excess)
        cover = {over_base: ONE, tau: ONE, **({cell: -ONE} if cell >= 0 else {})}
        terms[over_base] = -lower[x]
        if upper is not None:
            below = program.add_column(f"lack[{inside}]", max(base - value, ZERO))
            cover[below], terms[below] = -ONE, upper[x]
        covers.append(program.add_row(f"cover[{inside}]", cover))
        program.supports[over_base] = (covers[-1],)
        if shift:
            caps.append(program.add_row(f"capped[{inside}]", {over_base: ONE, top: -ONE}))
    program.supports[tau] = tuple(covers)
    least = program.define(
        (f"w[{name},{output}]", f"least_mean[{name},{output}]"), mean, ONE, terms
    )
    _complete_measure(over, program, least, covers, caps, lower)
    return least


def _find_dual_point(
    values: Sequence[Fraction],
    lower: Sequence[Fraction],
    upper: Sequence[Fraction] | None,
    shift: Fraction,
) -> tuple[Fraction, Fraction, Fraction]:
    """Find base and cap at which the dual of the least mean is largest, and that mean."""
    least = min(values)

    def compute_mean(base: Fraction, cap: Fraction) -> Fraction:
        found = base - shift * cap
        for place, value in enumerate(values):
            over = max(value - base, ZERO)
            found += lower[place] * (min(over, cap) if shift else over)
            if upper is not None:
                found -= upper[place] * max(base - value, ZERO)
        return found

    if upper is None and not shift:
        return least, ZERO, compute_mean(least, ZERO)
    # of bounds from both sides the base varies, and of a shift the cap
    points = [
        (value, ZERO) if upper is not None else (least, value - least)
        for value in sorted(set(values))
    ]
    # concave in the point: the slope changes its sign once
    low, high = 0, len(points) - 1
    while low < high:
        middle = (low + high) // 2
        if compute_mean(*points[middle]) < compute_mean(*points[middle + 1]):
            low = middle + 1
        else:
            high = middle
    return *points[low], compute_mean(*points[low])


@add_requirement.register
def _(requirement: ApproximatePML, rows: MechanismRows, name: str) -> None:
    """Add the rows of PML with an excess that is bounded for each letter."""
    program, exponent = rows.program, min(requirement.epsilon, rows.vacuous_exponent)
    sums: list[list[int]] = [[] for _ in rows.letters]
    for y, output in enumerate(rows.outputs):
        limit = rows.get_limit(rows.get_law(y), exponent)
        for x, cell in rows.list_column(y):
            inside = f"{name},{rows.letters[x]},{output}"
            value = max(rows.matrix[x][y] - program.values[limit], ZERO)
            sums[x].append(program.add_column(f"over[{inside}]", value))
            program.add_row(f"most_but[{inside}]", {cell: ONE, limit: -ONE, sums[x][-1]: -ONE})
    for x, letter in enumerate(rows.letters):
        terms, delta = dict.fromkeys(sums[x], ONE), Fraction(requirement.delta)
        support = program.add_row(f"slack[{name},{letter}]", terms, delta)
        for column in sums[x]:
            program.supports[column] = (support,)


@add_requirement.register
def _(requirement: GuessLeakage, rows: MechanismRows, name: str) -> None:
    """Add the rows of the sum of the largest joint probabilities, by a threshold and what is above it."""
    program, count = rows.program, min(requirement.guesses, len(rows.letters))
    before = sum(sorted(rows.prior)[-count:], ZERO)
    for y, output in enumerate(rows.outputs):
        limit = rows.get_limit(rows.get_law(y), min(requirement.epsilon, MAX_EXPONENT))
        joint = [w * v for w, v in zip(rows.prior, rows.get_values(y), strict=True)]
        threshold = sorted(joint)[-count]
        edge, overs = program.add_column(f"edge[{name},{output}]", threshold), []
        for x, cell in rows.list_column(y):
            inside, value = f"{name},{rows.letters[x]},{output}", max(joint[x] - threshold, ZERO)
            overs.append(program.add_column(f"over_edge[{inside}]", value))
            terms = {cell: rows.prior[x], edge: -ONE, overs[-1]: -ONE}
            program.add_row(f"joint[{inside}]", terms)
        terms = {edge: Fraction(count), **dict.fromkeys(overs, ONE), limit: -before}
        support = program.add_row(f"guesses[{name},{output}]", terms)
        for column in (edge, *overs):
            program.supports[column] = (support,)


def add_affine_rows(
    rows: MechanismRows, name: str, coefficients: Any, offset: Sequence[float], *, equal: bool
) -> Fraction:
    """Add rows `C P + offset <= 0`, or `= 0`, relaxed by what the mechanism breaks them; return the most.

    The coefficients are the stored floats, as rationals.
    """
    most = ZERO
    for place, (table, constant) in enumerate(zip(coefficients, offset, strict=True)):
        terms = {
            rows.cells[x][y]: Fraction(float(table[x, y])) for x, y in np.argwhere(table).tolist()
        }
        right = -Fraction(float(constant))
        value = rows.program.evaluate(terms)
        slack = max(value - right, ZERO, right - value if equal else ZERO)
        most, exact = max(most, slack), equal and not slack
        rows.program.add_row(f"added[{name},{place}]", terms, right + slack, equal=exact)
        if equal and not exact:
            other = {cell: -value for cell, value in terms.items()}
            rows.program.add_row(f"added_back[{name},{place}]", other, slack - right)
    return most
