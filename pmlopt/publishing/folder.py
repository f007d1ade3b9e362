"""The release folder: its files, and the description `release.json`."""

from __future__ import annotations

import hashlib
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np

from pmlopt.core.display import format_nats
from pmlopt.core.files import disk
from pmlopt.core.files.sealing import SEALED_BY
from pmlopt.core.numbers.arrays import IntArray, Labels, join_words, make_label_key
from pmlopt.core.numbers.counts import build_count_array
from pmlopt.core.numbers.differences import MAX_EXACT_INTEGER
from pmlopt.core.records.converters import to_plain
from pmlopt.core.records.fields import ADDED_LATER, MAX_UNLISTED_LETTERS, Context, Range
from pmlopt.core.records.record import parse_json, read_record
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError
from pmlopt.releases.accounts.attributes import AttributeLevels, attribute_levels, compute_marginal
from pmlopt.releases.accounts.joint import check_product_size

FORMAT = "pmlopt release 2"
People: TypeAlias = Annotated[int, Range(1, MAX_EXACT_INTEGER)]
DESCRIPTION = SEALED_BY
MECHANISMS = "mechanisms"

MAX_JSON_ENTRIES = 2_000_000
"""Entries of a matrix up to which its file is JSON, for people to read; beyond, it is NPZ, for speed."""
RELEASED = "released"
"""The folder of the released files, or, with an ending, the one file."""
REPORTS = ("report.html", "report.md")
SYSTEM = "the operating system"
"""Where draws come from that are no test."""
NOT_COVERED = (
    "Each row counts as one person: for somebody with several rows this is no limit. Nor is it one for a "
    "household or other linked people, whose rows together may reveal more."
)
"""What the levels of a release do not limit."""
HOUSEHOLDS_COVERED = (
    "Each row counts as one person: for somebody with several rows this is no limit. Of linked people only "
    "the members of a household of the data are counted, by the level about a member."
)
"""The same where households are counted."""
RANDOM_ORDER, IN_ORDER = "random", "that of the data"
"""The order of the released rows."""


@dataclass(frozen=True)
class ReleasedMechanism:
    """The description of one released mechanism.

    Attributes:
        columns: that it takes.
        mechanism: the name of its file in the folder.
        alone: its level about these columns, in nats.
        with_all: the level of all parts together about these columns.
    """

    columns: tuple[str, ...]
    mechanism: str
    alone: float
    with_all: float


@dataclass(frozen=True)
class ClearColumnLevels:
    """The leakage levels of clear columns about the released letters.

    Attributes:
        columns: their names.
        values: how many they have, or combinations of values.
        alone: the level of these columns on their own about the tuple of all letters, in nats.
        with_release: the same together with the release; None where it is too large to list.
    """

    columns: tuple[str, ...]
    values: int
    alone: float
    with_release: float | None

    def table_row(self, nats: Callable[[float], str]) -> tuple[str, str, str]:
        """Return the table row: number of values, and both levels."""
        beside = "too large to list" if self.with_release is None else nats(self.with_release)
        return str(self.values), nats(self.alone), beside


