"""The commands that estimate frequencies from released data, and audit samples."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pmlopt.cli.data_options import DataOptions, MissingCells
from pmlopt.cli.exits import prints_json
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, add_command, json_option, refuse_options
from pmlopt.cli.printing import print_json, print_table
from pmlopt.cli.reading import align_prior, read_prior, read_saved_prior
from pmlopt.cli.sample_sizes import BoundOptions
from pmlopt.cli.terminal import print_line
from pmlopt.core.display import pluralize
from pmlopt.core.files.disk import is_standard_stream
from pmlopt.core.files.file_kinds import SURVEY_KINDS
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray, Label
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.prior import Prior
    from pmlopt.publishing.estimating import ReleasedRows
    from pmlopt.releases.estimation import Estimate, GoodnessOfFit
    from pmlopt.releases.estimation.groups import GroupEstimates


_Workload: TypeAlias = Annotated[
    str | None,
    "What is estimated: identity (each frequency; the default), prefix (sums up to each value), range (sums "
    "between values) or mean. Of several columns: marginals (the shares of each column), or chosen tables, "
    "separated by '/': marginals:2/1,2 is the shares of column 2, and the table of columns 1 and 2.",
]
_Confidence: TypeAlias = Annotated[float, "With which all intervals hold at once."]


@light_dataclass(frozen=True, kw_only=True)
class OutcomeOptions(DataOptions):
    """The options of `estimate` on what was released, and on columns in clear beside it."""

    counts_file: Annotated[Path | None, "CSV with a header and two columns: output, count."] = None
    data: Annotated[
        Path | None, "Instead: the data (CSV, Parquet or Arrow) with the released column."
    ] = None
    columns: Annotated[
        tuple[str, ...],
        "With --data: the released column; once for each MECHANISM, or for each part of outputs that are "
        "tuples.",
        "--column",
    ] = ()
    missing: MissingCells = "letter"
    group_by: Annotated[
        tuple[str, ...],
        "With --data or a folder: a column that was left clear; frequencies are of its values, too.",
    ] = ()
    within: Annotated[
        str | None,
        "With --data or a folder: shares are those within each value of this clear column.",
    ] = None
    weight_column: Annotated[
        str | None, "With --data or a folder: a clear column with the weight of each row's person."
    ] = None

    @property
    def clear_names(self) -> list[str]:
        """Return all columns in clear, the group and the weight last."""
        beside = (self.within, self.weight_column)
        return [*self.group_by, *(name for name in beside if name is not None)]

    def read(self, mechanism_files: Sequence[Path]) -> tuple[list[Mechanism], ReleasedRows | None]:
        """Read the mechanisms, and the rows of the folder or of the data; None for a file of counts."""
        from pmlopt.publishing.estimating import (
            ReleasedRows,
            explain_missing_outputs,
            keep_values,
            read_outcomes,
        )

        counts_file, data, columns = self.counts_file, self.data, self.columns
        if is_folder(mechanism_files):
            if counts_file is not None or data is not None:
                raise InputError(
                    f"{mechanism_files[0]} has its data: leave out --counts and --data"
                )
            parts, rows = read_outcomes(
                mechanism_files[0],
                columns,
                self.group_by,
                self.within,
                self.weight_column,
                self.missing,
            )
            if rows.left_out:
                print_line(rows.left_out, err=True)
            return parts, rows
        if not any((counts_file, data, columns)):
            raise InputError(explain_missing_outputs(mechanism_files[0]))
        if (counts_file is None) == (data is None) or (data is None) != (not columns):
            raise InputError(
                "give the outputs by --counts FILE, or by --data FILE with --column NAME"
            )
        if counts_file is not None:
            return _read_mechanisms(mechanism_files, (), _read_outcomes(counts_file)), None
        assert data is not None
        names = [*columns, *self.clear_names]
        seen = self.count_tuples(data, names, self.missing, self.weight_column)
        parts = _read_mechanisms(mechanism_files, columns, list(seen))
        letters = dict(zip(self.clear_names, seen.letters[len(columns) :], strict=True))
        parts += [keep_values(name, letters[name]) for name in self.group_by]
        groups = None if self.within is None else letters[self.within]
        return parts, ReleasedRows(seen, str(data), groups, self.weight_column is not None)


def is_folder(mechanism_files: Sequence[Path]) -> bool:
    """Return whether the one path is that of the folder of a release."""
    return len(mechanism_files) == 1 and mechanism_files[0].is_dir()


@add_command(main, "estimate", extra=(json_option,))
def estimate_command(
    mechanism_files: Annotated[tuple[Path, ...], ArgumentNote("MECHANISM...")],
    seen: OutcomeOptions,
    workload: _Workload = None,
    method: Annotated[
        Literal["ml", "linear"], "Maximum likelihood, or linear without bias."
    ] = "ml",
    intervals: Annotated[
        Literal["score", "bernstein", "exact", "wald"],
        "The kind: approximate coverage (score, wald), or guaranteed for any number of people.",
    ] = "score",
    confidence: _Confidence = 0.95,
    min_p_value: Annotated[
        float, "Counts that fit the mechanism with a lower p-value are refused; 0: never."
    ] = 1e-6,
    posterior: Annotated[
        float | None,
        "Instead: means and credible intervals, the prior of MECHANISM being worth so many people.",
    ] = None,
    formula: Annotated[
        str | None,
        "Instead: a regression on the columns of a folder, such as 'smokes ~ age + C(region)'.",
    ] = None,
) -> None:
    """Estimate frequencies from what was released.

    They are those of the inputs of MECHANISM, from the outputs that it released. Of several columns, each
    released through a MECHANISM of its own, and of those that were left clear it is their cross table.
    MECHANISM may be the folder of a release, which states where its data are; --column then chooses of
    several.
    """
    from pmlopt.publishing.estimating import explain_fit, explain_stated_counts, make_estimate_namer
    from pmlopt.releases import compose_attributes
    from pmlopt.releases.estimation import estimate
    from pmlopt.releases.estimation.groups import estimate_within

    for file in mechanism_files:
        if not (is_standard_stream(file) or file.exists()):
            raise InputError(f"{file}: there is no such file or folder")
    of_folder = is_folder(mechanism_files)
    refuse_options(
        (seen.clear_names and not of_folder and seen.data is None,
         "--group-by, --within and --weight-column name columns of the data: give --data FILE, or the "
         "folder of a release"),
        (seen.within is not None and posterior is not None,
         "--posterior is of all people: leave out --within"),
    )  # fmt: skip
    if formula is not None:
        others = (
            *(seen.counts_file, seen.data, seen.columns, seen.group_by, seen.within),
            *(workload, posterior),
        )
        is_plain = (method, intervals, min_p_value) == ("ml", "score", 1e-6)
        if not (of_folder and is_plain) or any(others):
            raise InputError(
                "--formula is of the columns of a release: give its folder, and of the other options only "
                "--weight-column, --missing drop, --confidence and --json"
            )
        options: dict[str, Any] = {"confidence": confidence, "drop_missing": seen.missing == "drop"}
        _print_model(mechanism_files[0], formula, seen.weight_column, options)
        return
    parts, rows = seen.read(mechanism_files)
    name_letter: Callable[[Label], Label] = lambda letter: letter  # noqa: E731
    if of_folder:
        name_letter = make_estimate_namer(
            mechanism_files[0], seen.columns, seen.group_by, seen.within
        )
    _mention_weights(rows, seen.weight_column)
    mechanism = parts[0] if len(parts) == 1 else compose_attributes(parts)
    options = {
        "method": method, "confidence": confidence, "workload": workload, "intervals": intervals,
        "min_p_value": min_p_value,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the printed text states it
        if seen.within is not None:
            assert rows is not None
            samples = {
                group: part.make_sample(mechanism) for group, part in rows.split_by_group().items()
            }
            groups = estimate_within(mechanism, samples, **options)
            _print_groups(seen.within, groups, name_letter)
            return
        sample = {"counts": seen.counts_file} if rows is None else rows.make_sample(mechanism)
        found = estimate(mechanism, **sample, **options)
    if posterior is None:
        is_told = of_folder and not prints_json()
        fit = explain_fit(mechanism_files[0]) if is_told and not seen.clear_names else ""
        _print_estimate(found, _test_independence(parts, found), name_letter, fit)
        if is_told and (stated := explain_stated_counts(mechanism_files[0])):
            print_line(stated)
    else:
        several = of_folder or len(mechanism_files) > 1
        known = None if several else read_saved_prior(mechanism_files[0])
        _print_posterior(found, known, posterior, name_letter)


def _mention_weights(rows: ReleasedRows | None, weight_column: str | None) -> None:
    """Print that people of a survey file count alike without a column of weights: it names none."""
    if rows is None or weight_column is not None:
        return
    if Path(rows.where).suffix.lower() in SURVEY_KINDS:
        said = "every row counts once; name a column of weights by --weight-column"
        print_line(f"{rows.where}: {said}", err=True)


def _print_model(
    folder: Path, formula: str, weight_column: str | None, options: dict[str, Any]
) -> None:
    """Fit a regression to the columns of a release, and print it."""
    from pmlopt.publishing.estimating import model_release

    found = model_release(folder, formula, weight_column, **options)
    if not prints_json():
        print_line(found.title)
        print_line(found.describe_confidence())
        print_table(*found.format_rows())
        for line in found.warnings:
            print_line(f"Warning: {line}")
        return
    print_json("model", {
        "formula": found.formula, "family": found.family, "response_letters": list(found.letters),
        "people": found.people, "confidence": found.confidence, "robust": found.robust,
        "log_likelihood": found.log_likelihood,
        "coefficients": [
            {"name": name, **{key: float(column[k]) for key, column in found.columns.items()}}
            for k, name in enumerate(found.names)
        ],
        "covariance": found.covariance.tolist(),
        "warnings": list(found.warnings),
    })  # fmt: skip


def _read_mechanisms(
    mechanism_files: Sequence[Path],
    columns: Sequence[str],
    outcomes: Sequence[tuple[Label, ...]],
) -> list[Mechanism]:
    """Read the mechanism of each released column from files."""
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases.estimation.released_outputs import match_output_labels

    parts = [
        match_output_labels(
            Mechanism.load(file), [key[place] for key in outcomes if place < len(key)]
        )
        for place, file in enumerate(mechanism_files)
    ]
    if len(parts) > 1 and columns and len(columns) != len(parts):
        raise InputError(f"give --column for each of the {len(parts)} mechanisms, in their order")
    return parts


def _read_outcomes(counts_file: Path) -> list[tuple[Label, ...]]:
    """Read the outcome tuples of a counts file."""
    from pmlopt.core.files.letter_files import read_letters

    return [
        label if isinstance(label, tuple) else (label,) for label in read_letters(counts_file)[0]
    ]


def _print_posterior(
    found: Estimate,
    prior: Prior | None,
    worth: float,
    name_letter: Callable[[Label], Label],
) -> None:
    """Print the posterior frequencies and their Dirichlet prior."""
    from pmlopt.releases.estimation.tables import format_estimates

    if prior is not None and prior.labels != found.mechanism.inputs:
        prior = None  # of a table with columns in clear
    after = found.posterior(prior, worth)
    what = "even frequencies" if prior is None else "the prior of the design"
    if print_json("posterior", {
        "people": found.people, "confidence": found.confidence, "prior": what, "worth": worth,
        "estimates": _list_records(after.letters, after.columns),
        "standard_errors": after.error.tolist(),
    }):  # fmt: skip
        return
    print_line(
        f"{found.people:,} released values; {what} as the Dirichlet prior, with the weight of {worth:g} more"
    )
    print_line(
        f"Each value is within its interval with a probability of {found.confidence:g}, after these counts."
    )
    letters = list(map(name_letter, after.letters))
    print_table(*format_estimates(letters, after.columns, after.standard_deviations))


def _test_independence(parts: Sequence[Mechanism], found: Estimate) -> GoodnessOfFit | None:
    """Test two columns for independence; None where the test does not apply."""
    from pmlopt.releases.estimation import independence

    if len(parts) != 2:
        return None
    try:
        return independence(found.counts.reshape([len(part.outputs) for part in parts]))
    except InputError:
        return None


@add_command(main, "people-needed", extra=(json_option,))
def people_needed_command(
    bound: BoundOptions,
    mechanism_file: Annotated[Path | None, ArgumentNote("MECHANISM")] = None,
    prior_file: Annotated[
        Path | None, "CSV with a header and two columns: letter, and count or probability."
    ] = None,
    half_width: Annotated[
        float | None, "The largest half-width of the intervals; 0.01 is one in a hundred people."
    ] = None,
    against_file: Annotated[
        Path | None,
        "Instead of --half-width: such a file of another group, whose share of --letter differs.",
    ] = None,
    letter: Annotated[str | None, "With --against: the letter whose shares are compared."] = None,
    power: Annotated[float, "With --against: with which the difference is found."] = 0.8,
    for_bound: Annotated[
        bool, "Instead, of a bound on the true law: two of three options are given."
    ] = False,
    workload: _Workload = None,
    intervals: Annotated[
        Literal["score", "bernstein", "wald"], "Those that `pmlopt estimate` is to print."
    ] = "score",
    confidence: _Confidence = 0.95,
) -> None:
    """Compute how many people an estimate needs.

    They are those who release outputs of MECHANISM, if their frequencies are near the prior.

    With --for-bound give two of --samples, --target and --confidence-delta to compute the third. A mechanism
    of level epsilon under the empirical distribution has at most the target level under the true one, except
    with the probability --confidence-delta over the sample.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases.estimation import people_needed

    if for_bound:
        if mechanism_file is not None or prior_file is not None or half_width is not None:
            raise InputError(
                "--for-bound is of no mechanism: leave out MECHANISM, --prior and --half-width"
            )
        bound.print_third()
        return
    if bound != BoundOptions():
        raise InputError(
            "--letters, --epsilon and what is with them belong to --for-bound: give it"
        )
    is_comparison = against_file is not None
    if mechanism_file is None or prior_file is None or (half_width is None) != is_comparison:
        raise InputError(
            "give MECHANISM, --prior and --half-width or --against FILE, or --for-bound"
        )
    if (letter is None) == is_comparison:
        raise InputError("--against and --letter go together: the letter whose shares are compared")
    mechanism = Mechanism.load(mechanism_file).with_named_outputs()
    prior = align_prior(read_prior(prior_file), mechanism)
    if against_file is not None and letter is not None:
        other = align_prior(read_prior(against_file), mechanism)
        _print_comparison(mechanism, prior, other, letter, power, confidence)
        return
    assert half_width is not None
    needed = people_needed(prior, mechanism, half_width, confidence, workload, intervals)
    asked = {"half_width": half_width, "confidence": confidence, "intervals": intervals}
    if print_json("people-needed", {"people": needed, **asked}):
        return
    held = f"with a confidence of {confidence:g} ({intervals})"
    print_line(f"{needed} people for half-widths of {half_width:g} {held}")


