"""The papers: keys that resolve, figures that are there, theorems that are proved."""

import re
from pathlib import Path

import pytest
from documents import ROOT

NOTE, PAPER = ROOT / "paper" / "note" / "note.tex", ROOT / "paper" / "joss" / "paper.md"

pytestmark = pytest.mark.skipif(not NOTE.exists(), reason="not in the sdist")


def entries(path: Path) -> set[str]:
    return set(re.findall(r"^@\w+\{([^,]+),", path.read_text(), flags=re.M))


def test_keys_of_both_papers_are_in_the_bibliography() -> None:
    known = entries(ROOT / "problems" / "references.bib")
    cited = {
        key
        for keys in re.findall(r"\\cite(?:\[[^]]*\])?\{([^}]+)\}", NOTE.read_text())
        for key in keys.split(",")
    }
    assert cited
    assert cited <= known
    marked = set(re.findall(r"@([a-z]+\d*[a-z]*)\b(?![.\w]*\.(?:com|org))", PAPER.read_text()))
    assert marked
    assert marked <= known | entries(PAPER.with_name("paper.bib"))


def test_every_theorem_of_the_note_has_a_proof_and_a_label() -> None:
    text = NOTE.read_text()
    stated = re.findall(
        r"\\begin\{(?:theorem|corollary|proposition)\}(?:\[[^]]*\])?\\label\{([^}]+)\}", text
    )
    kinds = ("theorem", "corollary", "proposition")
    assert len(stated) == sum(text.count(rf"\begin{{{kind}}}") for kind in kinds)
    assert len(stated) == text.count(r"\begin{proof}") == len(set(stated))
    assert set(re.findall(r"\\(?:eq)?ref\{([^}]+)\}", text)) <= set(
        re.findall(r"\\label\{([^}]+)\}", text)
    )


def test_the_figures_of_the_note_are_made_by_its_script() -> None:
    figures = re.findall(r"\\includegraphics(?:\[[^]]*\])?\{([^}]+)\}", NOTE.read_text())
    script = NOTE.with_name("figures.py").read_text()
    assert figures
    for name in figures:
        assert f'"{name}.pdf"' in script
        assert NOTE.with_name(f"{name}.pdf").exists()
