"""The origin of classes and functions: pmlopt, or another package."""

from __future__ import annotations

from functools import partial


def is_own(part: object) -> bool:
    """Return whether an object and all its parts are defined in pmlopt."""
    return all(module.partition(".")[0] == "pmlopt" for module, _ in list_definitions(part))


def list_definitions(part: object) -> list[tuple[str, str]]:
    """List module and name of a class, or of all functions in a partial."""
    if isinstance(part, partial):
        given = [one for one in (*part.args, *part.keywords.values()) if callable(one)]
        return [found for one in (part.func, *given) for found in list_definitions(one)]
    named = part if hasattr(part, "__qualname__") else type(part)
    return [(str(named.__module__), str(named.__qualname__))]
