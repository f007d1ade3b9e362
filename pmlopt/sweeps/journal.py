"""The on-disk journal of a running sweep, from which it resumes after a kill."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import hmac
import io
import json
import os
import reprlib
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from types import CodeType, MethodType, ModuleType
from typing import Any

import numpy as np

from pmlopt.core.failures import report_os_errors
from pmlopt.core.files.csv_rows import encode_csv
from pmlopt.core.files.disk import check_target, exclusive_lock, get_file_format
from pmlopt.errors import SweepError
from pmlopt.sweeps.table import (
    COLUMNS,
    ENDINGS,
    Points,
    SweepRow,
    format_cell,
    join_lines,
    parse_cell,
    to_plain_number,
)

MAX_FINGERPRINT_DEPTH = 30
"""How deep data may be nested: deeper than tables and closures are, and far from the end of a recursion."""


def get_builder_name(builder: Any) -> str:
    """Return the qualified name of a builder, also of a partial function.

    Examples:
        >>> get_builder_name(partial(get_builder_name, 1))
        'pmlopt.sweeps.journal.get_builder_name'
    """
    if isinstance(builder, partial):
        return get_builder_name(builder.func)
    named = builder if _has_own_name(builder) else type(builder)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


def _has_own_name(value: Any) -> bool:
    """Return whether a value is a function or class, identified by name."""
    return callable(value) and hasattr(value, "__qualname__")


def compute_fingerprint(*things: Any) -> str:
    """Compute a fingerprint of data, stable across processes.

    Functions count by their names, their code, their defaults and what they have bound, other objects by
    what a copy of them would be made from. Global variables that a function reads do not count.

    Raises:
        SweepError: something cannot be distinguished from another of its kind, such as a generator or an open
            file, or is nested deeper than `MAX_FINGERPRINT_DEPTH`.

    Examples:
        >>> compute_fingerprint(partial(get_builder_name, np.eye(2))) == compute_fingerprint(
        ...     partial(get_builder_name, np.eye(2))
        ... )
        True
        >>> compute_fingerprint(partial(get_builder_name, np.eye(2))) == compute_fingerprint(
        ...     partial(get_builder_name, np.eye(3))
        ... )
        False
    """
    digest = hashlib.sha256()
    for token in _iterate_tokens(things, ()):
        digest.update(token)
    return digest.hexdigest()


def _iterate_tokens(value: Any, around: tuple[Any, ...]) -> Iterator[bytes]:
    """Yield type-prefixed tokens of a value, recursively.

    Args:
        value: data or a function.
        around: what it is inside of, the outermost first.
    """
    value = to_plain_number(value)
    yield f"{type(value).__qualname__}:".encode()
    outer = [place for place, other in enumerate(around) if other is value]
    if value is None or isinstance(value, str | bytes | bool | int | float | complex):
        yield repr(value).encode()
    elif outer:  # it holds itself
        yield f"{outer[0]}".encode()
    elif len(around) > MAX_FINGERPRINT_DEPTH:
        raise SweepError(
            f"the builder or the grid holds data nested deeper than {MAX_FINGERPRINT_DEPTH}, as "
            f"{reprlib.repr(around[1])}: a "
            "sweep with `out` could not distinguish it from others; give a file's name or numbers instead"
        )
    elif type(value) is np.ndarray and not value.dtype.hasobject:
        # kind and shape first: equal bytes may belong to arrays of other shapes
        yield f"{value.dtype}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Set):
        yield from sorted(b"".join(_iterate_tokens(item, (*around, value))) for item in value)
    else:
        for part in _list_identifying_parts(value):
            yield from _iterate_tokens(part, (*around, value))
    yield b";"


def _list_identifying_parts(value: Any) -> list[Any]:
    """Return the parts that identify a value."""
    if type(value) is np.ndarray:
        return [value.shape, *value.ravel().tolist()]
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, ModuleType):
        return [value.__name__]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_consts, value.co_names, value.co_varnames]
    if _has_own_name(value):
        return _list_function_parts(value)
    return [get_builder_name(value), *_get_state(value)]


def _list_function_parts(function: Any) -> list[Any]:
    """Return a function's name and bound data."""
    cells = getattr(function, "__closure__", None) or ()
    names = ("__code__", "__defaults__", "__kwdefaults__", "__wrapped__", "__self__")
    return [
        get_builder_name(function),
        *(getattr(function, name, None) for name in names),
        *(_get_cell_content(cell) for cell in cells),
    ]


def _get_cell_content(cell: Any) -> Any:
    """Return a closure cell's content; None if empty."""
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _get_state(value: Any) -> list[Any]:
    """Return an object's fields or pickling state."""
    if dataclasses.is_dataclass(value):
        return [{field.name: getattr(value, field.name) for field in dataclasses.fields(value)}]
    try:
        made = value.__reduce_ex__(4)
    except Exception as cause:  # whatever a user's class raises
        raise SweepError(
            f"{reprlib.repr(value)} cannot be distinguished from another {type(value).__qualname__} "
            f"({cause}), and a sweep with `out` might continue with the rows of the other: give a list, a "
            "file's name or plain numbers instead"
        ) from None
    if isinstance(made, str):
        return [made]
    function, arguments, state, items, pairs = (*made, None, None, None)[:5]
    return [
        function,
        arguments,
        _drop_cached_properties(value, state),
        list(items or ()),
        list(pairs or ()),
    ]


