"""Which values generated samplers take for which letters: the same in each language, and no others."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from oracles.samplers import erase_types

from pmlopt import Mechanism
from pmlopt.estimation import export_decoder

LETTERS = (
    "yes", "5", "-7", "0", "0.3", "9007199254740991", "9007199254740992", "True", "NA", "NaN", "nan", "Inf",
    "inf", "Infinity", "null", "undefined", "None", "true", "TRUE", "5.0", "é", "100000",
)  # fmt: skip
MECHANISM = Mechanism(np.eye(len(LETTERS)), LETTERS, [f"y {letter}" for letter in LETTERS])

# what a value is written as in a language, and the letter whose row it takes; None where it is refused
JAVASCRIPT = {
    "'yes'": "yes", "5": "5", "-7": "-7", "0": "0", "-0": "0", "0.3": "0.3", "100000": "100000",
    "9007199254740991": "9007199254740991", "'9007199254740992'": "9007199254740992", "true": "True",
    "'NA'": "NA", "'null'": "null", "'5.0'": "5.0", "5.0": "5", "'\\u00e9'": "é",
    "9007199254740992": None, "9007199254740993": None, "0.1 + 0.2": None, "5.000000000000001": None,
    "NaN": None, "Infinity": None, "null": None, "undefined": None, "false": None, "5n": None,
    "['5']": None, "['yes']": None, "new String('yes')": None, "{toString: () => 'yes'}": None,
    "Symbol.iterator": None, "new Date(5)": None, "'e\\u0301'": None, "'YES'": None, "1e300": None,
}  # fmt: skip
PYTHON = {
    "'yes'": "yes", "5": "5", "-7": "-7", "0": "0", "0.3": "0.3", "5.0": "5.0", "100000": "100000",
    "9007199254740992": "9007199254740992", "True": "True", "'True'": "True", "'None'": "None",
    "'\\u00e9'": "é", "9007199254740993": None, "0.1 + 0.2": None, "float('nan')": None,
    "float('inf')": None, "None": None, "False": None, "['5']": None, "b'yes'": None, "'e\\u0301'": None,
    "0.0": None, "100000.0": None, "2.0**53": None, "5 + 0j": None,
}  # fmt: skip
R = {
    "'yes'": "yes", "factor('yes')": "yes", "5": "5", "5L": "5", "-7": "-7", "0": "0", "-0": "0",
    "0.3": "0.3", "3 / 10": "0.3", "1e5": "100000", "factor(5)": "5", "9007199254740991": "9007199254740991",
    "'9007199254740992'": "9007199254740992", "TRUE": "True", "'TRUE'": "TRUE", "'NA'": "NA",
    "c(x = 5)": "5", "factor('NA')": "NA", "'\\u00e9'": "é", "iconv('\\u00e9', 'UTF-8', 'latin1')": "é",
    "9007199254740992": None, "9007199254740993": None, "0.1 + 0.2": None, "5 + 4e-15": None,
    "5.000000000000001": None, "NA_real_": None, "NA_integer_": None, "NA_character_": None, "NA": None,
    "NaN": None, "Inf": None, "FALSE": None, "factor(NA)": None, "c(5, NA)": None, "5 + 0i": None,
    "as.raw(5)": None, "list(5)": None, "list('yes')": None, "data.frame(x = 5)": None, "NULL": None,
    "as.Date(5)": None, "numeric_version('5')": None, "structure(5, class = 'integer64')": None,
    "structure(5, class = 'haven_labelled')": None, "quote(yes)": None,
}  # fmt: skip


def list_results(values: dict[str, str | None]) -> list[str]:
    return ["refused" if letter is None else f"y {letter}" for letter in values.values()]


def run(command: Sequence[str], script: str, text: str, folder: Path) -> list[str]:
    """The lines that a script prints in a folder."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    (folder / script).write_text(text, "utf-8")
    done = subprocess.run(
        [*command, script], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("language", ["js", "mjs", "ts"])
def test_javascript_takes_each_value_for_its_own_letter_or_refuses_it(
    language: str, tmp_path: Path
) -> None:
    MECHANISM.export(tmp_path / f"sampler.{language}")
    if language == "ts":  # a compiler does the same, and few machines have it
        source = erase_types((tmp_path / "sampler.ts").read_text())
        (tmp_path / "ts.mjs").write_text(source)
    load = {
        "js": 'import sampler from "./sampler.js"; const { release } = sampler;',
        "mjs": 'import { inputs, outputs, release, releaseFromBits } from "./sampler.mjs";',
        "ts": 'import { inputs, outputs, release, releaseFromBits } from "./ts.mjs";',
    }[language]
    calls = "".join(
        f"try {{ console.log(release({value})); }} catch {{ console.log('refused'); }}\n"
        for value in JAVASCRIPT
    )
    assert run(["node"], "run.mjs", f"{load}\n{calls}", tmp_path) == list_results(JAVASCRIPT)


def test_python_takes_each_value_for_its_own_letter_or_refuses_it(tmp_path: Path) -> None:
    MECHANISM.export(tmp_path / "sampler.py")
    calls = "".join(
        f"try: print(sampler.release({value}).encode('utf-8'))\nexcept ValueError: print(b'refused')\n"
        for value in PYTHON
    )
    lines = run([sys.executable], "run.py", f"import sampler\n{calls}", tmp_path)
    assert lines == [str(one.encode()) for one in list_results(PYTHON)]


def test_r_takes_each_value_for_its_own_letter_or_refuses_it(tmp_path: Path) -> None:
    MECHANISM.export(tmp_path / "sampler.R")
    calls = "".join(
        f"cat(tryCatch(enc2utf8(pmlopt$release_from_bits(0, {value})), "
        "error = function(e) 'refused'), '\\n')\n"
        for value in R
    )
    # without a locale of UTF-8, which cat would need
    text = f'source("sampler.R", encoding = "UTF-8")\nSys.setlocale("LC_CTYPE", "C.UTF-8")\n{calls}'
    lines = run(["Rscript"], "run.R", text, tmp_path)
    assert [line.strip() for line in lines[-len(R) :]] == list_results(R)


def test_decoders_in_r_take_outcomes_as_samplers_take_letters(tmp_path: Path) -> None:
    export_decoder(Mechanism(np.eye(3), [1, 2, 3], [0.3, 100000, True]), tmp_path / "decoder.R")
    columns = {
        "c(0.3, 1e5, 1e5)": "0.3333 0.6667 0",
        "c(TRUE, TRUE)": "0 0 1",
        "factor(c('0.3', '100000', 'True', 'True'))": "0.25 0.25 0.5",
        "0.1 + 0.2": "refused",
        "c(0.3, NA)": "refused",
        "NaN": "refused",
        "FALSE": "refused",
        "NULL": "refused",
    }
    calls = "".join(
        f"cat(tryCatch(round(pmlopt_decoder$estimate({column})$frequency, 4), "
        "error = function(e) 'refused'), '\\n')\n"
        for column in columns
    )
    lines = run(["Rscript"], "run.R", f'source("decoder.R")\n{calls}', tmp_path)
    assert [line.strip() for line in lines] == list(columns.values())


def test_a_decoder_is_a_module_of_javascript_too(tmp_path: Path) -> None:
    mechanism = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
    export_decoder(mechanism, tmp_path / "d.mjs")
    text = (
        'import { inputs, outputs, estimate } from "./d.mjs";\n'
        "console.log(JSON.stringify([inputs, outputs, estimate({no: 40, yes: 60})]));"
    )
    inputs, outputs, found = json.loads(run(["node"], "run.mjs", text, tmp_path)[0])
    assert inputs == outputs == ["no", "yes"]
    # by hand: .25 + .5 f = .6
    assert found[1]["frequency"] == pytest.approx(0.7, abs=1e-12)


def test_the_ending_mjs_is_a_module_also_where_javascript_is_named(tmp_path: Path) -> None:
    for number, language in enumerate((None, "js", "JavaScript", "mjs", "ESM")):
        MECHANISM.export(tmp_path / f"{number}.mjs", language)
    first = (tmp_path / "0.mjs").read_bytes()
    assert b"export const {" in first
    assert b"module.exports" not in first
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {first}
    MECHANISM.export(tmp_path / "a.js")
    assert b"export const" not in (tmp_path / "a.js").read_bytes()
    assert b"module.exports" in (tmp_path / "a.js").read_bytes()


ROWS = 4000
RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])


