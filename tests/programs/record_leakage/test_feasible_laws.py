"""Laws within the entropy bound, what they leak at least, and the numbers of the first bounds."""

from __future__ import annotations

import math
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import Mechanism, queries, record_leakage
from pmlopt.model.queries import symmetric_channel
from pmlopt.model.queries.record_leakage_measures import (
    compute_dataset_entropy,
    compute_record_information,
)
from pmlopt.programs.program import MethodResult
from pmlopt.programs.record_leakage import adversary as adversary_module
from pmlopt.programs.record_leakage import exact_leakage
from pmlopt.programs.record_leakage.adversary import BoundedAdversary, build_class_relaxation
from pmlopt.programs.record_leakage.closed_bounds import bound_near_uniform, get_parity_error
from pmlopt.programs.record_leakage.exact_leakage import BranchAndBound, _RecordKind
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions

ROWS = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6]])
COUNTS = np.array([[3.0, 2.0, 1.0], [1.0, 4.0, 2.0]])
LAW = np.array([[0.6, 0.1, 0.0], [0.0, 0.05, 0.25]])


def make_adversary(entropy: float) -> BoundedAdversary:
    return BoundedAdversary(ROWS, np.log(COUNTS), entropy, math.log(COUNTS.sum()))


def test_counts_past_the_largest_float_have_a_uniform_law() -> None:
    counts = np.array([[1000.0, 1000.0 + math.log(2)], [1000.0, 1000.0]])
    law = BoundedAdversary(ROWS[:2], counts, 0.0, 1002.0).uniform_law
    assert law == pytest.approx(np.array([[0.2, 0.4], [0.2, 0.2]]))


@pytest.mark.parametrize("lacks", [0.0, 0.2])
def test_a_law_gets_the_entropy_that_it_lacks_and_that_rounding_may_hide(
    monkeypatch: pytest.MonkeyPatch, lacks: float
) -> None:
    """By the share at which the chord between both entropies has it."""
    monkeypatch.setattr(adversary_module, "bound_sum_rounding", lambda terms, size: 0.01 * size)
    have = compute_dataset_entropy(LAW, np.log(COUNTS))
    adversary = make_adversary(have + lacks)
    most = math.log(COUNTS.sum())
    found = adversary.make_allowed(LAW)
    assert compute_dataset_entropy(found, np.log(COUNTS)) >= have + lacks + 0.01 * most
    share = (lacks + 0.01 * most) / (most - have)
    assert found == pytest.approx((1 - share) * LAW + share * COUNTS / COUNTS.sum())


def test_a_leakage_is_rounded_down_by_the_rounding_of_logarithms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each log-ratio by a share of itself and of one; the mean of their sizes is `I + sqrt(2 I)` at most."""
    monkeypatch.setattr(adversary_module, "bound_sum_rounding", lambda terms, size: 0.1 * size)
    information = compute_record_information(LAW, ROWS)
    expected = information - 0.1 * (information + math.sqrt(2 * information) + 0.1)
    assert expected > 0
    assert make_adversary(1.0).compute_leakage(LAW) == pytest.approx(expected)


def test_the_declared_problem_has_the_entropy_and_the_information_of_a_law() -> None:
    program = build_class_relaxation(make_adversary(1.5))
    outputs = LAW.sum(axis=0) @ ROWS
    values = {"joint": LAW.ravel(), "law": outputs, "marginal": LAW.sum(axis=1), "leaked": 0.0}
    for name, value in values.items():
        program.variables[name].value = value
    sides = {name: constraint.args for name, constraint in program.constraints.items()}
    slacks = {
        name: float((right - left).value) for name, (left, right) in sides.items() if not left.shape
    }
    entropy = compute_dataset_entropy(LAW, np.log(COUNTS))
    assert slacks["entropy"] == pytest.approx(entropy - 1.5)
    information = float((LAW.sum(axis=0)[:, None] * ROWS * np.log(ROWS / outputs)).sum())
    assert slacks["outputs"] == pytest.approx(information)
    assert slacks["letters"] == pytest.approx(-0.7 * math.log(0.7) - 0.3 * math.log(0.3))


def test_a_parity_through_a_symmetric_channel_has_its_error() -> None:
    parity = queries.ModularSum(3, 2)
    assert get_parity_error(parity, symmetric_channel(parity, 0.2)) == pytest.approx(0.2)
    skewed = Mechanism([[0.8, 0.2], [0.3, 0.7]], inputs=[0, 1])
    assert get_parity_error(parity, skewed) is None


def test_where_all_classes_gain_alike_the_room_is_all_that_is_left() -> None:
    rows, counts = np.array([[0.75, 0.25], [0.25, 0.75]]), np.zeros((2, 2))
    assert bound_near_uniform(rows, counts, Decimal("0.1")) == Decimal("0.1")


# the method


def run_kinds(entropy: float, tolerance: float, sufficient_bound: float = 0.0) -> MethodResult[Any]:
    parity = queries.ModularSum(2, 2)
    program = record_leakage(parity, symmetric_channel(parity, 0.2), entropy)
    options = MethodOptions(NO_DEADLINE, tolerance)
    return BranchAndBound().search_kinds(program.channel, entropy, options, {}, sufficient_bound)


CAPACITY = math.log(2) + 0.2 * math.log(0.2) + 0.8 * math.log(0.8)


def test_a_capacity_that_a_law_reaches_needs_no_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """To half of the tolerance, as rounding makes the law's leakage less and the capacity more."""

    def draw(*_: Any) -> None:
        raise AssertionError("no start is needed")

    monkeypatch.setattr(exact_leakage, "draw_starts", draw)
    monkeypatch.setattr(exact_leakage, "find_parity_leakage", lambda *_: CAPACITY - 0.25)
    found = run_kinds(0.0, 1e-7)
    assert found.certificate.value == pytest.approx(CAPACITY, abs=1e-9)
    assert found.closed_form is not None
    assert found.closed_form.difference == pytest.approx(0.25, abs=1e-9)


def test_a_bound_need_not_fall_below_what_is_sufficient(monkeypatch: pytest.MonkeyPatch) -> None:
    targets: list[float] = []

    def prove(kind: _RecordKind, target: float, tolerance: float, *_: Any) -> str:
        targets.append(target + tolerance)
        return ""

    monkeypatch.setattr(_RecordKind, "prove_bound", prove)
    run_kinds(0.0, 0.1, 0.9)
    assert targets == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize(("bound", "searched"), [(0.54, False), (0.56, True)])
def test_a_known_bound_within_the_tolerance_of_the_value_needs_no_search(
    bound: float, searched: bool
) -> None:
    relaxation = SimpleNamespace(free_count=0)
    search: Any = SimpleNamespace(
        adversary=SimpleNamespace(cannot_leak=False, only_uniform=False),
        value=0.5,
        nodes=0,
        relaxation=relaxation,
        run=lambda *_: "searched",
    )
    known: Any = SimpleNamespace(bound=bound)
    kind = _RecordKind(0, search, known, "known")
    assert kind.prove_bound(0.4, 0.05, None, NO_DEADLINE) == ("searched" if searched else "known")
