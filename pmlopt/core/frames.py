"""Frames and series of other libraries as one kind, through narwhals, and their missing cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pmlopt.core.lazy_imports import import_optional
from pmlopt.errors import InputError

Missing: TypeAlias = Literal["refuse", "drop", "letter"]
"""What becomes of a row with a missing cell: an error, no row, or the letter `MISSING_LETTER`."""

MISSING_LETTER = ""
"""The letter of a missing cell: the empty text, as it is in a CSV file."""

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
    """Return the narwhals frame or series over data of another library; None for anything else.

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
    if package not in _FRAME_PACKAGES and find_spec("narwhals") is None:
        return None
    narwhals = import_optional("narwhals", f"frames and series of {package}")
    try:
        found = narwhals.from_native(_convert_arrow(data), allow_series=True, pass_through=True)
        if isinstance(found, narwhals.LazyFrame):
            return found if lazy else found.collect()
        if isinstance(found, narwhals.DataFrame) and len(set(found.columns)) < len(found.columns):
            raise narwhals.exceptions.DuplicateError(str(found.columns))
    except narwhals.exceptions.DuplicateError as cause:
        raise InputError(
            f"the table has more than one column of one name: rename them ({cause})"
        ) from None
    return found if isinstance(found, narwhals.DataFrame | narwhals.Series) else None


def _convert_arrow(data: Any) -> Any:
    """Return a table of record batches or of the pairs of `value_counts`, and a column of an Arrow array."""
    if type(data).__module__.partition(".")[0] != "pyarrow":
        return data
    import pyarrow

    if isinstance(data, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([data])
    if isinstance(data, pyarrow.StructArray):
        return pyarrow.Table.from_struct_array(data)
    return pyarrow.chunked_array([data]) if isinstance(data, pyarrow.Array) else data


def is_lazy(found: Any) -> bool:
    """Return whether what `to_narwhals` returned is a frame that an engine has not computed."""
    return hasattr(found, "collect")


def is_frame(found: Any) -> bool:
    """Return whether what `to_narwhals` returned has columns."""
    return hasattr(found, "columns")


def get_pandas_index(found: Any) -> Any:
    """Return the index of a frame or a series of pandas; None for those of others."""
    narwhals = import_optional("narwhals", "frames and series")

    return narwhals.maybe_get_index(found)


def get_row_names(found: Any) -> list[Any] | None:
    """Return the index of a pandas frame or series; None for none, and for the default numbers."""
    index = get_pandas_index(found)
    return None if index is None or _is_default_index(index) else to_plain_list(index)


def get_column_names(found: Any) -> list[Any] | None:
    """Return the names of a frame's columns; None for the default numbers of pandas."""
    native = found.to_native()
    return (
        None
        if _is_default_index(getattr(native, "columns", None))
        else list(map(_to_plain_value, found.columns))
    )


def _is_default_index(index: Any) -> bool:
    """Return whether an index of pandas is the one that it gives to rows without names."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step, index.name) == (
        0,
        1,
        None,
    )


def has_labels(data: Any) -> bool:
    """Return whether data name their rows or their columns.

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
    """Return the values of an array, a series or any iterable, as plain Python objects.

    Examples:
        >>> to_plain_list(np.array([1, 2])), to_plain_list(iter("ab"))
        ([1, 2], ['a', 'b'])
    """
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow; pandas and Polars; numpy
        if hasattr(values, method):
            found = getattr(values, method)()
            return found if isinstance(found, list) else [found]
    return [_to_plain_value(value) for value in values]


def _to_plain_value(value: Any) -> Any:
    """Return a numpy scalar as a plain Python value, and other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Return whether a value means a missing one: None, NaN, or the NA and NaT of pandas.

    Examples:
        >>> is_missing(None), is_missing(float("nan")), is_missing("")
        (True, True, False)
    """
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def find_masked_entry(values: Any) -> tuple[int, ...] | None:
    """Return where the first masked entry of an array of `numpy.ma` is; None where there is none.

    Lists and tuples are searched for such arrays, and for the constant `numpy.ma.masked`. What
    lies below a mask is no value: a fill value, or one that is to be kept back.

    Examples:
        >>> (
        ...     find_masked_entry(np.ma.masked_array([[1, 2], [3, 4]], [[0, 0], [1, 0]])),
        ...     find_masked_entry([1, 2]),
        ... )
        ((1, 0), None)
    """
    if isinstance(values, np.ma.MaskedArray):
        places = np.argwhere(np.ma.getmaskarray(values))
        return tuple(int(place) for place in places[0]) if len(places) else None
    if not isinstance(values, list | tuple) or set(map(type, values)) <= _NUMBERS:
        return None
    for place, value in enumerate(values):
        if isinstance(value, list | tuple | np.ma.MaskedArray):
            inner = find_masked_entry(value)
            if inner is not None:
                return (place, *inner)
    return None


def check_missing(missing: object, error: type[InputError] = InputError) -> None:
    """Raise for a value that is no way to deal with a missing cell."""
    if missing not in get_args(Missing):
        raise error(
            f"missing={missing!r} is not known: give one of {', '.join(map(repr, get_args(Missing)))}"
        )
