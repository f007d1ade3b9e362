"""The methods for trade-offs: programs, starts, time limits, and mechanisms with a row for each value."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.optimize import linprog

from pmlopt import certify, distortion_leakage, leakage_distortion, record_leakage, solve
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import ProgramError, QueryError
from pmlopt.model.closed_forms.parity import parity_leakage
from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    expected_distortion,
)
from pmlopt.programs import Status
from pmlopt.programs.certificate import WarmStart
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.grouped_rows import (
    build_families,
    find_family_member,
    plan_groupings,
    select_distinct,
)
from pmlopt.programs.tradeoff.proof import (
    PriorCut,
    Sense,
    TradeoffLosses,
    TradeoffProof,
    compute_tradeoff_bound,
    is_bound_proved,
    sum_cuts,
)

PARITY = ModularSum(3, 2)


class TestPrograms:
    def test_the_problem_bounds_the_value_from_below(self) -> None:
        for program in (
            leakage_distortion(ModularSum(2, 3), 0.2, 0.7),
            distortion_leakage(PARITY, 0.1, 1.5),
        ):
            least = float(program.problem.solve(solver="CLARABEL"))
            result = solve(program)
            assert result.status is Status.OPTIMAL
            assert -1e-7 <= least <= result.value + 1e-7

    def test_scales(self) -> None:
        """A parity is wrong half of the time where the answer is a constant."""
        assert leakage_distortion(PARITY, 0.2, 1.5).scale == 1
        assert distortion_leakage(PARITY, 0.2, 1.5).scale == pytest.approx(0.5)
        assert distortion_leakage(PARITY, 0.2, 1.5, loss=np.zeros((2, 2))).scale == 1
        assert not leakage_distortion(PARITY, 0.2, 1.5).maximised


class TestStarts:
    def test_the_priors_of_a_neighbour_save_rounds(self) -> None:
        first = solve(leakage_distortion(ModularSum(2, 3), 0.2, 0.7))
        assert not first.warm_started
        again = solve(leakage_distortion(ModularSum(2, 3), 0.2, 0.7), warm_start=first)
        assert again.warm_started
        assert again.iterations is not None
        assert first.iterations is not None
        assert again.iterations <= first.iterations
        assert abs(again.value - first.value) <= again.gap + first.gap
        assert again.certificate.verify()

    def test_priors_serve_the_other_problem(self) -> None:
        first = solve(leakage_distortion(ModularSum(2, 3), 0.2, 0.7))
        back = solve(distortion_leakage(ModularSum(2, 3), first.value, 0.7), warm_start=first)
        assert back.warm_started
        assert back.value == pytest.approx(0.2, abs=1e-4)

    @pytest.mark.parametrize(
        "arrays",
        [
            {},
            {"record0": np.array(0), "joint0": np.ones((3, 3)) / 9},
            {"record0": np.array(7), "joint0": np.ones((2, 2)) / 4},
            {"record0": np.array(0), "joint0": -np.ones((2, 2))},
            {"record0": np.array(0), "joint0": np.full((2, 2), math.nan)},
            {"record0": np.array(0), "joint0": np.zeros((2, 2))},
            {"joint0": np.ones((2, 2)) / 4},
            {"matrix": np.eye(5)},
        ],
    )
    def test_priors_that_do_not_fit_are_left_out(self, arrays: dict[str, Any]) -> None:
        start = WarmStart("cutting-planes", arrays)
        result = solve(leakage_distortion(PARITY, 0.2, 1.5), warm_start=start, gap=0.01)
        assert not result.warm_started
        assert result.status is Status.OPTIMAL

    def test_a_mechanism_to_start_from(self) -> None:
        result = solve(leakage_distortion(PARITY, 0.2, 1.5), warm_start=[[0.8, 0.2], [0.2, 0.8]])
        assert result.warm_started
        assert result.value == pytest.approx(parity_leakage(3, 0.2, 1.5), abs=1e-6)


# ---------------------------------------------------------------- a row for each value


def symmetric_capacity(error: float) -> float:
    """Two rows of a symmetric channel of three outputs, each as likely: H(Y) - H(Y | X_i)."""
    row = np.array([1 - error, error / 2, error / 2])
    law = (row + row[[1, 0, 2]]) / 2
    return float((row * np.log(row)).sum() - (law * np.log(law)).sum())


MANY = ModularSum(30, 3)


def test_the_symmetric_mechanism_has_the_distortion() -> None:
    """The sum is uniform up to 2^-30, an error is off by 1 or 2, and by 4/3 on average."""
    rows = plan_groupings(leakage_distortion(MANY, 0.2, 18.0))[0]
    matrix = find_family_member(rows, build_families(rows)[0])
    assert rows.program.tradeoff.compute_distortion(matrix) <= 0.2
    assert matrix[:3] == pytest.approx(np.full((3, 3), 0.075) + 0.775 * np.eye(3), abs=1e-6)
    loose = plan_groupings(leakage_distortion(MANY, 5.0, 18.0))[0]
    assert find_family_member(loose, build_families(loose)[0]) == pytest.approx(1 / 3)


def test_a_limit_that_is_never_reached_changes_nothing() -> None:
    """The search without a limit is no other one: many classes would keep it among priors for hours."""
    program = leakage_distortion(ModularSum(12, 3), 0.2, 6 * math.log(2))
    free, limited = solve(program), solve(program, time_limit=1e6)
    assert (free.iterations, free.value, free.bound) == (
        limited.iterations,
        limited.value,
        limited.bound,
    )


def test_hundreds_of_classes_are_solved() -> None:
    """Most have next to no mass under any prior: Clarabel stalls on them."""
    result = solve(leakage_distortion(ModularSum(300, 3), 0.2, 180.0), time_limit=4.0)
    assert 0.3 <= result.bound <= symmetric_capacity(0.15)
    assert result.bound <= result.value
    assert result.certificate.distortion <= 0.2 + 1e-12


# ---------------------------------------------------------------- certificates


BOTH: list[Sense] = ["leakage", "distortion"]


@cache
def certified(sense: Sense) -> TradeoffCertificate:
    program = (
        leakage_distortion(PARITY, 0.2, 1.5)
        if sense == "leakage"
        else distortion_leakage(ModularSum(2, 3), 0.2, 0.7)
    )
    return solve(program).certificate


@pytest.mark.parametrize("sense", BOTH)
class TestFalseClaims:
    def test_mechanisms(self, sense: Sense) -> None:
        known = certified(sense)
        matrix = known.mechanism.matrix
        for other in (
            np.eye(*matrix.shape),
            matrix[:, ::-1],
            np.full(matrix.shape, 1 / matrix.shape[1]),
        ):
            named = Mechanism(other, known.mechanism.inputs, known.mechanism.outputs)
            moved = replace(known, mechanism=named)
            assert not moved.verify()
            reached = moved.leakage if sense == "leakage" else moved.distortion
            assert not replace(moved, value=reached, bound=min(known.bound, reached)).verify()

    def test_limits(self, sense: Sense) -> None:
        known = certified(sense)
        for limit in (known.limit * 0.9, 0.0, -1.0, math.nan, math.inf):
            assert not replace(known, limit=limit).verify()
        assert replace(known, limit=known.limit * 0.9).violation > 0

    def test_losses_and_supports(self, sense: Sense) -> None:
        known = certified(sense)
        losses, allowed = known.tradeoff.losses, known.tradeoff.allowed
        support = allowed.copy()
        support[0, 1] = False
        for tradeoff in (
            TradeoffLosses(losses, support),
            TradeoffLosses(losses, ~allowed),
            TradeoffLosses(-losses, allowed),
            TradeoffLosses(losses * math.nan, allowed),
            TradeoffLosses(losses[:1], allowed[:1]),
        ):
            assert not replace(known, tradeoff=tradeoff).verify()

    def test_cuts(self, sense: Sense) -> None:
        known = certified(sense)
        assert known.proof is not None
        first, *others = known.proof.cuts
        joint, posterior = first.joint, first.posterior
        changes: list[dict[str, Any]] = [
            *({"weight": x} for x in (-first.weight, -1e-9, math.nan, math.inf)),
            *({"posterior": x} for x in (-posterior, posterior * math.nan, posterior[:, :1])),
            *({"joint": x} for x in (-joint, joint[:, :1], joint[:1], 0 * joint)),
            {"joint": np.eye(*joint.shape) / 2},  # of too little entropy
            *({"record": x} for x in (-1, PARITY.records)),
        ]
        for change in changes:
            cuts = (replace(first, **change), *others)
            assert not replace(known, proof=TradeoffProof(cuts, known.proof.price)).verify()
        for price in (-1.0, math.nan, math.inf):
            assert not replace(known, proof=TradeoffProof(known.proof.cuts, price)).verify()

    def test_audits(self, sense: Sense) -> None:
        known = certified(sense)
        audit = known.audit
        low = replace(audit, value=0.01, bound=0.01)
        assert not replace(known, audit=low).verify()
        less = min(0.01, known.bound)
        assert not replace(
            replace(known, audit=low), value=0.01 if sense == "leakage" else known.value, bound=less
        ).verify()
        easier = replace(audit, entropy=audit.entropy + 0.1)
        assert not replace(known, audit=easier).verify()
        still = Mechanism(
            np.full(known.mechanism.matrix.shape, 1 / known.mechanism.matrix.shape[1])
        )
        assert not replace(known, audit=replace(audit, mechanism=still, proofs=())).verify()


@pytest.mark.parametrize("bound", [1.0, 2.0])
def test_negative_weights_prove_nothing(bound: float) -> None:
    """A cut that says nothing with the weight 1 + t, one that says less than nothing with -t."""
    known = certified("leakage")
    assert known.value == pytest.approx(parity_leakage(3, 0.2, 1.5), abs=1e-5)
    uniform = np.full((2, 2), 0.25)
    wrong = PriorCut(0, uniform, np.array([[0.9, 0.1], [0.1, 0.9]]), -100.0)
    proof = TradeoffProof((PriorCut(0, uniform, np.full((2, 2), 0.5), 101.0), wrong), 0.0)
    false = replace(replace(known, value=known.value, bound=bound), proof=proof)
    assert not false.verify()
    gains, _ = sum_cuts(proof.cuts, known.tradeoff.losses.shape)
    assert gains.min(axis=1).sum() > bound  # the formula alone would believe it
    assert not is_bound_proved(
        known.tradeoff, "leakage", known.limit, proof, known.query, known.entropy, bound
    )
    with pytest.raises(ProgramError, match="negative"):
        compute_tradeoff_bound(known.tradeoff, "leakage", known.limit, proof)


class TestGivenMatrices:
    def test_the_optimum_of_a_parity(self) -> None:
        program = leakage_distortion(PARITY, 0.2, 1.5)
        found = certify(program, [[0.8, 0.2], [0.2, 0.8]])
        assert found.value == pytest.approx(parity_leakage(3, 0.2, 1.5), abs=1e-6)
        assert found.bound == 0
        assert found.certificate.verify()

    @pytest.mark.parametrize("sense", BOTH)
    def test_a_mechanism_past_the_limit_is_mixed(self, sense: Sense) -> None:
        """Towards the query itself in Problem 2, towards a constant in Problem 3."""
        given: list[list[float]] = (
            [[0.5, 0.5], [0.5, 0.5]] if sense == "leakage" else [[1, 0], [0, 1]]
        )
        program = (
            leakage_distortion(PARITY, 0.2, 1.5)
            if sense == "leakage"
            else distortion_leakage(PARITY, 0.1, 1.5)
        )
        found = certify(program, given)
        assert found.certificate.violation == 0
        assert found.certificate.verify()
        assert found.value >= found.bound


# ---------------------------------------------------------------- a row for each value, and many records


LOG2 = math.log(2)


def majority(records: int) -> Weight:
    return Weight(records, lambda weight: int(2 * weight > records))


@pytest.mark.parametrize("seed", range(4))
def test_small_queries_are_never_worse_than_a_row_for_each_value(seed: int) -> None:
    """Random queries, losses and laws: random mechanisms of the distortion D, and those of both families."""
    random = np.random.default_rng(seed)
    shape = [(2, 2), (2, 3), (3, 2), (2, 2)][seed]
    query = Explicit(random.integers(0, 3, shape))
    outputs = len(query.values)
    law = random.dirichlet(np.ones(math.prod(shape))).reshape(shape)
    loss = random.uniform(0, 1, (outputs, outputs)) * (1 - np.eye(outputs))
    entropy = random.uniform(0, query.log_size)
    trivial = expected_distortion(query, np.full((outputs, outputs), 1 / outputs), loss, law)
    program = leakage_distortion(query, 0.4 * trivial, entropy, loss=loss, law=law)
    result = solve(program, gap=1e-3)
    coarse = plan_groupings(program)[0]
    rivals = [
        find_family_member(coarse, family)[coarse.first_classes]
        for family in build_families(coarse)
    ]
    noise = random.dirichlet(np.ones(outputs), outputs)
    share = min(1.0, 0.4 * trivial / expected_distortion(query, noise, loss, law))
    rivals.append((1 - share) * np.eye(outputs) + share * noise)
    for rows in rivals:
        assert expected_distortion(query, rows, loss, law) <= 0.4 * trivial * (1 + 1e-9)
        assert result.value <= solve(record_leakage(query, rows, entropy), gap=1e-3).bound + 1e-3


@pytest.mark.parametrize(
    ("query", "distortion", "entropy"),
    [(ModularSum(1000, 3), 0.2, 999.5 * LOG2), (majority(10_000), 0.1, 9999.5 * LOG2)],
)
def test_many_records_in_little_time(query: Query, distortion: float, entropy: float) -> None:
    """Never worse than what one relaxation proves of the symmetric channel, and with a bound."""
    program = leakage_distortion(query, distortion, entropy)
    rows = plan_groupings(program)[0]
    symmetric = find_family_member(rows, build_families(rows)[0])[rows.first_classes]
    quick = solve(record_leakage(query, symmetric, entropy), time_limit=1e-3)
    result = solve(program, time_limit=0.1)
    assert result.value <= quick.bound + 1e-6
    assert 0.1 < result.bound <= result.value
    assert result.certificate.violation == 0
    assert result.mechanism.matrix.shape[0] == len(program.losses)
    with pytest.raises(QueryError, match="too many"):
        result.certificate.by_dataset()


def silent_optimum(query: Query) -> float:
    """The least distortion of a mechanism on all datasets that tells nothing of a record, by scipy."""
    table = query.table()
    outputs = len(query.values)
    numbers = np.array(query.values, dtype=float)
    losses = np.abs(numbers[table.ravel()][:, None] - numbers) / table.size
    rows: list[FloatArray] = []
    for record, size in enumerate(query.alphabets):
        letters = np.indices(query.alphabets)[record].ravel()
        for letter in range(size):
            away = (letters == letter) / (letters == letter).sum() - 1 / table.size
            rows += [np.outer(away, np.eye(outputs)[y]).ravel() for y in range(outputs)]
    sums = np.kron(np.eye(table.size), np.ones(outputs))
    found = linprog(
        losses.ravel(),
        A_eq=np.vstack([sums, *rows]),
        b_eq=np.concatenate([np.ones(table.size), np.zeros(len(rows))]),
    )
    return float(found.fun)


@pytest.mark.parametrize(
    "query",
    [
        ModularSum(3, 3),
        ModularSum(3, 2),
        Quadratic(4),
        ModularSum(2, 2, 3),
        Explicit([[0, 1, 2], [1, 2, 4]]),
    ],
)
def test_no_leakage_of_a_uniform_dataset_is_a_linear_program(query: Query) -> None:
    result = solve(distortion_leakage(query, 0.0, query.log_size))
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(silent_optimum(query), abs=1e-9)
    assert result.certificate.leakage < 1e-14
    assert result.certificate.verify()


def test_a_distortion_is_bounded_in_little_time() -> None:
    """A constant is wrong by 0.5; the symmetric channel is a start for what leaks 0.1."""
    result = solve(distortion_leakage(majority(301), 0.1, 300.5 * LOG2), time_limit=0.5)
    assert result.value < 0.4
    assert result.certificate.leakage <= 0.1


def test_the_penalty_method_keeps_the_time_and_starts_from_a_mechanism() -> None:
    program = leakage_distortion(Quadratic(8), 0.2, 1.0)
    first = solve(program, "penalty", time_limit=0.01)
    assert not first.warm_started
    parity = leakage_distortion(ModularSum(3, 2), 0.2, 1.5)
    good = solve(parity)
    again = solve(parity, "penalty", good, time_limit=0.5)
    assert again.warm_started
    assert again.value <= good.value + 0.05  # what an audit cut short proves of it


def test_cuts_are_laws_that_differ() -> None:
    """The largest above the floor first; a law next to one that is chosen already is left out."""
    first, near, other = (
        np.array([[0.5, 0.5]]),
        np.array([[0.5, 0.5]]) + 1e-9,
        np.array([[0.9, 0.1]]),
    )
    joints, values = np.array([other, near, first, other[:, ::-1]]), np.array([0.3, 0.4, 0.5, 0.1])
    chosen = select_distinct(joints, values, 0.2)
    assert [law.tolist() for law in chosen] == [first.tolist(), other.tolist()]
    assert len(select_distinct(joints, values, 0.0)) == 3
