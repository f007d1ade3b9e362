"""Comparisons with another checkout: times of all that a process starts, and results within their bounds."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from documents import ROOT


@pytest.fixture
def against(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("against")


@pytest.fixture
def rows(against: ModuleType) -> ModuleType:
    return importlib.import_module("against_rows")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the Python of the tests where a checkout has its own."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


WORK = "import time\nwhile time.process_time() < 0.1: pass\n"
CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {WORK!r}])\n"


@pytest.mark.parametrize("code", [WORK, CHILD])
def test_the_time_is_that_of_all_processes(
    against: ModuleType, rows: ModuleType, checkout: Path, code: str
) -> None:
    row = rows.Row("work", 1.0, rows.code(code))
    assert against.measure(checkout, row, checkout) >= 0.1


def test_work_inside_a_process_prints_its_time(
    against: ModuleType, rows: ModuleType, checkout: Path
) -> None:
    row = rows.Row("work", 1.0, rows.code("print('so', 0.25)"), is_inside=True)
    assert against.measure(checkout, row, checkout) == 0.25


def test_what_fails_is_told_with_its_last_words(
    against: ModuleType, rows: ModuleType, checkout: Path
) -> None:
    row = rows.Row("work", 1.0, rows.code("raise SystemExit('no such law')"))
    with pytest.raises(rows.AgainstError, match="work: exit code 1: no such law"):
        against.measure(checkout, row, checkout)


def test_work_over_its_limit_is_stopped_and_the_table_says_so(
    against: ModuleType,
    rows: ModuleType,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = rows.Row("endless", 1.0, rows.code("while True: pass"), pairs=1, limit=0.3)
    monkeypatch.setitem(against.ROWS, "help", row)
    assert against.main([str(checkout), "--rows", "help"]) == 0
    assert f"{checkout.name} over 0.3 s" in capsys.readouterr().out


def test_the_readme_has_the_commands_that_are_compared(rows: ModuleType) -> None:
    assert list(rows.read_test_command(ROOT))[:2] == ["-m", "pytest"]
    assert "solve(design(" in rows.FIRST_DESIGN
    assert all(0 < row.asked <= 2 and row.arguments(ROOT) for row in rows.ROWS.values())


@pytest.mark.parametrize(
    ("theirs", "ours", "column"),
    [
        (("optimal", 2.0, 2.0, 1.0), ("optimal", 2.0 + 1e-9, 2.0, 1.0), "equal"),
        (("ProgramError",), ("ProgramError",), "equal"),
        (("optimal", 2.0, 2.0, 1.0), ("optimal", 2.0, 2.0, 0.5), "another level"),
        # a gain is below its bound, and a loss above it
        (("optimal", 2.0, 2.1, 1.0), ("optimal", 1.9, 2.05, 1.0), "within gaps"),
        (("optimal", 2.1, 2.0, 1.0), ("optimal", 2.2, 2.05, 1.0), "within gaps"),
        (("optimal", 2.0, 2.1, 1.0), ("optimal", 2.05, 2.1, 1.0), "better"),
        (("optimal", 2.1, 2.0, 1.0), ("optimal", 2.1, 2.05, 1.0), "better"),
        (("unproved", 2.0, 3.0, 1.0), ("optimal", 2.5, 2.5, 1.0), "better"),
        (("optimal", 2.5, 2.5, 1.0), ("unproved", 2.0, 3.0, 1.0), "outside"),
        (("unproved", 2.0, 3.0, 1.0), ("unproved", 1.9, 3.0, 1.0), "outside"),
        (("optimal", 2.0, 2.1, 1.0), ("optimal", 1.8, 1.9, 1.0), "outside"),
        (("optimal", 2.0, 2.1, 1.0), ("optimal", 2.2, 2.3, 1.0), "outside"),
        (("optimal", 2.1, 2.0, 1.0), ("optimal", 1.9, 1.8, 1.0), "outside"),
        (("optimal", 2.0, 2.1, 1.0), ("SolverError",), "outside"),
    ],
)
def test_results_are_equal_or_within_each_others_bounds(
    against: ModuleType, theirs: tuple[Any, ...], ours: tuple[Any, ...], column: str
) -> None:
    results = importlib.import_module("equal_to")
    assert results.compare(results.Found(*theirs), results.Found(*ours)) == column
