"""The public names of pmlopt by topic and module, read from the package without importing it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pmlopt"

TOPICS: dict[str, tuple[str, ...]] = {
    "Priors and mechanisms": (
        "data.prior",
        "data.secret",
        "data.continuous",
        "core.grids",
        "data.mechanism",
        "tables",
        "data.symmetry",
    ),
    "Measures": ("measures",),
    "Requirements": ("model.privacy",),
    "Sets of priors": ("model.uncertainty",),
    "Utilities and constraints": ("model.utility", "model.constraints"),
    "Queries": ("model.queries",),
    "Solving": (
        "programs.solving",
        "programs.result",
        "programs.certificate",
        "sweeps",
        "publishing.exploring",
        "verification",
    ),
    "Programs": ("programs",),
    "Estimates and releases": ("releases.estimation", "releases"),
    "Closed forms and noise": ("model.closed_forms", "releases.noise"),
    "Integrations": ("adapters.transformer", "adapters.expressions", "adapters.measurements"),
    "Problem files, plots, tests, errors": ("library", "programs.plots", "testing", "errors"),
    "More": (),
}
"""The pages of the reference: modules and packages of each topic; public ones that none names are "More"."""

INNER = ("core.", "data.", "programs", "releases.noise", "model.")
"""Modules from which users do not import: what is public of them has a shorter name."""


@dataclass(frozen=True)
class Module:
    """A module that defines public names.

    Attributes:
        path: dotted, such as `pmlopt.measures.leakage`.
        topic: the heading under which it stands.
        names: what it defines that is public, in the order of the file.
    """

    path: str
    topic: str
    names: tuple[str, ...]

    def identifier(self, name: str) -> str:
        """The anchor of a name."""
        return f"{self.path}.{name}"

    def page_of(self, name: str) -> str:
        """The page of a name: that of its public module."""
        return page_of_home(homes()[self.path, name])


def page_of_home(home: str) -> str:
    """The page of a public module."""
    return f"reference/{home.removeprefix('pmlopt.')}.md"


def file_of(module: str) -> Path:
    """The file of a dotted module or package below pmlopt."""
    path = PACKAGE.joinpath(*module.removeprefix("pmlopt").strip(".").split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text("utf-8"))


@cache
def defined(path: Path) -> list[str]:
    """The names that a file defines at its top, but those that start with an underscore."""
    names: list[str] = []
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


@cache
def imported(path: Path, package: str = "pmlopt") -> dict[str, str]:
    """Where the names that a package passes on are defined: name -> dotted module, followed to its end."""
    found: dict[str, str] = {}
    stub = path.with_suffix(".pyi")
    if path.suffix == ".py" and stub.is_file():  # the names are declared there
        path, package = stub, ".".join(path.relative_to(ROOT).parent.parts)
    for node in tree(path).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = f"{package}.{node.module}" if node.level else node.module
            if not module.startswith("pmlopt"):
                continue
            for alias in node.names:
                if (PACKAGE / alias.name).is_dir() and node.module is None:
                    continue
                found[alias.asname or alias.name] = source(module, alias.name)
    return found


def source(module: str, name: str) -> str:
    """The module that defines a name which another passes on."""
    path = file_of(module)
    if name in defined(path):
        return module
    return imported(path).get(name, module)


def listed(path: Path) -> list[str]:
    """The `__all__` of a file or of its stub, or the functions and classes that it defines."""
    if path.with_suffix(".pyi").is_file():
        return list(imported(path))
    for node in tree(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    described = [
        node.name for node in tree(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    return [name for name in described if not name.startswith("_")]


@cache
def top_names() -> dict[str, str]:
    """The names of `pmlopt` itself and of `pmlopt.programs`, and the module that defines each."""
    below = imported(PACKAGE / "programs" / "__init__.py")
    return {**below, **imported(PACKAGE / "__init__.pyi")}


@cache
def packages() -> tuple[str, ...]:
    """The subpackages that `import pmlopt` offers by name."""
    nodes = [
        node for node in tree(PACKAGE / "__init__.pyi").body if isinstance(node, ast.ImportFrom)
    ]
    return tuple(alias.name for node in nodes if node.module is None for alias in node.names)


@cache
def written_names() -> dict[tuple[str, str], str]:
    """The name that users write, such as `pmlopt.design`, by the defining module and the name there."""
    found = {
        (module, name): f"pmlopt.{name}"
        for name, module in imported(PACKAGE / "__init__.pyi").items()
    }
    for origin, public in (*_stubs(), *_rooms(), *_packages()):
        _add_names(found, origin, public)
    return found


@cache
def homes() -> dict[tuple[str, str], str]:
    """The public module that has a name on its page: the one that `import pmlopt` offers for its kind,
    else `pmlopt`, else the one that has it alone; by the defining module and the name there.
    """
    found: dict[tuple[str, str], str] = {}
    for origin, public in (*_stubs(), *_packages()):
        _add_names(found, origin, public)
    listing = {key: written.rpartition(".")[0] for key, written in found.items()}
    return {
        key: listing.get(key, written.rpartition(".")[0])
        for key, written in written_names().items()
    }


def about(home: str) -> str:
    """What a public module is: the first paragraph of the docstring of what it offers."""
    origins = {
        public: f"pmlopt.{origin}" for origin, public in (*_stubs(), *_rooms(), *_packages())
    }
    docstring = ast.get_docstring(tree(file_of(origins.get(home, "pmlopt")))) or ""
    return docstring.split("\n\n")[0]


def _stubs() -> list[tuple[str, str]]:
    """What the modules with a short name pass on, and that name."""
    stubs = sorted(path for path in PACKAGE.glob("*.pyi") if path.stem != "__init__")
    return [
        (node.module.removeprefix("pmlopt."), f"pmlopt.{stub.stem}")
        for stub in stubs
        for node in tree(stub).body
        if isinstance(node, ast.ImportFrom) and node.module is not None
    ]


def _rooms() -> list[tuple[str, str]]:
    """The modules from which users import by their own name."""
    parts = (part for parts in TOPICS.values() for part in parts)
    return [(part, f"pmlopt.{part}") for part in parts if not part.startswith(INNER)]


def _packages() -> list[tuple[str, str]]:
    return [(package, f"pmlopt.{package}") for package in packages()]


def _add_names(found: dict[tuple[str, str], str], part: str, public: str) -> None:
    """Add the names that a module or package lists, where they have no shorter form."""
    path = file_of(part)
    origin = imported(path) if path.name == "__init__.py" else {}
    for name in listed(path):
        found.setdefault((origin.get(name, f"pmlopt.{part}"), name), f"{public}.{name}")


@cache
def modules() -> tuple[Module, ...]:
    """Every module that defines something public, by topic."""
    public: dict[str, set[str]] = {}
    for module, name in written_names():
        public.setdefault(module, set()).add(name)
    topic_of = {part: topic for topic, parts in TOPICS.items() for part in parts}
    found = []
    for dotted, names in public.items():
        parts = dotted.removeprefix("pmlopt.").split(".")
        topics = (topic_of.get(".".join(parts[:length])) for length in range(len(parts), 0, -1))
        topic = next((one for one in topics if one is not None), "More")
        if ordered := tuple(name for name in defined(file_of(dotted)) if name in names):
            found.append(Module(dotted, topic, ordered))
    return tuple(sorted(found, key=lambda module: (list(TOPICS).index(module.topic), module.path)))


@cache
def anchors() -> dict[str, tuple[str, str]]:
    """The page and anchor of each name that a text may use, where it means one thing only."""
    found: dict[str, set[tuple[str, str]]] = {}
    for module in modules():
        for name in module.names:
            page = module.page_of(name)
            place = (page, module.identifier(name))
            rooms = module.path.split(".")[1:]
            short = [f"{room}.{name}" for room in rooms] + [f"{'.'.join(rooms[:2])}.{name}"]
            for written in (
                name,
                *short,
                *(f"pmlopt.{one}" for one in short),
                module.identifier(name),
            ):
                found.setdefault(written, set()).add(place)
            for member in members(module.path, name):
                place = (page, f"{module.identifier(name)}.{member}")
                for written in (f"{name}.{member}", f"pmlopt.{name}.{member}", place[1]):
                    found.setdefault(written, set()).add(place)
    places = {
        name: next(iter(where))
        for name, where in found.items()
        if len(where) == 1 and re.search(r"[A-Z_.]", name)  # `constant` is a word first
    }
    for name, path in top_names().items():
        for module in modules():
            if module.path == path and name in module.names:
                place = (module.page_of(name), module.identifier(name))
                places[name] = places[f"pmlopt.{name}"] = place
    return places


def members(module: str, name: str) -> list[str]:
    """The public methods and properties that a class itself defines and describes."""
    for node in tree(file_of(module)).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return [
                part.name
                for part in node.body
                if isinstance(part, ast.FunctionDef)
                and part.name[0] != "_"
                and ast.get_docstring(part)
            ]
    return []
