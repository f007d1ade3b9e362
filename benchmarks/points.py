"""The points of figures: those that are stored in benchmarks/data, or computed anew by their study.

Each file of points is written by one study, a script that is named in `STUDIES`. Within `computed_in` a study
runs when the first of its points is asked for, and it is said how long it took.
"""

from __future__ import annotations

import csv
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from common import FloatArray

HERE = Path(__file__).parent
STUDIES = {
    "additive-noise": ("additive_noise.py", "--out", ""),
    "continuous": ("continuous.py", "--out", ""),
    "distortion": ("distortion.py", "--csv", "distortion"),
    "envelope": ("envelope.py", "--csv", "envelope"),
    "estimation": ("estimation.py", "--csv", "estimation"),
    "estimation_designs": ("estimation_designs.py", "--csv", "estimation_designs.csv"),
    "growth": ("growth.py", "--out", ""),
    "information": ("information.py", "--csv", "information.csv"),
    "noise": ("noise.py", "--csv", "noise"),
    "record-dimensions": ("record_dimensions.py", "--csv", ""),
    "records": ("records.py", "--csv", "records"),
    "symmetry": ("symmetry.py", "--out", ""),
    "worst_case": ("worst_case.py", "--csv", "worst_case"),
}
"""The script of each study, the option that says where its points go, and their place in the folder."""

OF_THE_PAPER = {
    "distortion": ("--figures-only", "--time-limit", "120"),
    "envelope": ("--figures-only",),
    "records": ("--figures-only",),
    "worst_case": ("--figures-only",),
}
"""What keeps a study that does more to the figures of its paper, and lets it end where a machine is slow."""

_computed: list[tuple[Path, bool]] = []
"""Where points are computed, and whether those of the papers alone; nowhere where they are read."""


@contextmanager
def computed_in(folder: Path, *, of_the_paper: bool = False) -> Iterator[None]:
    """Compute within, in this folder, the points that are asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    _computed.append((folder, of_the_paper))
    try:
        yield
    finally:
        _computed.pop()


def columns(name: str) -> dict[str, FloatArray]:
    """The columns of a table of points by their heads; NaN where there is no number."""
    with _path(name).open(newline="") as stream:
        head, *rows = csv.reader(stream)
    return {key: np.array([_number(row[k]) for row in rows]) for k, key in enumerate(head)}


def rows_of(name: str, *, kept: bool = False) -> list[dict[str, str]]:
    """The rows of a table of points; of the kept one, if that is asked."""
    with (_kept(name) if kept else _path(name)).open(newline="") as stream:
        return list(csv.DictReader(stream))


def seconds_of(study: str) -> str:
    """How long a study took that has ended in the folder of the points."""
    return (_computed[-1][0] / f".{study}").read_text()


def _kept(name: str) -> Path:
    return HERE / "data" / f"{name}.csv"


def _path(name: str) -> Path:
    if not _computed:
        return _kept(name)
    (folder, of_the_paper), study = _computed[-1], name.partition("/")[0]
    script, option, place = STUDIES[study]
    done = folder / f".{study}"
    if not done.exists():
        begin = time.perf_counter()
        drawn = () if option == "--out" else ("--output", str(folder / f"{study}.png"))
        command = [sys.executable, str(HERE / script), option, str(folder / place), *drawn]
        command += OF_THE_PAPER.get(study, ()) if of_the_paper else ()
        subprocess.run(command, check=True, stdout=sys.stderr, cwd=folder)
        seconds = f"{time.perf_counter() - begin:.0f}"
        print(f"{script}: {seconds} s", file=sys.stderr)
        done.write_text(seconds)
    return folder / f"{name}.csv"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
