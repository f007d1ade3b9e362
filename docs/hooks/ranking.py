"""How the search ranks pages, and the words by which it finds them that their titles do not have.

A title counts a thousand times as much as a word of the text, and a reference has names for titles: its
weight is near a thousandth. A keyword counts a million times as much as a word: a name finds its module in
the reference, and what somebody would type in place of a title finds the page that answers it.
"""

from __future__ import annotations

from typing import Any

WEIGHTS = {
    "tutorials/": 4.0,
    "choosing/": 4.0,
    "index.md": 2.0,
    "interfaces.md": 8.0,  # its keyword R begins words of many others
    "gallery/": 0.2,
    "bibliography.md": 0.01,
    "architecture.md": 0.1,
    "theory/": 0.1,
    "measurements.md": 0.01,
    "printed.md": 0.1,
    "commands.md": 0.001,
    "reference/pmlopt.md": 0.003,  # what `import pmlopt` offers
    "reference/privacy.md": 0.003,
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
        "anonymize",
    ),
    "tutorials/release.md": ("anonymize", "anonymise", "publish a column", "release"),
    "tutorials/estimate.md": ("how many people", "sample size", "enough people", "estimate"),
    "tutorials/survey.md": ("browser", "javascript", "online survey", "randomize answers"),
    "tutorials/waves.md": ("every year", "panel", "waves", "same people again"),
    "tutorials/secret.md": ("sensitive attribute", "correlated"),
    "tutorials/audit.md": ("audit", "check a folder", "sent"),
    "tutorials/own.md": ("own loss function", "own utility"),
    "estimation.md": (
        "how many people",
        "sample size",
        "debias",
        "confidence interval",
        "survey weights",
    ),
    "interfaces.md": (
        "matlab",
        "octave",
        "excel",
        "julia",
        "spreadsheet",
        "R",
        "from R",
        "in R",
        "rstats",
        "docker",
        "container",
        "without internet",
        "offline",
    ),
    "engines.md": ("spark", "duckdb", "dask", "big data"),
    "choosing/requirement.md": ("definition of privacy", "differential privacy"),
    "choosing/epsilon.md": ("epsilon", "privacy budget", "ruled out"),
    "choosing/glossary.md": ("what a word means", "definition", "pointwise maximal leakage"),
    "choosing/start.md": ("design", "which function", "faq"),
    "choosing/limitations.md": ("gdpr", "anonymous", "household", "relatives"),
    "choosing/beside.md": ("compare", "comparison", "opendp", "alternatives"),
    "versioning.md": ("cite", "citation", "bibtex"),
    "tutorials/from_ldp.md": ("randomized response", "local differential privacy", "ldp"),
    "post_randomization.md": ("pram", "cell key", "invariant"),
    "noise.md": ("laplace", "gaussian", "geometric"),
    "releases.md": ("composition", "budget", "ledger", "several releases"),
    "streams.md": ("location data", "every hour", "time series"),
    "data.md": ("csv", "parquet", "pandas", "polars"),
    "certificate.md": ("verify", "proof", "proved"),
    "threat_model.md": ("attacker", "small cells", "rare values", "check a folder"),
    "programs.md": ("side channel", "timing", "program"),
    "performance.md": ("how long", "slow", "memory"),
    "robust.md": ("estimated prior", "unknown prior"),
    "symmetry.md": ("large alphabet",),
}
"""What is typed in place of a title, by page."""


def weight(path: str) -> float:
    """The weight of a page by its path in docs."""
    return next((found for start, found in WEIGHTS.items() if path.startswith(start)), 1.0)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Set the weight and the keywords, unless the page sets its own; called by mkdocs.

    The files of the problem library are found by its list, and not in the index.
    """
    path = page.file.src_uri
    search = page.meta.setdefault("search", {})
    search.setdefault("boost", weight(path))
    if path.startswith("library/") and not path.endswith("/index.md"):
        search["exclude"] = True
    page.meta.setdefault("tags", list(KEYWORDS.get(path, ())))
    return markdown
