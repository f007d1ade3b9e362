"""Feasible mechanisms found in milliseconds, used where no solver ends within the time limit."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InfeasibleError
from pmlopt.model.utility.linear import build_best_constant
from pmlopt.programs.linear.build_certificate import certify_linear, certify_symmetric
from pmlopt.programs.linear.certificate import (
    MAX_RELATIVE_RESIDUAL,
    LinearCertificate,
    SymmetricCertificate,
)
from pmlopt.programs.linear.formulation import list_feasible_forms
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.programs.program import C, MethodError, MethodResult
from pmlopt.solvers import cvxpy_interface
from pmlopt.solvers.solver_result import Deadline, MethodOptions
from pmlopt.solvers.solver_result import SolverResult as SolverOutcome


def find_first_mechanism(program: LinearDesign) -> MethodResult[LinearCertificate]:
    """Certify the best of several mechanisms that need no solver.

    They are the best constant and, where bounds are on pairs of letters, an exponential mechanism and the
    envelopes of sharper ones. Added constraints take a linear program.

    Raises:
        MethodError: no mechanism that meets the added constraints was found.
    """
    begin = time.perf_counter()
    if program.added:
        return _make_formula_result(
            find_feasible_for_constraints(program), time.perf_counter() - begin
        )
    candidates = [build_best_constant(program.prior.probabilities, program.centered_gains)]
    candidates += _build_exponential_candidates(program)
    # all candidates are feasible, so that only their gain decides
    best = max(candidates, key=partial(_compute_gain, program))
    ratios = program.privacy.list_weighted_ratios(program.prior)
    if ratios is not None:
        # the bound of no privacy at all: a better one takes a linear program
        unweighted = dict.fromkeys(("pairs", "outputs", "weights"), np.zeros(0))
        certificate = certify_linear(program, best, program.centered_gains.max(axis=1), unweighted)
    else:
        certificate = certify_linear(program, best, None)
    return _make_formula_result(certificate, time.perf_counter() - begin)


def _build_exponential_candidates(program: LinearDesign) -> list[FloatArray]:
    """Return an exponential mechanism within the pair bounds, envelopes, and a mixture of peaks."""
    from pmlopt.programs.exact.envelope_repair import pair_exponents, repair_by_envelope
    from pmlopt.programs.linear.pair_interior_point import build_exponential_matrix
    from pmlopt.programs.linear.peak_mixtures import find_peak_mixture, limit_search

    exponents = pair_exponents(program.prior, program.privacy)
    if exponents is None:
        return []
    base = build_exponential_matrix(program.centered_gains, exponents)
    found = [base]
    # Values of pairs of letters on outputs, N^2 M, up to which more than one envelope takes milliseconds.
    large = len(exponents) * base.size > 16_000_000
    if large and program.bounds_on_pairs is not None:
        inner = _build_inner_mixture(program, exponents, base)
        if inner is not None:
            return [base, inner]
    for power in SHARPER[:1] if large else SHARPER:
        # the largest entry of a row is at least 1 / M, so that no row becomes zero
        sharper = base**power
        envelope = repair_by_envelope(program.prior, exponents, sharper, program.centered_gains)
        if envelope is not None:
            found.append(envelope.matrix)
    if program.bounds_on_pairs is not None:
        best = max(found, key=partial(_compute_gain, program))
        others = None if best is base else base
        mixture = find_peak_mixture(program, exponents, limit_search(program), others, best)
        found += [] if mixture is None else [mixture]
    return found


def _build_inner_mixture(
    program: LinearDesign, exponents: FloatArray, start: FloatArray
) -> FloatArray | None:
    """Build a mixture of peaks that needs no repair, which takes as long as all the rest."""
    from pmlopt.programs.linear.peak_mixtures import find_peak_mixture, limit_search

    mixture = find_peak_mixture(program, exponents, limit_search(program), None, start)
    if mixture is None:
        return None
    law = program.prior.pmf @ mixture
    # a share of the law moves it from the bounds by more than floats round
    return np.asarray(mixture + 2.0**-24 * (law - mixture))


def _compute_gain(program: LinearDesign, matrix: FloatArray) -> float:
    """Compute the expected gain of a mechanism, less what every mechanism has."""
    return program.columns.compute_expectation(program.centered_gains, matrix)


SHARPER = (2.0, 1.5, 4.0, 16.0, 64.0)
"""Powers of an exponential mechanism whose envelopes are looked at, the best for most losses first."""


MAX_LP_ENTRIES, MAX_CONE_ENTRIES = 10_000, 1_000
"""Entries of a mechanism up to which all mechanisms are searched, and not mixtures of a few only: by linear
programs, and where constraints are curved."""


def find_feasible_for_constraints(program: LinearDesign) -> LinearCertificate:
    """Certify a mechanism that satisfies the user's added constraints.

    It is the best mixture of constants and of mechanisms by formula; where no mixture meets the constraints,
    the first of all mechanisms that a solver finds in a second.

    Raises:
        InfeasibleError: no mechanism meets the constraints.
        MethodError: none was found in the time.
    """
    outcome = _mix_within_constraints(program)
    max_entries = MAX_LP_ENTRIES if program.problem.is_lp() else MAX_CONE_ENTRIES
    if outcome.state != "point" and program.table.size <= max_entries:
        outcome = _solve_within_second(program.problem)
        if outcome.state == "infeasible" and program.problem.is_lp():
            raise InfeasibleError(
                f"no mechanism satisfies the constraints ({outcome.message}); a design without added "
                f"constraints is always feasible, so check those that were added: {', '.join(program.added)}"
            )
    matrix = program.mechanism.value
    if outcome.state != "point" or matrix is None:
        raise MethodError(
            f"no mechanism within the constraints {', '.join(program.added)} was found in the time: "
            "allow more of it"
        )
    for constraint in program.added.values():
        for dual in constraint.dual_variables:
            dual.save_value(np.zeros(dual.shape))  # the bound of the design without constraints
    certificate = certify_linear(program, np.asarray(matrix, dtype=float), None)
    broken = [one for one in program.added if certificate.residuals[one] > MAX_RELATIVE_RESIDUAL]
    if broken:
        raise MethodError(
            f"the mechanism that was found in the time violates the constraint {broken[0]!r} by "
            f"{certificate.residuals[broken[0]]:.3g} of its size: allow more of it"
        )
    return certificate


def _mix_within_constraints(program: LinearDesign) -> SolverOutcome:
    """Optimize over mixtures of closed-form and constant mechanisms that meet the added constraints."""
    forms = [form.matrix for _, form in list_feasible_forms(program)]
    parts = [*forms, *_build_exponential_candidates(program)]
    shares = cp.Variable(len(parts), nonneg=True)
    law = cp.Variable((1, program.table.shape[1]), nonneg=True)
    # (N M, parts): a mixture of matrices is one product with the shares
    flat = np.reshape(parts, (len(parts), -1)).T
    # constants of any law have the same row for each letter, and meet every requirement
    mixture = np.ones((program.prior.size, 1)) @ law
    mixture += cp.reshape(flat @ shares, program.table.shape, order="C")
    constraints = [
        *program.added.values(),
        cp.sum(law) + cp.sum(shares) == 1,
        program.mechanism == mixture,
        program.variables["output_law"] == program.prior.pmf[None, :] @ program.mechanism,
    ]
    return _solve_within_second(cp.Problem(program.problem.objective, constraints))


def _solve_within_second(problem: cp.Problem) -> SolverOutcome:
    """Solve a cvxpy problem with a time limit of one second; None where that fails."""
    # Limits of the search for a mechanism within added constraints.
    options = MethodOptions(Deadline.after(0.9), 1e-9)
    solver = "highs" if problem.is_lp() else "clarabel"
    return cvxpy_interface.solve_declared(problem, solver, options)


def find_first_by_orbits(program: SymmetricDesign) -> MethodResult[SymmetricCertificate]:
    """Certify the constant mechanism that draws uniformly from the best orbit of outputs."""
    begin, columns = time.perf_counter(), program.columns
    law = np.zeros(len(columns.orbits.outputs))
    # all mass on the output of the largest mean gain: the best constant
    law[int(columns.mean_by_output(program.centered_gains).argmax())] = 1.0
    lifts = columns.broadcast_outputs(law, program.centered_gains.shape)
    return _make_formula_result(
        certify_symmetric(program, lifts, None), time.perf_counter() - begin
    )


def _make_formula_result(certificate: C, seconds: float) -> MethodResult[C]:
    """Build the method result of a closed-form mechanism."""
    by_orbits = isinstance(certificate, SymmetricCertificate)
    return MethodResult(
        certificate=certificate,
        finished=False,
        message="a mechanism by formula",
        detail="",
        certify_seconds=seconds,
        arrays={} if by_orbits else {"matrix": certificate.mechanism.matrix},
    )
