"""What is printed fits a terminal, in whole sentences, and zero is 0."""

from __future__ import annotations

import json

import pytest
from commands import run

from pmlopt.cli.printing import number


def test_the_help_of_each_command_begins_with_a_sentence_that_fits() -> None:
    listed = run("--help").partition("Commands:\n")[2].splitlines()
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)
    assert all(len(line) <= 80 for line in listed)


@pytest.mark.parametrize("words", [(), ("ADULT", "absolute")])
def test_problems_are_listed_within_80_columns(words: tuple[str, ...]) -> None:
    lines = run("problems", *words).splitlines()
    assert max(map(len, lines)) <= 80
    named = {line for line in lines[:-1] if not line.startswith(" ")}
    found = json.loads(run("problems", *words, "--json"))
    assert named == {problem["id"] for problem in found}
    assert "adult-education-absolute" in named
    assert lines[-1].startswith(f"{len(found)} problems")


def test_zero_is_zero() -> None:
    assert number(-0.0) == "0"
    assert number(None) == ""
    assert number(-1e-9) == "-1e-09"  # a level may be as small as it likes
