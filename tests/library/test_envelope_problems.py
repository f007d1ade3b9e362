"""Envelopes and closed failure probabilities from problem files."""

from __future__ import annotations

from pathlib import Path

from commands import run
from library.problem_files import ENVELOPE, LIBRARY

from pmlopt import envelope, envelope_design
from pmlopt.programs import failure_after_processing

BUILDERS = (envelope, failure_after_processing, envelope_design)
ALL = [instance for instance in LIBRARY if instance.builder in BUILDERS]


def test_all_questions_are_in_the_library() -> None:
    assert {instance.builder for instance in ALL} == set(BUILDERS)
    assert sum(instance.names_closed_form for instance in ALL) >= 2


def test_a_file_is_solved_from_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(ENVELOPE)
    assert "no post-processing leaks more than 0.57536" in run("solve", str(file))
    file.write_text(ENVELOPE.replace("0.5753641449035619", "0.5"))
    assert run("solve", str(file), code=1)


def test_a_design_is_solved_from_the_shell() -> None:
    assert "no post-processing leaks more than 0.5 nats but" in run("solve", "envelope-design-binary")
