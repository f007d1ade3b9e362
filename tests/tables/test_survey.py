"""Files of SPSS, Stata and SAS through a release, beside pyreadstat alone."""

from __future__ import annotations

import datetime
import gzip
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run

from pmlopt import LDP, Mechanism, Prior, design, solve
from pmlopt.errors import FileFormatError, InputError, LabelWarning
from pmlopt.releases.rows.applying import apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import CsvFormat, column_counts, open_table
from pmlopt.tables.writing import write_table

pd = pytest.importorskip("pandas")
pyreadstat = pytest.importorskip("pyreadstat")

ROWS = 60
IRISES = Path(__file__).parent / "survey_files" / "iris.sav"
SPECIES = {1.0: "setosa", 2.0: "versicolor", 3.0: "virginica"}
LABELS = {1.0: "never", 2.0: "sometimes", 3.0: "daily", 9.0: "refused"}
OUTPUT_LABELS = {1.0: "never", 2.0: "sometimes", 3.0: "daily"}  # no output is refused


def people() -> Any:
    """Answers with a declared missing value, text, dates as seconds, and weights."""
    return pd.DataFrame({
        "q": [1.0, 2.0, 3.0] * 18 + [9.0] * 6,
        "region": ["north", "south", "äst"] * 20,
        "born": np.linspace(1.2e10, 1.3e10, ROWS).round(),
        "w": np.linspace(0.5, 2.0, ROWS),
    })  # fmt: skip


def write_spss(path: Path, **changes: Any) -> Path:
    pyreadstat.write_sav(
        people().assign(**changes), str(path), compress=path.suffix == ".zsav",
        column_labels={"q": "Do you smoke?"}, variable_value_labels={"q": LABELS},
        missing_ranges={"q": [9.0]}, variable_measure={"q": "ordinal"},
        variable_format={"born": "DATE11", "q": "F8.0"},
    )  # fmt: skip
    return path


def keep_all(
    data: Path, target: Path, *, column: str = "q", outputs: tuple[Any, ...] = (1, 2, 3)
) -> None:
    """Release a column as it is, and keep the others, without rows whose cell is missing."""
    same = Mechanism(np.eye(len(outputs)), list(outputs), list(outputs))
    with open_table(data) as table:
        apply_columns(
            table, [ColumnRelease(same, (column,))], target, drop_missing=True, keep_order=True
        )


@pytest.mark.parametrize("ending", [".sav", ".zsav"])
def test_a_file_of_spss_comes_back_with_labels_formats_and_cells(
    tmp_path: Path, ending: str
) -> None:
    data = write_spss(tmp_path / f"a{ending}")
    keep_all(data, tmp_path / f"b{ending}")
    (_, before), (after, found) = (
        pyreadstat.read_sav(str(path), user_missing=True, disable_datetime_conversion=True)
        for path in (data, tmp_path / f"b{ending}")
    )
    expected = people().iloc[:54]
    assert after["q"].tolist() == expected["q"].tolist()
    for name in ("region", "born", "w"):
        assert after[name].tolist() == expected[name].tolist()
        assert found.original_variable_types[name] == before.original_variable_types[name]
    assert found.variable_value_labels == {"q": OUTPUT_LABELS}
    assert found.column_names_to_labels["q"] == "Do you smoke? (randomized)"
    assert found.variable_measure["q"] == "ordinal"


def test_codes_are_letters_and_declared_values_are_missing(tmp_path: Path) -> None:
    data = write_spss(tmp_path / "a.sav")
    with pytest.raises(InputError, match="row 55: the cell of 'q' is missing; 6 of 60 rows"):
        column_counts(data, "q")
    assert column_counts(data, "q", missing="drop") == {1: 18, 2: 18, 3: 18}
    assert all(type(label) is int for label in column_counts(data, "q", missing="drop"))


