"""Explorations: curves of points with their mechanisms, and the rendered page,
which sends no request to any network.
"""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files as resources
from typing import Any, Literal

import numpy as np

from pmlopt.core.descriptions import escape_control_characters
from pmlopt.core.files import disk
from pmlopt.core.lazy_imports import require_extra
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, Label, Labels, join_words
from pmlopt.core.records.fields import finite_or_none
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.measures.outcomes import OUTCOME_COLUMNS, OutcomeSummary, summarize_outcomes
from pmlopt.programs.reports.pages import MAX_REPORTED_OUTCOMES, read_style_sheet

MAX_PAGE_ENTRIES = 800_000
"""Entries of all matrices on a page, of four bytes each: 4.3 MB. Of more, matrices are left out, and
stated.
"""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data:"
)
"""What a browser lets the page do: run its own scripts (Vega compiles expressions), and load nothing."""


@dataclass(frozen=True, eq=False)
class ExploredPart:
    """A mechanism (or posterior) at a point of an exploration.

    Attributes:
        name: what it is, above its pictures.
        inputs: N labels.
        outputs: M labels, of outcomes that occur.
        matrix: (N, M) the probability of each outcome for each letter.
        prior: (N,) the law of the letters; None where none is known, and then no posterior is shown.
        summaries: what each outcome reveals of the letter, those that leak most first.
        likelihood: whether the matrix is what was observed, up to a factor, and no mechanism.
    """

    name: str
    inputs: Labels
    outputs: Labels
    matrix: FloatArray
    prior: FloatArray | None = None
    summaries: tuple[OutcomeSummary, ...] = ()
    likelihood: bool = False

    @classmethod
    def from_mechanism(cls, name: str, mechanism: Mechanism, prior: Prior | None) -> ExploredPart:
        """Build the part of a mechanism, without impossible outputs.

        Examples:
            >>> kept = ExploredPart.from_mechanism("", Mechanism([[1.0, 0.0], [1.0, 0.0]]), Prior([0.5, 0.5]))
            >>> kept.outputs, kept.matrix.shape, kept.summaries[0].leakage
            ((0,), (2, 1), 0.0)
        """
        occurs = np.flatnonzero(mechanism.support)
        names = mechanism.output_names
        outputs = tuple(names[y] for y in occurs)
        matrix = mechanism.matrix[:, occurs]
        if prior is None:
            return cls(name, tuple(mechanism.inputs), outputs, matrix)
        tells = tuple(summarize_outcomes(prior, mechanism))
        return cls(name, tuple(mechanism.inputs), outputs, matrix, prior.pmf, tells)

    @property
    def leakages(self) -> list[tuple[float, bool]]:
        """Return each outcome's leakage in nats, and whether it identifies a letter."""
        found = {one.output: (one.leakage, one.identifies_letter) for one in self.summaries}
        return [found[output] for output in self.outputs] if found else []

    @property
    def occurring(self) -> BoolArray:
        """Return the (M,) mask of outcomes with probability above 1e-9."""
        law = self.matrix.max(axis=0) if self.prior is None else self.prior @ self.matrix
        # rarer outcomes count as not occurring where points are compared
        return np.asarray(law > 1e-9)


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """A solved point of a curve: coordinates, value, bound and mechanism.

    Attributes:
        at: where it is on the horizontal axis.
        value, bound, gap, level: as of a `Result`; None where there is none.
        status: as of a `Result`, or in words.
        promise: what is claimed, in a line.
        meanings: the same in plain words.
        facts: further names and what they are.
        warnings: what a reader must not overlook.
        parts: the mechanisms, with what their outcomes reveal.
        command, python: a command line and a line of Python that give this point again; "" where none does.
    """

    at: float
    value: float
    bound: float | None = None
    gap: float | None = None
    level: float | None = None
    status: str = ""
    promise: str = ""
    meanings: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    parts: tuple[ExploredPart, ...] = ()
    command: str = ""
    python: str = ""


