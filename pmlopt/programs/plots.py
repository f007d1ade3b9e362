"""Plots of mechanisms and curves; they need the extra `plots`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from pmlopt.core.descriptions import escape_control_characters
from pmlopt.core.display import draw_heat_map, get_figure_class
from pmlopt.core.files.disk import atomic_write, get_file_format
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import PriorLike
from pmlopt.measures import pointwise_leakage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_FORMATS = (".png", ".pdf", ".svg")


def draw_mechanism(prior: PriorLike, mechanism: MechanismLike) -> Figure:
    """Draw the matrix as a heat map, with the leakage of each outcome in nats above its column.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    p, m = pair_with_prior(prior, mechanism)
    return draw_heat_map(m.matrix, m.inputs, m.outputs, pointwise_leakage(p, m))


def draw_curves(
    grid: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    utility: str,
    title: str = "",
    across: str = "epsilon [nats]",
) -> Figure:
    """Draw curves over one grid, such as utilities against epsilon for each kind of privacy.

    Args:
        grid: values of epsilon, in nats, or of what `across` states.
        curves: for each name the utility at each epsilon; NaN where there is none.
        utility: what the vertical axis is, with its unit.
        title: above the axes.
        across: what the horizontal axis is, with its unit.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = get_figure_class()(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for (name, values), style in zip(curves.items(), cycle(("-", "--", "-.", ":"))):
        axes.plot(grid, values, style, label=name)
    axes.set_xlabel(across)
    axes.set_ylabel(escape_control_characters(utility), parse_math=False)
    axes.set_title(title, fontsize="medium")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save a figure atomically; the file suffix (.png, .pdf, .svg) chooses the format."""
    ending = get_file_format(path, FIGURE_FORMATS)
    stream = io.BytesIO()
    dated = {"Date": None} if ending == ".svg" else {}  # the same picture is the same file
    figure.savefig(stream, format=ending[1:], dpi=150, metadata=dated)
    atomic_write(path, stream.getvalue())
