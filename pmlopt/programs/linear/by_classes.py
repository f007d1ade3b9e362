"""Linear designs whose letters and outputs fall into few classes: a variable for each class of pairs."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from pmlopt.programs.linear.colour_refinement import PairClasses
from pmlopt.programs.linear.columns import ReducedColumns
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers import highs
from pmlopt.solvers.outcome import Options, Outcome, Point

NAME = "classes"


def run(program: LinearDesign, classes: PairClasses, options: Options) -> Outcome:
    """Solve the program in classes, and write its answer out as a matrix with multipliers for every letter.

    The certificate is on the matrix and knows nothing of classes.
    """
    begin = time.perf_counter()
    orbits = classes.orbits
    values = np.empty(orbits.count)
    values[classes.table] = program.table
    columns = ReducedColumns.of(classes, program.privacy)
    declared = columns.declaration(classes.output_names, program.maximised, values)
    ready = time.perf_counter()
    outcome = highs.run(declared.problem, "highs", options, warm=False)
    if outcome.state != "point":
        return outcome
    lifts, duals = declared.variables["orbits"].value, declared.constraints["rows"].dual_value
    shares = np.asarray(lifts) / np.array(orbits.outputs, dtype=float)[orbits.output]
    found = Point(shares[classes.table], (np.asarray(duals) / orbits.masses)[classes.letter])
    return replace(outcome, warm_started=False, found=found,
                   compile_seconds=ready - begin + outcome.compile_seconds)  # fmt: skip
