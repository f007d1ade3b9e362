"""Claims that certificates of many kinds make, decided again from their numbers, and what breaks them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray, Label
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import LDP, LIP, PML, ApproximatePML, MaximalLeakage, MetricPrivacy, Pufferfish
from pmlopt.model.privacy.requirement import Conjunction, Requirement
from pmlopt.model.privacy.secret_leakage import SecretPML
from pmlopt.model.uncertainty import Box, L1Ball, confidence_box, pointwise_capacity
from pmlopt.model.uncertainty.confidence import log_events, phi
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.programs.certificate import FLOATS, RATIONAL, Certificate, Claim
from pmlopt.programs.exact.arithmetic import holds_exactly, rows_are_exact

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
    holds = (math.isfinite(found) and abs(claimed - found) <= rounding) or claimed == found
    other = "" if holds else f" is claimed, and {found:.12g} follows from the matrix"
    return Claim("value", holds, arithmetic, f"{claimed:.12g}{other}", claimed, found)


def bound_claim(claimed: float, proved: float | None, maximised: bool, arithmetic: str = FLOATS) -> Claim:
    """That a bound claims no more than what is proved again; `proved` is None where nothing proves one."""
    if claimed == (math.inf if maximised else -math.inf):
        return Claim("bound", True, arithmetic, "none is claimed", claimed)
    if proved is None:
        return Claim("bound", False, arithmetic, "no multipliers prove it", claimed)
    side = "above" if maximised else "below"
    holds = proved <= claimed if maximised else claimed <= proved
    other = "" if holds else f" is claimed, and {proved:.12g} is proved"
    return Claim("bound", holds, arithmetic, f"nothing is {side} {claimed:.12g}{other}", claimed, proved)


def gap_claim(certificate: Certificate, rounding: float, maximised: bool) -> Claim:
    """That the value is not beyond the bound, by more than rounding: the gap is what lies between both."""
    value, bound = certificate.value, certificate.bound
    beyond = value - bound if maximised else bound - value
    holds = beyond <= rounding
    text = f"{certificate.gap:.3g}" if holds else f"the value is {beyond:.3g} beyond the bound"
    return Claim("gap", holds, FLOATS, text, certificate.gap)


NEAR = 1e-9
"""By what share a probability over a sample may be less than the one that follows: rounding of logarithms."""


def confidence_claims(privacy: Requirement, prior: Any) -> tuple[Claim, ...]:
    """That the sets of priors of a requirement hold the true law except with the probability they say."""
    return tuple(confidence_claim(over, prior) for over in _sets(privacy) if over.delta is not None)


def _sets(privacy: Requirement) -> Iterator[Any]:
    """The sets of priors, or of joint laws, that a requirement is over."""
    for part in privacy.parts if isinstance(privacy, Conjunction) else (privacy,):
        if (over := getattr(part, "over", None)) is not None:
            yield over


def confidence_claim(over: Any, prior: Any) -> Claim:
    """That a set of priors holds the true one except with probability `over.delta` over its sample.

    The probability is computed again from the counts and the radius of a ball, and the intervals from the
    counts of the prior. Where the numbers that it takes are not there, or knowledge of the true law that no
    number shows would do (`kappa`), it is not checked.

    Source: [grosse2025empirical, Theorem 2].
    """
    delta = over.delta
    if isinstance(over, JointLaws):
        balls, most = (over.law, *over.conditionals), math.log(delta)
        known = [one for one in balls if isinstance(one, L1Ball) and one.center.counts is not None]
        logs = [_log_outside(one) for one in known]
        holds = len(known) == len(balls) and sum(map(math.exp, logs)) <= math.exp(most) * (1 + NEAR)
        return _confidence(delta, holds or None)
    if isinstance(over, L1Ball) and over.center.counts is not None:
        if _log_outside(over) <= math.log(delta) + NEAR:
            return _confidence(delta, True)
        largest = float(over.center.pmf.max())  # `weissman_kappa` of every law in the ball is at least:
        least = min(max(largest, 1 / 3), 1 - largest) - over.radius / 2
        possible = least <= 0 or _log_outside(over, least) <= math.log(delta) + NEAR
        return _confidence(delta, None if possible else False)
    if isinstance(over, Box) and getattr(prior, "counts", None) is not None and prior.samples is not None:
        made = confidence_box(prior, delta)
        inside = (over.lower <= made.lower + NEAR).all() and (over.upper >= made.upper - NEAR).all()
        return _confidence(delta, True if inside else None)
    return _confidence(delta, None)


def _confidence(delta: float, holds: bool | None) -> Claim:
    text = {
        True: f"the sample shows the set, except with probability {delta:g}",
        False: f"the sample does not show the set, except with probability {delta:g}",
        None: f"that the set misses the true law with probability {delta:g} does not follow from the file",
    }
    return Claim("confidence", holds, FLOATS, text[holds], delta)


def _log_outside(ball: L1Ball, kappa: float = 0.5) -> float:
    """The logarithm of what `weissman_delta` bounds: that the true law is not in a ball around counts."""
    draws = sum(ball.center.counts or ())
    return log_events(ball.size) - phi(min(kappa, 0.5)) / 4 * (draws * ball.radius * ball.radius)


def violation(prior: Prior, privacy: Requirement, mechanism: Mechanism) -> str:
    """Name the outcome that breaks a requirement most, and the letter or the value that it tells of.

    Examples:
        >>> flip = Mechanism([[0.9, 0.1], [0.1, 0.9]], ["ill", "well"], ["yes", "no"])
        >>> violation(Prior([0.5, 0.5], ["ill", "well"]), PML(0.5), flip)
        "the outcome 'yes' tells 0.587787 nats of 'ill', and the limit is 0.5"
    """
    if isinstance(privacy, Conjunction):
        broken = [part for part in privacy.parts if not part.holds(prior, mechanism)]
        return "; ".join(violation(prior, part, mechanism) for part in broken or privacy.parts)
    used = np.flatnonzero(mechanism.support)
    matrix, outputs = mechanism.matrix[:, used], [mechanism.outputs[y] for y in used]
    law = prior.pmf @ matrix
    if isinstance(privacy, ApproximatePML):
        over = np.maximum(matrix - math.exp(min(privacy.epsilon, 700.0)) * law, 0.0).sum(axis=1)
        worst = int(over.argmax())
        return (
            f"the outcomes above {privacy.epsilon:g} nats have {over[worst]:.6g} more than they may of "
            f"{prior.labels[worst]!r}, and the slack is {privacy.delta:g}"
        )
    if isinstance(privacy, MaximalLeakage):
        level, first = privacy.level(prior, mechanism), outputs[int(matrix.max(axis=0).argmax())]
        return (
            f"all outcomes together leak {level:.6g} nats, most of it {first!r}, and the limit is "
            f"{privacy.epsilon:g}"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        secrets, leaks, limit = prior.labels, np.log(matrix / law), getattr(privacy, "epsilon", math.nan)
        if isinstance(privacy, PML) and privacy.over is not None:
            capacities = pointwise_capacity(privacy.over, mechanism)[used]
            leaks = np.where(matrix == matrix.max(axis=0), capacities, -1)
        elif isinstance(privacy, LIP):
            above = leaks.max() > privacy.upper
            leaks, limit = (leaks, privacy.upper) if above else (-leaks, privacy.lower)
        elif isinstance(privacy, LDP):
            leaks = np.log(matrix / matrix.min(axis=0))
        elif isinstance(privacy, SecretPML | Pufferfish):
            joint, secrets = privacy.secret.joint[0], privacy.secret.values
            given = joint @ matrix / joint.sum(axis=1, keepdims=True)
            leaks = np.log(given / (law if isinstance(privacy, SecretPML) else given.min(axis=0)))
        elif not isinstance(privacy, PML):
            return _of_pairs(prior, privacy, matrix, outputs)
    x, y = np.unravel_index(int(np.nanargmax(leaks)), leaks.shape)
    told = f"the outcome {outputs[y]!r} tells {leaks[x, y]:.6g} nats of {secrets[x]!r}"
    return f"{told}, and the limit is {limit:g}"


def _of_pairs(prior: Prior, privacy: Requirement, matrix: FloatArray, outputs: list[Label]) -> str:
    """The pair of a ratio bound that is broken most."""
    ratios = privacy.for_prior(prior).required(prior.pmf)
    if ratios is None or not len(ratios.exponents):
        levels = privacy.levels(prior, Mechanism(matrix, prior.labels, outputs))
        name = max(privacy.limits, key=lambda limit: levels[limit] - privacy.limits[limit])
        return f"the level {name} is {levels[name]:.6g} nats, and the limit is {privacy.limits[name]:g}"
    over = ratios.log_ratios(matrix) - ratios.exponents[:, None]
    pair, y = np.unravel_index(int(np.nanargmax(over)), over.shape)
    side = int(ratios.above[pair])
    what = repr(prior.labels[side]) if side < prior.size else f"the pair {pair}"
    unit = "" if isinstance(privacy, MetricPrivacy) or side >= prior.size else " alone"
    return f"the outcome {outputs[y]!r} is {over[pair, y]:.6g} nats above what it may tell of {what}{unit}"
