"""What the tutorials print: their blocks are run when the site is built, each page in an empty folder.

A block that fails, in Python or in the shell, fails the build; one that states why it is not run is left out.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(
    r"^(?P<left><!--\s*not run:[^\n]*-->\n+)?```(?P<language>bash|python|text)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SHELL = ("pmlopt ", "printf ")
"""What a block starts with that a shell runs; other blocks of text stay text."""

WRITTEN_OUTPUT = re.compile(
    r"(?<=^```\n)\n```text\n(?!pmlopt |printf ).*?^```\n", re.MULTILINE | re.DOTALL
)
"""A block of text directly below a block of code: its output, for those who read the source of the page."""

ROOT = Path(__file__).parents[2]


def list_blocks(page: str) -> list[re.Match[str]]:
    """The blocks of a page that are cells of its notebook."""
    return [
        block for block in FENCE.finditer(page)
        if block["language"] != "text" or block["code"].startswith(SHELL)
    ]  # fmt: skip


def drop_written_outputs(page: str) -> str:
    """Return the page without the outputs that it states, since those of the build are shown."""
    return WRITTEN_OUTPUT.sub("", page)


def run_page(page: str) -> list[str]:
    """What each block of a page prints, in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__],
            input=page, cwd=folder, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"a block of a tutorial fails:\n{done.stderr}")
    return list(map(str, json.loads(done.stdout)))


def run_here(page: str) -> list[str]:
    """What each block of a page prints, in the current folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    command = Path("bin") / "pmlopt"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m pmlopt "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent.resolve()}{os.pathsep}{os.environ['PATH']}"
    printed = []
    for block in list_blocks(page):
        if block["left"]:
            printed.append("")
        elif block["language"] == "python":
            printed.append(run_python(block["code"], names))
        else:
            printed.append(run_shell(block["code"], path))
    return printed


def run_python(code: str, names: dict[str, object]) -> str:
    """What Python prints; the value of an expression at the end is shown as a notebook shows it."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    found = io.StringIO()
    with contextlib.redirect_stdout(found):
        exec(compile(ast.Module(body, []), "page", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "page", "eval"), names)
            if value is not None:
                print(repr(value))
    return found.getvalue()


def run_shell(code: str, path: str) -> str:
    """What a shell prints that ends at the first error."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        capture_output=True, text=True, check=False, env={**os.environ, "PATH": path, "COLUMNS": "100"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{code}\nexits with {done.returncode}: {done.stderr}")
    return done.stdout


def show_outputs(page: str, printed: list[str]) -> str:
    """The page with what its blocks print below each of them."""
    parts, end = [], 0
    for block, text in zip(list_blocks(page), printed, strict=True):
        parts.append(page[end : block.end()])
        end = block.end()
        if text.strip():
            parts.append(f"\n\n```{{ .text .output }}\n{text.rstrip()}\n```")
    return "".join([*parts, page[end:]])


if __name__ == "__main__":
    found = run_here(sys.stdin.read())
    sys.stdout.write(json.dumps(found))
