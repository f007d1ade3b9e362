"""Closed-form mechanisms and least errors for frequency estimation under a uniform prior."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from pmlopt.core.numbers.arrays import check_integer, check_nonnegative
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import PrivacyError


def subset_selection(size: int, chosen: int, epsilon: float) -> Mechanism:
    """Build subset selection: outputs are d-subsets, e^eps times likelier when they contain the input.

    Within epsilon-LDP. d = 1 is randomized response.

    Args:
        size: N, the number of letters.
        chosen: d, from 1 to N - 1.
        epsilon: in nats.

    Raises:
        PrivacyError: d is not from 1 to N - 1, epsilon is negative, or there are too many sets.

    Source: [ye2018optimal, Section III].

    Examples:
        >>> subset_selection(3, 2, math.log(2)).matrix
        array([[0.4, 0.4, 0.2],
               [0.4, 0.2, 0.4],
               [0.2, 0.4, 0.4]])
    """
    # Outputs up to which subset selection is written as a matrix.
    most_subsets = 200_000
    n = _check_size(size)
    d = check_integer(chosen, "the size of the sets", PrivacyError)
    down = math.exp(-check_nonnegative(epsilon, "epsilon", PrivacyError))
    if d >= n:
        raise PrivacyError(
            f"sets of {d} of {n} letters reveal nothing: give a size from 1 to {n - 1}"
        )
    if math.comb(n, d) > most_subsets:
        raise PrivacyError(
            f"there are {math.comb(n, d):,} sets of {d} of {n} letters: at most {most_subsets:,}"
        )
    sets = list(combinations(range(n), d))
    inside = np.array([[x in chosen_set for chosen_set in sets] for x in range(n)])
    matrix = np.where(inside, 1.0, down)
    return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), outputs=sets)


def least_ldp_estimation_error(size: int, epsilon: float) -> float:
    """Compute the least error of estimated frequencies within epsilon-LDP at the uniform prior.

    `(N-1)^2 / (N (e^eps - 1)^2) min_d (d e^eps + N - d)^2 / (d (N - d))`, inf where that is above the largest
    float; n times the summed variance of the
    efficient estimator, reached by subset selection.

    Args:
        size: N, at least 2.
        epsilon: in nats, positive.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [ye2018optimal, Section III].

    Examples:
        >>> round(least_ldp_estimation_error(6, 1.0), 4)
        15.7086
    """
    n = _check_size(size)
    level = _check_epsilon(epsilon)
    # In nats: from there on the secret itself is released up to the precision of floats.
    rest = n / math.expm1(min(level, 700.0))  # d e^eps + N - d is d (e^eps - 1) + N
    lengths = ((d + rest) / math.sqrt(d * (n - d)) for d in range(1, n))
    root = (n - 1) / math.sqrt(n) * min(lengths)
    return root * root


def least_pml_estimation_error(size: int, epsilon: float) -> float:
    """Compute the least error of estimated frequencies within epsilon-PML at the uniform prior.

    `(N-1)^2 / (s e^(2 eps) + r^2 - N)` with s = floor(N e^-eps) and r = N - s e^eps, n times the summed
    variance of the efficient estimator: an extreme column has s letters at e^eps and one at r, which is as
    long as a column can be, and all such columns used alike make the best design. From eps = log N on the
    secret itself is released.

    Args:
        size: N, at least 2.
        epsilon: in nats, positive.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: the trace of J is at most the largest squared length of a column, its eigenvalue of the constant
    is N, and `tr J^-1` is least where the others are equal.

    Examples:
        >>> round(least_pml_estimation_error(6, 1.0), 5), round(least_pml_estimation_error(6, 2.0), 5)
        (2.74859, 0.83333)
    """
    n = _check_size(size)
    level = min(_check_epsilon(epsilon), math.log(_check_size(size)))
    grown = math.expm1(level)
    full = min(n - 1, math.floor(n * math.exp(-level) * (1 + 1e-14)))
    empty = n - 1 - full
    # of a column less one, over e^eps - 1: s letters at 1, one at r - 1 >= -1, and the others at -1
    last = max(-1 / grown, empty / grown - full)
    root = (n - 1) / grown / math.sqrt(full + last * last + empty / grown / grown)
    return root * root


def _check_size(size: int) -> int:
    """Validate a number of at least two letters."""
    n = check_integer(size, "the size of the alphabet", PrivacyError)
    if n < 2:
        raise PrivacyError("one letter has the frequency one: give two letters or more")
    return n


def _check_epsilon(epsilon: float) -> float:
    """Validate a positive level."""
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    if level == 0:
        raise PrivacyError("epsilon is 0: nothing can be estimated; give a positive one")
    return level
