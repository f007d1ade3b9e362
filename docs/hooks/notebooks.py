"""Tutorials as notebooks for download, made from their pages: text, Python cells and shell cells.

Page and notebook show what the cells print when the site is built. The cells run while other pages are set,
so that tutorials come last.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from background import POOL
from outputs import drop_written_outputs, list_blocks, run_page, show_outputs

FOLDER = "tutorials/"


PRINTED: dict[str, Future[list[str]]] = {}
"""What the cells of each tutorial print."""


def on_files(files: Any, **_: Any) -> Any:
    """Start to run the tutorials, and put them behind all other pages; called by mkdocs."""
    for file in [file for file in files.documentation_pages() if file.src_uri.startswith(FOLDER)]:
        PRINTED[file.src_uri] = POOL.submit(run_page, drop_written_outputs(file.content_string))
        files.remove(file)
        files.append(file)
    return files


def cells(page: str, printed: list[str]) -> list[dict[str, Any]]:
    """The cells of a notebook: the page between its blocks of code, and each block."""
    found, end = [], 0
    for block, text in zip(list_blocks(page), printed, strict=True):
        found += [
            _text(page[end : block.start()]),
            _code(block["language"], block["code"], text),
        ]
        end = block.end()
    return [cell for cell in (*found, _text(page[end:])) if "".join(cell["source"]).strip()]


def notebook(page: str, printed: list[str] | None = None) -> bytes:
    """A notebook in the format 4.5, with what its cells print where that is given."""
    shown = [""] * len(list_blocks(page)) if printed is None else printed
    made = [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells(page, shown))]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    found = {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(found, indent=1, ensure_ascii=False).encode()


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Write the notebook of a tutorial beside its page, and link to it; called by mkdocs."""
    path = page.file.src_uri
    if not path.startswith(FOLDER):
        return markdown
    page_without_outputs = drop_written_outputs(markdown)
    printed = PRINTED[path].result()
    target = Path(config["site_dir"]) / FOLDER / f"{Path(path).stem}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(notebook(page_without_outputs, printed))
    depth = "../" if config.get("use_directory_urls", True) else ""
    title, _end, rest = show_outputs(page_without_outputs, printed).partition("\n")
    return f'{title}\n\n<a href="{depth}{target.name}" download>Download this page as a notebook</a>\n{rest}'


def _text(source: str) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "metadata": {},
        "source": source.strip("\n").splitlines(keepends=True),
    }


def _code(language: str, code: str, printed: str) -> dict[str, Any]:
    source = code if language == "python" else f"%%bash\nset -e\n{code}"
    lines = printed.splitlines(keepends=True)
    return {
        "cell_type": "code",
        "metadata": {},
        "source": source.rstrip("\n").splitlines(keepends=True),
        "outputs": [{"output_type": "stream", "name": "stdout", "text": lines}] if lines else [],
        "execution_count": None,
    }
