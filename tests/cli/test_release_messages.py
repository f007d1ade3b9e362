"""What `release` and `estimate` answer where a newcomer's command line lacks something or asks too much."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path

import pytest
from commands import run

from pmlopt.publishing import check
from pmlopt.publishing.folder import ReleaseFile

TWO = ("--column", "smokes", "--column", "education")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 1,200 people: age depends a little on smoking, and town is smoking in other words."""
    path = tmp_path_factory.mktemp("data") / "people.csv"
    counts = {
        ("yes", "low", "20s", "east"): 180, ("yes", "low", "30s", "east"): 90,
        ("yes", "high", "20s", "east"): 60, ("yes", "high", "30s", "east"): 70,
        ("no", "low", "20s", "west"): 140, ("no", "low", "30s", "west"): 160,
        ("no", "high", "20s", "west"): 230, ("no", "high", "30s", "west"): 270,
    }  # fmt: skip
    rows = [",".join(key) for key, number in counts.items() for _ in range(number)]
    path.write_text("smokes,education,age,town\n" + "\n".join(rows) + "\n")
    return path


def test_a_total_is_enough_for_columns_together(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("release", people, *TWO, "--total", 0.7, "--drop-all", "-o", out)
    (part,) = ReleaseFile.read(out).parts
    assert part.columns == ("smokes", "education")
    assert part.alone == pytest.approx(0.7, abs=1e-6)
    assert check(out).holds
    found = json.loads(run("estimate", out, "--json"))
    assert len(found["estimates"]) == 4  # the cross table can be estimated


@pytest.mark.parametrize("utility", ["hamming", "balanced-match"])
def test_columns_together_take_one_utility_for_each(
    people: Path, tmp_path: Path, utility: str
) -> None:
    plan = tmp_path / "plan.toml"
    tables = "".join(
        f'[release.{name}]\nutility = "{utility}"\n' for name in ("smokes", "education")
    )
    plan.write_text(f'total = 0.7\ndrop = ["age", "town"]\n{tables}')
    planned = run("release", people, "--plan", plan, "--dry-run")
    options = ("--total", 0.7, "--utility", utility, "--drop-all", "--dry-run")
    assert run("release", people, *TWO, *options) == planned


def test_a_total_is_the_bound_of_one_column(people: Path, tmp_path: Path) -> None:
    options = (
        "--total",
        0.3,
        "--utility",
        "estimation-error",
        "--drop-all",
        "-o",
        tmp_path / "out",
    )
    run("release", people, "--column", "smokes", *options)
    described = ReleaseFile.read(tmp_path / "out")
    assert described.total == 0.3
    assert 0.3 - 1e-9 < described.together <= 0.3


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--total", "1", "--utility", "mutual-information"], 'margins = [["smokes"]]'),
        (["--total", "1", "--utility", "absolute"], "is no number"),
        (["--total", "-1"], "--total is -1"),
        (["--total", "nan"], "--total is nan"),
        (["--total", "1", "--confidence-delta", "0.1"], "--confidence-delta goes with --epsilon"),
        (["--epsilon", "1", "--confidence-delta", "3", "--utility", "hamming"],
         "--confidence-delta is 3.0: it must be"),
        (["--epsilon", "1", "--privacy", "none", "--utility", "hamming"], "--privacy is 'none'"),
        (["--mechanism", "m.json", "--epsilon", "1"], "--mechanism is given, and --epsilon"),
        (["--total", "1", "--column", "smokes"], "--column smokes is given twice"),
        ([], "--epsilon NATS, or --total NATS"),
        (["--epsilon", "1"], "--utility estimation-error"),
    ],
)  # fmt: skip
def test_errors_name_options_and_no_keys_of_a_plan(
    people: Path, options: list[str], match: str
) -> None:
    said = run("release", people, *TWO, *options, "--drop-all", "--dry-run", code=2)
    assert match in said
    assert "release." not in said.replace(str(people), "")
    assert not re.search(r"\w+\(\w+=", said)  # the form in which Python prints an object


def exceed(people: Path, *options: object) -> str:
    start = ("release", people, "--column", "smokes", "--utility", "estimation-error")
    return run(*start, *options, "--dry-run", code=1)


