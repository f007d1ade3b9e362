"""Alternating optimisation of a record's leakage over all datasets, with restarts: local optima.

Source: [wu2026entropy, Algorithm 1].
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from pmlopt.core.lazy_imports import optimize, special
from pmlopt.core.numbers.arrays import FloatArray, IntArray, check_integer
from pmlopt.core.numbers.roots import bisect
from pmlopt.data.sampling.categorical import make_generator
from pmlopt.errors import PrivacyError, SolverUnavailableError
from pmlopt.model.queries import Query
from pmlopt.model.queries.record_leakage_measures import compute_divergences
from pmlopt.programs.program import MethodResult
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.exact_leakage import get_array_name
from pmlopt.programs.record_leakage.program import RecordLeakage
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline, MethodOptions


def compute_entropies(rows: FloatArray) -> FloatArray:
    """Compute the entropy of each row, in nats."""
    # xlogy is 0 at 0: rows may have zeros
    return np.asarray(-special.xlogy(rows, rows).sum(axis=-1))


def compute_output_laws(others: FloatArray, channel: FloatArray) -> FloatArray:
    """Compute (A, M) p(y|x_i), [wu2026entropy, eq. (12)].

    (12)].
    """
    return np.asarray(np.einsum("ar,arm->am", others, channel))


def compute_information(letters: FloatArray, laws: FloatArray) -> float:
    """Compute the mutual information I(X_i; Y) under the joint law, in nats."""
    return float(letters @ compute_divergences(laws, letters)[0])


def compute_conditional_gradient(
    letters: FloatArray, laws: FloatArray, channel: FloatArray
) -> FloatArray:
    """Compute (A, R) the derivative of I(X_i; Y) in p(x_-i|x_i).

    The printed gradient, [wu2026entropy, eq. (37)], has two terms more: they are those of one letter only,
    and cancel against those of the others once the sum over all letters is kept.

    Examples:
        >>> channel = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
        >>> laws = compute_output_laws(np.array([[1.0, 0.0], [1.0, 0.0]]), channel)
        >>> compute_conditional_gradient(np.array([0.5, 0.5]), laws, channel).round(6).tolist()
        [[0.184032, -0.694858], [0.184032, -0.694858]]
    """
    mean = letters @ laws
    tiny = np.finfo(float).tiny
    # where a law is 0 so is its weight in the sum: tiny only avoids 0 times inf
    logs = np.log(np.maximum(laws, tiny)) - np.log(np.maximum(mean, tiny))
    return np.asarray(letters[:, None] * np.einsum("arm,am->ar", channel, logs))


def optimize_marginal(
    letters: FloatArray,
    laws: FloatArray,
    inner: FloatArray,
    entropy: float,
    *,
    rate: float = 0.1,
    tolerance: float = 1e-9,
    iterations: int = 5_000,
) -> FloatArray:
    """Optimize the record's marginal within the entropy bound by a modified Blahut-Arimoto iteration.

    The printed stopping rule looks at I only, which stops changing before the entropy is met: here it also
    waits for the multiplier to settle, and a law that is short of entropy is drawn towards its start. It
    starts from p(x_i), (A,), within the bound; laws are p(y|x_i), (A, M), inner is H(X_-i | x_i), (A,).

    Source: [wu2026entropy, Section 3.1.1, eq. (15), Algorithm 2].

    Examples:
        >>> laws = np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> optimize_marginal(np.array([0.3, 0.7]), laws, np.zeros(2), 0.0).round(4).tolist()
        [0.5, 0.5]
    """
    price = 0.0
    law = np.maximum(letters, 1e-300)
    value = -math.inf
    for _ in range(iterations):
        # Blahut-Arimoto with a multiplier of the entropy constraint as its price
        scores = (compute_divergences(laws, law)[0] + price * (inner - np.log(law))) / (1 + price)
        # multiplicative update, shifted by the largest exponent against overflow
        law = law * np.exp(scores - scores.max())
        # an entry of 0 would never recover under multiplication
        law = np.maximum(law / law.sum(), 1e-300)
        before = price
        price = max(0.0, price - rate * (float(compute_entropies(law) + law @ inner) - entropy))
        last = value
        value = compute_information(law, laws)
        if abs(value - last) < tolerance and abs(price - before) < tolerance:
            break
    return mix_until_allowed(law, letters, inner, entropy)


def mix_until_allowed(
    law: FloatArray, towards: FloatArray, inner: FloatArray, entropy: float
) -> FloatArray:
    """Mix a law with a feasible one, just enough for `H(law) + <law, inner> >= b`."""

    def mix_with_share(weight: float) -> FloatArray:
        return weight * towards + (1 - weight) * law

    def has_enough_entropy(weight: float) -> bool:
        return (
            float(compute_entropies(mix_with_share(weight)) + mix_with_share(weight) @ inner)
            >= entropy
        )

    return mix_with_share(
        0.0 if has_enough_entropy(0.0) else bisect(has_enough_entropy, 0.0, 1.0, 1e-15)
    )


def project_to_simplex(vector: FloatArray) -> FloatArray:
    """Project a vector to the probability simplex, in Euclidean distance: [wu2026entropy, Algorithm 4].

    Examples:
        >>> project_to_simplex(np.array([0.5, 1.2, -0.3])).round(9).tolist()
        [0.15, 0.85, 0.0]
    """
    # KKT: the projection is max(v - tau, 0), tau from the largest entries that stay positive
    falling = np.sort(vector)[::-1]
    thresholds = (np.cumsum(falling) - 1) / np.arange(1, len(vector) + 1)
    # thresholds are passed by a prefix of the sorted entries: the last one that does counts
    kept = int(np.flatnonzero(falling > thresholds)[-1])
    return np.asarray(np.maximum(vector - thresholds[kept], 0.0))


def project_to_entropy(vector: FloatArray, entropy: float, tolerance: float = 1e-12) -> FloatArray:
    """Return the softmax of a scaled vector, with the scale chosen to give an entropy t.

    It is the law w that has the largest `<vector, w>` among those of entropy t or more. Where several
    entries are the largest, no multiple has less entropy than the logarithm of their number: the law of that
    entropy is returned.

    Source: [wu2026entropy, Algorithm 5].

    Examples:
        >>> law = project_to_entropy(np.array([3.0, 1.0, 1.0]), 0.9)
        >>> law.round(6).tolist(), round(float(compute_entropies(law)), 9)
        ([0.642317, 0.178841, 0.178841], 0.9)
    """
    is_law = vector.min() >= 0 and abs(vector.sum() - 1) < 1e-9
    if is_law and abs(float(compute_entropies(vector)) - entropy) < tolerance:
        return vector
    # shifted to at most 0, so that exponents cannot overflow
    away = vector - vector.max()
    spread = float(-away.min())
    # equal entries, or the entropy of the uniform law: the softmax is uniform
    if spread <= 0 or entropy >= math.log(len(vector)):
        return np.full(len(vector), 1 / len(vector))

    def compute_softmax(log_inverse: float) -> FloatArray:
        weights = np.exp(math.exp(log_inverse) / spread * away)
        return np.asarray(weights / weights.sum())

    def compute_surplus(log_inverse: float) -> float:
        return float(compute_entropies(compute_softmax(log_inverse))) - entropy

    # the largest inverse temperature, over the spread of the vector
    low = -20.0
    high = math.log(1e12)
    if compute_surplus(high) >= 0:
        return compute_softmax(high)
    if compute_surplus(low) <= 0:
        return compute_softmax(low)
    root = float(optimize.brentq(compute_surplus, low, high, xtol=1e-11))
    while compute_surplus(root) < 0:  # on the side that is allowed
        root -= 1e-11
    return compute_softmax(root)


def optimize_conditionals(
    letters: FloatArray,
    others: FloatArray,
    channel: FloatArray,
    entropy: float,
    *,
    step: float = 100.0,
    shrink: float = 0.5,
    inner: int = 12,
    tolerance: float = 1e-9,
    iterations: int = 20,
) -> FloatArray:
    """Increase the leakage by projected gradient ascent in the rows p(x_-i|x_i), one after the other.

    A row whose letter never occurs, or that needs no entropy, becomes the unit vector that leaks most;
    another takes a gradient step, projected on the simplex and on the entropy, that is kept where I does not
    fall. Letters are p(x_i), (A,), others the rows to start from, (A, R), the channel q(y|x), (A, R, M).

    The first step eta_0, which the paper leaves open, is large: I is convex in a row, so that the law of
    entropy c with the largest product with the gradient, the limit of large steps, leaks no less than the
    row, while a small step often is not kept, for Algorithm 5 moves even a step of zero.

    Source: [wu2026entropy, Section 3.1.2, Algorithm 3], with the gradient corrected.
    """
    others = others.copy()
    laws = compute_output_laws(others, channel)
    needs = entropy - float(compute_entropies(letters))
    value = compute_information(letters, laws)
    for _ in range(iterations):
        before = value
        for k, mass in enumerate(letters):
            held = compute_entropies(others)
            wanted = -math.inf
            if mass > 0:
                wanted = (needs - float(letters @ held - mass * held[k])) / float(mass)
            # no entropy is needed: I is convex in the row, so that an extreme point is best
            if wanted <= 0:
                best = _find_best_unit(letters, laws, channel, k)
                others[k] = np.eye(len(others[k]))[best]
                laws[k] = channel[k, best]
                value = compute_information(letters, laws)
                continue
            gradient = compute_conditional_gradient(letters, laws, channel)[k]
            size = step
            for _ in range(inner):
                # first the simplex, then the entropy: the latter takes a law
                near = project_to_simplex(others[k] + size * gradient)
                moved = project_to_entropy(near, min(wanted, math.log(len(gradient))))
                tried = laws.copy()
                tried[k] = moved @ channel[k]
                found = compute_information(letters, tried)
                if found >= value:
                    others[k] = moved
                    laws = tried
                    value = found
                    break
                size *= shrink
        if value - before <= tolerance:
            break
    return others


def find_best_units(letters: FloatArray, channel: FloatArray) -> FloatArray:
    """Find by enumeration the (A, R) deterministic conditionals of largest joint leakage.

    Where there are more than 200,000 combinations, one row after the other from the best of the first.
    """
    # datasets of one class have the same row: one of each is enough
    rows = [np.unique(part, axis=0, return_index=True) for part in channel]
    if math.prod(len(distinct) for distinct, _ in rows) <= 200_000:
        places = np.indices([len(distinct) for distinct, _ in rows]).reshape(len(rows), -1)
        laws = np.stack(
            [distinct[at] for (distinct, _), at in zip(rows, places, strict=True)], axis=1
        )
        mean = np.einsum("a,cam->cm", letters, laws)
        best = places[
            :, int((compute_entropies(mean) - compute_entropies(laws) @ letters).argmax())
        ]
        chosen = [int(first[at]) for (_, first), at in zip(rows, best, strict=True)]
    else:
        chosen = [int(first[0]) for _, first in rows]
        laws = np.stack([part[at] for part, at in zip(channel, chosen, strict=True)])
        for k in [*range(len(letters))] * 2:
            chosen[k] = _find_best_unit(letters, laws, channel, k)
            laws[k] = channel[k, chosen[k]]
    return np.eye(channel.shape[1])[chosen]


def _find_best_unit(letters: FloatArray, laws: FloatArray, channel: FloatArray, k: int) -> int:
    """Find the dataset for one letter that maximises the leakage, the others fixed."""
    # (R, M): the law of Y for each candidate row of letter k, by swapping one term
    mean = letters @ laws - letters[k] * laws[k] + letters[k] * channel[k]
    return int((compute_entropies(mean) - letters[k] * compute_entropies(channel[k])).argmax())


@dataclass(frozen=True)
class LocalOptimum:
    """A locally optimal dataset prior, with the record of largest leakage."""

    value: float
    prior: FloatArray
    record: int


@dataclass(frozen=True)
class AlternatingRun:
    """A run of Algorithm 1 on one mechanism.

    Attributes:
        table: (k_1, ..., k_n) the class of every dataset.
        rows: (k_1, ..., k_n, M) its row.
        entropy: b, in nats.
        tolerance: the rise of the leakage in a round, in nats, at which to stop.
        deadline: after which the current step is the last.
        first: (k_1, ..., k_n) a prior within the entropy bound to start from; left out, a random one.
    """

    table: IntArray
    rows: FloatArray
    entropy: float
    tolerance: float
    deadline: Deadline = NO_DEADLINE
    first: FloatArray | None = None

    def run(self, random: np.random.Generator) -> LocalOptimum:
        """Run the alternating steps from one random prior until no record's step improves."""
        best = LocalOptimum(
            -math.inf, self._draw_start(random) if self.first is None else self.first, -1
        )
        # rounds end when one gains less than the tolerance, and at the latest after 60
        for _ in range(60):
            last = best.value
            for record in range(self.table.ndim):
                tried = self._optimize_record(best.prior, record)
                if tried.value > best.value:
                    best = tried
                if self.deadline.expired:
                    return best
            if best.value - last < self.tolerance:
                break
        return best

    def _optimize_record(self, prior: FloatArray, record: int) -> LocalOptimum:
        """Update the marginal, then the conditionals of one record."""
        size = self.table.shape[record]
        joint = np.moveaxis(prior, record, 0).reshape(size, -1)
        # (A, R, M): letters of the record, datasets of the others, outputs
        channel = np.moveaxis(self.rows, record, 0).reshape(size, joint.shape[1], -1)
        letters = joint.sum(axis=1)
        # a letter of probability 0 has no conditional law: the uniform one is used
        known = letters[:, None] > 0
        others = np.where(known, joint / np.where(known, letters[:, None], 1.0), 1 / joint.shape[1])
        accuracy = self.tolerance / 10
        laws = compute_output_laws(others, channel)
        inner = compute_entropies(others)
        letters = optimize_marginal(letters, laws, inner, self.entropy, tolerance=accuracy)
        # H(X) = H(X_i) + H(X_-i | X_i): the letters may already have all the entropy needed
        if self.entropy > float(compute_entropies(letters)):
            others = optimize_conditionals(
                letters, others, channel, self.entropy, tolerance=accuracy
            )
        else:
            others = find_best_units(letters, channel)
        value = compute_information(letters, compute_output_laws(others, channel))
        shape = (size, *(k for place, k in enumerate(self.table.shape) if place != record))
        moved = np.moveaxis((letters[:, None] * others).reshape(shape), 0, record)
        return LocalOptimum(value, moved, record)

    def _draw_start(self, random: np.random.Generator) -> FloatArray:
        """Draw a random prior, mixed with the uniform one until it meets the entropy bound."""
        size = self.table.size
        # small concentrations give laws near corners, where I is largest
        prior = random.dirichlet(np.full(size, 10.0 ** random.uniform(-1.5, 0)))
        prior = mix_until_allowed(prior, np.full(size, 1 / size), np.zeros(size), self.entropy)
        return prior.reshape(self.table.shape)