def test_values_in_a_declared_range_stay_in_a_column_that_is_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0] * 5, "b": [5.0, 97.0, 98.0, math.nan, 1.5] * 2})
    ranges = {"b": [{"lo": 97.0, "hi": 99.0}]}
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), missing_ranges=ranges)
    keep_all(tmp_path / "a.sav", tmp_path / "b.sav", column="a", outputs=(1, 2))
    after, found = pyreadstat.read_sav(str(tmp_path / "b.sav"), user_missing=True)
    assert after["b"].tolist()[:3] == [5.0, 97.0, 98.0]
    assert math.isnan(after["b"][3])
    assert found.missing_ranges == ranges
    assert column_counts(tmp_path / "a.sav", "b", missing="drop") == {5: 2, 1.5: 2}


def test_statas_kinds_of_missing_values_come_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2] * 4, "b": [10, "a", None, "z"] * 2}).astype({"a": "int32"})
    pyreadstat.write_dta(
        frame, str(tmp_path / "a.dta"), missing_user_values={"b": ["a", "z"]},
        variable_value_labels={"a": {1: "yes", 2: "no"}},
    )  # fmt: skip
    keep_all(tmp_path / "a.dta", tmp_path / "b.dta", column="a", outputs=(1, 2))
    # as lists: in a frame pyreadstat has 0 for a missing value beside the kinds
    after, found = pyreadstat.read_dta(
        str(tmp_path / "b.dta"), user_missing=True, output_format="dict"
    )
    assert list(after["b"]) == [10, "a", None, "z"] * 2
    assert found.variable_value_labels["a"] == {1: "yes", 2: "no"}
    assert found.readstat_variable_types["a"] == "int32"
    assert column_counts(tmp_path / "a.dta", "b", missing="drop") == {10: 2}
    keep_all(tmp_path / "a.dta", tmp_path / "b.csv", column="a", outputs=(1, 2))
    assert (tmp_path / "b.csv").read_text().split()[1:5] == ["1,10", "2,", "1,", "2,"]


@pytest.mark.parametrize("version", [114, 117, 118])
def test_files_of_pandas_for_stata_are_read(tmp_path: Path, version: Any) -> None:
    pd.DataFrame({"sex": ["m", "f", "f"]}).to_stata(tmp_path / "a.dta", version=version)
    assert column_counts(tmp_path / "a.dta", "sex") == {"f": 2, "m": 1}


def test_a_transport_file_of_sas_is_read_and_written(tmp_path: Path) -> None:
    pyreadstat.write_xport(people(), str(tmp_path / "a.xpt"))
    keep_all(tmp_path / "a.xpt", tmp_path / "b.xpt", outputs=(1, 2, 3, 9))
    after, _ = pyreadstat.read_xport(str(tmp_path / "b.xpt"))
    assert after["q"].tolist() == people()["q"].tolist()
    assert after["w"].tolist() == people()["w"].tolist()


def test_labels_are_letters_in_the_order_of_their_codes(tmp_path: Path) -> None:
    data = write_spss(tmp_path / "a.sav")
    counts = column_counts(data, "q", missing="letter", form=CsvFormat(labels=True))
    assert list(counts.items()) == [("never", 18), ("sometimes", 18), ("daily", 18), ("refused", 6)]
    assert list(column_counts(data, "region", form=CsvFormat(labels=True))) == [
        "north",
        "south",
        "äst",
    ]


def test_codes_of_one_label_stay_apart_and_are_no_letters_by_label(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0] * 5})
    labels = {"a": {1: "yes", 8: "refused", 9: "refused", 3: "other"}}
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_value_labels=labels)
    said = r"no label for 2; no row with 3 \(other\); the label 'refused' for 8 and 9, which stay apart"
    with pytest.warns(LabelWarning, match=said):
        assert column_counts(tmp_path / "a.sav", "a") == {1: 5, 2: 5, 8: 5, 9: 5}
    with pytest.raises(InputError, match="'refused' for 8 and 9, which would be one letter"):
        column_counts(tmp_path / "a.sav", "a", form=CsvFormat(labels=True))


