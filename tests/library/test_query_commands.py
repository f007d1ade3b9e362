"""The leakage per record and the trade-off with distortion from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run

from pmlopt import Mechanism, closed_forms, queries


@pytest.fixture
def laplace(tmp_path: Path) -> Path:
    path = tmp_path / "laplace.csv"
    queries.laplace(queries.ModularSum(4, 2), 1.0).save(path)
    return path


def test_solve_prints_the_audit_and_writes_it(tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    text = run("solve", "record-parity-laplace-b2", "-o", out)
    assert "0.0795415059" in text
    assert "yes, in decimal arithmetic" in text
    assert "parity_leakage" in text
    written = json.loads(out.read_text())["metadata"]
    assert np.sum(written["certificate"]["joint"]) == pytest.approx(1.0)
    assert Mechanism.load(out).matrix.shape == (2, 2)
    found = json.loads(run("solve", "record-parity-laplace-b2", "--json"))
    assert found["holds"] is True
    assert found["value"] <= found["bound"]
    assert "no prior has it" not in text
    for option, name, message in (
        ("--mps", "a.mps", "MPS holds nothing else"),
        ("--plot", "a.png", "has none"),
    ):
        assert message in run("solve", "record-parity-laplace-b2", option, tmp_path / name, code=2)


def audit(laplace: Path, *more: object, code: int = 0) -> str:
    query = ("--query", "modular-sum", "--records", 4, "--modulus", 2)
    return run("record-leakage", laplace, *query, *more, code=code)


def test_the_command_audits_a_curve(laplace: Path, tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    text = audit(laplace, "--entropy", "0,2,2.7", "--plot", picture)
    assert text.count("0.0795415059") >= 2
    assert "optimal" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(audit(laplace, "--entropy", "2.7,2,2.7", "--json"))["results"]
    assert [row["status"] for row in found] == ["optimal"] * 3
    assert [row["warm_started"] for row in found] == [
        False,
        True,
        False,
    ]  # from the largest entropy down
    assert [row["value"] for row in found] == pytest.approx(
        [0.0110038, 0.0795415, 0.0110038], abs=1e-7
    )
    assert found[0]["holds"] is None


def test_the_command_decides_claims(laplace: Path) -> None:
    assert "The claim FAILS" in audit(laplace, "--entropy", "2.7,2.0", "--epsilon", 0.02, code=1)
    text = audit(laplace, "--entropy", "2.7", "--epsilon", 0.2, "--solver", "alternating", code=3)
    assert "is not decided" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--query", "weight", "--records", "4", "--entropy", "1"], "2 rows"),
        (
            ["--query", "modular-sum", "--records", "4", "--entropy", "1"],
            "--modulus belong together",
        ),
        (
            ["--query", "weight", "--records", "1", "--modulus", "2", "--entropy", "0"],
            "belong together",
        ),
        (
            ["--query", "weight", "--records", "1", "--letters", "3", "--entropy", "0"],
            "--letters belongs",
        ),
        (["--query", "weight", "--records", "1", "--entropy", "x"], "give numbers with commas"),
        (["--query", "weight", "--records", "1", "--entropy", "5"], "no prior has it"),
        (["--query", "weight", "--records", "0", "--entropy", "0"], "number of records"),
        (["--query", "weight", "--records", "1", "--entropy", "0", "--plot", "a.bmp"], "use .png"),
    ],
)
def test_the_audit_refuses(laplace: Path, options: list[str], message: str) -> None:
    assert message in run("record-leakage", laplace, *options, code=2)


def test_solve_prints_the_claims() -> None:
    text = run("solve", "tradeoff-parity-figure-6", "--tolerance", "1e-6")
    assert "0.17331" in text
    assert "yes, in decimal arithmetic" in text
    assert "limit 0.2" in text
    found = json.loads(run("solve", "tradeoff-parity-figure-7", "--tolerance", "1e-6", "--json"))
    assert found["holds"] is True
    assert found["level"] <= 0.2


PARITY = ("--query", "modular-sum", "--records", 2, "--modulus", 2, "--entropy", 0.5)


def test_the_command_designs_curves(tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    options = ("--leakage", "0.05,0.2", "--plot", picture, "--json")
    found = json.loads(run("leakage-distortion", *PARITY, *options))["results"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    for point, leakage in zip(found, (0.05, 0.2), strict=True):
        expected = closed_forms.parity_distortion(2, leakage, 0.5)
        assert point["value"] == pytest.approx(expected, abs=2e-6)
        assert point["level"] <= leakage


def test_the_command_writes_a_mechanism(tmp_path: Path) -> None:
    out = tmp_path / "mechanism.json"
    text = run("leakage-distortion", *PARITY, "--distortion", 0.2, "-o", out)
    assert "P(output | true value)" in text
    assert Mechanism.load(out).matrix == pytest.approx(np.array([[0.8, 0.2], [0.2, 0.8]]), abs=1e-3)
    run("leakage-distortion", *PARITY, "--distortion", 0.2, "--time-limit", "1e-9", code=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--distortion", "0.1", "--leakage", "0.1"], "one of them"), ([], "one of them"),
        (["--distortion", "0.1,0.2", "-o", "a.csv"], "give one limit"),
        (["--distortion", "-1"], "the distortion D is -1"), (["--leakage", "-1"], "the leakage L"),
        (["--distortion", "0.1", "--plot", "a.bmp"], "use .png"),
    ],
)  # fmt: skip
def test_the_trade_off_refuses(options: list[str], message: str) -> None:
    assert message in run("leakage-distortion", *PARITY, *options, code=2)


def test_the_penalty_method_from_the_command_line() -> None:
    query = ("--query", "modular-sum", "--records", 2, "--modulus", 2, "--entropy", 0)
    found = json.loads(
        run("leakage-distortion", *query, "--leakage", 0.2, "--solver", "penalty", "--json")
    )["results"]
    assert found[0]["bound"] is None
    assert found[0]["gap"] is None
    reached = found[0]["value"] >= closed_forms.parity_distortion(2, 0.2, 0.0) - 1e-9
    assert reached or found[0]["status"] == "violated"


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
    found = json.loads(run(*design, "--tolerance", 1e-4, "-o", target, "--json"))["results"][0]
    claim = found["level"]
    audit = run(
        "record-leakage", target, *query, "--entropy", 1, "--epsilon", claim + 1e-6, "--json"
    )
    assert json.loads(audit)["results"][0]["bound"] <= claim + 1e-6
    given = queries.ModularSum(query[3], query[5], query[7] if len(query) > 6 else 2)
    assert queries.expected_distortion(given, Mechanism.load(target)) <= 0.25 + 1e-12
