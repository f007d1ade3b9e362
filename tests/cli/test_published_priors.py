"""Files of designs: exact counts with a warning, or the rounded ones of a release."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import run_fully as run

from pmlopt import load
from pmlopt.publishing import build_stated_prior

COUNTS = {"no": 143, "yes": 57, "rare": 3}
WARNING = (
    "m.json has the exact counts of 203 people: do not publish it, or design with --round-counts"
)


def find_numbers(value: Any) -> Iterator[float]:
    """Yield every number within plain data."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from find_numbers(part)
    elif isinstance(value, int | float):
        yield value


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [letter for letter, number in COUNTS.items() for _ in range(number)]
    Path("people.csv").write_text("ill\n" + "".join(f"{letter}\n" for letter in rows))
    table = "".join(f"{letter},{COUNTS[letter]}\n" for letter in sorted(COUNTS))
    Path("c.csv").write_text("ill,count\n" + table)
    run("problems", "new", "least-leakage", "-o", "least.toml")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("design", "--epsilon", "0.4", "--utility", "hamming"),
        ("solve", "least.toml"),
    ],
)
def test_a_file_with_exact_counts_is_warned_of_and_one_with_rounded_counts_has_none(
    counts: Path, command: tuple[str, ...]
) -> None:
    asked = (*command, "--prior", "c.csv", "-o", "m.json")
    assert WARNING in run(*asked).stderr
    applied = ("apply", "m.json", "people.csv", "--column", "ill")
    assert WARNING in run(*applied, "-o", "a.csv").stderr
    run("verify", "m.json")
    rounded = run(*asked, "--round-counts").stderr
    assert "warning" not in rounded
    assert "by --round-counts; no: 0.7, rare: 0.05, yes: 0.25" in rounded  # 140, 10 and 50 of 200
    assert run(*applied, "-o", "b.csv").stderr.count("exact counts") == 0
    prior = json.loads((counts / "m.json").read_text())["metadata"]["prior"]
    stated = build_stated_prior(dict(sorted(COUNTS.items())))
    assert prior["counts"] == list(stated.counts or ()) == [140, 10, 50]  # 20 steps for 203 people
    assert prior["samples"] is None
    assert prior["probabilities"] == stated.probabilities.tolist()
    # the level of a matrix alone is the one that was asked for under the exact counts
    assert "m.csv has the exact counts of 203 people" in run(*asked[:-1], "m.csv").stderr


def test_a_set_of_a_sample_needs_the_exact_counts(counts: Path) -> None:
    more = ("--counts", "c.csv", "--confidence-delta", "0.05")
    asked = ("design", *more, "--epsilon", "0.4", "--utility", "hamming")
    assert "needs the exact counts" in run(*asked, "--round-counts", code=2).stderr
    run(*asked)


def test_the_joint_law_of_a_secret_is_rounded_too(counts: Path) -> None:
    # 24 steps for 244 people: 131 and 29 of town x, 44 and 40 of town y
    table = {("no", "x"): 131, ("yes", "x"): 29, ("no", "y"): 44, ("yes", "y"): 40}
    rows = "".join(f"{ill},{town}\n" * number for (ill, town), number in table.items())
    (counts / "pairs.csv").write_text("ill,town\n" + rows)
    about = ("--about", "pairs.csv", "--column", "ill", "--secret-column", "town")
    asked = ("design", "--epsilon", "0.4", *about, "--utility", "hamming", "-o", "m.json")
    assert "exact counts of 244 people" in run(*asked).stderr
    assert "warning" not in run(*asked, "--round-counts").stderr
    text = (counts / "m.json").read_text()
    assert not {131, 29, 44} & set(find_numbers(json.loads(text)))
    prior = load(counts / "m.json").certificate.listed_prior
    assert prior.probabilities.tolist() == pytest.approx([170 / 240, 70 / 240], abs=1e-15)
    run("verify", "m.json")


