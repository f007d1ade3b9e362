"""Commands keep the order that files of Parquet and Arrow declare of their categories."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from commands import run

from pmlopt import Mechanism

SCALE = ["low", "medium", "high"]
"""Which is not the order of the alphabet."""
INCOME = np.array(SCALE)[np.random.default_rng(0).choice(3, 300, p=[0.2, 0.5, 0.3])]
SIDE = np.array(["b", "a"])[np.arange(300) % 2]

pytestmark = pytest.mark.parametrize("ending", ["parquet", "arrow"])


def write_people(folder: Path, ending: str) -> Path:
    ordered = {
        "income": pandas.Categorical(INCOME, SCALE, ordered=True),
        "side": pandas.Categorical(SIDE, ["b", "a"], ordered=True),
    }
    path, frame = folder / f"people.{ending}", pandas.DataFrame(ordered)
    frame.to_parquet(path) if ending == "parquet" else frame.to_feather(path)
    return path


def test_design_has_letters_in_the_declared_order(ending: str, tmp_path: Path) -> None:
    people, out = write_people(tmp_path, ending), tmp_path / "m.json"
    asked = ("--column", "income", "--epsilon", "0.5", "--utility", "hamming", "-o", out)
    run("design", "--prior", people, *asked)
    assert list(Mechanism.load(out).inputs) == SCALE


def test_release_publishes_mechanisms_in_the_declared_order(ending: str, tmp_path: Path) -> None:
    people, out = write_people(tmp_path, ending), tmp_path / "out"
    asked = ("--column", "income", "--epsilon", "0.5", "--utility", "estimation-error:prefix")
    run("release", people, *asked, "--keep", "side", "-o", out)
    assert list(Mechanism.load(out / "mechanisms" / "income.json").inputs) == SCALE
    found = json.loads(run("estimate", out, "--workload", "prefix", "--json"))
    # sums up to a letter: those up to the last one of the scale are everybody
    shares = [one["estimate"] for one in found["estimates"]]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_estimate_lists_groups_in_the_declared_order(ending: str, tmp_path: Path) -> None:
    people, same = write_people(tmp_path, ending), tmp_path / "same.json"
    Mechanism(np.eye(3), SCALE, SCALE).save(same)
    asked = ("estimate", same, "--data", people, "--column", "income", "--json")
    cross = json.loads(run(*asked, "--group-by", "side"))["estimates"]
    assert [one["letter"] for one in cross] == [[x, y] for x in SCALE for y in ("b", "a")]
    within = json.loads(run(*asked, "--within", "side"))["groups"]
    assert [one["group"] for one in within] == ["b", "a"]
    for group in within:
        assert [one["letter"] for one in group["estimates"]] == SCALE
        share = float(np.mean(INCOME[group["group"] == SIDE] == "low"))
        assert group["estimates"][0]["estimate"] == pytest.approx(share, abs=1e-9)
