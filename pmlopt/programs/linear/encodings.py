"""The encodings of a linear design: what solvers take, and the way back to a mechanism.

Each states which designs it can write down, builds the arguments of the functions that solve it, by name, and
recovers mechanism and multipliers where these functions leave them in the variables of the program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.blocks import iterate_row_blocks
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.programs.linear import constraint_generation
from pmlopt.programs.linear.color_refinement import EquitablePartition
from pmlopt.programs.linear.columns import OrbitColumns
from pmlopt.programs.linear.program import MAX_SIMPLEX_ENTRIES, LinearDesign
from pmlopt.programs.linear.starts import KnownOptimum, LinearStart
from pmlopt.programs.program import Program
from pmlopt.programs.purification import repair_within_support
from pmlopt.solvers import cvxpy_interface, highs
from pmlopt.solvers.solver_result import MethodOptions, PrimalDualPoint, SolverResult
from pmlopt.solvers.structured.block_program import ColumnBlock


@dataclass(frozen=True)
class Encoding:
    """A way to write a linear design down for a solver.

    Attributes:
        argument: the name of what a solver takes.
        find: finds that by which a design can be written so, in it or in what it starts from; else None.
    """

    argument: str
    find: Callable[[LinearStart], Any]

    def build(self, start: LinearStart) -> dict[str, Any]:
        """Build the arguments, by name, of a function that solves it, but for the options."""
        return {"program": start.program, self.argument: self.find(start)}

    def recover(self, program: LinearDesign) -> PrimalDualPoint:
        """Recover the point of a function that did not return it, but left it in the program."""
        raise NotImplementedError


class _Blocks(Encoding):
    """Design and blocks, which are built where they are solved: they have the size of the table."""

    def build(self, start: LinearStart) -> dict[str, Any]:
        return {"program": start.program, self.argument: start.program.build_block_lp()}


class _Bands(Encoding):
    """Blocks alone, and what the simplex starts from."""

    def build(self, start: LinearStart) -> dict[str, Any]:
        task = start.program.build_block_lp()
        return {self.argument: task, "matrix": start.vertex, "basis": start.arrays or None}


class _Declared(Encoding):
    """The design as cvxpy has it, whose variables and constraints have the answer."""

    def build(self, start: LinearStart) -> dict[str, Any]:
        return {self.argument: start.program}

    def recover(self, program: LinearDesign) -> PrimalDualPoint:
        # of many, what a bound costs is a linear program for each output
        pairs = program.generated_bounds
        witness = None if pairs is None else constraint_generation.read_weights(program, pairs)
        multipliers = read_multipliers(program, program.prior.pmf)
        matrix = np.asarray(program.mechanism.value)
        return PrimalDualPoint(matrix, multipliers, dual_certificate=witness)


def _find_blocks(start: LinearStart) -> ColumnBlock | None:
    """Find the block of a column, where few constraints were added, and these are affine."""
    program = start.program
    return None if program.added and program.added_rows is None else program.column_block


def _find_small_ratios(start: LinearStart) -> RatioBounds | None:
    """Find the ratio bounds of a small design that has nothing else, and not many on pairs of letters."""
    program = start.program
    if program.added or program.table.size > MAX_SIMPLEX_ENTRIES:
        return None
    if program.mutual_bounds is not None or program.generated_bounds is not None:
        return None
    return program.list_ratios()


def is_linear(program: LinearDesign) -> bool:
    """Return whether a design is a linear program; cvxpy is asked where its bounds do not tell."""
    if program.bands is not None or (not program.added and program.list_ratios() is not None):
        return True
    return bool(program.problem.is_lp())


FORMULA = Encoding("known", attrgetter("known"))
"""A closed form that a dual bound has proved optimal."""

BANDS = _Bands("task", attrgetter("program.bands"))
"""The entries of each column between two ends that one number moves, with a start for the simplex."""

BLOCKS = _Blocks("task", _find_blocks)
"""A block for each column, which few numbers couple."""

MUTUAL_PAIRS = Encoding("ratios", attrgetter("program.mutual_bounds"))
"""Many bounds on pairs of letters, each both ways."""

PAIRS = Encoding("ratios", attrgetter("program.generated_bounds"))
"""Many bounds on pairs of letters, of which few matter for an output."""

RATIO_ROWS = Encoding("ratios", _find_small_ratios)
"""Ratio bounds of a small design as sparse rows, without cvxpy."""

CLASSES = Encoding("classes", attrgetter("program.equitable_partition"))
"""A variable for each class of pairs of letters and outputs that look alike."""

CONES = _Declared("program", attrgetter("program"))
"""The problem as cvxpy has it."""

ROWS = _Declared("program", lambda start: start.program if is_linear(start.program) else None)
"""The same, where all of it is linear."""


def return_closed_form(
    program: LinearDesign, known: KnownOptimum, **_: MethodOptions
) -> SolverResult:
    """Return the optimal closed form as a solver result, with its zeros where rounding breaks a bound."""
    matrix = known.matrix
    # a constant leaks nothing, however it is rounded
    if known.name != "constant" and not matrix.all():
        repaired = repair_within_support(program.prior, program.privacy, matrix)
        matrix = matrix if repaired is None else repaired
    point = PrimalDualPoint(matrix, known.multipliers)
    return SolverResult("point", True, known.name, 0, True, 0.0, 0.0, point)


def solve_by_partition(
    program: LinearDesign, classes: EquitablePartition, options: MethodOptions
) -> SolverResult:
    """Solve on an equitable partition, and expand mechanism and multipliers to all letters and outputs.

    The certificate is on the matrix and knows nothing of classes.
    """
    begin, orbits = time.perf_counter(), classes.orbits
    values = np.empty(orbits.count)
    for rows in iterate_row_blocks(program.table.shape):
        values[classes.table[rows]] = program.table[rows]
    columns = OrbitColumns.from_space(classes, program.privacy)
    declared = columns.build_model(classes.output_names, program.maximised, values)
    ready = time.perf_counter()
    outcome = highs.solve_problem(declared.problem, "highs", options)
    if outcome.state != "point":
        return outcome
    lifts, duals = declared.variables["orbits"].value, declared.constraints["rows"].dual_value
    shares = np.asarray(lifts) / np.array(orbits.outputs, dtype=float)[orbits.output]
    letter = orbits.letter[classes.table[:, 0]]
    matrix = np.empty(program.table.shape)
    for rows in iterate_row_blocks(matrix.shape):
        matrix[rows] = shares[classes.table[rows]]
    found = PrimalDualPoint(matrix, (np.asarray(duals) / orbits.masses)[letter])
    seconds = ready - begin + outcome.compile_seconds
    return replace(outcome, warm_started=False, point=found, compile_seconds=seconds)


def solve_declared_design(
    name: str, settings: Mapping[str, Any], program: LinearDesign, options: MethodOptions
) -> SolverResult:
    """Solve the problem that cvxpy has, with time left for the last step under many bounds on pairs."""
    within = constraint_generation.reserve_pair_seconds(program, name, options)
    return cvxpy_interface.solve_declared(program.problem, name, within, settings)


def solve_by_clarabel(program: LinearDesign, options: MethodOptions) -> SolverResult:
    """Solve by Clarabel, which refines its steps where there are cones."""
    settings = {"iterative_refinement_enable": not is_linear(program)}
    return solve_declared_design("clarabel", settings, program, options)


def read_multipliers(program: Program[Any], masses: FloatArray) -> FloatArray | None:
    """Read the row multipliers of a solved cvxpy problem, divided by the letters' probabilities."""
    duals = program.constraints["rows"].dual_value
    return None if duals is None else np.asarray(duals) / masses
