"""Problem files to fill in: each loads and solves as written, and so does each optional parameter."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from pmlopt import solve
from pmlopt.errors import InstanceError
from pmlopt.library.instances import BUILDERS, load
from pmlopt.library.templates import VALUES, write_template

SECONDS = {"worst_case_utility", "record_leakage", "leakage_distortion", "distortion_leakage"}


def save(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("family", BUILDERS)
def test_a_template_declares_a_problem_and_each_of_its_options(family: str, tmp_path: Path) -> None:
    text = write_template(family, "mine")
    given = load(save(tmp_path, text))
    assert given.builder is BUILDERS[family]
    assert given.program() is not None
    options = re.findall(r"^# (\w+) = .*$", text.partition("[expected]")[0], re.MULTILINE)
    assert set(options) | set(given.arguments) <= set(VALUES)
    for option in options:
        uncommented = re.sub(rf"^# ({option} = .*)$", r"\1", text, flags=re.MULTILINE)
        assert set(load(save(tmp_path, uncommented)).arguments) == {*given.arguments, option}


@pytest.mark.parametrize("family", [name for name in BUILDERS if name not in SECONDS])
def test_a_template_solves_as_it_is_written(family: str, tmp_path: Path) -> None:
    found = solve(load(save(tmp_path, write_template(family, "mine"))).program())
    assert found.status.value == "optimal"


def test_the_optimum_of_a_template_is_that_of_theory(tmp_path: Path) -> None:
    told = load(save(tmp_path, write_template("least-leakage", "mine")))
    # telling the likeliest letter and the others apart: an output of mass 1/2 is right about `a`
    assert solve(told.program()).value == pytest.approx(math.log(2), abs=1e-7)


def test_an_unknown_family_names_the_nearest() -> None:
    with pytest.raises(InstanceError, match="did you mean 'least-leakage'"):
        write_template("least-leakag", "mine")
