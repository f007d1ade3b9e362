"""The columns of a requirement as cones: linear forms that are not negative, and quadratic ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.privacy.ratios import Ratios
from pmlopt.uncertainty import Cone, Vertices
from pmlopt.uncertainty.column_families import Box, Family, Staircase

OUTWARD = 1e-12
"""Share by which factors such as e^epsilon are moved outward, for the rounding of their floats."""

MOST_FORMS = 200
"""Linear forms up to which all their products are taken: 19,900 products."""


@dataclass(frozen=True, eq=False)
class ColumnCone:
    """Columns lam of mean one, with some scalars s of their own, on which linear forms are not negative.

    With v = (lam, s): `rows v >= 0` and `<mean, v> = 1`. Products of two rows are quadratic forms that are
    not negative either, and so are the `forms` at the extreme columns.

    Attributes:
        letters: N.
        rows: (K, N + S).
        mean: (N + S,) the prior, and zeros.
        size: an upper bound on |v|^2.
        forms: (N + S, N + S) symmetric, each with `v' form v >= 0` at the extreme columns.
    """

    letters: int
    rows: FloatArray
    mean: FloatArray
    size: float
    forms: tuple[FloatArray, ...] = ()

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The two rows of each product."""
        return np.triu_indices(len(self.rows), 1)

    @property
    def count(self) -> int:
        """How many quadratic forms there are: products of two rows, and `forms`."""
        return len(self.pairs[0]) + len(self.forms)

    def combined(self, weights: FloatArray, absolute: bool = False) -> FloatArray:
        """(N + S, N + S) the sum of the quadratic forms with some weights; of their sizes where asked."""
        rows = np.abs(self.rows) if absolute else self.rows
        products = np.zeros((len(rows), len(rows)))
        products[self.pairs] = weights[: len(self.pairs[0])]
        total = rows.T @ (products + products.T) @ rows / 2
        for weight, form in zip(weights[len(self.pairs[0]) :], self.forms, strict=True):
            total += weight * (np.abs(form) if absolute else form)
        return np.asarray(total)


def column_cones(p: FloatArray, allowed: tuple[Family, ...] | Cone | Ratios) -> tuple[ColumnCone, ...] | None:
    """The cones whose extreme columns are those of a requirement; None where that takes too many forms."""
    if isinstance(allowed, Ratios):
        return _of_ratios(p, allowed)
    if isinstance(allowed, Cone):
        return _of_vertices(p, allowed) if isinstance(allowed.priors, Vertices) else None
    return tuple(_of_box(p, one) if isinstance(one, Box) else _of_staircase(p, one) for one in allowed)


def _of_box(p: FloatArray, box: Box) -> ColumnCone:
    """`lam - low q >= 0` and `high q - lam >= 0` with q = <p, lam>."""
    n, low, high = len(p), box.low * (1 - OUTWARD), box.high * (1 + OUTWARD)
    q = np.ones((n, 1)) * p
    rows = np.vstack([np.eye(n) - low * q, high * q - np.eye(n)])
    return ColumnCone(n, rows, p.copy(), n * high**2, _of_equal_letters(p, box, rows))


def _of_equal_letters(p: FloatArray, box: Box, rows: FloatArray) -> tuple[FloatArray, ...]:
    """For equal masses: an extreme column is low, high, and at one letter r, which is known.

    So `sum_x (lam[x] - low) (high - lam[x])` is `(r - low) (high - r)`, where a relaxation would have 0.
    """
    n = len(p)
    if np.ptp(p) > 1e-15 or box.constant:
        return ()
    above = n * (1 - box.low) / (box.high - box.low)
    share = above - math.floor(above)
    slack = (box.high - box.low) ** 2 * share * (1 - share) * (1 - 1e-9)
    if min(share, 1 - share) < 1e-9:
        return ()
    form = rows[:n].T @ rows[n:]
    return ((form + form.T) / 2 - slack * np.outer(p, p),)


def _of_staircase(p: FloatArray, family: Staircase) -> ColumnCone:
    """`lam - m >= 0`, `base q + slope m - lam >= 0` and m >= 0, with the least entry m as a scalar."""
    n, base, slope = len(p), family.base * (1 + OUTWARD), family.slope * (1 + OUTWARD)
    rows = np.zeros((2 * n + 1, n + 1))
    rows[:n, :n], rows[:n, n] = np.eye(n), -1.0
    rows[n : 2 * n, :n], rows[n : 2 * n, n] = base * p - np.eye(n), slope
    rows[2 * n, n] = 1.0
    highest = min(base + slope, 1 / float(p.min()))
    return ColumnCone(n, rows, np.append(p, 0.0), n * highest**2 + 1)


def _of_ratios(p: FloatArray, ratios: Ratios) -> tuple[ColumnCone, ...] | None:
    """The entries, and for each pair e^exponent times the denominator less the numerator."""
    n = len(p)
    if n + len(ratios.exponents) > MOST_FORMS:
        return None
    above, below = (side.toarray() for side in ratios.differences)
    pairs = np.exp(ratios.exponents)[:, None] * (1 + OUTWARD) * below - above
    pairs = pairs / np.abs(pairs).max(axis=1, keepdims=True)
    return (ColumnCone(n, np.vstack([np.eye(n), pairs]), p.copy(), float(1 / p.min()) ** 2),)


def _of_vertices(p: FloatArray, cone: Cone) -> tuple[ColumnCone, ...] | None:
    """The entries, those below their maximum M, and `<Q, lam> - keep M` for each vertex Q, M as a scalar."""
    assert isinstance(cone.priors, Vertices)
    laws, n = cone.priors.laws, len(p)
    if 2 * n + len(laws) > MOST_FORMS:
        return None
    rows = np.zeros((2 * n + len(laws), n + 1))
    rows[:n, :n] = np.eye(n)
    rows[n : 2 * n, :n], rows[n : 2 * n, n] = -np.eye(n), 1.0
    rows[2 * n :, :n], rows[2 * n :, n] = laws * (1 + OUTWARD), -cone.keep
    return (ColumnCone(n, rows, np.append(p, 0.0), 2 * float(1 / p.min()) ** 2),)
