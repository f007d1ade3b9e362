"""The resumable draft of a folder release, with a journal of finished files."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pmlopt.core.failures import report_os_errors
from pmlopt.core.files import disk
from pmlopt.core.files.disk import digest_file, is_real_folder, remove_path
from pmlopt.core.files.drafts import WHOLE, is_real_file, iterate_entries
from pmlopt.core.numbers.differences import MAX_EXACT_INTEGER
from pmlopt.core.records.fields import Range
from pmlopt.core.records.record import parse_json, read_record
from pmlopt.errors import FileFormatError, InputError
from pmlopt.releases.rows.drafts import (
    check_vacant,
    make_resumable_draft_path,
    resolve_target_folder,
)

_JOURNAL = "journal.jsonl"
"""In the draft: of which release it is, and then a line for each file that is finished."""


@dataclass(frozen=True)
class FinishedFile:
    """The summary of one released file.

    Attributes:
        rows: how many it has.
        dropped: how many rows of the data are not in it, for a missing cell.
        sha256: its digest.
        source: the digest of the file of data that it was made from.
    """

    rows: Annotated[int, Range(0, MAX_EXACT_INTEGER)]
    dropped: Annotated[int, Range(0, MAX_EXACT_INTEGER)]
    sha256: str
    source: str

    def to_published(self) -> dict[str, Any]:
        """Return the publishable part, without the input's digest."""
        return {"rows": self.rows, "dropped": self.dropped, "sha256": self.sha256}


Accepts: TypeAlias = Callable[[Path, Path, FinishedFile], bool]
"""Decides from a drawn file and its file of data whether a journal has the numbers that they give."""


@dataclass(frozen=True)
class _JournalLine:
    """A journal line: file, result, and keyed digest."""

    file: str
    rows: Annotated[int, Range(0, MAX_EXACT_INTEGER)]
    dropped: Annotated[int, Range(0, MAX_EXACT_INTEGER)]
    sha256: str
    source: str
    digest: str


