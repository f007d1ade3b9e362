"""What a reader finds: queries to the search of the site, and the pages of which one must be found.

The site's own worker answers them when the site is built, in Node: where there is none, nothing is checked.
`Ranking` computes the same order without a site, from the pages' sources: the search of the theme is lunr's,
`idf(t) 2.2 n / (1.2 + n)` for n times a term t that starts with a word of the query, times the weights of
field and page; a page counts more than its sections, and an entry with all words more than one with a few.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SEARCHES: Mapping[str, tuple[str, ...]] = {
    "getting started": ("getting_started/",),
    "quickstart": ("getting_started/",),
    "how many people": ("tutorials/estimate/", "estimation/"),
    "sample size": ("tutorials/estimate/", "estimation/"),
    "matlab": ("interfaces/",),
    "excel": ("interfaces/",),
    "design": ("choosing/start/", "reference/pmlopt/"),
    "MutualInformation": ("reference/utility/",),
    "PML": ("reference/privacy/",),
    "Prior": ("reference/pmlopt/",),
    "Mechanism": ("reference/pmlopt/",),
    "Stream": ("reference/releases/",),
    "hamming": ("reference/utility/",),
    "audit": ("tutorials/audit/",),
    "estimate": ("tutorials/estimate/",),
    "release": ("tutorials/release/",),
    "verify": ("certificate/",),
    "ledger": ("releases/",),
    "randomized response": ("tutorials/from_ldp/",),
    "cite": ("versioning/",),
}
"""For each query pages of which one is among the first three."""

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "how do I choose epsilon": ("choosing/epsilon/",),
    "what is pointwise maximal leakage": ("choosing/glossary/",),
    "what does a word mean": ("choosing/glossary/",),
    "which function do I need": ("choosing/start/",),
    "anonymize a csv file": ("tutorials/release/", "data/", "getting_started/"),
    "how do I publish a column": ("tutorials/release/",),
    "randomize answers in the browser": ("tutorials/survey/",),
    "how many people do I need": ("tutorials/estimate/", "estimation/"),
    "confidence intervals of the shares": ("estimation/",),
    "survey weights": ("estimation/",),
    "small cells and rare values": ("threat_model/",),
    "is the file anonymous under GDPR": ("choosing/limitations/",),
    "people of the same household": ("choosing/limitations/",),
    "what can an attacker learn from a release": ("threat_model/",),
    "differential privacy or PML": ("choosing/requirement/",),
    "add Laplace noise to a mean": ("noise/",),
    "cell key method": ("post_randomization/",),
    "privacy budget of several releases": ("releases/",),
    "ask the same people every year": ("tutorials/waves/",),
    "location data every hour": ("streams/",),
    "can I use it from R": ("interfaces/",),
    "use it in R or Matlab": ("interfaces/",),
    "R": ("interfaces/",),
    "read a mechanism in R": ("interfaces/", "source_code/"),
    "use it in Excel or Matlab": ("interfaces/",),
    "install without internet": ("interfaces/",),
    "run in Spark or DuckDB": ("engines/",),
    "sensitive attribute that is correlated": ("tutorials/secret/", "secrets/"),
    "my prior is only an estimate": ("robust/",),
    "how long does it take": ("performance/",),
    "check a folder that I was sent": ("tutorials/audit/", "threat_model/"),
    "is the result proved": ("certificate/", "assurance/"),
    "timing side channel of a program": ("programs/",),
    "my own loss function": ("tutorials/own/", "choosing/utility/"),
    "compare with OpenDP": ("choosing/beside/",),
    "can a value be ruled out": ("choosing/epsilon/",),
}
"""What newcomers type: for each question pages of which one is among the first three."""

FIELDS = {"title": 1e3, "text": 1.0, "tags": 1e6}


@dataclass(frozen=True)
class Entry:
    """A page or a section of one, as the search has it.

    Attributes:
        location: its address; that of a section has an anchor.
        texts: its fields.
        weight: of its page.
    """

    location: str
    texts: Mapping[str, str]
    weight: float


class Ranking:
    """The order in which the search lists pages.

    Args:
        entries: pages and sections, a page before its sections.
        separator: the pattern that parts words, of `mkdocs.yml`.
    """

    def __init__(self, entries: Iterable[Entry], separator: str) -> None:
        self.separator = re.compile(separator)
        self.entries = tuple(entries)
        self.postings: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
        for place, entry in enumerate(self.entries):
            for field, text in entry.texts.items():
                for term, times in Counter(self.split(text)).items():
                    self.postings[term].append((place, field, times))

    def split(self, text: str) -> list[str]:
        """Split a text into its terms."""
        return [term.lower() for term in self.separator.split(text) if term]

    def find(self, query: str) -> list[str]:
        """List the pages by their addresses, best first."""
        scores: dict[int, float] = defaultdict(float)
        matched: dict[int, set[str]] = defaultdict(set)
        words = self.split(query)
        for word in words:
            for term in [term for term in self.postings if term.startswith(word)]:
                found = self.postings[term]
                rarity = math.log1p(
                    abs((len(self.entries) - len(found) + 0.5) / (len(found) + 0.5))
                )
                for place, field, times in found:
                    weight = FIELDS[field] * self.entries[place].weight
                    scores[place] += rarity * 2.2 * times / (1.2 + times) * weight
                    matched[place].add(word)
        pages: dict[str, float] = {}
        for place, score in scores.items():
            page, anchor, _ = self.entries[place].location.partition("#")
            share = (not anchor) + len(matched[place]) / len(set(words))
            pages[page] = max(pages.get(page, 0.0), score * (1 + share**2))
        return sorted(pages, key=lambda page: -pages[page])


def split_page(page: str, text: str, tags: Iterable[str], weight: float) -> Iterator[Entry]:
    """Split a page into its entries, from its source and without the marks of Markdown."""
    address = page.removesuffix(".md").removesuffix("index").rstrip("/")
    address += "/" if address else ""
    parts = re.split(r"^#{1,4} (.*)$", re.sub(r"```\w*\n", "", text), flags=re.MULTILINE)
    parts = parts[1:] if not parts[0].strip() else ["", *parts]
    for place in range(0, len(parts), 2):
        texts = {
            "title": plain(parts[place]),
            "text": plain(parts[place + 1]),
            "tags": " ".join(tags),
        }
        yield Entry(address + (f"#{place // 2}" if place else ""), texts, weight)


def plain(text: str) -> str:
    """A text without links, tags and marks."""
    return re.sub(r"[*`|]|<[^<>]*>", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))


def missed(site: Path) -> Iterator[str]:
    """The queries whose page is not among the first three of a built site, a line each."""
    node = shutil.which("node")
    if node is None:
        return
    wanted = {**SEARCHES, **QUESTIONS}
    done = subprocess.run(
        [node, str(Path(__file__).with_name("search.js")), str(site)],
        input=json.dumps(list(wanted)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    for query, found in json.loads(done.stdout).items():
        first = [location.partition("#")[0] for location in found[:3]]
        if not set(wanted[query]) & set(first):
            yield f"the search for {query!r} finds {first}, not {' or '.join(wanted[query])}"
