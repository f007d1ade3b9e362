"""The certificate of a linear design: expected gain or loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.privacy.requirement import Witness
from pmlopt.programs.design_certificate import DesignCertificate
from pmlopt.programs.linear.affine_constraints import AffineConstraint
from pmlopt.result import finite


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearCertificate(DesignCertificate):
    """The certificate of an expected gain or loss.

    The bound is `constant + utility_bound(prior, privacy, gains, multipliers)`, negated for a loss.

    Attributes:
        gains: (N, M) what `utility_bound` was applied to: the program's centred gains, changed by the
            multipliers of added constraints where there are any.
        constant: what was added to it.
        maximised: whether the table holds gains.
        table: (N, M) the gain or loss.
        witness: from which the requirement's part in the bound follows; see `Requirement.witness`.
        added: the constraints that were added; None where one is not affine in the mechanism alone.
    """

    kind: ClassVar[str] = "linear"

    gains: FloatArray
    constant: float
    maximised: bool
    table: FloatArray
    witness: Witness
    added: tuple[AffineConstraint, ...] | None = ()

    @property
    def flat(self) -> bool:
        return bool((np.ptp(self.table, axis=1) == 0).all())

    def utility_record(self) -> dict[str, Any]:
        return {"kind": "gain" if self.maximised else "loss", "table": self.table.tolist()}

    def bound_record(self) -> dict[str, Any]:
        """The witness, and the constraints; the gains where those are not in the record."""
        witness = {"witness": {name: array.tolist() for name, array in self.witness.items()}}
        if self.added is None:
            return {**witness, "gains": self.gains.tolist(), "constant": finite(self.constant), "added": None}
        return {**witness, "added": [constraint.record for constraint in self.added]}
