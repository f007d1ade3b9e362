"""Streams on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run_fully as run

from pmlopt import PML, Chain, Stream

ROWS = [("p", "home"), ("q", "out"), ("p", "home"), ("q", "out"), ("p", "out"), ("q", "home"), ("p", "out")]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    data = tmp_path / "moves.csv"
    data.write_text("who,place\n" + "".join(f"{who},{place}\n" for who, place in ROWS))
    asked = ("--person", "who", "--column", "place", "--epsilon", 0.8, "--caps", "0.3,0.6,0.72")
    run("stream", "new", data, *asked, "-o", tmp_path / "p.json")
    return tmp_path / "p.json"


def test_a_stream_is_begun_released_from_and_shown(stored: Path) -> None:
    chain = Chain.from_sequences([["home", "home", "out", "out"], ["out", "out", "home"]], 0.5)
    own = Stream(chain, PML(0.8), "hamming", caps=[0.3, 0.6, 0.72])
    for state in ("home", "out", "out"):
        told = json.loads(run("stream", "release", stored, "--state", state, "--seed", 5, "--json").stdout)
        assert told["output"] == own.release(state, 5)
        assert told["level"] == own.level
    shown = json.loads(run("stream", "show", stored, "--json").stdout)
    assert shown["history"] == list(own.history)
    assert shown["levels"] == list(own.levels)
    assert shown["level"] <= shown["epsilon"] == 0.8
    assert "3 releases" in run("stream", "show", stored).output


def test_what_is_printed_is_what_was_recorded(stored: Path) -> None:
    output = run("stream", "release", stored, "--state", "home").stdout.strip()
    assert Stream.load(stored).history == (output,)
    before = stored.read_bytes()
    assert "none of home, out" in run("stream", "release", stored, "--state", "work", code=2).output
    assert stored.read_bytes() == before


def test_what_cannot_be_meant_is_refused(stored: Path) -> None:
    data = stored.with_name("moves.csv")
    asked = ("stream", "new", data, "--person", "who", "--epsilon", 0.8, "-o", stored.with_name("other.json"))
    assert "columns named 'where'" in run(*asked, "--column", "where", code=2).output
    assert "'state', 'path'" in run(*asked, "--column", "place", "--about", "0", code=2).output
    assert not stored.with_name("other.json").exists()
    assert "moves.csv" in run("stream", "show", data, code=2).output
