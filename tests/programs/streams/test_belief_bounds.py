"""Streams over kernels that are known within bounds, and which of the bounds of a belief are kept."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.streams import followed, random_chain
from scipy.optimize import linprog

from pmlopt import PML, Chain, ExpectedLoss, Stream
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.programs.streams.belief import _find_needed_rows


def kernel_within(rng: np.random.Generator, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """A kernel within the bounds, often at their ends."""
    found = np.where(rng.random(lower.shape) < 0.5, lower, upper)
    for row, low, high in zip(found, lower, upper, strict=True):
        for x in rng.permutation(len(row)):
            row[x] = np.clip(row[x] + 1 - row.sum(), low[x], high[x])
    return found


@pytest.mark.parametrize("kind", ["plain", "zeros", "absorbing", "by step"])
def test_bounds_that_meet_are_the_belief_itself(kind: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(2):
        chain = random_chain(rng, 3, 5, kind)
        loss, caps = ExpectedLoss(rng.uniform(size=(3, 3))), [0.3, 0.6]
        exact = Stream(chain, PML(0.7), loss, caps=caps)
        same = Chain(chain.initial, chain.kernels, over=(chain.kernels, chain.kernels))
        bounded = Stream(same, PML(0.7), loss, caps=caps)
        for _ in range(4):
            # a value is proved up to the gap that is allowed, by default 1e-7 of the scale of the loss: where
            # the two programs end at different vertices, only values proved more closely can be compared
            proved = [stream.solve(gap=1e-10) for stream in (bounded, exact)]
            assert [result.status for result in proved] == ["optimal", "optimal"]
            assert proved[0].value == pytest.approx(proved[1].value, abs=1e-9)
            mechanism = exact.mechanism
            output = mechanism.outputs[
                rng.choice(mechanism.shape[1], p=exact.law.pmf @ mechanism.matrix)
            ]
            exact.record(output)
            bounded.record(output, mechanism)
            assert bounded.level == pytest.approx(exact.level, abs=1e-12)


@pytest.mark.parametrize("radius", [0.02, 0.5])
def test_no_kernel_within_the_bounds_is_told_more_of(radius: float) -> None:
    rng, told = np.random.default_rng(5), 0
    for _ in range(3):
        chain, epsilon = random_chain(rng, 3, 4, "plain"), float(rng.uniform(0.3, 1.2))
        lower = np.maximum(chain.kernels[0] - radius, 0)
        upper = np.minimum(chain.kernels[0] + radius, 1)
        set_of = Chain(chain.initial, chain.kernels, over=(lower, upper))
        stream = Stream(set_of, PML(epsilon), "hamming")
        for after, _ in followed(stream, 3):
            told += len(after.mechanism.outputs) > 1
            for _ in range(5):
                kernels = np.stack([kernel_within(rng, lower, upper) for _ in range(2)])
                other = after.replay_under(Chain(chain.initial, [*kernels, kernels[0]]))
                assert other.level <= epsilon + 1e-12
                for known, bound in zip(other.levels, after.levels, strict=True):
                    assert known <= bound + 1e-12
                for time, bound in after.worst_levels.items():
                    assert other.worst_levels[time] <= bound + 1e-12
    assert told > 6


def test_what_cannot_be_meant_is_refused() -> None:
    kernel = np.array([[0.9, 0.1], [0.2, 0.8]])
    within = Chain([0.5, 0.5], kernel, over=(kernel - 0.1, np.minimum(kernel + 0.1, 1)))
    with pytest.raises(PrivacyError, match="for such a chain it is 'state'"):
        Stream(within, PML(1.0), "hamming", "path")
    for over, message in (
        ((kernel + 0.05, kernel + 0.1), "not within"),
        ((kernel, kernel[:1]), "two arrays"),
        ((kernel - 0.2, kernel), "not within"),
    ):
        with pytest.raises(PriorError, match=message):
            Chain([0.5, 0.5], kernel, over=over)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_that_are_left_out_follow_from_those_that_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(4))
    given = rng.dirichlet(np.full(4, 0.7), size=12) * (rng.random((12, 4)) > 0.2)
    rows = np.exp(-rng.uniform(0.1, 1.0, 12))[:, None] * given - law
    rows = np.vstack([rows, 0.5 * rows[:4], rows[:2] - rng.random((2, 4)) * law])
    kept = _find_needed_rows(rows)
    assert not kept.all()
    for row in rows[~kept]:
        most = linprog(-row, rows[kept], np.zeros(kept.sum()), np.ones((1, 4)), [1.0])
        assert -most.fun <= 1e-12


def test_of_equal_bounds_one_is_kept() -> None:
    assert _find_needed_rows(np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])).sum() == 2
