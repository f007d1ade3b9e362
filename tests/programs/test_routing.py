"""Every row of every table of methods solves an instance, to which `solve` comes without a failure before.

A new row needs an instance here: a row that solves nothing has no reason to be there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import uniform

from pmlopt import (
    LDP,
    LIP,
    PML,
    ChiSquareBall,
    Continuous,
    CoordinateLoss,
    DistanceLoss,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    GainLeakage,
    IIDPrior,
    L1Ball,
    MaximalLeakage,
    MetricPrivacy,
    MutualInformation,
    Prior,
    RenyiPML,
    best_worst_case,
    design,
    envelope,
    envelope_design,
    leakage_distortion,
    least_leakage,
    queries,
    record_leakage,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.utility import absolute, hamming
from pmlopt.programs import Alternating, Status, failure_after_processing
from pmlopt.programs.continuous.methods import GridRefinement
from pmlopt.programs.linear import methods as linear
from pmlopt.programs.program import REGISTRY, Method, MethodRegistry
from pmlopt.programs.registry import list_registries
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import NO_DEADLINE

RNG = np.random.default_rng(0)
THREE = Prior([0.5, 0.3, 0.2])
PRIOR = Prior(RNG.dirichlet(np.full(8, 3.0)))
GAINS = ExpectedGain(RNG.random((8, 8)))
CHANNEL = RNG.dirichlet(np.ones(6), 8)
SCATTERED = np.linalg.norm(RNG.random((8, 1, 2)) - RNG.random((1, 8, 2)), axis=2)
SCATTERED = np.minimum(SCATTERED, SCATTERED.T) * (1 - np.eye(8))
ORDER = RNG.permuted(np.tile(np.arange(8), (8, 1)), axis=1) + 1
LINE = np.abs(np.subtract.outer(np.arange(8.0), np.arange(8.0)))
PLANE = np.random.default_rng(9).random((18, 2))
APART = np.linalg.norm(PLANE[:, None] - PLANE, axis=2)
BITS = IIDPrior([0.6, 0.4], 4)
PARITY = queries.ModularSum(2, 2)


def small() -> Any:
    return design(PRIOR, PML(0.5), GAINS)


def large(size: int = 32) -> Any:
    """Return a design whose matrix is beyond what the simplex takes first."""
    rng = np.random.default_rng(3)
    return design(
        Prior(rng.dirichlet(np.full(size, 3.0))), PML(0.5), ExpectedGain(rng.random((size, size)))
    )


def on_a_line() -> Any:
    return design(Prior.uniform(8), MetricPrivacy(1.0, LINE), ExpectedLoss(absolute))


def in_a_plane() -> Any:
    return design(Prior.uniform(18), MetricPrivacy(2.0, APART), ExpectedLoss(APART))


def with_a_free_letter() -> Any:
    """Return a design on points of the plane and a letter that needs no protection."""
    apart = np.pad(APART, (0, 1), constant_values=np.inf)
    apart[-1, -1] = 0.0
    loss = np.pad(APART, (0, 1), constant_values=0.5)
    return design(Prior.uniform(19), MetricPrivacy(2.0, apart), ExpectedLoss(loss))


def of_two_kinds() -> Any:
    """Return a design on common and rare letters that are otherwise alike."""
    return design(
        Prior.from_counts([3] * 75 + [1] * 75, range(150)), PML(0.5), ExpectedLoss(hamming)
    )


def with_many_rows() -> Any:
    """Return a linear program that is not in blocks: more constraints were added than there are letters."""
    rng = np.random.default_rng(4)
    program = design(PRIOR, PML(0.5), ExpectedGain(rng.random((8, 120))))
    return program.with_constraints(cap=program.mechanism[:, :2] <= 0.9)


def with_a_cone() -> Any:
    program = small()
    return program.with_constraints(round=cp.norm(program.mechanism, "fro") <= 100)


@dataclass(frozen=True)
class Instance:
    """A program that a row solves.

    Attributes:
        make: the program.
        start: the warm start of a person.
        tolerance: where the ordinary one takes many seconds.
        unproved: whether the row is a method of the literature that proves no bound.
    """

    make: Callable[[], Any]
    start: FloatArray | None = None
    tolerance: float | None = None
    unproved: bool = False


INSTANCES: dict[tuple[str, str], Instance] = {
    ("LinearDesign", "pair-ipm"): Instance(with_a_free_letter),
    ("LinearDesign", "closed-form"): Instance(on_a_line),
    ("LinearDesign", "highs-warm"): Instance(small, np.full((8, 8), 1 / 8)),
    ("LinearDesign", "highs-small"): Instance(small),
    ("LinearDesign", "color-refinement"): Instance(of_two_kinds),
    ("LinearDesign", "output-generation"): Instance(lambda: large(500)),
    ("LinearDesign", "block-ipm"): Instance(large),
    ("LinearDesign", "clarabel"): Instance(with_a_cone),
    ("LinearDesign", "clarabel-sharp"): Instance(small),
    ("LinearDesign", "closed-form-by-name"): Instance(on_a_line),
    ("LinearDesign", "color-refinement-by-name"): Instance(of_two_kinds),
    ("LinearDesign", "pair-ipm-by-name"): Instance(in_a_plane),
    ("LinearDesign", "output-generation-by-name"): Instance(small),
    ("LinearDesign", "block-ipm-by-name"): Instance(small),
    ("LinearDesign", "highs-by-name"): Instance(small),
    ("LinearDesign", "highs-ipm-by-name"): Instance(small),
    ("SymmetricDesign", "highs-few-orbits"): Instance(
        lambda: design(BITS, PML(0.5), CoordinateLoss(hamming))
    ),
    ("SymmetricDesign", "highs-ipm-many-orbits"): Instance(
        lambda: design(BITS, PML(0.5), CoordinateLoss(hamming))
    ),
    ("SymmetricDesign", "clarabel"): Instance(
        lambda: design(BITS, RenyiPML(2.0, 0.5), CoordinateLoss(hamming))
    ),
    ("SymmetricDesign", "highs-by-name"): Instance(
        lambda: design(BITS, PML(0.5), CoordinateLoss(hamming))
    ),
    ("SymmetricDesign", "highs-ipm-by-name"): Instance(
        lambda: design(BITS, PML(0.5), CoordinateLoss(hamming))
    ),
    ("ColumnDesign", "prior-cuts"): Instance(
        lambda: design(THREE, PML(0.5, over=ChiSquareBall(THREE, 0.05)), MutualInformation())
    ),
    ("ColumnDesign", "highs"): Instance(lambda: design(PRIOR, PML(0.5), MutualInformation())),
    ("ColumnDesign", "column-generation"): Instance(
        lambda: design(Prior.uniform(24), PML(0.5), MutualInformation())
    ),
    ("ColumnDesign", "highs-ipm"): Instance(lambda: design(PRIOR, PML(0.5), MutualInformation())),
    ("ColumnCostDesign", "cost-cuts"): Instance(
        lambda: design(PRIOR, MaximalLeakage(0.3), MutualInformation())
    ),
    ("ColumnCostDesign", "highs-ipm"): Instance(
        lambda: design(PRIOR, MaximalLeakage(0.3), MutualInformation())
    ),
    ("EstimationDesign", "interior-point"): Instance(
        lambda: design([0.4, 0.3, 0.2, 0.1], PML(1.0), EstimationError())
    ),
    ("ContinuousDesign", "refinement"): Instance(
        lambda: design(Continuous(uniform(0, 1)), LDP(1.0), DistanceLoss()), tolerance=0.02
    ),
    ("LeastLeakage", "inversion-large"): Instance(
        lambda: least_leakage(large(21).prior, large(21).utility, expected=0.79)
    ),
    ("LeastEpsilon", "level-search"): Instance(lambda: least_leakage(PRIOR, LDP, GAINS, 0.7)),
    ("LeastLeakage", "level-search"): Instance(lambda: least_leakage(PRIOR, GAINS, expected=0.79)),
    ("LeastLeakage", "inversion-by-name"): Instance(
        lambda: least_leakage(PRIOR, GAINS, expected=0.79)
    ),
    ("SymmetricLeastLeakage", "level-search"): Instance(
        lambda: least_leakage(BITS, CoordinateLoss(hamming), expected=0.5)
    ),
    ("BestWorstCase", "threshold-search"): Instance(lambda: best_worst_case(PRIOR, ORDER, 1.0)),
    ("EnvelopeProgram", "ratio-search"): Instance(lambda: envelope(PRIOR, CHANNEL, 0.3)),
    ("ProcessedFailureProgram", "one-ratio"): Instance(
        lambda: failure_after_processing(PRIOR, CHANNEL, 0.3)
    ),
    ("EnvelopeDesign", "branch-and-bound"): Instance(
        lambda: envelope_design([0.8, 0.2], 0.5, 0.05, ExpectedLoss([[0, 1], [1, 0]]))
    ),
    ("RecordLeakage", "branch-and-bound"): Instance(
        lambda: record_leakage(PARITY, queries.laplace(PARITY, 1.0), 1.0)
    ),
    ("RecordLeakage", "alternating"): Instance(
        lambda: record_leakage(PARITY, queries.laplace(PARITY, 1.0), 0.3), unproved=True
    ),
    ("TradeoffProgram", "cutting-planes"): Instance(lambda: leakage_distortion(PARITY, 0.1, 1.386)),
    ("TradeoffProgram", "penalty"): Instance(
        lambda: leakage_distortion(PARITY, 0.1, 1.386), unproved=True
    ),
}
"""By the type of the program and the id of the row."""

FALLBACKS = {("LinearDesign", "clarabel-sharp"), ("SymmetricDesign", "clarabel")}
"""Rows of which an earlier one takes every program: `auto` comes to them where its solver fails."""

ROWS = {
    (question.program.__name__, row.id): (question, row)
    for question in list_registries()
    for row in question.methods
}


@pytest.mark.parametrize(
    ("method", "make"),
    [
        ("clarabel", with_many_rows),
        ("highs-small", lambda: design(PRIOR, MetricPrivacy(1.5, SCATTERED), GAINS)),
        ("highs-small", lambda: design(PRIOR, GainLeakage(0.4, np.eye(8) + 0.1), GAINS)),
        ("highs-small", lambda: design(PRIOR, MaximalLeakage(0.4), GAINS)),
        ("highs-small", lambda: design(PRIOR, PML(0.4, over=L1Ball(PRIOR, 0.1)), GAINS)),
    ],
    ids=[
        "more rows than letters",
        "pairs of letters",
        "ratios with common sums",
        "a total",
        "a set of priors",
    ],
)
def test_a_row_that_solves_in_several_ways_has_an_instance_of_each(
    method: str, make: Callable[[], Any]
) -> None:
    """What is built by index arithmetic has the optimum of the program as it is declared in cvxpy."""
    result, declared = solve(make()), make()
    assert (result.method, result.attempts) == (method, ())
    assert result.value == pytest.approx(declared.problem.solve(solver="CLARABEL"), abs=1e-6)


def test_each_row_has_an_instance_and_an_id_of_its_own() -> None:
    assert len(ROWS) == sum(len(question.methods) for question in list_registries())
    missing = ROWS.keys() - INSTANCES.keys()
    assert not missing, (
        f"rows without an instance: {missing}. Add a program that each of them solves"
    )
    assert not INSTANCES.keys() - ROWS.keys()
    assert all(row.id.startswith(row.name) for _, row in ROWS.values())


def test_a_row_without_an_instance_is_noticed() -> None:
    question = linear.METHODS
    more = replace(
        question, methods=(*question.methods, Method("guess", "a test", question.methods[0].run))
    )
    assert {(more.program.__name__, row.id) for row in more.methods} - INSTANCES.keys() == {
        ("LinearDesign", "guess")
    }


def reachable(
    question: MethodRegistry[Any, Any, Any], row: Method[Any, Any, Any]
) -> MethodRegistry[Any, Any, Any]:
    """Return a question without the rows before a fallback, as where their solvers fail."""
    rows = question.methods
    return replace(question, methods=rows[rows.index(row) :])


@pytest.mark.parametrize("place", ROWS, ids=" ".join)
def test_a_row_solves_its_instance_without_an_attempt_before(
    place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (question, row), instance = ROWS[place], INSTANCES[place]
    program = instance.make()
    if place in FALLBACKS:
        start = question.make_start(program, instance.start, NO_DEADLINE)
        applying = [one.id for one in question.list_automatic(program, start)]
        monkeypatch.setitem(REGISTRY, question.program, reachable(question, row))
        assert row.id in applying[1:] or place in FEW_ORBITS
    if place in FEW_ORBITS:
        monkeypatch.setattr(linear, "MAX_SIMPLEX_ORBITS", 1)
    result = solve(
        program, "auto" if row.automatic else row.name, instance.start, tolerance=instance.tolerance
    )
    assert result.attempts == ()
    assert (result.method, result.solver) == (row.id, row.name)
    assert result.status is (Status.UNPROVED if instance.unproved else Status.OPTIMAL)
    assert result.certificate.verify()


FEW_ORBITS = {("SymmetricDesign", "highs-ipm-many-orbits")}
"""Rows for so many orbits that an instance takes minutes: here few count as many."""


def test_a_few_bins_and_boxes_bracket_the_loss_of_a_continuous_secret() -> None:
    program = design(Continuous(uniform(0, 1)), LDP(1.0), DistanceLoss())
    result = solve(program, GridRefinement(max_bins=8, boxes=64))
    assert (result.method, result.attempts) == ("refinement", ())
    assert result.certificate.verify()
    assert 0 < result.bound <= result.value <= 0.25  # the loss of the constant at the median


def test_one_start_of_alternating_optimisation_is_within_the_certified_bound() -> None:
    program = record_leakage(PARITY, queries.laplace(PARITY, 1.0), 0.0)
    found = solve(program, Alternating(restarts=1))
    assert (found.method, found.attempts) == ("alternating", ())
    assert 0 < found.value <= solve(program).bound


@pytest.mark.parametrize(
    "privacy",
    [LDP(0.8), LIP(0.5, 0.8), PML(0.8), PML(0.8, over=L1Ball(PRIOR, float(PRIOR.pmf.min())))],
    ids=["ldp", "lip", "pml", "ball"],
)
def test_the_scalars_of_a_start_bound_its_columns(privacy: Any) -> None:
    """A mechanism within the requirement is between the ends that the simplex is started with."""
    program = design(PRIOR, privacy, GAINS)
    best = solve(program).mechanism.matrix
    task, matrix = (
        program.build_block_lp(),
        (best + PRIOR.pmf @ best) / 2,
    )  # no entry of an output that occurs is 0
    assert task is not None
    assert task.block.is_banded  # others do not come to this simplex
    scalars = highs._compute_scalars(task, matrix)
    low, high = task.block.lower @ scalars, task.block.upper @ scalars
    assert (low <= matrix + 1e-9).all()
    assert (matrix <= high + 1e-9).all()
    if task.block.weights is None:  # the ends are those of the column itself
        assert high == pytest.approx(matrix.max(axis=0), abs=1e-12)
    if task.block.has_floor:
        assert low == pytest.approx(matrix.min(axis=0), abs=1e-12)
