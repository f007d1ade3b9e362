"""Six mechanisms measured by seven other libraries: names there, units, and what each does at zeros.

    python benchmarks/peers.py [--out FOLDER] [--only NAME ...]

Each library is installed in a temporary environment of its own, at the versions of `PINS`, and measures the
mechanisms by `benchmarks/peer_measures.py`. The table `peers.csv` has each of its measures, with its value
beside ours in the same unit. It ends with exit code 1 where a value differs that is not named in `MEASURES`.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from common import FloatArray, write_csv

from pmlopt.measures import (
    channel_capacity,
    guessing_probability,
    ldp_level,
    leakage_level,
    maximal_leakage,
    mutual_information,
)

PINS: Mapping[str, Sequence[str]] = {
    "qif": ["qif==1.6.0", "numpy==2.4.6"],
    "dit": ["dit==2.3", "numpy==2.4.6"],
    "opendp": ["opendp==0.16.0", "numpy==2.4.6"],
    "dp-accounting": ["dp-accounting==0.6.0", "numpy==2.4.6"],
    "multi-freq-ldpy": ["multi-freq-ldpy==0.2.5", "numpy==2.4.6", "xxhash==3.6.0"],
    # it declares neither scikit-learn nor statsmodels, and fails with xxhash 4
    "pure-ldp": [
        "pure-ldp==1.2.0",
        "numpy==2.4.6",
        "xxhash==3.6.0",
        "scikit-learn==1.9.1",
        "statsmodels",
    ],
    # it fails with scikit-learn from 1.8 on
    "diffprivlib": ["diffprivlib==0.6.6", "numpy==2.4.6", "scikit-learn==1.7.2"],
}
"""What is installed for each library; the first is the library."""

MECHANISMS: Mapping[str, Mapping[str, Any]] = {
    "response of 2": {
        "prior": [0.5, 0.5],
        "matrix": [[0.75, 0.25], [0.25, 0.75]],
        "epsilon": math.log(3),
    },
    "response of 4": {
        "prior": [0.25] * 4,
        "matrix": (np.eye(4) / 3 + 1 / 6).tolist(),
        "epsilon": math.log(3),
    },
    "skewed prior": {
        "prior": [0.9, 0.1],
        "matrix": [[0.75, 0.25], [0.25, 0.75]],
        "epsilon": math.log(3),
    },
    "one zero": {"prior": [0.5, 0.5], "matrix": [[1.0, 0.0], [0.5, 0.5]], "epsilon": None},
    "identity": {"prior": [0.5, 0.25, 0.25], "matrix": np.eye(3).tolist(), "epsilon": None},
    "geometric": {
        "prior": [1 / 3] * 3,
        "matrix": [[4 / 6, 1 / 6, 1 / 6], [2 / 6, 2 / 6, 2 / 6], [1 / 6, 1 / 6, 4 / 6]],
        "epsilon": None,
    },
}
"""Randomized response at log 3, with another prior, a zero beside numbers, the identity, geometric noise."""

Measure = Callable[[FloatArray, FloatArray], float]


def compute_min_entropy_leakage(prior: FloatArray, matrix: FloatArray) -> float:
    """Compute by what factor one guess at the letter is right more often, in nats."""
    return math.log(guessing_probability(prior, matrix) / prior.max())


BITS, NATS, FACTOR = "bits", "nats", "factor"
MEASURES: Mapping[str, tuple[str, str, str, Measure]] = {
    "bayes_vuln.min_entropy_leakage": (
        "guessing_probability / max(prior)", BITS, "prior, rows", compute_min_entropy_leakage),
    "bayes_vuln.mult_capacity": ("maximal_leakage", FACTOR, "rows", lambda _, m: maximal_leakage(m)),
    "shannon.add_leakage": ("mutual_information", BITS, "prior, rows", mutual_information),
    "shannon.add_capacity": ("channel_capacity", BITS, "rows", lambda _, m: channel_capacity(m)[0]),
    "d_privacy.smallest_epsilon": ("ldp_level", NATS, "rows, metric", lambda _, m: ldp_level(m)),
    "mutual_information": ("mutual_information", BITS, "joint law", mutual_information),
    "renyi_divergence": ("leakage_level", BITS, "posterior, prior", leakage_level),
    "make_randomized_response": ("ldp_level", NATS, "alphabet", lambda _, m: ldp_level(m)),
    "from_two_probability_mass_functions": (
        "ldp_level", NATS, "ordered rows", lambda _, m: ldp_level(m)),
    "GRR_Client": ("matrix", "share", "epsilon", lambda _, m: float(m[0, 0])),
    "mechanisms.Binary": ("matrix", "share", "epsilon", lambda _, m: float(m[0, 0])),
    "DEClient": ("ldp_level", NATS, "epsilon", lambda _, m: ldp_level(m)),
}  # fmt: skip
"""Of each measure there: ours, its unit, its orientation, and the function."""

TOLERANCES: Mapping[str, tuple[float, str]] = {
    "GRR_Client": (0.005, "200,000 draws"),
    "mechanisms.Binary": (0.005, "200,000 draws"),
    "from_two_probability_mass_functions": (2e-4, "bins, upwards"),
    "renyi_divergence": (0.025, "order 100, downwards"),
    "shannon.add_capacity": (1e-6, "iteration"),
}
"""By how much values may differ, and why; else by 1e-9."""

HEAD = ("library", "version", "measure there", "here", "unit", "orientation", *MECHANISMS, "at zeros",
        "agrees",
        "python", "date")  # fmt: skip


def convert(value: float, unit: str) -> float:
    """Convert one of our levels to the unit of a measure."""
    if unit == BITS:
        return value / math.log(2)
    return math.exp(value) if unit == FACTOR else value


def install(peer: str, folder: Path) -> Path:
    """Install a library in an environment of its own, by uv where it is there; return the Python of it."""
    python = folder / "bin" / "python"
    if uv := shutil.which("uv"):
        subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, folder], check=True)
        subprocess.run([uv, "pip", "install", "-q", "-p", python, *PINS[peer]], check=True)
        return python
    venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *PINS[peer]], check=True)
    return python


def measure(peer: str, python: Path) -> dict[str, dict[str, float | None]]:
    """Measure all mechanisms by a library: values by measure and mechanism."""
    script = Path(__file__).with_name("peer_measures.py")
    told = subprocess.run(
        [python, script, peer],
        input=json.dumps(MECHANISMS),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    by_mechanism = json.loads(told.splitlines()[-1])
    return {
        name: {
            one: None if found[name] is None else float(found[name])
            for one, found in by_mechanism.items()
        }
        for name in next(iter(by_mechanism.values()))
    }


def make_row(peer: str, name: str, values: Mapping[str, float | None]) -> tuple[list[Any], bool]:
    """Make the line of a measure, and tell whether all its values are ours."""
    here, unit, orientation, own = MEASURES[name]
    tolerance, why = TOLERANCES.get(name, (1e-9, ""))
    differing = []
    for one, value in values.items():
        prior, matrix = (np.array(MECHANISMS[one][key]) for key in ("prior", "matrix"))
        expected = convert(own(prior, matrix), unit)
        if value is not None and not (
            value == expected or math.isclose(value, expected, rel_tol=0, abs_tol=tolerance)
        ):
            differing.append(f"{one}: {value:.9g} for {expected:.9g}")
    cells = ["no" if value is None else f"{value:.6g}" for value in values.values()]
    zero = values["one zero"]
    at_zeros = "refused" if zero is None else "infinite" if zero == math.inf else "finite"
    agrees = "; ".join(differing) or f"{tolerance:g}{f' ({why})' if why else ''}"
    library, version = PINS[peer][0].split("==")
    day = datetime.now(UTC).date().isoformat()
    told = [library, version, name, here, unit, orientation, *cells, at_zeros, agrees]
    return [*told, platform.python_version(), day], not differing


def main() -> int:
    """Install and measure by all, write the table; 1 where a value differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data")
    parser.add_argument("--only", nargs="+", default=list(PINS), choices=list(PINS))
    parser.add_argument("--quick", action="store_true", help="the first library alone")
    asked = parser.parse_args()
    rows, agree = [], True
    for peer in asked.only[: 1 if asked.quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(peer, install(peer, Path(folder)))
        for name, values in measured.items():
            row, is_ours = make_row(peer, name, values)
            agree &= is_ours
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    write_csv(asked.out / "peers.csv", HEAD, rows)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
