"""What is assumed of a user's own loss on a symmetric prior is stated by the certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pmlopt import (
    PML,
    CirclePrior,
    CoordinateLoss,
    ExpectedLoss,
    IIDPrior,
    ProductPrior,
    design,
    least_leakage,
    load,
    solve,
)
from pmlopt.errors import UtilityError
from pmlopt.model.utility import DisplacementLoss, SumOfParts
from pmlopt.programs.certificate import Verdict

LAW = (0.7, 0.3)
ODD_PAIR = ((1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1), (0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0))


def hamming(x: Any, y: Any) -> float:
    """The number of records that differ."""
    return float(sum(a != b for a, b in zip(x, y, strict=True)))


def hamming_but_for_one_pair(x: Any, y: Any) -> float:
    """The same but for one pair of tables, far from all others of its orbit."""
    length = len(x)
    return -5000.0 if (x, y) == (ODD_PAIR[0][:length], ODD_PAIR[1][:length]) else hamming(x, y)


def test_a_certificate_states_what_was_assumed_of_an_own_loss(tmp_path: Path) -> None:
    # one of 2^22 pairs differs, which no sample finds: what was looked at is stated
    result: Any = solve(design(IIDPrior(LAW, 11), PML(1.0), ExpectedLoss(hamming_but_for_one_pair)))
    certificate = result.certificate
    assert certificate.sampled_pairs >= 2**12
    (claim,) = (one for one in certificate.checks() if one.holds is None)
    assert claim.name == "symmetry"
    assert f"compared on {certificate.sampled_pairs:,} pairs" in claim.detail
    assert Verdict.from_certificate(certificate).holds is None
    assert "constant on orbits" in certificate.facts["assumed"]
    result.save(tmp_path / "own.json")
    assert load(tmp_path / "own.json").certificate == certificate


def test_a_pair_that_differs_is_found_where_pairs_are_few() -> None:
    with pytest.raises(UtilityError, match="not invariant: it is -5000"):
        design(IIDPrior(LAW, 5), PML(1.0), ExpectedLoss(hamming_but_for_one_pair))


def test_a_loss_of_the_first_record_is_found_by_the_sample() -> None:
    with pytest.raises(UtilityError, match="not invariant"):
        design(
            IIDPrior(LAW, 11),
            PML(1.0),
            ExpectedLoss(lambda x, y: hamming(x, y) + x[0] * x[1] * y[2]),
        )


def test_a_least_level_states_it_too() -> None:
    result = solve(least_leakage(IIDPrior(LAW, 11), ExpectedLoss(hamming), expected=2.5))
    assert [one.name for one in result.certificate.checks() if one.holds is None] == ["symmetry"]


@pytest.mark.parametrize(
    ("prior", "utility"),
    [
        (IIDPrior(LAW, 24), CoordinateLoss([[0, 1], [1, 0]])),
        (IIDPrior(LAW, 4), ExpectedLoss(hamming)),
        (CirclePrior(5000), DisplacementLoss(lambda d: min(d, 5000 - d))),
        (
            ProductPrior(IIDPrior(LAW, 12), CirclePrior(3)),
            SumOfParts(CoordinateLoss([[0, 1], [1, 0]]), DisplacementLoss([0, 1, 1])),
        ),
    ],
)
def test_nothing_is_assumed_of_sums_over_records_and_displacements(
    prior: Any, utility: Any
) -> None:
    assert utility.count_sampled_pairs(prior.make_pairs(utility.shape)) == 0


def test_a_sum_states_the_pairs_of_its_own_functions() -> None:
    prior = ProductPrior(IIDPrior(LAW, 11), CirclePrior(3))
    utility = SumOfParts(ExpectedLoss(hamming), DisplacementLoss([0, 1, 1]))
    own = ExpectedLoss(hamming).count_sampled_pairs(IIDPrior(LAW, 11).make_pairs())
    assert utility.count_sampled_pairs(prior.make_pairs(utility.shape)) == own > 0
