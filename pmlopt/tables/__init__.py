"""Tables: data files and data frames, column by column and in batches.

A data file is CSV, Parquet or Arrow IPC, and of any length: it is read, and what is made of it written, a
batch of rows at a time. CSV needs nothing beside the standard library; with pyarrow (the extra `parquet`) it
is faster, and Parquet and Arrow are read. A frame is anything with named columns: of pandas, Polars or Arrow,
or a mapping.
"""

from pmlopt.tables.batches import MISSING_LETTER, Batch, Missing, Table
from pmlopt.tables.columns import column_place, listed
from pmlopt.tables.counting import column_counts, cross_counts
from pmlopt.tables.csv_form import CsvForm
from pmlopt.tables.reading import open_table

__all__ = [
    "MISSING_LETTER",
    "Batch",
    "CsvForm",
    "Missing",
    "Table",
    "column_counts",
    "column_place",
    "cross_counts",
    "listed",
    "open_table",
]
