"""The convex relaxation of a record's leakage over a cell, and its interior-point solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, bound_sum_rounding
from pmlopt.measures.leakage import log_sum_exp
from pmlopt.model.queries.record_leakage_measures import compute_negative_entropies
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.proof import MIN_HULL_WIDTH, CellPart, get_cell_shape
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

FIRST_PRICE, FIRST_MULTIPLIER = 0.3, 0.05
"""Where the multipliers of the first cell start: of the size that they often have."""
CENTERING_FACTOR, RECENTERING_FACTOR = 0.1, 0.5
"""By what the barrier falls after a step of at least half the Newton step, and after a shorter one."""
MIN_GAIN_SHARE = 0.2
"""A minimisation ends this near to its optimum, as a fraction of the distance of its bound to the target."""


@dataclass(frozen=True, eq=False)
class CellBounds:
    """The upper bounds on K cells with the dual multipliers that prove them.

    Attributes:
        bound: (K,) what no law in the cell leaks more than, in nats, with the rounding of floats added.
        multipliers: (K, 1 + P D + R) the price s, those of the facets, and rho.
        majorant: (K, P, D) mu.
        joint: (K, A, T) the law J at which the bound is taken: near the optimum of the relaxation.
        steps: how many Newton steps were made, all cells together.
    """

    bound: FloatArray
    multipliers: FloatArray
    majorant: FloatArray
    joint: FloatArray
    steps: int


@dataclass(frozen=True, eq=False)
class LeakageRelaxation:
    """The convex relaxation of the record leakage for joint laws whose parts lie in simplices.

    With `phi(v) = sum_k v_k log(v_k / sum v)`, convex and homogeneous, and W the rows of the mechanism,

        I(X_i; Y) = H(X_i) + sum_y phi((J W)[:, y]) = H(Y) + sum_a phi(J[a] W),

    a concave entropy and a sum of convex functions of parts v_p of J: the P parts are the columns of J W
    ("posteriors"), the rows of J W ("laws"), or the rows of J itself ("classes"). A cell has for each part
    the D corners of a simplex that holds v_p over its sum. Linear functions mu_p that are not below
    phi at the corners are not below it anywhere in the simplex, so that on the cell I is at most the entropy
    plus `<J, g>`, where g gathers the mu_p. With the entropy of the dataset at a price s > 0, and for H(Y)
    any rho in R^M, `H(Y) <= - sum_y u_y rho_y + sum_y e^rho_y - 1` with u the law of Y, the maximum over J is

        k log sum_a exp(s / k log sum_t c(a, t) exp(g(a, t) / s)) - s b,   k = s + 1 for H(X_i), s for H(Y).

    It is convex in s, the multipliers of the facets (by which mu_p is above the interpolation of phi at the
    corners) and rho, and smooth: a primal-dual interior-point method minimises it on many cells at once, and
    stops where it falls below a target, or once it is near enough to its optimum to exclude that. On an
    empty cell it has no lower bound.

    Attributes:
        adversary: rows, counts and entropy.
        part: of what the simplices are.
    """

    adversary: BoundedAdversary
    part: CellPart

    @cached_property
    def _sizes(self) -> tuple[int, int, int]:
        adversary = self.adversary
        return get_cell_shape(self.part, len(adversary.log_counts), adversary.rows.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Return (P, D): the numbers of simplices in a cell and of corners in each."""
        return self._sizes[:2]

    @property
    def free_count(self) -> int:
        """Return the number of entries of the multiplier rho."""
        return self._sizes[2]

    @cached_property
    def used_mask(self) -> BoolArray:
        """Return the (A, T) mask of letter-class pairs that have datasets."""
        return np.isfinite(self.adversary.log_counts)

    def evaluate_phi(self, corners: FloatArray) -> FloatArray:
        """Evaluate the convex function phi at points (..., D) of the simplices."""
        return compute_negative_entropies(
            corners @ self.adversary.rows if self.part == "classes" else corners
        )

    def compute_parts(self, joint: FloatArray) -> FloatArray:
        """Compute the (K, P, D) parts of joint laws (K, A, T)."""
        if self.part == "classes":
            return joint
        laws = joint @ self.adversary.rows
        return np.swapaxes(laws, 1, 2) if self.part == "posteriors" else laws

    def compute_gains(self, majorant: FloatArray) -> FloatArray:
        """Pull back linear functions (K, P, D) of the parts to (K, A, T) functions of the joint law."""
        if self.part == "posteriors":
            return np.swapaxes(majorant, 1, 2) @ self.adversary.rows.T
        return majorant if self.part == "classes" else majorant @ self.adversary.rows.T

    def compute_part_gains(self, part: IntArray, slope: FloatArray) -> FloatArray:
        """Pull back linear functions (K, F, D) of single parts to (K, F, A, T) functions of the joint law."""
        rows = self.adversary.rows
        if self.part == "posteriors":
            return slope[..., :, None] * rows.T[part][..., None, :]
        inner = slope if self.part == "classes" else slope @ rows.T
        return np.eye(len(self.used_mask))[part][..., :, None] * inner[..., None, :]

    def build_root(self) -> tuple[FloatArray, FloatArray]:
        """Build the root cell that contains all joint laws, with initial multipliers."""
        count, size = self.shape
        start = np.full((1, 1 + count * size + self.free_count), FIRST_MULTIPLIER)
        start[:, 0] = FIRST_PRICE
        # rho of the uniform law, so that the terms e^rho sum to one
        start[:, 1 + count * size :] = -math.log(max(1, self.free_count))
        corners = np.tile(np.eye(size), (1, count, 1, 1))
        if self.part == "laws" and size == 2:
            for letter, used in enumerate(self.used_mask):
                met = self.adversary.rows[used]
                # two outputs: mixtures of rows are on the segment between the extreme ones
                first = met[:, 0]
                if np.ptp(first) > MIN_HULL_WIDTH:
                    corners[0, letter] = met[[first.argmax(), first.argmin()]]
        return corners, start

    def minimize_bounds(
        self,
        corners: FloatArray,
        start: FloatArray,
        target: float,
        deadline: Deadline = NO_DEADLINE,
    ) -> CellBounds:
        """Minimise the dual bounds of cells by an interior-point method."""
        # a cell whose bound takes more than 30 Newton steps is split as it is
        max_iterations = 30
        count = len(corners)
        state = _CellIterates(self, corners, start)
        found = np.zeros(start.shape)
        bound = np.full(count, np.inf)
        majorant = np.zeros(corners.shape[:3])
        joint = np.zeros((count, *self.used_mask.shape))
        left = np.arange(count)
        steps = 0
        for step in range(max_iterations):
            near = state.advance()
            steps += len(left)
            # a bound below the target is enough, and one whose optimum stays above ends early
            above = state.best - target
            # bounds within 1e-9 nats of the optimum are final
            hopeless = (near < MIN_GAIN_SHARE * above) & (step > 0)
            done = (above <= 0) | (near < 1e-9) | hopeless
            if step == max_iterations - 1 or deadline.expired:
                done[:] = True
            places = left[done]
            results = state.expand_results(done)
            found[places], majorant[places], bound[places], joint[places] = results
            if done.all():
                break
            left = left[~done]
            state.keep_cells(~done)
        return CellBounds(bound, found, majorant, joint, steps)


