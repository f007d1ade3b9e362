"""Guide pages are how-tos: short, begun with their reader, and without proofs."""

from __future__ import annotations

import re

import pytest
from documents import ROOT

MAX_WORDS = 1_500
NAVIGATION = (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1]
TABS = dict(re.findall(r"^  - (\w+):\n((?:      .*\n)+)", NAVIGATION, re.MULTILINE))
PAGES = [
    page
    for tab in ("Choosing", "Guide", "Trust")
    for page in re.findall(r": ([^/\s]+\.md)$", TABS[tab], re.MULTILINE)
    if page != "assurance.md"  # a list of claims
]
"""The guides: pages of these tabs that have no folder of their own kind."""
IDIOMS = re.compile(
    r"(?<![\w-])(tells?|told|is asked|says|said|in hand|beside|alone|by itself|no longer|was found)(?![\w-])"
)
"""Words in a sense of their own, or of history: *reveals*, *is required*, *states*, *next to*, *only*."""

FOR_WHOM = ("This page is for ", "For readers who ")


def read_page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def prose(page: str) -> str:
    """What is read as sentences: no fenced blocks, comments and tables, and of links the text."""
    without_blocks = re.sub(r"^```.*?^```$|<!--.*?-->", "", page, flags=re.MULTILINE | re.DOTALL)
    without_tables = re.sub(r"^\|.*$", "", without_blocks, flags=re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", without_tables)


def test_words_are_counted_outside_of_blocks_and_tables() -> None:
    hidden = "```python\nx = 1\n```\n<!-- not run: why -->\n| a | b |\n"
    page = f"# Two words\n\n{hidden}\n[one](a b.md) `x <= 1`.\n"
    assert prose(page).split() == ["#", "Two", "words", "[one]", "`x", "<=", "1`."]


@pytest.mark.parametrize("name", PAGES)
def test_a_guide_page_can_be_read_in_one_sitting(name: str) -> None:
    words = len(prose(read_page(name)).split())
    assert words <= MAX_WORDS, f"{words} words: move proofs to theory/, measurements to data"


def test_pages_begin_with_their_reader() -> None:
    names = [
        *PAGES,
        *(f"{path.parent.name}/{path.name}" for path in (ROOT / "docs" / "theory").glob("*.md")),
    ]
    assert len(names) > 25
    starts = {name: read_page(name).split("\n\n")[1] for name in names}
    assert {name: start for name, start in starts.items() if not start.startswith(FOR_WHOM)} == {}


def test_proofs_are_on_pages_of_theory() -> None:
    assert [name for name in PAGES if "*Proof.*" in read_page(name)] == []


def test_sentences_use_the_words_of_the_field() -> None:
    folders = [
        f"{folder}/{path.name}"
        for folder in ("choosing", "tutorials")
        for path in (ROOT / "docs" / folder).glob("*.md")
    ]
    for name in [*PAGES, *folders, "getting_started.md", "index.md"]:
        sentences = re.sub(r"`[^`]*`", "", prose(read_page(name)))
        assert [found[0] for found in IDIOMS.finditer(sentences)] == [], name
