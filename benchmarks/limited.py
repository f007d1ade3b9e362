"""Run one function in a process of its own, under a hard limit on wall time and memory.

The function is named `module:function` (a module beside this one), takes keywords that JSON can carry, and
returns a dictionary that JSON can carry. The limits are kept from outside: a solver that ignores its own
time limit, or the whole machine's memory, does not end the suite.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

MIB = 1024.0
"""Kilobytes, in which the kernel counts."""

LARGEST = 12_000.0
"""MiB that a contestant may hold."""


@dataclass(frozen=True)
class Run:
    """How a run ended.

    Attributes:
        status: "done", "time-out", "too much memory" or "failed".
        seconds: wall time of the process, with its start.
        memory: the peak of its resident memory in MiB, Python and libraries included.
        answer: what the function returned; empty where it did not.
        problem: the last line of its complaint.
    """

    status: str
    seconds: float
    memory: float
    answer: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def done(self) -> bool:
        """Whether there is an answer."""
        return self.status == "done"


def limited(
    target: str, arguments: Mapping[str, Any], limit: float, memory: float = LARGEST
) -> Run:
    """Call `target` with these arguments in a new process.

    Args:
        target: `module:function`.
        arguments: its keywords.
        limit: seconds of wall time from the start of the process.
        memory: MiB of resident memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer, complaint = Path(folder) / "answer.json", Path(folder) / "complaint.txt"
        command = [sys.executable, __file__, target, json.dumps(dict(arguments)), str(answer)]
        start = time.perf_counter()
        with (
            complaint.open("w") as stream,
            subprocess.Popen(command, stdout=stream, stderr=stream) as child,
        ):
            status, peak = _watched(child, start + limit, memory)
        seconds = time.perf_counter() - start
        if status == "ended":
            status = "done" if child.returncode == 0 and answer.exists() else "failed"
        lines = complaint.read_text(errors="replace").strip().splitlines()
        if status != "done":
            return Run(status, seconds, peak, problem=_told(status, child.returncode, lines))
        said = json.loads(answer.read_text())
        return Run(status, seconds, max(peak, said["peak"]), said["answer"])


def _watched(child: subprocess.Popen[bytes], deadline: float, memory: float) -> tuple[str, float]:
    """Wait for the end, or make it; how it ended, and the peak seen."""
    peak = 0.0
    while child.poll() is None:
        peak = max(peak, resident(str(child.pid), "VmHWM"))
        over = (
            "time-out"
            if time.perf_counter() > deadline
            else "too much memory"
            if peak > memory
            else ""
        )
        if over:
            child.kill()
            child.wait()
            return over, peak
        time.sleep(0.02)
    return "ended", peak


def _told(status: str, code: int, lines: list[str]) -> str:
    if status != "failed":
        return ""
    return f"signal {-code}" if code < 0 else (lines[-1] if lines else f"exit code {code}")


def resident(process: str, entry: str) -> float:
    """MiB of resident memory of a process, from Linux's /proc; 0 where there is none."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) / MIB for line in lines if line.startswith(entry)), 0.0)


def _child(target: str, arguments: str, path: str) -> None:
    module, _, name = target.partition(":")
    answer = getattr(import_module(module), name)(**json.loads(arguments))
    Path(path).write_text(json.dumps({"answer": answer, "peak": resident("self", "VmHWM")}))


if __name__ == "__main__":
    _child(*sys.argv[1:])
