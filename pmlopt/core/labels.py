"""Labels: which are the same, and how text, numbers and tuples of them come back from files as they were.

Two labels are the same where they are the same text, or equal numbers: 1 and 1.0 are, "1" and 1 are not. A
truth value is no number: True and 1 are two labels. Tuples are the same part by part. In a text file, where
everything is text, a cell is the label that it reads like: the same text, or else an equal number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from pmlopt.core.arrays import IntArray, Label, few
from pmlopt.errors import FileFormatError, InputError

_PLAIN = (str, int, float)
NUMBER_HEADERS = ("count", "counts", "number", "probability")
"""Headers of a last column that say that it holds the number of each tuple of letters before it."""

_TRUTHS = {True: object(), False: object()}
"""What stands for a truth value, which in Python is a number too."""


def label_key(label: Label) -> Label:
    """What is equal for two labels that are the same, and for no others.

    Examples:
        >>> label_key(1) == label_key(1.0), label_key(1) == label_key(True), label_key(1) == label_key("1")
        (True, False, False)
    """
    if isinstance(label, bool | np.bool_):
        return _TRUTHS[bool(label)]
    return tuple(map(label_key, label)) if isinstance(label, tuple) else label


def same_labels(one: Sequence[Label], other: Sequence[Label]) -> bool:
    """Whether two sides have the same labels in the same order."""
    return len(one) == len(other) and list(map(label_key, one)) == list(map(label_key, other))


def same_set(one: Iterable[Label], other: Iterable[Label]) -> bool:
    """Whether two sides have the same labels in any order."""
    return set(map(label_key, one)) == set(map(label_key, other))


def places_of(
    labels: Iterable[Label], known: Sequence[Label], what: str, error: type[InputError], *, text: bool = False
) -> list[int]:
    """The place of each label among some known ones.

    Args:
        labels: any, a known one more than once, too.
        known: distinct labels.
        what: the labels are of, for messages.
        error: what is raised.
        text: whether the labels are cells of a text file.

    Raises:
        InputError: of the class `error`: a label is not known, or known ones read alike in a text file.

    Examples:
        >>> places_of(["b", "a"], ("a", "b"), "the counts", InputError)
        [1, 0]
        >>> places_of([2, 1], ("1", "2"), "the counts", InputError, text=True)
        [1, 0]
    """
    labels, places = list(labels), {label_key(label): place for place, label in enumerate(known)}
    if not text and not {bool, np.bool_, tuple} & {type(label) for label in (*labels, *known)}:
        with suppress(KeyError, TypeError):  # said below of the one
            return [places[label] for label in labels]
    read = {_read(label): place for place, label in enumerate(known)} if text else {}
    if text and len(read) < len(known):
        raise error(f"two of {few(tuple(known))} read alike, and the labels of {what} are text")
    read.update({str(label): place for place, label in enumerate(known) if text})  # a tuple in one cell
    found: dict[Any, int] = {}

    def place_of(label: Label) -> int:
        place = read.get(_read(label)) if text else None
        return place if place is not None else places[label_key(label)]

    result = []
    for label in labels:
        try:
            if isinstance(label, tuple):  # (1,) and (True,) are equal to Python
                result.append(place_of(label))
                continue
            token = type(label), label
            place = found.get(token)
            if place is None:
                place = found[token] = place_of(label)
            result.append(place)
        except (KeyError, TypeError):
            raise error(f"{what}: {label!r} is none of {few(tuple(known))}") from None
    return result


def counts_at(
    counted: Iterable[tuple[tuple[Label, ...], int]],
    sides: Sequence[Sequence[Label]],
    what: str,
    error: type[InputError],
) -> IntArray:
    """An array with an axis for each side, of counts that are given by a label of each.

    Args:
        counted: tuples of labels, with their counts.
        sides: the labels of each axis.
        what: the labels are of, for messages.
        error: what is raised.

    Raises:
        InputError: of the class `error`: a label is not known, or a tuple has another length.

    Examples:
        >>> counts_at([(("b", 1), 2), (("a", 0), 3)], [("a", "b"), (0, 1)], "the counts", InputError).tolist()
        [[3, 0], [0, 2]]
    """
    found = np.zeros([len(side) for side in sides], dtype=np.int64)
    for labels, count in counted:
        if len(labels) != len(sides):
            raise error(f"{what}: {labels!r} is no tuple of {len(sides)} labels")
        places = [places_of([one], side, what, error)[0] for one, side in zip(labels, sides, strict=True)]
        found[tuple(places)] += count
    return found


def _read(label: Label) -> Label:
    """A label as it reads in a file: a tuple by its parts."""
    return tuple(map(_read, label)) if isinstance(label, tuple) else str(label)


def labels_from_text(texts: Sequence[str]) -> tuple[Label, ...]:
    """Labels from the cells of a CSV: numbers or tuples where each is one as Python writes it, else text.

    The parts of a tuple are text, numbers or tuples again. A cell `nan` is text, for no label may differ
    from itself.

    Examples:
        >>> labels_from_text(["1", "2"]), labels_from_text(["01", "2"]), labels_from_text(["1", "a"])
        ((1, 2), ('01', '2'), ('1', 'a'))
        >>> labels_from_text(["('no', 1)", "('yes', 2)"])
        (('no', 1), ('yes', 2))
    """
    for kind in (int, float):
        try:
            numbers = [kind(text) for text in texts]
        except ValueError:
            continue
        if all(str(number) == text and number == number for number, text in zip(numbers, texts, strict=True)):
            return tuple(numbers)
    tuples = [_tuple_from_text(text) for text in texts]
    return tuple(texts) if None in tuples else tuple(tuples)


def _tuple_from_text(text: str) -> tuple[Label, ...] | None:
    """The tuple that a text writes as Python does; None where it is another text."""
    if not (text.startswith("(") and text.endswith(")")):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, tuple) and _storable(value) and repr(value) == text else None


def check_csv_labels(*sides: tuple[Label, ...]) -> None:
    """Complain of labels that a CSV file would not give back as they are."""
    for labels in sides:
        texts = [str(label) for label in labels]
        back = labels_from_text(texts)
        if list(map(type, back)) != list(map(type, labels)) or back != labels:
            raise FileFormatError(
                f"a CSV file would give the labels {few(labels)} back as {few(back)}: save as .json or .npz, "
                "or use labels that are all text, all of one kind of number, or all tuples of these"
            )


def check_json_labels(labels: Iterable[Label]) -> None:
    """Complain of labels that JSON cannot hold."""
    for label in labels:
        if not _storable(label):
            raise FileFormatError(
                f"the label {label!r} cannot be written: labels in files are text or numbers, or tuples of "
                "these"
            )


def _storable(label: Label) -> bool:
    if isinstance(label, tuple):
        return all(map(_storable, label))
    return isinstance(label, _PLAIN)
