"""Random changes of releases and of their state, none of which may be accepted or end in a traceback.

`python tests/mutate_releases.py --instances 2000 --seed 1` changes so many, in turn the folder of a release,
the draft of one that was interrupted, what a ledger is to publish, a ledger, streams and a crowd (see
`mutate_state.py`), each in one way. Of a folder that is a value, key or row of the description or of a
mechanism, bytes of any file, or a file that is missing, added or moved; half of them with the digests
computed again, as a forger would. It prints how they ended, and exits with 1 where a change is accepted or an
error of another kind is raised. An instance is known by the seed, the kinds and its number.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mutate_state import KINDS, change_content, change_value, make_states

from pmlopt import PML, Mechanism, design, solve
from pmlopt.errors import PmloptError
from pmlopt.publishing import build_stated_prior, check, release
from pmlopt.publishing.folder import DESCRIPTION, ReleaseFile, digest_folder

FOLDERS = ("design", "kept", "tuple")

MEMORY = Path("/dev/shm")
"""A folder in memory, where there is one: thousands of small files do not wait for a disk."""


def make_folders(place: Path) -> list[Path]:
    """Make the folders that are changed: a design, two columns with one in clear, and a tuple of columns."""
    rng = np.random.default_rng(0)
    n = 300
    ill = rng.choice(["no", "yes"], n, p=[0.7, 0.3])
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    town = np.where(rng.random(n) < 0.4, "east", "west")
    data = {"ill": ill.tolist(), "sex": sex.tolist(), "town": town.tolist()}
    counts: dict[Any, int] = {letter: int((ill == letter).sum()) for letter in ("no", "yes")}
    designed = solve(design(build_stated_prior(counts), PML(0.3), "hamming"))
    flip = Mechanism([[0.7, 0.3], [0.3, 0.7]], ["f", "m"], ["f", "m"])
    pairs = [(a, b) for a in ("no", "yes") for b in ("f", "m")]
    tied = Mechanism(0.4 * np.eye(4) + 0.15, pairs, pairs)
    release(data, {"ill": designed}, place / "design", drop=["sex", "town"], issuer="Office")
    release(data, {"ill": designed, "sex": flip}, place / "kept", keep=["town"], total=5.0)
    release(data, {("ill", "sex"): tied}, place / "tuple", drop=["town"], exact_counts=True)
    return [place / name for name in FOLDERS]


def change_json(path: Path, rng: np.random.Generator) -> str:
    """Change one value of a JSON file."""
    data = json.loads(path.read_text())
    done = change_value(data, rng)
    path.write_text(json.dumps(data))
    return f"{path.name} {done}"


def change_bytes(path: Path, rng: np.random.Generator) -> str:
    """Change a byte of a file, cut it, or repeat a part of it."""
    content, done = change_content(path.read_bytes(), rng)
    path.write_bytes(content)
    return f"{path.name} {done}"


def change_rows(path: Path, rng: np.random.Generator) -> str:
    """Change the lines of a text file: one is dropped, doubled, or swapped with another one."""
    lines = path.read_text().splitlines(keepends=True)
    one, other = rng.integers(len(lines), size=2).tolist()
    kind = str(rng.choice(["drop", "double", "swap"]))
    if kind == "drop":
        del lines[one]
    elif kind == "double":
        lines.insert(one, lines[one])
    else:
        lines[one], lines[other] = lines[other], lines[one]
    path.write_text("".join(lines))
    return f"{path.name} {kind} {one}"


def change_files(path: Path, rng: np.random.Generator) -> str:
    """Remove a file, move it, make it a link or a folder, or add one next to it."""
    kind = str(rng.choice(["remove", "move", "link", "folder", "add"]))
    if kind == "add":
        (path.parent / "more.txt").write_text("more")
        return "more.txt added"
    moved = path.rename(path.with_name("moved"))
    if kind == "remove":
        moved.unlink()
    elif kind == "link":
        path.symlink_to(moved)
    elif kind == "folder":
        path.mkdir()
    return f"{path.name} {kind}"


CHANGES: tuple[Callable[[Path, np.random.Generator], str], ...] = (
    change_bytes,
    change_rows,
    change_files,
)


def digest_again(folder: Path) -> None:
    """Write the digests of the files as they are now into the description, where it still is one."""
    path = folder / DESCRIPTION
    try:
        data = json.loads(path.read_text())
        data["digests"] = digest_folder(folder)
        path.write_text(json.dumps(data))
    except (OSError, ValueError, TypeError, IndexError):
        return


def is_unchanged(folder: Path, original: Path) -> bool:
    """Return whether two folders have the same files, and descriptions that read the same."""
    if digest_folder(folder) != digest_folder(original):
        return False
    try:
        return ReleaseFile.read(folder) == ReleaseFile.read(original)
    except PmloptError:
        return False


def run_folder(rng: np.random.Generator, place: Path) -> tuple[str, str]:
    """Change the folder of a release, and check it."""
    folders = [place / "folders" / name for name in FOLDERS]
    original = folders[int(rng.integers(len(folders)))]
    folder = place / "changed"
    shutil.copytree(original, folder)
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    if rng.random() < 0.5:
        done = change_json(folder / DESCRIPTION, rng)
    else:
        target = found[int(rng.integers(len(found)))]
        as_json = target.suffix == ".json" and rng.random() < 0.5
        change = change_json if as_json else CHANGES[int(rng.integers(len(CHANGES)))]
        done = change(target, rng)
    if rng.random() < 0.5:
        digest_again(folder)
        done += ", digested again"
    done = f"{original.name}: {done}"
    if is_unchanged(folder, original):
        return "unchanged", done
    try:
        verdict = check(folder)
    except PmloptError:
        return "refused", done
    return ("found" if verdict.failures else "accepted"), done


EVERY = {"folder": run_folder, **KINDS}
"""What is changed, with the function that changes one and returns how that ended."""


def run(seed: int, number: int, kind: str, place: Path) -> tuple[str, str]:
    """Change one file or folder of a kind, and return what came of it with a description of the change."""
    rng = np.random.default_rng([seed, number])
    shutil.rmtree(place / "changed", ignore_errors=True)
    try:
        end, done = EVERY[kind](rng, place)
    except Exception:
        return "traceback", f"{number}: {kind}\n{traceback.format_exc()}"
    return end, f"{number}: {kind}: {done}"


def mutate(
    seed: int, instances: int, kinds: Sequence[str] = tuple(EVERY)
) -> tuple[Counter[str], list[str]]:
    """Change so many, the kinds in turn; return how they ended, and those that must not have ended so."""
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    where = MEMORY if MEMORY.exists() else None
    with tempfile.TemporaryDirectory(dir=where) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(name)
        if "folder" in kinds:
            (place / "folders").mkdir()
            for folder in make_folders(place / "folders"):
                assert not check(folder).failures
        if set(kinds) & KINDS.keys():
            make_states(place)
        for number in range(instances):
            kind = kinds[number % len(kinds)]
            end, done = run(seed, number, kind, place)
            ends[f"{kind} {end}"] += 1
            if end in ("accepted", "traceback"):
                wrong.append(f"{end}: {done}")
    return ends, wrong


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=list(EVERY), choices=list(EVERY))
    asked = parser.parse_args()
    ends, wrong = mutate(asked.seed, asked.instances, asked.kinds)
    told = "\n".join(f"{end}: {number}" for end, number in sorted(ends.items()))
    sys.stdout.write(
        "\n".join([*wrong, told, f"{len(wrong)} accepted, or ended in a traceback"]) + "\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
