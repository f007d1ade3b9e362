"""What the site is built with: the notation of formulas, the public names, the checks of its pages."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from xml.etree import ElementTree

import pytest
from documents import ROOT, blocks, commands, module
from markdown import Markdown
from refusals import refused

import pmlopt
from pmlopt.cli import exits

notation, public_names, check, mathematics, ranking, notebooks, outputs = map(
    module,
    ("notation", "public_names", "check", "mathematics", "ranking", "notebooks", "outputs"),
)


@pytest.mark.parametrize(
    ("plain", "latex"),
    [
        ("P[x,y] <= e^eps q[y]", r"P_{x,y} \le  e^{\varepsilon }\,q_{y}"),
        ("e^-eps", r"e^{-\varepsilon }"),
        ("q_{N-1} A_N", r"q_{N-1}\,A_{N}"),
        ("<p, v> - 1", r"\langle p, v\rangle  - 1"),
        ("a < b", "a < b"),
        ("{Q: Q(A) >= nu(A)}", r"\{Q: Q(A) \ge  \nu (A)\}"),
        ("J^-1", "J^{-1}"),
        ("(x - 1)^+", "(x - 1)^{+}"),
        ("P(y | s)", r"P(y \mid  s)"),
        ("P(z|x)", r"P(z\mid x)"),
        ("b = log |X|", r"b = \log\,|X|"),
        ("for each x", r"\text{for each}\,x"),
        ("q'[y]", "q'_{y}"),
        ("40,000", "40{,}000"),
        ("delta = 1e-6", r"\delta =10^{-6}"),
        ("2.5e-4", r"2.5\cdot10^{-4}"),
        ("sqrt(a + 1) sqrt 2 - 1", r"\sqrt{a + 1}\,\sqrt{2} - 1"),
    ],
)
def test_the_plain_notation_is_set(plain: str, latex: str) -> None:
    assert notation.latex(plain).replace(" ", "") == latex.replace(" ", "")


def test_fractions_are_stacked_and_brackets_match() -> None:
    assert notation.latex("a b / (c + 1)", display=True) == r"a\,\frac{b}{c + 1}"
    stacked = notation.latex("log(f(a) / g(b))", display=True)
    assert stacked.count(r"\frac{f\left(a\right)}{g\left(b\right)}") == 1
    assert r"\frac" not in notation.latex("a / b")
    refused(
        notation.NotationError, notation.latex, ".", ("(a",), ("a)",), ("{a",), ("[0, 1",), ("x^",)
    )


@pytest.mark.parametrize(
    ("code", "formula"),
    [
        ("min_entropy_leakage", False),
        ("max v <= e^eps w(v)", True), ("P[x,y]", True), ("q_N", True), ("N M <= 900", True),
        ("I(X; Y)", True), ("design(prior, PML(1.0), loss)", False), ("one & other", False),
        ("P == 0", False), ("lifts @ weights == 1", False), ("pip install 'pmlopt[plots]'", False),
        ("result.value", False), ("envelope(..., over=L1Ball(prior, 0.1))", False),
    ],
)  # fmt: skip
def test_code_is_told_from_formulas(code: str, formula: bool) -> None:
    assert notation.is_formula(code) is formula


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("so that l(y) = log(max_x P[x,y] / q[y]), in nats", ["l(y) = log(max_x P[x,y] / q[y])"]),
        ("with t > 1 and lam >= 0 for each", ["t > 1", "lam >= 0"]), ("a law of X, not of Y", []),
        ("where b = log |X| leaves", ["b = log |X|"]), ("set `x = 1` here", []),
        ("the file a.csv > b.csv", []),
    ],
)  # fmt: skip
def test_relations_are_found_in_sentences(text: str, found: list[str]) -> None:
    without_code = re.sub(r"`[^`]*`", "\x02", text)
    assert re.findall(notation.IN_PROSE, without_code) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the boxes B_1 and p(A_y), R^N", ["B_1", "p(A_y)", "R^N"]),
        ("I(X_i; Y) between 0 and e^-eps.", ["I(X_i; Y)", "e^-eps"]),
        ("the law of (X_i, T) and h_delta, by (one, two_three)", ["(X_i, T)", "h_delta"]),
        ("2^24 letters in a_file, snake_case and 3 x_values", ["2^24"]), ("a name __init__ and n_jobs", []),
    ],
)  # fmt: skip
def test_indices_and_powers_are_found_in_sentences(text: str, found: list[str]) -> None:
    assert re.findall(notation.TERM_IN_PROSE, text) == found


@pytest.mark.parametrize(
    ("formula", "above", "below"),
    [
        ("a / sum_z p(z) q(z)", "a", "∑zp(z)q(z)"),
        ("1 + a / sum_z p(z) q(z) - b", "a", "∑zp(z)q(z)"),
        ("M_s / min_w [w(s) M_s + 1]", "Ms", "minw[w(s)Ms+1]"),
        ("log(P(y | x) / sum_z p(z) P(y | z)) <= eps", "P(y∣x)", "∑zp(z)P(y∣z)"),
        ("a / sum_x |b[x]| c for each y", "a", "∑x|bx|c"), ("a / min p <p, v>", "a", "minp"),
        ("1 / max(a, b) c", "1", "max(a,b)"), ("a / b c", "a", "b"), ("<p, a / prod_i q_i>", "a", "∏iqi"),
    ],
)  # fmt: skip
def test_an_operator_below_a_line_keeps_its_factors(formula: str, above: str, below: str) -> None:
    found = ElementTree.fromstring(mathematics.mathml(formula, display=True).replace("&nbsp;", ""))
    fractions = found.iter("{*}mfrac") if "}" in found.tag else found.iter("mfrac")
    read = [tuple(re.sub(r"\s", "", "".join(part.itertext())) for part in one) for one in fractions]
    assert read == [(above, below)]


@pytest.mark.parametrize(
    ("formula", "found"),
    [("a / sum_z p q + b", "a/(∑zpq)+b"), ("v / sum v", "v/∑v"), ("a/max_x p r", "a/(maxxpr)")],
)
def test_an_operator_behind_a_slash_has_brackets(formula: str, found: str) -> None:
    set_ = ElementTree.fromstring(mathematics.mathml(formula))
    assert re.sub(r"\s", "", "".join(set_.itertext())) == found


def page(text: str) -> str:
    """A page as the site has it."""
    return str(Markdown(extensions=["attr_list", mathematics.Mathematics()]).convert(text))


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("![above it for h = 2 on the right](a.svg)", 'alt="above it for h = 2 on the right"'),
        ("[![the bound `q_N <= 1`](a.svg)](b.md)", 'alt="the bound q_N &lt;= 1"'),
        ("[it](b.md 'where h = 2')", 'title="where h = 2"'),
        ('![a](a.svg){ title="at e^-eps" }', 'title="at e^-eps"'),
        ('see <a title="h = 2" href="b">it</a>', 'title="h = 2"'),
    ],
)
def test_formulas_in_attributes_stay_as_they_are_written(text: str, attribute: str) -> None:
    assert attribute in page(text)
    assert "<math" not in page(text)


def test_punctuation_stays_on_the_line_of_its_formula() -> None:
    assert re.search(r'<span class="piece"><math.*</math>,</span> and', page("so `x <= 1`, and"))
    assert re.search(
        r'<span class="long"><math.*</math>\.</span>', page(f"so `{'x + ' * 12}x <= 1`.")
    )
    assert "piece" not in page("so `x <= 1` and")
    assert "2^24" in page("# Alphabets of 2^24 letters")


def test_guides_come_before_names_in_the_search() -> None:
    guide = ranking.weight("tutorials/audit.md")
    assert guide > ranking.weight("noise.md") > 1000 * ranking.weight("reference/errors.md") > 0
    assert ranking.weight("noise.md") > 100 * ranking.weight("reference/pmlopt.md") > 0


def test_keywords_are_of_pages_that_are_there_and_each_search_finds_a_page_by_name() -> None:
    docs = ROOT / "docs"
    assert [page for page in ranking.KEYWORDS if not (docs / page).is_file()] == []
    names = {one.page_of(name) for one in public_names.modules() for name in one.names}
    searching = module("searching")
    asked = (*searching.SEARCHES.values(), *searching.QUESTIONS.values())
    wanted = {f"{page.rstrip('/')}.md" for pages in asked for page in pages}
    assert [page for page in wanted if page not in names and not (docs / page).is_file()] == []


def test_a_page_shows_what_its_blocks_print() -> None:
    page = (
        "# T\n\n```python\nx = 2\nprint(x)\nx + 1\n```\n\n```bash\npmlopt --version\n```\n\nEnd.\n"
    )
    printed = outputs.run_page(page)
    assert printed == ["2\n3\n", f"pmlopt, version {pmlopt.__version__}\n"]
    shown = outputs.show_outputs(page, printed)
    assert "```{ .text .output }\n2\n3\n```\n\n```bash" in shown.replace("``` {", "```{")
    assert shown.endswith("End.\n")
    written = page.replace("x + 1\n```\n", "x + 1\n```\n\n```text\n2\n3\n```\n")
    assert outputs.drop_written_outputs(written) == page
    cells = json.loads(notebooks.notebook(page, printed))["cells"]
    assert [cell["outputs"][0]["text"] for cell in cells if cell["cell_type"] == "code"] == [
        ["2\n", "3\n"], [printed[1]]
    ]  # fmt: skip


@pytest.mark.parametrize(
    "code", ["```bash\nfalse\ntrue\n```\n", "```python\n1 / 0\n```\n"], ids=["shell", "python"]
)
def test_a_block_that_fails_stops_the_build(code: str) -> None:
    with pytest.raises(RuntimeError, match="a block of a tutorial fails"):
        outputs.run_page(code)
    assert outputs.run_page(f"<!-- not run: it fails -->\n{code}") == [""]


def test_a_public_module_is_a_page_with_its_names_as_users_write_them() -> None:
    pages = module("reference").reference_pages()
    page = pages["reference/pmlopt.md"]
    assert "::: pmlopt.programs.designs.design\n" in page
    assert "heading: pmlopt.design\n" in page
    assert "../tutorials/release.md" in page
    assert "\n**Returns:** `float`\n" in pages["reference/measures.md"]
    assert "heading: pmlopt.PML\n" in pages["reference/privacy.md"]
    of_names = public_names.written_names()
    written = {of_names[one.path, name] for one in public_names.modules() for name in one.names}
    assert {"pmlopt.noise.QueryNoise", "pmlopt.estimation.estimate_noisy_mean"} <= written
    left = set(of_names.values()) - written
    assert {name for name in left if not isinstance(resolve_name(name), ModuleType)} == set()
    described = re.findall(r"^      heading: (.*)$", "".join(pages.values()), re.MULTILINE)
    assert sorted(described) == sorted(written), "each once"


def test_only_what_can_be_imported_by_its_name_has_a_page() -> None:
    pages = module("reference").reference_pages()
    homes = [name.removeprefix("reference/").removesuffix(".md") for name in pages]
    assert homes[:2] == ["index", "pmlopt"]
    for home in homes[2:]:
        names = re.findall(r"^      toc_label: (.*)$", pages[f"reference/{home}.md"], re.MULTILINE)
        public = importlib.import_module(f"pmlopt.{home}")
        assert [name for name in names if not hasattr(public, name)] == []


def test_every_public_name_has_a_place_in_the_reference() -> None:
    places = public_names.anchors()
    names = [name for name in dir(pmlopt) if not isinstance(getattr(pmlopt, name), ModuleType)]
    missing = [name for name in names if name[0] != "_" and f"pmlopt.{name}" not in places]
    assert missing == []
    offered = {name for name in dir(pmlopt) if isinstance(getattr(pmlopt, name), ModuleType)}
    assert set(public_names.packages()) <= offered
    described = {module.path.split(".")[1] for module in public_names.modules()}
    assert set(public_names.packages()) <= described


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<p>see <a href="#there">it</a></p>', "a dead link"),
        ('<p>see <a href="elsewhere/">it</a></p>', "a dead link"),
        ('<p><img src="https://example.org/a.png" alt="a"></p>', "a file from elsewhere"),
        ('<p id="here"><img src="a.png"></p>', "an image without a text"),
        ("<p>the mean <p, rho> of it</p>", "a raw angle bracket"),
        ("<p>the mean <rho, p> of it</p>", "a raw angle bracket"), ("<p>at $x + 1$ it ends</p>", "not set"),
        ("<p>of the boxes B_1 and others</p>", "not set"), ("<p>between 0 and e^eps here</p>", "not set"),
        ("<p>where p3 <= 1/2</p>", "not set"),
        ('<p><img src="a.png" alt="at <math alttext="h = 2"><mi>h</mi></math>"></p>',
         "a tag in an attribute"),
        ('<p><img src="a.png" alt="at <b>2</b>"></p>', "a tag in an attribute"),
        ('<p><img alt="a curve"></p>', "an image without a source"),
        ('<p><img src="a.png" alt="?"></p>', "an image without a text"),
        ("<p>[nobody2020nothing, Theorem 1]</p>", "no work"),
    ],
)  # fmt: skip
def test_a_page_with_a_fault_is_refused(html: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "index.html").write_text(html)
    assert fault in "".join(
        line for line in check.faults(tmp_path) if line.startswith("index.html")
    )


def test_a_page_without_a_fault_passes(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    text = '<p id="x"><a href="#x">x</a> <a href="index.html#x">y</a> <img src="a.png" alt="a"><code>$x$'
    (tmp_path / "index.html").write_text(text)
    assert not [line for line in check.faults(tmp_path) if line.startswith("index.html")]


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "tutorials").glob("*.md")), ids=lambda page: page.stem
)
def test_a_notebook_has_the_blocks_of_its_page_in_order(page: Path) -> None:
    found = json.loads(notebooks.notebook(page.read_text()))
    code = ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "code"]
    shell = [one.removeprefix("%%bash\nset -e\n") for one in code if one.startswith("%%bash\n")]
    every = blocks(page.read_text())
    assert [one for one in code if not one.startswith("%%bash")] == [
        block.code.rstrip("\n") for block in every if block.language == "python"
    ]
    assert shell == [
        block.code.rstrip("\n")
        for block in every
        if block.language == "bash" or (block.language == "text" and commands(block))
    ]
    assert len({cell["id"] for cell in found["cells"]}) == len(found["cells"])


def test_every_exit_code_has_a_meaning() -> None:
    reference = module("reference")
    codes = (exits.CLAIM_FAILS, exits.BAD_INPUT, exits.NOT_SOLVED, exits.BUG,
             exits.INTERRUPTED, exits.CLOSED)  # fmt: skip
    assert set(reference.EXIT_CODES) == {0, *codes}
    assert all(f"\n| {code} | " in reference.commands_page() for code in codes)


def test_figures_are_drawn_by_the_project_with_text_as_text_on_white() -> None:
    drawn = "".join(path.read_text("utf-8") for path in (ROOT / "benchmarks").glob("figures*.py"))
    for path in (ROOT / "docs" / "figures").glob("*.svg"):
        assert f'"{path.stem}": ' in drawn, path.name
        picture = path.read_text("utf-8")
        assert "<text" in picture, path.name
        assert "fill: #ffffff" in picture, path.name


def test_every_column_of_a_table_has_a_head() -> None:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for head in re.findall(r"^(\|.*\|)\n\| ?-{3}", path.read_text("utf-8"), re.MULTILINE):
            assert not re.search(r"(?<!\\)\|\s*\|", head), f"{path.name}: {head}"


def test_the_gallery_leads_to_all_figures_and_pages_to_explore() -> None:
    page = (ROOT / "docs" / "gallery" / "index.md").read_text("utf-8")
    assert set(re.findall(r"explored/(\w+)\.html", page)) == set(module("explored").PAGES)
    names = ("one", "two", "three", "four", "five", "six", "seven", "eight")
    count = names[len(module("explored").PAGES) - 1].capitalize()
    assert f"## {count} pages to explore\n" in page
    shown = re.findall(
        r'<div id="([\w-]+)" markdown>\n\[!\[[^\]]+\]\(\.\./figures/\1\.svg\)\]'
        r"\(\.\./figures/\1\.svg\)\n\n\*\*[^*]+\*\* (.*?)\s+`\1`",
        page,
        re.DOTALL,
    )
    assert len(shown) == page.count('<div id="') > 25
    assert {name: text for name, text in shown if len(text.split()) > 35} == {}
    assert all((ROOT / "docs" / "figures" / f"{name}.svg").is_file() for name, _ in shown)


def test_a_program_is_aligned_at_subject_to() -> None:
    shown = mathematics.displayed("V(t) = max 2 q\nsubject to q >= 0\n  q <= t\n")
    assert shown.startswith('<div class="formula program">')
    rows = re.findall(r"<div>(.*?)</div><div>(.*?)</div>", shown)
    read = [re.findall(r'alttext="(.*?)"|^(subject to)$', cell) for row in rows for cell in row]
    assert [cell[0][0] or cell[0][1] if cell else "" for cell in read] == [
        "V(t) = max", "2 q", "subject to", "q &gt;= 0", "", "q &lt;= t"
    ]  # fmt: skip
