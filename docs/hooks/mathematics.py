"""Formulas as MathML, set when the site is built: browsers show it without scripts, fonts or a network.

These are formulas: what stands between dollars, a fenced block `math`, code in a line that is in the plain
notation and cannot be taken for code (`notation.is_formula`), and in a sentence a relation (`IN_PROSE`) or a
letter with an index or a power (`TERM_IN_PROSE`). A formula with a backslash is LaTeX, any other is in plain
notation, so that a docstring reads the same in a terminal. In an attribute, as the text of an image, a
formula stays as it was written. mkdocs hands pages and docstrings alike to the extension of Markdown that
`on_config` adds.
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
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor
from markdown.util import HTML_PLACEHOLDER_RE, STX
from notation import IN_PROSE, TERM_IN_PROSE, NotationError, is_formula, latex

DOLLARS = r"(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<![\s\\])\$(?![\w$])"
CODE = r"(?<![\\`])`([^`]+)`(?!`)"
LONG = 36
"""Characters of a formula that scrolls on a narrow page."""

SUBJECT = "subject to"
OBJECTIVE = re.compile(r"(\S.*?\b(?:min|max)\b(?: over \w+ of)?) +(.*)")
"""Up to the objective, and the objective."""

TAIL = re.compile(r"[.,;:?)]+|-\w+")
"""What stays on the line of the formula before it."""

TAG = re.compile(r"<[A-Za-z][^<>]*>")
STORED = re.compile(
    r"\\?" + HTML_PLACEHOLDER_RE.pattern
)  # in a tag of the source it has a backslash

FENCE = re.compile(
    r"^(?P<indent> *)```math\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


def mathml(formula: str, display: bool = False) -> str:
    """MathML of a formula, in LaTeX where it has a backslash.

    Raises:
        NotationError: brackets do not match.
    """
    source = formula.strip() if "\\" in formula else latex(formula, display)
    found = convert(source, display="block" if display else "inline")
    found = re.sub(r"<mi>(&#x027E[89];)</mi>", r'<mo stretchy="false">\1</mo>', found)
    text = escape(" ".join(formula.split()))
    return str(found).replace(
        ' xmlns="http://www.w3.org/1998/Math/MathML"', f' alttext="{text}"', 1
    )


def inline(formula: str, tail: str = "") -> str:
    """A formula in a line of text, in one piece with the punctuation behind it.

    Raises:
        NotationError: brackets do not match.
    """
    found = mathml(formula) + escape(tail)
    if len(formula) >= LONG:
        return f'<span class="long">{found}</span>'
    return f'<span class="piece">{found}</span>' if tail else found


def displayed(text: str) -> str:
    """A block of formulas, a line each, or a program, where a line starts with `subject to`."""
    lines = [line for line in text.strip("\n").splitlines() if line.strip()]
    if any(line.startswith(SUBJECT) for line in lines):
        rows = "".join(
            f"<div>{word}</div><div>{line}</div>" for word, line in map(split_row, lines)
        )
        return f'<div class="formula program">{rows}</div>'
    rows = "".join(f"<div>{mathml(line, display=True)}</div>" for line in lines)
    return f'<div class="formula">{rows}</div>'


def split_row(line: str) -> tuple[str, str]:
    """Split a line of a program into what stands on the left, `subject to` or up to `max`, and the rest."""
    if line.startswith(SUBJECT):
        return SUBJECT, mathml(line.removeprefix(SUBJECT), display=True)
    found = OBJECTIVE.match(line)
    left = "" if found is None else mathml(found[1], display=True)
    return left, mathml(line if found is None else found[2], display=True)


class Blocks(Preprocessor):
    """Fenced blocks `math`."""

    def run(self, lines: list[str]) -> list[str]:
        """Set each block."""

        def put(found: re.Match[str]) -> str:
            stored: str = self.md.htmlStash.store(displayed(found["text"]))
            return f"\n{found['indent']}{stored}\n"

        return FENCE.sub(put, "\n".join(lines)).split("\n")


class Formulas(InlineProcessor):
    """Formulas in a line; what cannot be set stays as it is."""

    def handleMatch(
        self, found: re.Match[str], data: str
    ) -> tuple[Element | str | None, int | None, int | None]:
        """Set it."""
        start, end, formula = self.place(found)
        behind = TAIL.match(data, end)
        tail = behind[0] if behind else ""
        try:
            return self.md.htmlStash.store(inline(formula, tail)), start, end + len(tail)
        except NotationError:
            return None, None, None

    def place(self, found: re.Match[str]) -> tuple[int, int, str]:
        """Where it starts and ends, and what it is: all of it, as `<p, v>`, which would be a tag."""
        return found.start(0), found.end(0), found[0]


class Dollars(Formulas):
    """`$...$` in a line."""

    def place(self, found: re.Match[str]) -> tuple[int, int, str]:
        """What is between the dollars."""
        return found.start(0), found.end(0), found[1]


class FormulaCode(Formulas):
    """Code in a line that is a formula."""

    def handleMatch(
        self, found: re.Match[str], data: str
    ) -> tuple[Element | str | None, int | None, int | None]:
        """Set it, or leave it to the pattern for code."""
        return (
            super().handleMatch(found, data)
            if is_formula(self.place(found)[2])
            else (None, None, None)
        )

    def place(self, found: re.Match[str]) -> tuple[int, int, str]:
        """What is between the backticks."""
        return found.start(0), found.end(0), " ".join(found[1].split())


class FormulaInProse(Formulas):
    """A relation in a sentence."""

    def place(self, found: re.Match[str]) -> tuple[int, int, str]:
        """The relation, without a shape before it and a word in brackets behind."""
        shape = re.match(
            r"\([A-Z]+,[A-Z ]*\) ", found[0]
        )  # "(N, M) lambda >= 0" says a shape first
        skipped = len(shape[0]) if shape else 0
        text = re.sub(r" \((?:[a-z]{2,}|a) .*$", "", found[0][skipped:])  # "(or free)" ends it
        start = found.start(0) + skipped
        return start, start + len(text), text


class TermInProse(Formulas):
    """A letter with an index or a power in a sentence; titles stay text, for menus and the search."""

    ANCESTOR_EXCLUDES = ("h1", "h2", "h3", "h4", "h5", "h6")


class Attributes(Postprocessor):
    """Formulas in attributes of tags, where elements would end them: as they were written."""

    def __init__(self, md: Markdown) -> None:
        super().__init__(md)
        self.seen: dict[int, str] = {}

    def run(self, text: str) -> str:
        """Put the texts into tags of the page and into those that stood in the source."""
        blocks = self.md.htmlStash.rawHtmlBlocks

        def written(stored: re.Match[str]) -> str:
            formula = str(blocks[int(stored[1])])
            alone = re.sub(r'<math[^>]* alttext="([^"]*)".*?</math>', r"\1", formula)
            return re.sub(r"<[^<>]*>", "", alone)

        def plain(tag: re.Match[str]) -> str:
            return STORED.sub(written, tag[0])

        # called for each heading, too, with the blocks of the whole page: each is looked at once
        for place, block in enumerate(blocks):
            if isinstance(block, str) and self.seen.get(place) is not block:
                blocks[place] = self.seen[place] = TAG.sub(plain, block) if STX in block else block
        return TAG.sub(plain, text)


class Mathematics(Extension):
    """The kinds of formulas, for Python-Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Put each before what would take it for something else."""
        md.preprocessors.register(Blocks(md), "math_blocks", 30)  # before fenced code, 25
        md.inlinePatterns.register(FormulaCode(CODE, md), "formula_code", 195)  # before code, 190
        md.inlinePatterns.register(
            Formulas(r"<[A-Za-z][\w' ]*, [^<>\n]+>", md), "inner_products", 125
        )
        md.inlinePatterns.register(Dollars(DOLLARS, md), "dollars", 185)
        md.inlinePatterns.register(FormulaInProse(IN_PROSE, md), "formula_in_prose", 184)
        md.inlinePatterns.register(TermInProse(TERM_IN_PROSE, md), "term_in_prose", 183)
        md.postprocessors.register(Attributes(md), "attributes", 35)  # before raw_html, 30


def on_config(config: Any) -> Any:
    """Add the extension; called by mkdocs."""
    config["markdown_extensions"].append(Mathematics())
    return config
