"""The methods for designs by orbits: linear programs with few variables, for HiGHS and Clarabel."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.question import Found, Method, MethodError, Question, always_cold, uncertified
from pmlopt.programs.symmetric.certificate import SymmetricCertificate
from pmlopt.programs.symmetric.program import SymmetricDesign
from pmlopt.programs.symmetric.repair import repair_orbits
from pmlopt.solvers import highs, through_cvxpy
from pmlopt.solvers.outcome import Options

_RARE = (1e-14, 1e-11, 1e-8, 1e-5)
"""Probabilities of an orbit of letters below which a solver's multiplier may be noise."""


def certify_symmetric(
    program: SymmetricDesign, lifts: FloatArray, multipliers: FloatArray | None
) -> SymmetricCertificate:
    """Repair numbers on orbits, recompute all others from them, and bound what can be reached.

    Args:
        program: the design problem.
        lifts: (C,) a solver's answer, or any mechanism by orbits.
        multipliers: (L,) any rho for the centred gains, best the multipliers of the rows over their masses. A
            few others that need no solver are tried too, and the best kept.

    Raises:
        MechanismError: the numbers are no mechanism even roughly.
    """
    columns = program.columns
    fixed = repair_orbits(program.space, columns, program.privacy, lifts)
    own = fixed.mechanism.lifts
    gain = float((columns.weights * own) @ program.centred)
    best, rho = math.inf, None
    for guess in _guesses(program, own, multipliers):
        if np.isfinite(guess).all() and (bound := columns.raw_bound(program.centred, guess)) < best:
            best, rho = bound, guess
    if rho is not None:
        best += columns.rounding_in(program.centred, rho)
    sign = 1.0 if program.maximised else -1.0
    return SymmetricCertificate(
        mechanism=fixed.mechanism,
        value=program.constant + sign * gain,
        bound=program.constant + sign * best,
        privacy=program.privacy,
        columns=columns,
        multipliers=rho,
        table=program.values,
        maximised=program.maximised,
        repair=fixed.change,
    )


def _guesses(program: SymmetricDesign, lifts: FloatArray, given: FloatArray | None) -> Iterator[FloatArray]:
    """Multipliers to try: the solver's; each letter's own gain, which is sharp at the ends; and the solver's
    but for the rarest letters, whose multipliers it cannot tell from noise: their largest gain, which is 0.
    """
    orbits = program.space.orbits
    own: FloatArray = program.columns.rows @ (lifts * program.centred)
    if given is None or not np.isfinite(given).all():
        yield own
        return
    yield from (given, own)
    largest = np.full(len(orbits.letters), -np.inf)
    np.maximum.at(largest, orbits.letter, program.centred)
    for rare in _RARE:
        if (orbits.masses < rare).any():
            yield np.where(orbits.masses < rare, largest, given)


SIMPLEX_ORBITS = 12_000
"""Orbits of pairs up to which the simplex comes first, exact there and as fast as the interior point."""


def _solved(
    name: str, settings: Mapping[str, Any], program: SymmetricDesign, options: Options, _: None
) -> Found[SymmetricCertificate]:
    """Solve, repair, certify."""
    if name in highs.METHODS:
        outcome = highs.run(program.problem, name, options, warm=False)
    else:
        outcome = through_cvxpy.run(program.problem, name.upper(), options, dict(settings))
    if outcome.state != "point":
        raise MethodError(outcome.message)
    clock = time.perf_counter()
    duals = program.constraints["rows"].dual_value
    multipliers = None if duals is None else np.asarray(duals) / program.space.orbits.masses
    certificate = certify_symmetric(program, np.asarray(program.variables["orbits"].value), multipliers)
    return Found(
        certificate=certificate,
        finished=outcome.finished,
        message=outcome.message,
        detail=f"{program.space.orbits.count} orbits of pairs",
        iterations=outcome.iterations,
        compile_seconds=outcome.compile_seconds,
        solve_seconds=outcome.solve_seconds,
        certify_seconds=time.perf_counter() - clock,
        arrays={"orbits": certificate.mechanism.lifts},
    )


def _row(
    name: str, reason: str, few: bool | None = None, automatic: bool = True, **settings: float
) -> Method[SymmetricDesign, None, SymmetricCertificate]:
    """One solver: its name, the reason for it, whether for few orbits alone or for many, and its settings."""

    def applies(program: SymmetricDesign, _: None) -> bool:
        return few is None or few == (program.space.orbits.count <= SIMPLEX_ORBITS)

    return Method(name, reason, partial(_solved, name, settings), applies, automatic)


_SIMPLEX = "highs", "LP in orbits of pairs: HiGHS dual simplex ends at a vertex"
_INTERIOR = "highs-ipm", "LP in many orbits of pairs: HiGHS interior point without crossover"

QUESTION = Question(
    SymmetricDesign,
    (
        _row(*_SIMPLEX, few=True),
        _row(*_INTERIOR, few=False),
        _row(
            "clarabel",
            "LP in orbits of pairs, not solved by HiGHS: Clarabel's interior point, to 1e-12",
            tol_gap_abs=1e-12,
            tol_gap_rel=1e-12,
            tol_feas=1e-12,
        ),
        _row(*_INTERIOR, few=True),
        _row(*_SIMPLEX, few=False),
    ),
    always_cold,
    uncertified("a mechanism by orbits is no matrix: there is no certificate of a matrix alone"),
    gap_is_an_answer=lambda program: False,
    by_cvxpy=lambda name: _row(name, "asked for by name, through cvxpy", automatic=False),
)
"""Designs with an expected gain or loss on a symmetric prior."""
