"""Columns of a data file released into a folder that others can check."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core import files
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.tables.reading import open_table
from pmlopt.data.tables.streams import CsvForm
from pmlopt.data.tables.writing import ARROW_ENDINGS, PARQUET_ENDINGS
from pmlopt.errors import FileFormatError, InputError, PrivacyError
from pmlopt.programs.result import Result
from pmlopt.publishing.draft import Columns, Made, ReleaseDraft, drafted
from pmlopt.publishing.folder import FORMAT, Part, ReleaseFile, digests_of, whole_folder
from pmlopt.publishing.page import write_pages
from pmlopt.releases.applying import ColumnRelease, apply_columns
from pmlopt.verification.verifying import trusted_mechanism


def release(
    data: Any,
    mechanisms: Mapping[Columns, Made],
    target: str | os.PathLike[str] | None = None,
    *,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    total: float | None = None,
    law: Any = None,
    drop_missing: bool = False,
    seed: int | None = None,
    title: str = "",
    form: CsvForm | None = None,
) -> ReleaseDraft:
    """Release columns of a data file, each through its mechanism, in a folder that others can check.

    The folder has the released file, the mechanisms with their certificates, a report (`report.html`,
    `report.md`) and `release.json`, which says what all releases leak together, under the joint law of the
    letters, which is written there too. `check` decides all of it again.

    Args:
        data: a CSV, Parquet or Arrow file, or a data frame.
        mechanisms: by column, or by the tuple of columns whose tuples of values are the inputs: a mechanism,
            a `Result`, or a file of either. Each row is drawn by itself, exactly.
        target: the folder to make; None makes none: the draft says what the release would tell.
        keep: columns that stay, in clear.
        drop: columns that are not released. Every column of the data is named once: here, above, or as one
            that is released.
        total: the largest level in nats that all releases together may have about the tuple of all letters.
        law: another data file or frame with the same columns, of whose rows the joint law of the letters is
            that which an adversary knows; None takes the data's own.
        drop_missing: leave out rows with a missing cell that is no input.
        seed: for tests alone.
        title: of the report.
        form: delimiter and encoding of CSV files, where they shall not be found.

    Raises:
        InputError: a column is named by nothing, or twice, or is not there.
        MechanismError: a cell is no input of its mechanism, or there are too many outcomes to list.
        PrivacyError: the total would be exceeded.
        FileFormatError: a file cannot be read, or the folder is there already.

    Examples:
        >>> people = {"ill": ["yes", "no", "no", "no"] * 5, "name": list("abcd") * 5}
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> draft = release(people, {"ill": response}, drop=["name"])
        >>> round(float(np.exp(draft.levels.together)), 12), str(draft.tells[0][0])[:52]
        (2.0, 'If the output is yes, the letter is yes with probabi')
    """
    draft = drafted(
        data, mechanisms, keep=keep, drop=drop, total=total, law=law, drop_missing=drop_missing, title=title,
        form=form,
    )  # fmt: skip
    if target is not None:
        write_release(draft, target, seed)
    return draft


def write_release(
    draft: ReleaseDraft, target: str | os.PathLike[str], seed: int | None = None
) -> ReleaseFile:
    """Draw the release, and write its folder: whole, or not at all.

    Args:
        draft: of the release.
        target: a folder that is not there.
        seed: for tests alone; None draws from the operating system.

    Raises:
        PrivacyError: the joint level is above the total.
        FileFormatError: the folder is there, or cannot be written.
        InputError: the data were changed since the draft was made.
        MechanismError: a cell is no input of its mechanism.
    """
    if draft.exceeds:
        raise PrivacyError(
            f"the releases leak {draft.levels.together:.6g} nats together, and the total is "
            f"{draft.total:.6g}: lower an epsilon, or release fewer columns"
        )
    with whole_folder(target) as folder:
        (folder / "mechanisms").mkdir()
        names = [
            f"mechanisms/{name}{_ending_of(made)}"
            for name, made in zip(_file_names(draft.releases), draft.made, strict=True)
        ]
        for name, made, release in zip(names, draft.made, draft.releases, strict=True):
            _save(made, folder / name, release.mechanism)
        with open_table(draft.data, draft.form) as table:
            released = f"released{_ending(draft.data)}"
            done = apply_columns(
                table,
                draft.releases,
                folder / released,
                keep=draft.kept,
                drop_missing=draft.drop_missing,
                seed=seed,
            )
        if draft.same_people and done.rows != draft.people.sum():
            raise InputError("the data were changed since their rows were counted: start again")
        described = _described(draft, released, names, done.rows, done.dropped, seed)
        write_pages(draft, described, folder)
        described = replace(described, digests=digests_of(folder))
        described.write(folder)
    return described


def _described(
    draft: ReleaseDraft, released: str, names: Sequence[str], rows: int, left_out: int, seed: int | None
) -> ReleaseFile:
    from pmlopt import __version__

    places = np.argwhere(draft.people > 0)
    inputs = [release.mechanism.inputs for release in draft.releases]
    return ReleaseFile(
        format=FORMAT,
        title=draft.title,
        version=__version__,
        data=released,
        rows=rows,
        left_out=left_out,
        random="the operating system" if seed is None else "a seed, for tests only",
        parts=tuple(
            Part(release.columns, name, alone, with_all)
            for release, name, alone, with_all in zip(
                draft.releases, names, draft.levels.alone, draft.levels.each, strict=True
            )
        ),
        together=draft.levels.together,
        total=draft.total,
        kept=draft.kept,
        dropped=draft.dropped,
        in_clear=draft.in_clear,
        same_people=draft.same_people,
        letters=tuple(
            tuple(letters[place] for letters, place in zip(inputs, row, strict=True))
            for row in places.tolist()
        ),
        people=tuple(int(draft.people[tuple(row)]) for row in places),
        digests={},
    )


def _ending_of(made: Made) -> str:
    """A file keeps its format: what it holds beside the matrix is its proof."""
    return ".json" if isinstance(made, Mechanism | Result) else Path(made).suffix.lower()


def _save(made: Made, path: Path, mechanism: Mechanism) -> None:
    """Write a mechanism into the folder, with its certificate where it has one."""
    if isinstance(made, Mechanism | Result):
        made.save(path)
        return
    files.write_whole(path, files.read_bytes(made))
    if trusted_mechanism(path) != mechanism:
        raise FileFormatError(f"{made}: was changed while it was read: start again")


def _file_names(releases: Sequence[ColumnRelease]) -> list[str]:
    """A name for the file of each mechanism, which any system takes, and which differ."""
    found: list[str] = []
    for release in releases:
        plain = "".join(one if one.isalnum() or one in "-_" else "_" for one in "+".join(release.columns))
        name, number = plain[:60] or "column", 2
        while name.lower() in [other.lower() for other in found]:
            name, number = f"{plain[:60]}-{number}", number + 1
        found.append(name)
    return found


def _ending(data: Any) -> str:
    """Released rows keep the format of the data, and are CSV where they came from memory."""
    ending = Path(os.fspath(data)).suffix.lower() if isinstance(data, str | os.PathLike) else ""
    return ending if ending in (*PARQUET_ENDINGS, *ARROW_ENDINGS) else ".csv"
