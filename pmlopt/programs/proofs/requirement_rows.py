"""The rows of a requirement on a mechanism over the rationals, and the variables that they bring."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from pmlopt.core.arrays import MAX_EXPONENT, BoolArray, FloatArray
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
from pmlopt.programs.proofs.exact_program import (
    ONE,
    ZERO,
    ExactProgram,
    Terms,
)
from pmlopt.solvers.mps import make_names


@dataclass(eq=False)
class MechanismRows:
    """The variables of a mechanism in a linear program over the rationals, and what rows on them share.

    Attributes:
        program: that has them, letter by letter, as its first columns.
        weights: (N,) the prior as whole numbers.
        shares: the prior, in rationals that sum to one.
        letters, outputs: the names.
    """

    program: ExactProgram
    weights: Any
    shares: list[Fraction]
    letters: list[str]
    outputs: list[str]
    _laws: dict[int, int] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        prior: Prior,
        mechanism: Mechanism,
        *,
        above: bool,
        allowed: BoolArray | None = None,
    ) -> MechanismRows:
        """Add the variables of a mechanism, whose rows sum to one.

        Args:
            prior: of its letters.
            mechanism: the point of the program.
            above: whether powers of e are replaced by rationals above them.
            allowed: (N, M) the pairs that may occur; left out, all.
        """
        program = ExactProgram(above)
        weights = np.array(prior.weights, dtype=object)
        shares = [Fraction(weight) / weights.sum() for weight in prior.weights]
        found = cls(
            program, weights, shares, make_names(prior.labels), make_names(mechanism.outputs)
        )
        for letter, row in zip(found.letters, mechanism.matrix.tolist(), strict=True):
            for output, value in zip(found.outputs, row, strict=True):
                program.add_column(f"P[{letter},{output}]", Fraction(value))
        for x, letter in enumerate(found.letters):
            cells = [found.get_cell(x, y) for y in range(len(found.outputs))]
            program.add_row(f"row[{letter}]", dict.fromkeys(cells, ONE), ONE, equal=True)
        program.letter_count = len(shares)
        for x, y in [] if allowed is None else np.argwhere(~allowed).tolist():
            name = f"never[{found.letters[x]},{found.outputs[y]}]"
            program.add_row(name, {found.get_cell(x, y): ONE})
        return found

    @property
    def vacuous_exponent(self) -> float:
        """Return an exponent beyond which no letter can become more likely, since it is certain."""
        return min(MAX_EXPONENT, math.log(1 / min(self.shares)) + 1e-6)

    def get_cell(self, x: int, y: int) -> int:
        """Return the variable of an entry."""
        return x * len(self.outputs) + y

    def list_column(self, y: int) -> list[int]:
        """Return the variables of the probabilities of an output."""
        return [self.get_cell(x, y) for x in range(len(self.letters))]

    def get_values(self, y: int) -> list[Fraction]:
        """Return the probabilities of an output given each letter."""
        return [self.program.values[cell] for cell in self.list_column(y)]

    def weigh(self, y: int, weights: Sequence[Fraction]) -> Terms:
        """Return the terms of a weighted sum of the probabilities of an output."""
        return dict(zip(self.list_column(y), weights, strict=True))

    def weigh_table(self, table: FloatArray) -> Terms:
        """Return the terms of the expectation of a table, the floats of which count as rationals."""
        return {
            self.get_cell(x, y): self.shares[x] * Fraction(value)
            for x, row in enumerate(table.tolist())
            for y, value in enumerate(row)
            if value
        }

    def get_law(self, y: int) -> int:
        """Return the variable of the probability of an output, which is added where it is new."""
        if y not in self._laws:
            name, terms = f"q[{self.outputs[y]}]", self.weigh(y, self.shares)
            self._laws[y] = self.program.define(name, terms)
        return self._laws[y]

    def add_letter_rows(
        self, kind: str, y: int, terms: Mapping[int, Fraction], sign: int = 1
    ) -> None:
        """Require of each probability of an output, times a sign, and terms that the sum is at most 0."""
        for letter, cell in zip(self.letters, self.list_column(y), strict=True):
            name = f"{kind},{letter},{self.outputs[y]}]"
            self.program.add_row(name, {cell: Fraction(sign), **terms})

    def add_affine_rows(
        self, name: str, coefficients: Any, offset: Sequence[float], *, equal: bool
    ) -> Fraction:
        """Add rows `C P + offset <= 0`, or `= 0`, relaxed by what the mechanism breaks them.

        The coefficients are the stored floats, as rationals. The most that a row is relaxed by is returned.
        """
        program, most = self.program, ZERO
        for place, (table, constant) in enumerate(zip(coefficients, offset, strict=True)):
            used = np.argwhere(table).tolist()
            terms = {self.get_cell(x, y): Fraction(float(table[x, y])) for x, y in used}
            right = -Fraction(float(constant))
            over = program.evaluate(terms) - right
            slack = abs(over) if equal else max(over, ZERO)
            most, exact = max(most, slack), equal and not slack
            program.add_row(f"added[{name},{place}]", terms, right + slack, equal=exact)
            if equal and not exact:
                other = {cell: -value for cell, value in terms.items()}
                program.add_row(f"added_back[{name},{place}]", other, slack - right)
        return most


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
    rows, right = system.exact_system[0][:-1], system.exact_system[1][:-1]

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


def add_named_requirement(privacy: Requirement, prior: Prior, rows: MechanismRows) -> None:
    """Add the rows of a requirement for a prior, under its own name."""
    add_requirement(privacy.for_prior(prior), rows, make_names([privacy.name])[0])


@singledispatch
def add_requirement(requirement: Requirement, rows: MechanismRows, name: str) -> None:
    """Add the rows of a requirement, under a name.

    Raises:
        ProgramError: it has no form by linear rows.
    """
    # for a bound on the optimum those suffice from which the others follow
    listed = requirement.ratios if rows.program.above else requirement.required_ratios
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
                terms = {sides[above]: ONE, sides[below]: -rows.program.get_power(exponent)}
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
        if program.above and one.exponent > MAX_EXPONENT:
            continue  # of a bound on the optimum a row may be left out
        is_mean = one.kind == BoundKind.MAX_OVER_MEAN
        most = rows.vacuous_exponent if is_mean else MAX_EXPONENT
        factor = program.get_power(min(one.exponent, most))
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
    right = program.get_power(min(exponent, math.log(len(rows.letters)) + 1e-6))
    program.add_row(f"tops[{name}]", dict.fromkeys(tops, ONE), right)


@add_requirement.register
def _(requirement: ApproximatePML, rows: MechanismRows, name: str) -> None:
    """Add the rows of PML with an excess that is bounded for each letter."""
    program, delta = rows.program, Fraction(requirement.delta)
    factor = program.get_power(min(requirement.epsilon, rows.vacuous_exponent))
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
    limit = program.get_power(min(requirement.epsilon, MAX_EXPONENT)) * sum(
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
