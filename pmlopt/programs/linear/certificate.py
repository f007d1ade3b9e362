"""The certificate of a linear design: expected gain or loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.programs.design_certificate import DesignCertificate
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
    """

    gains: FloatArray
    constant: float
    maximised: bool
    table: FloatArray

    @property
    def flat(self) -> bool:
        return bool((np.ptp(self.table, axis=1) == 0).all())

    def utility_record(self) -> dict[str, Any]:
        return {"kind": "gain" if self.maximised else "loss", "table": self.table.tolist()}

    def bound_record(self) -> dict[str, Any]:
        return {"gains": self.gains.tolist(), "constant": finite(self.constant)}
