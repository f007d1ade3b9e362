"""Audits of levels that need no prior."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from cli.hostile import refused, write
from commands import run

MATRIX = "true,a,b\n0,0.8,0.2\n2,0.3,0.7\n"
LEVELS = {
    "ldp": math.log(7 / 2),
    "metric --distance absolute": math.log(7 / 2) / 2,
    "maximal-leakage": math.log(3 / 2),
    # alpha / (alpha - 1) log sum_y (sum_x t[x] P[x,y]^alpha)^(1/alpha) at its largest over t
    "maximal-alpha-leakage --alpha 2": None,
}


@pytest.mark.parametrize("privacy", LEVELS)
def test_a_level_of_the_matrix_needs_no_prior(folder: Path, privacy: str) -> None:
    write(folder, "m.csv", MATRIX)
    write(folder, "p.csv", "letter,p\n0,0.9\n2,0.1\n")
    name, *options = privacy.split()
    command = ("audit", "m.csv", "--privacy", name, *options)
    found = json.loads(run(*command, "--json"))
    known = json.loads(run(*command, "--prior", "p.csv", "--json"))["levels"]
    assert known["pml"] > 0
    key = name.replace("-", "_")
    expected = LEVELS[privacy] or known[key]
    assert found["levels"][key] == pytest.approx(expected, abs=1e-12)
    assert found["level"] is None
    assert found["outputs"] == []
    assert set(found["levels"]) == {"ldp", "maximal_leakage", key}
    run(*command, "--epsilon", str(expected * 0.99), code=1)
    said = run(*command, "--epsilon", str(expected * 1.01))
    assert "The claim holds" in said
    assert "give the prior by --prior" in said


@pytest.mark.parametrize("entry", ["0.205", "0.25"])
def test_rows_that_do_not_sum_to_one_name_the_option(folder: Path, entry: str) -> None:
    write(folder, "m.csv", MATRIX.replace("0.2", entry))
    assert "--normalise divides" in refused(folder, "audit m.csv --privacy ldp")


@pytest.mark.parametrize(
    "options",
    ["", "--privacy lip", "--privacy ldp --envelope 0.1", "--privacy ldp --epsilon 2 -o out.json"],
)
def test_other_levels_proofs_and_envelopes_need_it(folder: Path, options: str) -> None:
    write(folder, "m.csv", MATRIX)
    assert "give the prior" in refused(folder, f"audit m.csv {options}")
