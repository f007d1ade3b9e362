"""Atomic writing of files, and reading of text, JSON and bytes."""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

import numpy as np

from pmlopt.core.failures import describe_os_error as describe_os_error
from pmlopt.core.failures import report_os_errors
from pmlopt.core.files.matrix_layout import is_number as is_number
from pmlopt.core.files.matrix_layout import parse_number as parse_number
from pmlopt.core.files.sealing import check_not_sealed
from pmlopt.core.lazy_imports import hashlib, import_optional, shutil, zipfile
from pmlopt.core.records.fields import MAX_UNLISTED_LETTERS, Context, get_fields
from pmlopt.core.records.record import parse_json, read_record
from pmlopt.errors import FileFormatError, InputError

STANDARD = "-"
"""The path of standard input or output; a file of that name is `./-` in full."""

LOCK_TIMEOUT_SECONDS = 60.0
"""Seconds that a writer waits for another one: more than a release on a million people takes."""

_PREFIX = ".pmlopt-"
"""Of the names that files have for the moment before they are whole."""

_OUTPUT: ContextVar[Any] = ContextVar("output", default=None)
"""Where bytes for standard output go while what is printed goes elsewhere."""


def is_standard_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path means standard input or output."""
    return isinstance(path, str | os.PathLike) and os.fspath(path) == STANDARD


def read_standard_input() -> BinaryIO:
    """Return the bytes of standard input."""
    if sys.stdin is None:
        raise FileFormatError("-: standard input is closed")
    return sys.stdin.buffer


@contextmanager
def redirect_standard_output(text: IO[str]) -> Iterator[None]:
    """Write file content for standard output to a given stream within the context."""
    token = _OUTPUT.set(text)
    try:
        yield
    finally:
        _OUTPUT.reset(token)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise an error where a file cannot be written."""
    if (
        not is_standard_stream(path)
        and (kind := _check_folder(path)) is not None
        and stat.S_ISDIR(kind)
    ):
        raise FileFormatError(f"{path}: cannot be written: it is a folder")


def _check_folder(path: str | os.PathLike[str]) -> int | None:
    """Return the mode of what exists at a path; raise an error for a missing folder."""
    try:
        kind = _get_mode(path)
        folder = _get_mode(Path(path).parent)
    except (OSError, ValueError, TypeError) as cause:
        raise FileFormatError(f"{path}: cannot be written: {describe_os_error(cause)}") from None
    if folder is None or not stat.S_ISDIR(folder):
        raise FileFormatError(
            f"{path}: cannot be written: its folder, {Path(path).parent}, is not there"
        )
    check_not_sealed(path)
    return kind


