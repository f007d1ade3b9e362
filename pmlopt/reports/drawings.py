"""Bars as SVG, in the colours of the page they stand on: no package, no script, nothing from the network."""

from __future__ import annotations

import html
from collections.abc import Sequence

from pmlopt.arrays import shown

ROW, LEFT, WIDTH, RIGHT = 26, 150, 560, 84
"""Heights and widths in pixels: of a bar with its space, of the names, of the picture, of the numbers."""

LONGEST_NAME = 20


def bars_svg(
    title: str, rows: Sequence[tuple[str, float]], limit: float | None = None, mark: str = ""
) -> str:
    """Horizontal bars with their numbers, and a line at a limit.

    Args:
        title: what it shows, for readers that do not see it.
        rows: names and finite numbers of at least 0.
        limit: where the line is.
        mark: the name of the row that stands out.

    Examples:
        >>> picture = bars_svg("two", [("a", 1.0), ("b", 0.5)], 0.75)
        >>> picture.count("<rect"), picture.count("<line")
        (2, 1)
    """
    largest = (
        max([abs(value) for _, value in rows] + ([limit] if limit is not None else []), default=0.0) or 1.0
    )
    scale = (WIDTH - LEFT - RIGHT) / largest
    height = ROW * len(rows) + (24 if limit is not None else 6)
    parts = []
    if limit is not None:
        x, bottom = LEFT + limit * scale, ROW * len(rows) + 4
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">limit {limit:.4g}</text>')
    for place, (name, value) in enumerate(rows):
        y = place * ROW + 4
        kind = "bar mark" if name == mark else "bar"
        length = max(1.0, abs(value) * scale)
        text = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{html.escape(shown(text))}'
            f"<title>{html.escape(shown(name))}</title></text>",
            f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length:.1f}" height="18" rx="2"/>',
            f'<text x="{LEFT + length + 6:.1f}" y="{y + 14}">{value:.4g}</text>',
        ]
    label = html.escape(title)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
        f"<title>{label}</title>{''.join(parts)}</svg>"
    )
