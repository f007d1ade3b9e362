"""The certificate of a least leakage level: a mechanism that meets the utility floor, and a lower bound."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, bound_sum_rounding
from pmlopt.core.records.fields import ContextReference, Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import PML
from pmlopt.model.uncertainty import PriorSet
from pmlopt.programs.certificate import DesignCertificate, RequirementCertificate
from pmlopt.programs.claims import FLOATS, RATIONAL, Claim, check_bound
from pmlopt.programs.linear.certificate import OrbitCertificate
from pmlopt.programs.linear.columns import ColumnSystem, DenseColumns


@dataclass(frozen=True, eq=False)
class ExpectedUtilityFloor:
    """A lower limit on the expected gain, or an upper limit on the expected loss.

    Attributes:
        maximised: whether the table holds gains.
        table: (N, M) the gain or loss.
        value: the floor, or the ceiling.
    """

    maximised: bool
    table: Annotated[FloatArray, Shape("N", "M")]
    value: float


@dataclass(frozen=True, eq=False)
class NormalizedFloor:
    """A utility floor in normalized units that avoid cancellation.

    It works on gains less the best that a letter can have, in units of what lies between the best constant
    output and those: neither an offset nor a rare letter takes digits from it.

    Attributes:
        columns: the letters and outputs.
        allowed: the pairs that may occur.
        expected: the gain or loss on pairs, and the floor (of a loss, the ceiling), in its units.
    """

    columns: ColumnSystem
    allowed: BoolArray
    expected: ExpectedUtilityFloor

    @property
    def kind_text(self) -> str:
        """Return "gain" or "loss"."""
        return "gain" if self.expected.maximised else "loss"

    @cached_property
    def normalized_gains(self) -> FloatArray:
        """Return nonpositive gains relative to each letter's best output, divided by `unit`."""
        return np.asarray(
            (self._signed_table - self.columns.broadcast_letters(self._best_gains))
            / self._scaled_unit
        )

    @cached_property
    def min_gain(self) -> float:
        """Return the lower limit on the expected normalized gain; the best possible is 0.

        Computed as a rational.
        """
        weights = self.columns.letter_weights
        best = sum(
            (w * Fraction(b) for w, b in zip(weights, self._best_gains.tolist(), strict=True)),
            Fraction(0),
        )
        wanted = Fraction(self._sign * self.expected.value) / Fraction(2) ** self._exponent
        return float((wanted - best / sum(weights)) / Fraction(self._scaled_unit))

    @property
    def unit(self) -> float:
        """Return the scaling unit: the range between best constant output and best mechanism."""
        return math.ldexp(self._scaled_unit, self._exponent)

    @cached_property
    def rounding(self) -> float:
        """Bound the rounding errors of the floor and of an expected gain."""
        return (
            bound_sum_rounding(self.columns.terms, 2.0 + abs(self.min_gain)) + self._input_rounding
        )

    @property
    def solver_target(self) -> float:
        """Return the floor used by solvers: `min_gain`, lowered by most of the input rounding."""
        return self.min_gain - 0.9 * self._input_rounding

    @cached_property
    def _input_rounding(self) -> float:
        """Bound the rounding of the terms of an expected utility, before they cancel."""
        table = np.ldexp(np.abs(self.expected.table), -self._exponent)
        target = float(abs(Fraction(self.expected.value)) / Fraction(2) ** self._exponent)
        size = float(self.columns.masses @ self.columns.max_by_letter(table)) + target
        return 2 * float(np.finfo(float).eps) * size / self._scaled_unit

    @cached_property
    def _scaled_unit(self) -> float:
        """Return `unit` divided by the power of two that scales the table."""
        short = self.columns.broadcast_letters(self._best_gains) - self._signed_table
        room = float(self.columns.mean_by_output(np.where(self.allowed, short, np.inf)).min())
        if not math.isfinite(room):
            room = float(
                self.columns.masses @ self.columns.max_by_letter(np.where(self.allowed, short, 0))
            )
        return room or 1.0

    def compute_slack(self, lifts: FloatArray) -> float:
        """Compute the slack of the floor at a mechanism, in normalized units; negative if violated."""
        return (
            self.columns.compute_expectation(
                np.where(self.allowed, self.normalized_gains, 0.0), lifts
            )
            - self.min_gain
        )

    @property
    def max_utility(self) -> float:
        """Return the largest possible expected gain, or smallest expected loss, in the utility's units."""
        return (
            math.ldexp(float(self._sign * (self.columns.masses @ self._best_gains)), self._exponent)
            + 0.0
        )

    @property
    def _sign(self) -> float:
        """Return +1 for a gain and -1 for a loss."""
        return 1.0 if self.expected.maximised else -1.0

    @cached_property
    def _exponent(self) -> int:
        """Return the exponent of the power of two that scales the table."""
        return int(np.frexp(np.abs(self.expected.table).max())[1])

    @cached_property
    def _signed_table(self) -> FloatArray:
        """Return the utility table as gains, scaled by a power of two."""
        return self._sign * np.ldexp(self.expected.table, -self._exponent)

    @cached_property
    def _best_gains(self) -> FloatArray:
        """Return (N,) each letter's largest allowed gain."""
        return self.columns.max_by_letter(np.where(self.allowed, self._signed_table, -np.inf))


