"""The README's commands are the ones that are checked, its links lead somewhere, and its table is true."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

import pytest
from documents import ROOT, blocks

from pmlopt import LDP, PML, ExpectedLoss, Prior, design, solve
from pmlopt.estimation import estimable
from pmlopt.library import find
from pmlopt.model.utility import absolute

README = (ROOT / "README.md").read_text()


def test_there_are_two_commands_of_one_line_each() -> None:
    commands = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    assert len(commands) == 2
    for command in commands:
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && ")
    problem = re.search(r"solve (\S+\.toml)", commands[0])
    assert problem is not None
    assert (ROOT / problem[1]).is_file()


def test_the_first_result_prints_what_is_shown() -> None:
    page = blocks(README)
    first = next(place for place, block in enumerate(page) if block.language == "python")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(page[first].code, {})
    assert printed.getvalue() == page[first + 1].code
    assert page[first].code.count("\n") == 6


def test_the_page_is_short() -> None:
    assert README.count("\n") <= 120
    assert len(README.split()) <= 900


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_losses_at_epsilon_1_are_true() -> None:
    prior = find("adult-education-absolute").prior
    loss = ExpectedLoss(absolute)
    known, any_shares = (solve(design(prior, one(1.0), loss)).value for one in (PML, LDP))
    text = " ".join(README.split())
    assert f"it is **{known:.3f}** under `PML(1)`" in text
    assert f"and {any_shares:.3f} under local differential privacy" in text


def test_what_is_said_of_the_first_example_without_its_constraint_is_true() -> None:
    free = solve(
        design(Prior.from_counts({"never": 50, "former": 30, "daily": 20}), PML(0.6), "hamming")
    )
    assert "without it 27 % change, and `daily` is never published" in " ".join(README.split())
    assert f"{free.value:.2f}" == "0.27"
    assert estimable(free.mechanism).never == ("daily",)


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("pointwise maximal leakage", "choosing/glossary.md"), ("lift", "columns.md"),
        ("funnel", "secrets.md"), ("d-privacy", "continuous.md"),
        ("geo-indistinguishability", "continuous.md"), ("PRAM", "post_randomization.md"),
        ("extremal mechanism", "columns.md"),
    ],
)  # fmt: skip
def test_the_words_of_the_field_are_where_a_person_of_the_field_looks(word: str, page: str) -> None:
    glossary = (ROOT / "docs" / "choosing" / "glossary.md").read_text("utf-8")
    assert (
        re.search(rf"^\| [^|]*{word}", glossary, re.MULTILINE | re.IGNORECASE) or word in glossary
    )
    assert word in (ROOT / "docs" / page).read_text("utf-8")
    assert word in README