def _print_comparison(
    mechanism: Mechanism,
    first: Prior,
    second: Prior,
    letter: str,
    power: float,
    confidence: float,
) -> None:
    """Print how many people find that two groups differ: by the shares of a letter, and by their odds."""
    from pmlopt.core.numbers.arrays import parse_labels
    from pmlopt.releases.estimation import people_to_compare

    label = letter if letter in first.labels else parse_labels([letter])[0]
    scales: tuple[Literal["difference"], Literal["odds-ratio"]] = ("difference", "odds-ratio")
    by_scale = {
        scale: people_to_compare(
            first, second, mechanism, label, power=power, scale=scale, confidence=confidence
        )
        for scale in scales
    }
    shares = [float(law.pmf[law.labels.index(label)]) for law in (first, second)]
    odds = [share / (1 - share) for share in shares]
    if print_json("people-to-compare", {
        "compared": label, "shares": shares, "odds_ratio": odds[1] / odds[0], "power": power,
        "confidence": confidence, "people": by_scale["difference"],
        "people_for_odds_ratio": by_scale["odds-ratio"],
    }):  # fmt: skip
        return
    print_line(
        f"{by_scale['difference']} people, half in each group, find with a power of {power:g} that the share "
        f"of {letter} is {shares[0]:g} in one and {shares[1]:g} in the other; an odds ratio of "
        f"{odds[1] / odds[0]:.3g} takes {by_scale['odds-ratio']} (confidence {confidence:g})"
    )


