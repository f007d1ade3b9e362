"""What is explored: every number is that of the design, and the page is one file that loads nothing."""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
import subprocess
import sys
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from commands import run_line
from hypothesis import given, settings
from hypothesis import strategies as st

import pmlopt
from pmlopt import (
    LDP,
    PML,
    Chain,
    Ledger,
    Mechanism,
    Prior,
    Secret,
    Stream,
    design,
    explore,
    queries,
    solve,
    sweep,
    utility,
)
from pmlopt.errors import (
    FileFormatError,
    InputError,
    MissingExtraError,
    PrivacyError,
    SweepError,
    UtilityError,
)
from pmlopt.model.uncertainty import confidence_ball
from pmlopt.programs import best_guaranteed_utility
from pmlopt.programs.reports.baselines import compute_baselines
from pmlopt.programs.reports.pages import EXACT_COUNTS
from pmlopt.publishing.exploring import (
    CurvePoint,
    Exploration,
    ExploredCurve,
    ExploredPart,
    exploration,
)
from pmlopt.publishing.exploring.solved import ROUNDED_COUNTS, SweepAnswers
from pmlopt.releases.accounts.attributes import attribute_levels
from pmlopt.releases.estimation import people_needed

PRIOR = Prior.from_counts([40, 30, 20, 10], [1, 2, 3, 4])
LEVELS = [0.2, 0.5, 0.9]


def by_name(found: Exploration) -> dict[str, ExploredCurve]:
    return {curve.name: curve for curve in found.curves}


@cache
def designs() -> Exploration:
    return explore(PRIOR, "absolute", epsilon=LEVELS)


class TestDesigns:
    def test_each_requirement_has_a_curve_of_its_designs_beside_the_values_of_a_report(
        self,
    ) -> None:
        curves = by_name(designs())
        assert list(curves) == ["PML", "LDP", "randomized response", "releasing nothing"]
        for name in ("PML", "randomized response", "releasing nothing"):
            assert all(
                point.level is not None and point.level <= point.at for point in curves[name].points
            )
        for kind, (k, level) in itertools.product((PML, LDP), enumerate(LEVELS)):
            alone, point = (
                solve(design(PRIOR, kind(level), "absolute")),
                curves[kind.__name__].points[k],
            )
            assert (point.at, point.status) == (level, "optimal")
            assert point.value == pytest.approx(alone.value, abs=1e-9)
            assert point.bound is not None
            assert point.bound <= alone.value + 1e-9
            certificate: Any = alone.certificate
            worth = compute_baselines(certificate)
            assert worth is not None
            if kind is PML:
                nothing, response = (
                    curves[name].points[k] for name in ("releasing nothing", "randomized response")
                )
                assert nothing.value == pytest.approx(worth.without_release, abs=1e-12)
                assert response.value == pytest.approx(worth.response, abs=1e-9)
                assert response.bound is None

    @settings(max_examples=10, deadline=None)
    @given(st.lists(st.integers(1, 50), min_size=2, max_size=5), st.floats(0.05, 1.5))
    def test_two_letters_and_more_follow_the_definition_of_pml(
        self, counts: list[int], level: float
    ) -> None:
        prior = Prior.from_counts(counts)
        found = explore(prior, "hamming", epsilon=[level], beside=(), exact_counts=True)
        (point,) = found.curves[0].points
        (part,) = point.parts
        law = prior.pmf @ part.matrix
        expected = np.log((part.matrix / law).max(axis=0))
        assert [leakage for leakage, _ in part.leakages] == pytest.approx(
            expected.tolist(), abs=1e-9
        )
        assert max(expected) <= level + 1e-9

    def test_people_are_those_that_an_estimate_needs(self) -> None:
        found = explore([0.5, 0.5], "hamming", epsilon=[0.3], beside=(), half_width=0.05)
        (point,) = found.curves[0].points
        expected = people_needed([0.5, 0.5], point.parts[0].matrix, 0.05)
        assert dict(point.facts)["people for frequencies within 0.05"] == f"{expected:,}"
        (point,) = explore(PRIOR, "absolute", epsilon=[0.05], beside=()).curves[0].points
        assert (
            "cannot distinguish 4 letters"
            in dict(point.facts)["people for frequencies within 0.01"]
        )

    def test_the_line_of_python_gives_the_point_again(self) -> None:
        point = designs().curves[0].points[1]
        names: dict[str, object] = {}
        exec(f"{designs().before_python}\n{point.python}", names)
        assert names["result"].value == pytest.approx(point.value, abs=1e-9)  # type: ignore[attr-defined]

    def test_the_command_gives_the_point_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        labels = ["it's", "50% \\n", "c,d"]
        found = explore(Prior([0.5, 0.3, 0.2], labels), "hamming", epsilon=[0.4], beside=())
        (point,) = found.curves[0].points
        monkeypatch.chdir(tmp_path)
        subprocess.run(["sh", "-euc", found.before_command], check=True)
        run_line(point.command.removeprefix("pmlopt "))
        again = pmlopt.load(tmp_path / "mechanism.json")
        assert again.value == pytest.approx(point.value, abs=1e-9)
        assert again.mechanism.inputs == tuple(labels)

    def test_left_out_levels_end_where_pml_asks_for_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = explore([0.5, 0.5], "hamming", beside=())
        ats = [point.at for point in found.curves[0].points]
        assert len(ats) == 40
        assert ats[-1] == pytest.approx(math.log(2), abs=1e-3)
        assert found.curves[0].points[-1].value == pytest.approx(
            1 - math.exp(ats[-1]) / 2, abs=1e-9
        )

    def test_what_cannot_be_meant_is_refused(self) -> None:
        with pytest.raises(InputError, match="known are ldp, response, nothing"):
            explore(PRIOR, "absolute", beside=["dp"])
        with pytest.raises(PrivacyError):
            explore(PRIOR, "absolute", epsilon=[])
        with pytest.raises(UtilityError):
            explore(PRIOR, "absolut")

    def test_levels_that_cannot_be_solved_are_said(self) -> None:
        found = explore(
            PRIOR, "absolute", lambda level: PML(level - 2 * (level > 1)), [0.2, 1.5], beside=()
        )
        assert [point.at for point in found.curves[0].points] == [0.2]
        assert "1 of 2 points could not be solved" in found.failures[0]

    def test_a_secret_is_what_the_level_is_about_and_has_no_command(self) -> None:
        secret = Secret([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]])
        (point,) = explore(secret, "hamming", epsilon=[0.2], beside=()).curves[0].points
        alone = solve(design(secret.prior, PML(0.2, about=secret), "hamming"))
        assert point.value == pytest.approx(alone.value, abs=1e-9)
        assert point.command == ""
        assert "privacy(0.2)" in point.python


