"""Where classes and functions are defined: in pmlopt, or in another package."""

from __future__ import annotations

from functools import partial


def is_own(part: object) -> bool:
    """Return whether a class, a function or an object is defined in pmlopt, with all that it combines."""
    return all(module.partition(".")[0] == "pmlopt" for module, _ in list_definitions(part))


def list_definitions(part: object) -> list[tuple[str, str]]:
    """List the modules and names of a class, or of all functions that a `functools.partial` combines."""
    if isinstance(part, partial):
        given = [one for one in (*part.args, *part.keywords.values()) if callable(one)]
        return [found for one in (part.func, *given) for found in list_definitions(one)]
    named = part if hasattr(part, "__qualname__") else type(part)
    return [(str(named.__module__), str(named.__qualname__))]
