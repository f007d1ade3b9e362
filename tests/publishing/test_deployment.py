"""The record of a release for registries of deployments.

A seed stands in for the operating system, for an honest release fails its check once in 500 times.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from pmlopt import Mechanism
from pmlopt.cli import main
from pmlopt.data.sampling.categorical import SeededBits, SystemBits
from pmlopt.errors import FileFormatError
from pmlopt.publishing import describe_deployment, release

RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
EXCLUDING = Mechanism([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], ["a", "b"], ["x", "y", "z"])


@pytest.fixture(autouse=True)
def fixed_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw what the operating system would give from a seed, and name no seed in the release."""
    bits = SeededBits(np.random.default_rng(1))
    monkeypatch.setattr(SystemBits, "draw_words", lambda _, size: bits.draw_words(size))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people = {"ill": ["yes", "no", "no", "no"] * 50, "group": ["a", "b"] * 100, "town": ["T"] * 200}
    target = tmp_path / "out"
    release(people, {"ill": RESPONSE, "group": EXCLUDING}, target, keep=["town"])
    return target


def test_it_states_level_unit_and_what_is_not_protected(folder: Path) -> None:
    told = json.loads((folder / "release.json").read_text())
    found = describe_deployment(folder)["deployment"]
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": told["together"]}
    # an outcome of the second mechanism excludes a letter: no local differential privacy
    assert found["privacy_loss"]["local_dp_epsilon"] is None
    assert "town" in found["dp_flavor"]["unprotected_quantities"]
    assert found["model"]["model_name"] == "Local"
    assert found["product"]["intended_use"] == ""  # for the issuer
    json.dumps(found, allow_nan=False)


def test_levels_of_local_differential_privacy_add_up(tmp_path: Path) -> None:
    people = {"ill": ["yes", "no"] * 100, "well": ["no", "yes"] * 100}
    release(people, {"ill": RESPONSE, "well": RESPONSE}, tmp_path / "out")
    found = describe_deployment(tmp_path / "out")["deployment"]["privacy_loss"]
    assert found["local_dp_epsilon"] == pytest.approx(2 * math.log(3), rel=1e-15)


def test_a_false_release_has_no_record(folder: Path) -> None:
    path = folder / "release.json"
    told = json.loads(path.read_text())
    told["together"] /= 2
    path.write_text(json.dumps(told))
    with pytest.raises(FileFormatError, match="claim of the release is false"):
        describe_deployment(folder)


def test_the_command_writes_it_elsewhere_only(folder: Path, tmp_path: Path) -> None:
    within = CliRunner().invoke(
        main, ["report", str(folder), "--registry", "-o", str(folder / "record.json")]
    )
    assert within.exit_code == 2
    assert "seal" in within.output
    done = CliRunner().invoke(
        main, ["report", str(folder), "--registry", "-o", str(tmp_path / "record.json")]
    )
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "record.json").read_text())["deployment"]["product"]
