"""Each line of the threat model names the tests that show it, and they exist."""

import ast
import re

from documents import ROOT

PAGE = (ROOT / "docs" / "threat_model.md").read_text("utf-8")
TESTS = re.compile(r"`(tests/[^`]+)`")


def test_each_line_names_a_test() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and "](#" in line]
    assert len(lines) == 6
    for line in lines:
        assert TESTS.findall(line), line


def test_the_tests_that_are_named_exist() -> None:
    named = TESTS.findall(PAGE)
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
