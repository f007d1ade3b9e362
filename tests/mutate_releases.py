"""Random changes of the folders of releases, none of which may be accepted or end in a traceback.

`python tests/mutate_releases.py --instances 2000 --seed 1` changes so many folders, each in one way: a value,
key or row of the description or of a mechanism, bytes of any file, a file that is missing, added or moved;
half of them with the digests computed again, as a forger would. It prints how they ended, and exits with 1
where `check` accepts a change or raises an error of another kind. An instance is known by the seed and its
number.
"""

from __future__ import annotations

import argparse
import copy
import json
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt import PML, Mechanism, design, solve
from pmlopt.errors import PmloptError
from pmlopt.publishing import check, release, stated_prior
from pmlopt.publishing.folder import DESCRIPTION, ReleaseFile, digests_of

JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**53, 2**70, 0.5, -0.0, 1e308, "", "x", "../x", "/etc/passwd", "report.md",
    "0.0.9", "99.0", "released.csv", [], [[]], [1], ["ill"], {}, {"a": 1}, "\u202e", "<script>x</script>",
)  # fmt: skip
"""What a value of a description becomes."""


def make_folders(place: Path) -> list[Path]:
    """Make the folders that are changed: a design, two columns with one in clear, and a tuple of columns."""
    rng = np.random.default_rng(0)
    n = 300
    ill = rng.choice(["no", "yes"], n, p=[0.7, 0.3])
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    town = np.where(rng.random(n) < 0.4, "east", "west")
    data = {"ill": ill.tolist(), "sex": sex.tolist(), "town": town.tolist()}
    counts: dict[Any, int] = {letter: int((ill == letter).sum()) for letter in ("no", "yes")}
    designed = solve(design(stated_prior(counts), PML(0.3), "hamming"))
    flip = Mechanism([[0.7, 0.3], [0.3, 0.7]], ["f", "m"], ["f", "m"])
    pairs = [(a, b) for a in ("no", "yes") for b in ("f", "m")]
    tied = Mechanism(0.4 * np.eye(4) + 0.15, pairs, pairs)
    release(data, {"ill": designed}, place / "design", drop=["sex", "town"], issuer="Office")
    release(data, {"ill": designed, "sex": flip}, place / "kept", keep=["town"], total=5.0)
    release(data, {("ill", "sex"): tied}, place / "tuple", drop=["town"], exact_counts=True)
    return [place / "design", place / "kept", place / "tuple"]


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of each value within plain data."""
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(one for key, part in items for one in paths_in(part, (*path, key)))]


def change_json(path: Path, rng: np.random.Generator) -> str:
    """Change one value of a JSON file: to something else, to nothing, to its double, or to another number."""
    data = json.loads(path.read_text())
    places = [one for one in paths_in(data) if one]
    where = places[int(rng.integers(len(places)))]
    holder = data
    for key in where[:-1]:
        holder = holder[key]
    old = holder[where[-1]]
    kind = str(rng.choice(["junk", "remove", "double", "number", "shuffle", "add"]))
    if kind == "remove":
        del holder[where[-1]]
    elif kind == "double" and isinstance(holder, list):
        holder.insert(where[-1], copy.deepcopy(old))
    elif kind == "number" and isinstance(old, int | float) and not isinstance(old, bool):
        factors = [0.5, 2.0, 1.0 - 1e-9, 1.0 + 1e-6]
        holder[where[-1]] = (
            old + int(rng.choice([-10, -1, 1, 10]))
            if isinstance(old, int)
            else old * float(rng.choice(factors))
        )
    elif kind == "shuffle" and isinstance(old, list):
        rng.shuffle(old)
    elif kind == "add" and isinstance(holder, dict):
        holder["unknown"] = JUNK[int(rng.integers(len(JUNK)))]
    else:
        holder[where[-1]] = JUNK[int(rng.integers(len(JUNK)))]
    path.write_text(json.dumps(data))
    return f"{path.name} {where} {kind}"


def change_bytes(path: Path, rng: np.random.Generator) -> str:
    """Change a byte of a file, cut it, or repeat a part of it."""
    content = bytearray(path.read_bytes())
    place = int(rng.integers(len(content)))
    kind = str(rng.choice(["byte", "cut", "repeat", "empty"]))
    if kind == "byte":
        content[place] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del content[place:]
    elif kind == "repeat":
        content[place:place] = content[place : place + 40]
    else:
        content.clear()
    path.write_bytes(content)
    return f"{path.name} {kind} at {place}"


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


CHANGES: tuple[Callable[[Path, np.random.Generator], str], ...] = (change_bytes, change_rows, change_files)


def digest_again(folder: Path) -> None:
    """Write the digests of the files as they are now into the description, where it still is one."""
    path = folder / DESCRIPTION
    try:
        data = json.loads(path.read_text())
        data["digests"] = digests_of(folder)
        path.write_text(json.dumps(data))
    except (OSError, ValueError, TypeError, IndexError):
        return


def is_unchanged(folder: Path, original: Path) -> bool:
    """Return whether two folders have the same files, and descriptions that read the same."""
    if digests_of(folder) != digests_of(original):
        return False
    try:
        return ReleaseFile.read(folder) == ReleaseFile.read(original)
    except PmloptError:
        return False


def run(seed: int, number: int, folders: list[Path], place: Path) -> tuple[str, str]:
    """Change one folder, and return what came of it with a description of the change."""
    rng = np.random.default_rng([seed, number])
    original = folders[int(rng.integers(len(folders)))]
    folder = place / "changed"
    shutil.rmtree(folder, ignore_errors=True)
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
    done = f"{number}: {original.name}: {done}"
    if is_unchanged(folder, original):
        return "unchanged", done
    try:
        verdict = check(folder)
    except PmloptError:
        return "refused", done
    except Exception:
        return "traceback", f"{done}\n{traceback.format_exc()}"
    return ("found" if verdict.failures else "accepted"), done


def mutate(seed: int, instances: int) -> tuple[Counter[str], list[str]]:
    """Change so many folders, and return how they ended, with the changes that must not have ended so."""
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(name)
        folders = make_folders(place)
        for folder in folders:
            assert not check(folder).failures
        for number in range(instances):
            end, done = run(seed, number, folders, place)
            ends[end] += 1
            if end in ("accepted", "traceback"):
                wrong.append(f"{end}: {done}")
    return ends, wrong


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    ends, wrong = mutate(asked.seed, asked.instances)
    told = ", ".join(f"{number} {end}" for end, number in sorted(ends.items()))
    sys.stdout.write("\n".join([*wrong, told, f"{len(wrong)} accepted, or ended in a traceback"]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
