"""Streams beside independent releases of the same guarantee, and beside what no policy can better.

The secret is which third of its month's range the sea surface off Peru is in, cold, usual or warm: a chain of
732 months (El Nino data of statsmodels). Each state is released, and no output sequence tells more than
epsilon of any state, in three ways: a stream whose first releases may use nine tenths of epsilon, one whose
caps grow evenly, and by independent releases: the best designs for the law of each month under
LDP(epsilon / T), under PML(epsilon / T), and under LDP at the level for which the accountant of
[cao2019quantifying] for temporal correlations finds epsilon in all. The bound is the mean loss of designs
that may use all of epsilon for one state each. Losses are the mean share of months that are told wrong
(Hamming), over runs drawn from the chain; a constant output tells nothing, the most frequent state.

Then single steps over chains of twenty states that forget at once, in a few steps, and in a hundred, in
milliseconds of processor time; and a crowd at size: 100,000 people in eight states for 50 steps, with
processor time and memory.

    python benchmarks/streams.py [--out FOLDER] [--quick]
"""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence

import numpy as np
from common import machine, report, suite_parser

from pmlopt import LDP, PML, Prior, design, solve
from pmlopt.data.chain import Chain
from pmlopt.releases import Stream, StreamPopulation, linear_caps, stream_bounds

HEAD = (
    "epsilon", "steps", "bound", "stream", "growing caps", "LDP epsilon / T", "PML epsilon / T",
    "temporal LDP", "constant output", "highest level of streams",
)  # fmt: skip
STEPS = ("chain of twenty states", "steps", "median ms", "mean ms", "longest ms", "level")
CROWD = (
    "chain", "people", "steps", "histories", "wrong in the first 5", "wrong in the last 5", "level",
    "processor seconds", "peak MiB",
)  # fmt: skip


