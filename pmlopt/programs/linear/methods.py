"""The methods for linear designs, and the decision list that selects them, with reasons."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import as_mechanism, paired
from pmlopt.errors import InfeasibleError
from pmlopt.programs.certificate import ClosedForm, Restart, WarmStart, mechanism_of, restart_of
from pmlopt.programs.linear import feasible, letter_pairs, structured
from pmlopt.programs.linear.certificate import RESIDUAL, LinearCertificate, SymmetricCertificate
from pmlopt.programs.linear.certifying import certify_linear, certify_symmetric
from pmlopt.programs.linear.columns import PairClasses, ReducedColumns
from pmlopt.programs.linear.known_optima import KnownOptimum, better_form, known_optimum
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.programs.program import (
    Found,
    Method,
    MethodError,
    Program,
    Question,
    always,
    certified,
    check_shape,
    found_by,
    uncertified,
)
from pmlopt.solvers import highs, through_cvxpy
from pmlopt.solvers.outcome import FOREVER, TIME, Clock, Options, Outcome, Point
from pmlopt.solvers.structured import simplex
from pmlopt.solvers.structured.block_program import Task

CLOSED_FORM, CLASSES = "closed-form", "classes"


@dataclass(frozen=True, eq=False)
class Start:
    """The start of a solve, and the properties of the program by which its method is chosen.

    Attributes:
        program: to solve.
        matrix: (N, M) a mechanism, or None.
        restart: how the solve of a neighbour ended, if that is what was given.
        known: the closed form that is optimal here, if there is one.
    """

    program: LinearDesign
    matrix: FloatArray | None = None
    restart: Restart | None = None
    known: KnownOptimum | None = None

    @property
    def formula(self) -> bool:
        """Return whether the matrix is that of the closed form."""
        return self.known is not None and self.matrix is self.known.matrix

    @property
    def vertex(self) -> bool:
        """Return whether the closed form is a vertex that helps the simplex; a constant is too degenerate."""
        return self.banded and self.formula and self.known is not None and self.known.name != "constant"

    @property
    def useful(self) -> FloatArray | None:
        """Return the matrix, where the simplex gains by starting from it; else None."""
        return self.matrix if self.vertex or self.given else None

    @property
    def given(self) -> bool:
        """Return whether a user gave a mechanism to start from, and columns in bands gain by it."""
        return self.banded and self.matrix is not None and not self.formula

    @cached_property
    def task(self) -> Task | None:
        """Return the program in column blocks with at most N side constraints; None without such a form."""
        return self.program.task()

    @property
    def banded(self) -> bool:
        """Return whether the columns are in bands, the simplest blocks, without constraints of a user."""
        block = self.program.block
        return not self.program.added and block is not None and block.banded

    @cached_property
    def linear(self) -> bool:
        """Return whether the program is a linear program."""
        return self.banded or self.ratios_alone or bool(self.program.problem.is_lp())

    def within(self, most: int) -> bool:
        """Return whether it is a linear program in a matrix of at most so many entries."""
        return self.program.table.size <= most and self.linear

    @property
    def ratios_alone(self) -> bool:
        """Return whether a list of ratio bounds that is not in bands is the only constraint."""
        program = self.program
        return program.privacy.has_ratios and not self.banded and not program.added


def _start(program: LinearDesign, warm_start: WarmStart, clock: Clock = FOREVER) -> Start:
    """Make the solve's context with the matrix that was given, or with an optimal closed form."""
    known = known_optimum(program, clock)
    if warm_start is False:
        return Start(program, known=known)
    restart = restart_of(warm_start)
    if warm_start is None or isinstance(warm_start, Restart):
        matrix = None if restart is None else restart.matrix
        if matrix is not None and matrix.shape == program.table.shape:
            return Start(program, matrix, restart, known)
        return Start(program, None if known is None else known.matrix, known=known)
    given = as_mechanism(mechanism_of(warm_start))
    check_shape(given.matrix, program.table)
    return Start(program, paired(program.prior, given)[1].matrix, restart, known)


