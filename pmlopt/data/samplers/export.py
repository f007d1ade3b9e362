"""Export of a mechanism as the source code of a sampler."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pmlopt.core.files.disk import atomic_write
from pmlopt.data.samplers.languages import find_language, resolve_name
from pmlopt.data.samplers.source import write_source
from pmlopt.data.samplers.table import LabelledMatrix, SamplerTable
from pmlopt.data.samplers.workbooks import PLATFORMS, Platform, write_workbook
from pmlopt.errors import InputError


def export_sampler(
    mechanism: LabelledMatrix,
    path: str | os.PathLike[str],
    language: str | None = None,
    *,
    bits: int | None = None,
    name: str = "",
    statement: Sequence[str] = (),
) -> None:
    """Write a sampler to a file, completely or not at all; see `Mechanism.export`."""
    platform = find_platform(language)
    bits = choose_bits(language, bits)
    if platform is None:
        chosen = find_language(language, path)
        table = SamplerTable.from_mechanism(mechanism, bits)
        atomic_write(path, write_source(table, chosen, statement, name).encode())
        return
    if Path(path).suffix.lower() != ".xlsx":
        raise InputError(f"{path}: {platform.name} is written as a workbook: use the ending .xlsx")
    known = statement or ["No prior is given with the matrix, so its leakage level is not stated."]
    table = SamplerTable.from_mechanism(mechanism, bits)
    atomic_write(path, write_workbook(table, platform, known, name))


def find_platform(language: str | None) -> Platform | None:
    """Find the platform whose workbooks a language names; None for source code."""
    return None if language is None else PLATFORMS.get(resolve_name(language))


def choose_bits(language: str | None, bits: int | None) -> int | None:
    """Return to how many bits a sampler is rounded; None for not at all.

    Raises:
        MechanismError: the platform does not keep so many bits.
    """
    platform = find_platform(language)
    return bits if platform is None else platform.check_bits(bits)