def sea() -> Chain:
    """The chain of the months, with half a month added to each count."""
    from statsmodels.datasets import elnino

    months = elnino.load_pandas().data.iloc[:, 1:].to_numpy()
    ranks = np.argsort(np.argsort(months, axis=0), axis=0)
    thirds = (3 * ranks // len(months)).ravel()
    return Chain.from_sequences([[("cold", "usual", "warm")[third] for third in thirds]], 0.5)


def told_wrong(
    chain: Chain, epsilon: float, caps: Sequence[float] | None, steps: int, runs: int
) -> tuple[float, float]:
    """The mean share of states that are told wrong, as expected given the releases, and the highest level."""
    rng = np.random.default_rng(7)
    losses, highest = [], 0.0
    known: dict[tuple[object, ...], Stream] = {
        (): Stream(chain, PML(epsilon), "hamming", caps=caps)
    }
    for _ in range(runs):
        now, state = known[()], rng.choice(chain.size, p=chain.initial)
        for step in range(1, steps + 1):
            losses.append(now.solve().value)
            draws = now.copy()
            draws.release(chain.labels[state], rng)
            now = known.setdefault(draws.history, draws)
            state = rng.choice(chain.size, p=chain.kernel(step)[state])
        highest = max(highest, *now.levels)
    return float(np.mean(losses)), highest


def growth(rows: np.ndarray, level: float) -> float:
    """What a level of one state is worth for its neighbour in time, by pairs of rows [cao2019quantifying].

    The largest `log (1 + (e^level - 1) q) / (1 + (e^level - 1) d)`, q and d the masses of a set of states in
    two rows: of all sets, those of the states with the largest ratios.
    """
    more, found = np.expm1(level), 0.0
    for one in rows:
        for other in rows:
            with np.errstate(divide="ignore", invalid="ignore"):
                order = np.argsort(-np.where(one > 0, one / other, 0.0))
            q, d = np.cumsum(one[order]), np.cumsum(other[order])
            found = max(found, float(np.log((1 + more * q) / (1 + more * d)).max()))
    return found


def temporal_level(chain: Chain, epsilon: float, steps: int) -> float:
    """The level of each of so many releases under LDP for which all tell at most epsilon of each state."""
    forward, law = chain.kernel(1), chain.stationary()
    backward = (forward * law[:, None] / law).T

    def told(each: float) -> float:
        before, after = [each], [each]
        for _ in range(steps - 1):
            before.append(growth(backward, before[-1]) + each)
            after.append(growth(forward, after[-1]) + each)
        return max(b + a - each for b, a in zip(before, reversed(after), strict=True))

    low, high = 0.0, epsilon
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if told(middle) <= epsilon else (low, middle)
    return low


def ldp_loss(chain: Chain, level: float, steps: int) -> float:
    """The mean share of states told wrong by the best designs under LDP; level 0 is a constant output."""
    law, losses = chain.initial, []
    for step in range(1, steps + 1):
        losses.append(solve(design(Prior(law, chain.labels), LDP(level), "hamming")).value)
        law = law @ chain.kernel(step)
    return float(np.mean(losses))


def step_times(name: str, kernel: np.ndarray, steps: int) -> list[str]:
    """A row of the table of single steps: each is designed, drawn and accounted for."""
    rng, n = np.random.default_rng(0), len(kernel)
    stream = Stream(Chain(np.full(n, 1 / n), kernel), PML(1.0), "hamming")
    stream.solve()  # what is imported is not counted
    state, times = 0, []
    for _ in range(steps):
        begun = time.process_time()
        stream.release(state, rng)
        times.append(1e3 * (time.process_time() - begun))
        state = rng.choice(n, p=kernel[state])
    numbers = (np.median(times), np.mean(times), np.max(times))
    return [name, f"{steps:,}", *(f"{value:.0f}" for value in numbers), f"{stream.level:.3f}"]


def kernels(n: int) -> dict[str, np.ndarray]:
    """Kernels of the chains of single steps, by how soon they forget."""
    mixing = np.random.default_rng(0).dirichlet(np.ones(n), size=n)
    line = 0.5 * np.eye(n) + 0.25 * np.eye(n, k=1) + 0.25 * np.eye(n, k=-1)
    return {
        "forgets at once": mixing,
        "stays half of the time": (np.eye(n) + mixing) / 2,
        "walks along a line": line / line.sum(axis=1, keepdims=True),
    }


def crowd_at_size(name: str, kernel: np.ndarray, people: int, steps: int) -> list[str]:
    """A row of the table of crowds."""
    rng, n = np.random.default_rng(3), len(kernel)
    chain = Chain(Chain(np.full(n, 1 / n), kernel).stationary(), kernel)
    states, ends = rng.choice(n, size=people, p=chain.initial), kernel.cumsum(axis=1)
    crowd, wrong, begun = (
        StreamPopulation(Stream(chain, PML(1.0), "hamming"), people),
        [],
        time.process_time(),
    )
    for _ in range(steps):
        wrong.append(np.mean(crowd.release(states, rng) != states))
        states = np.minimum((rng.random(people)[:, None] > ends[states]).sum(axis=1), n - 1)
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    losses = (f"{np.mean(wrong[:5]):.3f}", f"{np.mean(wrong[-5:]):.3f}")
    numbers = (f"{crowd.histories:,}", *losses, f"{crowd.level:.3f}", f"{seconds:.0f}", f"{peak:,}")
    return [name, f"{people:,}", f"{steps}", *numbers]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    arguments = suite_parser(__doc__).parse_args(argv)
    print(machine())
    chain, runs = sea(), 10 if arguments.quick else 150
    rows = []
    for epsilon in (0.5, 1.0):
        for steps in (6, 12):
            bound = float(np.mean(stream_bounds(chain, PML(epsilon), "hamming", steps)))
            plain, highest = told_wrong(chain, epsilon, None, steps, runs)
            grown, more = told_wrong(
                chain, epsilon, linear_caps(0.9 * epsilon, steps, 0.3), steps, runs
            )
            alone, temporal, constant = (
                ldp_loss(chain, each, steps)
                for each in (epsilon / steps, temporal_level(chain, epsilon, steps), 0.0)
            )
            pml = float(np.mean(stream_bounds(chain, PML(epsilon / steps), "hamming", steps)))
            row = (bound, plain, grown, alone, pml, temporal, constant, max(highest, more))
            rows.append([f"{epsilon:g}", f"{steps}", *(f"{value:.3f}" for value in row)])
    report(arguments.out, "streams", HEAD, rows)
    count = 5 if arguments.quick else 200
    times = [step_times(name, kernel, count) for name, kernel in kernels(20).items()]
    report(arguments.out, "stream steps", STEPS, times)
    people, steps = (200, 3) if arguments.quick else (100_000, 50)
    mixing = np.random.default_rng(0).dirichlet(np.ones(8), size=8)
    report(arguments.out, "crowds", CROWD, [crowd_at_size("forgets fast", mixing, people, steps)])


if __name__ == "__main__":
    main()
