"""Leakage against distortion: closed forms, and programs over all datasets one by one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cache, partial
from itertools import pairwise, permutations, product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import records as oracle
from oracles.designs import FloatArray
from scipy.optimize import brentq
from strategies import MODEST

from pmlopt import Result, distortion_leakage, leakage_distortion, solve
from pmlopt.errors import (
    QueryError,
)
from pmlopt.model.closed_forms.parity import parity_leakage
from pmlopt.model.queries import Explicit, ModularSum, Quadratic, Query
from pmlopt.programs import Status
from pmlopt.programs.tradeoff.best_response import BestResponse, solve_best_response
from pmlopt.programs.tradeoff.builders import build_penalty_model
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.grouped_rows import GroupedRows, WorstCasePrior
from pmlopt.programs.tradeoff.methods import PenaltyMethod, TradeoffStart
from pmlopt.programs.tradeoff.program import build_tradeoff_model
from pmlopt.programs.tradeoff.proof import (
    PriorCut,
    Sense,
    TradeoffLosses,
    TradeoffProof,
    bound_in_decimals,
    compute_tradeoff_bound,
)
from pmlopt.programs.wu2026entropy.penalty import PenalizedProblem, descend_multiplicatively
from pmlopt.solvers.solver_result import Deadline, MethodOptions

LOG2 = math.log(2)
Answer = Result[TradeoffCertificate]


def asked(
    builder: Callable[..., Any], query: Query, limit: float, b: float, solver: Any = "auto", *,
    gap: float = 1e-6, time_limit: float | None = None, warm: Answer | None = None, **data: Any,
) -> Answer:  # fmt: skip
    """The program of a limit and an entropy, solved."""
    return solve(builder(query, limit, b, **data), solver, warm, gap=gap, time_limit=time_limit)


leakage_at, distortion_at = partial(asked, leakage_distortion), partial(asked, distortion_leakage)
"""The least leakage within a distortion, and the least distortion within a leakage."""


def curve_of(
    work: Callable[..., Answer], query: Query, points: list[tuple[float, float]]
) -> list[Answer]:
    """Many points, each from the priors of the one before."""
    found: list[Answer] = []
    for limit, b in points:
        found.append(work(query, limit, b, warm=found[-1] if found else None))
    return found


PARITY = ModularSum(3, 2)


# ---------------------------------------------------------------- all datasets, one by one


SOLVERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CLARABEL", {}),
    ("CLARABEL", {"equilibrate_enable": False}),
    ("SCS", {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 100_000}),
)
"""For the oracle: the first that ends optimal counts."""


@dataclass(frozen=True, eq=False)
class Full:
    """A problem without classes: a law and a loss for each dataset.

    Attributes:
        losses: (N, M) p_0(x) d(f(x), y).
        images: (place in X,) of every dataset, and the record that record i becomes, for each symmetry.
    """

    query: Query
    losses: FloatArray
    images: list[tuple[list[int], tuple[int, ...]]]

    def members(self, record: int) -> FloatArray:
        """(A, N) one where a dataset has that letter there."""
        return oracle.datasets(self.query.alphabets, self.losses).members(record)

    def joints(self, result: Answer) -> list[FloatArray]:
        """(A, N) of the cuts' priors, uniform inside cells, and of their images."""
        certificate = result.certificate
        assert certificate.proof is not None
        classes = certificate.query.table().ravel()
        found: list[FloatArray] = []
        for cut in certificate.proof.cuts:
            members = self.members(cut.record)
            counts = np.array(
                [[row[classes == k].sum() for k in range(cut.joint.shape[1])] for row in members]
            )
            inside = cut.joint / np.where(counts > 0, counts, 1.0)
            assert (cut.joint[counts == 0] == 0).all()
            p = (members * inside[:, classes]).sum(axis=0)
            assert math.fsum(p) == pytest.approx(1, abs=1e-12)
            assert oracle.entropy(p) >= certificate.entropy - 1e-12
            for places, records in self.images:
                moved = np.zeros(len(p))
                moved[places] = p
                joint = self.members(records[cut.record]) * moved
                alike = [known for known in found if known.shape == joint.shape]
                if not any(np.allclose(joint, known, rtol=0, atol=1e-9) for known in alike):
                    found.append(joint)
        return found

    def optimum(self, joints: list[FloatArray], sense: Sense, limit: float) -> float:
        """The best mechanism with a row for each dataset, against these priors."""
        q = cp.Variable(self.losses.shape, nonneg=True)
        leaked = []
        for joint in joints:
            laws = joint @ q
            alone = joint.sum(axis=1, keepdims=True) @ (joint.sum(axis=0, keepdims=True) @ q)
            leaked.append(cp.sum(cp.rel_entr(laws, alone)))
        spent = cp.sum(cp.multiply(self.losses, q))
        most = cp.max(cp.hstack(leaked))
        aim, bounded = (most, spent) if sense == "leakage" else (spent, most)
        problem = cp.Problem(cp.Minimize(aim), [cp.sum(q, axis=1) == 1, bounded <= limit])
        for solver, settings in SOLVERS:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", UserWarning
                )  # cvxpy's for an end that is not optimal
                problem.solve(solver=solver, **settings)
            if problem.status == cp.OPTIMAL:
                break
        assert problem.status == cp.OPTIMAL
        return float(problem.value)


