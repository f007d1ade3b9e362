"""Frames and series of any library through narwhals, and their missing cells."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from pmlopt.core.declared_orders import find_declared_orders
from pmlopt.core.lazy_imports import import_optional, is_installed
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.errors import InputError

Missing: TypeAlias = Literal["refuse", "drop", "letter"]
"""What becomes of a row with a missing cell: an error, no row, or the letter `MISSING_LETTER`."""

MISSING_LETTER = ""
"""The letter of a missing cell: the empty text, as it is in a CSV file."""


@light_dataclass(frozen=True)
class MissingKind:
    """A missing cell of a kind, such as Stata's `.a`, or an answer that SPSS declares as missing.

    Attributes:
        letter: that it is with `missing="letter"`.
        name: in messages.
    """

    letter: Any
    name: str


def is_absent(value: Any) -> bool:
    """Return whether a value of an encoded column is that of a missing cell, of any kind.

    Examples:
        >>> is_absent(None), is_absent(MissingKind(9, "9 (refused)")), is_absent(9)
        (True, True, False)
    """
    return value is None or isinstance(value, MissingKind)


_PLAIN = (
    str,
    bytes,
    bool,
    int,
    float,
    complex,
    list,
    tuple,
    set,
    frozenset,
    range,
    Mapping,
    np.ndarray,
    np.generic,
)
"""What holds no frame: narwhals need not be tried, nor imported."""


_FRAME_PACKAGES = {
    "dask",
    "duckdb",
    "ibis",
    "modin",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "sqlframe",
}
"""The packages whose frames and series are read through narwhals."""

_NUMBERS = {int, float, str, bool, np.float64, np.int64}
"""Types that have no parts, for a quick look at long lists."""


def to_narwhals(data: Any, *, lazy: bool = False) -> Any:
    """Wrap a frame or series of any library in narwhals; None for other data.

    A frame that an engine (Polars, DuckDB, Dask, Spark) has not computed is, unless it may be `lazy`.

    Raises:
        InputError: two columns have one name.

    Examples:
        >>> import pyarrow
        >>> to_narwhals(pyarrow.table({"a": [1]})).columns, to_narwhals([1, 2])
        (['a'], None)
    """
    if data is None or isinstance(data, _PLAIN) or type(data).__module__.startswith("pmlopt."):
        return None
    package = type(data).__module__.partition(".")[0]
    if package not in _FRAME_PACKAGES and not is_installed("narwhals"):
        return None
    narwhals = import_optional("narwhals", f"frames and series of {package}")
    try:
        # what is wrapped already may be of an older interface, whose types say less
        native = narwhals.to_native(data, pass_through=True)
        found = narwhals.from_native(_convert_arrow(native), allow_series=True, pass_through=True)
        if isinstance(found, narwhals.LazyFrame):
            return found if lazy else collect_frame(found)
        if isinstance(found, narwhals.DataFrame) and len(set(found.columns)) < len(found.columns):
            raise narwhals.exceptions.DuplicateError(str(found.columns))
    except narwhals.exceptions.DuplicateError as cause:
        raise InputError(
            f"the table has more than one column of one name: rename them ({cause})"
        ) from None
    return found if isinstance(found, narwhals.DataFrame | narwhals.Series) else None


def collect_frame(frame: Any) -> Any:
    """Compute a lazy frame; Polars and Dask keep their own, since Arrow has not all of their types.

    Python objects stay objects: Arrow has their addresses, or fails.

    Raises:
        InputError: the engine cannot compute it.
    """
    with engine_errors():
        keeps_own = frame.implementation.is_polars() or frame.implementation.is_dask()
        return frame.collect(None if keeps_own else "pyarrow")


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise the errors of an engine (Polars, DuckDB, Dask, Spark) as `InputError`."""
    try:
        yield
    except Exception as cause:
        package = type(cause).__module__.partition(".")[0].lstrip("_")
        if package not in _FRAME_PACKAGES:
            raise
        raise InputError(f"the table cannot be computed by {package}: {cause}") from None


