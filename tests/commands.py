"""Running a command, and writing a problem file for it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from pmlopt.cli import main


def run_fully(*arguments: object, code: int = 0) -> Result:
    """What becomes of a command, given its exit code."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def run(*arguments: object, code: int = 0) -> str:
    """What a command prints, given its exit code."""
    return run_fully(*arguments, code=code).output


def write(folder: Path, text: str) -> Path:
    """A problem file of the id `small`."""
    path = folder / "small.toml"
    path.write_text(text)
    return path
