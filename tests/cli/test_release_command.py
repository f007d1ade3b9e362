"""`release`, `check` and `example`: from a data file to a folder that others check."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import KILLED, run

from pmlopt import Ledger, Mechanism
from pmlopt.estimation import coefficient_error
from pmlopt.releases.loading import load

EDUCATION = [
    *("--column", "education", "--epsilon", 0.3, "--utility", "absolute"),
    *("--drop", "id", "--drop", "sex"),
]
"""The options of a release of one column."""

PLAN = """
total = 1.0
drop = ["id"]
[release.education]
epsilon = 0.4
utility = "absolute"
[release.sex]
privacy = { name = "ldp", epsilon = 0.5 }
utility = "hamming"
"""


@pytest.fixture(scope="module")
def everybody(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    assert "45,000 made-up people" in run("example", path)
    return path


@pytest.fixture(scope="module")
def people(everybody: Path) -> Path:
    """The first 3,000 of them, enough for every level of education."""
    path = everybody.with_name("few.csv")
    path.write_text("".join(everybody.read_text().splitlines(keepends=True)[:3001]))
    return path


def test_the_example_has_the_published_shares(everybody: Path) -> None:
    # each share of 45,000 drawn rows is within 5 standard deviations, missed with probability 2e-5 for all 32
    from pmlopt.publishing.example import EDUCATION_BY_SEX

    data = pd.read_csv(everybody)
    counts = pd.DataFrame(EDUCATION_BY_SEX, index=range(1, 17), columns=["Female", "Male"])
    assert counts.to_numpy().sum() == 32_561  # people in the train part [becker1996adult]
    shares = counts / 32_561
    found = pd.crosstab(data["education"], data["sex"]) / 45_000
    assert ((found - shares).abs() < 5 * (shares * (1 - shares) / 45_000) ** 0.5).all(axis=None)
    assert list(data["id"]) == list(range(1, 45_001))


@pytest.fixture(scope="module")
def released(people: Path) -> Path:
    """A folder with one column, released."""
    out = people.with_name("out")
    said = run("release", people, *EDUCATION, "-o", out)
    assert "The released column leaks at most 0.3 nats about one person's education" in said
    assert "with all others" not in said  # of one column a table would repeat one number
    assert "If the output is" in said
    assert f"pmlopt check {out}" in said
    return out


def test_one_column_in_two_commands(released: Path) -> None:
    assert "All of it holds." in run("check", released)
    assert (released / "report.html").exists()


def test_a_plan_of_two_columns(people: Path, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(PLAN)
    assert run("release", people, "--plan", plan, "--dry-run").count("What an outcome reveals") == 2
    assert not out.exists()
    described = json.loads(run("release", people, "--plan", plan, "-o", out, "--json"))
    assert described["together"] <= 1.0
    verdict = json.loads(run("check", out, "--json"))
    assert verdict["holds"] is True
    assert len(verdict["notes"]) == 4  # issuer, shares, draws, other releases
    claims = {part["part"]: part for part in verdict["parts"]}
    assert "random" not in claims  # no folder shows it
    assert claims["level together"]["recomputed"] == pytest.approx(described["together"], abs=1e-12)
    data, written = pd.read_csv(people), pd.read_csv(out / "released.csv")
    written.loc[::3, ["education", "sex"]] = data.loc[
        ::3, ["education", "sex"]
    ]  # a third of the rows
    written.to_csv(out / "released.csv", index=False)
    assert "It FAILS." in run("check", out, code=1)
    plan.write_text(PLAN.replace("total = 1.0", "total = 0.1"))
    said = run("release", people, "--plan", plan, "-o", tmp_path / "other", code=1)
    assert "Nothing is written.\nLower an epsilon, or release or keep fewer columns." in said
    assert not (tmp_path / "other").exists()


def test_a_table_by_a_column_in_clear_is_estimated_from_the_folder(
    people: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = ("--epsilon", 0.5, "--utility", "estimation-error", "--drop", "id")
    run("release", people, "--column", "education", *options, "--keep", "sex", "-o", out)
    assert "a table by sex (--group-by sex)" in run("estimate", out)
    by_sex = json.loads(run("estimate", out, "--group-by", "sex", "--json"))
    apart = ("--data", out / "released.csv", "--column", "education", "--group-by", "sex")
    by_hand = json.loads(run("estimate", out / "mechanisms" / "education.json", *apart, "--json"))
    assert by_sex["people"] == by_hand["people"]

    tables = [
        sorted((one["letter"], round(one["estimate"], 9)) for one in found["estimates"])
        for found in (by_sex, by_hand)
    ]
    assert tables[0] == tables[1]
    assert "is not in clear: columns in clear are sex" in run(
        "estimate", out, "--group-by", "id", code=2
    )
    assert "leave out --counts" in run("estimate", out, "--data", people, code=2)
    within = json.loads(run("estimate", out, "--within", "sex", "--json"))
    stored = out / "mechanisms" / "education.json"
    by_hand = json.loads(run("estimate", stored, *apart[:-2], "--within", "sex", "--json"))
    assert [one["group"] for one in within["groups"]] == ["Female", "Male"]
    for one, other in zip(within["groups"], by_hand["groups"], strict=True):
        assert_same_estimates(one, other)
    assert "is not in clear" in run("estimate", out, "--within", "id", code=2)


def assert_same_estimates(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Compare estimates but for the rounding of sums, whose terms the rows order."""
    for row, wanted in zip(one["estimates"], other["estimates"], strict=True):
        assert row.pop("letter") == wanted.pop("letter")
        assert row == pytest.approx(wanted, rel=1e-6, abs=1e-9)


