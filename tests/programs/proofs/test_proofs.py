"""Proofs for checkers of others: accepted by an independent one, and refused with one number changed."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import random_mps
from fuzzing.random_proofs import KINDS, tamper
from oracles.exact_simplex import solve_mps
from oracles.vipr import Certificate, RefusalError

from pmlopt import LDP, PML, ExpectedGain, MutualInformation, Prior, design, least_leakage, solve
from pmlopt.data.symmetry import IIDPrior
from pmlopt.errors import FileFormatError, PmloptError, ProgramError
from pmlopt.model.privacy import RenyiPML
from pmlopt.model.uncertainty import ConvexHull, KLBall, L1Ball, Polytope, PriorSet
from pmlopt.model.utility import CoordinateLoss
from pmlopt.programs.least_leakage.program import worst_case_utility
from pmlopt.programs.proofs import folder as folders
from pmlopt.programs.proofs.folder import write_proof
from pmlopt.programs.result import Result
from pmlopt.verification.vipr_checkers import run_checker

DESIGNS = [
    kind
    for kind in KINDS
    if "level" not in kind
    and kind not in ("information", "worst-case", "least-epsilon", "post-processing")
]


def random_result(kind: str, number: int, n: int) -> tuple[Result[Any], np.random.Generator]:
    """The first random result of a kind from a number on, for some draws have no mechanism."""
    while True:
        rng = np.random.default_rng([2026, sorted(KINDS).index(kind), number])
        try:
            return KINDS[kind](rng, n), rng
        except PmloptError:
            number += 100


@pytest.mark.parametrize("kind", KINDS)
def test_each_certificate_is_accepted_and_with_one_number_changed_refused(
    kind: str, tmp_path: Path
) -> None:
    result, rng = random_result(kind, 1, 5)
    proof = write_proof(result.certificate, tmp_path / "proof")
    files = sorted(proof.folder.glob("*.vipr"))
    assert [path.stem for path in files] == sorted(proof.sentences)
    for path in files:
        text = path.read_text("utf-8")
        assert Certificate(text).statement
        for _ in range(6):
            changed, what = tamper(text, rng)
            assert changed != text
            with pytest.raises(RefusalError):
                Certificate(changed)
            assert what


@pytest.mark.parametrize("kind", DESIGNS)
def test_exact_optima_are_within_the_proved_intervals(kind: str, tmp_path: Path) -> None:
    for number in range(3):
        result, _ = random_result(kind, number, 4 if kind != "constraints" else 3)
        proof = write_proof(result.certificate, tmp_path / str(number))
        assert proof.bound is not None
        ends = sorted((proof.value, proof.bound))
        least = [
            solve_mps((proof.folder / f"{name}.mps").read_text())
            for name in ("optimum", "feasibility")
        ]
        # the files minimise: what is maximised has the other sign there
        above, below = (
            one if one is None or not result.certificate.is_maximised else -one for one in least
        )
        assert above is not None
        assert below is not None
        assert ends[0] <= above <= ends[1]
        # rows with a rational below e^epsilon allow less, and what the mechanism has
        better = below - proof.value if result.certificate.is_maximised else proof.value - below
        assert better >= 0


def test_the_proved_interval_holds_the_closed_form(tmp_path: Path) -> None:
    # under PML of log 2 at an even prior the true letter is guessed with e^epsilon / N
    result = solve(design(Prior.uniform(4), PML(math.log(2)), ExpectedGain(np.eye(4))))
    proof = result.prove(tmp_path / "proof")
    assert proof.bound is not None
    assert proof.value <= Fraction(1, 2) + Fraction(1, 10**15)
    assert abs(float(proof.bound - Fraction(1, 2))) < 1e-15
    assert proof.value <= proof.bound


@pytest.mark.parametrize("kind", ["expected-level", "worst-level", "least-epsilon"])
def test_levels_are_refuted_just_below_the_least(kind: str, tmp_path: Path) -> None:
    proved = 0
    for number in range(4):
        result, _ = random_result(kind, number, 5)
        proof = write_proof(result.certificate, tmp_path / str(number))
        if result.bound == 0:
            assert len(proof.levels) == 1
            continue
        reached, refuted = proof.levels
        assert 0 <= reached - refuted < 1e-9
        assert reached == result.value
        text = (proof.folder / "infeasibility.mps").read_text()
        assert solve_mps(text) is None
        proved += 1
    assert proved


def test_a_least_level_by_its_closed_form(tmp_path: Path) -> None:
    # a true letter in half of the releases takes log 2 at an even prior of four letters
    result = solve(least_leakage([0.25] * 4, ExpectedGain(np.eye(4)), expected=0.5))
    proof = result.prove(tmp_path / "proof")
    reached, refuted = proof.levels
    assert reached == pytest.approx(math.log(2), abs=1e-12)
    assert 0 < math.log(2) - refuted < 1e-9


@pytest.mark.parametrize("number", [17, 25, 56])
def test_levels_that_all_but_exclude_an_output_are_refuted(number: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([1, number])
    result = KINDS["worst-level-over-ball"](rng, int(rng.integers(3, 10)))
    reached, refuted = result.prove(tmp_path / "proof").levels
    assert reached == result.value
    assert 0 <= reached - refuted <= 2 * (result.value - result.bound)
    text = (tmp_path / "proof" / "infeasibility.vipr").read_text("utf-8")
    assert Certificate(text).statement


@pytest.mark.parametrize(
    "over",
    [
        L1Ball([0.6, 0.2, 0.2], 0.1),
        ConvexHull([[0.6, 0.2, 0.2], [0.5, 0.3, 0.2], [0.4, 0.3, 0.3]]),
        Polytope(
            np.vstack([-np.eye(3), [1.0, -1.0, 0.5]]), np.array([-0.25, -0.125, -0.125, 0.25])
        ),
    ],
    ids=["ball", "hull", "rows"],
)
def test_levels_over_a_set_are_refuted_by_the_pairs_that_may_occur(
    over: PriorSet, tmp_path: Path
) -> None:
    order = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]])
    result = solve(worst_case_utility([0.4, 0.3, 0.3], order, 2, over=over))
    proof = result.prove(tmp_path / "proof")
    reached, refuted = proof.levels
    assert 0 < reached - refuted <= 2 * (result.value - result.bound)
    for path in proof.folder.glob("*.vipr"):
        assert Certificate(path.read_text("utf-8")).statement


@pytest.mark.parametrize("law", [[0.00436849, 0.68413809, 0.31149342], [1e-7, 0.2 - 1e-7, 0.8]])
def test_outputs_that_a_level_all_but_excludes_are_refuted_at_the_level(
    law: list[float], tmp_path: Path
) -> None:
    # the last letter never has the first output, nor the first two the last: a level below that of
    # the rarer side has no column of mean one there, and one of the level has
    order = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    over = L1Ball(law, 0.01)
    proof = solve(worst_case_utility(law, order, 3, over=over)).prove(tmp_path / "proof")
    reached, refuted = proof.levels
    # a letter certain given its output: its least probability over the ball
    rarer = min(law[0] + law[1], law[2]) - 0.005
    assert reached == pytest.approx(-math.log(rarer), abs=1e-12)
    assert 0 <= reached - refuted < 1e-12
    for path in proof.folder.glob("*.vipr"):
        assert Certificate(path.read_text("utf-8")).statement


def test_no_farkas_proof_of_a_level_that_is_reached(tmp_path: Path) -> None:
    result = solve(least_leakage([0.25] * 4, ExpectedGain(np.eye(4)), expected=0.5))
    text = (result.prove(tmp_path / "proof").folder / "feasibility.mps").read_text()
    assert solve_mps(text) is not None


def test_the_folder_names_every_letter_output_and_rational(tmp_path: Path) -> None:
    labels = ["a b", "a,b", "ü|[x]", 7]
    prior = Prior([0.4, 0.3, 0.2, 0.1], labels)
    result = solve(design(prior, PML(0.3), "hamming"))
    proof = result.prove(tmp_path / "proof")
    page = (proof.folder / "README.md").read_text("utf-8")
    for label in labels:
        assert repr(label).replace("|", "\\|") in page
    for sentence in proof.sentences.values():
        assert sentence in page
    for weight in prior.weights:
        assert f"| {weight} |" in page
    for path in proof.folder.glob("*.vipr"):
        assert Certificate(path.read_text("utf-8")).statement
    # labels that differ in blanks and commas only go by their places
    assert "P[0,3]" in (proof.folder / "optimum.mps").read_text("utf-8")


def test_every_kind_of_row_and_variable_has_its_meaning_in_the_readme(tmp_path: Path) -> None:
    for place, kind in enumerate(KINDS):
        proof = write_proof(random_result(kind, 1, 4)[0].certificate, tmp_path / str(place))
        page = (proof.folder / "README.md").read_text("utf-8")
        for path in proof.folder.glob("*.mps"):
            section = ""
            for line in path.read_text("utf-8").splitlines():
                words = line.split()
                section = section if line.startswith(" ") else words[0]
                if line.startswith(" ") and section in ("ROWS", "COLUMNS"):
                    name = words[1] if section == "ROWS" else words[0]
                    kind = name.partition("[")[0]
                    assert name in ("objective", "objective_value") or f"`{kind}`: " in page, name


def test_a_folder_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solve(design([0.5, 0.5], PML(0.2), "hamming"))
    target = tmp_path / "proof"

    def fail(*_: object) -> Any:
        yield "VER 1.0"
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(folders, "iterate_mps_lines", fail)
    with pytest.raises(FileFormatError, match="cannot be written"):
        result.prove(target)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    result.prove(target)
    assert list(tmp_path.iterdir()) == [target]
    before = (target / "README.md").read_bytes()
    with pytest.raises(FileFormatError, match="exists already"):
        result.prove(target)
    assert (target / "README.md").read_bytes() == before
    with pytest.raises(FileFormatError, match="cannot be written"):
        result.prove(tmp_path / "missing" / "proof")


def test_what_is_no_linear_program_is_refused_and_nothing_written(tmp_path: Path) -> None:
    even = Prior.uniform(3)
    for program in (
        design(even, RenyiPML(2, 0.3), "hamming"),
        design(even, PML(0.3, over=KLBall(even, 0.05)), "hamming"),
        design(IIDPrior([0.6, 0.4], 3), PML(0.5), CoordinateLoss([[0, 1], [1, 0]])),
    ):
        with pytest.raises(ProgramError):
            solve(program).prove(tmp_path / "proof")
    assert list(tmp_path.iterdir()) == []


def test_a_utility_that_is_not_linear_is_said_to_be_unproved(tmp_path: Path) -> None:
    proof = solve(design([0.5, 0.3, 0.2], LDP(0.5), MutualInformation())).prove(tmp_path / "proof")
    assert list(proof.sentences) == ["feasibility"]
    assert "nothing is proved" in proof.sentences["feasibility"]
    assert proof.bound is None


def test_a_mechanism_that_breaks_its_requirement_is_not_proved(tmp_path: Path) -> None:
    from dataclasses import replace

    good = solve(design([0.5, 0.5], PML(0.5), "hamming")).certificate
    with pytest.raises(ProgramError, match="breaks"):
        write_proof(replace(good, privacy=PML(0.4)), tmp_path / "proof")
    assert list(tmp_path.iterdir()) == []


def test_solving_and_saving_load_nothing_of_proofs(tmp_path: Path) -> None:
    code = (
        "import sys, pmlopt\n"
        "found = pmlopt.solve(pmlopt.design([0.5, 0.5], pmlopt.PML(0.2), 'hamming'))\n"
        f"found.save({str(tmp_path / 'r.json')!r})\n"
        "assert not [name for name in sys.modules if 'proofs' in name]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_viprchk_agrees(kind: str, tmp_path: Path) -> None:
    checker = shutil.which("viprchk")
    if checker is None:
        pytest.skip("viprchk is not installed: it is built from github.com/scipopt/vipr")
    result, rng = random_result(kind, 1, 5)
    proof = write_proof(result.certificate, tmp_path / "proof")
    for path in sorted(proof.folder.glob("*.vipr")):
        changed = tmp_path / "changed.vipr"
        changed.write_text(tamper(path.read_text("utf-8"), rng)[0], "utf-8")
        assert run_checker(checker, path)[0].accepts
        assert not run_checker(checker, changed)[0].accepts


def solve_by_qsopt(program: Path) -> str | None:
    """The value of QSopt_ex: its program is in the Debian package qsopt-ex."""
    solution = program.with_suffix(".sol")
    subprocess.run(["esolver", "-O", solution, program], capture_output=True, check=True)
    return find_fraction(r"Value = ", solution.read_text())


def solve_by_scip(program: Path) -> str | None:
    """The value of SCIP in exact mode; None of builds without it, or whose infinity of 1e20 is fixed."""
    words = f"set numerics infinity 1e90 set exact enable TRUE read {program} optimize quit"
    commands = [part for word in words.split() for part in ("-c", word)]
    told = subprocess.run(["scip", *commands], capture_output=True, text=True).stdout
    return find_fraction(r"Exact Primal Bound *: *", told)


def find_fraction(before: str, text: str) -> str | None:
    found = re.search(before + r"(\S+)", text)
    return None if found is None else found[1]


FEW = ["pml", "ldp", "lip", "hull", "metric", "maximal-leakage"]
"""Of some others SCIP takes long."""


@pytest.mark.parametrize(
    ("program", "solve_exactly", "kinds"),
    [("esolver", solve_by_qsopt, DESIGNS), ("scip", solve_by_scip, FEW)],
)
def test_an_exact_solver_finds_the_optimum_within_the_interval(
    program: str, solve_exactly: Callable[[Path], str | None], kinds: list[str], tmp_path: Path
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    for kind in kinds:
        for number in range(3 if program == "esolver" else 1):
            result, _ = random_result(kind, number, 6)
            proof = write_proof(result.certificate, tmp_path / f"{kind}-{number}")
            found = solve_exactly(proof.folder / "optimum.mps")
            if found is None:
                pytest.skip(f"{program} solves nothing in exact arithmetic here")
            assert proof.bound is not None
            least, most = sorted((proof.value, proof.bound))
            value = Fraction(found)
            assert least <= (-value if result.certificate.is_maximised else value) <= most


@pytest.mark.parametrize("reader", ["HiGHS", "glpsol", "lp_solve", "GLOP", "SCIP"])
def test_a_reader_of_floats_finds_the_optimum_or_refuses_the_file(
    reader: str, tmp_path: Path
) -> None:
    if reader not in random_mps.list_installed():
        pytest.skip(f"{reader} is not installed")
    result = solve(design([0.4, 0.3, 0.2, 0.1], PML(0.8), "hamming"))
    proof = result.prove(tmp_path / "proof")
    try:
        value = random_mps.READERS[reader][1](proof.folder / "optimum.mps")
    except random_mps.ReaderRefusesError:
        return
    assert value == pytest.approx(float(proof.value), abs=1e-6)
