"""The likelihood of a regression whose response or covariates were released, and its maximum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pmlopt.core.lazy_imports import optimize, special
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InputError, SolverError


class ResponseTerms(NamedTuple):
    """What the responses of n people add to the likelihood at given linear predictors.

    Attributes:
        values: (n,) the logarithms of their probabilities.
        scores: (n, m) the derivatives.
        information: (n, m, m) minus the second derivatives.
        complete: (n, m, m) the same in the mean if the true responses were seen.
    """

    values: FloatArray
    scores: FloatArray
    information: FloatArray
    complete: FloatArray


class Response(ABC):
    """A response of a regression, given m linear predictors."""

    @abstractmethod
    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of the likelihood at (n, m) linear predictors."""

    def list_designs(self, design: FloatArray) -> list[FloatArray]:
        """Return the (K, n, d_k) covariates of each of the m predictors."""
        return [design]

    def standardize(self, design: FloatArray) -> tuple[Response, float]:
        """Return a response of order one about (n, d) covariates, and its unit."""
        return self, 1.0


@dataclass(frozen=True)
class LetterResponse(Response):
    """A letter of N, of multinomial logits, through a mechanism.

    Attributes:
        outputs: (n, N) the probability of what a person released, by the true letter.
    """

    outputs: FloatArray

    def list_designs(self, design: FloatArray) -> list[FloatArray]:
        """Return the covariates of each of the N - 1 logits: the first letter is the reference."""
        return [design] * (self.outputs.shape[1] - 1)

    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of `log sum_x M[x,y] p[x]`, by the letter's law before and after y."""
        log_law = compute_log_laws(predictors)
        with np.errstate(divide="ignore"):  # an output that a letter never has
            joint = np.log(self.outputs) + log_law
        values = special.logsumexp(joint, axis=1)
        law, after = np.exp(log_law), np.exp(joint - values[:, None])
        complete = compute_covariances(law)
        information = complete - compute_covariances(after)
        return ResponseTerms(values, (after - law)[:, 1:], information, complete)


