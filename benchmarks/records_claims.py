"""Claims of [wu2026entropy] on the leakage per record that a number decides, for `records.py`."""

from __future__ import annotations

import math

import numpy as np
from common import FloatArray

from pmlopt import ldp_level, queries, record_leakage, solve
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.model.queries import ModularSum, Weight
from pmlopt.model.queries.record_leakage_measures import compute_divergences
from pmlopt.programs import Alternating
from pmlopt.programs.wu2026entropy import alternating as steps

BIT = math.log(2)


def claims(mechanisms: int) -> list[list[str]]:
    """What can be checked by a number, one row each."""
    return [
        gradient(), uniform_start(), stopping_rule(), row_entropy(), projection(), *sensitivities(),
        row_by_row(300), single_runs(mechanisms),
    ]  # fmt: skip


def row_by_row(mechanisms: int) -> list[str]:
    """Pairs of one row in four for each of two letters at 1/2: optimal one by one, and not together."""
    stuck, worst = 0, (1.0, 1.0)
    for seed in range(mechanisms):
        channel = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), size=8).reshape(2, 4, 3)
        leaks = np.array(
            [
                [
                    steps.compute_information(np.full(2, 0.5), channel[[0, 1], [i, j]])
                    for j in range(4)
                ]
                for i in range(4)
            ]
        )
        ends = leaks[(leaks == leaks.max(axis=0)) & (leaks == leaks.max(axis=1)[:, None])]
        stuck += bool(ends.min() < leaks.max() - 1e-9)
        worst = min(
            worst, (float(ends.min()), float(leaks.max())), key=lambda pair: pair[0] / pair[1]
        )
    return [
        "Theorem 5, item 3: the best rows one by one are the best together",
        f"{stuck} of {mechanisms} have a pair that is not; {worst[0]:.4f} instead of {worst[1]:.4f}",
    ]


