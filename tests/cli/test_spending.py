"""Commands that release or record: their output first, what a ledger leaves, and what the machine lacks."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from commands import run

from pmlopt import PML, Ledger, Mechanism, Prior, design, solve
from pmlopt.cli.options import add_command
from pmlopt.core.failures import is_out_of_memory
from pmlopt.errors import FileFormatError, MissingExtraError, PrivacyError

LETTERS = ["a", "b", "c"]
STREAMS = "ledger stream new moves.csv --person-column who --column place --epsilon 0.8 -o s.json"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with people, a mechanism, and a ledger with a total of 0.7."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(
        "who,level\n" + "".join(f"{k},{'abc'[k % 3]}\n" for k in range(30))
    )
    matrix = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]
    Mechanism(matrix, LETTERS, LETTERS).save("m.json")
    Ledger(Prior.from_counts(dict.fromkeys(LETTERS, 10)), people=30, total=0.7).save("ledger.npz")
    Path("moves.csv").write_text("who,place\np,home\nq,out\np,home\nq,out\np,out\nq,home\np,home\n")
    run(
        *[
            "ledger",
            "stream",
            "new",
            "moves.csv",
            "--person-column",
            "who",
            "--column",
            "place",
            "--epsilon",
            "0.8",
            "-o",
            "s.json",
        ]
    )
    return tmp_path


SPENDING = [
    "ledger stream release s.json --person ann --state out",
    "ledger stream release s.json --person ann --state out --json",
    "apply m.json people.csv --column level --drop who -o wave.csv",
    "apply m.json people.csv --column level --drop who -o wave.csv --ledger ledger.npz",
    "release people.csv --column level --drop who --mechanism m.json -o out --ledger ledger.npz",
    "ledger record ledger.npz m.json people.csv --column level --in-order",
    "answer people.csv --count level --public-classes --epsilon 1 -o counts.csv",
]
CLOSED = [">&-", "> /dev/full", "1< /dev/null"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize(("words", "output"), [*((one, CLOSED[0]) for one in SPENDING),
                                               *((SPENDING[0], one) for one in CLOSED[1:]),
                                               (SPENDING[3], CLOSED[1])])  # fmt: skip
def test_nothing_is_spent_where_the_output_cannot_be_written(
    place: Path, words: str, output: str
) -> None:
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    line = f"exec {sys.executable} -m pmlopt {words} {output}"
    ended = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "standard output cannot be written" in ended.stderr
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_what_is_spent_is_told_where_its_output_is_lost(place: Path) -> None:
    reader, writer = os.pipe()
    code = f"""
import os
from pmlopt.cli import main, streams
kept = streams.note_released
def leave(text):
    os.close({reader})  # whoever reads leaves after the release
    kept(text)
streams.note_released = leave
main("ledger stream release s.json --person ann --state out".split())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=writer,
        stderr=subprocess.PIPE,
        pass_fds=[reader],
        text=True,
    )
    os.close(reader)
    os.close(writer)
    told = process.communicate()[1]
    assert process.returncode == 141
    assert "the output was not delivered, but s.json holds the release of 1 person" in told


def test_the_message_has_the_largest_epsilon_and_how_to_design_for_the_rest(place: Path) -> None:
    words = ["release", "people.csv", "--column", "level", "--drop", "who", "--utility", "hamming",
             "--ledger", "ledger.npz"]  # fmt: skip
    run(*words, "--epsilon", 0.5, "-o", "one")
    told = run(*words, "--epsilon", 0.5, "-o", "two", code=1)
    found = re.search(r"The largest epsilon that fits is ([0-9.]+):", told)
    assert found is not None
    assert "--within-ledger" in told
    assert "Levels of local differential privacy add up" in told
    largest = float(found[1])
    assert 0 < largest < 0.5
    assert not Path("two").exists()
    copy = Path("ledger.npz").read_bytes()
    run(*words, "--epsilon", largest, "-o", "two")
    Path("ledger.npz").write_bytes(copy)
    run(*words, "--epsilon", largest * 1.05, "-o", "three", code=1)
    run(*words, "--within-ledger", "-o", "three")
    assert Ledger.load("ledger.npz").releases == 2
    assert 0.69 < Ledger.load("ledger.npz").level <= 0.7  # all that is left is used
    assert "All of it holds" in run("check", "three")
    told = run(*words[:-2], "--within-ledger", "-o", "four", code=2)
    assert "give the ledger" in told


