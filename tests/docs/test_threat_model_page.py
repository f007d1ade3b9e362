"""Each line of the threat model names the tests that show it, and they exist."""

import ast
import re

from documents import ROOT

PAGE = ROOT / "docs" / "threat_model.md"


def test_each_line_names_tests_that_exist() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "](#" in line]
    assert len(lines) == 6
    for line in lines:
        named = re.findall(r"`(tests/[^`]+)`", line)
        assert named or "among the tests" in line, line
        for file, _, name in (one.partition("::") for one in named):
            if not name:
                continue  # a script, with tests of its own
            tree = ast.parse((ROOT / file).read_text())
            defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
            assert name in defined, f"{file} has no {name}"
