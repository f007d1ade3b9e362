"""The largest feasible value of a parameter by linear programs, with a feasible point and a dual proof.

Wanted is the largest x > 0 at which some constraints can be met. For each fixed x they are linear, and what
meets them at x meets them at every smaller x; but x multiplies variables, so that no single linear program
tells. The program at x minimises what is missing: 0 where x is feasible, positive above. Bisection would take
one program for each binary digit. Their solutions say more than yes or no:

- a solution, mended where the solver was inexact, is a *witness*: it reaches some x by itself, a lower bound;
- its multipliers are a *proof*: by weak duality something is missing at every x above some number, an upper
  bound, which usually is below the x at which they were found;
- the derivative of what is missing comes with them, and the root of the tangent is where to ask next.

Both bounds are computed from the witness and the multipliers alone, so that neither rests on a solver's
tolerance. An envelope is of this form: the largest likelihood ratio that outcomes of a given mass can have;
and a least leakage, with the share e^-level. An example stands at `Search`. It ends by itself: after 200
programs, or 8 that hardly move a bound.

What is missing may jump, at values of x that are known beforehand (`marks`), and no tangent foresees that:
marks between the bounds are asked first, the middle one of them each time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.solvers.outcome import TIME, Clock

FEASIBILITY_TOLERANCE = 1e-12
"""What may be missing where the demands count as met, in the unit of the objective: a solver's zero."""

STEP_FRACTION = 0.3
"""The share of the way from the upper bound to the tangent's root that a step takes while the tangent is not
trusted: a step too far ends where nothing is missing, and a program there proves no upper bound."""


ROOT_OFFSET = 3e-11
"""The relative distance above a trusted root at which x is taken, far below the gap that is wanted, 1e-9: at
the root itself nothing is missing, and the multipliers may be 0."""


MARK_OFFSET = 3e-10
"""The relative distance below a mark at which it is asked; above one that is reached, three times as much. It
is below the gap that is wanted, and three times HiGHS' own tolerance, which must see the difference."""

MET = "both ends meet"
"""How a search that has come to its end says so."""


