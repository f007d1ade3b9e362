"""Samplers as workbooks (.xlsx), for platforms whose random numbers are unfit for secrets.

Forms (XLSForm: ODK, KoboToolbox, Enketo) and spreadsheets have no generator for cryptography, and fewer bits
that they keep exactly, to which the matrix is rounded. A draw is one whole number of these bits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pmlopt.core.matrices.excel import Formula, build_workbook, check_excel, read_workbook
from pmlopt.core.matrices.matrix_file import Source
from pmlopt.data.samplers.source import build_name, list_notes, make_header, read_header
from pmlopt.data.samplers.table import LabelledMatrix, SamplerTable
from pmlopt.errors import InputError, MechanismError

Sheets = dict[str, list[list[Any]]]
_NOTES = "notes"
_ESCAPED = "_x[0-9A-Fa-f]{4}_"  # a character, as workbooks write it


def _build_form(table: SamplerTable, name: str) -> Sheets:
    """Build a form: a question, a word of random bits, the outcome, and a confirmation that ends both."""
    value, word, released, done = (
        f"{name}_{part}" for part in ("value", "word", "released", "done")
    )
    until_done = f"${{{done}}} = ''"
    found = f"letter = ${{{value}}} and lower <= ${{{word}}} and upper > ${{{word}}}"
    draw = f"once(instance('{name}_draws')/root/item[{found}]/outcome)"
    survey: list[list[Any]] = [
        ["type", "name", "label", "calculation", "relevant", "required", "constraint",
         "constraint_message"],
        [f"select_one {name}_letters", value, "The first answer counts.", None, until_done, "yes"],
        ["calculate", word, None, f"once(int(random() * {2**table.bits}))", until_done],
        ["calculate", released, None, draw],
        ["acknowledge", done, "Keep the randomized answer only.", None, None, "yes",
         f"${{{released}}} != ''", "Answer the question first."],
    ]  # fmt: skip
    choices: list[list[Any]] = [
        ["list_name", "name", "label", "letter", "lower", "upper", "outcome"]
    ]
    choices += [[f"{name}_letters", f"x{x}", text] for x, text in enumerate(table.inputs)]
    for x, row in enumerate(table.thresholds):
        for y, (lower, upper) in enumerate(pairwise((0, *row))):
            if lower < upper:
                outcome = table.outputs[y]
                drawn = [f"x{x}y{y}", f"x{x}y{y}", f"x{x}", lower, upper, outcome]
                choices.append([f"{name}_draws", *drawn])
    return {"survey": survey, "choices": choices}


def _build_spreadsheet(table: SamplerTable, name: str) -> Sheets:
    """Build a sheet whose formula draws an outcome, and a sheet with the first word of each outcome."""
    from openpyxl.utils import get_column_letter

    title = name[:31]  # Excel takes no longer ones
    last = get_column_letter(len(table.outputs) + 1)
    end = len(table.inputs) + 1
    letters, lowers = f"{title}!$A$2:$A${end}", f"{title}!$B$2:${last}${end}"
    equal = f"EXACT(A2,{letters})"
    place = f"SUMPRODUCT({equal}*(ROW({letters})-1))"
    # of the outcome: how many of the row's first words are at most the drawn word
    number = f'COUNTIF(INDEX({lowers},{place},0),"<="&INT(RAND()*{2**table.bits}))'
    drawn = f"INDEX({title}!$B$1:${last}$1,1,{number})"
    formula = f'=IF(A2="","",IF(SUMPRODUCT(--{equal})=1,{drawn},NA()))'
    rows = zip(table.inputs, table.thresholds, strict=True)
    return {
        "release": [["value", "released"], [None, Formula(formula)]],
        title: [["letter", *table.outputs], *([text, 0, *row[:-1]] for text, row in rows)],
    }


@dataclass(frozen=True)
class Platform:
    """A platform that reads workbooks.

    Attributes:
        name: as `--to` takes it.
        max_bits: of the whole numbers that it keeps exactly.
        changed: a pattern of what it would change or interpret in a text.
        notes: sentences on its generator, and on how a draw is used, with `{}` for the name.
        build: the sheets of a sampler, with the name of its parts.
    """

    name: str
    max_bits: int
    changed: str
    notes: Sequence[str]
    build: Callable[[SamplerTable, str], Sheets]

    def check_bits(self, bits: int | None) -> int:
        """Return the bits of a draw: those that are given, else all that the platform keeps."""
        if bits is not None and bits > self.max_bits:
            raise MechanismError(
                f"{self.name} keeps whole numbers of at most {self.max_bits} bits exactly, not of {bits}"
            )
        return self.max_bits if bits is None else bits

    def build_sheets(self, table: SamplerTable, header: Mapping[str, Any]) -> Sheets:
        """Build all sheets of a sampler, the last one with notes for people and the header."""
        check_excel()
        for text in (*table.inputs, *table.outputs):
            kept = text == " ".join(text.split()) and text.isprintable() and 0 < len(text) <= 255
            changed = re.search(self.changed, text)
            if not kept or changed is not None:
                reason = "" if changed is None else f", for it holds {changed[0]!r}"
                raise MechanismError(
                    f"the label {text!r:.80} does not pass through {self.name} unchanged{reason}: give "
                    "another one, of at most 255 printable characters, with single spaces within"
                )
        name = build_name(header["name"])
        notes = list_notes(header, [note.format(name) for note in self.notes])
        return {**self.build(table, name), _NOTES: [[note] for note in notes]}


PLATFORMS = {
    one.name: one
    for one in (
        Platform("xlsform", 31, r"[\u2018\u2019\u201c\u201d]|\$\{|" + _ESCAPED, (
            "WARNING: random() of ODK, KoboToolbox and Enketo is predictable, and unfit for secrets.",
            "The answer and the drawn word leave the form when {}_done is confirmed. Drafts on the device "
            "and audit logs that track changes keep them: allow neither.",
        ), _build_form),
        Platform("spreadsheet", 48, _ESCAPED, (
            "WARNING: RAND() of spreadsheets is predictable, and unfit for secrets.",
            "Each recalculation draws again, and two draws of a value reveal more than one: copy the column "
            "released, paste its values into another file, and use the first draw only.",
        ), _build_spreadsheet),
    )
}  # fmt: skip
"""The platforms by name."""


def write_workbook(
    table: SamplerTable, platform: Platform, statement: Sequence[str] = (), name: str = ""
) -> bytes:
    """Write the workbook of a sampler; see `write_source`.

    Raises:
        MechanismError: the platform would change a label.
        InputError: the name is none.
    """
    header = make_header(table, platform.name, statement, name)
    return build_workbook(platform.build_sheets(table, header))


@dataclass(frozen=True)
class SamplerWorkbook:
    """A generated workbook that was read.

    Attributes:
        header: what its notes state.
        sheets: the cells of each sheet.
    """

    header: Mapping[str, Any]
    sheets: Sheets

    @classmethod
    def read(cls, content: bytes, where: str | os.PathLike[str]) -> SamplerWorkbook:
        """Read a generated workbook.

        Raises:
            FileFormatError: it is none, or is of another version.
        """
        sheets = read_workbook(Source(where, content))
        notes = "\n".join(str(row[0]) for row in sheets.get(_NOTES, ()) if row)
        return cls(read_header(notes, os.fspath(where), PLATFORMS), sheets)

    @property
    def rounded_bits(self) -> int:
        """Return to how many bits the matrix was rounded."""
        return int(self.header["bits"])

    def compare(self, mechanism: LabelledMatrix) -> list[tuple[str, bool, str]]:
        """Compare the cells with those of a mechanism; see `SamplerSource.compare`."""
        platform = PLATFORMS[self.header["language"]]
        try:
            table = SamplerTable.from_mechanism(mechanism, self.rounded_bits)
            expected = platform.build_sheets(table, self.header)
        except (MechanismError, InputError) as error:
            return [("table", False, str(error))]
        same = self.header["digest"] == table.digest
        found = [("digest", same, "of letters, outcomes, bits and thresholds")]
        for title in dict.fromkeys((*expected, *self.sheets)):
            differing = _count_differing(self.sheets.get(title, []), expected.get(title, []))
            detail = (
                f"{differing} cells differ" if differing else "every cell is as it is generated"
            )
            found.append((f"sheet {title}", not differing, detail))
        return found


def _count_differing(rows: Sequence[Sequence[Any]], expected: Sequence[Sequence[Any]]) -> int:
    """Count the cells of a sheet that differ by value or kind."""
    found, due = (
        {
            (x, y, type(value), value)
            for x, row in enumerate(side)
            for y, value in enumerate(row)
            if value is not None
        }
        for side in (rows, expected)
    )
    return len({place[:2] for place in found ^ due})
