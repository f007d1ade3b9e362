"""The command that releases columns of a data file through mechanisms, and records that in a ledger."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pmlopt.cli.data import Beside, DataOptions, MissingCells, Seed, row_progress, warn_of_seed
from pmlopt.cli.ledger import say_finished, say_recorded
from pmlopt.cli.options import PATH, TARGET, Arg, Opt, check_apart, command, main
from pmlopt.cli.orbits import apply_orbits
from pmlopt.cli.printing import nats, print_table, say
from pmlopt.cli.workers import Workers
from pmlopt.core import files
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.core.arrays import IntArray, Label
    from pmlopt.data.tables import Batch, Table
    from pmlopt.releases.applying import Applied
    from pmlopt.releases.batches import ColumnRelease

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
        from pmlopt.releases.ledger import check_new
        from pmlopt.releases.recorded import RecordedDraws

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


_Columns: TypeAlias = Annotated[tuple[str, ...], Opt(
    "The column of DATA that holds the secret. Given several times, inputs are tuples of them.", "--column"
)]  # fmt: skip


@command(main)
def apply(
    mechanism_file: Annotated[Path, Arg("MECHANISM")],
    data: Annotated[Path, Arg("DATA")],
    columns: _Columns,
    output: Annotated[
        Path,
        Opt(
            "The file to write, by its ending; - for standard output. For a folder: one to make.",
            "-o/--output",
            TARGET,
        ),
    ],
    beside: Beside,
    account: Account,
    form: DataOptions,
    workers: Workers,
    also: Annotated[
        tuple[Any, ...],
        Opt("Another mechanism for another column, in the same pass: MECHANISM COLUMN.", type=(PATH, str)),
    ] = (),
    assess: Annotated[
        bool, Opt("Print what each column that stays in clear tells of the secret, by DATA.")
    ] = False,
    missing: MissingCells = "refuse",
    seed: Seed = None,
) -> None:
    """Replace columns of DATA by outputs, row by row.

    Each cell becomes an output that MECHANISM draws for it. DATA (CSV, Parquet or Arrow) is read and written
    in batches, and may be of any length. Other columns stay in clear, and may tell of the secret what the
    mechanism does not: say with --keep, --drop or --drop-all which, and see with --assess what they add. A
    file that claims what is false of it is refused. A missing cell is the letter '' (empty text) where the
    mechanism has it.

    DATA may be a folder of Parquet files, or a pattern for some ('2026-*.parquet' in quotes): each becomes a
    file of the same name and place in OUTPUT, by --workers side by side. After an interruption the same
    command goes on where it stopped. The summary is applied.json there: rows, digests, and the levels.
    """
    from pmlopt.data.symmetry.orbit_mechanism import holds_orbits
    from pmlopt.data.tables import FolderTable, is_folder
    from pmlopt.releases.applying import apply_columns
    from pmlopt.releases.batches import ColumnRelease
    from pmlopt.releases.folders import apply_folder
    from pmlopt.verification import trusted_mechanism

    if files.is_same_file(output, data):
        raise InputError(f"{output}: is the data itself: write the release to another file")
    check_apart([output], [mechanism_file, *(file for file, _ in also)])
    files.check_target(output)
    if holds_orbits(mechanism_file):
        if assess or also or len(columns) > 1 or account != Account():
            raise InputError(
                "a mechanism by orbits releases one column: leave out --assess, --also and --ledger"
            )
        say(apply_orbits(mechanism_file, data, form, columns[0], output, beside, seed))
        return
    releases = [ColumnRelease(trusted_mechanism(mechanism_file), tuple(columns))]
    releases += [ColumnRelease(trusted_mechanism(file), (column,)) for file, column in also]
    warn_of_seed(seed)
    dropping = missing == "drop"
    if is_folder(data):
        if assess or account != Account():
            raise InputError("a folder of files is released without --assess and --ledger: leave them out")
        folder = FolderTable(data)
        kept = beside.columns(folder.names, [name for one in releases for name in one.columns], data, False)
        with row_progress(folder) as progress, workers.executor() as executor:
            done, _ = apply_folder(
                folder, releases, output, keep=kept, drop_missing=dropping, seed=seed, executor=executor,
                progress=progress, about=_about([mechanism_file, *(file for file, _ in also)], releases),
            )  # fmt: skip
        _say_done(done, data, output)
        return
    if workers != Workers():
        raise InputError("--workers and --scheduler are for a folder of files: leave them out")
    with (
        form.open(data) as table,
        row_progress(table) as progress,
        account.keeps(table, releases, output, dropping) as (target, released),
    ):
        taken = [name for release in releases for name in release.columns]
        kept = beside.columns(table.names, taken, table.where, assess)
        assessed = _Assessment(table, releases, kept) if assess else None

        def watch(batch: Batch, inputs: Sequence[IntArray]) -> None:
            if assessed is not None:
                assessed.add(batch, inputs[0])
            progress(batch.size)

        done = apply_columns(
            table,
            releases,
            target,
            keep=kept,
            drop_missing=dropping,
            seed=seed,
            watch=watch,
            released=released,
        )
    _say_done(done, data, output)
    if assessed is not None and kept and done.rows:
        print_table(["in clear beside it", "values", "by itself", "with the release"], assessed.rows())


def _about(mechanism_files: Sequence[Path], releases: Sequence[ColumnRelease]) -> dict[str, Any]:
    """What the summary of a folder says of its mechanisms: the files, and what they prove."""
    from pmlopt import __version__
    from pmlopt.programs.result import Result
    from pmlopt.verification import load

    def claims(file: Path) -> dict[str, Any]:
        held = load(file)
        return {"level": held.level, "statement": str(held)} if isinstance(held, Result) else {}

    return {
        "version": __version__,
        "mechanisms": [
            {"columns": release.columns, "sha256": files.digest_of(file), **claims(file)}
            for file, release in zip(mechanism_files, releases, strict=True)
        ],
    }


def _say_done(done: Applied, data: Path, output: Path) -> None:
    if done.dropped:
        say(f"{data}: {done.dropped} rows with a missing cell are left out", err=True)
    say(f"{done.rows} rows written to {output}")


class _Assessment:
    """What the columns in clear tell of the secret, by the data: counted batch by batch."""

    def __init__(self, table: Table, releases: Sequence[ColumnRelease], beside: Sequence[str]) -> None:
        from pmlopt.data.tables import column_place

        if len(releases) > 1 or len(releases[0].columns) > 1:
            raise InputError("--assess is about one column that is released: leave the others out")
        self._mechanism, self._table = releases[0].mechanism, table
        self._places = [column_place(table.names, name, table.where) for name in beside]
        self._groups = [[place] for place in self._places]
        self._groups += [self._places] if len(self._places) > 1 else []
        self._counts: list[Counter[tuple[Label, Label]]] = [Counter() for _ in self._groups]

    def add(self, batch: Batch, inputs: IntArray) -> None:
        """Count a batch by the input of each row, by its place; -1 where the row is left out."""
        from pmlopt.data.tables.counting import pairs_in

        for counts, group in zip(self._counts, self._groups, strict=True):
            counts.update(pairs_in(batch, group, inputs))

    def rows(self) -> list[tuple[str, ...]]:
        """For each column in clear, and all: its values, and the levels alone and with the release."""
        import numpy as np

        from pmlopt.data.mechanism import Mechanism
        from pmlopt.data.secret import Secret
        from pmlopt.releases import level_beside, level_in_clear

        mechanism, table = self._mechanism, []
        for counts, group in zip(self._counts, self._groups, strict=True):
            joint = Secret.from_counts(counts)
            letters = np.array(joint.labels, dtype=np.int64)
            part = Mechanism(mechanism.matrix[letters], joint.labels, mechanism.outputs)
            name = self._table.names[group[0]] if len(group) == 1 else "all of them"
            levels = (level_in_clear(joint), level_beside(joint, part))
            table.append((name, str(len(joint.values)), *map(nats, levels)))
        return table
