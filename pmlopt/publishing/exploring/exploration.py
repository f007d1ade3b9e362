"""What `explore` returns, and the page that it becomes: one file, which asks nothing of any network."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files as resources
from typing import Any, Literal

import numpy as np

from pmlopt.core import files
from pmlopt.core.arrays import FloatArray, Label, shown
from pmlopt.errors import MissingExtraError
from pmlopt.programs.certificate import finite
from pmlopt.programs.reports.pages import MOST_OUTCOMES, STYLE, TOLD
from pmlopt.publishing.exploring.points import Curve, Part, Point

MOST_ENTRIES = 800_000
"""Entries of all matrices on a page, of four bytes each: 4.3 MB. Of more, matrices are left out, and said."""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
)
"""What a browser lets the page do: run its own scripts (Vega compiles expressions), and load nothing."""


@dataclass(frozen=True, eq=False)
class Exploration:
    """What `explore` returns: a page of its own, and a notebook shows it as it is.

    Attributes:
        title: of the page.
        across, height: what the axes are, with their units.
        curves: one for each requirement.
        choice: what is chosen when a curve is.
        better: whether less or more of the height is better; "" where it is no price that is weighed.
        about: sentences under the title.
        failures: sentences on points that could not be solved.
        limit: a line that no point may exceed, on the axis of the height.
        before_command, before_python: what is said before the command, and before the line of Python.
    """

    title: str
    across: str
    height: str
    curves: tuple[Curve, ...]
    choice: str = "Curve"
    better: Literal["less", "more", ""] = ""
    about: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    limit: float | None = None
    before_command: str = ""
    before_python: str = ""

    @property
    def html(self) -> str:
        """The page: one file, with all that it needs.

        Raises:
            MissingExtraError: vl-convert-python is not installed.
        """
        data = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        own = resources(__package__)
        title = html.escape(shown(self.title))
        body = (own / "page.html").read_text("utf-8").replace("{title}", title)
        return (
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            "<meta name='viewport' content='width=device-width, initial-scale=1'>"
            f"<title>{title}</title><style>{STYLE}{(own / 'page.css').read_text('utf-8')}</style></head>"
            f"<body>{body}<script type='application/json' id='data'>{data}</script>"
            f"<script>{vega()}</script>"
            f"<script type='module'>{(own / 'page.js').read_text('utf-8')}</script></body></html>\n"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the page reads it: labels as text, matrices as floats of four bytes in base 64."""
        points = [point for curve in self.curves for point in curve.points]
        entries = sum(part.matrix.size for point in points for part in point.parts)
        kept = _Kept(-(-entries // MOST_ENTRIES) or 1)
        return {
            "title": shown(self.title),
            **{name: getattr(self, name) for name in ("across", "height", "choice", "better", "limit")},
            "about": [*self.about, *self.failures],
            "told": list(TOLD),
            "before": {"command": self.before_command, "python": self.before_python},
            "curves": [kept.curve(curve) for curve in self.curves],
            "shared": kept.shared,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all.

        Raises:
            FileFormatError: the ending is not .html, or the file cannot be written.
            MissingExtraError: vl-convert-python is not installed.
        """
        files.ending_of(path, (".html",))
        files.write_whole(path, self.html.encode())

    def __repr__(self) -> str:
        """How many points there are, of which curves."""
        count = sum(len(curve.points) for curve in self.curves)
        return f"<Exploration of {count} points: {', '.join(curve.name for curve in self.curves)}>"

    def _repr_html_(self) -> str:
        """The page in a frame of a notebook."""
        frame = "style='width:100%;height:48rem;border:0'"
        title = html.escape(shown(self.title))
        return f"<iframe title='{title}' {frame} srcdoc='{html.escape(self.html)}'></iframe>"


@cache
def vega() -> str:
    """The libraries that draw, as one script: Vega, Vega-Lite and their embedding.

    Raises:
        MissingExtraError: vl-convert-python, which carries them, is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError(
            "pages to explore need vl-convert-python: pip install 'pmlopt[explore]'"
        ) from None
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace(
        "</script", "<\\/script"
    )


@dataclass
class _Kept:
    """Writes curves as plain data; what many parts share, such as labels, is written once.

    Attributes:
        step: every so many points keep their matrices.
        shared: labels and priors, which parts name by their place.
    """

    step: int
    shared: list[Any] = field(default_factory=list)
    places: dict[Hashable, int] = field(default_factory=dict)

    def curve(self, curve: Curve) -> dict[str, Any]:
        return {
            "name": curve.name,
            "about": curve.about,
            "points": [self.point(point, place % self.step == 0) for place, point in enumerate(curve.points)],
            "changes": [list(change) for change in curve.changes],
        }

    def point(self, point: Point, whole: bool) -> dict[str, Any]:
        numbers = {name: finite(getattr(point, name)) for name in ("value", "bound", "gap", "level")}
        return {**vars(point), **numbers, "parts": [self.part(part, whole) for part in point.parts]}

    def part(self, part: Part, whole: bool) -> dict[str, Any]:
        prior = None if part.prior is None else part.prior.tolist()
        return {
            "name": part.name,
            "inputs": self.labels(part.inputs),
            "outputs": self.labels(part.outputs),
            "matrix": encoded(part.matrix) if whole else None,
            "prior": None if prior is None else self.place(("prior", *prior), prior),
            "leakages": [list(leakage) for leakage in part.leakages],
            "rows": [list(one.row) for one in part.tells[:MOST_OUTCOMES]],
            "left": max(0, len(part.tells) - MOST_OUTCOMES),
            "likelihood": part.likelihood,
        }

    def labels(self, labels: tuple[Label, ...]) -> int:
        texts = [shown(str(label)) for label in labels]
        return self.place(("labels", *texts), texts)

    def place(self, key: Hashable, content: Any) -> int:
        if key not in self.places:
            self.places[key] = len(self.shared)
            self.shared.append(content)
        return self.places[key]


def encoded(matrix: FloatArray) -> str:
    """The entries row by row, as floats of four bytes in base 64: seven digits of each.

    Examples:
        >>> np.frombuffer(base64.b64decode(encoded(np.eye(2))), "<f4").tolist()
        [1.0, 0.0, 0.0, 1.0]
    """
    return base64.b64encode(np.ascontiguousarray(matrix, "<f4").tobytes()).decode()
