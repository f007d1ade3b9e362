"""Names that earlier versions gave to methods, statuses and kinds of certificates, and that are still read.

New files and results have the current names only. Each entry is removed one version after its renaming.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from pmlopt.errors import FormerNameWarning

FORMER_METHODS: Mapping[str, str] = {
    "letter-pairs": "constraint-generation",
    "classes": "color-refinement",
    "structured": "block-ipm",
}
"""The current name of each method that had another."""

FORMER_STATUSES: Mapping[str, str] = {"stopped": "limit_reached"}
"""The current name of each status that had another."""

FORMER_KINDS: Mapping[str, str] = {"held": "compliance"}
"""The current name of each kind of certificate that had another."""


def replace_former_method(name: str) -> str:
    """Return the current name of a solver method; warn for a former name.

    Examples:
        >>> replace_former_method("highs")
        'highs'
    """
    if (current := FORMER_METHODS.get(name.lower())) is None:
        return name
    warnings.warn(
        f"the solver {name!r} is called {current!r} now; the next version no longer accepts {name!r}",
        FormerNameWarning,
        stacklevel=4,
    )
    return current


def replace_former_names(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace former names in the metadata of a saved result.

    Values that no earlier version wrote are left as they are: the reader of the file judges them.

    Examples:
        >>> replace_former_names({"status": "stopped", "solver": "structured", "value": 1.0})
        {'status': 'limit_reached', 'solver': 'block-ipm', 'value': 1.0}
    """
    found = dict(metadata)
    for key, names in (("status", FORMER_STATUSES), ("solver", FORMER_METHODS)):
        if key in found:
            found[key] = _replace_former_name(found[key], names)
    certificate = found.get("certificate")
    if isinstance(certificate, Mapping) and "kind" in certificate:
        kind = _replace_former_name(certificate["kind"], FORMER_KINDS)
        found["certificate"] = {**certificate, "kind": kind}
    return found


def _replace_former_name(word: Any, names: Mapping[str, str]) -> Any:
    """Look up the current name of a former one; return any other value unchanged."""
    return names.get(word, word) if isinstance(word, str) else word
