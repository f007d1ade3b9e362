"""Files of other programs that are given as CSV are named, with what to do."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from commands import COUNTING, run

from pmlopt import Prior
from pmlopt.core.files.file_kinds import describe_foreign_file
from pmlopt.core.files.letter_files import read_letters
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables import column_counts


def archive(*names: str) -> bytes:
    """A ZIP archive of files with these names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as held:
        for name in names:
            held.writestr(name, "level,count\na,1\n" * 50)
    return stream.getvalue()


def arrays() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, matrix=np.eye(2))
    return stream.getvalue()


def portable(end: str) -> bytes:
    """The start of a portable file of SPSS: 200 characters to read, a table of 256, and the tag."""
    text = "ASCII SPSS PORT FILE".ljust(200) + "0" * 256 + "SPSSPORT" + "A8/20261128" + "0" * 100
    return end.join(text[k : k + 80] for k in range(0, len(text), 80)).encode()


FOREIGN = [
    (
        archive("[Content_Types].xml", "xl/workbook.xml"),
        "Excel",
    ),
    (
        archive("docProps/app.xml", "xl/workbook.xml"),
        "Excel",
    ),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "is an Excel file"),
    (archive("people.csv"), "is a ZIP archive of people.csv: unpack it"),
    (arrays(), "numpy arrays"),
    (b'{\n "a": [1, 2]\n}', "is JSON"),
    (b'[{"a": 1}]', "is JSON"),
    (b'\xef\xbb\xbf{\n"a": 1}', "is JSON"),
    (b"<!DOCTYPE html><html></html>", "is a page of HTML"),
    (b"%PDF-1.7 ...", "is a PDF file"),
    (b"SQLite format 3\0...", "database of SQLite"),
    (
        b"\x73\x01\x01\x00" + bytes(100),
        "is a file of Stata (.dta)",
    ),  # 115, of another order of bytes
    (b"$FL2@(#) SPSS DATA FILE MS Windows", "is a file of SPSS (.sav)"),
    (portable(""), "is a portable file of SPSS (.por)"),
    (portable("\r\n"), "is a portable file of SPSS (.por)"),
    (
        bytes.fromhex("00" * 12 + "c2ea8160b31411cfbd92080009c7318c181f1011") + bytes(99),
        "(.sas7bdat)",
    ),
    (
        b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!" + b"0" * 30,
        "transport file of SAS (.xpt)",
    ),
    (
        b"HEADER RECORD*******LIBV8   HEADER RECORD!!!!!!!" + b"0" * 30,
        "transport file of SAS (.xpt)",
    ),
    (
        b'CHARSET="ANSI";\r\nAXIS-VERSION="2013";\r\nTITLE="M\xe4nner";\r\n',
        "is a file of PC-Axis (.px)",
    ),
    (b'\xef\xbb\xbfMATRIX="pop";\nDATA=\n1 2 3;\n', "is a file of PC-Axis (.px)"),
    (b'TITLE[en]="Population,\nby age";\nDATA=\n1;', "is a file of PC-Axis (.px)"),
]


@pytest.mark.parametrize(
    "text", ["TITLE;count\na;1\n", "TITLE=a,count\nb,1\n", "SPSSPORT,count\nb,1\n"]
)
def test_a_table_with_words_of_other_programs_is_a_table(text: str) -> None:
    assert describe_foreign_file(text.encode()) is None


@pytest.mark.parametrize(("content", "expected"), FOREIGN)
def test_a_foreign_file_is_named_before_its_encoding_is_doubted(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    for options in ([], ["--encoding", "latin-1"], ["--encoding", "cp1252", "--delimiter", ";"]):
        assert expected in run(*COUNTING, path, "--column", "sex", *options, code=2)
    for words in (
        ("design", "--prior", path, "--epsilon", "1", "--utility", "hamming"),
        ("audit", path, "--prior", path, "--epsilon", "1"),
    ):
        assert expected in run(*words, code=2)


def test_tables_that_hold_people_are_named_where_a_small_table_is_needed(tmp_path: Path) -> None:
    content = b"level,count\na,1\nb,2\n"
    pyarrow.parquet.write_table(
        pyarrow.table({"level": ["a"], "count": [1]}), tmp_path / "parquet.csv"
    )
    (tmp_path / "gzip.csv").write_bytes(gzip.compress(content))
    (tmp_path / "utf16.csv").write_bytes(content.decode().encode("utf-16"))
    for name, expected in (("parquet", "Parquet"), ("gzip", "gzip"), ("utf16", "UTF-16")):
        with pytest.raises(FileFormatError, match=f"is .*{expected}"):
            read_letters(tmp_path / f"{name}.csv")
    # as data they can be read, in which these are counts
    assert column_counts(tmp_path / "parquet.csv", "level") == {"a": 1}
    for name in ("gzip.csv", "utf16.csv"):
        with pytest.raises(InputError, match="'level' stands once, next to a number in 'count'"):
            column_counts(tmp_path / name, "level")


@pytest.mark.parametrize(
    "header", [b"PK,n", b"{a},n", b"[a],n", b"<a>,n", b"ORK,n", b"Rar,n", b"X,n"]
)
def test_a_csv_that_begins_almost_like_one_is_read(tmp_path: Path, header: bytes) -> None:
    assert describe_foreign_file(header) is None
    (tmp_path / "p.csv").write_bytes(header + b"\nx,3\ny,1\n")
    labels, counts = read_letters(tmp_path / "p.csv")
    assert Prior.from_counts(counts, labels).counts == (3, 1)


def test_a_file_that_ends_in_parquet_and_is_none_is_named(tmp_path: Path) -> None:
    for content, expected in (
        (b"", "is empty, with 0 bytes"),
        (b"level\na\n", "begins with b'leve'"),
    ):
        (tmp_path / "part.parquet").write_bytes(content)
        for data in (tmp_path, tmp_path / "part.parquet"):
            with pytest.raises(FileFormatError, match=f"no Parquet file: it {expected}"):
                column_counts(data, "level")
