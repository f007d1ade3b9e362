"""Saved results are checked from their files alone; a changed number is refused, or what it says is true."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from fuzzing.tampering import changed, is_proof, leaves, still_true
from saved_cases import CASES, GIVEN, bent, script, solved
from saved_cases import text_of as saved
from scipy import stats

from pmlopt import (
    LDP,
    PML,
    Continuous,
    DistanceLoss,
    ExpectedLoss,
    Mechanism,
    Prior,
    SubConvex,
    design,
    solve,
    verify_file,
)
from pmlopt.data.symmetry import OrbitMechanism
from pmlopt.errors import FileFormatError, PmloptError
from pmlopt.programs.certificate import DECIMAL, FLOATS, RATIONAL, Verdict
from pmlopt.programs.claims import violation
from pmlopt.verification import verifier


def checked(path: Path, data: Any) -> bool | None:
    """The verdict on data; what is not of the format is refused."""
    path.write_text(json.dumps(data))
    try:
        return verify_file(path).holds
    except PmloptError:
        return False


PROVED = [
    "pml", "ldp", "lip", "maximal-leakage", "ball", "wide-ball", "point", "minimum-mass", "all-priors",
    "counts", "confidence-ball", "gain", "threshold",
]  # fmt: skip
"""What the script proves; of all else it says that it proves nothing."""


WITHOUT_NUMBERS = {"mechanism", "pairs", "prior", "next threshold", "level"}
"""Claims of which the certificate need not name a number."""


@pytest.mark.parametrize("name", [*CASES, *GIVEN])
def test_every_kind_is_checked_from_its_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(saved(name))
    verdict = verify_file(path)
    assert verdict.holds is True, str(verdict)
    certificate = solved(name).certificate
    assert json.loads(json.dumps(certificate.to_dict())) == json.loads(saved(name))["metadata"]["certificate"]
    for part in certificate.checks():
        assert part.holds is True
        assert part.arithmetic in (RATIONAL, FLOATS, DECIMAL)
        assert part.name
        assert part.detail
        if part.name in ("value", "bound", "gap"):
            assert part.claimed == getattr(certificate, part.name)
        assert part.claimed is not None or part.name in WITHOUT_NUMBERS, part.name
        if part.name == "limit":
            other = "distortion" if certificate.sense == "leakage" else "leakage"
            assert part.detail.startswith(f"the {other} is proved")
    code, said = script(path)
    assert code == (0 if name in PROVED else 2), said
    assert ("nothing is proved" in said) is (name not in PROVED)


@pytest.mark.parametrize("name", [*CASES, *GIVEN])
def test_a_changed_number_is_refused_or_true(name: str, tmp_path: Path) -> None:
    data = json.loads(saved(name))
    rng = random.Random(name)
    places = list(leaves(data))
    for path in rng.sample(places, min(len(places), 4)):
        other = changed(data, path, rng.choice([1e-3, -1e-3, 1e-6]))
        holds = checked(tmp_path / "result.json", other)
        code, said = script(tmp_path / "result.json")
        assert (code != 0) or holds is True, (path, said)
        assert code != 1 or holds is False, (path, said)
        assert holds is False or is_proof(path) or still_true(other), path


@pytest.mark.parametrize("name", ["types", "circle", "product"])
def test_masses_that_are_moved_are_refused(name: str, tmp_path: Path) -> None:
    data = json.loads(saved(name))
    orbits = OrbitMechanism.load(write(tmp_path, data)).space.orbits
    masses = [int(mass) for mass in data["masses"]]
    largest = max(range(len(masses)), key=lambda place: masses[place])
    other = max(
        (k for k in range(len(masses)) if k != largest and orbits.letter[k] == orbits.letter[largest]),
        key=lambda place: masses[place],
    )
    step = masses[largest] // 1000
    for moved in (masses[other] + step, masses[other] - step - 1):
        made = list(masses)
        made[largest], made[other] = made[largest] + made[other] - moved, moved
        if made[other] >= 0:
            assert checked(tmp_path / "result.json", {**data, "masses": list(map(str, made))}) is False
    one_more = [str(mass + (place == other)) for place, mass in enumerate(masses)]
    assert checked(tmp_path / "result.json", {**data, "masses": one_more}) is False


def write(folder: Path, data: Any) -> Path:
    path = folder / "result.json"
    path.write_text(json.dumps(data))
    return path


def test_a_level_by_orbits_that_is_broken_names_the_limit(tmp_path: Path) -> None:
    data = json.loads(saved("types"))
    data["metadata"]["certificate"]["privacy"]["epsilon"] = 0.9
    verdict = verify_file(write(tmp_path, data))
    parts = {part.name: part for part in verdict.parts}
    assert parts["level"].holds is False
    assert parts["level"].exact
    assert "pml 1 <= 0.9" in parts["level"].detail
    assert parts["mechanism"].holds
    assert "FALSE" in run("verify", tmp_path / "result.json", code=1)


@cache
def of_numbers() -> str:
    """A saved design for a secret that is a number."""
    import tempfile

    program = design(Continuous(stats.norm(), support=(-2.0, 2.0)), PML(0.7), DistanceLoss())
    result = solve(program, tolerance=0.3)
    with tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / "result.json")
        return (Path(folder) / "result.json").read_text()


def test_what_rests_on_the_law_of_a_number_is_not_called_true(tmp_path: Path) -> None:
    verdict = verify_file(write(tmp_path, json.loads(of_numbers())))
    parts = {part.name: part.holds for part in verdict.parts}
    assert verdict.holds is None, str(verdict)
    assert {name for name, holds in parts.items() if holds is None} == {"law"}
    assert {part.arithmetic for part in verdict.parts} <= {RATIONAL, FLOATS}
    (value,) = (part for part in verdict.parts if part.name == "value of the secret")
    assert value.claimed == value.recomputed is not None
    assert {"mechanism", "level", "value", "bound", "gap", "bins"} <= {*parts}
    assert "cannot be checked" in run("verify", tmp_path / "result.json", code=3)
    assert script(tmp_path / "result.json")[0] == 2


CERTIFICATE = ("metadata", "certificate")


@pytest.mark.parametrize(
    "place",
    [
        ("matrix", 0, 0),
        ("metadata", "value"),
        ("metadata", "level"),
        (*CERTIFICATE, "value"),
        (*CERTIFICATE, "bound"),
        ("metadata", "gap"),
        ("metadata", "bound"),
        (*CERTIFICATE, "bins", "value"),
        (*CERTIFICATE, "bins", "privacy", "epsilon"),
        ("metadata", "prior", "probabilities", 1),
        (*CERTIFICATE, "bins", "table", 0, 0),
    ],
)
def test_a_changed_number_of_bins_is_refused(place: tuple[str | int, ...], tmp_path: Path) -> None:
    data = json.loads(of_numbers())
    assert checked(tmp_path / "result.json", changed(data, place, -1e-3)) is False


def test_a_file_cannot_grant_itself_room_for_an_added_constraint(tmp_path: Path) -> None:
    program = design([0.5, 0.3, 0.2], PML(0.4), ExpectedLoss(1 - np.eye(3)))
    free = solve(program)
    kept = solve(program.with_constraints(cap=program.mechanism[0, 0] <= 0.3))
    certificate = replace(
        kept.certificate, mechanism=free.mechanism, value=free.value,
        residuals={**kept.certificate.residuals, "cap": 1.0},
    )  # fmt: skip
    path = tmp_path / "forged.json"
    replace(kept, certificate=certificate).save(path)
    assert free.mechanism.matrix[0, 0] > 0.31
    assert verify_file(path).holds is False
    assert script(path)[0] == 2


def test_what_no_file_holds_is_not_called_true(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    spread = SubConvex(lambda column, p: p @ abs(column - p @ column))
    for program in (bent(), design([0.5, 0.5], PML(0.4), spread)):
        result = solve(program)
        result.save(path)
        verdict = verify_file(path)
        assert verdict.holds is None
        if result.certificate.kind == "linear":
            assert {part.claimed for part in verdict.parts if part.name == "bound"} == {result.bound}
        assert script(path)[0] == 2
        assert "cannot be checked" in run("verify", path, code=3)


def test_a_bound_that_is_a_rounded_constant_is_true(tmp_path: Path) -> None:
    one_output = ExpectedLoss([[97.1], [0.3], [1 / 3]])
    solve(design([0.7, 0.1, 0.2], PML(0.5), one_output, outputs=1)).save(tmp_path / "result.json")
    assert verify_file(tmp_path / "result.json").holds is True
    assert script(tmp_path / "result.json")[0] == 0


def test_an_altered_number_within_the_rounding_is_judged_alike_by_both(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    loss = ExpectedLoss([[81.4], [-5.0]])  # nothing can be chosen: the bound is the value
    solve(design([1 - 2.3e-5, 2.3e-5], PML(0.5), loss, outputs=1)).save(path)
    data = json.loads(path.read_text())
    assert checked(path, data) is True
    assert script(path)[0] == 0
    low = changed(data, ("metadata", "prior", "probabilities", 1), 1e-9)
    high = changed(data, ("metadata", "prior", "probabilities", 1), -1e-9)
    verdicts = {(checked(path, other), script(path)[0]) for other in (low, high)}
    assert verdicts == {(False, 1), (True, 0)}


def test_weights_that_are_no_sample_are_a_prior_for_both(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for weights in ([2], [4, 2], [1, 1]):
        table = 1 - np.eye(len(weights))
        solve(design(Prior.from_weights(weights), LDP(0.3), ExpectedLoss(table))).save(path)
        assert verify_file(path).holds is True
        assert script(path)[0] == 0
    data = json.loads(path.read_text())
    assert data["metadata"]["prior"]["samples"] is None


def test_npz_holds_the_same(tmp_path: Path) -> None:
    solve(CASES["ball"]()).save(tmp_path / "result.npz")
    assert verify_file(tmp_path / "result.npz").holds is True


@pytest.mark.parametrize(
    "content", [{"version": 1}, {"metadata": {}}, {"metadata": {"certificate": {"kind": "x"}}}]
)
def test_files_that_are_no_results_are_refused(content: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    data = json.loads(saved("pml"))
    if content.get("version") == 1:
        del data["metadata"]["certificate"]["kind"]
    path.write_text(json.dumps({**data, **content}))
    with pytest.raises(FileFormatError):
        verify_file(path)
    assert script(path)[0] != 0
    run("verify", path, code=2)


def test_a_claim_that_fails_names_outcome_and_letter(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    text = saved("counts")
    path.write_text(text.replace('"epsilon": 0.3', '"epsilon": 0.2'))
    found = verify_file(path)
    assert isinstance(found, Verdict)
    assert found.holds is False
    said = run("verify", path, code=1)
    assert re.search("the outcome '[abc]' tells 0.3 nats of '[abc]', and the limit is 0.2", said)
    code, alone = script(path)
    assert code == 1
    assert "tells too much of" in alone


BREAKABLE = (
    "pml ldp lip maximal-leakage approximate-pml ball secret pufferfish metric g-leakage ratio-bound both"
)


@pytest.mark.parametrize("name", BREAKABLE.split())
def test_violations_name_an_outcome(name: str) -> None:
    program: Any = CASES[name]()
    matrix = np.eye(3) * 0.97 + 0.01
    tells = violation(
        program.prior, program.privacy, Mechanism(matrix, program.prior.labels, ["x", "y", "z"])
    )
    assert any(repr(outcome) in tells for outcome in "xyz") or name == "approximate-pml"


def test_an_audit_takes_prior_and_claim_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(saved("counts"))
    said = run("audit", path)
    assert "maximal_leakage" in said
    assert "All that the file claims holds" in said
    path.write_text(json.dumps(changed(json.loads(saved("counts")), ("matrix", 0, 0), 0.25)))
    run("audit", path, code=2)  # no row of it sums to one
    data = json.loads(saved("counts"))
    data["matrix"][0] = [1.0, 0.0, 0.0]
    path.write_text(json.dumps(data))
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


def test_what_may_help_is_named(tmp_path: Path) -> None:
    matrix, prior = tmp_path / "matrix.csv", tmp_path / "prior.csv"
    prior.write_text("letter,p\na,0.5\nb,0.5\n")
    matrix.write_text("0.7,0.3\n0.3,0.7\n")
    assert "--no-header" in run("audit", matrix, "--prior", prior, code=2)
    matrix.write_text(",x,y\na,0.699,0.3\nb,0.3,0.701\n")
    assert "--normalise" in run("audit", matrix, "--prior", prior, code=2)


def test_the_script_is_one_page_of_the_standard_library() -> None:
    source = Path(verifier.__file__).read_text()
    assert len(source.splitlines()) <= 300
    modules = {line.split()[1] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert modules == {"json", "sys", "decimal", "fractions", "pathlib"}


def test_saved_results_meet_the_schema() -> None:
    import jsonschema

    schema = json.loads((Path(__file__).parents[2] / "docs" / "mechanism.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for name in (name for name in CASES if len(saved(name)) < 20_000):  # others are as they, and longer
        errors = [error.message[:200] for error in validator.iter_errors(json.loads(saved(name)))]
        assert not errors, (name, errors)
    assert validator.is_valid(json.loads(of_numbers()))
    broken = json.loads(saved("pml"))
    del broken["metadata"]["prior"]
    assert not validator.is_valid(broken)
