"""The map of docs/architecture.md: rooms import from those above, files form no circle, little is loaded."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from documents import parse_file

import pmlopt

PACKAGE = Path(pmlopt.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE / "problems"]


@cache
def trees() -> Mapping[Path, ast.Module]:
    """The source of each file, and of a package whose names are declared in a stub the stub."""
    return {path: declared(path) if lazy(path) else parse_file(path) for path in SOURCES}


def trees_with(*words: str) -> Mapping[Path, ast.Module]:
    """The trees of the files in whose text one of these words occurs."""
    return {path: tree for path, tree in trees().items() if any(one in text(path) for one in words)}


def text(path: Path) -> str:
    """The text of what is parsed for a file."""
    return (path.with_suffix(".pyi") if lazy(path) else path).read_text("utf-8")


def lazy(path: Path) -> bool:
    return path.with_suffix(".pyi").is_file() and path.parent != PACKAGE


def declared(path: Path) -> ast.Module:
    """The imports of a stub, with the names of modules in full."""
    package = ".".join(("pmlopt", *path.relative_to(PACKAGE).parent.parts))
    names = text(path).replace("from . import", f"from {package} import")
    return ast.parse(names.replace("from .", f"from {package}."))


@cache
def rooms() -> tuple[str, ...]:
    """The rooms in the order of the map that is printed on the page."""
    page = PAGE.read_text("utf-8")
    printed = page[page.index("## The map") : page.index("\nOutside the package")]
    return tuple(re.findall(r"^\| `(\w+)(?:/|\.py)` \|", printed, re.MULTILINE))


ALIASES = {
    path.stem
    for path in SOURCES
    if "delegate_to(" in path.read_text("utf-8") and path.parent == PACKAGE
}
"""Modules such as `pmlopt.utility`, which pass on the names of a part of a room."""


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def named_modules(tree: ast.AST) -> Iterator[str]:
    """The modules of pmlopt that some code names: in imports, also inside functions, and in strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("pmlopt."))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "pmlopt":
            yield from (
                f"pmlopt.{alias.name}" for alias in node.names if alias.name != "__version__"
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pmlopt."):
            yield str(node.module)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            value = node.args[0].value
            if called in ("import_module", "__import__") and str(value).startswith("pmlopt."):
                yield str(value)


@cache
def modules_by_file() -> Mapping[Path, tuple[str, ...]]:
    """The modules of pmlopt that each file names."""
    return {path: tuple(named_modules(tree)) for path, tree in trees().items()}


def test_the_map_names_every_room_once_and_no_import_runs_up_it() -> None:
    assert sorted(rooms()) == sorted(
        {room_of(path) for path in SOURCES} - {"__init__", "__main__"} - ALIASES
    )
    order = {room: place for place, room in enumerate(rooms())}
    found = {
        (str(path.relative_to(PACKAGE)), module)
        for path, modules in modules_by_file().items()
        if room_of(path) in order
        for module in modules
        if order.get(module.split(".")[1], -1) > order[room_of(path)]
    }
    assert found == set()


@cache
def layers() -> tuple[frozenset[str], frozenset[str]]:
    """The rooms of the toolkit, and those around it, as the table parts them."""
    page = PAGE.read_text("utf-8")
    inside = page[page.index("| **The toolkit** |") : page.index("| **Around it** |")]
    lower = frozenset(re.findall(r"^\| `(\w+)(?:/|\.py)` \|", inside, re.MULTILINE))
    return lower, frozenset(rooms()) - lower


def test_the_toolkit_imports_nothing_of_what_stands_around_it() -> None:
    lower, upper = layers()
    assert {"errors", "core", "programs", "verification", "testing"} <= lower
    assert upper == {"tables", "releases", "publishing", "adapters", "cli"}
    found = {
        (str(path.relative_to(PACKAGE)), module)
        for path, modules in modules_by_file().items()
        if room_of(path) in lower
        for module in modules
        if module.split(".")[1] in upper
    }
    assert found == set()


AROUND = {"filelock", "narwhals", "pyarrow", "rich", "threadpoolctl"}
"""Packages that the toolkit does without: no file of it imports them at its top."""


def test_the_toolkit_needs_no_package_for_files_and_frames() -> None:
    lower, _ = layers()
    found = set()
    for path, tree in trees_with(*AROUND).items():
        for node in ast.walk(tree) if room_of(path) in lower else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            found |= {(path.name, one) for one in names if one.partition(".")[0] in AROUND}
    # each behind a look for the package, for data of that package, or for a type checker alone
    assert found == {
        ("solver_result.py", "threadpoolctl"),
        ("frames.py", "pyarrow"),
        ("lazy_imports.py", "pyarrow"),
    }


def test_short_paths_pass_on_the_names_of_a_room_and_no_room_uses_them() -> None:
    assert len(ALIASES) == 10
    for name in sorted(ALIASES):
        alias = importlib.import_module(f"pmlopt.{name}")
        stub = (PACKAGE / f"{name}.pyi").read_text("utf-8")
        place = importlib.import_module(stub.split()[1])
        assert alias is getattr(pmlopt, name)
        assert set(alias.__all__) <= set(dir(alias))
        assert all(getattr(alias, one) is getattr(place, one) for one in alias.__all__)
    used = {one.split(".")[1] for modules in modules_by_file().values() for one in modules}
    assert used & ALIASES == set()


def test_imports_are_read_from_every_form() -> None:
    source = (
        "import pmlopt.cli\nfrom pmlopt import library\n"
        "def f():\n    from pmlopt.solvers.highs import run\n    import_module('pmlopt.sweeps')\n"
    )
    named = ["pmlopt.cli", "pmlopt.library", "pmlopt.solvers.highs", "pmlopt.sweeps"]
    assert list(named_modules(ast.parse(source))) == named


def test_files_are_read_in_one_sitting() -> None:
    long = {
        path: lines
        for path in SOURCES
        if (lines := len(path.read_text("utf-8").splitlines())) > 600
    }
    assert long == {}


SPARSE_MATRICES = {"bmat", "diags", "eye", "identity", "rand", "random", "spdiags"}
"""Functions of scipy.sparse that make matrices of the old kind, which scipy gives up, beside `*_matrix`."""


def test_only_sparse_arrays_are_made() -> None:
    made = {
        (path.name, node.attr)
        for path, tree in trees_with("sparse").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) == "sparse"
        and (node.attr in SPARSE_MATRICES or node.attr.endswith("_matrix"))
    }
    assert made == set()


