"""Pictures of bars: lengths in one scale, the limit on it, and nothing outside of the picture."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from pmlopt.programs.reports.pages import (
    MAX_NAME_LENGTH,
    NAME_WIDTH,
    NUMBER_WIDTH,
    PICTURE_WIDTH,
    draw_bars_svg,
)

ROWS = [("first", 1.5), ("a name of more than twenty letters", 0.5), ("none", 0.0)]


@pytest.mark.parametrize("limit", [None, 0.75, 3.0])
def test_lengths_and_the_limit_are_in_one_scale(limit: float | None) -> None:
    picture = ElementTree.fromstring(draw_bars_svg("two", ROWS, limit, "first"))
    bars = [dict(bar.attrib) for bar in picture.iter("rect")]
    unit = (PICTURE_WIDTH - NAME_WIDTH - NUMBER_WIDTH) / max(1.5, limit or 0.0)
    for bar, (_, value) in zip(bars, ROWS, strict=True):
        assert float(bar["x"]) == NAME_WIDTH
        assert float(bar["width"]) == pytest.approx(max(1.0, value * unit), abs=0.06)
    assert [bar["class"] for bar in bars] == ["bar mark", "bar", "bar"]
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    assert width == PICTURE_WIDTH
    tops = [float(bar["y"]) for bar in bars]
    assert tops[0] >= 0
    assert all(after - before >= 18 for before, after in pairwise(tops))
    assert tops[-1] + float(bars[-1]["height"]) <= height
    texts = [(text.attrib, "".join(text.itertext())) for text in picture.iter("text")]
    for attributes, _ in texts:
        assert 0 <= float(attributes["x"]) <= PICTURE_WIDTH
        assert 0 <= float(attributes["y"]) <= height
    names = [attributes for attributes, _ in texts if attributes.get("text-anchor") == "end"]
    numbers = [at for at, words in texts if words in ("1.5", "0.5", "0")]
    for bar, name, number in zip(
        bars, names, numbers, strict=True
    ):  # on one line, left and right of the bar
        assert float(name["x"]) < NAME_WIDTH
        assert float(number["x"]) > NAME_WIDTH + float(bar["width"])
        for text in (name, number):
            assert float(bar["y"]) < float(text["y"]) < float(bar["y"]) + float(bar["height"])
    lines = [*picture.iter("line")]
    assert len(lines) == (limit is not None)
    if limit is not None:
        [line] = (dict(one.attrib) for one in lines)
        assert (
            float(line["x1"])
            == float(line["x2"])
            == pytest.approx(NAME_WIDTH + limit * unit, abs=0.06)
        )
        assert tops[-1] + 18 < float(line["y2"]) <= height
        [words] = [attributes for attributes, words in texts if words.startswith("limit")]
        assert float(words["y"]) > float(line["y2"])


def test_long_names_are_cut_and_kept_in_full_where_one_points_at_them() -> None:
    picture = draw_bars_svg("two", ROWS)
    assert f">{ROWS[1][0][: MAX_NAME_LENGTH - 1]}…<" in picture
    assert f"<title>{ROWS[1][0]}</title>" in picture
