"""Arrow arrays of files: places beyond their bytes, and text that is not UTF-8."""

from __future__ import annotations

from typing import Any

from pmlopt.core.lazy_imports import pyarrow
from pmlopt.errors import FileFormatError


def without_text_views(column: Any) -> Any:
    """Return a dictionary-encoded array whose values are no views, which Arrow does not decode."""
    plain = {
        pyarrow.string_view(): pyarrow.large_string(),
        pyarrow.binary_view(): pyarrow.large_binary(),
    }.get(column.type.value_type)
    return column if plain is None else column.cast(pyarrow.dictionary(pyarrow.int32(), plain))


def check_places(batch: Any) -> Any:
    """Return a batch of an Arrow file whose offsets and indices stay within its bytes.

    Arrow maps such a file as it is: what it computes of others ends the process. Text is not looked at, see
    `check_text`.

    Raises:
        pyarrow.ArrowInvalid: some do not.
    """
    batch.validate()
    for column in batch.columns:
        column.view(_with_bytes_for_text(column.type)).validate(full=True)
    return batch


def _with_bytes_for_text(kind: Any) -> Any:
    """Return a type of Arrow with bytes where it has text, as a view of the same data."""
    types = pyarrow.types
    change = _with_bytes_for_text
    plain = {
        pyarrow.string(): pyarrow.binary(),
        pyarrow.large_string(): pyarrow.large_binary(),
        pyarrow.string_view(): pyarrow.binary_view(),
    }
    if kind in plain:
        return plain[kind]
    if types.is_dictionary(kind):
        return pyarrow.dictionary(kind.index_type, change(kind.value_type), kind.ordered)
    if types.is_struct(kind):
        return pyarrow.struct([field.with_type(change(field.type)) for field in kind])
    if types.is_map(kind):
        return pyarrow.map_(change(kind.key_type), change(kind.item_type))
    for is_list, build in (
        (types.is_list, pyarrow.list_),
        (types.is_large_list, pyarrow.large_list),
    ):
        if is_list(kind):
            return build(kind.value_field.with_type(change(kind.value_type)))
    return kind


def encode_text_codes(column: Any) -> Any:
    """Encode a dictionary-encoded array of text again, by its codes; None for others.

    The values are those that occur, in the order in which they do, as of an array without a dictionary.
    """
    if not isinstance(column, pyarrow.DictionaryArray) or not is_plain_text(column.type.value_type):
        return None
    known = column.dictionary
    if known.null_count or len(known.unique()) < len(known):
        return None
    codes = column.indices.dictionary_encode(null_encoding="encode")
    return pyarrow.DictionaryArray.from_arrays(codes.indices, known.take(codes.dictionary))


def is_plain_text(kind: Any) -> bool:
    """Return whether an Arrow type is text that is no view."""
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


def check_text(column: Any, name: object, where: object, first: int) -> None:
    """Raise an error where a column has text that is not UTF-8.

    Args:
        column: an array of Arrow, some rows of the column.
        name: of the column.
        where: the table, for messages.
        first: the number of the first row, as messages count them.

    Raises:
        FileFormatError: a cell, or a part of one, is text that is not UTF-8.
    """
    if not _may_hold_text(column.type):
        return
    if pyarrow.types.is_dictionary(column.type):
        # a value that no row has does not matter
        column = without_text_views(column).dictionary_decode()
    if _is_valid(column):
        return
    # a half that has no such cell is valid on its own
    low = 0
    high = len(column)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if not _is_valid(_take_rows(column, low, middle)) else (middle, high)
        )
    raise FileFormatError(
        f"{where}: row {first + low}: the cell of {name!r} is text that is not UTF-8, as Parquet and Arrow "
        "files have it: write the file again with this column decoded by its encoding, such as cp1252, or "
        "leave the column out"
    )


def _may_hold_text(kind: Any) -> bool:
    """Return whether an Arrow type may contain text."""
    types = pyarrow.types
    return bool(
        is_plain_text(kind)
        or types.is_string_view(kind)
        or types.is_dictionary(kind)
        or types.is_nested(kind)
    )


def _is_valid(column: Any) -> bool:
    """Return whether all text of an array is valid UTF-8."""
    try:
        column.validate(full=True)
    except pyarrow.ArrowInvalid as cause:
        return "UTF8" not in str(cause).upper().replace("-", "")
    return True


def _take_rows(column: Any, low: int, high: int) -> Any:
    """Copy some rows, without data of the others."""
    return column.take(pyarrow.array(range(low, high), pyarrow.int64()))
