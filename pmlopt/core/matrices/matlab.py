"""Matrices in files of MATLAB and Octave (.mat): the variables `P`, `inputs` and `outputs`.

Labels are cell arrays: text is a row of characters, a whole number int64, another number double, a truth
value logical, and a tuple a cell array again. A side that no one named has no variable.

scipy reads and writes the files. Some damaged ones end the process in which it reads: files are read in
another one.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from pmlopt.core.files.child_process import call_in_child
from pmlopt.core.files.disk import MAX_FILE_BYTES
from pmlopt.core.files.file_kinds import OCTAVE_BEGINNINGS
from pmlopt.core.matrices.formats import decode_npz, encode_npz
from pmlopt.core.matrices.matrix_file import (
    OTHER_FORMATS,
    MatrixFile,
    Source,
    check_kept,
    to_real_matrix,
)
from pmlopt.core.numbers.arrays import DefaultLabels, Label, Labels
from pmlopt.errors import FileFormatError

MATRIX = "P"
SIDES = ("inputs", "outputs")
NUMBER_CLASSES = frozenset(
    [
        "double",
        "single",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "sparse",
    ]
)
"""Classes of MATLAB whose matrices may be the one to read."""
OBJECT_CLASSES = frozenset({"opaque", "object", "function", "unknown"})
_SAVE = "in MATLAB: save(file, 'P', 'inputs', 'outputs', '-v7')"


def encode_mat(stored: MatrixFile) -> bytes:
    """Encode a matrix and its labels as a file of MATLAB, version 7."""
    named = {side: getattr(stored, side) for side in SIDES}
    cells = {
        side: _build_cell_column(labels)
        for side, labels in named.items()
        if not isinstance(labels, DefaultLabels)
    }
    if cells:
        source = Source("labels", _encode_variables(cells))
        for side, value in _load_variables(source, list(cells)).items():
            check_kept(named[side], _parse_labels(value, side, source), "a .mat file")
    return _encode_variables({MATRIX: stored.matrix, **cells})


def decode_mat(source: Source) -> MatrixFile:
    """Read the matrix of a file of MATLAB, with its labels where the file has them.

    The matrix is the variable that was named, else `P`, else the only matrix of numbers.
    """
    try:
        content = call_in_child(
            read_as_npz, source.content, packages=["scipy.io"], max_bytes=3 * MAX_FILE_BYTES,
            name=source.name,
        )  # fmt: skip
    except FileFormatError as error:
        raise source.refuse(str(error).removeprefix(": ")) from None
    return decode_npz(Source(source.path, content))


def read_as_npz(content: bytes, name: str | None) -> bytes:
    """Read a file of MATLAB in this process, and return the same content in NPZ."""
    return encode_npz(_parse_mat(Source("", content, name=name)))


def _parse_mat(source: Source) -> MatrixFile:
    """Read the matrix of a file of MATLAB in this process."""
    contents = _describe_variables(source)
    candidates = [
        name for name, (_, kind) in contents.items() if kind in NUMBER_CLASSES and name not in SIDES
    ]
    if not candidates:
        found = ", ".join(f"{name} ({kind})" for name, (_, kind) in list(contents.items())[:12])
        raise source.refuse(
            f"has no matrix of numbers; it has {found or 'no variable'}: save the matrix as the variable P, "
            f"{_SAVE}"
        )
    if MATRIX in contents and MATRIX not in candidates and source.name is None:
        raise source.refuse(
            f"its variable P is of the class {contents[MATRIX][1]}, and no matrix of numbers"
        )
    name = source.choose_part(candidates, "variable", MATRIX)
    shape, kind = contents[name]
    if kind == "sparse":
        raise source.refuse(f"its variable {name} is sparse: save it as full({name})")
    if math.prod(shape) * 8 > MAX_FILE_BYTES:
        raise source.refuse(
            f"its variable {name} has the shape {shape}, more than {MAX_FILE_BYTES} bytes"
        )
    values = _load_variables(source, [name, *(side for side in SIDES if side in contents)])
    matrix = to_real_matrix(values[name], source, f"its variable {name}")
    inputs, outputs = (
        _parse_labels(values[side], side, source) if side in values else DefaultLabels(length)
        for side, length in zip(SIDES, matrix.shape, strict=True)
    )
    return MatrixFile(matrix, inputs, outputs)


def _build_cell_column(labels: Iterable[Label]) -> Any:
    """Build a MATLAB cell column of labels."""
    listed = list(labels)
    cells = np.empty((len(listed), 1), dtype=object)
    for place, label in enumerate(listed):
        cells[place, 0] = _format_label(label)
    return cells


def _format_label(label: Label) -> Any:
    """Convert a label to MATLAB text."""
    if isinstance(label, tuple):
        return _build_cell_column(label)
    if isinstance(label, str):
        return label
    kinds = {bool: np.bool_, int: np.int64, float: np.float64}
    if type(label) not in kinds:
        raise FileFormatError(
            f"the label {label!r:.80} cannot be written: labels in files are text or numbers"
        )
    try:
        return np.array([[label]], dtype=kinds[type(label)])
    except OverflowError:
        raise FileFormatError(
            f"a .mat file has no room for the label {label}: {OTHER_FORMATS}"
        ) from None


def _encode_variables(variables: dict[str, Any]) -> bytes:
    """Encode variables as a MAT file."""
    from scipy.io import savemat

    stream = io.BytesIO()
    try:
        savemat(stream, variables, oned_as="column")
    except UnicodeEncodeError as cause:
        raise FileFormatError(f"a label cannot be written as UTF-8: {cause}") from None
    except Exception as cause:  # 4 GiB are the most of one variable
        raise FileFormatError(f"this cannot be written as a .mat file: {cause}") from None
    return stream.getvalue()


def _describe_variables(source: Source) -> dict[str, tuple[tuple[int, ...], str]]:
    """List the shape and the class of a file's variables by name."""
    from scipy.io import matlab

    if source.content.startswith((b"MATLAB 7.3", b"\x89HDF")):
        raise source.refuse(
            f"is a file of MATLAB 7.3 (HDF5), which is not read: save it with -v7, {_SAVE}"
        )
    if source.content.startswith(OCTAVE_BEGINNINGS):
        raise source.refuse(
            "is a file of Octave's own format, which is not read: save('-v7', file, 'P', 'inputs', 'outputs')"
        )
    try:
        if matlab.matfile_version(source.stream)[0] != 1:
            raise ValueError("it has another version")
        listed = matlab.whosmat(source.stream)
    except MemoryError:
        raise
    except Exception as cause:  # what is raised on foreign bytes has no bounds
        raise source.refuse(f"is not a whole file of MATLAB (-v7 or -v6): {cause}") from None
    if any(kind in OBJECT_CLASSES for _, _, kind in listed):
        raise source.refuse(
            "holds an object of MATLAB, such as a table or a string array, which is not read: save the "
            f"matrix, and labels as cellstr(...), {_SAVE}"
        )
    contents = {name: (shape, kind) for name, shape, kind in listed}
    if len(contents) < len(listed):
        raise source.refuse("has a variable twice: save it again")
    return contents