def _convert_arrow(data: Any) -> Any:
    """Convert Arrow batches, `value_counts` pairs or columns to a table."""
    if type(data).__module__.partition(".")[0] != "pyarrow":
        return data
    import pyarrow

    if isinstance(data, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([data])
    if isinstance(data, pyarrow.StructArray):
        return pyarrow.Table.from_struct_array(data)
    return pyarrow.chunked_array([data]) if isinstance(data, pyarrow.Array) else data


def is_lazy(found: Any) -> bool:
    """Return whether a narwhals frame is lazy."""
    return hasattr(found, "collect")


def is_frame(found: Any) -> bool:
    """Return whether a narwhals object is a frame."""
    return hasattr(found, "columns")


def get_pandas_index(found: Any) -> Any:
    """Return a pandas index; None for other libraries."""
    # loaded, for it has wrapped the object
    return sys.modules["narwhals"].maybe_get_index(found)


def get_row_names(found: Any) -> list[Any] | None:
    """Return non-default pandas row names; None without any."""
    index = get_pandas_index(found)
    return None if index is None or _is_default_index(index) else to_plain_list(index)


def get_column_names(found: Any) -> list[Any] | None:
    """Return a frame's column names; None for pandas' default numbers."""
    native = found.to_native()
    if _is_default_index(getattr(native, "columns", None)):
        return None
    return list(map(_to_plain_value, found.columns))


def _is_default_index(index: Any) -> bool:
    """Return whether a pandas index is the default one."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step, index.name) == (
        0,
        1,
        None,
    )


class FrameParts(NamedTuple):
    """A frame or series as plain lists; the orders are the declared ones of the names and of each column."""

    names: list[Any] | None
    header: list[str]
    columns: list[list[Any]]
    orders: list[tuple[Any, ...] | None]


def read_frame(data: Any) -> FrameParts | None:
    """Read a frame or series of any library as plain lists; None for other data.

    Examples:
        >>> import pandas
        >>> read_frame(pandas.Series([3, 1], ["b", "a"]))
        FrameParts(names=['b', 'a'], header=[], columns=[[3, 1]], orders=[None, None])
    """
    found = to_narwhals(data)
    if found is None:
        return None
    header = list(found.columns) if is_frame(found) else []
    orders = find_declared_orders([get_pandas_index(found), *_get_series(found)])
    return FrameParts(get_row_names(found), header, list_columns(found), orders)


def list_columns(found: Any) -> list[list[Any]]:
    """Return the columns of a narwhals frame as lists of plain values; of a series its only one."""
    return list(map(to_plain_list, _get_series(found)))


def find_column_orders(data: Any) -> list[tuple[Any, ...] | None]:
    """Return the declared order of each column of a frame, or of the one column that is given."""
    found = to_narwhals(data)
    return find_declared_orders([data] if found is None else _get_series(found))


def _get_series(found: Any) -> list[Any]:
    """Return the columns of a narwhals frame, or the series that it is."""
    return [found[:, place] for place in range(found.shape[1])] if is_frame(found) else [found]


def has_labels(data: Any) -> bool:
    """Return whether data have row or column names.

    Examples:
        >>> import pandas
        >>> has_labels(pandas.Series([1, 2])), has_labels(pandas.Series([1, 2], ["a", "b"]))
        (False, True)
    """
    found = to_narwhals(data)
    if found is None:
        return isinstance(data, Mapping)
    return get_row_names(found) is not None or (
        is_frame(found) and get_column_names(found) is not None
    )


def to_plain_list(values: Iterable[Any]) -> list[Any]:
    """Convert an array, series or iterable to a list of plain values.

    Examples:
        >>> to_plain_list(np.array([1, 2])), to_plain_list(iter("ab"))
        ([1, 2], ['a', 'b'])
    """
    methods = ("to_pylist", "to_list", "tolist")  # Arrow; pandas and Polars; numpy
    method = next((one for one in methods if hasattr(values, one)), None)
    listed: Any = values if method is None else getattr(values, method)()
    found = list(listed) if method is None or isinstance(listed, list) else [listed]
    if any(issubclass(kind, np.generic | Decimal) for kind in set(map(type, found))):
        return [_to_plain_value(value) for value in found]
    return found


def _to_plain_value(value: Any) -> Any:
    """Convert a numpy scalar to a plain value."""
    return to_integer(value.item() if isinstance(value, np.generic) else value)


def has_wide_integers(column: Any) -> bool:
    """Return whether a series holds integers of 128 bits, which neither numpy nor Arrow has."""
    return str(getattr(column, "dtype", None)) in ("Int128", "UInt128")


def to_integer(value: Any) -> Any:
    """Convert a decimal without a fraction to an integer; return other values as they are.

    Databases have whole numbers as decimals: sums, and integers of 128 bits.

    Examples:
        >>> to_integer(Decimal("3.00")), to_integer(Decimal("3.50")), to_integer("3.00")
        (3, Decimal('3.50'), '3.00')
    """
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or pandas' NA or NaT.

    Examples:
        >>> is_missing(None), is_missing(float("nan")), is_missing("")
        (True, True, False)
    """
    if value is None or type(value).__name__ in ("NAType", "MaskedConstant"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def list_missing(values: Iterable[Any]) -> list[int]:
    """Return the positions of missing values."""
    found = list(values)
    if set(map(type, found)) <= {str, int, bool}:
        return []
    return [place for place, value in enumerate(found) if is_missing(value)]


def is_masked_array(value: object) -> bool:
    """Return whether a value is an array of numpy with masked entries, or the constant `numpy.ma.masked`.

    Where `numpy.ma` is not loaded there are none, and it is not loaded to find that out: it takes a while.
    """
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)


def find_masked_entry(values: Any) -> tuple[int, ...] | None:
    """Return the index of the first masked entry; None without one.

    Lists and tuples are searched for such arrays, and for the constant `numpy.ma.masked`. What
    lies below a mask is no value: a fill value, or one that is to be kept back.

    Examples:
        >>> (
        ...     find_masked_entry(np.ma.masked_array([[1, 2], [3, 4]], [[0, 0], [1, 0]])),
        ...     find_masked_entry([1, 2]),
        ... )
        ((1, 0), None)
    """
    if is_masked_array(values):
        places = np.argwhere(np.ma.getmaskarray(values))
        return tuple(int(place) for place in places[0]) if len(places) else None
    if not isinstance(values, list | tuple) or set(map(type, values)) <= _NUMBERS:
        return None
    for place, value in enumerate(values):
        if isinstance(value, list | tuple) or is_masked_array(value):
            inner = find_masked_entry(value)
            if inner is not None:
                return (place, *inner)
    return None


def check_missing(missing: object, error: type[InputError] = InputError) -> None:
    """Raise an error for an invalid missing-cell policy."""
    if missing not in get_args(Missing):
        raise error(
            f"missing={missing!r} is not known: give one of {', '.join(map(repr, get_args(Missing)))}"
        )
