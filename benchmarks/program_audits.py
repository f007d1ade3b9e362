"""How often the bounds on programs are wrong, and how wide they are.

    python benchmarks/program_audits.py [--runs 2000] [--out FOLDER] [--quick] [--seed 64]

Deterministic programs by the law of their traces, with outcomes of probability 1e-5 among them, outcomes just
below and just above the threshold `e^-epsilon`, and half of the mass on 50,000 rare ones; and randomised
programs of three letters. At a fixed number of samples each bound is compared with the truth. With looks at
growing numbers of samples, until a claim is decided, claims are true or false by a hair, so that a verdict is
wrong where a bound at any look is. Each may be wrong in 5 of 100 runs.

The second table has the mean upper bound on the tail over 1,000 audits, next to two by Clopper and Pearson's
intervals with a union bound: of all outcomes, of which a list must be known; and with a split, where the
first half of the samples names the frequent outcomes, and the second bounds the mass of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from common import FloatArray, growth_figure, machine, report, suite_parser, write_machine

from pmlopt.model.uncertainty.confidence import binomial_intervals
from pmlopt.programs.plots import save_figure
from pmlopt.releases.estimation import LevelAudit, SampledLeakage, leakage_from_samples
from pmlopt.releases.estimation.outcome_limits import is_above_anytime, is_below_anytime

CONFIDENCE = 0.95
RISK = 1 - CONFIDENCE
LIMIT = 0.02
EPSILON = -math.log(LIMIT)
"""The level of most claims: traces of a probability below one in fifty leak more."""

PRIOR = np.array([0.5, 0.3, 0.2])
HEAD = ("bound", "program", "samples", "runs", "wrong", "stated")
WIDTHS = ("program", "samples", "tail", "fixed n", "any stop", "all outcomes", "split")


def laws() -> dict[str, FloatArray]:
    """Laws of the traces of deterministic programs."""
    rare = np.full(20, 1e-5)
    found = {
        "rare of 1e-5": np.concatenate([[0.5, 0.3, 0.15, 0.04], [0.01 - rare.sum()], rare]),
        "just below": np.concatenate([[1 - 15 * 0.0198], np.full(15, 0.0198)]),
        "just above": np.concatenate([[0.03, 0.02], np.full(45, 0.95 / 45)]),
        "50,000 rare": np.concatenate([[0.3, 0.2], np.full(50_000, 1e-5)]),
    }
    return {name: law / law.sum() for name, law in found.items()}


def matrices() -> dict[str, FloatArray]:
    """Randomised programs of three letters, with rare outcomes that identify a letter."""
    response = 0.2 + 0.4 * np.eye(3)
    rare = np.hstack([response * (1 - 1e-5), 1e-5 * np.eye(3)])
    common = np.hstack([response * 0.96, 0.04 * np.eye(3)])
    return {"identifying 1e-5": rare, "identifying 0.04": common}


def tail_of(law: FloatArray, epsilon: float) -> float:
    """The probability of the traces that leak more than epsilon."""
    return float(law[-np.log(law) > epsilon].sum())


def leakage_of(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The leakage of each outcome of a randomised program, and its probability."""
    q = PRIOR @ matrix
    return np.log(matrix.max(axis=0) / q), q


class Tally:
    """How often each bound was wrong, of how many runs."""

    def __init__(self) -> None:
        self.wrong: dict[tuple[str, str, int], list[bool]] = {}

    def add(self, bound: str, program: str, samples: int, wrong: bool) -> None:
        """Add a run."""
        self.wrong.setdefault((bound, program, samples), []).append(bool(wrong))

    def rows(self) -> list[list[str]]:
        """The table."""
        return [
            [
                bound,
                program,
                f"{samples:,}",
                f"{len(runs):,}",
                f"{np.mean(runs):.4f}",
                f"{RISK:.2f}",
            ]
            for (bound, program, samples), runs in self.wrong.items()
        ]


