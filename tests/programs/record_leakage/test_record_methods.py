"""The leakage per record as a program: its problem, its methods by name and as objects, and warm starts."""

from __future__ import annotations

import math
import pickle
import warnings
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray
from oracles.records import marginal_program
from scipy.optimize import brentq
from scipy.special import softmax
from strategies import MODEST

from pmlopt import Result, queries, record_leakage, solve
from pmlopt.data.mechanism import MechanismLike
from pmlopt.errors import PrivacyError, ProgramError
from pmlopt.measures import channel_capacity
from pmlopt.model.queries import ModularSum, Weight, symmetric_channel
from pmlopt.model.queries.record_leakage_measures import compute_divergences
from pmlopt.programs import Alternating, BranchAndBound, Status
from pmlopt.programs.certificate import WarmStart
from pmlopt.programs.record_leakage import branch_and_bound
from pmlopt.programs.record_leakage import closed_bounds as one_class_each
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.wu2026entropy.alternating import (
    compute_conditional_gradient,
    compute_entropies,
    compute_information,
    compute_output_laws,
    find_best_units,
    optimize_conditionals,
    optimize_marginal,
    project_to_entropy,
    project_to_simplex,
)

QUERY = Weight(3)
MECHANISM = symmetric_channel(QUERY, 0.2)
ONE_NODE = BranchAndBound(nodes=1)


def test_the_problem_is_a_relaxation_for_the_first_kind() -> None:
    program = record_leakage(QUERY, MECHANISM, 1.9)
    assert "declared" not in vars(program)  # until somebody looks
    assert (program.maximised, program.scale, program.tolerance) == (True, 1.0, 1e-7)
    above = float(program.problem.solve(solver="CLARABEL"))
    found = solve(program, tolerance=1e-3)
    assert found.value <= above + 1e-7
    with (  # near it, where H(X_i) bounds nothing, is what the first cell of class laws proves
        patch.object(branch_and_bound, "MAX_OUTPUTS_BY_DIMENSION", 0),
        patch.object(one_class_each, "MAX_CLASS_CHOICES", 0),
    ):
        first = solve(program, solver=ONE_NODE)
    assert above - 1e-7 <= first.bound <= 1.05 * above
    assert set(program.constraints) == {"entropy", "law", "total", "marginal", "outputs", "letters"}
    assert set(program.variables) == {"joint", "law", "marginal", "leaked"}
    assert "constraint entropy" in str(program)
    assert repr(program) == "<RecordLeakage at 1.9 nats of entropy>"


def test_a_method_is_asked_for_by_name_or_as_an_object() -> None:
    program = record_leakage(ModularSum(3, 2), symmetric_channel(ModularSum(3, 2), 0.2), 1.0)
    for solver in ("auto", "branch-and-bound", BranchAndBound(seed=3)):
        found = solve(program, solver=solver)
        assert (found.solver, found.status) == ("branch-and-bound", Status.OPTIMAL)
    rough = solve(program, solver=Alternating(restarts=2, seed=1))
    assert (rough.solver, rough.status, rough.iterations) == ("alternating", Status.UNPROVED, 2)
    assert rough.bound == rough.gap == math.inf
    assert "the best of 2 starts" in rough.reason
    for wrong in (0, -1, 1.5):
        with pytest.raises(PrivacyError, match="the number of nodes must be a whole number"):
            BranchAndBound(nodes=wrong)  # type: ignore[arg-type]
        with pytest.raises(PrivacyError, match="the number of restarts must be a whole number"):
            Alternating(restarts=wrong)  # type: ignore[arg-type]


def test_the_laws_of_another_entropy_are_a_warm_start() -> None:
    high = solve(record_leakage(QUERY, MECHANISM, 2.0), solver=ONE_NODE)
    assert not high.warm_started
    law = high.restart.arrays["joint0"]
    assert law.shape == (2, len(high.certificate.channel.rows))
    kept = pickle.loads(pickle.dumps(high.restart))
    for start in (high, high.restart, kept):
        low = solve(record_leakage(QUERY, MECHANISM, 1.8), solver=ONE_NODE, warm_start=start)
        assert low.warm_started
        assert low.value >= high.value
    rough = solve(record_leakage(QUERY, MECHANISM, 1.8), solver=Alternating(restarts=1))
    assert solve(
        record_leakage(QUERY, MECHANISM, 1.8), solver=ONE_NODE, warm_start=rough
    ).warm_started


