"""The folder of a proof: VIPR and MPS files of its linear programs, and a README in plain words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pmlopt.core.descriptions import escape_control_characters
from pmlopt.core.drafts import Draft, remove_path
from pmlopt.core.files import describe_os_error
from pmlopt.errors import FileFormatError
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.proofs.claims import list_proofs
from pmlopt.programs.proofs.exact_program import make_names
from pmlopt.programs.proofs.formats import ProvedProgram, iterate_mps_lines, iterate_vipr_lines
from pmlopt.programs.reports.pages import warn_of_sample

README = "README.md"

TRUSTED = (
    "that the linear program is the promise: the rows below, each with its meaning, are short enough to read, "
    "and `feasibility` and `optimum` differ in the rationals next to powers of e only",
    "that each rational next to a power of e is on the side that is stated: two lines with any arithmetic of "
    "60 digits",
    "that the prior below is the one that was meant, and that the labels are in the right order",
    "the checker, unless it is one that was itself proved correct",
    "that the data are released by this mechanism, and by a good generator of random numbers",
)
"""What a proof leaves to be trusted."""


@dataclass(frozen=True)
class WrittenProof:
    """What was proved in a folder.

    Attributes:
        folder: where the files are.
        sentences: what each pair of files proves, by their name.
        value: the objective at the mechanism.
        bound: the proved bound on it; None where none is proved.
        levels: where a least level, or that of an envelope, is claimed, the level that is reached in nats, and
            that which is proved not to be; else empty.
    """

    folder: Path
    sentences: dict[str, str]
    value: Fraction
    bound: Fraction | None
    levels: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: what `pmlopt prove --json` prints; rationals as text."""
        return {
            "folder": str(self.folder),
            "proved": self.sentences,
            "value": str(self.value),
            "bound": None if self.bound is None else str(self.bound),
            "levels": list(self.levels),
        }

    def __str__(self) -> str:
        """Return the folder, and what each file proves."""
        return "\n".join([f"{self.folder}:", *(f"{name}.vipr: {text}" for name, text in self.sentences.items())])


def write_proof(certificate: Certificate, folder: str | os.PathLike[str]) -> WrittenProof:
    """Write the proof of a certificate into a new folder, completely or not at all.

    Args:
        certificate: of a result on listed letters.
        folder: that does not exist yet.

    Raises:
        ProgramError: its claims are about no linear program.
        FileFormatError: the folder exists, or cannot be written.
    """
    target = Path(folder)
    if os.path.lexists(target):
        raise FileFormatError(f"{target}: exists already: give the name of a new folder")
    proofs = list_proofs(certificate)
    try:
        draft = Draft.create(target)
    except OSError as cause:
        raise FileFormatError(f"{target}: cannot be written: {describe_os_error(cause)}") from cause
    try:
        _write_files(certificate, proofs, draft.partial_path)
        draft.seal()
        draft.publish()
    except OSError as cause:
        raise FileFormatError(f"{target}: cannot be written: {describe_os_error(cause)}") from cause
    finally:
        remove_path(draft.folder)
    return WrittenProof(
        folder=target,
        sentences={one.name: one.sentence for one in proofs},
        value=proofs[0].program.value,
        bound=proofs[-1].bound,
        levels=tuple(one.level for one in proofs if one.level is not None),
    )


def _write_files(certificate: Certificate, proofs: list[ProvedProgram], folder: Path) -> None:
    """Write all files of a proof."""
    folder.mkdir()
    contents = {README: iterate_readme_lines(certificate, proofs)}
    for one in proofs:
        contents[f"{one.name}.vipr"] = iterate_vipr_lines(one)
        contents[f"{one.name}.mps"] = iterate_mps_lines(one)
    for name, lines in contents.items():
        with (folder / name).open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line in lines)
            stream.flush()
            os.fsync(stream.fileno())


