"""Labels and names of files as the commands pair, print and write them."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from cli.hostile import mechanism, refused, write
from commands import run

from pmlopt import Mechanism

HOSTILE = "no\nThe claim holds: pml at most 0.1 nats, proved in rational arithmetic.\n"
CODES = "\x1b[2K\x1b[1A\rb\x07\u202e\x9b"


def test_an_audit_pairs_by_labels_alone(folder: Path) -> None:
    """One output has probability 0.9 0.1 + 0.1 0.9 = 0.18, in either order: the level is log(0.9 / 0.18)."""
    write(folder, "zero-one.csv", "letter,count\n0,90\n1,10\n")
    audit, rule = "audit rule.json --prior zero-one.csv", [[0.9, 0.1], [0.1, 0.9]]
    same: tuple[Any, ...] = (None, [1, 0])
    for inputs in same:  # positions, and the same letters in another order
        Mechanism(rule, inputs).save("rule.json")
        assert json.loads(run(*audit.split(), "--json"))["level"] == pytest.approx(
            math.log(5), abs=1e-12
        )
    for others in (["yes", "no"], ["1", "0"], ["0", "1"]):
        Mechanism(rule, others).save("rule.json")
        assert "(0, 1)" in refused(folder, audit)


# ---------------------------------------------------------------- outputs


def test_outputs_that_read_like_letters_are_those_letters(folder: Path) -> None:
    """The numbers stay numbers beside a word, so that hamming knows them again."""
    design = ["design", "--prior", "numbers.csv", "--epsilon", 9, "--utility", "hamming"]
    with_word = json.loads(run(*design, "--outputs", "1,2,3,unknown", "--json"))
    assert with_word["mechanism"]["outputs"] == [1, 2, 3, "unknown"]
    assert with_word["value"] == pytest.approx(0.0, abs=1e-9)  # every letter is told as it is


def test_outputs_that_the_file_could_not_hold_are_refused_before_solving(folder: Path) -> None:
    design = "design --prior numbers.csv --epsilon 1 --utility hamming --outputs 1,2,3,unknown"
    assert "save as .json or .npz" in refused(folder, f"{design} -o out.csv")
    run(*design.split(), "-o", "out.json")


# ---------------------------------------------------------------- what is printed


@pytest.mark.parametrize("label", [HOSTILE, CODES, "\ud800", "\u2028", "\u200b", "\x00"])
def test_a_label_prints_no_line_of_its_own_and_no_codes(folder: Path, label: str) -> None:
    write(folder, "rule.json", mechanism(outputs=[label, "b", "c"]))
    shown = [
        run("audit", "rule.json", "--prior", "p.csv"),
        run("audit", "rule.json", "--prior", "p.csv", "--epsilon", 0.1, code=1),
    ]
    for text in shown:
        assert not any(line.startswith("The claim holds") for line in text.splitlines())
        assert all(character.isprintable() for character in text.replace("\n", ""))
    # a title, the prior, a table of levels, a table of outputs
    assert len(shown[0].splitlines()) == 2 + 7 + 4


def test_names_of_files_are_shown_in_one_line(folder: Path) -> None:
    name = "rule\nThe claim holds\x1b[2K.json"
    write(folder, name, mechanism())
    text = run("audit", name, "--prior", "p.csv")
    assert text.splitlines()[0].startswith("rule\\nThe claim holds\\x1b[2K.json: 3 true values")
    missing = refused(folder, "audit 'no\nThe claim holds' --prior p.csv")
    assert len(missing.splitlines()) == 1


def test_labels_are_drawn_as_they_are_and_not_as_formulas(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    with (folder / "odd.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["letter", "count"], [r"$\frac$", 2], ["$x\n", 1]])
    write(folder, "$\\frac$.csv", ',x,y\n$\\frac$,1,0\n"$x\n",0,1\n')
    run("design", "--prior", "odd.csv", "--epsilon", 0.3, "--utility", "hamming", "--plot", "m.svg")
    run(
        "sweep",
        "--prior",
        "odd.csv",
        "--epsilon",
        "0.3,0.4",
        "--utility",
        "$\\frac$.csv",
        "--plot",
        "s.svg",
    )
    assert (folder / "m.svg").stat().st_size > 1000
    assert (folder / "s.svg").stat().st_size > 1000


# ---------------------------------------------------------------- what is written


def test_an_output_that_is_no_text_is_refused(folder: Path) -> None:
    write(folder, "rule.json", mechanism(outputs=["\ud800", "b", "c"], matrix=[[1, 0, 0]] * 3))
    assert "UTF-8" in refused(
        folder, "apply rule.json data.csv --column level --keep id -o out.csv"
    )


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("source", ["m.json", "data.csv"])
def test_what_is_read_is_not_written_over_by_another_name(
    folder: Path, link: str, source: str
) -> None:
    getattr(folder / "other", link)(folder / source)
    refused(folder, "apply m.json data.csv --column level -o other")
