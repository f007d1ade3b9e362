"""Releases of a data file that are recorded in a ledger as they are published."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from pmlopt.cli.ledger import numbers_of_people, say_finished, say_recorded
from pmlopt.cli.options import Opt
from pmlopt.core import files
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.core.arrays import IntArray
    from pmlopt.data.tables import Batch, Table
    from pmlopt.releases.applying import ColumnRelease

    Drawn: TypeAlias = Callable[[Batch, Sequence[IntArray]], None]


@dataclass(frozen=True)
class Account:
    """The ledger of a release, if it has one."""

    ledger_file: Annotated[Path | None, Opt(
        "Check the release against this ledger, publish it and record it, together or not at all.", "--ledger"
    )] = None  # fmt: skip
    who: Annotated[
        str | None, Opt("With --ledger: the column of DATA with the numbers of the people, from 0.")
    ] = None

    @contextmanager
    def keeps(
        self, table: Table, releases: Sequence[ColumnRelease], output: Path, dropping: bool
    ) -> Iterator[tuple[Path, Drawn | None]]:
        """Where a release is written, and what to tell of the draws; it is published when the block ends.

        The draws are written to a draft. Then the ledger checks the total and holds the release, and the
        draft gets its name; `Ledger.publish` says what holds after a kill in between.
        """
        if self.ledger_file is None:
            if self.who is not None:
                raise InputError("--who names the people of a ledger: give --ledger too")
            yield output, None
            return
        from pmlopt.data.mechanism import Mechanism
        from pmlopt.releases import Ledger
        from pmlopt.releases.stored_ledger import check_new

        if len(releases) > 1 or dropping:
            raise InputError("--ledger keeps one secret of each person: leave out --also and --missing drop")
        if files.is_standard(output):
            raise InputError("--ledger publishes a file, after an interruption too: give -o one")
        with Ledger.open(self.ledger_file) as book:
            say_finished(book)
            if str(output.resolve()) in book.finished:
                sys.exit()  # this very release
            check_new(output)
            draft = output.with_name(f".pmlopt-draft-{output.name}")
            draws = _Draws(table, self.who)
            try:
                yield draft, draws.add
                mechanism = releases[0].mechanism
                unnamed = Mechanism(mechanism.matrix, mechanism.inputs)
                book.record(unnamed, draws.outcomes, draws.people)
                book.publish(draft, output)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
        say_recorded(book, self.ledger_file, len(draws.outcomes))


class _Draws:
    """What was drawn for whom."""

    def __init__(self, table: Table, who: str | None) -> None:
        from pmlopt.data.tables import column_place

        self._who = who
        self._place = None if who is None else column_place(table.names, who, table.where)
        self._drawn: list[IntArray] = []
        self._numbers: list[str] = []

    def add(self, batch: Batch, drawn: Sequence[IntArray]) -> None:
        self._drawn.append(drawn[0])
        if self._place is not None:
            self._numbers.extend(batch.texts(self._place))

    @property
    def outcomes(self) -> IntArray:
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._drawn])

    @property
    def people(self) -> list[int] | None:
        return None if self._who is None else numbers_of_people(self._numbers, self._who)
