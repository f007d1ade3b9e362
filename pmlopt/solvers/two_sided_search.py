"""Two-sided search of the largest feasible parameter of linear programs, with dual proofs.

The search finds the largest x > 0 at which some constraints are feasible. For each fixed x they are linear,
and a point that is feasible at x is feasible at every smaller x; but x multiplies variables, so that no
single linear program computes it. The program at x minimises the infeasibility: 0 where x is feasible,
positive above. Bisection would take one program for each binary digit. Solutions give more than yes or no:

- a solution, repaired where the solver was inexact, is a *witness*: it is feasible at some x, a lower bound;
- its multipliers are a *proof*: by weak duality every x above some number is infeasible, which is an upper
  bound, usually below the x at which they were found;
- they give the derivative of the infeasibility, and the root of the tangent is the next x to try.

Both bounds are computed from the witness and the multipliers only, so that neither rests on a solver's
tolerance. An envelope is of this form: the largest likelihood ratio that outcomes of a given mass can have;
and a least leakage, with x = e^-level. `TwoSidedSearch` has an example. The search ends after 200 programs,
or after 8 that move the bounds by little.

The infeasibility may jump at values of x that are known beforehand (`marks`), and no tangent foresees that:
marks between the bounds are tried first, the middle one of them each time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.solvers.solver_result import TIME_LIMIT, Deadline

MARK_RTOL = 3e-10
"""The relative distance below a mark at which it is required; above one that is reached, three times as much.
It is below the gap that is wanted, and three times HiGHS' own tolerance, which must see the difference."""

BOUNDS_MEET = "both ends meet"
"""How a search that has come to its end states so."""


W = TypeVar("W")
P = TypeVar("P")
W_co = TypeVar("W_co", covariant=True)


@dataclass(frozen=True, eq=False)
class ParameterSolution(Generic[P]):
    """A linear program's solution at one value of its parameter.

    Attributes:
        infeasibility: at its optimum, 0 where the number can be reached, or negative by what
            is more than enough there.
        slope: its derivative in the number.
        point: what it found.
        multipliers: its multipliers, of use where something is missing or more than enough.
    """

    infeasibility: float
    slope: float
    point: FloatArray
    multipliers: P

    def tangent_root(self, number: float) -> float:
        """Return the root of the infeasibility's tangent."""
        return max(0.0, number - self.infeasibility / self.slope)


class ParametricFeasibility(Protocol[W_co, P]):
    """The interface of a family of linear programs with parameter x > 0, feasible up to a limit.

    Attributes:
        blur: the effect of rounding on the infeasibility.
        marks: numbers above which the infeasibility jumps.
    """

    blur: float
    marks: FloatArray

    def solve_at(self, number: float, deadline: Deadline) -> ParameterSolution[P]:
        """Solve the linear program at a value; raise an ArithmeticError on failure."""
        ...

    def lower_bound_of(self, point: FloatArray) -> tuple[float, W_co] | None:
        """Return the value proved feasible by a point, with the feasible object; None where repair fails."""
        ...

    def upper_bound_of(self, proof: P) -> float:
        """Return the upper bound on the value proved by multipliers."""
        ...

    def extrapolate(self, now: P, then: P, step: float) -> P:
        """Extrapolate multipliers along `now + step * (now - then)`, made valid."""
        ...


