"""Group-invariant priors whose letters need not be listed, and their pair orbits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels
from pmlopt.core.records.fields import Context, Record
from pmlopt.data.prior import MIN_PROBABILITY, Prior
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.errors import PriorError


def check_orbits(prior: object, count: int) -> None:
    """Raise a PriorError where there are too many orbits of pairs to list them."""
    # Orbits of pairs that are listed: half a gigabyte of whole numbers.
    most_orbits = 2_000_000
    if count > most_orbits:
        raise PriorError(
            f"{prior!r:.80} has more than {most_orbits} orbits of pairs, and no more are listed: take fewer "
            "letters, outputs or records"
        )


def compute_orbits(size: int, moves: Iterable[IntArray]) -> IntArray:
    """Compute the (size,) orbit indices under permutations, numbered by first member.

    Args:
        size: how many members there are.
        moves: (size,) where each permutation takes them; one at a time is kept.
    """
    from scipy.sparse.csgraph import connected_components

    members = np.arange(size)
    # orbits so far, by their first members: permutations need not be kept
    first = members  # of the orbit of each member
    for moved in moves:
        if (first[moved] == first).all():  # no news after the permutations so far
            continue
        # each member is linked to its orbit and to its image: the components are the joined
        # orbits
        links = np.tile(members, 2), np.concatenate([first, moved])
        graph = sparse.coo_array((np.ones(2 * size, dtype=np.int8), links), shape=(size, size))
        found = connected_components(graph, directed=False)[1]
        first = np.unique(found, return_index=True)[1][found]
    return np.asarray(np.unique(first, return_inverse=True)[1].ravel())


@dataclass(frozen=True, eq=False)
class LetterCells:
    """The letter cells of an output: orbits of its stabilizer on the letters.

    A column that is constant on orbits of pairs is constant on the cells of its output, and its mean is that
    of the values under the masses of the cells.

    Attributes:
        prior: on the cells, exact.
        letters: (C,) the orbit of letters that each cell is part of.
        counts: how many letters are in each cell.
        orbits: how many letters are in each orbit of letters.
        classes: (N,) the cell of each letter where the letters are listed; else None.
        listed: the prior on these letters; else None.
        whole: the symmetric prior that the cells are of.
        moves: (N,) permutations of listed letters, where each takes them, that generate the group; None where
            no such group is known.
    """

    prior: Prior
    letters: IntArray
    counts: tuple[int, ...]
    orbits: tuple[int, ...]
    classes: IntArray | None
    listed: Prior | None
    whole: Prior
    moves: tuple[IntArray, ...] | None = None

    @property
    def size(self) -> int:
        """Return the number of cells C."""
        return len(self.counts)

    @property
    def letter_count(self) -> int:
        """Return the number of letters N."""
        return sum(self.orbits)

    def list_members(self) -> list[list[int]]:
        """List the positions of the letters of each of the C cells, of listed letters."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for x, cell in enumerate([] if self.classes is None else self.classes.tolist()):
            found[cell].append(x)
        return found