def find_usable_pairs(allowed: BoolArray, over: PriorSet) -> BoolArray:
    """Find the (N, M) allowed pairs whose output can occur at a finite level, in integer arithmetic.

    Those are the ones whose letters have together a positive probability under every prior of the set:
    under a prior that leaves all of them out, the output reveals all.

    Examples:
        >>> from pmlopt import AllPriors
        >>> find_usable_pairs(np.array([[True, True], [False, True]]), AllPriors(2)).astype(int)
        array([[0, 1],
               [0, 1]])
    """
    ones = np.array(allowed.astype(int).tolist(), dtype=object).reshape(allowed.shape)
    possible = np.array([bool(least > 0) for least in over.min_mean_scaled(ones)[0]], dtype=bool)
    return np.asarray(allowed & possible)


def find_highest_rank(order: FloatArray, over: PriorSet | None = None) -> int:
    """Find the highest rank h feasible at a finite level: each letter has an output of rank h or more.

    Args:
        order: (N, M) ranks, from 1.
        over: the priors for which the level must be finite; left out, each one of positive probabilities.

    Examples:
        >>> from pmlopt import AllPriors
        >>> order = np.array([[3, 2, 1], [1, 3, 2], [1, 2, 3]])
        >>> find_highest_rank(order), find_highest_rank(order, AllPriors(3))
        (3, 2)
    """
    low = 1
    high = int(order.max(axis=1).min()) + 1
    if over is None:
        return high - 1
    while high - low > 1:  # fewer letters may emit an output of a higher rank
        middle = (low + high) // 2
        possible = find_usable_pairs(order >= middle, over).any(axis=1).all()
        low, high = (middle, high) if possible else (low, middle)
    return low


MAX_EXACT_ENTRIES = 100
"""Tables of up to this many entries are computed as rationals, which takes a millisecond."""


@dataclass(frozen=True, eq=False)
class LevelMultipliers:
    """The dual multipliers of a lower bound on the leakage level; any values prove a bound.

    Attributes:
        rows: (N,) one for each letter.
        floor: of the floor on the expected gain; at least 0.
        laws: over a set of priors, (N, M) one of it for each output, times a positive number, or nearly so;
            zeros where an output needs none. None where there is no set, or none of its priors is named.
    """

    rows: FloatArray
    floor: float = 0.0
    laws: FloatArray | None = None

    @property
    def is_finite(self) -> bool:
        """Return whether all multipliers are finite."""
        return bool(np.isfinite(self.rows).all()) and math.isfinite(self.floor)

    def interpolate(self, other: LevelMultipliers, fraction: float) -> LevelMultipliers:
        """Interpolate linearly between two sets of multipliers; negative fractions extrapolate.

        The laws stay, within the set.
        """
        floor = self.floor + fraction * (other.floor - self.floor)
        return LevelMultipliers(
            self.rows + fraction * (other.rows - self.rows), max(0.0, floor), self.laws
        )