def test_a_start_that_does_not_fit_is_left_out() -> None:
    program = record_leakage(QUERY, MECHANISM, 1.9)
    fits = np.full((2, 4), 0.1)
    fits[0, 3] = fits[1, 0] = (
        0.0  # no dataset has a zero there and weight three, or a one and weight zero
    )
    for law in (np.ones((3, 3)), np.full((2, 4), 0.1), -fits, np.zeros((2, 4)), fits * np.nan):
        start = WarmStart("branch-and-bound", {"joint0": law})
        assert not solve(program, solver=ONE_NODE, warm_start=start).warm_started
    assert solve(
        program, solver=ONE_NODE, warm_start=WarmStart("mine", {"joint0": fits})
    ).warm_started
    assert not solve(program, solver=ONE_NODE, warm_start=False).warm_started
    for mechanism in (MECHANISM, MECHANISM.matrix):
        with pytest.raises(ProgramError, match="starts from priors"):
            solve(program, warm_start=mechanism)


# ---------------------------------------------------------------- the alternating method


PRECISE = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
SEEDS = st.integers(0, 10_000)


def local(
    query: queries.Query, mechanism: MechanismLike, entropy: float, restarts: int
) -> Result[RecordCertificate]:
    return solve(record_leakage(query, mechanism, entropy), solver=Alternating(restarts=restarts))


def case(seed: int, letters: int = 3, others: int = 5, answers: int = 3) -> tuple[FloatArray, ...]:
    """A law of the record, conditionals, and a channel, all positive."""
    random = np.random.default_rng(seed)
    return (
        random.dirichlet(np.full(letters, 2.0)),
        random.dirichlet(np.full(others, 0.7), size=letters),
        random.dirichlet(np.full(answers, 0.7), size=(letters, others)),
    )


def leaked(joint: FloatArray, channel: FloatArray) -> float:
    """I(X_i; Y) from a joint of any total, by its definition."""
    table = np.einsum("ar,arm->am", joint, channel)
    alone = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float((table * np.log(table / alone)).sum())


@MODEST
@given(SEEDS)
def test_the_gradient_is_that_of_finite_differences_with_the_rows_kept_laws(seed: int) -> None:
    p, rows, channel = case(seed)
    gradient = compute_conditional_gradient(p, compute_output_laws(rows, channel), channel)
    random = np.random.default_rng(seed + 1)
    change = random.normal(size=rows.shape)
    direction = rows * (change - (rows * change).sum(axis=1, keepdims=True))
    step = 1e-5  # relative to each entry
    up, down = (leaked(p[:, None] * (rows + s * direction), channel) for s in (step, -step))
    assert (up - down) / (2 * step) == pytest.approx(
        float((gradient * direction).sum()), rel=1e-5, abs=1e-7
    )


def test_the_printed_gradient_is_not_that_of_finite_differences() -> None:
    p, rows, channel = case(3)
    laws = compute_output_laws(rows, channel)
    mean = p @ laws
    more = p[:, None] - p[:, None] ** 2 * np.einsum("am,arm->ar", laws / mean, channel)
    printed = compute_conditional_gradient(p, laws, channel) + more
    direction = np.zeros(rows.shape)
    direction[0, :2] = 1.0, -1.0
    step = 1e-6
    up, down = (leaked(p[:, None] * (rows + s * direction), channel) for s in (step, -step))
    found = (up - down) / (2 * step)
    assert abs(found - float((printed * direction).sum())) > 1e-3
    assert found == pytest.approx(float(((printed - more) * direction).sum()), abs=1e-7)


