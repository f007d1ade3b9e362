"""Tables as HTML and LaTeX, and plotting helpers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pmlopt.core.descriptions import escape_control_characters
from pmlopt.core.lazy_imports import html, require_extra
from pmlopt.core.numbers.arrays import FloatArray, Label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SHOWN_ROWS, MAX_SHOWN_COLUMNS = 12, 12
"""How many rows and columns of a matrix a notebook shows; the rest is counted."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}


def format_probability(value: float, digits: int = 4) -> str:
    """Format a probability with a number of decimals, without trailing zeros.

    Examples:
        >>> (
        ...     format_probability(0.25),
        ...     format_probability(1 / 3),
        ...     format_probability(1.0),
        ...     format_probability(1e-9),
        ...     format_probability(1 - 1e-9),
        ... )
        ('0.25', '0.3333', '1', '<0.0001', '>0.9999')
    """
    text = f"{value:.{digits}f}"
    # a probability that is neither must not look so
    if float(text) in (0.0, 1.0) and value != float(text):
        edge = 10.0**-digits
        return f"<{edge:.{digits}f}" if value < 0.5 else f">{1 - edge:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_nats(level: float) -> str:
    """Format a level in nats, with rounding errors as 0.

    Examples:
        >>> format_nats(0.25), format_nats(3e-12), format_nats(math.inf)
        ('0.25 nats', '0 nats', 'infinite')
    """
    if level == math.inf:
        return "infinite"
    return f"{0 if level < 5e-10 else level:.6g} nats"


