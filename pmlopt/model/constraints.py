"""Linear constraints on designs: those of post-randomization, and of noise tables."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import (
    BoolArray,
    FloatArray,
    Label,
    Labels,
    check_in_interval,
    check_labels_of_size,
    check_nonnegative,
    check_real,
    indices_of,
    make_label_key,
)
from pmlopt.core.numbers.differences import (
    MAX_DIFFERENCE,
    is_label_number,
    subtract_arrays,
    to_exact_array,
)
from pmlopt.core.records.fields import Range, Record, get_fields
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError

Scores: TypeAlias = Mapping[Any, float] | Iterable[tuple[Label, float]] | None


def _check_pairs(given: Any, form: str, mappings: bool) -> list[tuple[Any, Any]]:
    """Validate pairs given as a list or mapping, and return them as a list.

    Raises:
        ProgramError: they have another form, which the message states.
    """
    if isinstance(given, Mapping) and mappings:
        return list(given.items())
    wrong = isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable)
    pairs = [] if wrong else list(given)
    if wrong or any(
        not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2 for pair in pairs
    ):
        raise ProgramError(f"{reprlib.repr(given)} is no list of pairs: give {form}")
    return [(one, other) for one, other in pairs]


def _check_limit(value: Any, what: str) -> float:
    """Validate a nonnegative limit."""
    return check_in_interval(value, "[0, inf)", what, ProgramError)


class Constraint(Record, ABC):
    """A named linear constraint on a mechanism: `sum_xy C[r,x,y] P[x,y] = offset[r]`, or `<=`.

    A class with a `name` is known by it in problem files, in saved files and on the command line.

    Attributes:
        equal: whether the rows are equations.
    """

    name: ClassVar[str]
    equal: ClassVar[bool] = True

    def __repr__(self) -> str:
        arguments = (f"{one.name}={getattr(self, one.name)!r}" for one in get_fields(type(self)))
        return f"{type(self).__name__}({', '.join(arguments)})"

    @abstractmethod
    def build_rows(
        self, prior: Prior, outputs: Sequence[Label]
    ) -> tuple[sparse.csr_array, FloatArray]:
        """Return the constraint as linear rows: coefficients (R, N M) on the mechanism, and (R,) offsets.

        Raises:
            ProgramError: it is on other labels than those of the prior and the outputs.
        """


class Invariant(Constraint):
    """The invariance constraint `p P = p`: the released column has the law of the data.

    The outputs are the letters of the prior. Frequencies are then read from the release as they are.

    Source: [gouweleeuw1998post, Section 3].

    Examples:
        >>> from pmlopt import PML, design, solve
        >>> kept = solve(design([0.6, 0.4], PML(0.4), "hamming", constraints=[Invariant()]))
        >>> ([0.6, 0.4] @ kept.matrix).round(6).tolist()
        [0.6, 0.4]
    """

    name: ClassVar[str] = "invariant"

    def build_rows(
        self, prior: Prior, outputs: Sequence[Label]
    ) -> tuple[sparse.csr_array, FloatArray]:
        """Return the constraint as linear rows: coefficients (R, N M) on the mechanism, and (R,) offsets."""
        places = indices_of(
            outputs, prior.labels, "the outputs of an invariant design", ProgramError
        )
        if sorted(places) != list(range(prior.size)):
            raise ProgramError(
                "an invariant design releases the letters: its outputs are other labels than the prior's"
            )
        law = sparse.kron(prior.pmf[None, :], sparse.eye_array(prior.size))
        return sparse.csr_array(law), prior.pmf[places]


class _ScoreConstraint(Constraint):
    """The base of constraints on numeric scores of letters and outputs."""

    scores: tuple[tuple[Label, int | float], ...] | None

    def __init__(self, scores: Scores = None) -> None:
        if scores is None:
            self.scores = None
            return
        pairs = _check_pairs(scores, "{label: score, ...} or [(label, score), ...]", mappings=True)
        names = check_labels_of_size(
            [label for label, _ in pairs], len(pairs), "the scores", ProgramError
        )
        self.scores = tuple(
            (name, _check_score(name, score)) for name, (_, score) in zip(names, pairs, strict=True)
        )

    def _get_scores(self, labels: Sequence[Label], what: str) -> NDArray[Any]:
        """Return the exact scores of labels."""
        if self.scores is not None:
            known = [label for label, _ in self.scores]
            places = indices_of(labels, known, what, ProgramError)
            return to_exact_array([self.scores[place][1] for place in places])
        for label in labels:
            if not is_label_number(label):
                raise ProgramError(
                    f"{what} are labels such as {label!r}, no numbers: give scores by label"
                )
            if isinstance(label, float) and not math.isfinite(label):
                raise ProgramError(
                    f"{what} have the label {label!r}, which has no difference from others"
                )
        return to_exact_array(labels)

    def _compute_errors(self, prior: Prior, outputs: Sequence[Label]) -> FloatArray:
        """Compute the (N, M) differences between output score and letter score."""
        released = self._get_scores(outputs, "the outputs")
        own = self._get_scores(prior.labels, "the letters")
        try:
            with np.errstate(over="ignore"):
                found = subtract_arrays(released[None, :], own[:, None])
        except OverflowError:
            found = np.full((1, 1), np.inf)
        sizes = np.abs(found)
        if sizes.max() > MAX_DIFFERENCE or 0 < sizes.max() < 1 / MAX_DIFFERENCE:
            raise ProgramError(
                f"scores of {self.name!r} differ by {sizes.max():g}, of which floats do not hold the square: "
                "change their unit"
            )
        return found


def _check_score(label: Label, score: Any) -> int | float:
    """Validate a score, and return it as a float or int."""
    number = check_real(score, f"the score of {label!r}", ProgramError)
    if isinstance(score, float | np.floating) or score != int(score):
        return number
    return int(score)


class Unbiased(_ScoreConstraint):
    """The zero-bias constraint `sum_y P[x,y] (s(y) - s(x)) = 0` for each letter.

    Args:
        scores: s, by label; left out, the labels are numbers.

    Source: [gouweleeuw1998post]; for tables of noise [giessing2016computational].

    Examples:
        >>> from pmlopt import PML, Prior, constraints, design, solve
        >>> counts, noise = Prior([0.5, 0.5], [1, 2]), [constraints.Unbiased(), constraints.Variance(2)]
        >>> table = solve(design(counts, PML(0.4), "squared", range(4), noise))
        >>> (table.matrix @ range(4)).round(6).tolist()
        [1.0, 2.0]
        >>> round(table.value, 6)
        1.033245
    """

    name: ClassVar[str] = "unbiased"

    def build_rows(
        self, prior: Prior, outputs: Sequence[Label]
    ) -> tuple[sparse.csr_array, FloatArray]:
        """Return the constraint as linear rows: coefficients (R, N M) on the mechanism, and (R,) offsets."""
        return _expand_by_letter(self._compute_errors(prior, outputs)), np.zeros(prior.size)


class Variance(_ScoreConstraint):
    """An upper limit on each letter's mean squared error: `sum_y P[x,y] (s(y) - s(x))^2 <= limit`.

    With `Unbiased` that is the variance of the noise.

    Args:
        most: in squared units of the scores.
        scores: as those of `Unbiased`.
    """

    name: ClassVar[str] = "variance"
    equal: ClassVar[bool] = False
    most: Annotated[float, Range(0)]

    def __init__(self, most: float, scores: Scores = None) -> None:
        self.most = _check_limit(most, "the largest variance")
        super().__init__(scores)

    def build_rows(
        self, prior: Prior, outputs: Sequence[Label]
    ) -> tuple[sparse.csr_array, FloatArray]:
        """Return the constraint as linear rows: coefficients (R, N M) on the mechanism, and (R,) offsets."""
        return _expand_by_letter(self._compute_errors(prior, outputs) ** 2), np.full(
            prior.size, self.most
        )


class _ForbiddenPairs(Constraint):
    """The base of constraints that forbid (letter, output) pairs."""

    @abstractmethod
    def forbidden_mask(self, prior: Prior, outputs: Sequence[Label]) -> BoolArray:
        """Return the (N, M) mask of forbidden pairs."""

    def build_rows(
        self, prior: Prior, outputs: Sequence[Label]
    ) -> tuple[sparse.csr_array, FloatArray]:
        """Return the constraint as linear rows: coefficients (R, N M) on the mechanism, and (R,) offsets."""
        shut = self.forbidden_mask(prior, outputs)
        cells = np.flatnonzero(shut)
        one_each = (np.ones(len(cells)), (np.arange(len(cells)), cells))
        return sparse.csr_array(one_each, shape=(len(cells), shut.size)), np.zeros(len(cells))


class Zeros(_ForbiddenPairs):
    """Forbidden transitions (structural zeros): `P[x,y] = 0`.

    Args:
        pairs: of a letter and an output.

    Raises:
        ProgramError: it is no list of pairs.
    """

    name: ClassVar[str] = "zeros"
    pairs: tuple[tuple[Label, Label], ...]

    def __init__(self, pairs: Iterable[tuple[Label, Label]]) -> None:
        self.pairs = tuple(_check_pairs(pairs, "Zeros([(letter, output), ...])", mappings=False))

    def forbidden_mask(self, prior: Prior, outputs: Sequence[Label]) -> BoolArray:
        """Return the (N, M) mask of forbidden pairs."""
        found = np.zeros((prior.size, len(outputs)), dtype=bool)
        letters = indices_of(
            [x for x, _ in self.pairs], prior.labels, "the pairs' letters", ProgramError
        )
        found[
            letters,
            indices_of([y for _, y in self.pairs], outputs, "the pairs' outputs", ProgramError),
        ] = True
        return found


class Within(_ScoreConstraint, _ForbiddenPairs):
    """An upper limit on the noise: `P[x,y] = 0` where `|s(y) - s(x)|` exceeds it.

    Args:
        most: in units of the scores.
        scores: as those of `Unbiased`.
    """

    name: ClassVar[str] = "within"
    most: Annotated[float, Range(0)]

    def __init__(self, most: float, scores: Scores = None) -> None:
        self.most = _check_limit(most, "the largest change")
        super().__init__(scores)

    def forbidden_mask(self, prior: Prior, outputs: Sequence[Label]) -> BoolArray:
        """Return the (N, M) mask of forbidden pairs."""
        return np.abs(self._compute_errors(prior, outputs)) > self.most


class Strata(_ForbiddenPairs):
    """Transitions only within a stratum: `P[x,y] = 0` for letters of different strata.

    Args:
        groups: the labels of each stratum, or the stratum of each label.
    """

    name: ClassVar[str] = "strata"
    groups: tuple[Labels, ...]

    def __init__(self, groups: Mapping[Any, Label] | Iterable[Iterable[Label]]) -> None:
        listed = _group_by_stratum(groups) if isinstance(groups, Mapping) else groups
        if not _is_label_collection(listed) or not all(
            map(_is_label_collection, parts := list(listed))
        ):
            raise ProgramError(
                f"{reprlib.repr(groups)} is no list of strata: give the labels of each, such as "
                'Strata([["a", "b"], ["c"]]), or the stratum of each label, {"a": 1, "b": 1, "c": 2}'
            )
        self.groups = tuple(map(tuple, parts))
        every = [label for group in self.groups for label in group]
        check_labels_of_size(every, len(every), "the strata", ProgramError)

    def forbidden_mask(self, prior: Prior, outputs: Sequence[Label]) -> BoolArray:
        """Return the (N, M) mask of forbidden pairs."""
        every = [label for group in self.groups for label in group]
        stratum = np.repeat(np.arange(len(self.groups)), list(map(len, self.groups)))
        own, other = (
            stratum[indices_of(labels, every, f"{what} of strata", ProgramError)]
            for labels, what in ((prior.labels, "the letters"), (outputs, "the outputs"))
        )
        return np.asarray(own[:, None] != other[None, :])


def _group_by_stratum(strata: Mapping[Any, Any]) -> list[list[Label]]:
    """Group labels by stratum.

    Raises:
        ProgramError: a stratum is no label.
    """
    found: dict[Label, list[Label]] = {}
    for label, stratum in strata.items():
        try:
            found.setdefault(make_label_key(stratum), []).append(label)
        except TypeError:
            raise ProgramError(
                f"the stratum of {label!r} is {stratum!r}, which is no label: give the stratum of each "
                "label, or a list of the labels of each stratum"
            ) from None
    return list(found.values())


def _is_label_collection(data: Any) -> bool:
    """Return whether data are an iterable, but neither text nor a mapping."""
    return isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping)


def _get_diagonal_indices(
    prior: Prior, outputs: Sequence[Label], letters: Sequence[Label]
) -> list[int]:
    """Return the flat indices of the diagonal entries `P[x,x]` of some letters.

    Raises:
        ProgramError: a letter is none of the prior, or no output.
    """
    rows = indices_of(letters, prior.labels, "the categories that are kept", ProgramError)
    columns = indices_of(
        letters, outputs, "the categories that are kept, as outputs,", ProgramError
    )
    return [row * len(outputs) + column for row, column in zip(rows, columns, strict=True)]


class Retention(Constraint):
    """A lower limit on the expected share of unchanged records: `sum_x p[x] P[x,x] >= least`.

    Args:
        least: the share, from 0 to 1.

    Source: [gouweleeuw1998post].

    Examples:
        >>> from pmlopt import PML, Prior, constraints, design, solve
        >>> prior = Prior([0.6, 0.3, 0.1], ["a", "b", "c"])
        >>> kept = solve(design(prior, PML(1.5), "hamming", constraints=[Retention(0.8)]))
        >>> bool(prior.pmf @ kept.matrix.diagonal() >= 0.8 - 1e-9)
        True
    """

    name: ClassVar[str] = "retention"
    equal: ClassVar[bool] = False
    least: Annotated[float, Range(0, 1)]

    def __init__(self, least: float) -> None:
        self.least = check_in_interval(
            least, "[0, 1]", "the share of records that keep their value", ProgramError
        )

    def build_rows(
        self, prior: Prior, outputs: Sequence[Label]
    ) -> tuple[sparse.csr_array, FloatArray]:
        """Return the constraint as linear rows: coefficients (R, N M) on the mechanism, and (R,) offsets."""
        places = _get_diagonal_indices(prior, outputs, prior.labels)
        entries = (-prior.pmf, (np.zeros(prior.size, dtype=int), places))
        row = sparse.csr_array(entries, shape=(1, prior.size * len(outputs)))
        return row, np.array([-self.least])


class CategoryRetention(Constraint):
    """Lower limits on each category's probability of staying unchanged: `P[x,x] >= least[x]`.

    Args:
        least: from 0 to 1, one number for all categories, or by category; categories that are not named may
            change freely.

    Source: [gouweleeuw1998post].

    Examples:
        >>> from pmlopt import PML, Prior, constraints, design, solve
        >>> prior = Prior([0.6, 0.3, 0.1], ["a", "b", "c"])
        >>> kept = solve(design(prior, PML(1.5), "hamming", constraints=[CategoryRetention({"c": 0.4})]))
        >>> bool(kept.matrix[2, 2] >= 0.4 - 1e-9)
        True
    """

    name: ClassVar[str] = "category-retention"
    equal: ClassVar[bool] = False
    least: Annotated[float, Range(0, 1)] | tuple[tuple[Label, float], ...]

    def __init__(self, least: float | Mapping[Any, float] | Iterable[tuple[Label, float]]) -> None:
        if isinstance(least, Mapping) or (isinstance(least, Iterable) and np.ndim(least) > 0):  # type: ignore[arg-type]
            pairs = _check_pairs(
                least, "{category: share, ...} or [(category, share), ...]", mappings=True
            )
            names = check_labels_of_size(
                [label for label, _ in pairs], len(pairs), "the categories", ProgramError
            )
            self.least = tuple(
                (
                    name,
                    check_in_interval(
                        fraction, "[0, 1]", f"the probability to keep {name!r}", ProgramError
                    ),
                )
                for name, (_, fraction) in zip(names, pairs, strict=True)
            )
            if not pairs:
                raise ProgramError(
                    "no category is named: give one share for all, or a share for each"
                )
        else:
            self.least = check_in_interval(
                least, "[0, 1]", "the probability to keep a category", ProgramError
            )

    def build_rows(
        self, prior: Prior, outputs: Sequence[Label]
    ) -> tuple[sparse.csr_array, FloatArray]:
        """Return the constraint as linear rows: coefficients (R, N M) on the mechanism, and (R,) offsets."""
        alike = isinstance(self.least, float)
        floors = dict.fromkeys(prior.labels, self.least) if alike else dict(self.least)  # type: ignore[arg-type]
        places = _get_diagonal_indices(prior, outputs, list(floors))
        entries = (-np.ones(len(places)), (np.arange(len(places)), places))
        rows = sparse.csr_array(entries, shape=(len(places), prior.size * len(outputs)))
        return rows, -np.array(list(floors.values()), dtype=float)


class OutcomeLeakage(Constraint):
    """Leakage limits on single outcomes: `P[x,y] <= e^(limit[y]) q[y]` for each letter x.

    Unlike PML, which is a bound on all outcomes, it states that some may reveal less. It is kept up to
    rounding, as constraints are, where a requirement is proved in exact arithmetic.

    It is a constraint and no form of PML, since a requirement is on columns: its exact check, its bound on a
    utility and its files know neither the labels of outputs nor their places, and are the same for columns in
    any order, of which some that never occur are left out.

    Args:
        most: in nats, by output.

    Raises:
        ProgramError: a budget is negative or no number.

    Source: [saeidian2023pointwise, Definition 1], for each outcome separately.

    Examples:
        >>> from pmlopt import PML, Prior, constraints, design, pointwise_leakage, solve
        >>> prior = Prior([0.5, 0.3, 0.2], ["no", "yes", "often"])
        >>> told = solve(design(prior, PML(1.0), "hamming", constraints=[OutcomeLeakage({"often": 0.2})]))
        >>> bool(pointwise_leakage(prior, told.mechanism)[2] <= 0.2 + 1e-12)
        True
    """

    name: ClassVar[str] = "outcome-leakage"
    equal: ClassVar[bool] = False
    most: tuple[tuple[Label, float], ...]

    def __init__(self, most: Mapping[Any, float] | Iterable[tuple[Label, float]]) -> None:
        pairs = _check_pairs(most, "{output: nats, ...} or [(output, nats), ...]", mappings=True)
        names = check_labels_of_size(
            [label for label, _ in pairs], len(pairs), "the budgets", ProgramError
        )
        self.most = tuple(
            (name, check_nonnegative(nats, f"the budget of the outcome {name!r}", ProgramError))
            for name, (_, nats) in zip(names, pairs, strict=True)
        )

    def build_rows(
        self, prior: Prior, outputs: Sequence[Label]
    ) -> tuple[sparse.csr_array, FloatArray]:
        """Return the constraint as linear rows: coefficients (R, N M) on the mechanism, and (R,) offsets."""
        known = [label for label, _ in self.most]
        places = indices_of(known, outputs, "the budgets of outcomes", ProgramError)
        letters = np.eye(prior.size)
        m = len(outputs)
        units = sparse.csr_array(np.eye(m)[places])
        # e^-eps P[x,y] <= q[y], so that no coefficient is large
        parts = [
            sparse.kron(math.exp(-nats) * letters - prior.pmf[None, :], units[[place]])
            for place, (_, nats) in enumerate(self.most)
        ]
        rows = (
            sparse.csr_array(sparse.vstack(parts))
            if parts
            else sparse.csr_array((0, prior.size * m))
        )
        return rows, np.zeros(rows.shape[0])


def _expand_by_letter(values: FloatArray) -> sparse.csr_array:
    """Return the (N, N M) matrix with one row of coefficients per letter."""
    return sparse.block_diag([sparse.csr_array(row[None, :]) for row in values], format="csr")
