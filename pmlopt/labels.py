"""Labels in files: text, numbers, and tuples of them, so that each comes back as what it was."""

from __future__ import annotations

import ast
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

from pmlopt.arrays import Label, Positions, few
from pmlopt.errors import FileFormatError

_PLAIN = (str, int, float)


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


def labels_from_json(labels: Iterable[Any]) -> tuple[Label, ...]:
    """Labels from the entries of a JSON list, in which a list is a tuple.

    Raises:
        ValueError: an entry is a table.

    Examples:
        >>> labels_from_json(["a", 1, ["a", [1, 2]]])
        ('a', 1, ('a', (1, 2)))
    """
    return tuple(_label_from_json(label) for label in labels)


def named_or_positions(labels: Iterable[Any]) -> tuple[Label, ...]:
    """The same, of which 0, 1, ... are taken for letters that nobody named: `Positions`.

    Examples:
        >>> type(named_or_positions([0, 1])), named_or_positions(["a", 1])
        (<class 'pmlopt.arrays.Positions'>, ('a', 1))
    """
    found = labels_from_json(labels)
    positions = Positions(len(found))
    return positions if found == positions else found


def _label_from_json(label: Any) -> Label:
    if isinstance(label, dict):
        raise ValueError(f"the table {reprlib.repr(label)} is no label")
    return labels_from_json(label) if isinstance(label, list) else label


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
