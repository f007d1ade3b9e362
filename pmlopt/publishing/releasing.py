"""Releases of data columns to verifiable folders, and their drafts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pmlopt.core.files import disk
from pmlopt.core.files.drafts import EMPTY_OWNER_KEY, Draft
from pmlopt.core.frames import Missing
from pmlopt.core.numbers.arrays import DefaultLabels, IntArray, check_nonnegative, join_words
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.errors import InputError, PrivacyError
from pmlopt.model.utility import Utility
from pmlopt.programs.column_designs import About
from pmlopt.programs.result import Result
from pmlopt.publishing.folder import (
    FORMAT,
    HOUSEHOLDS_COVERED,
    IN_ORDER,
    MECHANISMS,
    NOT_COVERED,
    RANDOM_ORDER,
    RELEASED,
    REPORTS,
    SYSTEM,
    ReleasedMechanism,
    ReleaseFile,
    choose_mechanism_files,
    compute_joint_levels,
    digest_folder,
    explain_exceeded_total,
)
from pmlopt.publishing.household_columns import count_households
from pmlopt.publishing.joint_columns import (
    Designed,
    JointColumn,
    count_stated_rows,
    design_columns,
    plan_columns,
)
from pmlopt.publishing.letter_counts import LetterCounts, count_letters
from pmlopt.publishing.letter_names import find_value_labels
from pmlopt.publishing.page import render_pages
from pmlopt.publishing.published_laws import StatedCounts
from pmlopt.publishing.rounded_counts import choose_rounding_step
from pmlopt.publishing.signing import get_release_date
from pmlopt.publishing.stated_law import (
    check_follows_stated,
    list_letter_tuples,
    round_letter_counts,
)
from pmlopt.releases.accounts.attributes import (
    AttributeLevels,
    compute_marginal,
)
from pmlopt.releases.accounts.ledger import Ledger
from pmlopt.releases.accounts.ledger_entries import (
    RecordedDraws,
    build_joint_mechanism,
    parse_person_numbers,
)
from pmlopt.releases.accounts.publications import compute_file_key
from pmlopt.releases.rows.applying import apply_columns, apply_folder
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.releases.rows.drafts import begin_draft, resolve_target_folder
from pmlopt.tables.digests import RowDigest, digest_data, digest_files
from pmlopt.tables.reading import (
    FolderTable,
    Table,
    find_column,
    open_table,
    read_texts,
)
from pmlopt.tables.streams import CsvFormat
from pmlopt.tables.writing import choose_released_ending
from pmlopt.verification.verify_saved import load_trusted

Columns: TypeAlias = str | tuple[str, ...]
Made: TypeAlias = Mechanism | Result[Any] | str | os.PathLike[str]


@dataclass(frozen=True)
class DataDigests:
    """The digests of a draft's inputs, rechecked before publication.

    Attributes:
        data: of the file, or the files of the folder; None for a frame.
        law: of those that the law is counted in; None for a frame, or where there are none.
        rows: of the rows that were counted; of a frame, with what stays in clear and whose they are.
    """

    data: str | None = None
    law: str | None = None
    rows: str = ""

    @classmethod
    def compute(cls, data: Any, law: Any) -> DataDigests:
        """Digest the files of data and of a law."""
        return cls(digest_data(data), None if law is None else digest_data(law))


@dataclass(frozen=True, repr=False, eq=False)
class ReleaseDraft:
    """A planned release before any draw: its levels and population.

    Attributes:
        data: the data file or frame.
        releases: the mechanisms with their columns.
        made: each as it is saved: a `Result` has its certificate.
        levels: what all releases leak together, and about each part.
        planned: what `release.json` will state, as far as it does not depend on the draws and the files.
        counted: the exact counts of the data, for the releaser only.
        ledger: the file of the ledger that records the release, if there is one.
        person_column: the column with the numbers of its people; None where the rows are all, in order.
        law: the data whose law of the letters is known, where they are others.
        digests: of what all this was computed from.
    """

    data: Any
    releases: tuple[ColumnRelease, ...]
    made: tuple[Mechanism | Result[Any], ...]
    levels: AttributeLevels
    planned: ReleaseFile
    counted: LetterCounts
    ledger: str | os.PathLike[str] | None = None
    person_column: str | None = None
    drop_missing: bool = False
    form: CsvFormat | None = None
    law: Any = None
    digests: DataDigests = DataDigests()

    def __repr__(self) -> str:
        """Return columns and joint level as text, without data."""
        names = join_words(name for one in self.releases for name in one.columns)
        return f"<ReleaseDraft of {names}: {self.levels.together:.6g} nats together>"

    def check_ledger(self) -> tuple[Ledger, bool, float] | None:
        """Return the ledger, whether it allows the release, and the resulting level in nats."""
        if self.ledger is None:
            return None
        book = Ledger.load(self.ledger)
        people = None
        if self.person_column is not None:
            with open_table(self.data, self.form) as table:
                people = parse_person_numbers(
                    read_texts(table, [self.person_column])[0], self.person_column
                )
        joint = build_joint_mechanism(self.releases, book.initial)
        return (
            book,
            book.total is None or book.allows(joint, people),
            book.level_after(joint, people),
        )

    def make_row_digest(self, table: Table) -> RowDigest:
        """Create the running digest of the data's rows."""
        if self.digests.data is not None:  # it has the other columns
            return RowDigest(table, ())
        return RowDigest(table, _list_digested_columns(self.planned.kept, self.person_column))

    def check_unchanged(self, rows: str | None, data: str | None = None) -> None:
        """Raise an error where data, law or files have changed since the draft.

        Args:
            rows: the digest of the rows that were drawn; None for the files of a folder.
            data: of the files that were drawn, where that is known; None to read them again.

        Raises:
            InputError: something has changed.
        """
        now = DataDigests.compute(None if data is not None else self.data, self.law)
        now = replace(now, data=data or now.data, rows=self.digests.rows if rows is None else rows)
        if now.law != self.digests.law:
            raise InputError(
                "the data of the law were changed since they were counted: start again"
            )
        if now != self.digests:
            raise InputError("the data were changed since their rows were counted: start again")


