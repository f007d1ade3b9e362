"""What notebooks, data frames, papers and pictures get."""

import math
from typing import Any

import numpy as np
import pytest

from pmlopt import (
    PML,
    ExpectedLoss,
    Mechanism,
    MutualInformation,
    Prior,
    design,
    envelope,
    solve,
    sweep,
)
from pmlopt.core.display import format_facts_html, format_table_html
from pmlopt.errors import MissingExtraError, SweepError
from pmlopt.model.utility import hamming

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
    assert "pml 0.3 &lt;= 0.3 nats" in result._repr_html_()
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
        table.plot("solver")
    two = sweep(
        lambda epsilon, p: design([p, 1 - p], PML(epsilon), "hamming"),
        {"epsilon": [0.1, 0.2], "p": [0.4, 0.5]},
    )
    lines: list[Any] = list(two.plot().axes[0].lines)
    assert [line.get_label() for line in lines] == ["p=0.4", "p=0.5"]
    assert all(math.isfinite(height) for line in lines for height in line.get_ydata())


def test_pictures_have_the_leakage_where_there_is_a_prior(result: Any) -> None:
    assert len(result.plot().axes) == 3
    assert len(result.mechanism.plot().axes) == 2
    bars: list[Any] = list(PRIOR.plot().axes[0].patches)
    assert [bar.get_height() for bar in bars] == [0.6, 0.4]


def test_a_frame_without_pandas_names_the_extra(monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pmlopt\[pandas\]"):
        PRIOR.to_pandas()
