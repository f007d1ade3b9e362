"""The search for an envelope: linear programs at one likelihood ratio each, which serve every delta."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import FloatArray
from pmlopt.backends.clock import TIME, Clock
from pmlopt.backends.outcome import Options
from pmlopt.backends.two_sided_search import FEASIBILITY_TOLERANCE, Answer, Search
from pmlopt.programs.envelope.attacks import (
    binary_attack,
    plain_attack,
    reached_ratio,
    topped_up,
    without_noise,
)
from pmlopt.programs.envelope.dual_bound import largest_ratio, nearest_ratio, with_closed
from pmlopt.programs.envelope.post_processing import RatioPrograms
from pmlopt.programs.envelope.program import EnvelopeProgram
from pmlopt.programs.envelope.rational_mechanism import bounds
from pmlopt.roots import raised

CLOSED = 1e-12
"""A letter's outcome is closed at ratios above its largest by this share, which rounding cannot explain."""

DIFFERENCE_ROUNDING = 8 * float(np.finfo(float).eps)
"""What rounding may do to `t q[y] - P[x,y]`, as a share of t q[y]; far below `CLOSED`."""

MAX_REMEMBERED = 32
"""Linear programs that are handed on to the next delta, those at the nearest ratios: a search uses four, and
a point of 50 by 50 takes 20 kB."""

PROOFS_ABOVE = 3
"""How many programs above the new envelope a search takes multipliers from: the nearest are the sharpest."""


@dataclass(frozen=True, eq=False)
class AskedRatio:
    """The linear program at one ratio, which is the same for every delta.

    Attributes:
        ratio: t.
        mass: V(t).
        slope: of -V.
        point: (K, N) the attack.
        multipliers: (N,) of the rows of the letters.
    """

    ratio: float
    mass: float
    slope: float
    point: FloatArray
    multipliers: FloatArray

    def answer(self, delta: float) -> Answer[FloatArray | None]:
        """What it says about a delta: what is missing, as a share of delta, which may be tiny."""
        return Answer(1 - self.mass / delta, self.slope / delta, self.point, self.multipliers)


@dataclass(frozen=True, eq=False)
class SearchEnd:
    """The two ends of the search over ratios, with what proves each.

    Attributes:
        point: (M', N) the best attack.
        multipliers: (N,) those that prove the bound, or None where that of Theorem 3 is best.
        asked: the linear programs at the nearest ratios, this search's and those that it was given.
        programs: how many there were in this search.
        ending: in words.
        finished: whether it ended by itself.
        compile_seconds: what setting up the linear program took.
    """

    point: FloatArray
    multipliers: FloatArray | None
    asked: list[AskedRatio]
    programs: int
    ending: str
    finished: bool
    compile_seconds: float


def search_ratio(
    program: EnvelopeProgram, points: list[FloatArray], asked: list[AskedRatio], options: Options
) -> SearchEnd:
    """Close in on the largest ratio that outcomes of mass delta can have, from both ends.

    Args:
        program: what is asked for.
        points: (M', N) attacks to begin with, besides the plain and the binary one.
        asked: what is known of the linear program at some ratios.
        options: the time limit, and the gap, in nats, that is good enough: it ends at half of that.
    """
    delta = program.delta
    family = _RatioFeasibility(program, options.tolerance / 8)
    above = sorted((a for a in asked if a.mass < delta * (1 - FEASIBILITY_TOLERANCE)), key=lambda a: a.ratio)
    below = max((a for a in asked if a.mass >= delta), key=lambda a: a.ratio, default=None)
    first = [attack(single) for single in program.singles for attack in (plain_attack, binary_attack)]
    first += points
    singles = () if program.over is None else program.singles
    alone = [search_ratio(one, [], [], options) for one in singles]
    first += [end.point for end in alone]
    first += [] if below is None else [below.point]
    search = Search(
        family,
        [family.witness(point) for point in first],
        [None, *(a.multipliers for a in above[:PROOFS_ABOVE])],
        options.tolerance / 2,
        options.clock,
        (above[0].ratio, above[0].answer(delta)) if above else None,
    )
    ending = search.run()
    assert search.witness is not None
    programs = search.programs + sum(end.programs for end in alone)
    known = sorted([*asked, *family.asked], key=lambda a: abs(math.log(a.ratio / search.reached)))
    return SearchEnd(
        point=search.witness,
        multipliers=search.proofs[0],
        asked=known[:MAX_REMEMBERED],
        programs=programs,
        ending=f"{ending} after {programs} linear programs",
        finished=ending != TIME,
        compile_seconds=family.compile_seconds + sum(end.compile_seconds for end in alone),
    )