def release(
    data: Any,
    mechanisms: Mapping[Columns, Made] | None = None,
    target: str | os.PathLike[str] | None = None,
    *,
    columns: Mapping[str, Utility | str] | None = None,
    limits: Mapping[str, float] | None = None,
    about: About | None = None,
    household_column: str | None = None,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    total: float | None = None,
    law: Any = None,
    ledger: str | os.PathLike[str] | None = None,
    person_column: str | None = None,
    drop_missing: bool = False,
    keep_order: bool = False,
    seed: int | None = None,
    title: str = "",
    issuer: str = "",
    exact_counts: bool = False,
    form: CsvFormat | None = None,
    executor: Executor | None = None,
) -> ReleaseDraft:
    """Release columns of a data file through mechanisms, to a verifiable folder.

    The folder has the released file, the mechanisms with their certificates, a report (`report.html`,
    `report.md`) and `release.json`, which states what all releases leak together, under the joint law of the
    letters, which is written there too. `check` decides all of it again.

    The joint law that is stated has rounded counts of people (`choose_rounding_step`), so that the folder
    holds no exact count; levels are under the stated law. Design mechanisms for it: `build_stated_prior`, or
    a plan. Or give `columns` with a `total`: one mechanism on their tuples is designed then, for the stated
    law (`joint_design`).

    Args:
        data: a data file, a folder of Parquet files, a `Database`, or a data frame.
        mechanisms: by column, or by the tuple of columns whose tuples of values are the inputs: a mechanism,
            a `Result`, or a file of either. Each row is drawn independently, exactly.
        columns: in place of mechanisms the utility of each column, by its name.
        limits: with `columns` the largest level about a single column, in nats, by its name.
        about: with `columns` the largest level about a function of the tuple of values, by a name: the
            function, and nats.
        household_column: whose rows belong together: the total counts what all rows of a household reveal
            about one member, by the file's rounded counts of households.
        target: the folder to make; None makes none: the draft states what the release would reveal.
        keep: columns that stay, in clear.
        drop: columns that are not released. Every column of the data is named once: here, above, or as one
            that is released.
        total: the largest level in nats that all releases together may have about the tuple of all letters.
        law: another data file or frame with the same columns, of whose rows the joint law of the letters is
            that which an adversary knows; None takes the data's own.
        ledger: the file of a ledger on the letters, or the tuples of letters, that are released: it must
            allow the release, which is recorded there and published together, or neither.
        person_column: the column with the numbers of its people, from 0; None where the rows are all, in
            order.
        drop_missing: leave out rows with a missing cell that is no input.
        keep_order: leave the rows in the order of the data, which may reveal what these are sorted by: no
            level counts that. They are written in a uniformly random order otherwise.
        seed: for tests only.
        title: of the report.
        issuer: who answers for the release, named in the report.
        exact_counts: publish the exact number of people with each tuple of letters. Two such releases whose
            people differ by one person give away the letters of that person.
        form: delimiter and encoding of CSV files, where they shall not be found.
        executor: what works on the files of a folder side by side, such as a pool of processes. Released
            again after an interruption, files that were finished stay as they are.

    Raises:
        InputError: a column is named by nothing, or twice, or is not there; or a mechanism comes with the
            exact shares of the data.
        MechanismError: a cell is no input of its mechanism, or there are too many outcomes to list.
        PrivacyError: the total would be exceeded, or that of the ledger.
        FileFormatError: a file cannot be read, or the folder is there already.

    Examples:
        >>> from pmlopt import Mechanism
        >>> people = {"ill": ["yes", "no", "no", "no"] * 50, "name": list("abcd") * 50}
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> draft = release(people, {"ill": response}, drop=["name"])
        >>> draft  # log 2
        <ReleaseDraft of ill: 0.693147 nats together>
    """
    from pmlopt import __version__

    missing: Missing = "drop" if drop_missing else "refuse"
    source = data if law is None else law
    count_rows = partial(
        count_stated_rows, source, missing=missing, form=form, exact_counts=exact_counts
    )
    released = list(columns or [name for names in mechanisms or () for name in _as_tuple(names)])
    households = count_households(
        data, household_column, released, "drop" if drop_missing else "letter", form, exact_counts
    )
    given = _collect_mechanisms(
        mechanisms, plan_columns(columns, limits, about, total),
        lambda planned: design_columns(
            count_rows(list(planned)), planned, total or 0.0, households=households, about=about
        ),
    )  # fmt: skip
    if not given:
        raise InputError("nothing is released: give a mechanism for at least one column")
    made = tuple(map(_with_named_outputs, given.values()))
    matrices = tuple(one if isinstance(one, Mechanism) else one.mechanism for one in made)
    releases = tuple(map(ColumnRelease, matrices, given))
    drop = _add_dropped_column(household_column, keep, drop)
    with open_table(data, form) as table:
        check_columns_named(
            table.names, [name for names in given for name in names], keep, drop, table.where
        )
        value_labels = find_value_labels(table, releases)
        _check_ledger_people(ledger, person_column, drop_missing, table)
    written = [name for one in releases for name, _ in one.output_columns]
    if len({*written, *keep}) < len(written) + len(keep):
        raise InputError(
            f"two of the columns that are written have one name: {join_words([*written, *keep], 9)}"
        )
    largest = None if total is None else check_nonnegative(total, "the total", InputError)
    digests = DataDigests.compute(data, law)
    other = () if digests.data is not None else _list_digested_columns(keep, person_column)
    counted = count_letters(data, releases, keep, drop_missing, form, other)
    of_data = people = counted.people
    if law is not None:
        people = count_letters(law, releases, (), drop_missing, form).people
    strange = list_letter_tuples((of_data > 0) & (people == 0), matrices)
    if strange:
        raise InputError(
            f"{join_words(strange[0])} is in the data, and never in the law: give one with all of them"
        )
    step = 1 if exact_counts else choose_rounding_step(int(people.sum()))
    stated, of_clear = people, None
    if not exact_counts:
        of_clear = round_letter_counts(of_data, matrices)
        stated = of_clear if law is None else round_letter_counts(people, matrices)
        laws = [(of_data, of_clear)] if law is None else [(of_data, of_clear), (people, stated)]
        for place, (one, matrix, own_columns) in enumerate(zip(made, matrices, given, strict=True)):
            own = _list_stated_counts(matrix, place, laws)
            check_follows_stated(one, own, join_words(own_columns))
    levels = compute_joint_levels(stated, matrices)
    releases = tuple(
        replace(one, level=level) for one, level in zip(releases, levels.alone, strict=True)
    )
    names = choose_mechanism_files([one.columns for one in releases], matrices)
    parts = zip(releases, names, levels.alone, levels.each, strict=True)
    planned = ReleaseFile(
        format=FORMAT,
        title=title,
        version=__version__,
        data=f"{RELEASED}.csv",
        delimiter=",",
        rows=int(of_data.sum()),
        left_out=0,
        random=SYSTEM,
        order=IN_ORDER if keep_order else RANDOM_ORDER,
        parts=tuple(ReleasedMechanism(one.columns, name, *own) for one, name, *own in parts),
        together=levels.together,
        total=largest,
        kept=tuple(keep),
        dropped=tuple(drop),
        in_clear=counted.clear.compute_levels(matrices, of_clear),
        same_people=law is None,
        step=step,
        letters=tuple(list_letter_tuples(stated > 0, matrices)),
        people=tuple(stated[stated > 0].tolist()),
        date=get_release_date(),
        issuer=issuer,
        digests={},
        not_covered=NOT_COVERED if household_column is None else HOUSEHOLDS_COVERED,
        household_level=None if households is None else households.measure(releases),
        value_labels=value_labels,
    )
    digests = replace(digests, rows=counted.digest)
    draft = ReleaseDraft(
        data, releases, made, levels, planned, counted, ledger, person_column, drop_missing, form, law,
        digests,
    )  # fmt: skip
    if target is not None:
        write_release(draft, target, seed, executor)
    return draft


