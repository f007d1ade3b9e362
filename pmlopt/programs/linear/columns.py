"""The columns of a mechanism (one per output) with their multiplicities, in dense form or by orbits.

A plain design has the trivial group, and a column for each output. On a symmetric prior it has one for each
orbit of outputs, with a prior of its own on the cells of its letters, and the same formulas hold.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Label,
    bound_sum_rounding,
    common_integer_ratio,
)
from pmlopt.core.numbers.blocks import sum_row_products
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.invariant import InvariantPrior
from pmlopt.data.symmetry.prior import LetterCells, PairOrbits, PairSpace
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.requirement import Witness
from pmlopt.programs.exact.rounding import round_exp_down, round_ratio_down
from pmlopt.programs.linear.color_refinement import EquitablePartition
from pmlopt.programs.program import CvxpyModel, build_problem


def round_outward(constant: Fraction, bound: float, maximised: bool) -> float:
    """Return `constant + bound` of a gain, `constant - bound` of a loss, rounded in the safe direction."""
    gain = bound if maximised else -bound
    if not constant or not math.isfinite(bound):
        return gain + 0.0  # no negative zero
    # not as a sum of fractions, which looks for common divisors
    above, below = gain.as_integer_ratio()
    total = constant.numerator * below + above * constant.denominator
    whole = constant.denominator * below
    return -round_ratio_down(-total, whole) if maximised else round_ratio_down(total, whole)


class ColumnSystem(ABC):
    """The interface of a mechanism's columns under a requirement, in dense form or by orbits.

    Values on pairs are (N, M), or (C,) on C orbits of pairs.

    Every mechanism is given by its *lifts*, values on pairs: the entries of its matrix, times the number of
    outputs in their orbit. Letters are N, or each is an orbit of letters.

    Attributes:
        masses: (N,) the probabilities of the letters, or of the orbits of letters.
        terms: the most letters, or cells of letters, that a column has.
    """

    masses: FloatArray
    terms: int

    @abstractmethod
    def broadcast_letters(self, rho: FloatArray) -> FloatArray:
        """Broadcast one number per letter to all (letter, output) pairs."""

    @abstractmethod
    def min_by_letter(self, values: FloatArray) -> FloatArray:
        """Compute the (N,) minimum over outputs of values on pairs, for each letter."""

    @abstractmethod
    def mean_by_letter(self, values: FloatArray, lifts: FloatArray) -> FloatArray:
        """Compute the (N,) conditional expectation of values for each letter, under a mechanism."""

    @abstractmethod
    def mean_by_output(self, values: FloatArray | BoolArray) -> FloatArray:
        """Compute the (M,) mean over letters of values on pairs, for each output (or orbit of outputs)."""

    @abstractmethod
    def broadcast_outputs(self, each: Any, shape: tuple[int, ...]) -> Any:
        """Broadcast one number per output to all (letter, output) pairs."""

    @abstractmethod
    def iterate_parts(self, values: Any) -> Iterator[tuple[FloatArray, Any]]:
        """Yield the values column group by column group, with the probabilities of their cells."""

    @abstractmethod
    def list_pairs(self, allowed: BoolArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """List letter, output, row-sum coefficient and output-law coefficient of each allowed pair."""

    @property
    @abstractmethod
    def letter_weights(self) -> Sequence[int]:
        """Return N integer weights proportional to the letters' probabilities."""

    @abstractmethod
    def support_function(self, gains: FloatArray) -> float:
        """Compute the requirement's support function: the largest gain of all columns together."""

    def compute_expectation(self, values: FloatArray, lifts: FloatArray) -> float:
        """Compute the expected value of a table under the prior and a mechanism."""
        return float(self.masses @ self.mean_by_letter(values, lifts))

    def exact_letter_mean(self, values: FloatArray) -> Fraction:
        """Compute the prior mean of one number per letter in rational arithmetic."""
        weights = self.letter_weights
        numbers, denominator = common_integer_ratio(values.tolist())
        return Fraction(sum(map(operator.mul, weights, numbers)), denominator * sum(weights))

    def compute_value(self, table: FloatArray, maximised: bool, lifts: FloatArray) -> float:
        """Compute the expected utility of a mechanism, with common offsets removed for accuracy.

        It is rounded as bounds are: a value that reaches its bound is the same float.
        """
        least = self.min_by_letter(table)
        gains = self.center_table(table, maximised, least)
        return self.compute_centered_value(
            table,
            (least, self.exact_letter_mean(least)),
            self.compute_expectation(gains, lifts),
            maximised,
            lifts,
        )

    def compute_centered_value(
        self,
        table: FloatArray,
        offsets: tuple[FloatArray, Fraction],
        gain: float,
        maximised: bool,
        lifts: FloatArray,
    ) -> float:
        """Compute the expected utility from the expected gain of a centred table; see `compute_value`.

        Args:
            table: the values.
            offsets: (N,) the least value of each letter, and their mean.
            gain: the expectation of the table less these, with the sign that makes more better.
            maximised: whether the table holds gains.
            lifts: the mechanism.
        """
        # larger row minima would drown the digits of the values that occur; without negative ones none are
        if offsets[0].min() < 0:
            offset = float(self.masses @ np.abs(offsets[0]))
            if offset > 8 * self._expect_sizes(table, lifts):
                # the digits of the least values would drown those that occur: beyond what is allowed for
                return self.compute_expectation(table, lifts)
        return round_outward(offsets[1], gain, maximised)

    def bound_value_rounding(
        self, table: FloatArray, lifts: FloatArray, expected: float | None = None
    ) -> float:
        """Bound the rounding error of an expected utility, which is given where it is known.

        It is in units of the terms of the sum: an entry at a pair that never occurs has no part in it.
        """
        if expected is None or table.min() < 0:
            expected = self._expect_sizes(table, lifts)
        return bound_sum_rounding(sum(table.shape), expected)

    def _expect_sizes(self, table: FloatArray, lifts: FloatArray) -> float:
        """Compute the expected absolute value of a table; one without negative entries is not copied."""
        return self.compute_expectation(table if table.min() >= 0 else np.abs(table), lifts)

    def normalize_rows(self, values: FloatArray) -> FloatArray:
        """Divide positive values on pairs by their row sums."""
        return np.asarray(values / self.broadcast_letters(self.row_sums(values)))

    def row_sums(self, lifts: FloatArray) -> FloatArray:
        """Compute the (N,) row sums of the mechanism."""
        return self.mean_by_letter(np.broadcast_to(1.0, lifts.shape), lifts)

    def max_by_letter(self, values: FloatArray) -> FloatArray:
        """Compute the (N,) maximum over outputs of values on pairs, for each letter."""
        return -self.min_by_letter(-values)

    def center_table(
        self, table: FloatArray, maximised: bool, least: FloatArray | None = None
    ) -> FloatArray:
        """Convert a utility table to gains with a row minimum of zero, from the (N,) minima where known."""
        # adding a number to a row of the table shifts every mechanism's value alike
        least = self.min_by_letter(table) if least is None else least
        if not least.any():
            return table if maximised else -table
        found = table - self.broadcast_letters(least)
        return found if maximised else np.negative(found, out=found)

    def compute_bound(self, gains: FloatArray, rho: FloatArray) -> float:
        """Compute a dual bound on the expected gain from row multipliers rho, with a rounding allowance."""
        return self.unrounded_bound(gains, rho) + self.bound_rounding(gains, rho)

    def unrounded_bound(self, gains: FloatArray, rho: FloatArray) -> float:
        """Compute the dual bound on the expected gain without a rounding allowance (not to be claimed)."""
        return float(self.masses @ rho) + self.support_function(gains - self.broadcast_letters(rho))

    def bound_from_below(
        self, gains: FloatArray, rho: FloatArray, lifts: FloatArray | None = None
    ) -> float:
        """Compute a lower bound on `unrounded_bound` from some columns, which is much cheaper.

        Those of a mechanism that meets the requirement are among them, where it is given.
        """
        return -math.inf

    def bound_rounding(self, gains: FloatArray, rho: FloatArray) -> float:
        """Bound the rounding error of the dual bound."""
        # sums of N terms err by about N units in the last place of the sum of their sizes, and the
        # relaxation is sublinear: what rounding takes off g - rho counts as its relaxation
        prices = np.abs(rho)
        largest = np.maximum(self.max_by_letter(gains), -self.min_by_letter(gains)) + prices
        # of any column: what the relaxation is at most, without a search
        max_size = float(largest.max())
        rows = float(self.masses @ largest)
        # up to four times the mean, the largest entry replaces the search for the support function
        if max_size > 4 * rows:
            max_size = self._max_size(np.abs(gains) + self.broadcast_letters(prices), rows)
        return bound_sum_rounding(self.terms, float(self.masses @ prices) + max_size)

    def _max_size(self, sizes: FloatArray, rows: float) -> float:
        """Bound the magnitude of the terms in any column, for the rounding analysis."""
        return self.support_function(sizes)

    def dual_certificate(self, gains: FloatArray, rho: FloatArray) -> Witness:
        """Return dual variables that prove the support-function value without a search, if available."""
        return {}

    def dual_bound(self, gains: FloatArray, rho: FloatArray, certificate: Witness) -> float:
        """Compute the upper bound on the gain from given dual variables, without a rounding allowance."""
        return self.unrounded_bound(gains, rho)


