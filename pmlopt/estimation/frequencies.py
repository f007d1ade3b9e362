"""Frequencies of the inputs from the outputs that were released, with their errors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from pmlopt.arrays import FloatArray, IntArray, Label, real
from pmlopt.errors import InputError
from pmlopt.estimation.estimable import estimable
from pmlopt.estimation.likelihood import most_likely
from pmlopt.estimation.linear_weights import unbiased_weights, weighted_covariance
from pmlopt.estimation.observed import Counts, observed
from pmlopt.estimation.simultaneous_intervals import exact_intervals, wald_intervals
from pmlopt.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.releases.joint import compose_attributes
from pmlopt.utility.workloads import Workload, workload_matrix

Estimator = Literal["ml", "linear"]
Intervals = Literal["exact", "wald"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Frequencies of the inputs, or combinations of them, estimated from counts of outputs.

    Attributes:
        letters: the K inputs; the rows of the workload by their number where there is one.
        frequencies: (K,) the estimates W f.
        covariance: (K, K) of the estimates.
        people: n.
        confidence: with which the intervals hold together.
        method, kind: of the estimates and of the intervals.
    """

    letters: tuple[Label, ...]
    frequencies: FloatArray
    covariance: FloatArray
    people: int
    confidence: float
    method: Estimator
    kind: Intervals
    mechanism: Mechanism = field(repr=False)
    counts: IntArray = field(repr=False)
    combinations: FloatArray = field(repr=False)

    @property
    def standard_errors(self) -> FloatArray:
        """(K,) the square roots of the variances."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def totals(self) -> FloatArray:
        """(K,) the estimates as numbers of people, or as sums over them: n times the frequencies."""
        return np.asarray(self.people * self.frequencies)

    @cached_property
    def intervals(self) -> FloatArray:
        """(K, 2) intervals that hold all the true values at once, with the confidence asked for."""
        if self.kind == "wald":
            return wald_intervals(self.frequencies, self.covariance, self.confidence)
        law = _smoothed(self.mechanism.matrix, self.counts)
        weights = unbiased_weights(self.mechanism.matrix, self.combinations, law)
        return exact_intervals(
            self.mechanism.matrix, self.counts, self.combinations, weights, self.confidence
        )


def estimate(
    mechanism: MechanismLike,
    counts: Counts | None = None,
    method: Estimator = "ml",
    confidence: float = 0.95,
    *,
    released: Iterable[Label] | None = None,
    workload: Workload = None,
    intervals: Intervals = "exact",
) -> Estimate:
    """Estimate the frequencies of the inputs of a mechanism from the outputs that it released.

    n people have inputs drawn independently from frequencies f, and each releases one output Y of law
    `q = f P`, on its own.

    - "ml" maximises the likelihood `sum_y c[y] log (f P)[y]` over f >= 0, sum f = 1. Its covariance is
      `W (J^-1 - f f') W' / n` with the Fisher information `J = P diag(1/q) P'`.
    - "linear" is `V c / n` with weights that make it unbiased for every f, `V P' = W`, and best where f is
      uniform. Its covariance is `V (diag q - q q') V' / n`. Estimates may be negative.

    Covariances are taken at a law to which half a person was added: of each input ("ml"), of each output that
    can occur ("linear"), so that what was not seen is not claimed to be certain.

    Args:
        mechanism: (N, M).
        counts: of the outputs: a mapping from output to count, a pandas Series with its index (as of
            `value_counts`), a table of two columns, output and count, or M counts in a list.
        method: "ml" or "linear".
        confidence: with which `intervals` hold all true values at once, in (0, 1).
        released: the released column in place of the counts, one output for each person.
        workload: what is estimated: a (K, N) matrix W of combinations W f, a frame with the letters in its
            columns, or the name of one, such as "prefix" or "mean" (`pmlopt.utility.workload_matrix`); left
            out, the N frequencies.
        intervals: "exact", for any number of people (Clopper-Pearson and duality), or "wald", which are
            shorter and for many people.

    Raises:
        MechanismError: the mechanism's rank does not allow what is asked for, and the message says what it
            allows; or an output is unknown.
        PriorError: a count is negative or not a whole number, or there are no people.
        UtilityError: the workload does not fit the letters.
        InputError: the confidence is outside (0, 1), or an option is unknown.

    Source: [ye2018optimal] (frequencies from a privatised sample); [clopper1934confidence].

    Examples:
        >>> from pmlopt import Mechanism, estimate
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> found = estimate(response, {"no": 600, "yes": 400})
        >>> found.frequencies.round(9), found.standard_errors.round(4)
        (array([0.7, 0.3]), array([0.031, 0.031]))
        >>> estimate(response, released=["no", "no", "yes"], method="linear").frequencies.round(9)
        array([0.83333333, 0.16666667])
        >>> estimate([[0.5, 0.5], [0.5, 0.5]], [6, 4])
        Traceback (most recent call last):
        ...
        pmlopt.errors.MechanismError: the mechanism has rank 1 for 2 letters: row 0 of the workload cannot be
        estimated from its output, and the frequency of no single letter; what can be is
        `estimable(mechanism).basis`, as a workload
    """
    m = as_mechanism(mechanism)
    share = confidence_of(confidence)
    if method not in get_args(Estimator):
        raise InputError(f"the method {method!r} is not known: use 'ml' or 'linear'")
    if intervals not in get_args(Intervals):
        raise InputError(f"the intervals {intervals!r} are not known: use 'exact' or 'wald'")
    combinations = workload_matrix(workload, m.inputs)
    seen = observed(m, counts, released)
    estimable(m).check(combinations)
    people = int(seen.sum())
    if method == "ml":
        values, covariance = _maximum_likelihood(m.matrix, seen, combinations)
    else:
        weights = unbiased_weights(m.matrix, combinations, m.matrix.mean(axis=0))
        values = weights @ seen / people
        covariance = weighted_covariance(weights, _smoothed(m.matrix, seen), people)
    return Estimate(
        letters=m.inputs if workload is None else tuple(range(len(combinations))),
        frequencies=values,
        covariance=covariance,
        people=people,
        confidence=share,
        method=method,
        kind=intervals,
        mechanism=m,
        counts=seen,
        combinations=combinations,
    )


def cross_mechanism(first: MechanismLike, second: MechanismLike | Sequence[Label]) -> Mechanism:
    """The mechanism of pairs: two columns released independently, or one released and one left clear.

    The Kronecker product `P[(a, b), (y, z)] = P1[a, y] P2[b, z]`, labelled by pairs. `estimate` of it takes
    counts of pairs of outputs and gives the cross table of the inputs, row by row:
    `found.frequencies.reshape(N1, N2)`.

    Args:
        first: (N1, M1).
        second: (N2, M2), or the N2 labels of a column that is left clear.

    Raises:
        MechanismError: it is neither, or the product is too large to list.

    Examples:
        >>> import numpy as np
        >>> from pmlopt import Mechanism, estimate
        >>> smokes = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> pairs = cross_mechanism(smokes, ["f", "m"])
        >>> counts = {("no", "f"): 300, ("yes", "f"): 200, ("no", "m"): 200, ("yes", "m"): 300}
        >>> estimate(pairs, counts).frequencies.reshape(2, 2).round(9)
        array([[0.35, 0.15],
               [0.15, 0.35]])
    """
    return compose_attributes([as_mechanism(first), _clear_or_released(second)])


def _clear_or_released(column: MechanismLike | Sequence[Label]) -> Mechanism:
    """A mechanism as it is; of labels the one that releases each as it is."""
    if isinstance(column, Mechanism | str) or not isinstance(column, Iterable):
        return as_mechanism(column)
    names: tuple[Any, ...] = tuple(column)
    if not all(isinstance(name, Hashable) for name in names):  # rows of a matrix
        return as_mechanism(column)  # type: ignore[arg-type]
    return Mechanism(np.eye(len(names)), names, names)


def confidence_of(value: float) -> float:
    """Check a confidence in (0, 1), and return it as a float."""
    share = real(value, "the confidence", InputError)
    if not 0 < share < 1:
        raise InputError(f"the confidence is {share:g}: give a probability in (0, 1), such as 0.95")
    return share


def _maximum_likelihood(
    matrix: FloatArray, counts: IntArray, combinations: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The combinations of the most likely frequencies, and their covariance."""
    people = int(counts.sum())
    f = most_likely(matrix, counts.astype(float))
    law = (people * f + 0.5) / (people + len(f) / 2) @ matrix
    weights = unbiased_weights(matrix, combinations, law)
    return combinations @ f, weighted_covariance(weights, law, people)


def _smoothed(matrix: FloatArray, counts: IntArray) -> FloatArray:
    """(M,) the shares of the outputs with half a person added to each that can occur."""
    more = counts + 0.5 * (matrix.max(axis=0) > 0)
    return np.asarray(more / more.sum())
