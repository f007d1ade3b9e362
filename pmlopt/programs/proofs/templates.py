"""The texts of proofs, which are kept as templates next to the code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files as resource_files


@cache
def read_template(name: str) -> str:
    """Read a template of this package."""
    place = resource_files("pmlopt.programs.proofs").joinpath("templates", f"{name}.md")
    return place.read_text("utf-8")


def format_sentence(name: str, **values: object) -> str:
    """Format a sentence on what is proved."""
    lines = dict(line.split(": ", 1) for line in read_template("sentences").splitlines())
    return lines[name].format(**values)
