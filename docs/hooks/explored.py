"""The pages to explore of the gallery: computed when the site is built, and linked from its page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from background import POOL

from pmlopt import (
    PML,
    Chain,
    Ledger,
    Prior,
    Secret,
    Stream,
    design,
    explore,
    leakage_distortion,
    queries,
    solve,
)
from pmlopt.publishing.exploring import Exploration

FOLDER = "gallery/explored"
AGES = list(range(18, 98, 5))
COUNTS = [410, 620, 700, 690, 660, 640, 650, 700, 690, 600, 520, 450, 340, 220, 110, 40]


def column() -> Exploration:
    """Sixteen age bands of a survey, for whoever releases a column."""
    return explore(Prior.from_counts(COUNTS, AGES), "absolute", title="A column of ages")


def columns() -> Exploration:
    """Two columns that depend on one another, for whoever has to sign for both."""
    pair = Secret.from_counts(
        [[310, 220, 90, 20], [180, 340, 260, 90], [40, 150, 330, 310]],
        labels=["low", "middle", "high", "top"], values=["school", "college", "university"], name="education",
    )  # fmt: skip
    return explore(pair, "hamming", total=2.0, title="Education and income, both released")


def stream() -> Exploration:
    """Where somebody is, hour by hour, for whoever collects positions."""
    moves = np.array([[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]])
    moving = Stream(Chain([0.6, 0.3, 0.1], moves, ["home", "work", "way"]), PML(0.8), "hamming")
    day = ["home"] * 3 + ["way"] + ["work"] * 4 + ["way"] + ["home"] * 3
    return explore(moving, day, seed=7, title="Twelve hours of a day")


def ledger() -> Exploration:
    """Three waves of one question, for whoever keeps a panel."""
    prior = Prior([0.4, 0.3, 0.2, 0.1], ["never", "seldom", "often", "always"])
    kept = Ledger(prior, people=40, total=1.2)
    places = np.random.default_rng(3).choice(4, size=40, p=prior.pmf)
    answers = [prior.labels[place] for place in places]
    for wave in range(2):
        used = solve(design(prior, PML(0.5), "hamming")).mechanism
        kept.record(used, used.sample(answers, seed=wave))
    return explore(kept, title="A panel after two waves")


def records() -> Exploration:
    """The parity of four records, for whoever studies answers to queries."""
    parity = queries.ModularSum(4, 2)
    named = {
        f"{bits:g} bits unknown": partial(
            leakage_distortion, parity, entropy=bits * float(np.log(2))
        )
        for bits in (3, 3.5)
    }
    grid = {"distortion": [round(0.04 * k, 2) for k in range(1, 12)]}
    return explore(
        named,
        grid,
        height="leakage per record [nats]",
        across="expected distortion",
        title="The parity of four records",
    )


PAGES: Mapping[str, Callable[[], Exploration]] = {
    "column": column, "columns": columns, "stream": stream, "ledger": ledger, "records": records,
}  # fmt: skip
"""The pages by the names of their files."""


MADE: list[tuple[str, Future[str]]] = []


def make_page(name: str) -> str:
    """Compute a page in a process of its own."""
    command = [sys.executable, __file__, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"the page to explore {name} fails:\n{done.stderr}")
    return done.stdout


def on_files(files: Any, **_: Any) -> Any:
    """Start to compute the pages; called by mkdocs."""
    MADE[:] = [(name, POOL.submit(make_page, name)) for name in PAGES]
    return files


def on_post_build(config: Any, **_: Any) -> None:
    """Write the pages; called by mkdocs."""
    folder = Path(config["site_dir"]) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in MADE:
        (folder / f"{name}.html").write_text(page.result(), "utf-8")


if __name__ == "__main__":
    sys.stdout.buffer.write(PAGES[sys.argv[1]]().html.encode())
