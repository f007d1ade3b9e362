"""The page of measurements, from benchmarks/measured.toml and the files in benchmarks/data that it names."""

from __future__ import annotations

import sys
import textwrap
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from measured_tables import VIEWS, Row, Table, read_facts, read_rows, write_table

ROOT = Path(__file__).parents[2]
LISTED = ROOT / "benchmarks" / "measured.toml"
MOST_ROWS = 12

HEAD = """# Measurements

This page is for readers who check a measured number. Each table is a part of its file in `benchmarks/data`,
and has the command that measures it again, in a checkout with `pip install '.[benchmarks]'`. Machine: two
shared cores, x86_64, Linux, Python 3.11.7; versions are beside the files. N is the number of letters, a *gap*
the distance of value and proved bound.
"""


def list_tables() -> list[Mapping[str, Any]]:
    """List what each table shows, in the order of the page."""
    found: list[Mapping[str, Any]] = tomllib.loads(LISTED.read_text("utf-8"))["table"]
    return found


def show_table(listed: Mapping[str, Any]) -> Table:
    """Show the chosen rows and columns of a file.

    Raises:
        ValueError: there are more rows than a page shows, or none.
    """
    rows = read_rows(f"benchmarks/data/{listed['file']}")
    if "view" in listed:
        head, *lines = VIEWS[listed["view"]](rows)
        rows = [dict(zip(head, line, strict=True)) for line in lines]
    chosen = [row for row in rows if _is_chosen(row, listed.get("where", {}))]
    if not 1 <= len(chosen) <= MOST_ROWS:
        raise ValueError(f"{listed['title']}: {len(chosen)} rows are shown, of at most {MOST_ROWS}")
    columns = listed.get("columns", list(chosen[0]))
    return [columns, *([_shorten(row[name]) for name in columns] for row in chosen)]


def _is_chosen(row: Row, where: Mapping[str, list[str]]) -> bool:
    return all(row[name] in entries for name, entries in where.items())


def _shorten(entry: str) -> str:
    """Shorten a number that a file keeps with all its digits."""
    try:
        return f"{float(entry):.4g}" if len(entry.partition(".")[2]) > 8 else entry
    except ValueError:
        return entry


def describe_origin(listed: Mapping[str, Any]) -> str:
    """Describe where a table is from: its file, the command and the date."""
    facts = read_facts(f"benchmarks/data/{listed['file']}")
    date = listed["date"] if facts is None else str(facts["date"])
    command = f"`{listed['command']}`" if listed["command"] else "no script is kept"
    return f"`{listed['file']}`, {command}; {date}."


def write_measurements() -> str:
    """Write the page."""
    parts, subject = [HEAD], ""
    for listed in list_tables():
        if listed["subject"] != subject:
            subject = listed["subject"]
            parts.append(f"\n## {subject}\n")
        about = textwrap.fill(listed["about"], 110)
        parts.append(f"\n### {listed['title']}\n\n{about}\n\n{write_table(show_table(listed))}\n")
        parts.append(f"{describe_origin(listed)}\n")
    return "".join(parts)
