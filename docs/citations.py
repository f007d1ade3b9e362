"""Turn citation keys into links to the bibliography, and make it from problems/references.bib.

A citation is a key in square brackets, with the place in the work where there is one, as
`[grosse2025empirical, Proposition 2]`. mkdocs calls `on_page_content`, for pages and docstrings alike.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
REFERENCES = ROOT / "problems" / "references.bib"
KEY = re.compile(r"\b[a-z]+(?:1[89]|20)\d\d[a-z]+\b")
"""First author, year, first significant word: `grosse2025empirical`."""

CITATION = re.compile(rf"\[{KEY.pattern}(?:[,;]\s[^\[\]<>]*)?\]")
"""One or more keys with their places, in square brackets."""

_ENTRY = re.compile(r"@(\w+)\{(\w+),\n(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", re.MULTILINE)


def entries(source: str) -> dict[str, dict[str, str]]:
    """The entries of a BibTeX file by their keys, each as its fields by name."""
    return {key: dict(_FIELD.findall(body)) for _, key, body in _ENTRY.findall(source)}


def bibliography(source: str) -> str:
    """The bibliography as a page of markdown, by first author and year."""
    works = entries(source)
    ordered = sorted(works, key=lambda key: (works[key]["author"].lower(), works[key]["year"], key))
    items = [f'- <a id="{key}"></a>`{key}`: {described(works[key])}' for key in ordered]
    head = (
        "# Bibliography\n\n"
        "Pages, docstrings and problem files cite a source by its key, with the theorem, equation or\n"
        "section: `[grosse2025empirical, Proposition 2]`. A key has the first author, the year and the\n"
        "first significant word of the title. The list is ordered by author.\n\n"
        "`problems/references.bib` has the entries in BibTeX, with volumes and pages.\n\n"
    )
    return head + "\n".join(items) + "\n"


ACCENTS = {"'": "\u0301", "`": "\u0300", '"': "\u0308", "v": "\u030c"}
"""The accents of TeX that the references have, as combining characters."""


def plain(text: str) -> str:
    """A text without the marks of TeX: accents as letters, no braces."""
    accented = re.sub(
        r"""\\(['"`]|v(?=\{))\{?(\w)\}?""",
        lambda found: unicodedata.normalize("NFC", found[2] + ACCENTS[found[1]]),
        text,
    )
    return re.sub(r"[{}]", "", accented)


def described(work: dict[str, str]) -> str:
    """One work in words: authors, title, where it appeared, year; volume and pages are in the source."""
    work = {name: plain(text) for name, text in work.items()}
    names = work["author"].replace(" and others", "").split(" and ")
    authors = [" ".join(reversed(name.split(", "))) for name in names]
    authors += ["and others"] * work["author"].endswith(" and others")
    venues = [
        work[name] for name in ("journal", "booktitle", "institution", "publisher") if name in work
    ]
    place = venues[0] if venues else ""
    if place:
        place = f"*{place}*"
    if "volume" not in work and "number" in work:  # of a report
        place += f", {work['number']}"
    if "eprint" in work:
        place = f"[arXiv:{work['eprint']}](https://arxiv.org/abs/{work['eprint']})"
    doi = f" [doi:{work['doi']}](https://doi.org/{work['doi']})." if "doi" in work else ""
    where = f" {place}," if place else ""
    return f"{', '.join(authors)}. {work['title']}.{where} {work['year']}.{doi}"


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Link each citation of a page to its work; called by mkdocs."""
    if page.file.src_uri == "bibliography.md":
        return html
    depth = page.url.strip("/").count("/") + 1 if page.url.strip("./") else 0
    target = "../" * depth + "bibliography/"
    link = rf'<a href="{target}#\g<0>">\g<0></a>'
    parts = re.split(r"(<[^>]+>)", html)  # tags have citations in their texts, too
    linked = (
        CITATION.sub(lambda citation: KEY.sub(link, citation[0]), part) for part in parts[::2]
    )
    return "".join(text + tag for text, tag in zip(linked, [*parts[1::2], ""], strict=True))
