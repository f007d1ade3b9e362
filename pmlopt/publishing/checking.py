"""The check of a release folder: every claim, and the fit of data to mechanisms."""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.files import disk
from pmlopt.core.numbers.arrays import IntArray, Label, Labels, join_words, make_label_key
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.errors import FileFormatError, InputError
from pmlopt.measures.leakage import bound_level_rounding
from pmlopt.measures.outcomes import list_outcome_warnings, summarize_outcomes
from pmlopt.programs.certificate import Verdict
from pmlopt.programs.claims import FLOATS, Claim
from pmlopt.programs.result import Result
from pmlopt.publishing.folder import (
    DESCRIPTION,
    RELEASED,
    REPORTS,
    SYSTEM,
    ReleaseFile,
    compute_joint_levels,
    digest_folder,
    find_own_file,
    find_regular_file,
    find_release_of,
    restrict_to_occurring,
)
from pmlopt.publishing.order import make_order_claim
from pmlopt.publishing.page import format_factor, render_pages
from pmlopt.publishing.published_laws import StatedCounts, find_unstated_numbers
from pmlopt.publishing.release_fit import (
    FALSE_ALARM_PROBABILITY,
    MIN_TEST_POWER,
    FitTest,
    assess_release_fit,
)
from pmlopt.publishing.rounded_counts import bound_share_distance, choose_rounding_step, round_total
from pmlopt.publishing.signing import is_date
from pmlopt.releases.accounts.attributes import compute_marginal
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables.counting import find_tuples, replace_missing
from pmlopt.tables.reading import Table, find_column, open_table
from pmlopt.tables.streams import CsvFormat
from pmlopt.verification.verify_saved import load_saved, load_with_verdict

BYTES = "bytes"

_IS_BARE = "is a matrix without a certificate, and claims nothing"

NO_EXACT_COUNT = "no exact count"
RAW_ROWS = "no raw rows"

_WHAT_TO_DO = {
    NO_EXACT_COUNT: "ask the releaser where these numbers come from: they may tell counts of the people more "
    "exactly than the description states them",
    "in clear": "what these columns reveal follows from the data only: its owner can repeat the release "
    "with --dry-run, and compare what it prints of columns in clear",
    "households": "the level about a member follows from the data only: its owner can repeat the release "
    "with --dry-run, and compare what it prints",
    "fit": "the shares are those of other people: obtain their file, and compare the outcomes with it",
    RAW_ROWS: "the shares are those of other people: request the test under the rows' own shares",
    _IS_BARE: "the levels above follow from the matrix; for a proof of its requirement, obtain "
    "the saved result, the .json file that pmlopt design writes",
    "report": "check the folder with the version that it names; until then go by release.json, which is "
    "checked here, and not by the report",
    "order": "ask the releaser why the rows have this order, or for a release without --keep-order",
}
"""What a reader does about a claim that the folder does not decide, by its name or its detail."""


def explain_undecided(verdict: Verdict) -> tuple[str, ...]:
    """Return advice for each claim that a release folder leaves undecided."""
    undecided = [one for one in verdict.parts if one.holds is None]
    found = {
        one.name: _WHAT_TO_DO.get(one.name, _WHAT_TO_DO.get(one.detail, one.detail))
        for one in undecided
    }
    return tuple(f"Not checked, {name}: {text}." for name, text in found.items())


def check(folder: str | os.PathLike[str]) -> Verdict:
    """Check every claim of a release folder, from its files only.

    The digest of each file, and that there are no others; the certificate of each mechanism; the levels
    only, with all others, and together, from the matrices and the joint law; the report; the columns and
    labels of the released file; by two tests (`assess_release_fit`) whether its rows can have come from the
    mechanisms; and whether they look sorted (`order`), which refutes a stated random order below a p-value of
    1e-6. The joint law is the releaser's word, and so is what columns in clear reveal. The `warnings` of the
    verdict name outputs that rule out true values, and its `notes` what no folder can show.

    Args:
        folder: that `release` made.

    Raises:
        FileFormatError: it is not the folder of a release, or its description, report or released file
            cannot be read. (A mechanism that cannot be read is a claim that fails.)

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt.publishing import release
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> people = {"ill": ["yes", "no", "no", "no"] * 50}
        >>> place = tempfile.TemporaryDirectory()
        >>> out = pathlib.Path(place.name) / "out"
        >>> _ = release(people, {"ill": response}, out, seed=1)
        >>> [claim.name for claim in check(out).parts if not claim.holds]
        ['mechanisms/ill.json', 'random']

        That matrix has no certificate, and a seed is for tests.

        >>> place.cleanup()
    """
    place = Path(folder)
    if place.is_file():
        inside = find_release_of(place)
        hint = "" if inside is None else f", here `pmlopt check {shlex.quote(str(inside))}`"
        raise FileFormatError(
            f"{folder}: is a file: `pmlopt verify` checks saved results, and this a folder{hint}"
        )
    place = place.resolve()
    find_regular_file(place, DESCRIPTION)
    described = ReleaseFile.read(place)
    if described.date and not is_date(described.date):
        raise FileFormatError(
            f"{folder}: the date {described.date!r:.40} is none: it must be YYYY-MM-DD"
        )
    warnings: list[str] = []
    parts = tuple(_list_claims(place, described, warnings))
    notes = list_unshown_statements(described)
    if not any(one.name == RAW_ROWS for one in parts):
        notes += ("Whether rows of the data were copied: no test of these files would find it.",)
    return Verdict("release", _make_statement(described), parts, tuple(warnings), notes)


