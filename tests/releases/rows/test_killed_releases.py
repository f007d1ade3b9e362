"""Releases that are killed before a step, or race: published, acknowledged and recorded are the same."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from fuzzing import killed_releases as killed

from pmlopt import Ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")

KINDS = {command.name: number for number, command in enumerate(killed.commands())}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the commands read, which is the current one."""
    monkeypatch.chdir(tmp_path)
    killed.warm_up()
    killed.prepare(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", KINDS)
def test_a_release_that_is_killed_before_a_step_is_ended_by_the_same_command(
    place: Path, name: str
) -> None:
    number = KINDS[name]
    command = killed.commands()[number]
    # the script kills before each; the kinds share most steps, and each has others here
    assert killed.kill_at_steps(place, command, every=len(KINDS) + 3, start=number) > number


@pytest.mark.parametrize(("targets", "ledgers"), killed.RACES)
def test_of_four_writers_those_that_are_acknowledged_are_published_and_recorded(
    place: Path, targets: list[str], ledgers: list[str]
) -> None:
    kind = KINDS["apply ledger"]
    assert killed.race(place, kind, targets, ledgers, random.Random(0)) == len(set(targets))


def test_a_release_that_another_ledger_may_hold_is_left_to_its_own_command(place: Path) -> None:
    first, second = (
        killed.commands("out", name)[KINDS["apply ledger"]] for name in ("a.npz", "b.npz")
    )
    for step in range(100):  # the last state before it is published: recorded, and still a draft
        killed.clear(place)
        for name in ("a.npz", "b.npz"):
            killed.begin_ledger(name)
        assert killed.wait(killed.fork(first.words, killed.kill_before_step(step))) < 0
        if Ledger.load("a.npz").releases:
            break
    assert not Path("out.csv").exists()
    assert killed.wait(killed.fork(second.words)) == 2
    assert "a release with another ledger was interrupted" in Path("output").read_text()
    assert Ledger.load("b.npz").releases == 0
    assert killed.wait(killed.fork(first.words)) == 0
    killed.check_ledger("a.npz", ["out.csv"])
    killed.check_nothing_left(place, ["out.csv", "a.npz", "b.npz"])
