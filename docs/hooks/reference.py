"""Pages that are written when the site is built: the reference, the command line, the problem library.

A page of the reference is a public module; mkdocstrings fills it. Wherever a page or a docstring names
something public in code style, the name becomes a link to its place in the reference, and that of a
problem of the library to its file.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from posixpath import relpath
from typing import Any

import click
from mkdocs.structure.files import File
from public_names import (
    ROOT,
    TOPICS,
    Module,
    about,
    anchors,
    file_of,
    homes,
    modules,
    page_of_home,
    tree,
    written_names,
)

from pmlopt.cli import main
from pmlopt.cli.exits import BAD_INPUT, BUG, CLAIM_FAILS, CLOSED, INTERRUPTED, NOT_SOLVED
from pmlopt.cli.help_pages import find_example, group_options

PROBLEMS = ROOT / "problems"
FAMILIES = {
    "closed_forms": "Closed forms",
    "counting_query": "Counting queries",
    "counts": "Counts of the Adult data",
    "envelopes": "Envelopes",
    "information": "Information",
    "post_randomization": "Post-randomization and noise tables",
    "records": "Records",
    "robust": "Sets of priors",
    "secrets": "Secrets and metrics",
    "symmetry": "Large alphabets with symmetry",
    "worst_case": "Worst cases",
}
UNTOUCHED = re.compile(
    r"(<a\b.*?</a>|<h[1-6]\b.*?</h[1-6]>|<pre\b.*?</pre>|<code[^>]+>.*?</code>)", re.DOTALL
)
CODE = re.compile(r"<code>([A-Za-z_][\w.-]*)((?:\([^<]*\))?)</code>")


def reference_pages() -> dict[str, str]:
    """The pages of the reference: one for each public module, and one of all names by topic."""
    pages = {"reference/index.md": reference_index()}
    for home, names in names_by_home().items():
        title = f"---\ntitle: {home}\ntags: [{', '.join(name for _, name in names)}]\n---\n"
        parts = [f"{title}# `{home}`\n\n{about(home)}\n", *(describe(*one) for one in names)]
        pages[page_of_home(home)] = "\n".join(parts)
    return pages


def names_by_home() -> dict[str, list[tuple[Module, str]]]:
    """The names of each public module, by topic; `pmlopt` first."""
    found: dict[str, list[tuple[Module, str]]] = {"pmlopt": []}
    for module in modules():
        for name in module.names:
            found.setdefault(homes()[module.path, name], []).append((module, name))
    return found


def describe(module: Module, name: str) -> str:
    """A public name on the page of its module, under the name that users write."""
    return (
        f"::: {module.identifier(name)}\n    options:\n      show_root_heading: true\n"
        f"      heading: {written_names()[module.path, name]}\n      toc_label: {name}\n"
        f"      heading_level: 2\n{returns_of(module, name)}{in_use(module, name)}"
    )


def returns_of(module: Module, name: str) -> str:
    """What a function returns, by its annotation, where its docstring has no section on it."""
    functions = [
        node
        for node in tree(file_of(module.path)).body
        if isinstance(node, ast.FunctionDef) and node.name == name and node.returns is not None
    ]
    described = [ast.get_docstring(node) or "" for node in functions]
    if not functions or any(re.search(r"^(Returns|Yields):", text, re.M) for text in described):
        return ""
    stated = functions[:-1] or functions  # by its overloads, where it has any
    kinds = dict.fromkeys(ast.unparse(node.returns).strip("'") for node in stated if node.returns)
    linked = (re.sub(r"[A-Za-z_][\w.]*", r"`\g<0>`", kind.replace("|", "or")) for kind in kinds)
    return f"\n**Returns:** {' or '.join(linked).replace('[', ' [').replace('`or`', 'or')}\n"


def in_use(module: Module, name: str) -> str:
    """The pages that use a name."""
    depth = "../" * module.page_of(name).count("/")
    used = [f"[{title}]({depth}{page})" for page, title, names in guides() if name in names][:6]
    return f"\nIn use: {', '.join(used)}.\n" if used else ""


@cache
def guides() -> list[tuple[str, str, frozenset[str]]]:
    """The pages that are written by hand, with title and the names in their code: tutorials first."""
    docs = ROOT / "docs"
    found = []
    for path in [*sorted(docs.glob("tutorials/*.md")), *sorted(docs.glob("*.md"))]:
        text = path.read_text("utf-8")
        title = re.search(r"^# (.*)$", text, re.MULTILINE)
        if title is not None and path.stem not in ("index", "theorems", "architecture"):
            imported_names = " ".join(re.findall(r"^from \S+ import (.*)$", text, re.MULTILINE))
            names = re.findall(r"(?<![\w.-])(\w+)\(|`(?:pmlopt\.)?(\w+)[`(]", text)
            used = {name for pair in names for name in pair} | set(
                re.findall(r"\w+", imported_names)
            )
            address = path.relative_to(docs).as_posix()
            found.append((address, re.sub("[`*]", "", title[1]), frozenset(used)))
    return found


def reference_index() -> str:
    """The reference by topic: each name with what it is."""
    parts = [
        "# Reference\n\nEverything of `pmlopt` that users import, under the name that they write:"
        " `from pmlopt import design`, `from pmlopt.noise import Laplace`. Functions of a prior and a"
        " mechanism take the prior first, and levels are in nats. A page is a module.\n"
    ]
    for topic in filled():
        rows = [
            f"| [`{written_names()[module.path, name]}`]"
            f"({module.page_of(name).removeprefix('reference/')}#{module.identifier(name)})"
            f" | {cell(first_line(module, name))} |\n"
            for module in modules() if module.topic == topic
            for name in module.names
        ]  # fmt: skip
        parts += [f"\n## {topic}\n\n| name | what it is |\n| --- | --- |\n", *rows]
    return "".join(parts)


def first_line(module: Module, name: str) -> str:
    """The first paragraph of the docstring of a name: of a function with overloads, that of what runs."""
    found = ""
    nodes = tree(file_of(module.path)).body
    for node, after in zip(nodes, [*nodes[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            found = ast.get_docstring(node) or found
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            described = after.value if isinstance(after, ast.Expr) else None
            if name in map(ast.unparse, targets) and isinstance(described, ast.Constant):
                found = str(described.value)
    return found.split("\n\n")[0].replace("\n", " ")


def filled() -> list[str]:
    """The topics that have modules."""
    return [topic for topic in TOPICS if any(module.topic == topic for module in modules())]


EXIT_CODES = {
    0: "done; also where the status is `unproved`: the privacy is proved, and the remaining gap is reported",
    CLAIM_FAILS: "a claim fails",
    BAD_INPUT: "the input is not usable, or the command is not understood; nothing was written",
    NOT_SOLVED: "no solver could solve it, the time limit was reached, or a part could not be checked",
    BUG: "a defect of pmlopt; the traceback belongs in a report",
    INTERRUPTED: "interrupted",
    CLOSED: "the reader of the output closed the pipe",
}
"""What the exit codes of the command line mean."""


def commands_page() -> str:
    """The command line, from the help of its commands."""
    parts = [
        "# Command line\n\n`pmlopt COMMAND`, or `python -m pmlopt COMMAND`."
        " This page is the commands' own help.\n\n"
        f"{paragraphs(main.help)}\n",
        "\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n",
        *(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items()),
        "\nErrors are one line on standard error. With `--json` they are one JSON object there, with the keys"
        ' `format` (`"pmlopt error"`), `error`, `kind` and `exit_code`, and standard output is empty.'
        " On a terminal verdicts are bold and coloured, unless the variable `NO_COLOR` is set."
        ' `eval "$(_PMLOPT_COMPLETE=bash_source pmlopt)"` (or `zsh_source`) makes a shell complete commands,'
        " options, and the names of utilities, requirements and problems.\n",
    ]
    parts += json_section()
    for path, command in walk(main, "pmlopt"):
        context = click.Context(command, info_name=path)
        usage = " ".join(command.collect_usage_pieces(context))
        parts.append(f"\n## {path}\n\n```text\n{path} {usage}\n```\n\n{paragraphs(command.help)}\n")
        for title, options in group_options(context, command).items():
            parts.append(f"\n| {title.lower() or 'other'} option | meaning |\n| --- | --- |\n")
            parts += [
                f"| `{flag.replace('|', ',')}` | {cell(meaning)} |\n" for flag, meaning in options
            ]
        if example := find_example(context):
            parts.append(f"\n```text\n{example}\n```\n")
    return "".join(parts)


def json_section() -> list[str]:
    """The kinds of JSON that commands print, and their keys, from the schema."""
    schema = json.loads((ROOT / "docs" / "output.schema.json").read_text("utf-8"))
    kinds = [
        f"| `{one['properties']['format']['const']}` | {cell(one['description'])} | "
        + ", ".join(f"`{key}`" for key in one["properties"] if key != "format") + " |\n"
        for one in schema["oneOf"]
    ]  # fmt: skip
    keys = [
        f"| `{key}` | {cell(one['description'])} |\n" for key, one in schema["properties"].items()
    ]
    return [
        "\n## JSON\n\nWith `--json` a command prints one object, whose `format` names its kind; "
        "[a schema](output.schema.json) lists the keys. `pmlopt release` prints its `release.json`.\n\n"
        "| format | what it is | keys |\n| --- | --- | --- |\n", *kinds,
        "\nA key means the same in every kind:\n\n| key | meaning |\n| --- | --- |\n", *keys,
    ]  # fmt: skip


def walk(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group, those of its groups below it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from walk(command, f"{path} {name}")


def paragraphs(text: str | None) -> str:
    """Help as markdown: the paragraphs that click keeps as they are are blocks of text."""
    found = []
    for part in (text or "").replace("\f", "").strip().split("\n\n"):
        if part.startswith("\b"):
            found.append(f"```text\n{part.removeprefix(chr(8)).strip(chr(10))}\n```")
        else:
            found.append(" ".join(escaped(part).split()))
    return "\n\n".join(found)


def escaped(text: str) -> str:
    """Text whose angle brackets and stars mean themselves."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("*", r"\*").replace("_", r"\_")


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return " ".join(escaped(text).split()).replace("|", r"\|")


