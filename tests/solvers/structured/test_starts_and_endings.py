"""What starts and ends a solve in column blocks: first points, points in other precisions, idle steps."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.blocks import wide
from oracles.designs import FloatArray, linear_program, random_prior

from pmlopt import LDP, PML, ExpectedGain, L1Ball, MinimumMass, Prior, design, solve
from pmlopt.model.privacy import Requirement
from pmlopt.programs import Status
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions
from pmlopt.solvers.structured import interior_point
from pmlopt.solvers.structured.block_program import BlockLP, SideConstraints
from pmlopt.solvers.structured.factors import get_lapack
from pmlopt.solvers.structured.interior_point import GapGoal, follow_central_path
from pmlopt.solvers.structured.iterates import Iterate, build_start, to_double_point
from pmlopt.solvers.structured.newton import NewtonSystem, NewtonSystemByOutputs

RANDOM = np.random.default_rng(5)
PRIOR = Prior(random_prior(RANDOM, 5))
COSTS = RANDOM.normal(size=(5, 4))
BANDS: tuple[Requirement, ...] = (LDP(0.8), PML(0.8), PML(0.8, MinimumMass(5, 0.05)))


def task_of(privacy: Requirement) -> BlockLP:
    task = design(PRIOR, privacy, ExpectedGain(-COSTS)).build_block_lp()
    assert task is not None
    return task


def bordered() -> BlockLP:
    """Two constraints, which the uniform mechanism meets by .4 and breaks by .3."""
    matrices = np.random.default_rng(6).normal(size=(2, 5, 4))
    uniform = matrices.mean(axis=2).sum(axis=1)
    border = SideConstraints.from_matrices(matrices, uniform + np.array([-0.4, 0.3]))
    return replace(task_of(PML(0.8)), border=border)


# ---------------------------------------------------------------- first points


@pytest.mark.parametrize("privacy", BANDS)
def test_a_start_has_multipliers_of_half_of_the_largest_reduced_cost(privacy: Requirement) -> None:
    task = task_of(privacy)
    start = build_start(task)
    reduced = task.costs - task.costs.mean(axis=1, keepdims=True)
    assert start.duals["above"] - start.duals["below"] == pytest.approx(reduced)
    less = np.minimum(start.duals["above"], start.duals["below"])
    assert less == pytest.approx(np.full((5, 4), np.abs(reduced).max() / 2))


def test_slacks_of_constraints_are_what_the_uniform_mechanism_has_to_spare_or_a_tenth() -> None:
    task = bordered()
    start = build_start(task)
    assert start.slacks["coupled"] == pytest.approx([0.4, 0.1])
    # and each has a multiplier that counts in the reduced costs
    assert task.border is not None
    price = np.tensordot(start.duals["coupled"], task.border.rows.toarray(), 1).reshape(5, 4)
    reduced = task.costs - task.costs.mean(axis=1, keepdims=True) - price
    assert start.duals["above"] - start.duals["below"] == pytest.approx(reduced)


@pytest.mark.parametrize("kind", ["band", "wide ball", "bounds on both sides", "approximate"])
def test_in_double_precision_slacks_are_differences_and_none_has_fallen(kind: str) -> None:
    random = np.random.default_rng(8)
    task = task_of(LDP(0.8) if kind == "band" else wide(kind, PRIOR, random, 1.0))
    at = build_start(task)
    for part in at.slacks.values():
        part *= 1 + 1e-3 * random.random(part.shape)
    before = {name: part.copy() for name, part in at.slacks.items()}
    after, block = to_double_point(task, at), task.block
    matrix, scalars = after.mechanism, after.scalars
    assert after.low == pytest.approx(block.lower @ scalars)
    assert after.slacks["above"] == pytest.approx(before["above"])
    if block.has_cap:
        assert after.slacks["below"] == pytest.approx(block.upper @ scalars - matrix)
        more = after.slacks["below"] - before["below"]
        assert more.min(axis=0) == pytest.approx(np.zeros(4), abs=1e-12)
    if block.hinge is not None:
        over = block.hinge.sign * (matrix - block.hinge.compute_thresholds(scalars))
        assert after.slacks["cut"] == pytest.approx(after.slacks["excess"] - over)
        raised = [after.slacks[name] - before[name] for name in ("excess", "cut")]
        assert np.minimum(*raised) == pytest.approx(np.zeros((5, 4)), abs=1e-12)


# ---------------------------------------------------------------- steps and endings


def idle_steps(monkeypatch: pytest.MonkeyPatch, length: float) -> None:
    """Steps of a length that lead nowhere."""
    monkeypatch.setattr(interior_point, "build_newton_system", lambda task, at: at)
    monkeypatch.setattr(interior_point, "_is_limited_by_rounding", lambda newton, last: False)
    monkeypatch.setattr(interior_point, "_step_once", lambda at: (at, length))


def test_short_steps_end_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    idle_steps(monkeypatch, 5e-4)
    task = task_of(PML(0.8))
    ending = follow_central_path(task, build_start(task), GapGoal(lambda point: 1.0, 1e-9))
    assert (ending.iterations, ending.message) == (5, "nothing improves")
    _, done = interior_point._iterate_in_single_precision(
        task, build_start(task), lambda iteration, point: False
    )
    assert done == 2


def test_far_from_the_end_every_twenty_fifth_point_is_certified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    idle_steps(monkeypatch, 1.0)
    counts: list[int] = []
    steps: list[int] = []

    def step(at: Iterate) -> tuple[Iterate, float]:
        steps.append(1)
        return at, 1.0

    monkeypatch.setattr(interior_point, "_step_once", step)

    def certify(point: Iterate) -> float:
        counts.append(len(steps))
        return 1.0

    task = task_of(PML(0.8))
    ending = follow_central_path(task, build_start(task), GapGoal(certify, 1e-9))
    assert ending.message == "iteration limit"
    assert counts == [*range(24, 200, 25), 200]


def test_a_step_aims_at_the_same_product_everywhere() -> None:
    """The mean of the pairs that there are, by the fourth power of what a whole step leaves of the gap."""
    allowed = np.ones((5, 4), dtype=bool)
    allowed[[0, 2], [1, 3]] = False
    task = replace(task_of(PML(0.8)), allowed=allowed)
    at = build_start(task)
    system = NewtonSystem(task, at)
    steps: list[Any] = []

    def compute_step(wanted: dict[str, FloatArray] | None = None) -> Iterate:
        found = NewtonSystem.compute_step(system, wanted)
        steps.append((wanted, found))
        return found

    spied: Any = SimpleNamespace(at=at, task=task, compute_step=compute_step)
    aim, wanted = interior_point._predict_products(spied)
    ((_, first),) = steps
    left = at.duality_gap_after(first, *at.max_step_lengths(first)) / at.duality_gap
    target = at.duality_gap / (2 * (20 - 2)) * left**4
    assert aim == pytest.approx(target)
    for name, slack in at.slacks.items():
        product = slack * at.duals[name] + first.slacks[name] * first.duals[name]
        assert (wanted[name] + product)[allowed] == pytest.approx(np.full(18, target))


def test_a_correction_wants_products_within_a_tenth_and_ten_times_the_target() -> None:
    """At the end of the longer step; those that are within keep what was wanted of them."""
    task = task_of(PML(0.8))
    system = NewtonSystem(task, build_start(task))
    target, wanted = interior_point._predict_products(system)
    step = system.compute_step(wanted)
    lengths = (0.2, 0.4)
    centred = interior_point._center_products(system.at, step, lengths, target, wanted)
    changed = 0
    for name, slack in system.at.slacks.items():
        end = (slack + 0.5 * step.slacks[name]) * (system.at.duals[name] + 0.7 * step.duals[name])
        change = centred[name] - wanted[name]
        inside = (end >= 0.1 * target) & (end <= 10 * target)
        assert (change[inside] == 0).all()
        assert (change[end < 0.1 * target] > 0).all()
        assert (change[end > 10 * target] < 0).all()
        assert change.min() >= -10 * target * (1 + 1e-9)  # the difference is rounded
        changed += int((~inside).sum())
    assert changed  # else the law says nothing


@pytest.mark.parametrize("kind", ["hull", "maximal leakage"])
def test_with_constraints_both_orders_of_elimination_make_the_same_step(kind: str) -> None:
    task = task_of(wide(kind, PRIOR, np.random.default_rng(7), 0.9))
    task = replace(task, border=bordered().border)
    at = build_start(task)
    steps = [order(task, at).compute_step() for order in (NewtonSystem, NewtonSystemByOutputs)]
    for name in ("scalars", "means", "rows"):
        one, other = (getattr(step, name) for step in steps)
        assert one == pytest.approx(other, rel=1e-6, abs=1e-8)
    for name in at.slacks:
        assert steps[0].slacks[name] == pytest.approx(steps[1].slacks[name], rel=1e-6, abs=1e-8)


def test_refinement_mends_a_system_that_is_solved_to_a_tenth() -> None:
    task = task_of(PML(0.8))
    system = NewtonSystem(task, build_start(task))
    exact = system.compute_step()
    lower, unit = system.factor
    system.factor = 1.05 * lower, unit
    mended = system.compute_step()
    for name in ("scalars", "means", "rows"):
        one, other = getattr(exact, name), getattr(mended, name)
        assert other == pytest.approx(one, abs=1e-3 * np.abs(one).max())


def test_a_singular_system_is_shifted_until_it_has_a_factor() -> None:
    system: Any = SimpleNamespace(precision=get_lapack(False))
    scale = np.array([1.0, 2.0, 5.0])
    total = np.asfortranarray(np.outer(scale, scale))
    factor, unit = NewtonSystem._factor_scaled(system, total.copy(order="F"))
    lower = np.tril(factor)
    assert unit == pytest.approx(1 / scale)
    assert lower @ lower.T == pytest.approx(np.ones((3, 3)), abs=1e-8)


# ---------------------------------------------------------------- the simplex


@pytest.mark.parametrize("privacy", BANDS)
def test_the_simplex_starts_inside_and_ends_at_the_optimum(
    privacy: Requirement,
) -> None:
    """By a dense linear program over the matrix: the requirement on each column, and sums of one."""
    task = task_of(privacy)
    found = highs.solve_by_simplex(task, MethodOptions(deadline=NO_DEADLINE, tolerance=1e-9))
    assert found.point is not None
    keep, n, m = np.exp(-0.8), 5, 4
    rows = []
    for y, x, z in np.ndindex(m, n, n):
        row = np.zeros((n, m))
        if isinstance(privacy, LDP):
            row[z, y] -= 1.0
        elif privacy == BANDS[1]:
            row[:, y] -= PRIOR.pmf
        else:  # the least mean has the mass that is left at one letter
            row[:, y] -= 0.05
            row[z, y] -= 1 - n * 0.05
        row[x, y] += keep
        rows.append(row.ravel())
    sums = np.kron(np.eye(n), np.ones((1, m)))
    best = linear_program(
        task.costs.ravel(), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(n)
    )
    assert float((task.costs * found.point.matrix).sum()) == pytest.approx(best.fun, abs=1e-8)
    # a mechanism to start from is a point of the model
    start: list[FloatArray] = []
    solver: Any = SimpleNamespace(setSolution=lambda one: start.append(np.array(one.col_value)))
    assert highs._pass_start(solver, task, 0.7 / m + 0.3 * found.point.matrix, None)
    model = highs.build_block_model(task)
    activity = np.zeros(model.shape[0])
    for column, value in enumerate(start[0]):
        entries = slice(model.starts[column], model.starts[column + 1])
        activity[model.rows[entries]] += value * model.values[entries]
    assert (start[0] >= -1e-9).all()
    assert (activity >= model.row_lower - 1e-9).all()
    assert (activity <= model.row_upper + 1e-9).all()


# ---------------------------------------------------------------- used columns


def large_design(count: int) -> Any:
    random = np.random.default_rng(4)
    prior = Prior(random.dirichlet(np.full(count, 5.0)))
    return design(prior, LDP(0.8), ExpectedGain(random.random((count, count))))


def count_columns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many columns each run of the iteration has."""
    counts: list[int] = []

    def follow(task: BlockLP, *arguments: Any) -> Any:
        counts.append(task.costs.shape[1])
        return follow_central_path(task, *arguments)

    monkeypatch.setattr(interior_point, "follow_central_path", follow)
    return counts