def _make_statement(described: ReleaseFile) -> str:
    """Return the claimed guarantee as text, with clear columns first."""
    scope = "under the shares that the releaser states; other releases about the same people are not included"
    if not described.kept:
        return (
            f"claims that all released columns of this folder together leak at most "
            f"{_format_level(described.together)}, {scope}"
        )
    without = f"without them {_format_level(described.together)}"
    if described.level_with_clear_columns is None:
        return f"claims no level with the columns that stay in clear, and {without}, {scope}"
    return (
        f"claims that all released columns of this folder together, with the columns that stay in clear, "
        f"leak at most {_format_level(described.level_with_clear_columns)}, and {without}, {scope}"
    )


def _format_level(level: float) -> str:
    """Format a level in nats, with the factor that it is."""
    return f"{level:.6g} nats (a factor of {format_factor(level)})"


def _list_claims(place: Path, described: ReleaseFile, warnings: list[str]) -> Iterator[Claim]:
    """Yield the checked claims of a release folder, and add warnings on its outputs."""
    yield _check_files(place, described)
    made: list[Mechanism | Result[Any]] = []
    for part in described.parts:
        path = find_own_file(place, part.mechanism)
        if path is None:
            yield Claim(part.mechanism, False, BYTES, "is missing")
            continue
        try:
            found, verdict = load_with_verdict(path)
            one = get_listed_mechanism(found, part.mechanism)
        except FileFormatError as error:
            yield Claim(part.mechanism, False, BYTES, f"cannot be read: {error}")
            continue
        made.append(one)
        if verdict is None:
            yield Claim(part.mechanism, None, FLOATS, _IS_BARE)
            continue
        failed = "; ".join(f"{claim.name}: {claim.detail}" for claim in verdict.failures)
        yield Claim(part.mechanism, verdict.holds, FLOATS, failed or verdict.statement)
    if len(made) < len(described.parts):
        yield Claim("level together", None, FLOATS, "cannot be computed without all mechanisms")
        return
    mechanisms = [one if isinstance(one, Mechanism) else one.mechanism for one in made]
    people = described.count_people(mechanisms)
    yield from _check_levels(described, people, mechanisms)
    if described.step > 1:
        yield _check_stated_numbers(described, people, made)
    yield _check_report(place, described, made)
    warnings += list_revealing_outputs(described, people, mechanisms)
    if described.random != SYSTEM:
        text = f"drawn from {described.random}, by the releaser: a seed undoes the noise"
        yield Claim("random", False, BYTES, text)
    releases = [
        ColumnRelease(one, part.columns)
        for one, part in zip(mechanisms, described.parts, strict=True)
    ]
    yield from _check_released_file(place, described, people, releases)
    if described.kept:
        yield _describe_clear(described)


def _check_stated_numbers(
    described: ReleaseFile, people: IntArray, made: Sequence[Mechanism | Result[Any]]
) -> Claim:
    """Check that the files of the mechanisms tell no other counts than those that are stated."""
    rows = described.rows if described.same_people else int(people.sum())
    found = []
    for place, (part, one) in enumerate(zip(described.parts, made, strict=True)):
        if isinstance(one, Mechanism):  # it has a claim of its own
            continue
        counts = compute_marginal(people, place)
        occurring = np.flatnonzero(counts).tolist()
        labels = [one.mechanism.inputs[row] for row in occurring]
        own = StatedCounts(dict(zip(labels, counts[occurring].tolist(), strict=True)), rows)
        found += [(part.mechanism, finding) for finding in find_unstated_numbers(one, [own])]
    found.sort(key=lambda named: not named[1].certain)
    for name, finding in found:
        return Claim(
            NO_EXACT_COUNT, False if finding.certain else None, FLOATS, f"{name}: {finding}"
        )
    return Claim(NO_EXACT_COUNT, True, FLOATS, "all laws follow from the stated counts")