def _certified(
    name: str, settings: Mapping[str, Any], program: LinearDesign, options: Options, start: Start
) -> Found[LinearCertificate]:
    """Solve, repair and certify; reject a point that breaks a user's own constraint."""
    outcome = _solved(name, settings, program, options, start)
    if outcome.state == "infeasible" and program.added:
        if rare := _too_rare(program):  # what fits below a solver's tolerance it may call infeasible
            raise MethodError(f"{outcome.message}: {', '.join(program.added)}{rare}")
        raise InfeasibleError(
            f"no mechanism satisfies the constraints ({name}: {outcome.message}); a design "
            f"alone is always feasible, so look at what was added: {', '.join(program.added)}"
        )
    if outcome.found is None:
        raise MethodError(outcome.message)
    clock = time.perf_counter()
    point = outcome.found
    certificate = certify_linear(program, point.matrix, point.multipliers, point.witness)
    form = None if options.clock.late else better_form(program, certificate)
    if form is not None:
        certificate = certify_linear(program, form, point.multipliers, point.witness)
    certificate = _above(program, certificate, point)
    broken = [one for one in program.added if certificate.residuals[one] > RESIDUAL]
    if broken:
        raise MethodError(
            f"the repaired mechanism violates your constraint {broken[0]!r} by "
            f"{certificate.residuals[broken[0]]:.3g} of its size{_too_rare(program)}"
        )
    return found_by(
        outcome,
        certificate,
        time.perf_counter() - clock,
        detail=_mixed_away(program, certificate),
        closed_form=_beside(start.known, certificate),
        arrays={"matrix": certificate.mechanism.matrix, **outcome.restart},
        asked=certificate.privacy.limits == program.privacy.limits,
    )


def _too_rare(program: LinearDesign) -> str:
    """Explain why constraints on a very rare letter cannot be kept, and what to do; else return nothing."""
    place = int(program.prior.pmf.argmin())
    # the law of a letter of probability 1e-9 has seven digits in steps of 2^-53
    if program.prior.pmf[place] >= 1e-9:
        return ""
    return (
        f" (entries of rows that sum to exactly one have steps of 1e-16, too coarse for "
        f"{program.prior.labels[place]!r} of probability {program.prior.pmf[place]:.3g}: merge rare letters)"
    )


LEAST_LEVEL = 2.0**-46
"""Nats about a secret that the rounding of a few columns to floats leaves: 1.4e-14, a hundred roundings."""


def _above(program: LinearDesign, certificate: LinearCertificate, point: Point) -> LinearCertificate:
    """Certify the point at levels that floats can have, where that keeps what the repair took."""
    lost = certificate.proved_gap > program.allowed_gap(program.tolerance)
    if program.added or not lost or not _without_room(program):
        return certificate
    wider = replace(program, privacy=program.privacy.with_room(LEAST_LEVEL))
    if wider.privacy.limits == program.privacy.limits:
        return certificate
    found = certify_linear(wider, point.matrix, point.multipliers, point.witness)
    return certificate if found.proved_gap > program.allowed_gap(program.tolerance) else found


def _solved(
    name: str, settings: Mapping[str, Any], program: LinearDesign, options: Options, start: Start
) -> Outcome:
    if name == CLOSED_FORM:
        assert start.known is not None
        point = Point(start.known.matrix, start.known.multipliers)
        return Outcome("point", True, start.known.name, 0, True, 0.0, 0.0, point)
    if name == CLASSES:
        assert program.classes is not None
        return by_classes(program, program.classes, options)
    if name == letter_pairs.NAME:
        assert start.program.pairs is not None
        return letter_pairs.run(program, start.program.pairs, options)
    if name in (structured.NAME, "highs") and (task := start.task) is not None:
        if name == structured.NAME:
            return structured.run(program, task, options)
        if start.banded:
            near = start.restart
            basis = near.arrays if near is not None and near.solver == name else None
            return simplex.run(task, options, start.useful, basis)
    small = program.table.size <= SIMPLEX_ENTRIES and program.bounds_on_pairs is None
    if name == "highs" and start.ratios_alone and small:
        ratios = program.privacy.for_prior(program.prior).ratios(program.prior.pmf)
        assert ratios is not None
        return letter_pairs.by_simplex(program, ratios, options)
    if letter_pairs.is_too_long_to_compile(program, options.clock):
        raise MethodError(f"{TIME}: compiling takes longer than there is")
    outcome = _generic(name, settings, program, options)
    return replace(outcome, found=_point(program)) if outcome.state == "point" else outcome


