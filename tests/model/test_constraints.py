"""Constraints that designs keep: invariance, noise without bias, of a variance and a size, and zeros."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_fully as run
from oracles import columns
from oracles.constraints import inequalities
from oracles.designs import optimum
from refusals import refused

from pmlopt import (
    LDP,
    PML,
    ExpectedLoss,
    MaximalLeakage,
    MutualInformation,
    Prior,
    design,
    pointwise_leakage,
    solve,
    verify_file,
)
from pmlopt.errors import InputError, ProgramError
from pmlopt.model.constraints import (
    Constraint,
    Invariant,
    OutcomeLeakage,
    Strata,
    Unbiased,
    Variance,
    Within,
    Zeros,
)
from pmlopt.model.privacy import Requirement

REQUIREMENTS: list[Requirement] = [PML(0.7), LDP(1.0), MaximalLeakage(0.8)]
LETTERS = (1, 2, 3, 4)
WIDE = tuple(range(-3, 9))


def asked(kind: str, rng: np.random.Generator) -> tuple[list[Constraint], tuple[int, ...]]:
    """Constraints that some mechanism keeps under any of the requirements, and the outputs."""
    if kind == "invariant":
        return [Invariant()], LETTERS
    if kind == "noise":
        return [Unbiased(), Variance(float(rng.uniform(14, 30))), Within(7)], WIDE
    if kind == "scores":
        scores = {label: float(rng.uniform(0, 3)) for label in LETTERS} | {9: -9.0, 10: 12.0}
        return [Unbiased(scores), Variance(300, scores)], (*LETTERS, 9, 10)
    if kind == "outcomes":
        return [OutcomeLeakage({2: 0.0, 4: 0.1, 3: 9.0})], LETTERS
    if kind == "zeros":
        return [Zeros([(1, 4), (4, 1)])], LETTERS
    return [Variance(12), Strata([[1, 2, 3, 4, 8], [9]])], (*LETTERS, 8, 9)


@pytest.mark.parametrize("kind", ["invariant", "noise", "scores", "outcomes", "zeros", "strata"])
@pytest.mark.parametrize("privacy", REQUIREMENTS, ids=lambda one: one.name)
def test_designs_keep_them_and_are_the_best_that_do(privacy: Requirement, kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(2):
        p = rng.dirichlet(np.ones(4) * 3)
        constraints, outputs = asked(kind, rng)
        prior, loss = Prior(p, LETTERS), rng.uniform(size=(4, len(outputs)))
        rows = [inequalities(one, prior.pmf, LETTERS, outputs) for one in constraints]
        best = optimum(
            prior.pmf, privacy, -loss, np.vstack([a for a, _ in rows]), np.concatenate([b for _, b in rows])
        )
        found = solve(design(prior, privacy, ExpectedLoss(loss), outputs, constraints))
        assert found.value == pytest.approx(-best.value, abs=1e-7)
        assert found.status.value == "optimal"
        assert found.certificate.verify()
        for a, b in rows:
            assert (a @ found.matrix.ravel() - b).max(initial=0) <= 1e-7


@pytest.mark.parametrize("most", [0.1, 2.0])
def test_information_is_on_the_outcomes_of_the_largest_budget(most: float) -> None:
    """Beside the linear program over the extreme columns of each class of outcomes, with free masses."""
    prior, outputs = Prior([0.4, 0.35, 0.25], list("abc")), list("uvwxyz")
    few = {"u": 0.05, "x": 0.05, "w": 0.02}
    budgets = few | dict.fromkeys("vyz", most)
    found = solve(design(prior, PML(0.7), MutualInformation(), outputs, [OutcomeLeakage(budgets)]))
    classes = [columns.extreme_columns(prior.pmf, PML(min(nats, 0.7))) for nats in (0.02, 0.05, most)]
    lifts = np.hstack(classes)
    best = columns.best_weights(prior.pmf, lifts, MutualInformation().worths(prior.pmf, lifts))
    assert found.value == pytest.approx(best.value, abs=1e-9)
    assert found.status.value == "optimal"
    assert found.certificate.verify()
    for label, level in zip(found.mechanism.outputs, pointwise_leakage(prior, found.mechanism), strict=True):
        assert level <= budgets[str(label)]
    beside = solve(design(prior, LDP(1.0), MutualInformation(), outputs, [OutcomeLeakage(budgets)]))
    assert beside.certificate.verify()
    assert max(pointwise_leakage(prior, beside.mechanism)) <= most + 1e-12
    free = solve(design(prior, LDP(1.0), MutualInformation(), outputs, [OutcomeLeakage(few)]))
    assert free.value == pytest.approx(solve(design(prior, LDP(1.0), MutualInformation())).value, abs=1e-9)
    assert not free.matrix[:, [free.mechanism.outputs.index(label) for label in few]].any()
    with pytest.raises(ProgramError, match="fewer than the 3 letters"):
        design(prior, PML(0.7), MutualInformation(), list("uvw"), [OutcomeLeakage({"u": 0.1})])
    with pytest.raises(ProgramError, match="OutcomeLeakage alone"):
        design(prior, PML(0.7), MutualInformation(), list("abc"), [Invariant()])


def test_an_even_law_is_kept_at_no_cost_and_who_is_alone_is_told() -> None:
    even = solve(design([0.25] * 4, PML(0.5), "hamming", constraints=[Invariant()]))
    assert even.value == pytest.approx(1 - math.exp(0.5) / 4, abs=1e-9)
    prior = Prior([0.5, 0.3, 0.2], ["a", "b", "c"])
    alone = [Strata({"a": "one", "b": "two", "c": "two"})]
    found = solve(design(prior, PML(math.log(2)), "hamming", constraints=alone))
    # who is alone is told: log 2 at the mass of a half; b and c look alike, as each lift is 2 at most
    assert found.matrix[:, 0] == pytest.approx([1, 0, 0], abs=1e-12)
    assert found.value == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([Unbiased()], "no numbers: give scores by label"), ([Unbiased({"a": 1, "b": 2})], "'c'"),
        ([Zeros([("a", "z")])], "'z'"), ([OutcomeLeakage({"z": 0.5})], "'z'"),
        ([Strata([["a", "b"]])], "'c'"), ([Invariant(), Invariant()], "two constraints 'invariant'"),
        ([PML(1.0)], "is no constraint"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(constraints: Sequence[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        design(Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), PML(1.0), "hamming", constraints=constraints)


def test_they_are_refused_where_nothing_would_keep_them() -> None:
    with pytest.raises(ProgramError, match="other labels than the prior's"):
        design(Prior([0.5, 0.5], ["a", "b"]), PML(1.0), ExpectedLoss(np.ones((2, 1))), ["a"], [Invariant()])
    with pytest.raises(ProgramError, match="listed letters"):
        design([0.5, 0.5], PML(1.0), "mutual-information", constraints=[Invariant()])
    refused(InputError, Variance, "largest variance", (-1,))
    refused(InputError, Unbiased, "the score of 'c'", ({"a": 1, "b": 2, "c": math.inf},))
    refused(InputError, OutcomeLeakage, "budget of the outcome 'a'", ({"a": -0.5},))
    refused(InputError, Strata, "'a' stands twice", ([["a", "b", "c"], ["a"]],))


def test_a_file_says_what_is_asked_and_is_checked_by_it(tmp_path: Path) -> None:
    noise = [Unbiased(), Variance(2.0), Within(2)]
    found = solve(design(Prior([0.5, 0.5], [1, 2]), PML(0.4), "squared", range(4), noise))
    found.save(tmp_path / "table.json")
    assert verify_file(tmp_path / "table.json").holds
    whole = json.loads((tmp_path / "table.json").read_text())
    text = json.dumps(whole)
    assert '"name": "variance", "most": 2.0' in text
    (tmp_path / "table.json").write_text(text.replace('"most": 2.0', '"most": 1.0'))
    assert not verify_file(tmp_path / "table.json").holds


def test_the_shell_takes_them_by_name(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("letter,count\n1,30\n2,20\n3,10\n")
    (tmp_path / "z.csv").write_text("letter,output\n1,3\n")
    (tmp_path / "o.csv").write_text("output,nats\n2,0.25\n")
    (tmp_path / "s.csv").write_text("letter,stratum\n1,low\n2,high\n3,high\n")
    plain = f"design --prior {tmp_path / 'p.csv'} --epsilon 0.8 --utility absolute --json".split()
    prior = Prior.from_counts([30, 20, 10], [1, 2, 3])
    for texts, constraints in (
        (["invariant", f"zeros={tmp_path / 'z.csv'}"], [Invariant(), Zeros([(1, 3)])]),
        ([f"outcome-leakage={tmp_path / 'o.csv'}"], [OutcomeLeakage({2: 0.25})]),
        (["variance=1.5", f"strata={tmp_path / 's.csv'}"], [Variance(1.5), Strata([[1], [2, 3]])]),
    ):
        options = [part for text in texts for part in ("--constraint", text)]
        wanted = solve(design(prior, PML(0.8), "absolute", constraints=constraints)).value
        assert json.loads(run(*plain, *options).stdout)["value"] == pytest.approx(wanted, abs=1e-9)
    assert "known are" in run(*plain, "--constraint", "fair", code=2).output
    assert "give variance=MOST" in run(*plain, "--constraint", "variance", code=2).output
    assert "'1,5' stands where a number belongs" in run(*plain, "--constraint", "variance=1,5", code=2).output
    assert "give invariant" in run(*plain, "--constraint", "invariant=1", code=2).output
