"""What files of SPSS, Stata and SAS state of their columns, and the letters of their values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pmlopt.core.frames import MissingKind, is_missing
from pmlopt.core.numbers.arrays import Label, Labels, join_words
from pmlopt.errors import InputError
from pmlopt.tables.survey_process import MIN_KIND, name_kind, number_kind
from pmlopt.tables.survey_times import TimeFormat, find_time_format

PROGRAMS = {
    ".sav": "spss",
    ".zsav": "spss",
    ".por": "spss",
    ".dta": "stata",
    ".sas7bdat": "sas",
    ".xpt": "sas",
}
"""The program of a file, by the ending of its name."""


@dataclass(frozen=True)
class SurveyMetadata:
    """The labels, formats and missing values of a file, by the names of its columns.

    Attributes:
        names: of the columns.
        rows: how many the file states, or None.
        labels: of columns.
        value_labels: of the values of columns.
        missing: the values and ranges that SPSS declares as missing.
        formats: of columns.
        storage: how each column is stored.
        widths: in which columns are shown.
        measures: the level of measurement.
    """

    names: Sequence[str] = ()
    rows: int | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    value_labels: Mapping[str, dict[Any, str]] = field(default_factory=dict)
    missing: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    formats: Mapping[str, str | None] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)
    measures: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str | bytes) -> SurveyMetadata:
        """Read the metadata that the reading process writes."""
        found = json.loads(text)
        pairs = found.pop("value_labels").items()
        return cls(**found, value_labels={name: dict(labels) for name, labels in pairs})


class SurveyColumn:
    """A column of a file, which makes letters of its values.

    Attributes:
        name: of the column.
        time: how its numbers are dates or times; None where they are not.
        labels: of its values; those of kinds of missing values by the numbers that stand for them.
        has_label_letters: whether labels are the letters.
    """

    def __init__(self, name: str, metadata: SurveyMetadata, program: str, *, labels: bool) -> None:
        self.name = name
        self.time: TimeFormat | None = find_time_format(metadata.formats.get(name), program)
        is_text = metadata.storage.get(name, "").startswith("string")
        self.labels = {
            value
            if is_text
            else number_kind(value)
            if isinstance(value, str)
            else float(value): label
            for value, label in metadata.value_labels.get(name, {}).items()
            if label.strip()
        }
        self.has_label_letters = labels and bool(self.labels)
        self._ranges = [
            (one["lo"], one["hi"]) if isinstance(one, dict) else (one, one)
            for one in metadata.missing.get(name, ())
        ]
        self._codes = set(self.labels)  # with those that were seen

    def find_letter(self, value: Any) -> Any:
        """Return the letter of a value; a `MissingKind` or None for a missing one."""
        if value == "" or is_missing(value):
            return None
        letter = self.make_letter(value)
        return MissingKind(letter, self.name_value(value)) if self.is_missing(value) else letter

    def is_missing(self, value: Any) -> bool:
        """Return whether a value is one of a kind of missing values, or declared as missing."""
        if isinstance(value, float) and value >= MIN_KIND:
            return True
        return any(
            low <= value <= high
            for low, high in self._ranges
            if isinstance(low, str) == isinstance(value, str)
        )

    def make_letter(self, value: Any) -> Label:
        """Return the letter that a value would be if it were not missing: its label, or its code."""
        label = self.labels.get(value) if self.has_label_letters else None
        if label is None:
            code = self.get_code(value)
            return str(code) if self.has_label_letters else code
        is_shared = list(self.labels.values()).count(label) > 1
        return self.name_value(value) if is_shared else label

    def get_code(self, value: Any) -> Label:
        """Return a value as it is written: a whole number without a fraction, a date, `.a` for a kind."""
        if not isinstance(value, float):
            return str(value)
        if value >= MIN_KIND:
            return f".{name_kind(value)}"
        shown = None if self.time is None else self.time.format_number(value)
        return shown or (int(value) if value.is_integer() else value)

    def name_value(self, value: Any) -> str:
        """Return the code of a value with its label behind it."""
        label = self.labels.get(value)
        return str(self.get_code(value)) + (f" ({label})" if label else "")

    def find_order(self, values: Sequence[Any], where: object) -> Labels | None:
        """Return the letters in the order of codes, where labels are the letters.

        Args:
            values: of the column, in addition to those that were given before.
            where: the file, for messages.

        Raises:
            InputError: two values would have one letter.
        """
        if not self.has_label_letters:
            return None
        self._codes |= {value for value in values if value != "" and not is_missing(value)}
        owners: dict[Label, Any] = {}
        for value in sorted(self._codes):
            label = self.labels.get(value) or str(self.get_code(value))
            if label in owners:
                both = join_words([self.get_code(owners[label]), self.get_code(value)])
                raise InputError(
                    f"{where}: the column {self.name!r} has {label!r} for {both}, which would be one letter: "
                    "leave --labels out, for codes as letters, or give each code a label of its own"
                )
            owners[label] = value
        return tuple(owners)

    def describe_labels(self, letters: Sequence[Label]) -> Iterator[str]:
        """Yield which letters have no label, which labels no row has, and which codes share one."""
        if not self.labels:
            return
        own = {self.make_letter(value): value for value in self.labels}
        if bare := [letter for letter in letters if letter != "" and letter not in own]:
            yield f"no label for {join_words(bare)}"
        present = set(letters)
        if empty := [
            self.name_value(value)
            for letter, value in own.items()
            if letter not in present and not self.is_missing(value)
        ]:
            yield f"no row with {join_words(empty)}"
        groups: dict[str, list[Label]] = {}
        for value, label in self.labels.items():
            groups.setdefault(label, []).append(self.get_code(value))
        for label, codes in groups.items():
            if len(codes) > 1:
                yield f"the label {label!r} for {join_words(codes)}, which stay apart"
