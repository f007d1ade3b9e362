"""Columns designed together: against an independent linear program, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt import LDP, EstimationError, ExpectedLoss, Prior, solve
from pmlopt.errors import PmloptError, PriorError, PrivacyError, ProgramError, UtilityError
from pmlopt.measures import leakage_level
from pmlopt.programs import column_designs
from pmlopt.programs.column_designs import build_row_secret, joint_design, measure_columns
from pmlopt.programs.estimation import column_generation

Law = dict[tuple[int, ...], int]


def random_law(seed: int) -> Law:
    """Draw counts of dependent columns, two to four of two to five letters, zeros among them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, rng.integers(2, 5)).tolist()
    while math.prod(sizes) > 60:
        sizes.pop()
    hidden = rng.integers(0, 3, 80)
    shifts = rng.integers(0, 5, (3, len(sizes)))
    rows = (shifts[hidden] + rng.integers(0, 2, (80, len(sizes)))) % np.array(sizes)
    found: Law = {}
    for row in map(tuple, rows.tolist()):
        found[row] = found.get(row, 0) + 1
    return found


def minimise_independently(law: Law, epsilon: float, loss: Callable[[Any, Any], float]) -> float:
    """Minimise the mean loss over mechanisms on the tuples by scipy, from the definition of PML."""
    rows = list(law)
    values = [sorted({row[k] for row in rows}) for k in range(len(rows[0]))]
    outputs = [tuple(one) for one in np.array(np.meshgrid(*values)).reshape(len(values), -1).T]
    p = np.array([*law.values()]) / sum(law.values())
    n, m = len(rows), len(outputs)
    costs = np.array([[loss(x, y) for y in outputs] for x in rows]) * p[:, None]
    limits = np.zeros((n * m, n * m))
    for x in range(n):
        for y in range(m):
            limits[x * m + y, np.arange(n) * m + y] = -math.exp(epsilon) * p
            limits[x * m + y, x * m + y] += 1
    found = linprog(
        costs.ravel(), limits, np.zeros(n * m), np.kron(np.eye(n), np.ones(m)), np.ones(n)
    )
    return float(found.fun)


def random_task(seed: int) -> tuple[Law, float, dict[str, Any], dict[str, float]]:
    """Return a law with a total, utilities and weights."""
    law, rng = random_law(seed), np.random.default_rng(1_000 + seed)
    names = [f"c{k}" for k in range(len(next(iter(law))))]
    kinds = rng.choice(["absolute", "hamming"], len(names)).tolist()
    weights = dict(zip(names, rng.uniform(0.2, 1, len(names)).tolist(), strict=True))
    return law, float(rng.uniform(0.1, 2.0)), dict(zip(names, kinds, strict=True)), weights


@pytest.mark.parametrize("seed", range(200))
def test_the_value_is_that_of_an_independent_linear_program(seed: int) -> None:
    law, total, utilities, weights = random_task(seed)

    def loss(x: Any, y: Any) -> float:
        parts = zip(utilities.values(), weights.values(), x, y, strict=True)
        return sum(w * (abs(a - b) if k == "absolute" else float(a != b)) for k, w, a, b in parts)

    program = joint_design(law, total, utilities, weights=weights)
    result = solve(program)
    assert result.value == pytest.approx(minimise_independently(law, total, loss), abs=1e-7)
    assert result.bound == pytest.approx(result.value, abs=1e-7)
    assert result.certificate.verify()
    parts = measure_columns(law, result.mechanism, utilities, weights)
    assert sum(one.weight * one.loss for one in parts) == pytest.approx(result.value, abs=1e-12)


def test_weights_left_out_make_columns_count_alike() -> None:
    law = {(0, "a"): 6, (9, "a"): 2, (9, "b"): 2}
    program = joint_design(law, 1e-9, {"x": "absolute", "y": "balanced-match"})
    # nothing is released: each column loses what a constant does, which counts as one
    assert solve(program).value == pytest.approx(2.0, abs=1e-6)


def test_a_limit_holds_for_its_column_alone() -> None:
    law = random_law(3)
    names = [f"c{k}" for k in range(len(next(iter(law))))]
    program = joint_design(law, 1.5, dict.fromkeys(names, "hamming"), limits={"c0": 0.25})
    result = solve(program)
    prior = program.prior
    secret = build_row_secret(prior, lambda row: row[0], "c0")
    assert leakage_level(secret, result.mechanism) <= 0.25 + 1e-12
    assert leakage_level(prior, result.mechanism) <= 1.5 + 1e-12
    free = solve(joint_design(law, 1.5, dict.fromkeys(names, "hamming")))
    assert result.value > free.value + 1e-6


