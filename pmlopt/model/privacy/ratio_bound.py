"""Requirements by ratio bounds on linear functions of a column; among them g-leakage."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.argument_checks import (
    check_all_nonnegative,
    check_one_for_each,
    check_same_letters,
)
from pmlopt.core.numbers.arrays import (
    FloatArray,
    IntArray,
    check_nonnegative,
    copy_float_array,
    integers_over_common_denominator,
)
from pmlopt.core.records.fields import ADDED_LATER, ContextReference, Shape
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.ratios import RatioBounds, make_ratio_bounds
from pmlopt.model.privacy.requirement import Requirement


class RatioRequirement(Requirement):
    """The base of requirements `<num_k, v> <= e^(eps_k) <den_k, v>` on each column v.

    Attributes:
        epsilon: in nats, one number, or one for each pair.
    """

    if TYPE_CHECKING:
        epsilon: Any

    @abstractmethod
    def ratios(self, weights: Any) -> RatioBounds:
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers)."""

    def required_ratios(self, weights: Any) -> RatioBounds:
        """Return all required ratio bounds; `ratios` may omit those implied by others."""
        return self.ratios(weights)

    def check_invariant(self, prior: Prior, moves: Sequence[IntArray]) -> None:
        """Raise a PrivacyError where a permutation of letters takes a pair to none of the list."""
        if len(moves):
            check_ratios_invariant(self, prior, moves)

    def list_weighted_ratios(self, prior: Prior) -> RatioBounds | None:
        """List the ratio bounds of whose pairs weights are the dual certificate."""
        return self.list_ratios(prior)

    @property
    def limit(self) -> str:
        """Return the display name of the leakage limit."""
        return self.name.replace("-", "_")

    @property
    def limits(self) -> dict[str, float]:
        """Return the common epsilon; for individual levels the allowed excess 0."""
        return {self.limit: self.epsilon if np.ndim(self.epsilon) == 0 else 0.0}

    def name_levels(self, log_ratios: FloatArray, ratios: RatioBounds) -> dict[str, float]:
        """Convert the (K, 1) largest log-ratios to levels, by the names of `limits`."""
        above = (
            log_ratios
            if np.ndim(self.epsilon) == 0
            else log_ratios - np.array(self.epsilon)[:, None]
        )
        return {self.limit: float(above.max())}

    def for_prior(self, prior: Prior) -> RatioRequirement:
        """Return the requirement for the letters of a prior, where it refers to labels."""
        return self

    def on_cells(self, cells: LetterCells) -> RatioRequirement:
        """Return the requirement on columns that are constant on orbits ("cells") of letters."""
        return RatiosOnCells(self, cells)

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""
        p, m = pair_with_prior(prior, mechanism)
        self.check(p)
        own = self.for_prior(p)
        ratios = own.list_required_ratios(p.pmf)
        assert ratios is not None
        return own.name_levels(ratios.max_log_ratios(m.matrix[:, m.support]), ratios)

    def is_met_with_margin(self, prior: Prior, matrix: FloatArray) -> bool:
        """Return whether a mechanism is so far within its bounds that rounding cannot hide a violation."""
        own = self.for_prior(prior)
        ratios = own.list_required_ratios(prior.integer_weights)
        assert ratios is not None
        return ratios.hold_with_margin(matrix[:, matrix.max(axis=0) > 0])

    def list_some_columns(self, prior: Prior) -> FloatArray:
        """Return constant columns with one entry raised or lowered to its limit.

        Every pair allows a constant, `E 1 <= 0` for its excesses E, and `E (1 + t e_x) <= 0` up to some t.
        """
        pairs = self._require_ratios(prior).excess_rows[0]
        n = prior.size
        rows = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
        sums = np.bincount(rows, weights=pairs.data, minlength=pairs.shape[0])
        up = pairs.data > 0
        steps = -sums[rows] / pairs.data
        upper = np.full(n, np.inf)
        lower = np.full(n, -1.0)
        np.minimum.at(upper, pairs.indices[up], steps[up])
        np.maximum.at(lower, pairs.indices[~up], steps[~up])
        ends = np.clip(np.concatenate([upper, lower]), -1.0, 1 / np.finfo(float).eps)
        columns = 1 + np.tile(np.eye(n), 2) * ends
        means = prior.pmf @ columns
        return np.asarray(columns[:, means > 0] / means[means > 0])


