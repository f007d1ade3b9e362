"""The cvxpy side of a design by orbits of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmlopt.arrays import FloatArray, Label
from pmlopt.program import Declaration, problem_of
from pmlopt.programs.symmetric.columns import ReducedColumns
from pmlopt.symmetry.pair_orbits import PairOrbits


def declaration(
    names: Sequence[Label], columns: ReducedColumns, maximised: bool, values: FloatArray
) -> Declaration:
    """The linear program with one variable for each orbit of pairs.

    Args:
        names: of the orbits of outputs, after which the constraints of the requirement are named.
        columns: the orbits, and what is asked of them.
        maximised: whether the values are gains.
        values: (C,) the gains or losses on the orbits of pairs.
    """
    import cvxpy as cp

    orbits = columns.orbits
    lifts = cp.Variable(orbits.count, nonneg=True, name="orbits")
    law = cp.Variable(len(orbits.outputs), nonneg=True, name="output_law")
    constraints = {"rows": columns.rows @ lifts == 1, "output_law": columns.means @ lifts == law}
    variables = {"orbits": lifts, "output_law": law}
    for place, (name, own) in enumerate(zip(names, columns.privacy, strict=True)):
        part = orbits.of_output(place)
        column = cp.reshape(lifts[part], (part.stop - part.start, 1), order="F")
        mean = cp.reshape(law[place], (1, 1), order="F")
        declared = own.declare(columns.cells[place].prior, column, mean)
        constraints |= {f"{what} of {name}": one for what, one in declared.constraints.items()}
        variables |= {f"{what} of {name}": one for what, one in declared.variables.items()}
    sense = cp.Maximize if maximised else cp.Minimize
    offsets = orbit_offsets(orbits, values)
    centred = columns.weights * (values - offsets[orbits.letter])
    expression = centred @ lifts + float(orbits.masses @ offsets)
    return Declaration(problem_of(sense(expression), constraints), variables, constraints)


def orbit_offsets(orbits: PairOrbits, values: FloatArray) -> FloatArray:
    """(L,) the least value for each orbit of letters: an offset that no mechanism can change."""
    lowest = np.full(len(orbits.letters), np.inf)
    np.minimum.at(lowest, orbits.letter, values)
    return lowest


def centred_gains(orbits: PairOrbits, values: FloatArray, maximised: bool) -> FloatArray:
    """(C,) the values less the offsets, as gains."""
    centred = values - orbit_offsets(orbits, values)[orbits.letter]
    return centred if maximised else -centred