def test_a_code_whose_text_is_the_label_of_another_is_no_letter_by_label(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0] * 5})
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_value_labels={"a": {1: "2"}})
    with pytest.raises(InputError, match="'2' for 1 and 2"):
        column_counts(tmp_path / "a.sav", "a", form=CsvFormat(labels=True))


def test_missing_values_are_counted_and_lettered_by_kind(tmp_path: Path) -> None:
    frame = pd.DataFrame({"b": [10, "a", None, "z", 20, "a"] * 2})
    pyreadstat.write_dta(
        frame, str(tmp_path / "a.dta"), missing_user_values={"b": ["a", "z"]},
        variable_value_labels={"b": {"a": "refused"}},
    )  # fmt: skip
    with pytest.raises(InputError, match=r"8 of 12 .* \(no kind: 2, .a \(refused\): 4 and .z: 2\)"):
        column_counts(tmp_path / "a.dta", "b")
    with pytest.warns(LabelWarning, match=r"no label for 10, \.z and 20"):
        counts = column_counts(tmp_path / "a.dta", "b", missing="letter")
    assert list(counts.items()) == [(10, 2), (20, 2), ("", 2), (".a", 4), (".z", 2)]
    letters = tuple(counts)
    keep_all(tmp_path / "a.dta", tmp_path / "b.dta", column="b", outputs=letters)
    after, found = pyreadstat.read_dta(
        str(tmp_path / "b.dta"), user_missing=True, output_format="dict"
    )
    assert list(after["b"]) == list(frame["b"])
    assert found.variable_value_labels == {"b": {"a": "refused"}}


@pytest.mark.parametrize("ending", [".sav", ".dta", ".xpt"])
def test_dates_are_letters_and_are_written_as_dates(tmp_path: Path, ending: str) -> None:
    days = [datetime.date(1999, 12, 31), datetime.date(2020, 2, 29)] * 5
    data, target = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    write = {".sav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}[ending]
    getattr(pyreadstat, write)(pd.DataFrame({"day": days, "kept": days[::-1]}), str(data))
    counts = column_counts(data, "day")
    assert list(counts.items()) == [("1999-12-31", 5), ("2020-02-29", 5)]
    keep_all(data, target, column="day", outputs=tuple(counts))
    read = {".sav": "read_sav", ".dta": "read_dta", ".xpt": "read_xport"}[ending]
    after, _ = getattr(pyreadstat, read)(str(target))
    assert after["day"].tolist() == days
    assert after["kept"].tolist() == days[::-1]
    keep_all(data, tmp_path / "b.csv", column="day", outputs=tuple(counts))
    assert (tmp_path / "b.csv").read_text().split()[1] == "1999-12-31,2020-02-29"


def test_dates_of_one_program_are_dates_of_another(tmp_path: Path) -> None:
    days = [datetime.date(1582, 10, 20), datetime.date(2020, 2, 29)] * 5
    moments = [datetime.datetime(1999, 12, 31, 23, 59, 59, 500_000)] * 10
    frame = pd.DataFrame({"a": [1.0, 2.0] * 5, "day": days, "moment": moments})
    pyreadstat.write_xport(frame, str(tmp_path / "a.xpt"))
    for ending, read in ((".sav", pyreadstat.read_sav), (".dta", pyreadstat.read_dta)):
        target = tmp_path / f"b{ending}"
        keep_all(tmp_path / "a.xpt", target, column="a", outputs=(1, 2))
        after, _ = read(str(target))
        assert after["day"].tolist() == days
        assert after["moment"].tolist() == moments


def test_blank_labels_are_none(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0] * 5})
    labels = {"a": {1: " ", 2: "yes"}}
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_value_labels=labels)
    with pytest.warns(LabelWarning, match="no label for 1"):
        found = column_counts(tmp_path / "a.sav", "a", form=CsvFormat(labels=True))
    assert found == {"1": 5, "yes": 5}


