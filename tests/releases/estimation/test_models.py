"""Regressions on released columns, beside statsmodels, moment estimators and sums over true values."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from pmlopt import Mechanism, estimation
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InputError, MechanismError, PriorError
from pmlopt.releases.estimation.observed_likelihood import LawBranch, ObservedLikelihood
from pmlopt.releases.estimation.responses import (
    CountResponse,
    LetterResponse,
    NormalResponse,
    OrderedResponse,
    Response,
)

WARNER = Mechanism([[0.7, 0.3], [0.3, 0.7]], ["no", "yes"], ["no", "yes"])
CLEAR = Mechanism(np.eye(2), ["no", "yes"], ["no", "yes"])


def make_table(people: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    ill = rng.random(people) < 0.4
    age = rng.normal(50, 15, people)
    logits = -0.5 + 0.03 * (age - 50) + 0.8 * ill
    return {
        "age": age,
        "ill": np.where(ill, "yes", "no"),
        "smokes": np.where(rng.random(people) < 1 / (1 + np.exp(-logits)), "yes", "no"),
        "visits": rng.poisson(np.exp(0.5 + 0.3 * ill)),
        "income": 1e6 + 1e5 * rng.normal(size=people),
        "drink": rng.choice(["a", "b", "c"], people),
    }


def make_design(table: dict[str, Any]) -> FloatArray:
    """The covariates of `age + ill` in formulaic's order."""
    return np.column_stack([np.ones(len(table["age"])), table["age"], table["ill"] == "yes"])


def fit_clear(response: str, **options: Any) -> estimation.FittedModel:
    letters = {"smokes": CLEAR, "drink": Mechanism(np.eye(3), list("abc"), list("abc"))}
    mechanisms = {"ill": CLEAR, **{k: v for k, v in letters.items() if k == response}}
    return estimation.model(make_table(), f"{response} ~ age + ill", mechanisms, **options)


def check_same(found: estimation.FittedModel, coefficients: Any, errors: Any) -> None:
    assert found.coefficients == pytest.approx(np.ravel(coefficients, "F"), rel=1e-8)
    assert found.standard_errors == pytest.approx(np.ravel(errors, "F"), rel=1e-8)
    assert found.noisy == pytest.approx(found.coefficients, rel=1e-8)
    assert found.information == pytest.approx(1.0, rel=1e-8)


def test_what_was_released_in_clear_gives_the_logits_of_statsmodels() -> None:
    import statsmodels.api as sm

    table = make_table()
    known = sm.Logit((table["smokes"] == "yes").astype(float), make_design(table))
    fitted = known.fit(disp=0, method="newton", tol=1e-12)
    check_same(fit_clear("smokes"), fitted.params, fitted.bse)
    sandwich = known.fit(disp=0, method="newton", tol=1e-12, cov_type="HC0")
    check_same(fit_clear("smokes", robust=True), sandwich.params, sandwich.bse)


def test_what_was_released_in_clear_gives_the_multinomial_logits_of_statsmodels() -> None:
    import statsmodels.api as sm

    table = make_table()
    known = sm.MNLogit(pd.Categorical(table["drink"]).codes, make_design(table))
    fitted = known.fit(disp=0, method="newton", tol=1e-12)
    found = fit_clear("drink")
    check_same(found, fitted.params, fitted.bse)
    assert found.names[1] == ("b", "age")
    assert found.names[3] == ("c", "Intercept")


def compute_ordered_slopes(point: Any, design: FloatArray, codes: Any) -> Any:
    """The derivatives of `sum log(F(c_y - t) - F(c_(y-1) - t))` in two slopes and two thresholds."""
    ends = np.array([-50.0, *point[2:], 50.0])
    low, high = (1 / (1 + np.exp(design @ point[:2] - ends[codes + one])) for one in (0, 1))
    falls, rises = (share * (1 - share) / (high - low) for share in (low, high))
    thresholds = [rises[codes == one].sum() - falls[codes == one + 1].sum() for one in (0, 1)]
    return np.array([*((falls - rises) @ design), *thresholds])