def _drop_cached_properties(value: Any, state: Any) -> Any:
    """Return an object's state without cached properties."""
    if isinstance(state, tuple):
        return tuple(_drop_cached_properties(value, part) for part in state)
    if not isinstance(state, dict):
        return state
    kind = type(value)
    return {
        name: item
        for name, item in state.items()
        if not isinstance(getattr(kind, str(name), None), cached_property)
    }


FORMAT = "pmlopt-sweep"


class SweepJournal:
    """The journal of an unfinished sweep next to its future table.

    For `table.csv` they are in `table.csv.part`, whose first line states of which sweep they are. A line for
    each finished point ends with a digest of itself and of what the sweep is: one that was changed, or is of
    another sweep, is refused. Anyone who writes holds a lock on `table.csv.lock`, from before the first look
    at the other files until the end.

    Attributes:
        rows: those that are finished, by the position of their point in the grid.
    """

    def __init__(
        self, out: str | os.PathLike[str], points: Points, identity: Mapping[str, Any]
    ) -> None:
        """Begin a journal, or go on with the one that is there.

        Raises:
            SweepError: the table is there, the journal is of another sweep, or it is being written.
            FileFormatError: the files cannot be written.
        """
        self.out = Path(out)
        check_target(self.out)
        get_file_format(self.out, ENDINGS)
        self.path = self.out.with_name(f"{self.out.name}.part")
        self._points = points
        # also the key of the digests: lines of another sweep do not verify
        self._key = json.dumps({"format": FORMAT, **identity}).encode()
        with ExitStack() as held:
            # no waiting: a running sweep may take hours, and two would solve the same points
            held.enter_context(exclusive_lock(self.out, wait=0, error=SweepError))
            # under the lock: another process could make the journal between the look and the
            # opening
            there = self.path.exists()
            if self.out.exists() and not there:
                raise SweepError(f"{self.out}: is there already: give another name, or delete it")
            with report_os_errors(self.path):
                self._stream = held.enter_context(self.path.open("r+b" if there else "x+b"))
            self.rows = self._read()
            # the lock outlives this block; after an exception it is released here
            self._held = held.pop_all()

    def add(self, position: int, row: SweepRow) -> None:
        """Append a row durably."""
        texts = [str(position), *(join_lines(format_cell(cell)) for cell in row.cells)]
        self._write_line(encode_csv([[*texts, self._sign_line(texts)]]))
        self.rows[position] = row

    def close(self) -> None:
        """Close the journal and release its lock."""
        self._held.close()

    def remove(self) -> None:
        """Delete the journal after the table is saved."""
        # closed first: some systems do not remove open files
        self._stream.close()
        self.path.unlink(missing_ok=True)
        self.close()

    def _read(self) -> dict[int, SweepRow]:
        """Read the rows, dropping a truncated last line."""
        content = self._stream.read()
        if self._key.startswith(content):  # new, or the first line was cut short
            self._stream.seek(0)
            self._write_line(self._key + b"\n")
            return {}
        head, _, lines = content.partition(b"\n")
        self._check_head(head)
        # a line without its end is one that a kill cut short
        lines = lines[: lines.rfind(b"\n") + 1]
        # the cut is at the last complete line, so that the next row does not join half a line
        self._stream.seek(len(head) + 1 + len(lines))
        self._stream.truncate()
        cells = csv.reader(io.StringIO(lines.decode(errors="replace"), newline=""))
        return dict(map(self._parse_line, cells))

    def _check_head(self, head: bytes) -> None:
        """Raise an error where the journal belongs to another sweep."""
        remedy = f"give another name than {self.out}, or delete {self.path}"
        try:
            stored = json.loads(head)
        except ValueError:
            stored = None
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise SweepError(f"{self.path}: its first line does not identify a sweep: {remedy}")
        for key, asked in json.loads(self._key).items():
            if stored.get(key) != asked:
                old, new = (reprlib.repr(item) for item in (stored.get(key), asked))
                raise SweepError(
                    f"{self.path}: is of another sweep, whose {key} is {old}, not {new}: {remedy}"
                )

    def _sign_line(self, texts: Sequence[str]) -> str:
        """Compute the HMAC-SHA256 of a journal line."""
        return hmac.digest(self._key, encode_csv([texts]), "sha256").hex()

    def _parse_line(self, line: list[str]) -> tuple[int, SweepRow]:
        """Parse a line; raise an error for a wrong digest."""
        *cells, digest = line or [""]
        try:
            if digest != self._sign_line(cells):
                raise ValueError("its digest is another")
            position = range(len(self._points)).index(int(cells[0]))
            entries = zip(COLUMNS, cells[1 + len(self._points[0]) :], strict=True)
            values = {name: parse_cell(name, text) for name, text in entries}
            row = SweepRow(self._points[position], **values)
        except (ValueError, IndexError) as cause:
            raise SweepError(
                f"{self.path}: the line {','.join(line)!r} was not written by this sweep ({cause}): "
                "delete it, and its point is solved again"
            ) from None
        return position, row

    def _write_line(self, line: bytes) -> None:
        """Append a line, flushed to disk."""
        with report_os_errors(self.path):
            self._stream.write(line)
            # flush and fsync: a row that was reported as finished survives a crash
            self._stream.flush()
            os.fsync(self._stream.fileno())