def test_columns_without_mass_after_a_few_steps_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interior_point, "MIN_SINGLE_PRECISION_ENTRIES", 0)
    counts, program = count_columns(monkeypatch), large_design(60)
    result = solve(program, "block-ipm")
    assert result.status is Status.OPTIMAL
    assert len(counts) == 1
    assert counts[0] <= 24
    matrix = result.mechanism.matrix
    assert (matrix.max(axis=0) == 0).sum() >= 60 - counts[0]
    assert result.value == pytest.approx(solve(program, "highs").value, abs=1e-6)


def test_a_column_that_is_missing_at_the_end_brings_all_columns_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interior_point, "MIN_SINGLE_PRECISION_ENTRIES", 0)
    find, program = interior_point._find_used_columns, large_design(60)
    best = solve(program, "highs")
    largest = int(best.mechanism.matrix.sum(axis=0).argmax())

    def forget(*arguments: Any) -> Any:
        point, kept, done = find(*arguments)
        kept[largest] = False
        return point, kept, done

    monkeypatch.setattr(interior_point, "_find_used_columns", forget)
    counts = count_columns(monkeypatch)
    result = solve(program, "block-ipm")
    assert result.status is Status.OPTIMAL
    assert len(counts) == 2
    assert counts[1] == 60
    assert result.value == pytest.approx(best.value, abs=1e-6)


