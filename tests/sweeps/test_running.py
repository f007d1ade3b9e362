"""Sweeps: what they solve, that where they run does not matter, and the table and its files."""

from __future__ import annotations

import csv
import importlib
import io
import json
import logging
import math
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from sweeps.builders import EPSILONS, GRID, but_seconds, deadly, faulty, plain, threads
from threadpoolctl import threadpool_info

from pmlopt import Mechanism, MutualInformation, solve, sweep, verify_file
from pmlopt.errors import (
    FileFormatError,
    InputError,
    SolverUnavailableError,
    SweepError,
    SweepStoppedError,
)
from pmlopt.sweeps import Sweep, SweepRow


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def table() -> Sweep:
    return sweep(plain, GRID)


def test_the_values_are_those_of_solve(table: Sweep) -> None:
    assert len(table.rows) == 12
    for row in table.rows:
        alone = solve(plain(**row.point))
        assert row.value == pytest.approx(alone.value, abs=1e-9)
        assert row.status == "optimal"
        assert row.level is not None
        assert row.level <= row.point["epsilon"]
        assert row.gap is not None
        assert row.gap <= 1e-7
    assert not table.failed


@pytest.mark.filterwarnings("ignore")
def test_processes_threads_and_dask_give_the_same_table(
    table: Sweep, processes: Executor, tmp_path: Path
) -> None:
    assert but_seconds(sweep(plain, GRID, processes)) == but_seconds(table)
    with ThreadPoolExecutor(3) as threads:
        assert but_seconds(sweep(plain, GRID, threads)) == but_seconds(table)
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = sweep(plain, GRID, client.get_executor(), out=tmp_path / "table.csv")
    assert but_seconds(found) == but_seconds(table)


def test_linear_algebra_has_one_thread_in_every_worker(processes: Executor) -> None:
    importlib.import_module("scipy.linalg")  # which a sweep loads, with a pool of its own
    before = threadpool_info()
    for executor in (None, processes):
        assert sweep(threads, {"epsilon": [0.5]}, executor).rows[0].error == "ValueError: 1"
    assert threadpool_info() == before


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    grid = {"epsilon": EPSILONS[:3]}
    sweep(partial(plain, 3), grid, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_failed_point_is_a_row_and_mechanisms_are_kept_with_their_certificates(
    tmp_path: Path,
) -> None:
    table = sweep(faulty, {"size": [3], "epsilon": EPSILONS}, mechanisms=tmp_path)
    assert [row.status for row in table.rows] == ["optimal", *["failed"] * 4, "optimal"]
    errors = [row.error for row in table.rows]
    assert errors[1] == "ValueError: no such file"
    assert (errors[2] or "").startswith("ProgramError: solve takes a Program")
    assert (errors[3] or "").startswith("InfeasibleError: ")
    assert errors[4] == "SystemExit: 1"
    assert table.failed == table.rows[1:5]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["00000.json", "00005.json"]
    alone = solve(plain(3, 0.1))
    assert len(Mechanism.load(tmp_path / "00000.json").inputs) == 3
    assert alone.value == table.rows[0].value
    assert verify_file(tmp_path / "00000.json").holds


def test_what_no_point_could_be_solved_with() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        ({"builder": "plain"}, SweepError, "give a function"),
        ({"executor": 2}, SweepError, "the executor is 2"),
        (
            {"solver": "nothing"},
            SolverUnavailableError,
            "'nothing' is not installed; there are: auto",
        ),
        ({"solver": None}, SolverUnavailableError, "None is not installed"),
        ({"tolerance": -1}, InputError, "the tolerance is -1: give a number above 0"),
        ({"time_limit": 0}, InputError, "the time limit in seconds is"),
        ({"grid": {}}, SweepError, "empty"),
    ]
    for changes, error, said in cases:
        with pytest.raises(error, match=said):
            sweep(**{"builder": plain, "grid": GRID, **changes})


def test_builders_that_do_not_pickle_are_refused_at_once(processes: Executor) -> None:
    with pytest.raises(SweepError, match="top level of a module"):
        sweep(lambda epsilon: plain(3, epsilon), {"epsilon": EPSILONS}, processes)
    with pytest.raises(SweepError, match="such as MutualInformation"):
        sweep(plain, {"size": [3], "utility": [MutualInformation()]}, processes)


class Breaking(Executor):
    """Runs what it is handed at once, until it breaks after a number of calls."""

    def __init__(self, calls: int, at_submit: bool) -> None:
        self.calls, self.at_submit = calls, at_submit

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls -= 1
        if self.calls >= 0:
            future.set_result(fn(*args, **kwargs))
        elif self.at_submit:
            raise BrokenExecutor("no more")
        else:
            future.set_exception(BrokenExecutor("no more"))
        return future


