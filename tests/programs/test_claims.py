"""Claims: the gap is what lies between value and bound; the certificate of a mechanism that was given."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from strategies import pairs

from pmlopt import (
    LDP,
    LIP,
    PML,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    JointLaws,
    Mechanism,
    MutualInformation,
    Prior,
    Pufferfish,
    RenyiPML,
    Secret,
    best_worst_case,
    certify,
    design,
    distortion_leakage,
    envelope,
    envelope_design,
    least_leakage,
    load,
    queries,
    record_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.errors import MechanismError, PrivacyError, SolverUnavailableError
from pmlopt.measures import leakage_level
from pmlopt.model.utility import LinearUtility, hamming
from pmlopt.programs import Alternating
from pmlopt.programs.certificate import check_gap
from pmlopt.programs.claims import check_confidence
from pmlopt.programs.compliance import prove
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
        assert check_gap(moved, rounding, utility.maximised).holds == holds


@pytest.mark.parametrize(("beyond", "holds"), [(5e-16, True), (1.5e-15, False)])
def test_a_least_level_is_above_its_bound_but_for_last_digits(beyond: float, holds: bool) -> None:
    certificate = solve(
        least_leakage([0.5, 0.3, 0.2], ExpectedGain(np.eye(3)), expected=0.6)
    ).certificate
    moved = dataclasses.replace(certificate, value=0.5, bound=0.5 + beyond)
    assert {claim.holds for claim in moved.checks() if claim.name == "gap"} == {holds}


RARE = np.array([1.0, 1.0, 1.0, 1e-9]) / (3 + 1e-9)
# an entry of 5e-10, of which rounding to the grid of a row takes more than 1e-9 of itself
SMALL = np.array([[1, 0, 0, 0], [0, 0.25, 0.75 - 5e-10, 5e-10], [1, 0, 0, 0], [0, 0, 0.5, 0.5]])


@given(pairs())
@example((RARE, SMALL))
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
    found.save(tmp_path / "compliance.json")
    assert verify_file(tmp_path / "compliance.json").holds is True
    again = load(tmp_path / "compliance.json")
    assert again.certificate.verify()
    assert again.bound == math.inf
    again.report(tmp_path / "compliance.md")
    assert "ldp 1.09861229" in (tmp_path / "compliance.md").read_text()


FLIP = Mechanism([[0.9, 0.1], [0.1, 0.9]], ["ill", "well"], ["yes", "no"])
TOLD = Secret(
    [[0.4, 0.1], [0.1, 0.4]], labels=["ill", "well"]
)  # yes: 0.74 or 0.26 by the secret, 0.5 in all


@pytest.mark.parametrize(
    ("privacy", "said"),
    [
        (LIP(3.0, 0.5), "'yes' reveals 0.587787 nats about 'ill', and the limit is 0.5"),  # log 1.8
        (LIP(0.5, 1.0), "reveals 1.60944 nats about "),  # -log 0.2, of either letter
        (
            PML(0.1, about=TOLD),
            "'yes' reveals 0.392042 nats about 0, and the limit is 0.1",
        ),  # log 0.74 / 0.5
        (
            Pufferfish(0.1, TOLD),
            "'yes' reveals 1.04597 nats about 0, and the limit is 0.1",
        ),  # log 0.74 / 0.26
        (RenyiPML(2, 0.1), "is 0.494696 nats, and the limit is 0.1"),  # log 1.64
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_what_is_broken_most_is_named(privacy: Any, said: str) -> None:
    assert said in privacy.describe_violation(Prior([0.5, 0.5], ["ill", "well"]), FLIP)


def test_a_smaller_probability_than_the_sample_proves_is_not_checked() -> None:
    over = JointLaws.confidence(Secret.from_counts([[40, 10], [20, 30]]), 0.05)
    for delta, holds in ((0.05, True), (0.05 / 1.5, None)):
        claim = check_confidence(JointLaws(over.law, over.conditionals, delta), None)
        assert claim.holds is holds


def test_a_bound_on_an_error_takes_multipliers() -> None:
    certificate = solve(design([0.5, 0.3, 0.2], PML(0.5), EstimationError())).certificate
    assert certificate.verify()
    assert not dataclasses.replace(certificate, multipliers=None).verify()
    assert dataclasses.replace(certificate, multipliers=None, bound=0.0).verify()


# ---------------------------------------------------------------- labels


PRIOR = Prior([0.5, 0.3, 0.2], list("abc"))
GAINS = ExpectedGain(np.eye(3))
ORDER = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
PARITY = queries.ModularSum(3, 2)
GIVEN = Mechanism(np.full((3, 2), 0.5), list("abc"), list("uv"))
PROGRAMS: dict[str, Any] = {
    "linear": design(PRIOR, PML(0.5), GAINS),
    "convex": design(PRIOR, PML(0.5), MutualInformation()),
    "least": least_leakage(PRIOR, GAINS, expected=0.6),
    "rank": worst_case_utility(PRIOR, ORDER, 2),
    "worst": best_worst_case(PRIOR, ORDER, 1.0),
    "envelope": envelope(PRIOR, GIVEN, 0.1),
    "within": envelope_design(PRIOR, 0.5, 0.1, GAINS),
    "trade-off": distortion_leakage(PARITY, 0.1, 1.5),
    "records": record_leakage(PARITY, np.eye(2), 1.5),
}
REORDERED: dict[str, Mechanism] = {
    **dict.fromkeys(
        ("linear", "convex", "least", "rank", "worst", "within"),
        Mechanism(np.eye(3)[::-1], list("cba"), list("abc")),
    ),
    "envelope": Mechanism(np.eye(2), list("vu"), list("yz")),
    "trade-off": Mechanism(np.eye(2)[::-1], (1, 0), (0, 1)),
}


@pytest.mark.parametrize("kind", REORDERED)
def test_other_orders_of_labels_are_refused(kind: str) -> None:
    for use in (certify, lambda program, given: solve(program, warm_start=given)):
        with pytest.raises(MechanismError, match="same in another order"):
            use(PROGRAMS[kind], REORDERED[kind])


def test_other_outputs_are_refused() -> None:
    with pytest.raises(MechanismError, match="the outputs of the mechanism"):
        certify(PROGRAMS["linear"], Mechanism(np.eye(3), list("abc"), list("xyz")))
    assert certify(PROGRAMS["linear"], Mechanism(np.eye(3), list("abc"))).certificate.verify()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_is_printed_in_a_short_line(kind: str) -> None:
    assert repr(PROGRAMS[kind]).startswith("<")
    assert len(repr(PROGRAMS[kind])) < 80


@pytest.mark.parametrize("kind", [kind for kind in PROGRAMS if kind != "records"])
def test_a_method_of_another_kind_is_refused(kind: str) -> None:
    with pytest.raises(SolverUnavailableError, match="is no method for"):
        solve(PROGRAMS[kind], Alternating(restarts=1))
    with pytest.raises(SolverUnavailableError, match="does not solve"):
        solve(PROGRAMS[kind], "no-such-solver")
