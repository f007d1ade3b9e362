"""The set of all priors of at least some entropy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Annotated, ClassVar

from pmlopt.core.numbers.argument_checks import check_same_letters
from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    Label,
    Labels,
    check_integer,
    check_labels_of_size,
    check_nonnegative,
    check_probability,
)
from pmlopt.core.records.fields import COUNT, ContextReference, Range, Shape
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.boxes import AllPriors
from pmlopt.model.uncertainty.divergence_ball import DECIMAL_ERROR, DECIMALS
from pmlopt.model.uncertainty.kl_ball import KLBall
from pmlopt.model.uncertainty.prior_set import PriorSet


class EntropySet(KLBall):
    """The priors Q with `-sum_x Q[x] log Q[x] >= entropy`, in nats: adversaries who know little.

    It is the `KLBall` around the uniform prior with the radius log N - entropy, computed without rounding
    where a proof rests on it. At 0 it has all priors; at `math.log(N)`, which stands for log N, only the
    uniform one.

    Args:
        size: N, the number of letters, or their labels.
        entropy: in [0, log N].
        labels: N labels of the letters; left out, they are known by position only.
        delta: the probability that the true distribution is outside, where the entropy comes from a
            sample; else None.

    Raises:
        PrivacyError: the size is not a whole number, the entropy is outside [0, log N], or the labels do not
            fit.

    Examples:
        >>> import numpy as np
        >>> vague = EntropySet(2, 0.6)
        >>> vague.minimizer(np.array([1.0, 0.0])).round(6)
        array([0.287612, 0.712388])
        >>> EntropySet(["a", "b", "c"], 0.0).simplify()
        AllPriors(3)
    """

    kind: ClassVar[str] = "entropy-set"
    entropy: Annotated[float, Range(0)]
    labels: Annotated[Labels, ContextReference("labels"), Shape("letters")] | None = None

    def __init__(
        self,
        size: int | Iterable[Label],
        entropy: float,
        labels: Iterable[Label] | None = None,
        delta: float | None = None,
    ) -> None:
        if isinstance(size, Iterable):
            if labels is not None:
                raise PrivacyError("the letters are given twice: leave out `labels`")
            labels = tuple(size)
            size = len(labels)
        self._letters = check_integer(size, "the size of the alphabet", PrivacyError)
        self.entropy = check_nonnegative(entropy, "the entropy", PrivacyError)
        if self.entropy > math.log(self._letters):
            raise PrivacyError(
                f"the entropy is {self.entropy:.12g} nats: a prior on {self._letters} letters has at most "
                f"{math.log(self._letters):.12g}, so that the set is empty"
            )
        self.delta = None if delta is None else check_probability(delta)
        if labels is not None:
            self.labels = check_labels_of_size(
                labels, self._letters, "the labels of the letters", PrivacyError
            )

    @classmethod
    def from_fields(
        cls,
        size: Annotated[int, Range(1), COUNT],
        entropy: Annotated[float, Range(0)],
        labels: Annotated[Labels, ContextReference("labels"), Shape("letters")] | None = None,
        delta: float | None = None,
    ) -> EntropySet:
        """Build the set from the fields of a file."""
        return cls(size, entropy, labels, delta)

    @property
    def size(self) -> int:
        """Return N, the number of letters."""
        return self._letters

    @cached_property
    def center(self) -> Prior:  # type: ignore[override]
        """Return the uniform prior."""
        return Prior.uniform(self.size, self.labels)

    @cached_property
    def radius(self) -> float:  # type: ignore[override]
        """Return log N - entropy to the nearest float."""
        with localcontext(DECIMALS):
            return float(sum(self._bound_radius())) / 2

    def _bound_radius(self) -> tuple[Decimal, Decimal]:
        """Return bounds on log N - entropy, in the decimals of the current context."""
        if self.entropy == math.log(self.size):
            return Decimal(0), Decimal(0)
        radius = Decimal(self.size).ln() - Decimal(self.entropy)
        return radius - DECIMAL_ERROR, radius + DECIMAL_ERROR

    @property
    def description(self) -> str:
        """Return which priors these are, in words that follow "for every prior"."""
        return f"of an entropy of at least {self.entropy:g} nats"

    @property
    def contains_all_priors(self) -> bool:
        """Return whether every prior is in the set for certain."""
        return self.entropy == 0

    def on_cells(self, cells: LetterCells) -> PriorSet:
        """Return the ball around the cells' shares of the letters, with the least means of the set.

        Of all priors with the same masses of cells, the one that is uniform within them has most entropy:
        log N less the divergence of these masses from the shares.
        """
        check_same_letters(self.size, f"{self!r} is", cells.letter_count, "the prior", PrivacyError)
        if self.contains_all_priors:
            return AllPriors(cells.size)
        with localcontext(DECIMALS):
            above = self._bound_radius()[1]
        radius = float(above)
        # rounded up: a larger set of priors only strengthens the guarantee
        while Decimal(radius) < above:
            radius = math.nextafter(radius, math.inf)
        return KLBall(
            Prior.from_counts(cells.counts, DefaultLabels(cells.size)), radius, self.delta
        )

    def __repr__(self) -> str:
        """Return the size and entropy."""
        return f"EntropySet({self.size}, {self.entropy:g})"