def test_a_function_of_the_row_may_have_a_limit() -> None:
    law = {(a, b): 1 + a + 2 * b for a in range(3) for b in range(2)}
    program = joint_design(
        law,
        2.0,
        {"a": "hamming", "b": "hamming"},
        about={"parity": (lambda row: sum(row) % 2, 0.1)},
    )
    result = solve(program)
    secret = build_row_secret(program.prior, lambda row: sum(row) % 2, "parity")
    assert leakage_level(secret, result.mechanism) <= 0.1 + 1e-12


def test_any_requirement_may_be_the_total() -> None:
    law = {("a", "x"): 3, ("a", "y"): 1, ("b", "y"): 4}
    result = solve(joint_design(law, LDP(0.5), {"k": "hamming", "l": "hamming"}))
    assert result.certificate.verify()


def test_margins_are_estimated() -> None:
    law = {(a, b): 2 + (a == b) for a in range(2) for b in range(2)}
    names = ["a", "b"]
    program = joint_design(law, 0.5, names, margins=[["a"], ["a", "b"]])
    result = solve(program)
    labels = list(law)
    workload = [[float(row[0] == v) for row in labels] for v in range(2)]
    workload += np.eye(4).tolist()
    by_hand = EstimationError(np.array(workload)).value(program.prior, result.mechanism)
    assert result.value == pytest.approx(by_hand, rel=1e-9)


def test_margins_of_many_tuples_end_in_time_with_a_mechanism_and_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 26 tuples: second moments bound the error, without the semidefinite program of a minute
    monkeypatch.setattr(column_generation, "solve_relaxation", None)
    law = {(a, b): 1 + a + 3 * b for a in range(13) for b in range(2)}
    program = joint_design(law, 1.0, ["a", "b"], margins=[["a"], ["b"]])
    result = solve(program, time_limit=0.2)
    assert result.level <= 1.0
    assert 0 < result.bound <= result.value < math.inf


LAW = {("a", 1): 3, ("b", 2): 1}


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"total": 0.0}, PrivacyError, "above 0"),
        ({"total": float("nan")}, PrivacyError, "total"),
        ({"utilities": ["x", "x"]}, UtilityError, "each name once"),
        ({"utilities": "xy"}, UtilityError, "one for each column"),
        ({"utilities": {}}, UtilityError, "one for each column"),
        ({"utilities": {"x": "hamming"}}, PriorError, "tuple of 1 values"),
        ({"utilities": {"x": "hamming", "y": "mutual-information"}}, UtilityError, "utility of y"),
        ({"utilities": {"x": "hamming", "y": ExpectedLoss(np.eye(2))}}, UtilityError, "no labels"),
        ({"weights": {"x": 0.0}}, UtilityError, "weight of x"),
        ({"weights": {"z": 1.0}}, ProgramError, "none of the columns"),
        ({"limits": {"z": 1.0}}, ProgramError, "none of the columns"),
        ({"joint_law": Prior([0.5, 0.5])}, PriorError, "no tuple"),
        ({"margins": [["x"]]}, UtilityError, "names of the columns"),
        ({"margins": [], "utilities": ["x", "y"]}, UtilityError, "margins"),
        ({"margins": [["x", "x"]], "utilities": ["x", "y"]}, UtilityError, "different"),
        ({"utilities": ["x", "y"]}, UtilityError, "utility for each column"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], error: type[PmloptError], says: str) -> None:
    given: dict[str, Any] = {
        "joint_law": LAW, "total": 0.5, "utilities": {"x": "hamming", "y": "hamming"}, **change,
    }  # fmt: skip
    with pytest.raises(error, match=says):
        joint_design(**given)


def test_more_tuples_than_a_design_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_designs, "MAX_TUPLES", 1)
    with pytest.raises(ProgramError, match=r"group rare values.*group_design"):
        joint_design(LAW, 0.5, {"x": "hamming", "y": "hamming"})


def test_many_combinations_leave_those_that_occur() -> None:
    utilities = {"x": "hamming", "y": "hamming"}
    assert joint_design(LAW, 0.5, utilities).table.shape == (2, 4)
    law = {(k, k): 1 for k in range(32)}  # of 1,024 combinations
    assert joint_design(law, 0.5, utilities).table.shape == (32, 32)
