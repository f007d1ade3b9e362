"""The sources of explorations: designs over levels, builders over grids, and saved sweeps."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from pmlopt.core.files.csv_rows import encode_csv
from pmlopt.core.numbers.arrays import check_real
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.secret import Secret
from pmlopt.errors import InputError, PrivacyError, SweepError
from pmlopt.model.privacy import LDP, PML, Requirement
from pmlopt.model.utility import UtilityLike
from pmlopt.programs.declared_parts import needs_sample
from pmlopt.programs.designs import design
from pmlopt.programs.program import Outputs, Program
from pmlopt.programs.reports.baselines import (
    UtilityMeasure,
    fit_randomized_response,
    make_utility_measure,
)
from pmlopt.programs.solving import certify
from pmlopt.publishing.exploring.accounts import explore_columns, explore_ledger, explore_stream
from pmlopt.publishing.exploring.exploration import CurvePoint, Exploration, ExploredCurve
from pmlopt.publishing.exploring.solved import (
    DEFAULT_HALF_WIDTH,
    ROUNDED_COUNTS,
    SweepAnswers,
    make_point,
    solve_grid,
    warn_of_exact_counts,
)
from pmlopt.publishing.stated_law import build_stated_secret, restate_prior
from pmlopt.releases import Ledger, Stream
from pmlopt.sweeps import Sweep, SweepRow

LEVELS, HIGHEST = 40, 3.0
"""How many levels are solved where no one states, and the highest, in nats."""

BESIDE = ("ldp", "response", "nothing")
"""What a design is compared with: LDP at the same level, randomized response, releasing nothing."""

Builder: TypeAlias = Callable[..., Program[Any]]


@dataclass(frozen=True)
class CopyFormat:
    """The formats in which a point can be copied: command line and Python.

    Attributes:
        command: of a requirement and a level, or "" where no command gives it.
        before: lines that make the files of the command.
        prior, utility: the prior and the utility in Python.
    """

    command: Callable[[Callable[[float], Requirement], float], str]
    before: str
    prior: str
    utility: str


def explore(source: Any, *arguments: Any, **options: Any) -> Exploration:
    """Build an interactive exploration of a trade-off, with certified points.

    What `source` is states what is explored; the arguments after it are those of that function:

        a prior, then a utility          designs over the level, next to LDP and others (`explore_design`)
        a `Secret`, then a utility       the same about a secret (`explore_secret`)
        a `Secret`, a utility, `total`   two columns that are both released (`explore_columns`)
        a builder, or several by name    any programs over a `grid`, such as of records (`explore_builders`)
        a `Sweep`                        one that was solved, with its folder of mechanisms (`explore_sweep`)
        a `Stream`                       the level over time, along `states` (`explore_stream`)
        a `Ledger`                       what is left of its total, by person (`explore_ledger`)

    Each number on the page is one of a certified answer; nothing is interpolated. A notebook shows the page,
    and `save` writes it to one file, which needs no network.

    Raises:
        MissingExtraError: on showing or saving, where vl-convert-python is not installed.
        InputError, SweepError: as for the functions above.

    Examples:
        >>> import math
        >>> seen = explore([0.5, 0.5], "hamming", epsilon=[0.1, 0.2], beside=())
        >>> [round(point.value, 6) for point in seen.curves[0].points]  # 1 - e^epsilon / 2
        [0.447415, 0.389299]
        >>> round(1 - math.exp(0.2) / 2, 6)
        0.389299
    """
    if isinstance(source, Secret):
        return (explore_columns if "total" in options else explore_secret)(
            source, *arguments, **options
        )
    if isinstance(source, Sweep):
        return explore_sweep(source, *arguments, **options)
    if isinstance(source, Stream):
        return explore_stream(source, *arguments, **options)
    if isinstance(source, Ledger):
        return explore_ledger(source, *arguments, **options)
    builders = isinstance(source, Mapping) and source and all(map(callable, source.values()))
    if callable(source) or builders:
        return explore_builders(source, *arguments, **options)
    if not arguments and "utility" not in options:
        raise InputError(
            f"there is no utility, and {type(source).__name__} has no trade-off of its own: give a prior "
            "and a utility; what one mechanism leaks, such as `noise.to_mechanism(prior)`, is measured by "
            "`leakage_level`"
        )
    return explore_design(source, *arguments, **options)


def explore_design(
    prior: PriorLike,
    utility: UtilityLike,
    privacy: Callable[[float], Requirement] = PML,
    epsilon: Sequence[float] | None = None,
    *,
    beside: Sequence[str] = BESIDE,
    outputs: Outputs = None,
    half_width: float = DEFAULT_HALF_WIDTH,
    title: str = "",
    copied: CopyFormat | None = None,
    exact_counts: bool = False,
    **solving: Any,
) -> Exploration:
    """Build the exploration of the best utility as a function of the level.

    Where the prior was estimated from a sample, its counts are rounded as those of a release are, and designs
    are for the rounded shares.

    Args:
        prior: N letters.
        utility: as of `design`.
        privacy: the requirement of a level, such as `PML` or `lambda e: PML(e, about=secret)`.
        epsilon: the levels in nats; left out, `LEVELS` of them up to `HIGHEST`, or to `-log min p`.
        beside: what it is compared with, of `BESIDE`; the last two where the utility is an expected gain or
            loss, or an information by name.
        outputs: as of `design`.
        half_width: of estimated frequencies, for which people are counted.
        title: of the page.
        copied: how a point is stated again; left out, by the prior's numbers.
        exact_counts: state the exact counts of a sample, and design for them.
        solving: options of `sweep`, such as `time_limit`.

    Raises:
        InputError: a name in `beside` is unknown, or the requirement has the exact counts of a sample.
        SweepError: no level could be solved, with the first error.
    """
    given_prior = as_prior(prior)
    levels = epsilon
    p = restate_prior(given_prior, exact_counts)
    strange = [name for name in beside if name not in BESIDE]
    if strange:
        raise InputError(f"beside has {strange[0]!r}: known are {', '.join(BESIDE)}")
    if (
        levels is None
    ):  # up to where PML has no effect, with three digits: a level is copied by hand
        levels = np.round(np.linspace(0, min(p.max_leakage, HIGHEST), LEVELS + 1)[1:], 3).tolist()
    grid = sorted({check_real(level, "a level", PrivacyError) for level in levels})
    if not grid:
        raise PrivacyError("there are no levels: give one at least")
    if not exact_counts and needs_sample(privacy(grid[0])):
        raise InputError(
            "the requirement has the exact counts of a sample (a confidence set, or a joint law of counts), "
            "which are not shown: explore a Secret itself, or give exact_counts=True (--exact-counts)"
        )
    words = copied or make_copy_format(p, utility)
    requirements = [privacy]
    if "ldp" in beside and not isinstance(privacy(grid[0]), LDP):
        requirements.append(LDP)

    def declare_program(
        requirement: Callable[[float], Requirement], epsilon: float
    ) -> Program[Any]:
        return design(p, requirement(epsilon), utility, outputs)

    builders = [partial(declare_program, requirement) for requirement in requirements]
    # complains of what no level is solved with
    first = [built(epsilon=grid[0]) for built in builders]
    answers = [solve_grid(built, {"epsilon": grid}, **solving) for built in builders]
    curves = [
        _make_design_curve(
            type(requirement(grid[0])).__name__, found, half_width, words, requirement
        )
        for requirement, found in zip(requirements, answers, strict=True)
    ]
    compared, worth = _make_baselines(builders[0], answers[0], beside, half_width)
    height = words.utility.strip("'\"")
    about = tuple[str, ...]()
    if worth is not None:
        height = worth.utility_name
        everything = worth.value(worth.everything)
        about = (
            f"Releasing everything, with no privacy, has the {worth.utility_name} {everything:.6g}.",
        )
    if p is not given_prior:
        about = (*about, ROUNDED_COUNTS)
    given = (
        ""
        if privacy in (PML, LDP)
        else "\nprivacy = ...  # the requirement of a level that was explored"
    )
    return Exploration(
        title or f"Explore {height} over privacy", "epsilon [nats]", height, (*curves, *compared),
        "Requirement", "more" if first[0].maximised else "less", about,
        tuple(line for found in answers for line in found.describe_failures),
        warn_of_exact_counts(p),
        before_command=words.before,
        before_python=f"import pmlopt\n\nprior = {words.prior}\nutility = {words.utility}{given}",
    )  # fmt: skip


def explore_secret(
    secret: Secret, utility: UtilityLike, *arguments: Any, **options: Any
) -> Exploration:
    """Build the exploration of the best utility as a function of the level about a secret.

    The table of pairs of a sample is rounded, unless `exact_counts=True`.
    """
    options = {"beside": BESIDE[1:], **options}
    stated = build_stated_secret(secret, options.get("exact_counts", False))
    found = explore_design(
        stated.prior, utility, lambda level: PML(level, about=stated), *arguments, **options
    )
    return found if stated is secret else replace(found, about=(*found.about, ROUNDED_COUNTS))


def explore_builders(
    builders: Builder | Mapping[str, Builder],
    grid: Mapping[str, Sequence[Any]],
    *,
    height: str = "value",
    across: str = "",
    title: str = "",
    half_width: float = DEFAULT_HALF_WIDTH,
    **solving: Any,
) -> Exploration:
    """Build the exploration of arbitrary programs over a grid.

    Args:
        builders: called with a point of the grid, as by `sweep`; or several, each with a name for its curve.
        grid: names with their values; the first is the horizontal axis, and has numbers.
        height: what the value is, with its unit.
        across: what the horizontal axis is, with its unit; left out, the grid's first name.
        title: of the page.
        half_width: of estimated frequencies, for which people are counted.
        solving: options of `sweep`.

    Raises:
        SweepError: as `sweep`, or no point could be solved, with the first error.

    Examples:
        >>> from functools import partial
        >>> from pmlopt import utility
        >>> from pmlopt.programs import best_guaranteed_utility
        >>> worst = partial(best_guaranteed_utility, [0.4, 0.3, 0.2, 0.1], utility.as_utility("absolute"))
        >>> seen = explore(worst, {"epsilon": [0.1, 3.0]}, height="largest error")
        >>> [point.value for point in seen.curves[0].points]
        [2.0, 0.0]
    """
    named = builders if isinstance(builders, Mapping) else {"": builders}
    curves, sense = [], False
    failures: list[str] = []
    warned: tuple[str, ...] = ()
    for name, builder in named.items():
        found = solve_grid(builder, grid, **solving)
        curves += _make_sweep_curves(
            name, found, half_width, f"builders[{name!r}]" if name else "builder"
        )
        failures += found.describe_failures
        warned = warned or found.warnings
        sense = builder(**found.table.rows[0].point).maximised
    return Exploration(
        title or f"Explore {height}",
        across or next(iter(grid)),
        height,
        tuple(curves),
        "Curve",
        "more" if sense else "less",
        failures=tuple(failures),
        warnings=warned,
        before_python=f"import pmlopt\n\n{'builder' if '' in named else 'builders'} = ...  # what was given",
    )


def explore_sweep(
    table: Sweep,
    mechanisms: str | os.PathLike[str] | None = None,
    *,
    height: str = "value",
    across: str = "",
    title: str = "",
    half_width: float = DEFAULT_HALF_WIDTH,
) -> Exploration:
    """Build the exploration of a solved sweep.

    Args:
        table: what `sweep` returned.
        mechanisms: the folder that it wrote its mechanisms to; without one the page has values only.
        height: what the value is, with its unit.
        across: what the horizontal axis is, with its unit; left out, the first name of the grid.
        title: of the page.
        half_width: of estimated frequencies, for which people are counted.

    Raises:
        SweepError: no row has a value, or the folder is that of another sweep.
    """
    found = SweepAnswers.read(table, mechanisms)
    if not any(True for _ in found.solved_rows):
        raise SweepError("no row of the sweep has a value: there is nothing to explore")
    rises = any(
        row.bound is not None and row.bound > row.value
        for row, _ in found.solved_rows
        if row.value is not None
    )
    return Exploration(
        title or f"Explore {height}", across or table.names[0], height,
        tuple(_make_sweep_curves("", found, half_width)), "Curve", "more" if rises else "less",
        failures=found.describe_failures, warnings=found.warnings,
    )  # fmt: skip


def _make_design_curve(
    name: str,
    found: SweepAnswers,
    half_width: float,
    words: CopyFormat,
    requirement: Callable[[float], Requirement],
) -> ExploredCurve:
    """Build the curve of one requirement."""
    points = []
    for row, result in found.solved_rows:
        level = float(row.point["epsilon"])
        made = f"pmlopt.{name}({level!r})" if requirement in (PML, LDP) else f"privacy({level!r})"
        python = f"result = pmlopt.solve(pmlopt.design(prior, {made}, utility))"
        command = words.command(requirement, level)
        points.append(make_point(level, row, result, half_width, command=command, python=python))
    return ExploredCurve(name, tuple(points))


def _make_baselines(
    program: Builder, found: SweepAnswers, beside: Sequence[str], half_width: float
) -> tuple[list[ExploredCurve], UtilityMeasure | None]:
    """Build baseline curves: randomized response, and releasing nothing."""
    curves: dict[str, list[Any]] = {"randomized response": [], "releasing nothing": []}
    worth: UtilityMeasure | None = None
    for row, result in found.solved_rows:
        assert result is not None
        worth = make_utility_measure(result.certificate)
        if worth is None:
            return [], None
        matrices = {
            "response": fit_randomized_response(result.certificate),
            "nothing": worth.nothing,
        }
        for name, (short, matrix) in zip(curves, matrices.items(), strict=True):
            if short in beside and matrix is not None:
                other = certify(program(**row.point), matrix)
                known = SweepRow(
                    row.point, "for comparison", other.value, level=other.level, solver="by formula"
                )
                curves[name].append(
                    make_point(float(row.point["epsilon"]), known, other, half_width)
                )
    notes = ("The same limits, with as little uniform noise as they allow.", "")
    named = zip(curves.items(), notes, strict=True)
    return [
        ExploredCurve(name, tuple(points), note) for (name, points), note in named if points
    ], worth


def _make_sweep_curves(
    name: str, found: SweepAnswers, half_width: float, builder: str = ""
) -> list[ExploredCurve]:
    """Build one curve per combination of the other coordinates."""
    first = found.table.names[0]

    def write_python(row: SweepRow) -> str:
        point = ", ".join(f"{key}={value!r}" for key, value in row.point.items())
        return f"result = pmlopt.solve({builder}({point}))" if builder else ""

    curves: dict[str, list[CurvePoint]] = {}
    for row, result in sorted(found.solved_rows, key=lambda pair: _get_coordinate(pair[0], first)):
        others = [f"{key} = {value}" for key, value in row.point.items() if key != first]
        curve = curves.setdefault(", ".join(filter(None, (name, *others))) or "optimum", [])
        curve.append(
            make_point(
                _get_coordinate(row, first), row, result, half_width, python=write_python(row)
            )
        )
    return [ExploredCurve(said, tuple(points)) for said, points in curves.items()]


def _get_coordinate(row: SweepRow, name: str) -> float:
    """Return a row's real coordinate by name."""
    return check_real(row.point[name], f"the grid's {name}", SweepError)


