"""Files that are written whole or not at all, and the streams that stand in for a file."""

from __future__ import annotations

import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, BinaryIO

from pmlopt.errors import FileFormatError, InputError

STANDARD = "-"
"""The path that stands for standard input or output; a file of that name is `./-` in full."""

LOCK_WAIT = 60.0
"""Seconds that a writer waits for another one: more than a release on a million people takes."""

_PREFIX = ".pmlopt-"
"""Of the names that files have for the moment before they are whole."""

_OUTPUT: ContextVar[Any] = ContextVar("output", default=None)
"""Where bytes for standard output go while what is printed goes elsewhere."""


def is_standard(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for standard input or output."""
    return isinstance(path, str | os.PathLike) and os.fspath(path) == STANDARD


def standard_input() -> BinaryIO:
    """The bytes of standard input."""
    if sys.stdin is None:
        raise FileFormatError("-: standard input is closed")
    return sys.stdin.buffer


@contextmanager
def output_apart(text: IO[str]) -> Iterator[None]:
    """Send bytes for standard output to this stream, wherever what is printed goes meanwhile."""
    token = _OUTPUT.set(text)
    try:
        yield
    finally:
        _OUTPUT.reset(token)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise where a file cannot be written: a folder is there, its own is not, the name is too long."""
    if is_standard(path):
        return
    try:
        kind, folder = _kind_of(path), _kind_of(Path(path).parent)
    except (OSError, ValueError, TypeError) as cause:
        raise FileFormatError(f"{path}: cannot be written: {reason_of(cause)}") from None
    if kind is not None and stat.S_ISDIR(kind):
        raise FileFormatError(f"{path}: cannot be written: it is a folder")
    if folder is None or not stat.S_ISDIR(folder):
        raise FileFormatError(f"{path}: cannot be written: its folder, {Path(path).parent}, is not there")


def is_same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file, by links of any kind, or would once it is there."""
    if is_standard(one) or is_standard(other):
        return False  # one is read and the other written: two streams
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):  # one is not there: they are one file if they have one name
        return Path(one).absolute() == Path(other).absolute()


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it is there whole or not at all; see `whole_file`."""
    try:
        with whole_file(path) as stream:
            stream.write(content)
    except OSError as cause:
        raise FileFormatError(f"{path}: cannot be written: {reason_of(cause)}") from None


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream to write a file to, which appears under its name when the block ends, and never before.

    What the file holds is on the disk before it has its name, and the name when this returns. Where the
    system can, the file has no name until then, so that a process that is killed leaves nothing. Elsewhere it
    is written beside its place and renamed; an exception removes it. What is there and is no file, such as a
    pipe or a terminal, stays what it is and receives the bytes, and so does standard output, for `-`.

    Raises:
        FileFormatError: the file cannot be written there.
    """
    try:
        kind = None if is_standard(path) else _kind_of(path)
        if is_standard(path) or (kind is not None and not stat.S_ISREG(kind)):
            made = _stream(path, kind)
        else:
            target = Path(path).resolve()  # a link stays, and its file is written
            mode = 0o666 & ~umask() if kind is None else stat.S_IMODE(kind)
            made = _published(*_begun(target.parent), target, mode)
    except (OSError, ValueError, TypeError) as cause:
        raise FileFormatError(f"{path}: cannot be written: {reason_of(cause)}") from None
    stream = next(made)
    try:
        yield stream
        next(made, None)  # published
    finally:
        made.close()


def _stream(path: str | os.PathLike[str], kind: int | None) -> Generator[Any]:
    """Standard output, or a pipe or a device."""
    if kind is None:
        output = _OUTPUT.get() or sys.stdout
        if output is None:
            raise OSError("standard output is closed")
        output.flush()
        return _kept_open(output.buffer)
    if not (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)):
        raise OSError("it is no file, pipe or terminal")
    return _closed(Path(path).open("wb"))


def _kept_open(stream: BinaryIO) -> Generator[BinaryIO]:
    yield stream
    stream.flush()


def _closed(stream: BinaryIO) -> Generator[BinaryIO]:
    with stream:
        yield stream


def _begun(folder: Path) -> tuple[int, Path | None]:
    """A file in a folder, without a name where the system has such files, else with one for now."""
    if hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").exists():
        with suppress(OSError):  # not every kind of folder has them
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600), None
    handle, name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
    return handle, Path(name)


def _published(handle: int, name: Path | None, target: Path, mode: int) -> Generator[BinaryIO]:
    """Hand out the stream, and give the file its name when it is whole."""
    temporary = name or target.parent / f"{_PREFIX}{secrets.token_hex(8)}"
    try:
        with os.fdopen(handle, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(handle)
            if name is None:  # with a folder, though it is not used, Python follows the link to the file
                os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=handle, follow_symlinks=True)
        temporary.chmod(mode)
        rename(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def rename(source: Path, target: Path) -> None:
    """Give a whole file another name in its folder, at once and for good: the disk holds it on return."""
    source.replace(target)
    with suppress(OSError):  # some systems do not open folders
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def alone(
    path: str | os.PathLike[str], wait: float | None = None, error: type[InputError] = FileFormatError
) -> Iterator[None]:
    """Be the only writer of a file while the block runs, among those who ask for this.

    The lock is on a file of its own, `path.lock`, which goes when the block ends. The system lets go of the
    lock when the process ends, however it does, and does not hand it on to processes that outlive it.

    Args:
        path: the file that is written.
        wait: how many seconds to wait for another writer to end; `LOCK_WAIT` where left out.
        error: what is raised where that was not enough.

    Raises:
        InputError: another one still writes it: the `error` that was given.
        FileFormatError: the lock cannot be made.
    """
    from filelock import FileLock, Timeout

    check_target(path)  # the lock would make its folder
    target = Path(path).resolve()
    lock = FileLock(target.with_name(f"{target.name}.lock"), thread_local=False)
    try:
        lock.acquire(timeout=LOCK_WAIT if wait is None else wait)
    except Timeout:
        raise error(f"{path}: another process is writing it: wait for it, or give another name") from None
    except OSError as cause:
        raise FileFormatError(f"{path}: cannot be written: {reason_of(cause)}") from None
    try:
        yield
    finally:
        with suppress(OSError):  # some systems keep a file that is open
            Path(lock.lock_file).unlink()  # while it is held: whoever waits sees that it lost its name
        lock.release()


def reason_of(cause: Exception) -> str:
    """What the system says went wrong, without the path."""
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


def _kind_of(path: str | os.PathLike[str]) -> int | None:
    """The mode of the file, folder or device at a path, links followed; None where nothing is there."""
    try:
        return Path(path).stat().st_mode
    except FileNotFoundError:
        return None


def umask() -> int:
    """The permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
