"""The methods for linear designs, and the decision list that selects them, with reasons."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InfeasibleError
from pmlopt.programs import linear
from pmlopt.programs.linear import feasible, formulation, ratio_rows
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
from pmlopt.solvers.cvxpy_interface import SOLUTION_FILE, solve_declared
from pmlopt.solvers.solver_result import TIME_LIMIT, MethodOptions, SolverResult

TIGHT_TOLERANCES: Mapping[str, Any] = dict.fromkeys(
    ("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12
)
"""Clarabel's tolerances, for multipliers to the last digits."""


@light_dataclass(frozen=True)
class Solver:
    """A solver of encoded designs, whose points are repaired and certified.

    Attributes:
        name: by which it is requested.
        takes: the function that solves each encoding that it takes, the best one first; it is called with
            what the encoding has built, and with `options`.
        requirements_text: which designs these are, in words, where it can be requested by name.
    """

    name: str
    takes: Mapping[formulation.Encoding, Callable[..., SolverResult]]
    requirements_text: str = ""

    def choose_encoding(self, start: formulation.Formulation) -> formulation.Encoding | None:
        """Return the first encoding by which a design can be written; None where there is none."""
        for one in self.takes:
            if one.find(start) is not None:
                return one
        return None

    def __call__(
        self, program: LinearDesign, options: MethodOptions, start: formulation.Formulation
    ) -> MethodResult[LinearCertificate]:
        """Solve, repair and certify; reject a point that violates a user's own constraint."""
        encoding = self.choose_encoding(start)
        assert encoding is not None
        outcome = self.takes[encoding](**encoding.build(start), options=options)
        if outcome.state == "point" and outcome.point is None:
            outcome = replace(outcome, point=encoding.recover(program))
        if outcome.state == "infeasible" and program.added:
            # what fits below a solver's tolerance it may call infeasible
            if rare := _explain_rare_letter(program):
                raise MethodError(f"{outcome.message}: {', '.join(program.added)}{rare}")
            raise InfeasibleError(
                f"no mechanism satisfies the constraints ({self.name}: {outcome.message}); a design "
                "without added constraints is always feasible, so check those that were added: "
                f"{', '.join(program.added)}"
            )
        if outcome.point is None:
            raise MethodError(outcome.message)
        solved_at = time.perf_counter()
        point = outcome.point
        certificate = certify_linear(
            program, point.matrix, point.multipliers, point.dual_certificate
        )
        # the optimum by formula is the best of the forms; a solution that was given is not replaced
        is_known = start.known is not None and point.matrix is start.known.matrix
        stays = is_known or self.name == SOLUTION_FILE or options.deadline.expired
        better = None if stays else formulation.find_better_form(program, certificate)
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
            closed_form=None if start.known is None else start.known.compare(certificate),
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


LinearMethod = Method[LinearDesign, formulation.Formulation, LinearCertificate]

OWN_METHODS = ("closed-form", "pair-ipm", "color-refinement", "block-ipm", "output-generation")
"""Methods that pass no options to a solver."""


def _pair(
    row: str,
    solver: Solver,
    reason: str,
    tries: Callable[[formulation.Formulation], bool] = accept_all,
) -> LinearMethod:
    """Make the method of a solver, for designs that it accepts and that are to be tried."""

    def is_applicable(_: LinearDesign, start: formulation.Formulation) -> bool:
        return tries(start) and solver.choose_encoding(start) is not None

    accepts_options = solver.name not in OWN_METHODS
    return Method(
        solver.name, reason, solver, is_applicable, id=row, accepts_options=accepts_options
    )


def _by_name(solver: Solver) -> LinearMethod:
    """Make the method of a solver that runs where it is requested, on whatever it accepts."""
    made = _pair(f"{solver.name}-by-name", solver, "chosen by name")
    return replace(made, automatic=False, requirements_text=solver.requirements_text)


def _by_cvxpy(name: str, **settings: Any) -> Solver:
    """Return a solver of cvxpy with settings of its own."""
    return Solver(
        name, {formulation.CONES: partial(formulation.solve_declared_design, name, settings)}
    )


def _starts_warm(start: formulation.Formulation) -> bool:
    """Return whether the simplex comes first, and has a mechanism to start from."""
    return start.program.table.size <= MAX_SIMPLEX_ENTRIES and start.vertex is not None


def _starts_cold(start: formulation.Formulation) -> bool:
    """Return whether the simplex comes first, without a start."""
    return start.program.table.size <= MAX_SIMPLEX_ENTRIES and start.vertex is None


SIMPLEX = Solver(
    "highs",
    {
        formulation.BANDS: highs.solve_by_simplex,
        formulation.RATIO_ROWS: ratio_rows.solve_by_simplex,
        formulation.ROWS: partial(formulation.solve_declared_design, "highs", {}),
    },
    "linear programs",
)
HIGHS_IPM = Solver(
    "highs-ipm",
    {formulation.ROWS: partial(formulation.solve_declared_design, "highs-ipm", {})},
    "linear programs",
)