def bound_exp_neg_level(
    prior: Prior,
    allowed: BoolArray,
    floor: NormalizedFloor | None,
    multipliers: LevelMultipliers,
    over: PriorSet | None = None,
    *,
    exact: bool = True,
) -> Any:
    """Bound e^-epsilon over the feasible mechanisms, by dual multipliers, for a prior or a set of priors.

    For any y in R^N and k >= 0 let `c = p (y + k g - C)` with `C = <p, y> + k f`, f being the floor on the
    expected gain. A mechanism's columns sum to the vector of ones, so that one of them, scaled to a largest
    entry of one, is a v in [0, 1]^N that is zero outside its letters with `<c, v> >= 0`. At the level epsilon
    `s <= w(v)`, and w(v) is at most `<Q, v>` for every prior Q of the set. So s is at most the largest over
    outputs of `max_v <Q_y, v>`, for any y and any Q_y in the set: a fractional knapsack, filled with letters
    in descending order of `Q / -c`. Some y and Q_y prove as near to the largest share that can be reached as
    one likes.

    Args:
        prior: p; over a set, any will do.
        allowed: (N, M) pairs that may occur.
        floor: g and f, or None.
        multipliers: y and k, finite. The prior of the set near each of their laws is the Q_y; where these are
            left out, or a column is zero or not finite, one at which the output's letters are least probable.
        over: the set; left out, Q_y is p.
        exact: whether to compute in rationals; else in floats, without any allowance for rounding, and with
            the laws as they are.

    Returns:
        A rational, or a float where it is not exact.

    Examples:
        >>> from pmlopt import L1Ball
        >>> p, allowed = Prior([0.5, 0.5]), np.array([[True, False], [True, True]])
        >>> none = LevelMultipliers(np.zeros(2))
        >>> bound_exp_neg_level(
        ...     p, allowed, None, none, L1Ball(p, 0.5)
        ... )  # both letters may have the first output
        Fraction(1, 1)
        >>> bound_exp_neg_level(p, ~np.eye(2, dtype=bool), None, none, L1Ball(p, 0.5))  # 0.5 less a quarter
        Fraction(1, 4)
    """
    number: Any = Fraction if exact else float
    weights = list(map(number, prior.weights if exact else prior.pmf.tolist()))
    total = sum(weights)
    values = list(map(number, multipliers.rows.tolist()))
    least = sum(w * y for w, y in zip(weights, values, strict=True)) / total
    price = number(0 if floor is None else max(multipliers.floor, 0.0))
    if floor is not None:
        least += price * number(floor.min_gain - floor.rounding)
    max_mass = number(0)
    for output, letters in enumerate(allowed.T):
        near: Any = weights
        if over is not None:
            law, size = _get_law(multipliers.laws, output, letters, over)
            near = over.project_to_rationals(law / size) if exact else law / size
        items = []
        room = number(0)
        for x in np.flatnonzero(letters).tolist():
            rate = least - values[x]
            if floor is not None:
                rate -= price * number(floor.normalized_gains[x, output].item())
            if over is None:
                items.append((weights[x], rate))
            elif near[x] > 0:
                items.append((near[x], weights[x] * rate / near[x]))
            else:
                room += max(number(0), -weights[x] * rate)
        max_mass = max(max_mass, _fill_knapsack(items, room))
    return min(max_mass / total if over is None else max_mass, number(1))


