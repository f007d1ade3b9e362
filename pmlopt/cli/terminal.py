"""Lines and errors on the terminal, for which no command has to be loaded."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from typing import Any

import click

from pmlopt.core.descriptions import escape_control_characters


def print_line(text: str, err: bool = False) -> None:
    """Print a text as one line, with control and unprintable characters escaped."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    line = escape_control_characters(text).encode(encoding, "backslashreplace").decode(encoding)
    styled = style_verdicts(line) if shows_styles(stream) else line
    shown = wrap_line(styled, shutil.get_terminal_size().columns) if is_terminal(stream) else styled
    click.echo(shown, err=err)


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is open and a terminal."""
    return stream is not None and not stream.closed and bool(stream.isatty())


def wrap_line(line: str, width: int) -> str:
    r"""Wrap a line between words, and indent what follows to its last column in the left half.

    Examples:
        >>> print(wrap_line("  solver  highs: the dual simplex ends at a vertex", 32))
          solver  highs: the dual
                  simplex ends at a
                  vertex
    """
    plain = click.unstyle(line)
    if len(plain) <= width:
        return line
    columns = [gap.end() for gap in re.finditer(r"(?<=\S)  +", plain)]
    indent = len(plain) - len(plain.lstrip())
    column = max((start for start in columns if start <= width // 2), default=indent + 2)
    lines = [line[:indent]]
    for piece in re.findall(r" *[^ ]+", line[indent:]):
        if len(click.unstyle(lines[-1] + piece)) > width and lines[-1].strip():
            lines.append(" " * column + piece.lstrip())
        else:
            lines[-1] += piece
    return "\n".join(lines)


def shows_styles(stream: Any) -> bool:
    """Return whether a stream is a terminal that shows bold and coloured text, and the user allows it.

    A variable NO_COLOR of the environment that is not empty turns styles off (https://no-color.org).
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)


_VERDICTS = re.compile(r"\bFAILS\b|(?<=  )NO(?=  |$)|(?<=  )holds(?=  |$)|\bholds(?=[.:]?$|: )")
"""Verdicts in a line: in capitals, or as a cell of a table or the end of a sentence."""


def style_verdicts(line: str) -> str:
    r"""Make the verdicts in a line bold, with red for claims that fail and green for those that hold.

    Examples:
        >>> style_verdicts("It FAILS.").split("FAILS")
        ['It \x1b[31m\x1b[1m', '\x1b[0m.']
        >>> style_verdicts("It holds for every prior.")
        'It holds for every prior.'
    """
    return _VERDICTS.sub(
        lambda found: click.style(
            found[0], fg="green" if found[0] == "holds" else "red", bold=True
        ),
        line,
    )


ERROR_FORMAT = "pmlopt error"


def print_error(message: str, kind: str, code: int, as_json: bool) -> None:
    """Print an error to standard error: as one line, or under `--json` as a JSON object on one line."""
    if not as_json:
        print_line(f"pmlopt: {message}", err=True)
        return
    content = {"format": ERROR_FORMAT, "error": message, "kind": kind, "exit_code": code}
    click.echo(json.dumps(content), err=True)
