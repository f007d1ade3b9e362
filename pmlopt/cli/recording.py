"""Releases of a data file that are recorded in a ledger as they are published."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pmlopt.cli.ledger import say_finished, say_recorded
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
        from pmlopt.releases import Ledger
        from pmlopt.releases.recorded import RecordedDraws
        from pmlopt.releases.stored_ledger import check_new

        if dropping:
            raise InputError("--ledger keeps a row for each person in it: leave out --missing drop")
        if files.is_standard(output):
            raise InputError("--ledger publishes a file, after an interruption too: give -o one")
        with Ledger.open(self.ledger_file) as book:
            say_finished(book)
            if str(output.resolve()) in book.finished:
                sys.exit()  # this very release
            check_new(output)
            draft = output.with_name(f".pmlopt-draft-{output.name}")
            draws = RecordedDraws(releases, table, self.who)
            try:
                yield draft, draws.add
                outcomes = draws.record(book)
                book.publish(draft, output)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
        say_recorded(book, self.ledger_file, outcomes)
