"""Sixty files of SPSS, Stata and SAS that PSPP, R, pandas and pyreadstat wrote: letters, and what comes back.

`survey_files` has those of PSPP and R, with the scripts that wrote them.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import Mechanism
from pmlopt.core.files.file_kinds import SURVEY_KINDS
from pmlopt.core.frames import MissingKind
from pmlopt.errors import FileFormatError
from pmlopt.releases.rows.applying import apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import open_table
from pmlopt.tables.survey_process import READERS

pd = pytest.importorskip("pandas")
pyreadstat = pytest.importorskip("pyreadstat")

FOLDER = Path(__file__).parent / "survey_files"
OURS = sorted(one.name for one in FOLDER.iterdir() if one.suffix in READERS and one.stem != "iris")

TEXT = ["a", "b", "äst", None, "b", "a"]
WEIGHTS = [0.5, 1.25, 2, 1, 1, 3]
DAYS = ["1999-12-31", "2020-02-29", "1960-01-01", None, "2020-02-29", "1582-10-20"]
MOMENTS = ["2020-02-29 13:14:15", None, *["1999-12-31 23:59:59"] * 4]
CLOCKS = ["01:02:03.500000", "23:59:59", "25:00:00", None, "00:00:00", "12:00:00"]
REFUSED = MissingKind(9, "9 (refused)")

SPSS: dict[str, Sequence[Any]] = {
    "smokes": [1, 2, 3, REFUSED, None, 2],
    "weight": WEIGHTS, "text": TEXT, "day": DAYS, "moment": MOMENTS,
    "sex": ["m", "f", MissingKind("x", "x"), "m", "f", "m"],
    "twice": [1, 2, 8, 1, 2, 8],
}  # fmt: skip
PSPP = SPSS | {
    "moment": ["2020-02-29 13:14:15.250000", *MOMENTS[1:]],
    "clock": CLOCKS,
    "range": [1, MissingKind(97, "97"), MissingKind(98, "98"), 1, 2, None],
}
STATA: dict[str, Sequence[Any]] = {
    "smokes": [1, 2, 3, MissingKind(".a", ".a (refused)"), None, MissingKind(".z", ".z")],
    "weight": WEIGHTS, "text": TEXT, "day": DAYS, "moment": MOMENTS, "twice": [1, 2, 8, 1, 2, 8],
}  # fmt: skip
# haven writes UTF-8 into files whose text Stata reads in its old code page
OLD_STATA = STATA | {"text": ["a", "b", "Ã¤st", None, "b", "a"]}
SAS = {
    "smokes": [1, 2, 3, 9, None, 2],
    "weight": WEIGHTS, "text": TEXT, "day": DAYS, "moment": MOMENTS,
}  # fmt: skip
FOREIGN: dict[str, Sequence[Any]] = {"smokes": [1, 2, 3, None, None, 2], "weight": WEIGHTS}
# R's NA in a column of whole numbers is .z for Stata from version 8 on
LATE_FOREIGN = FOREIGN | {"smokes": [1, 2, 3, *[MissingKind(".z", ".z")] * 2, 2]}
LOWEST = PSPP | {"smokes": [MissingKind(1, "1 (never)"), *PSPP["smokes"][1:]]}
# pyreadstat tells no kinds of missing values of portable files, and no letters but those of ASCII
PORTABLE = PSPP | {
    "smokes": [1, 2, 3, None, None, 2], "sex": ["m", "f", None, "m", "f", "m"],
    "range": [1, 97, 98, 1, 2, None], "text": None,
}  # fmt: skip

EXPECTED: Mapping[str, Mapping[str, Any]] = {
    "pspp-lowest.sav": LOWEST, "pspp.por": PORTABLE,
    **{name: PSPP for name in OURS if name.startswith("pspp-")  and "lowest" not in name},
    "haven-byte.sav": SPSS, "haven-none.sav": SPSS, "haven-zsav.zsav": SPSS,
    **{f"haven-{version}.dta": OLD_STATA for version in (8, 10, 11, 12, 13)},
    "haven-14.dta": STATA, "haven-15.dta": STATA,
    "haven-v5.xpt": SAS, "haven-v8.xpt": SAS, "haven.sas7bdat": SAS,
    "foreign-6.dta": FOREIGN, "foreign-7.dta": FOREIGN,
    "foreign-8.dta": LATE_FOREIGN, "foreign-10.dta": LATE_FOREIGN,
}  # fmt: skip

LABELS = {1: "never", 2: "sometimes", 3: "daily", 9: "refused", 5: "other"}
DATES = [None if day is None else datetime.date.fromisoformat(day) for day in DAYS]


def people(codes: Sequence[Any] = (1.0, 2.0, 3.0, 9.0, None, 2.0)) -> Any:
    """The columns that other programs wrote, for pandas and pyreadstat."""
    return pd.DataFrame({
        "smokes": codes, "weight": WEIGHTS, "text": ["a", "b", "äst", "", "b", "a"],
        "day": pd.Series(DATES, dtype=object),
    })  # fmt: skip


def write_sav(path: Path, **options: Any) -> None:
    pyreadstat.write_sav(people(), str(path), **options)


def write_dta(
    path: Path, *, codes: Sequence[Any] = (1, 2, 3, "a", None, "z"), **options: Any
) -> None:
    pyreadstat.write_dta(
        people(codes), str(path), missing_user_values={"smokes": ["a", "z"]},
        variable_value_labels={"smokes": {1: "never", "a": "refused"}}, **options,
    )  # fmt: skip


def write_xport(path: Path, **options: Any) -> None:
    pyreadstat.write_xport(people(), str(path), **options)


def write_stata(path: Path, *, answers: Any, **options: Any) -> None:
    frame = pd.DataFrame(
        {"smokes": answers, "weight": WEIGHTS, "text": ["a", "b", "c", "", "b", "a"]}
    )
    frame.to_stata(path, write_index=False, **options)


def write_old_stata(path: Path) -> None:
    """Write a file of Stata 4 byte by byte: no program at hand does."""
    names = b"".join(name.ljust(9, b"\0") for name in (b"smokes", b"weight"))
    head = struct.pack("<4BHI", 104, 2, 1, 0, 2, len(WEIGHTS)) + bytes(32) + b"dd" + names
    formats = b"%9.0g".ljust(7, b"\0") * 2
    rows = zip([1, 2, 3, 2.0**1023, 2.0**1023, 2], WEIGHTS, strict=True)
    cells = b"".join(struct.pack("<2d", *row) for row in rows)
    path.write_bytes(head + bytes(6) + formats + bytes(18) + bytes(64) + cells)


PLAIN = {"smokes": [1, 2, 3, 9, None, 2], "weight": WEIGHTS, "text": TEXT, "day": DAYS}
DECLARED = PLAIN | {"smokes": SPSS["smokes"]}
UNNAMED = PLAIN | {"smokes": [1, 2, 3, MissingKind(9, "9"), None, 2]}
MANY = PLAIN | {"smokes": [1, 2, *[MissingKind(k, str(k)) for k in (3, 9)], None, 2]}
KINDS = PLAIN | {"smokes": [1, 2, 3, STATA["smokes"][3], None, STATA["smokes"][5]]}
MADE: dict[str, tuple[Callable[[Path], None], Mapping[str, Any]]] = {}
SAV: Sequence[tuple[str, dict[str, Any], Mapping[str, Any]]] = (
        ("plain", {}, PLAIN),
        ("labels", {"variable_value_labels": {"smokes": LABELS}}, PLAIN),
        ("missing", {"missing_ranges": {"smokes": [9]}}, UNNAMED),
        ("both", {"missing_ranges": {"smokes": [9]}, "variable_value_labels": {"smokes": LABELS}}, DECLARED),
        ("range", {"missing_ranges": {"smokes": [{"lo": 3, "hi": 9}]}}, MANY),
        ("discrete", {"missing_ranges": {"smokes": [3, 9, 7]}}, MANY),
        ("shown", {"variable_measure": {"smokes": "ordinal", "text": "nominal"},
                   "variable_display_width": {"smokes": 12}, "column_labels": {"text": "Größe"}}, PLAIN),
        ("format", {"variable_format": {"smokes": "F4.0", "weight": "F8.4"}}, PLAIN),
)  # fmt: skip
for kind in ("sav", "zsav"):
    for name, options, expected in SAV:
        MADE[f"{name}.{kind}"] = (
            partial(write_sav, compress=kind == "zsav", **options),
            expected,
        )
MADE["rows.sav"] = (partial(write_sav, row_compress=True), PLAIN)
for version in (8, 10, 11, 12, 13, 14, 15):
    MADE[f"kinds-{version}.dta"] = (
        partial(write_dta, version=version),
        KINDS if version >= 14 else KINDS | {"text": None},
    )
for version in (114, 117, 118, 119):
    for name, answers, letters in (
        ("codes", pd.Series([1, 2, 3, 9, 1, 2], dtype="int8"), [1, 2, 3, 9, 1, 2]),
        ("gaps", pd.Series([1, 2, 3, 9, None, 2], dtype="float64"), [1, 2, 3, 9, None, 2]),
        ("named", pd.Series(pd.Categorical(["n", "d", "n", "d", None, "n"], ["n", "x", "d"], ordered=True)),
         [0, 2, 0, 2, None, 0]),
        ("text", pd.Series(["never", "daily", "never", "", "daily", "x"]),
         ["never", "daily", "never", None, "daily", "x"]),
    ):  # fmt: skip
        MADE[f"{name}-{version}.dta"] = (
            partial(write_stata, answers=answers, version=version),
            {"smokes": letters, "weight": WEIGHTS, "text": ["a", "b", "c", None, "b", "a"]},
        )
LONG = ["a" * 3000, "b", "ä" * 2500, "", "b", "a"]
MADE["strl-117.dta"] = (
    lambda path: people().assign(text=LONG).drop(columns="day").to_stata(
        path, version=117, convert_strl=["text"], write_index=False
    ),
    {"smokes": [1, 2, 3, 9, None, 2], "weight": WEIGHTS, "text": [one or None for one in LONG]},
)  # fmt: skip
MADE["version-104.dta"] = (write_old_stata, FOREIGN)
for version in (5, 8):
    MADE[f"v{version}.xpt"] = (
        partial(write_xport, file_format_version=version, table_name="people"),
        PLAIN,
    )
CATALOGUE = {name: (None, EXPECTED[name]) for name in OURS} | MADE


def find_own_ending(path: Path) -> str:
    """The ending of the file that the same program reads."""
    return {".sas7bdat": ".xpt", ".por": ".sav"}.get(path.suffix, path.suffix)


def read_again(path: Path) -> tuple[Mapping[str, Any], Any]:
    """The cells and metadata that pyreadstat reads."""
    name, keeps_missing = READERS[path.suffix]
    how = {"user_missing": True} if keeps_missing else {}
    found = getattr(pyreadstat, name)(
        str(path), output_format="dict", disable_datetime_conversion=True, **how
    )
    return {name: list(cells) for name, cells in found[0].items()}, found[1]


def check_letters(found: Mapping[str, Sequence[Any]], expected: Mapping[str, Any]) -> None:
    """Compare letters with the expected ones, by value and by type."""
    for name, letters in expected.items():
        if letters is not None:
            assert found[name] == letters, name
            assert list(map(type, found[name])) == list(map(type, map(_to_code, letters))), name


def _to_code(letter: Any) -> Any:
    return int(letter) if isinstance(letter, float) and letter.is_integer() else letter


@pytest.mark.parametrize("name", CATALOGUE)
def test_letters_are_those_that_were_written_and_kept_columns_come_back(
    tmp_path: Path, name: str
) -> None:
    write, expected = CATALOGUE[name]
    path = FOLDER / name if write is None else tmp_path / name
    if write is not None:
        write(path)
    target = tmp_path / f"back{find_own_ending(path)}"
    letters: dict[str, list[Any]] = {}

    def note(batch: Any, _: Any) -> None:
        for place, column in enumerate(table.names):
            values, codes = batch.encode_column(place)
            letters.setdefault(column.lower(), []).extend(values[code] for code in codes.tolist())

    with open_table(path) as table:
        released = next(one for one in table.names if one.lower() == "weight")
        flat = Mechanism(np.ones((5, 1)), [0.5, 1.25, 2, 1, 3], ["gone"])
        apply_columns(
            table, [ColumnRelease(flat, (released,))], target, watch=note, keep_order=True
        )
    check_letters(letters, expected)
    (cells, before), (found, after) = read_again(path), read_again(target)
    kept = [one for one in cells if one != released]
    for column in kept:
        assert [cell or None for cell in found[column]] == [cell or None for cell in cells[column]]
        if not before.readstat_variable_types[column].startswith(
            "string"
        ):  # as wide as its longest cell
            assert after.original_variable_types[column] == before.original_variable_types[column]
        assert after.column_names_to_labels[column] == before.column_names_to_labels[column]
        assert after.variable_measure.get(column) == before.variable_measure.get(column)
    assert after.variable_value_labels == before.variable_value_labels
    assert after.missing_ranges == before.missing_ranges


def test_there_are_sixty_files() -> None:
    assert len(CATALOGUE) >= 60
    assert sum(one.stat().st_size for one in FOLDER.iterdir()) < 200_000


def test_pspp_and_haven_wrote_what_reads_the_same() -> None:
    found = []
    for name in ("pspp-plain.sav", "pspp-zipped.zsav", "haven-byte.sav"):
        with open_table(FOLDER / name) as table:
            (batch,) = table.batches()
            shared = [table.names.index(one) for one in ("smokes", "text", "day", "sex", "twice")]
            found.append([[batch.encode_column(place)[0] for place in shared]])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", bytes(range(256))])
@pytest.mark.parametrize("ending", [".sav", ".dta", ".xpt", ".sas7bdat", ".por"])
def test_a_file_that_is_none_by_its_first_bytes_is_refused_by_its_name(
    tmp_path: Path, ending: str, content: bytes
) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=f"is no {SURVEY_KINDS[ending]}: it "):
        open_table(path)


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    pyreadstat.write_sav(people().iloc[:0], str(tmp_path / "a.sav"))
    with (
        pytest.raises(FileFormatError, match="has 0 rows"),
        open_table(tmp_path / "a.sav") as table,
    ):
        list(table.batches())


@pytest.mark.parametrize(
    "name",
    [
        "pspp-plain.sav",
        "pspp-zipped.zsav",
        "pspp.por",
        "haven-14.dta",
        "haven-v8.xpt",
        "haven.sas7bdat",
    ],
)
def test_a_damaged_file_is_refused_with_its_kind(tmp_path: Path, name: str) -> None:
    whole = (FOLDER / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(whole[: len(whole) // 2])
    with (
        pytest.raises(FileFormatError, match=r"is a .*(file of|file of SAS)"),
        open_table(path) as table,
    ):
        list(table.batches())