def test_what_was_released_in_clear_gives_the_ordered_logits_of_statsmodels() -> None:
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    table = make_table()
    order = pd.Categorical(table["drink"], list("abc"), ordered=True)
    known = OrderedModel(pd.Series(order), make_design(table)[:, 1:], distr="logit")
    fitted = known.fit(disp=0, method="newton", tol=1e-12)
    found = fit_clear("drink", family="ordered")
    params = np.asarray(fitted.params)
    coefficients = [*params[:2], *known.transform_threshold_params(params)[1:-1]]
    near = 1e-8 * min(found.standard_errors)
    assert found.coefficients == pytest.approx(coefficients, rel=1e-8, abs=near)
    assert found.noisy == pytest.approx(coefficients, rel=1e-8, abs=near)
    assert found.information == pytest.approx(1.0, rel=1e-8)
    # statsmodels' second derivatives are differences, of four digits: complex steps have all of them
    parts = make_design(table)[:, 1:], np.asarray(order.codes)
    points = found.coefficients + 1e-30j * np.eye(4)
    slopes = np.array([compute_ordered_slopes(point, *parts) for point in points])
    errors = np.sqrt(np.diag(np.linalg.inv(-slopes.imag / 1e-30)))
    assert np.abs(slopes.real[0] * errors).max() < 1e-8
    assert found.standard_errors == pytest.approx(errors, rel=1e-8)
    assert found.names == ("age", "ill[T.yes]", "a | b", "b | c")
    with pytest.raises(InputError, match="thresholds in place of an intercept"):
        estimation.model(make_table(), "visits ~ 0 + age", {}, family="ordered")


def test_a_released_covariate_in_clear_gives_the_linear_models_of_statsmodels() -> None:
    import statsmodels.api as sm

    table = make_table()
    linear = sm.OLS(table["income"], make_design(table)).fit()
    check_same(fit_clear("income"), linear.params, linear.bse)
    counts = sm.Poisson(table["visits"], make_design(table)).fit(disp=0, method="newton", tol=1e-12)
    check_same(fit_clear("visits", family="poisson"), counts.params, counts.bse)


@pytest.mark.parametrize(
    ("matrix", "truth"),
    [([[0.7, 0.3], [0.3, 0.7]], 0.7), ([[5 / 6, 1 / 6], [1 / 12, 11 / 12]], 0.75)],
)
def test_an_intercept_is_the_moment_estimator_of_a_randomized_response(
    matrix: list[list[float]], truth: float
) -> None:
    # Warner's design and forced response: P(yes) = P(yes | no) + (P(yes | yes) - P(yes | no)) share
    mechanism = Mechanism(matrix, ["no", "yes"], ["no", "yes"])
    people, yes = 500, 230
    slope = matrix[1][1] - matrix[0][1]
    share = (yes / people - matrix[0][1]) / slope
    error = np.sqrt(yes / people * (1 - yes / people) / people) / slope
    table = {"it": ["yes"] * yes + ["no"] * (people - yes)}
    found = estimation.model(table, "it ~ 1", {"it": mechanism})
    assert found.coefficients[0] == pytest.approx(np.log(share / (1 - share)), rel=1e-9)
    assert found.standard_errors[0] == pytest.approx(error / (share * (1 - share)), rel=1e-9)
    assert found.noisy[0] == pytest.approx(np.log(yes / (people - yes)), rel=1e-9)


def test_a_released_response_and_covariate_are_not_attenuated() -> None:
    # within 4 standard errors: an error in 16,000 runs, were the seed drawn anew
    rng = np.random.default_rng(7)
    ill = rng.random(4000) < 0.5
    smokes = rng.random(4000) < np.where(ill, 0.62, 0.375)
    table = {
        "ill": WARNER.sample(np.where(ill, "yes", "no"), seed=1),
        "smokes": WARNER.sample(np.where(smokes, "yes", "no"), seed=2),
    }
    found = estimation.model(table, "smokes ~ ill", {"ill": WARNER, "smokes": WARNER})
    truth = np.log(0.62 / 0.38) - np.log(0.375 / 0.625)
    error = found.standard_errors[1]
    assert abs(found.coefficients[1] - truth) < 4 * error
    assert abs(found.noisy[1] - truth) > 4 * error / 2
    assert 0 < found.information[1] < 0.1
    assert "smokes ~ ill (logit, the logits of yes), 4,000 people" in str(found)
    assert found.to_pandas().loc["ill[T.yes]", "coefficient"] == found.coefficients[1]


