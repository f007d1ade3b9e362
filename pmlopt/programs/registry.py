"""The registry of solver methods by program class, of pmlopt and of other packages.

A module that has the methods of a question registers them when it is imported. Those of pmlopt are imported
with the first program of their question; those of another package by an import, or by an entry point of the
group `pmlopt.questions` that names the module.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any, TypeVar

from pmlopt.core.definitions import list_definitions
from pmlopt.errors import ProgramError
from pmlopt.programs.program import Method, MethodRegistry, Program

QUESTION_FOLDERS = (
    "linear", "subconvex", "estimation", "continuous", "least_leakage", "worst_case", "envelope",
    "envelope_design", "record_leakage", "tradeoff",
)  # fmt: skip
"""The folders of pmlopt whose `methods` register questions, in the order in which a list of all has them."""

ENTRY_POINT_GROUP = "pmlopt.questions"
"""The group of entry points under which other packages name the modules that register their questions."""

REGISTRY: dict[type[Program[Any]], MethodRegistry[Any, Any, Any]] = {}
"""The questions that are registered so far, by the class of their programs."""

P = TypeVar("P", bound=Program[Any])
Q = TypeVar("Q", bound=MethodRegistry[Any, Any, Any])


def register_question(question: Q) -> Q:
    """Register the method registry of a program class, and return it.

    Args:
        question: the class of its programs, with the table of their methods.

    Raises:
        ProgramError: the class is none of programs or has methods already, or two methods have one id.
    """
    kind = question.program
    if not (isinstance(kind, type) and issubclass(kind, Program)):
        raise ProgramError(f"{kind!r} is no subclass of Program: a question is registered by one")
    if REGISTRY.get(kind, question) is not question:
        raise ProgramError(
            f"{kind.__name__} has methods already: add one by register_method, or declare a subclass"
        )
    ids = [one.id for one in question.methods]
    for one in ids:
        if ids.count(one) > 1:
            raise ProgramError(
                f"two methods of {kind.__name__} have the id {one!r}: give each its own"
            )
    REGISTRY[kind] = question
    return question


def register_method(
    kind: type[P], method: Method[P, Any, Any], *, before: str | None = None
) -> None:
    """Add a solver method to the registry of a program class, which may be one of pmlopt.

    Args:
        kind: the class of the programs that it solves.
        method: the row. What it finds counts as optimal only where its certificate verifies.
        before: the id of the row that it precedes; left out, it is the last one, which `auto` comes to where
            the others leave a gap. A row of the same function that was added before is replaced.

    Raises:
        ProgramError: no methods are registered for the class, no row has the id `before`, or another row has
            the id of this one.
    """
    question = _find_registry_for_class(kind)
    rows = [one for one in question.methods if not _is_redefined_method(one, method)]
    ids = [one.id for one in rows]
    if method.id in ids:
        raise ProgramError(f"{kind.__name__} has a method with the id {method.id!r}: give another")
    if before is not None and before not in ids:
        raise ProgramError(f"{kind.__name__} has no method {before!r}; there are: {', '.join(ids)}")
    rows.insert(len(rows) if before is None else ids.index(before), method)
    REGISTRY[kind] = replace(question, methods=tuple(rows))


def find_registry(program: Program[Any], solver: object = "auto") -> MethodRegistry[Any, Any, Any]:
    """Find the method registry for a program's class, importing its module if needed.

    Args:
        program: from any builder.
        solver: as `solve` takes it. Where it is a name that no method has, installed packages are imported,
            one of which may register it.

    Raises:
        ProgramError: it is no program, or no methods are registered for its class.
    """
    if not isinstance(program, Program):
        raise ProgramError(
            f"solve takes a Program from a builder such as design(...), not {program!r:.60}"
        )
    kind = type(program)
    question = REGISTRY.get(kind) or _find_registry_for_class(kind)
    known = solver == "auto" or not isinstance(solver, str) or question.has_name(solver.lower())
    if known:
        return question
    load_installed_registries()
    return _find_registry_for_class(kind)


def list_registries() -> tuple[MethodRegistry[Any, Any, Any], ...]:
    """List the method registries of all program classes: pmlopt's first, then those of other packages."""
    packages = [f"{__package__}.{folder}" for folder in QUESTION_FOLDERS]
    for package in packages:
        import_module(f"{package}.methods")
    known = REGISTRY.values()
    own = [one for package in packages for one in known if _get_package(one.program) == package]
    return (*own, *(one for one in known if one not in own))


def list_method_names() -> frozenset[str]:
    """List the method names of all registries."""
    return frozenset(name for question in list_registries() for name in question.own_names)


def load_installed_registries() -> None:
    """Import the modules of the entry-point group `pmlopt.questions`.

    Raises:
        ProgramError: one of them cannot be imported; the message names it.
    """
    from importlib.metadata import entry_points  # takes tens of milliseconds

    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            point.load()
        except Exception as cause:
            raise ProgramError(
                f"the questions of {point.value} (entry point {point.name!r} of {ENTRY_POINT_GROUP}) "
                f"cannot be imported: {type(cause).__name__}: {cause}. Mend or remove the package"
            ) from cause


def _find_registry_for_class(kind: type[Any]) -> MethodRegistry[Any, Any, Any]:
    """Find the method registry of a program class: built-in ones first, then installed ones."""
    if (
        kind not in REGISTRY
        and _get_package(kind).removeprefix(f"{__package__}.") in QUESTION_FOLDERS
    ):
        import_module(f"{_get_package(kind)}.methods")
    if kind not in REGISTRY:
        load_installed_registries()
    if kind not in REGISTRY:
        raise ProgramError(
            f"no methods are registered for {kind.__name__}: import the module that registers them by "
            "register_question"
        )
    return REGISTRY[kind]


def _get_package(kind: type[Any]) -> str:
    """Return the name of the package that defines a class."""
    return kind.__module__.rpartition(".")[0]


def _is_redefined_method(known: Method[Any, Any, Any], method: Method[Any, Any, Any]) -> bool:
    """Return whether a method redefines a registered one, as in a rerun notebook cell."""
    same = list_definitions(known.run) == list_definitions(method.run)
    return known.id == method.id and same and not known.is_own
