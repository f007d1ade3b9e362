"""Proofs by boxes of posteriors, and by one class for each letter: for any multipliers, hard to forge."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import records as oracle

from pmlopt import BranchAndBound, Result, Status, record_leakage, solve
from pmlopt.model.queries import Explicit, ModularSum, Quadratic, Query, Weight, laplace, symmetric_channel
from pmlopt.model.queries.record_leakage_measures import dataset_entropy, record_information
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.box_search import BoxRelaxation
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.proof import WHOLE, PosteriorTree

LOG2 = math.log(2)
ROWS = np.array([[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]])


@pytest.fixture(scope="module")
def certificate() -> RecordCertificate:
    return solve(record_leakage(Weight(3), ROWS, 1.9), tolerance=1e-4).certificate


def boxes_of(certificate: RecordCertificate) -> PosteriorTree:
    tree = certificate.proofs[0].boxes
    assert tree is not None
    return tree


def holds(certificate: RecordCertificate, **changes: Any) -> bool:
    """Whether the proof still passes with some of the tree's arrays changed."""
    kind = replace(certificate.proofs[0], boxes=replace(boxes_of(certificate), **changes))
    return replace(certificate, proofs=(kind,)).verify()


def changed(array: Any, place: Any, value: float) -> Any:
    copy = array.copy()
    copy[place] = value
    return copy


def test_boxes_prove_the_bound(certificate: RecordCertificate) -> None:
    assert len(boxes_of(certificate)) > 10
    assert holds(certificate)
    assert not replace(certificate, bound=certificate.value + 1e-9).verify()
    assert not replace(certificate, entropy=certificate.entropy - 0.01).verify()


def test_intervals_that_are_false(certificate: RecordCertificate) -> None:
    tree = boxes_of(certificate)
    split = np.flatnonzero(tree.output != WHOLE)
    for place in split[[0, len(split) // 2, -1]]:
        for point in (-0.1, 1.1, np.nan, tree.point[place] + 0.2, tree.point[place] - 0.2):
            assert not holds(certificate, point=changed(tree.point, place, point))
        for output in (2, -2):
            assert not holds(certificate, output=changed(tree.output, place, output))


def test_boxes_that_are_missing(certificate: RecordCertificate) -> None:
    tree = boxes_of(certificate)
    count = len(tree)
    for first in (0, 1, count - 1):
        assert not holds(certificate, **{name: array[:first] for name, array in vars(tree).items()})
    split = np.flatnonzero(tree.output != WHOLE)
    for place in split[[0, -1]]:
        for part in (0, place, count - 1, count, -1):  # no tree
            assert not holds(certificate, part=changed(tree.part, place, part))
        assert not holds(certificate, output=changed(tree.output, place, WHOLE))  # its parts are lost
    leaf = int(np.flatnonzero(tree.output == WHOLE)[0])
    assert not holds(certificate, output=changed(tree.output, leaf, 0))


def test_multipliers_of_a_wrong_sign_or_size(certificate: RecordCertificate) -> None:
    tree = boxes_of(certificate)
    leaf = int(np.flatnonzero(tree.output == WHOLE)[-1])
    for price in (0.0, -1.0, np.inf, np.nan, tree.price[leaf] * 3):
        assert not holds(certificate, price=changed(tree.price, leaf, price))
    for name in ("lower", "upper"):
        table = getattr(tree, name)
        for value in (-1e-9, -5.0, np.nan, np.inf):
            assert not holds(certificate, **{name: changed(table, (leaf, 0), value)})
        assert not holds(certificate, **{name: table[:, :1]})
        assert not holds(certificate, **{name: table + 5.0})


def test_a_proof_by_one_class_for_each_letter() -> None:
    found = solve(record_leakage(Quadratic(4), symmetric_channel(Quadratic(4), 0.2), 0.5))
    certificate, laws = found.certificate, found.certificate.proofs[0].laws
    assert found.iterations == 0
    assert laws is not None
    assert certificate.verify()
    assert not replace(certificate, bound=certificate.value - 1e-9, value=0.0).verify()
    for other in (laws[:0], laws[:, ::-1] ** 2, -laws, laws * np.nan, laws[:, :2], 0 * laws):
        kind = replace(certificate.proofs[0], laws=other)
        assert not replace(certificate, proofs=(kind,)).verify()
    scaled = replace(certificate.proofs[0], laws=2 * laws)  # taken over their sums
    assert replace(certificate, proofs=(scaled,)).verify()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    outputs=st.integers(2, 4),
    log_price=st.floats(-6, 6),
    width=st.floats(0.0, 1.0),
    scale=st.floats(1e-6, 5.0),
)
def test_random_multipliers_bound_every_law_in_the_box(
    seed: int, outputs: int, log_price: float, width: float, scale: float
) -> None:
    """The bound after one step of the method, and after all of them, is above what the law leaks."""
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.full(outputs, 0.7), size=4)
    log_counts = np.log(random.integers(1, 50, size=(2, 4)))
    joint = random.dirichlet(np.full(8, 0.5)).reshape(2, 4)
    entropy = dataset_entropy(joint, log_counts)
    leaked = record_information(joint, rows)
    law = joint @ rows
    share = law[0] / law.sum(axis=0)
    low = np.maximum(share - width * random.random(outputs), 0.0) * (random.random(outputs) < 0.7)
    high = np.maximum(np.minimum(share + width * random.random(outputs), 1.0), share)
    start = scale * random.random((1, 1 + 2 * outputs)) + 1e-9
    start[:, 0] = np.exp(log_price)
    relaxation = BoxRelaxation(Adversary(rows, log_counts, entropy, 10.0))
    for target in (np.inf, leaked - 1.0):  # one step, and until nothing is gained
        found = relaxation.minimised(low[None], high[None], start, target)
        assert found.bound[0] >= leaked - 1e-13


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (Quadratic(5), symmetric_channel(Quadratic(5), 0.2)),
        (Weight(5), laplace(Weight(5), 1.0)),
        (ModularSum(6, 4), symmetric_channel(ModularSum(6, 4), 0.3)),
    ],
)
def test_five_and_more_outputs_to_the_tolerance(query: Query, rows: Any) -> None:
    found = solve(record_leakage(query, rows, (query.records - 0.5) * LOG2), tolerance=1e-5)
    assert found.status is Status.OPTIMAL
    assert found.gap <= 1e-5


