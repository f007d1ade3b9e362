"""Estimable statistics of a mechanism's output: rank, and linear combinations in its range."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.core.numbers.arrays import (
    FloatArray,
    Labels,
    abbreviate,
    bound_sum_rounding,
    join_words,
)
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.errors import MechanismError

MAX_RANKED_SIZE = 500
"""Inputs and outputs up to which summaries have the rank of a mechanism."""

RANK_RTOL = 1e-11
"""Singular values up to this share of the largest are put down to rounding of the entries."""

BASIS_ATOL = 1e-12
"""How far an entry of a basis may be from a whole number to be that number."""


@dataclass(frozen=True, eq=False)
class Estimable:
    """The linear combinations `w f` of input frequencies that the output law determines.

    The law of the output is `q = f P`, so w f is determined iff w is a combination of the columns of P.

    Attributes:
        mechanism: (N, M).
        rank: of the matrix; N where every combination can be estimated.
        basis: (rank, N) combinations from which all others follow, in reduced row echelon form.
        letters: the inputs whose own frequency can be estimated.
        never: the outputs that never occur.
    """

    mechanism: Mechanism
    rank: int
    basis: FloatArray
    letters: Labels
    never: Labels

    def __str__(self) -> str:
        """Return rank, estimable letters and impossible outputs in one line."""
        size = len(self.mechanism.inputs)
        text = f"all {size} frequencies" if self.rank == size else f"rank {self.rank} of {size}"
        if self.rank < size:
            text += (
                f", the frequency of {join_words(self.letters)}"
                if self.letters
                else ", of no single letter"
            )
        return text + (
            f"; {join_words(self.never)} {'is' if len(self.never) == 1 else 'are'} never published"
            if self.never
            else ""
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return a warning where single frequencies are not estimable.

        Examples:
            >>> estimable([[0.8, 0.2], [0.8, 0.2], [0.1, 0.9]]).warnings[0][:67]
            '3 values become 2 outputs; the frequencies of 2 of them cannot be e'
        """
        size = len(self.mechanism.inputs)
        lost = len(self.mechanism.inputs) - len(self.letters)
        if self.rank == size or not lost:
            return ()
        outputs = len(self.mechanism.outputs) - len(self.never)
        become = f"{size} values become {outputs} output{'s' * (outputs != 1)}"
        become += f" of rank {self.rank}" if self.rank < min(size, outputs) else ""
        which = "frequencies" if lost == size else f"the frequencies of {lost} of them"
        instead = "estimation-error"
        if any(isinstance(letter, tuple) for letter in self.mechanism.inputs):
            instead += ", or in a plan of columns together margins in place of utilities"
        return (f"{become}; {which} cannot be estimated: to estimate them choose {instead}",)

    @cached_property
    def range(self) -> FloatArray:
        """Return an (N, rank) orthonormal basis of the mechanism's column space."""
        return self._compute_factors[0]

    @cached_property
    def _compute_factors(self) -> tuple[FloatArray, FloatArray]:
        """Compute an orthonormal basis of the column space, with singular values."""
        left, sizes, _ = np.linalg.svd(self.mechanism.matrix)
        return left[:, : self.rank], sizes[: self.rank]

    def includes(self, combinations: FloatArray) -> np.ndarray:
        """Return the (K,) mask of estimable rows of combinations.

        Frequencies sum to one: a number that is added to a row changes nothing, and is taken out first.
        """
        # the median first: a large common number would cost the small differences their digits
        apart = combinations - np.median(combinations, axis=1, keepdims=True)
        apart = apart - apart.mean(axis=1, keepdims=True)
        left, sizes = self._compute_factors
        turned = apart @ left
        # what the projection onto the range of P leaves of each row
        rest = np.linalg.norm(apart - turned @ left.T, axis=1)
        # what rounding leaves of W - V P', where V are the weights of the outputs, and of digits in `basis`
        norms = np.linalg.norm(apart, axis=1)
        terms = norms + sizes[0] * np.linalg.norm(turned / sizes, axis=1)
        return np.asarray(
            rest <= bound_sum_rounding(len(left), 1.0) * terms + len(left) * BASIS_ATOL * norms
        )

    def check(self, combinations: FloatArray) -> None:
        """Raise a MechanismError for combinations that are not estimable."""
        if self.rank == len(self.mechanism.inputs):
            return
        missing = np.flatnonzero(~self.includes(combinations))
        if not len(missing):
            return
        never = f" (the outputs {abbreviate(self.never)} are never published)" if self.never else ""
        alone = (
            f"of single letters only {abbreviate(self.letters)}"
            if self.letters
            else "of no single letter"
        )
        raise MechanismError(
            f"the mechanism has rank {self.rank} for {len(self.mechanism.inputs)} letters{never}: row "
            f"{missing[0]} of what is asked for cannot be estimated from its output, which determines the "
            f"frequency {alone}; `estimable(mechanism)` lists what it determines. To estimate all, release "
            "with a mechanism for the utility estimation-error"
        )


