"""Streams beside independent releases of the same guarantee, and beside what no policy can better.

The secret is which third of its month's range the sea surface off Peru is in, cold, usual or warm: a chain of
732 months (El Nino data of statsmodels). Each state is released, and no output sequence tells more than
epsilon of any state, in three ways: a stream whose first releases may use nine tenths of epsilon, one whose
caps grow evenly, and randomized response at LDP epsilon / T, which is what people use today. The bound is
the mean loss of designs that may use all of epsilon for one state each. Losses are the mean share of months
that are told wrong (Hamming), over runs drawn from the chain.

    python benchmarks/streams.py [--out FOLDER] [--quick]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from common import machine, report, suite_parser

from pmlopt import PML
from pmlopt.data.chain import Chain
from pmlopt.releases import Stream, linear_caps, stream_bounds

HEAD = ("epsilon", "steps", "bound", "stream", "growing caps", "LDP epsilon / T", "highest level")


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
    known: dict[tuple[object, ...], Stream] = {(): Stream(chain, PML(epsilon), "hamming", caps=caps)}
    for _ in range(runs):
        now, state = known[()], rng.choice(chain.size, p=chain.initial)
        for time in range(1, steps + 1):
            losses.append(now.solve().value)
            draws = now.copy()
            draws.release(chain.labels[state], rng)
            now = known.setdefault(draws.history, draws)
            state = rng.choice(chain.size, p=chain.kernel(time)[state])
        highest = max(highest, *now.levels)
    return float(np.mean(losses)), highest


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
            grown, more = told_wrong(chain, epsilon, linear_caps(0.9 * epsilon, steps, 0.3), steps, runs)
            alone = 2 / (np.exp(epsilon / steps) + 2)
            row = (bound, plain, grown, alone, max(highest, more))
            rows.append([f"{epsilon:g}", f"{steps}", *(f"{value:.3f}" for value in row)])
    report(arguments.out, "streams", HEAD, rows)


if __name__ == "__main__":
    main()
