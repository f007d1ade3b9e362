"""The methods for linear designs, and the decision list that selects them, with reasons."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import InfeasibleError
from pmlopt.programs.certificate import ClosedForm
from pmlopt.programs.linear import block_interior_point, constraint_generation, feasible
from pmlopt.programs.linear.build_certificate import certify_linear, certify_symmetric
from pmlopt.programs.linear.certificate import (
    MAX_RELATIVE_RESIDUAL,
    LinearCertificate,
    SymmetricCertificate,
)
from pmlopt.programs.linear.columns import EquitablePartition, OrbitColumns
from pmlopt.programs.linear.known_optima import KnownOptimum, better_form, known_optimum
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.programs.linear.solve_context import SolveContext, make_context
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    Program,
    accept_all,
    make_method_result,
    refuse_to_certify,
    wrap_given_certificate,
)
from pmlopt.solvers import cvxpy_interface, highs
from pmlopt.solvers.solver_result import TIME_LIMIT, MethodOptions, PrimalDualPoint, SolverResult
from pmlopt.solvers.structured import simplex

CLOSED_FORM, COLOR_REFINEMENT = "closed-form", "color-refinement"


def _solve_and_certify(
    name: str,
    settings: Mapping[str, Any],
    program: LinearDesign,
    options: MethodOptions,
    start: SolveContext,
) -> MethodResult[LinearCertificate]:
    """Solve, repair and certify; reject a point that breaks a user's own constraint."""
    outcome = _run_method(name, settings, program, options, start)
    if outcome.state == "infeasible" and program.added:
        if rare := _explain_rare_letter(
            program
        ):  # what fits below a solver's tolerance it may call infeasible
            raise MethodError(f"{outcome.message}: {', '.join(program.added)}{rare}")
        raise InfeasibleError(
            f"no mechanism satisfies the constraints ({name}: {outcome.message}); a design "
            "without added constraints is always feasible, so check those that were added: "
            f"{', '.join(program.added)}"
        )
    if outcome.point is None:
        raise MethodError(outcome.message)
    solved_at = time.perf_counter()
    point = outcome.point
    certificate = certify_linear(program, point.matrix, point.multipliers, point.dual_certificate)
    form = None if options.deadline.expired else better_form(program, certificate)
    if form is not None:
        certificate = certify_linear(program, form, point.multipliers, point.dual_certificate)
    certificate = _relax_to_float_level(program, certificate, point)
    broken = [one for one in program.added if certificate.residuals[one] > MAX_RELATIVE_RESIDUAL]
    if broken:
        raise MethodError(
            f"the repaired mechanism violates your constraint {broken[0]!r} by "
            f"{certificate.residuals[broken[0]]:.3g} of its size{_explain_rare_letter(program)}"
        )
    return make_method_result(
        outcome,
        certificate,
        time.perf_counter() - solved_at,
        detail=_explain_mixing(program, certificate),
        closed_form=_compare_closed_form(start.known, certificate),
        arrays={"matrix": certificate.mechanism.matrix, **outcome.warm_start_arrays},
        requirement_unchanged=certificate.privacy.limits == program.privacy.limits,
    )


def _explain_rare_letter(program: LinearDesign) -> str:
    """Explain why constraints on a very rare letter cannot be kept, and what to do; else return nothing."""
    place = int(program.prior.pmf.argmin())
    # the law of a letter of probability 1e-9 has seven digits in steps of 2^-53
    if program.prior.pmf[place] >= 1e-9:
        return ""
    return (
        f" (entries of rows that sum to exactly one have steps of 1e-16, too coarse for "
        f"{program.prior.labels[place]!r} of probability {program.prior.pmf[place]:.3g}: merge rare letters)"
    )


MIN_FLOAT_LEVEL = 2.0**-46
"""Nats about a secret that the rounding of a few columns to floats leaves: 1.4e-14, a hundred roundings."""


