"""Matrices in files of numpy: NPZ with labels and metadata, and NPY with labels after the matrix.

A .npy file may hold several arrays, one after the other, of which numpy and other programs read the first:
that is the matrix, and the labels, where there are any, follow it as the bytes of a text in JSON.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from pmlopt.core.arrays import DefaultLabels
from pmlopt.core.files import check_expansion
from pmlopt.core.matrices.json_record import decode_json, encode_json
from pmlopt.core.matrices.matrix_file import MatrixFile, Source, to_real_matrix
from pmlopt.errors import FileFormatError


def encode_npz(stored: MatrixFile) -> bytes:
    """Encode a matrix as an NPZ archive with labels and metadata."""
    stream = io.BytesIO()
    np.savez(stream, matrix=stored.matrix, about=_encode_labels(stored))
    return stream.getvalue()


def decode_npz(source: Source) -> MatrixFile:
    """Decode the archive written by `encode_npz`."""
    try:
        check_expansion(source.path, source.content)
        with np.load(io.BytesIO(source.content), allow_pickle=False) as arrays:
            matrix, about = arrays["matrix"], arrays["about"].tobytes()
    except FileFormatError:
        raise
    except Exception as cause:  # what zip and npy readers raise on foreign bytes has no bounds
        raise source.refuse(f"is not a whole mechanism in NPZ: {cause}") from None
    labels = decode_json(Source(source.path, about))
    return MatrixFile(matrix, labels.inputs, labels.outputs, labels.metadata)


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
