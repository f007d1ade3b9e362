"""No exact count by any way: each law that a file may hold is looked at, and each format of a matrix."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run, run_fully

from pmlopt import (
    PML,
    Box,
    ConvexHull,
    ExpectedGain,
    KLBall,
    L1Ball,
    Ledger,
    Mechanism,
    Polytope,
    Prior,
    Secret,
    closed_forms,
    design,
    least_leakage,
    solve,
)
from pmlopt.core.matrices.formats import FORMATS
from pmlopt.core.records.fields import find_tagged_classes, get_fields
from pmlopt.errors import InputError
from pmlopt.model.constraints import Constraint
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.utility import Utility
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.compliance import prove
from pmlopt.programs.declared_parts import walk_parts
from pmlopt.programs.registry import list_certificates
from pmlopt.publishing import build_stated_prior, check, release
from pmlopt.publishing.published_laws import StatedCounts, find_unstated_parts
from pmlopt.publishing.rounded_counts import bound_share_ratio, round_counts
from pmlopt.publishing.stated_law import build_stated_secret, restate_ledger_law

COUNTS = {"no": 143, "yes": 54}
LABELS = list(COUNTS)
SHARES = np.array([143, 54]) / 197
SHIFT = np.array([0.05, -0.05])
SAMPLE, EXACT, STATED = (
    Prior.from_counts(COUNTS),
    Prior(SHARES, LABELS),
    build_stated_prior(COUNTS),
)
PAIRS = Secret.from_counts([[100, 20], [43, 34]], LABELS, ["x", "y"])
PEOPLE = {"ill": [letter for letter, number in COUNTS.items() for _ in range(number)]}
KNOWN = StatedCounts({"no": 140, "yes": 50}, 197, dict(COUNTS.items()))

LAWS: dict[str, Any] = {
    "Secret": PAIRS,
    "PriorSet": L1Ball(EXACT, 0.05),
    "Center": EXACT,
    "Prior": EXACT,
    "FloatArray": SHARES[None],
    "ndarray": SHARES[None],
    "NDArray": SHARES[None],  # as numpy 2.5 has it
}
"""What tells the exact counts, by a word of the type of a field that can hold it."""

list_certificates()
FIELDS = [
    (kind, one.name, law)
    for base in (Certificate, Requirement, PriorSet, Utility, Constraint)
    for kind in find_tagged_classes(base).values()
    for one in (dataclasses.fields(kind) if base is Certificate else get_fields(kind))
    if (law := next((law for word, law in LAWS.items() if word in str(one.type)), None)) is not None
    and not isinstance(getattr(kind, one.name, None), property)  # which follows from the others
]  # fmt: skip
"""Each field of the code's own kinds of records that can hold a law."""
PROVED = {
    ("multipliers"), ("laws"), ("sensitivities"), ("products"), ("slopes"), ("joint"),
}  # fmt: skip
"""What follows from the other fields of a certificate."""


@pytest.mark.parametrize(
    ("kind", "name", "law"), FIELDS, ids=[f"{kind.__name__}.{name}" for kind, name, _ in FIELDS]
)
def test_a_law_in_any_field_of_any_kind_of_record_is_found(kind: Any, name: str, law: Any) -> None:
    record = object.__new__(kind)
    others = [one.name for one in get_fields(kind)]
    if issubclass(kind, Certificate):
        others = [one.name for one in dataclasses.fields(kind)]
    for other in others:
        if not isinstance(getattr(kind, other, None), property):
            object.__setattr__(record, other, None)
    object.__setattr__(record, name, law)
    found = list(find_unstated_parts(walk_parts("", record), LABELS, [KNOWN]))
    if issubclass(kind, Certificate) and name in PROVED:
        assert not found
    else:
        assert found
        assert found[0].path.startswith(name)


def test_the_list_of_fields_has_the_laws_that_are_known() -> None:
    names = {f"{kind.__name__}.{name}" for kind, name, _ in FIELDS}
    assert {
        "LinearCertificate.prior", "LinearCertificate.table", "PML.over", "PML.about", "L1Ball.center",
        "RatioBound.law", "RatioBound.denominators", "Box.lower", "ConvexHull.points", "Pufferfish.secret",
        "EnvelopeCertificate.over",
    } <= names  # fmt: skip


def test_a_certificate_of_a_given_mechanism_is_no_design() -> None:
    given = {
        kind.__name__
        for kind in find_tagged_classes(Certificate).values()
        if not kind.is_of_design  # type: ignore[attr-defined]
    }
    assert given == {
        "ComplianceCertificate", "EnvelopeCertificate", "ProcessedFailureCertificate", "RecordCertificate",
    }  # fmt: skip


def designed(privacy: Any = None, prior: Prior = STATED, utility: Any = "hamming") -> Any:
    return solve(design(prior, PML(0.4) if privacy is None else privacy, utility))


