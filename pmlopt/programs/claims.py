"""Claims about a mechanism, each of which is rechecked from its numbers without the solver."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import finite_or_none
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import Requirement
from pmlopt.programs.exact.rounding import compute_exact_violations, has_exact_rows

if TYPE_CHECKING:
    from pmlopt.model.uncertainty import L1Ball

RATIONAL = "rational arithmetic"


STRICT_DECIMALS = "decimals of 60 digits, rounded to the stricter side"
"""That of levels whose formula has powers that are no whole numbers."""


FLOATS = "floating point, rounding allowed for"
PLAIN_FLOATS = "floating point"
"""That of integrals and supports of a continuous law, whose rounding errors have no computed limit."""


@light_dataclass(frozen=True)
class Claim:
    """One claim of a certificate, decided again from its numbers without the solver.

    Attributes:
        name: what was looked at, such as "level".
        holds: whether it is so; None where the certificate does not hold what deciding it needs.
        arithmetic: in which it was decided.
        detail: what was found, in words.
        claimed: the number that is claimed, where it is one.
        recomputed: the number that was found instead, where it is one.
    """

    name: str
    holds: bool | None
    arithmetic: str
    detail: str
    claimed: float | None = None
    recomputed: float | None = None

    @property
    def verdict(self) -> str:
        """Return "holds", "FAILS" or "not checked"."""
        return {True: "holds", False: "FAILS", None: "not checked"}[self.holds]

    @property
    def is_exact(self) -> bool:
        """Return whether the claim was decided without a tolerance."""
        return self.arithmetic in (RATIONAL, STRICT_DECIMALS)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: what `pmlopt verify --json` prints of the claim."""
        return {
            "part": self.name,
            "holds": self.holds,
            "exact": self.is_exact,
            "arithmetic": self.arithmetic,
            "detail": self.detail,
            "claimed": finite_or_none(self.claimed),
            "recomputed": finite_or_none(self.recomputed),
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict} ({self.arithmetic}): {self.detail}"


def claim_proof(
    name: str, holds: bool, arithmetic: str, text: str, claimed: float, found: float | None = None
) -> Claim:
    """Make the claim that something is proved, worded otherwise where it is not."""
    return Claim(
        name, holds, arithmetic, text if holds else f"this is not proved: {text}", claimed, found
    )


def check_mechanism(mechanism: Mechanism) -> Claim:
    """Check the claim that the matrix is a mechanism."""
    holds = has_exact_rows(mechanism.matrix)
    return Claim("mechanism", holds, RATIONAL, "no entry is negative, and each row sums to exactly one"
                 if holds else "an entry is negative, or a row does not sum to exactly one")  # fmt: skip


def check_level(prior: Prior, privacy: Requirement, mechanism: Mechanism, statement: str) -> Claim:
    """Check the claim that the mechanism meets a requirement, and name the outcome that breaks it most."""
    holds, arithmetic = decide_requirement(prior, privacy, mechanism.matrix)
    scope = f", {privacy.scope}" if privacy.scope else ""
    text = statement + scope if holds else privacy.describe_violation(prior, mechanism)
    return Claim("level", holds, arithmetic, text)


def decide_requirement(prior: Prior, privacy: Requirement, matrix: FloatArray) -> tuple[bool, str]:
    """Decide without a tolerance whether a matrix meets a requirement, and name the arithmetic.

    Examples:
        >>> import numpy as np
        >>> from pmlopt.model.privacy import PML, RenyiPML
        >>> even, matrix = Prior([0.5, 0.5]), np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> decide_requirement(even, PML(0.4), matrix)  # log 1.5 = 0.405
        (False, 'rational arithmetic')
        >>> decide_requirement(even, RenyiPML(2.5, 0.4), matrix)
        (True, 'decimals of 60 digits, rounded to the stricter side')
    """
    found = compute_exact_violations(prior, privacy, matrix)
    in_decimals = Decimal in map(type, found.flat)
    return bool((found <= 0).all()), STRICT_DECIMALS if in_decimals else RATIONAL


def check_value(
    claimed: float, found: float, rounding: float, arithmetic: str = FLOATS, name: str = ""
) -> Claim:
    """Check the claim that a value follows from the matrix, up to rounding; `name` states what it is."""
    # equality covers infinite values, whose difference is nan
    holds = (math.isfinite(found) and abs(claimed - found) <= rounding) or claimed == found
    other = "" if holds else f" is claimed, and {found:.12g} follows from the matrix"
    text = f"{name} {claimed:.12g}{other}".lstrip()
    return Claim("value", holds, arithmetic, text, claimed, found)


