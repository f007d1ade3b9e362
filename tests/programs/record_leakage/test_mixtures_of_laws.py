"""Laws that are mixed until their entropy is enough, and the most datasets that are gone through."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.errors import SolverUnavailableError
from pmlopt.programs.wu2026entropy.alternating import check_dataset_count, mix_until_allowed


@pytest.mark.parametrize("inner", [np.zeros(4), np.log([3.0, 1.0, 2.0, 1.0])])
def test_a_law_is_mixed_as_far_as_its_entropy_needs(inner: np.ndarray[Any, Any]) -> None:
    law, towards = np.array([0.91, 0.03, 0.05, 0.01]), np.full(4, 0.25)

    def entropy(one: np.ndarray[Any, Any]) -> float:
        return float(-(one * np.log(one)).sum() + one @ inner)

    wanted = 0.4 * entropy(law) + 0.6 * entropy(towards)
    if wanted < entropy(law):
        law, towards = towards, law
    found = mix_until_allowed(law, towards, inner, wanted)
    assert found.sum() == pytest.approx(1.0)
    assert entropy(found) == pytest.approx(wanted)
    weight = (found - law) / (towards - law)
    assert weight == pytest.approx(np.full(4, weight[0]))
    assert mix_until_allowed(law, towards, inner, entropy(law) - 1e-9) == pytest.approx(law)


@pytest.mark.parametrize(("count", "many"), [(2**14, False), (2**14 + 1, True), (2**20, True)])
def test_sixteen_thousand_datasets_are_gone_through_and_one_more_is_not(
    count: int, many: bool
) -> None:
    query: Any = SimpleNamespace(log_size=math.log(count))
    if many:
        with pytest.raises(SolverUnavailableError):
            check_dataset_count(query)
    else:
        check_dataset_count(query)
