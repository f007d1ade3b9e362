"""Validation of array, label and number arguments, and default labels."""

from __future__ import annotations

import ast
import math
import reprlib
import sys
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.descriptions import describe_position, describe_value, escape_control_characters
from pmlopt.core.frames import find_masked_entry, has_labels
from pmlopt.core.numbers.blocks import is_all_finite, is_frozen, is_large_matrix
from pmlopt.errors import FileFormatError, InputError, PrivacyError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Label = Hashable
Labels = tuple[Label, ...]


class DefaultLabels(tuple[int, ...]):
    """The default labels 0, 1, ..., N-1 of unnamed letters, as a lazy sequence.

    They equal the tuple of the same numbers; only their class states that no one named the letters, so that
    they go with any labels by position, where labels that were given must be the same. The class travels
    with the tuple: through constructors, copies and pickles, and not through slices.

    Examples:
        >>> DefaultLabels(3), DefaultLabels(3) == (0, 1, 2), type(DefaultLabels(3)[:2])
        ((0, 1, 2), True, <class 'tuple'>)
    """

    __slots__ = ()

    def __new__(cls, size: int) -> DefaultLabels:
        """Create the default labels of a size."""
        return super().__new__(cls, range(size))

    def __getnewargs__(self) -> tuple[int]:
        """Return what a copy or a pickle is made from."""
        return (len(self),)


def name_outputs(inputs: tuple[Label, ...], outputs: tuple[Label, ...]) -> tuple[Label, ...]:
    """Name unlabelled outputs y0, y1, ... where the inputs have labels.

    Examples:
        >>> name_outputs((1, 2), DefaultLabels(2)), name_outputs((1, 2), (1, 2))
        (('y0', 'y1'), (1, 2))
    """
    if isinstance(outputs, DefaultLabels) and not isinstance(inputs, DefaultLabels):
        return tuple(f"y{place}" for place in outputs)
    return outputs


_FEW = reprlib.Repr()
_FEW.maxtuple, _FEW.maxstring, _FEW.maxother = 12, 80, 80

SUM_ATOL = 1e-9
"""How far a sum of probabilities may be from one: room for rounding, not for mistakes."""


def copy_float_array(values: Any, ndim: int, what: str, error: type[InputError]) -> FloatArray:
    """Validate values as a finite, nonempty float array, and return a read-only copy.

    Values that carry labels are refused: anyone who knows what they are for puts them in its order, by
    `pmlopt.data.labelled`.
    """
    if not is_plain(values, ndim):
        if has_labels(values):
            raise error(
                f"{what}: the numbers carry labels, and are taken by position: give an array, in order"
            )
        check_unmasked(values, what, error)
    try:
        # the kind first: a conversion to floats would accept text such as "1"
        raw = np.asarray(values)
        if raw.dtype.kind not in "iufO":
            raise TypeError(f"{reprlib.repr(values)} are not")
        # nobody can change an array that is read-only for all: a large one is not copied
        copies = None if is_large_matrix(raw) and is_frozen(raw) else True
        array = np.array(raw, dtype=np.float64, copy=copies)
    except (TypeError, ValueError, OverflowError) as cause:
        raise error(
            f"{what} must be numbers in a regular {ndim}-dimensional array: {cause}"
        ) from None
    if array.ndim != ndim or array.size == 0:
        raise error(
            f"{what} must have {ndim} dimension(s) and at least one entry, not shape {array.shape}"
        )
    if not is_all_finite(array):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise error(
            f"{what} has the entry {array[where]} at {describe_position(where)}: give finite numbers"
        )
    array.setflags(write=False)
    return array


def is_plain(values: Any, ndim: int) -> bool:
    """Return whether values are a plain array or nested list of numbers.

    Examples:
        >>> is_plain([0.5, 1], 1), is_plain([[0.5], [1]], 2), is_plain(["a"], 1), is_plain({"a": 1}, 1)
        (True, True, False, False)
    """
    if type(values) is np.ndarray:
        return bool(values.ndim == ndim and values.dtype.kind in "iuf")
    if type(values) is not list or not values:
        return False
    if ndim > 1:
        return all(map(is_plain, values, repeat(ndim - 1)))
    return set(map(type, values)) <= _NUMBERS


_NUMBERS = {int, float}