def _make_record(found: Estimate) -> dict[str, Any]:
    """Return an estimate as plain data."""
    same = ("people", "effective", "confidence", "method", "log_likelihood")
    return {
        **{name: getattr(found, name) for name in same},
        "intervals": found.kind,
        "estimates": _list_records(found.letters, found.columns),
        "covariance": found.covariance.tolist(),
        "fit": asdict(found.fit),
        "warnings": list(found.warnings),
    }


def _print_estimate(
    found: Estimate,
    apart: GoodnessOfFit | None,
    name_letter: Callable[[Label], Label],
    fit: str,
) -> None:
    """Print an estimate with standard errors, whether the counts fit, and the independence test."""
    if prints_json():
        independence = None if apart is None else asdict(apart)
        print_json("estimate", {**_make_record(found), "independence": independence})
        return
    _print_people([found], "")
    _print_intervals(found, found.describe_confidence())
    if fit:
        print_line(fit)
    else:
        _print_fit(found, "")
    if apart is not None:
        print_line(
            f"Independent columns look as dependent with a probability of {apart.p_value:.3g}: "
            "a low one is evidence that they depend on each other."
        )
    _print_table(list(map(name_letter, found.letters)), found.columns)
    for line in found.warnings:
        print_line(f"Warning: {line}")


