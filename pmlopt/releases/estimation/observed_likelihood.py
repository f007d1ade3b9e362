"""The likelihood of a regression whose response or covariates were released, and its maximum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.errors import SolverError
from pmlopt.releases.estimation.responses import (
    Response,
    ResponseTerms,
    compute_covariances,
    compute_log_laws,
    normalize_logarithms,
)
from pmlopt.solvers.solver_result import limit_threads


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
class LawBranch:
    """Multinomial logits between L letters, at those of K true values that reach them.

    Attributes:
        letters: (K,) the letter of each true value; -1 where it does not reach them.
        design: (n, g) the covariates of the logits.
    """

    letters: IntArray
    design: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape (L - 1, g) of its parameters."""
        return int(self.letters.max()), self.design.shape[1]

    def spread(self, laws: FloatArray) -> FloatArray:
        """Return (n, K) the logarithms of what (n, L) of them add to that of each true value."""
        return np.where(self.letters < 0, 0.0, laws[:, self.letters])


@dataclass(frozen=True)
class ObservedLikelihood:
    """The likelihood of a response and of what was released of K joint true values.

    A person has the value x with the law `p[x | z]`, a product of multinomial logits, releases s of it, and
    has a response of law `P(y | x, z)`: the person's likelihood is `sum_x p[x | z] M[x,s] P(y | x, z)`. The
    response may be a part of x. Derivatives are those of Louis: the information of what was seen is the mean
    of the complete one, less the covariance of complete scores, both after what was seen.

    Attributes:
        response: of n people.
        designs: m arrays (K, n, d_k): of each predictor the covariates, by the value x.
        released: (n, K) the probability of what a person released, by x.
        law: the factors of the law of x.
        weights: (n,) of the people.

    Source: [louis1982finding].
    """

    response: Response
    designs: Sequence[FloatArray]
    released: FloatArray
    law: Sequence[LawBranch]
    weights: FloatArray

    @property
    def coefficient_count(self) -> int:
        """Return the number of parameters of the response."""
        return sum(int(design.shape[2]) for design in self.designs)

    @property
    def parameter_count(self) -> int:
        """Return P: the coefficients of the response, and those of the law of the true values."""
        return self.coefficient_count + sum(math.prod(branch.shape) for branch in self.law)

    def evaluate(self, parameters: FloatArray) -> LikelihoodTerms:
        """Compute the likelihood and its derivatives at (P,) parameters."""
        size, total = self.parameter_count, 0.0
        scores = np.empty((len(self.weights), size))
        information, complete = np.zeros((size, size)), np.zeros((size, size))
        with limit_threads():  # of many products of small matrices
            for people in self._list_blocks():
                value, scores[people] = self._take(people)._add_terms(
                    parameters, information, complete
                )
                total += value
        return LikelihoodTerms(total, scores, information, complete)

    def _list_blocks(self) -> Iterator[slice]:
        """Yield the people in blocks whose terms stay in a processor's cache."""
        size = 1024
        for start in range(0, len(self.weights), size):
            yield slice(start, start + size)

    def _take(self, people: slice) -> ObservedLikelihood:
        """Return the likelihood of some people."""
        return ObservedLikelihood(
            self.response.take(people), [design[:, people] for design in self.designs],
            self.released[people],
            [LawBranch(branch.letters, branch.design[people]) for branch in self.law],
            self.weights[people],
        )  # fmt: skip

    def _split(self, parameters: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Split parameters into those of each predictor, and (L - 1, g) of each factor of the law."""
        shapes = [
            *((design.shape[2],) for design in self.designs),
            *(one.shape for one in self.law),
        ]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = [
            part.reshape(shape)
            for part, shape in zip(np.split(parameters, ends[:-1]), shapes, strict=True)
        ]
        return parts[: len(self.designs)], parts[len(self.designs) :]

    def compute_posterior(self, parameters: FloatArray) -> FloatArray:
        """Compute (n, K) the probabilities of the true values, given all that was seen of a person."""
        return np.vstack([self._take(people)._see(parameters)[1] for people in self._list_blocks()])

    def compute_value(self, parameters: FloatArray) -> float:
        """Compute the weighted sum of the logarithms of people's likelihoods."""
        blocks = map(self._take, self._list_blocks())
        return sum(float(one.weights @ one._see(parameters)[0]) for one in blocks)

    def compute_predictors(self, parameters: FloatArray) -> FloatArray:
        """Compute (K, n, m) the linear predictors at each true value."""
        parts = self._split(parameters)[0]
        return np.stack(
            [design @ part for design, part in zip(self.designs, parts, strict=True)], axis=-1
        )

    def _see(
        self, parameters: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[FloatArray], ResponseTerms]:
        """Compute logarithms of likelihoods, true values after what was seen, their law, and responses."""
        laws = [
            compute_log_laws(branch.design @ part.T)
            for branch, part in zip(self.law, self._split(parameters)[1], strict=True)
        ]
        terms = self.response.evaluate(self.compute_predictors(parameters))
        with np.errstate(divide="ignore"):  # an output that a value never has
            joint = np.log(self.released) + terms.values.T
        for branch, log_law in zip(self.law, laws, strict=True):
            joint = joint + branch.spread(log_law)
        return *normalize_logarithms(joint), [np.exp(log_law) for log_law in laws], terms

    def _add_terms(
        self, parameters: FloatArray, information: FloatArray, complete: FloatArray
    ) -> tuple[float, FloatArray]:
        """Add what people reveal to two matrices; return their value and their (n, P) scores."""
        each, after, laws, terms = self._see(parameters)
        count = self.coefficient_count
        scores, own = np.zeros((len(each), len(parameters))), np.empty((len(each), len(parameters)))
        for x in range(after.shape[1]):
            self._fill_scores(own, terms.scores[x], x, laws)
            shares = self.weights * after[:, x]
            scores += own * after[:, [x]]
            rooted = own * np.sqrt(shares)[:, None]
            information -= rooted.T @ rooted
            seen = self._sum_blocks(x, shares, terms.information[x])
            information[:count, :count] += seen
            alone = seen
            if terms.complete is not terms.information:
                alone = self._sum_blocks(x, shares, terms.complete[x])
            complete[:count, :count] += alone
        rooted = scores * np.sqrt(self.weights)[:, None]
        information += rooted.T @ rooted
        for branch, law in zip(self.law, laws, strict=True):
            shares = self.weights * after[:, branch.letters >= 0].sum(axis=1)
            own_block = slice(count, count + math.prod(branch.shape))
            of_law = _sum_law(branch.design, law, shares)
            information[own_block, own_block] += of_law
            complete[own_block, own_block] += of_law
            count = own_block.stop
        return float(self.weights @ each), scores

    def _fill_scores(
        self, own: FloatArray, scores: FloatArray, x: int, laws: Sequence[FloatArray]
    ) -> None:
        """Fill in (n, P) the scores of people if their value were x."""
        start = 0
        for k, design in enumerate(self.designs):
            own[:, start : start + design.shape[2]] = scores[:, [k]] * design[x]
            start += design.shape[2]
        for branch, law in zip(self.law, laws, strict=True):
            width = branch.design.shape[1]
            for letter in range(1, law.shape[1]):
                apart = float(letter == branch.letters[x]) - law[:, [letter]]
                reached = float(branch.letters[x] >= 0)
                own[:, start : start + width] = reached * apart * branch.design
                start += width

    def _sum_blocks(self, x: int, shares: FloatArray, curved: FloatArray) -> FloatArray:
        """Sum the second derivatives in the coefficients, at the value x."""
        return np.block([
            [(one[x] * (shares * curved[:, j, k])[:, None]).T @ other[x]
             for k, other in enumerate(self.designs)]
            for j, one in enumerate(self.designs)
        ])  # fmt: skip


def _sum_law(design: FloatArray, law: FloatArray, shares: FloatArray) -> FloatArray:
    """Sum minus the second derivatives in the parameters of (n, L) laws of logits over (n,) shares."""
    curved = compute_covariances(law) * shares[:, None, None]
    letters, width = curved.shape[1], design.shape[1]
    left = curved[..., None] * design[:, None, None, :]
    found = left.reshape(len(law), -1).T @ design
    return found.reshape(letters, letters, width, width).swapaxes(1, 2).reshape(
        letters * width, letters * width
    )  # fmt: skip


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
    for _ in range(3):  # a region ends where values differ by rounding, and slopes are exact beyond
        flat = find_flat_directions(evaluate(parameters).information / total)
        step = flat.inverse @ compute_gradient(parameters)
        parameters = parameters - step
        if np.abs(step).max() < 1e-10:
            break
    return np.asarray(parameters)


class FlatDirections(NamedTuple):
    """Directions in which a likelihood does not change.

    Attributes:
        directions: (P, F) that are orthogonal.
        inverse: (P, P) of the information in the others, and 0 in these.
        weakest: (P,) of the others that with the least information.
        least: its information, or 0 where there are no others.
    """

    directions: FloatArray
    inverse: FloatArray
    weakest: FloatArray
    least: float


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
    inverse = (kept / sizes[curved]) @ kept.T
    if not curved.any():
        return FlatDirections(directions, inverse, directions[:, 0], 0.0)
    return FlatDirections(directions[:, ~curved], inverse, kept[:, 0], float(sizes[curved][0]))
