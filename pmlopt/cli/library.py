"""Commands for least leakage, worst cases, the problem library and sample sizes."""

from __future__ import annotations

import math
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from pmlopt.cli.data_options import ColumnOptions, PriorFile
from pmlopt.cli.options import (
    CLAIM_FAILS,
    NOT_SOLVED,
    ArgumentNote,
    Json,
    OptionNote,
    SolveOptions,
    add_command,
    exit_code_of,
    main,
)
from pmlopt.cli.printing import (
    format_nats,
    format_number,
    iterate_with_progress,
    print_json,
    print_line,
    print_table,
    show_status,
    solve_in_turn,
)
from pmlopt.cli.privacy_options import PriorSetOptions, PrivacyOptions
from pmlopt.cli.published_priors import RoundCounts, read_published_law
from pmlopt.cli.reading import (
    LinearName,
    Minimise,
    Outputs,
    UtilityName,
    read_linear_utility,
    read_outputs,
    read_utility,
)
from pmlopt.cli.targets import TARGET
from pmlopt.core import files
from pmlopt.core.converters import finite_or_none
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.library import Instance
    from pmlopt.library.bench import ComparisonRow
    from pmlopt.model.uncertainty import PriorSet
    from pmlopt.programs.program import Program


INDENT = "    "


@add_command(main)
def problems(
    words: Annotated[tuple[str, ...], ArgumentNote("[WORDS]...")] = (),
    output: Annotated[
        Path | None,
        OptionNote("With new FAMILY: the problem file to write (.toml).", "-o/--output", TARGET),
    ] = None,
    as_json: Json = False,
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
    if as_json:
        print_json("problems", {"problems": [
            {"id": i.id, "title": i.title, "file": str(i.path), "source": i.cite, "where": i.where}
            for i in found
        ]})  # fmt: skip
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
    files.get_file_format(output, (".toml",))
    if output.exists():
        raise InputError(f"{output}: is there already: name another file")
    text = write_template(words[1], output.stem)
    files.atomic_write(output, text.encode(), replace=False)
    print_line(f"{output}: fill it in, and solve it with: pmlopt solve {output}")


@add_command(main)
def bench(
    repeats: Annotated[
        int,
        OptionNote(
            "Runs of each, after one to warm up; medians are shown.", type=click.IntRange(min=1)
        ),
    ] = 3,
    only: Annotated[
        tuple[str, ...],
        OptionNote("A pattern of names, such as 'robust-*': only these; may be repeated."),
    ] = (),
    letters: Annotated[
        tuple[int, ...],
        OptionNote(
            "A number of letters: linear programs of that size in place of the library; may be repeated.",
            type=click.IntRange(min=3, max=1000),
        ),
    ] = (),
    as_json: Json = False,
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
    if as_json:
        print_json("bench", {"comparisons": [asdict(row) for row in rows]})
    else:
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


@add_command(main, "least-leakage")
def least_leakage(
    asked: PrivacyOptions,
    utility_name: UtilityName,
    run: SolveOptions,
    minimise: Minimise = False,
    target: Annotated[
        float | None,
        OptionNote(
            "The target: what a gain or an information is at least, and a loss or an error at most."
        ),
    ] = None,
    expected: Annotated[
        float | None, OptionNote("The same of an expected gain or loss; with --worst both hold.")
    ] = None,
    worst: Annotated[
        float | None,
        OptionNote("PML only: the same for every letter and output that can occur together."),
    ] = None,
    outputs: Outputs = None,
    round_counts: RoundCounts = False,
) -> None:
    """Find the least level that allows a utility.

    It is the least level of the requirement, in nats, at which the utility can be promised; PML where
    --privacy is left out.
    """
    from pmlopt.programs.least_leakage.program import least_leakage as build

    run.check()
    prior, secret = read_published_law(asked, round_counts)
    privacy = asked.build_requirement(0.0, prior, asked.read_fields(prior, secret))
    utility, columns = read_utility(utility_name, minimise, prior)
    letters = read_outputs(outputs, prior.labels) if outputs is not None else columns
    run.solve_and_exit(
        lambda: build(
            prior, privacy, utility, target, expected=expected, worst=worst, outputs=letters
        ),
        f"Least leakage for {asked.title}",
    )


@add_command(main, "worst-case")
def worst_case(
    prior_file: PriorFile,
    source: ColumnOptions,
    utility_name: LinearName,
    around: PriorSetOptions,
    run: SolveOptions,
    minimise: Minimise = False,
    ties: Annotated[
        Literal["first", "grouped"],
        OptionNote("Equal utilities: the first output ranks lower, or they rank together."),
    ] = "first",
    threshold: Annotated[
        int | None, OptionNote("No output below this rank; left out, a table of all.")
    ] = None,
    epsilon: Annotated[
        float | None, OptionNote("The highest threshold within this PML level, in nats.")
    ] = None,
) -> None:
    """Release no output of a low rank.

    Rank 1 is each letter's worst output, and the highest rank its best.
    """
    from pmlopt.model.utility.orders import utility_order
    from pmlopt.programs.least_leakage.program import worst_case_utility
    from pmlopt.programs.worst_case.program import best_worst_case

    if threshold is not None and epsilon is not None:
        raise InputError("--threshold and --epsilon both determine the rank: give one")
    around.check()
    run.check()
    prior = source.read_law(prior_file)
    over = around.build_prior_set(prior, prior)
    utility, columns = read_linear_utility(utility_name, minimise, prior)
    outputs = prior.labels if columns is None else tuple(columns)
    order = utility_order(utility.evaluate_gains(prior.labels, outputs), ties)

    if threshold is None and epsilon is None:
        _print_thresholds(prior, order, over, run)
        return

    def declare_program() -> Program[Any]:
        if epsilon is not None:
            return best_worst_case(prior, order, epsilon, outputs, over)
        assert threshold is not None
        return worst_case_utility(prior, order, threshold, outputs, over)

    result = run.solve_and_write(declare_program)
    kept = threshold if threshold is not None else int(result.value)
    rows = [("threshold", f"{kept} of {len(outputs)}")]
    known: dict[str, Any] = {"threshold": kept}
    if epsilon is not None:
        beyond = result.certificate.next_bound
        why = "none" if math.isinf(beyond) else f"leaks at least {format_nats(beyond)}"
        why = f"{result.bound:.0f} is not ruled out at {epsilon!r}" if result.gap > 0 else why
        rows.append(("next threshold", why))
        known |= {"next_bound": finite_or_none(beyond), "proved": result.gap == 0}
    run.print_answer(result, f"Worst case for {prior_file.name}", rows, known)
    sys.exit(exit_code_of(result))


def _print_thresholds(prior: Any, order: Any, over: PriorSet | None, run: SolveOptions) -> None:
    """Print the least leakage of every threshold, in descending order with warm starts."""
    from pmlopt.programs.least_leakage.certificate import find_highest_rank
    from pmlopt.programs.least_leakage.program import worst_case_utility

    if run.output is not None or run.mps is not None or run.plot is not None:
        raise InputError(
            "a table of all thresholds has no one mechanism to write: give --threshold"
        )
    ranks = range(find_highest_rank(order, over), 0, -1)
    with show_status("solving", run.as_json):
        outputs = order.shape[1]
        programs = (
            worst_case_utility(prior, order, threshold, outputs, over) for threshold in ranks
        )
        rows = list(zip(ranks, solve_in_turn(programs, **run.solve_arguments), strict=True))[::-1]
    closed = range(len(rows) + 1, find_highest_rank(order) + 1)
    if run.as_json:
        names = ("value", "bound", "gap")
        print_json("curve", {"curve": [
            {"threshold": threshold, "status": result.status.value, **{n: getattr(result, n) for n in names}}
            for threshold, result in rows
        ]})  # fmt: skip
    else:
        print_table(["threshold", "least leakage", "gap", "status"], [
            (str(threshold), format_nats(result.value), f"{result.gap:.1e}", result.status.value)
            for threshold, result in rows
        ] + [(str(threshold), "none is finite", "", "") for threshold in closed])  # fmt: skip
    sys.exit(max((exit_code_of(result) for _, result in rows), default=NOT_SOLVED))
