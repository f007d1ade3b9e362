"""Frequencies from released data: exact expectations over all outcomes, and independent maximisers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import EstimationError, Mechanism, Prior, estimate
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InputError, MechanismError, PriorError, PrivacyError, UtilityError
from pmlopt.model.closed_forms import randomized_response
from pmlopt.model.uncertainty import confidence_box
from pmlopt.releases.estimation import (
    cross_mechanism,
    estimable,
    half_width,
    level_needed,
    people_needed,
)
from pmlopt.releases.estimation.frequencies import maximize_likelihood
from pmlopt.releases.estimation.intervals import Intervals

P = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
TRUE = np.array([0.7, 0.25, 0.05])
OUTPUTS = ["u", "v", "w"]


def outcomes(law: FloatArray, people: int) -> Iterator[tuple[list[int], float]]:
    """Every vector of three counts with its multinomial probability."""
    for first in range(people + 1):
        for second in range(people - first + 1):
            counts = [first, second, people - first - second]
            ways = math.factorial(people) / math.prod(map(math.factorial, counts))
            yield counts, ways * math.prod(q**c for q, c in zip(law, counts, strict=True))


def test_released_values_have_the_names_of_files_or_those_of_the_mechanism() -> None:
    mechanism = Mechanism([[0.75, 0.25], [0.25, 0.75]], inputs=[1, 2])
    of_file = estimate(mechanism, released=["y0"] * 60 + ["y1"] * 40)
    named = Mechanism(mechanism.matrix, [1, 2], ["a", "b"])
    assert of_file.values.tolist() == estimate(named, counts=[60, 40]).values.tolist()
    by_name = estimate(mechanism, counts={"y1": 40, "y0": 60})
    assert by_name.values.tolist() == of_file.values.tolist()
    with pytest.raises(MechanismError, match="'y2' is none of"):
        estimate(mechanism, released=["y0", "y2"])
    with pytest.raises(MechanismError, match="have no labels"):  # 1 is a letter too
        estimate(mechanism, released=[0, 1, 1])


def test_the_linear_estimate_has_no_bias_and_the_covariance_of_its_formula() -> None:
    workload, people = np.array([[1.0, 2.0, 4.0], [0.0, 1.0, -1.0]]), 5
    law = TRUE @ P
    values, chances = [], []
    for counts, chance in outcomes(law, people):
        values.append(estimate(P, counts, "linear", workload=workload).frequencies)
        chances.append(chance)
    mean = np.array(chances) @ np.array(values)
    spread = (np.array(values) - mean).T * chances @ (np.array(values) - mean)
    assert mean == pytest.approx(workload @ TRUE, abs=1e-12)
    inverse = workload @ np.linalg.inv(P).T  # of a square mechanism there is one unbiased estimate
    assert spread == pytest.approx(
        inverse @ (np.diag(law) - np.outer(law, law)) @ inverse.T / people
    )


@pytest.mark.parametrize("workload", [None, "prefix"])
def test_exact_intervals_hold_together_with_their_confidence(workload: str | None) -> None:
    wanted = TRUE if workload is None else np.cumsum(TRUE)
    covered = 0.0
    for counts, chance in outcomes(TRUE @ P, 4):
        found = estimate(
            P, counts, confidence=0.8, workload=workload, intervals="exact", min_p_value=0.0
        )
        ends = found.intervals
        covered += chance * bool(((ends[:, 0] <= wanted) & (wanted <= ends[:, 1])).all())
    assert covered >= 0.8


def test_the_interval_of_two_letters_is_that_of_the_binomial() -> None:
    counts = [37, 63]
    box = confidence_box(counts, 0.1)
    response = [[0.75, 0.25], [0.25, 0.75]]
    ends = estimate(response, counts, confidence=0.9, intervals="exact").intervals
    assert ends[0] == pytest.approx((np.array([box.lower[0], box.upper[0]]) - 0.25) / 0.5)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 8), outputs=st.integers(2, 8))
@settings(max_examples=25, deadline=None)
def test_nothing_is_more_likely_than_the_most_likely(seed: int, size: int, outputs: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(outputs, 0.5), size)
    counts = rng.multinomial(30, rng.dirichlet(np.ones(size)) @ matrix).astype(float)
    f = maximize_likelihood(matrix, counts)
    seen = counts > 0
    slopes = matrix[:, seen] @ (counts[seen] / counts.sum() / (f @ matrix)[seen])
    assert f.min() >= 0
    assert f.sum() == pytest.approx(1)
    assert (
        slopes.max() <= 1 + 1e-9
    )  # the condition of the maximum of a concave function on the simplex


def test_cross_tables_are_those_of_the_inverse_matrices() -> None:
    other = np.array([[0.9, 0.1], [0.2, 0.8]])
    table = np.array([[0.3, 0.1], [0.2, 0.1], [0.1, 0.2]])
    counts = np.rint(1e6 * P.T @ table @ other)
    wanted = np.linalg.inv(P).T @ (counts / counts.sum()) @ np.linalg.inv(other)
    for method in ("ml", "linear"):
        found = estimate(cross_mechanism(P, other), counts.ravel(), method)
        assert found.frequencies.reshape(3, 2) == pytest.approx(wanted, abs=1e-9)
        assert found.letters[:3] == ((0, 0), (0, 1), (1, 0))
    clear = cross_mechanism(P, [("a", 1), ("b", 2)])  # a column that is released as it is
    assert (clear.matrix == cross_mechanism(P, np.eye(2)).matrix).all()
    assert clear.outputs[0] == (0, ("a", 1))


def test_means_totals_and_marginals() -> None:
    released = Mechanism(P, [10, 20, 40], ["low", "mid", "high"])
    counts = {"low": 500, "mid": 300, "high": 200}
    mean = estimate(released, counts, workload="mean")
    frequencies = estimate(released, counts).frequencies
    assert mean.frequencies == pytest.approx([frequencies @ [10, 20, 40]])
    assert mean.totals == pytest.approx(1_000 * mean.frequencies)
    assert mean.letters == ("mean",)
    assert estimate(released, counts, workload="prefix").letters == ("<= 10", "<= 20", "<= 40")
    assert estimate(released, counts, workload="range").letters[:3] == ("10", "10..20", "10..40")
    pairs = cross_mechanism(P, ["f", "m"])
    table = estimate(pairs, [10, 20, 30, 25, 15, 5], "linear").frequencies.reshape(3, 2)
    margins = estimate(pairs, [10, 20, 30, 25, 15, 5], "linear", workload="marginals").frequencies
    assert margins == pytest.approx(np.concatenate([table.sum(axis=1), table.sum(axis=0)]))


def test_a_deficient_mechanism_estimates_what_its_rank_allows() -> None:
    merged = np.array([[0.8, 0.2, 0.0], [0.8, 0.2, 0.0], [0.1, 0.9, 0.0]])
    said = r"rank 2 for 3 letters \(the outputs \(2,\) are never .* only \(2,\)"
    with pytest.raises(MechanismError, match=said):
        estimate(merged, [5, 5, 0])
    with pytest.raises(MechanismError, match="never emits it"):  # of another mechanism
        estimate(merged, [5, 5, 1])
    found = estimate(merged, [300, 200, 0], workload=estimable(merged).basis)
    assert found.frequencies == pytest.approx([5 / 7, 2 / 7], abs=1e-9)
    assert found.covariance == pytest.approx(found.covariance.T)


@pytest.mark.parametrize("intervals", ["score", "wald", "bernstein"])
def test_the_planned_people_make_intervals_as_narrow_as_asked(intervals: Intervals) -> None:
    people = people_needed(TRUE, P, 0.02, workload="prefix", intervals=intervals)
    counts = np.rint(people * (TRUE @ P))
    ends = estimate(P, counts, intervals=intervals, workload="prefix", expected=TRUE)
    widths = [
        np.ptp(ends._interval_ends(0.95, 3, intervals), axis=1).max() / 2
    ]  # before they end at 0 and 1
    assert widths == pytest.approx([0.02], rel=1e-2)
    assert half_width(TRUE, P, people, workload="prefix", intervals=intervals) <= 0.02
    assert half_width(TRUE, P, people - 1, workload="prefix", intervals=intervals) > 0.02


def test_impossible_plans_are_refused() -> None:
    for width in (0, -1, math.nan):
        with pytest.raises(InputError, match="half-width"):
            people_needed(TRUE, P, width)
    with pytest.raises(MechanismError, match="rank 1"):
        people_needed([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], 0.1)
    with pytest.raises(InputError, match="too small"):
        people_needed([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 1e-160, intervals="bernstein")
    with pytest.raises(InputError, match="cannot be planned"):
        people_needed(TRUE, P, 0.1, intervals="exact")
    with pytest.raises(InputError, match="people"):
        half_width(TRUE, P, 0)


def test_the_half_width_and_the_level_are_those_of_the_plan() -> None:
    def response(level: float) -> FloatArray:
        return randomized_response(3, level).matrix

    level, mechanism = level_needed(TRUE, response, 5_000, 0.05, most=3.0)
    assert (
        half_width(TRUE, mechanism, 5_000)
        <= 0.05
        < half_width(TRUE, response(level * (1 - 2e-3)), 5_000)
    )
    assert level_needed(TRUE, response, 10**9, 0.5, most=3.0)[0] == pytest.approx(
        3e-3
    )  # the lowest tried
    takes = people_needed(TRUE, response(1.0), 0.05)
    with pytest.raises(PrivacyError, match=f"takes {takes} people"):
        level_needed(TRUE, response, takes - 1, 0.05, most=1.0)
    with pytest.raises(MechanismError, match="rank 1"):
        level_needed(TRUE, lambda level: np.full((3, 3), 1 / 3), 100, 0.05)
    # half of the levels leave nothing to estimate: these are too low
    level, _ = level_needed(
        TRUE, lambda e: response(e) if e > 2 else np.full((3, 2), 0.5), 10**6, 0.05, most=4.0
    )
    assert 2 < level < 2.01


def test_a_level_is_sought_above_that_at_which_pml_asks_for_nothing() -> None:
    def response(level: float) -> FloatArray:
        return randomized_response(2, level).matrix

    # 600 people leave 0.05 where little is changed: e^eps / (e^eps - 1)^2 is small beside a quarter
    level, mechanism = level_needed([0.5, 0.5], response, 600, 0.05)
    assert level > math.log(2)
    assert half_width([0.5, 0.5], mechanism, 600) <= 0.05
    with pytest.raises(
        PrivacyError, match=r"44\.36\d* nats, the largest that is tried: 64 times -log min p"
    ):
        level_needed([0.5, 0.5], response, 300, 0.05)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"counts": {"d": 3}}, MechanismError, "'d' is none"),
        ({"counts": [1, 2]}, MechanismError, "2 entries for"),
        ({"counts": [0, 0, 0]}, PriorError, "no people"),
        ({"counts": {}}, PriorError, "no people"),
        ({"counts": [1, -2, 3]}, PriorError, "-2"),
        ({"counts": [1, 0.5, 3]}, PriorError, "0.5"),
        ({"counts": [1e16, 1, 1]}, PriorError, "at most"),
        ({"counts": None}, InputError, "one of the two"),
        ({"released": ["a"]}, InputError, "one of the two"),
        ({"counts": None, "released": ["a", "d"]}, MechanismError, "'d' is none"),
        ({"confidence": 1.0}, InputError, "confidence is 1"),
        ({"confidence": 0.0}, InputError, "confidence is 0"),
        ({"confidence": "much"}, InputError, "must be a number"),
        ({"method": "best"}, InputError, "'ml' or 'linear'"),
        ({"intervals": "long"}, InputError, "score, bernstein, exact, wald"),
        ({"workload": [1, 2]}, UtilityError, "2 columns for 3 letters"),
        ({"workload": [[1, 2, 0], [0, 0, 0]]}, UtilityError, "row 1 of the workload is zero"),
        ({"workload": "all"}, UtilityError, "use identity"),
        ({"workload": "mean"}, UtilityError, "no mean"),
        ({"workload": "marginals"}, UtilityError, "no marginals"),
    ],
)
def test_bad_input_is_refused(
    change: dict[str, object], error: type[Exception], message: str
) -> None:
    arguments: dict[str, object] = {"counts": [3, 4, 5], **change}
    with pytest.raises(error, match=message):
        estimate(Mechanism(P, ["x", "y", "z"], ["a", "b", "c"]), **arguments)  # type: ignore[arg-type]


def test_a_letter_that_nobody_was_seen_with_has_a_spread() -> None:
    """Of the identity the estimates are the shares, whose law has half a person more for each letter."""
    share = 0.5 / 11
    found = estimate(np.eye(2), [10, 0], "ml")
    assert found.frequencies == pytest.approx([1.0, 0.0], abs=1e-9)
    assert found.covariance[0, 0] == pytest.approx(share * (1 - share) / 10, rel=1e-6)


def test_weights_count_people_and_errors_are_of_as_many_as_tell_as_much() -> None:
    released = [0] * 30 + [1] * 30 + [2] * 40
    plain = estimate(P, released=released)
    same = estimate(P, released=released, weights=np.full(100, 2.5))
    assert same.frequencies == pytest.approx(plain.frequencies, abs=1e-12)
    assert same.covariance == pytest.approx(plain.covariance)
    assert same.people == 100
    assert [same.effective, same.total] == pytest.approx([100, 250])
    assert same.totals == pytest.approx(2.5 * plain.totals)
    # people who count twice are as if they were there twice; of 30 + 30 + 80 that is (140)^2 / 220 of them
    double = estimate(P, released=released, weights=[1.0] * 60 + [2.0] * 40)
    assert double.frequencies == pytest.approx(estimate(P, [30, 30, 80]).frequencies, abs=1e-9)
    assert double.effective == pytest.approx(140**2 / 220)
    assert (
        np.ptp(double.intervals, axis=1) > np.ptp(estimate(P, [30, 30, 80]).intervals, axis=1)
    ).all()
    for act in (lambda: double.confidence_interval(kind="bernstein"), double.posterior):
        with pytest.raises(InputError, match="weighted sample"):
            act()
    for weights in ([1.0], [-1.0] + [1.0] * 99, np.zeros(100)):
        with pytest.raises(PriorError, match="weights"):
            estimate(P, released=released, weights=weights)
    with pytest.raises(InputError, match="released column"):
        estimate(P, [30, 30, 40], weights=np.ones(100))


MERGING = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize("base", [0, 10**8, 10**9, 1_700_000_000, 1_700_000_000_000, 10**18])
def test_a_shift_of_the_labels_shifts_the_mean_and_nothing_else(base: int) -> None:
    steps = [0, 1, 5]
    counts, labels = TRUE @ P * 1_000, [base + step for step in steps]
    for kind in get_args(Intervals):
        plain = estimate(
            Mechanism(P, steps, OUTPUTS), np.rint(counts), workload="mean", intervals=kind
        )
        moved = estimate(
            Mechanism(P, labels, OUTPUTS), np.rint(counts), workload="mean", intervals=kind
        )
        assert moved.standard_errors == pytest.approx(plain.standard_errors, rel=1e-9)
        assert moved.frequencies == pytest.approx(base + plain.frequencies, rel=1e-15)
        assert moved.intervals == pytest.approx(base + plain.intervals, rel=1e-15, abs=1e-9)
    needed = [
        people_needed(Prior(TRUE, each), Mechanism(P, each, OUTPUTS), 0.05, workload="mean")
        for each in (steps, labels)
    ]
    assert needed[0] == needed[1]


@pytest.mark.parametrize("base", [0, 10**8, 10**9, 1_700_000_000_000, 10**18])
@pytest.mark.parametrize("steps", [(0, 1), (0, 1, 2), (0, 10**9, 10**9 + 1)])
def test_a_mean_that_nothing_determines_is_refused_wherever_the_labels_are(
    steps: tuple[int, ...], base: int
) -> None:
    labels = [base + step for step in steps]
    matrix = np.full((2, 2), 0.5) if len(steps) == 2 else MERGING
    mechanism, prior = Mechanism(matrix, labels, ["u", "v"]), Prior.uniform(len(steps), labels)
    for workload in ("mean", labels):
        with pytest.raises(MechanismError, match="cannot be estimated"):
            estimate(mechanism, {"u": 500, "v": 500}, workload=workload)
        with pytest.raises(MechanismError, match="cannot be estimated"):
            people_needed(prior, mechanism, 0.05, workload=workload)
        assert EstimationError(workload).value(prior, mechanism) == math.inf


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e12])
def test_intervals_and_posteriors_are_the_same_in_any_unit(unit: float) -> None:
    counts, steps = np.rint(TRUE @ P * 1_000), [0, 1, 5]
    for kind in get_args(Intervals):
        plain = estimate(Mechanism(P, steps, OUTPUTS), counts, workload="mean", intervals=kind)
        scaled = estimate(P, counts, workload=[step * unit for step in steps], intervals=kind)
        assert scaled.intervals / unit == pytest.approx(plain.intervals, rel=1e-6)
    believed = [one.posterior().mean[0] for one in (plain, scaled)]
    assert believed[1] / unit == pytest.approx(believed[0], rel=1e-6)


def test_an_estimate_prints_as_the_table_of_the_shell() -> None:
    found = estimate([[0.75, 0.25], [0.25, 0.75]], [600, 400])
    head, *rows = str(found).splitlines()
    assert (
        head == "1,000 released values; all intervals hold at once with a confidence of about 0.95"
    )
    # by hand: 0.75 x 0.7 + 0.25 x 0.3 = 0.6, and sqrt(0.6 x 0.4 / 1000) / 0.5 = 0.031
    assert rows[0].split() == ["value", "estimate", "standard", "error", "from", "to"]
    assert [row.split()[:3] for row in rows[1:]] == [
        ["0", "0.700", "0.031"],
        ["1", "0.300", "0.031"],
    ]
    assert repr(found) == "<Estimate of 2 numbers from 1,000 released values>"
    assert "<td>0.700</td>" in found._repr_html_()


@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1e-9, 0.1, 1e150, 1e200, 1e306])
def test_the_unit_of_weights_does_not_matter(unit: float) -> None:
    """7^2 / (1 + 4 + 1 + 1 + 4) people; 4 of 7 weights are on "no", whose share is (4/7 - 1/4) / (1/2)."""
    m = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
    answers, weights = ["no", "no", "yes", "no", "yes"], [1, 2, 1, 1, 2]
    found = estimate(m, released=answers, weights=[w * unit for w in weights])
    rel = 1e-3 if unit < 1e-300 else 1e-9  # subnormal numbers have few digits
    assert found.effective == pytest.approx(49 / 11, rel=rel)
    assert found.frequencies == pytest.approx([9 / 14, 5 / 14], rel=rel)
    assert found.totals.sum() == pytest.approx(7 * unit, rel=rel)


def test_weights_whose_sum_is_no_float_are_refused() -> None:
    m = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
    with pytest.raises(PriorError, match="sum to no float: divide them"):
        estimate(m, released=["no", "yes"], weights=[1.5e308, 1.5e308])
