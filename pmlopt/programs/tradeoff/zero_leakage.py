"""The least distortion without leakage of a uniform dataset: a linear program, and its multipliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import localcontext

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends import highs
from pmlopt.backends.clock import FOREVER
from pmlopt.backends.outcome import Options
from pmlopt.exact.decimals import DIGITS
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.tradeoff.proof import Cut, TradeoffProof
from pmlopt.programs.tradeoff.verification import proved_least

WEIGHT = 1e8
"""Of the multipliers in the proof, over the largest of them: it misses the bound of the linear program by one
over the weight, and by what rounding of the posteriors does to their logarithms, times the weight."""


@dataclass(frozen=True, eq=False)
class SilentMechanism:
    """A mechanism that tells nothing of any record of a uniform dataset, and what none distorts less than.

    Attributes:
        matrix: (K, M).
        bound: on the expected distortion.
        proof: of the bound.
    """

    matrix: FloatArray
    bound: float
    proof: TradeoffProof


def silent_mechanism(program: TradeoffProgram) -> SilentMechanism | None:
    """The mechanism of the least distortion whose output is independent of each record of a uniform dataset.

    `min <losses, q>` subject to `sum_k (J(a,k) / pi_a - u_k) q(y|k) = 0` for each record, letter a and output
    y, J the law of the letter and the class, pi and u its sums. Multipliers mu(a,y) of these prove what
    `tradeoff_bound` makes of the posteriors `psi(a|y) = pi_a (1 + mu(a,y) / w)` and the weight w.

    None where the solver failed.

    Examples:
        >>> from pmlopt import distortion_leakage
        >>> from pmlopt.queries import ModularSum
        >>> parity = ModularSum(3, 2)  # tells nothing of a record
        >>> silent_mechanism(distortion_leakage(parity, 0.0, parity.log_size)).matrix.round(9).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    import cvxpy as cp

    matrix = cp.Variable(program.losses.shape, nonneg=True)
    joints = {record: program.adversary(program.constant, record).uniform for record in program.log_counts}
    silent = [_deviations(joint) @ matrix == 0 for joint in joints.values()]
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(program.losses, matrix))), [cp.sum(matrix, axis=1) == 1, *silent]
    )
    if highs.run(problem, "highs", Options(FOREVER, 1e-9), False).state != "point":
        return None
    slopes = [np.asarray(constraint.dual_value) for constraint in silent]
    proof = _proof(joints, slopes)
    with localcontext() as context:
        context.prec = DIGITS
        least = proved_least(program.tradeoff, program.sense, program.limit, proof)
        near = float(least)
        bound = near if near <= least else float(np.nextafter(near, -np.inf))
    return SilentMechanism(program.repaired(np.asarray(matrix.value)), bound, proof)


def _deviations(joint: FloatArray) -> FloatArray:
    """(A, K) how the law of the class given each letter differs from its law."""
    return np.asarray(joint / joint.sum(axis=1, keepdims=True) - joint.sum(axis=0))


def _proof(joints: Mapping[int, FloatArray], slopes: Sequence[FloatArray]) -> TradeoffProof:
    """The multipliers as posteriors with a large weight."""
    cuts = []
    for (record, joint), slope in zip(joints.items(), slopes, strict=True):
        letters = joint.sum(axis=1, keepdims=True)
        tilted = slope / letters - slope.sum(axis=0)
        weight = WEIGHT * (float(np.abs(tilted).max()) or 1.0)
        shares = letters * (1 + tilted / weight)
        cuts.append(Cut(record, joint, shares / shares.sum(axis=0), weight))
    return TradeoffProof(tuple(cuts), 0.0)
