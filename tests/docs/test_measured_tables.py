"""Tables of measured figures on pages are those of their files."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import ROOT, module

TABLES = module("measured_tables")
MEASUREMENTS = module("measurements")


def test_pages_have_the_tables_of_their_files() -> None:
    pages = TABLES.list_pages()
    assert ROOT / "docs" / "performance.md" in pages
    for path in pages:
        page = path.read_text("utf-8")
        assert page == TABLES.fill_tables(page), f"{path.name}: run docs/measured_tables.py"


@pytest.mark.parametrize("listed", MEASUREMENTS.list_tables(), ids=lambda listed: listed["title"])
def test_a_measured_table_shows_rows_of_its_file_with_command_and_date(
    listed: Mapping[str, Any],
) -> None:
    head, *rows = MEASUREMENTS.show_table(listed)
    assert 1 <= len(rows) <= MEASUREMENTS.MOST_ROWS
    assert {len(row) for row in rows} == {len(head)}
    script = re.fullmatch(r"python (\S+\.py).*|", listed["command"])
    assert script is not None
    assert not script[1] or (ROOT / script[1]).is_file()
    facts = TABLES.read_facts(f"benchmarks/data/{listed['file']}")
    date = facts["date"] if facts else listed["date"]
    assert re.fullmatch(r"[\d-]{10}( to [\d-]{10})?|November 2026", date)
    assert f"`{listed['file']}`" in MEASUREMENTS.describe_origin(listed)


def test_the_page_of_measurements_has_each_table_once_and_each_kept_file() -> None:
    page = MEASUREMENTS.write_measurements()
    listed = MEASUREMENTS.list_tables()
    assert re.findall(r"^### (.*)$", page, re.MULTILINE) == [one["title"] for one in listed]
    folder = ROOT / "benchmarks" / "data"
    kept = {path.relative_to(folder).as_posix() for path in folder.glob("measured/*.csv")}
    assert kept == {one["file"] for one in listed if one["file"].startswith("measured/")}
    first = next(one for one in listed if one["title"] == "Small alphabets")
    (row,) = [row for row in MEASUREMENTS.show_table(first) if row[0] == "PML"]
    kept_rows = TABLES.read_rows("benchmarks/data/small.csv")
    assert row[1] == next(
        one["pmlopt.solve [ms]"] for one in kept_rows if (one["kind"], one["N"]) == ("PML", "4")
    )


def test_too_many_rows_and_none_are_refused() -> None:
    long = {"title": "all", "file": "growth.csv"}
    with pytest.raises(ValueError, match="77 rows are shown, of at most 12"):
        MEASUREMENTS.show_table(long)
    with pytest.raises(ValueError, match="0 rows"):
        MEASUREMENTS.show_table({**long, "where": {"kind": ["no such kind"]}})


def test_tables_of_measured_performance_come_from_dated_files_of_their_benchmarks() -> None:
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    files = {found[2] for found in TABLES.PLACE.finditer(page)}
    files |= {
        f"benchmarks/data/{one['file']}"
        for one in MEASUREMENTS.list_tables()
        if TABLES.read_facts(f"benchmarks/data/{one['file']}")
    }
    assert len(files) > 5
    for file in files:
        path = ROOT / file
        script = ROOT / "benchmarks" / f"{path.stem.split('-')[0]}.py"
        columns = next(csv.reader(path.read_text("utf-8").splitlines()))
        source = script.read_text("utf-8")
        missing = [name for name in columns if f'"{name}"' not in source]
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
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    line = next(line for line in page.splitlines(keepends=True) if line.startswith("| LDP | "))
    assert TABLES.fill_tables(page.replace(line, "")) == page


def test_no_bound_is_wrong_more_often_than_stated() -> None:
    """2,000 runs of each: the measured shares of the page, and those of all sizes, levels and programs."""
    path = ROOT / "benchmarks/data/program_audits.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["runs"] for row in rows} == {"2,000"}
    assert all(float(row["wrong"]) <= float(row["stated"]) for row in rows)


def test_no_measured_run_failed() -> None:
    paths = sorted((ROOT / "benchmarks" / "data").rglob("*.csv"))
    assert len(paths) > 20
    for path in paths:
        TABLES.read_rows(str(path.relative_to(ROOT)))


def test_a_failed_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "growth.csv"
    file.write_text(
        "kind,size,status,seconds\nPML,10,optimal,0.001\nPML,20,failed ValueError,> 1\n"
    )
    with pytest.raises(ValueError, match="run 2 failed"):
        TABLES.read_rows(str(file))


def read_growth() -> list[dict[str, str]]:
    return list(TABLES.read_rows("benchmarks/data/growth.csv"))


def test_the_figure_of_growth_is_of_the_run_of_the_table() -> None:
    """Heights of its curves are one linear function of the logarithms of all seconds in the file."""
    picture = (ROOT / "docs" / "figures" / "growth.svg").read_text("utf-8")
    curves = dict(re.findall(r'<g id="growth-([^"]+)">\s*<path d="([^"]+)"', picture))
    drawn: list[tuple[float, float]] = []
    kinds = {row["kind"] for row in read_growth() if row["size"] == "400"}
    assert set(curves) == {kind.replace(" ", "-") for kind in kinds}
    for kind in kinds:
        seconds = [float(row["seconds"]) for row in read_growth() if row["kind"] == kind]
        heights = [float(y) for y in re.findall(r"[ML] \S+ (\S+)", curves[kind.replace(" ", "-")])]
        drawn += zip(np.log(seconds), heights, strict=True)
    logs, heights = np.array(drawn).T
    assert np.abs(np.polyval(np.polyfit(logs, heights, 1), logs) - heights).max() < 1e-3, (
        "run benchmarks/figures.py --only growth --out docs/figures"
    )


def test_the_prose_on_growth_has_the_figures_of_the_file() -> None:
    rows = read_growth()
    page = " ".join((ROOT / "docs" / "performance.md").read_text("utf-8").split())
    assert {row["status"] for row in rows} == {"optimal"}
    last = {row["kind"]: row for row in rows if row["size"] == "400"}
    gains = {"PML", "LDP", "LIP", "maximal leakage"} | {kind for kind in last if "ball" in kind}
    seconds = [float(last[kind]["seconds"]) for kind in gains]
    assert f"{min(seconds):.1f} to {max(seconds):.1f} s of processor time" in page
    parities = [float(row["seconds"]) for row in rows if row["kind"].startswith("record leakage")]
    assert f"takes {min(parities):.2f} to {max(parities):.2f} s for n from 4 to 10,000" in page
    slowest = max(float(row["seconds"]) for row in last.values())
    assert f"to {slowest:.0f} s for a worst case of 400" in page
    letters = [row for row in rows if row["kind"] in last]
    gap = f"{max(float(row['gap']) for row in letters):.0e}".replace("e-0", "e-")
    assert f"at most {gap} in the units of the value" in page
    for kind, tolerance in (("record leakage", 1e-7), ("leakage-distortion", 1e-6)):
        assert all(float(row["gap"]) <= tolerance for row in rows if row["kind"].startswith(kind))
    slower = float(last["envelope"]["seconds"]) / next(
        float(row["seconds"]) for row in rows if (row["kind"], row["size"]) == ("envelope", "200")
    )
    assert 9 <= slower <= 11  # "the last step may be steeper, as for an envelope"
    assert "the measured growth is below cubic" in page
    assert max(float(row["exponent"]) for row in last.values()) < 3
    peaks = [int(row["peak [MiB]"]) for row in letters if row["size"] == "10"]
    assert f"{min(peaks)} MiB for 10 letters" in page