def write_weights(path: Path, cells: dict[int, str]) -> Path:
    """Write 300 people with weights from 1 to 3, and other cells in some rows."""
    rows = (f"{'yes' if k % 3 else 'no'},{cells.get(k, 1 + k % 3)}\n" for k in range(300))
    path.write_text("ill,w\n" + "".join(rows))
    return path


def test_weights_of_the_own_data_of_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("--column", "ill", "--epsilon", 0.5, "--utility", "estimation-error", "--keep", "w")
    run("release", write_weights(tmp_path / "d.csv", {}), *asked, "-o", out)
    found = json.loads(run("estimate", out, "--weight-column", "w", "--json"))
    apart = ("--data", out / "released.csv", "--column", "ill", "--weight-column", "w", "--json")
    assert_same_estimates(
        found, json.loads(run("estimate", out / "mechanisms" / "ill.json", *apart))
    )
    assert found["people"] == 300
    assert found["effective"] == pytest.approx(600**2 / (100 + 400 + 900))
    assert "is not in clear" in run("estimate", out, "--weight-column", "age", code=2)


def test_missing_weights_of_a_folder_are_refused_or_left_out(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("--column", "ill", "--epsilon", 0.5, "--utility", "estimation-error", "--keep", "w")
    holes = write_weights(tmp_path / "d.csv", {7: "", 11: ""})
    run("release", holes, *asked, "--keep-order", "-o", out)
    refused = run("estimate", out, "--weight-column", "w", code=2)
    assert "row 9: the weight in 'w' is missing" in " ".join(refused.split())
    said = run("estimate", out, "--weight-column", "w", "--missing", "drop")
    assert "2 of 300 rows (0.667 %) are left out" in " ".join(said.split())
    assert "298 released values" in said


@pytest.mark.parametrize(
    ("counts", "exactness"),
    [([], "in multiples of 10, and at least 10"), (["--exact-counts"], "exactly")],
)
def test_an_estimate_names_the_counts_that_the_folder_states(
    people: Path, tmp_path: Path, counts: list[str], exactness: str
) -> None:
    options = ("--epsilon", 0.3, "--utility", "estimation-error", "--drop-all", *counts)
    run("release", people, "--column", "sex", *options, "-o", tmp_path / "out")
    stated = json.loads((tmp_path / "out" / "release.json").read_text())
    true = pd.read_csv(people)["sex"].value_counts()
    for letters, count in zip(stated["letters"], stated["people"], strict=True):
        assert abs(true[letters[0]] - count) < stated["step"]
    assert f"states the counts of these people too, {exactness}." in run(
        "estimate", tmp_path / "out"
    )
    assert "rows, as claimed; the stated counts" in run("check", tmp_path / "out")
    # of other people's shares it is not so
    plan = f'law = "{people}"\ndrop = ["id", "education"]\n[release.sex]\n'
    (tmp_path / "plan.toml").write_text(f'{plan}epsilon = 0.3\nutility = "estimation-error"\n')
    run("release", people, "--plan", tmp_path / "plan.toml", *counts, "-o", tmp_path / "other")
    assert "counts of these people" not in run("estimate", tmp_path / "other")
    assert "the stated counts, of other people," in run("check", tmp_path / "other", code=3)


@pytest.mark.parametrize("renames", [5, 6])
def test_a_release_with_a_ledger_is_recorded_and_published_or_neither(
    tmp_path: Path, renames: int
) -> None:
    # five files of the folder, the ledger, the folder, and the ledger again
    data, book, out = tmp_path / "few.csv", tmp_path / "ledger.npz", tmp_path / "out"
    data.write_text("id,sex\n" + "".join(f"{k},{'fm'[k % 2]}\n" for k in range(40)))
    run("ledger", "new", book, "--prior", data, "--column", "sex", "--people", 40, "--total", 0.4)
    command = [
        *("release", data, "--column", "sex", "--epsilon", 0.2, "--utility", "hamming"),
        *("--drop", "id", "--ledger", book, "--person-column", "id", "-o", out),
    ]
    call = [sys.executable, "-c", KILLED, *map(str, [renames, *command])]
    assert subprocess.run(call, check=False, capture_output=True).returncode == -9
    assert Ledger.load(book).releases == renames - 5
    assert not out.exists()
    run(*command)  # again, as if nothing had been
    assert Ledger.load(book).releases == 1
    assert "All of it holds." in run("check", out)
    run(*command[:-1], tmp_path / "next")
    said = run(*command[:-1], tmp_path / "third", code=1)
    assert "The total of the ledger might be exceeded" in said
    assert Ledger.load(book).releases == 2


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ([], "give -o FOLDER"),
        (["--dry-run"], "give --column NAME for one release, or --plan FILE"),
        (["--column", "education", "--dry-run"], "--epsilon NATS, or --total NATS"),
        (["--column", "education", "--epsilon", "1", "--dry-run"], "--utility estimation-error"),
        (
            [
                *("--column", "sex", "--epsilon", "1", "--utility", "absolute"),
                "--drop-all",
                "--dry-run",
            ],
            "'Female' is no number",
        ),
        (
            ["--column", "sex", "--epsilon", "1", "--utility", "hamming", "--dry-run"],
            "'id', 'education'",
        ),
        (["--column", "age", "--epsilon", "1", "--utility", "hamming", "--dry-run"], "'age'"),
        (["--plan", "none.toml", "--dry-run"], "none.toml"),
        (["--plan", "none.toml", "--keep", "id", "--dry-run"], "leave out"),
    ],
)
def test_each_wrong_turn_is_answered(people: Path, options: list[str], match: str) -> None:
    assert match in run("release", people, *options, code=2)


