"""How the search ranks pages: what tells how something is done comes before the reference of its names.

A title counts a thousand times as much as a word of the text, and a reference has names for titles: its
weight is below a thousandth.
"""

from __future__ import annotations

from typing import Any

WEIGHTS = {
    "tutorials/": 4.0,
    "choosing/": 4.0,
    "index.md": 2.0,
    "gallery/": 0.2,
    "bibliography.md": 0.01,
    "architecture.md": 0.1,
    "theory/": 0.1,
    "notes/": 0.01,
    "commands.md": 0.001,
    "reference/": 0.0005,
    "library/": 0.0002,
}
"""What the rank of a page is multiplied by, by the start of its path; 1 for all others."""


def weight(path: str) -> float:
    """The weight of a page by its path in docs."""
    return next((found for start, found in WEIGHTS.items() if path.startswith(start)), 1.0)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Set the weight, unless the page sets its own; called by mkdocs."""
    page.meta.setdefault("search", {}).setdefault("boost", weight(page.file.src_uri))
    return markdown
