"""The code blocks of a markdown page, the modules beside the pages, and the trees of source files."""

from __future__ import annotations

import ast
import gc
import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

_FENCE = re.compile(
    r"(?:^<!--\s*not run:\s*(?P<reason>[^\n]*?)\s*-->\n+)?^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

ROOT = Path(__file__).parents[1]
NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d*)?(?:e-?\d+)?"
"""A number as it is printed, or written with commas between thousands."""


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: the word after the fence, "" for none.
        code: what is in it.
        line: the line of the page on which the code starts.
        reason: why it is not run, from a comment `<!-- not run: reason -->` before it; None where it is.
    """

    language: str
    code: str
    line: int
    reason: str | None


def module(name: str) -> ModuleType:
    """A module of docs or docs/hooks, which belongs to no package."""
    folders = [str(ROOT / "docs" / "hooks"), str(ROOT / "docs")]
    sys.path[:0] = folders
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[: len(folders)]


@cache
def parse_file(path: Path) -> ast.Module:
    """Parse a file of source: once for all tests that look at it."""
    gc.disable()  # a tree is many objects that stay: looking through them takes most of the time
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            found["language"],
            found["code"],
            page.count("\n", 0, found.start("code")) + 1,
            found["reason"],
        )
        for found in _FENCE.finditer(page)
    ]


def script_name(page: list[Block]) -> str | None:
    """The name of the file that a page builds up: its first block starts with the comment `# name.py`."""
    found = re.match(r"# (\w+\.py)\n", page[0].code) if page else None
    return None if found is None else found[1]


def commands(block: Block) -> list[str]:
    """The shell lines of a block that run pmlopt, or write a file by printf."""
    lines = join_lines(block.code).splitlines()
    return [line for line in lines if line.startswith(("pmlopt ", "printf "))]


def join_lines(code: str) -> str:
    """Join the lines of shell code that end in a backslash with the next, as a shell does."""
    return code.replace("\\\n", "")


def printed_file(line: str) -> tuple[Path, str]:
    """The file that `printf 'text' > file` or `printf '%s\\n' 'line' ... > file` writes, and its text."""
    _, form, *arguments, arrow, path = shlex.split(line)
    assert arrow == ">", line
    assert bool(arguments) == (form == r"%s\n"), line
    text = "".join(f"{argument}\n" for argument in arguments) or form.replace("\\n", "\n")
    return Path(path), text


def statements(block: Block) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a block of Python, each with the comment at its end or below it, or ""."""
    lines = block.code.splitlines()
    for statement in ast.parse(block.code).body:
        assert statement.end_lineno is not None
        comment = lines[statement.end_lineno - 1][statement.end_col_offset :].strip()
        if not comment and lines[statement.end_lineno :]:
            below = lines[statement.end_lineno]  # where both would be too long for one line
            comment = below if below.startswith("#") else ""
        yield ast.increment_lineno(statement, block.line - 1), comment.lstrip("# ")


def numbers(text: str) -> list[str]:
    """The numbers that a text starts with: up to the first word, but for True and False."""
    head = re.match(rf"(?:{NUMBER}|[\[\](), ]|True|False)*", text)
    assert head is not None
    return re.findall(NUMBER, head[0])


def same_number(printed: str, said: str) -> bool:
    """Whether a printed number is the one that a comment says, with as many digits; 1,000 is 1000."""
    return printed.replace(",", "").rstrip(".") == said.replace(",", "").rstrip(".")
