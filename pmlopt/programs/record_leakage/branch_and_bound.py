"""Best-first branch and bound on cells of output laws: the largest leakage of one record, with its proof."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.record_leakage import output_cells as cells
from pmlopt.programs.record_leakage.adversary import (
    Adversary,
    CellRelaxation,
    cell_relaxation,
    entropy_penalty,
)
from pmlopt.programs.record_leakage.local_ascent import Search
from pmlopt.programs.record_leakage.output_cells import Cell
from pmlopt.programs.record_leakage.proof import KindProof, LeakageProof, Region, leakage_bound, sharpened
from pmlopt.solvers import through_cvxpy
from pmlopt.solvers.clock import FOREVER, Clock
from pmlopt.solvers.outcome import Options

SOLVER = "CLARABEL"
ACCURACY = Options(FOREVER, 1e-10)
"""What is asked of the solver in each cell: far below the gaps that are asked for."""
SHORTEST_SOLVE = 0.5
"""Seconds that a relaxation is given when the time is nearly over; so long after the end none is begun."""
COMPILED_PER_SECOND = 10_000
"""Entries of the table of vertices that cvxpy compiles in a second, or fewer."""
SPLIT_DIMENSIONS = 12
"""Past so many dimensions, over all letters, a proof by splitting is out of reach and not tried."""
SMALLEST_SHARE = 1e-6
"""Below this share one of the two bounds on a cell, by H(Y) and by H(X_i), is left out."""
POLISHING_ITERATIONS = 60
"""Of the local method, from the law that a cell's relaxation ends at, when it leaks more."""
SMALLEST_MASS = 1e-300
"""In place of zero where a logarithm or a quotient is taken; any multipliers are valid."""


