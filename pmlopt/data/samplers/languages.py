"""The languages of samplers: how each writes comments, text and lists of numbers."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pmlopt.core.suggestions import did_you_mean
from pmlopt.errors import InputError

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;!()=+-")
"""Characters that mean themselves within quotes in every language, and end no comment."""


def _escape(text: str, escape: Callable[[str], str], quote: str = '"') -> str:
    """Write text within quotes, each character outside of the plain ones by an escape."""
    return quote + "".join(one if one in _PLAIN else escape(one) for one in text) + quote


def quote_by_units(text: str) -> str:
    r"""Write text by UTF-16 units, as JavaScript, TypeScript, Kotlin and Python's JSON read them.

    Examples:
        >>> print(quote_by_units("</script>$é"))
        "\u003c\u002fscript\u003e\u0024\u00e9"
    """

    def escape(one: str) -> str:
        units = one.encode("utf-16-be").hex()
        return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))

    return _escape(text, escape)


def quote_by_points(text: str) -> str:
    r"""Write text by code points in braces, as Rust and Swift read them.

    Examples:
        >>> print(quote_by_points('a"'))
        "a\u{22}"
    """
    return _escape(text, lambda one: f"\\u{{{ord(one):x}}}")


def quote_by_bytes(text: str) -> str:
    r"""Write text by bytes of UTF-8 in octal, three digits each, as C reads them.

    Examples:
        >>> print(quote_by_bytes("é?"))
        "\303\251\077"
    """
    return _escape(text, lambda one: "".join(f"\\{byte:03o}" for byte in one.encode()))


def quote_for_python(text: str) -> str:
    r"""Write text by code points of eight digits, as Python and R read them.

    Examples:
        >>> print(quote_for_python("é"))
        "\U000000e9"
    """
    return _escape(text, lambda one: f"\\U{ord(one):08x}")


def quote_for_sql(text: str) -> str:
    r"""Write text as PostgreSQL reads it whatever `standard_conforming_strings` is.

    Examples:
        >>> print(quote_for_sql("O'Hara"))
        E'O\U00000027Hara'
    """
    return "E" + _escape(text, lambda one: f"\\U{ord(one):08x}", "'")


_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,15}")


def write_numbers_for_r(texts: Iterable[str]) -> str:
    """Write the numbers whose shortest digits some texts are, NA for other texts, as a vector of R.

    R prints fewer digits than a number has, and reads some digits as a neighbour: so all bits are written.

    Examples:
        >>> print(write_numbers_for_r(["yes", "0.3", "5", "5.0"]))
        c(
          NA,
          0x1.3333333333333p-2,
          0x1.4000000000000p+2,
          NA
        )
    """
    numbers = map(_read_number, texts)
    inner = ",\n".join("  NA" if number is None else f"  {number.hex()}" for number in numbers)
    return f"c(\n{inner}\n)"


def _read_number(text: str) -> float | None:
    """Return the number whose shortest digits a text is, None where floats may have rounded it to that."""
    if _WHOLE.fullmatch(text):
        return float(text) if abs(int(text)) < 2**53 else None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if repr(number) == text and math.isfinite(number) and number % 1 else None


@dataclass(frozen=True)
class Language:
    """How source code of a language is written.

    Attributes:
        name: as `--to` takes it; that of the template.
        ending: of its files.
        comment: what begins a comment that ends with the line.
        quote: writes text.
        text_list: around a list of texts, with `{}` for what is within.
        row: around the thresholds of one letter.
        rows: around the rows.
    """

    name: str
    ending: str
    comment: str
    quote: Callable[[str], str]
    text_list: str
    row: str
    rows: str

    def write_texts(self, texts: Iterable[str]) -> str:
        """Write a list of texts, one in a line."""
        inner = ",\n".join(f"  {self.quote(text)}" for text in texts)
        return self.text_list.format("\n" + inner + "\n")

    def write_rows(self, rows: Sequence[Sequence[int | float]]) -> str:
        """Write a table of numbers, a row in a line."""
        inner = ",\n".join("  " + self.row.format(", ".join(map(repr, row))) for row in rows)
        return self.rows.format("\n" + inner + "\n")


LANGUAGES = {
    one.name: one
    for one in (
        Language("js", ".js", "//", quote_by_units, "[{}]", "[{}]", "[{}]"),
        Language("mjs", ".mjs", "//", quote_by_units, "[{}]", "[{}]", "[{}]"),
        Language("ts", ".ts", "//", quote_by_units, "[{}]", "[{}]", "[{}]"),
        Language("c", ".c", "//", quote_by_bytes, "{{{}}}", "{{{}}}", "{{{}}}"),
        Language("rust", ".rs", "//", quote_by_points, "[{}]", "[{}]", "[{}]"),
        Language("kotlin", ".kt", "//", quote_by_units, "arrayOf({})", '"{}"', "arrayOf({})"),
        Language("swift", ".swift", "//", quote_by_points, "[{}]", "[{}]", "[{}]"),
        Language("r", ".R", "#", quote_for_python, "c({})", "c({})", "list({})"),
        Language("sql", ".sql", "--", quote_for_sql, "ARRAY[{}]", "'{{{}}}'", "ARRAY[{}]"),
        Language("python", ".py", "#", quote_for_python, "[{}]", "[{}]", "[{}]"),
    )
}
"""The languages by name; a new one is a line here and a template."""

_SQL_WITHOUT_GENERATOR = (
    "has no documented generator for cryptography: use PostgreSQL (sql), whose pgcrypto has "
    "gen_random_bytes, or release outside of the database"
)
REFUSED = {"duckdb": _SQL_WITHOUT_GENERATOR, "sqlite": _SQL_WITHOUT_GENERATOR}
"""Languages in which nothing is written, each with the reason."""

WORKBOOKS = ("spreadsheet", "xlsform")
"""What is written as a workbook (.xlsx) in place of source code."""

OTHER_NAMES = {
    "excel": "spreadsheet",
    "libreoffice": "spreadsheet",
    "odk": "xlsform",
    "kobo": "xlsform",
    "javascript": "js",
    "esm": "mjs",
    "typescript": "ts",
    "rs": "rust",
    "kt": "kotlin",
    "py": "python",
    "postgresql": "sql",
    "postgres": "sql",
}


def find_language(name: str | None, path: str | os.PathLike[str] = "") -> Language:
    """Find a language by its name, or else by the ending of a file.

    Raises:
        InputError: it is not known, or nothing is written in it; the message states why.

    Examples:
        >>> find_language(None, "answer.rs").name
        'rust'
    """
    if name is None:
        ending = Path(path).suffix
        found = [one for one in LANGUAGES.values() if one.ending.lower() == ending.lower()]
        if not found:
            endings = ", ".join(one.ending for one in LANGUAGES.values())
            raise InputError(
                f"{path}: the ending {ending!r} names no language: use one of {endings}, or name the "
                f"language; {' or '.join(WORKBOOKS)} is written as .xlsx"
            )
        return found[0]
    key = resolve_name(name)
    if key in REFUSED:
        raise InputError(f"{name} {REFUSED[key]}")
    if key == "js" and Path(path).suffix.lower() == ".mjs":
        return LANGUAGES["mjs"]  # engines read this ending as a module, whatever is in the file
    if key not in LANGUAGES:
        known = (*LANGUAGES, *WORKBOOKS)
        raise InputError(
            f"the language {name!r} is not known here: "
            + did_you_mean(name, known, f"use one of {', '.join(known)}")
        )
    return LANGUAGES[key]


def resolve_name(name: str) -> str:
    """Return the name of a language as `--to` lists it.

    Examples:
        >>> resolve_name("ODK")
        'xlsform'
    """
    return OTHER_NAMES.get(name.lower(), name.lower())
