"""Priors against which mechanisms are designed: those of a proof, of a restart, and of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray, IntArray
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.tradeoff.proof import TradeoffProof
from pmlopt.result import Restart

MAX_CUTS_PER_ROUND = 4
"""Priors that are added in one round at most, for each kind of records."""

NEGLIGIBLE_WEIGHT = 1e-3
"""Priors with less than this share of the largest weight are left out of a second program."""

LEAST_DISTANCE = 1e-3
"""How far two priors are apart that are both added, in total variation."""


@dataclass(frozen=True, eq=False)
class WorstCasePrior:
    """A prior within the entropy bound, by the law of (X_i, class).

    Attributes:
        record: i.
        joint: (A, K).
    """

    record: int
    joint: FloatArray


def split(audit: RecordCertificate, counts: FloatArray) -> FloatArray:
    """(A, K) the worst prior of an audit, uniform inside the classes that it merged.

    Args:
        audit: of a mechanism with a row for each of K classes.
        counts: (A, K) the logarithms of how many datasets have each letter and class.
    """
    channel = audit.channel
    return divided(audit.joint, counts, channel.log_counts(audit.record), channel.classes)


def divided(joint: FloatArray, counts: FloatArray, merged: FloatArray, groups: IntArray) -> FloatArray:
    """(A, K) a law of the letter and a group of classes as one of the letter and the class, uniform inside.

    Args:
        joint: (A, G) the law.
        counts: (A, K) the logarithms of how many datasets have each letter and class.
        merged: (A, G) those of each letter and group.
        groups: (K,) the group of each class, -1 for a class that no dataset has.

    Examples:
        >>> counts = np.log([[1.0, 3.0, 2.0]])
        >>> law, groups = np.array([[0.4, 0.6]]), np.array([0, 0, 1])
        >>> divided(law, counts, np.log([[4.0, 2.0]]), groups).round(9).tolist()
        [[0.1, 0.3, 0.6]]
    """
    known = groups >= 0
    shares = np.zeros(counts.shape)
    with np.errstate(invalid="ignore"):
        inside = np.exp(counts[:, known] - merged[:, groups[known]])
    shares[:, known] = np.where(np.isfinite(counts[:, known]), inside, 0.0)
    return np.asarray(shares * joint[:, np.maximum(groups, 0)])


def heaviest(proof: TradeoffProof) -> list[WorstCasePrior]:
    """The priors of a proof whose weights are not negligible."""
    least = NEGLIGIBLE_WEIGHT * max((cut.weight for cut in proof.cuts), default=0.0)
    return [WorstCasePrior(cut.record, cut.joint) for cut in proof.cuts if cut.weight > least]


def priors_of(program: TradeoffProgram, restart: Restart) -> list[WorstCasePrior]:
    """The priors that a restart carries, pushed inside the entropy bound of a program.

    Those of another shape, or that no dataset of this query can have, are left out.
    """
    found = []
    for place in range(len(restart.arrays)):
        record, joint = restart.arrays.get(f"record{place}"), restart.arrays.get(f"joint{place}")
        if record is None or joint is None or np.size(record) != 1 or int(record) not in program.log_counts:
            continue
        law, counts = np.asarray(joint, dtype=np.float64), program.log_counts[int(record)]
        if law.shape != counts.shape or not (np.isfinite(law) & (law >= 0)).all():
            continue
        if law.sum() > 0 and not law[np.isneginf(counts)].any():
            adversary = program.adversary(program.constant, int(record))
            found.append(WorstCasePrior(int(record), adversary.allowed(law)))
    return found


def apart(joints: FloatArray, values: FloatArray, floor: float) -> Sequence[FloatArray]:
    """A few laws above a floor, the largest first, that differ from each other."""
    chosen: list[FloatArray] = []
    for place in np.argsort(-values):
        if values[place] <= floor or len(chosen) == MAX_CUTS_PER_ROUND:
            break
        near = any(np.abs(joints[place] - other).sum() / 2 < LEAST_DISTANCE for other in chosen)
        if not near:
            chosen.append(joints[place])
    return chosen