def _check_ledger_people(
    ledger: object, person_column: str | None, drop_missing: bool, table: Table
) -> None:
    """Raise an error where it is not clear which people of a ledger the rows are."""
    if ledger is None:
        if person_column is not None:
            raise InputError("person_column names the people of a ledger: give the ledger too")
        return
    if drop_missing:
        raise InputError(
            "a ledger has a row for each person in it: leave no row out for a missing cell"
        )
    if person_column is None and not table.is_ordered:
        raise InputError(
            f"{table.where}: its rows have no order, by which a ledger knows people: give the column with "
            "their numbers as person_column"
        )


def _collect_mechanisms(
    mechanisms: Mapping[Columns, Made] | None,
    planned: Mapping[str, JointColumn],
    design: Callable[[Mapping[str, JointColumn]], Designed],
) -> dict[tuple[str, ...], Made]:
    """Return the mechanisms by their columns: those that are given, or one for the columns together."""
    if planned and mechanisms is not None:
        raise InputError("columns are designed, and mechanisms are given: give one of the two")
    found: Mapping[Columns, Made] = {**design(planned)} if planned else mechanisms or {}
    return {_as_tuple(names): made for names, made in found.items()}


def _as_tuple(columns: Columns) -> tuple[str, ...]:
    """Return the names of the columns of a mechanism."""
    return (columns,) if isinstance(columns, str) else tuple(columns)


