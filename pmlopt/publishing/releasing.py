"""Columns of a data file released into a folder that others can check."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from pmlopt.core import files
from pmlopt.core.files import rename
from pmlopt.data.tables.reading import PARQUET_ENDINGS, FolderTable, open_table
from pmlopt.data.tables.streams import CsvForm
from pmlopt.data.tables.writing import ARROW_ENDINGS
from pmlopt.errors import InputError, PrivacyError
from pmlopt.publishing.draft import Columns, Made, ReleaseDraft, drafted
from pmlopt.publishing.folder import MECHANISMS, RELEASED, REPORTS, ReleaseFile, digests_of, whole_folder
from pmlopt.publishing.page import pages
from pmlopt.releases.applying import apply_columns
from pmlopt.releases.folders import apply_folder
from pmlopt.releases.ledger import Ledger
from pmlopt.releases.recorded import RecordedDraws


def release(
    data: Any,
    mechanisms: Mapping[Columns, Made],
    target: str | os.PathLike[str] | None = None,
    *,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    total: float | None = None,
    law: Any = None,
    ledger: str | os.PathLike[str] | None = None,
    who: str | None = None,
    drop_missing: bool = False,
    seed: int | None = None,
    title: str = "",
    form: CsvForm | None = None,
    executor: Executor | None = None,
) -> ReleaseDraft:
    """Release columns of a data file, each through its mechanism, in a folder that others can check.

    The folder has the released file, the mechanisms with their certificates, a report (`report.html`,
    `report.md`) and `release.json`, which says what all releases leak together, under the joint law of the
    letters, which is written there too. `check` decides all of it again.

    Args:
        data: a CSV, Parquet or Arrow file, a folder of Parquet files, or a data frame.
        mechanisms: by column, or by the tuple of columns whose tuples of values are the inputs: a mechanism,
            a `Result`, or a file of either. Each row is drawn by itself, exactly.
        target: the folder to make; None makes none: the draft says what the release would tell.
        keep: columns that stay, in clear.
        drop: columns that are not released. Every column of the data is named once: here, above, or as one
            that is released.
        total: the largest level in nats that all releases together may have about the tuple of all letters.
        law: another data file or frame with the same columns, of whose rows the joint law of the letters is
            that which an adversary knows; None takes the data's own.
        ledger: the file of a ledger on the letters, or the tuples of letters, that are released: it must
            allow the release, which is recorded there and published together, or neither.
        who: the column with the numbers of its people, from 0; None where the rows are all, in order.
        drop_missing: leave out rows with a missing cell that is no input.
        seed: for tests alone.
        title: of the report.
        form: delimiter and encoding of CSV files, where they shall not be found.
        executor: what works on the files of a folder side by side, such as a pool of processes. Released
            again after an interruption, files that were finished stay as they are.

    Raises:
        InputError: a column is named by nothing, or twice, or is not there.
        MechanismError: a cell is no input of its mechanism, or there are too many outcomes to list.
        PrivacyError: the total would be exceeded, or that of the ledger.
        FileFormatError: a file cannot be read, or the folder is there already.

    Examples:
        >>> from pmlopt import Mechanism
        >>> people = {"ill": ["yes", "no", "no", "no"] * 5, "name": list("abcd") * 5}
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> draft = release(people, {"ill": response}, drop=["name"])
        >>> draft  # log 2
        <ReleaseDraft of ill: 0.693147 nats together>
    """
    draft = drafted(
        data, mechanisms, keep=keep, drop=drop, total=total, law=law, ledger=ledger, who=who,
        drop_missing=drop_missing, title=title, form=form,
    )  # fmt: skip
    if target is not None:
        write_release(draft, target, seed, executor)
    return draft


def write_release(
    draft: ReleaseDraft,
    target: str | os.PathLike[str],
    seed: int | None = None,
    executor: Executor | None = None,
) -> ReleaseFile:
    """Draw the release, and write its folder: whole, or not at all.

    Args:
        draft: of the release.
        target: a folder that is not there.
        seed: for tests alone; None draws from the operating system.
        executor: what works on the files of a folder side by side.

    Raises:
        PrivacyError: the joint level is above the total, or the ledger does not allow the release.
        FileFormatError: the folder is there, or cannot be written.
        InputError: the data were changed since the draft was made.
        MechanismError: a cell is no input of its mechanism.
    """
    planned = draft.described()
    if planned.exceeds:
        raise PrivacyError(
            f"the release {planned.beyond}, and the total is {draft.total:.6g}: lower an epsilon, or "
            "release or keep fewer columns"
        )
    with ExitStack() as stack:
        book = None if draft.ledger is None else stack.enter_context(Ledger.open(draft.ledger))
        folder = stack.enter_context(whole_folder(target, rename if book is None else book.publish))
        (folder / MECHANISMS).mkdir()
        for part, made in zip(planned.parts, draft.made, strict=True):
            made.save(folder / part.mechanism)
        with open_table(draft.data, draft.form) as table:
            delimiter = (table.form.delimiter if table.form else None) or ","
            draws = None if book is None else RecordedDraws(draft.releases, table, draft.who)
            known: dict[str, str] = {}
            how: dict[str, Any] = {"keep": draft.kept, "drop_missing": draft.drop_missing, "seed": seed}
            if isinstance(table, FolderTable):
                if draws is not None:
                    raise InputError("a ledger records the rows of one file: release the folder without it")
                released = RELEASED
                done, finished = apply_folder(
                    table, draft.releases, folder / released, executor=executor, beside=target, **how
                )
                known = {f"{released}/{name}": one.sha256 for name, one in finished.items()}
            else:
                released = f"{RELEASED}{_ending(draft.data)}"
                done = apply_columns(
                    table, draft.releases, folder / released,
                    released=None if draws is None else draws.add, **how,
                )  # fmt: skip
        if done.rows != draft.rows:
            raise InputError("the data were changed since their rows were counted: start again")
        described = draft.described(released, delimiter, done.dropped, seed)
        for name, page in zip(REPORTS, pages(described, draft.made), strict=True):
            files.write_whole(folder / name, page)
        described = replace(described, digests=digests_of(folder, known))
        described.write(folder)
        if draws is not None and book is not None:
            draws.record(book)
    return described


def _ending(data: Any) -> str:
    """Released rows keep the format of the data, and are CSV where they came from memory."""
    ending = Path(os.fspath(data)).suffix.lower() if isinstance(data, str | os.PathLike) else ""
    return ending if ending in (*PARQUET_ENDINGS, *ARROW_ENDINGS) else ".csv"