def test_names_that_differ_by_case_go_to_stata_only(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"a": [1, 2], "A": ["x", "y"]}
    for ending in (".sav", ".zsav", ".xpt"):
        with pytest.raises(InputError, match="'a' and 'A', whose names differ by case only"):
            write_table(tmp_path / f"a{ending}", columns)
    write_table(tmp_path / "a.dta", columns)
    after, _ = pyreadstat.read_dta(str(tmp_path / "a.dta"))
    assert after.to_dict("list") == columns


def test_labels_that_spss_cuts_are_refused(tmp_path: Path) -> None:
    labels = {"a": {1: "x" * 120, 2: "x" * 121}}
    frame = pd.DataFrame({"a": [1, 2] * 5, "b": [1, 2] * 5}).astype("int32")
    pyreadstat.write_dta(frame, str(tmp_path / "a.dta"), variable_value_labels=labels)
    keep_all(tmp_path / "a.dta", tmp_path / "b.dta", column="b", outputs=(1, 2))
    assert pyreadstat.read_dta(str(tmp_path / "b.dta"))[1].variable_value_labels == labels
    with pytest.raises(InputError, match="more than 120 bytes"):
        keep_all(tmp_path / "a.dta", tmp_path / "b.sav", column="b", outputs=(1, 2))
    assert not (tmp_path / "b.sav").exists()