def iterate_readme_lines(certificate: Certificate, proofs: list[ProvedProgram]) -> Iterator[str]:
    """Yield the lines of the README of a proof."""
    yield "# What these files prove\n"
    for one in proofs:
        yield f"- `{one.name}.vipr`: {one.sentence}"
    for warning in warn_of_sample(certificate):
        yield f"\n**{warning}**"
    yield f"\n{_describe_claim(certificate)}\n"
    yield from _iterate_prior_lines(certificate)
    yield "\n## How to check\n"
    yield "Any checker of VIPR certificates reads the files, such as `viprchk` (https://github.com/scipopt/vipr):\n"
    yield "```"
    yield from (f"viprchk {one.name}.vipr" for one in proofs)
    yield "```\n"
    yield "It adds up the rows of the linear program with the multipliers in the file, in rational arithmetic, and"
    yield "looks whether the sum is what is claimed. The `.mps` files are the same linear programs for exact solvers,"
    yield "with rationals written `p/q`: `esolver optimum.mps` of QSopt_ex, or SoPlex and SCIP in their exact modes."
    for one in proofs:
        yield from _iterate_program_lines(one)
    yield "\n## What remains to be trusted\n"
    yield from (f"- {text};" for text in TRUSTED)


def _describe_claim(certificate: Certificate) -> str:
    """Describe the requirement, and what it means, where there is one."""
    privacy = getattr(certificate, "privacy", None)
    if privacy is None:
        return f"The claim of the result: {escape_control_characters(certificate.statement)}."
    meanings = " ".join(privacy.meanings)
    scope = f" It is {privacy.scope}." if privacy.scope else ""
    return f"The requirement is `{escape_control_characters(repr(privacy))}`. {meanings}{scope}"


def _iterate_prior_lines(certificate: Certificate) -> Iterator[str]:
    """Yield the prior letter by letter, as the rationals of the rows, and the outputs."""
    prior, mechanism = certificate.listed_prior, certificate.mechanism
    if prior is None:
        prior = getattr(certificate, "witness", certificate).listed_prior
    assert prior is not None  # there are proofs of listed priors only
    total = sum(prior.weights)
    yield f"The prior is on {prior.size} letters: each has its weight over the sum of all weights, {total}.\n"
    yield "| letter | name in the files | weight | about |\n| --- | --- | --- | --- |"
    for label, name, weight in zip(prior.labels, make_names(prior.labels), prior.weights, strict=True):
        yield f"| {_format_label(label)} | {name} | {weight} | {float(Fraction(weight) / total):.9g} |"
    names = zip(mechanism.outputs, make_names(mechanism.outputs), strict=True)
    outputs = ", ".join(f"{_format_label(label)} as {name}" for label, name in names)
    yield f"\nThe outputs, with their names in the files: {outputs}."


def _format_label(label: object) -> str:
    """Format a label in a line of Markdown."""
    return "`" + escape_control_characters(repr(label)).replace("`", "'").replace("|", "\\|") + "`"


def _iterate_program_lines(proved: ProvedProgram) -> Iterator[str]:
    """Yield the size of a linear program, what its rows and columns mean, and its powers of e."""
    program = proved.program
    yield f"\n## The linear program of `{proved.name}`\n"
    yield f"It has {len(program.columns)} variables, each at least 0, and {len(program.rows)} rows. Names are of letters"
    yield "and outputs, such as `P[letter,output]`; before the bracket is the kind:\n"
    yield from (f"- `{kind}`: {meaning}" for kind, meaning in program.meanings.items())
    yield f"- the objective: {_describe_objective(proved)}\n"
    side = "above" if program.powers.above else "below"
    for exponent, ratio in program.powers.used.items():
        if ratio == 1:
            yield f"e to {exponent!r} is 1."
            continue
        exact = Context(prec=70).exp(Decimal(exponent))
        off = abs(Fraction(exact) - ratio)
        yield f"e to {exponent!r} is replaced by {ratio}, {side} it by less than {float(off) * 2 + 1e-60:.1g}."


def _describe_objective(proved: ProvedProgram) -> str:
    """Describe what the linear program optimises."""
    if proved.is_infeasible:
        return "none; the rows contradict each other, and the file adds them up to an inequality that is false"
    if not proved.program.objective:
        return "none; the file has a point that meets all rows"
    verb = "largest" if proved.program.is_maximised else "least"
    low, high = proved.proved_range
    return (
        "the probability of each letter times the gain or loss (or, of an envelope, the probability of an output), "
        f"on each variable. Its {verb} value is proved to be from {_shorten(low)} to {_shorten(high)}"
    )


def _shorten(number: str) -> str:
    """Return a rational with its value in digits."""
    return number if number.endswith("inf") else f"{number} (about {float(Fraction(number)):.15g})"
