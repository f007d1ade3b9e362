"""The center of a ball of priors, in which letters may have probability 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    FloatArray,
    Labels,
    check_labels_of_size,
    common_integer_ratio,
    copy_float_array,
)
from pmlopt.core.records.fields import ContextReference, Range, Record, Shape
from pmlopt.data.labelled import read_vector
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import PrivacyError


@dataclass(frozen=True, eq=False)
class Center(Record):
    """A center in which letters may have probability 0, such as unseen ones.

    It is no `Prior`, which a design needs; it has the attributes of one that a ball uses.

    Attributes:
        probabilities: (N,) non-negative numbers that sum to one (within 1e-9).
        labels: N of them.
        counts: the counts they come from, or None.
    """

    kind: ClassVar[str] = "center"
    probabilities: Annotated[FloatArray, Shape("letters"), Range(0, 1)]
    labels: Annotated[Labels, ContextReference("labels"), Shape("letters")]
    counts: Annotated[tuple[Annotated[int, Range(0)], ...], Shape("letters")] | None = None

    @classmethod
    def from_fields(
        cls,
        probabilities: Annotated[FloatArray, Shape("letters"), Range(0, 1)],
        labels: Annotated[Labels, ContextReference("labels"), Shape("letters")],
        counts: Annotated[tuple[Annotated[int, Range(0)], ...], Shape("letters")] | None = None,
    ) -> Center:
        """Build a center from a saved file's fields.

        Raises:
            PrivacyError: they are no distribution, or another one than the counts.
        """
        names = check_labels_of_size(
            labels, len(probabilities), "the centre's labels", PrivacyError
        )
        if counts is not None and not sum(counts):
            raise PrivacyError("the counts of the centre are all 0")
        if abs(math.fsum(probabilities) - 1) > SUM_ATOL:
            raise PrivacyError(
                f"the probabilities of the centre sum to {math.fsum(probabilities):.12g}, not 1"
            )
        # counts are exact and probabilities rounded: a file in which they disagree has two
        # centres
        made = cls(probabilities, names) if counts is None else cls.of_counts(counts, names)
        if not np.array_equal(made.probabilities, probabilities):
            raise PrivacyError("the probabilities of the centre are not its counts over their sum")
        return made

    @classmethod
    def of_counts(cls, counts: tuple[int, ...], labels: Labels) -> Center:
        """Build the empirical distribution of counts with zeros as a center."""
        # whole numbers, summed and divided once: the probabilities are correctly rounded
        total = sum(counts)
        return cls(np.array([count / total for count in counts]), labels, counts)

    @classmethod
    def of(cls, values: PriorLike | Center) -> Prior | Center:
        """Build a center from an array of probabilities."""
        if isinstance(values, Prior | Center):
            return values
        found = read_vector(values, "the centre", PrivacyError)
        array = copy_float_array(found.values, 1, "the centre", PrivacyError)
        if not (array == 0).any() or (array < 0).any() or abs(math.fsum(array) - 1) > SUM_ATOL:
            return as_prior(values)  # or its complaint
        return cls(
            array,
            check_labels_of_size(found.axes[0], len(array), "the centre's labels", PrivacyError),
        )

    @property
    def size(self) -> int:
        """Return the number of letters N."""
        return len(self.probabilities)

    @property
    def pmf(self) -> FloatArray:
        """Return the (N,) normalized probabilities."""
        return self.probabilities / math.fsum(self.probabilities)

    @property
    def weights(self) -> tuple[int, ...]:
        """Return N integers exactly proportional to the probabilities."""
        return (
            self.counts if self.counts is not None else common_integer_ratio(self.probabilities)[0]
        )
