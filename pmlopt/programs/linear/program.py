"""Designs with a linear utility: linear programs over the polytope of mechanisms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.core.descriptions import describe_value
from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.numbers.arrays import FloatArray, Label, bound_sum_rounding
from pmlopt.core.numbers.blocks import find_max_size
from pmlopt.data.mechanism import MechanismLike, as_mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.prior import PairSpace, SymmetricPrior
from pmlopt.errors import ProgramError, UtilityError
from pmlopt.model.constraints import Constraint
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.model.utility import LinearUtility
from pmlopt.model.utility.linear import compute_row_offsets
from pmlopt.programs.certificate import C_co
from pmlopt.programs.design_program import Design
from pmlopt.programs.linear.added_rows import (
    AddedConstraintRows,
    compute_gradients,
    compute_row_scales,
    has_expression,
)
from pmlopt.programs.linear.certificate import (
    AffineConstraint,
    LinearCertificate,
    StatedConstraint,
    SymmetricCertificate,
)
from pmlopt.programs.linear.color_refinement import EquitablePartition, refine_colors
from pmlopt.programs.linear.columns import (
    ColumnSystem,
    DenseColumns,
    OrbitColumns,
    build_invariant_columns,
    round_outward,
)
from pmlopt.programs.program import CvxpyModel, Outputs, Program, build_problem, check_shape
from pmlopt.solvers.structured.block_program import BlockLP, ColumnBlock

MAX_SIMPLEX_ENTRIES = 900
"""Matrices of up to this many entries go to the simplex first: fast enough there, and exact."""


class ExpectationProgram(Program[C_co]):
    """The base of designs with expected gain or loss, on dense matrices and on orbits.

    Solvers, bounds and gaps work on gains without the least value of each letter: digits that all outputs
    share would only drown those in which they differ.

    Attributes:
        utility: the gain or loss.
        table: its values on pairs, (N, M) or (C,), in the person's units.
        columns: the pairs under the requirement.
    """

    if TYPE_CHECKING:  # each kind has its own shapes of these
        utility: LinearUtility
        table: FloatArray
        columns: ColumnSystem

    @property
    def maximised(self) -> bool:
        """Return whether the utility is maximised."""
        return self.utility.maximised

    @cached_property
    def row_offsets(self) -> FloatArray:
        """Return (N,) the minimum of each letter's utility, which is subtracted from the table."""
        return self.columns.min_by_letter(self.table)

    @cached_property
    def centered_gains(self) -> FloatArray:
        """Return the utility table as gains with a row minimum of zero."""
        # a view, since it may be the table itself, which stays as it is
        centred = self.columns.center_table(self.table, self.maximised, self.row_offsets).view()
        centred.setflags(write=False)
        return centred

    @cached_property
    def scale(self) -> float:
        """Return the range of the expected gain over all mechanisms."""
        return float(
            self.columns.masses @ (self.columns.max_by_letter(self.table) - self.row_offsets)
        )

    @cached_property
    def exact_constant(self) -> Fraction:
        """Return the exact prior mean of the row offsets, the constant part of the utility."""
        return self.columns.exact_letter_mean(self.row_offsets)

    @cached_property
    def rounding_gap(self) -> float:
        """Return the gap that rounding alone may leave where it exceeds the tolerance; else 0.

        Where only a rare letter can gain, the scale is far below the gains, and the rounding of a bound is
        not: it sums gains, and prices of letters that are at most as large, to three times the largest gain.
        """
        found = bound_sum_rounding(self.columns.terms, 3 * find_max_size(self.centered_gains))
        return found if found > self.tolerance * self.scale else 0.0

    @property
    def float_constant(self) -> float:
        """Return the prior mean of the row offsets as a float."""
        return float(self.exact_constant)

    def to_utility(self, gain: float) -> float:
        """Convert an expected centred gain to the user's utility."""
        return self.float_constant + gain if self.maximised else self.float_constant - gain

    def compute_value(self, lifts: FloatArray, gain: float | None = None) -> float:
        """Compute the utility of a mechanism, in the user's units, from its centred gain where known."""
        if gain is None:
            gain = self.columns.compute_expectation(self.centered_gains, lifts)
        offsets = self.row_offsets, self.exact_constant
        return self.columns.compute_centered_value(self.table, offsets, gain, self.maximised, lifts)

    def compute_bound(self, centered_bound: float) -> float:
        """Convert a bound on the expected centred gain to one on the utility, rounded safely."""
        return round_outward(self.exact_constant, centered_bound, self.maximised)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LinearDesign(ExpectationProgram[LinearCertificate], Design[LinearCertificate]):
    """A design with expected gain or loss: a linear program in the mechanism.

    `variables["mechanism"]` is the (N, M) matrix, `variables["output_law"]` the (1, M) law of the
    output, `constraints["rows"]` states that rows sum to one, and the privacy requirement brings its own.
    A user adds constraints with `with_constraints`; `solve` then takes the program as any other.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, Prior, design
        >>> program = design(Prior([0.5, 0.5]), PML(0.4), ExpectedLoss([[0, 1], [1, 0]]))
        >>> sorted(program.variables), sorted(program.constraints)
        (['mechanism', 'output_law'], ['output_law', 'pml', 'rows'])
    """

    utility: LinearUtility
    outputs: tuple[Label, ...]
    table: FloatArray
    """(N, M) the gain or loss on the labels, in the person's units."""
    stated_constraints: Mapping[str, Constraint] = field(default_factory=dict)
    """The added constraints that are objects of `pmlopt.model.constraints`."""

    @cached_property
    def columns(self) -> DenseColumns:  # type: ignore[override]
        """Return the dense columns under the requirement."""
        return DenseColumns(self.prior, self.privacy)

    @property
    def expected_gains(self) -> FloatArray:
        """Return the (N, M) utility as gains with a row minimum of zero."""
        return self.centered_gains

    @property
    def signed_table(self) -> FloatArray:
        """Return the (N, M) utility table, negated for a loss."""
        return self.table if self.utility.maximised else -self.table

    @cached_property
    def column_block(self) -> ColumnBlock | None:
        """Return the conic constraint on a single column; None where the requirement has no such form."""
        return self.privacy.cone_block(self.prior)

    @property
    def bands(self) -> ColumnBlock | None:
        """Return the interval constraint on a column, where there are no other constraints; else None."""
        block = self.column_block
        return None if block is None or not block.is_banded or self.added else block

    @cached_property
    def equitable_partition(self) -> EquitablePartition | None:
        """Return the equitable partition of letters and outputs; None where it is no smaller problem.

        They are looked for under PML, LDP and LIP, from 20,000 pairs of letters and outputs on, and are of
        use where the classes of pairs are at most a sixteenth of the pairs.
        """
        # on up to 20,000 pairs other methods take milliseconds
        if self.added or self.table.size <= 20_000 or not self.privacy.keeps_averages:
            return None
        # with 16 pairs for each class the simplex in classes beats the interior point in pairs
        return refine_colors(self.prior, self.table, self.table.size // 16)

    def list_ratios(self) -> RatioBounds | None:
        """List the ratio bounds of the requirement; None where it is no list of these."""
        return self.privacy.list_ratios(self.prior)

    @cached_property
    def bounds_on_pairs(self) -> RatioBounds | None:
        """Return the ratio bounds where all are on letter pairs, and there are many; else None."""
        if self.column_block is not None:
            return None
        ratios = self.list_ratios()
        # from 5,000 bounds on, the interior point by pairs is faster than the simplex; where that is not
        # tried, it takes a tenth of the time of a general one
        least = 5_000 if self.table.size <= MAX_SIMPLEX_ENTRIES else 1_000
        many = ratios is not None and len(ratios.exponents) * self.table.shape[1] >= least
        return ratios if many else None

    @cached_property
    def pair_bounds(self) -> RatioBounds | None:
        """Return the bounds on pairs that an interior point by pairs can handle; else None."""
        ratios, (n, m) = self.bounds_on_pairs, self.table.shape
        # every step checks the pairs of the letters of each output
        if self.added or ratios is None or len(ratios.rows) or n * n * m > 2_000_000_000:
            return None
        return ratios if ratios.exponents.min() > 0 else None

    def build_block_lp(self) -> BlockLP | None:
        """Build the column-block linear program; None without a column form, or with too many added rows."""
        if self.column_block is None:
            return None
        costs = -self.prior.pmf[:, None] * self.centered_gains
        scale = float(np.abs(costs).max()) or 1.0
        task = BlockLP(self.prior, costs / scale, scale, self.column_block)
        if not self.added:
            return task
        rows = self.added_rows
        return None if rows is None else rows.add_to(task)

    def to_affine_rows(
        self, constraint: cp.Constraint
    ) -> tuple[sparse.csr_array, FloatArray] | None:
        """Convert an added constraint to (R, N M) coefficients on the mechanism, and (R,) offsets.

        The variables must have their values. None where it is not affine in the mechanism only.
        """
        law, (n, m) = self.variables["output_law"], self.table.shape
        if not has_expression(constraint) or not constraint.expr.is_affine():
            return None
        if any(one.id not in (self.mechanism.id, law.id) for one in constraint.variables()):
            return None
        rows = sparse.csr_array((constraint.expr.size, n * m))
        for variable, gradient in (compute_gradients(constraint) or {}).items():
            part = sparse.csr_array(gradient.T)
            if variable.id == self.mechanism.id:
                rows = rows + part[:, np.arange(n * m).reshape(n, m, order="F").ravel()]
            else:
                rows = rows + sparse.kron(self.prior.pmf[None, :], part, format="csr")
        rows = sparse.csr_array(rows)
        value = np.asarray(constraint.expr.value).flatten(order="F")
        return rows, value - rows @ np.asarray(self.mechanism.value).ravel()

    @cached_property
    def added_rows(self) -> AddedConstraintRows | None:
        """Return the added constraints as at most N linear rows; None where they are more or not affine."""
        added = tuple(self.added.values())
        sizes = [constraint.size for constraint in added]
        if sum(sizes) > self.prior.size:
            return None
        with self.temporarily_assigned(np.full(self.table.shape, 1 / self.table.shape[1])):
            found = [rows for one in added if (rows := self.to_affine_rows(one)) is not None]
        if len(found) < len(added):
            return None
        coefficients = sparse.csr_array(sparse.vstack([rows for rows, _ in found]))
        offset = np.concatenate([constants for _, constants in found])
        coefficients.eliminate_zeros()
        counts = np.diff(coefficients.indptr)
        if not counts.all():
            return None
        equal = np.repeat([isinstance(each, cp.constraints.Equality) for each in added], sizes)
        positive = np.asarray(coefficients.sum(axis=1)).ravel() > 0
        zero = (counts == 1) & (np.abs(offset) < 1e-15) & (equal | positive)
        if self.column_block is None or self.column_block.lower.any():
            zero[:] = False
        return AddedConstraintRows(added, coefficients, offset, equal, zero, self.table.shape)

    @property
    def mechanism(self) -> cp.Variable:
        """Return the (N, M) cvxpy variable of the mechanism matrix."""
        return self.variables["mechanism"]

    def with_stated_constraints(self, constraints: Iterable[Constraint]) -> LinearDesign:
        """Return a copy of the program with predefined constraints such as `Invariant()`, under their names.

        Raises:
            ProgramError: one is no such constraint, is there twice, or is on other labels.
        """
        cells, added = cp.vec(self.mechanism, order="C"), {}
        stated = dict(self.stated_constraints)
        for one in constraints:
            if not isinstance(one, Constraint):
                raise ProgramError(
                    f"{describe_value(one)} is no constraint such as constraints.Invariant()"
                )
            if one.name in stated:
                raise ProgramError(
                    f"there are two constraints {one.name!r}: one of each kind can be kept"
                )
            rows, offset = one.build_rows(self.prior, self.outputs)
            if len(offset):
                stated[one.name] = one
                scales = compute_row_scales(rows, offset)
                scaled = sparse.csr_array(sparse.diags_array(1 / scales) @ rows)
                limit = offset / scales
                added[one.name] = scaled @ cells == limit if one.equal else scaled @ cells <= limit
        return replace(self.with_constraints(**added), stated_constraints=stated) if added else self

    def to_saved_constraint(
        self, constraint: AffineConstraint
    ) -> AffineConstraint | StatedConstraint:
        """Convert an added constraint to its saved form: predefined constraint, or linear rows."""
        one = self.stated_constraints.get(constraint.name)
        return constraint if one is None else StatedConstraint(one, constraint.multipliers)

    @cached_property
    def _stated_rows(self) -> Mapping[str, tuple[AffineConstraint, FloatArray]]:
        """Return the linear rows of the predefined constraints with their scales."""
        found = {}
        for name, one in self.stated_constraints.items():
            scales = compute_row_scales(*one.build_rows(self.prior, self.outputs))
            found[name] = (
                StatedConstraint(one, np.zeros_like(scales)).to_affine(self.prior, self.outputs),
                scales,
            )
        return found

    def get_stated_rows(self, name: str) -> AffineConstraint | None:
        """Return the rows of a predefined constraint with its multipliers; None without multipliers."""
        rows, scales = self._stated_rows[name]
        duals = self.added[name].dual_value
        if duals is None:
            return None
        return replace(rows, multipliers=np.asarray(duals, dtype=float).flatten(order="F") / scales)

    def _scale_constraint(self, name: str, constraint: cp.Constraint) -> cp.Constraint:
        """Return a constraint by its affine pieces, and where these are tiny or huge over powers of two.

        Solvers drop small coefficients without a word, and refuse large ones.
        """
        from pmlopt.programs.linear.affine_pieces import lift_constraint, split_constraint

        own = [self.mechanism, self.variables["output_law"]]
        for write_affinely in (split_constraint, partial(lift_constraint, probabilities=own)):
            if (written := write_affinely(constraint)) is not None:
                constraint = written.set_label(name)
        if not {one.id for one in constraint.variables()} <= {one.id for one in own}:
            return constraint
        kept = [one.value for one in own]
        try:
            for one in own:  # at zero, where nothing hides the offset
                one.value = np.zeros(one.shape)
            known = self.to_affine_rows(constraint)
        finally:
            for one, value in zip(own, kept, strict=True):
                one.value = value
        if known is None:
            return constraint
        rows, offset = known
        scales = compute_row_scales(rows, offset)
        if ((scales >= 1e-3) & (scales <= 1e3)).all():
            return constraint
        cells = cp.vec(self.mechanism, order="C")
        left = sparse.csr_array(sparse.diags_array(1 / scales) @ rows) @ cells + offset / scales
        equal = isinstance(constraint, cp.constraints.Equality)
        return (left == 0 if equal else left <= 0).set_label(name)

    def with_constraints(self, **constraints: cp.Constraint) -> LinearDesign:
        """Return a copy of the program with additional named constraints.

        Args:
            constraints: cvxpy constraints on the program's variables, and on new ones if wanted
                (give those finite bounds, or the optimum cannot be proved).

        Raises:
            ProgramError: a name is taken, a value is not a cvxpy constraint or not convex (DCP), or a
                new variable is integer.

        Examples:
            >>> from pmlopt import ExpectedLoss, PML, Prior, design, solve
            >>> program = design(Prior([0.5, 0.5]), PML(0.4), ExpectedLoss([[0, 1], [1, 0]]))
            >>> fair = program.with_constraints(fair=program.mechanism[0, 0] <= 0.6)
            >>> round(float(solve(fair).mechanism.matrix[0, 0]), 6)
            0.6
        """
        for name, constraint in constraints.items():
            if name in self.constraints or name in self.added:
                raise ProgramError(
                    f"the program has a constraint {name!r} already: choose another name"
                )
            if not isinstance(constraint, cp.Constraint) or isinstance(constraint, cp.FiniteSet):
                raise ProgramError(
                    f"{name!r} is {describe_value(constraint)}, not a cvxpy constraint: write, for example, "
                    "program.mechanism[0, 1] == 0"
                )
            empty = [parameter for parameter in constraint.parameters() if parameter.value is None]
            if empty:
                raise ProgramError(
                    f"the constraint {name!r} has the parameter {empty[0]} without a value"
                )
            if not constraint.is_dcp():
                raise ProgramError(f"the constraint {name!r} is not convex (not DCP): {constraint}")
            self._check_variables(name, constraint, constraints)
            constraint.set_label(name)
        scaled = {name: self._scale_constraint(name, one) for name, one in constraints.items()}
        added = {**self.added, **scaled}
        problem = cp.Problem(self.problem.objective, [*self.constraints.values(), *added.values()])
        declaration = CvxpyModel(problem, self.variables, self.constraints)
        return replace(self, build_model=declaration.get_self, added=added)

    def _check_variables(
        self, name: str, constraint: cp.Constraint, new_constraints: Mapping[str, cp.Constraint]
    ) -> None:
        """Raise an error where a constraint has integer, complex or foreign variables."""
        own = {variable.id for variable in self.variables.values()}
        others = [c for key, c in {**self.added, **new_constraints}.items() if key != name]
        shared = {variable.id for other in others for variable in other.variables()}
        for variable in constraint.variables():
            if (
                variable.attributes["boolean"]
                or variable.attributes["integer"]
                or variable.is_complex()
            ):
                raise ProgramError(
                    f"the constraint {name!r} has the variable {variable.name()!r}, which is integer or "
                    "complex: pmlopt solves and certifies convex problems in real numbers"
                )
        if not {variable.id for variable in constraint.variables()} & (own | shared):
            raise ProgramError(
                f"the constraint {name!r} is on no variable of this program (of another one?): it would "
                "change nothing"
            )

    def assign_variables(self, mechanism: MechanismLike) -> None:
        """Set all cvxpy variables of the program to their values at a mechanism."""
        matrix = as_mechanism(mechanism).matrix
        check_shape(matrix, self.table)
        values = {
            "mechanism": matrix,
            "output_law": (self.prior.pmf @ matrix)[None, :],
            **self.privacy.auxiliary_values(self.prior, matrix),
        }
        for name, value in values.items():
            self.variables[name].value = value

    @contextmanager
    def temporarily_assigned(self, mechanism: MechanismLike) -> Iterator[None]:
        """Set all cvxpy variables to a mechanism's values within a context, and restore them afterwards."""
        before = {name: variable.value for name, variable in self.variables.items()}
        try:
            self.assign_variables(mechanism)
            yield
        finally:
            for name, value in before.items():
                self.variables[name].value = value


def linear_design(
    prior: Prior,
    privacy: Requirement,
    utility: LinearUtility,
    outputs: tuple[Label, ...],
    constraints: Iterable[Constraint] = (),
) -> LinearDesign:
    """Build the linear program `max (or min) E[f(X, Y)]` under a requirement; see `design`."""
    table = check_not_huge(utility.evaluate_table(prior.labels, outputs))
    program = LinearDesign(
        build_model=partial(_build_model, prior, privacy, utility, table),
        prior=prior,
        privacy=privacy,
        utility=utility,
        outputs=outputs,
        table=table,
    )
    if program.column_block is None and program.list_ratios() is None:
        # solvers of others ask for the cvxpy side anyway, and its complaints come early
        program = replace(program, build_model=program.build_model().get_self)
    constraints = tuple(constraints)
    return program.with_stated_constraints(constraints) if constraints else program


def check_not_huge(table: FloatArray) -> FloatArray:
    """Check that the sums of a utility table cannot overflow, and return it."""
    largest = find_max_size(table)
    if largest > 1e150:
        raise UtilityError(f"the utility has an entry of size {largest:g}: change its unit")
    return table


def _build_model(
    prior: Prior, privacy: Requirement, utility: LinearUtility, table: FloatArray
) -> CvxpyModel:
    """Build the cvxpy model of a linear design."""
    mechanism = cp.Variable(table.shape, nonneg=True, name="mechanism")
    law = cp.Variable((1, table.shape[1]), nonneg=True, name="output_law")
    declared = privacy.to_cvxpy(prior, mechanism, law)
    constraints = {
        "rows": cp.sum(mechanism, axis=1) == 1,
        "output_law": prior.pmf[None, :] @ mechanism == law,
        **declared.constraints,
    }
    sense = cp.Maximize if utility.maximised else cp.Minimize
    offsets = compute_row_offsets(table)
    expression = utility.to_cvxpy(prior, table - offsets[:, None], mechanism) + float(
        prior.pmf @ offsets
    )
    variables = {"mechanism": mechanism, "output_law": law, **declared.variables}
    return CvxpyModel(build_problem(sense(expression), constraints), variables, constraints)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SymmetricDesign(ExpectationProgram[SymmetricCertificate]):
    """The linear program of an expected gain or loss on a symmetric prior, in orbits of pairs.

    `variables["orbits"]` has one entry for each orbit of pairs, the probability of an output of the orbit
    given a letter of it, times the number of outputs in their orbit; `space.names` names them.
    `variables["output_law"]` has the probability of each orbit of outputs. `constraints["rows"]` states that
    rows of the mechanism sum to one, one for each orbit of letters, and for each orbit of outputs the
    requirement brings its own, named after it.

    Examples:
        >>> from pmlopt import CoordinateLoss, PML, IIDPrior, design
        >>> program = design(IIDPrior([0.7, 0.3], 2), PML(0.4), CoordinateLoss([[0, 1], [1, 0]]))
        >>> program.variables["orbits"].shape, program.space.pair_names[0]
        ((10,), ((0, 0), (0, 2)))
        >>> sorted(program.constraints)
        ['output_law', 'pml of (0, 2)', 'pml of (1, 1)', 'pml of (2, 0)', 'rows']
    """

    prior: SymmetricPrior
    privacy: Requirement
    utility: LinearUtility
    space: PairSpace
    table: FloatArray
    """(C,) the gain or loss on the orbits of pairs, in the person's units."""
    columns: OrbitColumns

    def __repr__(self) -> str:
        return f"<SymmetricDesign on {self.prior!r} under {self.privacy}>"


def symmetric_design(
    prior: SymmetricPrior, privacy: Requirement, utility: LinearUtility, outputs: Outputs
) -> SymmetricDesign:
    """Build the linear program `max (or min) E[f(X, Y)]` in orbits of pairs; see `design`.

    The average of a mechanism over the group is a mechanism with the same expectation, and meets every
    requirement that is convex and invariant: none does better than the best that is constant on orbits.

    Raises:
        ProgramError: outputs are given, which the symmetric prior knows already.
        PriorError, PrivacyError, UtilityError: what is given does not fit, or is not invariant; or there are
            too many orbits of pairs.
    """
    if outputs is not None:
        raise ProgramError(
            f"the outputs of {prior!r} are those on which its group acts: leave them out (Invariant takes "
            "its own)"
        )
    space = prior.make_pairs(utility.shape)
    values = check_not_huge(utility.evaluate_on_orbits(space))
    columns = build_invariant_columns(space, privacy)
    return SymmetricDesign(
        build_model=partial(columns.build_model, space.output_names, utility.maximised, values),
        prior=prior,
        privacy=privacy,
        utility=utility,
        space=space,
        table=values,
        columns=columns,
    )
