"""Matrices in files of MATLAB and Octave (.mat): the variables `P`, `inputs` and `outputs`.

Labels are cell arrays: text is a row of characters, a whole number int64, another number double, a truth
value logical, and a tuple a cell array again. A side that no one named has no variable.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from pmlopt.core.arrays import DefaultLabels, Label
from pmlopt.core.files import MAX_FILE_BYTES
from pmlopt.core.matrices.mat_reader import (
    CLASS_TYPES,
    MatCells,
    MatText,
    MatVariable,
    read_variables,
)
from pmlopt.core.matrices.matrix_file import (
    OTHER_FORMATS,
    MatrixFile,
    Source,
    check_kept,
    to_real_matrix,
)
from pmlopt.errors import FileFormatError

MATRIX = "P"
SIDES = ("inputs", "outputs")
OCTAVE_BEGINNINGS = (b"# Created by Octave", b"Octave-1-")
"""Of what `save` of Octave writes without an option, and with `-binary`."""
OBJECT_CLASSES = {"opaque", "object", "function", "unknown"}
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
        for side, variable in _describe_variables(source).items():
            check_kept(
                named[side],
                _parse_labels(_load_variable(variable, source), side, source),
                "a .mat file",
            )
    return _encode_variables({MATRIX: stored.matrix, **cells})


def decode_mat(source: Source) -> MatrixFile:
    """Read the matrix of a file of MATLAB, with its labels where the file has them.

    The matrix is the variable that was named, else `P`, else the only matrix of numbers.
    """
    contents = _describe_variables(source)
    # Classes of MATLAB whose matrices may be the one to read.
    candidates = [
        name
        for name, variable in contents.items()
        if variable.kind in (CLASS_TYPES.keys() - {"logical"}) | {"sparse"} and name not in SIDES
    ]
    if not candidates:
        found = ", ".join(
            f"{name} ({variable.kind})" for name, variable in list(contents.items())[:12]
        )
        raise source.refuse(
            f"has no matrix of numbers; it has {found or 'no variable'}: save the matrix as the variable P, "
            f"{_SAVE}"
        )
    if MATRIX in contents and MATRIX not in candidates and source.name is None:
        raise source.refuse(
            f"its variable P is of the class {contents[MATRIX].kind}, and no matrix of numbers"
        )
    name = source.choose_part(candidates, "variable", MATRIX)
    if contents[name].kind == "sparse":
        raise source.refuse(f"its variable {name} is sparse: save it as full({name})")
    if math.prod(contents[name].shape) * 8 > MAX_FILE_BYTES:
        shape = contents[name].shape
        raise source.refuse(
            f"its variable {name} has the shape {shape}, more than {MAX_FILE_BYTES} bytes"
        )
    matrix = to_real_matrix(_load_variable(contents[name], source), source, f"its variable {name}")
    inputs, outputs = (
        _parse_labels(_load_variable(contents[side], source), side, source)
        if side in contents
        else DefaultLabels(length)
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


def _describe_variables(source: Source) -> dict[str, MatVariable]:
    """List a file's variables by name, headers only."""
    if source.content.startswith((b"MATLAB 7.3", b"\x89HDF")):
        raise source.refuse(
            f"is a file of MATLAB 7.3 (HDF5), which is not read: save it with -v7, {_SAVE}"
        )
    if source.content.startswith(OCTAVE_BEGINNINGS):
        raise source.refuse(
            "is a file of Octave's own format, which is not read: save('-v7', file, 'P', 'inputs', 'outputs')"
        )
    try:
        listed = read_variables(source.content)
    except (ValueError, struct.error) as cause:
        raise source.refuse(f"is not a whole file of MATLAB (-v7 or -v6): {cause}") from None
    contents = {variable.name: variable for variable in listed}
    if any(variable.kind in OBJECT_CLASSES for variable in listed):
        raise source.refuse(
            "holds an object of MATLAB, such as a table or a string array, which is not read: save the "
            f"matrix, and labels as cellstr(...), {_SAVE}"
        )
    if len(contents) < len(listed):
        raise source.refuse("has a variable twice: save it again")
    return contents


def _load_variable(variable: MatVariable, source: Source) -> Any:
    """Load a variable's data."""
    try:
        return variable.value(MAX_FILE_BYTES)
    except (ValueError, struct.error) as cause:
        raise source.refuse(
            f"its variable {variable.name} is damaged or not read: {cause}"
        ) from None


def _parse_labels(value: Any, side: str, source: Source) -> tuple[Label, ...]:
    """Parse labels from cells, numbers or character rows."""
    if isinstance(value, MatText):
        padded = len(value.rows) > 1  # MATLAB fills rows of characters up with spaces
        return tuple(text.rstrip(" ") if padded else text for text in value.rows)
    if len(value.shape) == 2 and 1 in value.shape and not np.iscomplexobj(value):
        parts = value.parts if isinstance(value, MatCells) else value.ravel()
        return tuple(_parse_label(part, side, source) for part in parts)
    raise source.refuse(
        f"its variable {side} is no row or column of labels: give a cell array of text and numbers, such as "
        f"{side} = {{'low'; 'high'}}"
    )


def _parse_label(part: Any, side: str, source: Source) -> Label:
    """Parse the label of one cell."""
    if isinstance(part, MatText) and len(part.rows) == 1:
        return part.rows[0]
    if isinstance(part, MatCells):
        return tuple(_parse_label(inner, side, source) for inner in part.parts)
    if isinstance(part, np.ndarray | np.generic) and part.size == 1 and not np.iscomplexobj(part):
        label: Label = part.item()
        return label
    raise source.refuse(f"its variable {side} has a cell that is neither one text nor one number")
