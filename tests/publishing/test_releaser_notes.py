"""What `release` states to the releaser: the exact level, missing cells, and how to publish no shares."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from commands import run

from pmlopt import Mechanism
from pmlopt.estimation import detectable_difference
from pmlopt.publishing import release, write_release
from pmlopt.publishing.releaser_notes import compute_exact_level, count_empty_rows

COUNTS = {"a": 143, "b": 77, "c": 31, "d": 6}
OPTIONS = ("--column", "ill", "--epsilon", 0.5, "--utility", "estimation-error", "--drop-all")


def write_people(path: Path, counts: dict[str, int]) -> Path:
    """Write a file with a column of the letters, and one of numbers."""
    cells = [letter for letter, number in counts.items() for _ in range(number)]
    path.write_text("ill,id\n" + "".join(f"{cell},{k}\n" for k, cell in enumerate(cells)))
    return path


def find_exact_level(matrix: list[list[float]], counts: list[int]) -> float:
    """Return the largest log P(y | x) / P(y) by the definition."""
    total = sum(counts)
    outputs = range(len(matrix[0]))
    law = [sum(n / total * row[y] for n, row in zip(counts, matrix, strict=True)) for y in outputs]
    return max(math.log(row[y] / law[y]) for row in matrix for y in outputs if row[y] > 0)


def test_the_level_under_the_exact_shares_is_printed_and_in_no_file(tmp_path: Path) -> None:
    data, out = write_people(tmp_path / "people.csv", COUNTS), tmp_path / "out"
    said = run("release", data, *OPTIONS, "-o", out)
    designed = Mechanism.load(out / "mechanisms" / "ill.json")
    level = find_exact_level(designed.matrix.tolist(), list(COUNTS.values()))
    assert level > 0.5005  # 6 people are stated as 10
    assert f"Under the exact shares of the file the level is {level:.6g} nats: the 0.5 nats" in said
    for file in (path for path in out.rglob("*") if path.is_file()):
        assert f"{level:.6g}" not in file.read_text()
        assert "Under the exact shares" not in file.read_text()
    assert "Under the exact shares" in run("release", data, *OPTIONS, "--dry-run")
    assert "Under the exact shares" not in run(
        "release", data, *OPTIONS, "--exact-counts", "--dry-run"
    )


def test_the_level_of_two_columns_is_the_joint_one() -> None:
    flip = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["n", "y"], ["n", "y"])
    pairs = {("n", "n"): 46, ("n", "y"): 14, ("y", "n"): 13, ("y", "y"): 47}
    rows = [pair for pair, number in pairs.items() for _ in range(number)]
    table = {"p": [one for one, _ in rows], "q": [other for _, other in rows]}
    draft = release(table, {"p": flip, "q": flip})
    joint = [[one * other for one in a for other in b] for a in flip.matrix for b in flip.matrix]
    expected = find_exact_level(joint, list(pairs.values()))
    assert compute_exact_level(draft) == pytest.approx(expected, abs=1e-12)
    assert abs(draft.levels.together - expected) > 1e-3


def test_the_shares_of_a_law_are_published_in_place_of_those_of_the_people(tmp_path: Path) -> None:
    data = write_people(tmp_path / "people.csv", COUNTS)
    law = write_people(tmp_path / "law.csv", dict.fromkeys(COUNTS, 1))
    assert "--law FILE" in run("release", data, *OPTIONS, "--dry-run")
    said = run("release", data, *OPTIONS, "--law", law, "-o", tmp_path / "out")
    stated = json.loads((tmp_path / "out" / "release.json").read_text())
    assert (stated["people"], stated["same_people"]) == ([10] * 4, False)
    assert (
        "how many other people have each value, in multiples of 10, and at least 10, and no count of these"
        in said
    )
    designed = Mechanism.load(tmp_path / "out" / "mechanisms" / "ill.json")
    level = find_exact_level(designed.matrix.tolist(), list(COUNTS.values()))
    assert level > 0.6  # the shares are far from equal
    assert (
        f"the level is {level:.6g} nats: the 0.5 nats above are for the shares of the law" in said
    )
    assert "To publish no shares" not in said
    run("check", tmp_path / "out", code=3)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'law = "law.csv"\ndrop = ["id"]\n[release.ill]\nepsilon = 0.5\nutility = "estimation-error"\n'
    )
    said = run("release", data, *OPTIONS, "--law", law, "--dry-run")
    assert run("release", data, "--plan", plan, "--dry-run") == said


@pytest.mark.parametrize(
    ("missing", "note"),
    [
        ("drop", "20 of 277 rows (7.22 %) have a missing cell and are left out."),
        (
            "letter",
            "20 of 277 rows (7.22 %) have a missing or empty cell, which counts as the value ''.",
        ),
    ],
)
def test_rows_with_a_missing_cell_are_stated_with_either_choice(
    tmp_path: Path, missing: str, note: str
) -> None:
    data = write_people(tmp_path / "people.csv", {**COUNTS, "": 20})
    command = ("release", data, *OPTIONS, "--dry-run")
    assert "20 of 277 rows (7.22 %) have none. Give --missing drop" in run(*command, code=2)
    assert note in run(*command, "--missing", missing)
    assert "missing" not in run("release", write_people(data, COUNTS), *OPTIONS, "--dry-run")


def test_empty_cells_of_any_column_are_counted_once() -> None:
    table = {"p": ["x", "", "", "x"] * 25, "q": ["", "", "z", "z"] * 25}
    one = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["", "x"], ["u", "v"])
    pair = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["", "z"], ["u", "v"])
    assert count_empty_rows(release(table, {"p": one, "q": pair})) == 75
    both = Mechanism([[0.5, 0.5]] * 4, [("x", ""), ("", ""), ("", "z"), ("x", "z")], ["u", "v"])
    assert count_empty_rows(release(table, {("p", "q"): both})) == 75


def test_screen_and_report_state_the_unit_the_counts_and_which_rows_they_are_about(
    tmp_path: Path,
) -> None:
    data = write_people(tmp_path / "people.csv", COUNTS)
    said = run("release", data, *OPTIONS, "-o", tmp_path / "out")
    for text in (said, (tmp_path / "out" / "report.md").read_text()):
        assert (
            "Each row counts as one person: for somebody with several rows this is no limit."
            in text
        )
        assert "release.json states how many people have each value, in multiples of 10" in text
        assert "(a file of new rows is no such release)" in text
        assert "adversary who knows the shares of its values" in text
        assert "all combinations" not in text


def test_the_epsilon_that_is_advised_is_kept_under_the_exact_shares_too(tmp_path: Path) -> None:
    data = write_people(tmp_path / "people.csv", COUNTS)
    said = run("release", data, *OPTIONS, "--dry-run")
    advised = said.partition("take --epsilon ")[2].split()[0].rstrip(".")
    assert 0.45 < float(advised) < 0.5
    again = [advised if one == 0.5 else one for one in OPTIONS]
    told = run("release", data, *again, "--dry-run")
    level = told.partition("Under the exact shares of the file the level is ")[2].split()[0]
    assert float(level) <= 0.5
    # rows that are drawn once more for a smaller epsilon would be a second release of the same people
    drawn = " ".join(run("release", data, *again, "-o", tmp_path / "out").split())
    assert "take --epsilon" not in drawn
    assert "a second draw reveals more" in drawn


def write_weighted_people(path: Path, decimals: int) -> Path:
    """Write 1,200 people with a weight each; the finer it is, the fewer have the same."""
    rows = (
        f"{'yes' if k % 3 else 'no'},{1 + (k * 37 % 800) / 100:.{decimals}f}\n"
        for k in range(1_200)
    )
    path.write_text("ill,w\n" + "".join(rows))
    return path


@pytest.mark.parametrize(("decimals", "raises"), [(2, True), (0, False)])
def test_weights_in_clear_that_raise_the_level_are_named(
    tmp_path: Path, decimals: int, raises: bool
) -> None:
    data = write_weighted_people(tmp_path / "people.csv", decimals)
    asked = ("--column", "ill", "--epsilon", 0.3, "--utility", "estimation-error", "--keep", "w")
    said = " ".join(run("release", data, *asked, "-o", tmp_path / "out").split())
    assert ("w in clear (" in said) == raises
    assert ("raises the level from 0.3 nats to" in said) == raises
    assert ("weights in a few classes, or leave the column out" in said) == raises
    for page in (tmp_path / "out").glob("report.*"):
        assert "in a few classes" not in page.read_text()


def test_an_epsilon_and_the_rare_letters_are_named_where_the_exact_shares_raise_the_level(
    tmp_path: Path,
) -> None:
    # two letters of few people, stated as 10 each: the level is about them
    counts = {"a": 900, "b": 500, "rare": 6, "rarer": 5}
    data = write_people(tmp_path / "people.csv", counts)
    levels, advised = [], "1"
    for _ in range(2):
        words = [advised if one == 0.5 else one for one in OPTIONS]
        said = run("release", data, *words, "--dry-run")
        assert "Or merge letters that fewer than 10 people have: 'rarer' and 'rare'." in said
        level = said.partition("Under the exact shares of the file the level is ")[2].split()[0]
        levels.append(float(level))
        advised = said.partition("take --epsilon ")[2].split()[0].rstrip(".")
        assert 0 < float(advised) < 1
    assert levels[0] > 1 >= levels[1]


def test_a_household_is_named_on_the_screen_and_in_the_description(tmp_path: Path) -> None:
    data = write_people(tmp_path / "people.csv", COUNTS)
    said = run("release", data, *OPTIONS, "-o", tmp_path / "out")
    described = json.loads((tmp_path / "out" / "release.json").read_text())
    assert "a household or other linked people" in described["not_covered"]
    for text in (said, (tmp_path / "out" / "report.md").read_text()):
        assert described["not_covered"] in text
    changed = {**described, "not_covered": "all is covered"}
    (tmp_path / "out" / "release.json").write_text(json.dumps(changed))
    run("check", tmp_path / "out", code=2)


def test_the_page_of_a_release_states_the_difference_that_its_rows_find(tmp_path: Path) -> None:
    response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
    people = {"ill": ["no"] * 1400 + ["yes"] * 600}
    write_release(release(people, {"ill": response}, seed=1), tmp_path / "out")
    found = detectable_difference([0.7, 0.3], response, 0, 2000)
    assert found is not None
    page = (tmp_path / "out" / "report.md").read_text("utf-8")
    stated = f"a share of 'no' of {found.second:.2g} in place of 0.7, an odds ratio of {found.odds_ratio:.2g}"
    assert stated in " ".join(page.split())
