"""The rows of a requirement on a mechanism over the rationals, and the variables that they bring."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import MAX_EXPONENT, BoolArray, FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import ApproximatePML, GuessLeakage, Requirement
from pmlopt.model.privacy.mean_bounds import BoundKind, ComparedMeans, MeanBounds
from pmlopt.model.uncertainty import ChoquetSet, ConvexHull, Polytope, PriorSet
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, LeastMean, Terms
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
        self.letters = make_names(prior.labels)
        self.outputs = make_names(mechanism.outputs)
        self._laws: dict[int, int] = {}
        for letter, row in zip(self.letters, mechanism.matrix.tolist(), strict=True):
            pairs = zip(self.outputs, row, strict=True)
            cells = [self.add_column(f"P[{letter},{y}]", Fraction(value)) for y, value in pairs]
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

    def weigh_table(self, table: Any, weights: Sequence[Fraction]) -> Terms:
        """Return the terms of a table of floats, which count as rationals, times weights of the letters."""
        used = ((x, y, float(table[x, y])) for x, y in np.argwhere(table).tolist())
        return {self.get_cell(x, y): weights[x] * Fraction(value) for x, y, value in used}

    def get_law(self, y: int) -> int:
        """Return the variable of the probability of an output, which is added where it is new."""
        if y not in self._laws:
            column = self.define(f"q[{self.outputs[y]}]", self.weigh(y, self.shares))
            proof = self.shares, {len(self.rows) - 1: ONE}
            self._laws[y] = column
            self.least_means[column] = LeastMean(lambda _: proof)
        return self._laws[y]

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
            self.add_limit(f"vertex[{name},{vertex},{self.outputs[y]}]", least, terms)
        return least

    def add_affine_rows(
        self, name: str, coefficients: Any, offset: Sequence[float], *, equal: bool
    ) -> Fraction:
        """Add rows `C P + offset <= 0`, or `= 0`, relaxed by what the mechanism breaks them.

        The coefficients are the stored floats, as rationals. The most that a row is relaxed by is returned.
        """
        most = ZERO
        for place, (table, constant) in enumerate(zip(coefficients, offset, strict=True)):
            for kind, sign in (("added", 1), ("added_back", -1))[: 1 + equal]:
                terms = self.weigh_table(sign * table, [ONE] * len(self.letters))
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
    raise ProgramError(
        f"{over!r} is no set of priors with rational linear rows: l1 balls, boxes, least masses, "
        "polytopes and hulls of listed priors are, and a hull or a box around it has such a proof"
    )


@describe_set.register
def _(over: Polytope, _: Sequence[str]) -> SetSystem:
    """Describe the rows of the set, divided by powers of two."""
    program = ExactProgram(above=True)
    *rows, _total = zip(*over.row_program.exact_system, strict=True)
    for place, (row, right) in enumerate(rows):
        # less the least coefficient: what they raise is then at least zero
        least = min(row)
        terms = {x: value - least for x, value in enumerate(row)}
        program.add_row(str(place), terms, right - least)
    return SetSystem(program, over.find_prices)


@describe_set.register
def _(over: ChoquetSet, letters: Sequence[str]) -> SetSystem:
    """Describe `{Q: Q >= lower - d, sum d <= shift, Q <= upper}`."""
    lower, shift, upper = over.rational_probability
    size = over.size
    program = ExactProgram(above=True)
    limited = np.flatnonzero(upper < 1).tolist()
    for x, value in enumerate(lower):
        program.add_row(f"lower:{letters[x]}", {x: -ONE, size + x: -ONE}, -value)
    for x in limited:
        program.add_row(f"upper:{letters[x]}", {x: ONE}, upper[x])
    program.add_row("radius", dict.fromkeys(range(size, 2 * size), ONE), shift)

    def list_prices(values: list[Fraction], base: Fraction, cap: Fraction) -> list[Fraction]:
        raised = [min(max(value - base, ZERO), cap) for value in values]
        return [*raised, *(max(base - values[x], ZERO) for x in limited), cap]

    def find_prices(values: list[Fraction]) -> list[Fraction]:
        low = min(values)
        high = max(values)
        # a price makes up for a base above the value of a letter only where it has an upper limit
        most = min((value for x, value in enumerate(values) if x not in limited), default=high)
        # the best are among the values: a base of bounds from both sides, else a cap of a radius
        ends = [
            (end, high) if limited else (low, end - low)
            for end in set(values)
            if end <= most or not limited
        ]
        found = [(base, list_prices(values, base, cap)) for base, cap in ends]
        return max(found, key=lambda one: one[0] - program.sum_right_sides(one[1]))[1]

    return SetSystem(program, find_prices, lower)


@singledispatch
def add_least_mean(
    over: PriorSet | ComparedMeans, program: MechanismProgram, name: str, y: int
) -> int:
    """Add a variable that is at most the mean of the probabilities of an output under each prior of a set.

    It is written by linear duality over the inequalities of the set.
    """
    assert isinstance(over, PriorSet)
    output = program.outputs[y]
    letters = program.letters
    system = describe_set(over, letters)
    values = program.get_values(y)
    raised: list[Terms] = [{cell: ONE} for cell in program.list_column(y)]
    raised += [{} for _ in system.lower]
    priced: Terms = {}
    for inequality, price in zip(system.program.rows, system.find_prices(values), strict=True):
        column = program.add_column(f"price[{name},{inequality.name},{output}]", price)
        priced[column] = -inequality.right
        for x, value in inequality.terms.items():
            raised[x][column] = value
    highest = min(program.evaluate(terms) for terms in raised[: len(letters)])
    base = program.add_column(f"base[{name},{output}]", highest)
    measure = []
    for place, terms in enumerate(raised):
        kind, own = ("raised", base) if place < len(letters) else ("capped", None)
        row_name = f"{kind}[{name},{letters[place % len(letters)]},{output}]"
        measure.append(program.add_limit(row_name, own, terms))
    least = program.define(f"w[{name},{output}]", {base: ONE, **priced})
    mean = len(program.rows) - 1

    def prove(law: FloatArray) -> tuple[Sequence[Fraction], dict[int, Fraction]]:
        member = list(over.project_to_rationals(law))
        pairs = zip(system.lower, member, strict=False)  # sets of other kinds have none
        shares = member + [max(least - mass, ZERO) for least, mass in pairs]
        return member, {mean: ONE, **dict(zip(measure, shares, strict=True))}

    program.least_means[least] = LeastMean(prove, measure[: len(letters)])
    return least


@add_least_mean.register
def _(over: ConvexHull, program: MechanismProgram, name: str, y: int) -> int:
    """Require that the variable is at most the mean under each vertex."""
    laws = over.exact_laws
    means = [program.weigh(y, law) for law in laws.tolist()]
    least = program.add_least(name, y, enumerate(means))
    start = len(program.rows) - len(means)

    def prove(law: FloatArray) -> tuple[Sequence[Fraction], dict[int, Fraction]]:
        shares = over.find_shares(law)
        return list(shares @ laws), dict(enumerate(shares.tolist(), start))

    program.least_means[least] = LeastMean(prove)
    return least


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
    scaled = zip(ratios.rows.tolist(), map(Fraction, ratios.scales), strict=True)
    weights = [[Fraction(value) / scale for value in row] for row, scale in scaled]
    pairs = [end.tolist() for end in (ratios.above, ratios.below, ratios.exponents)]
    for y, output in enumerate(program.outputs):
        sides = program.list_column(y)
        for place, row in enumerate(weights):
            is_law = row == program.shares
            mean = program.weigh(y, row)
            own = f"mean[{name},{place},{output}]"
            sides.append(program.get_law(y) if is_law else program.define(own, mean))
        for place, (above, below, exponent) in enumerate(zip(*pairs, strict=True)):
            # one pair of a side with itself cancels
            if above != below:
                terms = {sides[below]: program.get_power(exponent)}
                program.add_limit(f"pair[{name},{place},{output}]", sides[above], terms)


@add_requirement.register
def _(requirement: MeanBounds, program: MechanismProgram, name: str) -> None:
    """Add the rows of bounds between means, each by few more variables."""
    for one in requirement.bounds:
        if one.kind == BoundKind.SUM_OF_MAX:
            _bound_sum_of_largest(one.exponent, program, name)
            continue
        most = program.vacuous_exponent if one.kind == BoundKind.MAX_OVER_MEAN else MAX_EXPONENT
        if program.above and one.exponent > most:
            continue  # of a bound on the optimum a row may be left out
        factor = program.get_power(min(one.exponent, most))
        is_floor = one.kind == BoundKind.MEAN_OVER_MIN
        for y, output in enumerate(program.outputs):
            side = program.get_law(y) if is_floor else add_least_mean(one.smaller, program, name, y)
            for letter, cell in zip(program.letters, program.list_column(y), strict=True):
                kind, low, high = ("least", side, cell) if is_floor else ("most", cell, side)
                program.add_limit(f"{kind}[{name},{letter},{output}]", low, {high: factor})


def _bound_sum_of_largest(exponent: float, program: MechanismProgram, name: str) -> None:
    """Bound the sum of the largest probabilities of all outputs."""
    tops = []
    for y, output in enumerate(program.outputs):
        tops.append(program.add_column(f"top[{name},{output}]", max(program.get_values(y))))
        for letter, cell in zip(program.letters, program.list_column(y), strict=True):
            program.add_limit(f"under_top[{name},{letter},{output}]", cell, {tops[-1]: ONE})
    # past the number of letters the bound is none
    right = program.get_power(min(exponent, math.log(len(program.letters)) + 1e-6))
    program.add_row(f"tops[{name}]", dict.fromkeys(tops, ONE), right)


@add_requirement.register
def _(requirement: ApproximatePML, program: MechanismProgram, name: str) -> None:
    """Add the rows of PML with an excess that is bounded for each letter."""
    factor = program.get_power(min(requirement.epsilon, program.vacuous_exponent))
    laws = [program.get_law(y) for y in range(len(program.outputs))]
    for x, letter in enumerate(program.letters):
        over = [
            program.add_excess(f"{name},{letter},{y}", {program.get_cell(x, k): ONE, law: -factor})
            for k, (y, law) in enumerate(zip(program.outputs, laws, strict=True))
        ]
        delta = Fraction(requirement.delta)
        program.add_row(f"slack[{name},{letter}]", dict.fromkeys(over, ONE), delta)


@add_requirement.register
def _(requirement: GuessLeakage, program: MechanismProgram, name: str) -> None:
    """Add the rows of the sum of the largest joint probabilities, by a threshold and what is above it."""
    count = min(requirement.guesses, len(program.letters))
    factor = program.get_power(min(requirement.epsilon, MAX_EXPONENT))
    limit = factor * sum(sorted(program.shares)[-count:])
    for y, output in enumerate(program.outputs):
        law = program.get_law(y)
        joint = program.weigh(y, program.shares)
        values = sorted(share * program.values[cell] for cell, share in joint.items())
        edge = program.add_column(f"edge[{name},{output}]", values[-count])
        over = [
            program.add_excess(f"{name},{letter},{output}", {cell: share, edge: -ONE})
            for letter, (cell, share) in zip(program.letters, joint.items(), strict=True)
        ]
        terms = {edge: Fraction(count), law: -limit, **dict.fromkeys(over, ONE)}
        program.add_row(f"guesses[{name},{output}]", terms)
