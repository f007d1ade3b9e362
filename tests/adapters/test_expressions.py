"""The namespace of Polars expressions."""

from typing import Any

import polars as pl
import pytest

from pmlopt import Mechanism
from pmlopt.adapters.expressions import Expressions

FLIP = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
NOISE = Mechanism([[0.5, 0.5], [0.5, 0.5]], [1, 2], ["a", "b"])


def test_the_namespace_is_registered() -> None:
    assert isinstance(pl.col("smokes").pmlopt, Expressions)


def test_eager_and_lazy_frames_are_released() -> None:
    frame = pl.DataFrame({"smokes": ["no", "yes", "yes"], "other": [1, 2, 1]})
    assert frame.with_columns(pl.col("smokes").pmlopt.release(FLIP))["smokes"].to_list() == [
        "yes",
        "no",
        "no",
    ]
    lazy = frame.lazy().select(pl.col("smokes").pmlopt.release(FLIP), pl.col("other").pmlopt.release(NOISE))
    assert lazy.collect_schema() == {"smokes": pl.String, "other": pl.String}
    assert lazy.collect()["smokes"].to_list() == ["yes", "no", "no"]


def test_a_seed_repeats_the_draws_and_no_two_rows_share_them() -> None:
    frame = pl.DataFrame({"x": [1] * 200})
    first, second = (frame.select(pl.col("x").pmlopt.release(NOISE, seed=4))["x"].to_list() for _ in range(2))
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
    for query in (beside, after, within):
        found = query.collect(engine=engine)
        assert (found["first"] != found["second"]).any()


def test_no_rows_and_one_row_are_released() -> None:
    for rows in (0, 1):
        frame = pl.DataFrame({"smokes": ["no"] * rows}, schema={"smokes": pl.String})
        assert frame.select(pl.col("smokes").pmlopt.release(FLIP))["smokes"].to_list() == ["yes"] * rows


def test_missing_and_unknown_values_are_refused() -> None:
    for values in (["no", None], ["no", "maybe"]):
        with pytest.raises(Exception, match="is not an input of the mechanism"):
            pl.DataFrame({"smokes": values}).select(pl.col("smokes").pmlopt.release(FLIP))
