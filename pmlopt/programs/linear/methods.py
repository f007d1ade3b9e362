"""The methods for linear designs, and the decision list that selects them, with reasons."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import InfeasibleError
from pmlopt.programs.certificate import ClosedForm
from pmlopt.programs.linear import feasible
from pmlopt.programs.linear.build_certificate import (
    certify_linear,
    certify_symmetric,
    replace_mechanism,
)
from pmlopt.programs.linear.certificate import (
    MAX_RELATIVE_RESIDUAL,
    LinearCertificate,
    SymmetricCertificate,
)
from pmlopt.programs.linear.formulation import (
    BLOCKS,
    CLOSED_FORM,
    COLOR_REFINEMENT,
    MUTUAL_PAIRS,
    OUTPUTS,
    PAIRS,
    TIGHT_TOLERANCES,
    Formulation,
    KnownOptimum,
    find_better_form,
    find_known_optimum,
    formulate,
    read_multipliers,
    run_solver,
    solve_by_cvxpy,
)
from pmlopt.programs.linear.program import MAX_SIMPLEX_ENTRIES, LinearDesign, SymmetricDesign
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    accept_all,
    make_method_result,
    refuse_to_certify,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.solvers import highs
from pmlopt.solvers.cvxpy_interface import SOLUTION_FILE
from pmlopt.solvers.solver_result import TIME_LIMIT, MethodOptions

OWN_METHODS = (
    CLOSED_FORM,
    COLOR_REFINEMENT,
    MUTUAL_PAIRS,
    PAIRS,
    OUTPUTS,
    BLOCKS,
)
"""Methods that pass no options to a solver."""


def _solve_and_certify(
    row: str, name: str, program: LinearDesign, options: MethodOptions, form: Formulation
) -> MethodResult[LinearCertificate]:
    """Solve, repair and certify; reject a point that violates a user's own constraint."""
    solver = form.solvers.get(row) or partial(solve_by_cvxpy, program, name, {})
    outcome = solver(options)
    if outcome.state == "infeasible" and program.added:
        if rare := _explain_rare_letter(
            program
        ):  # what fits below a solver's tolerance it may call infeasible
            raise MethodError(f"{outcome.message}: {', '.join(program.added)}{rare}")
        # a solver may call a model infeasible that it cannot read: another one has to agree
        other = "clarabel" if name in highs.METHOD_OPTIONS else "highs"
        if other == "highs" and not program.problem.is_lp():
            other = "scs"
        if run_solver(other, {}, program, options).state != "infeasible":
            raise MethodError(f"{outcome.message}, and {other} does not find it infeasible")
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
    # the optimum by formula is the best of the forms; a solution that was given is not replaced
    is_known = form.known is not None and point.matrix is form.known.matrix
    stays = is_known or name == SOLUTION_FILE or options.deadline.expired
    better = None if stays else find_better_form(program, certificate)
    if better is not None:
        certificate = certify_linear(program, better, point.multipliers, point.dual_certificate)
    for one in program.added:
        if certificate.residuals[one] > MAX_RELATIVE_RESIDUAL:
            raise MethodError(
                f"the repaired mechanism violates your constraint {one!r} by "
                f"{certificate.residuals[one]:.3g} of its size{_explain_rare_letter(program)}"
            )
    return make_method_result(
        outcome,
        certificate,
        time.perf_counter() - solved_at,
        detail=_explain_mixing(program, certificate),
        closed_form=_compare_closed_form(form.known, certificate),
        arrays={"matrix": certificate.mechanism.matrix, **outcome.warm_start_arrays},
    )


def _explain_rare_letter(program: LinearDesign) -> str:
    """Return a hint that a very rare letter makes constraints unattainable in floats; else empty."""
    place = int(program.prior.pmf.argmin())
    # the law of a letter of probability 1e-9 has seven digits in steps of 2^-53
    if program.prior.pmf[place] >= 1e-9:
        return ""
    return (
        f" (entries of rows that sum to exactly one have steps of 1e-16, too coarse for "
        f"{program.prior.labels[place]!r} of probability {program.prior.pmf[place]:.3g}: merge rare letters)"
    )


