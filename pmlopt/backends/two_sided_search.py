"""A search from both ends: the largest number that can be reached, a witness below and a proof above."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from pmlopt.arrays import FloatArray

ROUNDS = 200
"""Linear programs after which the search ends with the gap that is left."""

MET = 1e-12
"""Demands that are missed by no more than this are met: a solver's zero."""

AHEAD = 0.3
"""How far a round goes from the proved end towards the end that the shortfall's slope points to."""

SLOW, PATIENCE = 0.9, 6
"""A round that leaves more of the gap than this is slow; after so many in a row the search ends."""

CREEPING = 2
"""Slow rounds in a row after which the next number lies halfway, whatever the tangent says."""

HAIR = 1e-10
"""The relative distance at which a tangent's root is missed on purpose."""

NEAR = 1e-9
"""How far below a mark it is tried, and how far above one that is reached the next; relative."""

FAILURES = 3
"""Linear programs that may fail in a search before it ends."""

TIME = "time limit"

W = TypeVar("W")
P = TypeVar("P")
W_co = TypeVar("W_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Answer(Generic[P]):
    """A linear program at one number.

    Attributes:
        missing: what is missing at its optimum, 0 where the number can be reached, or negative by what is
            more than enough there.
        slope: its derivative in the number.
        point: what it found.
        proof: its multipliers, of use where something is missing or more than enough.
    """

    missing: float
    slope: float
    point: FloatArray
    proof: P

    def root(self, number: float) -> float:
        """Where the tangent, which must rise, has nothing missing; never below 0."""
        return max(0.0, number - self.missing / self.slope)


class Task(Protocol[W_co, P]):
    """What a search is about: numbers x > 0 of which the largest that can be reached is wanted.

    Attributes:
        blur: what rounding may do to what is missing.
        marks: numbers above which what is missing jumps.
    """

    blur: float
    marks: FloatArray

    def solve(self, number: float, seconds: float | None) -> Answer[P]:
        """The linear program at a number; an ArithmeticError where its solver fails."""
        ...

    def witness(self, point: FloatArray) -> tuple[float, W_co] | None:
        """What a point proves to be reached, and the thing that reaches it; or None."""
        ...

    def proved(self, proof: P) -> float:
        """A number that cannot be exceeded, from any multipliers."""
        ...

    def beyond(self, now: P, then: P, step: float) -> P:
        """Multipliers so far from others, seen from them."""
        ...


class Search(Generic[W, P]):
    """Both ends of a search.

    Every linear program either has a witness, which is the lower end, or multipliers that prove an upper
    one, nearer than the number that was tried. The next number lies between the proved end and the root
    of the shortfall's tangent.

    Args:
        task: what it is about.
        start: witnesses to begin with: what each reaches, and it.
        proofs: multipliers to begin with, at least one.
        enough: the gap, as a difference of logarithms, at which it ends.
        time_limit: seconds, or None.
        earlier: a number that cannot be reached, and its linear program, from another search.

    Attributes:
        reached, witness: the lower end.
        upper, proofs: the upper end, and the multipliers that prove it.
        programs: how many linear programs there were.
    """

    def __init__(
        self,
        task: Task[W, P],
        start: Sequence[tuple[float, W]],
        proofs: Sequence[P],
        enough: float,
        time_limit: float | None,
        earlier: tuple[float, Answer[P]] | None = None,
    ) -> None:
        self.task, self.enough, self.limit = task, enough, time_limit
        self.begin = time.perf_counter()
        self.reached = 0.0
        self.witness: W | None = None
        for reached, witness in start:
            self._improve(reached, witness)
        self.upper, best = min(((task.proved(proof), proof) for proof in proofs), key=lambda found: found[0])
        self.proofs = [best]
        self.number = self.upper
        self.programs, self._idle, self._failures = 0, 0, 0
        self._untried, self._probed = np.sort(task.marks), set[float]()
        self._earlier = earlier
        mark = self._mark()
        if mark is not None:
            self.number = mark
        elif earlier is not None and earlier[1].slope > 0:
            self.number = self._next(earlier[1].root(earlier[0]), 1.0, earlier[1].slope)

    @property
    def gap(self) -> float:
        """Between the logarithms of both ends."""
        if self.upper <= self.reached:
            return 0.0
        return math.log(self.upper) - math.log(self.reached) if self.reached > 0 else math.inf

    def run(self) -> str:
        """Close in; how it ended."""
        while True:
            if self.gap <= self.enough:
                return "both ends meet"
            if self._idle >= PATIENCE or self.programs >= ROUNDS:
                return "nothing improves"
            left = None if self.limit is None else self.limit - (time.perf_counter() - self.begin)
            if left is not None and left <= 0:
                return TIME
            try:
                answer = self.task.solve(self.number, left)
            except ArithmeticError as cause:
                self._failures += 1
                if self._failures > FAILURES or str(cause) == TIME:
                    return str(cause)
                self.number = (self.number + (self.upper if self.number < self.upper else self.reached)) / 2
                continue
            self._take(answer)

    def _take(self, answer: Answer[P]) -> None:
        """Move the ends by what a linear program found, and choose the next number."""
        before = self.gap
        self.programs += 1
        found = self.task.witness(answer.point)
        if found is not None:
            self._improve(*found)
        root: float | None = None
        stride = AHEAD
        if answer.missing > MET or (answer.missing < -MET and answer.slope > 0):
            root = answer.root(self.number) if answer.slope > 0 else self.number
            stride = self._stride(answer)
            self._prove(answer.proof)
            for proof in self._ahead(answer, root):
                self._prove(proof)
            self._earlier = self.number, answer
        mark = self._mark()
        if mark is None:
            self._idle = self._idle + 1 if self.gap > SLOW * before else 0
        self.number = self._next(root, stride, answer.slope) if mark is None else mark

    def _improve(self, reached: float, witness: W) -> None:
        if reached > self.reached:
            self.reached, self.witness = reached, witness

    def _prove(self, proof: P) -> None:
        upper = self.task.proved(proof)
        if upper < self.upper:
            self.upper, self.proofs = upper, [proof]

    def _mark(self) -> float | None:
        """The middle one of the marks between the ends, or a number just above the one that is reached."""
        left = self._untried
        left = left[(left > self.reached * (1 + 2 * NEAR)) & (left < self.upper * (1 - NEAR))]
        if len(left):
            middle = left[len(left) // 2]
            self._untried = left[left != middle]
            return float(middle) * (1 - NEAR)
        probe = self.reached * (1 + 3 * NEAR)
        at = (np.abs(self.task.marks - self.reached) < 2 * NEAR * self.reached).any()
        if not at or probe >= self.upper or self.reached in self._probed:
            return None
        self._probed.add(self.reached)
        return probe

    def _next(self, root: float | None, stride: float, slope: float) -> float:
        """The next number: near the tangent's root, else the proved end, else halfway between the ends.

        A root that is believed is missed by a hair: there the program has multipliers, which prove nearly
        all, and is so little short that its point is a witness. What is missing must be more than rounding.
        """
        proved, reached = self.upper, self.reached
        if self._idle >= CREEPING:
            return (proved + reached) / 2
        if root is not None and reached < root < proved and slope > 0:
            if stride == 1 or self._idle:
                return min(proved, root * (1 + HAIR) + self.task.blur / slope)
            return proved - stride * (proved - root)
        if self._idle:
            return (proved + reached) / 2
        return proved if root is None else max(proved - stride * (proved - root), (proved + 9 * reached) / 10)

    def _stride(self, answer: Answer[P]) -> float:
        """All the way to the root if nothing is short or the last tangent told what is; else a part."""
        if answer.missing < 0:
            return 1.0
        if self._earlier is None:
            return AHEAD
        number, last = self._earlier
        told = last.missing + last.slope * (self.number - number)
        return 1.0 if abs(told - answer.missing) <= 1e-2 * answer.missing else AHEAD

    def _ahead(self, answer: Answer[P], root: float) -> list[P]:
        """Where the multipliers seem to go at the proved end and at a root: any will do."""
        if self._earlier is None or self._earlier[0] == self.number:
            return []
        number, last = self._earlier
        steps = [(target - self.number) / (self.number - number) for target in (self.upper, root)]
        return [self.task.beyond(answer.proof, last.proof, step) for step in steps]
