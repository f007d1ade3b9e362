"""Columns of tables, and numbers with labels, from pandas, Polars, Arrow, numpy or plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pmlopt.arrays import Label
from pmlopt.errors import InputError


def column_place(names: Sequence[str], column: str, where: object) -> int:
    """The place of the one column of that name.

    Raises:
        InputError: there is none, or more than one.

    Examples:
        >>> column_place(["id", "level"], "level", "people.csv")
        1
    """
    found = [place for place, name in enumerate(names) if name == column]
    if len(found) != 1:
        raise InputError(f"{where}: has {len(found)} columns named {column!r}; it has {list(names)}")
    return found[0]


def listed(values: Iterable[Any]) -> list[Any]:
    """The values of an array, a series or any iterable, as plain Python objects.

    Examples:
        >>> listed(np.array([1, 2])), listed(iter("ab"))
        ([1, 2], ['a', 'b'])
    """
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow; pandas and Polars; numpy
        if hasattr(values, method):
            return list(getattr(values, method)())
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or the NA and NaT of pandas.

    Examples:
        >>> is_missing(None), is_missing(float("nan")), is_missing("")
        (True, True, False)
    """
    if value is None or type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def with_labels(data: Any) -> tuple[list[Label] | None, list[Any]]:
    """Numbers with their labels: of a mapping, a pandas Series by its index, or a table of two columns.

    A pandas index that nobody made, 0, 1, 2 and so on, is none. A table of two columns has the labels in the
    first, as what `value_counts` of Polars and Arrow returns.

    Raises:
        InputError: a table has more columns than two, or an index beside them, or a label is missing.

    Examples:
        >>> with_labels({"a": 3, "b": 1}), with_labels([3, 1])
        ((['a', 'b'], [3, 1]), (None, [3, 1]))
    """
    if isinstance(data, Mapping):
        return list(data.keys()), list(data.values())
    if type(data).__name__ == "StructArray":  # of Arrow's value_counts
        rows = data.to_pylist()
        return _present([row["values"] for row in rows]), [row["counts"] for row in rows]
    names = column_names(data)
    if names is not None:
        if len(names) != 2 or not _is_plain_index(getattr(data, "index", None)):
            raise InputError(
                f"the table has the columns {names}: give a table of two, the label and its number, a "
                "mapping, or a pandas Series with its index"
            )
        return _present(listed(data[names[0]])), listed(data[names[1]])
    index: Any = getattr(data, "index", None)
    if hasattr(index, "to_list") and not _is_plain_index(index):
        return _present(listed(index)), listed(data)
    return None, listed(data)


def _present(labels: list[Label]) -> list[Label]:
    """Labels that data came with, where None and NaN stand for missing cells and are no letters."""
    for place, label in enumerate(labels):
        if is_missing(label):
            raise InputError(
                f"the label at position {place} is {label!r}, a missing cell: leave it out, or make it a "
                "letter, such as the empty text ''"
            )
    return labels


def has_labels(data: Any) -> bool:
    """Whether `with_labels` may find labels in data: a mapping, a series or a frame."""
    if isinstance(data, Mapping):
        return True
    return any(hasattr(data, name) for name in ("to_list", "to_pylist", "columns", "column_names"))


def column_names(data: Any) -> list[str] | None:
    """The names of a frame's columns; None for what is no frame."""
    if hasattr(data, "column_names") and not callable(data.column_names):  # Arrow
        return list(data.column_names)
    columns: Any = getattr(data, "columns", None)
    return None if columns is None else list(listed(columns))


def _is_plain_index(index: Any) -> bool:
    """Whether an index of pandas is none, or the numbers from 0 that it gives to rows without labels."""
    if not hasattr(index, "to_list"):
        return True
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
