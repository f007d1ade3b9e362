"""The methods for designs with a sub-convex utility under a limited cost of columns."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.programs.certificate import WarmStart, WarmStartLike
from pmlopt.programs.exact.rounding import polish_and_repair
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    make_method_result,
    reject_warm_start,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.programs.subconvex.certificate import ColumnCostCertificate, replace_mechanism
from pmlopt.programs.subconvex.cost_program import GAP_REACHED, ColumnCostDesign, search_columns
from pmlopt.programs.subconvex.optimal_forms import find_optimal_form
from pmlopt.solvers import cvxpy_interface
from pmlopt.solvers.solver_result import TIME_LIMIT, Deadline, MethodOptions, SolverResult


def certify_cost_columns(
    program: ColumnCostDesign,
    matrix: FloatArray,
    multipliers: FloatArray | None = None,
    price: float = 0.0,
    slopes: FloatArray | None = None,
) -> ColumnCostCertificate:
    """Repair a matrix, recompute its value, and bound the optimum by multipliers or by a full release.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    if program.outputs is not None:  # the outputs that the optimum does not need never occur
        matrix = np.pad(matrix, ((0, 0), (0, max(0, len(program.outputs) - matrix.shape[1]))))
    fixed = polish_and_repair(program.prior, program.privacy, matrix, noise=0.0)
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    space = program.space
    # at these multipliers no column gains: no mechanism exceeds releasing the secret
    rho = space.release_multipliers
    nu = 0.0
    linear = None
    bound = space.compute_bound(rho, nu, linear)
    if multipliers is not None:
        proved = space.compute_bound(multipliers, price, slopes)
        if proved < bound:
            rho = multipliers
            nu = max(price, 0.0)
            linear = slopes
            bound = proved
    return ColumnCostCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=program.utility.value(program.prior, mechanism),
        bound=bound,
        multipliers=rho,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max())},
        repair=fixed.to_record,
        utility=program.utility.name,
        price=nu,
        slopes=linear if linear is not None and len(linear) else None,
    )


def _join_outputs(lifts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the matrix of the columns that occur; the same column at several outputs is one."""
    # smaller weights of a solver's point are rounding
    used = np.flatnonzero(weights > 1e-11)
    _, first, place = np.unique(
        lifts[:, used].round(12), axis=1, return_index=True, return_inverse=True
    )
    joined = np.zeros(len(first))
    np.add.at(joined, place.ravel(), weights[used])
    order = np.argsort(first)
    return lifts[:, used[first[order]]] * joined[order]


def _search_and_certify(
    program: ColumnCostDesign, options: MethodOptions, start: FloatArray | None
) -> MethodResult[ColumnCostCertificate]:
    """Search for columns within the deadline, and certify the best mechanism."""
    found = search_columns(program, options, start)
    began = time.perf_counter()
    certificate = certify_cost_columns(
        program,
        _join_outputs(found.lifts, found.weights),
        found.multipliers,
        found.price,
        found.slopes,
    )
    return MethodResult(
        certificate=certificate,
        finished=found.ending != TIME_LIMIT,
        message=f"{found.ending}, {found.rounds} rounds",
        iterations=found.iterations,
        solve_seconds=found.seconds,
        certify_seconds=time.perf_counter() - began,
        closed_form=find_optimal_form(program, certificate, 1e-9),
        warm_started=start is not None,
        # a search without a proof has cut much, and what it has cut helps little
        arrays={"slopes": found.slopes}
        if found.ending == GAP_REACHED and found.slopes is not None
        else {},
    )


def _solve_declared(
    name: str, program: ColumnCostDesign, options: MethodOptions, _: FloatArray | None
) -> MethodResult[ColumnCostCertificate]:
    """Solve the declared linear program by a solver, and certify its point."""
    outcome = cvxpy_interface.solve_declared(program.problem, name, options)
    if outcome.state != "point":
        raise MethodError(outcome.message)
    return _certify_declared(program, outcome)


def _certify_declared(
    program: ColumnCostDesign, outcome: SolverResult
) -> MethodResult[ColumnCostCertificate]:
    """Certify the weights and multipliers that a solver left in the variables."""
    began = time.perf_counter()
    weights = np.asarray(program.variables["weights"].value)
    duals = program.constraints["rows"].dual_value
    row = program.constraints.get("cost")
    if not np.isfinite(weights).all():
        raise MethodError("ended at a point that has numbers which are none")
    price = 0.0 if row is None or row.dual_value is None else float(np.max(row.dual_value))
    certificate = certify_cost_columns(
        program,
        _join_outputs(program.lifts, np.maximum(weights, 0.0)),
        None if duals is None else np.asarray(duals) / program.prior.pmf,
        price / program.cost.usable_cost,
        program.found_columns.slopes,
    )
    return make_method_result(
        outcome,
        certificate,
        time.perf_counter() - began,
        closed_form=find_optimal_form(program, certificate, 1e-9),
    )


def _certify_given(
    program: ColumnCostDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[ColumnCostCertificate]:
    """Repair a matrix, and bound the optimum by given multipliers, or by a full release."""
    return wrap_given_certificate(certify_cost_columns(program, matrix, multipliers))


def _find_first(program: ColumnCostDesign) -> MethodResult[ColumnCostCertificate]:
    """Certify what the repair leaves of a full release, or the constant where that is better."""
    repaired = polish_and_repair(program.prior, program.privacy, np.eye(program.prior.size), 0.0)
    known = [np.ones((program.prior.size, 1)), repaired.matrix]
    best = max(known, key=lambda matrix: program.utility.value(program.prior, matrix))
    certificate = certify_cost_columns(program, best)
    return MethodResult(certificate=certificate, finished=False, message="a mechanism by formula")


def _make_start(
    program: ColumnCostDesign, warm_start: WarmStartLike, deadline: Deadline
) -> FloatArray | None:
    """Return the linear costs of another solve on as many letters; raise where a mechanism is given."""
    if not isinstance(warm_start, WarmStart):
        reject_warm_start("columns are listed from the requirement: leave out the mechanism")(
            program, warm_start, deadline
        )
        return None
    slopes = warm_start.arrays.get("slopes")
    fits = slopes is not None and slopes.shape[1:] == (program.prior.size,)
    return slopes if fits else None


def _make_declared_method(
    name: str,
) -> Method[ColumnCostDesign, FloatArray | None, ColumnCostCertificate]:
    """Make the method of a solver for linear programs over the declared columns."""
    return Method(
        name,
        "chosen by name",
        partial(_solve_declared, name),
        automatic=False,
        accepts_options=True,
    )


COST_METHODS = MethodRegistry(
    ColumnCostDesign,
    (
        Method(
            "cost-cuts",
            "a cost of columns is limited: linear costs below it come in as they cut",
            _search_and_certify,
        ),
        _make_declared_method("highs-ipm"),
    ),
    _make_start,
    _certify_given,
    make_cvxpy_method=_make_declared_method,
    find_first_result=_find_first,
    replace_mechanism=replace_mechanism,
)
"""Sub-convex utilities under a limited cost of columns: the best mechanism is returned with its gap."""

register_question(COST_METHODS)
