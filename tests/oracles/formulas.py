"""Formulas of spreadsheets and expressions of forms, evaluated by small evaluators of their own.

They know the functions that the specifications of OpenFormula and of ODK XForms describe, as far as a sampler
needs them, and nothing of matrices. Random numbers are given by the caller.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

Rows = Sequence[Sequence[Any]]
TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+)|"(?P<text>(?:[^"]|"")*)"|(?P<area>(?:\w+!)?\$?[A-Z]+\$?\d+(?::\$?[A-Z]+\$?\d+)?)"""
    r"""|(?P<function>[A-Z]+)\(|(?P<sign><=|[-=&*(),]))"""
)


def read_area(area: str, sheets: Mapping[str, Rows]) -> list[list[Any]]:
    """The cells of an area such as Sheet!$A$2:$B$3; of the first sheet where it names none."""
    title, _, cells = area.replace("$", "").rpartition("!")
    rows = sheets[title or next(iter(sheets))]
    corners = [re.fullmatch(r"([A-Z]+)(\d+)", corner) for corner in cells.split(":")]
    places = []
    for corner in corners:
        assert corner is not None
        column = 0
        for letter in corner[1]:
            column = 26 * column + ord(letter) - ord("A") + 1
        places.append((int(corner[2]), column))
    (top, left), (bottom, right) = places[0], places[-1]
    return [
        [rows[y - 1][x - 1] if x <= len(rows[y - 1]) else None for x in range(left, right + 1)]
        for y in range(top, bottom + 1)
    ]


@cache
def split_formula(formula: str) -> tuple[tuple[str, str], ...]:
    """The kinds and texts of what a formula consists of."""
    tokens = []
    place = 1
    while place < len(formula):
        found = TOKEN.match(formula, place)
        assert found is not None, formula[place:]
        tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
        place = found.end()
    return tuple(tokens)


def to_text(value: Any) -> str:
    return "" if value is None else str(value)


def apply(function: Callable[..., Any], *values: Any) -> Any:
    """A function of single values, on each cell where one of the values is an area."""
    areas = [value for value in values if isinstance(value, list)]
    if not areas:
        return function(*values)
    return [
        [
            function(*(v[y][x] if isinstance(v, list) else v for v in values))
            for x in range(len(areas[0][0]))
        ]
        for y in range(len(areas[0]))
    ]


class Spreadsheet:
    """Sheets, in which a formula is evaluated with a given random number."""

    def __init__(self, sheets: Mapping[str, Rows]) -> None:
        self.sheets = sheets
        self._tokens: list[tuple[str, str]] = []
        self._random, self.draws = 0.0, 0

    def evaluate(self, formula: str, random: float) -> Any:
        """The value of a formula; #N/A as text."""
        self._tokens = list(split_formula(formula))
        self._random, self.draws = random, 0
        value = self._compare()
        assert not self._tokens
        while isinstance(value, list):
            (value,) = value
        return value

    def _take(self, *signs: str) -> str | None:
        if self._tokens and self._tokens[0][0] == "sign" and self._tokens[0][1] in signs:
            return self._tokens.pop(0)[1]
        return None

    def _compare(self) -> Any:
        value = self._join()
        while self._take("="):
            value = apply(lambda a, b: (a or "") == b if b == "" else a == b, value, self._join())
        return value

    def _join(self) -> Any:
        value = self._subtract()
        while self._take("&"):
            value = apply(lambda a, b: to_text(a) + to_text(b), value, self._subtract())
        return value

    def _subtract(self) -> Any:
        value = self._multiply()
        while self._take("-"):
            value = apply(lambda a, b: a - b, value, self._multiply())
        return value

    def _multiply(self) -> Any:
        value = self._negate()
        while self._take("*"):
            value = apply(lambda a, b: a * b, value, self._negate())
        return value

    def _negate(self) -> Any:
        if self._take("-"):
            return apply(lambda a: -a, self._negate())
        if self._take("("):
            value = self._compare()
            assert self._take(")")
            return value
        kind, text = self._tokens.pop(0)
        if kind == "number":
            return int(text)
        if kind == "text":
            return text.replace('""', '"')
        if kind == "area":
            cells = read_area(text, self.sheets)
            return cells if ":" in text else cells[0][0]
        assert kind == "function", text
        return self._call(text)

    def _call(self, name: str) -> Any:
        if name == "ROW":
            kind, area = self._tokens.pop(0)
            assert kind == "area"
            assert self._take(")")
            top = int(re.findall(r"\d+", area.rpartition("!")[2])[0])
            return [[top + y] for y in range(len(read_area(area, self.sheets)))]
        values = []
        while not self._take(")"):
            values.append(self._compare())
            self._take(",")
        return getattr(self, "_call_" + name.lower())(*values)

    def _call_if(self, condition: Any, then: Any, other: Any) -> Any:
        return then if condition else other

    def _call_na(self) -> str:
        return "#N/A"

    def _call_rand(self) -> float:
        self.draws += 1
        return self._random

    def _call_int(self, value: float) -> int:
        return math.floor(value)

    def _call_exact(self, one: Any, other: Any) -> Any:
        return apply(lambda a, b: to_text(a) == to_text(b), one, other)

    def _call_sumproduct(self, area: list[list[float]]) -> float:
        return sum(sum(row) for row in area)

    def _call_countif(self, area: list[list[float]], condition: str) -> int:
        assert condition.startswith("<=")
        return sum(value <= int(condition[2:]) for row in area for value in row)

    def _call_index(self, area: list[list[Any]], row: int, column: int) -> Any:
        rows = area if row == 0 else [area[row - 1]]  # 0 means all
        if column > len(rows[0]):
            return "#REF!"
        return rows if column == 0 else rows[0][column - 1]


class Form:
    """The sheets of a form, in which the expression of the outcome is evaluated.

    It is `once(instance('LIST')/root/item[A and B and ...]/COLUMN)`: the column of the items of a list for
    which all comparisons hold, as text; empty where there is none.
    """

    def __init__(self, sheets: Mapping[str, Rows]) -> None:
        self.survey, self.choices = (read_table(sheets[title]) for title in ("survey", "choices"))
        (expression,) = (
            row["calculation"] for row in self.survey if "instance(" in (row["calculation"] or "")
        )
        read = re.fullmatch(r"once\(instance\('(\w+)'\)/root/item\[(.*)\]/(\w+)\)", expression)
        assert read is not None
        self._items = [row for row in self.choices if row["list_name"] == read[1]]
        self._comparisons, self._column = read[2].split(" and "), read[3]

    def evaluate(self, answers: Mapping[str, str]) -> str:
        """The outcome for the given values of the questions."""
        kept = [
            item
            for item in self._items
            if all(compare(text, item, answers) for text in self._comparisons)
        ]
        assert len(kept) <= 1, "more than one item"
        return str(kept[0][self._column]) if kept else ""


def compare(text: str, item: Mapping[str, Any], answers: Mapping[str, str]) -> bool:
    """A comparison of a column with a question: by text for =, else by numbers."""
    found = re.fullmatch(r"(\w+) (=|<=|>) \$\{(\w+)\}", text)
    assert found is not None, text
    own, other = item[found[1]], answers[found[3]]
    if found[2] == "=":
        return str(own) == other
    return float(own) <= float(other) if found[2] == "<=" else float(own) > float(other)


def read_table(rows: Rows) -> list[dict[str, Any]]:
    """The rows below the header, by its names."""
    header = rows[0]
    return [
        dict(zip(header, [*row, *[None] * (len(header) - len(row))], strict=True))
        for row in rows[1:]
    ]