@dataclass(frozen=True)
class ReleaseFile:
    """The content of `release.json`.

    Attributes:
        format: `FORMAT`.
        title: in the releaser's words.
        version: of pmlopt.
        data: the name of the released file, or of the folder of the released files.
        delimiter: between its cells, where it is text.
        rows: how many it has.
        left_out: rows of the data that are not in it, for a missing cell.
        random: where the draws come from: the operating system, or a seed, which is for tests only.
        order: of the released rows: random, or that of the data.
        parts: the mechanisms.
        together: the level of all parts about the tuple of all letters, in nats.
        total: the largest that was allowed; None where nothing was stated.
        kept, dropped: the columns that stay in clear, and those that are not released.
        in_clear: what the kept columns reveal.
        same_people: whether the law is that of the released rows' own letters.
        step: the counts of people are rounded to multiples of it; 1 where they are exact.
        letters: the tuples of letters, one for each part, that occur.
        people: how many people have each, rounded.
        date: of the release, as YYYY-MM-DD; empty where none is stated.
        issuer: who answers for it, in the releaser's words.
        digests: the SHA-256 of each other file of the folder by its name.
        not_covered: what the levels do not limit; empty in older files.
        household_level: what the rows of a household together reveal about one member, in nats, rounded up;
            None where households are not counted.
        value_labels: of the values of released columns, where the data have codes, by column and code.
    """

    format: str
    title: str
    version: str
    data: str
    delimiter: str
    rows: People
    left_out: Annotated[int, Range(0, MAX_EXACT_INTEGER)]
    random: str
    order: Literal[RANDOM_ORDER, IN_ORDER]  # type: ignore[valid-type]
    parts: tuple[ReleasedMechanism, ...]
    together: float
    total: float | None
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    in_clear: tuple[ClearColumnLevels, ...]
    same_people: bool
    step: People
    letters: tuple[Labels, ...]
    people: tuple[People, ...]
    date: str
    issuer: str
    digests: Mapping[str, str]
    not_covered: Annotated[Literal["", NOT_COVERED, HOUSEHOLDS_COVERED], ADDED_LATER] = ""  # type: ignore[valid-type]
    household_level: Annotated[float | None, ADDED_LATER] = None
    value_labels: Annotated[Mapping[str, Mapping[str, str]], ADDED_LATER] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        # the format first: other checks of a newer one would give a misleading message
        if self.format != FORMAT:
            raise FileFormatError(
                f"the format is {self.format!r}: this version of pmlopt reads {FORMAT!r}"
            )
        if len(self.letters) != len(self.people) or not self.parts or not self.people:
            raise FileFormatError(
                "there must be a part, and tuples of letters with a count for each"
            )
        if (
            len(set(map(make_label_key, self.letters))) < len(self.letters)
            or sum(self.people) > MAX_EXACT_INTEGER
        ):
            raise FileFormatError(
                "a tuple of letters stands twice, or there are more than 2^53 people"
            )
        if any(len(letters) != len(self.parts) for letters in self.letters):
            raise FileFormatError("each tuple of letters must have a letter for each part")
        if any(count % self.step for count in self.people):
            raise FileFormatError(
                f"each number of people must be a multiple of the step, {self.step}"
            )
        if not all(part.columns for part in self.parts) or not all(
            one.columns for one in self.in_clear
        ):
            raise FileFormatError(
                "each part, and each statement on columns in clear, must name a column"
            )
        if not {name for one in self.in_clear for name in one.columns} <= set(self.kept):
            raise FileFormatError("a level is stated for a column in clear that is not kept")
        named = [*(name for part in self.parts for name in part.columns), *self.kept, *self.dropped]
        if len(set(named)) < len(named):
            raise FileFormatError("a column is named twice as released, kept or dropped")

    @property
    def level_with_clear_columns(self) -> float | None:
        """Return the joint level about all letters, clear columns included; None if unknown."""
        every = [one.with_release for one in self.in_clear if set(one.columns) == set(self.kept)]
        return self.together if not self.kept else every[0] if every else None

    @property
    def comparison_text(self) -> str:
        """Return text on the level that is compared with the total."""
        if self.level_with_clear_columns is None:
            return "reveals more than can be listed with the columns in clear"
        household = ""
        if self.household_level is not None:
            household = f", and {self.household_level:.6g} nats about a member of a household"
        return (
            f"reveals {self.level_with_clear_columns:.6g} "
            f"nats{' with what stays in clear' if self.kept else ''}{household}"
        )

    @property
    def exceeds_total(self) -> bool:
        """Return whether the joint level exceeds, or may exceed, the total."""
        return self.total is not None and (
            self.level_with_clear_columns is None
            or max(self.level_with_clear_columns, self.household_level or 0.0) > self.total
        )

    def count_people(self, mechanisms: Sequence[Mechanism]) -> IntArray:
        """Return the number of people by letter tuple, one axis per mechanism.

        Raises:
            FileFormatError: letters are none of a mechanism.
            MechanismError: there are too many tuples to list.
        """
        # the numbers come from a file: the size is checked before an array is made
        check_product_size(math.prod(len(one.inputs) for one in mechanisms))
        sides = [one.inputs for one in mechanisms]
        counted = zip(self.letters, self.people, strict=True)
        return build_count_array(counted, sides, "the letters of the release", FileFormatError)

    @property
    def compute_seal(self) -> str:
        """Compute the SHA-256 seal of the description, without report digests."""
        # reports show the seal, so that it cannot depend on their digests
        digests = {name: digest for name, digest in self.digests.items() if name not in REPORTS}
        # sorted: the seal must not depend on the order in which files were written
        content = to_plain(replace(self, digests=dict(sorted(digests.items()))))
        return hashlib.sha256(disk.encode_json_bytes(content)).hexdigest()

    def write(self, folder: Path) -> None:
        """Write `release.json` to a folder."""
        disk.atomic_write(folder / DESCRIPTION, disk.encode_json_bytes(to_plain(self)))

    @classmethod
    def read(cls, folder: Path) -> ReleaseFile:
        """Read `release.json` from a folder, strictly.

        Raises:
            FileFormatError: it is not there, or not of the format.
        """
        path = folder / DESCRIPTION
        content = disk.read_bytes(path)
        data = parse_json(content, str(path))
        return read_record(
            cls, data, str(path), Context(room=max(MAX_UNLISTED_LETTERS, len(content)))
        )


