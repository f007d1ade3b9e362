"""Group-invariant priors given by generators, and uniform priors on a circle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    IntArray,
    Label,
    Labels,
    abbreviate,
    check_integer,
    check_labels_of_size,
)
from pmlopt.core.records.fields import COUNT, Range, Shape
from pmlopt.data.mechanism import find_rows
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.data.symmetry.prior import (
    LetterCells,
    PairOrbits,
    PairSpace,
    SymmetricPrior,
    check_orbits,
    compute_orbits,
)
from pmlopt.errors import MechanismError, PriorError, UtilityError

Permutation = Sequence[int] | Mapping[Any, Label]
Generator = Permutation | tuple[Permutation, Permutation]


class InvariantPrior(SymmetricPrior):
    """A prior with the permutation group of given generators.

    The orbits of letters and of pairs are found by following the generators: the group itself, whose order
    may be huge, is never listed.

    Args:
        prior: N letters.
        generators: permutations of the letters, each as the N positions to which letters go or as a mapping
            of labels (letters that it leaves out stay); where the outputs are no letters, pairs of a
            permutation of the letters and one of the outputs.
        outputs: M labels of the outputs; left out, they are the letters, and move like these.

    Raises:
        PriorError: a generator is no permutation, or it moves a letter to one of another probability.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, design, solve
        >>> mirrored = InvariantPrior([0.1, 0.4, 0.4, 0.1], [[3, 2, 1, 0]])
        >>> mirrored.make_pairs().orbits.letters, mirrored.make_pairs().orbits.count
        ((2, 2), 8)
        >>> InvariantPrior([0.1, 0.4, 0.4, 0.1], [[1, 2, 3, 0]])
        Traceback (most recent call last):
        ...
        pmlopt.errors.PriorError: generator 0 takes the letter 0 of probability 0.1 to 1 of probability 0.4:
        the prior is not invariant
    """

    def __init__(
        self,
        prior: PriorLike,
        generators: Iterable[Generator],
        outputs: Iterable[Label] | None = None,
    ) -> None:
        known = as_prior(prior)
        for what, given in (
            ("generators", generators),
            ("outputs", () if outputs is None else outputs),
        ):
            if not isinstance(given, Iterable):
                raise PriorError(f"the {what} are {given!r:.60}: give a list of them")
        if outputs is None:
            sides = known.labels
        else:
            sides = check_labels_of_size(outputs, None, "outputs", PriorError)
        moves = [_parse_generator(one, place, known.labels, None if outputs is None else sides)
                 for place, one in enumerate(generators)]  # fmt: skip
        for place, (letters, _) in enumerate(moves):
            _check_invariant(known, letters, place)
        for name, value in (("base", known), ("moves", tuple(moves)), ("output_labels", sides)):
            object.__setattr__(self, name, value)

    kind: ClassVar[str] = "invariant"
    base: Prior
    moves: tuple[tuple[IntArray, IntArray], ...]
    output_labels: Labels

    @classmethod
    def from_fields(  # type: ignore[override]
        cls,
        base: Prior,
        moves: tuple[
            tuple[Annotated[IntArray, Shape("letters")], Annotated[IntArray, Shape("outputs")]], ...
        ],
        output_labels: Annotated[Labels, Shape("outputs")],
    ) -> InvariantPrior:
        """Build the prior from a saved file's fields."""
        return cls(base, moves, output_labels)  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        """Return the number of letters N, of arbitrary size."""
        return self.base.size

    def make_pairs(self, shape: Any = None) -> ListedPairs:
        """Build the pair space; `shape` is None or (N, M).

        Raises:
            UtilityError: it is another one.
        """
        if shape not in (None, (self.size, len(self.output_labels))):
            raise UtilityError(
                f"the utility is on {shape} letters and outputs: the group acts on "
                f"{(self.size, len(self.output_labels))}"
            )
        return ListedPairs(self)

    def _to_listed(self) -> Prior:
        """Convert to an explicit prior with all letters listed."""
        return self.base

    def __repr__(self) -> str:
        return f"Invariant(<{self.size} letters>, <{len(self.moves)} generators>)"


