"""pmlopt designs privacy mechanisms by convex optimization, and proves the bound it claims.

The public names are declared once, in `__init__.pyi`: each is loaded from its module when it is first used,
for cvxpy takes a second to import.
"""

import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("pmlopt")

_ROOMS = {
    "closed_forms": "model.closed_forms",
    "estimation": "releases.estimation",
    "measures": "measures",
    "noise": "releases.noise",
    "plots": "programs.plots",
    "privacy": "model.privacy",
    "programs": "programs",
    "queries": "model.queries",
    "symmetry": "data.symmetry",
    "tables": "data.tables",
    "uncertainty": "model.uncertainty",
    "utility": "model.utility",
}
"""Where the public subpackages are, such as `pmlopt.noise`."""


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{_ROOMS[name]}")
    try:
        return _attribute(name)
    except AttributeError:
        if name.startswith("_"):
            raise
    from pmlopt.core.guesses import elsewhere

    rooms = {f"{__name__}.{room}": import_module(f"{__name__}.{place}") for room, place in _ROOMS.items()}
    hint = elsewhere(name, {**rooms, __name__: sys.modules[__name__]})
    raise AttributeError(f"{__name__} has no {name!r}{hint}")