def pluralize(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun in singular or plural.

    Examples:
        >>> pluralize(1, "release"), pluralize(2, "release"), pluralize(0, "person", "people")
        ('1 release', '2 releases', '0 people')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def format_row_share(part: int, whole: int) -> str:
    """Format a number of rows with their share of all rows.

    Examples:
        >>> format_row_share(36, 9_000), format_row_share(1, 1_000_000)
        ('36 of 9,000 rows (0.4 %)', '1 of 1,000,000 rows (<0.01 %)')
    """
    share = 100 * part / whole
    return f"{part:,} of {whole:,} rows ({'<0.01' if 0 < share < 0.01 else f'{share:.3g}'} %)"


def align_cells(table: Sequence[Sequence[str]]) -> list[str]:
    r"""Align the cells of a table in columns, a line for each row, with control characters escaped.

    Examples:
        >>> align_cells([["value", "share"], ["a", "0.5"]])
        ['value  share', 'a      0.5']
        >>> align_cells([["two\nlines", "0.5"]])
        ['two\\nlines  0.5']
    """
    cells = [list(map(escape_control_characters, row)) for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def format_facts_html(title: str, facts: Mapping[str, str]) -> str:
    """Format titled name-value lines as HTML."""
    side = "style='text-align:left'"
    rows = "".join(
        f"<tr><th {side}>{_escape_html(name)}</th><td {side}>{_escape_html(text)}</td></tr>"
        for name, text in facts.items()
    )
    return f"<div><b>{_escape_html(title)}</b><table>{rows}</table></div>"


def format_table_html(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a titled HTML table of at most a dozen rows."""
    top = "".join(f"<th>{_escape_html(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{_escape_html(cell)}</td>" for cell in row) + "</tr>"
        for row in rows[:MAX_SHOWN_ROWS]
    )
    left = _describe_omitted(len(rows) - MAX_SHOWN_ROWS, "row")
    return f"<div><b>{_escape_html(title)}</b><table><tr>{top}</tr>{body}</table>{left}</div>"


def format_matrix_html(
    title: str, matrix: FloatArray, inputs: Sequence[Label], outputs: Sequence[Label]
) -> str:
    """Format an HTML heat map of a probability matrix, truncated."""
    part = matrix[:MAX_SHOWN_ROWS, :MAX_SHOWN_COLUMNS]
    top = "".join(f"<th>{_escape_html(str(label))}</th>" for label in outputs[:MAX_SHOWN_COLUMNS])
    body = "".join(
        f"<tr><th>{_escape_html(str(label))}</th>"
        + "".join(_format_shaded_cell(value) for value in row)
        + "</tr>"
        for label, row in zip(inputs, part.tolist(), strict=False)
    )
    left = _describe_omitted(len(inputs) - MAX_SHOWN_ROWS, "row") + _describe_omitted(
        len(outputs) - MAX_SHOWN_COLUMNS, "column"
    )
    return (
        f"<div><b>{_escape_html(title)}</b><table><tr><th></th>{top}</tr>{body}</table>{left}</div>"
    )


def format_matrix_text(
    matrix: FloatArray, inputs: Sequence[Label], outputs: Sequence[Label]
) -> str:
    """Format a probability matrix as aligned text, truncated.

    Examples:
        >>> print(format_matrix_text(np.array([[0.75, 0.25], [1 / 3, 2 / 3]]), ["a", "b"], [0, 1]))
           0       1
        a  0.75    0.25
        b  0.3333  0.6667
    """
    part = matrix[:MAX_SHOWN_ROWS, :MAX_SHOWN_COLUMNS].tolist()
    rows = [
        [str(label), *map(format_probability, row)]
        for label, row in zip(inputs, part, strict=False)
    ]
    lines = align_cells([["", *map(str, outputs[:MAX_SHOWN_COLUMNS])], *rows])
    left = [
        _count_omitted(len(inputs) - MAX_SHOWN_ROWS, "row"),
        _count_omitted(len(outputs) - MAX_SHOWN_COLUMNS, "column"),
    ]
    return "\n".join([*lines, *filter(None, left)])


def format_table_latex(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Format a LaTeX table with booktabs.

    Examples:
        >>> print(format_table_latex(["letter", "p"], [["a_1", "0.5"]]))
        \begin{tabular}{lr}
        \toprule
        letter & p \\
        \midrule
        a\_1 & 0.5 \\
        \bottomrule
        \end{tabular}
    """
    lines = [_format_latex_row(row) for row in rows]
    columns = "l" + "r" * (len(head) - 1)
    top = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", _format_latex_row(head), r"\midrule"]
    return "\n".join([*top, *lines, r"\bottomrule", r"\end{tabular}"])


def import_pandas() -> Any:
    """Import pandas, or raise an error that names the extra.

    Raises:
        MissingExtraError: it is not installed.
    """
    with require_extra("data frames need pandas", "pandas"):
        import pandas
    return pandas


def _format_latex_row(cells: Sequence[str]) -> str:
    """Format and escape the cells of a LaTeX table row."""
    escaped = (
        "".join(_LATEX.get(sign, sign) for sign in escape_control_characters(cell))
        for cell in cells
    )
    return " & ".join(escaped) + r" \\"


def _escape_html(text: str) -> str:
    """Escape control characters and the special characters of HTML in a text."""
    return html.escape(escape_control_characters(text))


def _count_omitted(count: int, what: str) -> str:
    """Return a line with the number of omitted rows or columns; empty for none."""
    return f"and {pluralize(count, f'more {what}')}" if count > 0 else ""


def _describe_omitted(count: int, what: str) -> str:
    """Return an HTML line with the number of omitted rows or columns; empty for none."""
    return f"<p>{_count_omitted(count, what)}</p>" if count > 0 else ""


def _format_shaded_cell(value: float) -> str:
    """Format an HTML cell shaded by its probability."""
    return f"<td style='background:rgba(0,114,178,{0.75 * value:.3f})'>{format_probability(value)}</td>"


def get_figure_class() -> type[Figure]:
    """Return Matplotlib's Figure class, or raise an error that names the extra."""
    with require_extra("plots need matplotlib", "plots"):
        from matplotlib.figure import Figure
    return Figure


def draw_heat_map(
    matrix: FloatArray,
    inputs: Sequence[Label],
    outputs: Sequence[Label],
    leakages: FloatArray | None = None,
) -> Figure:
    """Draw a mechanism matrix as a heat map, with leakages above the columns.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    n, k = matrix.shape
    figure = get_figure_class()(
        figsize=(min(12, 2.5 + 0.45 * k), min(12, 2.5 + 0.4 * n)), layout="constrained"
    )
    if leakages is None:
        main = figure.subplots()
    else:
        top, main = figure.subplots(2, 1, sharex=True, height_ratios=[1, 4])
        occurs = np.isfinite(leakages)
        top.bar(np.flatnonzero(occurs), leakages[occurs], color="tab:red")
        top.set_ylabel("leakage [nats]")
    image = main.imshow(matrix, aspect="auto", cmap="Blues", vmin=0.0)
    figure.colorbar(image, ax=main, label="P(output | true value)")
    main.set_xlabel("output")
    main.set_ylabel("true value")
    _label_axes(main, outputs, inputs)
    return figure


def draw_bars(values: FloatArray, labels: Sequence[Label], upright: str) -> Figure:
    """Draw a labelled bar chart.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = get_figure_class()(
        figsize=(min(12, 2.5 + 0.3 * len(values)), 3.0), layout="constrained"
    )
    axes = figure.subplots()
    axes.bar(range(len(values)), values, color="tab:blue")
    axes.set_ylabel(upright)
    _label_axes(axes, labels)
    return figure


def _label_axes(axes: Axes, across: Sequence[Label], upright: Sequence[Label] = ()) -> None:
    """Label the axes where there are few labels."""
    # The number of labels up to which all of them are written at an axis.
    most_labels = 40
    if len(across) <= most_labels:
        names = [escape_control_characters(str(label)) for label in across]
        axes.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
    if 0 < len(upright) <= most_labels:
        axes.set_yticks(
            range(len(upright)),
            [escape_control_characters(str(label)) for label in upright],
            parse_math=False,
        )
