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


def test_the_error_of_estimates_is_named() -> None:
    for criterion, word in (
        ("A", "summed variance of estimates"),
        ("D", "log-determinant of the cov"),
    ):
        certificate = solve(
            design([0.6, 0.4], PML(0.3), EstimationError(criterion=criterion))
        ).certificate
        assert next(one for one in certificate.checks() if one.name == "value").detail.startswith(
            word
        )
