"""Export of a mechanism as the source code of a sampler."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pmlopt.core.files import atomic_write, is_standard_stream
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
) -> SamplerTable:
    """Write the source code of a sampler to a file, completely or not at all; see `Mechanism.export`.

    Returns:
        the table of the sampler, whose matrix is the mechanism's unless it was rounded.
    """
    ending = "" if is_standard_stream(path) else os.fspath(path)
    chosen = find_language(language, ending)
    table = SamplerTable.from_mechanism(mechanism, bits)
    atomic_write(path, write_source(table, chosen, statement, name).encode())
    return table
