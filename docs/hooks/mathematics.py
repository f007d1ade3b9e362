"""Formulas as MathML, set when the site is built: browsers show it without scripts, fonts or a network.

These are formulas: what stands between dollars, a fenced block `math`, code in a line that is in the plain
notation and cannot be taken for code (`notation.is_formula`), and a relation in a sentence (`IN_PROSE`). A
formula with a backslash is LaTeX, any other is in plain notation, so that a docstring reads the same in a
terminal. mkdocs hands pages and docstrings alike to the extension of Markdown that `on_config` adds.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor
from notation import IN_PROSE, NotationError, is_formula, latex

DOLLARS = r"(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<![\s\\])\$(?![\w$])"
CODE = r"(?<![\\`])`([^`]+)`(?!`)"
LONG = 36
"""Characters of a formula that scrolls on a narrow page."""

FENCE = re.compile(r"^(?P<indent> *)```math\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


def mathml(formula: str, display: bool = False) -> str:
    """MathML of a formula, in LaTeX where it has a backslash.

    Raises:
        NotationError: brackets do not match.
    """
    source = formula.strip() if "\\" in formula else latex(formula, display)
    found = convert(source, display="block" if display else "inline")
    found = re.sub(r"<mi>(&#x027E[89];)</mi>", r'<mo stretchy="false">\1</mo>', found)
    text = escape(" ".join(formula.split()))
    found = str(found).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', f' alttext="{text}"', 1)
    return found if display or len(formula) < LONG else f'<span class="long">{found}</span>'


def displayed(text: str) -> str:
    """A block of formulas, a line each."""
    lines = [mathml(line, display=True) for line in text.strip("\n").splitlines() if line.strip()]
    rows = "".join(f"<div>{line}</div>" for line in lines)
    return f'<div class="formula">{rows}</div>'


class Blocks(Preprocessor):
    """Fenced blocks `math`."""

    def run(self, lines: list[str]) -> list[str]:
        """Set each block."""

        def put(found: re.Match[str]) -> str:
            stored: str = self.md.htmlStash.store(displayed(found["text"]))
            return f"\n{found['indent']}{stored}\n"

        return FENCE.sub(put, "\n".join(lines)).split("\n")


class Dollars(InlineProcessor):
    """`$...$` in a line."""

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:
        """Set it."""
        return self.md.htmlStash.store(mathml(found[1])), found.start(0), found.end(0)


class InnerProducts(InlineProcessor):
    """`<p, v>` outside code, which would be a tag."""

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:
        """Set it."""
        return self.md.htmlStash.store(mathml(found[0])), found.start(0), found.end(0)


class FormulaCode(InlineProcessor):
    """Code in a line that is a formula; what cannot be set stays code."""

    def handleMatch(
        self, found: re.Match[str], _: str
    ) -> tuple[Element | str | None, int | None, int | None]:
        """Set it, or leave it to the pattern for code."""
        text = " ".join(found[1].split())
        if not is_formula(text):
            return None, None, None
        try:
            return self.md.htmlStash.store(mathml(text)), found.start(0), found.end(0)
        except NotationError:
            return None, None, None


class FormulaInProse(InlineProcessor):
    """A relation in a sentence; what cannot be set stays as it is."""

    def handleMatch(
        self, found: re.Match[str], _: str
    ) -> tuple[Element | str | None, int | None, int | None]:
        """Set it."""
        shape = re.match(r"\([A-Z]+,[A-Z ]*\) ", found[0])  # "(N, M) lambda >= 0" says a shape first
        skipped = len(shape[0]) if shape else 0
        text = re.sub(r" \((?:[a-z]{2,}|a) .*$", "", found[0][skipped:])  # "(or free)" ends it
        start = found.start(0) + skipped
        try:
            return self.md.htmlStash.store(mathml(text)), start, start + len(text)
        except NotationError:
            return None, None, None


class Mathematics(Extension):
    """The three kinds of formulas, for Python-Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Put each before what would take it for something else."""
        md.preprocessors.register(Blocks(md), "math_blocks", 30)  # before fenced code, 25
        md.inlinePatterns.register(FormulaCode(CODE, md), "formula_code", 195)  # before code, 190
        md.inlinePatterns.register(InnerProducts(r"<[A-Za-z][\w' ]*, [^<>\n]+>", md), "inner_products", 125)
        md.inlinePatterns.register(Dollars(DOLLARS, md), "dollars", 185)
        md.inlinePatterns.register(FormulaInProse(IN_PROSE, md), "formula_in_prose", 184)


def on_config(config: Any) -> Any:
    """Add the extension; called by mkdocs."""
    config["markdown_extensions"].append(Mathematics())
    return config