def estimable(mechanism: MechanismLike) -> Estimable:
    """Return which combinations of input frequencies the output of a mechanism determines, for any number of
    people.

    Args:
        mechanism: (N, M).

    Examples:
        >>> found = estimable([[0.8, 0.2, 0.0], [0.8, 0.2, 0.0], [0.1, 0.9, 0.0]])
        >>> found.rank, found.basis.tolist(), found.letters, found.never
        (2, [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], (2,), (2,))
        >>> print(found)
        rank 2 of 3, the frequency of 2; 2 is never published
    """
    m = as_mechanism(mechanism)
    sizes = np.linalg.svd(m.matrix, compute_uv=False)
    # relative to the largest: entries are rounded in proportion to it
    rank = int((sizes > RANK_RTOL * sizes[0]).sum())
    letters = len(m.matrix)
    if rank == letters:  # everything is determined, and directions need not be known
        basis = np.eye(letters)
        inside = np.ones(letters, dtype=bool)
    else:
        left = np.linalg.svd(m.matrix)[0]
        # a unit vector is in the range iff its part in the orthogonal complement is 0
        inside = np.linalg.norm(left[:, rank:], axis=1) <= 1e-9
        basis = _reduce_to_echelon(left[:, :rank].T.copy())
    return Estimable(
        mechanism=m,
        rank=rank,
        basis=basis,
        letters=tuple(label for label, kept in zip(m.inputs, inside, strict=True) if kept),
        never=tuple(
            label for label, occurs in zip(m.outputs, m.support, strict=True) if not occurs
        ),
    )


def rank_warnings(mechanism: Mechanism) -> tuple[str, ...]:
    """Return a warning where letter frequencies are not estimable.

    Examples:
        >>> rank_warnings(Mechanism([[0.5, 0.5], [0.5, 0.5]]))[0][:28]
        '2 values become 2 outputs of'
    """
    if max(mechanism.matrix.shape) > MAX_RANKED_SIZE:
        return ()
    return estimable(mechanism).warnings


def _reduce_to_echelon(rows: FloatArray) -> FloatArray:
    """Reduce independent rows to echelon form with partial pivoting."""
    done = 0
    for column in range(rows.shape[1]):
        if done == len(rows):
            break
        # partial pivoting: a small pivot would multiply the rounding of its row
        pivot = done + int(np.abs(rows[done:, column]).argmax())
        if abs(rows[pivot, column]) <= 1e-9:
            continue
        rows[[done, pivot]] = rows[[pivot, done]]
        rows[done] /= rows[done, column]
        # above the pivot as well, so that the form is reduced
        others = np.arange(len(rows)) != done
        rows[others] -= np.outer(rows[others, column], rows[done])
        done += 1
    whole = np.rint(rows)
    return np.where(np.abs(rows - whole) <= BASIS_ATOL, whole, rows) + 0.0
