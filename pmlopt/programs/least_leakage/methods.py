"""The methods for least leakage levels, by a two-sided search over the level."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.errors import InputError, ProgramError
from pmlopt.programs.certificate import (
    Certificate,
    ClosedForm,
    WarmStart,
    WarmStartLike,
    get_mechanism,
)
from pmlopt.programs.least_leakage.build_certificate import (
    certify_level,
    certify_symmetric_level,
    mix_in_best_outputs,
)
from pmlopt.programs.least_leakage.certificate import (
    LevelCertificate,
    LevelMultipliers,
    SymmetricLevelCertificate,
)
from pmlopt.programs.least_leakage.epsilon_program import LeastEpsilon
from pmlopt.programs.least_leakage.epsilon_search import certify_at_own_level, search_epsilon
from pmlopt.programs.least_leakage.level_search import (
    LevelSearch,
    build_support_multipliers,
    search_by_interior_point,
    search_level,
)
from pmlopt.programs.least_leakage.program import LeastLeakage, SymmetricLeastLeakage
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    check_shape,
    refuse_to_certify,
    reject_warm_start,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline, MethodOptions

MAX_SMALL_ENTRIES = 400
"""Tables of up to this many entries are solved sooner by linear programs, which end at vertices."""


C = TypeVar("C", LevelCertificate, SymmetricLevelCertificate)
CertifyLevel = Callable[[Any, FloatArray, list[LevelMultipliers]], C]


def search_and_certify(
    search: LevelSearch,
    prove: CertifyLevel[C],
    program: LeastLeakage,
    options: MethodOptions,
    start: FloatArray | None,
) -> MethodResult[C]:
    """Search over the level with a linear program at each, and certify both ends."""
    begin = time.perf_counter()
    found = search(program, start, options)
    if found.matrix is None:
        raise MethodError(f"no mechanism was found: {found.ending}. Allow more time")
    solved_at = time.perf_counter()
    certificate = prove(program, found.matrix, [found.proof])
    return MethodResult(
        certificate=certificate,
        finished=found.finished,
        message=found.ending,
        iterations=found.iterations,
        warm_started=start is not None,
        solve_seconds=solved_at - begin,
        certify_seconds=time.perf_counter() - solved_at,
        closed_form=_find_closed_form(program, certificate),
        arrays={"matrix": found.matrix},
    )


def make_start(
    program: LeastLeakage, warm_start: WarmStartLike, _: Deadline = NO_DEADLINE
) -> FloatArray | None:
    """Return a starting mechanism: the given one if feasible, or a closed form; None for a cold start."""
    if warm_start is False:
        return None
    if warm_start is not None and not isinstance(warm_start, WarmStart):
        return _check_warm_start(program, get_mechanism(warm_start))
    # a formula costs nothing, and may be better than what was solved before
    form = build_known_mechanism(program)
    if warm_start is None or warm_start.matrix is None:
        return form
    try:
        return min(form, _check_warm_start(program, warm_start.matrix), key=program.compute_level)
    except InputError:
        return form


def certify_given_matrix(
    program: LeastLeakage, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[LevelCertificate]:
    """Certify a matrix on the exact grid, with the best available lower bound."""
    proofs = [build_support_multipliers(program)]
    if multipliers is not None:
        if multipliers.shape != (program.prior.size,):
            raise ProgramError(
                f"there are {len(multipliers)} multipliers: give one for each letter"
            )
        proofs.append(LevelMultipliers(multipliers, 0.0))
    certificate = certify_level(program, matrix, proofs)
    return wrap_given_certificate(certificate, _find_closed_form(program, certificate))


def find_first_feasible(prove: CertifyLevel[C], program: LeastLeakage) -> MethodResult[C]:
    """Certify a constant, or a mixture with the best mechanism, as a first feasible solution."""
    matrix = build_known_mechanism(program)
    certificate = prove(program, matrix, [build_support_multipliers(program)])
    return MethodResult(certificate=certificate, finished=False, message="a mechanism by formula")


def _has_single_demand(program: LeastLeakage) -> bool:
    """Return whether there is only one demand: an expectation floor, or a set of allowed pairs."""
    return program.floor is None or bool(program.allowed.all())


def build_known_mechanism(program: LeastLeakage) -> FloatArray:
    """Build a feasible mechanism: a constant, or a uniform one mixed with the best."""
    constant = program.best_constant
    # a constant leaks nothing: if it meets the floor, it is optimal
    if not np.isnan(constant).any() and program.floor_violation(constant) == 0:
        return constant
    return mix_in_best_outputs(program, program.uniform_mechanism)


def _check_warm_start(program: LeastLeakage, start: MechanismLike) -> FloatArray:
    """Check that a warm start is feasible, and return its matrix; else raise a ProgramError."""
    matrix = pair_with_prior(program.prior, start)[1].matrix
    check_shape(matrix, program.allowed)
    wrong = np.argwhere((matrix > 0) & ~program.allowed)
    if len(wrong):
        x, y = wrong[0]
        raise ProgramError(f"the warm start emits output {y} for letter {x}, which is not allowed")
    short = program.floor_violation(matrix)
    if program.floor is not None and short > 0:
        raise ProgramError(
            f"the warm start misses the expected utility by {short * program.floor.unit:.6g}"
        )
    return matrix


def _find_closed_form(program: LeastLeakage, certificate: Certificate) -> ClosedForm | None:
    """Return the closed-form mechanism M*(h) where it is optimal; else None."""
    if program.floor is not None:
        return None
    level = program.compute_level(build_known_mechanism(program))
    # a closed form within 1e-9 nats of the bound is optimal
    if level > certificate.bound + 1e-9:
        return None
    return ClosedForm("utility_safe_mechanism", level, certificate.value - level)


def _is_large(program: LeastLeakage, _: FloatArray | None) -> bool:
    """Return whether there is a single demand on a table so large that the interior point is faster."""
    # with allowed pairs only, the interior point needs three times as many programs
    small = 9_000 if program.floor is None else MAX_SMALL_ENTRIES
    return _has_single_demand(program) and program.allowed.size > small


INVERSION_METHOD = Method(
    "inversion",
    "only a floor on the expectation, or only pairs: the best within one level each, by the interior point",
    partial(search_and_certify, search_by_interior_point, certify_level),
    _is_large,
    id="inversion-large",
)

METHODS = MethodRegistry(
    LeastLeakage,
    (
        INVERSION_METHOD,
        Method(
            "level-search",
            "linear programs at one level each, from both ends",
            partial(search_and_certify, search_level, certify_level),
        ),
        replace(
            INVERSION_METHOD,
            applies=lambda program, start: _has_single_demand(program),
            automatic=False,
            requirements_text="only a floor on the expectation, or only pairs",
            id="inversion-by-name",
        ),
    ),
    make_start,
    certify_given_matrix,
    find_first_result=partial(find_first_feasible, certify_level),
)
"""Least leakages under floors on the utility: the best mechanism found is returned with its gap."""

ORBIT_METHODS = MethodRegistry(
    SymmetricLeastLeakage,
    (
        Method(
            "level-search",
            "linear programs in orbits of pairs at one level each, from both ends",
            partial(search_and_certify, search_level, certify_symmetric_level),
        ),
    ),
    lambda program, warm_start, _: make_start(program, False if warm_start is False else None),
    refuse_to_certify(
        "a mechanism by orbits is no matrix: a matrix without orbits has no certificate here"
    ),
    find_first_result=partial(find_first_feasible, certify_symmetric_level),
)
"""The same on a symmetric prior."""

EPSILON_METHODS = MethodRegistry(
    LeastEpsilon,
    (
        Method(
            "level-search",
            "designs at levels on both sides, by secants: each proves one side",
            search_epsilon,
        ),
    ),
    reject_warm_start("a least epsilon is searched from formulas: leave out the mechanism"),
    certify_at_own_level,
)
"""Least levels of any requirement at which any utility reaches a target."""

register_question(METHODS)
register_question(ORBIT_METHODS)
register_question(EPSILON_METHODS)
