"""Tables of estimates with the digits that their standard errors leave."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from pmlopt.core.display import import_pandas
from pmlopt.core.numbers.arrays import FloatArray, Label, join_words


def format_estimates(
    letters: Sequence[Label],
    columns: Mapping[str, FloatArray],
    errors: FloatArray,
    units: bool = False,
) -> tuple[list[str], list[list[str]]]:
    """Format the head and the rows of a table of estimates.

    Columns named "lower" and "upper" are ends of intervals, and are rounded outwards. Shares of information
    and degrees of freedom have no unit: they have two decimals.

    Args:
        letters: K names of rows.
        columns: (K,) numbers by their name.
        errors: (K,) standard errors, which decide how many digits are shown.
        units: whether each row has a unit of its own, and decimals of its own.

    Examples:
        >>> ends = {"estimate": [0.4016], "lower": [0.3804], "upper": [0.4231]}
        >>> format_estimates(["never"], ends, [0.011])
        (['value', 'estimate', 'from', 'to'], [['never', '0.402', '0.380', '0.424']])
    """
    digits = [choose_decimals([one] if units else errors) for one in errors]
    plain = dict.fromkeys(("information", "degrees", "missing"), 2)
    sides = {"lower": ROUND_FLOOR, "upper": ROUND_CEILING}
    head = ["value", *map(name_column, columns)]
    rows = [
        [
            format_label(label),
            *(
                round_decimal(column[k], plain.get(name, digits[k]), sides.get(name))
                for name, column in columns.items()
            ),
        ]
        for k, label in enumerate(letters)
    ]
    return head, rows


def make_estimates_frame(names: Sequence[Label], columns: Mapping[str, FloatArray]) -> Any:
    """Make a pandas frame of estimates, with their names as its index.

    Raises:
        MissingExtraError: pandas is not installed.

    Examples:
        >>> make_estimates_frame([("b", "age")], {"standard_error": [0.5]}).index.tolist()
        [('b', 'age')]
    """
    pandas = import_pandas()
    titled = {name_column(name): column for name, column in columns.items()}
    return pandas.DataFrame(titled, index=pandas.Index(list(names), tupleize_cols=False))


def format_label(label: Label) -> str:
    r"""Format a letter or an output: the parts of a tuple with commas, a missing cell as two quotes.

    Examples:
        >>> format_label("a"), format_label(("a", 3)), format_label(("", "f")), format_label("a\n")
        ('a', 'a, 3', "'', f", 'a\\n')
    """
    parts = label if isinstance(label, tuple) else (label,)
    return ", ".join(
        format_label(part) if isinstance(part, tuple) else join_words([part]) for part in parts
    )


def name_column(name: str) -> str:
    """Return the title of a column of estimates.

    Examples:
        >>> name_column("standard_error"), name_column("lower")
        ('standard error', 'from')
    """
    return {"lower": "from", "upper": "to"}.get(name, name.replace("_", " "))


def choose_decimals(errors: Iterable[float]) -> int:
    """Choose the decimals of estimates: two digits of the smallest standard error, at most nine.

    Examples:
        >>> choose_decimals([0.0083, 0.031]), choose_decimals([1.2, 0.0]), choose_decimals([1e-8, 0.3])
        (4, 1, 9)
    """
    # what is below is a solver's noise, where a share is 0 or 1
    smallest = min((float(error) for error in errors if 1e-9 < error < math.inf), default=1e-3)
    return min(max(1 - math.floor(math.log10(smallest)), 0), 9)


def round_decimal(value: float, decimals: int, side: str | None = None) -> str:
    """Round a number to some decimals: to the nearest, or to one side.

    Examples:
        >>> round_decimal(0.19046, 3), round_decimal(0.19046, 3, ROUND_CEILING), round_decimal(-1e-12, 2)
        ('0.190', '0.191', '0.00')
    """
    if not math.isfinite(value):
        return f"{value:g}"
    # a number that a float misses by its last digits stays where it is
    written = Decimal(repr(round(float(value), 9) + 0.0))
    found = written.quantize(Decimal(1).scaleb(-decimals), side or ROUND_HALF_EVEN)
    return f"{found + 0:f}"
