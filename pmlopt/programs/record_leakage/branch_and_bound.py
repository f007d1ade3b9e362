"""Best-first branch and bound on simplex cells for the largest record leakage, with a proof.

A gap is left after 20 s by posteriors from some 15 outputs of a noisy weight on or 10 of a quadratic query,
and by class laws from six outputs of a noisy weight on.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.cell_relaxation import CellBounds, LeakageRelaxation
from pmlopt.programs.record_leakage.local_ascent import maximize_locally
from pmlopt.programs.record_leakage.proof import UNSPLIT_CELL, CellPart, CellTree, RecordKindProof
from pmlopt.solvers.solver_result import Deadline

MAX_OUTPUTS_BY_DIMENSION = 1.5
"""For binary records simplices of posteriors, one dimension for each output, close gaps sooner than those of
class laws while there are no more outputs than this times the dimensions that the laws of Y have together:
benchmarks/record_dimensions.py."""
MAX_NODES, MAX_ENTRIES = 200_000, 20_000_000
"""Cells that a search bounds at most for each kind of records, and entries of their corners: 160 MB."""
MAX_BATCH_CELLS, MAX_BATCH_ENTRIES = 64, 4_000_000
"""Cells that are bounded at once, at most, and entries of the table of their derivatives."""
MIN_EDGE_FRACTION, EDGE_DENOMINATOR = 0.1, 1024
"""A split of an edge keeps this share of it on either side; shares are multiples of 1/1024, so that the
corners that a proof follows stay short rationals."""


@dataclass(frozen=True, eq=False)
class _LeafCell:
    """A leaf of the branch-and-bound tree: corners, proof of its bound, and start for its children."""

    corners: FloatArray
    price: float
    majorant: FloatArray
    log_law: FloatArray
    multipliers: FloatArray
    joint: FloatArray


@dataclass
class CellSearch:
    """The branch-and-bound search over cells: products of simplices, one for each part of the joint law.

    Attributes:
        adversary: the problem.
        best: (A, T) a law within the entropy bound.
        value: what it leaks.
        nodes: how many cells were bounded.
        solve_seconds: what that took.
    """

    MIN_SIMPLEX_WIDTH: ClassVar[float] = 1e-12
    """A simplex no wider than this is not split further."""

    adversary: BoundedAdversary
    best: FloatArray = field(init=False)
    value: float = field(init=False)
    nodes: int = 0
    solve_seconds: float = 0.0
    _open: dict[int, _LeafCell] = field(default_factory=dict)
    _splits: dict[int, tuple[int, int, int, float, int]] = field(default_factory=dict)
    _heap: list[tuple[float, int]] = field(default_factory=list)
    _stuck_bound: float = -math.inf

    def __post_init__(self) -> None:
        # the uniform law is within every entropy bound: a feasible point from the start
        self.best = self.adversary.uniform_law
        self.value = self.adversary.compute_leakage(self.best)

    @cached_property
    def relaxation(self) -> LeakageRelaxation:
        """Return the convex relaxation with the simplices of lowest dimension."""
        letters = len(self.adversary.log_counts)
        classes, outputs = self.adversary.rows.shape
        # fewer dimensions in a simplex mean fewer splits to a small gap
        part: CellPart = "laws" if outputs == 2 < classes else "classes"
        if letters == 2 and outputs <= MAX_OUTPUTS_BY_DIMENSION * self.adversary.output_dimensions:
            part = "posteriors"
        return LeakageRelaxation(self.adversary, part)

    @property
    def upper_bound(self) -> float:
        """Return the upper bound on the leakage: the largest over the leaves."""
        if not self._cell_count:
            return math.inf
        # the heap's first cell has the largest bound of those open; stuck cells count as well
        return max(self.value, self._stuck_bound, *(-bound for bound, _ in self._heap[:1]))

    @property
    def _cell_count(self) -> int:
        """Return the number of cells in the tree."""
        return len(self._open) + len(self._splits)

    def run(self, target: float, tolerance: float, nodes: int | None, deadline: Deadline) -> str:
        """Split the cells of largest bound, in batches, until the gap is closed.

        Returns:
            What was done, in words.
        """
        relaxation = self.relaxation
        count, size = self.relaxation.shape
        begin = time.perf_counter()
        if not self._cell_count:
            enough = max(self.value, target) + tolerance
            corners, start = relaxation.build_root()
            self._keep_cell(corners, self._bound_cells(corners, start, enough, deadline), 0)
        # a proof by splitting is out of reach in more than 24 dimensions
        splits = not relaxation.free_count or count * (size - 1) <= 24
        max_nodes = min(MAX_NODES, MAX_ENTRIES // (count * size**2)) if splits else 1
        nodes = max_nodes if nodes is None else min(nodes, max_nodes)
        batch = int(
            np.clip(
                MAX_BATCH_ENTRIES // (2 * count * size * self.adversary.log_counts.size),
                2,
                MAX_BATCH_CELLS,
            )
        )
        while self.nodes < nodes and not deadline.expired:
            enough = max(self.value, target) + tolerance
            # every cell chosen gives two parts, which are bounded together
            room = max(1, min(batch, nodes - self.nodes) // 2)
            chosen: list[tuple[float, int]] = []
            # best first: a cell below what is enough never has to be split
            while self._heap and len(chosen) < room and -self._heap[0][0] > enough:
                chosen.append(heapq.heappop(self._heap))
            if not chosen:
                break
            self._split_cells(chosen, enough, deadline)
        self.solve_seconds += time.perf_counter() - begin
        if not splits:
            return f"{count * (size - 1)} dimensions are too many to split: the first relaxation"
        return f"chords on simplices of {relaxation.part}, bounded by an interior-point method"

    def build_proof(self, record: int) -> RecordKindProof:
        """Build the proof from the current branch-and-bound tree."""
        count = self._cell_count
        free = self.relaxation.free_count
        lines = np.full((count, 5), [UNSPLIT_CELL, 0, 0, 0.0, 0])
        price = np.zeros(count)
        majorant = np.zeros((count, *self.relaxation.shape))
        log_law = np.zeros((count, free))
        for place, split in self._splits.items():
            lines[place] = split
        for place, cell in self._open.items():
            price[place] = cell.price
            majorant[place] = cell.majorant
            log_law[place] = cell.log_law
        return RecordKindProof(
            record, self.upper_bound, _build_tree(self.relaxation, lines, price, majorant, log_law)
        )

    def improve_by_ascent(self, joints: FloatArray, iterations: int, deadline: Deadline) -> None:
        """Improve candidate laws by local ascent, and keep the best."""
        climbed, values = maximize_locally(self.adversary, joints, iterations, deadline=deadline)
        self.offer_law(self.adversary.make_allowed(climbed[int(values.argmax())]))

    def offer_law(self, joint: FloatArray) -> None:
        """Keep a feasible law where it leaks more than the incumbent."""
        value = self.adversary.compute_leakage(joint)
        if value > self.value:
            self.best = joint
            self.value = value

    def _split_cells(
        self, chosen: list[tuple[float, int]], sufficient_bound: float, deadline: Deadline
    ) -> None:
        """Split cells and bound the children; when time is over, keep parents whose bounds are lower."""
        whole = [self._open[place] for _, place in chosen]
        corners = np.repeat(np.array([cell.corners for cell in whole]), 2, axis=0)
        simplex, ends, fraction = self._choose_splits(
            corners[::2], np.array([cell.joint for cell in whole])
        )
        first = 2 * np.arange(len(whole))
        edges = corners[first[:, None], simplex[:, None], ends]
        # bisecting an edge: each part keeps one of its ends, and the point replaces the other
        points = fraction[:, None] * edges[:, 0] + (1 - fraction)[:, None] * edges[:, 1]
        for end in (0, 1):
            corners[first + end, simplex, ends[:, end]] = points
        start = np.repeat(np.array([cell.multipliers for cell in whole]), 2, axis=0)
        facets = slice(1, 1 + math.prod(self.relaxation.shape))
        # a warm start at the border of the cone makes Newton steps short: it is moved inside,
        # farther with the law of Y among the variables
        min_price = 0.1 if self.relaxation.free_count > 0 else 1e-2
        start[:, 0] = np.maximum(start[:, 0], min_price)
        start[:, facets] = np.maximum(start[:, facets], 1e-3)
        bounds = self._bound_cells(corners, start, sufficient_bound, deadline)
        late = deadline.expired
        splits = [*zip(simplex.tolist(), *ends.T.tolist(), fraction.tolist(), strict=True)]
        for at, (bound, place) in enumerate(chosen):
            parts = slice(2 * at, 2 * at + 2)
            if (late and bounds.bound[parts].max() > -bound) or np.ptp(
                edges[at], axis=0
            ).max() <= self.MIN_SIMPLEX_WIDTH:
                # a cell that cannot be split further keeps its bound for good
                self._stuck_bound = max(self._stuck_bound, -bound)
                continue
            self._splits[place] = (*splits[at], self._cell_count)
            del self._open[place]
            for part in (2 * at, 2 * at + 1):
                self._keep_cell(corners, bounds, part, whole[at], -bound)

    def _bound_cells(
        self, corners: FloatArray, start: FloatArray, sufficient_bound: float, deadline: Deadline
    ) -> CellBounds:
        """Bound cells, and offer the maximising law of the relaxation as a candidate."""
        found = self.relaxation.minimize_bounds(corners, start, sufficient_bound, deadline)
        self.nodes += len(corners)
        # the law at the largest bound is the relaxed optimum: a good feasible law may be near
        joint = found.joint[int(found.bound.argmax())]
        if joint.sum() > 0:
            near = self.adversary.make_allowed(joint)
            if self.adversary.compute_leakage(near) > self.value:
                # the local method takes 60 steps from the law of a bound
                self.improve_by_ascent(near[None], 60, deadline)
        return found

    def _keep_cell(
        self,
        corners: FloatArray,
        found: CellBounds,
        at: int,
        whole: _LeafCell | None = None,
        max_bound: float = math.inf,
    ) -> None:
        """Add a leaf with the better of its own and its parent's proof."""
        multipliers = found.multipliers[at]
        bound = float(found.bound[at])
        proof = multipliers[0], found.majorant[at], multipliers[1 + found.majorant[at].size :]
        # a part is inside the whole: its bound holds, whatever the solver left here
        if whole is not None and not bound < max_bound:
            proof = (whole.price, whole.majorant, whole.log_law)
            bound = max_bound
        place = self._cell_count
        self._open[place] = _LeafCell(corners[at], *proof, multipliers, found.joint[at])
        heapq.heappush(self._heap, (-bound, place))

    def _choose_splits(
        self, corners: FloatArray, joint: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Choose for each cell the simplex and edge to split, and where.

        The simplex is the one whose chord lies farthest above phi at the law; the edge the one along which
        phi bends most, the point half way from its middle to where the law is.
        """
        relaxation = self.relaxation
        cells = np.arange(len(corners))
        heights = relaxation.evaluate_phi(corners)
        # barycentric coordinates of the law's parts: a row times the inverse of the corners
        inside = relaxation.compute_parts(joint)[:, :, None, :] @ np.linalg.inv(corners)
        # slightly outside of the simplex by rounding only
        weights = np.maximum(inside[:, :, 0], 0.0)
        whole = weights.sum(axis=2)
        middle = (weights[:, :, None, :] @ corners)[:, :, 0] / np.where(whole > 0, whole, 1.0)[
            :, :, None
        ]
        # Jensen's gap: interpolation of the convex phi at the corners, less phi at the point
        away = (weights * heights).sum(axis=2) - whole * relaxation.evaluate_phi(middle)
        wide = np.ptp(corners, axis=2).max(axis=2) > self.MIN_SIMPLEX_WIDTH
        simplex = np.where(wide, away, -math.inf).argmax(axis=1)
        corners = corners[cells, simplex]
        weights = weights[cells, simplex]
        heights = heights[cells, simplex]
        # all D (D - 1) / 2 edges of a simplex
        pairs = np.array(list(combinations(range(corners.shape[1]), 2)))
        either = weights[:, pairs]
        ends = corners[:, pairs]
        both = either.sum(axis=2)
        # corners of no weight do not place the law on the edge: the middle is taken
        fraction = np.where(both > 0, either[..., 0] / np.where(both > 0, both, 1.0), 0.5)
        points = fraction[..., None] * ends[:, :, 0] + (1 - fraction)[..., None] * ends[:, :, 1]
        bends = (either * heights[:, pairs]).sum(axis=2) - both * relaxation.evaluate_phi(points)
        wide = np.abs(ends[:, :, 0] - ends[:, :, 1]).max(axis=2) > self.MIN_SIMPLEX_WIDTH
        edge = np.where(wide, bends, -math.inf).argmax(axis=1)
        # half way to the middle, so that no part becomes a sliver
        place = np.clip((fraction[cells, edge] + 0.5) / 2, MIN_EDGE_FRACTION, 1 - MIN_EDGE_FRACTION)
        return simplex, pairs[edge], np.rint(place * EDGE_DENOMINATOR) / EDGE_DENOMINATOR


def bound_by_record_entropy(
    adversary: BoundedAdversary, record: int, sufficient_bound: float, deadline: Deadline
) -> RecordKindProof:
    """Bound the leakage by the largest entropy H(X_i) of the record.

    One cell of posteriors has it.
    """
    # posteriors on the whole simplex have phi = 0 at the corners: I <= H(X_i) is left
    relaxation = LeakageRelaxation(adversary, "posteriors")
    found = relaxation.minimize_bounds(*relaxation.build_root(), sufficient_bound, deadline)
    line = np.array([[UNSPLIT_CELL, 0, 0, 0.0, 0]])
    price = found.multipliers[:, 0]
    tree = _build_tree(relaxation, line, price, np.zeros((1, *relaxation.shape)), np.zeros((1, 0)))
    return RecordKindProof(record, float(found.bound[0]), tree)


def _build_tree(
    relaxation: LeakageRelaxation,
    lines: FloatArray,
    price: FloatArray,
    majorant: FloatArray,
    log_law: FloatArray,
) -> CellTree:
    """Build the proof's tree of cells from the recorded splits."""
    simplex, first, second, part = lines[:, [0, 1, 2, 4]].T.astype(np.int64)
    return CellTree(
        relaxation.part, simplex, first, second, lines[:, 3], part, price, majorant, log_law
    )
