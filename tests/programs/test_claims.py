"""Claims: the gap is what lies between value and bound; the certificate of a mechanism that was given."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from strategies import pairs

from pmlopt import LDP, PML, ExpectedGain, ExpectedLoss, Prior, design, load, solve
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.model.utility import LinearUtility, hamming
from pmlopt.programs.claims import gap_claim
from pmlopt.programs.held import prove
from pmlopt.verification import verify_file


@pytest.mark.parametrize("utility", [ExpectedGain([[1.0, 0.0], [0.0, 1.0]]), ExpectedLoss(hamming)])
def test_a_value_beyond_its_bound_by_more_than_rounding_is_found(utility: LinearUtility) -> None:
    certificate = solve(design([0.5, 0.5], PML(0.3), utility)).certificate
    sign = 1.0 if utility.maximised else -1.0
    for beyond, rounding, holds in (
        (0.0, 0.0, True), (-1.0, 0.0, True), (2.0**-40, 0.0, False), (2.0**-40, 2.0**-40, True),
        (2.0**-39, 2.0**-40, False),
    ):  # fmt: skip
        moved = dataclasses.replace(certificate, value=0.5 + sign * beyond, bound=0.5)
        assert gap_claim(moved, rounding, utility.maximised).holds == holds


@given(pairs())
def test_its_level_is_proved_of_a_matrix_next_to_it(pair: tuple[np.ndarray, np.ndarray]) -> None:
    prior, matrix = pair
    level = leakage_level(prior, matrix)
    found = prove(prior, PML(level + 1e-9), matrix)
    assert found.certificate.verify()
    assert found.level <= level + 1e-9
    assert np.abs(found.matrix - matrix).max() <= 1e-9
    if level > 1e-6:
        with pytest.raises(PrivacyError, match="the limit is"):
            prove(prior, PML(level / 2), matrix)


def test_it_is_saved_verified_and_reported(tmp_path: Path) -> None:
    prior = Prior.from_counts({"no": 2, "yes": 2})
    found = prove(prior, PML(0.6) & LDP(1.2), [[0.75, 0.25], [0.25, 0.75]])
    assert found.value == pytest.approx(math.log(3))  # of both levels the larger one
    found.save(tmp_path / "held.json")
    assert verify_file(tmp_path / "held.json").holds is True
    again = load(tmp_path / "held.json")
    assert again.certificate.verify()
    assert again.bound == math.inf
    again.report(tmp_path / "held.md")
    assert "ldp 1.09861229" in (tmp_path / "held.md").read_text()
