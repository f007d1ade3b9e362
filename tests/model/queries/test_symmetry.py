"""Classes of datasets and expected distortions, against lists of all datasets and of their permutations."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.designs import FloatArray
from oracles.queries import cases
from refusals import refused
from strategies import MODEST

from pmlopt.errors import InputError, MechanismError, PriorError, QueryError, UtilityError
from pmlopt.model.queries import (
    DatasetOrbits,
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    expected_distortion,
    orbits,
    record_channel,
)

Dataset = tuple[int, ...]


def datasets(query: Query) -> list[Dataset]:
    return list(product(*map(range, query.alphabets)))


def classes_of(found: DatasetOrbits) -> dict[int, list[Dataset]]:
    """The datasets of each class, by the table of the classes."""
    table = found.query.table()
    members: dict[int, list[Dataset]] = {}
    for x in datasets(found.query):
        members.setdefault(int(table[x]), []).append(x)
    return members


def relabellings(table: Any, law: FloatArray) -> list[Any]:
    """Every permutation of records with a relabelling of the letters of each that leaves both as they are."""
    places, kept = np.arange(table.size).reshape(table.shape), []
    for order in permutations(range(table.ndim)):
        if tuple(table.shape[i] for i in order) != table.shape:
            continue
        for letters in product(*(list(permutations(range(size))) for size in table.shape)):
            moved = places.transpose(order)[np.ix_(*letters)].ravel()
            same = (table.ravel()[moved] == table.ravel()).all()
            if same and np.allclose(law.ravel()[moved], law.ravel(), rtol=1e-12, atol=0):
                kept.append(moved)
    return kept


def symmetrised(law: FloatArray) -> FloatArray:
    """The mean over all permutations of records of equal alphabets."""
    images = [law.transpose(order) for order in permutations(range(law.ndim))]
    return np.asarray(np.mean([image for image in images if image.shape == law.shape], axis=0))


def assert_orbits(query: Query, law: FloatArray | None) -> None:
    found = orbits(query, law)
    table = query.table()
    masses = np.full(table.shape, 1 / table.size) if law is None else law
    members = classes_of(found)
    assert found.query.alphabets == query.alphabets
    assert len(found.masses) == len(found.values) == len(found.query.values)
    assert math.fsum(found.masses) == pytest.approx(1, abs=1e-12)
    for place, (value, mass) in enumerate(zip(found.values, found.masses, strict=True)):
        known = members.get(place, [])
        assert mass == pytest.approx(math.fsum(masses[x] for x in known), rel=1e-10, abs=1e-15)
        assert {int(table[x]) for x in known} <= {int(value)}
    for record in range(query.records):
        counts = [[0] * len(found.values) for _ in range(query.alphabets[record])]
        for place, known in members.items():
            for x in known:
                counts[x[record]][place] += 1
        assert np.exp(found.query.log_counts(record)) == pytest.approx(
            np.array(counts), rel=1e-12, abs=0
        )


@st.composite
def tables(draw: st.DrawFn) -> tuple[Explicit, FloatArray]:
    """A random table on a small product alphabet, with some symmetry at times; and a law."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    count = math.prod(sizes)
    places = np.array(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))).reshape(
        sizes
    )
    kind = draw(st.sampled_from(["free", "sums", "symmetric"]))
    if kind == "sums":
        places = np.indices(sizes).sum(axis=0)
    elif kind == "symmetric" and len(set(sizes)) == 1:
        places = np.max(
            [places.transpose(order) for order in permutations(range(len(sizes)))], axis=0
        )
    seed = draw(st.integers(0, 2**16))
    law = np.random.default_rng(seed).dirichlet(np.full(count, 0.7)).reshape(sizes)
    form = draw(st.sampled_from(["uniform", "random", "symmetric", "few"]))
    if form == "uniform":
        law = np.full(sizes, 1 / count)
    elif form == "symmetric":
        law = symmetrised(law)
    elif form == "few":
        law = np.where(law >= np.median(law), law, 0.0)
    return Explicit(places), law / law.sum()


