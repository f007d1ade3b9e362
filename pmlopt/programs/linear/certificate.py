"""The certificate of a linear design: expected gain or loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, Label, bound_sum_rounding
from pmlopt.core.records.fields import ADDED_LATER, ContextReference, Shape
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.errors import FileFormatError
from pmlopt.model.constraints import Constraint
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.requirement import Witness
from pmlopt.programs.certificate import (
    FLOAT_EPSILON,
    VERIFY_ROUNDING_FRACTION,
    DesignCertificate,
    RequirementCertificate,
    format_levels,
)
from pmlopt.programs.claims import (
    FLOATS,
    RATIONAL,
    Claim,
    check_bound,
    check_confidences,
    check_value,
)
from pmlopt.programs.exact.rounding import RepairRecord
from pmlopt.programs.linear.columns import (
    ColumnSystem,
    DenseColumns,
    OrbitColumns,
    build_invariant_columns,
    round_outward,
)


def has_one_sign(coefficients: FloatArray) -> BoolArray:
    """Return (R,) whether all coefficients of a row have one sign."""
    return np.asarray((coefficients >= 0).all(axis=1) | (coefficients <= 0).all(axis=1))


def compute_row_sizes(largest: FloatArray, offset: FloatArray, signs: BoolArray) -> FloatArray:
    """Compute the (R,) sizes of rows `C P + offset`, which grow with the rows as these are multiplied.

    It is the largest coefficient; or, where all coefficients have one sign, the offset, if that is smaller:
    the terms then add up to it, and would all fit below a tolerance for entries of size one.

    Args:
        largest: (R,) the largest coefficients in size.
        offset: (R,).
        signs: (R,) as `has_one_sign` has them.
    """
    sizes = np.where(signs & (offset != 0), np.minimum(np.abs(offset), largest), largest)
    return np.where(sizes > 0, sizes, 1.0)


@light_dataclass(frozen=True, eq=False)
class AffineConstraint:
    """Rows `sum_xy C[r,x,y] P[x,y] + offset[r] <= 0`, or `== 0`, with their multipliers.

    Attributes:
        name: under which it was added.
        equal: whether the rows are equations.
        coefficients: (R, N, M) C.
        offset: (R,).
        multipliers: (R,) at least 0 for inequalities, of which smaller ones count as 0.
    """

    kind: ClassVar[str] = "affine"

    name: str
    equal: bool
    coefficients: Annotated[FloatArray, Shape("R", "N", "M")]
    offset: Annotated[FloatArray, Shape("R")]
    multipliers: Annotated[FloatArray, Shape("R")]

    def term_sums(self, matrix: FloatArray) -> FloatArray:
        """Compute (R,) the sums of the sizes of the terms of each row at a mechanism."""
        return np.asarray(
            (np.abs(self.coefficients) * matrix).sum(axis=(1, 2)) + np.abs(self.offset)
        )

    def violation_units(self, matrix: FloatArray) -> FloatArray:
        """Return (R,) the unit of a violation of each row: the same constraint in any unit has the same.

        It is the size of the row (`compute_row_sizes`); for an inequality whose terms cancel, such as
        `P[x,y] <= c q[y]` at a rare output, that of its terms at the mechanism, where these are smaller.
        """
        signs = has_one_sign(self.coefficients.reshape(len(self.offset), -1))
        sizes = compute_row_sizes(
            np.abs(self.coefficients).max(axis=(1, 2), initial=0.0), self.offset, signs
        )
        if self.equal:
            return sizes
        # terms below 1e-9 of the row's largest coefficient are rounding
        terms = np.maximum(self.term_sums(matrix), 1e-9 * sizes)
        return np.where(signs, sizes, np.minimum(sizes, terms))

    def row_violations(self, matrix: FloatArray) -> FloatArray:
        """Compute (R,) by how much a mechanism breaks each row; 0 where it does not."""
        values = (self.coefficients * matrix).sum(axis=(1, 2)) + self.offset
        return np.asarray(np.abs(values) if self.equal else np.maximum(values, 0.0))

    def max_relative_violation(self, matrix: FloatArray) -> float:
        """Compute the largest violation of the rows by a mechanism, in their units; 0 where there is none."""
        return float((self.row_violations(matrix) / self.violation_units(matrix)).max(initial=0.0))

    @property
    def effective_multipliers(self) -> FloatArray:
        """Return (R,) the multipliers, those of inequalities cut off at 0."""
        return self.multipliers if self.equal else np.maximum(self.multipliers, 0.0)


@light_dataclass(frozen=True, eq=False)
class StatedConstraint:
    """A constraint of the library from which its rows follow, with their multipliers.

    Attributes:
        constraint: what is required.
        multipliers: (R,) of its rows.
    """

    kind: ClassVar[str] = "stated"

    constraint: Constraint
    multipliers: Annotated[FloatArray, Shape("R")]

    def to_affine(self, prior: Prior, outputs: Sequence[Label]) -> AffineConstraint:
        """Build the rows on the letters of a prior and some outputs.

        Raises:
            FileFormatError: there are more or fewer multipliers than rows.
        """
        rows, offset = self.constraint.build_rows(prior, outputs)
        if len(offset) != len(self.multipliers):
            raise FileFormatError(
                f"there are {len(self.multipliers)} multipliers for the {len(offset)} rows of "
                f"{self.constraint.name!r}"
            )
        coefficients = rows.toarray().reshape(-1, prior.size, len(outputs))
        one = self.constraint
        return AffineConstraint(one.name, one.equal, coefficients, -offset, self.multipliers)


def price_constraints(
    constraints: Sequence[AffineConstraint], gains: FloatArray, p: FloatArray
) -> tuple[FloatArray, float]:
    """Return gains and a constant whose sum bounds the expected gain wherever the constraints hold."""
    constant, priced_gains = 0.0, gains
    for one in constraints:
        # multipliers are of P, gains of p[x] P[x,y]: hence the division by the prior
        priced_gains = (
            priced_gains
            - np.tensordot(one.effective_multipliers, one.coefficients, axes=1) / p[:, None]
        )
        # for feasible P each priced row only adds to the Lagrangian (weak duality)
        constant -= float(one.effective_multipliers @ one.offset)
    return priced_gains, constant


def compute_utility_bound(
    prior: Prior, privacy: Requirement, gains: FloatArray, multipliers: FloatArray
) -> float:
    """Compute an upper bound on the expected gain of every mechanism that meets the requirement.

    For every rho in R^N: E[g] = <p, rho> + sum_xy p[x] (g[x,y] - rho[x]) P[x,y], and the last sum
    is at most the requirement's `relaxation` of g - rho. Under PML that is max_y CVaR_{e^-eps}(g[:,y] - rho).
    No solver is trusted: rho may be anything, and what rounding may have taken off is added.

    Args:
        prior: N letters.
        privacy: the requirement.
        gains: (N, M).
        multipliers: (N,) rho; the multipliers of the row sums divided by p reach the optimum.

    Examples:
        >>> from pmlopt import PML
        >>> round(compute_utility_bound(Prior.uniform(4), PML(np.log(2)), np.eye(4), np.zeros(4)), 12)
        0.5
    """
    return DenseColumns(prior, privacy).compute_bound(gains, multipliers)


MAX_RELATIVE_RESIDUAL = 1e-6
"""By how much of its size an added constraint may be violated."""


class _ExpectationCertificate(RequirementCertificate):
    """The base of certificates of an expected gain or loss: the value, and a bound from any multipliers.

    The bound is `constant + columns.bound(gains, multipliers)`, negated for a loss, of the table less the
    least value of each letter, changed by the multipliers of added constraints where there are any.
    """

    if TYPE_CHECKING:  # each kind has its own shapes of these
        multipliers: FloatArray | None
        table: FloatArray
        maximised: bool
        residuals: Mapping[str, float]
        witness: Witness
        added_rows: tuple[AffineConstraint, ...] | None

        @property
        def columns(self) -> ColumnSystem:
            """Return the columns of the pairs under the requirement."""

        @property
        def lifts(self) -> FloatArray:
            """Return the mechanism as values on (letter, output) pairs or their orbits."""

    @property
    def bound_rounding(self) -> float:
        # and what breaking an added constraint by as much as is allowed may gain beyond the bound
        """Return the floating-point allowance by which the value may pass its bound."""
        rows = self.added_rows or ()
        return self._value_rounding + sum(
            float(self._allowed_violations(one) @ np.abs(one.multipliers)) for one in rows
        )

    @cached_property
    def _value_rounding(self) -> float:
        """Return what rounding may have taken off the value."""
        return self.columns.bound_value_rounding(self.table, self.lifts, self._expected_value)

    @cached_property
    def _expected_value(self) -> float:
        """Return the expectation of the table under the mechanism."""
        return self.columns.compute_expectation(self.table, self.lifts)

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        return "expected gain" if self.maximised else "expected loss"

    def _check_value(self) -> Claim:
        """Check the claim that the value is the expectation of the table under the mechanism."""
        found, rounding = self._expected_value, self._value_rounding
        return check_value(self.value, found, rounding, name=self.value_name)

    def _check_constraints(self) -> tuple[Claim, ...]:
        """Check the claims that the mechanism meets the constraints that were added."""
        return tuple(self._check_added(one) for one in self.added_rows or ())

    def _check_bound(self) -> Claim:
        """Check the claim of a bound by the multipliers of rows and of added constraints."""
        if self.multipliers is None or self.multipliers.shape != self.columns.masses.shape:
            return check_bound(self.bound, None, self.maximised)
        if self.added_rows is None and math.isfinite(self.bound):
            text = (
                "it rests on constraints that are not in the file, for one is not affine in the mechanism "
                "alone. At a kink one multiplier proves no bound: write affine inequalities of the "
                "mechanism, such as one for each choice of signs in place of norm1"
            )
            return Claim("bound", None, FLOATS, text, self.bound)
        return check_bound(self.bound, self._recompute_bound(self.multipliers), self.maximised)

    def _recompute_bound(self, rho: FloatArray) -> float:
        """Compute what the multipliers and the dual certificate prove, in the units of the table."""
        columns = self.columns
        least = columns.min_by_letter(self.table)
        centred = columns.center_table(self.table, self.maximised, least)
        gains, extra = price_constraints(self.added_rows or (), centred, columns.masses)
        # in rational arithmetic: the common part of a table may dwarf what differs
        constant = columns.exact_letter_mean(least)
        bound = (
            columns.dual_bound(gains, rho, self.witness)
            if self.witness
            else columns.unrounded_bound(gains, rho)
        )
        # the check recomputes with less rounding allowance than the claim was made with
        bound = extra + (bound + VERIFY_ROUNDING_FRACTION * columns.bound_rounding(gains, rho))
        return round_outward(constant, bound, self.maximised)

    def _check_added(self, one: AffineConstraint) -> Claim:
        """Check the claim that the mechanism meets a constraint that was added, as the file states it."""
        allowed = self._allowed_relative_violation(one)
        broken = one.max_relative_violation(self.lifts)
        rounding = bound_sum_rounding(math.prod(one.coefficients.shape[1:]), 1.0) * one.term_sums(
            self.lifts
        )
        holds = bool(
            (one.row_violations(self.lifts) <= self._allowed_violations(one) + rounding).all()
        )
        text = (
            f"is kept, up to {allowed:.1g} of its size"
            if holds
            else f"is broken by {broken:.1g} of its size"
        )
        return Claim("constraint", holds, FLOATS, f"{one.name!r} {text}", allowed, broken)

    def _allowed_violations(self, one: AffineConstraint) -> FloatArray:
        """Return (R,) by how much the rows of an added constraint may be violated."""
        return self._allowed_relative_violation(one) * one.violation_units(self.lifts)

    def _allowed_relative_violation(self, one: AffineConstraint) -> float:
        """Return the allowed violation in units of the rows: the stated residual, within the usual limit."""
        return min(float(self.residuals.get(one.name, 0.0)), MAX_RELATIVE_RESIDUAL)


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearCertificate(_ExpectationCertificate, DesignCertificate):
    """The certificate of an expected gain or loss on listed letters.

    Attributes:
        maximised: whether the table holds gains.
        table: (N, M) the gain or loss.
        witness: from which the requirement's part in the bound follows; see `Requirement.dual_certificate`.
        added: the constraints that were added; None where one is not affine in the mechanism only.
    """

    kind: ClassVar[str] = "linear"

    maximised: bool
    table: Annotated[FloatArray, Shape("N", "M")]
    witness: Witness
    added: tuple[AffineConstraint | StatedConstraint, ...] | None = ()

    @cached_property
    def added_rows(self) -> tuple[AffineConstraint, ...] | None:  # type: ignore[override]
        """Return the added constraints as rows."""
        if self.added is None:
            return None
        return tuple(
            one.to_affine(self.prior, self.mechanism.outputs)
            if isinstance(one, StatedConstraint)
            else one
            for one in self.added
        )

    def with_bound_from(self, other: Self) -> Self:
        """Return the certificate with the bound of another one, whose proof has no part in the mechanism."""
        proof = {
            name: getattr(other, name) for name in ("bound", "multipliers", "witness", "added")
        }
        return replace(self, **proof)

    @cached_property
    def columns(self) -> DenseColumns:
        """Return the dense columns under the requirement."""
        return DenseColumns(self.prior, self.privacy)

    @property
    def lifts(self) -> FloatArray:
        """Return the mechanism matrix."""
        return self.mechanism.matrix

    @property
    def has_constant_utility(self) -> bool:
        """Return whether every mechanism has the same utility."""
        return bool((np.ptp(self.table, axis=1) == 0).all())


@dataclass(frozen=True, eq=False, kw_only=True)
class OrbitCertificate(RequirementCertificate):
    """The claims about a mechanism by orbits under a requirement, in integers.

    Attributes:
        mechanism: in whole numbers.
        table: (C,) the gain or loss on orbits of pairs, in the person's units.
        repair: what was done to the solver's numbers.
        sampled_pairs: on how many pairs it was looked at whether a user's own gain or loss is constant on
            orbits, where there are too many to look at all; None where that is known.
    """

    mechanism: Annotated[OrbitMechanism, ContextReference("mechanism", only=True)]
    table: Annotated[FloatArray, Shape("C")]
    repair: RepairRecord
    sampled_pairs: Annotated[int | None, ADDED_LATER] = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, OrbitMechanism):
            raise FileFormatError("a certificate of this kind is of a mechanism by orbits")
        space = self.mechanism.space
        # the dataclass is frozen, and a requirement may depend on the prior
        object.__setattr__(self, "privacy", self.privacy.for_prior(space.prior))
        if len(self.table) != space.orbits.count:
            raise FileFormatError(
                f"there are {len(self.table)} values for {space.orbits.count} orbits of pairs"
            )
        assert self.columns  # raises where the requirement or the utility is not invariant

    @property
    def facts(self) -> dict[str, str]:
        """Return the claimed facts as text, keyed by name, with what they assume."""
        return super().facts | ({"assumed": self._assumption} if self.sampled_pairs else {})

    @property
    def _assumption(self) -> str:
        """Return what value and bound assume of the gain or loss, in words."""
        return (
            f"that the gain or loss is constant on orbits: it was compared on {self.sampled_pairs:,} pairs "
            "of letters and outputs, and value and bound rest on it for all others"
        )

    def checks(self) -> tuple[Claim, ...]:
        """Recheck level, value and bound, and name what they assume of the gain or loss."""
        found = super().checks()
        if not self.sampled_pairs:
            return found
        return (*found, Claim("symmetry", None, FLOATS, f"assumed is {self._assumption}"))

    @cached_property
    def columns(self) -> OrbitColumns:
        """Return the columns of the mechanism, one for each orbit of outputs, under the requirement."""
        return build_invariant_columns(self.mechanism.space, self.privacy)

    @property
    def lifts(self) -> FloatArray:
        """Return the lifts of the mechanism: its entries times the sizes of orbits of outputs."""
        return self.mechanism.scaled_entries

    @property
    def float_levels(self) -> tuple[Mapping[str, float], float]:
        """Return the leakage levels by name in floats, and the relative rounding error of a probability."""
        return self.columns.compute_levels(self.lifts), (self.columns.terms + 8) * FLOAT_EPSILON

    @cached_property
    def level_claims(self) -> tuple[Claim, ...]:
        """Check that the masses of the orbits are a mechanism that meets the requirement, in integers.

        The orbits are checked to partition the pairs (each output meets each letter in exactly one), rows to
        sum to exactly one, and each column to be within the bound, e^epsilon replaced by a rational below it.
        """
        rows = self.columns.orbits.is_consistent and self.mechanism.has_exact_rows
        holds = self.columns.is_met_exactly(self.mechanism.masses)
        scope = f", {self.privacy.scope}" if self.privacy.scope else ""
        text = format_levels(self.float_levels[0], self.privacy.limits)
        return (
            Claim("mechanism", rows, RATIONAL, "orbits tile the pairs, and rows sum to exactly one"
                  if rows else "the orbits are no mechanism"),
            Claim("level", holds, RATIONAL, f"{text}{scope}" if holds else f"a limit is broken: {text}"),
            *check_confidences(self.privacy, self.mechanism.space.prior),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class SymmetricCertificate(OrbitCertificate, _ExpectationCertificate):
    """The certificate of an expected gain or loss of a mechanism by orbits, on a symmetric prior.

    The bound is one on all mechanisms, since none does better than the average over its images under the
    group.

    Attributes:
        multipliers: (L,) the rho from which `bound` follows, one for each orbit of letters.
        maximised: whether the table holds gains, and not losses.
    """

    kind: ClassVar[str] = "symmetric"

    multipliers: Annotated[FloatArray, Shape("L")] | None
    maximised: bool

    def with_bound_from(self, other: Self) -> Self:
        """Return the certificate with the bound of another one, whose proof has no part in the mechanism."""
        return replace(self, bound=other.bound, multipliers=other.multipliers)

    witness: ClassVar[Witness] = {}  # type: ignore[misc]
    added_rows: ClassVar[tuple[AffineConstraint, ...]] = ()  # type: ignore[misc]