def write_release(
    draft: ReleaseDraft,
    target: str | os.PathLike[str],
    seed: int | None = None,
    executor: Executor | None = None,
) -> ReleaseFile:
    """Draw a release, and write its folder atomically.

    Args:
        draft: of the release.
        target: a folder that is not there.
        seed: for tests only; None draws from the operating system.
        executor: what works on the files of a folder side by side.

    Raises:
        PrivacyError: the joint level is above the total, or the ledger does not allow the release.
        FileFormatError: the folder is there, or cannot be written.
        InputError: the data were changed since the draft was made.
        MechanismError: a cell is no input of its mechanism.
    """
    planned = draft.planned
    if planned.exceeds_total:
        said = f"the release {planned.comparison_text}, and the total is {planned.total:.6g}"
        raise PrivacyError(". ".join([said, *explain_exceeded_total(planned, None)]).rstrip("."))
    place = resolve_target_folder(target)
    with _begin_release(draft, place) as (begun, book):
        folder = begun.partial_path
        (folder / MECHANISMS).mkdir()
        for part, made in zip(planned.parts, draft.made, strict=True):
            made.save(folder / part.mechanism)
        with open_table(draft.data, draft.form) as table:
            delimiter = (table.form.delimiter if table.form else None) or ","
            draws = (
                None if book is None else RecordedDraws(draft.releases, table, draft.person_column)
            )
            known: dict[str, str] = {}
            how: dict[str, Any] = {
                "keep": planned.kept, "drop_missing": draft.drop_missing, "seed": seed,
                "keep_order": planned.order == IN_ORDER,
            }  # fmt: skip
            if isinstance(table, FolderTable):
                if draws is not None:
                    raise InputError(
                        "a ledger records the rows of one file: release the folder without it"
                    )
                released = RELEASED
                done, finished = apply_folder(
                    table, draft.releases, folder / released, executor=executor, beside=place, **how
                )
                known = {f"{released}/{name}": one.sha256 for name, one in finished.items()}
                draft.check_unchanged(None, digest_files(done.sources))
            else:
                released = f"{RELEASED}{choose_released_ending(draft.data)}"
                drawn_from = draft.make_row_digest(table)
                done = apply_columns(
                    table, draft.releases, folder / released, watch=drawn_from.add_batch,
                    released=None if draws is None else draws.add_batch, **how,
                )  # fmt: skip
                draft.check_unchanged(drawn_from.compute_digest())
        if done.rows != planned.rows:
            raise InputError("the data were changed since their rows were counted: start again")
        # rounded up: it is a count of people too
        left_out = -(-done.dropped // planned.step) * planned.step
        described = replace(planned, data=released, delimiter=delimiter, left_out=left_out)
        if seed is not None:
            described = replace(described, random="a seed, for tests only")
        described = replace(described, digests=digest_folder(folder, known))  # which the report has
        for name, page in zip(REPORTS, render_pages(described, draft.made), strict=True):
            disk.atomic_write(folder / name, page)
        described = replace(described, digests=digest_folder(folder, described.digests))
        described.write(folder)
        if draws is not None and book is not None:
            draws.record(book)
    return described


def _list_digested_columns(kept: Sequence[str], person_column: str | None) -> list[str]:
    """List the digested columns: kept ones, and the person column."""
    return [*kept] if person_column is None else [*kept, person_column]


def _list_stated_counts(
    mechanism: Mechanism, place: int, laws: Sequence[tuple[IntArray, IntArray]]
) -> list[StatedCounts]:
    """List the stated counts of one mechanism's letters under each law.

    Args:
        mechanism: whose inputs are the letters.
        place: of its axis.
        laws: the exact counts of the tuples of letters, and the rounded ones.
    """
    found = []
    for exact, rounded in laws:
        counts = compute_marginal(exact, place)
        stated = compute_marginal(rounded, place)
        occurring = np.flatnonzero(counts).tolist()
        labels = [mechanism.inputs[row] for row in occurring]
        found.append(
            StatedCounts(
                dict(zip(labels, stated[occurring].tolist(), strict=True)),
                int(exact.sum()),
                dict(zip(labels, counts[occurring].tolist(), strict=True)),
            )
        )
    return found


@contextmanager
def _begin_release(draft: ReleaseDraft, place: Path) -> Iterator[tuple[Draft, Ledger | None]]:
    """Create a release's folder under the locks of folder and ledger; publish it after the block."""
    with ExitStack() as stack:
        stack.enter_context(disk.exclusive_lock(place))
        book, owner = None, EMPTY_OWNER_KEY
        if draft.ledger is not None:
            book = stack.enter_context(Ledger.open(draft.ledger, place.parent))
            owner = compute_file_key(draft.ledger)
        begun = stack.enter_context(begin_draft(place, owner))
        begun.partial_path.mkdir()
        yield begun, book
        begun.seal()
        if book is None:
            begun.publish()
        else:
            book.publish(begun.complete_path, place)


def _with_named_outputs(made: Made) -> Mechanism | Result[Any]:
    """Name the unnamed outputs of a mechanism or result y0, y1, ..."""
    if isinstance(made, str | os.PathLike):
        return _with_named_outputs(load_trusted(made))
    mechanism = made if isinstance(made, Mechanism) else getattr(made, "mechanism", None)
    if not isinstance(mechanism, Mechanism) or isinstance(mechanism, OrbitMechanism):
        raise InputError(
            f"{made!r:.60} is no mechanism on letters that are listed, nor a result with one"
        )
    if not isinstance(mechanism.outputs, DefaultLabels):
        return made
    named = Mechanism(
        mechanism.matrix, mechanism.inputs, [f"y{k}" for k in range(len(mechanism.outputs))]
    )
    if isinstance(made, Mechanism):
        return named
    return replace(made, certificate=replace(made.certificate, mechanism=named))


def _add_dropped_column(
    name: str | None, keep: Sequence[str], drop: Sequence[str]
) -> Sequence[str]:
    """Add a column, where there is one, to those that are dropped unless it is kept."""
    return drop if name is None or name in (*keep, *drop) else [*drop, name]


def check_columns_named(
    names: Sequence[str],
    released: Sequence[str],
    keep: Sequence[str],
    drop: Sequence[str],
    where: object,
) -> None:
    """Raise an error unless every table column is released, kept or dropped exactly once.

    Raises:
        InputError: one is not, or is named twice, or is not there.
    """
    said = Counter([*released, *keep, *drop])
    for name, times in said.items():
        find_column(names, name, where)
        if times > 1:
            raise InputError(
                f"the column {name!r} is named {times} times: release it, keep it, or drop it"
            )
    left = [name for name in names if name not in said]
    if left:
        raise InputError(
            f"{where}: nothing is planned for the column{'s' if len(left) > 1 else ''} "
            f"{', '.join(map(repr, left))}: release, keep (in clear) or drop each; on the command line "
            "--drop-all drops every other column"
        )