def make_likelihood(response: Response, people: int) -> ObservedLikelihood:
    rng = np.random.default_rng(3)
    design = rng.normal(size=(2, 3, people))
    return ObservedLikelihood(
        response, response.list_designs(design), rng.random((3, people)),
        [LawBranch(np.arange(3), np.vstack([np.ones(people), rng.normal(size=people)])),
         LawBranch(np.array([-1, 0, 1]), rng.normal(size=(1, people)))],
        rng.random(people),
    )  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    ["letters", "ordered", "letters by value", "ordered by value", "counts", "numbers"],
)
def test_derivatives_are_those_of_finite_differences(kind: str) -> None:
    rng = np.random.default_rng(4)
    responses: dict[str, Response] = {
        "letters": LetterResponse(rng.random((3, 1, 6))),
        "ordered": OrderedResponse(rng.random((4, 1, 6))),
        "letters by value": LetterResponse(rng.random((3, 3, 6))),
        "ordered by value": OrderedResponse(rng.random((4, 3, 6))),
        "counts": CountResponse(rng.integers(0, 4, 6).astype(float)),
        "numbers": NormalResponse(rng.normal(size=6)),
    }
    likelihood = make_likelihood(responses[kind], 6)
    point = rng.normal(size=likelihood.parameter_count) / 3
    terms, step = likelihood.evaluate(point), 1e-5
    for place in range(len(point)):
        moved = np.eye(len(point))[place] * step
        after, before = likelihood.evaluate(point + moved), likelihood.evaluate(point - moved)
        slope = terms.scores[place] @ likelihood.weights
        assert (after.value - before.value) / (2 * step) == pytest.approx(slope, abs=1e-7)
        curved = (after.scores - before.scores) @ likelihood.weights / (2 * step)
        assert -curved == pytest.approx(terms.information[place], abs=1e-7)


def test_the_likelihood_is_a_sum_over_true_values() -> None:
    rng = np.random.default_rng(5)
    outputs = rng.random((3, 1, 5))
    likelihood = make_likelihood(LetterResponse(outputs), 5)
    point = rng.normal(size=likelihood.parameter_count)
    ahead, law = point[:4].reshape(2, 2), point[4:8].reshape(2, 2)
    total = 0.0
    for i in range(5):
        chances = np.exp([0.0, *(law @ likelihood.law[0].design[:, i])])
        second = 1 / (1 + np.exp(-point[8] * likelihood.law[1].design[0, i]))
        branch, chance = [1.0, 1 - second, second], 0.0
        for x, y in itertools.product(range(3), range(3)):
            odds = np.exp([0.0, *(ahead @ likelihood.designs[0][:, x, i])])
            seen = likelihood.released[x, i] * outputs[y, 0, i]
            chance += chances[x] / chances.sum() * branch[x] * odds[y] / odds.sum() * seen
        total += likelihood.weights[i] * np.log(chance)
    assert likelihood.evaluate(point).value == pytest.approx(total, rel=1e-12)


