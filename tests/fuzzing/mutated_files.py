"""Files of every kind that pmlopt reads, changed at random: each is read or refused, and nothing else.

A reader is a name, a file that it takes, and the function that reads it and uses what it found. What ends in
an error that is none of pmlopt's would end a command with exit code 70.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import io
import json
import re
import shutil
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import mutate_releases
import numpy as np
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
from click.testing import CliRunner
from fuzzing.random_designs import FalseClaimError
from mutate_state import change_array, change_content, change_value, make_states

from pmlopt import LDP, PML, IIDPrior, Mechanism, Prior, Secret, design, solve
from pmlopt.cli import main
from pmlopt.cli.program_audit import load_traces
from pmlopt.cli.reading import (
    read_constraint,
    read_distance,
    read_gains,
    read_mechanism,
    read_prior,
)
from pmlopt.core.letter_files import read_letters
from pmlopt.core.matrices.formats import FORMATS
from pmlopt.errors import PmloptError
from pmlopt.library.instances import load as load_problem
from pmlopt.model.utility import CoordinateLoss
from pmlopt.publishing.plans import read_plan
from pmlopt.releases.array_files import read_digest
from pmlopt.releases.loading import load
from pmlopt.tables import counts_by_column, open_table
from pmlopt.tables.reading import read_texts
from pmlopt.verification import verifier
from pmlopt.verification.verify_saved import load_with_verdict

PEOPLE = {
    "income": ["low", "high", "low", "medium", "high", "low"],
    "age": [30, 41, 30, None, 52, 30],
    "ill": [True, False, False, True, False, True],
}
MATRIX = Mechanism([[0.75, 0.25], [0.2, 0.8]], ["no", "yes"], ["a", "b"])
PRIOR = Prior.from_counts({"no": 6, "yes": 4})
TOKENS = (
    "nan", "inf", "-1", "1e400", "1e-400", "0", "", "1,5", "1" + "0" * 5000, "\0", '"', "'", ";", "\t", "\r",
    "(1, 2)", "((((", "[" * 200, "NA", "True", "\ufeff", "\u2028", "é", "50%", "0x10", "1_000", "=1+1",
)  # fmt: skip
"""What a word or number of a text becomes."""


CELLS: Mapping[str, Any] = {
    "lists": pyarrow.array([[1], [], None]),
    "structs": pyarrow.array([{"a": 1}, None]),
    "maps": pyarrow.array([[("a", 1)], None], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    "bytes": pyarrow.array([b"\xff", b"", None]),
    "decimals": pyarrow.array([Decimal("1.50"), Decimal("2"), None]),
    "wide decimals": pyarrow.array([Decimal(10) ** 40, Decimal(1)], pyarrow.decimal256(60, 2)),
    "dates": pyarrow.array([date(2026, 1, 1), None]),
    "times": pyarrow.array([datetime(2026, 1, 1, tzinfo=UTC), None]),
    "spans": pyarrow.array([timedelta(1), None]),
    "nulls": pyarrow.nulls(2),
    "empty texts": pyarrow.array(["", "a", None]),
    "numbers": pyarrow.array([np.nan, np.inf, -0.0, 1e308, None]),
    "halves": pyarrow.array(np.array([0.5, 1], dtype=np.float16)),
    "large": pyarrow.array([2**64 - 1, 0], pyarrow.uint64()),
    "truths": pyarrow.array([True, False, None]),
    "ordered": pyarrow.DictionaryArray.from_arrays([1, 0, None], ["b", "a"], ordered=True),
    "twice": pyarrow.DictionaryArray.from_arrays(
        [1, 0, 2], ["a", "a", None], ordered=True, safe=False
    ),
    "no text": pyarrow.array([b"\xff", b"a"]).view(pyarrow.string()),
}
"""What the cells of a column become."""


# ------------------------------------------------------------ changes


def change_text(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a word or a line of a text."""
    text = content.decode("utf-8", "surrogateescape")
    kind = str(rng.choice(["word", "word", "drop", "double", "swap", "blank"]))
    if kind == "word":
        words = list(re.finditer(r"[\w.+-]+|$", text))
        found = words[int(rng.integers(len(words)))]
        token = TOKENS[int(rng.integers(len(TOKENS)))]
        text = text[: found.start()] + token + text[found.end() :]
    else:
        lines = text.splitlines(keepends=True) or [""]
        one, other = rng.integers(len(lines), size=2).tolist()
        if kind == "drop":
            del lines[one]
        elif kind == "double":
            lines.insert(one, lines[other])
        elif kind == "swap":
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines.insert(one, "\n")
        text = "".join(lines)
    return text.encode("utf-8", "surrogateescape")