class TestOrbits:
    @given(tables(), st.booleans())
    @MODEST
    def test_masses_values_and_counts_are_those_of_the_definition(
        self, drawn: tuple[Explicit, FloatArray], given_law: bool
    ) -> None:
        query, law = drawn
        assert_orbits(query, law if given_law else None)

    @given(cases())
    @MODEST
    def test_of_every_query(self, case: Any) -> None:
        assert_orbits(case.query, None)

    @given(tables())
    @MODEST
    def test_a_class_lies_in_an_orbit_of_what_keeps_function_and_law(
        self, drawn: tuple[Explicit, FloatArray]
    ) -> None:
        """And it is closed under exchanges of two records that keep both."""
        query, law = drawn
        classes = orbits(query, law).query.table()
        for first, second in combinations(range(law.ndim), 2):
            table, turned = (np.swapaxes(one, first, second) for one in (query.table(), law))
            same = table.shape == law.shape and (table == query.table()).all()
            if same and np.allclose(turned, law, rtol=1e-12, atol=0):
                assert (np.swapaxes(classes, first, second) == classes).all()
        kept = relabellings(query.table(), law)
        flat = classes.ravel()
        for place in np.unique(flat):
            members = np.flatnonzero(flat == place).tolist()
            assert set(members) <= {int(moved[members[0]]) for moved in kept}

    @pytest.mark.parametrize(
        "query",
        [
            *(ModularSum(*given) for given in (
                (3, 2, 3), (3, 3, [2, 3, 2]), (4, 3, [4, 2, 4, 5]), (3, 5, 3), (4, 3, [2, 3, 2, 3]),
                (2, 4, 4), (3, 2), (2, 3, 3), (2, 2, 4), (3, 2, [2, 4, 2]), (4, 3), (3, 7))),
            Quadratic(4), Weight(3), Weight(1),
        ],
    )  # fmt: skip
    def test_there_are_as_many_classes_as_the_table_alone_tells(self, query: Query) -> None:
        """Where letters of one residue are alike, alphabets are whole, or records binary."""
        assert_orbits(query, None)
        assert len(orbits(query).values) == len(orbits(Explicit(query.table())).values)

    def test_known_classes(self) -> None:
        # of thirteen ternary records the 3^13 datasets are not listed: 14 numbers of odd letters, binomial
        found = orbits(ModularSum(13, 2, letters=3))
        odd = np.arange(14)
        assert found.values.tolist() == (odd % 2).tolist()
        law = [math.comb(13, w) * 2 ** (13 - w) / 3**13 for w in range(14)]
        assert found.masses == pytest.approx(law, rel=1e-12)

        # a function that is the same for w and n - w
        found = orbits(Weight(7, lambda w: abs(2 * w - 7) > 3))
        assert found.values.tolist() == [1, 1, 0, 0]
        assert found.masses == pytest.approx(np.array([1, 7, 21, 35]) / 64)

        # relabellings of two records at a time: of a parity or a sum modulo 3 the values, in their order
        for table in ([[0, 1], [1, 0]], np.indices((3, 3)).sum(axis=0) % 3):
            query = Explicit(table)
            found = orbits(query)
            assert found.query is query
            assert found.values.tolist() == list(range(len(query.values)))

    @pytest.mark.parametrize("query", [ModularSum(10_000, 2), ModularSum(10_000, 3), Weight(200)])
    def test_many_records(self, query: Query) -> None:
        found = orbits(query)
        assert math.fsum(found.masses) == pytest.approx(1, abs=1e-9)
        middle = len(found.masses) // 2
        if query.alphabets != (2,) * 10_000:
            assert found.masses[100] == pytest.approx(math.comb(200, 100) / 2**200, rel=1e-10)
        elif len(found.masses) == 2:
            assert found.masses.tolist() == pytest.approx([0.5, 0.5], abs=1e-9)
        else:
            exact = math.comb(10_000, 5_000) / 2**10_000
            assert found.masses[middle] == pytest.approx(exact, rel=1e-9)


