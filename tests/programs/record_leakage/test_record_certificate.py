"""Proofs of a bound on the leakage per record: valid whatever the multipliers, and hard to forge."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray

from pmlopt import Mechanism, Result, record_leakage, solve
from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    laplace,
    symmetric_channel,
)
from pmlopt.model.queries.record_leakage_measures import (
    compute_dataset_entropy,
    compute_record_information,
)
from pmlopt.programs import Status
from pmlopt.programs.exact.decimals import normalize_decimal_rows
from pmlopt.programs.record_leakage import branch_and_bound
from pmlopt.programs.record_leakage import closed_bounds as one_class_each
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.closed_bounds import bound_near_uniform
from pmlopt.programs.record_leakage.proof import UNSPLIT_CELL, CellPart, CellTree, is_tree_valid

LOG2 = math.log(2)
ROWS = np.array([[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]])
THREE = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6]])
CASES: dict[str, tuple[Query, FloatArray, float]] = {
    "posteriors": (Weight(3), ROWS, 1.9),
    "laws": (Weight(3), ROWS, 1.9),
    "classes": (Explicit([[0, 1], [1, 2]]), THREE, 1.1),
}
"""What is proved by simplices of each kind."""


def by_simplices(part: str, **options: Any) -> RecordCertificate:
    """The proof by simplices of some parts of J, also where others, or one class each, would do."""
    query, rows, entropy = CASES[part]
    with (
        patch.object(
            branch_and_bound, "MAX_OUTPUTS_BY_DIMENSION", math.inf if part == "posteriors" else 0
        ),
        patch.object(one_class_each, "MAX_CLASS_CHOICES", 0),
    ):
        program = record_leakage(query, rows, entropy)
        found: RecordCertificate = solve(program, **{"tolerance": 1e-4, **options}).certificate
    assert tree_of(found).of == part
    return found


@pytest.fixture(scope="module", params=list(CASES))
def certificate(request: pytest.FixtureRequest) -> RecordCertificate:
    return by_simplices(request.param)


def tree_of(certificate: RecordCertificate) -> CellTree:
    tree = certificate.proofs[0].cells
    assert tree is not None
    return tree


def holds(certificate: RecordCertificate, **changes: Any) -> bool:
    """Whether the proof still passes with some of the tree's arrays changed."""
    kind = replace(certificate.proofs[0], cells=replace(tree_of(certificate), **changes))
    return replace(certificate, proofs=(kind, *certificate.proofs[1:])).verify()


def changed(array: Any, place: Any, value: Any) -> Any:
    copy = array.copy()
    copy[place] = value
    return copy


# the tree of cells


def test_what_was_solved_is_proved(certificate: RecordCertificate) -> None:
    assert len(tree_of(certificate)) > 10
    assert holds(certificate)
    assert certificate.level == certificate.bound
    assert f"{certificate.bound:.9g}" in certificate.statement
    assert certificate.arithmetic == "decimal arithmetic of 50 digits"


def test_numbers_and_priors_that_are_false(certificate: RecordCertificate) -> None:
    query, rows, entropy = CASES[tree_of(certificate).of]
    value, joint = certificate.value, certificate.joint
    easier = solve(record_leakage(query, rows, entropy - 0.4), tolerance=1e-4).certificate
    assert value + 1e-6 < certificate.bound
    assert easier.value > value
    nothing_there = changed(joint, (0, -1), 0.01)  # no dataset has a zero there and the last value
    none = (np.nan, np.inf, -np.inf)
    false: dict[str, list[Any]] = {
        "value": [value + 1e-6, value * (1 + 1e-12), *none],
        "bound": [value - 1e-6, value, value + 1e-9, np.nan, -np.inf],
        "entropy": [*(entropy + change for change in (1e-6, 0.1, -0.05, -entropy)), *none],
        "record": [3, -1],
        "joint": [
            easier.joint, changed(joint, (0, 0), -joint[0, 0]), nothing_there, 0 * joint, joint[:1],
            joint * np.nan,
        ],
    }  # fmt: skip
    for name, others in false.items():
        for other in others:
            assert not replace(certificate, **{name: other}).verify(), (name, other)
    assert replace(certificate, bound=certificate.bound + 1e-3).verify()


