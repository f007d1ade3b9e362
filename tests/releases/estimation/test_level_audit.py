"""Audits that may stop at any time: error rates at data-dependent stops, verdicts, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pmlopt import LevelAudit
from pmlopt.errors import InputError, MechanismError, PmloptError, PrivacyError

RUNS = 60
RISK = 0.2
MAX_WRONG = int(binom.isf(1e-6, RUNS, RISK))
LOOKS = [int(n) for n in np.unique(np.geomspace(5, 300, 7).astype(int))]

PRIOR = np.array([0.5, 0.3, 0.2])
RARE = np.concatenate([[0.5, 0.3, 0.15], np.full(5, 1e-5)])
LAWS = {
    "rare": np.append(RARE, 1 - RARE.sum()),
    "just below": np.concatenate([[1 - 15 * 0.0198], np.full(15, 0.0198)]),
    "just above": np.concatenate([[1 - 20 * 0.0202], np.full(20, 0.0202)]),
}
EPSILON = -math.log(0.02)
RANDOMISED = np.hstack([(0.2 + 0.4 * np.eye(3)) * 0.96, 0.04 * np.eye(3)])


def count_verdicts(audits: Any, drawn: Any) -> dict[str, int]:
    """Count the verdicts of audits that look often and stop as soon as they can."""
    verdicts = {"refuted": 0, "confirmed": 0, "undecided": 0}
    for audit, samples in zip(audits, drawn, strict=True):
        before = 0
        for look in LOOKS:
            if audit.add_samples(samples[before:look]) != "undecided":
                break
            before = look
        verdicts[audit.verdict] += 1
    return verdicts


@pytest.mark.parametrize("name", LAWS)
def test_verdicts_on_programs_are_wrong_as_seldom_as_they_say(name: str) -> None:
    rng, law = np.random.default_rng(1), LAWS[name]
    tail = float(law[-np.log(law) > EPSILON].sum())
    drawn = rng.choice(len(law), (RUNS, LOOKS[-1]), p=law).tolist()
    true = [LevelAudit(EPSILON, tail, confidence=1 - RISK, deterministic=True) for _ in drawn]
    assert count_verdicts(true, drawn)["refuted"] <= MAX_WRONG
    if tail:
        false = [
            LevelAudit(EPSILON, tail * (1 - 1e-6), confidence=1 - RISK, deterministic=True)
            for _ in drawn
        ]
        assert count_verdicts(false, drawn)["confirmed"] <= MAX_WRONG


@pytest.mark.parametrize("epsilon", [0.45, 0.8])
def test_verdicts_on_pairs_are_wrong_as_seldom_as_they_say(epsilon: float) -> None:
    rng, q = np.random.default_rng(2), PRIOR @ RANDOMISED
    tail = float(q[np.log(RANDOMISED.max(axis=0) / q) > epsilon].sum())
    cells = rng.choice(RANDOMISED.size, (RUNS, LOOKS[-1]), p=(PRIOR[:, None] * RANDOMISED).ravel())
    drawn = [
        list(zip(*(part.tolist() for part in np.divmod(row, 6)), strict=True)) for row in cells
    ]
    for delta, wrong in ((tail, "refuted"), (tail * (1 - 1e-6), "confirmed")):
        audits = [LevelAudit(epsilon, delta, PRIOR, 1 - RISK) for _ in drawn]
        assert count_verdicts(audits, drawn)[wrong] <= MAX_WRONG


def test_claims_that_are_far_from_the_truth_are_decided() -> None:
    rng, law = np.random.default_rng(3), LAWS["rare"]
    tail = float(law[-np.log(law) > 2.5].sum())
    drawn = rng.choice(len(law), 20_000, p=law).tolist()
    for delta, verdict in ((2 * tail, "confirmed"), (tail / 2, "refuted")):
        audit = LevelAudit(2.5, delta, deterministic=True)
        assert audit.run(iter(drawn)) == verdict
        assert audit.samples < 3_000
        lower, upper = audit.bound_tail(2.5)
        assert lower <= tail <= upper


def test_a_decided_audit_reads_no_further() -> None:
    read = []

    def outputs() -> Any:
        while True:
            read.append("same")
            yield "same"

    audit = LevelAudit(epsilon=1.0, delta=0.01)
    assert audit.run(outputs()) == "confirmed"
    assert len(read) == audit.samples


def test_the_level_is_confirmed_where_all_outcomes_are_listed() -> None:
    rng = np.random.default_rng(4)
    coins = rng.choice(["heads", "tails"], 4_000).tolist()
    listed = LevelAudit(1.0, outcomes=["heads", "tails"])
    assert listed.run(coins) == "confirmed"
    assert LevelAudit(1.0).add_samples(coins) == "undecided"
    # an outcome on the list that never comes is not known to leak little
    assert LevelAudit(1.0, outcomes=["heads", "tails", "edge"]).add_samples(coins) == "undecided"
    either: dict[str, Any] = {"epsilon": 0.5, "outcomes": ["heads", "tails"]}
    assert LevelAudit(**either, deterministic=True).add_samples(coins) == "refuted"
    # the same outputs are those of coins that leak nothing
    assert LevelAudit(**either).add_samples(coins) == "undecided"


def test_the_level_of_pairs_is_refuted_or_confirmed() -> None:
    rng = np.random.default_rng(5)
    secrets = rng.integers(0, 2, 20_000)
    shown = np.where(rng.random(20_000) < 0.75, secrets, 1 - secrets)
    drawn = list(zip(secrets.tolist(), shown.tolist(), strict=True))
    assert LevelAudit(0.3, prior=[0.5, 0.5]).run(iter(drawn)) == "refuted"  # it leaks 0.4055
    assert LevelAudit(0.5, prior=[0.5, 0.5], outcomes=[0, 1]).run(iter(drawn)) == "confirmed"
    assert LevelAudit(0.5, prior=[0.5, 0.5]).add_samples(drawn) == "undecided"
    assert LevelAudit(0.5, 0.01, prior=[0.5, 0.5]).add_samples(drawn) == "confirmed"


def test_samples_in_parts_and_at_once_count_the_same() -> None:
    samples = ["a", "b", "a", "c"] * 5
    one, parts = LevelAudit(1.5, 0.3), LevelAudit(1.5, 0.3)
    one.add_samples(samples)
    for sample in samples:
        parts.add_samples([sample])
    assert one.bound_tail(1.5) == parts.bound_tail(1.5)
    assert one.outcomes == parts.outcomes == ["a", "b", "c"]
    assert (one.samples, one.table.tolist()) == (20, parts.table.tolist())
    assert LevelAudit(1.0).bound_tail(1.0) == (0.0, 1.0)
    assert one.add_samples([]) == one.verdict


def test_many_outcomes_refute_a_level_at_once() -> None:
    for samples, level, verdict in (
        (range(4), math.log(4), "undecided"), (range(5), math.log(4), "refuted"),
        (["only"] * 50, 0.0, "undecided"),
    ):  # fmt: skip
        assert LevelAudit(level, deterministic=True).add_samples(samples) == verdict


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ({"epsilon": -1}, PrivacyError, "epsilon"), ({"epsilon": 1, "delta": 1}, PrivacyError, "delta"),
    ({"epsilon": 1, "delta": -0.1}, PrivacyError, "delta"),
    ({"epsilon": 1, "confidence": 0}, InputError, "confidence"),
    ({"epsilon": 1, "outcomes": ["a", "a"]}, InputError, "occurs twice"),
    ({"epsilon": 1, "prior": [0.5, 0.5], "deterministic": True}, InputError, "bound every program"),
])  # fmt: skip
def test_audits_that_cannot_be_meant(
    arguments: dict[str, Any], error: type[PmloptError], words: str
) -> None:
    with pytest.raises(error, match=words):
        LevelAudit(**arguments)


def test_samples_that_are_refused_are_not_counted() -> None:
    audit = LevelAudit(1.0, outcomes=["a", "b"])
    with pytest.raises(MechanismError, match="'c' is none of"):
        audit.add_samples(["a", "c"])
    pairs = LevelAudit(1.0, prior={"x": 0.5, "z": 0.5})
    with pytest.raises(MechanismError, match="'w' is none of"):
        pairs.add_samples([("x", 1), ("w", 1)])
    with pytest.raises(MechanismError, match="pairs"):
        pairs.add_samples(["x"])
    with pytest.raises(MechanismError, match="missing"):
        audit.add_samples([None])
    assert audit.samples == pairs.samples == 0
