"""Files of linear programs over the rationals: VIPR certificates for checkers, and MPS for solvers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from pmlopt.programs.proofs.exact_program import ZERO, ExactProgram
from pmlopt.solvers.mps import NamedProgram


@dataclass(frozen=True, eq=False)
class ProvedProgram:
    """A linear program with what a file proves of it.

    Attributes:
        program: the program.
        sentence: what is proved, in words.
        duals: multipliers of the rows that prove a bound on the objective, or, of an infeasible program,
            the contradiction.
        is_infeasible: whether it is proved that nothing meets the rows; else the point is a part of it.
        level: the level in nats that it is about, where a least level, or that of an envelope, is claimed.
    """

    program: ExactProgram
    sentence: str
    duals: list[Fraction] | None = None
    is_infeasible: bool = False
    level: float | None = None

    @property
    def name(self) -> str:
        """Return the name of the files."""
        if self.is_infeasible:
            return "infeasibility"
        return "feasibility" if self.duals is None else "optimum"

    @property
    def bound(self) -> Fraction | None:
        """Return the proved bound on the objective; None where none is."""
        if self.duals is None or self.is_infeasible:
            return None
        return self.program.sign * self.program.sum_right_sides(self.duals)

    @property
    def proved_range(self) -> tuple[str, str]:
        """Return between which numbers the optimum is proved to be."""
        value = str(self.program.value)
        if self.program.is_maximised:
            return value, "inf" if self.bound is None else str(self.bound)
        return "-inf" if self.bound is None else str(self.bound), value


def iterate_mps_lines(proved: ProvedProgram) -> Iterator[str]:
    """Yield the lines of the program in the format MPS, with rationals as `p/q`."""
    own = proved.program
    named = NamedProgram(proved.name, own.is_maximised, own.columns, own.objective, own.rows)
    return named.iterate_lines()


def _format_terms(terms: Mapping[int, Fraction]) -> str:
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
    if proved.is_infeasible:
        yield "RTP infeas\nSOL 0"
    else:
        point = {place: value for place, value in enumerate(program.values) if value}
        yield f"RTP range {' '.join(proved.proved_range)}\nSOL 1\nmechanism {_format_terms(point)}"
    yield f"DER {int(proved.duals is not None)}"
    if proved.duals is not None:
        yield _format_derivation(proved, proved.duals)


def _format_derivation(proved: ProvedProgram, duals: list[Fraction]) -> str:
    """Return the bound, or the contradiction, as one combination of the rows."""
    program, sign = proved.program, proved.program.sign
    # the signs of variables are the first rows, with `at least`
    sums, costs = program.combine(duals), {} if proved.is_infeasible else program.costs
    signs = (costs.get(column, ZERO) - value for column, value in enumerate(sums))
    weights = {place: sign * value for place, value in enumerate([*signs, *duals]) if value}
    left = f"bound {'L' if sign > 0 else 'G'} {proved.bound} OBJ"
    if proved.is_infeasible:
        left = f"contradiction L {program.sum_right_sides(duals)} 0"
    return f"{left} {{ lin {_format_terms(weights)} }} -1"
