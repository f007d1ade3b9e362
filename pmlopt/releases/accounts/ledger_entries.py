"""The recording of a table's draws in a ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import IntArray, abbreviate, make_label_key
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.releases.accounts.joint import compose_attributes
from pmlopt.releases.accounts.ledger import Ledger
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables.reading import Table, TableBatch, find_column, open_table, read_texts
from pmlopt.tables.streams import CsvFormat


class RecordedDraws:
    """The draws of several columns, recorded as one release of a letter tuple.

    Args:
        releases: mechanisms with their columns; the letters of the ledger are the inputs of one, or the
            tuples of the inputs of several, in their order.
        table: whose rows are released.
        person_column: the column with the numbers of the people, from 0; None where the rows are all
            people in order.
    """

    def __init__(
        self, releases: Sequence[ColumnRelease], table: Table, person_column: str | None = None
    ) -> None:
        self.releases = releases
        self._person_column = person_column
        self._place = None
        if person_column is not None:
            self._place = find_column(table.names, person_column, table.where)
        self._sizes = [len(one.mechanism.outputs) for one in releases]
        self._drawn: list[IntArray] = []
        self._numbers: list[str] = []

    def add_batch(self, batch: TableBatch, drawn: Sequence[IntArray]) -> None:
        """Collect the draws of a batch."""
        self._drawn.append(np.ravel_multi_index(list(drawn), self._sizes))
        if self._place is not None:
            self._numbers.extend(batch.column_texts(self._place))

    def record(self, book: Ledger) -> int:
        """Record all draws in a ledger, and return their number.

        Raises:
            PrivacyError: the total of the ledger might be broken; see `Ledger.record`.
            MechanismError: there are more rows or fewer than people, or the letters are others.
        """
        outcomes = np.concatenate([np.zeros(0, dtype=np.int64), *self._drawn])
        people = None
        if self._person_column is not None:
            people = parse_person_numbers(self._numbers, self._person_column)
        book.record(build_joint_mechanism(self.releases, book.initial), outcomes, people)
        return len(outcomes)


def build_joint_mechanism(releases: Sequence[ColumnRelease], law: Prior) -> Mechanism:
    """Build the product mechanism on letter tuples, with numbered outputs.

    Args:
        releases: of one, the mechanism itself; of several, on those letters of the law that are tuples of
            their inputs.
        law: of the letters of a ledger.

    Raises:
        MechanismError: no letter is such a tuple, or there are too many outcomes to list.
    """
    if len(releases) == 1:
        return Mechanism(releases[0].mechanism.matrix, releases[0].mechanism.inputs)
    sides = [set(map(make_label_key, one.mechanism.inputs)) for one in releases]
    known = [
        one
        for one in law.labels
        if isinstance(one, tuple) and len(one) == len(sides)
        and all(make_label_key(part) in side for part, side in zip(one, sides, strict=True))
    ]  # fmt: skip
    if not known:
        inputs = " and ".join(abbreviate(one.mechanism.inputs) for one in releases)
        raise MechanismError(
            f"the letters of the ledger are {abbreviate(law.labels)}, and none is a tuple of what is "
            "released: "
            f"{inputs}"
        )
    whole = compose_attributes([one.mechanism for one in releases], known)
    return Mechanism(whole.matrix, known)


def parse_person_numbers(texts: Sequence[str], person_column: str) -> list[int]:
    """Parse person numbers from text cells.

    Raises:
        InputError: a cell is no number.
    """
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InputError(
                f"the column {person_column!r}: {text!r} is no number of a person, 0 and up"
            )
    return [int(text) for text in texts]


def build_remaining_requirement(
    ledger: Path,
    prior: Prior,
    data: Any = None,
    person_column: str | None = None,
    form: CsvFormat | None = None,
    restate: Callable[[Prior], tuple[Prior, float]] | None = None,
) -> Requirement:
    """Build the requirement on a design from a ledger's remaining budgets.

    Args:
        ledger: its file.
        prior: of the design, on the letters of the ledger.
        data: the file or frame with the people in the release; None for all.
        person_column: the column with their numbers; None for all.
        form: of CSV files.
        restate: gives the law under which the total is kept, in place of the ledger's, and by how much
            the total is lower under it.
    """
    people = None
    if person_column is not None:
        with open_table(data, form) as table:
            people = parse_person_numbers(read_texts(table, [person_column])[0], person_column)
    book = Ledger.load(ledger)
    found: Requirement
    if restate is None or book.total is None:
        found = book.joint_requirement(people, prior.labels)
        return found
    law, allowance = restate(book.initial)
    if allowance < book.total:
        with suppress(PrivacyError):  # so much is not left
            found = book.joint_requirement(people, prior.labels, book.total - allowance, law)
            return found
    # without the allowance, the ledger decides under its own law before anything is released
    found = book.joint_requirement(people, prior.labels, book.total, law)
    return found