class _CellIterates:
    """The interior-point iterates of a batch of cells.

    Attributes:
        corners: (K, P, D, D) of the simplices.
        majorant: (K, P, D) the interpolation of phi at the corners.
        chord: (K, A, T) g without multipliers.
        normals: (K, P D, D) what a unit of each multiplier adds to the majorant.
        features: (K, A, T, N) the derivatives of g: 0 for the price, then those of the multipliers in use.
        places: (K, N) the place of each among the price, all multipliers and rho.
        point: (K, N) price, multipliers and rho; the first S are positive.
        slack: (K, S) those of the signs.
        best, best_point, best_law: the least bound so far, with its point and its law.
    """

    def __init__(self, of: LeakageRelaxation, corners: FloatArray, start: FloatArray) -> None:
        self.of = of
        count = len(corners)
        size = corners.shape[-1]
        self.corners = corners
        inverse = np.linalg.inv(corners)
        # (K, P, D): the linear function that equals phi at the D corners of each simplex
        self.majorant = (inverse @ of.evaluate_phi(corners)[..., None])[..., 0]
        self.chord = of.compute_gains(self.majorant)
        # scaled to size one, so that multipliers of thin simplices are comparable
        normals = np.swapaxes(inverse / np.ptp(inverse, axis=2, keepdims=True), 2, 3)
        self.normals = normals.reshape(count, -1, size)
        self.places = _select_multipliers(self.normals, of.free_count)
        self.signed = self.places.shape[1] - of.free_count
        chosen = self.places[:, 1 : self.signed] - 1
        each = np.take_along_axis(self.normals, chosen[..., None], axis=1)
        self.features = np.zeros((*self.chord.shape, self.places.shape[1]))
        part_gains = of.compute_part_gains(chosen // size, each)
        self.features[..., 1 : self.signed] = np.moveaxis(part_gains, 1, -1)
        if of.free_count:
            # the derivative of the linear bound on H(Y) in rho is minus the law of Y
            self.features[..., self.signed :] = -of.adversary.rows
        self.point = np.take_along_axis(start, self.places, axis=1)
        # the slack of a multiplier is its share of the barrier
        # slacks start at 10 at most
        self.slack = np.minimum(1e-3 / self.point[:, : self.signed], 10.0)
        self.centring = np.full(count, 2 * CENTERING_FACTOR)
        self.evaluate()
        self.best = self.value
        self.best_point = self.point
        self.best_law = self.law

    def evaluate_bounds(self, point: FloatArray) -> tuple[FloatArray, ...]:
        """Evaluate the dual bounds at a point, with the intermediate log-sums."""
        features = self.features.reshape(len(point), -1, point.shape[1])
        gains = (features @ point[:, :, None]).reshape(self.chord.shape)
        price = point[:, 0]
        log_counts, entropy = self.of.adversary.shifted_counts
        scores = log_counts + (self.chord + gains) / price[:, None, None]
        # log-sums: exponents g / s overflow where the price is small
        sums = log_sum_exp(scores, axis=2)[:, :, 0]
        # H(X_i) adds one to the price between letters; where H(Y) is bounded it does not
        outer = price + (not self.of.free_count)
        letters = (price / outer)[:, None] * sums
        whole = log_sum_exp(letters, axis=1)[:, 0]
        bounds = outer * whole - price * entropy
        if self.of.free_count:
            bounds = bounds + (np.exp(point[:, self.signed :]).sum(axis=1) - 1)
        return bounds, scores, sums, letters, whole

    def evaluate(self) -> None:
        """Evaluate bound, law and parts at the current iterate."""
        self.value, scores, sums, letters, whole = self.evaluate_bounds(self.point)
        # logarithms are kept: the surprise needs them where the probability underflows
        self.log_given = scores - sums[:, :, None]
        self.log_letters = letters - whole[:, None]
        self.given = np.exp(self.log_given)
        self.letters = np.exp(self.log_letters)
        self.law = self.letters[:, :, None] * self.given

    def compute_derivatives(self) -> tuple[FloatArray, FloatArray]:
        """Compute the (K, N) gradients and (K, N, N) Hessians of the bounds.

        The bound is a maximum over J of a function linear in the point: the gradient is the mean of the
        features under J, and the Hessian their covariance, over s within a letter, over 1 + s between.
        """
        of, count, size = self.of, *self.point.shape
        features = self.features.copy()
        log_counts, entropy = of.adversary.shifted_counts
        # unused cells have log c = -inf, and 0 times inf would be nan
        log_given = np.where(of.used_mask, self.log_given, 0.0)
        surprise = np.where(of.used_mask, log_counts - log_given, 0.0)
        features[..., 0] = surprise - self.log_letters[:, :, None]
        means = (self.given[:, :, None, :] @ features)[:, :, 0]
        gradient = (self.letters[:, None, :] @ means)[:, 0]
        gradient[:, 0] -= entropy
        # centred before the products: as a difference of moments the covariance would cancel
        centred = (features - means[:, :, None]).reshape(count, -1, size)
        price = self.point[:, 0]
        weights = self.law.reshape(count, -1) / price[:, None]
        # Gram matrices: positive semidefinite even after rounding
        hessian = np.swapaxes(centred * weights[:, :, None], 1, 2) @ centred
        apart = means - (self.letters[:, None, :] @ means)
        outer = price + (not of.free_count)
        weights_of_letters = self.letters / outer[:, None]
        hessian += np.swapaxes(apart * weights_of_letters[:, :, None], 1, 2) @ apart
        if of.free_count:
            law = np.exp(self.point[:, self.signed :])
            gradient[:, self.signed :] += law
            diagonal = np.arange(self.signed, size)
            hessian[:, diagonal, diagonal] += law
        return gradient, hessian

    def advance(self) -> FloatArray:
        """Take one Newton step, and return (K,) how far the bounds may be from their optima."""
        gradient, hessian = self.compute_derivatives()
        point = self.point[:, : self.signed]
        barrier = self.centring * (self.slack * point).mean(axis=1)
        ratios = self.slack / point
        everywhere = np.arange(self.point.shape[1])
        signed = np.arange(self.signed)
        # the diagonal is raised a little against rounding
        hessian[:, everywhere, everywhere] *= 1 + 1e-10
        hessian[:, signed, signed] += ratios
        pull = barrier[:, None] / point
        wanted = 0.0
        if self.of.free_count:
            wanted = np.maximum(-gradient[:, 1 : self.signed], 0.0).sum(axis=1)
        gradient[:, : self.signed] -= pull
        solved = np.linalg.solve(hessian, -gradient[:, :, None])
        move = np.asarray(solved[:, :, 0], dtype=np.float64)
        # linearised complementarity: slack times multiplier equals the barrier
        slack_move = pull - self.slack - ratios * move[:, : self.signed]
        slope = (gradient * move).sum(axis=1)
        step = self._search_step_lengths(move, slope, barrier)
        self.point = self.point + step[:, None] * move
        dual = _max_step_lengths(self.slack, slack_move)
        # slacks stay above 1e-14
        self.slack = np.maximum(self.slack + dual[:, None] * slack_move, 1e-14)
        self.centring = np.where(step > 0.5, CENTERING_FACTOR, RECENTERING_FACTOR)
        self.evaluate()
        last = self.best, self.best_point, self.best_law
        self.best = self.value
        self.best_point = self.point
        self.best_law = self.law
        # steps of rho may overshoot
        if self.of.free_count and (worse := ~(self.value < last[0])).any():
            self.best = np.where(worse, last[0], self.value)
            self.best_point = np.where(worse[:, None], last[1], self.point)
            self.best_law = np.where(worse[:, None, None], last[2], self.law)
        products = self.slack * self.point[:, : self.signed]
        return np.asarray(products.sum(axis=1) + np.abs(slope) + wanted)

    def _search_step_lengths(
        self, move: FloatArray, slope: FloatArray, barrier: FloatArray
    ) -> FloatArray:
        """Find (K,) step lengths by backtracking; 0 where none decreases the merit function."""
        step = _max_step_lengths(self.point[:, : self.signed], move[:, : self.signed])
        if self.of.free_count:
            # at small prices the bound is next to a maximum: a step leaves at least 30 % of the price
            max_decrease = (1 - 0.3) * self.point[:, 0]
            step = np.minimum(step, max_decrease / np.maximum(-move[:, 0], max_decrease))
            largest = np.abs(move[:, self.signed :]).max(axis=1)
            step = np.minimum(step, 1.0 / np.maximum(largest, 1.0))

        # the merit function is the barrier problem's objective, which Newton's step decreases
        def compute_merit(bound: FloatArray, point: FloatArray) -> FloatArray:
            return np.asarray(bound - barrier * np.log(point[:, : self.signed]).sum(axis=1))

        here = compute_merit(self.value, self.point)
        falls = np.zeros(len(step), dtype=bool)
        # at most twelve backtracking steps
        for _ in range(12):
            point = self.point + step[:, None] * move
            bound, *_ = self.evaluate_bounds(point)
            there = compute_merit(bound, point)
            # Armijo's rule with a factor of 1e-4
            falls = there <= here + 1e-4 * step * slope + 1e-13
            if falls.all():
                break
            # backtracking by 0.4
            step = np.where(falls, step, 0.4 * step)
        return np.where(falls, step, 0.0)

    def expand_results(self, chosen: BoolArray) -> tuple[FloatArray, ...]:
        """Return multipliers, majorants, bounds and laws of the chosen cells."""
        corners = self.corners[chosen]
        count, parts, size = self.majorant[chosen].shape
        facet_end = 1 + parts * size
        found = np.zeros((count, facet_end + self.of.free_count))
        np.put_along_axis(found, self.places[chosen], self.best_point[chosen], axis=1)
        facets = found[:, 1:facet_end, None] * self.normals[chosen]
        raised = facets.reshape(count, parts, size, size).sum(axis=2)
        majorant = self.majorant[chosen] + raised
        reached = (corners @ majorant[..., None])[..., 0]
        # rounding may leave the majorant below phi at a corner: the bound is raised by so much
        lift = np.maximum((self.of.evaluate_phi(corners) - reached).max(axis=2), 0.0)
        bound = self.best[chosen] + self._bound_rounding()[chosen] + lift.sum(axis=1)
        return found, majorant, bound, self.best_law[chosen]

    def _bound_rounding(self) -> FloatArray:
        """Compute (K,) what rounding may hide of a bound: of g, of exponents of log c, and of b."""
        of = self.of
        used = of.used_mask
        # terms of classes that a letter never meets are in no sum
        slopes = np.abs(self.features[:, used, 1:]).max(axis=1)
        sizes = slopes * np.abs(self.best_point[:, 1:])
        gains = np.abs(self.chord[:, used]).max(axis=1) + sizes.sum(axis=1)
        log_counts, entropy = of.adversary.shifted_counts
        counts = np.abs(log_counts[used]).max() + abs(entropy) + 1
        relative_error = bound_sum_rounding(sum(of.adversary.rows.shape), 1.0)
        return np.asarray(relative_error * (1 + gains + self.best_point[:, 0] * counts))

    def keep_cells(self, chosen: BoolArray) -> None:
        """Restrict the batch to some of its cells."""
        # every array has the cells as its first axis
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                setattr(self, name, array[chosen])


def _select_multipliers(normals: FloatArray, free: int) -> IntArray:
    """Select the (K, N) indices of the multipliers that can be active."""
    # a facet whose normal has no negative entry is implied by J >= 0
    idle = normals.min(axis=2) >= -1e-13
    # cells need arrays of one shape: those with fewer multipliers are padded with idle ones
    max_count = int((~idle).sum(axis=1).max())
    order = np.argsort(idle, axis=1, kind="stable")[:, :max_count]
    price = np.full((len(idle), 1), -1)
    last = np.arange(free) + normals.shape[1]
    rho = np.tile(last, (len(idle), 1))
    return 1 + np.concatenate([price, order, rho], axis=1)


def _max_step_lengths(point: FloatArray, move: FloatArray) -> FloatArray:
    """Compute the (K,) largest step lengths, at most 1, that keep all entries positive."""
    # only entries that fall limit the step; the inner where avoids division by zero
    falls = move < 0
    ratios = np.where(falls, -point / np.where(falls, move, -1.0), np.inf)
    # a step goes at most 95 % of the way to the boundary
    return np.asarray(np.minimum(1.0, 0.95 * ratios.min(axis=1)))
