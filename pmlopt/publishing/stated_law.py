"""The publicly stated letter shares of a release: rounded population counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, IntArray, Labels
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.errors import InputError
from pmlopt.model.uncertainty import L1Ball
from pmlopt.model.uncertainty.confidence import weissman_radius
from pmlopt.programs.declared_parts import walk_parts
from pmlopt.programs.result import Result
from pmlopt.publishing.published_laws import (
    StatedCounts,
    find_unstated_numbers,
    find_unstated_parts,
)
from pmlopt.publishing.rounded_counts import (
    bound_share_ratio,
    choose_rounding_step,
    round_counts,
)


def round_letter_counts(people: IntArray, mechanisms: Sequence[Mechanism]) -> IntArray:
    """Round the counts of the tuples of letters of a release, as they are stated.

    Args:
        people: how many have each tuple of letters, an axis for each mechanism.
        mechanisms: whose inputs are the letters.

    Examples:
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> round_letter_counts(np.array([[43, 0], [57, 100]]), [response, response]).tolist()
        [[40, 0], [60, 100]]
    """
    occurring = people > 0
    stated = np.zeros_like(people)
    step = choose_rounding_step(int(people.sum()))
    letters = list_letter_tuples(occurring, mechanisms)
    stated[occurring] = round_counts(people[occurring], step, letters)
    return stated


def list_letter_tuples(chosen: BoolArray, mechanisms: Sequence[Mechanism]) -> list[Labels]:
    """List the tuples of letters of a table that are chosen, in the order of its flattened entries.

    Args:
        chosen: the mask of a table with an axis for each mechanism.
        mechanisms: whose inputs are the letters.

    Examples:
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> list_letter_tuples(np.array([[True, False], [True, False]]), [response, response])
        [('no', 'no'), ('yes', 'no')]
    """
    return [
        tuple(one.inputs[place] for one, place in zip(mechanisms, row, strict=True))
        for row in np.argwhere(chosen).tolist()
    ]


def build_stated_prior(counts: Mapping[Any, int], exact: bool = False) -> Prior:
    """Build the publicly stated prior of a column's counts.

    A mechanism that is designed for it keeps its level under the shares that are published, and its file
    holds no exact count. The rounded counts are no sample: nothing is promised over one.

    Args:
        counts: of people, by letter.
        exact: whether the counts themselves are stated.

    Examples:
        >>> build_stated_prior({"no": 143, "yes": 57}).counts
        (140, 60)
    """
    if exact:
        return Prior.from_counts(counts)
    numbers = np.array(list(counts.values()), dtype=np.int64)
    rounded = round_counts(numbers, choose_rounding_step(int(numbers.sum())), list(counts))
    return Prior.from_weights(rounded.tolist(), list(counts))


def restate_prior(prior: Prior, exact: bool = False) -> Prior:
    """Replace an empirical prior by its publicly stated one.

    Its counts are rounded as those of a release are. A prior that is no sample stays as it is.

    Args:
        prior: that is known.
        exact: whether the exact counts are stated.

    Examples:
        >>> restate_prior(Prior.from_counts({"no": 143, "yes": 57})).counts
        (140, 60)
        >>> restate_prior(Prior([0.715, 0.285])).probabilities
        array([0.715, 0.285])
    """
    if exact or prior.samples is None:
        return prior
    counts = prior.counts
    if counts is None:  # the sample is known by its size only
        counts = tuple(np.rint(prior.pmf * prior.samples).astype(np.int64).clip(1).tolist())
    return build_stated_prior(dict(zip(prior.labels, counts, strict=True)))


def build_stated_secret(secret: Secret, exact: bool = False) -> Secret:
    """Build the publicly stated joint law of a secret: that of rounded counts of pairs.

    A mechanism that is designed for it has no exact count in its file. A joint law that is no table of counts
    stays as it is. See `build_stated_prior`.

    Args:
        secret: with the joint law that is known.
        exact: whether the exact counts are stated.

    Returns:
        The secret with counts that are multiples of the step of so many people (`choose_rounding_step`).

    Examples:
        >>> build_stated_secret(Secret.from_counts([[143, 6], [0, 57]])).weights[0].tolist()
        [[140, 10], [0, 50]]
    """
    if exact or not secret.counted:
        return secret
    pairs = secret.weights[0].astype(np.int64)
    labels = list(product(secret.values, secret.labels))
    rounded = round_counts(pairs, choose_rounding_step(int(pairs.sum())), labels).astype(object)
    return Secret.from_fields(secret.name, secret.labels, secret.values, (rounded,))


def restate_ledger_law(law: Prior) -> tuple[Prior, float]:
    """Replace the prior of a ledger by its publicly stated one.

    A total that is kept under the stated prior r, lowered by the allowance, is kept under the exact one p:
    `sum r w v <= e^allowance sum p w v` for all weights where `r <= e^allowance p`. The allowance is the
    largest for any counts that are stated so: it tells no more than these.

    Args:
        law: of the ledger; it stays as it is where it is no sample.

    Returns:
        The stated prior, and the allowance in nats.

    Examples:
        >>> law, allowance = restate_ledger_law(Prior.from_counts({"no": 143, "yes": 54}))
        >>> law.counts, round(allowance, 6)  # log(10/9)
        ((140, 50), 0.105361)
    """
    if law.samples is None:
        return law, 0.0
    stated = restate_prior(law)
    step = choose_rounding_step(law.samples)
    ratio = bound_share_ratio(np.array(stated.counts, dtype=np.int64), step, law.samples)
    return stated, math.log(ratio)


def make_confidence_ball(
    prior: Prior, people: int, distance: float, step: int, delta: float
) -> L1Ball:
    """Build the confidence ball around a stated prior for a population's law.

    Args:
        prior: that is stated.
        people: the sample, which is taken to be as small as its rounded number allows.
        distance: a bound on the total variation distance of the stated shares from those of the sample.
        step: to which counts are rounded.
        delta: the probability over the sample.
    """
    samples = max(1, people // step * step)
    radius = weissman_radius(samples, prior.size, delta) + 2 * distance
    return L1Ball(prior, min(2.0, radius), delta)


def check_follows_stated(
    made: Mechanism | Result[Any], laws: Sequence[StatedCounts], name: str
) -> None:
    """Raise an error where the file of a mechanism has numbers that do not follow from the stated counts.

    Args:
        made: what is released through.
        laws: the counts that are stated, with the exact ones.
        name: of the column.

    Raises:
        InputError: a law in the file, or the matrix, does not follow from them (`find_unstated_numbers`).
    """
    found = next(find_unstated_numbers(made, laws), None)
    if found is not None:
        raise InputError(
            f"the mechanism of {name} may publish the exact shares of these people: {found}. Design it for "
            "the counts that the release states: pmlopt.publishing.build_stated_prior(counts) (at the shell: "
            "pmlopt design --round-counts, or --epsilon and --utility in place of --mechanism), and give the "
            "saved result, .json or .npz; or publish exact counts: exact_counts=True (--exact-counts)"
        )


def check_parts_follow(declared: Sequence[Any], known: Prior) -> None:
    """Raise an error where what a design is declared of does not follow from rounded counts.

    Args:
        declared: the prior, the requirement, the utility and the constraints.
        known: the prior whose counts are rounded; where it is no sample, other samples are looked for only.

    Raises:
        InputError: something does not follow from them.
    """
    laws = []
    if known.samples is not None and known.counts is not None:
        exact = dict(zip(known.labels, known.counts, strict=True))
        stated = restate_prior(known).counts or ()
        laws = [StatedCounts(dict(zip(known.labels, stated, strict=True)), known.samples, exact)]
    for found in find_unstated_parts(walk_parts("", declared), known.labels, laws):
        if laws or found.certain:
            raise InputError(
                f"--round-counts: {found}, in what is declared: give what follows from rounded counts, "
                "such as a ledger that was begun with --round-counts"
            )
