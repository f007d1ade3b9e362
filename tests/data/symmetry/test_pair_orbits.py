"""Orbits of pairs: the same as by applying every permutation of the group, with the same sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.symmetry import Pair, closure, group_orbits, record_orbits

from pmlopt import CirclePrior, IIDPrior, InvariantPrior, Prior
from pmlopt.data.symmetry import PairSpace, ProductPrior, reflection, rotation
from pmlopt.data.symmetry.prior import take_entries
from pmlopt.errors import MechanismError, PriorError, UtilityError


def places_of(space: PairSpace) -> dict[Pair, int]:
    """The orbit of each pair of labels, by the space's own word."""
    xs, ys = space.list_letters(), space.list_letters(outputs=True)
    letters, outputs = space.decode_labels(xs, letters=True), space.decode_labels(ys)
    pairs = np.divmod(np.arange(len(letters) * len(outputs)), len(outputs))
    places = space.pair_orbits(take_entries(xs, pairs[0]), take_entries(ys, pairs[1]))
    return {(letters[x], outputs[y]): int(c) for x, y, c in zip(*pairs, places, strict=True)}


def check(space: PairSpace, wanted: dict[Pair, frozenset[Pair]]) -> None:
    """The orbits, their sizes, and the representatives are those that are wanted."""
    places, orbits = places_of(space), space.orbits
    assert orbits.is_consistent
    assert places.keys() == wanted.keys()
    assert len(set(places.values())) == len(set(wanted.values())) == orbits.count
    for pair, orbit in wanted.items():
        assert {places[other] for other in orbit} == {places[pair]}
    sizes = Counter(places.values())
    for place, (n, m) in enumerate(zip(orbits.counts, orbits.multiplicities, strict=True)):
        assert sizes[place] == n * orbits.outputs[orbits.output[place]]
        assert sizes[place] == m * orbits.letters[orbits.letter[place]]
    xs, ys = space.choose_representatives()
    assert space.pair_orbits(xs, ys).tolist() == list(range(orbits.count))
    xs, ys = space.draw_images(np.random.default_rng(0))
    assert space.pair_orbits(xs, ys).tolist() == list(range(orbits.count))
    assert space.letter_orbits(xs).tolist() == orbits.letter.tolist()
    assert len(set(space.pair_names)) == orbits.count


@pytest.mark.parametrize(
    ("inputs", "outputs", "records"), [(2, 2, 4), (3, 3, 2), (3, 2, 3), (2, 4, 2), (1, 2, 3)]
)
def test_orbits_of_tables_are_those_under_all_permutations(
    inputs: int, outputs: int, records: int
) -> None:
    check(
        IIDPrior(Prior.uniform(inputs), records).make_pairs((inputs, outputs)),
        record_orbits(inputs, outputs, records),
    )


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("reflections", [True, False])
def test_orbits_on_a_circle_are_those_of_the_dihedral_or_the_cyclic_group(
    size: int, reflections: bool
) -> None:
    generators = [rotation(size), reflection(size)] if reflections else [rotation(size)]
    check(CirclePrior(size, reflections).make_pairs(), group_orbits(generators))


