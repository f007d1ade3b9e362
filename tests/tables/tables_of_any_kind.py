"""Tables to write in every format, and the cells of a table that is read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pmlopt.tables import Table


def csv_bytes(rows: Sequence[Sequence[str]], delimiter: str = ",", end: str = "\n") -> bytes:
    """Rows as Python's csv module writes them, which sees carriage returns only where lines end with them."""
    stream = io.StringIO(newline="")
    if "\r" in end:
        csv.writer(stream, delimiter=delimiter, lineterminator=end).writerows(rows)
    else:
        csv.writer(
            stream, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL
        ).writerows(rows)
    return stream.getvalue().encode()


def cells_of(table: Table) -> list[list[Any]]:
    """The rows of a table, None for a missing cell."""
    rows: list[list[Any]] = []
    with table:
        for batch in table.batches():
            columns = []
            for place in range(len(table.names)):
                values, codes = batch.encode_column(place)
                columns.append([values[code] for code in codes.tolist()])
            rows += map(list, zip(*columns, strict=True))
    return rows


def write_table(path: Path, columns: dict[str, list[Any]]) -> None:
    """A Parquet or Arrow file of some columns."""
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(columns)
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        with (
            pyarrow.OSFile(str(path), "wb") as file,
            pyarrow.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=2)
