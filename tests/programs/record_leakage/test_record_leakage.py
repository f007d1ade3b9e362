"""The largest leakage of a record: tables, closed forms and a search over all datasets against the result."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import records as oracle
from oracles.designs import FloatArray
from scipy.optimize import brentq

from pmlopt import Mechanism, Result, record_leakage, solve
from pmlopt.errors import QueryError
from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    exponential,
    laplace,
    symmetric_channel,
)
from pmlopt.programs import BranchAndBound, Status
from pmlopt.programs.record_leakage.certificate import RecordCertificate

LOG2 = math.log(2)
PARITY = ModularSum(4, 2)
LAPLACE = laplace(PARITY, 1.0)
WEIGHT = Weight(3)
NOISY_WEIGHT = laplace(WEIGHT, 1.0)


def by_dataset(query: Query, rows: FloatArray) -> oracle.Datasets:
    """The rows of all datasets, from q(y|f(x)) or from q(y|x)."""
    size = math.prod(query.alphabets)
    full = rows if len(rows) == size else rows[query.table().ravel()]
    return oracle.datasets(query.alphabets, full)


def check(
    result: Result[RecordCertificate], data: oracle.Datasets, least: float, tolerance: float = 1e-7
) -> None:
    """The prior keeps the entropy and leaks the value; the bound is proved, and near."""
    certificate = result.certificate
    p = certificate.prior().ravel()
    assert p.min() >= 0
    assert math.fsum(p) == pytest.approx(1, abs=1e-12)
    assert oracle.entropy(p) >= least - 1e-14
    assert oracle.information(data, result.certificate.record, p) == pytest.approx(
        certificate.value, rel=1e-9, abs=1e-14
    )
    assert certificate.value <= certificate.bound
    assert certificate.gap == pytest.approx(certificate.bound - certificate.value, abs=1e-16)
    assert certificate.gap <= tolerance
    assert result.status is Status.OPTIMAL
    assert certificate.verify()


def parity_leakage(n: int, p: float, least: float) -> float:
    """Of n binary records whose parity goes through BSC(p).

    Up to (n - 1) log 2 the others can be of known parity and the record uniform; past that their parity is
    wrong with a probability e that the entropy says.
    """
    past = least - (n - 1) * LOG2
    if past <= 0:
        return LOG2 - oracle.binary_entropy(p)
    if past >= LOG2:
        return 0.0
    e = float(brentq(lambda x: oracle.binary_entropy(x) - past, 0.0, 0.5, xtol=1e-16, rtol=1e-15))
    return LOG2 - oracle.binary_entropy(e * (1 - p) + p * (1 - e))


# [wu2026entropy, Table 3]: parity of four records, eps = 1

LAPLACE_ERROR = math.exp(-0.5) / 2
EXPONENTIAL_ERROR = 1 / (1 + math.exp(0.5))


@pytest.mark.parametrize(
    ("mechanism", "error", "b", "expected", "printed"),
    [
        (LAPLACE, LAPLACE_ERROR, 0.0, 0.0795415, 0.0),
        (LAPLACE, LAPLACE_ERROR, 1.0, 0.0795415, 0.041),
        (LAPLACE, LAPLACE_ERROR, 2.0, 0.0795415, 0.009),
        (LAPLACE, LAPLACE_ERROR, 2.2, 0.0712775, 0.0),
        (LAPLACE, LAPLACE_ERROR, 2.5, 0.0387008, 0.0),
        (LAPLACE, LAPLACE_ERROR, 2.7, 0.0110038, 0.0),
        (exponential(PARITY, 1.0), EXPONENTIAL_ERROR, 0.5, 0.0303, 0.024),
        (exponential(PARITY, 1.0), EXPONENTIAL_ERROR, 2.0, 0.0303, 0.003),
    ],
)
def test_table_3_understates_what_a_prior_leaks(
    mechanism: Mechanism, error: float, b: float, expected: float, printed: float
) -> None:
    found = solve(record_leakage(PARITY, mechanism, b))
    assert found.value == pytest.approx(expected, abs=1e-7 if mechanism is LAPLACE else 1e-6)
    assert found.value == pytest.approx(parity_leakage(4, error, b), abs=1e-7)
    check(found, by_dataset(PARITY, mechanism.matrix), b)
    assert found.certificate.prior().shape == (2, 2, 2, 2)
    assert found.value > printed * 1.2


# parity through a binary-symmetric channel, in closed form


@settings(max_examples=12, deadline=None)
@given(
    n=st.integers(2, 6),
    p=st.floats(0.0, 0.5),
    share=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0)),
    past=st.booleans(),
)
def test_parity_has_a_closed_form(n: int, p: float, share: float, past: bool) -> None:
    query = ModularSum(n, 2)
    b = (n - 1 + share) * LOG2 if past else (n - 1) * share * LOG2
    b = min(b, query.log_size)
    found = solve(record_leakage(query, symmetric_channel(query, p), b))
    truth = parity_leakage(n, p, b)
    assert found.certificate.value <= truth + 1e-12
    assert found.certificate.bound >= truth - 1e-12
    assert found.certificate.gap <= 1e-7
    assert found.certificate.verify()


@pytest.mark.parametrize("b", [0.0, 9999 * LOG2, 6931.2, 6931.47])
def test_ten_thousand_records_cost_what_four_do(b: float) -> None:
    query = ModularSum(10_000, 2)
    found = solve(record_leakage(query, symmetric_channel(query, 0.3), b))
    truth = parity_leakage(10_000, 0.3, b)
    # of 6931 nats a float tells 1e-12; where the error e starts from 0 that is worth 40 times as much
    assert found.certificate.value <= truth + 1e-10
    assert found.certificate.bound >= truth - 1e-10
    assert found.certificate.gap <= 1e-7
    assert found.certificate.verify()
    with pytest.raises(QueryError, match="too many"):
        found.certificate.prior()


# the reduction against all datasets, one by one


@pytest.mark.parametrize(
    ("query", "outputs", "share", "spread"),
    [
        (ModularSum(3, 3), 3, 0.6, 0.5),
        (ModularSum(2, 3, [2, 3]), 2, 0.8, 0.4),
        (Weight(2), 3, 0.5, 0.5),
        (Weight(4), 2, 0.8, 0.5),
        (Quadratic(3), 3, 0.9, 0.5),
        (Explicit([["a", "b"], ["b", "c"], ["c", "c"]]), 2, 0.7, 0.5),
        (Explicit([[[0, 1], [1, 1]], [[1, 0], [2, 2]]]), 3, 0.6, 0.4),
    ],
)
def test_reduced_and_full_problem_have_the_same_optimum(
    query: Query, outputs: int, share: float, spread: float
) -> None:
    random = np.random.default_rng(outputs + int(100 * share))
    rows = random.dirichlet(np.full(outputs, spread), size=len(query.values))
    agree(query, rows, share * query.log_size)


@pytest.mark.parametrize(
    ("alphabets", "outputs", "share"), [((2, 2), 3, 0.95), ((2, 2, 2), 2, 0.0), ((2, 3), 2, 0.9)]
)
def test_a_mechanism_by_dataset_has_the_same_optimum(
    alphabets: tuple[int, ...], outputs: int, share: float
) -> None:
    random = np.random.default_rng(len(alphabets) + outputs)
    query = Explicit(np.zeros(alphabets, dtype=int))
    rows = random.dirichlet(np.ones(outputs), size=math.prod(alphabets))
    agree(query, rows, share * query.log_size)


def agree(query: Query, rows: FloatArray, least: float) -> None:
    found = solve(record_leakage(query, rows, least))
    data = by_dataset(query, rows)
    check(found, data, least)
    best = 0.0
    for record in range(query.records):
        p = oracle.largest(data, record, least, starts=6)
        assert oracle.entropy(p) >= least - 1e-13
        best = max(best, oracle.information(data, record, p))
    assert best <= found.certificate.bound + 1e-12
    assert best >= found.certificate.value - 1e-6


@pytest.mark.parametrize("least", [0.6, 1.3])
def test_no_prior_of_a_grid_on_four_datasets_leaks_more(least: float) -> None:
    query = Explicit([[0, 1], [2, 3]])
    rows = np.random.default_rng(8).dirichlet([0.5, 0.5], size=4)
    data, steps = by_dataset(query, rows), 30
    priors = np.array(list(oracle.grid(4, steps)))
    entropies = -np.where(priors > 0, priors * np.log(np.where(priors > 0, priors, 1.0)), 0.0).sum(
        axis=1
    )
    allowed = priors[entropies >= least]
    best = max(float(oracle.informations(data, record, allowed).max()) for record in (0, 1))
    found = solve(record_leakage(query, rows, least))
    assert best <= found.certificate.bound + 1e-13
    assert best >= found.certificate.value - 0.02  # half a step of a thirtieth away in each mass


# no entropy required: a capacity


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "query", [Weight(3), ModularSum(3, 3), Quadratic(4), Explicit([[0, 1], [2, 0]])]
)
def test_without_a_bound_on_the_entropy_it_is_the_best_capacity_of_a_pair_of_rows(
    query: Query, seed: int
) -> None:
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.full(3, 0.6), size=len(query.values))
    table, best = query.table(), 0.0
    for record in range(query.records):
        zeros, ones = (
            {int(t) for t in np.unique(np.take(table, letter, axis=record))} for letter in (0, 1)
        )
        pairs = {(s, t) for s in zeros for t in ones if s != t}
        best = max(best, *(oracle.capacity(rows[list(pair)]) for pair in pairs))
    found = solve(record_leakage(query, rows, 0.0))
    assert found.certificate.value == pytest.approx(best, abs=1e-8)
    check(found, by_dataset(query, rows), 0.0)


# curves


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (WEIGHT, np.array([[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]])),
        (ModularSum(2, 3, [2, 3]), np.array([[0.8, 0.2], [0.4, 0.6], [0.1, 0.9]])),
    ],
)
def test_a_curve_never_rises(query: Query, rows: FloatArray) -> None:
    top = query.log_size
    entropies = [0.9 * top, 0.0, top, 0.5 * top, 0.9 * top, 0.98 * top]
    points: list[Result[RecordCertificate]] = []
    for b in sorted(
        set(entropies), reverse=True
    ):  # what is allowed at b is allowed at every smaller b
        start = points[-1] if points else None
        points.append(solve(record_leakage(query, rows, b), warm_start=start, tolerance=1e-5))
    assert [point.warm_started for point in points] == [False, True, True, True, True]
    points.reverse()
    curve = {point.certificate.entropy: point for point in points}
    assert sorted(curve) == sorted(set(entropies))
    for less, more in pairwise(points):
        assert less.certificate.value >= more.certificate.value
        assert less.certificate.bound >= more.certificate.value
    data = by_dataset(query, rows)
    for point in points:
        check(point, data, point.certificate.entropy, 1e-5)
    alone = solve(record_leakage(query, rows, entropies[0]), tolerance=1e-5)
    assert alone.certificate.value == pytest.approx(curve[entropies[0]].certificate.value, abs=1e-5)


# what is refused


# the largest entropy, and just below


@pytest.mark.parametrize(
    "query", [WEIGHT, ModularSum(3, 3, [2, 3, 5]), Quadratic(30), ModularSum(100, 2)]
)
@pytest.mark.parametrize("ulps", [-1, 0, 1])
def test_the_largest_entropy_leaves_the_uniform_dataset(query: Query, ulps: int) -> None:
    b = query.log_size + ulps * float(np.spacing(query.log_size))
    mechanism = laplace(query, 1.0)
    found = solve(record_leakage(query, mechanism, b))
    best = most = 0.0
    room = room_of(query, b)
    for record in range(query.records):
        law = np.exp(query.log_counts(record) - query.log_size)
        joint = law @ mechanism.matrix
        outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        slope = np.log(joint / outer) @ mechanism.matrix.T
        leaked = float((joint * np.log(joint / outer)).sum())
        deviation = math.sqrt(float((law * (slope - leaked) ** 2).sum()))
        best = max(best, leaked)
        most = max(most, leaked + room + math.sqrt(2 * room) * deviation)
    assert found.certificate.value == pytest.approx(best, abs=1e-12)
    # to first order a prior of that entropy leaks sqrt(2 room) times the deviation of the slope of I more
    assert best - 1e-12 <= found.certificate.bound <= most + 1e-12
    assert found.status is Status.OPTIMAL
    assert found.certificate.verify()


def room_of(query: Query, b: float) -> float:
    """How far log |X| is above the float b, or above the float of log |X| where b is larger."""
    with localcontext() as context:
        context.prec = 60
        largest = sum((Decimal(letters).ln() for letters in query.alphabets), Decimal(0))
        return max(0.0, float(largest - Decimal(min(b, query.log_size))))


@pytest.mark.parametrize("room", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("query", [PARITY, WEIGHT])
def test_a_little_below_the_largest_entropy(query: Query, room: float) -> None:
    b = query.log_size - room
    mechanism = laplace(query, 1.0)
    found = solve(record_leakage(query, mechanism, b), solver=BranchAndBound(nodes=1000))
    check(found, by_dataset(query, mechanism.matrix), b)
    if query is PARITY:
        assert found.certificate.value <= parity_leakage(4, LAPLACE_ERROR, b) + 1e-12
    else:  # sqrt(2 room) times the deviation of the slope of I at the uniform dataset, to first order
        uniform = solve(record_leakage(query, mechanism, query.log_size)).certificate.value
        data = by_dataset(query, mechanism.matrix)
        joint = data.members(0) @ data.rows / 8
        log_ratio = np.log(joint / (joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)))
        slope = (data.rows * log_ratio[data.letters[:, 0]]).sum(axis=1)
        rise = math.sqrt(2 * room) * float(slope.std())
        rounding = 1e-13 / math.sqrt(room)  # of the entropy, at the price sqrt(1 / room)
        assert found.certificate.value == pytest.approx(
            uniform + rise, rel=0, abs=3 * room + rounding
        )


# mechanisms that say nothing, everything, or almost nothing

THIRDS = Explicit([[1, 0], [1, 1], [0, 1]])  # three letters: thirds are no floats
CONSTANT = [[1.0], [0.1, 0.2, 0.7], [0.0, 1.0]]
CONSTANT.append([0.0007578505896010982, 9.834025597269338e-05, 0.9991438091544262])


@pytest.mark.parametrize(
    ("query", "b"), [(PARITY, 0.0), (PARITY, 2.5), (PARITY, 4 * LOG2), (THIRDS, 1.5)]
)
@pytest.mark.parametrize("row", CONSTANT)
def test_one_row_for_all_is_proved_to_leak_nothing(
    row: list[float], query: Query, b: float
) -> None:
    found = solve(record_leakage(query, [row, row], b))
    assert (found.value, found.bound) == (0, 0)
    assert found.certificate.verify()


@pytest.mark.parametrize("step", [1e-13, 1e-10, 1e-7, 1e-5])
@pytest.mark.parametrize("b", [0.0, 1.9])
def test_rows_that_are_nearly_equal(step: float, b: float) -> None:
    rows = np.array([[0.3 + step * k, 0.7 - step * k] for k in range(4)])
    found = solve(record_leakage(WEIGHT, rows, b))
    # two rows of neighbouring weights at uniform letters: chi^2 / 8, at most for rows three steps apart
    most = (3 * step) ** 2 / (0.3 * 0.7) / 8 * (1 + 1e-3)
    assert 0 <= found.certificate.value <= most
    assert found.certificate.gap <= 1e-9
    assert found.certificate.verify()


@pytest.mark.parametrize(
    "rows",
    [
        [[1e-300, 1.0], [1e-200, 1.0], [1e-13, 1.0], [0.5, 0.5]],
        [[1e-300, 0.5, 0.5], [1e-200, 0.5, 0.5], [1e-13, 0.5, 0.5], [0.5, 0.5, 0.0]],
        [[5e-324, 1.0], [0.0, 1.0], [1.0, 5e-324], [1.0, 0.0]],
    ],
)
def test_entries_near_the_smallest_float(rows: list[list[float]]) -> None:
    found = solve(record_leakage(WEIGHT, rows, 1.5))
    data = by_dataset(WEIGHT, np.array(rows))
    check(found, data, 1.5)
    p = oracle.largest(data, 0, 1.5, starts=6)
    assert oracle.information(data, 0, p) == pytest.approx(found.certificate.value, abs=1e-6)


# records of other sizes


def test_one_record_with_an_entropy_that_binds() -> None:
    """The prior (t, 1 - t) of one record is all there is: h(t) = b on the side of the capacity's prior."""
    query, rows, b = ModularSum(1, 2), np.array([[1.0, 0.0], [0.5, 0.5]]), 0.69
    data = by_dataset(query, rows)
    t = float(brentq(lambda x: oracle.binary_entropy(x) - b, 0.0, 0.5, xtol=1e-16))
    ends = [oracle.information(data, 0, np.array([x, 1 - x])) for x in (t, 1 - t)]
    found = solve(record_leakage(query, rows, b))
    assert found.certificate.value == pytest.approx(max(ends), abs=1e-8)
    check(found, data, b)


