"""The content of matrix files, and checks shared by all formats."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, BinaryIO

import numpy as np

from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray, Labels, abbreviate, join_words
from pmlopt.errors import FileFormatError

FORMAT = "pmlopt-mechanism"
MECHANISM_FILE_VERSION = 3
"""The version of saved files, of mechanisms by orbits too."""

OTHER_FORMATS = "save as .json or .npz, which keep all labels"


@light_dataclass(frozen=True)
class MatrixFile:
    """The content of a mechanism file: matrix, labels and metadata.

    Labels that no one gave are `DefaultLabels`, as in a `Mechanism`.
    """

    matrix: FloatArray
    inputs: Labels
    outputs: Labels
    metadata: Mapping[str, Any] = field(default_factory=dict)


@light_dataclass(frozen=True)
class Source:
    """The bytes of an input file, with its path and requested part.

    Attributes:
        path: of the file, for messages.
        content: all of its bytes; empty where it is read from a stream.
        stochastic: whether the rows are laws, by which a missing header is noticed.
        name: of the variable or sheet to read, where a file holds several; None where it was not named.
        given_stream: of the file, where not all of it is read at once.
    """

    path: str | os.PathLike[str]
    content: bytes
    stochastic: bool = True
    name: str | None = None
    given_stream: BinaryIO | None = None

    @property
    def stream(self) -> BinaryIO:
        """Return a stream of the content, which can seek."""
        return io.BytesIO(self.content) if self.given_stream is None else self.given_stream

    def choose_part(self, names: Sequence[str], kind: str, default: str | None = None) -> str:
        """Choose the part (sheet or variable) to read; raise an error where that is ambiguous.

        Args:
            names: of the parts that may be meant.
            kind: what a part is called.
            default: what is read of several where none was named.
        """
        if self.name is not None:
            if self.name not in names:
                raise FileFormatError(
                    f"{self.path}: has no {kind} {self.name!r} that is read; it has {join_words(names)}"
                )
            return self.name
        if default in names:
            return str(default)
        if len(names) != 1:
            raise FileFormatError(
                f"{self.path}: has {len(names)} {kind}s that may be the matrix, "
                f"{join_words(names, 12)}: name one, "
                f"such as Mechanism.load(path, name={names[0]!r}), or keep only one in the file"
            )
        return names[0]

    def refuse(self, what: str) -> FileFormatError:
        """Build the error that the file is not readable, with its path where it has one."""
        return FileFormatError(f"{self.path}: {what}" if self.path else what)


def to_real_matrix(array: Any, source: Source, what: str = "the array") -> FloatArray:
    """Convert an array to a float matrix without loss; raise an error otherwise.

    Raises:
        FileFormatError: it has no two dimensions, or its entries are no real numbers that doubles hold.
    """
    found = np.asarray(array)
    kind = found.dtype
    if kind.kind not in "iuf" or kind.itemsize > 8:
        described = {"c": "complex numbers", "b": "truth values", "O": "objects of Python or cells"}
        entries = described.get(kind.kind, f"entries of the type {str(kind)[:60]}")
        raise source.refuse(
            f"{what} has {entries}, and a matrix of real numbers (doubles) is needed"
        )
    if found.ndim != 2:
        raise source.refuse(
            f"{what} has {found.ndim} dimension(s), and a matrix has two, a row for each input and a column "
            "for each output: reshape it"
        )
    matrix = found.astype(np.float64, copy=False)
    # smaller ones all fit into the 53 bits of a double
    is_wide = kind.kind in "iu" and kind.itemsize == 8
    if is_wide and not np.array_equal(matrix.astype(kind), found):
        raise source.refuse(f"{what} has whole numbers beyond 2^53, which doubles do not hold")
    return np.ascontiguousarray(matrix)


def check_kept(labels: Labels, back: Labels, format_name: str) -> None:
    """Raise an error for labels that do not survive a round trip."""
    if repr(labels) != repr(back):
        raise FileFormatError(
            f"{format_name} would give the labels {abbreviate(labels)} back as {abbreviate(back)}: "
            f"{OTHER_FORMATS}"
        )
