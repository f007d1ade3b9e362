"""The check of quotes against a reading of the text, character by character, however it is cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt.data.tables.streams import QuoteCheck


def is_usual(text: str) -> bool:
    """Whether each quote opens a cell, closes it or is doubled inside, by a walk through the text."""
    inside, k = False, 0
    while k < len(text):
        before, after = (text[k - 1] if k else "\n"), text[k + 1 : k + 2]
        if text[k] == '"' and not inside:
            if before not in ",\n\r":
                return False
            inside = True
        elif text[k] == '"' and after == '"':
            k += 1
        elif text[k] == '"':
            if after not in ("", ",", "\n", "\r"):
                return False
            inside = False
        k += 1
    return not inside


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from('a",\n\r'), max_size=12), st.lists(st.integers(0, 12), max_size=3))
def test_quotes_are_judged_as_by_a_walk(text: str, cuts: list[int]) -> None:
    check = QuoteCheck(",")
    ends = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    for start, end in pairwise(ends):
        check.feed(text[start:end].encode())
    check.feed(b"")
    assert check.unusual is not is_usual(text)
