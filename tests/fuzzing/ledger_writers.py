"""Two processes that record in one ledger and are killed again and again, until both are done."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
from fuzzing.random_designs import demand

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.releases import Ledger

WRITERS = 2
LONGEST_LIFE = 0.2
"""Seconds until a writer is killed, at most: about ten releases, waiting for the other included."""


def released(writer: int, number: int) -> FloatArray:
    """A mechanism of which no other release makes use."""
    share = 0.5 + (1 + writer + WRITERS * number) / 1000
    return np.array([[share, 1 - share], [1 - share, share]])


def write(folder: Path, writer: int, releases: int) -> None:
    """Record and publish what is not acknowledged yet, and acknowledge each release once it is."""
    acknowledged = folder / f"acknowledged-{writer}"
    for number in range(len(acknowledged.read_text()), releases):
        draft = folder / f".pmlopt-{writer}-{number}"
        try:
            with Ledger.open(folder / "ledger.npz") as ledger:
                draft.write_text(f"{writer} {number}")
                ledger.record(released(writer, number), [0])
                ledger.publish(draft, folder / f"published-{writer}-{number}")
        except PrivacyError:  # it was recorded, and killed before that was acknowledged
            draft.unlink()
        with acknowledged.open("a") as stream:
            stream.write(".")


def run(folder: Path, releases: int, rng: np.random.Generator) -> Counter[str]:
    """Let the writers record so many releases each, while they are killed at random moments.

    Args:
        folder: an empty one.
        releases: of each writer.
        rng: of the moments.

    Returns:
        How many writers were killed, and how many releases were acknowledged.

    Raises:
        AssertionError: an acknowledged release is lost, one is counted twice, or what is published and what
            is recorded differ.
    """
    path = folder / "ledger.npz"
    Ledger([0.75, 0.25]).save(path)
    for writer in range(WRITERS):
        (folder / f"acknowledged-{writer}").touch()
    context = multiprocessing.get_context("fork")
    told: Counter[str] = Counter()
    lives: list[BaseProcess | None] = [None] * WRITERS
    done = [0] * WRITERS
    while min(done) < releases:
        for writer in range(WRITERS):
            if lives[writer] is None and done[writer] < releases:
                begun = context.Process(target=write, args=(folder, writer, releases))
                begun.start()
                lives[writer] = begun
        living = [(writer, life) for writer, life in enumerate(lives) if life is not None]
        victim, life = living[int(rng.integers(len(living)))]
        life.join(float(rng.uniform(0, LONGEST_LIFE)))
        life.kill()
        life.join()
        demand(
            life.exitcode in (0, -signal.SIGKILL), f"a writer ended with the code {life.exitcode}"
        )
        told["killed"] += life.exitcode != 0
        lives[victim] = None
        done[victim] = len((folder / f"acknowledged-{victim}").read_text())
        check(folder)
    with Ledger.open(path) as ledger:
        demand(ledger.releases == WRITERS * releases, f"{ledger.releases} releases are recorded")
    expected = Ledger([0.75, 0.25])
    for number in range(releases):
        for writer in range(WRITERS):
            expected.record(released(writer, number), [0])
    off = abs(expected.level - ledger.level)
    demand(off <= 1e-12, f"the level is off by {off}")
    drafts = list(folder.glob(".pmlopt-*"))
    demand(not drafts, f"the drafts {drafts} are left")
    demand(
        len(list(folder.glob("published-*"))) == WRITERS * releases, "a release is not published"
    )
    told["acknowledged"] = sum(done)
    return told


def check(folder: Path) -> None:
    """Compare what is acknowledged with what one reads in the ledger, while another one may write it."""
    before = sum(len(file.read_text()) for file in folder.glob("acknowledged-*"))
    ledger = Ledger.load(folder / "ledger.npz")
    demand(
        ledger.releases >= before,
        f"{before} releases are acknowledged, and {ledger.releases} recorded",
    )
