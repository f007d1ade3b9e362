"""The namespace of Polars expressions."""

from typing import Any

import polars as pl
import pytest

from pmlopt import Mechanism
from pmlopt.adapters.expressions import Expressions

FLIP = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
NOISE = Mechanism([[0.5, 0.5], [0.5, 0.5]], [1, 2], ["a", "b"])


def test_eager_and_lazy_frames_are_released() -> None:
    assert isinstance(pl.col("smokes").pmlopt, Expressions)
    frame, flipped = pl.DataFrame({"smokes": ["no", "yes", "yes"], "other": [1, 2, 1]}), ["yes", "no", "no"]
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