@dataclass(frozen=True)
class CountResponse(Response):
    """A count in clear, of the Poisson law with a logarithmic link."""

    counts: FloatArray

    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of `y t - e^t - log y!`."""
        mean = np.exp(np.minimum(predictors[:, 0], 700.0))  # a float holds no larger mean
        values = self.counts * predictors[:, 0] - mean - special.gammaln(self.counts + 1)
        information = mean[:, None, None]
        return ResponseTerms(values, (self.counts - mean)[:, None], information, information)


@dataclass(frozen=True)
class NormalResponse(Response):
    """A number in clear, of the normal law; the second predictor is the logarithm of its deviation."""

    numbers: FloatArray

    def list_designs(self, design: FloatArray) -> list[FloatArray]:
        """Return the covariates of the mean, and the constant of the deviation."""
        return [design, np.ones((*design.shape[:2], 1))]

    def standardize(self, design: FloatArray) -> tuple[Response, float]:
        """Return the response in the unit of its deviation from a least-squares fit.

        Raises:
            InputError: there is none: the covariates determine the response.
        """
        fitted = design @ np.linalg.lstsq(design, self.numbers, rcond=None)[0]
        unit = float(np.sqrt(np.mean((self.numbers - fitted) ** 2)))
        if len(design) <= design.shape[1] or not unit > 1e-10 * np.abs(self.numbers).max():
            raise InputError("the covariates determine the response exactly: leave some out")
        return NormalResponse(self.numbers / unit), unit

    def evaluate(self, predictors: FloatArray) -> ResponseTerms:
        """Compute the terms of `-s - (y - t)^2 e^(-2s) / 2 - log(2 pi) / 2`."""
        precision = np.exp(-np.minimum(predictors[:, 1], 300.0))
        apart = (self.numbers - predictors[:, 0]) * precision
        values = -predictors[:, 1] - apart**2 / 2 - np.log(2 * np.pi) / 2
        scores = np.column_stack([apart * precision, apart**2 - 1])
        information = np.empty((len(apart), 2, 2))
        information[:, 0, 0], information[:, 1, 1] = precision**2, 2 * apart**2
        information[:, 0, 1] = information[:, 1, 0] = 2 * apart * precision
        return ResponseTerms(values, scores, information, information)


class LikelihoodTerms(NamedTuple):
    """The likelihood at some parameters.

    Attributes:
        value: the weighted sum of its logarithms.
        scores: (n, P) of each person, without the weight.
        information, complete: (P, P) minus the second derivatives of what was seen, and their mean if the
            true letters were seen.
    """

    value: float
    scores: FloatArray
    information: FloatArray
    complete: FloatArray


@dataclass(frozen=True)
class ObservedLikelihood:
    """The likelihood of a response and of released covariates with K joint true values.

    A person has the value x with the law `p[x | z]` of multinomial logits, releases s of it, and has a
    response of law `P(y | x, z)`: the person's likelihood is `sum_x p[x | z] M[x,s] P(y | x, z)`. Derivatives
    are those of Louis: the information of what was seen is the mean of the complete one, less the covariance
    of complete scores, both after what was seen.

    Attributes:
        response: of n people.
        designs: m arrays (K, n, d_k): of each predictor the covariates, by the value x.
        released: (n, K) the probability of what a person released, by x.
        law_design: (n, g) the covariates z of the law of x.
        weights: (n,) of the people.

    Source: [louis1982finding].
    """

    response: Response
    designs: Sequence[FloatArray]
    released: FloatArray
    law_design: FloatArray
    weights: FloatArray

    @property
    def coefficient_count(self) -> int:
        """Return the number of parameters of the response."""
        return sum(int(design.shape[2]) for design in self.designs)

    @property
    def parameter_count(self) -> int:
        """Return P: the coefficients of the response, and those of the law of the covariates."""
        return self.coefficient_count + int((self.released.shape[1] - 1) * self.law_design.shape[1])

    def evaluate(self, parameters: FloatArray) -> LikelihoodTerms:
        """Compute the likelihood and its derivatives at (P,) parameters."""
        count, letters = self.coefficient_count, self.released.shape[1]
        ends = np.cumsum([design.shape[2] for design in self.designs])
        parts = np.split(parameters[:count], ends[:-1])
        log_law = compute_log_laws(
            self.law_design @ parameters[count:].reshape(letters - 1, self.law_design.shape[1]).T
        )
        found = [
            self.response.evaluate(
                np.column_stack(
                    [design[x] @ part for design, part in zip(self.designs, parts, strict=True)]
                )
            )
            for x in range(letters)
        ]
        with np.errstate(divide="ignore"):  # an output that a value never has
            joint = np.log(self.released) + log_law + np.column_stack([one.values for one in found])
        each = special.logsumexp(joint, axis=1)
        after, law = np.exp(joint - each[:, None]), np.exp(log_law)
        scores = np.zeros((len(each), self.parameter_count))
        information = np.zeros((self.parameter_count, self.parameter_count))
        complete = np.zeros_like(information)
        for x, terms in enumerate(found):
            own = self._make_scores(terms.scores, x, law)
            shares = self.weights * after[:, x]
            scores += after[:, [x]] * own
            information -= (own * shares[:, None]).T @ own
            for target, curved in ((information, terms.information), (complete, terms.complete)):
                target[:count, :count] += self._sum_blocks(x, shares, curved)
        information += (scores * self.weights[:, None]).T @ scores
        of_law = np.einsum(
            "i,iab,ip,iq->apbq", self.weights, compute_covariances(law), self.law_design, self.law_design,
            optimize=True,
        ).reshape(self.parameter_count - count, self.parameter_count - count)  # fmt: skip
        information[count:, count:] += of_law
        complete[count:, count:] += of_law
        return LikelihoodTerms(float(self.weights @ each), scores, information, complete)

    def _make_scores(self, scores: FloatArray, x: int, law: FloatArray) -> FloatArray:
        """Return (n, P) the scores of people if their value were x."""
        apart = -law[:, 1:]
        if x:
            apart[:, x - 1] += 1
        parts = [scores[:, [k]] * design[x] for k, design in enumerate(self.designs)]
        of_law = (apart[:, :, None] * self.law_design[:, None, :]).reshape(len(law), -1)
        return np.hstack([*parts, of_law])

    def _sum_blocks(self, x: int, shares: FloatArray, curved: FloatArray) -> FloatArray:
        """Sum the second derivatives in the coefficients, at the value x."""
        return np.block([
            [(one[x] * (shares * curved[:, j, k])[:, None]).T @ other[x]
             for k, other in enumerate(self.designs)]
            for j, one in enumerate(self.designs)
        ])  # fmt: skip


def compute_log_laws(predictors: FloatArray) -> FloatArray:
    """Compute (n, N) the logarithms of the laws of N - 1 logits, of which the first letter has 0."""
    whole = np.column_stack([np.zeros(len(predictors)), predictors])
    return np.asarray(whole - special.logsumexp(whole, axis=1, keepdims=True))


def compute_covariances(law: FloatArray) -> FloatArray:
    """Compute (n, N - 1, N - 1) `diag(p) - p p'` of laws, without the first letter."""
    rest = law[:, 1:]
    return np.asarray(rest[:, :, None] * (np.eye(rest.shape[1]) - rest[:, None, :]))


def maximize_observed(likelihood: ObservedLikelihood, start: FloatArray) -> FloatArray:
    """Maximise the likelihood by Newton steps in a trust region, from a start.

    The covariates are expected to be of order one and not collinear.

    Raises:
        SolverError: the steps did not converge.
    """
    total = float(likelihood.weights.sum())
    memory: dict[bytes, LikelihoodTerms] = {}

    def evaluate(parameters: FloatArray) -> LikelihoodTerms:
        key = parameters.tobytes()
        if key not in memory:
            memory.clear()
            memory[key] = likelihood.evaluate(parameters)
        return memory[key]

    def compute_gradient(parameters: FloatArray) -> FloatArray:
        return -(likelihood.weights @ evaluate(parameters).scores) / total

    found = optimize.minimize(
        lambda parameters: -evaluate(parameters).value / total,
        start, jac=compute_gradient,
        hess=lambda parameters: evaluate(parameters).information / total,
        method="trust-exact", options={"gtol": 1e-7, "maxiter": 500},
    )  # fmt: skip
    parameters, slope = found.x, np.abs(compute_gradient(found.x)).max()
    if not slope < 1e-5:
        raise SolverError(
            f"the likelihood was not maximised (its slope is {slope:.1g}): leave out covariates, or "
            "values that hardly occur"
        )
    for _ in range(
        3
    ):  # the region ends where values differ by rounding, and slopes are exact beyond
        flat = find_flat_directions(evaluate(parameters).information / total)
        parameters = parameters - flat.inverse @ compute_gradient(parameters)
    return np.asarray(parameters)


class FlatDirections(NamedTuple):
    """Directions in which a likelihood does not change.

    Attributes:
        directions: (P, F) that are orthogonal.
        inverse: (P, P) of the information in the others, and 0 in these.
    """

    directions: FloatArray
    inverse: FloatArray


def find_flat_directions(information: FloatArray) -> FlatDirections:
    """Find the directions without information, and invert it in the others.

    Args:
        information: (P, P) of one person, about covariates of order one.

    Examples:
        >>> found = find_flat_directions(np.array([[0.25, 0.0], [0.0, 0.0]]))
        >>> found.directions.tolist(), found.inverse.tolist()
        ([[0.0], [1.0]], [[4.0, 0.0], [0.0, 0.0]])
    """
    sizes, directions = np.linalg.eigh(information)
    curved = sizes > 1e-8  # rounding leaves 1e-15, and a letter of one person in a million 1e-6
    kept = directions[:, curved]
    return FlatDirections(directions[:, ~curved], (kept / sizes[curved]) @ kept.T)
