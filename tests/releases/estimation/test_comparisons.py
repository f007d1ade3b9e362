"""The power of comparisons of two groups, beside formulas by hand and fits to expected counts."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from pmlopt import Mechanism, Prior, design, estimation, solve
from pmlopt.errors import InputError, MechanismError
from pmlopt.estimation import (
    coefficient_error,
    comparison_power,
    cross_mechanism,
    detectable_difference,
    people_to_compare,
)
from pmlopt.model.privacy import PML

RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
FIRST, SECOND = Prior([0.7, 0.3], ["no", "yes"]), Prior([0.6, 0.4], ["no", "yes"])
# of an answer, l (1 - l) / 0.5^2 with l = 0.25 + 0.5 f: 0.96 and 0.99
ERROR = 2 * (0.96 + 0.99)


def test_the_power_of_a_difference_is_that_of_the_normal_test() -> None:
    expected = norm.cdf(0.1 / sqrt(ERROR / 3000) - norm.ppf(0.975))
    assert comparison_power(FIRST, SECOND, RESPONSE, "yes", 3000) == pytest.approx(expected)
    needed = people_to_compare(FIRST, SECOND, RESPONSE, "yes")
    assert needed == np.ceil(((norm.ppf(0.975) + norm.ppf(0.8)) / 0.1) ** 2 * ERROR)
    quarter = people_to_compare(FIRST, SECOND, RESPONSE, "yes", share=0.25)
    spread = 0.96 / 0.25 + 0.99 / 0.75
    assert quarter == np.ceil(((norm.ppf(0.975) + norm.ppf(0.8)) / 0.1) ** 2 * spread)


def test_the_power_of_an_odds_ratio_is_that_of_the_logits() -> None:
    apart = log(0.4 / 0.6) - log(0.3 / 0.7)
    spread = 2 * (0.96 / 0.21**2 + 0.99 / 0.24**2)
    expected = norm.cdf(apart / sqrt(spread / 3000) - norm.ppf(0.975))
    found = comparison_power(FIRST, SECOND, RESPONSE, "yes", 3000, scale="odds-ratio")
    assert found == pytest.approx(expected)
    # the standard error of the regression at the expected answers
    table = {
        "ill": ["yes"] * 400 + ["no"] * 600 + ["yes"] * 450 + ["no"] * 550,
        "group": ["a"] * 1000 + ["b"] * 1000,
    }
    fitted = estimation.model(table, "ill ~ group", {"ill": RESPONSE})
    assert fitted.coefficients[1] == pytest.approx(apart)
    assert fitted.standard_errors[1] == pytest.approx(sqrt(spread / 2000))


def test_a_detectable_difference_is_found_with_the_power() -> None:
    found = detectable_difference(FIRST, RESPONSE, "yes", 5000)
    assert found is not None
    assert found.odds_ratio == pytest.approx(found.second / (1 - found.second) / (0.3 / 0.7))
    other = Prior([1 - found.second, found.second], ["no", "yes"])
    power = comparison_power(FIRST, other, RESPONSE, "yes", 5000)
    assert power == pytest.approx(0.8, abs=1e-3)
    below = detectable_difference(FIRST, RESPONSE, "no", 5000)
    assert below is not None
    assert below.second == pytest.approx(1 - found.second, rel=1e-3)
    assert detectable_difference(FIRST, RESPONSE, "yes", 5) is None


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="as frequent in both groups"):
        people_to_compare(FIRST, FIRST, RESPONSE, "yes")
    alone = Prior([1.0], ["yes"])
    with pytest.raises(InputError, match="share 1 in a group"):
        comparison_power(alone, alone, Mechanism([[0.5, 0.5]], ["yes"], ["a", "b"]), "yes", 10)
    with pytest.raises(InputError, match="the scale"):
        comparison_power(FIRST, SECOND, RESPONSE, "yes", 10, scale="ratio")  # type: ignore[arg-type]
    nothing = Mechanism([[0.5, 0.5], [0.5, 0.5]], ["no", "yes"], ["no", "yes"])
    with pytest.raises(MechanismError):
        comparison_power(FIRST, SECOND, nothing, "yes", 10)


PAIRS = [("no", "f"), ("no", "m"), ("yes", "f"), ("yes", "m")]
JOINT = Prior([0.4, 0.2, 0.15, 0.25], PAIRS)


def test_the_loss_of_coefficients_is_the_variance_of_the_regression() -> None:
    # both columns released alone: n times the variance, and that of a fit to the expected answers
    sexes = Mechanism([[0.8, 0.2], [0.2, 0.8]], ["f", "m"], ["f", "m"])
    cross = cross_mechanism(RESPONSE, sexes)
    loss = coefficient_error(JOINT, "ill ~ sex", ["ill", "sex"])
    outputs: Any = cross.outputs
    counts = np.round(JOINT.pmf @ cross.matrix * 10_000).astype(int)
    assert counts.sum() == 10_000
    columns = {
        name: [one[k] for one, many in zip(outputs, counts, strict=True) for _ in range(many)]
        for k, name in enumerate(("ill", "sex"))
    }
    fitted = estimation.model(columns, "ill ~ sex", {"ill": RESPONSE, "sex": sexes})
    assert fitted.coefficients[1] == pytest.approx(log(0.25 * 0.4 / (0.15 * 0.2)))
    assert loss.value(JOINT, cross) / 10_000 == pytest.approx(fitted.covariance[1, 1])


def test_a_design_for_a_coefficient_beats_that_for_all_frequencies() -> None:
    loss = coefficient_error(JOINT, "ill ~ sex", ["ill", "sex"])
    best = solve(design(JOINT, PML(0.5), loss))
    other = solve(design(JOINT, PML(0.5), "estimation-error")).mechanism
    assert best.value < loss.value(JOINT, other) - 1e-3
    assert best.value - best.bound < 1e-3 * best.value


def test_coefficients_that_a_law_has_not_are_refused() -> None:
    with pytest.raises(InputError, match="no tuple of the 2 columns"):
        coefficient_error(FIRST, "ill ~ sex", ["ill", "sex"])
    with pytest.raises(InputError, match="coefficients"):
        coefficient_error(JOINT, "ill ~ sex", ["ill", "sex"], ["age"])
    with pytest.raises(InputError, match="a coefficient"):
        coefficient_error(JOINT, "ill ~ 1", ["ill", "sex"])
