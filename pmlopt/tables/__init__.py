"""Tables: labelled data files and frames, read in batches.

A data file is CSV, Parquet or Arrow IPC, and of any length: it is read, and what is made of it written, a
batch of rows at a time, through Arrow; a folder or a pattern of Parquet files is one table. A frame is
anything with named columns: of pandas, Polars or Arrow, what an engine has not computed yet, or a mapping.
`pmlopt.data.labelled` reads tables of numbers by their labels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
