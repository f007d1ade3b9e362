"""Files of linear programs over the rationals: VIPR certificates for checkers, and MPS for solvers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from pmlopt.programs.proofs.duals import DualPoint
from pmlopt.programs.proofs.exact_program import ExactProgram, Terms


@dataclass(frozen=True, eq=False)
class ProvedProgram:
    """A linear program with what a file proves of it.

    Attributes:
        name: of the files.
        program: the program.
        sentence: what is proved, in words.
        has_point: whether the point of the program is a part of the proof.
        duals: what proves a bound on the objective, or, where the program is infeasible, the contradiction.
        is_infeasible: whether it is proved that nothing meets the rows.
        level: the level in nats that it is about, where a least level, or that of an envelope, is claimed.
    """

    name: str
    program: ExactProgram
    sentence: str
    has_point: bool = False
    duals: DualPoint | None = None
    is_infeasible: bool = False
    level: float | None = None

    @property
    def bound(self) -> Fraction | None:
        """Return the proved bound on the objective; None where none is."""
        if self.duals is None or self.is_infeasible:
            return None
        return self.duals.bound if self.program.is_maximised else -self.duals.bound

    @property
    def proved_range(self) -> tuple[str, str]:
        """Return between which numbers the optimum is proved to be."""
        value = str(self.program.value) if self.has_point else None
        bound = None if self.bound is None else str(self.bound)
        if self.program.is_maximised:
            return value or "-inf", bound or "inf"
        return bound or "-inf", value or "inf"


def _format_terms(terms: Terms) -> str:
    """Return the number of terms, and the place and coefficient of each."""
    parts = (f"{column} {value}" for column, value in sorted(terms.items()))
    return " ".join([str(len(terms)), *parts])


def iterate_vipr_lines(proved: ProvedProgram) -> Iterator[str]:
    """Yield the lines of a certificate in the format VIPR 1.0, signs of variables first."""
    program, columns = proved.program, len(proved.program.columns)
    yield f"% {proved.sentence}"
    yield f"VER 1.0\nVAR {columns}"
    yield from program.columns
    yield f"INT 0\nOBJ {'max' if program.is_maximised else 'min'}"
    yield _format_terms(program.objective)
    yield f"CON {columns + len(program.rows)} {columns}"
    for place, name in enumerate(program.columns):
        yield f"sign:{name} G 0 1 {place} 1"
    for row in program.rows:
        yield f"{row.name} {'E' if row.equal else 'L'} {row.right} {_format_terms(row.terms)}"
    yield "RTP infeas" if proved.is_infeasible else f"RTP range {' '.join(proved.proved_range)}"
    yield f"SOL {int(proved.has_point)}"
    if proved.has_point:
        point = {place: value for place, value in enumerate(program.values) if value}
        yield f"mechanism {_format_terms(point)}"
    yield from _iterate_derivation(proved)


def _iterate_derivation(proved: ProvedProgram) -> Iterator[str]:
    """Yield the derivation of the bound, or of the contradiction, as one combination of the rows."""
    duals, columns = proved.duals, len(proved.program.columns)
    yield f"DER {int(duals is not None)}"
    if duals is None:
        return
    upward = proved.program.is_maximised or proved.is_infeasible
    sign = 1 if upward else -1
    weights = {place: -sign * value for place, value in enumerate(duals.signs) if value}
    weights |= {columns + place: sign * value for place, value in enumerate(duals.rows) if value}
    sense = "L" if upward else "G"
    left = (
        f"contradiction {sense} {duals.bound} 0"
        if proved.is_infeasible
        else f"bound {sense} {proved.bound} OBJ"
    )
    yield f"{left} {{ lin {_format_terms(weights)} }} -1"


def iterate_mps_lines(proved: ProvedProgram) -> Iterator[str]:
    """Yield the lines of the linear program in the free MPS format, with rationals as `p/q`."""
    program = proved.program
    yield f"NAME {proved.name}\nOBJSENSE\n    {'MAX' if program.is_maximised else 'MIN'}\nROWS\n N objective"
    for row in program.rows:
        yield f" {'E' if row.equal else 'L'} {row.name}"
    yield "COLUMNS"
    for place, entries in enumerate(program.entries_by_column):
        name = program.columns[place]
        if place in program.objective or not entries:
            yield f" {name} objective {program.objective.get(place, 0)}"
        for number, value in entries:
            yield f" {name} {program.rows[number].name} {value}"
    yield "RHS"
    for row in program.rows:
        if row.right:
            yield f" RHS {row.name} {row.right}"
    yield "ENDATA"
