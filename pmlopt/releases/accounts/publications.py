"""Publications: ledger-recorded releases that are renamed to their target after the ledger is saved.

A ledger names drafts and targets by base names only. They are looked for in the folder of the ledger and in
that of the release which the caller names, and nowhere else: anyone who writes a ledger file moves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from pmlopt.core.files import disk, drafts
from pmlopt.core.files.disk import describe_os_error
from pmlopt.errors import FileFormatError
from pmlopt.releases.rows.drafts import check_new

PREFIX = ".pmlopt-"
"""How the names begin of all that is not published yet."""


@dataclass(frozen=True)
class PendingPublication:
    """A recorded release whose draft is still to be renamed to its target.

    Attributes:
        draft: the base name of its draft; behind a draft folder of pmlopt's, `/whole`.
        target: the base name that it gets.
        folder: a key of the folder where both are, with which folders are compared.
        digest: of the content.

    Raises:
        ValueError: the draft is none of pmlopt's, or a name leaves its folder.
    """

    draft: str
    target: str
    folder: str
    digest: str

    def __post_init__(self) -> None:
        outer, _, inner = self.draft.partition("/")
        if not outer.startswith(PREFIX) or inner not in ("", drafts.WHOLE):
            raise ValueError(f"it is to publish {self.draft!r:.80}, which is no draft of pmlopt's")
        for name in (outer, self.target):
            if not _is_base_name(name):
                raise ValueError(f"it is to publish {name!r:.80}, which is no name within a folder")

    @classmethod
    def describe(cls, source: Path, target: Path) -> PendingPublication:
        """Build the record from a draft and its target in one folder.

        Raises:
            ValueError: the draft is none of pmlopt's, or not there.
        """
        digest = drafts.digest_content(source)
        if digest is None:
            raise ValueError("it is no file or folder")
        draft = source.relative_to(target.parent).as_posix()
        return cls(draft, target.name, compute_folder_key(target.parent), digest)

    @classmethod
    def from_entry(cls, entry: Any) -> PendingPublication:
        """Read the record from a ledger entry.

        Raises:
            ValueError: it is none, or names what is no draft.
        """
        keys = {"draft", "target", "folder", "digest"}
        is_record = isinstance(entry, dict) and set(entry) == keys
        if not is_record or not all(isinstance(value, str) for value in entry.values()):
            raise ValueError(f"what is to be published is {entry!r:.80}, which names no draft")
        return cls(**entry)

    def finish(self, folder: Path, owner: str) -> bool:
        """Rename the draft to its target if needed; return whether the target is now in place.

        Nothing is renamed or removed but a draft with the recorded content that no other ledger owns.

        Args:
            folder: where both are looked for.
            owner: the key of the ledger that has this entry.

        Raises:
            FileFormatError: this is the folder of the release, and neither draft nor target is there as it
                was recorded, or another file has the name.
        """
        source = folder / self.draft
        target = folder / self.target
        try:
            if self._is_content(target):  # it was interrupted after that
                self._remove_rest(folder, owner)
                return True
            if (
                self._is_own(owner)
                and self._is_content(source)
                and not self._outer(folder).is_symlink()
            ):
                disk.publish_new(source, target)
                self._remove_rest(folder, owner)
                return True
        except FileExistsError:
            raise FileFormatError(
                f"{target}: is there already, and is not the release that the ledger holds, whose draft is "
                f"{source}: move that file away, and repeat this"
            ) from None
        except OSError as cause:
            raise FileFormatError(
                f"{target}: cannot be written: {describe_os_error(cause)}"
            ) from None
        if self.folder != compute_folder_key(folder):
            return False
        raise FileFormatError(
            f"the last release is recorded, and was to be published as {target}, but neither that file is "
            f"there as it was recorded nor a draft of this ledger, {source}: put back the one that was moved "
            "or changed"
        )

    def _outer(self, folder: Path) -> Path:
        """Return the path of the draft, or of the folder around it."""
        return folder / PurePosixPath(self.draft).parts[0]

    def _is_own(self, owner: str) -> bool:
        """Return whether the draft may be one of the ledger with a key.

        A draft that names its owner is that ledger's alone. One that names none counts by its content.
        """
        return drafts.find_owner(PurePosixPath(self.draft).parts[0]) in (None, owner)

    def _remove_rest(self, folder: Path, owner: str) -> None:
        """Remove what is left of the draft of a published release, where it is this ledger's."""
        source = folder / self.draft
        outer = self._outer(folder)
        if not self._is_own(owner) or outer.is_symlink():
            return
        if os.path.lexists(source):
            if self._is_content(source):
                disk.remove_path(source)
            else:
                return  # it was made since, and holds another release
        if outer != source and (
            drafts.find_owner(outer.name) == owner or not drafts.has_content(outer)
        ):
            disk.remove_path(outer)

    def _is_content(self, path: Path) -> bool:
        """Return whether a path has the recorded content."""
        return drafts.digest_content(path) == self.digest


def describe_draft(
    draft: str | os.PathLike[str], target: str | os.PathLike[str]
) -> tuple[PendingPublication, Path]:
    """Build the record of a draft to publish, with its folder.

    Raises:
        FileFormatError: see `Ledger.publish`.
    """
    name = Path(target).parent.resolve() / Path(target).name
    source = Path(draft).parent.resolve() / Path(draft).name
    if name.parent not in (source.parent, source.parent.parent):
        raise FileFormatError(
            f"{draft}: is not in the folder of {target}: nothing can be published"
        )
    if not os.path.lexists(source):
        raise FileFormatError(f"{draft}: is not there: nothing can be published")
    check_new(name)
    try:
        publication = PendingPublication.describe(source, name)
    except (ValueError, OSError) as cause:
        raise FileFormatError(
            f"{draft}: cannot be published: {cause}; its name must begin with {PREFIX}"
        ) from None
    return publication, name.parent


def finish_all(
    publications: Iterable[PendingPublication], folders: Iterable[Path], owner: str
) -> tuple[list[Path], tuple[PendingPublication, ...]]:
    """Finish all publications found in some folders; return published targets and those not found.

    Args:
        publications: of a ledger.
        folders: where they are looked for.
        owner: the key of the ledger.

    Raises:
        FileFormatError: see `PendingPublication.finish`.
    """
    published = []
    left = []
    places = list(dict.fromkeys(folders))
    for one in publications:
        found = next((folder for folder in places if one.finish(folder, owner)), None)
        if found is None:
            left.append(one)
        else:
            published.append(found / one.target)
    return published, tuple(left)


def compute_folder_key(folder: str | os.PathLike[str]) -> str:
    """Compute an irreversible key by which a folder is recognized."""
    return disk.compute_key(Path(folder).resolve())


def compute_file_key(path: str | os.PathLike[str]) -> str:
    """Compute the key of a ledger file, which is part of its drafts' names."""
    return disk.compute_key(Path(path).resolve())


def _is_base_name(name: str) -> bool:
    """Return whether a text is a plain file name on every system."""
    plain = name not in ("", ".", "..") and "\0" not in name
    return plain and PurePosixPath(name).name == name == PureWindowsPath(name).name
