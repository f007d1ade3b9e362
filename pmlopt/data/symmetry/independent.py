"""Product alphabets: independent parts, and i.i.d. records up to permutation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.argument_checks import check_same_letters
from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
    IntArray,
    Label,
    abbreviate,
    check_integer,
)
from pmlopt.core.records.fields import COUNT, Range
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.data.symmetry.prior import (
    PairOrbits,
    PairSpace,
    SymmetricPrior,
    check_orbits,
    count_items,
    take_entries,
)
from pmlopt.errors import MechanismError, PriorError, UtilityError


class ProductPrior(SymmetricPrior):
    """The product of independent symmetric priors, with the product group.

    A letter is a tuple of one letter of each part, such as a table of binary records and an hour of the
    day, or attributes in groups of equal law. An orbit of pairs is one of each part: their numbers multiply.

    Args:
        parts: symmetric priors.

    Raises:
        PriorError: there are none, or one is no symmetric prior.

    Examples:
        >>> from pmlopt.data.symmetry import IIDPrior
        >>> both = ProductPrior(IIDPrior([0.7, 0.3], 4), IIDPrior([0.9, 0.1], 3))
        >>> both.size, both.make_pairs().orbits.count  # 35 times 20
        (128, 700)
    """

    def __init__(self, *parts: SymmetricPrior) -> None:
        if not parts or not all(isinstance(part, SymmetricPrior) for part in parts):
            raise PriorError(
                f"a product is of symmetric priors such as Types([0.7, 0.3], 4), not {parts!r:.80}"
            )
        object.__setattr__(self, "parts", parts)

    kind: ClassVar[str] = "product"
    parts: tuple[SymmetricPrior, ...]

    @property
    def size(self) -> int:
        """Return the number of letters N, of arbitrary size."""
        return math.prod(part.size for part in self.parts)

    def make_pairs(self, shape: Any = None) -> ProductPairs:
        """Build the pair space; `shape` optionally fixes each part's outputs.

        Raises:
            UtilityError: it has another number of entries.
            PriorError: there are too many orbits to list them.
        """
        if shape is not None and len(shape) != len(self.parts):
            raise UtilityError(
                f"the utility is a sum over {len(shape)} parts, and the product has {len(self.parts)}"
            )
        shapes = (None,) * len(self.parts) if shape is None else shape
        return ProductPairs(
            self, [part.make_pairs(one) for part, one in zip(self.parts, shapes, strict=True)]
        )

    def _to_listed(self) -> Prior:
        """Convert to an explicit prior with all letters listed."""
        parts = [part.listed() for part in self.parts]
        weights = [math.prod(several) for several in product(*(part.weights for part in parts))]
        return Prior.from_weights(weights, list(product(*(part.labels for part in parts))))

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.parts))})"


class ProductPairs(PairSpace):
    """The (letter, output) pair space of a product alphabet: tuples of the factors' pairs."""

    kind: ClassVar[str] = "product"
    prior: ProductPrior
    spaces: tuple[PairSpace, ...]

    @classmethod
    def from_fields(cls, spaces: tuple[PairSpace, ...]) -> ProductPairs:
        """Build the pair space from a saved file's fields."""
        return cls(ProductPrior(*(space.prior for space in spaces)), spaces)

    def __init__(self, prior: ProductPrior, spaces: Sequence[PairSpace]) -> None:
        self.prior = prior
        self.spaces = tuple(spaces)
        several = [space.orbits for space in spaces]
        # an exact integer, checked before the arrays of that length are made
        count = math.prod(orbits.count for orbits in several)
        check_orbits(prior, count)
        places = np.indices([orbits.count for orbits in several]).reshape(len(several), -1)
        letter = _encode_digits(
            [o.letter[k] for o, k in zip(several, places, strict=True)],
            [len(o.letters) for o in several],
        )
        output = _encode_digits(
            [o.output[k] for o, k in zip(several, places, strict=True)],
            [len(o.outputs) for o in several],
        )
        # the last key counts first: by output, and then by letter
        order = np.lexsort((letter, output))
        self.places: IntArray = places[:, order]
        """(parts, C) the orbit of pairs of each part, for each orbit of pairs of the product."""
        # the inverse of the order: from the digits of the parts to the place after sorting
        self._rank = np.empty(count, dtype=np.int64)
        self._rank[order] = np.arange(count)
        counts = _multiply_all([orbits.counts for orbits in several])
        self.orbits = PairOrbits(
            letters=tuple(_multiply_all([orbits.letters for orbits in several]).tolist()),
            weights=tuple(_multiply_all([orbits.weights for orbits in several]).tolist()),
            outputs=tuple(_multiply_all([orbits.outputs for orbits in several]).tolist()),
            letter=letter[order],
            output=output[order],
            counts=tuple(counts[order].tolist()),
        )

    @property
    def letter_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of letters."""
        return list(product(*(space.letter_names for space in self.spaces)))

    @property
    def output_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of outputs."""
        return list(product(*(space.output_names for space in self.spaces)))

    @property
    def pair_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of (letter, output) pairs."""
        several = [space.pair_names for space in self.spaces]
        return [
            tuple(names[k] for names, k in zip(several, own, strict=True))
            for own in self.places.T.tolist()
        ]

    def encode_labels(self, values: Any, outputs: bool = False) -> list[Any]:
        """Convert labels of letters (or outputs) to the space's internal arrays."""
        columns = list(zip(*values, strict=True)) if not isinstance(values, tuple) else list(values)
        if len(columns) != len(self.spaces):
            raise MechanismError(
                f"the values have {len(columns)} parts, and the product {len(self.spaces)}: give tuples, or "
                "a tuple of one array for each part"
            )
        return [
            space.encode_labels(column, outputs)
            for space, column in zip(self.spaces, columns, strict=True)
        ]

    def decode_labels(self, outputs: Any, letters: bool = False) -> list[Label]:
        """Convert internal arrays of outputs (or letters) to labels."""
        return list(
            zip(
                *(
                    s.decode_labels(part, letters)
                    for s, part in zip(self.spaces, outputs, strict=True)
                ),
                strict=True,
            )
        )

    def letter_orbits(self, letters: Any) -> IntArray:
        """Return the (k,) orbit indices of k letters."""
        found = [
            space.letter_orbits(part) for space, part in zip(self.spaces, letters, strict=True)
        ]
        return _encode_digits(found, [len(space.orbits.letters) for space in self.spaces])

    def pair_orbits(self, letters: Any, outputs: Any) -> IntArray:
        """Return the (k,) orbit indices of k (letter, output) pairs."""
        found = [s.pair_orbits(x, y) for s, x, y in zip(self.spaces, letters, outputs, strict=True)]
        return self._rank[_encode_digits(found, [space.orbits.count for space in self.spaces])]

    def draw_outputs(self, letters: Any, places: IntArray, bits: RandomBits) -> list[Any]:
        """Draw for each letter a uniform output among those in a given pair orbit."""
        own = zip(self.spaces, letters, self.places, strict=True)
        return [space.draw_outputs(part, several[places], bits) for space, part, several in own]

    def choose_representatives(self) -> tuple[list[Any], list[Any]]:
        """Return one representative (letter, output) pair of each pair orbit."""
        return self._split_pairs([space.choose_representatives() for space in self.spaces])

    def draw_images(self, rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
        """Return the orbit representatives' images under random group elements."""
        return self._split_pairs([space.draw_images(rng) for space in self.spaces])

    def _split_pairs(self, pairs: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
        """Split product pairs into those of each factor."""
        own = list(zip(pairs, self.places, strict=True))
        return (
            [take_entries(pair[0], k) for pair, k in own],
            [take_entries(pair[1], k) for pair, k in own],
        )

    def list_letters(self, outputs: bool = False) -> list[Any]:
        """List all letters (or outputs) of a small alphabet."""
        sides = [space.list_letters(outputs) for space in self.spaces]
        sizes = [count_items(side) for side in sides]
        places = np.indices(sizes).reshape(len(sizes), -1)
        return [take_entries(side, k) for side, k in zip(sides, places, strict=True)]


def _encode_digits(digits: Sequence[IntArray], sizes: Sequence[int]) -> IntArray:
    """Encode mixed-radix digits as numbers, last digit fastest."""
    found = np.zeros(len(digits[0]), dtype=np.int64)
    for digit, size in zip(digits, sizes, strict=True):
        found = found * size + digit
    return found


def _multiply_all(several: Sequence[Sequence[int]]) -> Any:
    """Compute all products of one integer from each array, last one fastest."""
    # Python integers: the numbers of letters may have hundreds of digits
    found = np.array([1], dtype=object)
    for numbers in several:
        found = (found[:, None] * np.array(numbers, dtype=object)).ravel()
    return found


Rows = NDArray[np.integer[Any]]


class IIDPrior(SymmetricPrior):
    """The prior of n i.i.d. records over A letters, with the group of record permutations.

    The secret is the whole table (x_1, ..., x_n), one of A^n; `P(x) = law(x_1) ... law(x_n)`. Two pairs of
    tables x and y are in one orbit iff each pair of letters (a, b) occurs in as many places of one as of the
    other: there are C(n + A B - 1, A B - 1) orbits, with B letters in each place of an output.

    Args:
        law: (A,) of one record.
        records: n.

    Raises:
        PriorError: the law is none, or n is not a whole number of at least 1.

    Examples:
        >>> from pmlopt import CoordinateLoss, PML, design, solve
        >>> bits = IIDPrior([0.7, 0.3], 24)
        >>> bits.size, bits.make_pairs().orbits.count
        (16777216, 2925)
        >>> result = solve(design(bits, PML(1.0), CoordinateLoss([[0, 1], [1, 0]])))
        >>> round(result.value, 8), result.certificate.verify()
        (6.62350068, True)
    """

    def __init__(self, law: PriorLike, records: int) -> None:
        vars(self).update(
            law=as_prior(law), records=check_integer(records, "the number of records", PriorError)
        )

    kind: ClassVar[str] = "types"
    law: Prior
    records: Annotated[int, Range(1), COUNT]

    @property
    def size(self) -> int:
        """Return the number of letters N, of arbitrary size."""
        return int(self.law.size**self.records)

    def make_pairs(self, shape: Any = None) -> TypePairs:
        """Build the pair space of tables; `shape` is (A, B) with B output letters per record.

        Raises:
            UtilityError: A is another number than that of the law's letters.
            PriorError: there are too many orbits to list them.
        """
        inputs, outputs = (self.law.size, self.law.size) if shape is None else shape
        check_same_letters(inputs, "the utility is", self.law.size, "a record", UtilityError)
        return TypePairs(self, outputs)

    def _to_listed(self) -> Prior:
        """Convert to an explicit prior with all letters listed."""
        tables = list_tables(self.law.size, self.records)
        # products of whole numbers: the masses stay exact for verification
        weights = np.array(self.law.weights, dtype=object)[tables].prod(axis=1)
        return Prior.from_weights(weights.tolist(), _to_labels(self.law.labels, tables))

    def __repr__(self) -> str:
        return f"Types(<{self.law.size} letters>, {self.records})"


class TypePairs(PairSpace):
    """The (letter, output) pairs of two record tables up to permutation, by joint type."""

    kind: ClassVar[str] = "types"
    prior: IIDPrior
    outputs: Annotated[int, Range(1), COUNT]

    def __init__(self, prior: IIDPrior, outputs: int) -> None:
        # Records of a table: the factorials up to their number take 100 MB of whole numbers.
        most_records = 10_000
        self.prior = prior
        self.outputs = check_integer(
            outputs, "the number of letters in each place of an output", PriorError
        )
        self.sides = (prior.law.size, outputs)
        if prior.records > most_records:
            raise PriorError(f"{prior!r}: tables have up to {most_records} records: take fewer")
        cells = prior.law.size * outputs
        # C(n + k, min(n, k)), or a bound from below that is too large by far
        least = min(prior.records, cells - 1, 25)
        check_orbits(prior, math.comb(prior.records + cells - 1, least))
        letters = prior.law.labels
        same_size = outputs == prior.law.size
        self.places = (letters, letters if same_size else DefaultLabels(outputs))
        tables = list_compositions(prior.records, cells).reshape(-1, *self.sides)
        self.output_types, output = np.unique(tables.sum(axis=1), axis=0, return_inverse=True)
        self.letter_types, letter = np.unique(tables.sum(axis=2), axis=0, return_inverse=True)
        order = np.lexsort((letter.ravel(), output.ravel()))
        self.tables = tables[order]
        """(C, A, B) how often each pair of letters occurs, for each orbit of pairs."""
        # exact multinomial coefficients; floats would overflow from 171! on
        factorials = np.array([math.factorial(k) for k in range(prior.records + 1)], dtype=object)
        column_ways = factorials[self.tables.sum(axis=1)].prod(axis=1)
        ways = column_ways // factorials[self.tables].prod(axis=(1, 2))
        weights = np.array(prior.law.weights, dtype=object) ** self.letter_types.astype(object)
        self.orbits = PairOrbits(
            letters=_count_orderings(self.letter_types, factorials),
            weights=tuple(weights.prod(axis=1).tolist()),
            outputs=_count_orderings(self.output_types, factorials),
            letter=letter.ravel()[order],
            output=output.ravel()[order],
            counts=tuple(ways.tolist()),
        )

    @property
    def letter_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of letters."""
        return [tuple(row) for row in self.letter_types.tolist()]

    @property
    def output_names(self) -> Sequence[Label]:
        """Return a display name of each orbit of outputs."""
        return [tuple(row) for row in self.output_types.tolist()]

    @property
    def pair_names(self) -> Sequence[Label]:
        """Return the joint type counts of each pair orbit, as nested tuples."""
        return [tuple(map(tuple, table)) for table in self.tables.tolist()]

    def encode_labels(self, values: Any, outputs: bool = False) -> Rows:
        """Convert labels of letters (or outputs) to the space's internal arrays."""
        labels = self.places[outputs]
        found = values if isinstance(values, np.ndarray) else _make_label_table(values)
        n = self.prior.records
        if found.ndim != 2 or found.shape[1] != n:
            raise MechanismError(
                f"the values have the shape {found.shape}: give one row of {n} records for each"
            )
        if isinstance(labels, DefaultLabels):
            known = found.dtype.kind in "iub" and bool(((found >= 0) & (found < len(labels))).all())
            if not known:
                raise MechanismError(f"a record is none of the letters {abbreviate(labels)}")
            return found.astype(np.int16)
        # each distinct cell is looked up once, and not each record
        where = {label: place for place, label in enumerate(labels)}
        # tuples and mixed kinds are found one by one, arrays of one kind by their distinct cells
        cells = found.ravel()
        kinds, places = (
            (cells, slice(None)) if cells.dtype == object else np.unique(cells, return_inverse=True)
        )
        strange = [kind for kind in kinds.tolist() if kind not in where]
        if strange:
            raise MechanismError(
                f"the record {strange[0]!r} is none of the letters {abbreviate(labels)}"
            )
        found_at = np.array([where[kind] for kind in kinds.tolist()], dtype=np.int16)
        return found_at[places].reshape(found.shape)

    def decode_labels(self, outputs: Any, letters: bool = False) -> list[Label]:
        """Convert internal arrays of outputs (or letters) to labels."""
        return _to_labels(self.places[not letters], outputs)

    def letter_orbits(self, letters: Rows) -> IntArray:
        """Return the (k,) orbit indices of k letters."""
        return _find_rows(_count_occurrences(letters, self.sides[0]), self.letter_types)

    def pair_orbits(self, letters: Rows, outputs: Rows) -> IntArray:
        """Return the (k,) orbit indices of k (letter, output) pairs."""
        codes = letters.astype(np.int64) * self.sides[1] + outputs
        found = _count_occurrences(codes, self.sides[0] * self.sides[1])
        return _find_rows(found, self.tables.reshape(len(self.tables), -1))

    def draw_outputs(self, letters: Rows, places: IntArray, bits: RandomBits) -> Rows:
        # the records in a random order within each letter take the outputs of the table in theirs
        """Draw for each letter a uniform output among those in a given pair orbit."""
        order = shuffle_within_letters(letters, self.sides[0], bits)
        drawn = np.empty_like(letters)
        np.put_along_axis(drawn, order, self._sequences[1][places], axis=1)
        return drawn

    def choose_representatives(self) -> tuple[Rows, Rows]:
        """Return one representative (letter, output) pair of each pair orbit."""
        return self._sequences

    @cached_property
    def _sequences(self) -> tuple[Rows, Rows]:
        """Return two (C, n) arrays with representative record sequences of each pair orbit."""
        flat = self.tables.reshape(len(self.tables), -1)
        pairs = np.tile(np.arange(flat.shape[1]), len(flat))
        codes = np.repeat(pairs, flat.ravel())
        letters, outputs = np.divmod(codes.reshape(len(flat), -1), self.sides[1])
        return letters.astype(np.int16), outputs.astype(np.int16)

    def draw_images(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Return the orbit representatives' images under random group elements."""
        letters, outputs = self._sequences
        order = np.argsort(rng.random(letters.shape), axis=1)
        return np.take_along_axis(letters, order, axis=1), np.take_along_axis(
            outputs, order, axis=1
        )

    def list_letters(self, outputs: bool = False) -> Rows:
        """List all letters (or outputs) of a small alphabet."""
        return list_tables(self.sides[outputs], self.prior.records)

    def coordinate_sums(self, values: FloatArray) -> FloatArray:
        """Compute the (C,) sums of (A, B) values over the records of each pair orbit."""
        return self.tables.reshape(len(self.tables), -1) @ values.ravel()


def list_compositions(total: int, parts: int) -> IntArray:
    """List the (K, parts) compositions of a number into nonnegative integers.

    Examples:
        >>> list_compositions(2, 2).tolist()
        [[0, 2], [1, 1], [2, 0]]
    """
    found = np.zeros((1, 0), dtype=np.int64)
    for _ in range(parts - 1):
        room = total - found.sum(axis=1)
        first = np.concatenate([np.arange(most + 1) for most in room.tolist()])
        known = np.repeat(found, room + 1, axis=0)
        found = np.column_stack([known, first])
    return np.column_stack([found, total - found.sum(axis=1)])


def list_tables(letters: int, records: int) -> Rows:
    """List all (letters ** records, records) tables, last record fastest."""
    codes = np.arange(letters**records)
    powers = letters ** np.arange(records - 1, -1, -1)
    return (codes[:, None] // powers % letters).astype(np.int16)


def _to_labels(letters: Sequence[Label], tables: Any) -> list[Label]:
    """Convert index tables to tuples of labels."""
    if isinstance(letters, DefaultLabels):
        return [tuple(row) for row in tables.tolist()]
    return [tuple(letters[place] for place in row) for row in tables.tolist()]


def _count_orderings(types: IntArray, factorials: Any) -> tuple[int, ...]:
    """Count the tables of each type by multinomial coefficients."""
    records = int(types[0].sum())
    orderings = factorials[records] // factorials[types].prod(axis=1)
    return tuple(orderings.tolist())


def _count_occurrences(rows: Rows, letters: int) -> IntArray:
    """Count (k, letters) the occurrences of letters in each row."""
    return np.stack([np.count_nonzero(rows == letter, axis=1) for letter in range(letters)], axis=1)


def _find_rows(found: IntArray, listed: IntArray) -> IntArray:
    """Find the (k,) index of each row in a list of distinct integer rows."""
    base = int(listed[0].sum()) + 1
    width = listed.shape[1]
    kind = np.int64 if base ** (width - 1) < 2**63 else object  # whole numbers without end
    powers = np.array([base**place for place in range(width - 1)], dtype=kind)
    # the last number follows from the sum
    keys = listed[:, :-1].astype(kind) @ powers
    wanted = found[:, :-1].astype(kind) @ powers
    order = np.argsort(keys)
    return np.asarray(order[np.searchsorted(keys[order], wanted)])


def shuffle_within_letters(letters: Rows, size: int, bits: RandomBits) -> IntArray:
    """Return (k, n) random orders of records sorted by letter.

    The records are sorted by random keys; a row with two equal keys is drawn again, so that each order of the
    records of a letter is exactly as likely.
    """
    shift = np.uint64(max(1, (size - 1).bit_length()))
    order = np.empty(letters.shape, dtype=np.int64)
    open_rows = np.arange(len(letters))
    while open_rows.size:
        here = letters[open_rows].astype(np.uint64)
        keys = (
            here << (np.uint64(64) - shift)
            | bits.draw_words(here.size).reshape(here.shape) >> shift
        )
        order[open_rows] = np.argsort(keys, axis=1)
        ordered = np.take_along_axis(keys, order[open_rows], axis=1)
        open_rows = open_rows[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
    return order


def _make_label_table(values: Any) -> NDArray[Any]:
    """Convert rows of records to a label array, keeping tuples and mixed types."""
    rows = [list(row) if isinstance(row, tuple | list | np.ndarray) else [row] for row in values]
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise MechanismError(
            f"rows have {' and '.join(map(str, sorted(lengths)))} records: give as many for each"
        )
    table = np.empty((len(rows), max(lengths, default=0)), dtype=object)
    for place, row in enumerate(rows):
        for column, cell in enumerate(row):
            table[place, column] = cell
    if all(isinstance(c, int | np.integer) for c in table.ravel()):
        return np.array(table.tolist())
    return table