@given(st.integers(2, 7), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_orbits_of_generators_are_those_of_the_group_that_they_make(
    size: int, several: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    moves = [rng.permutation(size).tolist() for _ in range(several)]
    if len(closure(moves)) < 200:
        check(InvariantPrior(Prior.uniform(size), moves).make_pairs(), group_orbits(moves))


def test_orbits_of_a_product_are_those_of_its_parts() -> None:
    parts = IIDPrior([0.5, 0.5], 2).make_pairs(), CirclePrior(4).make_pairs()
    several = [places_of(part) for part in parts]
    both = places_of(ProductPrior(IIDPrior([0.5, 0.5], 2), CirclePrior(4)).make_pairs())
    by_parts: dict[Any, int] = {}
    for (x, y), place in both.items():
        own = tuple(known[a, b] for known, a, b in zip(several, x, y, strict=True))
        assert by_parts.setdefault(own, place) == place
    assert (
        len(by_parts)
        == len(set(by_parts.values()))
        == parts[0].orbits.count * parts[1].orbits.count
    )
    assert ProductPrior(IIDPrior([0.5, 0.5], 2), CirclePrior(4)).make_pairs().orbits.is_consistent


def test_outputs_may_be_no_letters() -> None:
    flip = ([1, 0], [2, 1, 0])
    space = InvariantPrior([0.5, 0.5], [flip], outputs=["low", "either", "high"]).make_pairs()
    assert space.orbits.outputs == (2, 1)
    assert space.orbits.counts == (1, 1, 2)
    assert space.pair_names == [(0, "low"), (0, "high"), (0, "either")]


@pytest.mark.parametrize(
    "prior",
    [
        IIDPrior([0.75, 0.25], 3),
        CirclePrior(5),
        ProductPrior(IIDPrior([0.75, 0.25], 2), CirclePrior(3)),
    ],
)
def test_a_symmetric_prior_is_a_prior(prior: Any) -> None:
    plain, orbits = prior.listed(), prior.make_pairs().orbits
    assert prior.size == plain.size == len(prior.labels)
    assert prior.pmf.tolist() == plain.pmf.tolist()
    space = prior.make_pairs()
    of = space.letter_orbits(space.list_letters())
    assert plain.labels == tuple(space.decode_labels(space.list_letters(), letters=True))
    wanted = np.array(orbits.masses) / np.array(orbits.letters, dtype=float)
    assert np.abs(plain.pmf - wanted[of]).max() < 1e-15


def test_probabilities_are_exact_in_whole_numbers() -> None:
    law = Prior.from_counts([7, 3])
    orbits = IIDPrior(law, 40).make_pairs().orbits
    assert orbits.total == 10**40
    assert orbits.weights[3] == 7**3 * 3**37
    assert sum(n * w for n, w in zip(orbits.letters, orbits.weights, strict=True)) == 10**40


HALVES: Any = [0.5, 0.5]
NOT_LISTS: list[tuple[Any, Any]] = [(None, None), (5, None), ([], 5)]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: IIDPrior(HALVES, 0), PriorError, "whole number"),
        (lambda: IIDPrior(Prior.uniform(5), 30).make_pairs(), PriorError, "orbits of pairs"),
        (lambda: IIDPrior(HALVES, 4).make_pairs((2, 10**9)), PriorError, "orbits of pairs"),
        (lambda: IIDPrior(HALVES, 4).make_pairs((2, 10**30)), PriorError, "orbits of pairs"),
        (lambda: IIDPrior(HALVES, 4).make_pairs((2, 0)), PriorError, "whole number"),
        (lambda: IIDPrior([1.0], 10**12).make_pairs(), PriorError, "up to 10000 records"),
        (lambda: CirclePrior(10**9), PriorError, "orbits of pairs"),
        (lambda: IIDPrior(HALVES, 17).labels, PriorError, "listed up to"),
        *((lambda move=move: InvariantPrior(HALVES, [move]), PriorError, "no permutation")
          for move in ([0, 0], [[0], [0, 1]], 5)),
        *((lambda both=both: InvariantPrior(HALVES, *both), PriorError, "give a list") for both in NOT_LISTS),
        (lambda: InvariantPrior([0.3, 0.5, 0.2], [[0, 2, 1]]), PriorError,
         r"the letter 1 of probability 0\.5 to 2"),
        # not even by one unit in the last place
        (lambda: InvariantPrior([0.25, 0.25, 0.25, np.nextafter(0.25, 1)], [rotation(4)]), PriorError,
         "not invariant"),
        (lambda: InvariantPrior(HALVES, [[1, 0]], outputs=["a", "b"]), PriorError, "pair of a permutation"),
        (lambda: InvariantPrior(Prior(HALVES, ["a", "b"]), [{"a": "c"}]), PriorError, "moves 'c'"),
        (ProductPrior, PriorError, "symmetric priors"),
        (lambda: IIDPrior(HALVES, 2).make_pairs((3, 3)), UtilityError, "on 2"),
        (lambda: CirclePrior(4).make_pairs((5, 5)), UtilityError, "the circle has 4"),
        (lambda: IIDPrior([1 - 1e-10, 1e-10], 31).make_pairs(), PriorError, "below 1e-300"),
        (lambda: IIDPrior(HALVES, 3).make_pairs().encode_labels([[0, 1]]), MechanismError, "one row of 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