@MODEST
@given(SEEDS)
def test_the_divergences_are_the_gradient_of_the_marginal(seed: int) -> None:
    p, rows, channel = case(seed)
    laws = compute_output_laws(rows, channel)
    direction = np.array([1.0, -1.0, 0.0])
    up, down = (compute_information(p + s * direction, laws) for s in (1e-6, -1e-6))
    assert (up - down) / 2e-6 == pytest.approx(
        float(compute_divergences(laws, p)[0] @ direction), abs=1e-6
    )


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.just(0.0) | st.floats(0.05, 0.98))
def test_the_marginal_step_is_the_convex_optimum(seed: int, share: float) -> None:
    p, rows, channel = case(seed)
    laws, inner = compute_output_laws(rows, channel), compute_entropies(rows)
    least = share * (float(compute_entropies(p)) + float(p @ inner))
    law = optimize_marginal(p, laws, inner, least, tolerance=1e-12, iterations=100_000)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert float(compute_entropies(law) + law @ inner) >= least - 1e-12
    problem = marginal_program(laws, inner, least)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the oracle's own doubt: such a problem is left out
        best = float(problem.solve(**PRECISE))
    assume(problem.status == "optimal")
    assert compute_information(law, laws) <= best + 1e-7
    assert compute_information(law, laws) == pytest.approx(best, abs=2e-6)


@MODEST
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_the_projection_on_the_simplex_is_the_nearest_law(values: list[float]) -> None:
    vector = np.array(values)
    law = project_to_simplex(vector)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    # the nearest law: (v - w) @ (u - w) <= 0 for every law u, so at every unit vector
    away = vector - law
    assert float(away.max()) <= float(away @ law) + 1e-9


@MODEST
@given(SEEDS, st.integers(2, 8), st.floats(0.01, 0.99))
def test_the_projection_on_the_entropy_is_the_best_law_of_that_entropy(
    seed: int, size: int, share: float
) -> None:
    vector = np.random.default_rng(seed).normal(size=size)
    wanted = share * math.log(size)
    law = project_to_entropy(vector, wanted)
    assert float(compute_entropies(law)) == pytest.approx(wanted, abs=1e-9)
    assert float(compute_entropies(law)) >= wanted
    # the best law is proportional to e^(b v), whose entropy falls with b
    sharp = brentq(
        lambda b: float(compute_entropies(softmax(b * vector))) - wanted, 0.0, 1e6, xtol=1e-12
    )
    assert float(vector @ law) == pytest.approx(float(vector @ softmax(sharp * vector)), abs=1e-6)


def test_the_projection_on_the_entropy_keeps_a_law_that_has_it_and_stops_at_ties() -> None:
    law = np.array([0.5, 0.25, 0.25])
    assert project_to_entropy(law, float(compute_entropies(law))) is law
    tied = project_to_entropy(np.array([2.0, 2.0, 0.0]), 0.1)
    assert tied == pytest.approx([0.5, 0.5, 0.0], abs=1e-9)
    assert project_to_entropy(np.zeros(4), 0.3).tolist() == [0.25] * 4
    assert project_to_entropy(np.array([1.0, 0.0]), math.log(2)).tolist() == [0.5, 0.5]
    assert project_to_entropy(np.array([1.0]), 0.0).tolist() == [1.0]


@MODEST
@given(SEEDS, st.floats(0.1, 1.0), st.sampled_from([1.0, 100.0]))
def test_the_conditional_step_keeps_the_entropy_and_never_leaks_less(
    seed: int, share: float, step: float
) -> None:
    p, rows, channel = case(seed)
    most = float(compute_entropies(p)) + float(p @ compute_entropies(rows))
    least = float(compute_entropies(p)) + share * (most - float(compute_entropies(p)))
    moved = optimize_conditionals(p, rows, channel, least, step=step)
    assert moved.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-9)
    assert float(compute_entropies(p)) + float(p @ compute_entropies(moved)) >= least - 1e-9
    before, after = (compute_information(p, compute_output_laws(r, channel)) for r in (rows, moved))
    assert after >= before - 1e-12


@MODEST
@given(SEEDS)
def test_the_best_units_are_the_best_of_all(seed: int) -> None:
    p, _, channel = case(seed, others=4)
    found = compute_information(p, compute_output_laws(find_best_units(p, channel), channel))
    picks = np.indices((4, 4, 4)).reshape(3, -1).T
    every = [compute_information(p, channel[np.arange(3), pick]) for pick in picks]
    assert found == pytest.approx(max(every), abs=1e-12)