def test_points_and_edges_that_are_false(certificate: RecordCertificate) -> None:
    tree = tree_of(certificate)
    split = np.flatnonzero(tree.simplex != UNSPLIT_CELL)
    for place in split[[0, len(split) // 2, -1]]:
        for share in (-0.1, 1.1, np.nan, np.inf):
            assert not holds(certificate, share=changed(tree.share, place, share))
        for simplex in (tree.majorant.shape[1], -2):
            assert not holds(certificate, simplex=changed(tree.simplex, place, simplex))
        for end in (-1, tree.majorant.shape[2], tree.second[place]):
            assert not holds(certificate, first=changed(tree.first, place, end))
    for share in (0.01, 0.99):  # other cells than those that were bounded
        assert not holds(certificate, share=changed(tree.share, split[0], share))


def test_cells_that_are_missing(certificate: RecordCertificate) -> None:
    tree = tree_of(certificate)
    count, arrays = len(tree), {name: array for name, array in vars(tree).items() if name != "of"}
    for first in (0, 1, count - 1):
        assert not holds(certificate, **{name: array[:first] for name, array in arrays.items()})
    split = np.flatnonzero(tree.simplex != UNSPLIT_CELL)
    for place in split[[0, -1]]:
        for part in (0, place, count - 1, count, -1):  # no tree
            assert not holds(certificate, part=changed(tree.part, place, part))
        assert not holds(
            certificate, simplex=changed(tree.simplex, place, UNSPLIT_CELL)
        )  # its parts are lost
    leaf = int(np.flatnonzero(tree.simplex == UNSPLIT_CELL)[0])
    assert not holds(certificate, simplex=changed(tree.simplex, leaf, 0))


def test_multipliers_that_were_changed(certificate: RecordCertificate) -> None:
    """The bound of a cell follows from its multipliers: others may prove less, and some are none."""
    tree = tree_of(certificate)
    leaf = int(np.flatnonzero(tree.simplex == UNSPLIT_CELL)[-1])
    for price in (0.0, -1.0, np.inf, np.nan, tree.price[leaf] * 3):
        assert not holds(certificate, price=changed(tree.price, leaf, price))
    away = np.zeros(tree.majorant.shape[1:])
    away[0, 0] = 5.0
    for majorant in (
        tree.majorant[:, :1],
        tree.majorant[:, :, :1],
        changed(tree.majorant, (leaf, 0, 0), np.nan),
        tree.majorant + away,
    ):
        assert not holds(certificate, majorant=majorant)
    if tree.of == "posteriors":
        assert not holds(certificate, log_law=np.zeros((len(tree), 2)))
    else:
        assert not holds(certificate, log_law=tree.log_law[:, :1])
        assert not holds(certificate, log_law=changed(tree.log_law, (leaf, 0), -np.inf))
        assert not holds(certificate, log_law=tree.log_law + np.arange(tree.log_law.shape[1]) * 3)
        assert holds(certificate, log_law=tree.log_law + 1.0)  # a law up to a constant
    others = {"posteriors", "laws", "classes"} - {tree.of}
    assert not any(holds(certificate, of=other) for other in (*others, "rows"))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    part=st.sampled_from(["posteriors", "laws", "classes"]),
    log_price=st.floats(-4, 4),
    scale=st.floats(0.0, 5.0),
)
def test_what_is_proved_from_random_multipliers_is_true(
    seed: int, part: CellPart, log_price: float, scale: float
) -> None:
    """One split: a bound that the check lets pass is above what every law of the entropy leaks."""
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.full(3, 0.7), size=4)
    log_counts = np.log(random.integers(1, 50, size=(2, 4)))
    count, size = {"posteriors": (3, 2), "laws": (2, 3), "classes": (2, 4)}[part]
    free = 0 if part == "posteriors" else 3
    split, nothing = np.array([0, UNSPLIT_CELL, UNSPLIT_CELL]), np.zeros(3, dtype=int)
    tree = CellTree(
        part, split, nothing, nothing + 1, np.array([random.random(), 0.0, 0.0]), np.array([1, 0, 0]),
        np.full(3, np.exp(log_price)), scale * random.normal(size=(3, count, size)),
        scale * random.normal(size=(3, free)),
    )  # fmt: skip
    joints = random.dirichlet(np.full(8, 0.5), size=20).reshape(-1, 2, 4)
    least = min(compute_dataset_entropy(joint, log_counts) for joint in joints)
    most = max(compute_record_information(joint, rows) for joint in joints)
    assert not is_tree_valid(tree, log_counts, least, most - 1e-12, normalize_decimal_rows(rows))
    assert is_tree_valid(tree, log_counts, least, 1e6, normalize_decimal_rows(rows))


# prior, channel and plain data


def test_a_bound_at_the_largest_entropy_that_is_too_small() -> None:
    top = Weight(3).log_size
    certificate = solve(record_leakage(Weight(3), ROWS, top)).certificate
    assert certificate.verify()
    assert not replace(certificate, bound=certificate.value * (1 - 1e-6)).verify()
    lower = replace(certificate, value=0.0, bound=certificate.value * (1 - 1e-6))
    assert not lower.verify()
    assert not replace(certificate, entropy=top - 0.1).verify()
    assert not replace(certificate, entropy=top * (1 + 1e-12)).verify()


