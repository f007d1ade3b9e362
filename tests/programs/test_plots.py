"""Pictures: what they show, and that they are written whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import Mechanism, Prior
from pmlopt.errors import FileFormatError, MissingExtraError
from pmlopt.programs.plots import draw_curves, draw_mechanism, save_figure

PRIOR = Prior([0.5, 0.25, 0.25], ["a", "b", "c"])
MECHANISM = Mechanism([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]], ["a", "b", "c"])


def test_the_bars_are_the_leakages_of_the_support() -> None:
    axes: list[Any] = draw_mechanism(PRIOR, MECHANISM).axes
    top, main = axes[:2]
    heights = [bar.get_height() for bar in top.patches]
    assert heights == pytest.approx([np.log(1 / 0.75), np.log(2)])
    assert [label.get_text() for label in main.get_yticklabels()] == ["a", "b", "c"]
    assert np.array_equal(main.images[0].get_array(), MECHANISM.matrix)


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_the_ending_chooses_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    path = tmp_path / f"figure.{ending}"
    save_figure(draw_mechanism(PRIOR, MECHANISM), path)
    assert path.read_bytes().startswith(start)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"use \.png, \.pdf, \.svg"):
        save_figure(draw_mechanism(PRIOR, MECHANISM), tmp_path / "figure.bmp")
    assert list(tmp_path.iterdir()) == []


def test_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plots\]'"):
        draw_mechanism(PRIOR, MECHANISM)


def test_a_figure_of_utilities_has_a_line_for_each_kind() -> None:
    figure = draw_curves(
        [0.0, 1.0], {"PML": [0.0, 0.9], "LDP": [0.0, 0.1]}, "mutual information [nats]"
    )
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.get_lines()] == ["PML", "LDP"]
    assert axes.get_ylabel() == "mutual information [nats]"
