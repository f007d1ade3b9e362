"""Tables of measured figures on pages are those of their files."""

from __future__ import annotations

import csv
import json
import re

from documents import ROOT, module

TABLES = module("measured_tables")


def test_pages_have_the_tables_of_their_files() -> None:
    pages = TABLES.list_pages()
    assert ROOT / "docs" / "notes" / "programs.md" in pages
    for path in pages:
        page = path.read_text("utf-8")
        assert page == TABLES.fill_tables(page), f"{path.name}: run docs/measured_tables.py"


def test_every_table_of_measured_performance_comes_from_a_dated_file_of_its_benchmark() -> None:
    page = (ROOT / "docs" / "notes" / "performance.md").read_text("utf-8")
    assert "\n| " not in TABLES.PLACE.sub("", page)
    for file, view in {(found[2], found[3]) for found in TABLES.PLACE.finditer(page)}:
        table = TABLES.render_table(file, view)
        path = ROOT / file
        facts = json.loads(path.with_name(f"{path.stem}-machine.json").read_text("utf-8"))
        assert re.fullmatch(r"[\d-]{10}( to [\d-]{10})?", facts["date"])
        assert f"*Measured on {facts['date']} in {facts['clock']} time" in table
        script = ROOT / "benchmarks" / f"{path.stem.split('-')[0]}.py"
        columns = path.read_text("utf-8").splitlines()[0].split(",")
        missing = [name for name in columns if f'"{name}"' not in script.read_text("utf-8")]
        assert missing == [], f"{script.name} writes no such columns"


def test_a_view_compares_with_the_fastest_solver_of_qif_that_ended() -> None:
    head = ("loss", "prior", "N", "contestant", "status", "milliseconds", "level")
    rows = [
        ("hamming", "uniform", "5", "pmlopt.solve", "done", "2.00", "epsilon +0e+00"),
        ("hamming", "uniform", "5", "qif, its choice", "done", "9.00", "infinite"),
        ("hamming", "uniform", "5", "qif, fast", "another value", "1.00", ""),
        ("hamming", "uniform", "5", "qif, slow", "done", "5.00", "epsilon +1e-16"),
    ]
    _, line = TABLES.VIEWS["best of qif"]([dict(zip(head, row, strict=True)) for row in rows])
    assert line[3:] == ["2.00", "5.00", "slow", "9.00", "2.50", "epsilon +1e-16"]


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