def by_classes(program: LinearDesign, classes: PairClasses, options: Options) -> Outcome:
    """Solve in classes of pairs, and expand the result to a matrix with multipliers for every letter.

    The certificate is on the matrix and knows nothing of classes.
    """
    begin, orbits = time.perf_counter(), classes.orbits
    values = np.empty(orbits.count)
    values[classes.table] = program.table
    columns = ReducedColumns.of(classes, program.privacy)
    declared = columns.declaration(classes.output_names, program.maximised, values)
    ready = time.perf_counter()
    outcome = highs.run(declared.problem, "highs", options)
    if outcome.state != "point":
        return outcome
    lifts, duals = declared.variables["orbits"].value, declared.constraints["rows"].dual_value
    shares = np.asarray(lifts) / np.array(orbits.outputs, dtype=float)[orbits.output]
    letter = orbits.letter[classes.table[:, 0]]
    found = Point(shares[classes.table], (np.asarray(duals) / orbits.masses)[letter])
    seconds = ready - begin + outcome.compile_seconds
    return replace(outcome, warm_started=False, found=found, compile_seconds=seconds)


def _generic(name: str, settings: Mapping[str, Any], program: Program[Any], options: Options) -> Outcome:
    """Solve the declared problem by HiGHS, or by a solver of cvxpy."""
    if name in highs.METHODS:
        return highs.run(program.problem, name, options)
    return through_cvxpy.run(program.problem, name.upper(), options, dict(settings))


def _point(program: LinearDesign) -> Point:
    """Read the mechanism and the multipliers of its rows that a solver left in the variables."""
    pairs = program.pairs  # of many, what a bound costs is a linear program for each output
    witness = None if pairs is None else letter_pairs.witness_of(program, pairs)
    multipliers = _multipliers(program, program.prior.pmf)
    return Point(np.asarray(program.mechanism.value), multipliers, witness=witness)


def _multipliers(program: Program[Any], masses: FloatArray) -> FloatArray | None:
    """Read the multipliers that a solver left of the rows, divided by the probabilities of the letters."""
    duals = program.constraints["rows"].dual_value
    return None if duals is None else np.asarray(duals) / masses


def _beside(known: KnownOptimum | None, certificate: LinearCertificate) -> ClosedForm | None:
    return None if known is None else ClosedForm(known.name, known.value, certificate.value - known.value)


def _row(
    row: str,
    name: str,
    reason: str,
    fits: Callable[[Start], bool] = always,
    takes: str | None = None,
    **settings: Any,
) -> Method[LinearDesign, Start, LinearCertificate]:
    """Make a method from the id of its row, its reason, when it is tried, and its settings.

    Where `takes` is given it is run by name only.
    """
    run = partial(_certified, name, settings)
    own = name in (CLOSED_FORM, CLASSES, letter_pairs.NAME, structured.NAME)
    return Method(name, reason, run, lambda _, start: fits(start), takes is None, takes or "", row, not own)


def _asked(
    name: str, applies: Callable[[Start], bool] = always, takes: str = ""
) -> Method[LinearDesign, Start, LinearCertificate]:
    """Make the method of a solver that is chosen by name."""
    return _row(f"{name}-by-name", name, "asked for by name", applies, takes)


SHARP: Mapping[str, Any] = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
"""Clarabel's tolerances, for multipliers to the last digits."""

SIMPLEX_ENTRIES = 900
"""Matrices of up to this many entries go to the simplex first: fast enough there, and exact."""

SLOW_ENTRIES = 40_000
"""From here on the simplex takes minutes, even from a vertex nearby."""

