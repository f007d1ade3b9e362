"""The utility of a design compared with releasing nothing, randomized response and releasing everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.roots import halved
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.utility import informations
from pmlopt.model.utility.linear import expectation
from pmlopt.programs.design_program import DesignCertificate
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.subconvex.certificate import ColumnCertificate

WIDTH = 1e-15
"""Relative width at which the least noise of randomized response is found: the last digits of its share."""


@dataclass(frozen=True)
class Baselines:
    """The utility of a design compared with releasing nothing, randomized response and releasing everything.

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
        """Return one line: the design, and both extremes."""
        ends = f"releasing nothing {self.nothing:.4g}, releasing everything {self.everything:.4g}"
        return f"{self.what}: this mechanism {self.design:.4g}, {ends}"

    @property
    def rows(self) -> list[tuple[str, float]]:
        """Return the values by name, in the order in which they are shown."""
        found = [("releasing nothing", self.nothing)]
        if self.response is not None:
            found.append(("randomized response at the same limits", self.response))
        return [*found, ("this mechanism", self.design), ("releasing everything", self.everything)]


@dataclass(frozen=True)
class Measured:
    """The utility function of a design, and the mechanisms that it is compared with.

    Attributes:
        what: as of `Baselines`.
        maximised: whether more is better.
        value: of a matrix.
        nothing: the best mechanism whose output does not depend on the letter.
        everything: the best output of each letter, with no privacy.
    """

    what: str
    maximised: bool
    value: Callable[[FloatArray], float]
    nothing: FloatArray
    everything: FloatArray


def measured(certificate: DesignCertificate) -> Measured | None:
    """Make the utility measure of a design with a linear or named sub-convex utility; None for others."""
    prior, n = certificate.prior, certificate.prior.size
    if isinstance(certificate, LinearCertificate):
        table, maximised = certificate.table, certificate.maximised
        gains = table if maximised else -table
        outputs = np.eye(table.shape[1])
        return Measured(
            "expected gain" if maximised else "expected loss",
            maximised,
            lambda matrix: expectation(prior, table, matrix),
            np.tile(outputs[(prior.pmf @ gains).argmax()], (n, 1)),
            outputs[gains.argmax(axis=1)],
        )
    if isinstance(certificate, ColumnCertificate) and certificate.utility in informations():
        utility = informations()[certificate.utility]()
        unit = ", in nats" if certificate.utility == "mutual-information" else ""
        return Measured(
            certificate.utility.replace("-", " ") + unit,
            True,
            lambda matrix: utility.value(prior, Mechanism(matrix, prior.labels)),
            np.tile(np.eye(n)[0], (n, 1)),
            np.eye(n),
        )
    return None


def baselines(certificate: DesignCertificate) -> Baselines | None:
    """Compute the baselines of a design with a linear or a named sub-convex utility; None for others.

    Examples:
        >>> from pmlopt import PML, ExpectedLoss, design, solve
        >>> flip = solve(design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> found = baselines(flip.certificate)
        >>> found.what, found.nothing, found.everything, abs(found.response - found.design) < 1e-9
        ('expected loss', 0.5, 0.0, True)
    """
    found = measured(certificate)
    if found is None:
        return None
    response = randomized_response(certificate)
    return Baselines(
        what=found.what,
        more_is_better=found.maximised,
        nothing=found.value(found.nothing),
        response=None if response is None else found.value(response),
        design=certificate.value,
        everything=found.value(found.everything),
    )


def randomized_response(certificate: DesignCertificate) -> FloatArray | None:
    """Return the best output of each letter, replaced by a uniform one as rarely as the limits allow.

    The probability is the least one at which its requirement holds; None where none is below one, or the
    utility is none of those that are `measured`.

    Examples:
        >>> from pmlopt import PML, design, solve
        >>> flip = solve(design([0.5, 0.5], PML(0.2), "hamming"))
        >>> bool(abs(randomized_response(flip.certificate) - flip.matrix).max() < 1e-9)
        True
    """
    found = measured(certificate)
    if found is None:
        return None
    everything = found.everything
    uniform = np.full(everything.shape, 1 / everything.shape[1])

    def mixed(share: float) -> FloatArray:
        return np.asarray((1 - share) * everything + share * uniform)

    def holds(share: float) -> bool:
        return certificate.privacy.holds(certificate.prior, Mechanism(mixed(share), certificate.prior.labels))

    if not holds(1.0 - 1e-9):
        return None
    return mixed(0.0 if holds(0.0) else halved(holds, 0.0, 1.0, WIDTH))
