"""Check the folder of a release: every claim again, and whether the file came from the mechanisms."""

from __future__ import annotations

import math
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core import files
from pmlopt.core.arrays import FloatArray, Label, counts_at, label_key, said
from pmlopt.core.loaded_later import special
from pmlopt.core.roots import smallest_holding
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.tables.counting import tuples_of, with_letter
from pmlopt.data.tables.reading import Table, column_place, open_table
from pmlopt.data.tables.streams import CsvForm
from pmlopt.errors import FileFormatError, InputError, MechanismError
from pmlopt.measures.leakage import level_rounding
from pmlopt.programs.certificate import FLOATS, Claim, Verdict
from pmlopt.programs.result import Result
from pmlopt.publishing.folder import (
    DESCRIPTION,
    RELEASED,
    REPORTS,
    SYSTEM,
    ReleaseFile,
    digests_of,
    joint_levels,
)
from pmlopt.publishing.order import order_claim
from pmlopt.publishing.page import pages
from pmlopt.releases.attributes import through
from pmlopt.releases.batches import ColumnRelease
from pmlopt.releases.joint import check_size
from pmlopt.verification.verifying import load, verify_file

FALSE_ALARMS = 1e-3
"""The p-value below which a release is refused."""

POWER = 0.9
"""The probability with which a share of raw rows that is called detectable is detected."""

_POWER_QUANTILE = 1.2815515655446004
"""The quantile of the standard normal law at `POWER`."""


@dataclass(frozen=True)
class Fit:
    """How well released rows agree with the mechanisms and the law of the letters.

    Attributes:
        rows: how many there are.
        impossible: outcomes among them that cannot occur.
        p_value: an upper bound on that of the count of an outcome that is least likely, of all of them.
        raw_p_value: an upper bound on the p-value of the test against rows that were copied from the data
            in place of being drawn; None where no output is a letter.
        detectable: the share of copied rows that this test finds with probability `POWER`, about; None
            where it would not find all rows copied.
    """

    rows: int
    impossible: tuple[tuple[Label, ...], ...]
    p_value: float
    raw_p_value: float | None
    detectable: float | None

    @property
    def holds(self) -> bool:
        """Whether nothing impossible occurred, and no test refuses it: falsely with probability
        2 `FALSE_ALARMS` at most.
        """
        least = min(self.p_value, 1.0 if self.raw_p_value is None else self.raw_p_value)
        return not self.impossible and least >= FALSE_ALARMS


def fit_of_release(
    mechanisms: Sequence[Mechanism],
    law: FloatArray,
    observed: Mapping[tuple[Label, ...], int],
    *,
    same_people: bool,
) -> Fit:
    """Test whether rows can have been drawn by mechanisms, each row by itself.

    With `q(y) = sum_x law(x) prod_i P_i[x_i, y_i]`, two things are tested. The count of each outcome is
    held against `n q(y)` by Chernoff's bound, for all outcomes at once. The other test is the best one, near
    zero, against a share of rows in which the letters stand undrawn: `T = sum_y n(y) (law(y) / q(y) - 1)`,
    with law(y) the probability of the letters that y spells. Its p-value is bounded by Bennett's inequality
    [boucheron2013concentration, Theorem 2.9]. Both bounds hold for n independent rows at any n.

    Args:
        mechanisms: k of them, (N_i, M_i).
        law: (N_1, ..., N_k) the joint law of the letters.
        observed: how many rows have each outcome, by the labels of the outputs.
        same_people: whether the law is that of the rows' own letters, and not of a population.

    Raises:
        InputError: there is no row, or the law has another shape.
        MechanismError: an outcome is none of the outputs.

    Examples:
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> honest = {("no",): 600, ("yes",): 400}
        >>> fit_of_release([response], np.array([0.7, 0.3]), honest, same_people=True).holds
        True
        >>> other = {("no",): 700, ("yes",): 300}
        >>> fit_of_release([response], np.array([0.7, 0.3]), other, same_people=True).holds
        False
    """
    shape = tuple(len(one.inputs) for one in mechanisms)
    if law.shape != shape:
        raise InputError(f"the law has the shape {law.shape}, and the mechanisms have {shape} inputs")
    rows = sum(observed.values())
    if rows <= 0:
        raise InputError("there is no released row: nothing can be tested")
    check_size(math.prod(max(one.matrix.shape) for one in mechanisms))
    sides = [one.outputs for one in mechanisms]
    counts = counts_at(observed.items(), sides, "the released rows", MechanismError).astype(float)
    matrices = [one.matrix for one in mechanisms]
    expected = through(law, matrices)
    impossible = tuple(
        tuple(one.outputs[k] for one, k in zip(mechanisms, place, strict=True))
        for place in np.argwhere((counts > 0) & (expected <= 0)).tolist()
    )
    raw_p_value, detectable = _against_raw_rows(mechanisms, law, expected, counts, same_people)
    return Fit(rows, impossible, _frequencies(counts, expected, rows), raw_p_value, detectable)


