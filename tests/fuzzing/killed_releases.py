"""Releases that are killed, before each step that changes the disk and at random moments, and that race.

After every kill the same command is given again. Then what is published, what was acknowledged (exit code 0)
and what the ledgers hold must be the same draws, and nothing else may be left beside them.

    python tests/fuzzing/killed_releases.py --steps --kills 300 --rounds 60
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from pmlopt import Ledger, Mechanism, Prior, check
from pmlopt.cli import main

PEOPLE, TOTAL = 60, 50.0
FILES = 3
CHANGES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}
"""Events of Python's audit that change the disk; `open` does where it may write."""

RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
LAW = Prior.from_counts({"no": 1, "yes": 1})


class WrongStateError(AssertionError):
    """What is published, acknowledged and recorded differ, or something is left."""


@dataclass(frozen=True)
class Command:
    """A command that releases.

    Attributes:
        name: of the kind.
        words: of the command.
        target: what it publishes.
        ledger: where it records, if it does.
    """

    name: str
    words: tuple[str, ...]
    target: str
    ledger: str | None = None


def commands(target: str = "out", ledger: str = "ledger.npz") -> list[Command]:
    """The kinds of releases: files and folders, with a ledger and without."""
    column = ("--column", "ill")
    # a ledger has its draws by person, so that those in the file are found by their places
    book = ("--ledger", ledger, "--keep-order")
    made = ("--mechanism", "m.json")
    return [
        Command("apply", ("apply", "m.json", "people.csv", *column, "-o", f"{target}.csv"), f"{target}.csv"),
        Command(
            "apply ledger",
            ("apply", "m.json", "people.csv", *column, "-o", f"{target}.csv", *book), f"{target}.csv", ledger,
        ),
        Command("apply folder", ("apply", "m.json", "parts", *column, "-o", target), target),
        Command("release", ("release", "people.csv", *column, *made, "-o", target), target),
        Command(
            "release ledger",
            ("release", "people.csv", *column, *made, *book, "-o", target), target, ledger,
        ),
        Command("release folder", ("release", "parts", *column, *made, "-o", target), target),
    ]  # fmt: skip


