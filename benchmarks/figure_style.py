"""The style of all figures: legible at the width of a column, labels at the curves, colours for every eye.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; no figure rests on colour
alone. Figures are SVG, the same bytes each time, whose text is text; it is as dark as reading needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from pmlopt.programs.plots import save_figure

BLUE, ORANGE, GREEN, PURPLE, SKY, RED = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
)
BLACK, GREY = "#222222", "#6b6b6b"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
WIDTH = 6.4
"""Inches of a figure, which a page shows at the width of its text."""

PANEL = 2.9
"""Inches of the height of a row of panels."""

SETTINGS: Mapping[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "grid.linewidth": 0.4,
    "grid.color": "#dddddd",
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "figure.facecolor": "white",  # what is dark on a dark page cannot be read
    "svg.hashsalt": "pmlopt",
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw within it."""
    with mpl.rc_context(dict(SETTINGS)):
        yield


def panels(
    rows: int = 1, columns: int = 1, height: float = PANEL, **sharing: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of one width, and its axes row by row."""
    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns, **sharing))
    return figure, list(grid.ravel())


def label_ends(
    axes: Axes, *, gap: float = 0.075, right: float = 0.0, order: Sequence[str] = ()
) -> None:
    """Write the names of curves right of the axes, each joined to its end, where they do not overlap.

    Args:
        axes: its curves with a label that does not start with an underscore.
        gap: the least distance of two names, as a share of the height.
        right: how far beyond the usual place they start, as a share of the width.
        order: names of curves that end at one point, from above.
    """
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    ends = sorted(((_end(axes, line), line) for line in lines), key=lambda end: _rank(end, order))
    heights = _apart([end[0][1] for end in ends], gap)
    for ((across, upright), line), height in zip(ends, heights, strict=True):
        axes.annotate(
            str(line.get_label()),
            xy=(across, upright),
            xytext=(1.03 + right, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=darken(line.get_color()),
            va="center",
            fontsize=8,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": line.get_color(),
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 1,
                "relpos": (0.0, 0.5),
            }
            if abs(height - upright) > 0.03 or across < 0.97
            else None,
        )


def _rank(end: tuple[tuple[float, float], Line2D], order: Sequence[str]) -> tuple[float, int]:
    name = str(end[1].get_label())
    return round(end[0][1], 2), -order.index(name) if name in order else 0


def _end(axes: Axes, line: Line2D) -> tuple[float, float]:
    """The last point of a curve within the axes, as shares of their width and height."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    points = np.column_stack(
        [np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)]
    )
    points = points[np.isfinite(points).all(axis=1)]
    places = axes.transAxes.inverted().transform(axes.transData.transform(points))
    inside = places[(places >= -1e-6).all(axis=1) & (places <= 1 + 1e-6).all(axis=1)]
    across, upright = (inside if len(inside) else np.clip(places, 0, 1))[-1]
    return float(across), float(upright)


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights with at least a gap between them, around where they were."""
    moved = list(heights)
    for _ in range(200):
        for k in range(len(moved) - 1):
            short = gap - (moved[k + 1] - moved[k])
            if short > 1e-9:
                moved[k] -= short / 2
                moved[k + 1] += short / 2
        if moved:
            moved[0], moved[-1] = max(moved[0], 0.02), min(moved[-1], 0.98)
    return moved


def note(axes: Axes, text: str, at: tuple[float, float], colour: str = BLACK, **more: Any) -> None:
    """A name beside a curve, in units of the data, readable on top of lines."""
    settings = {"ha": "left", "va": "center", **more}
    axes.text(
        *at,
        text,
        color=darken(colour),
        fontsize=8,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
        **settings,
    )


def darken(colour: Any) -> str:
    """Darken a colour until its letters have a contrast of 4.5 on white."""
    parts = np.array(to_rgb(colour))
    while 1.05 / (_luminance(parts) + 0.05) < 4.5:
        parts = parts * 0.97
    return to_hex(parts)


def _luminance(parts: NDArray[np.float64]) -> float:
    """Compute the relative luminance of sRGB, as guidelines of accessibility define it."""
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def explain(
    part: Axes | Figure, signs: Mapping[str, Mapping[str, Any]], place: str, columns: int = 1
) -> None:
    """Explain lines and marks that several curves share, by the settings of each."""
    handles = [
        Line2D([], [], **{"color": BLACK, "linewidth": 1.2, **settings})
        for settings in signs.values()
    ]
    part.legend(handles, list(signs), frameon=False, fontsize=7.5, loc=place, ncols=columns)


def write(figure: Figure, path: Path) -> None:
    """Save a figure, the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path)
