"""Designs for a secret that is a number: the least loss of a distance within a requirement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.core.grids import Grid
from pmlopt.data.continuous import Continuous, make_box_labels
from pmlopt.data.prior import PriorLike
from pmlopt.errors import PrivacyError, ProgramError, UtilityError
from pmlopt.model.privacy import LDP, LIP, PML, MaximalLeakage, Requirement
from pmlopt.model.utility import DistanceLoss, ExpectedLoss, Utility
from pmlopt.programs.continuous.certificate import ContinuousCertificate, compute_mean_losses
from pmlopt.programs.linear.program import LinearDesign, linear_design
from pmlopt.programs.program import CvxpyModel, Outputs, Program


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ContinuousDesign(Program[ContinuousCertificate]):
    """The least loss over all mechanisms on a continuous secret, bracketed by mechanisms on bins.

    `problem` is the linear program on the bins that the search begins with. The value of a result is the loss
    of a mechanism on bins, its bound holds for every mechanism whatever its outputs, and the gap is what
    finer bins could still gain.

    Attributes:
        secret, privacy, utility: what it was declared from.
    """

    secret: Continuous
    privacy: Requirement
    utility: DistanceLoss
    tolerance = 0.02
    maximised = False
    """A loss is minimised."""

    @cached_property
    def first_grid(self) -> Grid:
        """Return the initial grid of about 32 bins."""
        # the first grid has about 32 boxes
        return self.secret.even(max(2, round(32 ** (1 / self.secret.axes))))

    @cached_property
    def scale(self) -> float:
        """Return the utility range: the loss of the best constant output less the minimal loss."""
        design = self.design_on_grid(self.first_grid)
        # a constant is always feasible, so that no optimum lies above its loss
        return float((design.prior.pmf @ design.table).min()) - self.utility.min_loss

    def design_on_grid(self, grid: Grid) -> LinearDesign:
        """Build the finite design problem on a grid: bins as letters, bin centres as outputs."""
        table, _ = compute_mean_losses(self.secret, self.utility, grid)
        outputs = tuple(make_box_labels(grid, np.ones(grid.size, dtype=bool)))
        return linear_design(self.secret.prior(grid), self.privacy, ExpectedLoss(table), outputs)


def continuous_design(
    secret: Continuous | PriorLike, privacy: Requirement, utility: Utility, outputs: Outputs = None
) -> ContinuousDesign:
    """Build the problem of the minimal expected distance for a continuous secret under a requirement."""
    if not isinstance(secret, Continuous) or not isinstance(utility, DistanceLoss):
        raise UtilityError(
            f"{utility!r:.60} of {secret!r:.60}: a Continuous secret takes a DistanceLoss, nothing else does"
        )
    if outputs is not None:
        raise ProgramError(
            "a continuous secret has an output at the centre of each bin: leave the outputs out"
        )
    if (
        not isinstance(privacy, PML | LDP | LIP | MaximalLeakage)
        or getattr(privacy, "over", None) is not None
    ):
        raise PrivacyError(
            f"{privacy!r:.60} is about letters that are listed; a continuous secret takes PML, LDP, LIP and "
            "MaximalLeakage, which mean the same on every set of bins"
        )
    program: ContinuousDesign

    def build_model() -> CvxpyModel:
        return program.design_on_grid(program.first_grid).cvxpy_model

    program = ContinuousDesign(
        build_model=build_model, secret=secret, privacy=privacy, utility=utility
    )
    return program
