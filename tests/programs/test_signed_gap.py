"""The gap has a sign: a value beyond its own bound is not optimal, nor is what `verify` refutes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytest

from pmlopt import (
    LDP,
    PML,
    ConvexHull,
    ExpectedGain,
    ExpectedLoss,
    MutualInformation,
    certify,
    design,
    envelope,
    least_leakage,
    solve,
    verify_file,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.errors import SolverError
from pmlopt.model.utility import hamming
from pmlopt.programs import Status
from pmlopt.programs.linear.methods import METHODS
from pmlopt.programs.program import Method, has_foreign_parts

PRIOR = np.array([0.5, 0.3, 0.2])
POINTS = np.array([PRIOR, [0.4, 0.3, 0.3]])
GAINS = ExpectedGain(np.eye(3))
OPTIMUM = solve(design(PRIOR, LDP(1.5), GAINS))


@dataclass(frozen=True)
class Optimistic(LDP):
    """LDP whose bound on the gains is too low by a little: a mistake in a class of a user's own."""

    name: ClassVar[str] = "optimistic-ldp"
    lie: float = 3.4e-11

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        return super().support_function(prior, gains) - self.lie


class Wavering(LDP):
    """LDP whose bound on the gains is higher each time that it is computed."""

    name: ClassVar[str] = "wavering-ldp"
    calls: ClassVar[Iterator[int]] = count(1)

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        return super().support_function(prior, gains) + 1e-12 * next(self.calls)


class Narrow(ConvexHull):
    """The hull of a few laws that counts a column's gain as less than it is."""

    kind: ClassVar[str] = "narrow-hull"

    def support_function(self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float) -> float:
        return super().support_function(p, gains, exp_neg_epsilon) - 3.4e-11

    def dual_bound(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float, theta: FloatArray
    ) -> float:
        return super().dual_bound(p, gains, exp_neg_epsilon, theta) - 3.4e-11


@pytest.mark.parametrize(
    ("requirement", "lie"),
    [
        (Optimistic(1.5), 3.4e-11),
        (Optimistic(1.5, 1e-9), 1e-9),
        (PML(0.5, over=Narrow(POINTS)), 3.4e-11),
    ],
    ids=["requirement", "more", "set of priors"],
)
def test_a_value_beyond_its_own_bound_is_not_optimal(requirement: Any, lie: float) -> None:
    with pytest.raises(SolverError, match=r"beyond its bound.*pmlopt\.testing") as caught:
        solve(design(PRIOR, requirement, GAINS))
    found = caught.value.result
    assert found is not None
    assert found.status is Status.LIMIT_REACHED
    assert found.gap == pytest.approx(
        -lie, rel=0.05
    )  # but for the rounding that is added to a bound
    assert found.certificate.is_beyond_bound
    assert not found.certificate.verify()
    assert found.to_dict()["gap"] == found.gap


@pytest.mark.parametrize("requirement", [Optimistic(1.5, 1e-18), PML(0.5, over=ConvexHull(POINTS))])
def test_a_class_of_a_users_own_that_is_right_is_optimal(requirement: Any) -> None:
    result = solve(design(PRIOR, requirement, GAINS))
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify()


def test_what_verify_refutes_is_not_returned_for_a_class_of_a_users_own() -> None:
    program = design(PRIOR, Wavering(1.5), GAINS)
    with pytest.raises(SolverError, match="its certificate fails: bound: FAILS") as caught:
        solve(program)
    assert caught.value.result is None
    assert (
        certify(program, OPTIMUM.mechanism, OPTIMUM.certificate.multipliers).status
        is not Status.OPTIMAL
    )


def test_parts_of_a_users_own_are_found_wherever_they_are() -> None:
    hull = Narrow(POINTS)
    foreign = [Optimistic(1.5), PML(0.5, over=hull), PML(0.5) & Optimistic(1.5)]
    assert all(has_foreign_parts(design(PRIOR, one, GAINS)) for one in foreign)
    assert has_foreign_parts(envelope(PRIOR, OPTIMUM.mechanism, 0.1, over=hull))
    for program in (design(PRIOR, LDP(1.5), GAINS), design(PRIOR, PML(0.5), MutualInformation())):
        assert not has_foreign_parts(program)


class TestTheSign:
    """The gap is the bound less the value for a gain, and the value less the bound for a loss."""

    CASES = (
        OPTIMUM,
        solve(design(PRIOR, LDP(1.5), ExpectedLoss(hamming))),
        solve(design(PRIOR, PML(0.5), MutualInformation())),
        solve(least_leakage(PRIOR, GAINS, expected=0.8)),
        solve(envelope(PRIOR, OPTIMUM.mechanism, 0.1)),
    )
    SENSES = (1, -1, 1, -1, 1)

    @pytest.mark.parametrize(("result", "sign"), list(zip(CASES, SENSES, strict=True)))
    def test_a_value_moved_beyond_the_bound_has_a_negative_gap(
        self, result: Any, sign: int
    ) -> None:
        moved = replace(result.certificate, value=result.bound + sign * 1e-6)
        assert moved.gap == pytest.approx(-1e-6, rel=1e-6)
        assert moved.is_beyond_bound
        assert moved.proved_gap == math.inf
        within = replace(result.certificate, value=result.bound - sign * 1e-6)
        assert within.gap == within.proved_gap == pytest.approx(1e-6, rel=1e-6)

    @pytest.mark.parametrize("result", CASES)
    def test_rounding_alone_does_not_count(self, result: Any) -> None:
        certificate = result.certificate
        assert 0 < certificate.bound_rounding < 1e-8
        assert not certificate.is_beyond_bound
        assert certificate.proved_gap >= 0

    def test_a_method_whose_value_is_beyond_its_bound_is_passed_over(self) -> None:
        program = design(PRIOR, LDP(1.5), GAINS)

        with pytest.raises(SolverError, match="1e-10 beyond its bound"):
            solve(program, Method("beyond", "a test", self._beyond))

    def test_a_file_that_states_the_gap_without_its_sign_is_refuted(self, tmp_path: Any) -> None:
        with pytest.raises(SolverError) as caught:
            solve(design(PRIOR, LDP(1.5), GAINS), Method("beyond", "a test", self._beyond))
        found: Any = caught.value.result
        found.save(tmp_path / "beyond.json")
        verdict = verify_file(tmp_path / "beyond.json")
        assert verdict.holds is False
        assert {part.name for part in verdict.failures} >= {"gap"}

    @staticmethod
    def _beyond(program: Any, options: Any, start: Any) -> Any:
        found = METHODS.certify_matrix(program, OPTIMUM.matrix, None)
        lower = replace(found.certificate, bound=found.certificate.value - 1e-10)
        return replace(found, certificate=lower)


@pytest.mark.parametrize("rare", [1e-5, 1e-7, 1e-9, 1e-12])
@pytest.mark.parametrize("requirement", [PML(30.0), PML(1.0), LDP(3.0)])
def test_where_only_a_rare_letter_can_gain_rounding_is_no_gap(
    rare: float, requirement: Any
) -> None:
    """The scale is far below the gains, and with it the tolerance; rounding is not."""
    result = solve(design([rare, 1 - rare], requirement, ExpectedGain([[0, 1], [1, 1]])))
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify()
    assert result.value == pytest.approx(1.0, abs=1e-15)  # the output 1 always: all that there is
