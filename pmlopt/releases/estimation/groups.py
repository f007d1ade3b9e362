"""Frequencies within the groups that a column in clear makes of the people."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, Label
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.errors import InputError, PmloptError
from pmlopt.releases.accounts.joint import compose_attributes
from pmlopt.releases.estimation.frequencies import Estimate, estimate
from pmlopt.releases.estimation.intervals import check_confidence


@dataclass(frozen=True)
class GroupEstimates:
    """Estimates of the frequencies within groups of people.

    Attributes:
        groups: the estimate of each group, by its value.
        confidence: with which the intervals of all groups hold together.
    """

    groups: Mapping[Label, Estimate]
    confidence: float

    @property
    def letters(self) -> tuple[tuple[Label, Label], ...]:
        """Return the pairs of a group and a letter, or of a group and a name of the workload."""
        return tuple(
            (group, letter) for group, found in self.groups.items() for letter in found.letters
        )

    @cached_property
    def columns(self) -> dict[str, FloatArray]:
        """Return the columns of the table of all groups, in the order of the pairs."""
        tables = [found.columns for found in self.groups.values()]
        return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def estimate_within(
    mechanism: Mechanism,
    samples: Mapping[Any, Mapping[str, Any]],
    confidence: float = 0.95,
    **options: Any,
) -> GroupEstimates:
    """Estimate the frequencies of letters within groups of people, each from its own outputs.

    The group of a person is known, so that the people of a group are a sample of it: the share of a letter x
    in a group g is `f[x | g]` with the standard error of the `n_g` people of the group. Intervals hold for
    all groups at once, each with `1 - (1 - confidence) / G` (Bonferroni).

    Args:
        mechanism: by which the people of all groups released.
        samples: by group, `counts`, or `released` and `weights`, as `estimate` takes them.
        confidence: in (0, 1), of all groups together.
        options: as for `estimate`, such as method and intervals.

    Raises:
        InputError: there is no group, or the confidence is outside (0, 1).
        MechanismError: what a group released does not fit the mechanism; the message names the group.

    Examples:
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> samples = {"east": {"counts": [65, 35]}, "west": {"counts": [30, 70]}}
        >>> found = estimate_within(response, samples)
        >>> found.letters[0], found.columns["estimate"].round(9).tolist()
        (('east', 'no'), [0.8, 0.2, 0.1, 0.9])
    """
    if not samples:
        raise InputError("there is no group: give the outputs of at least one")
    share = check_confidence(confidence)
    each = 1 - (1 - share) / len(samples)
    found: dict[Label, Estimate] = {}
    for group, sample in samples.items():
        try:
            found[group] = estimate(mechanism, confidence=each, **sample, **options)
        except PmloptError as error:
            raise type(error)(f"the group {group!r}: {error}") from None
    return GroupEstimates(found, share)


def cross_mechanism(first: MechanismLike, second: MechanismLike | Sequence[Label]) -> Mechanism:
    """Build the product mechanism on pairs of two independent columns.

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
    if isinstance(second, Iterable) and not isinstance(second, Mechanism | str):
        names = tuple(second)
        if all(isinstance(name, Hashable) for name in names):  # no rows of a matrix
            second = Mechanism(np.eye(len(names)), names, names)  # releases each as it is
    return compose_attributes([as_mechanism(first), as_mechanism(second)])  # type: ignore[arg-type]