class FolderDraft:
    """The draft of a folder release: finished files and files in progress.

    Workers of a process that was killed may go on. They write into the folder of that process only, which
    the next one removes.

    Attributes:
        whole: the folder of finished files.
        run: the folder where this process has files written.
        finished: what became of each finished file.

    Args:
        place: of the draft.
        identity: what distinguishes this release from others.
        sources: the files of data by their names in the folder.
        accepts: whether a drawn file and its numbers follow from its file of data.

    Raises:
        FileFormatError: the draft is of another release, or of another user.
    """

    def __init__(
        self,
        place: Path,
        identity: Mapping[str, str],
        sources: Mapping[str, Path],
        accepts: Accepts,
    ) -> None:
        self.place = place
        self.whole = place / WHOLE
        self._sources = sources
        self._accepts = accepts
        self.run = place / f"run-{secrets.token_hex(4)}"
        self._head = json.dumps(dict(identity)).encode()
        _check_owner(place)
        self.finished = self._resume() if is_real_file(place / _JOURNAL) else {}
        # what no journal lists may be cut short, or still be written by workers of a dead process
        for path in place.iterdir() if is_real_folder(place) else ():
            if not self.finished or path.name not in (WHOLE, _JOURNAL):
                remove_path(path)
        if not is_real_folder(place):
            remove_path(place)
            place.mkdir(mode=0o700)
        # an earlier process may have left other rights: rows that are drawn stay private
        place.chmod(0o700)
        self.whole.mkdir(exist_ok=True)
        for name in sources:
            for folder in (self.whole, self.run):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
        # written anew: after a kill the last line may lack its end, and the next would join it
        lines = [self._head, *(self._make_line(name, one) for name, one in self.finished.items())]
        disk.atomic_write(place / _JOURNAL, b"".join(line + b"\n" for line in lines), private=True)

    def keep_file(self, name: str, done: FinishedFile) -> None:
        """Move a file to the finished ones durably."""
        # the file first, then its line: a kill between them leaves a file that is drawn again
        disk.rename_durably(self.run / name, self.whole / name)
        self.finished[name] = done
        with (self.place / _JOURNAL).open("ab") as stream:
            stream.write(self._make_line(name, done) + b"\n")
            # fsync only would leave what Python still buffers
            stream.flush()
            os.fsync(stream.fileno())

    def _make_line(self, name: str, done: FinishedFile) -> bytes:
        """Build the signed journal line of a finished file."""
        told = {"file": name, **asdict(done)}
        return json.dumps({**told, "digest": self._sign(told)}).encode()

    def _sign(self, told: Mapping[str, Any]) -> str:
        """Compute the HMAC-SHA256 of a journal line."""
        return hmac.digest(self._head, json.dumps(dict(told)).encode(), "sha256").hex()

    def _resume(self) -> dict[str, FinishedFile]:
        """Load the finished files from the journal, and remove all others.

        A line that was cut short or changed counts as none: its file is drawn again, and no one has seen it.
        """
        head, _, lines = (self.place / _JOURNAL).read_bytes().partition(b"\n")
        # an empty first line is a journal that was cut short before it named a release
        if head not in (b"", self._head):
            raise FileFormatError(
                f"{self.place}: is left by an interrupted call with other data, mechanisms or options: "
                "repeat that call, or delete this folder"
            )
        listed = dict(
            entry for line in lines.split(b"\n") if (entry := self._parse_line(line)) is not None
        )
        # a link could point anywhere, and its files would be removed or taken for finished
        if not is_real_folder(self.whole):
            return {}
        for name in self._sources:  # which files are to have
            if is_real_folder(self.whole / name):
                remove_path(self.whole / name)
        for path in iterate_entries(self.whole):
            name = path.relative_to(self.whole).as_posix()
            if not (name in listed and self._is_finished(path, name, listed[name])):
                listed.pop(name, None)
                remove_path(path)
        return {name: done for name, done in listed.items() if is_real_file(self.whole / name)}

    def _parse_line(self, line: bytes) -> tuple[str, FinishedFile] | None:
        """Parse a journal line; None for an invalid one."""
        try:
            told = read_record(_JournalLine, parse_json(line, "the journal"), "the journal")
        except InputError:
            return None
        entry = {name: value for name, value in asdict(told).items() if name != "digest"}
        if told.file not in self._sources or not hmac.compare_digest(
            self._sign(entry).encode(), told.digest.encode("utf-8", "surrogatepass")
        ):
            return None
        return told.file, FinishedFile(told.rows, told.dropped, told.sha256, told.source)

    def _is_finished(self, path: Path, name: str, done: FinishedFile) -> bool:
        """Return whether a file is finished and its input unchanged.

        The key of the digests stands in the journal, so its numbers count only where the data give the same.
        """
        source = self._sources[name]
        return (
            is_real_file(path)
            and digest_file(path) == done.sha256
            and digest_file(source) == done.source
            and self._accepts(path, source, done)
        )


@contextmanager
def open_folder_draft(
    target: str | os.PathLike[str],
    beside: str | os.PathLike[str] | None,
    identity: Mapping[str, str],
    sources: Mapping[str, Path],
    accepts: Accepts,
) -> Iterator[FolderDraft]:
    """Open a folder draft exclusively; it is removed with the block.

    After an exception it stays where files are finished.

    Args:
        target: the folder to make.
        beside: the release that it is a part of, whose lock the caller holds, and next to which the draft is;
            None where it is the release itself.
        identity: what distinguishes this release from others.
        sources: the files of data by their names in the folder.
        accepts: whether a drawn file and its numbers follow from its file of data.

    Raises:
        FileFormatError: the target is there, or the draft is of another release.
    """
    named = resolve_target_folder(target if beside is None else beside)
    # the links are resolved first: two names of one folder must share a lock and a draft
    place = make_resumable_draft_path(named)
    with disk.exclusive_lock(named) if beside is None else nullcontext():
        if beside is None:
            check_vacant(named)
        with report_os_errors(target, "cannot be made"):
            draft = FolderDraft(place, identity, sources, accepts)
        try:
            yield draft
        except BaseException:
            remove_path(draft.run if draft.finished else place)
            raise
        remove_path(place)


def _check_owner(place: Path) -> None:
    """Raise an error for a draft that belongs to another user."""
    if hasattr(os, "geteuid") and os.path.lexists(place) and place.lstat().st_uid != os.geteuid():
        raise FileFormatError(
            f"{place}: is of another user: delete it, or release under another name"
        )
