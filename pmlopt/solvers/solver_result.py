"""The interface of solvers: options, deadlines, points and results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import cp, is_installed
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray, check_positive
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

TIME_LIMIT = "time limit"
"""How what ran out of time states so."""


@light_dataclass(frozen=True)
class Deadline:
    """A point in time after which a computation must end.

    Attributes:
        end: that reading; infinite without a limit.
        read: the reading now, in seconds.

    Examples:
        >>> deadline = Deadline.after(60.0)
        >>> deadline.expired, deadline.remaining() <= 60.0, Deadline().remaining()
        (False, True, None)
    """

    end: float = math.inf
    read: Callable[[], float] = time.perf_counter

    @classmethod
    def after(
        cls, seconds: float | None, read: Callable[[], float] = time.perf_counter
    ) -> Deadline:
        """Create a deadline some seconds from now; None never expires."""
        return cls(math.inf if seconds is None else read() + seconds, read)

    @property
    def is_limited(self) -> bool:
        """Return whether the deadline is finite."""
        return not math.isinf(self.end)

    @property
    def expired(self) -> bool:
        """Return whether the time limit is reached."""
        return self.end < math.inf and self.read() >= self.end

    def expired_for(self, seconds: float) -> bool:
        """Return whether the deadline passed at least `seconds` ago."""
        return self.end < math.inf and self.read() >= self.end + seconds

    def remaining(self, least: float = 0.0) -> float | None:
        """Return the remaining seconds, at least `least`; None without a limit."""
        return max(least, self.end - self.read()) if self.end < math.inf else None

    def fraction(self, ratio: float) -> Deadline:
        """Return the deadline after a fraction of the remaining time."""
        if not self.is_limited:
            return self
        now = self.read()
        # an expired deadline stays one: the rest is cut off at 0
        return replace(self, end=now + ratio * max(0.0, self.end - now))

    def earlier(self, seconds: float) -> Deadline:
        """Return the deadline moved `seconds` earlier."""
        return replace(self, end=self.end - seconds)

    def at_most(self, seconds: float) -> Deadline:
        """Return the earlier of this deadline and some seconds from now."""
        return replace(self, end=min(self.end, self.read() + seconds))

    def at_least(self, seconds: float) -> Deadline:
        """Return the later of this deadline and some seconds from now."""
        return replace(self, end=max(self.end, self.read() + seconds)) if self.is_limited else self


NO_DEADLINE = Deadline()
"""The deadline without a limit."""


@light_dataclass(frozen=True)
class MethodOptions:
    """The user's settings of a solve: deadline, tolerance and solver options.

    Attributes:
        deadline: of the whole solve.
        tolerance: of residuals and gap.
        solver_options: the solver's own options by name, handed to it as they are.
        verbose: whether the solver prints its log.
    """

    deadline: Deadline
    tolerance: float
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    verbose: bool = False


def make_options(
    time_limit: float | None,
    tolerance: float,
    solver_options: Mapping[str, Any] | None = None,
    verbose: bool = False,
) -> MethodOptions:
    """Validate a user's settings, and build the options of a solve."""
    own = {} if solver_options is None else solver_options
    if not isinstance(own, Mapping) or (own and not all(isinstance(name, str) for name in own)):
        raise InputError(
            f"solver options are values by name, such as {{'max_iter': 50}}, not {own!r:.60}"
        )
    if not isinstance(verbose, bool):
        raise InputError(f"verbose is True or False, not {verbose!r:.60}")
    # a tolerance of 0 is never met in floats
    accuracy = check_positive(tolerance, "the tolerance", InputError)
    if time_limit is None:
        return MethodOptions(NO_DEADLINE, accuracy, dict(own), verbose)
    limit = check_positive(time_limit, "the time limit in seconds", InputError)
    return MethodOptions(Deadline.after(limit), accuracy, dict(own), verbose)


@light_dataclass(frozen=True, eq=False)
class PrimalDualPoint:
    """A mechanism matrix with row multipliers, and optional dual certificates."""

    matrix: FloatArray
    multipliers: FloatArray | None
    dual_bound: float | None = None
    dual_certificate: Mapping[str, FloatArray] | None = None


