"""The method for least leakage by orbits: the level at which the best expected gain reaches the floor."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import PML
from pmlopt.programs.question import Found, Method, MethodError, Question, always_cold, uncertified
from pmlopt.programs.symmetric.methods import SIMPLEX_ORBITS
from pmlopt.programs.symmetric.repair import OrbitRepair, repair_orbits
from pmlopt.programs.symmetric_leakage.certificate import SymmetricLevelCertificate, least_level_by_orbits
from pmlopt.programs.symmetric_leakage.program import SymmetricLeastLeakage
from pmlopt.solvers import highs
from pmlopt.solvers.outcome import Options

MAX_PROGRAMS = 60
"""Linear programs after which the search ends with the gap that is left; most take ten to thirty."""

STEP_SHARE = 0.25
"""The share of the tolerance above the proved level at which the next program is: its witness ends it."""


@dataclass
class Ends:
    """The two ends of the search.

    Attributes:
        proved: the level that no mechanism can be below.
        multipliers: what proves it.
        level: that of the best mechanism in hand.
        repair: the mechanism.
        programs: linear programs so far.
        short: levels at which the floor was not reached, each with what was missing, the last two.
        over: the least level at which it was, with what was left.
    """

    proved: float = 0.0
    multipliers: FloatArray | None = None
    level: float = math.inf
    repair: OrbitRepair | None = None
    programs: int = 0
    short: list[tuple[float, float]] = field(default_factory=list)
    over: tuple[float, float] | None = None

    @property
    def gap(self) -> float:
        """How far the ends are apart."""
        return self.level - self.proved


def search_levels(
    program: SymmetricLeastLeakage, options: Options, _: None
) -> Found[SymmetricLevelCertificate]:
    """Search, and certify what was found."""
    begin = time.perf_counter()
    clock, ends = options.clock, Ends()
    allowed = program.allowed_gap(options.tolerance)
    epsilon = step = STEP_SHARE * allowed
    while ends.gap > allowed and ends.programs < MAX_PROGRAMS and not clock.late:
        _ask(program, epsilon, ends, options)
        epsilon = _next_level(ends, step)
    if ends.repair is None:
        raise MethodError(f"no mechanism in hand after {ends.programs} programs")
    return Found(
        certificate=_certificate(program, ends),
        finished=ends.gap <= allowed,
        message=f"{ends.programs} linear programs",
        detail=f"{program.space.orbits.count} orbits of pairs",
        iterations=ends.programs,
        solve_seconds=time.perf_counter() - begin,
        arrays={"orbits": ends.repair.mechanism.lifts},
    )


def _ask(program: SymmetricLeastLeakage, epsilon: float, ends: Ends, options: Options) -> None:
    """The best gain within a level: what reaches the floor is a witness, and the multipliers are a proof."""
    ends.programs += 1
    program.share.value = math.exp(-epsilon) * (1 + 2.0**-40)
    method = "highs" if program.space.orbits.count <= SIMPLEX_ORBITS else "highs-ipm"
    outcome = highs.run(program.problem, method, options, warm=False)
    if outcome.state != "point":
        raise MethodError(outcome.message)
    columns = program.columns(epsilon)
    duals = program.constraints["rows"].dual_value
    if duals is not None:
        rho = np.asarray(duals) / program.space.orbits.masses
        for guess in (rho, np.where(program.space.orbits.masses < 1e-11, 0.0, rho)):
            proved = least_level_by_orbits(columns, program.gains, program.least, guess)
            if ends.proved < proved < math.inf:
                ends.proved, ends.multipliers = proved, guess
    lifts = np.asarray(program.variables["orbits"].value)
    slack = program.slack(lifts)
    try:
        found = repair_orbits(program.space, columns, PML(epsilon), lifts)
    except MechanismError:
        found = None
    if found is not None and program.slack(found.mechanism.lifts) >= -program.rounding_of_floor:
        if epsilon < ends.level:
            ends.level, ends.repair, ends.over = epsilon, found, (epsilon, max(slack, 0.0))
    else:
        ends.short = [*ends.short[-1:], (epsilon, min(slack, 0.0))]


def _next_level(ends: Ends, step: float) -> float:
    """Where to ask next: just above the proved level, or at the root of a secant of the slack if it is more.

    Every third program is halfway between the ends, so that the search ends whatever the slack is like.
    """
    low, root = ends.proved + step, 0.0
    points = [*ends.short, ends.over] if ends.over is not None else ends.short
    if len(points) >= 2 and points[-1] is not None and points[-2] is not None:
        (a, s), (b, t) = points[-2], points[-1]
        root = b - t * (b - a) / (t - s) + step if t > s else 0.0
    if ends.over is None:
        return max(low, min(root, 2 * low + 1.0))
    if ends.programs % 3 == 0 or not low <= root < ends.level:
        return (ends.proved + ends.level) / 2 if ends.gap > 4 * step else low
    return root


def _certificate(program: SymmetricLeastLeakage, ends: Ends) -> SymmetricLevelCertificate:
    assert ends.repair is not None
    columns = program.columns(ends.level)
    return SymmetricLevelCertificate(
        mechanism=ends.repair.mechanism,
        value=ends.level,
        bound=min(ends.proved, ends.level),
        privacy=PML(ends.level),
        columns=columns,
        multipliers=ends.multipliers,
        table=program.values,
        maximised=program.utility.maximised,
        repair=ends.repair.change,
        floor=program.floor,
    )


QUESTION = Question(
    SymmetricLeastLeakage,
    (
        Method(
            "level-search",
            "multipliers of the best gain within one level prove another: secants on the level",
            search_levels,
        ),
    ),
    always_cold,
    uncertified("a mechanism by orbits is no matrix: there is no certificate of a matrix alone"),
)
"""Least leakage on a symmetric prior."""
