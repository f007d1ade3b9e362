"""Layers: each imports only from those above it; and what is light stays light."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import pmlopt

PACKAGE = Path(pmlopt.__file__).parent
LAYERS = (
    "errors",
    "arrays",
    "roots",
    "files",
    "prior",
    "mechanism",
    "queries",
    "measures",
    "backends",
    "uncertainty",
    "privacy",
    "utility",
    "closed_forms",
    "noise",
    "program",
    "exact",
    "result",
    "programs",
    "dispatch",
    "solving",
    "sweeps",
    "instances",
    "bench",
    "plots",
    "cli",
)
UNFINISHED = ("result.py", "programs/least_leakage/thresholds.py")
"""Files that still look down the map."""

SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE / "problems"]


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_layers(source: str) -> set[str]:
    layers = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "pmlopt":
            layers |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pmlopt."):
            layers.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            layers |= {name.name.split(".")[1] for name in node.names if name.name.startswith("pmlopt.")}
    return layers - {"__version__"}


def test_every_file_belongs_to_a_layer() -> None:
    assert {layer_of(path) for path in SOURCES} == {*LAYERS, "__init__", "__main__"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_upwards(path: Path) -> None:
    layer = layer_of(path)
    if layer in ("__init__", "__main__"):  # the face, which holds nothing else
        return
    above = set(LAYERS[: LAYERS.index(layer) + 1])
    assert imported_layers(path.read_text()) <= above or path.relative_to(PACKAGE).as_posix() in UNFINISHED


def test_imports_are_read_from_every_form() -> None:
    source = (
        "import pmlopt.cli\nfrom pmlopt import files\ndef f():\n    from pmlopt.solvers.highs import run\n"
    )
    assert imported_layers(source) == {"cli", "files", "solvers"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize(
    "code",
    [
        "import pmlopt",
        "import pmlopt.cli",
        "from pmlopt import leakage_level; leakage_level([0.5, 0.5], [[1, 0], [0, 1]])",
        "from pmlopt import PML; PML(1.0).holds([0.5, 0.5], [[1, 0], [0, 1]])",
        "from pmlopt.cli import main; main(['--help'], standalone_mode=False)",
    ],
)
def test_cvxpy_is_loaded_only_when_something_needs_it(code: str) -> None:
    heavy = "import sys; assert not {'cvxpy', 'scipy', 'highspy', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{code}\n{heavy}"], check=True, capture_output=True)


def test_every_public_name_resolves() -> None:
    for name in dir(pmlopt):
        assert getattr(pmlopt, name) is not None
    with pytest.raises(AttributeError, match="attribute nothing"):
        importlib.import_module("pmlopt").nothing  # noqa: B018
