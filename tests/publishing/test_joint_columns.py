"""Columns of a release that are designed together: a plan with a total, and what its folder states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pmlopt import Prior, Result, estimate, leakage_level, solve
from pmlopt.errors import PmloptError
from pmlopt.programs.column_designs import build_row_secret, joint_design, measure_columns
from pmlopt.publishing import check, read_plan, release
from pmlopt.publishing.joint_columns import count_stated_rows
from pmlopt.publishing.page import build_sections
from pmlopt.publishing.plans import ReleasePlan
from pmlopt.publishing.releaser_notes import build_releaser_notes
from pmlopt.releases.accounts.column_groups import split_evenly
from pmlopt.utility import workload_matrix

UTILITIES: dict[str, Any] = {"level": "absolute", "sex": "balanced-match"}


def people(rows: int = 900) -> pd.DataFrame:
    """Return rows of dependent columns with a number of the row."""
    rng = np.random.default_rng(8)
    level = rng.integers(1, 5, rows)
    sex = np.where(rng.random(rows) < 0.15 + 0.2 * (level > 2), "f", "m")
    return pd.DataFrame({"id": range(rows), "level": level, "sex": sex})


def expected() -> Any:
    """Return the design for the rounded counts, by the builder."""
    stated = count_stated_rows(people(), ["level", "sex"])
    assert all(count % 10 == 0 for count in stated.values())
    return solve(
        joint_design(Prior.from_weights(list(stated.values()), list(stated)), 0.7, UTILITIES)
    )


def write_plan(folder: Path, text: str) -> ReleasePlan:
    """Write a plan file, and read it."""
    (folder / "plan.toml").write_text(f"total = 0.7\ndrop = ['id']\n{text}")
    return read_plan(folder / "plan.toml")


PLAN = "[release.level]\nutility = 'absolute'\n[release.sex]\nutility = {kind = 'balanced-match'}\n"


def test_a_total_and_utilities_are_enough(tmp_path: Path) -> None:
    (columns, made), *rest = write_plan(tmp_path, PLAN).make_mechanisms(people()).items()
    assert (columns, rest) == (("level", "sex"), [])
    result: Any = made
    assert result.value == pytest.approx(expected().value, abs=1e-9)
    assert result.certificate.verify()
    draft = release(people(), columns=UTILITIES, total=0.7, drop=["id"])
    own: Any = draft.made[0]
    assert own.value == pytest.approx(result.value, abs=1e-9)
    assert draft.levels.together <= 0.7


def test_the_folder_holds_and_has_no_exact_count(tmp_path: Path) -> None:
    release(people(), target=tmp_path / "out", columns=UTILITIES, total=0.7, drop=["id"])
    verdict = check(tmp_path / "out")
    assert verdict.holds, verdict
    described = json.loads((tmp_path / "out" / "release.json").read_text())
    assert described["together"] <= 0.7
    assert all(count % described["step"] == 0 for count in described["people"])
    written = pd.read_csv(tmp_path / "out" / "released.csv")
    assert list(written) == ["level", "sex"]
    assert len(written) == 900


def test_the_report_states_what_each_column_loses() -> None:
    draft = release(people(), columns=UTILITIES, total=0.7, drop=["id"])
    made: Any = draft.made[0]
    prior = made.certificate.prior
    parts = measure_columns(prior, made.mechanism, UTILITIES)
    shares = " and ".join(f"{one.column} {one.loss / one.nothing:.3g}" for one in parts)
    lines = [line for one in build_sections(draft.planned, draft.made) for line in one.lines]
    assert f"Its loss as a share of the loss of releasing nothing: {shares}." in lines
    apart = split_evenly(prior, 0.7, UTILITIES)
    notes = " ".join(build_releaser_notes(draft).lines)
    assert f"the loss would be {apart.value:.4g} in place of {made.value:.4g}" in notes
    assert apart.value > made.value


def test_groups_are_released_through_a_mechanism_each(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "groups = [['level'], ['sex']]\n" + PLAN)
    made = plan.make_mechanisms(people())
    assert list(made) == ["level", "sex"]
    draft = release(people(), made, tmp_path / "out", drop=["id"], total=0.7)
    assert draft.levels.together <= 0.7
    assert check(tmp_path / "out").holds


def test_margins_can_be_estimated_from_the_release(tmp_path: Path) -> None:
    plan = write_plan(
        tmp_path, "margins = [['sex']]\n[release.level]\n[release.sex]\n"
    ).with_options(total=1.5)
    data = people()
    data["level"] = (data["level"] > 2).astype(int)
    ((columns, made),) = plan.make_mechanisms(data).items()
    result: Any = made
    assert columns == ("level", "sex")
    assert np.isfinite(result.value)
    release(data, {columns: result}, tmp_path / "out", drop=["id"], seed=5)
    drawn = pd.read_csv(tmp_path / "out" / "released.csv").iloc[:, 0]
    whole = estimate(result.mechanism.with_named_outputs(), released=drawn)
    found = estimate(
        result.mechanism.with_named_outputs(), released=drawn, workload="marginals:2/1,2"
    )
    assert found.letters[:3] == ("part 2 = f", "part 2 = m", "part 1 = 0, part 2 = f")
    # a share is the sum of its cells, with the variance of the sum
    rows = np.array([[float(label[1] == "f") for label in result.mechanism.inputs]])
    assert found.frequencies[0] == pytest.approx(float((rows @ whole.frequencies)[0]), abs=1e-9)
    variance = float((rows @ whole.covariance @ rows.T)[0, 0])
    assert found.standard_errors[0] == pytest.approx(variance**0.5, rel=1e-6)
    truth = float((data["sex"] == "f").mean())
    assert (
        abs(found.frequencies[0] - truth) < 6 * found.standard_errors[0]
    )  # missed once in 5e8 seeds


def test_a_limit_about_a_column_is_kept(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, PLAN + "limit = 0.1\n")
    draft = release(people(), plan.make_mechanisms(people()), drop=["id"])
    free = release(people(), columns=UTILITIES, total=0.7, drop=["id"])
    limited: Any = draft.made[0]
    unlimited: Any = free.made[0]
    assert limited.value > unlimited.value + 1e-6
    assert "pml_about_sex" in limited.certificate.statement


@pytest.mark.parametrize(
    ("table", "function"),
    [
        ("columns = ['level']\nclasses = [[3, 4]]", lambda row: row[0] >= 3),
        ("columns = ['level', 'sex']\nclasses = [[[1, 'f']], [[2, 'm'], [3, 'm']]]",
         lambda row: {(1, "f"): "a", (2, "m"): "b", (3, "m"): "b"}.get(row)),
        ("columns = ['sex']", lambda row: row[1]),
    ],
)  # fmt: skip
def test_a_limit_about_a_function_of_the_row_is_kept(
    tmp_path: Path, table: str, function: Callable[[Any], Any]
) -> None:
    plan = write_plan(tmp_path, PLAN + f"[about.high]\n{table}\nlimit = 0.05\n")
    (made,) = plan.make_mechanisms(people()).values()
    result: Any = made
    prior = result.certificate.prior
    secret = build_row_secret(prior, function, "high")
    assert leakage_level(secret, result.mechanism) <= 0.05 + 1e-12
    assert leakage_level(secret, expected().mechanism) > 0.06
    draft = release(
        people(), columns=UTILITIES, about={"high": (function, 0.05)}, total=0.7, drop=["id"]
    )
    same: Any = draft.made[0]
    assert same.value == pytest.approx(result.value, abs=1e-7)


def test_limits_about_columns_are_kept_in_python(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, PLAN + "limit = 0.1\n")
    (planned,) = plan.make_mechanisms(people()).values()
    draft = release(people(), columns=UTILITIES, limits={"sex": 0.1}, total=0.7, drop=["id"])
    made, same = draft.made[0], planned
    assert isinstance(made, Result)
    assert isinstance(same, Result)
    assert made.value == pytest.approx(same.value, abs=1e-9)


def test_tables_with_bounds_are_designed_apart_as_before(tmp_path: Path) -> None:
    text = "[release.level]\nepsilon = 0.2\nutility = 'absolute'\n"
    text += "[release.sex]\nepsilon = 0.1\nutility = 'hamming'\n"
    made = write_plan(tmp_path, text).make_mechanisms(people())
    assert list(made) == [("level",), ("sex",)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[release.level]\nutility = 'absolute'\n", "two on|epsilon or privacy"),
        (PLAN + "weight = 0\n", "weight of sex"),
        (PLAN + "[about.x]\ncolumns = ['sax']\nlimit = 0.1\n", "sax.*did you mean"),
        (PLAN + "[about.x]\ncolumns = []\nlimit = 0.1\n", "name the columns"),
        (PLAN + "[about.sex]\ncolumns = ['sex']\nlimit = 0.1\n", "give limits"),
        (PLAN + "[about.x]\ncolumns = ['sex']\nlimit = -1\n", "limit"),
        (PLAN + "[about.x]\ncolumns = ['sex']\n", "limit"),
        (PLAN + "[about.x]\ncolumns = ['level']\nlimit = 0.1\nclasses = [['3']]\n", "in no row"),
        (
            PLAN + "[about.x]\ncolumns = ['level']\nlimit = 0.1\nclasses = [[3], [3]]\n",
            "two of them",
        ),
        (
            "[about.x]\ncolumns = ['sex']\nlimit = 0.1\n"
            "[release.level]\nepsilon = 1.0\nutility = 'hamming'\n",
            "designed together",
        ),
        (
            "groups = [['level'], ['sex']]\n"
            + PLAN
            + "[about.x]\ncolumns = ['sex']\nlimit = 0.1\n",
            "one mechanism on the tuples",
        ),
        (PLAN + "epsilon = 0.5\n", "give epsilon or privacy"),
        (PLAN.replace("'absolute'", "'no-such'"), "no-such"),
        (PLAN.replace("'absolute'", "'estimation-error'"), "utility of level"),
        (PLAN.replace("release.sex", "release.sax"), "sax"),
        ("[release.level]\n[release.sex]\nutility = 'hamming'\n", "utility for level"),
        ("margins = [['sex']]\n" + PLAN, "one of"),
        ("margins = [['sax']]\n[release.level]\n[release.sex]\n", "sax"),
        ("groups = [['level']]\n" + PLAN, "name each"),
        ("groups = [['level'], ['sex']]\n" + PLAN + "limit = 0.2\n", "leave the groups out"),
        (
            "groups = [['level']]\n[release.level]\nepsilon = 1.0\nutility = 'hamming'\n",
            "designed together",
        ),
    ],
)
def test_bad_plans_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(PmloptError, match=says):
        write_plan(tmp_path, text).make_mechanisms(people())


def test_a_total_of_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PmloptError, match="above 0"):
        write_plan(tmp_path, PLAN).with_options(total=0.0).make_mechanisms(people())


@pytest.mark.parametrize("name", ["marginals:", "marginals:3", "marginals:1,x", "marginals:1,1"])
def test_marginals_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(PmloptError, match=r"numbers from 1|different columns"):
        workload_matrix(name, [("a", 0), ("b", 1)])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"columns": UTILITIES}, "need a total"),
        ({"columns": UTILITIES, "total": 0.0}, "above 0"),
        ({"columns": UTILITIES, "total": 1.0, "limits": {"sax": 1.0}}, "sax"),
        ({"mechanisms": {"sex": "m.json"}, "limits": {"sex": 1.0}}, "give columns"),
        ({"mechanisms": {}, "about": {"x": (str, 1.0)}}, "give columns"),
        ({"columns": UTILITIES, "mechanisms": {"sex": "m.json"}, "total": 1.0}, "one of the two"),
        ({}, "nothing is released"),
    ],
)
def test_bad_releases_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(PmloptError, match=says):
        release(people(), drop=["id"], **given)


def test_a_combination_that_the_law_lacks_is_named() -> None:
    data = people()
    law = data[~((data["level"] == 1) & (data["sex"] == "f"))]
    with pytest.raises(PmloptError, match=r"1.*f"):
        release(data, columns=UTILITIES, total=0.7, drop=["id"], law=law)