def test_weights_count_people_and_clusters_join_them() -> None:
    # a weight of 2 is the same person twice, in a cluster
    table: dict[str, Any] = {"ill": ["no", "yes", "yes", "no", "yes"] * 20, "age": list(range(100))}
    weights = [1, 2] * 50
    twice = {name: np.repeat(column, weights) for name, column in table.items()}
    people = np.repeat(np.arange(100), weights)
    weighted = estimation.model(table, "ill ~ age", {"ill": WARNER}, weights=weights)
    repeated = estimation.model(twice, "ill ~ age", {"ill": WARNER}, clusters=people.tolist())
    assert weighted.coefficients == pytest.approx(repeated.coefficients, rel=1e-9)
    assert weighted.standard_errors == pytest.approx(repeated.standard_errors, rel=1e-9)
    assert weighted.robust
    with pytest.raises(PriorError, match="3 weights for 100 people"):
        estimation.model(table, "ill ~ age", {"ill": WARNER}, weights=[1, 2, 3])


def test_coefficients_that_the_data_do_not_identify_are_named() -> None:
    # nobody of region c exists among the letters that were released in clear
    three = Mechanism(np.eye(3), list("abc"), list("abc"))
    table = {"region": ["a", "b"] * 30, "ill": ["no", "yes", "yes"] * 20}
    found = estimation.model(table, "ill ~ region", {"region": three, "ill": WARNER})
    assert np.isnan(found.coefficients).tolist() == [False, False, True]
    assert found.standard_errors[2] == np.inf
    assert "do not identify region[T.c]" in found.warnings[0]
    assert found.warnings[0] in str(found)


def test_a_likelihood_that_hardly_falls_is_named() -> None:
    # 45 of 150 answers are yes: at 0.3, the least that Warner's design gives, the estimate is at its end
    table = {"ill": ["yes"] * 47 + ["no"] * 103}
    found = estimation.model(table, "ill ~ 1", {"ill": WARNER})
    assert "flat ridge along Intercept" in found.warnings[0]
    table = {"ill": ["yes"] * 900 + ["no"] * 1100}
    assert estimation.model(table, "ill ~ 1", {"ill": WARNER}).warnings == ()


def test_standard_errors_that_rest_on_few_people_are_named() -> None:
    table = {"ill": ["yes", "no", "no"] * 100, "age": [30.0, 40, 50, 60] * 75}
    weights = [1.0] * 299 + [500.0]
    found = estimation.model(table, "ill ~ age", {"ill": CLEAR}, weights=weights)
    assert "Intercept and age rests on few people" in found.warnings[-1]
    even = estimation.model(table, "ill ~ age", {"ill": CLEAR}, weights=[1.0] * 300)
    assert even.warnings == ()
    towns = estimation.model(table, "ill ~ age", {"ill": CLEAR}, clusters=list(range(10)) * 30)
    assert "few clusters" in towns.warnings[-1]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("ill ~ height", "no column 'height': there are ill, age, twice and gap"),
        ("ill ~ wide(age)", "cannot be evaluated"),
        ("height ~ age", "no column 'height'"),
        ("ill ~ ill", "response and a covariate"),
        ("ill ~ age +", "cannot be read"),
        ("~ age", "not of the form"),
        ("np.log(age) ~ ill", "not of the form"),
        ("ill ~ age + twice", "covariate twice is determined"),
        ("ill ~ np.log(age - 10)", "no finite numbers"),
        ("ill ~ gap", "'gap' has 1 missing cell, the first at position 1"),
    ],
)
def test_formulas_that_make_no_model_are_refused(formula: str, message: str) -> None:
    age = [10.0, 20, 30, 41]
    table = {"ill": ["no", "yes"] * 2, "age": age, "twice": [2 * one for one in age]}
    table["gap"] = [1.0, None, 2.0, 3.0]
    with pytest.raises(InputError, match=message):
        estimation.model(table, formula, {"ill": WARNER})


def test_the_order_of_a_response_in_clear_is_declared() -> None:
    cells = ["low", "high", "mid", "high"] * 50
    table: dict[str, Any] = {"pain": cells, "ill": ["no", "yes", "yes"] * 66 + ["no", "yes"]}
    with pytest.raises(InputError, match="have no order"):
        estimation.model(table, "pain ~ ill", {"ill": WARNER}, family="ordered")
    table["pain"] = pd.Categorical(cells, ["low", "mid", "high"], ordered=True)
    for given in (table, pd.DataFrame(table)):
        found = estimation.model(given, "pain ~ ill", {"ill": WARNER}, family="ordered")
        assert found.names[1:] == ("low | mid", "mid | high")


