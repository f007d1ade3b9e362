"""Commands for least leakage, worst cases, the problem library and sample sizes."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from pmlopt.cli.exits import CLAIM_FAILS
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, add_command, json_option
from pmlopt.cli.printing import format_number, iterate_with_progress, print_json, print_table
from pmlopt.cli.targets import TARGET
from pmlopt.cli.terminal import print_line
from pmlopt.core.files import disk
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.library import Instance
    from pmlopt.library.bench import ComparisonRow


INDENT = "    "


@add_command(main, extra=(json_option,))
def problems(
    words: Annotated[tuple[str, ...], ArgumentNote("[WORDS]...")] = (),
    output: Annotated[
        Path | None, "With new FAMILY: the problem file to write (.toml).", TARGET
    ] = None,
) -> None:
    """List the problem library, or begin a problem file.

    With WORDS, only problems that have each of them in id, title or source. The words `new FAMILY` with -o
    write a file to fill in, which `pmlopt solve` solves as it is: of the families design, least-leakage,
    worst-case-utility, best-worst-case, best-guaranteed-utility, envelope, failure-after-processing,
    envelope-design, record-leakage, leakage-distortion, distortion-leakage and next-release.
    """
    if output is not None:
        _begin_problem(words, output)
        return
    from pmlopt.library import list_problems

    found = [
        one
        for one in list_problems()
        if all(word.lower() in f"{one.id} {one.title} {one.source}".lower() for word in words)
    ]
    if print_json("problems", {"problems": [
        {"id": i.id, "title": i.title, "file": str(i.path), "source": i.cite, "where": i.where}
        for i in found
    ]}):  # fmt: skip
        return
    for one in found:
        print_line(one.id)
        for text in (one.title, one.source):
            # a terminal has 80 columns
            for line in textwrap.wrap(text, 80 - len(INDENT)):
                print_line(INDENT + line)
    print_line(f"{len(found)} problems. Solve one with: pmlopt solve PROBLEM")


def _begin_problem(words: tuple[str, ...], output: Path) -> None:
    """Write a problem file of a family to fill in; a file that is there stays."""
    from pmlopt.library.templates import write_template

    if len(words) != 2 or words[0] != "new":
        raise InputError("-o writes a problem file to fill in: give new FAMILY, such as new design")
    disk.get_file_format(output, (".toml",))
    if output.exists():
        raise InputError(f"{output}: is there already: name another file")
    text = write_template(words[1], output.stem)
    disk.atomic_write(output, text.encode(), replace=False)
    print_line(f"{output}: fill it in, and solve it with: pmlopt solve {output}")


@add_command(main, extra=(json_option,))
def bench(
    repeats: Annotated[
        int, "Runs of each, after one to warm up; medians are shown.", click.IntRange(min=1)
    ] = 3,
    only: Annotated[
        tuple[str, ...], "A pattern of names, such as 'robust-*': only these; may be repeated."
    ] = (),
    letters: Annotated[
        tuple[int, ...],
        "A number of letters: linear programs of that size in place of the library; may be repeated.",
        click.IntRange(min=3, max=1000),
    ] = (),
) -> None:
    """Compare problems with their closed forms.

    They are those of the library, or with --letters families of a size.

    Exits with 1 when one disagrees.
    """
    from dataclasses import asdict

    from pmlopt.library.bench import compare_families, compare_instances

    if letters and only:
        raise InputError(
            "--only chooses problems of the library, which --letters does not solve: give one"
        )
    if letters:
        rows = list(compare_families(letters, repeats))
    else:
        instances = _instances_with_closed_forms(only)
        rows = list(
            iterate_with_progress(compare_instances(instances, repeats), len(instances), "solving")
        )
    if not print_json("bench", {"comparisons": [asdict(row) for row in rows]}):
        _print_comparison("LP", [row for row in rows if row.linear])
        _print_comparison("solved", [row for row in rows if not row.linear])
    sys.exit(0 if all(row.holds for row in rows) else CLAIM_FAILS)


def _instances_with_closed_forms(patterns: tuple[str, ...]) -> list[Instance]:
    """Return the problems with a closed form that match given patterns."""
    from fnmatch import fnmatchcase

    from pmlopt.library import load_all

    known = [instance for instance in load_all() if instance.names_closed_form]
    for pattern in patterns:
        if not any(fnmatchcase(instance.id, pattern) for instance in known):
            raise InputError(
                f"--only {pattern!r} matches no problem with a closed form: `pmlopt bench` lists them all"
            )
    return [
        one for one in known if not patterns or any(fnmatchcase(one.id, each) for each in patterns)
    ]


def _print_comparison(solved: str, rows: list[ComparisonRow]) -> None:
    """Print a comparison of solved values with closed forms."""
    if not rows:
        return
    head = ["problem", solved, "", "closed form", "value", f"{solved} - closed", f"{solved} [ms]"]
    print_table(
        [*head, "closed [ms]", "ratio", "agrees"],
        [
            (
                row.id,
                format_number(row.solved_value),
                row.relation,
                row.closed_form,
                format_number(row.closed_value),
                "" if row.difference is None else f"{row.difference:.1e}",
                "" if row.solve_seconds is None else f"{1e3 * row.solve_seconds:.2f}",
                f"{1e3 * row.closed_seconds:.2f}",
                "" if row.ratio is None else f"{row.ratio:.0f}",
                "yes" if row.holds else f"NO {row.problem or ''}",
            )
            for row in rows
        ],
    )
