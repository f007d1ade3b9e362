"""Programs as files of MPS: each reader finds the value that linprog finds without a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import random_mps

from pmlopt.solvers.mps import NamedProgram, NamedRow

INFINITE = float("inf")


@pytest.mark.parametrize("reader", random_mps.READERS)
def test_random_programs_have_one_value_in_every_reader(reader: str, tmp_path: Path) -> None:
    if reader not in random_mps.list_installed():
        pytest.skip(f"{reader} is not installed")
    for number in range(20 if reader == "HiGHS" else 4):
        assert random_mps.compare(28, number, [reader], tmp_path) == {reader: "agrees"}


def test_short_names_are_where_the_fixed_format_has_them() -> None:
    """cbc and clp take a file with short names only to be of that format: columns 2, 5, 15 and 25."""
    rows = [NamedRow("r", {0: 2.0, 1: -1.0}, 3.0, False), NamedRow("s", {1: 1.0}, 0.5, True)]
    bounds = {0: (-INFINITE, INFINITE), 1: (-INFINITE, -4.0), 2: (0.25, 0.25), 3: (1.0, INFINITE)}
    program = NamedProgram("p", ["x", "y", "u", "v"], {0: 1.5}, rows, 7.0, bounds)
    assert "\n".join(program.iterate_lines()).split("\n") == [
        "NAME          p",
        "ROWS",
        " N  objective",
        " L  r",
        " E  s",
        "COLUMNS",
        "    x         objective  1.5",
        "    x         r         2.0",
        "    y         r         -1.0",
        "    y         s         1.0",
        "    u         objective  0",
        "    v         objective  0",
        "    objective_constant  objective  7.0",
        "RHS",
        "    RHS       r         3.0",
        "    RHS       s         0.5",
        "BOUNDS",
        " FR b         x",
        " MI b         y",
        " UP b         y         -4.0",
        " FX b         u         0.25",
        " LO b         v         1.0",
        " PL b         v",
        " FX b         objective_constant  1.0",
        "ENDATA",
    ]
