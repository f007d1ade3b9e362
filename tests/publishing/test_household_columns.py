"""Households of a release: rounded counts, pooled sizes, and a total that counts the members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pmlopt import Mechanism
from pmlopt.errors import PmloptError, PrivacyError
from pmlopt.publishing import check, read_plan, release
from pmlopt.publishing.household_columns import count_households
from pmlopt.releases.accounts.households import compute_household_level

UTILITIES: dict[str, Any] = {"level": "absolute", "sex": "hamming"}


def pairs(households: int = 400) -> pd.DataFrame:
    """Return couples of a similar level, and as many people who live alone."""
    rng = np.random.default_rng(11)
    level = rng.integers(0, 3, households)
    near = np.where(rng.random(households) < 0.8, level, rng.integers(0, 3, households))
    sex = rng.permuted(np.tile(["f", "m"], (households, 1)), axis=1)
    alone = pd.DataFrame({
        "home": [f"s{k}" for k in range(households)],
        "level": rng.integers(0, 3, households), "sex": rng.choice(["f", "m"], households),
    })  # fmt: skip
    both = pd.DataFrame({
        "home": [f"h{k}" for k in range(households)] * 2,
        "level": np.concatenate([level, near]), "sex": np.concatenate([sex[:, 0], sex[:, 1]]),
    })  # fmt: skip
    return pd.concat([both, alone]).sample(frac=1, random_state=3).reset_index(drop=True)


def test_the_total_counts_the_members_of_a_household() -> None:
    data = pairs()
    free = release(data, columns=UTILITIES, total=1.0, drop=["home"])
    counted = count_households(data, "home", ["level", "sex"])
    assert counted is not None
    assert counted.measure(free.releases) > 1.0
    found = release(data, columns=UTILITIES, total=1.0, drop=["home"], household_column="home")
    level = found.planned.household_level
    assert level is not None
    assert 0.0 < level <= 1.0
    assert found.levels.together < free.levels.together
    made: Any = found.made[0]
    assert made.certificate.verify()


def test_counts_are_rounded_and_sizes_are_pooled() -> None:
    data = pairs()
    extra = pd.DataFrame({"home": ["big"] * 5, "level": [0, 1, 2, 0, 1], "sex": list("fmfmf")})
    counted = count_households(pd.concat([data, extra]), "home", ["level", "sex"])
    assert counted is not None
    assert list(counted.law.counts) == [2]
    assert all(number % 10 == 0 for number in counted.law.counts[2].values())
    assert sum(counted.law.counts[2].values()) <= 400
    assert counted.law.pooled == 5


def test_pooled_sizes_are_designed_with_the_bound_for_every_dependence() -> None:
    extra = pd.DataFrame({"home": ["big"] * 5, "level": [0, 1, 2, 0, 1], "sex": list("fmfmf")})
    data = pd.concat([pairs(), extra], ignore_index=True)
    found = release(data, columns=UTILITIES, total=1.0, drop=["home"], household_column="home")
    level = found.planned.household_level
    assert level is not None
    assert level <= 1.0


def test_a_folder_states_the_level_and_leaves_it_open(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        "total = 1.0\ngroup = 'home'\ndrop = ['home']\n[release.level]\nutility = 'absolute'\n"
        "[release.sex]\nutility = 'hamming'\n"
    )
    plan = read_plan(tmp_path / "plan.toml")
    made = plan.make_mechanisms(pairs())
    release(pairs(), made, tmp_path / "out", drop=["home"], total=1.0, household_column=plan.group)
    verdict = check(tmp_path / "out")
    assert verdict.holds is None
    assert [one.name for one in verdict.parts if one.holds is None] == ["households"]
    assert "about one member" in (tmp_path / "out" / "report.md").read_text()
    assert "home" not in (tmp_path / "out" / "released.csv").read_text().splitlines()[0]


def test_mechanisms_that_are_given_are_measured(tmp_path: Path) -> None:
    flip = Mechanism([[0.9, 0.1], [0.1, 0.9]], ["f", "m"], ["f", "m"])
    data = pairs()
    draft = release(data, {"sex": flip}, drop=["level"], household_column="home")
    assert not draft.planned.kept  # the column itself is published by `keep` only
    exact = compute_household_level({(0, 1): 1}, flip)  # couples of a woman and a man
    assert draft.planned.household_level == pytest.approx(np.ceil(exact * 20) / 20)
    with pytest.raises(PrivacyError, match="about a member of a household"):
        release(
            data, {"sex": flip}, tmp_path / "out", drop=["home", "level"], household_column="home",
            total=0.6,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"household_column": "no"}, "no"),
        ({"household_column": "sex"}, "cannot be released"),
    ],
)
def test_bad_columns_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(PmloptError, match=says):
        release(pairs(20), columns=UTILITIES, total=1.0, drop=["home"], **change)


def test_households_of_groups_of_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        "total = 1.0\ngroup = 'home'\ndrop = ['home']\ngroups = [['level'], ['sex']]\n"
        "[release.level]\nutility = 'absolute'\n[release.sex]\nutility = 'hamming'\n"
    )
    with pytest.raises(PmloptError, match=r"households need one mechanism.*leave the groups out"):
        read_plan(tmp_path / "plan.toml").make_mechanisms(pairs(20))


def test_a_household_of_everybody_is_refused() -> None:
    data = pairs(20).assign(town="x")
    with pytest.raises(PmloptError, match="more than 100 rows"):
        count_households(pd.concat([data] * 4), "town", ["level"])


def test_a_missing_household_is_refused() -> None:
    data = pairs(20)
    data.loc[3, "home"] = None
    with pytest.raises(PmloptError, match="missing"):
        count_households(data, "home", ["level", "sex"], "letter")
