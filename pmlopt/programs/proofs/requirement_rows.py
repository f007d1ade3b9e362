"""The rows of a requirement on a mechanism over the rationals, and the variables that they bring."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from pmlopt.core.arrays import MAX_EXPONENT, BoolArray, FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import ApproximatePML, GuessLeakage, Requirement
from pmlopt.model.privacy.mean_bounds import BoundKind, ComparedMeans, MeanBounds
from pmlopt.model.uncertainty import ChoquetSet, ConvexHull, PriorSet
from pmlopt.model.uncertainty.row_programs import RowProgram
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, Terms
from pmlopt.solvers.mps import make_names


class MechanismProgram(ExactProgram):
    """A linear program over the rationals on a mechanism, whose entries are its first columns, row by row.

    Attributes:
        weights: (N,) the prior as whole numbers.
        shares: the prior, in rationals that sum to one.
        letters, outputs: the names.
    """

    def __init__(
        self, prior: Prior, mechanism: Mechanism, *, above: bool, allowed: BoolArray | None = None
    ) -> None:
        """Add the variables of a mechanism, whose rows sum to one.

        Args:
            prior: of its letters.
            mechanism: the point of the program.
            above: whether powers of e are replaced by rationals above them.
            allowed: (N, M) the pairs that may occur; left out, all.
        """
        super().__init__(above)
        self.weights = prior.integer_weights
        self.shares = [Fraction(weight) / self.weights.sum() for weight in prior.weights]
        self.letters, self.outputs = make_names(prior.labels), make_names(mechanism.outputs)
        self._laws: dict[int, int] = {}
        for letter, row in zip(self.letters, mechanism.matrix.tolist(), strict=True):
            for output, value in zip(self.outputs, row, strict=True):
                self.add_column(f"P[{letter},{output}]", Fraction(value))
        for x, letter in enumerate(self.letters):
            cells = [self.get_cell(x, y) for y in range(len(self.outputs))]
            self.add_row(f"row[{letter}]", dict.fromkeys(cells, ONE), ONE, equal=True)
        self.letter_count = len(self.shares)
        for x, y in [] if allowed is None else np.argwhere(~allowed).tolist():
            self.add_row(f"never[{self.letters[x]},{self.outputs[y]}]", {self.get_cell(x, y): ONE})

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
        return [self.values[cell] for cell in self.list_column(y)]

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
            self._laws[y] = self.define(f"q[{self.outputs[y]}]", self.weigh(y, self.shares))
        return self._laws[y]

    def add_letter_rows(
        self, kind: str, y: int, terms: Mapping[int, Fraction], sign: int = 1
    ) -> None:
        """Require of each probability of an output, times a sign, and terms that the sum is at most 0."""
        for letter, cell in zip(self.letters, self.list_column(y), strict=True):
            name = f"{kind},{letter},{self.outputs[y]}]"
            self.add_row(name, {cell: Fraction(sign), **terms})

    def add_excess(self, name: str, terms: Terms) -> int:
        """Add a variable that is at least the sum of terms, which may be negative."""
        excess = self.add_column(f"over[{name}]", max(self.evaluate(terms), ZERO))
        self.add_row(f"excess[{name}]", {**terms, excess: -ONE})
        return excess

    def add_least(self, name: str, y: int, means: Iterable[tuple[object, Terms]]) -> int:
        """Add a variable that is at most each of some means of an output, which are given with names."""
        means = list(means)
        value = min(self.evaluate(terms) for _, terms in means)
        least = self.add_column(f"w[{name},{self.outputs[y]}]", value)
        for vertex, terms in means:
            row = {**{cell: -value for cell, value in terms.items()}, least: ONE}
            self.add_row(f"vertex[{name},{vertex},{self.outputs[y]}]", row)
        return least

    def add_affine_rows(
        self, name: str, coefficients: Any, offset: Sequence[float], *, equal: bool
    ) -> Fraction:
        """Add rows `C P + offset <= 0`, or `= 0`, relaxed by what the mechanism breaks them.

        The coefficients are the stored floats, as rationals. The most that a row is relaxed by is returned.
        """
        most = ZERO
        for place, (table, constant) in enumerate(zip(coefficients, offset, strict=True)):
            used = [(x, y, float(table[x, y])) for x, y in np.argwhere(table).tolist()]
            for kind, sign in (("added", 1), ("added_back", -1))[: 1 + equal]:
                terms = {self.get_cell(x, y): sign * Fraction(value) for x, y, value in used}
                right = -sign * Fraction(float(constant))
                slack = max(self.evaluate(terms) - right, ZERO)
                self.add_row(f"{kind}[{name},{place}]", terms, right + slack)
                most = max(most, slack)
        return most


@dataclass(frozen=True, eq=False)
class SetSystem:
    """The priors Q that meet some inequalities with some d >= 0.

    Attributes:
        program: the inequalities as its rows, on the letters first, then on d.
        find_prices: what the best multipliers of the inequalities are, by linear duality, for some values.
        lower: the lower probabilities, which d makes good what a prior of the set lacks of.
    """

    program: ExactProgram
    find_prices: Callable[[list[Fraction]], list[Fraction]]
    lower: Sequence[Fraction] = ()


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
    pairs = list(zip(*system.exact_system, strict=True))[:-1]
    program = ExactProgram(above=True)
    for place, (row, right) in enumerate(pairs):
        program.add_row(str(place), dict(enumerate(row)), right)

    def find_prices(values: list[Fraction]) -> list[Fraction]:
        largest = max(values) or ONE
        (basis,) = system.find_bases(np.array([[float(value / largest)] for value in values]))
        found = None if basis is None else system.compute_multipliers(basis, values)
        return [max(price, ZERO) for price in found or [ZERO] * len(pairs)]

    return SetSystem(program, find_prices)


@describe_set.register
def _(over: ChoquetSet, letters: Sequence[str]) -> SetSystem:
    """Describe `{Q: Q >= lower - d, sum d <= shift, Q <= upper}`."""
    nu, size = over.integer_probability, len(letters)
    total, has_upper = Fraction(int(nu.total)), nu.upper is not None
    lower = [Fraction(int(value)) / total for value in nu.lower]
    upper = [Fraction(int(value)) / total for value in (nu.upper if has_upper else [])]
    program = ExactProgram(above=True)
    for x, value in enumerate(lower):
        program.add_row(f"lower:{letters[x]}", {x: -ONE, size + x: -ONE}, -value)
    for x, value in enumerate(upper):
        program.add_row(f"upper:{letters[x]}", {x: ONE}, value)
    shift = dict.fromkeys(range(size, 2 * size), ONE)
    program.add_row("radius", shift, Fraction(int(nu.shift)) / total)

    def list_prices(values: list[Fraction], base: Fraction, cap: Fraction) -> list[Fraction]:
        raised = [min(max(value - base, ZERO), cap) for value in values]
        return [*raised, *(max(base - value, ZERO) for value in values[: len(upper)]), cap]

    def find_prices(values: list[Fraction]) -> list[Fraction]:
        low, high = min(values), max(values)
        # the best are among the values: a base of bounds from both sides, else a cap of a radius
        ends = [(end, high - low) if has_upper else (low, end - low) for end in set(values)]

        def compute_mean(end: tuple[Fraction, Fraction]) -> Fraction:
            return end[0] - program.sum_right_sides(list_prices(values, *end))

        return list_prices(values, *max(ends, key=compute_mean))

    return SetSystem(program, find_prices, lower)


@singledispatch
def add_least_mean(
    over: PriorSet | ComparedMeans, program: MechanismProgram, name: str, y: int
) -> int:
    """Add a variable that is at most the mean of the probabilities of an output under each prior of a set.

    It is written by linear duality over the inequalities of the set.
    """
    assert isinstance(over, PriorSet)
    output, cells = program.outputs[y], program.list_column(y)
    system = describe_set(over, program.letters)
    prices = system.find_prices(program.get_values(y))
    raised: list[Terms] = [{cell: ONE} for cell in cells]
    raised += [{} for _ in system.lower]
    priced = {}
    for inequality, price in zip(system.program.rows, prices, strict=True):
        column = program.add_column(f"price[{name},{inequality.name},{output}]", price)
        priced[column] = -inequality.right
        for x, value in inequality.terms.items():
            raised[x][column] = value
    base = min(program.evaluate(terms) for terms in raised[: len(cells)])
    up = program.add_column(f"base[{name},{output}]", max(base, ZERO))
    down = program.add_column(f"debt[{name},{output}]", max(-base, ZERO))
    measure = []
    for place, terms in enumerate(raised):
        is_letter, letter = place < len(cells), program.letters[place % len(cells)]
        row = {column: -value for column, value in terms.items()}
        row |= {up: ONE, down: -ONE} if is_letter else {}
        kind = "raised" if is_letter else "capped"
        measure.append(program.add_row(f"{kind}[{name},{letter},{output}]", row))
    least = program.define(f"w[{name},{output}]", {up: ONE, down: -ONE, **priced})
    mean = len(program.rows) - 1

    def complete(multipliers: list[Fraction]) -> None:
        # those of the measure become a prior of the set, near what they are, times that of the mean
        size, near = multipliers[mean], [ZERO] * len(measure)
        if size:
            law = np.array([float(multipliers[row] / size) for row in measure[: len(cells)]])
            member = list(over.project_to_rationals(law))
            pairs = zip(system.lower, member, strict=False)  # sets of other kinds have none
            near = member + [max(least - mass, ZERO) for least, mass in pairs]
        for row, share in zip(measure, near, strict=True):
            multipliers[row] = size * share

    # after the multiplier of the mean is final, and before the variables that came before it
    program.completions[least - 1] = complete
    return least


@add_least_mean.register
def _(over: ConvexHull, program: MechanismProgram, name: str, y: int) -> int:
    """Require that the variable is at most the mean under each vertex."""
    laws = [[Fraction(value) for value in point] for point in over.points.tolist()]
    means = (program.weigh(y, [value / sum(law) for value in law]) for law in laws)
    return program.add_least(name, y, enumerate(means))


@add_least_mean.register
def _(over: ComparedMeans, program: MechanismProgram, name: str, y: int) -> int:
    """Return the mean under the prior, or require that the variable is at most each probability."""
    if over == ComparedMeans.MEAN:
        return program.get_law(y)
    cells: list[Terms] = [{cell: ONE} for cell in program.list_column(y)]
    return program.add_least(name, y, zip(program.letters, cells, strict=True))


def add_named_requirement(privacy: Requirement, prior: Prior, program: MechanismProgram) -> None:
    """Add the rows of a requirement for a prior part by part, under its own name."""
    (name,) = make_names([privacy.name])
    for place, part in enumerate(privacy.for_prior(prior).list_parts()):
        add_requirement(part, program, f"{name}{place or ''}")


@singledispatch
def add_requirement(requirement: Requirement, program: MechanismProgram, name: str) -> None:
    """Add the rows of a requirement, under a name.

    Raises:
        ProgramError: it has no form by linear rows.
    """
    # for a bound on the optimum those suffice from which the others follow
    listed = requirement.ratios if program.above else requirement.required_ratios
    ratios = listed(program.weights)
    if ratios is None:
        raise ProgramError(
            f"{requirement!r} is no list of linear rows, and a proof of this kind is of a linear program: "
            "PML (also over l1 balls, boxes and hulls), LDP, LIP, maximal leakage, ratio bounds, metrics, "
            "approximate PML and guess leakage are"
        )
    pairs = [end.tolist() for end in (ratios.above, ratios.below, ratios.exponents)]
    for y, output in enumerate(program.outputs):
        sides = program.list_column(y)
        for place, (row, scale) in enumerate(zip(ratios.rows, ratios.scales, strict=True)):
            weights = [Fraction(value) / Fraction(scale) for value in row.tolist()]
            mean = f"mean[{name},{place},{output}]"
            if weights == program.shares:
                sides.append(program.get_law(y))
            else:
                sides.append(program.define(mean, program.weigh(y, weights)))
        for place, (above, below, exponent) in enumerate(zip(*pairs, strict=True)):
            # one pair of a side with itself cancels
            if above != below:
                terms = {sides[above]: ONE, sides[below]: -program.get_power(exponent)}
                program.add_row(f"pair[{name},{place},{output}]", terms)


@add_requirement.register
def _(requirement: MeanBounds, program: MechanismProgram, name: str) -> None:
    """Add the rows of bounds between means, each by few more variables."""
    for one in requirement.bounds:
        if one.kind == BoundKind.SUM_OF_MAX:
            _bound_sum_of_largest(one.exponent, program, name)
            continue
        is_mean = one.kind == BoundKind.MAX_OVER_MEAN
        most = program.vacuous_exponent if is_mean else MAX_EXPONENT
        if program.above and one.exponent > most:
            continue  # of a bound on the optimum a row may be left out
        factor = program.get_power(min(one.exponent, most))
        for y in range(len(program.outputs)):
            if one.kind == BoundKind.MEAN_OVER_MIN:
                law = {program.get_law(y): 1 / factor}
                program.add_letter_rows(f"least[{name}", y, law, sign=-1)
            else:
                side = add_least_mean(one.smaller, program, name, y)
                program.add_letter_rows(f"most[{name}", y, {side: -factor})


def _bound_sum_of_largest(exponent: float, program: MechanismProgram, name: str) -> None:
    """Bound the sum of the largest probabilities of all outputs."""
    tops = []
    for y, output in enumerate(program.outputs):
        tops.append(program.add_column(f"top[{name},{output}]", max(program.get_values(y))))
        program.add_letter_rows(f"under_top[{name}", y, {tops[-1]: -ONE})
    # past the number of letters the bound is none
    right = program.get_power(min(exponent, math.log(len(program.letters)) + 1e-6))
    program.add_row(f"tops[{name}]", dict.fromkeys(tops, ONE), right)


@add_requirement.register
def _(requirement: ApproximatePML, program: MechanismProgram, name: str) -> None:
    """Add the rows of PML with an excess that is bounded for each letter."""
    factor = program.get_power(min(requirement.epsilon, program.vacuous_exponent))
    laws = [program.get_law(y) for y in range(len(program.outputs))]
    for x, letter in enumerate(program.letters):
        over = {}
        for y, output in enumerate(program.outputs):
            limit = {program.get_cell(x, y): ONE, laws[y]: -factor}
            over[program.add_excess(f"{name},{letter},{output}", limit)] = ONE
        program.add_row(f"slack[{name},{letter}]", over, Fraction(requirement.delta))


@add_requirement.register
def _(requirement: GuessLeakage, program: MechanismProgram, name: str) -> None:
    """Add the rows of the sum of the largest joint probabilities, by a threshold and what is above it."""
    count = min(requirement.guesses, len(program.letters))
    factor = program.get_power(min(requirement.epsilon, MAX_EXPONENT))
    limit = factor * sum(sorted(program.shares)[-count:])
    for y, output in enumerate(program.outputs):
        law, joint = program.get_law(y), program.weigh(y, program.shares)
        values = sorted(share * program.values[cell] for cell, share in joint.items())
        edge = program.add_column(f"edge[{name},{output}]", values[-count])
        terms = {edge: Fraction(count), law: -limit}
        for letter, (cell, share) in zip(program.letters, joint.items(), strict=True):
            inside = f"{name},{letter},{output}"
            terms[program.add_excess(inside, {cell: share, edge: -ONE})] = ONE
        program.add_row(f"guesses[{name},{output}]", terms)
