"""Closed forms that are optimal for a sub-convex design, found by proof: they reach the bound on all."""

from __future__ import annotations

import numpy as np

from pmlopt.backends.clock import Clock
from pmlopt.closed_forms.catalogue import forms, meets
from pmlopt.mechanism import Mechanism
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.subconvex.certifying import certify_columns
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.result import ClosedForm

NEGLIGIBLE_GAP = 1e-10
"""A closed form counts as optimal when its proved gap is below this share of the utility's range."""


def known_columns(program: ColumnDesign, certificate: ColumnCertificate) -> ClosedForm | None:
    """The first closed form whose utility equals the bound on all, but for rounding; None without one."""
    prior, n = program.prior, program.prior.size
    least = certificate.bound - max(NEGLIGIBLE_GAP * program.scale, program.rounding)
    trivial = [("constant", Mechanism(np.ones((n, 1)))), ("deterministic", Mechanism(np.eye(n)))]
    for name, form in [*trivial, *forms(prior, program.privacy)]:
        value = program.utility.value(prior, form.matrix)
        if value >= least and meets(prior, program.privacy, form.matrix):
            return ClosedForm(name, value, certificate.value - value)
    return None


def by_formula(program: ColumnDesign, allowed: float, clock: Clock) -> ColumnCertificate | None:
    """The certificate of a closed form that is proved optimal but for the gap allowed; None without one.

    Its multipliers price its own columns at what they are worth, where a solver's price columns that were
    given room; that tells where the largest entries of columns are a million times the others.
    """
    p = program.prior.pmf
    for _, form in forms(program.prior, program.privacy):
        if not meets(program.prior, program.privacy, form.matrix):
            continue
        law = p @ form.matrix
        columns = form.matrix[:, law > 0] / law[law > 0]
        rho = np.linalg.lstsq(columns.T, program.space.worths(columns), rcond=None)[0] / p
        certificate = certify_columns(program, form.matrix, rho, allowed, clock=clock)
        if certificate.gap <= allowed:
            return certificate
    return None
