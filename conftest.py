"""Which tests are fast; how tests are shared among workers; a folder of whole files.

`pytest -m fast` is what a developer runs: every test that tests/slow.txt does not list. `pytest` runs all.
It stands beside the package, whose doctests are tests, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.hostile import GOOD, write

SLOW = frozenset(Path(__file__).with_name("tests").joinpath("slow.txt").read_text("utf-8").split("\n"))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let a worker that has nothing left take tests from the others: some tests take seconds."""
    if config.getoption("numprocesses", None) and config.getoption("dist", "no") == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(tryfirst=True)  # before `-m` deselects
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark each test as fast or slow."""
    for item in items:
        slow = item.nodeid in SLOW or item.nodeid.partition("[")[0] in SLOW
        item.add_marker("slow" if slow else "fast")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with good files in it, for commands whose options or other files are bad."""
    for name, content in GOOD.items():
        write(tmp_path, name, content)
    monkeypatch.chdir(tmp_path)
    return tmp_path