def full(query: Query, loss: Any = None, law: Any = None) -> Full:
    datasets = list(product(*map(range, query.alphabets)))
    table = query.table()
    values = [float(str(value)) for value in query.values]
    masses = (
        np.full(table.shape, 1 / table.size)
        if law is None
        else np.asarray(law).reshape(table.shape)
    )
    distance = (
        np.array([[abs(s - t) for t in values] for s in values])
        if loss is None
        else np.asarray(loss)
    )
    losses = np.array([masses[x] * distance[table[x]] for x in datasets])
    place = {x: at for at, x in enumerate(datasets)}
    images = []
    for order in permutations(range(query.records)):
        kept = all(query.alphabets[i] == query.alphabets[order[i]] for i in range(query.records))
        moved = [tuple(x[i] for i in order) for x in datasets] if kept else []
        if moved and all(
            table[x] == table[y] and abs(masses[x] - masses[y]) < 1e-15
            for x, y in zip(datasets, moved, strict=True)
        ):
            records = tuple(order.index(i) for i in range(len(order)))
            images.append(([place[y] for y in moved], records))
    return Full(query, losses, images)


def mixed_case() -> tuple[Query, FloatArray, FloatArray]:
    """Records of 2 and 3 letters, a loss and a law at random; a dataset that never comes."""
    random = np.random.default_rng(5)
    law = random.dirichlet(np.ones(6))
    law[2] = 0.0
    query = Explicit([[0, 1, 2], [1, 2, 0]])
    loss = np.minimum(random.gamma(1.0, size=(3, 4)), 1 - np.eye(3, 4) + 0.1)
    return query, loss, (law / law.sum()).reshape(2, 3)


MIXED, MIXED_LOSS, MIXED_LAW = mixed_case()
TILTED = np.array([[[4, 2], [2, 1]], [[2, 1], [1, 3]]]) / 16
CASES: dict[str, tuple[Query, Any, Any, float, float]] = {
    "sum mod 3 of three": (ModularSum(3, 3), None, None, 0.3, 1.0),
    "own loss and law": (MIXED, MIXED_LOSS, MIXED_LAW, 0.085, 0.8),
    "law of weights": (Quadratic(3), None, TILTED, 0.25, 1.2),
}


@cache
def solved(name: str, sense: Sense) -> Answer:
    query, loss, law, limit, b = CASES[name]
    if sense == "leakage":
        return leakage_at(query, limit, b, loss=loss, law=law)
    return distortion_at(query, 0.15, b, loss=loss, law=law)


BOTH: list[Sense] = ["leakage", "distortion"]