LIGHT = """
import sys
heavy = {"cvxpy", "scipy", "highspy", "matplotlib", "pandas", "pyarrow"}
def check(what):
    assert not heavy & set(sys.modules), (what, heavy & set(sys.modules))
import pmlopt, pmlopt.core.records.record
check("import pmlopt")
from pmlopt.cli import main
def run(*arguments):
    try:
        main(arguments)
    except SystemExit as ended:
        assert not ended.code
run("--help")
check("the help")
pmlopt.leakage_level([0.5, 0.5], [[1, 0], [0, 1]])
check("a level")
pmlopt.PML(1.0).holds([0.5, 0.5], [[1, 0], [0, 1]])
check("an exact check")
import pmlopt.programs.solving
heavy -= {"highspy", "pyarrow"}
check("the solvers")
for utility in ("hamming", "absolute"):
    run("design", "--prior", "four.csv", "--epsilon", "0.5", "--utility", utility)
    check(f"a small design: {utility}")
heavy -= {"scipy"}
heavy |= {"scipy.stats"}
run("sweep", "--prior", "four.csv", "--epsilon", "0.5,1", "--utility", "absolute", "-o", "curve.csv")
check("a small sweep")
run("release", "people.csv", "--column", "c", "--epsilon", "0.5", "--utility", "absolute", "-o", "out")
check("a release")
run("check", "out")
check("the check of a release")
run("apply", "out/mechanisms/c.json", "people.csv", "--column", "c", "-o", "c.csv.gz")
check("apply")
import numpy as np
from pmlopt import ExpectedLoss, L1Ball, PML, design, least_leakage, solve
prior, steps = np.arange(1, 61) / 1830, abs(np.subtract.outer(np.arange(60), np.arange(60)))
solve(design(prior, PML(1.0, over=L1Ball(prior, 0.1)), ExpectedLoss(steps)))
check("the interior point over a set")
solve(least_leakage(prior, ExpectedLoss(steps), expected=3.0))
check("least leakage")
"""


