"""Linear designs whose letters and outputs fall into few classes: a variable for each class of pairs."""

from __future__ import annotations

import time

import numpy as np

from pmlopt.programs.linear.colour_refinement import PairClasses
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.symmetric.certificate import declaration
from pmlopt.programs.symmetric.columns import ReducedColumns
from pmlopt.solvers import highs
from pmlopt.solvers.outcome import Options, Outcome, Point

NAME = "classes"


def run(program: LinearDesign, classes: PairClasses, options: Options) -> Outcome:
    """Solve the program in classes, and write its answer out as a matrix with multipliers for every letter.

    The certificate is on the matrix and knows nothing of classes.
    """
    begin = time.perf_counter()
    orbits = classes.orbits
    columns = ReducedColumns.of(classes, program.privacy)
    values = np.empty(orbits.count)
    values[classes.table] = program.table
    declared = declaration(classes.output_names, columns, program.maximised, values)
    ready = time.perf_counter()
    outcome = highs.run(declared.problem, "highs", options, warm=False)
    if outcome.state != "point":
        return outcome
    lifts, duals = declared.variables["orbits"].value, declared.constraints["rows"].dual_value
    shares = np.asarray(lifts) / np.array(orbits.outputs, dtype=float)[orbits.output]
    found = Point(shares[classes.table], (np.asarray(duals) / orbits.masses)[classes.letter])
    return Outcome(
        state="point",
        finished=outcome.finished,
        message=outcome.message,
        iterations=outcome.iterations,
        warm_started=False,
        compile_seconds=ready - begin + outcome.compile_seconds,
        solve_seconds=outcome.solve_seconds,
        found=found,
    )
