"""Pages to explore, and some of the site, in a browser: `nox -s browser`, or pytest of this file.

They are skipped where Chromium or Playwright is not there, and are no part of the other tests.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import PML, Chain, Ledger, Mechanism, Prior, Secret, Stream, design, explore, solve
from pmlopt.publishing.exploring import Exploration

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><b>&amp;",
    "'\"`${1}",
    "a\\nb",
    "<i>x</i>",
]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def column() -> Exploration:
    prior = Prior.from_counts([410, 620, 700, 690, 660, 340], [10, 20, 30, 40, 50, 60])
    return explore(prior, "absolute", epsilon=[0.25 * k for k in range(1, 9)])


def hostile() -> Exploration:
    return explore(
        Prior([0.3, 0.25, 0.2, 0.15, 0.1], HOSTILE), "hamming", epsilon=[0.3, 2.5], title=HOSTILE[0]
    )


def columns() -> Exploration:
    pair = Secret([[0.4, 0.1], [0.1, 0.4]], ["a", "b"], ["c", "d"], "first")
    return explore(pair, "hamming", total=0.8, count=5)


def stream() -> Exploration:
    chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])
    return explore(Stream(chain, PML(0.4), "hamming"), ["home", "home", "out"], seed=1)


def ledger() -> Exploration:
    kept = Ledger([0.5, 0.3, 0.2], people=4, total=1.5)
    used = solve(design([0.5, 0.3, 0.2], PML(0.4), "hamming")).mechanism
    kept.record(
        used, [used.outputs[y] for y in (0, 0, 1, 1)] if used.support[1] else [used.outputs[0]] * 4
    )
    return explore(kept)


MADE = {made.__name__: made for made in (column, hostile, columns, stream, ledger)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, headless."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with api.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, and the data that they were made from."""
    made = tmp_path_factory.mktemp("pages")
    for name, function in MADE.items():
        found = function()
        found.save(made / f"{name}.html")
        (made / f"{name}.json").write_text(json.dumps(found.to_dict()))
    return made


SITE_PAGES = ("columns", "getting_started", "theorems", "performance", "gallery/index")
"""Pages of the site with formulas, what commands print, long names, wide tables, code and a figure."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few pages of the site, built in the theme, the style and the scripts of all."""
    config = pytest.importorskip("mkdocs.config", reason="mkdocs is not installed")
    build = pytest.importorskip("mkdocs.commands.build")
    pytest.importorskip("material", reason="the site's theme is not installed")
    root = Path(__file__).parents[2]
    source, made = tmp_path_factory.mktemp("docs"), tmp_path_factory.mktemp("site")
    for folder in ("assets", "figures"):
        shutil.copytree(root / "docs" / folder, source / folder)
    for name in SITE_PAGES:
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / "docs" / f"{name}.md", source / f"{name}.md")
    hooks = str(root / "docs" / "hooks" / "mathematics.py")
    sys.path.insert(0, str(root / "docs" / "hooks"))
    build.build(
        config.load_config(
            str(root / "mkdocs.yml"), docs_dir=str(source), site_dir=str(made), nav=None,
            plugins=["search"], hooks=[hooks], use_directory_urls=False,
        )
    )  # fmt: skip
    return made


class Shown:
    """A page in the browser, and all that went wrong on it."""

    def __init__(self, browser: Any, path: Path, width: int, scheme: str = "light") -> None:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page: Any = context.new_page()
        self.faults: list[str] = []
        self.data: Any = json.loads(path.with_suffix(".json").read_text())
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-shown]", timeout=60_000)

    def _asked(self, address: str) -> None:
        if not address.startswith(("file:", "data:")):
            self.faults.append(f"asks for {address}")

    def wait(self, curve: int, point: int, part: int = 0) -> None:
        """Until the page shows that point."""
        self.page.wait_for_selector(f'body[data-shown="{curve},{point},{part}"]', timeout=30_000)

    def move(self, slider: str, place: int) -> None:
        """Move a slider as a person does: by the keyboard."""
        self.page.focus(f"#{slider}")
        self.page.keyboard.press("Home")
        for _ in range(place):
            self.page.keyboard.press("ArrowRight")

    def facts(self) -> dict[str, str]:
        """The table of the point, by name."""
        rows = self.page.eval_on_selector_all(
            "#facts tr", "rows => rows.map(r => [...r.cells].map(c => c.textContent))"
        )
        return dict(rows)


