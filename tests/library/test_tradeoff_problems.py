"""Leakage against distortion from problem files and from the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run, write
from library.problem_files import LIBRARY, TRADEOFF

from pmlopt import Mechanism, closed_forms, distortion_leakage, leakage_distortion, queries, solve
from pmlopt.errors import InstanceError, SolverUnavailableError
from pmlopt.library import Instance, load
from pmlopt.programs.tradeoff.program import TradeoffProgram

ALL = [instance for instance in LIBRARY if instance.builder in (leakage_distortion, distortion_leakage)]


def asked(instance: Instance) -> TradeoffProgram:
    program = instance.program()
    assert isinstance(program, TradeoffProgram)
    return program


def test_both_directions_are_read(tmp_path: Path) -> None:
    there = load(write(tmp_path, TRADEOFF))
    assert there.closed_value() == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5), abs=1e-14)
    text = TRADEOFF.replace('"leakage_distortion"', '"distortion_leakage"').replace(
        "distortion = 0.25", "leakage = 0.1"
    )
    back = load(write(tmp_path, text.replace("parity_leakage", "parity_distortion")))
    assert asked(back).sense == "distortion"
    noise = closed_forms.parity_distortion(2, 0.1, 0.0)
    assert back.closed_value() == noise
    assert solve(asked(back)).value == pytest.approx(noise, abs=1e-5)
    with pytest.raises(SolverUnavailableError, match="cutting-planes"):
        solve(asked(back), "clarabel")


def test_a_loss_is_read_and_has_no_closed_form(tmp_path: Path) -> None:
    text = TRADEOFF.replace("distortion = 0.25", "distortion = 0.25\nloss = [[0, 2], [1, 0]]")
    problem = load(write(tmp_path, text))
    assert problem.arguments["loss"].tolist() == [[0, 2], [1, 0]]
    with pytest.raises(InstanceError, match="for a parity and its own loss"):
        problem.closed_value()


def test_solve_prints_the_claims() -> None:
    text = run("solve", "tradeoff-parity-figure-6", "--tolerance", "1e-6")
    assert "0.17331" in text
    assert "yes, in decimal arithmetic" in text
    assert "limit 0.2" in text
    found = json.loads(run("solve", "tradeoff-parity-figure-7", "--tolerance", "1e-6", "--json"))
    assert found["agrees"] is True
    assert found["level"] <= 0.2


PARITY = ("--query", "modular-sum", "--records", 2, "--modulus", 2, "--entropy", 0.5)


def test_the_command_designs_curves(tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    found = json.loads(
        run("leakage-distortion", *PARITY, "--leakage", "0.05,0.2", "--plot", picture, "--json")
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    for point, leakage in zip(found, (0.05, 0.2), strict=True):
        expected = closed_forms.parity_distortion(2, leakage, 0.5)
        assert point["value"] == pytest.approx(expected, abs=2e-6)
        assert point["level"] <= leakage


def test_the_command_writes_a_mechanism(tmp_path: Path) -> None:
    out = tmp_path / "mechanism.json"
    text = run("leakage-distortion", *PARITY, "--distortion", 0.2, "-o", out)
    assert "P(output | secret)" in text
    assert Mechanism.load(out).matrix == pytest.approx(np.array([[0.8, 0.2], [0.2, 0.8]]), abs=1e-3)
    run("leakage-distortion", *PARITY, "--distortion", 0.2, "--time-limit", "1e-9", code=3)


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (["--distortion", "0.1", "--leakage", "0.1"], "one of them", 2),
        ([], "one of them", 2),
        (["--distortion", "0.1,0.2", "-o", "a.csv"], "give one limit", 2),
        (["--distortion", "-1"], "the distortion D is -1", 2),
        (["--leakage", "-1"], "the leakage L", 2),
        (["--distortion", "0.1", "--plot", "a.bmp"], "use .png", 2),
    ],
)
def test_the_command_refuses(options: list[str], message: str, code: int) -> None:
    assert message in run("leakage-distortion", *PARITY, *options, code=code)


def test_the_penalty_method_from_the_command_line() -> None:
    query = ("--query", "modular-sum", "--records", 2, "--modulus", 2, "--entropy", 0)
    found = json.loads(run("leakage-distortion", *query, "--leakage", 0.2, "--solver", "penalty", "--json"))
    assert found[0]["bound"] is None
    assert found[0]["gap"] is None
    assert (
        found[0]["value"] >= closed_forms.parity_distortion(2, 0.2, 0.0) - 1e-9
        or found[0]["status"] == "violated"
    )


@pytest.mark.parametrize(
    "query",
    [
        ("--query", "modular-sum", "--records", 3, "--modulus", 3),
        ("--query", "modular-sum", "--records", 2, "--modulus", 2, "--letters", 3),
    ],
)
def test_what_is_designed_is_audited(tmp_path: Path, query: tuple[Any, ...]) -> None:
    """A row for each class of datasets, not for each value: the file goes from one command to the other."""
    target = tmp_path / "mechanism.csv"
    design = ("leakage-distortion", *query, "--entropy", 1, "--distortion", 0.25)
    found = json.loads(run(*design, "--tolerance", 1e-4, "-o", target, "--json"))[0]
    claim = found["level"]
    audit = run("record-leakage", target, *query, "--entropy", 1, "--epsilon", claim + 1e-6, "--json")
    assert json.loads(audit)[0]["bound"] <= claim + 1e-6
    given = queries.ModularSum(query[3], query[5], query[7] if len(query) > 6 else 2)
    distortion = queries.expected_distortion(given, Mechanism.load(target))
    assert distortion <= 0.25 + 1e-12
