"""Sources are cited by keys that resolve, and by nothing that only an insider could resolve."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from documents import ROOT, module

PAPER_CODE = re.compile(r"\b(?:EMP|HIST|ENT|WCU|ENV|EXT)\b")
"""The abbreviations by which the code once cited its papers."""


def written() -> list[Path]:
    """What a reader of the project reads: its code, its pages, its README."""
    folders = [ROOT / "pmlopt", ROOT / "docs", ROOT / "benchmarks"]
    files = [
        path
        for folder in folders
        for ending in ("*.py", "*.pyi", "*.md")
        for path in folder.rglob(ending)
    ]
    return sorted({*files, *ROOT.glob("*.md")})


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


CITATIONS = module("citations")
WORKS = CITATIONS.entries(CITATIONS.REFERENCES.read_text("utf-8"))


def test_every_key_that_is_cited_resolves() -> None:
    cited = {
        key: named(path)
        for path in written()
        for key in CITATIONS.KEY.findall(path.read_text("utf-8"))
    }
    assert {key: path for key, path in cited.items() if key not in WORKS} == {}, (
        "references.bib lacks these"
    )
    found = {named(path) for path in written() if PAPER_CODE.search(path.read_text("utf-8"))}
    assert found == set(), "cite the keys of references.bib instead"


def test_every_entry_is_read_says_who_what_and_when_and_its_key_follows_from_it() -> None:
    for key, work in WORKS.items():
        assert CITATIONS.KEY.fullmatch(key)
        assert work["author"]
        assert work["title"]
        assert work["year"] in key
    source = CITATIONS.REFERENCES.read_text("utf-8")
    assert len(WORKS) == len(re.findall(r"^@", source, re.MULTILINE)) > 10
    fields = re.findall(r"^\s+\w+\s*=", source, re.MULTILINE)
    assert sum(len(work) for work in WORKS.values()) == len(fields)


def test_the_bibliography_has_each_reference_once_by_its_author() -> None:
    page = module("evidence").evidence_pages()["bibliography.md"]
    listed = re.findall(r'^- <a id="(\w+)"></a>`\1`: \S', page, re.MULTILINE)
    assert sorted(listed) == sorted(WORKS)
    authors = [WORKS[key]["author"].lower() for key in listed]
    assert authors == sorted(authors)


def test_a_work_is_described_in_words_and_accents_of_tex_are_letters() -> None:
    assert CITATIONS.plain(r"{\v{S}}kori{\'c}, {R}\'enyi, Lopuha{\"a}") == "Škorić, Rényi, Lopuhaä"
    assert not re.search(r"[{}]", CITATIONS.bibliography(CITATIONS.REFERENCES.read_text("utf-8")))
    source = (
        "@article{doe2020mean,\n  author = {Doe, Jane and Roe, Max},\n  title  = {Means},\n"
        "  journal = {Annals},\n  volume = {3},\n  number = {2},\n  pages = {5--9},\n  year = {2020},\n}"
    )
    (work,) = CITATIONS.entries(source).values()
    assert CITATIONS.described(work) == "Jane Doe, Max Roe. Means. *Annals*, 2020."


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        (
            "[doe2020mean, Theorem 1]",
            '[<a href="../bibliography/#doe2020mean">doe2020mean</a>, Theorem 1]',
        ),
        (
            "[doe2020mean; roe1999sum, (2)]",
            '[<a href="../bibliography/#doe2020mean">doe2020mean</a>; '
            '<a href="../bibliography/#roe1999sum">roe1999sum</a>, (2)]',
        ),
        ("sorted[0], doe2020mean", "sorted[0], doe2020mean"),
        ('<img alt="[doe2020mean]">', '<img alt="[doe2020mean]">'),
    ],
)
def test_citations_become_links(text: str, linked: str) -> None:
    for url, up in (("", ""), ("noise/", "../"), ("gallery/noise/", "../../")):
        page = SimpleNamespace(url=url, file=SimpleNamespace(src_uri="page.md"))
        assert CITATIONS.on_page_content(text, page) == linked.replace("../", up)
