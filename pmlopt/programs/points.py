"""What a solver left in the variables of a program, as a mechanism."""

from __future__ import annotations

import numpy as np

from pmlopt.backends.outcome import Point
from pmlopt.program import Design
from pmlopt.programs.subconvex.fewest_outputs import fewest_outputs
from pmlopt.programs.subconvex.program import ColumnDesign


def point_of(program: Design) -> Point:
    """The mechanism and the multipliers of its rows over the prior; ties between columns are broken."""
    duals = program.constraints["rows"].dual_value
    multipliers = None if duals is None else np.asarray(duals) / program.prior.pmf
    if not isinstance(program, ColumnDesign):
        return Point(np.asarray(program.mechanism.value), multipliers)
    weights = np.asarray(program.variables["weights"].value)
    if duals is None:
        return Point(program.lifts * weights, None)
    lifts, kept = fewest_outputs(program.lifts, program.worths, np.asarray(duals), weights)
    return Point(lifts * kept, multipliers)
