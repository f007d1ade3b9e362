"""Problem files that no command takes; tests/library/test_broken_problems.py has all that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.hostile import problem, refused, write

FILES: dict[str, str | bytes] = {
    "not text": b"\xff\xfe",
    "cut short": problem(value="value = "),
    "no prior": problem(prior=""),
    "outputs twice": problem(outputs='outputs = ["a", "a"]'),
}


@pytest.mark.parametrize(
    "command", ["solve small.toml -o out.json", "sweep small.toml --epsilon 1 -o out.csv"]
)
@pytest.mark.parametrize("kind", FILES)
def test_a_bad_problem_is_refused(folder: Path, command: str, kind: str) -> None:
    write(folder, "small.toml", FILES[kind])
    assert "small.toml" in refused(folder, command) or kind == "outputs twice"


@pytest.mark.parametrize(
    "name", ["nowhere.toml", "nowhere", "''", ".", "../small", "a" * 300 + ".toml", "p.csv"]
)
def test_a_problem_that_is_not_there(folder: Path, name: str) -> None:
    refused(folder, f"solve {name}")