@pytest.mark.parametrize(
    "sense", BOTH, scope="class"
)  # one after another: they share what is solved
@pytest.mark.parametrize("name", CASES, scope="class")
class TestAllDatasets:
    def test_the_mechanism_keeps_its_claims(self, name: str, sense: Sense) -> None:
        query, loss, law, _, b = CASES[name]
        result = solved(name, sense)
        mechanism = result.certificate.by_dataset()
        problem = full(query, loss, law)
        assert mechanism.inputs == tuple(product(*map(range, query.alphabets)))
        distortion = math.fsum((problem.losses * mechanism.matrix).ravel())
        assert distortion == pytest.approx(result.certificate.distortion, rel=1e-12, abs=1e-14)
        assert result.status is Status.OPTIMAL
        assert 0 <= result.gap <= 1e-6
        reached = result.certificate.leakage, distortion
        value, kept = reached if sense == "leakage" else reached[::-1]
        assert result.value == pytest.approx(value, rel=1e-12, abs=1e-14)
        assert kept <= result.certificate.limit + 1e-12
        data = oracle.datasets(query.alphabets, mechanism.matrix)
        told = [
            oracle.information(data, record, oracle.largest(data, record, b, starts=2))
            for record in range(query.records)
        ]
        assert max(told) <= result.certificate.leakage + 1e-12
        assert max(told) >= result.certificate.leakage - 1e-5  # the audit is not idle

    def test_a_row_for_each_dataset_gains_nothing(self, name: str, sense: Sense) -> None:
        query, loss, law, _, _ = CASES[name]
        result = solved(name, sense)
        problem = full(query, loss, law)
        optimum = problem.optimum(problem.joints(result), sense, result.certificate.limit)
        assert result.bound <= optimum + 1e-6
        assert optimum <= result.value + 1e-6


def information(joint: FloatArray, q: FloatArray) -> float:
    laws = joint @ q
    alone = joint.sum(axis=1, keepdims=True) * laws.sum(axis=0)
    used = laws > 0
    return float((laws[used] * np.log(laws[used] / alone[used])).sum())


# ---------------------------------------------------------------- parity


def past(n: int, share: float) -> float:
    """An entropy with n - 1 bits, and a share of the last."""
    return (n - 1 + share) * LOG2


@pytest.mark.parametrize(
    ("share", "distortion"), [(-1.0, 0.02), (-1.0, 0.3), (0.4, 0.02), (0.7, 0.3)]
)
@pytest.mark.parametrize("n", [4, 10_000])
def test_parity_is_solved_by_its_symmetric_channel(n: int, share: float, distortion: float) -> None:
    result = leakage_at(ModularSum(n, 2), distortion, past(n, share))
    expected = parity_leakage(n, distortion, past(n, share))
    assert result.value == pytest.approx(expected, abs=1e-5)
    assert result.bound <= expected + 1e-12
    assert result.value >= expected - 1e-12
    assert result.gap <= 1e-6
    assert result.certificate.distortion <= distortion + 1e-12


@pytest.mark.parametrize("leakage", [0.01, 0.2, 0.5])
@pytest.mark.parametrize("n", [2, 10_000])
def test_distortion_of_a_parity_against_an_adversary_who_may_know_all(
    n: int, leakage: float
) -> None:
    d = float(brentq(lambda x: LOG2 - oracle.binary_entropy(x) - leakage, 1e-12, 0.5, xtol=1e-16))
    result = distortion_at(ModularSum(n, 2), leakage, 0.0)
    assert result.value == pytest.approx(d, abs=1e-5)
    assert result.bound <= d + 1e-12
    assert result.certificate.leakage <= leakage


# ---------------------------------------------------------------- curves


@pytest.mark.parametrize(
    ("work", "grid"), [(leakage_at, (0.1, 0.25, 0.4)), (distortion_at, (0.05, 0.2, 0.35))]
)
def test_a_curve_falls_and_is_convex(work: Callable[..., Answer], grid: tuple[float, ...]) -> None:
    curve = curve_of(work, ModularSum(2, 3), [(limit, 0.7) for limit in grid])
    assert [point.certificate.limit for point in curve] == list(grid)
    assert_convex([point.bound for point in curve], [point.value for point in curve])
    alone = work(ModularSum(2, 3), grid[-1], 0.7)
    assert abs(alone.value - curve[-1].value) <= alone.gap + curve[-1].gap