def restrict_to_occurring(
    people: IntArray, place: int, mechanism: Mechanism
) -> tuple[Prior, Mechanism]:
    """Restrict law and mechanism to letters that occur."""
    counts = compute_marginal(people, place)
    # a prior has no letters of probability 0, and no outcome can leak of them
    rows = np.flatnonzero(counts)
    labels = [mechanism.inputs[row] for row in rows]
    prior = Prior.from_counts(counts[rows].tolist(), labels)
    # where all letters occur, the matrix stays as it is: a copy of a large one takes a second
    matrix = mechanism.matrix if len(rows) == len(counts) else mechanism.matrix[rows]
    return prior, Mechanism(matrix, labels, mechanism.outputs)


def find_mechanism_file(folder: Path, name: str) -> Path:
    """Find the file of a mechanism inside the folder of a release.

    Raises:
        FileFormatError: it is missing, or the name leads out of the folder.
    """
    path = find_own_file(folder, name)
    if path is None:
        raise FileFormatError(f"{folder}: the mechanism {name!r:.80} is missing")
    return path


def find_own_file(folder: Path, name: str) -> Path | None:
    """Find a file directly inside the folder; None without one.

    Raises:
        FileFormatError: the name leads out of the folder, or to something that is no file.
    """
    try:
        path = folder / name
        if (
            path.parent.resolve().is_relative_to(folder)
            and ".." not in path.parts
            and not os.path.lexists(path)
        ):
            return None
    except (OSError, ValueError, RuntimeError):
        pass  # reported below
    return find_regular_file(folder, name)


def find_regular_file(folder: Path, name: str) -> Path:
    """Return a regular file directly inside the folder; raise an error without one.

    Raises:
        FileFormatError: it is outside, or no file.
    """
    try:
        path = folder / name
        inside = path.resolve().is_relative_to(folder) and stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        raise FileFormatError(f"{folder}: has no file of its own named {name!r:.80}")
    return path


def find_release_of(path: Path) -> Path | None:
    """Return the folder of the release that a file is in, or that of its folder; None without one."""
    for place in (path.parent, path.parent.parent):
        if (place / DESCRIPTION).is_file():
            return place
    return None


