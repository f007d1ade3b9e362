"""Mutated files: neither verifier finds one true whose claim is false, nor one that is not of the format."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from fuzzing.tampering import changed, leaves, places, still_true
from saved_cases import script, text_of

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    L1Ball,
    MaximalLeakage,
    MinimumMass,
    design,
    solve,
    verify_file,
)
from pmlopt.errors import PmloptError
from pmlopt.model.privacy import Requirement

SCHEMA = Path(__file__).parents[2] / "docs" / "mechanism.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
CERTIFICATE = ("metadata", "certificate")
BASES = (
    "pml", "ldp", "lip", "maximal-leakage", "ball", "confidence-ball", "minimum-mass", "all-priors", "counts",
    "gain", "threshold",
)  # fmt: skip
WHOLE = {"version", "counts", "samples", "size", "iterations", "dropped"}
"""Keys of whole numbers: 3.0 is not one."""

OPEN = {"residuals", "inputs", "outputs"}
"""Tables with keys of any name, and labels, which may be of any type."""

OPTIONAL = {
    "closed_form",
    "iterations",
    "counts",
    "samples",
    "delta",
    "over",
    "about",
    "gap",
    "level",
}
"""What may be null, though the claim may then be another one."""

Place = tuple[str | int, ...]


def verdicts(path: Path, content: str) -> tuple[bool, int]:
    """Whether `verify_file` finds all of a file true, and the exit code of the script."""
    path.write_text(content)
    try:
        holds = verify_file(path).holds is True
    except PmloptError:
        holds = False
    return holds, script(path)[0]


def at(data: Any, place: Place) -> Any:
    for key in place:
        data = data[key]
    return data


def with_value(data: Any, place: Place, value: Any) -> Any:
    made = {"": copy.deepcopy(data)}
    at(made, ("", *place)[:-1])[("", *place)[-1]] = value
    return made[""]


def numbers_of(data: Any) -> list[Place]:
    """The places of numbers that are no labels."""
    found = [place for place in places(data) if type(at(data, place)) in (int, float)]
    return [place for place in found if not OPEN & set(place)]


def tables_of(data: Any) -> list[Place]:
    """The places of tables with keys of the format; a witness that is not needed may be an empty one."""
    found = [place for place in places(data) if type(at(data, place)) is dict and at(data, place)]
    return [place for place in found if not {*OPEN, "witness"} & set(place)]


def with_word(data: Any, rng: random.Random) -> str:
    """A number that is no finite double, or one in quotes, or a truth value."""
    word = rng.choice(
        ["NaN", "Infinity", "-Infinity", "1e999", "-1e999999999", "true", "false", '"1"', "[1]"]
    )
    return json.dumps(with_value(data, rng.choice(numbers_of(data)), "@")).replace('"@"', word)


def with_doubled_key(data: Any, rng: random.Random) -> str:
    table = rng.choice(tables_of(data))
    key = rng.choice(list(at(data, table)))
    first = f'{{"{key}": {json.dumps(at(data, table)[key])}, '
    return json.dumps(with_value(data, table, "@")).replace(
        '"@"', first + json.dumps(at(data, table))[1:]
    )


def with_float(data: Any, rng: random.Random) -> str:
    whole = [
        place for place in numbers_of(data) if WHOLE & set(place) and type(at(data, place)) is int
    ]
    place = rng.choice(whole)
    return json.dumps(with_value(data, place, float(at(data, place))))


def with_other_keys(data: Any, rng: random.Random) -> str:
    place = rng.choice(tables_of(data))
    table = dict(at(data, place))
    if table and rng.random() < 0.5:
        del table[
            rng.choice([key for key in table if key != "solver_options"])
        ]  # older files lack it
    else:
        table[rng.choice(["epsilon ", "set", "", "Kind"])] = rng.choice([None, 0, "x", {}])
    return json.dumps(with_value(data, place, table))


def with_other_type(data: Any, rng: random.Random) -> str:
    """Something in the place of a table, a list or a number that has another type."""
    usual = [
        place
        for place in places(data)
        if place and not OPEN & set(place) and place[-1] not in OPTIONAL
    ]
    place = rng.choice([one for one in usual if type(at(data, one)) in (dict, list, int, float)])
    own = at(data, place)
    foreign: tuple[Any, ...] = (None, [], {}, "x", True)
    others = [other for other in foreign if type(other) is not type(own)]
    return json.dumps(with_value(data, place, rng.choice(others)))


def with_witness(data: Any, rng: random.Random) -> str:
    place = (*CERTIFICATE, "witness")
    if "witness" not in at(data, CERTIFICATE):
        return with_other_type(data, rng)
    others: list[Any] = [
        None,
        [],
        "",
        {"x": "y"},
        {"x": [1.0]},
        {"theta": None},
        {"theta": [[0.0]]},
        0,
        False,
    ]
    return json.dumps(with_value(data, place, rng.choice(others)))


def with_other_centre(data: Any, rng: random.Random) -> str:
    centre = (*CERTIFICATE, "privacy", "over", "center")
    key, value = rng.choice(
        [("kind", 3), ("kind", "x"), ("labels", "\x1b[2J"), ("labels", 4), ("labels", {})]
    )
    return json.dumps(with_value(data, (*centre, key), value))


FORMAT: Mapping[str, Callable[[Any, random.Random], str]] = {
    one.__name__.removeprefix("with_"): one
    for one in (
        with_word,
        with_doubled_key,
        with_float,
        with_other_keys,
        with_other_type,
        with_witness,
    )
}


def check_format(name: str, draws: int, path: Path) -> None:
    """Mutate a file to one that is not of the format: the script proves nothing of it."""
    data, rng = json.loads(text_of(name)), random.Random(f"format of {name}")
    centred = {"other centre": with_other_centre} if name == "ball" else {}
    for kind, mutate in {**FORMAT, **centred}.items():
        for _ in range(draws):
            content = mutate(data, rng)
            assert verdicts(path, content)[1] != 0, (kind, content[:300])


@pytest.mark.parametrize("name", BASES)
def test_what_is_not_of_the_format_is_not_proved(name: str, tmp_path: Path) -> None:
    check_format(name, 5, tmp_path / "x.json")


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("pml", ("version",), 3.0),
        ("pml", ("version",), True),
        ("pml", ("unnamed",), {}),
        ("pml", ("unnamed",), ["inputs", "inputs"]),
        ("pml", ("inputs",), [0.0, 1, 2]),
        ("pml", ("inputs",), [False, True, 2]),
        ("pml", (*CERTIFICATE, "witness"), {"theta": [[0.0, 0.0, 0.0]]}),
        ("pml", ("metadata", "prior", "kind"), "iid"),
        ("pml", ("metadata", "prior", "labels"), 3),
        ("counts", ("metadata", "prior", "counts"), [5.0, 3.0, 2.0]),
        ("ball", (*CERTIFICATE, "privacy", "over", "center", "labels"), [0, True, 2]),
        ("minimum-mass", (*CERTIFICATE, "privacy", "over", "size"), 3.0),
        ("all-priors", (*CERTIFICATE, "privacy", "over", "size"), True),
        ("confidence-ball", (*CERTIFICATE, "privacy", "over", "delta"), 1.5),
        (
            "pml",
            ("metadata", "closed_form"),
            {"name": 1, "value": 0.46005647697008994, "difference": 0.0},
        ),
    ],
)
def test_a_file_that_is_nearly_of_the_format_ends_with_2(
    name: str, place: Place, value: Any, tmp_path: Path
) -> None:
    content = json.dumps(with_value(json.loads(text_of(name)), place, value))
    assert verdicts(tmp_path / "x.json", content)[1] == 2


def check_claims(name: str, draws: int, path: Path) -> None:
    """Change numbers that claim or prove something; what is still found true is true, for both alike."""
    data, rng = json.loads(text_of(name)), random.Random(f"claims of {name}")
    numbers = list(leaves(data))
    for _ in range(draws):
        place = rng.choice(numbers)
        other = changed(data, place, rng.choice([1, -1]) * 10.0 ** rng.uniform(-9, 1))
        holds, code = verdicts(path, json.dumps(other))
        assert code != 1 or not holds, place
        if holds or code == 0:  # the script may prove in rationals what floats leave no room for
            assert still_true(other), place
        if code == 0:
            assert VALIDATOR.is_valid(other), place


@pytest.mark.parametrize("name", BASES)
def test_what_is_still_found_true_is_true(name: str, tmp_path: Path) -> None:
    check_claims(name, 10, tmp_path / "x.json")


@pytest.mark.parametrize("name", BASES)
def test_many_more_mutations(name: str, tmp_path: Path) -> None:
    check_format(name, 25, tmp_path / "x.json")
    check_claims(name, 60, tmp_path / "x.json")


PRIOR = [0.5, 0.3, 0.2]
REQUIREMENTS: Mapping[str, Requirement] = {
    "pml": PML(1.2),
    "ldp": LDP(30.0),
    "lip": LIP(30.0, 1.2),
    "maximal leakage": MaximalLeakage(0.9),
    "ball": PML(2.0, over=L1Ball(PRIOR, 0.05)),
    "least masses": PML(2.0, over=MinimumMass(3, 0.1)),
}


@pytest.mark.parametrize("kind", [ExpectedLoss, ExpectedGain])
@pytest.mark.parametrize("name", REQUIREMENTS)
def test_an_entry_that_never_occurs_gives_no_room(name: str, kind: Any, tmp_path: Path) -> None:
    path, sign = tmp_path / "x.json", 1 if kind is ExpectedLoss else -1
    table = sign * (1 - np.eye(3))
    solve(design(PRIOR, REQUIREMENTS[name], kind(table))).save(path)
    data = json.loads(path.read_text())
    assert verdicts(path, json.dumps(data)) == (True, 0)
    x, y = min(np.argwhere(np.array(data["matrix"]) == min(map(min, data["matrix"]))).tolist())
    mean = PRIOR[x] * data["matrix"][x][y]
    for big in (1e9, 1e15, 1e300):
        huge = with_value(data, (*CERTIFICATE, "table", x, y), sign * big)
        true = data["metadata"]["value"] + mean * sign * (big - 1)
        for off in (1e-6, -0.1, 10.0):
            for bound in (data["metadata"]["bound"], true + off):
                value = true + off * max(1.0, abs(true))
                claims = {
                    "value": value,
                    "bound": bound,
                    "gap": sign * (value - bound),
                    "closed_form": None,
                }
                other = with_value(huge, ("metadata",), {**huge["metadata"], **claims})
                other["metadata"]["certificate"].update(value=value, bound=bound)
                assert verdicts(path, json.dumps(other)) == (False, 1), (big, off, bound)


def test_values_and_bounds_of_tables_with_huge_entries_are_proved(tmp_path: Path) -> None:
    path, rng = tmp_path / "x.json", np.random.default_rng(7)
    for place in range(12):
        n, m = rng.integers(1, 5, 2)
        table = rng.normal(size=(n, m)) + rng.choice([0.0, 1e9, -1e12])
        table[rng.integers(n), rng.integers(m)] = rng.choice([1, -1]) * 10.0 ** rng.integers(3, 18)
        utility = (ExpectedLoss if place % 2 else ExpectedGain)(table)
        requirement = [PML(0.5), LDP(1.0), MaximalLeakage(0.4)][place % 3]
        result = solve(design(rng.dirichlet(np.full(n, 5.0)), requirement, utility, outputs=int(m)))
        result.save(path)
        assert verdicts(path, path.read_text()) == (True, 0)
        assert (result.bound - result.value) * (-1 if place % 2 else 1) >= 0
