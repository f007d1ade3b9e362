"""The sections of reports: tables and lists in Markdown, outcomes that are not listed, and baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pmlopt import PML, ExpectedLoss, design, solve
from pmlopt.programs.certificate import Verdict
from pmlopt.programs.reports import pages
from pmlopt.programs.reports.baselines import fit_randomized_response, make_utility_measure
from pmlopt.programs.reports.pages import ReportSection, build_sections, render_page

PRIOR = [0.5, 0.3, 0.2]


def test_a_page_in_markdown_has_a_line_for_each_row_and_each_item() -> None:
    sections = [
        ReportSection("Title", ["one", "two"], kind="list"),
        ReportSection("", ["careful"], ("a", "b"), [("c", "d"), ("e", "f")], kind="warning"),
    ]
    page = render_page("Page", sections, ".md").decode()
    assert page.split("\n") == [
        "# Page", "", "## Title", "", "- one", "", "- two", "", "**Warning:** careful", "",
        "| a | b |", "| --- | --- |", "| c | d |", "| e | f |", "",
    ]  # fmt: skip


def test_outcomes_that_are_not_listed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_REPORTED_OUTCOMES", 1)
    certificate = solve(design(PRIOR, PML(0.4), "hamming")).certificate
    outcomes = int((certificate.mechanism.matrix.max(axis=0) > 0).sum())
    assert outcomes > 1
    lines = [
        line
        for one in build_sections(certificate, Verdict("", "", ()), "file")
        for line in one.lines
    ]
    assert f"{outcomes - 1} more outcomes, which reveal less, are not listed." in lines


def test_information_is_in_nats_and_other_measures_have_no_unit() -> None:
    names: Any = (
        ("mutual-information", "mutual information, in nats"),
        ("tv", "total variation"),
    )
    for name, unit in names:
        certificate: Any = solve(design([0.5, 0.5], PML(0.2), name)).certificate
        measure = make_utility_measure(certificate)
        assert measure is not None
        assert measure.utility_name == unit


def test_the_response_is_the_mixture_with_the_uniform_law_that_just_keeps_the_level() -> None:
    """Of the rarest letter: `(1 - w) + w / 3 = e^epsilon` times `(1 - w) / 5 + w / 3`."""
    certificate = solve(design(PRIOR, PML(0.4), ExpectedLoss(1 - np.eye(3)))).certificate
    found = fit_randomized_response(certificate)
    assert found is not None
    factor = np.exp(0.4)
    weight = (1 - factor / 5) / (2 / 3 + factor * (1 / 3 - 1 / 5))
    assert found == pytest.approx((1 - weight) * np.eye(3) + weight / 3)
