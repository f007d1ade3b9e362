"""Parts that many kinds of certificates have."""

from __future__ import annotations

import math

from pmlopt.exact.rationals import holds_exactly, rows_are_exact
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy.requirement import Requirement
from pmlopt.result import Certificate
from pmlopt.saved.verdict import FLOATS, RATIONAL, Part
from pmlopt.saved.violations import violation

SHARE = 0.5
"""Of the allowance for rounding in a bound that is asked for when it is checked: a claim has all of it."""


def matrix_part(mechanism: Mechanism) -> Part:
    """That the matrix is a mechanism."""
    holds = rows_are_exact(mechanism.matrix)
    return Part("mechanism", holds, RATIONAL, "no entry is negative, and each row sums to exactly one"
                if holds else "an entry is negative, or a row does not sum to exactly one")  # fmt: skip


def level_part(prior: Prior, privacy: Requirement, mechanism: Mechanism, statement: str) -> Part:
    """That the mechanism meets a requirement; where it does not, which outcome tells too much of what."""
    holds = holds_exactly(prior, privacy, mechanism.matrix)
    scope = f", {privacy.scope}" if privacy.scope else ""
    text = statement + scope if holds else violation(prior, privacy, mechanism)
    return Part("level", holds, RATIONAL, text)


def value_part(claimed: float, found: float, rounding: float, arithmetic: str = FLOATS) -> Part:
    """That a value is what follows from the matrix."""
    holds = abs(claimed - found) <= rounding or claimed == found
    other = "" if holds else f" is claimed, and {found:.12g} follows from the matrix"
    return Part("value", holds, arithmetic, f"{claimed:.12g}{other}")


def bound_part(claimed: float, proved: float, maximised: bool, arithmetic: str = FLOATS) -> Part:
    """That a bound claims no more than what is proved again."""
    side = "above" if maximised else "below"
    if math.isinf(claimed):
        return Part("bound", True, arithmetic, "none is claimed")
    holds = proved <= claimed if maximised else claimed <= proved
    other = "" if holds else f" is claimed, and {proved:.12g} is proved"
    return Part("bound", holds, arithmetic, f"nothing is {side} {claimed:.12g}{other}")


def gap_part(certificate: Certificate, rounding: float) -> Part:
    """That the gap is what lies between value and bound."""
    value, bound, gap = certificate.value, certificate.bound, certificate.gap
    if math.isinf(bound):
        return Part("gap", math.isinf(gap), FLOATS, "none is claimed")
    holds = gap >= 0 and abs(gap - abs(bound - value)) <= rounding
    other = "" if holds else f" is claimed for {abs(bound - value):.3g}"
    return Part("gap", holds, FLOATS, f"{gap:.3g}{other}")


def no_bound(certificate: Certificate) -> Part:
    """That no bound is claimed where nothing proves one."""
    nothing = math.isinf(certificate.bound)
    return Part("bound", nothing, FLOATS, "none is claimed" if nothing else "no multipliers prove it")
