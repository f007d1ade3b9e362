"""The certificate: everything a claim needs, recomputed from the matrix that is returned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pmlopt.certificate.bound import utility_bound
from pmlopt.certificate.exact import GRID, holds_exactly, rows_are_exact
from pmlopt.certificate.repair import Repair, repair
from pmlopt.checks import FloatArray
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.utility.linear import expectation

if TYPE_CHECKING:
    from pmlopt.builders import Program


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is claimed of a mechanism, and the means to check it without the solver.

    Attributes:
        prior, privacy, mechanism: what the claim is about.
        levels: the levels of the mechanism, recomputed, by name, in nats.
        value: the expected gain or loss, recomputed, in its own units.
        bound: what no mechanism under the same constraints can better: at least the value of a gain,
            at most the value of a loss. Infinite where nothing is proved.
        gap: |bound - value|.
        multipliers: (N,) the rho from which `bound` follows by `utility_bound`, or None.
        residuals: how far each constraint is violated by the matrix, by name; 0 for those that pmlopt
            declares, up to rounding.
        repair: what was done to the solver's matrix.
    """

    prior: Prior
    privacy: Requirement
    mechanism: Mechanism
    levels: Mapping[str, float]
    value: float
    bound: float
    multipliers: FloatArray | None
    residuals: Mapping[str, float]
    repair: Repair

    @property
    def gap(self) -> float:
        """|bound - value|, in the units of the utility."""
        return abs(self.bound - self.value)

    @property
    def level(self) -> float:
        """The largest of `levels`, in nats."""
        return max(self.levels.values())

    def verify_exact(self) -> bool:
        """Whether the exported numbers are a mechanism that meets the requirement, as rationals.

        Every float is a dyadic rational, the prior is its counts (or its floats over their sum), and
        e^epsilon is replaced by a rational below it: True is a theorem about the numbers in the
        matrix, with rows that sum to exactly one.
        """
        matrix = self.mechanism.matrix
        return rows_are_exact(matrix) and holds_exactly(self.prior, self.privacy, matrix)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file: enough to check every claim again."""
        return {
            "privacy": {"name": self.privacy.name, "limits": self.privacy.limits},
            "levels": dict(self.levels),
            "value": self.value,
            "bound": finite(self.bound),
            "gap": finite(self.gap),
            "prior": {
                "labels": list(self.prior.labels),
                "probabilities": self.prior.probabilities.tolist(),
                "counts": None if self.prior.counts is None else list(self.prior.counts),
                "samples": self.prior.samples,
            },
            "multipliers": None if self.multipliers is None else self.multipliers.tolist(),
            "residuals": dict(self.residuals),
            "repair": {
                "theta": self.repair.theta,
                "dropped_outputs": [self.mechanism.outputs[y] for y in self.repair.dropped],
                "largest_change": self.repair.shift,
            },
            "denominator": GRID,
            "verified_exactly": self.verify_exact(),
        }


def certify(program: Program, matrix: FloatArray, multipliers: FloatArray | None) -> Certificate:
    """Repair a matrix, recompute every number from it, and bound what can be reached.

    Args:
        program: the design problem; where constraints were added to it, they hold their multipliers.
        matrix: (N, M) a solver's answer, or any mechanism.
        multipliers: (N,) any rho, best the multipliers of the row sums over p; None proves no bound.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    fixed = repair(program.prior, program.privacy, matrix)
    program.assign(fixed.matrix)
    residuals = {
        name: float(np.max(constraint.violation()))
        for name, constraint in {**program.constraints, **program.added}.items()
    }
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    value = expectation(program.prior, program.table, fixed.matrix)
    best = _best_gain(program, multipliers)
    return Certificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        levels=program.privacy.levels(program.prior, mechanism),
        value=value,
        bound=best if program.utility.maximised else -best,
        multipliers=multipliers,
        residuals=residuals,
        repair=fixed,
    )


def _best_gain(program: Program, multipliers: FloatArray | None) -> float:
    if multipliers is None or not np.isfinite(multipliers).all():
        return math.inf
    gains, constant = program.gains, 0.0
    if program.added:
        from pmlopt.certificate.added import lagrangian

        gains, constant = lagrangian(program)
    return constant + utility_bound(program.prior, program.privacy, gains, multipliers)


def finite(number: float) -> float | None:
    """The number, or None where it is infinite: JSON has no word for that."""
    return number if math.isfinite(number) else None