class TestSweeps:
    @staticmethod
    def guessing(epsilon: float) -> pmlopt.Program[Any]:
        return design(PRIOR, PML(epsilon), "match")

    def test_one_that_was_solved_is_shown_as_it_is(self, tmp_path: Path) -> None:
        table = sweep(self.guessing, {"epsilon": LEVELS}, mechanisms=tmp_path)
        with_folder, alone = explore(table, tmp_path), explore(table)
        for found in (with_folder, alone):
            assert [point.value for point in found.curves[0].points] == table.column(
                "value"
            ).tolist()
        assert with_folder.curves[0].points[0].parts
        assert not alone.curves[0].points[0].parts

    def test_other_folders_and_sweeps_without_an_answer_are_refused(self, tmp_path: Path) -> None:
        sweep(self.guessing, {"epsilon": [0.3]}, mechanisms=tmp_path)
        with pytest.raises(SweepError, match="not the mechanism of row 0"):
            explore(sweep(self.guessing, {"epsilon": [0.6]}), tmp_path)
        with pytest.raises(SweepError, match="nothing to explore"):
            explore(sweep(self.guessing, {"epsilon": [-1.0]}))
        table = sweep(self.guessing, {"epsilon": [-1.0, 0.4]})
        assert len(list(SweepAnswers.read(table, None).solved_rows)) == 1

    def test_programs_of_records_and_of_worst_cases(self) -> None:
        parity = queries.ModularSum(3, 2)
        builder = partial(pmlopt.leakage_distortion, parity, entropy=1.0)
        found = explore({"a": builder, "b": builder}, {"distortion": [0.3, 0.1]}, height="leakage")
        assert list(by_name(found)) == ["a", "b"]
        assert [point.at for point in found.curves[0].points] == [0.1, 0.3]
        for point in found.curves[1].points:
            alone = solve(pmlopt.leakage_distortion(parity, point.at, 1.0))
            assert point.value == pytest.approx(alone.value, abs=1e-5)
        worst = partial(best_guaranteed_utility, PRIOR, utility.ExpectedLoss(utility.absolute))
        lone = explore(worst, {"epsilon": LEVELS})
        assert lone.better == "less"
        assert [p.value for p in lone.curves[0].points] == [
            solve(worst(epsilon=e)).value for e in LEVELS
        ]


