"""The JSON schema of saved results, derived from the classes whose fields they are.

`python -m pmlopt.verification.file_schema > docs/mechanism.schema.json` writes it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.matrices.formats import SavedMatrix
from pmlopt.core.matrices.matrix_file import MECHANISM_FILE_VERSION
from pmlopt.core.records.record import build_definitions
from pmlopt.data.symmetry.orbit_mechanism import SavedOrbits
from pmlopt.programs.registry import list_certificates
from pmlopt.programs.result import ResultRecord


@light_dataclass(frozen=True)
class ByMatrix(SavedMatrix):
    """The schema of a file with an explicit matrix."""

    metadata: ResultRecord  # type: ignore[assignment]


@light_dataclass(frozen=True)
class ByOrbits(SavedOrbits):
    """The schema of a file with pair orbits."""

    metadata: ResultRecord  # type: ignore[assignment]


def build_file_schema() -> dict[str, Any]:
    """Build the JSON schema of a saved result.

    Examples:
        >>> [one["$ref"] for one in build_file_schema()["oneOf"]]
        ['#/$defs/ByMatrix', '#/$defs/ByOrbits']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A saved result of pmlopt, version {MECHANISM_FILE_VERSION}",
        "description": "What each number means, and how it is checked, is in certificate.md.",
        "oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in (ByMatrix, ByOrbits)],
        "$defs": build_definitions(*list_certificates(), ByMatrix, ByOrbits),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(build_file_schema(), indent=1) + "\n")
