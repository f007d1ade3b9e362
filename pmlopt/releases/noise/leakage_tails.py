"""The probability that an outcome leaks more than epsilon: of letters on a line or in the plane, and of two.

With `r_j(y) = f(y | x_j) / max_i f(y | x_i)` an outcome leaks more than epsilon under some prior of a set iff
the least mean of r(y) is below e^-epsilon. Log-ratios of two letters are monotone along a line, so that both
ends of a cell bound every r_j on it, from below and from above: a cell is left out, or counted, or halved.

Of two letters it is the supremum over the set. Letters at -1 and 1 are released with noise. With p the
probability of a letter and `E = e^-eps`, an outcome on the letter's side leaks more than epsilon iff `p < E`
and the log-ratio of the densities there is above `t = log((1 - p) / (E - p))`. Let `near` and `far` be the
probabilities of that given this letter and the other one, and g the density of the log-ratio at t given this
letter; given the other it is `e^-t g`. Then

    T(p)  = p near + (1 - p) far
    T'(p) = near - far - E (1 - E) / ((1 - p) (E - p)) g

and the failure probability is `F(p) = T(p) + T(1 - p)`. The derivative of `log g` at t is `1/2 - k t`, with
k = 0 for Laplace noise and sigma^2 / 4 for Gaussian noise, so that T''(p) has the sign of

    E (1 - E) k t - (1 - E) (E - p) - E ((1 - E) / 2 + (E - p) + (1 - p)),

which rises in p: T is concave up to some p, and convex from there on. On an interval it is therefore below
the line from its left end to the higher one of its right end and of the tangent's: up to the bend the tangent
is above it, and after it the chord. The supremum of F is found from above by branch and bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.core.numbers.maxima import bound_maximum
from pmlopt.core.numbers.quadrature import integrate_on_panels
from pmlopt.data.sampling.grid_noise import GRID_STEP_BITS
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import log_quotient
from pmlopt.releases.noise.laws import NoiseLaw, bound_exponentials
from pmlopt.releases.noise.letters import PlacedLetters, round_to_grid


class PairFailure:
    """The failure probability P(l(Y) > eps) of noise on letters at -1 and 1, as a function of the prior.

    Args:
        noise: of a positive scale.
        epsilon: in nats, above 0.

    Source: [grosse2025empirical, eq. (17)]; the slope by hand.
    """

    def __init__(self, noise: NoiseLaw, epsilon: float) -> None:
        self.noise = noise
        # to sixty digits, as many of 1 - e^-eps; e^-1000 is below every float
        digits = 60 + max(0, math.ceil(-math.log10(epsilon)))
        exponent = Decimal(-min(epsilon, 1000.0))
        self.exp_neg_epsilon = Fraction(Context(prec=digits).exp(exponent))
        self.kept = _split_number(self.exp_neg_epsilon)
        self.lost = _split_number(1 - self.exp_neg_epsilon)
        # how far an outcome is from 0 per nat of its log-ratio, and the largest log-ratio
        self.stretch = noise.scale**noise.power / 2
        self.largest = 2 / noise.scale if noise.power == 1 else math.inf
        # the probability, rounded up, above which a letter's outcomes cannot leak more: F may jump there;
        # expm1: for large scales both exponents are near 0, where 1 - e^x cancels
        share = math.expm1(epsilon - self.largest) / math.expm1(-self.largest)
        self.max_mass = self.kept[0] * share * (1 + 1e-14)
        # the relative rounding of a tail: 40 deviations out, where a Gaussian tail is the smallest float, the
        # last digit of its argument moves it by 40^2 units in the last place, and more for noise that is
        # small next to the letters; of noise as small as 1e-3 tails are 0 and 1
        self.rtol = 2e-13 + 1e-14 / noise.scale if noise.scale > 1e-3 else 0.0

    def compute_tails(
        self, mass: FloatArray, other: FloatArray, left: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute T and T' of letters of probabilities p, from p, 1 - p and e^-eps - p.

        They are 0 where no outcome can leak more than epsilon.
        """
        possible = (left > 0) & (mass <= self.max_mass)
        with np.errstate(all="ignore"):
            # 1 - p is e^-eps - p and 1 - e^-eps
            threshold = np.minimum(log_quotient(left, self.lost[0]), self.largest)
            start = np.where(possible, self.stretch * threshold, np.inf)
            near = self.noise.compute_tail(start - 1)
            far = self.noise.compute_tail(start + 1)
            density = self.stretch * self.noise.compute_density(start - 1)
            rate = self.kept[0] * self.lost[0] / other / left
            moved = np.where(possible, density * rate, 0.0)
        return far + mass * (near - far), near - far - moved

    def subtract_mass(self, mass: FloatArray, other: FloatArray) -> FloatArray:
        """Compute `e^-eps - p` accurately, from p or 1 - p."""
        # the large parts first: close floats subtract exactly, and the small part is not lost
        near = (self.kept[0] - mass) + self.kept[1]
        far = (other - self.lost[0]) - self.lost[1]
        return np.where(mass <= 0.5, near, far)

    def bound_on_cells(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the larger F at both ends of cells of p, and upper bounds on F over the cells."""
        ends = np.array([left, right])
        values = np.zeros(ends.shape)
        bounds = np.zeros(ends.shape)
        for turn in (1, -1):
            # the second letter has 1 - p: its probability ascends from the right end
            mass, other = np.array([ends, 1 - ends])[::turn, ::turn]
            rest = self.subtract_mass(mass, other)
            terms, slopes = self.compute_tails(mass, other, rest)
            tangent = terms[0] + slopes[0] * (mass[1] - mass[0])
            values += terms[::turn]
            above = np.array([terms[0], np.maximum(terms[1], tangent)])
            bounds += above[::turn]
        return values.max(axis=0), bounds.max(axis=0) * (1 + self.rtol)

    def find_supremum(self, letters: PlacedLetters) -> float:
        """Find an upper bound on F over the priors of two letters, at most 1e-11 above; for one prior, F."""
        from pmlopt.programs.exact.rounding import round_down_to_float, round_up_to_float

        masses = find_least_masses(letters)
        if sum(masses) == 1:  # there is one prior
            mass = np.array(masses, dtype=float)
            left = np.array([self.exp_neg_epsilon - p for p in masses], dtype=float)
            tails, _ = self.compute_tails(mass, mass[::-1], left)
            return min(1.0, float(tails.sum()) * (1 + self.rtol))
        low = round_down_to_float(min(masses))
        high = round_up_to_float(1 - max(masses))
        # F jumps where a tail ends
        jumps = [self.max_mass, 1 - self.max_mass]
        edges = np.append(np.linspace(low, high, 65), jumps)
        slack = lambda best: min(1e-11, max(1e-6 * best, 1e-20))  # noqa: E731
        cells = np.unique(np.clip(edges, low, high))
        return min(1.0, bound_maximum(self.bound_on_cells, cells, slack))


def _split_number(number: Fraction) -> tuple[float, float]:
    """Return a number as an unevaluated sum of two floats."""
    head = float(number)
    return head, float(number - Fraction(head))


def find_least_masses(letters: PlacedLetters) -> tuple[Fraction, ...]:
    """Return the least probability of each letter over the priors; that of a curved set is rounded down."""
    sums = letters.prior.weights
    total = sum(sums)
    if letters.over is not None:
        sums, total = letters.over.min_mean_scaled(np.eye(len(sums), dtype=object))
    return tuple(Fraction(int(one), int(total)) for one in sums)


@dataclass(frozen=True)
class LeakingMass:
    """The largest probability of the outcomes that leak more than a level, bounded from above.

    Args:
        noise: of a positive scale, or letters are two.
        letters: with their priors.
        epsilon: the level in nats, above 0.
        enough: the search ends where it is clear on which side of this number the probability is.
    """

    noise: NoiseLaw
    letters: PlacedLetters
    epsilon: float
    enough: float = math.nan

    def bound_mass(self) -> float:
        """Bound the mass from above: on a line by at most 1e-13 too much, of two letters over a set by 1e-11.

        Raises:
            PrivacyError: the letters take three dimensions.
        """
        noise = self.noise
        letters = self.letters
        points = round_to_grid(letters.points, noise.grid_step)
        # without noise values are released as they are, wherever the two are
        places = noise.reduce_points(points) if noise.scale else np.array([[-1.0], [1.0]])
        if places.shape[1] > 2:
            raise PrivacyError(
                f"the letters take {places.shape[1]} dimensions, and failure probabilities are integrated "
                "over a line or a plane: take `level` of Laplace noise, or fewer numbers of each letter"
            )
        if not places.size:  # all are rounded to the same point
            return 0.0
        if places.shape == (2, 1):
            # of noise so small no float reveals more than of none
            scale = max(2 * (noise.scale / float(np.ptp(places))), 1e-3)
            pair = PairFailure(replace(noise, scale=scale), self.epsilon)
            found = pair.find_supremum(letters)
        elif places.shape[1] == 1:
            column = np.ones((len(places), 1))
            masses = self.bound_on_lines(places[:, 0], 0 * column, column)
            found = letters.max_mean(masses[:, 0])
        else:
            found = self.integrate_over_lines(*places.T)
        if not noise.scale:
            return found
        # an outcome of more than 53 bits is rounded to a float, which is a coarser grid there: next to 1 its
        # step is 2^-53, and as much as 2^-47 of the scale 39 deviations out
        rounding = 2.0**-50 * (float(np.abs(points).max()) / noise.scale)
        return raise_for_grid(found, max(2.0**-GRID_STEP_BITS, rounding))

    def integrate_over_lines(self, across: FloatArray, line: FloatArray) -> float:
        """Bound the mass in the plane by an integral over lines; its error is added, though it is nearer.

        Args:
            across: (N,) first coordinates of the letters.
            line: (N,) second ones.
        """
        noise = self.noise
        letters = self.letters

        def bound_across(places: FloatArray, weights: FloatArray) -> FloatArray:
            offsets = noise.compute_log_likelihoods(places, across)
            densities = noise.compute_density(places - across[:, None])
            return self.bound_on_lines(line, offsets, densities * weights)

        def is_enough(masses: FloatArray, error: float) -> bool:
            return abs(letters.max_mean(masses) - self.enough) > error

        # around each letter, for noise that is small next to distances has narrow peaks, which no halving
        # finds
        away = noise.scale * np.append(0.0, 2.0 ** np.arange(10))
        around = (across[:, None] + np.append(-away, away)).ravel()
        ends = noise.make_edges(across)[[0, -1]]
        edges = np.unique(np.clip(np.append(around, ends), *ends))
        masses, error = integrate_on_panels(bound_across, edges, 1e-11, is_enough)
        return min(1.0, letters.max_mean(masses) + error)

    def bound_on_lines(
        self, line: FloatArray, offsets: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Bound (N, K) probabilities, given each letter, of what leaks more on each of K lines.

        Cells that are still undecided after 45 halvings are counted.

        Args:
            line: (N,) places of the letters along each line.
            offsets: (N, K) logarithms of the likelihoods across, up to a number for each line.
            weights: (N, K) by which probabilities on each line are multiplied.
        """
        noise = self.noise
        letters = self.letters
        # a mean that is the limit but for rounding counts as below it
        limit = math.exp(-self.epsilon) * (1 + 1e-13)
        edges = noise.make_edges(line)
        lines = offsets.shape[1]
        cells = np.tile(np.array([edges[:-1], edges[1:]]), lines)
        at = np.repeat(np.arange(lines), len(edges) - 1)
        found = np.zeros((lines, len(line)))
        compared = lines == 1 and self.enough >= 0
        for _ in range(45):
            middle = cells.mean(axis=0)
            cells = np.array([[cells[0], middle], [middle, cells[1]]]).reshape(2, -1)
            at = np.tile(at, 2)
            logs = noise.compute_log_likelihoods(cells.ravel(), line).reshape(len(line), 2, -1)
            logs += offsets[:, None, at]
            start, end = np.moveaxis(logs - logs.max(axis=0), 1, 0)
            # a ratio is at most that to any one letter: to the likeliest at the left end
            likeliest = end[start.argmax(axis=0), np.arange(len(at))]
            least = np.minimum(start, end)
            most = np.maximum(start, np.minimum(end - likeliest, 0.0))
            inside = letters.min_mean(np.exp(most)) < limit
            may_leak = letters.min_mean(np.exp(least)) < limit
            halved = may_leak & ~inside
            if noise.power == 2:
                inside, halved = self._decide_by_convexity(start, end, inside, halved, limit)
            cell_masses = noise.compute_cell_masses(cells[0], cells[1], line)
            masses = (cell_masses * weights[:, at]).T
            np.add.at(found, at[inside], masses[inside])
            cells = cells[:, halved]
            at = at[halved]
            masses = masses[halved]
            rest = masses.sum(axis=0)
            if rest.max() < 1e-15 or len(at) > 200_000:
                break
            if compared and letters.max_mean(found[0]) > self.enough:
                break
            if compared and letters.max_mean(found[0] + rest) <= self.enough:
                break
        np.add.at(found, at, masses)
        return found.T

    def _decide_by_convexity(
        self, start: FloatArray, end: FloatArray, inside: BoolArray, halved: BoolArray, limit: float
    ) -> tuple[BoolArray, BoolArray]:
        """Decide more cells of Gaussian noise: with one likeliest letter, ratios are convex.

        Where an outcome leaks the level at most, first-order bounds decide no cells near it.

        Args:
            start: (N, K) logarithms of the ratios at the left ends of cells.
            end: (N, K) at the right ends.
            inside: (K,) the cells that are known to leak more.
            halved: (K,) those that are undecided.
            limit: the least mean below which an outcome leaks more.
        """
        has_one_likeliest = start.argmax(axis=0) == end.argmax(axis=0)
        chosen = np.flatnonzero(halved & has_one_likeliest)
        low = start[:, chosen]
        high = end[:, chosen]
        min_mean = self.letters.min_mean
        means = [min_mean(np.exp(one)) for one in (low, high)]
        # of one prior the mean is convex, too
        leak = (np.max(means, axis=0) < limit) & (self.letters.over is None)
        bounds = bound_exponentials((low + high) / 2, (high - low) / 2)
        least = np.min([min_mean(np.exp(one)) for one in bounds], axis=0)
        inside[chosen[leak]] = True
        halved[chosen[leak | (least >= limit)]] = False
        return inside, halved


def raise_for_grid(failure: float, coarseness: float) -> float:
    """Bound F of noise on a grid of a relative step below 1/40 by F of continuous noise.

    On the grid an outcome leaks what it leaks by the density, so only the tails differ. With the step g, at
    most the scale over 2^48:

    - Laplace: `P(L > c)` is at most `2 / (1 + e^(-g/b)) <= 1 + g/b` times that of the density, for every c;
    - Gaussian: with s = sigma / g and the normaliser of at least `s sqrt(2 pi)`, the sum over the grid's tail
      is at most the integral and its first term. That is `(z + 1) / s` of the integral, z standard deviations
      out (the hazard of the normal law is at most z + 1), and no float is below the tail at z = 39; and it is
      at most `1 / (s sqrt(2 pi))` in all, for both tails 0.8 / s.
    """
    return min(1.0, failure + min(1.0, 80 * failure) * coarseness)