@pytest.mark.parametrize("utility", ["gains", "hamming"])
def test_hinges_are_left_out_where_no_entry_tends_to_pass_its_threshold(
    monkeypatch: pytest.MonkeyPatch, utility: str
) -> None:
    monkeypatch.setattr(interior_point, "MIN_SINGLE_PRECISION_ENTRIES", 0)
    hinged: list[bool] = []

    def follow(task: BlockLP, *arguments: Any) -> Any:
        hinged.append(task.block.hinge is not None)
        return follow_central_path(task, *arguments)

    monkeypatch.setattr(interior_point, "follow_central_path", follow)
    random = np.random.default_rng(4)
    prior = Prior(random.dirichlet(np.full(60, 2.0)))
    ball = PML(1.0, over=L1Ball(prior, 0.05))
    gains = ExpectedGain(random.random((60, 60)) if utility == "gains" else np.eye(60))
    program = design(prior, ball, gains)
    result = solve(program, "block-ipm")
    assert result.status is Status.OPTIMAL
    assert hinged == [utility == "hamming"]
    assert result.value == pytest.approx(solve(program, "highs").value, abs=1e-6)


def test_hinges_come_back_where_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interior_point, "MIN_SINGLE_PRECISION_ENTRIES", 0)
    monkeypatch.setattr(
        interior_point, "_leave_out_hinge", lambda block, scalars: block.without_hinge
    )
    prior = Prior(np.random.default_rng(4).dirichlet(np.full(60, 2.0)))
    program = design(prior, PML(1.0, over=L1Ball(prior, 0.4)), ExpectedGain(np.eye(60)))
    result = solve(program, "block-ipm")
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(solve(program, "highs").value, abs=1e-6)


def test_iterates_of_some_columns_are_zero_in_the_others() -> None:
    task = bordered()
    at = build_start(task)
    kept = np.array([True, False, True, True, False, True])
    whole = at.place_columns(kept)
    assert whole.mechanism[:, kept] == pytest.approx(at.mechanism)
    assert not whole.mechanism[:, ~kept].any()
    assert whole.means.shape == (1, 6)
    assert whole.rows is at.rows
    assert whole.slacks["coupled"] is at.slacks["coupled"]