def library_pages() -> dict[str, str]:
    """The problem library: a page for each family, each file under its name."""
    pages = {}
    index = [
        "# Problem library\n\nEach problem is a file with one claim: what is asked, its source, and what is"
        " known of the optimum ([how to write one](../problems.md)). `pmlopt solve ID` solves one and"
        " compares, `pmlopt problems` lists them. The tests solve all of them.\n"
    ]
    for folder in families():
        title = FAMILIES.get(folder.name, folder.name.replace("_", " ").capitalize())
        parts = [f"# {title}\n"]
        index.append(f"\n## [{title}]({folder.name}.md)\n\n| problem | claim |\n| --- | --- |\n")
        for file in sorted(folder.glob("*.toml")):
            text = file.read_text("utf-8")
            problem = tomllib.loads(text)
            source = problem.get("source", {})
            cited = ", ".join(part for part in (source.get("cite"), source.get("where")) if part)
            claim = problem["title"] + (f" [{cited}]" if source.get("cite") else "")
            parts.append(f"\n## {problem['id']}\n\n{claim}\n\n```toml\n{shown(text)}```\n")
            index.append(f"| `{problem['id']}` | {cell(claim)} |\n")
        pages[f"library/{folder.name}.md"] = "".join(parts)
    return {"library/index.md": "".join(index), **pages}


