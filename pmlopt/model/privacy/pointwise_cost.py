"""Pointwise maximal cost: leakage to an adversary who minimises a cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.model.privacy.mean_bounds import ComparedMeans, MeanBound, MeanBounds
from pmlopt.model.privacy.requirement import FieldChecks, check_exponent
from pmlopt.model.privacy.violations import compute_log_lifts, describe_largest_leak


@dataclass(frozen=True)
class PMC(MeanBounds):
    """epsilon-PMC: `q[y] <= e^epsilon P[x,y]` for all letters x and outcomes y, with q = p P.

    Whatever the cost of a wrong guess is, an outcome lowers the least expected cost by a factor of at most
    e^epsilon. This is the lower half of local information privacy, a bound on the information density from
    below, with no upper limit: no outcome rules a letter out, and how likely it makes a letter is bounded by
    what the others keep, `P[x,y] / q[y] <= (1 - e^-epsilon (1 - p[x])) / p[x]`.

    Args:
        epsilon: the bound on the pointwise maximal cost of every outcome, in nats.

    Raises:
        PrivacyError: epsilon is negative, NaN, infinite, or past 700, where e^epsilon is no float.

    Source: [saeidian2024density].

    Examples:
        >>> import math
        >>> requirement = PMC(math.log(2))
        >>> requirement.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        True
        >>> requirement.holds([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])  # 1/2 is more than twice 1/5
        False
    """

    epsilon: float
    name: ClassVar[str] = "pmc"
    field_checks: ClassVar[FieldChecks] = {"epsilon": check_exponent}
    meaning: ClassVar[str] = (
        "No outcome makes the expected cost of a guess smaller by more than e^{limit}."
    )

    @cached_property
    def bounds(self) -> tuple[MeanBound, ...]:
        """Return the inequalities `larger mean <= e^epsilon smaller mean` on each column.

        At most one for each pair of means; several only between entries and the mean.
        """
        return (MeanBound("pmc", ComparedMeans.MEAN, ComparedMeans.LETTERS, self.epsilon),)

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the outcome that violates the requirement most, and the letter that it excludes."""
        leaks = -compute_log_lifts(prior, mechanism)
        return describe_largest_leak(mechanism, leaks, prior.labels, self.epsilon)
