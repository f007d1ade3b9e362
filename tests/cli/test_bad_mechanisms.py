"""Mechanism files that no command takes; tests/core/test_files.py has all that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.hostile import mechanism, refused, write

COMMANDS = (
    "audit {} --prior p.csv",
    "apply {} data.csv --column level -o out.csv",
    "record-leakage {} --query modular-sum --modulus 3 --records 2 --entropy 1",
)
FILES: dict[str, str | bytes] = {
    "cut.csv": ",a,b\na,0.5,0.5\nb,0.5\n",
    "none.json": mechanism(matrix=None),
    "foreign.npz": mechanism(),
    "ending.txt": mechanism(),
}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda text: text.split()[0])
@pytest.mark.parametrize("name", FILES)
def test_a_bad_mechanism_is_refused_with_its_name(folder: Path, command: str, name: str) -> None:
    write(folder, name, FILES[name])
    assert name in refused(folder, command.format(name))


@pytest.mark.parametrize("name", ["nowhere.json", ".", "m.json/x.json", "a" * 300 + ".json", "nowhere/m.csv"])
def test_a_mechanism_that_is_not_there(folder: Path, name: str) -> None:
    refused(folder, f"audit {name} --prior p.csv")
