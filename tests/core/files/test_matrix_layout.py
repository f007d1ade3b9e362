"""Matrices of auditors: what they lack is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run

from pmlopt import Mechanism
from pmlopt.errors import FileFormatError, MechanismError

GOOD = "level,low,mid,high\nlow,0.7,0.2,0.1\nmid,0.15,0.7,0.15\nhigh,0.1,0.2,0.7\n"
PRIOR = "level,count\nlow,40\nmid,35\nhigh,25\n"
LACKING = {
    "header": ("low,0.7,0.2,0.1\nmid,0.15,0.7,0.15\nhigh,0.1,0.2,0.7\n", "the header is missing"),
    "inputs": (
        "low,mid,high\n0.7,0.2,0.1\n0.15,0.7,0.15\n0.1,0.2,0.7\n",
        "the column of inputs is missing",
    ),
    "transposed": (
        "level,low,mid,high\nlow,0.7,0.15,0.1\nmid,0.2,0.7,0.2\nhigh,0.1,0.15,0.7\n",
        "transposed",
    ),
    "percent": ("level,low,mid,high\nlow,70,20,10\nmid,15,70,15\nhigh,10,20,70\n", "percentages"),
    "signs": (
        "level,low,mid,high\nlow,70%,20%,10%\nmid,15%,70%,15%\nhigh,10%,20%,70%\n",
        "percentage",
    ),
    "both": ("level,low,mid,high\nlow,70,15,10\nmid,20,70,20\nhigh,10,15,70\n", "transposed"),
    "spaces": (
        GOOD.replace(",", ", ").replace("\n", "\n "),
        "' low' and 'low' differ by spaces only",
    ),
    "case": (GOOD.replace("low", "Low"), "'Low' and 'low' differ by case only"),
}


@pytest.fixture
def prior(tmp_path: Path) -> Path:
    (tmp_path / "prior.csv").write_text(PRIOR)
    return tmp_path / "prior.csv"


@pytest.mark.parametrize("name", LACKING)
@pytest.mark.parametrize("options", [(), ("--normalise",)])
def test_what_a_matrix_lacks_is_named(
    tmp_path: Path, prior: Path, name: str, options: tuple[str, ...]
) -> None:
    content, expected = LACKING[name]
    (tmp_path / "m.csv").write_text(content.rstrip(" "))
    words = ("audit", tmp_path / "m.csv", "--prior", prior, "--epsilon", "1", *options)
    assert expected in run(*words, code=2)
    if name not in ("spaces", "case"):
        with pytest.raises(FileFormatError, match=expected):
            Mechanism.load(tmp_path / "m.csv")


def test_a_letter_that_one_side_lacks_is_named(tmp_path: Path, prior: Path) -> None:
    (tmp_path / "m.csv").write_text(GOOD)
    run("audit", tmp_path / "m.csv", "--prior", prior, "--epsilon", "1")
    (tmp_path / "four.csv").write_text(f"{PRIOR}other,5\n")
    found = run(
        "audit", tmp_path / "m.csv", "--prior", tmp_path / "four.csv", "--epsilon", "1", code=2
    )
    assert "'other' not among the inputs" in found


@pytest.mark.parametrize("header", [",0,1", "x,0,1", ",0.25,0.75"])
def test_a_header_of_numbers_is_a_header(tmp_path: Path, header: str) -> None:
    (tmp_path / "m.csv").write_text(f"{header}\n0,0.5,0.5\n1,0.25,0.75\n")
    assert Mechanism.load(tmp_path / "m.csv").inputs == (0, 1)


def test_arrays_have_the_same_hints() -> None:
    with pytest.raises(MechanismError, match="transposed, for each column sums to 1"):
        Mechanism([[0.7, 0.15], [0.3, 0.85]])
    with pytest.raises(MechanismError, match="percentages"):
        Mechanism([[70, 30], [20, 80]])
    with pytest.raises(MechanismError, match="divide each row by its sum"):
        Mechanism([[0.7, 0.2], [0.2, 0.7]])


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_header_without_the_corner_is_read_as_r_writes_it(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"m.{ending}"
    text = '"y0","y1"\n"a",0.75,0.25\n"b",0.5,0.5\n'
    path.write_text(text if ending == "csv" else text.replace(",", "\t"))
    found = Mechanism.load(path)
    assert (found.inputs, found.outputs) == (("a", "b"), ("y0", "y1"))
    assert found.matrix.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    assert "2 true values, 2 outputs" in run("audit", path, "--privacy", "ldp", "--epsilon", "1")
    path.write_text(path.read_text() + '"c"\n')
    with pytest.raises(FileFormatError, match="row 4 has 1 cells"):
        Mechanism.load(path)


def test_row_names_of_r_in_a_prior_are_named(tmp_path: Path) -> None:
    path = tmp_path / "prior.csv"
    path.write_text('"letter","count"\n"1","a",3\n"2","b",4\n')
    matrix = tmp_path / "m.csv"
    matrix.write_text("x,y\na,1\nb,1\n")
    assert "row.names = FALSE" in run("audit", matrix, "--prior", path, code=2)
