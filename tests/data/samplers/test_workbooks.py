"""Samplers as forms and spreadsheets: what the formulas in their cells draw, and how they are read back."""

from __future__ import annotations

import importlib.util
import io
import math
import subprocess
import sys
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from oracles.formulas import Form, Spreadsheet, read_table

from pmlopt import LDP, PML, Mechanism, Prior, design, solve
from pmlopt.data.samplers.table import SamplerTable
from pmlopt.data.samplers.workbooks import PLATFORMS, SamplerWorkbook
from pmlopt.errors import FileFormatError, InputError, MechanismError

HOSTILE = ("=cmd|' /C calc'!A0", '<img src=x onerror="a()">', "@SUM(1+1)*cmd", "O'Hara \"x\" ' or 1=1", "007",
           "-2+3", "</item>&amp;", "_x00_", "é😀漢", "*", "n?", "pmlopt!A1", "TRUE")  # fmt: skip
OUTCOMES = ("007", "=1+1", "1.0", "<b>'\"&", "]/outcome")


@pytest.fixture
def mechanism() -> Mechanism:
    """Rows with zeros before, within and after, and letters and outcomes that mean something to a program."""
    rows = np.random.default_rng(3).dirichlet(np.ones(5), size=len(HOSTILE))
    rows[0] = [0, 0.4, 0, 0.6, 0]
    rows[1] = [1, 0, 0, 0, 0]
    rows[2] = [0, 0, 0, 0, 1]
    return Mechanism(rows / rows.sum(axis=1, keepdims=True), HOSTILE, OUTCOMES)


def read(path: Path) -> SamplerWorkbook:
    return SamplerWorkbook.read(path.read_bytes(), path)


def find_outcome(row: Any, word: int, bits: int) -> str:
    """By fractions: the first outcome whose rounded sum is above the word."""
    sums = list(accumulate(map(Fraction, row.tolist())))
    cuts = [round(total / sums[-1] * 2**bits) for total in sums]
    return next(name for name, cut in zip(OUTCOMES, cuts, strict=True) if word < cut)


def draw_by_sheet(sheets: dict[str, Any], value: Any, random: float) -> Any:
    """What the formula gives for a value and a random number, of which it takes one."""
    found = Spreadsheet({**sheets, "release": [["value", "released"], [value]]})
    drawn = found.evaluate(sheets["release"][1][1], random)
    assert found.draws == 1
    return drawn


def draw_by_form(form: Form, letter: str, word: int) -> str:
    """What the form's expression finds for an answer and a word."""
    named = {row["label"]: row["name"] for row in form.choices}
    return form.evaluate({"pmlopt_value": named.get(letter, letter), "pmlopt_word": str(word)})


