"""What the benchmarks share: instances, interleaved timing, tables."""

from __future__ import annotations

import argparse
import csv
import io
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from itertools import count, cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.display import get_figure_class
from pmlopt.core.files.disk import atomic_write, encode_json_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # where the fuzzer's random problems are

FloatArray = NDArray[np.float64]


def instance(
    kind: str, size: int, seed: int, outputs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """A Dirichlet prior, and a gain matrix in [-1, 1]: random, absolute (-|i-j|), or Hamming.

    As many outputs as letters, if nothing is said; other numbers of them have random gains.
    """
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(size, 2.0))
    if kind == "random":
        return prior, rng.random((size, outputs or size))
    if outputs not in (None, size):
        raise ValueError(f"gains of kind {kind!r} have as many outputs as letters")
    letters = np.arange(size)
    tables = {
        "absolute": -np.abs(np.subtract.outer(letters, letters)) / size,
        "hamming": np.eye(size),
    }
    return prior, tables[kind]


def interleaved(
    contestants: Mapping[str, Callable[[], Any]], repeats: int
) -> dict[str, tuple[float, Any]]:
    """Return the median processor seconds and the last answer of each, run in turn as others work too."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    answers: dict[str, Any] = {}
    for _ in range(repeats):
        for name, work in contestants.items():
            start = time.process_time()
            answers[name] = work()
            seconds[name].append(time.process_time() - start)
    return {name: (statistics.median(times), answers[name]) for name, times in seconds.items()}


def drawing(name: str) -> Path:
    """Where a script leaves its own plot if nothing else is said."""
    folder = Path("benchmark-results")
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.png"


PACKAGES = (
    "pmlopt", "cvxpy", "highspy", "highspy-extras", "clarabel", "scs", "osqp", "numpy", "scipy", "qif",
    "matplotlib",
)  # fmt: skip
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def suite_parser(about: str | None) -> argparse.ArgumentParser:
    """What every script of the suite takes: the folder for its table and plot, and whether to be small."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    return parser


def machine() -> str:
    """The machine and the versions that the figures belong to."""
    packages = ("pmlopt", "cvxpy", "highspy", "clarabel", "scs", "numpy", "scipy")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}, {versions}"
    )


def machine_facts() -> dict[str, Any]:
    """The same for a program, with the processor, its cores, the memory, and who multiplies matrices."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory [GiB]": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "BLAS of numpy": f"{blas['name']} {blas['version']}",
        "threads asked for": {name: os.environ.get(name) for name in THREADS},
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


_keeping: list[Iterator[Path]] = []
"""Where the next printed table goes, too: see `kept`."""


@contextmanager
def kept(folder: Path, name: str) -> Iterator[None]:
    """Write every table that is printed within, too: `<name>.csv`, then `<name>-2.csv` and so on."""
    _keeping.append(folder / (f"{name}.csv" if k == 1 else f"{name}-{k}.csv") for k in count(1))
    try:
        yield
    finally:
        _keeping.pop()


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table in Markdown."""
    if _keeping:
        write_csv(next(_keeping[-1]), head, rows)
    _show(head, rows)


def _show(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n").writerows([head, *rows])
    atomic_write(path, stream.getvalue().encode())


def report(
    folder: Path | None,
    name: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    show: bool = True,
) -> None:
    """Print a table, and write it where a folder is given."""
    if show and folder is None:
        table(head, rows)
    elif show:
        _show(head, rows)
    if folder is not None:
        write_csv(folder / f"{name}.csv", head, rows)


def report_times(
    folder: Path | None,
    name: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    clock: str = "processor",
) -> None:
    """Report a table of times by this clock, with the machine where a folder is given."""
    report(folder, name, head, rows)
    if folder is not None:
        write_machine(folder, name, clock=clock)


def write_machine(folder: Path, name: str, **more: Any) -> None:
    """Write when and on which machine the tables of a name were measured: `<name>-machine.json`."""
    facts = {
        "date": date.today().isoformat(),
        **more,
        "load": round(os.getloadavg()[0], 1),
        **machine_facts(),
    }
    atomic_write(folder / f"{name}-machine.json", encode_json_bytes(facts))


def growth_figure(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], upright: str, across: str = "N"
) -> Figure:
    """Curves on two logarithmic axes, such as seconds over N."""
    figure = get_figure_class()(figsize=(8.5, 4.8), layout="constrained")
    axes = figure.subplots()
    marks = cycle("osx^vD+<>*")
    for place, ((name, (sizes, values)), mark) in enumerate(
        zip(curves.items(), marks, strict=False)
    ):
        line = "-" if place < 10 else "--"  # the colours begin again
        axes.loglog(
            sizes, values, marker=mark, markersize=4, linewidth=1, linestyle=line, label=name
        )
    axes.set(xlabel=across, ylabel=upright)
    ticks = sorted({size for sizes, _ in curves.values() for size in sizes})
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], fontsize="small")
    axes.minorticks_off()
    axes.grid(visible=True, which="major", linewidth=0.3)
    axes.legend(frameon=False, fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
