"""Drafts: private folders for unfinished files and folders, and their atomic renaming.

A draft of `wave.csv` is the folder `.pmlopt-draft-KEY-OWNER-TOKEN` next to it, readable by its owner only.
KEY is of the target's name, OWNER of the ledger that records it (or zeros), and TOKEN of the process. What is
made in it is under `part/` until it is complete, and `whole` from then on.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmlopt.core.files.disk import (
    DRAFT_KEY_DIGITS,
    compute_key,
    digest_file,
    is_real_folder,
    publish_new,
    remove_path,
    sync_folder,
)
from pmlopt.core.lazy_imports import hashlib

DRAFT_PREFIX = ".pmlopt-draft-"
"""How the names of drafts begin; what a ledger names otherwise is never moved."""

PART, WHOLE = "part", "whole"
"""In a draft: the folder of what is being made, and what is complete."""

EMPTY_OWNER_KEY = "".zfill(DRAFT_KEY_DIGITS)
"""The owner of drafts that no ledger records."""

_OWNED_NAME = re.compile(
    rf"{re.escape(DRAFT_PREFIX)}[0-9a-f]{{{DRAFT_KEY_DIGITS}}}-([0-9a-f]{{{DRAFT_KEY_DIGITS}}})-[0-9a-f]+"
)


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
        name = f"{DRAFT_PREFIX}{compute_key(target.name)}-{owner}-{os.urandom(8).hex()}"
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


def find_owner(name: str) -> str | None:
    """Find the key of the ledger that a draft's name states; None where it states no owner.

    Examples:
        >>> draft = f"{DRAFT_PREFIX}{'1' * DRAFT_KEY_DIGITS}-{'a' * DRAFT_KEY_DIGITS}-0123456789abcdef"
        >>> find_owner(draft) == "a" * DRAFT_KEY_DIGITS, find_owner(".pmlopt-draft-wave.csv")
        (True, None)
    """
    found = _OWNED_NAME.fullmatch(name)
    return None if found is None else found[1]


def has_content(folder: Path) -> bool:
    """Return whether a folder has a file or a link, at any depth."""
    return not is_real_folder(folder) or next(iterate_entries(folder), None) is not None


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
