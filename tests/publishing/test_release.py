"""A folder of a release: what it claims by brute force, what check finds, and that it is whole or absent."""

import json
import math
import os
import shutil
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pmlopt import LDP, PML, Ledger, Mechanism, Prior, design, solve
from pmlopt.errors import FileFormatError, InputError, MechanismError, PrivacyError
from pmlopt.publishing import build_stated_prior, check, read_plan, release, write_release
from pmlopt.publishing.folder import digest_folder
from pmlopt.publishing.page import build_sections, render_pages
from pmlopt.releases import attribute_levels, compose_attributes, level_with_clear_column
from pmlopt.tables import CsvFormat

FLIP = Mechanism([[0.8, 0.2], [0.3, 0.7]], ["f", "m"], ["f", "m"])
BLUR = Mechanism([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], [1, 2, 3], [1, 2, 3])
TABLES: dict[Any, Any] = {"level": BLUR, "sex": FLIP}


def people(rows: int = 3_000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    level = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    sex = np.where(rng.random(rows) < 0.2 + 0.25 * level, "m", "f")
    town = np.where(rng.random(rows) < 0.3 + 0.2 * level, "east", "west")
    return pd.DataFrame({"id": np.arange(rows), "level": level + 1, "sex": sex, "town": town})


def test_levels_are_those_of_the_counts_of_the_data() -> None:
    """Which are held to lists of all sequences in releases/accounts/test_joint.py and test_beside.py."""
    data = people()
    draft = release(data, TABLES, keep=["town"], drop=["id"], exact_counts=True)
    counts = data.groupby(["level", "sex"]).size()
    known = attribute_levels({key: int(n) for key, n in counts.items()}, [BLUR, FLIP])
    assert draft.levels.together == pytest.approx(known.together, abs=1e-12)
    assert draft.levels.each == pytest.approx(known.each, abs=1e-12)
    assert draft.levels.together > max(draft.levels.each) > max(draft.levels.alone) - 1e-12
    pairs = [f"{level}{sex}" for level, sex in zip(data["level"], data["sex"], strict=True)]
    table = pd.crosstab(data["town"], pd.Series(pairs))
    both = compose_attributes([BLUR, FLIP])
    inputs: Any = both.inputs
    letters = [f"{level}{sex}" for level, sex in inputs]
    beside = level_with_clear_column(table[letters].to_numpy(), both.matrix)
    assert draft.planned.in_clear[0].with_release == pytest.approx(beside, abs=1e-12)


@pytest.fixture(scope="module")
def designed() -> Any:
    """The design for the stated levels of these people."""
    return solve(design(stated(people(), "level"), PML(0.4), "hamming"))


def stated(data: pd.DataFrame, column: str) -> Prior:
    counts: Any = data[column].value_counts().sort_index().to_dict()
    return build_stated_prior(counts)


def test_what_is_released_is_checked_from_the_folder_alone(tmp_path: Path, designed: Any) -> None:
    data, source, out = people(), tmp_path / "people.csv", tmp_path / "out"
    data.to_csv(source, index=False)
    designed.save(tmp_path / "level.json")
    parts: Any = {"level": tmp_path / "level.json", "sex": FLIP}
    draft = release(source, parts, out, drop=["id", "town"], total=1.5, seed=7)
    described = write_release(draft, tmp_path / "again", seed=7)
    written = pd.read_csv(out / "released.csv")
    assert list(written.columns) == ["level", "sex"]
    assert len(written) == described.rows == len(data)
    assert not failed(out)
    names = {claim.name: claim.holds for claim in check(out).parts}
    assert names["mechanisms/level.json"] is True
    assert names["fit"] is names["no raw rows"] is names["level together"] is True
    for file in ("released.csv", "report.md", "report.html", "release.json"):
        assert (out / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    told = json.loads((out / "release.json").read_text())["random"]
    assert "seed" in told
    assert "7" not in told
    saved = out / "mechanisms" / "level.json"
    saved.write_text(saved.read_text().replace('"epsilon": 0.4', '"epsilon": 0.3'))
    assert {"files", "mechanisms/level.json"} <= set(failed(out))


def test_a_large_mechanism_is_published_as_npz(
    tmp_path: Path, designed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A saved result and a bare matrix: what the folder claims is checked from either file."""
    monkeypatch.setattr("pmlopt.publishing.folder.MAX_JSON_ENTRIES", 5)
    release(
        people(), {"level": designed, "sex": FLIP}, tmp_path / "out", keep=[], drop=["id", "town"]
    )
    names = sorted(path.name for path in (tmp_path / "out" / "mechanisms").iterdir())
    assert names == ["level.npz", "sex.json"]
    assert failed(tmp_path / "out") == []


def test_a_tuple_of_columns_and_a_column_are_checked(tmp_path: Path) -> None:
    data = people(400)
    pairs = [(level, sex) for level in (1, 2, 3) for sex in ("f", "m")]
    matrix = 0.5 * np.eye(6) + 0.5 / 6
    tied = Mechanism(matrix, pairs, pairs)
    town = Mechanism(FLIP.matrix, ["east", "west"], ["e", "w"])
    out = tmp_path / "out"
    release(data, {("level", "sex"): tied, "town": town}, out, drop=["id"], seed=11)
    assert list(pd.read_csv(out / "released.csv").columns) == ["level", "sex", "town"]
    assert not failed(out)


def failed(out: Path) -> list[str]:
    """The claims that fail, but for the one that the draws are no test."""
    return [claim.name for claim in check(out).failures if claim.name != "random"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("release") / "out"
    release(
        people(), {"level": BLUR, "sex": FLIP}, out, keep=["town"], drop=["id"], total=3.0, seed=12
    )
    return out


def changed(folder: Path, target: Path, **values: Any) -> Path:
    """A copy of a folder with other values in its description."""
    shutil.copytree(folder, target)
    path = target / "release.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    return target


def test_a_description_that_says_less_is_found(folder: Path, tmp_path: Path) -> None:
    said: dict[str, dict[str, Any]] = {
        "level together": {"together": 0.1},
        "total": {"total": 0.1},
        "rows": {"rows": 17},
        "columns": {"kept": [], "in_clear": [], "dropped": ["id", "town"]},
        "in clear": {"in_clear": []},
        "report": {"title": "Another title"},
        "random": {"random": "dice"},
        "files": {"digests": {}},
    }
    for name, values in said.items():
        found = check(changed(folder, tmp_path / name, **values))
        assert name in [claim.name for claim in found.failures]


def test_copied_rows_other_labels_and_mechanisms_are_found(folder: Path, tmp_path: Path) -> None:
    data, raw = people(), tmp_path / "raw"
    shutil.copytree(folder, raw)
    written = pd.read_csv(raw / "released.csv")
    written.loc[:1999, ["level", "sex"]] = data.loc[:1999, ["level", "sex"]]
    written.to_csv(raw / "released.csv", index=False)
    assert {"files", "no raw rows"} <= {claim.name for claim in check(raw).failures}
    written.loc[0, "sex"] = "x"
    written.to_csv(raw / "released.csv", index=False)
    found = {claim.name: claim.detail for claim in check(raw).failures}
    assert "x is no output of the mechanism of sex" in found["labels"]
    Mechanism(np.eye(2), ["f", "m"], ["f", "m"]).save(raw / "mechanisms" / "sex.json")
    assert {"files", "level together"} <= {claim.name for claim in check(raw).failures}


@pytest.mark.parametrize("content", ["0.001 more", "{", ""])
def test_a_mechanism_that_is_none_any_more_is_a_claim_that_fails(
    content: str, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(folder, out)
    path = out / "mechanisms" / "sex.json"
    if content == "0.001 more":
        saved = json.loads(path.read_text())
        saved["matrix"][0][0] += 0.001
        content = json.dumps(saved)
    path.write_text(content)
    assert {"files", "mechanisms/sex.json"} <= set(failed(out))


def test_what_is_no_description_is_refused(folder: Path, tmp_path: Path) -> None:
    none: list[dict[str, Any]] = [
        {"format": "other"}, {"people": [1]}, {"data": "../people.csv"}, {"x": 1}, {"people": [2**70] * 6},
        {"people": [0] * 6}, {"rows": -1}, {"together": "nan"}, {"letters": []},
    ]  # fmt: skip
    for place, values in enumerate(none):
        with pytest.raises(FileFormatError):
            check(changed(folder, tmp_path / str(place), **values))


FEW: Any = {"drop": ["id", "level", "town"]}
"""What becomes of the columns where the sex alone is released."""


def test_what_cannot_be_released_is_named(tmp_path: Path) -> None:
    flip: Any = {"sex": FLIP}
    data, out = people(50), tmp_path / "out"
    cases: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (InputError, "nothing is planned for the columns 'id', 'town'", flip, {"keep": ["level"]}),
        (
            InputError,
            "'sex' is named 2 times",
            flip,
            {"keep": ["level", "sex"], "drop": ["id", "town"]},
        ),
        (InputError, "'age'", flip, {"keep": ["age"]}),
        (InputError, "nothing is released", {}, {"drop": ["id"]}),
        (PrivacyError, r"the total is 0\.1", flip, {**FEW, "total": 0.1}),
        *(
            (InputError, "the total", flip, {**FEW, "total": wrong})
            for wrong in (math.nan, math.inf, -1.0)
        ),
        (MechanismError, "not an input", {"level": FLIP}, {"drop": ["id", "sex", "town"]}),
        (InputError, "never in the law", flip, {**FEW, "law": {"sex": ["f", "f"]}}),
    ]
    for error, words, mechanisms, options in cases:
        with pytest.raises(error, match=words):
            release(data, mechanisms, out, **options)
    assert not list(tmp_path.iterdir())
    out.mkdir()
    with pytest.raises(FileFormatError, match="is there already"):
        release(data, flip, out, **FEW)


def test_the_law_of_other_people_is_that_of_the_levels_and_nothing_follows_for_the_rows(
    tmp_path: Path,
) -> None:
    draft = release(people(500), {"sex": FLIP}, law={"sex": ["f"] * 90 + ["m"] * 10}, **FEW)
    assert draft.levels.together == pytest.approx(
        math.log(0.7 / (0.9 * 0.2 + 0.1 * 0.7)), abs=1e-12
    )
    write_release(draft, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "release.json").read_text())["same_people"] is False
    found = {claim.name: claim.holds for claim in check(tmp_path / "out").parts}
    assert found["fit"] is found["no raw rows"] is None
    assert not check(tmp_path / "out").failures


def test_a_failure_leaves_nothing_and_of_two_writers_one_makes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = release(people(20), {"sex": FLIP}, **FEW)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def other(
        *told: Any,
    ) -> tuple[bytes, bytes]:  # another writer comes meanwhile, and draws nothing
        monkeypatch.setattr("pmlopt.core.files.disk.LOCK_TIMEOUT_SECONDS", 0.0)
        monkeypatch.setattr("pmlopt.publishing.releasing.apply_columns", full)
        with pytest.raises(FileFormatError, match="another process is writing it"):
            write_release(draft, tmp_path / "out", seed=1)
        monkeypatch.undo()
        return render_pages(*told)

    monkeypatch.setattr("pmlopt.publishing.releasing.render_pages", full)
    with pytest.raises(FileFormatError, match="No space left"):
        write_release(draft, tmp_path / "out", seed=2)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("pmlopt.publishing.releasing.render_pages", other)
    write_release(draft, tmp_path / "out", seed=2)
    monkeypatch.setattr("pmlopt.publishing.releasing.apply_columns", full)
    with pytest.raises(FileFormatError, match="is there already"):
        write_release(draft, tmp_path / "out", seed=3)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not failed(tmp_path / "out")


def ledger_of(data: pd.DataFrame, path: Path, total: float) -> None:
    law = data.groupby(["level", "sex"]).size()
    Ledger(Prior.from_counts({key: int(n) for key, n in law.items()}), len(data), total).save(path)


def test_a_ledger_records_what_is_released_of_the_pair(tmp_path: Path) -> None:
    data, book = people(), tmp_path / "ledger.npz"
    data["who"] = np.arange(len(data))[::-1]
    ledger_of(data, book, 1.5)
    draft = release(
        data,
        TABLES,
        drop=["id", "town", "who"],
        ledger=book,
        person_column="who",
        exact_counts=True,
        keep_order=True,
    )
    write_release(draft, tmp_path / "out")
    released = pd.read_csv(tmp_path / "out" / "released.csv")
    found, rows = Ledger.load(book), data.who.tolist()
    assert found.releases == 1
    law: Any = found.initial
    for row in range(0, len(data), 500):
        after = np.array([
            BLUR.matrix[BLUR.inputs.index(level), BLUR.outputs.index(int(released["level"].iloc[row]))]
            * FLIP.matrix[FLIP.inputs.index(sex), FLIP.outputs.index(str(released["sex"].iloc[row]))]
            for level, sex in law.labels
        ])  # fmt: skip
        assert found.density(rows[row]) == pytest.approx(np.log(after / (law.pmf @ after)))
    assert found.level <= draft.levels.together + 1e-12


def test_a_ledger_that_does_not_allow_it_keeps_it_back(tmp_path: Path) -> None:
    data, book = people(), tmp_path / "ledger.npz"
    ledger_of(data, book, 0.5)
    before = book.read_bytes()
    draft = release(data, TABLES, drop=["id", "town"], ledger=book, exact_counts=True)
    found = draft.check_ledger()
    assert found is not None
    assert not found[1]
    assert found[2] == pytest.approx(draft.levels.together)
    with pytest.raises(PrivacyError, match=r"over the total of 0\.5"):
        write_release(draft, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["ledger.npz"]
    assert book.read_bytes() == before


class TestPlans:
    def test_a_plan_designs_for_the_law_of_each_column(self, tmp_path: Path) -> None:
        data = people()
        (tmp_path / "plan.toml").write_text(
            'total = 2\nkeep = ["town"]\ndrop = ["id"]\n'
            '[release.level]\nepsilon = 0.4\nutility = "absolute"\n'
            '[release.sex]\nprivacy = { name = "ldp", epsilon = 0.5 }\nutility = "hamming"\n'
            '[release.both]\ncolumns = ["level", "sex"]\nepsilon = 0.4\n'
            'confidence_delta = 0.05\nutility = "hamming"\n'
        )
        plan = read_plan(tmp_path / "plan.toml")
        assert (plan.total, plan.keep, plan.drop) == (2.0, ("town",), ("id",))
        made: Any = plan.make_mechanisms(data)
        cells = data.groupby(["level", "sex"]).size()  # which are rounded to tens
        rounded = ((cells + 5) // 10 * 10).clip(lower=10)
        plans: Any = (("level", PML(0.4), "absolute"), ("sex", LDP(0.5), "hamming"))
        for column, privacy, utility in plans:
            prior = Prior.from_counts(rounded.groupby(column).sum())
            assert made[(column,)].certificate.listed_prior.probabilities == pytest.approx(
                prior.probabilities
            )
            alone = solve(design(prior, privacy, utility))
            assert made[(column,)].value == pytest.approx(alone.value, abs=1e-9)
        assert len(made["level", "sex"].mechanism.inputs) == 6
        assert made["level", "sex"].certificate.privacy.over.delta == 0.05

    @pytest.mark.parametrize(
        ("text", "match"),
        [
            ("[release.sex]\nepsilon = 0.4\n", "release.sex: give a utility"),
            ('[release.sex]\nutility = "hamming"\n', "epsilon or privacy"),
            (
                '[release.sex]\nepsilon = 1\nutility = "hamming"\nmechanism = "m.csv"\n',
                "a mechanism is given",
            ),
            ('[release.sex]\nepsilon = -1\nutility = "hamming"\n', "epsilon"),
            ('[release.sex]\nepsilom = 1\nutility = "hamming"\n', "epsilom"),
            ("total = -1\n[release.sex]\n", "total"),
            ("kepp = []\n[release.sex]\n", "kepp"),
            ("keep = []\n", "release"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path: Path, text: str, match: str) -> None:
        (tmp_path / "plan.toml").write_text(text)
        with pytest.raises(InputError, match=match):
            read_plan(tmp_path / "plan.toml").make_mechanisms(people(50))


def test_rows_with_missing_cells_are_left_out_of_the_law_too(tmp_path: Path) -> None:
    data = {"sex": ["f", "m", None, "m"] * 5, "level": [1, 2, 3, None] * 5}
    (tmp_path / "plan.toml").write_text(
        "".join(f'[release.{name}]\nepsilon = 0.3\nutility = "hamming"\n' for name in data)
    )
    made: Any = read_plan(tmp_path / "plan.toml").make_mechanisms(data, "drop")
    assert made[("level",)].mechanism.inputs == (1, 2)
    draft = release(data, made, drop_missing=True)
    assert max(draft.levels.alone) <= 0.3
    described = write_release(draft, tmp_path / "out")
    assert (described.rows, described.left_out) == (
        10,
        10,
    )  # a multiple of ten: it is stated as it is
    assert not failed(tmp_path / "out")


def digested(folder: Path, **values: Any) -> Path:
    """The folder, with other values in its description and the digests of what is there."""
    path = folder / "release.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "digests": digest_folder(folder), **values}))
    return folder


def test_what_is_added_to_the_folder_or_the_file_is_found(folder: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for copy in (one, two):
        shutil.copytree(folder, copy)
    (one / "raw.csv").write_text("raw")
    assert "files" in failed(digested(one))
    (one / "raw.csv").unlink()
    (one / "more").symlink_to(tmp_path)
    assert "files" in failed(one)
    written = pd.read_csv(two / "released.csv")
    written["copy"] = people()["level"]
    written.to_csv(two / "released.csv", index=False)
    assert "columns" in failed(digested(two))
    assert "in clear" in failed(digested(two, kept=["town", "copy"]))
    report = two / "report.md"
    report.write_text(report.read_text().replace("nats", "bits"))
    assert "report" in failed(digested(two))
    (two / "released.csv").unlink()
    os.mkfifo(two / "released.csv")
    with pytest.raises(FileFormatError, match="no file of its own"):
        check(two)


def test_a_total_counts_what_stays_in_clear(tmp_path: Path) -> None:
    data = people(60)
    draft = release(data, {"sex": FLIP}, keep=["id"], drop=["level", "town"], exact_counts=True)
    every = draft.planned.level_with_clear_columns
    assert every is not None
    assert every == pytest.approx(
        -math.log(data["sex"].value_counts(normalize=True).min()), abs=1e-12
    )
    between = (draft.levels.together + every) / 2
    with pytest.raises(PrivacyError, match="with what stays in clear"):
        release(data, {"sex": FLIP}, tmp_path / "out", keep=["id"], drop=["level", "town"], total=between,
                exact_counts=True)  # fmt: skip
    told = "".join(line for one in build_sections(draft.planned, draft.made) for line in one.lines)
    assert "Every row has a unique value of id, which identifies one person." in told


def test_outcomes_that_leave_one_value_together_are_warned_of() -> None:
    first = Mechanism([[0.0, 1.0], [0.5, 0.5], [0.5, 0.5]], list("xyz"), ["not x", "any"])
    second = Mechanism([[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]], list("xyz"), ["not y", "any"])
    data = {"a": list("xyz") * 5, "b": list("xyz") * 5}  # equal
    draft = release(data, {"a": first, "b": second})
    assert draft.levels.together == pytest.approx(math.log(3), abs=1e-12)
    told = [
        line
        for one in build_sections(draft.planned, draft.made)
        if one.kind == "warning"
        for line in one.lines
    ]
    assert "Some outcomes of all columns together leave a single value of a." in told
    assert "Some outcomes of all columns together leave a single combination of values." in told


def test_outputs_without_names_are_no_letters_of_the_column(tmp_path: Path) -> None:
    data = people(300)
    coded = solve(design(stated(data, "level"), PML(0.4), "mutual-information"))
    release(data, {"level": coded}, tmp_path / "out", drop=["id", "sex", "town"])
    assert set(pd.read_csv(tmp_path / "out" / "released.csv")["level"]) <= {
        f"y{k}" for k in range(9)
    }
    assert not check(tmp_path / "out").failures


def test_other_delimiters_and_names_that_clash(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("s~t\n" + "f~a;b\nm~c,d\n" * 30)
    release(tmp_path / "people.csv", {"s": FLIP}, tmp_path / "out", keep=["t"], form=CsvFormat("~"))
    assert not check(tmp_path / "out").failures
    pairs = Mechanism([[1.0]] * 4, [(a, b) for a in "fm" for b in "fm"], ["one"])
    data = {"s": ["f", "m"], "t": ["m", "f"], "s+t": [1, 2]}
    with pytest.raises(InputError, match="have one name"):
        release(data, {("s", "t"): pairs}, keep=["s+t"])


def test_the_report_states_how_near_estimates_will_be(tmp_path: Path) -> None:
    flip = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["n", "y"], ["n", "y"])
    release({"ill": ["n", "y"] * 500}, {"ill": flip}, tmp_path / "out")
    # two score intervals at once (Bonferroni); a share has the deviation 1 / sqrt(n) at equal shares
    z = NormalDist().inv_cdf(1 - 0.05 / 4)
    width = z / math.sqrt(1_000 + z**2)
    wanted = f"within about {width:.2g}: all intervals hold at once with a confidence of about 0.95"
    assert wanted in (tmp_path / "out" / "report.md").read_text("utf-8")
    # of a mechanism that does not determine the shares nothing is stated
    merged = Mechanism([[1.0], [1.0]], ["n", "y"], ["n or y"])
    release({"ill": ["n", "y"] * 500}, {"ill": merged}, tmp_path / "merged")
    assert "within about" not in (tmp_path / "merged" / "report.md").read_text("utf-8")
