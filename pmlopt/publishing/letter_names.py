"""The names of letters in reports and tables: codes of a survey with their labels behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pmlopt.core.numbers.arrays import Label
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables.table import Table

ValueLabels: TypeAlias = Mapping[str, Mapping[str, str]]
"""The labels of values by column, and by the value as text."""


def make_namer(labels: ValueLabels, columns: Sequence[str]) -> Callable[[Label], Label]:
    """Return the function that names the letters of columns; a letter without a label is its own name.

    Args:
        labels: of values.
        columns: one, or those of which letters are tuples.

    Examples:
        >>> name = make_namer({"q": {"1": "never"}}, ["q", "sex"])
        >>> name((1, "f")), make_namer({"q": {"1": "never"}}, ["q"])(1)
        (('1 (never)', 'f'), '1 (never)')
    """

    def name_part(column: str, part: Label) -> Label:
        label = labels.get(column, {}).get(str(part))
        return part if label is None else f"{part} ({label})"

    def name_letter(letter: Label) -> Label:
        if not isinstance(letter, tuple):
            return name_part(columns[0], letter) if len(columns) == 1 else letter
        if len(letter) != len(columns):
            return letter
        return tuple(map(name_part, columns, letter))

    return name_letter


def find_value_labels(table: Table, releases: Sequence[ColumnRelease]) -> dict[str, dict[str, str]]:
    """Return the labels of the inputs and outputs of released columns, by column and code."""
    found: dict[str, dict[str, str]] = {}
    for one in releases:
        letters = [*one.mechanism.inputs, *one.mechanism.outputs]
        for place, name in enumerate(one.columns):
            parts = {label[place] if isinstance(label, tuple) and len(label) == len(one.columns) else label
                     for label in letters}  # fmt: skip
            labels = table.find_value_labels(name).items()
            if own := {str(value): label for value, label in labels if value in parts}:
                found[name] = own
    return found
