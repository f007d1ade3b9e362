"""Best-first branch and bound on boxes of posteriors: the largest leakage of a binary record."""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray, rounding_of
from pmlopt.measures.leakage import log_sum
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.local_ascent import Search
from pmlopt.programs.record_leakage.proof import (
    WHOLE,
    KindProof,
    PosteriorTree,
    chord_ends,
    negative_binary_entropy,
)
from pmlopt.solvers.clock import FOREVER, Clock

MAX_ITERATIONS = 30
"""Newton steps on each box; where they do not suffice the box is split as it is."""
FRACTION_TO_BOUNDARY = 0.95
"""Of the way to where a multiplier vanishes, a step goes so far at most."""
SUFFICIENT_DECREASE = 1e-4
"""Armijo's share of the decrease that the slope promises, which a step must have."""
BACKTRACKING_FACTOR = 0.4
MAX_BACKTRACKS = 12
CENTRING, RECENTRING = 0.1, 0.5
"""By what the barrier falls after a step of at least half the Newton step, and after a shorter one."""
ENOUGH_SHARE = 0.2
"""A bound is left once it is this near to the optimum, as a share of how far it is above the target."""
SMALLEST_GAP = 1e-9
"""Nats; nearer to the optimum no bound is sought."""
FIRST_BARRIER = 1e-3
LARGEST_SLACK = 10.0
"""What the slack of a multiplier, its share of the barrier, is at first, and at most."""
SMALLEST_SLACK = 1e-14
RIDGE = 1e-10
"""Share by which the diagonal of the Hessian matrix is raised, against rounding."""


@dataclass(frozen=True, eq=False)
class BoxBounds:
    """What was found on each of K boxes.

    Attributes:
        bound: (K,) what no law in the box leaks more than, in nats, with the rounding of floats added.
        price: (K,) s.
        lower, upper: (K, M) lambda and nu.
        joint: (K, 2, T) the law J at which the bound is taken: near the optimum of the relaxation.
        steps: how many Newton steps were made, all boxes together.
    """

    bound: FloatArray
    price: FloatArray
    lower: FloatArray
    upper: FloatArray
    joint: FloatArray
    steps: int


@dataclass(frozen=True, eq=False)
class BoxRelaxation:
    """The most that a binary record can leak while the posteriors of its letters stay in a box, relaxed.

    With v_y = sum_t J(0, t) W[t, y], u the law of Y, psi_y = v_y / u_y and h the binary entropy

        I(X_i; Y) = H(X_i) - sum_y u_y h(psi_y),

    so that its convex part is separable over the outputs. On `l_y <= psi_y <= h_y`, which is linear in J, the
    chord of -h bounds it: `-u_y h(psi_y) <= alpha_y v_y + beta_y (u_y - v_y)`. For every s > 0 and lambda,
    nu >= 0, with

        g(0, t) = sum_y W[t, y] (alpha_y + lambda_y (1 - l_y) - nu_y (1 - h_y)),
        g(1, t) = sum_y W[t, y] (beta_y - lambda_y l_y + nu_y h_y),

    every law in the box whose dataset has an entropy of b or more leaks at most

        (1 + s) log sum_a exp(s / (1 + s) log sum_t c(a, t) exp(g(a, t) / s)) - s b,

    for `I <= H(X_i) + <J, g> + s (H(J) + <J, log c> - b)`, whose maximum over J that is. It is convex in the
    multipliers and smooth: a primal-dual interior-point method minimises it on many boxes at once, and stops
    where it falls below a target, or is near enough to its optimum to say that it will not. On an empty box
    it has no lower bound.

    Attributes:
        adversary: rows, counts and entropy; two letters.
    """

    adversary: Adversary

    @cached_property
    def used(self) -> BoolArray:
        """(2, T) where there are datasets."""
        return np.isfinite(self.adversary.log_counts)

    @cached_property
    def shift(self) -> float:
        """The largest log c: large for many records, and taken out of log c and b, which differ by little."""
        return float(self.adversary.log_counts.max())

    @cached_property
    def log_counts(self) -> FloatArray:
        """(2, T) log c, shifted."""
        return np.asarray(self.adversary.log_counts - self.shift)

    @property
    def entropy(self) -> float:
        """The entropy b, shifted."""
        return self.adversary.entropy - self.shift

    def minimised(
        self, low: FloatArray, high: FloatArray, start: FloatArray, target: float, clock: Clock = FOREVER
    ) -> BoxBounds:
        """Bounds on boxes.

        Args:
            low: (K, M) the lower ends of the intervals.
            high: (K, M) the upper ones.
            start: (K, 1 + 2 M) prices, lambda and nu to start from, all positive.
            target: in nats: a bound below it need not fall further.
            clock: what is left of the time.
        """
        count, outputs = low.shape
        state = _Boxes(self, low, high, start)
        found = np.zeros((count, 1 + 2 * outputs))
        bound, joint, steps = np.full(count, np.inf), np.zeros((count, *self.used.shape)), 0
        left = np.arange(count)
        for step in range(MAX_ITERATIONS):
            near = state.advance()
            steps += len(left)
            above = state.value - target
            done = (above <= 0) | (near < SMALLEST_GAP) | ((near < ENOUGH_SHARE * above) & (step > 0))
            if step == MAX_ITERATIONS - 1 or clock.late:
                done[:] = True
            places = left[done]
            found[places], bound[places], joint[places] = state.scattered(done, outputs)
            if done.all():
                break
            left = left[~done]
            state.keep(~done)
        return BoxBounds(bound, found[:, 0], found[:, 1 : 1 + outputs], found[:, 1 + outputs :], joint, steps)