def _get_law(
    laws: FloatArray | None, output: int, among: BoolArray, over: PriorSet
) -> tuple[FloatArray, float]:
    """Return the prior that bounds an output's leakage: the given one, or the worst of a set."""
    law = np.zeros(len(among)) if laws is None else np.maximum(laws[:, output], 0.0)
    size = float(law.sum())
    if np.isfinite(law).all() and np.isfinite(size) and size > 0:
        return law, size
    return over.minimizer(among.astype(np.float64)), 1.0


def _fill_knapsack(items: list[tuple[Any, Any]], room: Any) -> Any:
    """Solve a fractional knapsack: the largest value of items within a budget."""
    taken = 0
    for value, rate in sorted(items, key=lambda item: item[1]):
        cost = value * rate
        if cost > room:
            return taken + room / rate
        taken = taken + value
        room = room - cost
    return taken


def bound_level(
    prior: Prior,
    allowed: BoolArray,
    floor: NormalizedFloor | None,
    proof: LevelMultipliers,
    over: PriorSet | None = None,
) -> float:
    """Compute from multipliers a lower bound on the PML level of every feasible mechanism, in nats.

    It is -log of `bound_exp_neg_level`. Small tables, and those over a set of priors, are computed as
    rationals; of others, what rounding may have taken off the sums is allowed for.

    Args:
        prior: N letters.
        allowed: (N, M) pairs that may occur.
        floor: on the expected gain, or None.
        proof: those that are not finite prove nothing.
        over: the set of priors that the level is over, where there is no floor; else None.

    Source: [song2026worstcase, eq. (10)], by Farkas' lemma.

    Examples:
        >>> allowed = np.array([[True, True, False], [False, True, True], [True, False, True]])
        >>> y = LevelMultipliers(np.array([-1.0, 2.0, 2.0]))
        >>> round(np.exp(bound_level(Prior([0.6, 0.2, 0.2]), allowed, None, y)).item(), 9)
        2.0
    """
    if not proof.is_finite:
        return 0.0
    if over is not None or allowed.size <= MAX_EXACT_ENTRIES:
        above = float(bound_exp_neg_level(prior, allowed, floor, proof, over)) * (1 + 2.0**-50)
        return max(0.0, -math.log(min(1.0, above))) if above > 0 else math.inf
    return bound_level_on_columns(DenseColumns(prior, PML(0.0)), allowed, floor, proof)


def bound_level_on_columns(
    columns: ColumnSystem,
    allowed: BoolArray,
    floor: NormalizedFloor | None,
    proof: LevelMultipliers,
) -> float:
    """Compute the bound of `bound_level` in floats, on dense columns or on orbits."""
    if not proof.is_finite:
        return 0.0
    y = proof.rows
    values = np.broadcast_to(columns.broadcast_letters(y), allowed.shape)
    sizes = np.broadcast_to(columns.broadcast_letters(np.abs(y)), allowed.shape)
    least = float(columns.masses @ y)
    size = float(columns.masses @ np.abs(y))
    if floor is not None:
        weight = max(proof.floor, 0.0)
        gains = np.where(allowed, weight * floor.normalized_gains, 0.0)
        values = values + gains
        least = least + weight * (floor.min_gain - floor.rounding)
        size = size + weight * abs(floor.min_gain)
        sizes = sizes + np.abs(gains)
    # what rounding may have taken off each of them, and off the sums, in proportion to what went into it
    relative_error = bound_sum_rounding(columns.terms, 1.0)
    largest = 0.0
    parts = zip(
        columns.iterate_parts(values + relative_error * (sizes + size) - least),
        columns.iterate_parts(allowed),
        strict=True,
    )
    for (p, over), (_, may) in parts:
        order = np.argsort(np.where(may, -over, np.inf), axis=0, kind="stable")
        masses = np.where(np.take_along_axis(may, order, axis=0), p[order], 0.0)
        largest = max(
            largest, _compute_filled_masses(masses, np.take_along_axis(over, order, axis=0)).max()
        )
    return (
        max(0.0, -math.log(min(1.0, float(largest) * (1 + relative_error))))
        if largest > 0
        else math.inf
    )


