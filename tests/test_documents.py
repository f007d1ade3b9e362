"""Every code block of the README and of the pages runs, or says why it does not."""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from documents import (
    NUMBER,
    ROOT,
    Block,
    blocks,
    commands,
    join_lines,
    numbers,
    printed_file,
    same_number,
    script_name,
    statements,
)

import pmlopt
from pmlopt.cli import main

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
TRANSCRIPTS = ROOT / "docs" / "getting_started.md"
LANGUAGES = ("python", "bash", "text", "toml", "math", "console", "r", "html")
BLOCKS = {page: blocks(page.read_text("utf-8")) for page in PAGES}


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def typed(line: str) -> list[str]:
    """A command line without its comment."""
    return shlex.split(line, comments=True)


TOLD = [
    typed(line)
    for line in re.findall(r"^\$ (pmlopt .*)$", join_lines(TRANSCRIPTS.read_text()), re.MULTILINE)
]
"""The commands that `docs/test_transcripts.py` runs line by line."""


def to_run(page: Path) -> list[Block]:
    """The blocks of Python and shell of a page, from top to bottom; no shell that is run elsewhere."""
    found = [block for block in BLOCKS[page] if block.reason is None]
    shell = [block for block in found if block.language in ("text", "bash") and commands(block)]
    if all(typed(line) in TOLD for block in shell for line in commands(block)):
        shell = []
    return [block for block in found if block.language == "python" or block in shell]