def _describe_clear(described: ReleaseFile) -> Claim:
    """Describe the levels of clear columns, which cannot be rechecked without data."""
    covered = {*((name,) for name in described.kept), described.kept}
    if not covered <= {one.columns for one in described.in_clear}:
        return Claim(
            "in clear", False, FLOATS, "the levels of some columns in clear are not stated"
        )
    least = described.together - bound_level_rounding(described.together)
    for one in described.in_clear:
        if one.alone < 0 or (
            one.with_release is not None and one.with_release < max(one.alone, least)
        ):
            text = (
                f"{join_words(one.columns)} with the release cannot reveal less than either of them"
            )
            return Claim("in clear", False, FLOATS, text)
    return Claim(
        "in clear",
        None,
        FLOATS,
        "the levels of the columns in clear follow from the data: they are not checked",
    )


def _check_report(
    place: Path, described: ReleaseFile, made: Sequence[Mechanism | Result[Any]]
) -> Claim:
    """Check that the report equals the one rebuilt from description and mechanisms.

    It is rendered anew whatever version it names. Another version may use other words, which is no false
    claim and no proof; each version names the other files by their digests.
    """
    from pmlopt import __version__

    found = [find_own_file(place, name) for name in REPORTS]
    missing = [name for name, path in zip(REPORTS, found, strict=True) if path is None]
    if missing:
        return Claim("report", False, BYTES, f"{join_words(missing)}: missing")
    reports = [disk.read_bytes(path) for path in found if path is not None]
    if reports == list(render_pages(described, made)):
        return Claim("report", True, BYTES, "agrees with the other files")
    text = "differs from what follows from the other files"
    if described.version == __version__:
        return Claim("report", False, BYTES, text)
    text += f", as version {__version__} writes it: it names version {described.version!r:.40}"
    sealed = [digest for name, digest in described.digests.items() if name not in REPORTS]
    names_files = all(digest.encode() in report for report in reports for digest in sealed)
    return Claim("report", None if names_files else False, BYTES, text)


def find_released_data(folder: Path, described: ReleaseFile) -> Path | None:
    """Find the released file or folder; None without one.

    Raises:
        FileFormatError: the name leads out of the folder, or to something else.
    """
    data = folder / described.data
    if described.data == RELEASED and not data.is_symlink() and data.is_dir():
        return data
    return find_own_file(folder, described.data)


def get_listed_mechanism(found: Any, name: str) -> Mechanism | Result[Any]:
    """Return the explicit mechanism of a file; None for other content.

    Raises:
        FileFormatError: it is something else, such as a ledger.
    """
    mechanism = found if isinstance(found, Mechanism) else getattr(found, "mechanism", None)
    if not isinstance(mechanism, Mechanism) or isinstance(mechanism, OrbitMechanism):
        raise FileFormatError(f"{name}: holds no mechanism on letters that are listed")
    return found  # type: ignore[no-any-return]


def load_listed_matrix(path: Path, name: str) -> Mechanism:
    """Load the matrix of a file of the release, whether it is bare or has a certificate.

    Raises:
        FileFormatError: it holds no mechanism on letters that are listed.
    """
    found = get_listed_mechanism(load_saved(path), name)
    return found if isinstance(found, Mechanism) else found.mechanism


def _check_files(place: Path, described: ReleaseFile) -> Claim:
    """Check that the folder contains exactly the files of its digests."""
    found = digest_folder(place)
    told = dict(described.digests)
    within = {name for name in told if name.startswith(f"{described.data}/")}
    own = {*(within or {described.data}), *REPORTS, *(part.mechanism for part in described.parts)}
    wrong = sorted(
        name
        for name in found.keys() | told.keys() | own
        if found.get(name) != told.get(name) or name not in own
    )
    text = f"the {len(own)} files that belong to it match their digests"
    return Claim(
        "files",
        not wrong,
        BYTES,
        text if not wrong else f"changed, missing or unexpected: {join_words(wrong)}",
    )