def check_unmasked(values: Any, what: str, error: type[InputError]) -> None:
    """Raise an error for masked array entries."""
    place = find_masked_entry(values)
    if place is not None:
        where = describe_position(place) if len(place) in (1, 2) else "one position"
        raise error(
            f"{what}: the entry at {where} is masked, so missing: leave it out, or give every value"
        )


def common_integer_ratio(values: Iterable[float]) -> tuple[tuple[int, ...], int]:
    """Convert floats exactly to integers over a common denominator.

    Examples:
        >>> common_integer_ratio([0.5, 0.75])
        ((2, 3), 4)
    """
    ratios = list(map(float.as_integer_ratio, map(float, values)))
    denominator = max(ratios, key=itemgetter(1))[1]  # all are powers of two
    return tuple([above * (denominator // below) for above, below in ratios]), denominator


def integers_over_common_denominator(table: FloatArray) -> tuple[Any, int]:
    """Convert a float table exactly to integers over a common denominator.

    Examples:
        >>> integers_over_common_denominator(np.array([[0.5, 0.75]]))
        (array([[2, 3]], dtype=object), 4)
    """
    numbers, denominator = common_integer_ratio(table.ravel())
    return np.array(numbers, dtype=object).reshape(table.shape), denominator


def check_probability(delta: float) -> float:
    """Validate a failure probability delta in (0, 1)."""
    return check_in_interval(delta, "(0, 1)", "delta", PrivacyError)


def check_in_interval(
    value: Any, ends: str, what: str, error: type[InputError], hint: str = ""
) -> float:
    """Validate a number in an interval.

    Examples:
        >>> check_in_interval(2, "(0, 2]", "the radius", PrivacyError)
        2.0
        >>> check_in_interval(0.6, "(0, 1/2]", "kappa", PrivacyError)
        Traceback (most recent call last):
        ...
        pmlopt.errors.PrivacyError: kappa is 0.6: give one in (0, 1/2]
    """
    number = check_real(value, what, error)
    low, high = (
        math.inf if end.strip() == "inf" else float(Fraction(end)) for end in ends[1:-1].split(",")
    )
    inside = (
        low < number < high
        or (number == low and ends[0] == "[")
        or (number == high and ends[-1] == "]")
    )
    if not inside:
        raise error(f"{what} is {number:g}: give one in {ends}{hint}")
    return number


def bound_sum_rounding(terms: int, size: float) -> float:
    """Bound the rounding error of a floating-point sum by the number and the sizes of its terms."""
    return 16 * (terms + 8) * sys.float_info.epsilon * size


def check_labels_of_size(
    labels: Iterable[Label] | None, size: int | None, what: str, error: type[InputError]
) -> tuple[Label, ...]:
    """Validate distinct labels of a given number, or return default labels.

    With the size None there are as many as are given.

    Raises:
        InputError: of the class `error`: there are more or fewer labels, one occurs twice, or one cannot be a
            label: it has no hash, or is a NaN, which equals nothing.
    """
    given = DefaultLabels(size or 0) if labels is None else _to_label_tuple(labels, what, error)
    if size is not None and len(given) != size:
        raise error(
            f"{what}: {len(given)} labels for {size} letters; give one label for each letter"
        )
    if isinstance(given, DefaultLabels):
        return given
    if are_plain_labels(given) and len(set(given)) == len(given):
        return given
    # a set: a search in the labels for each of them would be quadratic
    seen: set[Label] = set()
    for label in given:
        _check_label(label, what, error)
        if label in seen:
            raise error(f"{what}: the label {label!r} occurs twice; labels must be distinct")
        seen.add(label)
    return given


def are_plain_labels(labels: Iterable[Label]) -> bool:
    """Return whether labels are all text or whole numbers, of which none needs a look."""
    return set(map(type, labels)) <= {str, int}


def _to_label_tuple(
    labels: Iterable[Label], what: str, error: type[InputError]
) -> tuple[Label, ...]:
    """Convert labels to a tuple of plain Python values."""
    if isinstance(labels, DefaultLabels) or (type(labels) is tuple and are_plain_labels(labels)):
        return labels
    if isinstance(labels, str | bytes):
        raise error(f"{what} must be a sequence of labels, not the one string {labels!r}")
    if isinstance(labels, set | frozenset):
        raise error(f"{what} must be a sequence of labels, not {labels!r}, which has no order")
    if not isinstance(labels, Iterable):
        raise error(f"{what} must be a sequence of labels, not {labels!r}")
    return tuple(_to_plain_label(item) for item in labels)


def _to_plain_label(label: Label) -> Label:
    """Convert numpy scalars in a label to plain values."""
    if type(label) is tuple:
        return tuple(_to_plain_label(part) for part in label)
    return label.item() if isinstance(label, np.generic) else label


def _check_label(label: Label, what: str, error: type[InputError]) -> None:
    """Raise an error for a label that is unhashable, NaN, or not storable."""
    try:
        hash(label)
        strange = _has_nan(label)
    except Exception:  # a user's class may raise anything, and so may objects that imitate numbers
        raise error(f"{what}: {label!r} cannot be a label: use text or numbers") from None
    if strange:
        raise error(f"{what}: {label!r} cannot be a label, for it does not equal itself: use text")
    for part in label if isinstance(label, tuple) else (label,):
        if isinstance(part, Decimal | date | timedelta | bytes):
            raise error(
                f"{what}: {part!r} cannot be a label, since no file keeps it as it is: give text or numbers, "
                "such as str(...) of it, or .astype(str) of its column"
            )


def _has_nan(label: Label) -> bool:
    """Return whether a label contains NaN."""
    if isinstance(label, tuple | frozenset):
        return any(map(_has_nan, label))
    return bool(label != label)


def to_label_array(labels: Sequence[Label]) -> NDArray[Any]:
    """Convert labels to a numeric array where exact, else to an object array."""
    kinds = {type(label) for label in labels}
    # mixed kinds would be promoted: 1 and True, or 1 and "1", would become equal
    expected = {int: "i", float: "f", bool: "b"}.get(kinds.pop()) if len(kinds) == 1 else None
    if expected is not None:
        array = np.array(labels)
        if array.dtype.kind == expected:
            return array
    # entry by entry: numpy would make a matrix of labels that are tuples of one length
    objects = np.empty(len(labels), dtype=object)
    for place, label in enumerate(labels):
        objects[place] = label
    return objects


def abbreviate(labels: Sequence[Label]) -> str:
    """Format labels for a message: a few in full, many abbreviated.

    Examples:
        >>> abbreviate(("a", 1)), len(abbreviate(range(1000))) < 100
        ("('a', 1)", True)
    """
    return _FEW.repr(tuple(labels))


def join_words(
    labels: Iterable[Label], most: int = 5, word: str = "and", rest: str = "{} others"
) -> str:
    """Join labels for a sentence, abbreviated with the number of omitted ones.

    Args:
        labels: that are joined.
        most: how many are written, or one more.
        word: before the last.
        rest: what stands for the omitted ones, with a place for their number.

    Examples:
        >>> join_words(["a", "", 3]), join_words(range(9)), join_words(["x", "y"], word="or")
        ("a, '' and 3", '0, 1, 2, 3, 4 and 4 others', 'x or y')
    """
    every = list(labels)
    if not every:
        return "none"
    parts = [escape_control_characters(str(label)) if str(label) else "''" for label in every]
    left = len(parts) - most
    if left > 1:  # a single one takes no more words than its number
        parts = [*parts[:most], rest.format(left)]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def select_labels(labels: tuple[Label, ...], places: Iterable[int]) -> tuple[Label, ...]:
    """Select labels by index; complete default labels stay lazy.

    Examples:
        >>> select_labels(("a", "b", "c"), [2, 0]), type(select_labels(DefaultLabels(2), [0, 1])).__name__
        (('c', 'a'), 'DefaultLabels')
    """
    chosen = tuple(labels[place] for place in places)
    return labels if isinstance(labels, DefaultLabels) and chosen == labels else chosen


def check_nonnegative(
    value: float, what: str, error: type[InputError], most: float = math.inf
) -> float:
    """Validate a finite nonnegative level in nats, of which floats hold the exponential up to `most`."""
    number = check_real(value, what, error)
    if number < 0:
        raise error(f"{what} must be at least 0 nats, not {number}")
    if number > most:
        raise error(f"{what} {number} is past {most:g} nats: no float holds e^epsilon")
    return number


def check_positive(value: Any, what: str, error: type[InputError]) -> float:
    """Validate a finite positive number."""
    number = check_real(value, what, error)
    if number <= 0:
        raise error(f"{what} is {number:g}: give a number above 0")
    return number


def check_real(value: Any, what: str, error: type[InputError]) -> float:
    """Validate a finite number that is neither text nor a truth value."""
    try:
        if isinstance(value, str | bytes | bool | np.bool_):
            raise TypeError
        number = float(value)
    except OverflowError:
        raise error(f"{what} is too large for a float: give a number below 1e308") from None
    except (TypeError, ValueError):
        raise error(f"{what} must be a number, not {describe_value(value)}") from None
    if not math.isfinite(number):
        raise error(f"{what} must be a finite number, not {number}")
    return number


def check_integer(value: Any, what: str, error: type[InputError]) -> int:
    """Validate a positive integer."""
    number = check_real(value, what, error)
    if number != int(number) or number < 1:
        raise error(f"{what} must be a whole number of at least 1, not {value!r}")
    return int(number)


def compute_subset_sums(values: FloatArray) -> FloatArray:
    """Compute the (2^n,) sums over all subsets of n numbers, indexed by bitmask.

    Examples:
        >>> compute_subset_sums(np.array([1.0, 10.0]))
        array([ 0.,  1., 10., 11.])
    """
    # each number doubles the list, so the bits of an index name its subset
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


_PLAIN = (str, int, float)
NUMBER_HEADERS = ("count", "counts", "freq", "number", "probability", "share", "shares")
"""Headers of a last column that holds the number of each tuple of letters before it."""

_TRUTHS = {True: object(), False: object()}
"""Keys of truth values, which in Python are numbers too."""


def make_label_key(label: Label) -> Label:
    """Return a hashable key that distinguishes labels by value and type.

    Examples:
        >>> (
        ...     make_label_key(1) == make_label_key(1.0),
        ...     make_label_key(1) == make_label_key(True),
        ...     make_label_key(1) == make_label_key("1"),
        ... )
        (True, False, False)
    """
    if isinstance(label, bool | np.bool_):
        return _TRUTHS[bool(label)]
    return tuple(map(make_label_key, label)) if isinstance(label, tuple) else label


def make_order_key(label: Any) -> tuple[int, Any]:
    """Return a key that orders labels of all kinds: numbers and numeric text, other text, tuples.

    Examples:
        >>> sorted(["b", 10, "9", ("a", 1), None], key=make_order_key)
        ['9', 10, None, 'b', ('a', 1)]
    """
    if isinstance(label, tuple):
        return (2, tuple(map(make_order_key, label)))
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    text = str(label)
    return (1, text) if math.isnan(number) else (0, (number, isinstance(label, str), text))


def have_same_labels(one: Sequence[Label], other: Sequence[Label]) -> bool:
    """Return whether two sides have equal labels in the same order."""
    return len(one) == len(other) and list(map(make_label_key, one)) == list(
        map(make_label_key, other)
    )


def have_same_label_set(one: Iterable[Label], other: Iterable[Label]) -> bool:
    """Return whether two sides have equal labels in any order."""
    return set(map(make_label_key, one)) == set(map(make_label_key, other))


def indices_of(
    labels: Iterable[Label],
    known: Sequence[Label],
    what: str,
    error: type[InputError],
    *,
    text: bool = False,
) -> list[int]:
    """Look up the index of each label; raise an error for unknown ones.

    Args:
        labels: any, a known one more than once, too.
        known: distinct labels.
        what: the labels are of, for messages.
        error: what is raised.
        text: whether the labels are cells of a text file.

    Raises:
        InputError: of the class `error`: a label is not known, or known ones read alike in a text file.

    Examples:
        >>> indices_of(["b", "a"], ("a", "b"), "the counts", InputError)
        [1, 0]
        >>> indices_of([2, 1], ("1", "2"), "the counts", InputError, text=True)
        [1, 0]
    """
    labels = list(labels)
    places = {make_label_key(label): place for place, label in enumerate(known)}
    if not text and not {bool, np.bool_, tuple} & {type(label) for label in (*labels, *known)}:
        with suppress(KeyError, TypeError):  # the error below names the label
            return [places[label] for label in labels]
    read = {_read_csv_label(label): place for place, label in enumerate(known)} if text else {}
    if text and len(read) < len(known):
        raise error(
            f"two of {abbreviate(tuple(known))} read alike, and the labels of {what} are text"
        )
    # a tuple in one cell
    read.update({str(label): place for place, label in enumerate(known) if text})
    found: dict[Any, int] = {}

    def index_of(label: Label) -> int:
        place = read.get(_read_csv_label(label)) if text else None
        return place if place is not None else places[make_label_key(label)]

    result = []
    for label in labels:
        try:
            if isinstance(label, tuple):  # (1,) and (True,) are equal to Python
                result.append(index_of(label))
                continue
            token = type(label), label
            place = found.get(token)
            if place is None:
                place = found[token] = index_of(label)
            result.append(place)
        except (KeyError, TypeError):
            raise error(f"{what}: {label!r} is none of {abbreviate(tuple(known))}") from None
    return result


def _read_csv_label(label: Label) -> Label:
    """Convert a label to the value that a CSV file restores."""
    return tuple(map(_read_csv_label, label)) if isinstance(label, tuple) else str(label)


def parse_labels(texts: Sequence[str]) -> tuple[Label, ...]:
    """Parse labels from CSV cells: numbers or tuples where all are, else text.

    An empty cell, the letter for missing ones, stays text beside numbers. The parts of a tuple are text,
    numbers or tuples again. A cell `nan` is text, for no label may differ from itself; and so are all where
    two of them write one number differently.

    Examples:
        >>> parse_labels(["1", "2.5"]), parse_labels(["01", "2"]), parse_labels(["1", "a"])
        ((1, 2.5), ('01', '2'), ('1', 'a'))
        >>> parse_labels(["1", "2", ""]), parse_labels(["1", "1.0"])
        ((1, 2, ''), ('1', '1.0'))
        >>> parse_labels(["('no', 1)", "('yes', 2)"])
        (('no', 1), ('yes', 2))
    """
    numbers = [_parse_number(text) if text else text for text in texts]
    if any(texts) and None not in numbers and len(set(numbers)) == len(set(texts)):
        return tuple(numbers)
    # all or none: a column of which one cell is no tuple is text throughout
    tuples = [_parse_tuple(text) for text in texts]
    return tuple(texts) if None in tuples else tuple(tuples)


def _parse_number(text: str) -> int | float | None:
    """Parse a number that is written as Python writes it; None for other text, and for nan."""
    for kind in (int, float):
        try:
            number: int | float = kind(text)
        except ValueError:
            continue
        if str(number) == text and number == number:
            return number
    return None


def _parse_tuple(text: str) -> tuple[Label, ...] | None:
    """Parse a tuple written as Python text; None for other text."""
    if not (text.startswith("(") and text.endswith(")")):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return (
        value if isinstance(value, tuple) and _is_storable(value) and repr(value) == text else None
    )


def check_csv_labels(*sides: tuple[Label, ...]) -> None:
    """Raise an error for labels that do not survive a CSV round trip."""
    for labels in sides:
        # written and read once here, before a file is made from which labels come back changed
        texts = [str(label) for label in labels]
        back = parse_labels(texts)
        if list(map(type, back)) != list(map(type, labels)) or back != labels:
            raise FileFormatError(
                f"a CSV file would give the labels {abbreviate(labels)} back as {abbreviate(back)}: save as "
                ".json or .npz, or use labels that are all text, all numbers, or all tuples of these"
            )


def check_json_labels(labels: Iterable[Label]) -> None:
    """Raise an error for labels that JSON cannot represent."""
    for label in labels:
        if not _is_storable(label):
            raise FileFormatError(
                f"the label {label!r} cannot be written: give text or numbers, or tuples of these"
            )


def _is_storable(label: Label) -> bool:
    """Return whether a label can be stored in JSON: text, a number or a tuple of these."""
    if isinstance(label, tuple):
        return all(map(_is_storable, label))
    return isinstance(label, _PLAIN)


MAX_EXPONENT = 700.0
"""The largest level in nats whose exponential is used as a float; floats overflow from 709.8 on."""

GRID_DENOMINATOR = 2**53
"""The common denominator of an exported matrix: k / GRID is a float for every k from 0 to GRID."""