def test_what_is_heavy_is_loaded_only_when_something_needs_it(tmp_path: Path) -> None:
    (tmp_path / "four.csv").write_text("letter,count\n0,4\n1,3\n2,2\n3,1\n")
    (tmp_path / "people.csv").write_text("c\n" + "0\n1\n2\n0\n" * 50)
    subprocess.run([sys.executable, "-c", LIGHT], check=True, capture_output=True, cwd=tmp_path)


def test_parts_that_pages_import_from_load_after_the_package_alone() -> None:
    pages = [*(PACKAGE.parent / "docs").rglob("*.md"), PACKAGE.parent / "README.md"]
    shown = {
        part
        for page in pages
        for part in re.findall(
            r"^(?:from|import) pmlopt\.(\w+)", page.read_text("utf-8"), re.MULTILINE
        )
    }
    assert {"library", "noise", "publishing"} <= shown
    code = f"import pmlopt\nfor part in {sorted(shown)}: getattr(pmlopt, part)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_every_public_name_resolves() -> None:
    for name in dir(pmlopt):
        assert getattr(pmlopt, name) is not None
    with pytest.raises(AttributeError, match="pmlopt has no 'nothing'"):
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
    return {
        name_of(path): imported_files(statements(tree, inside_functions=inside_functions))
        for path, tree in trees().items()
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
    ahead = {
        target: {target} | reached(graph, target) for targets in late.values() for target in targets
    }
    found = {
        (name, target)
        for name, targets in late.items()
        for target in targets
        if name in ahead[target]
    }
    assert found == set(), "at the top of the file these imports would be circles"


def test_circles_are_found() -> None:
    graph = {
        "a": frozenset({"b"}),
        "b": frozenset({"c"}),
        "c": frozenset({"b"}),
        "d": frozenset({"a"}),
    }
    assert {name for name in graph if name in reached(graph, name)} == {"b", "c"}
    source = ast.parse(
        "import pmlopt.errors\n"
        "if TYPE_CHECKING:\n    from pmlopt.model.privacy import PML\n"
        "class C:\n    def f(self):\n        from pmlopt.cli import main\n"
    )
    outside = {"errors.py", "model/privacy/__init__.py"}
    assert imported_files(statements(source, inside_functions=False)) == outside
    assert imported_files(statements(source, inside_functions=True)) == {"cli/__init__.py"}


PUBLIC_PACKAGES = (
    "closed_forms", "errors", "estimation", "measures", "noise", "plots", "privacy", "queries", "releases",
    "symmetry", "tables", "uncertainty", "utility",
)  # fmt: skip
"""Reached as `pmlopt.noise` after `import pmlopt`."""


KNOWN = """
from pmlopt.core.records.fields import find_tagged_classes
from pmlopt.data.symmetry.prior import PairSpace
from pmlopt.model.queries.query import Query
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.utility.linear import Utility
known = {}
for base in (Utility, PriorSet, Query, PairSpace):
    known |= find_tagged_classes(base)
assert {"sum-of-parts", "vertices", "quadratic", "circle"} <= set(known), known
"""


def test_public_packages_are_reached_and_every_kind_is_known_to_whoever_has_its_base() -> None:
    plain = "import pmlopt\n" + "\n".join(f"pmlopt.{name}.__name__" for name in PUBLIC_PACKAGES)
    for code in (plain, KNOWN):
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_no_module_has_the_name_of_a_public_function() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    public = {name for name in dir(pmlopt) if not isinstance(getattr(pmlopt, name), ModuleType)}
    assert modules & public == set(), (
        "importing the module would put it in the place of the function"
    )
    for stub in PACKAGE.glob("*/**/__init__.pyi"):
        names = set(re.findall(r"^from \.\w.* as (\w+)$", stub.read_text("utf-8"), re.MULTILINE))
        assert names & {path.stem for path in stub.parent.iterdir()} == set(), stub
