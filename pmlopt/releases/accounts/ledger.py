"""The ledger of many people's cumulative leakage under a total budget, with its file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.display import pluralize
from pmlopt.core.files import disk
from pmlopt.core.numbers.arrays import (
    FloatArray,
    IntArray,
    Label,
    abbreviate,
    check_integer,
    check_nonnegative,
    check_unmasked,
    indices_of,
    select_labels,
)
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import FileFormatError, MechanismError, PrivacyError
from pmlopt.measures.orders import order_levels
from pmlopt.model.privacy import PML, RenyiPML
from pmlopt.model.privacy.renyi_pml import RemainingRenyiPML
from pmlopt.releases.accounts import ledger_file
from pmlopt.releases.accounts.array_files import read_digest
from pmlopt.releases.accounts.ledger_file import (
    MIN_MASS,
    HistoryTable,
    LedgerState,
    compute_levels,
    compute_levels_after,
    compute_log_lifts,
    digest_release,
)
from pmlopt.releases.accounts.publications import compute_file_key, describe_draft, finish_all
from pmlopt.releases.accounts.remaining import (
    align_matrix,
    build_joint_requirement,
    find_columns,
    find_excess,
)


class Ledger:
    """The cumulative leakage of all releases on each of many people, against a total budget.

    After the outcomes y_1, ..., y_t the information density `i(x; y_1..y_t) = log post[x] / p[x]` of a letter
    is the sum of `log P_i[x, y_i] / q_i[y_i]`, each q_i under the posterior before it; the PML of all
    outcomes is the largest over x. A next mechanism P keeps all within epsilon iff
    `P[x, y] <= e^(epsilon - i(x; y_1..y_t)) q[y]`: PML with a budget for each letter, under the posterior.

    People are independent, with one prior; each has one secret, and whatever was released of
    it is recorded here. People with the same history share their numbers. Levels are exact up to rounding,
    a few units in the last place for each release; what is decided by them, in `allows`, `record` and
    `requirement`, counts a bound on that rounding in.

    Args:
        prior: N letters.
        people: how many, named 0, 1, ..., people - 1.
        total: the level in nats that no person may exceed, whatever the outcome; a release that may break it
            is refused. Without one, nothing is refused.

    Attributes:
        finished: the files that `open` published, of releases that were interrupted before they could.

    Raises:
        PrivacyError: the number of people is none, or the total is negative.

    Examples:
        >>> import math
        >>> ledger = Ledger([0.5, 0.5], people=2, total=math.log(1.8) + 1e-13)  # with room for rounding
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
        total of 0.587787: design it for `requirement(person=0)` under `prior(0)`, or one for all people for
        `joint_requirement()`
    """

    finished: tuple[str, ...] = ()

    def __init__(self, prior: PriorLike, people: int = 1, total: float | None = None) -> None:
        first = as_prior(prior)
        count = check_integer(people, "the number of people", PrivacyError)
        most = None if total is None else check_nonnegative(total, "the total", PrivacyError)
        self._state = LedgerState(first, most, HistoryTable.initial(first.size, count))
        self._seen: dict[Path, str | None] = {}
        self._folders: list[Path] = []

    @property
    def initial(self) -> Prior:
        """Return the prior before all releases."""
        return self._state.prior

    @property
    def total(self) -> float | None:
        """Return the total leakage budget per person, in nats; None without one."""
        return self._state.total

    @property
    def people(self) -> int:
        """Return the number of people."""
        return len(self._histories.place)

    @property
    def _histories(self) -> HistoryTable:
        """Return the table of release histories."""
        return self._state.histories

    @property
    def releases(self) -> int:
        """Return the number of recorded releases."""
        return len(self._state.identities)

    @property
    def levels(self) -> FloatArray:
        """Return the (people,) leakage about each person, in nats."""
        return np.asarray(
            compute_levels(self.initial.pmf, self._histories.likelihoods)[self._histories.place]
        )

    @property
    def level(self) -> float:
        """Return the largest leakage about any person, in nats."""
        return float(compute_levels(self.initial.pmf, self._histories.likelihoods).max())

    def levels_of_order(self, alpha: float) -> FloatArray:
        """Compute each person's cumulative PML of order alpha, in nats.

        `log(sum_x p[x] lift[x]^alpha) / (alpha - 1)`: the account of `RenyiPML`. Levels of single releases do
        not add up to it, since each is under the posterior before; but the densities that a ledger keeps have
        all moments in them.

        Args:
            alpha: above 1, or infinite for `levels`.

        Raises:
            PrivacyError: alpha is not above 1.

        Examples:
            >>> ledger = Ledger([0.5, 0.5])
            >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0])
            >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0], allow_duplicate=True)
            >>> np.exp(ledger.levels_of_order(2)).round(12)  # (1.8^2 + 0.2^2) / 2
            array([1.64])
        """
        order = math.inf if alpha == math.inf else RenyiPML(alpha, 0.0).alpha
        if order == math.inf:
            return self.levels
        shares = np.exp(self._histories.likelihoods)
        return order_levels(self.initial.pmf, shares.T, order)[self._histories.place]

    def groups(self) -> list[IntArray]:
        """Group people with equal release history, who have equal posteriors.

        Examples:
            >>> ledger = Ledger([0.5, 0.5], people=3)
            >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0, 1, 0])
            >>> [group.tolist() for group in ledger.groups()]
            [[0, 2], [1]]
        """
        return self._histories.group_people()

    def density(self, person: int = 0) -> FloatArray:
        """Compute a person's (N,) information densities of letters; -inf where excluded."""
        row = self._histories.place[self._find_person(person)]
        return np.asarray(
            compute_log_lifts(self.initial.pmf, self._histories.likelihoods[row : row + 1])[0]
        )

    def prior(self, person: int = 0) -> Prior:
        """Return a person's posterior on the letters still possible, the prior of the next design.

        A letter is left unless an outcome excluded it. One whose posterior is below 1e-280 has that mass
        here, which a design can work with, and in `requirement` the budget that goes with it.

        Examples:
            >>> ledger = Ledger([0.5, 0.25, 0.25])
            >>> ledger.record([[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]], [0])
            >>> ledger.prior().labels, ledger.prior().probabilities.round(12).tolist()
            ((0, 2), [0.666666666667, 0.333333333333])
        """
        masses, left = self._compute_posterior(person)
        return Prior(masses, select_labels(self.initial.labels, left.tolist()))

    def remaining(self, epsilon: float | None = None, person: int = 0) -> FloatArray:
        """Compute a person's (N,) remaining budgets by letter, in nats; inf where excluded.

        Args:
            epsilon: the total to be kept; left out, that of the ledger.
            person: whose.

        Raises:
            PrivacyError: there is no total, or the leakage is above it already.
        """
        most = self._check_total(epsilon)
        left = most - self.density(person)
        if left.min() < -self._histories.rounding_error(person, most):
            raise PrivacyError(
                f"the leakage on person {person} is {most - left.min():g} nats, over the total of {most:g}"
            )
        return left

    def requirement(self, epsilon: float | None = None, person: int = 0) -> Any:
        """Build the requirement on a person's next release from the remaining budgets.

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
        most = self._check_total(epsilon)
        self.remaining(most, person)  # raises where nothing is left
        masses, letters = self._compute_posterior(person)
        left = most - np.log(masses / self.initial.pmf[letters])
        lowered = left - 4 * self._histories.rounding_error(person, left)
        return PML(np.maximum(lowered, 0.0).tolist())

    def joint_requirement(
        self,
        people: ArrayLike | None = None,
        letters: Iterable[Label] | None = None,
        epsilon: float | None = None,
        law: Prior | None = None,
    ) -> Any:
        """Build the requirement on one mechanism for people of different histories.

        It is a `RatioBound`: a mechanism that meets it keeps the total for all of them, whatever it releases.

        Args:
            people: who is in the release; left out, all.
            letters: those of the design, in its order; left out, those of the ledger.
            epsilon: the total to be kept; left out, that of the ledger.
            law: the prior under which it is kept, on the letters of the ledger; left out, that of the ledger.

        Raises:
            PrivacyError: there is no total, or the leakage on someone is above it already.
            MechanismError: a letter is missing, or is none of the ledger.

        Examples:
            >>> import math
            >>> ledger = Ledger([0.5, 0.5], people=2, total=math.log(1.8))
            >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0, 1])
            >>> both = ledger.joint_requirement()  # of either history; see `requirement` for one
            >>> [both.holds([0.5, 0.5], [[a, 1 - a], [1 - a, a]]) for a in (0.74, 0.76)]
            [True, False]
        """
        rows = self._histories.select_people(self._check_people(people))
        own = self.initial.labels
        places = indices_of(
            own if letters is None else list(letters), own, "the letters", MechanismError
        )
        if len(places) < len(own):
            lacking = abbreviate([label for place, label in enumerate(own) if place not in places])
            raise MechanismError(
                f"the letters {lacking} of the ledger are none of the design, and may be those of a person"
            )
        return build_joint_requirement(
            self.initial if law is None else law,
            self._histories,
            rows,
            self._check_total(epsilon),
            np.array(places),
        )

    def requirement_of_order(self, alpha: float, epsilon: float, person: int = 0) -> Any:
        """Build the requirement on a person's next release that keeps PML of order alpha within epsilon.

        A next mechanism meets it exactly where `levels_of_order(alpha)` is within epsilon after each of its
        outcomes, but for what rounding may add; for a `design` under `prior(person)`. Arguments as above.

        Raises:
            PrivacyError: the level of that order is above epsilon already, or alpha is not above 1.

        Examples:
            >>> from pmlopt import ExpectedGain, design, solve
            >>> ledger = Ledger([0.5, 0.5])
            >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0])
            >>> left = ledger.requirement_of_order(2, 0.4)
            >>> second = solve(design(ledger.prior(), left, ExpectedGain(np.eye(2))))
            >>> ledger.record(second.mechanism, [second.matrix[0].argmax()])
            >>> round(float(ledger.levels_of_order(2)[0]), 6)
            0.4
        """
        own = RemainingRenyiPML(alpha, epsilon, [1.0])
        masses, letters = self._compute_posterior(person)
        lifts = masses / self.initial.pmf[letters]
        off = 4 * float(self._histories.rounding_error(person, np.log(lifts)).max()) * own.beta
        if (level := float(self.levels_of_order(alpha)[person])) > epsilon - off:
            raise PrivacyError(
                f"of order {alpha:g} person {person} is at {level:g} nats, over {epsilon:g}"
            )
        return RemainingRenyiPML(alpha, epsilon - off, lifts)

    def _compute_posterior(self, person: int) -> tuple[FloatArray, IntArray]:
        """Compute a person's posterior masses of possible letters, with their indices."""
        density = self.density(person)
        left = np.flatnonzero(density > -np.inf)
        masses = self.initial.pmf[left] * np.exp(density[left])
        return np.maximum(masses / masses.sum(), MIN_MASS), left

    def level_after(self, mechanism: MechanismLike, people: ArrayLike | None = None) -> float:
        """Compute the largest worst-case leakage of any person after a release, in nats.

        Args:
            mechanism: (N, M); or on the letters that are left, of all these people.
            people: who is in the release; left out, all.

        Raises:
            MechanismError: the mechanism is on other letters.
        """
        rows = self._histories.select_people(self._check_people(people))
        matrix = self._align_matrix(as_mechanism(mechanism), rows)
        return float(
            compute_levels_after(self.initial.pmf, self._histories.likelihoods[rows], matrix).max()
        )

    def allows(self, mechanism: MechanismLike, people: ArrayLike | None = None) -> bool:
        """Return whether a release keeps every person within the total budget, for all outcomes.

        Args:
            mechanism: as for `level_after`.
            people: who is in the release; left out, all.

        Raises:
            MechanismError: the mechanism is on other letters.
            PrivacyError: the ledger has no total.

        Examples:
            >>> ledger = Ledger([0.5, 0.5], total=0.5)
            >>> ledger.allows([[0.75, 0.25], [0.25, 0.75]]), ledger.allows(np.eye(2))
            (True, False)
        """
        rows = self._histories.select_people(self._check_people(people))
        matrix = self._align_matrix(as_mechanism(mechanism), rows)
        return (
            find_excess(self.initial, self._histories, self._check_total(None), rows, matrix)
            is None
        )

    def record(
        self,
        mechanism: MechanismLike,
        outcomes: Iterable[Label],
        people: ArrayLike | None = None,
        *,
        allow_duplicate: bool = False,
    ) -> None:
        """Record the outcomes of a mechanism, one for each person.

        Whether the release keeps the total is required of all outcomes that might have come, since a refusal
        that depends on the outcome reveals of it; check `allows` before anything is published. The same
        mechanism with the same outcomes of the same people is taken for one release that is recorded twice
        by mistake. Where anything is refused, nothing is recorded.

        Args:
            mechanism: (N, M); or on the letters that are left, of all these people.
            outcomes: labels of outputs, in the order of `people`; an array of numbers where the mechanism
                has no labels for its outputs is read at once.
            people: who is in the release, each once; left out, all.
            allow_duplicate: whether to record a release that equals a recorded one, since it was made once
                more.

        Raises:
            MechanismError: the mechanism is on other letters, an outcome is none of its outputs or has
                probability zero for that person, or there are more or fewer outcomes than people.
            PrivacyError: some outcome would break the total, a person is unknown or named twice, or the
                release is recorded already.
        """
        m = as_mechanism(mechanism)
        members = self._check_people(people)
        columns = find_columns(m, outcomes)
        if len(columns) != len(members):
            raise MechanismError(
                f"{pluralize(len(columns), 'outcome')} cannot be recorded for "
                f"{pluralize(len(members), 'person', 'people')}: give one for each person in the release"
            )
        rows = self._histories.select_people(members)
        matrix = self._align_matrix(m, rows)
        identity = digest_release(matrix, columns, members)
        if identity in self._state.identities and not allow_duplicate:
            number = self._state.identities.index(identity) + 1
            raise PrivacyError(
                f"this release is recorded already, as number {number}: the mechanism, the people and their "
                "outcomes are the same; if it was made once more, give allow_duplicate=True "
                "(--allow-duplicate)"
            )
        over = None
        if self.total is not None:
            over = find_excess(self.initial, self._histories, self.total, rows, matrix)
        if over is not None:
            worst = int(members[np.flatnonzero(self._histories.place[members] == over[0])[0]])
            raise PrivacyError(
                f"the release may raise the leakage on person {worst} to {over[1]:.6g} nats, over the "
                f"total of {self.total:.6g}: design it for `requirement(person={worst})` under "
                f"`prior({worst})`, or one for all people for `joint_requirement()`"
            )
        after = self._histories.extend(matrix, columns, members)
        impossible = np.isinf(after.rounding)
        if impossible.any():
            at = int(np.flatnonzero(impossible[after.place[members]])[0])
            raise MechanismError(
                f"the outcome {m.outputs[int(columns[at])]!r} has probability zero for person "
                f"{int(members[at])}: this mechanism did not release it, or the ledger lacks the truth"
            )
        identities = (*self._state.identities, identity)
        self._state = replace(self._state, histories=after, identities=identities)

    def __repr__(self) -> str:
        """In words: people, releases, level."""
        total = "" if self.total is None else f" of {self.total:g}"
        counts = (
            f"{pluralize(self.people, 'person', 'people')}, {pluralize(self.releases, 'release')}"
        )
        return f"Ledger(<{counts}, level {self.level:.6g}{total}>)"

    def _check_total(self, epsilon: float | None) -> float:
        """Return the leakage limit to apply; raise an error without one."""
        if epsilon is None and self.total is None:
            raise PrivacyError("the ledger has no total: give one, epsilon, in nats")
        total: Any = self.total if epsilon is None else epsilon
        return check_nonnegative(total, "the total", PrivacyError)

    def _find_person(self, person: int) -> int:
        """Validate a person's number."""
        place = int(person)
        if place != person or not 0 <= place < self.people:
            raise PrivacyError(f"there is no person {person}: they are 0 to {self.people - 1}")
        return place

    def _check_people(self, people: ArrayLike | None) -> IntArray:
        """Validate people's numbers as an array."""
        if people is None:
            return np.arange(self.people)
        check_unmasked(people, "the people in a release", PrivacyError)
        members = np.atleast_1d(np.asarray(people))
        if members.ndim != 1 or members.dtype.kind not in "iu" or not members.size:
            raise PrivacyError(
                "the people in a release are their numbers: give a list of whole numbers"
            )
        for place in (members.min(), members.max()):
            self._find_person(place)
        if len(np.unique(members)) < len(members):
            raise PrivacyError("a person stands twice in one release: record it as two")
        return members.astype(np.int64)

    def _align_matrix(self, mechanism: Mechanism, rows: IntArray) -> FloatArray:
        """Align a mechanism's matrix with the ledger's letters."""
        return align_matrix(self.initial.labels, self._histories, mechanism, rows)

    # ------------------------------------------------------------ files

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Return the names of recorded, unpublished releases outside of known folders."""
        return tuple(one.target for one in self._state.publishing)

    def publish(self, draft: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        """Register a draft for publication together with the ledger's next save.

        The ledger is written first, with the release, both names, and a digest of the draft; then the draft
        is renamed, and nothing that is there is replaced. A process that is killed before the ledger is on
        the disk has published and recorded nothing; after that the release counts, and `open` renames the
        draft where it has not been renamed yet.

        Args:
            draft: a file or folder that no one else has seen, whose name begins with `.pmlopt-`; it must be
                on the disk (`os.fsync`).
            target: its name once it is published, in the same folder, where nothing is yet.

        Raises:
            FileFormatError: the draft is not there, the target is, their folders differ, or the draft has
                another name.
        """
        publication, folder = describe_draft(draft, target)
        self._folders.append(folder)
        self._state = replace(self._state, publishing=(*self._state.publishing, publication))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the ledger to an NPZ file atomically, with a content digest.

        It is written over nothing but the file that this ledger was read from, or was written to before; two
        processes that each read, record and save a file are served by `open`.

        Raises:
            FileFormatError: the file cannot be written, its ending is not .npz, it is not the one that was
                read, or what was to be published is not there.
        """
        disk.get_file_format(path, (".npz",))
        with disk.exclusive_lock(path):
            self._write(path)

    @classmethod
    @contextmanager
    def open(
        cls, path: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None
    ) -> Iterator[Self]:
        """Open a ledger under a lock, and save it when the block ends.

        An exception leaves the file as it was. Another writer is waited for, up to a minute. A release that
        was recorded and interrupted is published first, if it is found.

        Args:
            path: of the ledger.
            folder: where releases are published; in it, and in the folder of the ledger, interrupted ones are
                looked for. No other place that the file may name is looked at.

        Raises:
            FileFormatError: as `load` and `save`, or another process keeps writing the file.

        Examples:
            >>> import tempfile
            >>> from pmlopt import Ledger
            >>> path = Path(tempfile.mkdtemp()) / "ledger.npz"
            >>> Ledger([0.5, 0.5]).save(path)
            >>> with Ledger.open(path) as ledger:
            ...     ledger.record([[0.75, 0.25], [0.25, 0.75]], [0])
            >>> Ledger.load(path).releases
            1
        """
        disk.get_file_format(path, (".npz",))
        with disk.exclusive_lock(path):
            ledger = cls.load(path)
            ledger._folders += [Path(folder).resolve()] if folder is not None else []
            if ledger._state.publishing:
                ledger.finished = ledger._publish_recorded(path)
            before = ledger._state
            yield ledger
            if ledger._state is not before:
                ledger._write(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a ledger; refuse a truncated or modified file.

        The digest finds what went wrong by accident, and no forgery: anyone who changes a file on purpose may
        write a new digest.

        Raises:
            FileFormatError: the file is not there, no ledger, cut short or changed.
        """
        state, digest = ledger_file.read_ledger(path)
        ledger = cls.__new__(cls)
        ledger._state = state
        ledger._seen = {Path(path).resolve(): digest}
        ledger._folders = []
        return ledger

    def _write(self, path: str | os.PathLike[str]) -> None:
        """Save the ledger, then publish the registered drafts."""
        place = Path(path).resolve()
        if read_digest(place) != self._seen.get(place):
            raise FileFormatError(
                f"{path}: is not what this ledger was read from: another release may be recorded in it; read "
                "it again and record in that (`Ledger.open` does both), or give another name"
            )
        self._seen[place] = ledger_file.write_ledger(place, self._state)
        if self._state.publishing:
            self._publish_recorded(path)

    def _publish_recorded(self, path: str | os.PathLike[str]) -> tuple[str, ...]:
        """Publish recorded drafts that exist, and return their paths."""
        place = Path(path).resolve()
        published, left = finish_all(
            self._state.publishing, [*self._folders, place.parent], compute_file_key(place)
        )
        if published:
            self._state = replace(self._state, publishing=left)
            self._seen[place] = ledger_file.write_ledger(place, self._state)
        return tuple(map(str, published))
