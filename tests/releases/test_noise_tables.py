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
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.releases.noise.tables import (
    KEYS,
    PTABLE,
    add_zero_row,
    compute_noise_moments,
    find_sufficient_keys,
    find_violated_constraints,
    list_key_rows,
    list_ptable_rows,
    round_to_keys,
)


def drawn(seed: int, outputs: int) -> Mechanism:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(outputs, 0.5), size=3)
    matrix[rng.random(matrix.shape) < 0.2] = 0.0
    matrix[:, 0] += matrix.sum(axis=1) == 0
    return Mechanism(
        matrix / matrix.sum(axis=1, keepdims=True), [5, 1, 2], list(range(outputs))[::-1]
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_intervals_tile_the_keys_and_have_the_probabilities(seed: int, outputs: int) -> None:
    mechanism = drawn(seed, outputs)
    rows = list_ptable_rows(mechanism)
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
def test_keys_are_dealt_out_as_the_rounded_mechanism_says(
    seed: int, outputs: int, keys: int
) -> None:
    mechanism = drawn(seed, outputs)
    near = round_to_keys(mechanism, keys)
    assert np.abs(near.matrix - mechanism.matrix).max() < 1 / keys
    assert not near.matrix[mechanism.matrix == 0].any()
    assert round_to_keys(near, keys) == near
    rows = list_key_rows(near, keys)
    assert [row[1] for row in rows] == list(range(keys)) * 3
    found: Counter[Any] = Counter((pcv, pcv + value) for pcv, _, value in rows)
    for x, count in enumerate(near.inputs):
        for y, new in enumerate(near.outputs):
            assert found[count, new] == round(near.matrix[x, y] * keys)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(MechanismError, match="on counts"):
        list_ptable_rows(Mechanism([[1.0]], ["a"], [1]))
    with pytest.raises(MechanismError, match="no multiple of 1/4"):
        list_key_rows(Mechanism([[0.7, 0.3]], [1], [0, 1]), 4)
    with pytest.raises(MechanismError, match="fewer than the outputs"):
        round_to_keys([[0.4, 0.3, 0.3]], 2)


def test_the_shell_writes_both_forms(tmp_path: Path) -> None:
    noise = [constraints.Unbiased(), constraints.Variance(2)]
    prior = Prior([0.5, 0.5], [1, 2])
    found = solve(design(prior, PML(0.4), "squared", range(4), noise))
    found.save(tmp_path / "noise.json")
    told = run("export", tmp_path / "noise.json", "--to", "ptable", "-o", tmp_path / "p.csv").output
    assert "9 rows; PML 0.4" in told
    with (tmp_path / "p.csv").open() as stream:
        table = list(csv.reader(stream))
    assert tuple(table[0]) == PTABLE
    assert [float(row[2]) for row in table[1:]] == [
        1.0,
        *(row[2] for row in list_ptable_rows(found.mechanism)),
    ]
    assert isinstance(found.certificate, LinearCertificate)
    near = round_to_keys(found.mechanism, 100, found.certificate.added_rows or ())
    level = leakage_level(prior, near)
    told = run(
        "export", tmp_path / "noise.json", "--to", "ptable", "--keys", 100, "-o", tmp_path / "k.csv"
    ).output
    assert f"PML {level:.9g} nats" in told
    assert "before it was rounded" in told
    with (tmp_path / "k.csv").open() as stream:
        table = list(csv.reader(stream))
    assert tuple(table[0]) == KEYS
    assert len(table) == 301


def whole_noise(
    mechanism: Mechanism, keys: int, constraints_kept: list[Any]
) -> list[dict[int, int]]:
    """The noise of each count by how many keys have it, counted from the rows of the table."""
    rows = list_key_rows(round_to_keys(mechanism, keys, constraints_kept), keys)
    return [dict(Counter(v for pcv, _, v in rows if pcv == count)) for count in mechanism.inputs]


def test_noise_in_whole_keys_keeps_its_mean_and_its_variance() -> None:
    noise = [constraints.Unbiased(), constraints.Variance(2), constraints.Within(5)]
    counts = Prior.from_counts({1: 50, 2: 25, 3: 17, 4: 12, 5: 10})
    found = solve(design(counts, PML(1.3), "squared", range(11), noise))
    assert isinstance(found.certificate, LinearCertificate)
    kept = list(found.certificate.added_rows or ())
    for keys in (66, 252, 258):
        for own in whole_noise(found.mechanism, keys, kept):
            assert sum(own.values()) == keys
            assert sum(value * many for value, many in own.items()) == 0
            assert sum(value**2 * many for value, many in own.items()) <= 2 * keys
            assert max(map(abs, own)) <= 5
        assert not find_violated_constraints(round_to_keys(found.mechanism, keys, kept), kept)
    # the noise of a count of 3 is -1 or 2, without bias for a third of the keys only
    assert "unbiased" in find_violated_constraints(round_to_keys(found.mechanism, 64, kept), kept)
    assert find_sufficient_keys(found.mechanism, 64, kept) == 66


def test_rounding_without_constraints_says_what_it_did_to_the_noise() -> None:
    bias, variance = compute_noise_moments(
        round_to_keys(Mechanism([[0.3, 0.4, 0.3]], [5], [4, 5, 6]), 4)
    )
    assert (bias.tolist(), variance.tolist()) in (
        ([0.25], [0.1875]),
        ([0.0], [0.5]),
        ([-0.25], [0.1875]),
    )


def test_too_many_keys_are_refused_before_there_is_no_memory() -> None:
    for keys in (10**8, 10**12, 2**62):
        with pytest.raises(MechanismError, match="at most 4,000,000 keys"):
            round_to_keys([[0.5, 0.5]], keys)
        with pytest.raises(MechanismError, match="at most 4,000,000 keys"):
            list_key_rows(Mechanism([[1.0]], [1], [1]), keys)


def test_empty_cells_stay_empty_unless_there_is_a_row_for_them() -> None:
    known = Mechanism([[0.5, 0.5]], [0], [0, 1])
    assert add_zero_row(known) is known
    for outputs in ([0, 1, 2], [1, 2, 3]):
        table = add_zero_row(Mechanism([[0.25, 0.5, 0.25]], [2], outputs))
        assert [row for row in list_ptable_rows(table) if row[0] == 0] == [(0, 0, 1.0, 0, 0.0, 1.0)]


def test_the_shell_exits_with_1_where_keys_break_what_was_proved(tmp_path: Path) -> None:
    noise = [constraints.Unbiased(), constraints.Variance(2), constraints.Within(5)]
    counts = Prior.from_counts({1: 50, 2: 25, 3: 17, 4: 12, 5: 10})
    solve(design(counts, PML(1.3), "squared", range(11), noise)).save(tmp_path / "noise.json")
    kept = run(
        "export", tmp_path / "noise.json", "--to", "ptable", "--keys", 66, "-o", tmp_path / "k.csv"
    )
    assert "bias at most 0, variance at most 2" in kept.output
    broken = run(
        "export",
        tmp_path / "noise.json",
        "--to",
        "ptable",
        "--keys",
        64,
        "-o",
        tmp_path / "k.csv",
        code=1,
    )
    assert "64 keys break the constraint 'unbiased'" in broken.output
    assert "--keys 66 keeps it" in broken.output
    refused = run(
        "export",
        tmp_path / "noise.json",
        "--to",
        "ptable",
        "--keys",
        10**9,
        "-o",
        tmp_path / "k.csv",
        code=2,
    )
    assert "at most 800,000 keys" in refused.output
