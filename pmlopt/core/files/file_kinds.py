"""Detection of foreign file types by their first bytes."""

from __future__ import annotations

import io
import re

from pmlopt.core.lazy_imports import zipfile

_SAVE = "save it as CSV in UTF-8, and give that"

OCTAVE_BEGINNINGS = (b"# Created by Octave", b"Octave-1-")
"""Of what `save` of Octave writes without an option, and with `-binary`."""

_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        f"is an Excel file (.xls) or another Office file: {_SAVE}",
    ),
    (b"%PDF-", f"is a PDF file: {_SAVE}"),
    (
        b"SQLite format 3\0",
        "is a database of SQLite: give sqlite:///FILE and its --table to pmlopt release, or export the table",
    ),
    (b"\x89HDF\r\n\x1a\n", f"is an HDF5 file: {_SAVE}"),
    (b"\x93NUMPY", f"is an array of numpy (.npy): {_SAVE}"),
    (b"RDX2\n", f"is a file of R (.RData): {_SAVE}"),
    (b"RDX3\n", f"is a file of R (.RData): {_SAVE}"),
    (b"RDA2\n", f"is a file of R (.RData): {_SAVE}"),
    (b"RDA3\n", f"is a file of R (.RData): {_SAVE}"),
    (b"FEA1", f"is a file of Feather in its first version: {_SAVE}, or as Parquet"),
    (b"\0\1\0\0Standard ", "is a database of Access: export the table as CSV, and give that"),
    (b"X\n\0\0\0", f"is a file of R (.rds): {_SAVE}"),
    *((beginning, f"is a file of Octave's own format: {_SAVE}") for beginning in OCTAVE_BEGINNINGS),
    (b"ORC", f"is an ORC file: {_SAVE}, or as Parquet"),
    (b"Obj\x01", f"is an Avro file: {_SAVE}, or as Parquet"),
    (b"\xfd7zXZ\0", "is compressed by xz: unpack it, and give what is inside"),
    (b"7z\xbc\xaf\x27\x1c", "is an archive of 7-Zip: unpack it, and give what is inside"),
    (b"Rar!\x1a\x07", "is a RAR archive: unpack it, and give what is inside"),
)
"""How files of other programs begin, with what a message states of them."""

_TABLES: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "is a Parquet file, and text in CSV is needed here: write the table as CSV"),
    (b"ARROW1", "is an Arrow file, and text in CSV is needed here: write the table as CSV"),
    (b"\x1f\x8b", "is compressed by gzip: unpack it, and give what is inside"),
    (b"BZh", "is compressed by bzip2: unpack it, and give what is inside"),
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd: unpack it, and give what is inside"),
    (b"\xff\xfe", "is text in UTF-16: save it as CSV in UTF-8"),
    (b"\xfe\xff", "is text in UTF-16: save it as CSV in UTF-8"),
)
"""The same for files that a table of people is read from, and a small table is not."""

_SURVEYS: tuple[tuple[bytes, str], ...] = (
    (b"$FL2", ".sav"),
    (b"$FL3", ".zsav"),
    (b"<stata_dta>", ".dta"),
    (
        bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\x00",
        ".sas7bdat",
    ),
    (b"HEADER RECORD*******LIB", ".xpt"),
)
"""How files of statistical programs begin, with the endings of their names."""

SURVEY_KINDS = {
    ".sav": "file of SPSS",
    ".zsav": "file of SPSS",
    ".dta": "file of Stata",
    ".sas7bdat": "file of SAS",
    ".xpt": "transport file of SAS",
    ".por": "portable file of SPSS",
}
"""What these files are, by the ending."""

_STATA = re.compile(rb"[\x66-\x73][\x01\x02]\x01\x00")
"""The header of Stata's files up to version 115: version, order of bytes, and type."""

_R_TEXT = re.compile(rb"A\n[23]\n\d{6}\n(131840|197888)\n")
"""The header of an object of R that is saved as text, without compression."""

