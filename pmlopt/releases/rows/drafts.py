"""Drafts of releases: created under a lock on the target, with cleanup of abandoned ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pmlopt.core.failures import report_os_errors
from pmlopt.core.files.disk import remove_path
from pmlopt.core.files.drafts import DRAFT_PREFIX, EMPTY_OWNER_KEY, Draft, remove_leftover_drafts
from pmlopt.errors import FileFormatError


def resolve_target_folder(target: str | os.PathLike[str]) -> Path:
    """Resolve the symbolic links of a target's folder."""
    path = Path(target).absolute()
    return path.parent.resolve() / path.name


def make_resumable_draft_path(target: Path) -> Path:
    """Return the draft path of a folder that is released file by file and may be resumed."""
    return target.with_name(f"{DRAFT_PREFIX}{target.name}")


@contextmanager
def begin_draft(target: Path, owner: str = EMPTY_OWNER_KEY) -> Iterator[Draft]:
    """Create a draft of a target; it is removed on an exception.

    The caller holds the lock on the target, and that on the ledger where one records the release, in this
    order. So no one draws for a target that is there or is being made.

    Args:
        target: the path of the release.
        owner: the key of the ledger that records it.

    Raises:
        FileFormatError: something is there already, or the draft cannot be made.
    """
    # before the draft: what a dead process left is settled while the lock keeps others out
    check_vacant(target, owner)
    with report_os_errors(target, "cannot be made"):
        draft = Draft.create(target, owner)
        try:
            yield draft
        except BaseException:
            remove_path(draft.folder)
            raise


def check_vacant(target: Path, owner: str = EMPTY_OWNER_KEY) -> None:
    """Remove abandoned drafts of a target, and raise an error where no release can be made.

    The caller holds the lock on the target.

    Raises:
        FileFormatError: something is there already, or a release that another ledger may hold was interrupted
            before it was published there.
    """
    with report_os_errors(target, "cannot be made"):
        others = remove_leftover_drafts(target, owner)
        if os.path.lexists(target):
            remove_path(make_resumable_draft_path(target))
    check_new(target)
    if others:
        raise FileFormatError(
            f"{target}: a release with another ledger was interrupted before it had this name: repeat its "
            f"command, give another name, or delete {others[0]}"
        )


def check_new(target: Path) -> None:
    """Raise an error where the target file exists.

    Raises:
        FileFormatError: it is.
    """
    if os.path.lexists(target):
        raise FileFormatError(
            f"{target}: is there already, and may hold a release that is recorded: give another name"
        )
