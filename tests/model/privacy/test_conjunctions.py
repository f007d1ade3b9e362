"""Requirements that hold at once: the optimum of a design is that of one linear program over all of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oracles import designs as oracles
from oracles.joint_laws import ball_vertices

from pmlopt import LDP, LIP, PML, ConvexHull, ExpectedGain, L1Ball, design, solve, verify_file
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import Box, MinimumMass, PriorSet

SETS = ["l1-ball", "l1-ball elsewhere", "minimum-mass", "box", "vertices"]


def set_of(kind: str, rng: np.random.Generator, p: FloatArray) -> tuple[PriorSet, FloatArray]:
    """A set of priors on three letters, and all its vertices."""
    if kind.startswith("l1-ball"):
        center, radius = p if kind == "l1-ball" else rng.dirichlet(np.full(3, 3.0)), rng.uniform(0.02, 0.8)
        return L1Ball(center, radius), ball_vertices(center, radius)
    if kind == "minimum-mass":
        mass = rng.uniform(0.01, 0.3)
        return MinimumMass(3, mass), mass + (1 - 3 * mass) * np.eye(3)
    if kind == "box":
        low, width = 0.1, rng.uniform(0.1, 0.3)
        box = Box([low, low, 0.4], [low + width, low + width, 1.0])
        return box, np.array([[a, b, 1 - a - b] for a in (low, low + width) for b in (low, low + width)])
    laws = rng.dirichlet(np.ones(3), 3)
    return ConvexHull(laws), laws


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("beside", [LIP(0.7, 0.4), LDP(0.8), LIP(0.2, 1.5)])
def test_the_bound_is_sharp_beside_a_set_of_priors(beside: Requirement, kind: str) -> None:
    rng = np.random.default_rng([SETS.index(kind), len(beside.limits)])
    p, gains, epsilon = rng.dirichlet(np.full(3, 2.0)), rng.normal(size=(3, 3)), rng.uniform(0.1, 0.8)
    over, laws = set_of(kind, rng, p)
    rows = np.vstack([oracles.pml_rows(law, 3, epsilon) for law in laws])
    expected = oracles.optimum(p, beside, gains, rows, np.zeros(len(rows))).value
    result = solve(design(p, beside & PML(epsilon, over=over), ExpectedGain(gains), 3))
    assert result.status == "optimal"
    assert result.value == pytest.approx(expected, abs=1e-7)
    assert result.bound == pytest.approx(expected, abs=1e-7)
    assert result.certificate.verify()


def test_weights_of_the_other_pairs_prove_something_whatever_they_are() -> None:
    rng = np.random.default_rng(5)
    p, gains = rng.dirichlet(np.full(4, 2.0)), rng.normal(size=(4, 3))
    both = LIP(0.3, 0.9) & PML(0.4, over=L1Ball(p, 0.2))
    prior = design(p, both, ExpectedGain(gains), 3).prior
    witness = dict(both.witness(prior, gains))
    support = both.relaxation(prior, gains)
    assert both.proved(prior, gains, witness) == pytest.approx(support, abs=1e-9)
    for _ in range(5):
        other = {**witness, "others": rng.normal(size=witness["others"].shape)}
        assert both.proved(prior, gains, other) >= support - 1e-9
    with pytest.raises(PrivacyError, match="shape"):
        both.proved(prior, gains, {**witness, "others": np.ones((2, 3))})
    with pytest.raises(PrivacyError, match="part 2 of 2"):
        both.proved(prior, gains, {**witness, "part": np.array(2.0)})


def test_the_weights_travel_in_the_file(tmp_path: Path) -> None:
    p, gains = np.full(6, 1 / 6), np.random.default_rng(1).random((6, 6))
    both = LIP(1.0, 1.0) & PML(0.8, over=L1Ball(p, 0.1))
    solve(design(p, both, ExpectedGain(gains), 6)).save(tmp_path / "both.json")
    saved = json.loads((tmp_path / "both.json").read_text())
    assert "others" in saved["metadata"]["certificate"]["witness"]
    assert verify_file(tmp_path / "both.json").holds
    saved["metadata"]["certificate"]["witness"]["others"][0][0] += 1.0
    (tmp_path / "both.json").write_text(json.dumps(saved))
    assert not verify_file(tmp_path / "both.json").holds


def test_past_a_size_a_part_alone_proves_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    p, gains = np.full(6, 1 / 6), rng.random((6, 6))
    both = LIP(1.0, 1.0) & PML(0.8, over=L1Ball(p, 0.1))
    program = design(p, both, ExpectedGain(gains), 6)
    sharp = solve(program)
    monkeypatch.setattr("pmlopt.model.privacy.requirement.MOST_JOINT", 0)
    found = solve(program)
    assert (sharp.status, found.status) == ("optimal", "unproved")
    assert found.certificate.verify()
    assert found.value == pytest.approx(sharp.value, abs=1e-7)
    assert found.bound > sharp.bound + 1e-3
