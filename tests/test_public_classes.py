"""What is public needs more than code: a line of the changelog, the schema, rows of the docs, the help."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

import pytest
from commands import run
from documents import ROOT, module

import pmlopt
from pmlopt.core.records.fields import get_tag
from pmlopt.model import constraints, privacy, queries, uncertainty, utility
from pmlopt.model.constraints import Constraint
from pmlopt.model.privacy import LDP, Requirement
from pmlopt.model.queries import Query
from pmlopt.model.uncertainty import ConvexHull, PriorSet
from pmlopt.model.utility import ChiSquare, SubConvex, Utility
from pmlopt.programs.program import Program
from pmlopt.programs.registry import list_registries
from pmlopt.releases import noise


@cache
def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@cache
def help_of(command: str, option: str) -> str:
    """Return the help of an option without line breaks, which may stand behind a hyphen."""
    shown = run(command, "--help")
    found = re.search(rf"^  {option}\b.*?(?=^  -|\Z)", shown, re.MULTILINE | re.DOTALL)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"-\n\s+", "-", found[0]))


@cache
def index() -> str:
    return str(module("reference").reference_index())


@cache
def schema() -> Mapping[str, Any]:
    return dict(json.loads(page("docs/mechanism.schema.json"))["$defs"])


def has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


Need = tuple[str, Callable[[Any], bool]]
"""What is needed, in words, and whether something public has it."""


def written_in(file: str) -> Need:
    return f"its name in {file}", lambda public: has_word(page(file), public.__name__)


def helped(command: str, option: str) -> Need:
    def has(public: Any) -> bool:
        tag = get_tag(public)
        return tag is not None and has_word(help_of(command, option), tag[1])

    return f"its name for files in the help of `pmlopt {command} {option}`", has


CHANGELOG = written_in("CHANGELOG.md")
INDEX: Need = (
    "its name in the reference by topic",
    lambda public: has_word(index(), public.__name__),
)
SCHEMA: Need = "its class in docs/mechanism.schema.json", lambda public: public.__name__ in schema()

REQUIREMENT = (
    CHANGELOG, SCHEMA, INDEX, written_in("docs/choosing/requirement.md"),
    helped("design", "--privacy"),
)  # fmt: skip
BY_MATRICES = REQUIREMENT[:-1]
"""Of a requirement whose parameters are matrices, which no option of the command line takes."""
UTILITY = (CHANGELOG, INDEX)
INFORMATION = (CHANGELOG, INDEX, helped("design", "--utility"))
PRIOR_SET = (CHANGELOG, SCHEMA, INDEX, written_in("docs/robust.md"))
CONSTRAINT = (CHANGELOG, SCHEMA, INDEX, helped("design", "--constraint"))
QUERY = (CHANGELOG, SCHEMA, INDEX)
NOISE = (CHANGELOG, INDEX)
PROGRAM = (CHANGELOG, INDEX)


def missing_of(public: Any, needs: Iterable[Need]) -> list[str]:
    """Return what something public lacks, in words."""
    return [what for what, has in needs if not has(public)]


def kinds_in(module: ModuleType, base: type, *left_out: type) -> list[type]:
    """Return the public classes of a room that can be made, in the order of their names."""
    found = (
        getattr(module, name)
        for name in sorted(set(dir(module)) | set(getattr(module, "__all__", ())))
    )
    kinds = [
        one
        for one in found
        if inspect.isclass(one) and issubclass(one, base) and one not in left_out
    ]
    return [
        one for one in kinds if not inspect.isabstract(one) and not one.__name__.startswith("_")
    ]


def builders() -> list[Any]:
    """Return the public functions that declare a program."""
    programs = {question.program.__name__ for question in list_registries()} | {Program.__name__}
    functions = (getattr(pmlopt, name) for name in dir(pmlopt))
    return [
        one
        for one in functions
        if inspect.isfunction(one)
        and programs & set(re.findall(r"\w+", str(inspect.signature(one).return_annotation)))
    ]


INFORMATIONS = kinds_in(utility, SubConvex, SubConvex, utility.FInformation)
PUBLIC: dict[Any, tuple[Need, ...]] = {
    **dict.fromkeys(kinds_in(privacy, Requirement, privacy.RequirementConjunction), REQUIREMENT),
    privacy.RatioBound: BY_MATRICES,
    **dict.fromkeys(kinds_in(utility, Utility, utility.LinearUtility), UTILITY),
    **dict.fromkeys(INFORMATIONS, INFORMATION),
    **dict.fromkeys([*kinds_in(uncertainty, PriorSet), uncertainty.JointLaws], PRIOR_SET),
    **dict.fromkeys(kinds_in(constraints, Constraint), CONSTRAINT),
    **dict.fromkeys(kinds_in(queries, Query), QUERY),
    **dict.fromkeys(kinds_in(noise, object, noise.Promise), NOISE),
    **dict.fromkeys(builders(), PROGRAM),
}


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.__name__)
def test_it_has_all_that_is_needed(public: Any) -> None:
    missing = missing_of(public, PUBLIC[public])
    assert not missing, f"{public.__name__} lacks {'; '.join(missing)}"


def test_the_rooms_are_looked_through() -> None:
    for one in (
        LDP,
        privacy.PML,
        ChiSquare,
        ConvexHull,
        constraints.Invariant,
        pmlopt.design,
        pmlopt.envelope,
    ):
        assert one in PUBLIC
    assert {question.program.__name__ for question in list_registries()} <= set(
        re.findall(r"\w+", " ".join(str(inspect.signature(one).return_annotation) for one in builders()))
    ) | {"LinearDesign", "SymmetricDesign", "ColumnDesign", "EstimationDesign", "ContinuousDesign",
         "SymmetricLeastLeakage", "ProcessedFailureProgram"}  # fmt: skip


class Planted:
    """A class for which nothing but code was written; no base knows it, so that other tests do not either."""

    name: ClassVar[str] = "planted-name"


@pytest.mark.parametrize("needs", list(dict.fromkeys(PUBLIC.values())))
def test_a_class_with_nothing_but_code_lacks_each_by_name(needs: tuple[Need, ...]) -> None:
    missing = missing_of(Planted, needs)
    assert missing == [what for what, _ in needs]
    assert all(what.startswith("its ") for what in missing)


def test_a_name_within_another_does_not_count() -> None:
    assert not has_word("ApproximatePMLs and pml-2", "PML")
    assert not has_word("approximate-pml", "pml")
    assert has_word("`PML(eps)`, pml", "PML")
