"""The table of matrix file formats by suffix, with the forms of JSON and of numpy."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np

from pmlopt.core.files.disk import (
    atomic_file,
    check_expansion,
    describe_os_error,
    encode_json_bytes,
    get_file_format,
    is_standard_stream,
    open_file,
    read_bytes,
    read_saved_record,
)
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.matrices.matrix_file import (
    FORMAT,
    MECHANISM_FILE_VERSION,
    MatrixFile,
    Source,
    to_real_matrix,
)
from pmlopt.core.matrices.text_tables import decode_text, encode_text
from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    DefaultLabels,
    FloatArray,
    Label,
    Labels,
    abbreviate,
    check_json_labels,
)
from pmlopt.core.numbers.blocks import freeze, is_large_matrix, shrink_whole_numbers
from pmlopt.core.records.fields import Range, Shape
from pmlopt.errors import FileFormatError


@light_dataclass(frozen=True)
class MatrixFormat:
    """A matrix file format: its writer and reader.

    Attributes:
        encode: from the matrix to the bytes of a file.
        decode: from the bytes to the matrix.
        parts: what a file may hold several of, such as sheets; empty where it is always one matrix.
        check_available: raises where a package is missing that the format needs.
    """

    encode: Callable[[MatrixFile], bytes]
    decode: Callable[[Source], MatrixFile]
    parts: str = ""
    write: Callable[[MatrixFile, BinaryIO], None] | None = None
    check_available: Callable[[], None] = lambda: None


SIDES = ("inputs", "outputs")


@light_dataclass(frozen=True, eq=False)
class SavedMatrix:
    """The JSON record of a labelled matrix; `unnamed` marks default labels."""

    format: Literal[FORMAT]  # type: ignore[valid-type]
    version: Literal[MECHANISM_FILE_VERSION]  # type: ignore[valid-type]
    inputs: list[Label]
    outputs: list[Label]
    unnamed: list[Literal["inputs", "outputs"]]
    matrix: Annotated[FloatArray, Shape("N", "M"), Range(0.0, 1 + SUM_ATOL)]
    metadata: Mapping[str, Any]

    def get_side_labels(self, name: str) -> Labels:
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


def write_npz(stored: MatrixFile, stream: BinaryIO) -> None:
    """Write a matrix as an NPZ archive with labels and metadata.

    Large matrices of the metadata, such as the table of a loss, are arrays of their own: their names are the
    keys that lead to them, and in their place the metadata has an empty list.
    """
    arrays: dict[str, Any] = {}
    metadata = _take_arrays(stored.metadata, "metadata", arrays)
    about = _encode_labels(MatrixFile(stored.matrix, stored.inputs, stored.outputs, metadata))
    np.savez(stream, matrix=stored.matrix, about=about, **arrays)


def encode_npz(stored: MatrixFile) -> bytes:
    """Encode a matrix as an NPZ archive; see `write_npz`."""
    stream = io.BytesIO()
    write_npz(stored, stream)
    return stream.getvalue()


def _take_arrays(value: Any, path: str, arrays: dict[str, Any]) -> Any:
    """Move the large matrices of metadata to `arrays`, by their paths; return the rest of it."""
    if is_large_matrix(value):
        arrays[path] = shrink_whole_numbers(value)
        return []
    if isinstance(value, Mapping):
        # the path of a key with a separator would lead elsewhere
        return {
            key: part if "/" in str(key) else _take_arrays(part, f"{path}/{key}", arrays)
            for key, part in value.items()
        }
    return value


def decode_npz(source: Source) -> MatrixFile:
    """Decode the archive written by `write_npz`."""
    try:
        check_expansion(source.path, source.stream)
        with np.load(source.stream, allow_pickle=False) as arrays:
            matrix = freeze(arrays["matrix"])
            about = arrays["about"].tobytes()
            others = {name: arrays[name] for name in arrays.files if name.startswith("metadata/")}
    except FileFormatError:
        raise
    except Exception as cause:  # what zip and npy readers raise on foreign bytes has no bounds
        raise source.refuse(f"is not a whole mechanism in NPZ: {cause}") from None
    labels = decode_json(Source(source.path, about))
    for name, array in others.items():
        _put_array(labels.metadata, name, array, source)
    return MatrixFile(matrix, labels.inputs, labels.outputs, labels.metadata)


def _put_array(metadata: Mapping[str, Any], name: str, array: Any, source: Source) -> None:
    """Put an array in its place in the metadata; raise an error where there is none."""
    *keys, last = name.split("/")[1:]
    place: Any = metadata
    for key in keys:
        place = place.get(key) if isinstance(place, dict) else None
    if not isinstance(place, dict) or place.get(last) != []:
        raise source.refuse(f"has an array {name!r:.80}, for which there is no place")
    place[last] = freeze(to_real_matrix(array, source, f"the array {name!r:.80}"))


def encode_npy(stored: MatrixFile) -> bytes:
    """Encode a matrix as NPY data, followed by its labels."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(stored.matrix), allow_pickle=False)
    if not (isinstance(stored.inputs, DefaultLabels) and isinstance(stored.outputs, DefaultLabels)):
        labels = MatrixFile(stored.matrix, stored.inputs, stored.outputs)
        np.lib.format.write_array(stream, _encode_labels(labels), allow_pickle=False)
    return stream.getvalue()


