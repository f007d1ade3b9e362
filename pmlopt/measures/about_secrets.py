"""What outcomes tell of a secret that the data tells of, and where they tell most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray, Label
from pmlopt.errors import MechanismError
from pmlopt.measures.logarithms import log_product_ratios
from pmlopt.mechanism import Mechanism, MechanismLike, as_mechanism, match_labels
from pmlopt.secret import Secret


@dataclass(frozen=True)
class SecretWitness:
    """Where a mechanism leaks most about a secret.

    Attributes:
        level: in nats, the PML level about the secret.
        value: of the secret.
        outcome: the output that makes it e^level times as likely as it was.
        law: the number of the joint law under which it does, 0 where there is one.
    """

    level: float
    value: Label
    outcome: Label
    law: int


def secret_densities(secret: Secret, mechanism: MechanismLike) -> FloatArray:
    """The information density of each value of a secret and each outcome, `log P(y | s) / P(y)`, in nats.

    `P(y | s) = sum_x P(x | s) P[x,y]`: the output depends on the secret S through the data X alone.

    Args:
        secret: S values, N letters, L joint laws.
        mechanism: (N, M).

    Returns:
        (L, S, M); -inf where y never occurs, or never with s.

    Raises:
        MechanismError: sizes or labels of the secret's letters and the mechanism disagree.

    Source: [saeidian2023pointwise] of the channel from S to the output.

    Examples:
        >>> disease = Secret([[0.25, 0.25], [0.0, 0.5]])
        >>> np.exp(secret_densities(disease, [[0.75, 0.25], [0.25, 0.75]])[0]).round(6).tolist()
        [[1.333333, 0.8], [0.666667, 1.2]]
    """
    m = on_letters_of(secret, mechanism)
    found = np.full((*secret.joint.shape[:2], len(m.outputs)), -np.inf)
    for law, joint in enumerate(secret.joint):
        given = joint / joint.sum(axis=1, keepdims=True)
        means = np.broadcast_to(joint.sum(axis=0), given.shape)
        found[law][:, m.support] = log_product_ratios(given, means, m.matrix[:, m.support])
    return found


def secret_witness(secret: Secret, mechanism: MechanismLike) -> SecretWitness:
    """The value of a secret and the outcome at which a mechanism leaks most about it.

    Examples:
        >>> import math
        >>> disease = Secret([[0.25, 0.25], [0.0, 0.5]], values=["ill", "well"])
        >>> witness = secret_witness(disease, [[0.75, 0.25], [0.25, 0.75]])
        >>> witness.value, witness.outcome, round(math.exp(witness.level), 12)
        ('ill', 0, 1.333333333333)
    """
    m = on_letters_of(secret, mechanism)
    densities = secret_densities(secret, m)
    law, value, outcome = (int(place) for place in np.unravel_index(densities.argmax(), densities.shape))
    return SecretWitness(float(densities[law, value, outcome]), secret.values[value], m.outputs[outcome], law)


def on_letters_of(secret: Secret, mechanism: MechanismLike) -> Mechanism:
    """Return the mechanism, and raise a MechanismError where it is not on the letters of the joint law."""
    m = as_mechanism(mechanism)
    if len(m.inputs) != len(secret.labels):
        raise MechanismError(
            f"the joint law has {len(secret.labels)} letters and the mechanism {len(m.inputs)} inputs"
        )
    match_labels(m.inputs, secret.labels, "the mechanism's inputs", "the letters of the joint law")
    return m
