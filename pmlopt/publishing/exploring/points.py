"""What a page to explore shows, whatever it comes from: curves of points, and what each point tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, Label, said
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.measures.outcomes import OutcomeTells, what_outcomes_tell

LEAST_PROBABILITY = 1e-9
"""The probability up to which an outcome counts as one that does not occur, where points are compared."""

ALIKE = 1e-6
"""How far, as a share, columns may differ that count as proportional: their outcomes tell the same."""


@dataclass(frozen=True, eq=False)
class Part:
    """A mechanism, or what is known of one person, on the letters of a prior.

    Attributes:
        name: what it is, above its pictures.
        inputs: N labels.
        outputs: M labels, of outcomes that occur.
        matrix: (N, M) the probability of each outcome for each letter.
        prior: (N,) the law of the letters; None where none is known, and then no posterior is shown.
        tells: what each outcome tells of the letter, those that leak most first.
        likelihood: whether the matrix is what was observed, up to a factor, and no mechanism.
    """

    name: str
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]
    matrix: FloatArray
    prior: FloatArray | None = None
    tells: tuple[OutcomeTells, ...] = ()
    likelihood: bool = False

    @classmethod
    def of(cls, name: str, mechanism: Mechanism, prior: Prior | None) -> Part:
        """The part of a mechanism, without outputs that never occur.

        Examples:
            >>> kept = Part.of("", Mechanism([[1.0, 0.0], [1.0, 0.0]]), Prior([0.5, 0.5]))
            >>> kept.outputs, kept.matrix.shape, kept.tells[0].leakage
            ((0,), (2, 1), 0.0)
        """
        occurs = np.flatnonzero(mechanism.support)
        outputs = tuple(mechanism.outputs[y] for y in occurs)
        matrix = mechanism.matrix[:, occurs]
        if prior is None:
            return cls(name, tuple(mechanism.inputs), outputs, matrix)
        tells = tuple(what_outcomes_tell(prior, mechanism))
        return cls(name, tuple(mechanism.inputs), outputs, matrix, prior.pmf, tells)

    @property
    def leakages(self) -> list[tuple[float, bool]]:
        """The leakage of each outcome in nats, and whether it identifies a letter, in the outputs' order."""
        found = {one.output: (one.leakage, one.identifies) for one in self.tells}
        return [found[output] for output in self.outputs] if found else []

    @property
    def occurring(self) -> BoolArray:
        """(M,) which outcomes are likelier than `LEAST_PROBABILITY`; for some letter if no prior is known."""
        law = self.matrix.max(axis=0) if self.prior is None else self.prior @ self.matrix
        return np.asarray(law > LEAST_PROBABILITY)


@dataclass(frozen=True, eq=False)
class Point:
    """One answer of a sweep.

    Attributes:
        at: where it is on the horizontal axis.
        value, bound, gap, level: as of a `Result`; None where there is none.
        status: as of a `Result`, or in words.
        promise: what is claimed, in a line.
        meanings: the same in plain words.
        facts: further names and what they are.
        warnings: what a reader must not overlook.
        parts: the mechanisms, with what their outcomes tell.
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
    parts: tuple[Part, ...] = ()
    command: str = ""
    python: str = ""


@dataclass(frozen=True, eq=False)
class Curve:
    """The points of one requirement, by where they are.

    Attributes:
        name: of the requirement, in words.
        points: at least one.
        about: a sentence; "" where the name says all.
    """

    name: str
    points: tuple[Point, ...]
    about: str = ""

    @property
    def changes(self) -> list[tuple[float, float, str]]:
        """Between which neighbours outcomes appear, disappear, merge or part: both places, and what happens.

        Examples:
            >>> told = [Part.of("", Mechanism(m), Prior([0.5, 0.5])) for m in (np.eye(2), [[1, 0], [1, 0]])]
            >>> Curve("", (Point(0.1, 0, parts=(told[1],)), Point(0.2, 0, parts=(told[0],)))).changes
            [(0.1, 0.2, 'the outcome 1 appears')]
        """
        found = []
        for one, other in zip(self.points, self.points[1:], strict=False):
            for before, after in zip(one.parts, other.parts, strict=False):
                where = f" ({after.name})" if after.name else ""
                found += [(one.at, other.at, text + where) for text in _changes(before, after)]
        return found


def _changes(before: Part, after: Part) -> list[str]:
    """What happens from one part to the next of its curve."""
    old, new = _shapes(before), _shapes(after)
    both = [y for y in old if y in new]
    return [
        *_told([y for y in new if y not in old], "appear"),
        *_told([y for y in old if y not in new], "disappear"),
        *(text for group in _merged(old, new, both) for text in _told(group, "tell the same from here on")),
        *(text for group in _merged(new, old, both) for text in _told(group, "tell the same no more")),
    ]


def _told(outputs: Sequence[Label], happens: str) -> list[str]:
    """A sentence on outcomes, if there are any."""
    if not outputs:
        return []
    return [
        f"the outcome {said(outputs)} {happens}s"
        if len(outputs) == 1
        else f"the outcomes {said(outputs)} {happens}"
    ]


def _merged(
    old: Mapping[Label, bytes], new: Mapping[Label, bytes], both: Sequence[Label]
) -> list[list[Label]]:
    """The outcomes that tell the same after, and did not all do so before."""
    groups: dict[bytes, list[Label]] = {}
    for y in both:
        groups.setdefault(new[y], []).append(y)
    return [group for group in groups.values() if len({old[y] for y in group}) > 1]


def _shapes(part: Part) -> dict[Label, bytes]:
    """Of each outcome that occurs its column, up to a factor: the same for those that tell the same."""
    shapes = np.round(part.matrix / part.matrix.max(axis=0) / ALIKE)
    return {y: shapes[:, place].tobytes() for place, y in enumerate(part.outputs) if part.occurring[place]}
