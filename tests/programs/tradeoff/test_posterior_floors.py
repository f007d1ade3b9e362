"""Bounds by the posteriors of a mechanism in which entries are the solver's noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pmlopt import leakage_distortion, solve
from pmlopt.model import queries
from pmlopt.programs import Status
from pmlopt.programs.tradeoff import best_response


def test_a_prior_on_noise_does_not_spoil_the_bound() -> None:
    """The number of ones of five records: without the floors the search ends with a gap of 0.2 nats."""
    result = solve(leakage_distortion(queries.Weight(5), 0.5, 2.5 * math.log(2)))
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify()


@pytest.mark.parametrize("floor", best_response.POSTERIOR_FLOORS)
def test_posteriors_are_laws_at_every_floor(floor: float) -> None:
    matrix = np.array([[1.0, 0.0, 0.0], [1e-9, 0.5, 0.5 - 1e-9]])
    joint = np.array([[0.5, 0.0], [0.25, 0.25]])
    (cut,) = best_response._list_cuts([(0, joint, 0.7)], matrix, floor)
    assert (cut.record, cut.weight) == (0, 0.7)
    assert cut.posterior.sum(axis=0) == pytest.approx(np.ones(3))
    assert (cut.posterior > 0).all()