@dataclass(frozen=True, eq=False)
class ExploredCurve:
    """The solved points of one requirement, in ascending order.

    Attributes:
        name: of the requirement, in words.
        points: at least one.
        about: a sentence; "" where the name states all.
    """

    name: str
    points: tuple[CurvePoint, ...]
    about: str = ""

    @property
    def changes(self) -> list[tuple[float, float, str]]:
        """Describe changes of the outcomes between neighbouring points.

        Examples:
            >>> told = [
            ...     ExploredPart.from_mechanism("", Mechanism(m), Prior([0.5, 0.5]))
            ...     for m in (np.eye(2), [[1, 0], [1, 0]])
            ... ]
            >>> ExploredCurve(
            ...     "", (CurvePoint(0.1, 0, parts=(told[1],)), CurvePoint(0.2, 0, parts=(told[0],)))
            ... ).changes
            [(0.1, 0.2, 'the outcome 1 appears')]
        """
        found = []
        for one, other in zip(self.points, self.points[1:], strict=False):
            for before, after in zip(one.parts, other.parts, strict=False):
                where = f" ({after.name})" if after.name else ""
                found += [
                    (one.at, other.at, text + where) for text in _describe_changes(before, after)
                ]
        return found


def _describe_changes(before: ExploredPart, after: ExploredPart) -> list[str]:
    """Yield the changes of outcomes between two mechanisms."""
    old = _normalize_columns(before)
    new = _normalize_columns(after)
    both = [y for y in old if y in new]
    return [
        *_format_outcomes([y for y in new if y not in old], "appear"),
        *_format_outcomes([y for y in old if y not in new], "disappear"),
        *(
            text
            for group in _find_merged(old, new, both)
            for text in _format_outcomes(group, "reveal the same from here on")
        ),
        *(
            text
            for group in _find_merged(new, old, both)
            for text in _format_outcomes(group, "no longer reveal the same")
        ),
    ]


def _format_outcomes(outputs: Sequence[Label], happens: str) -> list[str]:
    """Format a sentence on outcomes; empty for none."""
    if not outputs:
        return []
    return [
        f"the outcome {join_words(outputs)} {happens}s"
        if len(outputs) == 1
        else f"the outcomes {join_words(outputs)} {happens}"
    ]


def _find_merged(
    old: Mapping[Label, bytes], new: Mapping[Label, bytes], both: Sequence[Label]
) -> list[list[Label]]:
    """Find the outcomes that became equivalent."""
    groups: dict[bytes, list[Label]] = {}
    for y in both:
        groups.setdefault(new[y], []).append(y)
    return [group for group in groups.values() if len({old[y] for y in group}) > 1]


def _normalize_columns(part: ExploredPart) -> dict[Label, bytes]:
    """Normalize each outcome's column, to compare what outcomes reveal."""
    places = np.flatnonzero(part.occurring)
    columns = part.matrix[:, places]
    # How far, as a share, columns may differ that count as proportional: their outcomes reveal the same.
    shapes = np.round(columns / columns.max(axis=0) / 1e-6)
    return {part.outputs[y]: shape.tobytes() for y, shape in zip(places, shapes.T, strict=True)}