def _print_groups(
    column: str, found: GroupEstimates, name_letter: Callable[[Label], Label]
) -> None:
    """Print the estimates within groups."""
    from pmlopt.releases.estimation.tables import format_label

    groups = list(found.groups.values())
    if print_json("group-estimates", {
        "within": column, "confidence": found.confidence, "people": sum(one.people for one in groups),
        "groups": [{"group": group, **_make_record(one)} for group, one in found.groups.items()],
    }):  # fmt: skip
        return
    _print_people(groups, f" in {pluralize(len(groups), 'group')} by {column!r}")
    _print_intervals(groups[0], groups[0].describe_confidence(found.confidence))
    _print_fit(min(groups, key=lambda one: one.fit.p_value), " of each group")
    _print_table(list(map(name_letter, found.letters)), found.columns)
    for group, one in found.groups.items():
        for line in one.warnings:
            print_line(f"Warning: {column} {format_label(group)}: {line}")


def _print_people(estimates: Sequence[Estimate], where: str) -> None:
    """Print how many values were released, and what weights leave of them."""
    people, effective = (
        sum(getattr(one, name) for one in estimates) for name in ("people", "effective")
    )
    alike = "" if effective == people else f", as good as {effective:,.0f} of equal weight"
    print_line(f"{people:,} released values{where}{alike}")


