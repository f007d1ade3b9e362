"""How many datasets lie behind each value: against a list of all of them, and exactly where they are many."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from oracles.queries import Case, cases, explicit, logs, modular_sum, quadratic, weight
from refusals import refused
from strategies import MODEST

from pmlopt.errors import QueryError
from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    exponential,
    laplace,
)

NAN, INF = math.nan, math.inf
NOT_WHOLE: list[Any] = [0, -1, 2.5, NAN, INF, "a", "2", None, True, [2]]


def extremes(test: Any) -> Any:
    """One letter, one value, a plain sum, values out of reach, unlike alphabets, one record."""
    for case in (
        modular_sum((1,), 1),
        modular_sum((1,), 3),
        modular_sum((1, 1, 1), 2),
        modular_sum((4, 4), 2),
        modular_sum((2, 2, 2), 1),
        modular_sum((2, 3, 2), 9),
        modular_sum((3, 1, 4, 3), 5),
        quadratic(1),
        quadratic(6),
        weight(None, 1),
        weight([1, 0, 0, 5, 0, -2, 1], 6),
        weight(["few", "few", "many"], 2),
        explicit((1,), ["only"]),
        explicit((2, 1, 3), [3, 1, 2, 3, 3, 1]),
        explicit((2, 2), [0, 1, 1, 0]),
    ):
        test = example(case)(test)
    return test


class TestAgainstAllDatasets:
    @extremes
    @given(cases())
    @MODEST
    def test_counts_table_and_the_kinds_that_stand_for_all_records(self, case: Case) -> None:
        query = case.query
        assert query.values == case.values
        assert query.alphabets == case.alphabets
        assert query.records == len(case.alphabets)
        assert query.log_size == pytest.approx(
            math.log(math.prod(case.alphabets)), rel=1e-14, abs=0
        )
        for record in range(query.records):
            found, expected = query.log_counts(record), np.array(logs(case.counts(record)))
            assert found.shape == expected.shape
            assert found.dtype == np.float64
            assert np.array_equal(np.isneginf(found), np.isneginf(expected))
            reached = np.isfinite(expected)
            assert found[reached] == pytest.approx(expected[reached], rel=1e-13, abs=1e-14)

        table = query.table()
        assert table.shape == case.alphabets
        for x in case.datasets:
            assert case.values[table[x]] == case.function(x)
        kinds = case.query.kinds
        assert len(set(kinds)) == len(kinds)
        known = [(case.alphabets[kind], case.counts(kind)) for kind in kinds]
        for record, letters in enumerate(case.alphabets):
            # exactly one representative, so that none is superfluous either
            assert known.count((letters, case.counts(record))) == 1
            kind = kinds[known.index((letters, case.counts(record)))]
            assert np.array_equal(case.query.log_counts(record), case.query.log_counts(kind))

    @given(cases(numeric=True))
    @example(modular_sum((2, 2, 2), 3))
    @example(modular_sum((1, 1), 3))
    @example(modular_sum((2,), 5))
    @example(modular_sum((9, 2), 4))
    @example(weight([0, 7, -3], 2))
    @example(quadratic(1))
    @MODEST
    def test_sensitivity(self, case: Case) -> None:
        found = case.query.sensitivity
        assert type(found) is float
        assert found == pytest.approx(case.sensitivity, rel=1e-15)


class TestModularSum:
    @pytest.mark.parametrize(("modulus", "letters"), [(3, 2), (3, 3), (7, 6)])
    def test_thousands_of_records_against_whole_numbers(self, modulus: int, letters: int) -> None:
        n, others = 3_001, [1] + [0] * (modulus - 1)
        for _ in range(n - 1):
            others = [
                sum(others[(t - a) % modulus] for a in range(letters)) for t in range(modulus)
            ]
        found = ModularSum(n, modulus, letters).log_counts(1_234)
        assert found.shape == (letters, modulus)
        for a, t in product(range(letters), range(modulus)):
            assert found[a, t] == pytest.approx(math.log(others[(t - a) % modulus]), rel=1e-13)


class TestWeight:
    def test_ten_thousand_records(self) -> None:
        found = Weight(10_000).log_counts(5_000)
        assert found.shape == (2, 10_001)
        assert found[0, -1] == -INF
        assert found[1, 0] == -INF
        for w in (0, 1, 2, 37, 2_500, 4_999, 5_000, 5_001, 7_777, 9_998, 9_999):
            expected = math.log(math.comb(9_999, w))
            assert found[0, w] == pytest.approx(expected, rel=1e-13, abs=0)
            assert found[1, w + 1] == pytest.approx(expected, rel=1e-13, abs=0)
            # lgamma itself is good to about 1e-16 of its values, which are 1e5
            by_gamma = math.lgamma(10_000) - math.lgamma(w + 1) - math.lgamma(10_000 - w)
            assert found[0, w] == pytest.approx(by_gamma, rel=0, abs=1e-9)

    def test_values_rise_and_text_stays_as_it_comes(self) -> None:
        assert Weight(3, lambda w: -w).values == (-3, -2, -1, 0)
        assert Weight(2, lambda w: Fraction(1, w + 1)).values == (Fraction(1, 3), Fraction(1, 2), 1)
        assert Weight(3, lambda w: "zyxx"[w]).values == ("z", "y", "x")
        assert Weight(3, lambda w: "mixed" if w else 0).values == (0, "mixed")


class TestQuadratic:
    def test_weights_zero_and_one_have_the_same_value(self) -> None:
        found = Quadratic(1_000).log_counts(3)
        assert found.shape == (2, 1_000)
        assert found[0, 0] == pytest.approx(math.log(1_000), rel=1e-14)
        assert found[1, 0] == 0
        for w in (2, 500, 999):
            assert found[0, w - 1] == pytest.approx(math.log(math.comb(999, w)), rel=1e-13)
            assert found[1, w - 1] == pytest.approx(math.log(math.comb(999, w - 1)), rel=1e-13)


class TestExplicit:
    def test_numbers_beside_text_stay_numbers(self) -> None:
        mixed: Any = [[1, "a"], [0.5, "a"]]
        assert Explicit(mixed).values == (1, "a", 0.5)
        assert Explicit(["b", "a", "b"]).values == ("b", "a")
        assert Explicit(np.array(["b", "a", "b"])).values == ("b", "a")

    def test_the_array_is_kept_as_it_was(self) -> None:
        array = np.array([[0, 1], [1, 0]])
        query = Explicit(array)
        array[0, 0] = 1
        assert query.table().tolist() == [[0, 1], [1, 0]]
        with pytest.raises(ValueError, match="read-only"):
            query.table()[0, 0] = 1

    def test_a_million_entries_and_no_more(self) -> None:
        assert Explicit(np.zeros(2**20)).log_size == pytest.approx(20 * math.log(2), rel=1e-15)
        refused(QueryError, Explicit, "1,048,576 entries", (np.zeros(2**20 + 1),))


QUERIES: list[Query] = [
    ModularSum(3, 2), Weight(3), Quadratic(3), Explicit([[[0, 1], [1, 1]], [[2, 1], [0, 1]]]),
]  # fmt: skip
BAD_TABLES: list[tuple[str, list[Any]]] = [
    ("shape", [[], [[], []], 3, "abc", None]),
    ("not a regular array", [[[1, 2], [3]]]),
    ("the value nan", [[0.0, NAN], np.array([0, NAN], dtype=object)]),
    ("cannot be a label", [np.array([{}, {}]), np.array([{1}, {2}], dtype=object)]),
]
WITHOUT_DISTANCE: list[tuple[str, list[Query]]] = [
    ("not numbers", [
        Weight(2, lambda w: "abc"[w]), Explicit(np.array([[0, "a"], [1, 1]], dtype=object)),
        Explicit([1j, 2.0]), Explicit(np.array([None, 0])), Explicit([["yes", "no"], ["no", "no"]])]),
    ("not all finite", [
        Explicit([0.0, INF]), Explicit([-1e308, 1e308]), Weight(2, lambda w: 10 ** (400 * w)),
        Explicit([0, 10**400])]),
    ("are the same float", [Explicit([2**53, 2**53 + 1]), Weight(2, lambda w: 10**20 + w)]),
]  # fmt: skip


class TestRefusals:
    def test_numbers_must_be_whole_and_sizes_as_many_as_records(self) -> None:
        records = "the number of records must be"
        refused(QueryError, ModularSum, records, *((bad, 2) for bad in NOT_WHOLE))
        refused(QueryError, ModularSum, "the modulus must be", *((3, bad) for bad in NOT_WHOLE))
        refused(
            QueryError,
            ModularSum,
            "an alphabet's size must be",
            *((3, 2, [2, 2, bad]) for bad in NOT_WHOLE),
        )
        for letters in ([], [2], [2, 2], [2, 2, 2, 2]):
            refused(
                QueryError, ModularSum, f"{len(letters)} alphabets for 3 records", (3, 2, letters)
            )
        for make in (Weight, Quadratic):
            refused(QueryError, make, records, *((bad,) for bad in NOT_WHOLE))

    def test_values_must_be_labels_and_tables_regular(self) -> None:
        lists: Any = lambda w: [w]  # noqa: E731
        refused(QueryError, lambda: Weight(3, lists).values, "cannot be a label", ())
        refused(
            QueryError,
            Weight(3, lambda w: math.sqrt(w) if w else NAN).log_counts,
            "the value nan",
            (0,),
        )
        for message, tables in BAD_TABLES:
            refused(QueryError, Explicit, message, *((table,) for table in tables))

    @pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
    def test_there_is_no_such_record(self, query: Query) -> None:
        bad: list[Any] = [-1, 3, 10**30, 1.0, NAN, "a", None, np.array([0, 1])]
        refused(QueryError, query.log_counts, "the records 0 to 2", *((record,) for record in bad))

    def test_too_many_datasets_or_records_are_not_listed(self) -> None:
        for query in (ModularSum(21, 2), Weight(21), Quadratic(21), ModularSum(2, 3, 1025)):
            refused(QueryError, query.table, "too many to list", ())
        refused(QueryError, ModularSum(40, 2, [1] * 39 + [2]).table, "40 records are too many", ())
        assert ModularSum(32, 2, [1] * 31 + [2]).table().ravel().tolist() == [0, 1]

    def test_there_is_no_distance_between_such_values(self) -> None:
        for message, several in WITHOUT_DISTANCE:
            for query in several:
                refused(QueryError, lambda one: one.sensitivity, message, (query,))
                refused(QueryError, laplace, message, (query, 1.0))
                refused(QueryError, exponential, message, (query, 1.0, "distance"))
