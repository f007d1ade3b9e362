"""Secrets, distances and gains on the command line: tables in every form, and those that are refused."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.hostile import refused, write
from commands import run

from pmlopt import PML, GainLeakage, JointLaws, Mechanism, MetricPrivacy, Prior, Secret
from pmlopt.errors import FileFormatError, PriorError
from pmlopt.measures import secret_witness

PAIRS = "disease,age\n" + "ill,1\n" * 3 + "ill,2\n" + "well,2\n" * 4
FORMS = {
    "pairs": PAIRS,
    "counts": "disease,age,count\nill,1,3\nill,2,1\nwell,2,4\n",
    "crosstab": ",1,2\nill,3,1\nwell,0,4\n",
    "probabilities": "disease,age,probability\nill,1,0.375\nill,2,0.125\nwell,2,0.5\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_is_the_same_joint_law(form: str, tmp_path: Path) -> None:
    secret = Secret.load(write(tmp_path, "t.csv", FORMS[form]))
    assert secret.joint.tolist() == [[[0.375, 0.125], [0.0, 0.5]]]
    assert (secret.values, secret.labels) == (("ill", "well"), (1, 2))
    assert secret.name == ("the secret" if form == "crosstab" else "disease")
    assert secret.counted == (form != "probabilities")
    assert secret.reordered([2, 1]).joint.tolist() == [[[0.125, 0.375], [0.5, 0.0]]]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("disease\nill\n", "one column"),
        ("disease,age\n", "row"),
        ("disease,age,count\nill,a,3\nill,a,2\nwell,b,1\n", "two rows"),
        ("disease,age,count\nill,a,3\nwell,b,x\n", "in the place of a number"),
        ("disease,age,count\nill,a,3\nwell,b,-1\n", "negative"),
        ("disease,age,count\nill,a,0.5\nwell,b,0.6\n", "sums to 1.1"),
        ("disease,age,count\nill,a,nan\nwell,b,0.6\n", "not finite"),
        ("disease,age,count\nill,a,3\nwell,b,0\n", "never occurs"),
        ("disease,young,old\nill,3,1\nwell,0,4\n", "corner"),
        ("disease,young,old,old\nill,3,1,1\nwell,0,4,1\n", "old"),
        (",a,b\nill,3\n", "cells"),
    ],
)
def test_tables_that_cannot_be_meant(table: str, said: str, folder: Path) -> None:
    path = write(folder, "bad.csv", table)
    with pytest.raises((FileFormatError, PriorError), match=said):
        Secret.load(path)
    assert said in refused(folder, "design --about bad.csv --epsilon 0.1 --utility hamming")


@pytest.mark.usefixtures("folder")
def test_a_design_about_a_secret_is_audited_with_its_witness() -> None:
    table, utility = ["--about", "joint.csv"], ["--utility", "mutual-information", "-o"]
    run("design", *table, "--epsilon", "0.1", *utility, "out.json")
    held: Any = json.loads(run("audit", "out.json", *table, "--epsilon", "0.1", "--json"))
    mechanism = Mechanism.load("out.json").with_named_outputs()
    secret = Secret.load("joint.csv")
    witness = secret_witness(secret, mechanism)
    assert held["holds"]
    assert held["levels"]["pml"] > 0.1 >= held["levels"]["pml_about_disease"]
    assert held["levels"]["pml_about_disease"] == pytest.approx(witness.level, abs=1e-12)
    assert (held["about"]["value"], held["about"]["output"]) == (witness.value, witness.outcome)
    printed = run("audit", "out.json", *table)
    assert "the data" in printed
    assert f"The output {witness.outcome} reveals most of disease" in printed
    pufferfish: Any = json.loads(
        run("audit", "out.json", *table, "--privacy", "pufferfish", "--json")
    )
    assert pufferfish["levels"]["pufferfish"] > 0.1  # of two values, beside 0.1 to their mean
    run("sweep", *table, "--epsilon", "0,0.3", *utility, "c.csv")
    with Path("c.csv").open() as stream:
        first, last = (float(row["value"]) for row in csv.DictReader(stream))
    assert first < last


def test_rows_of_a_mechanism_in_another_order_are_found(folder: Path) -> None:
    write(folder, "turned.csv", ",x,y\nc,0.9,0.1\na,0.5,0.5\nb,0.2,0.8\n")
    level = json.loads(run("audit", "turned.csv", "--about", "joint.csv", "--json"))["about"][
        "level"
    ]
    matrix = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])  # of a, b and c
    given = np.array([[1 / 3, 2 / 3, 0.0], [1 / 2, 1 / 6, 1 / 3]])
    means = np.array([4, 3, 2]) / 9 @ matrix
    assert level == pytest.approx(math.log((given @ matrix / means).max()), abs=1e-12)


@pytest.mark.usefixtures("folder")
def test_a_set_of_joint_laws() -> None:
    write(Path(), "sample.csv", ",x,y\nill,300,100\nwell,200,400\n")
    secret = Secret.load("sample.csv")
    sets = {
        "radius": JointLaws.ball(secret, 0.1),
        "confidence-delta": JointLaws.confidence(secret, 0.1),
    }
    for option, laws in sets.items():
        asked = ["--about", "sample.csv", "--epsilon", "0.2", f"--{option}", "0.1"]
        run("design", *asked, "--utility", "hamming", "-o", "out.json")
        mechanism = Mechanism.load("out.json")
        assert PML(0.2, about=secret, over=laws).level(secret.prior, mechanism) == pytest.approx(
            0.2, abs=1e-9
        )
        assert json.loads(run("audit", "out.json", *asked, "--json"))["holds"]


@pytest.mark.usefixtures("folder")
def test_distances_and_gains_from_files() -> None:
    prior = Prior([4 / 9, 3 / 9, 2 / 9], ["a", "b", "c"])
    for option, file, requirement in (
        ("--distance", "distances.csv", MetricPrivacy(0.5, lambda x, y: abs(ord(x) - ord(y)))),
        ("--gain", "gains.csv", GainLeakage(0.5, [[1, 0, 0.5], [0, 1, 0.5]])),
    ):
        asked = ["--prior", "p.csv", "--privacy", requirement.name, option, file]
        run("design", *asked, "--epsilon", "0.5", "--utility", "hamming", "-o", "out.json")
        assert requirement.level(prior, Mechanism.load("out.json")) == pytest.approx(0.5, abs=1e-9)
        levels = json.loads(run("audit", "out.json", *asked, "--epsilon", "0.5", "--json"))
        assert levels["holds"]
    line = ["--prior", "numbers.csv", "--privacy", "metric", "--distance", "absolute"]
    assert "metric" in run("design", *line, "--epsilon", "0.5", "--utility", "absolute")
