"""The best split of a total, against all splits on a grid and against what calculus says."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt.errors import InputError, PrivacyError, ProgramError
from pmlopt.releases import best_split

Answer = SimpleNamespace


def exact(loss: Callable[[float], float]) -> Callable[[float], Answer]:
    return lambda level: Answer(value=loss(level), bound=loss(level))


def test_convex_losses_have_equal_slopes() -> None:
    # min sum w e^-x with sum x = T: x = log w + c
    total, weights = 3.0, (1.0, 2.0, 4.0)
    shift = (total - sum(map(math.log, weights))) / len(weights)
    known = len(weights) * math.exp(-shift)
    found = best_split(
        [exact(lambda x: math.exp(-x))] * len(weights), total, weights, tolerance=5e-3
    )
    assert found.bound <= known <= found.value
    assert found.gap <= 5e-3 * found.value
    assert math.fsum(found.levels) <= total
    assert found.levels == pytest.approx([math.log(w) + shift for w in weights], abs=0.1)
    assert [answer.value for answer in found.answers if answer is not None] == pytest.approx(
        [math.exp(-level) for level in found.levels]
    )


def test_concave_losses_are_best_spent_on_one_release() -> None:
    gain = exact(lambda x: math.exp(x) / 10)
    found = best_split([gain, gain, gain], 1.5, maximised=True)
    assert sorted(found.levels) == [0.0, 0.0, 1.5]
    assert found.value == pytest.approx((2 + math.exp(1.5)) / 10)
    assert found.bound >= found.value

    def loss(least: float, level: float) -> Answer:
        value = math.exp(-level) if level >= least else math.inf
        return Answer(value=value, bound=value)

    # a search goes on while nothing finite is found: the even split of 1 can do nothing for the first
    found = best_split([partial(loss, 0.7), partial(loss, 0.1)], 1.0)
    assert math.isfinite(found.value)
    assert found.gap <= 1e-2 * found.value


steps = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(st.lists(steps, min_size=1, max_size=3), st.floats(0, 0.2))
def test_every_split_on_a_grid_is_within_the_bound(
    drops: list[list[tuple[float, float]]], unproved: float
) -> None:
    """Losses that fall by jumps, with bounds that are not sharp."""

    def value(drop: list[tuple[float, float]], level: float) -> float:
        return 5.0 - sum(fall for at, fall in drop if level >= at)

    def answer(drop: list[tuple[float, float]], level: float) -> Answer:
        return Answer(value=value(drop, level), bound=value(drop, level) - unproved)

    curves = [partial(value, drop) for drop in drops]
    solvers = [partial(answer, drop) for drop in drops]
    found = best_split(solvers, 1.0, tolerance=1e-2, most_solves=60)
    assert math.fsum(found.levels) <= 1.0
    assert found.value == pytest.approx(
        sum(curve(x) for curve, x in zip(curves, found.levels, strict=True))
    )
    grid = np.linspace(0, 1, 9)
    for levels in itertools.product(grid, repeat=len(curves)):
        if sum(levels) <= 1.0:
            assert (
                sum(curve(x) for curve, x in zip(curves, levels, strict=True))
                >= found.bound - 1e-12
            )


@pytest.mark.parametrize(("releases", "total"), [(3, 1.55), (3, 0.1), (5, 2.3)])
def test_the_even_split_fits_where_nothing_can_be_done_at_zero(releases: int, total: float) -> None:
    def loss(level: float) -> Answer:
        if level == 0:
            raise ProgramError("nothing can be designed")
        return Answer(value=math.exp(-level), bound=math.exp(-level))

    found = best_split([loss] * releases, total)
    assert found.value == pytest.approx(releases * math.exp(-total / releases), rel=1e-2)
    assert min(found.levels) > 0
    assert sum(map(Fraction, found.levels)) <= Fraction(total)


def test_levels_never_exceed_the_total_in_exact_sums() -> None:
    rng = random.Random(3)
    for _ in range(12):
        rates = [rng.uniform(0.2, 3) for _ in range(rng.randint(2, 5))]
        total = rng.choice([1e-3, 1.0, 1e3]) * rng.random()
        losses = [
            exact(partial(lambda rate, x: math.exp(-rate * x), rate / total)) for rate in rates
        ]
        found = best_split(losses, total, most_solves=60)
        assert sum(map(Fraction, found.levels)) <= Fraction(total)
        assert found.bound <= found.value


def test_bad_splits_are_refused() -> None:
    loss = exact(lambda x: -x)
    with pytest.raises(PrivacyError, match="above 0"):
        best_split([loss], 0.0)
    with pytest.raises(InputError, match="no release"):
        best_split([], 1.0)
    for weights in ([1.0], [1.0, -1.0], [1.0, 0.0]):
        with pytest.raises(InputError, match="weight"):
            best_split([loss, loss], 1.0, weights)

    def refuses(level: float) -> Answer:
        raise ProgramError("nothing can be designed")

    with pytest.raises(ProgramError):
        best_split([refuses], 1.0)
