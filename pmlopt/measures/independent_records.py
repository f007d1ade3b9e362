"""The leakage of a record against adversaries to whom the records are independent."""

from __future__ import annotations

import numpy as np

from pmlopt.measures.channel_capacities import largest_capacity
from pmlopt.mechanism import MechanismLike
from pmlopt.queries.channel import record_channel
from pmlopt.queries.query import Query


def independent_leakage(query: Query, mechanism: MechanismLike) -> tuple[float, float]:
    """The largest leakage of a record to an adversary who knows the records as independent, in nats.

        max over records i, and over product priors of the dataset, of I(X_i; Y)

    which is the largest capacity of a channel from one record, the others fixed. Given independent records
    the channel from X_i is the mean of those over the other records, and I is convex in the channel: the most
    is told where the others are known. It bounds what differential privacy, whose adversaries are these, lets
    through on average, and is at most L(0) of `record_leakage`, whose priors may be dependent.

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
        >>> from pmlopt.queries import ModularSum, Weight, laplace, symmetric_channel
        >>> lower, upper = independent_leakage(ModularSum(4, 2), symmetric_channel(ModularSum(4, 2), 0.1))
        >>> round(lower, 6), round(upper, 6)  # log 2 - h(0.1): the others known, the parity is the record
        (0.368064, 0.368064)
        >>> round(independent_leakage(Weight(8), laplace(Weight(8), 1.0))[1], 6)  # and 0.663531 by dependence
        0.081533
    """
    channel = record_channel(query, mechanism)
    found = []
    for record in channel.query.kinds:
        tuples = channel.classes[channel.query.answers(record)]
        found.append(largest_capacity(channel.rows, np.unique(tuples, axis=0)))
    return max(each.lower for each in found), max(each.upper for each in found)
