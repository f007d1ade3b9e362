"""Requirements that hold at once: the optimum of a design is that of one linear program over all of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oracles import designs as oracles
from oracles.prior_sets import KINDS, random_set, robust_rows

from pmlopt import LDP, LIP, PML, ExpectedGain, L1Ball, design, solve, verify_file
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beside", [LIP(0.7, 0.4), LDP(0.8)])
def test_the_bound_is_sharp_beside_a_set_of_priors(beside: Requirement, kind: str) -> None:
    rng = np.random.default_rng([KINDS.index(kind), len(beside.limits)])
    case, gains, epsilon = random_set(kind, rng, 3), rng.normal(size=(3, 3)), rng.uniform(0.1, 0.8)
    rows = robust_rows(case.defined.corners(), 3, epsilon)
    expected = oracles.optimum(case.p, beside, gains, rows, np.zeros(len(rows))).value
    result = solve(design(case.p, beside & PML(epsilon, over=case.priors), ExpectedGain(gains), 3))
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


def test_the_weights_travel_and_past_a_size_a_part_alone_proves_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, gains = np.full(6, 1 / 6), np.random.default_rng(1).random((6, 6))
    program = design(p, LIP(1.0, 1.0) & PML(0.8, over=L1Ball(p, 0.1)), ExpectedGain(gains), 6)
    sharp = solve(program)
    sharp.save(tmp_path / "both.json")
    saved = json.loads((tmp_path / "both.json").read_text())
    assert verify_file(tmp_path / "both.json").holds
    saved["metadata"]["certificate"]["witness"]["others"][0][0] += 1.0
    (tmp_path / "both.json").write_text(json.dumps(saved))
    assert not verify_file(tmp_path / "both.json").holds
    monkeypatch.setattr("pmlopt.model.privacy.requirement.MOST_JOINT", 0)
    found = solve(program)
    assert (sharp.status, found.status) == ("optimal", "unproved")
    assert found.certificate.verify()
    assert found.value == pytest.approx(sharp.value, abs=1e-7)
    assert found.bound > sharp.bound + 1e-3