def test_what_is_no_law_no_query_or_too_large_is_refused() -> None:
    laws: list[Any] = [
        [[0.5, 0.6], [-0.1, 0.0]], [[0.5, 0.5], [0.5, 0.5]], [[0.0, 0.0], [0.0, 0.0]], [0.5, 0.5], [0.2] * 5,
        [[0.25] * 4], [[math.nan, 0.5], [0.25, 0.25]], [[math.inf, 0.5], [0.25, 0.25]], [[0.5], [0.25, 0.25]],
        [["a", "b"], ["c", "d"]], "uniform", 0.25, [],
    ]  # fmt: skip
    for query in (ModularSum(2, 2), Weight(2), Explicit([[0, 1], [1, 3]])):
        for law in laws:
            with pytest.raises(PriorError, match="law") as caught:
                orbits(query, law)
            assert isinstance(caught.value, InputError)
            assert len(str(caught.value)) < 400
    eight = np.full(8, 1 / 8)
    large = (
        (ModularSum(21, 3, 3), eight),
        (ModularSum(30, 2), eight),
        (ModularSum(21, 4, range(2, 23)), None),
    )
    refused(QueryError, orbits, "too many", *large, (Weight(40), [1.0]))
    for one in (None, "parity", 2, ModularSum, [[0, 1], [1, 0]]):
        refused(QueryError, orbits, r"the query is .* give one such as", (one,))
        for ask in (expected_distortion, record_channel):
            refused(QueryError, ask, r"the query is .* give one such as", (one, np.eye(2)))


class TestExpectedDistortion:
    @given(tables(), st.integers(0, 2**16), st.booleans(), st.booleans())
    @MODEST
    def test_against_enumeration(
        self, drawn: tuple[Explicit, FloatArray], seed: int, own_loss: bool, own_law: bool
    ) -> None:
        query, law = drawn
        random = np.random.default_rng(seed)
        count = len(query.values)
        outputs = int(random.integers(1, 5)) if own_loss else count
        rows = random.dirichlet(np.full(outputs, 0.5), size=count)
        loss = random.gamma(1.0, size=(count, outputs)) if own_loss else None
        values = [float(str(value)) for value in query.values]
        table = query.table()
        mean = math.fsum(
            (float(law[x]) if own_law else 1 / law.size)
            * rows[table[x], y]
            * (abs(values[table[x]] - values[y]) if loss is None else loss[table[x], y])
            for x in datasets(query)
            for y in range(outputs)
        )
        found = expected_distortion(query, rows, loss, law if own_law else None)
        assert found == pytest.approx(mean, rel=1e-12, abs=1e-15)

    @pytest.mark.parametrize("given_law", [False, True])
    def test_rows_by_value_by_class_and_by_dataset_agree(self, given_law: bool) -> None:
        query = Quadratic(3)
        law = None
        if given_law:
            law = symmetrised(np.random.default_rng(3).dirichlet(np.ones(8)).reshape(2, 2, 2))
        rows = np.random.default_rng(4).dirichlet(np.ones(3), 3)
        classes = orbits(query, law)
        by_value = expected_distortion(query, rows, law=law)
        by_class = expected_distortion(query, rows[classes.values], law=law)
        by_dataset = expected_distortion(query, rows[query.table().ravel()], law=law)
        assert by_class == pytest.approx(by_value, rel=1e-12)
        assert by_dataset == pytest.approx(by_value, rel=1e-12)

    def test_bad_losses_mechanisms_and_queries(self) -> None:
        parity, text = ModularSum(3, 2), Explicit([["no", "yes"]])
        losses: list[tuple[Any, str]] = [
            ([[0.0, 1.0]], "one for each of the query's 2 values"), ([[0.0, -1.0], [1.0, 0.0]], "at least 0"),
            ([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]], "shape"), ([[0.0, math.nan], [1.0, 0.0]], "finite"),
            ([[0.0, math.inf], [1.0, 0.0]], "finite"), ([[0.0], [1.0, 0.0]], "numbers"),
            ([0.0, 1.0], "dimension"), ("hamming", "numbers"),
        ]  # fmt: skip
        for loss, message in losses:
            refused(UtilityError, expected_distortion, message, (parity, np.eye(2), loss))
        refused(MechanismError, expected_distortion, ".", (parity, np.eye(3)))
        refused(UtilityError, expected_distortion, "value", (parity, np.full((8, 3), 1 / 3)))
        refused(QueryError, expected_distortion, "not numbers", (text, np.eye(2)))
        assert expected_distortion(text, np.eye(2), 1 - np.eye(2)) == 0
        refused(
            PriorError, expected_distortion, ".", (ModularSum(2, 2), np.eye(2), None, [0.5, 0.5])
        )
