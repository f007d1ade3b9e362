"""The least epsilon of any requirement and utility: closed forms, bisection, proofs, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fuzzing.random_least import checked, random_problem

from pmlopt import (
    LDP,
    LIP,
    PML,
    AllPriors,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    L1Ball,
    MaximalLeakage,
    MetricPrivacy,
    MutualInformation,
    Prior,
    RenyiPML,
    Secret,
    SibsonLeakage,
    design,
    least_leakage,
    solve,
    sweep,
)
from pmlopt.errors import PmloptError, PrivacyError, ProgramError, UtilityError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import CoordinateLoss, GuessingProbability
from pmlopt.programs import Status
from pmlopt.programs.least_leakage.epsilon_certificate import LeastEpsilonCertificate
from pmlopt.programs.least_leakage.epsilon_program import LeastEpsilon

GUESS = ExpectedGain(np.eye(4))
EVEN = [0.25] * 4
P = [0.4, 0.3, 0.2, 0.1]
SECRET = Secret(np.array([[0.3, 0.1, 0.1, 0.05], [0.1, 0.2, 0.1, 0.05]]))


def solved(*arguments: Any, **options: Any) -> Any:
    result = solve(least_leakage(*arguments, **options))
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify()
    assert isinstance(result.certificate, LeastEpsilonCertificate)
    return result


class TestClosedForms:
    """Levels that are known by a formula."""

    @pytest.mark.parametrize(
        ("family", "reach", "level"),
        [
            (LDP, 0.5, math.log(3)),  # randomized response: e / (e + N - 1)
            (lambda level: MetricPrivacy(level, "hamming"), 0.5, math.log(3)),  # the same
            (MaximalLeakage, 0.5, math.log(2)),  # the guess is right with e^level / N
            (LIP, 0.5, math.log(2)),  # 1/2 is e^level / 4 at most, and 1/6 is e^-level / 4 at least
        ],
    )
    def test_guess_of_even_letters(
        self, family: Callable[[float], Requirement], reach: float, level: float
    ) -> None:
        found = solved(EVEN, family, GUESS, reach)
        assert found.bound <= level + 1e-9
        assert found.value == pytest.approx(level, abs=2e-7)

    def test_information_of_pairs_that_stay_together(self) -> None:
        found = solved(EVEN, MutualInformation(), reach=math.log(2))
        assert found.value == pytest.approx(math.log(2), abs=2e-7)

    def test_guessing_probability_is_the_expected_gain_of_a_guess(self) -> None:
        columns = solved(P, GuessingProbability(), reach=0.7)
        assert columns.value == pytest.approx(
            solve(least_leakage(P, GUESS, expected=0.7)).value, abs=1e-6
        )

    def test_error_of_randomized_response(self) -> None:
        # two even letters, truth with probability t: each frequency has the variance 1/4 / (2t - 1)^2
        truth = math.exp(1.0) / (1 + math.exp(1.0))
        found = solved([0.5, 0.5], LDP, EstimationError(), 0.5 / (2 * truth - 1) ** 2)
        assert found.value == pytest.approx(1.0, abs=1e-6)

    def test_ball_without_radius_is_the_prior(self) -> None:
        over = solved(P, GUESS, expected=0.6, over=L1Ball(P, 0.0))
        assert over.value == pytest.approx(
            solve(least_leakage(P, GUESS, expected=0.6)).value, abs=1e-6
        )

    def test_secret_that_is_the_data_is_the_data(self) -> None:
        about = solved(P, GUESS, reach=0.6, about=Secret(np.diag(P)))
        assert about.value == pytest.approx(
            solve(least_leakage(P, GUESS, expected=0.6)).value, abs=1e-6
        )

    def test_orbits_are_the_listed_letters(self) -> None:
        one = IIDPrior([0.7, 0.3], 3)
        listed = one.listed()
        loss = ExpectedLoss(lambda x, y: sum(a != b for a, b in zip(x, y, strict=True)))
        orbits = solved(one, LDP, CoordinateLoss([[0, 1], [1, 0]]), 0.5)
        assert orbits.value == pytest.approx(solved(listed, LDP, loss, 0.5).value, abs=1e-6)


class TestEnds:
    """Targets that a constant reaches, that all must be released for, and beyond."""

    @pytest.mark.parametrize("family", [PML(0, over=L1Ball(P, 0.1)), LDP, LIP, MaximalLeakage])
    def test_constant_reaches(self, family: Any) -> None:
        found = solved(P, family, GUESS, 0.4)
        assert (found.value, found.bound) == (0.0, 0.0)
        assert np.ptp(found.matrix, axis=0).max() == 0

    def test_no_information_needs_no_level(self) -> None:
        assert solved(P, LDP, MutualInformation(), 0.0).value == 0.0

    def test_all_information_takes_the_rarest_letter(self) -> None:
        entropy = float(-(np.array(P) @ np.log(P)))
        assert solved(P, MutualInformation(), reach=entropy).value == pytest.approx(
            math.log(10), abs=1e-6
        )

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ((P, LDP, GUESS, 1.1), "no mechanism reaches a utility of 1.1: the largest there is"),
            (
                (P, MutualInformation(), None, 1.3),
                "the largest there is, whatever is revealed, is 1.2798",
            ),
            (
                (P, LDP, EstimationError(), 0.69),
                "the smallest there is, whatever is revealed, is 0.7",
            ),
            ((P, LDP, GUESS, 1.0), "an infinite level of ldp"),
            ((P, PML(0, over=AllPriors(4)), GUESS, 1.0), "an infinite level of pml"),
        ],
    )
    def test_out_of_reach(self, arguments: tuple[Any, ...], words: str) -> None:
        with pytest.raises(ProgramError, match=words):
            least_leakage(*arguments)

    def test_short_of_all_has_a_level(self) -> None:
        found = solved(P, LDP, GUESS, 1 - 1e-6)
        assert 12 < found.value < 17  # -log of what other outputs may have, up to the prior


class TestProofs:
    """Both ends are in the certificate, and a false one is found."""

    CASES: tuple[tuple[Any, ...], ...] = (
        (P, LDP, GUESS, 0.6),
        (P, LIP, MutualInformation(), 0.2),
        (P, LDP, EstimationError(), 4.0),
    )

    @pytest.mark.parametrize("arguments", CASES)
    def test_false_ends_are_found(self, arguments: tuple[Any, ...]) -> None:
        certificate = solved(*arguments).certificate
        proof, witness = certificate.proof, certificate.witness
        sign = 1 if witness.is_maximised else -1
        false = [
            replace(certificate, value=certificate.value - 1e-3),
            replace(certificate, bound=certificate.bound + 1e-9),
            replace(certificate, bound=certificate.bound - 1e-3),
            replace(certificate, proof=None),
            replace(certificate, reach=certificate.reach + sign * 1e-3),
            replace(certificate, reach=certificate.reach - sign * 1e-3),
            replace(certificate, proof=replace(proof, bound=proof.bound - sign * 1e-3)),
            replace(certificate, proof=replace(proof, multipliers=None)),
            replace(certificate, proof=replace(proof, privacy=PML(certificate.bound))),
            replace(certificate, witness=replace(witness, privacy=PML(certificate.value))),
        ]
        assert [one.verify() for one in false] == [False] * len(false)

    def test_proof_of_another_utility_is_none(self) -> None:
        certificate = solved(P, LDP, GUESS, 0.6).certificate
        other = replace(certificate.proof, table=certificate.proof.table * 0.5)
        assert not replace(certificate, proof=other).verify()

    @pytest.mark.parametrize("arguments", CASES)
    def test_designs_on_both_sides(self, arguments: tuple[Any, ...]) -> None:
        """The best designs a little above and below the level exceed the target, and miss it."""
        prior, family, utility, reach = arguments
        found, sign = solved(*arguments), 1 if utility.maximised else -1
        make = (lambda level: LIP(level, level)) if family is LIP else family
        above = solve(design(prior, make(found.value + 1e-5), utility))
        below = solve(design(prior, make(found.bound - 1e-5), utility))
        assert sign * above.value > sign * reach > sign * below.value

    @pytest.mark.parametrize("seed", range(8))
    def test_random_problems_against_bisection(self, seed: int) -> None:
        checked(random_problem(np.random.default_rng([2026, seed])))

    @pytest.mark.parametrize("limit", [1e-3, 0.2])
    def test_time_limit_ends_with_a_mechanism(self, limit: float) -> None:
        p = np.random.default_rng(0).dirichlet(np.ones(8))
        for utility, reach in ((MutualInformation(), 0.3), (ExpectedGain(np.eye(8)), 0.8)):
            program = least_leakage(p, LDP, utility, reach)
            result = solve(program, time_limit=limit)
            assert result.certificate.verify()
            assert utility.value(Prior(p), result.mechanism) >= reach - 1e-12
            exact = solve(program)
            assert result.bound <= exact.value
            assert exact.bound <= result.value


PARAMETRIC: dict[str, tuple[Prior | list[float], Any, Callable[[float], Requirement]]] = {
    "over": (P, PML(0, over=L1Ball(P, 0.1)), lambda level: PML(level, over=L1Ball(P, 0.1))),
    "ldp": (P, LDP, LDP),
    "lip": (P, LIP, lambda level: LIP(level, level)),
    "maximal": (P, MaximalLeakage, MaximalLeakage),
    "metric": (P, MetricPrivacy(0, "absolute"), lambda level: MetricPrivacy(level, "absolute")),
    "secret": (SECRET.prior, PML(0, about=SECRET), lambda level: PML(level, about=SECRET)),
    "renyi": (P, RenyiPML(2, 0), lambda level: RenyiPML(2, level)),
    "sibson": (P, SibsonLeakage(2, 0), lambda level: SibsonLeakage(2, level)),
}


@pytest.mark.parametrize("name", PARAMETRIC)
def test_problem_has_the_level_as_a_parameter(name: str) -> None:
    """By how much the best mechanism stays short of the target, as the design at the level has it."""
    prior, family, make = PARAMETRIC[name]
    program = least_leakage(prior, family, GUESS, 0.95)
    assert isinstance(program, LeastEpsilon)
    assert program.problem.is_dpp()
    solver = "CLARABEL" if name in ("renyi", "sibson") else "HIGHS"
    for level in (0.05, 0.2):
        program.epsilon.value = level
        short = float(program.problem.solve(solver=solver))
        assert short == pytest.approx(
            0.95 - solve(design(prior, make(level), GUESS)).value, abs=1e-6
        )


def test_other_problems_are_at_the_least_level() -> None:
    program = least_leakage([0.5, 0.3, 0.2], MutualInformation(), reach=0.3)
    assert float(program.problem.solve(solver="HIGHS")) == pytest.approx(0.3, abs=1e-6)


def test_parameter_without_a_value_is_refused() -> None:
    other = least_leakage([0.5, 0.5], LDP, ExpectedGain(np.eye(2)), 0.7)
    assert isinstance(other, LeastEpsilon)
    other.epsilon.value = None
    with pytest.raises(PrivacyError, match="the value None"):
        other.problem.solve(solver="HIGHS")


def level_of_target(reach: float) -> Any:
    """A builder for a sweep over targets."""
    return least_leakage(EVEN, LDP, GUESS, reach)


def test_sweep_over_targets() -> None:
    table = sweep(level_of_target, {"reach": [0.25, 0.5, 0.7]})
    levels = [math.log(3 * reach / (1 - reach)) for reach in (0.25, 0.5, 0.7)]
    assert table.column("value") == pytest.approx(levels, abs=2e-7)


def test_ways_to_name_a_family() -> None:
    found = [
        solved(P, family, GUESS, 0.6).value
        for family in (LDP, LDP(0.7), "ldp", lambda level: LDP(level))
    ]
    assert np.ptp(found) < 1e-6


least_of_anything: Any = least_leakage
"""The builder, for arguments that type checkers refuse."""


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: least_of_anything(P, MutualInformation()), ProgramError, "give `reach`"),
        (lambda: least_of_anything(P, GUESS), ProgramError, "give `reach`, `expected` or `worst`"),
        (
            lambda: least_of_anything(P, MutualInformation(), LDP, 0.3),
            UtilityError,
            "is the requirement LDP",
        ),
        (lambda: least_of_anything(P, LDP), UtilityError, "is the requirement LDP"),
        (
            lambda: least_of_anything(P, LDP, MutualInformation(), "a"),
            ProgramError,
            "must be a number",
        ),
        (
            lambda: least_of_anything(P, MetricPrivacy, GUESS, 0.6),
            PrivacyError,
            "it needs distance too",
        ),
        (lambda: least_of_anything(P, "renyi-pml", GUESS, 0.6), PrivacyError, "it needs alpha too"),
        (
            lambda: least_of_anything(P, lambda x, y: x, GUESS, 0.6),
            PrivacyError,
            "fails on a level",
        ),
        (
            lambda: least_of_anything(P, lambda level: GUESS, GUESS, 0.6),
            PrivacyError,
            "must return a requirement",
        ),
        (
            lambda: least_of_anything(P, lambda level: RenyiPML(2 + level, level), GUESS, 0.6),
            PrivacyError,
            "moves",
        ),
        (lambda: least_of_anything(P, PML([0.1] * 4), GUESS, 0.6), PrivacyError, "no single level"),
        (
            lambda: least_of_anything(P, LDP, GUESS, 0.6, over=L1Ball(P, 0.1)),
            PrivacyError,
            "LDP has no `over`",
        ),
        (
            lambda: least_of_anything(P, PML(0), GUESS, 0.6, over=L1Ball(P, 0.1)),
            PrivacyError,
            "write them into",
        ),
        (lambda: least_of_anything(P, "ldpp", GUESS, 0.6), PrivacyError, "did you mean 'ldp'"),
        (
            lambda: least_of_anything(P, np.eye(4), GUESS, 0.6),
            PrivacyError,
            r"an array of shape \(4, 4\)",
        ),
        (lambda: least_of_anything(P, GUESS, reach=0.5, expected=0.5), ProgramError, "give one"),
        (lambda: least_of_anything(P, LDP, GUESS, worst=0.5), ProgramError, "`worst` is a floor"),
        (
            lambda: least_of_anything(P, GUESS, expected=0.5, worst=0, over=L1Ball(P, 0.1)),
            ProgramError,
            "leave one",
        ),
        (lambda: MetricPrivacy(lambda x, y: abs(x - y), 0.5), PrivacyError, "they are swapped"),  # type: ignore[arg-type]
        (lambda: MetricPrivacy(np.ones((4, 4)), 0.5), PrivacyError, "they are swapped"),  # type: ignore[arg-type]
        (lambda: design(P, MutualInformation(), PML(0.5)), PrivacyError, "give one such as"),  # type: ignore[call-overload]
    ],
)
def test_refusals_name_what_to_do(
    call: Callable[[], Any], error: type[PmloptError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        call()
    assert " at 0x" not in str(caught.value)
    assert "\n" not in str(caught.value)
