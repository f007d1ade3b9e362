"""Requirements of one kind at once: both bind, and each keeps its level under a name of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pmlopt import (
    LIP,
    PML,
    ExpectedGain,
    L1Ball,
    MutualInformation,
    Prior,
    RatioBound,
    RenyiPML,
    Secret,
    Vulnerability,
    design,
    solve,
    verify_file,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement, RequirementConjunction

P = [0.5, 0.3, 0.2]
FIRST, SECOND = (
    Secret([[0.1, 0.2, 0.1], [0.4, 0.1, 0.1]]),
    Secret([[0.3, 0.1, 0.1], [0.2, 0.2, 0.1]]),
)
PAIRS: dict[str, tuple[Requirement, Requirement]] = {
    "ratio-bounds": (RatioBound([[1, 0, 0]], [P], 0.2), RatioBound([[0, 1, 0]], [P], 0.1)),
    "secrets": (PML(0.1, about=FIRST), PML(0.03, about=SECOND)),
    "sets": (PML(0.3), PML(0.33, over=L1Ball(P, 0.1))),
    "sides": (LIP(0.1, 0.5), LIP(0.5, 0.1)),
    "budgets": (PML([0.3, 0.2, 0.5]), PML([0.2, 0.3, 0.5])),
    "gains": (Vulnerability(epsilon=0.1), Vulnerability([[1, 0, 0], [0, 1, 1]], 0.02)),
}
GAINS = np.array([[1.0, 0.1, 0.0], [0.0, 1.3, 0.2], [0.3, 0.0, 1.9]])


@pytest.mark.parametrize("name", PAIRS)
def test_both_parts_bind_and_keep_their_levels(name: str, tmp_path: Path) -> None:
    one, other = PAIRS[name]
    both = one & other
    assert list(both.limits.values()) == [*one.limits.values(), *other.limits.values()]
    assert len(both.limits) == len(one.limits) + len(other.limits)
    result = solve(design(P, both, ExpectedGain(GAINS)))
    assert result.status.value == "optimal"
    for part in (one, other):
        assert part.holds(P, result.mechanism)
        assert result.value <= solve(design(P, part, ExpectedGain(GAINS))).bound + 1e-9
    levels = both.levels(P, result.mechanism)
    expected = [
        *one.levels(P, result.mechanism).values(),
        *other.levels(P, result.mechanism).values(),
    ]
    assert list(levels.values()) == expected
    assert all(limit in result.certificate.statement for limit in both.limits)
    path = tmp_path / "both.json"
    result.save(path)
    assert verify_file(path).holds
    parts = json.loads(path.read_text())["metadata"]["certificate"]["privacy"]["parts"]
    assert len(parts) == 2


def test_one_list_of_pairs_is_the_same_as_two() -> None:
    rows = np.eye(3)
    single = RatioBound(rows, [P] * 3, [0.2, 0.1, 0.3])
    stacked = RatioBound(rows[:1], [P], 0.2) & RatioBound(rows[1:], [P] * 2, [0.1, 0.3])
    for utility in (ExpectedGain(GAINS), MutualInformation()):
        values = [solve(design(P, one, utility)).value for one in (single, stacked)]
        assert values[0] == pytest.approx(values[1], abs=1e-8)


def test_three_of_one_kind_are_numbered() -> None:
    three = RenyiPML(2, 0.1) & RenyiPML(3, 0.2) & RenyiPML(4, 0.3)
    assert three.limits == {"renyi_pml": 0.1, "renyi_pml_2": 0.2, "renyi_pml_3": 0.3}
    assert isinstance(three, RequirementConjunction)
    assert three.for_prior(Prior(P)).limits == three.limits


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PML(0.3), PML(0.2)),
        (PML(0.3), PML(0.3)),
        (LIP(0.1, 0.2), LIP(0.1, 0.3)),
        (PML(0.1, about=FIRST), PML(0.2, about=FIRST)),
        (PML([0.1, 0.2, 0.3]), PML([0.1, 0.3, 0.3])),
        (RenyiPML(2, 0.1), RenyiPML(2, 0.2)),
        (RatioBound([[1, 0, 0]], [P], 0.2), RatioBound([[1, 0, 0]], [P], 0.3)),
    ],
)
def test_what_follows_from_another_by_its_level_is_refused(
    one: Requirement, other: Requirement
) -> None:
    with pytest.raises(PrivacyError, match="keep the stricter one"):
        one & other
