"""Covariates of regressions at the limits: units, levels, laws, weights of zero, letters that are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pmlopt import Mechanism, estimation
from pmlopt.errors import InputError

WARNER = Mechanism([[0.8, 0.2], [0.2, 0.8]], ["no", "yes"], ["no", "yes"])
CLEAR = Mechanism(np.eye(2), ["no", "yes"], ["no", "yes"])


def make_table(people: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    ill = rng.random(people) < 0.4
    return {
        "ill": np.where(ill, "yes", "no").tolist(),
        "smokes": np.where(rng.random(people) < 0.3 + 0.3 * ill, "yes", "no").tolist(),
        "age": rng.normal(50, 10, people),
        "town": rng.choice(["u", "v"], people).tolist(),
        "income": rng.normal(size=people) + ill,
        "visits": rng.poisson(1 + ill),
    }


def fit_statsmodels(formula: str) -> Any:
    import statsmodels.formula.api as smf

    frame = pd.DataFrame(make_table())
    frame["smokes"] = (frame["smokes"] == "yes") * 1
    return smf.logit(formula, frame).fit(disp=0, tol=1e-12)


@pytest.mark.parametrize(
    "formula",
    ["smokes ~ ill * age", "smokes ~ ill:age", 'smokes ~ C(ill, Treatment("yes")) * town'],
)
def test_products_and_contrasts_of_released_columns_are_those_of_statsmodels(formula: str) -> None:
    known = fit_statsmodels(formula)
    found = estimation.model(make_table(), formula, {"ill": CLEAR, "smokes": CLEAR})
    assert found.coefficients == pytest.approx(known.params.tolist(), rel=1e-7)
    assert found.standard_errors == pytest.approx(known.bse.tolist(), rel=1e-7)


@pytest.mark.parametrize(
    ("response", "family"),
    [("smokes", "logit"), ("smokes", "ordered"), ("income", "linear"), ("visits", "poisson")],
)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_coefficients_have_the_units_of_covariates(response: str, family: Any, unit: float) -> None:
    table = make_table()
    mechanisms = {name: WARNER for name in ("ill", response) if name in ("ill", "smokes")}
    known, found = (
        estimation.model(given, f"{response} ~ ill + age", mechanisms, family=family)
        for given in (table, table | {"age": unit * table["age"]})
    )
    place = known.names.index("age")
    assert found.coefficients[place] * unit == pytest.approx(known.coefficients[place], rel=1e-6)
    assert found.standard_errors[place] * unit == pytest.approx(
        known.standard_errors[place], rel=1e-6
    )
    assert found.log_likelihood == pytest.approx(known.log_likelihood, rel=1e-9)


def test_responses_have_any_unit_and_origin() -> None:
    table = make_table()
    known = estimation.model(table, "income ~ ill", {"ill": WARNER})
    table["income"] = 1e9 + 1e3 * table["income"]
    found = estimation.model(table, "income ~ ill", {"ill": WARNER})
    assert found.coefficients == pytest.approx([1e9, 0] + 1e3 * known.coefficients, rel=1e-6)
    assert found.standard_errors == pytest.approx(1e3 * known.standard_errors, rel=1e-6)


def test_large_counts_have_the_logarithms_of_their_means() -> None:
    table = make_table() | {"visits": [3_000_000, 1_000_000] * 200, "ill": ["yes", "no"] * 200}
    found = estimation.model(table, "visits ~ ill", {"ill": CLEAR}, family="poisson")
    assert found.coefficients == pytest.approx([np.log(1e6), np.log(3)], rel=1e-9)
    assert found.standard_errors[0] == pytest.approx(1 / np.sqrt(2e8), rel=1e-6)


def test_levels_that_do_not_occur_are_left_out() -> None:
    table = make_table()
    known = estimation.model(table, "ill ~ town", {"ill": WARNER})
    table["town"] = pd.Categorical(table["town"], ["u", "w", "v"])
    found = estimation.model(table, "ill ~ town", {"ill": WARNER})
    assert found.names == known.names
    assert found.coefficients == pytest.approx(known.coefficients, rel=1e-9)


def test_people_of_no_weight_are_left_out() -> None:
    table = make_table()
    some = {name: column[100:] for name, column in table.items()}
    known = estimation.model(some, "smokes ~ ill", {"ill": WARNER, "smokes": WARNER}, robust=True)
    found = estimation.model(
        table, "smokes ~ ill", {"ill": WARNER, "smokes": WARNER}, weights=[0] * 100 + [1] * 300
    )
    assert found.coefficients == pytest.approx(known.coefficients, rel=1e-7)
    assert found.standard_errors == pytest.approx(known.standard_errors, rel=1e-7)


def test_a_law_has_columns_of_its_own() -> None:
    import statsmodels.formula.api as smf

    # the logarithm of the likelihood is the sum of those of two regressions in clear
    found = estimation.model(
        make_table(), "smokes ~ ill", {"ill": CLEAR, "smokes": CLEAR}, law="~ age + town"
    )
    frame = pd.DataFrame(make_table())
    law = smf.logit("ill ~ age + town", frame.assign(ill=(frame["ill"] == "yes") * 1)).fit(disp=0)
    assert found.log_likelihood == pytest.approx(
        fit_statsmodels("smokes ~ ill").llf + law.llf, rel=1e-9
    )


@pytest.mark.parametrize(
    ("formula", "law", "message"),
    [
        ("smokes ~ ill", "~ smokes", "response and a covariate"),
        ("smokes ~ age", "~ ill", "the law is of columns in clear, and 'ill' was released"),
        ("smokes ~ ill", "~ height", "no column 'height'"),
        ("smokes ~ ill", "~ age + I(2 * age)", r"I\(2 \* age\) of the law is determined"),
        ("smokes ~ ill", "~ age +", "cannot be read"),
        ("smokes ~ ill + age + town + one", None, "the covariate one has one value"),
        ("smokes ~ Intercept", None, "rename it"),
        ("smokes ~ len(age)(", None, "cannot be read"),
        ("smokes ~ {}['x']", None, "cannot be evaluated"),
        ("smokes ~ ill + C(ill)", None, r"covariate C\(ill\)\[T.yes\] is determined"),
        ("smokes ~ town + dummy + ill", None, "covariate dummy is determined"),
        ('smokes ~ C(ill, contr.treatment("maybe"))', None, "'maybe'"),
    ],
)
def test_covariates_and_laws_that_make_no_model_are_refused(
    formula: str, law: str | None, message: str
) -> None:
    table = make_table() | {"one": ["x"] * 400, "Intercept": [1, 2] * 200}
    table["dummy"] = [float(town == "u") for town in table["town"]]
    with pytest.raises(InputError, match=message):
        estimation.model(table, formula, {"ill": WARNER, "smokes": WARNER}, law=law)


@pytest.mark.parametrize("mechanism", [CLEAR, WARNER])
def test_coefficients_without_a_finite_value_are_named(mechanism: Mechanism) -> None:
    # everybody above 50 is ill, and nobody below
    age = make_table()["age"]
    table = {"age": age, "ill": mechanism.sample(np.where(age > 50, "yes", "no"), seed=1)}
    found = estimation.model(table, "ill ~ age", {"ill": mechanism})
    assert np.isinf(found.standard_errors).all()
    assert "do not identify Intercept and age" in found.warnings[0]


def test_letters_that_a_mechanism_does_not_tell_apart_are_named() -> None:
    # a and b have the same outputs; of pairs, the second parts, which the formula leaves out
    same = np.array([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8]])
    mechanism = Mechanism(same, list("abc"), ["p", "q"])
    table = make_table() | {"z": ["p", "q"] * 200}
    found = estimation.model(table, "z ~ age", {"z": mechanism})
    assert "mechanism of 'z' does not distinguish every letter" in found.warnings[0]
    pairs = Mechanism(same, [("no", 1), ("no", 2), ("yes", 1)], ["p", "q"])
    given = table | {"ill+part": table["z"]}
    assert estimation.model(given, "ill ~ age", {("ill", "part"): pairs}).warnings == ()
