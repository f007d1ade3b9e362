"""Columns of SQL engines of which two values could become one letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def without_collations(frame: Any, columns: Sequence[str]) -> Any:
    """Return a lazy frame with binary collation of some columns.

    A column of DuckDB may have a collation, its own or that of the connection, by which `a` and `A` are
    equal and grouped as one of them. Frames of other engines are returned as they are.

    Args:
        frame: the lazy frame.
        columns: the names of the columns that are grouped by.
    """
    if not frame.implementation.is_duckdb():
        return frame
    import narwhals

    relation = frame.to_native()
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return narwhals.from_native(
        relation.project(", ".join(_make_projection(name, types[name]) for name in columns))
    )


def find_lossy_columns(frame: Any) -> dict[str, str]:
    """Return the types, by name, of columns of DuckDB that Arrow has without their time zones."""
    if not frame.implementation.is_duckdb():
        return {}
    relation = frame.to_native()
    types = zip(relation.columns, map(str, relation.types), strict=True)
    return {name: kind for name, kind in types if "TIME WITH TIME ZONE" in kind}


def _make_projection(name: str, kind: str) -> str:
    """Return the SQL projection of a column with binary collation."""
    quoted = quote_name(name)
    return f'{quoted} COLLATE "binary" AS {quoted}' if kind == "VARCHAR" else quoted


def quote_name(name: str) -> str:
    """Return the name of a column as SQL quotes it.

    Examples:
        >>> quote_name("the age"), len(quote_name('"'))
        ('"the age"', 4)
    """
    return '"' + name.replace('"', '""') + '"'