def _check_levels(
    described: ReleaseFile, people: IntArray, mechanisms: Sequence[Mechanism]
) -> Iterator[Claim]:
    """Yield the claims that recomputed levels are within the stated ones and the total."""
    levels = compute_joint_levels(people, mechanisms)
    for part, alone, each in zip(described.parts, levels.alone, levels.each, strict=True):
        name = " and ".join(part.columns)
        yield _make_upper_claim(f"level of {name} alone", part.alone, alone)
        yield _make_upper_claim(f"level of {name} with all others", part.with_all, each)
    yield _make_upper_claim("level together", described.together, levels.together)
    if (stated := described.household_level) is not None:
        text = f"{stated:.6g} nats about a member are stated; the folder has no households"
        yield Claim("households", None, FLOATS, text, stated)
    if described.total is not None:
        most = max(
            levels.together,
            math.inf
            if described.level_with_clear_columns is None
            else described.level_with_clear_columns,
            described.household_level or 0.0,
        )
        told = ", as stated for the columns in clear" if described.kept else ""
        text = f"{most:.6g} of {described.total:.6g} nats{told}"
        yield Claim("total", most <= described.total, FLOATS, text, described.total, most)


def _make_upper_claim(name: str, claimed: float, found: float) -> Claim:
    """Build the claim that a recomputed number is at most the stated one."""
    holds = found <= claimed + bound_level_rounding(found)
    text = f"{found:.6g} nats, and {claimed:.6g} claimed"
    return Claim(name, bool(holds), FLOATS, text, claimed, found)


def _check_released_file(
    place: Path, described: ReleaseFile, people: IntArray, releases: Sequence[ColumnRelease]
) -> Iterator[Claim]:
    """Check the claims on the released data."""
    written = [name for one in releases for name, _ in one.output_columns]
    data = find_released_data(place, described)
    if data is None:
        yield Claim("columns", False, BYTES, f"{described.data!r:.80} is missing")
        return
    form = CsvFormat(described.delimiter, "utf-8")
    with open_table(data, form) as table:
        told = sorted([*written, *described.kept])
        extra = sorted(set(table.names) ^ set(told)) or (
            table.names if sorted(table.names) != told else []
        )
        text = "as in the description"
        if extra:
            text = f"only in the file or only in the description: {join_words(extra)}"
        yield Claim("columns", not extra, BYTES, text)
        if extra:
            return
        places = [find_column(table.names, name, table.where) for name in written]
        try:
            observed, rows = count_outcomes(table, places, releases)
        except InputError as error:
            yield Claim("labels", False, BYTES, str(error))
            return
    yield _check_rows(described, people, rows)
    fit = assess_described_fit(described, people, releases, observed)
    yield from list_fit_claims(fit, described.same_people)
    yield make_order_claim(data, form, described, written)


def _check_rows(described: ReleaseFile, people: IntArray, rows: int) -> Claim:
    """Check the number of rows, and the plausibility of the stated population.

    The step of rounded counts must be the one that follows from the number of rows, for a larger one would
    excuse shares that the rows do not have.
    """
    stated = int(people.sum())
    agree = rows == described.rows
    counts = f"the stated counts{'' if described.same_people else ', of other people,'}"
    sums = f"sum to {stated:,}"
    if described.step > 1:
        sums = f"are multiples of {described.step}, and {sums}"
    if described.same_people:
        agree &= described.step in (1, choose_rounding_step(rows))
        agree &= stated == round_total(rows, int(np.count_nonzero(people)), described.step)
    claimed = "as claimed" if rows == described.rows else f"and {described.rows:,} claimed"
    return Claim("rows", bool(agree), BYTES, f"{rows:,} rows, {claimed}; {counts} {sums}")


def assess_described_fit(
    described: ReleaseFile,
    people: IntArray,
    releases: Sequence[ColumnRelease],
    observed: Mapping[Labels, int],
) -> FitTest:
    """Test whether released rows can have come from the mechanisms, under the shares that are stated."""
    distance = bound_share_distance(people, described.step) if described.same_people else 0.0
    return assess_release_fit(
        [one.mechanism for one in releases], people / people.sum(), observed,
        same_people=described.same_people, distance=distance,
    )  # fmt: skip


def describe_fit(fit: FitTest, same_people: bool) -> str:
    """Return what the test of all outcomes found, and below what it refuses."""
    value = "1, as correct rows mostly have" if fit.p_value >= 1 else _format_bound(fit.p_value)
    return (
        f"the outcome whose count is least likely has a p-value of {value}, "
        f"{_describe_refusal(same_people)}"
    )


def _describe_refusal(same_people: bool) -> str:
    """Return below which p-value rows are refused, where anything is decided."""
    if not same_people:
        return "under the shares of other people: not decided"
    return f"refused below {FALSE_ALARM_PROBABILITY:g}"


