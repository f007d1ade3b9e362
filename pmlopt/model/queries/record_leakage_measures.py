"""Information measures of one record and the output, and channel capacities that bound them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, bound_sum_rounding
from pmlopt.core.numbers.roots import bisect_intervals
from pmlopt.data.mechanism import MechanismLike
from pmlopt.measures.leakage import mutual_information
from pmlopt.model.queries.channel import record_channel
from pmlopt.model.queries.query import Query

ROUGH_ITERATIONS, FINE_ITERATIONS = 30, 3_000
"""Of Blahut-Arimoto, on all channels, and on those of more than two inputs that may have the largest."""


@dataclass(frozen=True, eq=False)
class MaxCapacity:
    """The largest capacity over channels made of tuples of rows.

    Attributes:
        lower, upper: in nats: reached by `prior` on each channel of `best`, and never exceeded.
        best: (L,) the places of the tuples whose capacity is within `near_capacity` of the largest.
        priors: (L, A) the best law of the input of each.
        laws: (R, M) laws of the output: for each tuple there is one from which the divergence of each of its
            rows is at most `upper`, which is therefore above its capacity.
    """

    lower: float
    upper: float
    best: IntArray
    priors: FloatArray
    laws: FloatArray


def compute_max_capacity(rows: FloatArray, tuples: IntArray) -> MaxCapacity:
    """Compute the largest capacity of the channels with rows `rows[t_0], ..., rows[t_(A-1)]` over tuples t.

    Blahut-Arimoto on all at once; `I(p) <= C <= max_a D(W_a || p W)` for every law p of the input drops those
    that cannot be the largest. For two inputs the root of `D(W_0 || pW) - D(W_1 || pW)`, by bisection.

    Args:
        rows: (T, M) laws.
        tuples: (K, A) which rows each channel has.

    Source: [arimoto1972algorithm], [blahut1972computation].

    Examples:
        >>> rows = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
        >>> found = compute_max_capacity(rows, np.array([[0, 1], [0, 2], [1, 2]]))  # log 2 - h(0.1)
        >>> round(found.lower, 9), round(found.upper, 9), found.best.tolist(), found.laws.round(6).tolist()
        (0.368064207, 0.368064207, [1], [[0.5, 0.5]])
    """
    channels = rows[tuples]
    priors = np.full(tuples.shape, 1 / tuples.shape[1])
    # nats; channels this near to the largest capacity are kept, and one of them is chosen by other means
    near_capacity = 1e-9
    left = np.arange(len(tuples))
    for step in range(ROUGH_ITERATIONS + FINE_ITERATIONS):
        found, _ = compute_divergences(channels[left], priors[left])
        known = (priors[left] * found).sum(axis=1)
        # the others cannot have the largest capacity
        kept = found.max(axis=1) >= known.max() - near_capacity
        left = left[kept]
        found = found[kept]
        known = known[kept]
        rough = step < ROUGH_ITERATIONS
        # Nats; nearer to the capacity an input law is not changed.
        if (found.max(axis=1) - known).max() <= 1e-14:
            break
        if not rough and tuples.shape[1] == 2:
            priors[left] = _bisect_input_laws(channels[left])
            break
        if not rough and found.max() - known.max() <= near_capacity / 10:
            break
        moved = priors[left] * np.exp(found - found.max(axis=1, keepdims=True))
        priors[left] = np.maximum(moved / moved.sum(axis=1, keepdims=True), 1e-300)
    found, laws = compute_divergences(channels, priors)
    informations = (priors * found).sum(axis=1)
    size = bound_sum_rounding(
        rows.shape[1] + 2, 1 + float(np.abs(np.log(laws[laws > 0])).max(initial=0.0))
    )
    upper = float(found.max(axis=1)[left].max()) + size
    lower = float(informations[left].max())
    best = left[informations[left] >= lower - near_capacity]
    order = np.concatenate([best[:1], left, np.arange(len(tuples))])
    proof = _choose_covering_laws(rows, tuples, laws, order, upper - size / 2)
    return MaxCapacity(max(0.0, lower - size), upper, best, priors[best], proof)


def compute_divergences(channels: FloatArray, priors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the (..., A) divergences of channel rows from the output law, and the (..., M) output law."""
    laws = (priors[..., None, :] @ channels)[..., 0, :]
    ratios = np.where(channels > 0, channels / np.maximum(laws, 1e-300)[..., None, :], 1.0)
    return (channels * np.log(ratios)).sum(axis=-1), laws


def _bisect_input_laws(channels: FloatArray) -> FloatArray:
    """Find the (K, 2) capacity-achieving input laws of binary-input channels by bisection."""

    def compute_laws(first: FloatArray) -> FloatArray:
        return np.stack([first, 1 - first], axis=1)

    def is_further(first: FloatArray) -> BoolArray:
        return np.asarray(np.subtract(*compute_divergences(channels, compute_laws(first))[0].T) > 0)

    return compute_laws(
        np.mean(
            bisect_intervals(is_further, np.zeros(len(channels)), np.ones(len(channels))), axis=0
        )
    )