@pytest.mark.parametrize(("ending", "text"), [(".sav", "a "), (".xpt", "a "), (".dta", "a\0b")])
def test_text_that_would_come_back_as_another_is_refused(
    tmp_path: Path, ending: str, text: str
) -> None:
    with pytest.raises(FileFormatError, match="cuts off"):
        write_table(tmp_path / f"a{ending}", {"a": ["a", text]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_numbers_that_no_reader_takes_back_are_refused(tmp_path: Path, ending: str) -> None:
    with pytest.raises(FileFormatError, match="cannot hold"):
        write_table(tmp_path / f"a{ending}", {"a": [0.5, math.inf]})
    assert not list(tmp_path.iterdir())


def release_irises(folder: Path) -> Path:
    """Release the species of an example of haven, a package of R, and return the released file."""
    how = ["--column", "Species", "--keep", "Sepal.Length", "--drop-all", "--epsilon", "1"]
    shown = run("release", str(IRISES), *how, "--utility", "hamming", "-o", str(folder))
    assert "setosa)" in shown
    return folder / "released.sav"


def test_a_release_of_the_shell_is_checked_and_estimated(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    released = release_irises(folder)
    assert run("check", str(folder), code=3)
    shown = run("estimate", str(folder))
    assert "every row counts once; name a column of weights by --weight-column" in shown
    assert "--weight" not in run("estimate", str(folder), "--weight-column", "Sepal.Length")
    assert all(f"{code:g} ({name})" in shown for code, name in SPECIES.items())
    assert "1 (setosa)" in (folder / "report.md").read_text()
    _, found = pyreadstat.read_sav(str(released))
    assert found.variable_value_labels == {"Species": SPECIES}
    assert found.column_names_to_labels["Species"] == "Species (randomized, 1 nats)"


def test_a_plan_takes_labels_as_letters(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'labels = true\nkeep = ["region"]\ndrop = ["born", "w"]\n'
        '[release.q]\nepsilon = 1.0\nutility = "hamming"\n'
    )
    data = write_spss(tmp_path / "a.sav", q=np.repeat([1.0, 2.0, 3.0], 20))
    run("release", str(data), "--plan", str(plan), "-o", str(tmp_path / "out"))
    after, found = pyreadstat.read_sav(str(tmp_path / "out" / "released.sav"))
    assert set(after["q"]) <= {"never", "sometimes", "daily"}
    assert found.variable_value_labels == {}


@pytest.mark.skipif(shutil.which("pspp") is None, reason="PSPP is not installed")
def test_pspp_shows_the_labels_of_a_release(tmp_path: Path) -> None:
    released = release_irises(tmp_path / "out")
    program = tmp_path / "a.sps"
    program.write_text(f"GET FILE='{released}'.\nFREQUENCIES Species.\n")
    shown = subprocess.run(["pspp", program], capture_output=True, text=True, check=True).stdout
    assert all(label in shown for label in ("setosa", "virginica", "(randomized, 1 nats)"))


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_a_file_that_is_cut_is_refused(tmp_path: Path, ending: str) -> None:
    whole = tmp_path / f"a{ending}"
    write_table(whole, {"a": [1, 2] * 500})
    cut = tmp_path / f"b{ending}"
    cut.write_bytes(whole.read_bytes()[:-1500])
    with pytest.raises(FileFormatError, match="whole"), open_table(cut) as table:
        list(table.batches())


def test_a_packed_file_is_to_be_unpacked(tmp_path: Path) -> None:
    data = write_spss(tmp_path / "a.sav")
    (tmp_path / "a.sav.gz").write_bytes(gzip.compress(data.read_bytes()))
    with pytest.raises(FileFormatError, match="not packed: write it there first"):
        open_table(tmp_path / "a.sav.gz")


def test_a_process_that_ends_is_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_spss(tmp_path / "a.sav")
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    with pytest.raises(FileFormatError, match="the process that reads it ended"):
        open_table(data)


def test_what_a_format_cannot_hold_is_refused_before_a_row_is_drawn(tmp_path: Path) -> None:
    for columns, reason in (
        ({"b": [1, 2], "a b": [1, 2]}, "cannot have a column 'a b'"),
        ({"b": [1, 2], "ALL": [1, 2]}, "cannot have a column 'ALL'"),
        ({"a": [2**53 + 2, 1]}, "rounds"),
        ({"a": [True, False]}, "has numbers, text and dates"),
    ):
        with pytest.raises(InputError, match=reason):
            write_table(tmp_path / "a.sav", columns)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [1e-80, 1e76, math.inf])
def test_numbers_outside_the_range_of_sas_are_refused(tmp_path: Path, number: float) -> None:
    with pytest.raises(FileFormatError, match="cannot hold"):
        write_table(tmp_path / "a.xpt", {"a": [0.5, number]})
    assert not list(tmp_path.iterdir())


def test_a_long_label_goes_to_no_file_that_cuts_it(tmp_path: Path) -> None:
    data = tmp_path / "a.sav"
    labels = {"q": "q" * 250, "w": "w" * 90}
    pyreadstat.write_sav(people(), str(data), column_labels=labels)
    keep_all(data, tmp_path / "b.sav", outputs=(1, 2, 3, 9))
    found = pyreadstat.read_sav(str(tmp_path / "b.sav"))[1].column_names_to_labels
    assert (found["q"], found["w"]) == ("q (randomized)", "w" * 90)
    with pytest.raises(InputError, match="more than 80 bytes"):
        keep_all(data, tmp_path / "b.dta", outputs=(1, 2, 3, 9))


def test_letters_of_a_design_are_those_of_the_released_file(tmp_path: Path) -> None:
    data = write_spss(tmp_path / "a.sav")
    counts = column_counts(data, "q", missing="drop")
    mechanism = solve(design(Prior.from_counts(counts), LDP(1.0), "hamming")).mechanism
    with open_table(data) as table:
        apply_columns(
            table, [ColumnRelease(mechanism, ("q",))], tmp_path / "b.sav", drop_missing=True, seed=1
        )
    after, found = pyreadstat.read_sav(str(tmp_path / "b.sav"))
    assert set(after["q"]) <= {1.0, 2.0, 3.0}
    assert found.variable_value_labels == {"q": OUTPUT_LABELS}
