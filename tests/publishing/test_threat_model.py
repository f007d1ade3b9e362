"""What docs/threat_model.md promises of a release, a test for each line that this room decides."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import run
from mutate_releases import mutate
from mutate_state import KINDS

from pmlopt import PML, Mechanism, Prior, design, load, solve
from pmlopt.core.numbers import counts
from pmlopt.core.numbers.arrays import indices_of
from pmlopt.errors import FileFormatError, InputError
from pmlopt.model.uncertainty.confidence import weissman_radius
from pmlopt.publishing import (
    assess_release_fit,
    build_stated_prior,
    check,
    choose_rounding_step,
    read_plan,
    release,
)
from pmlopt.publishing.folder import digest_folder
from pmlopt.publishing.rounded_counts import bound_share_distance, round_counts, round_total

FLIP = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])


def people(no: int, yes: int) -> dict[str, list[str]]:
    return {"ill": ["no"] * no + ["yes"] * yes}


def numbers_in(value: Any) -> Iterator[float]:
    """Every number within plain data."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


class TestExactCounts:
    """No exact count of the secret is published by default."""

    @pytest.mark.parametrize("keep", [False, True])
    def test_no_file_of_the_folder_has_an_exact_count_or_share(
        self, tmp_path: Path, keep: bool
    ) -> None:
        data, out = tmp_path / "people.csv", tmp_path / "out"
        counts = {"a": 143, "b": 77, "c": 31, "d": 6}
        rows = "".join(
            f"{letter},t{k % 2}\n" * number for k, (letter, number) in enumerate(counts.items())
        )
        data.write_text("ill,town\n" + rows)
        command = ["release", data, "--column", "ill", "--epsilon", 0.5, "--utility", "hamming"]
        said = run(*command, "--keep" if keep else "--drop", "town", "-o", out)
        secret = {*counts.values()}  # 257 people: the number of rows is in clear
        shares = {number / sum(counts.values()) for number in counts.values()}
        for file in sorted(out.rglob("*.json")):
            found = list(numbers_in(json.loads(file.read_text())))
            assert not secret & set(found), file
            assert not [one for one in found if min(abs(one - share) for share in shares) < 1e-4], (
                file
            )
        for text in (said, (out / "report.md").read_text()):
            assert not [number for number in secret if f" {number} " in text]
            assert not [share for share in shares if f" {share:.4g} " in text]
            assert (
                "how many people have each value, in multiples of 10, and at least 10: recipients"
                in text
            )
        described = json.loads((out / "release.json").read_text())
        assert described["people"] == [140, 70, 30, 10]  # the rare letter keeps a positive mass
        about = load(out / "mechanisms" / "ill.json").certificate.listed_prior
        assert (about.counts, about.samples) == ((140, 70, 30, 10), None)

    def test_exact_counts_are_an_option_that_is_said(self, tmp_path: Path) -> None:
        data, out = tmp_path / "people.csv", tmp_path / "out"
        data.write_text("ill\n" + "no\n" * 143 + "yes\n" * 58)
        command = ["release", data, "--column", "ill", "--epsilon", 0.3, "--utility", "hamming"]
        said = run(*command, "--exact-counts", "-o", out)
        assert "warning: the exact number of people with each value is published" in said
        described = json.loads((out / "release.json").read_text())
        assert (described["step"], described["people"]) == (1, [143, 58])
        assert "states how many people have each value, exactly" in (out / "report.md").read_text()
        assert check(out).holds

    def test_two_waves_that_differ_by_one_person_state_the_same_shares_but_once_in_a_step(
        self,
    ) -> None:
        # of 219 people all but one are known: the last one's letter shows at the edge between two statements
        def state(no: int) -> list[int]:
            return list(round_counts(np.array([no, 220 - no]), 10, ["no", "yes"]).tolist())

        assert sum(state(no + 1) != state(no) for no in range(1, 219)) == 20  # about one in ten
        first = release(people(143, 78), {"ill": FLIP}).planned
        second = release(people(142, 78), {"ill": FLIP}).planned
        assert (first.people, first.together) == (second.people, second.together)
        assert first.left_out == second.left_out == 0

    def test_one_law_for_all_waves_never_changes_what_is_stated(self) -> None:
        law = people(700, 300)
        stated = [
            release(people(count, 77), {"ill": FLIP}, law=law).planned for count in range(140, 150)
        ]
        assert len({(one.people, one.together) for one in stated}) == 1

    def test_a_design_for_the_exact_shares_is_refused(self, tmp_path: Path) -> None:
        data: Any = people(143, 78)
        exact = solve(design(Prior.from_counts({"no": 143, "yes": 78}), PML(0.3), "hamming"))
        with pytest.raises(InputError, match="exact shares of these people"):
            release(data, {"ill": exact}, tmp_path / "out")
        release(data, {"ill": exact}, tmp_path / "said", exact_counts=True)
        stated = solve(design(build_stated_prior({"no": 143, "yes": 78}), PML(0.3), "hamming"))
        release(data, {"ill": stated}, tmp_path / "out")
        assert check(tmp_path / "out").holds

    def test_the_level_of_a_plan_is_about_the_stated_law(self, tmp_path: Path) -> None:
        (tmp_path / "plan.toml").write_text('[release.ill]\nepsilon = 0.3\nutility = "hamming"\n')
        plan, data = read_plan(tmp_path / "plan.toml"), people(143, 78)
        made: Any = plan.make_mechanisms(data)
        draft = release(data, made)
        assert made[("ill",)].certificate.listed_prior.counts == draft.planned.people == (140, 80)
        assert draft.levels.together <= 0.3 + 1e-12

    def test_a_ball_is_larger_by_the_rounding(self, tmp_path: Path) -> None:
        text = '[release.ill]\nepsilon = 0.9\nconfidence_delta = 0.1\nutility = "hamming"\n'
        (tmp_path / "plan.toml").write_text(text)
        made: Any = read_plan(tmp_path / "plan.toml").make_mechanisms(people(1_434, 787))
        ball = made[("ill",)].certificate.privacy.over
        exact, stated = np.array([1_434, 787]) / 2_221, np.array([1_430, 790]) / 2_220
        assert ball.radius >= weissman_radius(2_220, 2, 0.1) + np.abs(exact - stated).sum()
        for kind in ("confidence-ball", "confidence-box"):
            over = f'{{ kind = "{kind}", delta = 0.1 }}'
            privacy = f'privacy = {{ name = "pml", epsilon = 0.9, over = {over} }}'
            (tmp_path / "plan.toml").write_text(f'[release.ill]\n{privacy}\nutility = "hamming"\n')
            with pytest.raises(InputError, match="needs the exact counts"):
                read_plan(tmp_path / "plan.toml").make_mechanisms(people(1_434, 787))

    def test_rounding_is_within_what_is_stated_of_it(self) -> None:
        rng = np.random.default_rng(5)
        for _ in range(300):
            counts = (
                rng.integers(0, 10 ** rng.integers(1, 5), rng.integers(1, 9))
                + np.eye(1, dtype=int)[0]
            )
            total = int(counts.sum())
            step = choose_rounding_step(total)
            assert step >= 10
            stated = round_counts(counts, step, range(len(counts)))
            assert ((stated > 0) == (counts > 0)).all()
            assert not (stated % step).any()
            assert stated.sum() == round_total(total, int((counts > 0).sum()), step)
            apart = np.abs(stated / stated.sum() - counts / total).sum() / 2
            assert apart <= bound_share_distance(stated, step)

    def test_honest_rows_of_a_rounded_law_are_not_refused_and_raw_ones_are(self) -> None:
        rng = np.random.default_rng(6)
        refused = 0
        for _ in range(200):  # at 2e-3 each, more than 4 have a probability below 6e-5
            no, yes = 1_434, 96
            drawn = rng.binomial(no, 0.75) + rng.binomial(yes, 0.25)
            stated = round_counts(np.array([no, yes]), 10, ["no", "yes"])
            fit = assess_release_fit(
                [FLIP], stated / stated.sum(), {("no",): drawn, ("yes",): no + yes - drawn},
                same_people=True, distance=bound_share_distance(stated, 10),
            )  # fmt: skip
            refused += not fit.holds
        assert refused <= 4
        raw = assess_release_fit(
            [FLIP], stated / stated.sum(), {("no",): no, ("yes",): yes}, same_people=True,
            distance=bound_share_distance(stated, 10),
        )  # fmt: skip
        assert not raw.holds


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an honest release with a design."""
    out = tmp_path_factory.mktemp("sealed") / "out"
    made = solve(design(build_stated_prior({"no": 200, "yes": 100}), PML(0.3), "hamming"))
    release(people(200, 100), {"ill": made}, out, issuer="Office")
    assert check(out).holds
    return out


def copied(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return target


def rewrite(folder: Path, **values: Any) -> Path:
    """Change values of the description, with the digests of the files as they are."""
    path = folder / "release.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "digests": digest_folder(folder), **values})
    )
    return folder


class TestFilesOfOthers:
    """Nothing that stands in a file of somebody else turns a check off or is believed."""

    @pytest.mark.parametrize("version", ["0.0.9", "", "99.0", "0.1.0"])
    @pytest.mark.parametrize("name", ["report.html", "report.md"])
    def test_a_forged_report_fails_under_any_version(
        self, sealed: Path, tmp_path: Path, version: str, name: str
    ) -> None:
        folder = copied(sealed, tmp_path / "out")
        (folder / name).write_text("<html><script>document.title='x'</script>at most 0 nats</html>")
        found = check(rewrite(folder, version=version))
        assert "report" in [claim.name for claim in found.failures]
        run("check", folder, code=1)

    def test_other_words_of_another_version_are_neither_a_yes_nor_a_false_claim(
        self, sealed: Path, tmp_path: Path
    ) -> None:
        folder = copied(sealed, tmp_path / "out")
        page = folder / "report.md"
        page.write_text(page.read_text().replace("drawn row by row", "drawn one by one"))
        own = rewrite(folder)
        assert [claim.name for claim in check(own).failures] == ["report"]
        run("check", own, code=1)
        other = rewrite(folder, version="0.0.9")
        undecided = [claim.name for claim in check(other).parts if claim.holds is not True]
        assert (check(other).holds, undecided) == (None, ["report"])
        printed = " ".join(run("check", other, code=3).split())
        assert "it names version '0.0.9'" in printed
        assert "Not checked, report: check the folder with the version that it names" in printed
        digest = next(iter(digest_folder(folder / "mechanisms").values()))
        assert digest in page.read_text()
        page.write_text(page.read_text().replace(digest, "0" * 64))
        run("check", rewrite(folder, version="0.0.9"), code=1)

    def test_what_cannot_be_checked_is_no_yes(self, tmp_path: Path) -> None:
        kept = {**people(200, 100), "town": ["east", "west"] * 150}
        made = solve(design(build_stated_prior({"no": 200, "yes": 100}), PML(0.3), "hamming"))
        release(kept, {"ill": made}, tmp_path / "kept", keep=["town"])
        release(people(200, 100), {"ill": made}, tmp_path / "law", law=people(20, 10))
        release(people(200, 100), {"ill": FLIP}, tmp_path / "matrix")
        for name, undecided, advice in (
            ("kept", ["in clear"], "can repeat the release with --dry-run"),
            ("law", ["fit", "no raw rows"], "the shares are those of other people"),
            ("matrix", ["mechanisms/ill.json"], "obtain the saved result"),
        ):
            said = run("check", tmp_path / name, code=3)
            last = said[said.index("What can be checked from the folder holds") :].splitlines()
            assert all(one in last[0] for one in undecided)
            assert last[0].endswith("cannot be checked from it.")
            place = last.index("What this folder cannot show:")
            told = [line.partition(":")[0] for line in last[1:place] if line[:7] != "Warning"]
            assert told == [f"Not checked, {one}" for one in undecided]
            untested = "no raw rows" not in said  # it is then what the folder cannot show
            told = [line.split()[0] for line in last[place + 1 :]]
            assert told == ["Who", *["Whether"] * (3 + untested)]
            assert advice in last[1]

    @pytest.mark.parametrize(
        "name", ["report.md", "report.html", "released.csv", "mechanisms/ill.json"]
    )
    def test_a_missing_file_is_a_false_claim_with_the_table(
        self, sealed: Path, tmp_path: Path, name: str
    ) -> None:
        folder = copied(sealed, tmp_path / "out")
        (folder / name).unlink()
        said = " ".join(run("check", folder, code=1).split())
        assert f"FAILS changed, missing or unexpected: {name}" in said
        assert "level together" in said

    def test_a_description_with_empty_lists_other_keys_or_steps_is_refused(
        self, sealed: Path, tmp_path: Path
    ) -> None:
        told = json.loads((sealed / "release.json").read_text())
        part = told["parts"][0]
        wrong: list[dict[str, Any]] = [
            {"parts": []}, {"parts": [{**part, "columns": []}]}, {"letters": [[], []]}, {"letters": []},
            {"in_clear": [{"columns": [], "values": 1, "alone": 0.0, "with_release": None}]},
            {"in_clear": [{"columns": ["x"], "values": 1, "alone": 0.0, "with_release": None}]},
            {"unknown": 1}, {"step": 7}, {"date": "yesterday"}, {"format": "pmlopt release 1"},
            {"parts": [{**part, "mechanism": "../ill.json"}]}, {"data": "/etc/passwd"},
        ]  # fmt: skip
        for place, values in enumerate(wrong):
            with pytest.raises(FileFormatError):
                check(rewrite(copied(sealed, tmp_path / str(place)), **values))

    def test_a_larger_step_excuses_no_shares(self, sealed: Path, tmp_path: Path) -> None:
        folder = rewrite(copied(sealed, tmp_path / "out"), step=100)
        assert {"rows", "report"} <= {claim.name for claim in check(folder).failures}

    def test_no_command_writes_into_a_sealed_folder(self, sealed: Path, tmp_path: Path) -> None:
        saved = sealed / "mechanisms" / "ill.json"
        assert "is in the folder of a release" in run("report", saved, code=2)
        assert "is in the folder of a release" in run(
            "report", saved, "-o", sealed / "more.html", code=2
        )
        link = tmp_path / "link"
        link.symlink_to(sealed)
        assert "is in the folder of a release" in run(
            "report", saved, "-o", link / "more.html", code=2
        )
        run("report", saved, "-o", tmp_path / "ill.html")
        assert check(sealed).holds

    def test_a_column_in_clear_cannot_tell_less_than_the_release(self, tmp_path: Path) -> None:
        kept = {**people(200, 100), "town": ["east", "west"] * 150}
        described = release(kept, {"ill": FLIP}, keep=["town"]).planned
        out = tmp_path / "out"
        release(kept, {"ill": FLIP}, out, keep=["town"])
        less = {
            "columns": ["town"],
            "values": 2,
            "alone": 0.0,
            "with_release": described.together / 2,
        }
        assert "in clear" in [claim.name for claim in check(rewrite(out, in_clear=[less])).failures]

    def test_random_changes_are_neither_accepted_nor_end_in_a_traceback(self) -> None:
        ends, wrong = mutate(seed=7, instances=40, kinds=["folder"])
        assert not wrong
        assert ends["folder found"] + ends["folder refused"] > 25

    def test_random_changes_of_what_releases_go_on_from_move_nothing(self) -> None:
        ends, wrong = mutate(seed=7, instances=60, kinds=list(KINDS))
        assert not wrong
        assert {"draft resumed", "publication resumed"} <= set(ends)
        assert all(ends[f"{kind} refused"] for kind in KINDS.keys() - {"draft"})


class TestReportToSign:
    def test_it_has_the_date_the_issuer_the_digests_and_a_place_to_sign(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
        for name in ("one", "two"):
            release(
                people(200, 100), {"ill": FLIP}, tmp_path / name, issuer="Office of <b>", seed=3
            )
        one, two = tmp_path / "one", tmp_path / "two"
        assert digest_folder(one) == digest_folder(two)  # the same seed and date: the same folder
        told = json.loads((one / "release.json").read_text())
        assert (told["date"], told["issuer"]) == ("1970-01-02", "Office of <b>")
        page = (one / "report.html").read_text()
        data = hashlib.sha256((one / "released.csv").read_bytes()).hexdigest()
        mechanism = hashlib.sha256((one / "mechanisms" / "ill.json").read_bytes()).hexdigest()
        for text in (
            "1970-01-02",
            "pmlopt ",
            data,
            mechanism,
            "Office of &lt;b&gt;",
            "signature",
            "______",
        ):
            assert text in page
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
        with pytest.raises(InputError, match="SOURCE_DATE_EPOCH"):
            release(people(20, 10), {"ill": FLIP})

    def test_the_report_seals_the_description(self, sealed: Path, tmp_path: Path) -> None:
        # shares that no table of the report shows, and the delimiter
        folder = rewrite(copied(sealed, tmp_path / "out"), delimiter=";")
        assert "report" in [claim.name for claim in check(folder).failures]

    def test_the_headline_of_check_has_what_stays_in_clear(self, tmp_path: Path) -> None:
        town = ["east"] * 180 + ["west"] * 20 + ["east"] * 20 + ["west"] * 80
        kept = {**people(200, 100), "town": town}
        described = release(kept, {"ill": FLIP}, keep=["town"]).planned
        assert described.level_with_clear_columns is not None
        assert described.level_with_clear_columns > described.together
        release(kept, {"ill": FLIP}, tmp_path / "out", keep=["town"])
        said = run("check", tmp_path / "out", code=3).splitlines()[0]
        assert (
            f"with the columns that stay in clear, leak at most {described.level_with_clear_columns:.6g} nats"
            in said
        )


def test_the_rest_is_dropped_by_one_option_and_estimated_from_the_folder(tmp_path: Path) -> None:
    data, out = tmp_path / "people.csv", tmp_path / "out"
    data.write_text(
        "id,ill,town\n" + "".join(f"{k},{'no' if k % 3 else 'yes'},t{k % 2}\n" for k in range(900))
    )
    command = [
        "release",
        data,
        "--column",
        "ill",
        "--epsilon",
        0.6,
        "--utility",
        "estimation-error",
    ]
    said = run(*command, "--drop-all", "-o", out)
    assert "Not released: id and town" in said
    assert "give one" in run(*command, "--drop-all", "--drop", "id", "--dry-run", code=2)
    told = json.loads(run("estimate", out, "--json"))
    assert [record["letter"] for record in told["estimates"]] == ["no", "yes"]
    released = pd.read_csv(out / "released.csv")
    by_hand = json.loads(
        run("estimate", out / "mechanisms" / "ill.json", "--data", out / "released.csv", "--column", "ill",
            "--json")
    )  # fmt: skip
    assert told["people"] == len(released) == 900
    assert told["estimates"] == by_hand["estimates"]
    assert "is not released" in run("estimate", out, "--column", "age", code=2)
    assert "leave out" in run("estimate", out, "--data", data, "--column", "ill", code=2)
    (out / "released.csv").write_text("ill\n" + "yes\n" * 900)
    assert "was changed since it was released" in run("estimate", out, code=2)


def test_an_estimate_is_from_no_changed_file_of_a_released_folder(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    for number in range(3):
        pd.DataFrame(people(60, 40)).to_parquet(data / f"f{number}.parquet")
    release(data, {"ill": FLIP}, out)
    assert json.loads(run("estimate", out, "--json"))["people"] == 300
    (file, other, *_) = sorted((out / "released").iterdir())
    content = file.read_bytes()
    pd.DataFrame(people(100, 0)).to_parquet(file)
    assert f"{file.name}: was changed since it was released" in run("estimate", out, code=2)
    file.write_bytes(content)
    (file.parent / "f9.parquet").write_bytes(content)
    assert "f9.parquet: was changed since it was released" in run("estimate", out, code=2)
    (file.parent / "f9.parquet").unlink()
    other.unlink()
    assert f"the released file 'released/{other.name}' is missing" in run("estimate", out, code=2)


def test_the_loss_and_a_low_rank_are_said_where_people_look(tmp_path: Path) -> None:
    # at 0.1 nats, guesses of four letters have one best answer: all frequencies but sums are lost
    counts = tmp_path / "counts.csv"
    counts.write_text(
        "letter,count\n" + "".join(f"{k},{n}\n" for k, n in enumerate([400, 300, 200, 100]))
    )
    asked = ["--epsilon", 0.1, "--utility", "absolute"]
    designed = run("design", "--prior", counts, *asked, "-o", tmp_path / "m.json")
    data = tmp_path / "data.csv"
    data.write_text("x\n" + "".join(f"{k}\n" * n for k, n in enumerate([400, 300, 200, 100])))
    released = run("release", data, "--column", "x", *asked, "-o", tmp_path / "out")
    applied = run("apply", tmp_path / "m.json", data, "--column", "x", "-o", tmp_path / "x.csv")
    page = (tmp_path / "out" / "report.md").read_text()
    run("report", tmp_path / "m.json", "-o", tmp_path / "m.md")
    for said in (designed, released, applied, page, (tmp_path / "m.md").read_text()):
        assert "4 values become" in said
        assert "cannot be estimated: to estimate them choose estimation-error" in said
    for said in (designed, released, applied, page):
        assert "releasing nothing" in said


def test_many_letters_take_a_number_of_steps_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    # what is looked up for each tuple of letters is looked up for all of them at once
    calls = []
    looked_up = indices_of

    def counted(*args: Any, **options: Any) -> list[int]:
        calls.append(args[1])
        return looked_up(*args, **options)

    monkeypatch.setattr(counts, "indices_of", counted)
    letters = [f"L{k}" for k in range(500)]
    found = counts.build_count_array(
        [((a, "x"), 2) for a in letters], [letters, ["x", "y"]], "it", InputError
    )
    assert found.sum() == 1_000
    assert len(calls) == 2  # one for each side


def test_after_normalise_nothing_is_said_of_sums(tmp_path: Path) -> None:
    matrix, prior = tmp_path / "m.csv", tmp_path / "prior.csv"
    matrix.write_text("x,no,yes\na,0.333,0.666\nb,0.666,0.333\n")
    prior.write_text("x,count\na,1\nb,1\n")
    said = run("audit", matrix, "--prior", prior, "--epsilon", 0.5, "--normalise")
    assert "The claim holds" in said
    assert "do not sum" not in said