def assert_convex(low: list[float], high: list[float]) -> None:
    """Some falling convex function at equal steps lies between both."""
    for place in range(1, len(low)):
        assert low[place] <= high[place - 1]
    for place in range(1, len(low) - 1):
        assert low[place] <= (high[place - 1] + high[place + 1]) / 2


def test_a_curve_over_entropy_falls_and_keeps_its_order() -> None:
    points = [(0.2, 1.9), (0.2, 0.0), (0.1, 1.6), (0.2, 0.0)]
    curve = curve_of(leakage_at, PARITY, points)
    for (d, b), point in zip(points, curve, strict=True):
        assert point.value == pytest.approx(parity_leakage(3, d, b), abs=1e-5)
        assert (point.certificate.limit, point.certificate.entropy) == (d, b)
    back = curve_of(distortion_at, PARITY, [(0.1, b) for b in (0.0, 1.6)])
    for before, after in pairwise(back):
        assert after.bound <= before.value


# ---------------------------------------------------------------- the bound from any multipliers


@given(st.integers(0, 2**32 - 1), st.sampled_from(BOTH))
@MODEST
def test_any_multipliers_bound_from_below(seed: int, sense: Sense) -> None:
    random = np.random.default_rng(seed)
    classes, outputs, count = (int(x) for x in random.integers(1, 5, size=3))
    losses = random.gamma(0.5, size=(classes, outputs))
    cuts = []
    for _ in range(count):
        letters = int(random.integers(1, 4))
        joint = random.dirichlet(np.full(letters * classes, 0.5)).reshape(letters, classes)
        posterior = random.dirichlet(np.ones(letters), size=outputs).T
        cuts.append(PriorCut(0, joint, posterior, float(random.gamma(0.5))))
    proof = TradeoffProof(tuple(cuts), float(random.gamma(0.5)))
    tradeoff = TradeoffLosses(losses, np.ones(losses.shape, dtype=bool))
    for concentration in (0.1, 1.0, 10.0):
        q = random.dirichlet(np.full(outputs, concentration), size=classes)
        leaked, spent = max(information(cut.joint, q) for cut in cuts), float((losses * q).sum())
        if sense == "leakage":
            assert compute_tradeoff_bound(tradeoff, sense, spent, proof) <= leaked + 1e-15
        else:
            assert compute_tradeoff_bound(tradeoff, sense, max(leaked, 0.0), proof) <= spent + 1e-15
        limit = spent if sense == "leakage" else max(leaked, 0.0)
        with localcontext() as context:
            context.prec = 50
            exact = bound_in_decimals(tradeoff, sense, limit, proof)
        assert Decimal(compute_tradeoff_bound(tradeoff, sense, limit, proof)) <= max(
            exact, Decimal(0)
        )


# ---------------------------------------------------------------- programs


HAMMING = TradeoffLosses((1 - np.eye(2)) / 2, np.ones((2, 2), dtype=bool))


@pytest.mark.parametrize("d", [0.05, 0.45])
def test_the_program_of_one_record_is_rate_distortion(d: float) -> None:
    program = build_tradeoff_model(HAMMING, [np.eye(2) / 2], "leakage", d)
    assert program.problem.is_dcp()
    rate = LOG2 - oracle.binary_entropy(d)
    assert program.problem.solve(solver="CLARABEL") == pytest.approx(rate, abs=1e-7)
    back = build_tradeoff_model(HAMMING, [np.eye(2) / 2], "distortion", rate)
    assert back.problem.solve(solver="CLARABEL") == pytest.approx(d, abs=1e-7)


