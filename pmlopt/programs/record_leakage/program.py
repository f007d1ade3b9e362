"""The problem of the largest record leakage for an adversary whose knowledge is bounded by an entropy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pmlopt.data.mechanism import MechanismLike
from pmlopt.model.queries import Query, RecordChannel, record_channel
from pmlopt.programs.program import Program
from pmlopt.programs.record_leakage.adversary import (
    BoundedAdversary,
    build_class_relaxation,
    check_entropy,
)
from pmlopt.programs.record_leakage.certificate import RecordCertificate


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RecordLeakage(Program[RecordCertificate]):
    """The program of the largest leakage of any record, over dataset priors of bounded entropy.

    `problem` is a relaxation for the first kind of records (see `build_class_relaxation`): its optimum is at
    least what a record of that kind leaks. `solve` splits simplices of posteriors, or of class laws, until
    the largest bound of the parts meets what a prior leaks, for every kind.

    Attributes:
        channel: the query and the mechanism, by classes of datasets.
        entropy: b, in nats.

    Source: [wu2026entropy, Problem 1, Definition 2.1]; the reduction and the exact method are pmlopt's.

    Examples:
        >>> from pmlopt import queries
        >>> parity = queries.ModularSum(4, 2)
        >>> program = record_leakage(parity, queries.symmetric_channel(parity, 0.1), 2.0)
        >>> round(float(program.problem.solve(solver="CLARABEL")), 6)  # log 2 - h(0.1): here nothing is lost
        0.368064
    """

    channel: RecordChannel
    entropy: float
    maximised = True
    """The worst prior leaks most."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.entropy:.9g} nats of entropy>"


def record_leakage(query: Query, mechanism: MechanismLike, entropy: float) -> RecordLeakage:
    """Build the problem `L(b) = max_i max_{H(X) >= b} I(X_i; Y)` of a query and mechanism.

    `solve` reduces it to the law J of (X_i, T), T the class of the dataset (see `queries.RecordChannel`),
    without loss and whatever n is. Where little entropy is requested, it is the largest capacity of one class
    of datasets for each letter. Else branch and bound on chords of the convex part of I bounds it from above,
    a local method from below. The result is OPTIMAL where both meet, UNPROVED where the limit on nodes or
    on dimensions ended the search, and LIMIT_REACHED at the time limit; the bound is valid in each case.
    `solver="alternating"` is the method of the paper, which finds local optima and proves no bound.

    A prior that is allowed at b is allowed at every smaller b: for a curve solve from the largest b down,
    each with `warm_start` the result before, and the values never rise with b.

    Args:
        query: the function of the dataset that is released.
        mechanism: q(y|f(x)), a row for each value of the query, or q(y|x), a row for each dataset; see
            `queries.record_channel`.
        entropy: b in nats, from 0 to log |X|, where the dataset is uniform up to the rounding of b.

    Raises:
        PrivacyError: b is negative or above log |X|.
        MechanismError, QueryError: query and mechanism do not fit.

    Source: [wu2026entropy, Problem 1, Definition 2.1].

    Examples:
        >>> from pmlopt import queries, solve
        >>> parity = queries.ModularSum(4, 2)
        >>> mechanism = queries.laplace(parity, 1.0)
        >>> found = solve(record_leakage(parity, mechanism, 2.5))
        >>> round(found.value, 7), found.gap < 1e-7, found.certificate.verify()
        (0.0387008, True, True)
        >>> results = [found]
        >>> for b in (2.0, 1.0):  # the leakage at less and less entropy
        ...     results.append(solve(record_leakage(parity, mechanism, b), warm_start=results[-1]))
        >>> [round(result.value, 6) for result in results]
        [0.038701, 0.079542, 0.079542]
    """
    channel = record_channel(query, mechanism)
    bound = check_entropy(query, entropy)
    # records of one kind leak alike: one of each is enough
    adversary = BoundedAdversary.from_channel(channel, channel.query.kinds[0], bound)
    return RecordLeakage(
        build_model=partial(build_class_relaxation, adversary), channel=channel, entropy=bound
    )
