"""The utility of a design compared with releasing nothing, randomized response and releasing everything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.numbers.roots import bisect
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.utility.linear import compute_expectation
from pmlopt.programs.certificate import DesignCertificate
from pmlopt.programs.linear.certificate import LinearCertificate


@light_dataclass(frozen=True)
class UtilityBaselines:
    """The utility of a design compared with releasing nothing, randomized response and releasing everything.

    Attributes:
        utility_name: "expected gain", "expected loss", or the name of an information, with its unit.
        more_is_better: whether it is maximised.
        without_release: of the best mechanism that releases nothing.
        response: of randomized response at the same limits; None where even that much noise is not enough.
        design: of the mechanism.
        everything: of releasing the best output of each letter, with no privacy.
    """

    utility_name: str
    more_is_better: bool
    without_release: float
    response: float | None
    design: float
    everything: float

    def __str__(self) -> str:
        """Return one line: the design, and both extremes."""
        nothing = f"{self._nothing} {self.without_release:.4g}"
        ends = f"{nothing}, releasing everything {self.everything:.4g}"
        return f"{self.utility_name}: this mechanism {self.design:.4g}, {ends}"

    @property
    def _nothing(self) -> str:
        """The name of releasing nothing: a design that is worse has constraints that forbid it."""
        sign = 1 if self.more_is_better else -1
        lost = sign * (self.without_release - self.design)
        if lost <= 1e-6 * abs(self.without_release - self.everything):
            return "releasing nothing"
        return "releasing nothing (better, but against the constraints)"

    @property
    def table_rows(self) -> list[tuple[str, float]]:
        """Return (name, value) rows in display order.

        Randomized response is among them where it is worth more than releasing nothing. It gives each value
        alike, the frequent ones too, and so may lose more than the best constant output.
        """
        found = [(self._nothing, self.without_release)]
        if self.response is not None and self.more_is_better == (
            self.response > self.without_release
        ):
            found.append(("randomized response at the same limits", self.response))
        return [*found, ("this mechanism", self.design), ("releasing everything", self.everything)]


@light_dataclass(frozen=True)
class UtilityMeasure:
    """The utility function of a design, applied to baseline mechanisms.

    Attributes:
        utility_name: as of `UtilityBaselines`.
        maximised: whether more is better.
        value: of a matrix.
        nothing: the best mechanism whose output does not depend on the letter.
        everything: the best output of each letter, with no privacy.
    """

    utility_name: str
    maximised: bool
    value: Callable[[FloatArray], float]
    nothing: FloatArray
    everything: FloatArray


def make_utility_measure(certificate: DesignCertificate) -> UtilityMeasure | None:
    """Build the utility measure of a certificate's design; None for utilities without one."""
    prior = certificate.prior
    n = certificate.prior.size
    if isinstance(certificate, LinearCertificate):
        table = certificate.table
        maximised = certificate.maximised
        gains = table if maximised else -table
        outputs = np.eye(table.shape[1])
        return UtilityMeasure(
            certificate.value_name,
            maximised,
            lambda matrix: compute_expectation(prior, table, matrix),
            np.tile(outputs[(prior.pmf @ gains).argmax()], (n, 1)),
            outputs[gains.argmax(axis=1)],
        )
    # of designs with a sub-convex utility, which they have by its name
    name = getattr(certificate, "utility", None)
    if not isinstance(name, str):
        return None
    from pmlopt.model.utility import list_informations

    known = list_informations()
    if name in known:
        utility = known[name]()
        return UtilityMeasure(
            certificate.value_name,
            True,
            lambda matrix: utility.value(prior, Mechanism(matrix, prior.labels)),
            np.tile(np.eye(n)[0], (n, 1)),
            np.eye(n),
        )
    return None


def compute_baselines(certificate: DesignCertificate) -> UtilityBaselines | None:
    """Compute the baseline utilities of a certificate's design; None for utilities without them.

    Examples:
        >>> from pmlopt import PML, ExpectedLoss, design, solve
        >>> flip = solve(design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> found = compute_baselines(flip.certificate)
        >>> (
        ...     found.utility_name,
        ...     found.without_release,
        ...     found.everything,
        ...     abs(found.response - found.design) < 1e-9,
        ... )
        ('expected loss', 0.5, 0.0, True)
    """
    found = make_utility_measure(certificate)
    if found is None:
        return None
    response = fit_randomized_response(certificate)
    return UtilityBaselines(
        utility_name=found.utility_name,
        more_is_better=found.maximised,
        without_release=found.value(found.nothing),
        response=None if response is None else found.value(response),
        design=certificate.value,
        everything=found.value(found.everything),
    )


def fit_randomized_response(certificate: DesignCertificate) -> FloatArray | None:
    """Compute the generalized randomized response of smallest noise within the limits.

    The probability is the least one at which its requirement holds; None where none is below one, or the
    utility is none of those that are `make_utility_measure`.

    Examples:
        >>> from pmlopt import PML, design, solve
        >>> flip = solve(design([0.5, 0.5], PML(0.2), "hamming"))
        >>> bool(abs(fit_randomized_response(flip.certificate) - flip.matrix).max() < 1e-9)
        True
    """
    found = make_utility_measure(certificate)
    if found is None:
        return None
    everything = found.everything
    uniform = np.full(everything.shape, 1 / everything.shape[1])

    def mix_with_uniform(weight: float) -> FloatArray:
        return (1 - weight) * everything + weight * uniform

    def meets_limits(weight: float) -> bool:
        return certificate.privacy.holds(
            certificate.prior, Mechanism(mix_with_uniform(weight), certificate.prior.labels)
        )

    if not meets_limits(0.999999999):
        return None
    # the weight is found to the last digits of a float
    return mix_with_uniform(0.0 if meets_limits(0.0) else bisect(meets_limits, 0.0, 1.0, 1e-15))
