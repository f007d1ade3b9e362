"""A reader of MAT files of level 5 (MATLAB 5 to 7, Octave, scipy), for numbers, text and cells.

That of scipy ends the process on some damaged files. Here each element is a slice of the bytes that are
there, and what does not fit raises ValueError.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
"""Types of the numbers in an element."""
_ENCODINGS = {16: "utf-8", 17: "utf-16", 4: "utf-16", 18: "utf-32", 1: "latin-1", 2: "latin-1"}
_CLASSES = (
    "unknown", "cell", "struct", "object", "char", "sparse", "double", "single", "int8", "uint8", "int16",
    "uint16", "int32", "uint32", "int64", "uint64", "function", "opaque",
)  # fmt: skip
CLASS_TYPES = {
    "double": "f8", "single": "f4", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "int64": "i8", "uint64": "u8", "logical": "?",
}  # fmt: skip
"""Of each class of numbers the type of numpy; numbers may be stored in a smaller one."""
_LOGICAL, _COMPLEX = 0x0200, 0x0800


@dataclass(frozen=True)
class MatText:
    """A MAT character array, as rows."""

    rows: tuple[str, ...]


@dataclass(frozen=True)
class MatCells:
    """A MAT cell array: shape and column-major content."""

    shape: tuple[int, ...]
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class MatVariable:
    """A MAT variable with parsed header and unread data."""

    name: str
    shape: tuple[int, ...]
    kind: str
    is_complex: bool
    _body: memoryview
    _order: str
    _compressed: bool

    def value(self, max_bytes: int) -> Any:
        """Read the data as an array, `MatText` or `MatCells`.

        Args:
            max_bytes: to which it may be unpacked.

        Raises:
            ValueError: it is cut short, larger, or of another class.
        """
        body = _decompress_body(self._body, max_bytes) if self._compressed else self._body
        if self._compressed:
            _, body, _ = _parse_element(body, 0, self._order)
        return _parse_value(body, self._order, 0)


def read_variables(content: bytes) -> list[MatVariable]:
    """Read the variables of a MAT-5 file.

    Raises:
        ValueError: it is none, or cut short.
    """
    header_bytes = 128
    order = {b"IM": "<", b"MI": ">"}.get(content[126:header_bytes])
    if order is None:
        raise ValueError("the header of a MAT file of level 5 is missing")
    found, place, view = [], header_bytes, memoryview(content)
    while place < len(view):
        kind, body, place = _parse_element(view, place, order)
        if kind == _COMPRESSED:
            # Bytes of a variable that hold its class, its shape and its name.
            head = _decompress_body(body, 4096, whole=False)
            inner, _, _ = _parse_element(head, 0, order, whole=False)
            found.append(_parse_variable(inner, head[8:], body, order, compressed=True))
        else:
            found.append(_parse_variable(kind, body, body, order, compressed=False))
    return found


def _parse_variable(
    kind: int, head: memoryview, body: memoryview, order: str, *, compressed: bool
) -> MatVariable:
    """Parse the header of a variable."""
    if kind != _MATRIX:
        raise ValueError(f"an element of the type {kind} is in the place of a variable")
    flags, shape, name, _ = _read_description(head, order)
    return MatVariable(
        name, shape, _get_matlab_class(flags), bool(flags & _COMPLEX), body, order, compressed
    )


def _decompress_body(body: memoryview, max_bytes: int, *, whole: bool = True) -> memoryview:
    """Decompress a variable's data up to a limit."""
    try:
        packed = zlib.decompressobj()
        content = packed.decompress(body, max_bytes)
        if whole and not packed.eof:  # the checksum at the end is read with one more byte
            content += packed.decompress(packed.unconsumed_tail, 1)
    except zlib.error as cause:
        raise ValueError(f"a compressed variable is damaged: {cause}") from None
    if whole and not packed.eof:
        raise ValueError(f"a compressed variable is cut short, or has more than {max_bytes} bytes")
    return memoryview(content)


