"""The laws of the response of a regression, given its linear predictors.

People are along the last axis of every array, so that each step is one of long rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.errors import InputError


class ResponseTerms(NamedTuple):
    """What the responses of n people add to the likelihood at given linear predictors.

    Attributes:
        values: (K, n) the logarithms of their probabilities.
        scores: (m, K, n) the derivatives.
        information: (m, m, K, n) minus the second derivatives.
        complete: (m, m, K, n) the same if the true responses were seen, in the mean after what was seen.
    """

    values: FloatArray
    scores: FloatArray
    information: FloatArray
    complete: FloatArray


class Restored(NamedTuple):
    """Coefficients in the units of the covariates.

    Attributes:
        values: (c,) of them.
        jacobian: (c, P) their derivatives in the parameters of the response.
    """

    values: FloatArray
    jacobian: FloatArray


@dataclass(frozen=True)
class Response(ABC):
    """A response of n people, given m linear predictors at each of K true values. Its fields are arrays."""

    @abstractmethod
    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of the likelihood at (m, K, n) linear predictors."""

    def take(self, people: slice | IntArray) -> Response:
        """Return the response of some people."""
        taken = {one.name: getattr(self, one.name)[..., people] for one in fields(self)}
        return replace(self, **taken)

    def list_designs(self, design: FloatArray) -> list[FloatArray]:
        """Return the (d_k, K, n) covariates of each of the m predictors."""
        return [design]

    def standardize(self, design: FloatArray) -> tuple[Response, float]:
        """Return a response of order one about (d, n) covariates, and its unit."""
        return self, 1.0

    def find_start(self, design: FloatArray) -> FloatArray:
        """Find parameters near the most likely ones for (d, n) covariates."""
        return np.zeros(sum(map(len, self.list_designs(design[:, None]))))

    def restore(self, parameters: FloatArray, back: FloatArray) -> Restored:
        """Compute the coefficients of covariates from those of covariates times (d, d) `back`."""
        blocks = len(parameters) // len(back)
        jacobian = np.asarray(np.kron(np.eye(blocks), back), dtype=float)
        return Restored(jacobian @ parameters, jacobian)


@dataclass(frozen=True)
class ReleasedResponse(Response):
    """A letter of N through a mechanism.

    Attributes:
        outputs: (N, K, n) the probability of what a person released, by the true letter; (N, 1, n) where it
            does not differ between K true values.
    """

    outputs: FloatArray

    @abstractmethod
    def compute_laws(self, predictors: FloatArray) -> FloatArray:
        """Compute (N, K, n) the laws of the true letters at (m, K, n) linear predictors."""

    def compute_posterior(self, predictors: FloatArray) -> FloatArray:
        """Compute (N, K, n) the laws of the true letters after what was released."""
        joint = self.outputs * self.compute_laws(predictors)
        return np.asarray(joint / joint.sum(axis=0))


class LetterResponse(ReleasedResponse):
    """A letter of multinomial logits, through a mechanism."""

    def compute_laws(self, predictors: FloatArray) -> FloatArray:
        """Compute the laws of logits."""
        return np.exp(compute_log_laws(predictors))

    def list_designs(self, design: FloatArray) -> list[FloatArray]:
        """Return the covariates of each of the N - 1 logits: the first letter is the reference."""
        return [design] * (len(self.outputs) - 1)

    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of `log sum_x M[x,y] p[x]`, by the letter's law before and after y."""
        log_law = compute_log_laws(predictors)
        with np.errstate(divide="ignore"):  # an output that a letter never has
            values, after = normalize_logarithms(np.log(self.outputs) + log_law)
        law = np.exp(log_law)
        complete = compute_covariances(law)
        information = complete - compute_covariances(after)
        return ResponseTerms(values, (after - law)[1:], information, complete)


