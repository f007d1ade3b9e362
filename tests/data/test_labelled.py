"""The door for tables: whatever holds labelled numbers, and in whatever order, they are the same table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import (
    PML,
    Box,
    Continuous,
    ExpectedGain,
    ExpectedLoss,
    L1Ball,
    Mechanism,
    MetricPrivacy,
    Prior,
    Secret,
    design,
    estimate,
    leakage_level,
    solve,
)
from pmlopt.core.numbers.arrays import indices_of
from pmlopt.data.labelled import LabelledArray, read_column, read_labelled_table, read_vector
from pmlopt.errors import (
    InputError,
    MechanismError,
    PmloptError,
    PriorError,
    PrivacyError,
    UtilityError,
)
from pmlopt.model.privacy import GainLeakage
from pmlopt.model.utility import CoordinateLoss, EstimationError, hamming
from pmlopt.releases import attribute_levels
from pmlopt.releases.estimation import level_from_samples

LETTERS, OUTPUTS = ("a", "b", "c"), ("u", "v", "w")
CODES = (1, 2, 3)
SHARES = [0.6, 0.3, 0.1]
CHANNEL = Mechanism([[0.75, 0.15, 0.1], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]], LETTERS, OUTPUTS)


def by_column(rows: list[Any], columns: list[Any], cells: Any) -> dict[str, list[Any]]:
    return {"k": rows, **{name: [line[y] for line in cells] for y, name in enumerate(columns)}}


VECTORS: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "mapping": dict,
    "Counter": Counter,
    "series": lambda named: pd.Series(list(named.values()), list(named)),
    "frame with an index": lambda named: pd.DataFrame({"n": list(named.values())}, list(named)),
    "pandas": lambda named: pd.DataFrame({"k": list(named), "n": list(named.values())}),
    "polars": lambda named: pl.DataFrame({"k": list(named), "n": list(named.values())}),
    "lazy": lambda named: pl.LazyFrame({"k": list(named), "n": list(named.values())}),
    "arrow": lambda named: pa.table({"k": list(named), "n": list(named.values())}),
}
TABLES: dict[str, Callable[[list[Any], list[Any], Any], Any]] = {
    "nested": lambda rows, columns, cells: {
        row: dict(zip(columns, line, strict=True)) for row, line in zip(rows, cells, strict=True)
    },
    "of series": lambda rows, columns, cells: {
        row: pd.Series(line, columns) for row, line in zip(rows, cells, strict=True)
    },
    "pairs": lambda rows, columns, cells: {
        (row, column): cells[x][y] for x, row in enumerate(rows) for y, column in enumerate(columns)
    },
    "pandas": lambda rows, columns, cells: pd.DataFrame(cells, rows, columns),
    "first column": lambda rows, columns, cells: pd.DataFrame(cells, rows, columns).reset_index(),
    "polars": lambda rows, columns, cells: pl.DataFrame(by_column(rows, columns, cells)),
    "arrow": lambda rows, columns, cells: pa.table(by_column(rows, columns, cells)),
}
COUNTS = st.lists(st.integers(1, 50), min_size=9, max_size=9).map(
    lambda cells: np.reshape(cells, (3, 3)).tolist()
)


@st.composite
def vectors(draw: st.DrawFn, labels: tuple[Any, ...]) -> tuple[list[int], Any]:
    """Counts in the order of some labels, and the same in any order and container."""
    counts = draw(st.lists(st.integers(1, 99), min_size=3, max_size=3))
    order = draw(st.permutations(range(3)))
    kind = draw(st.sampled_from(sorted(VECTORS)))
    return counts, VECTORS[kind]({labels[place]: counts[place] for place in order})


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], Any]:
    """A table of counts in the order of the letters and outputs, and the same in any order and container."""
    cells = draw(COUNTS)
    xs, ys = draw(st.permutations(range(3))), draw(st.permutations(range(3)))
    kind = draw(st.sampled_from(sorted(TABLES)))
    made = TABLES[kind](
        [LETTERS[x] for x in xs], [OUTPUTS[y] for y in ys], [[cells[x][y] for y in ys] for x in xs]
    )
    return cells, made


@settings(max_examples=20, deadline=None)
@given(vectors(OUTPUTS))
def test_estimates_are_of_outputs_by_name_and_of_people_in_any_container(
    case: tuple[list[int], Any],
) -> None:
    counts, held = case
    people = [output for output, count in zip(OUTPUTS, counts, strict=True) for _ in range(count)]
    for frequent in (
        counts, held, pd.Series(people).value_counts(), pl.Series("y", people).value_counts(),
        pa.array(people).value_counts(), pd.DataFrame({"y": people}).groupby("y").size(),
    ):  # fmt: skip
        assert np.array_equal(estimate(CHANNEL, frequent, min_p_value=0.0).counts, counts)
    for released in (
        people, np.array(people), pd.Series(people), pd.DataFrame({"y": people}), pl.Series(people),
        pa.array(people),
    ):  # fmt: skip
        assert np.array_equal(estimate(CHANNEL, released=released, min_p_value=0.0).counts, counts)


@settings(max_examples=20, deadline=None)
@given(vectors(CODES))
def test_priors_are_the_same_law_in_any_order(case: tuple[list[int], Any]) -> None:
    counts, held = case
    known = Prior.from_counts(counts, CODES)
    assert Prior.from_counts(held).reordered(CODES) == known
    channel = Mechanism(CHANNEL.matrix, CODES)
    shares = {label: count / sum(counts) for label, count in zip(CODES, counts, strict=True)}
    level = leakage_level(known, channel)
    for order in (CODES, CODES[::-1]):
        for hold in VECTORS.values():
            if hold is not Counter:
                assert leakage_level(
                    hold({label: shares[label] for label in order}), channel
                ) == pytest.approx(level, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(tables())
def test_tables_are_read_by_name(case: tuple[list[list[int]], Any]) -> None:
    cells, held = case
    read = (
        read_labelled_table(held, "it", InputError)
        .reorder_axis(0, LETTERS, InputError)
        .reorder_axis(1, OUTPUTS, InputError)
    )
    assert np.array_equal(read.values, cells)
    secret = Secret.from_counts(held)
    at = {(value, label): count for value, row in zip(secret.values, secret.weights[0], strict=True)
          for label, count in zip(secret.labels, row, strict=True)}  # fmt: skip
    assert at == {
        (x, y): cells[i][j] for (i, x), (j, y) in product(enumerate(LETTERS), enumerate(OUTPUTS))
    }
    gains = ExpectedGain(held).value(dict(zip(LETTERS, SHARES, strict=True)), CHANNEL)
    assert gains == pytest.approx(ExpectedGain(cells).value(SHARES, CHANNEL.matrix))


def test_whoever_takes_a_table_reads_it_by_name() -> None:
    cells, order = [[7, 2, 1], [3, 9, 4], [5, 1, 8]], [2, 0, 1]
    plain = level_from_samples(Prior(SHARES, LETTERS), cells)
    turned = Prior([SHARES[x] for x in order], [LETTERS[x] for x in order])
    together = attribute_levels(cells, [CHANNEL.matrix] * 2).together
    for kind, hold in TABLES.items():
        held = hold(
            [LETTERS[x] for x in order], list(OUTPUTS[::-1]), [cells[x][::-1] for x in order]
        )
        if kind in ("nested", "pairs", "pandas"):  # others are read alike, and this takes its time
            found = level_from_samples(turned, held)
            assert (found.lower, found.upper) == pytest.approx((plain.lower, plain.upper), abs=1e-9)
            assert found.output == OUTPUTS[plain.output]  # type: ignore[call-overload]
        if not isinstance(held, dict):
            joint = attribute_levels(held, [CHANNEL, Mechanism(CHANNEL.matrix, OUTPUTS)])
            assert joint.together == pytest.approx(together)


def test_a_mechanism_is_a_frame_and_back_and_equal_by_content() -> None:
    frame = CHANNEL.to_pandas()
    assert Mechanism(frame) == CHANNEL != Mechanism(frame.iloc[::-1])
    prior = Prior([0.6, 0.3, 0.1], LETTERS)
    assert leakage_level(prior, frame.iloc[::-1]) == leakage_level(prior, CHANNEL)
    assert np.array_equal(np.asarray(CHANNEL), CHANNEL.matrix)
    assert CHANNEL.shape == (3, 3)
    assert np.asarray(CHANNEL, dtype=np.float32).dtype == np.float32
    assert len({prior, Prior([0.6, 0.3, 0.1], LETTERS)}) == 1
    other: Any = ([0.6, 0.3, 0.1], None), ([0.3, 0.6, 0.1], LETTERS), ([0.6, 0.3, 0.1], LETTERS, 3)
    assert all(prior != Prior(*arguments) for arguments in other)
    assert Prior([0.5, 0.5], [0, 1]) != Prior([0.5, 0.5], [False, True])
    assert Prior.from_counts([1, 1]) != Prior.from_counts([2, 2])
    values = pd.Series(["b", "a"], index=[7, 5], name="smokes")
    drawn = Mechanism(np.eye(2), ["a", "b"], ["A", "B"]).sample(values)
    assert (drawn.to_dict(), drawn.name) == ({7: "B", 5: "A"}, "smokes")
    income = pd.DataFrame({"income": [9.0, 1.0, 4.0]}, index=["x", "y", "z"])["income"]
    secret = Continuous.from_samples(income, support=(1, 9))  # a sample of numbers is no table
    assert secret.prior(secret.even(2)).counts == (2, 1)


def test_a_function_of_labels_is_of_the_prior_s_letters_where_the_mechanism_has_none() -> None:
    prior, matrix = Prior([0.7, 0.3], ["b", "a"]), [[0.7, 0.3], [0.3, 0.7]]
    assert ExpectedLoss(hamming).value(prior, matrix) == pytest.approx(0.3)
    with pytest.raises(UtilityError, match="outputs without labels"):
        ExpectedLoss(hamming).value(prior, [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1]])


def test_designs_take_the_names_of_a_table() -> None:
    loss = pd.DataFrame([[0.0, 1.0, 5.0], [2.0, 0.0, 5.0]], ["b", "a"], ["B", "A", "none"])
    named = solve(design(Prior([0.7, 0.3], ["a", "b"]), PML(0.3), ExpectedLoss(loss)))
    plain = solve(design([0.3, 0.7], PML(0.3), ExpectedLoss(loss.to_numpy())))
    assert named.mechanism.outputs == ("B", "A", "none")
    assert named.value == pytest.approx(plain.value)
    workload = pd.DataFrame([[1.0, 0.0]], columns=["b", "a"])
    error = EstimationError(workload).value(
        Prior([0.7, 0.3], ["a", "b"]), [[0.75, 0.25], [0.4, 0.6]]
    )
    assert error == pytest.approx(
        EstimationError([0.0, 1.0]).value([0.7, 0.3], [[0.75, 0.25], [0.4, 0.6]])
    )
    assert estimate(
        CHANNEL, [10, 30, 60], workload=workload.assign(c=0)
    ).frequencies == pytest.approx(estimate(CHANNEL, [10, 30, 60]).frequencies[1])


def test_a_set_of_priors_is_around_a_law_with_labels() -> None:
    prior = Prior([0.7, 0.3], ["a", "b"])
    assert L1Ball(pd.Series([0.7, 0.3], ["a", "b"]), 0.1).center == prior
    assert L1Ball({"a": 1.0, "b": 0.0}, 0.1).labels == ("a", "b")
    box = Box({"a": 0.6, "b": 0.1}, pd.Series([0.3, 0.9], ["b", "a"]))
    assert (box.labels, box.upper.tolist()) == (("a", "b"), [0.9, 0.3])
    with pytest.raises(PrivacyError, match="only one side"):
        Box({"a": 0.6, "b": 0.1}, [0.9, 0.3])


def test_distances_are_of_letters_by_name(tmp_path: Path) -> None:
    cells = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    prior, order = Prior([0.6, 0.3, 0.1], LETTERS), ["c", "a", "b"]
    frame = pd.DataFrame(cells, LETTERS, LETTERS)
    frame.to_csv(tmp_path / "distances.csv")
    known = MetricPrivacy(0.5, cells)
    for held in (frame, frame.loc[order, order], tmp_path / "distances.csv"):
        assert MetricPrivacy(0.5, held).for_prior(prior) == known
    level = MetricPrivacy(0.5, frame.loc[order, order]).level(prior, CHANNEL)
    assert level == pytest.approx(known.level(prior, CHANNEL), abs=1e-12)
    with pytest.raises(PrivacyError, match="'c' is none of"):
        MetricPrivacy(0.5, frame).for_prior(Prior([0.6, 0.4], ["a", "b"]))


CROSSTAB = pd.crosstab(pd.Series(["a", "b", "a"]), pd.Series(["u", "v", "v"]), margins=True)
NUMBERED = pd.DataFrame({"k": [1, 2], "u": [3, 4], "v": [5, 6]})


ANY: Any = {"set": {"u", "v"}, "five": 5, "rows": [{"u": 1}, {"u": 2}]}
"""What no annotation allows."""


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: estimate(CHANNEL, {"u": 1, "x": 2}), MechanismError, "'x' is none of"),
        (lambda: estimate(CHANNEL, pd.Series([1, 2], ["u", "u"])), MechanismError, "'u' occurs twice"),
        (lambda: estimate(CHANNEL, pd.Series([1, 2], ["u", None])), MechanismError, "a missing cell"),
        (lambda: estimate(CHANNEL, [1, 2]), MechanismError, "2 entries"),
        (lambda: estimate(CHANNEL, "u"), MechanismError, "give a list"),
        (lambda: estimate(CHANNEL, ANY["set"]), MechanismError, "give a list"),
        (lambda: estimate(CHANNEL, released=ANY["five"]), InputError, "released values are 5"),
        (lambda: estimate(CHANNEL, released={"u": 3}), InputError, "are a mapping"),
        (lambda: estimate(CHANNEL, released=["u", None]), InputError, "missing value at position 1"),
        (lambda: estimate(CHANNEL, released=pd.DataFrame({"y": ["u"], "z": ["u"]})), MechanismError, "none"),
        (lambda: level_from_samples({"a": 0.5, "b": 0.5}, CROSSTAB), MechanismError, "'All' is none of"),
        (lambda: level_from_samples({"a": 0.5, "b": 0.5}, {"a": [1, 2]}), MechanismError, "no entry for 'b'"),
        (lambda: level_from_samples([0.5, 0.5], {"a": {"u": 1}, "b": {"u": 1}}), MechanismError, "none of"),
        (lambda: level_from_samples([0.5, 0.5], [[1, 2], [3]]), MechanismError, "different lengths"),
        (lambda: level_from_samples([0.5, 0.5], ANY["rows"]), MechanismError, "give a mapping"),
        (lambda: level_from_samples([0.5, 0.5], {"a": {"u": 1}, "b": [2]}), MechanismError, "of some rows"),
        (lambda: level_from_samples([0.5, 0.5], NUMBERED), MechanismError, "set_index"),
        (lambda: level_from_samples([0.5, 0.5], pd.Series([1, 2])), MechanismError, "one column"),
        (lambda: ExpectedGain({"a": {"u": 1}, "b": {"v": 1}}), UtilityError, "no entry for 'v'"),
        (lambda: ExpectedGain({("a", "u"): 1, ("b", "v"): 1}), UtilityError, "no entry for the pair"),
        (lambda: ExpectedGain({("a", "u"): 1, "b": 1}), UtilityError, "the key 'b'"),
        (lambda: ExpectedGain(NUMBERED.set_index("k")).value([0.5, 0.5], np.eye(2)), UtilityError, "none of"),
        (lambda: CoordinateLoss(NUMBERED.set_index("k")), UtilityError, "without labels"),
        (lambda: GainLeakage(1.0, NUMBERED), PrivacyError, "carry labels"),
        (lambda: Mechanism(CHANNEL.to_pandas(), LETTERS), MechanismError, "labels already"),
        (lambda: Secret.from_counts(CROSSTAB, values=["x", "y", "z"]), PriorError, "names its rows"),
        (lambda: Prior.from_samples({"a": 1}), PriorError, "are a mapping"),
        (lambda: Prior.from_counts(5), PriorError, "are 5"),
        (lambda: Prior(NUMBERED), PriorError, "table of two"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(
    act: Callable[[], Any], error: type[PmloptError], message: str
) -> None:
    with pytest.raises(error, match=message):
        act()


def test_released_codes_are_told_from_data() -> None:
    """Letters 1 and 2 that were never released are no outputs 0 and 1, though the numbers meet."""
    by_number = Mechanism([[0.75, 0.25], [0.25, 0.75]], [1, 2])
    for seen in ({"released": [1, 1]}, {"counts": {1: 5}}):
        with pytest.raises(MechanismError, match="labels of its outputs"):
            estimate(by_number, **seen)
    by_name = Mechanism(by_number.matrix, ["no", "yes"])
    assert estimate(by_name, released=by_name.sample(["no"] * 9)).people == 9
    with pytest.raises(MechanismError, match="True is none of"):
        estimate(by_name, released=[True, False])


def test_which_labels_are_the_same() -> None:
    cases: list[tuple[Any, tuple[Any, ...], int | None]] = [
        (1.0, (0, 1), 1), (True, (0, 1), None), ("1", (0, 1), None), (True, (False, True), 1),
        (1, (False, True), None), ((1.0, "a"), ((1, "a"),), 0), ((True, "a"), ((1, "a"),), None),
        (np.str_("b"), ("a", "b"), 1),
    ]  # fmt: skip
    for label, known, place in cases:
        if place is None:
            with pytest.raises(InputError, match="is none of"):
                indices_of([label], known, "it", InputError)
        else:
            assert indices_of([label, known[0]], known, "it", InputError) == [place, 0]


def test_cells_of_text_files_are_the_labels_that_read_like_them() -> None:
    assert indices_of([1, 2.5, "c"], ("1", 2.5, "c"), "it", InputError, text=True) == [0, 1, 2]
    assert indices_of([1.0], (1,), "it", InputError, text=True) == [0]
    assert indices_of([("a", "1")], (("a", 1),), "it", InputError, text=True) == [0]
    twice = LabelledArray([3, 4], (("1", "1.0"),), "it", text=True)
    with pytest.raises(InputError, match="none of"):
        twice.reorder_axis(0, (1,), InputError)
    with pytest.raises(InputError, match="are one label"):
        LabelledArray([3, 4], ((1, 1.0),), "it", text=True).reorder_axis(0, (1,), InputError)
    with pytest.raises(InputError, match="read alike"):
        indices_of([1], (1, "1"), "it", InputError, text=True)


def test_numbers_keep_their_digits() -> None:
    large = 2**80 + 1
    assert read_vector({"a": large}, "it", InputError).values == [large]
    assert read_labelled_table([[large]], "it", InputError).values == [[large]]
    assert (
        Secret.from_counts(pd.DataFrame([[2**62 + 1]], ["x"], ["y"])).weights[0][0, 0] == 2**62 + 1
    )
    assert read_column(pl.DataFrame({"a": [1], "b": ["x"]}), "it", InputError) == [(1, "x")]
    missing = LabelledArray([3], (("b",),), "it").reorder_axis(0, ("a", "b"), InputError, absent=0)
    assert missing.values == [0, 3]


def test_a_mapping_in_json_is_read_as_the_mapping(tmp_path: Path) -> None:
    counts, joint = tmp_path / "counts.json", tmp_path / "joint.json"
    counts.write_text(json.dumps({"2": 30, "1": 10}))
    prior = Prior.from_counts(counts)
    assert (prior.labels, prior.counts) == ((2, 1), (30, 10))
    joint.write_text(json.dumps({"ill": {"young": 1, "old": 3}, "well": {"old": 2, "young": 4}}))
    secret = Secret.from_counts(joint)
    assert (secret.values, secret.labels, secret.prior.counts) == (
        ("ill", "well"),
        ("young", "old"),
        (5, 5),
    )
    counts.write_text('{"a": 1, "a": 2}')
    with pytest.raises(InputError, match="the key 'a' twice"):
        Prior.from_counts(counts)
