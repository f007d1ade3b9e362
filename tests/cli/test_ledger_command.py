"""The ledger from the shell."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli.hostile import mechanism, refused, write
from commands import KILLED, run

from pmlopt import Ledger, Mechanism


@pytest.fixture
def begun(folder: Path) -> Path:
    write(folder, "even.csv", "letter,count\na,1\nb,1\nc,1\n")
    write(folder, "out.csv", "id,level\n0,a\n1,b\n2,c\n")
    run("ledger", "new", "ledger.npz", "--prior", "even.csv", "--people", 3, "--total", 0.7)
    return folder / "ledger.npz"


def test_releases_are_recorded_and_shown(begun: Path) -> None:
    assert "3 outcomes" in run(
        "ledger", "record", begun, "m.json", "out.csv", "--column", "level", "--in-order"
    )
    assert Ledger.load(begun).level == pytest.approx(math.log(1.5))
    shown = json.loads(run("ledger", "show", begun, "--person", 0, "--json"))
    assert shown["posterior"] == pytest.approx([0.5, 0.25, 0.25])
    assert shown["remaining"] == pytest.approx(
        [0.7 - math.log(1.5), 0.7 + math.log(4 / 3), 0.7 + math.log(4 / 3)]
    )
    assert "1 release," in run("ledger", "show", begun)
    assert "posterior" in run("ledger", "show", begun, "--person", 2)


def test_some_people_are_named_and_outputs_that_are_tuples_have_their_columns(begun: Path) -> None:
    write(begun.parent, "some.csv", "who,level\n2,a\n")
    run(
        "ledger",
        "record",
        begun,
        "m.json",
        "some.csv",
        "--column",
        "level",
        "--person-column",
        "who",
    )
    assert Ledger.load(begun).levels == pytest.approx([0, 0, math.log(1.5)])
    pairs = mechanism(outputs=[["x", 1], ["x", 2], ["y", 1]], matrix=[[0.5, 0.25, 0.25]] * 3)
    write(begun.parent, "pairs.json", pairs)
    write(begun.parent, "pairs.csv", "number,letter\n1,x\n2,x\n1,y\n")
    run(
        "ledger",
        "record",
        begun,
        "pairs.json",
        "pairs.csv",
        "--column",
        "letter",
        "--column",
        "number",
        "--in-order",
    )
    assert Ledger.load(begun).releases == 2


@pytest.mark.parametrize(
    "command",
    [
        "new ledger.npz --prior even.csv --people 3",  # is there
        "new new.csv --prior even.csv --people 3",
        "new new.npz --prior even.csv --people 0",
        "new new.npz --prior even.csv --people 3 --total=-1",
        "record ledger.npz m.json data.csv --column nothing --in-order",
        "record ledger.npz m.json even.csv --column letter --person-column letter",
        "record ledger.npz m.json two.csv --column level --in-order",  # fewer rows than people
        "record ledger.npz m.json twice.csv --column level --person-column who",
        "record ledger.npz all.json out.csv --column level --in-order",  # breaks the total
        "record even.csv m.json out.csv --column level --in-order",
        "record ledger.npz m.json out.csv --column level --column id --in-order",  # outputs are no tuples
        "check ledger.npz m.json --person-column id",
        "check untold.npz m.json",  # has no total
        "show nowhere.npz",
        "show ledger.npz --person 3",
    ],
)
def test_what_cannot_be_meant_is_refused(begun: Path, command: str) -> None:
    write(begun.parent, "two.csv", "level\na\nb\n")
    write(begun.parent, "twice.csv", "who,level\n1,a\n1,b\n")
    write(begun.parent, "all.json", mechanism(matrix=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    run("ledger", "new", "untold.npz", "--prior", "even.csv", "--people", 3)
    refused(begun.parent, f"ledger {command}")


@pytest.mark.parametrize("whose", ["", " --in-order --person-column id"])
def test_whose_a_row_is_has_to_be_stated(begun: Path, whose: str) -> None:
    before = begun.read_bytes()
    told = refused(begun.parent, f"ledger record ledger.npz m.json out.csv --column level{whose}")
    assert "random order" in told
    assert begun.read_bytes() == before


def test_a_release_is_recorded_twice_only_where_that_is_meant(begun: Path) -> None:
    record = ["ledger", "record", begun, "m.json", "out.csv", "--column", "level", "--in-order"]
    run(*record)
    refused(begun.parent, "ledger record ledger.npz m.json out.csv --column level --in-order")
    assert Ledger.load(begun).releases == 1
    run("ledger", "new", "free.npz", "--prior", "even.csv", "--people", 3)
    for _ in range(2):
        run("ledger", "record", "free.npz", *record[3:], "--allow-duplicate")
    assert Ledger.load("free.npz").releases == 2


def test_a_check_says_whether_the_total_is_kept_and_records_nothing(begun: Path) -> None:
    write(begun.parent, "all.json", mechanism(matrix=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    write(begun.parent, "some.csv", "who\n1\n")
    before = begun.read_bytes()
    assert "is kept" in run(
        "ledger", "check", begun, "m.json", "--data", "some.csv", "--person-column", "who"
    )
    found = json.loads(run("ledger", "check", begun, "all.json", "--json", code=1))
    assert found.pop("format") == "pmlopt ledger-check"
    assert found == {"holds": False, "level": pytest.approx(math.log(3)), "total": 0.7}
    assert begun.read_bytes() == before


APPLY = [
    "apply", "m.json", "people.csv", "--column", "level", "--ledger", "ledger.npz", "-o", "wave.csv",
    "--keep", "id", "--keep-order",
]  # fmt: skip


@pytest.fixture
def people(begun: Path) -> Path:
    write(begun.parent, "people.csv", "id,level\n2,a\n0,b\n1,c\n")
    return begun


def test_a_release_is_applied_and_recorded_at_once(people: Path) -> None:
    run(*APPLY, "--person-column", "id", "--seed", 1)
    rows = [line.split(",") for line in (people.parent / "wave.csv").read_text().split()[1:]]
    other = Ledger([1 / 3] * 3, people=3)
    outcomes = [Mechanism.load("m.json").outputs.index(level) for _, level in rows]
    other.record(Mechanism.load("m.json").matrix, outcomes, [int(number) for number, _ in rows])
    book = Ledger.load(people)
    for person in range(3):
        assert book.density(person) == pytest.approx(other.density(person))
    refused(people.parent, " ".join(APPLY))  # wave.csv is there
    told = refused(
        people.parent, "ledger record ledger.npz m.json wave.csv --column level --person-column id"
    )
    assert "recorded already" in told
    assert Ledger.load(people).releases == 1


def test_what_a_ledger_cannot_keep_is_not_applied(people: Path) -> None:
    write(people.parent, "all.json", mechanism(matrix=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    before, options = people.read_bytes(), "people.csv --column level --ledger ledger.npz -o"
    for wrong in (
        "-",
        "other.csv --missing drop",
        "other.csv --and-mechanism m.json id",
        "other.csv --person-column nobody",
    ):
        refused(people.parent, f"apply m.json {options} {wrong}")
    refused(people.parent, f"apply all.json {options} wave.csv")  # might break the total
    assert people.read_bytes() == before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals that cannot be caught")
@pytest.mark.parametrize("renames", [0, 1])
def test_a_release_that_is_killed_is_published_and_recorded_or_neither(
    people: Path, renames: int
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(renames), *APPLY], check=False
    ).returncode
    assert ended == -signal.SIGKILL
    wave = people.parent / "wave.csv"
    assert (Ledger.load(people).releases, wave.exists()) == (renames, False)
    run(*APPLY)  # again, as if nothing had been
    assert (Ledger.load(people).releases, wave.exists()) == (1, True)
    refused(
        people.parent, "ledger record ledger.npz m.json wave.csv --column level --in-order"
    )  # it is that release
    assert not [path for path in people.parent.iterdir() if "draft" in path.name]
