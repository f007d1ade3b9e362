"""Files: labelled matrices as CSV, JSON and NPZ, tables of letters, and whole-or-nothing writing."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray, Label
from pmlopt.errors import FileFormatError

FORMAT = "pmlopt-mechanism"
VERSION = 1
ENDINGS = (".csv", ".json", ".npz")


@dataclass(frozen=True)
class MatrixFile:
    """What a mechanism file holds: the matrix, the labels of its rows and columns, and metadata."""

    matrix: FloatArray
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise where a file cannot be written for want of its folder, or because a folder stands there."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise FileFormatError(f"{path}: cannot be written: it is a folder, or its folder is not there")


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it is there whole or not at all: beside it first, then renamed."""
    try:
        target = Path(path).resolve()  # a link stays, and its file is written
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except (OSError, ValueError) as cause:
        raise FileFormatError(f"{path}: cannot be written: {_reason(cause)}") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except OSError as cause:
        Path(temporary).unlink(missing_ok=True)
        raise FileFormatError(f"{path}: cannot be written: {_reason(cause)}") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _reason(cause: Exception) -> str:
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def ending_of(path: str | os.PathLike[str], known: Sequence[str] = ENDINGS) -> str:
    """The ending of a file, one of those that are known: by default those of a mechanism."""
    ending = Path(path).suffix.lower()
    if ending not in known:
        raise FileFormatError(f"{path}: the ending {ending!r} is not known here: use {', '.join(known)}")
    return ending


def write_matrix(path: str | os.PathLike[str], stored: MatrixFile) -> None:
    """Write a labelled matrix in the format that the path's ending names."""
    encode = {".csv": _to_csv, ".json": _to_json, ".npz": _to_npz}[ending_of(path)]
    write_whole(path, encode(stored))


