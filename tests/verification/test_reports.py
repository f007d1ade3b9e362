"""Reports: self-contained pages, with what is promised, what is not, and the baselines."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from commands import run
from saved_cases import solved

from pmlopt import PML, ExpectedGain, ExpectedLoss, Prior, design, solve
from pmlopt.constraints import Invariant
from pmlopt.errors import FileFormatError
from pmlopt.model.utility import absolute
from pmlopt.programs.reports.baselines import compute_baselines
from pmlopt.verification import write_report

SHOWN = (
    "counts", "gain", "ball", "secret", "information", "estimation", "worst-case", "envelope",
    "record-capacity",
)  # fmt: skip
VOID = {"meta", "rect", "line", "br"}


class Balanced(HTMLParser):
    """Whether every tag is closed, and nothing is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "img", "link", "iframe")
        assert not any(name in ("src", "href") for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", SHOWN)
def test_a_report_is_one_page_without_network(name: str, tmp_path: Path) -> None:
    result = solved(name)
    result.report(tmp_path / "promise.html")
    page = (tmp_path / "promise.html").read_text()
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r"https?:|url\(|@import", page)
    assert "What is not promised" in page
    assert "all of it, and it holds" in page
    result.report(tmp_path / "promise.md")
    assert "## How it was checked" in (tmp_path / "promise.md").read_text()


def test_a_result_writes_its_own_report(tmp_path: Path) -> None:
    result = solved("pml")
    result.save(tmp_path / "mechanism.json")
    said = "everything else that the file states follows"  # the one claim that is about the file
    for name in ("promise.html", "promise.md"):
        result.report(tmp_path / name)
        write_report(tmp_path / "mechanism.json", tmp_path / f"same-{name}")
        assert said in (tmp_path / f"same-{name}").read_text()
        assert said not in (tmp_path / name).read_text()
    with pytest.raises(FileFormatError):
        result.report(tmp_path / "promise.pdf")


def test_the_command_writes_beside_the_file_and_labels_cannot_write_into_it(tmp_path: Path) -> None:
    prior = Prior([0.5, 0.5], ["<script>alert(1)</script>", "b|c"])
    solve(design(prior, PML(0.2), ExpectedGain(np.eye(2)))).save(tmp_path / "result.json")
    assert "result.html" in run("report", tmp_path / "result.json")
    page = (tmp_path / "result.html").read_text()
    assert "randomized response" in page
    assert "<script>" not in page
    (tmp_path / "matrix.csv").write_text(",x\na,1\n")
    run("report", tmp_path / "matrix.csv", code=2)
    run("report", tmp_path / "result.json", "-o", tmp_path / "page.pdf", code=2)
    with pytest.raises(FileFormatError):
        write_report(tmp_path / "nothing.json", tmp_path / "page.html")


def test_baselines_are_what_they_are_called() -> None:
    result = solve(design([0.5, 0.25, 0.25], PML(math.log(1.5)), ExpectedGain(np.eye(3))))
    found = compute_baselines(result.certificate)
    assert found is not None
    assert found.without_release == 0.5
    assert found.everything == 1.0
    assert found.response is not None
    # an own letter with 1 - t + t / 3 is 3/2 of its mean (1 - t) / 4 + t / 3 at t = 15 / 19
    assert found.response == pytest.approx(1 - 2 / 3 * 15 / 19, abs=1e-9)
    assert found.without_release <= found.design <= found.everything
    assert found.response <= found.design + 1e-9
    # it is worse than nothing here, and nobody is told of it: 9/19 is less than 1/2
    assert "randomized response" not in str(found.table_rows)
    flip = compute_baselines(
        solve(design([0.5, 0.5], PML(0.2), ExpectedGain(np.eye(2)))).certificate
    )
    assert flip is not None
    assert "randomized response" in str(flip.table_rows)


def test_a_design_whose_constraints_cost_more_than_it_keeps_says_so() -> None:
    # kept shares move half of the people of a constant output, and more than half where little may be told
    prior, loss = Prior([0.2, 0.6, 0.2], [1, 2, 3]), ExpectedLoss(absolute)
    kept = solve(design(prior, PML(0.05), loss, constraints=[Invariant()]))
    found = compute_baselines(kept.certificate)
    assert found is not None
    assert found.without_release == pytest.approx(0.4)  # all get 2
    assert found.design > found.without_release
    assert "releasing nothing (better, but against the constraints) 0.4" in str(found)
    free = compute_baselines(solve(design(prior, PML(0.05), loss)).certificate)
    assert "better" not in str(free)


def test_a_limit_that_binds_nothing_is_told(tmp_path: Path) -> None:
    prior = tmp_path / "prior.csv"
    prior.write_text("letter,p\na,0.5\nb,0.5\n")
    said = run("design", "--prior", prior, "--epsilon", "10", "--utility", "hamming")
    assert "The limit binds nothing" in said
    assert "Anyone who sees the output a (probability 0.5) knows with certainty" in said
    assert "expected loss: releasing nothing 0.5" in said
