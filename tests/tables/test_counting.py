"""Counts of columns, alone and crosswise, from files and frames; labels are kept or refused."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables.tables_of_any_kind import csv_bytes, write_table

from pmlopt import Prior, Secret
from pmlopt.core.frames import Missing
from pmlopt.errors import InputError, PriorError
from pmlopt.tables import CsvFormat, column_counts, cross_counts, open_table
from pmlopt.tables.counting import _number_codes, count_tuples
from pmlopt.tables.missing_cells import MissingRows

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=3)
KINDS: tuple[st.SearchStrategy[Any], ...] = (
    TEXTS, st.integers(-5, 5), st.sampled_from([0.5, 1.5, 2.0]), st.booleans()
)  # fmt: skip


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_typed_columns_are_counted_as_python_counts_them(
    tmp_path: Path, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    values = data.draw(st.lists(st.one_of(st.none(), kind), min_size=1, max_size=9))
    present = Counter(value for value in values if value is not None)
    write_table(tmp_path / "t.parquet", {"c": values})
    sources: list[Any] = [tmp_path / "t.parquet", {"c": values}]
    for source in sources:
        if not present:
            with pytest.raises(InputError):
                column_counts(source, "c", "drop")
            continue
        found = column_counts(source, "c", "drop")
        assert found == present
        assert list(found) == sorted(present)
        assert {type(label) for label in found} == {type(label) for label in present}
        if None in values:
            with pytest.raises(InputError, match="missing"):
                column_counts(source, "c")
            if "" not in present:
                assert column_counts(source, "c", "letter") == {**present, "": values.count(None)}


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.filterwarnings("ignore::pmlopt.errors.CountedTableWarning")  # a few rows of numbers
@given(st.lists(st.tuples(TEXTS, st.integers(0, 2)), min_size=1, max_size=8))
def test_csv_columns_are_numbers_where_all_are(tmp_path: Path, rows: list[tuple[str, int]]) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(
        csv_bytes([["word", "size"], *([word, str(size)] for word, size in rows)], end="\r\n")
    )
    form = CsvFormat(",")
    assert column_counts(path, "size", form=form) == Counter(size for _, size in rows)
    words = column_counts(path, "word", form=form)
    assert sorted(words.values()) == sorted(Counter(word for word, _ in rows).values())
    assert {str(word) for word in words} == {word for word, _ in rows}
    pairs = cross_counts(path, "word", "size", form=form)
    assert {(str(word), size): n for (word, size), n in pairs.items()} == Counter(rows)


def test_missing_cells_of_csv_are_told_with_their_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,\n3,x\n")
    with pytest.raises(InputError, match="row 3: the cell of 'b' is missing"):
        column_counts(path, "b")
    with pytest.raises(InputError, match="row 3: the cell of 'b'"):
        cross_counts(path, "a", "b")
    said = r"is missing; 1 of 3 rows \(33.3 %\) have none. Give --missing drop"
    with pytest.raises(InputError, match=said):
        column_counts(path, "b")
    assert column_counts(path, "b", "drop") == {"x": 2}
    assert column_counts(path, "b", "letter") == {"x": 2, "": 1}
    assert cross_counts(path, "b", "a", "letter") == {("x", 1): 1, ("x", 3): 1, ("", 2): 1}
    with pytest.raises(InputError, match="no column 'c'"):
        column_counts(path, "c")
    with pytest.raises(InputError, match=r"no column 'a, b'.*: name one at a time"):
        column_counts(path, "a, b")


def test_rows_with_a_missing_cell_are_counted_over_all_batches(tmp_path: Path) -> None:
    rows = 300_000  # several blocks of 2 MB
    cells = ["" if k % 7 == 3 else "a value" for k in range(rows)]
    others = ["" if k % 5 == 4 else "another" for k in range(rows)]
    (tmp_path / "t.csv").write_bytes(csv_bytes([["a", "b"], *zip(cells, others, strict=True)]))
    either = sum(not (a and b) for a, b in zip(cells, others, strict=True))
    for missing in ("drop", "letter"):
        lacking = MissingRows()
        with open_table(tmp_path / "t.csv") as table:
            found = count_tuples(table, ["a", "b"], missing, lacking)
        assert (lacking.rows, lacking.missing) == (rows, either)
        assert sum(found.values()) == (rows - either if missing == "drop" else rows)
    with pytest.raises(
        InputError, match=f"row 5: the cell of 'a' is missing; {either:,} of 300,000 rows"
    ):
        cross_counts(tmp_path / "t.csv", "a", "b")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("departement", "Département"), ("SEX", "sex"), ("visitid", "Visit ID"), (" sex", "sex")],
)
def test_a_column_that_is_not_there_is_suggested_whatever_its_case_and_accents(
    asked: str, meant: str
) -> None:
    table = {"Visit ID": [1], "Département": ["a"], "sex": ["f"]}
    with pytest.raises(InputError, match=rf"no column '{asked}': did you mean '{meant}'\? It has"):
        column_counts(table, asked)


def test_a_suggested_column_with_missing_cells_says_so_at_once() -> None:
    table = {"Département": ["a", None, "b", None], "sex": ["f", "m", "f", "m"]}
    with pytest.raises(InputError) as caught:
        column_counts(table, "departement")
    assert "2 of 4 rows (50 %) have no value of 'Département'. Give --missing drop" in str(
        caught.value
    )
    for missing in ("drop", "letter"):  # the choice is made
        with pytest.raises(InputError, match="did you mean 'Département'") as caught:
            column_counts(table, "departement", missing)
        assert "no value of" not in str(caught.value)
    with pytest.raises(InputError, match="did you mean 'sex'") as caught:
        column_counts(table, "Sex")
    assert "no value of" not in str(caught.value)


def test_a_joint_law_of_two_columns() -> None:
    table: dict[str, list[Any]] = {"ill": ["no", "yes", "no", "no"], "age": [30, 70, 30, 70]}
    secret = Secret.from_counts(cross_counts(table, "ill", "age"), name="ill")
    assert (secret.values, secret.labels, secret.prior.counts) == (("no", "yes"), (30, 70), (2, 2))
    assert secret == Secret.from_samples(table["ill"], table["age"], "ill")


MOMENT = dt.datetime(2020, 2, 29, 13, 14, 15)
DATES = (
    [dt.date(2020, 2, 29), dt.date(1999, 12, 31)],
    [MOMENT, MOMENT - dt.timedelta(microseconds=1)],
    [dt.time(1, 2, 3), dt.time(0)],
)


@pytest.mark.parametrize("values", DATES)
def test_dates_and_times_are_counted_as_their_texts(tmp_path: Path, values: list[Any]) -> None:
    write_table(tmp_path / "t.parquet", {"c": values * 3})
    for source in (tmp_path / "t.parquet", {"c": values * 3}):
        assert list(column_counts(source, "c").items()) == [
            (str(value), 3) for value in sorted(values)
        ]


@pytest.mark.parametrize("value", [b"a", Decimal("1.5"), dt.timedelta(1)])
def test_a_column_without_letters_is_named(value: Any) -> None:
    with pytest.raises(InputError, match=r"the column 'c' .* is no column of letters"):
        column_counts({"c": [value] * 3}, "c")


def test_columns_of_different_lengths_are_no_table() -> None:
    tables: list[Any] = [
        {"a": [1, 2], "b": [1]},
        {"a": [1], "b": [1, 2]},
        {"a": [1, 2], "b": np.array([])},
    ]
    for table in tables:
        with pytest.raises(InputError, match="different numbers of rows"):
            cross_counts(table, "a", "b")
    for no_column in (5, None, iter([1, 2])):
        with pytest.raises(InputError, match="the column 'b'"):
            open_table({"a": [1, 2], "b": no_column})


def test_ways_with_missing_cells_are_known() -> None:
    typo = cast("Missing", "typo")
    for cell in (None, 2.0):  # told though nothing is missing
        with pytest.raises(PriorError, match="missing='typo' is not known"):
            Prior.from_samples([1.0, cell], missing=typo)
        with pytest.raises(InputError, match="missing='typo' is not known"):
            column_counts({"a": [1.0, cell]}, "a", typo)
    for missing in (None, float("nan"), pandas.NA, pandas.NaT):
        values = ["a", missing, "b"]
        with pytest.raises(PriorError, match="position 1 is missing"):
            Prior.from_samples(values)
        assert Prior.from_samples(values, "drop").labels == ("a", "b")
        assert Prior.from_samples(values, "letter").labels == ("a", "b", "")


def test_mappings_and_series_of_pandas_keep_their_letters() -> None:
    prior = Prior({"a": 0.25, "b": 0.75})
    assert (prior.labels, prior.probabilities.tolist()) == (("a", "b"), [0.25, 0.75])
    with pytest.raises(PriorError, match="labels already"):
        Prior({"a": 1.0}, ["b"])
    assert Prior(pandas.Series([0.25, 0.75], index=["x", "y"])).labels == ("x", "y")
    assert Prior.from_counts(pandas.Series(["b", "a", "b"]).value_counts()).labels == ("b", "a")
    assert type(Prior(pandas.Series([0.25, 0.75])).labels).__name__ == "DefaultLabels"
    two = pandas.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    assert Prior.from_counts(pandas.Series([3, 1], index=two)).labels == (("a", 1), ("b", 2))
    frame = pandas.DataFrame({"letter": ["a", "b"], "n": [3, 1]})
    assert Prior.from_counts(frame).counts == (3, 1)
    for bad in (frame.set_index(pandas.Index(["u", "v"])), frame.assign(more=1)):
        with pytest.raises(PriorError, match="table of two"):
            Prior.from_counts(bad)
    with pytest.raises(PriorError, match=r"position 1 is (nan|None), a missing cell"):
        Prior.from_counts(pandas.Series(["b", None]).value_counts(dropna=False))


@pytest.mark.parametrize(
    "cells",
    [
        ["2,5", "10,0", "9"],
        ["1.234,5", "2,5"],
        ["1 000", "900"],
        ["1,000", "2,500"],
        ["1'000", "5"],
    ],
)
def test_numbers_with_commas_or_separators_are_refused(tmp_path: Path, cells: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["id;income", *(f"1;{cell}" for cell in cells), ""]))
    with pytest.raises(
        InputError, match="decimal commas, or with separators between thousands, such as"
    ):
        column_counts(path, "income")


@pytest.mark.parametrize(
    ("cells", "ascending"),
    [
        (["10.00", "9.50", "9.50"], ["9.50", "10.00"]),  # by their numbers, as they are written
        ([" 10", " 9"], [" 9", " 10"]),
        (["1,2", "1,2,3"], ["1,2", "1,2,3"]),  # lists of codes
        (["030 123 456", "040 123 456"], ["030 123 456", "040 123 456"]),
        (["2,5", "much"], ["2,5", "much"]),
    ],
)
def test_other_texts_with_digits_are_letters(
    tmp_path: Path, cells: list[str], ascending: list[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["id;c", *(f"1;{cell}" for cell in cells), ""]))
    assert list(column_counts(path, "c")) == ascending


@pytest.mark.parametrize("codes", [[3, 0, 3, 7, 7, 1], [5], [], [2, 10**12, 2]])
def test_codes_are_numbered_as_by_sorting(codes: list[int]) -> None:
    given = np.array(codes, dtype=np.int64)
    found, own = _number_codes(given)
    expected, places = np.unique(given, return_inverse=True)
    assert (found.tolist(), own.tolist()) == (expected.tolist(), places.tolist())
