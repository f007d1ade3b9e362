"""The registration and the lists of solver methods by program class; `program.find_registry` looks one up.

A module that has the methods of a question registers them when it is imported. Those of pmlopt are imported
with the first program of their question; those of another package by an import, or by an entry point of the
group `pmlopt.questions` that names the module.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from pmlopt.core.definitions import list_definitions
from pmlopt.core.lazy_imports import is_installed, pkgutil
from pmlopt.core.records.fields import find_tagged_classes
from pmlopt.errors import ProgramError
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.program import (
    REGISTRY,
    Method,
    MethodRegistry,
    Program,
    find_registry_for_class,
    get_package,
)

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
    question = find_registry_for_class(kind)
    rows = [one for one in question.methods if not _is_redefined_method(one, method)]
    ids = [one.id for one in rows]
    if method.id in ids:
        raise ProgramError(f"{kind.__name__} has a method with the id {method.id!r}: give another")
    if before is not None and before not in ids:
        raise ProgramError(f"{kind.__name__} has no method {before!r}; there are: {', '.join(ids)}")
    rows.insert(len(rows) if before is None else ids.index(before), method)
    REGISTRY[kind] = replace(question, methods=tuple(rows))


def list_registries() -> tuple[MethodRegistry[Any, Any, Any], ...]:
    """List all questions: those of pmlopt in the order of their folders, then those of others."""
    own = [one for folder in list_question_folders() for one in import_questions(folder)]
    return (*own, *(one for one in REGISTRY.values() if one not in own))


@cache
def list_question_folders() -> tuple[str, ...]:
    """List the folders of pmlopt that have a module `methods`, which registers questions."""
    package = import_module(__package__)
    folders = [one.name for one in pkgutil.iter_modules(package.__path__) if one.ispkg]
    return tuple(one for one in sorted(folders) if is_installed(f"{__package__}.{one}.methods"))


def import_questions(folder: str) -> list[MethodRegistry[Any, Any, Any]]:
    """Import the methods of a folder of pmlopt, and return the questions that they register."""
    package = f"{__package__}.{folder}"
    import_module(f"{package}.methods")
    return [one for one in REGISTRY.values() if get_package(one.program) == package]


def is_method_name(name: str) -> bool:
    """Return whether a question has a method of a name; they are imported until one has."""
    if any(name in one.own_names for one in REGISTRY.values()):
        return True
    folders = list_question_folders()
    return any(name in one.own_names for folder in folders for one in import_questions(folder))


def list_certificates() -> tuple[type[Certificate], ...]:
    """List the kinds of certificates of pmlopt by their names in files, and import what has them."""
    import_module(f"{__package__}.compliance")  # of mechanisms that no question designed
    list_registries()
    known = find_tagged_classes(Certificate).items()
    own = __package__.partition(".")[0]
    return tuple(kind for _, kind in sorted(known) if kind.__module__.partition(".")[0] == own)


def list_method_names() -> frozenset[str]:
    """List the method names of all registries."""
    return frozenset(name for question in list_registries() for name in question.own_names)


def _is_redefined_method(known: Method[Any, Any, Any], method: Method[Any, Any, Any]) -> bool:
    """Return whether a method redefines a registered one, as in a rerun notebook cell."""
    same = list_definitions(known.run) == list_definitions(method.run)
    return known.id == method.id and same and not known.is_own
