"""Best-first branch and bound on boxes of posteriors: the largest leakage of a binary record."""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.clock import Clock
from pmlopt.programs.record_leakage.box_relaxation import BoxBounds, BoxRelaxation
from pmlopt.programs.record_leakage.posterior_boxes import (
    WHOLE,
    PosteriorTree,
    chord_ends,
    negative_binary_entropy,
)
from pmlopt.programs.record_leakage.proof import KindProof
from pmlopt.programs.record_leakage.search import Search

BATCH = 64
BATCH_ENTRIES = 4_000_000
"""Boxes that are bounded at once, at most, and entries of the table of their derivatives."""
FIRST_PRICE, FIRST_MULTIPLIER = 0.3, 0.05
"""Where the multipliers of the first box start: of the size that they often have."""
LEAST_PRICE, LEAST_MULTIPLIER = 1e-2, 1e-3
"""A part of a box starts from the multipliers of the whole, but from no smaller ones: far from the border."""
EDGE_MARGIN = 0.1
"""A split of an interval keeps this share of it on either side."""
NARROWEST = 1e-12
"""An interval no longer than this is not split further."""
POLISHING_ITERATIONS = 60
"""Of the local method, from the law at which a bound is taken, when it leaks more."""


@dataclass(frozen=True, eq=False)
class _Box:
    """A box that is not split: its intervals, multipliers, and the law at which its bound is taken."""

    low: FloatArray
    high: FloatArray
    multipliers: FloatArray
    joint: FloatArray


@dataclass
class BoxSearch(Search):
    """The search over boxes of posteriors, for a binary record."""

    _open: dict[int, _Box] = field(default_factory=dict)
    _splits: dict[int, tuple[int, float, int]] = field(default_factory=dict)
    _heap: list[tuple[float, int]] = field(default_factory=list)
    _count: int = 0
    _stuck: float = -math.inf

    @cached_property
    def relaxation(self) -> BoxRelaxation:
        """The bound on a box."""
        return BoxRelaxation(self.adversary)

    @property
    def bound(self) -> float:
        """What no law leaks more than."""
        if not self._count:
            return math.inf
        return max(self.value, self._stuck, *(-bound for bound, _ in self._heap[:1]))

    def run(self, target: float, tolerance: float, nodes: int, clock: Clock) -> str:
        """Split the boxes of the largest bounds, many at once, until those are near the value."""
        outputs = self.adversary.rows.shape[1]
        begin = time.perf_counter()
        if not self._count:
            start = np.full((1, 1 + 2 * outputs), FIRST_MULTIPLIER)
            start[:, 0] = FIRST_PRICE
            ends = np.zeros((1, outputs)), np.ones((1, outputs))
            found = self._bounded(*ends, start, max(self.value, target) + tolerance, clock)
            self._keep(ends[0][0], ends[1][0], found, 0)
        most = int(np.clip(BATCH_ENTRIES // (4 * outputs * self.adversary.log_counts.size), 2, BATCH))
        while self.nodes < nodes and not clock.late:
            enough = max(self.value, target) + tolerance
            room = max(1, min(most, nodes - self.nodes) // 2)
            chosen: list[tuple[float, int]] = []
            while self._heap and len(chosen) < room and -self._heap[0][0] > enough:
                chosen.append(heapq.heappop(self._heap))
            if not chosen:
                break
            self._split(chosen, enough, clock)
        self.solve_seconds += time.perf_counter() - begin
        return "chords on boxes of posteriors, bounded by an interior-point method"

    def proof(self, record: int) -> KindProof:
        """The tree of boxes so far."""
        outputs = self.adversary.rows.shape[1]
        output, part = np.full(self._count, WHOLE), np.zeros(self._count, dtype=np.int64)
        point, multipliers = np.zeros(self._count), np.zeros((self._count, 1 + 2 * outputs))
        for place, split in self._splits.items():
            output[place], point[place], part[place] = split
        for place, box in self._open.items():
            multipliers[place] = box.multipliers
        lower, upper = multipliers[:, 1 : 1 + outputs], multipliers[:, 1 + outputs :]
        boxes = PosteriorTree(output, point, part, multipliers[:, 0], lower, upper)
        return KindProof(record, self.adversary.log_counts, (), self.bound, boxes)

    def _split(self, chosen: list[tuple[float, int]], enough: float, clock: Clock) -> None:
        """Split boxes and bound their parts; a box whose parts say no more when time is over stays whole."""
        wide, lows, highs, starts = [], [], [], []
        for bound, place in chosen:
            box = self._open[place]
            output, point = self._split_point(box)
            if box.high[output] - box.low[output] <= NARROWEST:
                self._stuck = max(self._stuck, -bound)
                continue
            wide.append((bound, place, output, point))
            start = np.maximum(box.multipliers, LEAST_MULTIPLIER)
            start[0] = max(start[0], LEAST_PRICE)
            starts += [start, start]
            upper_end, lower_end = box.high.copy(), box.low.copy()
            upper_end[output] = lower_end[output] = point
            lows += [box.low, lower_end]
            highs += [upper_end, box.high]
        if not wide:
            return
        low, high = np.array(lows), np.array(highs)
        found = self._bounded(low, high, np.array(starts), enough, clock)
        late = clock.late
        for at, (bound, place, output, point) in enumerate(wide):
            if late and found.bound[2 * at : 2 * at + 2].max() > -bound:
                heapq.heappush(self._heap, (bound, place))
                continue
            self._splits[place] = (output, point, self._count)
            del self._open[place]
            for part in (2 * at, 2 * at + 1):
                self._keep(low[part], high[part], found, part)

    def _bounded(
        self, low: FloatArray, high: FloatArray, start: FloatArray, enough: float, clock: Clock
    ) -> BoxBounds:
        """Bounds on boxes; what the law of the worst leaks is a value, too."""
        found = self.relaxation.minimised(low, high, start, enough, clock)
        self.nodes += len(low)
        self._try(found, clock)
        return found

    def _keep(self, low: FloatArray, high: FloatArray, found: BoxBounds, at: int) -> None:
        """Keep a box with the bound and the multipliers that were found."""
        multipliers = np.concatenate([found.price[at : at + 1], found.lower[at], found.upper[at]])
        self._open[self._count] = _Box(low, high, multipliers, found.joint[at])
        heapq.heappush(self._heap, (-float(found.bound[at]), self._count))
        self._count += 1

    def _try(self, found: BoxBounds, clock: Clock) -> None:
        """Climb from the law at which the largest of some bounds is taken, when it leaks more."""
        joint = found.joint[int(found.bound.argmax())]
        if not joint.sum() > 0:
            return
        near = self.adversary.allowed(joint)
        if self.adversary.leaked(near) > self.value:
            self.improve(near[None], POLISHING_ITERATIONS, clock)

    def _split_point(self, box: _Box) -> tuple[int, float]:
        """The output whose chord lies farthest above -h at the law, and a point from psi to the middle."""
        law = box.joint @ self.adversary.rows
        masses = law.sum(axis=0)
        share = np.clip(law[0] / np.where(masses > 0, masses, 1.0), box.low, box.high)
        alpha, beta = chord_ends(box.low, box.high)
        away = masses * (share * alpha + (1 - share) * beta - negative_binary_entropy(share))
        wide = box.high - box.low
        output = int(np.where(wide > NARROWEST, away, -math.inf).argmax())
        low, width = float(box.low[output]), float(wide[output])
        point = (float(share[output]) + low + width / 2) / 2
        return output, float(np.clip(point, low + EDGE_MARGIN * width, low + (1 - EDGE_MARGIN) * width))
