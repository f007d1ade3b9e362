"""The prior: the distribution of the secret before the release."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import numpy as np

from pmlopt.core import frames
from pmlopt.core.declared_orders import make_label_rank
from pmlopt.core.descriptions import describe_value
from pmlopt.core.display import (
    draw_bars,
    format_probability,
    format_table_html,
    format_table_latex,
    import_pandas,
)
from pmlopt.core.frames import MISSING_LETTER, Missing, is_missing
from pmlopt.core.near_labels import warn_of_near_labels
from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    DefaultLabels,
    FloatArray,
    Label,
    Labels,
    abbreviate,
    check_integer,
    check_labels_of_size,
    common_integer_ratio,
    copy_float_array,
    indices_of,
    is_plain,
    select_labels,
)
from pmlopt.core.numbers.blocks import iterate_row_blocks
from pmlopt.core.records.fields import Context, ContextReference, Record, Shape
from pmlopt.core.suggestions import SuggestsAttributes
from pmlopt.data.labelled import Numbers, read_column, read_vector
from pmlopt.errors import PriorError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_PROBABILITY = 1e-300
"""The smallest probability of a letter: its logarithm, -690.8 nats, bounds every leakage."""


@dataclass(frozen=True, eq=False, init=False)
class Prior(SuggestsAttributes, Record):
    """The distribution P_X of a secret X on N letters, each of positive probability.

    Args:
        probabilities: (N,) positive numbers that sum to one (within 1e-9); or with labels, a mapping, a
            pandas Series with its index, or a table of two columns of pandas, Polars or Arrow.
        labels: N distinct labels of the letters, where the numbers have none. Where none are given they are
            `DefaultLabels`, the numbers 0, 1, ..., N-1, which pair with other labels by position; labels that
            are given never do.
        samples: the number of observations the probabilities were estimated from, if they were.

    Raises:
        PriorError: an entry is zero, negative, NaN or infinite, the sum is not one, or the labels
            do not fit.

    Examples:
        >>> prior = Prior([0.5, 0.25, 0.25], labels=["a", "b", "c"])
        >>> prior.size, prior.labels
        (3, ('a', 'b', 'c'))
        >>> Prior([0.5, 0.6])
        Traceback (most recent call last):
        ...
        pmlopt.errors.PriorError: the probabilities sum to 1.1, not to 1: divide them by their sum, or take
        Prior.from_counts, where they are counts
    """

    ATTRIBUTE_HINTS: ClassVar[Mapping[str, str]] = {
        "letters": ".labels", "index": ".labels", "n": ".size", "p": ".pmf", "values": ".pmf",
        "to_numpy": ".pmf", "items": "zip(prior.labels, prior.pmf)",
        "to_dict": "dict(zip(prior.labels, prior.pmf))",
        "save": "pandas: pd.Series(prior.pmf, prior.labels).to_csv('prior.csv')", "total": ".samples",
        "sample": "numpy: rng.choice(prior.size, p=prior.pmf)",
    }  # fmt: skip

    USER_NAMES: ClassVar[tuple[str, ...]] = (
        "counts", "from_counts", "from_samples", "from_weights", "labels", "max_leakage", "plot", "pmf",
        "probabilities", "reordered", "samples", "size", "to_latex", "to_pandas", "uniform", "weights",
        "with_labels",
    )  # fmt: skip

    kind: ClassVar[str] = "prior"
    probabilities: FloatArray
    labels: Labels
    samples: int | None
    counts: tuple[int, ...] | None
    """The counts the prior was made from, where it was; exact arithmetic uses them."""

    def __init__(
        self,
        probabilities: Numbers,
        labels: Iterable[Label] | None = None,
        samples: int | None = None,
    ) -> None:
        own, numbers = None, probabilities
        if not is_plain(probabilities, 1):
            own, numbers = _split_labels(probabilities, labels, "the probabilities")
            _check_not_observations(numbers)
        # a copy: the prior is hashed and compared, and must not change with the caller's array
        array = copy_float_array(numbers, 1, "the probabilities", PriorError)
        names = own or check_labels_of_size(labels, len(array), "the prior's labels", PriorError)
        _check_min_probability(names, array)
        # fsum: a naive sum of many letters could itself be off by the tolerance
        total = math.fsum(array)
        if abs(total - 1) > SUM_ATOL:
            raise PriorError(
                f"the probabilities sum to {total:.12g}, not to 1: {_sum_hint(names, array)}"
            )
        if samples is not None:
            samples = _check_count(samples, "the number of samples")
            if samples == 0:
                raise PriorError("the number of samples is 0: leave it out for a known prior")
        vars(self).update(probabilities=array, labels=names, samples=samples, counts=None)

    @classmethod
    def uniform(cls, size: int, labels: Iterable[Label] | None = None) -> Prior:
        """Build the uniform prior on `size` letters, exactly 1/size each in exact arithmetic.

        Examples:
            >>> Prior.uniform(4).probabilities
            array([0.25, 0.25, 0.25, 0.25])
        """
        return cls.from_weights(
            (1,) * check_integer(size, "the size of the alphabet", PriorError), labels
        )

    @classmethod
    def from_counts(cls, counts: Numbers, labels: Iterable[Label] | None = None) -> Prior:
        """Build the empirical distribution of a count table, with its sample size.

        Letters must be fixed before the sample is seen, and pseudo-counts are no sample: a promise over the
        sample does not hold for counts to which something was added.

        Args:
            counts: a mapping from label to count, a pandas Series with its index, a table of two columns
                (letter and count, as what `value_counts` of Polars and Arrow returns), or N counts. Of a
                column of a data file, `pmlopt.tables.column_counts` makes one.
            labels: N labels, where the counts have none.

        Raises:
            PriorError: a count is zero, negative or not a whole number.

        Source: [grosse2025empirical, eq. (3)].

        Examples:
            >>> prior = Prior.from_counts({"low": 3, "high": 1})
            >>> prior.labels, prior.probabilities, prior.samples
            (('low', 'high'), array([0.75, 0.25]), 4)
        """
        names, integers = read_count_table(counts, labels)
        if labels is None:  # who gives labels, or their number, means counts
            _check_are_counts(names, integers)
        return cls._from_integers(integers, names, samples=sum(integers))

    @classmethod
    def from_samples(cls, values: Iterable[Label], missing: Missing = "refuse") -> Prior:
        """Build the empirical distribution of observed values; letters in ascending or declared order.

        Args:
            values: an array, a series of pandas or Polars, or any iterable.
            missing: what to do with a missing value (None, NaN, NA): `refuse` it, `drop` it, or count it as
                the `letter` "", the empty text, which comes last.

        Raises:
            PriorError: a value is missing, and that is refused; values have no order; or `missing` is not one
                of the three.

        Examples:
            >>> Prior.from_samples(["b", "a", "b", "b"]).probabilities
            array([0.25, 0.75])
            >>> Prior.from_samples(["b", None, "b", "b"], missing="letter").labels
            ('b', '')
        """
        frames.check_missing(missing, PriorError)
        given = read_column(values, "the samples", PriorError, missing=True)
        absent = frames.list_missing(given)
        if absent and missing == "refuse":
            raise PriorError(
                f"the value at position {absent[0]} is missing: give missing='drop' to leave such values "
                f"out, or 'letter' to count them as the letter {MISSING_LETTER!r}"
            )
        try:
            present = given if not absent else [value for value in given if not is_missing(value)]
            _check_boolean_samples(present)
            table = Counter(present)
            rank = make_label_rank(table, frames.find_column_orders(values))
            counts: dict[Any, int] = {letter: table[letter] for letter in sorted(table, key=rank)}
        except TypeError:
            raise PriorError(
                "the samples are no letters, or mix kinds that have no order, such as text and numbers: "
                "convert them to one kind, or count them and use Prior.from_counts"
            ) from None
        if absent and missing == "letter":
            counts[MISSING_LETTER] = counts.pop(MISSING_LETTER, 0) + len(absent)
        warn_of_near_labels(list(counts), "the samples")
        return cls.from_counts(counts)

    @classmethod
    def from_weights(cls, weights: Sequence[int], labels: Iterable[Label] | None = None) -> Prior:
        """Build the exact distribution proportional to integer weights.

        Raises:
            PriorError: a weight is zero, negative or not a whole number.

        Examples:
            >>> Prior.from_weights([3, 1]).probabilities, Prior.from_weights([3, 1]).samples
            (array([0.75, 0.25]), None)
        """
        names, integers = read_count_table(weights, labels)
        return cls._from_integers(integers, names, samples=None)

    @classmethod
    def from_fields(
        cls,
        labels: Annotated[Labels, ContextReference("labels"), Shape("letters")],
        probabilities: Annotated[FloatArray, Shape("letters")],
        counts: Annotated[tuple[int, ...], Shape("letters")] | None = None,
        samples: int | None = None,
    ) -> Prior:
        """Build the prior from a saved file's fields.

        Raises:
            PriorError: they are no prior, or counts, probabilities and samples are not of one law.
        """
        if counts is None:
            return cls(probabilities, labels, samples)
        found = (cls.from_weights if samples is None else cls.from_counts)(counts, labels)
        if samples != found.samples or not np.array_equal(found.probabilities, probabilities):
            raise PriorError("the counts are not those of the probabilities and the sample")
        return found

    @classmethod
    def _from_integers(cls, counts: tuple[int, ...], labels: Labels, samples: int | None) -> Prior:
        """Build a prior proportional to integer counts."""
        for label, count in zip(labels, counts, strict=True):
            if count == 0:
                raise PriorError(
                    f"the letter {label!r} has count 0, it was not seen: leave it out or add a pseudo-count, "
                    "but then the counts are no sample and no promise over the sample holds (confidence sets "
                    "take counts of 0, beside another prior: at the shell --prior FILE with --counts FILE)"
                )
        total = sum(counts)
        probabilities = np.array([count / total for count in counts])
        _check_min_probability(labels, probabilities)
        return cls._from_checked_parts(probabilities, labels, samples, counts)

    @classmethod
    def _from_checked_parts(
        cls,
        probabilities: FloatArray,
        labels: Labels,
        samples: int | None,
        counts: tuple[int, ...] | None,
    ) -> Prior:
        """Build a prior from validated parts."""
        probabilities.setflags(write=False)
        prior = cls.__new__(cls)
        vars(prior).update(
            probabilities=probabilities, labels=labels, samples=samples, counts=counts
        )
        return prior

    def __len__(self) -> int:
        """N, the number of letters."""
        return len(self.probabilities)

    @property
    def size(self) -> int:
        """Return the number of letters N."""
        return len(self.probabilities)

    @cached_property
    def pmf(self) -> FloatArray:
        """Return the (N,) probabilities, normalized to sum one.

        This is the distribution that every measure, bound and exact check speaks of.
        """
        found = self.probabilities / math.fsum(self.probabilities)
        found.setflags(write=False)
        return found

    @property
    def max_leakage(self) -> float:
        """Return -log(min p), the largest PML of any mechanism under this prior, in nats.

        Examples:
            >>> round(Prior([0.5, 0.25, 0.25]).max_leakage, 12) == round(math.log(4), 12)
            True
        """
        return -math.log(float(self.pmf.min()))

    @property
    def context(self) -> Context:
        """Return the context for reading and writing records on its letters."""
        return Context(given={"prior": self, "labels": self.labels})

    def __repr__(self) -> str:
        """Return the size, the labels and the sample: the numbers are in `probabilities`."""
        sample = "" if self.samples is None else f", from {self.samples} observations"
        return f"<Prior on {self.size} letters {abbreviate(self.labels)}{sample}>"

    def _repr_html_(self) -> str:
        """Return the probabilities as a notebook shows them."""
        sample = "" if self.samples is None else f", from {self.samples:,} observations"
        return format_table_html(
            f"Prior on {self.size} letters{sample}", ["letter", "probability"], self._format_rows(6)
        )

    def to_pandas(self) -> Any:
        """Return the probabilities as a pandas data frame with one column, letters down.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        index = import_pandas().Index(list(self.labels), tupleize_cols=False, name="letter")
        return import_pandas().DataFrame({"probability": self.probabilities}, index=index)

    def to_latex(self, digits: int = 4) -> str:
        r"""Return the probabilities as a LaTeX table, for the package booktabs.

        Examples:
            >>> print(Prior([0.75, 0.25], ["a", "b"]).to_latex().splitlines()[4])
            a & 0.75 \\
        """
        return format_table_latex(["letter", "probability"], self._format_rows(digits))

    def _format_rows(self, digits: int) -> list[list[str]]:
        """Format labels and probabilities as text rows."""
        pairs = zip(self.labels, self.probabilities, strict=True)
        return [
            [str(label), format_probability(probability, digits)] for label, probability in pairs
        ]

    def plot(self) -> Figure:
        """Plot the probabilities as bars.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        return draw_bars(self.probabilities, self.labels, "probability")

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Return N positive integers exactly proportional to the probabilities.

        Counts are their own weights; floats are dyadic rationals, put over one denominator.

        Examples:
            >>> Prior([0.5, 0.25, 0.25]).weights
            (2, 1, 1)
        """
        if self.counts is not None:
            return self.counts
        return common_integer_ratio(self.probabilities)[0]

    @cached_property
    def integer_weights(self) -> Any:
        """Return the weights as an (N,) object array, for exact arithmetic."""
        found = np.array(self.weights, dtype=object)
        found.setflags(write=False)
        return found

    def reordered(self, labels: Iterable[Label]) -> Prior:
        """Reorder the letters by labels.

        Examples:
            >>> Prior([0.75, 0.25], labels=["a", "b"]).reordered(["b", "a"]).probabilities
            array([0.25, 0.75])
        """
        names = check_labels_of_size(labels, self.size, "the new order", PriorError)
        if isinstance(names, DefaultLabels) and not isinstance(self.labels, DefaultLabels):
            raise PriorError(
                f"the new order has no labels, and the prior has {abbreviate(self.labels)}: give all of them"
            )
        order = indices_of(names, self.labels, "the new order", PriorError)
        counts = None if self.counts is None else tuple(self.counts[i] for i in order)
        return Prior._from_checked_parts(
            self.probabilities[order], select_labels(self.labels, order), self.samples, counts
        )

    def with_labels(self, labels: Iterable[Label]) -> Prior:
        """Return the same prior with other labels, in the order of its letters.

        Examples:
            >>> Prior([0.75, 0.25]).with_labels(["a", "b"]).labels
            ('a', 'b')
        """
        names = check_labels_of_size(labels, self.size, "the new labels", PriorError)
        return Prior._from_checked_parts(self.probabilities, names, self.samples, self.counts)


