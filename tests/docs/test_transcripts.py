"""The transcripts of the documentation, run from an empty folder and compared line by line."""

from __future__ import annotations

import doctest
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from documents import ROOT, blocks, commands, join_lines, printed_file

from pmlopt.cli import main

PAGES = {"getting_started.md": 4}
"""The pages with transcripts, and how many commands each has."""

SAME = doctest.OutputChecker()


@pytest.mark.parametrize("page", PAGES)
def test_the_transcripts_are_what_the_commands_print(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    steps = [
        step
        for block in blocks((ROOT / "docs" / page).read_text("utf-8"))
        for step in ("\n" + join_lines(block.code)).split("\n$ ")[1:]
    ]
    assert len(steps) == PAGES[page]
    for step in steps:
        command, _, wanted = step.partition("\n")
        if command.startswith("printf "):
            path, text = printed_file(command)
            path.write_text(text)
            continue
        printed = CliRunner().invoke(main, shlex.split(command)[1:]).output
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert SAME.check_output(wanted + "\n", printed, flags), f"{command}\n{printed}"


def test_the_audit_about_a_secret_ends_as_its_tutorial_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "tutorials" / "secret.md").read_text("utf-8")
    typed, ending = [block for block in blocks(page) if block.language == "text"][-2:]
    printed = ""
    for line in commands(typed):
        if line.startswith("printf "):
            path, text = printed_file(line)
            path.write_text(text)
            continue
        done = CliRunner().invoke(main, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
        printed = done.stdout if " audit " in line else printed
    assert printed.endswith(ending.code)