@dataclass
class CellSearch(Search):
    """The search over cells of output laws, for records of any number of letters.

    Attributes:
        regions: the cells so far, each after the one that it was split from.
    """

    regions: list[Region] = field(default_factory=list)
    _programs: dict[tuple[int, ...], CellRelaxation] = field(default_factory=dict)
    _weights: dict[int, FloatArray] = field(default_factory=dict)
    _heap: list[tuple[float, int]] = field(default_factory=list)

    @property
    def bound(self) -> float:
        """What no law leaks more than."""
        if not self.regions:
            return math.inf
        return max([self.value, *(-bound for bound, _ in self._heap)])

    def run(self, target: float, tolerance: float, nodes: int, clock: Clock) -> str:
        """Split the region of the largest bound until that is near the value."""
        size = self.adversary.dimensions
        if size > SPLIT_DIMENSIONS:
            nodes = 1
        if not self.regions:
            self._open(cells.first_cell(self.adversary.rows, self.adversary.log_counts), -1, clock)
        while self.nodes < nodes and not clock.late:
            bound, place = self._heap[0]
            if -bound <= max(self.value, target) + tolerance:
                break
            parts = self._parts(place)
            if not parts:
                break
            heapq.heappop(self._heap)
            for part in parts:
                self._open(part, place, clock)
        if size > SPLIT_DIMENSIONS:
            return f"{size} dimensions are too many to split: the first relaxation by {SOLVER.capitalize()}"
        return f"chords on cells of output laws, each bounded by {SOLVER.capitalize()}"

    def proof(self, record: int) -> KindProof:
        """The proof so far, for the records of the kind of this one."""
        return KindProof(record, tuple(self.regions), self.bound)

    def _open(self, cell: Cell, parent: int, clock: Clock) -> None:
        """Bound a cell, and keep it."""
        proof, bound, joint, weights = self._solve(cell, clock)
        if parent >= 0:
            above = self.regions[parent]
            if above.bound <= bound:  # the solver says no more of a cell this small
                proof, bound = self._tangent(cell, weights, above.proof.price)
            if above.bound <= bound:
                proof, bound = above.proof, above.bound
        place = len(self.regions)
        self.regions.append(Region(cell, proof, bound, parent))
        heapq.heappush(self._heap, (-bound, place))
        self._weights[place] = weights
        if joint is not None:
            near = self.adversary.allowed(joint)
            if self.adversary.leaked(near) > self.value:
                self.improve(near[None], POLISHING_ITERATIONS, clock)

    def _solve(self, cell: Cell, clock: Clock) -> tuple[LeakageProof, float, FloatArray | None, FloatArray]:
        """The proof and its bound, the program's law, and the weights of the vertices, of one cell."""
        self.nodes += 1
        adversary = self.adversary
        data = (adversary.rows, adversary.log_counts, adversary.entropy, cell)
        plain = _plain(adversary)
        left = clock.left(SHORTEST_SOLVE)
        entries = len(cell) * adversary.rows.shape[1] * sum(map(len, cell))
        if clock.late_by(SHORTEST_SOLVE) or (left is not None and entries > COMPILED_PER_SECOND * left):
            return plain, leakage_bound(*data, plain), None, np.ones(sum(map(len, cell)))
        sizes = tuple(map(len, cell))
        if sizes not in self._programs:
            self._programs[sizes] = cell_relaxation(
                adversary.rows, adversary.log_counts, adversary.entropy, sizes, entropy_penalty(adversary)
            )
        program = self._programs[sizes]
        program.set_cell(cell)
        outcome = through_cvxpy.run(
            program.problem, SOLVER, Options(clock.at_least(SHORTEST_SOLVE), ACCURACY.tolerance), {}
        )
        self.compile_seconds += outcome.compile_seconds
        self.solve_seconds += outcome.solve_seconds
        if outcome.state != "point":
            return plain, leakage_bound(*data, plain), None, np.ones(sum(sizes))
        proof, bound = sharpened(*data, proof_of(program))
        weights = np.maximum(np.asarray(program.variables["weights"].value), 0.0)
        return proof, bound, program.joint, weights

    def _tangent(self, cell: Cell, weights: FloatArray, price: float) -> tuple[LeakageProof, float]:
        """The proof that needs no multipliers of the solver, and its bound: phi by tangents in the cell."""
        adversary = self.adversary
        ends = np.cumsum([0, *map(len, cell)])
        middles = [
            (weights[a:b] + SMALLEST_MASS) @ vertices / (weights[a:b] + SMALLEST_MASS).sum()
            for vertices, (a, b) in zip(cell, pairwise(ends), strict=True)
        ]
        law = self.best.sum(axis=0) @ adversary.rows
        slopes = np.log(np.maximum(middles, SMALLEST_MASS))
        proof = LeakageProof(price, np.log(np.maximum(law, SMALLEST_MASS)), slopes)
        return sharpened(adversary.rows, adversary.log_counts, adversary.entropy, cell, proof)

    def _parts(self, place: int) -> list[Cell]:
        """The cells that a region is split into: at the letter whose chord lies farthest above phi."""
        cell = self.regions[place].cell
        ends = np.cumsum([0, *map(len, cell)])
        shares = [self._weights[place][a:b] for a, b in pairwise(ends)]
        gaps = [cells.bend(vertices, share) for vertices, share in zip(cell, shares, strict=True)]
        wide = [
            letter
            for letter, vertices in enumerate(cell)
            if np.ptp(vertices, axis=0).max() > cells.SHORTEST_EDGE
        ]
        if not wide:
            return []
        letter = max(wide, key=lambda letter: (gaps[letter], np.ptp(cell[letter], axis=0).max()))
        vertices = cell[letter]
        # by the first cell: a simplex that has become thin remains one
        if len(vertices) <= cells.dimension(self.regions[0].cell[letter]) + 1:
            pieces: list[FloatArray] | None = cells.halves(vertices, shares[letter])
        else:
            pieces = cells.simplices(vertices)
        return [(*cell[:letter], piece, *cell[letter + 1 :]) for piece in pieces or []]


def proof_of(program: CellRelaxation) -> LeakageProof:
    """The multipliers of a solved program, in the terms of a proof."""
    price = max(0.0, float(program.constraints["entropy"].dual_value))
    of_outputs, of_letters = (
        max(0.0, float(program.constraints[name].dual_value)) for name in ("outputs", "letters")
    )
    share = of_outputs / (of_outputs + of_letters)
    share = 0.0 if share < SMALLEST_SHARE else 1.0 if share > 1 - SMALLEST_SHARE else share
    law = np.asarray(program.constraints["law"].dual_value) / max(share, SMALLEST_SHARE)
    inside = np.asarray(program.constraints["inside"].dual_value) / max(share, SMALLEST_SHARE)
    slopes = inside.reshape(-1, program.coordinates.shape[1]) @ program.coordinates.T
    letters = np.asarray(program.constraints["marginal"].dual_value) / max(1 - share, SMALLEST_SHARE)
    if share == 0:
        law, slopes = np.zeros(law.shape), np.zeros(slopes.shape)
    return LeakageProof(price, -1.0 - law, slopes, share, -1.0 - letters if share < 1 else None)


def _plain(adversary: Adversary) -> LeakageProof:
    """Multipliers that need no solver: a flat law of Y, or of X_i where it has fewer letters than Y."""
    letters, outputs = len(adversary.log_counts), adversary.rows.shape[1]
    return LeakageProof(
        0.0,
        np.full(outputs, -math.log(outputs)),
        np.zeros((letters, outputs)),
        1.0 if outputs <= letters else 0.0,
        np.full(letters, -math.log(letters)),
    )
