"""The error of frequencies estimated from a mechanism's outputs, as a utility."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.argument_checks import check_choice, check_one_for_each
from pmlopt.core.numbers.arrays import (
    FloatArray,
    Label,
    Labels,
    bound_sum_rounding,
    copy_float_array,
)
from pmlopt.core.numbers.differences import (
    MAX_DIFFERENCE,
    is_label_number,
    subtract_arrays,
    to_exact_array,
)
from pmlopt.core.records.fields import Shape
from pmlopt.data.labelled import LabelledArray, Numbers, read_combinations
from pmlopt.data.mechanism import Mechanism, MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import UtilityError
from pmlopt.model.utility.linear import Utility

Workload: TypeAlias = str | Numbers | LabelledArray | None


def workload_matrix(workload: Workload, labels: Sequence[Label]) -> FloatArray:
    """Build the (K, N) workload matrix W of linear combinations of N frequencies.

    Args:
        workload: K rows of N numbers, which may name their columns by the letters (a frame, mappings), one
            row for a single combination, None for "identity", or a name: "identity" (each frequency),
            "prefix" (those of the first 1, 2, ..., N letters), "range" (of the letters from i to j, for all
            i <= j), "mean" (of labels that are numbers), "marginals" (of each
            part of labels that are tuples), or "marginals:1/1,2" (of part 1, and the table of 1 and 2).
        labels: N labels of the letters, in their order.

    Raises:
        UtilityError: the name is not known, the labels do not have what it needs, or the matrix has not N
            columns, no row, or a row of zeros.

    Examples:
        >>> workload_matrix("prefix", (0, 1, 2))
        array([[1., 0., 0.],
               [1., 1., 0.],
               [1., 1., 1.]])
        >>> workload_matrix("marginals:1,2", [("a", 0), ("b", 0)])
        array([[1., 0.],
               [0., 1.]])
        >>> workload_matrix("mean", (10, 20, 40))
        array([[10., 20., 40.]])
    """
    return build_workload_rows(workload, labels).matrix


@dataclass(frozen=True, eq=False)
class WorkloadRows:
    """The exact rows of a workload with their names.

    Frequencies sum to one, so that a row w and w - c require the same, up to the number c: errors, and what
    can be estimated, depend on differences within a row only.

    Attributes:
        names: of the K rows.
        exact: (K, N) floats, or whole numbers and fractions that floats would round.
    """

    names: Labels
    exact: NDArray[Any]

    @property
    def matrix(self) -> FloatArray:
        """Return the (K, N) rows as floats."""
        return self.exact.astype(float)

    def split(self, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return (K,) weighted row medians, and the (K, N) deviations from these.

        Args:
            weights: (N,) of the entries; left out, they are equal.

        Raises:
            UtilityError: the differences are so large or so small that floats do not hold their squares.
        """
        floats = self.matrix
        n = self.exact.shape[1]
        order = np.argsort(floats, axis=1, kind="stable")
        masses = np.cumsum((np.full(n, 1 / n) if weights is None else weights)[order], axis=1)
        middle = np.minimum((masses < masses[:, -1:] / 2).sum(axis=1), n - 1)
        places = np.take_along_axis(order, middle[:, None], axis=1)
        origins = np.take_along_axis(self.exact, places, axis=1)
        try:
            with np.errstate(over="ignore"):
                apart = subtract_arrays(self.exact, origins)
        except OverflowError:
            apart = np.full(self.exact.shape, np.inf)
        sizes = np.abs(apart).max(axis=1)
        for row in np.flatnonzero(
            (sizes > MAX_DIFFERENCE) | ((sizes > 0) & (sizes < 1 / MAX_DIFFERENCE))
        ):
            raise UtilityError(
                f"row {row} of the workload has entries that differ by {sizes[row]:g}, of which floats do "
                "not hold the square: change its unit"
            )
        return origins[:, 0].astype(float), apart

    def center_rows(self, prior: FloatArray) -> FloatArray:
        """Return the (K, N) rows less their means under a prior.

        Examples:
            >>> build_workload_rows("mean", (10**18, 10**18 + 2)).center_rows(np.array([0.5, 0.5])).tolist()
            [[-1.0, 1.0]]
        """
        apart = self.split(prior)[1]
        return apart - (apart @ prior)[:, None]


