"""The scikit-learn transformer: scikit-learn's own checks, and what it promises."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pmlopt import leakage_level
from pmlopt.adapters.transformer import PrivateColumns
from pmlopt.data.prior import Prior
from pmlopt.errors import InputError, MechanismError


@parametrize_with_checks([PrivateColumns(max_letters=3)])  # type: ignore[untyped-decorator]
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


def test_each_column_is_within_epsilon_under_its_law() -> None:
    random = np.random.default_rng(2)
    table = np.column_stack([random.integers(0, 4, 500), random.normal(size=500).round(2)])
    private = PrivateColumns(epsilon=0.7, max_letters=8).fit(table)
    first, second = private.mechanisms_
    assert first.inputs == (0.0, 1.0, 2.0, 3.0)
    assert len(second.inputs) == 8
    law = Prior.from_counts(np.bincount(table[:, 0].astype(int)).tolist(), first.inputs)
    assert leakage_level(law, first) == pytest.approx(private.levels_[0], abs=1e-12)
    assert (private.levels_ <= 0.7).all()
    released = private.transform(table)
    assert set(released[:, 1]) <= set(second.outputs)


def test_the_law_of_binned_columns_is_that_of_what_is_released() -> None:
    random = np.random.default_rng(0)
    halves = np.concatenate([random.uniform(0, 1, 500), random.uniform(50, 1000, 500)])
    for values, most, epsilon in ((random.lognormal(0, 3, 2000), 2, 0.3), (halves, 3, 1.0)):
        private = PrivateColumns(epsilon=epsilon, max_letters=most).fit(values[:, None])
        letters = np.array(private.mechanisms_[0].inputs)
        nearest = np.abs(values[:, None] - letters).argmin(axis=1)
        law = Prior.from_counts(
            np.bincount(nearest, minlength=len(letters)).tolist(), letters.tolist()
        )
        assert leakage_level(law, private.mechanisms_[0]) <= epsilon + 1e-12


def test_outputs_keep_their_kind_whatever_comes() -> None:
    private = PrivateColumns().fit(np.array([[0.5], [1.5], [2.5]]))
    assert set(private.transform(np.array([[1], [2], [2]])).ravel()) <= {0.5, 1.5, 2.5}
    text = PrivateColumns(epsilon=0.0).fit(np.array([["a"], ["bbb"], ["bbb"]]))
    assert set(text.transform(np.array([["a"], ["a"]])).ravel()) <= {"a", "bbb"}


def test_text_is_released_and_frames_come_back_as_frames() -> None:
    frame = pd.DataFrame({"smokes": ["no", "yes", "no", "no"], "degree": ["a", "b", "b", "c"]})
    private = PrivateColumns(random_state=3)
    released = private.set_output(transform="pandas").fit_transform(frame)
    assert list(released.columns) == ["smokes", "degree"]
    assert set(released["smokes"]) <= {"no", "yes"}
    assert isinstance(private.set_output(transform="polars").transform(frame), pl.DataFrame)
    with pytest.raises(MechanismError, match="'maybe' is not an input"):
        private.transform(pd.DataFrame({"smokes": ["maybe"], "degree": ["a"]}))


def test_a_text_that_was_not_fitted_goes_by_the_most_frequent_one_where_asked() -> None:
    fitted, later = [["no"], ["no"], ["yes"]], [["maybe"]] * 200
    private = PrivateColumns(1.0, random_state=3, handle_unknown="most_frequent").fit(fitted)
    known = PrivateColumns(1.0, random_state=3).fit(fitted)
    assert private.most_frequent_ == ["no"]
    assert private.transform(later).tolist() == known.transform([["no"]] * 200).tolist()
    with pytest.raises(InputError, match="'ignore'"):
        PrivateColumns(handle_unknown="ignore").fit(fitted)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("width", [1, 2])
def test_whole_numbers_keep_their_type_and_every_digit(kind: Any, width: int) -> None:
    high = np.iinfo(kind).max
    low = high - 2 if high < 2**62 else 2**53 + 1
    table = np.array([[low] * width, [low] * width, [high] * width, [high] * width], dtype=kind)
    private = PrivateColumns(epsilon=0.3, random_state=1).fit(table)
    released = np.vstack([private.transform(table) for _ in range(10)])
    assert released.dtype == kind
    assert (
        {int(value) for value in released.ravel()}
        == {int(low), int(high)}
        == set(private.mechanisms_[0].outputs)
    )


def test_columns_of_several_types_of_whole_numbers_keep_every_digit() -> None:
    frame = pd.DataFrame(
        {
            "a": np.array([2**63 + 1, 2**63 + 3] * 2, dtype=np.uint64),
            "b": np.array([-(2**62), 7] * 2),
        }
    )
    private = PrivateColumns(epsilon=0.3, random_state=1).fit(frame)
    released = np.vstack([private.transform(frame) for _ in range(10)])
    for place, name in enumerate(frame):
        assert private.mechanisms_[place].inputs == tuple(sorted(set(frame[name].tolist())))
        assert set(released[:, place].tolist()) == set(private.mechanisms_[place].outputs)


def test_a_number_goes_to_the_nearest_letter_in_every_type() -> None:
    for kind in (np.uint8, np.uint64, np.int8):
        letters = np.array([[100], [100], [120], [120]], dtype=kind)
        private = PrivateColumns(epsilon=9.0, random_state=1).fit(letters)
        near = private.transform(np.array([[1], [90], [109], [111], [127]], dtype=kind)).ravel()
        assert near.tolist() == [
            100,
            100,
            100,
            120,
            120,
        ]  # at 9 nats the letters are released as they are


def test_kinds_that_one_array_would_make_alike_are_refused() -> None:
    for values in ([1, "1"], [True, 1], [1.5, "a"], [True, "True"], [None, "a"], [2**63 + 1, -1]):
        table = np.array([[value] for value in values * 2], dtype=object)
        with pytest.raises((InputError, ValueError, TypeError), match=r"kinds|NaN|None"):
            PrivateColumns(epsilon=0.3).fit(table)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_letters_have_the_declared_order_of_categories(library: str) -> None:
    scale, cells = ["never", "low", "high"], ["high", "low", "low", "high", "low", "low"]
    sizes = [3, 1, 2, 2, 1, 3]
    frame: Any = pd.DataFrame(
        {
            "income": pd.Categorical(cells, scale, ordered=True),
            "size": pd.Categorical(sizes, [3, 1, 2], ordered=True),
            "plain": pd.Categorical(cells, scale),
        }
    )
    if library == "polars":
        frame = pl.DataFrame({"income": pl.Series(cells, dtype=pl.Enum(scale)), "plain": cells})
    private = PrivateColumns(epsilon=9.0, random_state=1).fit(frame)
    assert private.mechanisms_[0].inputs == ("low", "high")
    assert private.mechanisms_[-1].inputs == ("high", "low")
    if library == "pandas":
        assert private.mechanisms_[1].inputs == (3, 1, 2)
        # at such a level every value is released as it is, by the letter that it has
        assert private.transform(frame)[:, 1].tolist() == sizes
