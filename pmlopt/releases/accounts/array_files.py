"""Files of release state: locked for one writer, and arrays with a content digest."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.files import disk
from pmlopt.errors import FileFormatError


@contextmanager
def open_exclusively(
    path: str | os.PathLike[str], kind: type[Any], state: Callable[[Any], Any]
) -> Iterator[Any]:
    """Open a state file under a lock, and write it back if it has changed.

    Args:
        path: of the file.
        kind: the class, whose `load` and `save` read and write it.
        state: what differs once it has changed.
    """
    with disk.exclusive_lock(path):
        held = kind.load(path)
        before = state(held)
        yield held
        if state(held) != before:
            held.save(path)


def compute_digest(about: dict[str, Any], *arrays: Any) -> bytes:
    """Compute the digest of plain data and arrays."""
    whole = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for array in arrays:
        whole.update(f"{array.shape} {array.dtype.str}".encode())
        whole.update(np.ascontiguousarray(array).data)
    return whole.digest()


def write_arrays(
    path: str | os.PathLike[str], about: dict[str, Any], arrays: dict[str, Any]
) -> str:
    """Write plain data and arrays atomically, and return their digest."""
    plain = json.loads(disk.encode_json_bytes(about))
    found = compute_digest(plain, *arrays.values()).hex()
    told = np.frombuffer(disk.encode_json_bytes({**plain, "digest": found}), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez(stream, about=told, **arrays)
    disk.atomic_write(path, stream.getvalue(), private=True)
    return found


def read_digest(path: Path) -> str | None:
    """Read the digest stored in a file; None without a file."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            return str(json.loads(stored["about"].tobytes())["digest"])
    except Exception:  # see `read_arrays`
        return "none"


def read_arrays(
    path: str | os.PathLike[str], what: str, kind: str, version: int
) -> tuple[dict[str, Any], dict[str, Any], str, int]:
    """Read plain data, arrays, digest and size of a file; refuse a modified one.

    Args:
        path: of the file, which ends in .npz.
        what: it holds, for messages.
        kind: its format.
        version: of the format.

    Raises:
        FileFormatError: the file is not there, is of another format or version, was cut short or changed.
    """
    disk.get_file_format(path, (".npz",))
    content = disk.read_bytes(path)
    try:
        disk.check_expansion(path, io.BytesIO(content))
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        # numpy gives a member that does not begin as an array does as its bytes
        if odd := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
            raise ValueError(f"its part {odd[0]!r:.80} is no array")
        about = json.loads(arrays.pop("about").tobytes())
        if about["format"] != kind or about["version"] != version:
            raise ValueError(f"its format is {about['format']!r}, version {about['version']!r}")
        found = str(about.pop("digest"))
    except FileFormatError:
        raise
    except (
        Exception
    ) as cause:  # what zip, npy and json readers raise on foreign bytes has no bounds
        raise FileFormatError(
            f"{path}: is not a whole {what} of version {version}: {cause}"
        ) from None
    if found != compute_digest(about, *arrays.values()).hex():
        raise FileFormatError(f"{path}: was changed after it was written: its digest is another")
    return about, arrays, found, len(content)