def run_until_deadline(
    local_searches: Iterable[AlternatingRun], random: np.random.Generator
) -> list[LocalOptimum]:
    """Run each local optimization until the deadline; the first always runs."""
    found: list[LocalOptimum] = []
    for climb in local_searches:
        found.append(climb.run(random))
        if climb.deadline.expired:
            break
    return found


def compute_joint_law(prior: FloatArray, record: int, table: IntArray) -> FloatArray:
    """Compute the (A, T) joint law of a record and the dataset class."""
    letters = np.indices(table.shape, dtype=int)[record]
    joint = np.zeros((table.shape[record], int(table.max()) + 1))
    # add.at sums repeated indices, which plain assignment would overwrite
    np.add.at(joint, (letters.ravel(), table.ravel()), prior.ravel())
    return np.asarray(joint / joint.sum())


def check_dataset_count(query: Query) -> None:
    """Raise a SolverUnavailableError where there are too many datasets to enumerate."""
    # Datasets that the alternating method takes at most: it goes through all of them.
    largest_listed = 2**14
    if query.log_size > math.log(largest_listed) + 1e-9:
        raise SolverUnavailableError(
            f"this method goes through all e^{query.log_size:.6g} datasets, and takes at most "
            f"{largest_listed:,}: use branch-and-bound"
        )


