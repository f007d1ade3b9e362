"""Where code asks for the class of a requirement or a set of priors, in place of a form that they give."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from documents import parse_file

from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import PriorSet

PACKAGE = Path(__file__).parents[1] / "pmlopt"
BASES = {"Requirement", "PriorSet"}


def list_subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    """Iterate over all classes below a class."""
    below: list[type[Any]] = kind.__subclasses__()
    for one in below:
        yield one
        yield from list_subclasses(one)


def count_checks(path: Path, concrete: set[str]) -> int:
    """Count the calls of `isinstance` with a concrete class in a file."""
    if "isinstance(" not in path.read_text("utf-8"):
        return 0
    calls = [
        node
        for node in ast.walk(parse_file(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
    ]
    names = [
        {part.id for part in ast.walk(call.args[1]) if isinstance(part, ast.Name)} for call in calls
    ]
    return sum(bool(one & concrete) for one in names)


ALLOWED = Counter(
    {
        "model/closed_forms/catalogue.py": 5,
        "model/privacy/mean_bounds.py": 1,
        "programs/claims.py": 3,
        "programs/continuous/program.py": 1,
        "programs/least_leakage/epsilon_builder.py": 4,
        "publishing/exploring/sources.py": 1,
    }
)
"""How often each file does so; these may only shrink, and a new file gives the form that is wanted."""


def test_classes_of_requirements_and_sets_are_asked_for_in_few_places() -> None:
    kinds = [*list_subclasses(Requirement), *list_subclasses(PriorSet)]
    concrete = {kind.__name__ for kind in kinds if kind.__module__.startswith("pmlopt.")} - BASES
    found = Counter(
        {
            str(path.relative_to(PACKAGE)): count
            for path in sorted(PACKAGE.rglob("*.py"))
            if (count := count_checks(path, concrete))
        }
    )
    assert found - ALLOWED == Counter()