def list_fit_claims(fit: FitTest, same_people: bool) -> Iterator[Claim]:
    """List the statistical fit tests of released rows to the mechanisms."""
    if fit.impossible:
        text = (
            "outcomes that the mechanisms never give: "
            f"{join_words([join_words(one) for one in fit.impossible])}"
        )
        yield Claim("possible", False, FLOATS, text)
    text = describe_fit(fit, same_people)
    yield Claim(
        "fit",
        fit.p_value >= FALSE_ALARM_PROBABILITY if same_people else None,
        FLOATS,
        text,
        None,
        fit.p_value,
    )
    if fit.raw_p_value is None:
        text = "no output is spelled like a value of the column: copied rows would not be outputs"
        yield Claim(RAW_ROWS, True, BYTES, text)
        return
    holds = fit.raw_p_value >= FALSE_ALARM_PROBABILITY if same_people else None
    if fit.detectable is None and holds:  # not even a file of raw rows would be found
        return
    power = ""
    if fit.detectable is not None:
        power = f"; it finds a share of {fit.detectable:.2%} of raw rows with probability {MIN_TEST_POWER:g}"
    text = (
        f"the test for rows copied from the data has a p-value of {_format_bound(fit.raw_p_value)}, "
        f"{_describe_refusal(same_people)}{power}"
    )
    yield Claim(RAW_ROWS, holds, FLOATS, text, None, fit.raw_p_value)


def _format_bound(p_value: float) -> str:
    """Format an upper bound on a p-value."""
    return f"at most {min(p_value, 1.0):.3g}"


def count_outcomes(
    table: Table, places: Sequence[int], releases: Sequence[ColumnRelease]
) -> tuple[dict[Labels, int], int]:
    """Count outcomes and rows of a released file.

    Cells of further places than those of the outputs, such as weights, are appended to the outcomes.

    Raises:
        InputError: a cell is no output of its mechanism.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for batch in table.batches():
        values, codes = find_tuples(batch, places)
        counts.update(
            dict(zip(values, np.bincount(codes, minlength=len(values)).tolist(), strict=True))
        )
    known = [(one, len(one.output_columns), _index_outputs(one)) for one in releases]
    observed: Counter[Labels] = Counter()
    for value, number in counts.items():
        cells = list(replace_missing(value))
        outcome = []
        for release, width, outputs in known:
            own = tuple(cells[:width])
            del cells[: len(own)]
            if (
                found := outputs.get(make_label_key(own), outputs.get(tuple(map(str, own))))
            ) is None:
                raise InputError(
                    f"{table.where}: {join_words(own)} is no output of the mechanism of "
                    f"{join_words(release.columns)}"
                )
            outcome.append(found)
        observed[(*(part[0] for part in outcome), *cells)] += number
    return dict(observed), sum(observed.values())


def _index_outputs(release: ColumnRelease) -> dict[Label, tuple[Label]]:
    """Index a mechanism's outputs by cell tuples and texts."""
    cells = zip(*(labels for _, labels in release.output_columns), strict=True)
    found: dict[Label, tuple[Label]] = {}
    for own, output in zip(cells, release.mechanism.outputs, strict=True):
        found[make_label_key(own)] = found[tuple(map(str, own))] = (output,)
    return found


def list_revealing_outputs(
    described: ReleaseFile, people: IntArray, mechanisms: Sequence[Mechanism]
) -> Iterator[str]:
    """Yield the warnings on outputs that prove or exclude true values, as the report has them.

    Args:
        described: the release.
        people: the stated counts, an axis for each mechanism.
        mechanisms: one for each part.
    """
    for place, (part, mechanism) in enumerate(zip(described.parts, mechanisms, strict=True)):
        found = summarize_outcomes(*restrict_to_occurring(people, place, mechanism))
        for line in list_outcome_warnings(found):
            several = len(mechanisms) > 1
            yield f"{' and '.join(part.columns)}: {line}" if several else line


def list_unshown_statements(described: ReleaseFile) -> tuple[str, ...]:
    """Return what the folder of a release cannot show, whatever is checked.

    Args:
        described: the release.
    """
    named = "nobody is named"
    if described.issuer:
        named = f"{described.issuer!r} is named, which only a signature of the report shows"
    whose = "the people in it" if described.same_people else "other people"
    drawn = ""
    if described.random == SYSTEM:
        drawn = "that the random numbers came from the operating system is stated by the releaser; "
    return (
        f"Who issued it: {named}.",
        f"Whether the stated shares are those of {whose}.",
        f"Whether the rows were drawn by the mechanisms, and not chosen: {drawn}the tests above find only "
        "what is unlikely.",
        "Whether there are other releases about the same people: the levels do not include them.",
    )
