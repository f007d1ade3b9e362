"""What the benchmarks share: instances, interleaved timing, tables."""

from __future__ import annotations

import csv
import io
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.files import write_whole

FloatArray = NDArray[np.float64]


def instance(kind: str, size: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """A Dirichlet prior, and a gain matrix in [-1, 1]: random, absolute (-|i-j|), or Hamming."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(size, 2.0))
    letters = np.arange(size)
    tables = {
        "random": rng.random((size, size)),
        "absolute": -np.abs(np.subtract.outer(letters, letters)) / size,
        "hamming": np.eye(size),
    }
    return prior, tables[kind]


def interleaved(contestants: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, Any]]:
    """Median seconds and last answer of each, run in turn so that a slow moment hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    answers: dict[str, Any] = {}
    for _ in range(repeats):
        for name, work in contestants.items():
            start = time.perf_counter()
            answers[name] = work()
            seconds[name].append(time.perf_counter() - start)
    return {name: (statistics.median(times), answers[name]) for name, times in seconds.items()}


def machine() -> str:
    """The machine and the versions that the figures belong to."""
    packages = ("pmlopt", "cvxpy", "highspy", "clarabel", "scs", "numpy", "scipy")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}, {versions}"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n").writerows([head, *rows])
    write_whole(path, stream.getvalue().encode())


def report(
    folder: Path | None, name: str, head: Sequence[str], rows: Sequence[Sequence[Any]], *, show: bool = True
) -> None:
    """Print a table, and write it where a folder is given."""
    if show:
        table(head, rows)
    if folder is not None:
        write_csv(folder / f"{name}.csv", head, rows)