def test_a_design_within_a_ledger_is_applied_with_it(place: Path) -> None:
    data = ["people.csv", "--column", "level"]
    run("apply", "m.json", *data, "--drop", "who", "-o", "one.csv", "--ledger", "ledger.npz")
    words = ["design", "--prior", *data, "--utility", "hamming", "-o", "second.json"]
    assert "--epsilon" in run(*words, code=2)
    assert "--within-ledger" in run(*words, "--ledger", "ledger.npz", code=2)
    run(*words, "--ledger", "ledger.npz", "--within-ledger")
    run("apply", "second.json", *data, "--drop", "who", "-o", "two.csv", "--ledger", "ledger.npz")
    book = Ledger.load("ledger.npz")
    assert book.releases == 2
    assert 0.69 < book.level <= 0.7
    run(*words[:-1], "last.json", "--ledger", "ledger.npz", "--within-ledger", "--epsilon", 0.01)
    assert book.allows(Mechanism.load("last.json"))


def test_a_joint_requirement_is_that_of_each_history() -> None:
    rng, prior = np.random.default_rng(0), np.array([0.5, 0.3, 0.2])
    for _ in range(20):
        ledger = Ledger(prior, people=9, total=1.0)
        first = rng.dirichlet([4, 4, 4], 3)
        ledger.record(first, rng.integers(0, 3, 9))
        joint = ledger.joint_requirement()
        for _ in range(8):
            matrix = rng.dirichlet([6, 6, 6], 3)
            assert joint.holds(prior, matrix) == (ledger.level_after(matrix) <= 1.0)
            alone = [
                ledger.requirement(person=int(group[0])).holds(ledger.prior(int(group[0])), matrix)
                for group in ledger.groups()
            ]
            assert joint.holds(prior, matrix) == all(alone)


def test_nothing_above_the_total_is_allowed_however_little() -> None:
    prior = Prior.from_counts([1, 1])
    half = np.array([[0.75, 0.25], [0.25, 0.75]])  # its level is log 1.5
    for more, allowed in ((-5e-14, False), (-1e-15, False), (1e-15, True)):
        ledger = Ledger(prior, total=float(np.log(1.5)) + more)
        assert ledger.allows(half) is allowed
        if not allowed:
            with pytest.raises(PrivacyError, match="over the total"):
                ledger.record(half, [0])
    for epsilon in (
        0.1,
        0.25,
        0.4,
        0.6,
    ):  # a design uses the total up, and is proved in exact arithmetic
        result = solve(design(prior, PML(epsilon), "hamming"))
        assert Ledger(prior, total=epsilon).allows(result.mechanism)


NO_MEMORY: list[Exception] = [
    MemoryError(),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ImportError("/lib/x.so: failed to map segment from shared object"),
    ImportError("libarrow.so: cannot allocate memory in static TLS block"),
    RuntimeError("can't start new thread"),
    OSError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
]


def raised(error: Exception) -> Any:
    """What becomes of a command that raises an error."""

    @click.group()
    def group() -> None:
        pass

    @add_command(group, "fail")
    def fail() -> None:
        raise error

    from click.testing import CliRunner

    return CliRunner().invoke(group, ["fail"])


@pytest.mark.parametrize("error", NO_MEMORY, ids=lambda error: type(error).__name__)
def test_too_little_memory_is_told_in_words(error: Exception) -> None:
    ended = raised(error)
    assert ended.exit_code == 3
    assert "more memory than there is" in ended.output
    assert "Traceback" not in ended.output
    missing = MissingExtraError("install it")
    missing.__cause__ = error
    assert raised(missing).exit_code == 3


def test_other_errors_are_not_taken_for_that() -> None:
    assert not is_out_of_memory(ImportError("No module named 'polars'"))
    assert raised(FileFormatError("a.csv: is no table")).exit_code == 2
    assert raised(ImportError("No module named 'polars'")).exit_code == 70
    assert raised(BrokenExecutor("a process was terminated abruptly")).exit_code == 3
