"""The joint leakage of several releases of one secret."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
    Label,
    Labels,
    abbreviate,
    have_same_label_set,
    have_same_labels,
    indices_of,
)
from pmlopt.data.mechanism import (
    Mechanism,
    MechanismLike,
    as_mechanism,
    check_labels_match,
    pair_with_prior,
)
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import MechanismError
from pmlopt.measures import leakage_level
from pmlopt.measures.leakage import log_sum_exp
from pmlopt.releases.accounts.ledger_file import compute_levels, compute_levels_after

MAX_PRODUCT_ENTRIES = 10_000_000
"""Entries of the largest product mechanism that is listed: 80 MB of floats."""


def compose(mechanisms: Iterable[MechanismLike]) -> Mechanism:
    """Build the product mechanism of independent releases of one secret.

    `P[x, (y_1, ..., y_k)] = prod_i P_i[x, y_i]`: columns multiply entry by entry.

    Args:
        mechanisms: k of them, (N, M_i), on the same letters.

    Returns:
        (N, M_1 ... M_k), whose outputs are the tuples of the outputs; the last one changes fastest.

    Raises:
        MechanismError: there is none, their letters differ, or the product has more than
            `MAX_PRODUCT_ENTRIES` entries.

    Examples:
        >>> twice = compose([[[0.75, 0.25], [0.25, 0.75]]] * 2)
        >>> twice.outputs, twice.matrix[0]
        (((0, 0), (0, 1), (1, 0), (1, 1)), array([0.5625, 0.1875, 0.1875, 0.0625]))
    """
    parts = check_same_secret(mechanisms)
    matrix = multiply_rows([part.matrix for part in parts])
    return Mechanism(
        matrix, choose_common_inputs(parts), list(product(*(part.outputs for part in parts)))
    )


def multiply_rows(matrices: Sequence[FloatArray]) -> FloatArray:
    """Compute (n, M_1 ... M_k) row-wise Kronecker products of matrices (n, M_i).

    M_k) the products of the entries of each row of matrices (n, M_i); the last is fastest.

    Raises:
        MechanismError: there are more than `MAX_PRODUCT_ENTRIES`.
    """
    found = np.ones((len(matrices[0]), 1))
    # before any product: an exact integer, for the array would fill the memory
    check_product_size(len(found) * math.prod(matrix.shape[1] for matrix in matrices))
    for matrix in matrices:
        # (n, K, 1) * (n, 1, M): all pairs for each row, the last factor fastest
        found = (found[:, :, None] * matrix[:, None, :]).reshape(len(found), -1)
    return found


def compose_attributes(
    mechanisms: Iterable[MechanismLike], letters: Iterable[Label] | None = None
) -> Mechanism:
    """Build the mechanism on attribute tuples from one mechanism per attribute.

    `P[(x_1, ..., x_k), (y_1, ..., y_k)] = prod_i P_i[x_i, y_i]`.

    Args:
        mechanisms: one for each attribute, (N_i, M_i).
        letters: those tuples of inputs that occur, such as the labels of a prior; None for all.

    Returns:
        The inputs are the letters, the outputs all tuples of outputs; of all tuples the last part changes
        fastest.

    Raises:
        MechanismError: there is none, a letter is no tuple of inputs, or the product has more than
            `MAX_PRODUCT_ENTRIES` entries.

    Examples:
        >>> both = compose_attributes([[[0.75, 0.25], [0.25, 0.75]], [[1, 0], [0, 1]]])
        >>> both.inputs, both.matrix[0]
        (((0, 0), (0, 1), (1, 0), (1, 1)), array([0.75, 0.  , 0.25, 0.  ]))
        >>> compose_attributes([[[0.75, 0.25], [0.25, 0.75]]] * 2, [(0, 1)]).matrix
        array([[0.1875, 0.5625, 0.0625, 0.1875]])
    """
    parts = check_mechanisms(mechanisms)
    # the list of tuples grows as fast as the matrix, and comes before it
    check_product_size(math.prod(len(part.inputs) for part in parts))
    tuples = list(product(*(part.inputs for part in parts))) if letters is None else list(letters)
    odd = [one for one in tuples if not isinstance(one, tuple) or len(one) != len(parts)]
    if odd or not tuples:
        shown = f"{odd[0]!r} is no tuple" if odd else "there is none"
        raise MechanismError(f"the letters are tuples of {len(parts)} inputs: {shown}")
    own = [
        indices_of([one[k] for one in tuples], part.inputs, f"attribute {k + 1}", MechanismError)  # type: ignore[index]
        for k, part in enumerate(parts)
    ]
    matrix = multiply_rows([part.matrix[rows] for part, rows in zip(parts, own, strict=True)])
    return Mechanism(matrix, tuples, list(product(*(part.outputs for part in parts))))


@dataclass(frozen=True)
class JointOutcome:
    """The leakage of one joint outcome of several releases.

    Attributes:
        outputs: the label that each mechanism released.
        witness: the letter that it is the most evidence for.
        leakage: the pointwise maximal leakage in nats.
    """

    outputs: Labels
    witness: Label
    leakage: float


def joint_level(prior: PriorLike, mechanisms: Iterable[MechanismLike]) -> float:
    """Compute the PML level of independent releases of one secret, in nats.

    `max log prod_i P_i[x, y_i] / sum_x' p[x'] prod_i P_i[x', y_i]` over letters and outcomes. It may be more
    than the sum of the levels of the mechanisms under the prior: outcomes that each exclude another letter
    leave one. What adds is the level of each one under the posterior that those before it leave.

    Args:
        prior: N letters.
        mechanisms: k of them, (N, M_i).

    Raises:
        MechanismError: letters differ, or the search for the worst outcome keeps too many candidates.

    Examples:
        >>> first, second = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
        >>> round(math.exp(joint_level([0.4, 0.4, 0.2], [first, second])), 12)  # 5, by the outcome (1, 0)
        5.0
        >>> even = [1 / 3, 1 / 3, 1 / 3]
        >>> blur = [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
        >>> round(math.exp(leakage_level(even, blur)), 12), round(math.exp(joint_level(even, [blur] * 2)), 12)
        (1.5, 3.0)
    """
    return worst_outcome(prior, mechanisms).leakage


def worst_outcome(prior: PriorLike, mechanisms: Iterable[MechanismLike]) -> JointOutcome:
    """Find the joint outcome of largest leakage, with the letter that attains it.

    Few outcomes are all looked at. Many are searched by branch and bound, in logarithms: a choice of the
    first outputs is dropped where no choice of the others, made for each pair of letters apart, leaks more
    than the best outcome so far; the maximum is exact but for rounding.

    Raises:
        MechanismError: letters differ, or the search for the worst outcome keeps more than
            `pmlopt.releases.accounts.joint.MAX_CANDIDATES` choices.

    Examples:
        >>> worst_outcome([0.5, 0.5], [[[0.75, 0.25], [0.25, 0.75]]] * 40).outputs[:3]
        (0, 0, 0)
    """
    p, parts = pair_all_with_prior(prior, mechanisms)
    # outputs with proportional columns reveal the same: one of each group is enough; those that differ by
    # more than rounding do not, for what they differ by adds up over many releases
    # By how much proportional columns may differ relatively, by the rounding of quotients.
    groups = [
        [group[0] for group in part.similar_outputs(4 * float(np.finfo(float).eps))]
        for part in parts
    ]
    search = OutcomeSearch(
        p.pmf, [part.matrix[:, group] for part, group in zip(parts, groups, strict=True)]
    )
    leakage, letter, places = search.run()
    outputs = tuple(
        part.outputs[group[place]] for part, group, place in zip(parts, groups, places, strict=True)
    )
    return JointOutcome(outputs, p.labels[letter], leakage)


def chained_level(prior: PriorLike, mechanisms: Iterable[MechanismLike]) -> float:
    """Compute an upper bound on `joint_level` by sequential composition of posterior levels.

    The posteriors are those that the outcomes of the mechanisms before it leave. The level of the first
    is under the prior; levels under the prior only do not add up to a bound. In nats.

    Raises:
        MechanismError: letters differ, or the product of all but the last one has more than
            `MAX_PRODUCT_ENTRIES` entries.

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(chained_level([0.5, 0.5], [response, response])), 12)  # 1.5, then 2
        3.0
    """
    p, parts = pair_all_with_prior(prior, mechanisms)
    # chain rule: the lift of the whole is a product of lifts, each under the posterior before it
    levels = [leakage_level(p, parts[0])]
    for count, part in enumerate(parts[1:], start=1):
        before = compose(parts[:count])
        found = []
        for column in before.matrix[
            :, before.support
        ].T:  # the level under the posterior of its outcome
            left = column > 0
            # scaled by the peak: many releases make a column so small that products underflow
            weights = p.pmf[left] * (column[left] / column.max())
            # a history of zeros is none: the posterior itself serves as the prior
            posterior = weights / weights.sum()
            nothing = np.zeros((1, len(weights)))
            found.append(float(compute_levels_after(posterior, nothing, part.matrix[left])[0]))
        levels.append(max(found))
    return math.fsum(levels)


def check_mechanisms(mechanisms: Iterable[MechanismLike]) -> list[Mechanism]:
    """Validate a nonempty list of mechanisms."""
    # a single mechanism is an iterable of rows, which would be read as many mechanisms
    if isinstance(mechanisms, Mechanism) or not isinstance(mechanisms, Iterable):
        raise MechanismError("give a list of mechanisms, of one where there is one")
    parts = [as_mechanism(mechanism) for mechanism in mechanisms]
    if not parts:
        raise MechanismError("there are no mechanisms: give at least one")
    return parts


def pair_all_with_prior(
    prior: PriorLike, mechanisms: Iterable[MechanismLike]
) -> tuple[Prior, list[Mechanism]]:
    """Put a prior and mechanisms of one secret into one order of the letters, by their labels.

    Raises:
        MechanismError: letters differ, or a side without labels leaves open which order it has.

    Examples:
        >>> parts = [Mechanism([[1.0, 0.0], [0.5, 0.5]], [*order]) for order in ("ab", "ba")]
        >>> p, (one, other) = pair_all_with_prior(Prior([0.25, 0.75], ["b", "a"]), parts)
        >>> p.labels, one.matrix.tolist(), other.matrix.tolist()
        (('b', 'a'), [[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]])
    """
    p = as_prior(prior)
    parts = check_same_secret(mechanisms, p.labels)
    return pair_with_prior(p, parts[0])[0], parts


def check_same_secret(
    mechanisms: Iterable[MechanismLike], letters: Labels | None = None
) -> list[Mechanism]:
    """Validate mechanisms with common input letters, and put these into one order by their labels.

    Args:
        mechanisms: of one secret.
        letters: whose order is taken, such as those of the prior; else those of the first one with labels.

    Raises:
        MechanismError: letters differ, or a side without labels leaves open which order it has.
    """
    given = check_mechanisms(mechanisms)
    parts = _reorder_inputs(given, letters)
    named = choose_common_inputs(parts)
    for place, part in enumerate(parts):
        if len(part.inputs) != len(named):
            raise MechanismError(
                f"mechanism {place} has {len(part.inputs)} inputs, and mechanism 0 has {len(named)}: for "
                "attributes with letters of their own use compose_attributes and attribute_levels"
            )
        check_labels_match(
            part.inputs, named, f"the inputs of mechanism {place}", "those of the others"
        )
    return parts


def _reorder_inputs(parts: Sequence[Mechanism], letters: Labels | None) -> list[Mechanism]:
    """Put mechanisms with the same labels in other orders into that of the letters, or of the first one."""
    sides = [*([] if letters is None else [letters]), *(part.inputs for part in parts)]
    named = [side for side in sides if not isinstance(side, DefaultLabels)]
    others = [side for side in named if not have_same_labels(side, named[0])]
    if not any(have_same_label_set(side, named[0]) for side in others):
        return list(parts)
    if len(named) < len(sides):
        raise MechanismError(
            f"the letters {abbreviate(named[0])} and {abbreviate(others[0])} are the same in another order, "
            "and a prior or mechanism without labels may have either: give it labels"
        )
    return [
        _reorder_rows(part, named[0]) if have_same_label_set(part.inputs, named[0]) else part
        for part in parts
    ]


def _reorder_rows(mechanism: Mechanism, letters: Labels) -> Mechanism:
    """Return a mechanism with its inputs in the order of letters."""
    if have_same_labels(mechanism.inputs, letters):
        return mechanism
    order = indices_of(letters, mechanism.inputs, "the letters", MechanismError)
    return Mechanism(mechanism.matrix[order], letters, mechanism.outputs)


def choose_common_inputs(parts: Sequence[Mechanism]) -> Labels:
    """Choose the common input labels of several mechanisms."""
    from_person = [part.inputs for part in parts if type(part.inputs) is tuple]
    return from_person[0] if from_person else parts[0].inputs


def check_product_size(entries: int) -> None:
    """Raise an error where a product mechanism would exceed memory."""
    if entries > MAX_PRODUCT_ENTRIES:
        raise MechanismError(
            f"the product has {entries} entries, more than {MAX_PRODUCT_ENTRIES}: compose fewer "
            "mechanisms, or "
            "use `joint_level`, which lists no products"
        )


MAX_CANDIDATES = 100_000
"""Choices of the first outputs that are kept at once: with 16 letters 13 MB."""


class OutcomeSearch:
    """The branch-and-bound search for the joint outcome of largest leakage.

    For a letter x it is minus the logarithm of a sum of products of the ratios `P_i[x',y_i] / P_i[x,y_i]`.
    With the first outputs chosen it is at most what the least ratio of each further mechanism for each pair
    (x, x') leaves, which is the bound. Choices whose bound is not above the best outcome so far are
    dropped. Equal mechanisms in a row take their outputs in ascending order, for it makes no difference.

    Args:
        law: (N,) the prior.
        matrices: (N, M_i), without columns of zeros.
    """

    def __init__(self, law: FloatArray, matrices: Sequence[FloatArray]) -> None:
        self.law = law
        with np.errstate(divide="ignore"):
            self.logs = [np.log(matrix / matrix.max(axis=0)) for matrix in matrices]
        self.repeats = [
            place > 0 and np.array_equal(matrices[place - 1], matrix)
            for place, matrix in enumerate(matrices)
        ]
        # after the last mechanism nothing follows, so the log-ratio that remains is 0
        least = np.zeros((len(law), len(law)))
        self.ahead = [least]  # of the mechanisms after each place
        for logs in reversed(self.logs):
            # (x, x') the least `log P[x',y] / P[x,y]` over the outputs y that x can emit
            least = least + [
                (logs[:, own > -np.inf] - own[own > -np.inf]).min(axis=1) for own in logs
            ]
            self.ahead.insert(0, least)

    def run(self) -> tuple[float, int, tuple[int, ...]]:
        """Run the search; return leakage, letter and output indices."""
        best = max(
            (self._climb(letter) for letter in range(len(self.law))), key=lambda found: found[0]
        )
        columns = np.zeros((1, len(self.law)))
        choices = np.zeros((1, 0), dtype=int)
        for place, logs in enumerate(self.logs):
            # each choice with each output of the next mechanism, those that are possible
            after = np.arange(logs.shape[1])
            # (choices, M): which outputs may follow each choice
            allowed = np.ones((len(choices), len(after)), dtype=bool)
            rows, outputs = np.nonzero(after >= choices[:, -1:] if self.repeats[place] else allowed)
            grown = columns[rows] + logs.T[outputs]
            # the level is unchanged by a constant in a column, and long products do not underflow
            peaks = grown.max(axis=1, keepdims=True)
            possible = peaks[:, 0] > -np.inf
            columns = grown[possible] - peaks[possible]
            choices = np.column_stack([choices[rows], outputs])[possible]
            keep = self._bound_completions(columns, self.ahead[place + 1]) > best[0]
            columns = columns[keep]
            choices = choices[keep]
            if len(choices) > MAX_CANDIDATES:
                raise MechanismError(
                    f"the search for the worst outcome keeps {len(choices)} choices after {place + 1} of "
                    f"{len(self.logs)} mechanisms, more than {MAX_CANDIDATES}: give fewer mechanisms, or "
                    "for `chained_level` of blocks of them"
                )
        if len(choices):
            leakages = compute_levels(self.law, columns)
            top = int(leakages.argmax())
            if leakages[top] > best[0]:
                best = (
                    float(leakages[top]),
                    int(columns[top].argmax()),
                    tuple(choices[top].tolist()),
                )
        return best

    def _bound_completions(self, columns: FloatArray, ahead: FloatArray) -> FloatArray:
        """Bound the leakage of all completions of partial outcomes."""
        bounds = np.empty(len(columns))
        log_law = np.log(self.law)
        # Numbers that the bounds of some choices take at once, N^2 for each: 8 MB.
        size = max(1, (2**20) // len(log_law) ** 2)
        for start in range(0, len(columns), size):
            block = columns[start : start + size]
            possible = np.isfinite(block)
            with np.errstate(invalid="ignore"):
                terms = block[:, None, :] - block[:, :, None] + (ahead + log_law)  # (block, x, x')
            terms[~possible] = 0.0
            sums = np.where(possible, log_sum_exp(terms, axis=2)[:, :, 0], np.inf)
            bounds[start : start + size] = -sums.min(axis=1)
        return bounds

    def _climb(self, letter: int) -> tuple[float, int, tuple[int, ...]]:
        """Find a joint outcome of large leakage by coordinate ascent."""
        chosen = [int(part[letter].argmax()) for part in self.logs]
        before = -np.inf
        value = float(self._information_density(self._log_product(chosen)[:, None], letter)[0])
        while value > before:
            before = value
            for place, part in enumerate(self.logs):
                values = self._information_density(
                    self._log_product(chosen, but=place)[:, None] + part, letter
                )
                if values.max() > value:
                    value = float(values.max())
                    chosen[place] = int(values.argmax())
        column = self._log_product(chosen)
        leakage = float(compute_levels(self.law, (column - column.max())[None])[0])
        return leakage, int(column.argmax()), tuple(chosen)

    def _log_product(self, chosen: Sequence[int], but: int | None = None) -> FloatArray:
        """Compute the log-column of a joint outcome, optionally without one mechanism."""
        columns = [part[:, y] for part, y in zip(self.logs, chosen, strict=True)]
        if but is not None:
            del columns[but]
        return np.asarray(np.sum([np.zeros(len(self.law)), *columns], axis=0))

    def _information_density(self, columns: FloatArray, letter: int) -> FloatArray:
        """Compute a letter's information density under (N, K) log-columns."""
        with np.errstate(invalid="ignore"):
            terms = columns - columns[letter] + np.log(self.law)[:, None]
        possible = np.isfinite(columns[letter])
        found = np.full(columns.shape[1], -np.inf)
        found[possible] = -log_sum_exp(terms[:, possible], axis=0)[0]
        return found