PriorLike: TypeAlias = Prior | Numbers
"""A prior, or its probabilities, which have the letters 0, 1, ..."""


def as_prior(prior: PriorLike) -> Prior:
    """Convert probabilities to a `Prior`; return a `Prior` unchanged."""
    return prior if isinstance(prior, Prior) else Prior(prior)


def _split_labels(
    data: Any, labels: Iterable[Label] | None, what: str
) -> tuple[Labels | None, Any]:
    """Split data into the labels that they carry, which leave no room for others, and the numbers."""
    found = read_vector(data, what, PriorError)
    if found.axes[0] is not None and labels is not None:
        raise PriorError("the numbers carry their labels already: leave out `labels`")
    return found.axes[0], found.values


def read_count_table(
    counts: Numbers, labels: Iterable[Label] | None = None
) -> tuple[Labels, tuple[int, ...]]:
    """Read labels and integer counts (zeros allowed) of a count table."""
    own, numbers = _split_labels(counts, labels, "the counts")
    values = list(numbers)
    if not values:
        raise PriorError("there are no counts: a prior needs at least one letter")
    names = own or check_labels_of_size(labels, len(values), "the prior's labels", PriorError)
    return names, tuple(
        _check_count(value, f"the count of the letter {label!r}")
        for label, value in zip(names, values, strict=True)
    )


