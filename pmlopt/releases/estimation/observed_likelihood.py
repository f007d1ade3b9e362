"""The likelihood of a regression whose response or covariates were released, and its maximum."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.errors import SolverError
from pmlopt.releases.estimation.responses import (
    Response,
    ResponseTerms,
    compute_log_laws,
    normalize_logarithms,
)
from pmlopt.solvers.solver_result import limit_threads


class LikelihoodTerms(NamedTuple):
    """The likelihood at some parameters.

    Attributes:
        value: the weighted sum of its logarithms.
        scores: (P, n) of each person, without the weight.
        information: (P, P) minus the second derivatives.
    """

    value: float
    scores: FloatArray
    information: FloatArray


@dataclass(frozen=True)
class LawBranch:
    """Multinomial logits between L letters, at those of K true values that reach them.

    Attributes:
        letters: (K,) the letter of each true value; -1 where it does not reach them.
        design: (g, n) the covariates of the logits.
    """

    letters: IntArray
    design: FloatArray

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Return the shape (L - 1, g) of its parameters."""
        return int(self.letters.max()), len(self.design)

    @cached_property
    def membership(self) -> FloatArray:
        """Return (K,) ones at the true values that reach them, and zeros."""
        return np.asarray(self.letters >= 0, dtype=float)

    @cached_property
    def indicators(self) -> FloatArray:
        """Return (L - 1, K) ones where a true value reaches a letter, without the first, and zeros."""
        letters = np.arange(1, self.letters.max() + 1)
        return np.asarray(letters[:, None] == self.letters, dtype=float)

    def take(self, people: slice | IntArray) -> LawBranch:
        """Return the law of some people."""
        return LawBranch(self.letters, self.design[:, people])

    def compute_logarithms(self, parameters: FloatArray) -> FloatArray:
        """Compute (L, n) the logarithms of the law."""
        return compute_log_laws(parameters.reshape(self.shape) @ self.design)

    def spread(self, laws: FloatArray) -> FloatArray:
        """Return (K, n) the logarithms of what (L, n) of them add to that of each true value."""
        return np.where(self.letters[:, None] < 0, 0.0, laws[self.letters])

    def compute_apart(self, after: FloatArray, law: FloatArray) -> FloatArray:
        """Compute (L - 1, n) the letters after what was seen, (K, n), less those that (L, n) laws expect."""
        return self.indicators @ after - (self.membership @ after) * law[1:]

    def compute_scores(self, law: FloatArray) -> FloatArray:
        """Compute ((L - 1) g, K, n) the complete scores at each true value, for an (L, n) law."""
        apart = self.indicators[..., None] - self.membership[:, None] * law[1:, None]
        scores = apart[:, None] * self.design[:, None]
        return scores.reshape(-1, *scores.shape[2:])

    def sum_squares(self, letters: FloatArray) -> FloatArray:
        """Sum `c[l] z z'` over people, for (L - 1, n) numbers c of letters: a block for each letter."""
        count, size = self.shape
        found = np.zeros((count, size, count, size))
        sums = letters @ multiply_pairs(self.design, self.design).T
        found[np.arange(count), :, np.arange(count)] = sums.reshape(count, size, size)
        return found.reshape(count * size, count * size)