def _frequencies(counts: FloatArray, expected: FloatArray, rows: int) -> float:
    """A bound on the p-value of the count that is least likely, of all outcomes and to both sides.

    A count of independent rows with the mean `rows q` is at least as far from it with a probability of at
    most `exp(-rows KL(count / rows || q))` to either side [boucheron2013concentration, Section 2.2].
    """
    share, law = counts / rows, np.minimum(expected, 1.0)
    exponent = rows * (special.rel_entr(share, law) + special.rel_entr(1 - share, 1 - law))
    cells = int(((expected > 0) | (counts > 0)).sum())
    return min(1.0, 2 * cells * math.exp(-float(exponent.max())))


def _against_raw_rows(
    mechanisms: Sequence[Mechanism],
    law: FloatArray,
    expected: FloatArray,
    counts: FloatArray,
    same_people: bool,
) -> tuple[float | None, float | None]:
    """The p-value against copied rows, and the share of them that would be found."""
    raw = _spelled(mechanisms, law)
    possible = expected > 0
    if not raw[possible].any():
        return None, None
    weights = np.where(possible, raw / np.where(possible, expected, 1.0) - 1.0, 0.0)
    mean, rows = float((expected * weights).sum()), float(counts.sum())
    if same_people:
        means = through(weights, [one.matrix.T for one in mechanisms])  # of the weight, given the letters
        spread, largest = float((law * means**2).sum()), float(weights.max() - means[law > 0].min())
    else:
        spread, largest = mean**2, float(weights.max()) - mean
    variance = rows * max(float((expected * weights**2).sum()) - spread, 0.0)
    drawn = float((counts * weights).sum()) - rows * mean
    shift = float((raw * weights).sum()) - mean
    p_value = _bennett(drawn, variance, largest)
    if shift <= 0:
        return p_value, None
    refused = smallest_holding(lambda t: _bennett(t, variance, largest) <= FALSE_ALARMS, math.sqrt(variance))
    share = (refused + _POWER_QUANTILE * math.sqrt(variance)) / (rows * shift)
    return p_value, share if share <= 1 else None


def _spelled(mechanisms: Sequence[Mechanism], law: FloatArray) -> FloatArray:
    """The probability of the letters that each outcome spells or reads like; 0 where it is none."""
    spells = []
    for one in mechanisms:
        texts = [str(label) for label in one.inputs]  # as a file of text has them
        at = dict(zip(texts, range(len(texts)), strict=True)) if len(set(texts)) == len(texts) else {}
        keys: dict[Label, int] = {label_key(label): place for place, label in enumerate(one.inputs)}
        same = np.zeros((len(one.inputs), len(one.outputs)))
        for y, label in enumerate(one.outputs):
            place = keys.get(label_key(label), at.get(str(label)))
            if place is not None:
                same[place, y] = 1.0
        spells.append(same)
    return through(law, spells)


def _bennett(excess: float, variance: float, largest: float) -> float:
    """A bound on the probability that a sum exceeds its mean by so much; its terms exceed theirs by at most
    `largest`.
    """
    if excess <= 0:
        return 1.0
    if variance <= 0 or largest <= 0:
        return 0.0
    u = largest * excess / variance
    return math.exp(-variance / largest**2 * ((1 + u) * math.log1p(u) - u))


