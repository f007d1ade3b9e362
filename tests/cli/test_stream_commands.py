"""Streams on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run_fully as run

from pmlopt import PML, Chain, Stream
from pmlopt.releases import StreamPopulation, Streams
from pmlopt.tables import open_table, write_table
from pmlopt.tables.reading import read_texts

ROWS = [
    ("p", "home"),
    ("q", "out"),
    ("p", "home"),
    ("q", "out"),
    ("p", "out"),
    ("q", "home"),
    ("p", "out"),
]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    data = tmp_path / "moves.csv"
    data.write_text("who,place\n" + "".join(f"{who},{place}\n" for who, place in ROWS))
    asked = (
        "--person-column",
        "who",
        "--column",
        "place",
        "--epsilon",
        0.8,
        "--caps",
        "0.3,0.6,0.72",
    )
    run("ledger", "stream", "new", data, *asked, "-o", tmp_path / "p.json")
    return tmp_path / "p.json"


def test_one_person_is_released_and_shown(stored: Path) -> None:
    chain = Chain.from_sequences([["home", "home", "out", "out"], ["out", "out", "home"]], 0.5)
    own = Streams(Stream(chain, PML(0.8), "hamming", caps=[0.3, 0.6, 0.72]))
    for state in ("home", "out", "out"):
        asked = ("--person", "ann", "--state", state, "--seed", 5, "--json")
        told = json.loads(run("ledger", "stream", "release", stored, *asked).stdout)
        assert told == {
            "format": "pmlopt stream-release",
            "released": own.release({"ann": state}, 5),
            "level": own.level,
        }
    shown = json.loads(run("ledger", "stream", "show", stored, "--person", "ann", "--json").stdout)
    assert [one["output"] for one in shown["history"]] == list(own.stream("ann").history)
    assert shown["level"] == own.level <= shown["epsilon"] == 0.8
    assert "3 releases" in run("ledger", "stream", "show", stored, "--person", "ann").output
    assert (
        json.loads(run("ledger", "stream", "show", stored, "--json").stdout)["levels"] == own.levels
    )
    assert "1 person" in run("ledger", "stream", "show", stored).output


def test_a_table_of_people_is_released(stored: Path, tmp_path: Path) -> None:
    today, out = tmp_path / "today.csv", tmp_path / "out.csv"
    today.write_text("who,place\nann,home\nbob,out\n")
    asked = (
        "ledger",
        "stream",
        "release",
        stored,
        "--data",
        today,
        "--person-column",
        "who",
        "--column",
        "place",
        "-o",
        out,
    )
    assert "2 outputs" in run(*asked, "--seed", 2).output
    rows = [line.split(",") for line in out.read_text().splitlines()]
    assert rows[0] == ["who", "place"]
    many = Streams.load(stored)
    assert [(who, many.stream(who).history[0]) for who in ("ann", "bob")] == [
        tuple(row) for row in rows[1:]
    ]
    before = stored.read_bytes()
    today.write_text("who,place\nann,home\nann,out\n")
    assert "'ann' has two rows" in run(*asked, code=2).output
    today.write_text("who,place\nann,work\n")
    assert "none of ('home', 'out')" in run(*asked, code=2).output
    assert stored.read_bytes() == before


def test_tables_may_be_parquet_or_arrow_and_have_times(stored: Path, tmp_path: Path) -> None:
    moves, people, today = (
        tmp_path / name for name in ("moves.parquet", "people.json", "today.arrow")
    )
    rows = [(who, 10 - time, place) for time, (who, place) in enumerate(reversed(ROWS))]
    write_table(
        moves, dict(zip(("who", "hour", "place"), map(list, zip(*rows, strict=True)), strict=True))
    )
    asked = (
        "--person-column",
        "who",
        "--column",
        "place",
        "--time-column",
        "hour",
        "--epsilon",
        0.8,
    )
    run("ledger", "stream", "new", moves, *asked, "--caps", "0.3,0.6,0.72", "-o", people)
    before = people.read_bytes()
    assert before == stored.read_bytes()
    write_table(today, {"who": ["ann", "bob"], "place": ["home", "out"]})
    daily = ("ledger", "stream", "release", people, "--data", today, *asked[:4], "-o")
    assert "not written in that format" in run(*daily, tmp_path / "out.xls", code=2).output
    assert people.read_bytes() == before
    run(*daily, tmp_path / "out.parquet")
    with open_table(tmp_path / "out.parquet") as table:
        who, place = read_texts(table, ["who", "place"])
    assert place == [Streams.load(people).stream(one).history[-1] for one in who]


def test_what_cannot_be_meant_is_refused(stored: Path) -> None:
    data = stored.with_name("moves.csv")
    asked = (
        "ledger",
        "stream",
        "new",
        data,
        "--person-column",
        "who",
        "--epsilon",
        0.8,
        "-o",
        stored.with_name("other.json"),
    )
    assert "no column 'where'" in run(*asked, "--column", "where", code=2).output
    assert "'state', 'path'" in run(*asked, "--column", "place", "--about", "0", code=2).output
    assert "about is '2,3'" in run(*asked, "--column", "place", "--about", "2,3", code=2).output
    assert not stored.with_name("other.json").exists()
    assert "moves.csv" in run("ledger", "stream", "show", data, code=2).output
    assert (
        "give --person NAME and --state STATE, or --data"
        in run("ledger", "stream", "release", stored, "--person", "a", code=2).output
    )
    assert (
        "nothing was released of 'zoe'"
        in run("ledger", "stream", "show", stored, "--person", "zoe", code=2).output
    )


def test_a_crowd_is_of_the_people_of_the_data(tmp_path: Path) -> None:
    data, today, out, crowd = (
        tmp_path / name for name in ("m.csv", "today.csv", "out.csv", "crowd.npz")
    )
    data.write_text("who,place\n" + "".join(f"{who},{place}\n" for who, place in ROWS))
    asked = ("--person-column", "who", "--column", "place")
    run("ledger", "stream", "new", data, *asked, "--epsilon", 0.8, "--designs", 4, "-o", crowd)
    assert StreamPopulation.load(crowd).names == ("p", "q")
    again = StreamPopulation(StreamPopulation.load(crowd).new_stream, ["p", "q"], 4)
    told = again.release({"p": "home", "q": "out"}, 2)
    daily = ("ledger", "stream", "release", crowd, "--data", today, *asked, "--seed", 2, "-o", out)
    today.write_text("who,place\nq,out\np,home\n")
    assert "2 outputs" in run(*daily).output
    assert out.read_text() == "who,place\n" + "".join(f"{who},{told[who]}\n" for who in ("p", "q"))
    show = ("ledger", "stream", "show", crowd)
    assert json.loads(run(*show, "--json").stdout)["levels"] == again.levels_by_name
    one = json.loads(run(*show, "--person", "q", "--json").stdout)
    assert one == {
        "format": "pmlopt stream",
        "epsilon": 0.8,
        "level": again.levels_by_name["q"],
        "history": [{"time": 1, "output": told["q"]}],
    }
    assert "1 release" in run(*show, "--person", "q").output
    before = crowd.read_bytes()
    for rows, said in (
        ("p,home\n", "'q' has no state"),
        ("p,home\nq,out\nr,out\n", "'r' is none of them"),
    ):
        today.write_text(f"who,place\n{rows}")
        assert said in run(*daily, code=2).output
    assert crowd.read_bytes() == before
