"""Mechanism files that no command takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli.hostile import ABOUT, lying_npz, mechanism, npz, refused, write

NAN = float("nan")
MATRICES: dict[str, tuple[str, str | bytes]] = {
    "empty csv": ("bad.csv", ""),
    "csv header alone": ("bad.csv", ",a,b\n"),
    "csv without outputs": ("bad.csv", "input\na\nb\n"),
    "csv cut in a row": ("bad.csv", ",a,b\na,0.5,0.5\nb,0.5\n"),
    "csv rows that do not sum": ("bad.csv", ",a,b\na,0.5,0.4\nb,0.5,0.5\n"),
    "csv of text": ("bad.csv", ",a,b\na,x,y\nb,0.5,0.5\n"),
    "csv negative": ("bad.csv", ",a,b\na,1.5,-0.5\nb,0.5,0.5\n"),
    "csv nan": ("bad.csv", ",a,b\na,nan,0.5\nb,0.5,0.5\n"),
    "csv infinite": ("bad.csv", ",a,b\na,inf,0.5\nb,0.5,0.5\n"),
    "csv inputs twice": ("bad.csv", ",a,b\na,0.5,0.5\na,0.5,0.5\n"),
    "csv outputs twice": ("bad.csv", ",a,a\na,0.5,0.5\nb,0.5,0.5\n"),
    "csv not text": ("bad.csv", b"\xff\xfe\x00"),
    "no ending": ("bad", mechanism()),
    "ending of text": ("bad.txt", mechanism()),
    "ending of a pickle": ("bad.pkl", b"\x80\x04."),
    "empty json": ("bad.json", ""),
    "json cut short": ("bad.json", mechanism()[:60]),
    "json list": ("bad.json", "[1, 2]"),
    "json number": ("bad.json", "1"),
    "json nested too deep": ("bad.json", "[" * 100_000),
    "json objects nested too deep": ("bad.json", '{"a":' * 100_000),
    "json deep matrix": ("bad.json", mechanism().replace("[[0.5", "[" * 400 + "0.5")),
    "json not text": ("bad.json", b"\xff\xfe{"),
    "json of a number too long": ("bad.json", mechanism().replace("0.5", "5" * 5000, 1)),
    "another format": ("bad.json", mechanism(format="other")),
    "another version": ("bad.json", mechanism(version=2)),
    "a version of text": ("bad.json", mechanism(version="1")),
    "no matrix": ("bad.json", mechanism(matrix=None)),
    "no inputs": ("bad.json", mechanism(inputs=None)),
    "no outputs": ("bad.json", mechanism(outputs=None)),
    "inputs as text": ("bad.json", mechanism(inputs="abc")),
    "inputs twice": ("bad.json", mechanism(inputs=["a", "a", "b"])),
    "inputs too few": ("bad.json", mechanism(inputs=["a", "b"])),
    "inputs that are lists of tables": ("bad.json", mechanism(inputs=[[{}], [{}], [{}]])),
    "inputs that are tables": ("bad.json", mechanism(inputs=[{}, {}, {}])),
    "an input that is NaN": ("bad.json", mechanism(inputs=[NAN, 1, 2])),
    "outputs that are NaN": ("bad.json", mechanism(outputs=[NAN, NAN, NAN])),
    "names said to be none": ("bad.json", mechanism(unnamed=["inputs"])),
    "unnamed of another side": ("bad.json", mechanism(unnamed=["rows"])),
    "a matrix of text": ("bad.json", mechanism(matrix=[["a"] * 3] * 3)),
    "a matrix that is a number": ("bad.json", mechanism(matrix=1)),
    "a matrix that is text": ("bad.json", mechanism(matrix="eye")),
    "a matrix that is a table": ("bad.json", mechanism(matrix={"a": 1})),
    "a ragged matrix": ("bad.json", mechanism(matrix=[[1.0], [0.5, 0.5], [1.0]])),
    "an empty matrix": ("bad.json", mechanism(matrix=[])),
    "a matrix of truth values": ("bad.json", mechanism(matrix=[[True, False, False]] * 3)),
    "a matrix with nothing in it": ("bad.json", mechanism(matrix=[[None] * 3] * 3)),
    "a matrix with three axes": ("bad.json", mechanism(matrix=[[[1.0]]])),
    "a matrix with NaN": ("bad.json", mechanism(matrix=[[NAN, 0.5, 0.5]] * 3)),
    "a matrix with huge numbers": ("bad.json", mechanism(matrix=[[10**400, 0, 0]] * 3)),
    "rows that sum to more": ("bad.json", mechanism(matrix=[[0.5, 0.5, 0.5]] * 3)),
    "empty npz": ("bad.npz", b""),
    "npz cut short": ("bad.npz", npz(matrix=np.eye(3), about=ABOUT)[:-30]),
    "npz without a matrix": ("bad.npz", npz(about=ABOUT)),
    "npz without labels": ("bad.npz", npz(matrix=np.eye(3))),
    "npz of objects": ("bad.npz", npz(matrix=np.array([[1.0, None]], dtype=object), about=ABOUT)),
    "npz of another shape": ("bad.npz", npz(matrix=np.eye(4), about=ABOUT)),
    "npz that expands 1,000 times": ("bad.npz", npz(True, matrix=np.zeros((3000, 3000)), about=ABOUT)),
    "npz that lies of its size": ("bad.npz", lying_npz()),
    "npz that is json": ("bad.npz", mechanism()),
    "json that is npz": ("bad.json", npz(matrix=np.eye(3), about=ABOUT)),
}
AUDIT = "audit {} --prior p.csv"
OTHERS = (
    "apply {} data.csv --column level -o out.csv",
    "record-leakage {} --query modular-sum --modulus 3 --records 2 --entropy 1",
)
"""They read mechanisms as the first does: one bad file of each format shows it."""


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        *((AUDIT, kind) for kind in MATRICES),
        *((other, kind) for other in OTHERS for kind in ("csv cut in a row", "no matrix", "npz cut short")),
    ],
    ids=lambda text: text.split()[0] if "{}" in text else text,
)
def test_a_bad_mechanism_is_refused_with_its_name(folder: Path, command: str, kind: str) -> None:
    name, content = MATRICES[kind]
    write(folder, name, content)
    assert name in refused(folder, command.format(name))


@pytest.mark.parametrize("name", ["nowhere.json", ".", "m.json/x.json", "a" * 300 + ".json", "nowhere/m.csv"])
def test_a_mechanism_that_is_not_there(folder: Path, name: str) -> None:
    refused(folder, f"audit {name} --prior p.csv")


def test_an_npz_that_expands_tells_how_to_read_it(folder: Path) -> None:
    write(folder, *MATRICES["npz that expands 1,000 times"])
    assert "LARGEST_EXPANSION" in refused(folder, "audit bad.npz --prior p.csv")
