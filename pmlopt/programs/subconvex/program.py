"""Designs with a sub-convex utility: a linear program over weights of extreme columns."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray, Labels, bound_sum_rounding
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import SubConvex
from pmlopt.model.utility.subconvex import has_known_form
from pmlopt.programs.design_program import Design
from pmlopt.programs.program import CvxpyModel, build_problem
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.subconvex.column_spaces import ColumnSpace, build_column_space
from pmlopt.programs.subconvex.columns import DenseBatch
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL

MAX_DECLARED_COLUMNS = 2_000
"""Extreme columns up to which a program declares all of them."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ColumnDesign(Design[ColumnCertificate]):
    """The design `max sum_y q[y] mu(lam_y)`, `sum_y q[y] lam_y = 1`, `q >= 0` over extreme columns.

    `variables["weights"]` is the (K,) law of the output over the columns of `lifts`, and
    `constraints["rows"]` states that rows of the mechanism sum to one. Where `has_all_columns` is false the
    columns are a start, and `solve` generates others.

    Attributes:
        lifts: (N, K) columns of mean one under the prior.
        column_values: (K,) the utility of each.
        has_all_columns: whether every extreme column is among them.
        space: all extreme columns, and how they are priced.

    Source: [grosse2024extremal, Theorem 6].

    Examples:
        >>> from pmlopt import MutualInformation, PML, design
        >>> program = design([0.5, 0.3, 0.2], PML(0.5), MutualInformation())
        >>> program.has_all_columns, program.lifts.shape, program.problem.is_lp()
        (True, (3, 6), True)
    """

    utility: SubConvex
    lifts: FloatArray
    column_values: FloatArray
    has_all_columns: bool
    space: ColumnSpace

    @property
    def mechanism(self) -> cp.Expression:
        """Return the (N, K) weighted columns as a cvxpy expression."""
        weights = cp.reshape(self.variables["weights"], (1, len(self.column_values)), order="C")
        return cp.multiply(self.lifts, np.ones((self.prior.size, 1)) @ weights)

    @cached_property
    def scale(self) -> float:
        """Return the range of the utility over all mechanisms, the unit of relative tolerances."""
        return max(
            min(self.space.closed_bound[0], self.space.full_release_utility)
            - self.space.constant_utility,
            0.0,
        )

    def with_every_column(self) -> ColumnDesign:
        """Return the program with all extreme columns declared: [grosse2024extremal, Theorem 6].

        Raises:
            ProgramError: there are too many to list; the message states how many.
        """
        p = self.prior.pmf
        listed = self.space.list_columns(self.space.listing_limit)
        if listed is None:
            raise ProgramError(self.space.explain_too_many())
        # the constant column keeps the program feasible under every requirement
        lifts = [
            np.ones((len(p), 1)),
            *(columns.build_lifts(p, FACTOR_MARGIN_RTOL) for columns in listed),
        ]
        return _replace_lifts(self, np.hstack(lifts), True)

    def with_columns(self, lifts: FloatArray) -> ColumnDesign:
        """Return the program with additional columns of mean one."""
        return _replace_lifts(self, np.hstack([self.lifts, lifts]), self.has_all_columns)

    def with_mechanism(self, mechanism: MechanismLike) -> ColumnDesign:
        """Return the program with the columns of a mechanism added, as a warm start.

        Raises:
            ProgramError: the mechanism does not meet the requirement.
        """
        p, start = pair_with_prior(self.prior, mechanism)
        if not self.privacy.holds(p, start):
            raise ProgramError(
                "the warm start does not meet the requirement: its levels are "
                f"{self.privacy.levels(p, start)}, and the limits {self.privacy.limits}"
            )
        # outputs of probability zero have no posterior, so no column of mean one
        occurring = start.matrix[:, start.support]
        return self.with_columns(
            DenseBatch(occurring / (p.pmf @ occurring)).build_lifts(p.pmf, FACTOR_MARGIN_RTOL)
        )

    def write_mps(self, path: str | os.PathLike[str]) -> None:
        """Write the linear program in the MPS format, where all of its columns are declared."""
        if not self.has_all_columns:
            raise ProgramError(
                f"the program declares {len(self.column_values)} of its extreme columns only: write "
                "program.with_every_column() where they are few enough"
            )
        super().write_mps(path)

    @property
    def rounding_gap(self) -> float:
        """Return the gap that rounding and the columns' safety margin may leave."""
        # the margin moves the entries by FACTOR_MARGIN_RTOL, the utility by its slope times that
        expected = 6 * (FACTOR_MARGIN_RTOL * self.space.utility_slope + self.space.typical_rounding)
        return max(bound_sum_rounding(self.prior.size, 64.0), min(expected, 1e-6 * self.scale))


def column_design(
    prior: Prior, privacy: Requirement, utility: SubConvex, outputs: Labels | None
) -> ColumnDesign:
    """Build the linear program over extreme columns; see `design`."""
    if not has_known_form(utility):
        utility.check(prior)
    space = build_column_space(prior, privacy, utility)
    listed = space.list_columns(MAX_DECLARED_COLUMNS)
    # past the limit a few known columns do: pricing finds the others
    columns = space.build_starts() if listed is None else listed
    lifts = np.hstack(
        [
            np.ones((prior.size, 1)),
            *(batch.build_lifts(prior.pmf, FACTOR_MARGIN_RTOL) for batch in columns),
        ]
    )
    worths = utility.column_values(prior.pmf, lifts)
    program = ColumnDesign(
        build_model=partial(_build_model, lifts, worths),
        prior=prior,
        privacy=privacy,
        utility=utility,
        outputs=outputs,
        lifts=lifts,
        column_values=worths,
        has_all_columns=listed is not None,
        space=space,
    )
    if listed is None:
        space.choose_pricer()  # complains where there is no way to price
    return program


def _replace_lifts(program: ColumnDesign, lifts: FloatArray, complete: bool) -> ColumnDesign:
    """Return the program with a different list of columns."""
    worths = program.utility.column_values(program.prior.pmf, lifts)
    declare = partial(_build_model, lifts, worths)
    return replace(
        program, build_model=declare, lifts=lifts, column_values=worths, has_all_columns=complete
    )


def _build_model(lifts: FloatArray, worths: FloatArray) -> CvxpyModel:
    """Build the cvxpy model over the weights of listed columns."""
    weights = cp.Variable(lifts.shape[1], nonneg=True, name="weights")
    constraints = {"rows": lifts @ weights == 1}
    problem = build_problem(cp.Maximize(worths @ weights), constraints)
    return CvxpyModel(problem, {"weights": weights}, constraints)
