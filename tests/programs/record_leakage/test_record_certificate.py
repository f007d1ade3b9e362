"""Proofs of a bound on the leakage per record: valid whatever the multipliers, and hard to forge."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import records as oracle
from oracles.designs import FloatArray

from pmlopt import BranchAndBound, Mechanism, record_leakage, solve
from pmlopt.core.records import Context, plain, read
from pmlopt.model.queries import Explicit, ModularSum, Query, Weight, laplace
from pmlopt.model.queries.record_leakage_measures import dataset_entropy, record_information
from pmlopt.programs.record_leakage import closed_bounds as one_class_each
from pmlopt.programs.record_leakage import exact_leakage
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.closed_bounds import near_uniform_bound
from pmlopt.programs.record_leakage.proof import KindProof, LeakageProof, Region, leakage_bound, sharpened

ROWS = np.array([[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]])


def by_cells(query: Query, rows: FloatArray, entropy: float, **options: Any) -> RecordCertificate:
    """The proof by cells of output laws, also where binary records would have a better one."""
    with (
        patch.object(exact_leakage, "OUTPUTS_BY_DIMENSION", 0),
        patch.object(one_class_each, "MOST_CHOICES", 0),
    ):
        found: RecordCertificate = solve(record_leakage(query, rows, entropy), **options).certificate
    return found


def solved(entropy: float = 1.9) -> RecordCertificate:
    return by_cells(Weight(3), ROWS, entropy, tolerance=1e-4)


@pytest.fixture(scope="module")
def certificate() -> RecordCertificate:
    return solved()


def with_regions(
    certificate: RecordCertificate, regions: tuple[Region, ...], **changes: Any
) -> RecordCertificate:
    kind = replace(certificate.proofs[0], regions=regions, **changes)
    return replace(certificate, proofs=(kind, *certificate.proofs[1:]))


def leaves(kind: KindProof) -> list[int]:
    split = {region.parent for region in kind.regions}
    return [place for place in range(len(kind.regions)) if place not in split]


def test_what_was_solved_is_proved(certificate: RecordCertificate) -> None:
    assert len(certificate.proofs[0].regions) > 10
    assert certificate.verify()
    assert certificate.level == certificate.bound
    assert f"{certificate.bound:.9g}" in certificate.statement


def test_a_value_that_is_too_large(certificate: RecordCertificate) -> None:
    raised = certificate.value + 1e-6
    assert raised < certificate.bound
    assert not replace(certificate, value=raised).verify()
    assert not replace(certificate, value=certificate.value * (1 + 1e-12)).verify()


def test_a_bound_that_is_too_small(certificate: RecordCertificate) -> None:
    assert not replace(certificate, bound=certificate.value - 1e-6).verify()
    assert not replace(certificate, bound=certificate.value).verify()
    largest = max(certificate.proofs[0].regions[place].bound for place in leaves(certificate.proofs[0]))
    assert not replace(certificate, bound=largest - 1e-9).verify()
    assert replace(certificate, bound=certificate.bound + 1e-3).verify()


def test_a_bound_at_the_largest_entropy_that_is_too_small() -> None:
    top = Weight(3).log_size
    certificate = solve(record_leakage(Weight(3), ROWS, top)).certificate
    assert certificate.verify()
    assert not replace(certificate, bound=certificate.value * (1 - 1e-6)).verify()
    lower = replace(certificate, value=0.0, bound=certificate.value * (1 - 1e-6))
    assert not lower.verify()
    assert not replace(certificate, entropy=top - 0.1).verify()
    assert not replace(certificate, entropy=top * (1 + 1e-12)).verify()


def test_a_region_that_is_missing(certificate: RecordCertificate) -> None:
    regions = certificate.proofs[0].regions
    for place in (0, 1, 2, len(regions) // 2, len(regions) - 1):
        assert not with_regions(certificate, regions[:place] + regions[place + 1 :]).verify()
    for count in (1, 2, len(regions) - 1):
        assert not with_regions(certificate, regions[:count]).verify()
    assert not with_regions(certificate, ()).verify()
    second = replace(regions[0], bound=0.0)
    assert not with_regions(certificate, (*regions, second)).verify()


@pytest.mark.parametrize("step", [1e-9, 1e-6, 1e-3])
def test_a_cell_that_was_moved(certificate: RecordCertificate, step: float) -> None:
    regions = certificate.proofs[0].regions
    for place in (0, 1, leaves(certificate.proofs[0])[0], leaves(certificate.proofs[0])[-1]):
        for letter in (0, 1):
            cell = list(regions[place].cell)
            middle = cell[letter].mean(axis=0)
            cell[letter] = cell[letter] + step * (middle - cell[letter])
            moved = replace(regions[place], cell=tuple(cell))
            forged = (*regions[:place], moved, *regions[place + 1 :])
            assert not with_regions(certificate, forged).verify()


def test_multipliers_that_were_changed(certificate: RecordCertificate) -> None:
    """The bound of a leaf follows from its multipliers: others may prove less."""
    kind = certificate.proofs[0]
    place = max(leaves(kind), key=lambda at: kind.regions[at].bound)
    region = kind.regions[place]
    for proof in (
        replace(region.proof, price=region.proof.price * 2),
        replace(region.proof, log_law=region.proof.log_law[::-1] + np.array([0.0, 1.0])),
        replace(region.proof, slopes=region.proof.slopes + np.array([[1.0, -1.0], [0.0, 0.0]])),
    ):
        forged = (*kind.regions[:place], replace(region, proof=proof), *kind.regions[place + 1 :])
        assert not with_regions(certificate, forged).verify()


def test_a_prior_of_too_little_entropy(certificate: RecordCertificate) -> None:
    other = solved(1.5)
    assert other.value > certificate.value
    assert not replace(certificate, joint=other.joint).verify()


def test_a_joint_that_is_no_law(certificate: RecordCertificate) -> None:
    nudged = certificate.joint.copy()
    nudged[0, 0] = -nudged[0, 0]
    empty = certificate.joint.copy()
    empty[0, -1] = 0.01  # no dataset has a zero there and weight three
    for joint in (nudged, empty, np.zeros_like(nudged)):
        assert not replace(certificate, joint=joint).verify()


def test_an_entropy_that_was_changed(certificate: RecordCertificate) -> None:
    for entropy in (certificate.entropy + 1e-6, 2.0, certificate.entropy - 0.05, 0.0):
        assert not replace(certificate, entropy=entropy).verify()


def test_every_kind_of_records_needs_a_proof() -> None:
    query = ModularSum(2, 2, [2, 3])
    certificate = solve(record_leakage(query, ROWS[[0, 3]], 1.5), tolerance=1e-4).certificate
    assert certificate.verify()
    assert [kind.record for kind in certificate.proofs] == [0, 1]
    for proofs in ((), certificate.proofs[:1], certificate.proofs[1:], (certificate.proofs[0],) * 2):
        assert not replace(certificate, proofs=proofs).verify()


def test_simplices_that_overlap_cover_nothing() -> None:
    """Two triangles of a parallelogram, one of them twice: the areas add up, a half is left open."""
    corner, u, v = np.array([0.1, 0.2, 0.7]), np.array([0.4, 0.0, -0.4]), np.array([0.0, 0.2, -0.2])
    rows = np.array([corner, corner + u, corner + v, corner + u + v])
    query = Explicit([[0, 1, 2, 3], [0, 1, 2, 3]])
    certificate = by_cells(query, rows, 1.8, tolerance=1e-2)
    assert certificate.verify()
    kind = next(kind for kind in certificate.proofs if len(kind.regions) > 1)
    split = [place for place, region in enumerate(kind.regions) if len(region.cell[0]) == 4]
    children = [
        place
        for place, region in enumerate(kind.regions)
        if region.parent in split and len(region.cell[0]) == 3
    ]
    first, second = children[:2]
    regions = list(kind.regions)
    regions[second] = replace(
        regions[second],
        cell=(regions[first].cell[0], *regions[second].cell[1:]),
        parent=regions[first].parent,
    )
    proofs = tuple(
        replace(kind, regions=tuple(regions)) if other is kind else other for other in certificate.proofs
    )
    assert not replace(certificate, proofs=proofs).verify()


def test_plain_data_of_a_proof(certificate: RecordCertificate) -> None:
    record = certificate.to_dict()
    assert record["entropy"] == 1.9
    assert certificate.prior().shape == (2, 2, 2)
    proof = record["proofs"][0]
    assert len(proof["stored"]) == len(certificate.proofs[0].regions)
    again = read(KindProof, proof, "proof", Context(sizes={"M": certificate.mechanism.shape[1]}))
    assert plain(again) == proof
    assert len(again.polytopes) < sum(len(region.cell) for region in again.regions)


# what earlier versions took for a proof


def forged(certificate: RecordCertificate, region: Region, bound: float) -> RecordCertificate:
    """A claim of a bound that rests on one region."""
    return replace(with_regions(certificate, (region,)), bound=bound, value=min(bound, certificate.value))


def small_claim(query: Query, rows: FloatArray, entropy: float) -> RecordCertificate:
    """What the first relaxation alone proves."""
    found = by_cells(query, rows, entropy, solver=BranchAndBound(nodes=1))
    assert found.verify()
    return found


def test_a_cell_without_one_letter() -> None:
    """Only what is said of every letter bounds the law of Y: no cell for a letter, no bound."""
    certificate = small_claim(Weight(3), laplace(Weight(3), 1.0).matrix, 2.0)
    assert certificate.value > 0.1
    first = certificate.proofs[0].regions[0]
    shorter = replace(first, cell=first.cell[:1])
    for price in (0.0, first.proof.price, 1e6):
        for slopes in (first.proof.slopes, first.proof.slopes[:1], np.zeros((1, len(first.proof.log_law)))):
            proof = replace(first.proof, price=price, slopes=slopes)
            for bound in (1e-3, certificate.bound, 1.0):
                assert not forged(certificate, replace(shorter, proof=proof), bound).verify()
    longer = replace(first, cell=(*first.cell, first.cell[0]))
    assert not forged(certificate, longer, certificate.bound).verify()


def test_vertices_that_are_no_laws() -> None:
    """phi of a vertex outside the simplex is far from what interpolates it inside."""
    query, rows = ModularSum(3, 2), np.eye(2)
    certificate = small_claim(query, rows, 1.0)
    assert certificate.value == pytest.approx(np.log(2), abs=1e-9)
    first = certificate.proofs[0].regions[0]
    for vertices in (
        np.array([[1.5, -0.5], [-0.5, 1.5]]),
        np.array([[2.0, 0.0], [0.0, 2.0]]),
        np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5 + 1e-9]]),
        np.array([[1.0, 0.0], [0.0, np.nan]]),
        np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        np.zeros((0, 2)),
    ):
        region = replace(first, cell=(vertices, vertices))
        for bound in (0.6, certificate.bound, 1.0):
            assert not forged(certificate, region, bound).verify()
    assert forged(certificate, first, 1.0).verify()


def test_multipliers_of_wrong_shapes_or_no_numbers(certificate: RecordCertificate) -> None:
    kind = certificate.proofs[0]
    place = leaves(kind)[0]
    region = kind.regions[place]
    for proof in (
        replace(region.proof, slopes=region.proof.slopes[:, :1]),
        replace(region.proof, slopes=region.proof.slopes[:1]),
        replace(region.proof, slopes=region.proof.slopes + np.nan),
        replace(region.proof, log_law=region.proof.log_law[:1]),
        replace(region.proof, log_law=np.array([0.0, -np.inf])),
        replace(region.proof, price=np.inf),
        replace(region.proof, price=np.nan),
        replace(region.proof, share=-1.0),
        replace(region.proof, share=0.5, log_letters=None),
        replace(region.proof, share=0.5, log_letters=np.zeros(3)),
    ):
        changed = (*kind.regions[:place], replace(region, proof=proof), *kind.regions[place + 1 :])
        assert not with_regions(certificate, changed).verify()


def test_a_mechanism_and_a_channel_that_do_not_belong_together(certificate: RecordCertificate) -> None:
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
    certificate = solve(record_leakage(ModularSum(2, 2), named(rows), 1.0), tolerance=1e-4).certificate
    assert len(certificate.channel.rows) == (4 if distinct else 2)
    assert certificate.verify()


def named(rows: FloatArray) -> Mechanism:
    return Mechanism(rows, [(0, 0), (0, 1), (1, 0), (1, 1)])


def test_the_gap_is_that_of_value_and_bound(certificate: RecordCertificate) -> None:
    assert certificate.gap == certificate.bound - certificate.value
    assert replace(certificate, bound=1.0).gap == 1.0 - certificate.value
    with pytest.raises((TypeError, ValueError), match="gap"):
        replace(certificate, gap=0.0)  # type: ignore[call-arg]


def test_without_a_bound_nothing_is_promised_and_nothing_called_true(certificate: RecordCertificate) -> None:
    open_ended = replace(certificate, bound=np.inf)
    found = {claim.name: claim.holds for claim in open_ended.checks()}
    assert found == {"value": True, "bound": None}
    assert open_ended.level == np.inf


def test_numbers_that_are_none(certificate: RecordCertificate) -> None:
    for number in (np.nan, np.inf, -np.inf):
        assert not replace(certificate, value=number).verify()
        assert not replace(certificate, bound=number).verify() or number == np.inf
        assert not replace(certificate, entropy=number).verify()
    assert not replace(certificate, record=3).verify()
    assert not replace(certificate, record=-1).verify()
    assert not replace(certificate, joint=certificate.joint[:1]).verify()
    assert not replace(certificate, joint=certificate.joint * np.nan).verify()


@pytest.mark.parametrize("shortfall", [0.0, 1e-15, 1e-9, 1e-4, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_no_prior_near_the_uniform_one_leaks_more_than_the_bound(seed: int, shortfall: float) -> None:
    """A dataset whose entropy is that much below the largest: tilted along the slope of I, or at random."""
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.full(3, 0.7), size=4)
    counts = random.integers(1, 9, size=(2, 4)).astype(float)
    uniform = counts / counts.sum()
    bound = float(near_uniform_bound(rows, np.log(counts), Decimal(shortfall)))
    leaked = record_information(uniform, rows)
    assert bound >= leaked - 1e-15
    laws = uniform @ rows / uniform.sum(axis=1, keepdims=True)
    slope = np.log(laws / (uniform.sum(axis=0) @ rows)) @ rows.T
    for direction in (slope, *random.normal(size=(20, 2, 4))):
        for step in 10.0 ** np.linspace(-8, 1, 40):
            joint = uniform * np.exp(step * direction)
            joint /= joint.sum()
            divergence = float((joint * np.log(joint / uniform)).sum())
            if divergence <= shortfall - 1e-15:
                assert record_information(joint, rows) <= bound + 1e-14
    if 0 < shortfall <= 1e-9:  # and to first order some prior reaches it
        spread = float((uniform * (slope - leaked) ** 2).sum())
        assert bound == pytest.approx(leaked + np.sqrt(2 * shortfall * spread), abs=4 * shortfall + 1e-15)


def test_the_arithmetic_is_named(certificate: RecordCertificate) -> None:
    assert certificate.arithmetic == "decimal arithmetic of 50 digits"


# the bound, whatever the multipliers


def around(random: np.random.Generator, law: FloatArray, width: float) -> FloatArray:
    """Vertices of a simplex, in the laws of its size, with a law somewhere inside."""
    weights = random.dirichlet(np.ones(len(law)))
    ends = (1 - width) * law + width * random.dirichlet(np.ones(len(law)), size=len(law))
    last = (law - weights[:-1] @ ends[:-1]) / weights[-1]
    ends[-1] = last
    return ends if last.min() >= 0 else np.vstack([law, ends[:-1]])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    letters=st.integers(2, 3),
    outputs=st.integers(2, 3),
    log_price=st.floats(-8, 8),
    width=st.floats(0.0, 1.0),
    scale=st.floats(0.0, 5.0),
)
def test_random_multipliers_bound_every_prior_in_the_cell(
    seed: int, letters: int, outputs: int, log_price: float, width: float, scale: float
) -> None:
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.full(outputs, 0.7), size=4)
    log_counts = np.log(random.integers(1, 50, size=(letters, 4)))
    joint = random.dirichlet(np.full(4 * letters, 0.5)).reshape(letters, 4)
    laws = joint @ rows / joint.sum(axis=1, keepdims=True)
    cell = tuple(around(random, law, width) for law in laws)
    entropy = dataset_entropy(joint, log_counts)
    leaked = record_information(joint, rows)
    plain = LeakageProof(
        float(np.exp(log_price)),
        scale * random.normal(size=outputs),
        scale * random.normal(size=(letters, outputs)),
    )
    tangent = LeakageProof(plain.price, np.log(joint.sum(axis=0) @ rows), np.log(laws))
    mixed = replace(plain, share=float(random.random()), log_letters=scale * random.normal(size=letters))
    alone = replace(plain, share=0.0, log_letters=np.log(joint.sum(axis=1)))
    for proof in (plain, tangent, replace(plain, price=0.0), mixed, alone):
        bound = leakage_bound(rows, log_counts, entropy, cell, proof)
        assert bound >= leaked - 1e-15
        better, sharper = sharpened(rows, log_counts, entropy, cell, proof)
        assert bound >= sharper >= leaked - 1e-15
        assert leakage_bound(rows, log_counts, entropy, cell, better) == sharper


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_in_decimals_is_no_larger(seed: int) -> None:
    """Every region's own bound contains what rounding takes off, so that exact arithmetic agrees."""
    random = np.random.default_rng(seed)
    rows = random.dirichlet([0.3, 0.3, 0.3], size=3)
    query = Explicit([[0, 1], [1, 2]])
    certificate = by_cells(query, rows, 1.0, tolerance=1e-4)
    assert all(kind.regions for kind in certificate.proofs)
    for kind in certificate.proofs:
        for region in kind.regions:
            data = (rows_of(certificate), certificate.channel.log_counts(kind.record), 1.0, region.cell)
            assert leakage_bound(*data, region.proof) <= region.bound + 1e-12
    assert replace(certificate, bound=max(kind.bound for kind in certificate.proofs)).verify()


def rows_of(certificate: RecordCertificate) -> FloatArray:
    return certificate.channel.rows


def test_the_joint_and_the_prior_of_all_datasets_agree(certificate: RecordCertificate) -> None:
    p = certificate.prior().ravel()
    data = oracle.datasets((2, 2, 2), ROWS[Weight(3).table().ravel()])
    counts = certificate.channel.log_counts(certificate.record)
    assert oracle.entropy(p) == pytest.approx(dataset_entropy(certificate.joint, counts), abs=1e-13)
    assert oracle.information(data, 0, p) == pytest.approx(
        record_information(certificate.joint, certificate.channel.rows), abs=1e-14
    )