def _parse_element(
    view: memoryview, place: int, order: str, *, whole: bool = True
) -> tuple[int, memoryview, int]:
    """Parse the element at an offset; return type, data and next offset."""
    if place + 8 > len(view):
        raise ValueError("an element is cut short")
    kind, size = struct.unpack_from(f"{order}II", view, place)
    start = place + 8
    if (
        kind >> 16
    ):  # a small element: its size and type are in four bytes, its content in the next four
        kind, size, start = kind & 0xFFFF, kind >> 16, place + 4
        if size > 4:
            raise ValueError("a small element has more than four bytes")
    if whole and start + size > len(view):
        raise ValueError("an element is cut short")
    end = start + size if kind == _COMPRESSED else place + 8 * math.ceil((start + size - place) / 8)
    return kind, view[start : start + size], end


def _read_description(body: memoryview, order: str) -> tuple[int, tuple[int, ...], str, int]:
    """Parse a matrix header: flags, shape, name and data offset."""
    _, flags_bytes, place = _parse_element(body, 0, order)
    (flags,) = struct.unpack_from(f"{order}I", flags_bytes)
    if _get_matlab_class(flags) == "opaque":
        return flags, (), "", place
    kind, shape_bytes, place = _parse_element(body, place, order)
    if kind != 5 or len(shape_bytes) % 4 or len(shape_bytes) < 8:
        raise ValueError("the shape of a variable is damaged")
    shape = struct.unpack(f"{order}{len(shape_bytes) // 4}i", shape_bytes)
    if min(shape) < 0:
        raise ValueError("a variable has a negative length")
    _, name, place = _parse_element(body, place, order)
    return flags, shape, bytes(name).decode("utf-8"), place


def _get_matlab_class(flags: int) -> str:
    """Return the MATLAB class in array flags."""
    number = flags & 0xFF
    kind = _CLASSES[number] if number < len(_CLASSES) else _CLASSES[0]
    return "logical" if flags & _LOGICAL and kind in CLASS_TYPES else kind


def _parse_value(body: memoryview, order: str, depth: int) -> Any:
    """Parse the value of a matrix element."""
    # How deep cells may be in one another.
    max_depth = 100
    if len(body) == 0:
        return np.zeros((0, 0))  # as MATLAB writes [] in a cell
    if depth > max_depth:
        raise ValueError(f"cells are more than {max_depth} deep in one another")
    flags, shape, _, place = _read_description(body, order)
    kind = _get_matlab_class(flags)
    if kind == "cell":
        return MatCells(
            shape, tuple(_parse_cell_array(body, place, math.prod(shape), order, depth))
        )
    if kind == "char":
        return _parse_char_array(body, place, shape, order)
    if kind not in CLASS_TYPES:
        raise ValueError(f"the class {kind} is not read")
    real, place = _parse_numeric_array(body, place, shape, order)
    if flags & _COMPLEX:
        imaginary, place = _parse_numeric_array(body, place, shape, order)
        return real + 1j * imaginary
    return real.astype(CLASS_TYPES[kind])


def _parse_cell_array(
    body: memoryview, place: int, count: int, order: str, depth: int
) -> Iterator[Any]:
    """Parse the elements of a cell array."""
    for _ in range(count):
        kind, part, place = _parse_element(body, place, order)
        if kind != _MATRIX:
            raise ValueError("a cell is damaged")
        yield _parse_value(part, order, depth + 1)


def _parse_numeric_array(
    body: memoryview, place: int, shape: tuple[int, ...], order: str
) -> tuple[Any, int]:
    """Parse a numeric array."""
    kind, content, place = _parse_element(body, place, order)
    if kind not in _NUMBERS:
        raise ValueError(f"an element of the type {kind} is in the place of numbers")
    numbers = np.frombuffer(content, np.dtype(f"{order}{_NUMBERS[kind]}"))
    return numbers.reshape(shape, order="F"), place


def _parse_char_array(body: memoryview, place: int, shape: tuple[int, ...], order: str) -> MatText:
    """Parse a character array, stored by columns."""
    if math.prod(shape) == 0:
        return MatText(("",))
    kind, content, _ = _parse_element(body, place, order)
    if kind not in _ENCODINGS or len(shape) != 2:
        raise ValueError("an array of characters is damaged")
    encoding = _ENCODINGS[kind] + (
        ("-le" if order == "<" else "-be") if kind in (17, 4, 18) else ""
    )
    text = bytes(content).decode(encoding)
    if shape[0] == 1:
        return MatText((text,))
    if len(text) != math.prod(shape):
        raise ValueError("an array of characters has another number of them than its shape")
    return MatText(tuple(text[row :: shape[0]] for row in range(shape[0])))
