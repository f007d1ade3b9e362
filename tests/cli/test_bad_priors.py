"""Prior files that no command takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.hostile import refused, write

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
    "least-leakage --prior bad.csv --utility hamming --expected 0.4 -o out.json",
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
    monkeypatch.setattr("pmlopt.core.files.LARGEST_FILE", 10_000)
    assert "raise pmlopt.core.files.LARGEST_FILE" in refused(folder, "audit m.json --prior /dev/zero")


def test_letters_that_look_alike_are_not_paired(folder: Path) -> None:
    """Numbers in one file, text in the other: the letter 1 is not the text 1."""
    write(folder, "text.csv", "letter,count\n1,40\n2,30\n3,20\nnone,5\n")
    write(folder, "rule.json", (folder / "m.json").read_text().replace('["a", "b", "c"]', "[1, 2, 3]"))
    assert "text.csv" not in refused(folder, "audit rule.json --prior text.csv")
    write(folder, "rule.json", (folder / "m.json").read_text().replace('["a", "b", "c"]', '["1", "2", "3"]'))
    assert "look alike" in refused(folder, "audit rule.json --prior numbers.csv")
    assert "differ" in refused(folder, "audit rule.json --prior p.csv --epsilon 5")
