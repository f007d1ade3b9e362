"""A folder of whole files, for commands whose options or other files are bad."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.hostile import GOOD, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the good files in it."""
    for name, content in GOOD.items():
        write(tmp_path, name, content)
    monkeypatch.chdir(tmp_path)
    return tmp_path
