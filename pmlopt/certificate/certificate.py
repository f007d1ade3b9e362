"""The certificate: everything a claim needs, recomputed from the matrix that is returned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
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
        gap: |bound - value|, computed without the digits that all outputs share.
        multipliers: (N,) the rho from which `bound` follows, or None.
        gains: (N, M) what `utility_bound` was applied to: the program's centred gains, changed by the
            multipliers of added constraints where there are any.
        constant: what was added to it, so that `constant + utility_bound(prior, privacy, gains, multipliers)`
            is the bound, for a loss its negative.
        residuals: how far each constraint is violated by the matrix, by name; 0 for those that pmlopt
            declares, up to rounding and a margin of 2^-39. For an added constraint in small units, over
            its largest coefficient.
        repair: what was done to the solver's matrix.
    """

    prior: Prior
    privacy: Requirement
    mechanism: Mechanism
    levels: Mapping[str, float]
    value: float
    bound: float
    gap: float
    multipliers: FloatArray | None
    gains: FloatArray
    constant: float
    maximised: bool
    table: FloatArray
    residuals: Mapping[str, float]
    repair: Repair

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
        """Plain data for a JSON file: enough to check every claim again.

        The bound is `constant + utility_bound(prior, privacy, gains, multipliers)`, negated for a loss.
        """
        return {
            "utility": {"kind": "gain" if self.maximised else "loss", "table": self.table.tolist()},
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
            "bound_from": {
                "multipliers": None if self.multipliers is None else self.multipliers.tolist(),
                "gains": self.gains.tolist(),
                "constant": finite(self.constant),
            },
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
        multipliers: (N,) any rho for the centred gains, best the multipliers of the row sums over p. A few
            others that need no solver are tried too, and the best kept.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    fixed = repair(program.prior, program.privacy, matrix)
    program.assign(fixed.matrix)
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    gains, constant = _terms(program)
    rho, best = _best(program, gains, _guesses(program, gains, fixed.matrix, multipliers))
    gain = expectation(program.prior, program.centred, fixed.matrix)
    sign = 1.0 if program.utility.maximised else -1.0
    total = constant + sign * program.constant
    return Certificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        levels=program.privacy.levels(program.prior, mechanism),
        value=program.constant + sign * gain,
        bound=sign * (total + best),
        gap=abs(constant + best - gain),
        multipliers=rho,
        gains=gains,
        constant=total,
        maximised=program.utility.maximised,
        table=program.table,
        residuals=_residuals(program),
        repair=fixed,
    )


def _terms(program: Program) -> tuple[FloatArray, float]:
    """The gains and the constant of the bound; added constraints enter through their multipliers."""
    if not program.added:
        return program.centred, 0.0
    from pmlopt.certificate.added import lagrangian

    return lagrangian(program)


def _guesses(
    program: Program, gains: FloatArray, matrix: FloatArray, given: FloatArray | None
) -> Iterator[FloatArray]:
    """Multipliers to try: each letter's own gain, which is sharp at the ends; the solver's; and the solver's
    but for the rarest letters, whose multipliers it cannot tell from noise: their largest gain.
    """
    yield (matrix * gains).sum(axis=1)
    if given is not None and np.isfinite(given).all():
        yield given
        for rare in (1e-8, 1e-5):
            if (program.prior.pmf < rare).any():
                yield np.where(program.prior.pmf < rare, gains.max(axis=1), given)


def _best(
    program: Program, gains: FloatArray, guesses: Iterable[FloatArray]
) -> tuple[FloatArray | None, float]:
    """The multipliers with the least bound, and that bound."""
    best: tuple[FloatArray | None, float] = (None, math.inf)
    for rho in guesses:
        if np.isfinite(rho).all():
            bound = utility_bound(program.prior, program.privacy, gains, rho)
            if bound < best[1]:
                best = (rho, bound)
    return best


def _residuals(program: Program) -> dict[str, float]:
    residuals = {
        name: float(np.max(constraint.violation())) for name, constraint in program.constraints.items()
    }
    if program.added:
        from pmlopt.certificate.added import unit

        for name, constraint in program.added.items():
            residuals[name] = float(np.max(constraint.violation())) / unit(constraint)
    return residuals


def finite(number: float) -> float | None:
    """The number, or None where it is infinite: JSON has no word for that."""
    return number if math.isfinite(number) else None
