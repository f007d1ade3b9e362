"""Every formula of the site is read back from what a browser gets, and is its plain notation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from documents import ROOT, module, parse_file
from latex2mathml.converter import convert
from markdown import Markdown

mathematics, public_names = module("mathematics"), module("public_names")

PAGES = sorted((ROOT / "docs").rglob("*.md"))
SYMBOLS = {
    "<=": "≤", ">=": "≥", "!=": "≠", "==": "=", "->": "→", "+-": "±", "...": "…", "..": "…", "||": "‖",
    "*": "∗", "~": "∝", "eps": "ε", "epsilon": "ε", "lam": "λ", "Lam": "Λ", "grad": "∇", "inf": "∞",
    "infinity": "∞", "sqrt": "√", "in": "∈", "union": "∪", "sum": "∑", "prod": "∏", "alpha": "α", "beta": "β",
    "gamma": "γ", "delta": "δ", "zeta": "ζ", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ",
    "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ",
    "chi": "χ", "psi": "ψ", "omega": "ω",
}  # fmt: skip
TOKEN = re.compile(
    r"\d+(?:\.\d+)?e-?\d+|<=|>=|!=|==|->|\+-|\.\.\.|\.\.|\|\||[A-Za-z]+|\d+(?:,\d{3})*(?:\.\d+)?|\S"
)
SAME = {"−": "-", "ϵ": "ε", "ϕ": "φ", "∣": "|", "∥": "‖", "⟨": "<", "⟩": ">", "′": "'", "⋯": "…",
        "·": "", "×": "", "⁡": "", "∕": "/", "…": "…", "*": "∗"}  # fmt: skip
"""Signs that differ by their form only, and those that a power of ten adds."""

OPERATORS = {"sum", "prod", "max", "min", "log", "exp", "sup"}
ENDS = {
    "+",
    "-",
    ",",
    ";",
    "=",
    "<",
    ">",
    "|",
    "<=",
    ">=",
    "!=",
    "==",
    "->",
    "/",
    "~",
    ".",
    "if",
    "for",
    "with",
}


def read_plain(formula: str) -> str:
    """Read the signs of a formula in plain notation, in order, without brackets and marks of indices."""
    found = []
    for token in TOKEN.findall(formula):
        number = re.fullmatch(r"(\d+(?:\.\d+)?)e(-?\d+)", token)
        if number:
            found.append(("" if number[1] == "1" else number[1]) + "10" + number[2])
        elif token not in "()[]{}^_/":
            found.append(SYMBOLS.get(token, token))
    return normalize("".join(found))


def read_set(element: ElementTree.Element) -> str:
    """Read the signs of a formula as it is set, in order."""
    return normalize(re.sub(r"[()\[\]{}/]", "", "".join(list_signs(element))))


def list_signs(element: ElementTree.Element) -> Iterator[str]:
    """List the signs of an element, a root for one that has no sign of its own."""
    if element.tag.endswith("msqrt"):
        yield "√"
    yield element.text or ""
    for part in element:
        yield from list_signs(part)
        yield part.tail or ""


def normalize(text: str) -> str:
    """Give signs one form, leave out what parts them, and put primes, which an index may precede, last."""
    signs = "".join(SAME.get(sign, sign) for sign in text if not sign.isspace() and sign != ",")
    return signs.replace("'", "") + "'" * signs.count("'")


def find_divisors(formula: str) -> list[str]:
    """Find what stands below each slash of a formula, by the rules of the notation.

    A bracket is divided by, or a factor with its indices and arguments; an operator takes all factors.
    """
    tokens = [(one.group(), one.start(), one.end()) for one in TOKEN.finditer(formula)]
    found = []
    for place, (token, _, _) in enumerate(tokens):
        if token == "/":
            first = place + 1
            last = end_of_factor(tokens, first)
            if tokens[first][0] in OPERATORS:
                while last < len(tokens) and tokens[last][0] not in {*ENDS, ")", "]", "}"}:
                    last = end_of_factor(tokens, last)
            found.append(read_plain(formula[tokens[first][1] : tokens[last - 1][2]]))
    return found


def end_of_factor(tokens: list[tuple[str, int, int]], place: int) -> int:
    """Find the end of a factor: a sign or a bracket, with what is joined to it without a gap."""
    end = end_of_group(tokens, place)
    while end < len(tokens) and tokens[end][1] == tokens[end - 1][2]:
        if tokens[end][0] in "([{'":
            end = end_of_group(tokens, end)
        elif tokens[end][0] in "^_":
            end = end_of_group(tokens, end + 1 + (tokens[end + 1][0] == "-"))
        else:
            break
    return end


def end_of_group(tokens: list[tuple[str, int, int]], place: int) -> int:
    """Find the end of a bracket, or of a sign that is none."""
    closing = {"(": ")", "[": "]", "{": "}"}.get(tokens[place][0])
    if tokens[place][0] == "|":
        closing = "|"
        return next(k for k in range(place + 1, len(tokens)) if tokens[k][0] == "|") + 1
    if tokens[place][0] == "<" and closing is None:
        return next(k for k in range(place + 1, len(tokens)) if tokens[k][0] == ">") + 1
    if closing is None:
        return place + 1
    depth = 0
    for k in range(place, len(tokens)):
        depth += (tokens[k][0] == tokens[place][0]) - (tokens[k][0] == closing)
        if depth == 0:
            return k + 1
    raise ValueError("a bracket is open")


def formulas_of(markdown: str) -> Iterator[tuple[str, ElementTree.Element]]:
    """List the formulas of a text: the plain notation of each, and what it became."""
    page = Markdown(extensions=["attr_list", "tables", mathematics.Mathematics()]).convert(markdown)
    for found in re.finditer(r'<math [^>]*?alttext="([^"]*)".*?</math>', page, re.DOTALL):
        plain = unescape(found[1])
        if "\\" not in plain:  # LaTeX is set as it stands
            yield plain, parse_set(found[0])


def parse_set(mathml: str) -> ElementTree.Element:
    """Parse a formula as it is set, whose entities XML does not know."""
    known = re.sub(r"&(?!#|amp;|lt;|gt;|quot;)(\w+);", lambda one: unescape(one[0]), mathml)
    return ElementTree.fromstring(known)


def wrong_formulas(markdown: str) -> list[str]:
    """List the formulas of a text that are not set as they are written."""
    read = (find_fault(plain, element) for plain, element in formulas_of(markdown))
    return [found for found in read if found is not None]


def find_fault(plain: str, element: ElementTree.Element) -> str | None:
    """Find how a formula differs from its plain notation: in a sign, or in what a line divides by."""
    if read_plain(plain) != read_set(element):
        return f"{plain} is set as {read_set(element)}"
    below = [read_set(one[1]) for one in element.iter() if one.tag.endswith("mfrac")]
    expected = find_divisors(plain)
    wrong = [one for one in below if one not in expected]
    return f"{plain} is divided by {wrong}, not {expected}" if wrong else None


def docstrings(path: str) -> str:
    """Join the docstrings of a module."""
    nodes = ast.walk(parse_file(public_names.file_of(path)))
    kinds = (ast.FunctionDef, ast.ClassDef)
    texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
    return "\n\n".join(re.sub(r"^ +", "", text, flags=re.MULTILINE) for text in texts)


def drop_code(text: str) -> str:
    """Drop the blocks of a page that are no formulas."""
    return re.sub(
        r"^ *```(\w*).*?^ *```$",
        lambda block: block[0] if block[1] == "math" else "",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_each_formula_of_a_page_is_set_as_it_is_written(page: Path) -> None:
    assert wrong_formulas(drop_code(page.read_text("utf-8"))) == []


def test_each_formula_of_a_generated_page_is_set_as_it_is_written() -> None:
    pages = module("evidence").evidence_pages()
    assert [found for text in pages.values() for found in wrong_formulas(text)] == []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give the test of the reference its modules, which take a second to find, where it is asked for."""
    if "path" in metafunc.fixturenames:
        metafunc.parametrize("path", sorted({one.path for one in public_names.modules()}))


