"""Rebuilding of columns from their visible cells, without hidden data.

An Arrow array may hold values that no row shows: entries of a dictionary that no row uses, values under a
    null,
rows before and behind a slice, the rest of a buffer that several arrays share, metadata of fields in
structs. A file that is written from such an array has them too. `gather_cells` copies the cells of some rows
and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import compute, pyarrow
from pmlopt.core.numbers.arrays import BoolArray, IntArray
from pmlopt.errors import FileFormatError
from pmlopt.tables.table import integers_to_arrow, to_numpy_integers, to_numpy_type


def get_plain_type(kind: Any, name: str) -> Any:
    """Return the unencoded Arrow type of a column's cells.

    Args:
        kind: the type of the column.
        name: its name, for the message.

    Raises:
        FileFormatError: the cells are of several types (a union).

    Examples:
        >>> import pyarrow
        >>> get_plain_type(pyarrow.list_(pyarrow.dictionary(pyarrow.int8(), pyarrow.string())), "c")
        ListType(list<item: string>)
    """
    if isinstance(kind, pyarrow.BaseExtensionType):
        return get_plain_type(kind.storage_type, name)
    if pyarrow.types.is_dictionary(kind) or pyarrow.types.is_run_end_encoded(kind):
        return get_plain_type(kind.value_type, name)
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([(field.name, get_plain_type(field.type, name)) for field in kind])
    if pyarrow.types.is_map(kind):
        return pyarrow.map_(
            get_plain_type(kind.key_type, name), get_plain_type(kind.item_type, name)
        )
    if pyarrow.types.is_union(kind):
        raise FileFormatError(
            f"the column {name!r} of {kind} mixes types in its cells and cannot be written anew from them: "
            "leave it out by --drop, or convert it to one type"
        )
    if _is_list(kind):
        own = pyarrow.field(kind.value_field.name, get_plain_type(kind.value_type, name))
        if pyarrow.types.is_fixed_size_list(kind):
            return pyarrow.list_(own, kind.list_size)
        is_large = pyarrow.types.is_large_list(kind) or pyarrow.types.is_large_list_view(kind)
        return pyarrow.large_list(own) if is_large else pyarrow.list_(own)
    without_views = {
        pyarrow.string_view(): pyarrow.large_string(),
        pyarrow.binary_view(): pyarrow.large_binary(),
    }
    # milliseconds within a day are no part of a date
    without_views[pyarrow.date64()] = pyarrow.date32()
    return without_views.get(kind, kind)


def is_plain(kind: Any) -> bool:
    """Return whether an Arrow type is unencoded and scalar."""
    return not kind.num_fields and get_plain_type(kind, "") == kind


def gather_cells(array: Any, rows: Any) -> Any:
    """Copy the cells of some rows to an array without hidden data.

    There are zeros under nulls, all NaN have the same bits, and no buffer is shared with the array that is
    read.

    Args:
        array: an array, or a chunked one, of a type that `get_plain_type` takes.
        rows: an Arrow array of their places, whole numbers of 64 bits; null where the row shall be null.

    Returns:
        An array of the type `get_plain_type`.

    Examples:
        >>> import pyarrow
        >>> colors = pyarrow.array(["red", "blue", "green"]).dictionary_encode()
        >>> gather_cells(colors, integers_to_arrow(np.array([1, 1]))).to_pylist()
        ['blue', 'blue']
    """
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pyarrow.ChunkedArray):  # where there is no chunk, or one is not enough
            array = array.chunk(0) if array.num_chunks == 1 else pyarrow.concat_arrays(array.chunks)
    kind = array.type
    if isinstance(kind, pyarrow.BaseExtensionType):
        return gather_cells(array.storage, rows)
    if pyarrow.types.is_dictionary(kind):
        return gather_cells(array.dictionary, array.indices.cast(pyarrow.int64()).take(rows))
    if pyarrow.types.is_run_end_encoded(kind):
        return gather_cells(compute.run_end_decode(array), rows)
    if pyarrow.types.is_struct(kind):
        return _gather_struct(array, rows)
    if pyarrow.types.is_fixed_size_list(kind):
        return _gather_fixed_size_list(array, rows)
    if _is_list(kind) or pyarrow.types.is_map(kind):
        return _gather_list(array, rows)
    plain = get_plain_type(kind, "")
    return _without_hidden_values((array if plain == kind else array.cast(plain)).take(rows))


def gather_all_cells(array: Any) -> Any:
    """Copy all cells of an array, chunked or not, without hidden data."""
    return gather_cells(array, integers_to_arrow(np.arange(len(array), dtype=np.int64)))


def encode_categories(array: Any) -> Any:
    """Encode an array as categories in order of first occurrence."""
    return array.dictionary_encode().cast(_get_dictionary_type(array.type))


def get_category_type(kind: Any, name: str) -> Any:
    """Return the categorical Arrow type of an output column."""
    plain = get_plain_type(kind, name)
    if pyarrow.types.is_dictionary(kind) and not plain.num_fields:
        return _get_dictionary_type(plain)
    return plain


def _get_dictionary_type(plain: Any) -> Any:
    """Return the dictionary type with 32-bit codes for an Arrow type."""
    return plain if pyarrow.types.is_null(plain) else pyarrow.dictionary(pyarrow.int32(), plain)


def is_kind(kind: Any, *names: str) -> bool:
    """Return whether an Arrow type is one of those that `pyarrow.types` names.

    Examples:
        >>> is_kind(pyarrow.int8(), "integer", "floating"), is_kind(pyarrow.int8(), "string")
        (True, False)
    """
    return any(getattr(pyarrow.types, f"is_{name}")(kind) for name in names)


def _is_list(kind: Any) -> bool:
    """Return whether an Arrow type is a list."""
    return is_kind(kind, "list", "large_list", "fixed_size_list", "list_view", "large_list_view")


def _read_numbers(array: Any, dtype: Any) -> NDArray[Any]:
    """Return the (n,) numbers of an array as they are stored, under nulls too."""
    values = np.frombuffer(array.buffers()[1], dtype=dtype)
    return values[array.offset :][: len(array)]


def _read_bits(array: Any) -> BoolArray:
    """Return the (n,) truth values of an array as they are stored, under nulls too."""
    stored = np.frombuffer(array.buffers()[1], dtype=np.uint8)
    bits = np.unpackbits(stored, bitorder="little")
    return bits[array.offset :][: len(array)].astype(bool)


def _get_validity(array: Any) -> BoolArray:
    """Return the (n,) validity mask of an array."""
    return _read_bits(array.is_valid())


def _gather_validity(array: Any, rows: Any) -> BoolArray:
    """Return the (n,) mask of rows that are there, and valid."""
    valid = _get_validity(rows)
    valid[valid] = _get_validity(array)[_to_indices(rows)[valid]]
    return valid


def _make_masked_array(places: IntArray, valid: BoolArray) -> Any:
    """Build an integer Arrow array with nulls from a validity mask."""
    if valid.all():
        return integers_to_arrow(places)
    bitmap = pyarrow.py_buffer(np.packbits(valid, bitorder="little"))
    values = pyarrow.py_buffer(np.where(valid, places, 0))
    return pyarrow.Array.from_buffers(pyarrow.int64(), len(places), [bitmap, values])


def _make_bitmap(valid: BoolArray) -> Any:
    """Encode a validity mask as an Arrow bitmap; None where all are valid."""
    return None if valid.all() else pyarrow.py_buffer(np.packbits(valid, bitorder="little"))


def _to_indices(rows: Any) -> IntArray:
    """Return the (n,) row indices, 0 for null."""
    return _read_numbers(rows.fill_null(0), np.int64)


def _gather_struct(array: Any, rows: Any) -> Any:
    """Copy struct fields of some rows, null where the struct is."""
    valid = _gather_validity(array, rows)
    inner = _make_masked_array(_to_indices(rows), valid)
    children = [gather_cells(array.field(place), inner) for place in range(array.type.num_fields)]
    kind = get_plain_type(array.type, "")
    return pyarrow.Array.from_buffers(kind, len(rows), [_make_bitmap(valid)], children=children)


def _gather_fixed_size_list(array: Any, rows: Any) -> Any:
    """Copy some rows of fixed-size lists."""
    size = array.type.list_size
    valid = _gather_validity(array, rows)
    # `values` begins with those of the first row of the whole buffer, before the slice
    first = (_to_indices(rows) + array.offset) * size
    places = (first[:, None] + np.arange(size)).ravel()
    child = gather_cells(array.values, _make_masked_array(places, np.repeat(valid, size)))
    kind = get_plain_type(array.type, "")
    return pyarrow.Array.from_buffers(kind, len(rows), [_make_bitmap(valid)], children=[child])


def _gather_list(array: Any, rows: Any) -> Any:
    """Copy some rows of variable-size lists or maps."""
    begins, sizes = _get_list_extents(array)
    valid = _gather_validity(array, rows)
    lists = _to_indices(rows)[valid]
    taken = np.zeros(len(rows), dtype=np.int64)
    starts = taken.copy()
    taken[valid] = sizes[lists]
    starts[valid] = begins[lists]
    ends = np.cumsum(taken)
    shifts = np.repeat(starts - (ends - taken), taken)
    places = integers_to_arrow(np.arange(len(shifts), dtype=np.int64) + shifts)
    kind = get_plain_type(array.type, "")
    if pyarrow.types.is_map(kind):
        parts = [gather_cells(one, places) for one in (array.keys, array.items)]
        pairs = pyarrow.struct([kind.key_field, kind.item_field])
        entries = pyarrow.Array.from_buffers(pairs, len(places), [None], children=parts)
    else:
        entries = gather_cells(array.values, places)
    offset_type = np.int64 if pyarrow.types.is_large_list(kind) else np.int32
    offsets = np.append(0, ends).astype(offset_type)
    buffers = [_make_bitmap(valid), pyarrow.py_buffer(offsets)]
    return pyarrow.Array.from_buffers(kind, len(rows), buffers, children=[entries])


def _get_list_extents(array: Any) -> tuple[IntArray, IntArray]:
    """Return the (n,) value offsets and lengths of lists."""
    offsets = to_numpy_integers(array.offsets)
    if pyarrow.types.is_list_view(array.type) or pyarrow.types.is_large_list_view(array.type):
        return offsets, to_numpy_integers(array.sizes)
    return offsets[:-1], np.diff(offsets)


def _without_hidden_values(taken: Any) -> Any:
    """Zero the data under nulls, and unify NaN bit patterns."""
    kind = taken.type
    size = len(taken)
    if pyarrow.types.is_floating(kind):
        values = _read_numbers(taken, to_numpy_type(kind))
        strange = np.isnan(values)
        if not taken.null_count and not strange.any():
            return taken
        values = values.copy()
        values[strange] = np.nan
        valid = _get_validity(taken)
        values[~valid] = 0
        return pyarrow.Array.from_buffers(
            kind, size, [_make_bitmap(valid), pyarrow.py_buffer(values)]
        )
    if not taken.null_count or pyarrow.types.is_null(kind):
        return taken
    valid = _get_validity(taken)
    if pyarrow.types.is_boolean(kind):
        shown = np.packbits(_read_bits(taken) & valid, bitorder="little")
        return pyarrow.Array.from_buffers(
            kind, size, [_make_bitmap(valid), pyarrow.py_buffer(shown)]
        )
    if _has_offsets(kind):
        filled = taken.fill_null(pyarrow.scalar(b"").cast(kind))
        return pyarrow.Array.from_buffers(
            kind, size, [_make_bitmap(valid), *filled.buffers()[1:]], offset=0
        )
    width = kind.bit_width // 8
    stored = np.frombuffer(taken.buffers()[1], dtype=np.uint8)
    values = stored[taken.offset * width :][: size * width].copy()
    values.reshape(size, width)[~valid] = 0
    return pyarrow.Array.from_buffers(kind, size, [_make_bitmap(valid), pyarrow.py_buffer(values)])


def _has_offsets(kind: Any) -> bool:
    """Return whether an Arrow type stores text or bytes with offsets."""
    return is_kind(kind, "string", "large_string", "binary", "large_binary")
