"""The method for least leakages: the level is searched from both ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.errors import InputError, ProgramError
from pmlopt.programs.certificate import Certificate, ClosedForm, Restart, WarmStart, mechanism_of
from pmlopt.programs.least_leakage.certificate import LevelCertificate, Multipliers, SymmetricLevelCertificate
from pmlopt.programs.least_leakage.certifying import certify_level, certify_symmetric_level, lifted
from pmlopt.programs.least_leakage.level_search import Searching, invert, search_level, support_multipliers
from pmlopt.programs.least_leakage.program import LeastLeakage, SymmetricLeastLeakage
from pmlopt.programs.program import Found, Method, MethodError, Question, certified, check_shape, uncertified
from pmlopt.solvers.outcome import FOREVER, Clock, Options

SMALL_ENTRIES = 400
"""Tables of up to this many entries are solved sooner by linear programs, which end at vertices."""


C = TypeVar("C", LevelCertificate, SymmetricLevelCertificate)
Certifying = Callable[[Any, FloatArray, list[Multipliers]], C]


def searched(
    search: Searching, prove: Certifying[C], program: LeastLeakage, options: Options, start: FloatArray | None
) -> Found[C]:
    """Search over the level, with a program at each, and certify both ends by its multipliers."""
    begin = time.perf_counter()
    found = search(program, start, options)
    if found.matrix is None:
        raise MethodError(f"no mechanism was found: {found.ending}. Allow more time")
    clock = time.perf_counter()
    certificate = prove(program, found.matrix, [found.proof])
    return Found(
        certificate=certificate,
        finished=found.finished,
        message=found.ending,
        iterations=found.iterations,
        warm_started=start is not None,
        solve_seconds=clock - begin,
        certify_seconds=time.perf_counter() - clock,
        closed_form=_closed(program, certificate),
        arrays={"matrix": found.matrix},
    )


def start(program: LeastLeakage, warm_start: WarmStart, _: Clock = FOREVER) -> FloatArray | None:
    """Return the given mechanism, where it meets the demands, or that of a formula; None for a cold start."""
    if warm_start is False:
        return None
    if warm_start is not None and not isinstance(warm_start, Restart):
        return _checked(program, mechanism_of(warm_start))
    form = known_mechanism(program)
    if warm_start is None or warm_start.matrix is None:
        return form
    try:
        return min(form, _checked(program, warm_start.matrix), key=program.level)
    except InputError:
        return form


def certify(
    program: LeastLeakage, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[LevelCertificate]:
    """Certify a matrix on the exact grid, with the better bound of its multipliers and of the supports."""
    proofs = [support_multipliers(program)]
    if multipliers is not None:
        if multipliers.shape != (program.prior.size,):
            raise ProgramError(f"there are {len(multipliers)} multipliers: give one for each letter")
        proofs.append(Multipliers(multipliers, 0.0))
    certificate = certify_level(program, matrix, proofs)
    return certified(certificate, _closed(program, certificate))


def find_first(prove: Certifying[C], program: LeastLeakage) -> Found[C]:
    """Certify a constant, or what is uniform mixed with the best as far as the floor needs."""
    matrix = known_mechanism(program)
    certificate = prove(program, matrix, [support_multipliers(program)])
    return Found(certificate=certificate, finished=False, message="a mechanism by formula")


def _one_demand(program: LeastLeakage) -> bool:
    """Return whether there is only a floor on the expectation, or only a set of allowed pairs."""
    return program.floor is None or bool(program.allowed.all())


def known_mechanism(program: LeastLeakage) -> FloatArray:
    """Build a mechanism that meets the demands: a constant, or a uniform one mixed with the best."""
    constant = program.best_constant
    if not np.isnan(constant).any() and program.short(constant) == 0:
        return constant
    return lifted(program, program.spread)


def _checked(program: LeastLeakage, start: MechanismLike) -> FloatArray:
    """Return the matrix of a warm start that meets the demands; raise a ProgramError for others."""
    matrix = paired(program.prior, start)[1].matrix
    check_shape(matrix, program.allowed)
    wrong = np.argwhere((matrix > 0) & ~program.allowed)
    if len(wrong):
        x, y = wrong[0]
        raise ProgramError(f"the warm start emits output {y} for letter {x}, which is not allowed")
    short = program.short(matrix)
    if program.floor is not None and short > 0:
        raise ProgramError(f"the warm start misses the expected utility by {short * program.floor.unit:.6g}")
    return matrix


def _closed(program: LeastLeakage, certificate: Certificate) -> ClosedForm | None:
    """Return the utility-safe mechanism M*(h), where it is optimal; else None."""
    if program.floor is not None:
        return None
    level = program.level(known_mechanism(program))
    # a closed form within 1e-9 nats of the bound is optimal
    if level > certificate.bound + 1e-9:
        return None
    return ClosedForm("utility_safe_mechanism", level, certificate.value - level)


def _large(program: LeastLeakage, _: FloatArray | None) -> bool:
    """Return whether there is one demand, on a table so large that the interior point is faster."""
    # with allowed pairs only, the interior point needs three times as many programs
    small = 9_000 if program.floor is None else SMALL_ENTRIES
    return _one_demand(program) and program.allowed.size > small


INVERSION = Method(
    "inversion",
    "a floor on the expectation alone, or pairs alone: the best within one level each, by the interior point",
    partial(searched, invert, certify_level),
    _large,
    id="inversion-large",
)

QUESTION = Question(
    LeastLeakage,
    (
        INVERSION,
        Method(
            "level-search",
            "linear programs at one level each, from both ends",
            partial(searched, search_level, certify_level),
        ),
        replace(
            INVERSION,
            applies=lambda program, start: _one_demand(program),
            automatic=False,
            takes="a floor on the expectation alone, or pairs alone",
            id="inversion-by-name",
        ),
    ),
    start,
    certify,
    first=partial(find_first, certify_level),
)
"""Least leakages under floors on the utility: the mechanism in hand is returned with its gap."""

IN_ORBITS = Question(
    SymmetricLeastLeakage,
    (
        Method(
            "level-search",
            "linear programs in orbits of pairs at one level each, from both ends",
            partial(searched, search_level, certify_symmetric_level),
        ),
    ),
    lambda program, warm_start, _: start(program, False if warm_start is False else None),
    uncertified("a mechanism by orbits is no matrix: there is no certificate of a matrix alone"),
    first=partial(find_first, certify_symmetric_level),
)
"""The same on a symmetric prior."""
