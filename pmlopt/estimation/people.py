"""How many people it takes for intervals of a given width."""

from __future__ import annotations

import math

import numpy as np

from pmlopt.arrays import real
from pmlopt.errors import InputError
from pmlopt.estimation.estimable import estimable
from pmlopt.estimation.frequencies import confidence_of
from pmlopt.estimation.linear_weights import unbiased_weights, weighted_covariance
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import PriorLike
from pmlopt.utility.workloads import Workload, workload_matrix


def people_needed(
    prior: PriorLike,
    mechanism: MechanismLike,
    half_width: float,
    confidence: float = 0.95,
    workload: Workload = None,
) -> int:
    """The least n at which all Wald intervals are within a half-width of their estimates.

    `z^2 max_k V[k,k] / h^2`, rounded up, with the covariance `V = W (J^-1 - p p') W'` of one person at the
    prior and the normal quantile z at `1 - (1 - confidence) / (2 K)`. It is a plan: the intervals of the data
    are as wide as the data say.

    Args:
        prior: N letters, the frequencies that are expected.
        mechanism: (N, M).
        half_width: h, in units of the combinations: of a frequency, 0.01 is one in a hundred.
        confidence: with which the intervals hold together, in (0, 1).
        workload: as `estimate` takes it.

    Raises:
        MechanismError: the mechanism's rank does not allow what is asked for.
        InputError: the half-width is not positive, or the confidence outside (0, 1).

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> people_needed([0.5, 0.5], response, 0.05, workload=[[1, 0]])  # (1.96 / 0.05)^2
        1537
    """
    from scipy.special import ndtri

    p, m = paired(prior, mechanism)
    share, width = confidence_of(confidence), real(half_width, "the half-width", InputError)
    if width <= 0:
        raise InputError(f"the half-width must be positive, not {width:g}")
    combinations = workload_matrix(workload, p.labels)
    estimable(m).check(combinations)
    law = p.pmf @ m.matrix
    covariance = weighted_covariance(unbiased_weights(m.matrix, combinations, law), law, 1)
    quantile = float(ndtri((1 - share) / (2 * len(combinations))))
    needed = (quantile / width) ** 2 * max(0.0, float(np.diag(covariance).max()))
    if not needed < 1e300:
        raise InputError(f"the half-width {width:g} is too small: no number of people is enough")
    return max(1, math.ceil(needed))