class RatiosOnCells(RatioRequirement):
    """The ratio bounds on columns that are constant on cells (orbits) of letters.

    Args:
        whole: on the letters one by one.
        cells: of one output; the letters must be listed.

    Raises:
        PrivacyError: the letters are not listed, or a permutation of the group takes a pair to none.
    """

    def __init__(self, whole: RatioRequirement, cells: LetterCells) -> None:
        if cells.classes is None or cells.listed is None:
            raise PrivacyError(
                f"{whole!r} is a list of bounds on letters one by one: give the prior as Invariant(...), "
                "which lists its letters"
            )
        self.whole = whole.for_prior(cells.listed)
        self.cells = cells
        self.whole.check(cells.listed)
        self.classes: IntArray = cells.classes

    @property
    def limits(self) -> dict[str, float]:
        """Return the common epsilon; for individual levels the allowed excess 0."""
        return self.whole.limits

    def name_levels(self, log_ratios: FloatArray, ratios: RatioBounds) -> dict[str, float]:
        """Convert the (K, 1) largest log-ratios to levels, by the names of `limits`."""
        return self.whole.name_levels(log_ratios, ratios)

    def ratios(self, weights: Any) -> RatioBounds:
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers)."""
        return self._map_to_cells(self.whole.ratios, weights)

    def required_ratios(self, weights: Any) -> RatioBounds:
        """Return all required ratio bounds; `ratios` may omit those implied by others."""
        return self._map_to_cells(self.whole.required_ratios, weights)

    def _map_to_cells(self, pairs: Callable[[Any], RatioBounds], weights: Any) -> RatioBounds:
        """Map ratio bounds on letters to ratio bounds on cell values."""
        assert self.cells.listed is not None
        exact = weights.dtype == object
        own = pairs(self.cells.listed.integer_weights if exact else self.cells.listed.pmf)
        rows = np.zeros((self.cells.size, len(own.rows)), dtype=weights.dtype)
        np.add.at(rows, self.classes, own.rows.T)
        n = own.size
        c = self.cells.size
        above, below = (
            np.where(side < n, self.classes[np.minimum(side, n - 1)], side - n + c)
            for side in (own.above, own.below)
        )
        return RatioBounds(c, rows.T, own.scales, above, below, own.exponents)

    def __repr__(self) -> str:
        return repr(self.whole)


def check_ratios_invariant(
    whole: RatioRequirement, prior: Prior, moves: Sequence[IntArray]
) -> None:
    """Raise a PrivacyError where the ratio bounds are not invariant under the permutations.

    Args:
        whole: the bounds on each column.
        prior: N letters, which the permutations leave as they are.
        moves: permutations, each the (N,) positions to which letters go.
    """
    ratios = whole.for_prior(prior).required_ratios(prior.integer_weights)
    n = ratios.size
    units = np.eye(n, dtype=int).astype(object)
    sides = np.vstack([units, ratios.rows]), [1] * n + ratios.scales.tolist()

    def list_pairs(order: IntArray) -> list[Any]:
        rows = [
            (tuple(row), scale)
            for row, scale in zip(sides[0][:, order].tolist(), sides[1], strict=True)
        ]
        ends = zip(
            ratios.above.tolist(), ratios.below.tolist(), ratios.exponents.tolist(), strict=True
        )
        return [(rows[above], rows[below], exponent) for above, below, exponent in ends]

    known = set(list_pairs(np.arange(n)))
    for place, move in enumerate(moves):
        strange = [pair for pair, moved in enumerate(list_pairs(move)) if moved not in known]
        if strange:
            raise PrivacyError(
                f"{whole!r} is not invariant: generator {place} takes its bound {strange[0]} to none of the "
                "list"
            )


class RatioBound(RatioRequirement):
    """The ratio bounds `<num_k, v> <= e^epsilon <den_k, v>` from pairs of nonnegative weights.

    PML, local DP, metric privacy, Pufferfish and pointwise g-leakage are of this kind.

    Args:
        numerators: (K, N) non-negative.
        denominators: (K, N) non-negative.
        epsilon: in nats, one number, or one for each pair.
        law: the prior that the weights were computed from, where they were, so that a file states it.

    Raises:
        PrivacyError: an entry is negative or not finite, the shapes differ, or a mechanism that releases
            nothing does not meet a pair: `sum num_k > e^epsilon_k sum den_k`.

    Examples:
        >>> import math
        >>> either = RatioBound([[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]], math.log(1.5))  # PML, even prior
        >>> either.holds([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        True
        >>> round(math.exp(either.level([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])), 12)
        1.6
    """

    name: ClassVar[str] = "ratio-bound"
    numerators: Annotated[FloatArray, Shape("pairs", "letters")]
    denominators: Annotated[FloatArray, Shape("pairs", "letters")]
    epsilon: float | Annotated[FloatArray, Shape("pairs")]
    law: Annotated[Annotated[Prior, ContextReference("prior")] | None, ADDED_LATER]

    def __init__(
        self,
        numerators: ArrayLike,
        denominators: ArrayLike,
        epsilon: float | ArrayLike,
        law: Prior | None = None,
    ) -> None:
        self.law = law
        self.numerators = copy_float_array(numerators, 2, "the numerators", PrivacyError)
        self.denominators = copy_float_array(denominators, 2, "the denominators", PrivacyError)
        if self.numerators.shape != self.denominators.shape:
            raise PrivacyError(
                f"the numerators have the shape {self.numerators.shape}, and the denominators "
                f"{self.denominators.shape}: give a row of each for every pair"
            )
        check_all_nonnegative(self.numerators, "the numerators", PrivacyError)
        check_all_nonnegative(self.denominators, "the denominators", PrivacyError)
        count = len(self.numerators)
        equal = np.ndim(epsilon) == 0
        values = (
            np.full(count, epsilon)
            if equal
            else copy_float_array(epsilon, 1, "epsilon", PrivacyError)
        )
        check_one_for_each("epsilon has", len(values), "entries", count, "pairs", PrivacyError)
        self.each = np.array(
            [check_nonnegative(value, "epsilon", PrivacyError) for value in values.tolist()]
        )
        self.epsilon = float(self.each[0]) if equal else self.each
        self.ratios(np.ones(self.size))  # complains of pairs that cannot be met

    @property
    def size(self) -> int:
        """Return the number of letters N."""
        return int(self.numerators.shape[1])

    @property
    def limit(self) -> str:
        """Return the display name of the leakage limit."""
        return "log_ratio" if np.ndim(self.epsilon) == 0 else "above_epsilon"

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        check_same_letters(self.size, "the pairs are", prior.size, "the prior", PrivacyError)

    def ratios(self, weights: Any) -> RatioBounds:
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers)."""
        return self._integer_ratios if weights.dtype == object else self._float_ratios

    @cached_property
    def _float_ratios(self) -> RatioBounds:
        """Return the ratio bounds in floats."""
        return self._make_ratios(np.vstack([self.numerators, self.denominators]), 1.0)

    @cached_property
    def _integer_ratios(self) -> RatioBounds:
        """Return the ratio bounds in integer arithmetic."""
        return self._make_ratios(
            *integers_over_common_denominator(np.vstack([self.numerators, self.denominators]))
        )

    def _make_ratios(self, both: Any, unit: float) -> RatioBounds:
        """Build ratio bounds from stacked numerators and denominators over a common unit."""
        sides = [(row, unit) for row in both]
        half = len(self.numerators)
        return make_ratio_bounds(sides[:half], sides[half:], self.each.tolist())

    def __repr__(self) -> str:
        return f"RatioBound(<{len(self.numerators)} pairs on {self.size} letters>)"


def check_gain_table(gain: ArrayLike) -> FloatArray:
    """Validate a gain function, and return it as a nonnegative table.

    Raises:
        PrivacyError: it is another table.
    """
    table = copy_float_array(gain, 2, "the gains", PrivacyError)
    check_all_nonnegative(table, "the gains", PrivacyError)
    if not table.any():
        raise PrivacyError("all gains are 0: there is nothing to learn")
    return table


class GainLeakage(RatioRequirement):
    """epsilon-g-leakage of each outcome: `max_w E[g(w, X) | y] <= e^epsilon max_w E[g(w, X)]`.

    The adversary makes one of W guesses, and gains g(w, x). PML bounds this for every gain function.

    Args:
        epsilon: in nats.
        gain: (W, N) non-negative, the gain of each guess at each letter; some guess must gain something.

    Raises:
        PrivacyError: epsilon or a gain is negative or not finite, or nothing is ever gained.

    Source: [alvim2012measuring]; for each outcome, [saeidian2023pointwise, Definition 2].

    Examples:
        >>> import math
        >>> guessing = GainLeakage(1.0, [[1, 0], [0, 1]])  # one for a right guess
        >>> round(math.exp(guessing.level([0.75, 0.25], [[0.75, 0.25], [0.25, 0.75]])), 12)  # 0.9 for 0.75
        1.2
    """

    name: ClassVar[str] = "g-leakage"
    meaning: ClassVar[str] = (
        "No outcome raises what this adversary expects to gain by more than e^{limit}."
    )
    epsilon: float
    gain: Annotated[FloatArray, Shape("guesses", "letters")]

    def __init__(self, epsilon: float, gain: ArrayLike) -> None:
        self.epsilon = check_nonnegative(epsilon, "epsilon", PrivacyError)
        self.gain = check_gain_table(gain)

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        letters = self.gain.shape[1]
        check_same_letters(letters, "the gains are", prior.size, "the prior", PrivacyError)

    def ratios(self, weights: Any) -> RatioBounds:
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers)."""
        gain: Any = self.gain
        if weights.dtype == object:
            gain = integers_over_common_denominator(gain)[0]
        rows = [row for row in gain * weights if row.any()]
        max_gain = max(row.sum() for row in rows)
        total = weights.sum()
        above = [(row, max_gain) for row in rows]
        return make_ratio_bounds(above, [(weights, total)] * len(rows), [self.epsilon] * len(rows))

    def __repr__(self) -> str:
        return f"GainLeakage(epsilon={self.epsilon}, <{len(self.gain)} guesses>)"
