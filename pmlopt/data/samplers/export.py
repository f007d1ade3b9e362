"""Export of a mechanism as the source code of a sampler."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pmlopt.core.files import atomic_write
from pmlopt.data.samplers.languages import find_language
from pmlopt.data.samplers.source import write_source
from pmlopt.data.samplers.table import LabelledMatrix, SamplerTable


def export_sampler(
    mechanism: LabelledMatrix,
    path: str | os.PathLike[str],
    language: str | None = None,
    *,
    bits: int | None = None,
    name: str = "",
    statement: Sequence[str] = (),
) -> None:
    """Write the source code of a sampler to a file, completely or not at all; see `Mechanism.export`."""
    chosen = find_language(language, path)
    table = SamplerTable.from_mechanism(mechanism, bits)
    atomic_write(path, write_source(table, chosen, statement, name).encode())