class ListedPairs(PairSpace):
    """The pair space of listed letters and outputs, as index arrays."""

    kind: ClassVar[str] = "invariant"
    prior: InvariantPrior

    def __init__(self, prior: InvariantPrior) -> None:
        # Pairs of letters and outputs whose orbits are listed.
        largest_pairs = 2**24
        self.prior = prior
        n = prior.size
        m = len(prior.output_labels)
        if n * m > largest_pairs:
            raise PriorError(
                f"{prior!r} has {n * m} pairs: orbits are listed of up to {largest_pairs}"
            )
        letter = compute_orbits(n, [move[0] for move in prior.moves])
        output = compute_orbits(m, [move[1] for move in prior.moves])
        pairs = compute_orbits(n * m, [(x[:, None] * m + y).ravel() for x, y in prior.moves])
        first = np.unique(pairs, return_index=True)[1]
        order = np.lexsort((letter[first // m], output[first % m]))
        self.table: IntArray = np.argsort(order)[pairs].reshape(n, m)
        """(N, M) the orbit of each pair."""
        self.first = first[order]
        self.letter = letter
        self.letter_first = np.unique(letter, return_index=True)[1]
        self.output_first = np.unique(output, return_index=True)[1]
        self.orbits = PairOrbits.from_listed(letter, output, self.table, prior.base.weights)

    @property
    def letter_names(self) -> Sequence[Label]:
        """Return the first letter of each orbit."""
        return [self.prior.base.labels[x] for x in self.letter_first.tolist()]

    @property
    def output_names(self) -> Sequence[Label]:
        """Return the first output of each orbit."""
        return [self.prior.output_labels[y] for y in self.output_first.tolist()]

    @property
    def pair_names(self) -> Sequence[Label]:
        """Return the first pair of each orbit."""
        xs, ys = self.choose_representatives()
        return list(zip(self.decode_labels(xs, letters=True), self.decode_labels(ys), strict=True))

    def encode_labels(self, values: Any, outputs: bool = False) -> IntArray:
        """Convert labels of letters (or outputs) to the space's internal arrays."""
        labels = self.prior.output_labels if outputs else self.prior.base.labels
        found = np.asarray(values) if isinstance(labels, DefaultLabels) else None
        if found is not None and found.ndim == 1 and found.dtype.kind in "iu":
            if not ((found >= 0) & (found < len(labels))).all():
                raise MechanismError(f"a value is none of the letters {abbreviate(labels)}")
            return found.astype(np.int64)
        return find_rows(labels, values.tolist() if isinstance(values, np.ndarray) else values)

    def decode_labels(self, outputs: Any, letters: bool = False) -> list[Label]:
        """Convert internal arrays of outputs (or letters) to labels."""
        labels = self.prior.base.labels if letters else self.prior.output_labels
        return [labels[place] for place in outputs.tolist()]

    def letter_orbits(self, letters: IntArray) -> IntArray:
        """Return the (k,) orbit indices of k letters."""
        return self.letter[letters]

    def pair_orbits(self, letters: IntArray, outputs: IntArray) -> IntArray:
        """Return the (k,) orbit indices of k (letter, output) pairs."""
        return self.table[letters, outputs]

    def draw_outputs(self, letters: IntArray, places: IntArray, bits: RandomBits) -> IntArray:
        """Draw for each letter a uniform output among those in a given pair orbit."""
        ordered, starts = self._sort_by_orbit
        several = np.array(self.orbits.multiplicities, dtype=np.uint64)[places]
        return np.asarray(
            ordered[letters, starts[places] + bits.draw_all_below(several).astype(np.int64)]
        )

    @cached_property
    def _sort_by_orbit(self) -> tuple[IntArray, IntArray]:
        """Sort each letter's outputs by pair orbit; return (N, M) indices and (C,) orbit starts.

        Letters of one orbit have equally many outputs in each orbit of pairs.
        """
        starts = np.zeros(self.orbits.count, dtype=np.int64)
        several = np.array(self.orbits.multiplicities)
        for orbit in range(len(self.orbits.letters)):
            own = np.flatnonzero(self.orbits.letter == orbit)
            starts[own] = np.cumsum(several[own]) - several[own]
        return np.argsort(self.table, axis=1, kind="stable"), starts

    def choose_representatives(self) -> tuple[IntArray, IntArray]:
        """Return one representative (letter, output) pair of each pair orbit."""
        return np.divmod(self.first, len(self.prior.output_labels))

    def draw_images(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the orbit representatives' images under random group elements."""
        xs, ys = self.choose_representatives()
        for x, y in self.prior.moves:
            moved = rng.random(len(xs)) < 0.5
            xs = np.where(moved, x[xs], xs)
            ys = np.where(moved, y[ys], ys)
        return xs, ys

    def list_letters(self, outputs: bool = False) -> IntArray:
        """List all letters (or outputs) of a small alphabet."""
        return np.arange(len(self.prior.output_labels) if outputs else self.prior.size)

    def get_cells(self, place: int) -> LetterCells:
        """Return the letter cells of an output orbit: letters with equal pair orbits."""
        column = self.table[:, self.output_first[place]]
        moves = tuple(letters for letters, _ in self.prior.moves)
        return self.orbits.get_cells(place, self.prior, self.prior.listed(), column, moves)


def rotation(size: int, by: int = 1) -> list[int]:
    """Build the cyclic shift of N letters as a generator.

    Examples:
        >>> rotation(4), rotation(4, 2)
        ([1, 2, 3, 0], [2, 3, 0, 1])
    """
    return [(place + by) % size for place in range(size)]


def reflection(size: int) -> list[int]:
    """Build the reversal of N letters as a generator.

    Examples:
        >>> reflection(3)
        [2, 1, 0]
    """
    return list(range(size))[::-1]


def _parse_generator(
    generator: Any, place: int, letters: Labels, outputs: Labels | None
) -> tuple[IntArray, IntArray]:
    """Parse a generator to letter and output permutations."""
    if outputs is None:
        moved = _parse_permutation(generator, letters, f"generator {place}")
        return moved, moved
    if not isinstance(generator, tuple) or len(generator) != 2:
        raise PriorError(
            f"generator {place} is {generator!r:.60}: where outputs are given, it is a pair of a permutation "
            "of the letters and one of the outputs"
        )
    return (
        _parse_permutation(generator[0], letters, f"generator {place}"),
        _parse_permutation(generator[1], outputs, f"generator {place} on the outputs"),
    )


def _parse_permutation(given: Any, labels: Labels, what: str) -> IntArray:
    """Validate a permutation given by labels or positions."""
    if isinstance(given, Mapping):
        where = {label: place for place, label in enumerate(labels)}
        strange = [label for pair in given.items() for label in pair if label not in where]
        if strange:
            raise PriorError(f"{what} moves {strange[0]!r}, which is none of {abbreviate(labels)}")
        given = [where[given.get(label, label)] for label in labels]
    try:
        moved = np.asarray(given)
    except ValueError:  # rows of different lengths
        moved = np.empty(0)
    if moved.dtype.kind not in "iu" or not np.array_equal(
        np.sort(moved, axis=None), np.arange(len(labels))
    ):
        raise PriorError(
            f"{what} is no permutation of {len(labels)} letters: give each position once"
        )
    return moved.astype(np.int64)


def _check_invariant(prior: Prior, moved: IntArray, place: int) -> None:
    """Raise an error where a permutation changes the prior."""
    weights = prior.weights
    for x, y in enumerate(moved.tolist()):
        if weights[x] != weights[y]:
            raise PriorError(
                f"generator {place} takes the letter {prior.labels[x]!r} of probability "
                f"{prior.probabilities[x]:.6g} to {prior.labels[y]!r} of probability "
                f"{prior.probabilities[y]:.6g}: the prior is not invariant"
            )


class CirclePrior(SymmetricPrior):
    """The uniform prior on a circle of N letters, with rotations and optional reflections.

    The orbit of a pair is its displacement `(y - x) mod N`, with reflections its distance along the circle:
    a design has N variables, or N // 2 + 1, and one column. It is the prior of hours of the day, angles, or
    of a density on a circle in N bins of equal mass.

    Args:
        size: N.
        reflections: whether the reflections belong to the group: utilities must then be the same both ways
            round.

    Raises:
        PriorError: N is not a whole number of at least 1, or there are too many orbits to list them.

    Examples:
        >>> from pmlopt import PML, design, solve
        >>> from pmlopt.model.utility import DisplacementLoss
        >>> result = solve(design(CirclePrior(8), PML(0.0), DisplacementLoss(lambda d: min(d, 8 - d))))
        >>> round(result.value, 9)  # nothing may be told: every displacement is as likely
        2.0
    """

    kind: ClassVar[str] = "circle"

    def __init__(self, size: Annotated[int, Range(1), COUNT], reflections: bool = True) -> None:
        vars(self).update(
            letters=check_integer(size, "the size of the circle", PriorError),
            reflections=bool(reflections),
        )
        check_orbits(self, self.letters // 2 + 1 if reflections else self.letters)

    letters: int
    reflections: bool

    @property
    def size(self) -> int:
        """Return the number of letters N, of arbitrary size."""
        return self.letters

    def make_pairs(self, shape: Any = None) -> CirclePairs:
        """Build the pair space; `shape` is (N, N) or None.

        Raises:
            UtilityError: it is another one.
        """
        if shape not in (None, (self.size, self.size)):
            raise UtilityError(
                f"the utility is on {shape[0]} letters, and the circle has {self.size}"
            )
        return CirclePairs(self)

    def _to_listed(self) -> Prior:
        """Convert to an explicit prior with all letters listed."""
        return Prior.uniform(self.size)

    def __repr__(self) -> str:
        if self.reflections:
            return f"Circle({self.size})"
        return f"Circle({self.size}, reflections=False)"


class CirclePairs(PairSpace):
    """The pair space of a circle's letters, as index arrays."""

    kind: ClassVar[str] = "circle"
    prior: CirclePrior

    def __init__(self, prior: CirclePrior) -> None:
        self.prior = prior
        n = prior.size
        self.displacements = np.arange(n // 2 + 1 if prior.reflections else n)
        twice = (
            (self.displacements > 0) & (2 * self.displacements != n) if prior.reflections else False
        )
        self.orbits = PairOrbits(
            letters=(n,),
            weights=(1,),
            outputs=(n,),
            letter=np.zeros(len(self.displacements), dtype=np.int64),
            output=np.zeros(len(self.displacements), dtype=np.int64),
            counts=tuple((1 + np.broadcast_to(twice, self.displacements.shape)).tolist()),
        )

    @property
    def letter_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of letters."""
        return ["all letters"]

    @property
    def output_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of outputs."""
        return ["all outputs"]

    @property
    def pair_names(self) -> Sequence[Label]:
        """Return the displacements, or distances under reflections, as pair names."""
        return self.displacements.tolist()

    def encode_labels(self, values: Any, outputs: bool = False) -> IntArray:
        """Convert labels of letters (or outputs) to the space's internal arrays."""
        found = np.asarray(values)
        whole_numbers = found.ndim == 1 and found.dtype.kind in "iu"
        if not whole_numbers or not ((found >= 0) & (found < self.prior.size)).all():
            raise MechanismError(
                f"the values are no letters of {self.prior!r}: give whole numbers below its size"
            )
        return found.astype(np.int64)

    def decode_labels(self, outputs: Any, letters: bool = False) -> list[Label]:
        """Convert internal arrays of outputs (or letters) to labels."""
        return list(outputs.tolist())

    def letter_orbits(self, letters: IntArray) -> IntArray:
        """Return the (k,) orbit indices of k letters."""
        return np.zeros(len(letters), dtype=np.int64)

    def pair_orbits(self, letters: IntArray, outputs: IntArray) -> IntArray:
        """Return the (k,) orbit indices of k (letter, output) pairs."""
        ahead = (outputs - letters) % self.prior.size
        return np.minimum(ahead, self.prior.size - ahead) if self.prior.reflections else ahead

    def draw_outputs(self, letters: IntArray, places: IntArray, bits: RandomBits) -> IntArray:
        """Draw for each letter a uniform output among those in a given pair orbit."""
        steps = self.displacements[places]
        if self.prior.reflections:
            steps = np.where(bits.draw_words(len(steps)) & np.uint64(1), steps, -steps)
        return (letters + steps) % self.prior.size

    def choose_representatives(self) -> tuple[IntArray, IntArray]:
        """Return one representative (letter, output) pair of each pair orbit."""
        return np.zeros_like(self.displacements), self.displacements

    def draw_images(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the orbit representatives' images under random group elements."""
        n = self.prior.size
        count = len(self.displacements)
        letters = rng.integers(n, size=count)
        signs = rng.choice([-1, 1], size=count) if self.prior.reflections else 1
        return letters, (letters + signs * self.displacements) % n

    def list_letters(self, outputs: bool = False) -> IntArray:
        """List all letters (or outputs) of a small alphabet."""
        return np.arange(self.prior.size)