def _relax_to_float_level(
    program: LinearDesign, certificate: LinearCertificate, point: PrimalDualPoint
) -> LinearCertificate:
    """Certify the point at levels that floats can have, where that keeps what the repair took."""
    lost = certificate.proved_gap > program.compute_allowed_gap(program.tolerance)
    if program.added or not lost or not _has_empty_interior(program):
        return certificate
    wider = replace(program, privacy=program.privacy.relaxed_to(MIN_FLOAT_LEVEL))
    if wider.privacy.limits == program.privacy.limits:
        return certificate
    found = certify_linear(wider, point.matrix, point.multipliers, point.dual_certificate)
    return (
        certificate if found.proved_gap > program.compute_allowed_gap(program.tolerance) else found
    )


def _run_method(
    name: str,
    settings: Mapping[str, Any],
    program: LinearDesign,
    options: MethodOptions,
    start: SolveContext,
) -> SolverResult:
    """Solve a linear design by the method of a name, or by the variant that fits its structure."""
    if name == CLOSED_FORM:
        assert start.known is not None
        point = PrimalDualPoint(start.known.matrix, start.known.multipliers)
        return SolverResult("point", True, start.known.name, 0, True, 0.0, 0.0, point)
    if name == COLOR_REFINEMENT:
        assert program.equitable_partition is not None
        return solve_by_partition(program, program.equitable_partition, options)
    if name == constraint_generation.METHOD_NAME:
        assert start.program.generated_bounds is not None
        return constraint_generation.generate_constraints(
            program, start.program.generated_bounds, options
        )
    if name in (block_interior_point.METHOD_NAME, "highs") and (task := start.block_lp) is not None:
        if name == block_interior_point.METHOD_NAME:
            return block_interior_point.solve_block_lp(program, task, options)
        if start.is_banded:
            near = start.restart
            basis = near.arrays if near is not None and near.solver == name else None
            return simplex.solve_by_simplex(task, options, start.simplex_start, basis)
    small = program.table.size <= MAX_SIMPLEX_ENTRIES and program.bounds_on_pairs is None
    if name == "highs" and start.only_ratio_bounds and small:
        ratios = program.privacy.for_prior(program.prior).ratios(program.prior.pmf)
        assert ratios is not None
        return constraint_generation.solve_by_simplex(program, ratios, options)
    within = constraint_generation.reserve_pair_seconds(program, name, options)
    outcome = _run_solver(name, settings, program, within)
    return replace(outcome, point=_read_point(program)) if outcome.state == "point" else outcome


def solve_by_partition(
    program: LinearDesign, classes: EquitablePartition, options: MethodOptions
) -> SolverResult:
    """Solve in classes of pairs, and expand the result to a matrix with multipliers for every letter.

    The certificate is on the matrix and knows nothing of classes.
    """
    begin, orbits = time.perf_counter(), classes.orbits
    values = np.empty(orbits.count)
    values[classes.table] = program.table
    columns = OrbitColumns.from_space(classes, program.privacy)
    declared = columns.build_model(classes.output_names, program.maximised, values)
    ready = time.perf_counter()
    outcome = highs.solve_problem(declared.problem, "highs", options)
    if outcome.state != "point":
        return outcome
    lifts, duals = declared.variables["orbits"].value, declared.constraints["rows"].dual_value
    shares = np.asarray(lifts) / np.array(orbits.outputs, dtype=float)[orbits.output]
    letter = orbits.letter[classes.table[:, 0]]
    found = PrimalDualPoint(shares[classes.table], (np.asarray(duals) / orbits.masses)[letter])
    seconds = ready - begin + outcome.compile_seconds
    return replace(outcome, warm_started=False, point=found, compile_seconds=seconds)


def _run_solver(
    name: str, settings: Mapping[str, Any], program: Program[Any], options: MethodOptions
) -> SolverResult:
    """Solve the declared problem by HiGHS, or by a solver of cvxpy."""
    if name in highs.METHOD_OPTIONS:
        return highs.solve_problem(program.problem, name, options)
    return cvxpy_interface.solve_problem(program.problem, name.upper(), options, dict(settings))