def test_an_exceeded_total_says_what_each_kept_column_adds_and_what_fits(people: Path) -> None:
    options = ("--keep", "age", "--keep", "education", "--drop", "town", "--total", 0.6)
    said = exceed(people, "--epsilon", 0.5, *options)
    levels = dict(re.findall(r"(age|education) ([\d.]+) nats \(adds", said))
    for name, level in levels.items():
        assert f"{name} {level} nats (adds {float(level) - 0.5:.3g})" in said
    assert len(levels) == 2
    assert "what they add does not sum up" in said
    fits = re.search(r"give --epsilon ([\d.]+)\.$", said, re.MULTILINE)
    assert fits is not None
    start = ("release", people, "--column", "smokes", "--utility", "estimation-error", *options)
    run(*start, "--epsilon", fits[1], "--dry-run")
    run(*start, "--epsilon", float(fits[1]) * 1.2, "--dry-run", code=1)


def test_no_epsilon_fits_where_kept_columns_alone_reveal_more(people: Path) -> None:
    said = exceed(people, "--epsilon", 0.5, "--keep", "town", "--drop-all", "--total", 0.6)
    # the town tells who smokes: the level is -log of the rarer share, 400 of 1,200
    stated = re.search(r"No epsilon fits: town in clear alone reveals ([\d.]+) nats", said)
    assert stated is not None
    assert math.log(3) <= float(stated[1]) <= math.log(3) + 0.05 + 1e-9


def test_columns_together_leave_nothing_for_kept_ones(people: Path) -> None:
    options = (*TWO, "--keep", "age", "--drop-all", "--total", 0.7, "--dry-run")
    assert "use up the whole total" in run("release", people, *options, code=1)


def test_a_missing_column_is_answered_by_the_command_that_works(people: Path) -> None:
    start = ("release", people, "--column", "smokes", "--epsilon", 0.3, "--utility", "hamming")
    for kept in ((), ("--keep", "age")):
        said = run(*start, *kept, "--dry-run", code=2)
        words = shlex.split(said[said.index("pmlopt release") :])
        assert "What the release reveals" in run(*words[1:])
    assert "rest goes" not in run("release", "--help")
    said = run("release", "sqlite:///no.db?password=secret", *start[2:], "--dry-run", code=2)
    assert "secret" not in said[said.find("pmlopt release") :]


def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    for options in ((), ("--formula", "smokes ~ age")):
        said = run("estimate", tmp_path / "none", *options, code=2)
        assert "there is no such file or folder" in said


@pytest.mark.parametrize(
    ("begin", "form"), [('column = "smokes"', "smokes"), ("epsilon = 1", "NAME")]
)
def test_a_list_of_releases_is_answered_by_the_form_of_a_table(
    people: Path, tmp_path: Path, begin: str, form: str
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[release]]\n{begin}\nutility = "hamming"\n')
    said = run("release", people, "--plan", plan, "--dry-run", code=2)
    assert f"[release.{form}]" in said
    assert "{" not in said


def test_help_leads_to_a_plan_that_runs(tmp_path: Path) -> None:
    assert "pmlopt example plan.toml" in " ".join(run("release", "--help").split())
    plan, data = tmp_path / "plan.toml", tmp_path / "people.csv"
    run("example", plan)
    run("example", data)
    few = data.read_text().splitlines(keepends=True)[:1001]
    data.write_text("".join(few))
    assert "education and sex" in run("release", data, "--plan", plan, "--dry-run")
    assert "is there already" in run("example", plan, code=2)


def test_columns_together_are_advised_to_take_margins(people: Path) -> None:
    options = ("--total", 0.7, "--utility", "hamming", "--drop-all", "--dry-run")
    said = run("release", people, *TWO, *options)
    assert re.search(r"cannot be estimated: to estimate them choose .*margins", said)


def test_estimate_and_check_say_the_same_of_the_fit(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--epsilon", 0.3, "--utility", "estimation-error", "--drop-all")
    run("release", people, "--column", "education", *options, "-o", out)
    (fit,) = (one for one in check(out).parts if one.name == "fit")
    assert fit.detail in run("estimate", out)


def test_too_many_tuples_for_a_cross_table_are_told_without_keys_of_a_plan(tmp_path: Path) -> None:
    data = tmp_path / "wide.csv"
    data.write_text("a,b\n" + "".join(f"{k % 71},{k // 71}\n" for k in range(71**2)))
    options = ("--column", "a", "--column", "b", "--total", 1, "--dry-run")
    said = run("release", data, *options, code=2)
    assert "estimates of shares and cross tables need one mechanism" in said
    assert "margins" not in said