class OrderedResponse(ReleasedResponse):
    """A letter in an order, of proportional odds, through a mechanism.

    `P(letter <= j) = F(c_j - t)` with the logistic F. The first predictor is t, whose covariates have no
    intercept; the others are c_1 and the logarithms of `c_j - c_(j-1)`.

    Source: [mccullagh1980regression].
    """

    def list_designs(self, design: FloatArray) -> list[FloatArray]:
        """Return the covariates without their first, an intercept, and the constants of thresholds."""
        return [design[1:], *[np.ones_like(design[:1])] * (len(self.outputs) - 1)]

    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of `log sum_x M[x,y] (F(u_x) - F(u_(x-1)))`, where `u_j = c_j - t`."""
        chain = self._differentiate_ends(predictors)
        ends = self._compute_ends(predictors)
        share = special.expit(ends)
        law = compute_ordered_law(ends)
        density = share * special.expit(-ends)
        seen = (self.outputs * law).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):  # an output that is not possible there
            values = np.log(seen)
            steps = -np.diff(self.outputs, axis=0) * density / seen
            worth = np.where(law > 0, self.outputs / (seen * law), 0.0)
        curved = _fill_diagonal(steps * (1 - 2 * share))
        edges = -np.diff(np.eye(len(law)), axis=1)  # of P(x) with F(u_j)
        alone = np.einsum("xj,xk,x...->jk...", edges, edges, worth) * density[:, None] * density
        observed = steps[:, None] * steps
        along_chain = "ja...,jk...,kb...->ab..."
        information = np.einsum(along_chain, chain, observed - curved, chain)
        complete = np.einsum(along_chain, chain, alone - curved, chain)
        scores = np.einsum("ja...,j...->a...", chain, steps)
        bent = scores.copy()  # thresholds bend with the logarithms of their distances
        bent[:2] = 0.0
        bent = _fill_diagonal(bent)
        return ResponseTerms(values, scores, information - bent, complete - bent)

    def compute_laws(self, predictors: FloatArray) -> FloatArray:
        """Compute the laws between thresholds."""
        return compute_ordered_law(self._compute_ends(predictors))

    def _compute_ends(self, predictors: FloatArray) -> FloatArray:
        """Compute (N - 1, K, n) the thresholds less the predictors."""
        first = predictors[[1]]
        widths = np.exp(np.minimum(predictors[2:], 300.0))
        ends = np.concatenate([first, first + np.cumsum(widths, axis=0)])
        return np.asarray(ends - predictors[0])

    def _differentiate_ends(self, predictors: FloatArray) -> FloatArray:
        """Compute (N - 1, N, K, n) the derivatives of `u_j` in the predictors."""
        count = len(predictors) - 1
        widths = np.exp(np.minimum(predictors[2:], 300.0))
        found = np.ones((count, *predictors.shape))
        found[:, 0] = -1.0
        found[:, 2:] = np.tri(count, count - 1, -1)[..., None, None] * widths
        return found

    def restore(self, parameters: FloatArray, back: FloatArray) -> Restored:
        """Compute the coefficients, and the thresholds c_j in place of their distances."""
        count = len(back) - 1
        widths = np.exp(parameters[count + 1 :])
        thresholds = np.hstack(
            [np.ones((len(widths) + 1, 1)), np.tri(len(widths) + 1, len(widths), -1)]
        )
        moved = np.tile(-back[0, 1:], (len(widths) + 1, 1))  # an intercept moves all of them
        level = np.concatenate([[parameters[count]], widths])
        values = np.concatenate(
            [back[1:, 1:] @ parameters[:count], moved @ parameters[:count] + thresholds @ level]
        )
        jacobian = np.block([
            [back[1:, 1:], np.zeros((count, len(level)))],
            [moved, thresholds * np.concatenate([[1.0], widths])],
        ])  # fmt: skip
        return Restored(values, jacobian)


@dataclass(frozen=True)
class CountResponse(Response):
    """A count in clear, of the Poisson law with a logarithmic link.

    Attributes:
        counts: (n,) of people.
    """

    counts: FloatArray

    def find_start(self, design: FloatArray) -> FloatArray:
        """Find the least-squares coefficients of logarithms: from 0, large counts are too far."""
        return fit_least_squares(design, np.log(self.counts + 0.5))

    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of `y t - e^t - log y!`."""
        mean = np.exp(np.minimum(predictors, 700.0))  # a float holds no larger mean
        values = self.counts * predictors - mean - special.gammaln(self.counts + 1)
        return ResponseTerms(values[0], self.counts - mean, mean[None], mean[None])


