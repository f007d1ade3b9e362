"""Designs by orbit on the command line: tables of records, circles, audits and releases."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commands import run

from pmlopt import IIDPrior
from pmlopt.data.symmetry import OrbitMechanism


@pytest.fixture
def bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("bits.csv")
    path.write_text("answer,count\nno,7\nyes,3\n")
    return path


def test_a_table_of_records_is_designed_audited_and_released(bits: Path) -> None:
    asked = ("--prior", bits, "--records", 16, "--utility", "hamming", "--epsilon", 1)
    found = json.loads(run("design", *asked, "-o", "orbits.json", "--json"))
    assert found["value"] == pytest.approx(4.2435478878, abs=1e-9)
    assert "969 orbits of pairs" in run("design", *asked)
    mechanism = OrbitMechanism.load("orbits.json")
    assert isinstance(mechanism.space.prior, IIDPrior)
    assert mechanism.space.prior.law.labels == ("no", "yes")
    audited = json.loads(run("audit", "orbits.json", "--epsilon", 1, "--json"))
    assert audited["holds"] is True
    assert audited["levels"]["pml"] == pytest.approx(1.0, abs=1e-9)
    assert audited["levels"]["ldp"] is None  # an output excludes letters
    assert "FAILS" in run("audit", "orbits.json", "--epsilon", 0.99, code=1)
    Path("data.csv").write_text("name,answer\n" + "".join(f"p{k},no\n" for k in range(16)))
    apply = ("apply", "orbits.json", "data.csv", "--column", "answer", "-o", "out.csv", "--seed", 1)
    assert "nothing is said of 'name'" in run(*apply, code=2)
    assert "stay in clear: 'name'" in run(*apply, "--keep", "name")
    run(*apply, "--drop-all")
    released = Path("out.csv").read_text().split()[1:]
    assert len(released) == 16
    assert set(released) <= {"no", "yes"}
    Path("data.csv").write_text("answer\nno\nyes\n")
    assert "2 rows, and the mechanism is for 16 records" in run(*apply, code=2)


def test_a_circle_is_designed_and_released(bits: Path) -> None:
    assert bits.exists()
    out = ("-o", "circle.json")
    printed = run(
        "design", "--circle", 8, "--utility", "absolute", "--epsilon", "0.6931471805599453", *out
    )
    assert printed.splitlines()[2].split() == ["value", "1"]  # the mean of 0, 1, 1 and 2
    assert "P(output | true value)" in printed
    Path("hours.csv").write_text("hour\n" + "".join(f"{k % 8}\n" for k in range(40)))
    run(
        "apply",
        "circle.json",
        "hours.csv",
        "--column",
        "hour",
        "-o",
        "out.csv",
        "--seed",
        1,
        "--keep-order",
    )
    Path("names.csv").write_text("name;hour\n" + "".join(f"p,{k};{k % 8}\n" for k in range(40)))
    apply = ("apply", "circle.json", "names.csv", "--column=hour", "--keep=name")
    run(*apply, "-o", "names.out", "--seed", 1, "--keep-order")
    named = list(csv.reader(Path("names.out").read_text().splitlines()))
    assert [row[1] for row in named] == Path("out.csv").read_text().split()
    assert named[1][0] == "p,0"
    hours = [
        int(row[0])
        for row in csv.reader(Path("out.csv").read_text().splitlines())
        if row[0] != "hour"
    ]
    assert max(min((y - k) % 8, (k - y) % 8) for k, y in enumerate(hours)) <= 2


RECORDS = "--prior bits.csv --records 3 --utility hamming"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"{RECORDS} --circle 4", "defines the prior"),
        ("--circle 4 --utility mutual-information", "not known on a circle"),
        (RECORDS.replace("hamming", "mutual-information"), "no value for a letter"),
        (f"{RECORDS} --outputs 2", "outputs are letters"),
        (f"{RECORDS} -o m.csv", "use .json"),
        (f"{RECORDS.replace('prior', 'counts')} --confidence-delta 0.1", "list of letters"),
        ("--records 3 --utility hamming", "give the prior"),
        ("--circle 4 --utility hamming --privacy maximal-leakage", "symmetric priors take"),
        (f"{RECORDS.replace('3', '20')} --plot m.png", "listed up to"),
    ],
)
@pytest.mark.usefixtures("bits")
def test_what_does_not_go_together_is_refused(options: str, message: str) -> None:
    assert message in run("design", *options.split(), "--epsilon", 1, code=2).replace("\n", " ")
    assert sorted(path.name for path in Path().iterdir()) == ["bits.csv"]
