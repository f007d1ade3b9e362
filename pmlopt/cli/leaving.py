"""The end of a process that ran one command."""

from __future__ import annotations

import atexit
import os
import sys
import threading


def leave_at_once(code: object) -> None:
    """End the process with an exit code, without taking its modules apart.

    What was to run at the end runs, and what was printed is written. Nothing happens where the end has more
    to do: the code is a message to print, threads or processes are at work, a profiler, a debugger or a
    prompt waits for the end, or the output cannot be written, which Python reports in its own way.
    """
    if not (code is None or isinstance(code, int)) or is_awaited():
        return
    try:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except Exception:  # as at the end of any program, which is still to come
        return
    os._exit((code or 0) & 0xFF)


def is_awaited() -> bool:
    """Return whether something other than the command is at work in the process or waits for its end."""
    processes = sys.modules.get("multiprocessing")
    return (
        is_watched()
        or threading.active_count() > 1
        or (processes is not None and bool(processes.active_children()))
    )


def is_watched() -> bool:
    """Return whether a profiler, a debugger or a prompt is there, which the end of Python lets finish."""
    monitoring = getattr(sys, "monitoring", None)  # Python 3.12
    return bool(
        (monitoring is not None and any(map(monitoring.get_tool, range(6))))
        or sys.getprofile()
        or sys.gettrace()
        or sys.flags.inspect
        or hasattr(sys, "ps1")
        or os.environ.get("PYTHONINSPECT")
    )
