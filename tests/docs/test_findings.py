"""The scripts on other software have the form that their README states."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import ROOT

FOLDER = ROOT / "findings"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
README = (FOLDER / "README.md").read_text("utf-8")


def test_the_table_has_each_script_once() -> None:
    assert len(SCRIPTS) >= 12
    linked = re.findall(r"^\| \[([a-z0-9-]+)\]\(([a-z0-9-]+)\.sh\)", README, re.MULTILINE)
    assert all(name == target for name, target in linked)
    assert sorted(name for name, _ in linked) == [script.stem for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_says_what_it_shows_and_fails_where_that_changes(script: Path) -> None:
    text = script.read_text("utf-8")
    assert script.stat().st_mode & 0o111
    assert re.search(r"pmlopt", text) is None
    for head in ("# guessed: ", "# is so: ", "# source: ", "# matters: "):
        assert text.count(head) == 1
    for part in ("set -euo pipefail", "mktemp -d", "trap 'rm -rf", '"expected by many: ', '"seen:'):
        assert text.count(part) == 1
    pinned = re.search(r"install --quiet (.+)", text)
    assert pinned is not None
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", one) for one in pinned[1].split())
    assert len(re.findall(r"^assert ", text, re.MULTILINE)) == 1
