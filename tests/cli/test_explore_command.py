"""`pmlopt explore`: a page from a file of counts, a joint law, a ledger, streams or a problem."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import run_line as run

from pmlopt import PML, Chain, Ledger, Stream, load
from pmlopt.publishing.exploring import exploration
from pmlopt.releases import Streams

pytest.importorskip("vl_convert")


def shown(path: str = "page.html") -> Any:
    found = re.search(r"id='data'>(.*?)</script>", Path(path).read_text("utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(autouse=True)
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # to bundle what draws a page takes a second: tests/publishing/exploring has it
    monkeypatch.setattr(exploration, "load_vega_scripts", str)
    Path("counts.csv").write_text("letter,count\n1,4000\n2,3000\n3,2000\n4,1000\n")
    Path("joint.csv").write_text(",a,b\nf,30,20\nm,10,40\n")


def test_counts_become_a_page_whose_commands_give_its_points() -> None:
    said = run(
        "explore --counts counts.csv --utility absolute --epsilon 0.2,0.6 -o page.html"
    ).output
    assert "8 points" in said
    for curve in shown()["curves"][:2]:
        point = curve["points"][1]
        assert "--counts counts.csv" in point["command"]
        run(point["command"].removeprefix("pmlopt "))
        assert load("mechanism.json").value == pytest.approx(point["value"], abs=1e-9)
    line = "--prior counts.csv --privacy lip --utility hamming --epsilon 0.3 --compare nothing"
    run(f"explore {line} -o page.html")
    assert [curve["name"] for curve in shown()["curves"]] == ["LIP", "releasing nothing"]
    assert "--privacy lip" in shown()["curves"][0]["points"][0]["command"]


def test_counts_are_rounded_and_the_command_gives_the_point_again() -> None:
    Path("few.csv").write_text("letter,count\n1,143\n2,77\n3,31\n4,6\n")
    line = "explore --counts few.csv --utility hamming --epsilon 0.4 --compare none"
    said = run(f"{line} -o page.html")
    assert "warning" not in said.stderr
    (curve,) = shown()["curves"]
    (point,) = curve["points"]
    law = [140 / 250, 70 / 250, 30 / 250, 10 / 250]  # 25 tens for 257 people, by hand
    assert shown()["shared"][point["parts"][0]["prior"]] == pytest.approx(law, abs=1e-15)
    assert (
        "143"
        not in Path("page.html").read_text("utf-8").partition("id='data'>")[2].partition("<")[0]
    )
    subprocess.run(["sh", "-euc", shown()["before"]["command"]], check=True)
    assert Path("prior.csv").read_text() == "letter,count\n1,140\n2,70\n3,30\n4,10\n"
    run(point["command"].removeprefix("pmlopt "))
    assert load("mechanism.json").value == pytest.approx(point["value"], abs=1e-9)
    exact = run(f"{line} --exact-counts -o exact.html")
    assert "warning: This has the exact shares" in exact.stderr
    assert shown("exact.html")["about"][0].startswith("Warning: This has the exact shares")
    assert "--counts few.csv" in shown("exact.html")["curves"][0]["points"][0]["command"]


def test_the_table_of_pairs_is_rounded_and_the_command_gives_the_point_again() -> None:
    Path("few.csv").write_text(",a,b\nf,143,6\nm,32,57\n")
    run("explore --about few.csv --utility hamming --epsilon 0.3 --compare none -o page.html")
    (point,) = shown()["curves"][0]["points"]
    assert shown()["shared"][point["parts"][0]["prior"]] == pytest.approx(
        [170 / 230, 60 / 230], abs=1e-15
    )
    subprocess.run(["sh", "-euc", shown()["before"]["command"]], check=True)
    assert Path("pairs.csv").read_text() == ",a,b\nf,140,10\nm,30,50\n"
    run(point["command"].removeprefix("pmlopt "))
    assert load("mechanism.json").value == pytest.approx(point["value"], abs=1e-9)
    run("explore --about few.csv --utility hamming --total 0.4 -o page.html")
    assert "Counts of people are rounded" in shown()["about"][1]


def test_a_confidence_set_needs_the_exact_counts() -> None:
    line = "explore --counts counts.csv --utility hamming --epsilon 0.4 --compare none"
    line += " --confidence-delta 0.01"
    assert "--exact-counts" in run(f"{line} -o page.html", code=2).output
    assert "warning" in run(f"{line} --exact-counts -o page.html").stderr


def test_a_report_on_a_design_for_a_sample_warns_and_has_no_number_of_people() -> None:
    for source, warned in (("--counts counts.csv", True), ("--prior law.csv", False)):
        Path("law.csv").write_text("letter,probability\n1,.4\n2,.3\n3,.2\n4,.1\n")
        run(f"design {source} --epsilon 0.3 --utility hamming -o mechanism.json")
        said = run("report mechanism.json -o report.md")
        text = Path("report.md").read_text("utf-8")
        assert ("warning: This has the exact shares" in said.stderr) == warned
        assert ("exact shares of the people" in text) == warned
        assert ("4 letters, from a sample" in text) == warned
        assert "10,000" not in text


def test_two_columns_of_a_joint_law() -> None:
    run("explore --about joint.csv --utility hamming --total 0.6 -o page.html")
    names = [curve["name"] for curve in shown()["curves"]]
    assert names == ["both columns", "the secret", "the other column"]


def test_a_ledger_the_stream_of_a_person_and_a_problem() -> None:
    ledger = Ledger([0.5, 0.5], people=2, total=1.0)
    ledger.record([[0.75, 0.25], [0.25, 0.75]], [0, 1])
    ledger.save("ledger.npz")
    many = Streams(
        Stream(Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["in", "out"]), PML(0.4), "hamming")
    )
    many.release({"ann": "in"}, seed=1)
    many.save("streams.json")
    run("explore ledger.npz -o page.html")
    assert shown()["limit"] == 1.0
    run("explore streams.json --person ann -o page.html")
    assert shown()["curves"][0]["points"][0]["value"] == many.stream("ann").level
    run("explore adult-education-absolute --epsilon 0.5,1 -o page.html")
    assert [point["at"] for point in shown()["curves"][0]["points"]] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--prior counts.csv --utility absolute -o page.pdf", "ending"),
        ("--prior counts.csv -o page.html", "give the utility"),
        (
            "--prior counts.csv --utility hamming --compare dp -o page.html",
            "known are ldp, response, nothing",
        ),
        ("--prior counts.csv --utility absolute --total 1 -o page.html", "--about"),
        ("--prior counts.csv --utility absolute --person ann -o page.html", "streams"),
        ("ledger.npz --utility absolute -o page.html", "leave out"),
        ("adult-education-absolute -o page.html", "--epsilon"),
        ("--prior counts.csv --utility absolut -o page.html", "not known"),
    ],
)
def test_what_cannot_be_meant_is_said(line: str, words: str) -> None:
    assert words in run(f"explore {line}", code=2).output
    assert not Path("page.html").exists()