def random_conditionals(
    records: int, error: float, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """p(x_1), p(x_-1|x_1) at random, and q(y|x) of a noisy parity, in the shapes of `steps`."""
    random = np.random.default_rng(seed)
    size = 2 ** (records - 1)
    parity = np.indices((2,) * records).sum(axis=0).reshape(2, size) % 2
    rows = np.array([[1 - error, error], [error, 1 - error]])
    return random.dirichlet(np.ones(2)), random.dirichlet(np.ones(size), 2), rows[parity]


def printed_gradient(letters: FloatArray, laws: FloatArray, channel: FloatArray) -> FloatArray:
    """[wu2026entropy, eq. (37)], as printed."""
    mean = letters @ laws
    last = letters[:, None] ** 2 * np.einsum("arm,am->ar", channel, laws / mean)
    right = steps.compute_conditional_gradient(letters, laws, channel)
    return np.asarray(letters[:, None] + right - last)


def gradient() -> list[str]:
    """(37) beside differences, along the directions in which a row stays a law."""
    letters, others, channel = random_conditionals(4, 0.1, 0)
    laws = steps.compute_output_laws(others, channel)

    def away(found: FloatArray) -> float:
        worst = 0.0
        for place in range(1, others.shape[1]):
            moved = np.zeros(others.shape)
            moved[0, place], moved[0, 0] = 1e-5, -1e-5
            after, before = (
                steps.compute_information(
                    letters, steps.compute_output_laws(others + sign * moved, channel)
                )
                for sign in (1, -1)
            )
            worst = max(worst, abs((after - before) / 2e-5 - (found[0, place] - found[0, 0])))
        return worst

    right = away(steps.compute_conditional_gradient(letters, laws, channel))
    wrong = away(printed_gradient(letters, laws, channel))
    return [
        "(37), parity of four records, BSC(0.1), a random prior",
        f"off the difference quotient by {wrong:.2g}; without its first and last term by {right:.0e}",
    ]


def uniform_start() -> list[str]:
    """Algorithm 1 from the uniform prior, where Section 3.1 starts it."""
    _, _, channel = random_conditionals(4, 0.1, 0)
    letters, others = np.full(2, 0.5), np.full((2, 8), 1 / 8)
    laws, inner = steps.compute_output_laws(others, channel), steps.compute_entropies(others)
    moved = steps.optimize_marginal(letters, laws, inner, 2.0)
    after = steps.optimize_conditionals(moved, others, channel, 2.0)
    leaked = steps.compute_information(moved, steps.compute_output_laws(after, channel))
    spread = np.ptp(printed_gradient(letters, laws, channel), axis=1).max()
    return [
        "Section 3.1 starts at the uniform prior; parity, b = 2",
        f"leaks {abs(leaked):.1g} after a round of steps; the entries of (37) differ by {spread:.1g}",
    ]


def stopping_rule() -> list[str]:
    """Algorithm 2 as printed, on two letters that are told apart, one of them certain of the rest."""
    laws, inner, entropy, start = np.eye(2), np.array([0.0, 2.0]), 2.0, np.array([0.2, 0.8])
    ends = []
    for accuracy in (1e-3, 1e-6):
        law, price, last, value, rounds = start, 0.0, -math.inf, 0.0, 0
        while abs(value - last) >= accuracy:
            worth = (compute_divergences(laws, law)[0] + price * (inner - np.log(law))) / (
                1 + price
            )
            law = law * np.exp(worth)
            law /= law.sum()
            uncertain = float(steps.compute_entropies(law) + law @ inner)
            price = max(0.0, price - 0.1 * (uncertain - entropy))
            last, value, rounds = value, steps.compute_information(law, laws), rounds + 1
        ends.append(f"for {accuracy:g} in round {rounds} at an entropy of {uncertain:.5f}")
    ours = steps.optimize_marginal(start, laws, inner, entropy)
    held = float(steps.compute_entropies(ours) + ours @ inner)
    return [
        "Algorithm 2 stops when I stands still; b = 2",
        f"{'; '.join(ends)}; here at {held:.5f}",
    ]


def row_entropy() -> list[str]:
    """(18), which sums over all rows, beside Algorithm 3, which leaves row k out."""
    letters, others, _ = random_conditionals(4, 0.1, 1)
    held = steps.compute_entropies(others)
    total = float(steps.compute_entropies(letters) + letters @ held)
    every = (total - float(steps.compute_entropies(letters)) - float(letters @ held)) / letters[0]
    but_one = (
        total - float(steps.compute_entropies(letters)) - float(letters[1] * held[1])
    ) / letters[0]
    return [
        "(18): the entropy that row k needs, at a prior of entropy b",
        f"row {held[0]:.4f}; (18) {abs(every):.4f}; Algorithm 3, line 9 {but_one:.4f}",
    ]


def projection() -> list[str]:
    """Algorithm 5 on a law whose entropy is short of t by next to nothing."""
    law = np.array([0.7, 0.2, 0.1])
    wanted = float(steps.compute_entropies(law)) + 1e-6
    moved = steps.project_to_entropy(law, wanted)
    return [
        "Algorithm 5 on (0.7, 0.2, 0.1), t = its entropy and 1e-6 more",
        f"({', '.join(f'{x:.3f}' for x in moved)}): moved by {np.abs(moved - law).sum():.3f} in l1",
    ]


def sensitivities() -> list[list[str]]:
    """A sum modulo m when one record changes, and Laplace noise that takes 1 for it."""
    changes = []
    for modulus in (2, 3, 4, 5):
        sums = np.indices((2,) * 6).sum(axis=0) % modulus
        changes.append(max(int(np.abs(np.diff(sums, axis=axis)).max()) for axis in range(6)))
    query = ModularSum(6, 3)
    levels = [
        ldp_level(queries.laplace(query, scale).matrix[[0, 2]])
        for scale in (1.0, query.sensitivity)
    ]
    return [
        [
            "Section 4.1.1: a sum modulo m has sensitivity 1; six records, m = 2, 3, 4, 5",
            f"{changes}",
        ],
        [
            "(45), m = 3, epsilon = 1: the level of the rows of neighbours 0 and 2",
            f"{levels[1]:.4f} with noise for the sensitivity 1; {levels[0]:.4f} with noise for 2",
        ],
    ]


def single_runs(count: int) -> list[str]:
    """Theorem 4 at b = 0: single runs of Algorithm 1 on random mechanisms of three values."""
    query = Weight(2)
    below, most, which = 0, -1.0, 0
    for seed in iterate_with_progress(range(count), count, "Theorem 4"):
        rows = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), 3)
        program = record_leakage(query, rows, 0.0)
        exact = solve(program)
        single = solve(program, solver=Alternating(restarts=1))
        short = exact.value - single.value
        below += short > 1e-5
        if short > most:
            most, which = short, seed
    rows = np.random.default_rng(which).dirichlet(np.full(3, 0.5), 3)
    program = record_leakage(query, rows, 0.0)
    best = solve(program).value
    ends = [solve(program, solver=Alternating(restarts=1, seed=seed)).value for seed in range(20)]
    return [
        f"Theorem 4: a single run is optimal at b = 0; weight of two records, {count} random mechanisms",
        f"{below} end below the capacity by more than 1e-5; that of seed {which} at {best - most:.5f} for "
        f"{best:.5f}, and so do {sum(end < best - 1e-5 for end in ends)} of the seeds 0 to 19",
    ]
