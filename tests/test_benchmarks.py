"""The benchmark suite is whole: every script is listed, and the list can be shown."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from documents import module

FOLDER = Path(__file__).parents[1] / "benchmarks"


def assigned(source: str, name: str) -> ast.expr:
    """What a module assigns to a name at its top level."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return node.value
    raise AssertionError(f"there is no {name}")


def test_every_script_is_listed_in_the_runner() -> None:
    listed = subprocess.run(
        [sys.executable, FOLDER / "run.py", "--list"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    helpers = ast.literal_eval(assigned((FOLDER / "run.py").read_text(), "HELPERS"))
    assert {line.split()[0] for line in listed} | set(helpers) == {
        path.stem for path in FOLDER.glob("*.py")
    }
    assert all(len(line.split()) > 2 for line in listed)


def test_every_benchmark_is_called_alike() -> None:
    runner = assigned((FOLDER / "run.py").read_text(), "BENCHMARKS")
    assert isinstance(runner, ast.Dict)
    for key in runner.keys:
        assert isinstance(key, ast.Constant)
        assert isinstance(key.value, str)
        module = ast.parse((FOLDER / f"{key.value}.py").read_text())
        mains = [
            node
            for node in module.body
            if isinstance(node, ast.FunctionDef) and node.name == "main"
        ]
        assert [[argument.arg for argument in main.args.args] for main in mains] == [["argv"]], (
            key.value
        )


def test_what_the_papers_print_is_beside_the_points_that_are_kept() -> None:
    page = module("evidence").evidence_pages()["printed.md"]
    figures = tomllib.loads((FOLDER / "printed.toml").read_text("utf-8"))["figure"]
    titles = re.findall(r"^## (?:\[(.*)\]\(gallery/index\.md#[\w-]+\)|(.*))$", page, re.MULTILINE)
    assert [linked or title for linked, title in titles] == [
        one["title"] for one in figures.values()
    ]
    rows = re.findall(r"^\| (?!what \||---)", page, re.MULTILINE)
    assert len(rows) == sum(len(one.get("value", ())) for one in figures.values())


def test_a_value_outside_its_tolerance_fails(tmp_path: Path) -> None:
    for source in ("papers.py", "points.py", "common.py"):
        (tmp_path / source).write_text((FOLDER / source).read_text())
    (tmp_path / "data").symlink_to(FOLDER / "data")
    told = (FOLDER / "printed.toml").read_text()
    assert told.count("printed = 1.95") == 1
    (tmp_path / "printed.toml").write_text(told.replace("printed = 1.95", "printed = 1.9"))
    script = [sys.executable, str(tmp_path / "papers.py"), "worst-case-figure-1", "--kept"]
    failed = subprocess.run(script, check=False, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "third rise" in failed.stderr


def test_only_a_run_out_of_time_has_a_limit_for_its_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    growth, limited = importlib.import_module("growth"), importlib.import_module("limited")
    late = limited.Run("time-out", 60.02, 90.0)
    failed = limited.Run("failed", 1.2, 63.0, problem="ValueError: no labels")
    large = limited.Run("too much memory", 3.0, 12_001.0)
    seconds = [growth.described(run)[1] for run in (late, failed, large)]
    assert seconds == ["> 60", "failed", "too much memory"]
    found = {"PML": {10: late}, "LDP": {10: large, 20: failed}}
    assert growth.list_failures(found) == ["LDP, size 20: ValueError: no labels"]


def test_every_design_for_information_in_growth_can_be_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    growth = importlib.import_module("growth")
    monkeypatch.setattr(growth, "solve", lambda program: program)
    for size in growth.LETTERS:
        assert growth.information(size)().prior.size == size
