"""The best mechanism against finitely many priors, with dual multipliers that bound all others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.programs.tradeoff.grouped_rows import GroupedRows, WorstCasePrior
from pmlopt.programs.tradeoff.program import build_tradeoff_model
from pmlopt.programs.tradeoff.proof import (
    PriorCut,
    TradeoffLosses,
    TradeoffProof,
    compute_tradeoff_bound,
    optimize_proof_scale,
)
from pmlopt.solvers import cvxpy_interface
from pmlopt.solvers.solver_result import MethodOptions

SOLVER_NAME = "CLARABEL"

POSTERIOR_FLOORS = (1e-15, 1e-12, 1e-11, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4)
"""Numbers to which smaller entries are raised, one after the other, until the bound meets the value: where a
prior has its mass on entries that are the solver's noise, their posteriors are noise, and prove little."""


@dataclass(frozen=True, eq=False)
class BestResponse:
    """The optimal mechanism against some priors, with its multipliers.

    Attributes:
        matrix: (K, M).
        proof: that no mechanism of the program betters a bound.
        own_bound: the bound that the multipliers give for the mechanisms with these rows.
        leakage: what the solver states that it leaks, in nats.
        objective_value: what is minimised, the leakage as the solver states.
        compile_seconds, solve_seconds: what it took.
    """

    matrix: FloatArray
    proof: TradeoffProof
    own_bound: float
    leakage: float
    objective_value: float
    compile_seconds: float
    solve_seconds: float


def solve_best_response(
    rows: GroupedRows, priors: Sequence[WorstCasePrior], limit: float, options: MethodOptions
) -> BestResponse | None:
    """Solve the convex problem of the best mechanism against some priors; None on failure.

    Its multipliers, with the posteriors of the mechanism, bound every mechanism: those that are a solver's
    noise are left out.
    """
    # Clarabel stalls on groups of less mass under every prior (300 records, sum modulo 3); proofs include
    # them
    negligible_mass = 1e-9
    program = rows.program
    tradeoff = rows.tradeoff
    joints = [rows.merge_law(prior.joint) for prior in priors]
    masses = np.max([joint.max(axis=0) for joint in joints], axis=0)
    worst = tradeoff.losses.max(axis=1)
    kept = (worst > negligible_mass * worst.max()) | (masses > negligible_mass)
    part = TradeoffLosses(tradeoff.losses[kept], tradeoff.allowed[kept])
    relaxed = build_tradeoff_model(part, [joint[:, kept] for joint in joints], program.sense, limit)
    outcome = cvxpy_interface.solve_problem(relaxed.problem, SOLVER_NAME, options, {})
    if outcome.state != "point":
        return None
    matrix = _complete_rows(rows, np.asarray(relaxed.variables["mechanism"].value), kept)
    if not (matrix.max(axis=1) > 0).all():  # no numbers, or no mechanism: the time was over
        return None
    # multipliers of inequalities; a solver's tiny negative ones prove nothing
    weights = np.maximum(np.atleast_1d(relaxed.constraints["priors"].dual_value), 0.0)
    spent = relaxed.constraints.get("distortion")
    price = 0.0 if spent is None else max(0.0, float(spent.dual_value))
    weighed = [
        (prior.record, joint, weight)
        for prior, joint, weight in zip(priors, joints, weights.tolist(), strict=True)
    ]
    # in Problem 3 the leakage has no variable: the limit bounds it
    leaked = float(relaxed.variables["leakage"].value) if program.sense == "leakage" else limit
    value = leaked if program.sense == "leakage" else tradeoff.compute_distortion(matrix)
    own_bound = -math.inf
    proof = TradeoffProof((), price)
    for floor in POSTERIOR_FLOORS:
        cuts = _list_cuts(weighed, matrix, floor)
        one = optimize_proof_scale(
            tradeoff, program.sense, program.limit, TradeoffProof(cuts, price)
        )
        bound = compute_tradeoff_bound(tradeoff, program.sense, limit, one)
        if bound > own_bound:
            own_bound, proof = bound, one
        if value - own_bound <= 1e-6 * abs(value):
            break
    # multipliers below 1e-12 of the largest are a solver's noise: they prove nothing
    least = 1e-12 * max((cut.weight for cut in proof.cuts), default=0.0)
    pairs = zip(proof.cuts, priors, strict=True)
    by_class = tuple(replace(cut, joint=prior.joint) for cut, prior in pairs if cut.weight > least)
    return BestResponse(
        matrix=rows.repeat_rows(matrix),
        proof=replace(proof, cuts=by_class),
        own_bound=own_bound,
        leakage=leaked,
        objective_value=value,
        compile_seconds=outcome.compile_seconds,
        solve_seconds=outcome.solve_seconds,
    )


def _list_cuts(
    weighed: Sequence[tuple[int, FloatArray, float]], matrix: FloatArray, floor: float
) -> tuple[PriorCut, ...]:
    """List the cuts of records, joint laws and weights, by the posteriors of a matrix.

    Posteriors of zero have no logarithm, and any positive law gives a valid cut: entries below a floor are
    raised to it.
    """
    positive = np.maximum(matrix, floor)
    positive /= positive.sum(axis=1, keepdims=True)
    cuts = []
    for record, joint, weight in weighed:
        # (A, M): joint masses of letter and output, divided by the law of the output next
        laws = np.maximum(joint @ positive, 1e-300)
        cuts.append(PriorCut(record, joint, laws / laws.sum(axis=0), weight))
    return tuple(cuts)


def _complete_rows(rows: GroupedRows, matrix: FloatArray, kept: BoolArray) -> FloatArray:
    """Fill the (G, M) rows of omitted groups with the mean of kept rows of the same value."""
    if kept.all():
        return matrix
    # the fallback for values of which no group was kept
    whole = rows.program.least_distortion_matrix[rows.first_classes]
    whole[kept] = matrix
    values = rows.program.orbits.values[rows.first_classes]
    for value in np.unique(values[~kept]):
        alike = whole[kept & (values == value)]
        if len(alike):
            whole[~kept & (values == value)] = alike.mean(axis=0)
    return whole
