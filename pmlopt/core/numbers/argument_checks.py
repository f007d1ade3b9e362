"""Checks of arguments that many functions share: known names, numbers of entries, and their sign."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.errors import InputError


def check_choice(
    value: Any, choices: Iterable[Any], what: str, error: type[InputError], others: str = ""
) -> None:
    """Raise an error for a value that is none of those that are known.

    Args:
        value: that was given.
        choices: what is known.
        what: the argument, such as "the method".
        error: the class of the error.
        others: what else may be given, such as ", or a matrix".

    Examples:
        >>> check_choice("mle", ("ml", "linear"), "the method", InputError)
        Traceback (most recent call last):
        ...
        pmlopt.errors.InputError: the method 'mle' is not known: use ml, linear
    """
    known = list(choices)
    if value not in known:
        raise error(f"{what} {value!r:.80} is not known: use {', '.join(map(str, known))}{others}")


def check_one_for_each(
    owner: str, count: int, things: str, needed: int, others: str, error: type[InputError]
) -> None:
    """Raise an error where there is not one thing for each of some others.

    Args:
        owner: what has the things, with the verb, such as "the workload has", or "there are".
        count: how many there are.
        things: their name, such as "columns".
        needed: how many there must be.
        others: what each is for, such as "letters".
        error: the class of the error.

    Examples:
        >>> check_one_for_each("there are", 2, "weights", 3, "people", InputError)
        Traceback (most recent call last):
        ...
        pmlopt.errors.InputError: there are 2 weights for 3 people: give one for each
    """
    if count != needed:
        raise error(f"{owner} {count} {things} for {needed} {others}: give one for each")


def check_same_letters(
    size: int, what: str, other_size: int, other: str, error: type[InputError]
) -> None:
    """Raise an error where two arguments are on different numbers of letters.

    Args:
        size: of the first.
        what: its name with the verb, such as "the gains are".
        other_size: of the second.
        other: its name, such as "the prior".
        error: the class of the error.

    Examples:
        >>> check_same_letters(2, "the gains are", 3, "the prior", InputError)
        Traceback (most recent call last):
        ...
        pmlopt.errors.InputError: the gains are on 2 letters, and the prior on 3: give both on the same
    """
    if size != other_size:
        raise error(f"{what} on {size} letters, and {other} on {other_size}: give both on the same")


def check_all_nonnegative(values: ArrayLike, what: str, error: type[InputError]) -> None:
    """Raise an error where an entry is negative.

    Examples:
        >>> check_all_nonnegative([1.0, -0.5], "the distances", InputError)
        Traceback (most recent call last):
        ...
        pmlopt.errors.InputError: the distances have the negative entry -0.5: give numbers of at least 0
    """
    least = float(np.min(values))
    if least < 0:
        raise error(f"{what} have the negative entry {least:g}: give numbers of at least 0")
