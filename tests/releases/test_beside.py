"""What a column in clear adds, against the definition, and the choice of `apply`."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from cli.hostile import refused, write
from commands import run_fully as run
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import Mechanism, Secret, leakage_level
from pmlopt.errors import MechanismError, PriorError
from pmlopt.releases import level_in_clear, level_with_clear_column

RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_level_is_that_of_the_pair_of_release_and_column(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, (3, 3)) + np.eye(3, dtype=int)
    matrix = rng.dirichlet(np.ones(2), 3)
    law = counts / counts.sum()
    channel = law.T / law.sum(axis=0)[:, None]  # P(z | x)
    both = np.einsum("xz,xy->xzy", channel, matrix).reshape(3, -1)
    assert level_with_clear_column(counts, matrix) == pytest.approx(
        leakage_level(law.sum(axis=0), both), abs=1e-12
    )
    assert level_with_clear_column(Secret(law), matrix) == pytest.approx(
        level_with_clear_column(counts, matrix), abs=1e-12
    )
    assert level_in_clear(counts) == pytest.approx(
        leakage_level(law.sum(axis=0), channel), abs=1e-12
    )


def test_a_column_that_tells_nothing_adds_nothing_and_a_copy_tells_all() -> None:
    assert level_with_clear_column(np.outer([1, 3], [2, 2]), RESPONSE) == pytest.approx(
        math.log(1.5)
    )
    assert level_with_clear_column([[1, 0], [0, 3]], RESPONSE) == pytest.approx(math.log(4))


def test_bad_laws_and_other_letters_are_refused() -> None:
    with pytest.raises(MechanismError, match="3 letters"):
        level_with_clear_column(np.eye(3), RESPONSE)
    with pytest.raises(MechanismError, match="differ"):
        level_with_clear_column(
            Secret.from_counts({(0, "a"): 1, (1, "b"): 1}), Mechanism(RESPONSE, ["a", "c"])
        )
    with pytest.raises(PriorError, match="whole numbers"):
        level_with_clear_column([[0.5, 0.7], [0.1, 0.1]], RESPONSE)


@pytest.fixture
def people(folder: Path) -> Path:
    lines = ["id,sex,level,town"]
    lines += [f"{k},{'mf'[k % 2]},{'aab'[k % 3]},{'xy'[k % 3 == 2]}" for k in range(12)]
    return write(folder, "people.csv", "\n".join(lines) + "\n")


ASKED = ("apply", "m.json", "people.csv", "--column", "level", "-o", "out.csv", "--seed", 1)


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ("--keep sex", "sex level"),
        ("--keep town --keep sex", "sex level town"),
        ("--drop id", "sex level town"),
        ("--drop id --drop town", "sex level"),
        ("--drop-all", "level"),
    ],
)
@pytest.mark.usefixtures("people")
def test_what_stays_in_clear_is_chosen(options: str, header: str) -> None:
    said = run(*ASKED, *options.split()).stderr
    with Path("out.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == header.split()
    assert len(rows) == 13
    others = [name for name in rows[0] if name != "level"]
    assert (f"stay in clear: {', '.join(map(repr, others))}" in said) == (others != [])


@pytest.mark.usefixtures("people")
def test_columns_of_which_nothing_is_said_are_refused() -> None:
    said = run(*ASKED, code=2).stderr
    assert "nothing is said of 'id', 'sex', 'town', which would be published" in said
    assert not Path("out.csv").exists()


def test_columns_that_cannot_be_meant_are_refused(people: Path) -> None:
    wrong = (
        "--keep sex --drop id", "--keep level", "--drop nothing", "--keep ''", "--drop id,", "--drop all",
        "--drop-all --keep id", "--keep sex,town",
    )  # fmt: skip
    for options in wrong:
        refused(people.parent, f"apply m.json people.csv --column level -o out.csv {options}")


def test_columns_in_clear_are_assessed(people: Path) -> None:
    text = run(*ASKED, "--drop", "id", "--assess").stdout
    assert "all of them" in text
    (town,) = [line for line in text.splitlines() if "town" in line]
    assert f"{math.log(3):.6f}"[:7] in town  # it gives the rarer level, of probability 1/3, away
    (sex,) = [line for line in text.splitlines() if "sex" in line]
    assert "0 nats" in sex
    assert f"{math.log(1.5):.6f}" in sex  # the mechanism itself
