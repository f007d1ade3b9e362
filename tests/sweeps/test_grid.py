"""The points of a grid; what tells two sweeps apart."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import threading
from collections import deque
from datetime import date
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweeps.builders import logged, plain

from pmlopt import PML, L1Ball, Prior, sweep
from pmlopt.errors import SweepError
from pmlopt.sweeps.journal import MAX_FINGERPRINT_DEPTH, compute_fingerprint, get_builder_name
from pmlopt.sweeps.table import list_points


def test_all_combinations_with_the_last_name_fastest() -> None:
    points = list_points({"size": [2, 3], "epsilon": np.array([0.1, 0.2])})
    assert [tuple(point.values()) for point in points] == [(2, 0.1), (2, 0.2), (3, 0.1), (3, 0.2)]
    assert {type(point["epsilon"]) for point in points} == {float}


def test_grids_that_cannot_be_meant() -> None:
    grids: list[tuple[Any, str]] = [
        ({}, "is empty"), ([], "is empty"), ({"epsilon": []}, "'epsilon' has no values"),
        ({"epsilon": 0.5}, "'epsilon' is 0.5"), ({"epsilon": "0.5"}, "'epsilon' is '0.5'"),
        ("epsilon", "a grid is a mapping"), (3, "a grid is a mapping"),
        ([{"a": 1}, {"b": 1}], "point 1 of the grid"), ([1, 2], "point 0 of the grid is 1"),
        ({"value": [1]}, "'value' is a column"), ({"an epsilon": [1]}, "'an epsilon' is no name"),
        ({1: [1]}, "1 is no name"),
    ]  # fmt: skip
    for grid, said in grids:
        with pytest.raises(SweepError, match=said):
            list_points(grid)


def test_the_fingerprint_tells_data_apart_and_nothing_else() -> None:
    prior = Prior([0.5, 0.5])
    ball = L1Ball(prior, 0.1)
    things: list[Any] = [
        plain, logged, prior, Prior([0.25, 0.75]), PML(1.0), PML(1.0, over=ball),
        PML(1.0, over=L1Ball(prior, 0.2)), partial(plain, size=3), partial(plain, size=4), prior.reordered,
        {1, 2}, 1, 1.0, "1", None, np.array([1, None]),
    ]  # fmt: skip
    assert len({compute_fingerprint(thing) for thing in things}) == 16
    before = compute_fingerprint(ball)
    known = [name for name, item in vars(L1Ball).items() if isinstance(item, cached_property)]
    assert [
        getattr(ball, name) for name in known
    ]  # what is computed once and kept is no other data
    assert (
        compute_fingerprint(ball) == before == compute_fingerprint(L1Ball(Prior([0.5, 0.5]), 0.1))
    )


def test_the_fingerprint_sees_what_a_function_has_bound() -> None:
    def scaled(factor: float) -> Any:
        return lambda epsilon: plain(3, factor * epsilon)

    assert (
        compute_fingerprint(scaled(2.0))
        == compute_fingerprint(scaled(2.0))
        != compute_fingerprint(scaled(3.0))
    )
    around: list[Any] = []
    around.append(around)
    assert compute_fingerprint(around)
    assert get_builder_name(PML(1.0)) == "pmlopt.model.privacy.named_bounds.PML"


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor


class SlottedBelow(Slotted):
    """One more slot beside those of its class above, and a dictionary."""

    __slots__ = ("__dict__", "other")


def below(other: float, kept: float) -> SlottedBelow:
    made = SlottedBelow(1.0)
    made.other, made.kept = other, kept  # type: ignore[attr-defined]
    return made


def by_keyword(factor: float) -> Any:
    def build(*, epsilon: float, scale: float = factor) -> Any:
        return plain(3, scale * epsilon)

    return build


def wrapped(factor: float) -> Any:
    @lru_cache
    def build(epsilon: float) -> Any:
        return plain(3, factor * epsilon)

    return build


def nested(depth: int) -> list[Any]:
    return [] if depth == 0 else [nested(depth - 1)]


@pytest.mark.parametrize(
    "pair",
    [
        (Slotted(1.0), Slotted(2.0)),
        (below(1.0, 2.0), below(1.0, 3.0)),
        (below(1.0, 2.0), below(3.0, 2.0)),
        (by_keyword(1.0), by_keyword(2.0)),
        (wrapped(1.0), wrapped(2.0)),
        (lambda epsilon: plain(3, epsilon), lambda epsilon: plain(4, epsilon)),
        (lambda epsilon: plain(3, epsilon), lambda epsilon: max(3, epsilon)),
        ([1, 2].index, [1, 3].index),
        (range(3), range(4)),
        (iter([1, 2]), iter([1, 3])),
        (date(2026, 1, 1), date(2026, 1, 2)),
        (Fraction(1, 3), Fraction(2, 3)),
        (deque([1]), deque([2])),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (np.ma.masked_array([1, 2], [False, True]), np.ma.masked_array([1, 2], [True, False])),
        (math, statistics),
        (Prior([0.5, 0.5]), Prior([0.5, 0.5], labels=[0, 1])),
        (nested(3), nested(4)),
    ],
    ids=lambda pair: type(pair[0]).__name__,
)
def test_what_differs_has_another_fingerprint(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert compute_fingerprint(one) == compute_fingerprint(one) != compute_fingerprint(other)


def test_what_cannot_be_told_apart_is_refused(tmp_path: Path) -> None:
    things: list[Any] = [
        (x for x in (1, 2)),
        threading.Lock(),
        nested(MAX_FINGERPRINT_DEPTH + 2),
        memoryview(b"a"),
    ]
    for thing in things:
        with pytest.raises(SweepError, match="instead"):
            compute_fingerprint(partial(plain, thing))
        with pytest.raises(SweepError, match="instead"):
            sweep(partial(plain, size=thing), {"epsilon": [0.5]}, out=tmp_path / "table.csv")
    assert list(tmp_path.iterdir()) == []


def test_the_fingerprint_is_the_same_in_another_process() -> None:
    code = (
        "from functools import partial\nfrom pmlopt import PML, L1Ball\nfrom sweeps.builders import plain\n"
        "from pmlopt.sweeps.journal import compute_fingerprint\n"
        "print(compute_fingerprint(partial(plain, PML(1.0, over=L1Ball([0.5, 0.5], 0.1)), {'a', 'b'})))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"}
    there = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    bound: Any = (PML(1.0, over=L1Ball([0.5, 0.5], 0.1)), {"a", "b"})
    here = compute_fingerprint(partial(plain, *bound))
    assert there.stdout.strip() == here
