"""The map: rooms import from those above, files form no circle, and what is light stays light."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import pmlopt

PACKAGE = Path(pmlopt.__file__).parent
LAYERS = (
    "verifier",
    "errors",
    "frames",
    "arrays",
    "display",
    "drawing",
    "roots",
    "labels",
    "core",
    "whole_files",
    "files",
    "sampling",
    "tables",
    "prior",
    "secret",
    "grids",
    "continuous",
    "mechanism",
    "symmetry",
    "queries",
    "measures",
    "plots",
    "backends",
    "uncertainty",
    "privacy",
    "utility",
    "closed_forms",
    "noise",
    "releases",
    "estimation",
    "result",
    "program",
    "exact",
    "programs",
    "isolation",
    "solving",
    "saved",
    "reports",
    "sweeps",
    "adapters",
    "instances",
    "bench",
    "cli",
    "testing",
)

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
    assert imported_layers(path.read_text()) <= above


def test_imports_are_read_from_every_form() -> None:
    source = (
        "import pmlopt.cli\nfrom pmlopt import files\ndef f():\n    from pmlopt.backends.highs import run\n"
    )
    assert imported_layers(source) == {"cli", "files", "backends"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600


@pytest.mark.parametrize(
    "code",
    [
        "import pmlopt",
        "import pmlopt.core.records",
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


# ---------------------------------------------------------------- circles between files

Graph = Mapping[str, frozenset[str]]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def file_of(module: str) -> str | None:
    """The file of a module or package of pmlopt; None for what is no module."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return name_of(candidate)
    return None


def imported_files(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The files of pmlopt that some import statements name; the lazy face of the package is none."""
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= {name if file_of(name) is not None else node.module for name in names}
    files = {file_of(module) for module in modules if module.startswith("pmlopt.")}
    return frozenset(file for file in files if file is not None)


def statements(tree: ast.AST, *, inside_functions: bool) -> Iterator[ast.AST]:
    """The statements inside functions, or those outside, with what is for the type checker alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if inside_functions:
                yield from ast.walk(node)
        else:
            if not inside_functions:
                yield node
            yield from statements(node, inside_functions=inside_functions)


@cache
def read_graph(*, inside_functions: bool) -> Graph:
    trees = {name_of(path): ast.parse(path.read_text("utf-8")) for path in SOURCES}
    return {
        name: imported_files(statements(tree, inside_functions=inside_functions))
        for name, tree in trees.items()
    }


def reached(graph: Graph, start: str) -> set[str]:
    """The files that are reached from one by one import or more."""
    seen: set[str] = set()
    ahead = list(graph.get(start, ()))
    while ahead:
        file = ahead.pop()
        if file not in seen:
            seen.add(file)
            ahead += graph.get(file, ())
    return seen


def test_no_files_import_one_another() -> None:
    graph = read_graph(inside_functions=False)
    found = {name for name in graph if name in reached(graph, name)}
    assert found == set(), "these files import one another, perhaps by way of others"


def test_no_import_inside_a_function_hides_a_circle() -> None:
    graph, late = read_graph(inside_functions=False), read_graph(inside_functions=True)
    ahead = {target: {target} | reached(graph, target) for targets in late.values() for target in targets}
    found = {(name, target) for name, targets in late.items() for target in targets if name in ahead[target]}
    assert found == set(), "at the top of the file these imports would be circles"


def test_circles_are_found() -> None:
    graph = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"b"}), "d": frozenset({"a"})}
    assert {name for name in graph if name in reached(graph, name)} == {"b", "c"}
    source = ast.parse(
        "import pmlopt.files\n"
        "if TYPE_CHECKING:\n    from pmlopt.privacy import PML\n"
        "class C:\n    def f(self):\n        from pmlopt.cli import main\n"
    )
    assert imported_files(statements(source, inside_functions=False)) == {"files.py", "privacy/__init__.py"}
    assert imported_files(statements(source, inside_functions=True)) == {"cli/__init__.py"}


# ---------------------------------------------------------------- what is public

PUBLIC_PACKAGES = (
    "closed_forms",
    "errors",
    "estimation",
    "measures",
    "noise",
    "plots",
    "privacy",
    "queries",
    "releases",
    "symmetry",
    "tables",
    "uncertainty",
    "utility",
)
"""Reached as `pmlopt.noise` after `import pmlopt`."""


def test_public_packages_are_reached_after_a_plain_import() -> None:
    code = "import pmlopt\n" + "\n".join(f"pmlopt.{name}.__name__" for name in PUBLIC_PACKAGES)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_no_module_has_the_name_of_a_public_function() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    public = {name for name in dir(pmlopt) if not isinstance(getattr(pmlopt, name), ModuleType)}
    assert modules & public == set(), "importing the module would put it in the place of the function"