AUTOMATIC_METHODS = (
    _pair(
        "closed-form",
        Solver(
            "closed-form",
            {formulation.FORMULA: formulation.return_closed_form},
            "designs of which a closed form is known to be optimal",
        ),
        "a dual bound has proved a closed form optimal: nothing to solve",
        attrgetter("is_optimal"),
    ),
    _pair(
        "pair-ipm",
        Solver(
            "pair-ipm",
            {formulation.PAIRS: lambda **given: linear.solve_pairs(**given)},
            "designs under many bounds on pairs of letters and nothing else",
        ),
        "many bounds on pairs of letters: interior point with a matrix for each output, "
        "which only the row sums couple",
        lambda start: not start.is_optimal,
    ),
    _pair(
        "highs-warm",
        Solver("highs", {formulation.BANDS: highs.solve_by_simplex}),
        f"LP with a start, of at most {MAX_SIMPLEX_ENTRIES} entries: simplex, warm",
        _starts_warm,
    ),
    _pair(
        "highs-small",
        SIMPLEX,
        f"LP of at most {MAX_SIMPLEX_ENTRIES} entries: HiGHS dual simplex ends at a vertex, with exact zeros",
        _starts_cold,
    ),
    _pair(
        "color-refinement",
        Solver(
            "color-refinement",
            {formulation.CLASSES: formulation.solve_by_partition},
            "designs with few classes of letters and outputs that look alike",
        ),
        "letters and outputs fall into few classes that look alike: LP with a variable for each class",
        lambda start: not start.is_optimal and start.vertex is None,
    ),
    _pair(
        "output-generation",
        Solver(
            "output-generation",
            {formulation.OUTPUTS: lambda **given: linear.generate_outputs(**given)},
            "designs with an expected gain or loss, under PML above 0 nats and nothing else",
        ),
        "PML, many outputs: those that are used come in by price",
        # in smaller ones all outputs take a second, and with distances as losses more rounds than they save
        lambda start: start.program.table.size >= 250_000,
    ),
    _pair(
        "block-ipm",
        Solver(
            "block-ipm",
            {formulation.BLOCKS: lambda **given: linear.solve_block_lp(**given)},
            "designs with an expected gain or loss, under a bound above 0 nats and with at most as many "
            "added linear constraints as there are letters",
        ),
        "few numbers couple the columns: structured interior point, a system of the size of the smaller side",
    ),
    _pair(
        "clarabel",
        Solver("clarabel", {formulation.CONES: formulation.solve_by_clarabel}),
        "cones, or rows that are not in blocks: Clarabel's interior point",
    ),
    _pair(
        "clarabel-sharp",
        _by_cvxpy("clarabel", **TIGHT_TOLERANCES),
        "Clarabel's interior point, to 1e-12: where bounds are curved, multipliers must be sharp",
    ),
)
"""Tried from top to bottom until one reaches a certified gap within tolerance; measured by
benchmarks/large.py."""

NAMED_METHODS = tuple(
    _by_name(solver)
    for solver in (*(row.run for row in AUTOMATIC_METHODS), HIGHS_IPM)
    if isinstance(solver, Solver) and solver.requirements_text
)


def _certify_given_matrix(
    program: LinearDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[LinearCertificate]:
    """Repair and certify a given matrix, with given or cheap multipliers."""
    certificate = certify_linear(program, matrix, multipliers)
    known = formulation.find_known_optimum(program)
    return wrap_given_certificate(
        certificate, None if known is None else known.compare(certificate)
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
    formulation.formulate,
    _certify_given_matrix,
    make_cvxpy_method=lambda name: _by_name(_by_cvxpy(name)),
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
    outcome = solve_declared(program.problem, name, options, settings)
    if outcome.state != "point":
        raise MethodError(outcome.message)
    solved_at = time.perf_counter()
    multipliers = formulation.read_multipliers(program, program.columns.masses)
    certificate = certify_symmetric(
        program, np.asarray(program.variables["orbits"].value), multipliers
    )
    detail = f"{program.space.orbits.count} orbits of pairs"
    return make_method_result(outcome, certificate, time.perf_counter() - solved_at, detail)


def _has_few_orbits(program: SymmetricDesign, _: None) -> bool:
    """Return whether the simplex comes first."""
    return program.space.orbits.count <= MAX_SIMPLEX_ORBITS


def _by_orbits(
    name: str, settings: Mapping[str, Any], reason: str, **more: Any
) -> Method[SymmetricDesign, None, SymmetricCertificate]:
    """Make the method that solves on orbits of pairs with a solver and its settings."""
    run = partial(_solve_by_orbits, name, settings)
    return Method(name, reason, run, accepts_options=True, **more)


ORBIT_METHODS = MethodRegistry(
    SymmetricDesign,
    (
        _by_orbits(
            "highs",
            {},
            "LP in few orbits of pairs: HiGHS dual simplex ends at a vertex",
            applies=_has_few_orbits,
            id="highs-few-orbits",
        ),
        _by_orbits(
            "highs-ipm",
            {},
            "LP in many orbits of pairs: HiGHS interior point without crossover",
            applies=lambda program, start: not _has_few_orbits(program, start),
            id="highs-ipm-many-orbits",
        ),
        _by_orbits(
            "clarabel",
            TIGHT_TOLERANCES,
            "cones in orbits of pairs, or not solved by HiGHS: Clarabel's interior point, to 1e-12",
        ),
        *(
            _by_orbits(name, {}, "chosen by name", automatic=False, id=f"{name}-by-name")
            for name in highs.METHOD_OPTIONS
        ),
    ),
    lambda *_: None,
    refuse_to_certify(
        "a mechanism by orbits is no matrix: a matrix without orbits has no certificate here"
    ),
    make_cvxpy_method=lambda name: _by_orbits(
        name, {}, "chosen by name, through cvxpy", automatic=False
    ),
    find_first_result=feasible.find_first_by_orbits,
    compares_first=True,
)
"""The same on a symmetric prior."""

register_question(METHODS)
register_question(ORBIT_METHODS)
