"""Requirements and utilities of a person's own module, known by name once it is imported."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run, run_fully

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar
from pmlopt import FInformation, LIP

@dataclass(frozen=True)
class Evenly(LIP):
    """LIP under a name of its own."""

    name: ClassVar[str] = "evenly"

class Fourth(FInformation):
    kind: ClassVar[str] = "fourth"

    def __init__(self):
        super().__init__(lambda lifts: lifts**4 - 1)
'''
PROBLEM = """
id = "mine"
title = "A requirement of one's own"
builder = "design"
source = { cite = "nobody", where = "nowhere" }
params.prior = { counts = [3, 1] }
params.privacy = { name = "evenly", lower = 0.5, upper = 0.5 }
params.utility = "hamming"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "its_own_rules.py").write_text(MODULE)
    (tmp_path / "p.csv").write_text("letter,count\na,3\nb,1\n")
    (tmp_path / "mine.toml").write_text(PROBLEM)
    yield tmp_path
    module = sys.modules.pop("its_own_rules", None)
    if module is not None:  # no longer known to the tests that follow
        del module.Evenly.name, module.Fourth.kind


OWN = ("--import", "its_own_rules")


def test_a_requirement_and_an_information_of_ones_own_are_solved_saved_and_verified() -> None:
    design = ("design", "--prior", "p.csv", "--epsilon", "0.5", "--utility")
    run("solve", "mine.toml", code=2)
    assert "'fourth' is not known" in run(*design, "fourth", code=2)
    found = json.loads(run_fully("solve", "mine.toml", *OWN, "-o", "mine.json", "--json").stdout)
    same, known = (
        json.loads(run(*design, "hamming", "--privacy", name, *OWN, "--json"))
        for name in ("evenly", "lip")
    )
    assert found["value"] == pytest.approx(same["value"], abs=1e-12)
    assert same["value"] == known["value"]
    assert (
        json.loads(Path("mine.json").read_text())["metadata"]["certificate"]["privacy"]["name"]
        == "evenly"
    )
    run(*design, "fourth", "-o", "f.json", *OWN)
    for name in ("mine.json", "f.json"):
        run("verify", name, *OWN)


def test_what_is_not_known_gets_the_nearest_name() -> None:
    for module in ("there_is_none", "1 + 1", ""):
        assert f"--import {module}" in run("solve", "mine.toml", "--import", module, code=2)
    design = ("design", "--prior", "p.csv", "--epsilon", "0.5", "--utility", "hamming", "--privacy")
    assert "did you mean 'maximal-leakage'?" in run(*design, "maximum-leakage", code=2)
    assert "numerators, for which there is no option" in run(*design, "ratio-bound", code=2)