def test_transforms_that_keep_a_state_find_their_columns() -> None:
    table = {"ill": ["no", "yes", "yes", "no", "yes"] * 20, "age": list(range(100))}
    plain = estimation.model(table, "ill ~ age", {"ill": WARNER})
    scaled = estimation.model(table, "ill ~ scale(age)", {"ill": WARNER})
    deviation = np.arange(100).std(ddof=1)
    assert scaled.coefficients[1] == pytest.approx(plain.coefficients[1] * deviation)
    other = estimation.model(
        {"it": table["age"], "ill": table["ill"]}, "it ~ C(ill)", {"ill": WARNER}
    )
    assert other.names == ("Intercept", "C(ill)[T.yes]")


def test_people_who_are_alike_have_their_own_running_sums() -> None:
    town = [0, 1, 1, 0] * 30
    table = {"ill": ["no", "yes", "yes"] * 40, "town": town, "total": np.cumsum(town)}
    known = estimation.model(table, "ill ~ total", {"ill": WARNER})
    found = estimation.model(table, "ill ~ np.cumsum(town)", {"ill": WARNER})
    assert found.coefficients == pytest.approx(known.coefficients, rel=1e-9)
    assert found.standard_errors == pytest.approx(known.standard_errors, rel=1e-9)


def test_rows_with_missing_cells_can_be_left_out() -> None:
    table = {"ill": ["no", "yes", "yes", "no"] * 25, "age": [None, *range(1, 100)]}
    known = estimation.model({k: v[1:] for k, v in table.items()}, "ill ~ age", {"ill": WARNER})
    for given in (table, pd.DataFrame(table)):
        found = estimation.model(given, "ill ~ age", {"ill": WARNER}, drop_missing=True)
        assert found.people == 99
        assert found.coefficients == pytest.approx(known.coefficients)
    weights = [5.0, *[1.0] * 99]
    weighted = estimation.model(
        table, "ill ~ age", {"ill": WARNER}, weights=weights, clusters=range(100), drop_missing=True
    )
    assert weighted.coefficients == pytest.approx(known.coefficients)
    nobody = {"ill": ["no"] * 2, "age": [None, None]}
    with pytest.raises(InputError, match="every row"):
        estimation.model(nobody, "ill ~ age", {"ill": WARNER}, drop_missing=True)


def test_outputs_without_names_are_taken_for_their_likeliest_letters() -> None:
    unnamed = Mechanism([[0.7, 0.3], [0.3, 0.7]], ["no", "yes"])
    outputs = ["y0"] * 60 + ["y1"] * 40
    found = estimation.model({"ill": outputs}, "ill ~ 1", {"ill": unnamed})
    assert found.noisy == pytest.approx([np.log(40 / 60)])
    three = Mechanism([[0.6, 0.2, 0.2], [0.1, 0.7, 0.2]], ["no", "yes"])
    table = {"ill": [*outputs, "y2"]}
    assert np.isnan(estimation.model(table, "ill ~ 1", {"ill": three}).noisy).all()


def join_mechanisms(*mechanisms: Mechanism) -> Mechanism:
    """The mechanism on tuples that is the product of mechanisms."""
    matrix: Any = np.eye(1)
    for one in mechanisms:
        matrix = np.kron(matrix, one.matrix)
    inputs = list(itertools.product(*(one.inputs for one in mechanisms)))
    return Mechanism(matrix, inputs, list(itertools.product(*(one.outputs for one in mechanisms))))


MILD = Mechanism([[0.95, 0.05], [0.05, 0.95]], ["no", "yes"], ["no", "yes"])


