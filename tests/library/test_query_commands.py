"""The leakage per record and the trade-off with distortion by problem files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from commands import run

from pmlopt import Mechanism, closed_forms, queries
from pmlopt.cli import main


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


def save(folder: Path, builder: str, more: str, name: str = "own") -> Path:
    """A problem file on the sum of bits modulo 2."""
    path = folder / f"{name}.toml"
    head = f'id = "{name}"\ntitle = "Own"\nbuilder = "{builder}"\n'
    path.write_text(f'{head}source = {{ cite = "own", where = "here" }}\n{more}\n')
    return path


def audit(laplace: Path, *more: object, code: int = 0, expected: str = "") -> str:
    query = "query = { kind = 'modular-sum', records = 4, modulus = 2 }"
    text = f"[params]\n{query}\nentropy = 2.7\n{expected}"
    path = save(laplace.parent, "record_leakage", text)
    return run("solve", path, "--mechanism", laplace, *more, code=code)


def test_a_sweep_has_the_leakage_at_several_entropies(laplace: Path, tmp_path: Path) -> None:
    matrix = Mechanism.load(laplace).matrix.tolist()
    text = "[params]\nquery = { kind = 'modular-sum', records = 4, modulus = 2 }\nentropy = 1.0\n"
    path = save(tmp_path, "record_leakage", f"{text}mechanism = {{ matrix = {matrix} }}")
    picture = tmp_path / "curve.png"
    found = json.loads(run("sweep", path, "--over", "entropy=2.7,2,0", "--plot", picture, "--json"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [row["entropy"] for row in found["rows"]] == [2.7, 2, 0]
    assert [row["status"] for row in found["rows"]] == ["optimal"] * 3
    assert [row["value"] for row in found["rows"]] == pytest.approx(
        [0.0110038, 0.0795415, 0.0795415], abs=1e-7
    )


def test_a_claim_on_a_mechanism_is_decided(laplace: Path) -> None:
    claim = "[expected]\nbasis = 'derived'\nrelation = '<='\nvalue = "
    assert "DISAGREES" in audit(laplace, code=1, expected=f"{claim}0.01")
    assert ": agrees" in audit(laplace, expected=f"{claim}0.02")
    # a local method finds a prior that leaks less, and proves no bound
    text = audit(laplace, "--solver", "alternating", expected=f"{claim}0.02")
    assert "not decided: the gap is open" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query = { kind = 'weight', outcomes = [0, 1, 2, 3, 4] }\nentropy = 1.0", "2 rows"),
        ("query = { kind = 'modular-sum', records = 4 }\nentropy = 1.0", "modulus"),
        ("query = { kind = 'modular-sum', records = 4, modulus = 2 }\nentropy = 'x'", "entropy"),
        (
            "query = { kind = 'modular-sum', records = 4, modulus = 2 }\nentropy = 5.0",
            "no prior has it",
        ),
        (
            "query = { kind = 'modular-sum', records = 0, modulus = 2 }\nentropy = 0.0",
            "number of records",
        ),
    ],
)
def test_the_audit_refuses(laplace: Path, text: str, message: str) -> None:
    path = save(laplace.parent, "record_leakage", f"[params]\n{text}")
    assert message in run("solve", path, "--mechanism", laplace, code=2)


def test_solve_prints_the_claims() -> None:
    text = run("solve", "tradeoff-parity-figure-6", "--tolerance", "1e-6")
    assert "0.17331" in text
    assert "yes, in decimal arithmetic" in text
    assert "limit 0.2" in text
    found = json.loads(run("solve", "tradeoff-parity-figure-7", "--tolerance", "1e-6", "--json"))
    assert found["holds"] is True
    assert found["level"] <= 0.2


PARITY = "[params]\nquery = { kind = 'modular-sum', records = 2, modulus = 2 }\nentropy = 0.5\n"


def test_a_sweep_designs_a_curve(tmp_path: Path) -> None:
    path = save(tmp_path, "distortion_leakage", f"{PARITY}leakage = 0.1")
    found = json.loads(run("sweep", path, "--over", "leakage=0.05,0.2", "--json"))["rows"]
    for point, leakage in zip(found, (0.05, 0.2), strict=True):
        expected = closed_forms.parity_distortion(2, leakage, 0.5)
        assert point["value"] == pytest.approx(expected, abs=2e-6)
        assert point["level"] <= leakage


def test_a_mechanism_is_written(tmp_path: Path) -> None:
    path, out = (
        save(tmp_path, "leakage_distortion", f"{PARITY}distortion = 0.2"),
        tmp_path / "m.json",
    )
    text = run("solve", path, "-o", out)
    assert "P(output | true value)" in text
    assert Mechanism.load(out).matrix == pytest.approx(np.array([[0.8, 0.2], [0.2, 0.8]]), abs=1e-3)
    run("solve", path, "--time-limit", "1e-9", code=3)


@pytest.mark.parametrize(
    ("limit", "message"),
    [("distortion = -1.0", "the distortion D is -1"), ("leakage = -1.0", "the leakage L")],
)
def test_the_trade_off_refuses(tmp_path: Path, limit: str, message: str) -> None:
    builder = "leakage_distortion" if limit.startswith("d") else "distortion_leakage"
    path = save(tmp_path, builder, PARITY + limit)
    assert message in run("solve", path, code=2)
    assert "use .png" in run("sweep", path, "--over", "entropy=0,1", "--plot", "a.bmp", code=2)


def test_the_penalty_method_from_the_command_line(tmp_path: Path) -> None:
    path = save(tmp_path, "distortion_leakage", PARITY.replace("0.5", "0.0") + "leakage = 0.2")
    shown = CliRunner().invoke(main, ["solve", str(path), "--solver", "penalty", "--json"])
    found = json.loads(shown.stdout)
    assert found["bound"] is None
    assert found["gap"] is None
    reached = found["value"] >= closed_forms.parity_distortion(2, 0.2, 0.0) - 1e-9
    assert (reached and shown.exit_code == 0) or (found["status"], shown.exit_code) == (
        "violated",
        3,
    )


@pytest.mark.parametrize(
    "query", [{"records": 3, "modulus": 3}, {"records": 2, "modulus": 2, "letters": 3}]
)
def test_what_is_designed_is_audited(tmp_path: Path, query: dict[str, int]) -> None:
    """A row for each class of datasets, not for each value: the file goes from one problem to the other."""
    target, given = tmp_path / "mechanism.csv", queries.ModularSum(**query)
    fields = ", ".join(f"{name} = {value}" for name, value in query.items())
    asked = f"[params]\nquery = {{ kind = 'modular-sum', {fields} }}\nentropy = 1.0\n"
    path = save(tmp_path, "leakage_distortion", f"{asked}distortion = 0.25")
    claim = json.loads(run("solve", path, "--tolerance", 1e-4, "-o", target, "--json"))["level"]
    other = save(tmp_path, "record_leakage", asked, "audit")
    audited = json.loads(run("solve", other, "--mechanism", target, "--json"))
    assert audited["bound"] <= claim + 1e-6
    assert queries.expected_distortion(given, Mechanism.load(target)) <= 0.25 + 1e-12
