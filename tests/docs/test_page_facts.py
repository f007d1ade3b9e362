"""What pages state is so: paths of imports are public, and counts are those of the tables."""

from __future__ import annotations

import importlib
import math
import re
from collections import Counter

import numpy as np
import pytest
from documents import ROOT, module

from pmlopt import (
    PML,
    MutualInformation,
    Prior,
    closed_forms,
    design,
    ldp_level,
    leakage_level,
    solve,
)

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


THRESHOLDS = [
    ("index.md", "from 0.22 nats on", 0.8),
    ("columns.md", "from 0.105 nats on", 0.9),
    ("columns.md", "a be certain from 0.916", 0.4),
    ("symmetry.md", "certain from 0.356 nats on", 0.7),
    ("getting_started.md", "From 0.399 nats", 1 - 0.3293),
    ("data.md", "From 0.399 nats", 1 - 0.3293),
    ("noise.md", "`-log 0.2 = 1.609` nats", 0.2),
    ("choosing/limitations.md", "from 2.302 nats on for p = 0.1", 0.1),
    ("choosing/limitations.md", "from 0.693 for a half", 0.5),
    ("choosing/epsilon.md", '"weekly" from 0.287', 0.75),
    ("choosing/epsilon.md", '"monthly" from 0.356', 0.7),
    ("choosing/epsilon.md", "from 0.430", 0.65),
    ("choosing/epsilon.md", "certain from 1.049", 0.35),
    ("choosing/epsilon.md", '"monthly" from 1.203', 0.3),
    ("choosing/epsilon.md", '"weekly" from 1.386', 0.25),
    ("choosing/epsilon.md", '"daily" from 2.302', 0.1),
    ("tutorials/estimate.md", "Below 0.105 nats", 0.9),
    ("tutorials/waves.md", "`-log 0.4 = 0.916` nats", 0.4),
    ("tutorials/waves.md", "from 0.105 nats on", 0.9),
    ("tutorials/survey.md", "`-log 0.35`, 1.049 nats", 0.35),
    ("tutorials/secret.md", "`-log(1/3)`, 1.098 nats", 1 / 3),
    ("secrets.md", "below 0.136 nats about the disease", (160 / 200) / (110 / 120)),
]
"""A page, what it states of a level from which something becomes possible, and the share behind it."""


@pytest.mark.parametrize(("page", "stated", "share"), THRESHOLDS)
def test_a_level_from_which_harm_is_possible_is_rounded_down(
    page: str, stated: str, share: float
) -> None:
    assert stated in " ".join(read_page(page).split())
    level = next(float(one) for one in re.findall(r"\d+\.\d{2,}", stated) if float(one) != share)
    assert level <= -math.log(share) < level + 0.01


def test_what_the_outputs_of_the_page_on_information_reveal() -> None:
    page = " ".join(read_page("columns.md").split())
    prior = Prior.from_counts({"a": 40, "b": 30, "c": 20, "d": 10})
    matrix = solve(design(prior, PML(0.5), MutualInformation())).mechanism.matrix
    shares = prior.pmf @ matrix
    assert (matrix[:, 0] == 0).tolist() == [False, False, True, True]
    assert (matrix[1, 2:] == 0).all()
    assert f"{shares[[0, 2, 3]].sum():.0%}".replace("%", " %") + " of the people get" in page
    after = prior.pmf[0] * matrix[0, 1] / shares[1]
    assert (
        f"for {100 * shares[1]:.0f} % of the people, its probability falls from 40 % to {100 * after:.0f} %"
        in page
    )


@pytest.mark.parametrize("epsilon", [0.02, 0.05, 0.1])
def test_what_pml_implies_of_the_odds_in_the_first_region(epsilon: float) -> None:
    prior = [0.4, 0.3, 0.2, 0.1]
    stated = epsilon - math.log((1 - 0.9 * math.exp(epsilon)) / 0.1)
    assert ldp_level(closed_forms.high_privacy(prior, epsilon)) == pytest.approx(stated, rel=1e-9)
    rng = np.random.default_rng(1)
    for _ in range(200):
        matrix = rng.dirichlet([0.3] * 3, 4)
        shares = prior @ matrix
        weight = (math.exp(epsilon) - 1) / (
            (matrix / shares).max() - 1
        )  # then the level is epsilon
        mixed = weight * matrix + (1 - weight) * shares
        assert leakage_level(prior, mixed) == pytest.approx(epsilon, rel=1e-9)
        assert ldp_level(mixed) <= stated + 1e-9


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


INDEXES = ("results.md", "theorems.md", "reproduction.md")
"""Pages that name code by its place, as do those of theory."""


def homes_of_names() -> dict[str, set[str]]:
    """The modules of each public name that `pmlopt` itself does not have, without those of errors."""
    names = module("public_names")
    found: dict[str, set[str]] = {}
    for written in names.written_names().values():
        home, _, name = written.removeprefix("pmlopt.").rpartition(".")
        found.setdefault(name, set()).add(home)
    return {
        name: homes
        for name, homes in found.items()
        if not homes & {"", "errors"} and re.search("[A-Z_]", name)
    }


def test_a_guide_states_where_a_name_is_imported_from() -> None:
    homes = homes_of_names()
    assert homes["people_needed"] == {"estimation"}
    assert "Prior" not in homes
    missing = []
    for path in (ROOT / "docs").rglob("*.md"):
        if path.parent.name == "theory" or path.name in INDEXES:
            continue
        text = path.read_text("utf-8")
        for name in set(re.findall(r"`(\w+)(?:\([^`]*)?`", text)) & set(homes):
            stated = "|".join(map(re.escape, homes[name]))
            if not re.search(rf"(?<![\w/])(?:{stated})(?:\.{name}\b| import\b|`)", text):
                missing.append(f"{path.name}: {name} of {homes[name]}")
    assert missing == []


def test_no_page_installs_what_is_not_released() -> None:
    """On an index anybody may take the name."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    asked = re.compile(r"pip install ['\"]?pmlopt\b|install `pmlopt", re.IGNORECASE)
    assert [path.name for path in pages if asked.search(path.read_text("utf-8"))] == []
