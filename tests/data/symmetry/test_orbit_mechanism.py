"""Mechanisms by orbit: exact entries, samples of the right law, files."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pmlopt import CirclePrior, IIDPrior, InvariantPrior, Mechanism, Prior, leakage_level
from pmlopt.data.sampling.categorical import SeededBits, SystemBits, Words
from pmlopt.data.symmetry import OrbitMechanism, PairSpace, ProductPrior, reflection
from pmlopt.data.symmetry.independent import shuffle_within_letters
from pmlopt.errors import FileFormatError, MechanismError

FALSE_ALARM = 1e-6
"""The probability with which each test of a sample fails though the law is right."""

SPACES = [
    IIDPrior([0.7, 0.3], 3).make_pairs(),
    IIDPrior(Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), 2).make_pairs((3, 2)),
    CirclePrior(6).make_pairs(),
    CirclePrior(5, reflections=False).make_pairs(),
    InvariantPrior(Prior([0.1, 0.2, 0.4, 0.2, 0.1], list("abcde")), [reflection(5)]).make_pairs(),
    ProductPrior(IIDPrior([0.7, 0.3], 2), CirclePrior(3)).make_pairs(),
]


def random_mechanism(space: PairSpace, seed: int = 0, bits: int = 30) -> OrbitMechanism:
    """Random masses, some of them zero."""
    rng = np.random.default_rng(seed)
    masses = rng.integers(0, 1000, size=space.orbits.count) * rng.integers(
        0, 2, size=space.orbits.count
    )
    numbers = masses.tolist()
    for letter in range(len(space.orbits.letters)):
        own = np.flatnonzero(space.orbits.letter == letter)
        numbers[own[-1]] += (1 << bits) - sum(numbers[k] for k in own)
    return OrbitMechanism(space, numbers, 1 << bits)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: repr(space.prior))
def test_the_matrix_has_the_exact_entries_and_files_give_it_back(
    space: PairSpace, tmp_path: Path
) -> None:
    mechanism, path = random_mechanism(space), tmp_path / "m.json"
    inputs, outputs = mechanism.inputs, mechanism.outputs
    for x, row in zip(inputs, mechanism.matrix, strict=True):
        exact = [mechanism.probability(x, y) for y in outputs]
        assert sum(exact, Fraction(0)) == 1
        assert row.tolist() == [float(value) for value in exact]
    plain = mechanism.listed()
    assert type(plain) is Mechanism
    assert leakage_level(space.prior, mechanism) == leakage_level(space.prior, plain)
    mechanism.save(path, {"note": 1})
    back = OrbitMechanism.load(path)
    assert (back.masses, back.total, back.space) == (mechanism.masses, mechanism.total, space)
    assert (back.inputs, back.outputs) == (inputs, outputs)
    assert back.space.orbits.weights == space.orbits.weights
    with pytest.raises(FileFormatError, match=r"use \.json"):
        mechanism.save(tmp_path / "m.csv")


@pytest.mark.parametrize("space", SPACES, ids=lambda space: repr(space.prior))
def test_samples_have_the_law_of_the_matrix(space: PairSpace) -> None:
    """Chi-square against the row of each letter; each fails once in 10^6."""
    mechanism, draws = random_mechanism(space, seed=1, bits=14), 1000
    inputs, outputs, bits = mechanism.inputs, mechanism.outputs, Counted(np.random.default_rng(5))
    values = [letter for letter in inputs for _ in range(draws)]
    where = {label: place for place, label in enumerate(outputs)}
    seen = np.array([where[label] for label in mechanism.sample(values, seed=bits).tolist()])
    assert bits.drawn >= len(values)  # all of a draw comes from the bits that are given
    for row, places in zip(mechanism.matrix, seen.reshape(len(inputs), draws), strict=True):
        counts = np.bincount(places, minlength=len(outputs))
        assert counts[row == 0].sum() == 0
        likely = row > 0
        if likely.sum() > 1:
            test = stats.chisquare(counts[likely], draws * row[likely] / row[likely].sum())
            assert test.pvalue > FALSE_ALARM / len(inputs)


def test_tables_of_24_records_are_released_by_their_orbits() -> None:
    """The mean number of changed records of 2^15 draws is within six standard errors of its expectation."""
    space = IIDPrior([0.7, 0.3], 24).make_pairs()
    mechanism, draws = random_mechanism(space, seed=3), 2**15
    rng = np.random.default_rng(7)
    letters = (rng.random((draws, 24)) < 0.3).astype(np.int8)
    changed = (mechanism.sample_array(letters, seed=8) != letters).sum(axis=1)
    orbits, distance = space.orbits, space.tables[:, 0, 1] + space.tables[:, 1, 0]
    wanted = (orbits.masses[orbits.letter] * mechanism.mass_fractions) @ distance
    assert abs(changed.mean() - wanted) < 6 * changed.std() / np.sqrt(draws)


def test_files_that_hold_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    random_mechanism(CirclePrior(4).make_pairs()).save(path)
    text = path.read_text()
    for edited, message in (
        (text[:-20], "whole JSON"),
        (text.replace("pmlopt-orbit-mechanism", "other"), "has format 'other'"),
        (text.replace('"circle"', '"square"'), "space.kind is 'square'"),
        (text.replace('"total": "1', '"total": "2'), "do not sum to"),
        (text.replace('"size": 4', '"size": 0'), r"space\.prior\.size is 0"),
    ):
        path.write_text(edited)
        with pytest.raises(FileFormatError, match=message):
            OrbitMechanism.load(path)


def test_what_is_no_letter_or_mechanism_is_refused() -> None:
    space = CirclePrior(4).make_pairs()
    for masses in ([2, 1, 0], [5, -1, 0], [2, 2]):
        with pytest.raises(MechanismError):
            OrbitMechanism(space, masses, 4)
    mechanism = random_mechanism(space)
    with pytest.raises(MechanismError, match="no letters"):
        mechanism.sample([4])
    tables = random_mechanism(IIDPrior(Prior([0.5, 0.5], ["a", "b"]), 2).make_pairs())
    with pytest.raises(MechanismError, match="'c'"):
        tables.sample([("a", "c")])
    large = random_mechanism(IIDPrior([0.5, 0.5], 40).make_pairs())
    with pytest.raises(MechanismError, match="listed up to"):
        _ = large.matrix
    assert large.probability((0,) * 40, (1,) * 40) >= 0


def test_words_on_a_sum_are_decided_by_more_bits() -> None:
    """A third is between two words: the one below it goes to the first a third of the time."""
    space = CirclePrior(5).make_pairs()
    mechanism = OrbitMechanism(space, [1, 0, 2], 3)
    own = np.arange(3)
    word = 2**64 // 3
    bits = SeededBits(np.random.default_rng(4))
    drawn = np.array([mechanism._resolve_orbit(own, word, bits) for _ in range(3000)])
    assert set(drawn.tolist()) == {0, 2}
    assert abs((drawn == 0).mean() - 1 / 3) < 6 * np.sqrt(2 / 9 / 3000)  # fails once in 10^8
    assert mechanism._resolve_orbit(own, word - 1, bits) == 0
    assert mechanism._resolve_orbit(own, word + 1, bits) == 2


class Counted(SeededBits):
    """Bits of a seed, counted."""

    def __init__(self, generator: np.random.Generator) -> None:
        super().__init__(generator)
        self.drawn = 0

    def draw_words(self, size: int) -> Words:
        self.drawn += size
        return super().draw_words(size)


def test_orders_within_a_letter_are_exactly_as_likely() -> None:
    """Words of two bits tie often: rows with ties are drawn again, so that no order is favoured."""

    class Short(SeededBits):
        def draw_words(self, size: int) -> Words:
            return super().draw_words(size) & np.uint64(0xC000000000000000)

    letters = np.zeros((60_000, 3), dtype=np.int16)
    order = shuffle_within_letters(letters, 1, Short(np.random.default_rng(8)))
    counts = np.unique(order, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    mixed = np.array([[1, 0, 1, 0]] * 50, dtype=np.int16)
    assert (
        np.take_along_axis(mixed, shuffle_within_letters(mixed, 2, SystemBits()), axis=1)
        == [0, 0, 1, 1]
    ).all()


def test_labels_that_are_tuples_or_of_mixed_kinds_survive(tmp_path: Path) -> None:
    for labels in ([("a", 1), ("b", 2)], [1, "b"]):
        mechanism = random_mechanism(IIDPrior(Prior([0.7, 0.3], labels), 2).make_pairs())
        mechanism.save(tmp_path / "orbits.json")
        again = OrbitMechanism.load(tmp_path / "orbits.json")
        assert again.inputs == mechanism.inputs
        values = [(labels[0], labels[1]), (labels[1], labels[1])]
        assert again.sample(values, seed=3).tolist() == mechanism.sample(values, seed=3).tolist()
    with pytest.raises(MechanismError, match="'c' is none of the letters"):
        mechanism.sample([(1, "c")])
    with pytest.raises(MechanismError, match="as many for each"):
        mechanism.sample([(1, "b"), (1,)])
    assert mechanism.sample([]).tolist() == []