@pytest.mark.parametrize(
    ("query", "rows", "capacity"),
    [
        (Quadratic(5), symmetric_channel(Quadratic(5), 0.2), 0.39901474),
        (Weight(8), laplace(Weight(8), 1.0), 0.66353143),
        (Weight(10), laplace(Weight(10), 1.0), 0.68216650),
    ],
)
def test_the_leakage_at_little_entropy(query: Query, rows: Any, capacity: float) -> None:
    found = solve(record_leakage(query, rows, 0.1))
    assert (found.status, found.iterations) == (Status.OPTIMAL, 0)
    assert found.value == pytest.approx(capacity, abs=5e-9)
    assert found.certificate.verify()


def test_the_weight_of_forty_records_needs_no_search() -> None:
    found = solve(record_leakage(Weight(40), laplace(Weight(40), 1.0), 0.0))
    assert (found.status, found.iterations) == (Status.OPTIMAL, 0)
    assert found.value == pytest.approx(LOG2, abs=1e-7)


def test_past_the_entropy_of_its_optimum_the_capacity_is_not_reached() -> None:
    """Letters on the rows 0 and 3 of a weight: two datasets, and an entropy of log 2."""
    for b, reached in ((LOG2 - 1e-9, True), (LOG2 + 1e-3, False)):
        found: Result[RecordCertificate] = solve(record_leakage(Weight(3), ROWS, b), tolerance=1e-5)
        assert (found.iterations == 0) is reached
        assert found.certificate.verify()


def test_a_time_limit_stops_the_search_with_a_bound() -> None:
    query = Weight(12)
    program = record_leakage(query, laplace(query, 1.0), 11.5 * LOG2)
    found = solve(program, time_limit=0.3)
    assert found.status is Status.STOPPED
    assert found.timings.total < 1.3
    assert found.value < found.bound < LOG2 + 1e-9


# adversaries over all datasets


@pytest.mark.parametrize("seed", range(6))
def test_no_adversary_over_all_datasets_beats_a_bound(seed: int) -> None:
    """The full simplex of X^n: random priors, and the ends of a search over all of them."""
    random = np.random.default_rng(seed)
    alphabets = [(2, 2), (2, 2, 2), (3, 2), (3, 3), (2, 3), (2, 2, 3)][seed % 6]
    size = math.prod(alphabets)
    rows = random.dirichlet(np.full(int(random.integers(2, 5)), 0.6), size=size)
    least = float(random.uniform(0, 0.98)) * math.log(size)
    nodes = [None, 1, 10][seed % 3]
    query = Explicit(np.arange(size).reshape(alphabets))
    program = record_leakage(query, rows, least)
    found = solve(program, solver=BranchAndBound(nodes), tolerance=1e-3, time_limit=1)
    data = oracle.datasets(alphabets, rows)
    priors = random.dirichlet(np.full(size, 0.3), size=300)
    allowed = np.array([p for p in priors if oracle.entropy(p) >= least] or [np.full(size, 1 / size)])
    for record in range(len(alphabets)):
        assert oracle.informations(data, record, allowed).max() <= found.bound + 1e-13
        worst = oracle.largest(data, record, least, starts=1)
        assert oracle.information(data, record, worst) <= found.bound + 1e-12
    assert found.certificate.verify()
