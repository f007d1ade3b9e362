"""A problem file names a solver with its options, and the command line takes their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run
from library.problem_files import DESIGN

from pmlopt.errors import InputError
from pmlopt.library import load


def write(folder: Path, lines: str, table: str = "") -> Path:
    """Write the small design with lines before its tables, and a table at its end."""
    path = folder / "small.toml"
    path.write_text(DESIGN.replace('builder = "design"', f'builder = "design"\n{lines}') + table)
    return path


def test_the_options_of_a_file_reach_its_solver(tmp_path: Path) -> None:
    path = write(tmp_path, 'solver = "clarabel"', "\n[solver_options]\nmax_iter = 150\n")
    found = json.loads(run("solve", path, "--json"))
    assert (found["solver"], found["solver_options"]) == ("clarabel", {"max_iter": 150})
    assert found["value"] == pytest.approx(0.375, abs=1e-6)
    assert load(path).solver_options == {"max_iter": 150}


def test_the_command_line_takes_their_place(tmp_path: Path) -> None:
    path = write(tmp_path, 'solver = "clarabel"', "\n[solver_options]\nmax_iter = 150\n")
    found = json.loads(run("solve", path, "--json", "--solver", "highs"))
    assert (found["solver"], found["solver_options"]) == ("highs", {})
    found = json.loads(run("solve", path, "--json", "--solver-option", "max_iter=90"))
    assert (found["solver"], found["solver_options"]) == ("clarabel", {"max_iter": 90})


def test_options_of_no_solver_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"max_iter.* name it"):
        load(write(tmp_path, "", "\n[solver_options]\nmax_iter = 150\n"))
    path = write(tmp_path, 'solver = "clarabel"', "\n[solver_options]\nno_such_option = 1\n")
    assert "no_such_option" in run("solve", path, code=2)
    with pytest.raises(InputError, match="solver_options"):
        load(write(tmp_path, 'solver = "clarabel"\nsolver_options = 3'))
