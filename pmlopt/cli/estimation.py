"""The commands that estimate frequencies from released data, and audit samples."""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np

from pmlopt.cli.data_options import DataOptions, MissingCells, PriorFile
from pmlopt.cli.options import (
    CLAIM_FAILS,
    NOT_SOLVED,
    ArgumentNote,
    Json,
    OptionNote,
    add_command,
    main,
)
from pmlopt.cli.printing import format_nats, print_json, print_line, print_table
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.reading import align_prior, read_prior, read_saved_prior
from pmlopt.core.arrays import FloatArray, Label, indices_of
from pmlopt.core.converters import finite_or_none
from pmlopt.core.counts import CountedTuples
from pmlopt.errors import InputError, MechanismError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.prior import Prior
    from pmlopt.releases.estimation import Estimate, GoodnessOfFit, SampledLevel


_Workload: TypeAlias = Annotated[
    str | None,
    OptionNote("identity (each frequency; the default), prefix, range, mean or marginals."),
]
_Confidence: TypeAlias = Annotated[float, OptionNote("With which all intervals hold at once.")]


@add_command(main, "estimate")
def estimate_command(
    mechanism_files: Annotated[tuple[Path, ...], ArgumentNote("MECHANISM...")],
    form: DataOptions,
    counts_file: Annotated[
        Path | None, OptionNote("CSV with a header and two columns: output, count.", "--counts")
    ] = None,
    data: Annotated[
        Path | None,
        OptionNote("Instead: the data (CSV, Parquet or Arrow) with the released column."),
    ] = None,
    columns: Annotated[
        tuple[str, ...],
        OptionNote(
            "With --data: the released column; once for each MECHANISM, or for each part of outputs that are "
            "tuples.",
            "--column",
        ),
    ] = (),
    group_by: Annotated[
        tuple[str, ...],
        OptionNote(
            "With --data or a folder: a column that was left clear; frequencies are of its values, too."
        ),
    ] = (),
    weight_column: Annotated[
        str | None,
        OptionNote("With --data: a column with the weight of each row's person in the sample."),
    ] = None,
    missing: MissingCells = "letter",
    workload: _Workload = None,
    method: Annotated[
        Literal["ml", "linear"], OptionNote("Maximum likelihood, or linear without bias.")
    ] = "ml",
    intervals: Annotated[
        Literal["score", "bernstein", "exact", "wald"],
        OptionNote(
            "The kind: approximate coverage (score, wald), or guaranteed for any number of people."
        ),
    ] = "score",
    confidence: _Confidence = 0.95,
    min_p_value: Annotated[
        float,
        OptionNote("Counts that fit the mechanism with a lower p-value are refused; 0: never."),
    ] = 1e-6,
    posterior: Annotated[
        float | None,
        OptionNote(
            "Instead: means and credible intervals, the prior of MECHANISM being worth so many people."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate frequencies from what was released.

    They are those of the inputs of MECHANISM, from the outputs that it released. Of several columns, each
    released through a MECHANISM of its own, and of those that were left clear it is their cross table.
    MECHANISM may be the folder of a release, which states where its data are; --column then chooses of
    several.
    """
    from pmlopt.publishing.estimating import (
        explain_missing_outputs,
        explain_stated_counts,
        keep_values,
        read_outcomes,
    )
    from pmlopt.releases import compose_attributes
    from pmlopt.releases.estimation import estimate

    folder = (
        mechanism_files[0] if len(mechanism_files) == 1 and mechanism_files[0].is_dir() else None
    )
    sample: dict[str, Any]
    if folder is not None:
        if any((counts_file, data, weight_column)):
            raise InputError(
                f"{folder} has its data: leave out --counts, --data and --weight-column"
            )
        parts, observed = read_outcomes(folder, columns, group_by)
        sample = {"counts": dict(zip(_to_labels(observed), observed.values(), strict=True))}
        mechanism = parts[0] if len(parts) == 1 else compose_attributes(parts)
    else:
        if not any((counts_file, data, columns)):
            raise InputError(explain_missing_outputs(mechanism_files[0]))
        if (counts_file is None) == (data is None) or (data is None) != (not columns):
            raise InputError(
                "give the outputs by --counts FILE, or by --data FILE with --column NAME"
            )
        if (group_by or weight_column) and data is None:
            raise InputError(
                "--group-by and --weight-column name columns of the data: give --data FILE"
            )
        named = [*columns, *group_by, *([weight_column] if weight_column else [])]
        seen = CountedTuples({}, []) if data is None else form.count_tuples(data, named, missing)
        outcomes = list(seen) if counts_file is None else _read_outcomes(counts_file)
        parts = _read_mechanisms(mechanism_files, columns if data else (), outcomes)
        parts += [
            keep_values(name, seen.letters[place])
            for place, name in enumerate(group_by, len(columns))
        ]
        mechanism = parts[0] if len(parts) == 1 else compose_attributes(parts)
        sample = (
            {"counts": counts_file}
            if data is None
            else _read_sample(seen, mechanism, data, bool(weight_column))
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the printed text states it
        found = estimate(
            mechanism, method=method, confidence=confidence, workload=workload, intervals=intervals,
            min_p_value=min_p_value, **sample,
        )  # fmt: skip
    if posterior is None:
        _print_estimate(found, _test_independence(parts, found), as_json)
        if folder is not None and not as_json and (stated := explain_stated_counts(folder)):
            print_line(stated)
    else:
        known = None if folder or len(mechanism_files) > 1 else read_saved_prior(mechanism_files[0])
        _print_posterior(found, known, posterior, as_json)


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
    from pmlopt.core.letter_files import read_letters

    return [
        label if isinstance(label, tuple) else (label,) for label in read_letters(counts_file)[0]
    ]


def _read_sample(
    seen: Mapping[tuple[Label, ...], int], mechanism: Mechanism, data: Path, weighed: bool
) -> dict[str, Any]:
    """Read output counts or weighted outputs from a data file."""
    from pmlopt.data.labelled import LabelledArray

    if weighed:
        return _split_weights(seen, mechanism, data)
    return {"counts": LabelledArray(list(seen.values()), (_to_labels(seen),), str(data), text=True)}


def _print_posterior(found: Estimate, prior: Prior | None, worth: float, as_json: bool) -> None:
    """Print the posterior frequencies and their Dirichlet prior."""
    from pmlopt.releases.estimation.tables import format_estimates

    if prior is not None and prior.labels != found.mechanism.inputs:
        prior = None  # of a table with columns in clear
    after = found.posterior(prior, worth)
    what = "even frequencies" if prior is None else "the prior of the design"
    if as_json:
        print_json("posterior", {
            "people": found.people, "confidence": found.confidence, "prior": what, "worth": worth,
            "estimates": _list_records(after.letters, after.columns),
            "standard_errors": after.error.tolist(),
        })  # fmt: skip
        return
    print_line(
        f"{found.people:,} released values; {what} as the Dirichlet prior, with the weight of {worth:g} more"
    )
    print_line(
        f"Each value is within its interval with a probability of {found.confidence:g}, after these counts."
    )
    print_table(*format_estimates(after.letters, after.columns, after.standard_deviations))


def _test_independence(parts: Sequence[Mechanism], found: Estimate) -> GoodnessOfFit | None:
    """Test two columns for independence; None where the test does not apply."""
    from pmlopt.releases.estimation import independence

    if len(parts) != 2:
        return None
    try:
        return independence(found.counts.reshape([len(part.outputs) for part in parts]))
    except InputError:
        return None


@add_command(main, "people-needed")
def people_needed_command(
    mechanism_file: Annotated[Path, ArgumentNote("MECHANISM")],
    prior_file: PriorFile,
    half_width: Annotated[
        float,
        OptionNote("The largest half-width of the intervals; 0.01 is one in a hundred people."),
    ],
    workload: _Workload = None,
    intervals: Annotated[
        Literal["score", "bernstein", "wald"],
        OptionNote("Those that `pmlopt estimate` is to print."),
    ] = "score",
    confidence: _Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """Compute how many people an estimate needs.

    They are those who release outputs of MECHANISM, if their frequencies are near the prior.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases.estimation import people_needed

    mechanism = Mechanism.load(mechanism_file).with_named_outputs()
    prior = align_prior(read_prior(prior_file), mechanism)
    needed = people_needed(prior, mechanism, half_width, confidence, workload, intervals)
    asked = {"half_width": half_width, "confidence": confidence, "intervals": intervals}
    if as_json:
        print_json("people-needed", {"people": needed, **asked})
        return
    held = f"with a confidence of {confidence:g} ({intervals})"
    print_line(f"{needed} people for half-widths of {half_width:g} {held}")


def _to_labels(keys: Iterable[tuple[Label, ...]]) -> tuple[Label, ...]:
    """Convert value tuples to labels: single values for one column."""
    return tuple(key if len(key) > 1 else key[0] for key in keys)


def _split_weights(
    seen: Mapping[tuple[Label, ...], int], mechanism: Mechanism, path: Path
) -> dict[str, Any]:
    """Split each row into output and weight."""
    labels, numbers = _to_labels(key[:-1] for key in seen), list(seen.values())
    try:
        weights = [float(str(key[-1])) for key in seen]
    except ValueError as cause:
        raise InputError(f"{path}: a weight is no number: {cause}") from None
    places = indices_of(
        labels, mechanism.outputs, f"{path}: the released values", InputError, text=True
    )
    return {
        "released": [mechanism.outputs[place] for place, number in zip(places, numbers, strict=True)
                     for _ in range(number)],
        "weights": np.repeat(weights, numbers),
    }  # fmt: skip


def _print_estimate(found: Estimate, apart: GoodnessOfFit | None, as_json: bool) -> None:
    """Print an estimate with standard errors, and the independence test."""
    from pmlopt.releases.estimation.frequencies import DOUBTFUL
    from pmlopt.releases.estimation.tables import format_estimates

    if as_json:
        same = ("people", "effective", "confidence", "method", "log_likelihood")
        print_json("estimate", {
            **{name: getattr(found, name) for name in same},
            "intervals": found.kind,
            "estimates": _list_records(found.letters, found.columns),
            "covariance": found.covariance.tolist(),
            "fit": {**asdict(found.fit), "statistic": finite_or_none(found.fit.statistic)},
            "independence": None if apart is None else asdict(apart),
        })  # fmt: skip
        return
    alike = (
        ""
        if found.effective == found.people
        else f", as good as {found.effective:,.0f} of equal weight"
    )
    print_line(f"{found.people:,} released values{alike}")
    print_line(
        f"All intervals hold at once with a confidence of {found.describe_confidence()} "
        f"(--intervals {found.kind}), for the population that these people are a sample of."
    )
    fits = "do not fit the mechanism" if found.fit.p_value < DOUBTFUL else "fit the mechanism"
    print_line(
        f"The counts {fits}: by chance they fit as badly or worse with a probability of "
        f"{found.fit.p_value:.3g}."
    )
    if apart is not None:
        print_line(
            f"Independent columns look as dependent with a probability of {apart.p_value:.3g}: "
            "a low one is evidence that they depend on each other."
        )
    print_table(*format_estimates(found.letters, found.columns, found.standard_errors))


def _list_records(
    letters: Sequence[Label], columns: Mapping[str, FloatArray]
) -> list[dict[str, Any]]:
    """Build one record per letter with estimates and interval ends."""
    return [
        {"letter": letter, **{name: float(column[k]) for name, column in columns.items()}}
        for k, letter in enumerate(letters)
    ]


def audit_samples(
    path: Path,
    asked: PrivacyOptions,
    epsilon: float | None,
    confidence: float | None,
    as_json: bool,
) -> None:
    """Bound the level of a black box from a table of counts; exit 1 when a claim is refuted, 3 if open."""
    from pmlopt.data.labelled import read_labelled_table
    from pmlopt.data.prior import Prior
    from pmlopt.releases.estimation import level_from_samples

    if asked.is_robust or asked.privacy_name not in ("pml", "ldp"):
        raise InputError(
            "--from-samples bounds pml and ldp for the given prior: leave the other options out"
        )
    share = 0.95 if confidence is None else confidence
    # the level of ldp does not depend on the prior
    needs_prior = asked.privacy_name != "ldp" or asked.has_prior_file
    prior = asked.read_prior() if needs_prior else None
    counts = read_labelled_table(path, "the counts", MechanismError, absent=0)
    if prior is None:
        letters = counts.axes[0]
        prior = Prior.uniform(len(letters or ()), letters)
    found = level_from_samples(prior, counts, share, asked.privacy_name)  # type: ignore[arg-type]
    decided = None
    if epsilon is not None:
        decided = True if found.confirms(epsilon) else False if found.refutes(epsilon) else None
    _print_level(path, found, epsilon, decided, as_json)
    if epsilon is not None and decided is not True:
        sys.exit(NOT_SOLVED if decided is None else CLAIM_FAILS)


def _print_level(
    path: Path, found: SampledLevel, epsilon: float | None, decided: bool | None, as_json: bool
) -> None:
    """Print a level interval, and its verdict on the claim."""
    if as_json:
        print_json("sample-audit", {
            "measure": found.measure, "min_level": found.lower, "max_level": finite_or_none(found.upper),
            "letter": found.letter, "output": found.output, "samples": sum(found.samples),
            "samples_by_letter": list(found.samples), "confidence": found.confidence,
            "epsilon": epsilon, "holds": decided,
        })  # fmt: skip
        return
    rows = [
        (
            "at least",
            f"{format_nats(found.lower)}, at the letter {found.letter} and the output {found.output}",
        ),
        ("at most", format_nats(found.upper)),
        ("confidence", f"{found.confidence:g}"),
        ("samples", f"{sum(found.samples)}, at least {min(found.samples)} at each letter"),
    ]
    if epsilon is not None:
        words = {
            True: "holds",
            False: "is refuted",
            None: "is neither shown nor refuted: draw more",
        }
        rows.append((f"{found.measure} of at most {epsilon:g}", words[decided]))
    print_table([path.name, ""], rows)
