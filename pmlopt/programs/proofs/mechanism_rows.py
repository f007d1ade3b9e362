"""The rows of a requirement on a mechanism over the rationals, with the values of the variables that they bring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from pmlopt.core.arrays import BoolArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import (
    ApproximatePML,
    GuessLeakage,
    Requirement,
    RequirementConjunction,
)
from pmlopt.model.privacy.factors import MAX_EXPONENT
from pmlopt.model.privacy.mean_bounds import BoundKind, MeanBound, MeanBounds
from pmlopt.model.uncertainty import ChoquetSet, ConvexHull, PriorSet
from pmlopt.programs.proofs.exact_program import (
    ONE,
    ZERO,
    ExactProgram,
    make_names,
)


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
        total = sum(prior.weights)
        letters, outputs = make_names(prior.labels), make_names(mechanism.outputs)
        matrix = [[Fraction(value) for value in row] for row in mechanism.matrix.tolist()]
        cells = [[-1] * len(outputs) for _ in letters]
        for x, row in enumerate(matrix):
            for y, value in enumerate(row):
                if allowed is None or allowed[x, y]:
                    meaning = "the probability of the output given the letter"
                    cells[x][y] = program.add_column(f"P[{letters[x]},{outputs[y]}]", value, meaning)
        shares = [Fraction(weight) / total for weight in prior.weights]
        weights = np.array(prior.weights, dtype=object)
        found = cls(program, shares, weights, matrix, cells, letters, outputs)
        program.masses = shares
        for x, letter in enumerate(letters):
            meaning = "the probabilities of a letter sum to one"
            pairs = [(cell, ONE) for cell in cells[x] if cell >= 0]
            support = program.add_row(f"row[{letter}]", pairs, ONE, equal=True, meaning=meaning)
            for cell, _ in pairs:
                program.supports[cell] = (support,)
        return found

    def list_column(self, y: int) -> list[tuple[int, int]]:
        """Return the letters with the variables of an output."""
        return [(x, row[y]) for x, row in enumerate(self.cells) if row[y] >= 0]

    def get_values(self, y: int) -> list[Fraction]:
        """Return the probabilities of an output given each letter."""
        return [row[y] for row in self.matrix]

    def add_sum(
        self, name: str, y: int, weights: Sequence[Fraction], row_name: str, meaning: str
    ) -> int:
        """Add a variable that is a weighted sum of the probabilities of an output."""
        program, values = self.program, self.get_values(y)
        value = sum((w * v for w, v in zip(weights, values, strict=True)), ZERO)
        place = program.add_column(name, value, meaning)
        pairs = [(cell, -weights[x]) for x, cell in self.list_column(y)]
        support = program.add_row(row_name, [(place, ONE), *pairs], equal=True, meaning=f"{name.partition('[')[0]} is that sum")
        program.supports[place] = (support,)
        return place

    def get_law(self, y: int) -> int:
        """Return the variable of the probability of an output, which is added where it is new."""
        if y not in self._laws:
            name = self.outputs[y]
            meaning = "the probability of the output: the mean over the letters under the prior"
            self._laws[y] = self.add_sum(f"q[{name}]", y, self.prior, f"law[{name}]", meaning)
        return self._laws[y]

    def get_limit(self, side: int, exponent: float) -> int:
        """Return the variable of a rational next to e^exponent times another variable."""
        factor, program, key = self.program.powers(exponent), self.program, (side, exponent)
        if factor == 1:
            return side
        if key not in self._limits:
            inside = f"[{program.columns[side].replace('[', ':').rstrip(']')}:{exponent:.9g}]"
            meaning = "the rational for e to the named exponent, times the named variable"
            place = program.add_column(f"limit{inside}", factor * program.values[side], meaning)
            pairs = [(place, ONE), (side, -factor)]
            support = program.add_row(f"power{inside}", pairs, equal=True, meaning="limit is that product")
            program.supports[place] = (support,)
            self._limits[key] = place
        return self._limits[key]

    def bound_entries(self, name: str, y: int, limit: int, meaning: str) -> None:
        """Require that each probability of an output is at most a variable."""
        for x, cell in self.list_column(y):
            row = f"{name}[{self.letters[x]},{self.outputs[y]}]"
            self.program.add_row(row, [(cell, ONE), (limit, -ONE)], meaning=meaning)


@singledispatch
def add_requirement(requirement: Requirement, rows: MechanismRows, name: str) -> None:
    """Add the rows of a requirement, under a name.

    Raises:
        ProgramError: it has no form by linear rows.
    """
    if not requirement.has_ratios:
        raise ProgramError(
            f"{requirement!r} is no list of linear rows, and a proof of this kind is of a linear program: "
            "PML (also over l1 balls, boxes and hulls), LDP, LIP, maximal leakage, ratio bounds, metrics, "
            "approximate PML and guess leakage are"
        )
    # for a bound on the optimum those suffice from which the others follow
    listed = requirement.ratios if rows.program.powers.above else requirement.required_ratios
    ratios = listed(rows.weights)
    assert ratios is not None
    for y, output in enumerate(rows.outputs):
        sides = [cells[y] for cells in rows.cells]
        for place, (row, scale) in enumerate(zip(ratios.rows, ratios.scales, strict=True)):
            weights = [Fraction(value) / Fraction(scale) for value in row.tolist()]
            inside = f"[{name}.{place},{output}]"
            meaning = "a weighted sum of the probabilities of the output, on one side of ratio bounds"
            sides.append(rows.add_sum(f"mean{inside}", y, weights, f"average{inside}", meaning))
        for place, (above, below, exponent) in enumerate(
            zip(ratios.above.tolist(), ratios.below.tolist(), ratios.exponents.tolist(), strict=True)
        ):
            limit = rows.get_limit(sides[below], exponent)
            meaning = "a side of a ratio bound is at most the limit from the other one"
            pairs = [(sides[above], ONE), (limit, -ONE)]
            rows.program.add_row(f"{name}[{place},{output}]", pairs, meaning=meaning)


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
            _bound_sum_of_largest(one, rows, name)
            continue
        for y in range(len(rows.outputs)):
            if one.kind == BoundKind.MAX_OVER_MEAN:
                exponent = min(one.exponent, _find_vacuous_exponent(rows))
                limit = rows.get_limit(rows.get_law(y), exponent)
                meaning = "the letter becomes at most so many times as likely given the output"
                rows.bound_entries(name, y, limit, meaning)
            elif one.kind == BoundKind.MEAN_OVER_MIN:
                _bound_from_below(one, rows, name, y)
            elif one.kind == BoundKind.MAX_OVER_MIN:
                limit = rows.get_limit(_add_floor(rows, name, y), one.exponent)
                meaning = "no probability of the output is above the limit from the least one"
                rows.bound_entries(name, y, limit, meaning)
            else:
                assert isinstance(one.smaller, PriorSet)
                limit = rows.get_limit(add_least_mean(one.smaller, rows, name, y), _cap(one.exponent))
                meaning = "the letter becomes at most so many times as likely under every prior of the set"
                rows.bound_entries(name, y, limit, meaning)


def _cap(exponent: float) -> float:
    """Return an exponent, or the largest that floats hold: the exact check of a matrix caps it likewise."""
    return min(exponent, MAX_EXPONENT)


def _find_vacuous_exponent(rows: MechanismRows) -> float:
    """Return an exponent beyond which no letter can become more likely, since it is certain."""
    return min(MAX_EXPONENT, math.log(1 / min(rows.prior)) + 1e-6)


def _bound_sum_of_largest(one: MeanBound, rows: MechanismRows, name: str) -> None:
    """Bound the sum of the largest probabilities of all outputs."""
    program, tops = rows.program, []
    for y, output in enumerate(rows.outputs):
        meaning = "at least the largest probability of the output"
        tops.append(program.add_column(f"top[{name},{output}]", max(rows.get_values(y)), meaning))
        rows.bound_entries(name, y, tops[-1], "top is at least each probability of the output")
    # past the number of letters the bound is none
    right = rows.program.powers(min(one.exponent, math.log(len(rows.letters)) + 1e-6))
    meaning = "the largest probabilities of all outputs sum to at most e^epsilon"
    support = program.add_row(f"{name}_sum[all]", [(top, ONE) for top in tops], right, meaning=meaning)
    for top in tops:
        program.supports[top] = (support,)


def _bound_from_below(one: MeanBound, rows: MechanismRows, name: str, y: int) -> None:
    """Require that no letter becomes less likely by more than a factor."""
    program, law, factor = rows.program, rows.get_law(y), rows.program.powers(one.exponent)
    output = rows.outputs[y]
    least = program.add_column(
        f"least[{name},{output}]", program.values[law] / factor, "q over the rational for e^lower"
    )
    pairs = [(least, factor), (law, -ONE)]
    support = program.add_row(f"share[{name},{output}]", pairs, equal=True, meaning="least is that share")
    program.supports[least] = (support,)
    _bound_below(rows, f"{name}_lower", y, least)


def _bound_below(rows: MechanismRows, name: str, y: int, floor: int) -> tuple[int, ...]:
    """Require that each probability of an output, also of a pair that is left out, is at least a variable."""
    found = []
    for x, letter in enumerate(rows.letters):
        cell = rows.cells[x][y]
        pairs = [(floor, ONE), *([(cell, -ONE)] if cell >= 0 else [])]
        row = f"{name}[{letter},{rows.outputs[y]}]"
        meaning = "no probability of the output is below"
        found.append(rows.program.add_row(row, pairs, meaning=meaning))
    return tuple(found)


def _add_floor(rows: MechanismRows, name: str, y: int) -> int:
    """Add a variable that is at most each probability of an output."""
    meaning = "at most the least probability of the output"
    inside = f"floor[{name},{rows.outputs[y]}]"
    floor = rows.program.add_column(inside, min(rows.get_values(y)), meaning)
    rows.program.supports[floor] = _bound_below(rows, f"{name}_floor", y, floor)
    return floor


@singledispatch
def add_least_mean(over: PriorSet, rows: MechanismRows, name: str, y: int) -> int:
    """Add a variable that is at most the mean of the probabilities of an output under each prior of a set.

    Raises:
        ProgramError: the set is no polytope that is known in rationals.
    """
    raise ProgramError(
        f"{over!r} is no set of priors with rational linear rows: l1 balls, boxes, least masses and hulls of "
        "listed priors are, and a hull or a box around it has such a proof"
    )


@add_least_mean.register
def _(over: ConvexHull, rows: MechanismRows, name: str, y: int) -> int:
    """Require that the variable is at most the mean under each vertex."""
    program, values, output = rows.program, rows.get_values(y), rows.outputs[y]
    laws = [[Fraction(value) for value in point] for point in over.points.tolist()]
    laws = [[value / sum(law) for value in law] for law in laws]
    means = [sum((w * v for w, v in zip(law, values, strict=True)), ZERO) for law in laws]
    least = program.add_column(f"w[{name},{output}]", min(means), "at most each mean over the set of priors")
    program.supports[least] = tuple(
        program.add_row(
            f"{name}_prior[{place},{output}]",
            [(least, ONE), *((cell, -law[x]) for x, cell in rows.list_column(y))],
            meaning="w is at most the mean under that vertex of the set",
        )
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
        raise ProgramError(f"{over!r} has both a shift and upper bounds, and no known rational rows")
    base, cap, mean = _find_dual_point(rows.get_values(y), lower, upper, shift)
    tau = program.add_column(f"base[{name},{output}]", base, "taken from all probabilities of the output")
    top = program.add_column(f"cap[{name},{output}]", cap, "the largest excess that counts") if shift else None
    pairs = [(tau, -ONE), *([(top, shift)] if top is not None else [])]
    covers, caps = [], []
    for x, (letter, value) in enumerate(zip(rows.letters, rows.get_values(y), strict=True)):
        inside, cell = f"[{name},{letter},{output}]", rows.cells[x][y]
        excess = max(value - base, ZERO)
        over_base = program.add_column(
            f"excess{inside}", min(excess, cap) if shift else excess, "counts with the lower probability"
        )
        terms = [(over_base, ONE), (tau, ONE), *([(cell, -ONE)] if cell >= 0 else [])]
        pairs.append((over_base, -lower[x]))
        if upper is not None:
            below = program.add_column(f"lack{inside}", max(base - value, ZERO), "counts with the upper one")
            terms.append((below, -ONE))
            pairs.append((below, upper[x]))
        meaning = "base and excess, less lack, are at most the probability"
        covers.append(program.add_row(f"{name}_cover{inside}", terms, meaning=meaning))
        program.supports[over_base] = (covers[-1],)
        if top is not None:
            row = [(over_base, ONE), (top, -ONE)]
            caps.append(program.add_row(f"{name}_cap{inside}", row, meaning="excess is at most cap"))
    program.supports[tau] = tuple(covers)
    meaning = "the least mean of the output over the set of priors, by linear duality"
    least = program.add_column(f"w[{name},{output}]", mean, meaning)
    support = program.add_row(
        f"{name}_mean[{output}]", [(least, ONE), *pairs], equal=True,
        meaning="w is base, plus excess times lower, less lack times upper and cap times shift",
    )  # fmt: skip
    program.supports[least] = (support,)

    def complete_measure(multipliers: list[Fraction]) -> None:
        """Set the multipliers to a prior of the set, near what they are, times that of the mean."""
        size = multipliers[support]
        law = np.array([float(multipliers[row] / size) for row in covers]) if size else np.zeros(0)
        near = over.project_to_rationals(law) if size else [ZERO] * len(covers)
        for place, share in enumerate(near):
            multipliers[covers[place]] = size * share
            if caps:
                multipliers[caps[place]] = size * max(lower[place] - share, ZERO)

    # after the multiplier of the mean is final, and before those of base, excess, lack and cap are looked at
    program.completions[least - 1] = complete_measure
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
    points = sorted(set(values))
    if upper is None:
        points = [value - least for value in points]
    candidates = [(value, ZERO) if upper is not None else (least, value) for value in points]
    # concave in the point: the slope changes its sign once
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if compute_mean(*candidates[middle]) < compute_mean(*candidates[middle + 1]):
            low = middle + 1
        else:
            high = middle
    return *candidates[low], compute_mean(*candidates[low])


@add_requirement.register
def _(requirement: ApproximatePML, rows: MechanismRows, name: str) -> None:
    """Add the rows of PML with an excess that is bounded for each letter."""
    program, exponent = rows.program, min(requirement.epsilon, _find_vacuous_exponent(rows))
    sums: list[list[int]] = [[] for _ in rows.letters]
    for y, output in enumerate(rows.outputs):
        limit = rows.get_limit(rows.get_law(y), exponent)
        for x, cell in rows.list_column(y):
            inside = f"[{name},{rows.letters[x]},{output}]"
            over = max(rows.matrix[x][y] - program.values[limit], ZERO)
            meaning = "at least what the probability is above its limit"
            sums[x].append(program.add_column(f"over{inside}", over, meaning))
            terms = [(cell, ONE), (limit, -ONE), (sums[x][-1], -ONE)]
            program.add_row(f"{name}{inside}", terms, meaning="the probability is at most limit and over")
    for x, letter in enumerate(rows.letters):
        meaning = "what is above the limits sums to at most delta for each letter"
        pairs = [(column, ONE) for column in sums[x]]
        support = program.add_row(f"{name}_slack[{letter}]", pairs, Fraction(requirement.delta), meaning=meaning)
        for column in sums[x]:
            program.supports[column] = (support,)


@add_requirement.register
def _(requirement: GuessLeakage, rows: MechanismRows, name: str) -> None:
    """Add the rows of the sum of the largest joint probabilities, by a threshold and what is above it."""
    program, count = rows.program, min(requirement.guesses, len(rows.letters))
    before = sum(sorted(rows.prior)[-count:], ZERO)
    for y, output in enumerate(rows.outputs):
        limit = rows.get_limit(rows.get_law(y), _cap(requirement.epsilon))
        joint = [w * v for w, v in zip(rows.prior, rows.get_values(y), strict=True)]
        threshold = sorted(joint)[-count]
        edge = program.add_column(f"edge[{name},{output}]", threshold, "the least of the largest joint probabilities")
        overs = []
        for x, cell in rows.list_column(y):
            inside = f"[{name},{rows.letters[x]},{output}]"
            meaning = "at least what the joint probability is above edge"
            overs.append(program.add_column(f"over{inside}", max(joint[x] - threshold, ZERO), meaning))
            terms = [(cell, rows.prior[x]), (edge, -ONE), (overs[-1], -ONE)]
            program.add_row(f"{name}_above{inside}", terms, meaning="over is at least that")
        pairs = [(edge, Fraction(count)), *((over, ONE) for over in overs), (limit, -before)]
        meaning = "the chance to be right within the guesses is at most the limit"
        support = program.add_row(f"{name}[{output}]", pairs, meaning=meaning)
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
        terms = [
            (rows.cells[x][y], Fraction(float(table[x, y])))
            for x, y in np.argwhere(table != 0).tolist()
            if rows.cells[x][y] >= 0
        ]
        right = -Fraction(float(constant))
        value = rows.program.evaluate(dict(terms))
        slack = max(value - right, ZERO, right - value if equal else ZERO)
        most = max(most, slack)
        meaning = "a constraint that was added to the design"
        own = f"{name}[{place}]"
        if equal and not slack:
            rows.program.add_row(own, terms, right, equal=True, meaning=meaning)
            continue
        rows.program.add_row(own, terms, right + slack, meaning=meaning)
        if equal:
            negated = [(cell, -value) for cell, value in terms]
            rows.program.add_row(f"{name}_back[{place}]", negated, slack - right, meaning=meaning)
    return most