class TestStatedCounts:
    """Pages state the counts of a sample rounded, as a release does."""

    COUNTS: ClassVar[dict[Any, int]] = {"a": 143, "b": 77, "c": 31, "d": 6}

    def test_a_design_is_for_the_rounded_shares_and_no_exact_count_is_on_the_page(self) -> None:
        sample = Prior.from_counts(self.COUNTS)
        found = explore(sample, "hamming", epsilon=[0.4], beside=())
        (point,) = found.curves[0].points
        law = np.array([140, 70, 30, 10]) / 250  # 25 tens for 257 people, by hand
        assert point.parts[0].prior == pytest.approx(law, abs=1e-15)
        alone = solve(design(Prior(law, list("abcd")), PML(0.4), "hamming"))
        assert point.value == pytest.approx(alone.value, abs=1e-9)
        text = json.dumps(found.to_dict())
        assert not [
            count for count in self.COUNTS.values() if f"[{count}," in text or f" {count}," in text
        ]
        assert "[140, 70, 30, 10]" in found.before_python
        assert "a,140" in found.before_command
        assert found.warnings == ()

    def test_a_sample_of_a_known_size_is_rounded_too(self) -> None:
        found = explore(Prior([0.55, 0.45], samples=101), "hamming", epsilon=[0.4], beside=())
        prior = found.curves[0].points[0].parts[0].prior  # 56 and 45 of 101 people
        assert prior == pytest.approx(np.array([60, 40]) / 100, abs=1e-15)

    def test_exact_counts_are_an_option_that_the_page_names(self) -> None:
        sample = Prior.from_counts(self.COUNTS)
        found = explore(sample, "hamming", epsilon=[0.4], beside=(), exact_counts=True)
        assert found.curves[0].points[0].parts[0].prior == pytest.approx(sample.pmf, abs=0)
        assert found.to_dict()["about"][0] == f"Warning: {EXACT_COUNTS}"
        assert "from_counts([143, 77, 31, 6]" in found.before_python

    @pytest.mark.parametrize("total", [None, 0.6])
    def test_the_table_of_pairs_is_rounded(self, total: float | None) -> None:
        secret = Secret.from_counts([[143, 6], [32, 57]], ["a", "b"], ["ill", "well"])
        options: dict[str, Any] = (
            {"epsilon": [0.3], "beside": ()} if total is None else {"total": total}
        )
        found = explore(secret, "hamming", **options)
        part = found.curves[0].points[0].parts[-1]
        assert part.prior == pytest.approx(
            np.array([170, 60]) / 230, abs=1e-15
        )  # 140 + 30, 10 + 50: 23 tens for 238 people
        assert ROUNDED_COUNTS in found.about

    def test_a_set_of_a_sample_needs_exact_counts(self) -> None:
        sample = Prior.from_counts(self.COUNTS)
        secret = Secret.from_counts([[143, 6], [32, 57]])
        options: dict[str, Any] = {"epsilon": [0.4], "beside": ()}
        for prior, privacy in (
            (sample, lambda level: PML(level, confidence_ball(sample, 0.01))),
            (sample, lambda level: PML(level, confidence_ball(sample, 0.01)) & LDP(1.0)),
            (secret.prior, lambda level: PML(level, about=secret)),
        ):
            with pytest.raises(InputError, match="exact_counts=True"):
                explore(prior, "hamming", privacy, **options)
            assert explore(prior, "hamming", privacy, exact_counts=True, **options).warnings

    def test_what_was_solved_before_is_shown_with_a_warning(self, tmp_path: Path) -> None:
        sample = Prior.from_counts(self.COUNTS)

        def program(epsilon: float) -> Any:
            return design(sample, PML(epsilon), "hamming")

        table = sweep(program, {"epsilon": [0.4]}, mechanisms=tmp_path)
        pages = [explore(table, tmp_path), explore(program, {"epsilon": [0.4]})]
        ledger = Ledger(sample, people=1, total=1.0)
        ledger.record(np.full((4, 2), 0.5), [0])
        for page in (*pages, explore(ledger)):
            assert page.warnings == (EXACT_COUNTS,)
            assert page.to_dict()["about"][0].startswith("Warning: ")
        assert explore(lambda epsilon: design([0.5, 0.5], PML(epsilon), "hamming"),
                       {"epsilon": [0.4]}).warnings == ()  # fmt: skip


