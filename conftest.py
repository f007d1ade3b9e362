"""Which tests are fast, and which nightly; how tests are shared among workers; a folder of whole files.

`pytest -m fast` is what a developer runs: every test that tests/slow.txt does not list, and those in
tests/kept.txt: without these, no fast test would come to the formulas that they check; where they draw
examples, they draw few then. `pytest -m "not nightly"` is what the README runs: of each test some cases, but
for tests that take seconds; tests/nightly.txt lists the rest. `pytest` runs all.
It stands beside the package, whose doctests are tests, too.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings
from list_slow import read_nightly

ROOT = Path(__file__).parent
SLOW = frozenset((ROOT / "tests" / "slow.txt").read_text("utf-8").split("\n"))
KEPT = frozenset((ROOT / "tests" / "kept.txt").read_text("utf-8").split("\n"))
NIGHTLY = read_nightly((ROOT / "tests" / "nightly.txt").read_text("utf-8"))
LEFT_OUT = {"fast": SLOW - {name.partition("[")[0] for name in KEPT}, "not nightly": NIGHTLY}
"""The tests, or cases, that are not made where the others alone are asked for."""

sys.dont_write_bytecode = (
    False  # or every worker, and every process that a test starts, compiles all anew
)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PMLOPT_STRICT"] = "1"  # a mistake in a method is raised, here and in what tests start

collect_ignore = ["tests/fuzzing/own.py"]
"""Its requirement may be defined once, and is where the file is imported by its full name."""
if find_spec("dp_accounting") is None:
    # it needs an older attrs than the tools of the tests do, and so is in no common environment
    collect_ignore.append("pmlopt/adapters/accounting.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that lets packages be missing."""
    parser.addoption(
        "--without",
        default="",
        metavar="PACKAGES",
        help="Run as if these packages, after commas, were not installed; skip what names one of them.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let the packages of `--without` be missing."""
    for package in list_absent(config):
        for module in [one for one in sys.modules if one.partition(".")[0] == package]:
            del sys.modules[module]
        sys.modules[package] = None  # type: ignore[assignment]  # as importlib has it


def list_absent(config: pytest.Config) -> list[str]:
    """Return the packages of `--without`."""
    return [name for name in config.getoption("--without").split(",") if name]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a file of tests that needs a package of `--without` to be imported."""
    report = yield
    skip_if_about_absent(report, collector)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that ends with the error which names a package of `--without`."""
    report = yield
    skip_if_about_absent(report, item)
    return report


def skip_if_about_absent(
    report: pytest.CollectReport | pytest.TestReport, node: pytest.Collector | pytest.Item
) -> None:
    """Turn the failure of a file or a test into a skip where an absent package is its cause."""
    if report.failed and is_about_absent(str(report.longrepr), node.config):
        report.outcome = "skipped"
        report.longrepr = (str(node.path), 0, "needs a package that is absent")


def is_about_absent(account: str, config: pytest.Config) -> bool:
    """Return whether an account of a failure ends with an error that names an absent package."""
    last = "\n".join(account.strip().splitlines()[-12:])
    return any(
        f"need {name}, which is not installed" in last
        or f"import of {name}" in last
        or f"No module named '{name}" in last
        for name in list_absent(config)
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let a worker that has nothing left take tests from the others: some tests take seconds."""
    for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(
            threads, "1"
        )  # of each worker: with more they get in each other's way
    if config.getoption("numprocesses", None) and config.getoption("dist", "no") == "no":
        config.option.dist = "worksteal"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file that is slow as a whole where the fast tests are asked for."""
    name = (
        collection_path.relative_to(ROOT).as_posix() if collection_path.is_relative_to(ROOT) else ""
    )
    return True if config.getoption("markexpr") == "fast" and name in SLOW else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the files that have one: to look at each function of the others takes seconds."""
    collectors = yield
    if b">>> " in file_path.read_bytes():
        return collectors
    return [one for one in collectors if not isinstance(one, DoctestModule)]


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str
) -> list[pytest.Item] | None:
    """Do not make the cases of a test none of which is asked for, as each is slow, or nightly."""
    names = LEFT_OUT.get(collector.config.getoption("markexpr"), ())
    return [] if f"{collector.nodeid}::{name}" in names else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector look through modules and tests, which stay, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` deselects
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Mark each test as fast or slow, and as nightly."""
    only_fast = config.getoption("markexpr") == "fast"
    for item in items:
        names = {item.nodeid, item.nodeid.partition("[")[0], item.nodeid.partition("::")[0]}
        item.add_marker("slow" if names & SLOW and not names & KEPT else "fast")
        if names & NIGHTLY:
            item.add_marker("nightly")
        if only_fast and names & KEPT and isinstance(item, pytest.Function):
            draw_few_examples(item.obj)


FEW_EXAMPLES = 4
"""What a test that is kept among the fast ones draws there, at most."""


def draw_few_examples(test: Any) -> None:
    """Let a test draw few examples, if it draws any: hypothesis has no public way once a test is made."""
    chosen = getattr(test, "_hypothesis_internal_use_settings", None)
    if chosen is not None and chosen.max_examples > FEW_EXAMPLES:
        test._hypothesis_internal_use_settings = settings(chosen, max_examples=FEW_EXAMPLES)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with good files in it, for commands whose options or other files are bad."""
    from cli.hostile import GOOD, write  # loads all commands: not for every room

    for name, content in GOOD.items():
        write(tmp_path, name, content)
    monkeypatch.chdir(tmp_path)
    return tmp_path