def build_workload_rows(workload: Workload, labels: Sequence[Label]) -> WorkloadRows:
    """Return the rows of a workload with their names; see `workload_matrix`.

    Rows without a name are called by their number.

    Examples:
        >>> build_workload_rows("range", (2, 5)).names
        ('2', '2..5', '5')
        >>> build_workload_rows("marginals", (("no", "f"), ("yes", "f"))).names
        ('part 1 = no', 'part 1 = yes', 'part 2 = f')
    """
    if workload is None:
        workload = "identity"
    if isinstance(workload, str):
        return WorkloadRows(*_build_named_workload(workload)(labels))
    given = read_combinations(workload, "the workload", UtilityError)
    if given.axes[1] is not None:
        given = given.reorder_axis(1, labels, UtilityError)
    matrix = copy_float_array(given.values, 2, "the workload", UtilityError)
    columns = matrix.shape[1]
    check_one_for_each("the workload has", columns, "columns", len(labels), "letters", UtilityError)
    empty = np.flatnonzero(~matrix.any(axis=1))
    if len(empty):
        raise UtilityError(f"row {empty[0]} of the workload is zero: leave it out")
    names = tuple(range(len(matrix)) if given.axes[0] is None else given.axes[0])
    return WorkloadRows(names, to_exact_array(given.values))


Rows = tuple[Labels, NDArray[Any]]


def _build_named_workload(workload: str) -> Callable[[Sequence[Label]], Rows]:
    """Look up the builder of a named workload."""
    name, colon, parts = workload.partition(":")
    if colon and name == "marginals":
        return partial(_build_marginals, parts=parts)
    check_choice(workload, WORKLOADS, "the workload", UtilityError, ", or a matrix")
    return WORKLOADS[workload]


def _build_identity(labels: Sequence[Label]) -> Rows:
    """Build the workload of all single frequencies (the identity)."""
    return tuple(labels), np.eye(len(labels))


def _build_prefixes(labels: Sequence[Label]) -> Rows:
    """Build the workload of cumulative frequencies (prefix sums)."""
    return tuple(f"<= {label}" for label in labels), np.tri(len(labels))


def _build_ranges(labels: Sequence[Label]) -> Rows:
    """Build the workload of all ranges of consecutive letters."""
    n = len(labels)
    place = np.arange(n)
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    names = tuple(f"{labels[i]}" if i == j else f"{labels[i]}..{labels[j]}" for i, j in pairs)
    return names, np.array([(place >= i) & (place <= j) for i, j in pairs], dtype=float)


def _build_mean(labels: Sequence[Label]) -> Rows:
    """Build the workload of the mean of numeric labels."""
    for label in labels:
        if not is_label_number(label):
            raise UtilityError(
                f"the label {label!r} is no number, so the letters have no mean: give a matrix with one row "
                "of values instead"
            )
    row = copy_float_array([labels], 2, "the labels", UtilityError)
    if not row.any():
        raise UtilityError("all labels are 0: the mean is 0 without any estimate")
    return ("mean",), to_exact_array([labels])


def _build_marginals(labels: Sequence[Label], parts: str | None = None) -> Rows:
    """Build the workload of the marginals of tuple labels: of each part, or the tables that are named."""
    widths = {len(label) if isinstance(label, tuple) else 0 for label in labels}
    if len(widths) != 1 or 0 in widths:
        raise UtilityError("the labels are not tuples of one length, so there are no marginals")
    places = range(widths.pop())
    chosen = [[place] for place in places]
    if parts is not None:
        texts = [table.split(",") for table in parts.split("/")]
        numbers = [str(place + 1) for place in places]
        odd = [text for table in texts for text in table if text not in numbers]
        if odd:
            raise UtilityError(
                f"the marginals {parts!r:.80} name the part {odd[0]!r}: write numbers from 1 to "
                f"{len(numbers)}, such as marginals:1/1,2 for the shares of part 1 and its table with part 2"
            )
        chosen = [[numbers.index(text) for text in table] for table in texts]
    found = build_margins(labels, [f"part {place + 1}" for place in places], chosen)
    assert found.axes[0] is not None
    return found.axes[0], np.asarray(found.values)


def build_margins(
    labels: Sequence[Label], names: Sequence[str], margins: Sequence[Sequence[int]]
) -> LabelledArray:
    """Build the workload of the shares and cross tables of some parts of tuple labels.

    Args:
        labels: N tuples.
        names: of their parts, for the names of the rows.
        margins: the places of the parts of each table.

    Raises:
        UtilityError: there is no table, one has no part, or one part twice.

    Examples:
        >>> tables = build_margins((("no", "f"), ("yes", "f")), ["ill", "sex"], [[0, 1]])
        >>> tables.axes[0], tables.values.tolist()
        (('ill = no, sex = f', 'ill = yes, sex = f'), [[1.0, 0.0], [0.0, 1.0]])
    """
    if not margins or not all(margins) or any(len(set(one)) < len(one) for one in margins):
        raise UtilityError(f"the margins are {margins!r:.80}: give groups of different columns")
    rows: list[str] = []
    cells: list[FloatArray] = []
    for places in margins:
        keys = [tuple(label[place] for place in places) for label in labels]  # type: ignore[index]
        for key in dict.fromkeys(keys):
            parts = zip(places, key, strict=True)
            rows.append(", ".join(f"{names[place]} = {value}" for place, value in parts))
            cells.append(np.array([float(other == key) for other in keys]))
    return LabelledArray(np.array(cells), (tuple(rows), tuple(labels)), "the margins")


