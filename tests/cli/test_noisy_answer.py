"""`pmlopt answer`: counts, sums and means of a file, what is stated of them, and what is refused."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_fully as run

from pmlopt import Prior, confidence_ball, estimate
from pmlopt.releases.noise import Geometric, LaplaceHistogram, QueryNoise, derive_differences


def run_json(*arguments: object) -> dict[str, Any]:
    return dict(json.loads(run(*arguments, "--json").stdout))


AGES = [20] * 30 + [40] * 50 + [60] * 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [f"{'f' if i % 3 else 'm'},{age}" for i, age in enumerate(AGES)]
    (tmp_path / "people.csv").write_text("\n".join(["sex,age", *rows]) + "\n")
    (tmp_path / "age.csv").write_text("age,count\n20,50\n40,30\n60,20\n")
    (tmp_path / "young.csv").write_text("age,count\n20,50\n40,30\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_law_the_scales_are_those_of_differential_privacy(folder: Path) -> None:
    found = run_json("answer", "people.csv", "--count", "sex=f,m", "--mean", "age=0..100",
                     "--sum", "age=10..50", "--epsilon", 0.6, "-o", "out.csv", "--seed", 1)  # fmt: skip
    # 2, 100 and 40 over their scales are equal shares of 0.6
    assert found["scales"] == pytest.approx([2 / 0.2, 40 / 0.2, 100 / 0.2], rel=1e-9)
    assert found["level"] <= 0.6
    names = ["count sex f", "count sex m", "sum age", "mean age"]
    assert [one["answer"] for one in found["answers"]] == names
    with (folder / "out.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["answer", "value", "low", "high"]
    assert [row[0] for row in rows[1:]] == names
    for one, scale, part in zip(found["answers"], [10, 10, 200, 500], [1, 1, 1, 100], strict=True):
        half = -math.log(0.05) * scale / part
        assert one["high"] - one["value"] == pytest.approx(half, rel=1e-9)


def test_with_a_law_there_is_less_noise_and_a_sample_takes_more(folder: Path) -> None:
    asked = ("answer", "people.csv", "--mean", "age=0..100", "--prior", "age.csv", "--epsilon", 0.5,
             "-o", "out.csv", "--seed", 1)  # fmt: skip
    known = run_json(*asked)
    prior = Prior.from_counts([50, 30, 20], [20, 40, 60])
    table = [derive_differences([20.0, 40.0, 60.0])]
    assert known["scales"][0] == pytest.approx(
        QueryNoise.calibrate(table, prior, 0.5).scales[0], rel=1e-9
    )
    ball = confidence_ball(prior, 0.01)
    sample = run_json(*asked, "--confidence-delta", 0.01)
    assert sample["scales"][0] == pytest.approx(
        QueryNoise.calibrate(table, prior, 0.5, ball).scales[0], rel=1e-9
    )
    assert known["scales"][0] < sample["scales"][0] < 40 / 0.5
    assert "except with probability 0.01" in sample["scope"]


def test_intervals_hold_as_often_as_stated(folder: Path) -> None:
    clipped, times = float(np.clip(AGES, 0, 50).mean()), 60
    found = run_json("answer", "people.csv", *["--mean", "age=0..50"] * times, "--epsilon", times,
                     "--confidence", 0.8, "-o", "out.csv", "--seed", 1)  # fmt: skip
    assert found["scales"] == pytest.approx([50.0] * times, rel=1e-9)
    hits = sum(one["low"] <= clipped <= one["high"] for one in found["answers"])
    assert 36 <= hits <= 58  # 48 are expected


def test_it_is_stated_in_words(folder: Path) -> None:
    said = run(
        "answer", "people.csv", "--count", "sex=f,m", "--epsilon", 0.5, "-o", "out.csv"
    ).output
    flat = " ".join(said.split())
    for words in ("leak at most 0.5 nats", "any one record, whatever its law is",
                  "other records may have any law", "number of records (100)",
                  "are for these 100 records, and for no larger population"):  # fmt: skip
        assert words in flat


def test_a_least_mass_of_each_class_takes_the_noise_of_a_histogram(folder: Path) -> None:
    asked = ("answer", "people.csv", "--count", "sex=x, m,f", "--epsilon", 0.5, "-o", "out.csv")
    found = run_json(*asked, "--min-mass", 0.3, "--seed", 4)
    noise = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.3)
    assert found["scales"] == pytest.approx([noise.scale], rel=1e-9)
    assert found["level"] == pytest.approx(noise.level, rel=1e-9)
    assert "each class with probability 0.3 or more" in found["scope"]
    assert [one["answer"] for one in found["answers"]] == [f"count sex {name}" for name in "xmf"]
    quiet = run_json(*asked[:3], "sex=m,f", "--epsilon", 1.7, "-o", "out.csv", "--min-mass", 0.2)
    assert [one["value"] for one in quiet["answers"]] == [
        34,
        66,
    ]  # -log 0.2 = 1.61: no noise is needed


def test_which_classes_occur_is_published_only_if_declared_public(folder: Path) -> None:
    asked = ("answer", "people.csv", "--count", "sex", "--epsilon", 0.5, "-o", "out.csv")
    assert "--public-classes" in run(*asked, code=2).output
    assert not (folder / "out.csv").exists()
    found = run_json(*asked, "--public-classes")
    assert [one["answer"] for one in found["answers"]] == ["count sex f", "count sex m"]


def test_classes_that_occur_come_in_the_order_that_their_column_declares(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    scale, path = ["low", "medium", "high"], folder / "data.parquet"
    column = pandas.Categorical(["high", "low", "medium", "low"], scale, ordered=True)
    pandas.DataFrame({"class": column}).to_parquet(path)
    asked = (
        "answer",
        path,
        "--count",
        "class",
        "--public-classes",
        "--epsilon",
        0.5,
        "-o",
        "o.csv",
    )
    assert [one["answer"] for one in run_json(*asked)["answers"]] == [
        f"count class {one}" for one in scale
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "nothing to answer"),
        ("--count sex", "COLUMN=a,b,c"),
        ("--count sex=f,f", "each once"),
        ("--count sex=f", "none of the classes"),
        ("--mean age", "LOW..HIGH"),
        ("--mean age=5..1", "LOW..HIGH"),
        ("--mean age=0..inf", "LOW..HIGH"),
        ("--mean sex=0..1", "finite numbers"),
        ("--sum no=0..1", "no"),
        ("--mean age=0..1 --confidence 1", "confidence"),
        ("--mean age=0..1 --confidence-delta 0.1", "--prior"),
        ("--count sex=f,m --prior age.csv", "none of the classes"),
        ("--mean age=0..100 --prior young.csv", "no letter"),
        ("--count sex=f,m --mean age=0..1 --prior age.csv", "age.csv"),
        ("--count sex=f,m --mean age=0..1 --min-mass 0.1", "one --count"),
        ("--mean age=0..100 --prior age.csv --min-mass 0.1", "one --count"),
        ("--count sex=f,m --min-mass 0.6", "minimum mass"),
    ],
)
def test_what_is_refused(folder: Path, options: str, words: str) -> None:
    asked = ("answer", "people.csv", *options.split(), "--epsilon", 0.5, "-o", "out.csv")
    assert words in run(*asked, code=2).output
    assert not (folder / "out.csv").exists()


def test_geometric_noise_is_audited_and_applied_as_a_mechanism(tmp_path: Path) -> None:
    prior, noise = Prior([0.5, 0.3, 0.2], [0, 1, 3]), Geometric(1.5)
    mechanism = noise.to_mechanism(prior)
    mechanism.save(tmp_path / "noise.json")
    (tmp_path / "prior.csv").write_text("letter,probability\n0,0.5\n1,0.3\n3,0.2\n")
    (tmp_path / "people.csv").write_text("children\n" + "0\n1\n3\n3\n" * 25)
    audited = run("audit", tmp_path / "noise.json", "--prior", tmp_path / "prior.csv", "--json")
    assert json.loads(audited.stdout)["levels"]["pml"] == pytest.approx(noise.level(prior))
    released = tmp_path / "released.csv"
    run(
        "apply",
        tmp_path / "noise.json",
        tmp_path / "people.csv",
        "--column",
        "children",
        "-o",
        released,
    )
    outcomes = [int(line) for line in released.read_text().split()[1:]]
    assert len(outcomes) == 100
    assert set(outcomes) <= {0, 1, 2, 3}
    counts = [outcomes.count(one) for one in range(4)]
    assert estimate(mechanism, counts).frequencies.sum() == pytest.approx(1)