def is_same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths are the same file, through any links."""
    # "-" is no path, and a file of that name must not be compared
    if is_standard_stream(one) or is_standard_stream(other):
        return False  # one is read and the other written: two streams
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):  # one is not there: they are one file if they have one name
        return Path(one).absolute() == Path(other).absolute()


def atomic_write(
    path: str | os.PathLike[str], content: bytes, *, private: bool = False, replace: bool = True
) -> None:
    """Write a file atomically; see `atomic_file`."""
    with report_os_errors(path), atomic_file(path, private=private, replace=replace) as stream:
        stream.write(content)


@contextmanager
def atomic_file(
    path: str | os.PathLike[str], *, private: bool = False, replace: bool = True
) -> Iterator[BinaryIO]:
    """Yield a stream to a file that appears atomically when the block ends.

    Its content is on the disk before it has its name, and the name when this returns. Where the system can,
    it has no name until then, so that a killed process leaves nothing. Elsewhere it is written next to its
    place and renamed; an exception removes it. A pipe or a terminal that is there receives the bytes, and so
    does standard output, for `-`.

    Args:
        path: of the file.
        private: whether a new file is for its owner only (0600); one that is replaced keeps its permissions.
        replace: whether a file that another process puts there while the block runs is replaced.

    Raises:
        FileFormatError: the file cannot be written there.
    """
    try:
        kind = None if is_standard_stream(path) else _get_mode(path)
        if is_standard_stream(path) or (kind is not None and not stat.S_ISREG(kind)):
            made = _open_stream(path, kind)
        else:
            target = Path(path).resolve()  # a link stays, and its file is written
            seen = None if replace else _get_file_identity(target)
            begun = _open_temporary(target, 0o666 if kind is None and not private else 0o600)
            made = _publish_stream(
                *begun, target, kind, replace=replace or seen is not None, seen=seen
            )
    except (OSError, ValueError, TypeError) as cause:
        raise FileFormatError(f"{path}: cannot be written: {describe_os_error(cause)}") from None
    # a generator in two steps: it opens the file here and publishes it after the block
    stream = next(made)
    try:
        yield stream
        try:
            next(made, None)  # published
        except FileExistsError:
            raise FileFormatError(
                f"{path}: another process wrote it meanwhile: give another name"
            ) from None
    finally:
        made.close()


def _open_stream(path: str | os.PathLike[str], kind: int | None) -> Generator[Any]:
    """Yield a stream to standard output, a pipe or a device."""
    if kind is None:
        output = _OUTPUT.get() or sys.stdout
        if output is None:
            raise OSError("standard output is closed")
        output.flush()
        return _yield_stream(nullcontext(output.buffer))
    if not (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)):
        raise OSError("it is no file, pipe or terminal")
    return _yield_stream(Path(path).open("wb"))


def _yield_stream(held: AbstractContextManager[BinaryIO]) -> Generator[BinaryIO]:
    """Yield a stream, and flush it before its context ends."""
    with held as stream:
        yield stream
        stream.flush()


def _open_temporary(target: Path, mode: int) -> tuple[int, Path | None]:
    """Open a temporary (where possible anonymous) file in the target's folder."""
    if hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").exists():
        with suppress(OSError):  # not every kind of folder has them
            return os.open(target.parent, os.O_TMPFILE | os.O_RDWR, mode), None
    name = _make_temporary_name(target)
    return os.open(
        name, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), mode
    ), name


def _make_temporary_name(target: Path) -> Path:
    """Return a random temporary path in the target's folder."""
    return target.parent / f"{_PREFIX}{compute_key(target.name)}-{os.urandom(8).hex()}"


