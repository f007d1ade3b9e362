"""What notebooks, data frames, papers and pictures get."""

import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_cases import REQUIREMENTS

from pmlopt import (
    PML,
    ExpectedLoss,
    Mechanism,
    MutualInformation,
    Prior,
    audit,
    design,
    envelope,
    estimate,
    solve,
    solvers_for,
    sweep,
)
from pmlopt.core.display import format_facts_html, format_matrix_text, format_table_html
from pmlopt.errors import FileFormatError, MissingExtraError, SweepError
from pmlopt.model.utility import hamming
from pmlopt.programs import Alternating, BranchAndBound
from pmlopt.sweeps.table import SweepRow

PRIOR = Prior.from_counts({"<b>yes</b>": 60, "no": 40})


@pytest.fixture(scope="module")
def result() -> Any:
    return solve(design(PRIOR, PML(0.3), ExpectedLoss(hamming)))


@pytest.fixture(scope="module")
def table() -> Any:
    return sweep(
        lambda epsilon: design(PRIOR, PML(epsilon), MutualInformation()),
        {"epsilon": [0.1, 0.2, 0.4]},
    )


def test_what_is_printed_is_short(result: Any, table: Any) -> None:
    large = Mechanism(np.full((300, 300), 1 / 300))
    program = design(PRIOR, PML(0.3), ExpectedLoss(hamming))
    other = solve(envelope(PRIOR, result.mechanism, 0.2))
    shown = [
        PRIOR,
        large,
        program,
        result,
        result.certificate,
        other.certificate,
        table,
        Prior.uniform(1000),
    ]
    assert [repr(one) for one in shown if len(repr(one)) > 260] == []
    assert repr(table) == "<Sweep of 3 points over epsilon; 0 failed>"
    assert f"value {result.value:.9g}" in repr(result.certificate)


def test_notebooks_get_tables_without_the_markup_of_labels(result: Any, table: Any) -> None:
    for one in (PRIOR, result, result.mechanism, result.certificate, table):
        html = one._repr_html_()
        assert html.count("<table>") == html.count("</table>") >= 1
        assert "<b>yes" not in html
    assert "&lt;b&gt;yes" in result._repr_html_()
    assert "pml 0.3 of at most 0.3 nats" in result._repr_html_()
    assert "(2, 2)" in design(PRIOR, PML(0.3), ExpectedLoss(hamming))._repr_html_()


def test_large_tables_say_what_is_left_out() -> None:
    html = Mechanism(np.full((20, 30), 1 / 30))._repr_html_()
    assert "and 8 more rows" in html
    assert "and 18 more columns" in html
    assert "and 988 more rows" in Prior.uniform(1000)._repr_html_()
    assert "more" not in format_table_html("t", ["a"], [["1"]])
    assert "&amp;" in format_facts_html("a & b", {})


def test_frames_keep_labels_that_are_tuples() -> None:
    pairs = [("no", 1), ("yes", 2)]
    frame = Mechanism([[0.75, 0.25], [0.25, 0.75]], pairs, ["a", "b"]).to_pandas()
    assert list(frame.index) == pairs
    assert frame["b"].iloc[0] == 0.25
    assert Prior([0.5, 0.5], pairs).to_pandas()["probability"].tolist() == [0.5, 0.5]


def test_a_sweep_is_a_frame_a_latex_table_and_a_curve_for_each_of_a_second_coordinate(
    table: Any,
) -> None:
    frame = table.to_pandas()
    assert frame["value"].tolist() == table.column("value").tolist()
    assert table.to_latex(["epsilon", "solver"]).count(r"\\") == 4
    axes = table.plot().axes[0]
    assert axes.lines[0].get_xdata().tolist() == [0.1, 0.2, 0.4]
    assert axes.lines[0].get_ydata().tolist() == table.column("value").tolist()
    with pytest.raises(SweepError, match="no numbers"):
        table.plot(value="solver")
    two = sweep(
        lambda epsilon, p: design([p, 1 - p], PML(epsilon), "hamming"),
        {"epsilon": [0.1, 0.2], "p": [0.4, 0.5]},
    )
    lines: list[Any] = list(two.plot().axes[0].lines)
    assert [line.get_label() for line in lines] == ["p=0.4", "p=0.5"]
    assert all(math.isfinite(height) for line in lines for height in line.get_ydata())


