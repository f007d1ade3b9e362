"""Decoders as source code: their weights, and what they print where the language is here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pmlopt import Mechanism, Prior, estimate
from pmlopt.errors import InputError, MechanismError
from pmlopt.estimation import export_decoder

MECHANISM = Mechanism(
    [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]], ["a", "b'\"", "</script>"], ["x", "y", "z"]
)  # fmt: skip
COUNTS = {"x": 400, "y": 350, "z": 250}


def test_a_mechanism_that_hides_a_letter_has_no_decoder(tmp_path: Path) -> None:
    with pytest.raises(MechanismError, match="rank"):
        export_decoder(Mechanism([[0.5, 0.5], [0.5, 0.5]]), tmp_path / "d.js")
    assert not list(tmp_path.iterdir())


def test_there_is_none_in_some_languages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="use one of js, mjs, r, sql"):
        export_decoder(MECHANISM, tmp_path / "d.rs")


@pytest.mark.parametrize("ending", ["js", "mjs", "R", "sql"])
def test_its_weights_are_a_left_inverse(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.{ending}"
    export_decoder(MECHANISM, path, prior=Prior([0.5, 0.3, 0.2], MECHANISM.inputs))
    lines = [re.findall(r"-?\d+\.\d+(?:e-\d+)?", line) for line in path.read_text().splitlines()]
    rows = [[float(one) for one in line] for line in lines if len(line) == 3]
    # V P' = I
    assert np.allclose(np.array(rows) @ MECHANISM.matrix.T, np.eye(3), atol=1e-12)


def test_javascript_estimates_what_the_linear_method_does(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here")
    export_decoder(MECHANISM, tmp_path / "d.js")
    script = (
        f"const d = require('./d.js'); console.log(JSON.stringify(d.estimate({json.dumps(COUNTS)})));"
        "try { d.estimate({other: 1}); } catch (error) { console.log(error.name); }"
    )
    done = subprocess.run(
        [node, "-e", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    printed, refused = done.stdout.splitlines()
    found = json.loads(printed)
    own = estimate(MECHANISM, COUNTS, "linear")
    assert [one["letter"] for one in found] == list(MECHANISM.inputs)
    # P is square: V is its inverse, and the standard error that of a mean of V over the people
    shares = np.array(list(COUNTS.values())) / 1000
    inverse = np.linalg.inv(MECHANISM.matrix.T)
    errors = np.sqrt((inverse**2 @ shares - (inverse @ shares) ** 2) / 1000)
    assert np.allclose([one["frequency"] for one in found], own.frequencies, atol=1e-12)
    assert np.allclose([one["standardError"] for one in found], errors, atol=1e-12)
    constrained = np.array([one["constrained"] for one in found])
    assert abs(constrained.sum() - 1) <= 1e-12
    assert (constrained >= 0).all()
    assert refused == "RangeError"
