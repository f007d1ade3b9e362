"""Options with numbers, whose errors explain decimal commas and separators between thousands."""

from __future__ import annotations

import re
from typing import Any

import click


class NumberOption(click.Option):
    """An option that tells how to write a number with a comma."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert the text of the option; the error for a number with commas has the number to write."""
        try:
            return super().type_cast_value(ctx, value)
        except click.BadParameter as error:
            texts = map(str, value if self.multiple else (value,))
            is_whole = "integer" in error.message
            hints = (explain_commas(text, is_whole) for text in texts)
            message = error.message + next(filter(None, hints), "")
            raise click.BadParameter(message, ctx=error.ctx, param=error.param) from None


def explain_commas(text: str, is_whole: bool = False) -> str:
    """Return how to write a number with commas; empty for other texts.

    Args:
        text: of the option.
        is_whole: whether the option takes whole numbers only.

    Examples:
        >>> explain_commas("1,4"), explain_commas("45,000,000"), explain_commas("1,000", True)
        (' Write 1.4.', ' Write 45000000.', ' Write 1000.')
        >>> explain_commas("1,000"), explain_commas("a,b")
        (' Write 1.000 or 1000, whichever is meant.', '')
    """
    plain, point = text.strip().replace(",", ""), text.strip().replace(",", ".")
    if not is_whole and re.fullmatch(r"[+-]?\d{1,3},\d{3}", text.strip()):
        return f" Write {point} or {plain}, whichever is meant."
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", text.strip()):
        return f" Write {plain}."
    if not is_whole and re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", text.strip()):
        return f" Write {point}."
    return ""
