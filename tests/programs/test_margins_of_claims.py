"""The margins of claims, levels, statuses and limits of time: what is within them, and what is not."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import PML, Prior, design, solve
from pmlopt.model.uncertainty import Box, L1Ball, confidence_box
from pmlopt.programs import method_runs
from pmlopt.programs.best_feasible import _select_best_finished
from pmlopt.programs.certificate import Certificate, RequirementCertificate, Status
from pmlopt.programs.claims import check_confidence, check_level, check_value
from pmlopt.programs.program import MethodError
from pmlopt.programs.result import Result
from pmlopt.programs.solving import _choose_status
from pmlopt.solvers.solver_result import Deadline, MethodOptions

COUNTED = Prior.from_counts({"a": 60, "b": 30, "c": 10})


def solve_small() -> Result[Any]:
    return solve(design([0.5, 0.3, 0.2], PML(0.4), "hamming"))


@pytest.mark.parametrize("off", [0.0, 0.9e-9, -0.9e-9, 1.1e-9, -1.1e-9])
def test_a_value_is_within_its_rounding_or_not(off: float) -> None:
    assert check_value(3.0 + off, 3.0, 1e-9).holds is (abs(off) <= 1e-9)


def test_a_gap_is_positive_where_the_value_falls_short_of_the_bound() -> None:
    for maximised, value, bound in ((True, 1.0, 1.5), (False, 1.5, 1.0)):
        given: Any = SimpleNamespace(value=value, bound=bound, is_maximised=maximised)
        assert vars(Certificate)["gap"].fget(given) == 0.5


def test_a_level_is_claimed_with_the_priors_for_which_it_holds() -> None:
    privacy = PML(2.0, over=L1Ball(COUNTED, 0.1))
    claim = check_level(COUNTED, privacy, solve_small().mechanism, "the level")
    assert claim.detail == f"the level, {privacy.scope}"


@pytest.mark.parametrize(("log_less", "holds"), [(0.5e-9, True), (2e-9, None)])
def test_the_confidence_of_a_ball_is_that_of_weissman_but_for_rounding(
    log_less: float, holds: bool | None
) -> None:
    """`(2^3 - 2) e^(-m r^2 / 2)` with m = 100 draws."""
    miss = 6 * math.exp(-100 * 0.09 / 2)
    claim = check_confidence(L1Ball(COUNTED, 0.3, miss * math.exp(-log_less)), None)
    assert claim.holds is holds


@pytest.mark.parametrize(("log_less", "holds"), [(0.5e-9, None), (2e-9, False)])
def test_no_knowledge_of_the_law_shows_more_than_the_least_kappa_of_the_ball(
    log_less: float, holds: bool | None
) -> None:
    """That of the empirical law is min(.6, .4), which moves by half of the radius of .3 at most."""
    exponent = math.log((1 - 0.25) / 0.25) / (1 - 2 * 0.25)
    miss = 6 * math.exp(-100 * exponent * 0.09 / 4)
    claim = check_confidence(L1Ball(COUNTED, 0.3, miss * math.exp(-log_less)), None)
    assert claim.holds is holds


@pytest.mark.parametrize(("inward", "holds"), [(0.5e-9, True), (2e-9, None)])
def test_a_box_has_the_intervals_of_the_sample_but_for_rounding(
    inward: float, holds: bool | None
) -> None:
    made = confidence_box(COUNTED, 0.05)
    for box in (
        Box(made.lower + inward, made.upper, 0.05),
        Box(made.lower, made.upper - inward, 0.05),
    ):
        assert check_confidence(box, COUNTED).holds is holds


def test_what_rounding_takes_off_a_level_is_added_to_it() -> None:
    """In proportion to the level where it is above one, and twice as much as one next to zero may hide."""
    given: Any = SimpleNamespace(
        float_levels=({"pml": 5.0, "ldp": 0.3, "lip": 1e-3}, 0.01),
        privacy=SimpleNamespace(limits={"pml": 9.0, "ldp": 9.0, "lip": 9.0}),
    )
    levels = vars(RequirementCertificate)["levels"].func(given)
    assert levels == pytest.approx({"pml": 5.05, "ldp": 0.31, "lip": 0.02})


def test_a_probability_is_rounded_once_for_each_letter_and_for_eight_steps() -> None:
    certificate = solve_small().certificate
    assert certificate.float_levels[1] == pytest.approx(11 * np.finfo(float).eps)


def test_a_result_is_shown_with_its_matrix() -> None:
    found = solve_small()
    page = found._repr_html_()
    assert page.startswith("<table") or "Result: optimal" in page
    assert page.endswith(found.mechanism._repr_html_())


@pytest.mark.parametrize(("units", "optimal"), [(3, True), (5, False)])
def test_a_gap_may_exceed_what_is_allowed_by_four_units_of_the_value(
    units: int, optimal: bool
) -> None:
    value = 2.0**40
    given: Any = SimpleNamespace(
        certificate=SimpleNamespace(
            violation=0.0, value=value, proved_gap=1e-3 + units * math.ulp(value),
            is_beyond_bound=False,
        ),
        finished=True,
    )  # fmt: skip
    assert (_choose_status(given, 1e-3) is Status.OPTIMAL) is optimal


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_of_values_that_are_nearly_equal_the_one_of_the_least_gap_is_taken(sign: float) -> None:
    program: Any = SimpleNamespace(maximised=sign > 0)
    ended: Any = [
        SimpleNamespace(value=sign * value, certificate=SimpleNamespace(proved_gap=gap))
        for value, gap in ((1.0, 0.3), (1.0 - 1e-7, 0.2), (0.9, 0.1))
    ]
    assert _select_best_finished(program, ended) is ended[1]


def test_a_process_may_take_as_long_as_is_left_and_a_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    class End:
        """Both ends of a pipe, and the process behind it, which sends nothing."""

        def poll(self, limit: float) -> bool:
            waited.append(limit)
            return False

        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    context = SimpleNamespace(Pipe=lambda duplex: (End(), End()), Process=lambda **_: End())
    monkeypatch.setattr("multiprocessing.get_context", lambda _: context)
    nothing: Any = None
    for deadline, limit in (
        (Deadline(50.0, lambda: 40.0), 10.0 + method_runs.GRACE_SECONDS),
        (Deadline(), 3600.0),
    ):
        with pytest.raises(MethodError, match="did not end within"):
            method_runs.run_in_process(nothing, nothing, MethodOptions(deadline, 1e-7), nothing)
        assert waited[-1] == limit
