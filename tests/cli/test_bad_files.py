"""Files that no command takes: priors, and mechanisms and problems as far as the command line adds to it.

All other mechanisms that are refused are in tests/core/files/test_files.py, problems in
tests/library/test_broken_problems.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.hostile import mechanism, problem, refused, write
from commands import run

PRIORS: dict[str, str | bytes] = {
    "empty": "",
    "header alone": "letter,count\n",
    "no header": "a,40\nb,60\n",
    "one column": "letter\na\nb\n",
    "a row too short": "letter,count\na,1\nb\n",
    "a row too long": "letter,count\na,1\nb,2,3\n",
    "zero count": "letter,count\na,0\nb,2\n",
    "negative count": "letter,count\na,-1\nb,2\n",
    "shares above one": "letter,share\na,0.6\nb,0.6\n",
    "nan": "letter,share\na,nan\nb,0.5\n",
    "text for a number": "letter,count\na,many\nb,2\n",
    "a share that vanishes": "letter,share\na,1e-320\nb,1\n",
    "a count of 5,000 digits": f"letter,count\na,1{'0' * 5000}\nb,1\n",
    "letters twice": "letter,count\na,1\na,2\n",
    "nan twice": "letter,count\nnan,1\nnan,2\n",
    "a quote left open": 'letter,count\n"a,1\nb,2\n',
    "a quote inside": 'letter,count\n"a"x,1\nb,2\n',
    "latin-1": "letter,count\né,1\nb,2\n".encode("latin-1"),
    "zeros": b"\x00" * 100,
    "a lone surrogate": "letter,count\n\ud800,1\nb,2\n",
    "a field past every limit": f"letter,count\n{'a' * 200_000},1\nb,2\n",
}
DESIGN = "design --prior bad.csv --epsilon 1 --utility hamming -o out.json"
OTHERS = (
    "audit m.json --prior bad.csv",
    "sweep --prior bad.csv --epsilon 1,2 --utility hamming -o out.csv",
    "solve small.toml --prior bad.csv -o out.json",
)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        *((DESIGN, kind) for kind in PRIORS),
        *((other, kind) for other in OTHERS for kind in ("letters twice", "negative count")),
    ],
    ids=lambda text: text.split()[0] if "bad.csv" in text else text,
)
def test_a_bad_prior_is_refused_with_its_name(folder: Path, command: str, kind: str) -> None:
    write(folder, "bad.csv", PRIORS[kind])
    assert "bad.csv" in refused(folder, command)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--counts shares.csv", "--counts needs counts"),
        ("--prior nowhere.csv", "nowhere.csv: cannot be read"),
        ("--prior .", "cannot be read"),
        ("--prior p.csv/x", "cannot be read"),
        ("--prior " + "a" * 300 + ".csv", "cannot be read"),
        ("--prior p.csv --counts p.csv", "counts are its sample"),
        ("", "give the prior by"),
        ("--prior ''", "cannot be read"),
    ],
)
def test_a_prior_that_cannot_be_meant(folder: Path, options: str, said: str) -> None:
    assert said in refused(folder, f"audit m.json {options}")


def test_an_endless_file_is_read_no_further_than_the_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmlopt.core.files.disk.MAX_FILE_BYTES", 10_000)
    assert "raise pmlopt.core.files.disk.MAX_FILE_BYTES" in refused(
        folder, "audit m.json --prior /dev/zero"
    )


TAKING = (
    "audit {} --prior p.csv",
    "apply {} data.csv --column level -o out.csv",
    "solve record-parity-laplace-b2 --mechanism {}",
)
MECHANISMS: dict[str, str | bytes] = {
    "cut.csv": ",a,b\na,0.5,0.5\nb,0.5\n",
    "none.json": mechanism(matrix=None),
    "foreign.npz": mechanism(),
    "ending.txt": mechanism(),
}


@pytest.mark.parametrize("command", TAKING, ids=lambda text: text.split()[0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_bad_mechanism_is_refused_with_its_name(folder: Path, command: str, name: str) -> None:
    write(folder, name, MECHANISMS[name])
    assert name in refused(folder, command.format(name))


PROBLEMS: dict[str, str | bytes] = {
    "not text": b"\xff\xfe",
    "cut short": problem(value="value = "),
    "no prior": problem(prior=""),
    "outputs twice": problem(outputs='outputs = ["a", "a"]'),
}


@pytest.mark.parametrize(
    "command", ["solve small.toml -o out.json", "sweep small.toml --epsilon 1 -o out.csv"]
)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_bad_problem_is_refused(folder: Path, command: str, kind: str) -> None:
    write(folder, "small.toml", PROBLEMS[kind])
    assert "small.toml" in refused(folder, command) or kind == "outputs twice"


def test_a_file_that_is_not_there(folder: Path) -> None:
    names = ("nowhere.json", ".", "m.json/x.json", "a" * 300 + ".json", "nowhere/m.csv")
    problems = ("nowhere.toml", "nowhere", "''", ".", "../small", "a" * 300 + ".toml", "p.csv")
    for command in (
        *(f"audit {name} --prior p.csv" for name in names),
        *(f"solve {one}" for one in problems),
    ):
        refused(folder, command)


def test_rows_without_labels_are_stated_with_their_letters(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("0.9,0.1\n0.15,0.85\n0.5,0.5\n")
    (tmp_path / "p.csv").write_text("letter,p\nunsure,0.1\nno,0.3\nyes,0.6\n")
    found = run("audit", tmp_path / "m.csv", "--no-header", "--prior", tmp_path / "p.csv")
    assert "taken for 'unsure', 'no' and 'yes', in this order" in found
    (tmp_path / "q.csv").write_text("letter,p\n0,0.1\n1,0.3\n2,0.6\n")
    found = run("audit", tmp_path / "m.csv", "--no-header", "--prior", tmp_path / "q.csv")
    assert "taken for" not in found