@pytest.mark.parametrize("page", [page for page in PAGES if to_run(page)], ids=named)
def test_the_blocks_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one folder that is empty at first: a block uses only what those above it made."""
    monkeypatch.chdir(tmp_path)
    found = to_run(page)
    name = script_name([block for block in found if block.language == "python"])
    names: dict[str, object] = {"__name__": "__main__"}
    shown = shown_outputs(page.read_text("utf-8"))
    if name is not None:
        code = [block for block in found if block.language == "python"]
        output = run_as_script(tmp_path / name, code)
        assert all(prints(output, shown.get(block.line, "")) for block in code), output
    for block in found:
        if block.language != "python":
            run_shell(block)
        elif name is None:
            output = run_python(block, names)
            wanted = shown.get(block.line, "")
            assert prints(output, wanted), f"{output} is not {wanted}"


def run_python(block: Block, names: dict[str, object]) -> str:
    """Run a block of Python and compare its comments with what it prints, which is returned."""
    output = ""
    for statement, comment in statements(block):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module([statement], []), "page", "exec"), names)
        assert says(comment, printed.getvalue()), f"{printed.getvalue()} is not {comment}"
        assert "np.float" not in printed.getvalue(), "a page shows plain numbers"
        output += printed.getvalue()
    return output


def run_shell(block: Block) -> None:
    """Run the commands of a block, and write the files of its here-documents."""
    for path, text in re.findall(r"^cat > (\S+) <<'END'\n(.*?)^END$", block.code, re.M | re.S):
        Path(path).write_text(text)
    for line in commands(block):
        if line.startswith("printf "):
            path, text = printed_file(line)
            path.write_text(text)
        else:
            run(line)


def shown_outputs(page: str) -> dict[int, str]:
    """The text blocks that directly follow a block of Python, by the line of its code: what it prints."""
    found = blocks(page)
    lines = page.splitlines()
    return {
        block.line: after.code
        for block, after in itertools.pairwise(found)
        if (block.language, after.language) == ("python", "text")
        if not "".join(lines[block.line + block.code.count("\n") : after.line - 2]).strip()
        and not commands(after)
    }


def prints(output: str, shown: str) -> bool:
    """Whether lines that a block printed are those below it: the same words and numbers."""
    printed, wanted = (re.findall(rf"{NUMBER}|[^\W\d]+|[^\w\s]", text) for text in (output, shown))
    return any(
        printed[start : start + len(wanted)] == wanted
        for start in range(len(printed) - len(wanted) + 1)
    )


def test_other_words_and_numbers_than_those_shown_are_found() -> None:
    page = "```python\nprint(a)\n```\n\n```text\n[0.25 x]\n```\n"
    assert shown_outputs(page) == {2: "[0.25 x]\n"}
    assert shown_outputs(page.replace("\n\n", "\n\nFrom the shell:\n\n")) == {}
    assert prints("[0.25   x]", "[0.25 x]\n")
    assert not prints("[0.2512   x]", "[0.25 x]\n")
    assert not prints("[0.26 x]", "[0.25 x]\n")
    assert not prints("[0.25 y]", "[0.25 x]\n")
    assert prints("1\n[0.25 x]", "[0.25 x]\n")
    assert not prints("[0.25 x", "[0.25 x]\n")


def says(comment: str, printed: str) -> bool:
    """Whether the numbers that a comment starts with are those that its statement printed."""
    if not printed:
        return True
    return all(map(same_number, re.findall(NUMBER, printed), numbers(comment)))


def run_as_script(path: Path, page: list[Block]) -> str:
    """Run the blocks as one file, as new processes import it; what it prints is returned."""
    path.write_text("\n\n".join(block.code for block in page))
    environment = {**os.environ, "PYTHONPATH": str(Path(pmlopt.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, path.name], cwd=path.parent, env=environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def run(line: str) -> None:
    """Run one command line of pmlopt."""
    done = CliRunner().invoke(main, typed(line)[1:])
    assert done.exit_code == 0, f"{line}\n{done.output}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_line_of_code_is_wider_than_a_page_shows(page: Path) -> None:
    run_word_for_word = "bash" if page.name == "README.md" else None
    wide = [
        line
        for block in blocks(page.read_text())
        if block.language not in ("math", run_word_for_word)
        for line in block.code.splitlines()
        if len(line) > 88 and len(re.findall(r"\S  +(?=\S)", line)) < 4  # tables scroll
    ]
    assert wide == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_and_name_is_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    found = blocks(text)
    assert 2 * len(found) == len(re.findall(r"^\s*```", text, re.MULTILINE))
    for block in found:
        assert block.language in LANGUAGES, f"line {block.line}"
        assert block.reason is None or len(block.reason.split()) > 1
        if block.language == "python":
            ast.parse(block.code)  # also where it is not run
        if block.language == "toml":
            told = tomllib.loads(block.code)
            if block.code.startswith("id = "):  # a whole problem file
                path = tmp_path / f"{told['id']}.toml"
                path.write_text(block.code)
                run(f"pmlopt solve {path}")
    if page.name != "CHANGELOG.md":  # names of then
        for name in re.findall(r"`((?:pmlopt|tests|benchmarks|problems|docs)/[\w./*-]+)`", text):
            assert list(ROOT.glob(name)), name
        for name in re.findall(r"`(pmlopt(?:\.\w+)+)`", text):
            assert resolves(name), name


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_blocks_are_read_with_their_reasons() -> None:
    page = "# T\n\n<!-- not run: needs a cluster -->\n```python\nx = 1\n```\n\n```text\npmlopt a\nb\n```\n"
    assert blocks(page) == [
        Block("python", "x = 1\n", 5, "needs a cluster"),
        Block("text", "pmlopt a\nb\n", 9, None),
    ]
    assert commands(blocks(page)[1]) == ["pmlopt a"]
    assert printed_file("printf 'a,b\\n1,2\\n' > c.csv") == (Path("c.csv"), "a,b\n1,2\n")
    assert script_name(blocks("```python\n# counting.py\nx = 1\n```\n")) == "counting.py"
    assert script_name(blocks("```python\nx = 1\n```\n")) is None


@pytest.mark.parametrize(
    ("printed", "comment", "holds"),
    [
        ("0.412845", "0.412845, both ends proved", True),
        ("0.412845217", "0.412845, both ends proved", False),
        ("0.34955 True", "0.34955 True: none leaks less by more", True),
        ("(0, 1, 2, 3) (4, 3)", "(0, 1, 2, 3) (4, 3): a row for each weight", True),
        ("(0, 1, 2, 3) (4, 4)", "(0, 1, 2, 3) (4, 3): a row for each weight", False),
        ("11420", "11,420", True), ("7.0", "of 10,000 log 2 = 6931.47", True),
        ("[0.4861, 0.2406]", "[0.4861, 0.2407]", False),
    ],
)  # fmt: skip
def test_what_a_comment_says_is_what_is_printed(printed: str, comment: str, holds: bool) -> None:
    assert says(comment, printed) is holds
