"""Mechanisms as OpenDP measurements."""

import math

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

from pmlopt import LDP, PML, ExpectedLoss, Mechanism, design, ldp_level, solve
from pmlopt.adapters.measurements import ldp_measurement, pml_measurement
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError
from pmlopt.model.utility import hamming
from pmlopt.programs.exact.rounding import is_met_exactly

dp.enable_features("contrib", "honest-but-curious")
PRIOR = Prior([0.5, 0.3, 0.2], labels=["a", "b", "c"])


def test_opendp_maps_distances_to_a_level_that_is_proved() -> None:
    mechanism = solve(design(PRIOR, LDP(1.0), ExpectedLoss(hamming))).mechanism
    measurement = ldp_measurement(mechanism)
    assert measurement.map(0) == 0.0
    assert measurement.map(1) == pytest.approx(ldp_level(mechanism), abs=1e-12)
    assert measurement.map(1) <= 1.0 or math.isclose(measurement.map(1), 1.0, abs_tol=1e-15)
    assert is_met_exactly(PRIOR, LDP(measurement.map(1)), mechanism.matrix)
    assert {measurement(letter) for letter in "abcabcabc"} <= {"a", "b", "c"}
    twice = dp.c.make_composition([measurement, measurement])
    assert twice.map(1) == pytest.approx(2 * ldp_level(mechanism), abs=1e-9)
    told = pml_measurement(PRIOR, solve(design(PRIOR, PML(0.5), ExpectedLoss(hamming))).mechanism)
    assert told.map(1) <= 0.5
    assert told.output_measure != dp.max_divergence()  # leakage has a divergence of its own


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(MechanismError, match="not locally differentially private"):
        ldp_measurement([[1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(MechanismError, match="do not sum to exactly one"):
        ldp_measurement([[1 / 3, 2 / 3 + 1e-12], [0.5, 0.5]])
    with pytest.raises(OpenDPException, match="the value 7 is not an input"):
        ldp_measurement([[0.75, 0.25], [0.25, 0.75]])(7)
    answers = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
    for other in ("Yes", "maybe"):  # OpenDP's own randomized response answers these at random
        with pytest.raises(OpenDPException, match="is not an input"):
            ldp_measurement(answers)(other)
