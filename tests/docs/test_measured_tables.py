"""Tables of measured figures on pages are those of their files."""

from __future__ import annotations

import csv

from documents import ROOT, module

TABLES = module("measured_tables")


def test_pages_have_the_tables_of_their_files() -> None:
    pages = TABLES.list_pages()
    assert ROOT / "docs" / "notes" / "programs.md" in pages
    for path in pages:
        page = path.read_text("utf-8")
        assert page == TABLES.fill_tables(page), f"{path.name}: run docs/measured_tables.py"


def test_a_changed_figure_is_seen() -> None:
    page = (ROOT / "docs" / "notes" / "programs.md").read_text("utf-8")
    rows = list(
        csv.reader((ROOT / "benchmarks/data/program_audits-widths.csv").read_text().splitlines())
    )
    line = f"| {' | '.join(rows[1])} |\n"
    assert line in page
    assert TABLES.fill_tables(page.replace(line, "")) == page


def test_no_bound_is_wrong_more_often_than_stated() -> None:
    """2,000 runs of each: the measured shares of the page, and those of all sizes, levels and programs."""
    path = ROOT / "benchmarks/data/program_audits.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["runs"] for row in rows} == {"2,000"}
    assert all(float(row["wrong"]) <= float(row["stated"]) for row in rows)
