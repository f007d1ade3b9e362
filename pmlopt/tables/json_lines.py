"""Tables of JSON Lines: an object in each line, as web servers and message queues write records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pmlopt.core.records.record import parse_json
from pmlopt.errors import FileFormatError
from pmlopt.tables.frame_tables import FrameTable
from pmlopt.tables.table import TableBatch


def is_json_lines(head: bytes) -> bool:
    r"""Return whether a file begins with a JSON object in a line of its own.

    Examples:
        >>> is_json_lines(b'{"answer": "yes"}\n'), is_json_lines(b'{\n "answer": "yes"\n}')
        (True, False)
    """
    first = head.lstrip().split(b"\n", 1)[0]
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


class JsonLinesTable(FrameTable):
    """A table of objects, a row each; a key that an object lacks is a missing cell.

    Args:
        lines: the lines of the file; empty ones are passed over.
        where: the file, for messages.

    Raises:
        FileFormatError: a line is no object, or a value is a list or an object.
    """

    def __init__(self, lines: Iterable[bytes], where: Any) -> None:
        rows: list[dict[str, Any]] = []
        self._lines: list[int] = []
        for number, line in enumerate(lines, start=1):
            if line.strip():
                rows.append(_read_row(line, f"{where}: line {number}"))
                self._lines.append(number)
        names = dict.fromkeys(name for row in rows for name in row)
        super().__init__({name: [row.get(name) for row in rows] for name in names})
        self.where = where

    def batches(self) -> Iterator[TableBatch]:
        """Yield all rows in one batch, with their lines in the file."""
        for batch in super().batches():
            batch.lines = self._lines
            yield batch


def _read_row(line: bytes, where: str) -> dict[str, Any]:
    """Read one line, an object whose values are text, numbers, truth values or null."""
    row = parse_json(line, where)
    if not isinstance(row, dict):
        raise FileFormatError(f"{where}: is no JSON object: write one object in each line")
    for name, value in row.items():
        if isinstance(value, dict | list):
            raise FileFormatError(
                f"{where}: the value of {name!r} is no text, number or truth value: give it keys of its own"
            )
    return row
