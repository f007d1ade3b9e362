"""The table of a sampler: whole numbers whose comparison with random bits has the law of the matrix.

Where the entries of a row are multiples of 2^-B and sum to one, the sums `c_y = 2^B (p_0 + ... + p_y)` are
whole. For j uniform on 0, ..., 2^B - 1 the output is the first y with `j < c_y`, and has the probability
`(c_y - c_{y-1}) / 2^B = p_y` exactly. Mechanisms that pmlopt designs are such for B = 53.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np

from pmlopt.core.lazy_imports import hashlib
from pmlopt.core.numbers.arrays import FloatArray, Labels, abbreviate, name_outputs
from pmlopt.errors import MechanismError


class LabelledMatrix(Protocol):
    """A matrix with the labels of its rows and columns, such as a mechanism."""

    @property
    def matrix(self) -> FloatArray:
        """Return the (N, M) probabilities."""

    @property
    def inputs(self) -> Labels:
        """Return the labels of the rows."""

    @property
    def outputs(self) -> Labels:
        """Return the labels of the columns."""


MAX_BITS = 53
"""Bits of a draw: whole numbers up to 2^53 are exact in the floats of every language."""


@dataclass(frozen=True)
class SamplerTable:
    """The numbers of a sampler.

    Attributes:
        inputs: the letters, as text.
        outputs: the outcomes, as text.
        bits: B, of a draw.
        thresholds: for each letter the sums c_y, from the first outcome to the last.
        is_rounded: whether bits were given, to which the sums are rounded.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bits: int
    thresholds: tuple[tuple[int, ...], ...]
    is_rounded: bool = False

    @classmethod
    def from_mechanism(cls, mechanism: LabelledMatrix, bits: int | None = None) -> SamplerTable:
        """Build the table of a mechanism, exactly or rounded to a number of bits.

        Args:
            mechanism: of letters and outcomes that are distinct as text, as a CSV file writes them.
            bits: to which the sums are rounded, each to the nearest; left out, nothing is rounded.

        Raises:
            MechanismError: the entries are no multiples of 2^-53 whose rows sum to one, and no bits are
                given; the bits are not within 1 and 53; or a label is none in every language.

        Examples:
            >>> from pmlopt import Mechanism
            >>> SamplerTable.from_mechanism(Mechanism([[0.75, 0.25]], ["a"], ["x", "y"]), 2).thresholds
            ((3, 4),)
        """
        if bits is not None and not (type(bits) is int and 1 <= bits <= MAX_BITS):
            raise MechanismError(f"bits must be a whole number from 1 to {MAX_BITS}, not {bits!r}")
        scale = 1 << (bits or MAX_BITS)
        rows = [_sum_row(row, scale, rounded=bits is not None) for row in mechanism.matrix]
        for letter, row in zip(mechanism.inputs, rows, strict=True):
            if row is None:
                raise MechanismError(
                    f"the row of {letter!r} is not in multiples of 2^-53 that sum to one, so whole numbers "
                    "cannot draw from it exactly: give bits=53 (--bits 53) to round it, and its level is "
                    "computed again"
                )
        return cls(
            list_texts(mechanism.inputs, "inputs"),
            list_texts(name_outputs(mechanism.inputs, mechanism.outputs), "outputs"),
            bits or MAX_BITS,
            tuple(row for row in rows if row is not None),
            bits is not None,
        )

    @property
    def digest(self) -> str:
        """Return the SHA-256 of letters, outcomes, bits and thresholds as JSON."""
        content = [self.inputs, self.outputs, self.bits, self.thresholds]
        return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()

    def compute_counts(self) -> list[list[int]]:
        """Compute how many of the 2^B draws lead from each letter to each outcome."""
        return [
            [after - before for before, after in pairwise((0, *row))] for row in self.thresholds
        ]

    def to_matrix(self) -> FloatArray:
        """Return the (N, M) law of the sampler: the counts over 2^B."""
        return np.array(self.compute_counts(), float) / 2.0**self.bits


def _sum_row(row: FloatArray, scale: int, *, rounded: bool) -> tuple[int, ...] | None:
    """Return the sums of a row of probabilities, scaled; None where they are not whole and must be."""
    sums = list(accumulate(map(Fraction, row.tolist())))
    if rounded:
        # over the row's own sum, which may differ from one by the rounding of floats
        return tuple(round(part / sums[-1] * scale) for part in sums)
    if sums[-1] != 1 or any(scale % part.denominator for part in sums):
        return None
    return tuple(int(part * scale) for part in sums)


def list_texts(labels: Labels, side: str) -> tuple[str, ...]:
    """Return labels as text, and raise for those that are the same text, or that no source can hold.

    Raises:
        MechanismError: two labels are the same text, or one has a character that some language cannot hold.
    """
    texts = tuple(map(str, labels))
    if len(set(texts)) < len(texts):
        raise MechanismError(
            f"two of the {side} {abbreviate(labels)} are the same as text: give them other labels"
        )
    for text in texts:
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise MechanismError(
                f"the label {text!r} among the {side} holds a character that is no text in every language "
                "(NUL, or half of a surrogate pair): give it another label"
            )
    return texts