def test_every_kind_of_records_needs_a_proof() -> None:
    query = ModularSum(2, 2, [2, 3])
    certificate = solve(record_leakage(query, ROWS[[0, 3]], 1.5), tolerance=1e-4).certificate
    assert certificate.verify()
    assert [kind.record for kind in certificate.proofs] == [0, 1]
    for proofs in (
        (),
        certificate.proofs[:1],
        certificate.proofs[1:],
        (certificate.proofs[0],) * 2,
    ):
        assert not replace(certificate, proofs=proofs).verify()


def test_a_mechanism_and_a_channel_that_do_not_belong_together() -> None:
    certificate = by_simplices("posteriors")
    other = ROWS[::-1].copy()
    for mechanism in (Mechanism(other), Mechanism(ROWS[:2]), Mechanism([[0.5, 0.5]] * 4)):
        assert not replace(certificate, mechanism=mechanism).verify()
    channel = certificate.channel
    silent = replace(channel, rows=np.full((1, 2), 0.5), classes=np.zeros(4, dtype=int))
    nudged = replace(channel, rows=channel.rows * np.array([1.0, 1 + 1e-12]))
    for changed in (silent, nudged, replace(channel, classes=channel.classes[::-1].copy())):
        assert not replace(certificate, channel=changed).verify()
    assert replace(certificate, mechanism=Mechanism(ROWS)).verify()


@pytest.mark.parametrize("distinct", [True, False])
def test_a_mechanism_by_dataset_belongs_to_its_channel(distinct: bool) -> None:
    rows = ROWS if distinct else ROWS[[0, 3, 3, 3]]
    certificate = solve(
        record_leakage(ModularSum(2, 2), named(rows), 1.0), tolerance=1e-4
    ).certificate
    assert len(certificate.channel.rows) == (4 if distinct else 2)
    assert certificate.verify()


def named(rows: FloatArray) -> Mechanism:
    return Mechanism(rows, [(0, 0), (0, 1), (1, 0), (1, 1)])


@pytest.mark.parametrize("shortfall", [0.0, 1e-15, 1e-9, 1e-4, 0.1])
@pytest.mark.parametrize("seed", range(2))
def test_no_prior_near_the_uniform_one_leaks_more_than_the_bound(
    seed: int, shortfall: float
) -> None:
    """A dataset whose entropy is that much below the largest: tilted along the slope of I, or at random."""
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.full(3, 0.7), size=4)
    counts = random.integers(1, 9, size=(2, 4)).astype(float)
    uniform = counts / counts.sum()
    bound = float(bound_near_uniform(rows, np.log(counts), Decimal(shortfall)))
    leaked = compute_record_information(uniform, rows)
    assert bound >= leaked - 1e-15
    laws = uniform @ rows / uniform.sum(axis=1, keepdims=True)
    slope = np.log(laws / (uniform.sum(axis=0) @ rows)) @ rows.T
    for direction in (slope, *random.normal(size=(20, 2, 4))):
        for step in 10.0 ** np.linspace(-8, 1, 40):
            joint = uniform * np.exp(step * direction)
            joint /= joint.sum()
            divergence = float((joint * np.log(joint / uniform)).sum())
            if divergence <= shortfall - 1e-15:
                assert compute_record_information(joint, rows) <= bound + 1e-14
    if 0 < shortfall <= 1e-9:  # and to first order some prior reaches it
        spread = float((uniform * (slope - leaked) ** 2).sum())
        assert bound == pytest.approx(
            leaked + np.sqrt(2 * shortfall * spread), abs=4 * shortfall + 1e-15
        )


# one class for each letter, and how far the search goes


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


@pytest.mark.parametrize(
    ("query", "rows", "capacity"),
    [
        (Quadratic(5), symmetric_channel(Quadratic(5), 0.2), 0.39901474),
        (Weight(10), laplace(Weight(10), 1.0), 0.68216650),
    ],
)
def test_the_leakage_at_little_entropy(query: Query, rows: Any, capacity: float) -> None:
    found = solve(record_leakage(query, rows, 0.1))
    assert (found.status, found.iterations) == (Status.OPTIMAL, 0)
    assert found.value == pytest.approx(capacity, abs=5e-9)
    assert found.certificate.verify()


def test_past_the_entropy_of_its_optimum_the_capacity_is_not_reached() -> None:
    """Letters on the rows 0 and 3 of a weight: two datasets, and an entropy of log 2."""
    for b, reached in ((LOG2 - 1e-9, True), (LOG2 + 1e-3, False)):
        found: Result[RecordCertificate] = solve(record_leakage(Weight(3), ROWS, b), tolerance=1e-5)
        assert (found.iterations == 0) is reached
        assert found.certificate.verify()
