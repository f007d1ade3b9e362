"""Builders that tests of sweeps hand to workers, which import them from here."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from pmlopt import PML, ExpectedGain, Prior, Program, design
from pmlopt.sweeps import Sweep

EPSILONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
GRID = {"size": (3, 4), "epsilon": EPSILONS}


def prior_of(size: int) -> Prior:
    return Prior(np.arange(1, size + 1) / (size * (size + 1) / 2))


def plain(size: int, epsilon: float) -> Program[Any]:
    gains = np.random.default_rng(size).random((size, size))
    return design(prior_of(size), PML(epsilon), ExpectedGain(gains))


def logged(log: Path, size: int, epsilon: float) -> Program[Any]:
    """Write down which points were begun."""
    with log.open("a") as stream:
        stream.write(f"{size} {epsilon}\n")
    return plain(size, epsilon)


def gated(log: Path, gate: Path, size: int, epsilon: float) -> Program[Any]:
    """Wait at the fifth point until there is a gate."""
    program = logged(log, size, epsilon)
    while (size, epsilon) == (3, 0.5) and not gate.exists():
        time.sleep(0.01)
    return program


def interrupted(log: Path, gate: Path, size: int, epsilon: float) -> Program[Any]:
    """Interrupt the sweep at that point, unless there is a gate."""
    if (size, epsilon) == (3, 0.5) and not gate.exists():
        raise KeyboardInterrupt
    return logged(log, size, epsilon)


def deadly(size: int, epsilon: float) -> Program[Any]:
    """End the worker at the second point."""
    if (size, epsilon) == (3, 0.2):
        os._exit(1)
    return plain(size, epsilon)


def faulty(size: int, epsilon: float) -> Any:
    """Fail in each way that a point can, from the second on."""
    program: Any = plain(size, epsilon)
    at = EPSILONS.index(epsilon)
    if at == 1:
        raise ValueError("no such\nfile")
    if at == 2:
        return "no program"
    if at == 3:
        return program.with_constraints(never=program.mechanism[0, 0] >= 2)
    if at == 4:
        raise SystemExit(1)
    return program


def threads(epsilon: float) -> Program[Any]:
    """Fail, and say how many threads linear algebra has."""
    raise ValueError(max(library["num_threads"] for library in threadpool_info()))


def but_seconds(table: Sweep) -> list[dict[str, Any]]:
    return [
        {name: cell for name, cell in row.items() if name != "seconds"}
        for row in table.to_dict()["rows"]
    ]
