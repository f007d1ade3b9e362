"""The files that an audit takes, as people have them: each is read, or the message states the remedy."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from commands import run

MATRIX = "answer,yes,no\nsmokes,0.8,0.2\nnever,0.3,0.7\n"
COUNTS = "letter,count\nsmokes,40\nnever,60\n"
LEVEL = math.log(0.8 / 0.5)
"""Of the output yes, whose probability is 0.4 x 0.8 + 0.6 x 0.3 = 0.5."""

PRIORS = {
    "counts.csv": COUNTS,
    "shares.csv": "letter,share\nsmokes,0.4\nnever,0.6\n",
    "another-order.csv": "letter,count\nnever,60\nsmokes,40\n",
    "quoted.csv": '"letter","count"\n"smokes","40"\n"never","60"\n',
    "semicolons.csv": "letter;count\nsmokes;40\nnever;60\n",
    "decimal-commas.csv": "letter;share\nsmokes;0,4\nnever;0,6\n",
    "quoted-semicolons.csv": '"what, exactly";count\nsmokes;40\nnever;60\n',
    "tabs.tsv": "letter\tcount\nsmokes\t40\nnever\t60\n",
    "windows.csv": "\ufeffletter;count\r\nsmokes;40\r\nnever;60\r\n",
    "header-with-a-semicolon.csv": "smokes; or not,count\nsmokes,40\nnever,60\n",
}
MATRICES = {
    "labels.csv": MATRIX,
    "quoted.csv": '"","yes","no"\n"smokes","0.8","0.2"\n"never","0.3","0.7"\n',
    "semicolons.csv": "answer;yes;no\nsmokes;0,8;0,2\nnever;0,3;0,7\n",
    "tabs.tsv": MATRIX.replace(",", "\t"),
}


def audit(folder: Path, matrix: str, prior: str, *options: str) -> float:
    (folder / "given").mkdir()
    (folder / "given" / "m.csv").write_text(matrix)
    (folder / "given" / "p.csv").write_text(prior)
    return level(folder / "given" / "m.csv", folder / "given" / "p.csv", *options)


def level(matrix: Path, prior: Path, *options: str) -> float:
    found = run("audit", matrix, "--prior", prior, "--epsilon", "0.5", "--json", *options)
    # a note on rows without labels comes before it, on standard error
    return float(json.loads(found[found.index("{") :])["level"])


@pytest.mark.parametrize("name", PRIORS)
def test_a_prior_is_read_in_each_form(tmp_path: Path, name: str) -> None:
    (tmp_path / "m.csv").write_text(MATRIX)
    (tmp_path / name).write_text(PRIORS[name], newline="")
    assert level(tmp_path / "m.csv", tmp_path / name) == pytest.approx(LEVEL, abs=1e-12)


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_is_read_in_each_form(tmp_path: Path, name: str) -> None:
    (tmp_path / "p.csv").write_text(COUNTS)
    (tmp_path / name).write_text(MATRICES[name])
    assert level(tmp_path / name, tmp_path / "p.csv") == pytest.approx(LEVEL, abs=1e-12)


def test_a_matrix_without_labels_takes_those_of_the_prior(tmp_path: Path) -> None:
    found = audit(tmp_path, "0.8,0.2\n0.3,0.7\n", COUNTS, "--no-header")
    assert found == pytest.approx(LEVEL, abs=1e-12)


def test_years_are_labels(tmp_path: Path) -> None:
    found = audit(
        tmp_path,
        "year,2019,2020\n2019,0.8,0.2\n2020,0.3,0.7\n",
        "year,count\n2020,60\n2019,40\n",
    )
    assert found == pytest.approx(LEVEL, abs=1e-12)


def test_a_column_of_data_is_a_prior(tmp_path: Path) -> None:
    rows = ["smokes"] * 4 + ["never"] * 6
    data = "id,smoking\n" + "".join(f"{k},{value}\n" for k, value in enumerate(rows))
    found = audit(tmp_path, MATRIX, data, "--column", "smoking")
    assert found == pytest.approx(LEVEL, abs=1e-12)


TWO_COLUMNS = (
    "two columns, letter and count (or probability), such as the lines 'letter,count', 'never,40'"
)
REFUSED: dict[str, tuple[str, list[str]]] = {
    "a row of shares": ("0.4,0.6\n", ["has no header, and one row", TWO_COLUMNS]),
    "a row of counts": ("40,60\n", ["has no header, and one row", TWO_COLUMNS]),
    "a row below letters": ("smokes,never\n40,60\n", ["all letters in one row", TWO_COLUMNS]),
    "a column of shares": ("0.4\n0.6\n", ["has numbers only", TWO_COLUMNS]),
    "a named column of shares": ("share\n0.4\n0.6\n", ["has 1 column, 'share'", TWO_COLUMNS]),
    "a header only": ("letter,count\n", ["a header, and no row below it", TWO_COLUMNS]),
    "no header": ("smokes,40\nnever,60\n", ["put a header above it, such as letter,count"]),
    "numbers first": ("count,letter\n40,smokes\n60,never\n", ["put the letters before them"]),
    "percentages": ("letter,share\nsmokes,40%\nnever,60%\n", ["divide all numbers by 100"]),
    "thousands": (
        'letter,count\nsmokes,"1,240"\nnever,"2,060"\n',
        ["'1,240' is in the place of a number: leave out the commas between thousands"],
    ),
    "JSON": ('{"smokes": 40, "never": 60}', ["is JSON: save it as CSV"]),
    "another name": (
        "letter,count\nsmoker,40\nnever,60\n",
        ["('smokes', 'never') and the prior's labels ('smoker', 'never')", "give both the same names"],
    ),
    "a letter more": (
        f"{COUNTS}once,3\n",
        ["'once' not among the inputs; give the mechanism a row for each letter of the prior"],
    ),
    "a letter less": (
        "letter,count\nsmokes,40\n",
        ["'never' not among the letters of the prior; give its number, or leave out the row"],
    ),
}  # fmt: skip
DATA = {
    "id,smoking,age\n1,smokes,20\n2,never,30\n": "add --column with one of 'id', 'smoking' or 'age'",
    "id,smoking\n1,smokes\n2,never\n": "add --column with one of 'id' or 'smoking'",
    "smoking\nsmokes\nnever\n": "add --column with 'smoking'",
}


def read_message(folder: Path, matrix: str, prior: str, *options: str) -> str:
    (folder / "m.csv").write_text(matrix)
    (folder / "p.csv").write_text(prior)
    words = ("audit", folder / "m.csv", "--prior", folder / "p.csv", "--epsilon", "0.5", *options)
    return run(*words, code=2)


@pytest.mark.parametrize("kind", REFUSED)
def test_another_layout_of_the_prior_is_refused_with_the_remedy(tmp_path: Path, kind: str) -> None:
    prior, sentences = REFUSED[kind]
    message = read_message(tmp_path, MATRIX, prior)
    assert [one for one in sentences if one not in message] == []
    assert ("--column" in message) == (kind == "a named column of shares")


@pytest.mark.parametrize("data", DATA, ids=lambda text: text.partition("\n")[0])
def test_data_in_place_of_a_prior_are_refused_with_the_option_and_their_columns(
    tmp_path: Path, data: str
) -> None:
    message = read_message(tmp_path, MATRIX, data)
    assert DATA[data] in message
    assert TWO_COLUMNS in message
    counts = run("audit", tmp_path / "m.csv", "--counts", tmp_path / "p.csv", code=2)
    assert DATA[data] in counts
    words = ("--prior", tmp_path / "p.csv", "--epsilon", "1", "--utility", "hamming")
    assert DATA[data] in run("design", *words, code=2)


def test_no_prior_is_answered_with_its_layout(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(MATRIX)
    message = run("audit", tmp_path / "m.csv", "--epsilon", "0.5", code=2)
    for sentence in (
        "--prior FILE",
        "a header, and in each row a letter and its count",
        "--column NAME",
    ):
        assert sentence in message


@pytest.mark.parametrize(
    ("matrix", "options", "sentence"),
    [
        ("0.8,0.2\n0.3,0.7\n", [], "looks like probabilities: if so, give --no-header"),
        ("yes,no\n0.8,0.2\n0.3,0.7\n", [], "put the input of each row before it"),
        ("yes,no\n0.8,0.2\n0.3,0.7\n", ["--no-header"], "row 1 has the label 'yes', and --no-header is for"),
        ("smokes,0.8,0.2\nnever,0.3,0.7\n", [], "the header is missing"),
        ("smokes,0.8,0.2\nnever,0.3,0.7\n", ["--no-header"], "row 1 has the label 'smokes'"),
        ("80%,20%\n30%,70%\n", ["--no-header"], "divide all numbers by 100"),
        ("a,yes,no\nsmokes,80,20\nnever,30,70\n", [], "divide all of them by 100"),
        ("a,smokes,never\nyes,0.8,0.3\nno,0.2,0.7\n", [], "the matrix is transposed"),
    ],
)  # fmt: skip
def test_another_layout_of_the_matrix_is_refused_with_the_remedy(
    tmp_path: Path, matrix: str, options: list[str], sentence: str
) -> None:
    assert sentence in read_message(tmp_path, matrix, COUNTS, *options)


def test_numbers_with_exponents_are_no_labels(tmp_path: Path) -> None:
    found = audit(tmp_path, "8e-1,2e-1\n3e-1,7e-1\n", COUNTS, "--no-header")
    assert found == pytest.approx(LEVEL, abs=1e-12)
