"""The commands that describe for others: `export`, `verify --of` and `report --registry`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from pmlopt.cli.exits import CLAIM_FAILS
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, add_command
from pmlopt.cli.printing import (
    format_nats,
    format_number,
    print_json,
    print_table,
    warn_of_exact_counts,
)
from pmlopt.cli.reading import read_saved_constraints, read_saved_prior
from pmlopt.cli.targets import TARGET
from pmlopt.cli.terminal import print_line
from pmlopt.core.files.csv_rows import encode_csv
from pmlopt.core.files.disk import atomic_write, encode_json_bytes, read_bytes
from pmlopt.core.files.sealing import check_not_sealed
from pmlopt.data.samplers.languages import LANGUAGES
from pmlopt.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from pmlopt.data.samplers.source import SamplerSource
    from pmlopt.data.samplers.workbooks import SamplerWorkbook

Language = Annotated[
    str | None,
    "js, mjs (a module), ts, c, rust, kotlin, swift, r, sql (PostgreSQL) or python; left out, by "
    "the ending of the file. Or xlsform or spreadsheet, as .xlsx: rounded to the bits that they keep. Or "
    "ptable: the noise of a mechanism on counts, in the form of the cell key method.",
    "--to",
]

Keys: TypeAlias = Annotated[
    int | None,
    "With --to ptable: round to so many whole cell keys; left out, keys are numbers from 0 to 1.",
]

SOURCE_ENDINGS = frozenset(language.ending.lower() for language in LANGUAGES.values())
"""The endings of generated source code."""


@add_command(main, "export")
def export_command(
    saved_file: Annotated[Path, ArgumentNote("MECHANISM")],
    output: Annotated[Path, "The file to write.", TARGET],
    language: Language = None,
    keys: Keys = None,
    bits: Annotated[
        int | None,
        "Round the draws to so many random bits (1 to 53): for platforms that have fewer, and for "
        "matrices that are not in multiples of 2^-53. The level is computed again.",
    ] = None,
    max_level: Annotated[
        float | None,
        "Refuse draws with a level of the requirement above this, in nats, after rounding.",
    ] = None,
    name: Annotated[str, "Distinguishes the functions of several mechanisms in one program."] = "",
    decode: Annotated[
        bool,
        "Write what estimates frequencies from counts of the outcomes instead (js, mjs, r, sql), with "
        "standard errors.",
    ] = False,
) -> None:
    """Write a mechanism as source code in a language.

    The code releases values. MECHANISM is a saved result or a matrix. The file needs no library: it compares
    random bits of the platform's generator for cryptography with whole numbers, and so draws with exactly the
    probabilities of the matrix. `pmlopt verify FILE --of MECHANISM` compares the two again.

    Forms and spreadsheets have no such generator: their numbers are predictable, and unfit for secrets.

    A table of noise (ptable) has i, j, p, v and an interval of keys, as R's ptable has it; with --keys pcv,
    ckey and pvalue. What is rounded is another mechanism, whose level, bias and variance are printed. It
    keeps what the design kept of each count, or the exit code is 1. Counts of 0 stay 0, unless the mechanism
    has a row for them.
    """
    from pmlopt.data.samplers.export import find_platform
    from pmlopt.data.samplers.source import build_name
    from pmlopt.verification.verify_saved import load_trusted

    if language == "ptable":
        if bits is not None or max_level is not None or decode or name:
            raise InputError("--to ptable takes --keys and -o only: leave out the other options")
        write_noise_table(saved_file, output, keys)
        return
    if keys is not None:
        raise InputError("--keys belongs to --to ptable: give both")
    found = load_trusted(saved_file)
    warn_of_exact_counts(output, found)
    if decode:
        if bits is not None or max_level is not None:
            raise InputError("--decode draws nothing: leave out --bits and --max-level")
        _export_decoder(found, output, language, name)
        print_line(f"Wrote {output}.")
        return
    _export_sampler(found, output, language, bits, max_level, name)
    for note in () if (platform := find_platform(language)) is None else platform.notes:
        print_line(note.format(build_name(name)), err=True)
    print_line(f"Wrote {output}. Check it with: pmlopt verify {output} --of {saved_file}")


def _export_sampler(
    found: Any,
    output: Path,
    language: str | None,
    bits: int | None,
    max_level: float | None,
    name: str,
) -> None:
    """Write the sampler of a mechanism or a result, and print what is claimed of rounded draws."""
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.samplers.export import choose_bits

    if isinstance(found, Mechanism):
        if max_level is not None:
            raise InputError(
                "--max-level needs a saved result: a matrix has no prior or requirement"
            )
        found.export(output, language, bits=bits, name=name)
        return
    found.export(output, language, bits=bits, name=name, max_level=max_level)
    drawn = choose_bits(language, bits)
    for sentence in () if drawn is None else found.describe_draws(drawn):
        print_line(sentence)


def _export_decoder(found: Any, output: Path, language: str | None, name: str) -> None:
    """Write the decoder of a mechanism or a result, whose prior its weights are for."""
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases.estimation.decoder import export_decoder

    if isinstance(found, Mechanism):
        export_decoder(found, output, language, name=name)
        return
    if not isinstance(found.mechanism, Mechanism):
        raise InputError("a mechanism by orbits has too many letters to be listed as source code")
    prior = found.certificate.listed_prior
    export_decoder(found.mechanism, output, language, prior=prior, name=name)


def verify_source(path: Path, mechanism_file: Path) -> bool:
    """Print whether generated source code draws from a mechanism; return the verdict."""
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.verification.verify_saved import load_trusted

    source = read_source(path)
    found = load_trusted(mechanism_file)
    mechanism = found if isinstance(found, Mechanism) else found.mechanism
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"{mechanism_file}: is by orbits, of which no source code is generated")
    parts = source.compare(mechanism)
    if not isinstance(found, Mechanism):
        stated = found.describe_draws(source.rounded_bits)
        same = list(source.header["statement"]) == stated
        parts.append(("statement", same, " ".join(stated)))
    holds = all(verdict for _, verdict, _ in parts)
    if print_json("verdict", {
        "language": source.header["language"],
        "digest": source.header["digest"],
        "bits": source.header["bits"],
        "holds": holds,
        "parts": [dict(zip(("part", "holds", "detail"), part, strict=True)) for part in parts],
    }):  # fmt: skip
        return holds
    print_line(f"{path.name}: {source.header['language']}, {source.header['bits']} bits a draw")
    print_table(
        ["part", "verdict", "what was found"],
        [(name, "holds" if verdict else "FALSE", detail) for name, verdict, detail in parts],
    )
    return holds


def read_source(path: Path) -> SamplerSource | SamplerWorkbook:
    """Read generated source code, or a generated workbook."""
    from pmlopt.data.samplers.source import SamplerSource
    from pmlopt.data.samplers.workbooks import SamplerWorkbook

    content = read_bytes(path)
    if content.startswith(b"PK"):
        return SamplerWorkbook.read(content, path)
    try:
        return SamplerSource.read(content.decode(), os.fspath(path))
    except UnicodeDecodeError:
        raise FileFormatError(f"{path}: is no source code in UTF-8") from None


def describe_for_registry(folder: Path, output: Path | None) -> None:
    """Print or write the record of a release for registries."""
    from pmlopt.publishing.deployment import describe_deployment

    record = describe_deployment(folder)
    if output is None:
        print_json("deployment", record, always=True)
        return
    check_not_sealed(output)
    atomic_write(output, encode_json_bytes(record))
    print_line(f"Wrote {output}.")


def write_noise_table(mechanism_file: Path, output: Path, keys: int | None) -> None:
    """Write a mechanism on counts as a table of noise, and print what it keeps; exit 1 where that breaks."""
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.measures import leakage_level
    from pmlopt.releases.noise import tables as tables

    mechanism, prior = Mechanism.load(mechanism_file), read_saved_prior(mechanism_file)
    asked = read_saved_constraints(mechanism_file)
    used = mechanism if keys is None else tables.round_to_keys(mechanism, keys, asked)
    table = tables.add_zero_row(used)
    rows: list[tuple[object, ...]] = [tables.PTABLE, *tables.list_ptable_rows(table)]
    if keys is not None:
        rows = [tables.KEYS, *tables.list_key_rows(table, keys)]
    atomic_write(output, encode_csv(rows))
    told = "" if prior is None else f"; PML {format_nats(leakage_level(prior, used))}"
    if prior is not None and keys is not None:
        told += f", {format_nats(leakage_level(prior, mechanism))} before it was rounded"
    bias, variance = tables.compute_noise_moments(used)
    most = float(np.abs(bias).max()), float(variance.max())
    told += f"; bias at most {format_number(most[0])}, variance at most {format_number(most[1])}"
    print_line(f"{output}: {len(rows) - 1} rows{told}")
    broken = {} if keys is None else tables.find_violated_constraints(used, asked)
    if not broken or keys is None:
        return
    more = tables.find_sufficient_keys(mechanism, keys, asked)
    advice = "give another number of keys" if more is None else f"--keys {more} keeps it"
    for name, violation in broken.items():
        print_line(
            f"{keys} keys break the constraint {name!r} by {violation:.2g} of its size: {advice}",
            err=True,
        )
    sys.exit(CLAIM_FAILS)
