"""Random changes of what releases go on from: drafts and their journals, ledgers, streams.

A change may be signed again: the keys and digests of these files are no secret, so whoever writes one can
make it consistent. What must hold then is that no number of a release follows from the file where the data
decide it, that no file is moved but a draft within the folder that was named, and that nothing ends in a
traceback.
`mutate_releases.py` runs these kinds together with the folders of releases.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from pmlopt import PML, Chain, Ledger, Mechanism, Stream
from pmlopt.core.files import disk
from pmlopt.core.files.disk import digest_file
from pmlopt.core.files.drafts import Draft
from pmlopt.errors import PmloptError
from pmlopt.releases import StreamPopulation, Streams
from pmlopt.releases.accounts import array_files
from pmlopt.releases.accounts.publications import PendingPublication, compute_file_key
from pmlopt.releases.rows.applying import SUMMARY, apply_folder
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import FolderTable

JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**53, 2**70, 0.5, -0.0, 1e308, "", "x", "../x", "/etc/passwd", "report.md",
    "0.0.9", "99.0", "released.csv", [], [[]], [1], ["ill"], {}, {"a": 1}, "\u202e", "<script>x</script>",
)  # fmt: skip
"""What a value becomes."""

FILES, ROWS, MISSING = 3, 40, 10
"""Files of the data, their rows, and how many of these have no letter."""
MINE = {"secret.txt": b"secret", "important.txt": b"important"}
"""Files of the person who goes on, which nothing may change."""
RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
CHAIN = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["in", "out"])


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of each value within plain data."""
    items: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(one for key, part in items for one in paths_in(part, (*path, key)))]


def change_value(data: Any, rng: np.random.Generator) -> str:
    """Change one value of plain data: to something else, to nothing, to its double, or to another number."""
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
    return f"{where} {kind}"


