"""The search of the site leads newcomers to the page that answers them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from documents import ROOT, module

DOCS = ROOT / "docs"
searching, ranking = module("searching"), module("ranking")
WANTED = {**searching.SEARCHES, **searching.QUESTIONS}


def read_separator() -> str:
    found = re.search(r"^ +separator: '(.*)'$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)
    assert found is not None
    return found[1]


@cache
def order_of_the_site() -> Any:
    """The search over the pages as they are written, and the names of the reference."""
    pages = {
        path.relative_to(DOCS).as_posix(): path.read_text("utf-8")
        for path in sorted(DOCS.rglob("*.md"))
    }
    entries = []
    for page, text in [*pages.items(), *module("evidence").evidence_pages().items()]:
        tags = ranking.KEYWORDS.get(page, ())
        entries += searching.split_page(page, text, tags, ranking.weight(page))
    reference = module("reference")
    for home, names in reference.names_by_home().items():
        page = reference.page_of_home(home)
        lines = [f"# {home}\n\n"]
        lines += [
            f"## {reference.written_names()[one.path, name]}\n\n{reference.first_line(one, name)}\n"
            for one, name in names
        ]
        entries += searching.split_page(
            page, "".join(lines), [name for _, name in names], ranking.weight(page)
        )
    return searching.Ranking(entries, read_separator())


@pytest.mark.parametrize("query", WANTED)
def test_a_page_that_answers_is_among_the_first_three(query: str) -> None:
    found = order_of_the_site().find(query)[:3]
    assert set(found) & set(WANTED[query]), found


def test_there_are_thirty_questions_about_many_pages() -> None:
    assert len(searching.QUESTIONS) >= 30
    assert len({page for pages in searching.QUESTIONS.values() for page in pages}) >= 25


def test_the_order_is_that_of_lunr() -> None:
    pages = {
        "a.md": "# Noise\n\nLaplace noise on counts.\n\n## Scale\n\nof it\n",
        "b.md": "# Other\n\nnoise noise noise laplace\n",
        "c.md": "# Third\n\n1.5 and 2.25e-3\n",
    }
    entries = [
        entry for page, text in pages.items() for entry in searching.split_page(page, text, (), 1.0)
    ]
    made = searching.Ranking(entries, read_separator())
    assert [entry.location for entry in made.entries] == ["a/", "a/#1", "b/", "c/"]
    assert made.find("noise") == ["a/", "b/"]  # a title counts a thousand times
    assert made.find("nois") == ["a/", "b/"]  # words are found by how they begin
    assert made.find("oise") == []
    assert made.split("How do I add 1.5 to it") == ["add"]