@light_dataclass(frozen=True)
class SolverResult:
    """A solver's own result and statistics, which no claim rests on.

    Attributes:
        state: "point" (the variables hold a point, good or not), "infeasible" or "failed".
        finished: whether the solver states that it ended at an optimum.
        message: the solver's status in its own words.
        point: the mechanism, where there is a point.
        warm_start_arrays: what the solver can start from next time, by name.
    """

    state: Literal["point", "infeasible", "failed"]
    finished: bool
    message: str
    iterations: int | None
    warm_started: bool
    compile_seconds: float
    solve_seconds: float
    point: PrimalDualPoint | None = None
    warm_start_arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def from_point(
        cls, point: PrimalDualPoint, message: str, finished: bool, iterations: int,
        begin: float, compiled: float, warm_started: bool = False,
    ) -> SolverResult:  # fmt: skip
        """Return the result of a method of pmlopt that ends now, by when it began and was ready to solve."""
        solving = time.perf_counter() - compiled
        start = compiled - begin
        return cls("point", finished, message, iterations, warm_started, start, solving, point)


@light_dataclass(frozen=True)
class CompiledProblem:
    """A cvxpy problem compiled for one solver, with scaled objective."""

    problem: cp.Problem
    data: dict[str, Any]
    chain: Any
    inverse: Any
    scale: float
    seconds: float

    def unpack_solution(self, solution: Any) -> None:
        """Store a solution in the problem's variables and constraints, unscaled."""
        # the objective was divided by the scale, and multipliers are in its units
        solution.dual_vars = {
            key: np.asarray(value) * self.scale for key, value in (solution.dual_vars or {}).items()
        }
        self.problem.unpack(solution)


def compile_problem(
    problem: cp.Problem, solver: str | Any, settings: Mapping[str, Any] | None = None
) -> CompiledProblem:
    """Compile a cvxpy problem for a solver, by name or as an object; raise cp.SolverError if impossible."""
    start = time.perf_counter()
    data, chain, inverse = problem.get_problem_data(solver, solver_opts=dict(settings or {}))
    scale = _scale_objective(data)
    return CompiledProblem(problem, data, chain, inverse, scale, time.perf_counter() - start)


def _scale_objective(data: dict[str, Any]) -> float:
    """Divide the objective of a compiled problem by its largest coefficient, and return that.

    Solvers stop at absolute tolerances: gains of 1e9 and of 1e-9 must look alike to them. Where cvxpy hands
    over a model of the solver's own, that is what it reads.
    """
    if "pdlp_model" in data:
        model = data["pdlp_model"]
        scale = _find_scale(np.asarray(model.objective_vector))
        model.objective_vector = np.asarray(model.objective_vector) / scale
        return scale
    if "model_proto" in data:
        columns = data["model_proto"].variable
        scale = _find_scale(np.array([one.objective_coefficient for one in columns]))
        for one in columns:
            one.objective_coefficient /= scale
        return scale
    key = next((name for name in ("c", "q") if name in data), None)
    if key is None:
        return 1.0
    scale = _find_scale(data[key])
    data[key] = data[key] / scale
    return scale


def _find_scale(costs: FloatArray) -> float:
    """Return the largest size of a coefficient; one where all are zero."""
    return float(np.abs(costs).max(initial=0.0)) or 1.0


def limit_threads() -> AbstractContextManager[Any]:
    """Limit linear algebra to one thread within the context.

    Threads in many processes wait for one another, and their number changes the last digits. Where the
    package threadpoolctl is missing, there is no limit.
    """
    pools = None if _is_limited.get() else _get_thread_pools()
    return nullcontext() if pools is None else _limit_pools(pools)


_is_limited = ContextVar("_is_limited", default=False)


@contextmanager
def _limit_pools(pools: ThreadpoolController) -> Iterator[None]:
    """Limit thread pools to one thread each; contexts within this one leave them as they are."""
    mark = _is_limited.set(True)
    try:
        with pools.limit(limits=1):
            yield
    finally:
        _is_limited.reset(mark)


@cache
def _get_thread_pools() -> ThreadpoolController | None:
    """Return the process's thread pools; None without threadpoolctl.

    Those of scipy are loaded first, so that they are limited too.
    """
    if not is_installed("threadpoolctl"):
        return None
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


FACTOR_MARGIN_RTOL = 2.0**-40
"""Share by which constraints on a variable are stricter than the claim: 9e-13, far above the rounding of a
matrix entry (2^-53) and far below the tolerances of solvers (1e-9 to 1e-7)."""


Shares = TypeVar("Shares", float, FloatArray)


def tighten_factor(factor: Shares) -> Shares:
    """Return factors e^-eps tightened by 2^-40, as a safety margin for solvers.

    A vertex then satisfies the claim after its entries are rounded to floats, zeros and all: without the
    margin its tight entries would need a repair, which fills the zeros. The share is far
    below any solver's tolerance, and so is what it costs the utility.
    """
    stricter = factor * (1 + FACTOR_MARGIN_RTOL)
    return np.minimum(1.0, stricter) if isinstance(stricter, np.ndarray) else min(1.0, stricter)