def _compute_filled_masses(masses: FloatArray, over: FloatArray) -> FloatArray:
    """Compute (M,) where the cumulative sum of `masses * over` crosses zero in each column."""
    filled = np.cumsum(masses, axis=0)
    sums = np.cumsum(masses * over, axis=0)
    negative = sums < 0
    last = np.where(negative.any(axis=0), negative.argmax(axis=0), len(masses) - 1)[None, :]
    before = np.maximum(last - 1, 0)
    mass = np.where(last == 0, 0.0, np.take_along_axis(filled, before, axis=0))
    left = np.where(last == 0, 0.0, np.take_along_axis(sums, before, axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = mass - left / np.take_along_axis(over, last, axis=0)
    return np.asarray(np.where(negative.any(axis=0), roots[0], filled[-1]))


class _LeastLeakageCertificate(RequirementCertificate):
    """The base of certificates of a least leakage level: a floor that is met, and a dual bound."""

    if TYPE_CHECKING:  # each kind has its own shapes of these
        privacy: PML

        @property
        def lifts(self) -> FloatArray:
            """Return the mechanism as values on (letter, output) pairs or their orbits."""

        @property
        def normalized_floor(self) -> NormalizedFloor | None:
            """Return the floor on the expected utility, or None."""

    @abstractmethod
    def recompute_bound(self) -> float:
        """Recompute the lower bound on the level from the multipliers; 0 without any."""

    @property
    def is_maximised(self) -> bool:
        """Return whether the objective is maximised, so that the bound is an upper bound on the optimum."""
        return False

    @property
    def bound_rounding(self) -> float:
        """Return the floating-point allowance by which the value may pass its bound."""
        return 1e-15 * max(1.0, self.value)

    def _check_value(self) -> Claim:
        """Check the claim that the value is the level of the mechanism."""
        value = self.value
        level = self.float_levels[0]["pml"]
        near = abs(level - value) <= 1e-12 * max(1.0, value)
        sharp = value == self.privacy.limits.get("pml") and near
        text = f"the level of the mechanism is {value:.12g}"
        text = text if sharp else f"{text} as claimed, and {level:.12g} as recomputed"
        return Claim("value", sharp, FLOATS, text, value, level)

    def _check_bound(self) -> Claim:
        """Check the claim of a bound by the multipliers."""
        proved = max(0.0, self.recompute_bound())
        return check_bound(self.bound, proved, False, self._arithmetic_of_bound)

    @property
    def _arithmetic_of_bound(self) -> str:
        """Return the name of the arithmetic in which the bound is checked."""
        return FLOATS

    def _check_constraints(self) -> tuple[Claim, ...]:
        """Check the claim that the expected utility reaches the floor, where there is one."""
        floor = self.normalized_floor
        if floor is None:
            return ()
        slack = floor.compute_slack(np.where(floor.allowed, self.lifts, 0.0))
        holds = -slack <= floor.rounding
        verdict = "reached" if holds else "missed"
        found = f"the expected {floor.kind_text} {floor.expected.value:.9g} is {verdict}"
        return (Claim("demand", holds, FLOATS, found, floor.min_gain, floor.min_gain + slack),)


@dataclass(frozen=True, eq=False, kw_only=True)
class LevelCertificate(_LeastLeakageCertificate, DesignCertificate):
    """The certificate of a least leakage level: `value` is reached, no mechanism is below `bound`.

    The bound is `bound_level(prior, allowed, normalized_floor, proof, over)`.

    Attributes:
        privacy: PML at the level, with the set of priors that it is over.
        allowed: (N, M) the pairs that may occur.
        expected: the floor on the expected utility, or None; it is met up to the rounding of the sum.
        weight: the multiplier of the floor.
        laws: (N, M) of a set of priors one for each output, times a number, from which the bound follows with
            `multipliers`; or None.
    """

    kind: ClassVar[str] = "least-leakage"

    mechanism: Annotated[Mechanism, ContextReference("mechanism")]
    privacy: PML
    allowed: Annotated[BoolArray, Shape("N", "M")]
    expected: ExpectedUtilityFloor | None
    weight: float
    laws: Annotated[FloatArray, Shape("N", "M")] | None = None

    @cached_property
    def normalized_floor(self) -> NormalizedFloor | None:
        """Return the floor on the expected utility, in units that keep its digits."""
        columns = DenseColumns(self.prior, self.privacy)
        return (
            None if self.expected is None else NormalizedFloor(columns, self.allowed, self.expected)
        )

    @property
    def lifts(self) -> FloatArray:
        """Return the mechanism matrix."""
        return self.mechanism.matrix

    @property
    def has_constant_utility(self) -> bool:
        """Return whether every mechanism has the same utility."""
        return bool(self.allowed.all()) and self.normalized_floor is None

    @property
    def _arithmetic_of_bound(self) -> str:
        """Return the arithmetic's name: rational, or floats for large tables under one prior."""
        exact = self.allowed.size <= MAX_EXACT_ENTRIES or self.privacy.over is not None
        return RATIONAL if exact else FLOATS

    def _check_constraints(self) -> tuple[Claim, ...]:
        """Check that only allowed pairs occur, and that the utility floor is met."""
        broken = np.argwhere((self.mechanism.matrix != 0) & ~self.allowed)
        text = "no pair occurs that is not allowed"
        if len(broken):
            x, y = broken[0]
            text = f"{self.mechanism.outputs[y]!r} occurs for {self.mechanism.inputs[x]!r}, and must not"
        return (Claim("pairs", not len(broken), RATIONAL, text), *super()._check_constraints())

    def get_law(self, output: int) -> FloatArray:
        """Return the (N,) prior, or nearly one of the set, under which an output leaks what is proved."""
        if self.privacy.over is None:
            return self.prior.pmf
        law, size = _get_law(self.laws, output, self.allowed[:, output], self.privacy.over)
        return law / size

    def recompute_bound(self) -> float:
        """Recompute the lower bound on the level from the multipliers; 0 without any."""
        if self.multipliers is None:
            return 0.0
        proof = LevelMultipliers(self.multipliers, self.weight, self.laws)
        return bound_level(
            self.prior, self.allowed, self.normalized_floor, proof, self.privacy.over
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SymmetricLevelCertificate(OrbitCertificate, _LeastLeakageCertificate):
    """The certificate of a least leakage level of a mechanism by orbits, with its lower bound.

    The bound is `bound_level_on_columns(columns, allowed, normalized_floor, LevelMultipliers(multipliers,
    weight))`, all allowed.

    Attributes:
        privacy: PML at the level.
        table: (C,) the gain or loss on orbits of pairs, in the person's units.
        maximised: whether they are gains, and not losses.
        expected: what the expected gain or loss reaches, up to the rounding of the sum.
        multipliers: (L,) one for each orbit of letters.
        weight: the multiplier of the floor.
        repair: what was done to the solver's numbers.
    """

    kind: ClassVar[str] = "symmetric-least-leakage"

    privacy: PML
    maximised: bool
    expected: float
    multipliers: Annotated[FloatArray, Shape("L")] | None
    weight: float

    @cached_property
    def normalized_floor(self) -> NormalizedFloor:
        """Return the floor on the expected utility, in units that keep its digits."""
        floor = ExpectedUtilityFloor(self.maximised, self.table, self.expected)
        return NormalizedFloor(self.columns, np.ones(self.table.shape, dtype=bool), floor)

    def recompute_bound(self) -> float:
        """Recompute the lower bound on the level from the multipliers; 0 without any."""
        if self.multipliers is None or self.multipliers.shape != self.columns.masses.shape:
            return 0.0
        proof = LevelMultipliers(self.multipliers, self.weight)
        return bound_level_on_columns(
            self.columns, self.normalized_floor.allowed, self.normalized_floor, proof
        )
