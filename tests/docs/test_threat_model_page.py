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
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert name in defined, f"{file} has no {name}"