def check_bound(
    claimed: float, proved: float | None, maximised: bool, arithmetic: str = FLOATS
) -> Claim:
    """Check the claim of a bound against the one that is proved again; `proved` is None without a proof."""
    if claimed == (math.inf if maximised else -math.inf):
        return Claim("bound", True, arithmetic, "none is claimed", claimed)
    if proved is None:
        return Claim("bound", False, arithmetic, "no multipliers prove it", claimed)
    side = "above" if maximised else "below"
    holds = proved <= claimed if maximised else claimed <= proved
    other = "" if holds else f" is claimed, and {float(proved)} is proved"
    # all digits: fewer might be rounded to the other side of the value
    text = f"nothing is {side} {float(claimed)}{other}"
    return Claim("bound", holds, arithmetic, text, claimed, proved)


def check_confidences(privacy: Requirement, prior: Any) -> tuple[Claim, ...]:
    """Check that each set of priors contains the true law with its claimed confidence."""
    return tuple(
        check_confidence(over, prior)
        for over in _iterate_prior_sets(privacy)
        if over.delta is not None
    )


def _iterate_prior_sets(privacy: Requirement) -> Iterator[Any]:
    """Iterate over the sets of priors, or of joint laws, of a requirement."""
    for part in privacy.list_parts():
        if (over := getattr(part, "over", None)) is not None:
            yield over


def check_confidence(over: Any, prior: Any) -> Claim:
    """Check the claim that a set of priors contains the true one except with probability `over.delta`.

    The probability is computed again from the counts and the radius of a ball, and the intervals from the
    counts of the prior. Where the numbers that it takes are not there, or knowledge of the true law that no
    number shows would do (`kappa`), it is not checked.

    Source: [grosse2025empirical, Theorem 2].
    """
    from pmlopt.model.uncertainty import Box, JointLaws, L1Ball, confidence_box

    # By what share a probability over a sample may be less than the one that follows: rounding of logarithms.
    near = 1e-9
    delta = over.delta
    if isinstance(over, JointLaws):
        balls = (over.law, *over.conditionals)
        most = math.log(delta)
        # union bound: each ball misses its law with its own probability
        known = [one for one in balls if isinstance(one, L1Ball) and one.center.counts is not None]
        logs = [_log_miss_probability(one) for one in known]
        holds = len(known) == len(balls) and sum(map(math.exp, logs)) <= math.exp(most) * (1 + near)
        return _make_confidence_claim(delta, holds or None)
    if isinstance(over, L1Ball) and over.center.counts is not None:
        if _log_miss_probability(over) <= math.log(delta) + near:
            return _make_confidence_claim(delta, True)
        # `weissman_kappa` of every law in the ball is at least:
        largest = float(over.center.pmf.max())
        least = min(max(largest, 1 / 3), 1 - largest) - over.radius / 2
        possible = least <= 0 or _log_miss_probability(over, least) <= math.log(delta) + near
        return _make_confidence_claim(delta, None if possible else False)
    if (
        isinstance(over, Box)
        and getattr(prior, "counts", None) is not None
        and prior.samples is not None
    ):
        made = confidence_box(prior, delta)
        inside = (over.lower <= made.lower + near).all() and (over.upper >= made.upper - near).all()
        return _make_confidence_claim(delta, True if inside else None)
    return _make_confidence_claim(delta, over.is_shown_by_sample())


def _make_confidence_claim(delta: float, holds: bool | None) -> Claim:
    """Build the claim that an uncertainty set covers the true law except with probability delta."""
    text = {
        True: f"the sample shows the set, except with probability {delta:g}",
        False: f"the sample does not show the set, except with probability {delta:g}",
        None: f"that the set misses the true law with probability {delta:g} does not follow from the file",
    }
    return Claim("confidence", holds, FLOATS, text[holds], delta)


def _log_miss_probability(ball: L1Ball, kappa: float = 0.5) -> float:
    """Bound the log-probability that an l1 ball around the empirical law misses the true law (Weissman)."""
    from pmlopt.model.uncertainty.confidence import deviation_exponent, log_event_count

    draws = sum(ball.center.counts or ())
    return log_event_count(ball.size) - deviation_exponent(min(kappa, 0.5)) / 4 * (
        draws * ball.radius * ball.radius
    )