def prepare(folder: Path) -> None:
    """Write what the commands read."""
    RESPONSE.save(folder / "m.json")
    (folder / "people.csv").write_text("ill\n" + "no\nyes\n" * (PEOPLE // 2))
    (folder / "parts").mkdir()
    for number in range(FILES):
        table = pyarrow.table({"ill": ["no", "yes"] * 50})
        pyarrow.parquet.write_table(table, folder / "parts" / f"f{number}.parquet")


def begin_ledger(path: str) -> None:
    """Write a ledger of which nothing was released."""
    Ledger(LAW, people=PEOPLE, total=TOTAL).save(path)


def run(words: Sequence[str]) -> int:
    """Run a command in this process, and return its exit code."""
    try:
        main(list(words), prog_name="pmlopt")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0


def fork(words: Sequence[str], before: Callable[[], Any] | None = None) -> int:
    """Run a command in a process of its own, whose output goes to the file `output`; its id."""
    process = os.fork()
    if process:
        return process
    code = 99
    try:
        handle = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        if before is not None:
            before()
        code = run(words)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def wait(process: int) -> int:
    """Wait for a process, and return its exit code, or less than 0 for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def kill_before_step(number: int) -> Callable[[], None]:
    """Return what makes a process kill itself before a step, counted from 0, that changes the disk."""
    left = [number]

    def look(event: str, arguments: Any) -> None:
        if event == "open":
            changes = bool(
                arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            ) and "output" not in str(arguments[0])
        else:
            changes = event in CHANGES
        if changes:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    return lambda: sys.addaudithook(look)


def demand(holds: bool, claim: str) -> None:
    """Raise unless a claim holds."""
    if not holds:
        output = (
            Path("output").read_text(errors="replace")[-1500:] if Path("output").exists() else ""
        )
        raise WrongStateError(f"{claim}\n{sorted(map(str, Path().iterdir()))}\n{output}")


def outcomes_of(target: str) -> list[str]:
    """The published outcomes of the people."""
    place = Path(target)
    return (place / "released.csv" if place.is_dir() else place).read_text().split()[1:]


def check_published(command: Command) -> None:
    """Check that a target is whole."""
    place = Path(command.target)
    if command.name.startswith("release"):
        demand(
            check(place).holds is not False, f"{command.name}: what is published fails its check"
        )
    if command.name == "apply folder":
        names = sorted(path.name for path in place.iterdir())
        demand(
            names == ["applied.json", *(f"f{k}.parquet" for k in range(FILES))], f"it has {names}"
        )
    if "folder" not in command.name:
        demand(len(outcomes_of(command.target)) == PEOPLE, f"{command.name}: rows are missing")


def check_ledger(path: str, targets: Sequence[str]) -> None:
    """Check that a ledger holds the draws of some targets, and no others."""
    book, expected = Ledger.load(path), Ledger(LAW, people=PEOPLE, total=TOTAL)
    demand(book.unfinished == (), f"{path}: {book.unfinished} is not published")
    demand(book.releases == len(targets), f"{path}: {book.releases} recorded, published {targets}")
    for target in targets:
        expected.record(RESPONSE, outcomes_of(target), allow_duplicate=True)
    same = all(np.allclose(book.density(k), expected.density(k)) for k in range(PEOPLE))
    demand(same, f"{path}: holds other draws than those that are published")


def check_nothing_left(folder: Path, expected: Sequence[str]) -> None:
    """Check that nothing is in a folder but what is expected there."""
    known = {"m.json", "people.csv", "parts", "output", *expected}
    left = sorted(path.name for path in folder.iterdir() if path.name not in known)
    demand(not left, f"{left} is left")


def clear(folder: Path) -> None:
    """Remove all but what the commands read."""
    for path in folder.iterdir():
        if path.name not in ("m.json", "people.csv", "parts"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def kill_once(folder: Path, command: Command, kill: Callable[[], int]) -> bool:
    """Kill a command, give it again, and check the state; whether it was killed."""
    clear(folder)
    if command.ledger is not None:
        begin_ledger(command.ledger)
    killed = kill()
    there = os.path.lexists(command.target)
    if killed == 0:
        demand(there, f"{command.name}: was acknowledged, and is not published")
    if there:
        check_published(command)
    again = wait(fork(command.words))
    # a command ends what its ledger holds, and `apply` to a file writes over one that is there
    may_end = command.ledger is not None or command.name == "apply"
    demand(
        again == (2 if there else 0) or (again == 0 and may_end),
        f"{command.name}: ended with {killed}, and again with {again}",
    )
    check_published(command)
    if command.ledger is not None:
        check_ledger(command.ledger, [command.target])
    check_nothing_left(
        folder, [command.target, *([] if command.ledger is None else [command.ledger])]
    )
    demand(
        "Traceback" not in Path("output").read_text(errors="replace"),
        f"{command.name}: a traceback",
    )
    return killed < 0


def kill_at_steps(folder: Path, command: Command, every: int = 1, start: int = 0) -> int:
    """Kill a command before each step, or each of so many from one on; return how many steps it has."""
    step = start
    while kill_once(folder, command, lambda: wait(fork(command.words, kill_before_step(step)))):  # noqa: B023
        step += every
    return step


def kill_at_random(folder: Path, command: Command, longest: float, rng: random.Random) -> bool:
    """Kill a command at a random moment, by a signal that can be caught or not."""

    def kill() -> int:
        process = fork(command.words)
        time.sleep(rng.uniform(0, longest))
        os.kill(process, rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        return wait(process)

    return kill_once(folder, command, kill)


def race(
    folder: Path, kind: int, targets: Sequence[str], ledgers: Sequence[str], rng: random.Random
) -> int:
    """Let four writers of a kind release at once; return how many releases are acknowledged."""
    clear(folder)
    for ledger in set(ledgers):
        begin_ledger(ledger)
    made = [commands(target, ledger)[kind] for target, ledger in zip(targets, ledgers, strict=True)]
    processes = []
    for command in made:
        processes.append(fork(command.words))
        time.sleep(rng.uniform(0, 0.02))
    codes = list(map(wait, processes))
    names = sorted({command.target for command in made})
    acknowledged = sorted(
        command.target for command, code in zip(made, codes, strict=True) if code == 0
    )
    if made[0].name == "apply":  # who comes after another has ended writes over the file
        acknowledged = sorted(set(acknowledged))
    demand(acknowledged == names, f"acknowledged {acknowledged} of {names}, the codes are {codes}")
    for command in made:
        check_published(command)
    used = sorted({command.ledger for command in made if command.ledger is not None})
    for ledger in used:
        own = [
            one.target
            for one, code in zip(made, codes, strict=True)
            if code == 0 and one.ledger == ledger
        ]
        check_ledger(ledger, own)
    check_nothing_left(folder, [*names, *set(ledgers)])
    return len(acknowledged)


RACES = [
    (["out"] * 4, ["ledger.npz"] * 4),
    (["out"] * 4, ["a.npz", "b.npz", "c.npz", "d.npz"]),
    (["one", "two", "three", "four"], ["ledger.npz"] * 4),
    (["one", "one", "two", "two"], ["a.npz", "b.npz", "a.npz", "b.npz"]),
]
"""Targets and ledgers of four writers: one and one, one and several, several and one, two and two."""


def run_all(
    folder: Path, steps: bool, kills: int, rounds: int, seed: int
) -> collections.Counter[str]:
    """Kill and race as often as is asked, in a folder; return how often."""
    rng, done = random.Random(seed), collections.Counter[str]()
    os.chdir(folder)
    prepare(folder)
    kinds = commands()
    longest = {}
    for command in kinds:  # also loads what is loaded later
        clear(folder)
        if command.ledger is not None:
            begin_ledger(command.ledger)
        begun = time.monotonic()
        demand(wait(fork(command.words)) == 0, f"{command.name}: fails")
        longest[command.name] = 1.2 * (time.monotonic() - begun)
    if steps:
        for command in kinds:
            done[f"steps of {command.name}"] = kill_at_steps(folder, command)
    while done["killed"] < kills:  # who had ended before is not counted
        command = kinds[done["commands"] % len(kinds)]
        done["commands"] += 1
        done["killed"] += kill_at_random(folder, command, longest[command.name], rng)
    for number in range(rounds):
        targets, ledgers = RACES[number % len(RACES)]
        done["acknowledged in races"] += race(
            folder, number // len(RACES) % len(kinds), targets, ledgers, rng
        )
    return done


def warm_up() -> None:
    """Load what the commands load, so that each process is only forked."""
    import pmlopt.cli.apply
    import pmlopt.cli.release
    import pmlopt.publishing.plans
    import pmlopt.publishing.releasing
    import pmlopt.releases.rows.applying  # noqa: F401


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    asked.add_argument("--steps", action="store_true", help="kill before each step")
    asked.add_argument("--kills", type=int, default=0, help="kills at random moments")
    asked.add_argument("--rounds", type=int, default=0, help="rounds of four writers")
    asked.add_argument("--seed", type=int, default=0)
    options = asked.parse_args()
    warm_up()
    with tempfile.TemporaryDirectory() as place:
        found = run_all(
            Path(place).resolve(), options.steps, options.kills, options.rounds, options.seed
        )
        sys.stdout.write(f"{dict(found)}\n")
        os.chdir("/")
