"""The utility of a design beside that of releasing nothing, everything, or by randomized response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.utility import informations
from pmlopt.model.utility.linear import expectation
from pmlopt.programs.design_program import DesignCertificate
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.subconvex.certificate import ColumnCertificate

BISECTIONS = 50
"""Steps by which the least noise of randomized response is found: to the last digits of its share."""


@dataclass(frozen=True)
class Baselines:
    """What the utility is called, and its values.

    Attributes:
        what: "expected gain", "expected loss", or the name of an information, with its unit.
        more_is_better: whether it is maximised.
        nothing: of the best mechanism that releases nothing.
        response: of randomized response at the same limits; None where even that much noise is not enough.
        design: of the mechanism in hand.
        everything: of releasing the best output of each letter, with no privacy.
    """

    what: str
    more_is_better: bool
    nothing: float
    response: float | None
    design: float
    everything: float

    def __str__(self) -> str:
        """One line: the design, and both ends."""
        ends = f"releasing nothing {self.nothing:.4g}, releasing everything {self.everything:.4g}"
        return f"{self.what}: this mechanism {self.design:.4g}, {ends}"

    @property
    def rows(self) -> list[tuple[str, float]]:
        """The values by name, in the order in which they are told."""
        found = [("releasing nothing", self.nothing)]
        if self.response is not None:
            found.append(("randomized response at the same limits", self.response))
        return [*found, ("this mechanism", self.design), ("releasing everything", self.everything)]


def baselines(certificate: DesignCertificate) -> Baselines | None:
    """The baselines of a design with a linear or a named sub-convex utility; None for others.

    Randomized response gives each letter its best output, or with a probability a uniform one: the least
    probability at which the requirement holds.

    Examples:
        >>> from pmlopt import PML, ExpectedLoss, design, solve
        >>> flip = solve(design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> found = baselines(flip.certificate)
        >>> found.what, found.nothing, found.everything, abs(found.response - found.design) < 1e-9
        ('expected loss', 0.5, 0.0, True)
    """
    prior, n = certificate.prior, certificate.prior.size
    value: Callable[[FloatArray], float]
    if isinstance(certificate, LinearCertificate):
        table, maximised = certificate.table, certificate.maximised
        best = (table if maximised else -table).argmax(axis=1)
        means = prior.pmf @ table
        nothing = float(means.max() if maximised else means.min())
        what = "expected gain" if maximised else "expected loss"

        def value(matrix: FloatArray) -> float:
            return expectation(prior, table, matrix)

        everything = np.eye(table.shape[1])[best]
    elif isinstance(certificate, ColumnCertificate) and certificate.utility in informations():
        utility, maximised = informations()[certificate.utility](), True
        unit = ", in nats" if certificate.utility == "mutual-information" else ""
        what, everything = certificate.utility.replace("-", " ") + unit, np.eye(n)

        def value(matrix: FloatArray) -> float:
            return utility.value(prior, Mechanism(matrix, prior.labels))

        nothing = value(np.ones((n, 1)))
    else:
        return None
    response = _response(certificate, everything)
    return Baselines(
        what=what,
        more_is_better=maximised,
        nothing=nothing,
        response=None if response is None else value(response),
        design=certificate.value,
        everything=value(everything),
    )


def _response(certificate: DesignCertificate, everything: FloatArray) -> FloatArray | None:
    """The best answer of each letter, or a uniform one, with the least noise that the requirement allows."""
    uniform = np.full(everything.shape, 1 / everything.shape[1])

    def mixed(share: float) -> FloatArray:
        return np.asarray((1 - share) * everything + share * uniform)

    def holds(share: float) -> bool:
        return certificate.privacy.holds(certificate.prior, Mechanism(mixed(share), certificate.prior.labels))

    low, high = 0.0, 1.0
    if holds(low):
        return mixed(low)
    if not holds(1.0 - 1e-9):
        return None
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return mixed(high)