class TwoSidedSearch(Generic[W, P]):
    """The state of a two-sided search: feasible point, dual proof, and both bounds.

    Every linear program either has a witness, which raises the lower bound, or multipliers that prove an
    upper bound, no larger than the number that was tried. The next number lies between the upper bound and
    the root of the tangent to the infeasibility, and always within the bounds.

    Args:
        task: the family of programs.
        start: witnesses to begin with: what each reaches, and it.
        proofs: multipliers to begin with, at least one.
        enough: the gap, as a difference of logarithms, at which it ends.
        deadline: of the search.

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

        >>> from pmlopt.solvers.solver_result import NO_DEADLINE
        >>> class SquareRoot:
        ...     blur, marks = 0.0, np.zeros(0)
        ...     def solve_at(self, x, deadline):
        ...         return ParameterSolution(max(0.0, x - 2 / x), 1 + 2 / x**2, np.array([2 / x]), 1 / x)
        ...     def lower_bound_of(self, point):
        ...         return min(point[0], 2 / point[0]), point[0]
        ...     def upper_bound_of(self, lam):
        ...         return max(2 * lam, 1 / lam)
        ...     def extrapolate(self, now, then, step):
        ...         return max(1e-9, now + step * (now - then))
        >>> search = TwoSidedSearch(SquareRoot(), [], [0.2], 1e-9, NO_DEADLINE)
        >>> search.run(), round(float(search.reached), 8), round(float(search.upper), 8)
        ('both ends meet', 1.41421356, 1.41421356)
    """

    FEASIBILITY_ATOL: ClassVar[float] = 1e-12
    """What may be missing where the demands count as met, in the unit of the objective: a solver's zero."""

    UNTRUSTED_STEP_FRACTION: ClassVar[float] = 0.3
    """The share of the way from the upper bound to the tangent's root that a step takes while the tangent is
    not trusted: a step too far ends where nothing is missing, and a program there proves no upper bound."""

    ROOT_RTOL: ClassVar[float] = 3e-11
    """The relative distance above a trusted root at which x is taken, far below the gap that is wanted, 1e-9:
    at the root itself nothing is missing, and the multipliers may be 0."""

    def __init__(
        self,
        task: ParametricFeasibility[W, P],
        start: Sequence[tuple[float, W]],
        proofs: Sequence[P],
        target_gap: float,
        deadline: Deadline,
    ) -> None:
        self.task = task
        self.target_gap = target_gap
        self.deadline = deadline
        self.reached = 0.0
        self.witness: W | None = None
        # witnesses are checked points: the largest is the first lower bound
        for reached, witness in start:
            self._raise_lower_bound(reached, witness)
        self.upper, best = min(
            ((task.upper_bound_of(proof), proof) for proof in proofs), key=lambda found: found[0]
        )
        self.proofs = [best]
        self.number = self.upper
        self.wanted = 0.0
        self.programs = 0
        self._idle = 0
        self._failures = 0
        self._hair = self.ROOT_RTOL
        # the largest number at which nothing was missing, though no witness reaches it
        self._met = 0.0
        self._untried = np.sort(task.marks)
        self._probed = set[float]()
        self._earlier: tuple[float, ParameterSolution[P]] | None = None
        mark = self._choose_mark()
        if mark is not None:
            self.number = mark

    @property
    def log_gap(self) -> float:
        """Return the difference of the bounds' logarithms."""
        if self.upper <= self.reached:
            return 0.0
        # a difference of logarithms: the quotient may overflow
        return math.log(self.upper) - math.log(self.reached) if self.reached > 0 else math.inf

    def run(self) -> str:
        """Solve linear programs until the bounds meet or a limit is reached; return how it ended."""
        while True:
            if (
                self.log_gap <= self.target_gap
                or 0 < self.wanted <= self.reached
                or self.upper < self.wanted
            ):
                return BOUNDS_MEET
            # most searches take fewer than ten programs
            # after eight stalled iterations in a row the search ends with its gap
            if self._idle >= 8 or self.programs >= 200:
                return "nothing improves"
            if self.deadline.expired:
                return TIME_LIMIT
            try:
                answer = self.task.solve_at(self.number, self.deadline)
            except ArithmeticError as cause:
                raise_if_strict(cause)
                self._failures += 1
                # the solver may fail on three programs of a search
                if self._failures > 3 or str(cause) == TIME_LIMIT:
                    return str(cause)
                # a failure at one value need not recur next to it: the next try is half way
                self.number = (
                    self.number + (self.upper if self.number < self.upper else self.reached)
                ) / 2
                continue
            self._use_solution(answer)

    def _use_solution(self, answer: ParameterSolution[P]) -> None:
        """Update the bounds from a solution, and choose the next value."""
        # By how much the distance grows after a program that moves a bound by little: where rounding decides
        # next to the root, multipliers prove it further away.
        widening = 5.0
        before = self.log_gap
        self.programs += 1
        self.try_point(answer.point)
        root: float | None = None
        stride = self.UNTRUSTED_STEP_FRACTION
        if answer.infeasibility > self.FEASIBILITY_ATOL or (
            answer.infeasibility and answer.slope > 0
        ):
            # Newton's step on the infeasibility, as a function of the parameter
            root = self._clip_to_bounds(
                answer.tangent_root(self.number) if answer.slope > 0 else self.number
            )
            stride = self._choose_step_fraction(answer)
            self._reduce_upper_bound(answer.multipliers)
            for proof in self._extrapolate_multipliers(answer, root):
                self._reduce_upper_bound(proof)
            self._earlier = self.number, answer
        # nothing is missing, and yet no witness: below here the solver is of no help
        if answer.infeasibility <= 0 and self.number < self.upper:
            self._met = max(self._met, self.number)
        mark = self._choose_mark()
        if mark is None:
            # an iteration that leaves more than 90 % of the gap is stalled
            stalled = self.log_gap > 0.9 * before
            self._idle = self._idle + 1 if stalled else 0
            self._hair = (
                widening * self._hair if stalled else max(self.ROOT_RTOL, self._hair / widening)
            )
        self.number = self._choose_next(root, stride, answer.slope) if mark is None else mark

    def try_point(self, point: FloatArray | None) -> None:
        """Raise the lower bound by a feasible point, if larger."""
        found = None if point is None else self.task.lower_bound_of(point)
        if found is not None:
            self._raise_lower_bound(*found)

    def _raise_lower_bound(self, reached: float, witness: W) -> None:
        """Raise the lower bound to a reached value, if larger."""
        if reached > self.reached:
            self.reached = reached
            self.witness = witness

    def _reduce_upper_bound(self, proof: P) -> None:
        """Lower the upper bound by a dual proof, if smaller."""
        upper = self.task.upper_bound_of(proof)
        if upper < self.upper:
            self.upper = upper
            self.proofs = [proof]

    def _choose_mark(self) -> float | None:
        """Choose the middle mark between the bounds, or a value just above the lower one."""
        left = self._untried
        # marks outside of the bounds are decided already
        left = left[
            (left > self.reached * (1 + 2 * MARK_RTOL)) & (left < self.upper * (1 - MARK_RTOL))
        ]
        if len(left):
            # bisection over marks: each program decides half of them
            middle = left[len(left) // 2]
            self._untried = left[left != middle]
            return float(middle) * (1 - MARK_RTOL)
        probe = self.reached * (1 + 3 * MARK_RTOL)
        at = (np.abs(self.task.marks - self.reached) < 2 * MARK_RTOL * self.reached).any()
        if not at or probe >= self.upper or self.reached in self._probed:
            return None
        self._probed.add(self.reached)
        return probe

    @property
    def _log_midpoint(self) -> float:
        """Return the (geometric) midpoint of the bounds."""
        low = max(self.reached, self._met)
        return math.sqrt(self.upper * low) if low > 0 else self.upper / 2

    def _clip_to_bounds(self, root: float) -> float:
        """Clip a tangent root to the bounds."""
        return min(max(root, self.reached), self.upper)

    def _choose_next(self, root: float | None, stride: float, slope: float) -> float:
        """Choose the next value: near the tangent root, the upper bound or the midpoint.

        The trial point is slightly off the estimated root: there the program has multipliers, which prove
        nearly all, and its infeasibility is so small that its point is a witness, but above rounding.
        """
        proved = self.upper
        reached = self.reached
        hair = self._hair
        # every third stalled step bisects, so that a wrong tangent cannot stall the search
        if self._idle % 3 == 2:
            return self._log_midpoint
        if root is not None and slope > 0:
            root = min(root, proved)  # multipliers may have proved more than the tangent
            if stride < 1 and not self._idle:
                return proved - stride * (proved - root)
            # slightly above the root something is missing, and multipliers prove a bound
            above = root * (1 + hair) + self.task.blur / slope
            if above < proved * (1 - hair / 2) or not self._idle:
                return min(proved, above)
            return max(proved * (1 - hair), reached * (1 + hair / 2))
        return max(proved * (1 - hair), self._log_midpoint) if self._idle else proved

    def _choose_step_fraction(self, answer: ParameterSolution[P]) -> float:
        """Return the fraction of the way to the root for the next value."""
        if answer.infeasibility <= self.FEASIBILITY_ATOL:
            return 1.0
        if self._earlier is None:
            return self.UNTRUSTED_STEP_FRACTION
        number, last = self._earlier
        # what the last tangent predicts here: if it was right, the function is nearly linear
        predicted = last.infeasibility + last.slope * (self.number - number)
        if abs(predicted - answer.infeasibility) <= 1e-2 * answer.infeasibility:
            return 1.0
        return self.UNTRUSTED_STEP_FRACTION

    def _extrapolate_multipliers(self, answer: ParameterSolution[P], root: float) -> list[P]:
        """Extrapolate multipliers from the last two solutions."""
        if self._earlier is None or self._earlier[0] == self.number:
            return []
        number, last = self._earlier
        steps = [(target - self.number) / (self.number - number) for target in (self.upper, root)]
        return [self.task.extrapolate(answer.multipliers, last.multipliers, step) for step in steps]