def choose_mechanism_files(
    columns: Sequence[Sequence[str]], mechanisms: Sequence[Mechanism]
) -> list[str]:
    """Choose distinct, portable file names for mechanisms."""
    found: list[str] = []
    for names, mechanism in zip(columns, mechanisms, strict=True):
        plain = "".join(one if one.isalnum() or one in "-_" else "_" for one in "+".join(names))
        ending = ".json" if mechanism.matrix.size <= MAX_JSON_ENTRIES else ".npz"
        path, number = f"{MECHANISMS}/{plain[:60] or 'column'}{ending}", 2
        while path.lower() in [other.lower() for other in found]:
            path = f"{MECHANISMS}/{plain[:60]}-{number}{ending}"
            number = number + 1
        found.append(path)
    return found


def compute_joint_levels(people: IntArray, mechanisms: Sequence[Mechanism]) -> AttributeLevels:
    """Compute the joint and single levels of mechanisms under the population's letter tuples."""
    # rows of letters that do not occur would only make the joint mechanism larger
    parts = [restrict_to_occurring(people, place, one) for place, one in enumerate(mechanisms)]
    rows = [np.flatnonzero(compute_marginal(people, place)) for place in range(len(parts))]
    return attribute_levels(people[np.ix_(*rows)], [one for _, one in parts])


def digest_folder(folder: Path, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Compute the digests of all files in a folder but its description.

    Args:
        folder: with its files.
        known: digests of files that were computed when they were written, by their names.
    """
    digests = known or {}
    # links count as entries: one to a folder would otherwise be followed, or missed
    found = sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    names = {
        path.relative_to(folder).as_posix(): path for path in found if path != folder / DESCRIPTION
    }
    return {
        name: digests.get(name)
        or (disk.digest_file(path) if stat.S_ISREG(path.lstat().st_mode) else "no file")
        for name, path in names.items()
    }


def can_fit_total(planned: ReleaseFile) -> bool:
    """Return whether a smaller epsilon may keep the total: what stays in clear does not use it up."""
    whole = _find_whole(planned)
    return not planned.kept or (whole is not None and whole.alone <= (planned.total or 0.0))


def explain_exceeded_total(planned: ReleaseFile, fits: float | None) -> Iterator[str]:
    """Yield what each column in clear adds, and which epsilon fits the total.

    Args:
        planned: the release, which exceeds its total.
        fits: the largest epsilon that fits; None where none was found.
    """
    single = [one for one in planned.in_clear if len(one.columns) == 1]
    if single:
        each = join_words((_describe_column(one, planned.together) for one in single), 9)
        yield (
            f"What is released leaks {format_nats(planned.together)}. With one column in clear: {each}. "
            "Columns depend on each other, so what they add does not sum up."
        )
    whole = _find_whole(planned)
    if not can_fit_total(planned) and whole is not None:
        yield (
            f"No epsilon fits: {join_words(planned.kept, 9)} in clear alone "
            f"reveal{'s' * (len(planned.kept) == 1)} {format_nats(whole.alone)}. Keep fewer columns, or "
            "coarser values."
        )
    elif fits is not None:
        yield f"The largest epsilon that fits is {fits:g}: give --epsilon {fits:g}."
    elif planned.kept and planned.together >= (planned.total or 0.0) * (1 - 1e-9):
        yield (
            "The released columns use up the whole total, and nothing is left for what stays in clear: keep "
            "no column, or give an epsilon below the total."
        )
    else:
        yield "Lower an epsilon, or release or keep fewer columns."


def _find_whole(planned: ReleaseFile) -> ClearColumnLevels | None:
    """Return the levels of all columns in clear together; None where they are not stated."""
    whole = (one for one in planned.in_clear if set(one.columns) == set(planned.kept))
    return next(whole, None)


def _describe_column(one: ClearColumnLevels, without: float) -> str:
    """Return the level with a column in clear, and what that adds."""
    (name,) = one.columns
    if one.with_release is None:
        return f"{name} more than can be listed"
    return (
        f"{name} {format_nats(one.with_release)} (adds {max(one.with_release - without, 0.0):.3g})"
    )
