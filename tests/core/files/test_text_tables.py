"""Delimiters and decimal commas of text files: every reader of a table of numbers finds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run

from pmlopt import Mechanism, Prior, Secret
from pmlopt.cli.program_audit import iterate_samples, load_traces
from pmlopt.cli.reading import read_constraint, read_distance, read_gains, read_mechanism
from pmlopt.core.files.csv_rows import find_delimiter, read_text_table
from pmlopt.core.files.letter_files import read_letters
from pmlopt.errors import FileFormatError
from pmlopt.tables import column_counts

MATRIX = [[0.75, 0.25], [0.2, 0.8]]
WRITTEN = {
    "write.csv2 of R": '"";"a";"b"\n"no";0,75;0,25\n"yes";0,2;0,8\n',
    "write.table of R": '"a";"b"\n"no";0,75;0,25\n"yes";0,2;0,8\n',
    "Excel": "\ufefftruth;a;b\r\nno;0,75;0,25\r\nyes;0,2;0,8\r\n",
    "points": "truth;a;b\nno;0.75;0.25\nyes;0.2;0.8\n",
    "tabs": "truth\ta\tb\nno\t0,75\t0,25\nyes\t0,2\t0,8\n",
    "bars": "truth|a|b\nno|0.75|0.25\nyes|0.2|0.8\n",
    "commas": "truth,a,b\nno,0.75,0.25\nyes,0.2,0.8\n",
    "blanks of R": '"a" "b"\n"no" 0.75 0.25\n"yes" 0.2 0.8\n',
    "blanks and decimal commas of R": '"a" "b"\n"no" 0,75 0,25\n"yes" 0,2 0,8\n',
    "blanks without quotes": "a b\nno 0.75 0.25\nyes 0.2 0.8\n",
    "no corner": "a,b\nno,0.75,0.25\nyes,0.2,0.8\n",
}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt"])
@pytest.mark.parametrize("program", WRITTEN)
def test_a_matrix_is_read_with_any_delimiter(tmp_path: Path, program: str, ending: str) -> None:
    path = tmp_path / f"m{ending}"
    path.write_bytes(WRITTEN[program].encode())
    assert Mechanism.load(path) == Mechanism(MATRIX, ["no", "yes"], ["a", "b"])


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("truth;a, x;b, y\nno;0,75;0,25\nyes;0,2;0,8\n", ("a, x", "b, y")),
        ("truth;0,5;1,5\nno;0,75;0,25\nyes;0,2;0,8\n", ("0,5", "1,5")),
        ("truth,a|c,b|c\nno,0.75,0.25\nyes,0.2,0.8\n", ("a|c", "b|c")),
        ("truth,a;c,b;c\nno,0.75,0.25\nyes,0.2,0.8\n", ("a;c", "b;c")),
        ('"le;vel","a;1","b;1"\n"no;1",0.75,0.25\n"yes;1",0.2,0.8\n', ("a;1", "b;1")),
    ],
)
def test_labels_may_hold_other_delimiters(
    tmp_path: Path, text: str, labels: tuple[str, ...]
) -> None:
    (tmp_path / "m.csv").write_text(text)
    found = Mechanism.load(tmp_path / "m.csv")
    assert (found.matrix.tolist(), found.outputs) == (MATRIX, labels)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('"all"\n"age 30" 1\n', "age 30"),
        ('"all"\n"a \\"b\\"; c" 1\n', 'a "b"; c'),
        ('"","all"\n"a \\"b\\", c",1\n', 'a "b", c'),
        ("truth,all\nage 30,1\n", "age 30"),
        ("all\nage 30,1\n", "age 30"),
        ('"truth","all"\n"C:\\",1\n', "C:\\"),
    ],
)
def test_blanks_and_backslashes_in_labels(tmp_path: Path, text: str, label: str) -> None:
    (tmp_path / "m.csv").write_text(text)
    found = Mechanism.load(tmp_path / "m.csv")
    assert (found.inputs, found.outputs) == ((label,), ("all",))


def test_letters_with_blanks_and_backslashes(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text('"letter" "count"\n"it is \\"ill\\"" 40\n"not ill" 60\n')
    assert read_letters(tmp_path / "c.txt") == (('it is "ill"', "not ill"), [40, 60])
    (tmp_path / "c.txt").write_text("letter count\nill 40\nwell 60\n")
    assert read_letters(tmp_path / "c.txt") == (("ill", "well"), [40, 60])


def test_numbers_decide_where_two_delimiters_fit() -> None:
    assert find_delimiter("a;b,c\n1;2,5\n3;4,5\n") == ";"
    assert find_delimiter("0,5;0,5\n0,2;0,8\n") == ";"
    assert find_delimiter("a|b,c\nd|e,1\n") == ","
    assert find_delimiter("one column\nx\n") == ","


def test_a_long_file_is_judged_by_its_beginning(tmp_path: Path) -> None:
    rows = "".join(f"letter {k};0,5\n" for k in range(90_000))
    (tmp_path / "long.csv").write_text(f"letter;share\n{rows}")
    table = read_text_table(tmp_path / "long.csv")
    assert (table.delimiter, len(table.rows)) == (";", 90_001)


@pytest.mark.parametrize(
    "text", ["letter;count\na;1,000\nb;2,500\n", "letter\tcount\na\t1,000\nb\t7\n"]
)
@pytest.mark.parametrize("mark", ",.")
def test_marks_that_may_be_between_thousands_are_refused(
    tmp_path: Path, text: str, mark: str
) -> None:
    (tmp_path / "c.csv").write_text(text.replace(",", mark))
    with pytest.raises(
        FileFormatError, match=f"'1{mark}000' may be between thousands or before decimals"
    ):
        read_letters(tmp_path / "c.csv")
    (tmp_path / "c.csv").write_text("letter;share\na;0,125\nb;0,875\n".replace(",", mark))
    assert read_letters(tmp_path / "c.csv") == (("a", "b"), [0.125, 0.875])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("letter,percent\na,10\nb,90\n", "'percent' sum to 100, .* divide each by 100"),
        ("letter,share\na,10.5\nb,89.5\n", "'share' sum to 100, .* divide each by 100"),
        ("letter,count\na,10\nb,5\nTotal,15\n", "the row 'Total' has the sum of all others"),
        ("letter,count\na,nan\nb,5\n", "the letter 'a' has 'nan' in the place of its number"),
        ("letter,count\na,1\nb,inf\n", "the letter 'b' has 'inf' in the place of its number"),
        ("letter,count\na,1 000\nb,5\n", "'1 000' .*: leave out what is between thousands"),
        ("letter,count\na,1'000\nb,5\n", "1'000.*: leave out what is between thousands"),
        ("letter,share\na,1/3\nb,2/3\n", "the letter 'a': '1/3' .*: write it as in 40 or 0.25"),
    ],
)
def test_numbers_that_are_no_shares_or_counts_are_named(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_letters(tmp_path / "p.csv")


@pytest.mark.parametrize(
    "text",
    ["letter,count\na,50\nb,30\nc,20\n", "letter,count\ntotal,10\nb,5\n", "letter,%\na,60\nb,60\n"],
)
def test_counts_that_sum_to_100_and_letters_that_are_called_total_are_read(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "p.csv").write_text(text)
    assert len(read_letters(tmp_path / "p.csv")[0]) == text.count("\n") - 1


FILES = {
    "m.csv": '"truth";"a";"b"\n"no";0,75;0,25\n"yes";0,2;0,8\n',
    "prior.csv": "truth,count\nno,60\nyes,40\n",
    "seen.csv": "answer;count\na;53\nb;47\n",
    "people.csv": "x\nno\nyes\n",
    "gains.csv": "letter;no;yes\nno;1,5;0\nyes;0;1,5\n",
    "distance.csv": ";no;yes\nno;0;0,5\nyes;0,5;0\n",
    "joint.csv": ";no;yes\nill;0,1;0,3\nwell;0,5;0,1\n",
    "zeros.csv": "letter;output\nno;b\n",
    "retention.csv": "letter;share\nno;0,5\n",
    "drawn.csv": "truth;a;b\nno;75;25\nyes;2;8\n",
    "parity.csv": ";0;1\n0;0,75;0,25\n1;0,2;0,8\n",
    "bare.csv": "0,75;0,25\n0,2;0,8\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def level(*arguments: str) -> float:
    found = run("audit", *arguments, "--json")
    return float(json.loads(found[found.index("{") :])["level"])


def test_commands_read_a_matrix_with_semicolons(folder: Path) -> None:
    # P(no) = 0.6: the outputs have the shares 0.53 and 0.47
    expected = max(np.log(0.75 / 0.53), np.log(0.8 / 0.47))
    assert level("m.csv", "--prior", "prior.csv") == pytest.approx(expected, abs=1e-12)
    assert level("bare.csv", "--no-header", "--prior", "prior.csv") == pytest.approx(
        expected, abs=1e-12
    )
    estimates = json.loads(run("estimate", "m.csv", "--counts", "seen.csv", "--json"))["estimates"]
    # 0.75 p + 0.2 (1 - p) = 0.53 has the solution p = 0.6
    assert [one["estimate"] for one in estimates] == pytest.approx([0.6, 0.4], abs=1e-9)
    for line in (
        "apply m.csv people.csv --column x --drop-all -o out.csv",
        "people-needed m.csv --prior prior.csv --half-width 0.1",
        "export m.csv --bits 53 -o m.js",
        "audit m.csv m.csv --prior prior.csv",
        "release people.csv --column x --mechanism m.csv --drop-all --exact-counts -o release",
        "problems new record-leakage -o record.toml",
        "solve record.toml --mechanism parity.csv",
    ):
        run(*line.split())


def test_commands_read_other_tables_with_semicolons(folder: Path) -> None:
    def value(options: str, path: str) -> float:
        run(*f"design {options} --epsilon 0.4 -o {path}".split())
        return float(json.loads(Path(path).read_text())["metadata"]["value"])

    (folder / "points.csv").write_text(FILES["gains.csv"].replace(",", ".").replace(";", ","))
    semicolons, points = (
        value(f"--prior prior.csv --utility {name}.csv", f"{name}.json")
        for name in ("gains", "points")
    )
    assert semicolons == points
    assert Secret.load(folder / "joint.csv").joint[0].tolist() == [[0.1, 0.3], [0.5, 0.1]]
    for options in (
        "--prior prior.csv --utility hamming --privacy metric --distance distance.csv",
        "--about joint.csv --utility hamming",
        "--prior prior.csv --utility hamming --outputs a,b --constraint zeros=zeros.csv",
        "--prior prior.csv --utility hamming --constraint category-retention=retention.csv",
    ):
        run(*f"design {options} --epsilon 0.4 -o d.json".split())
    run("audit", "drawn.csv", "--from-samples", "--prior", "prior.csv")


PRIOR = Prior.from_counts({"no": 6, "yes": 4})
TABLES: Mapping[str, tuple[str, Callable[[Path], Any]]] = {
    "matrix": (",a,b\nno,.75,.25\nyes,.2,.8\n", Mechanism.load),
    "mechanism": (",a,b\nno,.75,.25\nyes,.2,.8\n", read_mechanism),
    "letters": ("letter,count\nno,6\nyes,4\n", read_letters),
    "counts": ("letter,count\nno,6\nyes,4\n", Prior.from_counts),
    "joint law": (",young,old\nill,1,3\nwell,4,2\n", Secret.load),
    "pairs": ("ill,age,count\nno,30,4\nyes,40,2\n", Secret.load),
    "gains": (",no,yes\nno,1,0\nyes,0,1\n", lambda path: read_gains(path, PRIOR)),
    "distances": (",no,yes\nno,0,1\nyes,1,0\n", lambda path: read_distance(str(path), PRIOR)),
    "zeros": ("letter,output\nno,a\n", lambda path: read_constraint(f"zeros={path}", ["no", "a"])),
    "traces": ("input,trace,count\na,x,1\na,y,3\n", load_traces),
    "data": ("ill,age\nno,30\nyes,40\nyes,30\n", lambda path: column_counts(path, "ill")),
    "one column": ("ill\nno\nyes\nyes\n", lambda path: column_counts(path, "ill")),
    "samples": ("output\nx\ny\nx\n", lambda path: list(iterate_samples(path, None))),
    "pairs of samples": (
        "letter,output\nno,x\nyes,y\n",
        lambda path: list(iterate_samples(path, PRIOR)),
    ),
}
"""A table for each reader, and the reader."""


def list_fields(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else repr(vars(value))


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
@pytest.mark.parametrize("first", ["sep={}\n", "\ufeffSEP={}\r\n", '"sep={}"\n', "\nsep={}\n"])
@pytest.mark.parametrize("name", TABLES)
def test_the_line_that_states_the_delimiter_to_excel_is_no_row(
    name: str, first: str, delimiter: str, tmp_path: Path
) -> None:
    text, read = TABLES[name]
    if "samples" in name:
        first = first.lstrip("\n")  # a blank line is an output
    plain, stated = tmp_path / "plain.csv", tmp_path / "stated.csv"
    plain.write_text(text)
    stated.write_text(first.format(delimiter) + text.replace(",", delimiter))
    assert json.dumps(read(stated), default=list_fields) == json.dumps(
        read(plain), default=list_fields
    )


def test_a_stated_delimiter_decides_where_two_would_do(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes("sep=;\r\na;b,c\r\n1;x,y\r\n1;x,y\r\n".encode("utf-16"))
    assert column_counts(path, "b,c") == {"x,y": 2}
    path.write_text("sep=,\na;b,c\nx;y,z\nx;y,z\n")
    assert column_counts(path, "a;b") == {"x;y": 2}
    path.write_text("sep=;\nletter;share\na;0,25\nb;0,75\n")
    assert read_letters(path) == (("a", "b"), [0.25, 0.75])
