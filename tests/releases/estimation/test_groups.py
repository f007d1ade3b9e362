"""Shares within groups: each group from its own people, intervals of all at once."""

from __future__ import annotations

import pytest

from pmlopt import Mechanism, estimate
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.estimation.groups import estimate_within

RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])


def test_intervals_of_all_groups_hold_at_once() -> None:
    samples = {name: {"counts": [60, 40]} for name in ("a", "b", "c", "d")}
    found = estimate_within(RESPONSE, samples, 0.9)
    one = estimate(RESPONSE, [60, 40], confidence=1 - 0.1 / 4)
    assert found.confidence == 0.9
    assert found.columns["lower"].reshape(4, 2) == pytest.approx(
        one.intervals[:, 0][None].repeat(4, 0)
    )
    assert found.letters[3] == ("b", "yes")
    assert found.columns["standard_error"][:2] == pytest.approx(one.standard_errors)


def test_a_group_that_fits_no_frequencies_is_named() -> None:
    three = Mechanism([[0.4, 0.3, 0.3], [0.2, 0.4, 0.4]], ["no", "yes"], ["u", "v", "w"])
    samples = {"east": {"counts": [30, 35, 35]}, "west": {"counts": [10, 900, 90]}}
    with pytest.raises(MechanismError, match="the group 'west': no frequencies agree"):
        estimate_within(three, samples)
    with pytest.raises(InputError, match="no group"):
        estimate_within(RESPONSE, {})
