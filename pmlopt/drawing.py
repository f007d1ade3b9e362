"""What pictures are drawn with: matplotlib, of the extra `plots`, and the heat map of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.arrays import FloatArray, Label, shown
from pmlopt.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LABELS = 40
"""The number of labels up to which all of them are written at an axis."""


def figure_class() -> type[Figure]:
    """Matplotlib's Figure, or an error that names the extra."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plots need matplotlib: pip install 'pmlopt[plots]'") from None
    return Figure


def heat_map(
    matrix: FloatArray,
    inputs: Sequence[Label],
    outputs: Sequence[Label],
    leakages: FloatArray | None = None,
) -> Figure:
    """A mechanism matrix as shades of blue, with the leakages in nats above its columns where there are some.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    n, k = matrix.shape
    figure = figure_class()(figsize=(min(12, 2.5 + 0.45 * k), min(12, 2.5 + 0.4 * n)), layout="constrained")
    if leakages is None:
        main = figure.subplots()
    else:
        top, main = figure.subplots(2, 1, sharex=True, height_ratios=[1, 4])
        occurs = np.isfinite(leakages)
        top.bar(np.flatnonzero(occurs), leakages[occurs], color="tab:red")
        top.set_ylabel("leakage [nats]")
    image = main.imshow(matrix, aspect="auto", cmap="Blues", vmin=0.0)
    figure.colorbar(image, ax=main, label="P(output | secret)")
    main.set_xlabel("output")
    main.set_ylabel("secret")
    _name(main, inputs, outputs)
    return figure


def bars(values: FloatArray, labels: Sequence[Label], upright: str) -> Figure:
    """A bar for each label.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = figure_class()(figsize=(min(12, 2.5 + 0.3 * len(values)), 3.0), layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(values)), values, color="tab:blue")
    axes.set_ylabel(upright)
    if len(labels) <= MOST_LABELS:
        axes.set_xticks(
            range(len(labels)), [shown(str(label)) for label in labels], rotation=90, parse_math=False
        )
    return figure


def _name(axes: Axes, inputs: Sequence[Label], outputs: Sequence[Label]) -> None:
    """Write the labels at a matrix, where they are few."""
    if len(outputs) <= MOST_LABELS:
        names = [shown(str(label)) for label in outputs]
        axes.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
    if len(inputs) <= MOST_LABELS:
        axes.set_yticks(range(len(inputs)), [shown(str(label)) for label in inputs], parse_math=False)