def is_covered(rows: FloatArray, tuples: IntArray, law: FloatArray, bound: float) -> BoolArray:
    """Return (K,) whether every row of a channel is within a divergence bound of a law.

    Examples:
        >>> is_covered(np.eye(2), np.array([[0, 1]]), np.array([0.5, 0.5]), 0.7).tolist()  # log 2 = 0.693
        [True]
    """
    beyond = (rows > 0) & (law <= 0)
    ratios = np.where((rows > 0) & ~beyond, rows / np.where(law > 0, law, 1.0), 1.0)
    near = ((rows * np.log(ratios)).sum(axis=1) <= bound) & ~beyond.any(axis=1)
    return np.asarray(near[tuples].all(axis=1))


def _choose_covering_laws(
    rows: FloatArray, tuples: IntArray, laws: FloatArray, order: IntArray, bound: float
) -> FloatArray:
    """Choose output laws that prove the capacity bound for every tuple of rows."""
    missing = np.ones(len(tuples), dtype=bool)
    chosen = []
    for place in order.tolist():
        if missing[place]:
            chosen.append(place)
            missing &= ~is_covered(rows, tuples, laws[place], bound)
            missing[place] = False
    return laws[chosen]


def compute_record_information(joint: FloatArray, rows: FloatArray) -> float:
    """Compute the mutual information of a record and the output, I(X_i; Y), in nats.

    (X_i, T) has the law J, and Y given T = t the row W[t].

    Args:
        joint: (A, T) J.
        rows: (T, M) W.

    Examples:
        >>> import math
        >>> round(math.exp(compute_record_information(np.eye(2) / 2, np.eye(2))), 12)
        2.0
    """
    letters = joint.sum(axis=1)
    used = letters > 1e-300
    laws = joint[used] @ rows / letters[used, None]
    return mutual_information(letters[used] / letters.sum(), laws / laws.sum(axis=1, keepdims=True))


def compute_dataset_entropy(joint: FloatArray, log_counts: FloatArray) -> float:
    """Compute the entropy H(X) = H(J) + sum_{a,t} J log c of a dataset uniform in each cell (a, t), in nats.

    It is the most that a dataset's entropy can be for this law of (X_i, T).

    Args:
        joint: (A, T) J, zero where a cell is empty.
        log_counts: (A, T) log c; -inf for an empty cell.

    Examples:
        >>> import math
        >>> round(
        ...     math.exp(compute_dataset_entropy(np.full((2, 2), 0.25), np.log([[4.0, 4.0], [4.0, 4.0]]))),
        ...     9,
        ... )
        16.0
    """
    used = joint > 0
    return float(joint[used] @ (log_counts[used] - np.log(joint[used])))


def allows_only_uniform(entropy: float, log_size: float) -> bool:
    """Return whether an entropy b allows only the uniform dataset: log |X|, up to the spacing of floats.

    Examples:
        >>> allows_only_uniform(np.log(16), np.log(16)), allows_only_uniform(np.log(16) - 1e-14, np.log(16))
        (True, False)
    """
    return bool(log_size - entropy <= 4 * np.spacing(log_size))


def compute_negative_entropies(laws: FloatArray) -> FloatArray:
    """Compute the negative entropy sum_y v[y] log v[y] of each row v, (K,) in nats.

    Examples:
        >>> compute_negative_entropies(np.array([[1.0, 0.0], [0.5, 0.5]])).round(6).tolist()
        [0.0, -0.693147]
    """
    return np.asarray((laws * np.log(np.where(laws > 0, laws, 1.0))).sum(axis=-1))


def independent_leakage(query: Query, mechanism: MechanismLike) -> tuple[float, float]:
    """Compute the largest leakage of a record to an adversary who knows the records as independent, in nats.

        max over records i, and over product priors of the dataset, of I(X_i; Y)

    which is the largest capacity of a channel from one record, the others fixed. Given independent records
    the channel from X_i is the mean of those over the other records, and I is convex in the channel: the most
    is revealed where the others are known. It bounds what differential privacy, whose adversaries are these,
    lets through on average, and is at most L(0) of `record_leakage`, whose priors may be dependent.

    Args:
        query: f.
        mechanism: q(y|f(x)), a row for each value of the query, or q(y|x), a row for each dataset; see
            `record_channel`.

    Returns:
        The leakage from below and above, in nats.

    Raises:
        MechanismError, QueryError: query and mechanism do not fit, or an explicit query has more than 2^20
            datasets.

    Source: [wu2026entropy, equation (1)], with the product distributions as the set of priors.

    Examples:
        >>> from pmlopt.model.queries import ModularSum, Weight, laplace, symmetric_channel
        >>> lower, upper = independent_leakage(ModularSum(4, 2), symmetric_channel(ModularSum(4, 2), 0.1))
        >>> round(lower, 6), round(upper, 6)  # log 2 - h(0.1): the others known, the parity is the record
        (0.368064, 0.368064)
        >>> round(independent_leakage(Weight(8), laplace(Weight(8), 1.0))[1], 6)  # and 0.663531 by dependence
        0.081533
    """
    channel = record_channel(query, mechanism)
    found = []
    for record in channel.query.exchangeable:
        tuples = channel.classes[channel.query.list_answers(record)]
        found.append(compute_max_capacity(channel.rows, np.unique(tuples, axis=0)))
    return max(each.lower for each in found), max(each.upper for each in found)