@pytest.mark.parametrize("entropy", [0.0, 1.0, 2.05])
def test_it_never_exceeds_the_certified_bound(entropy: float) -> None:
    query = queries.Quadratic(3)
    mechanism = queries.laplace(query, 1.0)
    rough = local(query, mechanism, entropy, 1)
    proved = solve(record_leakage(query, mechanism, entropy))
    assert rough.value <= proved.bound
    assert rough.status.value == "unproved"
    assert (rough.bound, rough.gap) == (math.inf, math.inf)
    assert {claim.name: claim.holds for claim in rough.certificate.checks()}["bound"] is None
    prior = rough.certificate.prior()
    assert float(compute_entropies(prior.ravel())) >= entropy - 1e-9


def test_table_3_is_a_local_optimum() -> None:
    parity = queries.ModularSum(4, 2)
    mechanism = queries.laplace(parity, 1.0)
    rough = local(parity, mechanism, 2.0, 2)
    assert (
        rough.value < 0.07
    )  # the capacity, which a prior of entropy 3 log 2 reaches, is 0.0795415
    assert solve(record_leakage(parity, mechanism, 2.0)).value == pytest.approx(0.0795415, abs=1e-7)


def test_the_leakage_is_convex_in_all_conditionals_together() -> None:
    """[wu2026entropy, Theorem 1] says so of each row alone; its proof gives it for the matrix."""
    random = np.random.default_rng(0)
    for seed in range(30):
        letters, first, channel = case(seed)
        second = random.dirichlet(np.full(first.shape[1], 0.7), size=len(first))
        share = float(random.random())
        mixed = share * first + (1 - share) * second
        told, one, other = (
            compute_information(letters, compute_output_laws(laws, channel))
            for laws in (mixed, first, second)
        )
        assert told <= share * one + (1 - share) * other + 1e-14


def test_without_an_entropy_the_alternation_may_stay_at_a_local_optimum() -> None:
    # says 1 with these probabilities, of letter 0 on two datasets and of letter 1 on two
    ones, letters = np.array([[0.0, 0.55], [0.5, 0.0]]), np.array([0.6, 0.4])
    rows = np.stack([1 - ones, ones], axis=-1)
    best = find_best_units(letters, rows)
    assert best.tolist() == [[1, 0], [1, 0]]
    stuck = np.einsum("ar,arm->am", best, rows)
    assert compute_information(letters, stuck) == pytest.approx(math.log(1.25))
    assert channel_capacity(stuck)[1] == pytest.approx(math.log(1.25), abs=1e-9)
    assert compute_information(letters[::-1], rows[:, 1]) > 0.2516


def test_rows_that_are_best_one_by_one_are_not_the_best_together() -> None:
    """[wu2026entropy, Theorem 5], item 3: the best unit vectors, row by row, are no optimum."""
    # says 1 with these probabilities, of letter 0 on two datasets and of letter 1 on two
    ones, half = np.array([[0.3, 1.0], [0.9, 0.0]]), np.full(2, 0.5)
    rows = np.stack([1 - ones, ones], axis=-1)
    leaks = np.array(
        [[compute_information(half, rows[[0, 1], [i, j]]) for j in range(2)] for i in range(2)]
    )
    assert leaks == pytest.approx(
        np.array([[0.205038, 0.117277], [0.035974, math.log(2)]]), abs=1e-6
    )
    assert leaks[0, 0] > max(leaks[0, 1], leaks[1, 0])


def test_past_the_combinations_the_units_go_row_by_row() -> None:
    p, _, channel = case(5, letters=3, others=70)
    found = compute_information(p, compute_output_laws(find_best_units(p, channel), channel))
    for k in range(3):  # no single row can do better
        units = find_best_units(p, channel)
        for place in range(70):
            units[k] = np.eye(70)[place]
            assert compute_information(p, compute_output_laws(units, channel)) <= found + 1e-12