def _load_variables(source: Source, names: list[str]) -> dict[str, Any]:
    """Load variables: numbers of their class, cells as objects, and text as arrays of characters."""
    from scipy.io import loadmat

    try:
        with warnings.catch_warnings():
            # else scipy drops imaginary parts
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            found = loadmat(
                source.stream, variable_names=names, mat_dtype=True, chars_as_strings=False
            )
    except np.exceptions.ComplexWarning:
        raise source.refuse(
            f"one of its variables {', '.join(names)} has complex numbers: a matrix has real ones"
        ) from None
    except MemoryError:
        raise
    except Exception as cause:  # what is raised on foreign bytes has no bounds
        raise source.refuse(
            f"one of its variables {', '.join(names)} is damaged or not read: {cause}"
        ) from None
    return {name: found[name] for name in names}


def _join_characters(value: Any) -> list[str]:
    """Join the rows of an array of characters; of none, one empty text."""
    rows = value.reshape(len(value), -1).tolist() if value.size else [[]]
    return ["".join(character or "\0" for character in row) for row in rows]  # numpy drops zeros


def _parse_labels(value: Any, side: str, source: Source) -> Labels:
    """Parse labels from cells, numbers or character rows."""
    if value.dtype.kind == "U":
        texts = _join_characters(value)
        padded = len(texts) > 1  # MATLAB fills rows of characters up with spaces
        return tuple(text.rstrip(" ") if padded else text for text in texts)
    if value.ndim == 2 and 1 in value.shape and not np.iscomplexobj(value):
        return tuple(_parse_label(part, side, source) for part in value.ravel())
    raise source.refuse(
        f"its variable {side} is no row or column of labels: give a cell array of text and numbers, such as "
        f"{side} = {{'low'; 'high'}}"
    )


def _parse_label(part: Any, side: str, source: Source) -> Label:
    """Parse the label of one cell."""
    found = np.asarray(part)
    if found.dtype.kind == "U" and len(texts := _join_characters(found)) == 1:
        return texts[0]
    if found.dtype.kind == "O":
        return tuple(_parse_label(inner, side, source) for inner in found.ravel(order="F"))
    if found.dtype.kind in "biuf" and found.size == 1:
        label: Label = found.item()
        return label
    raise source.refuse(f"its variable {side} has a cell that is neither one text nor one number")
