"""Functions on foreign bytes that run in a process of their own, which code in C may end without harm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pmlopt.errors import FileFormatError

_START = (
    "import json, sys; given = json.loads(sys.stdin.buffer.readline()); sys.path[:] = given['path']; "
    "from pmlopt.core.files.child_process import serve_call; serve_call(given)"
)


def call_in_child(
    function: Callable[..., bytes],
    content: bytes,
    *,
    packages: Sequence[str] = (),
    max_bytes: int,
    seconds: float = 60.0,
    **arguments: Any,
) -> bytes:
    """Return what a function returns for some bytes when another process calls it.

    The process has the interpreter and the path of this one, and nothing else of it. Bytes come back, never
    a pickle: who breaks the other process can send wrong numbers only.

    Args:
        function: of a module; it takes the bytes and the arguments, and raises a FileFormatError to refuse.
        content: the bytes.
        packages: what is imported before the limit on memory holds.
        max_bytes: the memory that the call may take, where the system enforces that (Linux).
        seconds: after which the process is stopped.
        arguments: text, numbers or None.

    Raises:
        FileFormatError: the function refuses, or the process ends, takes too long or too much memory.
    """
    given = {
        "path": sys.path,
        "function": [function.__module__, function.__name__],
        "packages": list(packages),
        "max_bytes": max_bytes,
        "arguments": arguments,
    }
    if not sys.executable or getattr(sys, "frozen", False):
        raise FileFormatError(
            "this needs an interpreter of Python that can be started, and has none"
        )
    try:
        ended = subprocess.run(  # noqa: S603  # the interpreter that runs this
            [sys.executable, "-I", "-W", "ignore", "-c", _START],
            input=json.dumps(given).encode() + b"\n" + content,
            capture_output=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise FileFormatError(f"takes more than {seconds:g} seconds to read") from None
    except OSError as cause:
        raise FileFormatError(f"no process could be started to read it: {cause}") from None
    if ended.returncode:
        last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise FileFormatError(
            f"the process that read it ended with the code {ended.returncode}: {last:.200}"
        )
    if ended.stdout.startswith(b"-"):
        raise FileFormatError(ended.stdout[1:].decode("utf-8", "surrogateescape"))
    return ended.stdout[1:]


def serve_call(given: dict[str, Any]) -> None:
    """Call the function that another process names; write + and what it returns, or - and why it refuses."""
    module, name = given["function"]
    function = getattr(import_module(module), name)
    for package in given["packages"]:
        import_module(package)
    content = sys.stdin.buffer.read()
    _limit_memory(given["max_bytes"])
    try:
        answer = b"+" + function(content, **given["arguments"])
    except FileFormatError as error:
        answer = b"-" + str(error).encode("utf-8", "surrogateescape")
    except MemoryError:
        answer = b"-needs more memory than there is for it"
    sys.stdout.buffer.write(answer)


def _limit_memory(most: int) -> None:
    """Limit the memory that this process takes from now on, where the system can."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + most
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ImportError, OSError, ValueError):
        pass  # Windows and macOS enforce none: the limit on the time remains
