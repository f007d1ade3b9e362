"""What pages state is so: paths of imports are public, and counts are those of the tables."""

from __future__ import annotations

import importlib
import re
from collections import Counter

from documents import ROOT, module

public_names = module("public_names")

DOCS = ROOT / "docs"
IMPORT = re.compile(r"^ *(?:>>> )?from (pmlopt[\w.]*) import", re.MULTILINE)
SHORT_PATHS = {
    "pmlopt.releases.estimation": "pmlopt.estimation",
    "pmlopt.releases.noise": "pmlopt.noise",
    **{
        f"pmlopt.{room}.{path.stem}": f"pmlopt.{path.stem}"
        for room in ("model", "data")
        for path in public_names.PACKAGE.glob("*.pyi")
    },
}
"""The modules that have a public path of their own, and that path."""


def read_page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_pages_import_by_the_public_path() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    assert len(pages) > 50
    found = {page.name: IMPORT.findall(page.read_text("utf-8")) for page in pages}
    assert "pmlopt.uncertainty" in {path for paths in found.values() for path in paths}
    longer = {
        (name, path): SHORT_PATHS[path]
        for name, paths in found.items()
        for path in paths
        if path in SHORT_PATHS
    }
    assert longer == {}


def test_what_is_where_has_importable_names() -> None:
    index = module("reference").reference_index()
    rows = re.findall(
        r"^\| \[`(pmlopt[\w.]*)`\]\([\w.-]+\.md#[\w.]+\) \| (.*) \|$", index, re.MULTILINE
    )
    assert len(rows) == index.count("\n| [`") > 150
    assert [name for name, about in rows if not about] == []
    paths = [name.rpartition(".") for name, _ in rows]
    missing = [
        (path, name)
        for path, _, name in paths
        if ".adapters" not in path  # whose packages take seconds to load
        if not hasattr(importlib.import_module(path), name)
    ]
    assert missing == []


def test_the_counts_of_corrections_are_those_of_their_rows() -> None:
    page = read_page("reproduction.md")
    listed = page.split("## All corrections")[1].split("\n## ")[0]
    rows = re.findall(r"^\| \[(\w+)[],].* \| (\w+) \| [^|]+ \|$", listed, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^\| \[", listed, re.MULTILINE))
    counts = Counter(rows)
    head, *body = re.findall(r"^\| (?!---)(.*) \|$", page.split("\n## ")[0], re.MULTILINE)[:7]
    kinds = [cell.strip() for cell in head.split("|")][1:]
    assert kinds == ["number", "statement", "method", "sharper", "omitted"]
    stated = {
        (name.strip(" []"), kind): int(cell or 0)
        for name, *cells in (row.split("|") for row in body)
        for kind, cell in zip(kinds, map(str.strip, cells), strict=True)
    }
    together = {kind: number for (paper, kind), number in stated.items() if paper == "together"}
    assert {key: n for key, n in stated.items() if n and key[0] != "together"} == counts
    assert together == Counter(kind for _, kind in rows)
    assert re.findall(r"from the print in (\d+) places", page) == [str(len(rows))]
    failing = re.findall(
        r"^\| \[\w+, Theorem (\d+), items? .*\| statement \|", listed, re.MULTILINE
    )
    assert ("Three numbered theorems fail" in page, len(failing)) == (True, 3)


def find_torn_tables(text: str) -> list[str]:
    """Find heads of tables without a row below, and rows without a head."""
    without_blocks = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraphs = [part.splitlines() for part in re.split(r"\n\s*\n", without_blocks)]
    tables = [lines for lines in paragraphs if lines and lines[0].startswith("|")]
    return [
        lines[0]
        for lines in tables
        if len(lines) < 3 or not re.fullmatch(r"[| :-]+", lines[1]) or lines[1].count("|") < 2
    ]


def test_a_torn_table_is_found() -> None:
    whole = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert find_torn_tables(f"text\n\n{whole}\n```text\n\n| 1 | 2 |\n```\n") == []
    assert find_torn_tables(whole.replace("| 1", "\n| 1")) == ["| a | b |", "| 1 | 2 |"]


def test_tables_are_in_one_piece() -> None:
    torn = {page.name: find_torn_tables(page.read_text("utf-8")) for page in DOCS.rglob("*.md")}
    assert len(torn) > 45
    assert {name: heads for name, heads in torn.items() if heads} == {}
