"""The command line of estimates and of audits from samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cli.hostile import mechanism, write
from commands import run_fully as run

from pmlopt import PML, EstimationError, ExpectedLoss, Mechanism, Prior, design, estimate, solve
from pmlopt.model.utility.linear import hamming
from pmlopt.publishing import release, write_release
from pmlopt.releases.estimation import (
    cross_mechanism,
    level_from_samples,
    model,
    people_needed,
    people_to_compare,
)

MATRIX_OF_TWO = [[0.75, 0.25], [0.25, 0.75]]
MATRIX = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]


def test_a_released_column_and_its_counts_give_the_same(tmp_path: Path) -> None:
    stored = write(tmp_path, "m.json", mechanism())
    data = write(tmp_path, "d.csv", "id,level\n" + "1,a\n" * 40 + "2,b\n" * 35 + "3,c\n" * 25)
    counts = write(tmp_path, "c.csv", "level,count\nb,35\nc,25\na,40\n")
    one = json.loads(run("estimate", stored, "--data", data, "--column", "level", "--json").stdout)
    other = json.loads(run("estimate", stored, "--counts", counts, "--json").stdout)
    assert one == other
    wanted = estimate(Mechanism(MATRIX), [40, 35, 25])
    assert one["people"] == 100
    assert [row["estimate"] for row in one["estimates"]] == pytest.approx(
        wanted.frequencies.tolist()
    )
    assert [row["upper"] for row in one["estimates"]] == pytest.approx(
        wanted.intervals[:, 1].tolist()
    )
    holes = write(
        tmp_path, "h.csv", "id,level\n" + "1,a\n" * 40 + "2,b\n" * 35 + "3,c\n" * 25 + "4,\n" * 3
    )
    asked = ("estimate", stored, "--data", holes, "--column", "level")
    assert "'' is none of" in run(*asked, code=2).output
    assert json.loads(run(*asked, "--missing", "drop", "--json").stdout) == one
    text = run("estimate", stored, "--counts", counts, "--workload", "prefix").output
    assert "<= b" in text
    assert "100 released values\n" in text


@pytest.mark.parametrize("people", [100, 40_000, 9_000_000])
@pytest.mark.parametrize("more", [(), ("--posterior", "40"), ("--intervals", "bernstein")])
def test_numbers_are_printed_with_the_digits_that_their_errors_leave(
    tmp_path: Path, people: int, more: tuple[str, ...]
) -> None:
    stored = write(tmp_path, "m.json", mechanism())
    shares = {"a": 0.4, "b": 0.35, "c": 0.25}
    rows = "".join(f"{name},{round(people * part)}\n" for name, part in shares.items())
    asked = (
        "estimate",
        stored,
        "--counts",
        write(tmp_path, "c.csv", "level,count\n" + rows),
        *more,
    )
    exact = json.loads(run(*asked, "--json").stdout)["estimates"]
    printed = [
        line.split()
        for line in run(*asked).stdout.splitlines()
        if line[:3] in ("  a", "  b", "  c")
    ]
    for (_, share, error, low, high), row in zip(printed, exact, strict=True):
        _, value, spread, lower, upper = row.values()
        unit = 10.0 ** -len(share.partition(".")[2])
        assert len({len(text) for text in (share, error, low, high)}) == 1
        assert unit * 9.99 <= spread < unit * 200  # two digits, or three where another has two
        assert abs(float(share) - value) <= unit / 2 + 1e-9
        assert abs(float(error) - spread) <= unit / 2 + 1e-9
        assert 0 <= lower - float(low) + 1e-9 < unit + 2e-9
        assert 0 <= float(high) - upper + 1e-9 < unit + 2e-9


def test_people_of_a_sample_have_weights(tmp_path: Path) -> None:
    stored, data = write(tmp_path, "m.json", mechanism()), tmp_path / "data.csv"
    outputs, weights = ["a"] * 40 + ["b"] * 35 + ["c"] * 25, [1.0] * 40 + [2.5] * 35 + [0.5] * 25
    rows = [f"{y},{w}" for y, w in zip(outputs, weights, strict=True)]
    data.write_text("level,weight\n" + "\n".join(rows) + "\n")
    asked = ("estimate", stored, "--data", data, "--column", "level", "--weight-column", "weight")
    found = json.loads(run(*asked, "--json").stdout)
    wanted = estimate(Mechanism(MATRIX, outputs=("a", "b", "c")), released=outputs, weights=weights)
    assert [row["estimate"] for row in found["estimates"]] == pytest.approx(
        wanted.frequencies.tolist()
    )
    assert found["people"] == 100
    assert found["effective"] == pytest.approx(140**2 / (40 + 35 * 6.25 + 25 * 0.25))
    assert "100 released values, as good as 74 of equal weight" in run(*asked).output
    data.write_text(data.read_text().replace("2.5", "often"))
    refused = run(*asked, code=2).output
    assert (
        "data.csv: row 42: the weight in 'weight': 'often' is in the place of a number" in refused
    )
    assert (
        "--weight-column"
        in run("estimate", stored, "--counts", data, "--weight-column", "weight", code=2).output
    )


MISSING = "x,w\na,1.5\nb,\na,2.0\nb,1.0\n"


@pytest.mark.parametrize(("missing", "words"), [
    ((), "d.csv: row 3: the weight in 'w' is missing"),
    (("--missing", "letter"), "row 3: the weight in 'w' is missing"),
    (("--missing", "refuse"), "row 3: the weight in 'w' is missing"),
])  # fmt: skip
def test_a_missing_weight_is_refused(tmp_path: Path, missing: tuple[str, ...], words: str) -> None:
    stored = write(tmp_path, "m.csv", ",a,b\nno,0.75,0.25\nyes,0.2,0.8\n")
    asked = ("estimate", stored, "--data", write(tmp_path, "d.csv", MISSING), "--column", "x")
    refused = run(*asked, "--weight-column", "w", *missing, code=2).output
    assert words in refused
    assert "give --missing drop to leave such rows out" in refused
    assert "count as" not in refused


def test_rows_without_a_weight_can_be_left_out(tmp_path: Path) -> None:
    stored = write(tmp_path, "m.csv", ",a,b\nno,0.75,0.25\nyes,0.2,0.8\n")
    asked = ["estimate", stored, "--column", "x", "--weight-column", "w", "--json", "--data"]
    less = write(tmp_path, "l.csv", MISSING.replace("b,\n", ""))
    found = run(*asked, write(tmp_path, "d.csv", MISSING), "--missing", "drop")
    assert found.stdout == run(*asked, less).stdout
    assert "1 of 4 rows (25 %) have no value of 'x' or 'w' and are left out" in found.stderr
    # a missing output is a letter of its own, which is none of this mechanism; its weight is there
    holes = write(tmp_path, "h.csv", MISSING.replace("b,\n", ",1\n"))
    refused = run(*asked, holes, code=2)
    assert "have no value of 'x' and count as the value ''" in refused.stderr


@pytest.mark.parametrize("unit", ["1e-200", "1e200", "1e-310"])
def test_the_unit_of_weights_does_not_matter_at_the_shell(tmp_path: Path, unit: str) -> None:
    stored = write(tmp_path, "m.csv", ",no,yes\nno,0.75,0.25\nyes,0.25,0.75\n")
    head, answers, weights = "x,w\n", ["no", "no", "yes", "no", "yes"], [1, 2, 1, 1, 2]
    rows = "".join(f"{y},{w * float(unit)!r}\n" for y, w in zip(answers, weights, strict=True))
    asked = ("--column", "x", "--weight-column", "w", "--json")
    found = run("estimate", stored, "--data", write(tmp_path, "d.csv", head + rows), *asked)
    assert json.loads(found.stdout)["effective"] == pytest.approx(49 / 11)


@pytest.mark.parametrize("weights", [[], ["--weight-column", "w"]])
def test_groups_come_in_their_declared_order(tmp_path: Path, weights: list[str]) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    stored = write(tmp_path, "m.csv", ",no,yes\nno,0.75,0.25\nyes,0.25,0.75\n")
    # neither the alphabet nor the first rows, whose output has no `low`, have the declared order
    cells = [2] * 10 + [1] * 10 + [2] * 10 + [1] * 10 + [0] * 2
    income = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(cells, pyarrow.int32()), ["low", "medium", "high"], ordered=True
    )
    ill = ["no"] * 20 + ["yes"] * 22
    table = pyarrow.table({"ill": ill, "income": income, "w": [1] * 42})
    parquet.write_table(table, tmp_path / "d.parquet")
    asked = ["estimate", stored, "--data", str(tmp_path / "d.parquet"), "--column", "ill", "--json"]
    within = json.loads(run(*asked, "--within", "income", *weights).stdout)
    assert [one["group"] for one in within["groups"]] == ["low", "medium", "high"]
    cross = json.loads(run(*asked, "--group-by", "income", *weights).stdout)
    assert [one["letter"][1] for one in cross["estimates"][:3]] == ["low", "medium", "high"]


def test_shares_within_groups(tmp_path: Path) -> None:
    """Of 400 and 100 answers by one that is right with 3/4: (share - 1/4) / (1/2), and its binomial error."""
    stored = write(tmp_path, "m.csv", ",no,yes\nno,0.75,0.25\nyes,0.25,0.75\n")
    rows = "no,1,east\n" * 250 + "yes,1,east\n" * 150 + "no,1,west\n" * 30 + "yes,1,west\n" * 70
    data = write(tmp_path, "d.csv", "ill,w,region\n" + rows)
    asked = ["estimate", stored, "--data", data, "--column", "ill", "--within", "region"]
    for more in ([], ["--weight-column", "w"]):
        found = json.loads(run(*asked, *more, "--method", "linear", "--json").stdout)
        assert (found["within"], found["people"]) == ("region", 500)
        for group, (name, no, people) in zip(
            found["groups"], [("east", 250, 400), ("west", 30, 100)], strict=True
        ):
            assert (group["group"], group["people"]) == (name, people)
            row, share = group["estimates"][0], no / people
            assert row["estimate"] == pytest.approx((share - 0.25) * 2)
            # at counts to which half a person is added
            near = (no + 0.5) / (people + 1)
            error = 2 * (near * (1 - near) / people) ** 0.5
            assert row["standard_error"] == pytest.approx(error)
    text = run(*asked).stdout
    assert "500 released values in 2 groups by 'region'" in text
    assert "confidence of about 0.95 " in text
    assert "  east, no " in text
    assert "leave out --within" in run(*asked, "--posterior", "3", code=2).output
    assert (
        "give --data FILE" in run(*asked[:2], "--counts", data, "--within", "region", code=2).output
    )


def test_estimates_that_say_nothing_say_so(tmp_path: Path) -> None:
    """Randomized response of 8 letters at .125 nats: errors of .3 for shares of an eighth."""
    letters, keep = "abcdefgh", 0.125
    odds = [[2.718281828459045**keep if x == y else 1.0 for y in letters] for x in letters]
    matrix = [[one / sum(row) for one in row] for row in odds]
    stored = tmp_path / "m.csv"
    Mechanism(matrix, list(letters), list(letters)).save(stored)
    rows = "".join(f"{y},{250 + 10 * (-1) ** k}\n" for k, y in enumerate(letters))
    asked = ("estimate", stored, "--counts", write(tmp_path, "c.csv", "y,count\n" + rows))
    last = " ".join(run(*asked).stdout.split("Warning: ")[1].split())
    even = people_needed([1 / 8] * 8, Mechanism(matrix), 0.12)
    assert last.startswith("the standard errors of a; b; c and 5 more are above their shares")
    assert last.endswith(
        f"plus and minus 0.12 take {even:,} people (people-needed --half-width 0.12)"
    )
    (warned,) = json.loads(run(*asked, "--json").stdout)["warnings"]
    assert warned == last
    # with a hundred times the people they are known
    many = "".join(f"{y},{2_500_000 + 10_000 * (-1) ** k}\n" for k, y in enumerate(letters))
    assert "Warning" not in run(*asked[:3], write(tmp_path, "n.csv", "y,count\n" + many)).stdout


def test_pairs_and_missing_cells_have_one_form(tmp_path: Path) -> None:
    stored = write(tmp_path, "m.csv", ",no,yes\nno,0.75,0.25\nyes,0.25,0.75\n")
    data = write(tmp_path, "d.csv", "ill,sex\n" + "no,f\nno,\nyes,f\nno,\n" * 20)
    for option in ("--group-by", "--within"):
        text = run("estimate", stored, "--data", data, "--column", "ill", option, "sex").stdout
        lines = [line.strip() for line in text.splitlines()]
        pair = {"--group-by": "no, '' ", "--within": "'', no "}[option]
        assert any(line.startswith(pair) for line in lines)


def test_columns_with_mechanisms_of_their_own_and_clear_ones_give_the_cross_table(
    tmp_path: Path,
) -> None:
    """The same as through the product mechanism, in one command."""
    first = write(tmp_path, "a.csv", "smokes,no,yes\nno,0.75,0.25\nyes,0.25,0.75\n")
    second = write(tmp_path, "b.csv", "drinks,no,yes\nno,0.9,0.1\nyes,0.1,0.9\n")
    rows = "no,no,f\n" * 30 + "yes,no,f\n" * 20 + "no,yes,m\n" * 20 + "yes,yes,m\n" * 30
    data = write(tmp_path, "d.csv", "smokes,drinks,sex\n" + rows)
    two = ["estimate", first, second, "--data", data, "--column", "smokes", "--column", "drinks"]
    found = json.loads(run(*two, "--json").stdout)
    product = cross_mechanism(
        Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"]),
        Mechanism([[0.9, 0.1], [0.1, 0.9]], ["no", "yes"], ["no", "yes"]),
    )
    wanted = estimate(
        product, {("no", "no"): 30, ("yes", "no"): 20, ("no", "yes"): 20, ("yes", "yes"): 30}
    )
    assert [row["estimate"] for row in found["estimates"]] == pytest.approx(
        wanted.frequencies.tolist()
    )
    assert found["independence"]["p_value"] == pytest.approx(
        0.0464, abs=5e-4
    )  # chi-square of 4.03 / 1.015
    one = ["estimate", first, "--data", data, "--column", "smokes", "--group-by", "sex"]
    assert [row["letter"] for row in json.loads(run(*one, "--json").stdout)["estimates"]][1] == [
        "no",
        "m",
    ]
    text = run(*one).output
    assert "no, f" in text
    assert "Independent columns" in text
    assert "give --column for each of the 2" in run(*two[:-2], code=2).output
    counts = write(tmp_path, "c.csv", "smokes,count\nno,1\nyes,1\n")
    refused = run("estimate", first, "--counts", counts, "--group-by", "sex", code=2)
    assert "--within and --weight-column name columns" in refused.output


def test_a_design_says_what_can_be_estimated_from_it(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", "letter,count\na,6\nb,3\nc,1\n")
    few = run("design", "--prior", prior, "--utility", "hamming", "--epsilon", "0.1").output
    found = solve(design(Prior.from_counts([6, 3, 1]), PML(0.1), ExpectedLoss(hamming))).estimable
    assert found.rank < 3
    assert found.never
    assert f"rank {found.rank} of 3" in few
    assert "never published" in few
    assert "all 3 frequencies" in run("design", "--prior", prior, "--utility", "mutual-information",
                                      "--epsilon", "1").output  # fmt: skip


def test_samples_confirm_refute_or_leave_a_claim_open(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", "letter,count\na,1\nb,1\n")
    table = write(tmp_path, "t.csv", ",a,b\nb,2500,7500\na,7500,2500\n")
    audit = ("audit", table, "--from-samples", "--prior", prior)
    found = json.loads(run(*audit, "--json").stdout)
    wanted = level_from_samples([0.5, 0.5], [[7500, 2500], [2500, 7500]])
    assert (found["min_level"], found["max_level"]) == pytest.approx((wanted.lower, wanted.upper))
    assert "holds" in run(*audit, "--epsilon", "0.6").output
    assert "refuted" in run(*audit, "--epsilon", "0.2", code=1).output
    assert "draw more" in run(*audit, "--epsilon", "0.405", code=3).output
    # an LDP level is of the counts: with a prior and without one
    bare = ("audit", table, "--from-samples")
    known, free = (
        json.loads(run(*given, "--privacy", "ldp", "--json").stdout) for given in (audit, bare)
    )
    assert [known[end] for end in ("min_level", "max_level")] == [
        free["min_level"],
        free["max_level"],
    ]


def test_people_are_planned_for_and_other_files_refused(tmp_path: Path) -> None:
    stored = write(tmp_path, "r.csv", "smokes,no,yes\nno,0.75,0.25\nyes,0.25,0.75\n")
    prior = write(tmp_path, "p.csv", "smokes,count\nno,1\nyes,1\n")
    asked = ("people-needed", stored, "--prior", prior, "--half-width", "0.05")
    wanted = people_needed([0.5, 0.5], MATRIX_OF_TWO, 0.05)
    assert json.loads(run(*asked, "--json").stdout)["people"] == wanted
    assert f"{wanted} people" in run(*asked).output
    counts = write(tmp_path, "c.csv", "smokes,count\nno,9500\nyes,500\n")
    assert "no frequencies agree" in run("estimate", stored, "--counts", counts, code=2).output
    found = json.loads(
        run("estimate", stored, "--counts", counts, "--min-p-value", "0", "--json").stdout
    )
    assert found["fit"]["p_value"] < 1e-6
    assert found["estimates"][0]["upper"] == 1


def test_people_who_find_a_difference_are_counted(tmp_path: Path) -> None:
    stored = write(tmp_path, "r.csv", "smokes,no,yes\nno,0.75,0.25\nyes,0.25,0.75\n")
    first = write(tmp_path, "f.csv", "smokes,count\nno,70\nyes,30\n")
    second = write(tmp_path, "s.csv", "smokes,count\nno,60\nyes,40\n")
    asked = ("people-needed", stored, "--prior", first, "--against", second)
    found = json.loads(run(*asked, "--letter", "yes", "--json").stdout)
    laws = [0.7, 0.3], [0.6, 0.4]
    assert found["people"] == people_to_compare(*laws, MATRIX_OF_TWO, 1)
    by_odds = people_to_compare(*laws, MATRIX_OF_TWO, 1, scale="odds-ratio")
    assert found["people_for_odds_ratio"] == by_odds
    assert "an odds ratio of 1.56" in run(*asked, "--letter", "yes").output
    assert "--letter go together" in run(*asked, code=2).output
    assert "--half-width or --against" in run(*asked, "--half-width", "0.1", code=2).output


def test_a_posterior_is_under_the_prior_of_the_design(tmp_path: Path) -> None:
    prior, file, counts = (
        Prior.from_counts({"a": 7, "b": 3}),
        tmp_path / "m.json",
        tmp_path / "c.csv",
    )
    result = solve(design(prior, PML(0.3), EstimationError()))
    result.save(file)
    seen = dict.fromkeys(result.mechanism.with_named_outputs().outputs, 20)
    counts.write_text(
        "output,count\n" + "".join(f"{name},{count}\n" for name, count in seen.items())
    )
    found = json.loads(
        run("estimate", file, "--counts", counts, "--posterior", "40", "--json").stdout
    )
    assert found["prior"] == "the prior of the design"
    wanted = estimate(result.mechanism, list(seen.values())).posterior(prior, 40)
    assert [row["mean"] for row in found["estimates"]] == wanted.mean.tolist()
    numbers = "".join(f"{number},{count}\n" for number, count in enumerate(seen.values()))
    counts.write_text(f"output,count\n{numbers}")  # as it was released before outputs had names
    again = json.loads(
        run("estimate", file, "--counts", counts, "--posterior", "40", "--json").stdout
    )
    assert again["estimates"] == found["estimates"]
    response, rows = tmp_path / "response.csv", tmp_path / "rows.csv"
    response.write_text("x,no,yes\nno,0.75,0.25\nyes,0.25,0.75\n")
    rows.write_text("x,count\nno,60\nyes,40\n")
    told = run("estimate", response, "--counts", rows, "--posterior", "2").output
    assert "even frequencies as the Dirichlet prior, with the weight of 2 more" in told


def test_a_regression_of_a_folder_is_that_of_its_columns(tmp_path: Path) -> None:
    response = Mechanism(MATRIX_OF_TWO, ["no", "yes"], ["no", "yes"])
    people: dict[str, list[object]] = {
        "smokes": ["no", "yes", "yes", "no", "no"] * 40,
        "age": list(range(200)),
    }
    people["weight"] = [1, 2] * 100
    out = tmp_path / "out"
    keep = ["age", "weight"]
    write_release(release(people, {"smokes": response}, keep=keep, seed=1), out)
    columns = pd.read_csv(out / "released.csv")
    asked = ("estimate", out, "--formula", "smokes ~ age", "--json")
    for more in ((), ("--weight-column", "weight")):
        found = json.loads(run(*asked, *more).stdout)
        weights = columns["weight"] if more else None
        known = model(columns, "smokes ~ age", {"smokes": response}, weights=weights)
        assert [one["coefficient"] for one in found["coefficients"]] == pytest.approx(
            known.coefficients.tolist(), rel=1e-9
        )
        assert found["robust"] == bool(more)
    assert "the logits of yes" in run(*asked[:-1]).output
    assert "--weight-column" in run(*asked, "--within", "age", code=2).output
    assert (
        "no column 'height'" in run("estimate", out, "--formula", "smokes ~ height", code=2).output
    )
    assert "of the other options only" in run(*asked, "--method", "linear", code=2).output


@pytest.mark.parametrize("is_named", [True, False])
def test_a_regression_takes_columns_that_were_released_together(
    tmp_path: Path, is_named: bool
) -> None:
    pytest.importorskip("formulaic")
    pairs = [(a, b) for a in ("n", "y") for b in (1, 2)]
    rows = [[0.85 if x == y else 0.05 for y in pairs] for x in pairs]
    same = Mechanism(rows, pairs, pairs if is_named else None)
    people: dict[str, Any] = {"a": ["n", "y", "y"] * 200, "b": [1, 1, 2, 2] * 150}
    people["town"] = ["east", "west"] * 300
    made = release(people, {("a", "b"): same}, keep=["town"], seed=1)
    write_release(made, tmp_path / "out")
    columns = pd.read_csv(tmp_path / "out" / "released.csv")
    for formula in ("a ~ C(town)", "a ~ b + town", "a ~ C(b)", "b ~ a"):
        found = json.loads(run("estimate", tmp_path / "out", "--formula", formula, "--json").stdout)
        known = model(columns, formula, {("a", "b"): same})
        assert [one["coefficient"] for one in found["coefficients"]] == pytest.approx(
            known.coefficients.tolist(), rel=1e-9
        )
        assert max(one["standard_error"] for one in found["coefficients"]) < 1