def _publish_stream(
    handle: int,
    name: Path | None,
    target: Path,
    kind: int | None,
    *,
    replace: bool,
    seen: tuple[int, ...] | None = None,
) -> Generator[BinaryIO]:
    """Yield a stream, and rename its file to the target when complete."""
    # a file without a name can be linked to a new name at once; to replace takes a rename
    temporary = name or (_make_temporary_name(target) if replace else target)
    held = ExitStack()
    try:
        with os.fdopen(handle, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(handle)
            if seen is not None:
                if name is None:  # the lock discards files with names for now
                    held.enter_context(exclusive_lock(target))
                if _get_file_identity(target) != seen:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
            # with a folder, though it is not used, Python follows the link to the file
            if name is None:
                os.link(
                    f"/proc/self/fd/{handle}", temporary, src_dir_fd=handle, follow_symlinks=True
                )
        if kind is not None:
            temporary.chmod(stat.S_IMODE(kind))
        if temporary == target:
            sync_folder(target.parent)
        else:
            (rename_durably if replace else publish_new)(temporary, target)
    except BaseException:
        if temporary != target:
            temporary.unlink(missing_ok=True)
        raise
    finally:
        held.close()


def _get_file_identity(path: Path) -> tuple[int, ...] | None:
    """Return the identity (device, inode, size, time) of a file; None without one."""
    with suppress(FileNotFoundError):
        # inode, size and time: a file that another process replaced differs in at least one
        about = path.stat()
        return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns
    return None


def rename_durably(source: Path, target: Path) -> None:
    """Rename a complete file atomically and durably."""
    # one atomic step: a reader sees the old file or the new one, never a part
    source.replace(target)
    sync_folder(target.parent)


@contextmanager
def exclusive_lock(
    path: str | os.PathLike[str],
    wait: float | None = None,
    error: type[InputError] = FileFormatError,
) -> Iterator[None]:
    """Lock a file or folder exclusively while the block runs.

    The lock is on a separate file, `path.lock`, which goes when the block ends. The system lets go of the
    lock when the process ends, however it does, and does not hand it on to processes that outlive it. Locks
    have one order: that on what is published comes first, that on the ledger or the streams second.

    Args:
        path: what is written.
        wait: how many seconds to wait for another writer; `LOCK_TIMEOUT_SECONDS` where left out.
        error: what is raised where that was not enough.

    Raises:
        InputError: another one still writes it: the `error` that was given.
        FileFormatError: the lock cannot be made.
    """
    filelock = import_optional("filelock", "files that several processes may write")
    _check_folder(path)  # the lock would make its folder
    target = Path(path).resolve()
    # the lock is the proof that their writer is dead: nothing matching is removed without it
    unfinished = f"{_PREFIX}{compute_key(target.name)}-*"
    lock = filelock.FileLock(target.with_name(f"{target.name}.lock"), thread_local=False)
    try:
        lock.acquire(timeout=LOCK_TIMEOUT_SECONDS if wait is None else wait)
    except filelock.Timeout:
        raise error(
            f"{path}: another process is writing it: wait for it, or give another name"
        ) from None
    except OSError as cause:
        raise FileFormatError(f"{path}: cannot be written: {describe_os_error(cause)}") from None
    try:
        for left in target.parent.glob(unfinished):  # by a writer that was killed
            remove_path(left)
        yield
    finally:
        with suppress(OSError):  # some systems keep a file that is open
            # under the lock: a waiting process sees that the file lost its name
            Path(lock.lock_file).unlink()
        lock.release()


def _get_mode(path: str | os.PathLike[str]) -> int | None:
    """Return the mode of a path with links followed; None without a file."""
    with suppress(FileNotFoundError):
        return Path(path).stat().st_mode
    return None


ENDINGS = (".csv", ".json", ".npz", ".tsv", ".txt", ".npy", ".mat", ".parquet", ".xlsx")
"""Of the files that hold a matrix; `pmlopt.core.matrices` reads and writes them."""
T = TypeVar("T")
MAX_FILE_BYTES = 2**31
"""Bytes that are read of a file, 2 GiB: a mechanism with 10,000 letters and outputs, and its table."""
MAX_EXPANDED_ENTRIES = 2**26
"""Bytes, 64 MiB, by which the arrays of an NPZ file may be larger than the file: pmlopt does not compress."""


def read_saved_record(kind: Callable[..., T], content: bytes, path: str | os.PathLike[str]) -> T:
    """Read a saved record after checking its format and version.

    Raises:
        FileFormatError: it is of another format or version, or not of its format to the letter.
    """
    data = parse_json(content, str(path))
    table = data if isinstance(data, dict) else {}
    for one in get_fields(kind)[:2]:
        stated = table.get(one.name)
        (known,) = one.type.__args__
        if type(stated) is not type(known) or stated != known:
            raise FileFormatError(
                f"{path}: has {one.name} {stated!r:.60}; only {one.name} {known!r} can be read here"
            )
    # a file cannot declare far more letters than it has bytes to list them
    context = Context(room=max(MAX_UNLISTED_LETTERS, len(content)))
    found: T = read_record(kind, data, str(path), context)  # type: ignore[arg-type]
    return found


def get_file_format(path: str | os.PathLike[str], known: Sequence[str] = ENDINGS) -> str:
    """Return a file's known suffix; raise an error for an unknown one.

    What is written to `-`, standard output, is JSON where that is known.
    """
    try:
        ending = (
            ".json" if is_standard_stream(path) and ".json" in known else Path(path).suffix.lower()
        )
    except TypeError as cause:
        raise FileFormatError(f"{path!r:.60} is no path of a file: {cause}") from None
    if ending not in known:
        raise FileFormatError(
            f"{path}: the ending {ending!r} is not known here: use {', '.join(known)}"
        )
    return ending


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a stream of a file of at most `MAX_FILE_BYTES` bytes that can seek; a pipe is read whole."""
    with ExitStack() as stack:
        stream: BinaryIO | None = None
        try:
            if Path(path).is_file():
                stream = stack.enter_context(Path(path).open("rb"))
        except (OSError, ValueError, TypeError) as cause:
            raise FileFormatError(f"{path}: cannot be read: {describe_os_error(cause)}") from None
        if stream is None:
            stream = io.BytesIO(read_bytes(path))
        _check_file_size(path, stream.seek(0, os.SEEK_END))
        stream.seek(0)
        yield stream


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a complete file of at most `MAX_FILE_BYTES` bytes; `-` is standard input."""
    try:
        with (
            nullcontext(read_standard_input())
            if is_standard_stream(path)
            else Path(path).open("rb") as stream
        ):
            content = b"".join(_read_pieces(stream, MAX_FILE_BYTES + 1))
    except (OSError, ValueError, TypeError) as cause:
        raise FileFormatError(f"{path}: cannot be read: {describe_os_error(cause)}") from None
    _check_file_size(path, len(content))
    return content


def _check_file_size(path: str | os.PathLike[str], size: int) -> None:
    """Raise an error for a file of more than `MAX_FILE_BYTES` bytes."""
    if size > MAX_FILE_BYTES:
        raise FileFormatError(
            f"{path}: is larger than {MAX_FILE_BYTES} bytes, the most that is read: give a smaller file, or "
            "raise pmlopt.core.files.disk.MAX_FILE_BYTES"
        )


def _read_pieces(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield chunks of a stream up to a byte limit."""
    while most > 0 and (piece := stream.read(min(most, 2**20))):
        yield piece
        most -= len(piece)


def encode_json_bytes(content: Any, indent: int | None = 1) -> bytes:
    """Encode plain data and numpy values as JSON.

    Without an indent it is one line, which Python writes some ten times as fast.
    """
    try:
        return (
            json.dumps(content, default=_to_plain, allow_nan=False, indent=indent) + "\n"
        ).encode()
    except (TypeError, ValueError, RecursionError) as cause:
        raise FileFormatError(f"this cannot be written as JSON: {cause}") from None


def _to_plain(value: Any) -> Any:
    """Convert numpy values to plain Python data."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r} is not text, a number, a list or a table")


def check_expansion(path: str | os.PathLike[str], stream: BinaryIO) -> None:
    """Raise an error for a compressed file that would exceed memory."""
    # by the sizes that the archive declares, before anything is unpacked
    size = stream.seek(0, os.SEEK_END)
    expanded = compute_expanded_size(stream)
    if expanded > size + MAX_EXPANDED_ENTRIES:
        raise FileFormatError(
            f"{path}: has {size} bytes and expands to {expanded}, over {MAX_EXPANDED_ENTRIES} "
            "above its "
            "size: save it without compression, or raise pmlopt.core.files.disk.MAX_EXPANDED_ENTRIES"
        )


def compute_expanded_size(stream: BinaryIO) -> int:
    """Return the uncompressed size of a ZIP archive."""
    with zipfile.ZipFile(stream) as archive:
        return sum(entry.file_size for entry in archive.infolist())


DRAFT_KEY_DIGITS = 16


_AT_FDCWD, _RENAME_NOREPLACE = -100, 1
"""Constants of Linux, for `renameat2`."""


def compute_key(name: str | os.PathLike[str]) -> str:
    """Compute a short hash key of a name or path.

    Examples:
        >>> len(compute_key("wave.csv")), compute_key("wave.csv") == compute_key("wave2.csv")
        (16, False)
    """
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:DRAFT_KEY_DIGITS]


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


def digest_file(path: Path) -> str:
    """Compute the SHA-256 digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
    exists = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if (renameat2 := _renameat2()) is not None:
        names = os.fsencode(source), os.fsencode(target)
        if renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_NOREPLACE) == 0:
            return
        if ctypes.get_errno() == errno.EEXIST:
            raise exists
        # a kind of folder, or a kernel, that does not have it
    if os.path.lexists(target):
        raise exists
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
