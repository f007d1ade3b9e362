"""Drafts: private folders for unfinished files and folders, and their atomic renaming.

A draft of `wave.csv` is the folder `.pmlopt-draft-KEY-OWNER-TOKEN` next to it, readable by its owner only.
KEY is of the target's name, OWNER of the ledger that records it (or zeros), and TOKEN of the process. What is
made in it is under `part/` until it is complete, and `whole` from then on.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DRAFT_PREFIX = ".pmlopt-draft-"
"""How the names of drafts begin; what a ledger names otherwise is never moved."""

PART, WHOLE = "part", "whole"
"""In a draft: the folder of what is being made, and what is complete."""

DRAFT_KEY_DIGITS = 16
EMPTY_OWNER_KEY = "".zfill(DRAFT_KEY_DIGITS)
"""The owner of drafts that no ledger records."""

_AT_FDCWD, _RENAME_NOREPLACE = -100, 1
"""Constants of Linux, for `renameat2`."""


def compute_key(name: str | os.PathLike[str]) -> str:
    """Compute a short hash key of a name or path.

    Examples:
        >>> len(compute_key("wave.csv")), compute_key("wave.csv") == compute_key("wave2.csv")
        (16, False)
    """
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:DRAFT_KEY_DIGITS]


@dataclass(frozen=True)
class Draft:
    """The draft of one file or folder.

    Attributes:
        folder: of the draft.
        target: the name that its content gets.
    """

    folder: Path
    target: Path

    @classmethod
    def create(cls, target: Path, owner: str = EMPTY_OWNER_KEY) -> Draft:
        """Create a uniquely named empty draft of a target."""
        name = f"{DRAFT_PREFIX}{compute_key(target.name)}-{owner}-{secrets.token_hex(8)}"
        folder = target.parent / name
        # fails where the name exists, so that no other process can have prepared the folder
        folder.mkdir(mode=0o700)
        (folder / PART).mkdir()
        return cls(folder, target)

    @property
    def partial_path(self) -> Path:
        """Return the path for unfinished content, with the target's file name."""
        return self.folder / PART / self.target.name

    @property
    def complete_path(self) -> Path:
        """Return the path of the sealed content."""
        return self.folder / WHOLE

    def seal(self) -> None:
        """Mark the content as complete."""
        # one atomic step: after a kill the content is either incomplete or complete, never in doubt
        self.partial_path.rename(self.complete_path)
        sync_folder(self.folder)

    def publish(self) -> None:
        """Rename the sealed content to its target, and remove the draft.

        Raises:
            FileExistsError: something has that name already.
        """
        # the name first: a kill between the two steps leaves a draft, which is removed later
        publish_new(self.complete_path, self.target)
        remove_path(self.folder)


def remove_leftover_drafts(target: Path, owner: str = EMPTY_OWNER_KEY) -> list[Path]:
    """Remove abandoned drafts of a target, and return complete ones that belong to other ledgers.

    The caller holds the lock on the target, so no process that made a draft of it is at work. A draft that is
    complete and belongs to another ledger may be recorded there, and stays.
    """
    # the key is of the name only: drafts of other targets in the folder do not match
    kept = []
    for folder in target.parent.glob(f"{DRAFT_PREFIX}{compute_key(target.name)}-*"):
        if read_owner(folder) not in (EMPTY_OWNER_KEY, owner) and os.path.lexists(folder / WHOLE):
            kept.append(folder)
        else:
            remove_path(folder)
    return kept


def read_owner(draft: Path) -> str:
    """Return the key of the ledger to which a draft belongs."""
    return draft.name.removeprefix(DRAFT_PREFIX)[DRAFT_KEY_DIGITS + 1 :][:DRAFT_KEY_DIGITS]


def remove_path(path: Path) -> None:
    """Remove a file, link or folder tree, without following links."""
    with suppress(FileNotFoundError):
        if is_real_folder(path):
            shutil.rmtree(path)
        else:
            path.unlink()


def is_real_folder(path: Path) -> bool:
    """Return whether a path is a folder and no link."""
    try:
        # lstat: a link to a folder must not lead a removal out of the draft
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def is_real_file(path: Path) -> bool:
    """Return whether a path is a regular file and no link."""
    try:
        # lstat: of a link the target could be replaced after it was checked
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def iterate_entries(folder: Path) -> Iterator[Path]:
    """Yield all files and links below a folder, sorted, without following links."""
    # links to folders count as entries: they are listed, and never walked into
    for place, inside, names in os.walk(folder):
        # sorted in place: `os.iterate_entries` visits the subfolders in the order of this list
        inside.sort()
        linked = [name for name in inside if not is_real_folder(Path(place) / name)]
        yield from (Path(place) / name for name in sorted([*names, *linked]))


def digest_file(path: Path) -> str:
    """Compute the SHA-256 digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_content(path: Path) -> str | None:
    """Compute the SHA-256 digest of a file or folder tree; None without one.

    Raises:
        OSError: a file cannot be read.
    """
    if is_real_file(path):
        return digest_file(path)
    if not is_real_folder(path):
        return None
    return digest_names(
        (one.relative_to(path).as_posix(), digest_file(one) if is_real_file(one) else "no file")
        for one in iterate_entries(path)
    )


def digest_names(entries: Any) -> str:
    """Compute the SHA-256 digest of text pairs, independent of order."""
    # names that are no valid UTF-8 come as surrogates, which a strict encoding would reject
    return hashlib.sha256(repr(sorted(entries)).encode("utf-8", "surrogatepass")).hexdigest()


def sync_folder(folder: Path) -> None:
    """Flush a folder's directory entries to disk, where supported."""
    with suppress(OSError):  # some systems do not open folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def publish_new(source: Path, target: Path) -> None:
    """Rename a complete file or folder durably to a new name; raise an error if it exists.

    Raises:
        FileExistsError: something has it.
    """
    # folders have no hard links, so they need a rename that does not replace
    if is_real_folder(source):
        _rename_to_new(source, target)
    else:
        try:
            # a link fails where the name exists; a rename would replace a file that appeared meanwhile
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError:  # a kind of folder without links
            _rename_to_new(source, target)
        else:
            source.unlink()
    sync_folder(target.parent)


def _rename_to_new(source: Path, target: Path) -> None:
    """Rename without replacing, atomically where supported.

    Elsewhere in two steps. Between them no process writes the target that holds the lock on it (`alone`).
    """
    # a call through ctypes raises no audit event, as `os.rename` would
    sys.audit("os.rename", source, target, -1, -1)
    if (renameat2 := _renameat2()) is not None:
        names = os.fsencode(source), os.fsencode(target)
        if renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_NOREPLACE) == 0:
            return
        if ctypes.get_errno() == errno.EEXIST:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        # a kind of folder, or a kernel, that does not have it
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.rename(target)


@cache
def _renameat2() -> Any:
    """Return Linux's renameat2 system call; None elsewhere."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):
        return None
    function.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]
    return function