@dataclass(frozen=True, eq=False)
class PairOrbits:
    """The orbits of (letter, output) pairs under a group.

    The group leaves the prior as it is. Each orbit of pairs belongs to one orbit of letters and one of
    outputs; they are in the order of their outputs.

    Attributes:
        letters: how many letters are in each of the L orbits of letters.
        weights: whole numbers, for each of these: the probability of one of its letters, up to one factor.
        outputs: how many outputs are in each of the K orbits of outputs.
        letter: (C,) the orbit of letters of each orbit of pairs.
        output: (C,) its orbit of outputs, ascending.
        counts: for each orbit of pairs, with how many letters one and the same output is in it.

    Raises:
        PriorError: a letter has a probability below 1e-300.
    """

    letters: tuple[int, ...]
    weights: tuple[int, ...]
    outputs: tuple[int, ...]
    letter: IntArray
    output: IntArray
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.weights and min(self.weights) / self.total < MIN_PROBABILITY:
            raise PriorError(
                f"the least likely letter has a probability below {MIN_PROBABILITY}: take fewer "
                "records, or a law "
                "without rare letters"
            )

    @property
    def count(self) -> int:
        """Return the number of pair orbits C."""
        return len(self.counts)

    @cached_property
    def total(self) -> int:
        """Return the total weight of all letters."""
        return sum(n * w for n, w in zip(self.letters, self.weights, strict=True))

    @cached_property
    def masses(self) -> FloatArray:
        """Return the (L,) probability of each letter orbit."""
        return np.array(
            [n * w / self.total for n, w in zip(self.letters, self.weights, strict=True)]
        )

    @cached_property
    def letter_fractions(self) -> FloatArray:
        """Return the (C,) fraction of its letter orbit that an output pairs with in each pair orbit."""
        return np.array(
            [n / self.letters[x] for n, x in zip(self.counts, self.letter.tolist(), strict=True)]
        )

    @cached_property
    def multiplicities(self) -> tuple[int, ...]:
        """Return the (C,) number of outputs that a letter pairs with in each pair orbit."""
        # double counting: pairs of an orbit are counted by outputs and by letters, so // is exact
        places = zip(self.counts, self.letter.tolist(), self.output.tolist(), strict=True)
        return tuple(n * self.outputs[y] // self.letters[x] for n, x, y in places)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Return the start offsets of pair orbits by output orbit, with the end."""
        # the orbits of pairs ascend by output, so those of one output are a slice
        ends = np.searchsorted(self.output, np.arange(len(self.outputs) + 1))
        return tuple(int(end) for end in ends)

    def orbits_of_output(self, place: int) -> slice:
        """Return the slice of pair orbits of an output orbit."""
        return slice(self.starts[place], self.starts[place + 1])

    def prior_on_cells(self, place: int) -> Prior:
        """Return the exact prior weights on the cells of an output orbit."""
        part = self.orbits_of_output(place)
        letters = self.letter[part].tolist()
        return Prior.from_weights(
            [n * self.weights[x] for n, x in zip(self.counts[part], letters, strict=True)]
        )

    @classmethod
    def from_listed(
        cls, letter: IntArray, output: IntArray, table: IntArray, weights: Any
    ) -> PairOrbits:
        """Build the orbits from listed pairs.

        Args:
            letter: (N,) the orbit of each letter.
            output: (M,) the orbit of each output.
            table: (N, M) the orbit of each pair, in the order of outputs.
            weights: N whole numbers, of the letters.
        """
        letters = np.unique(letter, return_index=True)[1]
        outputs = np.unique(output, return_index=True)[1]
        own = table[:, outputs]  # the first output of an orbit meets each of its orbits of pairs
        # the flat place of the first pair of each orbit: its row and column by division
        pairs = np.unique(own, return_index=True)[1]
        return cls(
            letters=tuple(np.bincount(letter).tolist()),
            weights=tuple(weights[x] for x in letters.tolist()),
            outputs=tuple(np.bincount(output).tolist()),
            letter=letter[pairs // len(outputs)],
            output=output[outputs[pairs % len(outputs)]],
            counts=tuple(np.bincount(own.ravel()).tolist()),
        )

    def get_cells(
        self,
        place: int,
        whole: Prior,
        listed: Prior | None,
        column: IntArray | None,
        moves: tuple[IntArray, ...] | None = None,
    ) -> LetterCells:
        """Return the letter cells of an output orbit: letters with equal pair orbits.

        Args:
            place: that of the orbit of outputs.
            whole: the prior that the cells are of.
            listed: the same with its letters, where they are listed.
            column: (N,) the orbits of the output's pairs, where they are.
            moves: (N,) generators of the group, where they are.
        """
        part = self.orbits_of_output(place)
        return LetterCells(
            self.prior_on_cells(place),
            self.letter[part],
            self.counts[part],
            self.letters,
            None if column is None else column - part.start,
            listed,
            whole,
            moves,
        )

    @property
    def is_consistent(self) -> bool:
        """Return whether the orbit counts are consistent for letters and outputs."""
        # Python integers: orbits may have more members than 64 bits hold
        met = [0] * (len(self.outputs) * len(self.letters))
        for n, x, y in zip(self.counts, self.letter.tolist(), self.output.tolist(), strict=True):
            met[y * len(self.letters) + x] += n
        whole = all(met[k] == self.letters[k % len(self.letters)] for k in range(len(met)))
        returned = zip(self.counts, self.multiplicities, self.letter, self.output, strict=True)
        return whole and all(n * self.outputs[y] == m * self.letters[x] for n, m, x, y in returned)


def count_items(side: Any) -> int:
    """Return the number of letters or outputs in internal form."""
    return count_items(side[0]) if isinstance(side, list) else len(side)


def take_entries(side: Any, places: Any) -> Any:
    """Select letters or outputs in internal form by index."""
    return [take_entries(part, places) for part in side] if isinstance(side, list) else side[places]


class PairSpace(Record, ABC):
    """The space of (letter, output) pairs with a group action: the domain of orbit mechanisms.

    Letters and outputs are handed about many at a time, in a form of the space's own (an array of positions,
    or one row for each record), which `encode_labels` makes from labels and `decode_labels` turns back.

    Attributes:
        prior: the prior.
        orbits: the orbits of pairs, with their sizes.
    """

    prior: SymmetricPrior
    orbits: PairOrbits

    @property
    @abstractmethod
    def letter_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of letters."""

    @property
    @abstractmethod
    def output_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of outputs."""

    @property
    @abstractmethod
    def pair_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of (letter, output) pairs."""

    @abstractmethod
    def encode_labels(self, values: Any, outputs: bool = False) -> Any:
        """Convert labels of letters (or outputs) to the space's internal arrays.

        Raises:
            MechanismError: one is no letter.
        """

    @abstractmethod
    def decode_labels(self, outputs: Any, letters: bool = False) -> list[Label]:
        """Convert internal arrays of outputs (or letters) to labels."""

    @abstractmethod
    def letter_orbits(self, letters: Any) -> IntArray:
        """Return the (k,) orbit indices of k letters."""

    @abstractmethod
    def pair_orbits(self, letters: Any, outputs: Any) -> IntArray:
        """Return the (k,) orbit indices of k (letter, output) pairs."""

    @abstractmethod
    def draw_outputs(self, letters: Any, places: IntArray, bits: RandomBits) -> Any:
        """Draw for each letter a uniform output among those in a given pair orbit."""

    @abstractmethod
    def choose_representatives(self) -> tuple[Any, Any]:
        """Return one representative (letter, output) pair of each pair orbit."""

    @abstractmethod
    def draw_images(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return the orbit representatives' images under random group elements."""

    @abstractmethod
    def list_letters(self, outputs: bool = False) -> Any:
        """List all letters (or outputs) of a small alphabet."""

    def list_orbits(self) -> IntArray:
        """Return the (N, M) pair orbit indices of a small alphabet."""
        xs = self.list_letters()
        ys = self.list_letters(outputs=True)
        n = count_items(xs)
        m = count_items(ys)
        pairs = np.arange(n * m)
        return self.pair_orbits(take_entries(xs, pairs // m), take_entries(ys, pairs % m)).reshape(
            n, m
        )

    def get_cells(self, place: int) -> LetterCells:
        """Return the letter cells of an output orbit: letters with equal pair orbits."""
        return self.orbits.get_cells(place, self.prior, None, None)


class SymmetricPrior(Prior, ABC):
    """A prior that is invariant under a permutation group of its letters.

    `design` takes it like any other, and uses one variable for each orbit of pairs. Where there are at most
    2^16 letters they can be listed, and it is a prior on these for everything else, too.
    """

    USER_NAMES: ClassVar[tuple[str, ...]] = ("listed",)

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of letters N, of arbitrary size."""

    @abstractmethod
    def make_pairs(self, shape: Any = None) -> PairSpace:
        """Build the space of (letter, output) pairs.

        Args:
            shape: what a utility states of letters and outputs; None where outputs are letters.
        """

    @abstractmethod
    def _to_listed(self) -> Prior:
        """Convert to an explicit prior with all letters listed."""

    def listed(self) -> Prior:
        """Convert to an explicit prior with all letters listed.

        Raises:
            PriorError: there are more than 2^16 letters.
        """
        return self._listed_prior

    def check_listable(self) -> None:
        """Raise a PriorError where the alphabet is too large to list."""
        # Letters that are listed where someone needs them one by one.
        largest_listed = 2**16
        if self.size > largest_listed:
            raise PriorError(
                f"{self!r} has {self.size:.3g} letters: they are listed up to {largest_listed}. Designs, "
                "levels and samples by orbit need no list"
            )

    @cached_property
    def _listed_prior(self) -> Prior:
        """Return the explicit prior, cached."""
        self.check_listable()
        return self._to_listed()

    @property
    def probabilities(self) -> FloatArray:
        """Return the (N,) probabilities of a small alphabet."""
        return self._listed_prior.probabilities

    @property
    def labels(self) -> Labels:
        """Return the N labels of a small alphabet."""
        return self._listed_prior.labels

    @property
    def counts(self) -> tuple[int, ...] | None:
        """Return the exact weights of a small alphabet."""
        return self._listed_prior.counts

    @property
    def samples(self) -> int | None:
        """Return None: a symmetric prior has no sample."""
        return None

    @property
    def context(self) -> Context:
        """Return the context for reading and writing records on its letters."""
        return Context(given={"prior": self})

    def reordered(self, labels: Iterable[Label]) -> Prior:
        """Reorder the letters by labels."""
        return self._listed_prior.reordered(labels)

    @abstractmethod
    def __repr__(self) -> str: ...