@dataclass(frozen=True, eq=False)
class Exploration:
    """The result of `explore`: curves of solved points, rendered as a page or notebook output.

    Attributes:
        title: of the page.
        across, height: what the axes are, with their units.
        curves: one for each requirement.
        choice: what is chosen when a curve is.
        better: whether less or more of the height is better; "" where it is no price that is weighed.
        about: sentences under the title.
        failures: sentences on points that could not be solved.
        warnings: sentences on what the whole page reveals.
        limit: a line that no point may exceed, on the axis of the height.
        before_command, before_python: what is stated before the command, and before the line of Python.
    """

    title: str
    across: str
    height: str
    curves: tuple[ExploredCurve, ...]
    choice: str = "Curve"
    better: Literal["less", "more", ""] = ""
    about: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    limit: float | None = None
    before_command: str = ""
    before_python: str = ""

    @property
    def html(self) -> str:
        """Render the self-contained HTML page.

        Raises:
            MissingExtraError: vl-convert-python is not installed.
        """
        data = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False).replace(
            "<", "\\u003c"
        )
        own = resources(__package__)
        title = html.escape(escape_control_characters(self.title))
        body = (own / "page.html").read_text("utf-8").replace("{title}", title)
        return (
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            "<meta name='viewport' content='width=device-width, initial-scale=1'>"
            f"<title>{title}</title>"
            f"<style>{read_style_sheet()}{(own / 'page.css').read_text('utf-8')}</style></head>"
            f"<body>{body}<script type='application/json' id='data'>{data}</script>"
            f"<script>{load_vega_scripts()}</script>"
            f"<script type='module'>{(own / 'page.js').read_text('utf-8')}</script></body></html>\n"
        )

    def to_dict(self) -> dict[str, Any]:
        """Serialize the exploration for its page."""
        points = [point for curve in self.curves for point in curve.points]
        entries = sum(part.matrix.size for point in points for part in point.parts)
        kept = _CurveWriter(-(-entries // MAX_PAGE_ENTRIES) or 1)
        return {
            "title": escape_control_characters(self.title),
            **{
                name: getattr(self, name)
                for name in ("across", "height", "choice", "better", "limit")
            },
            "about": [*(f"Warning: {line}" for line in self.warnings), *self.about, *self.failures],
            "told": list(OUTCOME_COLUMNS),
            "before": {"command": self.before_command, "python": self.before_python},
            "curves": [kept.write_curve(curve) for curve in self.curves],
            "shared": kept.shared,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the HTML page atomically.

        Raises:
            FileFormatError: the ending is not .html, or the file cannot be written.
            MissingExtraError: vl-convert-python is not installed.
        """
        disk.get_file_format(path, (".html",))
        disk.atomic_write(path, self.html.encode())

    def __repr__(self) -> str:
        """How many points there are, of which curves."""
        count = sum(len(curve.points) for curve in self.curves)
        return f"<Exploration of {count} points: {', '.join(curve.name for curve in self.curves)}>"

    def _repr_html_(self) -> str:
        """Return the page in a frame of a notebook."""
        frame = "style='width:100%;height:48rem;border:0'"
        title = html.escape(escape_control_characters(self.title))
        return f"<iframe title='{title}' {frame} srcdoc='{html.escape(self.html)}'></iframe>"


@cache
def load_vega_scripts() -> str:
    """Return the bundled Vega, Vega-Lite and Vega-Embed scripts.

    Raises:
        MissingExtraError: vl-convert-python, which carries them, is not installed.
    """
    with require_extra("pages to explore need vl-convert-python", "explore"):
        import vl_convert
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace(
        "</script", "<\\/script"
    )


@dataclass
class _CurveWriter:
    """A serializer of curves that stores shared content once.

    Attributes:
        step: every so many points keep their matrices.
        shared: labels and priors, which parts name by their place.
    """

    step: int
    shared: list[Any] = field(default_factory=list)
    places: dict[Hashable, int] = field(default_factory=dict)

    def write_curve(self, curve: ExploredCurve) -> dict[str, Any]:
        """Serialize a curve."""
        return {
            "name": curve.name,
            "about": curve.about,
            "points": [
                self.write_point(point, place % self.step == 0)
                for place, point in enumerate(curve.points)
            ],
            "changes": [list(change) for change in curve.changes],
        }

    def write_point(self, point: CurvePoint, whole: bool) -> dict[str, Any]:
        """Serialize a point of a curve."""
        numbers = {
            name: finite_or_none(getattr(point, name))
            for name in ("value", "bound", "gap", "level")
        }
        return {
            **vars(point),
            **numbers,
            "parts": [self.write_part(part, whole) for part in point.parts],
        }

    def write_part(self, part: ExploredPart, whole: bool) -> dict[str, Any]:
        """Serialize a mechanism of a point."""
        prior = None if part.prior is None else part.prior.tolist()
        return {
            "name": part.name,
            "inputs": self.write_labels(part.inputs),
            "outputs": self.write_labels(part.outputs),
            "matrix": encode_floats(part.matrix) if whole else None,
            "prior": None if prior is None else self.store_once(("prior", *prior), prior),
            "leakages": [list(leakage) for leakage in part.leakages],
            "rows": [list(one.table_row) for one in part.summaries[:MAX_REPORTED_OUTCOMES]],
            "left": max(0, len(part.summaries) - MAX_REPORTED_OUTCOMES),
            "likelihood": part.likelihood,
        }

    def write_labels(self, labels: Labels) -> int:
        """Store a list of labels once, and return its index."""
        texts = [escape_control_characters(str(label)) for label in labels]
        return self.store_once(("labels", *texts), texts)

    def store_once(self, key: Hashable, content: Any) -> int:
        """Store content once, and return its index."""
        if key not in self.places:
            self.places[key] = len(self.shared)
            self.shared.append(content)
        return self.places[key]


def encode_floats(matrix: FloatArray) -> str:
    """Encode matrix entries as base64 float32.

    Examples:
        >>> np.frombuffer(base64.b64decode(encode_floats(np.eye(2))), "<f4").tolist()
        [1.0, 0.0, 0.0, 1.0]
    """
    return base64.b64encode(np.ascontiguousarray(matrix, "<f4").tobytes()).decode()
