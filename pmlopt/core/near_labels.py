"""Nearly equal labels: differences in spaces, case, Unicode or number format only."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from pmlopt.core.lazy_imports import unicodedata
from pmlopt.core.numbers.arrays import Label
from pmlopt.errors import LabelWarning

MISSING_WORDS = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "NULL", "None"})
"""What programs write for a missing cell; `NA` is what R writes."""


def describe_difference(labels: Iterable[Label], others: Iterable[Label]) -> str:
    """Describe the first label that another differs from only in spelling; empty without one.

    Examples:
        >>> describe_difference(["mid", " low"], ("low", "mid"))
        "; ' low' and 'low' differ by spaces only"
    """
    known: dict[str, list[str]] = {}
    for other in others:
        if isinstance(other, str):
            known.setdefault(_normalize_text(other), []).append(other)
    for label in labels:
        near = known.get(_normalize_text(label), []) if isinstance(label, str) else []
        if label not in near and near:
            return f"; {_describe_pair(str(label), near[0])}"
    return ""


def describe_near_labels(labels: Sequence[Label]) -> list[str]:
    """Describe suspicious labels: near-duplicates, and words for missing values.

    Examples:
        >>> describe_near_labels(["basic", " basic", "pro"])
        ["'basic' and ' basic' differ by spaces only"]
        >>> describe_near_labels(["f", "m "])
        ["'m ' begins or ends with a space"]
        >>> describe_near_labels(["a", "NA"])
        ["'NA' may stand for a missing cell"]
    """
    # The number of pairs that a warning names.
    max_pairs = 3
    labels = list(dict.fromkeys(labels))
    texts = [label for label in labels if isinstance(label, str)]
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(_normalize_text(text), []).append(text)
    pairs = [pair for group in groups.values() if len(group) > 1 for pair in pairwise(group)]
    found = [_describe_pair(one, other) for one, other in pairs[:max_pairs]]
    if len(pairs) > max_pairs:
        found.append(f"{len(pairs) - max_pairs} more pairs of labels differ so")
    outer = [
        group[0] for group in groups.values() if len(group) == 1 and group[0] != group[0].strip()
    ]
    found.extend(f"{text!r} begins or ends with a space" for text in outer[:max_pairs])
    missing = [text for text in texts if text.strip() in MISSING_WORDS]
    if missing and len(texts) == len(labels):
        words = ", ".join(map(repr, missing))
        found.append(f"{words} may stand for a missing cell")
    return found


def warn_of_near_labels(labels: Sequence[Label], where: object) -> None:
    """Warn of near-duplicate labels and words for missing cells.

    Args:
        labels: distinct ones.
        where: they were read, for the message.
    """
    if found := describe_near_labels(labels):
        text = "; ".join(found)
        warnings.warn(
            f"{where}: {text}. Each is a separate letter: correct the data if it should not be",
            LabelWarning,
            stacklevel=3,
        )


def _describe_pair(one: str, other: str) -> str:
    """Describe two near-duplicate labels, escaping look-alike letters."""
    difference = _describe_text_difference(one, other)
    shown = ascii if difference == "Unicode form" else repr
    return f"{shown(one)} and {shown(other)} differ by {difference} only"


def _normalize_text(text: str) -> str:
    """Normalize a text for comparison regardless of spelling variants."""
    plain = " ".join(unicodedata.normalize("NFKC", text).split()).casefold()
    try:
        number = Decimal(plain) if "_" not in plain else None
    except InvalidOperation:
        return plain
    # as a fraction of digits and a power of ten, exactly: ids of 20 digits are no near labels
    return plain if number is None or not number.is_finite() else str(_split_number(number))


def _split_number(number: Decimal) -> tuple[int, str, int]:
    """Split a number into sign, significant digits and exponent."""
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    return (sign, short, int(exponent) + len(text) - len(short)) if short else (0, "", 0)


def _describe_text_difference(one: str, other: str) -> str:
    """Describe how two spelling variants differ."""
    if "".join(one.split()) == "".join(other.split()):
        return "spaces"
    one = " ".join(one.split())
    other = " ".join(other.split())
    if one.casefold() == other.casefold():
        return "case"
    one = unicodedata.normalize("NFKC", one).casefold()
    other = unicodedata.normalize("NFKC", other).casefold()
    return "Unicode form" if one == other else "number format"
