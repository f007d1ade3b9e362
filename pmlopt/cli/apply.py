"""Commands that release data: apply mechanisms, ledgers, histograms and noise tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pmlopt.cli.data_options import (
    DataOptions,
    KeepOptions,
    KeepOrder,
    MissingCells,
    PersonColumn,
    Seed,
    show_row_progress,
    warn_of_order,
    warn_of_seed,
)
from pmlopt.cli.exits import note_released
from pmlopt.cli.group import main
from pmlopt.cli.ledger import print_finished_publications, print_recorded
from pmlopt.cli.options import ArgumentNote, add_command
from pmlopt.cli.printing import format_nats, print_table, print_usefulness, warn_of_exact_counts
from pmlopt.cli.targets import PATH, TARGET_OR_FOLDER
from pmlopt.cli.terminal import print_line
from pmlopt.cli.worker_options import WorkerOptions
from pmlopt.core.display import format_row_share
from pmlopt.core.files import disk
from pmlopt.core.files.csv_rows import encode_csv
from pmlopt.core.numbers.arrays import indices_of
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.core.numbers.arrays import IntArray
    from pmlopt.releases.rows.applying import ApplyResult
    from pmlopt.releases.rows.batches import ColumnRelease
    from pmlopt.tables import Table, TableBatch

    Drawn: TypeAlias = Callable[[TableBatch, Sequence[IntArray]], None]


@dataclass(frozen=True)
class LedgerOptions:
    """The ledger options of a release."""

    ledger_file: Annotated[
        Path | None,
        "Check the release against this ledger, publish it and record it, together or not at all.",
    ] = None
    person_column: PersonColumn = None

    @contextmanager
    def publish_with_ledger(
        self, table: Table, releases: Sequence[ColumnRelease], output: Path, dropping: bool
    ) -> Iterator[tuple[Path, Drawn | None]]:
        """Yield the output path and draw recorder of a release, and publish it with its ledger record.

        The lock on the output is taken first, and that on the ledger second. The draws are written to a
        draft. Then the ledger checks the total and holds the release, and the draft gets its name;
        `Ledger.publish` states what holds after a kill in between.
        """
        if self.ledger_file is None:
            if self.person_column is not None:
                raise InputError("--person-column names the people of a ledger: give --ledger too")
            yield output, None
            return
        from pmlopt.releases import Ledger
        from pmlopt.releases.accounts.ledger_entries import RecordedDraws
        from pmlopt.releases.accounts.publications import compute_file_key
        from pmlopt.releases.rows.drafts import begin_draft, resolve_target_folder

        if dropping:
            raise InputError("--ledger keeps a row for each person in it: leave out --missing drop")
        if disk.is_standard_stream(output):
            raise InputError("--ledger publishes a file, after an interruption too: give -o one")
        target = resolve_target_folder(output)
        with disk.exclusive_lock(target), Ledger.open(self.ledger_file, target.parent) as book:
            print_finished_publications(book)
            if str(target) in book.finished:
                sys.exit()  # this very release
            draws = RecordedDraws(releases, table, self.person_column)
            with begin_draft(target, compute_file_key(self.ledger_file)) as draft:
                yield draft.partial_path, draws.add_batch
                outcomes = draws.record(book)
                draft.seal()
                book.publish(draft.complete_path, target)
        note_released(f"{output} is published, and recorded in {self.ledger_file}")
        print_recorded(book, self.ledger_file, outcomes)


_Columns: TypeAlias = Annotated[
    tuple[str, ...],
    "The column of DATA that holds the secret. Given several times, inputs are tuples of them.",
    "--column",
]


@add_command(main, spends=True)
def apply(
    mechanism_file: Annotated[Path, ArgumentNote("MECHANISM")],
    data: Annotated[Path, ArgumentNote("DATA")],
    columns: _Columns,
    output: Annotated[
        Path,
        "The file to write, by its ending; - for standard output. For a folder: one to make.",
        TARGET_OR_FOLDER,
    ],
    beside: KeepOptions,
    account: LedgerOptions,
    form: DataOptions,
    workers: WorkerOptions,
    and_mechanism: Annotated[
        tuple[Any, ...],
        "Another mechanism for another column, in the same pass: MECHANISM COLUMN.",
        (PATH, str),
    ] = (),
    assess: Annotated[
        bool, "Print what each column that stays in clear reveals of the secret, in DATA."
    ] = False,
    missing: MissingCells = "refuse",
    keep_order: KeepOrder = False,
    seed: Seed = None,
) -> None:
    """Replace columns of DATA by outputs, row by row.

    Each cell becomes an output that MECHANISM draws for it. DATA (CSV, Parquet or Arrow) is read and written
    in batches, and may be of any length. The rows are written in a random order, unless --keep-order. Say of
    the other columns which stay in clear, by --keep, --drop or --drop-all: they may reveal more about the
    secret than the mechanism, and --assess prints how much. A file with a false claim is refused. A missing
    cell is the letter '' (empty text) where the mechanism has it.

    DATA may be a folder of Parquet files, or a pattern for some ('2026-*.parquet' in quotes): the rows go to
    files of the same names in OUTPUT, in parallel with --workers, each to a random one unless --keep-order.
    After an interruption the same command goes on where it stopped. The summary is applied.json there: rows,
    digests, and the levels.
    """
    from pmlopt.data.symmetry.orbit_mechanism import is_orbit_file
    from pmlopt.publishing.letter_counts import ClearColumnCounts
    from pmlopt.releases.rows.applying import apply_columns, apply_folder
    from pmlopt.releases.rows.batches import ColumnRelease
    from pmlopt.tables import FolderTable, is_data_folder

    if not is_data_folder(data):
        disk.check_target(output)
    if is_orbit_file(mechanism_file):
        if assess or and_mechanism or len(columns) > 1 or account != LedgerOptions():
            raise InputError(
                "a mechanism by orbits releases one column: leave out --assess, --and-mechanism and --ledger"
            )
        warn_of_order(keep_order)
        apply_orbits(mechanism_file, data, form, columns[0], output, beside, seed, keep_order)
        return
    chosen = [
        (mechanism_file, tuple(columns)),
        *((file, (column,)) for file, column in and_mechanism),
    ]
    held = [_load_mechanism(file) for file, _ in chosen]
    releases = [
        ColumnRelease(getattr(one, "mechanism", one), names, getattr(one, "level", None))
        for one, (_, names) in zip(held, chosen, strict=True)
    ]
    warn_of_seed(seed)
    warn_of_order(keep_order)
    dropping = missing == "drop"
    if is_data_folder(data):
        if assess or account != LedgerOptions():
            raise InputError(
                "a folder of files is released without --assess and --ledger: leave them out"
            )
        folder = FolderTable(data)
        kept = beside.list_kept(
            folder.names, [name for one in releases for name in one.columns], data, False
        )
        with show_row_progress(folder) as progress, workers.open_executor() as executor:
            done, _ = apply_folder(
                folder, releases, output, keep=kept, drop_missing=dropping, seed=seed, keep_order=keep_order,
                executor=executor, progress=progress, about=_describe_mechanisms(chosen, held),
            )  # fmt: skip
        _print_apply_summary(done, data, output, held)
        return
    if workers != WorkerOptions():
        raise InputError("--workers and --scheduler are for a folder of files: leave them out")
    with (
        form.open_table(data) as table,
        show_row_progress(table) as progress,
        account.publish_with_ledger(table, releases, output, dropping) as (target, released),
    ):
        taken = [name for release in releases for name in release.columns]
        kept = beside.list_kept(table.names, taken, table.where, assess)
        if assess and len(taken) > 1:
            raise InputError("--assess is about one column that is released: leave the others out")
        clear = ClearColumnCounts(table, kept if assess else [])

        def record_batch(batch: TableBatch, inputs: Sequence[IntArray]) -> None:
            clear.add_batch(batch, inputs[0])
            progress(batch.size)

        done = apply_columns(
            table, releases, target, keep=kept, drop_missing=dropping, seed=seed, keep_order=keep_order,
            watch=record_batch, released=released, replace=False,
        )  # fmt: skip
    _print_apply_summary(done, data, output, held)
    if assess and kept and done.rows:
        told = clear.compute_levels([releases[0].mechanism])
        rows = [
            (
                one.columns[0] if len(one.columns) == 1 else "all of them",
                *one.table_row(format_nats),
            )
            for one in told
        ]
        print_table(["column in clear", "values", "without the release", "with the release"], rows)


def _load_mechanism(file: Path) -> Any:
    """Load a mechanism or result that holds, and warn where its file has exact counts."""
    from pmlopt.verification import load_trusted

    held = load_trusted(file)
    warn_of_exact_counts(file, held)
    return held


def _describe_mechanisms(
    taken: Sequence[tuple[Path, tuple[str, ...]]], held: Sequence[Any]
) -> dict[str, Any]:
    """Describe a folder's mechanisms for its summary: files and proved claims."""
    from pmlopt import __version__

    def describe_claims(one: Any) -> dict[str, Any]:
        return {"level": one.level, "statement": str(one)} if hasattr(one, "certificate") else {}

    return {
        "version": __version__,
        "mechanisms": [
            {"columns": names, "sha256": disk.digest_file(file), **describe_claims(one)}
            for one, (file, names) in zip(held, taken, strict=True)
        ],
    }