def decode_npy(source: Source) -> MatrixFile:
    """Decode NPY data with optional labels."""
    stream = io.BytesIO(source.content)
    matrix = to_real_matrix(_read_array(stream, source), source)
    if stream.tell() == len(source.content):
        return MatrixFile(matrix, DefaultLabels(len(matrix)), DefaultLabels(matrix.shape[1]))
    about = _read_array(stream, source)
    if about.dtype != np.uint8 or about.ndim != 1 or stream.tell() < len(source.content):
        raise source.refuse("holds several arrays: save the matrix in a separate file")
    labels = decode_json(Source(source.path, about.tobytes()))
    return MatrixFile(matrix, labels.inputs, labels.outputs)


def _encode_labels(stored: MatrixFile) -> Any:
    """Encode labels and metadata as a byte array."""
    about = MatrixFile(np.zeros((0, 0)), stored.inputs, stored.outputs, stored.metadata)
    return np.frombuffer(encode_json(about), dtype=np.uint8)


def _read_array(stream: io.BytesIO, source: Source) -> Any:
    """Read the next array of a stream, without pickles."""
    try:
        return np.lib.format.read_array(stream, allow_pickle=False)
    except Exception as cause:
        if "allow_pickle" in str(cause):
            raise source.refuse(
                "holds Python objects (pickles), which are not read since they may run any code: save "
                "numbers, such as np.save(path, matrix.astype(float))"
            ) from None
        raise source.refuse(f"is not a whole array of numpy in NPY: {cause}") from None


def _import_when_called(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module of this package that is imported when it is called."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(f"{__package__}.{module}"), name)(*arguments)

    return call


FORMATS = {
    ".csv": MatrixFormat(encode_text, decode_text),
    ".json": MatrixFormat(encode_json, decode_json),
    ".npz": MatrixFormat(encode_npz, decode_npz, write=write_npz),
    ".tsv": MatrixFormat(partial(encode_text, delimiter="\t"), decode_text),
    ".txt": MatrixFormat(encode_text, decode_text),
    ".npy": MatrixFormat(encode_npy, decode_npy),
    ".mat": MatrixFormat(
        _import_when_called("matlab", "encode_mat"),
        _import_when_called("matlab", "decode_mat"),
        parts="variables",
    ),
    ".parquet": MatrixFormat(
        _import_when_called("parquet", "encode_parquet"),
        _import_when_called("parquet", "decode_parquet"),
    ),
    ".xlsx": MatrixFormat(
        _import_when_called("excel", "encode_xlsx"),
        _import_when_called("excel", "decode_xlsx"),
        parts="sheets",
        check_available=_import_when_called("excel", "check_excel"),
    ),
}
"""Of each ending the format; the endings are those of `pmlopt.core.files.disk.ENDINGS`."""

_BEGINNINGS = {b"\x93NUMPY": ".npy", b"MATLAB 5.0": ".mat", b"PAR1": ".parquet"}


def write_matrix(path: str | os.PathLike[str], stored: MatrixFile) -> None:
    """Write a labelled matrix in the format of the file suffix."""
    format_of_path = FORMATS[get_file_format(path)]
    try:
        with atomic_file(path) as stream:
            if format_of_path.write is None:
                stream.write(format_of_path.encode(stored))
            else:
                format_of_path.write(stored, stream)
    except OSError as cause:
        raise FileFormatError(f"{path}: cannot be written: {describe_os_error(cause)}") from None


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
    if ending is not None and FORMATS[ending].write is not None and name is None:
        with open_file(path) as stream:
            return FORMATS[ending].decode(Source(path, b"", stochastic, given_stream=stream))
    content = read_bytes(path)
    found = FORMATS[ending or _detect_format(content)]
    if name is not None and not found.parts:
        raise FileFormatError(
            f"{path}: holds one matrix, and a name chooses among sheets or variables only"
        )
    return found.decode(Source(path, content, stochastic, name))


def read_table(path: str | os.PathLike[str]) -> tuple[Labels, Labels, Any]:
    """Read row labels, column labels and numbers of a matrix file."""
    stored = read_matrix(path, stochastic=False)
    return stored.inputs, stored.outputs, stored.matrix


def check_format(path: str | os.PathLike[str]) -> None:
    """Raise an error for an unknown matrix suffix or a missing package."""
    FORMATS[get_file_format(path)].check_available()


def check_labels(path: str | os.PathLike[str], labels: Labels) -> None:
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
