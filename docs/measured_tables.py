"""Write the tables of pages that come from files of measured figures: `python docs/measured_tables.py`.

A page has two comments where such a table belongs, `<!-- table of FILE -->` and `<!-- end of the table -->`,
with the path of a CSV file from the root of the project; what is between them is written here.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

DOCS = Path(__file__).parent
PLACE = re.compile(r"(<!-- table of (\S+) -->\n).*?(<!-- end of the table -->)", re.DOTALL)


def render_table(path: str) -> str:
    """Render a CSV file as a table in Markdown."""
    head, *rows = csv.reader((DOCS.parent / path).read_text("utf-8").splitlines())
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def fill_tables(page: str) -> str:
    """Return the text of a page with its tables as the files have them."""
    return PLACE.sub(lambda found: found[1] + render_table(found[2]) + found[3], page)


def list_pages() -> list[Path]:
    """List the pages that have such tables."""
    return [path for path in sorted(DOCS.rglob("*.md")) if PLACE.search(path.read_text("utf-8"))]


def main() -> None:
    """Write all pages."""
    for path in list_pages():
        path.write_text(fill_tables(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
