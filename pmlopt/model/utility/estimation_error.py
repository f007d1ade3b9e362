"""The error with which frequencies can be estimated from what a mechanism releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from pmlopt.core.arrays import FloatArray, Label, float_array
from pmlopt.core.records import Shape
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.data.tables.labelled import Labelled, Numbers, combinations
from pmlopt.errors import UtilityError
from pmlopt.model.utility.linear import Utility

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
    return workload_rows(workload, labels)[1]


def workload_rows(workload: Workload, labels: Sequence[Label]) -> tuple[tuple[Label, ...], FloatArray]:
    """The names of the K combinations, and their matrix (K, N); see `workload_matrix`.

    Rows without a name of their own are called by their number.

    Examples:
        >>> workload_rows("range", (2, 5))[0]
        ('2', '2..5', '5')
        >>> workload_rows("marginals", (("no", "f"), ("yes", "f")))[0]
        ('part 1 = no', 'part 1 = yes', 'part 2 = f')
    """
    if workload is None:
        workload = "identity"
    if isinstance(workload, str):
        return _named(workload)(labels)
    given = combinations(workload, "the workload", UtilityError)
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
    return tuple(range(len(matrix)) if given.axes[0] is None else given.axes[0]), matrix


Rows = tuple[tuple[Label, ...], FloatArray]


def _named(workload: str) -> Callable[[Sequence[Label]], Rows]:
    if workload not in WORKLOADS:
        raise UtilityError(f"the workload {workload!r} is not known: use {', '.join(WORKLOADS)}, or a matrix")
    return WORKLOADS[workload]


def _identity(labels: Sequence[Label]) -> Rows:
    return tuple(labels), np.eye(len(labels))


def _prefix(labels: Sequence[Label]) -> Rows:
    return tuple(f"<= {label}" for label in labels), np.tri(len(labels))


def _range(labels: Sequence[Label]) -> Rows:
    n = len(labels)
    place, pairs = np.arange(n), [(i, j) for i in range(n) for j in range(i, n)]
    names = tuple(f"{labels[i]}" if i == j else f"{labels[i]}..{labels[j]}" for i, j in pairs)
    return names, np.array([(place >= i) & (place <= j) for i, j in pairs], dtype=float)


def _mean(labels: Sequence[Label]) -> Rows:
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, int | float):
            raise UtilityError(
                f"the label {label!r} is no number, so the letters have no mean: give a matrix with one row "
                "of values instead"
            )
    row = float_array([labels], 2, "the labels", UtilityError)
    if not row.any():
        raise UtilityError("all labels are 0: the mean is 0 without any estimate")
    return ("mean",), row


def _marginals(labels: Sequence[Label]) -> Rows:
    parts = {len(label) if isinstance(label, tuple) else 0 for label in labels}
    if len(parts) != 1 or 0 in parts:
        raise UtilityError("the labels are not tuples of one length, so there are no marginals")
    names: list[Label] = []
    rows = []
    for place in range(parts.pop()):
        column = [label[place] for label in labels if isinstance(label, tuple)]
        for value in dict.fromkeys(column):
            names.append(f"part {place + 1} = {value}")
            rows.append([float(entry == value) for entry in column])
    return tuple(names), np.array(rows)


WORKLOADS: Mapping[str, Callable[[Sequence[Label]], Rows]] = {
    "identity": _identity,
    "prefix": _prefix,
    "range": _range,
    "mean": _mean,
    "marginals": _marginals,
}
"""The workloads by name: the names of their rows and their matrix, from the labels of the letters."""


Criterion = Literal["A", "D"]

CONDITION = 1e-20
"""Eigenvalues of an information matrix up to this share of the largest are taken for zero: they are squares
of singular values, of which the others have six digits."""


@dataclass(frozen=True, eq=False)
class EstimationError(Utility):
    """Minimise the error of the frequencies that are estimated from a release.

    n people have letters from frequencies f near the prior p, and each releases an output of the mechanism.
    With lam_y the column of y over its mean q[y], one output has the Fisher information
    `J = sum_y q[y] lam_y lam_y'`, and the efficient estimator of a workload W f has the covariance
    `W (J^-1 - p p') W' / n`. The value is

    - "A": its trace for one person, `tr(W J^-1 W') - |W p|^2`: n times the summed variance,
    - "D": `-log det J`, in nats: the volume of the confidence region. It does not depend on the workload, and
      takes none.

    It is infinite where the rank of the mechanism does not allow the estimate.

    Args:
        workload: a (K, N) matrix W, which may name its columns by the letters, one row of N numbers, or a
            name: "identity" (the default), "prefix", "range", "mean", "marginals"
            (`pmlopt.model.utility.workload_matrix`).
        criterion: "A" or "D".

    Raises:
        UtilityError: the workload or the criterion cannot be meant.

    Source: [pukelsheim2006optimal, Chapter 9] (A- and D-optimal designs); [mckenna2020workload] (workloads).

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(EstimationError().value([0.5, 0.5], response), 9)  # two variances of 0.25 / 0.5^2
        2.0
        >>> EstimationError().value([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
        inf
    """

    workload: Workload = None
    criterion: Criterion = "A"
    kind: ClassVar[str] = "estimation-error"
    maximised: ClassVar[bool] = False
    letters: ClassVar[tuple[Label, ...] | None] = None
    """Of the columns of a workload, where it names them."""

    def __post_init__(self) -> None:
        if self.criterion not in get_args(Criterion):
            raise UtilityError(f"the criterion {self.criterion!r} is not known: use 'A' or 'D'")
        if self.criterion == "D" and self.workload is not None:
            raise UtilityError("the criterion 'D' does not depend on a workload: leave it out")
        if isinstance(self.workload, str):
            _named(self.workload)
        elif self.workload is not None:
            given = combinations(self.workload, "the workload", UtilityError)
            vars(self).update(
                workload=float_array(given.values, 2, "the workload", UtilityError), letters=given.axes[1]
            )

    @classmethod
    def from_fields(
        cls,
        workload: str | Annotated[FloatArray, Shape("combinations", "letters")] | None = None,
        criterion: Criterion = "A",
        letters: Annotated[tuple[Label, ...], Shape("letters")] | None = None,
    ) -> EstimationError:
        """As a file has it: the letters are those of the columns of a matrix, where it names them."""
        named = workload is not None and not isinstance(workload, str)
        given = Labelled(workload, (None, letters), "the workload") if named else workload
        return cls(given, criterion)

    def combinations(self, prior: PriorLike) -> FloatArray:
        """(K, N) the workload for the letters of a prior.

        Raises:
            UtilityError: it does not fit them.
        """
        wanted = self.workload
        if self.letters is not None:
            wanted = Labelled(self.workload, (None, self.letters), "the workload")
        return workload_matrix(wanted, as_prior(prior).labels)

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """The error of a given mechanism: n times a variance ("A"), or nats ("D")."""
        p, m = paired(prior, mechanism)
        occurring = m.matrix[:, m.support]
        scaled = occurring / np.sqrt(p.pmf @ occurring)
        wanted = self.combinations(p)
        left, sizes, _ = np.linalg.svd(scaled, full_matrices=True)
        informations = np.zeros(p.size)
        informations[: len(sizes)] = sizes**2
        seen = informations > CONDITION * informations[0]
        if self.criterion == "D":
            return float(-np.log(informations).sum()) if seen.all() else np.inf
        turned = wanted @ left
        lost = np.linalg.norm(turned[:, ~seen], axis=1)
        if (lost > 1e-9 * np.linalg.norm(wanted, axis=1)).any():
            return np.inf
        return float((turned[:, seen] ** 2 / informations[seen]).sum() - ((wanted @ p.pmf) ** 2).sum())
