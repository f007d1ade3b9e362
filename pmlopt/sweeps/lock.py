"""One writer at a time: a lock on a file of its own, beside what is written."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

from pmlopt.errors import FileFormatError, SweepError
from pmlopt.files import reason_of

HELD: set[Path] = set()
"""The locks that this process holds."""
TURN = threading.Lock()
"""Taken while `HELD` is looked at."""


class Lock:
    """A file that one process, and one thread of it, holds at a time, where the system has such locks.

    The system lets go of it when its process ends, however it does, and does not hand it on to the workers
    that outlive it. Threads of one process are told apart by `HELD`. The file is removed while it is held, so
    that whoever opened it before looks whether it is still the one of its name.

    Raises:
        SweepError: another one holds it.
        FileFormatError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = path.resolve()
        with TURN:
            if self._name in HELD:
                raise self._taken
            try:
                while not self._claimed():
                    pass
            except OSError as cause:
                raise FileFormatError(f"{path}: cannot be written: {reason_of(cause)}") from None
            HELD.add(self._name)

    def release(self) -> None:
        """Remove the file and give up the lock; a second call does nothing."""
        with TURN:
            if not self._stream.closed:
                with suppress(OSError):  # some systems keep a file that is open
                    self.path.unlink()
                self._stream.close()
                HELD.discard(self._name)

    @property
    def _taken(self) -> SweepError:
        return SweepError(f"{self.path}: another process is writing it: wait for it, or give another name")

    def _claimed(self) -> bool:
        """Open and lock the file; whether it is still the one of its name."""
        self._stream = self.path.open("ab")
        try:
            self._claim()
            return os.path.samestat(os.fstat(self._stream.fileno()), self.path.stat())
        except FileNotFoundError:
            self._stream.close()
            return False
        except BaseException:
            self._stream.close()
            raise

    def _claim(self) -> None:
        try:
            import fcntl
        except ImportError:
            return
        try:
            fcntl.lockf(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            if cause.errno in (errno.EACCES, errno.EAGAIN):
                raise self._taken from None
