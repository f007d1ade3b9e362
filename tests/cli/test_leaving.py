"""How the process of a command ends: at once, and yet with all that the end of a program does."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pmlopt.cli import leaving

MARK = "import atexit; atexit.register(print, 'left'); "
RUN = "from pmlopt.__main__ import run_command_line; run_command_line()"


def run_code(code: str, *arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, **how)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    ("arguments", "code", "last"), [(("--version",), 0, "left"), (("nothing",), 2, "left")]
)
def test_a_command_ends_with_its_code_and_what_was_to_run_runs(
    arguments: tuple[str, ...], code: int, last: str
) -> None:
    ended = run_code(f"{MARK}{RUN}; print('not reached')", *arguments)
    assert (ended.returncode, ended.stdout.split()[-1]) == (code, last)
    assert "not reached" not in ended.stdout


def test_a_program_that_runs_a_command_as_a_part_goes_on() -> None:
    code = (
        "import runpy\ntry:\n    runpy.run_module('pmlopt', run_name='__main__')\n"
        "except SystemExit as ended:\n    print('goes on', ended.code)"
    )
    ended = run_code(code, "--version")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "goes on 0")


def test_a_profile_of_a_command_is_written(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cProfile", "-o", "stats", "-m", "pmlopt", "--version"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "stats").stat().st_size > 0


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The codes by which the process would have been left."""
    codes = list[int]()
    monkeypatch.setattr("os._exit", codes.append)
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: None)
    monkeypatch.setattr(leaving, "is_watched", lambda: False)  # as pytest-cov would have it
    return codes


@pytest.mark.parametrize(("code", "exit_code"), [(None, 0), (0, 0), (3, 3), (True, 1), (256, 0)])
def test_the_code_of_the_process_is_that_of_the_command(
    left: list[int], code: int | None, exit_code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "is_awaited", lambda: False)  # threads of other tests may be there
    leaving.leave_at_once(code)
    assert left == [exit_code]


def test_a_message_is_left_to_be_printed(left: list[int]) -> None:
    leaving.leave_at_once("a message")
    assert left == []


def test_threads_at_work_are_awaited(left: list[int]) -> None:
    done = threading.Event()
    worker = threading.Thread(target=done.wait)
    worker.start()
    leaving.leave_at_once(0)
    done.set()
    worker.join()
    assert left == []


def test_output_that_cannot_be_written_is_left_to_python(
    left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def flush(self) -> None:
            raise OSError("no space")

    monkeypatch.setattr("sys.stdout", Full())
    leaving.leave_at_once(0)
    assert left == []