W = TypeVar("W")
P = TypeVar("P")
W_co = TypeVar("W_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Answer(Generic[P]):
    """The solution of a linear program at one value of its parameter.

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
        """Return where the tangent, which must rise, reaches 0; never below 0, and perhaps infinite."""
        return max(0.0, number - self.missing / self.slope)


class ParametricFeasibility(Protocol[W_co, P]):
    """A family of linear programs, one for each x > 0, of which the largest feasible x is wanted.

    Attributes:
        blur: what rounding may do to what is missing.
        marks: numbers above which what is missing jumps.
    """

    blur: float
    marks: FloatArray

    def solve(self, number: float, clock: Clock) -> Answer[P]:
        """Solve the linear program at a value; raise an ArithmeticError where its solver fails."""
        ...

    def witness(self, point: FloatArray) -> tuple[float, W_co] | None:
        """Return the value that a point proves feasible, and the object that attains it; or None."""
        ...

    def proved(self, proof: P) -> float:
        """Return a value that cannot be exceeded, from any multipliers."""
        ...

    def beyond(self, now: P, then: P, step: float) -> P:
        """Compute multipliers extrapolated along a line, `now + step * (now - then)`, and make them valid."""
        ...


class Search(Generic[W, P]):
    """The lower and upper bound of a search, and the linear programs between them.

    Every linear program either has a witness, which raises the lower bound, or multipliers that prove an
    upper bound, no larger than the number that was tried. The next number lies between the upper bound and
    the root of the tangent to what is missing, and always within the bounds.

    Args:
        task: the family of programs.
        start: witnesses to begin with: what each reaches, and it.
        proofs: multipliers to begin with, at least one.
        enough: the gap, as a difference of logarithms, at which it ends.
        clock: what is left of the time.

    Attributes:
        reached, witness: the lower bound, and what reaches it.
        upper, proofs: the upper bound, and the multipliers that prove it.
        number: which is tried next; the search chooses it, unless it is set before the first.
        wanted: a number, if it is positive, at which the search ends once that is decided.
        programs: how many linear programs there were.

    Examples:
        The largest x with `x w <= 2` and `w >= x` for some w, the square root of 2. At x the program
        `min s, x w <= 2, w + s >= x` has w = 2 / x and the multiplier lam = 1 / x of the first constraint;
        lam proves by duality that nothing above max(2 lam, 1 / lam) is feasible.

        >>> from pmlopt.solvers.outcome import FOREVER
        >>> class SquareRoot:
        ...     blur, marks = 0.0, np.zeros(0)
        ...     def solve(self, x, clock):
        ...         return Answer(max(0.0, x - 2 / x), 1 + 2 / x**2, np.array([2 / x]), 1 / x)
        ...     def witness(self, point):
        ...         return min(point[0], 2 / point[0]), point[0]
        ...     def proved(self, lam):
        ...         return max(2 * lam, 1 / lam)
        ...     def beyond(self, now, then, step):
        ...         return max(1e-9, now + step * (now - then))
        >>> search = Search(SquareRoot(), [], [0.2], 1e-9, FOREVER)
        >>> search.run(), round(float(search.reached), 8), round(float(search.upper), 8)
        ('both ends meet', 1.41421356, 1.41421356)
    """

    def __init__(
        self,
        task: ParametricFeasibility[W, P],
        start: Sequence[tuple[float, W]],
        proofs: Sequence[P],
        enough: float,
        clock: Clock,
    ) -> None:
        self.task, self.enough, self.clock = task, enough, clock
        self.reached = 0.0
        self.witness: W | None = None
        for reached, witness in start:
            self._improve(reached, witness)
        self.upper, best = min(((task.proved(proof), proof) for proof in proofs), key=lambda found: found[0])
        self.proofs = [best]
        self.number, self.wanted = self.upper, 0.0
        self.programs, self._idle, self._failures, self._hair = 0, 0, 0, ROOT_OFFSET
        self._met = 0.0  # the largest number at which nothing was missing, though no witness reaches it
        self._untried, self._probed = np.sort(task.marks), set[float]()
        self._earlier: tuple[float, Answer[P]] | None = None
        mark = self._mark()
        if mark is not None:
            self.number = mark

    @property
    def gap(self) -> float:
        """Return the difference of the logarithms of both bounds."""
        if self.upper <= self.reached:
            return 0.0
        return math.log(self.upper) - math.log(self.reached) if self.reached > 0 else math.inf

    def run(self) -> str:
        """Solve linear programs until the bounds meet or a limit is reached; return how the search ended."""
        while True:
            if self.gap <= self.enough or 0 < self.wanted <= self.reached or self.upper < self.wanted:
                return MET
            # most searches take fewer than ten programs
            # after eight stalled iterations in a row the search ends with its gap
            if self._idle >= 8 or self.programs >= 200:
                return "nothing improves"
            if self.clock.late:
                return TIME
            try:
                answer = self.task.solve(self.number, self.clock)
            except ArithmeticError as cause:
                raise_if_strict(cause)
                self._failures += 1
                # the solver may fail on three programs of a search
                if self._failures > 3 or str(cause) == TIME:
                    return str(cause)
                self.number = (self.number + (self.upper if self.number < self.upper else self.reached)) / 2
                continue
            self._take(answer)

    def _take(self, answer: Answer[P]) -> None:
        """Move the bounds by the solution of a linear program, and choose the next value."""
        # By how much the distance grows after a program that hardly moves a bound: where rounding decides
        # beside the root, multipliers prove it further away.
        widening = 5.0
        before = self.gap
        self.programs += 1
        self.take(answer.point)
        root: float | None = None
        stride = STEP_FRACTION
        if answer.missing > FEASIBILITY_TOLERANCE or (answer.missing and answer.slope > 0):
            root = self._within(answer.root(self.number) if answer.slope > 0 else self.number)
            stride = self._stride(answer)
            self._prove(answer.proof)
            for proof in self._ahead(answer, root):
                self._prove(proof)
            self._earlier = self.number, answer
        if answer.missing <= 0 and self.number < self.upper:
            self._met = max(self._met, self.number)
        mark = self._mark()
        if mark is None:
            # an iteration that leaves more than 90 % of the gap is stalled
            stalled = self.gap > 0.9 * before
            self._idle = self._idle + 1 if stalled else 0
            self._hair = widening * self._hair if stalled else max(ROOT_OFFSET, self._hair / widening)
        self.number = self._next(root, stride, answer.slope) if mark is None else mark

    def take(self, point: FloatArray | None) -> None:
        """Raise the lower bound to what a point proves feasible, where that is more."""
        found = None if point is None else self.task.witness(point)
        if found is not None:
            self._improve(*found)

    def _improve(self, reached: float, witness: W) -> None:
        if reached > self.reached:
            self.reached, self.witness = reached, witness

    def _prove(self, proof: P) -> None:
        upper = self.task.proved(proof)
        if upper < self.upper:
            self.upper, self.proofs = upper, [proof]

    def _mark(self) -> float | None:
        """Choose the middle one of the marks between the bounds, or a value just above the reached one."""
        left = self._untried
        left = left[(left > self.reached * (1 + 2 * MARK_OFFSET)) & (left < self.upper * (1 - MARK_OFFSET))]
        if len(left):
            middle = left[len(left) // 2]
            self._untried = left[left != middle]
            return float(middle) * (1 - MARK_OFFSET)
        probe = self.reached * (1 + 3 * MARK_OFFSET)
        at = (np.abs(self.task.marks - self.reached) < 2 * MARK_OFFSET * self.reached).any()
        if not at or probe >= self.upper or self.reached in self._probed:
            return None
        self._probed.add(self.reached)
        return probe

    @property
    def _middle(self) -> float:
        """Return the value halfway between the bounds, in logarithms where the lower one is positive."""
        low = max(self.reached, self._met)
        return math.sqrt(self.upper * low) if low > 0 else self.upper / 2

    def _within(self, root: float) -> float:
        """Move a tangent's root between the bounds: a slope that is noise may put it anywhere."""
        return min(max(root, self.reached), self.upper)

    def _next(self, root: float | None, stride: float, slope: float) -> float:
        """Choose the next value: near the tangent's root, else the upper bound, else halfway.

        A root that is believed is missed by a hair: there the program has multipliers, which prove nearly
        all, and is so little short that its point is a witness. What is missing must be more than rounding.
        """
        proved, reached, hair = self.upper, self.reached, self._hair
        if self._idle % 3 == 2:
            return self._middle
        if root is not None and reached <= root <= proved and slope > 0:
            if stride < 1 and not self._idle:
                return proved - stride * (proved - root)
            above = root * (1 + hair) + self.task.blur / slope
            if above < proved * (1 - hair / 2) or not self._idle:
                return min(proved, above)
            return max(proved * (1 - hair), reached * (1 + hair / 2))
        if self._idle:
            return max(proved * (1 - hair), self._middle)
        if root is None or slope <= 0:
            return proved
        return max(proved - stride * (proved - root), (proved + 9 * reached) / 10)

    def _stride(self, answer: Answer[P]) -> float:
        """Return the fraction of the way to the root: 1 if feasible or the last tangent was right."""
        if answer.missing <= FEASIBILITY_TOLERANCE:
            return 1.0
        if self._earlier is None:
            return STEP_FRACTION
        number, last = self._earlier
        told = last.missing + last.slope * (self.number - number)
        return 1.0 if abs(told - answer.missing) <= 1e-2 * answer.missing else STEP_FRACTION

    def _ahead(self, answer: Answer[P], root: float) -> list[P]:
        """Compute multipliers extrapolated from the last two programs to the upper bound and to the root."""
        if self._earlier is None or self._earlier[0] == self.number:
            return []
        number, last = self._earlier
        steps = [(target - self.number) / (self.number - number) for target in (self.upper, root)]
        return [self.task.beyond(answer.proof, last.proof, step) for step in steps]
