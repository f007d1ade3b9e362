"""Releases inside engines beside a join-and-sample by hand: time, memory, and the law of what is drawn.

A column of 16 letters is released through a mechanism, and the engine counts the pairs of letter and output.
By hand, a floating-point number is drawn for each row and looked up among the cumulated probabilities. Each
measurement is a process of its own; time is that of the processors, and the counts of the release stand
beside the mechanism (chi-square). `arrow` takes generated record batches, 64 at a time, so that the input
needs no room. Then a task that is killed after it has drawn.

    python benchmarks/engines.py [--rows 1e6 1e7] [--batches 1e8] [--engines duckdb polars dask arrow spark]
                                 [--kills 20] [--out FOLDER]
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from common import report, suite_parser

from pmlopt import Mechanism
from pmlopt.programs.exact.rounding import round_rows_to_grid

SIZE = 16
LETTERS = [f"level {k:02d}" for k in range(SIZE)]
BATCH = 2**17
GROUPS = 64
"""Record batches that are there at a time."""
PARTS = 8


RULE = Mechanism(
    round_rows_to_grid(np.random.default_rng(0).dirichlet(np.ones(SIZE), SIZE)), LETTERS, LETTERS
)
"""Sixteen laws, on the grid of exported matrices."""


def by_hand(codes: Any) -> Any:
    """(n,) outputs for the rows of the matrix, by the inverse of the distribution in floating point."""
    inner = (
        np.cumsum(RULE.matrix, axis=1) + np.arange(SIZE)[:, None]
    )  # one ascending list for all rows
    places = np.searchsorted(
        inner.ravel(), codes + np.random.default_rng().random(len(codes)), side="right"
    )
    return np.clip(places - codes * SIZE, 0, SIZE - 1)


def in_duckdb(rows: int, hand: bool) -> Any:
    """Counts by a query, on letters that it makes."""
    import duckdb

    from pmlopt.adapters.duckdb import register

    connection = duckdb.connect()
    letters = (
        f"SELECT 'level ' || lpad((hash(i) % {SIZE})::VARCHAR, 2, '0') AS x FROM range({rows}) t(i)"
    )
    if hand:
        ends = np.cumsum(RULE.matrix, axis=1)
        ends[:, -1] = 1
        cells = [
            (x, y, float(ends[a, b] - RULE.matrix[a, b]), float(ends[a, b]))
            for a, x in enumerate(LETTERS)
            for b, y in enumerate(LETTERS)
        ]
        connection.execute("CREATE TABLE cells (x VARCHAR, y VARCHAR, low DOUBLE, high DOUBLE)")
        connection.executemany("INSERT INTO cells VALUES (?, ?, ?, ?)", cells)
        pairs = (
            f"SELECT x, y FROM (SELECT x, random() AS u FROM ({letters})) JOIN cells USING (x) "
            "WHERE u >= low AND u < high"
        )
    else:
        register(connection, "release", RULE)
        pairs = f"SELECT x, release(x) AS y FROM ({letters})"
    return connection.sql(f"SELECT x, y, count(*) FROM ({pairs}) GROUP BY ALL").fetchall()


def in_polars(rows: int, hand: bool) -> Any:
    """Counts by the streaming engine."""
    import polars as pl

    import pmlopt.adapters.expressions  # noqa: F401 -- registers the namespace

    numbers = (
        pl.LazyFrame()
        .select(pl.int_range(rows).alias("i"))
        .select((pl.col("i").hash() % SIZE).cast(pl.Int64))
    )
    names = pl.Series(LETTERS)
    letters = numbers.select(x=pl.lit(names).gather(pl.col("i")))

    def drawn(column: pl.Series) -> pl.Series:
        codes = column.replace_strict(LETTERS, list(range(SIZE)), return_dtype=pl.Int64).to_numpy()
        return names.gather(by_hand(codes))

    released = (
        pl.col("x").map_batches(drawn, return_dtype=pl.String, is_elementwise=True)
        if hand
        else pl.col("x").pmlopt.release(RULE)
    )
    return (
        letters.with_columns(y=released).group_by("x", "y").len().collect(engine="streaming").rows()
    )


def in_dask(rows: int, hand: bool) -> Any:
    """Counts partition by partition, on pandas frames that the tasks make."""
    import dask
    import dask.dataframe
    import pandas

    from pmlopt.adapters.dask import release

    def part(number: int) -> Any:
        drawn = np.random.default_rng(number).integers(SIZE, size=rows // PARTS)
        return pandas.DataFrame({"x": np.array(LETTERS, dtype=object)[drawn]}, dtype="str")

    def released(frame: Any) -> Any:
        codes = pandas.Categorical(frame["x"], categories=LETTERS).codes.astype(np.int64)
        return frame.assign(y=np.array(LETTERS, dtype=object)[by_hand(codes)]).astype("str")

    frame = dask.dataframe.from_map(part, range(PARTS), meta=part(0).head(0))
    if hand:
        both = frame.map_partitions(released, meta=released(part(0).head(3)).head(0))
    else:
        both = release(frame.assign(y=frame["x"]), {"y": RULE}, keep=["x"])
    with dask.config.set(scheduler="threads", num_workers=2):
        counts = both.groupby(["x", "y"]).size().compute()
    return [(*pair, number) for pair, number in counts.items()]


def in_arrow(rows: int, hand: bool) -> Any:
    """Counts of record batches, which are made and released 64 at a time."""
    import pyarrow
    import pyarrow.compute

    from pmlopt.releases.rows.batches import BatchRelease

    names, kernel = pyarrow.array(LETTERS), BatchRelease.of({"y": RULE}).with_key()
    rng, counts = np.random.default_rng(1), np.zeros(SIZE * SIZE, dtype=np.int64)
    made = 0
    for first in range(0, -(-rows // BATCH), GROUPS):
        group = []
        for _ in range(min(GROUPS, -(-rows // BATCH) - first)):
            size = min(BATCH, rows - made)
            made += size
            group.append(rng.integers(SIZE, size=size))
        for number, codes in enumerate(group, first):
            column = names.take(pyarrow.array(codes))
            if hand:
                read = pyarrow.compute.index_in(column, names).to_numpy(zero_copy_only=False)
                column = names.take(pyarrow.array(by_hand(read)))
            else:
                batch = pyarrow.RecordBatch.from_arrays([column], names=["y"])
                column = kernel(batch, number).column(0)
            drawn = pyarrow.compute.index_in(column, names).to_numpy(zero_copy_only=False)
            counts += np.bincount(codes * SIZE + drawn, minlength=SIZE * SIZE)
    return [(LETTERS[k // SIZE], LETTERS[k % SIZE], int(number)) for k, number in enumerate(counts)]


def in_spark(rows: int, hand: bool) -> Any:
    """Counts by Spark on two cores of this machine."""
    import pyarrow
    import pyarrow.compute
    from pyspark.sql import SparkSession

    from pmlopt.adapters.spark import release

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    word = f"concat('level ', lpad(cast(pmod(hash(id), {SIZE}) AS string), 2, '0'))"
    frame = session.range(0, rows, 1, PARTS).selectExpr(f"{word} AS x", f"{word} AS y")

    def drawn(batches: Any) -> Any:
        names = pyarrow.array(LETTERS)
        for batch in batches:
            codes = pyarrow.compute.index_in(batch.column(0), names).to_numpy(zero_copy_only=False)
            column = names.take(pyarrow.array(by_hand(codes)))
            yield pyarrow.RecordBatch.from_arrays([batch.column(0), column], names=["x", "y"])

    both = (
        frame.mapInArrow(drawn, frame.schema) if hand else release(frame, {"y": RULE}, keep=["x"])
    )
    found = [(row.x, row.y, row["count"]) for row in both.groupBy("x", "y").count().collect()]
    session.stop()
    return found


ENGINES: dict[str, Callable[[int, bool], Any]] = {
    "duckdb": in_duckdb, "polars": in_polars, "dask": in_dask, "arrow": in_arrow, "spark": in_spark,
}  # fmt: skip


def one(engine: str, rows: int, hand: bool) -> None:
    """What a process of its own prints: seconds of the processors, on the clock, MiB, and the counts.

    What the engine loads and does once is left out: it runs on a thousand rows before.
    """
    run = ENGINES[engine]
    run(1000, hand)
    before, begun = _seconds(), time.perf_counter()
    counts = [(x, y, int(number)) for x, y, number in run(rows, hand)]
    clock, spent = time.perf_counter() - begun, _seconds() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"spent": spent, "clock": clock, "peak": peak, "counts": counts}))


def _seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def measured(engine: str, rows: int, hand: bool) -> dict[str, Any]:
    """The same, from a process."""
    command = [sys.executable, __file__, "--one", engine, str(rows), "hand" if hand else "pmlopt"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def fit(counts: Sequence[tuple[str, str, int]], rows: int) -> float:
    """The p-value of the counts of outputs, given those of letters, under the mechanism (chi-square)."""
    from scipy.stats import chi2

    table = np.zeros((SIZE, SIZE))
    for x, y, number in counts:
        table[LETTERS.index(x), LETTERS.index(y)] = number
    assert table.sum() == rows, (table.sum(), rows)
    expected = table.sum(axis=1, keepdims=True) * RULE.matrix
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), SIZE * (SIZE - 1)))


def race(cases: Sequence[tuple[str, int]], out: Path | None) -> None:
    """Both ways in each engine, in turn."""
    rows_shown = []
    for engine, rows in cases:
        hand, ours = measured(engine, rows, True), measured(engine, rows, False)
        rows_shown.append((
            engine, f"{rows:.0e}", f"{ours['spent']:.2f}", f"{hand['spent']:.2f}",
            f"{ours['spent'] / hand['spent']:.2f}", f"{ours['clock'] / hand['clock']:.2f}",
            f"{ours['peak']:.0f}", f"{hand['peak']:.0f}", f"{fit(ours['counts'], rows):.2f}",
        ))  # fmt: skip
    head = (
        "engine", "rows", "processor [s]", "by hand [s]", "ratio", "ratio on the clock",
        "peak [MiB]", "by hand [MiB]", "p of chi-square",
    )  # fmt: skip
    report(out, "engines", head, rows_shown)
    if out is not None:
        _draw(rows_shown, out / "engines.png")


def _draw(rows: Sequence[Sequence[str]], path: Path) -> None:
    from pmlopt.core.display import get_figure_class
    from pmlopt.programs.plots import save_figure

    figure = get_figure_class()(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.bar([f"{row[0]}\n{row[1]}" for row in rows], [float(row[4]) for row in rows])
    axes.axhline(1.5, color="black", linewidth=0.8)
    axes.set_ylabel("processor time / by hand")
    save_figure(figure, path)


def killed(kills: int, out: Path | None) -> None:
    """A task that is killed after it has drawn, again and again, and how many draws there are to compare."""
    import pyarrow

    from pmlopt.releases.rows.batches import BatchRelease

    codes = np.random.default_rng(2).integers(SIZE, size=10**6)
    batch = pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(LETTERS).take(pyarrow.array(codes))], names=["y"]
    )
    kernel = BatchRelease.of({"y": RULE}).with_key()
    with tempfile.TemporaryDirectory() as name:
        for attempt in range(kills):
            path = Path(name) / str(attempt)
            task = get_context("fork").Process(target=_drawn_and_killed, args=(kernel, batch, path))
            task.start()
            task.join()
            assert task.exitcode == -signal.SIGKILL
        tries = {path.read_bytes() for path in Path(name).iterdir()}
    outputs = np.frombuffer(next(iter(tries)), dtype=np.int64)
    counts = np.bincount(codes * SIZE + outputs, minlength=SIZE * SIZE)
    pairs = [
        (LETTERS[k // SIZE], LETTERS[k % SIZE], int(number)) for k, number in enumerate(counts)
    ]
    head = ("tasks that were killed", "different draws", "p of chi-square")
    report(out, "engines-killed", head, [(kills, len(tries), f"{fit(pairs, len(codes)):.2f}")])


def _drawn_and_killed(kernel: Any, batch: Any, path: Path) -> None:
    import pyarrow
    import pyarrow.compute

    drawn = pyarrow.compute.index_in(
        kernel(batch, "partition", 7).column(0), pyarrow.array(LETTERS)
    )
    path.write_bytes(drawn.to_numpy().astype(np.int64).tobytes())
    os.kill(os.getpid(), signal.SIGKILL)


def main(argv: Sequence[str] | None = None) -> None:
    """Both studies."""
    parser = suite_parser(__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--batches", type=float, default=1e8)
    parser.add_argument(
        "--engines", nargs="+", default=["duckdb", "polars", "dask", "arrow"], choices=list(ENGINES)
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--one", nargs=3)
    args = parser.parse_args(argv)
    if args.one:
        engine, rows, who = args.one
        one(engine, int(rows), who == "hand")
        return
    if args.quick:
        args.rows, args.batches, args.kills = [1e5], 2e5, 2
    cases = [(engine, int(rows)) for engine in args.engines for rows in args.rows]
    if "arrow" in args.engines and args.batches:
        cases.append(("arrow", int(args.batches)))
    race(cases, args.out)
    if args.kills:
        killed(args.kills, args.out)


if __name__ == "__main__":
    main()