def test_folders_and_files_are_told_apart(people: Path, released: Path, tmp_path: Path) -> None:
    assert "is there already" in run("release", people, *EDUCATION, "-o", tmp_path, code=2)
    assert "release.json" in run("check", tmp_path, code=2)
    assert "is there already" in run("example", people, code=2)
    assert "ends in .csv" in run("example", tmp_path / "people.parquet", code=2)
    saved = released / "mechanisms" / "education.json"
    for file in (released / "released.csv", released / "release.json", saved):
        assert f"pmlopt estimate {released}" in run("estimate", file, code=2)
        assert f"`pmlopt check {released}`" in run("check", file, code=2)
    assert "the folder of a release" in run("estimate", people, code=2)
    assert "`pmlopt check`" in run("verify", released, code=2)
    assert "`pmlopt verify`" in run("check", saved, code=2)
    assert "The claim holds" in run("audit", saved, "--epsilon", 0.3)  # under the prior of the file
    assert "The claim FAILS" in run("audit", saved, "--epsilon", 0.2, code=1)


def test_another_requirement_without_a_plan(people: Path, tmp_path: Path) -> None:
    """A mechanism of 0.4 nats of LDP: the ratio of two entries of a column is at most e^0.4."""
    asked = ("--column", "sex", "--epsilon", 0.4, "--utility", "estimation-error", "--drop-all")
    out = tmp_path / "out"
    said = run("release", people, *asked, "--privacy", "ldp", "-o", out)
    assert "ldp 0.4 of at most 0.4 nats" in said
    matrix = Mechanism.load(out / "mechanisms" / "sex.json").matrix
    ratios = matrix.max(axis=0) / matrix.min(axis=0)
    assert ratios.max() == pytest.approx(math.exp(0.4), abs=1e-6)
    assert "FAIL" not in run("check", out)
    for more, words in (
        (("--confidence-delta", 0.01), "--confidence-delta with pml"),
        (("--plan", people), "--plan states all of it"),
    ):
        refused = run("release", people, *asked, "--privacy", "ldp", *more, "--dry-run", code=2)
        assert words in refused
    unknown = run("release", people, *asked, "--privacy", "lpd", "--dry-run", code=2)
    assert "'lpd': known are" in unknown


