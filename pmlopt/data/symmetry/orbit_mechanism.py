"""Mechanisms constant on pair orbits, in integer arithmetic, without a matrix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.display import format_table_html
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.matrices.matrix_file import MECHANISM_FILE_VERSION
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels, to_label_array
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.sampling.categorical import RandomBits, Seed, make_random_bits
from pmlopt.data.symmetry.prior import PairSpace, count_items, take_entries
from pmlopt.errors import FileFormatError, MechanismError

FORMAT = "pmlopt-orbit-mechanism"


class OrbitMechanism(Mechanism):
    """A mechanism with one integer-valued probability per pair orbit.

    Given a letter, the output is in its orbit c of pairs with probability `masses[c] / total`, and each of
    the `multiplicities[c]` outputs with which the letter is in that orbit is as likely: the entry of the
    matrix is `masses[c] / (total multiplicities[c])`, a rational number. Where the letters can be listed (up
    to 2^16, and up to 2^24 pairs) it is a `Mechanism` for everything else, too.

    Args:
        space: the pairs, from `prior.make_pairs()`.
        masses: a whole number for each orbit of pairs.
        total: the sum of the masses of each orbit of letters.

    Raises:
        MechanismError: a mass is negative, or a sum is another one.

    Examples:
        >>> from pmlopt.data.symmetry import CirclePrior
        >>> half = OrbitMechanism(CirclePrior(4).make_pairs(), [2, 2, 0], 4)  # stay, or a step to either side
        >>> half.matrix[0], half.probability(0, 1)
        (array([0.5 , 0.25, 0.  , 0.25]), Fraction(1, 4))
    """

    def __init__(self, space: PairSpace, masses: Sequence[int], total: int) -> None:
        vars(self).update(space=space, masses=tuple(int(mass) for mass in masses), total=int(total))
        if len(self.masses) != space.orbits.count:
            raise MechanismError(
                f"there are {len(self.masses)} masses for {space.orbits.count} orbits of pairs"
            )
        if not self.has_exact_rows:
            raise MechanismError(
                f"the masses are negative, or do not sum to {total}, above 0, over an orbit of letters: no "
                "mechanism"
            )

    space: PairSpace
    masses: tuple[int, ...]
    total: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrbitMechanism) and self.record == other.record

    def __hash__(self) -> int:
        return hash((self.masses, self.total))

    @property
    def has_exact_rows(self) -> bool:
        """Return whether masses are nonnegative and sum to the positive total over each letter orbit."""
        sums = [0] * len(self.space.orbits.letters)
        for mass, letter in zip(self.masses, self.space.orbits.letter.tolist(), strict=True):
            sums[letter] += mass
        return (
            self.total > 0 and min(self.masses) >= 0 and all(found == self.total for found in sums)
        )

    def entry(self, place: int) -> Fraction:
        """Return the exact probability of each output in a pair orbit."""
        return Fraction(self.masses[place], self.space.orbits.multiplicities[place] * self.total)

    def probability(self, letter: Label, output: Label) -> Fraction:
        """Return the exact probability of an output given a letter.

        Raises:
            MechanismError: one of them is none.
        """
        x = self.space.encode_labels([letter])
        y = self.space.encode_labels([output], outputs=True)
        return self.entry(int(self.space.pair_orbits(x, y)[0]))

    @cached_property
    def mass_fractions(self) -> FloatArray:
        """Return the (C,) orbit masses over their total, as floats."""
        return np.array([mass / self.total for mass in self.masses])

    @cached_property
    def scaled_entries(self) -> FloatArray:
        """Return the (C,) orbit probabilities multiplied by output-orbit sizes.

        A column of these has the mean of the orbit's probability, whatever the size of the alphabet.
        """
        orbits = self.space.orbits
        sizes = zip(self.masses, orbits.counts, orbits.letter.tolist(), strict=True)
        return np.array([k * orbits.letters[x] / (n * self.total) for k, n, x in sizes])

    def sample_array(self, letters: Any, seed: Seed = None) -> Any:
        """Draw one random output for each letter, in internal arrays.

        The orbit has exactly its probability, and the outputs in it are exactly as likely.

        Args:
            letters: (k, n) for tables of n records, (k,) for a circle or listed letters, a tuple of such
                arrays for a product; positions, or labels where the prior has them.
            seed: for a result that can be repeated, a seed or a numpy Generator; None draws from the
                operating system, as a release must.

        Returns:
            The outputs in the same form, as positions.

        Raises:
            MechanismError: a letter is none.
        """
        # Outputs that are drawn at once: a few dozen megabytes for tables of 24 records.
        batch = 100_000
        bits = make_random_bits(seed)
        known = self.space.encode_labels(letters)
        batches = (slice(first, first + batch) for first in range(0, count_items(known), batch))
        return _join_parts(
            [self._draw_outputs(take_entries(known, some), bits) for some in batches]
        )

    def sample(self, values: Iterable[Label], seed: Seed = None) -> NDArray[Any]:
        """Draw one random output for each value, as labels; see `sample_array` for many."""
        letters = list(values)
        if not letters:
            return to_label_array([])
        return to_label_array(
            self.space.decode_labels(
                self._draw_outputs(self.space.encode_labels(letters), make_random_bits(seed))
            )
        )

    def _draw_outputs(self, letters: Any, bits: RandomBits) -> Any:
        """Draw an output for each letter: first its pair orbit, then uniformly inside."""
        return self.space.draw_outputs(
            letters, self._draw_orbits(self.space.letter_orbits(letters), bits), bits
        )

    def _draw_orbits(self, orbits: IntArray, bits: RandomBits) -> IntArray:
        """Draw (k,) pair orbits for given letter orbits, with exact probabilities.

        Words of 64 bits are compared with the sums of the masses; where a word is on a sum itself, more bits
        decide.
        """
        words = bits.draw_words(len(orbits))
        places = np.empty(len(orbits), dtype=np.int64)
        for orbit in np.unique(orbits).tolist():
            own, thresholds = self._orbit_thresholds[orbit]
            here = np.flatnonzero(orbits == orbit)
            drawn = np.searchsorted(thresholds, words[here], side="right")
            for k in np.flatnonzero(np.isin(words[here], thresholds)).tolist():
                drawn[k] = self._resolve_orbit(own, int(words[here[k]]), bits)
            places[here] = own[drawn]
        return places

    def _resolve_orbit(self, own: IntArray, word: int, bits: RandomBits) -> int:
        """Decide a pair orbit with further random bits where 64 are not enough."""
        position = word * self.total + bits.draw_below(self.total)
        end = 0
        for place, orbit in enumerate(own.tolist()):
            end += self.masses[orbit] << 64
            if position < end:
                return place
        raise AssertionError("the masses sum to the total")

    @cached_property
    def _orbit_thresholds(self) -> list[tuple[IntArray, NDArray[np.uint64]]]:
        """Return each letter orbit's pair orbits with cumulative 64-bit thresholds."""
        found = []
        for x in range(len(self.space.orbits.letters)):
            own = np.flatnonzero(self.space.orbits.letter == x)
            ends = [
                end for end in accumulate(self.masses[k] for k in own.tolist()) if end < self.total
            ]
            found.append(
                (own, np.array([(end << 64) // self.total for end in ends], dtype=np.uint64))
            )
        return found

    @property
    def inputs(self) -> Labels:
        """Return the input labels of a small alphabet."""
        self.space.prior.check_listable()
        return self.space.prior.labels

    @cached_property
    def outputs(self) -> Labels:
        """Return the output labels of a small alphabet."""
        self._check_listable()
        return tuple(self.space.decode_labels(self.space.list_letters(outputs=True)))

    @cached_property
    def matrix(self) -> FloatArray:
        """Return the (N, M) matrix in floats, if it has at most 2^24 entries.

        Raises:
            MechanismError: it has more.
        """
        self._check_listable()
        entries = np.array([float(self.entry(place)) for place in range(len(self.masses))])
        matrix = entries[self.space.list_orbits()]
        matrix.setflags(write=False)
        return matrix

    def is_listable(self, most: int) -> bool:
        """Return whether letters and outputs number at most `most`."""
        return max(sum(self.space.orbits.letters), sum(self.space.orbits.outputs)) <= most

    def listed(self) -> Mechanism:
        """Convert to a `Mechanism` with an explicit matrix.

        Raises:
            MechanismError: the matrix has more than 2^24 entries.
        """
        return Mechanism(self.matrix, self.inputs, self.outputs)

    def _check_listable(self) -> None:
        # Entries of a matrix that is written out, 128 MiB.
        """Raise an error where the alphabet is too large to list."""
        largest_matrix = 2**24
        orbits = self.space.orbits
        if (entries := sum(orbits.letters) * sum(orbits.outputs)) > largest_matrix:
            raise MechanismError(
                f"the matrix has {entries:.3g} entries: it is listed up to {largest_matrix}. `probability`, "
                "`sample_array` and `save` need no list"
            )

    @property
    def record(self) -> dict[str, Any]:
        """Serialize the mechanism to plain data: labels and matrix."""
        from pmlopt.core.records.converters import to_plain

        return {
            "space": to_plain(self.space),
            "total": str(self.total),
            "masses": [str(mass) for mass in self.masses],
        }

    def save(self, path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
        """Save the orbit mechanism to a JSON file atomically.

        The masses are decimal digits in quotes: they are longer than what most readers take for a number.

        Raises:
            FileFormatError: the ending is another one, or the file cannot be written.
        """
        from pmlopt.core.files.disk import atomic_write, encode_json_bytes, get_file_format

        get_file_format(path, (".json",))
        content = {
            "format": FORMAT,
            "version": MECHANISM_FILE_VERSION,
            **self.record,
            "metadata": dict(metadata or {}),
        }
        atomic_write(path, encode_json_bytes(content))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, name: str | None = None) -> OrbitMechanism:
        """Load an orbit mechanism from a JSON file.

        Args:
            path: of the file.
            name: to be left out: a JSON file holds one mechanism.

        Raises:
            FileFormatError: the file is not there, cut short, or holds none.
        """
        if name is not None:
            raise FileFormatError(f"{path}: holds one mechanism, and a name chooses among several")
        return read_orbit_mechanism(path)[0]

    def __repr__(self) -> str:
        return f"<OrbitMechanism on {self.space.prior!r}, {len(self.masses)} orbits of pairs>"

    def _repr_html_(self) -> str:
        """Return the orbits of pairs as a notebook shows them, the most probable for their letters first."""
        orbits = self.space.orbits
        order = np.argsort(-self.mass_fractions, kind="stable").tolist()
        names = self.space.pair_names
        rows = [
            [str(names[k]), str(orbits.multiplicities[k]), f"{self.mass_fractions[k]:.4g}"]
            for k in order
        ]
        head = ["orbit of pairs", "outputs for each letter", "probability of the orbit"]
        return format_table_html(repr(self).strip("<>"), head, rows)


@light_dataclass(frozen=True, eq=False)
class SavedOrbits:
    """The JSON record of an orbit mechanism, with long integers as text."""

    format: Literal[FORMAT]  # type: ignore[valid-type]
    version: Literal[MECHANISM_FILE_VERSION]  # type: ignore[valid-type]
    space: PairSpace
    total: str
    masses: list[str]
    metadata: Mapping[str, Any]

    @cached_property
    def mechanism(self) -> OrbitMechanism:
        """Build the mechanism of the record."""
        for text in (self.total, *self.masses):
            # Digits of a mass in a file, the most that Python reads.
            if not (text.isascii() and text.isdigit() and len(text) <= 4_300):
                raise FileFormatError(f"{text!r:.40} is in the place of decimal digits in quotes")
        return OrbitMechanism(self.space, [int(text) for text in self.masses], int(self.total))

    def __post_init__(self) -> None:
        _ = self.mechanism  # complains of one that is none


def is_orbit_record(data: Any) -> bool:
    """Return whether plain data are an orbit mechanism's record."""
    return isinstance(data, dict) and data.get("format") == FORMAT


def is_orbit_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a JSON file holds an orbit mechanism."""
    from pmlopt.core.files.disk import get_file_format, is_standard_stream, read_bytes

    if is_standard_stream(path) or get_file_format(path) != ".json":
        return False
    content = read_bytes(path)
    if f'"{FORMAT}"'.encode() not in content:  # most files are others, and may be long
        return False
    import json

    try:
        return is_orbit_record(json.loads(content))
    except (ValueError, RecursionError):
        return False


def read_orbit_mechanism(path: str | os.PathLike[str]) -> tuple[OrbitMechanism, Mapping[str, Any]]:
    """Read orbit mechanism and metadata of a file."""
    from pmlopt.core.files.disk import read_bytes, read_saved_record

    saved = read_saved_record(SavedOrbits, read_bytes(path), path)
    return saved.mechanism, saved.metadata


def _join_parts(parts: list[Any]) -> Any:
    """Concatenate output batches, per factor for products."""
    if isinstance(parts[0], list):
        return tuple(_join_parts(list(several)) for several in zip(*parts, strict=True))
    return np.concatenate(parts)