class TestAccounts:
    def test_two_columns_are_measured_together(self) -> None:
        joint = Secret([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]], name="sex")
        found = explore(joint, "hamming", total=1.0, count=3)
        for k, point in enumerate(found.curves[0].points):
            levels = attribute_levels(joint.joint[0], [part.matrix for part in point.parts])
            assert [curve.points[k].value for curve in found.curves] == [
                levels.together,
                *levels.each,
            ]
            for part, level in zip(point.parts, (point.at, 1.0 - point.at), strict=True):
                assert max(leakage for leakage, _ in part.leakages) <= level + 1e-9

    def test_independent_columns_add_up_and_some_splits_are_refused(self) -> None:
        joint = Secret(np.outer([0.5, 0.5], [0.4, 0.6]))
        for point in explore(joint, "hamming", total=0.4, count=3).curves[0].points:
            alone = [max(leakage for leakage, _ in part.leakages) for part in point.parts]
            assert point.value == pytest.approx(sum(alone), abs=1e-9)
        with pytest.raises(PrivacyError, match="above 0"):
            explore(joint, "hamming", total=0.0)
        with pytest.raises(InputError, match="two splits"):
            explore(joint, "hamming", total=1.0, count=1)

    def test_a_stream_stays_as_it_is_and_within_its_level(self) -> None:
        stream = Stream(
            Chain([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], ["in", "out"]), PML(0.5), "hamming"
        )
        stream.release("in", seed=4)
        found = explore(stream, ["in", "out", "out"], seed=5)
        assert stream.time == 2
        again = stream.copy()
        levels = list(again.levels)
        for point, state in zip(found.curves[0].points[1:], ["in", "out", "out"], strict=True):
            again.record(dict(point.facts)["what was drawn"])
            levels.append(again.level)
            assert state in point.parts[0].inputs
        assert [point.value for point in found.curves[0].points] == levels
        assert found.limit == 0.5
        assert max(levels) <= found.limit
        with pytest.raises(InputError, match="give states"):
            explore(Stream(stream.chain, PML(0.5), "hamming"))

    def test_a_ledger_has_the_level_of_each_history_and_what_is_left(self) -> None:
        ledger = Ledger([0.5, 0.3, 0.2], people=4, total=1.4)
        ledger.record([[0.8, 0.2], [0.4, 0.6], [0.4, 0.6]], [0, 1, 1, 0])
        found = explore(ledger)
        values = [point.value for point in found.curves[0].points]
        assert values == sorted({float(level) for level in ledger.levels}, reverse=True)
        for point in found.curves[0].points:
            (part,) = point.parts
            assert part.prior is not None
            after = part.prior * part.matrix[:, 0] / (part.prior @ part.matrix[:, 0])
            person = 0 if "0 and 3" in dict(point.facts)["people with this history"] else 1
            assert after == pytest.approx(ledger.prior(person).pmf, abs=1e-12)
            left = dict(point.facts)["left of the total"]
            assert float(left.split()[0]) == pytest.approx(1.4 - point.value, abs=1e-5)

    def test_a_letter_that_is_known_is_marked(self) -> None:
        ledger = Ledger([0.5, 0.5])
        ledger.record(np.eye(2), [1])
        (point,) = explore(ledger).curves[0].points
        ((leakage, identifies),) = point.parts[0].leakages
        assert leakage == pytest.approx(math.log(2))
        assert identifies


def parts(*matrices: list[list[float]]) -> ExploredCurve:
    letters = Prior.uniform(len(matrices[0]))
    return ExploredCurve(
        "",
        tuple(
            CurvePoint(
                float(k),
                0.0,
                parts=(ExploredPart.from_mechanism("", pmlopt.Mechanism(matrix), letters),),
            )
            for k, matrix in enumerate(matrices)
        ),
    )


def test_changes_are_outcomes_that_come_go_merge_and_part() -> None:
    merged, apart, one = (
        [[0.5, 0.5], [0.5, 0.5]],
        [[0.6, 0.4], [0.4, 0.6]],
        [[1.0, 0.0], [1.0, 0.0]],
    )
    texts = [text for _, _, text in parts(one, merged, apart, merged, one).changes]
    assert texts == [
        "the outcome 1 appears",
        "the outcomes 0 and 1 no longer reveal the same",
        "the outcomes 0 and 1 reveal the same from here on",
        "the outcome 1 disappears",
    ]


