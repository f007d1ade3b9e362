"""Matrices in JSON, pmlopt's own form, which keeps all labels and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pmlopt.core.arrays import (
    SUM_ATOL,
    DefaultLabels,
    FloatArray,
    Label,
    abbreviate,
    check_json_labels,
)
from pmlopt.core.files import FORMAT, MECHANISM_FILE_VERSION, encode_json_bytes, read_saved_record
from pmlopt.core.matrices.matrix_file import MatrixFile, Source
from pmlopt.core.records import Range, Shape
from pmlopt.errors import FileFormatError

SIDES = ("inputs", "outputs")


@dataclass(frozen=True, eq=False)
class SavedMatrix:
    """The JSON record of a labelled matrix; `unnamed` marks default labels."""

    format: Literal[FORMAT]  # type: ignore[valid-type]
    version: Literal[MECHANISM_FILE_VERSION]  # type: ignore[valid-type]
    inputs: list[Label]
    outputs: list[Label]
    unnamed: list[Literal["inputs", "outputs"]]
    matrix: Annotated[FloatArray, Shape("N", "M"), Range(0.0, 1 + SUM_ATOL)]
    metadata: Mapping[str, Any]

    def get_side_labels(self, name: str) -> tuple[Label, ...]:
        """Return one side's labels, or default labels."""
        labels = tuple(getattr(self, name))
        positions = DefaultLabels(len(labels))
        if name in self.unnamed and labels != positions:
            raise FileFormatError(
                f"the {name} {abbreviate(labels)} are not 0, 1, ..., so they are not unnamed"
            )
        return positions if name in self.unnamed else labels

    def __post_init__(self) -> None:
        for name in self.unnamed:
            self.get_side_labels(name)


def encode_json(stored: MatrixFile) -> bytes:
    """Encode a matrix with labels and metadata as JSON."""
    check_json_labels((*stored.inputs, *stored.outputs))
    unnamed = [side for side in SIDES if isinstance(getattr(stored, side), DefaultLabels)]
    indent = 1 if stored.matrix.size <= 100_000 else None
    return encode_json_bytes(
        {"format": FORMAT, "version": MECHANISM_FILE_VERSION, "unnamed": unnamed, **vars(stored)},
        indent,
    )


def decode_json(source: Source) -> MatrixFile:
    """Decode the record written by `encode_json`."""
    found = read_saved_record(SavedMatrix, source.content, source.path)
    return MatrixFile(
        found.matrix,
        found.get_side_labels("inputs"),
        found.get_side_labels("outputs"),
        found.metadata,
    )