@pytest.mark.parametrize("platform", PLATFORMS)
def test_all_words_of_eight_bits_have_the_rounded_law(
    mechanism: Mechanism, platform: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.xlsx"
    mechanism.export(path, platform, bits=8)
    sheets = read(path).sheets
    form = Form(sheets) if platform == "xlsform" else None
    for letter, row in zip(HOSTILE, mechanism.matrix, strict=True):
        for word in range(256):
            if form is not None:
                drawn = draw_by_form(form, letter, word)
            else:
                drawn = draw_by_sheet(sheets, letter, word / 256)
            assert drawn == find_outcome(row, word, 8), (letter, word)


def test_the_ends_of_each_outcome_are_exact_with_all_bits(
    mechanism: Mechanism, tmp_path: Path
) -> None:
    for name, bits in (("xlsform", 31), ("spreadsheet", 48)):
        path = tmp_path / f"{name}.xlsx"
        mechanism.export(path, name)
        sheets, table = read(path).sheets, SamplerTable.from_mechanism(mechanism, bits)
        form = Form(sheets) if name == "xlsform" else None
        for letter, row, cuts in zip(HOSTILE, mechanism.matrix, table.thresholds, strict=True):
            for word in {0, 2**bits - 1, *(cut + step for cut in cuts for step in (-1, 0))}:
                if not 0 <= word < 2**bits:
                    continue
                if form is not None:
                    drawn = draw_by_form(form, letter, word)
                else:
                    drawn = draw_by_sheet(sheets, letter, word / 2**bits)
                assert drawn == find_outcome(row, word, bits)


def test_the_word_of_a_form_is_uniform_and_leaves_it_with_the_answer(tmp_path: Path) -> None:
    Mechanism(np.eye(2), ["a", "b"]).export(tmp_path / "a.xlsx", "ODK", bits=10, name="two")
    value, word, released, done = read_table(read(tmp_path / "a.xlsx").sheets["survey"])
    assert word["calculation"] == "once(int(random() * 1024))"
    assert value["relevant"] == word["relevant"] == "${pmlopt_two_done} = ''"
    # what stays depends on nothing that is asked after the confirmation
    assert released["relevant"] is None
    assert done["relevant"] is None
    assert done["constraint"] == "${pmlopt_two_released} != ''"
    assert value["required"] == done["required"] == "yes"


def test_unknown_values_are_refused_by_the_formula(mechanism: Mechanism, tmp_path: Path) -> None:
    mechanism.export(tmp_path / "s.xlsx", "spreadsheet")
    mechanism.export(tmp_path / "f.xlsx", "xlsform")
    sheets, form = read(tmp_path / "s.xlsx").sheets, Form(read(tmp_path / "f.xlsx").sheets)
    for value in ("Never", "n*", "007 ", "0", 7, "é", "true"):
        assert draw_by_sheet(sheets, value, 0.5) == "#N/A", value
    assert draw_by_sheet(sheets, None, 0.5) == ""
    for value in ("", "x", "x13", "x0 or 1=1"):
        assert draw_by_form(form, value, 0) == ""
    numbers = Mechanism(np.eye(2), [1, 2], [1, 2])
    numbers.export(tmp_path / "n.xlsx", "spreadsheet")
    assert draw_by_sheet(read(tmp_path / "n.xlsx").sheets, 2, 0.0) == "2"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_labels_are_text_whatever_they_look_like(
    mechanism: Mechanism, platform: str, tmp_path: Path
) -> None:
    mechanism.export(tmp_path / "a.xlsx", platform)
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    formulas = [cell for cell in cells if cell.data_type == "f"]
    assert [cell.coordinate for cell in formulas] == ["B2"] * (platform == "spreadsheet")
    texts = {str(cell.value) for cell in cells if cell.data_type == "s"}
    assert {*HOSTILE, *OUTCOMES} <= texts
    # a program makes them no formula either when a person edits the cell
    assert all(
        cell.quotePrefix for cell in cells if str(cell.value).startswith(("=cmd", "@", "-2"))
    )
    # no label stands in a formula or an expression
    written = [str(cell.value) for cell in formulas]
    if platform == "xlsform":
        survey = read_table(read(tmp_path / "a.xlsx").sheets["survey"])
        written = [str(row["calculation"]) for row in survey]
    assert not any(label in text for label in HOSTILE[:9] for text in written)


@pytest.mark.parametrize(("platform", "label"), [
    ("spreadsheet", "a\nb"), ("spreadsheet", ""), ("spreadsheet", " a"), ("spreadsheet", "a  b"),
    ("spreadsheet", "\u2028"), ("spreadsheet", "x" * 256), ("xlsform", "I don\u2019t know"),
    ("xlsform", "${pmlopt_word}"), ("xlsform", "\u201ca\u201d"), ("xlsform", "a\tb"),
    ("xlsform", "_x000D_"), ("spreadsheet", "a_x003d_b"),
])  # fmt: skip
def test_labels_that_the_platform_would_change_are_refused(
    platform: str, label: str, tmp_path: Path
) -> None:
    for labels, outputs in (((label, "b"), ("y", "z")), (("a", "b"), (label, "z"))):
        with pytest.raises(MechanismError, match="does not pass through"):
            Mechanism(np.eye(2), labels, outputs).export(tmp_path / "a.xlsx", platform)
    assert not (tmp_path / "a.xlsx").exists()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_changed_cell_is_seen(mechanism: Mechanism, platform: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    mechanism.export(path, platform, bits=5)
    assert [holds for _, holds, _ in read(path).compare(mechanism)] == [True] * 4
    coordinates = [
        (sheet.title, cell.coordinate)
        for sheet in openpyxl.load_workbook(path)
        for row in sheet.iter_rows()
        for cell in row
    ]
    chosen = np.random.default_rng(1).permutation(len(coordinates))[:12]
    for title, coordinate in [coordinates[place] for place in chosen]:
        book = openpyxl.load_workbook(path)
        cell = book[title][coordinate]
        cell.value = 1 if cell.value is None else f"{cell.value}x"
        assert not is_accepted(book, mechanism), (title, coordinate)
    for change in ("text as formula", "more", "sheet"):
        book = openpyxl.load_workbook(path)
        if change == "text as formula":
            kept = [c for s in book for row in s.iter_rows() for c in row if c.value == HOSTILE[0]]
            kept[0].data_type = "f"
        elif change == "more":
            book.worksheets[0]["Z9"] = "=A2"
        else:
            book.create_sheet("more")["A1"] = "leak"
        assert not is_accepted(book, mechanism), change
    other = Mechanism(mechanism.matrix, HOSTILE[::-1], OUTCOMES)
    assert False in [holds for _, holds, _ in read(path).compare(other)]


def is_accepted(book: Any, mechanism: Mechanism) -> bool:
    """Whether a changed workbook is taken for the mechanism's."""
    stream = io.BytesIO()
    book.save(stream)
    try:
        found = SamplerWorkbook.read(stream.getvalue(), "changed").compare(mechanism)
    except FileFormatError:
        return False
    return all(holds for _, holds, _ in found)


def test_what_is_no_generated_workbook_is_refused(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    stream = io.BytesIO()
    book.save(stream)
    for content in (stream.getvalue(), b"PK", b"PK\x03\x04 cut short"):
        with pytest.raises(FileFormatError):
            SamplerWorkbook.read(content, "other.xlsx")


def test_the_level_after_rounding_is_stated_and_bounded(tmp_path: Path) -> None:
    prior = Prior([0.5, 0.3, 0.2], ["a", "b", "c"])
    result = solve(design(prior, PML(0.5) & LDP(1.0), "hamming"))
    result.export(tmp_path / "a.xlsx", "spreadsheet", bits=6)
    matrix = SamplerTable.from_mechanism(result.mechanism, 6).to_matrix()
    used = matrix[:, matrix.max(axis=0) > 0]
    levels = {
        "pml": float(np.log(used.max(axis=0) / (prior.pmf @ used)).max()),
        "ldp": float(np.log(used.max(axis=0) / used.min(axis=0)).max()),
    }
    stated = read(tmp_path / "a.xlsx").header["statement"][1].split(": ")[1].rstrip(".").split(", ")
    for line, (name, level) in zip(stated, levels.items(), strict=True):
        assert line.split()[0] == name
        assert math.isclose(float(line.split()[1]), level, rel_tol=1e-12)
    highest = max(levels.values())
    result.export(tmp_path / "b.xlsx", "spreadsheet", bits=6, max_level=highest + 1e-9)
    for limit in (highest - 1e-9, math.nan):
        with pytest.raises(InputError, match="above the largest one"):
            result.export(tmp_path / "c.xlsx", "spreadsheet", bits=6, max_level=limit)
    # of source code, too
    with pytest.raises(InputError, match="above the largest one"):
        result.export(tmp_path / "c.js", bits=6, max_level=highest - 1e-9)
    assert not (tmp_path / "c.xlsx").exists()
    assert not (tmp_path / "c.js").exists()


def test_bits_and_endings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    one = Mechanism(np.eye(2), ["a", "b"])
    with pytest.raises(MechanismError, match="at most 31 bits"):
        one.export(tmp_path / "a.xlsx", "xlsform", bits=32)
    with pytest.raises(MechanismError, match="at most 48 bits"):
        one.export(tmp_path / "a.xlsx", "Excel", bits=53)
    with pytest.raises(InputError, match=r"use the ending \.xlsx"):
        one.export(tmp_path / "a.csv", "kobo")
    with pytest.raises(InputError, match=r"spreadsheet or xlsform is written as \.xlsx"):
        one.export(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="begin with a letter"):
        one.export(tmp_path / "a.xlsx", "xlsform", name="a'b")
    with pytest.raises(InputError, match="did you mean 'spreadsheet'"):
        one.export(tmp_path / "a.xlsx", "spreadsheets")


@pytest.mark.skipif(importlib.util.find_spec("pyxform") is None, reason="pyxform is not installed")
def test_pyxform_keeps_every_label(mechanism: Mechanism, tmp_path: Path) -> None:
    import xml.etree.ElementTree as ET

    mechanism.export(tmp_path / "a.xlsx", "xlsform")
    command = [sys.executable, "-m", "pyxform.xls2xform", "--skip_validate", "a.xlsx", "a.xml"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    texts = [node.text for node in ET.parse(tmp_path / "a.xml").iter()]
    assert set(HOSTILE) | set(OUTCOMES) <= set(texts)