def over(law: PriorSet) -> Any:
    return designed(PML(0.6, over=law))


def made_for_exact_shares() -> Mechanism:
    return designed(prior=SAMPLE, utility="estimation-error").mechanism  # type: ignore[no-any-return]


def spend(ledger: Ledger) -> Ledger:
    ledger.record([[0.6, 0.4], [0.4, 0.6]], [k % 2 for k in range(197)])
    return ledger


REFUSED: dict[str, Callable[[], Any]] = {
    "counts": lambda: designed(prior=SAMPLE),
    "counts of all but one": lambda: designed(prior=Prior.from_counts({"no": 143, "yes": 53})),
    "shares": lambda: designed(prior=EXACT),
    "shares of all but one": lambda: designed(prior=Prior(np.array([143, 53]) / 196, LABELS)),
    "weights": lambda: designed(prior=Prior.from_weights([143, 54], LABELS)),
    "ten times the counts": lambda: designed(prior=Prior.from_weights([1430, 540], LABELS)),
    "a letter that nobody has": lambda: designed(
        prior=Prior.from_counts({"no": 143, "yes": 54, "other": 1})
    ),
    "a rare letter that nobody has": lambda: designed(
        prior=Prior([*SHARES * (1 - 1e-6), 1e-6], [*LABELS, "?"])
    ),
    "pseudo-counts": lambda: designed(prior=Prior.from_counts({"no": 144, "yes": 55})),
    "a centre of counts": lambda: over(L1Ball(SAMPLE, 0.05)),
    "a centre of shares": lambda: over(KLBall(EXACT, 0.01)),
    "a box around them": lambda: over(Box(SHARES - 0.03, SHARES + 0.07)),
    "a relative box": lambda: over(Box(SHARES * 0.9, SHARES * 1.1)),
    "vertices": lambda: over(ConvexHull([SHARES + SHIFT, SHARES - 0.4 * SHIFT])),
    "half-spaces": lambda: over(
        Polytope([[1, 0], [-1, 0]], [SHARES[0] + 0.05, 0.05 - SHARES[0]])
    ),
    "a joint law of counts": lambda: designed(PML(0.6, about=PAIRS), PAIRS.prior),
    "a joint law of shares": lambda: designed(
        PML(0.6, about=Secret(PAIRS.joint[0], LABELS, ["x", "y"])), EXACT
    ),
    "a gain": lambda: designed(utility=ExpectedGain(np.diag(1 / SHARES))),
    "what a ledger leaves": lambda: designed(
        Ledger(SAMPLE, 197, 0.9).joint_requirement(), utility="hamming"
    ),
    "what a ledger leaves after a release": lambda: designed(
        spend(Ledger(SAMPLE, 197, 0.9)).joint_requirement() & PML(0.5)
    ),
    "a posterior": lambda: designed(prior=spend(Ledger(SAMPLE, 197, 0.9)).prior(0)),
    "least leakage": lambda: solve(least_leakage(SAMPLE, PML(0.0), "hamming", 0.2)),
    "a bare matrix": made_for_exact_shares,
    "a proof of a bare matrix": lambda: prove(STATED, PML(0.6), made_for_exact_shares()),
}  # fmt: skip


@pytest.mark.parametrize("way", REFUSED)
def test_what_does_not_follow_from_the_stated_counts_is_refused(way: str) -> None:
    made = REFUSED[way]()
    with pytest.raises(InputError, match="exact shares of these people"):
        release(PEOPLE, {"ill": made})
    release(PEOPLE, {"ill": made}, exact_counts=True)


TAKEN: dict[str, Callable[[], Any]] = {
    "the stated law": lambda: designed(utility="estimation-error"),
    "the stated law of an earlier wave": lambda: designed(
        prior=Prior.from_weights([150, 50], LABELS)
    ),
    "a law that is known otherwise": lambda: designed(prior=Prior([0.7, 0.3], LABELS)),
    "the uniform law": lambda: designed(prior=Prior.uniform(2, LABELS)),
    "a ball around the stated law": lambda: over(L1Ball(STATED, 0.05)),
    "a box around it": lambda: over(Box(STATED.pmf - 0.05, STATED.pmf + 0.05)),
    "a box of two digits": lambda: over(Box([0.68, 0.2], [0.8, 0.32])),
    "rounded pairs": lambda: designed(
        PML(0.6, about=build_stated_secret(PAIRS)), build_stated_secret(PAIRS).prior
    ),
    "a gain of stated shares": lambda: designed(utility=ExpectedGain(np.diag(1 / STATED.pmf))),
    "a ledger for the stated law": lambda: designed(
        spend(Ledger(STATED, 197, 0.9)).joint_requirement()
    ),
}


