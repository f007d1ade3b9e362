"""pmlopt designs privacy mechanisms by convex optimization, and proves the bound it claims.

The public names are declared once, in `__init__.pyi`: each is loaded from its module when it is first used,
for cvxpy takes a second to import.
"""

import sys
from importlib import import_module
from typing import Any

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_ROOMS = (
    "closed_forms",
    "constraints",
    "estimation",
    "measures",
    "noise",
    "plots",
    "privacy",
    "programs",
    "queries",
    "releases",
    "symmetry",
    "tables",
    "uncertainty",
    "utility",
)
"""The public subpackages, such as `pmlopt.noise`."""


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    try:
        return _attribute(name)
    except AttributeError:
        if name.startswith("_"):
            raise
    from pmlopt.core.aliases import did_you_mean

    rooms = {f"{__name__}.{room}": import_module(f"{__name__}.{room}") for room in _ROOMS}
    hint = did_you_mean(name, {**rooms, __name__: sys.modules[__name__]})
    raise AttributeError(f"{__name__} has no {name!r}{hint}")
