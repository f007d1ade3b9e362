"""What bounds a record's leakage on a cell: multipliers, the tree of cells, and the dual bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray, rounding_of
from pmlopt.core.records import INFINITE, Shape
from pmlopt.measures.leakage import log_sum
from pmlopt.model.queries.record_leakage_measures import negative_entropies

WHOLE = -1
"""In place of the output at which a box is split, for one that is not."""


@dataclass(frozen=True, eq=False)
class PosteriorTree:
    """A tree of boxes: each has an interval for the posterior `psi_y = P(X_i = 0 | Y = y)` of each output.

    Box 0 is the cube of all posteriors. A box is split at a point of one output's interval, which ends the
    interval of its first part and begins that of its second: the boxes that are not split cover the cube,
    whatever the points. Those have multipliers; see `BoxRelaxation` for the bound that they prove.

    Attributes:
        output: (N,) the output whose interval is split; `WHOLE` for none.
        point: (N,) where it is split.
        part: (N,) the place of the first part, the second follows it; both after the box itself.
        price: (N,) s > 0, of the entropy.
        lower: (N, M) lambda >= 0, of `psi_y >= l_y`.
        upper: (N, M) nu >= 0, of `psi_y <= h_y`.
    """

    output: Annotated[IntArray, Shape("boxes")]
    point: Annotated[FloatArray, Shape("boxes")]
    part: Annotated[IntArray, Shape("boxes")]
    price: Annotated[FloatArray, Shape("boxes")]
    lower: Annotated[FloatArray, Shape("boxes", "M")]
    upper: Annotated[FloatArray, Shape("boxes", "M")]

    def __len__(self) -> int:
        return len(self.output)


def negative_binary_entropy(share: FloatArray) -> FloatArray:
    """The function `p log p + (1 - p) log(1 - p)`, 0 at both ends.

    Examples:
        >>> negative_binary_entropy(np.array([0.0, 0.5, 1.0])).round(6).tolist()
        [0.0, -0.693147, 0.0]
    """
    return np.asarray(_with_logarithm(share) + _with_logarithm(1 - share))


def chord_ends(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The chord of the negative binary entropy over an interval, continued to 1 and to 0.

    Between the ends `p log p + (1 - p) log(1 - p) <= p alpha + (1 - p) beta`; the value where they meet.

    Returns:
        alpha and beta, of the shape of both arguments.

    Examples:
        >>> [ends.round(6).tolist() for ends in chord_ends(np.array([0.0]), np.array([0.5]))]
        [[-1.386294], [0.0]]
    """
    at_low, at_high = negative_binary_entropy(low), negative_binary_entropy(high)
    width = high - low
    slope = np.where(width > 0, (at_high - at_low) / np.where(width > 0, width, 1.0), 0.0)
    beta = at_low - slope * low
    return beta + slope, beta


def _with_logarithm(share: FloatArray) -> FloatArray:
    return np.asarray(share * np.log(np.where(share > 0, share, 1.0)))


PRICE_MOVES = 8
"""How often the interval in which the best price is sought is moved."""
PRICE_REACH = 4.0
"""How far that interval reaches around the last price, as a natural logarithm."""
PRICE_RANGE = (1e-12, 1e12)
"""Where the search for the price begins at least and at most; the solver may say 0."""


@dataclass(frozen=True, eq=False)
class LeakageProof:
    """Multipliers that bound the leakage on a cell, whatever they are.

    Attributes:
        price: s >= 0, of the entropy.
        log_law: (M,) log r, r any law of Y: `H(Y) <= -sum_y q[y] log r[y]`.
        slopes: (A, M) mu: raised to `mu_a v >= phi(v)` at the vertices of a cell, and so on the cell.
        share: theta in [0, 1], of the bound by the outputs; the rest is for `I(X_i; Y) <= H(X_i)`.
        log_letters: (A,) log rho, rho any law of X_i: `H(X_i) <= -sum_a pi[a] log rho[a]`. None, for a share
            of one, where it is not needed.
    """

    price: float
    log_law: Annotated[FloatArray, Shape("M")]
    slopes: Annotated[FloatArray, Shape("A", "M")]
    share: float = 1.0
    log_letters: Annotated[FloatArray, Shape("A")] | None = None


@dataclass(frozen=True, eq=False)
class Region:
    """A cell, with its bound; the regions whose `parent` it is cover it, and where there are none it counts.

    Attributes:
        cell: for each letter the vertices (K_a, M) of a polytope of output laws.
        parent: the place of the region that was split, -1 for the first.
    """

    cell: tuple[FloatArray, ...]
    proof: LeakageProof
    bound: float
    parent: int


@dataclass(frozen=True, eq=False)
class StoredRegion:
    """A region as files have it: its cell is the places of its polytopes in a list of all of them."""

    cell: tuple[int, ...]
    proof: LeakageProof
    bound: float
    parent: int


