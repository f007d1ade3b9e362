"""A scikit-learn transformer that releases columns through optimal mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.declared_orders import make_rank
from pmlopt.core.frames import find_column_orders
from pmlopt.core.lazy_imports import require_extra
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import InputError
from pmlopt.model.privacy import PML
from pmlopt.model.utility import ExpectedLoss, absolute, hamming
from pmlopt.programs.designs import design
from pmlopt.programs.solving import solve

with require_extra("this transformer needs scikit-learn", "sklearn"):
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data


class PrivateColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Release each column through its optimal mechanism within epsilon-PML.

    `fit` takes the law of each column from the data: its values, in the order that a frame declares, or,
    where these are numbers and more than `max_letters`, the middles of bins of about equal probability.
    `transform` draws a value for each entry, independently; a number that is none of the values is replaced
    by the nearest one.

    What is promised is about each column separately, under the law that was fitted: an outcome leaks at most
    epsilon nats about the entry that it was drawn for. Columns that depend on each other reveal more
    together: see `attribute_levels`.

    Args:
        epsilon: the PML level of each column, in nats.
        max_letters: the number of letters of a column of numbers.
        random_state: None draws from the system's randomness. A number repeats the draws: for tests only.
        handle_unknown: what `transform` makes of a text that was not fitted: "error", or "most_frequent", the
            letter that was seen most, whose row of the mechanism reveals no more of it.

    Attributes:
        mechanisms_: the mechanism of each column.
        most_frequent_: the letter of each column that was seen most.
        levels_: (d,) its level, recomputed from its matrix, in nats.

    Raises:
        InputError: a column of text has a value that was not fitted, `max_letters` is not positive, or
            `handle_unknown` is not known.

    Examples:
        >>> import numpy as np
        >>> ages = np.array([[1], [1], [2], [2], [2], [3], [4], [4]])
        >>> private = PrivateColumns(epsilon=0.5).fit(ages)
        >>> bool(private.levels_[0] <= 0.5), private.mechanisms_[0].inputs
        (True, (1, 2, 3, 4))
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        max_letters: int = 16,
        random_state: Any = None,
        handle_unknown: str = "error",
    ) -> None:
        self.epsilon = epsilon
        self.max_letters = max_letters
        self.random_state = random_state
        self.handle_unknown = handle_unknown

    def fit(self, X: Any, y: Any = None) -> PrivateColumns:
        """Design a mechanism for each column.

        Args:
            X: (n, d) numbers or text.
            y: not used.
        """
        if not isinstance(self.max_letters, int | np.integer) or self.max_letters < 1:
            raise InputError(f"`max_letters` is {self.max_letters!r}: give a positive whole number")
        if self.handle_unknown not in ("error", "most_frequent"):
            raise InputError(
                f"`handle_unknown` is {self.handle_unknown!r}: give 'error' or 'most_frequent'"
            )
        # dtype=None: a conversion to floats would join letters that differ beyond 2^53
        table = validate_data(self, _with_exact_integers(X), dtype=None)
        requirement = PML(self.epsilon)
        self.mechanisms_ = []
        self.most_frequent_: list[Any] = []
        levels = []
        orders = find_column_orders(X)
        orders = orders if len(orders) == table.shape[1] else [None] * table.shape[1]
        for column, order in zip(table.T, orders, strict=True):
            values = _to_plain_column(column)
            prior = _count_values(values, self.max_letters, order)
            loss = absolute if _is_numeric(values) else hamming
            result = solve(design(prior, requirement, ExpectedLoss(loss)))
            self.mechanisms_.append(result.mechanism)
            self.most_frequent_.append(prior.labels[int(prior.pmf.argmax())])
            levels.append(result.level)
        self.levels_ = np.array(levels)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Release each entry through its column's mechanism.

        Args:
            X: (n, d) numbers or text, columns as they were fitted.
        """
        check_is_fitted(self)
        table = validate_data(self, _with_exact_integers(X), dtype=None, reset=False)
        seeds = None if self.random_state is None else check_random_state(self.random_state)
        outputs = [
            _cast_integers(_to_exact_array(mechanism.outputs), table.dtype)
            for mechanism in self.mechanisms_
        ]
        released: NDArray[Any] = np.empty(table.shape, np.result_type(table, *outputs))
        for place, (mechanism, column) in enumerate(zip(self.mechanisms_, table.T, strict=True)):
            # a seed for each column: the same draws in two columns would depend on each other
            seed = None if seeds is None else int(seeds.randint(2**31))
            letters = _match_letters(mechanism, _to_plain_column(column))
            if self.handle_unknown == "most_frequent":
                known = set(mechanism.inputs)
                letters = [one if one in known else self.most_frequent_[place] for one in letters]
            released[:, place] = mechanism.sample(letters, seed=seed)
        return released

    def __sklearn_tags__(self) -> Any:
        """Return the estimator tags: text input, non-deterministic output."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.non_deterministic = True
        return tags


def _with_exact_integers(X: Any) -> Any:
    """Convert columns whose integers would lose digits as floats to objects.

    A frame of int64 and uint64 columns would become one of float64, which loses digits from 2^53 on.
    """
    kinds = getattr(X, "dtypes", None)
    if kinds is None or not hasattr(X, "astype"):
        return X
    integers = [kind for kind in kinds if getattr(kind, "kind", "O") in "iu"]
    if len(integers) < len(list(kinds)) or not all(isinstance(kind, np.dtype) for kind in integers):
        return X
    return X if np.result_type(*integers).kind in "iu" else X.astype(object)


def _cast_integers(values: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    """Cast integers to another integer type where exact."""
    if not (values.dtype.kind in "iu" and kind.kind in "iu"):
        return values
    # compared as Python integers, since a comparison of numpy types may round
    limits = np.iinfo(kind)
    fits = int(limits.min) <= int(values.min()) and int(values.max()) <= int(limits.max)
    return values.astype(kind) if fits else values


def _to_plain_column(column: NDArray[Any]) -> NDArray[Any]:
    """Convert an object column to numbers, booleans or text where uniform.

    Raises:
        InputError: its values are of kinds that numpy would turn into one, such as `1` and `"1"`, or no array
            holds them as they are.
    """
    if column.dtype != object:
        return column
    values = column.tolist()
    kinds = {_kind_of(value) for value in values}
    found = _to_exact_array(values) if len(kinds) == 1 else None
    if found is None or found.dtype == object or found.tolist() != values:
        names = ", ".join(sorted({type(value).__name__ for value in values}))
        raise InputError(
            f"a column holds values of the kinds {names}, or numbers that no array holds as they are: "
            "convert it to one kind, text or numbers"
        )
    return found


def _to_exact_array(values: Sequence[Any]) -> NDArray[Any]:
    """Convert values to an array without rounding 64-bit integers."""
    if all(type(value) is int for value in values) and max(values) >= 2**63 and min(values) >= 0:
        return np.array(values, dtype=np.uint64 if max(values) < 2**64 else object)
    return np.array(values)


def _kind_of(value: Any) -> str:
    """Return the type class of a value for array conversion."""
    if isinstance(value, bool | np.bool_):
        return "truth value"
    if isinstance(value, int | float | np.integer | np.floating):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _is_numeric(values: NDArray[Any]) -> bool:
    """Return whether an array has a numeric data type."""
    return bool(np.issubdtype(values.dtype, np.number))


def _count_values(values: NDArray[Any], most: int, order: Sequence[Any] | None) -> Prior:
    """Count values, or bin centres for too many numbers; in the declared order, or ascending."""
    # sorted, so that the nearest letter can be found by a search
    letters, counts = np.unique(values, return_counts=True)
    if len(letters) > most and _is_numeric(values):
        # bins of about equal probability: none is a rare letter, which would limit the level
        edges = np.quantile(values, np.linspace(0, 1, most + 1)[1:-1])
        bins = np.searchsorted(edges, values, side="right")
        middles = [_exact_median(values[bins == place]) for place in np.unique(bins)]
        # the law of what `transform` hands to the mechanism: a middle may be nearest to values of another bin
        letters, counts = np.unique(
            _round_to_letters(np.unique(middles), values), return_counts=True
        )
    found = dict(zip(letters.tolist(), counts.tolist(), strict=True))
    labels = sorted(found, key=make_rank(found, order))
    return Prior.from_counts([found[label] for label in labels], labels)


def _exact_median(values: NDArray[Any]) -> Any:
    """Compute the median without rounding integers."""
    if values.dtype.kind not in "iu":
        return np.median(values).astype(values.dtype)
    # both middle values are summed as Python integers, which do not overflow
    ordered = np.sort(values)
    total = sum(int(ordered[place]) for place in ((len(values) - 1) // 2, len(values) // 2))
    return values.dtype.type(abs(total) // 2 * (1 if total > 0 else -1))  # halves go towards zero


def _match_letters(mechanism: Mechanism, values: NDArray[Any]) -> list[Any]:
    """Map each value to its letter, or the nearest number."""
    letters = np.sort(_to_exact_array(mechanism.inputs))  # a declared order may be another
    found = values
    if _is_numeric(values) and _is_numeric(letters):
        found = _round_to_letters(letters, values)
    return list(found.tolist())


def _round_to_letters(letters: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Round values to the nearest of ascending letters; ties go down."""
    whole = letters.dtype.kind in "iu" and values.dtype.kind in "iu"
    if whole:  # differences are of more bits, and types of other signs would become floats
        far = (
            max(abs(int(end)) for side in (letters, values) for end in (side.min(), side.max()))
            >= 2**62
        )
        kind = object if far else np.int64
        letters = letters.astype(kind)
        values = values.astype(kind)
    above = np.clip(np.searchsorted(letters, values), 1, max(1, len(letters) - 1))
    low = letters[above - 1]
    high = letters[np.minimum(above, len(letters) - 1)]
    nearest = np.where(np.abs(values - low) <= np.abs(high - values), low, high)
    return _to_exact_array(nearest.tolist()) if nearest.dtype == object else np.asarray(nearest)
