"""Functions on foreign bytes that run in a process of their own, which code in C may end without harm.

The process has the interpreter and the path of this one, and nothing else of it: no module of the folder that
it is started in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from pmlopt.errors import FileFormatError

_START = (
    "import json, sys; given = json.loads(sys.stdin.buffer.readline()); sys.path[:] = given['path']; "
    "from pmlopt.core.files.child_process import find_function; "
    "find_function(*given['function'])(**given['arguments'])"
)


def find_function(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module."""
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def start_child(function: Callable[..., None], /, **arguments: Any) -> subprocess.Popen[bytes]:
    """Start a process that calls a function of a module, and return it with pipes to its streams.

    Args:
        function: that reads the standard input stream and writes the standard output stream.
        arguments: what JSON has.

    Raises:
        FileFormatError: no process can be started.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        raise FileFormatError(
            "this needs an interpreter of Python that can be started, and has none"
        )
    given = {
        "path": sys.path,
        "function": [function.__module__, function.__name__],
        "arguments": arguments,
    }
    try:
        process = subprocess.Popen(  # noqa: S603  # the interpreter that runs this
            [sys.executable, "-I", "-W", "ignore", "-c", _START],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as cause:
        raise FileFormatError(f"no process could be started to read it: {cause}") from None
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # its end is found where its answer is read
        process.stdin.write(json.dumps(given).encode() + b"\n")
        process.stdin.flush()
    return process


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

    Bytes come back, never a pickle: who breaks the other process can send wrong numbers only.

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
    with start_child(
        serve_call,
        function=[function.__module__, function.__name__],
        packages=list(packages),
        max_bytes=max_bytes,
        arguments=arguments,
    ) as process:
        try:
            answer, errors = process.communicate(content, seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise FileFormatError(f"takes more than {seconds:g} seconds to read") from None
    if process.returncode:
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise FileFormatError(
            f"the process that read it ended with the code {process.returncode}: {last:.200}"
        )
    if answer.startswith(b"-"):
        raise FileFormatError(answer[1:].decode("utf-8", "surrogateescape"))
    return answer[1:]


def serve_call(
    function: Sequence[str], packages: Sequence[str], max_bytes: int, arguments: dict[str, Any]
) -> None:
    """Call a function on the bytes that come in; write + and what it returns, or - and why it refuses."""
    call = find_function(*function)
    for package in packages:
        import_module(package)
    content = sys.stdin.buffer.read()
    _limit_memory(max_bytes)
    try:
        answer = b"+" + call(content, **arguments)
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