def test_each_formula_of_the_reference_is_set_as_it_is_written(path: str) -> None:
    assert wrong_formulas(drop_code(docstrings(path))) == []


def test_there_are_many_formulas() -> None:
    page = drop_code((ROOT / "docs" / "results.md").read_text("utf-8"))
    found = list(formulas_of(page))
    assert len(found) > 400
    assert sum(element.get("display") == "block" for _, element in found) > 20


@pytest.mark.parametrize(
    ("plain", "wrong"),
    [
        ("a / sum_z p(z) q(z)", r"\frac{a}{\sum_z} p(z) q(z)"),
        ("M / min_w [w + 1]", r"\frac{M}{\min_w} [w + 1]"),
        ("a / (b + c)", r"\frac{a}{b} + c"), ("x <= y", "x < y"), ("P[x,y] q[y]", "P_{x} q_{y}"),
        ("e^-eps", r"e^{\varepsilon}"), ("sum_x p[x]", r"\sum_x p_y"),
    ],
)  # fmt: skip
def test_a_formula_that_is_set_wrongly_is_found(plain: str, wrong: str) -> None:
    assert find_fault(plain, parse_set(mathematics.mathml(plain, display=True))) is None
    assert find_fault(plain, parse_set(convert(wrong, display="block"))) is not None
