"""Problems 2 and 3 of [wu2026entropy]: those claims that a number decides, for `distortion.py`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import cvxpy as cp
import numpy as np
from common import FloatArray

from pmlopt import leakage_distortion, record_leakage, solve
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.model.closed_forms.parity import parity_prior
from pmlopt.model.queries import Explicit, ModularSum, Quadratic, Query, orbits
from pmlopt.model.queries.channel import compute_loss_table
from pmlopt.programs.tradeoff.program import build_tradeoff_model, express_informations
from pmlopt.programs.tradeoff.proof import Sense, TradeoffLosses
from pmlopt.programs.wu2026entropy.alternating import compute_joint_law
from pmlopt.programs.wu2026entropy.penalty import PenalizedProblem

QUERIES: Mapping[str, Query] = {
    "parity": ModularSum(3, 2),
    "parity, n = 2": ModularSum(2, 2),
    "sum mod 3": ModularSum(3, 3),
    "quadratic": Quadratic(3),
}


def claims() -> list[list[str]]:
    """What can be checked by a number, one row each."""
    return [
        convexity(), *biased(), best_of_all(), armijo(),
        swinging("parity, D = 0.2, b = 1.5, rows per class", "parity", 0.2, 1.5),
        swinging("the same, a row for each dataset", "parity", 0.2, 1.5, listed=True),
        swinging("sum mod 3, D = 0.2, b = 1, rows per class", "sum mod 3", 0.2, 1.0),
        swinging("quadratic, D = 0.2, b = 1, rows per class", "quadratic", 0.2, 1.0),
        *(alone(name) for name in ("sum mod 3", "quadratic")),
    ]  # fmt: skip


def convexity() -> list[str]:
    """The largest leakage half way between random mechanisms beside the mean of theirs."""
    parity = QUERIES["parity"]
    random = np.random.default_rng(0)
    above, count = -math.inf, 20
    for _ in iterate_with_progress(range(count), count, "convexity"):
        ends = random.dirichlet(np.ones(2), (2, 2))
        leaked = [solve(record_leakage(parity, end, 1.5)) for end in ends]
        middle = solve(record_leakage(parity, ends.mean(axis=0), 1.5))
        above = max(above, middle.value - (leaked[0].bound + leaked[1].bound) / 2)
    return [
        f"(26b) is not convex; parity of three, b = 1.5, {count} pairs of random mechanisms",
        f"half way it leaks at least {-above:.1e} less than the mean of both",
    ]


def biased() -> list[list[str]]:
    """The penalised minimiser for the worst prior of parity, by a convex solver, over lambda."""
    tradeoff = TradeoffLosses((1 - np.eye(2)) / 2, np.ones((2, 2), dtype=bool))
    joints = [parity_prior(3, 1.5)]
    rows = []
    asked: tuple[tuple[Sense, str, float], ...] = (("leakage", "D", 0.2), ("distortion", "L", 0.1))
    for sense, letter, limit in asked:
        program = build_tradeoff_model(tradeoff, joints, sense, limit)
        program.problem.solve(solver=cp.CLARABEL)
        bounding = program.constraints["distortion" if sense == "leakage" else "priors"]
        price = float(np.sum(bounding.dual_value))
        ends = []
        for weight in (1.0, 1.5, price / math.log(2), 10.0, 100.0, 1000.0):
            reached = reached_by(tradeoff, joints, sense, limit, weight)
            ends.append(f"{reached:.4f} for lambda = {weight:.4g}")
        rows.append([
            f"softplus^2 is exact; parity of three, b = 1.5, {letter} = {limit}: "
            f"{'E[d]' if sense == 'leakage' else 'I'} at the penalised minimiser",
            f"{', '.join(ends)}; the multiplier of the limit is {price:.4f}",
        ])  # fmt: skip
    return rows


def reached_by(
    tradeoff: TradeoffLosses,
    joints: Sequence[FloatArray],
    sense: Sense,
    limit: float,
    weight: float,
) -> float:
    """What is bounded, at the minimiser of the penalised problem."""
    matrix = minimiser(tradeoff, joints, sense, limit, weight)[0]
    return PenalizedProblem(tuple(joints), tradeoff.losses, sense, limit, weight).evaluate_both(
        matrix
    )[1]


def minimiser(
    tradeoff: TradeoffLosses,
    joints: Sequence[FloatArray],
    sense: Sense,
    limit: float,
    weight: float,
) -> tuple[FloatArray, float]:
    """Of the penalised problem, and its objective."""
    variable = cp.Variable(tradeoff.losses.shape, nonneg=True)
    leaked = cp.max(express_informations(variable, joints))
    spent = cp.sum(cp.multiply(tradeoff.losses, variable))
    aim, bounded = (leaked, spent) if sense == "leakage" else (spent, leaked)
    objective = cp.Minimize(aim + weight * cp.square(cp.logistic(bounded - limit)))
    value = float(cp.Problem(objective, [cp.sum(variable, axis=1) == 1]).solve(solver=cp.CLARABEL))
    matrix = np.maximum(np.asarray(variable.value), 0.0)
    return matrix / matrix.sum(axis=1, keepdims=True), value


def best_of_all() -> list[str]:
    """Algorithm 7 with its subproblems solved exactly: the lambdas it goes through, and its q_best."""
    tradeoff = TradeoffLosses((1 - np.eye(2)) / 2, np.ones((2, 2), dtype=bool))
    joints = [parity_prior(3, 1.5)]
    weight, limit, least, best = 1.0, 0.2, math.inf, math.nan
    trace = []
    for _ in range(8):
        matrix, value = minimiser(tradeoff, joints, "leakage", limit, weight)
        spent = tradeoff.compute_distortion(matrix)
        trace.append(f"{spent:.3f}")
        if value < least:
            least, best = value, spent
        if spent > limit + 0.01:
            weight *= 1.5
        elif spent < limit - 0.01:
            weight /= 1.5
    return [
        "Algorithm 7 returns q_best of the least J; parity of three, b = 1.5, D = 0.2, exact inner steps",
        f"E[d] in its rounds: {', '.join(trace)}; q_best has {best:.3f}",
    ]


def armijo() -> list[str]:
    """Whether any exponentiated step decreases as much as Algorithm 8 asks."""
    joints = (parity_prior(3, 1.5),)
    losses = (1 - np.eye(2)) / 2
    problem = PenalizedProblem(joints, losses, "leakage", 0.2, 1.0)
    random = np.random.default_rng(0)
    held, most, count = 0, 0.0, 100
    for _ in range(count):
        matrix = random.dirichlet(np.ones(2), 2)
        gradient, value = problem.compute_gradient(matrix), problem.evaluate(matrix)
        for size in 0.5 ** np.arange(20):
            moved = matrix * np.exp(-size * gradient)
            moved /= moved.sum(axis=1, keepdims=True)
            share = (value - problem.evaluate(moved)) / float(size * (gradient**2).sum() / 2)
            held, most = held + (share >= 1), max(most, share)
    return [
        f"Algorithms 8 and 11: backtracking ends; parity of three, b = 1.5, {count} random mechanisms, eta = "
        "1 to 2^-19",
        f"the condition held {held} times; the decrease is at most {most:.2f} of what it asks",
    ]


def swinging(
    what: str, name: str, limit: float, entropy: float, *, listed: bool = False
) -> list[str]:
    """Algorithm 6 with both subproblems solved exactly: the certified leakage of its mechanisms."""
    query = QUERIES[name]
    loss, _ = compute_loss_table(query, None)
    found = orbits(query)
    classes, values, masses = found.query, found.values, found.masses
    if listed:
        every = query.table()
        classes = Explicit(np.arange(every.size).reshape(every.shape))
        values, masses = every.ravel(), np.full(every.size, 1 / every.size)
    losses = masses[:, None] * loss[values]
    tradeoff = TradeoffLosses(losses, np.ones(losses.shape, dtype=bool))
    places = classes.table()
    uniform = np.full(losses.shape, 1 / losses.shape[1])
    cheapest = (loss[values] == 0).astype(float)
    share = min(1.0, limit / tradeoff.compute_distortion(uniform))
    matrix = (1 - share) * cheapest + share * uniform
    leaked = []
    for _ in iterate_with_progress(range(6), 6, what):
        audit = solve(record_leakage(classes, matrix, entropy), gap=1e-4, time_limit=5)
        leaked.append(f"{audit.value:.4f}")
        prior = audit.certificate.prior()
        joints = [compute_joint_law(prior, record, places) for record in range(places.ndim)]
        program = build_tradeoff_model(tradeoff, joints, "leakage", limit)
        program.problem.solve(solver=cp.CLARABEL)
        solved = np.asarray(program.variables["mechanism"].value)
        matrix = np.where(solved > 1e-9, solved, 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
    best = solve(leakage_distortion(query, limit, entropy), time_limit=15)
    return [
        f"Algorithm 6: the worst-case leakage does not rise; {what}",
        f"{', '.join(leaked)}; the optimum is {best.value:.4f}",
    ]


def alone(name: str) -> list[str]:
    """What each prior of a bound forces by itself, beside the optimum."""
    best = solve(leakage_distortion(QUERIES[name], 0.2, 1.0), time_limit=15).certificate
    assert best.proof is not None
    places = best.query.table()
    letters = np.indices(places.shape)[0]
    forced, heavy = 0.0, 0
    for cut in best.proof.cuts:
        shares = cut.joint / np.maximum(np.exp(best.query.log_counts(cut.record)), 1e-300)
        prior = np.moveaxis(shares[letters, np.moveaxis(places, cut.record, 0)], 0, cut.record)
        joints = [compute_joint_law(prior, record, places) for record in range(places.ndim)]
        program = build_tradeoff_model(best.tradeoff, joints, "leakage", 0.2)
        forced = max(forced, float(program.problem.solve(solver=cp.CLARABEL)))
        heavy += cut.weight > 0.01
    return [
        f"a single prior is enough; {name}, D = 0.2, b = 1",
        f"the {heavy} priors with weights above 0.01 force {best.value:.4f} together, and any one at most "
        f"{forced:.4f}",
    ]
