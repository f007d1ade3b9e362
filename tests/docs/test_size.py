"""The manual is short: words by kind of page and in total, pages, entries of the navigation.

A limit of a kind is final.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import ROOT, module

DOCS = ROOT / "docs"

LIMITS = {
    "front page": 500, "getting started": 1_500, "tutorial": 1_400, "choice": 1_250,
    "reference in tables": 2_400, "guide": 1_400, "guide of several subjects": 1_800, "trust": 2_100,
    "theory": 3_700, "index of theorems": 4_500, "proofs": 8_500, "reproduction": 3_400,
    "gallery": 1_300, "generated": 3_000, "project": 1_300,
}  # fmt: skip
"""The most words of a page by its kind, as `wc -w` counts them: with code and tables."""

PAGES_OF_A_KIND = {
    "front page": ("index.md",),
    "getting started": ("getting_started.md",),
    "reference in tables": ("choosing/requirement.md", "choosing/glossary.md", "robust.md"),
    "guide of several subjects": ("interfaces.md", "records.md", "solvers.md"),
    "trust": (
        "threat_model.md", "certificate.md", "who_proved_it.md", "assurance.md", "envelope.md", "programs.md",
        "choosing/limitations.md",
    ),
    "index of theorems": ("theorems.md",),
    "proofs": ("results.md",),
    "reproduction": ("reproduction.md",),
    "project": ("architecture.md", "versioning.md"),
}  # fmt: skip
KIND_OF_PAGE = {page: kind for kind, pages in PAGES_OF_A_KIND.items() for page in pages}
KIND_OF_FOLDER = {
    "tutorials": "tutorial",
    "choosing": "choice",
    "theory": "theory",
    "gallery": "gallery",
}

MOST_WORDS = 100_000
"""Of all pages, with those that are generated."""

MOST_PAGES = 60

MOST_ENTRIES = 7
"""Pages in a part of the navigation."""

MOST_WARNINGS = 33
"""Pages that lead to what may be ruled out; twelve then."""


def read_pages() -> dict[str, str]:
    """Read the pages that are written by hand, by their paths in docs."""
    return {
        path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")
    }


PAGES = read_pages()
COUNTS = {page: len(text.split()) for page, text in PAGES.items()}


def count_generated_words() -> dict[str, int]:
    """Count the words of the pages that are generated from data."""
    pages = module("evidence").evidence_pages()
    return {page: len(text.split()) for page, text in pages.items()}


def find_kind(page: str) -> str:
    """Find the kind of a page: its own, that of its folder, or a guide."""
    return KIND_OF_PAGE.get(page) or KIND_OF_FOLDER.get(str(Path(page).parent), "guide")


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_is_as_short_as_its_kind(page: str) -> None:
    kind = find_kind(page)
    most = LIMITS[kind]
    assert COUNTS[page] <= most, f"{COUNTS[page]} words; {most} are allowed for this page ({kind})"


def test_generated_pages_are_short() -> None:
    counts = count_generated_words()
    assert counts
    assert {page: n for page, n in counts.items() if n > LIMITS["generated"]} == {}


def test_a_page_of_each_kind_is_there() -> None:
    assert [page for page in KIND_OF_PAGE if page not in PAGES] == []
    assert set(LIMITS) == {*PAGES_OF_A_KIND, *KIND_OF_FOLDER.values(), "guide", "generated"}


def test_the_manual_is_short_in_all() -> None:
    generated = count_generated_words()
    assert sum(COUNTS.values()) + sum(generated.values()) <= MOST_WORDS
    assert len(COUNTS) + len(generated) <= MOST_PAGES


def test_a_part_of_the_navigation_can_be_seen_at_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1]
    parts: list[int] = []
    for line in navigation.splitlines():
        if line.endswith(":"):  # the head of a part
            parts.append(0)
        else:
            parts[-1] += 1
    assert sum(parts) > 50
    assert max(parts) <= MOST_ENTRIES


def test_what_may_be_ruled_out_has_one_home() -> None:
    leading = [
        page for page, text in PAGES.items() if "#where-nothing-is-protected-any-more" in text
    ]
    assert leading
    assert len(leading) <= MOST_WARNINGS