WORKLOADS: Mapping[str, Callable[[Sequence[Label]], Rows]] = {
    "identity": _build_identity,
    "prefix": _build_prefixes,
    "range": _build_ranges,
    "mean": _build_mean,
    "marginals": _build_marginals,
}
"""The workloads by name: the names of their rows and their matrix, from the labels of the letters."""


Criterion = Literal["A", "D"]


@dataclass(frozen=True, eq=False)
class EstimationError(Utility):
    """The estimation error of frequencies from a release, to be minimised.

    n people have letters from frequencies f near the prior p, and each releases an output of the mechanism.
    With lam_y the column of y over its mean q[y], one output has the Fisher information
    `J = sum_y q[y] lam_y lam_y'`, and the efficient estimator of a workload W f has the covariance
    `W (J^-1 - p p') W' / n`. The value is

    - "A": its trace for one person, `tr(W J^-1 W') - |W p|^2`: n times the summed variance. Rows are taken
      less their means under p, which does not change it,
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
    arguments: ClassVar[tuple[str, ...]] = tuple(WORKLOADS)
    letters: ClassVar[Labels | None] = None
    """Of the columns of a workload, where it names them."""

    def __post_init__(self) -> None:
        check_choice(self.criterion, get_args(Criterion), "the criterion", UtilityError)
        if self.criterion == "D" and self.workload is not None:
            raise UtilityError("the criterion 'D' does not depend on a workload: leave it out")
        if isinstance(self.workload, str):
            _build_named_workload(self.workload)
        elif self.workload is not None:
            given = read_combinations(self.workload, "the workload", UtilityError)
            rows = copy_float_array(given.values, 2, "the workload", UtilityError)
            exact = to_exact_array(given.values)
            if exact.dtype == object:  # past what floats hold: less a number, they require the same
                rows = WorkloadRows((), exact).split()[1]
                rows.setflags(write=False)
            vars(self).update(workload=rows, letters=given.axes[1])

    @classmethod
    def from_fields(
        cls,
        workload: str | Annotated[FloatArray, Shape("combinations", "letters")] | None = None,
        criterion: Criterion = "A",
        letters: Annotated[Labels, Shape("letters")] | None = None,
    ) -> EstimationError:
        """Build the utility from a saved file's fields."""
        named = workload is not None and not isinstance(workload, str)
        given = LabelledArray(workload, (None, letters), "the workload") if named else workload
        return cls(given, criterion)

    def build_combinations(self, prior: PriorLike) -> FloatArray:
        """Build the (K, N) workload for a prior's letters; for "A" with centred rows.

        Raises:
            UtilityError: it does not fit them.
        """
        p = as_prior(prior)
        rows = self.build_rows(p)
        return rows.matrix if self.criterion == "D" else rows.center_rows(p.pmf)

    def build_rows(self, prior: PriorLike) -> WorkloadRows:
        """Build the named workload rows for a prior's letters.

        Raises:
            UtilityError: it does not fit them.
        """
        wanted = self.workload
        if self.letters is not None:
            wanted = LabelledArray(self.workload, (None, self.letters), "the workload")
        return build_workload_rows(wanted, as_prior(prior).labels)

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """Compute a mechanism's error: n times a variance ("A"), or nats ("D")."""
        p, m = pair_with_prior(prior, mechanism)
        return compute_error(p, m, self.build_combinations(p), self.criterion)


def compute_error(
    prior: Prior, mechanism: Mechanism, combinations: FloatArray, criterion: Criterion
) -> float:
    """Compute a mechanism's estimation error; infinite where its rank is too small.

    Args:
        prior: N letters.
        mechanism: (N, M).
        combinations: (K, N) W, for "A" each row less its mean under the prior.
        criterion: "A" or "D".
    """
    occurring = mechanism.matrix[:, mechanism.support]
    scaled = occurring / np.sqrt(prior.pmf @ occurring)
    left, sizes, _ = np.linalg.svd(scaled, full_matrices=True)
    roots = np.zeros(prior.size)
    roots[: len(sizes)] = sizes
    # Eigenvalues of an information matrix up to this share of the largest are taken for zero: they are
    # squares of singular values, of which the others have six digits.
    seen = roots**2 > 1e-20 * roots[0] ** 2
    if criterion == "D":
        return float(-2 * np.log(roots).sum()) if seen.all() else np.inf
    turned = combinations @ left
    weights = turned[:, seen] / roots[seen]
    lost = np.linalg.norm(turned[:, ~seen], axis=1)
    # what rounding leaves of W - V P', where V are the weights of the outputs
    terms = np.linalg.norm(combinations, axis=1) + roots[0] * np.linalg.norm(weights, axis=1)
    if (lost > bound_sum_rounding(prior.size, 1.0) * terms).any():
        return np.inf
    return float((weights**2).sum())