def _print_intervals(found: Estimate, confidence: str) -> None:
    """Print what the intervals hold for."""
    print_line(
        f"All intervals hold at once with a confidence of {confidence} "
        f"(--intervals {found.kind}), for the population that these people are a sample of."
    )


def _print_fit(found: Estimate, of_what: str) -> None:
    """Print whether the counts fit the mechanism."""
    from pmlopt.releases.estimation.frequencies import DOUBTFUL

    fits = "do not fit the mechanism" if found.fit.p_value < DOUBTFUL else "fit the mechanism"
    least = ", the least one" if of_what else ""
    print_line(
        f"The counts{of_what} {fits}: by chance they fit as badly or worse with a probability of "
        f"{found.fit.p_value:.3g}{least}."
    )


def _print_table(letters: Sequence[Label], columns: Mapping[str, FloatArray]) -> None:
    """Print estimates with their standard errors and intervals."""
    from pmlopt.releases.estimation.tables import format_estimates

    print_table(*format_estimates(letters, columns, columns["standard_error"]))


def _list_records(
    letters: Sequence[Label], columns: Mapping[str, FloatArray]
) -> list[dict[str, Any]]:
    """Build one record per letter with estimates and interval ends."""
    return [
        {"letter": letter, **{name: float(column[k]) for name, column in columns.items()}}
        for k, letter in enumerate(letters)
    ]
