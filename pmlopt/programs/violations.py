"""Where a mechanism breaks a requirement, by the names of the outcome and of what it tells of."""

from __future__ import annotations

import math

import numpy as np

from pmlopt.core.arrays import FloatArray, Label
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import LDP, LIP, PML, ApproximatePML, MaximalLeakage, MetricPrivacy, Pufferfish
from pmlopt.model.privacy.requirement import Conjunction, Requirement
from pmlopt.model.privacy.secret_leakage import SecretPML
from pmlopt.model.uncertainty import pointwise_capacity


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
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(privacy, PML) and privacy.over is not None:
            leaks = pointwise_capacity(privacy.over, mechanism)[used]
            return _told(
                outputs, prior.labels, np.where(matrix == matrix.max(axis=0), leaks, -1), privacy.epsilon
            )
        if isinstance(privacy, PML):
            return _told(outputs, prior.labels, np.log(matrix / law), privacy.epsilon)
        if isinstance(privacy, LIP):
            densities = np.log(matrix / law)
            if densities.max() > privacy.upper:
                return _told(outputs, prior.labels, densities, privacy.upper)
            return _told(outputs, prior.labels, -densities, privacy.lower)
        if isinstance(privacy, LDP):
            return _told(outputs, prior.labels, np.log(matrix / matrix.min(axis=0)), privacy.epsilon)
        if isinstance(privacy, SecretPML | Pufferfish):
            joint = privacy.secret.joint[0]
            given = joint @ matrix / joint.sum(axis=1, keepdims=True)
            below = law if isinstance(privacy, SecretPML) else given.min(axis=0)
            return _told(outputs, privacy.secret.values, np.log(given / below), privacy.epsilon)
        if isinstance(privacy, ApproximatePML):
            over = np.maximum(matrix - math.exp(min(privacy.epsilon, 700.0)) * law, 0.0).sum(axis=1)
            worst = int(over.argmax())
            return (
                f"the outcomes above {privacy.epsilon:g} nats have {over[worst]:.6g} more than they may of "
                f"{prior.labels[worst]!r}, and the slack is {privacy.delta:g}"
            )
        if isinstance(privacy, MaximalLeakage):
            most = int(matrix.max(axis=0).argmax())
            level, first = privacy.level(prior, mechanism), outputs[most]
            return (
                f"all outcomes together leak {level:.6g} nats, most of it {first!r}, and the limit is "
                f"{privacy.epsilon:g}"
            )
    return _of_pairs(prior, privacy, matrix, outputs)


def _told(outputs: list[Label], secrets: tuple[Label, ...], leaks: FloatArray, limit: float) -> str:
    x, y = np.unravel_index(int(np.nanargmax(leaks)), leaks.shape)
    told = f"the outcome {outputs[y]!r} tells {leaks[x, y]:.6g} nats of {secrets[x]!r}"
    return f"{told}, and the limit is {limit:g}"


def _of_pairs(prior: Prior, privacy: Requirement, matrix: FloatArray, outputs: list[Label]) -> str:
    """The pair of a ratio bound that is broken most."""
    ratios = privacy.for_prior(prior).required(prior.pmf)
    if ratios is None or not len(ratios.exponents):
        return f"the limits are {privacy.limits}, and the levels are more"
    over = ratios.log_ratios(matrix) - ratios.exponents[:, None]
    pair, y = np.unravel_index(int(np.nanargmax(over)), over.shape)
    side = int(ratios.above[pair])
    what = repr(prior.labels[side]) if side < prior.size else f"the pair {pair}"
    unit = "" if isinstance(privacy, MetricPrivacy) or side >= prior.size else " alone"
    return f"the outcome {outputs[y]!r} is {over[pair, y]:.6g} nats above what it may tell of {what}{unit}"
