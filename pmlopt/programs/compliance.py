"""A mechanism of any origin with the proof that it meets a requirement."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from pmlopt.core.numbers.arrays import bound_sum_rounding
from pmlopt.data.mechanism import Mechanism, MechanismLike, pair_with_names
from pmlopt.data.prior import PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.certificate import ListedCertificate, Status, Timings, WarmStart
from pmlopt.programs.claims import Claim, check_bound, check_value
from pmlopt.programs.exact.rounding import (
    drop_noise,
    is_met_exactly,
    repair_matrix,
    round_rows_to_grid,
)
from pmlopt.programs.result import Result


@dataclass(frozen=True, eq=False, kw_only=True)
class ComplianceCertificate(ListedCertificate):
    """The claim that a given, not optimized, mechanism meets a requirement.

    The value is the largest level of the mechanism that the requirement limits, in nats.
    """

    kind: ClassVar[str] = "compliance"
    is_of_design: ClassVar[bool] = False

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        return "level in nats"

    def _check_value(self) -> Claim:
        """Check the claim that the value is the level of the mechanism."""
        found = self.level
        rounding = bound_sum_rounding(self.prior.size, max(1.0, abs(found)))
        return check_value(self.value, found, rounding, name=self.value_name)

    def _check_bound(self) -> Claim:
        """Check that no bound is claimed."""
        return check_bound(self.bound, None, True)

    def checks(self) -> tuple[Claim, ...]:
        """Recheck the leakage level in rational arithmetic, and the value."""
        return (*self.level_claims, self._check_value(), self._check_bound())


def prove(
    prior: PriorLike, privacy: Requirement, mechanism: MechanismLike
) -> Result[ComplianceCertificate]:
    """Certify without a tolerance that a given mechanism meets a requirement.

    Its rows are put on the grid of floats whose sums are exactly one, which moves entries by 2^-53 or so; the
    certificate is of that matrix.

    Args:
        prior: N letters.
        privacy: the requirement.
        mechanism: (N, M).

    Raises:
        PrivacyError: it does not meet the requirement; the message names an outcome and a letter.
        MechanismError: it is on other letters.

    Examples:
        >>> from pmlopt import PML
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> found = prove([0.5, 0.5], PML(math.log(1.5)), response)
        >>> print(found.certificate.statement)
        pml 0.405465108 of at most 0.405465108 nats
        >>> prove([0.5, 0.5], PML(0.4), response)
        Traceback (most recent call last):
        ...
        pmlopt.errors.PrivacyError: the output 0 reveals 0.405465 nats about 0, and the limit is 0.4
    """
    p, m = pair_with_names(prior, mechanism)
    holds = privacy.holds(p, m)
    # noise 0: the entries of a given mechanism are meant, however small
    matrix = round_rows_to_grid(drop_noise(m.matrix, 0.0))
    if not is_met_exactly(p, privacy, matrix):
        # levels in floats are not the ones that decide, unless the grid has put a matrix past its limit
        if not holds:
            raise PrivacyError(privacy.describe_violation(p, m))
        matrix = repair_matrix(p, privacy, m.matrix, noise=0.0).matrix
    exact = Mechanism(matrix, m.inputs, m.outputs)
    claim = ComplianceCertificate(
        mechanism=exact, value=0.0, bound=math.inf, privacy=privacy, prior=p
    )
    certificate = replace(claim, value=claim.level)
    return Result(
        Status.UNPROVED,
        certificate,
        "given",
        "nothing was optimised: the mechanism was given",
        (),
        None,
        False,
        Timings(0.0, 0.0, 0.0, 0.0),
        None,
        WarmStart("given", {}),
    )
