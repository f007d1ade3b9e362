"""Tables: labelled data files and frames, read in batches.

A data file is CSV, Parquet or Arrow IPC, and of any length: it is read, and what is made of it written, a
batch of rows at a time, through Arrow; a folder or a pattern of Parquet files is one table. A frame is
anything with named columns: of pandas, Polars or Arrow, what an engine has not computed yet, or a mapping.
`pmlopt.data.labelled` reads tables of numbers by their labels.
"""

from pmlopt.core.frames import MISSING_LETTER, Missing, to_plain_list
from pmlopt.tables.counting import (
    column_counts,
    counts_by_column,
    cross_counts,
    state_sequences,
)
from pmlopt.tables.databases import Database
from pmlopt.tables.reading import (
    FolderTable,
    Table,
    TableBatch,
    find_column,
    is_data_folder,
    open_table,
)
from pmlopt.tables.streams import CsvFormat
from pmlopt.tables.writing import write_table

__all__ = [
    "MISSING_LETTER",
    "CsvFormat",
    "Database",
    "FolderTable",
    "Missing",
    "Table",
    "TableBatch",
    "column_counts",
    "counts_by_column",
    "cross_counts",
    "find_column",
    "is_data_folder",
    "open_table",
    "state_sequences",
    "to_plain_list",
    "write_table",
]
