"""Releasing 10 million rows, beside a plain script of pyarrow and numpy; and what the sampler draws.

The plain script reads the whole file, draws by the inverse of the distribution in floating point, and writes.
The two run in turn as processes of their own; time is that of the processors, and memory the peak of the
process. Then the frequencies of 10^8 draws beside the integers of the matrix (chi-square), noise beside
OpenDP's, and 1,000 random tables through every format and back.

    python benchmarks/apply.py [--rows 10000000] [--draws 100000000] [--tables 1000] [--out FOLDER]
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from common import report, suite_parser

import pmlopt
from pmlopt import Mechanism
from pmlopt.core.display import get_figure_class
from pmlopt.data.sampling.categorical import RowSampler, SystemBits
from pmlopt.data.sampling.grid_noise import (
    choose_grid_step,
    draw_gaussian_noise,
    draw_laplace_noise,
)
from pmlopt.errors import InputError
from pmlopt.programs.exact.rounding import round_rows_to_grid
from pmlopt.programs.plots import save_figure
from pmlopt.releases.rows.applying import apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import CsvFormat, open_table

LEVELS = ("none", "low", "middle", "high", "very high")
PLAIN = """
import sys
import numpy, pyarrow, pyarrow.compute, pyarrow.csv, pyarrow.parquet
source, target, rule = sys.argv[1:]
inputs = {levels!r}
matrix = numpy.load(rule)
parquet = source.endswith("parquet")
table = pyarrow.parquet.read_table(source) if parquet else pyarrow.csv.read_csv(source)
rows = pyarrow.compute.index_in(table["level"], pyarrow.array(inputs)).to_numpy()
uniform = numpy.random.default_rng().random(len(rows))
drawn = (uniform[:, None] >= numpy.cumsum(matrix, axis=1)[rows][:, :-1]).sum(axis=1)
column = pyarrow.array(inputs).take(pyarrow.array(drawn))
table = table.set_column(table.schema.get_field_index("level"), "level", column)
pyarrow.parquet.write_table(table, target) if parquet else pyarrow.csv.write_csv(table, target)
""".replace("{levels!r}", repr(list(LEVELS)))


def rule() -> Mechanism:
    """Randomized response on five levels, on the grid."""
    return Mechanism(round_rows_to_grid(np.full((5, 5), 0.1) + np.eye(5) / 2), LEVELS, LEVELS)


def write_data(folder: Path, rows: int) -> None:
    """A CSV and a Parquet file of people."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    regions = pyarrow.array([f"region {region:02d}" for region in range(40)])
    table = pyarrow.table({
        "id": np.arange(rows),
        "level": pyarrow.array(LEVELS).take(pyarrow.array(rng.integers(0, 5, rows))),
        "region": regions.take(pyarrow.array(rng.integers(0, 40, rows))),
        "age": rng.integers(16, 100, rows),
    })  # fmt: skip
    pyarrow.csv.write_csv(table, folder / "people.csv")
    pyarrow.parquet.write_table(table, folder / "people.parquet")


@contextmanager
def data_folder(rows: int) -> Iterator[Path]:
    """Make a folder with the data of so many people and the rule."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # a process starts with the peak of the one that made it: the data are made elsewhere
        writer = get_context("spawn").Process(target=write_data, args=(folder, rows))
        writer.start()
        writer.join()
        rule().save(folder / "rule.json")
        yield folder


def apply_command(ending: str, *options: str) -> list[str]:
    """Return the command that applies the rule to the data in one format."""
    columns = ["--column", "level", "--keep", "id", "--keep", "region", "--keep", "age"]
    words = ["apply", "rule.json", f"people.{ending}", *columns, "-o", f"out.{ending}", *options]
    return [sys.executable, "-m", "pmlopt", *words]


OWN = Path(pmlopt.__file__).parent.parent
"""The checkout that is measured."""


def measured(command: list[str], folder: Path, checkout: Path = OWN) -> tuple[float, float, float]:
    """Seconds of the processors, seconds on the clock, and the peak memory in MiB of a process."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(checkout)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss / 1024


