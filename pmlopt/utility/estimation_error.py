"""The error with which frequencies can be estimated from what a mechanism releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from pmlopt.arrays import FloatArray, Label, float_array
from pmlopt.errors import UtilityError
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import PriorLike, as_prior
from pmlopt.tables.labelled import Labelled, combinations
from pmlopt.utility.utility import Utility
from pmlopt.utility.workloads import WORKLOADS, Workload, workload_matrix

Criterion = Literal["A", "D"]

CONDITION = 1e-12
"""Eigenvalues of an information matrix up to this share of the largest are taken for zero."""


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
            (`pmlopt.utility.workload_matrix`).
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
    maximised: ClassVar[bool] = False
    letters: ClassVar[tuple[Label, ...] | None] = None
    """Of the columns of a workload, where it names them."""

    def __post_init__(self) -> None:
        if self.criterion not in get_args(Criterion):
            raise UtilityError(f"the criterion {self.criterion!r} is not known: use 'A' or 'D'")
        if self.criterion == "D" and self.workload is not None:
            raise UtilityError("the criterion 'D' does not depend on a workload: leave it out")
        if isinstance(self.workload, str):
            if self.workload not in WORKLOADS:
                raise UtilityError(f"the workload {self.workload!r} is not known: use {', '.join(WORKLOADS)}")
        elif self.workload is not None:
            found = combinations(self.workload, "the workload", UtilityError)
            object.__setattr__(self, "workload", float_array(found.values, 2, "the workload", UtilityError))
            object.__setattr__(self, "letters", found.axes[1])

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
        law = p.pmf @ occurring
        scaled = occurring / np.sqrt(law)
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