@pytest.mark.parametrize("at_submit", [False, True])
def test_what_was_finished_when_the_executor_broke_is_kept(
    table: Sweep, tmp_path: Path, at_submit: bool
) -> None:
    out = tmp_path / "table.csv"
    with pytest.raises(
        SweepStoppedError, match=r"5 of 12 points are finished, in .*part.*new executor"
    ) as caught:
        sweep(plain, GRID, Breaking(6, at_submit), out=out)
    assert caught.value.sweep is not None
    assert len(caught.value.sweep.rows) == 5
    assert not out.exists()
    with pytest.raises(SweepStoppedError, match=r"5 of 12 points .*`sweep` of this error"):
        sweep(plain, GRID, Breaking(6, at_submit))
    assert but_seconds(sweep(plain, GRID, out=out)) == but_seconds(table)


def test_an_executor_that_never_starts_or_loses_a_worker() -> None:
    with pytest.raises(SweepError, match="__main__"):
        sweep(plain, GRID, Breaking(0, False))
    with ThreadPoolExecutor(1) as closed:
        pass
    with pytest.raises(SweepError, match="after shutdown"):
        sweep(plain, GRID, closed)

    class Losing(Breaking):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            if len(args) == 4 and args[1]["epsilon"] == 0.2:
                future: Future[Any] = Future()
                future.set_exception(OSError("worker lost"))
                return future
            return super().submit(fn, *args, **kwargs)

    table = sweep(
        plain, {"size": [3], "epsilon": EPSILONS}, Losing(99, False)
    )  # it costs its point alone
    assert [row.status for row in table.rows] == ["optimal", "failed", *["optimal"] * 4]
    assert table.rows[1].error == "OSError: worker lost"


def test_a_single_process_finds_the_point_that_ends_it(tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(SweepStoppedError, match="BrokenProcessPool"),
    ):
        sweep(deadly, {"size": [3], "epsilon": EPSILONS}, pool, out=out)
    ended = sweep(deadly, {"size": [3], "epsilon": EPSILONS}, out=out)
    assert [row.status for row in ended.rows] == ["optimal", "failed", *["optimal"] * 4]
    assert (ended.rows[1].error or "").startswith("BrokenProcessPool: ")


NUMBERS = (0.1 + 0.2, math.inf, 0.0, 0.5)


@pytest.fixture
def odd() -> Sweep:
    rows = (
        SweepRow({"name": "a\rb", "n": 2**70, "x": 1}, "optimal", *NUMBERS, "highs", 3, True, 0.1),
        SweepRow(
            {"name": "c,d", "n": 1, "x": 0.5}, "failed", seconds=0.2, error="ValueError: a, b"
        ),
    )
    return Sweep(("name", "n", "x"), rows)


def test_columns_are_arrays(odd: Sweep) -> None:
    assert odd.column("value").tolist()[0] == 0.1 + 0.2
    assert np.isnan(odd.column("value")[1])
    assert np.isnan(odd.column("iterations")[1])
    assert odd.column("warm_started").tolist() == [True, False]
    assert odd.column("error").tolist() == ["", "ValueError: a, b"]
    assert odd.column("x").tolist() == [1.0, 0.5]
    assert odd.failed == (odd.rows[1],)
    with pytest.raises(SweepError, match="no column 'y'; it has name, n, x, status"):
        odd.column("y")


def test_files_hold_every_digit(odd: Sweep, tmp_path: Path) -> None:
    for ending in ("csv", "json", "parquet"):
        odd.save(tmp_path / f"table.{ending}")
    with (tmp_path / "table.csv").open(newline="") as stream:
        first, second = csv.DictReader(stream)
    assert float(first["value"]) == 0.1 + 0.2
    assert (first["bound"], second["value"]) == ("inf", "")
    assert (first["name"], second["name"], int(first["n"])) == ("a\rb", "c,d", 2**70)
    stored = json.loads((tmp_path / "table.json").read_text())
    assert stored == odd.to_dict()
    assert (stored["rows"][0]["bound"], stored["rows"][0]["value"]) == (None, 0.1 + 0.2)
    typed = pyarrow.parquet.read_table(io.BytesIO((tmp_path / "table.parquet").read_bytes()))
    assert typed.column_names == list(odd.columns)
    rows = typed.to_pylist()
    assert (rows[0]["value"], rows[0]["bound"], rows[0]["n"]) == (0.1 + 0.2, math.inf, str(2**70))
    assert (rows[1]["x"], rows[1]["value"], rows[0]["warm_started"]) == (0.5, None, True)
    with pytest.raises(FileFormatError, match=r"\.csv, \.parquet, \.json"):
        odd.save(tmp_path / "table.xlsx")