def _compare_closed_form(
    known: KnownOptimum | None, certificate: LinearCertificate
) -> ClosedForm | None:
    """Compare a certified value with the closed form's; None without one."""
    return (
        None
        if known is None
        else ClosedForm(known.name, known.value, certificate.value - known.value)
    )


def _make_method(
    row: str, name: str, reason: str, takes: str | None = None
) -> Method[LinearDesign, Formulation, LinearCertificate]:
    """Build the method of one solver form; it applies where the formulation has that form.

    Where `takes` is given it is run by name only.
    """
    run = partial(_solve_and_certify, row, name)
    return Method(
        name,
        reason,
        run,
        lambda _, form: row in form.solvers,
        takes is None,
        takes or "",
        row,
        name not in OWN_METHODS,
    )


def _has_classes(program: LinearDesign, _: Formulation) -> bool:
    """Return whether letters and outputs fall into few classes; it takes a while where they are many."""
    return program.equitable_partition is not None


def _make_named_method(
    name: str, takes: str = ""
) -> Method[LinearDesign, Formulation, LinearCertificate]:
    """Build a method that runs only when selected by its pmlopt name."""
    return _make_method(f"{name}-by-name", name, "chosen by name", takes)


def _make_cvxpy_method(name: str) -> Method[LinearDesign, Formulation, LinearCertificate]:
    """Build the method of a cvxpy solver that is selected by name and takes any program."""
    return replace(_make_named_method(name), applies=accept_all)


AUTOMATIC_METHODS = (
    _make_method(
        CLOSED_FORM,
        CLOSED_FORM,
        "a dual bound has proved a closed form optimal: nothing to solve",
    ),
    _make_method(
        MUTUAL_PAIRS,
        MUTUAL_PAIRS,
        "many bounds on pairs of letters, each both ways: interior point with a matrix for each output, "
        "which only the row sums couple",
    ),
    _make_method(
        PAIRS,
        PAIRS,
        "many bounds on pairs of letters: those that others nearly imply come in as they are broken",
    ),
    _make_method(
        "highs-warm",
        "highs",
        f"LP with a start, of at most {MAX_SIMPLEX_ENTRIES} entries: simplex, warm",
    ),
    _make_method(
        "highs-small",
        "highs",
        f"LP of at most {MAX_SIMPLEX_ENTRIES} entries: HiGHS dual simplex ends at a vertex, with exact zeros",
    ),
    _make_method(
        COLOR_REFINEMENT,
        COLOR_REFINEMENT,
        "letters and outputs fall into few classes that look alike: LP with a variable for each class",
    ),
    _make_method(
        OUTPUTS,
        OUTPUTS,
        "PML, many outputs: those that are used come in by price",
    ),
    _make_method(
        BLOCKS,
        BLOCKS,
        "few numbers couple the columns: structured interior point, a system of the size of the smaller side",
    ),
    _make_method(
        "clarabel",
        "clarabel",
        "cones, or rows that are not in blocks: Clarabel's interior point",
    ),
    _make_method(
        "clarabel-sharp",
        "clarabel",
        "Clarabel's interior point, to 1e-12: where bounds are curved, multipliers must be sharp",
    ),
)
"""Tried from top to bottom until one reaches a certified gap within tolerance; measured by
benchmarks/solvers.py and benchmarks/large.py."""

NAMED_METHODS = (
    _make_named_method(
        CLOSED_FORM,
        "designs of which a closed form is known to be optimal",
    ),
    replace(
        _make_named_method(
            COLOR_REFINEMENT,
            "designs with few classes of letters and outputs that look alike",
        ),
        applies=_has_classes,
    ),
    _make_named_method(
        MUTUAL_PAIRS,
        "designs under many bounds on pairs of letters, each both ways, and nothing else",
    ),
    _make_named_method(
        PAIRS,
        "designs under many bounds on pairs of letters and nothing else",
    ),
    _make_named_method(
        OUTPUTS,
        "designs with an expected gain or loss, under PML above 0 nats and nothing else",
    ),
    _make_named_method(
        BLOCKS,
        "designs with an expected gain or loss, under a bound above 0 nats and with at most as many added "
        "linear constraints as there are letters",
    ),
    *(_make_named_method(name, "linear programs") for name in highs.METHOD_OPTIONS),
)