@dataclass(frozen=True)
class Alternating:
    """The method of alternating optimization with restarts over enumerated datasets: local optima, no bound.

    Attributes:
        restarts: how many random priors it runs from.
        seed: of the priors; the same seed gives the same result, unless time runs out.

    Source: [wu2026entropy, Algorithm 1].
    """

    restarts: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer(self.restarts, "the number of restarts", PrivacyError)
        make_generator(self.seed)

    def __call__(
        self, program: RecordLeakage, options: MethodOptions, start: Mapping[int, FloatArray]
    ) -> MethodResult[RecordCertificate]:
        """Run from random starts, and return the best local optimum; a warm start is ignored.

        Nothing is proved: the bound is infinite.

        Raises:
            SolverUnavailableError: there are more datasets than it can go through.
        """
        begin = time.perf_counter()
        channel = program.channel
        entropy = program.entropy
        check_dataset_count(channel.query)
        deadline = options.deadline
        table = channel.class_table()
        climb = AlternatingRun(table, channel.rows[table], entropy, options.tolerance, deadline)
        found = run_until_deadline([climb] * self.restarts, np.random.default_rng(self.seed))
        best = max(found, key=lambda one: one.value)
        adversary = BoundedAdversary.from_channel(channel, best.record, entropy)
        joint = adversary.make_allowed(compute_joint_law(best.prior, best.record, table))
        certificate = RecordCertificate(
            mechanism=channel.mechanism,
            value=adversary.compute_leakage(joint),
            bound=math.inf,
            channel=channel,
            entropy=entropy,
            record=best.record,
            joint=joint,
            proofs=(),
        )
        return MethodResult(
            certificate=certificate,
            finished=len(found) == self.restarts and not deadline.expired,
            message=f"the best of {len(found)} starts",
            iterations=len(found),
            solve_seconds=time.perf_counter() - begin,
            arrays={get_array_name(best.record): joint},
        )
