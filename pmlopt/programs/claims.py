"""Claims that certificates of many kinds make, decided again from their numbers."""

from __future__ import annotations

import math

from pmlopt.exact.rationals import holds_exactly, rows_are_exact
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy.requirement import Requirement
from pmlopt.programs.violations import violation
from pmlopt.result import FLOATS, RATIONAL, Certificate, Claim

SHARE = 0.5
"""Of the allowance for rounding in a bound that is asked for when it is checked: a claim has all of it."""


def mechanism_claim(mechanism: Mechanism) -> Claim:
    """That the matrix is a mechanism."""
    holds = rows_are_exact(mechanism.matrix)
    return Claim("mechanism", holds, RATIONAL, "no entry is negative, and each row sums to exactly one"
                 if holds else "an entry is negative, or a row does not sum to exactly one")  # fmt: skip


def level_claim(prior: Prior, privacy: Requirement, mechanism: Mechanism, statement: str) -> Claim:
    """That the mechanism meets a requirement; where it does not, which outcome tells too much of what."""
    holds = holds_exactly(prior, privacy, mechanism.matrix)
    scope = f", {privacy.scope}" if privacy.scope else ""
    text = statement + scope if holds else violation(prior, privacy, mechanism)
    return Claim("level", holds, RATIONAL, text)


def value_claim(claimed: float, found: float, rounding: float, arithmetic: str = FLOATS) -> Claim:
    """That a value is what follows from the matrix, up to rounding."""
    holds = abs(claimed - found) <= rounding or claimed == found
    other = "" if holds else f" is claimed, and {found:.12g} follows from the matrix"
    return Claim("value", holds, arithmetic, f"{claimed:.12g}{other}", claimed, found)


def bound_claim(claimed: float, proved: float, maximised: bool, arithmetic: str = FLOATS) -> Claim:
    """That a bound claims no more than what is proved again."""
    if claimed == (math.inf if maximised else -math.inf):
        return Claim("bound", True, arithmetic, "none is claimed", claimed)
    side = "above" if maximised else "below"
    holds = proved <= claimed if maximised else claimed <= proved
    other = "" if holds else f" is claimed, and {proved:.12g} is proved"
    return Claim("bound", holds, arithmetic, f"nothing is {side} {claimed:.12g}{other}", claimed, proved)


def no_bound(certificate: Certificate, maximised: bool) -> Claim:
    """That no bound is claimed where nothing proves one."""
    nothing = certificate.bound == (math.inf if maximised else -math.inf)
    text = "none is claimed" if nothing else "no multipliers prove it"
    return Claim("bound", nothing, FLOATS, text, certificate.bound)


def gap_claim(certificate: Certificate, rounding: float, maximised: bool) -> Claim:
    """That the value is not beyond the bound, by more than rounding: the gap is what lies between both."""
    value, bound = certificate.value, certificate.bound
    beyond = value - bound if maximised else bound - value
    holds = beyond <= rounding
    text = f"{certificate.gap:.3g}" if holds else f"the value is {beyond:.3g} beyond the bound"
    return Claim("gap", holds, FLOATS, text, certificate.gap)