def test_a_release_is_designed_for_a_coefficient(tmp_path: Path) -> None:
    data, out = tmp_path / "people.csv", tmp_path / "out"
    cells = [("no", "f")] * 400 + [("no", "m")] * 200 + [("yes", "f")] * 160 + [("yes", "m")] * 240
    pd.DataFrame(cells, columns=["ill", "sex"]).to_csv(data, index=False)
    asked = ("release", data, "--column", "ill", "--column", "sex", "--epsilon", 0.5, "--utility")
    run(*asked, "model:ill ~ sex", "-o", out)
    found = load(out / "mechanisms" / "ill_sex.json").certificate
    loss = coefficient_error(found.prior, "ill ~ sex", ["ill", "sex"])
    assert found.value == pytest.approx(loss.value(found.prior, found.mechanism), rel=1e-9)
    assert found.bound > 0.999 * found.value
    alone = ("release", data, "--column", "ill", "--drop", "sex", "--epsilon", 0.5, "--utility")
    assert "released together" in run(*alone, "model:ill ~ 1", "-o", tmp_path / "no", code=2)


def test_a_regression_takes_columns_that_were_designed_together(tmp_path: Path) -> None:
    # within 5 standard errors of the truth of the file: each draw misses once in a million
    formulas = pytest.importorskip("statsmodels.formula.api")
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"region": rng.choice(["east", "west"], 4000), "age": 40})
    people["ill"] = np.where(rng.random(4000) < 0.4, "yes", "no")
    chances = 0.3 + 0.2 * (people["ill"] == "yes") + 0.1 * (people["region"] == "west")
    people["smokes"] = np.where(rng.random(4000) < chances, "yes", "no")
    data, plan, out = tmp_path / "people.csv", tmp_path / "plan.toml", tmp_path / "out"
    people.to_csv(data, index=False)
    plan.write_text(
        'total = 1.5\ndrop = ["age"]\nmargins = [["smokes", "ill", "region"]]\n'
        "[release.smokes]\n[release.ill]\n[release.region]\n"
    )
    run("release", data, "--plan", plan, "-o", out)
    truth = people.assign(smokes=people["smokes"] == "yes") * 1
    for formula in ("smokes ~ C(region)", "smokes ~ ill + region"):
        found = json.loads(run("estimate", out, "--formula", formula, "--json"))["coefficients"]
        known = formulas.logit(formula, truth).fit(disp=0).params
        assert [one["name"] for one in found] == list(known.index)
        for one, value in zip(found, known, strict=True):
            assert one["standard_error"] < 0.5
            assert abs(one["coefficient"] - value) < 5 * one["standard_error"]
