"""Proofs on three letters of every kind: a checker accepts them, and they lose next to nothing."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from fuzzing.random_proofs import KINDS
from oracles.vipr import Certificate

from pmlopt import PML, ExpectedGain, MaximalLeakage, design, solve
from pmlopt.errors import PmloptError
from pmlopt.model.privacy import Requirement


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"least-epsilon"}))  # which takes a second
def test_a_proof_on_three_letters_is_accepted_and_as_tight_as_the_result(
    kind: str, tmp_path: Path
) -> None:
    for number in range(1, 1000, 100):
        rng = np.random.default_rng([2026, sorted(KINDS).index(kind), number])
        try:
            result = KINDS[kind](rng, 3)
            break
        except PmloptError:  # some draws have no mechanism
            continue
    proof = result.prove(tmp_path / "proof")
    files = sorted(proof.folder.glob("*.vipr"))
    assert files
    for path in files:
        assert Certificate(path.read_text("utf-8")).statement
    if "level" in kind:
        reached, *refuted = map(float, proof.levels)
        assert refuted or kind != "expected-level"
        assert reached == result.value
        assert all(reached - level < 1e-11 for level in refuted)
    elif kind not in ("worst-case", "information"):  # whose proofs are of levels
        scale = max(1.0, abs(result.value))
        assert proof.bound is not None
        assert float(proof.value) == pytest.approx(result.value, abs=1e-12 * scale)
        assert float(proof.bound) == pytest.approx(result.bound, abs=1e-10 * scale)
        if kind != "post-processing":
            gap = abs(proof.bound - proof.value)
            (stated,) = re.findall(
                r"optimal up to (\S+)\.(?: |$)", " ".join(proof.sentences.values())
            )
            assert gap <= Fraction(stated) <= gap * Fraction(11, 10)  # two digits, rounded up


@pytest.mark.parametrize("privacy", [PML(9.0), MaximalLeakage(9.0)])
def test_a_limit_past_all_that_can_leak_leaves_the_data_itself(
    privacy: Requirement, tmp_path: Path
) -> None:
    proof = solve(design([0.5, 0.3, 0.2], privacy, ExpectedGain(np.eye(3)))).prove(
        tmp_path / "proof"
    )
    assert proof.value == proof.bound == 1
    for path in proof.folder.glob("*.vipr"):
        assert Certificate(path.read_text("utf-8")).statement