def list_largest(rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The largest share of wrong bounds of each kind and program, over sizes and levels: head and rows."""
    largest: dict[str, dict[str, float]] = {}
    for bound, program, _, _, wrong, _ in rows:
        place, _, end = bound.partition(" from ")
        kind = f"{place.split()[0]}, from {end}" if end else bound
        one = largest.setdefault(kind, {})
        one[program] = max(one.get(program, 0.0), float(wrong))
    programs = list(dict.fromkeys(row[1] for row in rows))
    shown = {
        kind: [f"{found[name]:.4f}" if name in found else "-" for name in programs]
        for kind, found in largest.items()
    }
    return ["wrong bound", *programs], [[kind, *shares] for kind, shares in shown.items()]


def bound_counts(table: np.ndarray, prior: FloatArray | None) -> SampledLeakage:
    """Bound a program from (K, N) counts of outcomes and letters; (K, 1) without a prior."""
    outcomes, letters = np.nonzero(table)
    pairs = list(zip(letters.tolist(), outcomes.tolist(), strict=True))
    return leakage_from_samples(
        outcomes if prior is None else pairs, times=table[outcomes, letters], prior=prior,
        confidence=CONFIDENCE, deterministic=prior is None,
    )  # fmt: skip


def count_tail(tally: Tally, name: str, found: SampledLeakage, epsilon: float, tail: float) -> None:
    """Count wrong bounds on a tail: the lower one is above it where the true claim is refuted, the upper one
    below it where a claim that is false by a hair is confirmed.
    """
    over = tail * (1 + 1e-12) or 1e-300
    low = over < 1 and found.decide_claim(epsilon, over) == "refuted"
    high = tail > 0 and found.decide_claim(epsilon, tail * (1 - 1e-12)) == "confirmed"
    tally.add(f"tail at {epsilon:.3g} from below", name, found.samples, low)
    tally.add(f"tail at {epsilon:.3g} from above", name, found.samples, high)


def count_fixed(runs: int, samples: int, rng: np.random.Generator) -> Tally:
    """Count wrong bounds at a fixed number of samples."""
    tally = Tally()
    for name, law in laws().items():
        for _ in range(runs):
            found = bound_counts(rng.multinomial(samples, law)[:, None], None)
            for epsilon in (EPSILON, 2.0):
                count_tail(tally, name, found, epsilon, tail_of(law, epsilon))
            count_level(tally, name, found, -math.log(law.min()))
    for name, matrix in matrices().items():
        leakages, q = leakage_of(matrix)
        joint = (PRIOR[:, None] * matrix).ravel()
        for _ in range(runs):
            found = bound_counts(rng.multinomial(samples, joint).reshape(matrix.shape).T, PRIOR)
            for epsilon in (float(leakages[1]) - 1e-9, 0.8, 1.3):
                tail = float(q[leakages > epsilon].sum())
                count_tail(tally, name, found, epsilon, tail)
            count_level(tally, name, found, float(leakages.max()))
    return tally


def count_level(tally: Tally, name: str, found: SampledLeakage, level: float) -> None:
    """Count whether the bound on the level is above it, where the true claim is refuted."""
    too_high = found.decide_claim(level + 1e-12) == "refuted"
    tally.add("level from below", name, found.samples, too_high)


def claims(tails: Mapping[str, float]) -> Iterator[tuple[str, float, str]]:
    """Claims on each program that are true or false by a hair, and the verdict that is wrong."""
    for name, tail in tails.items():
        if tail < 1:
            yield name, tail, "refuted"
        if tail > 1e-3:
            yield name, tail * (1 - 1e-6), "confirmed"


def count_stopped(runs: int, most: int, rng: np.random.Generator) -> Tally:
    """Count wrong verdicts at any look, with up to a number of samples.

    The tests of outcomes are those of `LevelAudit`, for all runs at once: one after the other takes hours.
    """
    tally = Tally()
    looks = np.unique(np.geomspace(5, most, 50).astype(int))
    known = {name: law for name, law in laws().items() if len(law) < 1_000}
    for name, delta, wrong in claims({name: tail_of(law, EPSILON) for name, law in known.items()}):
        drawn = rng.choice(len(known[name]), (runs, most), p=known[name])
        letters = np.zeros_like(drawn)
        model = LevelAudit(EPSILON, delta, confidence=CONFIDENCE, deterministic=True)
        for err in find_errors(letters, drawn, looks, model, wrong):
            tally.add(f"{wrong} wrongly, any stop", name, most, err)
    epsilon = 0.8
    made = matrices()
    tails = {}
    for name, matrix in made.items():
        leakages, q = leakage_of(matrix)
        tails[name] = float(q[leakages > epsilon].sum())
    for name, delta, wrong in claims(tails):
        cells = rng.choice(made[name].size, (runs, most), p=(PRIOR[:, None] * made[name]).ravel())
        letters, drawn = np.divmod(cells, made[name].shape[1])
        model = LevelAudit(epsilon, delta, PRIOR, CONFIDENCE)
        for err in find_errors(letters, drawn, looks, model, wrong):
            tally.add(f"{wrong} wrongly, any stop", name, most, err)
    return tally


def find_errors(
    letters: np.ndarray,
    drawn: np.ndarray,
    looks: np.ndarray,
    model: LevelAudit,
    wrong: str,
) -> np.ndarray:
    """Find the (runs,) that reach the wrong verdict before the right one, at some look."""
    runs = len(drawn)
    outcomes = int(drawn.max()) + 1
    inputs = 1 if model.prior is None else model.prior.size
    firsts = np.stack(
        [
            np.where((drawn == y).any(axis=1), (drawn == y).argmax(axis=1), 10**9)
            for y in range(outcomes)
        ],
        axis=1,
    )
    order = (1 + np.argsort(np.argsort(firsts, axis=1), axis=1)).astype(np.float64)
    verdicts = np.full(runs, "undecided", dtype=object)
    table = np.zeros((runs, outcomes, inputs))
    before = 0
    for look in looks:
        rows = np.repeat(np.arange(runs), look - before)
        part = slice(before, look)
        np.add.at(table, (rows, drawn[:, part].ravel(), letters[:, part].ravel()), 1)
        before = look
        leaky, safe = decide_outcomes(model, table, order, int(look))
        numbers = table.sum(axis=2)
        unsafe, over = (numbers * ~safe).sum(axis=1), (numbers * leaky).sum(axis=1)
        half = RISK / 2
        if model.delta == 0:
            refuted, confirmed = (leaky & (numbers > 0)).any(axis=1), np.zeros(runs, dtype=bool)
        else:
            refuted = is_below_anytime(look - over, look, 1 - model.delta, half)
            confirmed = is_below_anytime(unsafe, look, model.delta, half)
        open_still = verdicts == "undecided"
        verdicts[open_still & refuted] = "refuted"
        verdicts[open_still & ~refuted & confirmed] = "confirmed"
    return np.asarray(verdicts == wrong)


def decide_outcomes(
    model: LevelAudit, table: FloatArray, order: FloatArray, look: int
) -> tuple[np.ndarray, np.ndarray]:
    """The (runs, K) outcomes that surely leak more than the claim's level, and those that surely do not."""
    error = RISK if model.delta == 0 else RISK / 2
    if model.prior is None:
        limit = math.exp(-model.epsilon)
        counts = table[:, :, 0]
        return (
            is_below_anytime(counts, look, limit, error * limit),
            is_above_anytime(counts, look, limit, error),
        )
    shares = math.exp(model.epsilon) * PRIOR
    spent = (error / (order * (order + 1)))[:, :, None]
    draws = table.sum(axis=2, keepdims=True)
    below = shares < 1
    capped = np.where(below, shares, 0.5)
    leaky = (is_above_anytime(table, draws, capped, spent) & below).any(axis=2)
    safe = (is_below_anytime(table, draws, capped, spent) | ~below).all(axis=2)
    return np.asarray(leaky), np.asarray(safe)


def all_outcomes(counts: FloatArray, limit: float) -> float:
    """The tail from above by intervals of all outcomes, of which the list is known."""
    total = counts.sum()
    ends = binomial_intervals(counts, total - counts, RISK / (2 * len(counts)))
    return min(1.0, float(ends[1][ends[0] < limit].sum()))


def split(first: FloatArray, second: FloatArray, limit: float) -> float:
    """The tail from above with a split: half of the samples name outcomes, the others bound the rest."""
    total = first.sum()
    named = binomial_intervals(first, total - first, RISK / 2 * limit)[0] >= limit
    rest = second[~named].sum()
    return float(
        binomial_intervals(np.array([rest]), np.array([second.sum() - rest]), RISK / 2)[1][0]
    )


def widths(
    runs: int, sizes: Sequence[int], rng: np.random.Generator
) -> dict[tuple[str, int], list[float]]:
    """The mean upper bounds on the tail, by program and number of samples."""
    found = {}
    # intervals of 50,000 outcomes take seconds, and bound nothing
    for name, law in [(name, law) for name, law in laws().items() if len(law) < 1_000]:
        for samples in sizes:
            every = []
            for _ in range(runs):
                halves = [rng.multinomial(samples // 2, law).astype(float) for _ in range(2)]
                counts = halves[0] + halves[1]
                seen = counts[counts > 0]
                audit = LevelAudit(EPSILON, 0.5, confidence=CONFIDENCE, deterministic=True)
                audit.add_samples(np.repeat(np.arange(len(seen)), seen.astype(int)).tolist())
                every.append([
                    bound_counts(seen[:, None].astype(int), None).bound_tail(EPSILON)[1],
                    audit.bound_tail(EPSILON)[1], all_outcomes(counts, LIMIT),
                    split(halves[0], halves[1], LIMIT),
                ])  # fmt: skip
            found[name, samples] = [tail_of(law, EPSILON), *np.mean(every, axis=0).tolist()]
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Count, print both tables and draw the widths."""
    parser = suite_parser(__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=64)
    arguments = parser.parse_args(argv)
    print(machine())
    runs = 5 if arguments.quick else arguments.runs
    sizes = [300] if arguments.quick else [300, 3_000]
    wide = (100, 1_000) if arguments.quick else (100, 1_000, 10_000, 100_000)
    most = 200 if arguments.quick else 2_000
    *fixed, stopped, wider = np.random.default_rng(arguments.seed).spawn(len(sizes) + 2)
    with ProcessPoolExecutor() as pool:
        # each part has numbers of its own, so that the order of their ends does not matter
        found_soon = pool.submit(widths, 1 if arguments.quick else 1_000, wide, wider)
        parts = [
            pool.submit(count_fixed, runs, n, rng) for n, rng in zip(sizes, fixed, strict=True)
        ]
        parts.append(pool.submit(count_stopped, runs, most, stopped))
        tally = Tally()
        for part in parts:
            tally.wrong |= part.result().wrong
        found = found_soon.result()
    report(arguments.out, "program_audits", HEAD, tally.rows())
    report(arguments.out, "program_audits-errors", *list_largest(tally.rows()))
    rows = [
        [name, f"{samples:,}", *(f"{value:.4g}" for value in values)]
        for (name, samples), values in found.items()
    ]
    report(arguments.out, "program_audits-widths", WIDTHS, rows)
    if arguments.out is not None:
        write_machine(arguments.out, "program_audits", runs=runs, seed=arguments.seed)
        name = "rare of 1e-5"
        drawn = {
            title: (
                [float(samples) for samples in wide],
                [found[name, samples][k] for samples in wide],
            )
            for k, title in enumerate(WIDTHS[2:])
        }
        save_figure(
            growth_figure(drawn, "tail, from above", "samples"),
            arguments.out / "program_audits.png",
        )


if __name__ == "__main__":
    main()