DECISIONS = (
    _row(
        letter_pairs.NAME,
        letter_pairs.NAME,
        "many bounds on pairs of letters: those that others nearly imply come in as they are broken",
        lambda start: start.program.pairs is not None and not start.formula,
    ),
    _row(
        CLOSED_FORM,
        CLOSED_FORM,
        f"over {SLOW_ENTRIES:,} entries, or bounds on pairs, and a closed form is optimal: nothing to solve",
        lambda start: start.formula and (start.ratios_alone or start.program.table.size > SLOW_ENTRIES),
    ),
    _row(
        "highs-closed-form-warm",
        "highs",
        "LP with a closed form that is optimal: HiGHS simplex, warm",
        lambda start: start.vertex and start.within(SLOW_ENTRIES),
    ),
    _row(
        "highs-warm",
        "highs",
        f"LP with a start, of at most {SIMPLEX_ENTRIES} entries: simplex, warm",
        lambda start: start.given and start.within(SIMPLEX_ENTRIES),
    ),
    _row(
        "highs-small",
        "highs",
        f"LP of at most {SIMPLEX_ENTRIES} entries: HiGHS dual simplex ends at a vertex, with exact zeros",
        lambda start: not (start.vertex or start.given) and start.within(SIMPLEX_ENTRIES),
    ),
    _row(
        CLASSES,
        CLASSES,
        "letters and outputs fall into few classes that look alike: LP with a variable for each class",
        lambda start: not (start.vertex or start.given) and start.program.classes is not None,
    ),
    _row(
        structured.NAME,
        structured.NAME,
        "few numbers couple the columns: structured interior point, a system of the size of the smaller side",
        lambda start: start.task is not None,
    ),
    _row(
        "clarabel-lp",
        "clarabel",
        "LP, without blocks or not solved by them: Clarabel's interior point, without "
        "refinement, which the certificate makes up for",
        lambda start: start.linear,
        iterative_refinement_enable=False,
    ),
    _row("clarabel-cones", "clarabel", "cones: Clarabel's interior point", lambda start: not start.linear),
    _row(
        "clarabel-sharp",
        "clarabel",
        "Clarabel's interior point, to 1e-12: where bounds are curved, multipliers must be sharp",
        **SHARP,
    ),
    _row(
        "highs-large",
        "highs",
        "LP: HiGHS dual simplex ends at a vertex, however long it takes",
        lambda start: start.within(SLOW_ENTRIES),
    ),
    _row(
        "highs-ipm",
        "highs-ipm",
        "large LP: HiGHS interior point without crossover",
        lambda start: start.linear,
    ),
    _row("scs", "scs", "last resort: SCS, a first-order method"),
)
"""Tried from top to bottom until one reaches a certified gap within tolerance; measured by
benchmarks/solvers.py and benchmarks/large.py."""

BY_NAME = (
    _asked(
        CLOSED_FORM,
        lambda start: start.known is not None,
        "designs of which a closed form is known to be optimal",
    ),
    _asked(
        CLASSES,
        lambda start: start.program.classes is not None,
        "designs with few classes of letters and outputs that look alike",
    ),
    _asked(
        letter_pairs.NAME,
        lambda start: start.program.pairs is not None,
        "designs under many bounds on pairs of letters and nothing else",
    ),
    _asked(
        structured.NAME,
        lambda start: start.task is not None,
        "designs with an expected gain or loss, under a bound above 0 nats and with at most as many linear "
        "constraints of your own as there are letters",
    ),
    *(_asked(name, lambda start: start.linear, "linear programs") for name in highs.METHODS),
)


