"""Estimation from a release folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core import files
from pmlopt.core.arrays import Label, join_words
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import FileFormatError, InputError
from pmlopt.publishing.checking import (
    count_outcomes,
    find_own_file,
    find_released_data,
    load_listed_matrix,
)
from pmlopt.publishing.folder import DESCRIPTION, ReleaseFile, find_release_of
from pmlopt.publishing.page import describe_rounding
from pmlopt.releases import compose_attributes
from pmlopt.releases.batches import ColumnRelease
from pmlopt.releases.estimation import Estimate, estimate
from pmlopt.tables.counting import count_tuples
from pmlopt.tables.reading import find_column, list_data_files, open_table
from pmlopt.tables.streams import CsvFormat


def read_outcomes(
    folder: str | os.PathLike[str], columns: Sequence[str] = (), group_by: Sequence[str] = ()
) -> tuple[list[Mechanism], dict[tuple[Label, ...], int]]:
    """Read the mechanisms and outcome counts of a release folder.

    Args:
        folder: that `release` made.
        columns: of the parts that are read; all parts where none is named.
        group_by: columns in clear whose values are counted too, through a mechanism that keeps them.

    Raises:
        FileFormatError: it is no such folder, or a file that is read was changed since it was released.
        InputError: a column is not released, or not in clear.
    """
    place = Path(folder).resolve()
    described = ReleaseFile.read(place)
    known = {name for part in described.parts for name in part.columns}
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise InputError(
            f"{folder}: {join_words(unknown)} is not released: name one of {join_words(sorted(known), 9)}"
        )
    hidden = [name for name in group_by if name not in described.kept]
    if hidden:
        raise InputError(
            f"{folder}: {join_words(hidden)} is not in clear: columns in clear are "
            f"{join_words(described.kept, 9)}"
        )
    parts = [part for part in described.parts if not columns or set(part.columns) & set(columns)]
    data = find_released_data(place, described)
    if data is None:
        raise FileFormatError(f"{folder}: the released data {described.data!r:.80} are missing")
    releases = []
    for part in parts:
        path = find_own_file(place, part.mechanism)
        if path is None:
            raise FileFormatError(f"{folder}: the mechanism {part.mechanism!r:.80} is missing")
        _check_digest(path, part.mechanism, described)
        releases.append(ColumnRelease(load_listed_matrix(path, part.mechanism), part.columns))
    _check_data(place, data, described)
    form = CsvFormat(described.delimiter, "utf-8")
    for name in group_by:
        with open_table(data, form) as table:
            values = tuple(value for (value,) in count_tuples(table, [name], "letter"))
        releases.append(ColumnRelease(keep_values(name, values), (name,)))
    with open_table(data, form) as table:
        names = [name for one in releases for name, _ in one.output_columns]
        places = [find_column(table.names, name, table.where) for name in names]
        observed, _ = count_outcomes(table, places, releases)
    return [one.mechanism for one in releases], observed


def keep_values(name: str, values: tuple[Label, ...]) -> Mechanism:
    """Build the mechanism of a column in clear, by which a table is estimated: the identity.

    Raises:
        InputError: it has too many values for a table.

    Examples:
        >>> keep_values("town", ("east", "west")).matrix.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    if len(values) > 1_000:
        raise InputError(
            f"the column {name!r} has {len(values)} values: a table by them has too many cells"
        )
    return Mechanism(np.eye(len(values)), values, values)


def explain_stated_counts(folder: str | os.PathLike[str]) -> str:
    """Return a sentence on counts in a release folder of the people who are estimated; empty without any."""
    described = ReleaseFile.read(Path(folder).resolve())
    if not described.same_people:
        return ""
    table = "a table with a column in clear"
    if described.kept:
        table = f"a table by {described.kept[0]} (--group-by {shlex.quote(described.kept[0])})"
    return (
        f"{Path(folder) / DESCRIPTION} states the counts of these people too, "
        f"{describe_rounding(described.step)}. An estimate is for what "
        f"it does not state: a part of the rows, {table}, or other people's shares."
    )


def explain_missing_outputs(file: Path) -> str:
    """Return the message where a file is to be estimated from, and no outputs are given for it."""
    if (folder := find_release_of(file)) is not None:
        return (
            f"{file}: is a file of a release: give the folder of it, "
            f"pmlopt estimate {shlex.quote(str(folder))}"
        )
    return (
        f"{file}: give the folder of a release, as in pmlopt estimate out, or a mechanism and its outputs by "
        "--counts FILE, or by --data FILE with --column NAME"
    )


def estimate_release(
    folder: str | os.PathLike[str],
    columns: Sequence[str] = (),
    group_by: Sequence[str] = (),
    **options: Any,
) -> Estimate:
    """Estimate input frequencies from a release folder.

    Of several columns, and with columns in clear, it is their cross table, whose letters are tuples.

    Args:
        folder: that `release` made.
        columns: of the parts that are estimated; all parts where none is named.
        group_by: columns in clear, by whose values the table is.
        **options: as for `pmlopt.estimate`, such as method and confidence.

    Raises:
        FileFormatError: it is no such folder, or a file that is read was changed since it was released.
        InputError: a column is not released.
        MechanismError: frequencies cannot be estimated from what was released; the message states which can.

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt.publishing import release
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> place = tempfile.TemporaryDirectory()
        >>> out = pathlib.Path(place.name) / "out"
        >>> _ = release({"ill": ["yes", "no", "no", "no"] * 50}, {"ill": response}, out, seed=1)
        >>> estimate_release(out).letters
        ('no', 'yes')
        >>> place.cleanup()
    """
    mechanisms, observed = read_outcomes(folder, columns, group_by)
    if len(mechanisms) > 1:
        return estimate(compose_attributes(mechanisms), counts=observed, **options)
    return estimate(
        mechanisms[0], counts={key[0]: number for key, number in observed.items()}, **options
    )


def _check_data(place: Path, data: Path, described: ReleaseFile) -> None:
    """Raise an error where released files have changed since the release."""
    found = [data] if data.is_file() else list_data_files(data)[1]
    names = [path.relative_to(place).as_posix() for path in found]
    for path, name in zip(found, names, strict=True):
        _check_digest(path, name, described)
    inside = f"{described.data}/"
    missing = sorted({name for name in described.digests if name.startswith(inside)} - set(names))
    if missing:
        raise FileFormatError(
            f"{place}: the released file {missing[0]!r:.80} is missing: see pmlopt check"
        )


def _check_digest(path: Path, name: str, described: ReleaseFile) -> None:
    """Raise an error where a file's digest differs from the stated one."""
    if files.digest_file(path) != described.digests.get(name):
        raise FileFormatError(f"{path}: was changed since it was released: see pmlopt check")
