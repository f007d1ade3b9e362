"""Orders of rows: random ones are seldom warned of, sorted ones are, and kept ones are said to be kept."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from commands import run

from pmlopt import Mechanism, check
from pmlopt.publishing import release
from pmlopt.publishing.order import (
    compare_with_random_order,
    compute_drift_p_value,
    compute_runs_p_value,
    refutes_random_order,
)

RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
SORTED = {"ill": ["no"] * 200 + ["yes"] * 200}


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.05, 0.05), (0.99, 0.01), (0.1,) * 10])
@pytest.mark.parametrize("rows", [20, 400])
def test_p_values_are_no_smaller_than_they_say(shares: tuple[float, ...], rows: int) -> None:
    rng = np.random.default_rng(rows)
    found = np.array([
        (compute_runs_p_value(codes), compute_drift_p_value(codes))
        for codes in (rng.choice(len(shares), rows, p=shares) for _ in range(500))
    ])  # fmt: skip
    for level in (0.2, 0.05, 0.01):  # of one seed; 4 standard deviations above the level
        assert (found <= level).mean(axis=0).max() < 1.1 * level + 4 * np.sqrt(level / 500)


@pytest.mark.parametrize("first", [54, 110, 300])
def test_a_random_order_is_refuted_less_than_once_in_a_thousand_times(first: int) -> None:
    tested = 0
    for second in (first, 4 * first, 40 * first):
        n, refuted = first + second, 0.0
        # the law of the number of runs of two values is known exactly [Wald and Wolfowitz 1940]
        mean = 1 + 2 * first * second / n
        variance = (mean - 1) * (mean - 2) / (n - 1)
        if variance < 25:  # then no test of runs is made
            continue
        tested += 1
        for runs in range(2, 2 * first + 2):
            distance = max(0.0, abs(runs - mean) - 0.5)
            p_value = math.erfc(distance / math.sqrt(2 * variance))
            if refutes_random_order(2 * p_value):  # of two tests
                half = runs // 2
                ways = (
                    2 * math.comb(first - 1, half - 1) * math.comb(second - 1, half - 1)
                    if runs % 2 == 0
                    else math.comb(first - 1, half) * math.comb(second - 1, half - 1)
                    + math.comb(first - 1, half - 1) * math.comb(second - 1, half)
                )
                refuted += ways / math.comb(n, first)
        assert refuted < 1e-3
    assert tested


def test_rows_that_are_sorted_refute_a_random_order(tmp_path: Path) -> None:
    # drawn in the order of the data, and said to be shuffled: the forger knows all digests
    release(SORTED, {"ill": RESPONSE}, tmp_path / "out", seed=1)
    data = tmp_path / "out" / "released.csv"
    header, *rows = data.read_text().splitlines()
    data.write_text("\n".join([header, *sorted(rows), ""]))
    description = tmp_path / "out" / "release.json"
    told = json.loads(description.read_text())
    told["digests"]["released.csv"] = hashlib.sha256(data.read_bytes()).hexdigest()
    description.write_text(json.dumps(told))
    order = {one.name: one for one in check(tmp_path / "out").parts}["order"]
    assert order.holds is False
    assert "of releases in a random order fewer than 1 in 1,000 are refused" in order.detail


def test_alternating_and_sorted_rows_are_noticed() -> None:
    assert compute_runs_p_value(np.tile([0, 1], 200)) < 1e-9
    assert compute_drift_p_value(np.repeat([0, 1], 200)) < 1e-9
    few = compare_with_random_order({"a": [np.array([0, 1, 1])], "b": [np.zeros(5, dtype=int)]})
    assert (few.p_value, few.columns) == (1.0, ())


def test_a_release_has_a_random_order_unless_that_of_the_data_is_kept(tmp_path: Path) -> None:
    release(SORTED, {"ill": RESPONSE}, tmp_path / "random", seed=1)
    claims = {one.name: one for one in check(tmp_path / "random").parts}
    assert claims["order"].holds is True
    assert "uniformly random order" in (tmp_path / "random" / "report.md").read_text()
    release(SORTED, {"ill": RESPONSE}, tmp_path / "kept", keep_order=True, seed=1)
    verdict = check(tmp_path / "kept")
    order = {one.name: one for one in verdict.parts}["order"]
    assert order.holds is None
    assert verdict.holds is False  # for the seed alone
    assert "rows keep the order of the data" in order.detail
    assert "ill looks sorted" in order.detail
    assert "keep the order of the data" in (tmp_path / "kept" / "report.md").read_text()


def test_the_commands_keep_the_order_where_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("\n".join(["ill", *SORTED["ill"], ""]))
    flip = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
    flip.save(tmp_path / "flip.json")
    words = ("apply", tmp_path / "flip.json", tmp_path / "data.csv", "--column", "ill", "-o")
    flipped = ["yes"] * 200 + ["no"] * 200
    assert "may reveal what these are sorted" in run(*words, tmp_path / "kept.csv", "--keep-order")
    assert (tmp_path / "kept.csv").read_text().split()[1:] == flipped
    run(*words, tmp_path / "random.csv")
    found = (tmp_path / "random.csv").read_text().split()[1:]
    assert sorted(found) == sorted(flipped)
    assert found != flipped  # once in 10^119 times


def test_a_plan_keeps_the_order_which_the_screen_the_report_and_check_state(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("\n".join(["ill", *SORTED["ill"], ""]))
    identity = Mechanism([[1.0, 0.0], [0.0, 1.0]], ["no", "yes"], ["no", "yes"])
    identity.save(tmp_path / "copy.json")
    plan = 'keep_order = {}\n[release.ill]\nmechanism = "copy.json"\n'
    for kept in ("true", "false"):
        (tmp_path / "plan.toml").write_text(plan.format(kept))
        out = tmp_path / kept
        said = run("release", tmp_path / "data.csv", "--plan", tmp_path / "plan.toml", "-o", out)
        assert ("may reveal what these are sorted" in said) == (kept == "true")
        assert ("keep the order of the data" in (out / "report.md").read_text()) == (kept == "true")
        found = (out / "released.csv").read_text().split()[1:]
        assert (found == SORTED["ill"]) == (
            kept == "true"
        )  # in a random order once in 10^119 times
        claims = {one.name: one for one in check(out).parts}
        assert claims["order"].holds is (None if kept == "true" else True)
    assert "did you mean 'keep_order'" in _refused(
        tmp_path, plan.replace("keep_order", "keep_ordr").format("true")
    )
    assert "keep_order" in _refused(tmp_path, plan.format('"yes"'))


def _refused(folder: Path, plan: str) -> str:
    """What is printed of a plan that is refused."""
    (folder / "plan.toml").write_text(plan)
    return run("release", folder / "data.csv", "--plan", folder / "plan.toml", "--dry-run", code=2)