def make_randomized() -> dict[str, Any]:
    """A table whose columns of letters went through randomized responses."""
    table = make_table(2000)
    table["town"] = np.where(np.arange(2000) % 3 > 0, "a", "b")
    rng = np.random.default_rng(2)
    # drinking depends on both
    chances = 0.2 + 0.3 * (table["smokes"] == "yes") + 0.3 * (table["ill"] == "yes")
    table["drink"] = np.where(rng.random(2000) < chances, "yes", "no")
    return table | {
        name: MILD.sample(table[name].tolist(), seed=seed)
        for seed, name in enumerate(("ill", "smokes", "drink"))
    }


@pytest.mark.parametrize(
    ("response", "columns"),
    [
        ("smokes", ("smokes", "ill")),
        ("smokes", ("drink", "ill", "smokes")),
        ("income", ("ill", "drink")),
        ("smokes", ("ill", "drink")),
    ],
)
def test_tuples_that_were_released_in_clear_give_the_models_of_statsmodels(
    response: str, columns: tuple[str, ...]
) -> None:
    import statsmodels.api as sm

    table = make_table()
    table["drink"] = np.where(
        table["ill"] == "yes", table["drink"], "a"
    )  # some tuples do not occur
    tuples = sorted(set(zip(*(table[name].tolist() for name in columns), strict=True)))
    joint = Mechanism(np.eye(len(tuples)), tuples, tuples)
    found = estimation.model(table, f"{response} ~ age + ill", {columns: joint})
    if response == "income":
        linear = sm.OLS(table["income"], make_design(table)).fit()
        check_same(found, linear.params, linear.bse)
    else:
        known = sm.Logit((table["smokes"] == "yes").astype(float), make_design(table))
        fitted = known.fit(disp=0, method="newton", tol=1e-12)
        check_same(found, fitted.params, fitted.bse)