def race(rows: int, repeats: int, out: Path | None) -> None:
    """Both programs on both formats, in turn."""
    with data_folder(rows) as folder:
        np.save(folder / "rule.npy", rule().matrix)
        (folder / "plain.py").write_text(PLAIN)
        table: list[tuple[str, ...]] = []
        for ending in ("csv", "parquet"):
            source, target = f"people.{ending}", f"out.{ending}"
            ours = apply_command(ending)
            plain = [sys.executable, "plain.py", source, target, "rule.npy"]
            found = [(measured(plain, folder), measured(ours, folder)) for _ in range(repeats)]
            scripts, own = (
                [tuple(map(float, np.median(runs, axis=0)))] for runs in zip(*found, strict=True)
            )
            for program, (cpu, clock, memory) in (
                ("plain script", scripts[0]),
                ("pmlopt apply", own[0]),
            ):
                table.append((ending, program, f"{cpu:.2f}", f"{clock:.2f}", f"{memory:.0f}"))
            ratios = [ours_ / theirs for ours_, theirs in zip(own[0], scripts[0], strict=True)]
            table.append((ending, "ratio", *(f"{ratio:.2f}" for ratio in ratios)))
    report(
        out,
        "apply",
        ("format", f"{rows:,} rows", "processor [s]", "clock [s]", "peak [MiB]"),
        table,
    )
    if out is not None:
        _draw(table, out / "apply.png")


def _draw(table: Sequence[tuple[str, ...]], path: Path) -> None:
    """Bars of the two programs."""
    figure = get_figure_class()(figsize=(8, 3), layout="constrained")
    for axes, place, label in zip(
        figure.subplots(1, 2), (2, 4), ("processor [s]", "peak [MiB]"), strict=True
    ):
        bars = [row for row in table if row[1] != "ratio"]
        axes.barh([f"{row[0]}, {row[1]}" for row in bars], [float(row[place]) for row in bars])
        axes.set_xlabel(label)
    save_figure(figure, path)


def frequencies(draws: int, out: Path | None) -> None:
    """Chi-square of draws over the law of the matrix, for few and many outputs, on and off the grid."""
    from scipy.stats import chi2

    rng = np.random.default_rng(1)
    laws = {
        "5 outputs": rule().matrix[:1],
        "1/3, 2/3 (off the grid)": np.array([[1 / 3, 2 / 3]]),
        "1,000 outputs": round_rows_to_grid(rng.dirichlet(np.ones(1000), 1)),
    }
    table = []
    for name, matrix in laws.items():
        sampler, counts = RowSampler(matrix), np.zeros(matrix.shape[1], dtype=np.int64)
        begin = time.process_time()
        for start in range(0, draws, 10**6):
            rows = np.zeros(min(10**6, draws - start), dtype=np.int64)
            counts += np.bincount(sampler.draw_outputs(rows, SystemBits()), minlength=len(counts))
        seconds = time.process_time() - begin
        expected = matrix[0] / matrix[0].sum() * draws
        statistic = float(((counts - expected) ** 2 / expected).sum())
        freedom = len(counts) - 1
        table.append((name, f"{draws:,}", f"{statistic:.1f}", freedom, f"{chi2.sf(statistic, freedom):.3f}",
                      f"{seconds / draws * 1e9:.0f}"))  # fmt: skip
    head = ("row", "draws", "chi-square", "degrees of freedom", "p-value", "ns a draw")
    report(out, "apply-draws", head, table)


def noise(draws: int, out: Path | None) -> None:
    """The time of a draw of noise, beside numpy's and OpenDP's."""
    rng, bits = np.random.default_rng(2), SystemBits()
    ways: list[tuple[str, Callable[[], Any]]] = [
        ("discrete Laplace, step 1", lambda: draw_laplace_noise(3.0, 1.0, draws, bits)),
        (
            "discrete Laplace, fine step",
            lambda: draw_laplace_noise(3.0, choose_grid_step(3.0), draws, bits),
        ),
        ("discrete Gaussian, step 1", lambda: draw_gaussian_noise(3.0, 1.0, draws, bits)),
        (
            "discrete Gaussian, fine step",
            lambda: draw_gaussian_noise(3.0, choose_grid_step(3.0), draws, bits),
        ),
        ("numpy Laplace, in doubles", lambda: rng.laplace(0, 3.0, draws)),
        *_opendp(draws),
    ]
    table = []
    for name, draw in ways:
        draw()
        begin = time.process_time()
        draw()
        table.append((name, f"{(time.process_time() - begin) / draws * 1e9:.0f}"))
    report(out, "apply-noise", ("noise of scale 3", "ns a draw"), table)


