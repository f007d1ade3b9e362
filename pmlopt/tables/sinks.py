"""What a sink for a table's columns is, and what it refuses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pmlopt.arrays import Label
from pmlopt.errors import FileFormatError, InputError


@dataclass(frozen=True)
class OutputColumn:
    """A column to write.

    Attributes:
        name: of the column.
        place: in the table that is read, where it is one of its columns.
        labels: those that may occur, where it is a new one.
    """

    name: str
    place: int | None = None
    labels: Sequence[Label] = ()


class Sink(ABC):
    """Writes columns, batch by batch.

    Attributes:
        typed: whether new columns keep the type of their labels, or are text, each label as `str` writes it.
    """

    typed = False

    @abstractmethod
    def write(self, columns: Sequence[Any]) -> None:
        """Write the columns of a batch."""

    def close(self) -> None:
        """Write what ends the file."""
        return

    def abandon(self) -> None:
        """Write nothing any more."""
        return


def check_text(column: OutputColumn, what: str) -> None:
    """Complain of new labels that two of which would read the same."""
    different = {(type(label), label) for label in column.labels}  # parts of tuples stand several times
    if len({str(label) for _, label in different}) < len(different):
        raise InputError(
            f"the outputs of {column.name!r} have two that read alike, and {what} has text: give "
            "them other labels"
        )


def cannot_write(name: str, kind: object) -> FileFormatError:
    """What to say of a column that has no text."""
    return FileFormatError(f"the column {name!r} of {kind} cannot be written as CSV: leave it out by --drop")
