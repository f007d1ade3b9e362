"""A checker of certificates in the format VIPR, written from its specification, in fractions.

It knows the parts of the format that linear programs need: every section, and derivations by linear
combinations. A derivation by rounding, by cases or from an assumption is refused. `python vipr.py FILE`
prints that the file is verified, or why it is not, and ends with exit code 0 or 1.

Source: the specification of the format, version 1.1 (https://github.com/scipopt/vipr, cert_spec_v1_1.md).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path

Row = dict[int, Fraction]

NUMBER = re.compile(r"[+-]?(\d+(/\d+)?|\d*\.\d+|\d+\.)\Z")

SIGNS = {"E": 0, "G": 1, "L": -1}


class RefusalError(Exception):
    """The file is not of the format, or does not prove what it states."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise RefusalError(what)


class Reader:
    """The words of a file, one after the other."""

    def __init__(self, text: str) -> None:
        lines = text.split("\n")
        while lines and lines[0].startswith("%"):
            lines.pop(0)
        self.words: Iterator[str] = chain.from_iterable(line.split() for line in lines)
        self.returned: list[str] = []

    def word(self) -> str:
        found = self.returned.pop() if self.returned else next(self.words, None)
        require(found is not None, "the file ends too early")
        return str(found)

    def expect(self, *wanted: str) -> str:
        found = self.word()
        require(found in wanted, f"{found!r:.40} stands where {' or '.join(wanted)} belongs")
        return found

    def number(self) -> Fraction:
        found = self.word()
        require(NUMBER.match(found) is not None, f"{found!r:.40} is no rational number")
        try:
            return Fraction(found)
        except ZeroDivisionError:
            raise RefusalError(f"{found!r:.40} is divided by zero") from None

    def whole(self, below: int | None = None) -> int:
        found = self.word()
        require(found.isascii() and found.isdigit(), f"{found!r:.40} is no whole number")
        require(below is None or int(found) < below, f"the index {found:.40} is too large")
        return int(found)

    def terms(self, below: int) -> Row:
        count, found = self.whole(), dict[int, Fraction]()
        for _ in range(count):
            place = self.whole(below)
            require(place not in found, f"the index {place} occurs twice")
            found[place] = self.number()
        return {place: value for place, value in found.items() if value}