def test_what_is_no_sample_stays_as_it_is(counts: Path) -> None:
    (counts / "shares.csv").write_text("ill,share\nno,0.715\nyes,0.285\n")
    asked = (
        "design",
        "--prior",
        "shares.csv",
        "--epsilon",
        "0.2",
        "--utility",
        "hamming",
        "-o",
        "m.json",
    )
    assert "warning" not in run(*asked).stderr
    first = (counts / "m.json").read_text()
    assert "warning" not in run(*asked, "--round-counts").stderr
    same = [
        json.loads(text)["metadata"]["prior"] for text in (first, (counts / "m.json").read_text())
    ]
    assert same[0] == same[1]
    circle = (
        "design",
        "--circle",
        "5",
        "--epsilon",
        "0.4",
        "--utility",
        "hamming",
        "--round-counts",
    )
    assert "--round-counts does not go with" in run(*circle, code=2).stderr


def test_the_proof_of_an_audit_under_exact_counts_is_warned_of(counts: Path) -> None:
    (counts / "r.csv").write_text("ill,a,b\nno,0.6,0.4\nrare,0.5,0.5\nyes,0.5,0.5\n")
    (counts / "shares.csv").write_text("ill,share\nno,0.7\nrare,0.02\nyes,0.28\n")
    asked = ("audit", "r.csv", "--epsilon", "1", "-o", "proved.json")
    warned = run(*asked, "--prior", "c.csv").stderr
    assert "proved.json has the exact counts of 203 people: do not publish it" in warned
    assert "exact counts" not in run(*asked, "--prior", "shares.csv").stderr


def test_a_problem_file_with_counts_is_warned_of(counts: Path) -> None:
    problem = """
id = "illness"
title = "Illness"
builder = "design"
source = { cite = "own", where = "a survey" }
[params]
prior = { counts = [143, 57, 3] }
privacy = { name = "pml", epsilon = 0.4 }
utility = "hamming"
"""
    (counts / "illness.toml").write_text(problem)
    warned = run("solve", "illness.toml", "-o", "m.json").stderr
    assert WARNING in warned
    assert "m.csv has the exact counts" in run("solve", "illness.toml", "-o", "m.csv").stderr


def test_the_remedy_of_a_warning_is_one_that_is_taken(counts: Path) -> None:
    rows = "".join(f"{ill},{town}\n" * 20 for ill in ("no", "yes") for town in "xy")
    (counts / "pairs.csv").write_text("ill,town\n" + rows)
    design = ("design", "--epsilon", "0.4", "--utility", "hamming", "-o", "m.json")
    about = ("--about", "pairs.csv", "--column", "ill", "--secret-column", "town")
    for more in (("--prior", "c.csv"), ("--prior", "c.csv", "--radius", "0.1"), about):
        assert "or design with --round-counts" in run(*design, *more).stderr
        assert "warning" not in run(*design, *more, "--round-counts").stderr
    sampled = run(*design, "--counts", "c.csv", "--confidence-delta", "0.05").stderr
    assert "or release through pmlopt release --confidence-delta" in sampled


def test_the_mechanisms_of_a_sweep_are_warned_of_or_rounded(counts: Path) -> None:
    asked = ("sweep", "--prior", "c.csv", "--epsilon", "0.2,0.4", "--utility", "hamming")
    saved = run(*asked, "--mechanisms", "exact").stderr
    assert "exact has the exact counts of 203 people: do not publish it, or sweep with" in saved
    assert "warning" not in run(*asked).stderr
    assert "warning" not in run(*asked, "--round-counts", "--mechanisms", "rounded").stderr
    files = list((counts / "rounded").glob("*.json"))
    assert len(files) == 2
    for file in files:
        assert json.loads(file.read_text())["metadata"]["prior"]["counts"] == [140, 10, 50]
    assert (
        "leave out their options"
        in run(
            "sweep", "adult-education-infinite", "--epsilon", "0.2", "--round-counts", code=2
        ).stderr
    )
