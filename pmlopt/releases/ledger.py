"""What each of many people was told on, release after release, and what is left of a budget."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import (
    FloatArray,
    IntArray,
    Label,
    Positions,
    few,
    nonnegative,
    subset_of,
    whole,
)
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures.logarithms import level_rounding
from pmlopt.mechanism import Mechanism, MechanismLike, as_mechanism, letters_at, match_labels
from pmlopt.prior import Prior, PriorLike, as_prior
from pmlopt.privacy import PML
from pmlopt.releases import ledger_file
from pmlopt.releases.ledger_file import LedgerFile
from pmlopt.releases.likelihoods import levels_after, levels_of, log_lifts


class Ledger:
    """The leakage of everything that was released on each of some people, exactly.

    After the outcomes y_1, ..., y_t the information density `i(x; y_1..y_t) = log post[x] / p[x]` of a letter
    is the sum of `log P_i[x, y_i] / q_i[y_i]`, each q_i under the posterior before it; the PML of all
    outcomes is the largest over x. A next mechanism P keeps all within epsilon iff
    `P[x, y] <= e^(epsilon - i(x; y_1..y_t)) q[y]`: PML with a budget for each letter, under the posterior.

    People are independent of one another, with one prior; each has one secret, and whatever was released of
    it is recorded here. People with the same history share their numbers.

    Args:
        prior: N letters.
        people: how many, named 0, 1, ..., people - 1.
        total: the level in nats that no person may exceed, whatever the outcome; a release that may break it
            is refused. Without one, nothing is refused.

    Raises:
        PrivacyError: the number of people is none, or the total is negative.

    Examples:
        >>> import math
        >>> ledger = Ledger([0.5, 0.5], people=2, total=math.log(1.8))
        >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0, 1])
        >>> round(math.exp(ledger.level), 12), np.exp(ledger.remaining(person=0)).round(12)
        (1.5, array([1.2, 3.6]))
        >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0, 0])
        >>> np.exp(ledger.levels).round(12)
        array([1.8, 1. ])
        >>> ledger.record(np.eye(2), [0, 0])
        Traceback (most recent call last):
        ...
        pmlopt.errors.PrivacyError: the release may raise the leakage on person 0 to 0.693147 nats, over the
        total of 0.587787: design it for `requirement(person=0)` under `prior(0)`
    """

    def __init__(self, prior: PriorLike, people: int = 1, total: float | None = None) -> None:
        self.initial = as_prior(prior)
        self.people = whole(people, "the number of people", PrivacyError)
        self.total = None if total is None else nonnegative(total, "the total", PrivacyError)
        self.releases = 0
        self._likelihoods: FloatArray = np.zeros((1, self.initial.size))
        self._history: IntArray = np.zeros(self.people, dtype=np.int64)

    @property
    def levels(self) -> FloatArray:
        """(people,) the leakage on each person, in nats."""
        return np.asarray(levels_of(self.initial.pmf, self._likelihoods)[self._history])

    @property
    def level(self) -> float:
        """The largest leakage on a person, in nats."""
        return float(levels_of(self.initial.pmf, self._likelihoods).max())

    def groups(self) -> list[IntArray]:
        """The people by history: all in one group have the same posterior, and may share a design.

        Examples:
            >>> ledger = Ledger([0.5, 0.5], people=3)
            >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0, 1, 0])
            >>> [group.tolist() for group in ledger.groups()]
            [[0, 2], [1]]
        """
        order = np.argsort(self._history, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self._history[order])) + 1)

    def density(self, person: int = 0) -> FloatArray:
        """(N,) the information density of each letter and all that was released; -inf where excluded."""
        row = self._history[self._place(person)]
        return np.asarray(log_lifts(self.initial.pmf, self._likelihoods[row : row + 1])[0])

    def prior(self, person: int = 0) -> Prior:
        """The posterior of a person, which is the prior of the next design; letters that are left.

        Examples:
            >>> ledger = Ledger([0.5, 0.25, 0.25])
            >>> ledger.record([[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]], [0])
            >>> ledger.prior().labels, ledger.prior().probabilities.round(12).tolist()
            ((0, 2), [0.666666666667, 0.333333333333])
        """
        density = self.density(person)
        left = np.flatnonzero(density > -np.inf)
        masses = self.initial.pmf[left] * np.exp(density[left])
        return Prior(masses / masses.sum(), subset_of(self.initial.labels, left.tolist()))

    def remaining(self, epsilon: float | None = None, person: int = 0) -> FloatArray:
        """(N,) what is left for each letter, in nats: epsilon less its density; inf where excluded.

        Args:
            epsilon: the total to be kept; left out, that of the ledger.
            person: whose.

        Raises:
            PrivacyError: there is no total, or the leakage is above it already.
        """
        most = self._total(epsilon)
        left = most - self.density(person)
        if left.min() < -self._rounding(most):
            raise PrivacyError(
                f"the leakage on person {person} is {most - left.min():g} nats, over the total of {most:g}"
            )
        return left

    def requirement(self, epsilon: float | None = None, person: int = 0) -> Any:
        """The requirement on the next release for a person, for a `design` under `prior(person)`.

        `PML` with the budgets that remain, of the letters that are left, each lowered by what rounding
        may add, so that the level never exceeds epsilon.

        Args:
            epsilon: the total to be kept; left out, that of the ledger.
            person: whose.

        Raises:
            PrivacyError: there is no total, or the leakage is above it already.

        Examples:
            >>> import math
            >>> ledger = Ledger([0.5, 0.5], total=math.log(1.8))
            >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0])
            >>> np.exp(ledger.requirement().epsilon).round(12)
            array([1.2, 3.6])
        """
        left = self.remaining(epsilon, person)
        left = left[np.isfinite(left)]
        lowered = left - 4 * self._rounding(self._total(epsilon))
        return PML(np.maximum(lowered, 0.0).tolist())

    def level_after(self, mechanism: MechanismLike, people: ArrayLike | None = None) -> float:
        """The largest leakage on a person after a release, over all outcomes that may come, in nats.

        Args:
            mechanism: (N, M); or on the letters that are left, of all these people.
            people: who is in the release; left out, all.

        Raises:
            MechanismError: the mechanism is on other letters.
        """
        rows, _ = _distinct(self._history[self._members(people)], len(self._likelihoods))
        matrix = self._matrix(as_mechanism(mechanism), rows)
        return float(levels_after(self.initial.pmf, self._likelihoods[rows], matrix).max())

    def record(
        self,
        mechanism: MechanismLike,
        outcomes: Iterable[Label],
        people: ArrayLike | None = None,
    ) -> None:
        """Record what a mechanism released, one outcome for each person in the release.

        Whether the release keeps the total is asked of all outcomes that might have come, since a refusal
        that depends on the outcome tells of it; ask `level_after` before anything is published. Where
        anything is refused, nothing is recorded.

        Args:
            mechanism: (N, M); or on the letters that are left, of all these people.
            outcomes: labels of outputs, in the order of `people`; an array of numbers where the mechanism
                has no labels for its outputs is read at once.
            people: who is in the release, each once; left out, all.

        Raises:
            MechanismError: the mechanism is on other letters, an outcome is none of its outputs or has
                probability zero for that person, or there are more or fewer outcomes than people.
            PrivacyError: some outcome would break the total, or a person is unknown or named twice.
        """
        m = as_mechanism(mechanism)
        members = self._members(people)
        columns = _columns(m, outcomes)
        if len(columns) != len(members):
            raise MechanismError(
                f"there are {len(columns)} outcomes for {len(members)} people: give one each"
            )
        history = self._history[members]
        rows, _ = _distinct(history, len(self._likelihoods))
        matrix = self._matrix(m, rows)
        self._check_total(matrix, rows, history, members)
        grown, place = self._grown(matrix, history, columns)
        peaks = grown.max(axis=1, keepdims=True)
        if peaks.min() == -np.inf:
            at = int(np.flatnonzero((peaks[:, 0] == -np.inf)[place])[0])
            raise MechanismError(
                f"the outcome {m.outputs[int(columns[at])]!r} has probability zero for person "
                f"{int(members[at])}: this mechanism did not release it, or the ledger lacks the truth"
            )
        grown -= peaks
        if len(members) < self.people:
            grown, place = self._beside_others(grown, place, members)
        self._likelihoods, self._history = grown, place
        self.releases += 1

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to an NPZ file, whole or not at all, with a digest of all that it holds.

        Raises:
            FileFormatError: the file cannot be written, or its ending is not .npz.
        """
        state = LedgerFile(self.initial, self.total, self.releases, self._likelihoods, self._history)
        ledger_file.write(path, state)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """Read a ledger, and refuse a file that was cut short or changed.

        The digest finds what went wrong by accident, and no forgery: whoever changes a file on purpose may
        write a new digest.

        Raises:
            FileFormatError: the file is not there, no ledger, cut short or changed.
        """
        state = ledger_file.read(path)
        ledger = cls(state.prior, len(state.history), state.total)
        ledger.releases = state.releases
        ledger._likelihoods, ledger._history = state.likelihoods, state.history
        return ledger

    def __repr__(self) -> str:
        """In words: people, releases, level."""
        total = "" if self.total is None else f" of {self.total:g}"
        return f"Ledger(<{self.people} people, {self.releases} releases, level {self.level:.6g}{total}>)"

    def _total(self, epsilon: float | None) -> float:
        if epsilon is None and self.total is None:
            raise PrivacyError("the ledger has no total: give one, epsilon, in nats")
        return nonnegative(self.total if epsilon is None else epsilon, "the total", PrivacyError)  # type: ignore[arg-type]

    def _rounding(self, level: float) -> float:
        """How far the level of a history may be off by rounding: a unit for each letter and each release."""
        return level_rounding(max(1.0, level), self.initial.size + self.releases)

    def _place(self, person: int) -> int:
        place = int(person)
        if place != person or not 0 <= place < self.people:
            raise PrivacyError(f"there is no person {person}: they are 0 to {self.people - 1}")
        return place

    def _members(self, people: ArrayLike | None) -> IntArray:
        if people is None:
            return np.arange(self.people)
        members = np.atleast_1d(np.asarray(people))
        if members.ndim != 1 or members.dtype.kind not in "iu" or not members.size:
            raise PrivacyError("the people in a release are their numbers: give a list of whole numbers")
        for place in (members.min(), members.max()):
            self._place(place)
        if len(np.unique(members)) < len(members):
            raise PrivacyError("a person stands twice in one release: record it as two")
        return members.astype(np.int64)

    def _matrix(self, mechanism: Mechanism, rows: IntArray) -> FloatArray:
        """The matrix on all letters, with rows of zeros for those that none of these histories leaves."""
        labels, inputs = self.initial.labels, mechanism.inputs
        if len(inputs) == len(labels):
            match_labels(inputs, labels, "the mechanism's inputs", "the letters of the ledger")
            return mechanism.matrix
        if isinstance(inputs, Positions) or not set(inputs) <= set(labels):
            raise MechanismError(
                f"the mechanism's inputs {few(inputs)} are not the letters of the ledger {few(labels)}, nor "
                "some of them by their labels"
            )
        places = [labels.index(label) for label in inputs]
        missing = np.delete(np.arange(len(labels)), places)
        needed = missing[(self._likelihoods[np.ix_(rows, missing)] > -np.inf).any(axis=0)]
        if needed.size:
            raise MechanismError(
                f"the mechanism has no row for the letter {labels[needed[0]]!r}, which is still possible for "
                "somebody in the release"
            )
        matrix = np.zeros((len(labels), len(mechanism.outputs)))
        matrix[places] = mechanism.matrix
        return matrix

    def _check_total(self, matrix: FloatArray, rows: IntArray, history: IntArray, members: IntArray) -> None:
        if self.total is None:
            return
        after = levels_after(self.initial.pmf, self._likelihoods[rows], matrix)
        if after.max() > self.total + self._rounding(self.total):
            worst = int(members[np.flatnonzero(history == rows[after.argmax()])[0]])
            raise PrivacyError(
                f"the release may raise the leakage on person {worst} to {after.max():.6g} nats, over the "
                f"total of {self.total:.6g}: design it for `requirement(person={worst})` under "
                f"`prior({worst})`"
            )

    def _grown(self, matrix: FloatArray, history: IntArray, columns: IntArray) -> tuple[FloatArray, IntArray]:
        """The likelihoods of the histories with one more outcome, and which one each person has."""
        outputs = matrix.shape[1]
        pairs, place = _distinct(history * outputs + columns, len(self._likelihoods) * outputs)
        with np.errstate(divide="ignore"):
            logs = np.log(matrix.T)
        grown = self._likelihoods[pairs // outputs]
        grown += logs[pairs % outputs]
        return grown, place

    def _beside_others(
        self, grown: FloatArray, place: IntArray, members: IntArray
    ) -> tuple[FloatArray, IntArray]:
        """The same with the histories of the people who are not in the release, which stay."""
        outside = np.ones(self.people, dtype=bool)
        outside[members] = False
        kept, at = _distinct(self._history[outside], len(self._likelihoods))
        history = np.empty(self.people, dtype=np.int64)
        history[members], history[outside] = place, len(grown) + at
        return np.concatenate([grown, self._likelihoods[kept]]), history


def _columns(mechanism: Mechanism, outcomes: Iterable[Label]) -> IntArray:
    """The place of each outcome among the outputs."""
    if isinstance(outcomes, str | bytes) or not isinstance(outcomes, Iterable):
        raise MechanismError(f"the outcomes are {outcomes!r}: give a list of labels, one for each person")
    if isinstance(outcomes, np.ndarray):
        if outcomes.dtype.kind in "iu" and isinstance(mechanism.outputs, Positions) and outcomes.ndim == 1:
            off = outcomes[(outcomes < 0) | (outcomes >= len(mechanism.outputs))]
            if off.size:
                raise MechanismError(
                    f"the outcome {off[0]} is not an output, 0 to {len(mechanism.outputs) - 1}"
                )
            return outcomes.astype(np.int64)
        outcomes = outcomes.tolist()
    try:
        return letters_at(mechanism.outputs, outcomes)
    except MechanismError:
        known = set(mechanism.outputs)
        wrong = next((label for label in outcomes if not _known(label, known)), None)
        raise MechanismError(
            f"the outcome {wrong!r} is not an output of the mechanism: they are {few(mechanism.outputs)}"
        ) from None


def _known(label: Any, known: set[Label]) -> bool:
    try:
        return label in known
    except TypeError:
        return False


def _distinct(keys: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The distinct keys below a size in ascending order, and the place of each key among them."""
    if size > 32 * len(keys):  # a table would be too large
        return np.unique(keys, return_inverse=True)
    present = np.zeros(size, dtype=bool)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present, dtype=np.int32) - 1)[keys].astype(np.int64)