BYTES = "bytes"


def check(folder: str | os.PathLike[str]) -> Verdict:
    """Decide every claim of a release again, from its folder alone.

    The digest of each file, and that there are no others; the certificate of each mechanism; the levels
    alone, with all others, and together, from the matrices and the joint law; the report; the columns and
    labels of the released file; by two tests (`fit_of_release`) whether its rows can have come from the
    mechanisms; and whether they look sorted (`order`), which is a warning and fails no claim. The joint law
    is the releaser's word, and so is what columns in clear tell.

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
        ['mechanisms/ill.json', 'random']

        That matrix has no certificate, and a seed is for tests.

        >>> place.cleanup()
    """
    place = Path(folder)
    if place.is_file():
        raise FileFormatError(f"{folder}: is a file: `pmlopt verify` checks saved results, and this a folder")
    place = place.resolve()
    _regular(place, DESCRIPTION)
    described = ReleaseFile.read(place)
    made = [load(_regular(place, part.mechanism)) for part in described.parts]
    return Verdict(
        "release",
        f"claims that all releases together leak at most {described.together:.6g} nats, under the shares "
        "that the releaser states",
        tuple(_claims(place, described, made)),
    )


def _claims(place: Path, described: ReleaseFile, made: Sequence[Mechanism | Result[Any]]) -> Iterator[Claim]:
    mechanisms = [one if isinstance(one, Mechanism) else one.mechanism for one in made]
    yield _files(place, described)
    for part, one in zip(described.parts, made, strict=True):
        if isinstance(one, Mechanism):
            text = "is a matrix without a certificate: it claims nothing by itself"
            yield Claim(part.mechanism, None, FLOATS, text)
            continue
        verdict = verify_file(place / part.mechanism)
        failed = "; ".join(f"{claim.name}: {claim.detail}" for claim in verdict.failures)
        yield Claim(part.mechanism, verdict.holds, FLOATS, failed or verdict.statement)
    yield from _levels(described, mechanisms)
    yield _report(place, described, made)
    draws = described.random == SYSTEM
    text = f"drawn from {described.random}, says the releaser{'' if draws else ': a seed undoes the noise'}"
    yield Claim("random", draws, BYTES, text)
    releases = [
        ColumnRelease(one, part.columns) for one, part in zip(mechanisms, described.parts, strict=True)
    ]
    yield from _file(place, described, releases)
    if described.kept:
        covered = {*((name,) for name in described.kept), described.kept} <= {
            one.columns for one in described.in_clear
        }
        text = "what the columns in clear tell needs the data: it is not checked"
        yield Claim("in clear", None if covered else False, FLOATS,
                    text if covered else "what some columns in clear tell is not said")  # fmt: skip


def _report(place: Path, described: ReleaseFile, made: Sequence[Mechanism | Result[Any]]) -> Claim:
    """That the report says what follows from the description and the mechanisms."""
    from pmlopt import __version__

    written = [files.read_bytes(_regular(place, name)) for name in REPORTS]
    if written == list(pages(described, made)):
        return Claim("report", True, BYTES, "says what follows from the rest")
    if described.version != __version__:
        return Claim("report", None, BYTES, f"was written by version {described.version}: not checked")
    return Claim("report", False, BYTES, "says something else than what follows from the rest")


def _regular(folder: Path, name: str) -> Path:
    """A file of the folder itself.

    Raises:
        FileFormatError: it is outside, or no file.
    """
    try:
        path = folder / name
        inside = path.resolve().is_relative_to(folder) and stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        raise FileFormatError(f"{folder}: has no file of its own named {name!r:.80}")
    return path


def _files(place: Path, described: ReleaseFile) -> Claim:
    found, told = digests_of(place), dict(described.digests)
    within = {name for name in told if name.startswith(f"{described.data}/")}
    own = {*(within or {described.data}), *REPORTS, *(part.mechanism for part in described.parts)}
    wrong = sorted(
        name
        for name in found.keys() | told.keys() | own
        if found.get(name) != told.get(name) or name not in own
    )
    text = f"the {len(own)} files that belong to it match their digests"
    return Claim(
        "files", not wrong, BYTES, text if not wrong else f"changed, missing or none of its: {said(wrong)}"
    )