@pytest.mark.parametrize(("name", "mark"), [("c.png", b"\x89PNG"), ("c.svg", b"<?xml")])
def test_the_picture_of_a_sweep_is_written(
    table: Any, tmp_path: Path, name: str, mark: bytes
) -> None:
    figure = table.plot(str(tmp_path / name))
    assert (tmp_path / name).read_bytes().startswith(mark)
    assert len(figure.axes) == 1
    table.plot(tmp_path / name, value="level")
    for wrong in ("c.txt", "level"):
        with pytest.raises(FileFormatError):
            table.plot(tmp_path / wrong)
        assert not (tmp_path / wrong).exists()


def test_pictures_have_the_leakage_where_there_is_a_prior(result: Any) -> None:
    assert len(result.plot().axes) == 3
    assert len(result.mechanism.plot().axes) == 2
    bars: list[Any] = list(PRIOR.plot().axes[0].patches)
    assert [bar.get_height() for bar in bars] == [0.6, 0.4]


def test_a_frame_without_pandas_names_the_extra(monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="the extra pandas of pmlopt"):
        PRIOR.to_pandas()


def test_methods_and_audits_are_printed_in_a_line() -> None:
    found = audit(PRIOR, [[0.75, 0.25], [0.25, 0.75]])
    assert repr(found).startswith("<Audit of 2 outcomes: pml 0.")
    assert f"ldp {math.log(3):.6g} nats" in repr(found)
    methods = [
        *solvers_for(design(PRIOR, PML(0.3), "hamming")),
        *solvers_for(design(PRIOR, PML(0.3), MutualInformation())),
        *solvers_for(envelope(PRIOR, [[0.75, 0.25], [0.25, 0.75]], 0.2)),
        Alternating(restarts=4),
        BranchAndBound(),
    ]
    for item in (found, *methods):
        assert not re.search(r"\n|0x[0-9a-f]{4}|functools|<function", repr(item)), repr(item)
        assert len(repr(item)) <= 260


def test_audits_and_requirements_are_tables_in_notebooks() -> None:
    page = audit(PRIOR, [[0.75, 0.25], [0.25, 0.75]])._repr_html_()
    assert f"<td style='text-align:left'>{math.log(3):.6g} nats</td>" in page
    assert "&lt;b&gt;yes" in page
    assert "<b>yes" not in page


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_each_requirement_is_a_table_of_its_limits(name: str) -> None:
    requirement = REQUIREMENTS[name]
    page = requirement._repr_html_()
    assert page.count("<table>") == page.count("</table>") == 1
    for limit, value in requirement.limits.items():
        assert f">limit of {limit}</th>" in page
        assert f">{value:.6g} nats</td>" in page
    # what a repr has of its own brackets is escaped
    assert not re.search(r"<(?!/?(?:div|b|table|tr|th|td)\b)", page)


def test_sweeps_are_counted_and_iterated(table: Any) -> None:
    assert len(table) == 3
    assert [row.point["epsilon"] for row in table] == [0.1, 0.2, 0.4]
    assert bool(replace(table, rows=()))
    assert len(replace(table, rows=())) == 0


def test_sweeps_are_streams_of_arrow(table: Any) -> None:
    import polars
    import pyarrow

    failed = SweepRow({"epsilon": 0.8}, "failed", error="no solver")
    whole = replace(table, rows=(*table.rows, failed))
    read = pyarrow.table(whole)
    assert read.column_names == list(whole.columns)
    assert read["value"].to_pylist() == [*table.column("value").tolist(), None]
    assert read["error"].to_pylist() == [None, None, None, "no solver"]
    frame = polars.DataFrame(whole)
    assert frame["epsilon"].to_list() == [0.1, 0.2, 0.4, 0.8]
    assert frame["warm_started"].dtype == polars.Boolean
    assert pyarrow.table(replace(table, rows=())).num_rows == 0


def test_streams_of_arrow_name_the_package_that_is_missing(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="streams of Arrow need pyarrow"):
        table.__arrow_c_stream__()


def test_a_large_matrix_is_printed_in_part() -> None:
    text = format_matrix_text(np.full((14, 13), 1 / 13), [*"abcdefghijklmn"], range(13))
    lines = text.splitlines()
    assert lines[1].split() == ["a", *["0.0769"] * 12]
    assert lines[-2:] == ["and 2 more rows", "and 1 more column"]
    assert len(lines) == 1 + 12 + 2


def test_labels_of_a_foreign_file_send_nothing_to_the_terminal() -> None:
    mechanism = Mechanism([[0.5, 0.5], [0.25, 0.75]], ["a\nb", "\x1b[31mred"], [2024, 2025])
    found = estimate(mechanism, {2024: 30, 2025: 70})
    for text, lines in ((str(mechanism), 3), (str(found), 4)):
        assert len(text.splitlines()) == lines
        assert "\x1b" not in text
        assert "a\\nb" in text