def test_what_is_copied_of_accounts_and_builders_runs() -> None:
    joint = Secret([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    ledger = Ledger([0.5, 0.3, 0.2], people=3, total=1.0)
    ledger.record([[0.6, 0.4], [0.4, 0.6], [0.4, 0.6]], [0, 1, 1])
    columns, kept = explore(joint, "hamming", total=1.0, count=3), explore(ledger)
    program = explore(TestSweeps.guessing, {"epsilon": [0.3]})
    found: dict[str, Any] = {}
    for seen, given_before in (
        (columns, (joint, "hamming")),
        (kept, (ledger, "hamming")),
        (program, TestSweeps.guessing),
    ):
        point = seen.curves[0].points[-1]
        names = {"given": given_before}
        exec(f"{seen.before_python.replace('...', 'given')}\n{point.python}", names)
        found |= names
    last = dict(columns.curves[0].points[-1].facts)
    assert float(last["utility of the secret"].split()[0]) == pytest.approx(
        found["one"].value, abs=1e-5
    )
    assert float(last["utility of the other column"].split()[0]) == pytest.approx(
        found["other"].value, abs=1e-5
    )
    assert found["result"].value == pytest.approx(program.curves[0].points[-1].value, abs=1e-9)


pytest.importorskip("vl_convert")


def data_of(page: str) -> Any:
    """The data of a page, as its script reads them."""
    found = re.search(r"<script type='application/json' id='data'>(.*?)</script>", page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def noisy(letters: int, count: int) -> Exploration:
    """Points whose matrices have no zeros: the largest that a page can have."""
    rng = np.random.default_rng(0)
    prior = Prior(rng.dirichlet(np.ones(letters)), [f"letter {k}" for k in range(letters)])
    mechanisms = [
        Mechanism(rng.dirichlet(np.ones(letters), letters), prior.labels) for _ in range(count)
    ]
    points = [
        CurvePoint(float(k), 1.0, parts=(ExploredPart.from_mechanism("", one, prior),))
        for k, one in enumerate(mechanisms)
    ]
    return Exploration(
        "t", "a", "h", tuple(ExploredCurve(f"c{k}", tuple(points[k::3])) for k in range(3))
    )


def test_sixteen_letters_and_forty_levels_of_three_requirements_are_within_their_size() -> None:
    assert len(noisy(16, 120).html.encode()) <= 1_500_000


def test_of_too_many_entries_some_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "MAX_PAGE_ENTRIES", 16 * 16 * 4)
    kept = [
        p["parts"][0]["matrix"] for c in data_of(noisy(16, 12).html)["curves"] for p in c["points"]
    ]
    assert 0 < sum(matrix is not None for matrix in kept) <= 6
    assert "left out" in noisy(16, 1).html


def test_the_largest_budget_is_within_six_megabytes() -> None:
    whole = len(base64.b64encode(bytes(4 * exploration.MAX_PAGE_ENTRIES)))
    assert whole + len(exploration.load_vega_scripts()) < 5_500_000


def test_labels_stay_text() -> None:
    labels = [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "'\"&amp;",
        "a\nb",
    ]
    found = explore(Prior([0.4, 0.3, 0.2, 0.1], labels), "hamming", epsilon=[0.3], title=labels[1])
    shared = data_of(found.html)["shared"]
    assert [*labels[:3], "a\\nb"] in shared
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(found.html)
    assert "img" not in tags
    assert tags.count("script") == 3


def test_the_page_loads_nothing() -> None:
    page = noisy(3, 3).html
    assert "default-src 'none'" in page
    own = page.replace(exploration.load_vega_scripts(), "")
    assert not re.search(
        r"https?://|<(?:link|iframe|img|script)[^>]*\b(?:src|href)=", own, re.IGNORECASE
    )


def test_matrices_come_back_to_seven_digits() -> None:
    found = noisy(5, 3)
    data = data_of(found.html)
    part = data["curves"][0]["points"][0]["parts"][0]
    read = np.frombuffer(base64.b64decode(part["matrix"]), "<f4").reshape(5, 5)
    assert read == pytest.approx(found.curves[0].points[0].parts[0].matrix, rel=1e-6)
    assert data["shared"][part["inputs"]] == [f"letter {k}" for k in range(5)]


def test_it_is_written_whole_and_shown_in_a_frame(tmp_path: Path) -> None:
    found = noisy(3, 3)
    found.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == found.html
    assert found._repr_html_().startswith("<iframe title='t'")
    assert "<script" not in found._repr_html_()
    with pytest.raises(FileFormatError):
        found.save(tmp_path / "page.pdf")


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[explore\]"):
        exploration.load_vega_scripts.__wrapped__()