def apply_orbits(
    path: Path,
    data: Path,
    form: DataOptions,
    column: str,
    output: Path,
    beside: KeepOptions,
    seed: int | None,
    keep_order: bool = False,
) -> None:
    """Replace a column by outputs of an orbit mechanism.

    Its cells are all together one table of records, or a letter each. The rows get a random order.
    """
    from pmlopt.data.sampling.categorical import make_random_bits
    from pmlopt.data.symmetry import IIDPrior, OrbitMechanism
    from pmlopt.tables.reading import read_texts
    from pmlopt.tables.row_order import shuffle_list
    from pmlopt.verification import load_trusted_mechanism

    with form.open_table(data) as table:
        kept = beside.list_kept(table.names, [column], data, False)
        names = [name for name in table.names if name == column or name in kept]
        cells = dict(zip(names, read_texts(table, names), strict=True))
    letters, mechanism = cells[column], load_trusted_mechanism(path)
    assert isinstance(mechanism, OrbitMechanism)
    prior = mechanism.space.prior
    together = isinstance(prior, IIDPrior)
    if isinstance(prior, IIDPrior) and len(letters) != prior.records:
        raise InputError(
            f"the data has {len(letters)} rows, and the mechanism is for {prior.records} records"
        )
    labels = prior.law.labels if isinstance(prior, IIDPrior) else prior.labels
    values = [
        labels[place] for place in indices_of(letters, labels, "the column", InputError, text=True)
    ]
    drawn = (
        mechanism.sample([tuple(values)], seed)[0] if together else mechanism.sample(values, seed)
    )
    cells[column] = [str(label) for label in drawn]
    rows = list(zip(*cells.values(), strict=True))
    if not keep_order:
        rows = shuffle_list(rows, make_random_bits(seed if seed is None else [seed, 0, 1]))
    disk.atomic_write(output, encode_csv([names, *rows]), replace=False)
    print_line(f"{len(letters)} rows written to {output}")


def _print_apply_summary(done: ApplyResult, data: Path, output: Path, held: Sequence[Any]) -> None:
    """Print the number of dropped and written rows, and the mechanisms' utility."""
    if done.dropped:
        share = format_row_share(done.dropped, done.rows + done.dropped)
        print_line(f"{data}: {share} have a missing cell and are left out", err=True)
    print_line(f"{done.rows} rows written to {output}")
    for one in held:
        print_usefulness(one)