def penalty_case(
    seed: int, sense: Sense
) -> tuple[TradeoffLosses, list[FloatArray], PenalizedProblem]:
    random = np.random.default_rng(seed)
    classes, outputs = 3, int(random.integers(2, 4))
    losses = random.gamma(1.0, size=(classes, outputs)) / classes
    joints = [random.dirichlet(np.full(2 * classes, 0.5)).reshape(2, classes)]
    if seed % 2:
        joints.append(random.dirichlet(np.full(3 * classes, 0.5)).reshape(3, classes))
    limit, weight = float(random.uniform(0.05, 0.5)), float(random.choice([0.5, 2.0, 10.0]))
    tradeoff = TradeoffLosses(losses, np.ones(losses.shape, dtype=bool))
    return tradeoff, joints, PenalizedProblem(tuple(joints), losses, sense, limit, weight)


@pytest.mark.parametrize("sense", BOTH)
@pytest.mark.parametrize("seed", range(2))
def test_the_penalised_program_and_the_exponentiated_gradient_agree(
    seed: int, sense: Sense
) -> None:
    tradeoff, joints, problem = penalty_case(seed, sense)
    program = build_penalty_model(tradeoff, joints, sense, problem.limit, problem.weight)
    assert program.problem.is_dcp()
    optimum = float(program.problem.solve(solver="CLARABEL"))
    matrix = np.maximum(program.variables["mechanism"].value, 0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    assert problem.evaluate(matrix) == pytest.approx(optimum, abs=1e-6)
    uniform = np.full(matrix.shape, 1 / matrix.shape[1])
    reached = problem.evaluate(descend_multiplicatively(problem, uniform, steps=3000))
    assert reached >= optimum - 1e-6
    if len(joints) == 1:
        assert reached <= optimum + 1e-4
    else:  # where two records leak as much, the slope of one need not lead down
        assert reached <= problem.evaluate(uniform)


@pytest.mark.parametrize("sense", BOTH)
@pytest.mark.parametrize("seed", range(2))
def test_the_gradient_is_the_slope_along_mechanisms(seed: int, sense: Sense) -> None:
    _, _, problem = penalty_case(seed, sense)
    random = np.random.default_rng(seed)
    matrix = random.dirichlet(np.full(problem.losses.shape[1], 3.0), size=len(problem.losses))
    for _ in range(5):
        way = random.normal(size=matrix.shape)
        way -= way.mean(axis=1, keepdims=True)
        step = 1e-4 * matrix.min()
        slope = (problem.evaluate(matrix + step * way) - problem.evaluate(matrix - step * way)) / (
            2 * step
        )
        assert float((problem.compute_gradient(matrix) * way).sum()) == pytest.approx(
            slope, rel=1e-5, abs=1e-7
        )


@pytest.mark.parametrize("sense", BOTH)
def test_the_penalty_method_claims_no_bound(sense: Sense) -> None:
    """Called directly: `solve` compares what it ends at without time with the first mechanism."""
    query, loss, law, _, b = CASES["own loss and law"]
    exact = solved("own loss and law", sense)
    build: Any = leakage_distortion if sense == "leakage" else distortion_leakage
    program = build(query, exact.certificate.limit, b, loss=loss, law=law)
    found, again = (
        PenaltyMethod(seed=3)(
            program, MethodOptions(Deadline.after(1e-9), 1e-6), TradeoffStart()
        ).certificate
        for _ in range(2)  # two rounds are the fewest
    )
    assert (found.mechanism.matrix == again.mechanism.matrix).all()
    assert found.bound == -math.inf
    other = found.distortion if sense == "leakage" else found.leakage
    assert found.violation == max(0.0, other - exact.certificate.limit)
    assert found.violation > 1e-12 or found.value >= exact.bound - 1e-12
    spent = math.fsum((full(query, loss, law).losses * found.by_dataset().matrix).ravel())
    assert found.distortion == pytest.approx(spent, rel=1e-12)


# ---------------------------------------------------------------- the ends


TIES = np.array([[0.3, 0.3, 0.7], [0.1, 0.3, 0.1], [0.9, 0.2, 0.2]])


@pytest.mark.parametrize(
    ("scale", "share"),
    [(1.0, 1.0), (1 / 3, 1 + 1e-13), (0.7, 1 - 1e-13), (1e-3, 1.0), (1e6, 1 - 1e-13)],
)
def test_the_least_distortion_is_reached_at_random_among_equals(scale: float, share: float) -> None:
    """Each value has two cheapest outputs; half each, two values differ in one output of two."""
    query = ModularSum(2, 3)  # weights 0, 1, 2 at 1/4, 1/2, 1/4
    least = scale * (0.3 / 4 + 0.1 / 2 + 0.2 / 4)
    result = leakage_at(query, least * share, 0.5, loss=scale * TIES)
    assert result.status is Status.OPTIMAL
    assert result.certificate.distortion == pytest.approx(least, rel=1e-12)
    assert (result.mechanism.matrix[TIES.min(axis=1, keepdims=True) < TIES] == 0).all()
    problem = full(query, TIES)
    costly = problem.losses > problem.losses.min(axis=1, keepdims=True)
    optimum = replace(problem, losses=1.0 * costly).optimum(problem.joints(result), "leakage", 0.0)
    assert result.value == pytest.approx(optimum, abs=2e-6)
    assert result.value < LOG2 - 0.1  # the first of equals tells the first weight from the last


@pytest.mark.parametrize("method", ["cutting-planes", "penalty"])
@pytest.mark.parametrize("query", [Quadratic(3), ModularSum(2, 3)])
def test_a_constant_from_the_trivial_distortion_on(query: Query, method: str) -> None:
    trivial = float(full(query).losses.sum(axis=0).min())
    for d in (trivial * (1 + 1e-12), 2 * trivial, 1e9):
        result = leakage_at(query, d, 0.5, method)
        matrix = result.mechanism.matrix
        assert (matrix == matrix[0]).all()
        assert sorted(set(matrix.ravel().tolist())) == [0, 1]
        assert result.value <= 1e-8
        assert result.bound == 0
        assert result.certificate.distortion == pytest.approx(trivial, rel=1e-12)
        assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("method", ["cutting-planes", "penalty"])
@pytest.mark.parametrize(
    ("query", "b"), [(PARITY, 0.0), (Quadratic(3), 1.0), (PARITY, 3 * LOG2 - 1e-3)]
)
def test_no_leakage_at_all_leaves_a_constant(query: Query, b: float, method: str) -> None:
    result = distortion_at(query, 0.0, b, method)
    trivial = full(query).losses.sum(axis=0).min()
    assert (result.mechanism.matrix == result.mechanism.matrix[0]).all()
    assert result.value == pytest.approx(trivial, rel=1e-12)
    assert result.certificate.violation == 0
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("query", [PARITY, ModularSum(2, 3)])
def test_a_leakage_that_allows_the_least_distortion(query: Query) -> None:
    for limit in (LOG2 + 1e-3, 100.0):  # two letters tell log 2 at most
        result = distortion_at(query, limit, 0.0)
        assert result.value == 0
        assert result.gap == 0
        assert result.certificate.leakage <= limit
        assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_query_that_says_nothing(share: float) -> None:
    for query in (Explicit([[7, 7], [7, 7]]), ModularSum(3, 1), ModularSum(2, 2, 1)):
        b = share * query.log_size
        forward, back = leakage_at(query, 0.0, b), distortion_at(query, 0.0, b)
        assert forward.value == pytest.approx(0, abs=1e-8)
        assert back.value == 0
        assert {forward.status, back.status} == {Status.OPTIMAL}


# ---------------------------------------------------------------- what cannot be meant


class TestBadInput:
    def test_values_that_are_no_numbers_need_a_loss(self) -> None:
        query = Explicit([["no", "yes"], ["yes", "no"]])
        with pytest.raises(QueryError, match="not numbers"):
            leakage_distortion(query, 0.1, 0.5)
        result = leakage_at(query, 0.1, 0.5, loss=1 - np.eye(2))
        assert result.value == pytest.approx(parity_leakage(2, 0.1, 0.5), abs=1e-5)
        assert result.mechanism.outputs == ("no", "yes")


def test_a_program_that_the_solver_gets_lost_in_is_solved_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Among eighty priors Clarabel may end nats above the optimum; the ones that count are enough."""
    priors: list[int] = []

    def lost(
        rows: GroupedRows, known: Sequence[WorstCasePrior], *options: Any
    ) -> BestResponse | None:
        priors.append(len(known))
        found = solve_best_response(rows, known, *options)
        return (
            replace(found, objective_value=3.4) if len(priors) == 3 and found is not None else found
        )

    monkeypatch.setattr("pmlopt.programs.tradeoff.cutting_planes.solve_best_response", lost)
    found = leakage_at(ModularSum(2, 3), 0.2, 0.7)
    assert priors[3] <= priors[2]
    assert found.status is Status.OPTIMAL
    assert found.certificate.verify()


def test_rows_that_differ_by_little_are_covered() -> None:
    query = Explicit([[[1, 0], [0, 1]], [[1, 0], [1, 0]]])
    loss = [[0.68, 1.09, 0.39], [1.99, 0.49, 0.51]]
    assert leakage_at(query, 0.44376238501428095, 0.0, loss=loss).certificate.verify()


def test_no_cuts_bound_a_leakage_by_nothing() -> None:
    tradeoff = TradeoffLosses(np.ones((2, 2)), np.ones((2, 2), dtype=bool))
    assert compute_tradeoff_bound(tradeoff, "leakage", 0.1, TradeoffProof((), 1.0)) == 0
    assert compute_tradeoff_bound(
        tradeoff, "distortion", 0.1, TradeoffProof((), 0.0)
    ) == pytest.approx(2, abs=1e-12)


def test_little_leakage_comes_with_a_mechanism_all_the_same() -> None:
    """h(1/2 - d) = log 2 - 2 d^2 - O(d^4), so that D = 1/2 - sqrt(L / 2) + O(L^1.5)."""
    for limit in (1e-4, 1e-12):
        result = distortion_at(PARITY, limit, 0.5, time_limit=1.0)
        expected = 0.5 - math.sqrt(limit / 2)
        assert result.bound <= expected + limit**1.5 + 1e-12
        assert expected - 1e-12 <= result.value <= 0.5 + 1e-12
        assert result.certificate.violation == 0


def parity_leakage_at(flips: np.ndarray, other: int) -> np.ndarray:
    """I(X_1; Y) of a flipped parity of two records where the first is uniform and the other is known.

    Args:
        flips: (..., 4) how often the parity of the datasets 00, 01, 10 and 11 is flipped.
        other: the second record.
    """
    odd = np.stack(
        [flips[..., 0], 1 - flips[..., 2]] if other == 0 else [1 - flips[..., 1], flips[..., 3]], -1
    )

    def entropy(share: np.ndarray) -> np.ndarray:
        sides = np.stack([share, 1 - share])
        return np.asarray(
            -(sides * np.log(sides, where=sides > 0, out=np.zeros_like(sides))).sum(axis=0)
        )

    return np.asarray(entropy(odd.mean(axis=-1)) - entropy(odd).mean(axis=-1))


def test_the_exact_answer_to_a_worst_prior_may_leak_more_than_the_start() -> None:
    """[wu2026entropy, Theorem 6], item 1: the leakage of Algorithm 6 is not monotone."""
    start = np.full(4, 0.2)
    capacity = math.log(2) + 0.2 * math.log(0.2) + 0.8 * math.log(0.8)
    assert parity_leakage_at(start, 0) == pytest.approx(
        capacity
    )  # so that this prior is a worst one
    share = np.arange(11) / 10
    flips = np.stack(np.meshgrid(*[share] * 4, indexing="ij"), -1).reshape(-1, 4)
    allowed = flips[flips.mean(axis=1) <= 0.2 + 1e-12]
    leaked = parity_leakage_at(allowed, 0)
    answers = allowed[leaked <= leaked.min() + 1e-12]
    assert leaked.min() == pytest.approx(math.log(2) + 0.4 * math.log(0.4) + 0.6 * math.log(0.6))
    assert answers.tolist() == [[0.4, 0.0, 0.4, 0.0]]
    assert parity_leakage_at(answers[0], 1) == pytest.approx(
        math.log(2)
    )  # more than 3 times the start's