def _certify(
    program: LinearDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[LinearCertificate]:
    """Repair and certify a matrix, with given multipliers or a few that need no solver."""
    certificate = certify_linear(program, matrix, multipliers)
    return certified(certificate, _beside(known_optimum(program), certificate))


def _gap_is_an_answer(program: LinearDesign) -> bool:
    """Return whether a gap may stay: by added constraints, a loose bound, or coarse floats."""
    if program.added or not program.privacy.sharp or _without_room(program):
        return True
    linear = program.block is not None or program.privacy.has_ratios
    return not linear and not program.problem.is_lp()  # solvers of cones have fewer digits


def _without_room(program: LinearDesign) -> bool:
    """Return whether a constant hardly meets a ratio bound, such as one of 0 nats about a secret.

    Mechanisms then meet pairs with equality, which few floats do in exact arithmetic: what the repair must
    mix in opens a gap that no other solver closes.
    """
    return program.block is None and program.privacy.without_room(program.prior)


def _mixed_away(program: LinearDesign, certificate: LinearCertificate) -> str:
    """Explain why a bound with an empty interior leaves little of a mechanism, and a remedy; else nothing."""
    lost = certificate.proved_gap > program.allowed_gap(program.tolerance)
    above = certificate.privacy.limits != program.privacy.limits
    if not above and not (lost and _without_room(program)):
        return ""
    what = (
        f"the mechanism in hand has up to {certificate.level:.2g} nats in place of what was asked"
        if above
        else "what the repair mixed in opens the gap"
    )
    return (
        "a constant meets a bound with equality, so every column must, and few columns of floats do: "
        f"{what}. Give a joint law by whole counts (Secret.from_counts), of which "
        "columns meet it exactly, or ask for 1e-9 nats in place of 0"
    )


QUESTION = Question(
    LinearDesign,
    (*DECISIONS, *BY_NAME),
    _start,
    _certify,
    _gap_is_an_answer,
    by_cvxpy=_asked,
    first=feasible.find_first_mechanism,
    compares_first=True,
)
"""Designs with an expected gain or loss.

The gap of a design must close, unless constraints were added whose part in the bound is not sharp."""


SIMPLEX_ORBITS = 12_000
"""Orbits of pairs up to which the simplex comes first, exact there and as fast as the interior point."""


def _by_orbits(
    name: str, settings: Mapping[str, Any], program: SymmetricDesign, options: Options, _: None
) -> Found[SymmetricCertificate]:
    """Solve in orbits of pairs, repair and certify."""
    # cvxpy takes 1.5e-5 s to compile each orbit of pairs, which no time limit ends
    if options.clock.late_by(-1.5e-5 * program.space.orbits.count):
        raise MethodError(f"{TIME}: compiling takes longer than there is")
    outcome = _generic(name, settings, program, options)
    if outcome.state != "point":
        raise MethodError(outcome.message)
    clock = time.perf_counter()
    multipliers = _multipliers(program, program.columns.masses)
    certificate = certify_symmetric(program, np.asarray(program.variables["orbits"].value), multipliers)
    detail = f"{program.space.orbits.count} orbits of pairs"
    return found_by(outcome, certificate, time.perf_counter() - clock, detail)


def _orbits_row(
    row: str, name: str, reason: str, few: bool | None = None, automatic: bool = True, **settings: float
) -> Method[SymmetricDesign, None, SymmetricCertificate]:
    """Make a method from the id of its row: its reason, whether for few orbits or many, and its settings."""

    def applies(program: SymmetricDesign, _: None) -> bool:
        return few is None or few == (program.space.orbits.count <= SIMPLEX_ORBITS)

    return Method(name, reason, partial(_by_orbits, name, settings), applies, automatic, "", row, True)


_SIMPLEX = "highs", "LP in orbits of pairs: HiGHS dual simplex ends at a vertex"
_INTERIOR = "highs-ipm", "LP in many orbits of pairs: HiGHS interior point without crossover"

IN_ORBITS = Question(
    SymmetricDesign,
    (
        _orbits_row("highs-few-orbits", *_SIMPLEX, few=True),
        _orbits_row("highs-ipm-many-orbits", *_INTERIOR, few=False),
        _orbits_row(
            "clarabel",
            "clarabel",
            "LP in orbits of pairs, not solved by HiGHS: Clarabel's interior point, to 1e-12",
            **SHARP,
        ),
        _orbits_row("highs-ipm-few-orbits", *_INTERIOR, few=True),
        _orbits_row("highs-many-orbits", *_SIMPLEX, few=False),
    ),
    lambda *_: None,
    uncertified("a mechanism by orbits is no matrix: there is no certificate of a matrix alone"),
    gap_is_an_answer=lambda program: False,
    by_cvxpy=lambda name: _orbits_row(name, name, "asked for by name, through cvxpy", automatic=False),
    first=feasible.find_first_by_orbits,
    compares_first=True,
)
"""The same on a symmetric prior."""
