"""Imputed frames of released columns, beside posteriors by hand, and Rubin's rules beside fractions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pmlopt import Mechanism, estimation
from pmlopt.errors import InputError

WARNER = Mechanism([[0.8, 0.2], [0.2, 0.8]], ["no", "yes"], ["no", "yes"])


def make_table(people: int = 3000) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    ill = rng.random(people) < 0.4
    smokes = rng.random(people) < np.where(ill, 0.62, 0.375)
    return {
        "ill": WARNER.sample(np.where(ill, "yes", "no"), seed=1),
        "smokes": WARNER.sample(np.where(smokes, "yes", "no"), seed=2),
        "town": rng.choice(["a", "b"], people),
    }


def test_values_are_drawn_from_their_posterior() -> None:
    # a share of 0.5: of those who released yes, 0.8 are yes; 40,000 draws, and four standard errors of both
    table = {"ill": ["yes"] * 1000 + ["no"] * 1000, "other": list(range(2000))}
    frames = estimation.impute(table, "ill ~ 1", {"ill": WARNER}, seed=1)
    assert len(frames) == 20
    assert all(frame["other"].tolist() == table["other"] for frame in frames)
    yes = np.array([frame["ill"][:1000] == "yes" for frame in frames]).mean()
    assert yes == pytest.approx(0.8, abs=4 * 0.01)


def test_pooled_logits_are_those_of_the_likelihood() -> None:
    import statsmodels.formula.api as smf

    # the pooled variance is that of the likelihood, but for the error of 40 imputations
    table, mechanisms = make_table(), {"ill": WARNER, "smokes": WARNER}
    known = estimation.model(table, "smokes ~ ill + town", mechanisms)
    frames = estimation.impute(table, "smokes ~ ill + town", mechanisms, 40, seed=3)
    fits = [
        smf.logit("yes ~ ill + town", frame.assign(yes=frame["smokes"] == "yes") * 1).fit(disp=0)
        for frame in frames
    ]
    found = estimation.pool(fits)
    assert found.names == known.names
    apart = np.abs(found.estimates - known.coefficients) / known.standard_errors
    assert (apart < 4 / np.sqrt(40)).all()
    assert found.standard_errors == pytest.approx(known.standard_errors, rel=0.35)
    assert 0.5 < found.missing[1] < 1


def test_columns_that_were_released_together_are_imputed() -> None:
    # nobody is ill without smoking: no imputed row is; shares within 4 standard errors of the estimates
    tuples = [("no", "no"), ("no", "yes"), ("yes", "yes")]
    joint = Mechanism(np.full((3, 3), 0.1) + 0.7 * np.eye(3), tuples, tuples)
    seen = [tuples[0]] * 1200 + [tuples[1]] * 1000 + [tuples[2]] * 800
    table: dict[str, Any] = {"ill": [one for one, _ in seen], "smokes": [one for _, one in seen]}
    frames = estimation.impute(table, "ill ~ 1", {("ill", "smokes"): joint}, 40, seed=1)
    assert all(frame["smokes"].tolist() == table["smokes"] for frame in frames)
    share = np.mean([(frame["ill"] == "yes").mean() for frame in frames])
    truth = (800 / 3000 - 0.1) / 0.7  # of randomized response
    error = np.sqrt(0.27 * 0.73 / 3000) / 0.7
    assert share == pytest.approx(truth, abs=4 * error)
    table["income"] = list(range(3000))
    formula = "income ~ ill + smokes"
    for frame in estimation.impute(table, formula, {("ill", "smokes"): joint}, 3, seed=1):
        rows = zip(frame["ill"].tolist(), frame["smokes"].tolist(), strict=True)
        assert set(rows) == set(tuples)


def test_a_share_that_is_estimated_as_0_stays_there() -> None:
    # half are a and half b: c was released by less than its fifth
    mechanism = Mechanism(np.full((3, 3), 0.2) + 0.4 * np.eye(3), list("abc"), list("abc"))
    table = {"x": ["a"] * 420 + ["b"] * 400 + ["c"] * 180, "y": [0.0, 1.0, 3.0, 2.0] * 250}
    frames = estimation.impute(table, "y ~ I(x == 'a')", {"x": mechanism}, 20, seed=1)
    assert max((frame["x"] == "c").mean() for frame in frames) < 0.01


def test_rubins_rules_are_those_of_fractions() -> None:
    # q = 1, 2, 3; U = 2; B = 1; T = 2 + 4/3 = 10/3; m = (4/3) / (10/3) = 2/5; v = 2 / (4/25) = 25/2
    pairs = [([q], [[2.0]]) for q in (1.0, 2.0, 3.0)]
    found = estimation.pool(pairs)
    assert found.estimates == pytest.approx([2.0])
    assert found.covariance == pytest.approx(np.array([[10 / 3]]))
    assert found.degrees == pytest.approx([25 / 2])
    # with c = 17: u = (3/5) 17 18 / 20 = 459/50, and 1 / (2/25 + 50/459) = 11475/2168
    assert estimation.pool(pairs, degrees=17).degrees == pytest.approx([11475 / 2168])
    # Student's 0.975 quantile at 12.5 degrees is 2.1692 (between 2.1788 at 12 and 2.1604 at 13)
    width = (found.intervals[0, 1] - 2.0) / np.sqrt(10 / 3)
    assert 2.1604 < width < 2.1788
    assert "estimate" in str(found)
    assert found.to_pandas().loc[0, "missing"] == pytest.approx(0.4)


def test_estimates_that_are_all_alike_have_the_normal_interval() -> None:
    found = estimation.pool([([1.0], [[1.0]])] * 5)
    assert found.intervals[0] == pytest.approx([1 - 1.959964, 1 + 1.959964], abs=1e-6)


def test_frames_are_written_once(tmp_path: Path) -> None:
    table = {"ill": ["yes", "no"] * 50}
    frames = estimation.impute(
        table, "ill ~ 1", {"ill": WARNER}, 3, seed=1, folder=tmp_path / "out"
    )
    read = [pd.read_csv(tmp_path / "out" / f"imputed-{place}.csv") for place in (1, 2, 3)]
    assert all(one.equals(frame) for one, frame in zip(read, frames, strict=True))
    with pytest.raises(InputError, match="exists already"):
        estimation.impute(table, "ill ~ 1", {"ill": WARNER}, 3, folder=tmp_path / "out")


def test_what_cannot_be_imputed_or_pooled_is_refused() -> None:
    three = Mechanism(np.eye(3), list("abc"), list("abc"))
    table = {"region": ["a", "b"] * 30, "ill": ["no", "yes", "yes"] * 20}
    with pytest.raises(InputError, match="do not identify"):
        estimation.impute(table, "ill ~ region", {"region": three, "ill": WARNER})
    with pytest.raises(InputError, match="nothing to impute"):
        estimation.impute(table, "ill ~ region", {})
    with pytest.raises(InputError, match="at least 2"):
        estimation.pool([([1.0], [[1.0]])])
    with pytest.raises(InputError, match="not the same coefficients"):
        estimation.pool([([1.0], [[1.0]]), ([1.0, 2.0], np.eye(2))])
    with pytest.raises(InputError, match="give results of statsmodels"):
        estimation.pool([1.0, 2.0])