def test_the_record_that_leaks_most_is_named() -> None:
    rows = np.array([[0.9, 0.1], [0.1, 0.9]])
    for place, table in enumerate(([[0, 0, 0], [1, 1, 1]], [[0, 1, 0], [0, 1, 0]])):
        found = solve(
            record_leakage(Explicit(table), rows, math.log(6))
        )  # f is a function of one record
        assert found.certificate.record == place
        shares = (0.5, 0.5) if place == 0 else (2 / 3, 1 / 3)
        data = oracle.datasets((2,), rows)
        expected = oracle.information(data, 0, np.array(shares))
        assert found.certificate.value == pytest.approx(expected, abs=1e-12)


# how far the search goes


def test_limits_leave_a_valid_bound() -> None:
    truth = solve(record_leakage(WEIGHT, NOISY_WEIGHT, 1.9))
    cut = [
        (
            solve(record_leakage(WEIGHT, NOISY_WEIGHT, 1.9), solver=BranchAndBound(nodes=1)),
            Status.UNPROVED,
        ),
        (
            solve(record_leakage(WEIGHT, NOISY_WEIGHT, 1.9), solver=BranchAndBound(nodes=8)),
            Status.UNPROVED,
        ),
        (solve(record_leakage(WEIGHT, NOISY_WEIGHT, 1.9), time_limit=1e-9), Status.LIMIT_REACHED),
    ]
    for found, status in cut:
        certificate = found.certificate
        assert found.status is status
        assert certificate.gap > 1e-7
        assert certificate.value <= truth.certificate.bound
        assert truth.certificate.value <= certificate.bound < LOG2
        assert certificate.verify()
    assert [found.iterations for found, _ in cut] == [1, 9, 1]
    assert cut[0][0].certificate.bound >= cut[1][0].certificate.bound


