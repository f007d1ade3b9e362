"""A requirement that is named once has its name on the command line and in problem files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from pmlopt import Mechanism, Secret
from pmlopt.cli import main
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import by_name

BESIDE = {
    "slack": 0.1,
    "distance": [[0, 1], [1, 0]],
    "about": Secret([[0.25, 0.25], [0.0, 0.5]]),
    "gain": [[1, 0], [0, 1]],
}


def test_every_name_makes_the_requirement_of_that_name() -> None:
    for name in by_name.NAMES:
        needed = by_name.WITH.get(name)
        given = {} if needed is None else {needed: BESIDE[needed]}
        assert by_name.requirement_named(name, 0.5, **given).name == name
        if needed is not None:
            with pytest.raises(PrivacyError, match=needed):
                by_name.requirement_named(name, 0.5)
        with pytest.raises(PrivacyError, match="does not belong"):
            by_name.requirement_named(name, 0.5, **given, nothing=1)
    assert len(set(by_name.NAMES)) == len(by_name.NAMES) == 8


@pytest.mark.parametrize("name", [name for name in by_name.NAMES if name not in by_name.WITH])
def test_the_command_line_audits_each(name: str, tmp_path: Path) -> None:
    prior, mechanism = tmp_path / "p.csv", tmp_path / "m.csv"
    prior.write_text("letter,count\na,1\nb,1\n")
    Mechanism([[0.75, 0.25], [0.25, 0.75]], ["a", "b"], ["a", "b"]).save(mechanism)
    for epsilon, code in ((math.log(3) + 1e-9, 0), (0.1, 1)):
        asked = [
            "audit",
            str(mechanism),
            "--prior",
            str(prior),
            "--privacy",
            name,
            "--epsilon",
            repr(epsilon),
        ]
        assert CliRunner().invoke(main, asked).exit_code == code
