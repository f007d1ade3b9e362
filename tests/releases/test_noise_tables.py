"""Tables of noise: what is drawn from them by cell keys has the law of the mechanism."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_fully as run
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import PML, Mechanism, Prior, constraints, design, leakage_level, solve
from pmlopt.errors import MechanismError
from pmlopt.releases.noise_tables import KEYS, PTABLE, key_rows, ptable_rows, rounded_to_keys


def drawn(seed: int, outputs: int) -> Mechanism:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(outputs, 0.5), size=3)
    matrix[rng.random(matrix.shape) < 0.2] = 0.0
    matrix[:, 0] += matrix.sum(axis=1) == 0
    return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), [5, 1, 2], list(range(outputs))[::-1])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_intervals_tile_the_keys_and_have_the_probabilities(seed: int, outputs: int) -> None:
    mechanism = drawn(seed, outputs)
    rows = ptable_rows(mechanism)
    for count in mechanism.inputs:
        own = [row for row in rows if row[0] == count]
        assert [row[4] for row in own[1:]] == [row[5] for row in own[:-1]]
        assert (own[0][4], own[-1][5]) == (0.0, 1.0)
        for i, j, p, v, low, high in own:
            assert (j, v) == (i + v, j - i)
            assert p == mechanism.matrix[mechanism.inputs.index(i), mechanism.outputs.index(j)]
            assert high - low == pytest.approx(p, abs=1e-12)
    assert rows == sorted(rows)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from([8, 100, 256]))
def test_keys_are_dealt_out_as_the_rounded_mechanism_says(seed: int, outputs: int, keys: int) -> None:
    mechanism = drawn(seed, outputs)
    near = rounded_to_keys(mechanism, keys)
    assert np.abs(near.matrix - mechanism.matrix).max() < 1 / keys
    assert not near.matrix[mechanism.matrix == 0].any()
    assert rounded_to_keys(near, keys) == near
    rows = key_rows(near, keys)
    assert [row[1] for row in rows] == list(range(keys)) * 3
    found: Counter[Any] = Counter((pcv, pcv + value) for pcv, _, value in rows)
    for x, count in enumerate(near.inputs):
        for y, new in enumerate(near.outputs):
            assert found[count, new] == round(near.matrix[x, y] * keys)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(MechanismError, match="on counts"):
        ptable_rows(Mechanism([[1.0]], ["a"], [1]))
    with pytest.raises(MechanismError, match="no multiple of 1/4"):
        key_rows(Mechanism([[0.7, 0.3]], [1], [0, 1]), 4)
    with pytest.raises(MechanismError, match="fewer than the outputs"):
        rounded_to_keys([[0.4, 0.3, 0.3]], 2)


def test_the_shell_writes_both_forms(tmp_path: Path) -> None:
    noise = [constraints.Unbiased(), constraints.Variance(2)]
    prior = Prior([0.5, 0.5], [1, 2])
    found = solve(design(prior, PML(0.4), "squared", range(4), noise))
    found.save(tmp_path / "noise.json")
    told = run("noise-table", tmp_path / "noise.json", "-o", tmp_path / "p.csv").output
    assert "8 rows; PML 0.4" in told
    with (tmp_path / "p.csv").open() as stream:
        table = list(csv.reader(stream))
    assert tuple(table[0]) == PTABLE
    assert [float(row[2]) for row in table[1:]] == [row[2] for row in ptable_rows(found.mechanism)]
    level = leakage_level(prior, rounded_to_keys(found.mechanism, 100))
    told = run("noise-table", tmp_path / "noise.json", "--keys", 100, "-o", tmp_path / "k.csv").output
    assert f"PML {level:.9g} nats" in told
    assert "before it was rounded" in told
    with (tmp_path / "k.csv").open() as stream:
        table = list(csv.reader(stream))
    assert tuple(table[0]) == KEYS
    assert len(table) == 201
