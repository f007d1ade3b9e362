"""The package speaks the language of its field: names and docstrings keep the rules of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from documents import ROOT, parse_file

PACKAGE = ROOT / "pmlopt"

PARTICIPLE = re.compile(r"(ed|en|told|held|kept|left|met|said|shown|made|found|given|cut|set)$")
PREPOSITIONS = frozenset(
    """
    about above across after against along among around at before behind below beneath beside
    between beyond by despite down during except for from in inside into near of off on onto out
    outside over past per since through throughout to toward under until up upon with within
    without
    """.split()  # noqa: SIM905
)
ALLOWED_NAMES = frozenset(
    {
        "_flatten",
        "about",
        "after",
        "at",
        "even",
        "expired",
        "failed",
        "listed",
        "maximised",
        "need",
        "of",
        "open",
        "reduced",
        "reordered",
        "required",
        "squared",
        "unfinished",
    }
)
"""Functions named by a participle or a preposition alone that are there already: the list may only shrink."""

PRIVATE_WORDS = (
    "tell", "tells", "told", "asked", "asks", "says", "said", "alone", "beside", "in hand", "held",
    "holds it to", "of one another", "by itself", "by themselves", "nobody", "whoever", "somebody",
    "at hand", "gives out", "gave out", "goes by", "one's own", "person's own", "what is had",
    "with room for",
)  # fmt: skip
"""Words that docstrings used in a sense of their own, where the field has a term."""

PRIVATE = re.compile(rf"\b(?:{'|'.join(PRIVATE_WORDS)})\b")

VERBS = frozenset(
    """
    add adapt align allocate append apply approximate assemble assert assign attach audit average
    bind bisect bound bracket branch build cache calculate calibrate call cap center certify check
    choose classify clear clip close collect combine compare compile complete compose compute
    concatenate condition construct convert copy count create cut declare decode define delete
    derive describe design detect determine discretize divide draw drop dual embed emit encode
    enforce ensure enumerate escape estimate evaluate exclude expand explain export extend extract
    factor fail fill filter find fit fix flag flatten fold follow format free freeze gather
    generate get give group guard handle hash hide import improve include increase infer
    initialize insert install integrate interpolate intersect invert iterate join judge keep label
    launch lift limit link list load locate lock look loop lower make map mark match maximize
    measure merge minimize mix move name narrow normalize note obtain open optimize order pad pair
    parse partition pass perform permute pick place plot poll predict prepare price print probe
    process produce project propagate prove prune publish push put query raise rank read rebuild
    recompute record recover reduce refine refuse register reject relax release remove rename
    render repair repeat replace report represent require reset reshape resolve restore restrict
    resume return reverse round run sample save scale scan search seed select send separate
    serialize set shift shorten show shuffle simplify simulate skip snap solve sort split start
    state step stop store stream strip subtract sum summarize support swap switch symmetrize take
    tell test tighten time trace track transform translate transpose trim truncate try turn unwrap
    update use validate verify visit wait walk warn weigh whether widen wrap write yield
    """.split()  # noqa: SIM905
)
"""Verbs with which the docstring of a function begins."""


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Docstring(NamedTuple):
    """A docstring: `called` where it is that of a function that is no property."""

    path: Path
    line: int
    text: str
    called: bool


@cache
def parse_package() -> dict[Path, ast.Module]:
    return {path: parse_file(path) for path in sorted(PACKAGE.rglob("*.py"))}


def iterate_definitions(body: Iterable[ast.stmt]) -> Iterator[Definition]:
    """Yield the classes and functions in statements; expressions, most of a tree, are left out."""
    for statement in body:
        if isinstance(statement, Definition):
            yield statement
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            for inner in getattr(statement, block, ()):
                yield from iterate_definitions([inner])


@cache
def list_definitions() -> list[tuple[Path, ast.Module | Definition]]:
    """Return all modules, classes and functions of the package."""
    found: list[tuple[Path, ast.Module | Definition]] = []
    for path, tree in parse_package().items():
        found.append((path, tree))
        found += [(path, one) for one in iterate_definitions(tree.body)]
    return found


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = (getattr(one, "id", getattr(one, "attr", "")) for one in node.decorator_list)
    return any(name in ("property", "cached_property") for name in names)


@cache
def list_docstrings() -> list[Docstring]:
    found = []
    for path, node in list_definitions():
        text = ast.get_docstring(node)
        if text:
            called = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(
                node
            )
            found.append(Docstring(path, node.body[0].lineno, text, called))
    return found


def list_function_names() -> set[str]:
    return {
        node.name
        for _, node in list_definitions()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("__")
    }


def is_participle_or_preposition(name: str) -> bool:
    word = name.strip("_")
    if "_" in word or not word.islower():
        return False
    return word in PREPOSITIONS or PARTICIPLE.search(word) is not None


def is_numeric(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float)
    return isinstance(value, ast.BinOp | ast.UnaryOp)


def list_numeric_constants() -> list[str]:
    found = []
    for path, tree in parse_package().items():
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and is_numeric(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [one.id for one in targets if isinstance(one, ast.Name)]
                found += [f"{path}:{name}" for name in names if name.strip("_").isupper()]
    return found


def test_a_class_name_occurs_in_one_module() -> None:
    places = defaultdict(set)
    for path, node in list_definitions():
        if isinstance(node, ast.ClassDef):
            places[node.name].add(path)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_function_is_named_by_a_participle_or_a_preposition_alone() -> None:
    lone = {name for name in list_function_names() if is_participle_or_preposition(name)}
    assert lone - ALLOWED_NAMES == set(), "a function is a verb with its object"
    assert ALLOWED_NAMES - lone == set(), "renamed ones leave the list"


def test_the_rule_on_names_finds_what_it_is_for() -> None:
    assert all(map(is_participle_or_preposition, ("_told", "made", "within", "_between", "listed")))
    assert not any(
        map(is_participle_or_preposition, ("compute_level", "solve", "is_kept", "by_pairs"))
    )


def test_numeric_constants_are_few() -> None:
    constants = list_numeric_constants()
    assert 0 < len(constants) <= 150, constants


def test_a_constant_names_a_quantity() -> None:
    """The extremes are called MAX and MIN."""
    wrong = [
        name for name in list_numeric_constants()
        if re.search(r"(LARGEST|SMALLEST|MOST|LEAST|LONGEST|SHORTEST|FEWEST)_", name.rpartition(":")[2])
    ]  # fmt: skip
    assert wrong == []


def test_docstrings_use_the_words_of_the_field() -> None:
    """At most 5 private words per 10,000: code and what stands between backticks aside."""
    total = 0
    places: list[str] = []
    for one in list_docstrings():
        total += len(re.findall(r"[a-z]+", one.text.lower()))
        prose = re.sub(r">>>.*|\.\.\. .*|`[^`]*`", "", one.text).lower()
        places += [f"{one.path}:{one.line}: {word}" for word in PRIVATE.findall(prose)]
    assert 10_000 * len(places) <= 5 * total, places


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    first = {
        one: one.text.split()[0].strip("`.,:").lower() for one in list_docstrings() if one.called
    }
    others = [
        one for one, word in first.items() if word not in VERBS and word.rstrip("s") not in VERBS
    ]
    assert len(others) <= 0.05 * len(first), [(one.path, one.line) for one in others]


def test_lines_that_need_a_reason_have_a_comment() -> None:
    lines = [line for path in parse_package() for line in path.read_text("utf-8").splitlines()]
    comments = sum(line.lstrip().startswith("#") or "  # " in line for line in lines)
    assert comments >= 0.025 * len(lines)
