"""Builders of trade-offs: against all priors of enough entropy, against given priors, and penalised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray, check_in_interval, check_nonnegative
from pmlopt.errors import InfeasibleError, PriorError, PrivacyError, ProgramError, UtilityError
from pmlopt.model.queries import DatasetOrbits, Query, orbits
from pmlopt.model.queries.channel import compute_loss_table
from pmlopt.model.queries.query import check_query
from pmlopt.model.queries.symmetry import check_dataset_law
from pmlopt.programs.program import CvxpyModel, build_problem
from pmlopt.programs.record_leakage.adversary import BoundedAdversary, check_entropy
from pmlopt.programs.tradeoff.cutting_planes import TradeoffSearch, search_tradeoff
from pmlopt.programs.tradeoff.grouped_rows import WorstCasePrior, list_binding_priors
from pmlopt.programs.tradeoff.program import (
    TradeoffProgram,
    build_tradeoff_model,
    express_informations,
)
from pmlopt.programs.tradeoff.proof import LOSS_RTOL, Sense, TradeoffLosses, make_tradeoff_losses
from pmlopt.programs.wu2026entropy.alternating import compute_joint_law
from pmlopt.solvers.solver_result import NO_DEADLINE

PriorOfDatasets: TypeAlias = ArrayLike | WorstCasePrior
"""The law of the dataset, (k_1, ..., k_n) or (|X|,), or that of a record and the class (`binding_priors`)."""


def leakage_distortion(
    query: Query,
    distortion: float,
    entropy: float,
    *,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
) -> TradeoffProgram:
    """Build the problem of least leakage per record with expected distortion at most D.

    `min_q max_i max_{H(X) >= b} I(X_i; Y)` subject to `E_{p_0} d(f(X), Y) <= D`, which is convex in the
    mechanism.

    Args:
        query: f.
        distortion: D, at least the least that is possible.
        entropy: b in nats, from 0 to log |X|.
        loss: (T, M) d(f, y), a row for each value of the query; |y - f| over the query's values if left out.
        law: the true law p_0 of the dataset, (k_1, ..., k_n); uniform if left out.

    Raises:
        InfeasibleError: no mechanism has so small a distortion.
        PrivacyError, UtilityError, QueryError, PriorError: an argument cannot be meant.

    Source: [wu2026entropy, Problem 2 (Definition 2.2)].

    Examples:
        >>> from pmlopt import queries, solve
        >>> found = solve(leakage_distortion(queries.ModularSum(3, 2), 0.2, 1.5))
        >>> round(found.value, 5), found.mechanism.matrix.round(4).tolist()
        (0.17332, [[0.8, 0.2], [0.2, 0.8]])
    """
    limit = check_in_interval(distortion, "[0, inf)", "the distortion D", UtilityError)
    program = _make_program(query, loss, law, entropy, "leakage", limit)
    # up to rounding the least distortion is feasible
    if limit < program.min_distortion * (1 - LOSS_RTOL):
        raise InfeasibleError(
            f"no mechanism has an expected distortion of {limit!r} or less: the least is "
            f"{program.min_distortion!r}"
        )
    return program


def distortion_leakage(
    query: Query,
    leakage: float,
    entropy: float,
    *,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
) -> TradeoffProgram:
    """Build the problem of least expected distortion with leakage at most L for every record.

    As `leakage_distortion`, with both sides exchanged.

    Args:
        query: f.
        leakage: L in nats, at least 0.
        entropy: b in nats, from 0 to log |X|.
        loss: (T, M) d(f, y), a row for each value of the query; |y - f| over the query's values if left out.
        law: the true law p_0 of the dataset, (k_1, ..., k_n); uniform if left out.

    Raises:
        PrivacyError, UtilityError, QueryError, PriorError: an argument cannot be meant.

    Source: [wu2026entropy, Problem 3 (Definition 2.3)].

    Examples:
        >>> import math
        >>> from pmlopt import queries, solve
        >>> capacity = math.log(2) + 0.2 * math.log(0.2) + 0.8 * math.log(0.8)
        >>> round(solve(distortion_leakage(queries.ModularSum(2, 2), capacity, 0.0)).value, 5)
        0.2
    """
    limit = check_nonnegative(leakage, "the leakage L", PrivacyError)
    return _make_program(query, loss, law, entropy, "distortion", limit)


def tradeoff_program(
    query: Query,
    priors: Iterable[PriorOfDatasets],
    *,
    distortion: float | None = None,
    leakage: float | None = None,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
) -> CvxpyModel:
    """Build the trade-off problem against finitely many given priors, as a convex cvxpy problem.

    With `distortion` D: minimise t subject to `I(X_i; Y) <= t` for every record and prior, and `E[d] <= D`.
    With `leakage` L: minimise `E[d]` subject to `I(X_i; Y) <= L`. The mechanism has a row for each class of
    `queries.orbits(query, law)`. The limit is the parameter "limit", and the problem is DPP in it.

    Args:
        query: f.
        priors: at least one, each the law of the dataset, (k_1, ..., k_n) or (|X|,), seen from all records;
            or one of `binding_priors`.
        distortion: D, for Problem 2.
        leakage: L in nats, for Problem 3. Exactly one of both is given.
        loss: (T, M) d(f, y), a row for each value of the query; |y - f| over the query's values if left out.
        law: the true law p_0 of the dataset; uniform if left out.

    Returns:
        The problem, the variables "mechanism", (K, M), and in Problem 2 "leakage", and its constraints.

    Raises:
        PriorError: a prior does not fit the query, or there is none.
        ProgramError: both limits, or none, are given.
        PrivacyError, UtilityError, QueryError: an argument cannot be meant.

    Source: [wu2026entropy, (21) and (26)] for finitely many priors.

    Examples:
        >>> from pmlopt import queries
        >>> declared = tradeoff_program(queries.ModularSum(1, 2), [[0.5, 0.5]], distortion=0.1)
        >>> round(float(declared.problem.solve(solver="CLARABEL")), 5)  # log 2 - h(0.1)
        0.36806
        >>> declared.problem.param_dict["limit"].value = 0.2  # solved again without compiling anew
        >>> round(float(declared.problem.solve(solver="CLARABEL")), 5)  # log 2 - h(0.2)
        0.19274
    """
    sense, limit = _get_sense(distortion, leakage)
    question = _TradeoffInputs.from_arguments(query, loss, law, sense, limit)
    # a parameter of known sign: DPP lets the limit change without compiling anew
    parameter = cp.Parameter(nonneg=True, name="limit", value=limit)
    return build_tradeoff_model(
        question.unrestricted_losses, question.list_joint_laws(priors), sense, parameter
    )


def penalty_program(
    query: Query,
    priors: Iterable[PriorOfDatasets],
    weight: float,
    *,
    distortion: float | None = None,
    leakage: float | None = None,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
) -> CvxpyModel:
    """Build the penalised trade-off problem against finitely many given priors, in cvxpy.

    With `distortion` D: minimise `max I(X_i; Y) + lambda softplus(E[d] - D)^2`; with `leakage` L: minimise
    `E[d] + lambda softplus(max I(X_i; Y) - L)^2`. `softplus(z)^2 = log(1 + e^z)^2` is positive on the
    feasible side too: the penalty is not exact, and its minimiser is biased inwards. lambda is the parameter
    "weight", and the problem is DPP in it.

    Args:
        query: f.
        priors: at least one, as in `tradeoff_program`.
        weight: lambda, at least 0.
        distortion: D, for Problem 2.
        leakage: L in nats, for Problem 3. Exactly one of both is given.
        loss: (T, M) d(f, y); |y - f| over the query's values if left out.
        law: the true law p_0 of the dataset; uniform if left out.

    Returns:
        The problem, the variable "mechanism", (K, M), and the constraints.

    Raises:
        PriorError, ProgramError, PrivacyError, UtilityError, QueryError: as in `tradeoff_program`.

    Source: [wu2026entropy, (23) and (27)].

    Examples:
        >>> from pmlopt import queries
        >>> declared = penalty_program(queries.ModularSum(1, 2), [[0.5, 0.5]], 1.0, distortion=0.1)
        >>> declared.problem.is_dcp(dpp=True)
        True
        >>> light = declared.problem.solve(solver="CLARABEL")
        >>> declared.problem.param_dict["weight"].value = 100.0
        >>> bool(declared.problem.solve(solver="CLARABEL") > light)
        True
    """
    sense, limit = _get_sense(distortion, leakage)
    question = _TradeoffInputs.from_arguments(query, loss, law, sense, limit)
    factor = check_nonnegative(weight, "the weight of the penalty", ProgramError)
    # softplus squared times a weight is convex only where the weight is at least 0
    parameter = cp.Parameter(nonneg=True, name="weight", value=factor)
    return build_penalty_model(
        question.unrestricted_losses, question.list_joint_laws(priors), sense, limit, parameter
    )


def build_penalty_model(
    tradeoff: TradeoffLosses,
    joints: list[FloatArray],
    sense: Sense,
    limit: float,
    weight: float | cp.Parameter,
) -> CvxpyModel:
    """Build the cvxpy model of the penalised problem from joint laws of record and class."""
    matrix = cp.Variable(tradeoff.losses.shape, nonneg=True, name="mechanism")
    leaked = cp.max(express_informations(matrix, joints))
    spent = cp.sum(cp.multiply(tradeoff.losses, matrix))
    aim, bounded = (leaked, spent) if sense == "leakage" else (spent, leaked)
    constraints = {"rows": cp.sum(matrix, axis=1) == 1}
    # at the least distortion some entries have to vanish: as constraints, not as penalties
    if not tradeoff.allowed.all():
        constraints["support"] = matrix[~tradeoff.allowed] == 0
    objective = cp.Minimize(aim + weight * cp.square(cp.logistic(bounded - limit)))
    return CvxpyModel(build_problem(objective, constraints), {"mechanism": matrix}, constraints)


def binding_priors(program: TradeoffProgram) -> tuple[WorstCasePrior, ...]:
    """Return the active (binding) priors at a trade-off's optimum, as joint laws of record and class.

    They are those whose multipliers in the proof of the bound are not negligible: against them only the
    optimum is that of the program, up to its tolerance. Where nothing binds, it is the uniform dataset, seen
    from one record of each kind.

    Args:
        program: of `leakage_distortion` or `distortion_leakage`. It is solved.
    """
    state = TradeoffSearch(program, program.tolerance * program.scale, 0, NO_DEADLINE)
    search_tradeoff(state, None)
    return tuple(list_binding_priors(state.proof)) or _uniform_priors(program.orbits.query)


def _uniform_priors(classes: Query) -> tuple[WorstCasePrior, ...]:
    """Return the uniform dataset law as a joint law of record and class, for each kind of record."""
    rows = np.eye(len(classes.values))
    size = classes.log_size
    return tuple(
        WorstCasePrior(
            record, BoundedAdversary(rows, classes.log_counts(record), size, size).uniform_law
        )
        for record in classes.kinds
    )


@dataclass(frozen=True, eq=False)
class _TradeoffInputs:
    """The validated inputs of a trade-off: dataset classes, outputs and losses."""

    query: Query
    orbits: DatasetOrbits
    outputs: tuple[Any, ...]
    tradeoff: TradeoffLosses

    @classmethod
    def from_arguments(
        cls, query: Query, loss: ArrayLike | None, law: ArrayLike | None, sense: Sense, limit: float
    ) -> _TradeoffInputs:
        """Validate the user's arguments, and compute the dataset classes."""
        check_query(query)
        table, outputs = compute_loss_table(query, loss)
        classes = orbits(query, law)
        # (K, M): a class of datasets costs its mass times the loss of its value
        losses = classes.masses[:, None] * table[classes.values]
        return cls(query, classes, outputs, make_tradeoff_losses(losses, sense, limit))

    @property
    def unrestricted_losses(self) -> TradeoffLosses:
        """Return the losses with all mechanism entries allowed, except at the least distortion."""
        return TradeoffLosses(self.tradeoff.losses, np.ones_like(self.tradeoff.allowed))

    @cached_property
    def class_table(self) -> Any:
        """Return the (k_1, ..., k_n) array of each dataset's class."""
        return self.orbits.query.table()

    def list_joint_laws(self, priors: Iterable[PriorOfDatasets]) -> list[FloatArray]:
        """Convert each prior to the joint laws (A, K) of each record and the class.

        Raises:
            PriorError: a prior does not fit the query, or there is none.
        """
        found: list[FloatArray] = []
        for prior in priors:
            if isinstance(prior, WorstCasePrior):
                found.append(self._check_prior(prior))
                continue
            masses = check_dataset_law(self.query, prior)
            found += [
                compute_joint_law(masses, record, self.class_table) for record in range(masses.ndim)
            ]
        if not found:
            raise PriorError("there is no prior: give at least one law of the dataset")
        return found

    def _check_prior(self, prior: WorstCasePrior) -> FloatArray:
        """Validate a joint law of a record and the class, and return it."""
        classes = self.orbits.query
        if (
            prior.record not in classes.kinds
            or prior.joint.shape != classes.log_counts(prior.record).shape
        ):
            raise PriorError(
                f"a prior of record {prior.record} with the shape {prior.joint.shape} does not fit the "
                "query: take the binding priors of a program with the same query and law"
            )
        return prior.joint


