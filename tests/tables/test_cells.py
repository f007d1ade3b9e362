"""Columns built anew from their cells: the cells are the same, and the buffers hold nothing else."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow
import pytest
from attack_release import kinds

from pmlopt.errors import FileFormatError
from pmlopt.tables.cells import (
    encode_categories,
    gather_all_cells,
    gather_cells,
    get_category_type,
    get_plain_type,
)
from pmlopt.tables.reading import integers_to_arrow


def bytes_of(array: Any) -> bytes:
    stream = io.BytesIO()
    batch = pyarrow.RecordBatch.from_arrays([array], names=["c"])
    with pyarrow.ipc.new_file(stream, batch.schema) as writer:
        writer.write_batch(batch)
    return stream.getvalue()


@pytest.mark.parametrize("name", list(kinds()))
def test_cells_in_any_order_are_the_cells_of_the_rows(name: str) -> None:
    array, rng = kinds()[name](), np.random.default_rng(0)
    cells = array.to_pylist()
    for whole in (array, array.slice(1, 5)):
        cells = whole.to_pylist()
        for size in range(9):
            places = rng.integers(0, len(cells), size)
            made = gather_cells(whole, integers_to_arrow(places))
            made.validate(full=True)
            assert made.type == get_plain_type(array.type, name)
            assert str(made.to_pylist()) == str([cells[place] for place in places])  # NaN is NaN


@pytest.mark.parametrize("name", list(kinds()))
def test_rows_may_be_a_slice_in_which_some_lack(name: str) -> None:
    array = kinds()[name]()
    cells = array.to_pylist()
    rows = pyarrow.array([9, 2, None, 0]).slice(1)
    made = gather_cells(array, rows)
    made.validate(full=True)
    assert str(made.to_pylist()) == str([cells[2], None, cells[0]])


def test_zeros_stand_under_nulls_and_a_struct_hides_what_it_lacks() -> None:
    hidden = pyarrow.Array.from_buffers(
        pyarrow.int64(),
        3,
        [pyarrow.py_buffer(b"\x05"), pyarrow.py_buffer(np.array([1, 424242, 3]).tobytes())],
    )
    assert np.frombuffer(gather_all_cells(hidden).buffers()[1], np.int64)[:3].tolist() == [1, 0, 3]
    pair = pyarrow.StructArray.from_arrays([pyarrow.array(["a", "SECRET"])], names=["x"])
    bits = pyarrow.py_buffer(b"\x01")
    masked = pyarrow.Array.from_buffers(pair.type, 2, [bits], children=[pair.field(0)])
    assert b"SECRET" in bytes_of(masked)
    assert b"SECRET" not in bytes_of(gather_all_cells(masked))
    assert gather_all_cells(masked).to_pylist() == [{"x": "a"}, None]


def test_all_nan_have_the_same_bits() -> None:
    odd = np.array([0x7FF8000000424242, 0x3FF0000000000000], dtype=np.uint64)
    made = gather_all_cells(pyarrow.array(odd.view(np.float64)))
    assert (
        np.frombuffer(made.buffers()[1], np.float64)[:2].tobytes()
        == np.array([np.nan, 1.0]).tobytes()
    )


def test_categories_are_those_of_the_cells_without_order() -> None:
    colors = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([2, 0], pyarrow.int8()), pyarrow.array(["red", "blue", "green"]), ordered=True
    )
    made = encode_categories(gather_all_cells(colors))
    assert (
        made.type
        == get_category_type(colors.type, "c")
        == pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    )
    assert made.dictionary.to_pylist() == ["green", "red"]


def test_columns_of_several_types_are_refused_by_name() -> None:
    union = pyarrow.UnionArray.from_sparse(
        pyarrow.array([0, 1], pyarrow.int8()), [pyarrow.array([1, 2]), pyarrow.array(["a", "b"])]
    )
    with pytest.raises(FileFormatError, match="the column 'odd' of"):
        get_plain_type(union.type, "odd")
