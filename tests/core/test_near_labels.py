"""Labels that are written otherwise only are named in a warning, and stay letters of their own."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from commands import COUNTING, run

from pmlopt import Prior
from pmlopt.core.near_labels import describe_difference, describe_near_labels
from pmlopt.errors import LabelWarning
from pmlopt.tables import column_counts, cross_counts

NEAR = [
    (["basic", " basic"], "'basic' and ' basic' differ by spaces only"),
    (["New  York", "New York"], "differ by spaces only"),
    (["a\u00a0b", "a b"], "differ by spaces only"),
    (["True", "true"], "'True' and 'true' differ by case only"),
    (["STRASSE", "straße"], "differ by case only"),
    (["K\u00f6ln", "Ko\u0308ln"], r"'K\xf6ln' and 'Ko\u0308ln' differ by Unicode form only"),
    (["1.0", "1", "NA"], "'1.0' and '1' differ by number format only"),
    (["01234", "1234", "x"], "'01234' and '1234' differ by number format only"),
    (["a", "NA"], "'NA' may stand for a missing cell"),
    (["a", "#N/A", "NaN"], "'#N/A', 'NaN' may stand for a missing cell"),
]
FAR = [
    ["a", "b"],
    ["", "a"],
    ["none", "some"],
    ["12345678901234567890", "12345678901234567891"],  # one number of 64 bits, and two ids
    ["1_000", "1000"],
    ["1e999999999", "2e999999999"],
    ["NAM", "NAB"],
]


@pytest.mark.parametrize(("labels", "expected"), NEAR)
def test_labels_that_are_written_otherwise_only_are_named_once(
    tmp_path: Path, labels: list[str], expected: str
) -> None:
    assert expected in "; ".join(describe_near_labels(labels))
    path = tmp_path / "people.csv"
    path.write_text(
        "\n".join(["id,c", *(f"{k},{label}" for k, label in enumerate(labels)), ""]), "utf-8"
    )
    with pytest.warns(LabelWarning) as caught:
        assert len(column_counts(path, "c")) == len(labels)  # each is a letter of its own
    assert [expected in str(one.message) for one in caught] == [True]
    with pytest.warns(LabelWarning, match="the column 'c'"):
        cross_counts({"c": labels, "d": [1] * len(labels)}, "c", "d")
    with pytest.warns(LabelWarning, match="the samples"):
        Prior.from_samples(labels)
    output = run(*COUNTING, path, "--column", "c")
    assert output.count("warning: ") == 1
    assert expected in output


@pytest.mark.parametrize("labels", FAR)
def test_other_labels_are_no_reason_to_warn(labels: list[str]) -> None:
    assert describe_near_labels(labels) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        column_counts({"c": labels}, "c")


def test_many_pairs_are_counted() -> None:
    labels = [text for letter in "abcdef" for text in (letter, letter.upper())]
    *pairs, rest = describe_near_labels(labels)
    assert len(pairs) == 3
    assert rest == "3 more pairs of labels differ so"


def test_a_difference_is_described_where_labels_do_not_match() -> None:
    assert (
        describe_difference(["mid", " low"], ("low", "mid"))
        == "; ' low' and 'low' differ by spaces only"
    )
    assert (
        describe_difference(["other", "low"], ("low", "mid"))
        == describe_difference([1], (1,))
        == ""
    )


def test_a_prior_and_a_mechanism_in_files_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("level,count\nlow,4\n low,6\n")
    (tmp_path / "m.csv").write_text(",a,A\nlow,0.5,0.5\n low,0.5,0.5\n")
    output = run("audit", tmp_path / "m.csv", "--prior", tmp_path / "p.csv", "--epsilon", "1")
    assert output.count("'low' and ' low' differ by spaces only") == 2
    assert output.count("'a' and 'A' differ by case only") == 1