def _certify_given_matrix(
    program: LinearDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[LinearCertificate]:
    """Repair and certify a given matrix, with given or cheap multipliers."""
    certificate = certify_linear(program, matrix, multipliers)
    return wrap_given_certificate(
        certificate, _compare_closed_form(find_known_optimum(program), certificate)
    )


def _has_empty_interior(program: LinearDesign) -> bool:
    """Return whether the requirement has (nearly) no interior: a constant mechanism has little slack.

    Mechanisms then meet pairs with equality, which few floats do in exact arithmetic: what the repair must
    mix in opens a gap that no other solver closes.
    """
    return program.column_block is None and program.privacy.has_empty_interior(program.prior)


def _explain_mixing(program: LinearDesign, certificate: LinearCertificate) -> str:
    """Explain a large repair loss under a requirement with empty interior, with a remedy; else empty."""
    lost = certificate.proved_gap > program.compute_allowed_gap(program.tolerance)
    if not (lost and _has_empty_interior(program)):
        return ""
    return (
        "a constant meets a bound with equality, so every column must, and few columns of floats do; what "
        "the repair mixed in opens the gap. Give a joint law by whole counts (Secret.from_counts), of which "
        "columns meet it exactly, or allow 1e-9 nats in place of 0"
    )


METHODS = MethodRegistry(
    LinearDesign,
    (*AUTOMATIC_METHODS, *NAMED_METHODS),
    formulate,
    _certify_given_matrix,
    make_cvxpy_method=_make_cvxpy_method,
    find_first_result=feasible.find_first_mechanism,
    compares_first=True,
    replace_mechanism=replace_mechanism,
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
    """Solve on orbits of pairs, repair and certify."""
    # cvxpy takes 1.5e-5 s to compile each orbit of pairs, which no time limit ends
    if options.deadline.expired_for(-1.5e-5 * program.space.orbits.count):
        raise MethodError(f"{TIME_LIMIT}: compiling takes longer than there is")
    outcome = run_solver(name, settings, program, options)
    if outcome.state != "point":
        raise MethodError(outcome.message)
    solved_at = time.perf_counter()
    multipliers = read_multipliers(program, program.columns.masses)
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
    """Build the method that solves on orbits of pairs with a certain solver.

    Args:
        row: its id.
        name: of the solver.
        reason: when and why; of a method for few or many orbits, why.
        few: whether it is for at most `MAX_SIMPLEX_ORBITS` orbits, or for more; None: for any number.
        automatic: whether `auto` tries it.
        settings: of the solver.
    """
    if few is not None:
        reason = f"LP in {'few' if few else 'many'} orbits of pairs: {reason}"

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


ORBIT_METHODS = MethodRegistry(
    SymmetricDesign,
    (
        _make_orbit_method(
            "highs-few-orbits", "highs", "HiGHS dual simplex ends at a vertex", few=True
        ),
        _make_orbit_method(
            "highs-ipm-many-orbits",
            "highs-ipm",
            "HiGHS interior point without crossover",
            few=False,
        ),
        _make_orbit_method(
            "clarabel",
            "clarabel",
            "cones in orbits of pairs, or not solved by HiGHS: Clarabel's interior point, to 1e-12",
            **TIGHT_TOLERANCES,
        ),
        *(
            _make_orbit_method(f"{name}-by-name", name, "chosen by name", automatic=False)
            for name in highs.METHOD_OPTIONS
        ),
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

register_question(METHODS)
register_question(ORBIT_METHODS)
