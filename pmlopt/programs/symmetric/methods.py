"""The methods for designs by orbits: linear programs with few variables, for HiGHS and Clarabel."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pmlopt.backends import highs, through_cvxpy
from pmlopt.backends.outcome import Options
from pmlopt.errors import MechanismError, SolverUnavailableError
from pmlopt.programs.kind import Found, Kind, Method, MethodError
from pmlopt.programs.symmetric.certificate import SymmetricCertificate
from pmlopt.programs.symmetric.certifying import certify_symmetric
from pmlopt.programs.symmetric.program import SymmetricDesign
from pmlopt.result import WarmStart

SIMPLEX_ORBITS = 12_000
"""Orbits of pairs up to which the simplex comes first, exact there and as fast as the interior point."""


@dataclass(frozen=True)
class OrbitMethod(Method[SymmetricDesign, None, SymmetricCertificate]):
    """One solver for designs by orbits: its name, the reason for it, and its extra settings."""

    name: str
    reason: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self, program: SymmetricDesign, options: Options, start: None) -> Found[SymmetricCertificate]:
        """Solve, repair, certify."""
        if self.name in highs.METHODS:
            outcome = highs.run(program.problem, self.name, options, warm=False)
        else:
            outcome = through_cvxpy.run(program.problem, self.name.upper(), options, dict(self.settings))
        if outcome.state != "point":
            raise MethodError(outcome.message)
        clock = time.perf_counter()
        duals = program.constraints["rows"].dual_value
        multipliers = None if duals is None else np.asarray(duals) / program.space.orbits.masses
        try:
            certificate = certify_symmetric(
                program, np.asarray(program.variables["orbits"].value), multipliers
            )
        except MechanismError as cause:
            raise MethodError(str(cause)) from cause
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


class SymmetricKind(Kind[SymmetricDesign, None, SymmetricCertificate]):
    """Designs with an expected gain or loss on a symmetric prior."""

    names = tuple(highs.METHODS)
    gap_is_an_answer = False

    def start(self, program: SymmetricDesign, warm_start: WarmStart) -> None:
        """Nothing: the programs are small."""

    def automatic(self, program: SymmetricDesign, start: None) -> Sequence[OrbitMethod]:
        """The simplex where orbits are few, else interior points."""
        simplex = OrbitMethod("highs", "LP in orbits of pairs: HiGHS dual simplex ends at a vertex")
        interior = OrbitMethod(
            "highs-ipm", "LP in many orbits of pairs: HiGHS interior point without crossover"
        )
        conic = OrbitMethod(
            "clarabel",
            "LP in orbits of pairs, not solved by HiGHS: Clarabel's interior point, to 1e-12",
            {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12},
        )
        first = [simplex, interior] if program.space.orbits.count <= SIMPLEX_ORBITS else [interior, simplex]
        return [first[0], conic, first[1]]

    def named(self, program: SymmetricDesign, name: str, start: None) -> OrbitMethod:
        """Any solver of pmlopt or of cvxpy that takes linear programs."""
        import cvxpy as cp

        installed = sorted(entry.lower() for entry in cp.installed_solvers())
        if name not in {*highs.METHODS, *installed}:
            raise SolverUnavailableError(
                f"{name!r} does not solve {program!r}, or is not installed; there are: auto, "
                f"{', '.join(dict.fromkeys([*highs.METHODS, *installed]))}"
            )
        return OrbitMethod(name, "asked for by name")

    def others(self, program: SymmetricDesign) -> Sequence[OrbitMethod]:
        """The solvers of cvxpy that are installed."""
        import cvxpy as cp

        own = {*highs.METHODS, "clarabel"}
        names = sorted({entry.lower() for entry in cp.installed_solvers()} - own)
        return [OrbitMethod(name, "asked for by name, through cvxpy") for name in names]
