"""Files of every kind that pmlopt reads, changed at random: each is read or refused, and nothing else.

A reader is a name, a file that it takes, and the function that reads it and uses what it found. What ends in
an error that is none of pmlopt's would end a command with exit code 70.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import hmac
import io
import json
import shutil
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import highspy
import mutate_releases
import numpy as np
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
from click.testing import CliRunner
from fuzzing.file_changes import change_file
from fuzzing.random_designs import FalseClaimError
from mutate_state import make_states
from solution_texts import COLUMNS, FORMS, GLPSOL

from pmlopt import (
    LDP,
    PML,
    IIDPrior,
    Mechanism,
    Prior,
    Program,
    Secret,
    certify_solution,
    design,
    solve,
)
from pmlopt.cli import main
from pmlopt.cli.export import read_source
from pmlopt.cli.program_audit import iterate_samples, load_traces
from pmlopt.cli.reading import (
    read_constraint,
    read_distance,
    read_gains,
    read_mechanism,
    read_prior,
)
from pmlopt.core.files.letter_files import read_letters
from pmlopt.core.matrices.formats import FORMATS
from pmlopt.data.samplers.languages import LANGUAGES
from pmlopt.errors import PmloptError
from pmlopt.library.instances import load as load_problem
from pmlopt.model.utility import CoordinateLoss
from pmlopt.publishing.plans import read_plan
from pmlopt.releases.accounts.array_files import read_digest
from pmlopt.releases.estimation import leakage_from_samples
from pmlopt.releases.loading import load
from pmlopt.solvers.solution_files import read_solution
from pmlopt.sweeps.journal import SweepJournal
from pmlopt.sweeps.runner import solve_point
from pmlopt.sweeps.table import Points, SweepRow
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


MATRIX_READERS: Sequence[Callable[[Path], Any]] = (read_mechanism, Mechanism.load, load)
"""How commands read a mechanism, with its metadata or without."""


def read_matrix_file(path: Path) -> None:
    """Read a mechanism in one of the ways of commands: by the content, since a workbook takes long."""
    MATRIX_READERS[zlib.crc32(path.read_bytes()) % len(MATRIX_READERS)](path)


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


def write_journal(path: Path) -> None:
    """Write the journal of a sweep, with two of its three points."""
    journal = open_journal(path)
    for position in range(2):
        answer = solve_point(make_point_design, POINTS[position], {}, False)
        journal.add(position, SweepRow(POINTS[position], **answer.entries))
    journal.close()


POINTS: Points = tuple({"epsilon": one} for one in (0.1, 0.2, 0.3))


def make_point_design(epsilon: float) -> Program[Any]:
    """Make the program of a point."""
    return design(PRIOR, PML(epsilon), "hamming")


def open_journal(path: Path) -> SweepJournal:
    """Open the journal of a sweep beside the table that it will be."""
    return SweepJournal(
        path.with_suffix(""), POINTS, {"builder": "b", "options": {"solver": "auto"}}
    )


def read_journal(path: Path) -> None:
    """Go on with a sweep from its journal."""
    open_journal(path).close()


def read_signed_journal(path: Path) -> None:
    """Go on from a journal whose lines are signed again, as a forger can."""
    key, *lines = path.read_bytes().splitlines(keepends=True) or [b""]
    texts = [line.rpartition(b",")[0] + b"\n" for line in lines]
    signed = [
        text[:-1] + f",{hmac.digest(key.strip(), text, 'sha256').hex()}\n".encode()
        for text in texts
    ]
    path.write_bytes(key + b"".join(signed))
    read_journal(path)


@cache
def make_point_program() -> Program[Any]:
    """Make the one program whose solutions are read."""
    return make_point_design(0.3)


def write_solution_file(path: Path) -> None:
    """Write the columns of the optimum by name, as solvers do."""
    program = make_point_program()
    program.write_mps(path.with_suffix(".mps"))
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(path.with_suffix(".mps")))
    solver.run()
    solver.writeSolution(str(path), 0)


def take_solution_file(path: Path) -> None:
    """Certify the solution that a file holds."""
    certify_solution(make_point_program(), path)


def read_columns(path: Path) -> None:
    """Read the columns that a solver wrote."""
    read_solution(path).arrange(list(COLUMNS))


def list_samples(path: Path, prior: Prior | None = None) -> None:
    """Read the samples of a black box, and what they show."""
    leakage_from_samples(list(iterate_samples(path, prior)), prior=prior)


def read_sampler(path: Path) -> None:
    """Read generated source code or a workbook, and compare what they sample."""
    read_source(path).compare(MATRIX)


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
    **{
        f"sampler-{name}": (f"m{language.ending}", write_sampler, read_sampler)
        for name, language in LANGUAGES.items()
    },
    "sampler-xlsform": (
        "m.xlsx",
        partial(write_sampler, options="--to xlsform --bits 20"),
        read_sampler,
    ),
    "sampler-workbook": (
        "m.xlsx",
        partial(write_sampler, options="--to spreadsheet --bits 20"),
        read_sampler,
    ),
    "ledger-digest": ("l.npz", write_matrix, read_digest),
    "sweep-journal": ("t.csv.part", write_journal, read_journal),
    "sweep-journal-signed": ("t.csv.part", write_journal, read_signed_journal),
    "samples": ("s.txt", write_text("output\nx\ny\nx\n"), list_samples),
    "sample-pairs": (
        "s.csv",
        write_text('letter,output\nno,x\n"yes",y\nno,y\n'),
        partial(list_samples, prior=PRIOR),
    ),
    **{
        f"solution-of-{name}": ("x.sol", write_text(text), read_columns)
        for name, text in {**FORMS, "glpsol": GLPSOL}.items()
    },
    "solution": ("x.sol", write_solution_file, take_solution_file),
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
