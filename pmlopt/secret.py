"""A secret that the data tells of: the joint law of the secret and the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import SUM_TOLERANCE, FloatArray, Label, common_integers, few, labels_of
from pmlopt.errors import PriorError
from pmlopt.prior import Prior


class Secret:
    """A secret S with the joint law of (S, X), where the data X is what is released.

    Args:
        joint: (S, N) probabilities that sum to one (within 1e-9), a row for each value of the secret; or
            (L, S, N), a law for each of L adversaries, of whom any may be there.
        labels: N labels of the letters of X.
        values: the labels of the values of S.
        name: of the secret, for what is said about it.

    Raises:
        PriorError: an entry is negative or not finite, a law does not sum to one, a value of the secret or a
            letter has probability zero in one of them, or the labels do not fit.

    Examples:
        >>> disease = Secret([[0.1, 0.3], [0.5, 0.1]], labels=["young", "old"], values=["ill", "well"])
        >>> disease.prior.probabilities.round(12), disease.conditionals.round(12).tolist()
        (array([0.6, 0.4]), [[0.25, 0.75], [0.833333333333, 0.166666666667]])
    """

    def __init__(
        self,
        joint: ArrayLike,
        labels: Iterable[Label] | None = None,
        values: Iterable[Label] | None = None,
        name: str = "the secret",
    ) -> None:
        laws = _laws(joint)
        totals = laws.sum(axis=(1, 2))
        off = int(np.abs(totals - 1).argmax())
        if abs(totals[off] - 1) > SUM_TOLERANCE:
            raise PriorError(
                f"the joint law {off} sums to {totals[off]:.12g}, not to 1: divide it by its sum, or give "
                "whole counts (Secret.from_counts)"
            )
        whole = [np.array(common_integers(law.ravel())[0], dtype=object).reshape(law.shape) for law in laws]
        self._set(whole, labels, values, name, False)

    def _set(
        self,
        weights: list[Any],
        labels: Iterable[Label] | None,
        values: Iterable[Label] | None,
        name: str,
        counted: bool,
    ) -> None:
        rows, letters = weights[0].shape
        self.weights, self.counted = weights, counted
        self.labels = labels_of(labels, letters, "the letters of the joint law", PriorError)
        self.values = labels_of(values, rows, "the values of the secret", PriorError)
        self.name = name
        for law in weights:
            for axis, names, what in ((1, self.values, "the value"), (0, self.labels, "the letter")):
                sums = law.sum(axis=axis)
                if (sums == 0).any():
                    empty = names[int((sums == 0).argmax())]
                    raise PriorError(f"{what} {empty!r} never occurs in the joint law: leave it out")

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[tuple[Label, Label], int] | ArrayLike,
        labels: Iterable[Label] | None = None,
        values: Iterable[Label] | None = None,
        name: str = "the secret",
    ) -> Secret:
        """The empirical joint law of a table of counts, exact in exact arithmetic.

        Args:
            counts: a mapping from (value of the secret, letter) to count; or an (S, N) table of counts, of
                which a data frame keeps its index and its columns as labels.
            labels: N labels, where the table has none.
            values: S labels, the same.
            name: of the secret.

        Raises:
            PriorError: a count is negative or not a whole number, or a row or a column of the table is empty.

        Examples:
            >>> counts = {("ill", "old"): 3, ("ill", "young"): 1, ("well", "young"): 4}
            >>> Secret.from_counts(counts).prior.counts
            (3, 5)
        """
        if isinstance(counts, Mapping):
            values = list(dict.fromkeys(pair[0] for pair in counts)) if values is None else list(values)
            labels = list(dict.fromkeys(pair[1] for pair in counts)) if labels is None else list(labels)
            table = [[counts.get((value, label), 0) for label in labels] for value in values]
        else:
            frame: Any = counts
            if hasattr(counts, "columns"):  # a data frame
                labels = list(frame.columns) if labels is None else labels
                values = list(frame.index) if values is None else values
            table = np.asarray(counts).tolist()
        law = _laws(table)[0]
        if (law != np.floor(law)).any():
            raise PriorError("the joint counts must be whole numbers: give probabilities to Secret(...)")
        made = cls.__new__(cls)
        whole = np.array([[int(count) for count in row] for row in table], dtype=object)
        made._set([whole], labels, values, name, True)
        return made

    @classmethod
    def from_samples(
        cls, values: Iterable[Label], letters: Iterable[Label], name: str = "the secret"
    ) -> Secret:
        """The empirical joint law of pairs: the value of the secret and the letter of each person.

        Examples:
            >>> Secret.from_samples(["ill", "well", "well"], ["old", "old", "young"]).values
            ('ill', 'well')
        """
        counts: dict[tuple[Label, Label], int] = {}
        for pair in zip(values, letters, strict=True):
            counts[pair] = counts.get(pair, 0) + 1
        return cls.from_counts(counts, name=name)

    @cached_property
    def joint(self) -> FloatArray:
        """(L, S, N) the joint laws."""
        return np.array([_shares(law) for law in self.weights])

    @cached_property
    def prior(self) -> Prior:
        """The law of X, under the first joint law; of counts with its sample size."""
        if self.counted:
            return Prior.from_counts(self.weights[0].sum(axis=0).tolist(), self.labels)
        return Prior(_shares(self.weights[0].sum(axis=0)[None])[0], self.labels)

    @property
    def law(self) -> FloatArray:
        """(S,) the law of the secret, under the first joint law."""
        return np.asarray(self.joint[0].sum(axis=1))

    @property
    def conditionals(self) -> FloatArray:
        """(S, N) the law of X given each value of the secret, under the first joint law."""
        return np.asarray(self.joint[0] / self.joint[0].sum(axis=1, keepdims=True))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Secret)
            and (self.labels, self.values, self.name) == (other.labels, other.values, other.name)
            and np.array_equal(np.array(self.weights), np.array(other.weights))
        )

    def __hash__(self) -> int:
        return hash((self.labels, self.values, self.name))

    def __repr__(self) -> str:
        laws = "" if len(self.weights) == 1 else f", {len(self.weights)} joint laws"
        return f"Secret(<{self.name}: {few(self.values)}>, {len(self.labels)} letters{laws})"


def _laws(joint: ArrayLike) -> FloatArray:
    """(L, S, N) non-negative and finite."""
    try:
        laws = np.array(joint, dtype=float)
    except (TypeError, ValueError) as cause:
        raise PriorError(f"the joint law must be numbers in a table: {cause}") from None
    laws = laws[None] if laws.ndim == 2 else laws
    if laws.ndim != 3 or laws.size == 0:
        raise PriorError(f"the joint law has the shape {np.shape(joint)}: give (S, N), or (L, S, N)")
    if not np.isfinite(laws).all() or (laws < 0).any():
        raise PriorError("the joint law has an entry that is negative or not finite")
    return laws


def _shares(law: Any) -> FloatArray:
    """Whole numbers over their sum."""
    total = law.sum()
    return np.array([[float(count) / float(total) if total < 2**1000 else count / total for count in row]
                     for row in law])  # fmt: skip