def _check_not_observations(values: Any) -> None:
    """Raise an error for text, truth values, dates or missing values in place of probabilities."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return
    kinds = (str, bool, np.bool_, date, np.datetime64)
    seen = next((value for value in values if isinstance(value, kinds)), None)
    if seen is not None:
        raise PriorError(
            f"the probabilities must be numbers, and {describe_value(seen)} looks like the observation of a "
            "person: take Prior.from_samples, for a column with one for each person"
        )


def _sum_hint(labels: Labels, numbers: FloatArray) -> str:
    """Suggest a remedy for numbers that do not sum to one."""
    if not (numbers == np.rint(numbers)).all() or numbers.min() < 0:
        return "divide them by their sum, or take Prior.from_counts, where they are counts"
    counts = "Prior.from_counts, where they are counts"
    samples = "Prior.from_samples, where each is an "
    samples += "observation of a person"
    numbered = isinstance(labels, DefaultLabels) or labels == tuple(range(len(labels)))
    if numbered and len(np.unique(numbers)) < len(
        numbers
    ):  # a column of codes has no labels, and repeats
        return f"take {counts}, or {samples}"
    return f"take {counts}, or divide them by their sum"


def _check_are_counts(labels: Labels, counts: tuple[int, ...]) -> None:
    """Raise an error for a list of numbers that look like observations rather than counts.

    These are many, repeat, and are smaller than their number; counts of so few people are not useful.
    """
    if not isinstance(labels, DefaultLabels) or len(counts) < 6:
        return
    if 1 < len(set(counts)) < len(counts) and max(counts) < len(counts):
        raise PriorError(
            f"the counts {abbreviate(counts)} have no labels and repeat: if each is the observation of "
            "a person, "
            "take Prior.from_samples; if they are counts, give labels=, one for each"
        )


def _check_boolean_samples(samples: Sequence[Any]) -> None:
    """Raise an error where truth values are mixed with other values.

    To Python True is equal to 1, and they are two letters. Of tuples each part is compared with the
    same part of the others.
    """
    kinds: dict[int, set[type]] = {}
    if not {bool, np.bool_, tuple} & set(map(type, samples)):
        return
    for value in samples:
        for place, part in enumerate(value if isinstance(value, tuple) else (value,)):
            kinds.setdefault(place, set()).add(type(part))
    for found in kinds.values():
        others = sorted(kind.__name__ for kind in found - {bool, np.bool_})
        if others and len(others) < len(found):
            raise PriorError(
                f"the samples mix kinds, truth values and {', '.join(others)}: convert them to one kind, "
                "such as to text"
            )


def _check_min_probability(labels: Labels, probabilities: FloatArray) -> None:
    """Raise a PriorError where the probability of a letter is below `MIN_PROBABILITY`."""
    if probabilities.min() >= MIN_PROBABILITY:
        return
    for label, value in zip(labels, probabilities, strict=True):
        if value < MIN_PROBABILITY:
            raise PriorError(
                f"the letter {label!r} has probability {value}: every letter needs a positive "
                f"probability (of at least {MIN_PROBABILITY}); leave out letters that cannot occur"
            )


def _check_count(value: Any, what: str) -> int:
    """Validate a nonnegative integer count."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise PriorError(f"{what} must be a whole number, not {value!r}")
    if not isinstance(value, int) and not math.isfinite(value):
        raise PriorError(f"{what} must be a whole number, not {value}")
    if value != int(value) or value < 0:
        meant = ": give probabilities to Prior itself" if 0 < value < 1 else ""
        raise PriorError(f"{what} must be a whole number of at least 0, not {value}{meant}")
    return int(value)


