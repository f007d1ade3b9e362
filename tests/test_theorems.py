"""The theorem index lists every numbered result of its papers, and all that it names exists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest
from documents import ROOT

PAGE = ROOT / "docs" / "theorems.md"
TESTS: dict[str, dict[str, list[str]]] = tomllib.loads(
    (ROOT / "tests" / "theorems.toml").read_text("utf-8")
)
"""The tests of each row, by its table and its first cell."""


def first(count: int) -> tuple[str, ...]:
    return tuple(str(number + 1) for number in range(count))


NUMBERED: dict[str, dict[str, tuple[str, ...]]] = {
    "grosse2024extremal": {"Theorem": ("1", "2", "3", "4", "6"), "Lemma": first(2)},
    "grosse2025empirical": {
        "Definition": first(6), "Theorem": first(5), "Proposition": first(3), "Corollary": first(3),
        "Example": first(2), "Remark": first(4), "Figure": first(7),
    },
    "saeidian2025histogram": {"Definition": first(3), "Theorem": ("4",), "Figure": first(1)},
    "song2026worstcase": {
        "Definition": first(1), "Lemma": first(3), "Theorem": first(1), "Proposition": first(1),
        "Corollary": first(2), "Example": first(1), "problem": ("(1)", "(2)", "(10)"), "Figure": first(3),
    },
    "saeidian2026envelopes": {
        "Definition": first(5), "Theorem": first(5), "Lemma": first(3), "Corollary": first(1),
        "Example": first(4), "Algorithm": first(1), "Figure": first(2),
    },
    "wu2026entropy": {
        "Definition": ("2.1", "2.2", "2.3", "3.1"), "Problem": first(3), "Theorem": first(9),
        "Lemma": first(1), "Assumption": first(2), "Algorithm": first(11), "Table": first(3),
        "Figure": first(7),
    },
}  # fmt: skip
"""The numbered results of each paper, read from the papers; of grosse2024extremal those that are cited."""

WU = "wu2026entropy"

EXPECTED = {
    (paper, f"{kind} {number}")
    for paper, kinds in NUMBERED.items()
    for kind, numbers in kinds.items()
    for number in numbers
}


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells, without the bars, and the heading above the table."""

    cells: tuple[str, ...]
    heading: str

    def code(self, column: int) -> list[str]:
        """What a cell has in code style."""
        return re.findall(r"`([^`]+)`", self.cells[column])

    @property
    def tests(self) -> list[str]:
        """The tests that check it."""
        number = re.match(r"\[(\d+)\]", self.cells[0])
        return TESTS[table_name(self.heading)].get(
            f"Theorem {number[1]}" if number else self.cells[0], []
        )

    @property
    def results(self) -> list[tuple[str, str]]:
        """The numbers in the first cell, each with its paper."""
        return [(self.heading, place) for place in self.cells[0].split(", ")]


def table_name(heading: str) -> str:
    """The name of a table in tests/theorems.toml."""
    return {"The theorems of pmlopt in short": "pmlopt", "Proved here": "proved here"}.get(
        heading, heading
    )


def tables(text: str) -> dict[str, list[Row]]:
    """The rows of each table, by the heading above it."""
    found: dict[str, list[Row]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            named = re.search(r"\{ #(\w+) \}$", line)
            heading = named[1] if named else line.lstrip("# ")
        elif line.startswith("| "):
            found.setdefault(heading, []).append(
                Row(tuple(cell.strip() for cell in line.split("|")[1:-1]), heading)
            )
    return {name: rows[2:] for name, rows in found.items()}


TEXT = PAGE.read_text("utf-8")
TABLES = tables(TEXT)
CITED = [row for name, rows in TABLES.items() if name in NUMBERED for row in rows]
OWN = TABLES["Proved here"]
SHORT = TABLES["The theorems of pmlopt in short"]
COUNTS = TABLES["The papers in short"]
STATUSES = ("corrected", "sharper", "not computed")
"""The statuses that are counted for each paper, in the order of the columns."""

ROWS = [(row, 3) for row in CITED] + [(row, 1) for row in OWN] + [(row, 3) for row in SHORT]
"""Each row with the column of its functions; a column of problems follows."""


def words(case: tuple[Row, int]) -> str:
    return f"{case[0].heading}, {case[0].cells[0]}"


@cache
def names_in(path: Path) -> frozenset[str]:
    """The tests of a file as pytest names them, without importing it."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef)
            }
    return frozenset(name for name in names if name.split("::")[-1].startswith("test_"))


def anchors(text: str) -> set[str]:
    """The headings and named parts of a page as links name them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    named = re.findall(r'<div id="([\w-]+)"|\{ #([\w-]+) \}', text)
    return {name for names in named for name in names} | {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
        for heading in headings
    }


def test_every_numbered_result_has_a_row_and_no_row_another_number() -> None:
    found = Counter(result for row in CITED for result in row.results)
    assert not EXPECTED - set(found), "no row"
    assert not [result for result, times in found.items() if times > 1], "several rows"
    for paper, place in found:
        kind = place.split()[0]
        if kind in NUMBERED[paper] and paper != "grosse2024extremal":
            assert (paper, place) in EXPECTED


@pytest.mark.parametrize("case", ROWS, ids=words)
def test_a_row_names_what_computes_it_and_a_test_that_exist_or_says_why_not(
    case: tuple[Row, int],
) -> None:
    row, column = case
    assert len(row.cells) == {1: 4, 3: 5}[column]
    if any(name.startswith("pmlopt.") for name in row.code(column)):
        assert row.tests, "no test"
    elif not row.code(column):
        assert re.match(r"(not computed|nothing to compute|assumed|used) ?", row.cells[column])
    for name in row.code(column):
        if name.startswith("pmlopt."):
            resolve_name(name)
        else:
            assert (ROOT / name).is_file(), name
    for test in row.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), path
        assert name in names_in(ROOT / path), test
    for problem in row.code(column + 1):
        assert list((ROOT / "problems").glob(f"*/{problem}.toml")), problem