class _Boxes:
    """The state of the interior-point method on some boxes.

    Attributes:
        chord: (K, 2, T) the part of g without multipliers.
        features: (K, 2, T, N) the derivatives of g: 0 for the price, then those of the multipliers in use.
        places: (K, N) where each stands among the price, lambda and nu.
        point: (K, N) the price and the multipliers.
        slack: (K, N) those of the multipliers' signs.
    """

    def __init__(self, of: BoxRelaxation, low: FloatArray, high: FloatArray, start: FloatArray) -> None:
        self.of = of
        rows = of.adversary.rows
        ends = np.stack(chord_ends(low, high), axis=1)
        self.chord = ends @ rows.T
        self.places = _in_use(low, high)
        weights = np.stack(
            [np.concatenate([1 - low, high - 1], axis=1), np.concatenate([-low, high], axis=1)], axis=1
        )
        chosen = self.places[:, 1:] - 1
        each = np.take_along_axis(weights, chosen[:, None, :], axis=2)[:, :, None, :]
        self.features = np.zeros((*self.chord.shape, self.places.shape[1]))
        self.features[..., 1:] = each * rows.T[chosen % rows.shape[1]].transpose(0, 2, 1)[:, None]
        self.point = np.take_along_axis(start, self.places, axis=1)
        self.slack = np.minimum(FIRST_BARRIER / self.point, LARGEST_SLACK)
        self.centring = np.full(len(low), 2 * CENTRING)
        self.evaluate()

    def values(self, point: FloatArray) -> tuple[FloatArray, ...]:
        """The bounds at a point, the exponents of c exp(g / s), their log-sums over t, and those over a."""
        gains = self.features.reshape(len(point), -1, point.shape[1]) @ point[:, :, None]
        price = point[:, 0]
        scores = self.of.log_counts + (self.chord + gains.reshape(self.chord.shape)) / price[:, None, None]
        sums = log_sum(scores, axis=2)[:, :, 0]
        letters = (price / (1 + price))[:, None] * sums
        whole = log_sum(letters, axis=1)[:, 0]
        return (1 + price) * whole - price * self.of.entropy, scores, sums, letters, whole

    def evaluate(self) -> None:
        """Bound, law and its parts at the point."""
        self.value, scores, sums, letters, whole = self.values(self.point)
        self.log_given = scores - sums[:, :, None]
        self.log_letters = letters - whole[:, None]
        self.given, self.letters = np.exp(self.log_given), np.exp(self.log_letters)
        self.law = self.letters[:, :, None] * self.given

    def derivatives(self) -> tuple[FloatArray, FloatArray]:
        """(K, N) the gradient of the bound, and (K, N, N) its Hessian matrix.

        The bound is a maximum over J of a function linear in the point: the gradient is the mean of the
        features under J, and the Hessian their covariance, over s within a letter, over 1 + s between.
        """
        of, count, size = self.of, *self.point.shape
        features = self.features.copy()
        surprise = np.where(of.used, of.log_counts - np.where(of.used, self.log_given, 0.0), 0.0)
        features[..., 0] = surprise - self.log_letters[:, :, None]
        means = (self.given[:, :, None, :] @ features)[:, :, 0]
        gradient = (self.letters[:, None, :] @ means)[:, 0]
        gradient[:, 0] -= of.entropy
        centred = (features - means[:, :, None]).reshape(count, -1, size)
        price = self.point[:, 0]
        weights = self.law.reshape(count, -1) / price[:, None]
        hessian = np.swapaxes(centred * weights[:, :, None], 1, 2) @ centred
        apart = means[:, 0] - means[:, 1]
        share = self.letters[:, 0] * self.letters[:, 1] / (1 + price)
        hessian += share[:, None, None] * apart[:, :, None] * apart[:, None, :]
        return gradient, hessian

    def advance(self) -> FloatArray:
        """One step; (K,) how far the bounds may be above their optima."""
        gradient, hessian = self.derivatives()
        barrier = self.centring * (self.slack * self.point).mean(axis=1)
        ratios = self.slack / self.point
        diagonal = np.arange(self.point.shape[1])
        hessian[:, diagonal, diagonal] *= 1 + RIDGE
        hessian[:, diagonal, diagonal] += ratios
        pull = barrier[:, None] / self.point
        move = np.linalg.solve(hessian, (pull - gradient)[:, :, None])[:, :, 0]
        slack_move = pull - self.slack - ratios * move
        slope = ((gradient - pull) * move).sum(axis=1)
        step = self._step(move, slope, barrier)
        self.point = self.point + step[:, None] * move
        dual = _to_boundary(self.slack, slack_move)
        self.slack = np.maximum(self.slack + dual[:, None] * slack_move, SMALLEST_SLACK)
        self.centring = np.where(step > 0.5, CENTRING, RECENTRING)
        self.evaluate()
        return np.asarray((self.slack * self.point).sum(axis=1) + np.abs(slope))

    def _step(self, move: FloatArray, slope: FloatArray, barrier: FloatArray) -> FloatArray:
        """(K,) lengths of the step at which the bound and its barrier fall enough; 0 where none was found."""
        step = _to_boundary(self.point, move)
        merit = self.value - barrier * np.log(self.point).sum(axis=1)
        falls = np.zeros(len(step), dtype=bool)
        for _ in range(MAX_BACKTRACKS):
            point = self.point + step[:, None] * move
            there = self.values(point)[0] - barrier * np.log(point).sum(axis=1)
            falls = there <= merit + SUFFICIENT_DECREASE * step * slope + 1e-13
            if falls.all():
                break
            step = np.where(falls, step, BACKTRACKING_FACTOR * step)
        return np.where(falls, step, 0.0)

    def scattered(self, chosen: BoolArray, outputs: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Price and all multipliers, bounds with their rounding, and laws of some of the boxes."""
        found = np.zeros((int(chosen.sum()), 1 + 2 * outputs))
        np.put_along_axis(found, self.places[chosen], self.point[chosen], axis=1)
        return found, self.value[chosen] + self._rounding()[chosen], self.law[chosen]

    def _rounding(self) -> FloatArray:
        """(K,) what rounding may hide of a bound: of g, of exponents of log c, and of b."""
        of = self.of
        sizes = np.abs(self.features[..., 1:]).max(axis=(1, 2)) * self.point[:, 1:]
        gains = np.abs(self.chord).max(axis=(1, 2)) + sizes.sum(axis=1)
        counts = np.abs(of.log_counts[of.used]).max() + abs(of.entropy) + 1
        return np.asarray(
            rounding_of(sum(of.adversary.rows.shape), 1.0) * (1 + gains + self.point[:, 0] * counts)
        )

    def keep(self, chosen: BoolArray) -> None:
        """Go on with some of the boxes."""
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                setattr(self, name, array[chosen])


def _in_use(low: FloatArray, high: FloatArray) -> IntArray:
    """(K, N) the places of the price and of the multipliers that can matter, filled up to one length.

    `psi_y >= 0` and `psi_y <= 1` hold of themselves.
    """
    idle = np.concatenate([low <= 0, high >= 1], axis=1)
    most = int((~idle).sum(axis=1).max())
    order = np.argsort(idle, axis=1, kind="stable")[:, :most]
    return np.concatenate([np.zeros((len(low), 1), dtype=order.dtype), 1 + order], axis=1)


def _to_boundary(point: FloatArray, move: FloatArray) -> FloatArray:
    """(K,) how far a step may go without an entry at zero, at most 1."""
    ratios = np.where(move < 0, -point / np.where(move < 0, move, -1.0), np.inf)
    return np.asarray(np.minimum(1.0, FRACTION_TO_BOUNDARY * ratios.min(axis=1)))


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
        return KindProof(record, (), self.bound, boxes)

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
