"""The largest leakage where little entropy is asked for: one class of datasets for each letter."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from pmlopt.arrays import FloatArray, IntArray
from pmlopt.measures.channel_capacities import largest_capacity
from pmlopt.measures.record_information import dataset_entropy
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.proof import KindProof

MOST_CHOICES = 20_000
MOST_ENTRIES = 500_000
"""Choices of one class for each letter, and entries of their rows: a second. Past either none is tried."""


@dataclass(frozen=True, eq=False)
class OneClassEach:
    """The largest capacity of a channel whose input is the letter and whose rows are one class for each.

    It is the leakage L(0), and L(b) for every b up to the entropy of a dataset of these classes alone:
    `h(pi) + sum_a pi_a log c(a, t_a)`, pi the capacity-achieving law of the letters. For I(X_i; Y) is convex
    in the laws of T given each letter together, so that extreme ones leak most, and those are classes.

    Attributes:
        joint: (A, T) the law J that attains it; where there are several, the one of the largest entropy.
        entropy: of the dataset under it.
        upper: in nats; no law leaks more, whatever b is.
        laws: (R, M) that prove it; see `KindProof`.
    """

    joint: FloatArray
    entropy: float
    upper: float
    laws: FloatArray

    def proof(self, record: int, log_counts: FloatArray) -> KindProof:
        """For the records of the kind of this one."""
        return KindProof(record, log_counts, (), self.upper, laws=self.laws)


def one_class_each(adversary: Adversary) -> OneClassEach | None:
    """The largest capacity over one class for each letter; None where there are too many choices.

    Examples:
        >>> rows = np.array([[0.9, 0.1], [0.1, 0.9]])  # parity of four records through a symmetric channel
        >>> found = one_class_each(Adversary(rows, np.log([[4.0, 4.0], [4.0, 4.0]]), 0.0, np.log(16)))
        >>> round(found.upper, 6), round(float(np.exp(found.entropy)), 6)  # log 2 - h(0.1), of 3 log 2
        (0.368064, 8.0)
    """
    used = np.isfinite(adversary.log_counts)
    count = float(np.prod(used.sum(axis=1, dtype=float)))
    if count > MOST_CHOICES or count * len(used) * adversary.rows.shape[1] > MOST_ENTRIES:
        return None
    choices = class_choices(adversary.log_counts)
    found = largest_capacity(adversary.rows, choices)
    joints = np.zeros((len(found.best), *used.shape))
    for joint, place, prior in zip(joints, found.best, found.priors, strict=True):
        joint[np.arange(len(used)), choices[place]] = prior
    entropies = [dataset_entropy(joint, adversary.log_counts) for joint in joints]
    best = int(np.argmax(entropies))
    return OneClassEach(joints[best], entropies[best], found.upper, found.laws)


def class_choices(log_counts: FloatArray) -> IntArray:
    """(K, A) every choice of one class for each letter, of those that it has datasets in.

    Examples:
        >>> class_choices(np.array([[0.0, 0.0], [-np.inf, 0.0]])).tolist()
        [[0, 1], [1, 1]]
    """
    return np.array(list(product(*map(np.flatnonzero, np.isfinite(log_counts)))), dtype=np.int64)