@pytest.fixture
def sampler(tmp_path: Path) -> dict[str, object]:
    """What a generated module in Python defines."""
    RESPONSE.export(tmp_path / "sampler.py")
    defined: dict[str, object] = {}
    exec((tmp_path / "sampler.py").read_text(), defined)
    return defined


@pytest.mark.parametrize("column", [
    ["yes"] * ROWS,
    np.array(["yes"] * ROWS),
    pandas.Series(["yes"] * ROWS, dtype="category"),
    pandas.Categorical(["yes"] * ROWS),
    polars.Series(["yes"] * ROWS, dtype=polars.Categorical),
    pyarrow.chunked_array([["yes"] * ROWS]).dictionary_encode(),
], ids=["list", "array", "series", "category", "polars", "arrow"])  # fmt: skip
def test_a_column_has_a_draw_for_each_row(column: object, sampler: dict[str, object]) -> None:
    released = sampler["release_many"](column)  # type: ignore[operator]
    assert len(released) == ROWS
    # off by .06 with probability 2 exp(-2 * 4,000 * .06^2), below 1e-12, by Hoeffding's inequality
    assert abs(released.count("yes") / ROWS - 0.75) < 0.06


def test_columns_of_numbers_are_released_and_what_is_no_column_is_refused(tmp_path: Path) -> None:
    Mechanism(np.eye(3), [5, 2.5, True], ["a", "b", "c"]).export(tmp_path / "sampler.py")
    defined: dict[str, object] = {}
    exec((tmp_path / "sampler.py").read_text(), defined)
    release_many = defined["release_many"]
    assert release_many(np.array([5, 5])) == ["a", "a"]  # type: ignore[operator]
    assert release_many(pandas.Series([2.5, 2.5])) == ["b", "b"]  # type: ignore[operator]
    assert release_many(np.array([True])) == ["c"]  # type: ignore[operator]
    assert release_many(iter([5, 2.5])) == ["a", "b"]  # type: ignore[operator]
    numpy_numbers = [np.int64(5), np.float64(2.5), np.bool_(True)]
    assert release_many(numpy_numbers) == ["a", "b", "c"]  # type: ignore[operator]
    sparse = pandas.Series(pandas.arrays.SparseArray([5, 5]))
    assert release_many(sparse) == ["a", "a"]  # type: ignore[operator]
    for wrong in (
        "5", {5: 2.5}, {5}, pandas.DataFrame({5: [5]}), pandas.Series([5, None]), [float("nan")], [[5]],
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"give one column|not one of the letters"):
            release_many(wrong)  # type: ignore[operator]
