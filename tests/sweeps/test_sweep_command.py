"""`pmlopt sweep`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import run

from pmlopt import PML, ExpectedLoss, Mechanism, Prior, design, solve
from pmlopt.library import find
from pmlopt.model.utility import absolute

PRIOR = Prior.from_counts({1: 40, 2: 30, 3: 20, 4: 10})


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    path.write_text("level,count\n1,40\n2,30\n3,20\n4,10\n")
    return path


def test_a_table_is_printed_and_written(counts: Path, tmp_path: Path) -> None:
    out, folder, plot = tmp_path / "table.csv", tmp_path / "mechanisms", tmp_path / "plot.svg"
    text = run(
        "sweep", "--prior", counts, "--utility", "absolute", "--epsilon", "0.1:0.9:3", "-o", out,
        "--mechanisms", folder, "--plot", plot,
    )  # fmt: skip
    known, warned, head, *_ = text.splitlines()
    assert known.startswith("The prior is ")
    assert warned.startswith(f"warning: {folder} has the exact counts of ")
    assert head.split() == [
        "epsilon", "status", "value", "gap", "leaks", "[nats]", "solver", "warm", "seconds",
    ]  # fmt: skip
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["epsilon"]) for row in rows] == [0.1, 0.5, 0.9]
    for row in rows:
        best = solve(design(PRIOR, PML(float(row["epsilon"])), ExpectedLoss(absolute)))
        assert float(row["value"]) == pytest.approx(best.value, abs=1e-9)
    assert Mechanism.load(folder / "00002.json").inputs == (1, 2, 3, 4)
    assert b"absolute" in plot.read_bytes() or plot.stat().st_size > 1000
    assert "is there already" in run(
        "sweep", "--prior", counts, "--utility", "absolute", "--epsilon", "1", "-o", out, code=2
    )


def test_workers_give_the_same_table(counts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("sweep", "--prior", counts, "--utility", "absolute", "--epsilon", "0.3,0.9", "--json")
    handed: list[int] = []

    @contextmanager
    def threads(number: int) -> Iterator[Executor]:
        handed.append(number)
        with ThreadPoolExecutor(number) as pool:
            yield pool

    monkeypatch.setattr("pmlopt.cli.worker_options._open_processes", threads)
    alone, found = (json.loads(run(*asked, *more))["rows"] for more in ((), ("--workers", 2)))
    assert handed == [2]
    assert [row["value"] for row in found] == [row["value"] for row in alone]


def test_a_problem_at_other_epsilons() -> None:
    name = "adult-education-absolute"
    text = run("sweep", name, "--epsilon", "0.5,1", "--json")
    prior = find(name).prior
    values = [row["value"] for row in json.loads(text)["rows"]]
    best = [
        solve(design(prior, PML(epsilon), ExpectedLoss(absolute))).value for epsilon in (0.5, 1.0)
    ]
    assert values == pytest.approx(best, abs=1e-7)


def test_a_point_that_fails_exits_with_3(counts: Path) -> None:
    text = run(
        "sweep", "--prior", counts, "--utility", "absolute", "--epsilon", "0.5", "--solver", "closed-form",
        code=3,
    )  # fmt: skip
    assert "failed" in text
    assert "epsilon = 0.5: SolverUnavailableError: closed-form does not solve" in text


def test_a_point_above_the_tolerance_has_its_value_and_its_gap(counts: Path) -> None:
    text = run(
        "sweep", "--prior", counts, "--utility", "absolute", "--epsilon", "0.5", "--solver", "highs",
        "--tolerance", "1e-30", "--json",
    )  # fmt: skip
    (row,) = json.loads(text)["rows"]
    best = solve(design(PRIOR, PML(0.5), ExpectedLoss(absolute)))
    assert row["status"] == "unproved"
    assert row["value"] == pytest.approx(best.value, abs=1e-9)
    assert 0 <= row["gap"] <= 1e-7


def test_bad_input_exits_with_2(counts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(counts.parent)
    for options, said in (
        ("--epsilon 1 --utility hamming", "give the prior"),
        ("--epsilon 1 --prior counts.csv", "give the utility"),
        ("--epsilon 0:1 --prior counts.csv --utility hamming", "START:STOP:COUNT"),
        ("--epsilon 1,-1 --prior counts.csv --utility hamming", "at least 0"),
        ("wcu-example-1 --epsilon 1", "no epsilon"),
        ("adult-education-absolute --epsilon 1 --utility hamming", "leave out"),
        ("adult-education-absolute --epsilon 1 --radius 0.1", "leave out"),
        ("nothing --epsilon 1", "no problem of that name"),
    ):
        assert said in run("sweep", *options.split(), code=2)
    assert [file.name for file in counts.parent.iterdir()] == ["counts.csv"]