def change_content(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Return bytes with one of them changed, cut, repeated in part, or empty, and which."""
    changed = bytearray(content)
    place = int(rng.integers(max(1, len(changed))))
    kind = str(rng.choice(["byte", "cut", "repeat", "empty"]))
    if kind == "byte" and changed:
        changed[place] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del changed[place:]
    elif kind == "repeat":
        changed[place:place] = changed[place : place + 40]
    else:
        changed.clear()
    return bytes(changed), f"{kind} at {place}"


def change_array(array: Any, rng: np.random.Generator) -> tuple[Any, str]:
    """Return an array with another number, type, or shape, and which."""
    kind = str(rng.choice(["number", "type", "drop", "double", "flat", "nothing"]))
    if kind == "number" and array.size:
        changed = array.copy()
        numbers: tuple[Any, ...] = (-1, 0, 1, 2**40, np.nan, np.inf, -np.inf, 1e-300)
        number = numbers[int(rng.integers(len(numbers)))]
        with np.errstate(all="ignore"):
            changed.flat[int(rng.integers(array.size))] = np.array(number).astype(array.dtype)
        return changed, f"{kind} {number}"
    if kind == "type":
        return array.astype(rng.choice(["<f4", "<i4", "<c16", "|u1"])), kind
    if kind == "drop" and len(array.shape) and len(array):
        return array[:-1], kind
    if kind == "double" and len(array.shape) and len(array):
        return np.concatenate([array, array[-1:]]), kind
    return (array.ravel() if kind == "flat" else array[:0]), kind


def changes_nothing_of_mine(folder: Path) -> bool:
    """Return whether the files of the person are as they were."""
    return {name: (folder / name).read_bytes() for name in MINE} == MINE


def write_mine(folder: Path) -> Path:
    """Write the files of the person into a new folder."""
    folder.mkdir(parents=True)
    for name, content in MINE.items():
        (folder / name).write_bytes(content)
    return folder


# ------------------------------------------------------------ drafts of folders, and their journals


class StopHereError(Exception):
    """Ends a release after some of its files."""


def apply_data(place: Path, out: Path, keep_order: bool, **options: Any) -> Any:
    """Release the data into a folder."""
    return apply_folder(
        FolderTable(place / "data"), [ColumnRelease(RESPONSE, ("ill",))], out, drop_missing=True,
        keep_order=keep_order, about={}, **options,
    )  # fmt: skip


def make_drafts(place: Path) -> None:
    """Make the data, and for each order the draft of a release that was interrupted after two files."""
    (place / "data").mkdir()
    for number in range(FILES):
        cells = [None if k < MISSING else ("no", "yes")[k % 2] for k in range(ROWS)]
        table = pyarrow.table({"ill": cells, "id": [f"{number}-{k}" for k in range(ROWS)]})
        pyarrow.parquet.write_table(table, place / "data" / f"f{number}.parquet")
    for keep_order in (False, True):
        done: list[int] = []

        def stop(rows: int, done: list[int] = done) -> None:
            done.append(rows)
            if len(done) == 2:
                raise StopHereError

        out = place / f"kept-{keep_order}" / "out"
        out.parent.mkdir()
        try:
            apply_data(place, out, keep_order, progress=stop)
        except StopHereError:
            continue
        raise AssertionError("the release was to be interrupted")


def signed(head: bytes, told: dict[str, Any]) -> bytes:
    """Return a line of a journal with the digest that its key gives."""
    plain = {name: value for name, value in told.items() if name != "digest"}
    digest = hmac.digest(head, json.dumps(plain).encode(), "sha256").hex()
    return json.dumps({**plain, "digest": digest}).encode()


def change_journal(draft: Path, rng: np.random.Generator) -> str:
    """Change the journal: a value of a line, signed again or not, its lines, or its bytes."""
    path = draft / "journal.jsonl"
    head, *lines = path.read_bytes().splitlines()
    kind = str(rng.choice(["line", "signed", "numbers", "swap", "double", "drop", "bytes", "head"]))
    one, other = rng.integers(len(lines), size=2).tolist()
    done = ""
    if kind in ("line", "signed", "numbers"):
        told = json.loads(lines[one])
        if kind == "numbers":
            name = str(rng.choice(["rows", "dropped"]))
            told[name] += int(rng.choice([-10, -1, 1, 10]))
        else:
            done = change_value(told, rng)
        lines[one] = json.dumps(told).encode() if kind == "line" else signed(head, told)
    elif kind == "swap":
        names = [json.loads(line)["file"] for line in lines]
        lines = [signed(head, {**json.loads(line), "file": name})
                 for line, name in zip(lines, reversed(names), strict=True)]  # fmt: skip
    elif kind == "double":
        lines.insert(one, lines[other])
    elif kind == "drop":
        del lines[one]
    elif kind == "head":
        head, done = change_content(head, rng)
    content = b"".join(line + b"\n" for line in (head, *lines))
    if kind == "bytes":
        content, done = change_content(content, rng)
    path.write_bytes(content)
    return f"journal {kind} {done}"


def change_drawn(draft: Path, rng: np.random.Generator) -> str:
    """Change a drawn file: its bytes, what it is, or its rows with a journal that agrees with them."""
    path = sorted((draft / "whole").iterdir())[int(rng.integers(2))]
    kind = str(rng.choice(["bytes", "remove", "link", "folder", "rows", "stray"]))
    done = ""
    if kind == "bytes":
        content, done = change_content(path.read_bytes(), rng)
        path.write_bytes(content)
    elif kind == "stray":
        (draft / str(rng.choice(["stray", "run-0", "whole/f9.parquet"]))).symlink_to(draft.parent)
    elif kind == "rows":
        count = int(
            rng.integers(0, ROWS - MISSING)
        )  # with as many rows it is a drawn file like any other
        pyarrow.parquet.write_table(
            pyarrow.table({"ill": ["no"] * count, "id": ["x"] * count}), path
        )
        journal = draft / "journal.jsonl"
        head, *lines = journal.read_bytes().splitlines()
        values = {"rows": count, "dropped": ROWS - count, "sha256": digest_file(path)}
        every = [json.loads(line) for line in lines]
        again = [
            signed(head, {**one, **values} if one["file"] == path.name else one) for one in every
        ]
        journal.write_bytes(b"".join(line + b"\n" for line in (head, *again)))
    else:
        path.unlink()
        if kind == "link":
            path.symlink_to(draft.parent / "secret.txt")
        elif kind == "folder":
            path.mkdir()
    return f"{path.name} {kind} {done}"


def run_draft(rng: np.random.Generator, place: Path) -> tuple[str, str]:
    """Change a draft, and go on with the release: its numbers must be those of the data."""
    keep_order = bool(rng.integers(2))
    home = write_mine(place / "changed")
    draft = home / ".pmlopt-draft-out"
    shutil.copytree(place / f"kept-{keep_order}" / ".pmlopt-draft-out", draft, symlinks=True)
    draft.chmod(0o700)
    done = (change_journal if rng.random() < 0.7 else change_drawn)(draft, rng)
    try:
        apply_data(place, home / "out", keep_order)
    except PmloptError:
        return ("refused" if changes_nothing_of_mine(home) else "accepted"), done
    told = json.loads((home / "out" / SUMMARY).read_text())
    ids = []
    for name, one in told["files"].items():
        rows = pyarrow.parquet.read_table(home / "out" / name)
        ids += rows["id"].to_pylist()
        if rows.num_rows != one["rows"] or digest_file(home / "out" / name) != one["sha256"]:
            return "accepted", done
        if keep_order and (one["rows"], one["dropped"]) != (ROWS - MISSING, MISSING):
            return "accepted", done
    expected = sorted(f"{number}-{k}" for number in range(FILES) for k in range(MISSING, ROWS))
    is_right = (
        (told["rows"], told["dropped"]) == (FILES * (ROWS - MISSING), FILES * MISSING)
        and sorted(ids) == expected
        and changes_nothing_of_mine(home)
        and sorted(path.name for path in home.iterdir()) == sorted([*MINE, "out"])
    )
    return ("resumed" if is_right else "accepted"), done


# ------------------------------------------------------------ ledgers, and the drafts of their releases


def make_ledger(place: Path) -> None:
    """Make a ledger that was interrupted before it published its last release."""
    home = place / "ledger"
    home.mkdir()
    book = Ledger([0.5, 0.5], people=3, total=2.0)
    book.record(RESPONSE.matrix, [0, 1, 0])
    book.record(RESPONSE.matrix, [1, 1, 0])
    book.save(home / "ledger.npz")


def begin_publication(home: Path) -> tuple[Path, bytes]:
    """Write the draft that the ledger is to publish; return its path and its content."""
    draft = Draft.create(home / "wave.csv", compute_file_key(home / "ledger.npz"))
    content = b"ill\nno\nyes\n"
    draft.partial_path.write_bytes(content)
    draft.seal()
    about, arrays, _, _ = array_files.read_arrays(home / "ledger.npz", "ledger", "pmlopt-ledger", 2)
    entry = vars(PendingPublication.describe(draft.complete_path, draft.target))
    array_files.write_arrays(home / "ledger.npz", {**about, "publishing": [dict(entry)]}, arrays)
    return draft.complete_path, content


def run_publication(rng: np.random.Generator, place: Path) -> tuple[str, str]:
    """Change what a ledger is to publish, or the draft: nothing else of the folder may move."""
    home = write_mine(place / "changed" / "home")
    shutil.copy(place / "ledger" / "ledger.npz", home / "ledger.npz")
    whole, content = begin_publication(home)
    kind = str(
        rng.choice(["entry", "content", "link", "target", "remove"], p=[0.6, 0.1, 0.1, 0.1, 0.1])
    )
    done = kind
    if kind == "entry":
        about, arrays, _, _ = array_files.read_arrays(
            home / "ledger.npz", "ledger", "pmlopt-ledger", 2
        )
        if rng.random() < 0.3:  # names of files that are there
            name = str(rng.choice(["draft", "target"]))
            chosen = (
                "../home/secret.txt",
                "secret.txt",
                "important.txt",
                "ledger.npz",
                ".",
                "..",
                "a/b",
            )
            about["publishing"][0][name] = chosen[int(rng.integers(len(chosen)))]
            done = f"{name} {about['publishing'][0][name]}"
        else:
            done = change_value(about["publishing"], rng)
        array_files.write_arrays(home / "ledger.npz", about, arrays)
    elif kind == "content":
        changed, done = change_content(content, rng)
        whole.write_bytes(changed)
    elif kind == "target":
        (home / "wave.csv").write_bytes(b"of another release")
    else:
        whole.unlink()
        if kind == "link":
            whole.symlink_to(home / "secret.txt")
    before = {path.name for path in home.iterdir()}
    end = "resumed"
    try:
        with Ledger.open(home / "ledger.npz", home) as book:
            if book.releases != 2:
                return "accepted", done
    except PmloptError:
        end = "refused"
    new = [path for path in home.iterdir() if path.name not in {*before, "ledger.npz"}]
    kept = (home / "wave.csv").read_bytes() == b"of another release" if kind == "target" else True
    is_right = (
        changes_nothing_of_mine(home)
        and kept
        and all(
            path.is_file() and not path.is_symlink() and path.read_bytes() == content
            for path in new
        )
        and [path.name for path in home.parent.iterdir()] == ["home"]
    )
    return (end if is_right else "accepted"), done


def use_ledger(path: Path) -> Any:
    """Read a ledger, use it, and return what it holds."""
    book = Ledger.load(path)
    levels = np.array(book.levels)
    if np.isnan(levels).any() or (levels < 0).any():
        raise AssertionError(f"the levels are {levels}")
    held = (book.initial, book.total, levels.tolist(), book.releases)
    book.requirement(person=0) if book.total is not None else None
    book.record(np.full((book.initial.size, 2), 0.5), [0] * book.people)
    book.save(path.with_name(f"again-{path.name}"))
    return held


def run_ledger(rng: np.random.Generator, place: Path) -> tuple[str, str]:
    """Change a ledger."""
    return run_arrays(rng, place / "ledger" / "ledger.npz", place, "pmlopt-ledger", 2, use_ledger)


def run_arrays(
    rng: np.random.Generator,
    original: Path,
    place: Path,
    kind: str,
    version: int,
    use: Callable[[Path], Any],
) -> tuple[str, str]:
    """Change a file of arrays: its bytes, or one of its parts with its digest computed again or not."""
    home = write_mine(place / "changed")
    path = home / original.name
    shutil.copy(original, path)
    about, arrays, digest, _ = array_files.read_arrays(path, "file", kind, version)
    how = str(rng.choice(["bytes", "about", "array", "absent"]))
    is_signed = how != "bytes" and bool(rng.integers(2))
    name = str(rng.choice(sorted(arrays)))
    done = f"{how} {name} signed={is_signed}: "
    if how == "bytes":
        content, text = change_content(path.read_bytes(), rng)
        path.write_bytes(content)
        done += text
    else:
        if how == "about":
            done += change_value(about, rng)
        elif how == "array":
            arrays[name], text = change_array(arrays[name], rng)
            done += text
        else:
            del arrays[name]
        if is_signed:
            try:
                array_files.write_arrays(path, about, arrays)
            except PmloptError:  # no JSON
                return "refused", done
        else:
            plain = np.frombuffer(
                disk.encode_json_bytes({**about, "digest": digest}), dtype=np.uint8
            )
            np.savez(path, about=plain, **arrays)
    return judge(path, original, use, is_signed, done)


def judge(
    path: Path, original: Path, use: Callable[[Path], Any], is_signed: bool, done: str
) -> tuple[str, str]:
    """Read a changed file: refused, as it was, or, where it was signed again, used without an error."""
    try:
        found = use(path)
    except PmloptError:
        return "refused", done
    if found == read_original(original, use):
        return "unchanged", done
    return ("read" if is_signed else "accepted"), done


@cache
def read_original(original: Path, use: Callable[[Path], Any]) -> Any:
    """Return what an unchanged file holds."""
    with tempfile.TemporaryDirectory() as folder:
        return use(Path(shutil.copy(original, folder)))


# ------------------------------------------------------------ streams


def make_streams(place: Path) -> None:
    """Make streams of two people, and a crowd of three."""
    stream = Stream(CHAIN, PML(0.4), "hamming")
    many = Streams(stream)
    moves: list[dict[Any, Any]] = [{"ann": "in", "bob": "out"}, {"ann": "in"}, {"bob": "in"}]
    for states in moves:
        many.release(states, seed=1)
    many.save(place / "streams.json")
    crowd = StreamPopulation(stream, people=3)
    for _ in range(2):
        crowd.release(["in", "out", "in"], seed=1)
    crowd.save(place / "crowd.npz")


def use_streams(path: Path) -> Any:
    """Read streams, use them, and return what they hold."""
    many = Streams.load(path)
    held = (many.people, dict(many.levels), many.new_stream.privacy.epsilon)
    if any(not level >= 0 for level in many.levels.values()):
        raise AssertionError(f"the levels are {many.levels}")
    many.release(dict.fromkeys(many.people or ("ann",), many.new_stream.chain.labels[0]), seed=2)
    many.save(path.with_name("again.json"))
    return held


def run_streams(rng: np.random.Generator, place: Path) -> tuple[str, str]:
    """Change streams: the bytes of the file, or a value with the digest computed again or not."""
    home = write_mine(place / "changed")
    path, original = home / "streams.json", place / "streams.json"
    data = json.loads(original.read_text())
    is_signed = False
    if rng.random() < 0.3:
        content, done = change_content(original.read_bytes(), rng)
    else:
        is_signed = bool(rng.integers(2))
        done = f"signed={is_signed}: {change_value(data, rng)}"
        if is_signed and isinstance(data, dict):
            data["digest"] = hashlib.sha256(disk.encode_json_bytes(data.get("streams"))).hexdigest()
        content = disk.encode_json_bytes(data)
    path.write_bytes(content)
    return judge(path, original, use_streams, is_signed, done)


def use_crowd(path: Path) -> Any:
    """Read a crowd, use it, and return what it holds."""
    crowd = StreamPopulation.load(path)
    levels = np.array(crowd.levels)
    if not (levels >= 0).all():
        raise AssertionError(f"the levels are {levels}")
    held = (levels.tolist(), crowd.time, [crowd.history(k) for k in range(len(levels))])
    crowd.release(["in"] * len(levels), seed=2)
    crowd.save(path.with_name("again.npz"))
    return held


def run_crowd(rng: np.random.Generator, place: Path) -> tuple[str, str]:
    """Change a crowd."""
    from pmlopt.releases.streams.population import FORMAT, POPULATION_FILE_VERSION

    return run_arrays(rng, place / "crowd.npz", place, FORMAT, POPULATION_FILE_VERSION, use_crowd)


KINDS: dict[str, Callable[[np.random.Generator, Path], tuple[str, str]]] = {
    "draft": run_draft,
    "publication": run_publication,
    "ledger": run_ledger,
    "streams": run_streams,
    "crowd": run_crowd,
}
"""What is changed, with the function that changes one and returns how that ended."""


def make_states(place: Path) -> None:
    """Make all that is changed."""
    make_drafts(place)
    make_ledger(place)
    make_streams(place)
