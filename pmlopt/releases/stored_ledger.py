"""The file of a ledger: read, recorded in by one writer at a time, and published with what was recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from pmlopt.core import files
from pmlopt.errors import FileFormatError
from pmlopt.releases import ledger_file
from pmlopt.releases.ledger_file import LedgerState


class StoredLedger:
    """What a ledger does with files.

    Attributes:
        finished: the files that `open` published, of a release that was interrupted before it could.
    """

    finished: tuple[str, ...] = ()

    def __init__(self, state: LedgerState) -> None:
        self._state = state
        self._seen: dict[Path, str | None] = {}

    def publish(self, draft: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        """Give a file or folder with what was recorded its name when the ledger is saved: both, or neither.

        The ledger is written first, with the release and both names, and then the draft is renamed. A process
        that is killed before the ledger is on the disk has published and recorded nothing; after that the
        release counts, and `open` and `save` rename the draft where it has not been renamed yet.

        Args:
            draft: a file or folder that nobody else has seen; it must be on the disk (`os.fsync`).
            target: its name once it is published, in the same folder, where nothing is yet.

        Raises:
            FileFormatError: the draft is not there, the target is, or their folders differ.
        """
        source, name = Path(draft).resolve(), Path(target).resolve()
        if source.parent != name.parent or not source.exists():
            raise FileFormatError(f"{draft}: is not in the folder of {target}: nothing can be published")
        check_new(name)
        pair = (str(source), str(name))
        self._state = replace(self._state, publishing=(*self._state.publishing, pair))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to an NPZ file, whole or not at all, with a digest of all that it holds.

        It is written over nothing but the file that this ledger was read from, or was written to before; two
        processes that each read, record and save a file are served by `open`.

        Raises:
            FileFormatError: the file cannot be written, its ending is not .npz, it is not the one that was
                read, or what was to be published is not there.
        """
        files.ending_of(path, (".npz",))
        with files.alone(path):
            self._write(path)

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str]) -> Iterator[Self]:
        """Read a ledger, and write it when the block ends; nobody else who asks writes it meanwhile.

        An exception leaves the file as it was. Another writer is waited for, up to a minute.

        Raises:
            FileFormatError: as `load` and `save`, or another process keeps writing the file.

        Examples:
            >>> import tempfile
            >>> from pmlopt import Ledger
            >>> path = Path(tempfile.mkdtemp()) / "ledger.npz"
            >>> Ledger([0.5, 0.5]).save(path)
            >>> with Ledger.open(path) as ledger:
            ...     ledger.record([[0.75, 0.25], [0.25, 0.75]], [0])
            >>> Ledger.load(path).releases
            1
        """
        files.ending_of(path, (".npz",))
        with files.alone(path):
            ledger = cls.load(path)
            if ledger._state.publishing:
                ledger.finished = tuple(target for _, target in ledger._state.publishing)
                ledger._write(path)
            before = ledger._state
            yield ledger
            if ledger._state is not before:
                ledger._write(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a ledger, and refuse a file that was cut short or changed.

        The digest finds what went wrong by accident, and no forgery: whoever changes a file on purpose may
        write a new digest.

        Raises:
            FileFormatError: the file is not there, no ledger, cut short or changed.
        """
        state, digest = ledger_file.read(path)
        ledger = cls.__new__(cls)
        ledger._state, ledger._seen = state, {Path(path).resolve(): digest}
        return ledger

    def _write(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger, and then publish what is to be: its names are in the file until that is done."""
        place = Path(path).resolve()
        if ledger_file.digest_of(place) != self._seen.get(place):
            raise FileFormatError(
                f"{path}: is not what this ledger was read from: another release may be recorded in it; read "
                "it again and record in that (`Ledger.open` does both), or give another name"
            )
        self._seen[place] = ledger_file.write(place, self._state)
        if self._state.publishing:
            for draft, target in self._state.publishing:
                _published(path, Path(draft), Path(target))
            self._state = replace(self._state, publishing=())
            self._seen[place] = ledger_file.write(place, self._state)


def check_new(target: Path) -> None:
    """Complain of a file to publish a release in that is there already.

    Raises:
        FileFormatError: it is.
    """
    if target.exists():
        raise FileFormatError(
            f"{target}: is there already, and may hold a release that is recorded: give another name"
        )


def _published(path: str | os.PathLike[str], draft: Path, target: Path) -> None:
    """Give the draft its name, unless it has it."""
    try:
        files.rename(draft, target)
    except FileNotFoundError:
        if not target.exists():
            raise FileFormatError(
                f"{path}: the last release is recorded, and was to be published as {target}, but neither "
                f"that file is there nor its draft, {draft}: put back the one that was moved away"
            ) from None
    except OSError as cause:
        raise FileFormatError(f"{target}: cannot be written: {files.reason_of(cause)}") from None