class _RatioFeasibility:
    """Whether outcomes of mass delta can have the likelihood ratio t: what is missing is delta - V(t)."""

    blur = 0.0

    def __init__(self, program: EnvelopeProgram, accuracy: float) -> None:
        self.program, self.accuracy = program, accuracy
        self.most = math.exp(program.simple_bound)
        # V jumps where the outcome of a letter closes
        self.marks = program.largest_ratios
        self.programs: RatioPrograms | None = None
        self.compile_seconds = 0.0
        self.asked: list[AskedRatio] = []

    def solve(self, number: float, clock: Clock) -> Answer[FloatArray | None]:
        program = self.program
        if self.programs is None:
            begin = time.perf_counter()
            self.programs = RatioPrograms(program)
            self.compile_seconds = time.perf_counter() - begin
        closed = self.marks * (1 + CLOSED) < number
        mass, slope, point, multipliers = self.programs.solve(number, closed, clock)
        gains = program.columns - number * program.law
        # what rounding may take off a difference, which is small where t is just above the largest ratio
        gains[closed] += DIFFERENCE_ROUNDING * number * program.law
        self.asked.append(
            AskedRatio(
                ratio=number,
                mass=mass,
                slope=slope,
                point=without_noise(point),
                multipliers=with_closed(program.law, gains, multipliers, closed),
            )
        )
        return self.asked[-1].answer(program.delta)

    def witness(self, point: FloatArray) -> tuple[float, FloatArray]:
        """What a (K, N) point reaches, under the prior of the program or the worst known one of its set."""
        together = self.program.together(point)
        attacks = [topped_up(single, together) for single in self.program.singles]
        reached = [reached_ratio(*pair) for pair in zip(self.program.singles, attacks, strict=True)]
        best = int(np.argmax(reached))
        return reached[best], attacks[best]

    def proved(self, proof: FloatArray | None) -> float:
        """The ratio that multipliers prove, in rational arithmetic where floats hide too much of it."""
        if proof is None:
            return self.most
        bound = largest_ratio(self.program, proof, self.most)
        near = nearest_ratio(self.program, proof, bound)
        if not near < bound * (1 - self.accuracy):
            return bound
        exact, delta = self.program.exact, self.program.delta
        level = raised(lambda level: bounds(exact, delta, level, proof), math.log(near), math.log(bound))
        return min(bound, math.exp(level))

    def beyond(self, now: FloatArray | None, then: FloatArray | None, step: float) -> FloatArray | None:
        if now is None or then is None:
            return None
        ahead = now + step * (now - then)
        ahead[: self.program.prior.size] = np.maximum(0.0, ahead[: self.program.prior.size])
        return np.asarray(ahead)


def as_arrays(program: EnvelopeProgram, asked: list[AskedRatio]) -> Mapping[str, NDArray[Any]]:
    """What was asked as plain arrays, with the mechanism that it is about."""
    names = [field.name for field in fields(AskedRatio)]
    columns = {name: np.array([getattr(a, name) for a in asked]) for name in names}
    return {"merged": program.columns, "law": program.law, **columns}


def from_arrays(program: EnvelopeProgram, arrays: Mapping[str, NDArray[Any]]) -> list[AskedRatio]:
    """What was asked of the same mechanism under the same prior; nothing, where it is another."""
    names = [field.name for field in fields(AskedRatio)]
    own = {"merged": program.columns, "law": program.law}
    if not all(name in arrays and np.array_equal(arrays[name], own[name]) for name in own):
        return []
    count = len(arrays.get("ratio", ()))
    shapes = [(count,), (count,), (count,), (count, *program.columns.T.shape), (count, program.multipliers)]
    if not all(
        name in arrays and arrays[name].shape == shape and np.isfinite(arrays[name]).all()
        for name, shape in zip(names, shapes, strict=True)
    ):
        return []
    rows = zip(*(arrays[name] for name in names), strict=True)
    return [AskedRatio(float(t), float(v), float(s), point, lam) for t, v, s, point, lam in rows]
