"""A mechanism seen from a query's records: against a list of all datasets and their rows."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles.queries import Case, cases, explicit, modular_sum, quadratic, weight
from refusals import refused
from strategies import MODEST

from pmlopt import Mechanism
from pmlopt.errors import InputError, MechanismError
from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    RecordChannel,
    orbits,
    record_channel,
)

Row = tuple[float, ...]
ROWS: list[Row] = [
    (1.0, 0.0, 0.0),
    (0.0, 1.0, 0.0),
    (0.5, 0.5, 0.0),
    (0.25, 0.25, 0.5),
    (0.25, 0.5, 0.25),
]


@st.composite
def answered(draw: st.DrawFn) -> tuple[Case, list[Row]]:
    """A query, and a row for each value: often the same ones."""
    case = draw(cases())
    m = len(case.values)
    return case, draw(st.lists(st.sampled_from(ROWS), min_size=m, max_size=m))


def row_of(case: Case, rows: list[Row], x: tuple[int, ...]) -> Row:
    return rows[case.values.index(case.function(x))]


def behind(case: Case, rows: list[Row], record: int) -> dict[Row, list[int]]:
    """How many datasets have each row, for each letter of a record."""
    found: dict[Row, list[int]] = {}
    for x in case.datasets:
        found.setdefault(row_of(case, rows, x), [0] * case.alphabets[record])[x[record]] += 1
    return found


def assert_channel(channel: RecordChannel, case: Case, rows: list[Row]) -> None:
    """Distinct rows, each with the counts of the definition."""
    names = [tuple(row) for row in channel.rows.tolist()]
    assert len(set(names)) == len(names) == len(channel.names)
    for record, letters in enumerate(case.alphabets):
        expected = behind(case, rows, record)
        assert set(names) == set(expected)
        counts = channel.log_counts(record)
        assert counts.shape == (letters, len(names))
        for name, column in zip(names, counts.T, strict=True):
            known = [math.log(count) if count else -math.inf for count in expected[name]]
            assert column.tolist() == pytest.approx(known, rel=1e-13, abs=1e-14)
    table = channel.class_table()
    assert table.shape == case.alphabets
    for x in case.datasets:
        assert names[table[x]] == row_of(case, rows, x)


class TestStructure:
    @given(answered())
    @example((modular_sum((2,), 3), [ROWS[0], ROWS[1], ROWS[2]]))
    @example((modular_sum((1, 1), 1), [ROWS[3]]))
    @example((weight(None, 6), [ROWS[w % 2] for w in range(7)]))
    @example((quadratic(4), [ROWS[0]] * 4))
    @MODEST
    def test_rows_by_value(self, drawn: tuple[Case, list[Row]]) -> None:
        case, rows = drawn
        forms: list[Any] = [
            rows,
            np.array(rows),
            Mechanism(rows),
            Mechanism(rows, case.values, list("abc")),
        ]
        for mechanism in forms:
            channel = record_channel(case.query, mechanism)
            assert_channel(channel, case, rows)
            assert channel.query is case.query
            names = [tuple(row) for row in channel.rows.tolist()]
            reached = {case.function(x) for x in case.datasets}
            for value, row, place in zip(case.values, rows, channel.classes.tolist(), strict=True):
                assert place == (names.index(row) if value in reached else -1)
                assert [value in behind_row for behind_row in channel.names] == [
                    value in reached and name == row for name in names
                ]

    @given(answered())
    @example((modular_sum((2,), 3), [ROWS[0], ROWS[1], ROWS[2]]))
    @example((explicit((1, 1), ["only"]), [ROWS[3]]))
    @example((explicit((2, 2), [3, 2, 1, 0]), [ROWS[0], ROWS[1], ROWS[2], ROWS[3]]))
    @MODEST
    def test_rows_by_dataset(self, drawn: tuple[Case, list[Row]]) -> None:
        case, rows = drawn
        every = [row_of(case, rows, x) for x in case.datasets]
        channel = record_channel(case.query, Mechanism(every, case.datasets))
        assert_channel(channel, case, rows)
        assert channel.query.alphabets == case.alphabets
        if len(case.datasets) != len(case.values):
            assert_channel(record_channel(case.query, every), case, rows)

    def test_rows_that_differ_by_one_ulp_stay_two_and_the_sign_of_zero_does_not_matter(
        self,
    ) -> None:
        half = math.nextafter(0.5, 1)
        assert len(record_channel(ModularSum(3, 2), [[0.5, 0.5], [half, 0.5]]).rows) == 2
        assert len(record_channel(ModularSum(3, 2), [[0.0, 1.0], [-0.0, 1.0]]).rows) == 1


class TestWhatTheRowsAre:
    INJECTIVE = Explicit([[3, 2], [1, 0]])
    ORDERED = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=float)

    def test_unless_they_have_the_datasets_names(self) -> None:
        named = Mechanism(self.ORDERED, product((0, 1), repeat=2))
        channel = record_channel(self.INJECTIVE, named)
        assert channel.rows[channel.class_table()].argmax(axis=2).tolist() == [[0, 1], [2, 3]]

    def test_the_last_record_s_letter_runs_fastest(self) -> None:
        rows = np.eye(6)
        for mechanism in (rows, Mechanism(rows, product(range(2), range(3)))):
            channel = record_channel(ModularSum(2, 2, [2, 3]), mechanism)
            assert channel.rows[channel.class_table()].argmax(axis=2).tolist() == [
                [0, 1, 2],
                [3, 4, 5],
            ]

    def test_names_of_values_must_be_these(self) -> None:
        rows = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]
        assert record_channel(Quadratic(3), Mechanism(rows, [0, 1, 3])).classes.tolist() == [
            0,
            1,
            2,
        ]
        assert record_channel(Quadratic(3), Mechanism(rows)).classes.tolist() == [0, 1, 2]
        differ, turned = "differ from the query's values", "same in another order"
        wrong = [(Quadratic(3), Mechanism(rows, labels)) for labels in ([0, 1, 2], ["a", "b", "c"])]
        refused(MechanismError, record_channel, differ, *wrong)
        refused(MechanismError, record_channel, turned, (Quadratic(3), Mechanism(rows, [3, 1, 0])))
        names, parity = list(product((0, 1), repeat=2)), ModularSum(2, 2)
        refused(MechanismError, record_channel, turned, (parity, Mechanism(np.eye(4), names[::-1])))
        other = (parity, Mechanism(np.eye(4), list("abcd")))
        refused(MechanismError, record_channel, "differ from the datasets", other)
        # of an injective query the rows are values unless they are named in order
        refused(
            MechanismError,
            record_channel,
            differ,
            (self.INJECTIVE, Mechanism(self.ORDERED, names[::-1])),
        )


class TestClasses:
    """Mechanisms with a row for each class of datasets that a design tells apart."""

    def test_a_row_for_each_weight(self) -> None:
        query = ModularSum(3, 3)  # the weights 0 and 3 have the same value
        rows = np.random.default_rng(0).dirichlet(np.ones(2), 4)
        channel = record_channel(query, Mechanism(rows, range(4)))
        by_dataset = record_channel(query, rows[np.indices((2, 2, 2)).sum(axis=0).ravel()])
        assert channel.rows == pytest.approx(by_dataset.rows)
        assert np.exp(channel.log_counts(0)) == pytest.approx(np.exp(by_dataset.log_counts(0)))

    def test_names_decide_where_classes_are_as_many_as_values(self) -> None:
        query = ModularSum(
            3, 10, 3
        )  # 10 multisets of three letters, and 10 values of which 7 are reached
        classes = orbits(query)
        rows = np.random.default_rng(1).dirichlet(np.ones(2), 10)
        named = record_channel(query, Mechanism(rows, classes.query.values))
        assert named.query.values == classes.query.values
        assert record_channel(query, rows).query is query

    def test_classes_of_a_law(self) -> None:
        query = ModularSum(2, 2)
        law = [[0.1, 0.2], [0.3, 0.4]]
        rows = Mechanism([[1, 0], [0, 1], [1, 0], [0, 1]], range(4))
        assert len(record_channel(query, rows, law).rows) == 2
        with pytest.raises(MechanismError):
            record_channel(query, rows)


def test_rows_must_be_as_many_and_a_mechanism() -> None:
    for rows in (1, 2, 5, 7, 9):
        said = rf"has {rows} rows.* 3 values.* 8 datasets"
        refused(MechanismError, record_channel, said, (ModularSum(3, 3), np.ones((rows, 1))))
    none: list[Any] = [
        None, "rows", [], [0.5, 0.5], [[0.5, 0.5], [1.0]], [[0.5, 0.6], [0.5, 0.5]],
        [[1.5, -0.5], [0.5, 0.5]], [[math.nan, 1.0], [0.5, 0.5]], [["a", "b"], ["c", "d"]],
    ]  # fmt: skip
    words = "the mechanism|the row|the probability"
    refused(MechanismError, record_channel, words, *((ModularSum(4, 2), one) for one in none))
    assert issubclass(MechanismError, InputError)