def change_record(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a value of JSON, which may be preceded by nothing else."""
    data = [json.loads(content)]
    change_value(data, rng)
    return json.dumps(data[0] if data else None).encode()


def change_archive(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a member of a ZIP archive: its bytes, its name, or that it is there; its check sum is right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place = int(rng.integers(len(members)))
    name, held = members[place]
    kind = str(rng.choice(["content", "content", "content", "name", "drop", "double", "add"]))
    if kind == "content":
        members[place] = name, change_member(held, rng)
    elif kind == "name":
        members[place] = str(rng.choice(["x.npy", "../x", "x.txt", "about", name.upper()])), held
    elif kind == "drop":
        del members[place]
    elif kind == "double":
        members.append(members[place])
    else:
        members.append((str(rng.choice(["note.txt", "x.npy", "a/b.npy"])), b"no array"))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for one, data in members:
            archive.writestr(one, data)
    return stream.getvalue()


def change_member(content: bytes, rng: np.random.Generator) -> bytes:
    """Change an array of numpy, JSON that is held in one, a text, or bytes."""
    if not content.startswith(b"\x93NUMPY"):
        return (change_text if rng.random() < 0.7 else partial(change_bytes, times=1))(content, rng)
    if rng.random() < 0.2:
        return change_bytes(content, rng, times=1)
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.dtype == np.uint8 and array.tobytes().lstrip().startswith(b"{"):
        array = np.frombuffer(change_record(array.tobytes(), rng), dtype=np.uint8)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers that a type does not hold
            array = change_array(array, rng)[0]
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
    return stream.getvalue()


def change_columns(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a column of a Parquet or Arrow file: its name, its type, its cells, or that it is there."""
    is_parquet = content.startswith(b"PAR1")
    source = io.BytesIO(content)
    table = (pyarrow.parquet if is_parquet else pyarrow.feather).read_table(source)
    place = int(rng.integers(table.num_columns))
    kind = str(
        rng.choice(["cells", "cells", "cells", "name", "drop", "double", "rows", "metadata"])
    )
    name = table.column_names[place]
    if kind == "cells":
        cells = list(CELLS.values())[int(rng.integers(len(CELLS)))]
        rows = pyarrow.array([k % len(cells) for k in range(table.num_rows)], pyarrow.int64())
        table = table.set_column(place, name, cells.take(rows))
    elif kind == "name":
        names = ["", "income", "__index_level_0__", "\u202e", "count", "input", "a\0b"]
        names = [
            str(rng.choice(names)) if k == place else one
            for k, one in enumerate(table.column_names)
        ]
        table = table.rename_columns(names)
    elif kind == "drop":
        table = table.remove_column(place)
    elif kind == "double":
        table = table.append_column(name, table.column(place))
    elif kind == "rows":
        table = table.slice(0, int(rng.integers(table.num_rows)))
    else:
        table = table.replace_schema_metadata(
            {b"pandas": bytes(rng.choice([b"{", b"[]", b"null", b'{"index_columns": 1}']))}
        )
    stream = io.BytesIO()
    try:
        if is_parquet:
            pyarrow.parquet.write_table(table, stream)
        else:
            pyarrow.feather.write_feather(table, stream, compression="uncompressed")
    except (pyarrow.ArrowException, OSError):  # the format has no such column
        return change_bytes(content, rng)
    return stream.getvalue()


def change_bytes(content: bytes, rng: np.random.Generator, times: int | None = None) -> bytes:
    """Change bytes once or a few times."""
    for _ in range(int(rng.integers(1, 4)) if times is None else times):
        content = change_content(content, rng)[0]
    return content


def change_file(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a file: by what it is in most cases, else by its bytes."""
    if rng.random() < 0.25:
        return change_bytes(content, rng)
    if content.startswith(b"PK"):
        return change_archive(content, rng)
    if content.startswith(b"\x1f\x8b"):
        return gzip.compress(change_file(gzip.decompress(content), rng), 1, mtime=0)
    if content.startswith(b"\x93NUMPY"):
        return change_member(content, rng)
    if content.startswith((b"PAR1", b"ARROW1")):
        return change_columns(content, rng)
    if (
        content.lstrip().startswith((b"{", b"["))
        and content.count(b"\n{") == 0
        and rng.random() < 0.8
    ):
        return change_record(content, rng)
    try:
        content.decode()
    except UnicodeDecodeError:
        return change_bytes(content, rng)
    return change_text(content, rng)


# ------------------------------------------------------------ files


def write_text(text: str) -> Callable[[Path], None]:
    """Return the function that writes a text."""

    def write(path: Path) -> None:
        path.write_text(text, "utf-8")

    return write


def write_matrix(path: Path) -> None:
    """Write a mechanism in the format of the ending."""
    MATRIX.save(path)


def write_result(path: Path) -> None:
    """Write a design with its certificate."""
    solve(design(PRIOR, PML(0.3), "hamming")).save(path)


def write_orbits(path: Path) -> None:
    """Write a design by orbits."""
    solve(design(IIDPrior([0.7, 0.3], 4), LDP(0.8), CoordinateLoss([[0, 1], [1, 0]]))).save(path)


def write_sampler(path: Path, options: str = "--bits 53") -> None:
    """Write the generated source code of a sampler, or a workbook."""
    MATRIX.save(path.parent / "m.json")
    run_command(f"export {path.parent / 'm.json'} {options} -o {path}")


def write_sampler_workbook(path: Path) -> None:
    """Write a workbook that samples."""
    write_sampler(path, "--to spreadsheet --bits 20")


def ordered_people() -> pandas.DataFrame:
    """Return people, one column of them an ordered category."""
    frame = pandas.DataFrame(PEOPLE)
    scale = pandas.CategoricalDtype(["low", "medium", "high"], ordered=True)
    return frame.astype({"income": scale})


def write_json_lines(path: Path) -> None:
    """Write people as JSON Lines."""
    rows = [dict(zip(PEOPLE, row, strict=True)) for row in zip(*PEOPLE.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


PEOPLE_TEXT = pandas.DataFrame(PEOPLE).to_csv(index=False)
PLAN = """\
total = 2.0
drop = ["age", "ill"]

[release.income]
epsilon = 0.5
utility = "estimation-error"
"""
PROBLEM = """\
id = "file"
title = "Two letters, first privacy region, balanced accuracy"
builder = "design"

[source]
cite = "grosse2024extremal"
where = "Theorem 2"

[params]
prior = { probabilities = [0.6, 0.4] }
privacy = { name = "pml", epsilon = { log = "5/4" } }
utility = { kind = "balanced-match" }

[expected]
basis = "theorem"
relation = "=="
value = 1.25
rtol = 1e-7
"""


# ------------------------------------------------------------ readers


def run_command(line: str) -> None:
    """Run a command in process; raise what no command may raise."""
    result = CliRunner().invoke(main, line.split())
    if result.exit_code not in (0, 1, 2, 3):
        raise RuntimeError(f"exit code {result.exit_code}: {result.output[-600:]}")


def count_file(path: Path) -> None:
    """Count all columns of a data file, and read them as text."""
    with open_table(path) as table:
        names = list(dict.fromkeys(table.names))
    counts_by_column(path, names, "letter")
    with open_table(path) as table:
        read_texts(table, names)


def read_matrix_file(path: Path) -> None:
    """Read a mechanism as each command does, and its metadata."""
    refused = None
    for read in (read_mechanism, Mechanism.load, load):
        try:
            read(path)
        except PmloptError as error:
            refused = error
    if refused is not None:
        raise refused


def audit_matrix(path: Path) -> None:
    """Audit a matrix at the shell."""
    prior = path.with_name("prior-of-audits.csv")
    prior.write_text("letter,count\nno,60\nyes,40\n")
    run_command(f"audit {path} --prior {prior} --epsilon 0.5 --json")


def verify_result(path: Path) -> None:
    """Verify a saved result, by pmlopt and by the script that stands alone."""
    if path.suffix == ".json":
        with contextlib.redirect_stdout(io.StringIO()):
            verifier.main(str(path))  # type: ignore[no-untyped-call]
    load_with_verdict(path)


def use_problem(path: Path) -> None:
    """Read a problem file, and build its program."""
    load_problem(path).program()


def use_plan(path: Path) -> None:
    """Read a plan, and make its mechanisms for the people."""
    read_plan(path).make_mechanisms(PEOPLE, "drop")


def read_sampler(path: Path) -> None:
    """Read generated source code or a workbook, and what they sample."""
    run_command(f"verify {path} --of {path.with_name('m.json')}")


Reader = tuple[str, Callable[[Path], Any], Callable[[Path], Any]]


def read_gain_table(path: Path) -> None:
    """Read gains for the letters no and yes."""
    read_gains(path, PRIOR)


def read_distance_table(path: Path) -> None:
    """Read distances between the letters no and yes."""
    read_distance(str(path), PRIOR)


def read_zeros(path: Path) -> None:
    """Read which entries of a matrix are zero."""
    read_constraint(f"zeros={path}", ["no", "a"])


def write_gzip(path: Path) -> None:
    """Write people as compressed CSV."""
    path.write_bytes(gzip.compress(PEOPLE_TEXT.encode(), mtime=0))


READERS: Mapping[str, Reader] = {
    "prior": (
        "p.csv",
        write_text("letter,count\nno,60\nyes,40\n"),
        partial(read_prior, rounded=True),
    ),
    "shares": ("p.csv", write_text("letter;share\nno;0,6\nyes;0,4\n"), read_prior),
    "counts": ("c.csv", write_text("income\tage\tcount\nlow\t30\t5\nhigh\t40\t3\n"), read_letters),
    "counts-json": ("c.json", write_text('{"no": 60, "yes": 40}'), Prior.from_counts),
    "counts-parquet": (
        "c.parquet",
        lambda path: pandas.DataFrame({"letter": ["no", "yes"], "count": [6, 4]}).to_parquet(path),
        Prior.from_counts,
    ),
    "joint-law": ("s.csv", write_text(",young,old\nill,1,3\nwell,4,2\n"), Secret.load),
    "pairs": ("s.csv", write_text("ill,age,count\nno,30,4\nyes,30,1\nno,40,2\n"), Secret.load),
    "gains": (
        "g.csv",
        write_text(";no;yes\nno;1,5;0\nyes;0;1\n"),
        read_gain_table,
    ),
    "distances": (
        "d.csv",
        write_text(",no,yes\nno,0,1\nyes,1,0\n"),
        read_distance_table,
    ),
    "zeros": (
        "z.csv",
        write_text("letter,output\nno,a\n"),
        read_zeros,
    ),
    "traces": (
        "t.csv",
        write_text("input,trace,count\na,x,1\na,y,3\nb,x,2\nb,y,2\n"),
        load_traces,
    ),
    "data-csv": ("d.csv", write_text(PEOPLE_TEXT), count_file),
    "data-gzip": (
        "d.csv.gz",
        write_gzip,
        count_file,
    ),
    "data-lines": ("d.jsonl", write_json_lines, count_file),
    "data-parquet": ("d.parquet", lambda path: ordered_people().to_parquet(path), count_file),
    "data-arrow": (
        "d.arrow",
        lambda path: pyarrow.feather.write_feather(
            ordered_people(), path, compression="uncompressed"
        ),
        count_file,
    ),
    **{f"matrix{ending}": (f"m{ending}", write_matrix, read_matrix_file) for ending in FORMATS},
    "audit": ("m.csv", write_matrix, audit_matrix),
    "result-json": ("r.json", write_result, verify_result),
    "result-npz": ("r.npz", write_result, verify_result),
    "orbits": ("o.json", write_orbits, verify_result),
    "problem": ("file.toml", write_text(PROBLEM), use_problem),
    "plan": ("plan.toml", write_text(PLAN), use_plan),
    "sampler-js": ("m.js", write_sampler, read_sampler),
    "sampler-workbook": (
        "m.xlsx",
        partial(write_sampler, options="--to spreadsheet --bits 20"),
        read_sampler,
    ),
    "ledger-digest": ("l.npz", write_matrix, read_digest),
}
"""Of each kind of file: its name, what writes a whole one, and what reads it."""

STATES = ("folder", "draft", "publication", "ledger", "streams", "crowd")
"""Kinds of `mutate_releases.py`: release folders, journals of drafts, ledgers, streams."""


@cache
def make_place() -> Path:
    """Make the folder that all files are in; it goes when the process ends."""
    memory = mutate_releases.MEMORY
    place = Path(tempfile.mkdtemp(dir=memory if memory.exists() else None))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@cache
def make_whole(name: str) -> tuple[Path, bytes]:
    """Write the whole file of a reader; return its path and its content."""
    file, write, read = READERS[name]
    folder = make_place() / name
    folder.mkdir()
    write(folder / file)
    try:
        read(folder / file)
    except PmloptError as error:
        raise AssertionError(f"the whole file of {name} is refused: {error}") from None
    return folder / file, (folder / file).read_bytes()


@cache
def make_state() -> Path:
    """Make release folders, drafts, ledgers and streams."""
    place = make_place() / "state"
    (place / "folders").mkdir(parents=True)
    mutate_releases.make_folders(place / "folders")
    make_states(place)
    return place


def describe_failure() -> str:
    """Describe the error that is handled: its last line of pmlopt, and what it says."""
    _, error, tail = sys.exc_info()
    frames = [one for one in traceback.extract_tb(tail) if "/pmlopt/" in one.filename]
    last = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "outside of pmlopt"
    return f"{last}: {type(error).__name__}: {str(error)[-800:]}"


def read_mutated(name: str, rng: np.random.Generator) -> str:
    """Change the file of a reader and read it; return how that ended.

    Raises:
        FalseClaimError: it ended in an error that is none of pmlopt's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path, whole = make_whole(name)
        path.write_bytes(change_file(whole, rng))
        try:
            READERS[name][2](path)
        except PmloptError as error:
            return f"refused ({type(error).__name__})"
        except Exception:
            raise FalseClaimError(describe_failure()) from None
    return "read"


def read_state(kind: str, rng: np.random.Generator) -> str:
    """Change a release folder, a journal, a ledger or streams, and go on from it; return how that ended.

    Raises:
        FalseClaimError: the change was accepted, or ended in an error that is none of pmlopt's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = make_state()
        shutil.rmtree(place / "changed", ignore_errors=True)
        try:
            end, done = mutate_releases.EVERY[kind](rng, place)
        except Exception:
            raise FalseClaimError(describe_failure()) from None
    if end == "accepted":
        raise FalseClaimError(f"accepted: {done}")
    return end


KINDS: Mapping[str, Callable[[np.random.Generator], str]] = {
    **{f"read-{name}": partial(read_mutated, name) for name in READERS},
    **{f"read-{kind}": partial(read_state, kind) for kind in STATES},
}
"""Readers by name, for `tests/fuzz.py`; each makes one changed file and reads it."""
