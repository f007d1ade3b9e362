"""PML given any subset of known attributes: each adversary by brute force, from the joint law alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from commands import run_fully
from scipy.optimize import linprog

from pmlopt import (
    LDP,
    PML,
    ExpectedGain,
    L1Ball,
    MutualInformation,
    Prior,
    Secret,
    design,
    solve,
    verify_file,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InputError, PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.testing import check_requirement

LETTERS = tuple(product("ab", "uv", (1, 2)))


def subsets(known: Iterable[int]) -> Iterable[tuple[int, ...]]:
    places = list(known)
    return chain.from_iterable(combinations(places, size) for size in range(len(places) + 1))


def bounds(
    joint: FloatArray, letters: Any, known: Iterable[int]
) -> list[tuple[FloatArray, FloatArray]]:
    """Return the pairs of laws of X that an adversary compares: given S and X_J, and given X_J."""
    found = []
    for subset in subsets(known):
        values = {tuple(letter[k] for k in subset) for letter in letters}
        for value in values:
            cell = np.array(
                [tuple(letter[k] for k in subset) == value for letter in letters], dtype=float
            )
            mean = joint.sum(axis=0) * cell
            given = [row * cell for row in joint if (row * cell).sum() > 0]
            found += [(row / row.sum(), mean / mean.sum()) for row in given]
    return found


def level(joint: FloatArray, letters: Any, known: Iterable[int], matrix: FloatArray) -> float:
    """Return the largest ratio over all adversaries and the outcomes that may occur for them."""
    ratios = [
        float(above @ column) / float(below @ column)
        for above, below in bounds(joint, letters, known)
        for column in matrix.T
        if above @ column > 0
    ]
    return math.log(max(ratios))


def optimum(
    joint: FloatArray, letters: Any, known: Iterable[int], epsilon: float, gains: FloatArray
) -> float:
    n, m = gains.shape
    rows = []
    for above, below in bounds(joint, letters, known):
        for y in range(m):
            row = np.zeros((n, m))
            row[:, y] = above - math.exp(epsilon) * below
            rows.append(row.ravel())
    equal = np.kron(np.eye(n), np.ones(m))
    costs = -(joint.sum(axis=0)[:, None] * gains).ravel()
    found = linprog(costs, np.array(rows), np.zeros(len(rows)), equal, np.ones(n), method="highs")
    assert found.status == 0
    return -float(found.fun)


@pytest.mark.parametrize("about", [False, True])
@pytest.mark.parametrize("known", ["any", (0,), (0, 2)])
def test_levels_and_designs_are_those_of_every_adversary(known: Any, about: bool) -> None:
    rng = np.random.default_rng(3)
    places = range(3) if known == "any" else known
    law = rng.dirichlet(np.ones(len(LETTERS)))
    joint = rng.dirichlet(np.ones(3 * len(LETTERS))).reshape(3, -1) if about else np.diag(law)
    secret = Secret(joint, LETTERS, name="health") if about else None
    prior = secret.prior if secret is not None else Prior(law, LETTERS)
    requirement = PML(0.4, about=secret, known=known)
    matrix = rng.dirichlet(np.ones(3), len(LETTERS))
    assert requirement.level(prior, matrix) == pytest.approx(
        level(joint, LETTERS, places, matrix), abs=1e-12
    )
    gains = rng.normal(size=(len(LETTERS), 3))
    result = solve(design(prior, requirement, ExpectedGain(gains), 3))
    assert result.value == pytest.approx(optimum(joint, LETTERS, places, 0.4, gains), abs=1e-7)
    assert result.certificate.verify()
    used = result.mechanism.matrix[:, result.mechanism.support]
    assert level(joint, LETTERS, places, used) <= 0.4 + 1e-12


def test_no_known_attribute_is_plain_and_two_letters_that_differ_in_one_are_as_under_local_privacy() -> (
    None
):
    rng = np.random.default_rng(4)
    prior = Prior(rng.dirichlet(np.ones(4)), list(product("ab", "uv")))
    matrix = rng.dirichlet(np.ones(3), 4)
    plain, known = PML(1.0).level(prior, matrix), PML(1.0, known="any").level(prior, matrix)
    assert plain <= known <= LDP(1.0).level(prior, matrix)
    # one attribute of one value: to know it is to know nothing
    alike = Prior(prior.pmf, [(letter, "same") for letter in "abcd"])
    assert PML(1.0, known=[1]).level(alike, matrix) == pytest.approx(plain, abs=1e-15)


def test_several_joint_laws_information_and_conformance() -> None:
    rng = np.random.default_rng(5)
    letters = list(product("ab", "uv"))
    laws = rng.dirichlet(np.ones(8), 2).reshape(2, 2, 4)
    secret = Secret(laws, letters)
    requirement = PML(0.3, about=secret, known="any")
    matrix = rng.dirichlet(np.ones(3), 4)
    expected = max(level(law, letters, range(2), matrix) for law in laws)
    assert requirement.level(secret.prior, matrix) == pytest.approx(expected, abs=1e-12)
    check_requirement(requirement, secret.prior, instances=2)
    prior = Prior(secret.prior.pmf, letters)
    check_requirement(PML(0.3, known=[0]), prior, instances=2)
    result = solve(design(prior, PML(0.3, known=[0]), MutualInformation()))
    assert result.status.value == "optimal"
    assert (
        level(np.diag(prior.pmf), letters, [0], result.matrix[:, result.mechanism.support])
        <= 0.3 + 1e-12
    )
    assert result.value <= solve(design(prior, PML(0.3), MutualInformation())).value + 1e-9


@pytest.mark.parametrize("about", [False, True])
def test_a_saved_design_verifies(about: bool, tmp_path: Path) -> None:
    letters = list(product("ab", "uv"))
    secret = Secret([[0.1, 0.2, 0.1, 0.05], [0.3, 0.1, 0.1, 0.05]], letters)
    requirement: Requirement = PML(0.2, about=secret if about else None, known=[1])
    prior = secret.prior if about else Prior(secret.prior.pmf, letters)
    result = solve(design(prior, requirement, "hamming"))
    result.save(tmp_path / "design.json")
    assert verify_file(tmp_path / "design.json").holds
    joined = solve(design(prior, requirement & LDP(0.5), "hamming"))
    assert set(joined.certificate.levels) == {*requirement.limits, "ldp"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PML(0.1, known=[]), "no attribute"),
        (lambda: PML(0.1, known=[0, 0]), "twice"),
        (lambda: PML(0.1, known=[-1]), "counted from 0"),
        (lambda: PML(0.1, known=cast("Any", [0.5])), "counted from 0"),
        (lambda: PML(0.1, known=cast("Any", "all")), '"any"'),
        (lambda: PML(0.1, known=cast("Any", 0)), "list of positions"),
        (lambda: PML(0.1, over=L1Ball([0.5, 0.5], 0.1), known="any"), "leave out budgets"),
        (lambda: PML([0.1, 0.2], known="any"), "leave out budgets"),
        (lambda: PML(0.1, known="any").level([0.5, 0.5], np.eye(2)), "no tuples of one length"),
        (
            lambda: PML(0.1, known=[2]).level(Prior([0.5, 0.5], [("a", 1), ("b", 1)]), np.eye(2)),
            "position 2",
        ),
        (lambda: design([0.5, 0.5], PML(0.1, known="any"), "hamming"), "no tuples of one length"),
    ],
)
def test_what_cannot_be_known_is_refused(make: Any, words: str) -> None:
    with pytest.raises((PrivacyError, InputError), match=words):
        make()


def test_the_command_line_takes_positions(tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("sex,region,count\nf,n,5\nf,s,3\nm,n,4\nm,s,8\n")
    common = [
        "design",
        "--prior",
        str(tmp_path / "prior.csv"),
        "--epsilon",
        "0.4",
        "--utility",
        "hamming",
    ]
    target = str(tmp_path / "found.json")
    run = run_fully(*common, "--privacy", "pml-given-known", "--known", "1", "-o", target)
    assert run.exit_code == 0, run.output
    assert verify_file(target).holds
    assert "give both" in run_fully(*common, "--privacy", "pml-given-known", code=2).output
    wrong = run_fully(*common, "--privacy", "pml-given-known", "--known", "one", code=2)
    assert "positions of attributes" in wrong.output