@pytest.fixture(params=sorted(MADE))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_whole_quiet_and_accessible(
    browser: Any, folder: Path, name: str, width: int, scheme: str
) -> None:
    shown = Shown(browser, folder / f"{name}.html", width, scheme)
    for place in range(shown.page.locator("details").count()):
        if shown.page.locator("summary").nth(place).is_visible():
            shown.page.locator("summary").nth(place).click()
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    paper = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, paper[4:-1].split(","))) < 200) == (scheme == "dark")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(shown.page).response["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == []
    assert shown.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SITE_PAGES)
def test_a_page_of_the_site_is_accessible_and_fits(
    browser: Any, site: Path, name: str, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_selector("nav[data-named]", state="attached")
    assert (
        page.get_attribute("body", "data-md-color-scheme")
        == {"light": "default", "dark": "slate"}[scheme]
    )
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_sliders_show_the_numbers_of_the_sweep(browser: Any, folder: Path) -> None:
    shown = Shown(browser, folder / "column.html", 1280)
    for k, curve in enumerate(shown.data["curves"]):
        shown.page.select_option("#curve", str(k))
        for place in (0, 3, len(curve["points"]) - 1):
            shown.move("at", place)
            shown.wait(k, place)
            point, facts = curve["points"][place], shown.facts()
            assert float(facts["epsilon [nats]"]) == pytest.approx(point["at"], rel=1e-5)
            assert float(facts["expected loss"]) == pytest.approx(point["value"], rel=5e-6)
            assert float(facts["level of the mechanism [nats]"]) == pytest.approx(
                point["level"], rel=5e-6, abs=1e-9
            )
            if point["bound"] is not None:
                assert float(facts["no mechanism betters"]) == pytest.approx(
                    point["bound"], rel=5e-6
                )
            drawn = shown.page.text_content("#leakage svg")
            leakages = [leakage for leakage, _ in point["parts"][0]["leakages"]]
            assert all(f"{leakage:.6g}" in drawn for leakage in leakages if leakage > 1e-4)
    assert shown.faults == []


def test_the_pictures_are_the_matrix_and_bayes_rule(browser: Any, folder: Path) -> None:
    shown = Shown(browser, folder / "column.html", 1280)
    shown.move("at", 6)
    shown.wait(0, 6)
    exploration = column()
    part = exploration.curves[0].points[6].parts[0]
    assert part.prior is not None
    shown.page.locator("#numbers").locator("xpath=..").locator("summary").click()
    shown.page.locator("#numbers table").nth(1).wait_for()  # they are made when they are asked for
    tables = shown.page.eval_on_selector_all(
        "#numbers table",
        "tables => tables.map(t => [...t.rows].slice(1).map(r => [...r.cells].map(c => c.textContent)))",
    )
    posterior = part.prior[:, None] * part.matrix / (part.prior @ part.matrix)
    for table, numbers in zip(
        tables, (part.matrix, np.column_stack([part.prior, posterior])), strict=True
    ):
        assert [row[0] for row in table] == [str(label) for label in part.inputs]
        for row, expected in zip(table, numbers, strict=True):
            for cell, number in zip(row[1:], expected, strict=True):
                assert float(cell.strip("<>")) == pytest.approx(number, abs=1.1e-4)


def test_a_loss_leads_to_the_least_level(browser: Any, folder: Path) -> None:
    shown = Shown(browser, folder / "column.html", 1280)
    points = shown.data["curves"][0]["points"]
    for stop in (0, 2, 5):
        shown.move("least", stop)
        shown.page.wait_for_timeout(300)
        chosen = int(shown.page.get_attribute("body", "data-shown").split(",")[1])
        goal = points[chosen]["value"]
        assert min(k for k, point in enumerate(points) if point["value"] <= goal) == chosen
        assert str(float(f"{goal:.6g}")).rstrip("0").rstrip(".") in shown.page.inner_text(
            "#least-out"
        )


def test_labels_stay_text(browser: Any, folder: Path) -> None:
    shown = Shown(browser, folder / "hostile.html", 1280)
    shown.move("at", 1)
    shown.wait(0, 1)
    assert shown.page.title() == HOSTILE[0]
    assert shown.page.locator("main img, main b, main i, header img").count() == 0
    assert HOSTILE[0] in shown.page.inner_text("#rows")
    cell = shown.page.locator(
        "#matrix svg path[aria-roledescription], #matrix svg .mark-rect path"
    ).first
    cell.hover()
    assert shown.page.locator("#vg-tooltip-element img").count() == 0
    assert shown.faults == []


def test_what_is_copied_is_what_is_shown(browser: Any, folder: Path) -> None:
    shown = Shown(browser, folder / "column.html", 390)
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for kind in ("command", "python"):
        shown.page.click(f"button[data-copies={kind}]")
        shown.page.wait_for_function("document.getElementById('copied').textContent === 'Copied.'")
        copied = shown.page.evaluate("navigator.clipboard.readText()")
        assert copied == shown.page.text_content(f"#{kind}")
        assert repr(shown.data["curves"][0]["points"][3]["at"]) in copied


def test_everything_is_reached_by_the_keyboard(browser: Any, folder: Path) -> None:
    shown = Shown(browser, folder / "column.html", 1280)
    reached = []
    for _ in range(30):
        shown.page.keyboard.press("Tab")
        reached.append(
            shown.page.evaluate(
                "document.activeElement.id || document.activeElement.dataset.copies || ''"
            )
        )
    assert {"curve", "at", "least", "rows", "command", "python"} <= set(reached)


def test_dark_mode_is_followed_while_the_page_is_open(browser: Any, folder: Path) -> None:
    shown = Shown(browser, folder / "column.html", 1280)
    fill = "[...document.querySelectorAll('#lines svg text')].map(t => t.getAttribute('fill'))[0]"
    before = shown.page.evaluate(fill)
    shown.page.emulate_media(color_scheme="dark")
    shown.page.wait_for_function(f"{fill} !== '{before}'", timeout=30_000)


def test_the_survey_of_the_tutorial_sends_a_randomized_answer_once(
    browser: Any, tmp_path: Path
) -> None:
    page_of_docs = (Path(__file__).parents[2] / "docs" / "tutorials" / "survey.md").read_text(
        "utf-8"
    )
    html = page_of_docs.split("```html\n")[1].split("```")[0]
    (tmp_path / "survey.html").write_text(html, "utf-8")
    letters = ["never", "monthly", "weekly", "daily"]
    Mechanism(np.eye(4)[::-1], letters, letters).export(tmp_path / "drinking.js")
    page = browser.new_page()
    page.goto((tmp_path / "survey.html").as_uri())
    page.select_option("select", "monthly")
    page.click("button")
    assert json.loads(page.text_content("#sent")) == {"released": "weekly"}
    # the first draw is kept: another answer reveals nothing more
    page.select_option("select", "never")
    page.click("button")
    assert json.loads(page.text_content("#sent")) == {"released": "weekly"}
    found = page.evaluate(
        "() => { try { return pmlopt.release('constructor'); } catch (error) { return error.name; } }"
    )
    assert found == "RangeError"
    page.close()


def test_the_page_of_waves_draws_within_the_total_and_repeats_afterwards(
    browser: Any, tmp_path: Path
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "tutorials" / "survey.md").read_text("utf-8")
    html = text.split("```html\n")[2].split("```")[0]
    (tmp_path / "waves.html").write_text(html, "utf-8")
    expected = Prior.from_counts({"never": 3500, "monthly": 3000, "weekly": 2500, "daily": 1000})
    wave = solve(design(expected, PML(0.35), "estimation-error")).mechanism
    levels = json.loads(html.split("var LEVELS = ")[1].split(";")[0])
    for draws, level in enumerate(levels[1:], start=1):
        # the largest number that a ledger of so many draws can show, rounded up
        laws = [math.prod(columns) for columns in itertools.product(wave.matrix.T, repeat=draws)]
        shown = max(math.log(law.max() / (expected.pmf @ law)) for law in laws if law.max() > 0)
        assert shown - 1e-12 <= level <= shown + 1e-4
    # outcomes that differ in each draw: the letters in turn
    letters = list(expected.labels)
    Mechanism(np.eye(4), letters, letters).export(tmp_path / "wave.js", name="wave")
    context = browser.new_context()
    page = context.new_page()
    shown_facts = []
    for number, answer in ((1, "never"), (1, "daily"), (2, "weekly"), (3, "daily"), (3, "monthly")):
        page.goto((tmp_path / "waves.html").as_uri() + f"?wave={number}")
        page.select_option("select", answer)
        page.click("button")
        sent = json.loads(page.text_content("#sent"))
        assert sent["wave"] == str(number)
        drawn, level = (page.text_content(f"#{name}") for name in ("draws", "level"))
        shown_facts.append((sent["released"], int(drawn), float(level)))
    assert shown_facts == [
        ("never", 1, levels[1]),
        ("never", 1, levels[1]),
        ("weekly", 2, levels[2]),
        ("weekly", 2, levels[2]),
        ("weekly", 2, levels[2]),
    ]
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    assert [one["id"] for one in axe.run(page).response["violations"]] == []
    context.close()