@light_dataclass(frozen=True, eq=False)
class DenseColumns(ColumnSystem):
    """The columns of a mechanism as a dense matrix, without symmetry."""

    prior: Prior
    privacy: Requirement
    masses: FloatArray = field(init=False)
    terms: int = field(init=False)

    def __post_init__(self) -> None:
        vars(self).update(masses=self.prior.pmf, terms=self.prior.size)

    def broadcast_letters(self, rho: FloatArray) -> FloatArray:
        """Broadcast one number per letter to all (letter, output) pairs."""
        return rho[:, None]

    def min_by_letter(self, values: FloatArray) -> FloatArray:
        """Compute the (N,) minimum over outputs of values on pairs, for each letter."""
        least: FloatArray = values.min(axis=1)
        return least

    def max_by_letter(self, values: FloatArray) -> FloatArray:
        """Compute the (N,) maximum over outputs of values on pairs, for each letter."""
        largest: FloatArray = values.max(axis=1)
        return largest

    def mean_by_letter(self, values: FloatArray, lifts: FloatArray) -> FloatArray:
        """Compute the (N,) conditional expectation of values for each letter, under a mechanism."""
        return sum_row_products(values, lifts)

    def mean_by_output(self, values: FloatArray | BoolArray) -> FloatArray:
        """Compute the (M,) mean over letters of values on pairs, for each output (or orbit of outputs)."""
        return np.asarray(self.prior.pmf @ values)

    def broadcast_outputs(self, each: Any, shape: tuple[int, ...]) -> Any:
        """Broadcast one number per output to all (letter, output) pairs."""
        return np.broadcast_to(each, shape)

    def iterate_parts(self, values: Any) -> Iterator[tuple[FloatArray, Any]]:
        """Yield the values column group by column group, with the probabilities of their cells."""
        yield self.prior.pmf, values

    def list_pairs(self, allowed: BoolArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """List letter, output, row-sum coefficient and output-law coefficient of each allowed pair."""
        letter, output = np.nonzero(allowed)
        return letter, output, np.ones(len(letter)), self.prior.pmf[letter]

    @property
    def letter_weights(self) -> Sequence[int]:
        """Return N integer weights proportional to the letters' probabilities."""
        return self.prior.weights

    def support_function(self, gains: FloatArray) -> float:
        """Compute the requirement's support function: the largest gain of all columns together."""
        return self.privacy.support_function(self.prior, gains)

    def bound_from_below(
        self, gains: FloatArray, rho: FloatArray, lifts: FloatArray | None = None
    ) -> float:
        """Compute a lower bound on `unrounded_bound` from some columns, which is much cheaper."""
        if not self._some_columns.size:
            return -math.inf
        reduced_gains = self.masses[:, None] * (gains - rho[:, None])
        largest = (self._some_columns.T @ reduced_gains).max()
        if lifts is not None:
            law = self.masses @ lifts
            own_gains = (reduced_gains * lifts).sum(axis=0)[law > 0] / law[law > 0]
            largest = max(largest, own_gains.max())
        return float(self.masses @ rho + largest)

    @cached_property
    def _some_columns(self) -> FloatArray:
        """Return (N, K) columns of mean one that the requirement allows."""
        return self.privacy.list_some_columns(self.prior)

    def _max_size(self, sizes: FloatArray, rows: float) -> float:
        # weights of pairs allow for their own rounding: what is left off g - rho is that of a mechanism
        """Bound the sizes of the terms of any column, where they are far from even."""
        by_formula = self.privacy.list_weighted_ratios(self.prior) is None
        return self.support_function(sizes) if by_formula else rows

    def dual_certificate(self, gains: FloatArray, rho: FloatArray) -> Witness:
        """Return dual variables that prove the support-function value without a search, if available."""
        return self.privacy.dual_certificate(self.prior, gains - rho[:, None])

    def dual_bound(self, gains: FloatArray, rho: FloatArray, certificate: Witness) -> float:
        """Compute the upper bound on the gain from given dual variables, without a rounding allowance."""
        return float(self.masses @ rho) + self.privacy.dual_bound(
            self.prior, gains - rho[:, None], certificate
        )


@light_dataclass(frozen=True, eq=False)
class OrbitColumns(ColumnSystem):
    """The columns of a mechanism that is constant on orbits of (letter, output) pairs under a symmetry group.

    A column v of it is constant on the cells of its output y. With w the masses of the cells its mean is
    `<w, v>`: it meets PML, LDP or LIP iff the values on the cells do under the prior w. So each orbit of
    outputs has one column, with a prior of its own, and requirements is required of it as of any other.

    Attributes:
        orbits: of pairs, sorted by outputs.
        cells: those of one output of each orbit.
        privacy: what is required of each column.
    """

    orbits: PairOrbits
    cells: tuple[LetterCells, ...]
    privacy: tuple[Requirement, ...]

    @classmethod
    def from_space(
        cls, space: PairSpace | EquitablePartition, privacy: Requirement
    ) -> OrbitColumns:
        """Build the orbit columns of a pair space under a requirement.

        Raises:
            PrivacyError: the requirement is not on each column, or not the same for all letters of an orbit.
        """
        cells = tuple(space.get_cells(place) for place in range(len(space.orbits.outputs)))
        parts = [part for own in cells if (part := privacy.on_cells(own)) is not None]
        if len(parts) < len(cells):
            raise PrivacyError(
                f"{privacy!r} is not a bound on each column that is the same under a group: designs on "
                "symmetric priors take PML (also of finite order; over all priors, least masses, l1 balls "
                "and, on listed letters, invariant sets, or with budgets), LDP, LIP and, on listed letters, "
                "ratio bounds"
            )
        return cls(space.orbits, cells, tuple(parts))

    @property
    def masses(self) -> FloatArray:  # type: ignore[override]
        """Return the probability of each orbit of letters."""
        return self.orbits.masses

    @property
    def terms(self) -> int:  # type: ignore[override]
        """Return the largest number of letter cells in a column."""
        return max(own.size for own in self.cells)

    @cached_property
    def cell_masses(self) -> FloatArray:
        """Return (C,) the probabilities of the cells, column by column; each column sums to one."""
        return np.concatenate([own.prior.pmf for own in self.cells])

    @cached_property
    def row_sum_matrix(self) -> Any:
        """Return the (L, C) sparse matrix that maps lifts to the row sums of the mechanism."""
        return _build_sum_matrix(
            self.orbits.letter_fractions, self.orbits.letter, len(self.orbits.letters)
        )

    @cached_property
    def _output_law_matrix(self) -> Any:
        """Return the (K, C) sparse matrix that maps lifts to the probabilities of the orbits of outputs."""
        return _build_sum_matrix(self.cell_masses, self.orbits.output, len(self.orbits.outputs))

    def broadcast_letters(self, rho: FloatArray) -> FloatArray:
        """Broadcast one number per letter to all (letter, output) pairs."""
        return rho[self.orbits.letter]

    def min_by_letter(self, values: FloatArray) -> FloatArray:
        """Compute the (N,) minimum over outputs of values on pairs, for each letter."""
        found = np.full(len(self.orbits.letters), np.inf)
        # unbuffered: several pairs of one letter compete for the same place
        np.minimum.at(found, self.orbits.letter, values)
        return found

    def mean_by_letter(self, values: FloatArray, lifts: FloatArray) -> FloatArray:
        """Compute the (N,) conditional expectation of values for each letter, under a mechanism."""
        return np.asarray(self.row_sum_matrix @ (values * lifts))

    def mean_by_output(self, values: FloatArray | BoolArray) -> FloatArray:
        """Compute the (M,) mean over letters of values on pairs, for each output (or orbit of outputs)."""
        return np.asarray(self._output_law_matrix @ values)

    def broadcast_outputs(self, each: Any, shape: tuple[int, ...]) -> Any:
        """Broadcast one number per output to all (letter, output) pairs."""
        return each[self.orbits.output]

    def iterate_parts(self, values: Any) -> Iterator[tuple[FloatArray, Any]]:
        """Yield the values column group by column group, with the probabilities of their cells."""
        for _, prior, column in self._iterate_columns(values):
            yield prior.pmf, column

    def list_pairs(self, allowed: BoolArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """List letter, output, row-sum coefficient and output-law coefficient of each allowed pair."""
        orbits = self.orbits
        return (
            orbits.letter[allowed],
            orbits.output[allowed],
            orbits.letter_fractions[allowed],
            self.cell_masses[allowed],
        )

    @property
    def letter_weights(self) -> Sequence[int]:
        """Return N integer weights proportional to the letters' probabilities."""
        return [n * w for n, w in zip(self.orbits.letters, self.orbits.weights, strict=True)]

    def _iterate_columns(self, values: Any) -> Iterator[tuple[Requirement, Prior, Any]]:
        """Yield for each column the requirement, the prior on the cells, and the values on them."""
        for place, (own, cells) in enumerate(zip(self.privacy, self.cells, strict=True)):
            yield own, cells.prior, values[self.orbits.orbits_of_output(place)][:, None]

    def support_function(self, gains: FloatArray) -> float:
        """Compute the requirement's support function: the largest gain of all columns together."""
        return max(
            own.support_function(prior, column)
            for own, prior, column in self._iterate_columns(gains)
        )

    def max_violations(self, lifts: FloatArray) -> FloatArray:
        """Compute the (K,) largest constraint violation of each column, in floats."""
        each = self._iterate_columns(lifts)
        return np.array(
            [np.max(own.violation(prior.pmf, column, math.exp)) for own, prior, column in each]
        )

    def is_met_exactly(self, masses: tuple[int, ...]) -> bool:
        """Return whether integer masses of pair orbits meet the requirement exactly."""
        for place, (own, cells) in enumerate(zip(self.privacy, self.cells, strict=True)):
            part = self.orbits.orbits_of_output(place)
            if not any(masses[part]):
                continue  # an output that never occurs
            # integers in a common unit, so that the comparison has no rounding
            common = math.lcm(*cells.counts)
            sizes = zip(masses[part], cells.counts, cells.letters.tolist(), strict=True)
            entries = [
                mass * self.orbits.letters[x] * (common // count) for mass, count, x in sizes
            ]
            weights = cells.prior.integer_weights
            if np.any(
                own.violation(weights, np.array(entries, dtype=object)[:, None], round_exp_down) > 0
            ):
                return False
        return True

    def compute_levels(self, lifts: FloatArray) -> dict[str, float]:
        """Compute the mechanism's leakage levels by name, in nats.

        Each is measured next to a column that reveals nothing, which has no larger level than the largest.
        """
        found: dict[str, float] = {}
        for own, prior, column in self._iterate_columns(lifts):
            if not column.any():
                continue
            # a share so small that adding a constant column gives exactly 1 in floats
            pair = Mechanism(np.hstack([column / column.max() * (2.0**-60), np.ones_like(column)]))
            for name, level in own.levels(prior, pair).items():
                found[name] = max(found.get(name, -math.inf), level)
        return found

    def build_model(
        self, names: Sequence[Label], maximised: bool, values: FloatArray
    ) -> CvxpyModel:
        """Build the cvxpy linear program with one variable per orbit of pairs.

        The constraints of the requirement are named after the orbits of outputs; values are gains, or losses.
        """
        orbits = self.orbits
        lifts = cp.Variable(orbits.count, nonneg=True, name="orbits")
        law = cp.Variable(len(orbits.outputs), nonneg=True, name="output_law")
        constraints = {
            "rows": self.row_sum_matrix @ lifts == 1,
            "output_law": self._output_law_matrix @ lifts == law,
        }
        variables = {"orbits": lifts, "output_law": law}
        for place, (name, own) in enumerate(zip(names, self.privacy, strict=True)):
            part = orbits.orbits_of_output(place)
            column = cp.reshape(lifts[part], (part.stop - part.start, 1), order="F")
            declared = own.to_cvxpy(
                self.cells[place].prior, column, cp.reshape(law[place], (1, 1), order="F")
            )
            constraints |= {f"{what} of {name}": one for what, one in declared.constraints.items()}
            variables |= {f"{what} of {name}": one for what, one in declared.variables.items()}
        sense = cp.Maximize if maximised else cp.Minimize
        offsets = self.min_by_letter(values)
        gain = (self.cell_masses * (values - self.broadcast_letters(offsets))) @ lifts + float(
            self.masses @ offsets
        )
        return CvxpyModel(build_problem(sense(gain), constraints), variables, constraints)


def _build_sum_matrix(values: FloatArray, rows: Any, count: int) -> Any:
    """Build the sparse (count, C) matrix that sums entries by row index, with coefficients."""
    return sparse.csr_array((values, (rows, np.arange(len(rows)))), (count, len(rows)))


def build_invariant_columns(space: PairSpace, privacy: Requirement) -> OrbitColumns:
    """Build the orbit columns of a pair space; raise an error where the requirement is not invariant.

    Raises:
        PrivacyError: it is not invariant, or has no form by orbits.
    """
    prior = space.prior
    if isinstance(prior, InvariantPrior):
        for part in privacy.list_parts():
            part.check_invariant(prior.base, [move[0] for move in prior.moves])
    return OrbitColumns.from_space(space, privacy)
