"""What an audit states: the prior, what outputs rule out, the verdict in words, and a page of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from commands import run, run_fully

from pmlopt import LDP, LIP, PML, Mechanism, Prior, measures
from pmlopt.cli.audit_tables import describe_rows

MATRIX = (
    "age;r1;r2;r3;r4\n18-29;0,7;0,2;0,1;0\n30-44;0,1;0,65;0,15;0,1\n45-59;0,05;0,15;0,6;0,2\n"
    "60+;0;0,05;0,2;0,75\n"
)
SHARES = "age;share\n60+;0,28\n45-59;0,27\n30-44;0,25\n18-29;0,20\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a matrix and its prior."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matrix.csv").write_text(MATRIX)
    (tmp_path / "shares.csv").write_text(SHARES)
    return tmp_path


def test_a_failed_claim_is_stated_in_words(folder: Path) -> None:
    said = run("audit", "matrix.csv", "--prior", "shares.csv", "--epsilon", "1", code=1)
    # since 0.2 0.7 + 0.25 0.1 + 0.27 0.05 = 0.1785, and with the digits of the table of levels
    level = f"{math.log(0.7 / 0.1785):.9g}"
    assert (
        f"The claim FAILS: the PML (pointwise maximal leakage) is {level} nats, above 1.0." in said
    )
    assert f"{level} nats = " in said
    assert "the same number would hold for maximal_leakage and would fail for ldp" in said
    assert "read as shares; 18-29: 0.2, 30-44: 0.25, 45-59: 0.27, 60+: 0.28." in said
    assert "4 true values, 4 outputs" in said
    rows = {words[0]: words for words in map(str.split, said.splitlines()) if words[0][0] == "r"}
    assert rows["r1"][4:] == ["18-29", "0.2", "0.7843", "60+"]  # 0.2 0.7 / 0.1785
    assert rows["r4"][-1] == "18-29"
    assert "ldp                 infinite: the output r1 rules out 60+" in said
    assert "inf nats" not in said
    # the decimals of each row sum to exactly one
    assert "sum to" not in said


def test_outputs_that_rule_out_values_are_in_the_json(folder: Path) -> None:
    found = json.loads(run("audit", "matrix.csv", "--prior", "shares.csv", "--json"))
    told = {one["output"]: one for one in found["outputs"]}
    assert [told[name]["rules_out"] for name in ("r1", "r2", "r3", "r4")] == [
        ["60+"],
        [],
        [],
        ["18-29"],
    ]
    assert (told["r1"]["value"], told["r1"]["before"]) == ("18-29", 0.2)
    assert told["r1"]["after"] == pytest.approx(0.14 / 0.1785)


@pytest.mark.parametrize("ending", [".html", ".md"])
@pytest.mark.parametrize(("epsilon", "code"), [(1, 1), (1.5, 0)])
def test_a_page_is_written_of_either_verdict(
    folder: Path, ending: str, epsilon: float, code: int
) -> None:
    page = folder / f"audit{ending}"
    asked = ("--prior", "shares.csv", "--epsilon", epsilon, "--page", page)
    assert f"Wrote {page}." in run("audit", "matrix.csv", *asked, code=code)
    text = page.read_text()
    assert ("The claim FAILS" in text, "The claim holds" in text) == (code == 1, code == 0)
    assert "rules out" in text
    assert "What an audit does not show" in text
    assert "SHA-256" in text


def test_a_page_of_what_has_no_matrix_is_refused(folder: Path) -> None:
    (folder / "seen.csv").write_text("x,a,b\n0,10,20\n1,20,10\n")
    asked = ("--privacy", "ldp", "--page", "audit.html")
    assert "--page is of the audit of a matrix" in run(
        "audit", "seen.csv", "--from-samples", *asked, code=2
    )
    found = run("audit", "matrix.csv", "--prior", "shares.csv", "--page", "audit.pdf", code=2)
    assert "audit.pdf" in found
    assert not list(folder.glob("audit.*"))


def test_the_saved_mechanism_states_by_how_much_it_was_corrected(folder: Path) -> None:
    asked = ("--prior", "shares.csv", "--epsilon", "1.5", "-o", "proved.json")
    said = run("audit", "matrix.csv", *asked)
    saved = Mechanism.load(folder / "proved.json").matrix
    given = np.array([[float(cell.replace(",", ".")) for cell in line.split(";")[1:]]
                      for line in MATRIX.splitlines()[1:]])  # fmt: skip
    assert f"differ from the given ones by at most {abs(saved - given).max():.1g}" in said


def test_rows_are_named_where_their_decimals_do_not_sum_to_one() -> None:
    tenths = np.full((2, 10), 0.1)
    assert describe_rows(tenths, exact=False) == ""
    thirds = np.full((1, 3), 0.3333333333)
    assert "up to 1e-10" in describe_rows(thirds, exact=False)
    assert describe_rows(thirds, exact=True) == ""


@pytest.mark.parametrize("share", ["0.29", "0.27"])  # sums of 1.01 and 0.99
def test_shares_and_rows_are_divided_by_their_sums_on_request_only(
    folder: Path, share: str
) -> None:
    (folder / "off.csv").write_text(f"age,share\n60+,{share}\n45-59,0.27\n30-44,0.25\n18-29,0.20\n")
    total = 0.72 + float(share)
    run("problems", "new", "least-leakage", "-o", "own.toml")
    for command in (
        ("audit", "matrix.csv", "--epsilon", "2", "--prior"),
        ("design", "--epsilon", "1", "--utility", "hamming", "--prior"),
        ("solve", "own.toml", "--prior"),
    ):
        refused = run(*command, "off.csv", code=2)
        assert f"the shares sum to {total:.2f}, not to 1" in refused
        assert "--normalise" in refused
        assert "Prior." not in refused
        found = run_fully(*command, "off.csv", "--normalise")
        assert f"The shares of off.csv sum to {total:.2f}: each is divided by it." in found.output
        assert f"60+: {float(share) / total:.4g}" in found.output


@pytest.mark.parametrize("last", ["0.29", "0.31"])
def test_rows_at_the_border_of_rounding_are_divided(folder: Path, last: str) -> None:
    (folder / "off.csv").write_text(f"x,a,b\n0,0.7,{last}\n1,0.5,0.5\n")
    asked = ("--privacy", "ldp", "--epsilon", "2")
    assert "--normalise divides each row" in run("audit", "off.csv", *asked, code=2)
    assert "each is divided by its sum" in run("audit", "off.csv", *asked, "--normalise")
    (folder / "off.csv").write_text("x,a,b\n0,0.7,0.32\n1,0.5,0.5\n")
    assert "and no others" in run("audit", "off.csv", *asked, "--normalise", code=2)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("audit matrix.csv --prior shares.csv --epsilon 1,4", "Write 1.4."),
        ("design --prior shares.csv --utility hamming --epsilon ,5", "Write .5."),
        ("release d.csv --column a --epsilon 0,5 --dry-run", "Write 0.5."),
        ("people-needed m.json --prior shares.csv --half-width 0,03", "Write 0.03."),
        ("ledger new l.npz --prior shares.csv --people 45,000", "Write 45000."),
        ("sweep --prior shares.csv --utility hamming --epsilon 0,05", "write 0.05"),
        ("design --prior shares.csv --utility hamming --epsilon 1 --constraint variance=1,5",
         "write 1.5"),
    ],
)  # fmt: skip
def test_decimal_commas_are_explained(folder: Path, words: str, text: str) -> None:
    assert text in run(*words.split(), code=2)


def test_folders_and_matrices_are_sent_to_their_command(folder: Path) -> None:
    (folder / "out").mkdir()
    assert "is a folder" in run("audit", "out", "--privacy", "ldp", code=2)
    (folder / "out" / "release.json").write_text("{}")
    assert "pmlopt check out checks it" in run("audit", "out", "--privacy", "ldp", code=2)
    for command in (("report",), ("verify",), ("prove", "-o", "proof")):
        assert "pmlopt audit FILE" in run(*command, "matrix.csv", code=2)
        assert "is a folder" in run(*command, "out", code=2)


def test_an_infinite_leakage_names_the_value_that_is_ruled_out() -> None:
    prior = Prior([0.6, 0.4], ["ill", "well"])
    mechanism = Mechanism([[0.5, 0.5], [0.0, 1.0]], ["ill", "well"], ["yes", "no"])
    told = LDP(1.0).describe_violation(prior, mechanism)
    assert told == (
        "the output 'yes' is possible for 'ill' and impossible for 'well', and the limit is 1"
    )
    lower = LIP(upper=1.0, lower=0.1).describe_violation(prior, mechanism)
    assert lower == "the output 'yes' reveals infinitely much about 'well', and the limit is 0.1"
    assert "ldp infinite" in str(measures.audit(prior, mechanism))
    for requirement in (PML(0.1), LIP(0.1, 0.1)):
        assert "inf" not in requirement.describe_violation(prior, mechanism)
