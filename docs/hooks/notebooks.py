"""Tutorials as notebooks for download, made from their pages: text, Python cells and shell cells."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"^(?:<!--\s*not run:[^\n]*-->\n+)?```(bash|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
FOLDER = "tutorials/"
SHELL = ("pmlopt ", "printf ")
"""What a block starts with that a shell runs; other blocks of text stay text."""


def cells(page: str) -> list[dict[str, Any]]:
    """The cells of a notebook: the page between its blocks of code, and each block."""
    found, end = [], 0
    for block in FENCE.finditer(page):
        if block[1] == "text" and not block[2].startswith(SHELL):
            continue
        found += [_text(page[end : block.start()]), _code(block[1], block[2])]
        end = block.end()
    return [cell for cell in (*found, _text(page[end:])) if "".join(cell["source"]).strip()]


def notebook(page: str) -> bytes:
    """A notebook in the format 4.5, without outputs."""
    made = [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells(page))]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    found = {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(found, indent=1, ensure_ascii=False).encode()


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Write the notebook of a tutorial beside its page, and link to it; called by mkdocs."""
    path = page.file.src_uri
    if not path.startswith(FOLDER) or path.endswith("index.md"):
        return markdown
    target = Path(config["site_dir"]) / FOLDER / f"{Path(path).stem}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(notebook(markdown))
    depth = "../" if config.get("use_directory_urls", True) else ""
    title, _end, rest = markdown.partition("\n")
    return f'{title}\n\n<a href="{depth}{target.name}" download>Download this page as a notebook</a>\n{rest}'


def _text(source: str) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "metadata": {},
        "source": source.strip("\n").splitlines(keepends=True),
    }


def _code(language: str, code: str) -> dict[str, Any]:
    source = code if language == "python" else f"%%bash\n{code}"
    lines = source.rstrip("\n").splitlines(keepends=True)
    return {
        "cell_type": "code",
        "metadata": {},
        "source": lines,
        "outputs": [],
        "execution_count": None,
    }
