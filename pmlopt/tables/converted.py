"""Workbooks and files of R, which a process of its own converts to Arrow."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pmlopt.core.files.child_process import call_in_child
from pmlopt.core.files.disk import MAX_FILE_BYTES
from pmlopt.core.lazy_imports import check_installed, ipc
from pmlopt.errors import FileFormatError, LabelWarning
from pmlopt.tables.r_files import read_data_frame
from pmlopt.tables.spreadsheets import read_open_document, read_workbook
from pmlopt.tables.streams import DataStream


@dataclass(frozen=True)
class DocumentReader:
    """A kind of file that is converted.

    Attributes:
        kind: in words.
        function: takes the bytes of a file and the name of a part, and returns a table of Arrow, and notes on
            what is read otherwise than it stands there.
        packages: that it needs.
    """

    kind: str
    function: Callable[[bytes, str | None], tuple[Any, list[str]]]
    packages: tuple[str, ...] = ()


CONVERTERS: Mapping[str, DocumentReader] = {
    ".rds": DocumentReader("file of R", read_data_frame, ("rdata",)),
    ".xlsx": DocumentReader("workbook of Excel", read_workbook, ("openpyxl",)),
    ".ods": DocumentReader("OpenDocument spreadsheet", read_open_document),
}
"""The converters by the ending that `find_document_ending` states."""

_NOTES = b"pmlopt"


def convert_document(source: DataStream, ending: str, where: object, part: str | None) -> bytes:
    """Convert a workbook or a file of R to an Arrow file, and warn of what is read otherwise.

    Args:
        source: of its bytes.
        ending: of such files.
        where: the file, for messages.
        part: the sheet, or the data frame; None where there is one.

    Raises:
        FileFormatError: it is not whole, too large, or it is not clear which table is meant.
        MissingExtraError: the package that reads it is not installed.
    """
    check_installed(f"files that end in {ending}", *CONVERTERS[ending].packages)
    content = io.BufferedReader(source).read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise FileFormatError(
            f"{where}: has more than {MAX_FILE_BYTES} bytes, the most that is read"
        )
    try:
        made = _call_converter(content, ending, part)
    except FileFormatError as error:
        raise FileFormatError(f"{where}: {error}") from None
    for note in json.loads(ipc.open_file(made).schema.metadata[_NOTES]):
        warnings.warn(f"{where}: {note}", LabelWarning, stacklevel=3)
    return made


@lru_cache(maxsize=1)  # a release reads its data several times
def _call_converter(content: bytes, ending: str, part: str | None) -> bytes:
    """Convert a file in a process of its own, which a damaged one can end."""
    return call_in_child(
        write_converted, content, packages=["pyarrow", *CONVERTERS[ending].packages],
        max_bytes=3 * MAX_FILE_BYTES, seconds=3600.0, ending=ending, part=part,
    )  # fmt: skip


def write_converted(content: bytes, ending: str, part: str | None) -> bytes:
    """Convert a file in this process to an Arrow file, with the notes as JSON among its metadata."""
    kind = CONVERTERS[ending]
    try:
        table, notes = kind.function(content, part)
    except (FileFormatError, MemoryError):
        raise
    except Exception as cause:  # what is raised on foreign bytes has no bounds
        raise FileFormatError(f"is no whole {kind.kind}: {cause}") from None
    table = table.replace_schema_metadata({_NOTES: json.dumps(notes)})
    stream = io.BytesIO()
    with ipc.new_file(stream, table.schema) as writer:
        # rows of a batch, so that what is made of one takes little memory
        writer.write_table(table, max_chunksize=2**18)
    return stream.getvalue()