def multiply_pairs(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the (g h, n) products of the rows of two arrays (g, n) and (h, n).

    Examples:
        >>> multiply_pairs(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])).tolist()
        [[3.0], [4.0], [6.0], [8.0]]
    """
    products = one[:, None] * other
    return products.reshape(-1, products.shape[-1])


class SeenTerms(NamedTuple):
    """What is known of n people at some parameters.

    Attributes:
        values: (n,) the logarithms of their likelihoods.
        after: (K, n) the probabilities of true values after what was seen.
        laws: (L, n) of each factor of the law.
        response: the terms of the response.
    """

    values: FloatArray
    after: FloatArray
    laws: list[FloatArray]
    response: ResponseTerms


@dataclass(frozen=True)
class ObservedLikelihood:
    """The likelihood of a response and of what was released of K joint true values.

    A person has the value x with the law `p[x | z]`, a product of multinomial logits, releases s of it, and
    has a response of law `P(y | x, z)`: the person's likelihood is `sum_x p[x | z] M[x,s] P(y | x, z)`. The
    response may be a part of x. Derivatives are those of Louis: the information of what was seen is the mean
    of the complete one, less the covariance of complete scores, both after what was seen.

    Attributes:
        response: of n people.
        designs: m arrays (d_k, K, n): of each predictor the covariates, by the value x.
        released: (K, n) the probability of what a person released, by x.
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
        return sum(map(len, self.designs))

    @property
    def parameter_count(self) -> int:
        """Return P: the coefficients of the response, and those of the law of the true values."""
        return int(self._list_parts()[-1].stop)

    def _list_parts(self) -> list[slice]:
        """List the parameters of each predictor, and of each factor of the law."""
        sizes = [*map(len, self.designs), *(math.prod(one.shape) for one in self.law)]
        ends = np.cumsum(sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def evaluate(self, parameters: FloatArray) -> LikelihoodTerms:
        """Compute the likelihood and its derivatives at (P,) parameters."""
        size = self.parameter_count
        total = 0.0
        scores = np.empty((size, len(self.weights)))
        information = np.zeros((size, size))
        with limit_threads():  # of many products of small matrices
            for people, block in self._blocks:
                seen = block._see(parameters)
                total += float(block.weights @ seen.values)
                scores[:, people] = block._compute_scores(seen)
                information += block._sum_information(seen, scores[:, people])
        return LikelihoodTerms(total, scores, information)

    def compute_complete(self, parameters: FloatArray) -> FloatArray:
        """Compute (P, P) the mean information if the true letters were seen, after what was seen."""
        blocks = (block for _, block in self._blocks)
        return np.asarray(sum(block._sum_complete(block._see(parameters)) for block in blocks))

    @cached_property
    def _blocks(self) -> list[tuple[slice, ObservedLikelihood]]:
        """Return people in blocks whose terms stay in a processor's cache, and their likelihoods."""
        size = max(2**14 // len(self.released), 1)
        slices = (slice(start, start + size) for start in range(0, len(self.weights), size))
        return [(people, self._take(people)) for people in slices]

    def _take(self, people: slice) -> ObservedLikelihood:
        """Return the likelihood of some people."""
        return ObservedLikelihood(
            self.response.take(people),
            [design[..., people] for design in self.designs],
            self.released[:, people],
            [branch.take(people) for branch in self.law],
            self.weights[people],
        )

    def compute_posterior(self, parameters: FloatArray) -> FloatArray:
        """Compute (K, n) the probabilities of the true values, given all that was seen of a person."""
        return np.hstack([block._see(parameters).after for _, block in self._blocks])

    def compute_value(self, parameters: FloatArray) -> float:
        """Compute the weighted sum of the logarithms of people's likelihoods."""
        blocks = (block for _, block in self._blocks)
        return sum(float(block.weights @ block._see(parameters).values) for block in blocks)

    def compute_predictors(self, parameters: FloatArray) -> FloatArray:
        """Compute (m, K, n) the linear predictors at each true value."""
        parts = zip(self.designs, self._list_parts(), strict=False)
        return np.array([np.tensordot(parameters[part], design, 1) for design, part in parts])

    def _see(self, parameters: FloatArray) -> SeenTerms:
        """Compute what is known of people."""
        parts = self._list_parts()[len(self.designs) :]
        response = self.response.evaluate(self.compute_predictors(parameters))
        with np.errstate(divide="ignore"):  # an output that a value never has
            joint = np.log(self.released) + response.values
        laws = []
        for branch, part in zip(self.law, parts, strict=True):
            log_law = branch.compute_logarithms(parameters[part])
            joint += branch.spread(log_law)
            laws.append(np.exp(log_law))
        return SeenTerms(*normalize_logarithms(joint), laws, response)

    def _compute_scores(self, seen: SeenTerms) -> FloatArray:
        """Compute (P, n) the scores of people: the means of complete ones after what was seen."""
        rows = [
            (design * (seen.after * slope)).sum(axis=1)
            for design, slope in zip(self.designs, seen.response.scores, strict=True)
        ]
        for branch, law in zip(self.law, seen.laws, strict=True):
            rows.append(multiply_pairs(branch.compute_apart(seen.after, law), branch.design))
        return np.concatenate(rows)

    def _sum_information(self, seen: SeenTerms, scores: FloatArray) -> FloatArray:
        """Sum (P, P) the information of people with (P, n) scores."""
        information = (scores * self.weights) @ scores.T
        terms = seen.response
        parts = self._list_parts()
        count = len(self.designs)
        shares = self.weights * seen.after
        curved = terms.information - terms.scores[:, None] * terms.scores
        self._add_coefficients(information, shares * curved)
        laws = list(zip(self.law, seen.laws, parts[count:], strict=True))
        for design, slopes, part in zip(self.designs, terms.scores, parts, strict=False):
            _add_mixed(information, part, design * (shares * slopes), laws)
        for k, (branch, law, own) in enumerate(laws):
            apart = self.weights * branch.compute_apart(seen.after, law)
            information[own, own] += _sum_law(branch, law[1:], apart)
            others = [one for one in laws[k + 1 :] if (one[0].membership * branch.membership).any()]
            if others:
                _add_mixed(information, own, branch.compute_scores(law) * shares, others)
        return information

    def _sum_complete(self, seen: SeenTerms) -> FloatArray:
        """Sum (P, P) the complete information of people, which has no products of response and law."""
        complete = np.zeros((self.parameter_count, self.parameter_count))
        shares = self.weights * seen.after
        self._add_coefficients(complete, shares * seen.response.complete)
        parts = self._list_parts()[len(self.designs) :]
        for branch, law, own in zip(self.law, seen.laws, parts, strict=True):
            reached = (branch.membership @ shares) * law[1:]
            products = (
                multiply_pairs(reached, branch.design) @ multiply_pairs(law[1:], branch.design).T
            )
            complete[own, own] += branch.sum_squares(reached) - products
        return complete

    def _add_coefficients(self, matrix: FloatArray, curved: FloatArray) -> None:
        """Add the sums of (m, m, K, n) second derivatives in the predictors times their covariates."""
        parts = self._list_parts()
        for j, one in enumerate(self.designs):
            for k, other in enumerate(self.designs[: j + 1]):
                products = np.tensordot(one * curved[j, k], other, ((1, 2), (1, 2)))
                _add_block(matrix, parts[j], parts[k], products)


def _add_block(matrix: FloatArray, rows: slice, columns: slice, block: FloatArray) -> None:
    """Add a block to a symmetric matrix, and its transpose on the other side of the diagonal."""
    matrix[rows, columns] += block
    if rows != columns:
        matrix[columns, rows] += block.T


def _sum_law(branch: LawBranch, law: FloatArray, apart: FloatArray) -> FloatArray:
    """Sum the information about logits, without the products of their scores.

    With a law l and the letters a after what was seen, less l, complete information less the mean of products
    of complete scores is `-diag(a) + a l' + l a'` times `z z'`.
    """
    products = multiply_pairs(apart, branch.design) @ multiply_pairs(law, branch.design).T
    return products + products.T - branch.sum_squares(apart)


def _add_mixed(
    matrix: FloatArray,
    part: slice,
    moved: FloatArray,
    laws: Iterable[tuple[LawBranch, FloatArray, slice]],
) -> None:
    """Subtract the products of (d, K, n) complete scores, times chances, and those of logits."""
    size, count, people = moved.shape
    for branch, law, own in laws:
        products = (moved.reshape(-1, people) @ branch.design.T).reshape(size, count, -1)
        letters = np.tensordot(products, branch.indicators, (1, 1)).swapaxes(1, 2)
        reached = np.tensordot(moved, branch.membership, (1, 0))
        expected = reached @ multiply_pairs(law[1:], branch.design).T
        _add_block(matrix, part, own, expected - letters.reshape(size, -1))


def maximize_observed(
    likelihood: ObservedLikelihood, start: FloatArray
) -> tuple[FloatArray, LikelihoodTerms]:
    """Maximise the likelihood by Newton steps in a trust region, from a start; also return its terms.

    The covariates are expected to be of order one and not collinear.

    Raises:
        SolverError: the steps did not converge.
    """
    memory: dict[bytes, LikelihoodTerms] = {}

    def evaluate(parameters: FloatArray) -> LikelihoodTerms:
        key = parameters.tobytes()
        if key not in memory:
            memory.clear()
            memory[key] = likelihood.evaluate(parameters)
        return memory[key]

    # of order one: slopes of large counts are never as small as rounding of the values
    people = float(likelihood.weights.sum())
    total = max(people, float(np.diag(evaluate(start).information).max()))

    def compute_gradient(parameters: FloatArray) -> FloatArray:
        return -(evaluate(parameters).scores @ likelihood.weights) / total

    found = optimize.minimize(
        lambda parameters: -evaluate(parameters).value / total,
        start,
        jac=compute_gradient,
        hess=lambda parameters: evaluate(parameters).information / total,
        method="trust-exact",
        options={"gtol": 1e-7, "maxiter": 500},
    )
    parameters = found.x
    slope = np.abs(compute_gradient(found.x)).max()
    if not slope < 1e-5:
        raise SolverError(
            f"the likelihood was not maximised (its slope is {slope:.1g}): leave out covariates, or "
            "values that hardly occur"
        )
    # a region ends where values differ by rounding, and slopes are exact beyond; a logit of a share that is 0
    # moves by 1 in each step until it is flat
    for _ in range(20):
        flat = find_flat_directions(evaluate(parameters).information / people)
        step = flat.inverse @ compute_gradient(parameters) * (total / people)
        parameters = parameters - step
        if np.abs(step).max() < 1e-7:  # the next is of the order of its square
            break
    return np.asarray(parameters), evaluate(parameters)


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