def _read_point(program: LinearDesign) -> PrimalDualPoint:
    """Read the mechanism and the multipliers of its rows that a solver left in the variables."""
    pairs = (
        program.generated_bounds
    )  # of many, what a bound costs is a linear program for each output
    witness = None if pairs is None else constraint_generation.read_weights(program, pairs)
    multipliers = _read_multipliers(program, program.prior.pmf)
    return PrimalDualPoint(
        np.asarray(program.mechanism.value), multipliers, dual_certificate=witness
    )


def _read_multipliers(program: Program[Any], masses: FloatArray) -> FloatArray | None:
    """Read the multipliers that a solver left of the rows, divided by the probabilities of the letters."""
    duals = program.constraints["rows"].dual_value
    return None if duals is None else np.asarray(duals) / masses


def _compare_closed_form(
    known: KnownOptimum | None, certificate: LinearCertificate
) -> ClosedForm | None:
    """Compare a certified value with the closed form; None where none is known."""
    return (
        None
        if known is None
        else ClosedForm(known.name, known.value, certificate.value - known.value)
    )


def _make_method(
    row: str,
    name: str,
    reason: str,
    fits: Callable[[SolveContext], bool] = accept_all,
    takes: str | None = None,
    **settings: Any,
) -> Method[LinearDesign, SolveContext, LinearCertificate]:
    """Make a method from the id of its row, its reason, when it is tried, and its settings.

    Where `takes` is given it is run by name only.
    """
    run = partial(_solve_and_certify, name, settings)
    own = name in (
        CLOSED_FORM,
        COLOR_REFINEMENT,
        constraint_generation.METHOD_NAME,
        block_interior_point.METHOD_NAME,
    )
    return Method(
        name, reason, run, lambda _, start: fits(start), takes is None, takes or "", row, not own
    )


def _make_named_method(
    name: str, applies: Callable[[SolveContext], bool] = accept_all, takes: str = ""
) -> Method[LinearDesign, SolveContext, LinearCertificate]:
    """Make the method of a solver that is chosen by name."""
    return _make_method(f"{name}-by-name", name, "chosen by name", applies, takes)


