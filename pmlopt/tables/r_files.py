"""Data frames of files of R: levels of factors keep their order, and NA is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import pyarrow
from pmlopt.core.numbers.arrays import join_words
from pmlopt.errors import FileFormatError


def read_data_frame(content: bytes, part: str | None) -> tuple[Any, list[str]]:
    """Return a data frame of an unpacked file of R as a table of Arrow, and notes.

    Args:
        content: of the file (.rds, .rda, .RData).
        part: the name of the data frame, where a file has several.

    Raises:
        FileFormatError: there is none of that name, or a column is none of values.
    """
    from rdata import parser

    kind = ".rda" if content.startswith(b"RD") else ".rds"
    found = parser.parse_data(content, extension=kind).object
    is_saved = found.info.type is parser.RObjectType.LIST
    objects = dict(_list_pairs(found)) if is_saved else {"": found}
    frames = {name: one for name, one in objects.items() if "data.frame" in _list_classes(one)}
    if not frames:
        raise FileFormatError("is a file of R without a data frame: save one by saveRDS")
    if part not in frames and (part is not None or len(frames) > 1):
        raise FileFormatError(
            f"is a file of R with the data frames {join_words(frames)}: name one of them by --sheet"
        )
    frame = frames[next(iter(frames)) if part is None else part]
    names = _decode_texts(dict(_list_pairs(frame.attributes))["names"])
    notes: list[str] = []
    columns = [
        _convert_column(column, str(name), notes)
        for name, column in zip(names, frame.value, strict=True)
    ]
    fields = [
        pyarrow.field(str(name), one.type, metadata=_describe_factor(column))
        for name, one, column in zip(names, columns, frame.value, strict=True)
    ]
    return pyarrow.table(columns, schema=pyarrow.schema(fields)), notes


FACTOR = b"factor"
"""The key of the levels of a factor, and of whether R has it as ordered, as JSON among a field's metadata."""


def _describe_factor(column: Any) -> dict[bytes, str]:
    """Return what is stated of a column that is a factor."""
    classes = _list_classes(column)
    if "factor" not in classes:
        return {}
    levels = _decode_texts(dict(_list_pairs(column.attributes))["levels"])
    return {FACTOR: json.dumps([levels, "ordered" in classes])}


def _list_pairs(pairs: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a list of pairs of R."""
    while getattr(pairs, "value", None) is not None:
        tag = pairs.tag.referenced_object or pairs.tag
        yield tag.value.value.decode(), pairs.value[0]
        pairs = pairs.value[1]


def _list_classes(one: Any) -> list[str | None]:
    """Return the classes of an object of R."""
    classes = dict(_list_pairs(one.attributes)).get("class")
    return [] if classes is None else _decode_texts(classes)


def _decode_texts(cells: Any) -> list[str | None]:
    """Return the texts of a character vector, None for NA."""
    latin = 4  # the flag of ISO 8859-1; all others are UTF-8
    return [
        None
        if one.value is None
        else one.value.decode("latin-1" if one.info.gp & latin else "utf-8")
        for one in cells.value
    ]


def _convert_column(column: Any, name: str, notes: list[str]) -> Any:
    """Return a column as an array of Arrow."""
    attributes = dict(_list_pairs(column.attributes))
    kind = column.info.type.name
    classes = [one for one in _list_classes(column) if one is not None]
    if kind not in ("INT", "REAL", "LGL", "STR") or "dim" in attributes:
        raise FileFormatError(
            f"the column {name!r} is a {'matrix' if 'dim' in attributes else 'list'} or the like, and no "
            "vector of values: leave it out in R"
        )
    if kind == "STR":
        return pyarrow.array(_decode_texts(column), pyarrow.string())
    values = np.asarray(np.ma.getdata(column.value))
    absent = np.ma.getmaskarray(column.value)
    if kind == "REAL":
        # NA is the NaN whose lower half is 1954
        absent = np.isnan(values) & (values.view(np.uint64) & 0xFFFFFFFF == 1954)
    if "integer64" in classes:  # of the package bit64, in the place of doubles
        values = values.view(np.int64)
        absent = values == np.iinfo(np.int64).min
    elif "Date" in classes:
        absent = absent | ~np.isfinite(values)
        days = np.floor(np.where(absent, 0, values)).astype(np.int32)
        return pyarrow.array(days, mask=absent).cast(pyarrow.date32())
    elif "POSIXct" in classes:
        absent = absent | ~np.isfinite(values)
        micros = np.round(np.where(absent, 0, values) * 1e6).astype(np.int64)
        zone = _decode_texts(attributes["tzone"])[0] if "tzone" in attributes else None
        return pyarrow.array(micros, mask=absent).cast(pyarrow.timestamp("us", zone or "UTC"))
    elif "factor" in classes:
        levels = pyarrow.array(_decode_texts(attributes["levels"]), pyarrow.string())
        codes = pyarrow.array(values - 1, pyarrow.int32(), mask=absent)
        # the levels are in the order of the letters whether R calls it ordered or not
        return pyarrow.DictionaryArray.from_arrays(codes, levels, ordered=True)
    elif classes:
        notes.append(f"the column {name!r} is a {classes[0]} of R, of which the numbers are read")
    return pyarrow.array(values, mask=absent)
