"""Masked entries of arrays are missing, wherever an array of values or numbers is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pmlopt import (
    PML,
    Chain,
    Continuous,
    ExpectedGain,
    ExpectedLoss,
    Ledger,
    Mechanism,
    Prior,
    Secret,
)
from pmlopt.core.frames import find_masked_entry
from pmlopt.errors import InputError
from pmlopt.releases.noise import LaplaceHistogram
from pmlopt.tables import column_counts


def masked(values: Any, mask: Any) -> Any:
    """An array with masked entries."""
    return np.ma.masked_array(values, np.array(mask, dtype=bool))


LIST: Any = [[0, np.ma.masked], [1, 0]]
HALVES = masked([[0.5, 0.5], [0.5, 0.5]], [[0, 0], [0, 1]])
COUNTS = masked([[5, 5], [5, 5]], [[0, 0], [0, 1]])
SAME = Mechanism(np.eye(2), ["no", "yes"], ["no", "yes"])
KEPT_BACK = masked(["no", "yes", "yes"], [False, True, False])

TAKEN: dict[str, Callable[[], Any]] = {
    "mechanism": lambda: Mechanism(HALVES),
    "rows": lambda: Mechanism(list(HALVES)),
    "gain": lambda: ExpectedGain(HALVES),
    "loss": lambda: ExpectedLoss(LIST),
    "sample": lambda: SAME.sample(KEPT_BACK),
    "joint law": lambda: Secret(HALVES / 2),
    "joint counts": lambda: Secret.from_counts(COUNTS),
    "ledger": lambda: Ledger(Prior([0.5, 0.5], ["no", "yes"]), 3).record(SAME, KEPT_BACK),
    "outcomes": lambda: Ledger(Prior([0.5, 0.5]), 2).record(
        Mechanism(np.eye(2)), masked([0, 1], [0, 1])
    ),
    "people": lambda: Ledger(Prior([0.5, 0.5]), 2).record(
        Mechanism(np.eye(2)), [0, 1], masked([0, 1], [0, 1])
    ),
    "chain": lambda: Chain([0.5, 0.5], HALVES),
    "continuous": lambda: Continuous.from_samples(masked([1.0, 2.0, 4.0], [0, 0, 1])),
    "histogram": lambda: LaplaceHistogram.calibrate(epsilon=1.0).release(COUNTS.ravel(), 1),
    "column": lambda: column_counts({"c": KEPT_BACK}, "c"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_lies_below_a_mask_is_never_used(name: str) -> None:
    with pytest.raises(InputError, match=r"masked|missing|None is n|value None is not an input"):
        TAKEN[name]()


def test_the_first_masked_entry_is_found() -> None:
    assert find_masked_entry(HALVES) == (1, 1)
    assert find_masked_entry([HALVES[0], HALVES[1]]) == (1, 1)
    assert find_masked_entry([1, np.ma.masked]) == (1,)
    assert find_masked_entry(masked([1, 2], [0, 0])) is None
    assert find_masked_entry([[1.0, 2.0], [3.0, 4.0]]) is None


def test_an_array_that_masks_nothing_is_an_array() -> None:
    assert Mechanism(masked([[0.5, 0.5]], [[0, 0]])).matrix.tolist() == [[0.5, 0.5]]
    assert SAME.sample(masked(["no", "yes"], [0, 0])).tolist() == ["no", "yes"]
    assert PML(0.3) == PML(masked([0.3], [0])[0])
