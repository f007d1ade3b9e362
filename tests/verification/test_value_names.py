"""Each claim of a value states what the value is of."""

from __future__ import annotations

import re

import pytest
from saved_cases import CASES, solved

from pmlopt import PML, EstimationError, design, solve


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_value_stands_without_a_word(name: str) -> None:
    claims = [claim for claim in solved(name).certificate.checks() if claim.name == "value"]
    assert [claim.detail for claim in claims if re.match(r"-?(\d|inf)", claim.detail)] == []


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (EstimationError(), "summed variance of estimates"),
        (EstimationError(criterion="D"), "log-determinant of the covariance"),
    ],
)
def test_the_error_of_estimates_is_named(error: EstimationError, name: str) -> None:
    certificate = solve(design([0.6, 0.4], PML(0.3), error)).certificate
    details = [claim.detail for claim in certificate.checks() if claim.name == "value"]
    assert [detail.startswith(name) for detail in details] == [True]
