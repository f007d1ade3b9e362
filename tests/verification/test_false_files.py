"""Files that claim what is false, or hold what nobody wrote there, are refused by both verifiers."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from fuzzing.tampering import is_proof, mutated, places, still_true, tells_nothing
from saved_cases import CASES, COUNTED, GIVEN, LOSS, P, script, solved, text_of
from scipy.optimize import linprog

from pmlopt import (
    PML,
    L1Ball,
    Mechanism,
    MinimumMass,
    Prior,
    confidence_ball,
    confidence_box,
    design,
    solve,
    verify_file,
)
from pmlopt.core.arrays import Label
from pmlopt.errors import FileFormatError, PmloptError, SolverError
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import Found, Method
from pmlopt.solvers.outcome import Options
from pmlopt.verification import trusted_mechanism, verifier, write_report

CERTIFICATE = ("metadata", "certificate")


def saved(name: str) -> Any:
    return json.loads(text_of(name))


def accepted(path: Path, data: Any) -> tuple[bool, bool]:
    """Whether each of the two verifiers accepts data; what is not of the format is refused, with no abort."""
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    try:
        holds = verify_file(path).holds is True
    except PmloptError:
        holds = False
    code, _ = script(path)
    assert code in (0, 1, 2)
    return holds, code == 0


def edited(name: str, place: tuple[str | int, ...], value: Any) -> Any:
    data = saved(name)
    owner = data
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    return data


def identity(change: Callable[[dict[str, Any]], None]) -> Any:
    """A file in which the identity is said to keep a requirement, as edited."""
    data = saved("pml")
    data["matrix"] = np.eye(3).tolist()
    change(data["metadata"]["certificate"]["privacy"])
    return data


FALSE: Mapping[str, Callable[[], Any]] = {
    "limits of other names": lambda: identity(lambda asked: asked.update(limits={"zzz": 3.0, "pml": 0.1})),
    "a large limit beside": lambda: identity(lambda asked: asked.update(epsilon=3.0, pml=0.1)),
    "a set of ldp": lambda: edited("ldp", (*CERTIFICATE, "privacy", "set"), {"size": 3}),
    "all of nothing": lambda: edited("pml", (*CERTIFICATE, "privacy"), {"name": "all-of", "parts": []}),
    "labels twice": lambda: edited("counts", ("outputs",), ["a", "a", "c"]),
    "letters twice": lambda: edited("counts", ("inputs",), ["a", "a", "c"]),
    "less confidence": lambda: edited("confidence-ball", (*CERTIFICATE, "privacy", "over", "delta"), 1e-300),
    "no confidence": lambda: edited("confidence-ball", (*CERTIFICATE, "privacy", "over", "delta"), -1e308),
    "confidence of a box": lambda: edited("confidence-box", (*CERTIFICATE, "privacy", "over", "delta"), 1e-9),
    "words as proof": lambda: edited("joint-laws", (*CERTIFICATE, "privacy", "over", "words"), "of any kind"),
    "a key that nobody knows": lambda: edited("pml", (*CERTIFICATE, "epsilon"), 0.001),
    "one of the file": lambda: edited("pml", ("epsilon",), 0.001),
    "one of the result": lambda: edited("pml", ("metadata", "epsilon"), 0.001),
    "one of the prior": lambda: edited("pml", ("metadata", "prior", "epsilon"), 0.001),
    "one of the repair": lambda: edited("pml", (*CERTIFICATE, "repair", "epsilon"), 0.001),
    "a key twice": lambda: text_of("pml").replace('"version"', '"version": 3, "version"'),
    "a number in quotes": lambda: edited("pml", (*CERTIFICATE, "privacy", "epsilon"), "1e999999999"),
    "a huge number": lambda: text_of("pml").replace('"epsilon": 0.3', '"epsilon": 1e999999999'),
    "a huge set": lambda: edited("minimum-mass", (*CERTIFICATE, "privacy", "over", "size"), 300_000_000),
    "a huge circle": lambda: edited("circle", ("space", "size"), 10**9),
    "huge tables": lambda: edited("types", ("space", "records"), 10**9),
    "more outputs than numbers": lambda: edited("types", ("space", "outputs"), 10**30),
    "no mass": lambda: {**saved("types"), "masses": ["0"] * len(saved("types")["masses"]), "total": "0"},
    "no metadata": lambda: edited("pml", ("metadata",), None),
    "no certificate": lambda: edited("pml", CERTIFICATE, None),
    "a status of its own": lambda: edited("pml", ("metadata", "status"), "proved"),
    "an optimum without a bound": lambda: {
        **(data := edited("pml", (*CERTIFICATE, "bound"), "-inf")),
        "metadata": {**data["metadata"], "bound": None, "gap": None},
    },
}


@pytest.mark.parametrize("name", FALSE)
def test_files_that_lie_are_refused_by_both(name: str, tmp_path: Path) -> None:
    assert accepted(tmp_path / "result.json", FALSE[name]()) == (False, False)


@pytest.mark.parametrize(
    "content", ["", "[]", "null", "{}", "[[[", '{"format": "pmlopt-mechanism"}', "1" * 9999]
)
def test_files_of_no_format_prove_nothing(content: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert accepted(path, content) == (False, False)
    assert script(path)[0] == 2


def test_the_script_says_what_it_proved(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    words = {
        "pml": "for the prior of the file",
        "ball": "for every prior within l1 distance 0.1 of the centre",
        "confidence-ball": "for the true law, but with probability 0.5 over the sample",
    }
    for name in words:
        path.write_text(text_of(name))
        code, said = script(path)
        assert code == 0
        assert "3 x 3 matrix keeps pml of" in said
        assert words[name] in said
        assert "no other mechanism" in said


@pytest.mark.parametrize(
    ("sample", "share"), [({"a": 50, "b": 30, "c": 20}, 0.5), ({"a": 5000, "b": 3000, "c": 0}, 1e-3)]
)
def test_the_probability_of_a_ball_follows_from_its_counts(sample: dict[Label, int], share: float) -> None:
    ball = confidence_ball(sample, share)
    program = design(Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), PML(1.5, ball), LOSS)
    claims = {claim.name: claim.holds for claim in solve(program).certificate.checks()}
    assert claims["confidence"] is True
    lower = L1Ball(ball.center, ball.radius, share / 2)
    certificate = replace(solve(program).certificate, privacy=PML(1.5, lower))
    assert {claim.name: claim.holds for claim in certificate.checks()}["confidence"] is not True


def test_a_probability_that_no_sample_shows_is_not_checked() -> None:
    for over in (L1Ball(P, 0.1, 0.01), confidence_ball(COUNTED, 0.5, kappa=0.4)):
        prior = COUNTED if over.center.counts else Prior(P)
        claims = {c.name: c.holds for c in solve(design(prior, PML(1.0, over), LOSS)).certificate.checks()}
        assert claims["confidence"] is None
    box = confidence_box(COUNTED, 0.5)
    claims = {c.name: c.holds for c in solve(design(COUNTED, PML(1.5, box), LOSS)).certificate.checks()}
    assert claims["confidence"] is True


FALSE_BY = 1e-3


@pytest.mark.parametrize("name", CASES)
def test_numbers_that_are_changed_in_hand_do_not_verify(name: str) -> None:
    result = solved(name)
    certificate, sign = result.certificate, 1 if CASES[name]().maximised else -1
    assert certificate.verify()
    assert certificate.gap == abs(certificate.bound - certificate.value)
    step = FALSE_BY * max(1.0, abs(certificate.value))
    better = replace(certificate, value=certificate.value + sign * (certificate.gap + step))
    assert not better.verify()
    beyond = replace(certificate, bound=certificate.value - sign * step)
    assert not beyond.verify()
    assert not replace(certificate, value=math.nan).verify()
    assert not replace(certificate, bound=math.nan).verify()
    names = {claim.name for claim in certificate.checks()}
    assert {"value", "bound", "gap"} <= names
    with pytest.raises(TypeError, match="gap"):
        replace(certificate, gap=0.0)


@pytest.mark.parametrize("name", CASES)
def test_what_solve_calls_optimal_has_no_claim_that_fails(name: str) -> None:
    result = solved(name)
    assert result.status.value == "optimal"
    assert [claim.name for claim in result.certificate.checks() if claim.holds is False] == []
    assert result.gap <= CASES[name]().allowed_gap(CASES[name]().tolerance)


def test_zeros_do_not_verify() -> None:
    assert not replace(solved("pml").certificate, value=0.0, bound=0.0).verify()
    assert not replace(solved("gain").certificate, value=0.0, bound=0.0).verify()


def boast(program: LinearDesign, options: Options, start: Any) -> Found[Any]:
    """A method whose certificate says more than is so."""
    good = solve(program).certificate
    lie = replace(good, value=good.value - 0.1, bound=good.bound - 0.1)
    return Found(certificate=lie, finished=True, message="it says so")


def test_a_certificate_that_fails_is_not_optimal() -> None:
    with pytest.raises(SolverError, match=r"its certificate fails: value: FAILS"):
        solve(CASES["pml"](), Method("boasting", "for a test", boast))


def exact_level(matrix: list[list[float]], law: list[float]) -> Fraction:
    """The largest ratio of an entry to the probability of its outcome."""
    total = sum(map(Fraction, law))
    p = [Fraction(v) / total for v in law]
    columns = [list(map(Fraction, column)) for column in zip(*matrix, strict=True)]
    means = [sum(w * v for w, v in zip(p, c, strict=True)) for c in columns]
    return max(max(c) / mean for c, mean in zip(columns, means, strict=True) if mean)


@pytest.mark.parametrize("seed", range(6))
def test_levels_are_rounded_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    law = rng.dirichlet(np.ones(n))
    result = solve(design(law, PML(float(rng.uniform(0.05, 2.0))), type(LOSS)(rng.random((n, n)))))
    ratio = exact_level(result.mechanism.matrix.tolist(), law.tolist())
    digits = verifier.power(Fraction(result.level), True)  # type: ignore[no-untyped-call]
    assert digits >= ratio
    assert result.level <= result.certificate.privacy.limits["pml"]
    assert result.level <= math.log(ratio) + 1e-14


def still_so(data: Any) -> bool:
    """Whether level, value and bound of a design under PML and a given prior are so, by another program.

    The level is computed as a fraction, the optimum by a linear program that is written down here.
    """
    told, matrix = data["metadata"]["certificate"], np.array(data["matrix"], dtype=float)
    law = np.array(data["metadata"]["prior"]["probabilities"], dtype=float)
    law, table = law / law.sum(), np.array(told["table"], dtype=float)
    limit, sign = told["privacy"]["epsilon"], -1 if told["maximised"] else 1
    n, m = table.shape
    if exact_level(matrix.tolist(), law.tolist()) > verifier.power(Fraction(limit), True):  # type: ignore[no-untyped-call]
        return False
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.vstack([
        np.kron(np.eye(n)[x] - math.exp(limit) * law, np.eye(m)[y]) for x in range(n) for y in range(m)
    ])  # fmt: skip
    best = linprog((sign * law[:, None] * table).ravel(), columns, np.zeros(n * m), rows, np.ones(n))
    value = float((law[:, None] * table * matrix).sum())
    right = abs(value - told["value"]) < 1e-9 and sign * told["bound"] <= best.fun + 1e-7
    gap = data["metadata"]["gap"]
    return bool(right and abs(gap - abs(told["bound"] - told["value"])) < 1e-9)


LABELS = ("outputs", "labels", "values", "name", "inputs", "unnamed", "pricing")


@pytest.mark.parametrize("name", [*CASES, *GIVEN])
def test_what_is_changed_is_refused_or_still_so(name: str, tmp_path: Path) -> None:
    data, rng, path = saved(name), random.Random(f"{name} 1"), tmp_path / "result.json"
    every = list(places(data))
    for place in rng.sample(every, min(len(every), 6)):
        other = mutated(data, place, rng)
        holds, alone = accepted(path, other)
        if other == data or not (holds or alone):
            continue
        if tells_nothing(place) or is_proof(place) or set(LABELS) & set(place):
            continue
        if data["metadata"]["certificate"]["kind"] == "linear" and name in ("pml", "counts", "gain"):
            assert still_so(other), place
        else:
            assert weaker(data, other, place) or still_true(other), place


def weaker(data: Any, other: Any, place: tuple[str | int, ...]) -> bool:
    """Whether a claim that was changed says no more than before, or is of numbers that nothing depends on."""
    old, new = data, other
    for key in place:
        old, new = old[key], new[key]
    return old == new or isinstance(old, int | float) or "orbits" in place


@pytest.mark.parametrize("name", ["counts"])
def test_every_number_of_a_plain_design_is_refused_or_still_so(name: str, tmp_path: Path) -> None:
    data, path = saved(name), tmp_path / "result.json"
    rng = random.Random(name)
    for place in places(data):
        if place[:1] in (("matrix",), ("inputs",)) or place[:2] == CERTIFICATE:
            other = mutated(copy.deepcopy(data), place, rng)
            holds, alone = accepted(path, other)
            if other != data and (holds or alone) and not tells_nothing(place) and not is_proof(place):
                assert set(LABELS) & set(place) or still_so(other), place


def test_a_false_file_is_no_promise_and_no_mechanism(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(edited("counts", (*CERTIFICATE, "privacy", "epsilon"), 0.2)))
    with pytest.raises(FileFormatError, match="there is no report of a result that is false: level"):
        write_report(path, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    run("report", path, code=2)
    with pytest.raises(FileFormatError, match="what its certificate claims is false"):
        trusted_mechanism(path)
    assert json.loads(run("verify", path, "--json", code=1))["holds"] is False
    path.write_text(text_of("counts"))
    assert trusted_mechanism(path).matrix.tolist() == solved("counts").mechanism.matrix.tolist()
    path.write_text(text_of("types"))
    assert trusted_mechanism(path).inputs
    Mechanism(np.eye(2)).save(tmp_path / "plain.csv")
    assert trusted_mechanism(tmp_path / "plain.csv").matrix.tolist() == np.eye(2).tolist()


def test_sets_of_other_sizes_are_refused() -> None:
    with pytest.raises(PmloptError):
        solve(design(P, PML(0.6, MinimumMass(4, 0.1)), LOSS))