def read_matrix(path: str | os.PathLike[str]) -> MatrixFile:
    """Read a labelled matrix; the ending names the format.

    Raises:
        FileFormatError: the file is not there, cut short, or not of its format.
    """
    decode = {".csv": _from_csv, ".json": _from_json, ".npz": _from_npz}[ending_of(path)]
    return decode(path, read_bytes(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, or a FileFormatError that says why not."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as cause:
        raise FileFormatError(f"{path}: cannot be read: {_reason(cause)}") from None


def read_rows(path: str | os.PathLike[str], content: bytes | None = None) -> list[list[str]]:
    """The rows of a CSV file, blank lines left out, all of the header's length."""
    try:
        text = (read_bytes(path) if content is None else content).decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except UnicodeDecodeError:
        raise FileFormatError(f"{path}: is not text in UTF-8, so not a CSV file") from None
    except csv.Error as cause:
        raise FileFormatError(f"{path}: is not a whole CSV file: {cause}") from None
    if len(rows) < 2:
        raise FileFormatError(f"{path}: has {len(rows)} row(s): a header and at least one row are needed")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise FileFormatError(
                f"{path}: row {number} has {len(row)} cells and the header {len(rows[0])}: "
                "the file may be cut short"
            )
    return rows


def read_letters(path: str | os.PathLike[str]) -> tuple[tuple[Label, ...], list[int] | list[float]]:
    """Labels and numbers of a two-column CSV with a header: letter, count (or probability).

    Whole numbers are counts and come back as int; anything else comes back as float.
    """
    rows = read_rows(path)
    if len(rows[0]) != 2:
        raise FileFormatError(
            f"{path}: has {len(rows[0])} column(s): a prior has two, letter and count (or probability), "
            "with a comma between"
        )
    if _is_number(rows[0][1]):
        raise FileFormatError(f"{path}: the first row, {rows[0]}, looks like data: put a header above it")
    texts = [row[1].strip() for row in rows[1:]]
    labels = labels_from_text([row[0] for row in rows[1:]])
    if all(text.isascii() and text.isdigit() and len(text) < 4000 for text in texts):
        return labels, [int(text) for text in texts]
    numbers = [
        _number(text, f"{path}: row {number}, the letter {label!r}")
        for number, (label, text) in enumerate(zip(labels, texts, strict=True), start=2)
    ]
    if all(number.is_integer() for number in numbers):
        return labels, [int(number) for number in numbers]
    return labels, numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def labels_from_text(texts: Sequence[str]) -> tuple[Label, ...]:
    """Labels from the cells of a CSV: numbers where every cell is one as Python writes it, else text.

    Examples:
        >>> labels_from_text(["1", "2"]), labels_from_text(["01", "2"]), labels_from_text(["1", "a"])
        ((1, 2), ('01', '2'), ('1', 'a'))
    """
    for kind in (int, float):
        try:
            numbers = [kind(text) for text in texts]
        except ValueError:
            continue
        if all(str(number) == text for number, text in zip(numbers, texts, strict=True)):
            return tuple(numbers)
    return tuple(texts)


def json_bytes(content: Any) -> bytes:
    """JSON text of plain data, with numpy numbers and arrays as plain ones."""
    try:
        return (json.dumps(content, default=_plain, allow_nan=False, indent=1) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as cause:
        raise FileFormatError(f"this cannot be written as JSON: {cause}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r} is not text, a number, a list or a table")


def _to_csv(stored: MatrixFile) -> bytes:
    for labels in (stored.inputs, stored.outputs):
        texts = [str(label) for label in labels]
        back = labels_from_text(texts)
        if list(map(type, back)) != list(map(type, labels)) or back != labels:
            raise FileFormatError(
                f"a CSV file would give the labels {labels} back as {back}: save as .json or .npz, or "
                "use labels that are all text, or all of one kind of number"
            )
    stream = io.StringIO(newline="")
    # the writer does not see that a carriage return needs quotes
    odd = any("\r" in str(label) for label in (*stored.inputs, *stored.outputs))
    writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL)
    writer.writerow(["", *stored.outputs])
    for label, row in zip(stored.inputs, stored.matrix.tolist(), strict=True):
        writer.writerow([label, *map(repr, row)])
    try:
        return stream.getvalue().encode()
    except UnicodeEncodeError as cause:
        raise FileFormatError(f"a label cannot be written as UTF-8: {cause}") from None


def _from_csv(path: str | os.PathLike[str], content: bytes) -> MatrixFile:
    rows = read_rows(path, content)
    if len(rows[0]) < 2:
        raise FileFormatError(f"{path}: has no output column: the first column holds the inputs")
    matrix = [
        [_number(cell, f"{path}: row {number}") for cell in row[1:]]
        for number, row in enumerate(rows[1:], start=2)
    ]
    inputs = labels_from_text([row[0] for row in rows[1:]])
    return MatrixFile(np.array(matrix), inputs, labels_from_text(rows[0][1:]))


def _number(cell: str, where: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise FileFormatError(f"{where}: {cell!r} stands where a number belongs") from None


def _to_json(stored: MatrixFile) -> bytes:
    for label in (*stored.inputs, *stored.outputs):
        if not isinstance(label, str | int | float):
            raise FileFormatError(
                f"the label {label!r} cannot be written: labels in files are text or numbers"
            )
    return json_bytes(
        {
            "format": FORMAT,
            "version": VERSION,
            "inputs": stored.inputs,
            "outputs": stored.outputs,
            "matrix": stored.matrix,
            "metadata": dict(stored.metadata),
        }
    )


def _from_json(path: str | os.PathLike[str], content: bytes) -> MatrixFile:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as cause:
        raise FileFormatError(f"{path}: is not a whole JSON file: {cause}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FileFormatError(f'{path}: is not a mechanism: the key "format" must be {FORMAT!r}')
    if data.get("version") != VERSION:
        raise FileFormatError(
            f"{path}: has version {data.get('version')!r} of the format; this pmlopt reads {VERSION}"
        )
    missing = [key for key in ("inputs", "outputs", "matrix") if key not in data]
    if missing:
        raise FileFormatError(f"{path}: the key {missing[0]!r} is missing")
    for key in ("inputs", "outputs"):
        if not isinstance(data[key], list) or any(isinstance(v, list | dict) for v in data[key]):
            raise FileFormatError(f"{path}: {key!r} must be a list of labels")
    return MatrixFile(data["matrix"], tuple(data["inputs"]), tuple(data["outputs"]), data.get("metadata", {}))


def _to_npz(stored: MatrixFile) -> bytes:
    about = MatrixFile(np.zeros((0, 0)), stored.inputs, stored.outputs, stored.metadata)
    stream = io.BytesIO()
    np.savez(stream, matrix=stored.matrix, about=np.frombuffer(_to_json(about), dtype=np.uint8))
    return stream.getvalue()


def _from_npz(path: str | os.PathLike[str], content: bytes) -> MatrixFile:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            matrix, about = arrays["matrix"], arrays["about"].tobytes()
    except Exception as cause:  # what zip and npy readers raise on foreign bytes has no bounds
        raise FileFormatError(f"{path}: is not a whole mechanism in NPZ: {cause}") from None
    labels = _from_json(path, about)
    return MatrixFile(matrix, labels.inputs, labels.outputs, labels.metadata)
