"""The certificate of a trade-off: every number and matrix in it is checked or derived."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from pmlopt import certify, distortion_leakage, leakage_distortion, solve
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.model.closed_forms.parity import parity_leakage
from pmlopt.model.queries import ModularSum
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.proof import (
    Cut,
    Sense,
    Tradeoff,
    TradeoffProof,
    bound_verified,
    gains_of,
    tradeoff_bound,
)

PARITY = ModularSum(3, 2)
BOTH: list[Sense] = ["leakage", "distortion"]


@cache
def certified(sense: Sense) -> TradeoffCertificate:
    program = (
        leakage_distortion(PARITY, 0.2, 1.5)
        if sense == "leakage"
        else distortion_leakage(ModularSum(2, 3), 0.2, 0.7)
    )
    return solve(program).certificate


@pytest.mark.parametrize("sense", BOTH)
class TestFalseClaims:
    def test_mechanisms(self, sense: Sense) -> None:
        known = certified(sense)
        matrix = known.mechanism.matrix
        for other in (np.eye(*matrix.shape), matrix[:, ::-1], np.full(matrix.shape, 1 / matrix.shape[1])):
            named = Mechanism(other, known.mechanism.inputs, known.mechanism.outputs)
            moved = replace(known, mechanism=named)
            assert not moved.verify()
            reached = moved.leakage if sense == "leakage" else moved.distortion
            assert not replace(moved, value=reached, bound=min(known.bound, reached)).verify()

    def test_limits(self, sense: Sense) -> None:
        known = certified(sense)
        for limit in (known.limit * 0.9, 0.0, -1.0, math.nan, math.inf):
            assert not replace(known, limit=limit).verify()
        assert replace(known, limit=known.limit * 0.9).violation > 0

    def test_losses_and_supports(self, sense: Sense) -> None:
        known = certified(sense)
        losses, allowed = known.tradeoff.losses, known.tradeoff.allowed
        support = allowed.copy()
        support[0, 1] = False
        for tradeoff in (
            Tradeoff(losses, support),
            Tradeoff(losses, ~allowed),
            Tradeoff(-losses, allowed),
            Tradeoff(losses * math.nan, allowed),
            Tradeoff(losses[:1], allowed[:1]),
        ):
            assert not replace(known, tradeoff=tradeoff).verify()

    @pytest.mark.parametrize("change", ["weight", "posterior", "joint", "record", "entropy", "price"])
    def test_cuts(self, sense: Sense, change: str) -> None:
        known = certified(sense)
        assert known.proof is not None
        first, *others = known.proof.cuts
        size = PARITY.records
        changed: dict[str, list[Cut]] = {
            "weight": [replace(first, weight=x) for x in (-first.weight, -1e-9, math.nan, math.inf)],
            "posterior": [
                replace(first, posterior=x)
                for x in (-first.posterior, first.posterior * math.nan, first.posterior[:, :1])
            ],
            "joint": [
                replace(first, joint=x)
                for x in (-first.joint, first.joint[:, :1], first.joint[:1], 0 * first.joint)
            ],
            "record": [replace(first, record=x) for x in (-1, size)],
            "entropy": [replace(first, joint=np.eye(*first.joint.shape) / 2)],
            "price": [],
        }
        for cut in changed[change]:
            assert not replace(known, proof=TradeoffProof((cut, *others), known.proof.price)).verify()
        if change == "price":
            for price in (-1.0, math.nan, math.inf):
                assert not replace(known, proof=TradeoffProof(known.proof.cuts, price)).verify()

    def test_audits(self, sense: Sense) -> None:
        known = certified(sense)
        audit = known.audit
        low = replace(audit, value=0.01, bound=0.01)
        assert not replace(known, audit=low).verify()
        less = min(0.01, known.bound)
        assert not replace(
            replace(known, audit=low), value=0.01 if sense == "leakage" else known.value, bound=less
        ).verify()
        easier = replace(audit, entropy=audit.entropy + 0.1)
        assert not replace(known, audit=easier).verify()
        still = Mechanism(np.full(known.mechanism.matrix.shape, 1 / known.mechanism.matrix.shape[1]))
        assert not replace(known, audit=replace(audit, mechanism=still, proofs=())).verify()


@pytest.mark.parametrize("bound", [1.0, 2.0])
def test_negative_weights_prove_nothing(bound: float) -> None:
    """A cut that says nothing with the weight 1 + t, one that says less than nothing with -t."""
    known = certified("leakage")
    assert known.value == pytest.approx(parity_leakage(3, 0.2, 1.5), abs=1e-5)
    uniform = np.full((2, 2), 0.25)
    wrong = Cut(0, uniform, np.array([[0.9, 0.1], [0.1, 0.9]]), -100.0)
    proof = TradeoffProof((Cut(0, uniform, np.full((2, 2), 0.5), 101.0), wrong), 0.0)
    false = replace(replace(known, value=known.value, bound=bound), proof=proof)
    assert not false.verify()
    gains, _ = gains_of(proof.cuts, known.tradeoff.losses.shape)
    assert gains.min(axis=1).sum() > bound  # the formula alone would believe it
    assert not bound_verified(
        known.tradeoff, "leakage", known.limit, proof, known.query, known.entropy, bound
    )
    with pytest.raises(ProgramError, match="negative"):
        tradeoff_bound(known.tradeoff, "leakage", known.limit, proof)


class TestGivenMatrices:
    def test_the_optimum_of_a_parity(self) -> None:
        program = leakage_distortion(PARITY, 0.2, 1.5)
        found = certify(program, [[0.8, 0.2], [0.2, 0.8]])
        assert found.value == pytest.approx(parity_leakage(3, 0.2, 1.5), abs=1e-6)
        assert found.bound == 0
        assert found.certificate.verify()

    @pytest.mark.parametrize("sense", BOTH)
    def test_a_mechanism_past_the_limit_is_mixed(self, sense: Sense) -> None:
        """Towards the query itself in Problem 2, towards a constant in Problem 3."""
        given: list[list[float]] = [[0.5, 0.5], [0.5, 0.5]] if sense == "leakage" else [[1, 0], [0, 1]]
        program = (
            leakage_distortion(PARITY, 0.2, 1.5)
            if sense == "leakage"
            else distortion_leakage(PARITY, 0.1, 1.5)
        )
        found = certify(program, given)
        assert found.certificate.violation == 0
        assert found.certificate.verify()
        assert found.value >= found.bound

    @pytest.mark.parametrize("bad", [np.eye(3), [[0.0, 0.0], [0.5, 0.5]]])
    def test_no_mechanisms(self, bad: Any) -> None:
        with pytest.raises(MechanismError):
            certify(leakage_distortion(PARITY, 0.2, 1.5), bad)
