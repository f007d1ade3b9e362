"""Each property of the threat model names the tests that show it, and they exist."""

import ast
import re

from documents import ROOT

from pmlopt.publishing import choose_rounding_step

PAGE = (ROOT / "docs" / "threat_model.md").read_text("utf-8")
ASSURANCE = (ROOT / "docs" / "assurance.md").read_text("utf-8")
FOOT = ASSURANCE.split("## Tests of a release\n")[1].split("\n## ")[0]
PROPERTY = re.compile(r"^\| .* \| \[.*\]\(threat_model\.md#[\w-]+\) \| .*", re.MULTILINE)
TESTS = re.compile(r"`(tests/[^`]+)`")


def test_each_line_names_a_test() -> None:
    lines = PROPERTY.findall(FOOT)
    assert len(lines) == 6
    assert FOOT.count("\n| ") == 6 + 18 + 4  # with the heads of two tables
    for line in lines:
        assert TESTS.findall(line), line


def test_the_tests_that_are_named_exist() -> None:
    named = TESTS.findall(FOOT)
    assert len(named) > 15
    for file, _, name in (one.partition("::") for one in named):
        assert (ROOT / file).is_file(), file
        if not name:
            continue  # the whole file, or a script with tests of its own
        place: ast.AST = ast.parse((ROOT / file).read_text("utf-8"))
        for part in name.split("::"):  # a class, and then a test of it
            nodes = ast.iter_child_nodes(place)
            defined = {
                one.name: one for one in nodes if isinstance(one, ast.FunctionDef | ast.ClassDef)
            }
            assert part in defined, f"{file} has no {name}"
            place = defined[part]


def test_limitations_lead_to_each_part_of_the_threat_model_that_leaves_something() -> None:
    limitations = (ROOT / "docs" / "choosing" / "limitations.md").read_text("utf-8")
    titles = re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE)
    anchors = {title.lower().replace(" ", "-") for title in titles}
    linked = set(re.findall(r"threat_model\.md#([\w-]+)", limitations))
    leaves = {
        "order-of-rows",
        "no-exact-count",
        "files-of-others",
        "what-ends-with-3",
        "the-report-to-sign",
    }
    assert leaves <= linked <= anchors
    # the chance that one person moves a stated count is one over the step
    assert "1 in 10 for small files and 1 in 1,000 for a million" in " ".join(limitations.split())
    assert (choose_rounding_step(200), choose_rounding_step(1_000_000)) == (10, 1_000)