@dataclass(frozen=True, eq=False)
class KindProof:
    """The proof for the records of one kind.

    Attributes:
        record: one of them.
        regions: the first holds every law; none where the bound rests on something else.
        bound: the largest bound of the regions, or boxes, that count.
        boxes: the boxes of posteriors of a binary record, in place of regions.
        laws: (R, M) laws of Y, in place of both: for each choice of one class t_a for each letter a there is
            one from which no row W[t_a] diverges by more than the bound. Without regions, boxes and laws the
            entropy leaves next to nothing but the uniform dataset.
    """

    record: int
    regions: tuple[Region, ...]
    bound: Annotated[float, INFINITE]
    boxes: PosteriorTree | None = None
    laws: Annotated[FloatArray, Shape("R", "M")] | None = None

    @classmethod
    def from_fields(
        cls,
        record: int,
        polytopes: tuple[FloatArray, ...],
        stored: tuple[StoredRegion, ...],
        bound: Annotated[float, INFINITE],
        boxes: PosteriorTree | None,
        laws: Annotated[FloatArray, Shape("R", "M")] | None,
    ) -> KindProof:
        """The proof from what a file has of it."""
        cells = [tuple(polytopes[place] for place in one.cell) for one in stored]
        regions = (
            Region(cell, one.proof, one.bound, one.parent) for cell, one in zip(cells, stored, strict=True)
        )
        return cls(record, tuple(regions), bound, boxes, laws)

    @cached_property
    def _places(self) -> dict[int, tuple[int, FloatArray]]:
        """The polytopes of all cells, each with its place among them."""
        known: dict[int, tuple[int, FloatArray]] = {}
        for region in self.regions:
            for polytope in region.cell:
                known.setdefault(id(polytope), (len(known), polytope))
        return known

    @property
    def polytopes(self) -> tuple[FloatArray, ...]:
        """The polytopes of all cells, of which most are those of several."""
        return tuple(polytope for _, polytope in self._places.values())

    @property
    def stored(self) -> tuple[StoredRegion, ...]:
        """The regions as files have them."""
        return tuple(
            StoredRegion(tuple(self._places[id(one)][0] for one in r.cell), r.proof, r.bound, r.parent)
            for r in self.regions
        )

    @property
    def relaxations(self) -> int:
        """How many regions or boxes it has."""
        return len(self.regions) + (0 if self.boxes is None else len(self.boxes))


def leakage_bound(
    rows: FloatArray,
    log_counts: FloatArray,
    entropy: float,
    cell: tuple[FloatArray, ...],
    proof: LeakageProof,
) -> float:
    """What no prior leaks more than whose laws of Y lie in a cell, from any multipliers, in nats.

    `s log sum_{a,t} c(a, t) exp(g(a, t) / s) - s b`, the dual of `CellRelaxation`, with
    `g(a, t) = theta sum_y W[t,y] (mu_a[y] - log r[y]) - (1 - theta) log rho[a]`, where mu is raised until it
    lies above phi on the cell. The largest g where s is 0. What rounding may have taken off is added.

    Args:
        rows: (T, M) W.
        log_counts: (A, T) log c.
        entropy: b, in nats.
        cell: for each letter the vertices (K_a, M).
        proof: any s >= 0, r and mu.

    Examples:
        >>> rows = np.eye(2)
        >>> proof = LeakageProof(0.0, np.log([0.5, 0.5]), np.zeros((2, 2)))  # phi is 0 at both vertices
        >>> round(leakage_bound(rows, np.zeros((2, 2)), 0.0, (rows, rows), proof), 9)
        0.693147181
    """
    return _bound_at_price(*_exponents(rows, log_counts, entropy, cell, proof), proof.price)


def sharpened(
    rows: FloatArray,
    log_counts: FloatArray,
    entropy: float,
    cell: tuple[FloatArray, ...],
    proof: LeakageProof,
) -> tuple[LeakageProof, float]:
    """The proof with the best price for its other multipliers, and its bound."""
    from scipy.optimize import minimize_scalar

    parts = _exponents(rows, log_counts, entropy, cell, proof)
    guess = math.log(min(max(proof.price, PRICE_RANGE[0]), PRICE_RANGE[1]))
    for _ in range(
        PRICE_MOVES
    ):  # the bound is convex in the price, and its best may be far from the solver's
        near = guess - PRICE_REACH, guess + PRICE_REACH
        found = minimize_scalar(
            lambda place: _bound_at_price(*parts, math.exp(place)), bounds=near, method="bounded"
        )
        step, guess = abs(float(found.x) - guess), float(found.x)
        if step < PRICE_REACH / 2:
            break
    prices = [proof.price, math.exp(guess), 0.0]
    bounds = [_bound_at_price(*parts, price) for price in prices]
    best = int(np.argmin(bounds))
    return replace(proof, price=prices[best]), bounds[best]


def _exponents(
    rows: FloatArray,
    log_counts: FloatArray,
    entropy: float,
    cell: tuple[FloatArray, ...],
    proof: LeakageProof,
) -> tuple[FloatArray, FloatArray, float, float]:
    """The exponents g, log c and b less a shift, and what rounding may hide at a price of one."""
    used = np.isfinite(log_counts)
    lifts = [
        (negative_entropies(vertices) - vertices @ slope).max()
        for vertices, slope in zip(cell, proof.slopes, strict=True)
    ]
    slopes = proof.slopes + np.array(lifts)[:, None]
    log_law = proof.log_law - log_sum(proof.log_law)
    exponents = (slopes - log_law)[:, None, :] * rows
    sizes = (proof.slopes, lifts, proof.log_law, log_law, 1.0)
    size = sum(float(np.abs(part).max()) for part in sizes)
    found = proof.share * (exponents.sum(axis=2) + rounding_of(rows.shape[1], size))
    if proof.log_letters is not None and proof.share < 1:
        log_letters = proof.log_letters - log_sum(proof.log_letters)
        found -= (1 - proof.share) * (log_letters - rounding_of(1, 1 + float(np.abs(log_letters).max())))[
            :, None
        ]
    found = found[used]
    counts = log_counts[used]
    shift = float(counts.max())
    hidden = rounding_of(1, abs(entropy - shift) + math.log(len(counts)) + 1)
    return found, counts - shift, entropy - shift, hidden


def _bound_at_price(
    exponents: FloatArray, log_counts: FloatArray, entropy: float, hidden: float, price: float
) -> float:
    """The bound at a price."""
    if price <= 0:
        return float(exponents.max())
    peak = float(exponents.max())
    total = float(log_sum(log_counts + (exponents - peak) / price).item())
    return peak + price * (total - entropy + hidden)