def _levels(described: ReleaseFile, mechanisms: Sequence[Mechanism]) -> Iterator[Claim]:
    levels = joint_levels(described.counts(mechanisms), mechanisms)
    for part, alone, each in zip(described.parts, levels.alone, levels.each, strict=True):
        name = " and ".join(part.columns)
        yield _at_most(f"level of {name} by itself", part.alone, alone)
        yield _at_most(f"level of {name} with all others", part.with_all, each)
    yield _at_most("level together", described.together, levels.together)
    if described.total is not None:
        most = max(levels.together, math.inf if described.everything is None else described.everything)
        told = ", as it says of columns in clear" if described.kept else ""
        text = f"{most:.6g} of {described.total:.6g} nats{told}"
        yield Claim("total", most <= described.total, FLOATS, text, described.total, most)


def _at_most(name: str, claimed: float, found: float) -> Claim:
    holds = found <= claimed + level_rounding(found)
    text = f"{found:.6g} nats, and {claimed:.6g} claimed"
    return Claim(name, bool(holds), FLOATS, text, claimed, found)


def _file(place: Path, described: ReleaseFile, releases: Sequence[ColumnRelease]) -> Iterator[Claim]:
    """What is claimed of the released file."""
    written = [name for one in releases for name, _ in one.released]
    form = CsvForm(described.delimiter, "utf-8")
    data = place / described.data
    if described.data != RELEASED or data.is_symlink() or not data.is_dir():
        data = _regular(place, described.data)
    with open_table(data, form) as table:
        told = sorted([*written, *described.kept])
        extra = sorted(set(table.names) ^ set(told)) or (table.names if sorted(table.names) != told else [])
        text = (
            "as the description says" if not extra else f"of the file or the description alone: {said(extra)}"
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
    people = described.counts(mechanisms)
    agree = rows == described.rows and (not described.same_people or rows == people.sum())
    text = f"{rows:,} rows, {described.rows:,} claimed, and the letters of {people.sum():,} people"
    yield Claim("rows", bool(agree), BYTES, text)
    fit = fit_of_release(mechanisms, people / people.sum(), observed, same_people=described.same_people)
    yield from fit_claims(fit, described.same_people)
    yield order_claim(data, form, described, written)


def fit_claims(fit: Fit, same_people: bool) -> Iterator[Claim]:
    """The tests of whether rows came from the mechanisms; of the shares of other people nothing follows."""
    if fit.impossible:
        text = f"outcomes that the mechanisms never give: {said([said(one) for one in fit.impossible])}"
        yield Claim("possible", False, FLOATS, text)
    asked = (
        f"refused below {FALSE_ALARMS:g}" if same_people else "under the shares of other people: not decided"
    )
    text = f"the least likely count of an outcome has a p-value of {_bound(fit.p_value)}, {asked}"
    yield Claim("fit", fit.p_value >= FALSE_ALARMS if same_people else None, FLOATS, text, None, fit.p_value)
    if fit.raw_p_value is None:
        text = "no output reads like a value of the column: rows copied from the data would not be outputs"
        yield Claim("no raw rows", True, BYTES, text)
        return
    power = (
        "this test would not find even a file of raw rows" if fit.detectable is None else
        f"it finds a share of {fit.detectable:.2%} of raw rows with probability {POWER:g}"
    )  # fmt: skip
    text = (
        f"the test for rows copied from the data has a p-value of {_bound(fit.raw_p_value)}, {asked}; {power}"
    )
    holds = fit.raw_p_value >= FALSE_ALARMS if same_people else None
    yield Claim("no raw rows", holds, FLOATS, text, None, fit.raw_p_value)


def _bound(p_value: float) -> str:
    return "1" if p_value >= 1 else f"at most {p_value:.3g}"


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
                    f"{table.where}: {said(own)} is no output of the mechanism of {said(release.columns)}"
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
