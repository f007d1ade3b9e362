"""Random programs by a random one of all methods that are registered for them, against the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from fuzzing.random_designs import FalseClaimError

from pmlopt import (
    LDP,
    PML,
    EstimationError,
    ExpectedGain,
    Mechanism,
    MutualInformation,
    Prior,
    design,
    envelope,
    least_leakage,
    solve,
    solvers_for,
)
from pmlopt.errors import SolverError
from pmlopt.programs.result import Result

PROGRAMS: Mapping[str, Callable[[np.random.Generator, Prior], Any]] = {
    "LinearDesign": lambda rng, prior: design(
        prior,
        [PML, LDP][rng.integers(2)](rng.uniform(0.1, 2.0)),
        ExpectedGain(rng.random((prior.size, 3))),
    ),
    "ColumnDesign": lambda rng, prior: design(
        prior, PML(rng.uniform(0.1, 2.0)), MutualInformation()
    ),
    "EstimationDesign": lambda rng, prior: design(
        prior, LDP(rng.uniform(0.2, 2.0)), EstimationError()
    ),
    "LeastLeakage": lambda rng, prior: least_leakage(
        prior, ExpectedGain(np.eye(prior.size)), expected=rng.uniform(0.5, 0.9)
    ),
    "EnvelopeProgram": lambda rng, prior: envelope(
        prior, Mechanism(rng.dirichlet(np.ones(3), prior.size)), rng.uniform(0.01, 0.3)
    ),
}
"""Random programs of questions with small instances, by the class of their programs."""


def any_method(rng: np.random.Generator) -> Result[Any]:
    """Solve a random program by a random method; neither its value nor that of `auto` is past a bound."""
    prior = Prior(rng.dirichlet(np.full(int(rng.integers(2, 5)), 2.0)))
    program = list(PROGRAMS.values())[rng.integers(len(PROGRAMS))](rng, prior)
    rows = solvers_for(program)
    method = rows[rng.integers(len(rows))]
    best = solve(program)
    try:
        result = solve(program, method)
    except SolverError as error:
        if not isinstance(error.result, Result):
            raise
        result = error.result
    sign, room = 1 if program.maximised else -1, program.compute_allowed_gap(program.tolerance)
    if not result.certificate.verify():
        raise FalseClaimError(f"{method.id}: {result.certificate.failures}")
    for one, other in ((result, best), (best, result)):
        if sign * (one.value - other.bound) > room:
            raise FalseClaimError(
                f"{one.method} has {one.value}, {other.method} bounds {other.bound}"
            )
    return result
