"""The table of matrix file formats by suffix."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pmlopt.core.arrays import Label
from pmlopt.core.files import atomic_write, get_file_format, is_standard_stream, read_bytes
from pmlopt.core.matrices.excel import check_excel, decode_xlsx, encode_xlsx
from pmlopt.core.matrices.json_record import decode_json, encode_json
from pmlopt.core.matrices.matlab import decode_mat, encode_mat
from pmlopt.core.matrices.matrix_file import MatrixFile, Source
from pmlopt.core.matrices.numpy_arrays import decode_npy, decode_npz, encode_npy, encode_npz
from pmlopt.core.matrices.parquet import decode_parquet, encode_parquet
from pmlopt.core.matrices.text_tables import decode_text, encode_text
from pmlopt.errors import FileFormatError


@dataclass(frozen=True)
class MatrixFormat:
    """A matrix file format: its writer and reader.

    Attributes:
        encode: from the matrix to the bytes of the file.
        decode: from the bytes to the matrix.
        parts: what a file may hold several of, such as sheets; empty where it is always one matrix.
        check_available: raises where a package is missing that the format needs.
    """

    encode: Callable[[MatrixFile], bytes]
    decode: Callable[[Source], MatrixFile]
    parts: str = ""
    check_available: Callable[[], None] = lambda: None


FORMATS = {
    ".csv": MatrixFormat(encode_text, decode_text),
    ".json": MatrixFormat(encode_json, decode_json),
    ".npz": MatrixFormat(encode_npz, decode_npz),
    ".tsv": MatrixFormat(
        partial(encode_text, delimiter="\t"), partial(decode_text, delimiter="\t")
    ),
    ".npy": MatrixFormat(encode_npy, decode_npy),
    ".mat": MatrixFormat(encode_mat, decode_mat, "variables"),
    ".parquet": MatrixFormat(encode_parquet, decode_parquet),
    ".xlsx": MatrixFormat(encode_xlsx, decode_xlsx, "sheets", check_excel),
}
"""Of each ending the format; the endings are those of `pmlopt.core.files.ENDINGS`."""

_BEGINNINGS = {b"\x93NUMPY": ".npy", b"MATLAB 5.0": ".mat", b"PAR1": ".parquet"}


def write_matrix(path: str | os.PathLike[str], stored: MatrixFile) -> None:
    """Write a labelled matrix in the format of the file suffix."""
    atomic_write(path, FORMATS[get_file_format(path)].encode(stored))


def read_matrix(
    path: str | os.PathLike[str], *, stochastic: bool = True, name: str | None = None
) -> MatrixFile:
    """Read a labelled matrix in the format of the suffix, or of the content for standard input.

    Args:
        path: of the file.
        stochastic: whether the rows are laws, by which a missing header is noticed.
        name: of the variable or sheet, where a file holds several.

    Raises:
        FileFormatError: the file is not there, cut short, or not of its format.
    """
    ending = None if is_standard_stream(path) else get_file_format(path)
    content = read_bytes(path)
    found = FORMATS[ending or _detect_format(content)]
    if name is not None and not found.parts:
        raise FileFormatError(
            f"{path}: holds one matrix, and a name chooses among sheets or variables only"
        )
    return found.decode(Source(path, content, stochastic, name))


def read_table(path: str | os.PathLike[str]) -> tuple[tuple[Label, ...], tuple[Label, ...], Any]:
    """Read row labels, column labels and numbers of a matrix file."""
    stored = read_matrix(path, stochastic=False)
    return stored.inputs, stored.outputs, stored.matrix


def check_format(path: str | os.PathLike[str]) -> None:
    """Raise an error for an unknown matrix suffix or a missing package."""
    FORMATS[get_file_format(path)].check_available()


def check_labels(path: str | os.PathLike[str], labels: tuple[Label, ...]) -> None:
    """Raise an error for output labels that the file format cannot store."""
    FORMATS[get_file_format(path)].encode(
        MatrixFile(np.zeros((1, len(labels))), ("input",), labels)
    )


def _detect_format(content: bytes) -> str:
    """Detect a matrix format by its first bytes."""
    for beginning, ending in _BEGINNINGS.items():
        if content.startswith(beginning):
            return ending
    if content.startswith(b"PK"):
        return ".xlsx" if b"xl/" in content or b"[Content_Types].xml" in content else ".npz"
    return ".json" if content.lstrip().startswith(b"{") else ".csv"
