"""The best mechanism against finitely many priors, and the multipliers that prove what none betters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.programs.tradeoff.grouped_rows import GroupedRows, WorstCasePrior
from pmlopt.programs.tradeoff.program import tradeoff_program
from pmlopt.programs.tradeoff.proof import Cut, Tradeoff, TradeoffProof, sharpened_tradeoff, tradeoff_bound
from pmlopt.solvers import through_cvxpy
from pmlopt.solvers.outcome import Options

SOLVER = "CLARABEL"
NEGLIGIBLE_MULTIPLIER = 1e-12
"""Multipliers of less than this share of the largest are a solver's noise: they prove nothing."""

NEGLIGIBLE_MASS = 1e-9
"""Groups of less mass under every prior, and of losses less than this share of the largest, are left out of
the programs: Clarabel stalls on them (300 records, sum modulo 3). Proofs hold them."""


@dataclass(frozen=True, eq=False)
class Response:
    """The best mechanism against some priors.

    Attributes:
        matrix: (K, M).
        proof: that no mechanism of the program betters a bound.
        own: the bound that the multipliers give for the mechanisms with these rows.
        leaked: what the solver says that it leaks, in nats.
        aim: what is minimised, the leakage as the solver says.
    """

    matrix: FloatArray
    proof: TradeoffProof
    own: float
    leaked: float
    aim: float


@dataclass
class BestResponse:
    """Solves for the best mechanism among those with some rows.

    Attributes:
        rows: which rows may differ.
        compile_seconds, solve_seconds: what it took.
    """

    rows: GroupedRows
    compile_seconds: float = field(default=0.0, init=False)
    solve_seconds: float = field(default=0.0, init=False)

    def against(self, priors: Sequence[WorstCasePrior], limit: float, options: Options) -> Response | None:
        """The best mechanism against some priors within a limit; None where the solver failed."""
        program, tradeoff = self.rows.program, self.rows.tradeoff
        joints = [self.rows.merged(prior.joint) for prior in priors]
        kept = self._kept(joints)
        part = Tradeoff(tradeoff.losses[kept], tradeoff.allowed[kept])
        relaxed = tradeoff_program(part, [joint[:, kept] for joint in joints], program.sense, limit)
        outcome = through_cvxpy.run(relaxed.problem, SOLVER, options, {})
        self.compile_seconds += outcome.compile_seconds
        self.solve_seconds += outcome.solve_seconds
        if outcome.state != "point":
            return None
        rows = self._completed(np.asarray(relaxed.variables["mechanism"].value), kept)
        if not (rows.max(axis=1) > 0).all():  # no numbers, or no mechanism: the time was over
            return None
        weights = np.maximum(np.atleast_1d(relaxed.constraints["priors"].dual_value), 0.0)
        spent = relaxed.constraints.get("distortion")
        price = 0.0 if spent is None else max(0.0, float(spent.dual_value))
        proof = self._proof(rows, priors, joints, weights, price)
        leaked = float(relaxed.variables["leakage"].value) if program.sense == "leakage" else limit
        return Response(
            matrix=self.rows.repeated(rows),
            proof=self._for_classes(proof, priors),
            own=tradeoff_bound(tradeoff, program.sense, limit, proof),
            leaked=leaked,
            aim=leaked if program.sense == "leakage" else tradeoff.distortion(rows),
        )

    def _kept(self, joints: Sequence[FloatArray]) -> BoolArray:
        """(G,) the groups that the program of some priors is about."""
        losses = self.rows.tradeoff.losses
        kept = np.asarray(losses.max(axis=1) > NEGLIGIBLE_MASS * losses.max())
        for joint in joints:
            kept |= joint.max(axis=0) > NEGLIGIBLE_MASS
        return kept

    def _completed(self, rows: FloatArray, kept: BoolArray) -> FloatArray:
        """(G, M) rows whose other groups have the mean row of the kept ones of their value."""
        if kept.all():
            return rows
        matrix = self.rows.program.cheapest[self.rows.first]
        matrix[kept] = rows
        values = self.rows.program.orbits.values[self.rows.first]
        for value in np.unique(values[~kept]):
            alike = matrix[kept & (values == value)]
            if len(alike):
                matrix[~kept & (values == value)] = alike.mean(axis=0)
        return matrix

    def _proof(
        self,
        matrix: FloatArray,
        priors: Sequence[WorstCasePrior],
        joints: Sequence[FloatArray],
        weights: FloatArray,
        price: float,
    ) -> TradeoffProof:
        """The multipliers of a solved program, by groups, with the posteriors of its mechanism."""
        rows = np.maximum(matrix, 1e-15)
        rows /= rows.sum(axis=1, keepdims=True)
        cuts = []
        for prior, joint, weight in zip(priors, joints, weights.tolist(), strict=True):
            laws = np.maximum(joint @ rows, 1e-300)
            cuts.append(Cut(prior.record, joint, laws / laws.sum(axis=0), weight))
        program = self.rows.program
        proof = TradeoffProof(tuple(cuts), price)
        return sharpened_tradeoff(self.rows.tradeoff, program.sense, program.limit, proof)

    def _for_classes(self, proof: TradeoffProof, priors: Sequence[WorstCasePrior]) -> TradeoffProof:
        """The multipliers with the priors by classes, those that are a solver's noise left out."""
        least = NEGLIGIBLE_MULTIPLIER * max((cut.weight for cut in proof.cuts), default=0.0)
        cuts = (
            replace(c, joint=p.joint) for c, p in zip(proof.cuts, priors, strict=True) if c.weight > least
        )
        return replace(proof, cuts=tuple(cuts))
