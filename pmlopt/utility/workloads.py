"""Workloads: the linear combinations of frequencies that are wanted, as a matrix or by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pmlopt.arrays import FloatArray, Label, float_array
from pmlopt.errors import UtilityError
from pmlopt.tables.labelled import Labelled, Numbers, combinations

Workload: TypeAlias = str | Numbers | Labelled | None


def workload_matrix(workload: Workload, labels: Sequence[Label]) -> FloatArray:
    """(K, N) the matrix W of the combinations W f of the frequencies f of N letters.

    Args:
        workload: K rows of N numbers, which may name their columns by the letters (a frame, mappings), one
            row for a single combination, None for "identity", or a name: "identity" (each frequency),
            "prefix" (those of the first 1, 2, ..., N letters), "range" (of the letters from i to j, for all
            i <= j), "mean" (of labels that are numbers), "marginals" (of each
            part of labels that are tuples).
        labels: N labels of the letters, in their order.

    Raises:
        UtilityError: the name is not known, the labels do not have what it needs, or the matrix has not N
            columns, no row, or a row of zeros.

    Examples:
        >>> workload_matrix("prefix", (0, 1, 2))
        array([[1., 0., 0.],
               [1., 1., 0.],
               [1., 1., 1.]])
        >>> workload_matrix("mean", (10, 20, 40))
        array([[10., 20., 40.]])
    """
    if workload is None:
        return np.eye(len(labels))
    if isinstance(workload, str):
        if workload not in WORKLOADS:
            raise UtilityError(
                f"the workload {workload!r} is not known: use {', '.join(WORKLOADS)}, or a matrix"
            )
        return WORKLOADS[workload](labels)
    given = (
        workload if isinstance(workload, Labelled) else combinations(workload, "the workload", UtilityError)
    )
    if given.axes[1] is not None:
        given = given.along(1, labels, UtilityError)
    matrix = float_array(given.values, 2, "the workload", UtilityError)
    if matrix.shape[1] != len(labels):
        raise UtilityError(
            f"the workload has {matrix.shape[1]} columns for {len(labels)} letters: give one for each letter"
        )
    empty = np.flatnonzero(~matrix.any(axis=1))
    if len(empty):
        raise UtilityError(f"row {empty[0]} of the workload is zero: leave it out")
    return matrix


def _identity(labels: Sequence[Label]) -> FloatArray:
    return np.eye(len(labels))


def _prefix(labels: Sequence[Label]) -> FloatArray:
    return np.tri(len(labels))


def _range(labels: Sequence[Label]) -> FloatArray:
    n = len(labels)
    place = np.arange(n)
    return np.array([(place >= i) & (place <= j) for i in range(n) for j in range(i, n)], dtype=float)


def _mean(labels: Sequence[Label]) -> FloatArray:
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, int | float):
            raise UtilityError(
                f"the label {label!r} is no number, so the letters have no mean: give a matrix with one row "
                "of values instead"
            )
    row = float_array([labels], 2, "the labels", UtilityError)
    if not row.any():
        raise UtilityError("all labels are 0: the mean is 0 without any estimate")
    return row


def _marginals(labels: Sequence[Label]) -> FloatArray:
    parts = {len(label) if isinstance(label, tuple) else 0 for label in labels}
    if len(parts) != 1 or 0 in parts:
        raise UtilityError("the labels are not tuples of one length, so there are no marginals")
    rows = []
    for place in range(parts.pop()):
        column = [label[place] for label in labels if isinstance(label, tuple)]
        rows += [[float(entry == value) for entry in column] for value in dict.fromkeys(column)]
    return np.array(rows)


WORKLOADS: Mapping[str, Callable[[Sequence[Label]], FloatArray]] = {
    "identity": _identity,
    "prefix": _prefix,
    "range": _range,
    "mean": _mean,
    "marginals": _marginals,
}
"""The workloads by name, each from the labels of the letters."""
