"""Release histories of people, and ledger files as NPZ with content digests."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray, check_json_labels, check_nonnegative
from pmlopt.core.records.converters import to_plain
from pmlopt.core.records.fields import Context
from pmlopt.core.records.record import read_record
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError, InputError, PrivacyError
from pmlopt.measures.leakage import log_quotient, log_sum_exp
from pmlopt.releases.accounts.array_files import compute_digest, read_arrays, write_arrays
from pmlopt.releases.accounts.publications import PendingPublication

CHUNK_ROWS = 1000
"""Histories that are looked at at once: the numbers of 16 letters stay in the cache of a core."""
EPS = float(np.finfo(float).eps)
MIN_MASS = 1e-280
"""Below, the mass of an outcome or a letter may have lost digits to underflow."""


@dataclass(frozen=True)
class HistoryTable:
    """The deduplicated release histories of people, with their likelihoods.

    Attributes:
        likelihoods: (K, N) logarithms for each history, the largest of each 0; -inf for excluded letters.
        rounding: (K,) bounds on how far they are off.
        place: (people,) which one each person has.
    """

    likelihoods: FloatArray
    rounding: FloatArray
    place: IntArray

    @classmethod
    def initial(cls, letters: int, people: int) -> HistoryTable:
        """Build the table with one empty history for all people."""
        return cls(np.zeros((1, letters)), np.zeros(1), np.zeros(people, dtype=np.int64))

    def group_people(self) -> list[IntArray]:
        """Group people by history."""
        # stable: the people of a group stay in ascending order
        order = np.argsort(self.place, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.place[order])) + 1)

    def select_people(self, members: IntArray) -> IntArray:
        """Return the distinct histories of some people."""
        return _find_distinct_keys(self.place[members], len(self.likelihoods))[0]

    def rounding_error(self, person: int, levels: Any) -> Any:
        """Bound the rounding error of a person's levels or budgets."""
        return self.rounding_errors(self.place[person : person + 1], levels)

    def rounding_errors(self, rows: IntArray, levels: Any) -> Any:
        """Bound the rounding errors of levels or budgets by history."""
        # a sum over N letters and a few operations; below 1 the error is absolute
        units = (self.likelihoods.shape[1] + 8) * EPS * np.maximum(1.0, np.abs(levels))
        return units + 2 * self.rounding[rows]

    def extend(self, matrix: FloatArray, columns: IntArray, members: IntArray) -> HistoryTable:
        """Extend histories by one more outcome of some people."""
        outputs = matrix.shape[1]
        held = self.place[members]
        # a key for each pair of history and outcome: people with equal pairs share the new row
        pairs, own = _find_distinct_keys(held * outputs + columns, len(self.likelihoods) * outputs)
        rows, taken = np.divmod(pairs, outputs)
        logs, off = compute_log_steps(matrix)
        # (pairs, N): one row of logarithms for each distinct history that arises
        grown = np.empty((len(pairs), matrix.shape[0]))
        rounding = self.rounding[rows] + off[taken]
        for start in range(0, len(pairs), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            sums = self.likelihoods[rows[part]]
            sums += logs[taken[part]]
            # the largest becomes 0: the level is unchanged, and long histories do not underflow
            peaks = sums.max(axis=1)
            # an impossible history is -inf everywhere, and -inf - -inf is NaN
            with np.errstate(invalid="ignore"):
                np.subtract(sums, peaks[:, None], out=grown[part])
            # the sum and its difference from the peak are rounded, each by half a unit in its last place
            lows = grown[part].min(axis=1, where=sums > -np.inf, initial=0.0)
            rounding[part] -= EPS * (peaks / 2 + lows)
        place = np.empty_like(self.place)
        # people without this release keep their history; rows that only others had are dropped
        outside = np.ones(len(place), dtype=bool)
        outside[members] = False
        place[members] = own
        if outside.any():
            kept, at = _find_distinct_keys(self.place[outside], len(self.likelihoods))
            # the indices count from the end of the new rows, so this comes before they are joined
            place[outside] = len(grown) + at
            grown = np.concatenate([grown, self.likelihoods[kept]])
            rounding = np.concatenate([rounding, self.rounding[kept]])
        return HistoryTable(grown, rounding, place)


def compute_log_lifts(law: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """Compute the (K, N) log-ratios of posterior to prior; -inf for excluded letters."""
    return likelihoods + compute_levels(law, likelihoods)[:, None]


def compute_levels(law: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """Compute the (K,) leakage of histories, in nats."""
    return log_quotient(np.exp(likelihoods) @ law, -np.expm1(likelihoods) @ law)


def compute_levels_after(
    law: FloatArray, likelihoods: FloatArray, matrix: FloatArray
) -> FloatArray:
    """Compute the (K,) worst-case leakage of histories after one more release, in nats.

    Examples:
        >>> response = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> np.exp(
        ...     compute_levels_after(np.array([0.5, 0.5]), np.log([[1.0, 1.0], [1.0, 1 / 3]]), response)
        ... ).round(12)
        array([1.5, 1.8])
    """
    found = np.empty(len(likelihoods))
    with np.errstate(divide="ignore"):
        log_matrix = np.log(matrix)
    for start in range(0, len(likelihoods), CHUNK_ROWS):
        block = likelihoods[start : start + CHUNK_ROWS]
        # the peak of each row is 0, so no exponential overflows
        shares = np.exp(block)
        masses = (shares * law) @ matrix  # (K, M)
        # (N, rows): the inner loop reads one letter of all histories, in order in memory
        by_letter = np.ascontiguousarray(shares.T)
        best = np.zeros(len(block))
        scratch = np.empty(len(block))
        for y in range(matrix.shape[1]):
            peaks = np.zeros(len(block))
            for x in np.flatnonzero(matrix[:, y]):
                np.maximum(peaks, np.multiply(by_letter[x], matrix[x, y], out=scratch), out=peaks)
            mass = masses[:, y]
            # a quotient of masses that lost digits to underflow could understate the level
            rare = mass < MIN_MASS
            np.maximum(
                best, np.divide(peaks, mass, out=scratch, where=~rare), out=best, where=~rare
            )
            if rare.any():  # in logarithms up to the end
                terms = block[rare] + log_matrix[:, y]
                with np.errstate(invalid="ignore"):
                    lifts = np.exp(
                        terms.max(axis=1) - log_sum_exp(terms + np.log(law), axis=1)[:, 0]
                    )
                best[rare] = np.fmax(best[rare], lifts)  # NaN where the outcome cannot come
        found[start : start + CHUNK_ROWS] = np.log(best)
    return found


def compute_log_steps(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute each outcome's normalized log-likelihoods, with their rounding error.

    (M, N) logarithms, -inf where the outcome is impossible, and (M,) bounds on their rounding: none
    where all finite entries are 0.
    """
    columns = np.ascontiguousarray(matrix.T)
    peaks = columns.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        all_logs = np.log(columns)
        logs = np.where(columns == peaks, 0.0, all_logs - np.log(peaks))
    possible = columns > 0
    # a column of zeros has its peak everywhere, and would count as 0 and not as impossible
    logs[~possible] = -np.inf
    # two logarithms are off by a unit in their last place each, and their difference by half of one
    lowest = all_logs.min(axis=1, where=possible, initial=0.0)
    varied = ((columns != peaks) & possible).any(axis=1)
    return logs, np.where(varied, -3 * EPS * lowest, 0.0)


def _find_distinct_keys(keys: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return the distinct keys in ascending order, with inverse indices."""
    if size > 32 * len(keys):  # a table would be too large
        return np.unique(keys, return_inverse=True)
    # marks and a running sum: linear time, where a sort would take a factor log of the people
    present = np.zeros(size, dtype=bool)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present, dtype=np.int32) - 1)[keys].astype(np.int64)


FORMAT = "pmlopt-ledger"
LEDGER_FILE_VERSION = 2
IDENTITY_BYTES = 32
"""Of the digest of a release, SHA-256."""


@dataclass(frozen=True)
class LedgerState:
    """The serializable content of a ledger.

    Attributes:
        prior: on N letters.
        total: in nats, or None.
        histories: of the people.
        identities: of the releases, in their order.
        publishing: what gets its name once the ledger is written.
    """

    prior: Prior
    total: float | None
    histories: HistoryTable
    identities: tuple[bytes, ...] = ()
    publishing: tuple[PendingPublication, ...] = ()


def digest_release(matrix: FloatArray, columns: IntArray, members: IntArray) -> bytes:
    """Compute the digest of a release, to detect duplicates."""
    # the identity must not depend on the order in which the people are given
    order = np.argsort(members, kind="stable")
    return compute_digest(
        {}, matrix.astype("<f8"), columns[order].astype("<i8"), members[order].astype("<i8")
    )


def write_ledger(path: str | os.PathLike[str], state: LedgerState) -> str:
    """Write a ledger file atomically, and return its digest."""
    # before anything is written: labels that JSON changes would not match after a read
    check_json_labels(state.prior.labels)
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": LEDGER_FILE_VERSION,
        "prior": to_plain(state.prior),
        "total": state.total,
        "publishing": [asdict(one) for one in state.publishing],
    }
    arrays: dict[str, Any] = {
        "likelihoods": np.ascontiguousarray(state.histories.likelihoods, dtype="<f8"),
        "rounding": np.ascontiguousarray(state.histories.rounding, dtype="<f8"),
        "history": np.ascontiguousarray(state.histories.place, dtype="<i8"),
        "identities": np.frombuffer(b"".join(state.identities), np.uint8).reshape(
            -1, IDENTITY_BYTES
        ),
    }
    return write_arrays(path, about, arrays)


def read_ledger(path: str | os.PathLike[str]) -> tuple[LedgerState, str]:
    """Read and validate a ledger file, with its digest.

    Raises:
        FileFormatError: see there.
    """
    about, arrays, found, size = read_arrays(path, "ledger", FORMAT, LEDGER_FILE_VERSION)
    try:
        return _check_state(size, about, **arrays), found
    except (InputError, KeyError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path}: is not a ledger: {cause}") from None


def _check_state(
    room: int, about: dict[str, Any], likelihoods: Any, rounding: Any, history: Any, identities: Any
) -> LedgerState:
    """Validate the parts of a ledger file."""
    prior = read_record(Prior, about["prior"], "prior", Context(room=room))
    count = len(likelihoods)
    kinds = {
        "likelihoods": (likelihoods, "<f8", (count, prior.size)),
        "rounding": (rounding, "<f8", (count,)),
        "history": (history, "<i8", (history.size,)),
        "identities": (identities, "|u1", (len(identities), IDENTITY_BYTES)),
    }
    for name, (array, kind, shape) in kinds.items():
        if array.dtype.str != kind or array.shape != shape:
            raise ValueError(
                f"its {name} are {array.dtype.str} of the shape {array.shape}, not {kind} of {shape}"
            )
    # exact: peaks are subtracted from themselves; NaN fails the comparison as well
    if not (likelihoods.max(axis=1) == 0).all():
        raise ValueError("the largest of the likelihoods of a history is not 0")
    # a negative bound would let a level exceed the total; NaN fails both comparisons
    if not ((rounding >= 0) & (rounding < np.inf)).all():
        raise ValueError("a bound on rounding is negative, or no number")
    if not history.size or not ((history >= 0) & (history < count)).all():
        raise ValueError(f"the history of a person is none of the {count}")
    total = about["total"]
    publishing = tuple(map(PendingPublication.from_entry, about["publishing"]))
    return LedgerState(
        prior,
        None if total is None else check_nonnegative(total, "the total", PrivacyError),
        HistoryTable(likelihoods, rounding, history),
        tuple(row.tobytes() for row in identities),
        publishing,
    )
