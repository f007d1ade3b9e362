"""Writers of data frames of R (.rds) and of workbooks of Excel (.xlsx)."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from pmlopt.core.lazy_imports import import_optional, pyarrow
from pmlopt.core.matrices.excel import MAX_ROWS, build_workbook, check_excel
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables.cells import is_kind
from pmlopt.tables.r_files import FACTOR
from pmlopt.tables.table import Table
from pmlopt.tables.typed_sinks import OutputColumn, TypedSink, WholeTable, make_write_error


class DocumentSink(TypedSink):
    """The base of writers whose formats have some types, and are written from all rows at once.

    Attributes:
        kind: of the file, in words.
        has_zones: whether it holds moments in a time zone.
    """

    kind = ""
    has_zones = True

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        super().__init__(stream, columns, like)
        self._like = like
        for field in self._schema:
            self._check_type(field)

    def _check_type(self, field: Any) -> None:
        """Raise an error for a column that the format cannot hold."""
        kind = field.type
        kinds = "boolean integer floating string large_string date32 timestamp null"
        is_held = is_kind(kind, *kinds.split())
        if is_held and (self.has_zones or not getattr(kind, "tz", None)):
            return
        raise make_write_error(field.name, kind, f"a {self.kind}")

    def _open_writer(self, first: Any) -> WholeTable:
        """Return what holds the rows until all are there."""
        return WholeTable(self._schema, lambda table: self._stream.write(self._encode_table(table)))

    def _encode_table(self, table: Any) -> bytes:
        """Return the bytes of the file of a table."""
        raise NotImplementedError


class WorkbookSink(DocumentSink):
    """A writer of a workbook of one sheet."""

    kind, has_zones = "workbook of Excel", False

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        check_excel()
        super().__init__(stream, columns, like)
        if like.rows is not None and like.rows >= MAX_ROWS:
            raise InputError(
                f"a sheet of Excel has at most {MAX_ROWS - 1} rows below its header, and the data have "
                f"{like.rows}: save them as CSV or Parquet first"
            )

    def _encode_table(self, table: Any) -> bytes:
        """Return the bytes of the workbook of a table."""
        columns = [
            _list_cells(table.column(place), name) for place, name in enumerate(table.column_names)
        ]
        rows = map(list, zip(*columns, strict=True))
        return build_workbook({"released": [table.column_names, *rows]}, freeze="A2")


def _list_cells(column: Any, name: str) -> list[Any]:
    """Return the cells of a column as Excel has them, None for a missing one."""
    cells = column.to_pylist()
    if any(isinstance(cell, float) and math.isinf(cell) for cell in cells):
        raise FileFormatError(
            f"the column {name!r} has an infinite number, which Excel has not: leave it out by --drop"
        )
    return [None if cell != cell else cell for cell in cells]


class RSink(DocumentSink):
    """A writer of a data frame of R, whose factors have those of their levels that occur, in their order."""

    kind = "file of R"

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        self._parser = import_optional("rdata.parser", "writers of files of R")
        super().__init__(stream, columns, like)
        fields = getattr(like, "fields", ()) if like.ending == ".rds" else ()
        self._factors = {
            one.name: json.loads(one.metadata[FACTOR])
            for one in fields
            if one.metadata and FACTOR in one.metadata
        }

    def _encode_table(self, table: Any) -> bytes:
        """Return the bytes of the file of a table."""
        from rdata.unparser import unparse_data

        names = table.column_names
        parser = self._parser
        frame = self._make_object(
            "VEC",
            [
                self._convert_column(table.column(place).combine_chunks(), one)
                for place, one in enumerate(self._columns)
            ],
            {
                "names": self._make_texts(names),
                # R's short form of the numbers from 1 on
                "row.names": self._make_object("INT", np.array([-(2**31), -len(table)], np.int32)),
                "class": self._make_texts(["data.frame"]),
            },
        )
        # the second version of the format, which R reads from 2.3.0 on
        versions = parser.RVersions(2, 0x30600, 0x20300)
        content = unparse_data(parser.RData(versions, parser.RExtraInfo(None), frame))
        return gzip.compress(content, mtime=0)

    def _make_object(
        self, kind: str, value: Any, attributes: Mapping[str, Any] | None = None, tag: Any = None
    ) -> Any:
        """Build an object of R."""
        parser = self._parser
        pairs = None
        for name, one in reversed(list((attributes or {}).items())):
            rest = pairs or self._make_object("NILVALUE", None)
            symbol = self._make_object("SYM", self._make_text(name))
            pairs = self._make_object("LIST", (one, rest), tag=symbol)
        info = parser.RObjectInfo(
            parser.RObjectType[kind], object="class" in (attributes or {}), attributes=pairs is not None,
            tag=tag is not None, gp=8 if kind == "CHAR" and value is not None else 0, reference=0,
        )  # fmt: skip
        return parser.RObject(info, value, pairs, tag)

    def _make_text(self, text: str | None) -> Any:
        """Build a text of R in UTF-8, or NA."""
        return self._make_object("CHAR", None if text is None else text.encode())

    def _make_texts(self, texts: Sequence[str | None]) -> Any:
        """Build a character vector of R."""
        made = {text: self._make_text(text) for text in dict.fromkeys(texts)}
        return self._make_object("STR", [made[text] for text in texts])

    def _convert_column(self, column: Any, about: OutputColumn) -> Any:
        """Build the vector of a column."""
        kind = column.type
        absent = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        if is_kind(kind, "string", "large_string"):
            return self._make_texts_or_factor(column.to_pylist(), about)
        if pyarrow.types.is_timestamp(kind):
            micros = column.cast(pyarrow.timestamp("us", kind.tz)).cast(pyarrow.int64())
            zone = self._make_texts([kind.tz or "UTC"])
            return self._make_numbers(
                _to_numpy(micros) / 1e6, absent, {"class": ("POSIXct", "POSIXt")}, {"tzone": zone}
            )
        if pyarrow.types.is_date32(kind):
            days = _to_numpy(column.cast(pyarrow.int32()))
            return self._make_numbers(days.astype(float), absent, {"class": ("Date",)})
        if is_kind(kind, "boolean", "null"):
            truth = _to_numpy(column.cast(pyarrow.bool_()).cast(pyarrow.int8())).astype(np.int32)
            return self._make_object("LGL", np.where(absent, np.int32(-(2**31)), truth))
        values = _to_numpy(column)
        if pyarrow.types.is_integer(kind) and (np.abs(values.astype(float)) < 2**31).all():
            return self._make_object("INT", np.where(absent, -(2**31), values).astype(np.int32))
        if pyarrow.types.is_integer(kind) and (np.abs(values.astype(float)) > 2**53).any():
            raise FileFormatError(
                f"the column {about.name!r} has whole numbers above 2^53, which R rounds: leave it out by "
                "--drop, or make it text"
            )
        return self._make_numbers(values.astype(float), absent)

    def _make_numbers(
        self,
        values: Any,
        absent: Any,
        texts: Mapping[str, Sequence[str]] | None = None,
        others: Mapping[str, Any] | None = None,
    ) -> Any:
        """Build a vector of numbers with attributes, NA where they are absent."""
        missing = np.array(0x7FF00000000007A2, np.uint64)  # NA of R
        cells = np.where(absent, missing, values.view(np.uint64)).view(np.float64)
        attributes = {name: self._make_texts(list(own)) for name, own in (texts or {}).items()}
        return self._make_object("REAL", cells, attributes | dict(others or {}))

    def _make_texts_or_factor(self, cells: list[str | None], about: OutputColumn) -> Any:
        """Build a character vector, or a factor where the column was one."""
        if about.name not in self._factors:
            return self._make_texts(cells)
        known, is_ordered = self._factors[about.name]
        seen = {cell for cell in cells if cell is not None}
        # outputs are public; of what is kept only the levels that occur
        levels = [one for one in known if one in seen] if about.place is not None else [
            str(label) for label in about.labels
        ]  # fmt: skip
        is_ordered = is_ordered and set(levels) <= set(known)
        places = {level: place for place, level in enumerate(levels, 1)}
        codes = np.array([places.get(cell, -(2**31)) for cell in cells], np.int32)
        classes = ["ordered", "factor"] if is_ordered else ["factor"]
        return self._make_object(
            "INT", codes, {"levels": self._make_texts(levels), "class": self._make_texts(classes)}
        )


def _to_numpy(column: Any) -> Any:
    """Return the values of an array of numbers, 0 for missing ones."""
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False))
