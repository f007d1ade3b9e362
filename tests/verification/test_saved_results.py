"""Saved results are checked from their files alone; what is false, or what nobody wrote there, is refused."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from commands import run
from fuzzing.tampering import changed, is_proof, leaves, mutated, places, still_true, tells_nothing
from saved_cases import CASES, COUNTED, GIVEN, LOSS, P, bent, script, solved, text_of
from scipy import stats
from scipy.optimize import linprog

from pmlopt import (
    LDP,
    PML,
    Continuous,
    DistanceLoss,
    ExpectedLoss,
    L1Ball,
    Ledger,
    Mechanism,
    MinimumMass,
    Prior,
    RenyiPML,
    Result,
    SubConvex,
    confidence_ball,
    confidence_box,
    design,
    load,
    solve,
    verify_file,
)
from pmlopt.core.numbers.arrays import Label
from pmlopt.data.symmetry import OrbitMechanism
from pmlopt.errors import FileFormatError, PmloptError, SolverError
from pmlopt.programs.certificate import DECIMAL
from pmlopt.programs.claims import FLOATS, RATIONAL, STRICT_DECIMALS
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import Method, MethodResult
from pmlopt.programs.reports.standalone import find_proved_part
from pmlopt.solvers.solver_result import MethodOptions
from pmlopt.verification import load_trusted_mechanism, verifier, write_report

CERTIFICATE = ("metadata", "certificate")
SCHEMA = Path(__file__).parents[2] / "docs" / "mechanism.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))


def saved(name: str) -> Any:
    return json.loads(text_of(name))


def judged(path: Path, data: Any) -> tuple[bool | None, int]:
    """The verdict on data, and the code of the script; what is of no format is refused, with no abort."""
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    try:
        holds = verify_file(path).holds
    except PmloptError:
        holds = False
    code, _ = script(path)
    assert code in (0, 1, 2, 3)
    return holds, code


def edited(name: str, place: tuple[str | int, ...], value: Any) -> Any:
    data = saved(name)
    owner = data
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    return data


def asked(name: str, key: str, value: Any) -> Any:
    """A file with another requirement."""
    return edited(name, (*CERTIFICATE, "privacy", *key.split(".")), value)


def identity(**privacy: Any) -> Any:
    """A file in which the identity is said to keep a requirement, as edited."""
    data = saved("pml")
    data["matrix"] = np.eye(3).tolist()
    data["metadata"]["certificate"]["privacy"].update(privacy)
    return data


PROVED = [
    "pml", "ldp", "lip", "maximal-leakage", "ball", "wide-ball", "point", "minimum-mass", "all-priors",
    "counts", "confidence-ball", "gain", "threshold",
]  # fmt: skip
"""What the script proves."""

LEAKAGE_PROVED = [
    "information", "information-maximal", "variation", "information-over", "estimation", "estimation-D",
]  # fmt: skip
"""Results of which the script proves the leakage, and not value and bound; of all else it proves nothing."""


WITHOUT_NUMBERS = {"mechanism", "pairs", "prior", "next threshold", "level"}
"""Claims of which the certificate need not name a number."""


@pytest.mark.parametrize("name", [*CASES, *GIVEN])
def test_every_kind_is_checked_from_its_file(name: str, tmp_path: Path) -> None:
    path, text = tmp_path / "result.json", text_of(name)
    path.write_text(text)
    verdict = verify_file(path)
    assert verdict.holds is True, str(verdict)
    certificate = solved(name).certificate
    assert json.loads(json.dumps(certificate.to_dict())) == saved(name)["metadata"]["certificate"]
    for part in certificate.checks():
        assert part.holds is True
        assert part.arithmetic in (RATIONAL, FLOATS, DECIMAL, STRICT_DECIMALS)
        assert part.name
        assert part.detail
        if part.name in ("value", "bound", "gap"):
            assert part.claimed == getattr(certificate, part.name)
        assert part.claimed is not None or part.name in WITHOUT_NUMBERS, part.name
        if part.name == "limit":
            other = "distortion" if certificate.sense == "leakage" else "leakage"
            assert part.detail.startswith(f"the {other} is proved")
    code, said = script(path)
    assert code == (0 if name in PROVED else 3 if name in LEAKAGE_PROVED else 2), said
    assert ("nothing is proved" in said) is (code == 2)
    assert ("not proved: value and bound" in said) is (code == 3)
    part = find_proved_part(certificate, path.name)  # what a report advises
    assert {"all": 0, "leakage": 3, "": 2}[part] == code
    if len(text) < 20_000:  # others are as they, and longer
        assert not [error.message[:200] for error in VALIDATOR.iter_errors(json.loads(text))]


FALSE_BY = 1e-3


@pytest.mark.parametrize("name", CASES)
def test_what_is_optimal_has_no_claim_that_fails_and_changed_in_hand_it_does_not_verify(
    name: str,
) -> None:
    result, program = solved(name), CASES[name]()
    certificate, sign = result.certificate, 1 if program.maximised else -1
    assert result.status.value == "optimal"
    assert result.gap <= program.compute_allowed_gap(program.tolerance)
    claims = certificate.checks()
    assert [claim.name for claim in claims if claim.holds is False] == []
    assert {"value", "bound", "gap"} <= {claim.name for claim in claims}
    assert certificate.gap == abs(certificate.bound - certificate.value)
    step = FALSE_BY * max(1.0, abs(certificate.value))
    better = replace(certificate, value=certificate.value + sign * (certificate.gap + step))
    beyond = replace(certificate, bound=certificate.value - sign * step)
    assert not better.verify()
    assert not beyond.verify()
    with pytest.raises(TypeError, match="gap"):
        replace(certificate, gap=0.0)


def test_zeros_and_numbers_that_are_none_do_not_verify() -> None:
    for name in ("pml", "gain"):
        for change in ({"value": 0.0, "bound": 0.0}, {"value": math.nan}, {"bound": math.nan}):
            assert not replace(solved(name).certificate, **change).verify()


LABELS = ("outputs", "labels", "values", "name", "inputs", "unnamed", "pricing")
"""Names, which claim nothing."""


def weaker(data: Any, other: Any, place: tuple[str | int, ...]) -> bool:
    """Whether a claim that was changed says no more than before, or is of numbers that nothing depends on."""
    old, new = data, other
    for key in place:
        old, new = old[key], new[key]
    return old == new or isinstance(old, int | float) or "orbits" in place


def check_changed(
    name: str, data: Any, other: Any, place: tuple[str | int, ...], path: Path
) -> None:
    """What stands at a place is another thing: it is refused, or what the file says is still so."""
    holds, code = judged(path, other)
    if other == data or not (holds or code == 0):
        return
    if tells_nothing(place) or is_proof(place) or set(LABELS) & set(place):
        return
    if name in ("pml", "counts", "gain"):
        assert still_so(other), place
    else:
        assert weaker(data, other, place) or still_true(other), place


@pytest.mark.parametrize("name", [*CASES, *GIVEN])
def test_what_is_changed_is_refused_or_still_so(name: str, tmp_path: Path) -> None:
    data, rng, path = saved(name), random.Random(name), tmp_path / "result.json"
    numbers, every = list(leaves(data)), list(places(data))
    for place in rng.sample(numbers, min(len(numbers), 2)):
        other = changed(data, place, rng.choice([1e-3, -1e-3, 1e-6]))
        holds, code = judged(path, other)
        assert (code != 0) or holds is True, place
        assert code != 1 or holds is False, place
        assert holds is False or is_proof(place) or still_true(other), place
    for place in rng.sample(every, min(len(every), 3)):
        check_changed(name, data, mutated(data, place, rng), place, path)


def test_every_number_of_a_plain_design_is_refused_or_still_so(tmp_path: Path) -> None:
    data, rng = saved("counts"), random.Random("counts")
    for place in places(data):
        if place[:1] in (("matrix",), ("inputs",)) or place[:2] == CERTIFICATE:
            check_changed(
                "counts", data, mutated(data, place, rng), place, tmp_path / "result.json"
            )


FALSE: Mapping[str, Callable[[], Any]] = {
    "limits of other names": lambda: identity(limits={"zzz": 3.0, "pml": 0.1}),
    "a large limit beside": lambda: identity(epsilon=3.0, pml=0.1),
    "a set of ldp": lambda: asked("ldp", "set", {"size": 3}),
    "all of nothing": lambda: edited(
        "pml", (*CERTIFICATE, "privacy"), {"name": "all-of", "parts": []}
    ),
    "labels twice": lambda: edited("counts", ("outputs",), ["a", "a", "c"]),
    "letters twice": lambda: edited("counts", ("inputs",), ["a", "a", "c"]),
    "less confidence": lambda: asked("confidence-ball", "over.delta", 1e-300),
    "no confidence": lambda: asked("confidence-ball", "over.delta", -1e308),
    "confidence of a box": lambda: asked("confidence-box", "over.delta", 1e-9),
    "words as proof": lambda: asked("joint-laws", "over.words", "of any kind"),
    "a key that nobody knows": lambda: edited("pml", (*CERTIFICATE, "epsilon"), 0.001),
    "one of the file": lambda: edited("pml", ("epsilon",), 0.001),
    "one of the result": lambda: edited("pml", ("metadata", "epsilon"), 0.001),
    "one of the prior": lambda: edited("pml", ("metadata", "prior", "epsilon"), 0.001),
    "one of the repair": lambda: edited("pml", (*CERTIFICATE, "repair", "epsilon"), 0.001),
    "a key twice": lambda: text_of("pml").replace('"version"', '"version": 3, "version"'),
    "a number in quotes": lambda: asked("pml", "epsilon", "1e999999999"),
    "a huge number": lambda: text_of("pml").replace('"epsilon": 0.3', '"epsilon": 1e999999999'),
    "a huge set": lambda: asked("minimum-mass", "over.size", 300_000_000),
    "a huge circle": lambda: edited("circle", ("space", "size"), 10**9),
    "huge tables": lambda: edited("types", ("space", "records"), 10**9),
    "more outputs than numbers": lambda: edited("types", ("space", "outputs"), 10**30),
    "no mass": lambda: {
        **saved("types"),
        "masses": ["0"] * len(saved("types")["masses"]),
        "total": "0",
    },
    "no metadata": lambda: edited("pml", ("metadata",), None),
    "no certificate": lambda: edited("pml", CERTIFICATE, None),
    "a status of its own": lambda: edited("pml", ("metadata", "status"), "proved"),
    "an optimum without a bound": lambda: {
        **(data := edited("pml", (*CERTIFICATE, "bound"), "-inf")),
        "metadata": {**data["metadata"], "bound": None, "gap": None},
    },
}


def test_files_that_lie_are_refused_by_both(tmp_path: Path) -> None:
    for name, lie in FALSE.items():
        holds, code = judged(tmp_path / "result.json", lie())
        assert (holds is True, code == 0) == (False, False), name


def test_files_of_no_format_prove_nothing(tmp_path: Path) -> None:
    path, unknown = (
        tmp_path / "result.json",
        edited("pml", ("metadata",), {"certificate": {"kind": "x"}}),
    )
    texts = ["", "[]", "null", "{}", "[[[", '{"format": "pmlopt-mechanism"}', "1" * 9999]
    for content in (
        *texts,
        edited("pml", ("version",), 1),
        edited("pml", ("metadata",), {}),
        unknown,
    ):
        assert judged(path, content) == (False, 2), content
        with pytest.raises(FileFormatError):
            verify_file(path)
        run("verify", path, code=2)


@pytest.mark.parametrize("name", ["types", "circle", "product"])
def test_masses_that_are_moved_are_refused(name: str, tmp_path: Path) -> None:
    data, path = saved(name), tmp_path / "result.json"
    path.write_text(text_of(name))
    orbits = OrbitMechanism.load(path).space.orbits
    masses = [int(mass) for mass in data["masses"]]
    largest = max(range(len(masses)), key=lambda place: masses[place])
    other = max(
        (
            k
            for k in range(len(masses))
            if k != largest and orbits.letter[k] == orbits.letter[largest]
        ),
        key=lambda place: masses[place],
    )
    step = masses[largest] // 1000
    for more, less in ((step, step), (-step - 1, -step - 1), (1, 0)):
        made = list(masses)
        made[other], made[largest] = made[other] + more, made[largest] - less
        if made[other] >= 0:
            assert judged(path, {**data, "masses": list(map(str, made))})[0] is False


def test_a_level_by_orbits_that_is_broken_names_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert judged(path, asked("types", "epsilon", 0.9))[0] is False
    parts = {part.name: part for part in verify_file(path).parts}
    assert parts["level"].holds is False
    assert parts["level"].is_exact
    assert "pml 1 of at most 0.9" in parts["level"].detail
    assert parts["mechanism"].holds
    assert "FALSE" in run("verify", path, code=1)


def test_what_rests_on_the_law_of_a_number_is_not_called_true(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    program = design(Continuous(stats.norm(), support=(-1.0, 1.0)), PML(0.7), DistanceLoss())
    solve(program, tolerance=0.5).save(path)
    verdict, data = verify_file(path), json.loads(path.read_text())
    parts = {part.name: part.holds for part in verdict.parts}
    assert verdict.holds is None, str(verdict)
    assert {name for name, holds in parts.items() if holds is None} == {"law"}
    assert {part.arithmetic for part in verdict.parts} <= {RATIONAL, FLOATS}
    (value,) = (part for part in verdict.parts if part.name == "value of the secret")
    assert value.claimed == value.recomputed is not None
    assert {"mechanism", "level", "value", "bound", "gap", "bins"} <= {*parts}
    assert "cannot be checked" in run("verify", path, code=3)
    assert script(path)[0] == 2
    assert VALIDATOR.is_valid(data)
    bins = (*CERTIFICATE, "bins")
    certificate = solve(program, tolerance=0.5).certificate
    wider = Continuous(stats.norm(scale=2), support=(-1.0, 1.0))
    (law, *_) = (one for one in replace(certificate, secret=wider).checks() if one.name == "law")
    assert (law.holds, law.detail) == (False, "the bins have other probabilities of the law")
    for place in (
        ("matrix", 0, 0), ("metadata", "value"), ("metadata", "level"), (*CERTIFICATE, "value"),
        (*CERTIFICATE, "bound"), ("metadata", "gap"), ("metadata", "bound"), (*bins, "value"),
        (*bins, "privacy", "epsilon"), ("metadata", "prior", "probabilities", 1), (*bins, "table", 0, 0),
    ):  # fmt: skip
        assert judged(path, changed(data, place, -1e-3))[0] is False, place


def test_a_file_cannot_grant_itself_room_for_an_added_constraint(tmp_path: Path) -> None:
    program = design(P, PML(0.4), LOSS)
    free, path = solve(program), tmp_path / "forged.json"
    kept = solve(program.with_constraints(cap=program.mechanism[0, 0] <= 0.3))
    certificate = replace(
        kept.certificate, mechanism=free.mechanism, value=free.value,
        residuals={**kept.certificate.residuals, "cap": 1.0},
    )  # fmt: skip
    replace(kept, certificate=certificate).save(path)
    assert free.mechanism.matrix[0, 0] > 0.31
    assert verify_file(path).holds is False
    assert script(path)[0] == 2


def test_what_no_file_holds_is_not_called_true(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    spread = SubConvex(lambda column, p: p @ abs(column - p @ column))
    for program, code in ((bent(), 2), (design([0.5, 0.5], PML(0.4), spread), 3)):
        solve(program).save(path)
        assert verify_file(path).holds is None
        assert script(path)[0] == code
        assert "cannot be checked" in run("verify", path, code=3)


def test_numbers_within_the_rounding_are_judged_alike_by_both(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    solve(
        design([0.7, 0.1, 0.2], PML(0.5), ExpectedLoss([[97.1], [0.3], [1 / 3]]), outputs=1)
    ).save(path)
    assert judged(path, path.read_text()) == (True, 0)  # a bound that is a rounded constant
    for weights in ([2], [4, 2], [1, 1]):  # which are no sample
        table = ExpectedLoss(1 - np.eye(len(weights)))
        solve(design(Prior.from_weights(weights), LDP(0.3), table)).save(path)
        assert judged(path, path.read_text()) == (True, 0)
    assert json.loads(path.read_text())["metadata"]["prior"]["samples"] is None
    loss = ExpectedLoss([[81.4], [-5.0]])  # nothing can be chosen: the bound is the value
    solve(design([1 - 2.3e-5, 2.3e-5], PML(0.5), loss, outputs=1)).save(path)
    data = json.loads(path.read_text())
    assert judged(path, data) == (True, 0)
    place = ("metadata", "prior", "probabilities", 1)
    verdicts = {judged(path, changed(data, place, by)) for by in (1e-9, -1e-9)}
    assert verdicts == {(False, 1), (True, 0)}


def test_the_script_says_what_it_proved(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for name, words in {
        "pml": "for the prior of the file",
        "ball": "for every prior within l1 distance 0.1 of the centre",
        "confidence-ball": "for the true law, but with probability 0.5 over the sample",
    }.items():
        path.write_text(text_of(name))
        code, said = script(path)
        assert code == 0
        assert all(
            part in said for part in ("3 x 3 matrix keeps pml of", words, "no other mechanism")
        )


def test_the_script_is_one_page_of_the_standard_library() -> None:
    source = Path(verifier.__file__).read_text()
    assert len(source.splitlines()) <= 600
    modules = {
        line.split()[1] for line in source.splitlines() if line.startswith(("import ", "from "))
    }
    assert modules == {"json", "sys", "decimal", "fractions", "pathlib"}


def confidence_of(program: Any, **change: Any) -> bool | None:
    """The verdict on what a set promises of the true law, with another requirement perhaps."""
    certificate = replace(solve(program).certificate, **change)
    found: dict[str, bool | None] = {claim.name: claim.holds for claim in certificate.checks()}
    return found["confidence"]


@pytest.mark.parametrize(
    ("sample", "share"),
    [({"a": 50, "b": 30, "c": 20}, 0.5), ({"a": 5000, "b": 3000, "c": 0}, 1e-3)],
)
def test_the_probability_of_a_ball_follows_from_its_counts(
    sample: dict[Label, int], share: float
) -> None:
    ball = confidence_ball(sample, share)
    program = design(Prior(P, ["a", "b", "c"]), PML(1.5, ball), LOSS)
    assert confidence_of(program) is True
    lower = L1Ball(ball.center, ball.radius, share / 2)
    assert confidence_of(program, privacy=PML(1.5, lower)) is not True


def test_a_probability_that_no_sample_shows_is_not_checked() -> None:
    for over in (L1Ball(P, 0.1, 0.01), confidence_ball(COUNTED, 0.5, kappa=0.4)):
        prior = COUNTED if over.center.counts else Prior(P)
        assert confidence_of(design(prior, PML(1.0, over), LOSS)) is None
    assert confidence_of(design(COUNTED, PML(1.5, confidence_box(COUNTED, 0.5)), LOSS)) is True


def boast(program: LinearDesign, options: MethodOptions, start: Any) -> MethodResult[Any]:
    """A method whose certificate says more than is so."""
    good = solve(program).certificate
    lie = replace(good, value=good.value - 0.1, bound=good.bound - 0.1)
    return MethodResult(certificate=lie, finished=True, message="it says so")


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
    best = linprog(
        (sign * law[:, None] * table).ravel(), columns, np.zeros(n * m), rows, np.ones(n)
    )
    value = float((law[:, None] * table * matrix).sum())
    right = abs(value - told["value"]) < 1e-9 and sign * told["bound"] <= best.fun + 1e-7
    gap = data["metadata"]["gap"]
    return bool(right and abs(gap - abs(told["bound"] - told["value"])) < 1e-9)


def test_a_false_file_is_told_and_is_no_promise_and_no_mechanism(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert judged(path, asked("counts", "epsilon", 0.2)) == (False, 1)
    said = run("verify", path, code=1)
    assert re.search(
        "the output '[abc]' reveals 0.3 nats about '[abc]', and the limit is 0.2", said
    )
    assert "tells too much of" in script(path)[1]
    with pytest.raises(
        FileFormatError, match="there is no report of a result that is false: level"
    ):
        write_report(path, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    run("report", path, code=2)
    with pytest.raises(FileFormatError, match="what its certificate claims is false"):
        load_trusted_mechanism(path)
    assert json.loads(run("verify", path, "--json", code=1))["holds"] is False
    path.write_text(text_of("counts"))
    assert (
        load_trusted_mechanism(path).matrix.tolist() == solved("counts").mechanism.matrix.tolist()
    )
    path.write_text(text_of("types"))
    assert load_trusted_mechanism(path).inputs
    Mechanism(np.eye(2)).save(tmp_path / "plain.csv")
    assert load_trusted_mechanism(tmp_path / "plain.csv").matrix.tolist() == np.eye(2).tolist()


def test_sets_of_other_sizes_are_refused() -> None:
    with pytest.raises(PmloptError):
        solve(design(P, PML(0.6, MinimumMass(4, 0.1)), LOSS))


BREAKABLE = (
    "pml ldp lip maximal-leakage approximate-pml ball secret pufferfish metric g-leakage "
    "ratio-bound both"
)


@pytest.mark.parametrize("name", BREAKABLE.split())
def test_violations_name_an_outcome(name: str) -> None:
    program: Any = CASES[name]()
    mechanism = Mechanism(np.eye(3) * 0.97 + 0.01, program.prior.labels, ["x", "y", "z"])
    tells = program.privacy.describe_violation(program.prior, mechanism)
    assert any(repr(outcome) in tells for outcome in "xyz") or name == "approximate-pml"


def test_an_audit_takes_prior_and_claim_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(text_of("counts"))
    said = run("audit", path)
    assert "maximal_leakage" in said
    assert "All that the file claims holds" in said
    path.write_text(json.dumps(edited("counts", ("matrix", 0, 0), 0.25)))
    run("audit", path, code=2)  # no row of it sums to one
    path.write_text(json.dumps(edited("counts", ("matrix", 0), [1.0, 0.0, 0.0])))
    assert "FALSE" in run("audit", path, code=1)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("0.7,0.3\n0.3,0.7\n", ["--no-header"]),
        ("0,7;0,3\n0,3;0,7\n", ["--no-header"]),
        (";x;y\na;0,7;0,3\nb;0,3;0,7\n", []),
        (",x,y\na,0.699,0.3\nb,0.3,0.701\n", ["--normalise"]),
    ],
)
def test_matrices_as_spreadsheets_write_them(text: str, options: list[str], tmp_path: Path) -> None:
    matrix, prior = tmp_path / "matrix.csv", tmp_path / "prior.csv"
    matrix.write_text(text)
    prior.write_text("letter,p\na,0.5\nb,0.5\n")
    told = run("audit", matrix, "--prior", prior, *options, "--json")
    level = json.loads(told[told.index("{") :])["level"]
    assert level == pytest.approx(np.log(1.4), abs=2e-3)
    for option in options if ";" not in text else []:  # without it the message names it
        assert option in run("audit", matrix, "--prior", prior, code=2)


@pytest.mark.parametrize("path", [("metadata", "prior"), ("metadata", "certificate", "kind")])
def test_a_file_that_lacks_a_key_does_not_meet_the_schema(path: tuple[str, ...]) -> None:
    broken = saved("pml")
    owner = broken
    for key in path[:-1]:
        owner = owner[key]
    del owner[path[-1]]
    assert not VALIDATOR.is_valid(broken)


@pytest.mark.parametrize("name", [*CASES, *GIVEN])
def test_every_kind_comes_back_and_is_saved_as_it_was(name: str, tmp_path: Path) -> None:
    path, again = tmp_path / "result.json", tmp_path / "again.json"
    path.write_text(text_of(name))
    found: Result[Any] = load(path)
    assert (found.value, found.bound) == (solved(name).value, solved(name).bound)
    found.save(again)
    assert json.loads(again.read_text()) == json.loads(text_of(name))


def test_files_of_before_solvers_took_options_are_read_and_proved(tmp_path: Path) -> None:
    before = copy.deepcopy(saved("pml"))
    assert before["metadata"].pop("solver_options") == {}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(before))
    assert load(path).solver_options == {}
    assert verify_file(path).holds is True
    assert script(path)[0] == 0
    assert VALIDATOR.is_valid(before)


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_a_result_comes_back_with_its_claims(tmp_path: Path, ending: str) -> None:
    saved = solve(design(Prior([0.5, 0.3, 0.2], list("abc")), PML(0.4), "hamming"))
    saved.save(tmp_path / f"result{ending}")
    found: Result[Any] = load(tmp_path / f"result{ending}")
    assert (found.status, found.value, found.bound, found.level) == (
        saved.status, saved.value, saved.bound, saved.level
    )  # fmt: skip
    assert found.mechanism == saved.mechanism
    assert found.certificate.verify()
    assert found.summary() == saved.summary()
    assert verify_file(tmp_path / f"result{ending}").holds is True


def test_a_mechanism_and_a_ledger_come_back(tmp_path: Path) -> None:
    flip = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"])
    flip.save(tmp_path / "flip.csv")
    assert load(tmp_path / "flip.csv") == flip.with_named_outputs()
    ledger = Ledger([0.5, 0.5], 2)
    ledger.save(tmp_path / "book.npz")
    assert isinstance(load(tmp_path / "book.npz"), Ledger)


def test_what_is_none_of_these_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    for name in ("x.json", "none.npz"):
        with pytest.raises(FileFormatError, match=name):
            load(tmp_path / name)


def test_a_level_with_powers_states_the_decimals_in_which_it_is_decided(tmp_path: Path) -> None:
    prior = Prior.from_counts([5, 3, 2])
    for privacy, arithmetic in (
        (RenyiPML(2.5, 0.5), STRICT_DECIMALS),
        (RenyiPML(2, 0.5), RATIONAL),  # of a whole order
        (PML(0.5) & RenyiPML(2.5, 0.3), STRICT_DECIMALS),
        (PML(0.5), RATIONAL),
    ):
        path = tmp_path / "result.json"
        result = solve(design(prior, privacy, "hamming"))
        result.save(path)
        (level,) = (part for part in verify_file(path).parts if part.name == "level")
        assert (level.arithmetic, level.holds, level.is_exact) == (arithmetic, True, True)
        assert result.certificate.facts["checked in"] == arithmetic
        assert arithmetic in " ".join(run("verify", path).split())