@pytest.mark.parametrize("way", TAKEN)
def test_what_follows_or_is_known_otherwise_is_released_and_checked(
    way: str, tmp_path: Path
) -> None:
    release(PEOPLE, {"ill": TAKEN[way]()}, tmp_path / "out")
    found = {part.name: part.holds for part in check(tmp_path / "out").parts}
    assert found["no exact count"]


@pytest.mark.parametrize("level", [0.3, 1.0, math.log(7)])
def test_a_local_randomizer_needs_no_law(level: float) -> None:
    matrix = closed_forms.randomized_response(2, level).matrix
    release(PEOPLE, {"ill": Mechanism(matrix, LABELS, LABELS)})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("ill\n" + "".join(f"{letter}\n" for letter in PEOPLE["ill"]))
    return tmp_path


ASKED = ("design", "--prior", "p.csv", "--column", "ill", "--utility", "estimation-error")
RELEASED = ("release", "p.csv", "--column", "ill")


@pytest.mark.parametrize("ending", sorted(FORMATS))
def test_a_design_for_exact_counts_is_warned_of_and_refused_in_each_format(
    place: Path, ending: str
) -> None:
    file = f"m{ending}"
    if FORMATS[ending].write is None and ending not in (".json", ".npz", ".csv"):
        pytest.importorskip({".xlsx": "openpyxl", ".mat": "scipy"}.get(ending, "pyarrow"))
    said = run_fully(*ASKED, "--epsilon", 0.4, "-o", file).stderr
    assert f"{file} has the exact counts of 197 people: do not publish it" in said
    refused = run(*RELEASED, "--mechanism", file, "-o", "out", code=2)
    assert "--round-counts" in refused
    assert not Path("out").exists()


def test_a_design_within_a_ledger_tells_no_exact_share(place: Path) -> None:
    book = ("ledger", "new", "l.npz", "--prior", "p.csv", "--column", "ill", "--people", 197)
    run(*book, "--total", 0.9)
    within = ("--utility", "hamming", "--ledger", "l.npz", "--within-ledger")
    run(*ASKED[:-2], *within, "--round-counts", "-o", "d.json")
    assert "exact counts" in run(*ASKED[:-2], *within, "-o", "exact.json")
    run(*RELEASED, *within, "-o", "out")
    run("check", "out")
    for file in ("d.json", "out/mechanisms/ill.json"):
        found = json.loads(Path(file).read_text())["metadata"]["certificate"]["privacy"]
        np.testing.assert_allclose(found["denominators"], [[14 / 19, 5 / 19]] * 2, atol=1e-15)
        # r <= (10/9) p for all counts that are stated so, so that the total 0.9 is kept under p
        assert found["epsilon"] == pytest.approx(0.9 - math.log(10 / 9), abs=1e-9)
        assert found["law"] == "prior"
    run(*book[:2], "rounded.npz", *book[3:], "--total", 0.9, "--round-counts")
    assert Ledger.load("rounded.npz").initial.counts == (140, 50)
    # shares in place of counts are those of the people all the same
    Ledger(EXACT, 197, 0.9).save("shares.npz")
    within = (*within[:3], "shares.npz", within[-1])
    assert "--round-counts: " in run(*ASKED[:-2], *within, "--round-counts", "-o", "e.json", code=2)
    assert "exact shares of these people" in run(*RELEASED, *within, "-o", "two", code=2)


def test_a_folder_with_exact_shares_fails_its_check(place: Path) -> None:
    release(PEOPLE, {"ill": designed()}, "out")
    ended = {}
    for name, made in {
        "counts": designed(prior=SAMPLE),
        "shares": designed(prior=EXACT),
        "digits": over(Box([0.512345, 0.1], [0.9, 0.487655])),
    }.items():
        made.save("out/mechanisms/ill.json")
        parts = {part.name: part.holds for part in check("out").parts}
        ended[name] = parts["no exact count"]
    assert ended == {"counts": False, "shares": False, "digits": None}


@pytest.mark.parametrize("step", [2, 3])
def test_no_exact_share_is_smaller_than_the_bound_allows(step: int) -> None:
    # every table of two and three letters of some sizes
    for people, letters in itertools.product((11, 17), (2, 3)):
        for counts in itertools.product(range(1, people), repeat=letters - 1):
            if (rest := people - sum(counts)) < 1:
                continue
            exact = np.array([*counts, rest])
            stated = round_counts(exact, step, list(range(letters)))
            ratio = (stated / stated.sum() / (exact / people)).max()
            assert ratio <= bound_share_ratio(stated, step, people)


def test_the_total_of_a_ledger_is_kept_under_the_exact_law() -> None:
    law, allowance = restate_ledger_law(SAMPLE)
    book = spend(Ledger(SAMPLE, 197, 0.9))
    within = book.joint_requirement(epsilon=0.9 - allowance, law=law)
    assert book.allows(designed(within).mechanism)
    assert within.law == STATED
