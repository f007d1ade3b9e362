"""Constraints that designs keep: invariance, noise without bias, of a variance and a size, and zeros."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
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
from pmlopt.errors import InfeasibleError, InputError, ProgramError, SolverError
from pmlopt.model.constraints import (
    CategoryRetention,
    Constraint,
    Invariant,
    OutcomeLeakage,
    Retention,
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
    if kind == "retention":
        return [Retention(0.4), CategoryRetention({2: 0.35, 4: 0.3})], LETTERS
    if kind == "categories":
        return [CategoryRetention(0.28)], (*LETTERS, 9)
    if kind == "zeros":
        return [Zeros([(1, 4), (4, 1)])], LETTERS
    return [Variance(12), Strata([[1, 2, 3, 4, 8], [9]])], (*LETTERS, 8, 9)


@pytest.mark.parametrize("kind", ["invariant", "noise", "scores", "outcomes", "zeros", "strata", "retention",
                                  "categories"])  # fmt: skip
@pytest.mark.parametrize("privacy", REQUIREMENTS, ids=lambda one: one.name)
def test_designs_keep_them_and_are_the_best_that_do(privacy: Requirement, kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(2):
        p = rng.dirichlet(np.ones(4) * 3)
        constraints, outputs = asked(kind, rng)
        prior, loss = Prior(p, LETTERS), rng.uniform(size=(4, len(outputs)))
        rows = [inequalities(one, prior.pmf, LETTERS, outputs) for one in constraints]
        best = optimum(
            prior.pmf,
            privacy,
            -loss,
            np.vstack([a for a, _ in rows]),
            np.concatenate([b for _, b in rows]),
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
    classes = [
        columns.extreme_columns(prior.pmf, PML(min(nats, 0.7))) for nats in (0.02, 0.05, most)
    ]
    lifts = np.hstack(classes)
    best = columns.best_weights(
        prior.pmf, lifts, MutualInformation().column_values(prior.pmf, lifts)
    )
    assert found.value == pytest.approx(best.value, abs=1e-9)
    assert found.status.value == "optimal"
    assert found.certificate.verify()
    for label, level in zip(
        found.mechanism.outputs, pointwise_leakage(prior, found.mechanism), strict=True
    ):
        assert level <= budgets[str(label)]
    beside = solve(design(prior, LDP(1.0), MutualInformation(), outputs, [OutcomeLeakage(budgets)]))
    assert beside.certificate.verify()
    assert max(pointwise_leakage(prior, beside.mechanism)) <= most + 1e-12
    free = solve(design(prior, LDP(1.0), MutualInformation(), outputs, [OutcomeLeakage(few)]))
    assert free.value == pytest.approx(
        solve(design(prior, LDP(1.0), MutualInformation())).value, abs=1e-9
    )
    assert not free.matrix[:, [free.mechanism.outputs.index(label) for label in few]].any()
    with pytest.raises(ProgramError, match="fewer than the 3 letters"):
        design(prior, PML(0.7), MutualInformation(), list("uvw"), [OutcomeLeakage({"u": 0.1})])
    with pytest.raises(ProgramError, match="only OutcomeLeakage is"):
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
        ([PML(1.0)], "is no constraint"), ([CategoryRetention({"z": 0.5})], "'z'"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(constraints: Sequence[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        design(
            Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), PML(1.0), "hamming", constraints=constraints
        )


def test_they_are_refused_where_nothing_would_keep_them() -> None:
    with pytest.raises(ProgramError, match="other labels than the prior's"):
        design(
            Prior([0.5, 0.5], ["a", "b"]),
            PML(1.0),
            ExpectedLoss(np.ones((2, 1))),
            ["a"],
            [Invariant()],
        )
    with pytest.raises(ProgramError, match="listed letters"):
        design([0.5, 0.5], PML(1.0), "mutual-information", constraints=[Invariant()])
    refused(InputError, Variance, "largest variance", (-1,))
    refused(InputError, Unbiased, "the score of 'c'", ({"a": 1, "b": 2, "c": math.inf},))
    refused(InputError, OutcomeLeakage, "budget of the outcome 'a'", ({"a": -0.5},))
    refused(InputError, Strata, "'a' occurs twice", ([["a", "b", "c"], ["a"]],))


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
    (tmp_path / "k.csv").write_text("letter,share\n3,0.5\n")
    for texts, constraints in (
        (
            ["retention=0.5", f"category-retention={tmp_path / 'k.csv'}"],
            [Retention(0.5), CategoryRetention({3: 0.5})],
        ),
        (["category-retention=0.4"], [CategoryRetention(0.4)]),
        (["invariant", f"zeros={tmp_path / 'z.csv'}"], [Invariant(), Zeros([(1, 3)])]),
        ([f"outcome-leakage={tmp_path / 'o.csv'}"], [OutcomeLeakage({2: 0.25})]),
        (["variance=1.5", f"strata={tmp_path / 's.csv'}"], [Variance(1.5), Strata([[1], [2, 3]])]),
    ):
        options = [part for text in texts for part in ("--constraint", text)]
        wanted = solve(design(prior, PML(0.8), "absolute", constraints=constraints)).value
        assert json.loads(run(*plain, *options).stdout)["value"] == pytest.approx(wanted, abs=1e-9)
    assert "known are" in run(*plain, "--constraint", "fair", code=2).output
    assert "give variance=MOST" in run(*plain, "--constraint", "variance", code=2).output
    assert (
        "'1,5' is in the place of a number"
        in run(*plain, "--constraint", "variance=1,5", code=2).output
    )
    assert "give invariant" in run(*plain, "--constraint", "invariant=1", code=2).output


@pytest.mark.parametrize("base", [0, 2**53, -(2**53) - 1, 1_556_559_573_141_592_653])
@pytest.mark.parametrize("by_scores", [False, True])
def test_constraints_are_on_differences_of_whole_numbers_of_any_size(
    base: int, by_scores: bool
) -> None:
    labels = [base + step for step in range(3)]
    letters = range(3) if by_scores else labels
    scores = dict(zip(letters, labels, strict=True)) if by_scores else None
    prior = Prior([0.5, 0.3, 0.2], letters)
    # by hand: the middle letter is released as one of its neighbours, so unbiased noise loses its mass .3
    for constraint, level, known in ((Unbiased(scores), 1.2, 0.3), (Variance(1, scores), 0.7, 0.2)):
        result = solve(design(prior, PML(level), "squared", letters, [constraint]))
        assert result.value == pytest.approx(known, abs=1e-7)
        assert result.certificate.verify()
    with pytest.raises(InfeasibleError):
        solve(design(prior, PML(1.2), "squared", letters, [Within(0, scores)]))


def test_scores_past_floats_come_back_from_a_file(tmp_path: Path) -> None:
    labels = [2**60 + step for step in range(3)]
    kept = Unbiased({0: labels[0], 1: labels[1], 2: labels[2]})
    solve(design([0.5, 0.3, 0.2], PML(1.2), "squared", range(3), [kept])).save(tmp_path / "m.json")
    assert verify_file(tmp_path / "m.json").holds
    read = json.loads((tmp_path / "m.json").read_text())["metadata"]["certificate"]["added"][0][
        "constraint"
    ]["scores"]
    assert [score for _, score in read] == labels


@pytest.mark.parametrize("unit", [1e-40, 1e-12, 1e-6, 1e7, 1e8, 1e9, 1e30])
def test_constraints_are_the_same_in_any_unit_of_the_scores(unit: float) -> None:
    prior, scores = Prior([0.5, 0.3, 0.2], [0, 1, 2]), {0: 0, 1: unit, 2: 2 * unit}
    for level, one, other in (
        (1.2, Unbiased(), Unbiased(scores)),
        (0.5, Variance(1), Variance(unit**2, scores)),
    ):
        known = solve(design(prior, PML(level), "squared", [0, 1, 2], [one]))
        found = solve(design(prior, PML(level), "squared", [0, 1, 2], [other]))
        assert found.status.value == "optimal"
        assert found.value == pytest.approx(known.value, abs=1e-9)
        assert found.bound == pytest.approx(known.bound, abs=1e-8)
        assert found.certificate.verify()


def rare_letter_loss(mass: Fraction, epsilon: float) -> float:
    """The least Hamming loss of two letters whose law is kept, by hand.

    With P = [[1 - a, a], [b, 1 - b]] and `p0 a = p1 b` it is 2 p1 b, and `1 - b <= e^epsilon p1`.
    """
    return float(2 * mass * max(Fraction(0), 1 - Fraction(math.exp(epsilon)) * mass))


@pytest.mark.parametrize(("mass", "epsilon"), [(1e-6, 2.0), (1e-8, 2.0), (1e-9, 5.0), (2e-10, 1.0)])
def test_the_law_of_a_very_rare_letter_is_kept(mass: float, epsilon: float) -> None:
    prior = Prior([1 - mass, mass])
    result = solve(design(prior, PML(epsilon), "hamming", constraints=[Invariant()]))
    assert result.value == pytest.approx(rare_letter_loss(Fraction(mass), epsilon), rel=2e-6)
    assert result.bound <= rare_letter_loss(Fraction(mass), epsilon)
    assert (prior.pmf @ result.mechanism.matrix)[1] == pytest.approx(mass, rel=1e-6)
    assert result.certificate.verify()


def test_the_law_of_one_in_a_hundred_million_is_kept() -> None:
    result = solve(
        design(Prior.from_counts([10**8, 1]), PML(2), "hamming", constraints=[Invariant()])
    )
    assert result.value == pytest.approx(rare_letter_loss(Fraction(1, 10**8 + 1), 2.0), rel=2e-6)


@pytest.mark.parametrize("mass", [1e-13, 1e-17, 1e-100, 1e-300])
@pytest.mark.parametrize("others", [[1.0], [0.5, 0.5]])
def test_a_letter_below_the_steps_of_floats_is_not_dropped_in_silence(
    mass: float, others: list[float]
) -> None:
    prior = Prior([*(share * (1 - mass) for share in others), mass])
    with pytest.raises((SolverError, InfeasibleError), match=r"invariant.* too coarse for"):
        solve(design(prior, PML(2.0), "hamming", constraints=[Invariant()]))


def test_a_budget_of_a_rare_outcome_is_relative_to_its_probability() -> None:
    prior = Prior([1 - 1e-7, 1e-7], ["no", "yes"])
    for nats in (0.0, 1.0, 3.0):
        found = solve(
            design(prior, PML(9.0), "hamming", constraints=[OutcomeLeakage({"yes": nats})])
        )
        told = pointwise_leakage(prior, found.mechanism)[1]
        assert found.mechanism.matrix[:, 1].max() == 0 or told <= nats + 1e-5
        assert found.certificate.verify()


OTHER_FORMS: list[tuple[Any, tuple[Any, ...]]] = [
    (Zeros, ({"a": "b"},)), (Zeros, (("a", "b"),)), (Zeros, (("ab", "cd"),)), (Zeros, ("ab",)), (Zeros, (3,)),
    (Zeros, (None,)), (Zeros, ([("a", "b", "c")],)),
    (Unbiased, ([0, 1, 2],)), (Unbiased, ("ab",)), (Unbiased, (("a", 1),)), (Unbiased, (5,)),
    (Unbiased, ({"a": "b"},)), (Unbiased, ({"a": math.inf},)), (Unbiased, ([(["a"], 1.0)],)),
    (Variance, ("2",)), (Variance, (-1,)), (Variance, ({"a": 1},)),
    (Within, (-1,)), (Within, (1, [1, 2])),
    (Strata, ("ab",)), (Strata, (["ab", "cd"],)), (Strata, ({"north": ["a", "b"]},)), (Strata, (3,)),
    (Strata, ([{"a": 1}],)),
    (OutcomeLeakage, ([0.1, 0.2],)), (OutcomeLeakage, ("yes",)), (OutcomeLeakage, ({"yes": "no"},)),
    (OutcomeLeakage, (0.4,)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "arguments"), OTHER_FORMS)
def test_what_has_another_form_is_refused_with_the_right_one(
    kind: Any, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(ProgramError):
        kind(*arguments)


def test_a_mapping_of_zeros_is_told_the_form() -> None:
    given: Any = {"a": "b"}
    with pytest.raises(ProgramError, match=r"give Zeros\(\[\(letter, output\), \.\.\.\]\)"):
        Zeros(given)


HAS_NO_HASH: Any = ["a"]


@pytest.mark.parametrize(
    "constraints",
    [Invariant(), "invariant", {"a": Invariant()}, [Invariant], 3, [Zeros([("a", "z")])],
     [Zeros([(HAS_NO_HASH, "b")])], [Unbiased({"a": 1})], [Unbiased({})], [Strata([["a"]])],
     [OutcomeLeakage({"z": 1.0})], [Unbiased()]],
)  # fmt: skip
def test_constraints_on_other_labels_or_in_no_list_are_refused(constraints: Any) -> None:
    with pytest.raises(ProgramError):
        design({"a": 0.5, "b": 0.5}, PML(1), "hamming", constraints=constraints)


@pytest.mark.parametrize("labels", [[0.0, math.inf], [0, 10**400], [0.0, 1e200], [0.0, 1e-200]])
def test_labels_without_a_difference_that_floats_hold_are_refused(labels: list[float]) -> None:
    with pytest.raises(ProgramError):
        design(Prior([0.5, 0.5], labels), PML(0.4), "hamming", constraints=[Variance(1)])


def test_floors_bind_where_the_loss_is_against_them(tmp_path: Path) -> None:
    prior = Prior([0.4, 0.3, 0.2, 0.1], list("abcd"))
    kept = ExpectedLoss(np.eye(4))  # one for each record that keeps its value
    overall = solve(design(prior, PML(2.0), kept, constraints=[Retention(0.8)]))
    assert overall.value == pytest.approx(0.8, abs=1e-8)
    floors = {"a": 0.9, "d": 0.5}
    each = solve(design(prior, PML(2.0), kept, constraints=[CategoryRetention(floors)]))
    assert each.value == pytest.approx(0.4 * 0.9 + 0.1 * 0.5, abs=1e-8)
    for name, result in (("overall", overall), ("each", each)):
        assert result.certificate.verify()
        result.save(tmp_path / f"{name}.json")
        assert verify_file(tmp_path / f"{name}.json").holds
    with pytest.raises(InfeasibleError):
        solve(design(prior, PML(0.1), "hamming", constraints=[CategoryRetention(0.8)]))


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (Retention, 1.5), (Retention, -0.1), (Retention, math.nan), (Retention, "most"),
        (CategoryRetention, 80), (CategoryRetention, {"a": 1.2}), (CategoryRetention, {}),
        (CategoryRetention, "0.8"), (CategoryRetention, [0.8, 0.7]), (CategoryRetention, None),
    ],
)  # fmt: skip
def test_a_floor_that_is_no_share_is_refused(make: Any, given: Any) -> None:
    with pytest.raises(InputError):
        make(given)


def test_floors_are_on_letters_that_are_released() -> None:
    with pytest.raises(ProgramError, match="'c'"):
        design(Prior([0.5, 0.3, 0.2], list("abc")), PML(1.0), ExpectedLoss(np.ones((3, 2))), list("ab"),
               [Retention(0.5)])  # fmt: skip
