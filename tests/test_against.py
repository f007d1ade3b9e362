"""The comparison with another checkout times what a process starts, too, and says what failed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

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
