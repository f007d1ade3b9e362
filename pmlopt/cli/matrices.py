"""Matrices as people have them: without a header, rounded, or with semicolons between."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pmlopt.cli.printing import say
from pmlopt.core import files
from pmlopt.core.arrays import Positions
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import FileFormatError, MechanismError

LARGEST_CORRECTION = 0.01
"""How far a row's sum may be from one to be rounding: two digits, and a hundred outputs of five."""


def read_mechanism(path: Path, bare: bool = False, rounded: bool = False) -> Mechanism:
    """A mechanism from a file, as `Mechanism.load` does, and from matrices as spreadsheets write them.

    A CSV may have semicolons or tabs between its cells, with decimal commas.

    Args:
        path: .csv, .json or .npz.
        bare: whether a CSV has no header and no first column of labels.
        rounded: whether rows are divided by their sums, which may be off one by `LARGEST_CORRECTION`.

    Raises:
        FileFormatError: the file holds no mechanism; the message names the option that may help.
    """
    if files.ending_of(path) != ".csv":
        if bare or rounded:
            raise FileFormatError(f"{path}: --no-header and --normalise belong to CSV files")
        return Mechanism.load(path)
    stored = _read_csv(path, bare)
    matrix = np.asarray(stored.matrix, dtype=float)
    sums = matrix.sum(axis=1)
    off = float(np.abs(sums - 1).max())
    if rounded and 0 < off <= LARGEST_CORRECTION:
        say(f"The rows of {path.name} sum to one up to {off:.1g}: each is divided by its sum.", err=True)
        matrix = matrix / sums[:, None]
    elif 1e-9 < off <= LARGEST_CORRECTION:
        raise FileFormatError(
            f"{path}: a row sums to {sums[np.abs(sums - 1).argmax()]:.9g}: if rounding explains it, "
            "--normalise divides each row by its sum"
        )
    try:
        return Mechanism(matrix, stored.inputs, stored.outputs)
    except MechanismError as error:
        raise FileFormatError(f"{path}: {error}") from None


def _read_csv(path: Path, bare: bool) -> files.MatrixFile:
    content = files.read_bytes(path)
    first = content.decode("utf-8-sig", "replace").lstrip().partition("\n")[0]
    delimiter = next((mark for mark in (";", "\t") if mark in first), ",")
    mark = "." if delimiter == "," else ","
    rows = [row for row in files.read_rows(path, content, delimiter, least=1 if bare else 2) if any(row)]
    if bare:
        places = [f"{path}: row {number}" for number in range(1, len(rows) + 1)]
        cells = [
            [files.number_of(cell.replace(mark, "."), place) for cell in row]
            for place, row in zip(places, rows, strict=True)
        ]
        return files.MatrixFile(np.array(cells), Positions(len(cells)), Positions(len(cells[0])))
    if len(rows[0]) > 1 and all(files.is_number(cell) and "." in cell for cell in rows[0]):
        raise FileFormatError(
            f"{path}: its first row {rows[0][:4]} looks like probabilities: without a header, say --no-header"
        )
    return files.labelled_matrix(rows, path, mark)