@dataclass(frozen=True)
class NormalResponse(Response):
    """A number in clear, of the normal law; the second predictor is the logarithm of its deviation.

    Attributes:
        numbers: (n,) of people.
    """

    numbers: FloatArray

    def list_designs(self, design: FloatArray) -> list[FloatArray]:
        """Return the covariates of the mean, and the constant of the deviation."""
        return [design, np.ones_like(design[:1])]

    def standardize(self, design: FloatArray) -> tuple[Response, float]:
        """Return the response in the unit of its deviation from a least-squares fit.

        Raises:
            InputError: there is none: the covariates determine the response.
        """
        fitted = fit_least_squares(design, self.numbers) @ design
        unit = float(np.sqrt(np.mean((self.numbers - fitted) ** 2)))
        if design.shape[1] <= len(design) or not unit > 1e-10 * np.abs(self.numbers).max():
            raise InputError("the covariates determine the response exactly: leave some out")
        return NormalResponse(self.numbers / unit), unit

    def find_start(self, design: FloatArray) -> FloatArray:
        """Find the least-squares coefficients, with a deviation of one."""
        return np.append(fit_least_squares(design, self.numbers), 0.0)

    def restore(self, parameters: FloatArray, back: FloatArray) -> Restored:
        """Compute the coefficients of the mean, without the deviation."""
        jacobian = np.hstack([back, np.zeros((len(back), 1))])
        return Restored(jacobian @ parameters, jacobian)

    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of `-s - (y - t)^2 e^(-2s) / 2 - log(2 pi) / 2`."""
        mean, spread = predictors
        precision = np.exp(-np.minimum(spread, 300.0))
        apart = (self.numbers - mean) * precision
        values = -spread - apart**2 / 2 - np.log(2 * np.pi) / 2
        scores = np.stack([apart * precision, apart**2 - 1])
        mixed = 2 * apart * precision
        information = np.array([[precision**2, mixed], [mixed, 2 * apart**2]])
        return ResponseTerms(values, scores, information, information)


def fit_least_squares(design: FloatArray, numbers: FloatArray) -> FloatArray:
    """Fit (d,) coefficients of (d, n) covariates to (n,) numbers.

    Examples:
        >>> fit_least_squares(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([3.0, 5.0])).round(9).tolist()
        [3.0, 2.0]
    """
    return np.asarray(np.linalg.lstsq(design.T, numbers, rcond=None)[0])


def compute_log_laws(predictors: FloatArray) -> FloatArray:
    """Compute (N, ...) the logarithms of the laws of N - 1 logits, of which the first letter has 0."""
    whole = np.concatenate([np.zeros((1, *predictors.shape[1:])), predictors])
    return whole - normalize_logarithms(whole)[0]


def normalize_logarithms(joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (...,) the logarithms of the sums of (N, ...) exponentials, and their (N, ...) shares.

    Examples:
        >>> total, shares = normalize_logarithms(np.log(np.array([0.2, 0.6])))
        >>> round(float(np.exp(total)), 9), shares.round(9).tolist()
        (0.8, [0.25, 0.75])
    """
    most = joint.max(axis=0)
    sizes = np.exp(joint - np.where(np.isfinite(most), most, 0.0))
    total = sizes.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # none is possible
        return np.log(total) + most, sizes / total


def compute_ordered_law(ends: FloatArray) -> FloatArray:
    """Compute (N, ...) the logistic law of the intervals between N - 1 ends, exact in its tails.

    Examples:
        >>> compute_ordered_law(np.array([0.0])).tolist()
        [0.5, 0.5]
    """
    below = special.expit(ends)
    above = special.expit(-ends)
    # F(b) - F(a) = F(b) F(-a) (1 - e^(a - b)): a difference of shares near 1 has no digits
    between = below[1:] * above[:-1] * -np.expm1(ends[:-1] - ends[1:])
    return np.concatenate([below[:1], between, above[-1:]])


def compute_covariances(law: FloatArray) -> FloatArray:
    """Compute (N - 1, N - 1, ...) `diag(p) - p p'` of laws, without the first letter."""
    rest = law[1:]
    return _fill_diagonal(rest) - rest[:, None] * rest


def _fill_diagonal(entries: FloatArray) -> FloatArray:
    """Build (N, N, ...) matrices with a diagonal of (N, ...) entries."""
    found = np.zeros((len(entries), *entries.shape))
    found[np.arange(len(entries)), np.arange(len(entries))] = entries
    return found