class Certificate:
    """A file that was read and checked: what it proves is in `statement`."""

    def __init__(self, text: str) -> None:
        self.reader = reader = Reader(text)
        reader.expect("VER")
        reader.expect("1.0", "1.1")
        reader.expect("VAR")
        self.variables = [reader.word() for _ in range(reader.whole())]
        reader.expect("INT")
        self.integers = {reader.whole(len(self.variables)) for _ in range(reader.whole())}
        reader.expect("OBJ")
        self.minimised = reader.expect("min", "max") == "min"
        self.objective = reader.terms(len(self.variables))
        reader.expect("CON")
        count = reader.whole()
        require(reader.whole() <= count, "there are more bounds than constraints")
        self.rows = [self.read_constraint() for _ in range(count)]
        self.read_claim()
        self.check_solutions()
        self.check_derivations()
        require(next(reader.words, None) is None, "something comes after the last section")

    def read_constraint(self) -> tuple[int, Fraction, Row]:
        self.reader.word()  # its name
        sign, right = SIGNS[self.reader.expect(*SIGNS)], self.reader.number()
        first = self.reader.word()
        if first == "OBJ":
            return sign, right, self.objective
        self.reader.returned.append(first)
        return sign, right, self.reader.terms(len(self.variables))

    def read_claim(self) -> None:
        reader = self.reader
        reader.expect("RTP")
        self.infeasible = reader.expect("infeas", "range") == "infeas"
        self.lower = self.upper = None
        if self.infeasible:
            self.statement = "nothing meets the constraints"
            return
        ends = []
        for infinite in ("-inf", "inf"):
            found = reader.word()
            reader.returned.append(found)
            ends.append(None if found == infinite else reader.number())
            if ends[-1] is None:
                reader.word()
        self.lower, self.upper = ends
        self.statement = f"the optimum is from {self.lower} to {self.upper}"

    def check_solutions(self) -> None:
        reader, values = self.reader, list[Fraction]()
        reader.expect("SOL")
        for _ in range(reader.whole()):
            name, point = reader.word(), reader.terms(len(self.variables))
            for place in self.integers:
                require(point.get(place, Fraction(0)).denominator == 1, f"{name} is not whole")
            for number, (sign, right, row) in enumerate(self.rows):
                excess = evaluate(row, point) - right
                met = excess == 0 if sign == 0 else sign * excess >= 0
                require(met, f"the solution {name} breaks the constraint {number}")
            values.append(evaluate(self.objective, point))
        require(not (self.infeasible and values), "there is a solution of what is infeasible")
        if self.minimised and self.upper is not None:
            require(
                bool(values) and min(values) <= self.upper, "no solution reaches the upper bound"
            )
        if not self.minimised and self.lower is not None:
            require(
                bool(values) and max(values) >= self.lower, "no solution reaches the lower bound"
            )

    def check_derivations(self) -> None:
        reader, derived = self.reader, 0
        reader.expect("DER")
        for derived in range(1, reader.whole() + 1):
            wanted = self.read_constraint()
            reader.expect("{")
            reader.expect("lin")
            weights = reader.terms(len(self.rows))
            reader.expect("}")
            if reader.word() != "-1":  # a line after which it is not needed, which may be any
                pass
            require(
                dominates(self.combine(weights), wanted),
                f"the derivation {derived} does not follow",
            )
            self.rows.append(wanted)
        if self.infeasible:
            require(derived > 0 and is_absurd(self.rows[-1]), "no contradiction is derived")
            return
        bound, sign = (self.lower, 1) if self.minimised else (self.upper, -1)
        if bound is not None:
            require(derived > 0, "no bound is derived")
            require(
                dominates(self.rows[-1], (sign, bound, self.objective)), "the bound is not derived"
            )

    def combine(self, weights: Row) -> tuple[int, Fraction, Row]:
        left, right, signs = dict[int, Fraction](), Fraction(0), set[int]()
        for place, weight in weights.items():
            sign, own_right, row = self.rows[place]
            right += weight * own_right
            if sign:
                signs.add(sign if weight > 0 else -sign)
            for column, value in row.items():
                left[column] = left.get(column, Fraction(0)) + weight * value
        require(len(signs) <= 1, "a combination has inequalities of both directions")
        total = {column: value for column, value in left.items() if value}
        return (signs.pop() if signs else 0), right, total


def evaluate(row: Row, point: Row) -> Fraction:
    return sum((value * point.get(column, 0) for column, value in row.items()), Fraction(0))


def is_absurd(constraint: tuple[int, Fraction, Row]) -> bool:
    sign, right, row = constraint
    return not row and (right != 0 if sign == 0 else sign * right > 0)


def dominates(found: tuple[int, Fraction, Row], wanted: tuple[int, Fraction, Row]) -> bool:
    """Whether a constraint is as strong as another one, as the specification has it."""
    if is_absurd(found):
        return True
    (sign, right, row), (other, limit, left) = found, wanted
    if row != left:
        return False
    if other == 0:
        return sign == 0 and right == limit
    return sign in (0, other) and other * (right - limit) >= 0


def check(path: Path) -> str:
    """What a file proves; a RefusalError where it proves nothing."""
    return Certificate(path.read_text("utf-8")).statement


def main(arguments: list[str]) -> int:
    try:
        sys.stdout.write(f"verified: {check(Path(arguments[0]))}\n")
    except (RefusalError, OSError, UnicodeError) as cause:
        sys.stdout.write(f"Verification failed: {cause}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
