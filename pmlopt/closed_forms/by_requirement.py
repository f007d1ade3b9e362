"""The mechanisms known by formula that are candidates for an optimum under a requirement."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pmlopt import closed_forms
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy.ldp import LDP
from pmlopt.privacy.maximal_leakage import MaximalLeakage
from pmlopt.privacy.pml import PML
from pmlopt.privacy.requirement import Requirement
from pmlopt.uncertainty import ChoquetSet


def forms(prior: Prior, privacy: Requirement) -> Iterator[tuple[str, Mechanism]]:
    """The N x N forms of `pmlopt.closed_forms` that meet the requirement on this prior, by name."""
    if isinstance(privacy, PML) and (priors := privacy.priors(prior)) is not None:
        if prior.size == 2:
            lowest, rest = priors.least_mean(np.eye(2)).tolist()
            highest = max(lowest, 1 - rest)
            if lowest < 1 and highest > 0:  # else one letter is impossible but for rounding
                yield "robust_binary", closed_forms.robust_binary(lowest, highest, privacy.epsilon)
        if isinstance(priors, ChoquetSet) and priors.vacuous:
            yield "randomized_response", closed_forms.randomized_response(prior.size, privacy.epsilon)
        return
    if isinstance(privacy, PML):
        if prior.size == 2:
            yield "binary", closed_forms.binary(prior, privacy.epsilon)
        if prior.size > 1 and privacy.epsilon <= -math.log1p(-float(prior.pmf.min())):
            yield "high_privacy", closed_forms.high_privacy(prior, privacy.epsilon)
    even = prior.size > 1 and float(np.ptp(prior.pmf)) == 0
    if even and isinstance(privacy, PML | MaximalLeakage):
        yield "uniform", closed_forms.uniform(prior.size, privacy.epsilon)
    if isinstance(privacy, LDP):
        yield "randomized_response", closed_forms.randomized_response(prior.size, privacy.epsilon)
