"""The loss of each column of a design on tuples, from its table, where that is a sum over the columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray, Labels
from pmlopt.programs.certificate import DesignCertificate
from pmlopt.programs.linear.certificate import LinearCertificate


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """What one part of the tuples loses above its best output, in units of the whole loss.

    Attributes:
        letters: the n values of the part.
        outputs: its m outputs.
        losses: (n, m), at least 0.
        loss: the mean under the mechanism.
        nothing: the least mean of a constant output.
    """

    letters: Labels
    outputs: Labels
    losses: FloatArray
    loss: float
    nothing: float


def split_by_column(certificate: DesignCertificate) -> tuple[ColumnTable, ...]:
    """Split the loss of a design on tuples into those of its columns; empty where it is no sum of these.

    Above the best outputs of its letters, the loss of a part at (a, b) is the least of all pairs of a letter
    with a and an output with b: the other parts may have their best outputs.

    Examples:
        >>> from pmlopt import PML, ExpectedLoss, Prior, design, solve
        >>> from pmlopt.utility import SumOfParts, hamming
        >>> loss = SumOfParts(ExpectedLoss(hamming), ExpectedLoss(hamming))
        >>> pairs = Prior([0.4, 0.1, 0.1, 0.4], [(a, b) for a in "xy" for b in "uv"])
        >>> first, second = split_by_column(solve(design(pairs, PML(0.2), loss)).certificate)
        >>> first.letters, first.losses.tolist(), second.nothing
        (('x', 'y'), [[0.0, 1.0], [1.0, 0.0]], 0.5)
    """
    if not isinstance(certificate, LinearCertificate):
        return ()
    sides = [certificate.mechanism.inputs, certificate.mechanism.outputs]
    widths = {len(label) if isinstance(label, tuple) else 0 for side in sides for label in side}
    if len(widths) > 1 or (width := widths.pop()) < 2:
        return ()
    gains = certificate.table if certificate.maximised else -certificate.table
    lost = gains.max(axis=1, keepdims=True) - gains
    law = certificate.prior.pmf
    matrix = certificate.mechanism.matrix
    found = []
    rest = lost.copy()
    for place in range(width):
        (letters, x), (outputs, y) = (_encode_part(side, place) for side in sides)
        losses = np.full((len(letters), len(outputs)), np.inf)
        np.minimum.at(losses, np.ix_(x, y), lost)
        own = losses[np.ix_(x, y)]
        rest -= own
        masses = np.bincount(x, weights=law)
        found.append(
            ColumnTable(
                letters, outputs, losses, float(law @ (own * matrix).sum(axis=1)),
                float((masses @ losses).min()) if np.isfinite(losses).all() else np.nan,
            )
        )  # fmt: skip
    # where not all combinations are outputs, the least may have lost something in other parts
    is_sum = np.abs(rest).max() <= 1e-9 * lost.max()
    return tuple(found) if is_sum and all(np.isfinite(one.nothing) for one in found) else ()


def _encode_part(side: Labels, place: int) -> tuple[Labels, IntArray]:
    """Return the values of one part of labels, and the place of each label's own."""
    values = [label[place] for label in side]  # type: ignore[index]
    known = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return tuple(known), np.array([known[value] for value in values])