def conditional_value_at_risk(weights: FloatArray, values: FloatArray, mass: float) -> FloatArray:
    """Compute each column's conditional value at risk: its mean over the largest `mass`.

    It solves a fractional knapsack. Computed as `c + sum_x w[x] max(v[x] - c, 0) / mass`
    [rockafellar2000optimization], which is at least the mean for every c and equal to it where the largest
    entries have filled the mass. A c that is large on its own drowns digits of the sum, so a few units in its
    last place are added; what remains is the rounding of the sum, which the caller allows for.

    Args:
        weights: (N,) the prior.
        values: (N, M).
        mass: in (0, 1].

    Examples:
        >>> conditional_value_at_risk(
        ...     np.array([0.5, 0.25, 0.25]), np.array([[1.0], [3.0], [2.0]]), 0.5
        ... ).round(12)
        array([2.5])
    """
    edge = find_edges(weights, values, mass)
    rounding = 8 * (len(weights) + 2) * sys.float_info.epsilon * np.abs(edge)
    return np.asarray(edge + weights @ np.maximum(values - edge, 0.0) / mass + rounding)


def find_edges(weights: FloatArray, values: FloatArray, mass: float) -> FloatArray:
    """Find (M,) the entry of each column with which its largest have filled `mass`; else the least one."""
    # sorting goes along memory, and any order of equals will do
    falling = np.negative(values.T, order="C")
    order = falling.argsort(axis=1)
    filled = weights[order].cumsum(axis=1)
    last = np.minimum((filled < mass).sum(axis=1), len(weights) - 1)
    columns = np.arange(len(order))
    return np.asarray(-falling[columns, order[columns, last]])


