"""The JSON schema of saved results, derived from the classes whose fields they are.

`python -m pmlopt.verification.file_schema > docs/mechanism.schema.json` writes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pmlopt.core import files
from pmlopt.core.arrays import FloatArray
from pmlopt.core.records import Range, Shape
from pmlopt.core.schemas import definitions
from pmlopt.data.symmetry import orbit_mechanism
from pmlopt.data.symmetry.prior import PairSpace
from pmlopt.programs.result import Told
from pmlopt.verification.verifying import KINDS

MATRIX, ORBITS, VERSION = files.FORMAT, orbit_mechanism.FORMAT, files.VERSION


@dataclass(frozen=True)
class ByMatrix:
    """A file with a matrix."""

    format: Literal[MATRIX]  # type: ignore[valid-type]
    version: Literal[VERSION]  # type: ignore[valid-type]
    inputs: list[Hashable]
    outputs: list[Hashable]
    unnamed: list[Literal["inputs", "outputs"]]
    matrix: Annotated[FloatArray, Shape("N", "M"), Range(0.0, 1.0)]
    metadata: Told


@dataclass(frozen=True)
class ByOrbits:
    """A file with the masses of orbits of pairs, whole numbers in quotes."""

    format: Literal[ORBITS]  # type: ignore[valid-type]
    version: Literal[VERSION]  # type: ignore[valid-type]
    space: PairSpace
    total: str
    masses: list[str]
    metadata: Told


def file_schema() -> dict[str, Any]:
    """The schema of a saved result.

    Examples:
        >>> [one["$ref"] for one in file_schema()["oneOf"]]
        ['#/$defs/ByMatrix', '#/$defs/ByOrbits']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A saved result of pmlopt, version {VERSION}",
        "description": "What each number means, and how it is checked, is in certificate.md.",
        "oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in (ByMatrix, ByOrbits)],
        "$defs": definitions(*KINDS, ByMatrix, ByOrbits),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(file_schema(), indent=1) + "\n")
