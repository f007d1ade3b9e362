"""The Blackwell order: factorised and random pairs, each verdict checked by its witness."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pmlopt import Mechanism, is_less_informative
from pmlopt.errors import InputError, MechanismError
from pmlopt.model.closed_forms import randomized_response
from pmlopt.programs import InformationOrder

Rows = list[list[Fraction]]

PAIRS = 500


def draw_rows(rng: np.random.Generator, inputs: int, outputs: int) -> Rows:
    """Draw a mechanism of small fractions with many zeros."""
    rows = []
    for _ in range(inputs):
        weights = rng.integers(0, 12, outputs) * (rng.random(outputs) > 0.3)
        weights[rng.integers(outputs)] += 1
        rows.append([Fraction(int(weight), int(weights.sum())) for weight in weights])
    return rows


def multiply(left: Rows, right: Rows) -> Rows:
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*right, strict=True)]
            for row in left]  # fmt: skip


def check_witness(found: InformationOrder, less: Rows, more: Rows) -> None:
    """Check the witness by the definitions, with numbers of the test only."""
    if found.holds:
        assert found.processing is not None
        kernel = [list(row) for row in found.processing]
        assert all(sum(row) == 1 and min(row) >= 0 for row in kernel)
        made = multiply(more, kernel)
        distances = [
            sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2
            for one, other in zip(less, made, strict=True)
        ]
        assert max(distances) == found.distance
        assert max(distances) <= found.tolerance
        return
    assert found.gain is not None
    guesses = range(len(found.gain[0]))

    def earn(mechanism: Rows) -> Fraction:
        """Compute what the best guess given each output earns."""
        total = Fraction(0)
        for column in zip(*mechanism, strict=True):
            total += max(
                sum(
                    (
                        share * gains[z]
                        for share, gains in zip(column, found.gain or (), strict=True)
                    ),
                    Fraction(0),
                )
                for z in guesses
            )
        return total

    assert sum(map(max, found.gain)) <= 1
    assert earn(less) - earn(more) > found.tolerance


@pytest.mark.parametrize("block", range(5))
def test_every_verdict_has_its_witness(block: int) -> None:
    rng = np.random.default_rng(block)
    decided = {True: 0, False: 0}
    for k in range(PAIRS // 5):
        n, m, outputs = rng.integers(2, 6, 3).tolist()
        more = draw_rows(rng, n, m)
        is_factorised = k % 2 == 0
        less = (
            multiply(more, draw_rows(rng, m, outputs))
            if is_factorised
            else draw_rows(rng, n, outputs)
        )
        found = is_less_informative(less, more)
        assert found.tolerance == 0
        check_witness(found, less, more)
        assert found.check()
        if is_factorised:
            assert found
        decided[found.holds] += 1
    assert min(decided.values()) > 30


@pytest.mark.parametrize("seed", range(20))
def test_floats_that_are_a_processing_up_to_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    more, kernel = rng.dirichlet(np.ones(4), 3), rng.dirichlet(np.ones(5), 4)
    found = is_less_informative(more @ kernel, more)
    assert found
    assert found.check()
    assert found.distance is not None
    assert found.distance < 1e-8
    exact = [[Fraction(entry) for entry in row] for row in (more @ kernel).tolist()]
    check_witness(found, exact, [[Fraction(entry) for entry in row] for row in more.tolist()])
    assert not is_less_informative(np.eye(3), more)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_randomized_response_is_ordered_by_its_level(size: int) -> None:
    weak, strong = (randomized_response(size, level) for level in (0.5, 1.5))
    assert is_less_informative(weak, strong)
    assert not is_less_informative(strong, weak)
    assert is_less_informative(weak, weak)
    assert is_less_informative(np.full((size, 2), 0.5), weak)
    assert is_less_informative(weak, np.eye(size))


@pytest.mark.parametrize(("first", "second"), list(itertools.product(range(0, 11, 2), repeat=2)))
def test_binary_symmetric_channels_by_their_crossover(first: int, second: int) -> None:
    """BSC(a) is a processing of BSC(b) iff a is between b and 1 - b; the deficiency is known, too."""
    a, b = Fraction(first, 10), Fraction(second, 10)
    less, more = ([[1 - share, share], [share, 1 - share]] for share in (a, b))
    found = is_less_informative(less, more)
    assert found.holds == (min(b, 1 - b) <= a <= max(b, 1 - b))
    if not found.holds:
        # the nearest symmetric channel that is a processing has the crossover b, or 1 - b
        assert float(found.separation or 0) == pytest.approx(
            min(abs(a - b), abs(a - (1 - b))), abs=1e-8
        )


def test_two_mechanisms_that_are_not_ordered() -> None:
    """One separates the letter a, the other b: neither is a processing of the other."""
    first, second = [[1, 0], [0, 1], [0, 1]], [[0, 1], [1, 0], [0, 1]]
    for less, more in ((first, second), (second, first)):
        found = is_less_informative(less, more)
        assert not found
        # the best prior puts half on the letter: a certain guess against the chance of one half
        assert found.separation == Fraction(1, 2)
        assert found.check()


def test_a_witness_that_was_changed_proves_nothing() -> None:
    from dataclasses import replace

    response = [["3/4", "1/4"], ["1/4", "3/4"]]
    found = is_less_informative([["5/8", "3/8"], ["3/8", "5/8"]], response)
    assert found.processing is not None
    assert not replace(found, processing=found.processing[::-1]).check()
    assert not replace(found, holds=False).check()
    apart = is_less_informative([[1, 0], [0, 1]], response)
    assert apart.check()
    assert apart.gain is not None
    assert not replace(apart, gain=apart.gain[::-1]).check()
    doubled = tuple(tuple(2 * entry for entry in row) for row in apart.gain)
    assert not replace(apart, gain=doubled).check()
    assert not replace(apart, gain=None).check()


@pytest.mark.parametrize(("less", "more", "words"), [
    ([[1, 0]], [[1, 0], [0, 1]], "1 and 2 letters, or"), ([["1/2", "1/3"]], [[1]], "sums to 5/6"),
    ([[0.5, 0.6]], [[1]], "sum"), ([[1, 0], [1]], [[1], [1]], "regular table"), ([[-1, 2]], [[1]], "-1"),
    ([["a", "b"]], [[1]], "must be a number"), ([["1/2", "1/2"], ["1/2", "1/3"]], [[1], [1]], "sums to 5/6"),
    (Mechanism(np.eye(2), ("a", "b")), Mechanism(np.eye(2), ("b", "a")), "different letters"),
])  # fmt: skip
def test_mechanisms_that_cannot_be_compared(less: Any, more: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        is_less_informative(less, more)


def test_a_tolerance_that_cannot_be_meant() -> None:
    with pytest.raises(MechanismError, match="tolerance"):
        is_less_informative([[1]], [[1]], tolerance=-1)
