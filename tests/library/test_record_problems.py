"""The leakage per record from problem files and from the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from commands import run, write
from library.problem_files import LIBRARY, RECORD
from oracles import records as records_oracle

from pmlopt import Mechanism, queries, record_leakage, solve
from pmlopt.errors import InstanceError, SolverUnavailableError
from pmlopt.library import Instance, load
from pmlopt.programs.record_leakage.program import RecordLeakage

ALL = [instance for instance in LIBRARY if instance.builder is record_leakage]


def asked(instance: Instance) -> RecordLeakage:
    program = instance.program()
    assert isinstance(program, RecordLeakage)
    return program


@pytest.fixture
def laplace(tmp_path: Path) -> Path:
    path = tmp_path / "laplace.csv"
    queries.laplace(queries.ModularSum(4, 2), 1.0).save(path)
    return path


@pytest.mark.parametrize("instance", ALL, ids=lambda instance: instance.id)
def test_small_instances_agree_with_a_search_over_all_datasets(instance: Instance) -> None:
    problem = asked(instance)
    channel, query = problem.channel, problem.channel.query
    if query.records > 4:
        return
    rows = channel.rows[channel.table().ravel()]
    every = records_oracle.datasets(query.alphabets, rows)
    best = records_oracle.largest(every, 0, problem.entropy)
    assert records_oracle.entropy(best) >= problem.entropy - 1e-12
    assert instance.expected is not None
    assert records_oracle.information(every, 0, best) == pytest.approx(instance.expected.value, abs=1e-6)


def test_a_good_file_becomes_a_problem(tmp_path: Path) -> None:
    instance = load(write(tmp_path, RECORD))
    problem = asked(instance)
    assert problem.channel.query == queries.ModularSum(3, 2)
    assert problem.channel.mechanism.matrix.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert problem.entropy == pytest.approx(math.log(4))
    closed = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert instance.closed_value() == pytest.approx(closed, abs=1e-14)
    assert solve(problem).value == pytest.approx(closed, abs=1e-9)
    with pytest.raises(InstanceError, match="small has no prior"):
        _ = instance.prior
    with pytest.raises(SolverUnavailableError, match="branch-and-bound"):
        solve(problem, "highs")


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
    assert found["agrees"] is True
    assert found["value"] <= found["bound"]
    assert "no prior has it" not in text
    message = run("solve", "record-parity-laplace-b2", "--mps", tmp_path / "a.mps", code=2)
    assert "MPS holds nothing else" in message
    message = run("solve", "record-parity-laplace-b2", "--plot", tmp_path / "a.png", code=2)
    assert "has none" in message


def audit(laplace: Path, *more: object, code: int = 0) -> str:
    query = ("--query", "modular-sum", "--records", 4, "--modulus", 2)
    return run("record-leakage", laplace, *query, *more, code=code)


def test_the_command_audits_a_curve(laplace: Path, tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    text = audit(laplace, "--entropy", "0,2,2.7", "--plot", picture)
    assert text.count("0.0795415059") >= 2
    assert "optimal" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(audit(laplace, "--entropy", "2.7,2,2.7", "--json"))
    assert [row["status"] for row in found] == ["optimal"] * 3
    assert [row["warm_started"] for row in found] == [False, True, False]  # from the largest entropy down
    assert [row["value"] for row in found] == pytest.approx([0.0110038, 0.0795415, 0.0110038], abs=1e-7)
    assert found[0]["holds"] is None


def test_the_command_decides_claims(laplace: Path) -> None:
    assert "The claim FAILS" in audit(laplace, "--entropy", "2.7,2.0", "--epsilon", 0.02, code=1)
    text = audit(laplace, "--entropy", "2.7", "--epsilon", 0.2, "--solver", "alternating", code=3)
    assert "is not decided" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--query", "weight", "--records", "4", "--entropy", "1"], "2 rows"),
        (["--query", "modular-sum", "--records", "4", "--entropy", "1"], "--modulus belong together"),
        (["--query", "weight", "--records", "1", "--modulus", "2", "--entropy", "0"], "belong together"),
        (["--query", "weight", "--records", "1", "--letters", "3", "--entropy", "0"], "--letters belongs"),
        (["--query", "weight", "--records", "1", "--entropy", "x"], "give numbers with commas"),
        (["--query", "weight", "--records", "1", "--entropy", "5"], "no prior has it"),
        (["--query", "weight", "--records", "0", "--entropy", "0"], "number of records"),
        (["--query", "weight", "--records", "1", "--entropy", "0", "--plot", "a.bmp"], "use .png"),
    ],
)
def test_the_command_refuses(laplace: Path, options: list[str], message: str) -> None:
    assert message in run("record-leakage", laplace, *options, code=2)