def max_conditional_value_at_risk(weights: FloatArray, values: FloatArray, mass: float) -> float:
    """Compute the largest conditional value at risk of a column; see `conditional_value_at_risk`.

    Every c of its formula bounds a column from above. Columns of one matrix often have much in common, and a
    column whose bound at the edge of the first one is below what another column has is not sorted. What is
    returned is at least the largest value, and more by no more than the formula adds for rounding.

    Args:
        weights: (N,) the prior.
        values: (N, M).
        mass: in (0, 1].

    Examples:
        >>> values = np.array([[1.0, 0.0], [3.0, 0.5], [2.0, 0.0]])
        >>> round(max_conditional_value_at_risk(np.array([0.5, 0.25, 0.25]), values, 0.5), 12)
        2.5
    """
    block = 64  # columns that are sorted at a time
    # the edge of a column is where its conditional value at risk is the mean of what lies above it
    order = np.argsort(-values[:, 0])
    place = int((np.cumsum(weights[order]) < mass).sum())
    edge = float(values[order[min(place, len(order) - 1)], 0])
    rounding = 8 * (len(weights) + 2) * float(np.finfo(float).eps) * abs(edge)
    above = np.zeros(values.shape[1])
    for rows in iterate_row_blocks(values.shape):
        above += weights[rows] @ np.maximum(values[rows] - edge, 0.0)
    bounds = edge + above / mass + rounding
    falling = np.argsort(-bounds)
    best = -math.inf
    for start in range(0, len(falling), block):
        some = falling[start : start + block]
        if bounds[some[0]] <= best + rounding:
            return max(best, float(bounds[some[0]]))
        best = max(best, float(conditional_value_at_risk(weights, values[:, some], mass).max()))
    return best