def _get_sense(distortion: float | None, leakage: float | None) -> tuple[Sense, float]:
    """Return which quantity is minimised, and the limit on the other."""
    if (distortion is None) == (leakage is None):
        raise ProgramError(
            "give exactly one limit: `distortion` for Problem 2, or `leakage` for Problem 3"
        )
    if distortion is not None:
        return "leakage", check_nonnegative(distortion, "the distortion D", UtilityError)
    return "distortion", check_nonnegative(leakage or 0.0, "the leakage L", PrivacyError)


def _make_program(
    query: Query,
    loss: ArrayLike | None,
    law: ArrayLike | None,
    entropy: float,
    sense: Sense,
    limit: float,
) -> TradeoffProgram:
    """Build the trade-off program from validated user arguments."""
    check_query(query)
    least = check_entropy(query, entropy)
    question = _TradeoffInputs.from_arguments(query, loss, law, sense, limit)
    parts: dict[str, Any] = {
        "query": query,
        "orbits": question.orbits,
        "outputs": question.outputs,
        "tradeoff": question.tradeoff,
        "entropy": least,
        "sense": sense,
        "limit": limit,
    }
    return TradeoffProgram(build_model=partial(_build_model_against_binding_priors, parts), **parts)


def _build_model_against_binding_priors(parts: dict[str, Any]) -> CvxpyModel:
    """Build the convex model with the active priors at the optimum."""
    program = TradeoffProgram(
        build_model=partial(_build_model_against_binding_priors, parts), **parts
    )
    joints = [prior.joint for prior in binding_priors(program)]
    return build_tradeoff_model(program.tradeoff, joints, program.sense, program.limit)
