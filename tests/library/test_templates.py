"""Problem files to fill in: each loads and solves as written, and so does each optional parameter."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import ROOT

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


def read_kinds(text: str) -> dict[str, list[tuple[set[str], set[str]]]]:
    """Read the kinds that a template lists: the keys that are needed, and all, of each of a name."""
    listed = re.sub(r"\n# ", " ", text)
    kinds: dict[str, list[tuple[set[str], set[str]]]] = {}
    for kind, keys in re.findall(r"([\w-]*)\(((?:[^()\[\]]|\[[^\]]*\])*)\)", listed):
        found = re.findall(r"(\w+)(?:\[[^\]]*\])?(=?)", keys)
        needed = {key for key, sign in found if not sign}
        kinds.setdefault(kind, []).append((needed, {key for key, _ in found}))
    return kinds


def find_records(value: object) -> Iterator[tuple[str, set[str]]]:
    """Find the tables of a file that have a kind or a name, with their other keys."""
    if isinstance(value, list):
        for one in value:
            yield from find_records(one)
    if isinstance(value, dict):
        for key in ("kind", "name"):
            if isinstance(value.get(key), str):
                yield value[key], set(value) - {key}
        for one in value.values():
            yield from find_records(one)


def test_the_keys_that_templates_list_are_those_of_the_library() -> None:
    kinds = read_kinds("\n".join(write_template(family, "mine") for family in BUILDERS))
    assert ({"epsilon", "gain"}, {"epsilon", "gain"}) in kinds["g-leakage"]
    assert ({"radius"}, {"radius", "delta"}) in kinds["l1-ball"]
    used = [
        (path.stem, kind, keys)
        for path in (ROOT / "problems").rglob("*.toml")
        for kind, keys in find_records(tomllib.loads(path.read_text("utf-8"))["params"])
    ]
    assert len({kind for _, kind, _ in used}) > 30
    unlisted = [
        (name, kind, keys)
        for name, kind, keys in used
        if not any(needed <= keys <= known for needed, known in kinds[kind])
    ]
    assert unlisted == []


def test_an_unknown_family_names_the_nearest() -> None:
    with pytest.raises(InstanceError, match="did you mean 'least-leakage'"):
        write_template("least-leakag", "mine")
