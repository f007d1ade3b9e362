"""The folder of a release: its files, what `release.json` says, and a folder that is whole or absent."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from pmlopt.core import files
from pmlopt.core.arrays import Label
from pmlopt.core.records import ROOM, Context, Range, parse_json, plain, read
from pmlopt.core.whole_files import reason_of
from pmlopt.errors import FileFormatError

FORMAT = "pmlopt release 1"
MOST_PEOPLE = 2**53
"""Whole numbers up to here are floats, too."""
People: TypeAlias = Annotated[int, Range(1, MOST_PEOPLE)]
DESCRIPTION = "release.json"


@dataclass(frozen=True)
class Part:
    """One mechanism of a release.

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
class InClear:
    """What columns that stay in clear tell of the letters that are released.

    Attributes:
        columns: their names.
        values: how many they have, or combinations of values.
        alone: the level of these columns by themselves about the tuple of all letters, in nats.
        with_release: the same together with the release; None where it is too large to list.
    """

    columns: tuple[str, ...]
    values: int
    alone: float
    with_release: float | None


@dataclass(frozen=True)
class ReleaseFile:
    """What `release.json` says.

    Attributes:
        format: `FORMAT`.
        title: in the releaser's words.
        version: of pmlopt.
        data: the name of the released file.
        rows: how many it has.
        left_out: rows of the data that are not in it, for a missing cell.
        random: where the draws come from: the operating system, or a seed, which is for tests only.
        parts: the mechanisms.
        together: the level of all parts about the tuple of all letters, in nats.
        total: the largest that was allowed; None where nothing was said.
        kept, dropped: the columns that stay in clear, and those that are not released.
        in_clear: what the kept columns tell.
        same_people: whether the law is that of the released rows' own letters.
        letters: the tuples of letters, one for each part, that occur.
        people: how many people have each.
        digests: the SHA-256 of each other file of the folder by its name.
    """

    format: str
    title: str
    version: str
    data: str
    rows: People
    left_out: Annotated[int, Range(0, MOST_PEOPLE)]
    random: str
    parts: tuple[Part, ...]
    together: float
    total: float | None
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    in_clear: tuple[InClear, ...]
    same_people: bool
    letters: tuple[tuple[Label, ...], ...]
    people: tuple[People, ...]
    digests: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise FileFormatError(f"the format is {self.format!r}: this version of pmlopt reads {FORMAT!r}")
        if len(self.letters) != len(self.people) or not self.parts or not self.people:
            raise FileFormatError("there must be a part, and tuples of letters with a count for each")

    def write(self, folder: Path) -> None:
        """Write it into its folder."""
        files.write_whole(folder / DESCRIPTION, files.json_bytes(plain(self)))

    @classmethod
    def read(cls, folder: Path) -> ReleaseFile:
        """Read it from its folder, strictly.

        Raises:
            FileFormatError: it is not there, or not of the format.
        """
        path = folder / DESCRIPTION
        content = files.read_bytes(path)
        return read(cls, parse_json(content, str(path)), str(path), Context(room=max(ROOM, len(content))))


def digests_of(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a folder but its description, by its name."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / DESCRIPTION)
    return {path.relative_to(folder).as_posix(): _digest(path) for path in found}


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to fill, which appears under its name when the block ends, whole, and never before.

    It is filled beside its place, under a name that begins with `.pmlopt-`, and renamed when all its files
    are on the disk. An exception removes it; a process that is killed leaves it under that name.

    Raises:
        FileFormatError: something is there already, or the folder cannot be made.
    """
    target = Path(path).absolute()
    if target.exists() or target.is_symlink():
        raise FileFormatError(f"{path}: is there already: name a folder that is not")
    try:
        draft = Path(tempfile.mkdtemp(prefix=".pmlopt-", dir=target.parent))
    except OSError as cause:
        raise FileFormatError(f"{path}: cannot be made: {reason_of(cause)}") from None
    try:
        yield draft
        _on_disk(draft)
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o777 & ~mask)
        draft.rename(target)
        _sync(target.parent)
    except OSError as cause:
        shutil.rmtree(draft, ignore_errors=True)
        raise FileFormatError(f"{path}: cannot be made: {reason_of(cause)}") from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _on_disk(folder: Path) -> None:
    for inner, _, names in os.walk(folder):
        for name in names:
            _sync(Path(inner) / name)
        _sync(Path(inner))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
