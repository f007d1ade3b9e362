"""What is known without a release is estimated without an error: one letter, or a sum of all frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pmlopt import LDP, PML, EstimationError, design, solve
from pmlopt.publishing import check, release
from pmlopt.publishing.plans import read_plan


@pytest.mark.parametrize("requirement", [PML(0.5), LDP(0.5), PML(0.5) & LDP(0.4)], ids=str)
@pytest.mark.parametrize(
    ("prior", "utility"),
    [
        ([1.0], EstimationError()),
        ([1.0], EstimationError(criterion="D")),
        ([0.4, 0.6], EstimationError([[1.0, 1.0]])),
        ([0.2, 0.3, 0.5], EstimationError([[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]])),
    ],
)
def test_a_constant_is_optimal(prior: list[float], utility: Any, requirement: Any) -> None:
    found = solve(design(prior, requirement, utility))
    assert found.status.value == "optimal"
    assert found.value == pytest.approx(0.0, abs=1e-12)
    assert found.certificate.verify()
    assert np.ptp(found.mechanism.matrix, axis=0).max() == 0


def test_a_column_of_one_value_is_released(tmp_path: Any) -> None:
    plan = 'drop = []\n[release.a]\nepsilon = 0.5\nutility = "estimation-error"\n'
    (tmp_path / "plan.toml").write_text(plan)
    data = {"a": ["same"] * 40}
    made: Any = read_plan(tmp_path / "plan.toml").make_mechanisms(data)
    release(data, made, tmp_path / "out")
    assert check(tmp_path / "out").holds