def families() -> list[Path]:
    """The folders of the problem library."""
    return sorted(path for path in PROBLEMS.iterdir() if path.is_dir())


def shown(text: str) -> str:
    """A problem file for a page: lines of a hundred numbers are cut."""
    return "".join(
        line if len(line) < 400 else line[:300] + " ...\n"
        for line in text.splitlines(keepends=True)
    )


def generated() -> dict[str, str]:
    """All pages that are written when the site is built."""
    return {**reference_pages(), "commands.md": commands_page(), **library_pages()}


def navigation() -> dict[str, list[dict[str, Any]]]:
    """The parts of the navigation that are generated, by the entry of mkdocs.yml that they replace."""
    library = [
        {FAMILIES.get(folder.name, folder.name): f"library/{folder.name}.md"}
        for folder in families()
    ]
    entries: list[dict[str, Any]] = [{"By topic": "reference/index.md"}]
    entries += [{home: page_of_home(home)} for home in names_by_home()]
    return {"Reference": entries, "Problem library": [{"All": "library/index.md"}, *library]}


def on_config(config: Any) -> Any:
    """Put the generated pages into the navigation, in place of entries that are folders; called by mkdocs."""
    parts = navigation()
    for section in config["nav"]:
        for entry in next(iter(section.values())):
            for name in set(entry) & set(parts) if isinstance(entry, dict) else ():
                entry[name] = parts[name]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages; called by mkdocs."""
    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Link names, problems and commands; called by mkdocs for pages with their docstrings."""
    problems = {path.stem: path.parent.name for path in PROBLEMS.rglob("*.toml")}
    here = page.file.src_uri

    def link(found: re.Match[str]) -> str:
        name = found[1]
        if name in anchors():
            target, anchor = anchors()[name]
        elif name in problems and not found[2]:
            target, anchor = f"library/{problems[name]}.md", name
        else:
            return found[0]
        return f'<a class="name" href="{address(here, target)}#{anchor}">{found[0]}</a>'

    parts = UNTOUCHED.split(html)
    return "".join(part if index % 2 else CODE.sub(link, part) for index, part in enumerate(parts))


def address(here: str, there: str) -> str:
    """The address of one page on another: pages are folders, index.md the folder that it is in."""
    return relpath(folder(there), folder(here)) + "/"


def folder(page: str) -> str:
    """The folder in the site that a page of markdown becomes."""
    path = Path(page)
    return "/" + (path.parent if path.name == "index.md" else path.with_suffix("")).as_posix()