@pytest.mark.parametrize("b", [0.0, 4.0, 8.0])
def test_the_leakage_of_a_weight_in_many_dimensions(b: float) -> None:
    """Thirteen outputs: up to some entropy two classes are all, past it a bound is left at any time."""
    query = Weight(12)
    found = solve(record_leakage(query, laplace(query, 1.0), b), solver=BranchAndBound(nodes=100))
    if b == 0:
        assert (found.status, found.iterations) == (Status.OPTIMAL, 0)
        assert "one class of datasets for each letter" in found.reason
    else:
        assert found.status is Status.UNPROVED
        assert found.gap < 0.2
    assert found.certificate.value <= found.certificate.bound < math.inf
    assert found.certificate.verify()
    data = oracle.datasets((2,) * 12, laplace(query, 1.0).matrix[query.table().ravel()])
    assert oracle.entropy(found.certificate.prior()) >= b
    assert oracle.information(data, 0, found.certificate.prior().ravel()) == pytest.approx(
        found.certificate.value, rel=1e-9
    )


def test_counts_need_no_datasets() -> None:
    """Records, letters and classes permuted, outputs renamed: the same leakage."""
    random = np.random.default_rng(6)
    table = np.array([[[0, 1], [1, 2]], [[1, 1], [2, 0]]])
    rows = random.dirichlet([0.7, 0.7], size=3)
    plain = solve(record_leakage(Explicit(table), rows, 1.6)).certificate.value
    turned = Explicit(2 - table[::-1].transpose(2, 0, 1))
    assert solve(record_leakage(turned, rows[::-1, ::-1], 1.6)).value == pytest.approx(
        plain, abs=1e-7
    )


def test_a_record_tells_no_more_than_itself() -> None:
    """H(X_i) bounds what many outputs tell of a binary record: without noise two rows reach it."""
    query = ModularSum(3, 3)
    found = solve(record_leakage(query, symmetric_channel(query, 0.0), 1.0))
    assert (found.status, found.iterations) == (Status.OPTIMAL, 0)
    assert found.certificate.verify()
    assert found.value == pytest.approx(math.log(2), abs=1e-9)


def test_rows_of_two_outputs_that_are_nearly_alike_need_few_cells() -> None:
    """Classes of two ternary records: the first cell is between the rows that there are."""
    rows = np.array([[0.83004316, 0.16995684], [0.35005252, 0.64994748], [0.83003743, 0.16996257]])
    found = solve(record_leakage(ModularSum(2, 2, 3), rows, 1.0), solver=BranchAndBound(nodes=50))
    assert found.status is Status.OPTIMAL
    assert found.certificate.verify()
