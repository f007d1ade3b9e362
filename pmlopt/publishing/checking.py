"""Check the folder of a release: every claim again, and whether the file came from the mechanisms."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.arrays import IntArray, Label, few
from pmlopt.core.labels import label_key, places_of
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.tables.counting import tuples_of, with_letter
from pmlopt.data.tables.reading import Table, column_place, open_table
from pmlopt.errors import FileFormatError, InputError, PmloptError
from pmlopt.measures.leakage import level_rounding
from pmlopt.programs.certificate import FLOATS, Claim, Verdict
from pmlopt.publishing.fit import FALSE_ALARMS, POWER, Fit, fit_of_release
from pmlopt.publishing.folder import ReleaseFile, digests_of
from pmlopt.releases.applying import ColumnRelease
from pmlopt.releases.attributes import attribute_levels
from pmlopt.releases.joint import check_size
from pmlopt.verification.verifying import read_saved, trusted_mechanism, verify_file

BYTES = "bytes"


def check(folder: str | os.PathLike[str]) -> Verdict:
    """Decide every claim of a release again, from its folder alone.

    The digest of each file; the certificate of each mechanism; the levels alone, with all others, and
    together, from the matrices and the joint law; the columns and labels of the released file; and by two
    tests (`fit_of_release`) whether its rows can have come from the mechanisms.

    Args:
        folder: that `release` made.

    Raises:
        FileFormatError: it is not the folder of a release, or a file in it cannot be read.

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt.publishing import release
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> people = {"ill": ["yes", "no", "no", "no"] * 50}
        >>> place = tempfile.TemporaryDirectory()
        >>> out = pathlib.Path(place.name) / "out"
        >>> _ = release(people, {"ill": response}, out, seed=1)
        >>> [claim.name for claim in check(out).parts if not claim.holds]
        ['mechanisms/ill.json']

        That matrix has no certificate: it claims nothing by itself, and what is released by it does.

        >>> place.cleanup()
    """
    place = Path(folder)
    described = ReleaseFile.read(place)
    mechanisms = [trusted_mechanism(_inside(place, part.mechanism)) for part in described.parts]
    return Verdict(
        "release",
        f"all releases together leak at most {described.together:.6g} nats",
        tuple(_claims(place, described, mechanisms)),
    )


def _claims(place: Path, described: ReleaseFile, mechanisms: Sequence[Mechanism]) -> Iterator[Claim]:
    yield _digests(place, described)
    for part in described.parts:
        yield from _certificate(place, part.mechanism)
    yield from _levels(described, mechanisms)
    releases = [
        ColumnRelease(one, part.columns) for one, part in zip(mechanisms, described.parts, strict=True)
    ]
    yield from _file(place, described, releases)
    if described.in_clear:
        text = "what the columns in clear tell needs the data: it is not checked"
        yield Claim("in clear", None, FLOATS, text)


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise FileFormatError(f"{folder}: names a file outside of it: {name!r}")
    return path


def _digests(place: Path, described: ReleaseFile) -> Claim:
    found, said = digests_of(place), dict(described.digests)
    wrong = sorted(name for name in found.keys() | said.keys() if found.get(name) != said.get(name))
    text = (
        f"all {len(said)} files are as they were" if not wrong else f"changed, new or missing: {few(wrong)}"
    )
    return Claim("files", not wrong, BYTES, text)


def _certificate(place: Path, name: str) -> Iterator[Claim]:
    try:
        read_saved(place / name)
    except FileFormatError:
        yield Claim(name, None, FLOATS, "is a matrix without a certificate: it claims nothing by itself")
        return
    verdict = verify_file(place / name)
    failed = "; ".join(f"{claim.name}: {claim.detail}" for claim in verdict.failures)
    yield Claim(name, verdict.holds, FLOATS, failed or verdict.statement)


def _levels(described: ReleaseFile, mechanisms: Sequence[Mechanism]) -> Iterator[Claim]:
    people = _people(described, mechanisms)
    rows = [np.flatnonzero(people.sum(axis=tuple({*range(people.ndim)} - {k}))) for k in range(people.ndim)]
    parts = [
        Mechanism(one.matrix[own], [one.inputs[row] for row in own], one.outputs)
        for one, own in zip(mechanisms, rows, strict=True)
    ]
    levels = attribute_levels(people[np.ix_(*rows)], parts)
    for part, alone, each in zip(described.parts, levels.alone, levels.each, strict=True):
        name = " and ".join(part.columns)
        yield _at_most(f"level of {name} by itself", part.alone, alone)
        yield _at_most(f"level of {name} with all others", part.with_all, each)
    yield _at_most("level together", described.together, levels.together)
    if described.total is not None:
        holds = levels.together <= described.total
        text = f"{levels.together:.6g} of {described.total:.6g} nats"
        yield Claim("total", holds, FLOATS, text, described.total, levels.together)


def _at_most(name: str, claimed: float, found: float) -> Claim:
    holds = found <= claimed + level_rounding(found)
    text = f"{found:.6g} nats, and {claimed:.6g} claimed"
    return Claim(name, bool(holds), FLOATS, text, claimed, found)


def _people(described: ReleaseFile, mechanisms: Sequence[Mechanism]) -> IntArray:
    """The counts of the letters as an array with an axis for each mechanism."""
    check_size(math.prod(len(one.inputs) for one in mechanisms))
    people = np.zeros([len(one.inputs) for one in mechanisms], dtype=np.int64)
    for letters, count in zip(described.letters, described.people, strict=True):
        if len(letters) != len(mechanisms):
            raise FileFormatError(f"the letters {letters!r} are none of this release")
        place = tuple(
            places_of([letter], one.inputs, "the letters of the release", FileFormatError)[0]
            for letter, one in zip(letters, mechanisms, strict=True)
        )
        people[place] += count
    return people


def _file(place: Path, described: ReleaseFile, releases: Sequence[ColumnRelease]) -> Iterator[Claim]:
    """What is claimed of the released file."""
    written = [name for one in releases for name, _ in one.released]
    with open_table(_inside(place, described.data)) as table:
        extra = sorted(set(table.names) ^ {*written, *described.kept})
        text = (
            "as the description says" if not extra else f"of the file or the description alone: {few(extra)}"
        )
        yield Claim("columns", not extra, BYTES, text)
        if extra:
            return
        places = [column_place(table.names, name, table.where) for name in written]
        try:
            observed, rows = _outcomes(table, places, releases)
        except InputError as error:
            yield Claim("labels", False, BYTES, str(error))
            return
    mechanisms = [one.mechanism for one in releases]
    people = _people(described, mechanisms)
    told = rows == described.rows and (not described.same_people or rows == people.sum())
    text = f"{rows:,} rows, {described.rows:,} claimed, and the letters of {people.sum():,} people"
    yield Claim("rows", bool(told), BYTES, text)
    try:
        fit = fit_of_release(mechanisms, people / people.sum(), observed, same_people=described.same_people)
    except PmloptError as error:
        yield Claim("fit", None, FLOATS, str(error))
        return
    yield from fit_claims(fit)


def fit_claims(fit: Fit) -> Iterator[Claim]:
    """The tests of whether rows came from the mechanisms, as claims."""
    if fit.impossible:
        text = f"outcomes that the mechanisms never give: {few([few(one) for one in fit.impossible])}"
        yield Claim("possible", False, FLOATS, text)
    asked = f"refused below {FALSE_ALARMS:g}"
    text = f"Pearson's test of all outcomes has the p-value {fit.p_value:.3g}, {asked}"
    yield Claim("fit", fit.p_value >= FALSE_ALARMS, FLOATS, text, None, fit.p_value)
    if fit.raw_p_value is None:
        return
    power = (
        "this test would not find even a file of raw rows" if fit.detectable is None else
        f"it finds a share of {fit.detectable:.2%} of raw rows with probability {POWER:g}"
    )  # fmt: skip
    text = f"the p-value against copied rows is at most {fit.raw_p_value:.3g}, {asked}; {power}"
    yield Claim("no raw rows", fit.raw_p_value >= FALSE_ALARMS, FLOATS, text, None, fit.raw_p_value)


def _outcomes(
    table: Table, places: Sequence[int], releases: Sequence[ColumnRelease]
) -> tuple[dict[tuple[Label, ...], int], int]:
    """How often each outcome occurs in a released file, and the number of rows.

    Raises:
        InputError: a cell is no output of its mechanism.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for batch in table.batches():
        values, codes = tuples_of(batch, places)
        counts.update(dict(zip(values, np.bincount(codes, minlength=len(values)).tolist(), strict=True)))
    known = [_outputs(one) for one in releases]
    observed: Counter[tuple[Label, ...]] = Counter()
    for value, number in counts.items():
        cells, outcome = list(with_letter(value)), []
        for release, outputs in zip(releases, known, strict=True):
            own = tuple(cells[: len(release.released)])
            del cells[: len(own)]
            if (found := outputs.get(label_key(own), outputs.get(tuple(map(str, own))))) is None:
                raise InputError(
                    f"{table.where}: {few(own)} is no output of the mechanism of {few(release.columns)}"
                )
            outcome.append(found)
        observed[tuple(part[0] for part in outcome)] += number
    return dict(observed), sum(observed.values())


def _outputs(release: ColumnRelease) -> dict[Label, tuple[Label]]:
    """The outputs of a mechanism, each by the tuple of its cells, and of their texts."""
    cells = zip(*(labels for _, labels in release.released), strict=True)
    found: dict[Label, tuple[Label]] = {}
    for own, output in zip(cells, release.mechanism.outputs, strict=True):
        found[label_key(own)] = found[tuple(map(str, own))] = (output,)
    return found
