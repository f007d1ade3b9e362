"""Releases inside Spark, where it is installed with its Java: `nox -s spark`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import Mechanism
from pmlopt.adapters import spark as on_spark
from pmlopt.tables import column_counts

sql = pytest.importorskip("pyspark.sql")
errors = pytest.importorskip("pyspark.errors")
pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)

COIN = Mechanism([[0.5, 0.5], [0.5, 0.5]], ["no", "yes"], ["no", "yes"])
RESPONSE = Mechanism([[0.75, 0.25], [0.125, 0.875]], ["no", "yes"], ["no", "yes"])
ROWS = 40_000


@pytest.fixture(scope="module")
def people() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    rows = session.range(0, ROWS, 1, 5)
    yield rows.selectExpr("id", "CASE WHEN id % 4 = 0 THEN 'yes' ELSE 'no' END AS smokes")
    session.stop()


def rows_of(frame: Any) -> dict[str, Any]:
    """The columns of a frame of Spark, the rows in the order of their ids."""
    table = frame.orderBy("id").toArrow()
    return {name: table[name].to_numpy() for name in table.column_names}


def test_outputs_have_the_law_of_the_mechanism(people: Any) -> None:
    released = rows_of(on_spark.release(people, {"smokes": RESPONSE}, keep=["id"]))
    assert released["id"].tolist() == list(range(ROWS))
    for letter, row in zip(
        (released["id"] % 4 != 0, released["id"] % 4 == 0), RESPONSE.matrix, strict=True
    ):
        rows, found = int(letter.sum()), int((released["smokes"][letter] == "yes").sum())
        assert abs(found - rows * row[1]) < 6 * np.sqrt(
            rows * row[1] * row[0]
        )  # falsely once in 5e8 times


def test_what_is_computed_again_is_not_drawn_again(people: Any) -> None:
    released = on_spark.release(people, {"smokes": COIN}, keep=["id"])
    first, second = rows_of(released)["smokes"], rows_of(released)["smokes"]
    assert (first == second).all()
    other = rows_of(on_spark.release(people, {"smokes": COIN}, keep=["id"]))["smokes"]
    assert abs(int((other == first).sum()) - ROWS / 2) < 3 * np.sqrt(ROWS)  # see above


def test_rows_have_a_random_order_and_rows_stay_whole(people: Any) -> None:
    flip = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
    released = on_spark.release(people, {"smokes": flip}, keep=["id"])
    table, again = released.toArrow(), released.toArrow()
    assert table.equals(again)
    ids = table["id"].to_numpy()
    assert sorted(ids) == list(range(ROWS))
    assert abs(np.corrcoef(ids, np.arange(ROWS))[0, 1]) < 6 / np.sqrt(ROWS - 1)
    assert (table["smokes"].to_numpy() == np.where(ids % 4 == 0, "no", "yes")).all()
    kept = on_spark.release(people, {"smokes": flip}, keep=["id"], keep_order=True).toArrow()
    assert kept["id"].to_numpy().tolist() == list(range(ROWS))


def test_tasks_that_fail_are_tried_again_with_the_same_draws(people: Any, tmp_path: Path) -> None:
    def failing(batches: Any) -> Any:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        mark = tmp_path / str(task.partitionId())
        if not mark.exists():
            mark.touch()
            raise RuntimeError("the worker was lost")
        yield from batches

    released = on_spark.release(people, {"smokes": COIN}, keep=["id"], keep_order=True)
    whole, again = rows_of(released)["smokes"], None
    for _ in range(20):  # `local` has no second attempt: the action is repeated until no task fails
        with suppress(errors.PySparkException):
            again = rows_of(released.mapInArrow(failing, released.schema))["smokes"]
            break
    assert len(list(tmp_path.iterdir())) == 5
    assert again is not None
    assert (again == whole).all()


def test_a_function_of_columns_draws_once_for_each_row(people: Any) -> None:
    drawn = on_spark.release_column(COIN)
    found = rows_of(people.select("id", drawn("smokes").alias("one"), drawn("smokes").alias("two")))
    assert (found["one"] == found["two"]).all()
    pairs = [(a, b) for a in ("no", "yes") for b in (0, 1)]
    pair = on_spark.release_column(Mechanism(np.eye(4), pairs, [f"{a}{b}" for a, b in pairs]))
    found = rows_of(
        people.selectExpr("smokes", "id % 2 AS odd", "id").withColumn("both", pair("smokes", "odd"))
    )
    assert found["both"].tolist() == [
        f"{a}{b}" for a, b in zip(found["smokes"], found["odd"], strict=True)
    ]


def test_spark_counts_its_own_rows(people: Any) -> None:
    assert column_counts(people, "smokes") == {"no": ROWS * 3 // 4, "yes": ROWS // 4}