_PC_AXIS = re.compile(
    rb"\s*(AUTOPEN|AXIS-VERSION|CHARSET|CODEPAGE|CONFIDENTIAL|COPYRIGHT|CREATION-DATE|DECIMALS|DEFAULT-GRAPH|"
    rb"DESCRIPTION|LANGUAGES?|LAST-UPDATED|MATRIX|NEXT-UPDATE|PX-SERVER|SHOWDECIMALS|SUBJECT-AREA|SUBJECT-CODE|"
    rb"TABLEID|TITLE|UPDATE-FREQUENCY)(\[\w+\])?=[^;]*;"
)
"""The first keyword of a file of PC-Axis, with its value."""

_PAGE = re.compile(rb"\s*<(!doctype html|html|\?xml)\b", re.IGNORECASE)
_JSON = re.compile(rb'\s*(\{\s*("|\})|\[\s*[\[{"\]])')


def describe_foreign_file(head: bytes, *, small: bool = False) -> str | None:
    r"""Describe a foreign file by its first bytes, with advice; None for possible CSV.

    Args:
        head: the first bytes of the file, or all of them.
        small: whether the file is read as a small table, for which Parquet, Arrow and compressed files are
            foreign too.

    Examples:
        >>> describe_foreign_file(b"%PDF-1.7")
        'is a PDF file: save it as CSV in UTF-8, and give that'
        >>> describe_foreign_file(b"level,count\n1,2\n") is None
        True
    """
    if head.startswith(b"PK\x03\x04"):
        return _describe_archive(head)
    for beginning, description in (*_BEGINNINGS, *(_TABLES if small else ())):
        if head.startswith(beginning):
            return description
    ending = find_survey_ending(head)
    if ending is not None:
        return f"is a {SURVEY_KINDS[ending]} ({ending}): {_SAVE}"
    text = head[3:] if head.startswith(b"\xef\xbb\xbf") else head
    if _PAGE.match(text):
        return f"is a page of HTML or XML: {_SAVE}"
    if _PC_AXIS.match(text):
        return f"is a file of PC-Axis (.px): {_SAVE}"
    if _JSON.match(text):
        return f"is JSON: {_SAVE}"
    return None


def find_survey_ending(head: bytes) -> str | None:
    """Return the ending for a statistical program's file by its first bytes; None for another.

    Examples:
        >>> find_survey_ending(b"$FL2@(#) SPSS DATA FILE"), find_survey_ending(b"level,count")
        ('.sav', None)
    """
    for beginning, ending in _SURVEYS:
        if head.startswith(beginning):
            return ending
    if _STATA.match(head):
        return ".dta"
    is_portable = b"SPSSPORT" in head[:1000].translate(None, b"\r\n")[350:500]
    return ".por" if is_portable else None


def find_document_ending(head: bytes) -> str | None:
    r"""Return the ending for a workbook or an unpacked file of R by its first bytes; None for another.

    Examples:
        >>> find_document_ending(b"RDX3\nX\n"), find_document_ending(b"level,count")
        ('.rds', None)
    """
    if head.startswith((b"RDX2\n", b"RDX3\n", b"RDA2\n", b"RDA3\n", b"X\n\0\0\0")):
        return ".rds"
    if head.startswith(b"PK\x03\x04"):
        if b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet" in head[:200]:
            return ".ods"
        return ".xlsx" if b"xl/work" in head else None
    return ".rds" if _R_TEXT.match(head) else None


def _describe_archive(head: bytes) -> str:
    """Describe a ZIP archive by its first member names."""
    if b"xl/workbook" in head or b"[Content_Types].xml" in head[:200]:
        return f"is an Excel file: {_SAVE}"
    if b"mimetypeapplication/vnd.oasis.opendocument" in head[:200]:
        return f"is an OpenDocument file (.ods): {_SAVE}"
    if b".npy" in head[:200]:
        return "is a file of numpy arrays (.npz), such as a saved mechanism, and no table"
    inside = ", ".join(_list_archive_names(head)[:3])
    return (
        f"is a ZIP archive{f' of {inside}' if inside else ''}: unpack it, and give what is inside"
    )


def _list_archive_names(content: bytes) -> list[str]:
    """List the member names of a ZIP archive; empty for a truncated one."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return []
