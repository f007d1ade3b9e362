"""The namespace of Polars expressions."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pmlopt import Mechanism
from pmlopt.adapters.expressions import PmloptExpressions
from pmlopt.releases import BatchRelease

FLIP = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
NOISE = Mechanism([[0.5, 0.5], [0.5, 0.5]], [1, 2], ["a", "b"])


def test_eager_and_lazy_frames_are_released() -> None:
    assert isinstance(pl.col("smokes").pmlopt, PmloptExpressions)
    frame, flipped = (
        pl.DataFrame({"smokes": ["no", "yes", "yes"], "other": [1, 2, 1]}),
        ["yes", "no", "no"],
    )
    release = pl.col("smokes").pmlopt.release(FLIP)
    for rows in range(4):
        assert frame[:rows].with_columns(release)["smokes"].to_list() == flipped[:rows]
    lazy = frame.lazy().select(release, pl.col("other").pmlopt.release(NOISE))
    assert lazy.collect_schema() == {"smokes": pl.String, "other": pl.String}
    assert lazy.collect()["smokes"].to_list() == flipped
    for values in (["no", None], ["no", "maybe"]):
        with pytest.raises(Exception, match="is not an input of the mechanism"):
            pl.DataFrame({"smokes": values}).select(release)


def test_a_seed_repeats_the_draws_and_no_two_rows_share_them() -> None:
    frame = pl.DataFrame({"x": [1] * 200})
    first, second = (
        frame.select(pl.col("x").pmlopt.release(NOISE, seed=4))["x"].to_list() for _ in range(2)
    )
    assert first == second
    assert set(first) == {"a", "b"}  # all alike with probability 2^-199


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_an_expression_that_is_used_twice_draws_twice(engine: Any) -> None:
    # each pair of columns is the same with probability 2^-200
    lazy, drawn = pl.LazyFrame({"x": [1] * 200}), pl.col("x").pmlopt.release(NOISE)
    beside = lazy.select(first=drawn, second=drawn)
    after = lazy.with_columns(first=drawn).with_columns(second=drawn)
    within = lazy.select(both=pl.concat_list(drawn, drawn)).select(
        first=pl.col("both").list.get(0), second=pl.col("both").list.get(1)
    )
    half = lazy.select(first=drawn)
    halves = pl.concat([half, half.rename({"first": "second"})], how="horizontal")
    for query in (beside, after, within, halves):
        found = query.collect(engine=engine)
        assert (found["first"] != found["second"]).any()


ROWS = 10_000
RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])


def has_a_draw_for_each_row(drawn: Any) -> bool:
    """Whether the share of "yes" is that of independent draws from (.25, .75).

    By Hoeffding's inequality it is off by .05 or more with probability 2 exp(-2 * 10,000 * .05^2), which is
    below 1e-21; one draw for all rows is always off by .25.
    """
    return len(drawn) == ROWS and abs((drawn == "yes").mean() - 0.75) < 0.05


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_each_row_of_a_constant_column_has_its_own_draw(engine: Any, tmp_path: Path) -> None:
    people = pl.DataFrame({"id": range(ROWS)})
    constant, release = people.with_columns(k=pl.lit("yes")), pl.col("k").pmlopt.release(RESPONSE)
    constant.write_parquet(tmp_path / "hive", partition_by="k")
    folder = pl.scan_parquet(tmp_path / "hive/**/*.parquet", hive_partitioning=True)
    for lazy in (
        constant.lazy().select(y=release),
        people.lazy().with_columns(k=pl.lit("yes")).with_columns(y=release),
        people.lazy().select(y=pl.lit("yes").pmlopt.release(RESPONSE)),
        people.lazy().with_columns(y=pl.lit("yes").pmlopt.release(RESPONSE)),
        folder.select(y=release),
        folder.with_columns(y=release).filter(pl.col("id") >= 0),
    ):
        assert has_a_draw_for_each_row(lazy.collect(engine=engine)["y"])
    assert has_a_draw_for_each_row(constant.with_columns(y=release)["y"])
    groups = constant.with_columns(g=pl.col("id") % 2)
    assert has_a_draw_for_each_row(groups.with_columns(y=release.over("g"))["y"])
    assert has_a_draw_for_each_row(groups.group_by("g").agg(y=release).explode("y")["y"])


def test_a_tuple_of_constant_columns_has_its_own_draw_in_each_row() -> None:
    pairs = Mechanism([[0.25, 0.75]], [("a", 1)], ["no", "yes"])
    people = pl.DataFrame({"id": range(ROWS)}).with_columns(x=pl.lit("a"), z=pl.lit(1))
    assert has_a_draw_for_each_row(people.select(y=pl.col("x", "z").pmlopt.release(pairs))["y"])


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_halves_of_a_union_draw_twice(engine: Any) -> None:
    half = pl.LazyFrame({"x": [1] * 200}).select(pl.col("x").pmlopt.release(NOISE))
    drawn = pl.concat([half, half]).collect(engine=engine)["x"].to_list()
    assert drawn[:200] != drawn[200:]  # the same with probability 2^-200


def test_nothing_is_drawn_for_rows_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars calls functions whose type it does not know on rows of its own making."""
    drawn: list[int] = []
    draw_array = BatchRelease.array

    def count_rows(kernel: BatchRelease, columns: Any, *rest: Any) -> Any:
        drawn.append(len(columns[0]))
        return draw_array(kernel, columns, *rest)

    monkeypatch.setattr(BatchRelease, "array", count_rows)
    lazy = pl.LazyFrame({"x": [1, 2, 1]}).select(pl.col("x").pmlopt.release(NOISE))
    assert lazy.collect_schema() == {"x": pl.String}
    assert drawn == []
    assert lazy.collect().height == sum(drawn) == 3
