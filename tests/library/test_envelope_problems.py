"""Envelopes and closed failure probabilities from problem files."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run

from pmlopt import Status, envelope, envelope_design, failure_after_processing, solve
from pmlopt.errors import PmloptError
from pmlopt.library import Instance, load, load_all

BUILDERS = (envelope, failure_after_processing, envelope_design)
ALL = [instance for instance in load_all() if instance.builder in BUILDERS]

GOOD = """
id = "small"
title = "A small audit"
builder = "envelope"

[source]
cite = "somebody"
where = "somewhere"

[params]
prior = { uniform = 2 }
mechanism = { matrix = [[0.9, 0.1], [0.2, 0.8]] }
delta = 0.25

[expected]
basis = "derived"
relation = "=="
value = 0.5753641449035619
"""


@pytest.mark.parametrize("instance", ALL, ids=lambda instance: instance.id)
def test_every_instance_agrees_with_what_is_expected(instance: Instance) -> None:
    result = solve(instance.program())
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify()
    assert instance.expected is not None
    assert instance.expected.agrees(result.value)
    assert instance.expected.agrees(result.bound)
    closed = instance.closed_value()
    if closed is not None:
        assert closed == pytest.approx(instance.expected.value, rel=1e-12)


def test_all_questions_are_in_the_library() -> None:
    assert {instance.builder for instance in ALL} == set(BUILDERS)
    assert sum(instance.names_closed_form for instance in ALL) >= 2


def test_a_file_is_solved_from_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(GOOD)
    assert "no post-processing leaks more than 0.57536" in run("solve", str(file))
    file.write_text(GOOD.replace("0.5753641449035619", "0.5"))
    assert run("solve", str(file), code=1)


def test_a_design_is_solved_from_the_shell() -> None:
    assert "no post-processing leaks more than 0.5 nats but" in run("solve", "envelope-design-binary")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("delta = 0.25", "", "delta"),
        ("delta = 0.25", "delta = 0.25\nepsilon = 1.0", "epsilon is not a known key"),
        (
            "matrix = [[0.9, 0.1], [0.2, 0.8]]",
            "laplace = 1.0",
            "laplace is not a known key: the keys here are matrix",
        ),
        ('basis = "derived"', 'basis = "derived"\nclosed_form = "binary"', "randomized_response_envelope"),
        (
            'basis = "derived"',
            'basis = "derived"\nclosed_form = "randomized_response_envelope"',
            "is for randomized response",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "small.toml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(PmloptError, match=message):
        load(file).closed_value()
