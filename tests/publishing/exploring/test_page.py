"""The page: one file within its size, that loads nothing, on which labels are text."""

from __future__ import annotations

import base64
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import Mechanism, Prior, explore
from pmlopt.errors import FileFormatError, MissingExtraError
from pmlopt.publishing.exploring import Curve, Exploration, Part, Point, exploration

pytest.importorskip("vl_convert")


def data_of(page: str) -> Any:
    """The data of a page, as its script reads them."""
    found = re.search(r"<script type='application/json' id='data'>(.*?)</script>", page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def noisy(letters: int, count: int) -> Exploration:
    """Points whose matrices have no zeros: the largest that a page can have."""
    rng = np.random.default_rng(0)
    prior = Prior(rng.dirichlet(np.ones(letters)), [f"letter {k}" for k in range(letters)])
    mechanisms = [Mechanism(rng.dirichlet(np.ones(letters), letters), prior.labels) for _ in range(count)]
    points = [Point(float(k), 1.0, parts=(Part.of("", one, prior),)) for k, one in enumerate(mechanisms)]
    return Exploration("t", "a", "h", tuple(Curve(f"c{k}", tuple(points[k::3])) for k in range(3)))


def test_sixteen_letters_and_forty_levels_of_three_requirements_are_within_their_size() -> None:
    assert len(noisy(16, 120).html.encode()) <= 1_500_000


def test_of_too_many_entries_some_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "MOST_ENTRIES", 16 * 16 * 4)
    kept = [p["parts"][0]["matrix"] for c in data_of(noisy(16, 12).html)["curves"] for p in c["points"]]
    assert 0 < sum(matrix is not None for matrix in kept) <= 6
    assert "left out" in noisy(16, 1).html


def test_the_largest_budget_is_within_six_megabytes() -> None:
    whole = len(base64.b64encode(bytes(4 * exploration.MOST_ENTRIES)))
    assert whole + len(exploration.vega()) < 5_500_000


def test_labels_stay_text() -> None:
    labels = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"&amp;", "a\nb"]
    found = explore(Prior([0.4, 0.3, 0.2, 0.1], labels), "hamming", epsilon=[0.3], title=labels[1])
    shared = data_of(found.html)["shared"]
    assert [*labels[:3], "a\\nb"] in shared
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(found.html)
    assert "img" not in tags
    assert tags.count("script") == 3


def test_the_page_loads_nothing() -> None:
    page = noisy(3, 3).html
    assert "default-src 'none'" in page
    own = page.replace(exploration.vega(), "")
    assert not re.search(r"https?://|<(?:link|iframe|img|script)[^>]*\b(?:src|href)=", own, re.IGNORECASE)


def test_matrices_come_back_to_seven_digits() -> None:
    found = noisy(5, 3)
    data = data_of(found.html)
    part = data["curves"][0]["points"][0]["parts"][0]
    read = np.frombuffer(base64.b64decode(part["matrix"]), "<f4").reshape(5, 5)
    assert read == pytest.approx(found.curves[0].points[0].parts[0].matrix, rel=1e-6)
    assert data["shared"][part["inputs"]] == [f"letter {k}" for k in range(5)]


def test_it_is_written_whole_and_shown_in_a_frame(tmp_path: Path) -> None:
    found = noisy(3, 3)
    found.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == found.html
    assert found._repr_html_().startswith("<iframe title='t'")
    assert "<script" not in found._repr_html_()
    with pytest.raises(FileFormatError):
        found.save(tmp_path / "page.pdf")


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match=r"pmlopt\[explore\]"):
        exploration.vega.__wrapped__()
