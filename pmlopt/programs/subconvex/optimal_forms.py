"""Closed forms that are optimal for a design over columns."""

from __future__ import annotations

import numpy as np

from pmlopt.data.mechanism import wrap_checked_matrix
from pmlopt.model.closed_forms.catalogue import build_closed_forms, is_within_limits
from pmlopt.programs.certificate import Certificate, ClosedForm
from pmlopt.programs.subconvex.cost_program import ColumnCostDesign
from pmlopt.programs.subconvex.program import ColumnDesign


def find_optimal_form(
    program: ColumnDesign | ColumnCostDesign, certificate: Certificate, rtol: float
) -> ClosedForm | None:
    """Find the first closed form whose utility equals the bound, but for rounding; None without one.

    Args:
        program: the design.
        certificate: its value and bound.
        rtol: how far below the bound a form may be, as a share of the range of the utility.
    """
    prior = program.prior
    privacy = program.privacy
    n = program.prior.size
    least = certificate.bound - max(rtol * program.scale, program.rounding_gap)
    trivial = [("constant", np.ones((n, 1))), ("deterministic", np.eye(n))]
    forms = [(name, form.matrix) for name, form in build_closed_forms(prior, privacy)]
    for name, matrix in [*trivial, *forms]:
        value = program.utility.value(prior, wrap_checked_matrix(matrix, prior.labels))
        if value >= least and is_within_limits(prior, privacy, matrix):
            return ClosedForm(name, value, certificate.value - value)
    return None