def _opendp(draws: int) -> list[tuple[str, Callable[[], Any]]]:
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    found: list[tuple[str, Callable[[], Any]]] = []
    for name, kind, metric in (
        ("OpenDP discrete Laplace, step 1", dp.m.make_laplace, dp.l1_distance(T=int)),
        ("OpenDP discrete Gaussian, step 1", dp.m.make_gaussian, dp.l2_distance(T=float)),
    ):
        space = dp.vector_domain(dp.atom_domain(T=int)), metric
        measurement, zeros = kind(*space, scale=3.0), [0] * draws
        found.append((name, partial(measurement, zeros)))
    return found


def round_trips(tables: int, out: Path | None) -> None:
    """Random tables through the identity in every format: all cells are kept, or the table is refused."""
    import pyarrow
    import pyarrow.parquet

    rng, kept = random.Random(3), dict.fromkeys(("csv", "parquet"), 0)
    refused: dict[tuple[str, str], int] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(tables):
            columns = {f"column {k}": _column(rng) for k in range(rng.randint(1, 3))}
            pyarrow.parquet.write_table(pyarrow.table(columns), folder / "in.parquet")
            for kind in kept:
                try:
                    kept[kind] += _trip(folder, columns, kind)
                except InputError as error:
                    reason = type(error).__name__
                    refused[kind, reason] = refused.get((kind, reason), 0) + 1
    rows = [
        (kind, number, sum(n for (way, _), n in refused.items() if way == kind))
        for kind, number in kept.items()
    ]
    report(out, "apply-round-trips", (f"of {tables:,} tables", "kept", "refused"), rows)
    lost = [kind for kind, number, no in rows if number + no < tables]
    if lost:
        raise SystemExit(f"cells were lost without a word in {lost}")


def _column(rng: random.Random) -> list[Any]:
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: "".join(
            rng.choice('aB1 ,;"\n\r\tåß漢😀\u200b\u0301') for _ in range(rng.randint(1, 4))
        ),
        lambda: rng.randint(-(2**63), 2**63 - 1),
        lambda: rng.choice((rng.random(), rng.uniform(-1e300, 1e300), 5e-324, 1.0, -0.0)),
        lambda: rng.random() < 0.5,
        lambda: str((rng.choice("ab"), rng.randint(0, 3))),
    )
    kind = rng.choice(kinds)
    return [None if rng.random() < 0.1 else kind() for _ in range(6)]


def _trip(folder: Path, columns: dict[str, list[Any]], kind: str) -> int:
    """1 where every cell came back: with its type from Parquet, as its text from CSV."""
    import pyarrow.parquet

    secret = next(iter(columns))
    letters = list(dict.fromkeys(value for value in columns[secret] if value is not None))
    if None in columns[secret]:
        letters.append("")
    mechanism = Mechanism(np.eye(len(letters)), letters, letters)
    source, target = (
        folder / "in.parquet",
        folder / ("out.parquet" if kind == "parquet" else "out.csv"),
    )
    if kind != "parquet":  # the text of each cell, by another writer
        import pyarrow.csv

        pyarrow.csv.write_csv(pyarrow.parquet.read_table(source), folder / "in.csv")
        source = folder / "in.csv"
        texts = pyarrow.parquet.read_table(folder / "in.parquet")
        columns = {name: texts[name].cast(pyarrow.string()).to_pylist() for name in columns}
        letters = list(dict.fromkeys(cell or "" for cell in columns[secret]))
        mechanism = Mechanism(np.eye(len(letters)), letters, letters)
    with open_table(source) as table:
        apply_columns(table, [ColumnRelease(mechanism, (secret,))], target, keep_order=True)
    with open_table(target, CsvFormat(",")) as table:
        (batch,) = table.batches()
        back = []
        for place in range(len(table.names)):
            values, codes = batch.encode_column(place)
            back.append([values[code] for code in codes.tolist()])
        names = table.names
    expected = list(columns.values())
    if (
        kind == "parquet" and None in expected[0]
    ):  # with the letter "", labels of two kinds are text
        expected[0] = ["" if value is None else str(value) for value in expected[0]]
    return int(names == list(columns) and back == expected)


def main(argv: Sequence[str] | None = None) -> None:
    """Run all parts."""
    parser = suite_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--draws", type=int, default=100_000_000)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args(argv)
    quick = asked.quick
    race(100_000 if quick else asked.rows, 1 if quick else asked.repeats, asked.out)
    frequencies(10**6 if quick else asked.draws, asked.out)
    noise(10_000 if quick else 10**6, asked.out)
    round_trips(50 if quick else asked.tables, asked.out)


if __name__ == "__main__":
    main()