def make_copy_format(prior: Prior, utility: UtilityLike) -> CopyFormat:
    """Return the copy format of a prior's designs."""
    numbers = prior.counts or prior.probabilities.tolist()
    named = isinstance(utility, str)

    def write_command(privacy: Callable[[float], Requirement], level: float) -> str:
        if not named or privacy not in (PML, LDP):
            return ""
        kind = "ldp" if privacy is LDP else "pml"
        return (
            f"pmlopt design --prior prior.csv --privacy {kind} --epsilon {level!r} "
            f"--utility {shlex.quote(str(utility))} -o mechanism.json"
        )

    counted = "from_weights" if prior.samples is None else "from_counts"
    maker = f"pmlopt.Prior.{counted}" if prior.counts else "pmlopt.Prior"
    return CopyFormat(
        write_command,
        format_prior_command(prior) if named else "",
        f"{maker}({list(numbers)!r}, {list(prior.labels)!r})",
        repr(utility) if named else "...  # the one that was explored",
    )


def format_prior_command(prior: Prior) -> str:
    """Return the shell command that writes a prior to `prior.csv`."""
    numbers = prior.counts or prior.probabilities.tolist()
    head = ("letter", "count" if prior.counts else "probability")
    return _print_csv([head, *zip(prior.labels, numbers, strict=True)], "prior.csv")


def format_pairs_command(secret: Secret) -> str:
    """Return the shell command that writes a joint law's integer counts to `pairs.csv`."""
    rows = zip(secret.values, secret.weights[0].tolist(), strict=True)
    return _print_csv(
        [("", *secret.labels), *((value, *numbers) for value, numbers in rows)], "pairs.csv"
    )


def _print_csv(rows: Sequence[Sequence[Any]], name: str) -> str:
    """Return the shell command that writes rows to a CSV file."""
    text = encode_csv(rows).decode().replace("\\", "\\\\").replace("%", "%%")
    text = text.replace("\n", "\\n").replace("\r", "")
    return f"printf {shlex.quote(text)} > {name}"
