"""The ledger from the shell."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from cli.hostile import mechanism, refused, write
from commands import run

from pmlopt import Ledger


@pytest.fixture
def begun(folder: Path) -> Path:
    write(folder, "even.csv", "letter,count\na,1\nb,1\nc,1\n")
    write(folder, "out.csv", "id,level\n0,a\n1,b\n2,c\n")
    run("ledger", "new", "ledger.npz", "--prior", "even.csv", "--people", 3, "--total", 0.7)
    return folder / "ledger.npz"


def test_releases_are_recorded_and_shown(begun: Path) -> None:
    assert "3 outcomes" in run("ledger", "record", begun, "m.json", "out.csv", "--column", "level")
    assert Ledger.load(begun).level == pytest.approx(math.log(1.5))
    shown = json.loads(run("ledger", "show", begun, "--person", 0, "--json"))
    assert shown["posterior"] == pytest.approx([0.5, 0.25, 0.25])
    assert shown["remaining"] == pytest.approx(
        [0.7 - math.log(1.5), 0.7 + math.log(4 / 3), 0.7 + math.log(4 / 3)]
    )
    assert "1 releases" in run("ledger", "show", begun)
    assert "posterior" in run("ledger", "show", begun, "--person", 2)


def test_some_people_are_named(begun: Path) -> None:
    write(begun.parent, "some.csv", "who,level\n2,a\n")
    run("ledger", "record", begun, "m.json", "some.csv", "--column", "level", "--who", "who")
    assert Ledger.load(begun).levels == pytest.approx([0, 0, math.log(1.5)])


@pytest.mark.parametrize(
    "command",
    [
        "new ledger.npz --prior even.csv --people 3",  # is there
        "new new.csv --prior even.csv --people 3",
        "new new.npz --prior even.csv --people 0",
        "new new.npz --prior even.csv --people 3 --total=-1",
        "record ledger.npz m.json data.csv --column nothing",
        "record ledger.npz m.json even.csv --column letter --who letter",
        "record ledger.npz m.json two.csv --column level",  # fewer rows than people
        "record ledger.npz m.json twice.csv --column level --who who",
        "record ledger.npz all.json out.csv --column level",  # breaks the total
        "record even.csv m.json out.csv --column level",
        "show nowhere.npz",
        "show ledger.npz --person 3",
    ],
)
def test_what_cannot_be_meant_is_refused(begun: Path, command: str) -> None:
    write(begun.parent, "two.csv", "level\na\nb\n")
    write(begun.parent, "twice.csv", "who,level\n1,a\n1,b\n")
    write(begun.parent, "all.json", mechanism(matrix=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    refused(begun.parent, f"ledger {command}")