def test_no_test_is_listed_for_a_row_that_is_not_there() -> None:
    listed = Counter(table_name(row.heading) for row, _ in ROWS if row.tests)
    assert listed == {table: len(rows) for table, rows in TESTS.items()}
    assert all(tests for rows in TESTS.values() for tests in rows.values())


def test_the_counts_of_each_paper_are_those_of_its_rows() -> None:
    listed = {row.cells[0].split("]")[0].strip("["): row.cells[2:] for row in COUNTS}
    assert listed == {
        paper: tuple(
            str(count)
            for count in (
                len(TABLES[paper]),
                *(sum(row.cells[2] == status for row in TABLES[paper]) for status in STATUSES),
            )
        )
        for paper in NUMBERED
    }


def test_every_key_is_in_the_references() -> None:
    known = set(
        re.findall(
            r"^@\w+\{(\w+),", (ROOT / "problems" / "references.bib").read_text("utf-8"), re.M
        )
    )
    assert set(re.findall(r"\b[a-z]+(?:19|20)\d\d[a-z]+\b", TEXT)) <= known


def test_every_link_leads_somewhere() -> None:
    for link in set(re.findall(r"\]\(([^)]+)\)", TEXT)):
        page, _, anchor = link.partition("#")
        target = PAGE.parent / page if page else PAGE
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target.read_text("utf-8")), link


def test_every_numbered_theorem_of_our_own_has_a_proof_and_a_row() -> None:
    page = (PAGE.parent / "results.md").read_text("utf-8")
    parts = re.split(r"^### (Theorem \d+): ", page, flags=re.MULTILINE)[1:]
    theorems = dict(zip(parts[::2], parts[1::2], strict=True))
    assert [f"Theorem {number + 1}" for number in range(len(theorems))] == list(theorems)
    assert all("*Proof.*" in text and "∎" in text for text in theorems.values())
    short = re.findall(
        r"\[(\d+)\]\(results\.md#theorem-(\d+)-", "".join(row.cells[0] for row in SHORT)
    )
    assert [f"Theorem {number}" for number, _ in short] == list(theorems)
    assert all(number == target for number, target in short)


def test_a_status_is_one_that_the_page_explains() -> None:
    assert {row.cells[2] for row in CITED} == {"", "its proof corrected", *STATUSES}
    assert all(f"**{status}**" in TEXT for status in ("its proof corrected", *STATUSES))


def test_what_is_proved_here_is_listed_once_and_linked_to_its_proof() -> None:
    assert len(SHORT) == 26
    assert len(OWN) == 18
    assert all(re.search(r"\]\([\w/]+\.md", row.cells[3]) for row in OWN)
    assert not any("[Theorem " in row.cells[3] for row in OWN), "has a row of its own"


def test_every_figure_of_a_paper_that_is_drawn_is_in_the_gallery() -> None:
    for row in CITED:
        if (
            any(place.startswith("Figure") for _, place in row.results)
            and "benchmarks/" in row.cells[3]
        ):
            assert re.search(r"\]\(gallery/index\.md#[\w-]+\)", row.cells[1]), row.cells[0]


def test_every_figure_and_table_that_has_numbers_is_computed_by_one_command() -> None:
    listed = tomllib.loads((ROOT / "benchmarks" / "printed.toml").read_text("utf-8"))[
        "figure"
    ].values()
    computed = {(figure["paper"], figure["place"].partition(",")[0]) for figure in listed}
    without = {
        ("grosse2025empirical", "Figure 1"),
        *((WU, f"{kind} 1") for kind in ("Table", "Figure")),
    }
    without |= {(WU, f"{kind} 2") for kind in ("Table", "Figure")}  # sketches and lists of words
    assert (
        computed
        == {place for place in EXPECTED if place[1].startswith(("Figure", "Table"))} - without
    )