def check_alike(found: estimation.FittedModel, known: estimation.FittedModel) -> None:
    assert found.names == known.names
    assert found.letters == known.letters
    for name, column in known.columns.items():
        assert found.columns[name] == pytest.approx(column, rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("family", ["logit", "ordered"])
@pytest.mark.parametrize("order", [("ill", "smokes"), ("smokes", "ill")])
def test_a_joint_mechanism_that_is_a_product_is_two(family: Any, order: tuple[str, str]) -> None:
    table = make_randomized()
    apart = {"ill": MILD, "smokes": MILD}
    together = {order: join_mechanisms(MILD, MILD)}
    known, found = (
        estimation.model(table, "smokes ~ ill + age", mechanisms, family=family)
        for mechanisms in (apart, together)
    )
    check_alike(found, known)
    assert found.log_likelihood == pytest.approx(known.log_likelihood, rel=1e-12)


@pytest.mark.parametrize(
    ("formula", "columns"),
    [
        ("smokes ~ 1", ("smokes", "drink")),
        ("smokes ~ town", ("drink", "smokes")),
        ("smokes ~ ill", ("smokes", "ill", "drink")),
        ("smokes ~ ill", ("ill", "drink")),
        ("town ~ ill", ("ill", "drink")),
    ],
)
def test_a_column_that_the_formula_leaves_out_reveals_nothing_of_a_saturated_model(
    formula: str, columns: tuple[str, ...]
) -> None:
    # the likeliest table within is that of moments, whose margin is that of the margin of the outputs;
    # the column that is left out depends on the response, also given the covariate
    table = make_randomized()
    mechanisms = {"smokes": MILD, "ill": MILD}
    joint = join_mechanisms(*[MILD] * len(columns))
    alone = {name: one for name, one in mechanisms.items() if name not in columns}
    known = estimation.model(table, formula, mechanisms)
    found = estimation.model(table, formula, {columns: joint, **alone})
    assert found.coefficients == pytest.approx(known.coefficients, rel=1e-8)
    assert found.standard_errors == pytest.approx(known.standard_errors, rel=1e-8)
    assert found.noisy == pytest.approx(known.noisy, rel=1e-9)


def test_a_share_that_is_estimated_as_0_leaves_coefficients_identified() -> None:
    # nobody drinks, which the likeliest law says of some
    table = make_randomized() | {"drink": WARNER.sample(["no"] * 2000, seed=6)}
    joint = join_mechanisms(MILD, WARNER)
    found = estimation.model(table, "smokes ~ town", {("smokes", "drink"): joint})
    known = estimation.model(table, "smokes ~ town", {"smokes": MILD})
    assert found.warnings == ()
    # it makes the response no worse known, within the twentieth of a standard error that it may move
    apart = np.abs(found.coefficients - known.coefficients) / known.standard_errors
    assert (apart < 0.5).all()
    assert (found.standard_errors < 1.05 * known.standard_errors).all()


def test_joint_mechanisms_stand_side_by_side() -> None:
    table = make_randomized()
    names = ("ill", "smokes", "drink")
    table["else"] = MILD.sample(["no", "yes"] * 1000, seed=5)
    known = estimation.model(table, "smokes ~ ill + drink", dict.fromkeys(names, MILD))
    pair = join_mechanisms(MILD, MILD)
    found = estimation.model(
        table, "smokes ~ ill + drink", {("ill", "smokes"): pair, ("drink",): MILD}
    )
    check_alike(found, known)
    plan = {("smokes", "ill"): pair, ("drink", "else"): pair}
    both = estimation.model(table, "smokes ~ ill * drink", plan)
    apart = estimation.model(table, "smokes ~ ill * drink", dict.fromkeys(names, MILD))
    assert both.coefficients == pytest.approx(apart.coefficients, rel=1e-8)


def test_a_joint_likelihood_is_a_sum_over_the_tuples_that_occur() -> None:
    import statsmodels.formula.api as smf

    # by plain sums, whose derivatives are complex steps
    tuples = [("no", 0), ("no", 1), ("no", 2), ("yes", 0), ("yes", 1)]
    rng = np.random.default_rng(8)
    matrix = rng.random((5, 6)) + 4 * np.eye(5, 6)
    joint = Mechanism(matrix / matrix.sum(axis=1, keepdims=True), tuples)
    truth = rng.choice(5, 900, p=[0.3, 0.2, 0.2, 0.1, 0.2])
    group = rng.integers(2, size=900)
    outputs = joint.sample([tuples[one] for one in truth], seed=1)
    table = {"ill+town": outputs, "group": group}
    found = estimation.model(table, "ill ~ town + group", {("ill", "town"): joint})
    assert found.names == ("Intercept", "town", "group")
    places = [int(str(one).removeprefix("y")) for one in outputs]
    counts = Counter(zip(places, group.tolist(), strict=True))

    def compute_value(point: Any) -> Any:
        total = 0.0
        for (output, g), count in counts.items():
            odds = [1.0, np.exp(point[3] + point[4] * g), np.exp(point[5] + point[6] * g)]
            chance = 0.0
            for (ill, town), row in zip(tuples, joint.matrix, strict=True):
                share = 1 / (1 + np.exp(-point[0] - point[1] * town - point[2] * g))
                law = odds[town] / sum(odds)
                chance = chance + law * (share if ill == "yes" else 1 - share) * row[output]
            total = total + count * np.log(chance)
        return total

    def compute_slope(point: FloatArray) -> FloatArray:
        steps = 1e-30j * np.eye(7)
        return np.array([compute_value(point + step).imag * 1e30 for step in steps])

    start = np.concatenate([found.coefficients, np.zeros(4)])
    near = optimize.minimize(
        lambda one: -compute_value(one), start, jac=lambda one: -compute_slope(one), method="BFGS"
    )
    best = optimize.root(compute_slope, near.x, tol=1e-13).x
    assert np.abs(compute_slope(best)).max() < 1e-8
    assert found.coefficients == pytest.approx(best[:3], rel=1e-8, abs=1e-8)
    assert found.log_likelihood == pytest.approx(compute_value(best), rel=1e-12)
    curved = np.array(
        [
            (compute_slope(best + step) - compute_slope(best - step)) / 2e-5
            for step in 1e-5 * np.eye(7)
        ]
    )
    errors = np.sqrt(np.diag(np.linalg.inv(-curved)))
    assert found.standard_errors == pytest.approx(errors[:3], rel=1e-6)  # by differences
    # outputs have no names: each is taken for its likeliest tuple, of which the last is for none
    likeliest = [tuples[int(joint.matrix[:, one].argmax())] for one in range(6)]
    taken: dict[str, Any] = {"group": group}
    for column, name in enumerate(("ill", "town")):
        taken[name] = [likeliest[place][column] for place in places]
    frame = pd.DataFrame(taken)
    noisy = smf.logit("ill ~ town + group", frame.assign(ill=frame["ill"] == "yes") * 1)
    assert found.noisy == pytest.approx(noisy.fit(disp=0, tol=1e-12).params.tolist(), rel=1e-7)


def test_values_of_tuples_have_the_order_of_the_tuples() -> None:
    # ("a", "no") does not occur
    pairs = [("a", "yes"), ("b", "no"), ("b", "yes")]
    table = {"town": ["a", "b", "b", "b"] * 30, "ill": ["yes", "no", "yes", "no"] * 30}
    for letters, first in ((pairs, "no"), (pairs[::-1], "yes")):
        found = estimation.model(
            table, "ill ~ 1", {("town", "ill"): Mechanism(np.eye(3), letters, letters)}
        )
        assert found.letters[0] == first
        assert abs(found.coefficients[0]) < 1e-9


def test_columns_of_tuples_that_do_not_fit_are_refused() -> None:
    pairs = [(a, b) for a in ("no", "yes") for b in ("u", "v")]
    joint = Mechanism(np.eye(4) * 0.6 + 0.1, pairs, pairs)
    table: dict[str, Any] = {"ill": ["no", "yes"] * 20, "town": ["u", "u", "v", "v"] * 10}
    single = Mechanism(WARNER.matrix, ["no", "yes"], ["r", "s"])
    table["both"] = list(zip(table["ill"], table["town"], strict=True))
    found = estimation.model(table, "both ~ 1", {"both": joint})
    # 10 people have each pair: all are equally likely
    assert found.coefficients == pytest.approx([0, 0, 0], abs=1e-9)
    with pytest.raises(InputError, match="two mechanisms are for 'ill'"):
        estimation.model(table, "ill ~ 1", {("ill", "town"): joint, "ill": WARNER})
    with pytest.raises(InputError, match="'no' is no tuple of the columns ill and town"):
        estimation.model({"ill+town": ["r"]}, "ill ~ 1", {("ill", "town"): single})
    with pytest.raises(InputError, match="'age' is of no column"):
        estimation.model(table, "ill ~ 1", {("ill", "age"): joint})
    with pytest.raises(MechanismError, match=r"column 'ill\+town'.*'w'"):
        estimation.model(table | {"town": ["w"] * 40}, "ill ~ 1", {("ill", "town"): joint})
    many = [(str(one), b) for one in range(60) for b in ("u", "v")]
    large = Mechanism(np.eye(120), many, many)
    with pytest.raises(InputError, match="ill and town have 120 joint values"):
        estimation.model({"ill": ["3"], "town": ["u"]}, "ill ~ 1", {("ill", "town"): large})


def test_columns_that_no_mechanism_released_are_refused() -> None:
    table = {"ill": ["no", "maybe"], "age": [1, 2]}
    with pytest.raises(MechanismError, match=r"column 'ill'.*'maybe'"):
        estimation.model(table, "ill ~ 1", {"ill": WARNER})
    with pytest.raises(InputError, match="mechanism of 'il' is of no column"):
        estimation.model(table, "ill ~ 1", {"il": WARNER})
    nothing = Mechanism([[0.5, 0.5], [0.5, 0.5]], ["no", "maybe"], ["no", "maybe"])
    with pytest.raises(MechanismError, match="identifies no coefficient"):
        estimation.model(table, "ill ~ 1", {"ill": nothing})
    with pytest.raises(InputError, match="its family is 'logit'"):
        estimation.model({"ill": ["no", "yes"]}, "ill ~ 1", {"ill": WARNER}, family="linear")
