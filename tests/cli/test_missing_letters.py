"""Columns of numbers with empty cells, whole numbers beside decimals: every command reads them alike."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from commands import run

COLUMNS = {
    "whole": ["1", "2", "3", "10", ""],
    "decimal": ["0.5", "1.5", "2.0", ""],
    "both": ["1", "2", "4.5", "5", ""],
    "text": ["b", "a", "10", ""],
}


@pytest.fixture(params=COLUMNS)
def data(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    draws = random.Random(3)
    kinds = COLUMNS[request.param]
    Path("people.csv").write_text(
        "score,region\n"
        + "".join(f"{draws.choice(kinds)},{draws.choice('NSE')}\n" for _ in range(900))
    )
    return str(request.param)


@pytest.mark.parametrize("columns", [("score",), ("score", "region"), ("region", "score")])
def test_a_release_counts_an_empty_cell_as_a_letter(data: str, columns: tuple[str, ...]) -> None:
    named = [word for column in columns for word in ("--column", column)]
    asked = (*named, "--drop-all", "--missing", "letter", "--epsilon", "0.5")
    run("release", "people.csv", *asked, "--utility", "estimation-error", "-o", "out")
    run("check", "out")
    # three regions, and the kinds of the column
    frequencies = len(COLUMNS[data]) * (1 if len(columns) == 1 else 3)
    assert len(run("estimate", "out").splitlines()) >= frequencies


def test_a_matrix_is_audited_and_applied_beside_the_data(data: str) -> None:
    rows = {kind: "0.6,0.4" if kind else "0.5,0.5" for kind in COLUMNS[data]}
    Path("m.csv").write_text(
        "score,u,v\n" + "".join(f"{kind},{row}\n" for kind, row in rows.items())
    )
    given = ("--column", "score", "--missing", "letter")
    assert "The claim holds" in run(
        "audit", "m.csv", "--prior", "people.csv", *given, "--epsilon", "0.3"
    )
    run("apply", "m.csv", "people.csv", *given, "--drop-all", "-o", "released.csv")
    assert len(Path("released.csv").read_text().splitlines()) == 901


def test_numbers_have_distances_whether_whole_or_not(data: str) -> None:
    asked = ("--column", "score", "--drop-all", "--missing", "drop", "--epsilon", "0.5")
    code = 2 if data == "text" else 0
    run("release", "people.csv", *asked, "--utility", "absolute", "-o", "out", code=code)
    assert Path("out").exists() == (code == 0)
