"""Commands and options that pages, docstrings, problem files and scripts name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from commands import find_command
from documents import ROOT

from pmlopt.cli.group import COMMANDS

FOLDERS = ("docs", "pmlopt", "problems", "benchmarks", "findings", "packaging")
SUFFIXES = {".md", ".py", ".toml", ".sh", ".yaml", ".html", ".js"}
NAMES_OF_THEN = ("CHANGELOG.md", "cli/meant_names.py")

BLOCK = re.compile(r"^( *)```[a-z]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
IN_A_LINE = re.compile(r"`pmlopt ([^`]+)`")
OF_A_SHELL = re.compile(
    r"(?:^ *(?:\$ )?|\| |&& |; |/)pmlopt ((?:[^\n;|>#]|(?<=\\)\n)+)", re.MULTILINE
)
FORMER = re.compile(r"`(noisy-answer|noise-table|sample-size|compose|deployment)`")


def list_files() -> list[Path]:
    """List the files that name commands."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return [path for path in found if not path.as_posix().endswith(NAMES_OF_THEN)]


def find_lines(text: str) -> Iterator[str]:
    """Find what follows `pmlopt` in code style and in the lines of blocks."""
    for block in BLOCK.finditer(text):
        yield from OF_A_SHELL.findall(block[2])
    yield from IN_A_LINE.findall(BLOCK.sub("", text))


@cache
def find_options(words: tuple[str, ...]) -> frozenset[str]:
    """Find the options of a command, or of a command of a group."""
    command: click.Command = find_command(words[0])
    for word in words[1:]:
        if not isinstance(command, click.Group) or word not in command.list_commands(
            click.Context(command)
        ):
            break
        command = find_command(word, command)
    return frozenset(flag for one in command.params for flag in (*one.opts, *one.secondary_opts))


def find_faults(text: str) -> Iterator[str]:
    """Find commands and options in a text that there are not."""
    for line in find_lines(text):
        words = tuple(line.split())
        if not re.fullmatch(r"[a-z-]+", words[0]) or words[0].startswith("-"):
            continue  # `pmlopt --help`, `pmlopt NAME`
        if words[0] not in COMMANDS:
            yield f"pmlopt {words[0]}"
            continue
        known = find_options(words[:3]) | {"-h", "--help", "--help-all", "--json"}
        yield from (
            f"pmlopt {words[0]} {option}"
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)
            if option not in known
        )
    yield from FORMER.findall(text)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("Type `pmlopt compose a.csv`.", ["pmlopt compose"]),
        ("Type `pmlopt design\n--epsilon 1 --sharpness 2`.", ["pmlopt design --sharpness"]),
        ("```text\n$ pmlopt sample-size 3\n```\n", ["pmlopt sample-size"]),
        ("```bash\ncat a | pmlopt count \\\n  --by b\n```\n", ["pmlopt count"]),
        ("```text\npmlopt ledger stream new a.csv \\\n  --epsilon 1 --wide\n```\n", ["pmlopt ledger --wide"]),
        ("A `noise-table` is gone.", ["noise-table"]),
        ("pmlopt counts. `pmlopt design` of `pmlopt --help`", []),
    ],
)  # fmt: skip
def test_what_there_is_not_is_found(text: str, faults: list[str]) -> None:
    assert list(find_faults(text)) == faults


def test_every_written_command_and_option_is_there() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {fault}"
        for path in list_files()
        for fault in find_faults(path.read_text("utf-8"))
    }
    assert sorted(found) == []
