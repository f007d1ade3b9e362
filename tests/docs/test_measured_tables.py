"""Tables of measured figures on pages are those of their files."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
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
        table = TABLES.render_table(file, view, short=True)
        path = ROOT / file
        facts = json.loads(path.with_name(f"{path.stem}-machine.json").read_text("utf-8"))
        assert re.fullmatch(r"[\d-]{10}( to [\d-]{10})?", facts["date"])
        assert f"*Measured on {facts['date']} in {facts['clock']} time" in table
        (machines,) = TABLES.MACHINES.finditer(page)
        assert TABLES.describe_machine(facts) in " ".join(machines[0].split())
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
    assert page.count(f"{min(seconds):.1f} to {max(seconds):.1f} s") == 2
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
    assert 9 <= slower <= 11  # "ten times as long"
    peaks = [int(row["peak [MiB]"]) for row in letters if row["size"] == "10"]
    assert f"{min(peaks)} MiB for 10 letters" in page


def test_the_prose_on_ratios_has_the_figures_of_the_file() -> None:
    page = " ".join((ROOT / "docs" / "notes" / "performance.md").read_text("utf-8").split())
    ratios = {
        row["kind"]: float(row["ratio to PML"]) for row in read_growth() if row["size"] == "400"
    }
    small = [
        ratios[kind] for kind in ("LDP", "LIP", "maximal leakage", "PML over an l1 ball of min p")
    ]
    wide = ratios["PML over an l1 ball of 0.05"]
    searches = [ratios[kind] for kind in ("worst case", "best worst case", "envelope")]
    assert page.count(f"{min(small):.1f} to {max(small):.1f} times as much") == 2
    assert f"the l1 ball of 0.05 costs {wide:.1f} times" in page
    larger = [wide, ratios["mutual information"], ratios["least leakage"]]
    assert f"{min(larger):.0f} to {max(larger):.0f} times for a larger set" in page
    assert f"cost {min(searches):.0f} to {max(searches):.0f} times" in page
    assert f"Mutual information costs {ratios['mutual information']:.0f} times" in page
    assert f"least leakage {ratios['least leakage']:.0f} times" in page