TIGHT_TOLERANCES: Mapping[str, Any] = dict.fromkeys(
    ("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12
)
"""Clarabel's tolerances, for multipliers to the last digits."""

MAX_SIMPLEX_ENTRIES = 900
"""Matrices of up to this many entries go to the simplex first: fast enough there, and exact."""

MAX_WARM_SIMPLEX_ENTRIES = 40_000
"""From here on the simplex takes minutes, even from a vertex nearby."""

AUTOMATIC_METHODS = (
    _make_method(
        constraint_generation.METHOD_NAME,
        constraint_generation.METHOD_NAME,
        "many bounds on pairs of letters: those that others nearly imply come in as they are broken",
        lambda start: start.program.generated_bounds is not None and not start.is_closed_form,
    ),
    _make_method(
        CLOSED_FORM,
        CLOSED_FORM,
        f"over {MAX_WARM_SIMPLEX_ENTRIES:,} entries, or bounds on pairs, and a closed form is optimal: "
        "nothing to solve",
        lambda start: (
            start.is_closed_form
            and (start.only_ratio_bounds or start.program.table.size > MAX_WARM_SIMPLEX_ENTRIES)
        ),
    ),
    _make_method(
        "highs-closed-form-warm",
        "highs",
        "LP with a closed form that is optimal: HiGHS simplex, warm",
        lambda start: start.closed_form_is_vertex and start.is_lp_up_to(MAX_WARM_SIMPLEX_ENTRIES),
    ),
    _make_method(
        "highs-warm",
        "highs",
        f"LP with a start, of at most {MAX_SIMPLEX_ENTRIES} entries: simplex, warm",
        lambda start: start.has_user_start and start.is_lp_up_to(MAX_SIMPLEX_ENTRIES),
    ),
    _make_method(
        "highs-small",
        "highs",
        f"LP of at most {MAX_SIMPLEX_ENTRIES} entries: HiGHS dual simplex ends at a vertex, with exact zeros",
        lambda start: (
            not (start.closed_form_is_vertex or start.has_user_start)
            and start.is_lp_up_to(MAX_SIMPLEX_ENTRIES)
        ),
    ),
    _make_method(
        COLOR_REFINEMENT,
        COLOR_REFINEMENT,
        "letters and outputs fall into few classes that look alike: LP with a variable for each class",
        lambda start: (
            not (start.closed_form_is_vertex or start.has_user_start)
            and start.program.equitable_partition is not None
        ),
    ),
    _make_method(
        block_interior_point.METHOD_NAME,
        block_interior_point.METHOD_NAME,
        "few numbers couple the columns: structured interior point, a system of the size of the smaller side",
        lambda start: start.block_lp is not None,
    ),
    _make_method(
        "clarabel-lp",
        "clarabel",
        "LP, without blocks or not solved by them: Clarabel's interior point, without "
        "refinement, which the certificate makes up for",
        lambda start: start.is_linear,
        iterative_refinement_enable=False,
    ),
    _make_method(
        "clarabel-cones",
        "clarabel",
        "cones: Clarabel's interior point",
        lambda start: not start.is_linear,
    ),
    _make_method(
        "clarabel-sharp",
        "clarabel",
        "Clarabel's interior point, to 1e-12: where bounds are curved, multipliers must be sharp",
        **TIGHT_TOLERANCES,
    ),
    _make_method(
        "highs-large",
        "highs",
        "LP: HiGHS dual simplex ends at a vertex, however long it takes",
        lambda start: start.is_lp_up_to(MAX_WARM_SIMPLEX_ENTRIES),
    ),
    _make_method(
        "highs-ipm",
        "highs-ipm",
        "large LP: HiGHS interior point without crossover",
        lambda start: start.is_linear,
    ),
    _make_method("scs", "scs", "last resort: SCS, a first-order method"),
)
"""Tried from top to bottom until one reaches a certified gap within tolerance; measured by
benchmarks/solvers.py and benchmarks/large.py."""

NAMED_METHODS = (
    _make_named_method(
        CLOSED_FORM,
        lambda start: start.known is not None,
        "designs of which a closed form is known to be optimal",
    ),
    _make_named_method(
        COLOR_REFINEMENT,
        lambda start: start.program.equitable_partition is not None,
        "designs with few classes of letters and outputs that look alike",
    ),
    _make_named_method(
        constraint_generation.METHOD_NAME,
        lambda start: start.program.generated_bounds is not None,
        "designs under many bounds on pairs of letters and nothing else",
    ),
    _make_named_method(
        block_interior_point.METHOD_NAME,
        lambda start: start.block_lp is not None,
        "designs with an expected gain or loss, under a bound above 0 nats and with at most as many added "
        "linear constraints as there are letters",
    ),
    *(
        _make_named_method(name, lambda start: start.is_linear, "linear programs")
        for name in highs.METHOD_OPTIONS
    ),
)


def _certify_given(
    program: LinearDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[LinearCertificate]:
    """Repair and certify a matrix, with given multipliers or a few that need no solver."""
    certificate = certify_linear(program, matrix, multipliers)
    return wrap_given_certificate(
        certificate, _compare_closed_form(known_optimum(program), certificate)
    )


def _has_empty_interior(program: LinearDesign) -> bool:
    """Return whether a constant hardly meets a ratio bound, such as one of 0 nats about a secret.

    Mechanisms then meet pairs with equality, which few floats do in exact arithmetic: what the repair must
    mix in opens a gap that no other solver closes.
    """
    return program.column_block is None and program.privacy.has_empty_interior(program.prior)


def _explain_mixing(program: LinearDesign, certificate: LinearCertificate) -> str:
    """Explain why a bound with an empty interior leaves little of a mechanism, and a remedy; else nothing."""
    lost = certificate.proved_gap > program.compute_allowed_gap(program.tolerance)
    above = certificate.privacy.limits != program.privacy.limits
    if not above and not (lost and _has_empty_interior(program)):
        return ""
    what = (
        f"the best mechanism found has up to {certificate.level:.2g} nats, above the limit"
        if above
        else "what the repair mixed in opens the gap"
    )
    return (
        "a constant meets a bound with equality, so every column must, and few columns of floats do: "
        f"{what}. Give a joint law by whole counts (Secret.from_counts), of which "
        "columns meet it exactly, or allow 1e-9 nats in place of 0"
    )


METHODS = MethodRegistry(
    LinearDesign,
    (*AUTOMATIC_METHODS, *NAMED_METHODS),
    make_context,
    _certify_given,
    make_cvxpy_method=_make_named_method,
    find_first_result=feasible.find_first_mechanism,
    compares_first=True,
)
"""Designs with an expected gain or loss."""


MAX_SIMPLEX_ORBITS = 12_000
"""Orbits of pairs up to which the simplex comes first, exact there and as fast as the interior point."""


def _solve_by_orbits(
    name: str,
    settings: Mapping[str, Any],
    program: SymmetricDesign,
    options: MethodOptions,
    _: None,
) -> MethodResult[SymmetricCertificate]:
    """Solve in orbits of pairs, repair and certify."""
    # cvxpy takes 1.5e-5 s to compile each orbit of pairs, which no time limit ends
    if options.deadline.expired_for(-1.5e-5 * program.space.orbits.count):
        raise MethodError(f"{TIME_LIMIT}: compiling takes longer than there is")
    outcome = _run_solver(name, settings, program, options)
    if outcome.state != "point":
        raise MethodError(outcome.message)
    solved_at = time.perf_counter()
    multipliers = _read_multipliers(program, program.columns.masses)
    certificate = certify_symmetric(
        program, np.asarray(program.variables["orbits"].value), multipliers
    )
    detail = f"{program.space.orbits.count} orbits of pairs"
    return make_method_result(outcome, certificate, time.perf_counter() - solved_at, detail)


def _make_orbit_method(
    row: str,
    name: str,
    reason: str,
    few: bool | None = None,
    automatic: bool = True,
    **settings: float,
) -> Method[SymmetricDesign, None, SymmetricCertificate]:
    """Make a method from the id of its row: its reason, whether for few orbits or many, and its settings."""

    def is_applicable(program: SymmetricDesign, _: None) -> bool:
        return few is None or few == (program.space.orbits.count <= MAX_SIMPLEX_ORBITS)

    return Method(
        name,
        reason,
        partial(_solve_by_orbits, name, settings),
        is_applicable,
        automatic,
        "",
        row,
        True,
    )


_ORBIT_SIMPLEX = "highs", "LP in orbits of pairs: HiGHS dual simplex ends at a vertex"
_ORBIT_INTERIOR_POINT = (
    "highs-ipm",
    "LP in many orbits of pairs: HiGHS interior point without crossover",
)

ORBIT_METHODS = MethodRegistry(
    SymmetricDesign,
    (
        _make_orbit_method("highs-few-orbits", *_ORBIT_SIMPLEX, few=True),
        _make_orbit_method("highs-ipm-many-orbits", *_ORBIT_INTERIOR_POINT, few=False),
        _make_orbit_method(
            "clarabel",
            "clarabel",
            "LP in orbits of pairs, not solved by HiGHS: Clarabel's interior point, to 1e-12",
            **TIGHT_TOLERANCES,
        ),
        _make_orbit_method("highs-ipm-few-orbits", *_ORBIT_INTERIOR_POINT, few=True),
        _make_orbit_method("highs-many-orbits", *_ORBIT_SIMPLEX, few=False),
    ),
    lambda *_: None,
    refuse_to_certify(
        "a mechanism by orbits is no matrix: a matrix without orbits has no certificate here"
    ),
    make_cvxpy_method=lambda name: _make_orbit_method(
        name, name, "chosen by name, through cvxpy", automatic=False
    ),
    find_first_result=feasible.find_first_by_orbits,
    compares_first=True,
)
"""The same on a symmetric prior."""
