"""How the search ranks pages, and the words by which it finds them that their titles do not have.

A title counts a thousand times as much as a word of the text, and a reference has names for titles: its
weight is below a thousandth. A keyword counts a million times as much as a word: a name finds its page of
the reference, and what somebody would type in place of a title finds the page that answers it.
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
    "measurements.md": 0.01,
    "printed.md": 0.1,
    "commands.md": 0.001,
    "reference/internals/": 0.0001,
    "reference/": 0.0003,
    "library/": 0.0002,
}
"""What the rank of a page is multiplied by, by the start of its path; 1 for all others."""

KEYWORDS = {
    "getting_started.md": (
        "getting started",
        "quickstart",
        "first steps",
        "install",
        "installation",
    ),
    "tutorials/release.md": ("anonymize", "anonymise", "publish a column"),
    "tutorials/estimate.md": ("how many people", "sample size", "enough people"),
    "estimation.md": ("how many people", "sample size", "debias", "confidence interval"),
    "interfaces.md": ("matlab", "octave", "excel", "julia", "spreadsheet"),
    "offline.md": ("rstats", "docker", "container"),
    "choosing/requirement.md": ("definition of privacy", "differential privacy"),
    "choosing/epsilon.md": ("epsilon", "privacy budget"),
    "versioning.md": ("cite", "citation", "bibtex"),
    "choosing/start.md": ("design",),
    "tutorials/from_ldp.md": ("randomized response", "local differential privacy", "ldp"),
    "post_randomization.md": ("pram", "cell key", "invariant"),
    "noise.md": ("laplace", "gaussian", "geometric"),
    "releases.md": ("composition", "budget", "ledger"),
    "data.md": ("csv", "parquet", "pandas", "polars"),
    "certificate.md": ("verify", "proof"),
    "symmetry.md": ("large alphabet",),
}
"""What is typed in place of a title, by page."""


def weight(path: str) -> float:
    """The weight of a page by its path in docs."""
    return next((found for start, found in WEIGHTS.items() if path.startswith(start)), 1.0)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Set the weight and the keywords, unless the page sets its own; called by mkdocs."""
    page.meta.setdefault("search", {}).setdefault("boost", weight(page.file.src_uri))
    page.meta.setdefault("tags", list(KEYWORDS.get(page.file.src_uri, ())))
    return markdown
