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
from commands import run

from pmlopt import Prior
from pmlopt.core.file_kinds import describe_foreign_file
from pmlopt.core.letter_files import read_letters
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


FOREIGN = [
    (archive("[Content_Types].xml", "xl/workbook.xml"), "is an Excel file: save it as CSV"),
    (archive("docProps/app.xml", "xl/workbook.xml"), "is an Excel file: save it as CSV"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "is an Excel file"),
    (archive("people.csv"), "is a ZIP archive of people.csv: unpack it"),
    (arrays(), "numpy arrays"),
    (b'{\n "a": [1, 2]\n}', "is JSON"),
    (b'[{"a": 1}]', "is JSON"),
    (b'\xef\xbb\xbf{\n"a": 1}', "is JSON"),
    (b"<!DOCTYPE html><html></html>", "is a page of HTML"),
    (b"%PDF-1.7 ...", "is a PDF file"),
    (b"SQLite format 3\0...", "database of SQLite"),
]


@pytest.mark.parametrize(("content", "expected"), FOREIGN)
def test_a_foreign_file_is_named_before_its_encoding_is_doubted(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    for options in ([], ["--encoding", "latin-1"], ["--encoding", "cp1252", "--delimiter", ";"]):
        assert expected in run("count", path, "--column", "sex", *options, code=2)
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
