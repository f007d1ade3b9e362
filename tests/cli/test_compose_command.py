"""The product of several mechanisms from the shell, and its file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from cli.hostile import refused, write
from commands import run, run_fully

from pmlopt import Ledger, Mechanism, Prior, leakage_level, load
from pmlopt.releases import attribute_levels

RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])
PAIRS = "smokes,sex,count\nno,f,4\nno,m,1\nyes,f,1\nyes,m,4\n"


@pytest.fixture
def pairs(folder: Path) -> Path:
    write(folder, "pairs.csv", PAIRS)
    Mechanism(RESPONSE, ["no", "yes"], ["no", "yes"]).save(folder / "smokes.csv")
    Mechanism(RESPONSE, ["f", "m"], ["f", "m"]).save(folder / "sex.csv")
    return folder


def test_the_product_of_one_secret_is_written(pairs: Path) -> None:
    write(pairs, "prior.csv", "smokes,count\nno,1\nyes,1\n")
    text = run("audit", "smokes.csv", "smokes.csv", "--prior", "prior.csv", "-o", "twice.json")
    assert "twice.json" in text
    twice = Mechanism.load(pairs / "twice.json")
    assert twice.inputs == ("no", "yes")
    assert twice.outputs == (("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes"))
    assert math.exp(leakage_level([0.5, 0.5], twice)) == pytest.approx(1.8)
    again = run("audit", "twice.json", "--prior", "prior.csv", "--epsilon", "0.6")
    assert f"{math.log(1.8):.6f}"[:5] in again


def test_attributes_have_a_column_each_in_the_prior(pairs: Path) -> None:
    arguments = ["smokes.csv", "sex.csv", "--attributes", "--prior", "pairs.csv"]
    shown = json.loads(run("audit", *arguments, "--json"))
    known = attribute_levels(np.array([[4, 1], [1, 4]]), [RESPONSE, RESPONSE])
    assert shown["level"] == pytest.approx(known.together)
    assert list(shown["joint_levels"].values()) == pytest.approx(known.each)
    assert shown["levels"] == pytest.approx(dict.fromkeys(arguments[:2], math.log(1.5)))
    # outputs that point at a pair which is rare are the most evidence for it
    assert shown["letter"] in (["no", "m"], ["yes", "f"])
    assert "all attributes together" in run("audit", *arguments, "-o", "both.json")
    both = Mechanism.load(pairs / "both.json")
    assert both.inputs == (("no", "f"), ("no", "m"), ("yes", "f"), ("yes", "m"))
    np.testing.assert_array_equal(both.matrix, np.kron(RESPONSE, RESPONSE))
    prior = Prior([0.4, 0.1, 0.1, 0.4], both.inputs)
    assert leakage_level(prior, both) == pytest.approx(known.together)


def test_what_cannot_be_composed_is_told(pairs: Path) -> None:
    both = "smokes.csv sex.csv --attributes --prior pairs.csv"
    for words in (
        "smokes.csv sex.csv --prior pairs.csv", "sex.csv smokes.csv --attributes --prior pairs.csv",
        "smokes.csv --attributes --prior pairs.csv", "smokes.csv --prior pairs.csv --radius 0.1",
        "--prior pairs.csv", f"{both} -o pairs.csv", f"{both} -o missing/both.csv", f"{both} -o both.dat",
    ):  # fmt: skip
        refused(pairs, f"audit {words}")


def test_folders_of_releases_are_audited_under_the_law_that_they_state(folder: Path) -> None:
    write(folder, "people.csv", "c,d\n" + "a,x\nb,x\nc,y\na,y\n" * 50)
    write(folder, "others.csv", "c,d\n" + "a,x\nb,x\nb,y\nc,y\n" * 50)
    stated = write(folder, "stated.csv", "c,count\na,100\nb,50\nc,50\n")
    released = ("--utility", "hamming", "--drop-all", "--epsilon")
    for data, epsilon, name in (("people", 0.8, "A"), ("people", 0.9, "B"), ("others", 0.8, "C")):
        run("release", f"{data}.csv", "--column", "c", *released, str(epsilon), "-o", name)
    files = [f"{name}/mechanisms/c.json" for name in "AB"]
    found = [
        json.loads(run_fully("audit", *mechanisms, "--json").stdout)["levels_together"]
        for mechanisms in (
            ["A", "B"],
            [*files, "--prior", stated.name],
            ["A", "B", "--prior", stated.name],
        )
    ]
    assert found[0] == found[1] == found[2]
    assert found[0][0] == pytest.approx(0.8)
    assert "that C states are others than those of A" in refused(folder, "audit A B C")
    assert "B/mechanisms/c.json): a prior is given by" in refused(folder, f"audit A {files[1]}")
    described = json.loads((folder / "B/release.json").read_text())
    described["parts"][0]["mechanism"] = "../A/mechanisms/c.json"
    (folder / "B/release.json").write_text(json.dumps(described))
    assert "../A/mechanisms/c.json" in refused(folder, "audit A B")  # leads out of the folder
    parts = "".join(f'[release.{one}]\nepsilon = 1\nutility = "hamming"\n' for one in "cd")
    write(folder, "plan.toml", parts)
    run("release", "people.csv", "--plan", "plan.toml", "-o", "D")
    assert "D: releases 2 columns" in refused(folder, "audit D D")


def test_a_claim_that_holds_is_handed_on_with_its_proof(pairs: Path) -> None:
    write(pairs, "known.csv", "smokes,count\nno,3\nyes,1\n")
    audit = ["audit", "smokes.csv", "--prior", "known.csv"]
    said = run(*audit, "--epsilon", "0.7", "-o", "proved.json")
    assert "The mechanism is written to proved.json, with the proof of the claim." in said
    assert "All that the file claims holds." in run("verify", "proved.json")
    assert "Wrote proved.html." in run("report", "proved.json")
    run(*audit, "--epsilon", "0.5", "-o", "false.json", code=1)
    assert not (pairs / "false.json").exists()
    refused(pairs, "audit smokes.csv --prior known.csv -o proof.json")
    refused(pairs, "audit smokes.csv --prior known.csv --epsilon 0.7 -o known.csv")


def test_several_columns_are_counted_as_tuples(pairs: Path) -> None:
    write(pairs, "people.csv", "smokes,sex\nno,f\nno,m\nno,f\nyes,f\n")
    columns = ("--column", "smokes", "--column", "sex")
    asked = ("--epsilon", 1, "--utility", "hamming", "-o", "d.json")
    run("design", "--prior", "people.csv", *columns, *asked)
    assert load(pairs / "d.json").certificate.listed_prior.counts == (2, 1, 1)
    run("ledger", "new", "book.npz", "--prior", "people.csv", "--column", "smokes", "--column", "sex",
        "--people", 4, "--total", 2)  # fmt: skip
    assert Ledger.load(pairs / "book.npz").initial.labels == (
        ("no", "f"),
        ("no", "m"),
        ("yes", "f"),
    )
    run("apply", "smokes.csv", "people.csv", "--column", "smokes", "--and-mechanism", "sex.csv", "sex",
        "--ledger", "book.npz", "-o", "wave.csv")  # fmt: skip
    assert Ledger.load(pairs / "book.npz").releases == 1


def test_the_level_after_each_draw_is_printed(pairs: Path) -> None:
    """k equal answers: 3^k / (3^k / 2 + 1 / 2), of two equally likely letters."""
    write(pairs, "prior.csv", "smokes,count\nno,1\nyes,1\n")
    Mechanism(RESPONSE[::-1], ["yes", "no"], ["no", "yes"]).save(pairs / "turned.csv")
    draws = ["smokes.csv", "turned.csv", "smokes.csv"]
    shown = json.loads(run("audit", *draws, "--prior", "prior.csv", "--json"))
    expected = [math.log(2 * 3**k / (3**k + 1)) for k in (1, 2, 3)]
    assert shown["levels_together"] == pytest.approx(expected)
    assert shown["level"] == pytest.approx(expected[-1])
    lines = run("audit", *draws, "--prior", "prior.csv").splitlines()
    assert "with those above" in lines[0] or "with those above" in lines[1]
    assert any("turned.csv" in line and f"{expected[1]:.9g} nats" in line for line in lines)
