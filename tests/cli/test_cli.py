"""The command line: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_fully as run

from pmlopt import (
    LDP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    L1Ball,
    Mechanism,
    MutualInformation,
    Prior,
    closed_forms,
    confidence_ball,
    design,
    leakage_level,
    least_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.library import find, library
from pmlopt.model.utility import absolute, list_informations
from pmlopt.model.utility.orders import utility_order


def run_json(*arguments: object, code: int = 0) -> dict[str, Any]:
    parsed = json.loads(run(*arguments, "--json", code=code).stdout)
    assert isinstance(parsed, dict)
    return parsed


COUNTED = Prior.from_counts({1: 40, 2: 30, 3: 20, 4: 10})
"""What is in the file of counts."""


def check_proved(text: str) -> None:
    """That a table says the level is proved, however wide its columns are."""
    assert re.search(r"^  level proved +yes, in rational arithmetic$", text, re.MULTILINE)


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    path.write_text("level,count\n1,40\n2,30\n3,20\n4,10\n")
    return path


def test_solve_prints_a_table_and_agrees_with_the_file() -> None:
    text = run("solve", "emp-example-1").output
    assert "optimal" in text
    assert "0.117783036 nats = 0.169925001 bits" in text
    check_proved(text)
    assert "(theorem): agrees" in text
    assert "0.325000" in text


def test_solve_takes_a_file_and_writes_the_mechanism(tmp_path: Path) -> None:
    problem = library() / "closed_forms" / "uniform-seven-letters.toml"
    out = tmp_path / "mechanism.json"
    data = run_json("solve", problem, "-o", out)
    assert {"status", "value", "bound", "gap", "level", "mechanism"} <= set(data)
    assert data["status"] == "optimal"
    assert data["level"] <= 0.5
    assert data["value"] == pytest.approx(1 - math.exp(0.5) / 7, abs=1e-9)
    stored = Mechanism.load(out)
    assert stored.matrix.tolist() == data["mechanism"]["matrix"]
    assert json.loads(out.read_text())["metadata"]["certificate"]["value"] == data["value"]


def test_solve_exits_with_1_when_the_file_expects_something_else(tmp_path: Path) -> None:
    original = (library() / "closed_forms" / "no-leakage.toml").read_text()
    wrong = tmp_path / "no-leakage.toml"
    wrong.write_text(original.replace("value = 0.95", "value = 0.94"))
    assert "DISAGREES" in run("solve", wrong, code=1).output
    assert run_json("solve", wrong, code=1)["holds"] is False


def test_design_equals_the_python_route(counts: Path, tmp_path: Path) -> None:
    out = tmp_path / "mechanism.csv"
    asked = ("design", "--prior", counts, "--epsilon", "0.5", "--utility", "absolute")
    data = run_json(*asked, "-o", out)
    result = solve(design(COUNTED, PML(0.5), ExpectedLoss(absolute)))
    assert data["value"] == result.value
    assert data["mechanism"]["inputs"] == [1, 2, 3, 4]
    assert np.array_equal(Mechanism.load(out).matrix, result.mechanism.matrix)
    assert out.read_text().splitlines()[0] == ",1,2,3,4"
    for outputs, letters in (("2", [0, 1]), ("1,4", [1, 4])):
        assert run_json(*asked, "--outputs", outputs)["mechanism"]["outputs"] == letters


def test_design_with_a_matrix_of_gains_in_another_row_order(counts: Path, tmp_path: Path) -> None:
    gains = np.array([[4.0, 0.0], [3.0, 1.0], [1.0, 3.0], [0.0, 4.0]])
    matrix, prior = tmp_path / "gains.csv", Prior.from_counts([40, 30, 20, 10])
    rows = [f"{x},{gains[x - 1][0]},{gains[x - 1][1]}" for x in (3, 1, 4, 2)]
    matrix.write_text("\n".join([",low,high", *rows]) + "\n")
    asked = ("design", "--prior", counts, "--epsilon", "0.3", "--utility", matrix)
    for extra, utility in (((), ExpectedGain(gains)), (("--minimise",), ExpectedLoss(gains))):
        data = run_json(*asked, *extra)
        assert data["value"] == pytest.approx(
            solve(design(prior, PML(0.3), utility)).value, abs=1e-9
        )
        assert data["mechanism"]["outputs"] == ["low", "high"]


def test_design_with_a_sub_convex_utility(counts: Path) -> None:
    asked = ("design", "--prior", counts, "--epsilon", "0.7", "--utility", "hellinger")
    data = run_json(*asked)
    assert (
        data["value"] == solve(design(COUNTED, PML(0.7), list_informations()["hellinger"]())).value
    )
    assert data["value"] <= data["bound"]
    assert data["certificate"]["utility"] == "hellinger"
    assert "gap" in run(*asked).output


def test_design_for_every_prior_within_a_radius(counts: Path, tmp_path: Path) -> None:
    out, weaker = tmp_path / "mechanism.csv", tmp_path / "weaker.csv"
    asked = ("--prior", counts, "--epsilon", "0.7", "--radius", "0.1")
    shown = run("design", *asked, "--utility", "hamming", "-o", out).output
    assert "for every prior within l1 distance 0.1" in shown
    assert "for every prior within l1 distance 0.1" in run("audit", out, *asked).output
    audited = run_json("audit", out, *asked)
    assert audited["radius"] == 0.1
    assert audited["claimed"]["pml"] == pytest.approx(0.7, abs=1e-9)
    run("design", "--prior", counts, "--epsilon", "0.7", "--utility", "hamming", "-o", weaker)
    assert "FAILS" in run("audit", weaker, *asked, code=1).output
    levels = run_json("audit", out, "--prior", counts, "--radius", "0.1")["levels"]
    assert levels["pml_robust"] == pytest.approx(0.7, abs=1e-9)
    assert levels["pml"] < 0.7 - 0.01


def test_a_design_cut_short_by_its_time_limit_says_so(tmp_path: Path) -> None:
    prior, out = tmp_path / "prior.csv", tmp_path / "out.csv"
    roots = [math.sqrt(x + 2) for x in range(26)]  # no counts, and no closed form
    lines = [f"{x},{root / math.fsum(roots)!r}\n" for x, root in enumerate(roots)]
    prior.write_text("letter,probability\n" + "".join(lines))
    asked = (
        "design",
        "--prior",
        prior,
        "--epsilon",
        "1",
        "--time-limit",
        "1e-9",
        "-o",
        out,
        "--utility",
    )
    told = run(
        *asked, "hamming", "--solver", "scs", code=3
    ).output  # a mechanism by formula, and its level
    assert "status            limit_reached" in told
    assert (
        leakage_level([root / math.fsum(roots) for root in roots], Mechanism.load(out).matrix)
        <= 1.0
    )
    out.unlink()
    data = run_json(*asked, "hellinger", "--solver", "column-generation", code=3)
    assert data["status"] == "limit_reached"
    assert data["value"] <= data["bound"]
    problem = (
        "solve",
        "adult-education-information",
        "--time-limit",
        1e-9,
    )  # whose value is in the gap
    assert "not decided" in run(*problem, code=3).output
    assert run_json(*problem, code=3)["holds"] is None


def test_design_draws_and_writes_the_lp(counts: Path, tmp_path: Path) -> None:
    plot, mps = tmp_path / "mechanism.png", tmp_path / "program.mps"
    run(
        "design",
        "--prior",
        counts,
        "--epsilon",
        "1",
        "--utility",
        "hamming",
        "--plot",
        plot,
        "--mps",
        mps,
    )
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "mechanism[1,2]" in mps.read_text()


class TestAudit:
    def test_a_claim_that_holds_and_those_that_do_not(self, tmp_path: Path) -> None:
        prior, out = tmp_path / "prior.csv", tmp_path / "rr.csv"
        prior.write_text("letter,count\n0,1\n1,1\n2,1\n")
        Mechanism(np.eye(3)).save(out)
        audit = ("audit", out, "--prior", prior, "--epsilon")
        assert "The claim holds" in run(*audit, "1.1").output
        below = math.nextafter(math.log(3), 0)
        assert "rounding" in run(*audit, repr(below), code=1).output
        assert "FAILS" in run(*audit, "1", code=1).output

    def test_every_level_is_recomputed_and_an_infinite_one_is_null(self, tmp_path: Path) -> None:
        prior, out = tmp_path / "prior.csv", tmp_path / "rr.npz"
        prior.write_text("letter,probability\nno,0.5\nyes,0.5\n")
        Mechanism(closed_forms.randomized_response(2, math.log(3)).matrix, ["no", "yes"]).save(out)
        data = run_json("audit", out, "--prior", prior)
        assert data["holds"] is None
        assert data["level"] == pytest.approx(math.log(1.5), abs=1e-15)
        assert data["levels"]["ldp"] == pytest.approx(math.log(3), abs=1e-15)
        assert data["levels"]["maximal_leakage"] == pytest.approx(math.log(1.5), abs=1e-15)
        assert [row["probability"] for row in data["outputs"]] == [0.5, 0.5]
        Mechanism(np.eye(2), ["no", "yes"], ["no", "yes"]).save(out)
        data = run_json("audit", out, "--prior", prior, "--epsilon", "0.7")
        assert data["levels"]["ldp"] is None
        assert data["holds"] is True

    def test_the_envelope_is_beside_the_claim(self, counts: Path, tmp_path: Path) -> None:
        rule = tmp_path / "rr.json"
        Mechanism(closed_forms.randomized_response(4, 1.0).matrix, [1, 2, 3, 4]).save(rule)
        asked = ("audit", rule, "--prior", counts)
        assert run_json(*asked)["envelope"] == []
        found = run_json(*asked, "--envelope", "0.5,0.1", "--epsilon", "0.1", code=1)
        assert found["holds"] is False
        assert [row["delta"] for row in found["envelope"]] == [0.5, 0.1]
        for row in found["envelope"]:
            exact = closed_forms.randomized_response_envelope(
                [0.4, 0.3, 0.2, 0.1], 1.0, row["delta"]
            )
            assert row["value"] - 1e-12 <= exact <= row["bound"] + 1e-12
            assert row["value"] == pytest.approx(exact, abs=1e-7)
        text = run(*asked, "--envelope", "0.1", "--epsilon", "1").output
        assert "The claim holds" in text
        assert f"0.1    {exact:.9g} nats" in text
        assert (
            "given prior only" in run(*asked, "--envelope", "0.1", "--radius", "0.1", code=2).output
        )

    @pytest.mark.parametrize("privacy", ["ldp", "pml", "maximal-leakage", "lip --lower 0.7", "lip"])
    def test_the_claim_that_is_audited_is_named(
        self, counts: Path, tmp_path: Path, privacy: str
    ) -> None:
        out, (name, *lower) = tmp_path / "m.json", privacy.split()
        asked = ("--prior", counts, "--privacy", name, *lower, "--epsilon")
        data = run_json("design", *asked, "0.5", "--utility", "hamming", "-o", out)
        assert data["certificate"]["privacy"]["name"] == name
        assert run_json("audit", out, *asked, "0.5")["holds"] is True
        said = run("audit", out, *asked, "0.5").output
        assert re.search(rf"{name.replace('-', '_')}\w* at most 0\.", said)
        assert run_json("audit", out, *asked, "0.25", code=1)["holds"] is False

    def test_the_audit_names_the_slack(self, counts: Path, tmp_path: Path) -> None:
        out = tmp_path / "mechanism.csv"
        asked = ("--prior", counts, "--epsilon", "0.5", "--privacy", "approximate-pml", "--delta")
        shown = run("design", *asked, "0.05", "--utility", "hamming", "-o", out).output
        assert "with slack 0.05" in shown
        text = run("audit", out, *asked, "0.05").output
        assert "The claim holds: approximate_pml at most 0.5 nats with slack 0.05" in text
        data = run_json("audit", out, *asked, "0.05")
        assert data["delta"] == 0.05
        assert data["claimed"]["approximate_pml"] == pytest.approx(0.5, abs=1e-9)
        assert "FAILS" in run("audit", out, *asked, "0.04", code=1).output
        run("audit", out, "--prior", counts, "--epsilon", "0.5", code=1)

    def test_rows_that_are_not_exact_are_said(self, tmp_path: Path) -> None:
        prior, rule = tmp_path / "prior.csv", tmp_path / "m.csv"
        prior.write_text("letter,count\n0,1\n1,1\n")
        rule.write_text(",0,1\n0,0.75,0.2499999991\n1,0.25,0.75\n")
        assert (
            "do not sum to exactly one"
            in run("audit", rule, "--prior", prior, "--epsilon", "0.5").output
        )


def test_bench_is_green(monkeypatch: pytest.MonkeyPatch) -> None:
    """On some problems: tests/library/test_instances.py holds all of them to their closed forms."""
    some = [find(name) for name in ("emp-example-1", "no-leakage", "uniform-seven-letters")]
    monkeypatch.setattr("pmlopt.library.load_all", lambda: some)
    rows = json.loads(run("bench", "--json", "--repeats", "1").stdout)["comparisons"]
    assert [row["id"] for row in rows] == [one.id for one in some if one.names_closed_form] != []
    assert all(row["holds"] for row in rows)
    assert all(row["ratio"] == row["solve_seconds"] / row["closed_seconds"] for row in rows)


def test_bench_takes_some_problems_and_some_sizes() -> None:
    asked = ("bench", "--json", "--repeats", "1", "--only", "robust-uniform-*")
    rows = json.loads(run(*asked).stdout)["comparisons"]
    assert [row["id"] for row in rows] == ["robust-uniform-ball", "robust-uniform-masses"]
    text = run("bench", "--repeats", "1", "--letters", "3").output
    assert text.count("N = 3") == 4
    assert "solved" not in text
    assert "matches no problem" in run("bench", "--only", "none", code=2).output
    assert "give one" in run("bench", "--only", "robust-*", "--letters", "3", code=2).output


class TestSecondThoughts:
    """What a person may mean by mistake is said, not done."""

    def test_a_utility_that_nothing_changes_is_said(self, counts: Path) -> None:
        counts.write_text("level,count\n1,4e1\n2,30.0\n3,20\n4,10\n")  # whole numbers are counts
        asked = ("design", "--prior", counts, "--epsilon", "1", "--utility", "hamming", "--outputs")
        assert "nothing to design" in run(*asked, "8,9").output
        assert run_json(*asked, "1,2")["prior"]["counts"] == [40, 30, 20, 10]
        wide = ",".join(map(str, range(11, 24)))
        assert "4 rows and 13 columns, too many to print" in run(*asked, wide).output

    def test_missing_matplotlib_is_said_before_anything_is_written(
        self, counts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        arguments: list[str | Path] = [
            "--epsilon",
            "1",
            "--utility",
            "hamming",
            "--plot",
            tmp_path / "m.png",
        ]
        out = tmp_path / "m.csv"
        text = run("design", "--prior", counts, *arguments, "-o", out, code=2).output
        assert "the extra plots" in text
        assert not out.exists()

    def test_a_bug_does_not_look_like_a_failed_claim(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken() -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("pmlopt.library.list_problems", broken)
        assert "ZeroDivisionError" in run("problems", code=70).output


class TestSamples:
    def test_counts_and_delta_promise_for_the_true_distribution(
        self, counts: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "mechanism.csv"
        asked = ("--counts", counts, "--confidence-delta", "0.05", "--epsilon", "1")
        shown = run("design", *asked, "--utility", "hamming", "-o", out).output
        assert "for the true distribution, except with probability 0.05 over the sample" in shown
        robust = PML(1.0, over=confidence_ball(COUNTED, 0.05))
        loss = solve(design(COUNTED, robust, "hamming")).value
        assert run_json("design", *asked, "--utility", "hamming")["value"] == pytest.approx(
            loss, abs=1e-9
        )
        assert "0.05 over the sample" in run("audit", out, *asked).output

    def test_a_plan_has_each_of_the_three(self) -> None:
        asked = ("people-needed", "--for-bound", "--letters", "20", "--epsilon", math.log(5))
        samples = run_json(*asked, "--target", math.log(6), "--confidence-delta", "1e-5")["samples"]
        # (log(2^20 - 2) - log 1e-5) / (2 (1/5 - 1/6)^2), rounded up
        assert samples == math.ceil((math.log(2**20 - 2) - math.log(1e-5)) * 450)
        again = run_json(*asked, "--target", math.log(6), "--samples", samples)["confidence_delta"]
        assert again == pytest.approx((2**20 - 2) * math.exp(-2 * samples / 900), rel=1e-9)
        assert again <= 1e-5
        reached = run_json(*asked, "--confidence-delta", "1e-5", "--samples", samples)["target"]
        assert math.log(6) - 1e-4 <= reached <= math.log(6)
        assert "11,420" in run(*asked, "--target", math.log(6), "--confidence-delta", "1e-5").output
        # what is known beforehand: width (1 - e^(eps - eps')) least / (e^eps - 1)
        two = f"people-needed --for-bound --letters 2 --epsilon {math.log(1.5)}".split()
        two += ["--target", str(math.log(1.6))]
        two += ["--confidence-delta", "0.01"]
        width = (1 - 1.5 / 1.6) * 0.4 / 0.5
        known = run_json(*two, "--min-probability", "0.4")["samples"]
        assert known == math.ceil(math.log(2 / 0.01) / (2 * width**2))
        assert run_json(*two, "--kappa", "0.1")["samples"] < run_json(*two)["samples"]

    def test_a_sample_beside_the_prior_may_have_letters_that_were_not_seen(
        self, tmp_path: Path
    ) -> None:
        prior, counts, out = (
            tmp_path / name for name in ("prior.csv", "counts.csv", "mechanism.csv")
        )
        prior.write_text("letter,probability\na,0.6\nb,0.3\nc,0.1\n")
        counts.write_text("letter,count\nc,0\na,700\nb,300\n")
        asked = (
            "--prior",
            prior,
            "--counts",
            counts,
            "--confidence-delta",
            "0.05",
            "--epsilon",
            "1",
        )
        for region, kind in (("l1-ball", "l1-ball"), ("clopper-pearson", "box")):
            designed = run_json(
                "design", *asked, "--region", region, "--utility", "hamming", "-o", out
            )
            assert designed["status"] == "optimal"
            over = designed["certificate"]["privacy"]["over"]
            assert (over["kind"], over["delta"]) == (kind, 0.05)
            audited = run_json("audit", out, *asked, "--region", region)
            assert audited["holds"]
            assert audited["levels"]["pml_robust"] == pytest.approx(1.0, abs=1e-9)
        counts.write_text("letter,count\nc,0.5\na,700\nb,300\n")
        assert "whole number" in run("audit", out, *asked, code=2).output


class TestLeast:
    EXAMPLE = np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 2.0]])
    """Gains in the order of WCU, eq. (8)."""

    @staticmethod
    def save(folder: Path, builder: str, *lines: str) -> Path:
        path = folder / "own.toml"
        head = f'id = "own"\ntitle = "Own"\nbuilder = "{builder}"\n'
        source = 'source = { cite = "own", where = "here" }\n[params]\n'
        path.write_text(head + source + "\n".join(lines) + "\n")
        return path

    def ranks(self, folder: Path, *lines: str, builder: str = "worst_case_utility") -> Path:
        prior = 'prior = { probabilities = [0.6, 0.2, 0.2], labels = ["a", "b", "c"] }'
        order = f"order = {(self.EXAMPLE + 1).tolist()}"
        return self.save(folder, builder, prior, order, *lines)

    def test_a_sweep_is_a_table_of_every_threshold(self, tmp_path: Path) -> None:
        path = self.ranks(tmp_path, "threshold = 1")
        rows = run_json("sweep", path, "--over", "threshold=1:3:3")["rows"]
        assert [point["threshold"] for point in rows] == [1, 2, 3]
        assert [math.exp(point["value"]) for point in rows] == pytest.approx([1, 2, 5], abs=1e-8)
        assert all(one["status"] == "optimal" and one["bound"] <= one["value"] for one in rows)
        best = self.ranks(tmp_path, "epsilon = 0.5", builder="best_worst_case")
        rows = run_json("sweep", best, "--epsilon", "0.69,0.7,1.7")["rows"]
        assert [point["value"] for point in rows] == [1, 2, 3]

    def test_an_order_may_be_that_of_a_loss(self, counts: Path, tmp_path: Path) -> None:
        prior = "prior = { uniform = 2 }"
        path = self.save(
            tmp_path, "worst_case_utility", prior, 'order = "absolute"', "threshold = 4"
        )
        value = run_json("solve", path, "--prior", counts)["value"]
        order = utility_order(ExpectedLoss(absolute).evaluate_gains(COUNTED.labels, COUNTED.labels))
        assert value == solve(worst_case_utility(COUNTED, order, 4)).value
        path.write_text(path.read_text().replace("absolute", "mutual-information"))
        assert "name a loss" in run("solve", path, code=2).output

    def test_one_threshold_is_designed_and_written(self, tmp_path: Path) -> None:
        out, lp = tmp_path / "safe.json", tmp_path / "lp.mps"
        path = self.ranks(tmp_path, "threshold = 2", 'outputs = ["u", "v", "w"]')
        data = run_json("solve", path, "-o", out, "--mps", lp)
        assert data["value"] == pytest.approx(math.log(2), abs=1e-9)
        assert (data["mechanism"]["inputs"], data["mechanism"]["outputs"]) == ([*"abc"], [*"uvw"])
        matrix = np.array(data["mechanism"]["matrix"])
        assert (matrix[self.EXAMPLE == 0] == 0).all()
        assert data["certificate"]["allowed"] == (self.EXAMPLE > 0).tolist()
        assert Mechanism.load(out).matrix.tolist() == matrix.tolist()
        named = lp.read_text()
        assert "entries[0]" in named
        assert "rows[a]" in named
        assert "pml[a]" not in named  # they are of outputs, which are as many as the letters
        check_proved(run("solve", path).output)

    def test_a_radius_is_for_every_prior_within_it(self, tmp_path: Path) -> None:
        ball = 'over = {{ kind = "l1-ball", radius = {} }}'
        path = self.ranks(tmp_path, ball.format(0.1), "threshold = 2")
        rows = run_json("sweep", path, "--over", "threshold=1,2,3")["rows"]
        # the least mean of (1/2, 1, 0) is 9/20, that of (1, 0, 0) 3/20
        assert [math.exp(point["value"]) for point in rows] == pytest.approx(
            [1, 20 / 9, 20 / 3], abs=1e-8
        )
        said = run("solve", path).output
        assert "for every prior within l1 distance 0.1 of the centre" in said
        best = self.ranks(tmp_path, ball.format(0.1), "epsilon = 1.0", builder="best_worst_case")
        rows = run_json("sweep", best, "--epsilon", "0.79,0.8")["rows"]
        assert [point["value"] for point in rows] == [1, 2]
        wide = self.ranks(tmp_path, ball.format(0.5), "threshold = 3")
        assert "no mechanism has a finite level" in run("solve", wide, code=2).output

    def test_least_leakage_equals_the_python_route(self, counts: Path, tmp_path: Path) -> None:
        out = tmp_path / "least.json"
        cases: list[dict[str, Any]] = [
            {"expected": 0.5},
            {"worst": 1.0},
            {"expected": 0.5, "worst": 1.0},
        ]
        for floors in cases:
            lines = [f"{name} = {value}" for name, value in floors.items()]
            path = self.save(tmp_path, "least_leakage", 'utility = "absolute"', *lines)
            data = run_json("solve", path, "--prior", counts, "-o", out)
            result = solve(least_leakage(COUNTED, ExpectedLoss(absolute), **floors))
            assert (data["status"], data["value"]) == ("optimal", result.value)
            assert data["mechanism"]["matrix"] == result.matrix.tolist()
            assert np.array_equal(Mechanism.load(out).matrix, result.matrix)
        few = 'utility = "absolute"', "worst = 1.0", "outputs = [1, 2]"
        path = self.save(tmp_path, "least_leakage", *few)
        assert "for the letter 4" in run("solve", path, "--prior", counts, code=2).output

    def test_least_level_of_other_requirements_and_utilities(
        self, counts: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "least.json"
        lines = 'utility = "mutual-information"', 'privacy = "ldp"', "reach = 0.2"
        path = self.save(tmp_path, "least_leakage", *lines)
        data = run_json("solve", path, "--prior", counts, "-o", out)
        result = solve(least_leakage(COUNTED, LDP, MutualInformation(), 0.2))
        assert (data["status"], data["value"], data["bound"]) == (
            "optimal",
            result.value,
            result.bound,
        )
        assert "All that the file claims holds." in run("verify", out).output
        ball = (
            'privacy = { name = "pml", epsilon = 0.0, over = { kind = "l1-ball", radius = 0.1 } }'
        )
        path = self.save(tmp_path, "least_leakage", 'utility = "absolute"', ball, "reach = 0.2")
        data = run_json("solve", path, "--prior", counts)
        over = least_leakage(COUNTED, ExpectedLoss(absolute), reach=0.2, over=L1Ball(COUNTED, 0.1))
        assert data["value"] == solve(over).value
        path = self.save(tmp_path, "least_leakage", *lines[:2])
        assert "give `reach`" in run("solve", path, "--prior", counts, code=2).output


def test_a_reader_that_leaves_is_no_bug() -> None:
    command = [sys.executable, "-m", "pmlopt", "problems"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
